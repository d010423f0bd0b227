"""Pins: what somebody relies on, be it a key, an inclusion or a rule that they wrote.

Every batch says whether a pin holds, and `check` gates on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.core.rows.table_state import TableState
from holdfast.functional.refs import PinnedKey
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Side
from holdfast.core.words.predicate import same_rule
from holdfast.errors import UsageError, listing
from holdfast.inclusions.composite_state import Composite, stopped_texts
from holdfast.inclusions.generator import GeneratorState, PinnedInd
from holdfast.writing import Writer


class Pinner(Writer):
    """The part of a workspace that pins."""

    def pin(
        self, table: str, columns: Sequence[str], *, referenced: Side | None = None, remove: bool = False
    ) -> Pin:
        """Rely on a key, or on an inclusion in the `referenced` columns of a table.

        Every batch then says whether it holds, and `check` gates on it.
        """
        if referenced is not None:
            return self._pin_ind(Side(table, tuple(columns)), referenced, remove=remove)
        base, state = self._current(table)
        self._needs_keys(state)
        positions = self._positions(state, base, columns)
        named = tuple(state.schema.names[p] for p in positions)
        rest = tuple(p for p in state.pins if p.columns != named)
        if remove and len(rest) == len(state.pins):
            raise UsageError(f"[{listing(named)}] of table {table!r} is not pinned.")
        holds = bool(self._keys_inside(state, positions))
        if not holds and 0 < state.max_columns < len(named):
            holds = not self._duplicates(state, positions)
        state = replace(state, pins=rest if remove else (*rest, PinnedKey(named, holds)))
        action = "unpin" if remove else "pin"
        self._append(base, [CommitRow(table, action, state.to_dict(), {"columns": list(named)})], [])
        return Pin(table, named, holds)

    def pin_rule(self, rule: str, *, table: str | None = None, remove: bool = False) -> Pin:
        """Rely on a rule about two rows, such as `not(t.zip = s.zip and t.state != s.state)`.

        It is verified now, and after every batch, at a cost that follows the batch: how many pairs of rows
        violate it, and a few of them. No kind of dependency need be tracked for it.
        """
        from holdfast.denial import written_rules

        if table is None:
            table = written_rules.only_table(self.tables(), rule)
        base, state = self._current(table)
        predicates = written_rules.read_rule(rule, state.schema, table, base)
        rest = tuple(r for r in state.rules if not same_rule(r.predicates, predicates))
        if remove:
            if len(rest) == len(state.rules):
                raise UsageError(f"the rule {rule!r} of table {table!r} is not pinned.")
            [gone] = [r for r in state.rules if same_rule(r.predicates, predicates)]
            state = replace(state, rules=rest)
            return self._pinned(base, state, "unpin", written_rules.pin_of(table, gone, state.n_rows))
        with self._context(base) as context:
            relation = context.relation(state, state.folder, "verifying the rule")
            found = written_rules.pinned(relation, predicates)
            columns, orders = written_rules.indexes_for(relation, [found])
            columns = list(dict.fromkeys([*state.rule_columns, *columns]))
            orders = list(dict.fromkeys([*state.orders, *orders]))
            relation = relation.indexed(columns, orders)
            [pin] = written_rules.as_pins(table, [found], relation)
            state = replace(
                state,
                rules=(*rest, found),
                segments=relation.segments,
                rule_columns=tuple(columns),
                orders=tuple(orders),
            )
            return self._pinned(base, state, "pin", pin)

    def _pinned(self, base: int, state: TableState, action: str, pin: Pin) -> Pin:
        detail = {"columns": list(pin.columns), "rule": str(pin)}
        self._append(base, [CommitRow(state.table, action, state.to_dict(), detail)], [])
        return pin

    def _pin_ind(self, dependent: Side, referenced: Side, *, remove: bool) -> Pin:
        base = self.version
        generator = self._generator(base) or GeneratorState()
        if len(dependent.columns) != len(referenced.columns):
            raise UsageError(f"{dependent} and {referenced} have different numbers of columns.")
        for table, columns in ((s.table, s.columns) for s in (dependent, referenced)):
            for column in columns:
                self._column_id(generator, Side(table, (column,)), base or None)
        state = self._current(dependent.table, base)[1]
        pairs = sorted(
            zip(dependent.columns, referenced.columns, strict=True),
            key=lambda pair: state.schema.names.index(pair[0]),
        )
        dependent = Side(dependent.table, tuple(a for a, _ in pairs))
        referenced = Side(referenced.table, tuple(b for _, b in pairs))
        known = self._load_inclusions(generator)
        holds = known.holds(dependent, referenced)
        if len(dependent.columns) > 1 and not holds and not remove:
            if not known.composites.decides(Composite(dependent, referenced)):
                raise UsageError(
                    f"{dependent} in {referenced} has more columns than the inclusions that are kept. "
                    + " ".join(f"{text}." for text in stopped_texts(known.composites, [dependent.table]))
                    + " Raise the bound with --max-arity of 'holdfast track', or leave columns out with "
                    "--exclude."
                )
            raise UsageError(
                f"{dependent} in {referenced} does not hold now, or its right side contains no key; of "
                "several columns only inclusions in a key are kept. 'holdfast show --kind ind' lists them."
            )
        same = (dependent, referenced)
        rest = tuple(p for p in generator.pins if (p.dependent, p.referenced) != same)
        if remove and len(rest) == len(generator.pins):
            raise UsageError(f"{dependent} in {referenced} is not pinned.")
        pins = rest if remove else (*rest, PinnedInd(dependent, referenced, holds))
        action = "unpin" if remove else "pin"
        detail = {"columns": list(dependent.columns), "referenced": referenced.to_dict()}
        commits = [
            CommitRow(dependent.table, action, state.to_dict(), detail),
            CommitRow(SHARED, action, replace(generator, pins=pins).to_dict(), {}),
        ]
        self._append(base, commits, [])
        return Pin(dependent.table, dependent.columns, holds, referenced)
