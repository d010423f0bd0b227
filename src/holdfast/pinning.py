"""Pins: what somebody relies on, be it a key, an inclusion or a rule that they wrote.

Every batch says whether a pin holds, and `check` gates on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.commit import Committer
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.writer import Writer
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.change import Pin
from holdfast.core.words.condition import OTHER_ROW, formula_of, is_condition, read_condition
from holdfast.core.words.dependency import Side
from holdfast.core.words.notation import ARROW, parse_fd
from holdfast.core.words.predicate import same_rule, written_name
from holdfast.core.words.row_rule import is_row_rule
from holdfast.denial.constraints import pinned_checks, pinned_rules
from holdfast.errors import UsageError, listing
from holdfast.functional.refs import PinnedKey
from holdfast.inclusions.composite_state import Composite, stopped_texts
from holdfast.inclusions.generator import PinnedInd
from holdfast.kinds import Readers


def _as_rule(text: str, state: TableState, version: int) -> str:
    """A functional dependency as the rule about two rows that it is."""
    lhs, rhs = parse_fd(text, state.schema.names, table=state.table, version=version)
    if state.nulls == "distinct":
        raise UsageError(
            f"NULLs of table {state.table!r} are distinct, and those of a rule are equal, so {text!r} cannot "
            "be pinned. Track the table with --nulls equal, or pin a rule about two rows."
        )
    same = [f"t.{written_name(c)} = s.{written_name(c)}" for c in lhs]
    return f"not({' and '.join([*same, f't.{written_name(rhs)} != s.{written_name(rhs)}'])})"


@dataclass(frozen=True)
class Pins:
    """What is pinned in a workspace."""

    writer: Writer
    readers: Readers
    committer: Committer

    def pin_key(self, table: str, columns: Sequence[str], *, remove: bool) -> Pin:
        """Rely on a combination of columns being unique."""
        tables, keys = self.writer.tables, self.readers.keys
        base, state = tables.current(table)
        ref = keys.needed(state)
        positions = tables.positions(state, base, columns)
        named = tuple(state.schema.names[p] for p in positions)
        remaining = tuple(p for p in ref.pins if p.columns != named)
        if remove and len(remaining) == len(ref.pins):
            raise UsageError(f"[{listing(named)}] of table {table!r} is not pinned.")
        holds = bool(keys.inside(state, positions))
        if not holds and 0 < ref.max_columns < len(named):
            holds = not keys.duplicates(state, positions)
        pins = remaining if remove else (*remaining, PinnedKey(named, holds))
        state = state.keeping(**replace(ref, pins=pins).to_dict())
        action = "unpin" if remove else "pin"
        commit = CommitRow(table, action, state.to_dict(), {"columns": list(named)})
        self.writer.append(base, [commit])
        return Pin(table, named, holds)

    def pin_rule(self, rule: str, *, table: str | None, remove: bool) -> Pin:
        """Rely on a rule about two rows, or on a condition on each. It is verified now; one job."""
        from holdfast.denial import written_rules

        if table is None:
            table = written_rules.only_table(self.writer.tables.names(), rule)
        base, state = self.writer.tables.current(table)
        if is_row_rule(rule) and ARROW in rule:
            rule = _as_rule(rule, state, base)
        elif is_condition(rule) or (is_row_rule(rule) and not OTHER_ROW.search(rule)):
            return self._pin_condition(rule, base, state, remove=remove)
        predicates = written_rules.read_rule(rule, state.schema, table, base)
        rules = pinned_rules(state)
        remaining = tuple(r for r in rules if not same_rule(r.predicates, predicates))
        if remove:
            if len(remaining) == len(rules):
                raise UsageError(f"the rule {rule!r} of table {table!r} is not pinned.")
            [gone] = [r for r in rules if same_rule(r.predicates, predicates)]
            state = state.keeping(rules=[r.to_dict() for r in remaining])
            return self._pinned(base, state, "unpin", gone.pin(table, state.n_rows))
        with self.writer.context(base) as context:
            relation = context.relation(state, state.folder, "verifying the rule")
            verified = written_rules.pinned(relation, predicates)
            columns, orders = written_rules.indexes_for(relation, [verified])
            columns = list(dict.fromkeys([*state.rule_columns, *columns]))
            orders = list(dict.fromkeys([*state.orders, *orders]))
            relation = relation.indexed(columns, orders)
            [pin] = written_rules.as_pins(table, [verified], relation)
            state = replace(
                state.keeping(rules=[r.to_dict() for r in (*remaining, verified)]),
                segments=relation.segments,
                rule_columns=tuple(columns),
                orders=tuple(orders),
            )
            return self._pinned(base, state, "pin", pin)

    def _pin_condition(self, text: str, base: int, state: TableState, *, remove: bool) -> Pin:
        """Rely on a condition on each row. It is verified now; one job."""
        from holdfast.denial import checks

        table = state.table
        formula = formula_of(read_condition(text, state.schema, table=table, version=base))
        pinned = pinned_checks(state)
        remaining = tuple(check for check in pinned if check.formula != formula)
        if remove:
            if len(remaining) == len(pinned):
                raise UsageError(f"the condition {formula!r} of table {table!r} is not pinned.")
            [gone] = [check for check in pinned if check.formula == formula]
            state = state.keeping(checks=[check.to_dict() for check in remaining])
            return self._pinned(base, state, "unpin", gone.pin(state))
        with self.writer.context(base) as context:
            relation = context.relation(state, state.folder, "verifying the condition")
            check = checks.verified(relation, formula)
            [pin] = checks.as_pins((check,), state, relation)
        state = state.keeping(checks=[c.to_dict() for c in (*remaining, check)])
        return self._pinned(base, state, "pin", pin)

    def _pinned(self, base: int, state: TableState, action: str, pin: Pin) -> Pin:
        detail = {"columns": list(pin.columns), "rule": str(pin)}
        self.writer.append(base, [CommitRow(state.table, action, state.to_dict(), detail)])
        return pin

    def pin_ind(self, dependent: Side, referenced: Side, *, remove: bool) -> Pin:
        """Rely on an inclusion; of several columns, on one that is listed."""
        tables = self.writer.tables
        base = tables.version
        if len(dependent.columns) != len(referenced.columns):
            raise UsageError(f"{dependent} and {referenced} have different numbers of columns.")
        for side in (dependent, referenced):
            for column in side.columns:
                self.readers.inds.column_id(Side(side.table, (column,)), base or None)
        state = tables.state(dependent.table, base)
        pairs = sorted(
            zip(dependent.columns, referenced.columns, strict=True),
            key=lambda pair: state.schema.names.index(pair[0]),
        )
        dependent = Side(dependent.table, tuple(a for a, _ in pairs))
        referenced = Side(referenced.table, tuple(b for _, b in pairs))
        inclusions = self.committer.among("ind", base)[1]
        holds = inclusions.holds(dependent, referenced)
        if len(dependent.columns) > 1 and not holds and not remove:
            if not inclusions.composites.decides(Composite(dependent, referenced)):
                raise UsageError(
                    f"{dependent} in {referenced} has more columns than the inclusions that are kept. "
                    + " ".join(f"{text}." for text in stopped_texts(inclusions.composites, [dependent.table]))
                    + " Raise the bound with --max-arity of 'holdfast track', or leave columns out with "
                    "--exclude."
                )
            raise UsageError(
                f"{dependent} in {referenced} does not hold now, or its right side contains no key; of "
                "several columns only inclusions in a key are kept. 'holdfast show --kind ind' lists them."
            )
        same = (dependent, referenced)
        remaining = tuple(p for p in inclusions.state.pins if (p.dependent, p.referenced) != same)
        if remove and len(remaining) == len(inclusions.state.pins):
            raise UsageError(f"{dependent} in {referenced} is not pinned.")
        pins = remaining if remove else (*remaining, PinnedInd(dependent, referenced, holds))
        action = "unpin" if remove else "pin"
        detail = {"columns": list(dependent.columns), "referenced": referenced.to_dict()}
        commits = [
            CommitRow(dependent.table, action, state.to_dict(), detail),
            CommitRow(SHARED, action, replace(inclusions.state, pins=pins).to_dict(), {}),
        ]
        self.writer.append(base, commits)
        return Pin(dependent.table, dependent.columns, holds, referenced)
