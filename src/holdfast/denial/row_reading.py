"""Reading row rules: which hold, why one does or not, since when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import Against, Life, Past
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store.files import FileRef
from holdfast.core.words.change import WitnessRow
from holdfast.core.words.row_rule import RowRule, parse_row_rule
from holdfast.core.words.schema import Schema
from holdfast.denial.check_reading import CheckReader
from holdfast.denial.constraints import row_file
from holdfast.denial.dc_explanation import RowExplanation
from holdfast.denial.row_counts import OPERATORS, RowCounts
from holdfast.denial.row_rule_list import filled_columns, load, measured, rules_and_filled, rules_of
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows
    from holdfast.denial.dc_ranking import RowFacts

I64 = NDArray[np.int64]
EXCEPTIONS_SHOWN = 10


class RowRuleReader:
    """Row rules: comparisons of two columns that every row keeps."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._past: Past[FileRef] = Past(tables, _cover_of)

    def listed(self, state: TableState, max_error: float = 0.0) -> list[RowRule]:
        """The rules that the rows of a table keep, or all but a share of them."""
        file = row_file(state)
        if file is None:
            return []
        return rules_of(load(self._tables.root, file), state.table, state.schema, max_error)

    def known(self, state: TableState) -> tuple[Sequence[RowRule], frozenset[str]]:
        """(the rules that hold, columns without NULL); nothing where they are not tracked."""
        file = row_file(state)
        return ((), frozenset()) if file is None else rules_and_filled(load(self._tables.root, file), state)

    def explain(self, table: str, text: str) -> RowExplanation:
        """Whether a rule about each row (`ship_date >= order_date`) holds, and which rows are against it.

        Of one that is not kept the rows are looked at (two jobs); since when is known if it is pinned.
        """
        from holdfast.core.cover.news import plain_rows
        from holdfast.denial.row_counting import exceptions
        from holdfast.denial.row_rules import discover

        base, state, rule = self._read(table, text)
        now = counted = self._counted(state, rule)
        if now is None:
            with self._tables.opened(state) as relation:
                now = measured(discover(relation, 0.0, rule.columns), state.schema, rule)
            assert now is not None  # its columns compare, or it would not have been read
        shown: tuple[WitnessRow, ...] = ()
        if now.n_exceptions:
            with self._tables.opened(state) as relation:
                ids = exceptions(relation, now, EXCEPTIONS_SHOWN)
                values = plain_rows(relation.fetch(ids))
            shown = tuple(WitnessRow(int(i), v) for i, v in zip(ids.tolist(), values, strict=True))
        holds = now.n_exceptions == 0
        if counted is None:
            since = CheckReader(self._tables).pinned_since(base, state, rule.formula, now=holds)
        else:
            since, _ = self._past.spell(table, base, self._held(now, state), now=holds)
        return RowExplanation(now, base, holds, shown, since)

    def life(self, table: str, text: str) -> Life:
        """When a rule about each row held and when not, since the table was tracked."""
        base, state, now = self._measured(table, text)
        return self._past.life(table, base, self._held(now, state))

    def against(self, state: TableState, table: str, text: str) -> Against | None:
        """How many rows were against a rule about each row, and their share, by the state of a version."""
        file, rule = row_file(state), parse_row_rule(text, state.schema, table=table)
        then = None if file is None else measured(load(self._tables.root, file), state.schema, rule)
        return None if then is None else (then.n_exceptions, then.error)

    def since(self, state: TableState, rules: Sequence[RowRule], until: int) -> I64:
        """Since which version each of some rules, which hold at one, has held: int64[n]."""

        def holds(earlier: FileRef, numbers: I64) -> NDArray[np.bool_]:
            return np.array([self._held(rules[i], state)(earlier) for i in numbers])

        return self._past.since(state.table, len(rules), until, holds)

    def facts(self, version: int, state: TableState) -> RowFacts:
        """The rules that hold at a version, the newest, with what chance would make of them."""
        from holdfast.denial.dc_ranking import RowFacts
        from holdfast.denial.shuffling import count_shuffled

        file = row_file(state)
        if file is None:
            return RowFacts()
        known = load(self._tables.root, file)
        rules = rules_of(known, state.table, state.schema)
        pairs, operators = _numbers(rules, state.schema)
        with self._tables.opened(state) as relation:
            shuffled = RowCounts(count_shuffled(relation, pairs.astype(np.int32)))
        against = shuffled.violations()[np.arange(len(rules)), operators]
        n_compared = np.array([r.n_compared for r in rules], dtype=np.int64)

        def held(earlier: FileRef, which: I64) -> NDArray[np.bool_]:
            then = load(self._tables.root, earlier)
            place = {pair: i for i, pair in enumerate(map(tuple, then.pairs.tolist()))}
            at = [place[pair] for pair in map(tuple, pairs[which].tolist())]
            none_against: NDArray[np.bool_] = then.counts.violations()[at, operators[which]] == 0
            return none_against & (then.counts.n_compared[at] > 0)

        versions = self._past.held(state.table, len(rules), version + 1, held)
        return RowFacts(
            rules,
            n_compared * against / np.maximum(1, shuffled.n_compared),
            filled_columns(known, state.schema),
            len(known.pairs),
            self._past.stability(state.table, versions, version),
        )

    def violations(self, table: str, text: str, *, limit: int | None = None) -> ViolatingRows:
        """The rows that are against a rule about each row, oldest first: all of them go if it is to hold.

        Row rules need not be tracked. One job; `limit`: of the first rows only.
        """
        from holdfast.core.cover.violating_rows import Removal, ViolatingRows
        from holdfast.denial.row_counting import exceptions

        base, state, rule = self._read(table, text)
        relation = self._tables.rows(state)
        ids = exceptions(relation, rule)
        n, listed = len(ids), ids[:limit]
        rule = replace(rule, error=n / max(1, state.n_rows), n_exceptions=n)
        said = {"remove": np.ones(len(listed), dtype=np.bool_)}
        return ViolatingRows(rule, base, state.n_rows, n, Removal(n, n), relation, listed, said)

    def _read(self, table: str, text: str) -> tuple[int, TableState, RowRule]:
        base, state = self._tables.current(table)
        return base, state, parse_row_rule(text, state.schema, table=table, version=base)

    def _counted(self, state: TableState, rule: RowRule) -> RowRule | None:
        """The rule as it is now, by what every batch counts; None if it is not among that."""
        file = row_file(state)
        return None if file is None else measured(load(self._tables.root, file), state.schema, rule)

    def _measured(self, table: str, text: str) -> tuple[int, TableState, RowRule]:
        """(version, state, the rule as it is now), or the error that it is not kept."""
        base, state, rule = self._read(table, text)
        now = self._counted(state, rule)
        if row_file(state) is None:
            raise UsageError(
                f"row rules of table {table!r} are not tracked (kinds: {', '.join(state.kinds)}). Track it "
                "with --kinds row, or dc."
            )
        if now is None:
            raise UsageError(
                f"the columns of {rule.formula} do not take part in the row rules of table {table!r}: they "
                "cannot be compared, or were left out when it was tracked."
            )
        return base, state, now

    def _held(self, rule: RowRule, state: TableState) -> Callable[[FileRef], bool]:
        """Whether the rule held, by what was counted then."""

        def held(file: FileRef) -> bool:
            then = measured(load(self._tables.root, file), state.schema, rule)
            return then is not None and then.n_exceptions == 0

        return held


def _numbers(rules: Sequence[RowRule], schema: Schema) -> tuple[I64, I64]:
    """The positions of their columns, int64[n, 2], and the numbers of their operators, int64[n]."""
    position = {name: i for i, name in enumerate(schema.names)}
    pairs = np.array([[position[c] for c in r.columns] for r in rules], dtype=np.int64).reshape(-1, 2)
    return pairs, np.array([OPERATORS.index(r.op) for r in rules], dtype=np.int64)


def _cover_of(fields: Mapping[str, Any]) -> tuple[FileRef, FileRef] | None:
    if not fields.get("row_rules"):
        return None
    file = FileRef.from_dict(fields["row_rules"])
    return file, file
