"""Segments: immutable blocks of encoded rows of one table.

Invariants:
- A segment file never changes. What changes is which segments are live, which of their rows are
  deleted (a delete vector, a roaring bitmap of positions, written anew with each change) and
  which columns have an index: all of it is named in the ledger's commit, nothing is found by
  listing a folder.
- A row id names one version of one row for ever. A fresh segment's rows are numbered
  `number << 32 | position`; a merged segment keeps its rows' ids, ascending.
- Every column has a sorted dictionary of 64-bit codes; rows hold local codes (1 + position in it,
  0 for NULL). Two values of one column and segment never share a code.
- `row_hashes` (sorted) and `row_order` find rows by content: by the row key if one is declared,
  else by all columns. Tables that only grow (an empty locator) go without.

A segment's bundle: `codes` int32[n_columns * n_rows], column after column; `dictionary.C` uint64;
`texts.C` large_binary for hashed columns; `row_hashes` uint64; `row_order` int32; `row_ids` int64
(merged segments only). An index's bundle: `offsets.C`, `positions.C` int32 per indexed column. A bundle of
order indexes: `A.B.0.node_a` and so on (`A.B.1` if B falls), the arrays of `kernels/order_index.OrderIndex`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.codes import (
    EncodedColumn,
    combined,
    decode,
    encode_column,
    texts_differ,
    texts_differ_at,
)
from holdfast.core.rows.deletes import read_deletes
from holdfast.core.rows.kernels import encode
from holdfast.core.rows.kernels.operators import GE, LE
from holdfast.core.rows.kernels.order_index import OrderIndex
from holdfast.core.rows.kernels.order_index import build as build_order
from holdfast.core.rows.kernels.postings import UNSOUND, listed
from holdfast.core.rows.table_state import IndexRef, OrderKey, OrdersRef, SegmentRef
from holdfast.core.store.arrow_types import arrow_schema
from holdfast.core.store.bundle import Bundle, open_bundle, write_bundle
from holdfast.core.store.files import FileRef, check_file, unique_name
from holdfast.core.store.format import Key, text_key
from holdfast.core.store.root import Root
from holdfast.core.words.schema import Schema
from holdfast.errors import DamagedFileError, HoldfastError

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

ROW_BITS = 32
ORDER_ARRAYS = ("node_a", "node_b", "chain_offsets", "node_offsets", "rows")
# Positions are 32-bit, and a code matrix is addressed by 32-bit positions per column.
MAX_ROWS = 1 << 24
# Translations of so many cells are kept for the next class that asks.
KEPT_CELLS = 1 << 14


class CodeCollisionError(HoldfastError):
    """Segments hold different texts under one code, so they cannot become one segment.

    The others can do without `apart`: the numbers of segments that differ from an earlier one.
    """

    def __init__(self, apart: frozenset[int]) -> None:
        super().__init__(f"the texts of segments {sorted(apart)} share codes with other texts")
        self.apart = apart


class Segment:
    """A segment: memory maps of its arrays. A large one is opened unread."""

    def __init__(self, root: Root, ref: SegmentRef, schema: Schema) -> None:
        self.root, self.ref, self.schema = root, ref, schema
        self._dictionaries: dict[int, U64] = {}
        self._texts: dict[int, pa.Array] = {}
        self._mapped: dict[int, tuple[FileRef, I32, I32]] = {}
        self._indexes: dict[int, tuple[I32, I32]] = {}  # those that lead nowhere out of the segment
        self._index_bundles: dict[FileRef, Bundle] = {}
        self._orders: dict[OrderKey, OrderIndex] = {}
        self._bundles: list[Bundle] = []  # that are open
        self._newest: tuple[Segment, bool, I32] | None = None  # what a small segment was translated to last
        self._expected = ref.n_rows

    @cached_property
    def _bundle(self) -> Bundle:
        """The file, opened when something of it is needed first: on a store it may be far away."""
        return self._opened(self.ref.file, "segment")

    def _opened(self, file: FileRef, what: str) -> Bundle:
        bundle = open_bundle(self.root, file, what, partly=True)
        bundle.expect(self._expected, self.ref.n_rows)
        self._bundles.append(bundle)
        return bundle

    @cached_property
    def codes(self) -> I32:
        """int32[n_columns, n_rows]"""
        codes, n_columns = self._bundle.array("codes"), len(self.schema)
        if len(codes) != n_columns * self.ref.n_rows:
            raise DamagedFileError(
                f"the segment {self.ref.file.name!r} holds {len(codes)} codes, not {n_columns} x "
                f"{self.ref.n_rows}. Restore it from a backup, or rebuild the table with 'holdfast track'."
            )
        return codes.reshape(n_columns, self.ref.n_rows)

    def expect(self, n: int) -> None:
        """So many rows will be looked up (`Bundle.expect`)."""
        self._expected = n
        for bundle in self._bundles:
            bundle.expect(n, self.ref.n_rows)

    def dictionary(self, column: int) -> U64:
        codes = self._dictionaries.get(column)
        if codes is None:
            codes = self._dictionaries[column] = self._bundle.array(f"dictionary.{column}")
        return codes

    def texts(self, column: int) -> pa.Array | None:
        if not self.schema.types[column].hashed:
            return None
        texts = self._texts.get(column)
        if texts is None:
            texts = self._texts[column] = self._bundle.arrow(f"texts.{column}")
        return texts

    @cached_property
    def key(self) -> Key | None:
        """By which the texts of the workspace are hashed."""
        return text_key(self.root)

    @cached_property
    def row_hashes(self) -> U64:
        return self._bundle.array("row_hashes")

    @cached_property
    def row_order(self) -> I32:
        order: I32 = self._bundle.array("row_order")
        self._expect(_within(order, self.ref.n_rows), self.ref.file, "row_order")
        return order

    @cached_property
    def live(self) -> Bool:
        """Which rows are not deleted."""
        live = np.ones(self.ref.n_rows, dtype=np.bool_)
        if self.ref.deletes is not None:
            live[np.array(read_deletes(self.root, self.ref.deletes), dtype=np.int64)] = False
        return live

    def row_ids(self, positions: I64 | I32) -> I64:
        if self.ref.merged:
            ids: I64 = self._bundle.array("row_ids")[positions]
            return ids
        return positions.astype(np.int64) + (self.ref.number << ROW_BITS)

    def positions(self, row_ids: I64) -> I64:
        """The positions of rows by id, -1 for those that are not here (deleted rows are)."""
        if self.ref.merged:
            ids = self._bundle.array("row_ids")
            at = np.searchsorted(ids, row_ids)
            at[at == len(ids)] = 0
            return np.where(ids[at] == row_ids, at, -1) if len(ids) else np.full(len(row_ids), -1)
        at = row_ids - (self.ref.number << ROW_BITS)
        return np.where((at >= 0) & (at < self.ref.n_rows), at, -1)

    def index(self, column: int) -> tuple[I32, I32]:
        """(offsets, positions): the rows of each local code of an indexed column."""
        if column not in self._indexes:
            file, offsets, positions = self._mapped_index(column)
            sound = _ascending(offsets, len(positions)) and _within(positions, self.ref.n_rows)
            self._expect(sound, file, f"the index of column {column}")
            self._indexes[column] = offsets, positions
        return self._indexes[column]

    def postings(self, column: int, codes: I32) -> tuple[I32, I32, I32]:
        """(starts, ends, positions): the rows of code i are `positions[starts[i] : ends[i]]`.

        As `index`, at a cost that follows the rows of these codes, not those of the segment.
        """
        if column not in self._indexes:
            file, offsets, positions = self._mapped_index(column)
            few = len(positions) // 4
            n_rows = listed(offsets, positions, codes, self.ref.n_rows, few)
            self._expect(n_rows != UNSOUND, file, f"the index of column {column}")
            if n_rows <= few:
                return offsets[codes], offsets[codes + 1], positions
        offsets, positions = self.index(column)
        return offsets[codes], offsets[codes + 1], positions

    def _mapped_index(self, column: int) -> tuple[FileRef, I32, I32]:
        """(file, offsets, positions) of an indexed column, as they are in the file."""
        if column not in self._mapped:
            file = self._index_files[column]
            if file not in self._index_bundles:  # opening costs a look at all of its columns
                self._index_bundles[file] = self._opened(file, "index")
            bundle = self._index_bundles[file]
            arrays = bundle.array(f"offsets.{column}"), bundle.array(f"positions.{column}")
            self._mapped[column] = (file, *arrays)
        return self._mapped[column]

    @cached_property
    def _index_files(self) -> dict[int, FileRef]:
        return {c: file for columns, file in reversed(self.ref.indexes) for c in columns}

    def order(self, key: OrderKey) -> OrderIndex:
        """An order index that the segment has (`ref.ordered`)."""
        if key not in self._orders:
            file = next(file for keys, file in self.ref.orders if key in keys)
            bundle = self._opened(file, "order")
            name = _order_name(key)
            arrays = [bundle.array(f"{name}.{part}") for part in ORDER_ARRAYS]
            index = OrderIndex(GE, LE if key[2] else GE, *arrays)
            sound = (
                _ascending(index.chain_offsets, len(index.node_a))
                and _ascending(index.node_offsets, len(index.rows))
                and _within(index.rows, self.ref.n_rows)
            )
            self._expect(sound, file, f"the order index {name}")
            self._orders[key] = index
        return self._orders[key]

    def _expect(self, sound: bool, file: FileRef, what: str) -> None:
        """Raise if an array leads out of the segment: kernels follow it without looking.

        A large file is opened by its stamp, which a rotting disk does not change.
        """
        if not sound:
            raise DamagedFileError(
                f"the file {file.name!r} of the workspace {str(self.root)!r} is damaged: {what} leads out "
                "of the segment. Restore it from a backup, or rebuild the table with 'holdfast track'."
            )

    def rows(self, positions: I64) -> pa.Table:
        """The values of some rows."""
        try:
            columns = [
                decode(self.dictionary(c), self.texts(c), self.codes[c][positions], column.type)
                for c, column in enumerate(self.schema.columns)
            ]
        except (LookupError, ValueError):
            check_file(self.root, self.ref.file, deep=True, fresh=True)  # is it the file?
            raise
        return pa.table(columns, schema=arrow_schema(self.schema))

    def translated_rows(self, other: Segment, positions: I64, nulls_distinct: bool) -> I32:
        """Some rows of `other` in the local codes of this segment: int32[n_columns, len(positions)].

        As `translated`, at a cost that follows the rows, not the dictionaries of `other`.
        """
        out = other.codes[:, positions]
        if self is not other:
            for c in range(len(out)):
                needed, inverse = np.unique(out[c], return_inverse=True)
                entries = needed[needed > 0].astype(np.int64) - 1
                local = self._translation(other, c, entries)
                # The first one is NULL, if any row has it.
                out[c] = (local if len(entries) < len(needed) else local[1:])[inverse]
        if nulls_distinct:
            out[out == 0] = -1
        return out

    def translated(self, other: Segment, columns: Iterable[int], nulls_distinct: bool) -> I32:
        """The rows of `other` in the local codes of this segment: int32[n_columns, other.n_rows].

        -1 where this segment has no such value, or where NULLs are distinct and it is one. Columns
        that are not asked for are left at -1. Exact for hashed types too: equal codes are
        compared on the texts, so a collision never looks like an equality.

        The classes of a table translate a batch after each other: what all columns of a small one are is kept
        until the next batch. Of one row of 16 columns it takes 0.5 ms.
        """
        columns = list(columns)
        if len(columns) < len(self.schema) or other.codes.size > KEPT_CELLS:
            return self._translated(other, columns, nulls_distinct)
        newest = self._newest
        if newest is None or newest[0] is not other or newest[1] != nulls_distinct:
            newest = other, nulls_distinct, self._translated(other, columns, nulls_distinct)
            self._newest = newest
        return newest[2]

    def _translated(self, other: Segment, columns: Sequence[int], nulls_distinct: bool) -> I32:
        out = np.full(other.codes.shape, -1, dtype=np.int32)
        for c in columns:
            local = self._translation(other, c)
            if nulls_distinct:
                local[0] = -1
            out[c] = local[other.codes[c]]
        return out

    def _translation(self, other: Segment, column: int, entries: I64 | None = None) -> I32:
        """The local codes here of some (or all) entries of the dictionary of `other`, behind that of NULL."""
        dictionary = other.dictionary(column)
        local = encode.translate(
            self.dictionary(column), dictionary if entries is None else dictionary[entries]
        )
        texts, other_texts = self.texts(column), other.texts(column)
        if texts is not None and other_texts is not None and self is not other:
            hit = np.flatnonzero(local[1:] > 0)
            at = hit if entries is None else entries[hit]
            differ = texts_differ_at(texts, local[1:][hit] - np.int64(1), other_texts, at)
            local[1:][hit[differ]] = -1
        return local


def _within(positions: NDArray[Any], n: int) -> bool:
    return not len(positions) or (int(positions.min()) >= 0 and int(positions.max()) < n)


def _ascending(offsets: NDArray[Any], last: int) -> bool:
    """Whether offsets begin at 0, never fall, and end at or before `last`."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] > last:
        return False
    return bool((offsets[1:] >= offsets[:-1]).all())


@lru_cache(maxsize=512)
def _open_segment(root: Root, ref: SegmentRef, schema: Schema) -> Segment:
    return Segment(root, ref, schema)


def open_segment(root: Root, ref: SegmentRef, schema: Schema) -> Segment:
    """The open segment, from this process's cache if it is there: files never change."""
    return _open_segment(root, ref, schema)


def by_row_id(witnesses: I64, left: Segment, right: Segment) -> I64:
    """Pairs of positions in two segments as pairs of row ids; -1 stays -1."""
    real = witnesses[:, :, 0] >= 0
    out = np.full_like(witnesses, -1)
    out[real, 0] = left.row_ids(witnesses[:, :, 0][real])
    out[real, 1] = right.row_ids(witnesses[:, :, 1][real])
    return out


def encode_rows(table: pa.Table, schema: Schema, key: Key | None) -> list[list[EncodedColumn]]:
    """Encode a table whose columns are typed as the schema says; one list of columns per segment.

    `key` is that of the workspace.

    Almost always one. Rows whose text collides with another's code in any column go to a further one.
    """
    if len(table) > MAX_ROWS:
        slices = [table.slice(i, MAX_ROWS) for i in range(0, len(table), MAX_ROWS)]
        return [columns for rows in slices for columns in encode_rows(rows, schema, key)]
    columns, rejected = [], np.zeros(len(table), dtype=np.bool_)
    for c, column in enumerate(schema.columns):
        encoded, clash = encode_column(combined(table.column(c)), column.type, key)
        columns.append(encoded)
        if clash is not None:
            rejected |= clash
    if not rejected.any():
        return [columns]
    return [
        *encode_rows(table.filter(pa.array(~rejected)), schema, key),
        *encode_rows(table.filter(pa.array(rejected)), schema, key),
    ]


def row_hashes(columns: Iterable[tuple[U64, I32]], n_rows: int, key: Key | None) -> U64:
    """The hash of each row on some columns (dictionary, codes): equal content, equal hash, in any segment.

    It starts from the key of the workspace. Nobody who does not know it can write many rows of one hash,
    which would all have to be compared.
    """
    hashes = np.full(n_rows, 0 if key is None else key[0], dtype=np.uint64)
    for dictionary, codes in columns:
        encode.mix_column(hashes, dictionary, codes)
    return hashes


def write_segment(
    root: Root,
    folder: str,
    number: int,
    columns: Sequence[EncodedColumn],
    locator: Sequence[int],
    *,
    row_ids: I64 | None = None,
    compress: bool = False,
) -> SegmentRef:
    """Write the rows as a new segment, which counts once a commit names it; `compress` suits cold rows."""
    n_rows = len(columns[0].codes) if columns else 0
    arrays: dict[str, NDArray[Any] | pa.Array] = {
        "codes": np.concatenate([c.codes for c in columns]) if columns else np.empty(0, np.int32),
    }
    if locator or not columns:
        located = ((columns[c].dictionary, columns[c].codes) for c in locator)
        hashes = row_hashes(located, n_rows, text_key(root))
        order = np.argsort(hashes).astype(np.int32)
        arrays |= {"row_hashes": hashes[order], "row_order": order}
    if row_ids is not None:
        arrays["row_ids"] = row_ids
    for c, column in enumerate(columns):
        arrays[f"dictionary.{c}"] = column.dictionary
        if column.texts is not None:
            arrays[f"texts.{c}"] = column.texts
    name = unique_name(folder, "segment", ".arrow")
    file = write_bundle(root, name, arrays, {"holdfast": "segment"}, compress=compress)
    distinct = tuple(len(c.dictionary) for c in columns)
    counts = [np.bincount(c.codes, minlength=1) for c in columns]
    return SegmentRef(
        number,
        n_rows,
        file,
        distinct,
        merged=row_ids is not None,
        equal_pairs=tuple(int((n[1:] * (n[1:] - 1) // 2).sum()) for n in counts),
        nulls=tuple(int(n[0]) for n in counts),
    )


def write_index(root: Root, folder: str, segment: Segment, columns: Sequence[int]) -> SegmentRef:
    """The segment's reference with an index on these columns added."""
    check_file(root, segment.ref.file, deep=True)  # it is read whole, and by kernels that trust its codes
    arrays: dict[str, NDArray[Any] | pa.Array] = {}
    for c in columns:
        offsets, positions = encode.postings(segment.codes[c], len(segment.dictionary(c)))
        arrays[f"offsets.{c}"], arrays[f"positions.{c}"] = offsets, positions
    file = write_bundle(root, unique_name(folder, "index", ".arrow"), arrays, {"holdfast": "index"})
    return replace(segment.ref, indexes=(*segment.ref.indexes, IndexRef(tuple(columns), file)))


def write_orders(root: Root, folder: str, segment: Segment, keys: Sequence[OrderKey]) -> SegmentRef:
    """The segment's reference with order indexes added (IncDC, algorithm 3: each of minimal rank)."""
    check_file(root, segment.ref.file, deep=True)
    arrays: dict[str, NDArray[Any] | pa.Array] = {}
    for key in keys:
        a, b, falling = key
        index = build_order(segment.codes[a], segment.codes[b], GE, LE if falling else GE)
        arrays |= {f"{_order_name(key)}.{part}": getattr(index, part) for part in ORDER_ARRAYS}
    file = write_bundle(root, unique_name(folder, "order", ".arrow"), arrays, {"holdfast": "order"})
    return replace(segment.ref, orders=(*segment.ref.orders, OrdersRef(tuple(keys), file)))


def _order_name(key: OrderKey) -> str:
    return f"{key[0]}.{key[1]}.{int(key[2])}"


def merge_segments(
    root: Root,
    folder: str,
    number: int,
    segments: Sequence[Segment],
    locator: Sequence[int],
    *,
    compress: bool = False,
) -> SegmentRef:
    """One segment with the live rows of several, in the order of their ids.

    Values that only deleted rows had leave the dictionaries. Cost: a sort of the distinct values
    and a pass over the codes. Raises CodeCollisionError when texts share a code, which keyed hashes
    do by chance alone: among a thousand million texts of a column once in forty tables.
    """
    for segment in segments:  # whatever is wrong with them would be right in the new one
        check_file(root, segment.ref.file, deep=True, fresh=True)
    live_positions = [np.flatnonzero(s.live) for s in segments]
    ids = np.concatenate([s.row_ids(k) for s, k in zip(segments, live_positions, strict=True)])
    order = np.argsort(ids, kind="stable")
    columns = []
    for c, column in enumerate(segments[0].schema.columns):
        dictionaries = [s.dictionary(c) for s in segments]
        starts = np.cumsum([0, *(len(d) for d in dictionaries)])
        everything = np.concatenate(dictionaries)
        union, first, inverse = np.unique(everything, return_index=True, return_inverse=True)
        texts = None
        if column.type.hashed:
            all_texts = pa.concat_arrays([s.texts(c) for s in segments])
            differ = np.flatnonzero(texts_differ(all_texts, all_texts.take(pa.array(first[inverse]))))
            if len(differ):
                apart = np.unique(np.searchsorted(starts, differ, side="right") - 1)
                raise CodeCollisionError(frozenset(segments[i].ref.number for i in apart.tolist()))
            texts = all_texts.take(pa.array(first))
        codes = np.empty(len(ids), dtype=np.int32)
        at = 0
        for i, (segment, positions) in enumerate(zip(segments, live_positions, strict=True)):
            local = np.zeros(len(dictionaries[i]) + 1, dtype=np.int32)
            local[1:] = inverse[starts[i] : starts[i + 1]] + 1
            codes[at : at + len(positions)] = local[segment.codes[c][positions]]
            at += len(positions)
        codes = codes[order]
        used = np.zeros(len(union) + 1, dtype=np.bool_)
        used[codes] = True
        if not used[1:].all():
            rank = np.zeros(len(union) + 1, dtype=np.int32)
            rank[1:] = np.cumsum(used[1:])
            codes = rank[codes]
            union = union[used[1:]]
            texts = texts.filter(pa.array(used[1:])) if texts is not None else None
        columns.append(EncodedColumn(union, codes, texts))
    return write_segment(root, folder, number, columns, locator, row_ids=ids[order], compress=compress)
