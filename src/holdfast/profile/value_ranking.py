"""The distinct values of columns that have many: how many there are, and the most frequent ones.

They are not kept: one job counts them when somebody asks. A task takes a range of the codes of one column,
counts them in all segments, and answers a number and a few values; so no task holds more than some million
values, and the driver a handful. Equal codes of texts in different segments are compared on the texts.

Cost: a pass over the codes of a column for each range of its values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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
LAST_CODE = (1 << 64) - 1
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
    questions = [(c, first, last) for c in columns for first, last in ranges[c]]
    payloads = [
        relation.payload(segments=relation.live, column=c, first=first, last=last, n=n if columns[c] else 0)
        for c, first, last in questions
    ]
    results = relation.run(rank_part, payloads, float(NS_RANK * relation.n_rows * len(questions)))
    answers = {}
    for column in columns:
        empty = pa.array([], arrow_type(relation.schema.types[column]))
        tally, n_distinct = Tally.of(empty, np.empty(0, np.int64), 0), 0
        for (c, *_), result in zip(questions, results, strict=True):
            if c == column:
                n_distinct += int(result.array("n_distinct")[0])
                part = Tally.of(result.arrow("values"), result.array("counts"), len(result.array("counts")))
                tally = tally.plus(part, len(tally.values) + n)
        at = tally.most_frequent(n)
        answers[column] = n_distinct, tally.values.take(pa.array(at)), tally.counts[at].tolist()
    return answers


def _ranges(relation: Relation, columns: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """The codes of columns in ranges, first and last, of about RANGE_VALUES values. By one job where the
    segments are far, if some column has more values."""
    live = [ref for ref in relation.segments if ref.n_live]
    n_values = {c: sum(ref.distinct[c] for ref in live) for c in columns}
    n_ranges = {c: -(-n // RANGE_VALUES) for c, n in n_values.items()}
    steps = {c: max(1, n_values[c] // (SAMPLED * n)) for c, n in n_ranges.items() if n > 1}
    samples: dict[int, list[U64]] = {c: [] for c in steps}
    payloads = [relation.payload(segment=ref.to_dict(), steps=list(steps.items())) for ref in live if steps]
    for result in map(unpack, relation.look(sample_codes, payloads, live)):
        for c in steps:
            samples[c].append(result.array(str(c)))
    ranges = {c: [(0, LAST_CODE)] for c in columns}
    for c, parts in samples.items():
        sample = np.sort(np.concatenate(parts))
        places = [len(sample) * i // n_ranges[c] for i in range(1, n_ranges[c])]
        starts = [0, *sorted({int(sample[at]) for at in places} - {0})]
        ranges[c] = list(zip(starts, [*(start - 1 for start in starts[1:]), LAST_CODE], strict=True))
    return ranges


def sample_codes(payload: Payload) -> bytes:
    """Codes of some columns of a segment, in equal steps."""
    schema = parsed_schema(payload["schema"])
    segment = open_segment(root_of(payload["root"]), SegmentRef.from_dict(payload["segment"]), schema)
    return pack({str(c): segment.dictionary(c)[::step] for c, step in payload["steps"]}, {})


def rank_part(payload: Payload) -> bytes:
    """Of a range of the codes of a column: how many distinct values live rows have, and the most frequent."""
    schema = parsed_schema(payload["schema"])
    column, n, type_ = payload["column"], payload["n"], schema.types[payload["column"]]
    codes: list[U64] = [np.empty(0, np.uint64)]
    counts: list[I64] = [np.empty(0, np.int64)]
    texts: list[pa.Array] = [pa.array([], pa.large_binary())]
    root = root_of(payload["root"])
    for ref in map(SegmentRef.from_dict, payload["segments"]):
        segment = open_segment(root, ref, schema)
        segment.expect(ref.n_rows)
        places, of_segment = _counted(segment, column, payload["first"], payload["last"])
        codes.append(segment.dictionary(column)[places])
        counts.append(of_segment)
        of_column = segment.texts(column)
        if of_column is not None:
            texts.append(of_column.take(pa.array(places)))
    every = np.concatenate(codes)
    different, first, inverse = np.unique(every, return_index=True, return_inverse=True)
    sums = np.zeros(len(different), np.int64)
    np.add.at(sums, inverse, np.concatenate(counts))
    if not type_.hashed:
        at = _top(sums, n, None)
        values = decode(different, None, (at + 1).astype(np.int32), type_).cast(arrow_type(type_))
        return _answer(len(different), values, sums[at])
    all_texts = pa.concat_arrays(texts)
    if texts_differ(all_texts, all_texts.take(pa.array(first[inverse]))).any():
        all_texts, sums = summed(all_texts, np.concatenate(counts))  # different texts share a code
    else:
        all_texts = all_texts.take(pa.array(first))
    comparable = all_texts
    if type_.family == "decimal":
        comparable = all_texts.cast(pa.large_string()).cast(arrow_type(type_))
    at = _top(sums, n, comparable)
    local = np.arange(1, len(at) + 1, dtype=np.int32)
    values = decode(np.zeros(len(at), np.uint64), all_texts.take(pa.array(at)), local, type_)
    return _answer(len(sums), values.cast(arrow_type(type_)), sums[at])


def _counted(segment: Segment, column: int, first: int, last: int) -> tuple[I64, I64]:
    """(places in the dictionary, counts) of the codes of a range that live rows have."""
    bounds = np.array([first, last], np.uint64)
    dictionary = segment.dictionary(column)
    start = int(np.searchsorted(dictionary, bounds[0]))
    end = int(np.searchsorted(dictionary, bounds[1], side="right"))
    if start == end:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    codes = segment.codes[column]
    if segment.ref.n_deleted:
        codes = codes[segment.live]
    counts = np.bincount(codes, minlength=len(dictionary) + 1)[start + 1 : end + 1]
    used = np.flatnonzero(counts)
    return used + start, counts[used].astype(np.int64)


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
