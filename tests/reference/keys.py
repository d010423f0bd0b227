"""Keys by definition: every set of columns is tried, every projection is counted. Slow, plain, independent.

A row is a tuple of Python values, a combination a frozenset of column positions. Nothing here knows of
agree sets or hitting sets except `agree_sets` itself, so that the oracle shares no idea with the code.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from itertools import combinations
from typing import Any

Row = tuple[Any, ...]
Combination = frozenset[int]


class _NaN:
    """The one NaN: equal to itself."""

    def __repr__(self) -> str:
        return "NaN"


NAN = _NaN()


def canonical(value: Any) -> Hashable:
    """Equal values become equal objects: every NaN is one, -0.0 is 0.0.

    >>> canonical(float("nan")) == canonical(-float("nan")), str(canonical(-0.0))
    (True, '0.0')
    """
    if isinstance(value, float):
        return NAN if value != value else value + 0.0
    return value  # type: ignore[no-any-return]


def canonical_row(row: Row) -> Row:
    return tuple(canonical(v) for v in row)


def same(left: Any, right: Any, nulls: str) -> bool:
    """Whether two values of one column agree under a NULL rule."""
    if left is None and right is None:
        return nulls == "equal"
    return canonical(left) == canonical(right)


def agree_set(left: Row, right: Row, nulls: str) -> Combination:
    """The columns on which two rows agree."""
    pairs = zip(left, right, strict=True)
    return frozenset(c for c, (a, b) in enumerate(pairs) if same(a, b, nulls))


def agree_sets(rows: Sequence[Row], nulls: str) -> set[Combination]:
    """The agree sets of all pairs of rows."""
    return {agree_set(a, b, nulls) for a, b in combinations(rows, 2)}


def is_unique(rows: Sequence[Row], columns: Collection[int], nulls: str) -> bool:
    """Whether no two rows agree on all of the columns (Definition 1 of the SWAN paper)."""
    seen = set()
    for row in rows:
        part = tuple(canonical(row[c]) for c in sorted(columns))
        if nulls == "distinct" and None in part:
            continue
        if part in seen:
            return False
        seen.add(part)
    return True


def minimal_uniques(
    rows: Sequence[Row], n_columns: int, nulls: str, max_columns: int | None = None
) -> set[Combination]:
    """The uniques of which every proper subset is not unique, of at most `max_columns` columns.

    >>> rows = [("Lee", 345, 20), ("Payne", 245, 30), ("Lee", 234, 30)]
    >>> sorted(map(sorted, minimal_uniques(rows, 3, "equal")))
    [[0, 2], [1]]
    """
    largest = n_columns if max_columns is None else min(max_columns, n_columns)
    found: set[Combination] = set()
    for size in range(largest + 1):
        for columns in map(frozenset, combinations(range(n_columns), size)):
            if not any(smaller <= columns for smaller in found) and is_unique(rows, columns, nulls):
                found.add(columns)
    return found


def maximal_non_uniques(rows: Sequence[Row], n_columns: int, nulls: str) -> set[Combination]:
    """The non-uniques of which every proper superset is unique.

    >>> sorted(map(sorted, maximal_non_uniques([(1, 5), (1, 6)], 2, "equal")))
    [[0]]
    """
    found: set[Combination] = set()
    for size in range(n_columns, -1, -1):
        for columns in map(frozenset, combinations(range(n_columns), size)):
            if not any(columns <= larger for larger in found) and not is_unique(rows, columns, nulls):
                found.add(columns)
    return found
