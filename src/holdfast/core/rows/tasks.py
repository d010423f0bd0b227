"""The task functions: what one Spark task (or the driver, inline) does with one payload.

A payload is a small JSON document that names files; data is read from storage by memory map, never
shipped. A result is a bundle: consolidated, as large as what was learnt, not as what was read.
`relation.py` makes the payloads and merges the results.

- `encode_part`: read some splits of a source, type them, write segments, index them, and look at them.
- `index_segment`: index further columns of a segment.
- `locate_rows`: find the rows that a batch deletes, in one segment.
- `merge_run`: merge some segments into one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.engine.failures import import_name
from holdfast.core.rows.kernels.locating import locate
from holdfast.core.rows.segments import (
    CodeCollisionError,
    Segment,
    encode_rows,
    merge_segments,
    open_segment,
    write_index,
    write_orders,
    write_segment,
)
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.sources import ReadOptions, Split, read_split, read_split_guessed
from holdfast.core.sources.columnar import fit_table
from holdfast.core.store.arrow_types import arrow_schema
from holdfast.core.store.bundle import Bundle, open_bundle, pack
from holdfast.core.store.files import FileRef, check_file
from holdfast.core.store.format import text_key
from holdfast.core.store.root import Root, root_of
from holdfast.core.words.schema import Schema
from holdfast.errors import EngineError

Payload = dict[str, Any]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


def opened(payload: Payload, what: str, schema: Schema) -> Segment:
    """The segment that a payload names, to be read whole unless the reader expects less."""
    segment = open_segment(root_of(payload["root"]), SegmentRef.from_dict(payload[what]), schema)
    segment.expect(segment.ref.n_rows)
    return segment


def all_opened(payload: Payload, schema: Schema) -> list[Segment]:
    """The segments that a payload names, to be read from end to end by kernels that trust their codes."""
    root = root_of(payload["root"])
    refs = [SegmentRef.from_dict(s) for s in payload["segments"]]
    for ref in refs:
        check_file(root, ref.file, deep=True)
    segments = [open_segment(root, ref, schema) for ref in refs]
    for segment in segments:
        segment.expect(segment.ref.n_rows)
    return segments


def staged(payload: Payload, what: str) -> Bundle:
    """The masks that the driver staged for this job; opened once for all tasks of a process."""
    return _opened_bundle(root_of(payload["root"]), FileRef.from_dict(payload[what]), what)


@lru_cache(maxsize=8)
def _opened_bundle(root: Root, ref: FileRef, what: str) -> Bundle:
    return open_bundle(root, ref, what)


@lru_cache(maxsize=8)
def parsed_schema(text: str) -> Schema:
    return Schema.from_dict(json.loads(text))


# -- encode ------------------------------------------------------------------------------------


def encode_part(payload: Payload) -> bytes:
    """Read splits one by one into segments; say which guessed types failed.

    When a guess fails anywhere the job is done again with better types, so nothing is written then.
    """
    options = ReadOptions.from_dict(payload["options"])
    schema = parsed_schema(payload["schema"])
    present = schema.restricted(payload["present"])  # what the source has
    root = root_of(payload["root"])
    splits = [Split.from_dict(s).located(root) for s in payload["splits"]]
    failed: dict[str, list[str]] = {}
    words: set[str] = set()
    tables = []
    for split in splits:
        if payload["guessed"]:
            table, verdicts = read_split_guessed(
                split, present.names, present.types, options, payload["table"], words
            )
            for name, survived in verdicts.items():
                survivors = failed.get(name)
                failed[name] = survived if survivors is None else [t for t in survivors if t in survived]
        else:
            table = read_split(
                split,
                present.names,
                present.types,
                options=options,
                table=payload["table"],
                version=payload["version"],
                words=words,
            )
        tables.append(table)
    if failed:
        return pack({}, {"failed": json.dumps(failed), "segments": "[]"})
    rows = pa.concat_tables(tables)
    del tables
    return write_rows(rows if present is schema else filled(rows, schema), schema, payload, words)


def filled(rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows with all columns of a table, those that they lack NULL."""
    there = dict(zip(rows.column_names, rows.columns, strict=True))
    columns = [there.get(f.name, pa.nulls(len(rows), f.type)) for f in arrow_schema(schema)]
    return pa.table(columns, schema=arrow_schema(schema))


def encode_frame(batches: Iterator[pa.RecordBatch], payload: Payload) -> Iterator[bytes]:
    """Encode the rows of a partition of a DataFrame as segments of some size; the rows of a small one are
    answered themselves."""
    schema = parsed_schema(payload["schema"])
    present = schema.restricted(payload["present"])
    read: list[pa.RecordBatch] = []
    n_bytes, n_before = 0, 0

    def fitted() -> pa.Table:
        rows = pa.Table.from_batches(read)
        return fit_table(
            rows,
            present.names,
            present.types,
            table=payload["table"],
            where="the Spark DataFrame",
            version=payload["version"],
            first_row=n_before,
        )

    for batch in batches:
        if not batch.num_rows:
            continue
        read.append(batch)
        n_bytes += batch.nbytes
        if n_bytes >= payload["most"]:
            rows = fitted()
            yield write_rows(filled(rows, schema), schema, payload)
            n_before += len(rows)
            read, n_bytes = [], 0
    if not read:
        return
    rows = fitted()
    if n_before or n_bytes >= payload["small"]:
        yield write_rows(filled(rows, schema), schema, payload)
    else:
        columns = {str(i): column.combine_chunks() for i, column in enumerate(rows.columns)}
        yield pack(columns, {"rows": str(len(rows))})


def answered_rows(answer: Bundle, schema: Schema) -> pa.Table:
    """The rows that `encode_frame` has answered, with the columns that there are of the schema."""
    return pa.table([answer.arrow(str(i)) for i in range(len(schema))], schema=arrow_schema(schema))


def write_rows(rows: pa.Table, schema: Schema, payload: Payload, words: Collection[str] = ()) -> bytes:
    """Encode typed rows as segments; a function that the payload may name looks at each while it is hot.

    `words` are those that were read as NULL.
    """
    root = root_of(payload["root"])
    refs: list[dict[str, Any]] = []
    looks: list[dict[str, NDArray[Any]]] = []
    if not len(rows):
        return pack({}, {"failed": "{}", "segments": "[]"})
    for i, columns in enumerate(encode_rows(rows, schema, text_key(root))):
        if i > payload["n_spare"]:
            raise EngineError(
                f"the texts of table {payload['table']!r} collide so often that they need more than "
                f"{payload['n_spare']} segments. Nothing was applied. Please report this."
            )
        number = payload["spare"] + i - 1 if i else payload["number"]
        ref = write_segment(
            root, payload["folder"], number, columns, payload["locator"], compress=payload["compress"]
        )
        if payload["columns"] or payload["orders"]:
            segment = open_segment(root, ref, schema)
            ref = with_indexes(segment, payload["folder"], payload["columns"], payload["orders"])
        refs.append(ref.to_dict())
        if payload["look"] is not None:
            look = import_name(payload["look"])
            looks.append(look(open_segment(root, ref, schema), payload))
    arrays = {name: np.concatenate([s[name] for s in looks]) for name in (looks[0] if looks else ())}
    return pack(arrays, {"failed": "{}", "segments": json.dumps(refs), "words": json.dumps(sorted(words))})


# -- index, locate -----------------------------------------------------------------------------


def index_segment(payload: Payload) -> bytes:
    """Index columns of a segment; the result is its new reference."""
    schema = parsed_schema(payload["schema"])
    segment = opened(payload, "segment", schema)
    ref = with_indexes(segment, payload["folder"], payload["columns"], payload["orders"])
    return pack({}, {"segment": json.dumps(ref.to_dict())})


def with_indexes(
    segment: Segment, folder: str, columns: Sequence[int], orders: Sequence[OrderKey]
) -> SegmentRef:
    """The segment's reference with indexes on these columns, and these order indexes, added."""
    if columns:
        ref = write_index(segment.root, folder, segment, columns)
        segment = open_segment(segment.root, ref, segment.schema)
    if orders:
        keys = [(a, b, falling) for a, b, falling in orders]
        return write_orders(segment.root, folder, segment, keys)
    return segment.ref


def order_ranks(payload: Payload) -> bytes:
    """The order indexes of a segment as JSON, with their ranks: [[a, b, falling, rank], ...]."""
    segment = open_segment(
        root_of(payload["root"]), SegmentRef.from_dict(payload["segment"]), parsed_schema(payload["schema"])
    )
    return json.dumps([[*key, segment.order(key).rank] for key in segment.ref.ordered]).encode()


def locate_rows(payload: Payload) -> bytes:
    """(query, row id) of the live rows of a segment that equal a query row on some columns: see `located`.

    With `spare` of each query only the first rows: as many as it and its equals here, and so many more.
    """
    hashes, repeated, arrays = located(payload)
    query, row_id, spare = arrays["query"], arrays["row_id"], payload["spare"]
    if spare is not None and len(query) > SegmentRef.from_dict(payload["queries"]).n_rows + spare:
        order = np.lexsort((row_id, query))
        ordered = query[order]
        rank = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        # Equal queries have several leaders where others of their hash stand between them, as rows that
        # share a row key do: all of a hash are counted.
        leading = hashes[np.unique(query, return_index=True)[1]]
        asking = np.sort(np.concatenate([leading, repeated]))
        equals = np.searchsorted(asking, hashes, "right") - np.searchsorted(asking, hashes)
        first = order[rank < equals[order] + spare]
        arrays |= {"query": query[first], "row_id": row_id[first]}
    return pack(arrays, {})


def located(payload: Payload) -> tuple[U64, U64, dict[str, I64]]:
    """(hashes of the pairs, hashes of the repeats, arrays): the rows of a segment that equal a query row.

    A pair has `query` and `row_id`. Both come in the order of the hashes.

    Of queries that are equal, and stand together by their hashes, the first one looks for all: `leader` is
    the query that looks for each in `repeat`. So n equal queries and m equal rows are m pairs, not n times m.
    """
    schema = parsed_schema(payload["schema"])
    segment, queries = opened(payload, "segment", schema), opened(payload, "queries", schema)
    segment.expect(queries.ref.n_rows)
    columns, by_hash = payload["columns"], queries.row_order
    leads = np.zeros(len(by_hash), dtype=np.bool_)
    leads[:1] = True
    for c in columns:
        ordered = queries.codes[c][by_hash]
        leads[1:] |= ordered[1:] != ordered[:-1]
    leaders = by_hash[leads]
    translated = segment.translated(queries, columns, nulls_distinct=False)
    query, position = locate(
        segment.row_hashes,
        segment.row_order,
        queries.row_hashes[leads],
        segment.codes,
        segment.live,
        translated[:, leaders],
        np.array(columns, dtype=np.int32),
    )
    leader = leaders[np.cumsum(leads) - 1][~leads]
    arrays = {"query": leaders[query], "repeat": by_hash[~leads], "leader": leader}
    whole = {name: array.astype(np.int64) for name, array in arrays.items()}
    hashes = queries.row_hashes
    return hashes[leads][query], hashes[~leads], {**whole, "row_id": segment.row_ids(position)}


def rewrite_part(payload: Payload) -> bytes:
    """Encode some rows of a batch: what it says of each, and what the old row says where it says nothing."""
    schema = parsed_schema(payload["schema"])
    root = root_of(payload["root"])
    updates = opened(payload, "queries", schema)
    segments = [SegmentRef.from_dict(s) for s in payload["segments"]]
    chosen, (start, end) = staged(payload, "chosen"), payload["span"]
    new = updates.rows(chosen.array("positions")[start:end])
    given = set(payload["present"])
    if given != set(schema.names):
        old = fetch_rows(root, schema, segments, chosen.array("row_ids")[start:end])
        columns = [(new if name in given else old).column(name) for name in schema.names]
        new = pa.table(columns, schema=arrow_schema(schema))
    return write_rows(new, schema, payload)


def fetch_rows(root: Root, schema: Schema, refs: Sequence[SegmentRef], row_ids: I64) -> pa.Table:
    """The values of rows by id, in that order; deleted rows too while their segment lives."""
    return in_order([_rows_of(open_segment(root, ref, schema), row_ids) for ref in refs], schema)


def in_order(parts: Sequence[tuple[I64, pa.Table]], schema: Schema) -> pa.Table:
    """Rows that come with their places: all of them, in the order of these."""
    if not any(len(places) for places, _ in parts):
        return arrow_schema(schema).empty_table()
    rows = pa.concat_tables([rows for places, rows in parts if len(places)])
    return rows.take(pa.array(np.argsort(np.concatenate([places for places, _ in parts]))))


def _rows_of(segment: Segment, row_ids: I64) -> tuple[I64, pa.Table]:
    """(which of the rows are in a segment, their values). Of one that has none nothing is read."""
    positions = segment.positions(row_ids)
    places = np.flatnonzero(positions >= 0)
    if not len(places):
        return places, arrow_schema(segment.schema).empty_table()
    return places, segment.rows(positions[places])


def fetch_part(payload: Payload) -> bytes:
    """The rows of a segment among some, as a stream of Arrow; their places are its first column."""
    segment = opened(payload, "segment", parsed_schema(payload["schema"]))
    places, rows = _rows_of(segment, np.array(payload["row_ids"], dtype=np.int64))
    table = rows.add_column(0, "", pa.array(places, pa.int64()))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def position_rows(payload: Payload) -> bytes:
    """Where a segment has rows by id."""
    segment = opened(payload, "segment", parsed_schema(payload["schema"]))
    return pack({"positions": ascending_positions(segment, staged(payload, "row_ids").array("row_ids"))}, {})


def ascending_positions(segment: Segment, row_ids: I64) -> I64:
    """The positions of those rows by id that a segment has."""
    at = segment.positions(row_ids)
    return np.sort(at[at >= 0]).astype(np.int64)


# -- merge -------------------------------------------------------------------------------------


def merge_run(payload: Payload) -> bytes:
    """Merge segments into one and index it; or say which of them have texts that collide with others'."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    root = root_of(payload["root"])
    try:
        ref = merge_segments(
            root,
            payload["folder"],
            payload["number"],
            segments,
            payload["locator"],
            compress=payload["compress"],
        )
    except CodeCollisionError as collision:
        return pack({}, {"segment": "null", "apart": json.dumps(sorted(collision.apart))})
    if ref.n_rows:
        segment = open_segment(root, ref, schema)
        ref = with_indexes(segment, payload["folder"], payload["columns"], payload["orders"])
    return pack({}, {"segment": json.dumps(ref.to_dict())})
