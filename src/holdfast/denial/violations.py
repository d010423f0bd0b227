"""Rules that are watched: how many ordered pairs of rows violate a denial constraint, and a few of them.

A rule is a set of predicates (left column, operator, right column) that no two different rows t, s may
satisfy together: `t.left op s.right`. Law: violations(R + D) = violations(R) + those of pairs with a row of
D; so a batch costs deleted x (remaining and deleted) and inserted x (all), never the pairs of the table.

- `verify` counts all ordered pairs of live rows: by sorting, n log n. Where a rule has an equality, parts of
  the values are tasks; else pairs of parts of the segments.
- `changed` compares the rows that come or go with each segment: along the lists of an equality index, by an
  order index, or by a scan of the segment, whichever is expected to cost least.

A task returns a number and a few pairs for each rule. One job for all rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.evidence.half_ranks import half_rank_rows
from holdfast.core.rows.codes import texts_differ
from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.order_index import EQ, GE, GT, LE, LT, NE, SYMMETRIC, OrderIndex
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment, read_deletes
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.rows.tasks import all_opened, opened, parsed_schema, staged
from holdfast.core.store.bundle import Bundle, pack, unpack
from holdfast.core.words.schema import Schema
from holdfast.denial.kernels.rule_violations import (
    SAMPLES,  # told to callers, too
    Compared,
    Matches,
    chosen,
    count_in_lists,
    count_matches,
    expected_cost,
    first_matches,
    list_cost,
)

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]
Predicate = tuple[int, int, int]

# Expected nanoseconds of one core that are spent inline at most; from what on on all cores; by one task.
INLINE_NS = 1e10
WORTH_THREADS_NS = 2e7
TASK_NS = 2e7
# What a batch may cost before it is asked whether to count anew is cheaper.
RECOUNT_NS = 1e8
# Left rows of a task at least: a block of the scan.
TASK_ROWS = 512
MAX_PARTS = 64
# Rows of one part of a verification at most, and at least where it is divided among the cores.
PART_ROWS = 1 << 22
DIVIDE_ROWS = 1 << 17
# Nanoseconds to ask one chain of an order index for one row; to compare a row of a list in a predicate.
CHAIN_NS = 150.0
LISTED_NS = 5.0
# A column of so few values has long lists; an order index with it has no more chains than values.
FEW_VALUES = 64
# Rows that are looked at for a violation before all are.
SEARCHED_ROWS = 512
# Spreads codes over parts.
_ODD = np.int64(0x9E3779B1)

# The outcomes of comparing two values: less, equal, greater, NULL on one side. By operator, those that
# satisfy it. What two operators leave is what one says, or nothing.
_OUTCOMES = {EQ: 0b0010, NE: 0b1101, LT: 0b0001, LE: 0b0011, GT: 0b0100, GE: 0b0110}
_OPERATORS = {outcomes: op for op, outcomes in _OUTCOMES.items()}


@dataclass(frozen=True, slots=True)
class Rule:
    """What no two different rows t, s satisfy together: predicates (left, operator number, right).

    Columns are positions; operators are numbered as in `kernels.order_index`. Without predicates every
    ordered pair of rows violates it.
    """

    predicates: tuple[Predicate, ...]

    @property
    def mirrored(self) -> Rule:
        """The rule with t and s exchanged."""
        return Rule(tuple((right, SYMMETRIC[op], left) for left, op, right in self.predicates))

    @property
    def reduced(self) -> Rule | None:
        """The same with one predicate for each pair of columns; None if no two values satisfy those of one.

        >>> Rule(((0, LE, 1), (0, NE, 1))).reduced == Rule(((0, LT, 1),))
        True
        >>> Rule(((0, LT, 0), (0, GT, 0))).reduced
        """
        left: dict[tuple[int, int], int] = {}
        for a, op, b in self.predicates:
            left[a, b] = left.get((a, b), 0b1111) & _OUTCOMES[op]
        if not all(left.values()):
            return None
        return Rule(tuple((a, _OPERATORS[outcomes], b) for (a, b), outcomes in left.items()))

    @property
    def ops(self) -> tuple[int, ...]:
        return tuple(op for _, op, _ in self.predicates)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """n_violations: the number of ordered pairs that violate a rule; pairs int64[k, 2]: row ids (t, s) of
    up to SAMPLES of them, of none only if there is none."""

    n_violations: int
    pairs: I64


NOTHING = Found(0, np.empty((0, 2), dtype=np.int64))


# -- all pairs ---------------------------------------------------------------------------------


def verify(relation: Relation, rules: Sequence[Rule]) -> list[Found]:
    """The violations of each rule among all ordered pairs of different live rows; one job.

    Cost: n log n for rules with at most two predicates beside equalities; each further `!=` doubles it, and
    further inequalities multiply it by log n.
    """
    return _verified(relation, rules, 0)


def _verified(relation: Relation, rules: Sequence[Rule], sample: int) -> list[Found]:
    """Of so many left rows of each part alone, unless it is 0."""
    live = [s for s in relation.segments if s.n_live]
    n_rows = relation.n_rows
    payloads: list[Payload] = []
    of_rule: list[int] = []
    work = 0.0
    for i, rule in enumerate(rules):
        reduced = rule.reduced
        if reduced is None or n_rows < 2:
            continue
        fields: list[Payload] = []
        if EQ in reduced.ops and not sample:
            n_parts = -(-n_rows // PART_ROWS)
            n_parts = max(n_parts, min(relation.engine.cores, n_rows // DIVIDE_ROWS))
            segments = [s.to_dict() for s in live]
            fields = [{"segments": segments, "part": p, "n_parts": n_parts} for p in range(n_parts)]
            work += n_parts * expected_cost(n_rows // n_parts, n_rows // n_parts, reduced.ops)
        else:
            bins = _bins(live)
            for left in bins:
                for right in bins:
                    both = left if left is right else [*left, *right]
                    segments = [s.to_dict() for s in both]
                    fields.append({"segments": segments, "n_left": len(left), "sample": sample})
                    n_left = sample or sum(s.n_live for s in left)
                    work += expected_cost(n_left, sum(s.n_live for s in right), reduced.ops)
        payloads += [relation.payload(**f, rule=reduced.predicates) for f in fields]
        of_rule += [i] * len(fields)
    totals, pairs = [0] * len(rules), [NOTHING.pairs for _ in rules]
    for i, result in zip(of_rule, _run(relation, count_part, payloads, work), strict=True):
        totals[i] += int(result.array("counts")[0])
        pairs[i] = np.concatenate([pairs[i], result.array("pairs").reshape(-1, 3)[:, 1:]])
    return [Found(n, chosen(p)) for n, p in zip(totals, pairs, strict=True)]


def _bins(segments: Sequence[SegmentRef]) -> list[list[SegmentRef]]:
    """Segments that are compared together: PART_ROWS rows, or one segment with more."""
    bins: list[list[SegmentRef]] = []
    room = 0
    for ref in sorted(segments, key=lambda s: s.n_rows):
        if room < ref.n_rows:
            bins.append([])
            room = PART_ROWS
        bins[-1].append(ref)
        room -= ref.n_rows
    return bins


def _run(relation: Relation, task: Any, payloads: list[Payload], work: float) -> list[Bundle]:
    results = relation.engine.run(
        task,
        payloads,
        where=relation.engine.choose(work, INLINE_NS),
        progress=relation.progress,
        parallel=work > WORTH_THREADS_NS,
    )
    return [unpack(r) for r in results]


def count_part(payload: Payload) -> bytes:
    """The violations of one rule, on a part of the rows of some segments.

    A part of the values of its equalities; or left rows of the first `n_left` segments with right rows of the
    others, or, if these are all, with all. `sample`: only so many left rows, evenly spread.
    """
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    rule = Rule(tuple((a, op, b) for a, op, b in payload["rule"]))
    codes, place, n_codes = common_codes(segments, rule)
    starts = np.cumsum([0, *(s.ref.n_rows for s in segments)])
    left = right = np.concatenate([s.live for s in segments])
    n_left = payload.get("n_left", len(segments))
    if n_left < len(segments):
        first = np.arange(starts[-1]) < starts[n_left]
        left, right = left & first, right & ~first
    if payload.get("n_parts", 1) > 1:
        # A row's left values are in one part, its right values perhaps in another.
        equal = [(place[a], place[b]) for a, op, b in rule.predicates if op == EQ]
        left = left & (_part_of(codes, [a for a, _ in equal], payload["n_parts"]) == payload["part"])
        right = right & (_part_of(codes, [b for _, b in equal], payload["n_parts"]) == payload["part"])
    mine = np.flatnonzero(left)
    if payload.get("sample") and len(mine) > payload["sample"]:
        mine = mine[np.linspace(0, len(mine) - 1, payload["sample"]).astype(np.int64)]
    columns = [place[b] for _, _, b in rule.predicates]
    half_ranks = np.empty((len(columns), len(mine)), dtype=np.int32)
    for p, (a, _, _) in enumerate(rule.predicates):
        np.multiply(codes[place[a]][mine], 2, out=half_ranks[p])
    compared = Compared(
        half_ranks, rule.ops, codes, np.array(columns, dtype=np.int64), n_codes[columns].astype(np.int64)
    )
    rows = None if right.all() else np.flatnonzero(right).astype(np.int32)
    twins = np.where(right[mine], mine, -1)
    found = count_matches(compared, rows, twins if (twins >= 0).any() else None)
    ids = np.zeros((len(found.pairs), 3), dtype=np.int64)
    for side, positions in ((1, mine[found.pairs[:, 0]]), (2, found.pairs[:, 1])):
        at = np.searchsorted(starts, positions, side="right") - 1
        for k in np.unique(at).tolist():
            ids[at == k, side] = segments[k].row_ids(positions[at == k] - starts[k])
    return pack({"counts": np.array([found.total]), "pairs": ids}, {})


def _part_of(codes: I32, columns: Sequence[int], n_parts: int) -> I64:
    """The part of each row, by its values."""
    key = np.zeros(codes.shape[1], dtype=np.int64)
    for c in columns:
        key = (key + codes[c]) * _ODD
    return (key >> np.int64(16)) % n_parts


def common_codes(segments: Sequence[Segment], rule: Rule) -> tuple[I32, dict[int, int], I64]:
    """(codes, place, n_codes): the rows of all segments, in codes that are common to all columns compared.

    codes int32[k, n]: row place[c] has column c; n_codes int64[k]: codes are below it. Cost: a sort of the
    distinct values, and a pass; nothing for one segment and columns compared with themselves.
    """
    # Columns that are compared, directly or by way of others, have one dictionary.
    families: dict[int, set[int]] = {}
    for a, _, b in rule.predicates:
        joined = families.get(a, {a}) | families.get(b, {b})
        families |= dict.fromkeys(joined, joined)
    columns = sorted(families)
    if len(segments) == 1 and all(len(f) == 1 for f in families.values()):
        only = segments[0]
        sizes = [len(only.dictionary(c)) + 1 if c in families else 0 for c in range(len(only.schema))]
        return only.codes, {c: c for c in columns}, np.array(sizes)
    place = {c: i for i, c in enumerate(columns)}
    starts = np.cumsum([0, *(s.ref.n_rows for s in segments)])
    codes = np.empty((len(columns), starts[-1]), dtype=np.int32)
    n_codes = np.zeros(len(columns), dtype=np.int64)
    for family in {frozenset(f) for f in families.values()}:
        parts = [(s, c) for s in range(len(segments)) for c in sorted(family)]
        dictionaries = [segments[s].dictionary(c) for s, c in parts]
        ends = np.cumsum([0, *map(len, dictionaries)])
        distinct, first, numbers = np.unique(
            np.concatenate(dictionaries), return_index=True, return_inverse=True
        )
        size = len(distinct)
        texts = [segments[s].texts(c) for s, c in parts]
        if texts[0] is not None:
            everything = pa.concat_arrays(texts)
            if texts_differ(everything, everything.take(pa.array(first[numbers]))).any():
                encoded = everything.dictionary_encode()  # two texts share a code
                numbers, size = encoded.indices.to_numpy(), len(encoded.dictionary)
        for k, (s, c) in enumerate(parts):
            table = np.zeros(len(dictionaries[k]) + 1, dtype=np.int32)
            table[1:] = numbers[ends[k] : ends[k + 1]] + 1
            codes[place[c], starts[s] : starts[s + 1]] = table[segments[s].codes[c]]
            n_codes[place[c]] = size + 1
    return codes, place, n_codes


# -- pairs of a batch --------------------------------------------------------------------------


def changed(
    before: Relation,
    remaining: Relation,
    after: Relation,
    row_ids: I64,
    added: Sequence[SegmentRef],
    rules: Sequence[Rule],
    known: Sequence[Found],
) -> list[Found]:
    """The violations of each rule after a batch, from those before it; one job, seldom one or two more.

    The batch deleted the rows `row_ids` of `before`, which left `remaining`, and added segments, which made
    `after`. Known pairs of live rows are kept, and new ones added to them. Only if no pair is left of a rule
    that is still violated is one looked for: in a few rows, then in all.

    Cost: by the batch's rows and the lists or chains of an index; else (rows / 512) * table a predicate. What
    a large batch would take longer to compare than `verify` to count is counted anew.
    """
    work = [*_deleted(before, remaining, row_ids), *_inserted(remaining, added)]
    kept = [one.pairs[~np.isin(one.pairs, row_ids).any(axis=1)] for one in known]
    counts = np.array([one.n_violations for one in known], dtype=np.int64)
    told = [[mine] for mine in kept]
    payloads: list[Payload] = []
    signs: list[int] = []
    total = 0.0
    compared, recounted = _divided(rules, work, after.n_rows)
    for each in work:
        for some, cost in _bundled(compared, each):
            n_parts = max(1, min(MAX_PARTS, int(cost / TASK_NS), each.n_left // TASK_ROWS))
            asked = [(i, r.predicates, each.sign > 0 and len(kept[i]) < SAMPLES) for i, r in some]
            payload = after.payload(**each.fields, rules=asked, n_parts=n_parts)
            payloads += [{**payload, "part": p} for p in range(n_parts)]
            signs += [each.sign] * n_parts
            total += cost
    for sign, result in zip(signs, _run(after, compare_part, payloads, total), strict=True):
        counts[result.array("rule")] += sign * result.array("counts")
        pairs = result.array("pairs").reshape(-1, 3)
        for i in np.unique(pairs[:, 0]).tolist() if sign > 0 else ():
            told[i].append(pairs[pairs[:, 0] == i, 1:])
    for i, one in zip(recounted, _verified(after, [rules[i] for i in recounted], 0), strict=True):
        counts[i] = one.n_violations
        told[i].append(one.pairs)
    for sample in (SEARCHED_ROWS, 0):
        lost = [i for i, n in enumerate(counts.tolist()) if n and not any(map(len, told[i]))]
        for i, one in zip(lost, _verified(after, [rules[i] for i in lost], sample), strict=True):
            told[i].append(one.pairs)
    return [Found(n, chosen(np.concatenate(p))) for n, p in zip(counts.tolist(), told, strict=True)]


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
    gone = []
    for ref in before.segments if len(row_ids) else ():
        at = open_segment(before.root, ref, before.schema).positions(row_ids)
        at = np.sort(at[at >= 0])
        if len(at):
            gone.append((ref, remaining.stage("positions", positions=at.astype(np.int64)), len(at)))
    work: list[_Work] = []
    for i, (ref, mine, n) in enumerate(gone):
        source: Payload = {"source": ref.to_dict(), "positions": mine}
        for segment in remaining.segments:
            if segment.n_live:
                fields = {**source, "segment": segment.to_dict()}
                work.append(_Work(fields, n, segment.n_live, -1, segment))
        for other, among, m in gone[:i]:
            fields = {**source, "segment": other.to_dict(), "among": among}
            work.append(_Work(fields, n, m, -1, other))
        fields = {**source, "segment": ref.to_dict(), "among": mine, "own": True}
        work.append(_Work(fields, n, n, -1, ref))
    return work


def _inserted(remaining: Relation, added: Sequence[SegmentRef]) -> list[_Work]:
    """Inserted rows with the remaining ones, and with each other."""
    work: list[_Work] = []
    for i, part in enumerate(added):
        for segment in [*remaining.segments, *added[:i]]:
            if segment.n_live:
                fields = {"segment": segment.to_dict(), "source": part.to_dict()}
                work.append(_Work(fields, part.n_rows, segment.n_live, 1, segment))
        own = {"segment": part.to_dict(), "source": part.to_dict(), "own": True}
        work.append(_Work(own, part.n_rows, part.n_rows, 1, part))
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

    In both directions; of rows of the segment itself (`own`), of all their ordered pairs.
    """
    place = _Place.of(payload)
    numbers, counts = [], []
    pairs = [np.empty((0, 3), dtype=np.int64)]
    for i, predicates, tell in payload["rules"]:
        rule = Rule(tuple((a, op, b) for a, op, b in predicates))
        mirrored = rule.mirrored
        alike = set(rule.predicates) == set(mirrored.predicates)
        total = 0
        for t_is_mine in (True, False):
            if not t_is_mine and (place.own or alike):
                break
            found = place.count(rule if t_is_mine else mirrored, tell)
            total += found.total * (2 if alike and not place.own else 1)
            ids = np.stack(
                [
                    place.source.row_ids(place.positions[found.pairs[:, 0]]),
                    place.segment.row_ids(found.pairs[:, 1]),
                ],
                axis=1,
            )
            ids = chosen(ids if t_is_mine else ids[:, ::-1])
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
    own: bool
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
        own = payload.get("own", False)
        return cls(segment, source, positions[first:last], own, _positions(payload, "among"))

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
        half_ranks = half_rank_rows(segment, self.source, self.positions, compare)
        n_codes = np.array([len(segment.dictionary(b)) + 1 for b in columns], dtype=np.int64)
        compared = Compared(half_ranks, rule.ops, segment.codes, np.array(columns, dtype=np.int64), n_codes)
        if self.own:
            return count_matches(compared, self.rows, self.positions)
        if self.among is not None:
            return count_matches(compared, self.rows)
        n_rows = segment.ref.n_live
        best = expected_cost(len(self.positions), n_rows, rule.ops)
        lists = None
        for p, b in enumerate(columns):
            if rule.ops[p] == EQ and b in segment.ref.indexed:
                found = _Lists.of(segment, b, half_ranks[p])
                cost = list_cost(found.starts, found.ends, len(columns) - 1)
                if cost < best:
                    best, lists = cost, (p, found)
        order = _order_for(segment, columns)
        if order is not None:
            n_dead = segment.ref.n_deleted
            chains = CHAIN_NS * len(self.positions) * (1 + len(order[1].chain_offsets))
            if chains + expected_cost(len(self.positions), n_dead, rule.ops) < best:
                return self._count_by_order(compared, *order, tell)
        if lists is None:
            return count_matches(compared, self.rows)
        p, found = lists
        rest = [q for q in range(len(columns)) if q != p]
        compared = Compared(
            half_ranks[rest], tuple(rule.ops[q] for q in rest), segment.codes, compared.columns[rest],
            n_codes[rest],
        )  # fmt: skip
        live = segment.live if segment.ref.n_deleted else None
        return count_in_lists(compared, found.positions, found.starts, found.ends, live)

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


# -- indexes -----------------------------------------------------------------------------------


def wanted_indexes(
    rules: Sequence[Rule], schema: Schema, distinct: Sequence[int]
) -> tuple[tuple[int, ...], tuple[OrderKey, ...]]:
    """(columns, orders): the indexes that make batches cheap: equality indexes of columns, order indexes.

    IN distinct: about how many values each column has. A rule with an equality wants the lists of the one
    with most values, on both sides. One or two predicates are counted by an order index of their columns,
    where lists would be long: its direction is the one that has few chains when the rule holds, or almost.
    More predicates than two are scanned for.
    """
    columns: set[int] = set()
    orders: set[OrderKey] = set()
    for rule in rules:
        reduced = rule.reduced
        if reduced is None or not reduced.predicates:
            continue
        predicates = reduced.predicates
        if not all(0 <= c < len(schema) for a, _, b in predicates for c in (a, b)):
            raise ValueError(f"a rule of columns that a table of {len(schema)} has not: {predicates}")
        values = [(min(distinct[a], distinct[b]), a, b) for a, op, b in predicates if op == EQ]
        most, a, b = max(values, default=(0, 0, 0))
        if most > FEW_VALUES or (values and len(predicates) > 2):
            columns |= {a, b}
        elif len(predicates) <= 2:
            first, last = predicates[0], predicates[-1]
            rising = [op in (GT, GE) for _, op, _ in (first, last)]
            falling = rising[0] == rising[1] and not {EQ, NE} & {first[1], last[1]}
            for side in (0, 2):
                x, y = sorted((first[side], last[side]))
                orders.add((x, y, falling and x != y))
    return tuple(sorted(columns)), tuple(sorted(orders))
