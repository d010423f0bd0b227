"""Row rules as a class: how a workspace tracks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.cover.news import MAX_LISTED, News
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.root import Root
from holdfast.core.words.change import Summary
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.options import max_error_of
from holdfast.denial import row_rules
from holdfast.denial.constraints import row_file
from holdfast.denial.row_rule_list import RowRuleState, load, rules_of, save
from holdfast.kind import Crossing, TableClass, Tracking


@dataclass(frozen=True, slots=True)
class RowOptions:
    max_error: float  # the share of rows up to which they are kept in sight
    columns: Sequence[str] | None  # patterns; None: all
    exclude: Sequence[str]


class RowRuleClass(TableClass[RowRuleState]):
    """Comparisons of two columns that every row keeps, from counts of outcomes."""

    def options(self, asked: Mapping[str, Any]) -> RowOptions:
        return RowOptions(max_error_of(asked), asked.get("columns"), asked.get("exclude", ()))

    def discover(self, tracking: Tracking) -> RowRuleState:
        options: RowOptions = tracking.options
        chosen = tracking.state.schema.chosen(options.columns, options.exclude)
        return row_rules.discover(tracking.rows, options.max_error, chosen)

    def grown(self, known: RowRuleState, crossing: Crossing) -> RowRuleState:
        return row_rules.change(known, crossing.before, crossing.after, crossing.row_ids, crossing.added)

    def news(self, before: RowRuleState, after: RowRuleState, crossing: Crossing) -> News:
        return row_rules.row_news(crossing.state.table, before, after, crossing.before, crossing.after)

    def dependencies(self, known: RowRuleState, state: TableState) -> tuple[Sequence[Dependency], int]:
        rules = rules_of(known, state.table, state.schema)
        return rules[:MAX_LISTED], max(0, len(rules) - MAX_LISTED)

    def summary(self, known: RowRuleState, state: TableState, *, tracked: bool) -> Summary:
        n = len(rules_of(known, state.table, state.schema))
        return Summary("row", n, f"{n:,} row rule{'' if n == 1 else 's'}", {"n_row_rules": n})

    def save(
        self, root: Root, state: TableState, known: RowRuleState, before: RowRuleState | None
    ) -> Mapping[str, Any]:
        return {"row_rules": save(root, state.folder, known, before, row_file(state)).to_dict()}

    def load(self, root: Root, state: TableState) -> RowRuleState | None:
        file = row_file(state)
        return None if file is None else load(root, file)


CLASS = RowRuleClass()
