"""Reading conditions: whether one holds, since when it does if it is pinned, and the rows against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.core.cover.history import Life, Past
from holdfast.core.rows.asked_conditions import asked_condition
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.words.change import Pin
from holdfast.core.words.condition import Condition, columns_of, formula_of
from holdfast.denial.constraints import pinned_checks
from holdfast.errors import plural
from holdfast.kind import Explanation

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows

EXCEPTIONS_SHOWN = 10
Verdicts = Mapping[str, bool]  # by formula: whether a pinned condition holds


class CheckReader:
    """Conditions on each row, with constants (`quantity > 0`): explained, and the rows against them."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._past: Past[Verdicts] = Past(tables, _verdicts)

    def pins(self, state: TableState) -> list[Pin]:
        """The pinned conditions of a table."""
        return [check.pin(state, state.n_rows) for check in pinned_checks(state)]

    def explain(self, table: str, text: str) -> Explanation:
        """Whether each row keeps a condition. It need not be pinned; since when it does is known if it is."""
        from holdfast.denial.checks import shown_rows
        from holdfast.denial.conditions import violations

        version, state, condition = self._read(table, text)
        with self._tables.opened(state) as relation:
            [(n, row_ids)] = violations(relation, [condition.formula], limit=EXCEPTIONS_SHOWN)
            rows = shown_rows(relation, row_ids.tolist())
        since = self.pinned_since(version, state, condition.formula, now=n == 0)
        reason = f"{plural(n, 'row')} of {state.n_rows:,} violate{'s' if n == 1 else ''} it"
        measured = replace(condition, error=n / max(1, state.n_rows), n_exceptions=n)
        return Explanation(
            measured, version, n == 0, since, reason if n else "no row violates it", tuple(rows)
        )

    def pinned_since(self, version: int, state: TableState, formula: str, *, now: bool) -> int | None:
        """Since which version a pinned condition has held, or not; None if it is not pinned.

        Before it was pinned nobody looked: the spell begins then at the earliest."""
        if formula not in _verdicts(state.to_dict())[1]:
            return None
        return self._past.spell(state.table, version, lambda then: then.get(formula, not now), now=now)[0]

    def life(self, table: str, text: str) -> Life:
        """When a condition held and when not, as far as it was pinned; nothing if it is not now."""
        version, state, condition = self._read(table, text)
        if condition.formula not in _verdicts(state.to_dict())[1]:
            return ()
        return self._past.life(table, version, lambda then: then.get(condition.formula))

    def violations(self, table: str, text: str, *, limit: int | None = None) -> ViolatingRows:
        """The rows that violate a condition, oldest first: all of them go if it is to hold. One job."""
        from holdfast.core.cover.violating_rows import Removal, ViolatingRows
        from holdfast.denial.conditions import violations

        version, state, condition = self._read(table, text)
        relation = self._tables.rows(state)
        [(n, row_ids)] = violations(relation, [condition.formula], limit=limit)
        condition = replace(condition, error=n / max(1, state.n_rows), n_exceptions=n)
        said = {"remove": np.ones(len(row_ids), dtype=np.bool_)}
        return ViolatingRows(condition, version, state.n_rows, n, Removal(n, n), relation, row_ids, said)

    def _read(self, table: str, text: str) -> tuple[int, TableState, Condition]:
        version, state = self._tables.current(table)
        node = asked_condition(text, state.schema, table=table, version=version)
        return version, state, Condition(table, formula_of(node), columns_of(node))


def _verdicts(fields: Mapping[str, Any]) -> tuple[FileRef, Verdicts]:
    """What a state says of its conditions; it has no file, so its text stands for one."""
    verdicts = {check["formula"]: check["n_violations"] == 0 for check in fields.get("checks") or ()}
    return FileRef(json.dumps(verdicts), 0, ""), verdicts
