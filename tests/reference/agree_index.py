"""Slow and plain: counted agree sets as a dictionary, each is looked at; covers by trying every set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from reference.keys import Combination, Row, same

Counts = Mapping[Combination, int]


def changed(
    counts: Counts, deltas: Iterable[tuple[Combination, int]]
) -> tuple[dict[Combination, int], set[Combination], set[Combination]]:
    """(counts, added, gone); the counts may be below zero."""
    after = Counter(counts)
    for columns, n in deltas:
        after[columns] += n
    left = {columns: n for columns, n in after.items() if n}
    return left, left.keys() - counts.keys(), counts.keys() - left.keys()


def violations(counts: Counts, lhs: Combination, rhs: int) -> int:
    """Pairs that agree on lhs and not on rhs; all that agree on lhs where rhs is -1."""
    return sum(n for columns, n in counts.items() if lhs <= columns and rhs not in columns)


def superset_sums(counts: Counts, n_columns: int) -> list[int]:
    sets = (frozenset(c for c in range(n_columns) if x >> c & 1) for x in range(1 << n_columns))
    return [violations(counts, columns, -1) for columns in sets]


def minimal_within(
    counts: Counts, columns: Iterable[int], rhs: int, allowed: int, max_size: int
) -> dict[Combination, int]:
    """The minimal sets of columns, with their violations; by size, as each larger one contains a found one.

    `columns`: those that may occur; rhs is left out. Minimality looks at sets of any size.
    """
    found: dict[Combination, int] = {}
    rest = sorted(set(columns) - {rhs})
    for size in range(min(max_size, len(rest)) + 1):
        for lhs in map(frozenset, combinations(rest, size)):
            if not any(smaller <= lhs for smaller in found):
                n = violations(counts, lhs, rhs)
                if n <= allowed:
                    found[lhs] = n
    return found


def violations_of_rows(rows: Sequence[Row], lhs: Combination, rhs: int, nulls: str) -> int:
    """By definition, from the rows: the unordered pairs that agree on lhs and differ on rhs (g1)."""
    return sum(
        all(same(a[c], b[c], nulls) for c in lhs) and (rhs < 0 or not same(a[rhs], b[rhs], nulls))
        for a, b in combinations(rows, 2)
    )
