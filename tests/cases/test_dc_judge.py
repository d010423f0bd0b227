"""An independent engine judges denial constraints: DuckDB joins a table with itself after batches.

It tells for every pair of rows which predicates are true, and how many pairs satisfy any of them together. So
what is listed holds, nothing looser does, and what holds by chance follows from something listed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.words.predicate import Dc
from holdfast.denial import dc_witnessed
from reference import dcs as oracle
from reference import predicates
from reference.dcs import Space
from reference.predicates import Words

Rule = tuple[Words, ...]
EVIDENCE: tuple[Any, ...] = ("counted", "witnessed")
DAY = dt.date(2026, 1, 1)


def generated(rng: np.random.Generator, n_rows: int) -> pa.Table:
    """Two numbers that are compared, a date that nearly rises with them, a float, texts; NULL and NaN."""
    grade = rng.integers(0, 12, n_rows)
    bonus = grade // 2 + rng.integers(0, 3, n_rows)
    days = grade * 10 + rng.integers(0, 12, n_rows)
    rate = np.where(rng.random(n_rows) < 0.1, np.nan, grade * 0.5 + rng.integers(0, 2, n_rows))
    city = grade % 5
    return pa.table(
        {
            "grade": pa.array(grade, pa.int64()),
            "bonus": pa.array(bonus, pa.int64(), mask=rng.random(n_rows) < 0.05),
            "since": pa.array([DAY + dt.timedelta(int(d)) for d in days], pa.date32()),
            "rate": pa.array(rate, pa.float64(), mask=rng.random(n_rows) < 0.05),
            "city": pa.array([f"city {c}" for c in city], pa.string(), mask=city == 4),
        }
    )


class Judge:
    """Pairs of rows by what is true of them, as DuckDB compares."""

    def __init__(self, rows: pa.Table, asked: Sequence[Words] = ()) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})
        self.connection.register("given", rows)
        self.connection.execute("CREATE TABLE rows AS SELECT *, row_number() OVER () AS place FROM given")
        self.total = len(rows) * (len(rows) - 1)
        self.bits = {p: 1 << i for i, p in enumerate(asked)}
        assert len(asked) < 63, "a mask is a BIGINT"
        told = [f"CASE WHEN {sql(p)} THEN {bit} ELSE 0 END" for p, bit in self.bits.items()]
        self.connection.execute(
            f"CREATE TABLE pairs AS SELECT {' + '.join(told) or '0'} AS satisfied, count(*) AS n "
            "FROM rows t JOIN rows s ON t.place <> s.place GROUP BY ALL"
        )

    def joined(self, rule: Rule) -> int:
        """The ordered pairs that satisfy all of the predicates: a self join."""
        true = " AND ".join(["t.place <> s.place", *map(sql, rule)])
        return self.one(f"SELECT count(*) FROM rows t JOIN rows s ON {true}")

    def violations(self, rules: Iterable[Rule]) -> list[int]:
        """The same for many, from what is true of all pairs."""
        masks = [sum(self.bits[p] for p in rule) for rule in rules]
        self.connection.register("rules", pa.table({"number": range(len(masks)), "mask": masks}))
        counted = self.connection.execute(
            "SELECT number, coalesce(sum(n), 0) FROM rules LEFT JOIN pairs "
            "ON satisfied & CAST(mask AS BIGINT) = CAST(mask AS BIGINT) GROUP BY number ORDER BY number"
        ).fetchall()
        return [int(n) for _, n in counted]

    def one(self, query: str) -> int:
        [row] = self.connection.execute(query).fetchall()
        return int(row[0])


def sql(predicate: Words) -> str:
    """With a NULL on one side only `!=` is true; two NULLs are equal."""
    a, op, b = f"t.{predicate[0]}", predicate[1], f"s.{predicate[2]}"
    if op == "=":
        return f"({a} IS NOT DISTINCT FROM {b})"
    if op == "!=":
        return f"({a} IS DISTINCT FROM {b})"
    both = f" OR ({a} IS NULL AND {b} IS NULL)" if op in ("<=", ">=") else ""
    return f"({a} {op} {b}{both})"


def rule_of(dc: Any) -> Rule:
    return tuple((p.left, p.op, p.right) for p in dc.predicates)


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as found:
        yield found


def history(rng: np.random.Generator, n_rows: int, batches: Iterable[tuple[int, int]]) -> Iterator[Any]:
    """(rows to delete, rows to insert, rows after), the first with the rows to track."""
    rows = generated(rng, n_rows)
    yield None, rows, rows
    for n_deleted, n_inserted in batches:
        gone = np.sort(rng.choice(len(rows), n_deleted, replace=False))
        new, deletes = generated(rng, n_inserted), rows.take(pa.array(gone))
        rows = pa.concat_tables([rows.take(pa.array(np.setdiff1d(np.arange(len(rows)), gone))), new])
        yield deletes, new, rows


def both(ws: Workspace, deletes: pa.Table | None, inserts: pa.Table, **options: Any) -> None:
    """The same batch to two tables, one for each kind of evidence; the first one tracks them."""
    if deletes is None:
        for evidence in EVIDENCE:
            ws.track(evidence, inserts, kinds=("dc",), evidence=evidence, **options)
    else:
        ws.apply_all({table: {"deletes": deletes, "inserts": inserts} for table in EVIDENCE})


def space_of(ws: Workspace, table: str, names: Sequence[str]) -> Space:
    return Space([(g.left, g.right, g.ordered) for g in ws.dcs.space(table).groups], names)


def check_cover(judge: Judge, space: Space, listed: Sequence[Rule], most: int = 0) -> list[int]:
    """What is listed has at most so many violations, and everything looser has more."""
    found = judge.violations(listed)
    assert max(found, default=0) <= most
    looser = {dc: [named(space, other) for other in space.looser(space.numbers(dc))] for dc in listed}
    told = iter(judge.violations(other for others in looser.values() for other in others))
    for dc, others in looser.items():
        for other in others:
            assert next(told) > most, (dc, other)
    return found


def named(space: Space, numbers: Iterable[int]) -> Rule:
    return tuple(space.words[i] for i in numbers)


def check_complete(judge: Judge, space: Space, listed: Sequence[Rule], rng: np.random.Generator) -> int:
    """Rules at random: those that hold follow from something listed. The number of those that do."""
    by_group: dict[tuple[str, str], list[Words]] = {}
    for p in space.words:
        by_group.setdefault((p[0], p[2]), []).append(p)
    rules = []
    for _ in range(1000):
        chosen = [group for group in by_group.values() if rng.random() < 0.7]
        rules.append(tuple(group[rng.integers(len(group))] for group in chosen))
    # What holds in every table is not listed.
    rules = [rule for rule in rules if not predicates.circular(rule)]
    holding = [rule for rule, n in zip(rules, judge.violations(rules), strict=True) if not n]
    known = [frozenset(dc) for dc in listed]
    implied = {p: {q for q in space.words if predicates.follows(q, [p])} for p in space.words}
    for rule in holding:
        # What follows within groups, from the rule as it is or mirrored.
        sides = [
            set[Words]().union(*(implied[p] for p in side)) for side in (rule, predicates.mirrored(rule))
        ]
        assert any(dc <= side for side in sides for dc in known), rule
    return len(holding)


@pytest.mark.parametrize("indexed", [False, True])
def test_duckdb_confirms(ws: Workspace, monkeypatch: pytest.MonkeyPatch, indexed: bool) -> None:
    if indexed:  # as if the table were large
        monkeypatch.setattr(dc_witnessed, "SCANNED_ROWS", 0)
        monkeypatch.setattr(dc_witnessed, "SAMPLE_ROWS", 40)
        monkeypatch.setattr(dc_witnessed, "SAMPLED_PAIRS", 500)
        monkeypatch.setattr(dc_witnessed, "ROUND_PAIRS", 1000)
    rng = np.random.default_rng(11 + indexed)
    seen = []
    for deletes, inserts, rows in history(rng, 240, ((0, 30), (60, 0), (30, 45), (180, 2))):
        both(ws, deletes, inserts)
        space = space_of(ws, "counted", rows.column_names)
        judge = Judge(rows, space.words)
        covers = [[rule_of(d) for d in ws.dependencies(kind="dc", table=table)] for table in EVIDENCE]
        assert covers[0] == covers[1]
        check_cover(judge, space, covers[0])
        assert check_complete(judge, space, covers[0], rng) > 20
        for rule in covers[0][:5]:
            assert judge.joined(rule) == 0
        seen.append(frozenset(covers[0]))
    assert len(space.groups) == 7, "two columns are compared with each other"
    assert len(set(seen)) > 3, "the batches change something"
    assert max(map(len, seen)) > 50


def test_duckdb_counts_the_same_pairs(ws: Workspace) -> None:
    """Errors of approximate constraints."""
    rng = np.random.default_rng(5)
    for deletes, inserts, rows in history(rng, 150, ((0, 40), (70, 10))):
        if deletes is None:
            ws.track("t", rows, kinds=("dc",), evidence="counted", max_error=0.01)
        else:
            ws.apply("t", deletes=deletes, inserts=inserts)
        space = space_of(ws, "t", rows.column_names)
        judge = Judge(rows, space.words)
        for max_error in (0.01, 0.05):
            listed = ws.dependencies(kind="dc", table="t", max_error=max_error)
            assert len(listed) > 20
            most = oracle.allowed(max_error, range(len(rows)))  # type: ignore[arg-type]
            found = check_cover(judge, space, [rule_of(d) for d in listed], most)
            assert [d.error for d in listed if isinstance(d, Dc)] == [n / judge.total for n in found]
            assert any(found)


# -- rules that people write ------------------------------------------------------------------------------

WRITTEN = (
    "not(t.grade = s.grade and t.city != s.city)",
    "not(t.grade < s.grade and t.since > s.since)",
    "not(t.grade = s.grade and t.since < s.since and t.rate > s.rate)",
    "not(t.bonus > s.grade)",
    "not(t.grade <= s.bonus and t.since != s.since and t.rate != s.rate)",
    "not(t.city = s.city and t.rate >= s.rate and t.bonus < s.bonus and t.since <= s.since)",
    "not(t.rate != s.rate)",
    "not(t.grade < s.grade and t.grade > s.grade)",
    "not(t.grade = s.grade and t.bonus = s.bonus and t.since = s.since and t.rate = s.rate)",
)


@pytest.mark.parametrize("kinds", [("ind",), ("dc",)])
def test_duckdb_counts_what_violates_rules(ws: Workspace, kinds: Any) -> None:
    """Pinned before and between batches, whatever else is tracked; nothing need be."""
    rng = np.random.default_rng(7)
    for step, (deletes, inserts, rows) in enumerate(
        history(rng, 300, ((0, 40), (100, 0), (60, 90), (260, 3)))
    ):
        if deletes is None:
            ws.track("t", rows, kinds=kinds, **({"max_predicates": 2} if kinds == ("dc",) else {}))
        else:
            change = ws.apply("t", deletes=deletes, inserts=inserts)
            assert {str(p) for p in change.pins} == set(WRITTEN[: 3 * step])
        for text in WRITTEN[3 * step : 3 * step + 3]:
            ws.pin_rule(text)
        judge, pins = Judge(rows), {str(p): p for p in ws.pins("t")}
        assert set(pins) == set(WRITTEN[: 3 * step + 3])
        for text, pin in pins.items():
            n = judge.joined(rule_of(pin.rule))
            assert (pin.n_violations, pin.holds) == (n, n == 0), text
            assert pin.rule is not None
            assert pin.rule.error == n / judge.total
        if step == 2:
            assert len({pin.n_violations for pin in pins.values()}) > 6
