"""Which indexes serve the denial constraints of a cover, at the least total cost.

What an index does, and that every constraint needs one that serves it: `access.py`. IncDC's own choice:
`paper_selection.py`.

`select` goes past that. The paper's scores know columns, but not what a pair of predicates lets through, nor
that many indexes may cost more than to compare all rows. Here each access has a cost (`costs.py`),
and accesses of a small total are sought (a weighted set cover, greedy). An index whose selectivity is poor
serves nobody. The result is never dearer than that of `select_index`, nor than a scan. Both are functions of
their arguments alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE
from holdfast.core.words.predicate import OPERATORS, PredicateSpace
from holdfast.denial.access.access import Numbers, Selection, Statistics
from holdfast.denial.access.costs import (
    COMPARED_NS,
    SCAN,
    Bits,
    Cover,
    Draft,
    Folded,
    Prices,
    as_bits,
    flags,
    selection,
    size,
)
from holdfast.denial.access.paper_selection import PaperSelection

U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]
Compares = Literal["equal", "any"]

# The search for accesses: so many constraints are looked at; of the sources so many grow, the cheapest for
# each constraint, by so many predicates, each time in so many ways; all that anew when half of the
# constraints are served, so many times. Accesses are taken up to so many times the cost of a scan, as they
# may be pruned to less; one that finds pairs for so large a share of the total may be split.
CONSTRAINTS_SEEN = 1 << 13
ROOTS = 32
GROWTH = 2
BRANCHES = 3
ROUNDS = 16
SPENT = 4.0
WORTH_SPLITTING = 0.05

# From what says most to what says least.
_STRICTEST = (EQ, LT, GT, LE, GE, NE)


def select(
    cover: U64,
    space: PredicateSpace,
    statistics: Statistics,
    folded: Folded | None = None,
    compares: Compares = "any",
) -> Selection:
    """Accesses for all constraints at a small total cost; see the head of this module.

    cover IN uint64[k, n_words]: masks of predicates, each constraint or its mirror image. folded: how many
    different rows there are on some columns (positions); by default `Statistics.folded`. compares: what the
    probe compares of the pairs that a source gives: "any" predicates, or only "equal" ones beside one that is
    (an access is then a set of `=`, two predicates, or one).

    Accesses are taken by cost for each constraint newly served; for each length of that list, what is left is
    scanned, and the cheapest length stays. Those that are dearer than to scan what they alone serve go again.
    Last, each access compares all that its constraints have in common. Law: the total is at most that of
    `select_index`, and at most that of a scan.

    Cost: passes over a bit a constraint, and over one a pair of the sample, for some thousands of candidates:
    0.3 s for 31 constraints (38 predicates), 1 s for 5,458 (58), 3 s for 468,986 (66); a third with "equal".
    """
    dcs = Cover(cover, space)
    prices = Prices(dcs, statistics, folded)
    cheapest = _Greedy(dcs, prices, compares).selected()
    paper = PaperSelection(dcs, prices).selected()
    return paper if paper.cost_ns < cheapest.cost_ns else cheapest


class _Grown(NamedTuple):
    """A draft, with what satisfies it, and its mirror image: constraints, and pairs of the sample."""

    draft: Draft
    dcs: tuple[Bits, ...]
    met: tuple[Bits, ...] | None


class _Greedy:
    """A search for accesses of a small total cost."""

    def __init__(self, cover: Cover, prices: Prices, compares: Compares) -> None:
        self.cover, self.prices, self.space = cover, prices, cover.space
        self.group_of, self.mirror = np.array(self.space.group_of), np.array(self.space.mirror)
        self.equal = np.array(self.space.op_of) == EQ
        self.compares = compares
        # The predicates of each group, what says most first; n_predicates where it has none.
        self.strictest = np.full((len(self.space.groups), len(OPERATORS)), self.space.n_predicates)
        for g, group in enumerate(self.space.groups):
            ops = [op for op in _STRICTEST if op < len(group.operators)]
            self.strictest[g, : len(ops)] = [self.space.first[g] + op for op in ops]
        self._start(cover.everyone, SPENT * prices.scan(cover.everyone), [])

    def _start(self, dcs: Bits, limit: float, present: Sequence[Draft]) -> None:
        """Begin anew: for some constraints, below a cost, beside accesses that there are anyway."""
        self.remaining, self.limit = dcs.copy(), limit
        self.spent = 0.0
        self.chosen: list[Draft] = []
        self.sources: dict[Numbers, float] = {}
        self.met = np.zeros_like(self.prices.met(SCAN))  # pairs of the sample that are found
        for draft in present:
            self.sources |= self.prices.source_costs(draft)
            self.met |= self.prices.met(draft)
        # The cheapest beginning of the list, if what it leaves is scanned.
        self.best, self.n_best = self.prices.scan(self.remaining), 0

    def selected(self) -> Selection:
        self._search()
        chosen, lengths = self.chosen, {self.n_best, len(self.chosen)}
        lists = [self._split(self._pruned(chosen[:n])) for n in sorted(lengths - {0})]
        return min((self._refined(drafts) for drafts in ([], *lists)), key=lambda one: one.cost_ns)

    def _search(self) -> None:
        for _ in range(ROUNDS):
            before = len(self.chosen)
            self._take(self._candidates())
            if len(self.chosen) == before or not self.remaining.any():
                return

    # -- candidates

    def _candidates(self) -> list[Draft]:
        """Accesses for the remaining constraints: sources, and what grows from them predicate by predicate.

        What is looked at is an even choice of CONSTRAINTS_SEEN of them. Each set of predicates also takes in
        whatever all of these have that it serves: it then finds less and serves as many.
        """
        at = np.flatnonzero(flags(self.remaining, self.cover.n))
        sample = self.cover.chosen(at[:: max(1, -(-len(at) // CONSTRAINTS_SEEN))])
        drafts: dict[Draft, None] = {}
        for root in self._roots(sample):
            level = [root]
            for depth in range(GROWTH + 1):
                for draft in level:
                    drafts[draft] = None
                    drafts[self._closed(sample, draft)] = None
                if depth < GROWTH:
                    wider = {w for draft in level for w in self._wider(sample, self._grown(sample, draft))}
                    level = [draft for _, draft in sorted(wider)[:BRANCHES]]
        return [draft for draft in drafts if self.spent + self.prices.compare_cost(draft) < self.limit]

    def _roots(self, sample: Cover) -> list[Draft]:
        """Sources that serve some of the constraints and pay if they serve alone: the cheapest for each."""
        space, prices = self.space, self.prices
        used = [p for p in range(space.n_predicates) if sample.closed[p].any()]
        unequal = [p for p in used if space.op_of[p] != EQ and space.groups[space.group_of[p]].ordered]
        sources = {sample.canonical((p,)) for p in used}
        for p in unequal:
            together = (sample.closed[unequal] & sample.closed[p]).any(axis=1)
            sources |= {
                sample.canonical((p, q))
                for q, both in zip(unequal, together, strict=True)
                if both and p < q and space.group_of[p] != space.group_of[q]
            }
        priced = []
        for source in sources:
            costs = prices.source_costs(Draft(source, source))
            cost = sum(ns for s, ns in costs.items() if s not in self.sources)
            if self.spent + cost < self.limit:
                priced.append((cost / size(sample.serves(source)), source))
        return [Draft(source, source) for _, source in sorted(priced)[:ROOTS]]

    def _grown(self, sample: Cover, draft: Draft) -> _Grown:
        both = (draft.predicates, sample.mirrored(draft.predicates))
        dcs = tuple(sample.having(sample.closed, numbers) for numbers in both)
        pairs = self.prices.pairs
        met = None if pairs is None else tuple(pairs.having(pairs.members, numbers) for numbers in both)
        return _Grown(draft, dcs, met)

    def _wider(self, sample: Cover, grown: _Grown) -> Iterator[tuple[float, Draft]]:
        """With one more predicate: the BRANCHES that cost least for each constraint that they serve.

        What the source costs is left out: all of them have it. One predicate a group is enough: two of them
        say no more than a third.
        """
        taken = np.isin(self.group_of, self.group_of[list(grown.draft.predicates)])
        more = np.flatnonzero(~taken & self._comparable(grown.draft.source))
        if not len(more):
            return
        turned = self.mirror[more]
        served = (grown.dcs[0] & sample.closed[more]) | (grown.dcs[1] & sample.closed[turned])
        coverage = np.bitwise_count(served).sum(axis=1, dtype=np.int64)
        if self.prices.pairs is not None and grown.met is not None:
            pairs = self.prices.pairs.members
            met = np.bitwise_count(pairs[more] & grown.met[0]).sum(axis=1, dtype=np.int64)
            met += np.bitwise_count(pairs[turned] & grown.met[1]).sum(axis=1, dtype=np.int64)
            shares = np.maximum(met, 1) / (2 * self.prices.pairs.n)
        else:
            shares = np.array([self.prices.share((*grown.draft.predicates, int(p))) for p in more])
        cost = self.prices.evidence_ns * shares + COMPARED_NS * self.prices.share(grown.draft.source)
        ratio = np.where(coverage, cost / np.maximum(coverage, 1), np.inf)
        for i in np.argsort(ratio, kind="stable")[:BRANCHES].tolist():
            if coverage[i]:
                wider = tuple(sorted((*grown.draft.predicates, int(more[i]))))
                yield float(ratio[i]), Draft(grown.draft.source, wider)

    def _comparable(self, source: Numbers) -> Bool:
        """The predicates that may be compared beside a source: bool[n_predicates]."""
        if self.compares == "any":
            return np.ones_like(self.equal)
        comparable: Bool = self.equal & self.equal[source[0]]
        return comparable

    def _closed(self, cover: Cover, draft: Draft, among: Bits | None = None) -> Draft:
        """With all that the constraints have in common which it serves: of each group that which says most.

        Where a constraint has only the mirror images, it is turned round. The source stays, but predicates
        of it may become stricter (`=` in place of `<=` would be another kind of source).
        """
        dcs = cover.everyone if among is None else among
        straight = cover.having(cover.closed, draft.predicates) & dcs
        turned = cover.having(cover.closed, cover.mirrored(draft.predicates)) & dcs & ~straight
        common = ~(straight & ~cover.closed).any(axis=1) & ~(turned & ~cover.closed[self.mirror]).any(axis=1)
        shared = np.append(common, False)[self.strictest]
        if self.space.op_of[draft.source[0]] != EQ:
            shared[[self.space.group_of[p] for p in draft.source], 0] = False
        best = self.strictest[np.arange(len(shared)), shared.argmax(axis=1)]
        source = tuple(int(best[self.space.group_of[p]]) for p in draft.source)
        predicates = best[shared.any(axis=1)]
        predicates = predicates[self._comparable(source)[predicates] | np.isin(predicates, source)]
        return Draft(source, tuple(predicates.tolist()))

    # -- the greedy list

    def _take(self, drafts: list[Draft]) -> None:
        """Take accesses by their cost for each constraint that is still without.

        Coverage only falls, so a draft is looked at again when it comes first. Costs fall, too, when others
        ask or find the same: all are sorted anew when a source comes to be asked.
        """
        compared = [self.prices.compare_cost(draft) for draft in drafts]
        sources = [self.prices.source_costs(draft) for draft in drafts]
        met = [self.prices.met(draft) for draft in drafts]
        serves = [self.cover.serves(draft.predicates) for draft in drafts]
        coverage = [size(bits & self.remaining) for bits in serves]
        enough = size(self.remaining) // 2

        def cost(i: int) -> float:
            new_pairs = self.prices.new_share(drafts[i], met[i], self.met)
            new_sources = sum(ns for source, ns in sources[i].items() if source not in self.sources)
            return compared[i] + new_sources + self.prices.evidence_cost(new_pairs)

        def entry(i: int) -> tuple[float, int, Draft, int]:
            return cost(i) / coverage[i], -coverage[i], drafts[i], i

        heap = [entry(i) for i in range(len(drafts)) if coverage[i]]
        heapq.heapify(heap)
        while heap and size(self.remaining) > enough:
            *_, i = heapq.heappop(heap)
            now = size(serves[i] & self.remaining)
            if now < coverage[i]:
                coverage[i] = now
                if now:
                    heapq.heappush(heap, entry(i))
                continue
            if self.spent + cost(i) >= self.limit:
                return
            self.spent += cost(i)
            self.met |= met[i]
            if any(source not in self.sources for source in sources[i]):
                self.sources |= sources[i]
                heap = [entry(j) for *_, j in heap]
                heapq.heapify(heap)
            self.chosen.append(drafts[i])
            self.remaining &= ~serves[i]
            total = self.spent + self.prices.scan(self.remaining)
            if total < self.best:
                self.best, self.n_best = total, len(self.chosen)

    # -- what is taken back, and made sharper

    def _pruned(self, drafts: list[Draft]) -> list[Draft]:
        """Without accesses that cost more than to scan for what they alone serve; the dearest first."""
        serves = {draft: self.cover.serves(draft.predicates) for draft in drafts}
        by = np.zeros(self.cover.n, dtype=np.int32)  # how many accesses serve each constraint
        for bits in serves.values():
            by += flags(bits, self.cover.n)
        remaining, scanned = list(drafts), as_bits(by == 0)
        total = self.prices.total(remaining, scanned)
        for draft in sorted(drafts, key=lambda d: (-self.prices.cost(d), d)) * 2:
            if draft not in remaining:
                continue
            without = [d for d in remaining if d != draft]
            dcs = flags(serves[draft], self.cover.n)
            alone = scanned | as_bits(dcs & (by == 1))
            cheaper = self.prices.total(without, alone)
            if cheaper <= total:
                remaining, total, scanned = without, cheaper, alone
                by -= dcs
        return remaining

    def _split(self, drafts: list[Draft]) -> list[Draft]:
        """Each access that finds much in favour of several that compare more, where these cost less.

        The search misses them: the first of several bears what the source costs.
        """
        current = drafts
        for draft in sorted(drafts, key=lambda d: (-self.prices.found_share(d), d)):
            others = [d for d in current if d != draft]
            scanned = self._unserved(current)
            alone = self._unserved(others) & self.cover.serves(draft.predicates)
            total = self.prices.total(current, scanned)
            if self.prices.evidence_cost(self.prices.found_share(draft)) < WORTH_SPLITTING * total:
                break
            self._start(alone, total - self.prices.total(others, scanned), others)
            self._search()
            parts = others + [d for d in self.chosen if d not in others]
            if not self.remaining.any() and self.prices.total(parts, scanned) < total:
                current = parts
        return current

    def _unserved(self, drafts: Iterable[Draft]) -> Bits:
        unserved = self.cover.everyone.copy()
        for draft in drafts:
            unserved &= ~self.cover.serves(draft.predicates)
        return unserved

    def _refined(self, drafts: list[Draft]) -> Selection:
        """Each constraint with the most selective access that serves it; each access then compares all that
        its constraints have in common, if it is the cheaper for it: it finds fewer pairs for the same."""
        remaining = self.cover.everyone.copy()
        finals: dict[Draft, Bits] = {}
        for draft in sorted(drafts, key=lambda d: (self.prices.share(d.predicates), d)):
            dcs = self.cover.serves(draft.predicates) & remaining
            remaining &= ~dcs
            if dcs.any():
                sharper = self._closed(self.cover, draft, dcs)
                final = sharper if self.prices.cost(sharper) < self.prices.cost(draft) else draft
                finals[final] = finals.get(final, np.zeros_like(dcs)) | dcs
        served = np.full(self.cover.n, -1, dtype=np.int32)
        for i, dcs in enumerate(finals.values()):
            served[flags(dcs, self.cover.n)] = i
        if remaining.any():
            served[flags(remaining, self.cover.n)] = len(finals)
            finals[SCAN] = remaining
        return selection(self.cover, self.prices, list(finals), served, {})
