"""Facts about columns by which foreign keys are judged: counts of the generator, ranges of dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels import encode
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment, row_hashes
from holdfast.core.words.dependency import Ind
from holdfast.core.words.schema import Type
from holdfast.inclusions.generator import GeneratorState, ValueTable
from holdfast.inclusions.identity import domain, identities
from holdfast.inclusions.links.link_evidence import ColumnFacts
from holdfast.inclusions.pair_counts import PairCounts

U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


def column_facts(
    state: GeneratorState, pairs: PairCounts, table: ValueTable, relation: Relation
) -> list[ColumnFacts]:
    """The facts of the columns of a table that take part in inclusions.

    All of them are about live rows. Cost: a pass over the dictionaries, and one over the codes of segments
    with deleted rows, whose dictionaries still have the values of these.
    """
    distinct, rows = pairs.of_columns(state.next_id)
    segments = [open_segment(relation.root, s, relation.schema) for s in relation.segments if s.n_live]
    facts = []
    for column_id, name in zip(table.ids, table.columns, strict=True):
        c = relation.schema.names.index(name)
        type_ = relation.schema.types[c]
        used = [_used(s, c) for s in segments]
        low, high, integers = _range([s.dictionary(c)[u] for s, u in zip(segments, used, strict=True)], type_)
        as_text = table.as_text and type_.family != "text"
        facts.append(
            ColumnFacts(
                table=table.table,
                column=name,
                position=c,
                domain=domain(type_, table.as_text),
                n_rows=relation.n_rows,
                n_values=None if table.append_only else int(rows[column_id]),
                n_distinct=int(distinct[column_id]),
                low=low,
                high=high,
                integers=integers,
                mean_length=None if as_text else _mean_length(segments, used, c),
            )
        )
    return facts


def _used(segment: Segment, c: int) -> Bool | slice:
    """Which entries of a column's dictionary live rows have: a mask, or a slice if no row is deleted."""
    if not segment.ref.n_deleted:
        return slice(None)
    used = np.zeros(len(segment.dictionary(c)) + 1, dtype=np.bool_)
    used[segment.codes[c][segment.live]] = True
    entries: Bool = used[1:]
    return entries


def _range(dictionaries: Sequence[U64], type_: Type) -> tuple[float | None, float | None, bool]:
    """(low, high, integers) of an ordered column; codes are in the order of the values."""
    if type_.hashed:
        return None, None, False
    filled = [d for d in dictionaries if len(d)]
    if not filled:
        return None, None, False
    low = min(_numbers(d[:1], type_)[0] for d in filled)
    ends = [_numbers(d[-2:], type_) for d in filled]
    high = max((float(v) for end in ends for v in end if not np.isnan(v)), default=low)
    if type_.family in ("int", "uint"):
        integers = True
    elif type_.family == "decimal":
        integers = all((encode.ints_of_codes(d) % 10**type_.scale == 0).all() for d in filled)
    elif type_.family == "float":
        integers = all((values == np.floor(values)).all() for values in (_numbers(d, type_) for d in filled))
    else:
        integers = False
    return (None if np.isnan(low) else float(low)), float(high), integers


def _numbers(codes: U64, type_: Type) -> NDArray[np.float64]:
    if type_.family == "float":
        return encode.floats_of_codes(codes)
    if type_.family in ("uint", "bool"):
        return codes.astype(np.float64)
    if type_.unit:  # inclusions do not ask for the unit of a clock
        return encode.ints_of_codes(codes).astype(np.float64) * _MICROSECONDS[type_.unit]
    return encode.ints_of_codes(codes).astype(np.float64) / 10.0**type_.scale


def _mean_length(segments: Sequence[Segment], used: Sequence[Bool | slice], c: int) -> float | None:
    lengths = [
        np.diff(ends)[of_live_rows]
        for segment, of_live_rows in zip(segments, used, strict=True)
        for ends in _text_ends([segment], c)
    ]
    total = sum(map(len, lengths))
    return float(sum(part.sum() for part in lengths) / total) if total else None


def _text_ends(segments: Sequence[Segment], c: int) -> list[NDArray[np.int64]]:
    """Where the texts of a column's dictionaries begin and end, in bytes; n + 1 numbers for n texts."""
    texts = [t for s in segments if (t := s.texts(c)) is not None and len(t)]
    return [np.frombuffer(t.buffers()[1], np.int64)[t.offset : t.offset + len(t) + 1] for t in texts]


def longest_values(relation: Relation) -> dict[str, int]:
    """The bytes of the longest value of each text or binary column. Cost: a pass over the dictionaries, which
    still have the values of deleted rows until segments are merged."""
    segments = [open_segment(relation.root, s, relation.schema) for s in relation.segments if s.n_live]
    return {
        name: max((int(np.diff(e).max()) for e in _text_ends(segments, c)), default=0)
        for c, (name, type_) in enumerate(zip(relation.schema.names, relation.schema.types, strict=True))
        if type_.family in ("text", "binary")
    }


def not_null_columns(relation: Relation) -> frozenset[str]:
    """The columns without a NULL in any live row. Cost: a pass over each column's codes."""
    segments = [open_segment(relation.root, ref, relation.schema) for ref in relation.segments]
    return frozenset(
        name
        for c, name in enumerate(relation.schema.names)
        if not any(((s.codes[c] == 0) & s.live).any() for s in segments)
    )


def with_coverage(ind: Ind, dependent: Relation, referenced: Relation, as_text: tuple[bool, bool]) -> Ind:
    """A composite inclusion with its coverage counted: a pass over the rows of both sides."""
    n_left = _n_tuples(dependent, ind.dependent.columns, as_text[0])
    n_right = _n_tuples(referenced, ind.referenced.columns, as_text[1])
    return replace(ind, coverage=n_left / n_right if n_right else 0.0)


def _n_tuples(relation: Relation, columns: Sequence[str], as_text: bool) -> int:
    """How many different combinations without NULL some columns have, by the hashes of their values."""
    hashes = [np.empty(0, np.uint64)]
    positions = [relation.schema.names.index(name) for name in columns]
    for ref in relation.segments:
        segment = open_segment(relation.root, ref, relation.schema)
        values = []
        for c in positions:
            type_ = relation.schema.types[c]
            keys, _ = identities(segment.dictionary(c), segment.texts(c), type_, as_text, segment.key)
            values.append((keys, segment.codes[c]))
        whole = segment.live & (segment.codes[positions] > 0).all(axis=0)
        hashes.append(np.unique(row_hashes(values, ref.n_rows, segment.key)[whole]))
    return len(np.unique(np.concatenate(hashes)))
