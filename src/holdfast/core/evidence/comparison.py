"""Counted evidence: rows that come or go, compared with all rows.

Law (property 1 of DynASt): the pairs of the next relation are those of the current one, plus inserted x
(remaining and inserted), minus deleted x (remaining and deleted). Each unordered pair is compared once. Where
more rows go than stay, roughly, those that stay are compared instead: what is not among them went.

The evidence of a pair is its agree set or, given a predicate space, the predicates that it satisfies, which
are those of (t, s) and those of (s, t). A task compares rows of one segment with those of another and returns
each evidence once, with the number of its pairs: what leaves a task is as large as the number of different
ones. One job for all of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.half_ranks import half_rank_rows, parsed_space, space_columns
from holdfast.core.evidence.kernels.agree_counts import agree_counts
from holdfast.core.evidence.kernels.predicate_evidence import evidence_counts
from holdfast.core.evidence.witnessed_masks import evidence_in
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.table_state import SegmentRef, payloads_of
from holdfast.core.rows.tasks import Payload, opened, parsed_schema, staged
from holdfast.core.store.bundle import pack
from holdfast.core.words.predicate import PredicateSpace

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# What it takes on one core to compare a column of a pair, in ns: 0.02 to 0.2. A task compares many: the more
# rows are compared at once, the more of them share their work.
NS_COMPARE = 0.07
TASK_COMPARE = 4e9
MAX_PARTS = 64
# Comparing two values by order, and counting what comes of it, is as much work as so many comparisons.
PREDICATE_WORK = 4


@dataclass(frozen=True, slots=True)
class Compared:
    """Evidence of pairs: masks uint64[k, n_words], not all different; counts int64[k]; a pair of row ids
    of each, int64[k, 2]: (t, s), of agree sets in any order; -1 where it is not known."""

    masks: U64
    counts: I64
    witnesses: I64

    @classmethod
    def none(cls, n_words: int) -> Compared:
        return cls(np.empty((0, n_words), np.uint64), np.empty(0, np.int64), np.empty((0, 2), np.int64))


def compare_all(relation: Relation, space: PredicateSpace | None = None) -> Compared:
    """All pairs of live rows of a relation."""
    return compare_inserts(relation, relation.segments, space)


def compare_inserts(
    relation: Relation, added: Sequence[SegmentRef], space: PredicateSpace | None = None
) -> Compared:
    """The pairs that segments brought (`relation` has them): with all live rows, and with each other."""
    new = {s.number for s in added}
    old = [s for s in relation.segments if s.number not in new and s.n_live]
    named = payloads_of([*old, *added])
    work: list[tuple[Payload, int]] = []
    for i, part in enumerate(added):
        source = {"source": named[part.number]}
        for segment in [*old, *added[:i]]:
            work.append(({**source, "segment": named[segment.number]}, part.n_live * segment.n_live))
        inside = {**source, "segment": named[part.number], "within": True}
        work.append((inside, _n_pairs(part.n_live)))
    return _compared(relation, work, space)


def compare_deletes(
    before: Relation,
    after: Relation,
    row_ids: I64,
    known: CountedEvidence,
    space: PredicateSpace | None = None,
) -> Compared:
    """The pairs that deleted rows took along: with the rows of `after`, and with each other.

    `known` are those of all rows of `before`. Cost: at most that of comparing the rows of `after` anew; if it
    is just that, no pair that went is told.
    """
    if _n_pairs(before.n_rows) > 2 * _n_pairs(after.n_rows):
        rest = compare_all(after, space)
        masks = np.concatenate([known.masks, rest.masks])
        counts = np.concatenate([known.counts, -rest.counts])
        return Compared(masks, counts, np.full((len(masks), 2), -1, np.int64))
    gone = [(ref, after.stage("positions", positions=at), len(at)) for ref, at in before.positioned(row_ids)]
    named, remaining = payloads_of(ref for ref, *_ in gone), payloads_of(after.segments)
    work: list[tuple[Payload, int]] = []
    for i, (ref, positions, n) in enumerate(gone):
        source = {"source": named[ref.number], "positions": positions}
        for segment in after.segments:
            if segment.n_live:
                work.append(({**source, "segment": remaining[segment.number]}, n * segment.n_live))
        for other, among, m in gone[:i]:
            work.append(({**source, "segment": named[other.number], "among": among}, n * m))
        inside = {**source, "segment": named[ref.number], "among": positions, "within": True}
        work.append((inside, _n_pairs(n)))
    return _compared(after, work, space)


def _n_pairs(n_rows: int) -> int:
    return n_rows * (n_rows - 1) // 2


def _compared(
    relation: Relation, work: Sequence[tuple[Payload, int]], space: PredicateSpace | None
) -> Compared:
    task, more = compare_part, {}
    n_columns, n_words = len(relation.schema), relation.n_words
    if space is not None:
        task, more = compare_predicates, {"space": json.dumps(space.to_dict())}
        n_columns, n_words = PREDICATE_WORK * len(space.groups), n_words_for(space.n_predicates)
    payloads = []
    for fields, n_pairs in work:
        if n_pairs:
            n_parts = min(MAX_PARTS, 1 + int(n_pairs * n_columns / TASK_COMPARE))
            payloads += [relation.payload(**fields, **more, part=i, n_parts=n_parts) for i in range(n_parts)]
    total = float(sum(n for _, n in work)) * n_columns
    results = relation.run(task, payloads, NS_COMPARE * total)
    masks, witnesses = evidence_in(results, n_words, 2)
    counts = [r.array("counts") for r in results] or [np.empty(0, np.int64)]
    return Compared(masks, np.concatenate(counts), witnesses)


def compare_part(payload: Payload) -> bytes:
    """The agree sets of a part of the rows of one segment with the live (or the given) rows of another."""
    place = _Place.of(payload)
    rows = place.segment.translated_rows(place.source, place.positions, payload["nulls"] == "distinct")
    masks, counts, pairs = agree_counts(place.codes, place.live, rows, place.within, place.first)
    return pack({"masks": masks, "counts": counts, "witnesses": place.row_ids(pairs[:, 0], pairs[:, 1])}, {})


def compare_predicates(payload: Payload) -> bytes:
    """The predicates that the same pairs satisfy, in both directions."""
    place = _Place.of(payload)
    columns = space_columns(parsed_space(payload["space"]), place.segment.schema)
    # One side will do: a space has the mirror image of each of its groups.
    rows = half_rank_rows(place.segment, place.source, place.positions, columns.pairs)[:, None, :]
    evidence = evidence_counts(
        place.codes, place.live, rows, columns.groups, columns.n_words, place.within, place.first
    )
    # Witnesses are (t, s); which of them is the compared row differs.
    first, second = evidence.witnesses.T
    source_rows = np.where(evidence.batch_first, first, second)
    segment_rows = np.where(evidence.batch_first, second, first)
    ids = place.row_ids(source_rows, segment_rows)
    ids[~evidence.batch_first] = ids[~evidence.batch_first, ::-1]
    return pack({"masks": evidence.masks, "counts": evidence.counts, "witnesses": ids}, {})


@dataclass(frozen=True, slots=True)
class _Place:
    """What a task compares: rows `positions` of `source` with rows of `segment`.

    `within`: these are rows of the segment itself, from number `first` on, each with those before it.
    """

    segment: Segment
    source: Segment
    positions: I64
    within: bool
    first: int
    codes: I32
    live: Bool
    among: I64 | None  # the positions of codes and live in the segment; None: all

    @classmethod
    def of(cls, payload: Payload) -> _Place:
        schema = parsed_schema(payload["schema"])
        segment, source = opened(payload, "segment", schema), opened(payload, "source", schema)
        within = payload.get("within", False)
        positions = _positions(payload, "positions")
        if positions is None:
            positions = np.flatnonzero(source.live)
        first, last = rows_of_part(len(positions), payload["part"], payload["n_parts"], triangle=within)
        codes, live, among = segment.codes, segment.live, _positions(payload, "among")
        if among is None and within and len(positions) < segment.ref.n_rows:
            among = positions
        if among is not None:
            codes, live = codes[:, among], np.ones(len(among), dtype=np.bool_)
        return cls(segment, source, positions[first:last], within, first, codes, live, among)

    def row_ids(self, source_rows: I64, segment_rows: I64) -> I64:
        """int64[k, 2]: row ids of positions among the compared rows, and among those of the segment."""
        among = segment_rows if self.among is None else self.among[segment_rows]
        left, right = self.source.row_ids(self.positions[source_rows]), self.segment.row_ids(among)
        return np.stack([left, right], axis=1)


def rows_of_part(n_rows: int, part: int, n_parts: int, *, triangle: bool) -> tuple[int, int]:
    """(first, last) of the rows that one of several tasks compares.

    Each row of a triangle has one pair more than the row before: parts are of equal area.
    """
    share = np.array([part, part + 1]) / n_parts
    first, last = ((np.sqrt(share) if triangle else share) * n_rows).round().astype(np.int64).tolist()
    return first, last


def _positions(payload: Payload, name: str) -> I64 | None:
    if name not in payload:
        return None
    at: I64 = staged({**payload, "positions": payload[name]}, "positions").array("positions")
    return at
