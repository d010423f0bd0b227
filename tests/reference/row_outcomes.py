"""Two columns of the same row, by definition: values are compared one by one, numbers as fractions.

A value is None, or what Python has for it; of one row and pair of columns the outcome is 0 (less), 1 (equal),
2 (greater) or 3 (NULL on a side). Of values without an order everything that differs is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

LESS, EQUAL, GREATER, NULL = range(4)

# operator -> the outcomes that satisfy it, NULL aside; tightest first.
SATISFIED = {
    "<": {LESS},
    "=": {EQUAL},
    ">": {GREATER},
    "<=": {LESS, EQUAL},
    ">=": {GREATER, EQUAL},
    "!=": {LESS, GREATER},
}


def place(value: Any) -> tuple[int, Any]:
    """A value that sorts as numbers of all types do: NaN is the greatest, -0.0 equals 0."""
    if isinstance(value, float) and math.isnan(value):
        return 2, 0
    if isinstance(value, float) and math.isinf(value):
        return (1, 0) if value > 0 else (-1, 0)
    return 0, Fraction(value)


def outcome(x: Any, y: Any, ordered: bool = True) -> int:
    if x is None or y is None:
        return NULL
    if isinstance(x, int | float | Decimal) and not isinstance(x, bool):
        x, y = place(x), place(y)
    if x == y:
        return EQUAL
    return LESS if not ordered or x < y else GREATER


def counts(rows: Iterable[Sequence[Any]], left: int, right: int, ordered: bool = True) -> list[int]:
    found = [0, 0, 0, 0]
    for row in rows:
        found[outcome(row[left], row[right], ordered)] += 1
    return found


def rule(found: Sequence[int], ordered: bool, max_error: float) -> tuple[str, int] | None:
    """(operator, violations) of the tightest operator that at most this share of the rows violates, and that
    more rows keep than violate.

    None where no row has both values. Of equally tight ones the one that fewest violate, then the first.
    """
    n_rows, filled = sum(found), sum(found[:NULL])
    if not filled:
        return None
    best = None
    for op, satisfied in SATISFIED.items():
        if not ordered and op not in ("=", "!="):
            continue
        violations = filled - sum(found[o] for o in satisfied)
        rank = (len(satisfied), violations)
        within = violations / n_rows <= max_error and 2 * violations < filled
        if within and (best is None or rank < best[0]):
            best = rank, op, violations
    return None if best is None else best[1:]


def violates(x: Any, op: str, y: Any, ordered: bool = True) -> bool:
    found = outcome(x, y, ordered)
    return found != NULL and found not in SATISFIED[op]
