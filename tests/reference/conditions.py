"""Conditions by their definition, row by row."""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from decimal import Decimal
from typing import Any

from holdfast.core.words.condition import Absent, Among, Compared, Every, Like, Node, Not, Some

OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(node: Node, row: dict[str, Any]) -> bool | None:
    """By the definition: True, False, or None where it is unknown."""
    match node:
        case Absent(column):
            return row[column] is None
        case Compared(column, op, constant, partner):
            left, right = row[column], constant if partner is None else row[partner]
            if left is None or right is None:
                return None
            return bool(OPERATORS[op](*(key(v) for v in (left, right))))
        case Among(column, constants):
            return None if row[column] is None else any(key(row[column]) == key(c) for c in constants)
        case Like(column, pattern, regex):
            if row[column] is None:
                return None
            if regex:
                return re.fullmatch(pattern, row[column]) is not None
            signs = {"%": ".*", "_": "."}
            plain = "".join(signs.get(c, re.escape(c)) for c in pattern)
            return re.fullmatch(plain, row[column], re.DOTALL) is not None
        case Not(part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case Every(parts):
            truths = [truth(part, row) for part in parts]
            return False if False in truths else None if None in truths else True
        case Some(parts):
            truths = [truth(part, row) for part in parts]
            return True if True in truths else None if None in truths else False


def key(value: Any) -> Any:
    """Numbers by value, NaN behind all of them; texts by code points."""
    if isinstance(value, bool | str | dt.date | dt.time):
        return value
    if isinstance(value, float) and math.isnan(value):
        return (2, 0)
    if isinstance(value, float) and math.isinf(value):
        return (1 if value > 0 else -1, 0)
    return (0, Decimal(value))
