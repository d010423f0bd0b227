"""The order of reports: by what changes mean, whatever order they come in; and what keys score."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.words.change import DependencyChange
from holdfast.core.words.column_facts import ColumnFacts
from holdfast.core.words.dependency import Fd, Ind, Side, Ucc
from holdfast.core.words.key_score import WORTH, KeyScores
from holdfast.core.words.predicate import Dc, Predicate
from holdfast.core.words.ranks import EVENTS, LONG_HELD, ROLES, Rank, in_order, section

NAMES = st.sampled_from("abcdef")
DEPENDENCIES = st.one_of(
    st.builds(lambda c: Ucc("t", (c,)), NAMES),
    st.builds(lambda a, b: Fd("t", (a,), b), NAMES, NAMES),
    st.builds(lambda a, b: Ind(Side("t", (a,)), Side("u", (b,))), NAMES, NAMES),
    st.builds(lambda a: Dc("t", (Predicate(a, "=", a),)), NAMES),
)
CHANGES = st.lists(
    st.builds(
        DependencyChange,
        st.sampled_from(EVENTS),
        DEPENDENCIES,
        st.just(""),
        held=st.integers(0, 8),
        role=st.sampled_from(ROLES),
        score=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    ),
    max_size=12,
)


def section_of(change: DependencyChange) -> str:
    return section(change.role, change.dependency.kind)


@given(CHANGES)
def test_changes_come_by_event_then_section_then_place(changes: list[DependencyChange]) -> None:
    told = in_order(changes)
    assert sorted(map(repr, told)) == sorted(map(repr, changes))
    assert in_order(told) == told
    assert [EVENTS.index(c.event) for c in told] == sorted(EVENTS.index(c.event) for c in told)
    blocks: list[list[DependencyChange]] = []
    for c in told:
        if not blocks or (blocks[-1][0].event, section_of(blocks[-1][0])) != (c.event, section_of(c)):
            blocks.append([])
        blocks[-1].append(c)
    # A section is told at one go, and by the definition of a place.
    assert len({(b[0].event, section_of(b[0])) for b in blocks}) == len(blocks)
    for block in blocks:
        ahead = [(ROLES.index(c.role), 0 if c.held >= LONG_HELD else 1, -c.score, -c.held) for c in block]
        assert ahead == sorted(ahead)
    # Keys stand above what follows from them.
    for event in EVENTS:
        names = [section_of(b[0]) for b in blocks if b[0].event == event]
        for above, below in (("ucc", "fd"), ("fd", "dc")):
            if above in names and below in names:
                assert names.index(above) < names.index(below)
        # The first thing of an event that is told is the best of it, or a key above it.
        if names:
            of_event = [c for c in told if c.event == event]
            best = min(Rank(c.role, c.score).place(c.held) for c in of_event)
            first = [c for c in of_event if section_of(c) == names[0]]
            assert (
                names[0] in ("ucc", "fd") or Rank(first[0].role, first[0].score).place(first[0].held) == best
            )


@given(CHANGES, st.randoms())
def test_the_order_of_what_comes_in_does_not_matter(changes: list[DependencyChange], random: Random) -> None:
    places = [(c.event, section_of(c), c.role, c.score, c.held) for c in in_order(changes)]
    random.shuffle(changes)
    again = [(c.event, section_of(c), c.role, c.score, c.held) for c in in_order(changes)]
    assert places == again  # but for what is told first of changes in one place


def integers(name: str, position: int, n_rows: int, n_distinct: int, domain: str = "number") -> ColumnFacts:
    return ColumnFacts("orders", name, position, domain, n_rows, None, n_distinct, None, None, True, None)


def test_scores_of_keys() -> None:
    n = 5_000
    scores = KeyScores(
        [
            integers("order_id", 0, n, n),
            integers("customer_id", 1, n, 400),
            integers("line", 2, n, 20),
            integers("day", 3, n, 300, "date"),
            integers("remark", 4, n, n, "text"),
            ColumnFacts("orders", "price", 5, "number", n, None, n, None, None, False, None),
        ]
    )
    ranked = [
        ("order_id",),
        ("customer_id", "line"),
        ("remark",),
        ("price",),
        ("customer_id", "day", "price"),
    ]
    assert [*sorted(ranked, key=scores, reverse=True)] == ranked
    assert scores(("order_id",)) > WORTH > scores(("price",))
    assert scores.primary(ranked) == ("order_id",)
    assert scores.primary([("price",)]) is None
    assert scores.primary([()]) is None


@given(st.integers(1, 300), st.integers(1, 300))
def test_more_rows_are_less_by_chance(n_rows: int, more: int) -> None:
    few, many = (KeyScores([integers("name", 0, n, n, "text")])(("name",)) for n in (n_rows, n_rows + more))
    assert few <= many


@given(st.integers(1, 300), st.floats(0, 1), st.floats(0, 1))
def test_what_a_key_has_outlived_speaks_for_it(n_rows: int, less: float, more: float) -> None:
    less, more = sorted((less, more))
    facts = [integers("name", 0, n_rows, n_rows, "text")]
    new, *scores = (
        KeyScores(facts, stability)(("name",)) for stability in (None, {("name",): less}, {("name",): more})
    )
    assert new <= scores[0] <= scores[1] < new + 0.25  # mildly
    assert KeyScores(facts, {})(("name",)) == KeyScores(facts, {("name",): 0.0})(("name",)) == new


@pytest.mark.parametrize("n", [200, 2_000])
def test_wide_tables_have_more_combinations_than_a_float(n: int) -> None:
    columns = [integers(f"c{i}", i, 10**6, 10**6) for i in range(n)]
    assert 0 <= KeyScores(columns)(tuple(f.column for f in columns)) < WORTH


KEYS = st.lists(st.lists(st.sampled_from("abcdef"), max_size=4, unique=True).map(tuple), unique=True)


@given(KEYS, st.data(), st.integers(1, 5_000))
def test_keys_are_weighed_together_as_one_by_one(
    keys: list[tuple[str, ...]], data: st.DataObject, n_rows: int
) -> None:
    """And whatever they have outlived, the primary key is one of those that may be it."""
    facts = [integers(c, i, n_rows, data.draw(st.integers(0, n_rows))) for i, c in enumerate("abcdef")]
    outlived = {key: data.draw(st.floats(0, 1)) for key in keys}
    scores = KeyScores(facts, outlived)
    assert scores.scores(keys).tolist() == [scores(key) for key in keys]
    assert scores.primary(keys) == scores.primary(scores.contenders(keys))
    assert scores.primary(keys) == max(
        (key for key in keys if key and scores(key) >= WORTH),
        key=lambda key: (scores(key), -len(key)),
        default=None,
    )
