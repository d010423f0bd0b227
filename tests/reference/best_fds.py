"""The best functional dependencies by definition: all minimal ones, measured and sorted. Slow, plain.

As in `reference.fds`. A score is that of a table without a history: sqrt(surprise) * 0.75 ^ (|X| - 1) * 0.85.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import sqrt
from typing import NamedTuple

from reference.fds import groups, holds, minimal_fds
from reference.keys import Row


class Measured(NamedTuple):
    """A dependency with what it is worth."""

    lhs: tuple[int, ...]
    rhs: int
    redundancy: int
    score: float


def n_groups(rows: Sequence[Row], columns: Collection[int], nulls: str) -> int:
    """The groups of rows that agree on some columns.

    >>> rows = [("A", 1), ("A", 1), (None, 2), (None, 2)]
    >>> [n_groups(rows, {0}, nulls) for nulls in ("equal", "distinct")]
    [2, 3]
    """
    return sum(1 for _ in groups(rows, columns, 0, nulls))


def agreeing_share(rows: Sequence[Row], column: int, nulls: str) -> float:
    """The chance that two rows, drawn with replacement, agree on a column."""
    [sizes] = [[*values.values()] for values in groups(rows, (), column, nulls)]
    return sum(size * size for size in sizes) / float(len(rows)) ** 2


def best_fds(
    rows: Sequence[Row], n_columns: int, nulls: str, by: str, max_lhs: int | None = None
) -> list[Measured]:
    """All minimal dependencies, best first, without those of constant columns and of keys.

    Ties: fewer columns first, then the right-hand side, then the left-hand side as a number whose bits are
    its columns, 64 columns a digit, the first 64 the highest.

    >>> rows = [("A", 1, 1), ("A", 1, 2), ("B", 2, 3), ("C", 2, 4)]
    >>> [(fd.lhs, fd.rhs, fd.redundancy) for fd in best_fds(rows, 3, "equal", "redundancy")]
    [((0,), 1, 1)]
    """
    # A constant column tells nothing apart, so no minimal left-hand side has one.
    varying = [c for c in range(n_columns) if not holds(rows, (), c, nulls)]
    narrow = [tuple(row[c] for c in varying) for row in rows]
    n, n_different = len(rows), n_groups(rows, range(n_columns), nulls) if rows else 0
    measured = []
    for places, at in minimal_fds(narrow, len(varying), nulls, max_lhs):
        lhs, rhs = tuple(sorted(varying[i] for i in places)), varying[at]
        k = n_groups(rows, lhs, nulls)
        if k < n_different:
            surprise = (1 - agreeing_share(rows, rhs, nulls)) * (n - k) / (n - 1)
            score = sqrt(surprise) * 0.75 ** (len(lhs) - 1) * (1 - 0.15)
            measured.append(Measured(lhs, rhs, n - k, score))

    def place(fd: Measured) -> tuple[float, int, int, list[int]]:
        worth = fd.score if by == "score" else fd.redundancy
        digits = [sum(1 << (c % 64) for c in fd.lhs if c // 64 == w) for w in range(n_columns // 64 + 1)]
        return -worth, len(fd.lhs), fd.rhs, digits

    return sorted(measured, key=place)
