"""Groups of rows by their values on some columns, and how a further column varies inside them.

Rows come with *numbers*: int32 per column, dense, equal iff the values are equal; 0 is NULL. Groups of X
are kept stripped: only rows that share their group with another row, with the number of their group. A row
that is left out is a group of its own, so nothing is lost: with n rows in all, X has
`n - len(rows) + n_groups` groups. Adding a column splits groups and drops what is left alone, so work
shrinks with every column; start with the most selective one.

Under the NULL rule *distinct* a row with NULL in X is alone, and every NULL of another column is a value of
its own. Nothing here compares hashes: a cell (group, number) is one 64-bit integer, exactly.

All sums are 64-bit integers and exact up to 2^31 rows; only the one that divides is a float.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# A table with a place for every possible cell is used up to so many places a row, else a hash table.
PLACES_PER_ROW = 4


class Groups(NamedTuple):
    """The groups of at least two rows: `group[i]` in 0..n_groups is the group of row `rows[i]`.

    Rows ascend; groups are numbered in the order of their first rows.
    """

    rows: I32
    group: I32
    n_groups: int


class Spread(NamedTuple):
    """How one column varies inside groups; sums over all groups of at least two rows."""

    violating_pairs: int  # pairs that agree on X and differ on the column
    kept_rows: int  # rows with their group's most frequent value, one value each
    dependence: float  # sum of squared counts of a group's values / rows of the group
    violating_rows: int  # rows of groups with more than one value


@njit(cache=True, nogil=True)
def _split(rows, group, n_groups, numbers, n_values, skip, places, out_rows, out_group):  # type: ignore[no-untyped-def]
    """(rows written, groups that they are in): the cells of at least two rows, as groups.

    IN rows, group int32[m], numbers int32[n], below n_values; OUT out_rows, out_group int32[m]. Cells are
    counted, then their rows written: in a table of all cells while it has at most `places` times m of them,
    else in a hash table. `skip`: rows with NULL are in no cell.
    """
    m = rows.shape[0]
    n_rows = 0
    n_new = 0
    if n_groups * n_values <= places * m:
        cells = np.zeros(n_groups * n_values, dtype=np.int32)
        for i in range(m):
            v = numbers[rows[i]]
            if not (skip and v == 0):
                cells[np.int64(group[i]) * n_values + v] += 1
        for i in range(m):
            v = numbers[rows[i]]
            if skip and v == 0:
                continue
            cell = np.int64(group[i]) * n_values + v
            # A count becomes -1 - the number of the new group when its first row is met again.
            c = cells[cell]
            if c == 1:
                continue
            if c > 0:
                c = -1 - n_new
                cells[cell] = c
                n_new += 1
            out_rows[n_rows] = rows[i]
            out_group[n_rows] = -1 - c
            n_rows += 1
        return n_rows, n_new
    capacity = 1024
    while capacity < 2 * m:
        capacity *= 2
    keys = np.zeros(capacity, dtype=np.uint64)  # 1 + the cell; 0 is free
    counts = np.zeros(capacity, dtype=np.int32)
    place = np.empty(m, dtype=np.int32)
    for i in range(m):
        v = numbers[rows[i]]
        if skip and v == 0:
            place[i] = -1
            continue
        key = np.uint64(np.int64(group[i]) * n_values + v + 1)
        s = np.int64(mix(key) & np.uint64(capacity - 1))
        while keys[s] != key:
            if keys[s] == 0:
                keys[s] = key
                break
            s = (s + 1) & (capacity - 1)
        counts[s] += 1
        place[i] = s
    for i in range(m):
        s = place[i]
        if s < 0:
            continue
        c = counts[s]
        if c == 1:
            continue
        if c > 0:
            c = -1 - n_new
            counts[s] = c
            n_new += 1
        out_rows[n_rows] = rows[i]
        out_group[n_rows] = -1 - c
        n_rows += 1
    return n_rows, n_new


def everything(n_rows: int) -> Groups:
    """The groups of no column at all: all rows are in one (none, if there is but one row)."""
    if n_rows < 2:
        return Groups(np.empty(0, np.int32), np.empty(0, np.int32), 0)
    return Groups(np.arange(n_rows, dtype=np.int32), np.zeros(n_rows, dtype=np.int32), 1)


def split(groups: Groups, numbers: I32, n_values: int, nulls_distinct: bool) -> Groups:
    """The groups of one more column.

    IN numbers int32[n] in 0..n_values: the column, for all rows. Cost: two passes over the rows that are
    left, with a counter for each cell: one access a row where cells are few, else a hash probe.
    """
    rows = np.empty(len(groups.rows), dtype=np.int32)
    group = np.empty(len(groups.rows), dtype=np.int32)
    n_rows, n_new = _split(
        frozen(groups.rows), frozen(groups.group), groups.n_groups, frozen(numbers), n_values + 1,
        nulls_distinct, PLACES_PER_ROW, rows, group,
    )  # fmt: skip
    return Groups(rows[:n_rows], group[:n_rows], int(n_new))


@njit(cache=True, nogil=True)
def _inspect(rows, group, numbers, skip, sizes, first, varied):  # type: ignore[no-untyped-def]
    """sizes, first (row) and varied (more than one value) of each group; preset to 0, -1, False."""
    for i in range(rows.shape[0]):
        g = group[i]
        v = numbers[rows[i]]
        if first[g] < 0:
            first[g] = rows[i]
        elif numbers[first[g]] != v:
            varied[g] = True
        if skip and v == 0:
            varied[g] = True  # a group has two rows at least
        sizes[g] += 1


def inspect(groups: Groups, numbers: I32, nulls_distinct: bool) -> tuple[I64, I32, Bool]:
    """(sizes, first, varied) of each group: its rows, its first row, and whether the column varies in it.

    IN numbers int32[n]: the column. Cost: one pass.
    """
    sizes = np.zeros(groups.n_groups, dtype=np.int64)
    first = np.full(groups.n_groups, -1, dtype=np.int32)
    varied = np.zeros(groups.n_groups, dtype=np.bool_)
    _inspect(frozen(groups.rows), frozen(groups.group), frozen(numbers), nulls_distinct, sizes, first, varied)
    return sizes, first, varied


@njit(cache=True, nogil=True)
def _spread(rows, group, numbers, n_values, skip, places, sizes, varied):  # type: ignore[no-untyped-def]
    """The fields of `Spread`. Cells are counted as in `_split`, but only in groups where the column varies.

    IN rows, group int32[m], numbers int32[n], below n_values; IN sizes int64[k], varied bool[k]: of groups.
    """
    n_groups = sizes.shape[0]
    slot = np.empty(n_groups, dtype=np.int64)
    n_varied = np.int64(0)
    m = np.int64(0)
    for g in range(n_groups):
        slot[g] = -1
        if varied[g]:
            slot[g] = n_varied
            n_varied += 1
            m += sizes[g]
    squares = np.zeros(n_varied, dtype=np.int64)
    most = np.zeros(n_varied, dtype=np.int64)
    if n_varied * n_values <= places * m:
        cells = np.zeros(n_varied * n_values, dtype=np.int32)
        for i in range(rows.shape[0]):
            k = slot[group[i]]
            if k >= 0:
                cells[k * n_values + numbers[rows[i]]] += 1
        for k in range(n_varied):
            for v in range(n_values):
                c = np.int64(cells[k * n_values + v])
                if c == 0:
                    continue
                if skip and v == 0:
                    squares[k] += c
                    most[k] = max(most[k], 1)
                else:
                    squares[k] += c * c
                    most[k] = max(most[k], c)
    else:
        capacity = 1024
        while capacity < 2 * m:
            capacity *= 2
        keys = np.zeros(capacity, dtype=np.uint64)
        counts = np.zeros(capacity, dtype=np.int32)
        for i in range(rows.shape[0]):
            k = slot[group[i]]
            if k < 0:
                continue
            v = numbers[rows[i]]
            if skip and v == 0:
                squares[k] += 1
                most[k] = max(most[k], 1)
                continue
            key = np.uint64(k * n_values + v + 1)
            s = np.int64(mix(key) & np.uint64(capacity - 1))
            while keys[s] != key:
                if keys[s] == 0:
                    keys[s] = key
                    break
                s = (s + 1) & (capacity - 1)
            # The squares of a count grow by its odd numbers: 1 + 3 + 5 + ...
            c = np.int64(counts[s]) + 1
            counts[s] = c
            squares[k] += 2 * c - 1
            most[k] = max(most[k], c)
    violating_pairs = np.int64(0)
    kept_rows = np.int64(0)
    constant_rows = np.int64(0)
    dependence = 0.0
    for g in range(n_groups):
        size = sizes[g]
        k = slot[g]
        if k < 0:
            kept_rows += size
            constant_rows += size
        else:
            violating_pairs += (size * size - squares[k]) // 2
            kept_rows += most[k]
            dependence += squares[k] / size
    return violating_pairs, kept_rows, dependence + constant_rows, m


def spread(groups: Groups, numbers: I32, n_values: int, nulls_distinct: bool) -> Spread:
    """How a column varies inside groups.

    IN numbers int32[n] in 0..n_values: the column, for all rows. Cost: one pass for groups in which it does
    not vary (a dependency that holds has no others); one counter a row more where it does.
    """
    sizes, _, varied = inspect(groups, numbers, nulls_distinct)
    violating_pairs, kept_rows, dependence, violating_rows = _spread(
        frozen(groups.rows), frozen(groups.group), frozen(numbers), n_values + 1, nulls_distinct,
        PLACES_PER_ROW, frozen(sizes), frozen(varied),
    )  # fmt: skip
    return Spread(int(violating_pairs), int(kept_rows), float(dependence), int(violating_rows))


def group_sizes(groups: Groups) -> I64:
    """The rows of each group: int64[n_groups]."""
    return np.bincount(groups.group, minlength=groups.n_groups)


@njit(cache=True, nogil=True)
def _count(numbers, counts):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        counts[numbers[i]] += 1


def count_numbers(numbers: I32, n_values: int) -> I64:
    """How often each number occurs: int64[n_values + 1], that of NULL first.

    IN numbers int32[n] in 0..n_values.
    """
    counts = np.zeros(n_values + 1, dtype=np.int64)
    _count(frozen(numbers), counts)
    return counts


@njit(cache=True, nogil=True)
def _renumber(numbers, codes, positions, out):  # type: ignore[no-untyped-def]
    for i in range(positions.shape[0]):
        out[i] = numbers[codes[positions[i]]]


def renumber(numbers: I32, codes: I32, positions: I32, out: I32) -> None:
    """OUT out int32[m]: the number of each row `positions[i]` of a segment.

    IN numbers int32[k]: the number of each local code; codes int32[n]; positions int32[m].
    """
    _renumber(frozen(numbers), frozen(codes), frozen(positions), out)


def warm_up() -> None:
    numbers = np.array([1, 1, 2, 2, 0], dtype=np.int32)
    varying = np.array([1, 2, 1, 1, 0], dtype=np.int32)
    groups = split(everything(5), numbers, 2, False)
    spread(groups, varying, 2, False)
    spread(groups, varying, 1 << 30, True)
    split(groups, varying, 1 << 30, True)
    group_sizes(groups)
    count_numbers(numbers, 2)
    renumber(varying, numbers, np.arange(5, dtype=np.int32), np.empty(5, dtype=np.int32))
