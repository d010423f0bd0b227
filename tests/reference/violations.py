"""Rows that violate something, by definition: a row is a mapping of names to values, named by its place.

Groups, pairs and the fewest rows to remove are found by trying.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, permutations
from operator import ge, gt, le, lt
from typing import Any

Row = Mapping[str, Any]
Place = int


def groups_of(rows: Sequence[Row], columns: Sequence[str], nulls: str) -> list[list[Place]]:
    """The places of rows that agree on the columns, two at least."""
    groups: dict[tuple[Any, ...], list[Place]] = {}
    for place, row in enumerate(rows):
        key = tuple(row[c] for c in columns)
        if nulls == "distinct" and None in key:
            continue
        groups.setdefault(key, []).append(place)
    return [group for group in groups.values() if len(group) > 1]


def value_classes(rows: Sequence[Row], group: Sequence[Place], rhs: str, nulls: str) -> list[list[Place]]:
    """The rows of a group by their value, the most frequent first; of equals the lowest place."""
    classes: dict[Any, list[Place]] = {}
    for place in group:
        value = rows[place][rhs]
        key = (place,) if value is None and nulls == "distinct" else value
        classes.setdefault(key, []).append(place)
    return sorted(classes.values(), key=lambda c: (-len(c), c[0]))


def fd_violations(
    rows: Sequence[Row], lhs: Sequence[str], rhs: str, nulls: str
) -> dict[Place, tuple[int, bool, Any, int]]:
    """For each row of a violating group: (rows of the group, to remove, majority or None, its rows or 0)."""
    violating = {}
    for group in groups_of(rows, lhs, nulls):
        classes = value_classes(rows, group, rhs, nulls)
        if len(classes) < 2:
            continue
        tied = len(classes[0]) == len(classes[1])
        majority = None if tied else rows[classes[0][0]][rhs]
        votes = 0 if tied else len(classes[0])
        for place in group:
            violating[place] = (len(group), place not in classes[0], majority, votes)
    return violating


def key_violations(rows: Sequence[Row], columns: Sequence[str], nulls: str) -> dict[Place, tuple[int, bool]]:
    """For each row that agrees with another: (rows of the group, to remove)."""
    return {p: (len(g), p != g[0]) for g in groups_of(rows, columns, nulls) for p in g}


def holds(op: str, x: Any, y: Any) -> bool:
    """A predicate of a rule about two rows: NULL equals NULL, and is neither above nor below anything."""
    if op in ("=", "!="):
        return (x == y) == (op == "=")
    if x is None or y is None:
        return x is y and op in ("<=", ">=")
    compare: dict[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
    return compare[op](x, y)


def dc_pairs(rows: Sequence[Row], predicates: Sequence[tuple[str, str, str]]) -> set[tuple[Place, Place]]:
    """The ordered pairs of places that satisfy all predicates (left, operator, right)."""
    return {
        (t, s)
        for t, s in permutations(range(len(rows)), 2)
        if all(holds(op, rows[t][a], rows[s][b]) for a, op, b in predicates)
    }


def least_removed(pairs: Iterable[tuple[Place, Place]]) -> int:
    """The fewest rows of which every pair has one, by trying all sets of them."""
    edges = {frozenset(pair) for pair in pairs}
    rows = sorted({row for edge in edges for row in edge})
    for n in range(len(rows) + 1):
        if any(all(edge & set(chosen) for edge in edges) for chosen in combinations(rows, n)):
            return n
    raise AssertionError("all rows are enough")


def row_rule_violations(rows: Sequence[Row], left: str, op: str, right: str) -> set[Place]:
    """The rows with both values of which the operator is not true."""
    both = {p for p, row in enumerate(rows) if row[left] is not None and row[right] is not None}
    return {p for p in both if not holds(op, rows[p][left], rows[p][right])}


def votes_of(
    rows: Sequence[Row], fds: Sequence[tuple[Sequence[str], str]]
) -> dict[tuple[Place, str], tuple[Any, int, int]]:
    """(value, dependencies for it, dependencies that vote) of each cell for which more dependencies want
    another value than its own, and more than want any third one.

    A dependency votes for the value that two thirds of a group's rows have, and at least two; NULLs are
    neither groups nor values.
    """
    ballots: dict[tuple[Place, str], list[Any]] = {}
    for lhs, rhs in fds:
        for group in groups_of(rows, lhs, "distinct"):
            values = [rows[p][rhs] for p in group if rows[p][rhs] is not None]
            for value, n in Counter(values).items():
                if n >= 2 and 3 * n >= 2 * len(values):
                    for place in group:
                        ballots.setdefault((place, rhs), []).append(value)
    repairs = {}
    for (place, column), votes in ballots.items():
        ranked = Counter(votes).most_common(2)
        value, n = ranked[0]
        if value != rows[place][column] and (len(ranked) == 1 or n > ranked[1][1]):
            repairs[place, column] = (value, n, len(votes))
    return repairs
