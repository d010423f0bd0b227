"""Since when does it hold: the past of a class of dependencies, as covers tell it.

Covers are kept for every version, and what holds at a version follows from its cover; so a dependency that
was no longer minimal, because a narrower one appeared, held all the same. Versions between two changes of the
cover are one *run*, looked at once. A *spell* is a stretch of versions at which a dependency held; all
stretches in a row, those at which it did not hold among them, are its *life*.

A class says where its cover lies in a state, and whether something follows from a cover; all else is the same
for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.stability import Stability
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.store.ledger_rows import CommitRow
from holdfast.core.words.codec import Coded

I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Ref = TypeVar("Ref")
# Where a state, as JSON, says that the cover lies, and how it is kept; None where the class is not tracked.
CoverOf = Callable[[Mapping[str, Any]], tuple[FileRef, Ref] | None]

# What a table does to its rows; pins and merges are versions, too, but nothing is put to the test by them.
BATCHES = ("track", "apply")
# So many new commits are read one by one; for more, one pass over the whole ledger is cheaper.
FEW_COMMITS = 8
# `held` looks no further back than so many changes of the cover: it is part of a batch, and to read and
# compare a cover of some thousand dependencies takes about a millisecond.
MAX_RUNS = 100
MAX_BYTES = 16_000_000
# Reports weigh what so many of the newest commits to a table say: each batch makes one, and to read hundreds
# in a process that was just started takes longer than the batch.
WEIGHED = 12


@dataclass(frozen=True, slots=True)
class Spell(Coded):
    """Versions of the workspace, without a gap, at which a dependency held."""

    first: int
    last: int | None  # None: it holds still


@dataclass(frozen=True, slots=True)
class Stretch(Coded):
    """Versions of the workspace, without a gap, at which a dependency held, did not, or nobody knows."""

    first: int
    last: int | None  # None: it lasts
    holds: bool | None


Life = tuple[Stretch, ...]  # oldest first, each of another kind than the one before it
# What was against a dependency at a version: how many of what its class counts, and their share of all.
Against = tuple[int, float]


@dataclass(frozen=True, slots=True)
class PastCommit(Generic[Ref]):
    """A commit to a table, as far as the history of its dependencies needs it."""

    version: int
    is_batch: bool
    n_inserted: int
    n_deleted: int
    cover: FileRef
    ref: Ref


@dataclass(frozen=True, slots=True)
class Run(Generic[Ref]):
    """Commits in a row that share one cover."""

    commits: tuple[PastCommit[Ref], ...]

    @property
    def first(self) -> int:
        return self.commits[0].version

    @property
    def ref(self) -> Ref:
        return self.commits[0].ref

    @property
    def n_versions(self) -> int:
        return sum(c.is_batch for c in self.commits)


class Past(Generic[Ref]):
    """The past of one class in all tables; a process reads each commit once."""

    def __init__(self, tables: Tables, cover_of: CoverOf[Ref], *, begins: str = "track") -> None:
        """`begins` is the action with which a table has a new past."""
        self._tables, self._cover_of, self._begins = tables, cover_of, begins
        self._commits: dict[str, list[PastCommit[Ref]]] = {}  # by table, since it was tracked
        self._newest: dict[str, list[PastCommit[Ref]]] = {}  # of these the newest, where no more are needed

    def commits(self, table: str, until: int, *, newest: int | None = None) -> list[PastCommit[Ref]]:
        """The commits to a table since it was tracked, up to a version, oldest first.

        `newest`: only so many, which is cheaper where the past is long, as no older one is looked at.
        """
        memory = self._commits if newest is None else self._newest
        past = memory.get(table, [])
        if past and past[0 if newest is None else -1].version > until:
            past = []
        last = past[-1].version if past else 0
        ledger = self._tables.ledger
        if newest is None:
            fresh = [c for c in ledger.commits(table) if last < c.version <= until]
        else:
            fresh = ledger.latest(table, until, last, newest)
        begun = [i for i, c in enumerate(fresh) if c.action == self._begins]
        if begun:
            past, fresh = [], fresh[begun[-1] :]
        states: Sequence[Mapping[str, Any]] = [c.state or {} for c in fresh]
        if newest is None:
            states = self._states(table, [c.version for c in fresh])
        past = list(past)
        for commit, fields in zip(fresh, states, strict=True):
            if (place := self._cover_of(fields)) is not None:
                past.append(_past_commit(commit, *place))
        memory[table] = past if newest is None else past[-newest:]
        return [c for c in memory[table] if c.version <= until]

    def _states(self, table: str, versions: Sequence[int]) -> list[Mapping[str, Any]]:
        ledger = self._tables.ledger
        if len(versions) <= FEW_COMMITS:
            return [ledger.commit_row(version, table).state or {} for version in versions]
        wanted = set(versions)
        states = {
            c.version: c.state or {} for c in ledger.states() if c.table == table and c.version in wanted
        }
        return [states[version] for version in versions]

    def runs(self, table: str, until: int, *, newest: int | None = None) -> list[Run[Ref]]:
        runs: list[list[PastCommit[Ref]]] = []
        for commit in self.commits(table, until, newest=newest):
            if runs and runs[-1][-1].cover == commit.cover:
                runs[-1].append(commit)
            else:
                runs.append([commit])
        return [Run(tuple(commits)) for commits in runs]

    def held(
        self, table: str, n: int, before: int, holds: Callable[[Ref, I64], Bool], *, newest: int | None = None
    ) -> I64:
        """For how many versions of a table, up to that before one, each of n had held without a break.

        int64[n]. `holds` says which of some (by their numbers) follow from a cover. 0: it did not hold just
        before. Looks no further back than the `newest` commits, MAX_RUNS changes of the cover, or MAX_BYTES
        of them: then it is at least that many.
        Cost: covers, newest first, while one is left that held through all of them.
        """
        counts = np.zeros(n, dtype=np.int64)
        holding, n_bytes = np.arange(n), 0
        for run in reversed(self.runs(table, before - 1, newest=newest)[-MAX_RUNS:]):
            if not len(holding) or n_bytes > MAX_BYTES:
                break
            holding = holding[holds(run.ref, holding)]
            counts[holding] += run.n_versions
            n_bytes += run.commits[0].cover.length
        return counts

    def since(self, table: str, n: int, until: int, holds: Callable[[Ref, I64], Bool]) -> I64:
        """Since which version each of n, which hold at one, has held without a break: int64[n].

        `holds`, bounds and cost are as of `held`: beyond them it is the oldest version that was looked at.
        """
        first = np.zeros(n, dtype=np.int64)
        holding, n_bytes = np.arange(n), 0
        for run in reversed(self.runs(table, until)[-MAX_RUNS:]):
            if not len(holding) or n_bytes > MAX_BYTES:
                break
            holding = holding[holds(run.ref, holding)]
            first[holding] = run.first
            n_bytes += run.commits[0].cover.length
        return first

    def spell(
        self, table: str, until: int, holds: Callable[[Ref], bool], *, now: bool
    ) -> tuple[int, CommitRow | None]:
        """(since, turned): the first version of the spell that lasts, and the commit if it was a turn."""
        runs = self.runs(table, until)
        for run, earlier in zip(runs[:0:-1], runs[-2::-1], strict=True):
            if holds(earlier.ref) != now:
                commits = self._tables.ledger.commits(table)
                return run.first, next(c for c in commits if c.version == run.first)
        return runs[0].first, None

    def life(self, table: str, until: int, holds: Callable[[Ref], bool | None], *, since: int = 0) -> Life:
        """When something held and when it did not, from a version on; nothing where there is no cover.

        Cost: `holds` is asked of each run.
        """
        runs = [run for run in self.runs(table, until) if run.commits[-1].version >= since]
        return life_of((max(run.first, since), holds(run.ref)) for run in runs)

    def stability(self, table: str, held: I64, base: int, *, newest: int | None = None) -> Stability:
        """What dependencies have outlived that have held for so many versions: these, and changed rows."""
        batches = [c for c in self.commits(table, base, newest=newest) if c.is_batch]
        # The version that brought a dependency is not one that it outlived.
        changed = np.cumsum([0, *(c.n_inserted + c.n_deleted for c in reversed(batches))])
        return Stability(held, changed[np.clip(held - 1, 0, len(changed) - 1)])


def life_of(verdicts: Iterable[tuple[int, bool | None]]) -> Life:
    """A life from what was so from which version on.

    >>> [(s.first, s.last, s.holds) for s in life_of([(1, None), (2, True), (3, True), (5, False)])]
    [(1, 1, None), (2, 4, True), (5, None, False)]
    """
    turns: list[tuple[int, bool | None]] = []
    for version, holds in verdicts:
        if not turns or turns[-1][1] is not holds:
            turns.append((version, holds))
    lasts = [*(version - 1 for version, _ in turns[1:]), None]
    return tuple(Stretch(first, last, holds) for (first, holds), last in zip(turns, lasts, strict=False))


def merged(first: Life, second: Life) -> Life:
    """What either of two knows of one dependency; where both do, they say the same.

    >>> (known,) = merged(life_of([(1, None), (3, True)]), life_of([(2, True)]))[1:]
    >>> known.first, known.holds
    (2, True)
    """

    def at(life: Life, version: int) -> bool | None:
        return next((s.holds for s in reversed(life) if s.first <= version), None)

    versions = sorted({stretch.first for stretch in (*first, *second)})
    verdicts = ((v, at(first, v), at(second, v)) for v in versions)
    return life_of((v, b if a is None else a) for v, a, b in verdicts)


def _past_commit(commit: CommitRow, cover: FileRef, ref: Ref) -> PastCommit[Ref]:
    detail, is_batch = commit.detail or {}, commit.action in BATCHES
    changed = [int(detail.get(name) or 0) if is_batch else 0 for name in ("n_inserted", "n_deleted")]
    return PastCommit(commit.version, is_batch, changed[0], changed[1], cover, ref)
