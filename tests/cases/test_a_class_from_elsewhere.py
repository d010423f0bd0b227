"""A class of dependencies from another package is tracked, maintained, told and explained as any other."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from app.shell import Shell
from cases import constant_columns
from holdfast import kind
from holdfast.errors import UsageError

kind.forget(constant_columns.ENTRY.kind)  # it is there in these tests only
HERE = Path(__file__).parent
COLUMNS = ("country", "city", "zip")
ROWS = [("DE", "Bonn", 53111), ("DE", "Bonn", 53113)]
Row = tuple[str | None, str, int]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """The class is there in these tests, and nowhere else."""
    kind.register(constant_columns.ENTRY)
    yield
    kind.forget(constant_columns.ENTRY.kind)


def table(rows: list[Any]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[]] * 3
    return pa.table(
        {
            name: pa.array(list(values), pa.int64() if name == "zip" else pa.string())
            for name, values in zip(COLUMNS, columns, strict=True)
        }
    )


def names(ws: holdfast.Workspace, at: int | None = None) -> list[str]:
    return [d.name for d in ws.dependencies("constant", "towns", at)]


def truth(rows: list[Row]) -> list[str]:
    return [f"constant({name})" for c, name in enumerate(COLUMNS) if len({row[c] for row in rows}) <= 1]


def test_it_is_tracked_and_told(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    change = ws.track("towns", table(ROWS), kinds=("ucc", "constant"))
    assert str(change).startswith("towns: 2 rows, 1 minimal key, 2 constant columns (version 1,")
    assert change.to_dict()["n_constant"] == 2
    assert names(ws) == ["constant(country)", "constant(city)"]
    broke = ws.apply("towns", inserts=table([("DE", "Köln", 50667)]))
    [lost] = broke.broke
    assert (lost.dependency.name, lost.reason) == ("constant(city)", "has two values")
    assert [row.values["city"] for row in lost.witnesses[0]] == ["Bonn", "Köln"]
    back = ws.apply("towns", deletes=table([("DE", "Köln", 50667)]))
    assert [c.dependency.name for c in back.appeared] == ["constant(city)"]
    assert names(ws, at=2) == ["constant(country)"]
    told = ws.explain("towns", "constant(city)")
    assert told.to_dict()["since"] == 3
    assert [[c.kind for c in entry.changes] for entry in ws.log("towns")][1:] == [["constant"], ["constant"]]
    assert ws.verify() > 0


def test_options_of_others_are_not_its_own(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    with pytest.raises(UsageError, match="max_lhs is about functional dependencies, but the kinds are"):
        ws.track("towns", table(ROWS), kinds=("constant",), max_lhs=2)
    with pytest.raises(UsageError, match="unknown option 'colour'"):
        ws.track("towns", table(ROWS), kinds=("constant",), colour="red")


def test_a_workspace_opens_without_the_class(tmp_path: Path) -> None:
    """Whoever has not got it applies batches all the same; what it keeps is left as it is."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("towns", table(ROWS), kinds=("ucc", "constant"))
    kind.forget("constant")
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        assert [d.kind for d in ws.dependencies()] == ["ucc"]
        with pytest.raises(UsageError, match="table 'towns' is tracked for constant"):
            ws.apply("towns", inserts=table([("FR", "Paris", 75000)]))


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_it_is_exact_after_every_batch(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    row = st.tuples(st.sampled_from(["DE", "FR", None]), st.sampled_from(["Bonn", "Köln"]), st.integers(0, 2))
    rows: list[Row] = data.draw(st.lists(row, min_size=1, max_size=4))
    ws = holdfast.open(tmp_path_factory.mktemp("w") / "w", engine="inline")
    ws.track("towns", table(rows), kinds=("constant", "fd"))
    for _ in range(data.draw(st.integers(1, 4))):
        gone = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
        new: list[Row] = data.draw(st.lists(row, max_size=3))
        if not gone and not new:
            continue
        before = truth(rows)
        lost = [rows[i] for i in gone]
        rows = [r for i, r in enumerate(rows) if i not in gone] + new
        parts = {"inserts": table(new) if new else None, "deletes": table(lost) if lost else None}
        change = ws.apply("towns", **parts)
        assert names(ws) == truth(rows)
        events = {c.dependency.name: c.event for c in change.changes if c.dependency.kind == "constant"}
        assert {n for n, event in events.items() if event == "broke"} == {*before} - {*truth(rows)}
        assert {n for n, event in events.items() if event == "appeared"} == {*truth(rows)} - {*before}


def test_the_command_line_knows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that write and that read were only told the name of the module; the others are this one."""
    shell = Shell(tmp_path)
    towns = shell.file("towns.csv", "country,city,zip\nDE,Bonn,53111\nDE,Bonn,53113\n")
    more = shell.file("more.csv", "country,city,zip\nDE,Köln,50667\n")

    def run(*arguments: str, told: bool = False) -> str:
        with monkeypatch.context() as patch:
            if told:
                patch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]))
                patch.setenv(kind.ELSEWHERE, "constant_columns")
            done = shell.process(*arguments) if told else shell(*arguments)
        assert done.code == 0, done.err
        return done.out

    tracked = run("track", "towns", towns, "--kinds", "ucc,constant", told=True)
    assert "new: 2 constant columns" in tracked
    applied = run("apply", "towns", "--inserts", more)
    assert "broke: 1 constant column\n    constant(city) has two values:" in applied
    expected = "towns: 1 constant column (version 2)\n  constant(country)\n"
    assert expected in run("show", "--kind", "constant", told=True)
    assert "towns: 1 constant column" in run("show")
    shown = json.loads(run("show", "--json"))["dependencies"]
    constant = {"kind": "constant", "table": "towns", "columns": ["country"]}
    assert {**constant, "role": "dependency", "score": 0.5, "muted": False} in shown
    assert "constant(city) does not hold since version 2: two rows differ" in run(
        "explain", "towns", "constant(city)"
    )
    assert json.loads(run("explain", "towns", "constant(country)", "--json"))["holds"] is True
    assert "broke: constant(city)" in run("log")
