"""Functional dependencies by definition: every left-hand side is tried for every column. Slow, plain.

A row is a tuple of Python values, a left-hand side a frozenset of column positions, and a dependency a pair
(left-hand side, column). Projections are counted; agree sets are only known to `agree_counts`, which is an
oracle of its own, and hitting sets to nobody. So the oracle shares no idea with the code. With NULLs
distinct a NULL agrees with nothing, not even with a NULL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from math import comb

from reference.keys import Combination, Row, agree_set, canonical

FD = tuple[Combination, int]


def total_pairs(rows: Sequence[Row]) -> int:
    """The unordered pairs of rows."""
    return comb(len(rows), 2)


def holds(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str) -> bool:
    """Whether rows that agree on the left-hand side agree on the right-hand side.

    >>> rows = [("A", 1), ("A", 1), ("B", 2), ("C", 2)]
    >>> holds(rows, {0}, 1, "equal"), holds(rows, {1}, 0, "equal"), holds(rows, (), 1, "equal")
    (True, False, False)
    >>> [holds([("A", None), ("A", None)], {0}, 1, nulls) for nulls in ("equal", "distinct")]
    [True, False]
    """
    return not any(len(values) > 1 for values in groups(rows, lhs, rhs, nulls))


def groups(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str) -> Iterator[Counter[object]]:
    """For each group of rows that agree on the left-hand side: how many rows have each right-hand value."""
    found: dict[object, Counter[object]] = {}
    for i, row in enumerate(rows):
        key: object = tuple(canonical(row[c]) for c in sorted(lhs))
        value: object = canonical(row[rhs])
        if nulls == "distinct":
            key = ("alone", i) if any(row[c] is None for c in lhs) else key
            value = ("alone", i) if value is None else value
        found.setdefault(key, Counter())[value] += 1
    yield from found.values()


def violating_pairs(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str) -> int:
    """The unordered pairs of rows that agree on the left-hand side, not on the right-hand side.

    >>> violating_pairs([("A", 1), ("A", 1), ("A", 2), ("B", 3)], {0}, 1, "equal")
    2
    """
    return sum(
        comb(sum(values.values()), 2) - sum(comb(n, 2) for n in values.values())
        for values in groups(rows, lhs, rhs, nulls)
    )


def agreeing_pairs(rows: Sequence[Row], columns: Collection[int], nulls: str) -> int:
    """The unordered pairs of rows that agree on all of the columns.

    >>> agreeing_pairs([("A", 1), ("A", 1), (None, 2), (None, 2)], {0}, "equal")
    2
    >>> agreeing_pairs([("A", 1), ("A", 1), (None, 2), (None, 2)], {0}, "distinct")
    1
    """
    seen: Counter[Row] = Counter(
        tuple(canonical(row[c]) for c in sorted(columns))
        for row in rows
        if nulls == "equal" or all(row[c] is not None for c in columns)
    )
    return sum(comb(n, 2) for n in seen.values())


def kept_rows(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str) -> int:
    """The most rows that can stay so that the dependency holds."""
    return sum(max(values.values()) for values in groups(rows, lhs, rhs, nulls))


def g1(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str) -> float:
    """The share of the pairs of rows that violate it; 0 in a table of at most one row."""
    total = total_pairs(rows)
    return violating_pairs(rows, lhs, rhs, nulls) / total if total else 0.0


def g3(rows: Sequence[Row], lhs: Collection[int], rhs: int, nulls: str) -> float:
    """The smallest share of rows to remove so that it holds; 0 in an empty table."""
    return 1 - kept_rows(rows, lhs, rhs, nulls) / len(rows) if rows else 0.0


def allowed(max_error: float, rows: Sequence[Row]) -> int:
    """The most pairs that may violate a dependency: so that the error that is told is within `max_error`.

    >>> allowed(0.29, [()] * 25), allowed(1 / 6, [()] * 4), allowed(0.5, [()])
    (87, 1, 0)
    """
    total = total_pairs(rows)
    return max((n for n in range(total + 1) if n / max(total, 1) <= max_error), default=0)


def _sets(n_columns: int, without: int | None, max_lhs: int | None) -> Iterator[Combination]:
    columns = [c for c in range(n_columns) if c != without]
    largest = len(columns) if max_lhs is None else min(max_lhs, len(columns))
    for size in range(largest + 1):
        yield from map(frozenset, combinations(columns, size))


def minimal_fds(rows: Sequence[Row], n_columns: int, nulls: str, max_lhs: int | None = None) -> set[FD]:
    """The dependencies that hold and of which no smaller left-hand side does, up to `max_lhs` columns.

    >>> rows = [("John", "Bond", 1), ("Marie", "Miller", 1), ("Marie", "Bond", 2)]
    >>> sorted((sorted(lhs), rhs) for lhs, rhs in minimal_fds(rows, 3, "equal"))
    [([0, 1], 2), ([0, 2], 1), ([1, 2], 0)]
    """
    found: set[FD] = set()
    for rhs in range(n_columns):
        minimal: list[Combination] = []
        for lhs in _sets(n_columns, rhs, max_lhs):
            if not any(smaller <= lhs for smaller in minimal) and holds(rows, lhs, rhs, nulls):
                minimal.append(lhs)
        found.update((lhs, rhs) for lhs in minimal)
    return found


def approximate_fds(
    rows: Sequence[Row], n_columns: int, nulls: str, max_error: float, max_lhs: int | None = None
) -> dict[FD, int]:
    """The minimal dependencies within an error, with the pairs that violate each.

    >>> rows = [("A", 1), ("A", 1), ("A", 2), ("B", 3)]
    >>> sorted((sorted(lhs), rhs, n) for (lhs, rhs), n in approximate_fds(rows, 2, "equal", 0.4).items())
    [([0], 1, 2), ([1], 0, 0)]
    """
    most = allowed(max_error, rows)
    found: dict[FD, int] = {}
    for rhs in range(n_columns):
        minimal: list[Combination] = []
        for lhs in _sets(n_columns, rhs, max_lhs):
            if not any(smaller <= lhs for smaller in minimal):
                n = violating_pairs(rows, lhs, rhs, nulls)
                if n <= most:
                    minimal.append(lhs)
                    found[lhs, rhs] = n
    return found


def approximate_keys(
    rows: Sequence[Row], n_columns: int, nulls: str, max_error: float, max_columns: int | None = None
) -> dict[Combination, int]:
    """The minimal combinations that are unique within an error, with the pairs that agree on each.

    >>> rows = [("A", 1), ("A", 1), ("A", 2), ("B", 3)]
    >>> [(sorted(key), n) for key, n in approximate_keys(rows, 2, "equal", 0.2).items()]
    [([1], 1)]
    """
    most = allowed(max_error, rows)
    found: dict[Combination, int] = {}
    for columns in _sets(n_columns, None, max_columns):
        if not any(smaller <= columns for smaller in found):
            n = agreeing_pairs(rows, columns, nulls)
            if n <= most:
                found[columns] = n
    return found


def agree_counts(rows: Sequence[Row], nulls: str) -> Counter[Combination]:
    """The agree sets of all pairs of rows, with the number of pairs of each; the empty one counts, too."""
    return Counter(agree_set(a, b, nulls) for a, b in combinations(rows, 2))


def satisfies(agreed: Combination, lhs: Collection[int], rhs: int) -> bool:
    """Whether a pair with this agree set obeys the dependency (`satisfy` of definition 6.2)."""
    return rhs in agreed or not set(lhs) <= agreed
