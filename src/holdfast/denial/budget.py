"""How long the search for denial constraints may take, and what is known when it has to stop.

Constraints may be more than anybody can wait for: of 8 columns of integers that are compared with each other,
for hours. So every search has a limit of time and of number. Law: a cover under a bound on predicates is
exact for the bound, and its constraints of at most k predicates are the cover under the bound k. So where a
search for constraints of any size meets a limit, it is given up, and constraints of at most 1, 2, 3, ...
predicates are looked for while there is time. The last bound that was completed is that of the table from
then on: nothing is known in part, and no batch is refused.

Only the search counts: rows are compared in a time that is known before. It is measured by a clock on the
wall, so where a search stops depends on the machine; what is listed is exact for the bound that is stated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from holdfast.core.cover.kernels.search import Watch
from holdfast.core.engine.job_progress import Progress
from holdfast.denial.approximate_dcs import ApproximateDcs
from holdfast.denial.constraints import DcLimits
from holdfast.denial.dc_cover import DcCover

if TYPE_CHECKING:
    from holdfast.denial.dc_state import DcState

# The share of the time after which constraints of any size are given up; the rest is for smaller bounds.
FIRST_SHARE = 0.5
PROGRESS_S = 0.5


Cover = TypeVar("Cover", DcCover, ApproximateDcs)


class SearchStopped(Exception):
    """A search has met its limit; what it has found so far is no cover."""


class Search:
    """One attempt: its clock runs while covers are searched for.

    `seconds` None: an attempt that is not limited.
    """

    def __init__(self, seconds: float | None, max_dcs: int, progress: Progress | None = None) -> None:
        self.spent_s = 0.0
        self._seconds, self._max_dcs, self._progress = seconds, max_dcs, progress
        self._began = self._shown = 0.0

    def within(self, search: Callable[[Watch], Cover]) -> Cover:
        """What a search finds under the limits."""
        self._began = time.perf_counter()
        try:
            cover = search(self.watch)
        finally:
            self.spent_s += time.perf_counter() - self._began
        if self._seconds is not None and len(cover) > self._max_dcs:
            raise SearchStopped
        return cover

    def watch(self, n_sets: int) -> None:
        """Called by kernels from time to time, with the sets found so far: of mirrored ones both."""
        now = time.perf_counter()
        if self._progress is not None and now - self._shown > PROGRESS_S:
            self._shown = now
            self._progress(n_sets // 2, 0)
        if self._seconds is None:
            return
        if self.spent_s + now - self._began > self._seconds or n_sets // 2 > self._max_dcs:
            raise SearchStopped


def searched(
    limits: DcLimits,
    max_predicates: int,
    most: int,
    progress: Progress | None,
    attempt: Callable[[int, Search], DcState],
) -> DcState:
    """The constraints under the bound, 0 for any size; under a smaller one if they are too many.

    `attempt` finds them under a bound; `most` is the number of predicates that a constraint can have.
    """
    if max_predicates == 1:
        return attempt(1, Search(None, limits.max_dcs, progress))
    first = Search(limits.seconds * FIRST_SHARE, limits.max_dcs, progress)
    try:
        return attempt(max_predicates, first)
    except SearchStopped:
        pass
    seconds = limits.seconds - first.spent_s
    state = attempt(1, Search(None, limits.max_dcs, progress))  # one pass over the evidence
    for bound in range(2, max_predicates or most + 1):
        search = Search(seconds, limits.max_dcs, progress)
        try:
            state = attempt(bound, search)
        except SearchStopped:
            break
        seconds -= search.spent_s
    return replace(state, stopped=True)


def stopped_text(table: str, state: DcState, n_dropped: int) -> str:
    """That a search has met its limits, what is known, and how to go on."""
    bound = state.cover.max_size
    predicates = f"{bound} predicate{'' if bound == 1 else 's'}"
    more = f" ({n_dropped:,} longer ones are not kept any more)" if n_dropped else ""
    return (
        f"the denial constraints of {table!r} are known up to {predicates}{more}: the search for longer ones "
        f"met its limits, {state.limits}. To go on, drop the table and track it with higher --dc-seconds or "
        "--max-dcs, or with fewer comparisons: --within-columns, --columns, --exclude, --operators"
    )
