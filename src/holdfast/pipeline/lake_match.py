"""Matching columns of a lake: what one task does with some columns of one part against other parts.

Proposals come from one of two proposers, which give equal results:

- `signatures` (MANY): AND rows of the transposed signature matrix, 64 columns at a time, then validate every
  candidate on the exact value sets. `dep2refs` asks in which columns the given ones are contained,
  `ref2deps` which columns they contain.
- `index`: look up the values of a column in the inverted index and intersect their postings, the rarest
  value first. All values are intersected, so what remains holds; nothing is left to validate.

Arrays are memory maps, inclusions go to Parquet in chunks: a task holds one chunk and the bitmaps of the most
frequent values, whatever the size of the lake, and the driver nothing but counts and file names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.kernels.rarest_value import containing, nearly_containing, rarity
from holdfast.kernels.removed_inds import removed
from holdfast.kernels.signatures import dep2refs, ref2deps
from holdfast.kernels.table_links import Links
from holdfast.kernels.value_index import bitmaps, find
from holdfast.kernels.value_sets import validated
from holdfast.pipeline.lake_read import matched_columns
from holdfast.storage.files import FileRef, foreign_write, seal_file, unique_name
from holdfast.storage.lake import (
    FILTERS,
    FOLDER,
    INDS_SCHEMA,
    LINKS_SCHEMA,
    UNIQUE_COLUMN,
    LakeOptions,
    Part,
    PartRef,
    filled,
    open_array,
    parquet_batches,
)

Payload = dict[str, Any]
Proposer = Literal["signatures", "index"]
Strategy = Literal["dep2refs", "ref2deps"]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]
Pairs = tuple[I32, I32, I32]  # dependent, referenced, shared values: columns are numbers in their parts

# Inclusions, or candidates, that a task holds at once: some 100 MB with all that goes with them.
CHUNK = 2_000_000
# Links of a table to others that are kept beside those that keep its component connected.
LINKS_KEPT = 64


class Side:
    """A part as one side of the matching: its columns, and which of them are alive and wanted."""

    def __init__(self, root: Path, ref: PartRef, options: LakeOptions, dropped: FileRef | None) -> None:
        self.part, self.ref, self.options = Part(root, ref), ref, options
        self.dropped: I32 = open_array(root, dropped) if dropped is not None else np.empty(0, np.int32)

    def same_part(self, other: Side) -> bool:
        """Not `is`: two threads may both have opened it."""
        return self.ref.first_column == other.ref.first_column

    def array(self, name: str) -> NDArray[Any]:
        return self.part.array(name)

    @cached_property
    def tables(self) -> I32:
        """The table of each column, numbered through the lake."""
        return self.array("table_of") + np.int32(self.ref.first_table)

    @cached_property
    def sizes(self) -> I32:
        return self.part.sizes

    @cached_property
    def alive(self) -> Bool:
        gone: Bool = np.isin(self.tables, self.dropped)
        return ~gone

    @cached_property
    def dependents(self) -> Bool:
        return self.alive & matched_columns(self.sizes, self.array("flags"), self.options)

    @cached_property
    def references(self) -> Bool:
        if "non-unique" not in self.options.filters:
            return self.dependents
        found: Bool = self.dependents & ((self.array("flags") & UNIQUE_COLUMN) != 0)
        return found

    @cached_property
    def uniqueness(self) -> NDArray[np.float32]:
        rows = np.maximum(self.array("n_rows"), 1)
        shares: NDArray[np.float32] = np.minimum(self.sizes / rows, 1).astype(np.float32)
        return shares

    @cached_property
    def maps(self) -> U64:
        """Bitmaps over the columns of the most frequent values."""
        frequent = self.array("frequent")
        lengths = frequent[:, 1].astype(np.int32)
        return bitmaps(self.array("postings"), frequent[:, 0].copy(), lengths, self.ref.n_columns)

    def slots(self, starts: I64, lengths: I32) -> I32:
        """Which bitmap each posting has; -1 where it has none."""
        frequent = self.array("frequent")[:, 0]
        if not len(frequent):
            return np.full(len(starts), -1, np.int32)
        at = np.minimum(np.searchsorted(frequent, starts), len(frequent) - 1)
        return np.where((frequent[at] == starts) & (lengths > 0), at, -1).astype(np.int32)

    def values_of(self, columns: NDArray[Any]) -> tuple[I64, U64, U64]:
        """(offsets, values, checks) of some columns, behind each other."""
        offsets = self.array("offsets")
        if len(columns) and columns[-1] - columns[0] == len(columns) - 1:
            a, b = offsets[columns[0]], offsets[columns[-1] + 1]
            ends = offsets[columns[0] : columns[-1] + 2] - a
            return ends, self.array("values")[a:b], self.array("checks")[a:b]
        sizes = self.sizes[columns].astype(np.int64)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        at = np.arange(ends[-1]) + np.repeat(offsets[columns] - ends[:-1], sizes)
        return ends, self.array("values")[at], self.array("checks")[at]


def bit_words(marked: Bool) -> U64:
    """Bits as words: bit i % 64 of word i // 64."""
    packed = np.packbits(marked, bitorder="little")
    words = np.zeros(-(-len(marked) // 64) * 8, np.uint8)
    words[: len(packed)] = packed
    return words.view(np.uint64)


@dataclass(frozen=True, slots=True)
class Found:
    """What a task found: how many inclusions, where they lie, and what the filters keep out."""

    n_inds: int
    removed: tuple[int, ...]
    inds: FileRef | None
    links: FileRef | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_inds": self.n_inds,
            "removed": list(self.removed),
            "inds": self.inds.to_dict() if self.inds else None,
            "links": self.links.to_dict() if self.links else None,
        }

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Found:
        refs = (FileRef.from_dict(fields[n]) if fields[n] else None for n in ("inds", "links"))
        return cls(fields["n_inds"], tuple(fields["removed"]), *refs)


def _pairs_writer(path: Path, schema: pa.Schema) -> Any:
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=1)


class _Output:
    """Writes inclusions and links, chunk by chunk. A file is made with its first row."""

    def __init__(self, root: Path, n_tables: int) -> None:
        self._root = root
        self._stack = ExitStack()
        self._writers: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._links = Links(n_tables, LINKS_KEPT)
        self.n_inds = 0

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)

    def write(self, pairs: Pairs, deps: Side, refs: Side) -> None:
        """Pairs are sorted by dependent."""
        dep, ref, shared = pairs
        if not len(dep):
            return
        self.n_inds += len(dep)
        first, other = np.int32(deps.ref.first_column), np.int32(refs.ref.first_column)
        self._append("inds", INDS_SCHEMA, (dep + first, ref + other, shared))
        self.link(pairs, deps, refs)

    def link(self, pairs: Pairs, deps: Side, refs: Side) -> None:
        sizes = deps.sizes
        distinctive = deps.array("rarity") * (sizes / (sizes + 2.0)).astype(np.float32)
        found = self._links.of(
            *pairs, (sizes, distinctive, deps.tables), (refs.sizes, refs.uniqueness, refs.tables)
        )
        if len(found[0]):
            self._append("links", LINKS_SCHEMA, found)

    def _append(self, what: str, schema: pa.Schema, arrays: Sequence[NDArray[Any]]) -> None:
        if what not in self._writers:
            name = self._names[what] = unique_name(FOLDER, what, ".parquet")
            path = self._stack.enter_context(foreign_write(self._root, name))
            self._writers[what] = self._stack.enter_context(_pairs_writer(path, schema))
        self._writers[what].write_batch(pa.record_batch(list(map(pa.array, arrays)), schema=schema))

    def sealed(self) -> tuple[FileRef | None, FileRef | None]:
        self._stack.close()
        names = [self._names.get(what) for what in ("inds", "links")]
        inds, links = (seal_file(self._root, name) if name else None for name in names)
        return inds, links


# -- the task ----------------------------------------------------------------------------------


def match_columns(payload: Payload) -> bytes:
    """Match columns `low` to `high` of the part `probe` with each part of `against`.

    They are the dependent ones, unless the strategy is ref2deps. `do` lists what is wanted: "describe" (find
    pivots and rarity; `against` must be all parts of the lake), "count" (what the filters keep out) or
    "match". `touching`: only those whose pivot is a value of `against[0]`.
    """
    root, options = Path(payload["root"]), LakeOptions.from_dict(payload["options"])
    probe = opened(payload, payload["probe"])
    against = [opened(payload, part) for part in payload["against"]]
    columns = np.arange(payload["low"], payload["high"])
    counts = np.zeros(len(FILTERS) + 1, np.int64)
    lookups = Lookups(probe, payload["low"])
    if "describe" in payload["do"]:
        _describe(lookups, against, columns, payload)
    asked = _touching(probe, against[0], columns, options) if payload["touching"] else columns
    if "count" in payload["do"] and options.filters:
        for other in against:
            counts += count_removed(lookups, other, asked[probe.alive[asked]], other.alive)
    with _Output(root, payload["n_tables"]) as output:
        for other in against if "match" in payload["do"] else ():
            for deps, refs, pairs in _matched(lookups, other, asked, options, payload):
                output.write(pairs, deps, refs)
        n_inds, files = output.n_inds, output.sealed()
    return json.dumps(Found(n_inds, tuple(counts.tolist()), *files).to_dict()).encode()


def opened(payload: Payload, part: Any) -> Side:
    """A part that a payload names; opened once for all tasks of a process."""
    return _opened(
        payload["root"], json.dumps(part), json.dumps(payload["options"]), json.dumps(payload["dropped"])
    )


@lru_cache(maxsize=16)
def _opened(root: str, part: str, options: str, dropped: str) -> Side:
    gone = json.loads(dropped)
    return Side(
        Path(root),
        PartRef.from_dict(json.loads(part)),
        LakeOptions.from_dict(json.loads(options)),
        FileRef.from_dict(gone) if gone else None,
    )


def _matched(
    lookups: Lookups, other: Side, asked: NDArray[Any], options: LakeOptions, payload: Payload
) -> Iterator[tuple[Side, Side, Pairs]]:
    """(dependent side, referenced side, pairs) chunk by chunk; all filters applied."""
    probe = lookups.probe
    if payload["strategy"] == "ref2deps":
        refs = asked[probe.references[asked]]
        if options.max_error:
            raise AssertionError("partial inclusions are found from their dependent side")
        for pairs in _contained_by_signature(probe, other, refs):
            yield other, probe, _kept(pairs, other, probe, options)
        return
    deps = asked[probe.dependents[asked]]
    missing = max_missing(probe.sizes[deps], options)
    partial = deps[missing > 0]
    exact = deps[missing == 0]
    find_pairs = _containing_by_signature if payload["proposer"] == "signatures" else _containing_by_index
    for pairs in find_pairs(lookups, other, exact):
        yield probe, other, _kept(pairs, probe, other, options)
    for pairs in _nearly_containing(lookups, other, partial, missing[missing > 0]):
        yield probe, other, _kept(pairs, probe, other, options)


def max_missing(sizes: I32, options: LakeOptions) -> I32:
    """How many of its values a dependent column may lack: `int(e * n)`, never all; none for small columns."""
    allowed = np.minimum(options.max_error * sizes.astype(np.float64) + 1e-9, sizes - 1.0).astype(np.int32)
    return np.where(sizes >= options.min_values, allowed, 0).astype(np.int32)


def _kept(pairs: Pairs, deps: Side, refs: Side, options: LakeOptions) -> Pairs:
    """Without the pair of a column with itself, and without those that cover too little."""
    dep, ref, shared = pairs
    keep: Bool = np.ones(len(dep), np.bool_)
    if deps.same_part(refs):
        keep &= dep != ref
    if "coverage" in options.filters:
        keep &= shared >= options.tau * refs.sizes[ref]
    return (dep, ref, shared) if keep.all() else (dep[keep], ref[keep], shared[keep])


# -- proposers ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lookup:
    """Where the values of some columns are in the index of a part."""

    offsets: I64
    starts: I64
    lengths: I32
    slots: I32

    def only(self, positions: NDArray[Any]) -> _Lookup:
        """Of some of the columns, by their position."""
        if len(positions) == len(self.offsets) - 1:
            return self
        sizes = np.diff(self.offsets)[positions]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        at = np.arange(ends[-1]) + np.repeat(self.offsets[positions] - ends[:-1], sizes)
        return _Lookup(ends, self.starts[at], self.lengths[at], self.slots[at])


class Lookups:
    """Where the values of some columns of a part are in the indexes of others.

    What is described is looked up whole, once, and counted and matched by the same look-ups.
    """

    def __init__(self, probe: Side, low: int) -> None:
        self.probe, self.low = probe, low
        self._whole: dict[int, _Lookup] = {}

    def whole(self, other: Side, columns: NDArray[Any]) -> _Lookup:
        """Of all columns from `low` on; remembered."""
        found = self._whole[other.ref.first_column] = self.of(other, columns)
        return found

    def of(self, other: Side, columns: NDArray[Any]) -> _Lookup:
        known = self._whole.get(other.ref.first_column)
        if known is not None:
            return known.only(columns - self.low)
        offsets, values, checks = self.probe.values_of(columns)
        starts, lengths = find(other.array("keys"), other.array("key_checks"), values, checks)
        return _Lookup(offsets, starts, lengths, other.slots(starts, lengths))


def _containing_by_index(lookups: Lookups, other: Side, deps: NDArray[Any]) -> Iterator[Pairs]:
    probe, found = lookups.probe, lookups.of(other, deps)
    allowed = bit_words(other.references)
    done = 0
    while done < len(deps):
        dep, ref, n = containing(
            found.offsets[done:],
            found.starts,
            found.lengths,
            found.slots,
            other.array("postings"),
            other.maps,
            allowed,
            CHUNK,
        )
        numbers = deps[done:][dep].astype(np.int32)
        yield numbers, ref, probe.sizes[numbers]
        done += n


def _nearly_containing(lookups: Lookups, other: Side, deps: NDArray[Any], missing: I32) -> Iterator[Pairs]:
    found = lookups.of(other, deps)
    allowed = bit_words(other.references)
    done = 0
    while done < len(deps):
        dep, ref, shared, n = nearly_containing(
            found.offsets[done:],
            found.starts,
            found.lengths,
            found.slots,
            other.array("postings"),
            other.maps,
            allowed,
            missing[done:],
            CHUNK,
        )
        yield deps[done:][dep].astype(np.int32), ref, shared
        done += n


def _signatures(side: Side, columns: NDArray[Any]) -> U64:
    """The signatures of columns that are matched."""
    rows: U64 = side.array("signatures")[np.searchsorted(side.array("active"), columns)]
    return rows


def _containing_by_signature(lookups: Lookups, other: Side, deps: NDArray[Any]) -> Iterator[Pairs]:
    probe = lookups.probe
    signatures = _signatures(probe, deps)
    active = other.array("active")
    allowed = _matrix_words(other, other.references[active])
    done = 0
    while done < len(deps):
        dep, row, n = dep2refs(other.array("matrix"), signatures[done:], allowed, CHUNK)
        yield _valid(deps[done:][dep].astype(np.int32), active[row], probe, other)
        done += n


def _contained_by_signature(probe: Side, other: Side, refs: NDArray[Any]) -> Iterator[Pairs]:
    signatures = _signatures(probe, refs)
    active = other.array("active")
    allowed = _matrix_words(other, other.dependents[active])
    done = 0
    while done < len(refs):
        ref, row, n = ref2deps(other.array("matrix"), signatures[done:], allowed, CHUNK)
        dep, ref, shared = _valid(active[row], refs[done:][ref].astype(np.int32), other, probe)
        order = np.lexsort((ref, dep))
        yield dep[order], ref[order], shared[order]
        done += n


def _matrix_words(side: Side, marked: Bool) -> U64:
    """Marks of active columns, as long as the rows of the matrix."""
    n_blocks, _, words = side.array("matrix").shape
    padded = np.zeros(n_blocks * words * 64, np.bool_)
    padded[: len(marked)] = marked
    return bit_words(padded)


def _valid(dep: I32, ref: I32, deps: Side, refs: Side) -> Pairs:
    """Of candidates those that hold on the exact value sets."""
    sets = [side.array(name) for side in (deps, refs) for name in ("offsets", "values", "checks")]
    holds = validated(dep, ref, *sets)
    dep, ref = dep[holds], ref[holds]
    return dep, ref, deps.sizes[dep]


# -- what else is known of columns -------------------------------------------------------------


def _describe(lookups: Lookups, against: Sequence[Side], columns: NDArray[Any], payload: Payload) -> None:
    """Write the pivots and the rarity of new columns. Frequencies are those in the whole lake."""
    root, probe = Path(payload["root"]), lookups.probe
    offsets, values, _ = probe.values_of(columns)
    totals = np.zeros(len(values), np.int64)
    for other in against:
        totals += lookups.whole(other, columns).lengths
    lengths = np.minimum(totals, 2**31 - 1).astype(np.int32)
    n_columns = max(2, sum(other.ref.n_columns for other in against))
    pivots, shares = rarity(offsets, np.zeros(len(values), np.int64), lengths, values, n_columns)
    for name, array in (("pivots", pivots), ("rarity", shares)):
        filled(root, probe.ref.arrays[name].name)[payload["low"] : payload["high"]] = array


def _touching(probe: Side, other: Side, columns: NDArray[Any], options: LakeOptions) -> NDArray[Any]:
    """The columns that one of `other` may contain: it has their pivot, or they may lack some value."""
    pivots = probe.array("pivots")[columns]
    keys = other.array("keys")
    there = np.zeros(len(columns), np.bool_)
    if len(keys):
        at = np.minimum(np.searchsorted(keys, pivots), len(keys) - 1)
        there = keys[at] == pivots
    if options.max_error:
        there |= max_missing(probe.sizes[columns], options) > 0
    return columns[there]


def count_removed(lookups: Lookups, other: Side, deps: NDArray[Any], live: Bool) -> I64:
    """How many exact inclusions of these columns in live columns each filter keeps out; first, none does."""
    probe, found = lookups.probe, lookups.of(other, deps)
    own = deps.astype(np.int64) if probe.same_part(other) else np.full(len(deps), -1, np.int64)
    counts: I64 = removed(
        found.offsets,
        found.starts,
        found.lengths,
        found.slots,
        other.array("postings"),
        other.maps,
        probe.array("flags")[deps],
        own,
        other.array("flags"),
        other.sizes,
        bit_words(live),
        probe.options.tau,
        probe.options.filter_bits,
    )
    return counts


# -- dropped tables ----------------------------------------------------------------------------


def count_dropped(payload: Payload) -> bytes:
    """What the filters keep out that concerns tables about to be dropped (`gone`, numbers of tables).

    Of columns `low` to `high` of `probe`: all inclusions if their table goes, else those in columns that go.
    """
    probe, gone = opened(payload, payload["probe"]), np.array(payload["gone"], np.int32)
    columns = np.arange(payload["low"], payload["high"])
    columns = columns[probe.alive[columns]]
    goes = np.isin(probe.tables[columns], gone)
    counts = np.zeros(len(FILTERS) + 1, np.int64)
    lookups = Lookups(probe, payload["low"])
    for part in payload["against"]:
        other = opened(payload, part)
        going: Bool = other.alive & np.isin(other.tables, gone)
        counts += count_removed(lookups, other, columns[goes], other.alive)
        if going.any():
            values = np.unique(other.values_of(np.flatnonzero(going))[1])
            stays = columns[~goes]
            pivots = probe.array("pivots")[stays]
            at = np.minimum(np.searchsorted(values, pivots), max(0, len(values) - 1))
            there = values[at] == pivots if len(values) else np.zeros(len(stays), np.bool_)
            counts += count_removed(lookups, other, stays[there], going)
    return json.dumps(counts.tolist()).encode()


def gather_pairs(payload: Payload) -> bytes:
    """One file of many small ones, `inds` or `links`, without what concerns dropped tables."""
    root, what = Path(payload["root"]), payload["what"]
    schema = INDS_SCHEMA if what == "inds" else LINKS_SCHEMA
    parts = [opened(payload, part) for part in payload["parts"]]
    # Of each column, or of each table, whether it is alive; all are numbered from 0 through the parts.
    alive = np.concatenate([side.alive for side in parts])
    if what == "links":
        gone = parts[0].dropped
        alive = np.ones(payload["n_tables"], np.bool_)
        alive[gone] = False
    name = unique_name(FOLDER, what, ".parquet")
    files = [FileRef.from_dict(f) for f in payload["files"]]
    with foreign_write(root, name) as path, _pairs_writer(path, schema) as writer:
        for batch in parquet_batches(root, files, schema.names):
            ends = (np.asarray(batch.column(i)) for i in (0, 1))
            live = np.logical_and(*(alive[end] for end in ends))
            writer.write_batch(batch.filter(pa.array(live)))
    return json.dumps(seal_file(root, name).to_dict()).encode()


def link_tables(payload: Payload) -> bytes:
    """Links between live tables, from a file of inclusions; how many inclusions of live tables it has."""
    root = Path(payload["root"])
    parts = [opened(payload, part) for part in payload["parts"]]
    firsts = np.array([side.ref.first_column for side in parts])
    n_inds = 0
    with _Output(root, payload["n_tables"]) as output:
        file = FileRef.from_dict(payload["inds"])
        for batch in parquet_batches(root, [file], INDS_SCHEMA.names):
            dep, ref, shared = (np.asarray(column) for column in batch.columns)
            owner = np.searchsorted(firsts, dep, side="right") * len(firsts)
            owner += np.searchsorted(firsts, ref, side="right") - len(firsts) - 1
            for both in np.unique(owner).tolist():
                deps, refs = parts[both // len(firsts)], parts[both % len(firsts)]
                at = np.flatnonzero(owner == both)
                a, b = dep[at] - deps.ref.first_column, ref[at] - refs.ref.first_column
                live = deps.alive[a] & refs.alive[b]
                n_inds += int(np.count_nonzero(live))
                pairs = a[live].astype(np.int32), b[live].astype(np.int32), shared[at][live]
                output.link(pairs, deps, refs)
        _, links = output.sealed()
    return json.dumps(Found(n_inds, (), None, links).to_dict()).encode()
