"""Attribute clusters and pair counts in plain Python: the slow reference of inclusions/kernels/clusters.py.

A cluster is (columns, size, rows): a sorted tuple of columns, the number of values that occur in just
these, and for each column the rows that carry them. A value's frequencies are a dict {column: count}.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Cluster = tuple[tuple[int, ...], int, tuple[int, ...]]
Frequencies = Mapping[int, int]
Pair = tuple[int, int]


def tallied(clusters: Sequence[Cluster]) -> list[Cluster]:
    """Each set of columns once, in the order of first occurrence; what sums to nothing is gone.

    >>> tallied([((1, 2), 1, (3, 4)), ((1,), 1, (1,)), ((1, 2), -1, (-3, 0)), ((1,), -1, (-1,)), ((), 1, ())])
    [((1, 2), 0, (0, 4))]
    """
    sizes: Counter[tuple[int, ...]] = Counter()
    rows: dict[tuple[int, ...], list[int]] = {}
    for columns, size, own in clusters:
        if columns:
            sizes[columns] += size
            so_far = rows.setdefault(columns, [0] * len(columns))
            rows[columns] = [a + b for a, b in zip(so_far, own, strict=True)]
    return [(c, sizes[c], tuple(rows[c])) for c in rows if sizes[c] or any(rows[c])]


def without(clusters: Sequence[Cluster], gone: Collection[int]) -> list[Cluster]:
    """The clusters after some columns were dropped.

    >>> without([((1, 2), 1, (3, 4)), ((2,), 2, (5,))], {1})
    [((2,), 3, (9,))]
    """
    left = []
    for columns, size, rows in clusters:
        kept = [i for i, c in enumerate(columns) if c not in gone]
        left.append((tuple(columns[i] for i in kept), size, tuple(rows[i] for i in kept)))
    return tallied(left)


def pair_counts(clusters: Sequence[Cluster]) -> list[tuple[Pair, int, int]]:
    """((a, b), values, rows) of all ordered pairs of columns that share a cluster, sorted.

    >>> pair_counts([((1, 2), 1, (3, 4))])
    [((1, 1), 1, 3), ((1, 2), 1, 3), ((2, 1), 1, 4), ((2, 2), 1, 4)]
    """
    values: Counter[Pair] = Counter()
    carrying: Counter[Pair] = Counter()
    for columns, size, rows in clusters:
        for a, n in zip(columns, rows, strict=True):
            for b in columns:
                values[a, b] += size
                carrying[a, b] += n
    return [(pair, values[pair], carrying[pair]) for pair in sorted(values)]


def cluster_of(frequencies: Frequencies, append_only: Collection[int], sign: int = 1) -> Cluster:
    """One value's cluster; rows of append-only columns are not counted."""
    columns = tuple(sorted(frequencies))
    return columns, sign, tuple(0 if c in append_only else sign * frequencies[c] for c in columns)


def clusters_of(values: Sequence[Frequencies], append_only: Collection[int] = ()) -> list[Cluster]:
    """The clusters of all values, from scratch.

    >>> clusters_of([{1: 2, 2: 1}, {1: 1, 2: 1}, {2: 1}])
    [((1, 2), 2, (3, 2)), ((2,), 1, (1,))]
    """
    return tallied([cluster_of(v, append_only) for v in values])


@dataclass(frozen=True)
class Absorbed:
    events: list[Cluster]  # two for each value: its old cluster goes, its new one comes
    fresh: list[bool]  # for each entry of the delta: whether its column did not have the value
    broken: dict[Pair, list[int]]  # inclusion that held -> the values that break it
    negative: tuple[int, int] | None  # (value, column) of a count below zero


def absorb(
    delta: Sequence[Frequencies],
    old: Sequence[Frequencies],
    append_only: Collection[int],
    holding: Sequence[Pair],
) -> Absorbed:
    """What a delta does to the values that it is about; both by value."""
    events: list[Cluster] = []
    fresh: list[bool] = []
    broken: dict[Pair, list[int]] = {pair: [] for pair in holding}
    for v, (change, before) in enumerate(zip(delta, old, strict=True)):
        after = dict(before)
        for column in sorted(change):
            fresh.append(column not in before)
            after[column] = change[column]
            if column not in append_only:
                after[column] += before.get(column, 0)
            if after[column] < 0:
                return Absorbed([], [], {}, (v, column))
            if not after[column]:
                del after[column]
        events += [cluster_of(before, append_only, -1), cluster_of(after, append_only)]
        for a, b in holding:
            if a in after and b not in after:
                broken[a, b].append(v)
    return Absorbed(events, fresh, broken, None)
