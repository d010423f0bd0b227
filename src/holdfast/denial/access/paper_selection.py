"""SelectIndex, algorithm 4 of IncDC (section 7): which indexes serve a cover, by the paper's scores.

It is as the paper has it, in our terms:

- An order index answers any two operators, also turned round (section 6.2), so what is picked are two groups
  with whatever operators; which ones are asked is settled after. The direction to build it in follows r.
- The paper replaces a constraint with `!=` by two, with `<` and with `>`. `fetch` answers `!=` itself, as two
  ranges, and the constraint stays one.
- `=` is only looked up in posting lists, `!=` of columns without order only in its own column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE
from holdfast.core.words.predicate import PredicateSpace
from holdfast.denial.access.access import Selection, Statistics
from holdfast.denial.access.costs import DOWN, SCAN, UP, Bits, Cover, Draft, Prices, flags, selection, size

U64 = NDArray[np.uint64]

# The paper's l, l' and alpha.
MAX_EQUALITY_SCORE = 0.6
MIN_DISTINCT_RATIO = 0.1
ALPHA = 0.3


def select_index(cover: U64, space: PredicateSpace, statistics: Statistics) -> Selection:
    """SelectIndex (algorithm 4), line by line; ties go to the lower predicate numbers.

    cover IN uint64[k, n_words]. Cost: O(groups ** 2) passes over a bit a constraint.
    """
    dcs = Cover(cover, space)
    return PaperSelection(dcs, Prices(dcs, statistics)).selected()


class _GroupPair(NamedTuple):
    """Two groups in which an order index, or two, may serve: (A, B) and (C, D)."""

    groups: tuple[int, int]
    keys: frozenset[tuple[int, int]]  # columns of the indexes: (A, C) and (B, D), each pair ascending
    dcs: Bits  # with predicates other than `=` in both


class PaperSelection:
    """One run of algorithm 4."""

    def __init__(self, cover: Cover, prices: Prices) -> None:
        self.cover, self.prices, self.space = cover, prices, cover.space
        self.remaining = cover.everyone.copy()
        self.served = np.full(cover.n, -1, dtype=np.int32)
        self.drafts: dict[Draft, int] = {}
        self.falling: dict[tuple[int, int], bool] = {}
        first = self.space.first
        self.group_mirror = [self.space.group_of[self.space.mirror[p]] for p in first]

    def selected(self) -> Selection:
        alone, across = self._equalities()
        self._equal_below(alone)
        self._equal_below(across)
        pairs = self._group_pairs()
        self._orders([pair for pair in pairs if self._many_values(pair)])
        for p in sorted(alone + across, key=lambda p: (self.prices.equality_score(p), p)):
            self._take(Draft((p,), (p,)), self.cover.serves((p,)))
        self._orders(pairs)
        self._single()
        return selection(self.cover, self.prices, list(self.drafts), self.served, self.falling)

    def _take(self, draft: Draft, dcs: Bits) -> None:
        """Serve those of the constraints that are still without."""
        new = dcs & self.remaining
        if new.any():
            self.served[flags(new, self.cover.n)] = self.drafts.setdefault(draft, len(self.drafts))
            self.remaining &= ~new

    def _equalities(self) -> tuple[list[int], list[int]]:
        """`=` of columns with themselves, and across columns: one of two mirror images."""
        used = [p for p in range(self.space.n_predicates) if self.space.op_of[p] == EQ]
        used = sorted({min(p, self.space.mirror[p]) for p in used if self.cover.serves((p,)).any()})
        alone = [p for p in used if self.space.mirror[p] == p]
        return alone, [p for p in used if self.space.mirror[p] != p]

    def _equal_below(self, predicates: Sequence[int]) -> None:
        """Lines 1 to 8: constraint by constraint, the best of its `=` if its score is below the threshold."""
        good = [p for p in predicates if self.prices.equality_score(p) < MAX_EQUALITY_SCORE]
        while True:
            of = {p: self.cover.serves((p,)) & self.remaining for p in good}
            first = {p: int(flags(dcs, self.cover.n).argmax()) for p, dcs in of.items() if dcs.any()}
            if not first:
                return
            best = min(first, key=lambda p: (first[p], self.prices.equality_score(p), p))
            self._take(Draft((best,), (best,)), of[best])

    def _group_pairs(self) -> list[_GroupPair]:
        """Line 10: all that can serve some constraint, one of two mirror images."""
        groups = [g for g, group in enumerate(self.space.groups) if group.ordered]
        unequal = {g: self._having(g, (NE, LT, LE, GT, GE)) for g in groups}
        pairs = {}
        for one, other in combinations(groups, 2):
            low, high = sorted(self._mirrored((one, other)))
            canonical = min((one, other), (low, high))
            dcs = (unequal[one] & unequal[other]) | (unequal[low] & unequal[high])
            if canonical not in pairs and dcs.any():
                p, q = self.space.first[one], self.space.first[other]
                sides = (self.prices.left, self.prices.right)
                keys = frozenset((min(s[p], s[q]), max(s[p], s[q])) for s in sides)
                pairs[canonical] = _GroupPair(canonical, keys, dcs)
        return [pairs[groups] for groups in sorted(pairs)]

    def _mirrored(self, groups: tuple[int, int]) -> tuple[int, int]:
        return self.group_mirror[groups[0]], self.group_mirror[groups[1]]

    def _having(self, group: int, ops: Iterable[int]) -> Bits:
        first = self.space.first[group]
        dcs: Bits = np.bitwise_or.reduce([self.cover.members[first + op] for op in ops])
        return dcs

    def _many_values(self, pair: _GroupPair) -> bool:
        """Line 12."""
        ratios = (self.prices.distinct_ratio(c) for key in pair.keys for c in key)
        return all(ratio >= MIN_DISTINCT_RATIO for ratio in ratios)

    def _orders(self, pairs: Sequence[_GroupPair]) -> None:
        """Lines 14 to 19: the least score first, again and again, coverage being that of what remains."""
        waiting = list(pairs)
        while waiting:
            coverage = {pair.groups: size(pair.dcs & self.remaining) for pair in waiting}
            waiting = [pair for pair in waiting if coverage[pair.groups]]
            if not waiting:
                return
            scores = [((1 - self._strength(p)) / coverage[p.groups], p.groups) for p in waiting]
            best = waiting[scores.index(min(scores))]
            for key in sorted(best.keys):
                self.falling.setdefault(key, self._falls(key, best))
            self._ask(best)
            for pair in pairs:  # whatever the new indexes serve as well
                if all(key in self.falling for key in pair.keys):
                    self._ask(pair)

    def _strength(self, pair: _GroupPair) -> float:
        one, other = (self.space.first[g] for g in pair.groups)
        return self.prices.strength(one, other)

    def _falls(self, key: tuple[int, int], pair: _GroupPair) -> bool:
        """Line 17: as the correlation says; if it is weak, as most constraints ask."""
        r = float(self.prices.statistics.correlation[key])
        if abs(r) > ALPHA:
            return r < 0
        same, opposite = 0, 0
        for one, other in dict.fromkeys((pair.groups, self._mirrored(pair.groups))):
            up, down = (self._having(one, ops) & pair.dcs & self.remaining for ops in (UP, DOWN))
            other_up, other_down = (self._having(other, ops) for ops in (UP, DOWN))
            same += size((up & other_up) | (down & other_down))
            opposite += size((up & other_down) | (down & other_up))
        return key[0] != key[1] and opposite > same

    def _ask(self, pair: _GroupPair) -> None:
        """The loosest questions that find what the constraints of two groups, still without, need."""
        wanted = pair.dcs & self.remaining
        if not wanted.any():
            return
        of = {}
        for one, other in (pair.groups, self._mirrored(pair.groups)):
            for op, other_op in product(range(NE, GE + 1), repeat=2):
                p, q = self.space.first[one] + op, self.space.first[other] + other_op
                if (self.cover.members[p] & self.cover.members[q] & wanted).any():
                    numbers = self.cover.canonical((p, q))
                    of[numbers] = self.cover.serves(numbers)
        # A looser question serves more; whatever it serves needs no other.
        for numbers in sorted(of, key=lambda n: (-size(of[n] & wanted), n)):
            self._take(Draft(numbers, numbers), of[numbers] & wanted)

    def _single(self) -> None:
        """One predicate, not `=`: the most selective that a constraint has. The empty one has none."""
        used = [p for p in self.cover.predicates_in(self.remaining) if self.space.op_of[p] != EQ]
        drafts = sorted({self.cover.canonical((p,)) for p in used}, key=lambda n: (self.prices.share(n), n))
        for numbers in drafts:
            self._take(Draft(numbers, numbers), self.cover.serves(numbers))
        self._take(SCAN, self.cover.everyone)
