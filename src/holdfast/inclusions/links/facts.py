"""Facts about columns by which foreign keys are judged: counts of the generator, ranges of dictionaries.

What has to be read is read by tasks, one for each segment, and one job for all tables: here if it is little.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels import encode
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, row_hashes
from holdfast.core.rows.tasks import Payload, opened, parsed_schema
from holdfast.core.store.bundle import pack, unpack
from holdfast.core.words.column_facts import ColumnFacts, domain
from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.schema import Type
from holdfast.inclusions.generator import GeneratorState, ValueTable
from holdfast.inclusions.identity import identities
from holdfast.inclusions.pair_counts import PairCounts

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
_MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}
# What it takes on one core to look at a cell for its column's facts, or at one of a combination, in ns.
NS_CELL, NS_TUPLE = 3, 60
# Combinations that meet in one part.
PART_TUPLES = 1 << 22


@dataclass(frozen=True, slots=True)
class Seen:
    """What the live rows of a table have in each of its columns. All arrays are as long as the schema.

    low and high are NaN where a column has no ordered value but NaN; `whole`: all its numbers are integers.
    Of texts: how many different ones there are in each segment together, their bytes, and the longest's.
    """

    low: F64
    high: F64
    whole: Bool
    null: Bool
    n_texts: I64
    n_bytes: I64
    longest: I64


def look(relations: Sequence[Relation]) -> list[Seen]:
    """What the rows of some tables have. One job; cost: a pass over the codes and dictionaries."""
    payloads = [r.payload(segment=segment) for r in relations for segment in r.live]
    if not payloads:
        return [_seen([], len(r.schema)) for r in relations]
    ns = NS_CELL * sum(r.n_rows * len(r.schema) for r in relations)
    results = iter(relations[0].run(look_at_segment, payloads, ns))
    return [_seen([next(results) for _ in r.live], len(r.schema)) for r in relations]


def _seen(results: Sequence[Any], n_columns: int) -> Seen:
    """The segments of a table together."""

    def joined(name: str, start: Any, unite: Any) -> Any:
        return unite.reduce([np.full(n_columns, start), *(r.array(name) for r in results)])

    return Seen(
        low=joined("low", np.nan, np.fmin),
        high=joined("high", np.nan, np.fmax),
        whole=joined("whole", True, np.logical_and),
        null=joined("null", False, np.logical_or),
        n_texts=joined("n_texts", 0, np.add),
        n_bytes=joined("n_bytes", 0, np.add),
        longest=joined("longest", 0, np.maximum),
    )


def look_at_segment(payload: Payload) -> bytes:
    """The same of one segment."""
    segment = opened(payload, "segment", parsed_schema(payload["schema"]))
    fields: dict[str, list[Any]] = {name: [] for name in Seen.__slots__}
    for c, type_ in enumerate(segment.schema.types):
        used = _used(segment, c)
        low, high, whole = _range(segment.dictionary(c)[used[1:]], type_)
        lengths = _text_lengths(segment, c)[used[1:]] if type_.hashed else np.zeros(0, np.int64)
        values = (low, high, whole, used[0], len(lengths), lengths.sum(), lengths.max(initial=0))
        for of_column, value in zip(fields.values(), values, strict=True):
            of_column.append(value)
    types = {"low": np.float64, "high": np.float64, "whole": np.uint8, "null": np.uint8}
    return pack({name: np.array(v, types.get(name, np.int64)) for name, v in fields.items()}, {})


def column_facts(
    state: GeneratorState, pairs: PairCounts, relations: Mapping[str, Relation]
) -> list[ColumnFacts]:
    """The facts of the columns that take part in inclusions, all of them about live rows. One job."""
    distinct, rows = pairs.of_columns(state.next_id)
    seen = dict(zip(relations, look(list(relations.values())), strict=True))
    return [
        _facts(table, name, relations[table.table], seen[table.table], int(distinct[i]), int(rows[i]))
        for table in state.tables
        for i, name in zip(table.ids, table.columns, strict=True)
    ]


def _facts(
    table: ValueTable, name: str, relation: Relation, seen: Seen, n_distinct: int, n_values: int
) -> ColumnFacts:
    c = relation.schema.names.index(name)
    type_ = relation.schema.types[c]
    ordered = not np.isnan(seen.low[c])
    measured = seen.n_texts[c] > 0 and (type_.family == "text" or not table.as_text)
    return ColumnFacts(
        table=table.table,
        column=name,
        position=c,
        domain=domain(type_, table.as_text),
        n_rows=relation.n_rows,
        n_values=None if table.append_only else n_values,
        n_distinct=n_distinct,
        low=float(seen.low[c]) if ordered else None,
        high=float(seen.high[c]) if ordered else None,
        integers=ordered and bool(seen.whole[c]),
        mean_length=float(seen.n_bytes[c] / seen.n_texts[c]) if measured else None,
    )


def _used(segment: Segment, c: int) -> Bool:
    """Which local codes of a column live rows have; the first is NULL's."""
    used = np.zeros(len(segment.dictionary(c)) + 1, dtype=np.bool_)
    codes = segment.codes[c]
    used[codes[segment.live] if segment.ref.n_deleted else codes] = True
    return used


def _range(codes: U64, type_: Type) -> tuple[float, float, bool]:
    """(low, high, integers) of an ordered column; codes are in the order of the values, NaN is the last."""
    if type_.hashed or not len(codes):
        return np.nan, np.nan, True
    low, high = _numbers(codes[:1], type_)[0], np.fmax.reduce(_numbers(codes[-2:], type_))
    if type_.family in ("int", "uint"):
        integers = True
    elif type_.family == "decimal":
        integers = bool((encode.ints_of_codes(codes) % 10**type_.scale == 0).all())
    elif type_.family == "float":
        values = _numbers(codes, type_)
        integers = bool((values == np.floor(values)).all())
    else:
        integers = False
    return float(low), float(high), integers


def _numbers(codes: U64, type_: Type) -> F64:
    if type_.family == "float":
        return encode.floats_of_codes(codes)
    if type_.family in ("uint", "bool"):
        return codes.astype(np.float64)
    if type_.unit:  # inclusions do not ask for the unit of a clock
        return encode.ints_of_codes(codes).astype(np.float64) * _MICROSECONDS[type_.unit]
    return encode.ints_of_codes(codes).astype(np.float64) / 10.0**type_.scale


def _text_lengths(segment: Segment, c: int) -> I64:
    """The bytes of the texts of a column's dictionary."""
    texts = segment.texts(c)
    if texts is None or not len(texts):
        return np.zeros(0, np.int64)
    return np.diff(np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1])


def longest_values(relation: Relation) -> dict[str, int]:
    """The bytes of the longest value of each text or binary column."""
    [seen] = look([relation])
    columns = enumerate(zip(relation.schema.names, relation.schema.types, strict=True))
    return {name: int(seen.longest[c]) for c, (name, t) in columns if t.family in ("text", "binary")}


def not_null_columns(relation: Relation) -> frozenset[str]:
    """The columns without a NULL in any live row."""
    [seen] = look([relation])
    return frozenset(name for name, null in zip(relation.schema.names, seen.null, strict=True) if not null)


# -- combinations ------------------------------------------------------------------------------


def with_coverage(
    inds: Sequence[Ind], relations: Mapping[str, Relation], as_text: Mapping[str, bool]
) -> list[Ind]:
    """Inclusions with the coverage of composite ones counted: a pass over the rows of both sides. One job."""
    wide = [len(ind.dependent.columns) > 1 for ind in inds]
    sides = dict.fromkeys(
        side for ind in itertools.compress(inds, wide) for side in (ind.dependent, ind.referenced)
    )
    counts = counted_sides(sides, relations, as_text)
    return [
        replace(ind, coverage=(1 - ind.error) * counts[ind.dependent] / max(1, counts[ind.referenced]))
        if is_wide
        else ind
        for ind, is_wide in zip(inds, wide, strict=True)
    ]


def counted_sides(
    sides: Iterable[Side],
    relations: Mapping[str, Relation],
    as_text: Mapping[str, bool],
    *,
    with_nulls: bool = False,
) -> dict[Side, int]:
    """How many different combinations the rows have in some columns: without NULL, or with any value at all.

    One job over the rows.
    """
    sides = list(sides)
    if not sides:
        return {}
    payloads = [
        relations[side.table].payload(
            segment=segment,
            columns=list(side.columns),
            as_text=as_text[side.table],
            side=i,
            with_nulls=with_nulls,
        )
        for i, side in enumerate(sides)
        for segment in relations[side.table].live
    ]
    n_cells = sum(relations[side.table].n_rows * len(side.columns) for side in sides)
    return dict(zip(sides, _counted(payloads, len(sides), n_cells, relations), strict=True))


def _counted(
    payloads: list[Payload], n_sides: int, n_cells: int, relations: Mapping[str, Relation]
) -> list[int]:
    """How many different combinations each side has: by Spark's shuffle where they are many, or far."""
    any_one = next(iter(relations.values()))
    engine = any_one.engine
    far = any(relation.are_far(relation.segments) for relation in relations.values())
    if far or engine.choose(NS_TUPLE * n_cells) == "spark":
        n_parts = 1 + n_cells // PART_TUPLES
        payloads = [{**payload, "n_parts": n_parts} for payload in payloads]
        consumers = [{"part": i} for i in range(n_sides * n_parts)]
        answers = engine.exchange(send_tuples, payloads, count_tuples, consumers, any_one.progress)
        return [sum(map(int, answers[i * n_parts : (i + 1) * n_parts])) for i in range(n_sides)]
    blocks: list[list[bytes]] = [[] for _ in range(n_sides)]
    for payload in payloads:
        for side, block in send_tuples({**payload, "n_parts": 1}):
            blocks[side].append(block)
    return [int(count_tuples(iter(of_side), {})) for of_side in blocks]


def send_tuples(payload: Payload) -> Iterator[tuple[int, bytes]]:
    """The different combinations that live rows have in some columns, by hashes of their values; each to its
    part of those of the side."""
    schema = parsed_schema(payload["schema"])
    segment = opened(payload, "segment", schema)
    positions = [schema.names.index(name) for name in payload["columns"]]
    values = []
    for c in positions:
        keys, _ = identities(
            segment.dictionary(c), segment.texts(c), schema.types[c], payload["as_text"], segment.key
        )
        values.append((keys, segment.codes[c]))
    filled = segment.codes[positions] > 0
    chosen = segment.live & (filled.any(axis=0) if payload["with_nulls"] else filled.all(axis=0))
    hashes = np.unique(row_hashes(values, segment.ref.n_rows, segment.key)[chosen])
    n_parts = payload["n_parts"]
    # Hashes are sorted, so the parts are ranges of them.
    bounds = np.searchsorted(hashes, np.array([(i << 64) // n_parts for i in range(1, n_parts)], np.uint64))
    for i, part in enumerate(np.split(hashes, bounds)):
        yield payload["side"] * n_parts + i, pack({"hashes": part}, {})


def count_tuples(blocks: Iterator[bytes], payload: Payload) -> bytes:
    """How many different combinations a part has."""
    hashes = [np.empty(0, np.uint64), *(unpack(block).array("hashes") for block in blocks)]
    return str(len(np.unique(np.concatenate(hashes)))).encode()
