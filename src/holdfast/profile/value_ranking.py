"""The distinct values of columns that have many: how many there are, and the most frequent ones.

They are not kept: one job counts them when somebody asks. A task takes a range of the codes of one column,
counts them in all segments, and answers a number and a few values; so no task holds more than some million
values, and the driver a handful. Segments of large tables send what they have (`sent_parts.py`). Equal codes
of texts in different segments are compared on the texts.

Cost: a pass over the codes of a column for each range of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.evidence.sent_parts import Sending, answers, in_order, number_of
from holdfast.core.evidence.shuffled import Blocks, Sent, segment_of
from holdfast.core.rows.codes import decode, texts_differ
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import parsed_schema
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.store.bundle import pack, unpack
from holdfast.core.store.root import root_of
from holdfast.profile.tally import Tally, summed

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Payload = dict[str, Any]

# What it takes on one core to count a value, in ns.
NS_RANK = 10
# Values of one task.
RANGE_VALUES = 1 << 22
# Codes of a segment by which ranges are made.
SAMPLED = 4096


def ranked_values(
    relation: Relation, columns: Mapping[int, bool], n: int
) -> dict[int, tuple[int, pa.Array, list[int]]]:
    """By column: (how many distinct values it has, the n most frequent ones, their counts).

    Of values with one count the lower ones come first.
    `columns` says of each whether its values are asked for; else it is their number alone. One job.
    """
    ranges = _ranges(relation, list(columns))
    questions = [(c, part) for c in columns for part in range(len(ranges[c]))]
    payloads = [
        relation.payload(
            segments=relation.live,
            column=c,
            starts=ranges[c],
            part=part,
            n_parts=len(ranges[c]),
            n=n if columns[c] else 0,
        )
        for c, part in questions
    ]
    ns = float(NS_RANK * relation.n_rows * len(questions))
    results = answers(relation, Sending(asked_of, send_counts, Counts.of_blocks), rank_part, payloads, ns)
    ranked = {}
    for column in columns:
        empty = pa.array([], arrow_type(relation.schema.types[column]))
        tally, n_distinct = Tally.of(empty, np.empty(0, np.int64), 0), 0
        for (c, _), result in zip(questions, results, strict=True):
            if c == column:
                n_distinct += int(result.array("n_distinct")[0])
                part = Tally.of(result.arrow("values"), result.array("counts"), len(result.array("counts")))
                tally = tally.plus(part, len(tally.values) + n)
        at = tally.most_frequent(n)
        ranked[column] = n_distinct, tally.values.take(pa.array(at)), tally.counts[at].tolist()
    return ranked


def _ranges(relation: Relation, columns: Sequence[int]) -> dict[int, list[int]]:
    """The codes of columns in ranges of about RANGE_VALUES values: where each begins, the first at 0. By one
    job where the segments are far, if some column has more values."""
    live = [ref for ref in relation.segments if ref.n_live]
    n_values = {c: sum(ref.distinct[c] for ref in live) for c in columns}
    n_ranges = {c: -(-n // RANGE_VALUES) for c, n in n_values.items()}
    steps = {c: max(1, n_values[c] // (SAMPLED * n)) for c, n in n_ranges.items() if n > 1}
    samples: dict[int, list[U64]] = {c: [] for c in steps}
    payloads = [relation.payload(segment=ref.to_dict(), steps=list(steps.items())) for ref in live if steps]
    for result in map(unpack, relation.look(sample_codes, payloads, live)):
        for c in steps:
            samples[c].append(result.array(str(c)))
    ranges = {c: [0] for c in columns}
    for c, parts in samples.items():
        sample = np.sort(np.concatenate(parts))
        places = [len(sample) * i // n_ranges[c] for i in range(1, n_ranges[c])]
        ranges[c] = [0, *sorted({int(sample[at]) for at in places} - {0})]
    return ranges


def sample_codes(payload: Payload) -> bytes:
    """Codes of some columns of a segment, in equal steps."""
    schema = parsed_schema(payload["schema"])
    segment = open_segment(root_of(payload["root"]), SegmentRef.from_dict(payload["segment"]), schema)
    return pack({str(c): segment.dictionary(c)[::step] for c, step in payload["steps"]}, {})


def asked_of(payload: Payload) -> dict[str, Any] | None:
    """A column, and where ranges of its codes begin."""
    return {"column": payload["column"], "starts": payload["starts"]}


def send_counts(payload: Payload) -> Sent:
    """How often live rows of a segment have the values of columns, to the ranges of their codes."""
    segment, _ = segment_of(payload)
    for asked in payload["chosen"]:
        parts = range(asked["n_parts"])
        for part, counts in Counts.in_segment(segment, asked["column"], asked["starts"], parts):
            if len(counts.codes):
                arrays = {"number": number_of(payload), "codes": counts.codes, "counts": counts.counts}
                texts = {} if counts.texts is None else {"texts": counts.texts}
                yield asked["first"] + part, pack({**arrays, **texts}, {})


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """The codes of some values of a column, with their counts: a value comes once for each segment."""

    codes: U64
    counts: I64
    texts: pa.Array | None  # of types whose codes are hashes

    @classmethod
    def in_segment(
        cls, segment: Segment, column: int, starts: Sequence[int], parts: Iterable[int]
    ) -> Iterator[tuple[int, Counts]]:
        """Those of some ranges that live rows have. Cost: a pass over the codes, whatever the ranges."""
        dictionary, texts, codes = segment.dictionary(column), segment.texts(column), segment.codes[column]
        if segment.ref.n_deleted:
            codes = codes[segment.live]
        counts = np.bincount(codes, minlength=len(dictionary) + 1)[1:]
        ends = [*np.searchsorted(dictionary, np.array(starts, np.uint64)).tolist(), len(dictionary)]
        for part in parts:
            used = np.flatnonzero(counts[ends[part] : ends[part + 1]]) + ends[part]
            of_part = None if texts is None else texts.take(pa.array(used))
            yield part, cls(dictionary[used], counts[used].astype(np.int64), of_part)

    @classmethod
    def of_segments(cls, payload: Payload) -> Counts:
        """Those of a range, segment after segment."""
        schema, root = parsed_schema(payload["schema"]), root_of(payload["root"])
        parts = []
        for ref in map(SegmentRef.from_dict, payload["segments"]):
            segment = open_segment(root, ref, schema)
            segment.expect(ref.n_rows)
            asked = payload["column"], payload["starts"], [payload["part"]]
            parts += [counts for _, counts in cls.in_segment(segment, *asked)]
        return cls._joined(parts, payload)

    @classmethod
    def of_blocks(cls, blocks: Blocks, payload: Payload) -> Counts:
        """Those of a range that segments have sent."""
        hashed = parsed_schema(payload["schema"]).types[payload["column"]].hashed
        return cls._joined(
            [
                cls(b.array("codes"), b.array("counts"), b.arrow("texts") if hashed else None)
                for b in in_order(blocks)
            ],
            payload,
        )

    @classmethod
    def _joined(cls, parts: Sequence[Counts], payload: Payload) -> Counts:
        hashed = parsed_schema(payload["schema"]).types[payload["column"]].hashed
        return cls(
            np.concatenate([np.empty(0, np.uint64), *(part.codes for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *(part.counts for part in parts)]),
            pa.concat_arrays([pa.array([], pa.large_binary()), *(part.texts for part in parts)])
            if hashed
            else None,
        )


def rank_part(payload: Payload, received: Counts | None = None) -> bytes:
    """Of a range of the codes of a column: how many distinct values live rows have, and the most frequent."""
    n, type_ = payload["n"], parsed_schema(payload["schema"]).types[payload["column"]]
    of_range = received or Counts.of_segments(payload)
    every = of_range.codes
    different, first, inverse = np.unique(every, return_index=True, return_inverse=True)
    sums = np.zeros(len(different), np.int64)
    np.add.at(sums, inverse, of_range.counts)
    if not type_.hashed:
        at = _top(sums, n, None)
        values = decode(different, None, (at + 1).astype(np.int32), type_).cast(arrow_type(type_))
        return _answer(len(different), values, sums[at])
    all_texts: pa.Array = of_range.texts
    if texts_differ(all_texts, all_texts.take(pa.array(first[inverse]))).any():
        all_texts, sums = summed(all_texts, of_range.counts)  # different texts share a code
    else:
        all_texts = all_texts.take(pa.array(first))
    comparable = all_texts
    if type_.family == "decimal":
        comparable = all_texts.cast(pa.large_string()).cast(arrow_type(type_))
    at = _top(sums, n, comparable)
    local = np.arange(1, len(at) + 1, dtype=np.int32)
    values = decode(np.zeros(len(at), np.uint64), all_texts.take(pa.array(at)), local, type_)
    return _answer(len(sums), values.cast(arrow_type(type_)), sums[at])


def _top(counts: I64, n: int, values: pa.Array | None) -> I64:
    """The places of the n largest counts; of one count those of the lower values, or the first ones."""
    if n >= len(counts):
        return np.arange(len(counts))
    if not n:
        return np.empty(0, np.int64)
    least = np.partition(counts, len(counts) - n)[len(counts) - n]
    more, equal = np.flatnonzero(counts > least), np.flatnonzero(counts == least)
    missing = n - len(more)
    if values is not None and len(equal) > missing:
        equal = equal[pc.bottom_k_unstable(values.take(pa.array(equal)), missing).to_numpy().astype(np.int64)]
    return np.concatenate([more, equal[:missing]])


def _answer(n_distinct: int, values: pa.Array, counts: I64) -> bytes:
    return pack({"n_distinct": np.array([n_distinct], np.int64), "values": values, "counts": counts}, {})
