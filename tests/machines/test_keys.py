"""The contract: after any history of batches, the workspace says what the oracle says of the rows.

A machine drives a real workspace (files, ledger, kernels; engine inline) with inserts, deletes, updates,
mixed and rejected batches, merges and restarts, and keeps the rows in a plain list. After every step keys,
maximal non-uniques and the number of rows must equal the oracle's, and the history must add up.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
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
from holdfast.core.evidence import validation
from holdfast.core.rows import codes, relation
from holdfast.core.words.change import Change, Pair
from holdfast.errors import AbsentRowError, AmbiguousRowError, HoldfastError
from reference import keys as oracle
from reference.keys import Row, canonical_row
from relations import check_evidence
from strategies import VARIED, Shape, batches, varied_shapes

TABLE = "t"


class Keys(RuleBasedStateMachine):
    """A workspace with one table, next to a list of its rows."""

    colliding = False  # whether texts are hashed to two bits

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(relation, "MERGE_FANOUT", 3)
        self.patch.setattr(relation, "MERGED_FEW", 4)
        self.patch.setattr(validation, "NARROWED_ROWS", 0)
        if self.colliding:
            honest = codes.hash_texts
            self.patch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 3)
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-machine-"))
        self.ws = holdfast.open(self.folder / "w", engine="inline")
        self.recorded: dict[int, tuple[Any, int, Any]] = {}  # version -> keys, rows, maximal non-uniques
        self.rows_at: dict[int, list[Row]] = {}  # by version
        self.deleted: list[Row] = []
        self.tracked = False

    def teardown(self) -> None:
        if self.tracked:
            for version in self.recorded:
                self.check_version(version)
        self.ws.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.patch.undo()

    # -- the table, and what the oracle says of it ----------------------------------------------------

    @initialize(
        data=st.data(),
        nulls=st.sampled_from(["equal", "distinct"]),
        bound=st.sampled_from([None, None, 1, 2]),
    )
    def track(self, data: st.DataObject, nulls: Any, bound: int | None) -> None:
        types = ("text", "wide decimal") if self.colliding else tuple(VARIED)
        self.shape: Shape = data.draw(varied_shapes(types))
        self.nulls, self.bound = nulls, bound
        self.row_key = data.draw(st.sampled_from([(), (self.shape.names[0],)]))
        self.rows = data.draw(self.shape.rows(max_size=10))
        change = self.ws.track(
            TABLE, self.table(self.rows), nulls=nulls, row_key=self.row_key, max_columns=bound
        )
        self.tracked = True
        self.fold: set[tuple[str, ...]] = set()
        self.check_change(change, [])

    def table(self, rows: list[Row], columns: list[str] | None = None) -> pa.Table:
        return self.shape.table(rows, columns)

    def named(self, combinations: set[oracle.Combination]) -> set[tuple[str, ...]]:
        return {tuple(self.shape.names[c] for c in sorted(s)) for s in combinations}

    def keys(self, rows: list[Row]) -> set[tuple[str, ...]]:
        return self.named(oracle.minimal_uniques(rows, self.shape.n_columns, self.nulls, self.bound))

    def non_uniques(self, rows: list[Row]) -> set[tuple[str, ...]]:
        return self.named(oracle.maximal_non_uniques(rows, self.shape.n_columns, self.nulls))

    # -- rules ----------------------------------------------------------------------------------------

    def apply(self, rows_after: list[Row], **batch: pa.Table) -> None:
        """Check a batch, apply it, and hold the one against the other."""
        before = self.ws.version
        foretold = self.ws.check(TABLE, **batch)
        assert self.ws.version == before
        assert foretold.version == before
        self.matches_the_oracle()  # nothing was applied
        old, self.rows = self.rows, rows_after
        change = self.ws.apply(TABLE, **batch)
        assert change.version == before + 1
        assert foretold.changes == change.changes
        for field in ("n_inserted", "n_deleted", "n_rows", "tables", "pins"):
            assert getattr(foretold, field) == getattr(change, field), field
        self.check_change(change, old)

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        new = data.draw(self.shape.rows(max_size=5))
        self.apply([*self.rows, *new], inserts=self.table(new))

    @rule(data=st.data())
    def insert_similar(self, data: st.DataObject) -> None:
        """Rows that differ from one another in a column each: they clash on all others, old rows or new."""
        known = self.shape.row() | st.sampled_from(self.rows) if self.rows else self.shape.row()
        base = data.draw(known)
        other = data.draw(self.shape.row())
        columns = data.draw(st.lists(st.integers(0, self.shape.n_columns - 1), min_size=1, max_size=3))
        new = [tuple(other[c] if c == changed else v for c, v in enumerate(base)) for changed in columns]
        self.apply([*self.rows, *new], inserts=self.table(new))

    @rule(data=st.data())
    def insert_copies(self, data: st.DataObject) -> None:
        """Rows that are there already: no key is left."""
        if self.rows:
            new = data.draw(st.lists(st.sampled_from(self.rows), min_size=1, max_size=3))
            self.apply([*self.rows, *new], inserts=self.table(new))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        batch = data.draw(batches(self.shape, self.rows))
        gone = list(batch.deletes)
        self.deleted = [*self.deleted, *gone][-20:]
        self.apply(_without(self.rows, gone), deletes=self.table(gone))

    @rule(data=st.data())
    def mixed(self, data: st.DataObject) -> None:
        batch = data.draw(batches(self.shape, self.rows))
        self.deleted = [*self.deleted, *batch.deletes][-20:]
        self.apply(
            [*_without(self.rows, batch.deletes), *batch.inserts],
            deletes=self.table(list(batch.deletes)),
            inserts=self.table(list(batch.inserts)),
        )

    @precondition(lambda self: self.deleted)
    @rule(data=st.data())
    def insert_again(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.deleted))
        self.apply([*self.rows, row], inserts=self.table([row]))

    @precondition(lambda self: self.tracked and self.rows)
    @rule()
    def delete_everything(self) -> None:
        self.deleted = [*self.deleted, *self.rows][-20:]
        self.apply([], deletes=self.table(self.rows))

    @rule(data=st.data())
    def update_rows(self, data: st.DataObject) -> None:
        """Rows before and after; deletes and inserts in the same batch."""
        batch = data.draw(batches(self.shape, self.rows))
        if not batch.deletes:
            return
        after = data.draw(self.shape.rows(min_size=len(batch.deletes), max_size=len(batch.deletes)))
        self.apply(
            [*_without(self.rows, batch.deletes), *after, *batch.inserts],
            before=self.table(list(batch.deletes)),
            after=self.table(after),
            inserts=self.table(list(batch.inserts)),
        )

    @precondition(lambda self: self.tracked and self.row_key and self.rows)
    @rule(data=st.data())
    def update_by_row_key(self, data: st.DataObject) -> None:
        """New values for some columns of one row; refused if its key names several."""
        row = data.draw(st.sampled_from(self.rows))
        some = (
            data.draw(st.sets(st.sampled_from(self.shape.names[1:]))) if self.shape.n_columns > 1 else set()
        )
        drawn = data.draw(self.shape.row())
        new = tuple(drawn[c] if name in some else row[c] for c, name in enumerate(self.shape.names))
        updates = self.table([new], [n for n in self.shape.names if n in some or n in self.row_key])
        alike = [r for r in self.rows if canonical_row(r)[0] == canonical_row(row)[0]]
        if len(alike) > 1:
            self.refused(AmbiguousRowError, updates=updates)
        else:
            self.apply([*_without(self.rows, [row]), new], updates=updates)

    @precondition(lambda self: self.tracked and self.row_key and self.rows)
    @rule(data=st.data())
    def delete_by_row_key(self, data: st.DataObject) -> None:
        row = data.draw(st.sampled_from(self.rows))
        alike = [r for r in self.rows if canonical_row(r)[0] == canonical_row(row)[0]]
        deletes = self.table([row], list(self.row_key))
        if len(alike) > 1 and self.shape.n_columns > 1:  # a key of all columns names rows in full
            self.refused(AmbiguousRowError, deletes=deletes)
        else:
            self.apply(_without(self.rows, [row]), deletes=deletes)

    @rule(data=st.data())
    def snapshot(self, data: st.DataObject) -> None:
        """The rows as they are to be: some stay, some go, some come; as often as they are said."""
        batch = data.draw(batches(self.shape, self.rows))
        copies = st.lists(st.sampled_from(self.rows), max_size=2) if self.rows else st.just([])
        after = [*_without(self.rows, batch.deletes), *batch.inserts, *data.draw(copies)]
        after = data.draw(st.permutations(after) | st.just([]))
        self.apply(after, snapshot=self.table(after), allow_empty=True)

    @precondition(lambda self: self.tracked and self.row_key)
    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        """New rows, and new values for others; refused if a key names several."""

        def key(row: Row) -> Any:
            return canonical_row(row)[0]

        rows = data.draw(self.shape.rows(max_size=4))
        rows += data.draw(st.lists(st.sampled_from(self.rows), max_size=2)) if self.rows else []
        there, given = Counter(map(key, self.rows)), Counter(map(key, rows))
        if any(n > 1 for n in given.values()) or any(there[k] > 1 for k in given):
            self.refused(AmbiguousRowError, upserts=self.table(rows))
        else:
            others = [row for row in self.rows if key(row) not in given]
            self.apply([*others, *rows], upserts=self.table(rows))

    @rule(data=st.data())
    def delete_too_often(self, data: st.DataObject) -> None:
        """One occurrence more than there is: the whole batch is rejected, its good rows too."""
        row = data.draw(self.shape.row())
        n = sum(canonical_row(r) == canonical_row(row) for r in self.rows)
        good = data.draw(batches(self.shape, self.rows))
        deletes = [row] * (n + 1)
        self.refused(AbsentRowError, deletes=self.table(deletes), inserts=self.table(list(good.inserts)))

    def refused(self, error: type[HoldfastError], **batch: pa.Table) -> None:
        before = self.ws.version
        for attempt in (self.ws.check, self.ws.apply):
            with pytest.raises(error, match="Nothing was applied"):
                attempt(TABLE, **batch)
        assert self.ws.version == before

    @rule()
    def merge(self) -> None:
        version = self.ws.merge(TABLE)
        assert version == self.ws.version
        n_segments = len(self.ws.writer.tables.state(TABLE).segments)
        assert self.colliding or n_segments <= 1
        self.record()

    @rule()
    def restart(self) -> None:
        """What the next process sees is what is on disk."""
        self.ws.close()
        self.ws = holdfast.open(self.folder / "w", engine="inline", create=False)

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        columns = data.draw(st.sets(st.sampled_from(self.shape.names), min_size=1))
        self.ws.pin(TABLE, sorted(columns))
        self.record()

    @rule(data=st.data())
    def explain(self, data: st.DataObject) -> None:
        positions = data.draw(st.sets(st.integers(0, self.shape.n_columns - 1)))
        names = tuple(self.shape.names[c] for c in sorted(positions))
        told = self.ws.explain(TABLE, names)
        unique = oracle.is_unique(self.rows, positions, self.nulls)
        keys = self.keys(self.rows)
        assert told.columns == names
        assert told.unique == unique
        minimal = names in self.named(oracle.minimal_uniques(self.rows, self.shape.n_columns, self.nulls))
        assert told.minimal in (minimal, None)
        assert told.minimal is not None or len(names) > (self.bound or len(names)) + 1
        assert {k.columns for k in told.keys} == {k for k in keys if set(k) <= set(names)}
        assert bool(told.duplicates) == (not unique)
        for pair in told.duplicates:
            self.check_pair(pair, names, self.rows)
        versions = sorted(self.rows_at)
        spell = [oracle.is_unique(self.rows_at[v], positions, self.nulls) for v in versions]
        since = len(spell) - next((i for i, u in enumerate(reversed(spell)) if u != unique), len(spell))
        wide = self.bound is not None and len(names) > self.bound
        assert told.since == versions[since] or (wide and told.since is None)
        assert (told.turned is None) == (since == 0 or told.since is None)
        if told.turned is not None:
            assert told.turned.version == told.since
            assert unique or told.turned_by

    @rule()
    def verify(self) -> None:
        assert self.ws.verify() > 0

    # -- what must hold -------------------------------------------------------------------------------

    def check_change(self, change: Change, old: list[Row]) -> None:
        """The report of a batch says what happened, with rows that are really there."""
        assert change.n_rows == len(self.rows)
        assert change.n_rows == len(old) + change.n_inserted - change.n_deleted
        after, before = self.keys(self.rows), self.keys(old) if old or self.recorded else set()
        by_event = {
            event: {c.dependency.columns for c in change.changes if c.event == event}
            for event in ("appeared", "broke", "implied")
        }
        assert len(change.changes) == sum(map(len, by_event.values()))
        assert by_event["appeared"] == after - before
        assert by_event["broke"] | by_event["implied"] == before - after
        for c in change.changes:
            positions = [self.shape.names.index(n) for n in c.dependency.columns]
            holds = oracle.is_unique(self.rows, positions, self.nulls)
            assert holds == (c.event != "broke")
            if c.event == "broke":
                assert c.witnesses
            for pair in c.witnesses:
                # A broken key is shown by rows that clash now, one that appeared by rows that clashed before.
                self.check_pair(pair, c.dependency.columns, self.rows if c.event == "broke" else old)
        for p in change.pins:
            positions = [self.shape.names.index(n) for n in p.columns]
            assert p.holds == oracle.is_unique(self.rows, positions, self.nulls)
        assert change.tables[0].n("ucc") == len(after)
        self.fold_in(change)
        self.record()

    def check_pair(self, pair: Pair, columns: tuple[str, ...], rows: list[Row]) -> None:
        left, right = pair
        assert left.row_id != right.row_id
        there = Counter(self.plain_row(r) for r in rows)
        told = Counter(tuple(w.values[n] for n in self.shape.names) for w in pair)
        assert told <= there
        for name in columns:
            assert left.values[name] == right.values[name]
            assert self.nulls == "equal" or left.values[name] is not None

    def plain_row(self, row: Row) -> tuple[Any, ...]:
        [values] = self.table([row]).to_pylist()
        return tuple(plain(v + 0.0 if isinstance(v, float) else v) for v in values.values())

    def fold_in(self, change: Change) -> None:
        for c in change.changes:
            if c.event == "appeared":
                assert c.dependency.columns not in self.fold
                self.fold.add(c.dependency.columns)
            else:
                self.fold.remove(c.dependency.columns)
        assert self.fold == self.keys(self.rows)

    def record(self) -> None:
        self.rows_at[self.ws.version] = self.rows
        self.recorded[self.ws.version] = self.keys(self.rows), len(self.rows), self.non_uniques(self.rows)

    def check_version(self, version: int) -> None:
        keys, n_rows, non_uniques = self.recorded[version]
        assert {d.columns for d in self.ws.dependencies(table=TABLE, at=version)} == keys
        assert self.ws.n_rows(TABLE, at=version) == n_rows
        if self.bound is None:
            assert set(self.ws.keys.non_uniques(TABLE, at=version)) == non_uniques

    @precondition(lambda self: self.tracked)
    @rule(data=st.data())
    def travel(self, data: st.DataObject) -> None:
        self.check_version(data.draw(st.sampled_from(sorted(self.recorded))))

    @precondition(lambda self: self.tracked)
    @rule()
    def read_the_log(self) -> None:
        """The ledger's changes, folded, are the cover; every commit is a version."""
        folded: set[tuple[str, ...]] = set()
        log = self.ws.log(TABLE)
        assert [e.version for e in log] == sorted(self.recorded)
        for entry in log:
            for c in entry.changes:
                columns = tuple(c.dependency["columns"])
                assert (c.change == "appeared") == (columns not in folded)
                folded ^= {columns}
            assert folded == self.recorded[entry.version][0]

    @precondition(lambda self: self.tracked)
    @invariant()
    def matches_the_oracle(self) -> None:
        found = self.ws.dependencies(table=TABLE)
        assert {d.columns for d in found} == self.keys(self.rows)
        assert len({d.columns for d in found}) == len(found)
        assert self.ws.n_rows(TABLE) == len(self.rows)
        if self.bound is None:
            assert set(self.ws.keys.non_uniques(TABLE)) == self.non_uniques(self.rows)
        for p in self.ws.pins(TABLE):
            positions = [self.shape.names.index(n) for n in p.columns]
            assert p.holds == oracle.is_unique(self.rows, positions, self.nulls)

    @precondition(lambda self: self.tracked)
    @invariant()
    def evidence_is_saved(self) -> None:
        for table in self.ws.tables():
            check_evidence(self.ws, table)


class CollidingKeys(Keys):
    """The same contract where almost all texts share a code.

    Tables fall into many segments then, validation goes back to the texts, and merges are refused.
    """

    colliding = True


def _without(rows: list[Row], gone: Any) -> list[Row]:
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


@pytest.mark.parametrize(("machine", "n"), [(Keys, 20), (CollidingKeys, 10)])
def test_keys(machine: type[Keys], n: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=14, deadline=None, suppress_health_check=QUIET),
    )


# Numbers of histories that take about as long each: see the budget in tests/README.md.
@pytest.mark.slow
@pytest.mark.parametrize(("machine", "n"), [(Keys, 150), (CollidingKeys, 110)])
def test_keys_at_length(machine: type[Keys], n: int, record_property: Callable[[str, object], None]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=40, deadline=None, suppress_health_check=QUIET),
    )
    record_property("histories", n)
