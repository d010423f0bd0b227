"""Links between tables in plain Python: the slow reference of lakes/kernels/table_links.py.

An inclusion is (dependent column, referenced column, shared values); a side lists for each of its columns
(size, share, table), the share being how distinctive the dependent ones are, how unique the referenced ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby

Inclusion = tuple[int, int, int]
Side = Sequence[tuple[int, float, int]]
Link = tuple[int, int, int, float]  # dependent table, referenced table, inclusions, best score


def score(inclusion: Inclusion, deps: Side, refs: Side) -> float:
    """
    >>> round(score((0, 0, 2), [(4, 0.5, 0)], [(8, 0.5, 1)]), 4)  # 0.5 * cbrt(0.25 * 0.5 * 0.5)
    0.1984
    """
    a, b, shared = inclusion
    (dep_size, distinctive, _), (ref_size, uniqueness, _) = deps[a], refs[b]
    return shared / dep_size * math.cbrt(shared / ref_size * uniqueness * distinctive)


def all_links(inclusions: Iterable[Inclusion], deps: Side, refs: Side) -> list[list[Link]]:
    """All links that a chunk of inclusions makes: a list for each run of one dependent table."""
    found = []
    for table, run in groupby(inclusions, key=lambda inclusion: deps[inclusion[0]][2]):
        scores: dict[int, list[float]] = {}
        for inclusion in run:
            other = refs[inclusion[1]][2]
            if other != table:
                scores.setdefault(other, []).append(score(inclusion, deps, refs))
        found.append([(table, other, len(s), max(s)) for other, s in scores.items()])
    return found


def components(n_tables: int, links: Iterable[tuple[int, int]]) -> list[int]:
    """The smallest table that each table hangs together with.

    >>> components(5, [(3, 1), (4, 3)])
    [0, 1, 2, 1, 1]
    """
    group = list(range(n_tables))
    for left, right in links:
        low, high = sorted((group[left], group[right]))
        group = [low if g == high else g for g in group]
    return group
