"""Conditions: what is written is what is read, and what Arrow says is what plain Python says."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.core.rows.asked_conditions import asked_condition
from holdfast.core.rows.condition_tests import violated
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.words.condition import (
    Absent,
    Among,
    Compared,
    Every,
    Like,
    Node,
    Not,
    Some,
    columns_of,
    formula_of,
    read_condition,
)
from holdfast.core.words.condition_strength import implies
from holdfast.core.words.predicate import Operator
from holdfast.core.words.row_rule import comparison
from holdfast.core.words.schema import Column, Schema, Type
from holdfast.errors import UnknownColumnError, UsageError
from reference.conditions import OPERATORS, truth

TYPES = {
    "i": "int",
    "u": "uint",
    "f": "float",
    "d": "decimal(5,2)",
    "b": "bool",
    "day": "date",
    "clock": "time[s]",
    "at": "timestamp[ms]",
    "zone": "timestamp[us,utc]",
    "text, odd": "text",
    "other": "text",
    "raw": "binary",
}
SCHEMA = Schema(tuple(Column(name, Type.parse(type_)) for name, type_ in TYPES.items()))
DAYS = st.dates(dt.date(1969, 12, 30), dt.date(1970, 1, 3))
CLOCKS = st.builds(dt.time, st.just(0), st.just(0), st.integers(0, 3))
INSTANTS = st.builds(lambda ms: dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=ms), st.integers(-3, 3))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1]),
    "u": st.integers(0, 3) | st.just(2**64 - 1),
    "f": st.sampled_from([-1.0, -0.0, 0.0, 0.1, 0.30000000000000004, 1e300, math.nan, math.inf, -math.inf]),
    "d": st.decimals(-2, 2, places=2),
    "b": st.booleans(),
    "day": DAYS,
    "clock": CLOCKS,
    "at": INSTANTS,
    "zone": INSTANTS.map(lambda at: at.replace(tzinfo=dt.UTC)),
    "text, odd": st.sampled_from(["", "a", "ab", "it's", "a%", "A", "\U0001f600", "\uffff"]),
    "other": st.sampled_from(["", "a", "ab"]),
    "raw": st.binary(max_size=2),
}
NUMBERS = st.sampled_from(
    [
        Decimal(t)
        for t in ("-4", "-0.5", "0", "0.1", "0.3", "0.005", "1", "2.5", "9007199254740993", "1e25", "-1e25")
    ]
)
CONSTANTS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys("iufd", NUMBERS),
    "b": st.booleans(),
    "day": DAYS,
    "clock": CLOCKS | st.just(dt.time(0, 0, 1, 500000)),
    "at": INSTANTS | st.just(dt.datetime(1970, 1, 1, 0, 0, 0, 1500)),
    "zone": VALUES["zone"],
    "text, odd": VALUES["text, odd"],
    "other": VALUES["other"],
}


@st.composite
def single_tests(draw: st.DrawFn) -> Node:
    name = draw(st.sampled_from(list(TYPES)))
    kinds = ["absent"] if name == "raw" else ["absent", "compared", "among", "partner"]
    kind = draw(st.sampled_from(kinds + ["like"] * (TYPES[name] == "text")))
    if kind == "absent":
        return Absent(name)
    if kind == "like":
        return Like(name, draw(st.sampled_from(["a%", "_b", "", "%", "a.", ".*b", "[ab]+"])), False)
    if kind == "among":
        return Among(name, tuple(draw(st.lists(CONSTANTS[name], min_size=1, max_size=3, unique=True))))
    unordered = name == "b" or (kind == "partner" and TYPES[name] == "text")
    op = draw(st.sampled_from(["=", "!="] if unordered else list(OPERATORS)))
    if kind == "partner":
        same = [o for o, type_ in TYPES.items() if comparison(Type.parse(type_), Type.parse(TYPES[name]))]
        return Compared(name, op, partner=draw(st.sampled_from(same)))
    return Compared(name, op, draw(CONSTANTS[name]))


def nested(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(parts, min_size=2, max_size=3).map(tuple)
    every = several.map(
        lambda ps: Every(tuple(q for p in ps for q in (p.parts if isinstance(p, Every) else (p,))))
    )
    some = several.map(
        lambda ps: Some(tuple(q for p in ps for q in (p.parts if isinstance(p, Some) else (p,))))
    )
    return every | some | parts.map(lambda p: p.part if isinstance(p, Not) else Not(p))


NODES = st.recursive(single_tests(), nested, max_leaves=5)
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}), max_size=6
)


@given(NODES, ROWS)
def test_what_arrow_says(node: Node, rows: list[dict[str, Any]]) -> None:
    columns = {
        name: pa.array([row[name] for row in rows], arrow_type(Type.parse(type_)))
        for name, type_ in TYPES.items()
    }
    table = {name: columns[name] for name in columns_of(node)}

    def compared(left: str, op: Operator, right: str) -> pa.Array:
        return pa.array([truth(Compared(left, op, partner=right), row) for row in rows], pa.bool_())

    assert violated(node, table, SCHEMA, compared).tolist() == [truth(node, row) is False for row in rows]


@st.composite
def wide_numbers(draw: st.DrawFn) -> tuple[Type, list[Decimal | None], list[Decimal]]:
    """A type of wide decimals, values that differ in their last digits, constants at and between these."""
    type_ = Type.parse(
        draw(st.sampled_from(["decimal(38,0)", "decimal(38,2)", "decimal(60,60)", "decimal(76,30)"]))
    )
    base = draw(st.integers(10**29, 10 ** (type_.precision - 1)) | st.just(10**32)) * draw(
        st.sampled_from([1, -1])
    )
    near = st.integers(-2, 2).map(lambda more: base + more)
    with localcontext(prec=200):
        values = draw(st.lists(st.none() | near.map(lambda n: Decimal(n).scaleb(-type_.scale)), max_size=6))
        constants = st.builds(
            lambda n, tenths, zeros: Decimal(f"{10 * n + tenths}{'0' * zeros}").scaleb(
                -type_.scale - 1 - zeros
            ),
            near,
            st.sampled_from([0, 0, 5]),
            st.sampled_from([0, 40]),
        )
        return type_, values, draw(st.lists(constants, min_size=1, max_size=3))


@given(wide_numbers(), st.sampled_from([*OPERATORS, "in"]))
def test_wide_decimals_compare_to_the_last_digit(
    drawn: tuple[Type, list[Decimal | None], list[Decimal]], op: str
) -> None:
    type_, values, constants = drawn
    schema = Schema((Column("x", type_),))
    text = f"x in ({', '.join(f'{c:f}' for c in constants)})" if op == "in" else f"x {op} {constants[0]:f}"
    node = read_condition(text, schema)
    assert read_condition(formula_of(node), schema) == node
    answer = violated(node, {"x": pa.array(values, arrow_type(type_))}, schema)
    assert answer.tolist() == [truth(node, {"x": value}) is False for value in values]


@pytest.mark.parametrize(
    ("type_", "values", "rule", "n_violating"),
    [
        (pa.decimal128(38, 0), [f"{10**32}", f"{10**32 + 1}", f"{10**32 + 2}"], f"x >= {10**32 + 1}", 1),
        (
            pa.decimal128(38, 0),
            [f"{10**32}", f"{10**32 + 1}", f"{10**32 + 2}"],
            f"x in ({10**32 + 1}, {10**32 + 2})",
            1,
        ),
        (
            pa.decimal128(38, 2),
            ["1234567890123456789012345678.12", "1234567890123456789012345678.13"],
            "x = 1234567890123456789012345678.12",
            1,
        ),
        (pa.decimal256(60, 0), [f"{10**59 - 1}", f"{10**59 - 2}"], f"x < {10**59 - 1}", 1),
    ],
)
def test_wide_decimals_are_pinned_to_the_last_digit(
    tmp_path: Path, type_: pa.DataType, values: list[str], rule: str, n_violating: int
) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"x": pa.array([Decimal(v) for v in values], type_)}), kinds=("ucc",))
        assert ws.violations("t", rule).n_violating == n_violating
        assert not ws.explain("t", rule).holds
        ws.pin("t", rule, at_most=n_violating)


@given(NODES)
def test_what_is_written_is_read(node: Node) -> None:
    assert read_condition(formula_of(node), SCHEMA) == node


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("i>0", "i > 0"),
        ("T.i <> 5 && not (u = 1)", "i != 5 and not (u = 1)"),
        ("i not in (3, 3, 4)", "i not in (3, 4)"),
        (
            "day not between '1970-01-01' and '1970-01-02'",
            "not (day >= '1970-01-01' and day <= '1970-01-02')",
        ),
        ("\"text, odd\" matches '[A-Z]{2}\\d+'", "\"text, odd\" matches '[A-Z]{2}\\d+'"),
        ("zone >= '1970-01-01T01:00+01:00'", "zone >= '1970-01-01T00:00:00+00:00'"),
        ("not not b = true", "b = true"),
        ("f < 1e-3 or f is not null", "f < 0.001 or f is not null"),
    ],
)
def test_spellings(text: str, formula: str) -> None:
    assert formula_of(read_condition(text, SCHEMA)) == formula


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("i > ", "expected the name of a column; found the end"),
        ("i = 'x'", "'i' is of type int; expected a number"),
        ("other = 5", "'other' is of type text; expected a text in single quotes"),
        ("day = '1970-13-01'", "expected a date in single quotes"),
        ("at = '1970-01-01T00:00+01:00'", "expected a point in time"),
        ("i = null", "nothing equals NULL; write i is null"),
        ("i = day", "do not compare"),
        ("other < other", "do not compare but by = and !="),
        ("b < true", "whose values have no order"),
        ("i like 'x'", "only texts are like a pattern"),
        ("i in 5", "expected '(' and constants behind 'in'"),
        ("i in (5", "expected ',' or ')'; found the end"),
        ("(i = 5", "expected 'and', 'or' or ')'"),
        ("i = 5 5", "expected 'and', 'or' or the end; found '5'"),
        ("s.i = 5", "a condition is about one row, t"),
        ("i is 5", "expected 'null' or 'not null'"),
        ("b is true", "write b = true; only NULL has an 'is'"),
        ("b is not false and i = 5", "write b != false;"),
        ("not null i", "a test for NULL stands behind its column, as in zip is not null"),
        ("i not 5", "behind 'not'"),
        ("raw = 'x'", "'raw' is of type binary"),
        ("i between 5 or 6", "expected 'and' and the other end"),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)) as caught:
        read_condition(text, SCHEMA)
    assert str(caught.value).splitlines()[1].strip() == text.strip()


def test_errors_about_types_name_the_table() -> None:
    with pytest.raises(UsageError, match=r"'i' of table 'orders' is of type int; expected a number\."):
        read_condition("i > 'a'", SCHEMA, table="orders")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing ): ("),
        ("(?=R)R.*", "invalid perl operator: (?="),
        ("a)|(b", "unexpected )"),
        ("\\Qit''s", "missing )"),  # alone it is one, but not as the whole of a text
    ],
)
def test_patterns_that_cannot_be_run_are_pointed_at(pattern: str, problem: str) -> None:
    text = f"i > 5 or not (other = '{pattern}' and other matches '{pattern}')"
    with pytest.raises(UsageError, match=re.escape(f"is no regular expression: {problem}")) as caught:
        asked_condition(text, SCHEMA)
    _, line, caret = str(caught.value).splitlines()
    assert line[caret.index("^") :].startswith(f"'{pattern}')")


def test_what_arrow_runs_is_a_pattern(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"name": ["Rome", "Äon", "oslo"]}))
        pattern = r"name matches '\p{Lu}\p{Ll}+'"
        ws.pin("t", pattern)
        assert ws.violations("t", pattern).n_violating == 1
        for ask in (ws.pin, ws.mute, ws.explain, ws.violations):
            with pytest.raises(UsageError, match=r"character 14 of the rule: .*invalid perl operator"):
                ask("t", "name matches '(?=R)R.*'")


def test_unknown_columns() -> None:
    with pytest.raises(UnknownColumnError, match="'quantity'"):
        read_condition("quantity > 5", SCHEMA, table="t", version=1)


BOUNDS = st.builds(
    Compared,
    st.sampled_from("iu"),
    st.sampled_from([*OPERATORS]),
    st.integers(0, 3).map(Decimal),
)
LISTS = st.builds(
    lambda column, values: Among(column, tuple(map(Decimal, dict.fromkeys(values)))),
    st.sampled_from("iu"),
    st.lists(st.integers(0, 3), min_size=1, max_size=3),
)
SINGLE = BOUNDS | LISTS | st.sampled_from("iu").map(lambda column: Not(Absent(column)))
SOME_CONDITIONS = SINGLE | st.lists(SINGLE, min_size=2, max_size=3).map(lambda parts: Every(tuple(parts)))


@given(SOME_CONDITIONS, SOME_CONDITIONS)
def test_what_is_implied_holds_wherever_the_other_does(strong: Node, weak: Node) -> None:
    """No row violates what is implied without violating what implies it."""
    assert implies(strong, strong)
    if implies(strong, weak):
        numbers = (None, -1, 0, 1, 2, 3, 4)
        for row in ({"i": i, "u": u} for i in numbers for u in numbers):
            assert truth(weak, row) is not False or truth(strong, row) is False


@pytest.mark.parametrize(
    ("strong", "weak", "answer"),
    [
        ("i >= 2", "i >= 1", True),
        ("i > 1", "i >= 1", True),
        ("i >= 1", "i > 1", False),
        ("i > 1", "i > 1", True),
        ("i <= 2", "i < 3", True),
        ("i in (1, 2)", "i >= 1 and i <= 2", True),
        ("i in (1, 2)", "i in (1, 2, 3)", True),
        ("i in (1, 2, 3)", "i in (1, 2)", False),
        ("i >= 2 and u = 1", "i > 0", True),
        ("i >= 2", "u >= 1", False),
        ("i >= 2", "i is not null", False),
        ("day >= '2005-01-01'", "day >= '2000-01-01'", True),
        ("i = 2", "i != 3", True),
    ],
)
def test_what_follows_from_what(strong: str, weak: str, answer: bool) -> None:
    assert implies(read_condition(strong, SCHEMA), read_condition(weak, SCHEMA)) is answer
