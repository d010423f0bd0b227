"""The rows that violate X -> A, by their groups: which value most of a group have, and which rows must go.

A group of X violates the dependency if A varies in it. It holds without the rows that have another value than
the most frequent one of their group, and without fewer it does not: groups share no rows, and of one group
two values cannot stay. A key is the dependency of a column that differs in every row: of each group one row
stays, that with the lowest id.

Groups of equally frequent values have no majority: whatever is said to go, the other might as well. Then the
value of the lowest row id stays, in whatever segments rows lie.

One job; a task looks at a part of the values of X (`group_tasks.py`) and answers the rows that are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence import groups as group_jobs
from holdfast.core.evidence.group_tasks import Part, SegmentPart, walked
from holdfast.core.evidence.kernels import group_counts as kernel
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.bundle import pack

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Rows of groups by their value: arrays of one entry a row, in the order in which the rows were given."""

    size: I64  # rows of the group that have the value of this one
    votes: I64  # rows that have the most frequent value
    leader: I64  # where the row of the lowest id with that value is, among those given
    tied: Bool  # another value is as frequent
    stays: Bool  # it has that value


@dataclass(frozen=True, slots=True, eq=False)
class GroupRows:
    """Rows of groups that violate a dependency, the largest groups first, then by their lowest row id; of a
    group first those to remove.

    The arrays are those of the rows that were asked for; the totals are of all.
    """

    row_ids: I64
    group: I64  # its number, from 1
    group_rows: I64
    class_rows: I64  # rows of the group with the same value
    majority: I64  # a row with the value that more rows of the group have than any other; -1 if there is none
    votes: I64  # rows with that value; 0 if there is none
    remove: Bool  # one of the fewest rows without which the dependency holds
    n_rows: int  # that violate it
    n_groups: int
    n_removed: int
    n_pairs: int  # of rows that contradict each other


def group_rows(relation: Relation, lhs: U64, rhs: int, limit: int | None = None) -> GroupRows:
    """The rows that violate `lhs -> rhs`, or of the key `lhs` if rhs is -1; the first `limit` of them.

    Cost: two passes over the rows, and a sort of those that are asked for.
    """
    if relation.n_rows < 2:
        nothing = np.empty(0, dtype=np.int64)
        arrays = dict.fromkeys(("row_ids", "group", "group_rows", "class_rows", "majority", "votes"), nothing)
        return GroupRows(**arrays, remove=nothing > 0, n_rows=0, n_groups=0, n_removed=0, n_pairs=0)
    results = group_jobs.run_parts(relation, rows_part, lhs, rhs=rhs, limit=limit)
    names = ("row_ids", "first", "group_rows", "class_rows", "majority", "votes", "remove")
    arrays = {name: np.concatenate([r.array(name) for r in results]) for name in names}
    by = arrays["row_ids"], 1 - arrays["remove"], arrays["first"], -arrays["group_rows"]
    order = np.lexsort(by)[:limit]
    arrays = {name: array[order] for name, array in arrays.items()}
    first = arrays.pop("first")
    changes = np.ones(len(first), dtype=np.bool_)
    changes[1:] = first[1:] != first[:-1]
    n_rows, n_groups, n_removed, n_pairs = np.sum([r.array("totals") for r in results], axis=0).tolist()
    return GroupRows(
        group=np.cumsum(changes),
        remove=arrays.pop("remove").astype(np.bool_),
        n_rows=n_rows,
        n_groups=n_groups,
        n_removed=n_removed,
        n_pairs=n_pairs,
        **arrays,
    )


def rows_part(payload: Payload, received: Part | None = None) -> bytes:
    """The rows of a part that violate a dependency: those of its largest groups, and the totals of all."""
    part: Part = received or SegmentPart.of(payload)
    rhs, limit = payload["rhs"], payload["limit"]
    [groups] = walked(part, [payload["sequence"]])
    sizes = kernel.group_sizes(groups)
    varied = np.arange(groups.n_groups)
    n_staying, n_pairs = groups.n_groups, int((sizes * (sizes - 1) // 2).sum())
    if rhs >= 0:
        numbers, n_values = part.numbers(rhs), part.n_values(rhs)
        spread = kernel.spread(groups, numbers, n_values, part.nulls_distinct)
        varied = np.flatnonzero(kernel.inspect(groups, numbers, part.nulls_distinct)[2])
        n_staying, n_pairs = spread.kept_rows, spread.violating_pairs
    totals = [int(sizes[varied].sum()), len(varied), len(groups.rows) - n_staying, n_pairs]
    if limit is not None and len(varied):  # of equally large groups all: their row ids say which come first
        by_size = np.sort(sizes[varied])[::-1]
        enough = min(int(np.searchsorted(np.cumsum(by_size), limit)), len(by_size) - 1)
        varied = varied[sizes[varied] >= by_size[enough]]
    chosen = np.zeros(groups.n_groups, dtype=np.bool_)
    chosen[varied] = True
    at = np.flatnonzero(chosen[groups.group])
    rows, group, ids = groups.rows[at], groups.group[at], part.row_ids(groups.rows[at])
    first = np.full(groups.n_groups, np.iinfo(np.int64).max)
    np.minimum.at(first, group, ids)
    values = np.arange(len(rows)) if rhs < 0 else part.numbers(rhs)[rows]
    classes = classes_of(group, values, ids, nulls_distinct=part.nulls_distinct and rhs >= 0)
    # The last group may be cut, but only after its values are counted.
    order = np.lexsort((ids, classes.stays, first[group], -sizes[group]))[:limit]
    arrays = {
        "row_ids": ids,
        "first": first[group],
        "group_rows": sizes[group],
        "class_rows": classes.size,
        "majority": np.where(classes.tied, -1, ids[classes.leader]),
        "votes": np.where(classes.tied, 0, classes.votes),
        "remove": (~classes.stays).astype(np.int8),
    }
    return pack({**{name: a[order] for name, a in arrays.items()}, "totals": np.array(totals)}, {})


def classes_of(
    group: NDArray[np.integer], values: NDArray[np.integer], ids: I64, *, nulls_distinct: bool
) -> Classes:
    """The rows of groups by their value: which is the most frequent of each, of the lowest id if it is one of
    several. `nulls_distinct`: no two values 0 are equal. Cost: a sort.

    >>> classes_of(np.zeros(3, int), np.array([5, 7, 7]), np.array([1, 2, 3]), nulls_distinct=False).stays
    array([False,  True,  True])
    """
    n = len(ids)
    values = np.asarray(values, dtype=np.int64)
    if nulls_distinct:
        values = np.where(values == 0, -1 - np.arange(n), values)
    order = np.lexsort((ids, values, group))
    g, v = group[order], values[order]
    begins = np.ones(n, dtype=np.bool_)
    begins[1:] = (g[1:] != g[:-1]) | (v[1:] != v[:-1])
    starts = np.flatnonzero(begins)
    sizes = np.diff([*starts, n])
    lowest, of_group = order[starts], g[starts]
    ranked = np.lexsort((ids[lowest], -sizes, of_group))
    heads = np.ones(len(ranked), dtype=np.bool_)
    heads[1:] = of_group[ranked][1:] != of_group[ranked][:-1]
    first = np.flatnonzero(heads)
    best = ranked[first]  # the class of each group that leads
    second = np.minimum(first + 1, len(ranked) - 1)
    rival = ranked[second]
    tied = (second > first) & (of_group[rival] == of_group[best]) & (sizes[rival] == sizes[best])
    number = np.cumsum(heads) - 1  # of the group, along `ranked`
    group_of_class = np.empty(len(ranked), dtype=np.int64)
    group_of_class[ranked] = number
    class_of_row = np.empty(n, dtype=np.int64)
    class_of_row[order] = np.cumsum(begins) - 1
    leading = best[group_of_class[class_of_row]] if n else class_of_row
    return Classes(
        size=sizes[class_of_row],
        votes=sizes[leading],
        leader=lowest[leading],
        tied=tied[group_of_class[class_of_row]] if n else np.empty(0, dtype=np.bool_),
        stays=leading == class_of_row,
    )
