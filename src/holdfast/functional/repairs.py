"""Values that look wrong, and the values that should stand there: dependencies vote.

Rows that agree on `zip` have one `city`, but for errors. So every dependency that almost holds proposes, for
a row whose value differs from that of two thirds of its group, the value of these. One dependency may be
wrong about a row, for its left-hand side may be the error; several seldom are. A cell is proposed to be
repaired if more dependencies vote for one other value than for its own, and than for any third one.

Which dependencies vote, if nobody says it: all with one column on the left that

- leave out at most MAX_ERRORS of the rows that have company in their group (g3 of these rows),
- explain at least MIN_EXPLAINED of what they could beyond chance (mu+, see `fd_ranking.py`): a column that is
  nearly constant is determined by everything,
- have half as many groups as rows at most: single rows have nobody to vote,

the best MAX_VOTERS by score. They are worked out from the rows, in one job, whatever is tracked. These
limits, and the two thirds, were chosen on the tables that `benchmarks/repairs.py` judges; left-hand sides of
two columns added nothing on the first of them.

NULL is no value to learn from, but one that can be filled (`group_votes.py`). Nothing is ever applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.cover.news import plain
from holdfast.core.cover.violating_rows import BATCH_ROWS, row_texts
from holdfast.core.evidence.group_votes import Votes, votes_on_doubtful
from holdfast.core.evidence.groups import column_statistics, measure_fds
from holdfast.core.rows.kernels.masks import mask_of
from holdfast.core.rows.relation import Relation
from holdfast.core.store.arrow_types import python_values
from holdfast.core.words.change import row_name
from holdfast.core.words.dependency import Fd
from holdfast.core.words.display import Displayed
from holdfast.errors import plural
from holdfast.functional.fd_ranking import mu_plus, surprise
from holdfast.kind import entries

if TYPE_CHECKING:
    import pandas as pd

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

MAX_ERRORS = 0.05
MIN_EXPLAINED = 0.3
MAX_VOTERS = 256
# `repr` shows so many.
SHOWN = 20


@dataclass(frozen=True, eq=False)
class Repairs(Displayed):
    """Cells that dependencies propose to repair, those of which they are surest first.

    As a table: `row`, `column`, `old` and `suggested` as texts, `votes` of so many `voters`, `support`, the
    rows of the largest group that have the value, `confidence`, and the `dependencies` that vote for it.
    """

    table: str
    version: int
    n_rows: int
    fds: tuple[Fd, ...]  # those that had a vote
    relation: Relation = field(repr=False)
    row_ids: I64 = field(repr=False)
    columns: I64 = field(repr=False)  # positions
    carriers: I64 = field(repr=False)  # rows that have the suggested value
    votes: I64 = field(repr=False)  # dependencies for it
    voters: I64 = field(repr=False)  # dependencies that vote on the cell
    support: I64 = field(repr=False)
    # Of the voters, and one more that is against it, the mean share of the rows of a group that have the
    # value (0 of those for another). So one vote alone is never above a half.
    confidence: F64 = field(repr=False)
    said_by: tuple[I64, ...] = field(repr=False)  # the numbers of the dependencies for it

    def __len__(self) -> int:
        return len(self.row_ids)

    def above(self, confidence: float) -> Repairs:
        """Those of at least so much confidence."""
        n = int((self.confidence >= confidence).sum())  # they are the first
        arrays = ("row_ids", "columns", "carriers", "votes", "voters", "support", "confidence", "said_by")
        return replace(self, **{name: getattr(self, name)[:n] for name in arrays})

    def values(self, chosen: slice = slice(None)) -> tuple[list[Any], list[Any]]:
        """(old, suggested) as Python holds them."""
        names, columns = self.relation.schema.names, self.columns[chosen]
        old: list[Any] = [None] * len(columns)
        suggested: list[Any] = [None] * len(columns)
        for ids, values in ((self.row_ids[chosen], old), (self.carriers[chosen], suggested)):
            for c in np.unique(columns).tolist():
                at = np.flatnonzero(columns == c)
                column = self.relation.fetch(ids[at]).column(names[c])
                for i, value in zip(at.tolist(), python_values(column), strict=True):
                    values[i] = value
        return old, suggested

    def batches(self, n_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """The repairs as tables of some rows."""
        names = pa.array(self.relation.schema.names)
        said = pa.array([fd.name for fd in self.fds], pa.string())
        for start in range(0, len(self), n_rows):
            chosen = slice(start, start + n_rows)
            texts = [pa.array(map(_text, values), pa.string()) for values in self.values(chosen)]
            by = self.said_by[chosen]
            offsets = pa.array(np.cumsum([0, *map(len, by)]), pa.int32())
            arrays = [
                row_texts(self.row_ids[chosen]),
                names.take(pa.array(self.columns[chosen])),
                *texts,
                *(pa.array(a[chosen]) for a in (self.votes, self.voters, self.support, self.confidence)),
                pa.ListArray.from_arrays(offsets, said.take(pa.array(np.concatenate(by)))),
            ]
            yield pa.table(arrays, names=[f.name for f in self.schema])

    @property
    def schema(self) -> pa.Schema:
        counts = [(name, pa.int64()) for name in ("votes", "voters", "support")]
        texts = [(name, pa.string()) for name in ("row", "column", "old", "suggested")]
        return pa.schema(
            [*texts, *counts, ("confidence", pa.float64()), ("dependencies", pa.list_(pa.string()))]
        )

    def to_arrow(self) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), *self.batches()])

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_dict(self) -> dict[str, Any]:
        records = []
        values = zip(*self.values(), strict=True)
        for (old, suggested), record in zip(values, self.to_arrow().to_pylist(), strict=True):
            records.append({**record, "old": plain(old), "suggested": plain(suggested)})
        return {
            "table": self.table,
            "version": self.version,
            "n_rows": self.n_rows,
            "n_repairs": len(self),
            "dependencies": [fd.name for fd in self.fds],
            "repairs": records,
        }

    def __repr__(self) -> str:
        old, suggested = self.values(slice(SHOWN))
        names = self.relation.schema.names
        lines = [f"{self.table}: {plural(len(self), 'repair')} by {entries()['fd'].counted(len(self.fds))}"]
        for i, (before, after) in enumerate(zip(old, suggested, strict=True)):
            where = f"row {row_name(int(self.row_ids[i]))}, {names[self.columns[i]]}"
            lines.append(f"  {self.confidence[i]:.2f}  {where}: {plain(before)!r} -> {plain(after)!r}")
        if len(self) > SHOWN:
            lines.append(f"  ... and {len(self) - SHOWN:,} more")
        return "\n".join(lines)


def _text(value: Any) -> str | None:
    """A value as a text, whole."""
    return value if value is None or isinstance(value, str) else str(plain(value))


def proposed(
    relation: Relation, table: str, version: int, fds: Sequence[tuple[Sequence[int], int]]
) -> Repairs:
    """The repairs that dependencies (left-hand side, right-hand side) vote for; without any, the best of the
    table. Trivial ones have nothing to say."""
    voters = [(tuple(lhs), rhs) for lhs, rhs in fds if rhs not in lhs] if fds else trusted(relation)
    names = relation.schema.names
    said = tuple(Fd(table, tuple(names[c] for c in lhs), names[rhs]) for lhs, rhs in voters)
    lhs = np.array([mask_of(columns, relation.n_words) for columns, _ in voters], dtype=np.uint64)
    rhs = np.array([column for _, column in voters], dtype=np.int64)
    votes = votes_on_doubtful(relation, lhs.reshape(-1, relation.n_words), rhs)
    return Repairs(table, version, relation.n_rows, said, relation, *_tallied(votes, rhs))


def trusted(relation: Relation) -> list[tuple[tuple[int, ...], int]]:
    """The dependencies with one column on the left that may vote, the best first. Two jobs.

    Cost: a pass over the rows for each two columns of which the first has few enough groups, and the second
    not many more values than that.
    """
    relation = replace(relation, nulls="distinct")
    n, columns = relation.n_rows, column_statistics(relation)
    n_groups, n_distinct = columns.n_groups.tolist(), columns.n_distinct.tolist()
    left = [c for c in range(len(n_groups)) if 2 * n_groups[c] <= n and n_distinct[c] > 1]
    pairs = [
        (a, b)
        for a in left
        for b in range(len(n_groups))
        if a != b and 1 < n_distinct[b] <= n_groups[a] + MAX_ERRORS * n
    ]
    if not pairs:
        return []
    # A key is measured by the rows that have company.
    asked = [*pairs, *((a, -1) for a in left)]
    masks = np.array([mask_of([a], relation.n_words) for a, _ in asked], dtype=np.uint64)
    measures = measure_fds(relation, masks, np.array([b for _, b in asked], dtype=np.int64))
    company = dict(zip(left, measures.violating_rows[len(pairs) :].tolist(), strict=True))
    m = len(pairs)
    wrong = (n - measures.kept_rows[:m]) / np.array([max(1, company[a]) for a, _ in pairs])
    pdep_rhs = columns.pdep[[b for _, b in pairs]]
    mu = mu_plus(measures.pdep[:m], pdep_rhs, measures.n_groups[:m], n)
    score = mu * np.sqrt(surprise(pdep_rhs, measures.n_groups[:m], n))
    good = np.flatnonzero((wrong <= MAX_ERRORS) & (mu >= MIN_EXPLAINED))
    best = good[np.argsort(-score[good], kind="stable")][:MAX_VOTERS]
    return [((pairs[i][0],), pairs[i][1]) for i in best.tolist()]


def _tallied(votes: Votes, rhs: I64) -> tuple[Any, ...]:
    """The fields of `Repairs` from `row_ids` on: the cells for which another value has most votes."""
    column = rhs[votes.dependency]
    share = votes.n_for / np.maximum(1, votes.n_rows)
    order = np.lexsort((votes.dependency, votes.value, votes.row_ids, column))
    cells = np.stack([column, votes.row_ids, votes.value], axis=1)[order]
    new_value = np.ones(len(order), dtype=np.bool_)
    new_value[1:] = (cells[1:] != cells[:-1]).any(axis=1)
    starts = np.flatnonzero(new_value)  # of the votes for one value of a cell
    n_votes = np.diff([*starts, len(order)])
    cell = np.cumsum(np.append(True, (cells[starts][1:, :2] != cells[starts][:-1, :2]).any(axis=1))) - 1
    if not len(starts):
        nothing = np.empty(0, dtype=np.int64)
        return (*[nothing] * 6, nothing.astype(np.float64), ())
    voters = np.bincount(cell, weights=n_votes).astype(np.int64)[cell]
    ranked = np.lexsort((-n_votes, cell))
    first = np.append(True, cell[ranked][1:] != cell[ranked][:-1])
    best = ranked[first]
    runner_up = np.append(ranked[1:], ranked[-1])[first]
    alone = (cell[runner_up] != cell[best]) | (runner_up == best)
    clear = alone | (n_votes[runner_up] < n_votes[best])
    best = best[clear & (votes.differs[order][starts[best]] > 0)]
    confidence = np.add.reduceat(share[order], starts)[best] / (voters[best] + 1)
    support = np.maximum.reduceat(votes.n_for[order], starts)[best]
    head = order[starts[best]]
    place = np.lexsort((votes.row_ids[head], column[head], -n_votes[best], -confidence))
    head, best = head[place], best[place]
    said_by = tuple(votes.dependency[order[starts[i] : starts[i] + n_votes[i]]] for i in best.tolist())
    return (
        votes.row_ids[head],
        column[head],
        votes.carrier[head],
        n_votes[best],
        voters[best],
        support[place],
        confidence[place],
        said_by,
    )
