"""The columns of a lake that have the most values in common with a column, contained or not. No kernels.

Every value of the column is looked up in the index of each part, and the columns of its posting are counted,
the rarest value first. A value that very many columns have tells little, and its posting is long. So from
time to time *bounds* are looked at: a column of s values, c of them counted, comes to min(c + r, s) at most
if r values are left. Those that cannot reach the k-th best count of now are not among the k best. As soon as
it is cheaper to look the values of all others up among the r than to read the postings of the r, that is done
and ends it. So it is in JOSIE (Zhu et al., SIGMOD 2019); but here the sizes of all columns are at hand, so
columns that were not met yet are bounded, too. Either way the counts are exact.

Cost: a look-up for each value and part; then a step for each posting of the values at most, and about as much
again for bounds. Memory: a few numbers for each column of the lake, and the postings between two looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.tabular import Listed
from holdfast.lakes.answers import AskedColumn, LakeOverlap
from holdfast.lakes.reader.catalogue import I32, U64, LakeCatalogue
from holdfast.lakes.reader.joins import common
from holdfast.lakes.reader.value_search import runs_of
from holdfast.lakes.state import I64, run_positions

# What one core takes, in ns: to read and count a posting, 15 to 28; to look a value of a column up among
# others, 120 to 280, the more of these there are (533,146 columns, a busy machine).
NS_POSTING, NS_VALUE = 15, 150
# Postings that are read between two looks at the bounds, unless the lake has more columns: a look costs about
# as much as a posting for each column.
STEP = 1 << 20


class LakeOverlaps(Listed[LakeOverlap]):
    """What the columns of a table share with those of a lake: of each the best, best first.

    `table` is the table that was asked about and `columns` what was asked about of it, also where nothing is
    shared; `version` is that of the lake. It is not among the other answers, since it needs Arrow.
    """

    noun = "overlaps"

    def __init__(
        self, table: str, version: int, columns: Sequence[AskedColumn], overlaps: Iterable[LakeOverlap]
    ) -> None:
        super().__init__(overlaps)
        self.table, self.version, self.columns = table, version, tuple(columns)

    def to_dict(self) -> dict[str, Any]:
        columns = [column.to_dict() for column in self.columns]
        return {"version": self.version, "table": self.table, "columns": columns, **super().to_dict()}

    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "column": o.asked.column,
                "n_values": o.asked.n_values,
                "other_table": o.other.table,
                "other_column": o.other.column,
                "n_other": o.n_other,
                "shared": o.shared,
                "containment": o.containment,
                "coverage": o.coverage,
                "jaccard": o.jaccard,
            }
            for o in self
        ]

    def lines(self) -> Iterable[str]:
        return (f"{o.shared:,} of {o.asked.n_values:,}  {o}" for o in self)


def live_sizes(catalogue: LakeCatalogue) -> I32:
    """How many values each column has, int32[next_column]; 0 for those of dropped tables."""
    return np.where(catalogue.live[catalogue.table_of], catalogue.sizes, np.int32(0))


def most_shared(
    catalogue: LakeCatalogue, sizes: I32, values: U64, checks: U64, top: int, asked: int | None = None
) -> tuple[I64, I32]:
    """(columns, shared): the columns with the most of some values, at most `top`, and how many of them.

    `sizes` are the `live_sizes`. The values are distinct, (h1, h2), sorted. The column `asked`, which they
    are of, is left out, and so is what has none of them. Equal counts are in the order of the names of
    tables, then as the columns stand in them.
    """
    if asked is not None:
        sizes = sizes.copy()
        sizes[asked] = 0
    counts = _counts(catalogue, values, checks, top, sizes)
    least = max(_least(counts, top), 1)
    best = np.flatnonzero(counts > least)
    tied = np.flatnonzero(counts == least)
    n = top - len(best)
    if n < len(tied):
        tied = tied[np.argpartition(_places(catalogue, tied), n)[:n]]
    columns: NDArray[Any] = np.concatenate([best, tied])
    columns = columns[np.lexsort((_places(catalogue, columns), -counts[columns]))]
    return columns, counts[columns]


def _places(catalogue: LakeCatalogue, columns: NDArray[Any]) -> I64:
    """What columns are in order by: the name of their table, then their number."""
    places: I64 = (catalogue.name_ranks[catalogue.table_of[columns]].astype(np.int64) << 32) + columns
    return places


def _least(counts: I32, top: int) -> int:
    """The count that is the `top`-th best; 0 if there are not so many."""
    some = counts[counts > 0]
    return int(np.partition(some, len(some) - top)[-top]) if len(some) >= top else 0


def _counts(catalogue: LakeCatalogue, values: U64, checks: U64, top: int, sizes: I32) -> I32:
    """How many of the values each column has: int32[next_column]; 0 for those whose size is said to be 0.

    Of columns that are not among the best it may be fewer than they have.
    """
    runs = [runs_of(part, values, checks) for part in catalogue.parts]
    totals = np.zeros(len(values), np.int64)
    for _, lengths in runs:
        totals += lengths
    order: NDArray[Any] = np.argsort(totals, kind="stable")
    order = order[totals[order] > 0]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(totals[order])])
    counts, out = np.zeros(len(sizes), np.int32), np.flatnonzero(sizes == 0)
    step, done = max(STEP, len(sizes)), 0
    while done < len(order):
        first, done = done, max(done + 1, int(np.searchsorted(ends, ends[done] + step, "right")) - 1)
        some, left = order[first:done], order[done:]
        for part, (starts, lengths) in zip(catalogue.parts, runs, strict=True):
            columns = part.array("postings")[run_positions(starts[some], lengths[some])[1]]
            low, n = part.ref.first_column, part.ref.n_columns
            counts[low : low + n] += np.bincount(columns, minlength=n)
        counts[out] = 0
        if len(left):
            bounds = np.minimum(counts + np.int32(len(left)), sizes)
            able = np.flatnonzero(bounds >= max(_least(counts, top), 1))
            n_able = int(sizes[able].sum(dtype=np.int64))
            if n_able * NS_VALUE < int(ends[-1] - ends[done]) * NS_POSTING:
                left.sort()
                _add_shared(catalogue, able, (values[left], checks[left]), counts)
                break
    return counts


def _add_shared(
    catalogue: LakeCatalogue, columns: NDArray[Any], wanted: tuple[U64, U64], counts: I32
) -> None:
    """Count how many of some values each of some columns has; they have values. IN/OUT counts."""
    for part in catalogue.parts:
        low, n = part.ref.first_column, part.ref.n_columns
        of_part = columns[slice(*np.searchsorted(columns, [low, low + n]))] - low
        groups = np.cumsum(part.sizes[of_part], dtype=np.int64) // STEP
        for some in np.split(of_part, np.flatnonzero(np.diff(groups)) + 1):
            if len(some):
                offsets, values, checks = part.values_of(some)
                shared = common((values, checks), wanted)
                counts[low + some] += np.add.reduceat(shared, offsets[:-1], dtype=np.int32)
