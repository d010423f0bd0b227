"""The contract of rules that people write: after any history, the pairs of rows that violate each are known.

The machine of keys drives one table, of which rules about two rows and functional dependencies are pinned and
unpinned, whatever else is tracked. After every step each rule must have as many violations as the oracle
counts, and come with pairs of live rows that violate it; a batch must tell the same of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

import holdfast
from holdfast.core.evidence import refute
from holdfast.core.rows import relation
from holdfast.core.words.change import Change, Pin
from holdfast.core.words.dependency import Fd
from holdfast.core.words.notation import arrow_text
from holdfast.core.words.schema import Nulls
from holdfast.denial import pair_rule, violation_changes, violations
from holdfast.denial.kernels import rule_violations
from holdfast.errors import UsageError
from machines.test_dcs import Rule, dc_shapes, rule_text, same_rule, written_rules
from machines.test_keys import QUIET, TABLE, Keys
from reference import dcs as oracle
from reference.keys import Row
from reference.rule_violations import with_distinct_nulls
from strategies import Shape

# A rule, and what its NULLs are.
Asked = tuple[Rule, Nulls]

# Limits of production that small tables never reach: with these, they take the other paths.
OTHER_LIMITS: list[tuple[Any, str, Any]] = [
    (violation_changes, "TASK_NS", 1.0),
    (relation, "WORTH_THREADS", 0.0),
    (violation_changes, "TASK_ROWS", 1),
    (violations, "PART_ROWS", 3),
    (violations, "DIVIDE_ROWS", 2),
    (pair_rule, "FEW_VALUES", 0),
    (violation_changes, "CHAIN_NS", 0.0),
    (violation_changes, "SEARCHED_ROWS", 1),
    (rule_violations, "FEW", 1),
    (rule_violations, "CHUNK", 2),
    (rule_violations, "LOOKED_AT", 2),
    (rule_violations, "HALVED_TO", 1),
    (refute, "PART_ROWS", 3),
]


class Rules(Keys):
    """A workspace with one table and rules, next to a list of the rows."""

    # -- the table, and what the oracle says of it ----------------------------------------------------

    @initialize(
        data=st.data(),
        kinds=st.sampled_from([("ucc",), ("ind",), ("fd",), ("dc",)]),
        nulls=st.sampled_from(["equal", "distinct"]),
        other_limits=st.booleans(),
    )
    def track(  # type: ignore[override]
        self, data: st.DataObject, kinds: tuple[str, ...], nulls: Nulls, other_limits: bool
    ) -> None:
        for module, name, value in OTHER_LIMITS if other_limits else ():
            self.patch.setattr(module, name, value)
        self.shape: Shape = data.draw(dc_shapes(hashed_only=self.colliding))
        self.row_key = data.draw(st.sampled_from([(), (self.shape.names[0],)]))
        self.rows = data.draw(self.shape.rows(max_size=10))
        self.nulls = nulls
        self.rules: list[Asked] = []
        self.ws.track(TABLE, self.table(self.rows), kinds=kinds, row_key=self.row_key, nulls=nulls)
        self.tracked = True
        self.record()

    def violating(self, asked: Asked, rows: Sequence[Row] | None = None) -> list[tuple[int, int]]:
        rule, nulls = asked
        rows = self.rows if rows is None else rows
        if nulls == "distinct":
            rows = list(with_distinct_nulls(dict(enumerate(rows))).values())
        return oracle.violating(rows, self.shape.names, rule)

    def written(self, asked: Asked, data: st.DataObject) -> str:
        """As it may be asked for: a functional dependency of a table whose NULLs are distinct is no rule."""
        rule, nulls = asked
        if nulls == "equal":
            return rule_text(rule, data)
        *lhs, rhs = (left for left, _, _ in rule)
        return arrow_text(data.draw(st.permutations(lhs)), rhs)

    # -- rules ----------------------------------------------------------------------------------------

    @precondition(lambda self: self.tracked)
    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        if data.draw(st.booleans()):
            asked: Asked = data.draw(written_rules(self.shape)), "equal"
            text = self.written(asked, data)
        else:
            lhs = data.draw(st.lists(st.sampled_from(self.shape.names), max_size=2, unique=True))
            rhs = data.draw(st.sampled_from(self.shape.names))
            asked = as_words(lhs, rhs), self.nulls
            text = arrow_text(lhs, rhs)
            if rhs in lhs and not any(same(r, asked) for r in self.rules):
                with pytest.raises(UsageError, match="both sides"):
                    self.ws.pin_rule(text, table=TABLE)
                return
        told = self.ws.pin_rule(text, table=data.draw(st.sampled_from([None, TABLE])))
        self.rules = [*(r for r in self.rules if not same(r, asked)), asked]
        self.check_pin(told, asked)
        self.record()

    @precondition(lambda self: self.tracked)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        if self.rules:
            gone = data.draw(st.sampled_from(self.rules))
            self.ws.pin_rule(self.written(gone, data), table=TABLE, remove=True)
            self.rules.remove(gone)
            self.record()
            with pytest.raises(UsageError, match="not pinned"):
                self.ws.pin_rule(self.written(gone, data), table=TABLE, remove=True)

    @rule()
    def restart(self) -> None:
        self.ws.close()
        self.ws = holdfast.open(self.folder / "w", engine="inline", create=False)

    # Of keys: not here.
    explain = None
    read_the_log = None

    # -- what must hold -------------------------------------------------------------------------------

    def check_change(self, change: Change, old: list[Row]) -> None:
        assert change.n_rows == len(self.rows) == len(old) + change.n_inserted - change.n_deleted
        self.check_pins(list(change.pins))
        assert len(change.broken_pins) == sum(bool(self.violating(r)) for r in self.rules)
        self.record()

    def check_pins(self, pins: list[Pin]) -> None:
        assert len(pins) == len(self.rules)
        by_rule = {_told(pin): pin for pin in pins}
        for asked in self.rules:
            self.check_pin(by_rule[_identity(asked)], asked)

    def check_pin(self, pin: Pin, asked: Asked) -> None:
        """As many pairs as there are, and some of them; none only if there is none."""
        assert _told(pin) == _identity(asked)
        found = self.violating(asked)
        assert pin.n_violations == len(found)
        assert pin.holds == (not found)
        assert pin.rule is not None
        assert pin.rule.error == oracle.error(len(found), self.rows)
        assert bool(pin.witnesses) == bool(found)
        assert len({(t.row_id, s.row_id) for t, s in pin.witnesses}) == len(pin.witnesses) <= len(found)
        for pair in pin.witnesses:
            self.check_pair(pair, (), self.rows)
            plain = {self.plain_row(row): row for row in self.rows}
            t, s = (plain[tuple(w.values[name] for name in self.shape.names)] for w in pair)
            assert (0, 1) in self.violating(asked, [t, s])

    def record(self) -> None:
        counts = {_identity(r): len(self.violating(r)) for r in self.rules}
        self.recorded[self.ws.version] = counts, len(self.rows), None

    def check_version(self, version: int) -> None:
        counts, n_rows, _ = self.recorded[version]
        assert {_told(p): p.n_violations for p in self.ws.pins(TABLE, at=version)} == counts
        assert self.ws.n_rows(TABLE, at=version) == n_rows

    @precondition(lambda self: self.tracked)
    @invariant()
    def matches_the_oracle(self) -> None:
        assert self.ws.n_rows(TABLE) == len(self.rows)
        told = {_told(p): p.n_violations for p in self.ws.pins(TABLE)}
        assert told == {_identity(r): len(self.violating(r)) for r in self.rules}


class CollidingRules(Rules):
    """The same contract where almost all texts share a code."""

    colliding = True


def as_words(lhs: Sequence[str], rhs: str) -> Rule:
    """A functional dependency as a rule."""
    return (*((c, "=", c) for c in lhs), (rhs, "!=", rhs))


def same(one: Asked, other: Asked) -> bool:
    return one[1] == other[1] and same_rule(one[0], other[0])


def _identity(asked: Asked) -> Any:
    return frozenset(asked[0]), asked[1]


def _told(pin: Pin) -> Any:
    if isinstance(pin.rule, Fd):
        assert str(pin) == arrow_text(pin.rule.lhs, pin.rule.rhs)
        return _identity((as_words(pin.rule.lhs, pin.rule.rhs), "distinct"))
    assert pin.rule is not None
    return _identity((tuple((p.left, p.op, p.right) for p in pin.rule.predicates), "equal"))


@pytest.mark.parametrize(("machine", "n"), [(Rules, 14), (CollidingRules, 6)])
def test_rules(machine: type[Rules], n: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=14, deadline=None, suppress_health_check=QUIET),
    )


# Numbers of histories that take about as long each: see the budget in tests/README.md.
@pytest.mark.slow
@pytest.mark.parametrize(("machine", "n"), [(Rules, 120), (CollidingRules, 100)])
def test_rules_at_length(
    machine: type[Rules], n: int, record_property: Callable[[str, object], None]
) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=n, stateful_step_count=40, deadline=None, suppress_health_check=QUIET),
    )
    record_property("histories", n)
