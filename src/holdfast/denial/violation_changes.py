"""What a batch changes of the violations of rules, at a cost that follows the batch.

Law: violations(R + D) = violations(R) + those of pairs with a row of D; so a batch costs deleted x (remaining
and deleted) and inserted x (all), never the pairs of the table. The rows that come or go are compared with
each segment: along the lists of an equality index, by an order index, or by a scan of the segment, whichever
is expected to cost least. A task returns a number and a few pairs for each rule. One job for all rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.half_ranks import half_rank_rows
from holdfast.core.rows.deletes import read_deletes
from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.operators import EQ, SYMMETRIC
from holdfast.core.rows.kernels.order_index import OrderIndex
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.table_state import SegmentRef, payloads_of
from holdfast.core.rows.tasks import Payload, opened, parsed_schema, staged
from holdfast.core.store.bundle import pack
from holdfast.denial.kernels.rule_violations import (
    SAMPLES,
    Compared,
    Matches,
    chosen,
    count_in_lists,
    count_matches,
    expected_cost,
    first_matches,
    list_cost,
)
from holdfast.denial.pair_rule import NOTHING, Rule, Violations
from holdfast.denial.violations import verify

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Expected nanoseconds of one core that one task spends.
TASK_NS = 2e7
# What a batch may cost before it is asked whether to count anew is cheaper.
RECOUNT_NS = 1e8
# Left rows of a task at least: a block of the scan.
TASK_ROWS = 512
MAX_PARTS = 64
# Nanoseconds to ask one chain of an order index for one row; to compare a row of a list in a predicate.
CHAIN_NS = 150.0
LISTED_NS = 5.0
# Rows that are looked at for a violation before all are.
SEARCHED_ROWS = 512


def changed(
    before: Relation,
    remaining: Relation,
    after: Relation,
    row_ids: I64,
    added: Sequence[SegmentRef],
    rules: Sequence[Rule],
    known: Sequence[Violations],
) -> list[Violations]:
    """The violations of each rule after a batch, from those before it; one job, seldom one or two more.

    The batch deleted the rows `row_ids` of `before`, which left `remaining`, and added segments, which made
    `after`. Known pairs of live rows are kept, and new ones added to them. Only if no pair is left of a rule
    that is still violated is one looked for: in a few rows, then in all.

    Cost: by the batch's rows and the lists or chains of an index; else (rows / 512) * table a predicate. What
    a large batch would take longer to compare than `verify` to count is counted anew.
    """
    work = [*_deleted(before, remaining, row_ids), *_inserted(remaining, added)]
    remaining_pairs = [one.pairs[~np.isin(one.pairs, row_ids).any(axis=1)] for one in known]
    counts = np.array([one.n_violations for one in known], dtype=np.int64)
    samples = [[pairs] for pairs in remaining_pairs]
    payloads: list[Payload] = []
    signs: list[int] = []
    total = 0.0
    compared, recounted = _divided(rules, work, after.n_rows)
    for each in work:
        for some, cost in _bundled(compared, each):
            n_parts = max(1, min(MAX_PARTS, int(cost / TASK_NS), each.n_left // TASK_ROWS))
            wanting = [each.sign > 0 and len(remaining_pairs[i]) < SAMPLES for i, _ in some]
            questions = [(i, r.to_dict(), tell) for (i, r), tell in zip(some, wanting, strict=True)]
            payload = after.payload(**each.fields, rules=questions, n_parts=n_parts)
            payloads += [{**payload, "part": p} for p in range(n_parts)]
            signs += [each.sign] * n_parts
            total += cost
    for sign, result in zip(signs, after.run(compare_part, payloads, total), strict=True):
        counts[result.array("rule")] += sign * result.array("counts")
        pairs = result.array("pairs").reshape(-1, 3)
        for i in np.unique(pairs[:, 0]).tolist() if sign > 0 else ():
            samples[i].append(pairs[pairs[:, 0] == i, 1:])
    for i, one in zip(recounted, verify(after, [rules[i] for i in recounted]), strict=True):
        counts[i] = one.n_violations
        samples[i].append(one.pairs)
    for sample in (SEARCHED_ROWS, 0):
        lost = [i for i, n in enumerate(counts.tolist()) if n and not any(map(len, samples[i]))]
        for i, one in zip(lost, verify(after, [rules[i] for i in lost], sample), strict=True):
            samples[i].append(one.pairs)
    return [Violations(n, chosen(np.concatenate(p))) for n, p in zip(counts.tolist(), samples, strict=True)]


@dataclass(frozen=True, slots=True)
class _Work:
    """Rows that come (sign 1) or go (-1) and those of a segment that they are compared with."""

    fields: Payload
    n_left: int
    n_right: int
    sign: int
    segment: SegmentRef

    def cost(self, rule: Rule) -> float:
        """Nanoseconds, in both directions."""
        cost = expected_cost(self.n_left, self.n_right, rule.ops)
        for a, op, b in rule.predicates:
            if op == EQ and {a, b} <= self.segment.indexed:
                length = self.n_right / max(1, min(self.segment.distinct[a], self.segment.distinct[b]))
                cost = min(cost, LISTED_NS * len(rule.predicates) * self.n_left * (1 + length))
        return 2 * cost


def _divided(
    rules: Sequence[Rule], work: Sequence[_Work], n_rows: int
) -> tuple[list[tuple[int, Rule]], list[int]]:
    """(rules to compare, rules to recount): of a large batch there may be less to sort than to compare."""
    compared, recounted = [], []
    for i, rule in enumerate(rules):
        reduced = rule.reduced
        if reduced is not None:
            anew = max(RECOUNT_NS, expected_cost(n_rows, n_rows, reduced.ops))
            if sum(w.cost(reduced) for w in work) > anew:
                recounted.append(i)
            else:
                compared.append((i, reduced))
    return compared, recounted


def _deleted(before: Relation, remaining: Relation, row_ids: I64) -> list[_Work]:
    """Deleted rows with the remaining ones, and with each other."""
    gone = [
        (ref, remaining.stage("positions", positions=at), len(at)) for ref, at in before.positioned(row_ids)
    ]
    named, left = payloads_of(ref for ref, *_ in gone), payloads_of(remaining.segments)
    work: list[_Work] = []
    for i, (ref, positions, n) in enumerate(gone):
        source: Payload = {"source": named[ref.number], "positions": positions}
        for segment in remaining.segments:
            if segment.n_live:
                fields = {**source, "segment": left[segment.number]}
                work.append(_Work(fields, n, segment.n_live, -1, segment))
        for other, among, m in gone[:i]:
            fields = {**source, "segment": named[other.number], "among": among}
            work.append(_Work(fields, n, m, -1, other))
        fields = {**source, "segment": named[ref.number], "among": positions, "within": True}
        work.append(_Work(fields, n, n, -1, ref))
    return work


def _inserted(remaining: Relation, added: Sequence[SegmentRef]) -> list[_Work]:
    """Inserted rows with the remaining ones, and with each other."""
    named = payloads_of([*remaining.segments, *added])
    work: list[_Work] = []
    for i, part in enumerate(added):
        source = {"source": named[part.number]}
        for segment in [*remaining.segments, *added[:i]]:
            if segment.n_live:
                fields: Payload = {**source, "segment": named[segment.number]}
                work.append(_Work(fields, part.n_rows, segment.n_live, 1, segment))
        itself: Payload = {**source, "segment": named[part.number], "within": True}
        work.append(_Work(itself, part.n_rows, part.n_rows, 1, part))
    return work


def _bundled(rules: Sequence[tuple[int, Rule]], work: _Work) -> list[tuple[list[tuple[int, Rule]], float]]:
    """Rules of one task, with what they cost."""
    bundles: list[tuple[list[tuple[int, Rule]], float]] = []
    for i, rule in rules:
        cost = work.cost(rule)
        if bundles and bundles[-1][1] + cost <= TASK_NS:
            bundles[-1] = [*bundles[-1][0], (i, rule)], bundles[-1][1] + cost
        else:
            bundles.append(([(i, rule)], cost))
    return bundles


def compare_part(payload: Payload) -> bytes:
    """The violations of some rules, on pairs of a part of the rows of one segment with rows of another.

    In both directions; of rows of one segment with each other (`within`), of all their ordered pairs.
    """
    place = _Place.of(payload)
    numbers, counts = [], []
    pairs = [np.empty((0, 3), dtype=np.int64)]
    for i, fields, tell in payload["rules"]:
        rule = Rule.from_dict(fields)
        mirrored = rule.mirrored
        alike = set(rule.predicates) == set(mirrored.predicates)
        total = 0
        for t_is_left in (True, False):
            if not t_is_left and (place.within or alike):
                break
            matches = place.count(rule if t_is_left else mirrored, tell)
            total += matches.total * (2 if alike and not place.within else 1)
            ids = np.stack(
                [
                    place.source.row_ids(place.positions[matches.pairs[:, 0]]),
                    place.segment.row_ids(matches.pairs[:, 1]),
                ],
                axis=1,
            )
            ids = chosen(ids if t_is_left else ids[:, ::-1])
            pairs.append(np.column_stack([np.full(len(ids), i), ids]))
        numbers.append(i)
        counts.append(total)
    return pack(
        {
            "rule": np.array(numbers, dtype=np.int64),
            "counts": np.array(counts, dtype=np.int64),
            "pairs": np.concatenate(pairs),
        },
        {},
    )


@dataclass(frozen=True)
class _Place:
    """What a task compares: rows `positions` of `source`, on the left, with rows of `segment`."""

    segment: Segment
    source: Segment
    positions: I64
    within: bool  # the rows are compared with each other
    among: I64 | None  # the rows of the segment; None: the live ones

    @classmethod
    def of(cls, payload: Payload) -> _Place:
        schema = parsed_schema(payload["schema"])
        segment, source = opened(payload, "segment", schema), opened(payload, "source", schema)
        positions = _positions(payload, "positions")
        if positions is None:
            positions = np.arange(source.ref.n_rows)
        part, n_parts = payload["part"], payload["n_parts"]
        first, last = (len(positions) * part // n_parts, len(positions) * (part + 1) // n_parts)
        within = payload.get("within", False)
        return cls(segment, source, positions[first:last], within, _positions(payload, "among"))

    @cached_property
    def rows(self) -> I32 | None:
        """The right rows; None: all rows of the segment."""
        if self.among is not None:
            return self.among.astype(np.int32)
        return np.flatnonzero(self.segment.live).astype(np.int32) if self.segment.ref.n_deleted else None

    def count(self, rule: Rule, tell: bool) -> Matches:
        """The pairs with a row of the source as t that violate a rule; some of them, if asked to tell."""
        segment = self.segment
        columns = [b for _, _, b in rule.predicates]
        compare = [(a, b) for a, _, b in rule.predicates]
        half_ranks = rule.asked(half_rank_rows(segment, self.source, self.positions, compare))
        n_codes = np.array([len(segment.dictionary(b)) + 1 for b in columns], dtype=np.int64)
        compared = Compared(half_ranks, rule.ops, segment.codes, np.array(columns, dtype=np.int64), n_codes)
        if self.within:
            return count_matches(compared, self.rows, self.positions)
        if self.among is not None:
            return count_matches(compared, self.rows)
        n_rows = segment.ref.n_live
        best = expected_cost(len(self.positions), n_rows, rule.ops)
        lists = None
        for p, b in enumerate(columns):
            if rule.ops[p] == EQ and b in segment.ref.indexed:
                candidate = _Lists.of(segment, b, half_ranks[p])
                cost = list_cost(candidate.starts, candidate.ends, len(columns) - 1)
                if cost < best:
                    best, lists = cost, (p, candidate)
        order = _order_for(segment, columns)
        if order is not None:
            n_dead = segment.ref.n_deleted
            chains = CHAIN_NS * len(self.positions) * (1 + len(order[1].chain_offsets))
            if chains + expected_cost(len(self.positions), n_dead, rule.ops) < best:
                return self._count_by_order(compared, *order, tell)
        if lists is None:
            return count_matches(compared, self.rows)
        p, equal = lists
        rest = [q for q in range(len(columns)) if q != p]
        compared = Compared(
            half_ranks[rest], tuple(rule.ops[q] for q in rest), segment.codes, compared.columns[rest],
            n_codes[rest],
        )  # fmt: skip
        live = segment.live if segment.ref.n_deleted else None
        return count_in_lists(compared, equal.positions, equal.starts, equal.ends, live)

    def _count_by_order(
        self, compared: Compared, predicates: tuple[int, int], index: OrderIndex, tell: bool
    ) -> Matches:
        """By an order index of all rows, less the deleted ones; with pairs if they are to be told."""
        p, q = predicates
        counts = order_index.count(
            index, compared.half_ranks[p], compared.half_ranks[q], SYMMETRIC[compared.ops[p]],
            SYMMETRIC[compared.ops[q]],
        )  # fmt: skip
        total = int(counts.sum())
        if self.segment.ref.deletes is not None:
            dead = np.array(read_deletes(self.segment.root, self.segment.ref.deletes), dtype=np.int32)
            total -= count_matches(compared, dead).total
        if not total or not tell:
            return Matches(total, NOTHING.pairs)
        live = self.segment.live if self.segment.ref.n_deleted else None
        pairs = first_matches(compared, np.flatnonzero(counts)[:SAMPLES].tolist(), live)
        if len(pairs) < min(total, SAMPLES):  # what these rows matched was deleted
            pairs = count_matches(compared, self.rows).pairs
        return Matches(total, pairs)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The rows of an indexed column that equal each left row: positions[starts[i]:ends[i]]."""

    positions: I32
    starts: I64
    ends: I64

    @classmethod
    def of(cls, segment: Segment, column: int, half_ranks: I32) -> _Lists:
        offsets, positions = segment.index(column)
        code = half_ranks >> 1
        here = (half_ranks & 1) == 0
        starts = np.where(here, offsets[code], 0).astype(np.int64)
        ends = np.where(here, offsets[np.minimum(code + 1, len(offsets) - 1)], 0).astype(np.int64)
        return cls(positions, starts, ends)


def _order_for(segment: Segment, columns: Sequence[int]) -> tuple[tuple[int, int], OrderIndex] | None:
    """An order index that answers the predicates, if they are one or two, and they in its order."""
    if not 1 <= len(columns) <= 2:
        return None
    p, q = (0, len(columns) - 1) if columns[0] <= columns[-1] else (len(columns) - 1, 0)
    for falling in (False, True):
        key = (columns[p], columns[q], falling)
        if key in segment.ref.ordered:
            return (p, q), segment.order(key)
    return None


def _positions(payload: Payload, name: str) -> I64 | None:
    if name not in payload:
        return None
    at: I64 = staged({**payload, "positions": payload[name]}, "positions").array("positions")
    return at
