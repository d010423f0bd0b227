"""Putting the blocks of a lake together as one part: flat arrays, the index by value, the matrix.

A *block* is what a reading task wrote, or an older part that is merged. Tasks of one job write disjoint
regions of the part's arrays, whose sizes are known beforehand:

- `assemble`: copy one block's arrays to their place;
- `index`: gather the entries of a range of hashes from all blocks, sort them by value, and write that range
  of the inverted index (the exchange by value goes through files, see docs/decisions/0008);
- `transpose`: some blocks of columns of the signature matrix.

Cost: each entry is copied once and sorted once. Memory of a task: the entries of its range.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.signatures import BLOCK, transposed
from holdfast.kernels.value_index import long_runs, sort_entries
from holdfast.pipeline.engine import Engine, Progress
from holdfast.pipeline.lake_read import BUCKETS
from holdfast.storage.files import FileRef, read_file, seal_file, unique_name, write_file
from holdfast.storage.lake import FOLDER, LakeOptions, PartRef, filled, new_array, open_array, write_array

Payload = dict[str, Any]
U64 = NDArray[np.uint64]

# Entries of one index task, and what putting one together takes: 160 to 260 ns, of 0.25 M to 1.5 M entries.
ENTRIES_PER_TASK = 2_000_000
NS_ENTRY = 200
# Blocks of 4,096 columns that one task transposes.
_MATRIX_BLOCKS = 16
# Bitmaps of the most frequent values: at most so many bytes for each process that matches.
BITMAP_BYTES = 64 << 20

_COPIED = ("values", "checks", "flags", "n_rows", "signatures")


@dataclass(frozen=True, slots=True)
class Block:
    """The arrays of some columns, in staging or in an older part."""

    n_tables: int
    n_columns: int
    n_entries: int
    n_active: int
    buckets: tuple[int, ...]  # entries by the top bits of their hash
    arrays: Mapping[str, FileRef]

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_tables": self.n_tables,
            "n_columns": self.n_columns,
            "n_entries": self.n_entries,
            "n_active": self.n_active,
            "arrays": {name: ref.to_dict() for name, ref in self.arrays.items()},
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Block:
        return cls(
            fields["n_tables"],
            fields["n_columns"],
            fields["n_entries"],
            fields["n_active"],
            tuple(fields.get("buckets", ())),
            {name: FileRef.from_dict(ref) for name, ref in fields["arrays"].items()},
        )

    @classmethod
    def of_part(cls, root: Path, ref: PartRef) -> Block:
        bounds = np.arange(BUCKETS, dtype=np.uint64) << np.uint64(56)
        starts = np.searchsorted(open_array(root, ref.arrays["keys"]), bounds)
        buckets = np.diff(np.append(starts, ref.n_entries))
        return cls(
            ref.n_tables, ref.n_columns, ref.n_entries, ref.n_active, tuple(buckets.tolist()), ref.arrays
        )


def put_together(
    engine: Engine,
    root: Path,
    staging: str,
    blocks: Sequence[Block],
    first_table: int,
    first_column: int,
    options: LakeOptions,
    files: tuple[tuple[FileRef, ...], tuple[FileRef, ...]],
    progress: Progress | None,
) -> PartRef:
    """One part of all blocks, in their order. One Spark job.

    Without `pivots` and `rarity`, which the matching job works out, unless all blocks have them.
    """
    n_columns, n_entries = sum(b.n_columns for b in blocks), sum(b.n_entries for b in blocks)
    n_active = sum(b.n_active for b in blocks)
    n_words = -(-options.n_bits // 64)
    n_matrix = -(-n_active // BLOCK)
    shapes: dict[str, tuple[tuple[int, ...], Any]] = {
        "offsets": ((n_columns + 1,), np.int64),
        "values": ((n_entries,), np.uint64),
        "checks": ((n_entries,), np.uint64),
        "flags": ((n_columns,), np.uint8),
        "table_of": ((n_columns,), np.int32),
        "n_rows": ((n_columns,), np.int32),
        "keys": ((n_entries,), np.uint64),
        "key_checks": ((n_entries,), np.uint64),
        "postings": ((n_entries,), np.int32),
        "active": ((n_active,), np.int32),
        "signatures": ((n_active, n_words), np.uint64),
        "matrix": ((n_matrix, options.n_bits, BLOCK // 64), np.uint64),
        "pivots": ((n_columns,), np.uint64),
        "rarity": ((n_columns,), np.float32),
    }
    names = {name: unique_name(FOLDER, name.replace("_", ""), ".npy") for name in shapes}
    for name, (shape, dtype) in shapes.items():
        new_array(root, names[name], shape, dtype)
    # In a file: there may be hundreds of blocks, and as many payloads.
    told = json.dumps([b.to_dict() for b in blocks]).encode()
    listed = write_file(root, unique_name(staging, "blocks", ".json"), [told])
    shared = {
        "root": str(root),
        "names": names,
        "blocks": listed.to_dict(),
        "options": options.to_dict(),
        "long": long_posting(n_columns),
    }
    payloads = [{**shared, "do": "assemble", "block": i} for i in range(len(blocks))]
    payloads += [{**shared, "do": "index", **region} for region in _regions(blocks, n_entries)]
    payloads += [
        {**shared, "do": "transpose", "first": i, "last": min(i + _MATRIX_BLOCKS, n_matrix)}
        for i in range(0, n_matrix, _MATRIX_BLOCKS)
    ]
    where = engine.choose_sooner(n_entries * NS_ENTRY / 1e9, parallel=True)
    results = engine.run(put_region, payloads, where=where, progress=progress, parallel=True)
    runs = [json.loads(r)["runs"] for r in results]
    frequent = np.array([run for found in runs for run in found], dtype=np.int64).reshape(-1, 2)
    most = BITMAP_BYTES // max(8, n_columns // 8)
    if len(frequent) > most:
        frequent = frequent[np.sort(np.argsort(-frequent[:, 1], kind="stable")[:most])]
    frequent = frequent[np.argsort(frequent[:, 0])]
    arrays = {name: seal_file(root, names[name]) for name in shapes}
    arrays["frequent"] = write_array(root, FOLDER, "frequent", frequent)
    n_tables = sum(b.n_tables for b in blocks)
    return PartRef(
        first_table, n_tables, first_column, n_columns, n_entries, n_active, arrays, files[0], files[1]
    )


def long_posting(n_columns: int) -> int:
    """From which length on the posting of a value is worth a bitmap.

    A bitmap answers whether a column has the value by one look. Of 500,000 columns, a 256th gave 87 bitmaps
    (5 MB) and the best times; with a 16th, counting what the filters keep out took 20 times as long.
    """
    return max(16, n_columns // 256)


def _regions(blocks: Sequence[Block], n_entries: int) -> list[dict[str, int]]:
    """Ranges of buckets with about equally many entries, and where their region starts."""
    counts = np.sum([b.buckets for b in blocks], axis=0, dtype=np.int64) if blocks else np.zeros(BUCKETS)
    ends = np.cumsum(counts)
    n_tasks = min(BUCKETS, max(1, -(-n_entries // ENTRIES_PER_TASK)))
    wanted = (np.arange(1, n_tasks) * n_entries) // n_tasks
    cuts = np.unique([0, *np.searchsorted(ends, wanted, side="right").tolist(), BUCKETS])
    starts = np.concatenate([[0], ends])
    return [
        {"low": int(a), "high": int(b), "start": int(starts[a]), "end": int(starts[b])}
        for a, b in itertools.pairwise(cuts.tolist())
    ]


def put_region(payload: Payload) -> bytes:
    """One task of the job: write a region of the part's arrays."""
    root = Path(payload["root"])
    blocks = _listed(root, FileRef.from_dict(payload["blocks"]))
    runs = {"assemble": _assemble, "index": _index, "transpose": _transpose}[payload["do"]](
        root, blocks, payload
    )
    return json.dumps({"runs": runs}).encode()


@lru_cache(maxsize=2)
def _listed(root: Path, ref: FileRef) -> list[Block]:
    return [Block.from_dict(b) for b in json.loads(read_file(root, ref))]


def _assemble(root: Path, blocks: Sequence[Block], payload: Payload) -> list[Any]:
    """Copy a block's arrays behind those of the blocks before it."""
    number, names = payload["block"], payload["names"]
    before, block = blocks[:number], blocks[number]
    table, column, entry, row = (
        sum(getattr(b, of) for b in before) for of in ("n_tables", "n_columns", "n_entries", "n_active")
    )
    starts = {"flags": column, "n_rows": column, "values": entry, "checks": entry, "signatures": row}
    kept = [name for name in ("pivots", "rarity") if name in block.arrays]
    for name in (*_COPIED, *kept):
        own = open_array(root, block.arrays[name])
        start = starts.get(name, column)
        filled(root, names[name])[start : start + len(own)] = own
    filled(root, names["offsets"])[column : column + block.n_columns + 1] = (
        open_array(root, block.arrays["offsets"]) + entry
    )
    for name, start, base in (("table_of", column, table), ("active", row, column)):
        own = open_array(root, block.arrays[name])
        filled(root, names[name])[start : start + len(own)] = own + np.int32(base)
    return []


def _index(root: Path, blocks: Sequence[Block], payload: Payload) -> list[Any]:
    """Sort the entries of a range of hashes; the result lists the values with long postings."""
    parts: list[tuple[U64, U64, NDArray[np.int32]]] = []
    base = 0
    low, high = np.uint64(payload["low"]), np.uint64(payload["high"] - 1)
    for block in blocks:
        values = open_array(root, block.arrays["values"])
        top = values >> np.uint64(56)
        at = np.flatnonzero((top >= low) & (top <= high))
        columns = np.searchsorted(open_array(root, block.arrays["offsets"]), at, side="right") - 1
        checks = open_array(root, block.arrays["checks"])
        parts.append((values[at], checks[at], (columns + base).astype(np.int32)))
        base += block.n_columns
    keys, checks, postings = sort_entries(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    region = slice(payload["start"], payload["end"])
    for name, array in (("keys", keys), ("key_checks", checks), ("postings", postings)):
        filled(root, payload["names"][name])[region] = array
    starts, lengths = long_runs(keys, checks, payload["long"])
    return [[int(s) + payload["start"], int(n)] for s, n in zip(starts, lengths, strict=True)]


def _transpose(root: Path, blocks: Sequence[Block], payload: Payload) -> list[Any]:
    """Some blocks of the matrix, from the signatures of the blocks that they come from."""
    options = LakeOptions.from_dict(payload["options"])
    first, last = payload["first"], payload["last"]
    taken, base = [], 0
    for block in blocks:
        a, b = max(first * BLOCK - base, 0), min(last * BLOCK - base, block.n_active)
        if a < b:
            taken.append(open_array(root, block.arrays["signatures"])[a:b])
        base += block.n_active
    matrix = transposed(np.concatenate(taken), options.n_bits)
    filled(root, payload["names"]["matrix"])[first:last] = matrix
    return []
