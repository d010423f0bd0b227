"""The contract: after any history of batches, the profiles are those of the rows, by plain counting.

Bounds are small here, so that columns have more values, lengths and shapes than are counted, and fewer again
after some deletes; texts are too long to be counted, and then not. What is kept of every version is read at
the end.
"""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import holdfast
from holdfast.core.cover.news import plain
from holdfast.core.rows import codes, relation, some_rows
from holdfast.core.words.condition import read_condition
from holdfast.profile import column_counts, column_profile, column_rules, tally, value_ranking
from holdfast.profile.column_profile import ColumnProfile
from holdfast.profile.profile_class import profiled
from reference import profiles as oracle
from reference.conditions import truth
from reference.keys import Row, canonical
from strategies import TYPES, VARIED, Shape, batches

TABLE = "t"
MOST = {"values": 5, "lengths": 5, "shapes": 4, "forms": 4}
LONGEST = {"values": 20, "shapes": 6, "forms": 6}
N_TOP, N_ALL = 2, 3
POOLS: dict[str, list[Any]] = {
    **{name: VARIED[name] for name in ("int", "uint", "float", "binary", "bool", "date", "wide decimal")},
    "text": ["", "a", "A", "é", "日本", "7", "A-7", "B-12", "x" * 10, "x" * 30, "it's", "a\nb", "C-3"],
    "decimal": [Decimal(n).scaleb(-2) for n in (-1, 0, 1, 100, 250, *range(2, 9))],
    "timestamp": [dt.datetime(1969, 12, 31, 23), *(dt.datetime(2020 + n, 1, 1, n) for n in range(9))],
    "time": [dt.time(n, n) for n in range(9)],
}


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    names = draw(st.lists(st.sampled_from(list(POOLS)), min_size=1, max_size=4))
    fields, pools = [], []
    for c, name in enumerate(names):
        size, null = draw(st.sampled_from([13, 13, 6, 2])), draw(st.booleans())
        fields.append(pa.field(f"c{c}", TYPES[name][0]))
        pools.append((*POOLS[name][:size], *([None] if null else [])))
    return Shape(pa.schema(fields), tuple(pools))


class Profiles(RuleBasedStateMachine):
    """A workspace with one table, next to a list of its rows."""

    colliding = False  # whether texts are hashed to two bits

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(relation, "MERGE_FANOUT", 3)
        self.patch.setattr(tally, "EDGE", 2)
        self.patch.setattr(some_rows, "PART_ROWS", 3)
        self.patch.setattr(value_ranking, "RANGE_VALUES", 3)
        self.patch.setattr(column_rules, "TOP_VALUES", N_TOP)
        self.patch.setattr(column_rules, "ALL_VALUES", N_ALL)
        self.patch.setattr(column_rules, "TOP_PATTERNS", N_TOP)
        for name, most in MOST.items():
            self.patch.setitem(column_counts.MOST, name, most)
        for name, longest in LONGEST.items():
            self.patch.setitem(column_counts.LONGEST, name, longest)
        if self.colliding:
            honest = codes.hash_texts
            self.patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-"))
        self.ws = holdfast.open(self.folder / "w", engine="inline")
        self.recorded: dict[int, list[ColumnProfile]] = {}
        self.rows_at: dict[int, list[Row]] = {}
        self.deleted: list[Row] = []
        self.rows: list[Row] = []
        self.tracked = False

    def teardown(self) -> None:
        for version, columns in self.recorded.items():
            kept = self.ws.profiles.of(TABLE, at=version)
            if version != self.ws.version:
                assert list(kept) == columns
        self.ws.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.patch.undo()

    @initialize(data=st.data())
    def track(self, data: st.DataObject) -> None:
        self.shape = data.draw(shapes())
        self.rows = data.draw(self.shape.rows(max_size=20))
        self.ws.track(TABLE, self.shape.table(self.rows), kinds=("profile",))
        self.tracked = True
        self.record()

    def stored(self) -> list[ColumnProfile]:
        """What every version keeps, without what a job counts when somebody asks."""
        state = self.ws.writer.tables.state(TABLE)
        return list(self.ws.profiles.columns(state))

    def record(self) -> None:
        self.recorded[self.ws.version] = self.stored()
        self.rows_at[self.ws.version] = self.rows

    def apply(self, new: list[Row], gone: list[Row]) -> None:
        before = {rule.formula for column in self.stored() for rule in column.rules}
        parts = {"inserts": self.shape.table(new) if new else None}
        parts["deletes"] = self.shape.table(gone) if gone else None
        if not new and not gone:
            return
        foretold = self.ws.check(TABLE, **parts)
        self.deleted = [*self.deleted, *gone][-20:]
        left = list(self.rows)
        for row in gone:
            del left[next(i for i, other in enumerate(left) if other is row)]
        self.rows = [*left, *new]
        change = self.ws.apply(TABLE, **parts)
        assert foretold.changes == change.changes
        after = {rule.formula for column in self.stored() for rule in column.rules}
        events = {c.dependency.name: c for c in change.changes}
        assert len(events) == len(change.changes)
        appeared = {name for name, c in events.items() if c.event == "appeared"}
        assert appeared == after - before
        assert {*events} - appeared == before - after
        for name, c in events.items():
            against = self.against(name, self.rows)
            assert bool(against) == (c.event == "broke")
            if c.event == "broke":
                shown = [row.values for row in c.witnesses[0]]
                plain_rows = [{n: plain(v) for n, v in row.items()} for row in self.against(name, new)]
                assert all(any(_alike(row, other) for other in plain_rows) for row in shown)
                assert shown
        self.record()

    def against(self, formula: str, rows: list[Row]) -> list[dict[str, Any]]:
        """The rows that violate a condition, by its definition."""
        schema = self.ws.schema(TABLE)
        node = read_condition(formula, schema)
        named = [dict(zip(self.shape.names, row, strict=True)) for row in rows]
        return [row for row in named if truth(node, row) is False]

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        self.apply(data.draw(self.shape.rows(max_size=12)), [])

    @rule(data=st.data())
    def insert_often(self, data: st.DataObject) -> None:
        """The same rows several times: values that are accepted have some."""
        self.apply(3 * data.draw(self.shape.rows(min_size=1, max_size=3)), [])

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        self.apply([], list(data.draw(batches(self.shape, self.rows, max_rows=12)).deletes))

    @rule(data=st.data())
    def mixed(self, data: st.DataObject) -> None:
        batch = data.draw(batches(self.shape, self.rows))
        self.apply(list(batch.inserts), list(batch.deletes))

    @rule(data=st.data())
    def delete_an_end(self, data: st.DataObject) -> None:
        """All rows with one of the extremes of a column, or with its longest text."""
        c = data.draw(st.integers(0, self.shape.n_columns - 1))
        column = [row[c] for row in self.rows if row[c] is not None]
        if not column:
            return
        end = data.draw(st.sampled_from([*oracle.extremes(column), max(column, key=lambda v: len(str(v)))]))
        end = float("nan") if repr(end) == "NaN" else end
        gone = [row for row in self.rows if row[c] is not None and _alike({"": row[c]}, {"": end})]
        self.apply([], gone)

    @rule(data=st.data())
    def delete_the_middle(self, data: st.DataObject) -> None:
        """All rows but those with the lowest and the highest values of a column: few are left, unseen."""
        c = data.draw(st.integers(0, self.shape.n_columns - 1))
        ordered = sorted(oracle.values_of([row[c] for row in self.rows]), key=oracle.order)
        ends = {*ordered[:2], *ordered[-2:], None}
        self.apply([], [row for row in self.rows if canonical(row[c]) not in ends])

    @precondition(lambda self: self.deleted)
    @rule(data=st.data())
    def insert_again(self, data: st.DataObject) -> None:
        self.apply([data.draw(st.sampled_from(self.deleted))], [])

    @precondition(lambda self: self.rows)
    @rule()
    def delete_everything(self) -> None:
        self.apply([], list(self.rows))

    @rule()
    def merge(self) -> None:
        self.ws.merge(TABLE)
        self.record()

    @rule()
    def restart(self) -> None:
        self.ws.close()
        self.ws = holdfast.open(self.folder / "w", engine="inline", create=False)

    @precondition(lambda self: self.tracked)
    @rule(data=st.data())
    def explain(self, data: st.DataObject) -> None:
        rules = [rule for column in self.stored() for rule in column.rules]
        if not rules:
            return
        asked = data.draw(st.sampled_from(rules))
        told = self.ws.explain(TABLE, asked.formula)
        assert told.holds
        assert told.since == self.ws.profiles.life(TABLE, asked.formula)[-1].first
        assert [told.since] == self.ws.since(TABLE, [asked])
        assert self.ws.violations(TABLE, asked.formula).n_violating == 0

    @precondition(lambda self: self.tracked)
    @rule(data=st.data())
    def live(self, data: st.DataObject) -> None:
        """Whatever was listed once: what its life says of a version its rows say, and where it was listed it
        says so; what the log says of it is so until the next batch."""
        listed = {v: {r.formula for p in columns for r in p.rules} for v, columns in self.recorded.items()}
        every = sorted(set().union(*listed.values()))
        if not every:
            return
        asked = data.draw(st.sampled_from(every))
        life = self.ws.profiles.life(TABLE, asked)
        assert life[-1].last is None
        for stretch in life:
            for version in range(stretch.first, (stretch.last or self.ws.version) + 1):
                held = not self.against(asked, self.rows_at[version])
                assert stretch.holds in (held, None)
                if asked in listed[version] or asked in listed.get(version - 1, ()):
                    assert stretch.holds is held

    @invariant()
    def matches_the_oracle(self) -> None:
        if not self.tracked:
            return
        state = self.ws.writer.tables.state(TABLE)
        kept = self.stored()
        with self.ws.writer.tables.opened(state) as rows:
            assert list(profiled(TABLE, rows).columns) == kept
        told = self.ws.profiles.of(TABLE)
        for c, (few, every) in enumerate(zip(kept, told, strict=True)):
            column = [row[c] for row in self.rows]
            self.check_column(few, every, column)
            for known in few.rules:
                assert not self.against(known.formula, self.rows)

    def check_column(self, few: ColumnProfile, every: ColumnProfile, column: list[Any]) -> None:
        there = [value for value in column if value is not None]
        distinct, family = len(oracle.values_of(column)), few.type
        assert (few.n_rows, few.n_nulls) == (len(column), len(column) - len(there))
        texts = family in ("text", "binary")
        lengths = [len(value) for value in there] if texts else []
        assert (few.lengths is not None) == bool(lengths)
        if few.lengths is not None:
            mean = sum(lengths) / len(lengths)
            assert (few.lengths.low, few.lengths.high, few.lengths.mean) == (min(lengths), max(lengths), mean)
        longest = max(lengths, default=0)
        assert every.n_distinct == distinct
        is_long = longest > LONGEST["values"]
        assert (few.n_distinct is None) == (is_long or distinct > MOST["values"])
        assert few.more_than == (MOST["values"] if few.n_distinct is None and not is_long else 0)
        ordered = there and not is_long and family not in ("bool", "binary")
        low, high = map(self.told, oracle.extremes(there)) if ordered else (None, None)
        assert (few.low, few.high) == (low, high)
        if is_long:
            assert every.top is None
        elif few.n_distinct is None:
            assert self.counted(every.top) == self.named(oracle.top(column, column_profile.TOP_VALUES))
        else:
            assert self.counted(few.top) == self.named(
                oracle.top(column, distinct if distinct <= N_ALL else N_TOP)
            )
        expected = None
        if family == "text" and longest <= LONGEST["shapes"]:
            expected = oracle.patterns(column, MOST["shapes"], N_TOP)
        if expected is None:
            assert (few.patterns, few.n_patterns) == (None, None)
        else:
            assert (self.counted(few.patterns), few.n_patterns) == expected

    def told(self, value: Any) -> Any:
        value = float("nan") if repr(value) == "NaN" else value
        return value if isinstance(value, str) else plain(value)

    def named(self, counts: oracle.Counts) -> oracle.Counts:
        return [(self.told(value), n) for value, n in counts]

    def counted(self, listed: Any) -> oracle.Counts:
        return [(item.value, item.n_rows) for item in listed]


def _alike(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether rows have the same values: a NaN is itself, and 0.0 is -0.0."""
    return all(left[n] == right[n] or (left[n] != left[n] and right[n] != right[n]) for n in left)


class Colliding(Profiles):
    colliding = True


@pytest.mark.parametrize("machine", [Profiles, Colliding], ids=["honest", "colliding"])
def test_profiles(machine: type[Profiles]) -> None:
    checks = settings(
        max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
    )
    run_state_machine_as_test(machine, settings=checks)
