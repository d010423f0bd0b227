"""The examples of the paper about MANY (Tschirschnitz, Papenbrock and Naumann, TODS 2017), as far as its text
goes: the tables of figures 1 and 2, the null values of table 2, the filters of section 3.2, the columns of
figure 4 and the graph of figure 16. Cells that only the figures show are ours.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.lakes.answers import LakeChange
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.state import NULL_LIKE
from holdfast.workspace import Workspace

Tables = Mapping[str, Mapping[str, list[str]]]

PLANETS = ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]
SKY: Tables = {
    "planets": {
        "Planet": PLANETS,
        "Semi-major axis": ["0.39", "0.72", "1.00", "1.52", "5.20", "9.54", "19.19", "30.07"],
        "Moons": ["0", "0", "1", "2", "95", "146", "28", "16"],
        "Rings": ["no", "no", "no", "no", "yes", "yes", "yes", "yes"],
    },
    "terrestrial planets": {
        "Name": PLANETS[:4],
        "Mean density": ["5.43", "5.24", "5.51", "3.93"],
        "Semi-major axis": ["0.39", "0.72", "1.00", "1.5237"],  # of Mars they tell something else
    },
    "natural satellites": {
        "Satellite": ["Moon", "Phobos", "Deimos", "Io", "Titan", "Titania", "Triton"],
        "Satellite of": ["Earth", "Mars", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"],
        "Discovered": ["—", "1877", "1877", "1610", "1655", "1787", "1846"],
    },
}


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut is no matter here, and syncing would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as opened:
        yield opened


def link(ws: Workspace, tables: Tables, **options: Any) -> LakeChange:
    """Link tables as CSV files without ending: their names are those of the paper."""
    folder = ws.root.parent / f"lake-{len(list(ws.root.parent.iterdir()))}"
    folder.mkdir()
    for name, columns in tables.items():
        rows = zip(*columns.values(), strict=True)
        quoted = [",".join(f'"{cell}"' for cell in row) for row in (tuple(columns), *rows)]
        (folder / f"{name}.csv").write_text("\n".join(quoted) + "\n", encoding="utf-8")
    return ws.link(folder, **options)


def lake_of(ws: Workspace) -> LakeReader:
    reader = ws.lake()
    assert reader is not None
    return reader


def inds(ws: Workspace) -> set[str]:
    return {str(ind).replace(".csv", "") for ind in lake_of(ws).each_ind()}


def graph(ws: Workspace) -> tuple[set[tuple[str, str, int]], set[frozenset[str]]]:
    """Edges from dependent to referenced tables with their numbers of inclusions, and components."""
    edges = {
        (a.removesuffix(".csv"), b.removesuffix(".csv"), n)
        for batch in lake_of(ws).edges()
        for a, b, n in zip(
            *(batch[c].to_pylist() for c in ("dependent", "referenced", "n_inds")), strict=True
        )
    }
    groups: dict[int, set[str]] = {}
    for batch in lake_of(ws).nodes():
        for name, component in zip(batch["name"].to_pylist(), batch["component"].to_pylist(), strict=True):
            if component >= 0:
                groups.setdefault(component, set()).add(name.removesuffix(".csv"))
    return edges, {frozenset(group) for group in groups.values()}


# -- section 1: joining the Web of tables ------------------------------------------------------------------


@pytest.mark.parametrize("proposer", ["index", "signatures"])
def test_planets_and_satellites(ws: Workspace, proposer: str) -> None:
    change = link(ws, SKY, proposer=proposer)
    assert inds(ws) == {
        "terrestrial planets[Name] in planets[Planet]",
        "natural satellites[Satellite of] in planets[Planet]",
    }
    assert graph(ws) == (
        {("terrestrial planets", "planets", 1), ("natural satellites", "planets", 1)},
        {frozenset(SKY)},
    )
    assert (change.n_components, change.n_isolated) == (1, 0)


def test_all_moons_of_planets_with_rings(ws: Workspace) -> None:
    """The join that the paper asks for: the lake says by which columns, the rows say the rest."""
    link(ws, SKY)
    best = lake_of(ws).joins("natural satellites.csv")[0]
    assert (best.dependent.column, best.referenced.table, best.referenced.column) == (
        "Satellite of",
        "planets.csv",
        "Planet",
    )
    assert best.samples is not None
    assert set(best.samples) <= set(PLANETS)
    assert (best.n_dependent, best.n_referenced, best.uniqueness) == (6, 8, 1.0)
    rows = {name: list(zip(*columns.values(), strict=True)) for name, columns in SKY.items()}
    ringed = {planet for planet, *_, rings in rows["planets"] if rings == "yes"}
    moons = [moon for moon, planet, _ in rows["natural satellites"] if planet in ringed]
    assert moons == ["Io", "Titan", "Titania", "Triton"]


def test_the_axes_that_differ(ws: Workspace) -> None:
    """A quality issue: for one planet the two tables tell different axes. A partial inclusion shows it."""
    link(ws, SKY, max_error=0.25, min_values=4)
    axes = "terrestrial planets[Semi-major axis] in planets[Semi-major axis]"
    assert axes in inds(ws)
    reader = lake_of(ws)
    [ind] = [i for i in reader.each_ind() if str(i).replace(".csv", "") == axes]
    assert (ind.shared, ind.missing) == (3, 1)
    told = reader.ind(ind.dependent.id, ind.referenced.id)
    assert told.missing == ("1.5237",)
    assert set(told.matches) == {"0.39", "0.72", "1.00"}


# -- table 2: null values ----------------------------------------------------------------------------------

TABLE_2 = ["", "—", "-", "–", "N/A", "?", "Unknown", "- -", "n/a", "•", "- - -", ".", "??", "(n/a)"]  # noqa: RUF001


def test_the_fourteen_null_values() -> None:
    assert sorted(NULL_LIKE) == sorted(TABLE_2)
    assert len(TABLE_2) == 14


@pytest.mark.parametrize("value", TABLE_2)
def test_a_null_value_makes_no_inclusion(ws: Workspace, value: str) -> None:
    """`note` is included in every column with this value; so is `other`, and both say nothing."""
    tables: Tables = {
        "t": {"id": ["a", "b"], "note": [value, value]},
        "u": {"id": ["p", "q"], "other": ["x", value]},
    }
    change = link(ws, tables)
    assert inds(ws) == set()
    assert change.removed == {"null": 1, "integer": 0, "non-unique": 0, "coverage": 0}
    link(ws, tables, anew=True, filters=["integer", "non-unique", "coverage"])
    assert inds(ws) == {"t[note] in u[other]"}


def test_what_only_looks_like_a_null_value(ws: Workspace) -> None:
    tables: Tables = {"t": {"a": ["unknown", "NA", "n/a "]}, "u": {"b": ["unknown", "NA", "n/a "]}}
    link(ws, tables)
    assert len(inds(ws)) == 2
    link(ws, tables, anew=True, normalise=["trim", "fold"], null_values=["NA"])
    assert inds(ws) == set()


# -- section 3.2: inclusions for meaningful joins ----------------------------------------------------------


def test_the_null_column_filter(ws: Workspace) -> None:
    """Columns of empty texts are in each other. One without any cell is, unlike in the paper, in none."""
    tables: Tables = {
        "t": {"id": ["a", "b"], "empty": ["", ""]},
        "u": {"id": ["a", "b"], "same": ["", ""]},
        "v": {"none": []},
    }
    link(ws, tables, filters=[])
    assert inds(ws) == {
        "t[id] in u[id]",
        "u[id] in t[id]",
        "t[empty] in u[same]",
        "u[same] in t[empty]",
    }
    change = link(ws, tables, anew=True, filters=["null"])
    assert inds(ws) == {"t[id] in u[id]", "u[id] in t[id]"}
    assert change.removed == {"null": 2}


def test_the_integer_column_filter(ws: Workspace) -> None:
    """Rankings start from 1, and so a short one is in every longer one: by accident."""
    ranks = {f"list {n}": {"Rank": [str(i) for i in range(1, n + 1)]} for n in (3, 5, 8)}
    teams = {"list 3": ["Ajax", "Bari", "Celta"], "list 5": ["Ajax", "Bari", "Celta", "Delfi", "Eibar"]}
    tables = {name: {**columns, "Team": teams.get(name, list("pqrstuvw"))} for name, columns in ranks.items()}
    link(ws, tables, filters=[])
    assert len(inds(ws)) == 4
    change = link(ws, tables, anew=True, filters=["integer"])
    assert inds(ws) == {"list 3[Team] in list 5[Team]"}
    assert change.removed == {"integer": 3}


def test_the_non_unique_filter(ws: Workspace) -> None:
    """What is referenced must be a key candidate: unique, without missing values."""
    tables: Tables = {
        "cities": {"City": ["Rome", "Oslo", "Bern"]},
        "visits": {"City": ["Rome", "Oslo", "Rome", "Bern"], "Day": ["d1", "d2", "d3", "d4"]},
    }
    change = link(ws, tables)
    assert inds(ws) == {"visits[City] in cities[City]"}
    assert change.removed["non-unique"] == 1
    link(ws, tables, anew=True, filters=["coverage"])
    assert len(inds(ws)) == 2


def test_the_coverage_filter(ws: Workspace) -> None:
    """At least a fifth of the referenced values, unless said otherwise."""
    tables: Tables = {
        "one": {"x": ["a"]},
        "five": {"x": list("abcde")},
        "six": {"x": list("abcdef")},
    }
    change = link(ws, tables)
    assert inds(ws) == {"one[x] in five[x]", "five[x] in six[x]"}
    assert change.removed["coverage"] == 1
    link(ws, tables, anew=True, tau=0.9)
    assert inds(ws) == set()
    link(ws, tables, anew=True, tau=0.1)
    assert len(inds(ws)) == 3


# -- figure 4: candidates by signatures --------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["dep2refs", "ref2deps"])
def test_planets_in_orbs(ws: Workspace, strategy: str) -> None:
    """Signatures of four bits, as in the figure: candidates that do not hold are validated away."""
    tables: Tables = {
        "table1": {"Planet": ["Mars", "Venus"], "Colour": ["red", "white"]},
        "table2": {
            "Moon": ["Phobos", "Luna", "Io"],
            "Orb": ["Mars", "Venus", "Earth"],
            "Size": ["s", "m", "l"],
        },
    }
    link(ws, tables, proposer="signatures", strategy=strategy, m=4, k=1, p=1)
    assert inds(ws) == {"table1[Planet] in table2[Orb]"}


# -- figure 16: from inclusions to a graph -----------------------------------------------------------------


def test_inclusions_become_a_graph(ws: Workspace) -> None:
    """A vertex for each relation of an inclusion, an edge from the dependent to the referenced one."""
    tables: Tables = {
        "R1": {"A": ["a", "b"], "B": ["k", "l"]},
        "R2": {"C": ["a", "b", "c"], "D": ["k", "l", "m"]},
        "R3": {"E": ["a", "b", "c", "d"]},
        "R4": {"F": ["x", "y"], "G": ["x", "y"]},
        "R5": {"H": ["x", "y", "z"]},
        "R6": {"I": ["nothing", "else"]},
    }
    change = link(ws, tables)
    assert inds(ws) == {
        "R1[A] in R2[C]",
        "R1[A] in R3[E]",
        "R2[C] in R3[E]",
        "R1[B] in R2[D]",
        "R4[F] in R4[G]",
        "R4[G] in R4[F]",
        "R4[F] in R5[H]",
        "R4[G] in R5[H]",
    }
    edges = {("R1", "R2", 2), ("R1", "R3", 1), ("R2", "R3", 1), ("R4", "R5", 2)}
    assert graph(ws) == (edges, {frozenset({"R1", "R2", "R3"}), frozenset({"R4", "R5"})})
    assert (change.n_components, change.n_isolated) == (2, 1)
    assert [(c.n_tables, c.n_inds) for c in lake_of(ws).components().components] == [(3, 4), (2, 2)]


def test_components_are_drawn_one_by_one(ws: Workspace) -> None:
    """Circles in the order of their sizes; each is opened by itself (figure 17)."""
    tables = {
        f"{group}{i}": {"x": [f"{group}{j}" for j in range(i + 2)]}
        for group, n in (("a", 5), ("b", 3))
        for i in range(n)
    }
    link(ws, tables)
    reader = lake_of(ws)
    circles = reader.components().components
    assert [c.n_tables for c in circles] == [5, 3]
    for left, right in itertools.pairwise(circles):
        assert (left.x - right.x) ** 2 + (left.y - right.y) ** 2 >= (left.r + right.r) ** 2 * 0.999
    drawn = reader.component(circles[0].id).to_dict()
    assert sorted(drawn["nodes"]["label"]) == [f"a{i}.csv" for i in range(5)]
    assert drawn["n_edges"] == 10
