"""Table I of the SWAN paper, with its insert and its delete.

The text slips twice: the "first tuple (Lee, 234, 30)" that is deleted is tuple 3, and after the insert
{Age} and {Name, Phone} are the maximal non-uniques ({Name} is inside the new one, {Age} stays).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import holdfast
from holdfast import Workspace

PERSONS = [("Lee", 345, 20), ("Payne", 245, 30), ("Lee", 234, 30)]
INSERT = ("Payne", 245, 31)
NAMES = ("Name", "Phone", "Age")


def persons(*rows: tuple[str, int, int]) -> pa.Table:
    return pa.table({name: [row[c] for row in rows] for c, name in enumerate(NAMES)})


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as found:
        found.track("persons", persons(*PERSONS))
        yield found


def keys(ws: Workspace) -> list[tuple[str, ...]]:
    return [d.columns for d in ws.dependencies(table="persons")]


def test_the_table(ws: Workspace) -> None:
    assert keys(ws) == [("Phone",), ("Name", "Age")]
    assert ws.keys.non_uniques("persons") == [("Name",), ("Age",)]


def test_the_insert(ws: Workspace) -> None:
    """{Phone} breaks by tuple 2; {Age, Phone} is new; {Name, Phone} is a maximal non-unique."""
    change = ws.apply("persons", inserts=persons(INSERT))
    assert keys(ws) == [("Name", "Age"), ("Phone", "Age")]
    assert ws.keys.non_uniques("persons") == [("Age",), ("Name", "Phone")]
    [broke] = change.broke
    assert broke.dependency.columns == ("Phone",)
    [pair] = broke.witnesses
    shown = sorted(tuple(row.values[n] for n in NAMES) for row in pair)
    assert shown == [("Payne", 245, 30), ("Payne", 245, 31)]
    assert [c.dependency.columns for c in change.appeared] == [("Phone", "Age")]
    assert "[Phone] is no longer unique" in str(change)


def test_the_delete(ws: Workspace) -> None:
    """Without tuple 3 each column is unique; {Name, Age} is implied."""
    change = ws.apply("persons", deletes=persons(PERSONS[2]))
    assert keys(ws) == [("Name",), ("Phone",), ("Age",)]
    assert ws.keys.non_uniques("persons") == [()], "two rows that agree on nothing"
    assert {c.dependency.columns for c in change.appeared} == {("Name",), ("Age",)}
    assert [c.dependency.columns for c in change.changes if c.event == "implied"] == [("Name", "Age")]
    for c in change.appeared:
        [pair] = c.witnesses
        assert ("Lee", 234, 30) in [tuple(row.values[n] for n in NAMES) for row in pair]


def test_insert_and_delete_in_one_batch(ws: Workspace) -> None:
    ws.apply("persons", inserts=persons(INSERT), deletes=persons(PERSONS[2]))
    assert keys(ws) == [("Age",)]
    assert ws.keys.non_uniques("persons") == [("Name", "Phone")]


def test_the_insert_and_back(ws: Workspace) -> None:
    ws.apply("persons", inserts=persons(INSERT))
    change = ws.apply("persons", deletes=persons(INSERT))
    assert keys(ws) == [("Phone",), ("Name", "Age")]
    assert [c.dependency.columns for c in change.appeared] == [("Phone",)]
    told = ws.explain("persons", ["Phone"])
    assert (told.unique, told.minimal, told.since) == (True, True, 3)
    assert ws.explain("persons", ["Name"]).since == 1
    assert [d.columns for d in ws.dependencies(table="persons", at=2)] == [("Name", "Age"), ("Phone", "Age")]
    assert ws.keys.non_uniques("persons", at=2) == [("Age",), ("Name", "Phone")]
