"""The order in which people should read denial constraints, with reasons.

A table has tens of thousands of general DCs, and nearly all are accidents of the rows at hand: the longer one
is, the fewer pairs could have violated it. Three measures, each in 0..1 (the first two as Chu, Ilyas and
Papotti have them, 2013):

- succinctness: 2 / (predicates + different columns); 1 for the shortest possible, a key of one column.
- coverage: a pair that satisfies k of the n predicates counts (k + 1) / n, so that those one short of a
  violation count 1; the mean over all pairs. It only needs to know how often each predicate is satisfied. For
  the same reason it tells little: what is mostly satisfied (`!=`) adds much, whatever the others are.
- surprise: log(1 + E) / log(1 + pairs), for E violations that chance would make: as many as if two of the
  predicates had nothing to do with each other among the pairs that satisfy the rest, for those two of which
  it is lowest (`kernels/support.py`). This tells rules from accidents: on 24,000 rows of adult E is 2 million
  to 89 million for the three DCs that a person would call rules, and below 12 for the other 27,054. A DC of
  one predicate (a key of one column) has surprise 1, a constant column none, as in `fd_ranking`.

The score: succinctness * sqrt(coverage * surprise) * (1 - STABILITY_SHARE * (1 - stability)). Without the
root long accidents would come before short ones. For a DC within an error, surprise is taken times the share
of the violations by chance that are not there.

A list of near-synonyms helps nobody. So the list is built from the top, and what is on the columns of one
already listed loses up to REPEATED of its score, in proportion to the columns that they share. Columns that
determine each other count as one. This is done for the first DIVERSE places; keys of one column neither take
nor lose.

DCs that hold in every table (`forms.tautologies`) say nothing and come last.

Where evidence is witnessed, pairs are not counted, and every different evidence counts as one pair: the
measures are then about kinds of pairs, and not to be compared with those of pairs.

Cost: E needs a look at all evidences for each DC, so DCs are measured in the order of an upper bound of their
score, which costs next to nothing, until the first places are certain, or MAX_TESTS are used up. The result
says how many are measured, and how many of the first places are certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.stability import STABILITY_SHARE, Stability, stability
from holdfast.core.rows.kernels.masks import popcounts, positions_of, unique_masks
from holdfast.core.store.tabular import Ranked
from holdfast.core.words.codec import Coded
from holdfast.core.words.column_sets import bits_of, masks_of, words_for
from holdfast.core.words.dependency import Fd
from holdfast.core.words.predicate import Dc, PredicateSpace, as_fd, as_key
from holdfast.core.words.sentences import sentence
from holdfast.denial.forms import tautologies
from holdfast.denial.kernels.support import most_expected, support
from holdfast.errors import plural

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

# DCs times different evidences that are looked at, at most; 0.2 to 1 ns each on one core.
MAX_TESTS = 1 << 31
# The places that are chosen one by one, and what a DC on the columns of one already listed loses.
DIVERSE = 200
REPEATED = 0.5
# With fewer violations by chance than this a reason says that the DC may be an accident.
FEW_BY_CHANCE = 20
# DCs measured at first; four times as many each time after that.
ROUND = 1 << 10
# Evidences whose bits are added up at a time.
CHUNK = 1 << 15


@dataclass(frozen=True, slots=True)
class RankedDc:
    """A denial constraint with its place's reasons."""

    dc: Dc
    score: float  # 0 to 1, less for what was said before; an upper bound if it is not measured
    alone: float  # the score if nothing else were listed
    succinctness: float
    coverage: float
    surprise: float | None  # None, like the two below it, where it is not measured
    by_chance: float | None  # violations; None also for fewer than two predicates
    near: int | None  # pairs that satisfy all predicates but one
    tautology: bool
    held_versions: int
    changed_rows: int
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return sentence(self.dc)

    @property
    def measured(self) -> bool:
        return self.surprise is not None

    def __str__(self) -> str:
        return str(self.dc)

    def to_dict(self) -> dict[str, Any]:
        key, fd = as_key(self.dc), as_fd(self.dc)
        return {
            **self.dc.to_dict(),
            "sentence": self.sentence,
            "key": None if key is None else list(key),
            "fd": None if fd is None else {"lhs": list(fd[0]), "rhs": fd[1]},
            "score": self.score,
            "alone": self.alone,
            "reasons": list(self.reasons),
            "measured": self.measured,
            "succinctness": self.succinctness,
            "coverage": self.coverage,
            "surprise": self.surprise,
            "by_chance": self.by_chance,
            "near": self.near,
            "tautology": self.tautology,
            "held_versions": self.held_versions,
            "changed_rows": self.changed_rows,
        }


@dataclass(frozen=True, slots=True, repr=False)
class Ranking(Coded, Ranked):
    """The first DCs of a table, best first: measured ones, then others, then tautologies."""

    dcs: tuple[RankedDc, ...]
    n_dcs: int  # of the table
    n_tautologies: int
    n_measured: int
    n_certain: int  # of `dcs`: so many of the first are the first whatever is not measured
    counted: bool  # pairs are counted; else different evidences are

    def ranked(self) -> Sequence[Any]:
        return self.dcs


# -- measures ----------------------------------------------------------------------------------------------


def succinctness(n_predicates: I64, n_columns: I64) -> F64:
    """2 / (predicates + different columns); 1 also for the DC without predicates.

    >>> succinctness(np.array([0, 1, 2, 3]), np.array([0, 1, 2, 3])).round(2).tolist()
    [1.0, 1.0, 0.5, 0.33]
    """
    measure: F64 = 2 / np.maximum(n_predicates + n_columns, 2)
    return measure


def coverage(satisfied: F64, n_predicates: I64, violations: F64, total: int) -> F64:
    """The mean over all pairs of (k + 1) / n, for pairs that satisfy k of the n predicates; 0 if all.

    `satisfied` is the sum over a DC's predicates of the pairs that satisfy each.

    >>> coverage(np.array([0.0, 90.0]), np.array([1, 2]), np.zeros(2), 100).tolist()
    [1.0, 0.95]
    """
    weight = satisfied + total - violations * (n_predicates + 1)
    mean: F64 = weight / np.maximum(1, n_predicates * total)
    return np.clip(mean, 0.0, 1.0)


def surprise(by_chance: F64, total: int) -> F64:
    """log(1 + E) / log(1 + total), for E violations by chance.

    >>> surprise(np.array([0.0, 9.0, 99.0]), 99).round(2).tolist()
    [0.0, 0.5, 1.0]
    """
    measure: F64 = np.log1p(by_chance) / np.log1p(max(total, 1))
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
        n = space.n_predicates
        joint = np.zeros((n + 1, n + 1), dtype=np.float64)
        for at in range(0, len(masks), CHUNK):
            part = masks[at : at + CHUNK]
            bits = np.ones((len(part), n + 1), dtype=np.float64)
            bits[:, :n] = bits_of(part, n)
            joint += bits.T @ (bits * weights[at : at + CHUNK, None])
        return cls(masks, weights, counts is not None, joint)

    @property
    def total(self) -> int:
        return int(self.counts.sum())


# -- ranking -----------------------------------------------------------------------------------------------


def rank(
    masks: U64,
    space: PredicateSpace,
    table: str,
    evidence: U64,
    counts: I64 | None,
    n_rows: int,
    *,
    errors: F64 | None = None,
    history: Stability | None = None,
    top: int | None = None,
) -> Ranking:
    """The first `top` DCs (all, if it is None), best first; equally good ones in the order given.

    IN masks uint64[k, n_words]: the DCs, of one predicate a group; evidence uint64[m, n_words], with counts
    int64[m] of ordered pairs or, witnessed, without; errors float64[k] of those that hold within an error;
    history: what each has outlived. Cost: see above; words are found only for what is returned.
    """
    past = Stability.none(len(masks)) if history is None else history
    each_error = np.zeros(len(masks), dtype=np.float64) if errors is None else errors
    dcs = _Dcs(masks, space, Pairs.of(space, evidence, counts), each_error, stability(past, n_rows))
    dcs.measure(len(masks) if top is None else top)
    places = dcs.places()
    listed = tuple(_ranked(dcs, places, at, table, past) for at in range(len(places.order[:top])))
    return Ranking(
        dcs=listed,
        n_dcs=len(masks),
        n_tautologies=int(dcs.tautology.sum()),
        n_measured=int(dcs.measured.sum()),
        n_certain=min(places.n_certain, len(listed)),
        counted=counts is not None,
    )


class _Dcs:
    """The DCs of a table and what is known of them: by a look at all evidences (`measured`), or a bound."""

    def __init__(self, masks: U64, space: PredicateSpace, pairs: Pairs, errors: F64, steady: F64) -> None:
        self.masks, self.space, self.pairs, self.errors = masks, space, pairs, errors
        bits = bits_of(masks, space.n_predicates)
        self.sizes = popcounts(masks)
        self.names = tuple(dict.fromkeys(g.left for g in space.groups))
        compared = np.array(
            [[n in (p.left, p.right) for n in self.names] for p in space.predicates], dtype=np.bool_
        ).reshape(space.n_predicates, len(self.names))
        self.n_columns: I64 = _with(bits, compared).sum(axis=1)
        self.tautology = tautologies(masks, space)
        merged = np.zeros_like(compared)
        for c, first in enumerate(self._same()):
            merged[:, first] |= compared[:, c]
        columns = _with(bits, merged) & (self.sizes > 1)[:, None]
        self.classes = masks_of(columns, words_for(len(self.names)))
        total = pairs.total
        satisfied = bits @ np.diagonal(pairs.joint)[:-1]
        self.succinctness = succinctness(self.sizes, self.n_columns)
        self.coverage = coverage(satisfied, self.sizes, errors * total, total)
        # One predicate leaves nothing to chance, and a constant column is no rule.
        key = np.array([p.op == "=" or p.left != p.right for p in space.predicates])
        self.alone = np.where((bits & key).any(axis=1), 1.0, 0.0)
        self.measured = np.zeros(len(masks), dtype=np.bool_)
        self.near = np.zeros(len(masks), dtype=np.int64)
        self.by_chance = most_expected(masks, pairs.joint)
        self.factor = self.succinctness * np.sqrt(self.coverage) * (1 - STABILITY_SHARE * (1 - steady))
        self.factor[self.tautology] = 0.0
        self.surprise, self.scores = self._scored()

    def _same(self) -> list[int]:
        """For each column the first one that determines it and that it determines: itself, perhaps."""
        determined = set()
        for i in np.flatnonzero(self.sizes == 2).tolist():
            fd = as_fd(self.dc(i, ""))
            if fd is not None:
                determined |= {(lhs, fd[1]) for lhs in fd[0]}
        return [
            next(i for i, a in enumerate(self.names) if a == b or {(a, b), (b, a)} <= determined)
            for b in self.names
        ]

    def dc(self, i: int, table: str) -> Dc:
        mask = sum(1 << p for p in positions_of(self.masks[i]))
        return self.space.dc(table, mask, float(self.errors[i]))

    def _scored(self) -> tuple[F64, F64]:
        """(surprise, scores); upper bounds where nothing is measured."""
        total = self.pairs.total
        by_chance = np.where(np.isinf(self.by_chance), 0.0, self.by_chance)
        surprises = np.where(self.sizes > 1, surprise(by_chance, total), self.alone)
        # Within an error: how much of what chance would violate is not violated.
        missing = np.clip(1 - self.errors * total / np.where(by_chance > 0, by_chance, 1.0), 0.0, 1.0)
        return surprises, self.factor * np.sqrt(surprises * np.where(self.errors > 0, missing, 1.0))

    def measure(self, top: int) -> None:
        """Measure those of the highest bounds, until the first `top` places cannot change, or MAX_TESTS."""
        n_left = MAX_TESTS // max(1, len(self.pairs.masks))
        n_next = ROUND
        while n_left > 0:
            open_ = np.flatnonzero(~self.measured & ~self.tautology)
            highest = self.scores[open_].max(initial=0.0)
            settled = np.count_nonzero(self.scores[self.measured] * (1 - REPEATED) >= highest)
            if not len(open_) or settled >= max(top, 1):
                break
            at = open_[np.argsort(-self.scores[open_], kind="stable")[: min(n_next, n_left)]]
            backing = support(self.masks[at], self.pairs.masks, self.pairs.counts)
            self.measured[at] = True
            self.near[at] = backing.near
            self.by_chance[at] = backing.expected
            self.surprise, self.scores = self._scored()
            n_left -= len(at)
            n_next *= 4

    def places(self) -> _Places:
        """All DCs in their order: measured ones, each time the one that adds most; the others by bounds."""
        scores = self.scores
        tier = np.where(self.tautology, 2, np.where(self.measured, 0, 1))
        order = np.lexsort((np.arange(len(scores)), self.sizes, -scores, tier))
        n_measured = int(np.count_nonzero(tier == 0))
        chosen, final, like = _diverse(scores[order[:n_measured]], self.classes[order[:n_measured]])
        open_ = scores[tier == 1]
        certain = np.cumprod(final >= open_.max(initial=0.0))
        n_certain = int(certain.sum()) if len(open_) else len(scores)
        rest = order[n_measured:]
        return _Places(
            np.concatenate([order[:n_measured][chosen], rest]),
            np.concatenate([final, scores[rest]]),
            np.concatenate([like, np.full(len(rest), -1, dtype=np.int64)]),
            n_certain,
        )


@dataclass(frozen=True, slots=True)
class _Places:
    order: I64  # the DCs
    scores: F64  # what each adds to those before it
    like: I64  # the place of one before it that is on the same columns, or -1
    n_certain: int


def _diverse(scores: F64, columns: U64) -> tuple[I64, F64, I64]:
    """(order, scores, like) of DCs that come by descending score: each time the one that adds most.

    A DC adds its score, less REPEATED of it times the share of columns that it has in common with one listed
    before, whichever has most. What a DC adds never grows, so the scores descend. Cost: DIVERSE passes.
    """
    n = len(scores)
    shared = np.zeros(n, dtype=np.float64)
    most_like = np.full(n, -1, dtype=np.int64)
    order, final = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.float64)
    waiting = np.ones(n, dtype=np.bool_)
    n_chosen = min(n, DIVERSE)
    for place in range(n_chosen):
        adds = np.where(waiting, scores * (1 - REPEATED * shared), -1.0)
        i = int(np.argmax(adds))
        order[place], final[place], waiting[i] = i, adds[i], False
        common = np.bitwise_count(columns & columns[i]).sum(axis=1, dtype=np.int64)
        either = np.bitwise_count(columns | columns[i]).sum(axis=1, dtype=np.int64)
        share = common / np.maximum(1, either)
        closer = waiting & (share > shared)
        shared[closer], most_like[closer] = share[closer], place
    rest = np.flatnonzero(waiting)
    adds = scores[rest] * (1 - REPEATED * shared[rest])
    by_score = np.argsort(-adds, kind="stable")
    order[n_chosen:], final[n_chosen:] = rest[by_score], adds[by_score]
    return order, final, np.where(shared[order] == 1.0, most_like[order], -1)


def _ranked(dcs: _Dcs, places: _Places, place: int, table: str, past: Stability) -> RankedDc:
    i = int(places.order[place])
    measured, pairwise = bool(dcs.measured[i]), bool(dcs.sizes[i] > 1)
    dc = dcs.dc(i, table)
    return RankedDc(
        dc=dc,
        score=float(places.scores[place]),
        alone=float(dcs.scores[i]),
        succinctness=float(dcs.succinctness[i]),
        coverage=float(dcs.coverage[i]),
        surprise=float(dcs.surprise[i]) if measured else None,
        by_chance=float(dcs.by_chance[i]) if measured and pairwise else None,
        near=int(dcs.near[i]) if measured else None,
        tautology=bool(dcs.tautology[i]),
        held_versions=int(past.versions[i]),
        changed_rows=int(past.changed_rows[i]),
        reasons=_reasons(dcs, i, dc, int(places.like[place]), past),
    )


def _reasons(dcs: _Dcs, i: int, dc: Dc, like: int, past: Stability) -> tuple[str, ...]:
    """Why a DC stands where it stands, the strongest reason first."""
    if dcs.tautology[i]:
        return ("holds in every table: its comparisons run in a circle",)
    reasons = []
    key, fd = as_key(dc), as_fd(dc)
    if key:
        reasons.append("is a key")
    if fd is not None:
        reasons.append(
            f"is the functional dependency {Fd(dc.table, *fd).name}" if fd[0] else "the column is constant"
        )
    if dcs.measured[i] and dcs.sizes[i] > 1:
        reasons += _of_chance(float(dcs.by_chance[i]), int(dcs.near[i]), dcs.pairs)
    size, n_columns = int(dcs.sizes[i]), int(dcs.n_columns[i])
    reasons.append(f"{plural(size, 'predicate')} on {plural(n_columns, 'column')}")
    if like >= 0:
        reasons.append(f"on the same columns as number {like + 1}")
    versions, changed = int(past.versions[i]), int(past.changed_rows[i])
    if versions > 1:
        reasons.append(f"held through {versions:,} versions and {plural(changed, 'changed row')}")
    if not dcs.measured[i]:
        reasons.append("not measured: the score is an upper bound")
    return tuple(reasons)


def _of_chance(by_chance: float, near: int, pairs: Pairs) -> list[str]:
    if by_chance < FEW_BY_CHANCE:
        return [f"may be an accident: chance would break it {by_chance:.2g} times"]
    what = "pairs" if pairs.counted else "kinds of pairs"
    return [
        f"chance would break it {by_chance:,.0f} times",
        f"{near:,} {what} ({100 * near / pairs.total:.3g} %) are one predicate short of breaking it",
    ]


# -- masks -------------------------------------------------------------------------------------------------


def _with(bits: Bool, incidence: Bool) -> Bool:
    """bool[k, c]: which DCs bool[k, n] have a predicate with a column, by incidence bool[n, c]."""
    touched: Bool = bits.astype(np.float32) @ incidence.astype(np.float32).reshape(bits.shape[1], -1) > 0
    return touched
