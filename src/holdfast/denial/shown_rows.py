"""Rows of a batch that news of row rules show: the first of some outcomes, picked by the tasks that count.

Which rules are broken is known when all is counted, and to look for rows then would be another job. So tasks
are told before how many rows of an outcome a batch needs to have if it is to be news (`asked_rows`): of rows
that come one row that violates a rule is enough, of rows that go all that there were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.operators import NULL
from holdfast.core.store.bundle import Bundle
from holdfast.core.words.change import ROWS_SHOWN
from holdfast.denial.row_counts import ALLOWED, UNORDERED, RowCounts

I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class AskedRows(NamedTuple):
    """Pairs of which rows are asked for, int64[n], the most important ones first, and how many rows of each
    outcome a batch needs to have: int64[n, 3]."""

    pairs: I64
    least: I64


NOTHING_ASKED = AskedRows(np.empty(0, np.int64), np.empty((0, NULL), np.int64))


@dataclass(frozen=True, slots=True)
class ShownRows:
    """Rows of a batch with their outcomes in some pairs: int64[n] each, by pair, then by row id."""

    pairs: I64
    outcomes: I64
    row_ids: I64

    @classmethod
    def of(cls, parts: Sequence[Bundle]) -> ShownRows:
        """What tasks picked."""
        names = ("shown_pairs", "shown_outcomes", "shown_ids")
        empty = np.empty(0, np.int64)
        pairs, outcomes, ids = (
            np.concatenate([empty, *(part.array(name) for part in parts)]) for name in names
        )
        order = np.lexsort((ids, pairs))
        return cls(pairs[order], outcomes[order], ids[order])

    def violating(self, pair: int, operator: int) -> I64:
        """The first rows that violate a rule, by the numbers of its pair and operator."""
        first, last = np.searchsorted(self.pairs, [pair, pair + 1])
        against = ~ALLOWED[operator][self.outcomes[first:last]]
        violating: I64 = self.row_ids[first:last][against][:ROWS_SHOWN]
        return violating


NO_ROWS = ShownRows.of(())


def asked_rows(
    counts: RowCounts, n_gone: int, n_come: int, ordered: Bool, max_error: float
) -> tuple[AskedRows, AskedRows]:
    """What is asked of the rows that go and of those that come, by the counts before.

    - A rule appears as rows that violated it are gone only if all of them go.
    - What breaks is the tightest rule of a pair, by rows that come.
    - What is the tightest within an error changes only where an operator may come to be within it, or beyond.
      Those pairs are asked last.

    Cost: a few passes over the counts.
    """
    before, n_pairs = counts.counts[:, :NULL], len(counts)
    vanishing = (before > 0) & (before <= n_gone)
    gone = np.flatnonzero(vanishing.any(axis=1))
    was = counts.tightest(ordered)
    breaking = ~ALLOWED[was] & (was >= 0)[:, None]
    near = np.zeros(n_pairs, dtype=np.bool_)
    if max_error:
        near = _near(counts, n_gone, n_come, ordered, max_error)
    asked = breaking | near[:, None]
    come = np.flatnonzero(asked.any(axis=1)) if n_come else np.empty(0, np.int64)
    come = come[np.argsort(~breaking[come].any(axis=1), kind="stable")]
    never = np.iinfo(np.int64).max
    return (
        AskedRows(gone, np.where(vanishing, before, never)[gone]),
        AskedRows(come, np.where(asked, 1, never)[come]),
    )


def _near(counts: RowCounts, n_gone: int, n_come: int, ordered: Bool, max_error: float) -> Bool:
    """Of which pairs the tightest rule within an error may be another one after a batch."""
    violations, compared = counts.violations(), counts.n_compared[:, None]
    was = counts.within(ordered, max_error)
    n_rows = max(1, counts.n_rows - n_gone + n_come)
    fewest, most = violations - n_gone, violations + n_come
    stays = (most / n_rows <= max_error) & (2 * most < compared - n_gone)
    may_be = (fewest / n_rows <= max_error) & (2 * fewest < compared + n_come)
    moves = (np.where(was, ~stays, may_be & (ordered[:, None] | UNORDERED))).any(axis=1)
    # Of several that allow two outcomes the one with the fewest violations is told: the order may change.
    single = ALLOWED.sum(axis=1) == 1
    return np.asarray(moves | (~was[:, single].any(axis=1) & (was.sum(axis=1) > 1)))
