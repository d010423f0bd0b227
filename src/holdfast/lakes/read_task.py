"""Reading a lake: what one task does with some files of small tables.

A task reads its unit table by table and writes a *block*: the flat arrays of its columns (to staging; the
index job puts the blocks of a part together) and two Parquet files that stay, of its tables and columns.
Texts are hashed and sorted for the whole block at once; a table costs a few Python calls for each column.
Memory: one block. The plan of the units bounds its size, and so does `BLOCK_BYTES`: what an archive unpacks
to is known only when it is read, and then comes in several blocks. A single table is held whole.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.core.rows.codes import text_buffers
from holdfast.core.rows.kernels.encode import bytes_codes
from holdfast.core.rows.kernels.siphash import siphashes
from holdfast.core.store.files import FileRef, new_file, read_file, unique_name
from holdfast.core.store.format import Key, text_key
from holdfast.core.store.root import Root, root_of
from holdfast.lakes.answers import BAD_LISTED
from holdfast.lakes.files import BadFile, LakeReadOptions, RawTable, Unit, read_unit
from holdfast.lakes.state import (
    COLUMNS_SCHEMA,
    FOLDER,
    I64,
    INTEGER_COLUMN,
    NULL_COLUMN,
    TABLES_SCHEMA,
    TEXT_LENGTH,
    U64,
    UNIQUE_COLUMN,
    LakeOptions,
    write_array,
)

Payload = dict[str, Any]

ROWS_SHOWN = 20
# Texts of a block from which on another one is begun, each with what Python adds to it.
BLOCK_BYTES = 64 << 20
TEXT_BYTES, TABLE_BYTES = 50, 1_000
# Entries are exchanged by the top bits of their hash.
BUCKETS = 256
# A page of the explorer reads the values of a few columns: small groups keep that small.
_ROWS_PER_GROUP = 2_000

_INTEGER = re.compile(r"[+-]?[0-9]+").fullmatch


@dataclass(slots=True)
class _Block:
    """The tables of a unit, as they are read."""

    nulls: frozenset[str]
    plain: bool  # texts are taken as they are
    options: LakeOptions
    n_bytes: int = 0
    texts: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    tables: dict[str, list[Any]] = field(default_factory=lambda: {n: [] for n in TABLES_SCHEMA.names})
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {n: [] for n in COLUMNS_SCHEMA.names if n != "texts"}
    )

    def add(self, table: RawTable) -> None:
        number = len(self.tables["name"])
        self.n_bytes += TABLE_BYTES
        columns = table.columns
        if not self.plain:
            columns = [self._normalised(column) for column in columns]
        shown = [column[:ROWS_SHOWN] for column in columns]
        for name, value in (
            ("name", table.name),
            ("source", table.source),
            ("n_rows", table.n_rows),
            ("n_columns", len(columns)),
            ("rows", [[cell and cell[:TEXT_LENGTH] for cell in row] for row in zip(*shown, strict=True)]),
        ):
            self.tables[name].append(value)
        for position, (name, column) in enumerate(zip(table.header, columns, strict=True)):
            self._add_column(number, position, name, column, table.n_rows)

    def _add_column(
        self, table: int, position: int, name: str, column: list[str | None], n_rows: int
    ) -> None:
        distinct: dict[Any, None] = dict.fromkeys(column)
        n_missing = 0
        if None in distinct:
            del distinct[None]
            n_missing = column.count(None)
        null_like = self.nulls.intersection(distinct)
        flags = UNIQUE_COLUMN if len(distinct) == n_rows else 0
        if len(null_like) == len(distinct):
            flags |= NULL_COLUMN if distinct else 0
        elif all(_INTEGER(text) for text in distinct if text not in null_like):
            flags |= INTEGER_COLUMN
        self.n_bytes += sum(map(len, distinct)) + TEXT_BYTES * len(distinct)
        self.texts += distinct
        self.sizes.append(len(distinct))
        self.flags.append(flags)
        facts = self.columns
        facts["table"].append(table)
        facts["position"].append(position)
        facts["name"].append(name)
        facts["n_rows"].append(n_rows)
        facts["n_values"].append(len(distinct))
        facts["n_missing"].append(n_missing)
        facts["n_null_like"].append(sum(map(column.count, null_like)))

    def _normalised(self, column: list[str | None]) -> list[str | None]:
        return [cell if cell is None else self.options.normalised(cell) for cell in column]


def read_lake_unit(payload: Payload) -> bytes:
    """Read a unit into blocks, mostly one; the result says where their files lie, how large they are and what
    was bad."""
    root, options = root_of(payload["root"]), LakeOptions.from_dict(payload["options"])
    block = _empty_block(options)
    blocks: list[dict[str, Any]] = []
    bad: list[tuple[str, str]] = []
    n_bad = 0
    unit = Unit.from_dict(json.loads(read_file(root, FileRef.from_dict(payload["unit"]))))
    taken = _digests(root, FileRef.from_dict(payload["taken"])) if payload["taken"] else frozenset()
    n_known = 0
    for item in read_unit(unit, LakeReadOptions.from_dict(payload["reading"])):
        if isinstance(item, BadFile):
            n_bad += 1
            if len(bad) < BAD_LISTED:
                bad.append((item.source, item.reason))
        elif taken and name_digest(item.name) in taken:
            n_known += 1
        else:
            block.add(item)
            if block.n_bytes > BLOCK_BYTES:
                blocks.append(_written(block, root, payload["staging"], options))
                block = _empty_block(options)
    if block.n_bytes:
        blocks.append(_written(block, root, payload["staging"], options))
    return json.dumps({"n_bad": n_bad, "bad": bad, "n_known": n_known, "blocks": blocks}).encode()


def _empty_block(options: LakeOptions) -> _Block:
    return _Block(options.null_like(), not options.normalise, options)


def name_digest(name: str) -> bytes:
    """A table's name in 16 bytes: a lake may have a million of them. Nobody can make two names meet in it."""
    return hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@lru_cache(maxsize=1)
def _digests(root: Root, ref: FileRef) -> frozenset[bytes]:
    whole = read_file(root, ref)
    return frozenset(whole[i : i + 16] for i in range(0, len(whole), 16))


def value_sets(table: RawTable, root: Root, options: LakeOptions) -> tuple[I64, U64, U64]:
    """(offsets, values, checks) of the columns of a table, as those of a lake have them."""
    block = _empty_block(options)
    block.add(table)
    offsets, values, checks, _ = _value_sets(block, root)
    return offsets, values, checks


def _value_sets(block: _Block, root: Root) -> tuple[I64, U64, U64, pa.Array]:
    """(offsets, values, checks, texts) of the columns of a block; values of a column are sorted by hash."""
    sizes = np.array(block.sizes, dtype=np.int64)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    texts = pa.array(block.texts, pa.large_string())
    block.texts = []
    values, checks = _hashes(texts, text_key(root))
    column_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    order = np.lexsort((checks, values, column_of))
    return offsets, values[order], checks[order], texts.take(pa.array(order))


def _written(block: _Block, root: Root, staging: str, options: LakeOptions) -> dict[str, Any]:
    offsets, values, checks, texts = _value_sets(block, root)
    sizes = np.diff(offsets)
    flags = np.array(block.flags, dtype=np.uint8)
    active = np.flatnonzero(matched_columns(sizes, flags, options)).astype(np.int32)
    arrays: dict[str, NDArray[Any]] = {
        "offsets": offsets,
        "values": values,
        "checks": checks,
        "flags": flags,
        "table_of": np.array(block.columns["table"], dtype=np.int32),
        "n_rows": np.minimum(np.array(block.columns["n_rows"], dtype=np.int64), 2**31 - 1).astype(np.int32),
        "active": active,
    }
    tables = pa.table(block.tables, schema=TABLES_SCHEMA)
    shown = pc.utf8_slice_codeunits(texts, 0, TEXT_LENGTH)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), shown)
    columns = pa.table({**block.columns, "texts": lists})
    return {
        "n_tables": tables.num_rows,
        "n_columns": len(sizes),
        "n_entries": int(offsets[-1]),
        "n_active": len(active),
        "buckets": np.bincount((values >> np.uint64(56)).astype(np.int64), minlength=BUCKETS).tolist(),
        "arrays": {name: write_array(root, staging, "block", a).to_dict() for name, a in arrays.items()},
        "tables": _parquet(root, "tables", tables, TABLES_SCHEMA).to_dict(),
        "columns": _parquet(root, "columns", columns, COLUMNS_SCHEMA).to_dict(),
    }


def matched_columns(sizes: NDArray[Any], flags: NDArray[np.uint8], options: LakeOptions) -> NDArray[np.bool_]:
    """Which columns are matched at all: those with a value that neither of the first two filters takes."""
    hidden = (NULL_COLUMN if "null" in options.filters else 0) | (
        INTEGER_COLUMN if "integer" in options.filters else 0
    )
    matched: NDArray[np.bool_] = (sizes > 0) & ((flags & hidden) == 0)
    return matched


def _hashes(texts: pa.Array, key: Key | None) -> tuple[U64, U64]:
    """The two words by which each text is known."""
    offsets, data = text_buffers(texts)
    if key is None:
        return bytes_codes(offsets, data, 0), bytes_codes(offsets, data, 1)
    return siphashes(offsets, data, key)


def _parquet(root: Root, stem: str, rows: pa.Table, schema: pa.Schema) -> FileRef:
    name = unique_name(FOLDER, stem, ".parquet")
    with new_file(root, name) as file:
        pq.write_table(
            rows.cast(schema), file, compression="zstd", compression_level=1, row_group_size=_ROWS_PER_GROUP
        )
    return file.ref
