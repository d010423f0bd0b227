"""Texts that ask for one dependency: what `ask_of` writes is read as that very one, whatever names are."""

from __future__ import annotations

import itertools
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.shell import Shell
from holdfast.app.explorer.asking import asked
from holdfast.core.words.asking import ask_of, form_of, identity_of
from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.condition import Compared, Condition, formula_of
from holdfast.core.words.dependency import Dependency, Fd, Ind, Side, Ucc
from holdfast.core.words.predicate import OPERATORS, Dc, Predicate
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sameness import identity
from holdfast.errors import HoldfastError, UnknownColumnError, UsageError
from holdfast.muting import dependency_asked

HOSTILE = [
    "a",
    "b",
    "last, first",
    'said "so"',
    '"quoted"',
    "it's",
    "x -> y",
    "->",
    "[a]",
    "[a, b]",
    "[",
    "]",
    " spaces ",
    "a b",
    "and",
    "not",
    "not(a",
    "¬a",
    "a in b",
    "t[a] in u[b]",
    "a <= b",
    "a > 5",
    "a is not null",
    "true",
    "s.a",
    "t.a",
    "größe",
    "日本語",
    "\u202egpj",
    "a\nb",
    "\x00\x1b[31m",
    "\\u0000",
    "{",
    '{"kind": "ucc", "columns": ["a"]}',
    "a -> b",
    "'a'",
    "%",
    "null",
    "constant(a)",
]
TABLES = ["t", "all[1]", "t in u", '"t"']


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> holdfast.Workspace:
    """Tables with all of these names for columns."""
    ws = holdfast.open(tmp_path_factory.mktemp("asking") / "w", engine="inline")
    rows = pa.table({name: [i, i + 1] for i, name in enumerate(HOSTILE)})
    for table in TABLES:
        ws.track(table, rows, kinds=("ind",))
    return ws


def read(ws: holdfast.Workspace, table: str, ask: str) -> Dependency:
    return dependency_asked(ws.readers, *asked(ws, table, ask))


def pairs() -> list[tuple[str, str]]:
    some = [*itertools.permutations(HOSTILE[:12], 2), *itertools.pairwise(HOSTILE)]
    return [*some, *zip(HOSTILE[1:], HOSTILE, strict=False), *[(n, "a") for n in HOSTILE[1:]]]


def in_order(*names: str) -> tuple[str, ...]:
    """As dependencies have their columns."""
    return tuple(sorted(names, key=HOSTILE.index))


def dependencies() -> list[Dependency]:
    listed: list[Dependency] = [Ucc("t", (name,)) for name in HOSTILE]
    listed += [Fd("t", (), name) for name in HOSTILE]
    for a, b in pairs():
        listed += [Ucc("t", in_order(a, b)), Fd("t", (a,), b), RowRule("t", a, "<=", b)]
        third = next(n for n in HOSTILE if n not in (a, b))
        listed.append(Fd("t", in_order(a, b), third))
        listed.append(Dc("t", (Predicate(a, "=", a), Predicate(b, "!=", b))))
        listed.append(Dc("t", (Predicate(a, "<", b), Predicate(b, ">=", a))))
        for table in TABLES:
            listed.append(Ind(Side("t", (a,)), Side(table, (b,))))
        listed.append(Ind(Side("t", (a, b)), Side("all[1]", (b, a))))
    listed += [RowRule("t", "a", op, "true") for op in OPERATORS]
    return listed


def test_what_is_written_is_read_again(ws: holdfast.Workspace) -> None:
    """Law: whatever the columns are called, and whatever others there are."""
    for dependency in dependencies():
        again = read(ws, "t", ask_of(dependency))
        assert identity(again) == identity(dependency), ask_of(dependency)


def test_conditions_are_read_again(ws: holdfast.Workspace) -> None:
    for name in HOSTILE:
        formula = formula_of(Compared(name, ">=", Decimal(0)))
        for made in (Condition("t", formula), ColumnRule("t", formula)):
            assert read(ws, "t", ask_of(made)) == Condition("t", formula), ask_of(made)


def test_people_read_what_can_be_read() -> None:
    assert ask_of(Ucc("t", ("zip", "a,b"))) == '[zip, "a,b"]'
    assert ask_of(Fd("t", ("zip", "street"), "city")) == "zip, street -> city"
    ind = Ind(Side("orders", ("customer",)), Side("customers", ("id",)))
    assert ask_of(ind) == "orders[customer] in customers[id]"
    assert ask_of(RowRule("t", "net", "<=", "gross")) == "net <= gross"
    assert ask_of(Condition("t", "quantity > 0", ("quantity",))) == "quantity > 0"
    # What reads as something else, or cannot be typed, is JSON, which is all visible.
    assert json.loads(ask_of(Fd("t", ("not(a",), "b"))) == {"kind": "fd", "lhs": ["not(a"], "rhs": "b"}
    for dependency in dependencies():
        ask = ask_of(dependency)
        assert ask.isprintable()
        assert form_of(ask) != "json" or json.loads(ask) == identity_of(dependency)


def test_numbers_of_an_inclusion_are_no_part_of_what_it_is() -> None:
    sides = Side("t", ("a",)), Side("u", ("b",))
    assert ask_of(Ind(*sides, error=0.5, missing_values=3)) == ask_of(Ind(*sides))
    assert identity_of(Ucc("t", ("a",), 0.25)) == {"kind": "ucc", "columns": ["a"]}


def test_a_name_alone_asks_for_a_key(ws: holdfast.Workspace) -> None:
    assert read(ws, "t", "größe") == Ucc("t", ("größe",))
    assert read(ws, "t", "null") == Ucc("t", ("null",))
    # There are columns of these names, and the text says something of others that are there, too.
    assert read(ws, "t", "a <= b") == RowRule("t", "a", "<=", "b")
    assert read(ws, "t", "a -> b") == Fd("t", ("a",), "b")
    assert read(ws, "t", "[a, b]") == Ucc("t", ("a", "b"))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ('{"kind": "fd", "lhs": "ab", "rhs": 5}', "names no dependency"),
        ('{"kind": "fd", "lhs": [["a"]], "rhs": "b"}', "names no dependency"),
        ('{"kind": "fd", "lhs": ["a"]}', "names no dependency"),
        ('{"kind": "nothing"}', "its kind is none of"),
        ('{"kind": "dc", "predicates": [{"left": "a", "op": "~", "right": "b"}]}', "names no dependency"),
        ('{"kind": "ind", "dependent": 1, "referenced": 2}', "names no dependency"),
        ("zip -> a", "no column 'zip'"),
        ("[zip]", "no column 'zip'"),
        ("t[a, b] in t[a]", "give as many on each"),
        ("t[zip] in t[a]", "no column 'zip'"),
        ("t[a] in nobody[a]", "no table 'nobody'"),
        ("a -> b -> a", "2 arrows"),
        ("[" * 5_000, "has no column"),
        ('{"kind":' + "[" * 5_000, "expected"),
    ],
)
def test_errors_say_what_is_wrong(ws: holdfast.Workspace, ask: str, said: str) -> None:
    with pytest.raises(HoldfastError, match=said.replace("(", r"\(")):
        read(ws, "t", ask)


def test_forms_do_not_depend_on_tables() -> None:
    forms: dict[str, Any] = {
        "[]": "key",
        "[] -> a": "fd",
        "[a, ]": "row",
        't["a"] IN u[b]': "inclusion",
        "status in ('a')": "condition",
        "not(t.a = s.a)": "rule",
        "not(a > 5)": "condition",
        '{"kind": 5}': "row",
    }
    assert {text: form_of(text) for text in forms} == forms


def test_the_library_and_the_command_line_read_them_too(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    rows = pa.table({"id": [1, 2, 3], "zip": [7, 7, 8], "city": ["A", "B", "C"]})
    ws.track("t", rows, kinds=("ucc", "ind"))
    assert ws.explain("t", "[id]").unique
    assert not ws.explain("t", "[zip]").unique
    assert not ws.explain("t", "t[zip] in t[id]").holds
    assert ws.violations("t", "t[zip] in t[id]").n_violating == 3
    with pytest.raises(UnknownColumnError, match="'zap'"):
        ws.explain("t", "[zap]")
    with pytest.raises(UsageError, match="names no dependency"):
        ws.explain("t", '{"kind": "fd"}')
    ws.close()
    holdfast.open(tmp_path / "my.hold", engine="inline").track("t", rows, kinds=("ucc", "ind"))
    shell = Shell(tmp_path)
    assert "is unique" in shell("explain", "t", "[id]").out
    assert "does not hold" in shell("violations", "t", "t[zip] in t[id]").out
