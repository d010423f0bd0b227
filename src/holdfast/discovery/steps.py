"""One table and one batch: from what it was to what it will be, before anything is committed.

A step runs resolve (read, type, encode, locate), delete, insert, index and merge on one table, with its
keys where they are tracked. It only writes files that nothing names yet. What the batch means for
inclusions is worked out from the steps of all tables together (`inds.py`), and the workspace commits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.discovery import keys
from holdfast.discovery.keys import KeyState
from holdfast.discovery.report import net_changes
from holdfast.errors import NOTHING_APPLIED, UnknownColumnError, UsageError
from holdfast.kernels.masks import mask_of
from holdfast.kernels.pairs import WITNESSES
from holdfast.model.change import DependencyChange, Pin, TableChange
from holdfast.model.dependency import Ucc
from holdfast.model.schema import Nulls
from holdfast.pipeline.batch import Batch, Resolver
from holdfast.pipeline.encode import Target, encode_new, plan
from holdfast.pipeline.engine import Engine, Progress
from holdfast.pipeline.relation import Relation
from holdfast.pipeline.sources import ReadOptions
from holdfast.state.cover import Cover
from holdfast.state.evidence import WitnessedEvidence
from holdfast.storage.bundle import open_bundle, write_bundle
from holdfast.storage.files import unique_name
from holdfast.storage.segments import open_segment
from holdfast.storage.tables import SegmentRef, TableState, columns_of, read_masks, table_folder

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Context:
    """Where a step works: the workspace, a folder for its temporary files, the engine."""

    root: Path
    staging: str
    engine: Engine
    progress: Callable[[str], Progress | None]

    def relation(self, state: TableState, folder: str, stage: str) -> Relation:
        return Relation(
            self.root,
            folder,
            self.staging,
            state.schema,
            state.nulls,
            tuple(state.locator),
            state.segments,
            self.engine,
            self.progress(stage),
            state.compressed,
        )


@dataclass(frozen=True)
class TableOptions:
    """How a table is tracked."""

    kinds: tuple[str, ...]
    nulls: Nulls
    row_key: tuple[str, ...]
    max_columns: int
    append_only: bool
    reading: ReadOptions


@dataclass(frozen=True)
class Step:
    """A table before and after a batch."""

    before: TableState | None  # None: it is being tracked
    state: TableState  # after, merged, but with the cover of before: `saved` completes it
    known: KeyState | None
    found: KeyState | None
    rows: Relation  # after, not merged: every row that the batch touched can be fetched from it
    row_ids: I64  # deleted
    added: tuple[SegmentRef, ...]  # inserted
    changes: tuple[DependencyChange, ...]
    pins: tuple[Pin, ...]
    rounds: int

    @property
    def table(self) -> str:
        return self.state.table

    @property
    def summary(self) -> TableChange:
        return TableChange(
            self.table,
            sum(s.n_rows for s in self.added),
            len(self.row_ids),
            self.rows.n_rows,
            len(self.found.cover) if self.found is not None else None,
            self.state.max_columns,
        )

    def key_columns(self) -> list[tuple[int, ...]]:
        """The minimal keys after, as positions of columns."""
        return columns_of(self.found.cover.masks) if self.found is not None else []

    @cached_property
    def deleted(self) -> tuple[tuple[SegmentRef, I64], ...]:
        """The deleted rows as positions in the segments they were in."""
        if self.before is None or not len(self.row_ids):
            return ()
        found = []
        for ref in self.before.segments:
            at = open_segment(self.rows.root, ref, self.state.schema).positions(self.row_ids)
            if (at >= 0).any():
                found.append((ref, at[at >= 0].astype(np.int64)))
        return tuple(found)

    def saved(self, root: Path) -> TableState:
        """The state with cover and evidence written, unless they are what the last commit has."""
        if self.found is None:
            return self.state
        written: dict[str, Any] = {}
        before = self.known
        if before is None or self.found.cover is not before.cover:
            name = unique_name(self.state.folder, "cover", ".arrow")
            written["cover"] = write_bundle(
                root, name, {"masks": self.found.cover.masks}, {"holdfast": "cover"}
            )
        if before is None or self.found.evidence is not before.evidence:
            name = unique_name(self.state.folder, "evidence", ".arrow")
            arrays = self.found.evidence.to_arrays()
            written["evidence"] = write_bundle(root, name, arrays, {"holdfast": "evidence"})
        return replace(self.state, **written)


def track(context: Context, table: str, source: Any, options: TableOptions) -> Step:
    """Read a table, and find its keys if they are wanted."""
    folder = table_folder(table)
    wants_keys = "ucc" in options.kinds
    progress = context.progress("reading")
    compress = options.append_only and not wants_keys
    target = Target(context.root, folder, table, None, options.nulls, context.engine, progress, compress)
    planned = plan(source, options.reading, target, context.root / context.staging / folder)
    for name in options.row_key:
        if name not in planned.names:
            raise UnknownColumnError.from_missing(table, None, name, planned.names)
    encoded = encode_new(
        planned, target, list(options.row_key), 0, locate=not options.append_only, sample=wants_keys
    )
    state = TableState(
        table=table,
        folder=folder,
        schema=encoded.schema,
        kinds=options.kinds,
        nulls=options.nulls,
        row_key=options.row_key,
        max_columns=options.max_columns,
        options=encoded.options.to_dict(),
        next_number=1 + max((s.number for s in encoded.segments), default=-1),
        segments=encoded.segments,
        index_columns=(),
        cover=None,
        evidence=None,
        append_only=options.append_only,
    )
    relation = context.relation(state, folder, "finding keys")
    found: KeyState | None = None
    changes: tuple[DependencyChange, ...] = ()
    rounds = 0
    if wants_keys:
        found = keys.discover(relation, encoded.masks, encoded.witnesses, options.max_columns)
        columns = keys.index_columns_for(relation, found.cover, ())
        relation = relation.indexed(columns)
        state = replace(state, segments=relation.segments, index_columns=tuple(columns))
        changes = tuple(
            DependencyChange("appeared", u, "holds in the table as tracked")
            for u in uccs_of(state, found.cover)
        )
        rounds = found.rounds
    none = np.empty(0, np.int64)
    return Step(None, state, None, found, relation, none, relation.segments, changes, (), rounds)


def apply(
    context: Context,
    state: TableState,
    base: int,
    known: KeyState | None,
    batch: Batch,
    reading: ReadOptions,
    *,
    commit: bool,
) -> Step:
    """Deletes first, then inserts. Without `commit` nothing is merged, and all files are temporary."""
    table, staging = state.table, context.staging
    _check_append_only(state, batch)
    folder = state.folder if commit else staging
    relation = context.relation(state, folder, "applying")
    progress = context.progress("reading")
    engine, compress = context.engine, state.compressed
    target = Target(context.root, folder, table, base, state.nulls, engine, progress, compress)
    place = context.root / staging / table_folder(table)
    resolver = Resolver(relation, target, state.row_key, reading, place, replace(target, folder=staging))
    resolved = resolver.resolve(batch, state.next_number)
    old, after, columns = relation, known, list(state.index_columns)
    rounds = 0
    if len(resolved.row_ids):
        relation = relation.without_rows(resolved.row_ids)
        if after is not None:
            after = keys.delete(relation, after, resolved.row_ids)
            rounds = after.rounds
    next_number = state.next_number
    if resolved.segments:
        next_number = 1 + max(s.number for s in resolved.segments)
        if after is not None:
            columns = keys.index_columns_for(relation, after.cover, columns)
        relation = relation.with_segments(resolved.segments).indexed(columns)
        if after is not None:
            numbers = {s.number for s in resolved.segments}
            added = [s for s in relation.segments if s.number in numbers]
            after = keys.insert(relation, after, added, columns)
            rounds += after.rounds
    whole = relation
    if commit:
        if after is not None:
            columns = keys.index_columns_for(relation, after.cover, columns)
        relation, next_number = relation.indexed(columns).tidied(next_number, columns)
    changes: tuple[DependencyChange, ...] = ()
    pins: tuple[Pin, ...] = ()
    if known is not None and after is not None:
        changes = net_changes(table, known, after, old, whole)
        pins = _pins(state, after.cover, whole)
    state_after = replace(
        state,
        next_number=next_number,
        segments=relation.segments,
        index_columns=tuple(columns),
        pins=tuple((p.columns, p.holds) for p in pins),
    )
    return Step(
        state, state_after, known, after, whole, resolved.row_ids, resolved.segments, changes, pins, rounds
    )


def load_keys(root: Path, state: TableState) -> KeyState | None:
    """The keys and their evidence, as the commit names them; None where they are not tracked."""
    if state.cover is None or state.evidence is None:
        return None
    masks = read_masks(root, state.cover, "cover", len(state.schema))
    bundle = open_bundle(root, state.evidence, "evidence")
    arrays = {name: bundle.array(name) for name in ("masks", "witnesses")}
    evidence = WitnessedEvidence.from_arrays(arrays, masks.shape[1], WITNESSES)
    return KeyState(evidence, Cover(masks, len(state.schema), state.max_columns))


def uccs_of(state: TableState, cover: Cover) -> list[Ucc]:
    """The keys of a cover, short ones first."""
    names = state.schema.names
    found = sorted(columns_of(cover.masks), key=lambda columns: (len(columns), columns))
    return [Ucc(state.table, tuple(names[c] for c in columns)) for columns in found]


def _check_append_only(state: TableState, batch: Batch) -> None:
    parts = {"deletes": batch.deletes, "updates": batch.updates, "rows before the update": batch.before}
    given = [name for name, part in parts.items() if part is not None]
    if state.append_only and given:
        raise UsageError(
            f"table {state.table!r} is append-only, so its batches cannot have {' and '.join(given)}. "
            f"{NOTHING_APPLIED} Track it anew without --append-only to delete and update rows."
        )


def _pins(state: TableState, cover: Cover, relation: Relation) -> tuple[Pin, ...]:
    """The pins after a batch; what is wider than the bound on keys is looked up in the rows."""
    if not state.pins:
        return ()
    found = [set(u.columns) for u in uccs_of(state, cover)]
    pinned = [columns for columns, _ in state.pins]
    holds = [any(k <= set(p) for k in found) for p in pinned]
    wide = [i for i, p in enumerate(pinned) if not holds[i] and 0 < state.max_columns < len(p)]
    if wide:
        positions = [[state.schema.names.index(c) for c in pinned[i]] for i in wide]
        checked = relation.validate(np.stack([mask_of(p, cover.masks.shape[1]) for p in positions]))
        for i, refuted in zip(wide, checked.refuted, strict=True):
            holds[i] = not refuted
    return tuple(Pin(state.table, p, h) for p, h in zip(pinned, holds, strict=True))


def check_patterns(states: Sequence[TableState], patterns: Sequence[str]) -> None:
    """Every pattern names a column of one of the tables."""
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for state in states for name in state.schema.names):
            names = list(dict.fromkeys(name for state in states for name in state.schema.names))
            tables = ", ".join(state.table for state in states)
            raise UnknownColumnError.from_missing(tables, None, pattern, names)
