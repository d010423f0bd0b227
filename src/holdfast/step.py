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

from holdfast.core.cover.cover import Cover
from holdfast.core.cover.news import MAX_LISTED, Kind
from holdfast.core.engine.engine import Engine, Progress
from holdfast.core.engine.rounds import side_by_side
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.predicate_space import predicate_space
from holdfast.core.evidence.refute import validate
from holdfast.core.evidence.sampling import look_for_fds, look_for_keys, sampled
from holdfast.core.evidence.witnessed import WitnessedEvidence
from holdfast.core.rows.batch import Batch, Resolver
from holdfast.core.rows.encoding import Look, Target, encode_new, plan
from holdfast.core.rows.kernels.masks import mask_of, unique_masks
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import (
    PinnedKey,
    SegmentRef,
    TableState,
    columns_of,
    read_masks,
    table_folder,
)
from holdfast.core.sources import ReadOptions
from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import unique_name
from holdfast.core.words.change import DependencyChange, Pin, TableChange
from holdfast.core.words.dependency import Ucc
from holdfast.core.words.schema import Nulls
from holdfast.denial import dc_counted, dc_witnessed, row_rule_list, row_rules
from holdfast.denial import dc_state as dcs
from holdfast.denial.access.plan import expected_evidences
from holdfast.denial.budget import stopped_text
from holdfast.denial.constraints import DcLimits
from holdfast.denial.dc_news import DcNews, dc_news
from holdfast.denial.dc_state import DcOptions, DcState, dcs_of
from holdfast.denial.row_rule_list import RowRuleState, rules_of
from holdfast.denial.written_rules import as_pins, watched
from holdfast.errors import NOTHING_APPLIED, UnknownColumnError, UsageError
from holdfast.functional import fd_counted, fd_witnessed, keys
from holdfast.functional import fd_state as fds
from holdfast.functional.fd_news import FdNews, fd_news
from holdfast.functional.fd_state import FdOptions, FdState, chosen_evidence, fds_of
from holdfast.functional.key_news import net_changes
from holdfast.functional.keys import KeyState

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Context:
    """Where a step works: the workspace, a folder for its temporary files, the engine."""

    root: Path
    staging: str
    engine: Engine
    progress: Callable[[str], Progress | None]

    def searching(self, limits: DcLimits) -> Progress | None:
        """Where the search for denial constraints tells how many it has found."""
        return self.progress(f"finding denial constraints, at most {limits.seconds:g} s")

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
    fds: FdOptions
    dcs: DcOptions
    row_error: float  # the share of rows up to which row rules are kept in sight


@dataclass(frozen=True)
class Findings:
    """What is known of a table: None where it is not tracked."""

    keys: KeyState | None = None
    fds: FdState | None = None
    dcs: DcState | None = None
    rows: RowRuleState | None = None

    def probed(self, n_words: int) -> U64:
        """What batches are probed for: keys, and left-hand sides on witnessed evidence."""
        none = np.empty((0, n_words), np.uint64)
        found = self.keys.cover.masks if self.keys is not None else none
        if self.fds is None or self.fds.evidence_kind == "counted":
            return found
        masks = self.fds.cover.masks
        return np.concatenate([found, masks[unique_masks(masks)[0]]])


@dataclass(frozen=True)
class Step:
    """A table before and after a batch."""

    before: TableState | None  # None: it is being tracked
    state: TableState  # after, merged, but with the cover of before: `saved` completes it
    known: Findings
    found: Findings
    rows: Relation  # after, not merged: every row that the batch touched can be fetched from it
    row_ids: I64  # deleted
    added: tuple[SegmentRef, ...]  # inserted
    changes: tuple[DependencyChange, ...]
    pins: tuple[Pin, ...]
    rounds: int
    fd_news: FdNews | None = None  # of functional dependencies; its changes are among `changes`
    more_unlisted: int = 0  # changes of denial constraints and row rules that are too many to list

    @property
    def table(self) -> str:
        return self.state.table

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not known any more, in words."""
        known, found = self.known.dcs, self.found.dcs
        if found is None or not found.stopped:
            return ()
        n_dropped = 0
        if known is not None:
            if known.cover.max_size == found.cover.max_size:
                return ()
            n_dropped = len(known.listed) - len(known.bounded(found.cover.max_size).listed)
        return (stopped_text(self.table, found, n_dropped),)

    @property
    def summary(self) -> TableChange:
        return TableChange(
            self.table,
            sum(s.n_rows for s in self.added),
            len(self.row_ids),
            self.rows.n_rows,
            len(self.found.keys.cover) if self.found.keys is not None else None,
            self.state.max_columns,
            n_row_rules=self._n_row_rules(),
            **{**self._fd_summary(), **self._dc_summary()},
            unlisted=(self.fd_news.unlisted if self.fd_news is not None else 0) + self.more_unlisted,
        )

    def _fd_summary(self) -> dict[str, Any]:
        found = self.found.fds
        if found is None:
            return {}
        return {
            "n_fds": len(found.cover),
            "max_lhs": found.cover.max_lhs,
            "evidence": found.evidence_kind,
            "max_error": found.max_error,
        }

    def _n_row_rules(self) -> int | None:
        found = self.found.rows
        return None if found is None else len(rules_of(found, self.table, self.state.schema))

    def _dc_summary(self) -> dict[str, Any]:
        found = self.found.dcs
        if found is None:
            return {}
        return {
            "n_dcs": len(found.listed),
            "max_predicates": found.cover.max_size,
            "dc_evidence": found.evidence_kind,
            "max_error": found.max_error,
            "n_predicates": found.space.n_comparisons,
        }

    def key_columns(self) -> list[tuple[int, ...]]:
        """The minimal keys after, as positions of columns."""
        return columns_of(self.found.keys.cover.masks) if self.found.keys is not None else []

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
        """The state with covers and evidence written, unless they are what the last commit has."""
        written: dict[str, Any] = {}
        before, found = self.known.keys, self.found.keys
        if found is not None:
            if before is None or found.cover is not before.cover:
                name = unique_name(self.state.folder, "cover", ".arrow")
                written["cover"] = write_bundle(
                    root, name, {"masks": found.cover.masks}, {"holdfast": "cover"}
                )
            if before is None or found.evidence is not before.evidence:
                name = unique_name(self.state.folder, "evidence", ".arrow")
                arrays = found.evidence.to_arrays()
                written["evidence"] = write_bundle(root, name, arrays, {"holdfast": "evidence"})
        if self.found.fds is not None:
            written["fds"] = fds.save(root, self.state.folder, self.found.fds, self.known.fds, self.state.fds)
        if self.found.dcs is not None:
            written["dcs"] = dcs.save(root, self.state.folder, self.found.dcs, self.known.dcs, self.state.dcs)
        if self.found.rows is not None:
            written["row_rules"] = row_rule_list.save(
                root, self.state.folder, self.found.rows, self.known.rows, self.state.row_rules
            )
        return replace(self.state, **written)


def track(context: Context, table: str, source: Any, options: TableOptions) -> Step:
    """Read a table, and find its keys and functional dependencies if they are wanted."""
    folder = table_folder(table)
    wants_keys, wants_fds, wants_dcs, wants_rows = (
        kind in options.kinds for kind in ("ucc", "fd", "dc", "row")
    )
    progress = context.progress("reading")
    compress = options.append_only and not (wants_keys or wants_fds or wants_dcs or wants_rows)
    look: Look | None = look_for_keys if wants_keys else None
    if wants_fds and options.fds.evidence != "counted" and not options.fds.max_error:
        look = look_for_fds
    target = Target(context.root, folder, table, None, options.nulls, context.engine, progress, compress)
    planned = plan(source, options.reading, target, context.root / context.staging / folder)
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
        max_columns=options.max_columns,
        options=encoded.options.to_dict(),
        next_number=1 + max((s.number for s in encoded.segments), default=-1),
        segments=encoded.segments,
        index_columns=(),
        cover=None,
        evidence=None,
        append_only=options.append_only,
    )
    relation = context.relation(state, folder, "finding keys" if wants_keys else "finding dependencies")
    seen = sampled(encoded.seen, len(state.schema))
    key_state: KeyState | None = None
    fd_state: FdState | None = None
    changes: list[DependencyChange] = []
    rounds, news = 0, None
    reason = "holds in the table as tracked"
    if wants_keys:
        key_state = keys.discover(relation, *seen, options.max_columns)
        changes += [DependencyChange("appeared", u, reason) for u in uccs_of(state, key_state.cover)]
        rounds = key_state.rounds
    if wants_fds:
        how = options.fds
        relation = replace(relation, progress=context.progress("finding functional dependencies"))
        if chosen_evidence(how, relation.n_rows, len(state.schema)) == "counted":
            fd_state = fd_counted.discover(relation, how.max_lhs, how.max_error)
        else:
            fd_state = fd_witnessed.discover(relation, *seen, how.max_lhs)
        if len(fd_state.cover) <= MAX_LISTED:
            changes += [DependencyChange("appeared", d, reason) for d in fds_of(state, fd_state.cover)]
        else:
            news = replace(FdNews.none(relation.n_words), unlisted=len(fd_state.cover))
        rounds += fd_state.rounds
    dc_state, unlisted = None, 0
    if wants_dcs:
        dc_state = _track_dcs(context, relation, state, options.dcs)
        rounds += dc_state.rounds
        if len(dc_state.listed) <= MAX_LISTED:
            named = dcs_of(table, dc_state.space, dc_state.listed)
            changes += [DependencyChange("appeared", d, reason) for d in named]
        else:
            unlisted = len(dc_state.listed)
    row_state = None
    if wants_rows:
        chosen = _chosen_columns(state, options.dcs)
        row_state = row_rules.discover(relation, options.row_error, chosen)
        listed = rules_of(row_state, table, state.schema)
        changes += [DependencyChange("appeared", r, reason) for r in listed[:MAX_LISTED]]
        unlisted += max(0, len(listed) - MAX_LISTED)
    found = Findings(key_state, fd_state, dc_state, row_state)
    relation, state = _with_indexes(relation, state, found)
    return Step(
        None,
        state,
        Findings(),
        found,
        relation,
        np.empty(0, np.int64),
        relation.segments,
        tuple(changes),
        (),
        rounds,
        news,
        unlisted,
    )


def _track_dcs(context: Context, relation: Relation, state: TableState, options: DcOptions) -> DcState:
    """The denial constraints of a new table. What it will cost is told before, as far as it can be known."""
    columns = _chosen_columns(state, options)
    within = options.within_columns
    space = predicate_space(relation, columns, by_order=options.by_order, within_columns=within)
    cores = relation.engine.cores
    kind = dcs.chosen_evidence(options, relation.n_rows, len(space.groups), state.table, cores)
    n_evidences = expected_evidences(relation, space) if kind == "counted" else 0
    progress = context.progress(dcs.estimate(kind, relation.n_rows, space, cores, n_evidences))
    if progress is not None:
        progress(0, 0)
    discover = dc_counted.discover if kind == "counted" else dc_witnessed.discover
    searching, chosen = context.searching(options.limits), len(columns) < len(state.schema)
    return discover(replace(relation, progress=progress), space, options, searching, chosen=chosen)


def _chosen_columns(state: TableState, options: DcOptions) -> list[str]:
    """The columns that take part in denial constraints and row rules."""
    return [
        n
        for n in state.schema.names
        if (options.columns is None or any(fnmatchcase(n, p) for p in options.columns))
        and not any(fnmatchcase(n, p) for p in options.exclude)
    ]


def _with_indexes(relation: Relation, state: TableState, found: Findings) -> tuple[Relation, TableState]:
    """With the indexes that the next batches are looked up in: those that there are, and those that lack."""
    columns, probed = list(state.index_columns), found.probed(relation.n_words)
    if len(probed):
        columns = keys.index_columns_for(relation, probed, columns)
    rule_columns, orders = list(state.rule_columns), list(state.orders)
    if found.dcs is not None:
        more, their_orders = dc_witnessed.wanted_indexes(relation, found.dcs)
        rule_columns += [c for c in more if c not in rule_columns]
        orders += [k for k in their_orders if k not in orders]
    state = replace(
        state, index_columns=tuple(columns), rule_columns=tuple(rule_columns), orders=tuple(orders)
    )
    relation = relation.indexed(indexed_columns(state), orders)
    state = replace(state, segments=relation.segments)
    return relation, state


def indexed_columns(state: TableState) -> list[int]:
    """The columns that every segment has an index on."""
    return list(dict.fromkeys([*state.index_columns, *state.rule_columns]))


def apply(
    context: Context,
    state: TableState,
    base: int,
    known: Findings,
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
    old = relation
    key_state, fd_state, dc_state = known.keys, known.fds, known.dcs
    witnessed = fd_state is not None and fd_state.evidence_kind == "witnessed"
    dcs_witnessed = dc_state is not None and dc_state.evidence_kind == "witnessed"
    searching = context.searching(dc_state.limits) if dc_state is not None else None
    row_state, row_ids = known.rows, resolved.row_ids
    # Of counted evidence nothing is looked for in rounds.
    looking = ["keys", *(["fds"] if witnessed else []), *(["dcs"] if dcs_witnessed else [])]
    rounds = 0
    if len(row_ids):
        relation = relation.without_rows(row_ids)
        shrunk = _Together(context.engine)
        if key_state is not None:
            shrunk.add("keys", keys.delete, relation, key_state, row_ids)
        if witnessed:
            shrunk.add("fds", fd_witnessed.delete, relation, fd_state, row_ids)
        if dcs_witnessed:
            shrunk.add("dcs", dc_witnessed.delete, relation, dc_state, row_ids, searching)
        states = shrunk.run()
        key_state, fd_state = states.get("keys", key_state), states.get("fds", fd_state)
        dc_state = states.get("dcs", dc_state)
        rounds += sum(states[name].rounds for name in looking if name in states)
    remaining, next_number = relation, state.next_number
    added: list[SegmentRef] = []
    grown = _Together(context.engine)
    if resolved.segments:
        next_number = 1 + max(s.number for s in resolved.segments)
        relation = relation.with_segments(resolved.segments)
        relation, state_before = _with_indexes(relation, state, Findings(key_state, fd_state, dc_state))
        numbers = {s.number for s in resolved.segments}
        added = [s for s in relation.segments if s.number in numbers]
        columns = state_before.index_columns
        if key_state is not None:
            grown.add("keys", keys.insert, relation, key_state, added, columns)
        if witnessed:
            grown.add("fds", fd_witnessed.insert, relation, fd_state, added, columns)
        if dcs_witnessed:
            grown.add("dcs", dc_witnessed.insert, relation, dc_state, added, searching)
    whole = relation
    compared = old, remaining, whole, row_ids, added
    if fd_state is not None and not witnessed:
        grown.add("fds", fd_counted.change, fd_state, *compared)
    if dc_state is not None and not dcs_witnessed:
        grown.add("dcs", dc_counted.change, dc_state, *compared, searching)
    if row_state is not None:
        grown.add("rows", row_rules.change, row_state, old, whole, row_ids, added)
    if state.rules:
        grown.add("rules", watched, *compared, state.rules)
    states = grown.run()
    rules = states.get("rules", ())
    key_state, fd_state = states.get("keys", key_state), states.get("fds", fd_state)
    dc_state, row_state = states.get("dcs", dc_state), states.get("rows", row_state)
    rounds += sum(states[name].rounds for name in looking if name in states)
    found = Findings(key_state, fd_state, dc_state, row_state)
    state_after = replace(state, segments=relation.segments)
    if commit:
        if dc_state is not None:
            found = replace(found, dcs=dc_witnessed.with_accesses(relation, dc_state))
        relation, state_after = _with_indexes(relation, state_after, found)
        relation, next_number = relation.tidied(next_number, indexed_columns(state_after), state_after.orders)
    changes: list[DependencyChange] = []
    pins: tuple[Pin, ...] = ()
    news, constraint_news = None, DcNews()
    kind: Kind = "both" if added and len(resolved.row_ids) else "inserts" if added else "deletes"
    if known.keys is not None and key_state is not None:
        changes += net_changes(table, known.keys, key_state, old, whole)
        pins = _pins(state, key_state.cover, whole)
    if known.fds is not None and fd_state is not None:
        news = fd_news(table, known.fds, fd_state, old, whole, kind)
        changes += news.changes
    if known.dcs is not None and dc_state is not None:
        constraint_news = dc_news(table, known.dcs, dc_state, old, whole, kind)
        changes += constraint_news.changes
    unlisted = constraint_news.unlisted
    if known.rows is not None and row_state is not None:
        row_news = row_rules.row_news(table, known.rows, row_state, old, whole, resolved.row_ids, added)
        changes += row_news.changes
        unlisted += row_news.unlisted
    state_after = replace(
        state_after,
        next_number=next_number,
        segments=relation.segments,
        pins=tuple(PinnedKey(p.columns, p.holds) for p in pins),
        rules=rules,
    )
    return Step(
        state,
        state_after,
        known,
        found,
        whole,
        resolved.row_ids,
        resolved.segments,
        tuple(changes),
        (*pins, *as_pins(table, rules, whole)),
        rounds,
        news,
        unlisted,
    )


class _Together:
    """What classes make of a part of a batch, side by side: by name."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names: list[str] = []
        self._functions: list[Callable[[Engine], Any]] = []

    def add(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """A function of these; its relations are looked at by the engine that it is given."""

        def run(engine: Engine) -> Any:
            return function(*(a.by(engine) if isinstance(a, Relation) else a for a in arguments))

        self._names.append(name)
        self._functions.append(run)

    def run(self) -> dict[str, Any]:
        return dict(zip(self._names, side_by_side(self._engine, self._functions), strict=True))


def load(root: Path, state: TableState) -> Findings:
    """What the commit knows of a table, with its evidence."""
    rows = row_rule_list.load(root, state.row_rules) if state.row_rules is not None else None
    return Findings(load_keys(root, state), fds.load(root, state), dcs.load(root, state), rows)


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
        checked = validate(relation, np.stack([mask_of(p, cover.masks.shape[1]) for p in positions]))
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
