"""The contract of functional dependencies: after any history of batches, what the oracle says of the rows.

The machine of keys drives two tables with the same rows, one with counted evidence and one with witnessed.
After every step both must have the oracle's minimal FDs (so the two are equal), the counted one also its
approximate FDs and keys with their errors, and the agree sets of all pairs of rows with their numbers. Every
report must be the difference of what held before and after, with rows that really violate what broke.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from holdfast.core.cover import approximate, cover, history
from holdfast.core.evidence import comparison, counted, evidence_files, refute, selective, validation
from holdfast.core.evidence import witnessed as evidence
from holdfast.core.evidence.kernels import agree_index, partitions
from holdfast.core.words.change import Change, DependencyChange, Pair
from holdfast.core.words.dependency import Fd
from holdfast.errors import HoldfastError
from holdfast.functional import fd_counted, fd_cover, fd_evidence, fd_witnessed, keys
from machines.test_keys import QUIET, Keys
from reference import fds as oracle
from reference import keys as key_oracle
from reference.keys import Combination, Row, canonical_row
from strategies import VARIED, Shape, varied_shapes

COUNTED, WITNESSED = TABLES = ("counted", "witnessed")
ERRORS = (None, 0.05, 0.2, 0.5)
EVENTS = ("appeared", "broke", "implied", "within", "beyond")
# Limits of production that small tables never reach: with these, they take the other paths.
OTHER_LIMITS: list[tuple[Any, str, Any]] = [
    (fd_counted, "TRIED_FROM", {1: 0, 2: 0}),
    (selective, "PROBED_ALWAYS", 0),
    (fd_witnessed, "PAIRS_PER_ROW", 0),
    (keys, "PAIRS_PER_ROW", 0),
    (evidence_files, "DELTAS_FROM", 0),
    (evidence_files, "DELTA_SHARE", 1e9),
    (evidence_files, "DELTAS_SHARE", 1e9),
    (evidence_files, "MAX_DELTAS", 2),
    (comparison, "TASK_COMPARE", 8),
    (validation, "GATHER_VALUES", 8),
    (validation, "MATRIX_VALUES", 0),
    (validation, "NARROWED_ROWS", 0),
    (validation, "SAMPLE_ROWS", 1),
    (validation, "CLUSTER_ROWS", 2),
    (partitions, "CHUNK_VALUES", 4),
    (partitions, "KEY_CHUNKS", 1),
    (partitions, "PAIRS_EACH", 0),
    (partitions, "PAIRS_A_ROW", 1),
    (partitions, "LEAF_ROWS", 2),
    (partitions, "MAX_MASKS", 2),
    (agree_index, "WORDS_PER_CALL", 4),
    (approximate, "MAX_COLUMNS_FOR_SUMS", 0),
    (counted, "MAX_SPARE", 1),
    (cover, "REPAIR_LIMIT", 0),
    (fd_cover, "MOST_CHANGED", 10**9),
    (evidence, "RESERVE", 1),
    (fd_evidence, "RESERVE", 1),
    (history, "FEW_COMMITS", 1),
    (refute, "PART_ROWS", 3),
]
Columns = tuple[str, ...]
Named = tuple[Columns, str | None]  # left- and right-hand side; a key has no right-hand side


@dataclass(frozen=True)
class Truth:
    """What the oracle says of some rows."""

    n_rows: int
    fds: frozenset[Named]
    keys: frozenset[Named]
    agree_sets: Counter[Columns]


class Fds(Keys):
    """A workspace with two tables of the same rows, next to a list of the rows."""

    n_constant = 0  # further columns, all constant, behind the first one

    def __init__(self) -> None:
        super().__init__()
        self.truth = lru_cache(maxsize=256)(self._truth)
        self.recorded: dict[int, dict[str, list[Row]]] = {}  # version -> the rows of each table
        self.at: dict[str, list[Row]] = {}  # the rows of each table now
        self.batches: dict[str, list[int]] = {}  # the versions that tracked a table or applied a batch to it

    # -- the tables, and what the oracle says of them -------------------------------------------------

    @initialize(
        data=st.data(),
        nulls=st.sampled_from(["equal", "distinct"]),
        max_lhs=st.sampled_from([None, None, 1, 2]),
        max_error=st.sampled_from(ERRORS),
        kinds=st.sampled_from([("fd",), ("ucc", "fd")]),
        together=st.booleans(),
        other_limits=st.booleans(),
    )
    def track(
        self,
        data: st.DataObject,
        nulls: Any,
        max_lhs: int | None,
        max_error: float | None,
        kinds: tuple[str, ...],
        together: bool,
        other_limits: bool,
    ) -> None:
        for module, name, value in OTHER_LIMITS if other_limits else ():
            self.patch.setattr(module, name, value)
        types = ("text", "wide decimal") if self.colliding else tuple(VARIED)
        # With further columns, a row key of one column is never a key of all.
        self.shape: Shape = data.draw(varied_shapes(types, min_columns=2 if self.n_constant else 1))
        self.nulls, self.max_lhs, self.max_error, self.kinds = nulls, max_lhs, max_error, kinds
        self.together = together  # whether a batch to both tables is one commit
        self.row_key = data.draw(st.sampled_from([(), (self.shape.names[0],)]))
        self.rows = data.draw(self.shape.rows(max_size=10))
        self.folded: dict[str, set[Named]] = {}  # the changes of a table, one after the other
        for table in TABLES:
            change = self.ws.track(
                table,
                self.table(self.rows),
                kinds=kinds,
                nulls=nulls,
                row_key=self.row_key,
                max_lhs=max_lhs,
                max_error=max_error if table == COUNTED else None,
                evidence=table,
            )
            self.at[table], self.folded[table] = self.rows, set()
            self.batches[table] = [change.version]
            self.record()
            self.check_change(change, table, None)
        self.tracked = True

    @property
    def constant(self) -> Columns:
        return tuple(f"constant{i}" for i in range(self.n_constant))

    def table(self, rows: list[Row], columns: list[str] | None = None) -> pa.Table:
        found = super().table(rows, columns)
        if columns is None:
            for name in reversed(self.constant):
                found = found.add_column(1, name, pa.array(["same"] * len(rows), pa.string()))
        return found

    def plain_row(self, row: Row) -> tuple[Any, ...]:
        values = super().plain_row(row)
        return (*values[:1], *values[1 + self.n_constant :])

    def names_of(self, columns: Combination) -> Columns:
        return tuple(self.shape.names[c] for c in sorted(columns))

    def agreed(self, columns: Combination) -> Columns:
        """An agree set: every two rows agree on the constant columns."""
        names = self.names_of(columns)
        first = names[:1] if 0 in columns else ()
        return (*first, *self.constant, *names[len(first) :])

    def _truth(self, rows: tuple[Row, ...]) -> Truth:
        n = self.shape.n_columns
        fds = oracle.minimal_fds(rows, n, self.nulls, self.max_lhs)
        return Truth(
            len(rows),
            frozenset(
                [
                    *((self.names_of(lhs), self.shape.names[rhs]) for lhs, rhs in fds),
                    *(((), name) for name in self.constant),
                ]
            ),
            frozenset((self.names_of(key), None) for key in key_oracle.minimal_uniques(rows, n, self.nulls)),
            Counter({self.agreed(s): k for s, k in oracle.agree_counts(rows, self.nulls).items()}),
        )

    def truth_of(self, rows: list[Row]) -> Truth:
        return self.truth(tuple(map(canonical_row, rows)))

    def exact(self, rows: list[Row]) -> set[Named]:
        """The dependencies of the kinds that are tracked."""
        truth = self.truth_of(rows)
        return {*truth.fds, *(truth.keys if "ucc" in self.kinds else ())}

    def approximate(self, rows: list[Row], table: str) -> dict[Named, float]:
        """The minimal FDs and keys within the tracked error."""
        kept = self.max_error is not None and table == COUNTED
        return self.within(rows, self.max_error) if kept else {}

    def within(self, rows: list[Row], max_error: float) -> dict[Named, float]:
        """The minimal FDs and keys within an error, with their errors."""
        total = max(1, oracle.total_pairs(rows))
        n, names = self.shape.n_columns, self.shape.names
        fds = oracle.approximate_fds(rows, n, self.nulls, max_error, self.max_lhs)
        keys = oracle.approximate_keys(rows, n, self.nulls, max_error, self.max_lhs)
        return {
            **{(self.names_of(lhs), names[rhs]): k / total for (lhs, rhs), k in fds.items()},
            **{(self.names_of(columns), None): k / total for columns, k in keys.items()},
            **{((), name): 0.0 for name in self.constant},
        }

    def holds(self, rows: list[Row], dependency: Named) -> bool:
        lhs = [self.shape.names.index(name) for name in dependency[0]]
        if dependency[1] in self.constant:
            return True
        if dependency[1] is None:
            return key_oracle.is_unique(rows, lhs, self.nulls)
        return oracle.holds(rows, lhs, self.shape.names.index(dependency[1]), self.nulls)

    # -- batches --------------------------------------------------------------------------------------

    def apply(self, rows_after: list[Row], **batch: pa.Table) -> None:
        """Check a batch, apply it, and hold the one against the other."""
        self.rows = rows_after
        for tables in [TABLES] if self.together else [(table,) for table in TABLES]:
            before, old = self.ws.version, {table: self.at[table] for table in tables}
            parts = dict.fromkeys(tables, batch)
            foretold = self.ws.check_all(parts)
            assert self.ws.version == foretold.version == before
            self.matches_the_oracle()  # nothing was applied
            change = self.ws.apply_all(parts)
            assert change.version == before + 1
            assert foretold.changes == change.changes
            assert foretold.tables == change.tables
            self.at.update(dict.fromkeys(tables, rows_after))
            self.record()
            for table in tables:
                self.batches[table].append(change.version)
                self.check_change(change, table, old[table])

    @precondition(lambda self: self.tracked and self.rows)
    @rule(data=st.data())
    def swap(self, data: st.DataObject) -> None:
        """Rows go and others come that differ in a column each: FDs break, appear and are implied at once."""
        places = st.integers(0, len(self.rows) - 1)
        gone = data.draw(st.lists(places, unique=True, min_size=1, max_size=6))
        base = data.draw(st.lists(st.sampled_from(self.rows), min_size=1, max_size=3))
        changed, other = data.draw(st.integers(0, self.shape.n_columns - 1)), data.draw(self.shape.row())
        new = [tuple(other[c] if c == changed else v for c, v in enumerate(row)) for row in base]
        self.apply(
            [*(row for i, row in enumerate(self.rows) if i not in gone), *new],
            deletes=self.table([self.rows[i] for i in gone]),
            inserts=self.table(new),
        )

    @precondition(lambda self: self.tracked and len(self.rows) > 3)
    @rule(data=st.data())
    def swap_most(self, data: st.DataObject) -> None:
        """Few rows are left, so that much becomes implied, and one comes."""
        kept = data.draw(st.lists(st.integers(0, len(self.rows) - 1), unique=True, max_size=3))
        new = [data.draw(self.shape.row())]
        self.apply(
            [*(row for i, row in enumerate(self.rows) if i in kept), *new],
            deletes=self.table([row for i, row in enumerate(self.rows) if i not in kept]),
            inserts=self.table(new),
        )

    def refused(self, error: type[HoldfastError], **batch: pa.Table) -> None:
        before = self.ws.version
        for table in TABLES:
            for attempt in (self.ws.check, self.ws.apply):
                with pytest.raises(error, match="Nothing was applied"):
                    attempt(table, **batch)
        assert self.ws.version == before

    @rule()
    def merge(self) -> None:
        for table in TABLES:
            before = self.ws.version
            if self.ws.merge(table) > before:
                self.record()
            assert self.colliding or len(self.ws.writer.tables.state(table).segments) <= 1

    @precondition(lambda self: self.tracked)
    @rule()
    def tidy(self) -> None:
        """Old versions can still be read: their covers stay."""
        self.ws.tidy(grace_s=0.0)

    # -- what is asked --------------------------------------------------------------------------------

    @precondition(lambda self: self.tracked)
    @rule(max_error=st.sampled_from([0.01, 0.05, 0.1, 0.2, 1 / 3, 0.5, 1.0]))
    def within_any_error(self, max_error: float) -> None:
        """Counted evidence answers for any error at the newest version."""
        self.check_approximate(self.rows, max_error)

    @precondition(lambda self: self.tracked)
    @rule(data=st.data(), table=st.sampled_from(TABLES))
    def explain(self, data: st.DataObject, table: str) -> None:
        """Any columns on the left and on the right, in the cover or not."""
        lhs = data.draw(st.sets(st.integers(0, self.shape.n_columns - 1)))
        rhs = data.draw(st.integers(0, self.shape.n_columns - 1))
        names, rows = self.names_of(frozenset(lhs)), self.at[table]
        told = self.ws.fds.explain(table, names, self.shape.names[rhs])
        assert (told.lhs, told.rhs, told.n_rows) == (names, self.shape.names[rhs], len(rows))
        assert told.error == self.ws.fds.error_of(table, names, told.rhs)
        if rhs in lhs:
            assert told.trivial
            assert told.holds
            assert told.violations == told.error == told.g3 == 0
            return
        groups = [values for values in oracle.groups(rows, lhs, rhs, self.nulls) if len(values) > 1]
        inside = {fd for fd in self.truth_of(rows).fds if fd[1] == told.rhs and set(fd[0]) <= set(names)}
        assert {_named(fd) for fd in told.inside} == inside
        assert told.holds == (not groups)
        smaller = any(oracle.holds(rows, lhs - {c}, rhs, self.nulls) for c in lhs)
        if told.minimal is None:  # the cover does not reach that far
            assert told.holds
            assert not inside
            assert self.max_lhs is not None
            assert len(lhs) > self.max_lhs + 1
        else:
            assert told.minimal == (told.holds and not smaller)
        assert told.violations == oracle.violating_pairs(rows, lhs, rhs, self.nulls)
        assert told.error == oracle.g1(rows, lhs, rhs, self.nulls)
        assert told.rows_to_remove == len(rows) - oracle.kept_rows(rows, lhs, rhs, self.nulls)
        assert told.g3 == (told.rows_to_remove / len(rows) if rows else 0)
        assert told.violating_rows == sum(sum(values.values()) for values in groups)
        assert bool(told.groups) == bool(groups)
        agreeing = oracle.agreeing_pairs(rows, lhs, self.nulls)
        assert self.ws.fds.error_of(table, names) == agreeing / max(1, oracle.total_pairs(rows))
        if self.max_lhs is None or len(names) <= self.max_lhs:
            self.check_since(told, table)

    def check_since(self, told: Any, table: str) -> None:
        there = self.history(table)
        spell = [self.holds(rows, (told.lhs, told.rhs)) == told.holds for rows in there.values()]
        turned = len(spell) - next((i for i, same in enumerate(reversed(spell)) if not same), len(spell))
        assert told.since == list(there)[turned]
        assert (told.turned is None) == (turned == 0)
        if told.turned is not None:
            assert told.turned.version == told.since
            assert told.turned_by or told.holds

    @precondition(lambda self: self.tracked)
    @rule(table=st.sampled_from(TABLES))
    def histories(self, table: str) -> None:
        """Each FD that was ever minimal, with the versions at which it held."""
        there = self.history(table)
        ever = {fd for rows in there.values() for fd in self.truth_of(rows).fds}
        told = self.ws.fds.log(table)
        assert {_named(h.fd) for h in told} == ever
        assert len(told) == len(ever)
        for h in told:
            held = {v: self.holds(rows, _named(h.fd)) for v, rows in there.items()}
            told_held = {
                v for v in there if any(s.first <= v <= (s.last or self.ws.version) for s in h.spells)
            }
            assert told_held == {v for v, holds in held.items() if holds}
            assert h.n_versions == len(self.batches[table])
            assert h.n_held == sum(held[v] for v in self.batches[table])
            assert h.holds == held[max(held)]
            assert h.minimal == (_named(h.fd) in self.truth_of(self.at[table]).fds)
            assert all(held[v - 1] and not held[v] for v in h.breaks)

    def history(self, table: str) -> dict[int, list[Row]]:
        """The rows of a table at each version that has it."""
        return {version: rows[table] for version, rows in self.recorded.items() if table in rows}

    pin = None  # of keys: not here

    # -- what must hold -------------------------------------------------------------------------------

    def check_change(self, change: Change, table: str, old: list[Row] | None) -> None:  # type: ignore[override]
        """The report of a batch is the net change, with rows that are really there."""
        [part] = [t for t in change.tables if t.table == table]
        rows = self.at[table]
        before, after = self.exact(old) if old is not None else set(), self.exact(rows)
        assert part.n_rows == len(rows) == len(old or ()) + part.n_inserted - part.n_deleted
        assert part.n("fd") == len(self.truth_of(rows).fds)
        assert part.fields["max_lhs"] == self.max_lhs
        assert part.n("ucc") == (len(self.truth_of(rows).keys) if "ucc" in self.kinds else None)
        told = [c for c in change.changes if c.dependency.table == table]
        by_event: dict[str, dict[Named, float]] = {event: {} for event in EVENTS}
        for c in told:
            assert _named(c.dependency) not in by_event[c.event]
            by_event[c.event][_named(c.dependency)] = c.dependency.error
            if c.event in EVENTS[:3]:
                self.check_event(c, rows, old or [])
        assert set(by_event["appeared"]) == after - before
        assert by_event["broke"].keys() | by_event["implied"].keys() == before - after
        self.check_within(by_event["within"], by_event["beyond"], table, old)
        self.fold_in(table, told)

    def check_event(self, c: DependencyChange, rows: list[Row], old: list[Row]) -> None:
        assert c.reason.rstrip(":, ") == c.reason != ""
        assert self.holds(rows, _named(c.dependency)) == (c.event != "broke")
        if c.event == "broke":
            assert c.witnesses
            assert c.held == (self.held(c.dependency) if isinstance(c.dependency, Fd) else 0)
            if isinstance(c.dependency, Fd) and self.max_error is not None and c.dependency.table == COUNTED:
                assert c.dependency.error == self.error(rows, _named(c.dependency))
        for pair in c.witnesses:
            # What broke is shown by rows that violate it now, what appeared by rows that did before.
            self.check_violation(pair, _named(c.dependency), rows if c.event == "broke" else old)

    def check_pair(self, pair: Pair, columns: Columns, rows: list[Row]) -> None:
        """Two rows that agree on the columns; of wide tables not all values are told."""
        left, right = pair
        assert left.row_id != right.row_id
        assert left.values.keys() == right.values.keys()
        told = [c for c, name in enumerate(self.shape.names) if name in left.values]
        assert len(told) == self.shape.n_columns or self.constant
        there = Counter(tuple(self.plain_row(row)[c] for c in told) for row in rows)
        assert Counter(tuple(w.values[self.shape.names[c]] for c in told) for w in pair) <= there
        for name in columns:
            assert left.values[name] == right.values[name]
            assert self.nulls == "equal" or left.values[name] is not None

    def held(self, fd: Fd) -> int:
        """The versions of its table, before the last batch, at which it held without a break."""
        held = [self.holds(self.recorded[v][fd.table], _named(fd)) for v in self.batches[fd.table][:-1]]
        return next((i for i, holds in enumerate(reversed(held)) if not holds), len(held))

    def check_violation(self, pair: Any, dependency: Named, rows: list[Row]) -> None:
        (left, right), (lhs, rhs) = pair, dependency
        self.check_pair(pair, lhs, rows)
        if rhs is not None:
            assert rhs in left.values
            a, b = left.values[rhs], right.values[rhs]
            assert a != b or (self.nulls == "distinct" and a is None)

    def check_within(
        self, within: dict[Named, float], beyond: dict[Named, float], table: str, old: list[Row] | None
    ) -> None:
        """What entered and left the minimal ones within the tracked error, but for FDs that hold exactly.

        Tracking a table tells only those.
        """
        if old is None:
            assert not within
            assert not beyond
            return
        rows = self.at[table]
        before, after = self.approximate(old, table), self.approximate(rows, table)
        new, gone = after.keys() - before.keys(), before.keys() - after.keys()
        assert within == {d: after[d] for d in new - self.truth_of(rows).fds}
        assert beyond == {d: self.error(rows, d) for d in gone - self.truth_of(old).fds}

    def error(self, rows: list[Row], dependency: Named) -> float:
        lhs, rhs = [self.shape.names.index(name) for name in dependency[0]], dependency[1]
        if rhs is not None:
            return oracle.g1(rows, lhs, self.shape.names.index(rhs), self.nulls)
        return oracle.agreeing_pairs(rows, lhs, self.nulls) / max(1, oracle.total_pairs(rows))

    def fold_in(self, table: str, told: list[DependencyChange]) -> None:  # type: ignore[override]
        folded = self.folded[table]
        for c in told:
            if c.event == "appeared":
                assert _named(c.dependency) not in folded
                folded.add(_named(c.dependency))
            elif c.event in ("broke", "implied"):
                folded.remove(_named(c.dependency))
        assert folded == self.exact(self.at[table])

    def record(self) -> None:
        self.recorded[self.ws.version] = dict(self.at)

    def check_version(self, version: int) -> None:
        assert self.ws.tables(at=version) == sorted(self.recorded[version])
        for table, rows in self.recorded[version].items():
            assert self.fds(table, at=version) == self.truth_of(rows).fds
            assert self.ws.n_rows(table, at=version) == len(rows)
        if self.max_error is not None:
            self.check_approximate(self.recorded[version][COUNTED], self.max_error, at=version)

    def fds(self, table: str, **where: Any) -> set[Named]:
        found = self.ws.dependencies(kind="fd", table=table, **where)
        assert all(isinstance(d, Fd) and d.error == 0 for d in found)
        assert len({_named(d) for d in found}) == len(found)
        return {_named(d) for d in found}

    def check_approximate(self, rows: list[Row], max_error: float, **where: Any) -> None:
        expected = self.within(rows, max_error)
        for kind in ("fd", "ucc"):
            found = self.ws.dependencies(kind=kind, table=COUNTED, max_error=max_error, **where)
            assert len({_named(d) for d in found}) == len(found)
            wanted = {d: error for d, error in expected.items() if (d[1] is None) == (kind == "ucc")}
            assert {_named(d): d.error for d in found} == wanted

    @precondition(lambda self: self.tracked)
    @rule()
    def read_the_log(self) -> None:
        """The ledger's changes, folded, are the cover at every version."""
        for table in TABLES:
            folded: set[Named] = set()
            there = [v for v, rows in self.recorded.items() if table in rows]
            log = self.ws.log(table)
            assert {e.version for e in log} <= set(there)
            changes = {e.version: e.changes for e in log}
            for version in there:
                for c in changes.get(version, ()):
                    if c.kind != "fd" or c.table != table or c.change in ("within", "beyond"):
                        continue
                    fd = (tuple(c.dependency["lhs"]), c.dependency["rhs"])
                    assert (c.change == "appeared") == (fd not in folded)
                    folded ^= {fd}
                assert folded == self.truth_of(self.recorded[version][table]).fds

    @precondition(lambda self: self.tracked)
    @invariant()
    def matches_the_oracle(self) -> None:
        for table in TABLES:
            truth = self.truth_of(self.at[table])
            assert self.fds(table) == truth.fds
            assert self.ws.n_rows(table) == truth.n_rows
            if "ucc" in self.kinds:
                found = self.ws.dependencies(kind="ucc", table=table)
                assert {_named(d) for d in found} == truth.keys
        agree_sets = self.ws.fds.agree_sets(COUNTED)
        assert dict(agree_sets) == self.truth_of(self.at[COUNTED]).agree_sets
        assert len(dict(agree_sets)) == len(agree_sets)
        if self.max_error is not None:
            self.check_approximate(self.at[COUNTED], self.max_error)


class CollidingFds(Fds):
    """The same contract where almost all texts share a code.

    A collision could break an FD that holds (rows look equal on its left-hand side), and hide that one does
    not (rows look equal on its right-hand side).
    """

    colliding = True


class WideFds(Fds):
    """The same contract where masks have two words."""

    n_constant = 64


def _named(dependency: Any) -> Named:
    return (dependency.lhs, dependency.rhs) if isinstance(dependency, Fd) else (dependency.columns, None)


@pytest.mark.parametrize(("machine", "n"), [(Fds, 14), (CollidingFds, 5), (WideFds, 4)])
def test_fds(machine: type[Fds], n: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=12, deadline=None, suppress_health_check=QUIET),
    )


# Numbers of histories that take about as long each: see the budget in tests/README.md.
@pytest.mark.slow
@pytest.mark.parametrize(("machine", "n"), [(Fds, 75), (CollidingFds, 45), (WideFds, 20)])
def test_fds_at_length(machine: type[Fds], n: int, record_property: Callable[[str, object], None]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=40, deadline=None, suppress_health_check=QUIET),
    )
    record_property("histories", n)
