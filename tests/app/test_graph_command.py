"""`holdfast graph`: the join graph of a lake as files that other tools read."""

from __future__ import annotations

import json
import math
import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import holdfast
from app.shell import WHAT_IS_IMPORTED, Shell
from holdfast.app import writing
from holdfast.app.export.join_graph import ExportedGraph
from holdfast.core.store.ledger_rows import LAKE, CommitRow
from holdfast.errors import DamagedFileError
from holdfast.lakes.graph import drawing
from holdfast.lakes.reader.lake_reader import LakeReader
from lake_maker import make_lake

CITIES = [f"city {i}" for i in range(12)]
FRUIT = [f"fruit {i}" for i in range(8)]
TABLES = [
    ("geo/cities.csv", ("name",), (CITIES,)),
    ("shops.csv", ("city", "n"), (CITIES[:6], list("123456"))),
    ("<a> & \"b\" 'c'.csv", ("town",), (CITIES[3:10],)),
    ("fruit.csv", ("kind",), (FRUIT,)),
    ("baskets\x1b\u202e.csv", ("fruit",), (FRUIT[:5],)),
    ("alone.csv", ("x",), (["nobody", "has", "these"],)),
    ("gone.csv", ("city",), (CITIES[:4],)),
]


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace that has a lake of two components; tests work on copies."""
    folder = tmp_path_factory.mktemp("linked")
    with holdfast.open(folder / "my.hold", engine="inline") as ws:
        state = make_lake(ws.root, TABLES[:4], TABLES[4:], dropped=["gone.csv"])
        ws.writer.append(0, [CommitRow(LAKE, "link", state.to_dict(), {})], [])
    return folder


@pytest.fixture
def shell(linked: Path, tmp_path: Path) -> Shell:
    folder = tmp_path / "work"
    shutil.copytree(linked, folder)
    return Shell(folder)


def lake_of(shell: Shell) -> LakeReader:
    lake = holdfast.open(shell.folder / "my.hold", engine="inline", create=False).lake()
    assert lake is not None
    return lake


GRAPHML, GEXF = "{http://graphml.graphdrawing.org/xmlns}", "{http://gexf.net/1.3}"
LINKED = [0, 1, 2, 3, 4]  # the numbers of the tables that have a link


def links_of(lake: LakeReader) -> set[tuple[int, int, int]]:
    batches = [batch.to_pylist() for batch in lake.edges()]
    return {(e["dep_table"], e["ref_table"], e["n_inds"]) for batch in batches for e in batch}


def as_json(shell: Shell, *args: str) -> tuple[dict[int, dict[str, Any]], set[tuple[int, int, int]]]:
    """(nodes by id, links) of an export."""
    outcome = shell("graph", "--export", "json", *args)
    assert (outcome.code, outcome.err) == (0, ""), outcome.err
    told = json.loads(outcome.out)  # for other tools: not a document of ours
    nodes = {n["id"]: n for n in told["nodes"]}
    assert len(nodes) == len(told["nodes"])
    return nodes, {(e["source"], e["target"], e["n_inds"]) for e in told["links"]}


# --- What is written --------------------------------------------------------------------------------------


def test_json(shell: Shell) -> None:
    nodes, links = as_json(shell)
    lake = lake_of(shell)
    assert links == links_of(lake)
    assert sorted(nodes) == LINKED  # neither the table without a link nor the one that was dropped
    assert [nodes[i]["name"] for i in LINKED] == [TABLES[i][0] for i in LINKED]
    assert [nodes[i]["n_rows"] for i in LINKED] == [12, 6, 7, 8, 5]
    assert [nodes[i]["component"] for i in LINKED] == [0, 0, 0, 1, 1]


def test_each_component_stands_in_its_circle(shell: Shell) -> None:
    nodes, _ = as_json(shell)
    for circle in lake_of(shell).components().components:
        own = [(n["x"] - circle.x, n["y"] - circle.y) for n in nodes.values() if n["component"] == circle.id]
        assert len(set(own)) == circle.n_tables
        assert max(math.hypot(x, y) for x, y in own) == pytest.approx(0.9 * circle.r)


def test_clusters_stand_in_their_circles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "CLUSTERED", 7)
    names = [f"t{i}" for i in range(8)]
    tables = [(name, ("c",), ([f"v{j}" for j in range(4, 12 + i)],)) for i, name in enumerate(names)]
    state = make_lake(tmp_path, tables)
    lake = LakeReader(tmp_path, state, 1)
    [whole] = lake.components().components
    clusters = lake.component(0).to_dict()["clusters"]
    nodes = list(ExportedGraph(lake).nodes())
    middles = []
    for cluster in clusters:
        own = lake.cluster(0, cluster["id"]).nodes.id
        places = [(n.x, n.y) for n in nodes if n.id in own]
        assert len(set(places)) == len(own) == cluster["n_tables"]
        middles.append(sum(x for x, _ in places) / len(own))
        assert max(math.hypot(x - whole.x, y - whole.y) for x, y in places) <= whole.r
    assert (middles[0] < middles[1]) == (clusters[0]["x"] < clusters[1]["x"])


@pytest.mark.parametrize("format", ["graphml", "gexf"])
def test_xml(shell: Shell, format: str) -> None:
    outcome = shell("graph", "--export", format)
    assert (outcome.code, outcome.err) == (0, "")
    root = ElementTree.fromstring(outcome.out.encode())
    at = GRAPHML if format == "graphml" else GEXF
    nodes, edges = list(root.iter(f"{at}node")), list(root.iter(f"{at}edge"))
    assert sorted(int(n.attrib["id"]) for n in nodes) == LINKED
    assert {(int(e.attrib["source"]), int(e.attrib["target"])) for e in edges} == {
        link[:2] for link in links_of(lake_of(shell))
    }
    if format == "graphml":
        names = {n.attrib["id"]: n.findtext(f"{at}data[@key='name']") for n in nodes}
    else:
        names = {n.attrib["id"]: n.attrib["label"] for n in nodes}
    assert names["2"] == TABLES[2][0]
    assert names["4"] == TABLES[4][0].replace("\x1b", "\ufffd")  # XML has no way to say it


def test_one_component(shell: Shell) -> None:
    nodes, links = as_json(shell, "--component", "1")
    assert (sorted(nodes), links) == ([3, 4], {(4, 3, 1)})
    all_nodes, all_links = as_json(shell)
    others, other_links = as_json(shell, "--component", "0")
    assert {**nodes, **others} == all_nodes  # a table keeps its place
    assert links | other_links == all_links


def test_links_with_a_score(shell: Shell) -> None:
    scores = sorted({e["score"] for batch in lake_of(shell).edges() for e in batch.to_pylist()})
    assert len(scores) > 2
    nodes, links = as_json(shell, "--min-score", repr(scores[1]))
    assert links < links_of(lake_of(shell))
    assert {end for link in links for end in link[:2]} == set(nodes)
    assert as_json(shell, "--min-score", "1") == ({}, set())
    assert as_json(shell, "--min-score", "0") == as_json(shell)


def test_a_lake_without_links(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
        state = make_lake(ws.root, [TABLES[5]])
        ws.writer.append(0, [CommitRow(LAKE, "link", replace(state, graph=None).to_dict(), {})], [])
    shell = Shell(tmp_path)
    assert as_json(shell) == ({}, set())
    outcome = shell("graph", "--export", "json", "--component", "0")
    assert outcome.code == 2
    assert "has no component 0: no two of its tables are linked." in outcome.err


# --- Where to ---------------------------------------------------------------------------------------------


def test_to_a_file(shell: Shell) -> None:
    path = shell.folder / "graph.gexf"
    path.write_text("what was there before")
    outcome = shell("graph", "--export", "gexf", "-o", str(path))
    assert (outcome.code, outcome.err) == (0, "")
    n_links = len(links_of(lake_of(shell)))
    assert outcome.out == f"{path}: 5 tables, {n_links} links (version 1)\n"
    assert path.read_text(encoding="utf-8") == shell("graph", "--export", "gexf", "-o", "-").out
    assert sorted(p.name for p in shell.folder.iterdir()) == ["graph.gexf", "my.hold"]


def test_to_what_is_no_plain_file(shell: Shell) -> None:
    pipe = shell.folder / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    thread = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    thread.start()
    assert shell("graph", "--export", "json", "-o", str(pipe)).code == 0
    thread.join(90)
    assert len(json.loads(read[0])["nodes"]) == 5
    link = shell.folder / "link.json"
    link.symlink_to(shell.folder / "target.json")
    assert shell("graph", "--export", "json", "-o", str(link)).code == 0
    assert link.is_symlink()
    assert (shell.folder / "target.json").read_text() == read[0]


def test_a_file_is_there_whole_or_not_at_all(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    path = shell.folder / "graph.json"
    path.write_text("before")

    def damaged(self: ExportedGraph) -> Any:
        raise DamagedFileError("the file 'lake/x' is cut short.")

    monkeypatch.setattr(ExportedGraph, "edges", damaged)
    outcome = shell("graph", "--export", "json", "-o", str(path))
    assert (outcome.code, outcome.out) == (2, "")
    assert path.read_text() == "before"
    assert sorted(p.name for p in shell.folder.iterdir()) == ["graph.json", "my.hold"]


def test_a_terminal_gets_no_escape_sequences(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "shows_to_a_person", lambda: True)
    out = shell("graph", "--export", "graphml").out
    assert "\u202e" not in out
    assert "\\u202e" in out
    assert out.count("\n") > 10


def test_imports_neither_spark_nor_pandas(shell: Shell) -> None:
    """Numba it does: places are worked out."""
    outcome = shell.process("graph", "--export", "json", "--component", "0", code=WHAT_IS_IMPORTED)
    assert (outcome.code, outcome.err) == (0, "['numba']\n")


# --- Errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--export", "json", "--component", "2"], "has no component 2: numbers go from 0 to 1."),
        (["--export", "json", "--min-score", "1.5"], "--min-score is 1.5; expected a score from 0 to 1"),
        (["--export", "json", "--min-score", "nan"], "--min-score is nan; expected"),
        (
            ["--export", "json", "-o", "/nowhere/at/all.json"],
            "cannot write to '/nowhere/at/all.json': No such",
        ),
        (["--export", "json", "-o", "/"], "cannot write to '/': Is a directory."),
        (["--export", "dot"], "'dot'"),
        (["--export", "json", "--component", "-1"], "--component"),
        ([], "--export"),
    ],
)
def test_errors(shell: Shell, args: list[str], told: str) -> None:
    outcome = shell("graph", *args)
    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err


def test_no_lake(tmp_path: Path) -> None:
    holdfast.open(tmp_path / "my.hold", engine="inline").close()
    outcome = Shell(tmp_path)("graph", "--export", "json", "-o", str(tmp_path / "out.json"))
    assert (outcome.code, outcome.out) == (2, "")
    assert "has no lake, so there is no graph: link one with 'holdfast link'." in outcome.err
    assert not (tmp_path / "out.json").exists()
