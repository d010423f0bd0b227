"""Denial constraints as a class: how a workspace tracks them, on either evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.cover.news import MAX_LISTED, News, kind_of
from holdfast.core.engine.job_progress import Progress
from holdfast.core.evidence.predicate_space import predicate_space
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import OrderKey, TableState
from holdfast.core.rows.writer import Context
from holdfast.core.store.root import Root
from holdfast.core.words.change import Summary
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.options import at_least_one, evidence_of, max_error_of
from holdfast.core.words.predicate import OPERATORS, SYMMETRIC, Operator
from holdfast.denial import dc_counted, dc_state, dc_witnessed
from holdfast.denial.access.plan import expected_evidences
from holdfast.denial.budget import stopped_text
from holdfast.denial.constraints import DEFAULT_LIMITS, DcLimits, dc_ref, dcs_of
from holdfast.denial.dc_news import dc_news
from holdfast.denial.dc_state import DcOptions, DcState
from holdfast.errors import UsageError, shorten
from holdfast.kind import Crossing, TableClass, Tracking


class DcClass(TableClass[DcState]):
    """The most general denial constraints, on counted or witnessed evidence."""

    def options(self, asked: Mapping[str, Any]) -> DcOptions:
        columns = asked.get("columns")
        return DcOptions(
            at_least_one(asked, "max_predicates"),
            max_error_of(asked),
            evidence_of(asked),
            _operators(asked.get("operators")),
            None if columns is None else tuple(columns),
            tuple(asked.get("exclude", ())),
            bool(asked.get("within_columns")),
            _limits(asked),
        )

    def discover(self, tracking: Tracking) -> DcState:
        """What it will cost is told before, as far as it can be known."""
        options: DcOptions = tracking.options
        context, rows, state = tracking.context, tracking.rows, tracking.state
        columns = state.schema.chosen(options.columns, options.exclude)
        within, cores = options.within_columns, rows.engine.cores
        space = predicate_space(rows, columns, by_order=options.by_order, within_columns=within)
        kind = dc_state.chosen_evidence(options, rows.n_rows, len(space.groups), state.table, cores)
        n_evidences = expected_evidences(rows, space) if kind == "counted" else 0
        progress = context.progress(dc_state.estimate(kind, rows.n_rows, space, cores, n_evidences))
        if progress is not None:
            progress(0, 0)
        discover = dc_counted.discover if kind == "counted" else dc_witnessed.discover
        chosen = len(columns) < len(state.schema)
        searching = _searching(context, options.limits)
        return discover(replace(rows, progress=progress), space, options, searching, chosen=chosen)

    def shrunk(self, known: DcState, crossing: Crossing) -> DcState:
        if known.evidence_kind == "counted":
            return known
        searching = _searching(crossing.context, known.limits)
        return dc_witnessed.delete(crossing.remaining, known.afresh(), crossing.row_ids, searching)

    def grown(self, known: DcState, crossing: Crossing) -> DcState:
        before, remaining, after = crossing.before, crossing.remaining, crossing.after
        row_ids, added = crossing.row_ids, crossing.added
        searching = _searching(crossing.context, known.limits)
        if known.evidence_kind == "counted":
            return dc_counted.change(known, before, remaining, after, row_ids, added, searching)
        if not added:
            return known
        known = replace(known, rounds=0) if len(row_ids) else known.afresh()  # deletes began the step
        return dc_witnessed.insert(after, known, added, searching)

    def settled(self, known: DcState, crossing: Crossing) -> DcState:
        return dc_witnessed.with_accesses(crossing.after, known) if crossing.commit else known

    def indexes(self, known: DcState, rows: Relation) -> tuple[Sequence[int], Sequence[OrderKey]]:
        return dc_witnessed.wanted_indexes(rows, known)

    def news(self, before: DcState, after: DcState, crossing: Crossing) -> News:
        kind = kind_of(len(crossing.added), len(crossing.row_ids))
        return dc_news(crossing.state.table, before, after, crossing.before, crossing.after, kind)

    def dependencies(self, known: DcState, state: TableState) -> tuple[Sequence[Dependency], int]:
        n = len(known.listed)
        return (dcs_of(state.table, known.space, known.listed), 0) if n <= MAX_LISTED else ([], n)

    def notes(self, before: DcState | None, after: DcState, table: str) -> tuple[str, ...]:
        if not after.stopped:
            return ()
        n_dropped = 0
        if before is not None:
            if before.cover.max_size == after.cover.max_size:
                return ()
            n_dropped = len(before.listed) - len(before.bounded(after.cover.max_size).listed)
        return (stopped_text(table, after, n_dropped),)

    def summary(self, known: DcState, state: TableState, *, tracked: bool) -> Summary:
        n, most, kind = len(known.listed), known.cover.max_size, known.evidence_kind
        n_predicates = known.space.n_comparisons
        bound = f" of at most {most} predicate{'' if most == 1 else 's'}" if most else ""
        errors = f", errors up to {known.max_error:g}" if known.max_error else ""
        how = f" ({n_predicates} predicates, {kind} evidence{errors})" if tracked else ""
        fields = {
            "n_dcs": n,
            "max_predicates": most or None,
            "dc_evidence": kind,
            "max_error": known.max_error or None,
            "n_predicates": n_predicates,
        }
        noun = "denial constraint" if n == 1 else "denial constraints"
        return Summary("dc", n, f"{n:,} minimal {noun}{bound}{how}", fields)

    def save(
        self, root: Root, state: TableState, known: DcState, before: DcState | None
    ) -> Mapping[str, Any]:
        return {"dcs": dc_state.save(root, state.folder, known, before, dc_ref(state)).to_dict()}

    def load(self, root: Root, state: TableState) -> DcState | None:
        return dc_state.load(root, state)


def _searching(context: Context, limits: DcLimits) -> Progress | None:
    """Where the search for denial constraints tells how many it has found."""
    return context.progress(f"finding denial constraints, at most {limits.seconds:g} s")


def _limits(asked: Mapping[str, Any]) -> DcLimits:
    seconds = asked.get("dc_seconds", DEFAULT_LIMITS.seconds)
    if not 0 < seconds < float("inf"):
        raise UsageError(f"dc_seconds is {seconds}; expected a number of seconds above 0.")
    return DcLimits(float(seconds), at_least_one(asked, "max_dcs") or DEFAULT_LIMITS.max_dcs)


def _operators(operators: Sequence[str] | None) -> tuple[Operator, ...]:
    """The operators that are asked for, closed under exchanging both sides; () for all."""
    if operators is None:
        return ()
    for op in operators:
        if op not in OPERATORS:
            raise UsageError(f"{shorten(op)} is no operator of predicates. Operators: {' '.join(OPERATORS)}.")
    if not operators:
        raise UsageError(f"no operator is given. Operators: {' '.join(OPERATORS)}.")
    wanted = {*operators, *(SYMMETRIC[op] for op in OPERATORS if op in operators)}
    return () if len(wanted) == len(OPERATORS) else tuple(op for op in OPERATORS if op in wanted)


CLASS = DcClass()
