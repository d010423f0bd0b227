"""Column profiles as a class: how a workspace tracks them.

    discover: all live rows  -> counts of each column
    shrunk:   - deleted      -> counts; columns that lost an end are counted again, by one more job
    grown:    + inserted     -> counts

The counts are linear, so a batch costs what it is, in the jobs that all classes share. What they say of a
column (`column_profile.py`) and which rules its rows keep is worked out from them alone. News are rules: what
broke, with rows of the batch, and what holds now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import WIDE, News, plain_rows
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import unique_name
from holdfast.core.store.root import Root
from holdfast.core.words.change import ROWS_SHOWN, DependencyChange, Summary, WitnessRow
from holdfast.core.words.column_rule import ColumnRule
from holdfast.core.words.schema import Schema
from holdfast.errors import NOTHING_APPLIED, DamagedFileError, plural
from holdfast.kind import Crossing, TableClass, Tracking
from holdfast.profile.column_counts import ColumnCounts, in_bundle
from holdfast.profile.column_profile import ColumnProfile
from holdfast.profile.column_rules import profile_of
from holdfast.profile.column_tasks import Counts, count_added, count_all, count_deleted, violations
from holdfast.profile.profile_files import COUNTS, ProfileRef, profile_ref, write_profiles

I64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Profiles:
    """What is known of the columns of a table; exact for the relation it was computed on."""

    table: str
    schema: Schema
    counts: Counts

    @cached_property
    def columns(self) -> tuple[ColumnProfile, ...]:
        return tuple(
            profile_of(self.table, column, self.counts[c]) for c, column in enumerate(self.schema.columns)
        )

    @property
    def rules(self) -> list[ColumnRule]:
        return [rule for column in self.columns for rule in column.rules]


def profiled(table: str, relation: Relation) -> Profiles:
    """The profiles of a relation. One job; cost: a pass over all columns."""
    return Profiles(table, relation.schema, count_all(relation, range(len(relation.schema))))


class ProfileClass(TableClass[Profiles]):
    """What the values of each column are like, and the rules that follow."""

    def discover(self, tracking: Tracking) -> Profiles:
        return profiled(tracking.state.table, tracking.looking("profiling columns"))

    def shrunk(self, known: Profiles, crossing: Crossing) -> Profiles:
        """One job for the rows that go; another one if columns have to be counted again."""
        rows = crossing.remaining
        gone = count_deleted(crossing.before, known.counts, crossing.row_ids)
        left: dict[int, ColumnCounts] = {}
        for c, counts in known.counts.items():
            try:
                rest = counts.minus(gone[c])
            except ValueError as error:
                raise _damaged(rows, c, str(error)) from error
            if rest is not None:
                left[c] = rest
        again = [c for c in known.counts if c not in left]
        if again:
            left |= count_all(rows, again)
        return _checked(replace(known, counts={c: left[c] for c in known.counts}), rows)

    def grown(self, known: Profiles, crossing: Crossing) -> Profiles:
        """One job for the rows that come."""
        if not crossing.added:
            return known
        come = count_added(crossing.after, known.counts, crossing.added)
        counts = {c: counts.plus(come[c]) for c, counts in known.counts.items()}
        return _checked(replace(known, counts=counts), crossing.after)

    def news(self, before: Profiles, after: Profiles, crossing: Crossing) -> News:
        if before is after:
            return News()
        old, new = before.rules, after.rules
        was, now = {rule.formula for rule in old}, {rule.formula for rule in new}
        fresh = [rule for rule in new if rule.formula not in was]
        lost = [rule for rule in old if rule.formula not in now]
        changes = [*_losses(lost, fresh, crossing)]
        nulls_before = {p.column: p.n_nulls for p in before.columns}
        for rule in fresh:
            reason = f"holds now: {rule.reason}"
            if rule.aspect == "nulls" and nulls_before[rule.columns[0]]:
                reason = "holds now: the last row with NULL is gone"
            changes.append(DependencyChange("appeared", rule, reason))
        return News(tuple(changes))

    def dependencies(self, known: Profiles, state: TableState) -> tuple[Sequence[ColumnRule], int]:
        return known.rules, 0

    def summary(self, known: Profiles, state: TableState, *, tracked: bool) -> Summary:
        n_columns, n_nulls = len(known.columns), sum(p.n_nulls > 0 for p in known.columns)
        with_nulls = f" ({n_nulls:,} with NULLs)" if n_nulls else ""
        n = len(known.rules)
        text = f"{plural(n_columns, 'column')} profiled{with_nulls}"
        return Summary("profile", n, text, {"n_column_rules": n, "n_columns_with_nulls": n_nulls})

    def save(
        self, root: Root, state: TableState, known: Profiles, before: Profiles | None
    ) -> Mapping[str, Any]:
        if known is before:
            return {}
        name = unique_name(state.folder, "counts", ".arrow")
        counts = write_bundle(root, name, in_bundle(known.counts), {"holdfast": COUNTS})
        cover = write_profiles(root, state.folder, known.columns)
        return {"profile": ProfileRef(cover, counts).to_dict()}

    def load(self, root: Root, state: TableState) -> Profiles | None:
        ref = profile_ref(state)
        if ref is None:
            return None
        bundle = open_bundle(root, ref.counts, COUNTS)
        counts = {c: ColumnCounts.from_bundle(bundle, str(c)) for c in range(len(state.schema))}
        return Profiles(state.table, state.schema, counts)


def _checked(known: Profiles, rows: Relation) -> Profiles:
    """The same, if it is about as many rows as there are."""
    for c, counts in known.counts.items():
        if counts.n_rows != rows.n_rows:
            raise _damaged(rows, c, f"{counts.n_rows:,} rows are counted, and there are {rows.n_rows:,}")
    return known


def _damaged(relation: Relation, column: int, problem: str) -> DamagedFileError:
    name = relation.schema.names[column]
    return DamagedFileError(
        f"the counts of column {name!r} kept in {relation.folder!r} are not those of its rows: {problem}. "
        f"{NOTHING_APPLIED} Restore the workspace from a backup, or rebuild the table with 'holdfast track'."
    )


def _losses(
    lost: Sequence[ColumnRule], fresh: Sequence[ColumnRule], crossing: Crossing
) -> list[DependencyChange]:
    """Rules that are not listed any more: broken by rows of the batch, or overtaken by what it brought.

    A rule held before, so rows that violate it are in the batch. One job, if there are such rules.
    """
    if not lost:
        return []
    after, formulas = crossing.after, [rule.formula for rule in lost]
    against = [(0, np.empty(0, np.int64))] * len(lost)
    if crossing.added:
        against = violations(after, formulas, segments=crossing.added, limit=ROWS_SHOWN)
    ids = np.unique(np.concatenate([np.empty(0, np.int64), *(some for _, some in against)]))
    values = dict(zip(ids.tolist(), plain_rows(after.fetch(ids)), strict=True))
    names = after.schema.names
    changes = []
    for rule, (n, some) in zip(lost, against, strict=True):
        if n:
            shown = names if len(names) <= WIDE else tuple(dict.fromkeys([*rule.columns, *names[:WIDE]]))
            rows = tuple(WitnessRow(i, {name: values[i][name] for name in shown}) for i in some.tolist())
            verb = "violates" if n == 1 else "violate"
            reason = f"does not hold any more: {plural(n, 'new row')} {verb} it"
            changes.append(DependencyChange("broke", rule, reason, (rows,)))
            continue
        others = [r for r in fresh if r.columns == rule.columns and r.aspect != "nulls"]
        if others and rule.aspect != "nulls":
            changes.append(
                DependencyChange("implied", rule, f"still holds, but {others[0].formula} does now")
            )
        else:
            changes.append(DependencyChange("dropped", rule, "still holds, but too few rows speak for it"))
    return changes


CLASS = ProfileClass()
