"""Value runs on disk: the parts of the generator, written once, found by key.

A part's bundle: `directory` uint32, where the keys of each next prefix start; `keys` uint64, `checks` uint32,
`columns` uint16 (uint32 where ids need it), sorted by all three; and `counts` int32 (int64 where they need
it), left out where every count is 1: so it is in the runs of append-only tables. Clusters: `offsets` int64,
`columns` uint32, `sizes` int64, `rows` int64.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.root import Root
from holdfast.inclusions.generator import RunRef, SumRef
from holdfast.inclusions.kernels.clusters import Clusters, joined_clusters, tally
from holdfast.inclusions.kernels.sorted_runs import Entries, directory, find, joined

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]

ENTRY_BYTES = 18  # key, check, column and count of one entry
VALUES_OF_A_ROW = 16  # that are looked up, as many pages as a row of a segment takes


class RunPart:
    """An open part: memory maps of its arrays."""

    def __init__(self, root: Root, ref: FileRef) -> None:
        self._bundle = bundle = open_bundle(root, ref, "run", partly=True)
        self.keys: U64 = bundle.array("keys")
        self.checks: U32 = bundle.array("checks")
        self._columns = bundle.array("columns")
        self.directory: U32 = bundle.array("directory")
        self.first, self.shift = int(bundle.meta["first"]), int(bundle.meta["shift"])
        self._counts = bundle.array("counts") if "counts" in bundle else None

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, keys: U64, checks: U32) -> tuple[I64, I64, int]:
        """(starts, ends, reads) of values whose keys are in this part's range."""
        self._bundle.expect(len(keys) // VALUES_OF_A_ROW, len(self))
        return find(self.keys, self.checks, self.directory, self.first, self.shift, keys, checks)

    def columns(self, at: I64) -> U32:
        return self._columns[at].astype(np.uint32)

    def counts(self, at: I64) -> I64:
        return np.ones(len(at), np.int64) if self._counts is None else self._counts[at].astype(np.int64)

    def between(self, start: int, end: int) -> Entries:
        """A range of entries, as the kernels take them."""
        self._bundle.expect(end - start, len(self))
        n = end - start
        counts = np.ones(n, np.int64) if self._counts is None else self._counts[start:end].astype(np.int64)
        return Entries(
            self.keys[start:end], self.checks[start:end], self._columns[start:end].astype(np.uint32), counts
        )


@lru_cache(maxsize=512)
def open_part(root: Root, ref: FileRef) -> RunPart:
    """The open part, from this process's cache if it is there: files never change."""
    return RunPart(root, ref)


def key_range(bits: int, part: int) -> tuple[int, int]:
    """The first and last key of a part.

    >>> [hex(k) for k in key_range(4, 15)]
    ['0xf000000000000000', '0xffffffffffffffff']
    """
    width = 64 - bits
    return part << width, ((part + 1) << width) - 1


def in_range(root: Root, run: RunRef, first: int, last: int) -> list[tuple[RunPart, int, int]]:
    """(part, start, end): where a run holds keys of a range. Cost: a binary search in one or two parts."""
    ranges = []
    for i in range(first >> (64 - run.bits), (last >> (64 - run.bits)) + 1):
        ref = run.parts[i]
        if ref is not None:
            part = open_part(root, ref)
            start = int(np.searchsorted(part.keys, np.uint64(first)))
            end = int(np.searchsorted(part.keys, np.uint64(last), side="right"))
            if end > start:
                ranges.append((part, start, end))
    return ranges


def entries_in_range(root: Root, run: RunRef, first: int, last: int) -> Entries:
    return joined([part.between(start, end) for part, start, end in in_range(root, run, first, last)])


def write_part(root: Root, folder: str, entries: Entries, bits: int = 0, part: int = 0) -> FileRef | None:
    """Write entries, sorted, as a part of a run; None if there are none."""
    if not len(entries):
        return None
    first = key_range(bits, part)[0]
    starts, shift = directory(entries.keys, first, bits)
    narrow = int(entries.columns.max()) < 1 << 16
    arrays: dict[str, NDArray[Any] | pa.Array] = {
        "directory": starts,
        "keys": entries.keys,
        "checks": entries.checks,
        "columns": entries.columns.astype(np.uint16) if narrow else entries.columns,
    }
    if not (entries.counts == 1).all():
        small = int(np.abs(entries.counts).max()) < 1 << 31
        arrays["counts"] = entries.counts.astype(np.int32) if small else entries.counts
    meta = {"holdfast": "run", "first": str(first), "shift": str(shift)}
    return write_bundle(root, unique_name(folder, "run", ".arrow"), arrays, meta)


def write_clusters(root: Root, folder: str, clusters: Clusters) -> SumRef:
    arrays: dict[str, NDArray[Any] | pa.Array] = dict(clusters._asdict())
    name = unique_name(folder, "clusters", ".arrow")
    return SumRef(write_bundle(root, name, arrays, {"holdfast": "clusters"}), len(clusters.sizes))


def read_clusters(root: Root, refs: Sequence[SumRef]) -> Clusters:
    """The clusters that a state names, each once, with its number of values."""
    parts = []
    for ref in refs:
        bundle = open_bundle(root, ref.file, "clusters")
        parts.append(Clusters(*(bundle.array(name) for name in Clusters._fields)))
    return tally(joined_clusters(parts))
