"""Putting the blocks of a lake together as one part: flat arrays, and the index by value.

A *block* is what a reading task wrote, or an older part that is merged. Each task of one job writes new files
of its own:

- `concatenate`: one array of all blocks, behind each other;
- `index`: gather the entries of a range of hashes from all blocks, sort them by value, and write that range
  of the inverted index (the exchange by value goes through files where tasks share a disk, else by Spark's
  shuffle, a job of its own; see docs/decisions/0008).

Where there are several ranges, each is a *piece* in staging, and a second job joins the pieces of an array:
one task for each array, which copies them into one file.

Cost: each entry is sorted once, and copied once or twice. Memory of a task: the entries of its range, or one
array of one block.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.engine import Engine
from holdfast.core.engine.job_progress import Progress
from holdfast.core.store.bundle import pack, unpack
from holdfast.core.store.files import FileRef, check_file, read_file, unique_name, write_file
from holdfast.core.store.root import Root, root_of
from holdfast.core.words.codec import Coded
from holdfast.lakes.kernels.value_index import long_runs, sort_entries
from holdfast.lakes.read_task import BUCKETS
from holdfast.lakes.state import FOLDER, LakeOptions, PartRef, join_arrays, open_array, write_array

Payload = dict[str, Any]
U64 = NDArray[np.uint64]
Shapes = Mapping[str, tuple[tuple[int, ...], type[np.generic]]]

# Entries of one index task, and what putting one together takes: 160 to 260 ns, of 0.25 M to 1.5 M entries.
ENTRIES_PER_TASK = 2_000_000
NS_ENTRY = 200
# What a byte of a piece takes to be read, hashed and written.
NS_BYTE = 1
# Bitmaps of the most frequent values: at most so many bytes for each process that matches.
BITMAP_BYTES = 64 << 20

INDEX = ("keys", "key_checks", "postings")
# What the matching job works out of each column.
DESCRIBED: Mapping[str, type[np.generic]] = {"pivots": np.uint64, "rarity": np.float32}
# The arrays of numbers that count on from block to block, and what they count.
_NUMBERS = {"offsets": "n_entries", "table_of": "n_tables", "active": "n_columns"}


@dataclass(frozen=True, slots=True)
class Block(Coded):
    """The arrays of some columns, in staging or in an older part."""

    n_tables: int
    n_columns: int
    n_entries: int
    n_active: int
    arrays: Mapping[str, FileRef]
    buckets: tuple[int, ...] = ()  # entries by the top bits of their hash

    @classmethod
    def of_part(cls, root: Root, ref: PartRef) -> Block:
        bounds = np.arange(BUCKETS, dtype=np.uint64) << np.uint64(56)
        starts = np.searchsorted(open_array(root, ref.arrays["keys"]), bounds)
        buckets = np.diff(np.append(starts, ref.n_entries))
        counts = ref.n_tables, ref.n_columns, ref.n_entries, ref.n_active
        return cls(*counts, ref.arrays, tuple(buckets.tolist()))


def read_again(payload: Payload) -> bytes:
    """A part as a block, once all its files were read again: what is wrong with them would be right in the
    part that it is put into."""
    root, part = root_of(payload["root"]), PartRef.from_dict(payload["part"])
    for ref in part.arrays.values():
        check_file(root, ref, deep=True, fresh=True)
    return json.dumps(Block.of_part(root, part).to_dict()).encode()


def put_together(
    engine: Engine,
    root: Root,
    staging: str,
    blocks: Sequence[Block],
    first_table: int,
    first_column: int,
    options: LakeOptions,
    files: tuple[tuple[FileRef, ...], tuple[FileRef, ...]],
    progress: Progress | None,
) -> PartRef:
    """One part of all blocks, in their order. One Spark job to three.

    Without `pivots` and `rarity`, which the matching job works out, unless all blocks have them.
    """
    n_columns, n_entries = sum(b.n_columns for b in blocks), sum(b.n_entries for b in blocks)
    n_active = sum(b.n_active for b in blocks)
    shapes: dict[str, tuple[tuple[int, ...], type[np.generic]]] = {
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
    }
    if all(name in b.arrays for b in blocks for name in DESCRIBED):
        shapes |= _described_shapes(n_columns)
    # In a file: there may be hundreds of blocks, and as many payloads.
    document = json.dumps([replace(b, buckets=()).to_dict() for b in blocks]).encode()
    listed = write_file(root, unique_name(staging, "blocks", ".json"), [document])
    shared = {
        "root": str(root),
        "blocks": listed.to_dict(),
        "options": options.to_dict(),
        "long": long_posting(n_columns),
    }
    regions = _regions(blocks, n_entries)
    concatenated = [name for name in shapes if name not in INDEX]
    payloads: list[Payload] = [
        {**shared, "do": "concatenate", "array": name, **_shape(name, shapes)} for name in concatenated
    ]
    indexing = [{**shared, "do": "index", "folder": piece_folder(regions, staging), **r} for r in regions]
    where = engine.choose(n_entries * NS_ENTRY, parallel=True)
    indexed: list[bytes] = []
    if where == "spark" and engine.shuffles:
        bounds = [r["low"] for r in regions]
        sending = [{**shared, "number": i, "bounds": bounds} for i in range(len(blocks))]
        indexed = engine.exchange(send_entries, sending, index_entries, indexing, progress)
    else:
        payloads += indexing
    results = engine.run(put_piece, payloads, where=where, progress=progress, parallel=True) + indexed
    pieces: dict[str, list[FileRef]] = {name: [] for name in shapes}
    runs: list[list[int]] = []
    for written in map(json.loads, results):
        runs += written["runs"]
        for name, ref in written["pieces"].items():
            pieces[name].append(FileRef.from_dict(ref))
    arrays = join_pieces(engine, root, pieces, shapes, progress)
    frequent = np.array(runs, dtype=np.int64).reshape(-1, 2)
    most = BITMAP_BYTES // max(8, n_columns // 8)
    if len(frequent) > most:
        frequent = frequent[np.sort(np.argsort(-frequent[:, 1], kind="stable")[:most])]
    frequent = frequent[np.argsort(frequent[:, 0])]
    arrays["frequent"] = write_array(root, FOLDER, "frequent", frequent)
    n_tables = sum(b.n_tables for b in blocks)
    return PartRef(
        first_table, n_tables, first_column, n_columns, n_entries, n_active, arrays, files[0], files[1]
    )


def described(
    engine: Engine,
    root: Root,
    part: PartRef,
    pieces: Sequence[Mapping[str, FileRef]],
    progress: Progress | None,
) -> PartRef:
    """A part with what matching tasks have found out of its columns. One Spark job at most."""
    by_name = {name: [piece[name] for piece in pieces] for name in DESCRIBED}
    arrays = join_pieces(engine, root, by_name, _described_shapes(part.n_columns), progress)
    return replace(part, arrays={**part.arrays, **arrays})


def _described_shapes(n_columns: int) -> Shapes:
    return {name: ((n_columns,), dtype) for name, dtype in DESCRIBED.items()}


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


# -- tasks that write pieces -------------------------------------------------------------------


def put_piece(payload: Payload) -> bytes:
    """One task of the first job: its files by the names of the arrays, and the values with long postings."""
    root = root_of(payload["root"])
    blocks = _listed(root, FileRef.from_dict(payload["blocks"]))
    return _answer({"concatenate": _concatenate, "index": _index}[payload["do"]](root, blocks, payload))


@lru_cache(maxsize=2)
def _listed(root: Root, ref: FileRef) -> list[Block]:
    return [Block.from_dict(b) for b in json.loads(read_file(root, ref))]


Pieces = tuple[dict[str, FileRef], list[list[int]]]
Entries = tuple[U64, U64, NDArray[np.int32]]


def _answer(pieces: Pieces) -> bytes:
    return json.dumps(
        {"pieces": {name: ref.to_dict() for name, ref in pieces[0].items()}, "runs": pieces[1]}
    ).encode()


def _concatenate(root: Root, blocks: Sequence[Block], payload: Payload) -> Pieces:
    """One array of all blocks; numbers count on."""
    name = payload["array"]

    def block_arrays() -> Iterator[NDArray[Any]]:
        base = 0
        for number, block in enumerate(blocks):
            array = open_array(root, block.arrays[name])
            if name == "offsets" and number:
                array = array[1:]  # the end of the block before
            if name in _NUMBERS:
                array = array + array.dtype.type(base)
                base += getattr(block, _NUMBERS[name])
            yield array

    return {name: _joined(root, payload, block_arrays())}, []


def _index(root: Root, blocks: Sequence[Block], payload: Payload) -> Pieces:
    """The entries of a range of hashes, of all blocks."""
    low, high = np.uint64(payload["low"]), np.uint64(payload["high"] - 1)
    parts = []
    for number in range(len(blocks)):
        top = open_array(root, blocks[number].arrays["values"]) >> np.uint64(56)
        parts.append(_entries(root, blocks, number, np.flatnonzero((top >= low) & (top <= high))))
    return _sorted(root, parts, payload)


def _entries(root: Root, blocks: Sequence[Block], number: int, at: NDArray[np.int64]) -> Entries:
    """(values, checks, columns) of some entries of a block; columns count on from block to block."""
    arrays, base = blocks[number].arrays, sum(b.n_columns for b in blocks[:number])
    columns = np.searchsorted(open_array(root, arrays["offsets"]), at, side="right") - 1
    values, checks = open_array(root, arrays["values"]), open_array(root, arrays["checks"])
    return values[at], checks[at], (columns + base).astype(np.int32)


def send_entries(payload: Payload) -> Iterator[tuple[int, bytes]]:
    """The entries of one block, to the ranges of hashes that they fall into: `_index` by Spark's shuffle."""
    root = root_of(payload["root"])
    blocks, number = _listed(root, FileRef.from_dict(payload["blocks"])), payload["number"]
    top = (open_array(root, blocks[number].arrays["values"]) >> np.uint64(56)).astype(np.int64)
    ranges = np.searchsorted(np.array(payload["bounds"]), top, side="right") - 1
    for i in np.unique(ranges).tolist():
        values, checks, columns = _entries(root, blocks, number, np.flatnonzero(ranges == i))
        yield i, pack({"values": values, "checks": checks, "columns": columns}, {"block": str(number)})


def index_entries(sent: Iterator[bytes], payload: Payload) -> bytes:
    """The range of hashes that has come together."""
    bundles = sorted(map(unpack, sent), key=lambda bundle: int(bundle.meta["block"]))
    parts = [(b.array("values"), b.array("checks"), b.array("columns")) for b in bundles]
    return _answer(_sorted(root_of(payload["root"]), parts, payload))


def _sorted(root: Root, parts: Sequence[Entries], payload: Payload) -> Pieces:
    """A range of the index, written; and the values with long postings."""
    nothing = np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, np.int32)
    parts = [nothing, *parts]
    keys, checks, postings = sort_entries(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    sorted_arrays: tuple[NDArray[Any], ...] = (keys, checks, postings)
    pieces = {
        name: write_array(root, payload["folder"], _stem(name), array)
        for name, array in zip(INDEX, sorted_arrays, strict=True)
    }
    starts, lengths = long_runs(keys, checks, payload["long"])
    return pieces, [[int(s) + payload["start"], int(n)] for s, n in zip(starts, lengths, strict=True)]


# -- pieces ------------------------------------------------------------------------------------


def piece_folder(tasks: Sequence[Any], staging: str) -> str:
    """Where tasks write the pieces of an array: what one task writes is the array, and stays."""
    return FOLDER if len(tasks) == 1 else staging


def join_pieces(
    engine: Engine,
    root: Root,
    pieces: Mapping[str, Sequence[FileRef]],
    shapes: Shapes,
    progress: Progress | None,
) -> dict[str, FileRef]:
    """Each array as one file: its only piece, or all of them in a new file. One Spark job at most."""
    arrays = {name: refs[0] for name, refs in pieces.items() if len(refs) == 1}
    names = [name for name in pieces if name not in arrays]
    payloads = [
        {
            "root": str(root),
            "array": name,
            **_shape(name, shapes),
            "pieces": [ref.to_dict() for ref in pieces[name]],
        }
        for name in names
    ]
    n_bytes = sum(ref.length for name in names for ref in pieces[name])
    where = engine.choose(n_bytes * NS_BYTE, parallel=True)
    results = engine.run(join_array, payloads, where=where, progress=progress, parallel=True)
    arrays |= {name: FileRef.from_dict(json.loads(r)) for name, r in zip(names, results, strict=True)}
    return arrays


def join_array(payload: Payload) -> bytes:
    """The task that copies the pieces of one array into one file."""
    root = root_of(payload["root"])
    pieces = (open_array(root, FileRef.from_dict(ref)) for ref in payload["pieces"])
    return json.dumps(_joined(root, payload, pieces).to_dict()).encode()


def _shape(name: str, shapes: Shapes) -> Payload:
    shape, dtype = shapes[name]
    return {"shape": list(shape), "dtype": np.dtype(dtype).str}


def _joined(root: Root, payload: Payload, pieces: Iterable[NDArray[Any]]) -> FileRef:
    shape, dtype = tuple(payload["shape"]), payload["dtype"]
    return join_arrays(root, FOLDER, _stem(payload["array"]), shape, dtype, pieces)


def _stem(name: str) -> str:
    return name.replace("_", "")
