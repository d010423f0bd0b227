"""Questions to a lake, against the definition: every answer of a small lake is computed a second time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.app.export.join_graph import ExportedGraph
from holdfast.core.rows.kernels.encode import bytes_codes
from holdfast.core.rows.kernels.siphash import siphashes
from holdfast.errors import DamagedFileError, UnknownColumnError, UnknownTableError, UsageError
from holdfast.lakes.answers import LakeClusters, LakeGraph
from holdfast.lakes.reader.joins import common
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.reader.value_search import hashes
from holdfast.lakes.state import LakeOptions, LakeState
from lake_maker import as_table, judge_options, make_lake
from reference import lake as ref
from reference.identity import KEY

EVIL = "[red]x[/red]\x1b]0;owned\x07\n\u202e<script>alert(1)</script>'\"|,"

SALES = [
    (
        "sales/orders.csv",
        ("id", "customer", "n"),
        (("o1", "o2", "o3"), ("ann", "bob", "ann"), ("1", "2", "3")),
    ),
    ("sales/customers.csv", ("name", "city"), (("ann", "bob", "cy"), ("Rome", "Oslo", "Rome"))),
    ("x/cities.csv", ("city", "note"), (("Rome", "Oslo", "Bern", "n/a"), ("", None, "?", "-"))),
]
MORE = [
    ("y/orders.csv", ("o",), (("o1", "o2"),)),
    ("empty.csv", (), ()),
    (EVIL, (EVIL, "a.b"), ((EVIL, "ann"), ("p", "q"))),
]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> LakeReader:
    root = tmp_path_factory.mktemp("lake")
    state = make_lake(root, SALES, MORE, rows_per_group=2)
    return LakeReader(root, LakeState.from_dict(json.loads(json.dumps(state.to_dict()))), 3)


# -- lakes at random ---------------------------------------------------------------------------------------

CELLS = st.sampled_from(["a", "b", "c", "d", "A ", "", "n/a", "1", "2", None])


@st.composite
def lakes(draw: st.DrawFn) -> tuple[list[list[ref.Table]], list[str], LakeOptions]:
    parts, names = [], []
    for p in range(draw(st.integers(1, 2))):
        part = []
        for i in range(draw(st.integers(0, 4))):
            n_columns, n_rows = draw(st.integers(0, 3)), draw(st.integers(0, 6))
            columns = [tuple(draw(CELLS) for _ in range(n_rows)) for _ in range(n_columns)]
            names.append(f"p{p}/t{i}.csv")
            part.append(as_table((names[-1], [f"c{c}" for c in range(n_columns)], columns)))
        parts.append(part)
    dropped = draw(st.lists(st.sampled_from(names), unique=True, max_size=2)) if names else []
    filters = draw(st.sampled_from([(), ("null",), ("null", "integer", "non-unique", "coverage")]))
    options = LakeOptions(
        filters,
        normalise=draw(st.sampled_from([(), ("trim", "fold")])),
        max_error=draw(st.sampled_from([0.0, 0.4])),
        min_values=2,
    )
    return parts, dropped, options


def a_score_of_a_half() -> tuple[list[list[ref.Table]], list[str], LakeOptions]:
    """Six values among 8 columns, three of them in two: their rarity is 5/6. All are among 30 rows: the score
    is the cube root of an eighth, but in single precision 5/6 is a little less."""
    values = [f"v{i}" for i in range(6)]
    columns = [values, values[:3], *([f"w{i}", f"x{i}"] for i in range(6))]
    parts = [columns, [[*values, *(f"u{i}" for i in range(24))]]]
    tables = [
        [as_table((f"p{p}/t{i}.csv", ["c0"], [tuple(cells)])) for i, cells in enumerate(part)]
        for p, part in enumerate(parts)
    ]
    return tables, [], LakeOptions((), min_values=2)


@settings(max_examples=30)
@example(made=a_score_of_a_half(), group=5, at_once=4)
@given(made=lakes(), group=st.integers(1, 5), at_once=st.sampled_from([0, 4, 1 << 18]))
def test_every_answer_is_that_of_the_definition(
    tmp_path_factory: pytest.TempPathFactory, made: Any, group: int, at_once: int
) -> None:
    with (
        patch("holdfast.lakes.reader.lake_reader.ROWS_AT_ONCE", at_once),
        patch("holdfast.lakes.graph.drawing.CLUSTERED", 3),
    ):
        _check(tmp_path_factory, made, group)


def _check(tmp_path_factory: pytest.TempPathFactory, made: Any, group: int) -> None:
    parts, dropped, options = made
    root = tmp_path_factory.mktemp("lake")
    state = make_lake(root, *parts, options=options, dropped=dropped, rows_per_group=group)
    reader = LakeReader(root, state, 1)
    judge = judge_options(options)
    live = [t for part in parts for t in part if t.name not in dropped]
    shared = ref.shared(live, judge)

    found = list(reader.each_ind())
    places = [_places(ind, live) for ind in found]
    assert {p: ind.shared for p, ind in zip(places, found, strict=True)} == shared
    assert len(found) == len(shared) == reader.summary().n_inds
    named = {((a, b), (c, d)): n for (a, b), (c, d), n in reader.ind_names()}
    assert named == {((a, f"c{i}"), (b, f"c{j}")): n for ((a, i), (b, j)), n in shared.items()}

    facts = ref.all_facts(live, judge)
    rarity: dict[ref.Column, float] = {}
    for part in parts:  # of dropped tables too: they are in the part's index
        rarity.update(ref.rarity(part, judge))
    scores = {(a, b): ref.score(facts[a], facts[b], rarity[a]) for a, b in shared}
    for place, ind in zip(places, found, strict=True):
        assert ind.score == pytest.approx(scores[place], abs=1e-6)
        assert ind.n_dependent == len(facts[place[0]].values)
        assert ind.n_referenced == len(facts[place[1]].values)

    for table in live:
        _check_table(reader, table, live, judge, scores)
    _check_graph(reader, live, judge)
    # A link has the score of its best inclusion, and reaches the same least scores.
    links: dict[tuple[str, str], float] = {}
    for ind in found:
        ends = (ind.dependent.table, ind.referenced.table)
        if ends[0] != ends[1]:
            links[ends] = max(links.get(ends, 0.0), ind.score)
    for least in sorted(links.values())[-3:]:
        assert ExportedGraph(reader, min_score=least).n_joins == sum(s >= least for s in links.values())
    for value in ("a", "A ", "", "n/a", "zz"):
        meant = judge.normal(value)
        holders = {(t, p) for (t, p), f in facts.items() if meant in f.values}
        hits = reader.search(value, "value", limit=3)
        assert [v.n_columns for v in hits.values] == ([len(holders)] if holders else [])
        for hit in hits.values:
            assert hit.value == meant
            assert {(c.table, int(c.name[1:])) for c in hit.columns} <= holders
            assert len(hit.columns) == min(3, len(holders))
            assert hits.more == (len(holders) > 3)


def _places(ind: Any, live: list[ref.Table]) -> ref.Pair:
    header = {table.name: table.header for table in live}
    a, b = ((s.table, header[s.table].index(s.column)) for s in (ind.dependent, ind.referenced))
    return a, b


def _check_table(
    reader: LakeReader,
    table: ref.Table,
    live: list[ref.Table],
    judge: ref.Options,
    scores: dict[ref.Pair, float],
) -> None:
    number = reader.resolve(table.name)
    assert isinstance(number, int)
    told = reader.table(number, limit=2)
    assert (told.name, told.n_rows) == (table.name, table.n_rows)
    assert list(told.rows) == table.rows[:20]
    for column, cells in zip(told.columns, table.columns, strict=True):
        facts = ref.facts(cells, judge)
        assert (column.n_values, column.n_rows, column.n_missing) == (
            len(facts.values),
            facts.n_rows,
            facts.n_missing,
        )
        assert (column.unique, column.integer, column.null) == (facts.unique, facts.integer, facts.null)
        assert set(column.samples) <= facts.values
        assert len(column.samples) == min(5, len(facts.values))
    for direction, own in (
        ("both", {p for p in scores if table.name in (p[0][0], p[1][0])}),
        ("out", {p for p in scores if p[0][0] == table.name}),
        ("in", {p for p in scores if p[1][0] == table.name}),
    ):
        best = sorted((scores[p] for p in own), reverse=True)
        joins, n = reader.ranked_joins(table.name, 2, 0.0, direction)  # type: ignore[arg-type]
        assert n == len(own)
        assert [ind.score for ind in joins] == pytest.approx(best[:2], abs=1e-6)
        assert {_places(ind, live) for ind in joins} <= own
        for ind in joins:
            (a, i), (b, j) = _places(ind, live)
            columns = {t.name: t.columns for t in live}
            both = ref.facts(columns[a][i], judge).values & ref.facts(columns[b][j], judge).values
            assert ind.samples is not None
            assert set(ind.samples) <= both
            assert len(ind.samples) == min(5, len(both))
            _check_pair(reader, ind, judge, columns[a][i], columns[b][j])
        if direction == "both":
            assert told.n_inds == len(own)
            assert [ind.score for ind in told.inds] == [ind.score for ind in joins]
    half = reader.joins(table.name, 100, 0.5)
    of_table = [score for p, score in scores.items() if table.name in (p[0][0], p[1][0])]
    assert len(half) == sum(score > 0.5 - 2e-6 for score in of_table)


def _check_pair(reader: LakeReader, ind: Any, judge: ref.Options, left: Any, right: Any) -> None:
    a, b = ref.facts(left, judge).values, ref.facts(right, judge).values
    told = reader.ind(ind.dependent.id, ind.referenced.id)
    assert set(told.matches) == a & b
    assert set(told.missing) == a - b
    assert set(told.others) == b - a
    assert {**told.ind.to_dict(), "samples": 0} == {**ind.to_dict(), "samples": 0}


def _check_graph(reader: LakeReader, live: list[ref.Table], judge: ref.Options) -> None:
    graph = ref.graph(live, judge)
    summary = reader.summary()
    assert (summary.n_components, summary.n_isolated) == (len(graph.components), len(graph.isolated))
    overview = reader.components()
    assert (len(overview.components), overview.n_more) == (len(graph.components), 0)
    assert {
        (r["dependent"], r["referenced"]): r["n_inds"] for b in reader.edges() for r in b.to_pylist()
    } == (graph.edges)
    nodes = [row for batch in reader.nodes() for row in batch.to_pylist()]
    assert sorted(row["name"] for row in nodes) == sorted(t.name for t in live)
    assert {row["name"] for row in nodes if row["component"] < 0} == graph.isolated
    for component in overview.components:
        view = reader.component(component.id)
        if isinstance(view, LakeClusters):
            assert component.n_tables > 3
            views = [reader.cluster(component.id, c.id) for c in view.clusters]
            assert [len(v.nodes.id) for v in views] == [c.n_tables for c in view.clusters]
            inside = sum(v.n_edges for v in views)
            between = sum(n for _, _, n in view.links)
            names = {label for v in views for label in v.nodes.label}
            own = {e for e in graph.edges if e[0] in names}
            assert inside + between == len(own)
        else:
            views = [view]
            names = set(view.nodes.label)
        assert names in graph.components
        for view in views:
            assert isinstance(view, LakeGraph)
            _check_edges(view, graph)


def _check_edges(view: LakeGraph, graph: ref.Graph) -> None:
    label, edges = view.nodes.label, view.edges
    drawn = {(label[a], label[b]): n for a, b, n in zip(edges.start, edges.end, edges.n_inds, strict=True)}
    inside = {e: n for e, n in graph.edges.items() if e[0] in label and e[1] in label}
    assert drawn == inside
    assert view.n_edges == len(inside)
    assert edges.score == sorted(edges.score, reverse=True)


# -- JSON --------------------------------------------------------------------------------------------------


def test_json_has_the_fields_of_the_page(reader: LakeReader) -> None:
    told = {
        "summary": reader.summary().to_dict(),
        "components": reader.components().to_dict(),
        "component": reader.component(0).to_dict(),
        "table": reader.table(0).to_dict(),
        "ind": reader.ind(1, 3).to_dict(),
        "search": reader.search("o").to_dict(),
    }
    assert json.loads(json.dumps(told)) == told
    assert set(told["summary"]) == {
        "version", "n_tables", "n_columns", "n_inds", "n_components", "n_isolated", "filters", "removed",
    }  # fmt: skip
    assert set(told["components"]["components"][0]) == {"id", "n_tables", "n_inds", "name", "x", "y", "r"}
    graph = told["component"]
    assert set(graph) == {"id", "cluster", "name", "n_tables", "clustered", "nodes", "edges", "n_edges"}
    assert set(graph["nodes"]) == {"id", "label", "x", "y", "degree"}
    assert set(graph["edges"]) == {"from", "to", "score", "n_inds"}
    table = told["table"]
    assert set(table) == {
        "id", "name", "source", "n_rows", "component", "cluster", "columns", "rows", "inds", "n_inds",
    }  # fmt: skip
    assert set(table["columns"][0]) == {
        "id", "name", "n_values", "n_rows", "n_missing", "unique", "integer", "null", "samples",
    }  # fmt: skip
    ind = {
        "dependent", "referenced", "shared", "n_dependent", "n_referenced",
        "coverage", "containment", "uniqueness", "distinctive", "score",
    }  # fmt: skip
    assert set(table["inds"][0]) == ind
    assert set(table["inds"][0]["dependent"]) == {"id", "table_id", "table", "column"}
    assert set(told["ind"]) == ind | {"matches", "missing", "others"}
    assert set(told["search"]) == {"tables", "columns", "values", "more"}


def test_few_links_are_the_best(reader: LakeReader) -> None:
    whole, some = reader.component(0), reader.component(0, max_edges=1)
    assert isinstance(whole, LakeGraph)
    assert isinstance(some, LakeGraph)
    assert some.n_edges == whole.n_edges > 1
    assert some.edges.score == whole.edges.score[:1]
    assert reader.components(limit=0).n_more == 1


# -- search ------------------------------------------------------------------------------------------------


def test_names_are_found_by_any_part_in_any_case(reader: LakeReader) -> None:
    hits = reader.search("ORDERS")
    assert [t.name for t in hits.tables] == ["y/orders.csv", "sales/orders.csv"]  # the shorter one first
    assert [t.n_rows for t in hits.tables] == [2, 3]
    assert [(c.table, c.name) for c in reader.search("city", "column").columns] == [
        ("sales/customers.csv", "city"),
        ("x/cities.csv", "city"),
    ]
    assert reader.search("city", "column", limit=1).more
    assert not reader.search("city", "table").columns
    for pattern in (".*", "o.ders", "[", "\\", "%", "(?i)"):  # nothing is a pattern
        assert not reader.search(pattern, "table").tables or pattern in EVIL


def test_the_empty_text_is_a_value_only(reader: LakeReader) -> None:
    hits = reader.search("")
    assert not hits.tables
    assert not hits.columns
    assert [(v.n_columns, v.columns[0].name) for v in hits.values] == [(1, "note")]


@pytest.mark.parametrize("text", ["\ud800", "\x00", "a" * 100_000, EVIL, "🙂", "ǅ"])
def test_hostile_texts_are_only_texts(reader: LakeReader, text: str) -> None:
    hits = reader.search(text)
    assert len(hits.values) == (text == EVIL)
    assert [t.name for t in hits.tables] == ([EVIL] if text == EVIL else [])
    json.dumps(hits.to_dict())


def test_bad_searches_say_so(reader: LakeReader) -> None:
    with pytest.raises(UsageError, match="all, table, column, value"):
        reader.search("x", "tables")
    with pytest.raises(UsageError, match="limit of 0"):
        reader.search("x", limit=0)


@given(st.lists(st.text(max_size=40), max_size=20))
def test_hashes_are_those_of_the_pipeline(texts: list[str]) -> None:
    encoded = [text.encode("utf-8") for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    data = np.frombuffer(b"".join(encoded), np.uint8)
    keyed = siphashes(offsets, data, KEY)
    unkeyed = bytes_codes(offsets, data, 0), bytes_codes(offsets, data, 1)
    for word in (0, 1):
        assert [hashes(text, KEY)[word] for text in texts] == keyed[word].tolist()
        assert [hashes(text, None)[word] for text in texts] == unkeyed[word].tolist()


def test_values_are_told_apart_by_both_hashes() -> None:
    """Texts of one h1 cannot be made by hand; columns of such hashes can."""
    u = np.uint64
    left = np.array([1, 1, 1, 5, 9], u), np.array([2, 4, 6, 1, 1], u)
    right = np.array([1, 1, 5], u), np.array([4, 6, 2], u)
    assert common(left, right).tolist() == [False, True, True, False, False]
    assert common(right, left).tolist() == [True, True, False]
    none = np.empty(0, u), np.empty(0, u)
    assert common(left, none).tolist() == [False] * 5
    assert common(none, left).tolist() == []


# -- names -------------------------------------------------------------------------------------------------


def test_names_resolve(reader: LakeReader) -> None:
    assert reader.resolve("sales/orders.csv") == 0
    assert reader.resolve("customers.csv") == 1
    assert reader.resolve("/customers.csv") == 1
    assert reader.resolve("sales/customers.csv.city") == (1, 1)
    assert reader.resolve("customers.csv[city]") == (1, 1)
    assert reader.resolve(EVIL) == 5
    assert reader.resolve(f"{EVIL}.{EVIL}") == reader.resolve(f"{EVIL}[{EVIL}]") == (5, 0)
    assert reader.resolve(f"{EVIL}.a.b") == (5, 1)
    assert reader.subject("customers.csv[city]") == (1, "sales/customers.csv", "city")
    assert reader.subject("cities.csv") == (2, "x/cities.csv", None)


@pytest.mark.parametrize(
    ("text", "error", "part"),
    [
        ("orders.csv", UsageError, "the end of 2 names of tables: sales/orders.csv, y/orders.csv"),
        ("orders.csv.id", UsageError, "Give more of the path"),
        ("custmers.csv", UnknownTableError, "Did you mean 'sales/customers.csv'"),
        ("cities", UnknownTableError, "Did you mean 'x/cities.csv'"),
        ("qqq", UnknownTableError, "Tables: sales/orders.csv, .* and 3 more"),
        ("", UnknownTableError, "has no table ''"),
        ("\ud800", UnknownTableError, "has no table"),
        ("customers.csv.cty", UnknownColumnError, "has no column 'cty'.*Did you mean 'city'"),
    ],
)
def test_unknown_names_say_what_there_is(
    reader: LakeReader, text: str, error: type[Exception], part: str
) -> None:
    with pytest.raises(error, match=part):
        reader.resolve(text)


def test_a_column_joins_by_itself(reader: LakeReader) -> None:
    assert [str(ind) for ind in reader.joins("sales/orders.csv.customer")] == [
        "sales/orders.csv[customer] in sales/customers.csv[name]"
    ]
    assert reader.joins("sales/orders.csv.customer", direction="in") == []
    assert reader.joins("empty.csv") == []
    with pytest.raises(UsageError, match="both, out, in"):
        reader.joins("empty.csv", direction="up")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="limit"):
        reader.joins("empty.csv", limit=0)


def test_numbers_that_are_none(reader: LakeReader) -> None:
    for number in (-1, 6, 10**12):
        with pytest.raises(UnknownTableError, match="from 0 to 5"):
            reader.table(number)
        with pytest.raises(UsageError, match="no component"):
            reader.component(number)
    for number in (-1, 99):
        with pytest.raises(UnknownColumnError, match="from 0 to"):
            reader.ind(number, 0)
    with pytest.raises(UsageError, match="no cluster"):
        reader.cluster(0, 0)


def test_a_pair_that_is_no_inclusion_can_be_compared(reader: LakeReader) -> None:
    told = reader.ind(2, 0)  # numbers and texts
    assert (told.ind.shared, told.ind.score, told.matches) == (0, 0.0, ())
    assert set(told.missing) == {"1", "2", "3"}
    assert reader.ind(0, 0).ind.containment == 1


def test_samples_that_say_something_come_first(reader: LakeReader) -> None:
    samples = reader.table(2).columns[0].samples
    assert set(samples[:3]) == {"Rome", "Oslo", "Bern"}
    assert samples[3] == "n/a"


# -- lakes that changed ------------------------------------------------------------------------------------


def test_a_replaced_table_answers_to_its_name(tmp_path: Path) -> None:
    old = [("t.csv", ("a",), (("x", "y"),)), ("u.csv", ("b",), (("x", "y", "z"),))]
    new = [("t.csv", ("a",), (("z",),))]
    reader = LakeReader(tmp_path, make_lake(tmp_path, old, new, dropped=["t.csv"]), 2)
    assert reader.resolve("t.csv") == 2
    assert [str(ind) for ind in reader.joins("u.csv")] == ["t.csv[a] in u.csv[b]"]
    assert reader.joins("u.csv")[0].samples == ("z",)
    assert [c.table_id for c in reader.search("a", "column").columns] == [2]
    assert reader.search("x", "value").values[0].n_columns == 1
    with pytest.raises(UnknownTableError, match=r"'t.csv' \(number 0\) was dropped"):
        reader.table(0)
    with pytest.raises(UnknownTableError, match="was dropped"):
        reader.ind(0, 1)


def test_a_lake_of_nothing(tmp_path: Path) -> None:
    for state in (make_lake(tmp_path), make_lake(tmp_path, []), LakeState(LakeOptions())):
        reader = LakeReader(tmp_path, state, 1)
        assert reader.summary().n_tables == 0
        assert reader.components().to_dict() == {"components": [], "n_more": 0}
        assert reader.search("x").to_dict() == {"tables": [], "columns": [], "values": [], "more": False}
        assert list(reader.inds()) == list(reader.edges()) == list(reader.nodes()) == []
        with pytest.raises(UnknownTableError, match="it has none"):
            reader.resolve("x")


def test_long_texts_are_found_whole_and_shown_cut(tmp_path: Path) -> None:
    long = "x" * 2_000
    reader = LakeReader(tmp_path, make_lake(tmp_path, [("t", ("a",), ((long,),))]), 1)
    (hit,) = reader.search(long, "value").values
    assert hit.value == long[:1000]
    assert not reader.search(long[:1000], "value").values
    assert reader.table(0).columns[0].samples == (long[:1000],)


def test_normalised_lakes_are_searched_normalised(tmp_path: Path) -> None:
    options = LakeOptions(normalise=("fold", "trim", "unicode"))
    reader = LakeReader(tmp_path, make_lake(tmp_path, [("t", ("a",), ((" Straße ",),))], options=options), 1)
    assert reader.search("\uff33TRASSE", "value").values[0].value == "strasse"


def test_damage_is_named(tmp_path: Path) -> None:
    state = make_lake(tmp_path, SALES)
    (tmp_path / state.parts[0].tables[0].name).unlink()
    with pytest.raises(DamagedFileError, match="is missing"):
        LakeReader(tmp_path, state, 1).resolve("x")
    path = tmp_path / state.inds[0].name
    path.write_bytes(b"?" * path.stat().st_size)
    with pytest.raises(DamagedFileError, match="has been altered"):
        list(LakeReader(tmp_path, state, 1).inds())


def test_several_threads_may_ask(reader: LakeReader) -> None:
    fresh = LakeReader(reader.catalogue.root, reader.state, 3)
    wrong: list[object] = []

    def ask() -> None:
        for table in (0, 1, 2, 3) * 10:
            try:
                if fresh.table(table) != reader.table(table):
                    wrong.append(table)
            except BaseException as error:  # a thread's failure must fail the test
                wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_reading_needs_neither_spark_nor_kernels_nor_pandas(reader: LakeReader, tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps(reader.state.to_dict()))
    script = f"""
import json, sys
from pathlib import Path
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.state import LakeState
state = LakeState.from_dict(json.loads(Path({str(tmp_path / "state.json")!r}).read_text()))
r = LakeReader(Path({str(reader.catalogue.root)!r}), state, 1)
r.summary(), r.table(0), r.ind(1, 3), r.search("o")
r.joins("sales/orders.csv"), r.overlaps("sales/orders.csv")
list(r.inds()), list(r.ind_names()), list(r.each_ind()), list(r.edges()), list(r.nodes())
print([name for name in ("pyspark", "numba", "pandas") if name in sys.modules])
r.components(), r.component(0)  # places are worked out
print([name for name in ("pyspark", "numba", "pandas") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n['numba']\n"
