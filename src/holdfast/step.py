"""One table and one batch: from what it was to what it will be, before anything is committed.

    track: read, type, encode                    -> each class finds what holds     -> index
    apply: resolve (read, type, encode, locate)  -> delete -> index what is new -> insert -> index, merge

At `delete` and at `insert` all classes that the table is tracked for look at the rows side by side, each by
its own law (`kind.py`). A step only writes files that nothing names yet. What the batch means for inclusions
is worked out from the steps of all tables together, and committed, by `commit.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from holdfast.core.cover.news import News
from holdfast.core.engine.engine import Engine
from holdfast.core.engine.rounds import side_by_side
from holdfast.core.evidence.sampling import sampled
from holdfast.core.rows.batch import Batch, Resolved, Resolver
from holdfast.core.rows.encoding import Target, encode_new, plan
from holdfast.core.rows.index_columns import columns_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef, TableState, table_folder
from holdfast.core.rows.writer import Context
from holdfast.core.sources import ReadOptions
from holdfast.core.sources.respelling import notes_of
from holdfast.core.store.arrow_types import python_rows
from holdfast.core.words.change import DependencyChange
from holdfast.core.words.schema import Nulls
from holdfast.errors import NOTHING_APPLIED, UnknownColumnError, UsageError, listing, shorten, shorten_row
from holdfast.kind import AS_TRACKED, Crossing, Step, Tracking, across_of, checked_options, class_of, entries
from holdfast.kind import kinds as known_kinds

Findings = Mapping[str, Any]  # by kind
# Options that no class has for itself, beside `kinds`.
DEFAULTS: Mapping[str, Any] = {
    "nulls": "equal",
    "row_key": (),
    "append_only": False,
    "options": None,
}


@dataclass(frozen=True)
class TableOptions:
    """How a table is tracked."""

    kinds: tuple[str, ...]
    nulls: Nulls
    row_key: tuple[str, ...]
    append_only: bool
    reading: ReadOptions
    classes: Mapping[str, Any]  # the options of each class that keeps something of a table by itself


def wanted(tables: Iterable[str], how: Mapping[str, Any]) -> tuple[TableOptions, dict[str, Any]]:
    """(how tables are tracked, options of classes about several tables): what was asked for, checked."""
    options = {"kinds": known_kinds()[:1], **DEFAULTS, **how}
    kinds = options.pop("kinds")
    nulls, row_key, append_only, reading = (options.pop(name) for name in DEFAULTS)
    if not tables:
        raise UsageError("no table is given to track.")
    for table in tables:
        if not table or len(table) > 200 or any(ord(c) < 32 for c in table):
            raise UsageError(f"{shorten(table)} cannot name a table: give 1 to 200 printable characters.")
        if not kinds:
            listed = ", ".join(known_kinds())
            raise UsageError(f"no kind of dependency is given for table {table!r}. Kinds: {listed}.")
    if nulls not in ("equal", "distinct"):
        raise UsageError(f"nulls is {shorten(nulls)}; expected 'equal' or 'distinct'.")
    chosen = {name: v for name, v in options.items() if not (v is None or v is False or v == ())}
    taken = {name for entry in entries().values() for name in entry.takes}
    for name in ReadOptions.public_names():
        if name in chosen and name not in taken:
            of = " with the file or the address of a database" if name == "sql" else ""
            raise UsageError(
                f"{name} says how sources are read. {NOTHING_APPLIED} Next step: give it among the options"
                f"{of}: options={{{name!r}: ...}}."
            )
    kinds, classes = checked_options(kinds, chosen)
    across = {kind: classes.pop(kind) for kind in across_of(kinds)}
    read = ReadOptions.checked(reading or {})
    return TableOptions(kinds, nulls, tuple(row_key), append_only, read, classes), across


def check_patterns(states: Sequence[TableState], how: Mapping[str, Any]) -> None:
    """Every pattern names a column of one of the tables."""
    names = list(dict.fromkeys(name for state in states for name in state.schema.names))
    for pattern in (*(how.get("columns") or ()), *how.get("exclude", ())):
        if not any(fnmatchcase(name, pattern) for name in names):
            tables = ", ".join(state.table for state in states)
            raise UnknownColumnError.from_missing(tables, None, pattern, names)


def track(context: Context, table: str, source: Any, options: TableOptions) -> Step:
    """Read a table, and find what holds in it for each class that is asked for."""
    state, sample, understood = _read(context, table, source, options)
    rows = context.relation(state, state.folder, "finding dependencies")
    findings, news, rounds = {}, {}, 0
    for kind, class_options in options.classes.items():
        cls = class_of(kind)
        now = cls.discover(Tracking(context, state, rows, class_options, sample))
        dependencies, unlisted = cls.dependencies(now, state)
        changes = tuple(DependencyChange("appeared", d, AS_TRACKED) for d in dependencies)
        findings[kind], news[kind] = now, News(changes, unlisted)
        rounds += _rounds(now)
    rows, state = _indexed(rows, state, findings)
    understood += _row_key_notes(rows, state, findings)
    no_rows = np.empty(0, np.int64)
    step = Step(None, state, {}, findings, rows, no_rows, rows.segments, news, rounds)
    return replace(step, understood=understood)


def _row_key_notes(rows: Relation, state: TableState, findings: Findings) -> tuple[str, ...]:
    """That the row key is not unique, with a value that comes twice, if a class knows one.

    One of all columns need not be: then each row that is named is one of those that are equal.
    """
    columns = [state.schema.names.index(name) for name in state.row_key]
    columns = columns if len(set(columns)) < len(state.schema) else []
    pairs = (class_of(kind).witnesses(now, columns) for kind, now in findings.items() if columns)
    pair = next((pair for pair in pairs if pair is not None), None)
    if pair is None:
        return ()
    [row] = python_rows(rows.fetch(pair[:1]))
    value = shorten_row(row[name] for name in state.row_key)
    return (
        f"the row key ({listing(state.row_key)}) is not unique: {value} comes more than once, so batches "
        "cannot name such rows by it",
    )


def _read(
    context: Context, table: str, source: Any, options: TableOptions
) -> tuple[TableState, Any, tuple[str, ...]]:
    """(the table without anything known of it, agree sets that were seen while it was encoded, notes)."""
    folder = table_folder(table)
    compress = options.append_only and not options.classes
    looks = [class_of(kind).look(class_options) for kind, class_options in options.classes.items()]
    look = next((look for look in reversed(looks) if look is not None), None)
    progress = context.progress("reading")
    target = Target(context.root, folder, table, None, options.nulls, context.engine, progress, compress)
    planned = plan(source, options.reading, target, context.staging)
    for name in options.row_key:
        if name not in planned.names:
            raise UnknownColumnError.from_missing(table, None, name, planned.names)
    encoded = encode_new(planned, target, list(options.row_key), 0, locate=not options.append_only, look=look)
    state = TableState(
        table=table,
        folder=folder,
        schema=encoded.schema,
        kinds=options.kinds,
        nulls=options.nulls,
        row_key=options.row_key,
        options=encoded.options.to_dict(),
        next_number=1 + max((s.number for s in encoded.segments), default=-1),
        segments=encoded.segments,
        append_only=options.append_only,
    )
    understood = (*planned.notes, *notes_of(encoded.schema, encoded.options))
    return state, sampled(encoded.seen, len(state.schema)), understood


def apply(
    context: Context,
    state: TableState,
    base: int,
    known: Findings,
    batch: Batch,
    reading: ReadOptions,
    across: Mapping[str, Any],
    *,
    commit: bool,
) -> Step:
    """Deletes first, then inserts. Without `commit` nothing is merged, and all files are temporary.

    `across` is what classes about several tables know, by kind: they are told of the batch beside the others.
    """
    _check_append_only(state, batch)
    folder = state.folder if commit else context.staging
    before = context.relation(state, folder, "applying")
    resolved = _resolved(context, before, state, base, batch, reading)
    row_ids, segments = resolved.row_ids, resolved.segments
    remaining, findings, rounds = before, known, 0
    if len(row_ids):
        remaining = before.without_rows(row_ids)
        crossing = Crossing(context, state, before, remaining, remaining, row_ids, (), commit=commit)
        findings, rounds, _ = _crossed(crossing, known, lambda cls: cls.shrunk, {})
    after, next_number, index_columns = remaining, state.next_number, state.index_columns
    added: tuple[SegmentRef, ...] = ()
    if segments:
        numbers = {s.number for s in segments}
        next_number = 1 + max(numbers)
        after, indexed = _indexed(remaining.with_segments(segments), state, findings)
        index_columns = indexed.index_columns
        added = tuple(s for s in after.segments if s.number in numbers)
    deleted = before.positioned(row_ids) if across_of(state.kinds) else ()
    crossing = Crossing(
        context, state, before, remaining, after, row_ids, added, index_columns, deleted, commit
    )
    findings, more, beside = _crossed(crossing, findings, lambda cls: cls.grown, across)
    findings = {kind: class_of(kind).settled(now, crossing) for kind, now in findings.items()}
    news = {kind: class_of(kind).news(known[kind], now, crossing) for kind, now in findings.items()}
    merged = replace(state, segments=after.segments)
    if commit:
        rows, merged = _indexed(after, merged, findings)
        rows, next_number = rows.tidied(next_number, merged.indexed_columns, merged.orders)
        merged = replace(merged, segments=rows.segments)
    merged = replace(merged, next_number=next_number)
    pins = tuple(p for kind, now in findings.items() for p in class_of(kind).pins(now, merged, after))
    rounds += more
    return Step(
        state,
        merged,
        known,
        findings,
        after,
        row_ids,
        segments,
        news,
        rounds,
        pins,
        deleted,
        beside,
        resolved.n_updated,
        resolved.n_unchanged,
        resolved.notes,
    )


def _resolved(
    context: Context, rows: Relation, state: TableState, base: int, batch: Batch, reading: ReadOptions
) -> Resolved:
    """Which rows go, and which come."""
    root, engine, progress = context.root, context.engine, context.progress("reading")
    staged = Target(root, context.staging, state.table, base, state.nulls, engine, progress, state.compressed)
    # Indexed while they are encoded: what classes look them up in then is there without a job of its own.
    target = replace(staged, folder=rows.folder, indexed=state.indexed_columns, orders=state.orders)
    resolver = Resolver(rows, target, state.row_key, reading, context.staging, staged)
    return resolver.resolve(batch, state.next_number)


def _crossed(
    crossing: Crossing,
    known: Findings,
    law: Callable[[Any], Callable[[Any, Crossing], Any]],
    across: Mapping[str, Any],
) -> tuple[Findings, int, dict[str, tuple[Any, Any]]]:
    """(findings, rounds, beside): what all classes make of a part of a batch, side by side."""
    across_classes = across_of(across)

    def run(kind: str) -> Callable[[Engine], Any]:
        if kind in across_classes:
            return lambda engine: across_classes[kind].beside(across[kind], crossing.by(engine))
        return lambda engine: law(class_of(kind))(known[kind], crossing.by(engine))

    kinds = [*known, *across_classes]
    results = dict(
        zip(kinds, side_by_side(crossing.context.engine, [run(kind) for kind in kinds]), strict=True)
    )
    beside = {kind: (across[kind], results.pop(kind)) for kind in across_classes}
    return results, sum(_rounds(now) for kind, now in results.items() if now is not known[kind]), beside


def _rounds(findings: Any) -> int:
    """How often rows were looked at in a row, of classes that do."""
    return getattr(findings, "rounds", 0)


def _indexed(rows: Relation, state: TableState, findings: Findings) -> tuple[Relation, TableState]:
    """With the indexes that the next batches are looked up in: those that there are, and those that lack."""
    probed, columns, orders = [], list(state.rule_columns), list(state.orders)
    for kind, now in findings.items():
        cls = class_of(kind)
        masks = cls.probed(now)
        if masks is not None:
            probed.append(masks)
        class_columns, class_orders = cls.indexes(now, rows)
        columns += [c for c in class_columns if c not in columns]
        orders += [key for key in class_orders if key not in orders]
    index_columns = state.index_columns
    if probed:
        masks = np.concatenate(probed)
        index_columns = tuple(columns_for(masks, rows.distinct(), rows.n_rows, index_columns))
    state = replace(state, index_columns=index_columns, rule_columns=tuple(columns), orders=tuple(orders))
    rows = rows.indexed(state.indexed_columns, orders)
    return rows, replace(state, segments=rows.segments)


def _check_append_only(state: TableState, batch: Batch) -> None:
    nouns = {"before": "rows before the update", "snapshot": "a snapshot"}
    refused = [nouns.get(part, part) for part in batch.parts if part not in ("inserts", "after")]
    if state.append_only and refused:
        raise UsageError(
            f"table {state.table!r} is append-only, so its batches cannot have {' and '.join(refused)}. "
            f"{NOTHING_APPLIED} Track it anew without --append-only to delete and update rows."
        )
