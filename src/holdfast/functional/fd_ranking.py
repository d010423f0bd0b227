"""The order in which people should read functional dependencies, with reasons.

A table has thousands of minimal dependencies, and most are accidents of the rows at hand. Two measures tell
them apart, both made to resist the two ways of being fooled, a nearly unique left-hand side (it determines
whatever stands beside it) and a skewed right-hand side (nearly constant, so nearly everything determines it).
pdep(A) is the chance that two rows agree on A, pdep(A | X) the same for rows of one group of X, n the number
of rows, K the number of groups of X:

- mu+ tells approximate dependencies apart: how much of what X could explain of A beyond chance it explains.
  mu = 1 - (1 - pdep(A | X)) / (1 - pdep(A)) * (n - 1) / (n - K), and mu+ = max(mu, 0). It is 1 for every
  exact dependency, so it says nothing about their order.
- surprise tells exact ones apart: 1 - E[pdep(A | X)] = (1 - pdep(A)) * (n - K) / (n - 1), the expectation
  taken over all ways to shuffle A: what a random column with A's values would violate. Near 0 for a nearly
  unique X (K near n) and for a skewed A (pdep(A) near 1): such a dependency would nearly hold by chance.

The score, in 0..1: mu+ * sqrt(surprise) * SIZE_FACTOR ^ (|X| - 1) * (1 - STABILITY_SHARE * (1 - stability)).
The root, because surprise is a product of two shares: the redundant rows and the pairs that differ on A.
Stability is the mean of v / (v + HALF_VERSIONS) and r / (r + n), for v batches and r changed rows outlived;
it counts mildly, as it needs a history. A constant (X empty) has no surprise, hence no score.

A dependency whose X determines every column follows from a key; it says nothing of its own and comes last.

Only the groups of X need the rows, and they are not counted for thousands of X: K is at least the number of
groups of any column in X, so the score has an upper bound that costs nothing. Those of the highest bounds are
measured, some at a time, until no other one can come among the first (`rank_relation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.stability import STABILITY_SHARE, Stability, stability
from holdfast.core.evidence.groups import ColumnStatistics, column_statistics, measure_fds
from holdfast.core.rows.kernels.masks import contains_any, full_mask, popcounts, positions_of, unique_masks
from holdfast.core.rows.relation import Relation
from holdfast.core.store.tabular import Ranked
from holdfast.core.words.codec import Coded
from holdfast.core.words.dependency import Fd
from holdfast.functional.fd_score import size_factors

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

# Dependencies whose left-hand sides are counted in the rows, at most, and in one job.
MAX_MEASURED = 256
ROUND = 64
# Left-hand sides of up to so many columns look up all their subsets; beyond, scans are cheaper.
SUBSETS = 8
# Below these shares a reason says that the left-hand side is nearly unique, the right-hand side skewed.
FEW_REDUNDANT = 0.05
FEW_DIFFERENT = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of each dependency's groups; n_groups is -1 where nothing is."""

    n_groups: I64  # K
    pdep: F64  # pdep(A | X); 1 for an exact one
    kept_rows: I64  # rows with their group's most frequent value of A; all, for an exact one

    @classmethod
    def of_columns(cls, masks: U64, exact: Bool, columns: ColumnStatistics) -> Measured:
        """What the columns alone tell: K of left-hand sides of at most one column, for exact dependencies."""
        n = len(masks)
        single = exact & (popcounts(masks) <= 1)
        n_groups = np.full(n, -1, dtype=np.int64)
        n_groups[single] = least_groups(masks[single], columns)
        return cls(n_groups, np.ones(n, dtype=np.float64), np.full(n, columns.n_rows, dtype=np.int64))

    def added(self, at: I64, n_groups: I64, pdep: F64, kept_rows: I64) -> Measured:
        """With the measures of the dependencies `at`."""
        copies = self.n_groups.copy(), self.pdep.copy(), self.kept_rows.copy()
        for copy, new in zip(copies, (n_groups, pdep, kept_rows), strict=True):
            copy[at] = new
        return Measured(*copies)

    @property
    def known(self) -> Bool:
        return self.n_groups >= 0


@dataclass(frozen=True, slots=True)
class RankedFd:
    """A dependency with its place's reasons."""

    fd: Fd
    score: float  # 0 to 1; an upper bound if it is not measured
    reasons: tuple[str, ...]
    key: tuple[str, ...] | None  # the key that it follows from
    measured: bool
    n_groups: int | None  # different left-hand sides; None, like all below it, where it is not measured
    redundancy: int | None  # rows whose right-hand side an earlier row of their group tells
    surprise: float | None
    mu_plus: float | None
    versions: int
    changed_rows: int

    def __str__(self) -> str:
        return str(self.fd)

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.fd.to_dict(),
            "score": self.score,
            "reasons": list(self.reasons),
            "key": None if self.key is None else list(self.key),
            "measured": self.measured,
            "n_groups": self.n_groups,
            "redundancy": self.redundancy,
            "surprise": self.surprise,
            "mu_plus": self.mu_plus,
            "versions": self.versions,
            "changed_rows": self.changed_rows,
        }


@dataclass(frozen=True, slots=True, repr=False)
class FdRanking(Coded, Ranked):
    """The first dependencies of a table, best first: measured ones, then others, then those of keys."""

    fds: tuple[RankedFd, ...]
    n_fds: int  # of the table
    n_key_implied: int
    n_measured: int
    n_certain: int  # of `fds`: so many of the first are the first whatever is not measured

    def ranked(self) -> Sequence[Any]:
        return self.fds


# -- measures ----------------------------------------------------------------------------------------------


def surprise(pdep_rhs: F64, n_groups: I64, n_rows: int) -> F64:
    """1 - E[pdep(A | X)]: the share that a shuffled A would violate.

    >>> surprise(np.array([0.5, 0.5, 1.0]), np.array([1, 101, 1]), 101).tolist()
    [0.5, 0.0, 0.0]
    """
    if n_rows < 2:
        return np.zeros(len(n_groups), dtype=np.float64)
    violated: F64 = (1 - pdep_rhs) * (n_rows - n_groups) / (n_rows - 1)
    return violated


def mu_plus(pdep: F64, pdep_rhs: F64, n_groups: I64, n_rows: int) -> F64:
    """The share of what X could explain of A beyond chance that it does explain; 1 where it explains all.

    >>> half, ten = np.full(3, 0.5), np.full(3, 10)
    >>> mu_plus(np.array([1.0, 0.9, 0.5]), half, ten, 100).round(2).tolist()
    [1.0, 0.78, 0.0]
    """
    chance = surprise(pdep_rhs, n_groups, n_rows)
    # Nothing to explain: such a dependency is exact. A shade below 1 is how sums of floats are.
    safe = np.where(chance > 0, chance, 1.0)
    return np.where((chance > 0) & (pdep < 1), np.clip(1 - (1 - pdep) / safe, 0.0, 1.0), 1.0)


def scores(sizes: I64, mu: F64, surprises: F64, stabilities: F64) -> F64:
    """mu+ * sqrt(surprise) * SIZE_FACTOR ^ (|X| - 1) * (1 - STABILITY_SHARE * (1 - stability))."""
    steady: F64 = 1 - STABILITY_SHARE * (1 - stabilities)
    return mu * np.sqrt(surprises) * size_factors(sizes) * steady


def least_groups(masks: U64, columns: ColumnStatistics) -> I64:
    """The fewest groups that each X can have: those of its most selective column. Exact for one column."""
    least = np.full(len(masks), min(1, columns.n_rows), dtype=np.int64)
    for c, n_groups in enumerate(columns.n_groups.tolist()):
        has = (masks[:, c >> 6] >> np.uint64(c & 63)) & np.uint64(1) == 1
        least[has] = np.maximum(least[has], n_groups)
    return least


def key_implied(masks: U64, rhs: I64, n_columns: int) -> Bool:
    """Which dependencies follow from a key: their left-hand side determines every column.

    IN masks uint64[n, n_words], rhs int64[n]: all minimal dependencies, or all of up to so many columns on
    the left: X determines B iff it contains a minimal X' of B, which is no larger. Such an X is a minimal
    key itself: if a part of it were one, X -> A would not be minimal. Where rows repeat no set is unique,
    but X is a key of the different rows.

    Cost: X of up to SUBSETS columns looks up its subsets among the left-hand sides, 2^|X| hash probes; a
    larger one scans the minimal left-hand sides of each column that it does not determine by itself.
    0.7 s for 200,000 dependencies of 100 columns.
    """
    right = np.asarray(rhs, dtype=np.int64)
    first, inverse = unique_masks(masks)
    lhs = masks[first]
    direct = lhs.copy()  # X, and what it determines minimally
    np.bitwise_or.at(direct, (inverse, right >> 6), np.uint64(1) << (right & 63).astype(np.uint64))
    sizes = popcounts(lhs)
    is_key = np.zeros(len(lhs), dtype=np.bool_)
    small = np.flatnonzero(sizes <= SUBSETS)
    closed = _with_subsets(lhs, direct, sizes, small)
    is_key[small] = (closed == full_mask(n_columns)).all(axis=1)
    alive = np.flatnonzero(sizes > SUBSETS)
    # Columns that few sets determine rule out most.
    for c in np.argsort(np.bincount(right, minlength=n_columns), kind="stable").tolist():
        if not len(alive):
            break
        open_ = (direct[alive, c >> 6] >> np.uint64(c & 63)) & np.uint64(1) == 0
        undecided = alive[open_]
        if len(undecided):
            determined = contains_any(lhs[undecided], masks[right == c])
            alive = np.sort(np.concatenate([alive[~open_], undecided[determined]]))
    is_key[alive] = True
    implied: Bool = is_key[inverse]
    return implied


def _with_subsets(lhs: U64, direct: U64, sizes: I64, at: I64) -> U64:
    """All that the sets lhs[at] determine: what their subsets among the distinct `lhs` determine, united.

    direct[i] is lhs[i] with what it determines minimally.
    """
    closed = direct[at].copy()
    of_size = {int(j): np.flatnonzero(sizes == j) for j in set(sizes.tolist())}
    for size in sorted(set(sizes[at].tolist())):
        same_size = np.flatnonzero(sizes[at] == size)
        bits = np.unpackbits(lhs[at[same_size]].view(np.uint8), axis=1, bitorder="little")
        columns = np.nonzero(bits)[1].reshape(len(same_size), size)
        for chosen in range((1 << size) - 1):  # proper subsets: which of the columns
            smaller = of_size.get(chosen.bit_count())
            if smaller is None:
                continue
            subset = np.zeros((len(same_size), lhs.shape[1]), dtype=np.uint64)
            for i in range(size):
                if chosen >> i & 1:
                    c = columns[:, i]
                    subset[np.arange(len(same_size)), c >> 6] |= np.uint64(1) << (c & 63).astype(np.uint64)
            # The sets of this size come first and are distinct, so their numbers are their places.
            number = unique_masks(np.concatenate([lhs[smaller], subset]))[1][len(smaller) :]
            hit = np.flatnonzero(number < len(smaller))
            closed[same_size[hit]] |= direct[smaller[number[hit]]]
    return closed


# -- ranking -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dependencies:
    """The dependencies of one table, and all about them that is known without counting groups."""

    table: str
    names: Sequence[str]
    masks: U64
    rhs: I64
    columns: ColumnStatistics
    implied: Bool  # by a key
    errors: F64  # g1; 0 for exact ones
    history: Stability
    least: I64  # the fewest groups that each X can have

    @classmethod
    def of(
        cls,
        table: str,
        names: Sequence[str],
        masks: U64,
        rhs: NDArray[Any],
        columns: ColumnStatistics,
        implied: Bool | None = None,
        errors: F64 | None = None,
        history: Stability | None = None,
    ) -> Dependencies:
        """Without flags of keys the dependencies are taken for a whole cover, and the exact ones flagged."""
        n = len(masks)
        right = np.asarray(rhs, dtype=np.int64)
        shares = np.zeros(n, dtype=np.float64) if errors is None else errors
        if implied is None:
            implied = np.zeros(n, dtype=np.bool_)
            exact = shares == 0
            implied[exact] = key_implied(masks[exact], right[exact], len(names))
        past = Stability.none(n) if history is None else history
        least = least_groups(masks, columns)
        return cls(table, names, masks, right, columns, implied, shares, past, least)

    @property
    def exact(self) -> Bool:
        exact: Bool = self.errors == 0
        return exact

    def measures(self, measured: Measured) -> tuple[F64, F64]:
        """(mu+, surprise) of each; upper bounds where nothing is measured."""
        n_groups = np.where(measured.known, measured.n_groups, self.least)
        pdep_rhs = self.columns.pdep[self.rhs]
        n_rows = self.columns.n_rows
        return mu_plus(measured.pdep, pdep_rhs, n_groups, n_rows), surprise(pdep_rhs, n_groups, n_rows)

    def scores(self, measured: Measured) -> F64:
        """The scores; upper bounds where nothing is measured, 0 for those that follow from a key."""
        outlived = stability(self.history, self.columns.n_rows)
        points = scores(popcounts(self.masks), *self.measures(measured), outlived)
        return np.where(self.implied, 0.0, points)

    def questions(self, at: I64) -> tuple[I64, I64]:
        """(first, inverse): the different questions to the rows behind some dependencies.

        K is all that an exact one needs, so those of one left-hand side ask the same; an approximate one
        asks for its own right-hand side.
        """
        lhs = unique_masks(self.masks[at])[1]
        right = np.where(self.exact[at], -1, self.rhs[at])
        joint = lhs * (len(self.names) + 1) + right + 1
        _, first, inverse = np.unique(joint, return_index=True, return_inverse=True)
        return first, inverse


def candidates(fds: Dependencies, measured: Measured, limit: int = MAX_MEASURED) -> I64:
    """The dependencies to be measured next: those of the highest bounds of their scores, highest first.

    None that follows from a key, none that is measured. `limit` counts different questions to the rows.
    """
    open_ = np.flatnonzero(~fds.implied & ~measured.known)
    order = open_[np.argsort(-fds.scores(measured)[open_], kind="stable")]
    first, inverse = fds.questions(order)
    chosen = np.zeros(len(first), dtype=np.bool_)
    chosen[np.argsort(first)[:limit]] = True
    return order[chosen[inverse]]


def rank(fds: Dependencies, measured: Measured, top: int | None = None) -> FdRanking:
    """The first `top` dependencies (all, if it is None), best first; equally good ones in the order given.

    Measured ones come by their score, then the others by its bound, then those that follow from a key. Cost:
    a sort; words are found only for what is returned.
    """
    n = len(fds.masks)
    points = fds.scores(measured)
    is_measured = measured.known & ~fds.implied
    tier = np.where(fds.implied, 2, np.where(is_measured, 0, 1))
    sizes = popcounts(fds.masks)
    order = np.lexsort((np.arange(n), sizes, -points, tier))[:top]
    unmeasured = tier == 1
    highest = float(points[unmeasured].max(initial=0.0)) if unmeasured.any() else -1.0
    ranked = ranked_in(fds, measured, order)
    certain = (tier[order] == 0) & (points[order] >= highest)
    n_certain = len(order) if not unmeasured.any() else int(np.cumprod(certain).sum())
    return FdRanking(ranked, n, int(fds.implied.sum()), int(is_measured.sum()), n_certain)


def rank_relation(
    relation: Relation,
    table: str,
    masks: U64,
    rhs: NDArray[Any],
    *,
    errors: F64 | None = None,
    implied: Bool | None = None,
    history: Stability | None = None,
    top: int | None = None,
) -> FdRanking:
    """The ranking of the dependencies of a table, whose rows are looked at where it matters.

    The highest bounds are measured, ROUND left-hand sides a job, until the first `top` are certain, or
    MAX_MEASURED are. Cost: a pass over the columns, and some ten ns a row for each that is measured.
    """
    columns = column_statistics(relation)
    fds = Dependencies.of(table, relation.schema.names, masks, rhs, columns, implied, errors, history)
    measured = Measured.of_columns(masks, fds.exact, columns)
    budget = MAX_MEASURED
    while budget > 0:
        if top is not None and _settled(fds, measured, top):
            break
        n_questions = budget if top is None else min(ROUND, budget)
        at = candidates(fds, measured, n_questions)
        if not len(at):
            break
        measured = measured_at(relation, fds, measured, at)
        budget -= n_questions
    return rank(fds, measured, top)


def _settled(fds: Dependencies, measured: Measured, top: int) -> bool:
    """Whether the first `top` places cannot change any more."""
    points = fds.scores(measured)
    ranked = np.sort(points[measured.known & ~fds.implied])[::-1]
    open_ = points[~measured.known & ~fds.implied]
    return len(ranked) >= top > 0 and float(ranked[top - 1]) >= float(open_.max(initial=0.0))


def measured_at(relation: Relation, fds: Dependencies, measured: Measured, at: I64) -> Measured:
    """With the dependencies `at` measured: one job. Exact ones of one left-hand side are one question."""
    exact = fds.exact[at]
    first, inverse = fds.questions(at)
    rhs = np.where(exact, -1, fds.rhs[at])[first]
    measures = measure_fds(relation, fds.masks[at[first]], rhs)
    n_rows = fds.columns.n_rows
    return measured.added(
        at,
        measures.n_groups[inverse],
        np.where(exact, 1.0, measures.pdep[inverse]),
        np.where(exact, n_rows, measures.kept_rows[inverse]),
    )


def ranked_in(fds: Dependencies, measured: Measured, order: I64) -> tuple[RankedFd, ...]:
    """The dependencies in an order of theirs, each with its reasons."""
    mu, surprises = fds.measures(measured)
    points = fds.scores(measured)
    return tuple(
        _ranked(fds, measured, i, *(float(x[i]) for x in (points, surprises, mu))) for i in order.tolist()
    )


def _ranked(
    fds: Dependencies, measured: Measured, i: int, score: float, surprises: float, mu: float
) -> RankedFd:
    lhs = tuple(fds.names[c] for c in positions_of(fds.masks[i]))
    key = lhs if fds.implied[i] else None
    n_groups = int(measured.n_groups[i]) if measured.known[i] else None
    return RankedFd(
        fd=Fd(fds.table, lhs, fds.names[int(fds.rhs[i])], float(fds.errors[i])),
        score=score,
        reasons=_reasons(fds, measured, i, key, mu),
        key=key,
        measured=n_groups is not None,
        n_groups=n_groups,
        redundancy=None if n_groups is None else fds.columns.n_rows - n_groups,
        surprise=None if n_groups is None else surprises,
        mu_plus=None if n_groups is None else mu,
        versions=int(fds.history.versions[i]),
        changed_rows=int(fds.history.changed_rows[i]),
    )


def _reasons(
    fds: Dependencies, measured: Measured, i: int, key: tuple[str, ...] | None, mu: float
) -> tuple[str, ...]:
    """Why a dependency stands where it stands, the strongest reason first."""
    n_rows, size = fds.columns.n_rows, int(popcounts(fds.masks[i : i + 1])[0])
    reasons = []
    if key is not None:
        reasons.append(f"follows from the key [{', '.join(key)}]")
    is_measured = bool(measured.known[i])
    n_groups = int(measured.n_groups[i])
    if is_measured and n_rows > 1 and key is None:
        if not size:
            reasons.append("the column is constant")
        redundant = n_rows - n_groups
        explained = int(measured.kept_rows[i]) - n_groups
        amount = f"{explained:,}" if explained == redundant else f"{explained:,} of {redundant:,}"
        reasons.append(f"explains {amount} redundant value{'' if redundant == 1 else 's'}")
        if size and redundant < FEW_REDUNDANT * n_rows:
            reasons.append("left-hand side nearly unique: may be chance")
    different = 1 - float(fds.columns.pdep[fds.rhs[i]])
    if key is None and size and n_rows > 1 and different < FEW_DIFFERENT:
        reasons.append("right-hand side nearly constant: may be chance")
    if is_measured and not fds.exact[i]:
        reasons.append(f"explains {100 * mu:.3g} % of what chance does not (mu+)")
    if size:
        reasons.append(f"left-hand side of {size} column{'' if size == 1 else 's'}")
    versions, changed = int(fds.history.versions[i]), int(fds.history.changed_rows[i])
    if versions > 1:
        rows = f"{changed:,} changed row{'' if changed == 1 else 's'}"
        reasons.append(f"held through {versions:,} versions and {rows}")
    if not is_measured and key is None:
        reasons.append("not measured: the score is an upper bound")
    return tuple(reasons)
