"""The inverted index of columns, and what it proposes, by dictionaries and sets.

A column is the set of its values; a value is its two hashes (h1, h2). Columns are numbered by their place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

Value = tuple[int, int]
Column = frozenset[Value]
Entry = tuple[int, int, int]

NULL, INTEGER, UNIQUE = 1, 2, 4
FILTERS = {"null": 1, "integer": 2, "non-unique": 4, "coverage": 8}


def entries(columns: Sequence[Column]) -> list[Entry]:
    """(h1, h2, column) of all values, sorted.

    >>> entries([frozenset({(7, 0), (5, 1)}), frozenset({(5, 1)})])
    [(5, 1, 0), (5, 1, 1), (7, 0, 0)]
    """
    return sorted((*value, c) for c, values in enumerate(columns) for value in values)


def runs(index: Sequence[Entry]) -> dict[Value, tuple[int, int]]:
    """(start, length) of each value's entries, in order.

    >>> runs([(5, 1, 0), (5, 1, 1), (7, 0, 0)])
    {(5, 1): (0, 2), (7, 0): (2, 1)}
    """
    found: dict[Value, tuple[int, int]] = {}
    for i, (h1, h2, _) in enumerate(index):
        start, length = found.get((h1, h2), (i, 0))
        found[h1, h2] = start, length + 1
    return found


def bits(columns: Collection[int], n_columns: int) -> list[int]:
    """The words of a bitmap.

    >>> bits([0, 2, 64], 65)
    [5, 1]
    """
    whole = sum(1 << c for c in columns)
    return [(whole >> (64 * w)) % 2**64 for w in range(-(-n_columns // 64))]


@dataclass(frozen=True)
class Question:
    """Deps and index as lists of numbers, in the form that the kernels take."""

    offsets: list[int]
    starts: list[int]
    lengths: list[int]
    slots: list[int]
    postings: list[int]
    maps: list[list[int]]


def question(
    deps: Sequence[Sequence[Value]], columns: Sequence[Column], mapped: Collection[Value]
) -> Question:
    """The values of deps, each in the order given, in the index of columns; `mapped` values have bitmaps."""
    index = entries(columns)
    places = runs(index)
    rows = {value: row for row, value in enumerate(v for v in places if v in mapped)}
    values = [value for dep in deps for value in dep]
    return Question(
        offsets=[sum(map(len, deps[:i])) for i in range(len(deps) + 1)],
        starts=[places.get(v, (0, 0))[0] for v in values],
        lengths=[places.get(v, (0, 0))[1] for v in values],
        slots=[rows.get(v, -1) for v in values],
        postings=[entry[2] for entry in index],
        maps=[bits([c for c, has in enumerate(columns) if v in has], len(columns)) for v in rows],
    )


def nearly_containing(
    deps: Sequence[Collection[Value]],
    columns: Sequence[Column],
    allowed: Collection[int],
    max_missing: Sequence[int],
) -> list[tuple[int, int, int]]:
    """(dep, column, shared): allowed columns that lack at most so many values of the dep, but not all.

    >>> nearly_containing([[(1, 0), (2, 0)]], [frozenset({(1, 0)}), frozenset()], {0, 1}, [1])
    [(0, 0, 1)]
    """
    found = []
    for d, dep in enumerate(deps):
        for c in sorted(allowed):
            shared = len(columns[c].intersection(dep))
            if shared and len(dep) - shared <= max_missing[d]:
                found.append((d, c, shared))
    return found


def containing(
    deps: Sequence[Collection[Value]], columns: Sequence[Column], allowed: Collection[int]
) -> list[tuple[int, int]]:
    """(dep, column): allowed columns that have all values of the dep, which has one at least.

    >>> containing([[(1, 0)], []], [frozenset({(1, 0), (2, 0)}), frozenset({(2, 0)})], {0, 1})
    [(0, 0)]
    """
    return [
        (d, c) for d, dep in enumerate(deps) for c in sorted(allowed) if dep and columns[c].issuperset(dep)
    ]


def rarity(deps: Sequence[Sequence[Value]], columns: Sequence[Column]) -> list[tuple[int, float]]:
    """(h1 of the first of the rarest values, mean rarity) of each dep.

    >>> rarity([[(1, 0)], []], [frozenset({(1, 0)})])
    [(1, 1.0), (0, 0.0)]
    """
    found = []
    n = max(2, len(columns))
    for dep in deps:
        df = {value: sum(value in column for column in columns) for value in dep}
        pivot = min(dep, key=df.__getitem__)[0] if dep else 0
        mean = sum(math.log(n / max(1, df[v])) / math.log(n) for v in dep) / len(dep) if dep else 0.0
        found.append((pivot, min(1.0, max(0.0, mean))))
    return found


def removed(
    deps: Sequence[Collection[Value]],
    dep_flags: Sequence[int],
    dep_ids: Sequence[int],
    columns: Sequence[Column],
    flags: Sequence[int],
    live: Collection[int],
    tau: float,
    filters: int,
) -> list[int]:
    """How many inclusions are kept, or removed by each of the four filters."""
    counts = [0] * 5
    for d, c in containing(deps, columns, live):
        if c == dep_ids[d]:
            continue
        reasons = (
            bool((dep_flags[d] | flags[c]) & NULL),
            bool((dep_flags[d] | flags[c]) & INTEGER),
            not flags[c] & UNIQUE,
            len(deps[d]) < tau * len(columns[c]),
        )
        on = [applies and bool(filters >> i & 1) for i, applies in enumerate(reasons)]
        counts[on.index(True) + 1 if any(on) else 0] += 1
    return counts
