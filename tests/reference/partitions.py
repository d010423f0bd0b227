"""Clusters and uniqueness in plain Python: the slow reference of core/evidence/kernels/partitions.py."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from reference.encode import mix


def cluster(values: Sequence[int], nulls_distinct: bool, null: int) -> list[list[int]]:
    """Rows of equal values, two at least, in order of their first rows."""
    groups: dict[int, list[int]] = {}
    for row, value in enumerate(values):
        if not (nulls_distinct and value == null):
            groups.setdefault(value, []).append(row)
    return [rows for rows in groups.values() if len(rows) > 1]


def refine(
    clusters: Sequence[Sequence[int]], values: Sequence[int], nulls_distinct: bool, null: int
) -> list[list[int]]:
    """Each cluster split by a column's values, in order; what is left alone is dropped."""
    return [
        [rows[i] for i in part]
        for rows in clusters
        for part in cluster([values[r] for r in rows], nulls_distinct, null)
    ]


def agree_set(
    values: Sequence[Sequence[int]], a: int, b: int, nulls_distinct: bool, nulls: Sequence[int]
) -> frozenset[int]:
    """The columns on which two rows agree; the NULL of column c is the code nulls[c]."""
    return frozenset(
        c
        for c, column in enumerate(values)
        if column[a] == column[b] and not (nulls_distinct and column[a] == nulls[c])
    )


def is_unique(
    values: Sequence[Sequence[int]],
    rows: Collection[int],
    columns: Collection[int],
    nulls_distinct: bool,
    nulls: Sequence[int],
) -> bool:
    return not any(
        columns <= agree_set(values, a, b, nulls_distinct, nulls) for a in rows for b in rows if a < b
    )


def select(
    values: Sequence[int | None], live: Sequence[bool], null: int, part: int, n_parts: int, skip_null: bool
) -> list[int]:
    """Positions of the live rows whose value falls into the part; None for NULL."""
    return [
        i
        for i, v in enumerate(values)
        if live[i] and not (v is None and skip_null) and mix(null if v is None else v) % n_parts == part
    ]


def gather(values: Sequence[int | None], positions: Sequence[int], null: int) -> list[int]:
    found = [values[p] for p in positions]
    return [null if v is None else v for v in found]
