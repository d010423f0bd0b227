"""Conditions that somebody relies on: pinned, and watched by every batch.

Violations are counted: a batch adds those of the rows that it inserts, and subtracts those of the rows that
it deletes. A few rows that violate a condition are kept; if a batch deletes the last of them while others are
left, these are looked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import News, plain_rows
from holdfast.core.rows.condition_tests import WITNESSES
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.root import Root
from holdfast.core.words.change import ROWS_SHOWN, Pin, WitnessRow
from holdfast.core.words.dependency import Dependency
from holdfast.denial.conditions import violations
from holdfast.denial.constraints import PinnedCheck, pinned_checks
from holdfast.kind import Crossing, TableClass, Tracking

I64 = NDArray[np.int64]


Checks = tuple[PinnedCheck, ...]


def verified(relation: Relation, formulas: Sequence[str]) -> list[PinnedCheck]:
    """Conditions with the rows that violate them now. One job."""
    against = violations(relation, formulas) if formulas else []
    return [PinnedCheck(f, n, tuple(ids.tolist())) for f, (n, ids) in zip(formulas, against, strict=True)]


class CheckClass(TableClass[Checks]):
    """Conditions on each row, with constants, that somebody wrote and relies on."""

    def discover(self, tracking: Tracking) -> Checks:
        return ()

    def grown(self, known: Checks, crossing: Crossing) -> Checks:
        formulas = [check.formula for check in known]
        gone = violations(crossing.before, formulas, row_ids=crossing.row_ids, limit=None)
        come = violations(crossing.after, formulas, segments=crossing.added)
        checks = tuple(map(_changed, known, gone, come))
        lost = [i for i, check in enumerate(checks) if check.n_violations and not check.row_ids]
        again = violations(crossing.after, [formulas[i] for i in lost]) if lost else []
        named = {i: tuple(row_ids.tolist()) for i, (_, row_ids) in zip(lost, again, strict=True)}
        return tuple(replace(check, row_ids=named.get(i, check.row_ids)) for i, check in enumerate(checks))

    def news(self, before: Checks, after: Checks, crossing: Crossing) -> News:
        return News()

    def dependencies(self, known: Checks, state: TableState) -> tuple[Sequence[Dependency], int]:
        return [], 0

    def pins(self, known: Checks, state: TableState, rows: Relation) -> tuple[Pin, ...]:
        return as_pins(known, state, rows)

    def summary(self, known: Checks, state: TableState, *, tracked: bool) -> None:
        return None

    def save(self, root: Root, state: TableState, known: Checks, before: Checks | None) -> Mapping[str, Any]:
        return {"checks": [check.to_dict() for check in known]}

    def load(self, root: Root, state: TableState) -> Checks | None:
        return pinned_checks(state) or None


def as_pins(checks: Checks, state: TableState, relation: Relation) -> tuple[Pin, ...]:
    """Pinned conditions with a few of the rows that violate them."""
    return tuple(
        check.pin(state, relation.n_rows, shown_rows(relation, check.row_ids[:ROWS_SHOWN]))
        for check in checks
    )


def shown_rows(relation: Relation, row_ids: Sequence[int]) -> list[WitnessRow]:
    ids = np.array(row_ids, dtype=np.int64)
    return [WitnessRow(int(i), row) for i, row in zip(ids, plain_rows(relation.fetch(ids)), strict=True)]


def _changed(check: PinnedCheck, gone: tuple[int, I64], come: tuple[int, I64]) -> PinnedCheck:
    deleted = set(gone[1].tolist())
    # What the batch brought is told first.
    row_ids = come[1].tolist() + [i for i in check.row_ids if i not in deleted]
    return replace(
        check, n_violations=check.n_violations - gone[0] + come[0], row_ids=tuple(row_ids[:WITNESSES])
    )


CLASS = CheckClass()
