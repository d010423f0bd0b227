"""The drawn join graph: components, merged edges, places and clusters, however files and tasks divide it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.engine.engine import Engine
from holdfast.core.store.files import FileRef, new_file
from holdfast.lakes.graph import drawing as lake_graph
from holdfast.lakes.state import LINKS_SCHEMA, GraphRef, open_array, read_parquet
from reference import graph as reference

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Link = tuple[int, int, int, float]  # dependent, referenced, INDs, score

SCHEMAS = {
    "overview": lake_graph.COMPONENTS_SCHEMA,
    "layout": lake_graph.LAYOUT_SCHEMA,
    "clusters": lake_graph.CLUSTERS_SCHEMA,
    "cluster_links": lake_graph.CLUSTER_LINKS_SCHEMA,
    "edges": lake_graph.EDGES_SCHEMA,
}


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


class Drawn:
    """A drawn graph, read back."""

    def __init__(self, root: Path, ref: GraphRef, n_tables: int) -> None:
        self.ref = ref
        (components,) = ref.files["components"]
        self.components = open_array(root, components)
        assert (self.components.dtype, self.components.shape) == (np.int32, (n_tables,))
        self.rows: dict[str, list[dict[str, Any]]] = {}
        for name, schema in SCHEMAS.items():
            self.rows[name] = read_parquet(root, ref.files[name], schema).to_pylist()
            for file in ref.files[name]:
                assert pq.read_schema(root / file.name).equals(schema)


def drawn(
    engine: Engine, root: Path, files: Sequence[Sequence[Link]], n: int, dead: Sequence[int] = ()
) -> Drawn:
    mask = np.zeros(n, np.bool_)
    mask[list(dead)] = True
    root.mkdir(exist_ok=True)
    ref = lake_graph.draw(engine, root, "lake", "staging/graph", write_links(root, files), n, mask, None)
    assert GraphRef.from_dict(ref.to_dict()) == ref
    return Drawn(root, ref, n)


def check(found: Drawn, files: Sequence[Sequence[Link]], n: int, dead: Sequence[int], clustered: int) -> None:
    """All that is written follows from the links, by the definition."""
    live = [e for links in files for e in links if e[0] != e[1] and not {e[0], e[1]} & set(dead)]
    merged: dict[tuple[int, int], tuple[int, float]] = {}
    for a, b, n_inds, score in live:
        old = merged.get((a, b), (0, 0.0))
        merged[a, b] = (old[0] + n_inds, max(old[1], float(np.float32(score))))
    labels = reference.components(n, list(merged))
    linked = {t for pair in merged for t in pair}
    groups: dict[int, list[int]] = {}
    for t in sorted(linked):
        groups.setdefault(labels[t], []).append(t)
    order = sorted(groups, key=lambda g: (-len(groups[g]), g))
    number = {t: c for c, g in enumerate(order) for t in groups[g]}
    assert found.components.tolist() == [number.get(t, -1) for t in range(n)]
    counts = (len(order), n - len(linked) - len(set(dead)), len(merged))
    assert (found.ref.n_components, found.ref.n_isolated, found.ref.n_edges) == counts

    edges = found.rows["edges"]
    told = {(e["dep_table"], e["ref_table"]): (e["n_inds"], e["score"]) for e in edges}
    assert told == merged
    assert len(edges) == len(merged)
    assert all(e["component"] == number[e["dep_table"]] for e in edges)
    assert [e["component"] for e in edges] == sorted(e["component"] for e in edges)

    degree = {t: len({x for pair in merged if t in pair for x in pair} - {t}) for t in linked}
    layout = found.rows["layout"]
    assert {r["table"]: r["degree"] for r in layout} == degree
    assert len(layout) == len(linked)
    assert [(r["component"], r["cluster"]) for r in layout] == sorted(
        (r["component"], r["cluster"]) for r in layout
    )
    assert all(r["component"] == number[r["table"]] for r in layout)
    places = {(r["component"], r["cluster"], r["x"], r["y"]) for r in layout}
    assert len(places) == len(layout)

    overview = found.rows["overview"]
    assert [(r["component"], r["n_tables"]) for r in overview] == [
        (c, len(groups[g])) for c, g in enumerate(order)
    ]
    for r, g in zip(overview, order, strict=True):
        assert r["hub"] == min(groups[g], key=lambda t: (-degree[t], t))
        # A link of a table with itself counts inclusions that no link was kept for.
        own = sum(e[2] for links in files for e in links if e[0] == e[1] and e[0] in groups[g])
        between = sum(told[0] for (a, _), told in merged.items() if number[a] == r["component"])
        assert r["n_inds"] == own + between
        assert r["r"] == pytest.approx(len(groups[g]) ** 0.5)
    circles = [(r["x"], r["y"]) for r in overview]
    assert reference.overlap(circles, [r["r"] for r in overview]) <= 0

    great = [c for c, g in enumerate(order) if len(groups[g]) > clustered]
    assert sorted({r["component"] for r in found.rows["clusters"]}) == great
    for c, g in enumerate(order):
        mine = [r for r in layout if r["component"] == c]
        if c not in great:
            assert {r["cluster"] for r in mine} == {-1}
            continue
        clusters = [r for r in found.rows["clusters"] if r["component"] == c]
        assert [r["cluster"] for r in clusters] == list(range(len(clusters)))
        members = {r["cluster"]: [q["table"] for q in mine if q["cluster"] == r["cluster"]] for r in clusters}
        assert sum(map(len, members.values())) == len(groups[g])
        for r in clusters:
            assert r["n_tables"] == len(members[r["cluster"]]) <= clustered
            assert r["hub"] == min(members[r["cluster"]], key=lambda t: (-degree[t], t))
        assert reference.overlap([(r["x"], r["y"]) for r in clusters], [r["r"] for r in clusters]) <= 0
        of = {t: k for k, tables in members.items() for t in tables}
        between: dict[tuple[int, int], int] = {}
        for a, b in merged:
            if number[a] == c and of[a] != of[b]:
                pair = min(of[a], of[b]), max(of[a], of[b])
                between[pair] = between.get(pair, 0) + 1
        links = [r for r in found.rows["cluster_links"] if r["component"] == c]
        assert {(r["left"], r["right"]): r["n"] for r in links} == between


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
    st.sampled_from([30, 10**6]),
)
def test_the_definition(files: list[list[Link]], dead: list[int], clustered: int, unit: int) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(lake_graph, "CLUSTERED", clustered)
        patch.setattr(lake_graph, "SMALLEST_UNIT", unit)
        patch.setattr(lake_graph, "UNIT_LINKS", unit)
        patch.setattr(lake_graph, "TASK_BYTES", 1)
        patch.setattr(lake_graph, "BATCH_ROWS", 7)
        engine = Engine(mode="inline")
        check(drawn(engine, Path(folder), files, N, dead), files, N, dead, clustered)
        engine.close()


def lake(n_hubs: int) -> list[Link]:
    """Hubs with leaves, a chain of hubs, and pairs apart."""
    rng = np.random.default_rng(4)
    n = 20 * n_hubs
    links = [(h, h + 1, 1, 0.9) for h in range(n_hubs - 1)]
    links += [(t, int(rng.integers(0, n_hubs)), 1, float(np.float32(rng.random()))) for t in range(n_hubs, n)]
    links += [(t, t + 1, 2, 0.5) for t in range(n, n + 20, 2)]
    return links


@pytest.mark.parametrize("unit", [700, 10**6])
def test_units_and_files_do_not_matter(
    tmp_path: Path, engine_inline: Engine, monkeypatch: pytest.MonkeyPatch, unit: int
) -> None:
    links = lake(10)
    monkeypatch.setattr(lake_graph, "CLUSTERED", 100)
    whole = drawn(engine_inline, tmp_path / "whole", [links], 230)
    monkeypatch.setattr(lake_graph, "SMALLEST_UNIT", unit)
    monkeypatch.setattr(lake_graph, "UNIT_LINKS", unit)
    divided = drawn(engine_inline, tmp_path / "divided", [links[i::4] for i in range(4)], 230)
    for name in ("overview", "layout", "clusters", "cluster_links"):
        assert divided.rows[name] == whole.rows[name]
    assert sorted(map(str, divided.rows["edges"])) == sorted(map(str, whole.rows["edges"]))
    check(divided, [links], 230, [], 100)


def test_only_the_strongest_edges_decide_places(tmp_path: Path, engine_inline: Engine) -> None:
    """A component with far more edges than are drawn stays in one piece."""
    n = 60
    links = [(a, b, 1, 0.9 if a % 2 == b % 2 else 0.1) for a in range(n) for b in range(n) if a != b]
    found = drawn(engine_inline, tmp_path, [links], n)
    places = np.array([(r["x"], r["y"]) for r in found.rows["layout"]])
    assert np.isfinite(places).all()
    assert np.abs(places).max() < n
    check(found, [links], n, [], 5000)


def test_row_groups(tmp_path: Path, engine_inline: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_graph, "ROW_GROUP", 50)
    found = drawn(engine_inline, tmp_path, [lake(10)], 230)
    (edges,) = found.ref.files["edges"]
    told = pq.read_metadata(tmp_path / edges.name)
    assert max(told.row_group(i).num_rows for i in range(told.num_row_groups)) == 50


@pytest.mark.parametrize("files", [[], [[]], [[(1, 1, 5, 1.0)]]])
def test_no_links(tmp_path: Path, engine_inline: Engine, files: list[list[Link]]) -> None:
    found = drawn(engine_inline, tmp_path, files, 4, [2])
    assert (found.ref.n_components, found.ref.n_isolated, found.ref.n_edges) == (0, 3, 0)
    assert found.components.tolist() == [-1] * 4
    assert not any(found.rows.values())


def test_spark_agrees(
    tmp_path: Path, spark: SparkSession, engine_inline: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six jobs at most, however many files there are."""
    files = [lake(10)[i::6] for i in range(6)]
    monkeypatch.setattr(lake_graph, "TASK_BYTES", 1)
    here = drawn(engine_inline, tmp_path / "here", files, 230)
    engine = Engine(spark, mode="spark")
    there = drawn(engine, tmp_path / "there", files, 230)
    assert engine.jobs == 6
    assert there.components.tolist() == here.components.tolist()
    assert there.rows == here.rows
