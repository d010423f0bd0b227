"""The best functional dependencies of a table, without listing all: for tables that have too many of them.

Two orders: by the score of `fd_ranking`, as of a table without a history, and by redundancy: n - K, for n
rows and K groups of X. Of equally good ones those with fewer columns come first, then by their right-hand
side, then as covers list them. Left out are constant columns, which hold without any column, and what follows
from a key: an X of as many groups as there are different rows.

Law: for a fixed A neither measure grows when X does. So what X -> A may be worth, if X has the fewest groups
that it can have, bounds all that contain it, and the first n are found exactly among left-hand sides of one
column, then two, and so on:

- K is at least the number of values of each column of X, and above |X|: in a minimal X every column splits
  groups of the others. Columns that cannot be worth as much as the n-th of the best so far are left out; sets
  of columns, too, by their groups in a sample of the rows, while they are few.
- Candidates are the minimal hitting sets, of this size, of what agree sets lack (`fd_cover`). One that holds
  is minimal, as agree sets are of pairs of rows. All smaller ones are settled, so what the rows say of a
  candidate never makes another one of the same size: each size is searched once.
- Those of the highest bounds are validated first, ROUND left-hand sides a job. What holds is measured, and
  may raise the bar for all others; what refutes a candidate is evidence for all of them.

Cost: where short left-hand sides are among the best, that of validating some hundreds of them: 1,000 x 222
and 100,000 x 94 take 0.5 to 5 s of a processor. Where hardly anything but keys determines anything, only time
ends the search; then it says which places are certain.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.search import minimal_hitting_sets
from holdfast.core.evidence.groups import ColumnStatistics, column_statistics, measure_fds
from holdfast.core.evidence.kernels.group_counts import Groups, everything, split
from holdfast.core.evidence.kernels.partitions import strike
from holdfast.core.evidence.refute import validate_fds
from holdfast.core.rows.kernels.masks import (
    contains_any,
    full_mask,
    mask_of,
    popcounts,
    positions_of,
    unique_masks,
    without,
)
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.row_sample import sample_rows
from holdfast.core.store.tabular import Ranked, shown
from holdfast.core.words.codec import Coded
from holdfast.errors import UsageError, shorten
from holdfast.functional.fd_cover import Relevant, by_lhs, has_column
from holdfast.functional.fd_ranking import (
    Dependencies,
    Measured,
    RankedFd,
    least_groups,
    ranked_in,
    scores,
    surprise,
)

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

By = Literal["score", "redundancy"]
# Left-hand sides that are validated in one job.
ROUND = 512
# Candidates that wait for it, before more of them are looked for; and those of one more right-hand side.
WAITING = 1 << 20
# Rows of which groups of sets are counted, and sets at most.
SAMPLE_ROWS = 1 << 14
MOST_SETS = 1 << 13
# Seconds after which the search stops, unless told otherwise.
SECONDS = 60.0


@dataclass(frozen=True, slots=True, repr=False)
class BestFds(Coded, Ranked):
    """The best dependencies of a table, without those of constant columns and of keys."""

    by: By
    fds: tuple[RankedFd, ...]  # best first
    constants: tuple[str, ...]  # columns of one value
    n_certain: int  # of `fds`: so many of the first are the first, whatever was not looked at
    max_lhs: int | None  # the bound on left-hand sides that was asked for
    stopped_at: int | None  # the size of left-hand sides at which the time was over

    def ranked(self) -> Sequence[Any]:
        return self.fds

    def __repr__(self) -> str:
        if self.by == "score":
            return Ranked.__repr__(self)
        lines = (f"{fd.redundancy:,}  {fd}" for fd in self.fds)
        return shown(f"{len(self.fds):,} by redundancy, best first", lines, len(self.fds))


def best_fds(
    relation: Relation,
    table: str,
    n: int,
    by: By = "score",
    *,
    max_lhs: int | None = None,
    seconds: float | None = SECONDS,
) -> BestFds:
    """The n best dependencies of a relation; with `max_lhs` of those of at most so many columns on the left.

    The search stops after so many seconds (None: never), between two jobs or two steps of a job's search.
    """
    for name, number in (("n", n), ("max_lhs", max_lhs)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is {number}; expected at least 1.")
    if by not in get_args(By):
        raise UsageError(f"the order {shorten(by)} is not known. Orders: {', '.join(get_args(By))}.")
    search = _Search(relation, n, by, seconds)
    done = search.run(max_lhs)
    names, varying = relation.schema.names, set(search.varying.tolist())
    return BestFds(
        by,
        search.best.ranked(table, names),
        tuple(name for c, name in enumerate(names) if c not in varying),
        len(search.best.masks) if done else search.n_certain(),
        max_lhs,
        None if done else search.size,
    )


# -- worth -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Worth:
    """What a dependency is worth in an order; for a fixed A it grows neither with K nor with |X|."""

    by: By
    columns: ColumnStatistics

    def of(self, sizes: I64, n_groups: I64, rhs: I32) -> F64:
        """Of dependencies with so many columns on the left, and so many groups: float64[n]."""
        n_rows = self.columns.n_rows
        if self.by == "redundancy":
            return (n_rows - n_groups).astype(np.float64)
        exact, no_history = np.ones(len(rhs), dtype=np.float64), np.zeros(len(rhs), dtype=np.float64)
        return scores(sizes, exact, surprise(self.columns.pdep[rhs], n_groups, n_rows), no_history)


@dataclass(frozen=True, slots=True)
class Best:
    """The best dependencies so far, at most n, best first: uint64[k, n_words], and [k] each."""

    n: int
    n_different: int  # rows: a left-hand side of so many groups is a key
    worth: Worth
    masks: U64
    rhs: I32
    n_groups: I64
    worths: F64

    @classmethod
    def none(cls, n: int, n_different: int, worth: Worth, n_words: int) -> Best:
        masks, groups = np.empty((0, n_words), dtype=np.uint64), np.empty(0, dtype=np.int64)
        return cls(n, n_different, worth, masks, groups.astype(np.int32), groups, groups.astype(np.float64))

    def admits(self, sizes: I64, n_groups: I64, rhs: I32) -> Bool:
        """Which dependencies may be among the first, if they have so many groups at least: bool[n]."""
        admitted: Bool = n_groups < self.n_different
        if len(self.masks) == self.n:
            worths, last = self.worth.of(sizes, n_groups, rhs), self.worths[-1]
            admitted &= (worths > last) | ((worths == last) & (sizes <= popcounts(self.masks[-1:])))
        return admitted

    def joined(self, masks: U64, rhs: I32, n_groups: I64) -> Best:
        """With others, which hold; those of keys are left out."""
        worths = self.worth.of(popcounts(masks), n_groups, rhs)
        masks, rhs = np.concatenate([self.masks, masks]), np.concatenate([self.rhs, rhs])
        n_groups, worths = np.concatenate([self.n_groups, n_groups]), np.concatenate([self.worths, worths])
        order = np.lexsort((*masks.T[::-1], rhs, popcounts(masks), -worths))
        first = order[n_groups[order] < self.n_different][: self.n]
        return replace(
            self, masks=masks[first], rhs=rhs[first], n_groups=n_groups[first], worths=worths[first]
        )

    def ranked(self, table: str, names: Sequence[str]) -> tuple[RankedFd, ...]:
        """With the reasons for their places."""
        n, columns = len(self.masks), self.worth.columns
        of_keys, exact = np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.float64)
        fds = Dependencies.of(table, names, self.masks, self.rhs, columns, of_keys)
        measured = Measured(self.n_groups, exact, np.full(n, columns.n_rows, dtype=np.int64))
        return ranked_in(fds, measured, np.arange(n))


# -- search ------------------------------------------------------------------------------------------------


class _Search:
    """What is known while left-hand sides grow."""

    def __init__(self, relation: Relation, n: int, by: By, seconds: float | None) -> None:
        self._relation = relation
        self._end = None if seconds is None else time.perf_counter() + seconds
        self._columns = column_statistics(relation)
        whole = full_mask(len(relation.schema))[None, :]
        n_different = int(measure_fds(relation, whole, np.array([-1])).n_groups[0])
        constant = validate_fds(relation, np.zeros_like(whole), whole)
        self._evidence = Relevant.of(constant.masks, len(relation.schema))
        self.varying = np.array(positions_of(constant.refuted[0]), dtype=np.int64)
        self.best = Best.none(n, n_different, Worth(by, self._columns), relation.n_words)
        self.size = 0  # of the left-hand sides that are looked at
        self._holding = self.best.masks  # both sides of all dependencies that are known to hold
        self._nulls_distinct = relation.nulls == "distinct"
        self._few: dict[tuple[int, ...], Groups] = {}  # sets of one size that may be parts of left-hand sides

    def run(self, max_lhs: int | None) -> bool:
        """Look at larger left-hand sides while any may be among the best; False if time is over."""
        try:
            while self.size != max_lhs:
                self.size += 1
                open_ = [rhs for rhs in self.varying.tolist() if len(self._admitted(rhs))]
                sets = self._with_few_groups() if open_ and self.size > 1 else None
                if not open_ or (sets is not None and not len(sets)):
                    break
                for masks, rhs in self._candidates(open_, sets):
                    self._settle(masks, rhs)
        except TimeoutError:
            return False
        return True

    def n_certain(self) -> int:
        """How many of the best come before all that left-hand sides of this size, or larger, may be worth."""
        bounds = [self._bounds(self._admitted(rhs), rhs) for rhs in self.varying.tolist()]
        highest, worths = np.concatenate([*bounds, [-1.0]]).max(), self.best.worths
        smaller = popcounts(self.best.masks) < self.size
        return int(((worths > highest) | ((worths == highest) & smaller)).sum())

    def _watch(self, n_sets: int = 0) -> None:
        if self._end is not None and time.perf_counter() > self._end:
            raise TimeoutError

    def _least(self, others: I64) -> I64:
        """The fewest groups of left-hand sides of this size that have one of these columns."""
        return np.maximum(self._columns.n_groups[others], self.size + 1)

    def _bounds(self, others: I64, rhs: int) -> F64:
        sizes = np.full(len(others), self.size)
        return self.best.worth.of(sizes, self._least(others), np.full(len(others), rhs, dtype=np.int32))

    def _admitted(self, rhs: int) -> I64:
        """The columns that left-hand sides of this size may have; none where they are too few."""
        others = self.varying[self.varying != rhs]
        sizes, right = np.full(len(others), self.size), np.full(len(others), rhs, dtype=np.int32)
        admitted: I64 = others[self.best.admits(sizes, self._least(others), right)]
        return admitted if len(admitted) >= self.size else admitted[:0]

    @cached_property
    def _sample(self) -> I32:
        return sample_rows(self._relation, SAMPLE_ROWS).codes

    def _with_few_groups(self) -> U64 | None:
        """The sets of this size that may be left-hand sides, by their groups in a sample; None for too many.

        Where many columns have few values, such sets are few: of 24 columns of four values each hardly three
        have as few as 20 groups together. Each further column adds a group at least, and no left-hand side
        has both sides of what holds. What is kept of one size serves the next.
        """
        most, sample = self._most_groups(), self._sample
        if not self._few:
            self._few = {(): everything(sample.shape[1])}
        columns = [c for c in self.varying.tolist() if self._columns.n_groups[c] + self.size - 1 <= most]
        while True:
            self._watch()
            size = len(next(iter(self._few), ()))
            masks = _masks(list(self._few), self._relation.n_words)
            alone = ~contains_any(masks, self._holding) if len(self._holding) else np.ones(len(masks), bool)
            self._few = {
                chosen: groups
                for (chosen, groups), apart in zip(self._few.items(), alone.tolist(), strict=True)
                if apart and _n_groups(groups, sample.shape[1]) + self.size - size <= most
            }
            if size == self.size or not self._few:
                return _masks(list(self._few), self._relation.n_words)
            larger = list(islice(_larger(self._few, columns), MOST_SETS + 1))
            if len(larger) > MOST_SETS:
                return None
            few = {}
            for *part, c in larger:
                last = int(sample[c].max(initial=0))
                few[(*part, c)] = split(self._few[tuple(part)], sample[c], last, self._nulls_distinct)
            self._few = few

    def _most_groups(self) -> int:
        """The most groups that left-hand sides of this size may have."""
        easiest = int(self.varying[np.argmin(self._columns.pdep[self.varying])])
        low, high = 0, self.best.n_different  # admitted, not admitted
        while high - low > 1:
            middle = (low + high) // 2
            one = np.array([self.size]), np.array([middle]), np.array([easiest], dtype=np.int32)
            low, high = (middle, high) if self.best.admits(*one)[0] else (low, middle)
        return low

    def _candidates(self, columns: Sequence[int], among: U64 | None) -> Iterator[tuple[U64, I32]]:
        """(masks, rhs): the left-hand sides of this size that no evidence is against, WAITING at a time.

        `among` are those that it may be, where they are known.
        """
        full = full_mask(self._evidence.n_columns)
        possible = full if among is None else np.bitwise_or.reduce(among, axis=0)
        waiting: list[U64] = []
        right: list[I32] = []
        for c in columns:
            self._watch()
            within = mask_of(self._admitted(c).tolist(), len(full)) & possible
            sets = minimal_hitting_sets(full & ~self._evidence.lacking(c), within, self.size, self._watch)
            sets = sets[popcounts(sets) == self.size]
            waiting.append(sets if among is None else sets[~without(sets, among)])
            right.append(np.full(len(waiting[-1]), c, dtype=np.int32))
            if sum(map(len, waiting)) > WAITING or c == columns[-1]:
                yield np.concatenate(waiting), np.concatenate(right)
                waiting, right = [], []

    def _settle(self, masks: U64, rhs: I32) -> None:
        """Validate and measure candidates that may be among the best, those of the highest bounds first."""
        against = [self._evidence.masks[:0]]
        while True:
            sizes = np.full(len(masks), self.size)
            n_groups = np.maximum(least_groups(masks, self._columns), self.size + 1)
            open_ = self.best.admits(sizes, n_groups, rhs)
            masks, rhs, n_groups = masks[open_], rhs[open_], n_groups[open_]
            if not len(masks):
                break
            self._watch()
            now = _of_first(masks, self.best.worth.of(sizes[open_], n_groups, rhs))
            lhs, together, group = by_lhs(masks[now], rhs[now])
            check = validate_fds(self._relation, lhs, together)
            holds = ~has_column(check.refuted[group], rhs[now])
            self.best = self.best.joined(*self._measured(masks[now][holds], rhs[now][holds]))
            both = masks[now][holds] | _single(rhs[now][holds], masks.shape[1])
            self._holding = np.concatenate([self._holding, both])
            against.append(check.masks)
            masks, rhs = masks[~now], rhs[~now]
            pending = _single(rhs, masks.shape[1])
            strike(masks, pending, check.masks)
            masks, rhs = masks[pending.any(axis=1)], rhs[pending.any(axis=1)]
        fresh = np.concatenate(against)
        fresh = fresh[unique_masks(fresh)[0]]
        self._evidence = self._evidence.changed(fresh, fresh[:0], fresh)

    def _measured(self, masks: U64, rhs: I32) -> tuple[U64, I32, I64]:
        """Dependencies that hold, with K."""
        if self.size == 1 or not len(masks):
            return masks, rhs, least_groups(masks, self._columns)
        first, inverse = unique_masks(masks)
        measures = measure_fds(self._relation, masks[first], np.full(len(first), -1))
        return masks, rhs, measures.n_groups[inverse]


def _of_first(masks: U64, bounds: F64) -> Bool:
    """Those of the ROUND left-hand sides with the highest bounds: bool[n]."""
    first, inverse = unique_masks(masks)
    highest = np.full(len(first), -1.0)
    np.maximum.at(highest, inverse, bounds)
    chosen = np.zeros(len(first), dtype=np.bool_)
    chosen[np.argsort(-highest, kind="stable")[:ROUND]] = True
    return chosen[inverse]


def _n_groups(groups: Groups, n_rows: int) -> int:
    return n_rows - len(groups.rows) + groups.n_groups


def _larger(sets: Collection[tuple[int, ...]], columns: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The sets with one more of the columns, all whose parts with one column less are there."""
    for chosen in sets:
        for c in columns[bisect_right(columns, chosen[-1]) if chosen else 0 :]:
            if all((*chosen[:i], *chosen[i + 1 :], c) in sets for i in range(len(chosen))):
                yield *chosen, c


def _masks(sets: Sequence[Sequence[int]], n_words: int) -> U64:
    return np.array([mask_of(columns, n_words) for columns in sets], dtype=np.uint64).reshape(-1, n_words)


def _single(columns: I32, n_words: int) -> U64:
    """Each column as a mask of its own: uint64[n, n_words]."""
    masks = np.zeros((len(columns), n_words), dtype=np.uint64)
    masks[np.arange(len(columns)), columns >> 6] = np.uint64(1) << (columns & 63).astype(np.uint64)
    return masks
