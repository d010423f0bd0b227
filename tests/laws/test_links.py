"""What holds of every ranking of links, whatever the facts: also of facts that contradict each other."""

from __future__ import annotations

from dataclasses import replace
from math import exp, isclose

from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.name_similarity import Names
from holdfast.inclusions.links.scored import ColumnFacts, Linkage, rank_links

TABLES = ("customers", "order_lines", "t1", "_")
COLUMNS = ("id", "customer_id", "parent_id", "c1", "qty", "", "Größe", "_2", "x_name")

Keys = dict[str, list[tuple[str, ...]]]
Database = tuple[list[ColumnFacts], Keys, list[Ind]]


@st.composite
def column_facts(draw: st.DrawFn, table: str, column: str, position: int, n_rows: int) -> ColumnFacts:
    n_values = draw(st.integers(0, n_rows))
    n_distinct = draw(st.sampled_from([n_values, draw(st.integers(0, n_values))]))
    domain = draw(st.sampled_from(["number", "text", "date", "bool"]))
    low = draw(st.sampled_from([0.0, 1.0, -2.5, float("inf"), None])) if domain != "text" else None
    high = None if low is None else low + draw(st.sampled_from([0, n_distinct, 1000, float("nan")]))
    integers = domain == "number" and draw(st.booleans())
    length = draw(st.sampled_from([None, 0.0, 3.0, 200.0])) if domain == "text" else None
    counted = n_values if draw(st.booleans()) else None
    return ColumnFacts(
        table, column, position, domain, n_rows, counted, n_distinct, low, high, integers, length
    )


@st.composite
def databases(draw: st.DrawFn) -> Database:
    facts: list[ColumnFacts] = []
    keys: Keys = {}
    for table in draw(st.lists(st.sampled_from(TABLES), min_size=1, max_size=3, unique=True)):
        n_rows = draw(st.sampled_from([1, 5, 300]))
        names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True))
        facts += [draw(column_facts(table, c, i, n_rows)) for i, c in enumerate(names)]
        if draw(st.booleans()):
            some = st.lists(st.sampled_from([*names, "untracked"]), max_size=2, unique=True).map(tuple)
            keys[table] = draw(st.lists(some, max_size=3, unique_by=frozenset))
    sides = [Side(f.table, (f.column,)) for f in facts]
    sides += [
        Side(f.table, (f.column, g.column)) for f in facts for g in facts if f.table == g.table and f != g
    ]
    some_ind = st.builds(
        Ind,
        st.sampled_from(sides),
        st.sampled_from(sides),
        error=st.sampled_from([0.0, 0.01, 0.9]),
        coverage=st.sampled_from([None, 0.001, 1.0, 3.0]),
    )
    drawn = draw(st.lists(some_ind, max_size=25, unique=True))
    inds = [i for i in drawn if i.dependent != i.referenced]
    return facts, keys, [i for i in inds if len(i.dependent.columns) == len(i.referenced.columns)]


@given(databases(), st.randoms(use_true_random=False))
def test_the_order_of_the_arguments_does_not_matter(database: Database, random: st.Random) -> None:
    facts, keys, inds = database
    shuffled = ([*facts], {t: [*ks] for t, ks in reversed(keys.items())}, [*inds])
    for part in (shuffled[0], shuffled[2], *shuffled[1].values()):
        random.shuffle(part)
    assert rank_links(*shuffled) == rank_links(*database)


@given(databases())
def test_links_obey(database: Database) -> None:
    linkage = rank_links(*database)
    scores_add_up(linkage)
    links_refer_to_keys(database, linkage)
    chosen_links_are_compatible(linkage)


def scores_add_up(linkage: Linkage) -> None:
    for link in linkage.links:
        assert isclose(link.score, 1 / (1 + exp(-sum(r.points for r in link.reasons))), abs_tol=1e-9)
        assert all(r.text for r in link.reasons)
        assert link.chosen == (link.score > 0.5)
    scores = [link.score for link in linkage.links]
    assert scores == sorted(scores, reverse=True)


def links_refer_to_keys(database: Database, linkage: Linkage) -> None:
    facts, keys, inds = database
    single = {f.table: [(g.column,) for g in facts if g.table == f.table and g.is_unique] for f in facts}
    known = {t: single[t] if () in keys.get(t, [()]) else keys[t] for t in single}
    assert linkage.primary_keys.keys() == {t for t, ks in known.items() if ks}
    assert all(key in known[t] for t, key in linkage.primary_keys.items())
    proved = [k for k in linkage.links if k.proved]
    assert {(k.dependent, k.referenced) for k in proved} <= {(i.dependent, i.referenced) for i in inds}
    for link in proved:
        assert any(set(k) <= set(link.referenced.columns) for k in known[link.referenced.table])
    # Of a column without a value there is one, to a primary key or the first column of an empty table.
    unproved = [k for k in linkage.links if not k.proved]
    assert len({k.dependent for k in unproved}) == len(unproved)
    of = {Side(f.table, (f.column,)): f for f in facts}
    for link in unproved:
        parent = of[link.referenced]
        assert of[link.dependent].n_distinct == 0
        assert (parent.column,) == linkage.primary_keys.get(parent.table) or (
            parent.n_rows,
            parent.position,
        ) == (0, 0)


def chosen_links_are_compatible(linkage: Linkage) -> None:
    chosen = [link for link in linkage.links if link.chosen]
    children = [(k.dependent.table, frozenset(k.dependent.columns)) for k in chosen]
    assert len(children) == len(set(children)), "two parents"
    parents = {k.dependent: k.referenced for k in chosen if len(k.dependent.columns) == 1}
    for start in parents:
        side, n_steps = parents[start], 0
        while side in parents and n_steps <= len(parents):
            side, n_steps = parents[side], n_steps + 1
        assert n_steps <= len(parents), "a circle"


@given(databases(), st.floats(0.001, 0.5))
def test_an_error_never_helps(database: Database, error: float) -> None:
    facts, keys, inds = database
    for ind in inds[:3]:
        exact = rank_links(facts, keys, [replace(ind, error=0.0)])
        partial = rank_links(facts, keys, [replace(ind, error=error)])
        assert [k.score for k in partial.links] <= [k.score for k in exact.links]


@given(st.text(max_size=12), st.text(max_size=12), st.text(max_size=12), st.text(max_size=12))
def test_any_name_can_be_read(table: str, column: str, parent: str, key: str) -> None:
    columns: dict[str, list[str]] = {}
    columns.setdefault(table, []).append(column)
    columns.setdefault(parent, []).append(key)
    names = Names(columns)
    assert 0 <= names.match(table, column, parent, key).value <= 1
    assert 0 <= names.of_key(parent, key) <= 1


def test_without_columns_nothing_links() -> None:
    unknown = Ind(Side("a", ("x",)), Side("b", ("y",)))
    assert rank_links([], {"b": [("y",)]}, [unknown]) == Linkage((), {"b": ("y",)})
