"""The task functions: what one Spark task (or the driver, inline) does with one payload.

A payload is a small JSON document that names files; data is read from storage by memory map, never
shipped. A result is a bundle: consolidated, as large as what was learnt, not as what was read.
`relation.py` makes the payloads and merges the results.

- `encode_part`: read some splits of a source, type them, write segments; sample evidence.
- `index_segment`: index further columns of a segment.
- `locate_rows`: find the rows that a batch deletes, in one segment.
- `probe_segment`: evidence of the pairs of a batch with one segment that break a key.
- `validate_part`: refute candidate keys on one part of one pivot column's values.
- `validate_fd_part`: the same for candidate functional dependencies.
- `merge_run`: merge some segments into one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.evidence.fd_validation import validate_fd_candidates
from holdfast.core.evidence.kernels import pairs
from holdfast.core.evidence.kernels.fd_masks import breaks
from holdfast.core.evidence.key_validation import Place, validate_candidates
from holdfast.core.evidence.sampling import sample_evidence
from holdfast.core.rows.kernels.masks import contains_any, n_words_for
from holdfast.core.rows.segments import (
    CodeCollisionError,
    Segment,
    by_row_id,
    encode_rows,
    merge_segments,
    open_segment,
    write_index,
    write_orders,
    write_segment,
)
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.sources import ReadOptions, Split, read_split, read_split_guessed
from holdfast.core.store.bundle import Bundle, open_bundle, pack
from holdfast.core.store.files import FileRef, check_file
from holdfast.core.store.format import text_key
from holdfast.core.words.schema import Schema
from holdfast.errors import EngineError

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Payload = dict[str, Any]


def opened(payload: Payload, what: str, schema: Schema) -> Segment:
    """The segment that a payload names."""
    return open_segment(Path(payload["root"]), SegmentRef.from_dict(payload[what]), schema)


def all_opened(payload: Payload, schema: Schema) -> list[Segment]:
    """The segments that a payload names, to be read from end to end by kernels that trust their codes."""
    root = Path(payload["root"])
    refs = [SegmentRef.from_dict(s) for s in payload["segments"]]
    for ref in refs:
        check_file(root, ref.file, deep=True)
    return [open_segment(root, ref, schema) for ref in refs]


def staged(payload: Payload, what: str) -> Bundle:
    """The masks that the driver staged for this job; opened once for all tasks of a process."""
    return _opened_bundle(Path(payload["root"]), FileRef.from_dict(payload[what]), what)


@lru_cache(maxsize=8)
def _opened_bundle(root: Path, ref: FileRef, what: str) -> Bundle:
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
    splits = [Split.from_dict(s) for s in payload["splits"]]
    failed: dict[str, list[str]] = {}
    tables = []
    for split in splits:
        if payload["guessed"]:
            table, verdicts = read_split_guessed(split, schema.names, schema.types, options, payload["table"])
            for name, survived in verdicts.items():
                known = failed.get(name)
                failed[name] = survived if known is None else [t for t in known if t in survived]
        else:
            table = read_split(
                split,
                schema.names,
                schema.types,
                options=options,
                textual=payload["textual"],
                table=payload["table"],
                version=payload["version"],
            )
        tables.append(table)
    if failed:
        return pack({}, {"failed": json.dumps(failed), "segments": "[]"})
    rows = pa.concat_tables(tables)
    del tables
    return write_rows(rows, schema, payload)


def write_rows(rows: pa.Table, schema: Schema, payload: Payload) -> bytes:
    """Encode typed rows as segments, with sampled evidence if the payload asks for it."""
    root = Path(payload["root"])
    refs, masks, witnesses = [], [], []
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
        refs.append(ref.to_dict())
        if payload["sample"] != "no":
            segment = open_segment(root, ref, schema)
            found = sample_evidence(
                segment,
                payload["nulls"] == "distinct",
                seed=number,
                per_column=payload["sample"] == "fds",
            )
            masks.append(found[0])
            witnesses.append(found[1])
    meta = {"failed": "{}", "segments": json.dumps(refs)}
    if not masks:
        return pack({}, meta)
    return pack({"masks": np.concatenate(masks), "witnesses": np.concatenate(witnesses)}, meta)


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


def locate_rows(payload: Payload) -> bytes:
    """(query, row id) of the live rows of a segment that equal a query row on some columns."""
    schema = parsed_schema(payload["schema"])
    segment, queries = opened(payload, "segment", schema), opened(payload, "queries", schema)
    columns = payload["columns"]
    translated = segment.translated(queries, columns, nulls_distinct=False)
    query, position = pairs.locate(
        segment.row_hashes,
        segment.row_order,
        queries.row_hashes,
        segment.codes,
        segment.live,
        translated[:, queries.row_order],
        np.array(columns, dtype=np.int32),
    )
    return pack({"query": queries.row_order[query].astype(np.int64), "row_id": segment.row_ids(position)}, {})


# -- probe -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """What a pair must agree on to be of interest and, if there is any `rhs`, differ on some of.

    `determines`: it is a single column that determines the whole `rhs` among the old rows.
    """

    columns: list[int]
    rhs: list[int]
    determines: bool = False


def probe_segment(payload: Payload) -> bytes:
    """Evidence of pairs (batch row, row of this segment) that agree on a key (SWAN alg. 1-2).

    Or, given right-hand sides, that agree on a left-hand side and violate its dependency.

    For each set of indexed columns of some key, the shortest posting list of each batch row is
    walked and the others are intersected by comparing codes. Agree sets that contain no key are
    dropped before they leave the task.
    """
    schema = parsed_schema(payload["schema"])
    segment, batch = opened(payload, "segment", schema), opened(payload, "batch", schema)
    bundle, n_words = staged(payload, "keys"), n_words_for(len(schema))
    keys, rhs = bundle.array("masks").reshape(-1, n_words), bundle.array("rhs").reshape(-1, n_words)
    probes = [Probe(**p) for p in payload["probes"]]
    masks, pairs = probe_pairs(
        segment, batch, probes, payload["nulls"] == "distinct", own=payload["own"], settled=payload["settled"]
    )
    breaking = breaks(masks, keys, rhs) if len(rhs) else contains_any(masks, keys)
    witnesses = by_row_id(pairs[breaking], batch, segment)
    return pack({"masks": masks[breaking], "witnesses": witnesses}, {})


def probe_pairs(
    segment: Segment,
    batch: Segment,
    probes: Sequence[Probe],
    nulls_distinct: bool,
    *,
    own: bool,
    settled: bool,
) -> tuple[U64, I64]:
    """(masks, witnesses) of all pairs that one of the probes asks for; witnesses are positions.

    `settled`: the rows of the segment are old ones, among which all dependencies hold. Where there are fewer
    pairs of rows than probes, as in wide tables, all of them are compared.
    """
    n_batch = batch.ref.n_rows
    if n_batch * segment.ref.n_rows <= len(probes):
        return all_pairs(segment, batch, nulls_distinct, own=own)
    indexed = sorted({c for p in probes for c in p.columns})
    slot = {c: i for i, c in enumerate(indexed)}
    translated = segment.translated(batch, range(len(segment.schema)), nulls_distinct)
    starts = np.zeros((len(indexed), n_batch), dtype=np.int32)
    ends = np.zeros_like(starts)
    lists = []
    for i, c in enumerate(indexed):
        starts[i], ends[i], positions = segment.postings(c, np.maximum(translated[c], 0))
        lists.append(positions)
    width = max(len(p.columns) for p in probes)
    columns = np.full((len(probes), width), -1, dtype=np.int32)
    slots = np.full((len(probes), width), -1, dtype=np.int32)
    rhs = np.full((len(probes), max(1, *(len(p.rhs) for p in probes))), -1, dtype=np.int32)
    distinct = segment.ref.distinct
    for i, probe in enumerate(probes):
        # The most selective column first: it rejects most of a list's entries.
        columns[i, : len(probe.columns)] = sorted(probe.columns, key=lambda c: -distinct[c])
        slots[i, : len(probe.columns)] = [slot[c] for c in probe.columns]
        rhs[i, : len(probe.rhs)] = probe.rhs
    chosen, _ = pairs.choose_lists(starts, ends, translated[indexed], slots)
    for i, probe in enumerate(probes):
        if settled and probe.determines:
            at = slot[probe.columns[0]]
            rows = lists[at], starts[at], ends[at]
            told = np.array(probe.rhs, dtype=np.int32)
            chosen[i, ~pairs.contradicted(segment.codes, segment.live, translated, *rows, told)] = -1
    found = [
        pairs.probe(
            segment.codes,
            segment.live,
            translated,
            lists[i],
            starts[i],
            ends[i],
            chosen,
            i,
            c,
            columns,
            rhs,
            own,
        )
        for i, c in enumerate(indexed)
    ]
    masks = np.concatenate([m for m, _ in found])
    witnesses = np.concatenate([w for _, w in found])
    return masks, witnesses


def all_pairs(segment: Segment, other: Segment, nulls_distinct: bool, *, own: bool) -> tuple[U64, I64]:
    """(masks, witnesses) of the live rows of `other` with all of a segment's; witnesses are positions.

    `own`: it is the same segment, and each pair of its rows is seen once. Cost: columns x pairs of rows.
    """
    translated = segment.translated(other, range(len(segment.schema)), nulls_distinct)
    n_rows, n_other = segment.ref.n_rows, other.ref.n_rows
    nothing = np.full((1, 1), -1, dtype=np.int32)
    return pairs.probe(
        segment.codes,
        segment.live,
        translated,
        np.arange(n_rows, dtype=np.int32),
        np.zeros(n_other, dtype=np.int32),
        np.where(other.live, n_rows, 0).astype(np.int32),
        np.zeros((1, n_other), dtype=np.int32),
        0,
        -1,
        nothing,
        nothing,
        own,
    )


# -- validate ----------------------------------------------------------------------------------


def compare_rows(payload: Payload) -> bytes:
    """The evidence of all pairs of live rows of a table that has few."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    masks, witnesses = [], []
    for i, other in enumerate(segments):
        for segment in segments[: i + 1]:
            distinct = payload["nulls"] == "distinct"
            found, positions = all_pairs(segment, other, distinct, own=segment is other)
            masks.append(found)
            witnesses.append(by_row_id(positions, other, segment))
    return pack({"masks": np.concatenate(masks), "witnesses": np.concatenate(witnesses)}, {})


def validate_part(payload: Payload) -> bytes:
    """Candidates with one pivot column, refuted on the rows whose pivot value falls into one part."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    bundle = staged(payload, "candidates")
    candidates = bundle.array("masks").reshape(-1, n_words_for(len(schema)))
    mine = np.flatnonzero(bundle.array("pivots") == payload["pivot"])
    place = Place(payload["pivot"], payload["part"], payload["n_parts"])
    refuted, masks, witnesses = validate_candidates(
        segments, candidates[mine], place, payload["ranking"], payload["nulls"] == "distinct"
    )
    return pack({"candidate": mine[refuted], "masks": masks, "witnesses": witnesses}, {})


def validate_fd_part(payload: Payload) -> bytes:
    """Candidate FDs with one pivot column, refuted on the rows whose pivot value falls into one part."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    bundle = staged(payload, "candidates")
    n_words = n_words_for(len(schema))
    mine = np.flatnonzero(bundle.array("pivots") == payload["pivot"])
    lhs, rhs = (bundle.array(side).reshape(-1, n_words)[mine] for side in ("lhs", "rhs"))
    place = Place(payload["pivot"], payload["part"], payload["n_parts"])
    refuted, masks, witnesses = validate_fd_candidates(
        segments, lhs, rhs, place, payload["ranking"], payload["nulls"] == "distinct"
    )
    hit = refuted.any(axis=1)
    return pack({"candidate": mine[hit], "refuted": refuted[hit], "masks": masks, "witnesses": witnesses}, {})


# -- merge -------------------------------------------------------------------------------------


def merge_run(payload: Payload) -> bytes:
    """Merge segments into one and index it; or say which of them have texts that collide with others'."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    root = Path(payload["root"])
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
