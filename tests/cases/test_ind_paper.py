"""Table 1 of the paper on incremental INDs, with examples 1.1, 4.6, 4.10 and 4.11.

Its Table 2 slips once: the cluster of the value a is {A, B, D}, as in Figure 2, not {A, B, C}.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import holdfast
from holdfast import Workspace

TABLE1 = ["aafa", "bbea", "bcfc", "ddfc"]
NAMES = ("A", "B", "C", "D")


def tuples(*rows: str) -> pa.Table:
    """Each row is four letters."""
    return pa.table({name: pa.array([row[c] for row in rows], pa.string()) for c, name in enumerate(NAMES)})


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as found:
        found.track("r", tuples(*TABLE1), kinds=("ind",))
        yield found


def inds(ws: Workspace, **where: int) -> set[str]:
    return {d.dependent.columns[0] + d.referenced.columns[0] for d in ws.dependencies(kind="ind", **where)}


def clusters(ws: Workspace) -> dict[str, int]:
    """The clusters as words: ABD is the cluster {A, B, D}."""
    found = {}
    for columns, n_values in ws.inds.clusters():
        assert list(columns) == sorted(columns)
        assert {table for table, _ in columns} == {"r"}
        found["".join(name for _, name in columns)] = n_values
    return found


def test_the_table(ws: Workspace) -> None:
    """Figure 2: b and d in A and B; a in A, B and D; c in B and D; e and f in C."""
    assert inds(ws) == {"AB", "DB"}
    assert clusters(ws) == {"AB": 2, "ABD": 1, "BD": 1, "C": 2}


def test_partial_inclusions_of_the_table(ws: Workspace) -> None:
    """Of D's values a and c, A has only a; C shares nothing with the others."""
    found = {
        d.dependent.columns[0] + d.referenced.columns[0]: d
        for d in ws.dependencies(kind="ind", max_error=0.5)
    }
    assert set(found) == {"AB", "DB", "DA", "BA", "BD"}
    counts = {pair: (d.error, d.missing_values, d.missing_rows) for pair, d in found.items()}
    assert counts == {
        "AB": (0.0, 0, 0),
        "DB": (0.0, 0, 0),
        "DA": (0.5, 1, 2),  # c, twice
        "BA": (0.25, 1, 1),  # c, once
        "BD": (0.5, 2, 2),  # b and d
    }
    assert found["AB"].coverage == 3 / 4
    assert found["DB"].coverage == 2 / 4
    assert found["BA"].coverage == 1.0  # c, once, is none of them


def test_example_1_1_delete(ws: Workspace) -> None:
    """(b, b, e, a) goes: b is in A still (of the third tuple), and in B no more."""
    change = ws.apply("r", deletes=tuples("bbea"))
    assert inds(ws) == {"DB"}
    [broke] = change.changes
    assert broke.event == "broke"
    assert str(broke.dependency) == "r[A] in r[B]"
    assert broke.values == ("b",)
    [[row]] = broke.witnesses
    assert "".join(row.values[n] for n in NAMES) == "bcfc"
    assert inds(ws, at=1) == {"AB", "DB"}


def test_example_4_10(ws: Workspace) -> None:
    ws.apply("r", deletes=tuples("bbea"))
    assert clusters(ws) == {"ABD": 1, "AB": 1, "BD": 1, "A": 1, "C": 1}


def test_example_1_1_insert(ws: Workspace) -> None:
    """(c, c, e, e) comes: A has all of B's values, and D has e, which B lacks."""
    change = ws.apply("r", inserts=tuples("ccee"))
    assert inds(ws) == {"AB", "BA"}
    assert {(c.event, str(c.dependency)) for c in change.changes} == {
        ("broke", "r[D] in r[B]"),
        ("appeared", "r[B] in r[A]"),
    }
    [broke] = change.broke
    assert broke.values == ("e",)
    [[row]] = broke.witnesses
    assert "".join(row.values[n] for n in NAMES) == "ccee"


def test_example_4_6(ws: Workspace) -> None:
    """c moves to {A, B, D}, e to {C, D}; the cluster {B, D} has no value left and disappears."""
    ws.apply("r", inserts=tuples("ccee"))
    assert clusters(ws) == {"ABD": 2, "AB": 2, "CD": 1, "C": 1}


@pytest.mark.parametrize("way", ["before and after", "delete and insert"])
def test_example_4_11(ws: Workspace, way: str) -> None:
    """(b, c, f, c) becomes (b, g, f, g): c leaves B and stays in D (of the fourth tuple); g joins both."""
    old, new = tuples("bcfc"), tuples("bgfg")
    parts = {"before": old, "after": new} if way == "before and after" else {"deletes": old, "inserts": new}
    change = ws.apply("r", **parts)
    assert clusters(ws) == {"ABD": 1, "AB": 2, "D": 1, "BD": 1, "C": 2}
    assert inds(ws) == {"AB"}
    [broke] = change.changes
    assert str(broke.dependency) == "r[D] in r[B]"
    assert broke.values == ("c",)
    [[row]] = broke.witnesses
    assert "".join(row.values[n] for n in NAMES) == "ddfc"


def test_there_and_back(ws: Workspace) -> None:
    """The extract of what was merged leaves what was there."""
    before = clusters(ws)
    ws.apply("r", inserts=tuples("ccee"))
    change = ws.apply("r", deletes=tuples("ccee"))
    assert clusters(ws) == before
    assert {(c.event, str(c.dependency)) for c in change.changes} == {
        ("appeared", "r[D] in r[B]"),
        ("broke", "r[B] in r[A]"),
    }
    assert inds(ws) == {"AB", "DB"}
    assert inds(ws, at=2) == {"AB", "BA"}


def test_attributes_of_several_relations(tmp_path: Path) -> None:
    """The same table cut in two: relations of the paper share one clustering."""
    rows = tuples(*TABLE1)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("left", rows.select(["A", "B"]), kinds=("ind",))
        change = ws.track("right", rows.select(["C", "D"]), kinds=("ind",))
        assert [str(c.dependency) for c in change.appeared] == ["right[D] in left[B]"]
        named = {"".join(name for _, name in columns): n for columns, n in ws.inds.clusters()}
        assert named == {"AB": 2, "ABD": 1, "BD": 1, "C": 2}
