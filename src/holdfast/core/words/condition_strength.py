"""Whether a condition says nothing new beside another one, as far as constants of one column tell."""

from __future__ import annotations

from typing import Any

from holdfast.core.words.condition import Among, Compared, Constant, Every, Node
from holdfast.core.words.predicate import Operator

_UP, _DOWN = (">", ">="), ("<", "<=")


def implies(strong: Node, weak: Node) -> bool:
    """Whether every row that keeps the first condition keeps the second. Where it says no it may still be so.

    A row with NULL keeps comparisons, lists of values and bounds alike.

    >>> from decimal import Decimal
    >>> least = [Compared("a", ">=", Decimal(n)) for n in (1, 5)]
    >>> implies(least[1], least[0]), implies(least[0], least[1])
    (True, False)
    >>> implies(Among("a", (Decimal(5), Decimal(7))), Every((least[0], Compared("a", "<", Decimal(9)))))
    True
    """
    if strong == weak:
        return True
    if isinstance(weak, Every):
        return all(implies(strong, part) for part in weak.parts)
    match strong, weak:
        case Every(parts), _:
            return any(implies(part, weak) for part in parts)
        case Among(column, values), Among(other, constants):
            return column == other and {*values} <= {*constants}
        case Among(column, values), Compared(other, op, constant, None):
            return column == other and all(_holds(value, op, constant) for value in values)
        case Compared(column, "=", value, None), Compared(other, op, constant, None):
            return column == other and _holds(value, op, constant)
        case Compared(column, op, value, None), Compared(other, weak_op, constant, None):
            same_way = any(op in way and weak_op in way for way in (_UP, _DOWN))
            # Bounds that are equal: a strict one is the stronger.
            at_bound: Operator = weak_op if op in (">=", "<=") else ">=" if op == ">" else "<="
            return column == other and same_way and _holds(value, at_bound, constant)
    return False


def _holds(value: Constant | None, op: Operator, constant: Constant | None) -> bool:
    """Whether a comparison of two constants of one type is true."""
    a: Any = value
    b: Any = constant
    match op:
        case "=":
            return bool(a == b)
        case "!=":
            return bool(a != b)
        case "<":
            return bool(a < b)
        case "<=":
            return bool(a <= b)
        case ">":
            return bool(a > b)
        case _:
            return bool(a >= b)
