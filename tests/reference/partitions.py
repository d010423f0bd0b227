"""Violations of keys and functional dependencies in plain Python: the slow reference of partitions.py.

Rows are sequences of values, None is NULL. The row itself is a column that no two rows agree on.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

Row = Sequence[Any]


def agree_set(left: Row, right: Row, nulls_distinct: bool) -> frozenset[int]:
    """The columns on which two rows agree."""
    return frozenset(
        c
        for c, (a, b) in enumerate(zip(left, right, strict=True))
        if (a is None and b is None and not nulls_distinct) or (a is not None and b is not None and a == b)
    )


def violated(
    rows: Sequence[Row], lhs: Collection[int], rhs: Collection[int], nulls_distinct: bool
) -> frozenset[int]:
    """The columns A of rhs for which two rows agree on lhs and not on A."""
    agreed = [agree_set(a, b, nulls_distinct) for a, b in itertools.combinations(rows, 2)]
    return frozenset(a for a in rhs if any(m.issuperset(lhs) and a not in m for m in agreed))


def maximal_without(rows: Sequence[Row], column: int, nulls_distinct: bool) -> set[frozenset[int]]:
    """The agree sets without a column that no other agree set without it contains."""
    agreed = {agree_set(a, b, nulls_distinct) for a, b in itertools.combinations(rows, 2)}
    lacking = {m for m in agreed if column not in m}
    return {m for m in lacking if not any(m < other for other in lacking)}


def cluster(ids: Sequence[int], within: Sequence[range], nulls_distinct: bool) -> list[list[int]]:
    """Rows of equal numbers within each of some ranges of rows, two at least, by their first rows."""
    groups = []
    for rows in within:
        for i in dict.fromkeys(ids[row] for row in rows):
            equal = [row for row in rows if ids[row] == i]
            if len(equal) > 1 and not (nulls_distinct and i == 0):
                groups.append(equal)
    return groups


def partnered(
    rows: Sequence[Row], cluster: Sequence[int], columns: Collection[int], nulls_distinct: bool
) -> list[int]:
    """The rows of a cluster that agree with another one on one of the columns."""
    return [
        a
        for a in cluster
        if any(a != b and agree_set(rows[a], rows[b], nulls_distinct) & set(columns) for b in cluster)
    ]


def unite(
    masks: Sequence[Sequence[int]], witnesses: Sequence[Sequence[tuple[int, int]]], n_kept: int
) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """Each mask with the first different pairs of all its occurrences, the smaller row first."""
    found: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for mask, pairs in zip(masks, witnesses, strict=True):
        kept = found.setdefault(tuple(mask), [])
        for a, b in pairs:
            pair = (min(a, b), max(a, b))
            if pair not in kept and len(kept) < n_kept:
                kept.append(pair)
    return found
