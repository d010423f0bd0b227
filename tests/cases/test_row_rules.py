"""Row rules: by definition on tables of all types, kept through batches, listed with their exceptions."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice, permutations, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from holdfast.core.cover.news import News
from holdfast.core.engine.engine import Engine
from holdfast.core.rows import codes, some_rows
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import encode_rows, open_segment, write_segment
from holdfast.core.store.arrow_types import arrow_schema, type_of
from holdfast.core.store.format import create_marker, text_key
from holdfast.core.words.change import DependencyChange
from holdfast.core.words.predicate import OPERATORS, Dc, Operator
from holdfast.core.words.row_rule import RowRule, are_times, comparison, is_row_rule, parse_row_rule
from holdfast.core.words.rule_text import located
from holdfast.core.words.schema import Column, Schema, Type
from holdfast.denial import row_counting as jobs
from holdfast.denial import row_rules, shuffling
from holdfast.denial.row_counts import RowCounts
from holdfast.denial.row_rule_list import (
    RowRuleState,
    comparable_pairs,
    load,
    measured,
    ordered_pairs,
    rules_of,
    save,
)
from holdfast.errors import DamagedFileError, HoldfastError, UnknownColumnError, UsageError
from reference import row_outcomes as reference
from reference.predicates import satisfied

Row = tuple[Any, ...]

# A few values of each type, many of them equal to, or next to, those of other types.
DAYS = [dt.date(2026, 1, d) for d in (1, 2, 3)]
CLOCKS = [dt.datetime(2026, 1, 1, 12, 0, 0, us) for us in (0, 1000, 1001)]
POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [0, 1, 2, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    "uint": (pa.uint64(), [0, 1, 2, 2**53 + 1, 2**63, 2**64 - 1]),
    "float": (
        pa.float64(),
        [0.0, -0.0, 1.0, 2.0, 0.5, 0.1, -1.0, 2.0**53, 2.0**63, 2.0**64, math.inf, -math.inf, math.nan],
    ),
    "decimal(12,2)": (pa.decimal128(12, 2), [Decimal(n).scaleb(-2) for n in (0, 100, 200, 50, 10, -100, 99)]),
    "decimal(15,2)": (pa.decimal128(15, 2), [Decimal(n).scaleb(-2) for n in (0, 100, 200, 10**14)]),
    "decimal(18,0)": (pa.decimal128(18, 0), [Decimal(n) for n in (0, 1, 2, 10**18 - 1, -(10**18) + 1)]),
    "decimal(18,18)": (pa.decimal128(18, 18), [Decimal(n).scaleb(-18) for n in (0, 1, 5 * 10**17, 10**17)]),
    "decimal(30,5)": (pa.decimal128(30, 5), [Decimal(n).scaleb(-5) for n in (0, 1, 10**20)]),
    "date": (pa.date32(), DAYS),
    "timestamp[us]": (pa.timestamp("us"), CLOCKS),
    "timestamp[ms]": (pa.timestamp("ms"), CLOCKS[:2]),
    "timestamp[ms,utc]": (pa.timestamp("ms", tz="UTC"), [c.replace(tzinfo=dt.UTC) for c in CLOCKS[:2]]),
    "time[us]": (pa.time64("us"), [c.time() for c in CLOCKS]),
    "time[s]": (pa.time32("s"), [CLOCKS[0].time(), dt.time(12, 0, 1)]),
    "bool": (pa.bool_(), [False, True]),
    "text": (pa.string(), ["", "a", "b", "A", "é", "aa"]),
    "binary": (pa.binary(), [b"", b"a", b"b"]),
}
NUMBERS = ("int", "uint", "float", "decimal(12,2)", "decimal(15,2)", "decimal(18,0)", "decimal(18,18)")
# What compares, and has an order; the rest compares with its own type only, and has none.
DOMAINS = [
    set(NUMBERS),
    {"date"},
    {"timestamp[us]", "timestamp[ms]"},
    {"timestamp[ms,utc]"},
    {"time[us]", "time[s]"},
]


def expected_comparison(left: str, right: str) -> str | None:
    if any(left in domain and right in domain for domain in DOMAINS):
        return "order"
    return "equality" if left == right else None


class Table:
    """A schema with rows in segments: what a workspace would hold."""

    def __init__(self, root: Path, types: Sequence[str], engine: Engine) -> None:
        self.fields = pa.schema([pa.field(f"c{i}", POOLS[t][0]) for i, t in enumerate(types)])
        columns = (Column(f.name, type_of(f.type, table="t", column=f.name)) for f in self.fields)
        self.types, self.schema = list(types), Schema(tuple(columns))
        self.number = 0
        create_marker(root)
        locator = tuple(range(len(types)))
        self.empty = Relation(root, "tables/t", "staging", self.schema, "equal", locator, (), engine)

    def added(self, relation: Relation, rows: Sequence[Row]) -> tuple[Relation, list[Any]]:
        """(relation, its new segments)."""
        arrays = [pa.array([r[c] for r in rows], f.type) for c, f in enumerate(self.fields)]
        table = pa.table(arrays, schema=self.fields).cast(arrow_schema(self.schema))
        refs = []
        for columns in encode_rows(table, self.schema, text_key(relation.root)) if rows else []:
            refs.append(write_segment(relation.root, relation.folder, self.number, columns, relation.locator))
            self.number += 1
        return relation.with_segments(refs), refs

    def of(self, *parts: Sequence[Row]) -> Relation:
        relation = self.empty
        for part in parts:
            relation, _ = self.added(relation, part)
        return relation


def live_rows(relation: Relation) -> dict[int, Row]:
    found: dict[int, Row] = {}
    for ref in relation.segments:
        segment = open_segment(relation.root, ref, relation.schema)
        at = np.flatnonzero(segment.live)
        rows = [tuple(r.values()) for r in segment.rows(at).to_pylist()]
        found |= dict(zip(segment.row_ids(at).tolist(), rows, strict=True))
    return found


def is_apart(rows: Sequence[Row], a: int, b: int) -> bool:
    """All values of one column less than all of the other."""
    left, right = ([r[c] for r in rows if r[c] is not None] for c in (a, b))
    outcomes = {reference.outcome(x, y) for x in left for y in right}
    return len(outcomes) == 1 and outcomes != {reference.EQUAL}


def check(
    table: Table, relation: Relation, state: RowRuleState, errors: Sequence[float] = (0.0, 0.3)
) -> None:
    """Counts, rules and exceptions, all by definition."""
    by_id = live_rows(relation)
    rows = list(by_id.values())
    names = table.schema.names
    asked = [
        (a, b, expected_comparison(table.types[a], table.types[b]) == "order")
        for a in range(len(names))
        for b in range(a + 1, len(names))
        if expected_comparison(table.types[a], table.types[b])
    ]
    assert state.pairs.tolist() == [[a, b] for a, b, _ in asked]
    assert state.counts.counts.tolist() == [reference.counts(rows, a, b, o) for a, b, o in asked]
    for error in errors:
        expected = {}
        for a, b, ordered in asked:
            count = reference.counts(rows, a, b, ordered)
            if (told := reference.rule(count, ordered, error)) is not None:
                op, n = told
                apart = ordered and is_apart(rows, a, b)
                expected[names[a], op, names[b]] = (n / len(rows), n, sum(count[:3]), apart)
        found = rules_of(state, "t", table.schema, error)
        assert {
            (r.left, r.op, r.right): (r.error, r.n_exceptions, r.n_compared, r.apart) for r in found
        } == expected
        assert found == sorted(
            found,
            key=lambda r: (r.apart, r.op == "!=", r.error, names.index(r.left), names.index(r.right)),
        )
        for rule in found:
            ids = jobs.exceptions(relation, rule).tolist()
            a, b = (names.index(c) for c in rule.columns)
            ordered = expected_comparison(table.types[a], table.types[b]) == "order"
            assert ids == sorted(
                i for i, r in by_id.items() if reference.violates(r[a], rule.op, r[b], ordered)
            )
            assert len(ids) == rule.n_exceptions
            assert jobs.exceptions(relation, rule.mirrored, 1).tolist() == ids[:1]
            assert measured(state, table.schema, replace(rule, error=9.0).mirrored) == rule.mirrored


@contextlib.contextmanager
def short_hashes(mask: int) -> Iterator[None]:
    """Texts share their codes."""
    honest = codes.hash_texts
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & mask)
        yield


@contextlib.contextmanager
def workspace(types: Sequence[str]) -> Iterator[Table]:
    engine = Engine(mode="inline")
    with tempfile.TemporaryDirectory() as folder:
        yield Table(Path(folder), types, engine)
    engine.close()


SLOW = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
# Mostly columns that compare.
TYPES = st.one_of(
    st.lists(st.sampled_from(NUMBERS), min_size=2, max_size=4),
    st.lists(st.sampled_from(["text", "binary", "bool", "decimal(30,5)"]), min_size=2, max_size=4),
    st.lists(
        st.sampled_from(["date", "timestamp[us]", "timestamp[ms]", "time[us]", "time[s]"]),
        min_size=2,
        max_size=4,
    ),
    st.lists(st.sampled_from(list(POOLS)), max_size=5),
)


def rows_of(
    types: Sequence[str], pools: Sequence[Sequence[Any]], max_size: int
) -> st.SearchStrategy[list[Row]]:
    return st.lists(st.tuples(*(st.sampled_from(pool) for pool in pools)), max_size=max_size)


@given(TYPES, st.data(), st.booleans())
@SLOW
def test_batches_are_as_from_scratch(types: list[str], data: st.DataObject, collide: bool) -> None:
    """Inserts and deletes, several segments, NULLs, ties; texts that share a code."""
    pools = []
    for t in types:
        pool = data.draw(st.lists(st.sampled_from(POOLS[t][1]), min_size=1, max_size=4))
        pools.append([*pool, None] if data.draw(st.booleans()) else pool)
    max_error = data.draw(st.sampled_from([0.0, 0.2]))
    with contextlib.ExitStack() as stack:
        if collide:
            stack.enter_context(short_hashes(3))
        table = stack.enter_context(workspace(types))
        relation = table.of(*(data.draw(rows_of(types, pools, 6)) for _ in range(2)))
        state = row_rules.discover(relation, max_error)
        check(table, relation, state)
        for _ in range(3):
            ids = sorted(live_rows(relation))
            dead = data.draw(st.sets(st.sampled_from(ids), max_size=4)) if ids else set()
            row_ids = np.array(sorted(dead), dtype=np.int64)
            remaining = relation.without_rows(row_ids) if dead else relation
            after, added = table.added(remaining, data.draw(rows_of(types, pools, 4)))
            changed = row_rules.change(state, relation, after, row_ids, added)
            check(table, after, changed)
            news = row_rules.row_news("t", state, changed, relation, after)
            check_news(table, state, changed, news, relation, after)
            event(f"{min(len(news.changes), 3)} changes")
            relation, state = after, changed
        scratch = row_rules.discover(relation, max_error)
        assert scratch.counts.counts.tolist() == state.counts.counts.tolist()
        assert scratch.apart.tolist() == state.apart.tolist()


@given(TYPES, st.data())
@SLOW
def test_shuffled_columns(types: list[str], data: st.DataObject) -> None:
    """Values of each two different rows, of the largest segment."""
    with workspace(types) as table:
        pools = [[*POOLS[t][1], None] for t in types]
        parts = [data.draw(rows_of(types, pools, 9)) for _ in range(2)]
        relation = table.of(*parts)
        pairs = comparable_pairs(table.schema)
        largest = max(parts, key=len) if any(parts) else []
        # A row made of one row's left and another row's right value.
        crossed = {
            (a, b): [
                {a: t[a], b: s[b]} for i, t in enumerate(largest) for j, s in enumerate(largest) if i != j
            ]
            for a, b in pairs.tolist()
        }
        expected = [
            reference.counts(crossed[a, b], a, b, expected_comparison(types[a], types[b]) == "order")
            for a, b in pairs.tolist()
        ]
        assert shuffling.count_shuffled(relation, pairs).tolist() == expected


def test_a_sample_of_shuffled_columns() -> None:
    with workspace(["int", "int"]) as table, pytest.MonkeyPatch.context() as patch:
        patch.setattr(shuffling, "SHUFFLED", 50)
        relation = table.of([(i, i + 10) for i in range(1000)])
        [counts] = shuffling.count_shuffled(relation, comparable_pairs(table.schema))
        assert 50 * 30 <= counts.sum() <= 50 * 32
        assert counts[0] / counts.sum() == pytest.approx(0.5, abs=0.1)


@given(st.lists(st.tuples(*[st.sampled_from([None, 0, 1, 2])] * 2), min_size=2, max_size=5))
@settings(max_examples=10)
def test_shuffled_pairs_of_rows(rows: list[Row]) -> None:
    """All values of two different rows in each column, whatever the others have."""
    texts = ["t.c0 < s.c0 and t.c1 >= s.c0", "t.c0 = s.c0 and t.c1 != s.c1", "t.c0 != s.c1 and t.c1 > s.c0"]
    dcs = [Dc("t", tuple(p for p, _ in located(f"not({text})", ["c0", "c1"]))) for text in texts]
    with workspace(["int", "int"]) as table:
        found = shuffling.shuffled_shares(table.of(rows), dcs)
    columns = [list(permutations(values, 2)) for values in zip(*rows, strict=True)]
    drawn = [{"c0": a, "c1": b} for a, b in product(*columns)]
    for dc, share in zip(dcs, found.tolist(), strict=True):
        violated = [all(satisfied(d[p.left][0], p.op, d[p.right][1]) for p in dc.predicates) for d in drawn]
        assert share == pytest.approx(sum(violated) / len(violated), abs=0.01)


def rule_of(change: DependencyChange) -> RowRule:
    rule = change.dependency
    assert isinstance(rule, RowRule)
    return rule


def check_news(
    table: Table,
    before: RowRuleState,
    after: RowRuleState,
    news: News,
    old: Relation,
    new: Relation,
) -> None:
    """What left and entered the lists, each told once; witnesses are rows of the batch that violate."""
    assert news.unlisted == 0
    was, now = (set(rules_of(s, "t", table.schema)) for s in (before, after))
    events = ("broke", "appeared", "implied", "within", "beyond")
    told = {e: [rule_of(c) for c in news.changes if c.event == e] for e in events}
    assert sorted(told["broke"] + told["implied"]) == sorted(was - now)
    assert sorted(told["appeared"]) == sorted(now - was)
    old_rows, new_rows = live_rows(old), live_rows(new)
    for change in news.changes:
        rule = rule_of(change)
        a, b = (table.schema.names.index(c) for c in rule.columns)
        ordered = comparison(table.schema.types[a], table.schema.types[b]) == "order"
        rows = old_rows if change.event == "appeared" else new_rows
        others = new_rows if change.event == "appeared" else old_rows
        assert len(change.witnesses) <= 1
        brought = (
            row_id
            for row_id in sorted(rows.keys() - others.keys())
            if reference.violates(rows[row_id][a], rule.op, rows[row_id][b], ordered)
        )
        shown = () if change.reason.startswith(("still", "is ")) else tuple(islice(brought, 3))
        assert [row.row_id for group in change.witnesses for row in group] == list(shown)
        for group in change.witnesses:
            for row in group:
                values = rows[row.row_id]
                assert row.row_id not in others, "the batch brought it, or took it"
                assert reference.violates(values[a], rule.op, values[b], ordered)
                assert list(row.values) == list(table.schema.names)
        if change.event == "broke":
            assert rule.n_exceptions > 0
            assert change.witnesses
        if change.event in ("appeared", "implied"):
            assert rule.n_exceptions == 0
        assert change.reason.rstrip(":, ") == change.reason != ""
    limit = after.max_error
    near_was, near_now = (set(rules_of(s, "t", table.schema, limit)) for s in (before, after))
    assert sorted(told["within"]) == sorted(near_now - near_was - now if limit else [])
    assert sorted(told["beyond"]) == sorted(near_was - near_now - was if limit else [])


# -- what a person would try ---------------------------------------------------------------------


def shop(*rows: Row) -> tuple[list[str], list[Row]]:
    return ["int", "date", "date", "decimal(12,2)", "decimal(15,2)"], list(rows)


D = DAYS
ORDERS = [
    (1, D[0], D[1], Decimal("1.00"), Decimal("1.00")),
    (2, D[1], D[1], Decimal("0.50"), Decimal("1.00")),
    (3, D[0], None, Decimal("0.99"), Decimal("2.00")),
    (4, D[0], D[2], None, Decimal("2.00")),
]


def test_orders() -> None:
    types, rows = shop(*ORDERS)
    with workspace(types) as table:
        relation = table.of(rows[:2], rows[2:])
        state = row_rules.discover(relation, 0.25)
        check(table, relation, state)
        found = {str(r) for r in rules_of(state, "t", table.schema)}
        assert {"t: c1 <= c2", "t: c3 <= c4"} <= found
        [dates] = [r for r in rules_of(state, "t", table.schema) if r.left == "c1"]
        assert (dates.n_compared, dates.error, dates.apart) == (3, 0.0, False)
        near = {r.formula: r.n_exceptions for r in rules_of(state, "t", table.schema, 0.25)}
        assert near["c1 < c2"] == 1
        assert near["c3 < c4"] == 1
        assert are_times(table.schema, dates)
        assert dates.said(times=True) == "c1 is not after c2"
        late = [(5, D[2], D[0], Decimal("1.00"), Decimal("2.00"))] * 4
        after, added = table.added(relation, late)
        none = np.empty(0, np.int64)
        changed = row_rules.change(state, relation, after, none, added)
        check(table, after, changed)
        news = row_rules.row_news("t", state, changed, relation, after)
        [broke] = [c for c in news.changes if c.event == "broke" and rule_of(c) == dates]
        assert broke.reason == ("does not hold any more: 4 rows of 7 violate it (error 0.5, beyond 0.25)")
        assert [r.values["c0"] for r in broke.witnesses[0]] == [5, 5, 5]
        [beyond] = [c for c in news.changes if c.event == "beyond" and rule_of(c).columns == ("c1", "c2")]
        assert beyond.reason == "error 0.625, beyond 0.25"
        # And gone again.
        ids = np.array(sorted(set(live_rows(after)) - set(live_rows(relation))), np.int64)
        left = after.without_rows(ids)
        back = row_rules.change(changed, after, left, ids, [])
        check(table, left, back)
        news = row_rules.row_news("t", changed, back, after, left)
        [appeared] = [c for c in news.changes if c.event == "appeared" and rule_of(c) == dates]
        assert appeared.reason == "holds now; rows that violated it are gone"
        assert len(appeared.witnesses[0]) == 3


def test_texts_that_share_a_code() -> None:
    """All have the same: what decides are the texts."""
    with short_hashes(0), workspace(["text", "text", "binary", "binary"]) as table:
        rows = [
            ("a", "b", b"x", b"x"),
            ("a", "a", b"x", b""),
            ("c", None, None, b"x"),
            ("a", "b", b"x", b"x"),
        ]
        relation = table.of(rows[:3], rows[3:])
        state = row_rules.discover(relation, 0.0)
        assert state.counts.counts.tolist() == [[2, 1, 0, 1], [1, 2, 0, 1]]
        check(table, relation, state, errors=[0.0, 0.5])
        ids = np.array(sorted(live_rows(relation)), np.int64)[:1]
        left = relation.without_rows(ids)
        check(table, left, row_rules.change(state, relation, left, ids, []), errors=[0.0, 0.5])


def test_a_rule_becomes_looser_and_tighter() -> None:
    with workspace(["int", "int"]) as table:
        relation = table.of([(1, 2), (1, 3)])
        state = row_rules.discover(relation, 0.0)
        after, added = table.added(relation, [(2, 2)])
        none = np.empty(0, np.int64)
        changed = row_rules.change(state, relation, after, none, added)
        news = row_rules.row_news("t", state, changed, relation, after)
        assert [(c.event, rule_of(c).formula, c.reason) for c in news.changes] == [
            ("broke", "c0 < c1", "does not hold any more: 1 row of 3 violates it (error 0.3333)"),
            ("appeared", "c0 <= c1", "is the tightest now that c0 < c1 broke"),
        ]
        ids = np.array([max(live_rows(after))], np.int64)
        left = after.without_rows(ids)
        back = row_rules.change(changed, after, left, ids, [])
        news = row_rules.row_news("t", changed, back, after, left)
        assert [(c.event, rule_of(c).formula, c.reason) for c in news.changes] == [
            ("appeared", "c0 < c1", "holds now; rows that violated it are gone"),
            ("implied", "c0 <= c1", "still holds, but c0 < c1 does now"),
        ]


def test_no_row_has_both_values() -> None:
    with workspace(["int", "int"]) as table:
        relation = table.of([(1, None), (None, 1), (None, None)])
        state = row_rules.discover(relation, 1.0)
        assert state.counts.counts.tolist() == [[0, 0, 0, 3]]
        assert rules_of(state, "t", table.schema, 1.0) == []
        after, added = table.added(relation, [(1, 1)])
        none = np.empty(0, np.int64)
        changed = row_rules.change(state, relation, after, none, added)
        news = row_rules.row_news("t", state, changed, relation, after)
        assert [(c.event, rule_of(c).formula, c.reason) for c in news.changes] == [
            ("appeared", "c0 = c1", "holds in the first rows that have both values")
        ]
        ids = np.array([max(live_rows(after))], np.int64)
        left = after.without_rows(ids)
        back = row_rules.change(changed, after, left, ids, [])
        news = row_rules.row_news("t", changed, back, after, left)
        assert [(c.event, c.reason) for c in news.changes] == [
            ("implied", "is violated by no row, but no row has both values any more")
        ]


def test_apart_is_last_and_follows_deletes() -> None:
    """(1, 2), (5, 6): the ranges overlap; without the second row they do not."""
    with workspace(["int", "float", "int"]) as table:
        relation = table.of([(1, 2.5, 1), (5, 6.5, 3)])
        state = row_rules.discover(relation, 0.0)
        assert [(r.formula, r.apart) for r in rules_of(state, "t", table.schema)] == [
            ("c0 < c1", False),
            ("c0 >= c2", False),
            ("c1 > c2", False),
        ]
        ids = np.array([max(live_rows(relation))], np.int64)
        left = relation.without_rows(ids)
        changed = row_rules.change(state, relation, left, ids, [])
        check(table, left, changed)
        assert [(r.formula, r.apart) for r in rules_of(changed, "t", table.schema)] == [
            ("c0 = c2", False),
            ("c0 < c1", True),
            ("c1 > c2", True),
        ]


def test_nothing_to_do_keeps_the_state() -> None:
    with workspace(["int", "int"]) as table:
        relation = table.of([(1, 2)])
        state = row_rules.discover(relation, 0.0)
        none = np.empty(0, np.int64)
        assert row_rules.change(state, relation, relation, none, []) is state
        assert row_rules.row_news("t", state, state, relation, relation) == News()


@pytest.mark.parametrize("types", [[], ["int"], ["int", "text"]])
def test_tables_without_pairs(types: list[str]) -> None:
    with workspace(types) as table:
        rows = [tuple(POOLS[t][1][0] for t in types)] * 2
        relation = table.of(rows) if types else table.of()
        state = row_rules.discover(relation, 0.1)
        assert rules_of(state, "t", table.schema, 0.1) == []
        assert len(state.counts) == 0


def test_some_columns_only() -> None:
    with workspace(["int", "int", "int"]) as table:
        relation = table.of([(1, 2, 3)])
        state = row_rules.discover(relation, 0.0, ["c0", "c2"])
        assert [str(r) for r in rules_of(state, "t", table.schema)] == ["t: c0 < c2"]
        assert measured(state, table.schema, RowRule("t", "c0", "<", "c1")) is None


def test_many_rules_are_counted_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_rules, "MAX_LISTED", 2)
    monkeypatch.setattr(row_rules, "WIDE", 2)
    with workspace(["int"] * 4) as table:
        relation = table.of([(1, 2, 3, 4)])
        state = row_rules.discover(relation, 0.0)
        after, added = table.added(relation, [(4, 3, 2, 1)])
        none = np.empty(0, np.int64)
        changed = row_rules.change(state, relation, after, none, added)
        news = row_rules.row_news("t", state, changed, relation, after)
        assert [c.event for c in news.changes] == ["broke", "broke", "appeared", "appeared"]
        assert news.unlisted == 8
        assert [list(c.witnesses[0][0].values) for c in news.changes[:2]] == [
            ["c0", "c1"],
            ["c0", "c2", "c1"],
        ]


def test_on_disk() -> None:
    with workspace(["int", "float", "text", "text"]) as table:
        relation = table.of([(1, 2.0, "a", None), (3, 2.0, "a", "a")])
        state = row_rules.discover(relation, 0.125)
        root = relation.root
        ref = save(root, "tables/t", state, None, None)
        again = load(root, ref)
        assert again.pairs.tolist() == state.pairs.tolist()
        assert again.counts.counts.tolist() == state.counts.counts.tolist()
        assert again.apart.tolist() == state.apart.tolist()
        assert again.max_error == 0.125
        assert save(root, "tables/t", again, again, ref) is ref
        assert save(root, "tables/t", state, again, ref) != ref
        after, added = table.added(relation, [(9, 9.0, "b", "c")])
        check(table, after, row_rules.change(again, relation, after, np.empty(0, np.int64), added))
    with workspace([]) as table:
        root = table.empty.root
        empty = load(root, save(root, "tables/t", row_rules.discover(table.empty, 0.0), None, None))
        assert empty.pairs.shape == (0, 2)
        assert len(empty.counts) == 0


def test_counts_that_are_not_those_of_the_rows() -> None:
    with workspace(["int", "int"]) as table:
        relation = table.of([(1, 2), (2, 1)])
        state = row_rules.discover(relation, 0.0)
        wrong = replace(state, counts=RowCounts(np.array([[2, 0, 0, 0]])))
        ids = np.array(sorted(live_rows(relation)), np.int64)
        with pytest.raises(DamagedFileError, match="are not those of its rows"):
            row_rules.change(wrong, relation, relation.without_rows(ids), ids, [])
        after, added = table.added(relation, [(1, 1)])
        wrong = replace(state, counts=RowCounts(np.array([[3, 0, 0, 0]])))
        with pytest.raises(DamagedFileError, match="4 rows are counted, and there are 3"):
            row_rules.change(wrong, relation, after, np.empty(0, np.int64), added)


def test_parts_of_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task has a few rows only; a merged segment, whose row ids are listed."""
    monkeypatch.setattr(some_rows, "PART_ROWS", 2)
    monkeypatch.setattr(jobs, "LOOKED_AT", 2)
    with workspace(["int", "float", "text", "text"]) as table:
        texts = ["a", "b", None]
        rows = [(i % 3, float(i % 4), texts[i % 3], texts[i % 2]) for i in range(11)]
        relation = table.of(rows[:4], rows[4:])
        check(table, relation, row_rules.discover(relation, 0.0))
        ids = np.array(sorted(live_rows(relation)), np.int64)[[0, 3, 5, 9, 10]]
        left = relation.without_rows(ids)
        state = row_rules.change(row_rules.discover(relation, 0.0), relation, left, ids, [])
        check(table, left, state)
        merged, _ = left.tidied(table.number, (), everything=True)
        assert len(merged.segments) == 1
        check(table, merged, state)
        check(table, merged, row_rules.discover(merged, 0.0))


def test_on_spark(engine_spark: Engine, tmp_path: Path) -> None:
    table = Table(tmp_path, ["int", "float", "text", "text"], engine_spark)
    relation = table.of([(1, 1.0, "a", "a"), (2, None, "b", "a")], [(3, 2.0, None, "b")])
    jobs_before = engine_spark.jobs
    state = row_rules.discover(relation, 0.0)
    assert engine_spark.jobs == jobs_before + 1
    check(table, relation, state, errors=[0.0])
    ids = np.array(sorted(live_rows(relation)), np.int64)[[0, 2]]
    after, added = table.added(relation.without_rows(ids), [(5, 4.5, "x", "x"), (5, 5.5, "x", "y")])
    jobs_before = engine_spark.jobs
    changed = row_rules.change(state, relation, after, ids, added)
    news = row_rules.row_news("t", state, changed, relation, after)
    assert engine_spark.jobs == jobs_before + 1, "rows to show are picked by the tasks that count"
    assert any(change.witnesses for change in news.changes)
    check_news(table, state, changed, news, relation, after)
    check(table, after, changed, errors=[0.0])


def test_duckdb_agrees() -> None:
    """An independent judge, on types that it compares by value."""
    types = ["int", "uint", "decimal(12,2)", "date", "date", "timestamp[us]", "timestamp[ms]", "text", "text"]
    rng = np.random.default_rng(7)
    rows = [
        tuple([*POOLS[t][1], None][rng.integers(len(POOLS[t][1]) + 1)] for t in types) for _ in range(300)
    ]
    with workspace(types) as table:
        relation = table.of(rows[:200], rows[200:])
        state = row_rules.discover(relation, 0.0)
        arrays = [pa.array([r[c] for r in rows], f.type) for c, f in enumerate(table.fields)]
        judge = duckdb.connect()
        judge.register("data", pa.table(arrays, schema=table.fields))
        ordered = ordered_pairs(state.pairs, table.schema)
        for (a, b), counts, has_order in zip(state.pairs, state.counts.counts.tolist(), ordered, strict=True):
            less = "<" if has_order else "<>"
            asked = [f"c{a} {less} c{b}", f"c{a} = c{b}", f"c{a} > c{b} and {has_order}"]
            asked.append(f"c{a} is null or c{b} is null")
            query = ", ".join(f"count(*) filter ({q})" for q in asked)
            assert list(judge.execute(f"select {query} from data").fetchone() or ()) == counts


# -- which columns compare -----------------------------------------------------------------------


def test_comparison() -> None:
    for left in POOLS:
        for right in POOLS:
            assert comparison(Type.parse(left), Type.parse(right)) == expected_comparison(left, right)
    ns, far = Type("timestamp", unit="ns"), Type("decimal", 5, 30)
    assert comparison(ns, Type("timestamp", unit="s")) == "order"
    assert comparison(ns, Type("timestamp", unit="s", utc=True)) is None
    # Arrow lets the point stand anywhere; such numbers compare with their own type.
    assert comparison(far, far) == "order"
    assert comparison(far, Type("int")) is None
    assert comparison(Type("decimal", 5, -2), Type("float")) is None


def test_pairs_are_in_the_order_of_the_schema() -> None:
    types = {"a": "int", "b": "text", "c": "float", "d": "text"}
    schema = Schema(tuple(Column(name, Type.parse(t)) for name, t in types.items()))
    assert comparable_pairs(schema).tolist() == [[0, 2], [1, 3]]
    assert comparable_pairs(schema, ["d", "b", "a"]).tolist() == [[1, 3]]
    assert comparable_pairs(Schema(())).shape == (0, 2)


# -- rules as people write them ------------------------------------------------------------------

NAMES = ["low", "high", "zip code", 'q"', "not", "t.low", "a.b", "2nd", "and"]
WRITTEN = Schema(
    (*(Column(n, Type("int")) for n in NAMES), Column("name", Type("text")), Column("city", Type("text")))
)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("low <= high", ("low", "<=", "high")),
        ("  low\n≥\thigh ", ("low", ">=", "high")),
        ("low<>high", ("low", "!=", "high")),
        ("low==high", ("low", "=", "high")),
        ('"zip code" > low', ("zip code", ">", "low")),
        ('low < "q"""', ("low", "<", 'q"')),
        ("not = low", ("not", "=", "low")),
        ("t.low < a.b", ("t.low", "<", "a.b")),
        ("2nd ≠ and", ("2nd", "!=", "and")),
        ("name != city", ("name", "!=", "city")),
    ],
)
def test_written_rules(text: str, rule: tuple[str, Operator, str]) -> None:
    assert is_row_rule(text)
    assert parse_row_rule(text, WRITTEN, table="t") == RowRule("t", *rule)


# The caret stands below the character that is at fault; the words are part of the message.
MISTAKES = [
    ("", "^", "expected the name of a column, such as in ship_date >= order_date; found the end"),
    ("low", "   ^", "expected an operator (= != < <= > >=); found the end"),
    ("low <=", "      ^", "expected the name of a column, such as in ship_date >= order_date; found the end"),
    ("low high", "    ^", "expected an operator (= != < <= > >=); found 'high'"),
    ("low =< high", "    ^", "'=<' is no operator; there are = != < <= > >=; '<=' may be meant"),
    ("low < low", "      ^", "both sides are low; a row rule compares two different columns"),
    ("low < 5", "      ^", "constants are not supported: a row rule compares two columns"),
    ("-1.5 < low", "^", "constants are not supported"),
    ("low = NULL", "      ^", "constants are not supported"),
    ("low = 'x'", "      ^", "constants are not supported, and names are put in double quotes"),
    ('low < "high', "      ^", "a quote that is not closed"),
    ("low < high and low < 2nd", "           ^", "write a rule for each comparison; found 'and'"),
    ("low < high 5", "           ^", "the rule ends with its second column; found '5'"),
    ("low + high < 2nd", "    ^", "calculations are not supported"),
    ("s.low < high", "^", "a row rule is about one row: write low"),
    ("not(t.low > s.high)", "^", "a row rule compares two columns of one row, such as"),
    ("  ¬(t.low > s.high)", "  ^", "it has no 'not'"),
    ("low <= name", "    ^", "low is int and name is text, which do not compare"),
    ("name < city", "     ^", "name and city are text, which has no order here: compare them with = or !="),
    ("zip code < low", "^", 'Names that need double quotes: "zip code". It is at character 1 of the rule.'),
    ("low < hihg", "      ^", "Did you mean 'high'? It is at character 7 of the rule."),
    ("low\n<\nhihg", "^", "It is at line 3, character 1 of the rule."),
]


@pytest.mark.parametrize(("text", "caret", "words"), MISTAKES)
def test_mistakes(text: str, caret: str, words: str) -> None:
    with pytest.raises(HoldfastError) as raised:
        parse_row_rule(text, WRITTEN, table="t")
    assert isinstance(raised.value, UsageError | UnknownColumnError)
    message = str(raised.value)
    assert words in message
    *_, last = message.split("\n")
    assert last == f"  {caret}"


@given(st.text(max_size=20))
@example("low <")
@example('low < "')
def test_nothing_but_errors_on_purpose(text: str) -> None:
    with contextlib.suppress(UsageError, UnknownColumnError):
        parse_row_rule(text, WRITTEN)


@given(st.lists(st.text(min_size=1), min_size=2, max_size=4, unique=True), st.sampled_from(OPERATORS))
@example(["not", "("], "<")
@example(["¬", "5"], "=")
def test_what_is_written_is_read(names: list[str], op: Operator) -> None:
    schema = Schema(tuple(Column(n, Type("float")) for n in names))
    rule = RowRule("t", names[0], op, names[1])
    assert parse_row_rule(rule.formula, schema, table="t") == rule
    assert rule.mirrored.mirrored == rule
    assert {rule.sentence, rule.said(times=True)}


def test_json() -> None:
    rule = RowRule("orders", "shipped", ">=", "ordered", 0.25, 1, 3, True)
    fields = rule.to_dict()
    assert fields == {
        "kind": "row",
        "table": "orders",
        "left": "shipped",
        "op": ">=",
        "right": "ordered",
        "error": 0.25,
        "n_exceptions": 1,
        "n_compared": 3,
        "apart": True,
    }
    again = RowRule.from_dict(fields)
    assert again.to_dict() == fields
    assert again == RowRule("orders", "shipped", ">=", "ordered"), "what is counted makes no difference"
    with pytest.raises(ValueError, match=r"RowRule\.op is '=>'"):
        RowRule.from_dict({**fields, "op": "=>"})
