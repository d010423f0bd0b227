"""Conditions (`words/condition.py`) tested on rows: how many violate each, and a few of them.

A task decodes the columns that the conditions name, of some rows of one segment, and tests them with Arrow.
What leaves it are counts and a few row ids. How two columns of a row compare is the matter of row rules: who
tests conditions that do so says how.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, Inexact
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.rows.asked_conditions import whole_text
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.some_rows import SomeRows, chosen_rows, divided, live_rows
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.store.bundle import pack
from holdfast.core.words.condition import (
    Absent,
    Among,
    Compared,
    Constant,
    Every,
    Like,
    Node,
    Not,
    Some,
    columns_of,
    read_condition,
)
from holdfast.core.words.predicate import Operator
from holdfast.core.words.schema import FRACTION_DIGITS, Schema, Type

I64 = NDArray[np.int64]
Values = Mapping[str, pa.Array]
Compare = Callable[[str, Operator, str], pa.Array]  # two columns: true, false or unknown of each row
Payload = dict[str, Any]
Violations = list[tuple[int, I64]]  # of each condition: how many rows violate it, ids of some, ascending

# What it takes on one core to decode and test a value, in ns.
NS_TEST = 15
WITNESSES = 16

# The usual context rounds to 28 digits; columns have up to 76 of them, constants as many as are written.
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])

_COMPARE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


# -- counting ----------------------------------------------------------------------------------


def violations(
    relation: Relation,
    formulas: Sequence[str],
    task: Callable[[Payload], bytes],
    *,
    segments: Sequence[SegmentRef] | None = None,
    row_ids: I64 | None = None,
    limit: int | None = WITNESSES,
) -> Violations:
    """How many live rows violate each condition, and ids of the first ones; or of the rows of some segments,
    or of some rows by id, live or not. One job; cost: a pass over the columns that the conditions name.

    `task` answers what `check_rows` says of the rows of a payload.
    """
    if row_ids is not None:
        parts = chosen_rows(relation, row_ids)
    else:
        parts = live_rows(relation.segments if segments is None else segments)
    payloads = [relation.payload(**part, conditions=list(formulas), limit=limit) for part in divided(parts)]
    counts = np.zeros(len(formulas), dtype=np.int64)
    ids: list[list[I64]] = [[] for _ in formulas]
    n_values = sum(part["n_rows"] for part in parts) * len(formulas)
    for result in relation.run(task, payloads if formulas else [], float(NS_TEST * n_values)):
        counts += result.array("counts")
        bounds = result.array("bounds")
        for i, some in enumerate(ids):
            some.append(result.array("row_ids")[bounds[i] : bounds[i + 1]])
    first = [np.sort(np.concatenate([np.empty(0, np.int64), *some]))[:limit] for some in ids]
    return list(zip(counts.tolist(), first, strict=True))


def check_rows(payload: Payload, rows: SomeRows, compare: Compare | None = None) -> bytes:
    """The violations of each condition of a payload in its rows."""
    schema = rows.segment.schema
    nodes = [read_condition(text, schema) for text in payload["conditions"]]
    names = list(dict.fromkeys(name for node in nodes for name in columns_of(node)))
    table = {name: rows.values(schema.places[name]) for name in names}
    violating = [np.flatnonzero(violated(node, table, schema, compare)) for node in nodes]
    row_ids = [rows.row_ids(at[: payload["limit"]]) for at in violating]
    bounds = np.cumsum([0, *map(len, row_ids)]).astype(np.int64)
    counts = np.array([len(at) for at in violating], dtype=np.int64)
    ids = np.concatenate([np.empty(0, np.int64), *row_ids])
    return pack({"counts": counts, "row_ids": ids, "bounds": bounds}, {})


# -- testing -----------------------------------------------------------------------------------


def violated(node: Node, table: Values, schema: Schema, compare: Compare | None = None) -> NDArray[np.bool_]:
    """Where a condition is false: bool[n_rows]."""
    truth = _truth(node, table, schema, compare)
    false = pc.fill_null(pc.invert(truth), False)
    return np.asarray(false.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _truth(node: Node, table: Values, schema: Schema, compare: Compare | None = None) -> pa.Array:
    """True, false or unknown of each row."""
    match node:
        case Compared(column, op, constant, partner):
            if partner is not None:
                assert compare is not None
                return compare(column, op, partner)
            assert constant is not None
            return _against(table[column], op, constant, schema.types[schema.places[column]])
        case Among(column, constants):
            type_ = schema.types[schema.places[column]]
            return reduce(pc.or_kleene, [_against(table[column], "=", c, type_) for c in constants])
        case Absent(column):
            return pc.is_null(table[column])
        case Like(column, pattern, regex):
            if regex:
                return pc.match_substring_regex(table[column], whole_text(pattern))
            return pc.match_like(table[column], pattern)
        case Not(part):
            return pc.invert(_truth(part, table, schema, compare))
        case Every(parts):
            return reduce(pc.and_kleene, [_truth(part, table, schema, compare) for part in parts])
        case Some(parts):
            return reduce(pc.or_kleene, [_truth(part, table, schema, compare) for part in parts])


def _against(values: pa.Array, op: Operator, constant: Constant, type_: Type) -> pa.Array:
    """Values compared with a constant of their type."""
    if type_.family == "float":
        assert isinstance(constant, Decimal)
        return _float_against(values, op, constant)
    if isinstance(constant, Decimal):
        return _number_against(values, op, constant, type_)
    if type_.family in ("date", "time", "timestamp"):
        whole = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64()).cast(pa.int64())
        return _number_against(whole, op, _units(constant, type_), Type("int"))
    return _COMPARE[op](values, pa.scalar(constant, arrow_type(type_)))


def _float_against(values: pa.Array, op: Operator, constant: Decimal) -> pa.Array:
    """A constant between two floats is less than the one and greater than the other."""
    nearest = float(constant)
    exact = math.isfinite(nearest) and Decimal(nearest) == constant
    if not exact:
        # The constant lies between `below` and the float behind it: no value equals it.
        below = (
            nearest
            if math.isfinite(nearest) and Decimal(nearest) < constant
            else math.nextafter(nearest, -math.inf)
        )
        if op in ("=", "!="):
            return _always(values, op == "!=")
        op, nearest = ("<=", below) if op in ("<", "<=") else (">", below)
    truth = _COMPARE[op](values, pa.scalar(nearest, pa.float64()))
    # NaN is greater than all numbers; Arrow says that it is neither.
    return pc.or_(truth, pc.is_nan(values)) if op in (">", ">=") else truth


def _number_against(values: pa.Array, op: Operator, constant: Decimal, type_: Type) -> pa.Array:
    """Whole numbers of units: a constant that is none lies between two of them."""
    units = _EXACT.scaleb(constant, type_.scale)
    whole = math.floor(units)
    if whole != units:
        if op in ("=", "!="):
            return _always(values, op == "!=")
        op = "<=" if op in ("<", "<=") else ">"
    low, high = _limits(type_)
    if not low <= whole <= high:
        above = whole > high
        return _always(values, {"=": False, "!=": True}.get(op, (op in ("<", "<=")) == above))
    if type_.family == "decimal":
        number = _EXACT.scaleb(Decimal(whole), -type_.scale)
        return _COMPARE[op](values, pa.scalar(number, arrow_type(type_)))
    return _COMPARE[op](values, pa.scalar(whole, arrow_type(type_)))


def _units(constant: Constant, type_: Type) -> Decimal:
    """A day, time or instant as what is stored of it; a fraction if it lies between two.

    >>> _units(dt.date(1970, 1, 3), Type("date")), _units(dt.time(0, 0, 1, 500000), Type("time", unit="s"))
    (Decimal('2'), Decimal('1.500000'))
    """
    match constant:
        case dt.datetime():
            since = constant - dt.datetime(1970, 1, 1, tzinfo=constant.tzinfo)
        case dt.date():
            return Decimal((constant - dt.date(1970, 1, 1)).days)
        case dt.time():
            since = dt.datetime.combine(dt.date.min, constant) - dt.datetime.min
        case _:
            raise TypeError(f"{constant!r} is no point in time")
    microseconds = Decimal(since // dt.timedelta(microseconds=1))
    return _EXACT.scaleb(microseconds, FRACTION_DIGITS[type_.unit] - 6)


def _limits(type_: Type) -> tuple[int, int]:
    if type_.family == "decimal":
        return 1 - 10**type_.precision, 10**type_.precision - 1
    return (0, 2**64 - 1) if type_.family == "uint" else (-(2**63), 2**63 - 1)


def _always(values: pa.Array, truth: bool) -> pa.Array:
    """The same of all values that are there."""
    return pc.if_else(pc.is_valid(values), truth, pa.scalar(None, pa.bool_()))
