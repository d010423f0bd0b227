"""Group statistics of dependencies X -> A on the live rows of a relation: one job for any number of them.

All that the measures of a dependency need are a few sums over the groups of X: how many groups there are,
how many pairs of rows disagree inside one (g1), how many rows have their group's most frequent value (g3),
how well X predicts A (pdep). They are worked out by splitting groups (`group_counts.py`), exactly, and
however many segments the rows lie in.

NULL rule: *equal*: NULL is a value like any other. *distinct*: a row with NULL in X is a group of its own,
and the NULLs of A are all different.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.evidence import group_tasks
from holdfast.core.evidence.refute import PART_ROWS
from holdfast.core.evidence.sent_groups import SENDING
from holdfast.core.evidence.sent_parts import PartTask, answers
from holdfast.core.evidence.validation import NO_PIVOT
from holdfast.core.rows.kernels.masks import positions_of
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.arrow_types import python_rows
from holdfast.core.store.bundle import Bundle
from holdfast.core.words.change import WitnessRow
from holdfast.core.words.codec import Coded

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Plain = Callable[[pa.Table], list[dict[str, Any]]]

# What it takes on one core to look at a row for a dependency, in ns.
NS_GROUPS = 20


@dataclass(frozen=True, slots=True)
class FdMeasures:
    """Sums over the groups of X, one entry for each dependency X -> A.

    A key (rhs -1) is measured as if A were different in every row: the pairs that agree on X violate it.
    """

    n_rows: int
    n_groups: I64  # of X
    violations: I64  # pairs of rows that agree on X and differ on A
    kept_rows: I64  # the most rows that can stay if the dependency is to hold
    dependence: F64  # sum over groups of (sum of squared counts of A's values / rows of the group)
    violating_rows: I64  # rows of groups in which A varies

    @property
    def pdep(self) -> F64:
        """The chance that a row and one drawn from its group agree on A; 1 if it holds."""
        return self.dependence / self.n_rows if self.n_rows else np.ones_like(self.dependence)


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """How the values of each column are distributed: int64[n_columns] each."""

    n_rows: int
    n_distinct: I64  # values, NULL not among them
    n_nulls: I64
    n_groups: I64  # groups of the column alone, under the NULL rule
    sum_squares: I64  # of the sizes of these groups
    largest: I64  # rows of the largest of them

    @property
    def pdep(self) -> F64:
        """The chance that two rows, drawn with replacement, agree on the column; 1 for a constant."""
        if not self.n_rows:
            return np.ones(len(self.n_distinct), dtype=np.float64)
        return self.sum_squares / float(self.n_rows) ** 2


@dataclass(frozen=True, slots=True)
class ViolatingGroup(Coded):
    """Rows that agree on X and differ on A."""

    lhs: dict[str, Any]  # the values of X
    n_rows: int
    n_values: int  # of A; under the NULL rule `distinct` each NULL is one
    values: tuple[tuple[Any, int], ...]  # the most frequent ones, with their rows; NULLs in one entry
    rows: tuple[WitnessRow, ...]  # some rows, of as many different values as there are

    def to_dict(self) -> dict[str, Any]:
        values = [{"value": value, "n_rows": count} for value, count in self.values]
        return {**Coded.to_dict(self), "values": values}


def measure_fds(relation: Relation, lhs: U64, rhs: I64) -> FdMeasures:
    """The sums of dependencies lhs[i] -> rhs[i]; rhs -1 asks for the groups of lhs[i] and its pairs only.

    IN lhs uint64[n, n_words]; IN rhs int64[n]. One job. Cost: each prefix of the left-hand sides (most
    selective column first) is split once for each pivot, over rows that still share their group, then one
    pass for each right-hand side: about 20 ns a row at worst.
    """
    members, payloads, empty = by_pivot(relation, lhs, rhs)
    # Without a left-hand side the table is one group, and the counts of A's values say it all.
    n_empty_parts = _n_parts(relation, len(empty), len(rhs))
    constants = sorted({int(rhs[i]) for i in empty if rhs[i] >= 0})
    for column in constants:
        payloads += [
            _payload(relation, column, p, n_empty_parts, column=column) for p in range(n_empty_parts)
        ]
    results = _run(relation, group_tasks.measure_part, payloads, relation.n_rows * len(rhs))
    sums = np.zeros((len(rhs), 4), dtype=np.int64)
    dependence = np.zeros(len(rhs), dtype=np.float64)
    for at, result in zip(members, results, strict=False):
        sums[at] += result.array("whole").reshape(-1, 4)
        dependence[at] += result.array("dependence")
    counts = _column_sums(results[len(members) :], len(constants), n_empty_parts)
    whole = _statistics(relation, counts)
    for i in empty:
        sums[i], dependence[i] = _of_one_group(
            relation.n_rows, whole, constants.index(int(rhs[i])) if rhs[i] >= 0 else -1
        )
    return FdMeasures(
        relation.n_rows,
        n_groups=sums[:, 0],
        violations=sums[:, 1],
        kept_rows=sums[:, 2],
        dependence=dependence,
        violating_rows=sums[:, 3],
    )


def by_pivot(
    relation: Relation, lhs: U64, rhs: I64, **fields: Any
) -> tuple[list[list[int]], list[Payload], list[int]]:
    """(members, payloads, empty): dependencies by the most selective column of their left-hand sides, which
    divides the rows; of each payload the numbers of its dependencies; those that have no left-hand side.

    Left-hand sides with the most selective column first, sorted: each prefix is split once.
    """
    place = {c: i for i, c in enumerate(relation.ranking())}
    sequences = [sorted(positions_of(mask), key=place.__getitem__) for mask in lhs]
    pivots: dict[int, list[int]] = {}
    empty: list[int] = []
    for i, sequence in enumerate(sequences):
        if sequence:
            pivots.setdefault(sequence[0], []).append(i)
        else:
            empty.append(i)
    members: list[list[int]] = []
    payloads: list[Payload] = []
    n_parts = _n_parts(relation, len(pivots), len(rhs))
    for pivot, numbers in sorted(pivots.items()):
        numbers.sort(key=lambda i: (sequences[i], rhs[i]))
        questions = {"sequences": [sequences[i] for i in numbers], "rhs": [int(rhs[i]) for i in numbers]}
        for p in range(n_parts):
            payloads.append(_payload(relation, pivot, p, n_parts, **questions, **fields))
            members.append(numbers)
    return members, payloads, empty


def _of_one_group(n: int, columns: ColumnStatistics, at: int) -> tuple[tuple[int, ...], float]:
    """The sums of an empty left-hand side; A is the statistics' column `at` (-1: a key is asked for)."""
    if n < 2:
        return (n, 0, n, 0), float(n)
    pairs = n * (n - 1) // 2
    if at < 0:
        return (1, pairs, 1, n), 1.0
    squares = int(columns.sum_squares[at])
    rows = n if columns.n_groups[at] > 1 else 0
    return (1, pairs - (squares - n) // 2, int(columns.largest[at]), rows), squares / n


def column_statistics(relation: Relation, columns: Sequence[int] | None = None) -> ColumnStatistics:
    """How the values of the columns are distributed (all columns, if none are named). One job.

    Cost: a pass over each column's codes.
    """
    chosen = list(range(len(relation.schema))) if columns is None else list(columns)
    n_parts = _n_parts(relation, len(chosen), len(chosen))
    payloads = [_payload(relation, c, p, n_parts, column=c) for c in chosen for p in range(n_parts)]
    # A pass over one column is some ten times cheaper than a split.
    results = _run(relation, group_tasks.measure_part, payloads, relation.n_rows * len(chosen) * 0.1)
    return _statistics(relation, _column_sums(results, len(chosen), n_parts))


def _column_sums(results: Sequence[Bundle], n_columns: int, n_parts: int) -> I64:
    """(distinct, NULLs, squares, largest) of each column: int64[n_columns, 4]."""
    if not results:
        return np.zeros((n_columns, 4), dtype=np.int64)
    parts = np.stack([r.array("counts") for r in results]).reshape(n_columns, n_parts, 4)
    sums: I64 = parts.sum(axis=1)
    sums[:, 3] = parts[:, :, 3].max(axis=1)
    return sums


def _statistics(relation: Relation, counts: I64) -> ColumnStatistics:
    distinct, nulls, squares, largest = counts.T
    if relation.nulls == "distinct":
        return ColumnStatistics(
            relation.n_rows, distinct, nulls, distinct + nulls, squares + nulls,
            np.maximum(largest, nulls > 0),
        )  # fmt: skip
    return ColumnStatistics(
        relation.n_rows, distinct, nulls, distinct + (nulls > 0), squares + nulls * nulls,
        np.maximum(largest, nulls),
    )  # fmt: skip


def violating_groups(
    relation: Relation,
    lhs: U64,
    rhs: int,
    limit: int = 10,
    rows_per_group: int = 4,
    plain: Plain | None = None,
) -> list[ViolatingGroup]:
    """The groups of rows that agree on `lhs`, a mask, and differ on the column `rhs`: the largest ones.

    Of equally large ones the first in the order of the rows come first. None iff the dependency holds.
    `plain` says how rows become values, for instance such as JSON can carry; as they are, if it is None.
    One job, and a look at the rows that are shown.
    """
    if relation.n_rows < 2 or limit < 1:
        return []
    columns = positions_of(lhs)
    fields = {"rhs": rhs, "limit": limit, "rows_per_group": max(1, rows_per_group)}
    results = run_parts(relation, group_tasks.violating_part, lhs, **fields)
    ranked = [
        (-n_rows, place_, i, j)
        for i, r in enumerate(results)
        for j, (n_rows, place_) in enumerate(
            zip(r.array("n_rows").tolist(), r.array("place").tolist(), strict=True)
        )
    ]
    chosen = [(results[i], j) for _, _, i, j in sorted(ranked)[:limit]]
    of_values = [np.flatnonzero(r.array("value_group") == j) for r, j in chosen]
    of_samples = [np.flatnonzero(r.array("sample_group") == j) for r, j in chosen]
    value_rows = [r.array("value_row")[at].tolist() for (r, _), at in zip(chosen, of_values, strict=True)]
    sample_rows = [r.array("sample_row")[at].tolist() for (r, _), at in zip(chosen, of_samples, strict=True)]
    ids = sorted({i for rows in (*value_rows, *sample_rows) for i in rows})
    fetched = relation.fetch(ids)
    values = dict(zip(ids, (plain or python_rows)(fetched), strict=True))
    names = relation.schema.names
    groups = []
    for (r, j), at, value_ids, sample_ids in zip(chosen, of_values, value_rows, sample_rows, strict=True):
        counts = r.array("value_count")[at].tolist()
        groups.append(
            ViolatingGroup(
                {names[c]: values[value_ids[0]][names[c]] for c in columns},
                int(r.array("n_rows")[j]),
                int(r.array("n_values")[j]),
                tuple((values[i][names[rhs]], n) for i, n in zip(value_ids, counts, strict=True)),
                tuple(WitnessRow(i, values[i]) for i in sample_ids[:rows_per_group]),
            )
        )
    return groups


def run_many(
    relation: Relation, task: PartTask, lhs: U64, rhs: I64, **fields: Any
) -> list[tuple[list[int], Bundle]]:
    """The results of a task on the groups of several dependencies, each with the numbers of these."""
    members, payloads, empty = by_pivot(relation, lhs, rhs, **fields)
    if empty:
        questions = {"sequences": [[] for _ in empty], "rhs": [int(rhs[i]) for i in empty]}
        payloads.append(_payload(relation, NO_PIVOT, 0, 1, **questions, **fields))
        members.append(empty)
    results = _run(relation, task, payloads, relation.n_rows * len(rhs))
    return list(zip(members, results, strict=False))


def run_parts(relation: Relation, task: PartTask, lhs: U64, **fields: Any) -> list[Bundle]:
    """The results of a task on the groups of one left-hand side, a mask: the most selective column divides
    the rows; without one they are one part."""
    place = {c: i for i, c in enumerate(relation.ranking())}
    sequence = sorted(positions_of(lhs), key=place.__getitem__)
    pivot = sequence[0] if sequence else NO_PIVOT
    n_parts = _n_parts(relation, 1, 1) if sequence else 1
    payloads = [_payload(relation, pivot, p, n_parts, sequence=sequence, **fields) for p in range(n_parts)]
    return _run(relation, task, payloads, relation.n_rows)


def _n_parts(relation: Relation, n_pivots: int, n_dependencies: int) -> int:
    """Into how many parts the rows are divided, so that no task is too large and no core idle."""
    if not n_pivots:
        return 1
    n_parts = -(-relation.n_rows // PART_ROWS)
    return max(1, n_parts, -(-relation.shares(NS_GROUPS * relation.n_rows * n_dependencies) // n_pivots))


def _payload(relation: Relation, pivot: int, part: int, n_parts: int, **fields: Any) -> Payload:
    return relation.payload(segments=relation.live, pivot=pivot, part=part, n_parts=n_parts, **fields)


def _run(relation: Relation, task: PartTask, payloads: list[Payload], work: float) -> list[Bundle]:
    return answers(relation, SENDING, task, payloads if relation.n_rows else [], NS_GROUPS * work)
