"""Pinned rules as a class: nobody tracks a table for them, but every batch of one with some is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.cover.news import News
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.root import Root
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Dependency
from holdfast.denial.constraints import PinnedRule, pinned_rules
from holdfast.denial.written_rules import as_pins, watched
from holdfast.kind import Crossing, TableClass, Tracking

Rules = tuple[PinnedRule, ...]


class PinnedRuleClass(TableClass[Rules]):
    """Rules about pairs of rows that somebody wrote and relies on."""

    def discover(self, tracking: Tracking) -> Rules:
        return ()

    def grown(self, known: Rules, crossing: Crossing) -> Rules:
        rows = crossing.before, crossing.remaining, crossing.after, crossing.row_ids, crossing.added
        return watched(*rows, known)

    def news(self, before: Rules, after: Rules, crossing: Crossing) -> News:
        return News()

    def dependencies(self, known: Rules, state: TableState) -> tuple[Sequence[Dependency], int]:
        return [], 0

    def pins(self, known: Rules, state: TableState, rows: Relation) -> tuple[Pin, ...]:
        return as_pins(state.table, known, rows)

    def summary(self, known: Rules, state: TableState, *, tracked: bool) -> None:
        return None

    def save(self, root: Root, state: TableState, known: Rules, before: Rules | None) -> Mapping[str, Any]:
        return {"rules": [rule.to_dict() for rule in known]}

    def load(self, root: Root, state: TableState) -> Rules | None:
        return pinned_rules(state) or None


CLASS = PinnedRuleClass()
