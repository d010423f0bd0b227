"""The contract of inclusion dependencies: after any history of several tables, what the oracle says.

A machine drives a workspace of two to four tables (tracked one by one or together, dropped, tracked
again) with batches to one or several of them, merges and restarts, and keeps the rows in plain lists. After
every step all INDs, of one column and of several, exact and partial, must equal the oracle's, with their
counts to the last value and row; and every report must be the difference of what held before and after.
"""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, ClassVar

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
from holdfast.core.rows import codes, relation
from holdfast.core.words.change import Change, DependencyChange
from holdfast.core.words.dependency import Dependency, Ind, Ucc
from holdfast.errors import AbsentRowError, AmbiguousRowError, HoldfastError
from holdfast.inclusions import inds
from holdfast.inclusions import values as generator
from reference import inds as oracle
from reference import keys as key_oracle
from reference.keys import Row, canonical_row
from strategies import Shape, batches

NAMES = ("t0", "t1", "t2", "t3")
VALUES_SHOWN = 4

# Pools overlap across types: 1 is an int, a float, three decimals and the text "1". What is common comes
# first and pools are cut at some length, so columns of one type are often nested.
DAY, CLOCK = dt.date, dt.datetime
NAN, INF = float("nan"), float("inf")
UTC = dt.UTC
POOLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [1, 0, 2, -1, 2**53 + 1, 2**63 - 1, -(2**63), 3]),
    "small int": (pa.int8(), [1, 0, 2, -1, 127]),
    "uint": (pa.uint64(), [1, 0, 2, 2**64 - 1, 2**63, 2**53 + 1]),
    "float": (
        pa.float64(),
        [1.0, -0.0, 0.0, NAN, 1.5, 0.1, INF, -INF, 0.1 + 0.2, 2.0**63, -1.0, 5e-324, 1e300],
    ),
    "decimal": (
        pa.decimal128(12, 2),
        [Decimal(t) for t in ("1.00", "0.00", "1.50", "0.10", "-1.00", "2.00")],
    ),
    "wide decimal": (
        pa.decimal128(38, 17),
        [
            Decimal(t).quantize(Decimal("1e-17"))
            for t in ("1", "0", "1.5", "0.1", "0.30000000000000004", "0.3")
        ],
    ),
    "very wide decimal": (
        pa.decimal256(60, 2),
        [Decimal(f"{t}.00") for t in (1, 0, 2**63, 2**64 - 1, 10**30, 2**53 + 1, -(2**63))],
    ),
    "text": (pa.string(), ["1", "", "a", "0", "A", "é", "e\u0301", "日本", "1.5", "true", "2026-01-01"]),
    "large text": (pa.large_string(), ["", "1", "a", "1.00", "x" * 300]),
    "binary": (pa.binary(), [b"1", b"", b"a", b"\x00", b"\xff"]),
    "bool": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [DAY(1970, 1, 1), DAY(2026, 1, 1), DAY.min, DAY.max]),
    "time": (pa.time64("us"), [dt.time(0), dt.time(12, 30), dt.time(12, 30, 0, 1)]),
    "time in seconds": (pa.time32("s"), [dt.time(0), dt.time(12, 30), dt.time(23, 59, 59)]),
    "timestamp": (pa.timestamp("us"), [CLOCK(1970, 1, 1), CLOCK(2026, 1, 1), CLOCK(2026, 1, 1, 0, 0, 0, 1)]),
    "timestamp in seconds": (pa.timestamp("s"), [CLOCK(1970, 1, 1), CLOCK(2026, 1, 1), CLOCK(1, 1, 1)]),
    "timestamp in nanoseconds": (pa.timestamp("ns"), [CLOCK(1970, 1, 1), CLOCK(2026, 1, 1, 0, 0, 0, 1)]),
    "instant": (pa.timestamp("ms", "UTC"), [CLOCK(1970, 1, 1, tzinfo=UTC), CLOCK(2026, 1, 1, tzinfo=UTC)]),
    "fine instant": (
        pa.timestamp("us", "UTC"),
        [CLOCK(1970, 1, 1, tzinfo=UTC), CLOCK(2026, 2, 1, tzinfo=UTC)],
    ),
}
# The types of one run: a few that meet, or all.
THEMES: list[tuple[str, ...]] = [
    ("int",),
    ("int", "decimal", "float"),
    ("text", "large text"),
    ("int", "text"),
    ("int", "uint", "float", "very wide decimal", "wide decimal"),
    ("time", "time in seconds", "timestamp", "timestamp in seconds", "timestamp in nanoseconds", "instant"),
    tuple(POOLS),
]
HASHED: list[tuple[str, ...]] = [
    ("text",),
    ("text", "large text", "binary"),
    ("very wide decimal", "wide decimal"),
]


@st.composite
def shapes_of(draw: st.DrawFn, types: Sequence[str], sizes: Sequence[int]) -> Shape:
    """Two to four columns with pools of these sizes."""
    names = draw(st.lists(st.sampled_from(types), min_size=2, max_size=4))
    fields, pools = [], []
    for c, name in enumerate(names):
        type_, values = POOLS[name]
        size = draw(st.sampled_from(sizes))
        null = size == 0 or draw(st.booleans())
        fields.append(pa.field(f"c{c}", type_))
        pools.append((*values[:size], *([None] if null else [])))
    return Shape(pa.schema(fields), tuple(pools))


@dataclass
class Held:
    """A table as the machine knows it: what it is tracked with, and its rows."""

    shape: Shape
    options: dict[str, Any]
    rows: list[Row]
    deleted: list[Row] = field(default_factory=list)

    def table(self, rows: Sequence[Row], columns: Sequence[str] | None = None) -> pa.Table:
        return self.shape.table(rows, columns)

    @property
    def append_only(self) -> bool:
        return bool(self.options.get("append_only"))

    @property
    def as_text(self) -> bool:
        return bool(self.options.get("as_text"))

    @property
    def row_key(self) -> tuple[str, ...]:
        return tuple(self.options.get("row_key", ()))

    @property
    def taking_part(self) -> tuple[str, ...]:
        chosen, left_out = self.options.get("columns") or ["*"], self.options.get("exclude", [])
        return tuple(
            name
            for name in self.shape.names
            if any(fnmatchcase(name, p) for p in chosen) and not any(fnmatchcase(name, p) for p in left_out)
        )

    def for_the_oracle(self) -> oracle.Table:
        return oracle.Table(
            tuple(self.shape.names),
            tuple(self.rows),
            self.taking_part if "ind" in self.options["kinds"] else (),
            self.append_only,
            self.as_text,
        )

    def keys(self) -> set[tuple[str, ...]]:
        if "ucc" not in self.options["kinds"]:
            return set()
        found = key_oracle.minimal_uniques(self.rows, self.shape.n_columns, self.options["nulls"])
        return {tuple(self.shape.names[c] for c in sorted(key)) for key in found}


@dataclass(frozen=True)
class Truth:
    """What the oracle says of all tables at one version."""

    database: dict[str, oracle.Table]
    partial: dict[tuple[oracle.Column, oracle.Column], oracle.Inclusion]  # of any error
    with_empty: set[tuple[oracle.Column, oracle.Column]]
    keys: dict[str, set[tuple[str, ...]]]
    wide: set[tuple[oracle.Side, oracle.Side]]

    @classmethod
    def of(cls, held: dict[str, Held]) -> Truth:
        database = {name: h.for_the_oracle() for name, h in held.items()}
        keys = {name: h.keys() for name, h in held.items()}
        return cls(
            database,
            oracle.inclusions(database, max_error=1.0),
            set(oracle.inclusions(database, with_empty=True)),
            keys,
            oracle.wide_inclusions(database, keys),
        )

    def unary(self, max_error: float = 0.0) -> dict[tuple[oracle.Column, oracle.Column], oracle.Inclusion]:
        return {pair: one for pair, one in self.partial.items() if one.error <= max_error}

    @property
    def all_sides(self) -> set[tuple[oracle.Side, oracle.Side]]:
        """The exact INDs of any arity."""
        return {((t, (a,)), (u, (b,))) for (t, a), (u, b) in self.unary()} | self.wide

    def missing(self, sides: tuple[oracle.Side, oracle.Side]) -> set[Any]:
        (t, [a]), (u, [b]) = sides
        return oracle.missing_values(self.database, (t, a), (u, b))


class Inds(RuleBasedStateMachine):
    """A workspace with several tables, next to lists of their rows."""

    colliding = False  # whether texts are hashed to two bits
    themes: ClassVar = THEMES
    sizes: Sequence[int] = (2, 3, 1, 5, 2, 3, 12, 0)
    kinds: Sequence[tuple[str, ...]] = (("ucc", "ind"), ("ind",), ("ind", "ucc"), ("ucc",))
    plain_only = False  # no patterns, no texts

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.make_small()
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-"))
        self.ws = holdfast.open(self.folder / "w", engine="inline")
        self.held: dict[str, Held] = {}
        self.truth = Truth.of({})
        self.recorded: dict[int, Truth] = {}
        self.dropped: dict[str, Held] = {}

    def make_small(self) -> None:
        """Limits so small that a dozen rows pass them."""
        self.patch.setattr(relation, "MERGE_FANOUT", 3)
        self.patch.setattr(generator, "MERGE_FANOUT", 3)
        self.patch.setattr(generator, "SMALLEST_TIER", 4)
        self.patch.setattr(generator, "PART_ENTRIES", 8)
        self.patch.setattr(inds, "MAX_SUMS", 3)
        if self.colliding:
            honest = codes.hash_texts
            self.patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)

    def teardown(self) -> None:
        for version in self.recorded:
            self.check_version(version)
        self.ws.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.patch.undo()

    # -- tables ---------------------------------------------------------------------------------------

    def new_table(self, data: st.DataObject, options: dict[str, Any] | None = None) -> Held:
        given = {} if options is None else dict(options)
        given.setdefault("kinds", data.draw(st.sampled_from(self.kinds)))
        given.setdefault("nulls", data.draw(st.sampled_from(["equal", "distinct"])))
        if options is None and "ind" in given["kinds"]:
            given["append_only"] = data.draw(st.sampled_from([False, False, True]))
            if not self.plain_only:
                given["as_text"] = data.draw(st.sampled_from([False, False, False, True]))
                given |= data.draw(
                    st.sampled_from([{}, {}, {"columns": ["c[02]"]}, {"exclude": ["c1"]}, {"columns": ["*"]}])
                )
        shape = data.draw(shapes_of(self.theme, self.sizes))
        if options is None:
            given["row_key"] = data.draw(st.sampled_from([(), (shape.names[0],)]))
        least = data.draw(st.sampled_from([3, 5, 0]))
        rows = data.draw(shape.rows(min_size=least, max_size=7))
        if data.draw(st.booleans()):  # without duplicates, so that it has keys
            rows = list({canonical_row(row): row for row in rows}.values())
        return Held(shape, given, rows)

    @initialize(data=st.data(), together=st.booleans())
    def track_the_first(self, data: st.DataObject, together: bool) -> None:
        self.theme = data.draw(st.sampled_from(self.themes))
        if together:
            options = {"kinds": data.draw(st.sampled_from(self.kinds[:2])), "nulls": "equal"}
            new = {name: self.new_table(data, options) for name in NAMES[:2]}
            before = self.truth
            self.held |= new
            self.settle()
            change = self.ws.track_all({name: h.table(h.rows) for name, h in new.items()}, **options)
            assert change.version == self.ws.version == 1
            self.check_change(change, before)
        else:
            for name in NAMES[:2]:
                self.track_one(name, self.new_table(data))

    def track_one(self, name: str, held: Held) -> None:
        before, version = self.truth, self.ws.version
        self.held[name] = held
        self.settle()
        change = self.ws.track(name, held.table(held.rows), **held.options)
        assert change.version == self.ws.version == version + 1
        assert (change.n_inserted, change.n_rows) == (len(held.rows), len(held.rows))
        self.check_change(change, before)

    def settle(self) -> None:
        """Ask the oracle anew: the rows have changed."""
        self.truth = Truth.of(self.held)

    def some(self, data: st.DataObject, condition: Callable[[Held], bool] = lambda _: True) -> str | None:
        names = sorted(name for name, held in self.held.items() if condition(held))
        return data.draw(st.sampled_from(names)) if names else None

    @precondition(lambda self: 0 < len(self.held) < len(NAMES))
    @rule(data=st.data())
    def track_another(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([n for n in NAMES if n not in self.held]))
        self.track_one(name, self.new_table(data))

    @precondition(lambda self: self.dropped and len(self.held) < len(NAMES))
    @rule(data=st.data())
    def track_again(self, data: st.DataObject) -> None:
        """A table that was dropped, with the rows it had."""
        names = sorted(set(self.dropped) - set(self.held))
        if names:
            name = data.draw(st.sampled_from(names))
            self.track_one(name, self.dropped.pop(name))

    @precondition(lambda self: len(self.held) > 1)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        name = self.some(data)
        assert name is not None
        self.dropped[name] = self.held.pop(name)
        version = self.ws.drop(name)
        assert version == self.ws.version
        self.settle()
        self.record()

    # -- batches --------------------------------------------------------------------------------------

    def apply(self, name: str, rows_after: list[Row], **batch: pa.Table) -> None:
        """Check a batch, apply it, and hold the one against the other."""
        version, before = self.ws.version, self.truth
        foretold = self.ws.check(name, **batch)
        assert foretold.version == self.ws.version == version
        self.matches_the_oracle()  # nothing was applied
        self.held[name].rows = rows_after
        self.settle()
        change = self.ws.apply(name, **batch)
        assert change.version == self.ws.version == version + 1
        assert [c.to_dict() for c in foretold.changes] == [c.to_dict() for c in change.changes]
        for what in ("n_inserted", "n_deleted", "n_rows", "tables"):
            assert getattr(foretold, what) == getattr(change, what), what
        assert change.n_rows == len(rows_after)
        self.check_change(change, before)

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        name = self.some(data)
        if name is not None:
            held = self.held[name]
            new = data.draw(held.shape.rows(min_size=1, max_size=5))
            self.apply(name, [*held.rows, *new], inserts=held.table(new))

    @rule(data=st.data())
    def insert_references(self, data: st.DataObject) -> None:
        """Rows whose cells are those of one row of a table each: INDs of several columns hold."""
        name, other = self.some(data), self.some(data, lambda held: bool(held.rows))
        if name is None or other is None:
            return
        held, parent = self.held[name], self.held[other]
        types = {*held.shape.schema.types, *parent.shape.schema.types}
        if len(types) > 1:
            return
        cells = st.integers(0, parent.shape.n_columns - 1)
        at = data.draw(st.tuples(*([cells] * held.shape.n_columns)))
        rows = data.draw(st.lists(st.sampled_from(parent.rows), min_size=1, max_size=4))
        new = [tuple(row[c] for c in at) for row in rows]
        self.apply(name, [*held.rows, *new], inserts=held.table(new))

    @rule(data=st.data())
    def insert_copies(self, data: st.DataObject) -> None:
        """Rows that are there already: frequencies change, INDs do not."""
        name = self.some(data, lambda held: bool(held.rows))
        if name is not None:
            held = self.held[name]
            new = data.draw(st.lists(st.sampled_from(held.rows), min_size=1, max_size=3))
            self.apply(name, [*held.rows, *new], inserts=held.table(new))

    @rule(data=st.data())
    def insert_again(self, data: st.DataObject) -> None:
        name = self.some(data, lambda held: bool(held.deleted))
        if name is not None:
            held = self.held[name]
            row = data.draw(st.sampled_from(held.deleted))
            self.apply(name, [*held.rows, row], inserts=held.table([row]))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = self.some(data, lambda held: bool(held.rows) and not held.append_only)
        if name is not None:
            held = self.held[name]
            at_most = data.draw(st.sampled_from([1, 2, 5]))
            gone = list(data.draw(batches(held.shape, held.rows, at_most)).deletes)
            held.deleted = [*held.deleted, *gone][-10:]
            self.apply(name, _without(held.rows, gone), deletes=held.table(gone))

    @precondition(lambda self: self.truth.wide)
    @rule(data=st.data())
    def delete_referenced(self, data: st.DataObject) -> None:
        """Every row that a row of another table refers to by several columns."""
        (t, columns), (u, others) = data.draw(st.sampled_from(sorted(self.truth.wide)))
        child, held = self.held[t], self.held[u]
        if held.append_only:
            return
        wanted, there = (
            [[oracle.comparable(row[h.shape.names.index(n)], h.as_text) for n in names] for row in h.rows]
            for h, names in ((child, columns), (held, others))
        )
        part = data.draw(st.sampled_from(wanted))
        gone = [
            row
            for row, values in zip(held.rows, there, strict=True)
            if all(v is None or v == w for v, w in zip(part, values, strict=True))
        ]
        held.deleted = [*held.deleted, *gone][-10:]
        self.apply(u, _without(held.rows, gone), deletes=held.table(gone))

    @rule(data=st.data())
    def delete_everything(self, data: st.DataObject) -> None:
        """Columns without values take part in nothing."""
        name = self.some(data, lambda held: bool(held.rows) and not held.append_only)
        if name is not None:
            held = self.held[name]
            held.deleted = [*held.deleted, *held.rows][-10:]
            self.apply(name, [], deletes=held.table(held.rows))

    @rule(data=st.data())
    def mixed(self, data: st.DataObject) -> None:
        name = self.some(data, lambda held: not held.append_only)
        if name is not None:
            held = self.held[name]
            batch = data.draw(batches(held.shape, held.rows))
            held.deleted = [*held.deleted, *batch.deletes][-10:]
            self.apply(
                name,
                [*_without(held.rows, batch.deletes), *batch.inserts],
                deletes=held.table(batch.deletes),
                inserts=held.table(batch.inserts),
            )

    @rule(data=st.data())
    def update_rows(self, data: st.DataObject) -> None:
        """Rows before and after, of which some cells are as they were."""
        name = self.some(data, lambda held: bool(held.rows) and not held.append_only)
        if name is None:
            return
        held = self.held[name]
        before = data.draw(batches(held.shape, held.rows)).deletes
        if before:
            drawn = data.draw(held.shape.rows(min_size=len(before), max_size=len(before)))
            kept = data.draw(st.sets(st.integers(0, held.shape.n_columns - 1)))
            after = [
                tuple(old[c] if c in kept else new[c] for c in range(held.shape.n_columns))
                for old, new in zip(before, drawn, strict=True)
            ]
            self.apply(
                name,
                [*_without(held.rows, before), *after],
                before=held.table(before),
                after=held.table(after),
            )

    @rule(data=st.data())
    def update_by_row_key(self, data: st.DataObject) -> None:
        """New values for some columns of one row; refused if its key names several."""
        name = self.some(data, lambda held: bool(held.rows and held.row_key) and not held.append_only)
        if name is None:
            return
        held = self.held[name]
        row = data.draw(st.sampled_from(held.rows))
        changed = data.draw(st.sets(st.sampled_from(held.shape.names[1:]), min_size=1))
        drawn = data.draw(held.shape.row())
        new = tuple(drawn[c] if n in changed else row[c] for c, n in enumerate(held.shape.names))
        updates = held.table([new], [n for n in held.shape.names if n in changed or n in held.row_key])
        alike = [r for r in held.rows if canonical_row(r)[0] == canonical_row(row)[0]]
        if len(alike) > 1:
            self.refused(AmbiguousRowError, name, updates=updates)
        else:
            self.apply(name, [*_without(held.rows, [row]), new], updates=updates)

    @precondition(lambda self: len(self.held) > 1)
    @rule(data=st.data())
    def several_tables(self, data: st.DataObject) -> None:
        """A parent and its children arrive as one change."""
        names = data.draw(st.lists(st.sampled_from(sorted(self.held)), min_size=2, max_size=3, unique=True))
        drawn: dict[str, dict[str, pa.Table]] = {}
        after: dict[str, list[Row]] = {}
        for name in names:
            held = self.held[name]
            batch = data.draw(batches(held.shape, held.rows, max_rows=3))
            gone = () if held.append_only else batch.deletes
            drawn[name] = {"inserts": held.table(batch.inserts)}
            if not held.append_only:
                drawn[name]["deletes"] = held.table(gone)
            after[name] = [*_without(held.rows, gone), *batch.inserts]
        before, version = self.truth, self.ws.version
        foretold = self.ws.check_all(drawn)
        assert foretold.version == self.ws.version == version
        for name in names:
            self.held[name].rows = after[name]
        self.settle()
        change = self.ws.apply_all(drawn)
        assert change.version == self.ws.version == version + 1
        assert [c.to_dict() for c in foretold.changes] == [c.to_dict() for c in change.changes]
        assert {t.table: t.n_rows for t in change.tables} == {name: len(after[name]) for name in names}
        self.check_change(change, before)

    # -- batches that are refused ---------------------------------------------------------------------

    def refused(self, error: type[HoldfastError], name: str, words: str = "", **batch: pa.Table) -> None:
        version = self.ws.version
        for attempt in (self.ws.check, self.ws.apply):
            with pytest.raises(error, match="Nothing was applied") as raised:
                attempt(name, **batch)
            assert words in str(raised.value)
        assert self.ws.version == version
        self.matches_the_oracle()

    def absent(self, data: st.DataObject, name: str) -> list[Row]:
        """A row, once more than the table has it."""
        held = self.held[name]
        row = data.draw(held.shape.row())
        return [row] * (1 + sum(canonical_row(r) == canonical_row(row) for r in held.rows))

    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        ways = [self.delete_too_often, self.one_bad_table_of_several, self.delete_from_append_only]
        data.draw(st.sampled_from(ways))(data)

    def delete_too_often(self, data: st.DataObject) -> None:
        """The whole batch is rejected, its good rows too."""
        name = self.some(data, lambda held: not held.append_only)
        if name is not None:
            held = self.held[name]
            deletes, inserts = self.absent(data, name), data.draw(held.shape.rows(max_size=3))
            self.refused(AbsentRowError, name, deletes=held.table(deletes), inserts=held.table(inserts))

    def one_bad_table_of_several(self, data: st.DataObject) -> None:
        """Nothing of any table is applied."""
        bad = self.some(data, lambda held: not held.append_only)
        if bad is None or len(self.held) < 2:
            return
        good = data.draw(st.sampled_from(sorted(set(self.held) - {bad})))
        new = data.draw(self.held[good].shape.rows(min_size=1, max_size=3))
        batch = {
            good: {"inserts": self.held[good].table(new)},
            bad: {"deletes": self.held[bad].table(self.absent(data, bad))},
        }
        version = self.ws.version
        for attempt in (self.ws.check_all, self.ws.apply_all):
            with pytest.raises(AbsentRowError, match="Nothing was applied"):
                attempt(batch)
        assert self.ws.version == version

    def delete_from_append_only(self, data: st.DataObject) -> None:
        name = self.some(data, lambda held: bool(held.rows) and held.append_only)
        if name is None:
            return
        held = self.held[name]
        row = [data.draw(st.sampled_from(held.rows))]
        batch = data.draw(
            st.sampled_from(
                [{"deletes": row}, {"before": row, "after": row}, {"deletes": row, "inserts": row}]
            )
        )
        self.refused(
            HoldfastError, name, repr(name), **{part: held.table(rows) for part, rows in batch.items()}
        )

    # -- what changes nothing -------------------------------------------------------------------------

    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        name = self.some(data)
        if name is not None:
            version = self.ws.merge(name)
            assert version == self.ws.version
            self.record()

    @rule(data=st.data())
    def pause(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from([self.restart, self.restart, self.tidy, self.verify]))()

    def restart(self) -> None:
        """What the next process sees is what is on disk."""
        self.ws.close()
        self.ws = holdfast.open(self.folder / "w", engine="inline", create=False)

    def tidy(self) -> None:
        """Nothing that old versions are read from is litter."""
        self.ws.tidy(grace_s=0)

    def verify(self) -> None:
        assert self.ws.verify() > 0

    # -- what must hold -------------------------------------------------------------------------------

    def record(self) -> None:
        self.recorded[self.ws.version] = self.truth

    def check_change(self, change: Change, before: Truth) -> None:
        """The report is the difference of the covers; what it names is really there."""
        after = self.truth
        told = [c for c in change.changes if isinstance(c.dependency, Ind)]
        by_sides = {_sides(c.dependency): c for c in told}
        assert len(by_sides) == len(told)
        old, new = before.all_sides, after.all_sides
        assert {s for s, c in by_sides.items() if c.event == "appeared"} == new - old
        assert {s for s, c in by_sides.items() if c.event != "appeared"} == old - new
        for sides, c in by_sides.items():
            assert c.reason.rstrip(":, ") == c.reason != ""
            if len(sides[0][1]) == 1:
                pair = _columns(c.dependency)
                assert pair not in after.partial or _inclusion(c.dependency) == after.partial[pair]
                if c.event != "appeared":
                    self.check_broken(sides, c)
            elif c.event != "appeared":
                self.check_broken_composite(sides, c)
        assert change.n_inds in (None, len(new))
        keys = {
            (c.dependency.table, c.dependency.columns): c
            for c in change.changes
            if isinstance(c.dependency, Ucc)
        }
        had = {(t, k) for t, found in before.keys.items() for k in found}
        has = {(t, k) for t, found in after.keys.items() for k in found}
        assert {k for k, c in keys.items() if c.event == "appeared"} == has - had
        assert {k for k, c in keys.items() if c.event != "appeared"} == had - has
        self.record()

    def check_broken(self, sides: tuple[oracle.Side, oracle.Side], change: DependencyChange) -> None:
        """The values named are missing, and the rows shown carry them."""
        (table, [column]), _ = sides
        missing = self.truth.missing(sides)
        if not missing:  # the column has no value left, or is missing nothing but takes part no more
            assert not change.values
            return
        assert change.event == "broke"
        held = self.held[table]
        position = held.shape.names.index(column)
        spelled: dict[Any, set[Any]] = {}
        for row in held.rows:
            value = oracle.comparable(row[position], held.as_text)
            if value in missing:
                spelled.setdefault(value, set()).update(_spellings(row[position]))
        named = [next((v for v, texts in spelled.items() if told in texts), None) for told in change.values]
        assert None not in named, (change.values, spelled)
        assert len(set(named)) == len(named) == min(VALUES_SHOWN, len(missing))
        there = Counter(self.plain_row(held, row) for row in held.rows)
        assert len(change.witnesses) == len(named)
        for value, [witness] in zip(named, change.witnesses, strict=True):
            assert tuple(witness.values[n] for n in held.shape.names) in there
            assert witness.values[column] in spelled[value]

    def check_broken_composite(
        self, sides: tuple[oracle.Side, oracle.Side], change: DependencyChange
    ) -> None:
        """The rows shown are there, and what is not NULL in them occurs in no row of the referenced table."""
        (table, columns), (other, others) = sides
        database, parts = self.truth.database, zip(columns, others, strict=True)
        assert change.event == "broke"
        assert len(change.values) == len(change.witnesses) <= VALUES_SHOWN
        by_column = all(((table, a), (other, b)) in self.truth.unary() for a, b in parts)
        if by_column and any(set(key) <= set(others) for key in self.truth.keys[other]):
            assert change.witnesses  # it was neither one of its columns nor the key
        held = self.held[table]
        there = {self.plain_row(held, row): row for row in held.rows}
        for told, [witness] in zip(change.values, change.witnesses, strict=True):
            assert list(told) == [witness.values[c] for c in columns]
            row = there[tuple(witness.values[n] for n in held.shape.names)]
            alone = {"row": replace(database[table], rows=[row]), "all": database[other]}
            assert not oracle.holds(alone, ("row", columns), ("all", others))

    def plain_row(self, held: Held, row: Row) -> tuple[Any, ...]:
        [values] = held.table([row]).to_pylist()
        return tuple(plain(v + 0.0 if isinstance(v, float) else v) for v in values.values())

    @precondition(lambda self: self.held)
    @invariant()
    def matches_the_oracle(self) -> None:
        self.check_truth(self.truth, None)
        assert self.ws.tables() == sorted(self.held)
        for name, held in self.held.items():
            assert self.ws.n_rows(name) == len(held.rows)
        told = {frozenset(columns): n for columns, n in self.ws.inds.clusters()}
        assert told == oracle.clusters(self.truth.database)

    def check_truth(self, truth: Truth, at: int | None) -> None:
        for max_error in (0.0, 0.5, 1.0):
            found = self.ws.dependencies(kind="ind", at=at, max_error=max_error)
            unary = [d for d in found if isinstance(d, Ind) and len(d.dependent.columns) == 1]
            told = {_columns(d): _inclusion(d) for d in unary}
            assert len(told) == len(unary)
            assert told == truth.unary(max_error)
            wide = [_sides(d) for d in found if isinstance(d, Ind) and len(d.dependent.columns) > 1]
            assert len(set(wide)) == len(wide)
            if max_error == 0.0:
                assert set(wide) == truth.wide
        empty = self.ws.dependencies(kind="ind", at=at, with_empty=True)
        assert {_columns(d) for d in empty if len(d.dependent.columns) == 1} == truth.with_empty
        keys = {(d.table, d.columns) for d in self.ws.dependencies(kind="ucc", at=at)}
        assert keys == {(t, k) for t, found in truth.keys.items() for k in found}

    def check_version(self, version: int) -> None:
        self.check_truth(self.recorded[version], version)

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        self.check_version(data.draw(st.sampled_from(sorted(self.recorded))))
        self.read_the_log()

    def read_the_log(self) -> None:
        """The ledger's changes, folded, are the cover; every commit is a version."""
        folded: set[tuple[oracle.Side, oracle.Side]] = set()
        by_version: dict[int, list[Any]] = {}
        for entry in self.ws.log():
            by_version.setdefault(entry.version, []).extend(entry.changes)
        assert sorted(by_version) == sorted(self.recorded)
        for version, changes in sorted(by_version.items()):
            for c in changes:
                if c.kind == "ind":
                    sides = _sides(Ind.from_dict(c.dependency))
                    assert (c.change == "appeared") == (sides not in folded)
                    folded ^= {sides}
            assert folded == self.recorded[version].all_sides


class CollidingInds(Inds):
    """The same contract where almost all texts share a hash."""

    colliding = True
    themes: ClassVar = HASHED


class CompositeInds(Inds):
    """The same contract where INDs of several columns are many: columns of one type with few values."""

    themes: ClassVar = [("int",), ("text",)]
    sizes = (2, 3, 2, 4)
    kinds = (("ucc", "ind"), ("ucc", "ind"))
    plain_only = True


class CollidingCompositeInds(CompositeInds):
    colliding = True
    themes: ClassVar = [("text",), ("very wide decimal",)]


def _sides(ind: Dependency) -> tuple[oracle.Side, oracle.Side]:
    assert isinstance(ind, Ind)
    return (ind.dependent.table, ind.dependent.columns), (ind.referenced.table, ind.referenced.columns)


def _columns(ind: Dependency) -> tuple[oracle.Column, oracle.Column]:
    (t, [a]), (u, [b]) = _sides(ind)
    return (t, a), (u, b)


def _inclusion(ind: Dependency) -> oracle.Inclusion:
    assert isinstance(ind, Ind)
    return oracle.Inclusion(ind.missing_values, ind.missing_rows, ind.error, ind.coverage)


def _spellings(value: Any) -> set[Any]:
    """How a report may spell a value: as JSON carries it; a decimal with its zeros or without."""
    if isinstance(value, float):
        value += 0.0
    found = {plain(value)}
    if isinstance(value, Decimal):
        found |= {f"{value:f}", f"{value.normalize():f}"}
    return found


def _without(rows: list[Row], gone: Sequence[Row]) -> list[Row]:
    """The rows with one occurrence of each of `gone` removed."""
    left = [canonical_row(r) for r in gone]
    kept = []
    for row in rows:
        if canonical_row(row) in left:
            left.remove(canonical_row(row))
        else:
            kept.append(row)
    assert not left
    return kept


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize(
    ("machine", "n"), [(Inds, 10), (CollidingInds, 5), (CompositeInds, 12), (CollidingCompositeInds, 4)]
)
def test_inds(machine: type[Inds], n: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=14, deadline=None, suppress_health_check=QUIET),
    )


# Numbers of histories that take about as long each: see the budget in tests/README.md.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "n"), [(Inds, 65), (CollidingInds, 75), (CompositeInds, 120), (CollidingCompositeInds, 55)]
)
def test_inds_at_length(machine: type[Inds], n: int, record_property: Callable[[str, object], None]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=40, deadline=None, suppress_health_check=QUIET),
    )
    record_property("histories", n)
