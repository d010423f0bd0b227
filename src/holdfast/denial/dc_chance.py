"""What chance would make of denial constraints: is one a rule, or an accident of the rows at hand?

`by_chance` is E, the violations that chance would make: as many as if two of the predicates had nothing to do
with each other among the pairs that satisfy the rest, for those two of which it is lowest
(`kernels/support.py`). Pairs of rows are not independent, though: a single odd row may violate a DC with all
others. So what counts are rows. Those that agree on the columns that the DC compares by `=` form groups, and
an odd row violates it with its whole group at worst: then chance would make

    rows_by_chance = E / (rows that a row shares its group with, on average; at least 1)

rows violate it, and none at all with a probability of exp(-rows_by_chance). Of P predicates there are C(P, k)
sets of k, and each might have been found: a DC of k predicates is a rule if

    rows_by_chance >= log C(P, k),

so that of all the sets of its size hardly one would hold by chance. On 830 orders of Northwind 26 of 268 DCs
of up to three predicates have 184 to 818, where 8.6 is asked for; the best of the others has 4.6, where 12.1
is.

Where columns are compared with each other, comparisons hang together whatever the rows are. So E of such a DC
is no more than if all columns were shuffled (`shuffling.py`: of t.a < s.a, t.a > s.b and t.b > s.a the last
two cannot be true if no b is above the second lowest a), and no more than that of the DC with everything
written out that follows by the rules about each row (t.a >= s.b and t.b <= s.a say t.a = s.a, where a <= b).

A key of one column has no two predicates: it is a rule if it looks like one that was meant
(`core/words/key_score.py`). A constant column is none, nor is any other DC of one predicate.

Where evidence is witnessed, pairs are not counted, and every different evidence counts as one pair: the
measures are then about kinds of pairs, of as many rows as would have so many pairs.

Cost: E follows from counts of two predicates for DCs of up to three. The others need a look at all evidences,
those of the highest bounds first, until MAX_TESTS are used up. What is left then is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.masks import popcounts, positions_of, unique_masks
from holdfast.core.words.column_sets import bits_of, masks_of
from holdfast.core.words.key_score import WORTH
from holdfast.core.words.predicate import Dc, PredicateSpace
from holdfast.denial.circular_dcs import RowOrder, following_from_rows, tautologies, written_out
from holdfast.denial.joint_counts import asked_for, joint_counts
from holdfast.denial.kernels.support import most_expected, support

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Shuffled = Callable[[Sequence[Dc]], F64]

# DCs times different evidences that are looked at, at most; 0.2 to 1 ns each on one core.
MAX_TESTS = 1 << 31
# DCs that compare different columns of which it is seen what they would be if columns were shuffled.
MAX_ACROSS = 256


def succinctness(n_predicates: I64, n_columns: I64) -> F64:
    """2 / (predicates + different columns); 1 also for the DC without predicates.

    >>> succinctness(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3])).round(2).tolist()
    [1.0, 1.0, 0.5, 0.33]
    """
    measure: F64 = 2 / np.maximum(n_predicates + n_columns, 2)
    return measure


def surprise(rows_by_chance: F64, n_rows: float) -> F64:
    """log(1 + rows by chance) / log(1 + rows).

    >>> surprise(np.array([0.0, 9.0, 99.0]), 99).round(2).tolist()
    [0.0, 0.5, 1.0]
    """
    measure: F64 = np.log1p(rows_by_chance) / np.log1p(max(n_rows, 1))
    return np.clip(measure, 0.0, 1.0)


@dataclass(frozen=True)
class Pairs:
    """What is known of the pairs of rows: masks uint64[m, n_words], all different, and how many have each.

    joint float64[n + 1, n + 1]: how many satisfy two predicates, and, last, one of them or none.
    """

    masks: U64
    counts: I64
    counted: bool
    joint: F64

    @classmethod
    def of(cls, space: PredicateSpace, masks: U64, counts: I64 | None) -> Pairs:
        """Counted evidence, of both directions of each pair; or witnessed, of at least one."""
        if counts is None:
            mirrored = bits_of(masks, space.n_predicates)[:, list(space.mirror)]
            images = masks_of(mirrored, masks.shape[1])
            both = np.concatenate([masks, images])
            masks = both[unique_masks(both)[0]]
        weights = np.ones(len(masks), dtype=np.int64) if counts is None else counts
        joint = joint_counts(masks, weights, space.n_predicates)
        return cls(masks, weights, counts is not None, joint)

    @property
    def n_rows(self) -> float:
        """The rows that have so many ordered pairs."""
        total = float(self.joint[-1, -1])
        return (1 + sqrt(1 + 4 * total)) / 2

    def filled(self, space: PredicateSpace) -> Bool:
        """The groups in which no pair has a NULL on one side only, as far as that can be told: bool[n]."""
        total, each = float(self.joint[-1, -1]), np.diagonal(self.joint)
        compared = np.zeros(len(space.groups))
        for i, p in enumerate(space.predicates):
            if p.op in ("<", "=", ">"):
                compared[space.group_of[i]] += each[i]
        ordered = [g.ordered for g in space.groups]
        return np.array(ordered, dtype=np.bool_) & np.asarray(compared == total, dtype=np.bool_)


class MeasuredDcs:
    """The DCs of a table, and what chance would make of them; what is not measured counts by a bound."""

    def __init__(
        self, masks: U64, space: PredicateSpace, pairs: Pairs, key_scores: Mapping[str, float]
    ) -> None:
        self.masks, self.space, self.pairs = masks, space, pairs
        self.bits, self.sizes = bits_of(masks, space.n_predicates), popcounts(masks)
        self.tautology = tautologies(masks, space)
        names = tuple(dict.fromkeys(g.left for g in space.groups))
        compared = np.array([[n in (p.left, p.right) for n in names] for p in space.predicates], np.float32)
        touched = self.bits.astype(np.float32) @ compared.reshape(space.n_predicates, len(names)) > 0
        self.n_columns: I64 = touched.sum(axis=1)
        self.succinctness = succinctness(self.sizes, self.n_columns)
        # Of one predicate nothing is a rule but a key of one column, if it looks like one.
        self.same = np.array([p.op == "=" and p.left == p.right for p in space.predicates], dtype=np.bool_)
        of_keys = np.array([key_scores.get(p.left, 0.0) for p in space.predicates])
        single = np.flatnonzero(self.sizes == 1)
        self.key_scores = np.zeros(len(masks))
        self.key_scores[single] = self.bits[single] @ np.where(self.same, of_keys, 0.0)
        asked = [asked_for(space.n_predicates, n) for n in range(int(self.sizes.max(initial=0)) + 1)]
        self.asked = np.array(asked)[self.sizes]
        expected = most_expected(masks, pairs.joint)  # exact for two and three predicates
        self.by_chance = np.where(self.sizes > 1, expected, 0.0)
        self.group_rows = self._group_rows()
        self.open = np.zeros(len(masks), dtype=np.bool_)

    def _group_rows(self) -> F64:
        """How many rows a row shares its group with, of the columns that are compared by `=`; at least 1.

        On average, as far as counts of two predicates tell: of more columns, as of the best two of them.
        """
        joint, same = self.pairs.joint, self.bits & self.same
        n_same = same.sum(axis=1)
        agreeing = np.full(len(same), joint[-1, -1])
        for n in np.unique(n_same[n_same > 0]).tolist():
            at = np.flatnonzero(n_same == n)
            members = np.nonzero(same[at])[1].reshape(-1, n)
            agreeing[at] = joint[members[:, :, None], members[:, None, :]].min(axis=(1, 2))
        return np.maximum(1.0, agreeing / self.pairs.n_rows)

    @property
    def rows_by_chance(self) -> F64:
        rows: F64 = self.by_chance / self.group_rows
        return rows

    @property
    def is_rule(self) -> Bool:
        rule = np.where(self.sizes > 1, self.rows_by_chance >= self.asked, self.key_scores >= WORTH)
        return rule & ~self.tautology

    @property
    def surprise(self) -> F64:
        return np.where(self.sizes > 1, surprise(self.rows_by_chance, self.pairs.n_rows), self.key_scores)

    @property
    def scores(self) -> F64:
        """Without what they have outlived."""
        return self.succinctness * self.surprise

    def measure(self) -> None:
        """Look at all evidences for DCs of more than three predicates that may be rules, or for the best."""
        long = np.flatnonzero(self.is_rule & (self.sizes > 3))
        at = self._first(long, MAX_TESTS // max(1, len(self.pairs.masks)))
        self.by_chance[at] = support(self.masks[at], self.pairs.masks, self.pairs.counts).expected

    def check_across(self, shuffled: Shuffled, rows: RowOrder) -> None:
        """Bound E of the best DCs that compare different columns, but for those that follow from rows.

        By that of the same with all that follows written out, and by what shuffled columns would violate.
        """
        across = np.array([p.left != p.right for p in self.space.predicates], dtype=np.bool_)
        rules = np.flatnonzero(self.is_rule & (self.bits & across).any(axis=1))
        rules = rules[~following_from_rows(self.masks[rules], self.space, rows)]
        at = self._first(rules, MAX_ACROSS)
        whole = written_out(self.masks[at], self.space, rows)
        expected = support(whole, self.pairs.masks, self.pairs.counts).expected
        violated = shuffled([self.dc(i) for i in at.tolist()]) * float(self.pairs.joint[-1, -1])
        self.by_chance[at] = np.minimum(self.by_chance[at], np.minimum(expected, violated))

    def _first(self, at: I64, n: int) -> I64:
        """Those n of the highest scores; the others are left open."""
        first, left = np.split(at[np.argsort(-self.scores[at], kind="stable")], [n])
        self.by_chance[left] = 0.0
        self.open[left] = True
        return first

    def dc(self, i: int, table: str = "") -> Dc:
        return self.space.dc(table, sum(1 << p for p in positions_of(self.masks[i])))
