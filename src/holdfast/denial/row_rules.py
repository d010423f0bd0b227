"""Row rules, discovered and maintained: outcomes of all rows are counted, a batch is added or subtracted.

    discover: all live rows            -> counts
    change:   + inserted - deleted     -> counts

The counts are linear, so no row is looked at twice, and a batch costs what the batch is. Which rules hold,
at whatever error, is read off the counts (`row_rule_list.py`). Only whether columns are `apart` is no sum:
it is read off the dictionaries, or off the rows where a segment has lost some.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import MAX_LISTED, WIDE, News, broken_text, near_text, plain_rows
from holdfast.core.rows.kernels.operators import EQUAL, GREATER, LESS
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.words.change import DependencyChange, Event, WitnessRow
from holdfast.core.words.row_rule import RowRule
from holdfast.denial.row_counting import apart, count_all, count_change
from holdfast.denial.row_counts import IMPLIES, RowCounts
from holdfast.denial.row_rule_list import RowRuleState, comparable_pairs, named_rules, ordered_pairs
from holdfast.denial.shown_rows import ShownRows, asked_rows
from holdfast.errors import NOTHING_APPLIED, DamagedFileError, plural

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


def discover(relation: Relation, max_error: float, columns: Collection[str] | None = None) -> RowRuleState:
    """The row rules of a new relation, of some columns or all. One job; cost: 0.1-0.3 ns a row and pair."""
    pairs = comparable_pairs(relation.schema, columns)
    return _state(relation, pairs, RowCounts(count_all(relation, pairs)), max_error)


def change(
    state: RowRuleState, before: Relation, after: Relation, row_ids: I64, added: Sequence[SegmentRef]
) -> RowRuleState:
    """The row rules after a batch that deleted rows of `before` and added segments to `after`.

    One job; cost: batch x pairs, and the ends of dictionaries. The job brings the rows, too, that news may
    show.
    """
    if not len(row_ids) and not added:
        return state
    n_come = sum(segment.n_live for segment in added)
    ordered = ordered_pairs(state.pairs, after.schema)
    asked = asked_rows(state.counts, len(row_ids), n_come, ordered, state.max_error)
    (gone, left), (come, brought) = count_change(before, after, state.pairs, row_ids, added, asked)
    try:
        counts = state.counts.minus(RowCounts(gone)).plus(RowCounts(come))
    except ValueError as error:
        raise _damaged(before, str(error)) from error
    if len(counts) and counts.n_rows != after.n_rows:
        raise _damaged(after, f"{counts.n_rows:,} rows are counted, and there are {after.n_rows:,}.")
    return replace(_state(after, state.pairs, counts, state.max_error), gone=left, come=brought)


def _damaged(relation: Relation, problem: str) -> DamagedFileError:
    return DamagedFileError(
        f"the row counts kept in {relation.folder!r} are not those of its rows: {problem} {NOTHING_APPLIED} "
        "Restore the workspace from a backup, or rebuild the table with 'holdfast track'."
    )


def _state(relation: Relation, pairs: I32, counts: RowCounts, max_error: float) -> RowRuleState:
    """With what is apart: only pairs of which all rows are less, or all are greater, can be."""
    less, equal, greater = (counts.counts[:, outcome] for outcome in (LESS, EQUAL, GREATER))
    possible = ((less > 0) != (greater > 0)) & (equal == 0) & ordered_pairs(pairs, relation.schema)
    separate = np.zeros(len(pairs), dtype=np.bool_)
    separate[possible] = apart(relation, pairs[possible])
    return RowRuleState(pairs, counts, max_error, separate)


# -- news --------------------------------------------------------------------------------------


def row_news(
    table: str,
    before: RowRuleState,
    after: RowRuleState,
    old: Relation,
    new: Relation,
) -> News:
    """What a batch changed, and which of its rows are the reason: up to three in one group of witnesses.

    `old` has the deleted rows, `new` the added segments.

    - `broke`: rows violate it now; the batch brought all of them.
    - `appeared`: it is the tightest of its columns that no row violates; what violated it was deleted, or a
      tighter one broke, or no row had both values before.
    - `implied`: it holds still, but a tighter one does too, or no row has both values any more.
    - `within`, `beyond`: it became, or is no more, the tightest within the tracked error; told of those that
      are not told as exact ones.
    """
    if before is after:
        return News()
    news = _News(table, before, after, old, new)
    return News((*news.exact(), *news.approximate()), news.unlisted)


class _News:
    def __init__(
        self,
        table: str,
        before: RowRuleState,
        after: RowRuleState,
        old: Relation,
        new: Relation,
    ) -> None:
        self.table, self.before, self.after = table, before, after
        self.old, self.new = old, new
        self.schema = new.schema
        self.ordered = ordered_pairs(after.pairs, self.schema)
        self.was, self.now = (s.counts.tightest(self.ordered) for s in (before, after))
        self.unlisted = 0

    def exact(self) -> list[DependencyChange]:
        """Rules without exceptions, of pairs whose tightest one is another one now."""
        was, now = self.was, self.now
        moved = was != now
        violations = self.after.counts.violations()[np.arange(len(was)), was]
        refuted = moved & (was >= 0) & (violations > 0)
        loosened = refuted & (now >= 0) & IMPLIES[was, now]
        broke = self.chosen(refuted)
        rules = self.named(broke, was, went=True)
        shown = self.rows(self.new, rules, self.after.come, broke, was)
        changes = [
            DependencyChange("broke", r, self.violated(r), w) for r, w in zip(rules, shown, strict=True)
        ]
        fresh = self.chosen(moved & (now >= 0) & ~loosened)
        rules = self.named(fresh, now)
        shown = self.rows(self.old, rules, self.after.gone, fresh, now)
        compared = self.before.counts.n_compared[fresh].tolist()
        changes += [
            DependencyChange("appeared", r, _appeared(n, w), w)
            for r, n, w in zip(rules, compared, shown, strict=True)
        ]
        looser = self.chosen(loosened)
        changes += [
            DependencyChange("appeared", r, f"is the tightest now that {broken.formula} broke")
            for r, broken in zip(self.named(looser, now), self.named(looser, was), strict=True)
        ]
        implied = self.chosen(moved & (was >= 0) & ~refuted)
        changes += [
            DependencyChange("implied", r, self.implied(p))
            for r, p in zip(self.named(implied, was, went=True), implied.tolist(), strict=True)
        ]
        return changes

    def approximate(self) -> list[DependencyChange]:
        """Rules within the tracked error that are not told as exact ones."""
        limit = self.after.max_error
        if not limit:
            return []
        was, now = (s.counts.tightest(self.ordered, limit) for s in (self.before, self.after))
        changes: list[DependencyChange] = []
        sorts: tuple[tuple[Event, I64, I64], ...] = (("within", now, self.now), ("beyond", was, self.was))
        for event, here, exact in sorts:
            at = self.chosen((was != now) & (here >= 0) & (here != exact))
            rules = self.named(at, here)
            shown = self.rows(self.new, rules, self.after.come, at, here)
            for rule, rows in zip(rules, shown, strict=True):
                changes.append(DependencyChange(event, rule, self.near(rule, event), rows))
        return changes

    def chosen(self, which: Bool) -> I64:
        """The numbers of some pairs; those that are not listed are counted."""
        at = np.flatnonzero(which)
        self.unlisted += max(0, len(at) - MAX_LISTED)
        return at[:MAX_LISTED]

    def named(self, at: I64, operators: I64, *, went: bool = False) -> list[RowRule]:
        """The rules of some pairs, with what violates them after the batch; of those that went, whether their
        columns were far apart while they held."""
        chosen = zip(at.tolist(), operators[at].tolist(), strict=True)
        state = replace(self.after, apart=self.before.apart) if went else self.after
        return named_rules(state, self.table, self.schema, chosen)

    def violated(self, rule: RowRule) -> str:
        verb = "violates" if rule.n_exceptions == 1 else "violate"
        who = f": {plural(rule.n_exceptions, 'row')} of {rule.n_compared:,} {verb} it"
        return broken_text(rule.error, self.after.max_error, who)

    def near(self, rule: RowRule, event: Event) -> str:
        if not rule.n_compared:
            return "no row has both values any more"
        return near_text(event, rule.error, self.after.max_error, "a tighter one")

    def implied(self, pair: int) -> str:
        if self.now[pair] < 0:
            return "is violated by no row, but no row has both values any more"
        [tighter] = named_rules(self.after, self.table, self.schema, [(pair, int(self.now[pair]))])
        return f"still holds, but {tighter.formula} does now"

    def rows(
        self,
        relation: Relation,
        rules: Sequence[RowRule],
        shown: ShownRows,
        at: I64,
        operators: I64,
    ) -> list[tuple[tuple[WitnessRow, ...], ...]]:
        """For each rule, by its pair and operator, a group of rows of the batch that violate it."""
        violating = [
            shown.violating(p, op) for p, op in zip(at.tolist(), operators[at].tolist(), strict=True)
        ]
        ids = np.unique(np.concatenate([np.empty(0, np.int64), *violating]))
        values = dict(zip(ids.tolist(), plain_rows(relation.fetch(ids)), strict=True)) if len(ids) else {}
        groups: list[tuple[tuple[WitnessRow, ...], ...]] = []
        for rule, against in zip(rules, violating, strict=True):
            names = self.schema.names
            if len(names) > WIDE:  # those that it is about, and the first ones
                names = tuple(dict.fromkeys([*rule.columns, *names[:WIDE]]))
            rows = tuple(WitnessRow(r, {name: values[r][name] for name in names}) for r in against.tolist())
            groups.append((rows,) if rows else ())
        return groups


def _appeared(n_compared: int, gone: tuple[tuple[WitnessRow, ...], ...]) -> str:
    if gone:
        return "holds now; rows that violated it are gone"
    return "holds now" if n_compared else "holds in the first rows that have both values"
