"""Pairs of rows that satisfy predicates, by definition: one pair after the other."""

from __future__ import annotations

from collections.abc import Sequence

EQ, NE, LT, LE, GT, GE = range(6)


def holds(op: int, t: int, s: int) -> bool:
    """Values as half ranks: 0 is NULL, on both sides equal, on one side neither less nor greater."""
    if op == EQ:
        return t == s
    if op == NE:
        return t != s
    if (t == 0) != (s == 0):
        return False
    return {LT: t < s, LE: t <= s, GT: t > s, GE: t >= s}[op]


def satisfied(
    codes: Sequence[Sequence[int]],
    values: Sequence[Sequence[int]],
    right: Sequence[int],
    predicates: Sequence[tuple[int, int]],
    batch: int,
    old: int,
) -> bool:
    return all(holds(op, values[g][batch], 2 * codes[right[g]][old]) for g, op in predicates)


def outcome(ordered: bool, t: int, s: int) -> int:
    """0: less (unordered: different), 1: equal, 2: greater, 3: NULL on one side."""
    if t == s:
        return 1
    if not ordered:
        return 0
    if (t == 0) != (s == 0):
        return 3
    return 0 if t < s else 2
