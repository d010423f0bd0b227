"""The rows that violate something equal the plain reference: of every kind, with NULLs in both senses, after
batches that insert and delete, in one segment or several; and the fewest rows to remove are the fewest."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import Side, UsageError, Workspace
from holdfast.core.evidence import groups
from holdfast.core.evidence.group_rows import classes_of
from holdfast.denial import row_removal, violating_pairs, violations
from holdfast.denial.row_removal import fewest_rows
from reference import violations as reference

COLUMNS = ("a", "b", "c")
SCHEMA = pa.schema([("n", pa.int64()), *((c, pa.int64()) for c in COLUMNS), ("x", pa.string())])
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")

cells = st.one_of(st.none(), st.integers(0, 2))
rows_ = st.tuples(cells, cells, st.one_of(st.none(), st.integers(0, 6)), st.sampled_from([None, "p", "q"]))
Cells = Sequence[tuple[Any, ...]]


class Table:
    """A table of a workspace, after batches, and its live rows in the order of their ids."""

    def __init__(self, ws: Workspace, rows: list[dict[str, Any]]) -> None:
        self.ws, self.rows = ws, rows

    def listed(self, answer: Any) -> list[tuple[int, dict[str, Any]]]:
        """(place, record) of each row of an answer; its values are those of the row."""
        place = {row["n"]: i for i, row in enumerate(self.rows)}
        records = answer.to_arrow().to_pylist()
        for record in records:
            assert {name: record[name] for name in SCHEMA.names} == self.rows[place[record["n"]]]
        assert answer.complete
        return [(place[record["n"]], record) for record in records]

    def remaining(self, answer: Any) -> list[dict[str, Any]]:
        gone = {place for place, record in self.listed(answer) if record["_remove"]}
        assert len(gone) == answer.removal.at_most
        return [row for place, row in enumerate(self.rows) if place not in gone]


@contextmanager
def table(
    first: Cells, then: Cells, deleted: Sequence[int], nulls: str = "equal", *, merged: bool = False
) -> Iterator[Table]:
    whole = [dict(zip(SCHEMA.names, (i, *row), strict=True)) for i, row in enumerate([*first, *then])]
    gone = sorted({i % len(whole) for i in deleted}) if whole else []
    with tempfile.TemporaryDirectory() as folder, holdfast.open(f"{folder}/w", engine="inline") as ws:
        start = pa.Table.from_pylist(whole[: len(first)], SCHEMA)
        ws.track("t", start, kinds=("ucc", "ind"), nulls=nulls, row_key=["n"])
        if then:
            ws.apply("t", inserts=pa.Table.from_pylist(whole[len(first) :], SCHEMA))
        if gone:
            ws.apply("t", deletes=pa.table({"n": gone}))
        if merged:
            ws.merge("t")
        yield Table(ws, [row for i, row in enumerate(whole) if i not in gone])


tables = {
    "first": st.lists(rows_, max_size=8),
    "then": st.lists(rows_, max_size=6),
    "deleted": st.lists(st.integers(0, 20), max_size=4),
    "merged": st.booleans(),
}
column_sets = st.lists(st.sampled_from([*COLUMNS, "x"]), unique=True, max_size=2)


@settings(max_examples=40)
@given(
    **tables,
    nulls=st.sampled_from(["equal", "distinct"]),
    lhs=column_sets,
    rhs=st.sampled_from([*COLUMNS, "x"]),
)
@example([(0, 1, None, "p"), (0, 1, None, "q")], [(0, 1, None, "q")], [], False, "equal", ["a", "c"], "x")
@example([(0, 1, None, "p"), (0, 1, None, None)], [(0, 1, 2, None)], [], False, "distinct", ["a"], "x")
def test_functional_dependencies(
    first: Cells, then: Cells, deleted: list[int], merged: bool, nulls: str, lhs: list[str], rhs: str
) -> None:
    with table(first, then, deleted, nulls, merged=merged) as t:
        answer = t.ws.fds.violations("t", lhs, rhs)
        wanted = reference.fd_violations(t.rows, lhs, rhs, nulls)
        answered = {
            place: (r["_group_rows"], r["_remove"], r["_majority"], r["_votes"])
            for place, r in t.listed(answer)
        }
        assert answered == wanted
        for _, record in t.listed(answer):
            assert record["_deviates"] == (record["_remove"] and record["_votes"] > 0)
            assert record["_suggested"] == (record["_majority"] if record["_deviates"] else None)
        numbers = [record["_group"] for _, record in t.listed(answer)]
        assert numbers == sorted(numbers)
        assert answer.n_groups == len(set(numbers))
        assert answer.n_violating == len(wanted)
        assert answer.removal.exact
        assert not reference.fd_violations(t.remaining(answer), lhs, rhs, nulls)
        names = t.ws.fds.violations("t", lhs, rhs, limit=3).to_arrow().column("_row").to_pylist()
        assert names == answer.to_arrow().column("_row").to_pylist()[:3]


@settings(max_examples=30)
@given(**tables, nulls=st.sampled_from(["equal", "distinct"]), columns=column_sets)
def test_keys(
    first: Cells, then: Cells, deleted: list[int], merged: bool, nulls: str, columns: list[str]
) -> None:
    with table(first, then, deleted, nulls, merged=merged) as t:
        answer = t.ws.violations("t", columns)
        answered = {place: (r["_group_rows"], r["_remove"]) for place, r in t.listed(answer)}
        assert answered == reference.key_violations(t.rows, columns, nulls)
        assert not reference.key_violations(t.remaining(answer), columns, nulls)
        limited = t.ws.violations("t", columns, limit=1)
        assert (limited.n_violating, limited.removal) == (answer.n_violating, answer.removal)


@settings(max_examples=30)
@given(**tables, left=st.sampled_from(COLUMNS), right=st.sampled_from(COLUMNS), op=st.sampled_from(OPERATORS))
def test_row_rules(
    first: Cells, then: Cells, deleted: list[int], merged: bool, left: str, right: str, op: str
) -> None:
    if left == right:
        return
    with table(first, then, deleted, merged=merged) as t:
        answer = t.ws.violations("t", f"{left} {op} {right}")
        assert [place for place, _ in t.listed(answer)] == sorted(
            reference.row_rule_violations(t.rows, left, op, right)
        )
        assert not reference.row_rule_violations(t.remaining(answer), left, op, right)


@settings(max_examples=30)
@given(**tables, left=st.sampled_from(COLUMNS), right=st.sampled_from(COLUMNS))
@example([(2, 0, None, None)] * 4, [], [1], False, "a", "b")
def test_inclusions(
    first: Cells, then: Cells, deleted: list[int], merged: bool, left: str, right: str
) -> None:
    if left == right:
        return
    with table(first, then, deleted, merged=merged) as t:
        answer = t.ws.violations("t", left, referenced=Side("t", (right,)))
        there = {row[right] for row in t.rows} | {None}
        wanted = [place for place, row in enumerate(t.rows) if row[left] not in there]
        assert [place for place, _ in t.listed(answer)] == wanted
        assert answer.n_groups == len({t.rows[p][left] for p in wanted})
        by_group = {record["_group"]: record[left] for _, record in t.listed(answer)}
        assert all(by_group[record["_group"]] == record[left] for _, record in t.listed(answer))
        assert sorted(by_group) == list(range(1, len(by_group) + 1))


SIDES = [
    (left, right) for left in (("a", "b"), ("b", "a"), ("a", "b", "c")) for right in permutations(COLUMNS)
]


@settings(max_examples=40)
@given(**tables, sides=st.sampled_from(SIDES))
@example([(2, 0, None, None)] * 4, [], [1], False, (("a", "b"), ("b", "c", "a")))
@example([(0, 1, 1, None), (1, 0, 1, None), (1, None, 1, None), (2, 0, 0, None)] * 2, [], [4], True, SIDES[6])
def test_inclusions_of_several_columns(
    first: Cells,
    then: Cells,
    deleted: list[int],
    merged: bool,
    sides: tuple[tuple[str, ...], tuple[str, ...]],
) -> None:
    """What is not NULL of a combination is to occur in one row (`inclusions/composites.py`)."""
    left, right = sides[0], sides[1][: len(sides[0])]
    with table(first, then, deleted, merged=merged) as t:
        answer = t.ws.violations("t", left, referenced=Side("t", right))
        there = {tuple(row[c] for c in right) for row in t.rows}
        tuples = [tuple(row[c] for c in left) for row in t.rows]

        def occurs(values: tuple[Any, ...]) -> bool:
            return any(
                all(v is None or v == w for v, w in zip(values, other, strict=True)) for other in there
            )

        wanted = [p for p, values in enumerate(tuples) if not occurs(values)]
        assert [place for place, _ in t.listed(answer)] == wanted
        assert answer.n_violating == len(wanted)
        assert answer.holds == (not wanted)
        order = list(dict.fromkeys(tuples[p] for p in wanted))
        groups_ = [record["_group"] for _, record in t.listed(answer)]
        assert groups_ == [1 + order.index(tuples[p]) for p in wanted]
        assert answer.n_groups == answer.dependency.missing_values == len(order)
        filled = {values for values in tuples if any(v is not None for v in values)}
        assert answer.dependency.error == len(order) / max(1, len(filled))
        few = t.ws.violations("t", left, referenced=Side("t", right), limit=2)
        assert (few.n_violating, few.n_groups) == (answer.n_violating, answer.n_groups)
        assert few.row_ids.tolist() == answer.row_ids[:2].tolist()
        [ind] = t.ws.inds.measured([(Side("t", left), Side("t", right))])
        assert (ind.missing_values, ind.missing_rows) == (len(order), len(wanted))


predicates = st.lists(
    st.tuples(st.sampled_from(COLUMNS), st.sampled_from(OPERATORS), st.sampled_from(COLUMNS)),
    min_size=1,
    max_size=4,
    unique_by=lambda p: (p[0], p[2]),
)


@settings(max_examples=60)
@given(**tables, predicates=predicates)
@example([(0, 0, i, None) for i in range(5)], [], [], False, [("a", "=", "a"), ("c", "!=", "c")])
@example([(None, 1, 3, None), (None, 2, 3, None)], [], [], False, [("a", "<=", "a"), ("b", "<", "b")])
def test_denial_constraints(
    first: Cells, then: Cells, deleted: list[int], merged: bool, predicates: list[tuple[str, str, str]]
) -> None:
    rule = "not(" + " and ".join(f"t.{a} {op} s.{b}" for a, op, b in predicates) + ")"
    with table(first, then, deleted, merged=merged) as t:
        wanted = reference.dc_pairs(t.rows, predicates)
        pairs = t.ws.violations("t", rule, as_pairs=True)
        listed = t.listed(pairs)
        assert [(r["_pair"], r["_side"]) for _, r in listed] == [
            (i // 2 + 1, "ts"[i % 2]) for i in range(len(listed))
        ]
        answered = [(listed[i][0], listed[i + 1][0]) for i in range(0, len(listed), 2)]
        assert len(answered) == len(wanted)
        assert set(answered) == wanted
        answer = t.ws.violations("t", rule)
        degrees = {p: sum(p in pair for pair in wanted) for pair in wanted for p in pair}
        assert {place: r["_pairs"] for place, r in t.listed(answer)} == degrees
        assert answer.n_violations == pairs.n_violations == len(wanted)
        assert not reference.dc_pairs(t.remaining(answer), predicates)
        assert answer.removal.exact
        assert answer.removal.at_most == reference.least_removed(wanted)


@settings(max_examples=40)
@given(**tables, predicates=predicates)
def test_rows_of_too_many_pairs(
    first: Cells, then: Cells, deleted: list[int], merged: bool, predicates: list[tuple[str, str, str]]
) -> None:
    """Where pairs are not listed the rows are, with the same numbers, and bounds of what to remove."""
    rule = "not(" + " and ".join(f"t.{a} {op} s.{b}" for a, op, b in predicates) + ")"
    with pytest.MonkeyPatch.context() as patch, table(first, then, deleted, merged=merged) as t:
        patch.setattr(violating_pairs, "MAX_PAIRS", 0)
        wanted = reference.dc_pairs(t.rows, predicates)
        answer = t.ws.violations("t", rule)
        degrees = {p: sum(p in pair for pair in wanted) for pair in wanted for p in pair}
        assert {place: r["_pairs"] for place, r in t.listed(answer)} == degrees
        assert not reference.dc_pairs(t.remaining(answer), predicates)
        least = reference.least_removed(wanted)
        assert answer.removal.at_least <= least <= answer.removal.at_most


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda e: e[0] != e[1]), max_size=24),
    st.sampled_from([64, 4, 0]),
)
def test_the_fewest_rows(edges: list[tuple[int, int]], small: int) -> None:
    """Whatever is solved is the fewest; whatever is not lies between the bounds, and no row is needless."""
    before = row_removal.SMALL
    row_removal.SMALL = small
    try:
        removed, at_least = fewest_rows(np.array(edges, dtype=np.int64).reshape(-1, 2), 10)
    finally:
        row_removal.SMALL = before
    least = reference.least_removed(edges)
    chosen = set(np.flatnonzero(removed).tolist())
    assert all(chosen & set(edge) for edge in edges)
    assert at_least <= least <= len(chosen)
    assert small < 64 or at_least == least == len(chosen)
    for row in chosen:
        assert not all((chosen - {row}) & set(edge) for edge in edges)


def test_a_large_part_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 300, (4000, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    removed, at_least = fewest_rows(edges, 300)
    assert removed[edges].any(axis=1).all()
    assert 100 <= at_least <= removed.sum() < 300
    monkeypatch.setattr(row_removal, "MAX_STEPS", 1)
    assert fewest_rows(np.array([[0, 1], [1, 2], [2, 0]]), 3)[1] == 1  # a triangle needs two: not solved


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20), st.booleans())
def test_classes(rows: list[tuple[int, int]], nulls_distinct: bool) -> None:
    group, values = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    ids = np.arange(len(rows))[::-1].copy()  # the order of the rows is not that of their ids
    answered = classes_of(group, values, ids, nulls_distinct=nulls_distinct)
    nulls = "distinct" if nulls_distinct else "equal"
    by_id = [{"v": None if v == 0 else v} for _, v in rows[::-1]]
    for g in set(group.tolist()):
        members = sorted(ids[group == g].tolist())
        classes = reference.value_classes(by_id, members, "v", nulls)
        for i in np.flatnonzero(group == g).tolist():
            members_of_row = next(c for c in classes if ids[i] in c)
            assert (answered.size[i], answered.votes[i], ids[answered.leader[i]]) == (
                len(members_of_row),
                len(classes[0]),
                classes[0][0],
            )
            assert answered.stays[i] == (members_of_row is classes[0])
            assert answered.tied[i] == (len(classes) > 1 and len(classes[1]) == len(classes[0]))


@pytest.mark.parametrize("in_parts", [False, True])
def test_duckdb_agrees_on_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_parts: bool) -> None:
    """Some 20,000 rows in several segments, with deletes, looked at whole or in parts: groups, majorities and
    pairs by another engine."""
    rng = np.random.default_rng(7)
    if in_parts:
        for module in (groups, violations):
            monkeypatch.setattr(module, "PART_ROWS", 3_000)
        monkeypatch.setattr(violating_pairs, "CHUNK", 1_000)

    def some(n: int, first: int) -> pa.Table:
        zips = rng.integers(0, 400, n)
        city = np.where(rng.random(n) < 0.02, -1, zips // 7)
        pay = rng.integers(0, 10**6, n)
        tax = np.where(rng.random(n) < 0.0005, 0, pay // 5)
        return pa.table({"n": np.arange(first, first + n), "zip": zips, "city": city, "pay": pay, "tax": tax})

    parts = [some(12_000, 0), some(5_000, 12_000), some(3_000, 17_000)]
    gone = np.unique(rng.integers(0, 20_000, 700))
    whole = pa.concat_tables(parts)
    live = whole.filter(pa.array(~np.isin(np.arange(len(whole)), gone)))
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", parts[0], kinds=("row",), row_key=["n"])
        for part in parts[1:]:
            ws.apply("t", inserts=part)
        ws.apply("t", deletes=pa.table({"n": gone}))
        db = duckdb.connect(":memory:", config={"threads": 1})
        db.register("live", live)
        answer = ws.violations("t", "zip -> city")
        counted = "SELECT zip, city, count(*) AS k FROM live GROUP BY zip, city"
        modes = f"SELECT zip, sum(k) AS n, max(k) AS most FROM ({counted}) GROUP BY zip HAVING count(*) > 1"
        n, removed = db.execute(f"SELECT sum(n), sum(n - most) FROM ({modes})").fetchall()[0]
        assert (answer.n_violating, answer.removal.at_most) == (n, removed)
        db.register("listed", answer.to_arrow())
        unlike = "(city <> _majority) <> _remove OR (_suggested IS NULL) = _remove"
        wrong = f"SELECT count(*) FROM listed WHERE {unlike}"
        assert db.execute(wrong).fetchall() == [(0,)]
        first = ws.violations("t", "zip -> city", limit=50).to_arrow()
        assert first == answer.to_arrow().slice(0, 50)
        for rule, on in (
            ("t.pay < s.pay and t.tax > s.tax", "t.pay < s.pay AND t.tax > s.tax"),
            ("t.zip = s.zip and t.tax > s.pay", "t.zip = s.zip AND t.tax > s.pay AND t.n <> s.n"),
            ("t.zip = s.zip and t.city != s.city", "t.zip = s.zip AND t.city <> s.city"),
        ):
            pairs = ws.violations("t", f"not({rule})", as_pairs=True)
            assert 0 < len(pairs.row_ids) < violating_pairs.MAX_PAIRS
            listed = pairs.to_arrow().column("n").to_pylist()
            joined = db.execute(f"SELECT t.n, s.n FROM live t, live s WHERE {on} ORDER BY ALL").fetchall()
            assert sorted(zip(listed[::2], listed[1::2], strict=True)) == joined
            rows = ws.violations("t", f"not({rule})")
            assert rows.removal == pairs.removal
            removed = rows.to_arrow().filter(pc.field("_remove")).column("n").to_pylist()
            db.register("remaining", live.filter(~pc.field("n").isin(removed)))
            broken = f"SELECT count(*) FROM remaining t, remaining s WHERE {on}"
            assert db.execute(broken).fetchall() == [(0,)]


def test_a_suggestion_that_is_null(tmp_path: Path) -> None:
    """Most of a group have no value: the row that has one deviates. Of a tie none does."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"k": [1, 1, 1, 2, 2, 3], "v": [None, None, "x", "y", None, "z"]}))
        rows = ws.violations("t", "k -> v").to_arrow().to_pylist()
        told = {(r["k"], r["v"]): (r["_deviates"], r["_suggested"], r["_remove"]) for r in rows}
        assert told == {
            (1, "x"): (True, None, True),
            (1, None): (False, None, False),
            (2, "y"): (False, None, told[2, "y"][2]),
            (2, None): (False, None, not told[2, "y"][2]),
        }


def test_batches_hold_what_they_are_asked_for(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"_row": [1] * 10, "v": list(range(10))}))
        answer = ws.violations("t", ["_row"])
        assert [len(batch) for batch in answer.batches(4)] == [4, 4, 2]
        assert answer.to_arrow().column_names == ["__row", "__group", "__group_rows", "__remove", "_row", "v"]
        assert answer.schema.names == answer.to_arrow().column_names
        assert "10 rows of 10 violate it, 10 listed; without 9 rows it holds" in repr(answer)
        assert len(ws.violations("t", ["v"]).to_pandas()) == 0
        few = ws.violations("t", ["_row"], limit=2)
        assert not few.complete
        assert few.to_dict()["rows"] == answer.to_dict()["rows"][:2]


def test_errors_say_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 1, 1], "b": [1, 2, 3]}))
        with pytest.raises(UsageError, match="rules about two rows"):
            ws.violations("t", "a -> b", as_pairs=True)
        with pytest.raises(UsageError, match="takes no part in inclusions"):
            ws.violations("t", "a", referenced=Side("t", ("b",)))
        monkeypatch.setattr(violating_pairs, "MAX_PAIRS", 2)
        with pytest.raises(UsageError, match=r"3 ordered pairs of rows of table 't'.*at most 2 are listed"):
            ws.violations("t", "not(t.a = s.a and t.b < s.b)", as_pairs=True)
        monkeypatch.setattr(violating_pairs, "MAX_COUNTED", 2)
        with pytest.raises(UsageError, match="the rows of at most 2"):
            ws.violations("t", "not(t.a = s.a and t.b < s.b)")
        assert ws.violations("t", "not(t.a = s.a)").n_violations == 6  # by groups, however many
