"""What an access to pairs of rows costs, in ns of one core for each batch row (see `access.py`).

Costs follow from shares of pairs: how many a source gives, and how many are found. They are measured on a
sample of pairs. Sets of constraints, and of pairs of the sample, are bits, one array for each predicate: to
count those that satisfy some predicates is to intersect a few arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.masks import n_words_for, transposed
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE, SYMMETRIC
from holdfast.core.rows.table_state import OrderKey
from holdfast.core.words.column_sets import bits_of, masks_of
from holdfast.core.words.predicate import IMPLIED, OPERATORS, PredicateSpace
from holdfast.denial.access.access import (
    KINDS,
    Access,
    Kind,
    Numbers,
    PairSample,
    Question,
    Selection,
    Statistics,
)

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bits = NDArray[np.uint64]  # one bit for each constraint (or each pair), in words
Bool = NDArray[np.bool_]
Folded = Callable[[tuple[int, ...]], int]

# ns of one core, measured on tables of 15 columns (benchmarks/dc_indexes.py): to ask a posting list, or one
# chain of an order index; a row of a list that is walked; a row that an order index gives; to compare it on
# the other predicates of an access; a pair found, for each group of its evidence; a row that is scanned.
ASKED_NS = 140.0
WALKED_NS = 4.0
FETCHED_NS = 4.0
COMPARED_NS = 4.0
FOUND_NS = 4.0
SCANNED_NS = 4.0
# So many pairs of the sample are looked at.
PAIRS_SEEN = 1 << 16

UP, DOWN = (GT, GE), (LT, LE)


# --- Sets as bits ----------------------------------------------------------------------------------------


def flags(bits: Bits, n: int) -> Bool:
    """bool[n]: the bits one by one."""
    return bits_of(bits[None], n).reshape(-1)


def as_bits(chosen: Bool) -> Bits:
    """The inverse of `flags`."""
    return masks_of(chosen[None], n_words_for(len(chosen))).reshape(-1)


def size(bits: Bits) -> int:
    """How many are set."""
    return int(np.bitwise_count(bits).sum())


class Family:
    """Sets of predicates (constraints, or evidences), by predicate: which of them have it."""

    def __init__(self, masks: U64, space: PredicateSpace) -> None:
        self.n = len(masks)
        self.members = transposed(masks, space.n_predicates)
        self.everyone = as_bits(np.ones(self.n, dtype=np.bool_))

    def having(self, columns: Bits, predicates: Iterable[int]) -> Bits:
        """Those with all of the predicates, by `columns`: bits of each predicate."""
        bits = self.everyone.copy()
        for p in predicates:
            bits &= columns[p]
        return bits


class Cover(Family):
    """The constraints, and what follows from each of their predicates."""

    def __init__(self, masks: U64, space: PredicateSpace) -> None:
        super().__init__(masks, space)
        self.masks, self.space = masks, space
        self.closed = self.members.copy()
        for p, predicate in enumerate(space.predicates):
            group = space.groups[space.group_of[p]]
            for op in IMPLIED[predicate.op]:
                if op in group.operators:
                    self.closed[space.first[space.group_of[p]] + OPERATORS.index(op)] |= self.members[p]

    def chosen(self, at: I64) -> Cover:
        return Cover(self.masks[at], self.space)

    def serves(self, predicates: Numbers) -> Bits:
        """The constraints from which the predicates follow, or their mirror images."""
        mirrored = self.mirrored(predicates)
        straight = self.having(self.closed, predicates)
        return straight if mirrored == predicates else straight | self.having(self.closed, mirrored)

    def mirrored(self, predicates: Iterable[int]) -> Numbers:
        return tuple(sorted(self.space.mirror[p] for p in predicates))

    def canonical(self, predicates: Iterable[int]) -> Numbers:
        ascending = tuple(sorted(predicates))
        return min(ascending, self.mirrored(ascending))

    def predicates_in(self, dcs: Bits) -> list[int]:
        """The predicates of these constraints together."""
        return [int(p) for p in np.flatnonzero((self.members & dcs).any(axis=1))]

    def columns_in(self, dcs: Bits, positions: Mapping[str, int]) -> tuple[int, ...]:
        predicates = [self.space.predicates[p] for p in self.predicates_in(dcs)]
        return tuple(sorted({positions[name] for p in predicates for name in (p.left, p.right)}))


# --- What an access costs --------------------------------------------------------------------------------


def _listed_pairs(sample: PairSample) -> U64:
    """Masks, each as often as it was counted; of a large sample PAIRS_SEEN drawn from it, always the same."""
    counts = np.asarray(sample.counts, dtype=np.int64)
    total = int(counts.sum())
    if total > PAIRS_SEEN:
        ends = np.cumsum(counts)
        places = np.sort(np.random.default_rng(0).integers(0, total, PAIRS_SEEN))
        return sample.masks[np.searchsorted(ends, places, side="right")]
    return np.repeat(sample.masks, counts, axis=0)


class Draft(NamedTuple):
    """An access to be."""

    source: Numbers
    predicates: Numbers


SCAN = Draft((), ())


class Prices:
    """Selectivities and costs of accesses, in ns a batch row."""

    def __init__(self, cover: Cover, statistics: Statistics, folded: Folded | None = None) -> None:
        self.cover, self.space, self.statistics = cover, cover.space, statistics
        self.positions = {name: i for i, name in enumerate(statistics.names)}
        self.left = [self.positions[p.left] for p in self.space.predicates]
        self.right = [self.positions[p.right] for p in self.space.predicates]
        self.evidence_ns = FOUND_NS * len(self.space.groups)
        self._folded: Folded = folded or statistics.folded
        self._shares: dict[Numbers, float] = {}
        self._scans: dict[tuple[int, ...], float] = {}
        sample = statistics.pairs
        listed = np.empty((0, 1), np.uint64) if sample is None else _listed_pairs(sample)
        self.pairs = Family(listed, self.space) if len(listed) else None

    # -- selectivity

    def share(self, predicates: Numbers) -> float:
        """The share of the ordered pairs that satisfy the predicates; of their mirror images, it is the same.

        Measured if there is a sample of pairs, the mean of both directions. What no pair of the sample has
        is taken for half a pair, or less if columns have as many values.
        """
        canonical = self.cover.canonical(predicates)
        if canonical not in self._shares:
            self._shares[canonical] = self._share(canonical)
        return self._shares[canonical]

    def _share(self, predicates: Numbers) -> float:
        if not predicates:
            return 1.0
        if self.pairs is None:
            return self._estimated(predicates)
        both = (predicates, self.cover.mirrored(predicates))
        n_pairs = sum(size(self.pairs.having(self.pairs.members, numbers)) for numbers in both)
        if n_pairs:
            return n_pairs / (2 * self.pairs.n)
        return min(0.5 / self.pairs.n, self._estimated(predicates))

    def _estimated(self, predicates: Numbers) -> float:
        """As if columns were independent and their values equally frequent; of two inequalities by r: the
        chance that two normal variables with that correlation have the asked signs."""
        ops = [self.space.op_of[p] for p in predicates]
        if len(predicates) == 2 and all(op in UP + DOWN for op in ops):
            r = float(self.statistics.correlation[self.left[predicates[0]], self.left[predicates[1]]])
            turned = r if (ops[0] in UP) == (ops[1] in UP) else -r
            return max(0.25 + math.asin(turned) / (2 * math.pi), 1.0 / max(1, self.statistics.n_rows))
        share = 1.0
        for p, op in zip(predicates, ops, strict=True):
            n_values = int(self.statistics.n_distinct[[self.left[p], self.right[p]]].max())
            same = 1.0 / max(1, n_values)
            either_way = 0.5 - same / 2 if op in (LT, GT) else 0.5 + same / 2
            share *= same if op == EQ else 1 - same if op == NE else either_way
        return share

    # -- costs

    def kind(self, draft: Draft) -> Kind:
        if len(draft.source) == 2:
            return "order"
        if not draft.source:
            return "scan"
        return "equality" if self.space.op_of[draft.source[0]] == EQ else "column"

    def source_cost(self, source: Numbers) -> float:
        """Of one direction: to ask, and to get what the index gives."""
        n_given = self.share(source) * self.statistics.n_rows
        if len(source) == 2:
            chains = float(self.statistics.ranks[self.right[source[0]], self.right[source[1]]])
            return ASKED_NS * chains + FETCHED_NS * n_given
        return ASKED_NS + (WALKED_NS if self.space.op_of[source[0]] == EQ else FETCHED_NS) * n_given

    def source_costs(self, draft: Draft) -> dict[Numbers, float]:
        """The sources of both directions with their costs; one if they are the same."""
        cost = self.source_cost(draft.source)
        if self.directions(draft) == 1:
            return {draft.source: cost}
        return {draft.source: cost, self.cover.mirrored(draft.source): cost}

    def directions(self, draft: Draft) -> int:
        return 1 if self.cover.mirrored(draft.predicates) == draft.predicates else 2

    def compare_cost(self, draft: Draft) -> float:
        """To compare what the source gives."""
        share = self.share(draft.source) if draft.source != draft.predicates else 0.0
        return COMPARED_NS * self.directions(draft) * share * self.statistics.n_rows

    def evidence_cost(self, share: float) -> float:
        """The evidence of a share of the pairs."""
        return self.evidence_ns * min(share, 1.0) * self.statistics.n_rows

    def found_share(self, draft: Draft) -> float:
        """The share of the pairs of a batch row and an old row that it finds, in either direction."""
        return min(1.0, self.directions(draft) * self.share(draft.predicates))

    def met(self, draft: Draft) -> Bits:
        """The pairs of the sample that it finds; none where there is no sample."""
        if self.pairs is None:
            return np.zeros(1, dtype=np.uint64)
        straight = self.pairs.having(self.pairs.members, draft.predicates)
        return straight | self.pairs.having(self.pairs.members, self.cover.mirrored(draft.predicates))

    def new_share(self, draft: Draft, met: Bits, before: Bits) -> float:
        """As `found_share`, without what other accesses find as well; IN bits of pairs of the sample."""
        if self.pairs is None or not met.any():
            return self.found_share(draft)
        return size(met & ~before) / self.pairs.n

    def cost(self, draft: Draft) -> float:
        asking = sum(self.source_costs(draft).values())
        return asking + self.compare_cost(draft) + self.evidence_cost(self.found_share(draft))

    def scan(self, dcs: Bits) -> float:
        """To scan for these constraints, all at once."""
        if not dcs.any():
            return 0.0
        columns = self.cover.columns_in(dcs, self.positions)
        if columns not in self._scans:
            self._scans[columns] = SCANNED_NS * min(self._folded(columns), self.statistics.n_rows)
        return self._scans[columns]

    def total(self, drafts: Sequence[Draft], scanned: Bits) -> float:
        """Of some accesses together, and a scan: what several ask is asked once, and what several find is
        found once."""
        sources: dict[Numbers, float] = {}
        total = self.scan(scanned)
        for draft in drafts:
            total += self.compare_cost(draft)
            sources |= self.source_costs(draft)
        return total + sum(sources.values()) + self.evidence_cost(self._share_together(drafts))

    def _share_together(self, drafts: Sequence[Draft]) -> float:
        if self.pairs is None:
            return sum(self.found_share(draft) for draft in drafts)
        together = np.zeros_like(self.pairs.everyone)
        unseen = 0.0
        for draft in drafts:
            met = self.met(draft)
            together |= met
            unseen += 0.0 if met.any() else self.found_share(draft)
        return size(together) / self.pairs.n + unseen

    # -- the paper's scores

    def equality_score(self, p: int) -> float:
        """1 - distinct values / rows, of the worse of both columns."""
        return 1 - min(self.distinct_ratio(self.left[p]), self.distinct_ratio(self.right[p]))

    def distinct_ratio(self, column: int) -> float:
        return float(self.statistics.n_distinct[column]) / max(1, self.statistics.n_rows)

    def strength(self, one: int, other: int) -> float:
        """|r| of the columns of two predicates; across columns there are two indexes, the weaker counts."""
        r = self.statistics.correlation
        sides = (self.left, self.right)
        return float(min(abs(r[side[one], side[other]]) for side in sides))


# --- From drafts to a selection --------------------------------------------------------------------------


def selection(
    cover: Cover,
    prices: Prices,
    drafts: Sequence[Draft],
    served: I32,
    falling: Mapping[tuple[int, int], bool],
) -> Selection:
    """The accesses in their order, with all that is told of them. served IN int32[k]: numbers of drafts."""
    n_served = np.bincount(served, minlength=len(drafts))
    scanned = np.zeros_like(cover.everyone)
    if SCAN in drafts:
        scanned = as_bits(served == drafts.index(SCAN))
    used = [i for i in range(len(drafts)) if n_served[i]]
    used.sort(key=lambda i: (KINDS.index(prices.kind(drafts[i])), -int(n_served[i]), drafts[i]))
    place = np.zeros(len(drafts), dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    accesses = tuple(_access(cover, prices, drafts[i], int(n_served[i]), scanned, falling) for i in used)
    total = prices.total([drafts[i] for i in used if drafts[i] != SCAN], scanned)
    return Selection(
        accesses, place[served], total, prices.scan(cover.everyone), cover.space, prices.statistics.names
    )


def _access(
    cover: Cover,
    prices: Prices,
    draft: Draft,
    n_served: int,
    scanned: Bits,
    falling: Mapping[tuple[int, int], bool],
) -> Access:
    kind, coverage = prices.kind(draft), size(cover.serves(draft.predicates))
    questions = () if kind == "scan" else tuple(_questions(prices, draft, falling))
    score: float | None = None
    if kind == "equality":
        score = prices.equality_score(draft.source[0])
    elif kind == "order":
        score = (1 - prices.strength(*draft.source)) / max(1, size(cover.serves(draft.source)))
    if kind == "scan":
        columns = cover.columns_in(scanned, prices.positions)
    else:
        columns = () if kind == "order" else tuple(sorted({q.old[0] for q in questions}))
    return Access(
        kind=kind,
        source=draft.source,
        predicates=draft.predicates,
        groups=tuple(cover.space.group_of[p] for p in draft.predicates),
        ops=tuple(cover.space.op_of[p] for p in draft.predicates),
        questions=questions,
        columns=columns,
        orders=tuple(sorted({q.key for q in questions if q.key is not None})),
        coverage=coverage,
        n_served=n_served,
        selectivity=prices.share(draft.predicates),
        source_selectivity=prices.share(draft.source),
        score=score,
        cost_ns=prices.scan(scanned) if kind == "scan" else prices.cost(draft),
    )


def _questions(prices: Prices, draft: Draft, falling: Mapping[tuple[int, int], bool]) -> Iterator[Question]:
    """t is the batch row: `t.A op s.B` asks for old rows with `s.B SYMMETRIC[op] t.A`."""
    mirrored = Draft(prices.cover.mirrored(draft.source), prices.cover.mirrored(draft.predicates))
    for source, predicates in dict.fromkeys((draft, mirrored) if mirrored[1] != draft[1] else (draft,)):
        # By old column: so do the columns of an order index ascend.
        first = sorted(source, key=lambda p: (prices.right[p], prices.left[p]))
        parts = first + [p for p in predicates if p not in source]
        old = tuple(prices.right[p] for p in parts)
        key: OrderKey | None = None
        if len(source) == 2:
            key = (old[0], old[1], falling.get((old[0], old[1]), prices.statistics.falling(old[0], old[1])))
        ops = tuple(SYMMETRIC[prices.space.op_of[p]] for p in parts)
        yield Question(tuple(prices.left[p] for p in parts), old, ops, len(source), key)
