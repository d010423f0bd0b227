"""The join graph: components kept step by step, and drawn when asked; however files and tasks divide it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.engine.engine import Engine
from holdfast.core.store.files import FileRef, new_file
from holdfast.lakes.graph import components, drawing
from holdfast.lakes.graph import links as link_files
from holdfast.lakes.graph.drawing import JoinGraph
from holdfast.lakes.state import (
    LINKS_SCHEMA,
    GraphRef,
    LakeOptions,
    LakeState,
    PartRef,
    open_array,
    write_array,
)
from reference import graph as reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Link = tuple[int, int, int, float]  # dependent, referenced, INDs, score


def write_links(root: Path, files: Sequence[Sequence[Link]]) -> list[FileRef]:
    refs = []
    for i, links in enumerate(files):
        columns = list(zip(*links, strict=True)) or [[], [], [], []]
        name = f"lake/links-{i}.parquet"
        with new_file(root, name) as file:
            table = pa.table(
                [pa.array(c, t) for c, t in zip(columns, LINKS_SCHEMA.types, strict=True)],
                schema=LINKS_SCHEMA,
            )
            pq.write_table(table, file)
        refs.append(file.ref)
    return refs


def connected(
    engine: Engine,
    root: Path,
    files: Sequence[Sequence[Link]],
    n: int,
    dead: Sequence[int] = (),
    known: int = 0,
) -> LakeState:
    """A lake of these links; the first `known` files were there in a step before."""
    root.mkdir(exist_ok=True)
    mask = np.zeros(n, np.bool_)
    mask[list(dead)] = True
    written = write_links(root, files)
    where = engine, root, "lake", "staging/graph"
    before = components.connect(*where, written[:known], n, mask) if known else None
    graph = components.connect(*where, written[known:], n, mask, before)
    assert GraphRef.from_dict(graph.to_dict()) == graph
    parts = (PartRef(0, n, 0, 0, 0, 0, {}, (), ()),)
    dropped = write_array(root, "lake", "dropped", np.array(sorted(dead), np.int32))
    return LakeState(LakeOptions(), parts, links=tuple(written), dropped=dropped, graph=graph)


@dataclass
class Expected:
    """What follows from the links, by the definition."""

    files: Sequence[Sequence[Link]]
    n: int
    dead: Sequence[int]

    def __post_init__(self) -> None:
        self.live = [e for links in self.files for e in links if not {e[0], e[1]} & set(self.dead)]
        self.merged: dict[tuple[int, int], tuple[int, float]] = {}
        for a, b, n_inds, score in self.live:
            if a != b:
                old = self.merged.get((a, b), (0, 0.0))
                self.merged[a, b] = (old[0] + n_inds, max(old[1], float(np.float32(score))))
        labels = reference.components(self.n, list(self.merged))
        self.linked = {t for pair in self.merged for t in pair}
        groups: dict[int, list[int]] = {}
        for t in sorted(self.linked):
            groups.setdefault(labels[t], []).append(t)
        self.groups = sorted(groups.values(), key=lambda group: (-len(group), labels[group[0]]))
        self.number = {t: c for c, group in enumerate(self.groups) for t in group}
        self.degree = {
            t: len({x for pair in self.merged if t in pair for x in pair} - {t}) for t in self.linked
        }

    def weight(self, table: int) -> int:
        # A link of a table with itself counts inclusions that no link was kept for.
        return sum(e[2] for e in self.live if table in e[:2])


def check(root: Path, state: LakeState, expected: Expected, clustered: int) -> None:
    graph = JoinGraph(root, state)
    assert graph.component_of.tolist() == [expected.number.get(t, -1) for t in range(expected.n)]
    assert state.graph is not None
    n_isolated = expected.n - len(expected.linked) - len(set(expected.dead))
    assert (state.graph.n_components, state.graph.n_isolated) == (len(expected.groups), n_isolated)
    assert graph.n_components == len(expected.groups)
    links = graph.links()
    columns = (links.dep, links.ref, links.n_inds, links.score)
    listed = list(zip(*(c.tolist() for c in columns), strict=True))
    assert {(a, b): (n, score) for a, b, n, score in listed} == expected.merged
    assert len(listed) == len(expected.merged)
    assert links.score.tolist() == sorted(links.score.tolist(), reverse=True)

    circles, n_inds = graph.overview(1 << 30)
    assert circles.sizes.tolist() == [len(group) for group in expected.groups]
    assert circles.hubs.tolist() == [min(g, key=lambda t: (-expected.weight(t), t)) for g in expected.groups]
    totals = [sum(e[2] for e in expected.live if e[0] in group) for group in expected.groups]
    assert n_inds.tolist() == totals
    assert circles.radii.tolist() == pytest.approx([len(group) ** 0.5 for group in expected.groups])
    assert reference.overlap(list(map(tuple, circles.places.tolist())), circles.radii.tolist()) <= 0
    few, _ = graph.overview(2)
    assert few.places.tolist() == circles.places[:2].tolist()

    for c, group in enumerate(expected.groups):
        check_component(graph, c, group, expected, clustered)
    placed = graph.whole()
    assert np.isnan(placed[[t for t in range(expected.n) if t not in expected.linked]]).all()
    for c, group in enumerate(expected.groups):
        away = np.hypot(*(placed[group] - circles.places[c]).T)
        assert (away <= circles.radii[c]).all()
        assert len({tuple(p) for p in placed[group].tolist()}) == len(group)


def check_component(graph: JoinGraph, c: int, group: list[int], expected: Expected, clustered: int) -> None:
    found = graph.component(c)
    assert found.tables.tolist() == group
    assert found.degrees.tolist() == [expected.degree[t] for t in group]
    assert len(found.links) == sum(a in group for a, _ in expected.merged)
    assert (found.labels is None) == (len(group) <= clustered)
    if found.labels is None:
        own, places = graph.places(c)
        assert own.tables.tolist() == group
        assert len({tuple(p) for p in places.tolist()}) == len(group)
        return
    circles, (left, right, counts) = graph.clusters(c)
    of = dict(zip(group, found.labels.tolist(), strict=True))
    members = [[t for t in group if of[t] == k] for k in range(len(circles.sizes))]
    assert circles.sizes.tolist() == [len(m) for m in members]
    assert max(map(len, members)) <= clustered
    assert circles.hubs.tolist() == [min(m, key=lambda t: (-expected.degree[t], t)) for m in members]
    assert reference.overlap(list(map(tuple, circles.places.tolist())), circles.radii.tolist()) <= 0
    between: dict[tuple[int, int], int] = {}
    for a, b in expected.merged:
        if a in of and of[a] != of[b]:
            pair = min(of[a], of[b]), max(of[a], of[b])
            between[pair] = between.get(pair, 0) + 1
    told = zip(left.tolist(), right.tolist(), counts.tolist(), strict=True)
    assert {(a, b): n for a, b, n in told} == between
    for k, tables in enumerate(members):
        own, places = graph.places(c, k)
        assert own.tables.tolist() == tables
        assert len({tuple(p) for p in places.tolist()}) == len(tables)
        assert len(own.links) == sum(a in tables and b in tables for a, b in expected.merged)


N = 24
TABLE = st.integers(0, N - 1)
# Few different scores, so that many are equal.
LINKS = st.lists(
    st.tuples(TABLE, TABLE, st.integers(1, 3), st.sampled_from([0.0, 0.25, 0.5, 1.0])), max_size=25
)


@settings(max_examples=25)
@given(
    st.lists(LINKS, max_size=3),
    st.lists(TABLE, max_size=3, unique=True),
    st.sampled_from([3, 8, 5000]),
    st.integers(0, 2),
)
def test_the_definition(files: list[list[Link]], dead: list[int], clustered: int, known: int) -> None:
    """Whether the links came at once or in two steps."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(drawing, "CLUSTERED", clustered)
        patch.setattr(components, "TASK_BYTES", 1)
        patch.setattr(link_files, "BATCH_ROWS", 7)
        engine = Engine(mode="inline")
        state = connected(engine, Path(folder), files, N, dead, min(known, len(files)))
        check(Path(folder), state, Expected(files, N, dead), clustered)
        engine.close()


def lake(n_hubs: int) -> list[Link]:
    """Hubs with leaves, a chain of hubs, and pairs apart."""
    rng = np.random.default_rng(4)
    n = 20 * n_hubs
    links = [(h, h + 1, 1, 0.9) for h in range(n_hubs - 1)]
    links += [(t, int(rng.integers(0, n_hubs)), 1, float(np.float32(rng.random()))) for t in range(n_hubs, n)]
    links += [(t, t + 1, 2, 0.5) for t in range(n, n + 20, 2)]
    return links


def test_files_do_not_matter(tmp_path: Path, engine_inline: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    links = lake(10)
    monkeypatch.setattr(drawing, "CLUSTERED", 100)
    whole = connected(engine_inline, tmp_path / "whole", [links], 230)
    divided = connected(engine_inline, tmp_path / "divided", [links[i::4] for i in range(4)], 230, known=2)
    one, other = JoinGraph(tmp_path / "whole", whole), JoinGraph(tmp_path / "divided", divided)
    assert one.component_of.tolist() == other.component_of.tolist()
    assert one.weights.tolist() == other.weights.tolist()
    assert np.array_equal(one.whole(), other.whole(), equal_nan=True)
    check(tmp_path / "divided", divided, Expected([links], 230, []), 100)


def test_a_graph_of_an_older_format(tmp_path: Path, engine_inline: Engine) -> None:
    """It has no weights: they are those of the links."""
    state = connected(engine_inline, tmp_path, [lake(3)], 90)
    assert state.graph is not None
    del state.graph.files["weights"]
    check(tmp_path, state, Expected([lake(3)], 90, []), 5000)


def test_only_the_strongest_links_decide_places(tmp_path: Path, engine_inline: Engine) -> None:
    """A component with far more links than are drawn stays in one piece."""
    n = 60
    links = [(a, b, 1, 0.9 if a % 2 == b % 2 else 0.1) for a in range(n) for b in range(n) if a != b]
    state = connected(engine_inline, tmp_path, [links], n)
    _, places = JoinGraph(tmp_path, state).places(0)
    assert np.isfinite(places).all()
    assert np.abs(places).max() < n
    check(tmp_path, state, Expected([links], n, []), 5000)


@pytest.mark.parametrize("files", [[], [[]], [[(1, 1, 5, 1.0)]]])
def test_no_links(tmp_path: Path, engine_inline: Engine, files: list[list[Link]]) -> None:
    state = connected(engine_inline, tmp_path, files, 4, [2])
    check(tmp_path, state, Expected(files, 4, [2]), 5000)
    assert JoinGraph(tmp_path, state).component_of.tolist() == [-1] * 4


def test_spark_agrees(
    tmp_path: Path, spark: SparkSession, engine_inline: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two jobs, however many files there are."""
    files = [lake(10)[i::6] for i in range(6)]
    monkeypatch.setattr(components, "TASK_BYTES", 1)
    here = connected(engine_inline, tmp_path / "here", files, 230)
    engine = Engine(spark, mode="spark")
    there = connected(engine, tmp_path / "there", files, 230)
    assert engine.jobs == 2
    assert here.graph is not None
    assert there.graph is not None
    for name in ("components", "weights"):
        (one,), (other,) = here.graph.files[name], there.graph.files[name]
        assert np.array_equal(open_array(tmp_path / "here", one), open_array(tmp_path / "there", other))
