"""Groups of rows and the measures of dependencies, by definition: slow, plain, independent.

A row is a tuple of values, None is NULL. Pairs are counted by looking at every pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

Row = tuple[Hashable, ...]


def groups(rows: Sequence[Row], lhs: Collection[int], nulls: str) -> list[list[int]]:
    """The rows of each group, in order of their first rows; a row alone is a group, too."""
    found: dict[Any, list[int]] = {}
    for i, row in enumerate(rows):
        key = tuple(row[c] for c in sorted(lhs))
        alone = nulls == "distinct" and None in key
        found.setdefault(("alone", i) if alone else key, []).append(i)
    return list(found.values())


def stripped(rows: Sequence[Row], lhs: Collection[int], nulls: str) -> list[tuple[int, int]]:
    """(row, group) of all rows that share their group, by row; groups are numbered by their first rows."""
    shared = [g for g in groups(rows, lhs, nulls) if len(g) > 1]
    return sorted((row, number) for number, g in enumerate(shared) for row in g)


def agree(left: Row, right: Row, columns: Collection[int], nulls: str) -> bool:
    return all(
        left[c] == right[c] and not (nulls == "distinct" and (left[c] is None or right[c] is None))
        for c in columns
    )


def value_counts(values: Sequence[Hashable], nulls: str) -> list[int]:
    """How often each value occurs; each NULL is a value of its own under the rule `distinct`."""
    counts = Counter(values)
    n_nulls = counts.pop(None, 0) if nulls == "distinct" else 0
    return [*counts.values(), *([1] * n_nulls)]


def measures(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str) -> dict[str, Any]:
    """All sums of X -> A; rhs -1 stands for a column that is different in every row."""
    values: list[Hashable] = [i if rhs < 0 else row[rhs] for i, row in enumerate(rows)]
    found = groups(rows, lhs, nulls)
    counts = [value_counts([values[i] for i in g], nulls) for g in found]
    pairs = [(i, j) for i, j in combinations(range(len(rows)), 2) if agree(rows[i], rows[j], lhs, nulls)]
    violating = [(i, j) for i, j in pairs if not agree((values[i],), (values[j],), (0,), nulls)]
    return {
        "n_groups": len(found),
        "violations": len(violating),
        "kept_rows": sum(map(max, counts)),
        "dependence": sum((Fraction(sum(n * n for n in c), sum(c)) for c in counts), Fraction(0)),
        "violating_rows": sum(sum(c) for c in counts if len(c) > 1),
    }


def column(rows: Sequence[Row], c: int, nulls: str) -> dict[str, int]:
    """How the values of a column are distributed."""
    values = [row[c] for row in rows]
    counts = value_counts(values, nulls)
    return {
        "n_distinct": len({v for v in values if v is not None}),
        "n_nulls": values.count(None),
        "n_groups": len(counts),
        "sum_squares": sum(n * n for n in counts),
        "largest": max(counts, default=0),
    }


def violating_groups(
    rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str
) -> list[tuple[Row, int, int, dict[Hashable, int], list[int]]]:
    """(values of X, rows, values of A, rows of each value, rows) of the groups that A varies in.

    The largest first, then by their first rows.
    """
    out = []
    for g in groups(rows, lhs, nulls):
        values = [rows[i][rhs] for i in g]
        n_values = len(value_counts(values, nulls))
        if n_values > 1:
            key = tuple(rows[g[0]][c] for c in sorted(lhs))
            out.append((key, len(g), n_values, dict(Counter(values)), g))
    return sorted(out, key=lambda told: (-told[1], told[4][0]))


def superkey(fds: Collection[tuple[frozenset[int], int]], lhs: frozenset[int], n_columns: int) -> bool:
    """Whether X determines every column, by the closure of X under dependencies."""
    known = set(lhs)
    while True:
        more = {rhs for left, rhs in fds if left <= known} - known
        if not more:
            return len(known) == n_columns
        known |= more


def minimal_fds(rows: Sequence[Row], n_columns: int, nulls: str) -> list[tuple[frozenset[int], int]]:
    """All minimal dependencies of a small table, every left-hand side tried."""
    out: list[tuple[frozenset[int], int]] = []
    for rhs in range(n_columns):
        mine: list[frozenset[int]] = []
        others = [c for c in range(n_columns) if c != rhs]
        for size in range(len(others) + 1):
            for columns in combinations(others, size):
                lhs = frozenset(columns)
                if not any(m <= lhs for m in mine) and not violating_groups(rows, lhs, rhs, nulls):
                    mine.append(lhs)
        out += [(lhs, rhs) for lhs in mine]
    return out
