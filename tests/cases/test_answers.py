"""Answers are small typed objects: they print well, and go on as dictionaries, Arrow and pandas."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast import Condition, Terms, errors

PEOPLE = pa.table({"name": ["Lee", "Payne", "Lee"], "phone": [345, 245, 234], "age": [20, 30, 30]})


@pytest.fixture
def ws(tmp_path: Path) -> holdfast.Workspace:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("people", PEOPLE, kinds=("ucc", "fd", "ind", "row"))
    ws.track("calls", pa.table({"to": [345, 234]}), kinds=("ucc", "ind"))
    return ws


# What readers hand to the rest of holdfast: how state is kept.
INTERNAL = {
    *("Readers", "KeyRef", "FdRef", "DcRef", "CountedEvidence", "GeneratorState", "PairCounts", "LakeState"),
    *("CommitRow", "RowFacts", "Stability"),
}


def answers_of(cls: type) -> Iterator[tuple[str, Any]]:
    """(name, class) of holdfast in the annotations of what the public methods of a class return."""
    for base in cls.__mro__:
        if not base.__module__.startswith("holdfast"):
            continue
        module = sys.modules[base.__module__]
        imported = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(ast.parse(inspect.getsource(module)))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holdfast")
            for alias in node.names
        }
        for name, method in vars(base).items():
            function = method.fget if isinstance(method, property) else getattr(method, "__func__", method)
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            returned = str(function.__annotations__.get("return"))
            for of_module, answer in re.findall(r"(?:(\w+)\.)?([A-Z]\w+)", returned):
                # `joins.LakeJoins`, of a module that is imported whole, or a name that is imported itself.
                where, name_there = imported.get(of_module or answer, (module.__name__, answer))
                home = import_module(f"{where}.{name_there}" if of_module in imported else where)
                value = getattr(home, answer, None)
                if getattr(value, "__module__", "").startswith("holdfast") or answer == "Life":
                    yield answer, value


def test_every_public_name_is_in_holdfast() -> None:
    public = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    readers = dict(answers_of(holdfast.Workspace))
    assert {"KeyReader", "LakeKeeper", "ViolatingRows", "Change"} <= set(readers)
    public |= set(readers)
    for name, reader in [*readers.items(), *answers_of(holdfast.LakeKeeper)]:
        if name in ("LakeReader", "LakeKeeper") or name.endswith("Reader"):
            public |= {answer for answer, _ in answers_of(reader)}
    assert {"Life", "DcRanking", "FdExplanation", "LakeTable", "TableProfile"} <= public
    public |= {type(value).__name__ for value in (Terms(), Condition("t", "a > 0", ("a",)))}  # of pins
    assert public - INTERNAL <= set(holdfast.__all__)
    assert sorted(holdfast.__all__, key=str) == list(holdfast.__all__)
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None


def test_what_a_workspace_shows_is_its_api(ws: holdfast.Workspace) -> None:
    """Whoever adds a name here makes it public; what the rest of holdfast asks for is not shown."""
    assert {name for name in dir(ws) if not name.startswith("_")} == {
        *("root", "version", "tables", "kinds", "schema", "n_rows", "log", "sizes", "since"),
        *("dependencies", "explain", "violations", "repairs", "map"),
        *("keys", "fds", "inds", "dcs", "row_rules", "checks", "profiles", "lakes"),
        *("track", "track_all", "apply", "apply_all", "check", "check_all", "drop", "merge"),
        *("pins", "pin", "pin_rule", "pin_all", "unpin", "muted", "mute", "unmute"),
        *("link", "unlink", "lake"),
        *("verify", "tidy", "close"),
    }
    assert ws.readers is not None
    assert ws.ledger.version == ws.version
    assert ws.writer is not None


def test_dependencies(ws: holdfast.Workspace) -> None:
    found = ws.dependencies("ucc", "people")
    assert repr(found) == "2 dependencies\n  ucc  people[phone]\n  ucc  people[name, age]"
    assert found.to_dict()["dependencies"][0]["columns"] == ["phone"]
    table = found.to_arrow()
    assert table.column_names == ["kind", "table", "columns", "name", "error"]
    assert table["columns"].to_pylist() == [["phone"], ["name", "age"]]
    assert list(found.to_pandas()["name"]) == ["[phone]", "[name, age]"]
    assert found == list(found)  # a list like any other


def test_long_lists_are_cut(ws: holdfast.Workspace) -> None:
    many = holdfast.Dependencies([holdfast.Ucc("t", (f"c{i}",)) for i in range(30)])
    assert repr(many).splitlines()[-1] == "  ... and 10 more"
    assert repr(holdfast.Dependencies()) == "0 dependencies"
    assert holdfast.Dependencies().to_arrow().num_rows == 0


def test_rankings_and_links(ws: holdfast.Workspace) -> None:
    ranking = ws.fds.rank("people")
    assert repr(ranking).startswith(f"{len(ranking.fds)} ranked, best first\n  0.")
    assert ranking.to_pandas().shape[0] == len(ranking.fds)
    links = ws.inds.links()
    assert "calls[to] -> people[phone]" in repr(links)
    assert links.to_arrow()["score"].to_pylist() == [link.score for link in links.links]


def test_the_log_and_a_change(ws: holdfast.Workspace) -> None:
    change = ws.apply("people", inserts=pa.table({"name": ["Payne"], "phone": [245], "age": [31]}))
    assert repr(change).startswith("<Change: people: +1 -0 rows, now 4 rows, 2 minimal keys")
    assert repr(change).endswith("appeared>")
    log = ws.log()
    assert log.to_arrow()["action"].to_pylist() == ["track", "track", "apply"]
    assert repr(log).splitlines()[0] == "3 versions"


def test_explanations_by_text(ws: holdfast.Workspace) -> None:
    for question, since in (("phone -> name", 1), ("phone > age", 1), (["name"], 1)):
        told = ws.explain("people", question).to_dict()
        assert told["since"] == since
    side = holdfast.Side("people", ("phone",))
    assert ws.explain("calls", "to", referenced=side).to_dict()["holds"] is True
