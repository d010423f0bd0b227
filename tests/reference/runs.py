"""Runs of (key, check, column, count) in plain Python: the slow reference of sorted_runs.py.

An entry is a tuple; a value is its (key, check). Nothing here is clever: sums are Counters, places are
found by looking at every entry.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Entry = tuple[int, int, int, int]  # key, check, column, count
Value = tuple[int, int]


def consolidated(entries: Sequence[Entry]) -> list[Entry]:
    """Sorted by (key, check, column), each once with its sum; sums of zero are gone.

    >>> consolidated([(7, 0, 1, 2), (5, 0, 0, 1), (7, 0, 1, -1), (5, 0, 0, -1)])
    [(7, 0, 1, 1)]
    """
    sums: Counter[tuple[int, int, int]] = Counter()
    for key, check, column, count in entries:
        sums[key, check, column] += count
    return [(*place, total) for place, total in sorted(sums.items()) if total]


def merged(runs: Sequence[Sequence[Entry]]) -> list[Entry]:
    """One run with the sums of several."""
    return consolidated([entry for run in runs for entry in run])


def places(run: Sequence[Entry], wanted: Sequence[Value]) -> list[tuple[int, int]]:
    """(start, end) of the entries of each wanted value; for one that is not there, where it would stand.

    >>> places([(5, 0, 0, 1), (5, 0, 1, 1), (7, 0, 0, 1)], [(5, 0), (6, 0), (7, 9)])
    [(0, 2), (2, 2), (3, 3)]
    """
    found = []
    for value in wanted:
        start = sum(entry[:2] < value for entry in run)
        found.append((start, start + sum(entry[:2] == value for entry in run)))
    return found


def value_starts(run: Sequence[Entry]) -> list[int]:
    """Where each value's entries start, and the length of the run.

    >>> value_starts([(5, 0, 0, 1), (5, 0, 1, 1), (5, 1, 0, 1)])
    [0, 2, 3]
    """
    starts = [i for i, entry in enumerate(run) if not i or entry[:2] != run[i - 1][:2]]
    return [*starts, len(run)]


def buckets(keys: Sequence[int], first: int, shift: int, n_buckets: int) -> list[list[int]]:
    """The keys of each bucket of a directory.

    >>> buckets([8, 9, 12], 8, 1, 4)
    [[8, 9], [], [12], []]
    """
    return [[k for k in keys if (k - first) >> shift == i] for i in range(n_buckets)]
