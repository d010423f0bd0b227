"""Normal forms by definition, on rows: every set of columns is tried. Slow, plain, independent.

A row is a tuple of Python values; columns are positions. NULL (None) is a value here, as it is for a join
that takes NULL for equal; `minimal_fds` alone knows the other rule, under which NULL agrees with nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

Row = tuple[Any, ...]
Columns = frozenset[int]
Arrow = tuple[Columns, int]


def subsets(columns: Collection[int]) -> Iterator[Columns]:
    """All subsets, small ones first."""
    for size in range(len(columns) + 1):
        for chosen in combinations(sorted(columns), size):
            yield frozenset(chosen)


def holds(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str = "equal") -> bool:
    def agree(a: Row, b: Row, column: int) -> bool:
        if a[column] is None and b[column] is None:
            return nulls == "equal"
        return bool(a[column] == b[column])

    return all(agree(a, b, rhs) for a, b in combinations(rows, 2) if all(agree(a, b, c) for c in lhs))


def minimal_fds(rows: Sequence[Row], n_columns: int, nulls: str = "equal") -> list[Arrow]:
    found: list[Arrow] = []
    for lhs in subsets(range(n_columns)):
        for rhs in range(n_columns):
            known = any(a == rhs and x <= lhs for x, a in found)
            if rhs not in lhs and not known and holds(rows, lhs, rhs, nulls):
                found.append((lhs, rhs))
    return found


def project(rows: Iterable[Row], columns: Sequence[int]) -> set[Row]:
    return {tuple(row[c] for c in columns) for row in rows}


def natural_join(tables: Sequence[tuple[Sequence[int], Collection[Row]]]) -> set[frozenset[tuple[int, Any]]]:
    """The rows, as sets of (column, value), that agree with a row of every table."""
    joined: list[dict[int, Any]] = [{}]
    for columns, rows in tables:
        joined = [
            {**left, **dict(zip(columns, row, strict=True))}
            for left in joined
            for row in rows
            if all(left.get(c, v) == v for c, v in zip(columns, row, strict=True))
        ]
    return {frozenset(row.items()) for row in joined}


def is_superkey(rows: Collection[Row], columns: Collection[int]) -> bool:
    """Of different rows."""
    return len(project(rows, sorted(columns))) == len(set(rows))


def minimal_keys(rows: Collection[Row], n_columns: int) -> set[Columns]:
    found: set[Columns] = set()
    for columns in subsets(range(n_columns)):
        if not any(key <= columns for key in found) and is_superkey(rows, columns):
            found.add(columns)
    return found


def violations(rows: Collection[Row], n_columns: int) -> list[Arrow]:
    """The FDs that keep the rows from being in BCNF: not trivial, and no superkey on the left."""
    different = sorted(set(rows), key=repr)
    return [
        (lhs, rhs)
        for lhs in subsets(range(n_columns))
        if not is_superkey(different, lhs)
        for rhs in range(n_columns)
        if rhs not in lhs and holds(different, lhs, rhs)
    ]


def is_3nf(rows: Collection[Row], n_columns: int) -> bool:
    prime = frozenset().union(*minimal_keys(rows, n_columns))
    return all(rhs in prime for _, rhs in violations(rows, n_columns))


def closure(columns: Collection[int], fds: Collection[Arrow]) -> Columns:
    known = set(columns)
    while more := {rhs for lhs, rhs in fds if lhs <= known} - known:
        known |= more
    return frozenset(known)


def preserved(lhs: Columns, rhs: int, parts: Collection[Columns], fds: Collection[Arrow]) -> bool:
    """Whether lhs -> rhs follows from what the FDs say inside of the single parts (Beeri and Honeyman)."""
    known = set(lhs)
    while True:
        more: set[int] = set()
        for part in parts:
            more |= closure(known & part, fds) & part
        if more <= known:
            return rhs in known
        known |= more
