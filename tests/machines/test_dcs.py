"""The contract of denial constraints: after any history of batches, what the oracle says of the rows.

The machine of functional dependencies drives two tables with the same rows, one with counted evidence and
one with witnessed. After every step both must have the oracle's general DCs over the predicates that were
chosen when they were tracked, the counted one also its approximate DCs with their errors. Every report must
be the difference of what held before and after, with rows that really violate what broke; and what appears
because of new rows must say more than something that they broke (Proposition 1 of the IncDC paper).
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

import holdfast
from holdfast.core.cover.kernels import repair, search, within
from holdfast.core.evidence import comparison, counted, evidence_files, folded_scan, probe, refute
from holdfast.core.evidence import witnessed as evidence
from holdfast.core.evidence.probe_place import Place
from holdfast.core.words.change import Change, DependencyChange
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule
from holdfast.denial import dc_witnessed
from holdfast.denial.access import plan as dc_plan
from machines.test_fds import COUNTED, EVENTS, TABLES, Fds
from machines.test_keys import QUIET
from reference import dcs as oracle
from reference import predicates, row_outcomes
from reference.dcs import Space
from reference.keys import Row
from reference.predicates import Words
from strategies import TYPES, VARIED, Shape

Rule = tuple[Words, ...]
Named = Rule
ERRORS = (None, None, 0.02, 0.1, 0.3)
# What may be chosen has the mirror image of each operator.
CHOICES = (None, None, None, ("=", "!="), ("=", "!=", "<", ">"), ("=", "<=", ">="), ("<", ">"))
VALUES: dict[str, list[Any]] = {
    **{name: VARIED[name] for name in ("int", "uint", "float", "text", "binary", "bool", "date")},
    "wide decimal": VARIED["wide decimal"],
    "small int": [*range(-2, 10)],
    "decimal": [Decimal(n).scaleb(-2) for n in (0, 1, -1, 10**9, 100, *range(2, 9))],
    "timestamp": [dt.datetime(2026, 1, 1 + n // 2, 12 * (n % 2)) for n in range(12)],
    "time": [dt.time(n) for n in range(12)],
}
ORDERED = ("int", "float", "date", "decimal", "timestamp", "time", "uint")
HASHED = ("text", "wide decimal", "binary")
# Limits of production that small tables never reach: with these, they take the other paths.
INDEXED: tuple[tuple[Any, str, Any], ...] = (
    (dc_witnessed, "SCANNED_ROWS", 0),
    (dc_witnessed, "SAMPLE_ROWS", 3),
    (dc_witnessed, "UNSERVED_SHARE", 0),
    (folded_scan, "FOLDED_FROM", 0),
)
IN_PARTS: tuple[tuple[Any, str, Any], ...] = (
    *INDEXED,
    (dc_witnessed, "SAMPLED_PAIRS", 2),
    (dc_witnessed, "ROUND_PAIRS", 2),
    (Place, "BLOCK", 8),
    (probe, "TASK_NS", 100.0),
    (dc_plan, "STATISTICS_ROWS", 3),
    (evidence_files, "DELTAS_FROM", 0),
    (evidence_files, "DELTA_SHARE", 1e9),
    (evidence_files, "DELTAS_SHARE", 1e9),
    (evidence_files, "MAX_DELTAS", 2),
    (evidence_files, "MAX_WITNESS_DELTAS", 2),
    (repair, "BROKEN_SHARE", 0),
    (search, "LOOKS_PER_CALL", 50),
    (search, "FIRST_CAPACITY", 1),
    (search, "MANY_BOUNDED", 8),
    (search, "FIRST_EVIDENCES", 2),
    (within, "LOOKS_PER_CALL", 50),
    (within, "FIRST_CAPACITY", 1),
    (comparison, "TASK_COMPARE", 8),
    (counted, "MAX_SPARE", 1),
    (evidence, "RESERVE", 1),
    (refute, "PART_ROWS", 3),
)
# What is looked for in the whole table is verified constraint by constraint, and never scanned for.
ONE_BY_ONE = (*INDEXED, (dc_plan, "SCANNED_NS", 1e12), (dc_plan, "NS_JOINED", 1e9))
LIMITS = {"usual": (), "indexed": INDEXED, "in parts": IN_PARTS, "one by one": ONE_BY_ONE}


@dataclass(frozen=True)
class Truth:
    """What the oracle says of some rows."""

    n_rows: int
    dcs: frozenset[Named]
    evidence: Counter[int]


@st.composite
def dc_shapes(draw: st.DrawFn, hashed_only: bool = False, min_columns: int = 1) -> Shape:
    """Up to four columns, of which two of one type may share values: a third of them, all, or none.

    Two ordered types with such a pair each would be too much for the oracle.
    """
    some = st.sampled_from(HASHED if hashed_only else (*ORDERED, *HASHED, "bool"))
    twin = draw(some)
    names = [twin] * draw(st.integers(1, 3 if twin in HASHED else 2))
    others = some.filter(lambda name: name != twin)
    least = max(0, min_columns - len(names))
    names += draw(st.lists(others, min_size=least, max_size=4 - len(names), unique=True))
    names = draw(st.permutations(names))
    fields, pools = [], []
    for c, name in enumerate(names):
        size, offset = draw(st.sampled_from([6, 4, 3, 3, 2, 1])), draw(st.sampled_from([0, 0, 1, 3, 6]))
        null = draw(st.sampled_from([False, False, True]))
        pool = VALUES[name][offset : offset + size] or VALUES[name]
        # Widths of integers do not matter: two columns can still be compared.
        type_ = TYPES["small int" if name == "int" and max(map(abs, pool)) < 100 and c % 2 else name][0]
        fields.append(pa.field(f"c{c}", type_))
        pools.append((*pool, *([None] if null else [])))
    return Shape(pa.schema(fields), tuple(pools))


@st.composite
def written_rules(draw: st.DrawFn, shape: Shape) -> Rule:
    """Comparisons of columns of one type; several of the same two, perhaps, that contradict each other."""
    fields = list(shape.schema)
    able = [
        (one.name, op, other.name)
        for one in fields
        for other in fields
        for op in predicates.OPERATORS[: 6 if oracle.ordered(one.type) else 2]
        if oracle.kind_of(one.type) == oracle.kind_of(other.type)
    ]
    return tuple(draw(st.lists(st.sampled_from(able), min_size=1, max_size=4, unique=True)))


def same_rule(one: Rule, other: Rule) -> bool:
    return set(one) in (set(other), set(predicates.mirrored(other)))


def rule_text(asked: Rule, data: st.DataObject) -> str:
    """A rule as it may be written: either row first, and operators as people spell them."""
    said = []
    for left, op, right in asked:
        if data.draw(st.booleans()):
            [(right, op, left)] = predicates.mirrored([(left, op, right)])
            said.append(f"s.{right} {op} t.{left}")
        else:
            said.append(f"t.{left} {op} s.{right}")
    return f"not({' and '.join(said)})"


class Dcs(Fds):
    """A workspace with two tables of the same rows, next to a list of the rows."""

    # -- the tables, and what the oracle says of them -------------------------------------------------

    @initialize(
        data=st.data(),
        nulls=st.sampled_from(["equal", "distinct"]),
        max_predicates=st.sampled_from([None, None, None, 1, 2, 3]),
        operators=st.sampled_from(CHOICES),
        max_error=st.sampled_from(ERRORS),
        together=st.booleans(),
        limits=st.sampled_from(sorted(LIMITS)),
        kinds=st.sampled_from([("dc",), ("dc",), ("ucc", "dc"), ("fd", "dc")]),
    )
    def track(  # type: ignore[override]
        self,
        data: st.DataObject,
        nulls: Any,
        max_predicates: int | None,
        operators: tuple[str, ...] | None,
        max_error: float | None,
        together: bool,
        limits: str,
        kinds: tuple[str, ...],
    ) -> None:
        for module, name, value in LIMITS[limits]:
            self.patch.setattr(module, name, value)
        # With further columns, a row key of one column is never a key of all.
        self.shape: Shape = data.draw(dc_shapes(self.colliding, min_columns=2 if self.n_constant else 1))
        self.nulls, self.max_error, self.together, self.kinds = nulls, max_error, together, kinds
        self.options: dict[str, Any] = {"max_predicates": max_predicates, "operators": operators}
        self.left_out = data.draw(st.sampled_from([(), (), (), tuple(self.shape.names[-1:])]))
        if len(self.left_out) == self.shape.n_columns:
            self.left_out = ()
        self.row_key = data.draw(st.sampled_from([(), (self.shape.names[0],)]))
        self.rows = data.draw(self.shape.rows(max_size=8))
        self.folded: dict[str, set[Named]] = {}  # type: ignore[assignment]
        self.inserting = False  # whether the batch only inserts
        self.fresh = count()
        for table in TABLES:
            change = self.ws.track(
                table,
                self.table(self.rows),
                kinds=self.kinds,
                nulls=nulls,
                row_key=self.row_key,
                max_error=max_error if table == COUNTED else None,
                evidence=table,
                exclude=self.left_out,
                **self.options,
            )
            if table == TABLES[0]:
                self.space = self.space_of(self.ws, table, self.rows)
            assert self.ws.dcs.space(table) == self.ws.dcs.space(TABLES[0])
            self.at[table], self.folded[table] = self.rows, set()
            self.batches[table] = [change.version]
            self.record()
            self.check_change(change, table, None)
        self.tracked = True

    def space_of(self, ws: holdfast.Workspace, table: str, rows: list[Row]) -> Space:
        """The predicates, as many and in the order as the workspace has them."""
        there = [(g.left, g.right, g.ordered) for g in ws.dcs.space(table).groups]
        names = [name for name in self.shape.names if name not in self.left_out]
        by_order = self.options["operators"] is None or not {"=", "!="}.issuperset(self.options["operators"])
        expected = {(a, b, o and by_order) for a, b, o in oracle.groups(rows, self.shape.schema, names)}
        if self.colliding:  # texts that share a code count as shared values
            assert expected <= set(there)
            expected = set(there)
        assert set(there) == expected | {(name, name, by_order) for name in self.constant}
        assert len(there) == len(expected) + self.n_constant
        return Space([g for g in there if g in expected], self.shape.names)

    def table(self, rows: list[Row], columns: list[str] | None = None) -> pa.Table:
        """Constant columns have a number each, so that no two of them are compared."""
        found = self.shape.table(rows, columns)
        if columns is None:
            for i, name in reversed(list(enumerate(self.constant))):
                found = found.add_column(1, name, pa.array([10**6 + i] * len(rows), pa.int64()))
        return found

    def truth_in(self, space: Space, rows: Any) -> frozenset[Named]:
        return frozenset(self.general(space, space.evidence(rows), 0, len(rows)))

    def general(self, space: Space, evidence: Counter[int], most: int, n_rows: int) -> dict[Named, int]:
        """The general DCs, with their violations; of a constant column that it is constant."""
        limit, operators = self.options["max_predicates"], self.options["operators"] or predicates.OPERATORS
        found = space.telling(space.general(evidence, most, limit, operators))
        named = {tuple(space.words[i] for i in numbers): n for numbers, n in found.items()}
        if () not in named and (limit is None or limit > 0):
            # If `!=` may not be said, both `<` and `>` say nothing more than each other.
            strictest = "!=" if "!=" in operators else "<" if "<" in operators else None
            named |= {((name, strictest, name),): 0 for name in self.constant if strictest is not None}
        return named

    def _truth(self, rows: tuple[Row, ...]) -> Truth:  # type: ignore[override]
        evidence = self.space.evidence(rows)
        return Truth(len(rows), frozenset(self.general(self.space, evidence, 0, len(rows))), evidence)

    def dcs_of(self, rows: list[Row]) -> frozenset[Named]:
        found: Any = self.truth_of(rows)
        return found.dcs  # type: ignore[no-any-return]

    def within(self, rows: list[Row], max_error: float) -> dict[Named, float]:  # type: ignore[override]
        """The general DCs within an error, with their errors."""
        truth: Any = self.truth_of(rows)
        found = self.general(self.space, truth.evidence, oracle.allowed(max_error, rows), len(rows))
        return {dc: oracle.error(n, rows) for dc, n in found.items()}

    def error(self, rows: list[Row], dependency: Named) -> float:  # type: ignore[override]
        return oracle.error(len(self.violating(rows, dependency)), rows)

    def violating(self, rows: list[Row], dc: Named) -> list[tuple[int, int]]:
        """Pairs of rows, by position; constant columns are equal in all."""
        own = [p for p in dc if p[0] not in self.constant]
        if any(op in ("!=", "<", ">") for left, op, _ in dc if left in self.constant):
            return []
        return oracle.violating(rows, self.shape.names, own)

    def row_rules(self, rows: list[Row], max_error: float = 0.0) -> dict[Words, int]:
        """The comparisons within a row, with the rows that violate each."""
        whole = [(*row[:1], *(10**6 + i for i in range(self.n_constant)), *row[1:]) for row in rows]
        schema = self.table([]).schema
        names = [name for name in schema.names if name not in self.left_out]
        return oracle.row_rules(whole, schema, names, max_error)

    # -- batches --------------------------------------------------------------------------------------

    def apply(self, rows_after: list[Row], **batch: pa.Table) -> None:
        self.inserting = set(batch) == {"inserts"}
        super().apply(rows_after, **batch)

    @precondition(lambda self: self.tracked)
    @rule(data=st.data(), evidence=st.sampled_from(TABLES))
    def track_afresh(self, data: st.DataObject, evidence: Any) -> None:
        """What is maintained equals what is found from scratch, if the same columns may be compared."""
        folder = self.folder / f"fresh-{next(self.fresh)}"
        exclude, options = self.left_out, self.options
        rows = data.draw(st.permutations(self.rows))
        with holdfast.open(folder, engine="inline") as ws:
            ws.track("t", self.table(rows), kinds=("dc",), evidence=evidence, exclude=exclude, **options)
            listed = ws.dependencies(kind="dc", table="t")
            found = {_named(d) for d in listed}
            assert found == self.truth_in(self.space_of(ws, "t", rows), rows)
            if ws.dcs.space("t") == self.ws.dcs.space(evidence):
                assert [d.predicates for d in listed] == [
                    d.predicates for d in self.ws.dependencies(kind="dc", table=evidence)
                ]

    histories = None  # of functional dependencies: not here

    # -- what is asked --------------------------------------------------------------------------------

    @precondition(lambda self: self.tracked)
    @rule(data=st.data(), table=st.sampled_from(TABLES))
    def explain(self, data: st.DataObject, table: str) -> None:
        """Any rule about two rows, of columns that are compared or not, in the cover or not."""
        rows = self.at[table]
        held = sorted(dc for there in self.history(table).values() for dc in self.dcs_of(there) if dc)
        asked = data.draw(st.one_of(written_rules(self.shape), *([st.sampled_from(held)] if held else [])))
        told = self.ws.dcs.explain(table, rule_text(asked, data))
        violating = self.violating(rows, asked)
        assert set(_named(told.dc)) == set(asked)
        assert (told.holds, told.n_violations) == (not violating, len(violating))
        assert told.dc.error == oracle.error(len(violating), rows)
        assert bool(told.pairs) == bool(violating)
        for pair in told.pairs:
            self.check_violation(pair, asked, rows)
        if predicates.trivial(asked):
            assert told.holds
            return
        compared = {*self.space.words, *((c, op, c) for c in self.constant for op in predicates.OPERATORS)}
        dcs, inside = self.dcs_of(rows), set(asked) <= compared
        expected = {dc for dc in dcs if inside and predicates.implies(dc, asked)}
        assert {_named(dc) for dc in told.implied_by} == expected
        assert told.minimal == any(same_rule(dc, asked) for dc in expected)
        there = self.history(table)
        spell = [bool(self.violating(r, asked)) == bool(violating) for r in there.values()]
        turned = len(spell) - next((i for i, same in enumerate(reversed(spell)) if not same), len(spell))
        if told.since is None:  # the cover does not reach that far
            assert not inside or self.options["max_predicates"] or self.options["operators"]
        else:
            assert told.since == list(there)[turned]

    @precondition(lambda self: self.tracked)
    @rule(data=st.data(), table=st.sampled_from(TABLES))
    def explain_row(self, data: st.DataObject, table: str) -> None:
        """Any rule about single rows."""
        fields = [f for f in self.shape.schema if f.name not in self.left_out]
        able = [
            (one.name, op, other.name)
            for one in fields
            for other in fields
            for op in predicates.OPERATORS
            if one is not other
            and oracle.within_a_row(one.type, other.type) is not None
            and (oracle.within_a_row(one.type, other.type) or op in ("=", "!="))
        ]
        if not able:
            return
        asked, rows = data.draw(st.sampled_from(able)), self.at[table]
        told = self.ws.row_rules.explain(table, " ".join(asked))
        violating = [row for row in rows if self.violated_by(row, asked)]
        assert _row_rule(told.rule) == asked
        assert (told.holds, told.rule.n_exceptions) == (not violating, len(violating))
        assert told.rule.error == len(violating) / max(1, len(rows))
        assert bool(told.exceptions) == bool(violating)
        assert len({w.row_id for w in told.exceptions}) == len(told.exceptions) <= len(violating)
        for witness in told.exceptions:
            assert self.violated_by(self.row_of(witness, rows), asked)

    @precondition(lambda self: self.tracked)
    @rule(table=st.sampled_from(TABLES))
    def other_forms(self, table: str) -> None:
        """All sets of predicates that say something; and only what the others do not say together."""
        dcs = self.dcs_of(self.at[table])
        concise = self.ws.dcs.in_form(table, concise=True)
        kept = {_named(dc) for dc in concise.dcs}
        assert kept <= dcs
        assert len(dcs) == len(kept) + concise.n_dropped
        if self.options["operators"] is None:
            found = self.ws.dcs.in_form(table, set_minimal=True)
            truth: Any = self.truth_of(self.at[table])
            expected = self.space.set_minimal(truth.evidence, 0, self.options["max_predicates"])
            expected = self.space.telling(expected)
            named = {tuple(self.space.words[i] for i in numbers) for numbers in expected}
            own = [dc for dc in map(_named, found.dcs) if not self.with_constant(dc)]
            assert found.complete
            assert set(own) == named
            assert len(set(own)) == len(own)

    def with_constant(self, dc: Named) -> bool:
        return any(left in self.constant for left, _, _ in dc)

    # -- what must hold -------------------------------------------------------------------------------

    def check_change(self, change: Change, table: str, old: list[Row] | None) -> None:  # type: ignore[override]
        """The report of a batch is the net change, with rows that are really there."""
        [part] = [t for t in change.tables if t.table == table]
        rows = self.at[table]
        before, after = self.dcs_of(old) if old is not None else frozenset(), self.dcs_of(rows)
        assert part.n_rows == len(rows) == len(old or ()) + part.n_inserted - part.n_deleted
        assert part.n("dc") == len(after)
        told = [c for c in change.changes if isinstance(c.dependency, Dc) and c.dependency.table == table]
        by_event: dict[str, dict[Named, float]] = {event: {} for event in EVENTS}
        for c in told:
            assert isinstance(c.dependency, Dc)
            named = _named(c.dependency)
            assert named not in by_event[c.event]
            by_event[c.event][named] = c.dependency.error
            if c.event in EVENTS[:3]:
                self.check_event(c, rows, old or [])
        assert set(by_event["appeared"]) == after - before
        assert by_event["broke"].keys() | by_event["implied"].keys() == before - after
        if self.inserting and old is not None:
            self.check_proposition_1(set(by_event["appeared"]), set(by_event["broke"]))
            assert not by_event["implied"]
        self.check_dcs_within(by_event["within"], by_event["beyond"], table, old)
        self.fold_in(table, told)
        self.check_row_change(change, table, old)

    def check_proposition_1(self, appeared: set[Named], broke: set[Named]) -> None:
        """What is new says more than something that broke: it contains it, or what follows from it."""
        for dc in appeared:
            assert any(predicates.implies(less, dc) for less in broke), dc

    def check_event(self, c: DependencyChange, rows: list[Row], old: list[Row]) -> None:
        assert c.reason.rstrip(":, ") == c.reason != ""
        assert isinstance(c.dependency, Dc)
        named = _named(c.dependency)
        assert bool(self.violating(rows, named)) == (c.event == "broke")
        assert bool(c.witnesses) or c.event != "broke"
        for pair in c.witnesses:
            # What broke is shown by rows that violate it now, what appeared by rows that did before.
            self.check_violation(pair, named, rows if c.event == "broke" else old)

    def check_violation(self, pair: Any, dependency: Named, rows: list[Row]) -> None:  # type: ignore[override]
        """Two different rows that are there, and that satisfy the predicates as t and s."""
        self.check_pair(pair, (), rows)
        t, s = (self.row_of(witness, rows) for witness in pair)
        assert (0, 1) in self.violating([t, s], dependency)

    def row_of(self, witness: Any, rows: list[Row]) -> Row:
        """A row with the values that are told, as they are."""
        names = [name for name in self.shape.names if name in witness.values]
        told = {name: witness.values[name] for name in names}
        plain = (dict(zip(self.shape.names, self.plain_row(row), strict=True)) for row in rows)
        return next(
            row for row, values in zip(rows, plain, strict=True) if told == {n: values[n] for n in names}
        )

    def check_dcs_within(
        self, within: dict[Named, float], beyond: dict[Named, float], table: str, old: list[Row] | None
    ) -> None:
        """What entered and left the general ones within the tracked error, but for those that hold exactly.

        Tracking a table tells only those.
        """
        if old is None or table != COUNTED or self.max_error is None:
            assert not within
            assert not beyond
            return
        rows = self.at[table]
        before, after = self.within(old, self.max_error), self.within(rows, self.max_error)
        new, gone = after.keys() - before.keys(), before.keys() - after.keys()
        assert within == {dc: after[dc] for dc in new - self.dcs_of(rows)}
        assert beyond == {dc: self.error(rows, dc) for dc in gone - self.dcs_of(old)}

    def check_row_change(self, change: Change, table: str, old: list[Row] | None) -> None:
        """The same for rules about single rows: what left the list, what entered it, and because of what."""
        [part] = [t for t in change.tables if t.table == table]
        rows = self.at[table]
        before = self.row_rules(old) if old is not None else {}
        after = self.row_rules(rows)
        assert part.n("row") == len(after)
        told: dict[str, dict[Words, RowRule]] = {event: {} for event in EVENTS}
        for c in change.changes:
            if isinstance(c.dependency, RowRule) and c.dependency.table == table:
                named = _row_rule(c.dependency)
                assert named not in told[c.event]
                told[c.event][named] = c.dependency
                assert bool(c.witnesses) or c.event != "broke"
                violating = [row for row in rows if self.violated_by(row, named)]
                assert (c.dependency.n_exceptions, c.dependency.error) == (
                    len(violating),
                    len(violating) / max(1, len(rows)),
                )
                for [*group] in c.witnesses:
                    for witness in group:
                        gone = c.event == "appeared"
                        assert self.violated_by(self.row_of(witness, (old or []) if gone else rows), named)
        assert set(told["appeared"]) == after.keys() - before.keys()
        assert told["broke"].keys() | told["implied"].keys() == before.keys() - after.keys()
        assert all(rule.n_exceptions for rule in told["broke"].values())
        assert not any(rule.n_exceptions for rule in told["implied"].values())
        within, beyond = set[Words](), set[Words]()
        if old is not None and table == COUNTED and self.max_error is not None:
            was, now = (set(self.row_rules(there, self.max_error)) for there in (old, rows))
            within, beyond = now - was - after.keys(), was - now - before.keys()
        assert set(told["within"]) == within
        assert set(told["beyond"]) == beyond

    def violated_by(self, row: Row, rule: Words) -> bool:
        """Whether a row violates a comparison of two of its columns."""
        values, types = {}, {}
        for c, name in enumerate(self.shape.names):
            values[name], types[name] = row[c], self.shape.schema.field(c).type
        for i, name in enumerate(self.constant):
            values[name], types[name] = 10**6 + i, pa.int64()
        by_order = oracle.within_a_row(types[rule[0]], types[rule[2]])
        assert by_order is not None
        return row_outcomes.violates(values[rule[0]], rule[1], values[rule[2]], by_order)

    def check_row_rules(self, table: str, rows: list[Row], max_error: float = 0.0, **where: Any) -> None:
        listed = self.ws.dependencies(kind="row", table=table, max_error=max_error, **where)
        found = {_row_rule(rule): rule for rule in listed if isinstance(rule, RowRule)}
        assert len(found) == len(listed)
        assert {named: r.n_exceptions for named, r in found.items()} == self.row_rules(rows, max_error)
        for told in found.values():
            assert told.error == told.n_exceptions / max(1, len(rows))
            assert told.n_exceptions <= told.n_compared <= len(rows)

    @precondition(lambda self: self.tracked)
    @rule(table=st.sampled_from(TABLES), max_error=st.sampled_from([0.05, 0.2, 1 / 3, 0.5, 1.0]))
    def row_rules_within_any_error(self, table: str, max_error: float) -> None:
        self.check_row_rules(table, self.at[table], max_error)

    def fold_in(self, table: str, told: list[DependencyChange]) -> None:
        folded = self.folded[table]
        for c in told:
            assert isinstance(c.dependency, Dc)
            if c.event == "appeared":
                assert _named(c.dependency) not in folded
                folded.add(_named(c.dependency))
            elif c.event in ("broke", "implied"):
                folded.remove(_named(c.dependency))
        assert folded == self.dcs_of(self.at[table])

    def check_version(self, version: int) -> None:
        assert self.ws.tables(at=version) == sorted(self.recorded[version])
        for table, rows in self.recorded[version].items():
            assert self.listed(table, at=version) == self.dcs_of(rows)
            assert self.ws.n_rows(table, at=version) == len(rows)
            self.check_row_rules(table, rows, at=version)
        if self.max_error is not None:
            self.check_approximate(self.recorded[version][COUNTED], self.max_error, at=version)

    def listed(self, table: str, **where: Any) -> set[Named]:
        """What is listed, in order: by size, then by the words of the mask."""
        found = self.ws.dependencies(kind="dc", table=table, **where)
        assert all(isinstance(d, Dc) and d.error == 0 and d.table == table for d in found)
        self.check_order(table, found)
        return {_named(d) for d in found}

    def check_order(self, table: str, found: Any) -> None:
        space = self.ws.dcs.space(table)
        numbers = [[space.number(p) for p in d.predicates] for d in found]
        masks = [sum(1 << i for i in n) for n in numbers]
        keys = [(len(n), mask % 2**64, mask >> 64) for n, mask in zip(numbers, masks, strict=True)]
        assert keys == sorted(keys)
        assert all(n == sorted(n) for n in numbers)
        assert len(set(map(tuple, numbers))) == len(numbers)

    def check_approximate(self, rows: list[Row], max_error: float, **where: Any) -> None:
        found = self.ws.dependencies(kind="dc", table=COUNTED, max_error=max_error, **where)
        self.check_order(COUNTED, found)
        assert {_named(d): d.error for d in found} == self.within(rows, max_error)

    @precondition(lambda self: self.tracked)
    @rule()
    def read_the_log(self) -> None:
        """The ledger's changes, folded, are the cover at every version."""
        for table in TABLES:
            folded: set[Named] = set()
            there = [v for v, rows in self.recorded.items() if table in rows]
            changes = {e.version: e.changes for e in self.ws.log(table)}
            for version in there:
                for c in changes.get(version, ()):
                    if c.kind != "dc" or c.table != table or c.change in ("within", "beyond"):
                        continue
                    dc = _named(Dc.from_dict(c.dependency))
                    assert (c.change == "appeared") == (dc not in folded)
                    folded ^= {dc}
                assert folded == self.dcs_of(self.recorded[version][table])

    @precondition(lambda self: self.tracked)
    @invariant()
    def matches_the_oracle(self) -> None:
        for table in TABLES:
            assert self.listed(table) == self.dcs_of(self.at[table])
            assert self.ws.n_rows(table) == len(self.at[table])
            self.check_row_rules(table, self.at[table])
        if self.max_error is not None:
            self.check_approximate(self.at[COUNTED], self.max_error)


class CollidingDcs(Dcs):
    """The same contract where almost all texts share a code: `=` could be invented, and `!=` hidden."""

    colliding = True


class WideDcs(Dcs):
    """The same contract where masks have two words."""

    n_constant = 11


def _named(dc: Any) -> Named:
    return tuple((p.left, p.op, p.right) for p in dc.predicates)


def _row_rule(rule: RowRule) -> Words:
    return rule.left, rule.op, rule.right


@pytest.mark.parametrize(("machine", "n"), [(Dcs, 12), (CollidingDcs, 5), (WideDcs, 4)])
def test_dcs(machine: type[Dcs], n: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=12, deadline=None, suppress_health_check=QUIET),
    )


# Numbers of histories that take about as long each: see the budget in tests/README.md.
@pytest.mark.slow
@pytest.mark.parametrize(("machine", "n"), [(Dcs, 60), (CollidingDcs, 45), (WideDcs, 30)])
def test_dcs_at_length(machine: type[Dcs], n: int, record_property: Callable[[str, object], None]) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=40, deadline=None, suppress_health_check=QUIET),
    )
    record_property("histories", n)
