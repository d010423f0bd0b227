"""The inclusions of a workspace, of one column and of several, from before a batch to after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.core.cover.news import plain_rows
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.writer import Context
from holdfast.core.store.root import Root
from holdfast.core.words.change import DependencyChange, WitnessRow
from holdfast.core.words.dependency import Side
from holdfast.inclusions import composites, inds
from holdfast.inclusions.composite_state import (
    Composite,
    Composites,
    read_composites,
    stopped_texts,
    write_composites,
)
from holdfast.inclusions.composites import CompositeStep
from holdfast.inclusions.generator import GeneratorState, PinnedInd
from holdfast.inclusions.ind_list import holds, inds_of
from holdfast.inclusions.inds import Inclusions, IndStep
from holdfast.inclusions.missing import ind_changes, orphans
from holdfast.inclusions.pair_counts import pair_ids
from holdfast.inclusions.tuple_reading import missing_of
from holdfast.inclusions.tuples import TableRows
from holdfast.inclusions.values import Values
from holdfast.kind import OtherTables, Step


@dataclass(frozen=True)
class Known:
    """What holds at a version: unary inclusions with their counts, and composite ones."""

    unary: Inclusions
    composites: Composites

    @property
    def state(self) -> GeneratorState:
        return self.unary.state

    @property
    def n_inds(self) -> int:
        return len(self.unary.holding) + len(self.composites.listed)

    def holds(self, dependent: Side, referenced: Side) -> bool | None:
        """Whether an inclusion misses nothing; None of several columns that were not looked at."""
        if self._is_listed(dependent, referenced):
            return True
        return holds(self.state, self.unary.pairs, self.composites, dependent, referenced)

    def _is_listed(self, dependent: Side, referenced: Side) -> bool:
        if len(dependent.columns) > 1:
            return Composite(dependent, referenced) in self.composites.listed
        ids = {name: i for i, name in self.state.names().items()}
        pair = ids[dependent.table, dependent.columns[0]] << 32 | ids[referenced.table, referenced.columns[0]]
        at = int(np.searchsorted(self.unary.holding, np.uint64(pair)))
        return at < len(self.unary.holding) and int(self.unary.holding[at]) == pair

    @classmethod
    def load(cls, root: Root, state: GeneratorState) -> Known:
        return cls(Inclusions.load(root, state), read_composites(root, state.composites))


@dataclass(frozen=True)
class InclusionStep:
    """The inclusions after a batch, and what it changed among them."""

    after: Known
    changes: tuple[DependencyChange, ...]
    accesses: Mapping[str, int]
    notes: tuple[str, ...]  # what is not known of the inclusions of its tables, in words


def take_in(
    context: Context,
    values: Values,
    known: Known,
    done: Sequence[Step],
    others: OtherTables,
    unary: IndStep,
    *,
    commit: bool,
) -> InclusionStep:
    """From the unary inclusions after some steps: composite ones are built from them and from the keys.

    `values.state` has the tables that are being tracked already.
    """
    relations = {step.table: step.rows for step in done}

    def relation(table: str) -> Relation:
        if table not in relations:
            relations[table] = context.relation(others.state(table), context.staging, "looking up")
        return relations[table]

    names = unary.after.state.names()
    for pair in unary.broke.tolist():
        relation(names[pair >> 32][0])
    tracked = all(step.before is None for step in done)
    changes = ind_changes(unary, relations, tracked=tracked)
    wide = _composite_step(values, unary, known, done, others, relation)
    changes += _composite_changes(wide, relation, tracked=tracked)
    state = unary.after.state
    if wide.after is not known.composites and wide.after != known.composites:
        state = replace(state, composites=write_composites(values.root, values.folder, wide.after))
    after = Known(unary.after.with_state(state), wide.after)
    tables = {step.table for step in done}
    pins = tuple(
        # Of what the batch leaves alone nothing is counted again.
        settled_pin(after, p, relation) if tables & p.tables else p
        for p in state.pins
    )
    state = replace(state, pins=pins)
    if commit:
        state = replace(values, state=state).tidied()
    accesses = {**unary.accesses, "composites_checked": wide.n_checked}
    notes = stopped_texts(wide.after, [step.table for step in done])
    return InclusionStep(replace(after, unary=unary.after.with_state(state)), changes, accesses, notes)


def without_table(values: Values, known: Known, table: str) -> Known:
    """What holds without the columns of a table that is dropped; no row or value is looked at."""
    unary = inds.dropped(values, known.unary, table)
    remaining = known.composites.without_table(table)
    pins = tuple(p for p in unary.state.pins if table not in p.tables)
    state = replace(unary.state, pins=pins)
    if remaining != known.composites:
        state = replace(state, composites=write_composites(values.root, values.folder, remaining))
    return Known(unary.with_state(state), remaining)


def _composite_step(
    values: Values,
    unary: IndStep,
    known: Known,
    done: Sequence[Step],
    others: OtherTables,
    relation: Callable[[str], Relation],
) -> CompositeStep:
    state = unary.after.state
    same = np.array_equal(known.unary.holding, unary.after.holding) and all(
        step.before is not None and step.keys_before == step.keys for step in done
    )
    steps = {step.table: step for step in done}
    tables: dict[str, TableRows] = {}
    for table in state.tables:
        step, as_text = steps.get(table.table), table.as_text
        if step is None:
            keys = others.keys(others.state(table.table))
            tables[table.table] = TableRows(relation(table.table), (), (), keys, as_text)
        else:
            tables[table.table] = TableRows(step.rows, step.added, step.deleted, step.keys, as_text)
    names = state.names()
    with_keys = {t for t, rows in tables.items() if rows.keys is not None}
    pairs = unary.after.holding if with_keys else np.empty(0, np.uint64)
    held = ((names[p >> 32], names[p & 0xFFFFFFFF]) for p in pairs.tolist())
    included = [p for p in held if p[1][0] in with_keys]
    before = known.composites
    return composites.maintain(before, included, tables, state.max_arity, same_basis=same)


def settled_pin(known: Known, pin: PinnedInd, relation: Callable[[str], Relation]) -> PinnedInd:
    """A pinned inclusion as it is now: it holds while no more rows than its terms allow miss their value.

    What is listed misses none, and the counts of pairs of columns have how many others miss theirs. Those of
    an append-only table have not: there its values are looked up, by one job, if the inclusion does not hold;
    so are those of several columns.
    """
    if known.holds(pin.dependent, pin.referenced):
        return replace(pin, holds=True, n_violations=0, n_rows=0)
    n, n_rows = _rows_against(known, pin, relation), relation(pin.dependent.table).n_rows
    return replace(pin, holds=pin.terms.allows(n, n_rows), n_violations=n, n_rows=n_rows)


def _rows_against(known: Known, pin: PinnedInd, relation: Callable[[str], Relation]) -> int:
    """How many rows have a value, or a combination of them, that is missing."""
    state = known.state
    if len(pin.dependent.columns) > 1:
        return missing_of(state, pin.dependent, pin.referenced, relation).n_rows
    ids = {name: i for i, name in state.names().items()}
    left, right = (ids[side.table, side.columns[0]] for side in (pin.dependent, pin.referenced))
    [ind] = inds_of(state, known.unary.pairs, pair_ids(np.array([left]), np.array([right])))
    if ind.missing_rows is not None:
        return ind.missing_rows
    table = state.table(pin.dependent.table)
    assert table is not None
    *_, n = orphans(state, relation(table.table), table, pin.dependent.columns[0], right, 0)
    return n


def _composite_changes(
    step: CompositeStep, relation: Callable[[str], Relation], *, tracked: bool
) -> tuple[DependencyChange, ...]:
    changes = []
    by_table: dict[str, dict[int, Any]] = {}  # rows by id; of a table all are fetched together
    for composite, row_ids in step.broke:
        by_table.setdefault(composite.dependent.table, {}).update(dict.fromkeys(row_ids))
    for name, rows_of in by_table.items():
        if rows_of:
            by_table[name] = dict(zip(rows_of, plain_rows(relation(name).fetch(list(rows_of))), strict=True))
    for composite, row_ids in step.broke:
        ind = composite.as_ind()
        if not row_ids:
            why = "is not listed any more: one of its columns is no longer included, or the key is gone"
            changes.append(DependencyChange("broke", ind, why))
            continue
        rows = [by_table[composite.dependent.table][row_id] for row_id in row_ids]
        missing = tuple([row[c] for c in composite.dependent.columns] for row in rows)
        tuples = ", ".join(f"({', '.join(map(repr, values))})" for values in missing)
        witnesses = tuple((WitnessRow(i, v),) for i, v in zip(row_ids, rows, strict=True))
        changes.append(
            DependencyChange("broke", ind, f"misses combinations such as {tuples}", witnesses, missing)
        )
    for composite in step.dropped:
        arity = step.after.stopped[composite.dependent.table, composite.referenced.table]
        why = f"has more columns than are listed now: there are too many combinations of {arity + 1}"
        changes.append(DependencyChange("dropped", composite.as_ind(), why))
    reason = "holds in the tables as tracked" if tracked else "holds since this batch"
    changes += [DependencyChange("appeared", c.as_ind(), reason) for c in step.appeared]
    return tuple(changes)
