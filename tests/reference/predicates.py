"""Predicates and denial constraints by definition: values are compared, every case is tried.

A predicate is (left, op, right), a constraint a collection of them, a row a mapping of columns to values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

Words = tuple[str, str, str]  # left, op, right
Row = Mapping[str, Any]

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
# Two values, and NULL: all that one comparison can tell apart.
SIDES = [(x, y) for x in (None, 0, 1) for y in (None, 0, 1)]


def satisfied(x: Any, op: str, y: Any) -> bool:
    """With NULL on one side only `!=` is true; two NULLs are equal, so `=`, `<=` and `>=` are."""
    if x is None or y is None:
        equal = x is None and y is None
        return {"=": equal, "!=": not equal, "<=": equal, ">=": equal}.get(op, False)
    return bool({"=": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op])


def evidence(t: Row, s: Row, predicates: Iterable[Words]) -> set[Words]:
    return {(a, op, b) for a, op, b in predicates if satisfied(t[a], op, s[b])}


def holds(dc: Collection[Words], rows: Sequence[Row]) -> bool:
    return not any(len(evidence(t, s, set(dc))) == len(set(dc)) for t, s in permutations(rows, 2))


def mirrored(dc: Iterable[Words]) -> list[Words]:
    return [(b, op.translate(str.maketrans("<>", "><")), a) for a, op, b in dc]


def canonical(dc: Iterable[Words], numbered: Sequence[Words]) -> tuple[int, ...]:
    both = [list(dc), mirrored(list(dc))]
    return min(tuple(sorted({numbered.index(p) for p in one})) for one in both)


def of_group(dc: Iterable[Words], a: str, b: str) -> list[str]:
    return [op for left, op, right in dc if (left, right) == (a, b)]


def trivial(dc: Collection[Words]) -> bool:
    """Whether some group's predicates are true of no two values."""
    return any(
        not any(all(satisfied(x, op, y) for op in of_group(dc, a, b)) for x, y in SIDES) for a, _, b in dc
    )


def circular(dc: Collection[Words]) -> bool:
    """Whether no two rows satisfy the predicates since they run in a circle: values that are at most each
    other are the same, and neither differ nor is one less.

    >>> circular([("a", "=", "b"), ("b", "=", "a"), ("a", "=", "a"), ("b", "!=", "b")])
    True
    """
    below = {(("t", a), ("s", b)) for a, op, b in dc if op in ("=", "<", "<=")}
    below |= {(("s", b), ("t", a)) for a, op, b in dc if op in ("=", ">", ">=")}
    while more := {(x, z) for x, y in below for w, z in below if y == w} - below:
        below |= more
    there_and_back = {(x, y) for x, y in below if (y, x) in below}
    return any((("t", a), ("s", b)) in there_and_back for a, op, b in dc if op in ("!=", "<", ">"))


def follows(p: Words, dc: Collection[Words]) -> bool:
    """Whether p is true of all values of which the predicates of its group are."""
    a, op, b = p
    ops = of_group(dc, a, b)
    return all(satisfied(x, op, y) for x, y in SIDES if all(satisfied(x, o, y) for o in ops))


def implies(one: Collection[Words], other: Collection[Words]) -> bool:
    return trivial(other) or any(all(follows(p, other) for p in side) for side in (one, mirrored(one)))
