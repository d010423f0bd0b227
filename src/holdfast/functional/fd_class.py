"""Functional dependencies as a class: how a workspace tracks them, on either evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.news import MAX_LISTED, News, kind_of
from holdfast.core.evidence.sampling import look_for_fds
from holdfast.core.rows.encoding import Look
from holdfast.core.rows.kernels.masks import unique_masks
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.root import Root
from holdfast.core.words.change import Summary
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.options import at_least_one, evidence_of, max_error_of
from holdfast.functional import fd_counted, fd_witnessed
from holdfast.functional.fd_news import fd_news
from holdfast.functional.fd_state import FdOptions, FdState, chosen_evidence, load, save
from holdfast.functional.refs import fd_ref, named_fds
from holdfast.kind import Crossing, TableClass, Tracking

U64 = NDArray[np.uint64]


class FdClass(TableClass[FdState]):
    """Minimal functional dependencies, on counted or witnessed evidence."""

    def options(self, asked: Mapping[str, Any]) -> FdOptions:
        max_lhs = at_least_one(asked, "max_lhs", " column on the left-hand side")
        max_error, evidence = max_error_of(asked), evidence_of(asked)
        return FdOptions(max_lhs, max_error, "counted" if max_error else evidence)

    def look(self, options: FdOptions) -> Look | None:
        return look_for_fds if options.evidence != "counted" else None

    def discover(self, tracking: Tracking) -> FdState:
        options: FdOptions = tracking.options
        rows = tracking.looking("finding functional dependencies")
        if chosen_evidence(options, rows.n_rows, len(rows.schema)) == "counted":
            return fd_counted.discover(rows, options.max_lhs, options.max_error)
        return fd_witnessed.discover(rows, *tracking.seen, options.max_lhs)

    def shrunk(self, known: FdState, crossing: Crossing) -> FdState:
        if known.evidence_kind == "counted":
            return known
        return fd_witnessed.delete(crossing.remaining, known, crossing.row_ids)

    def grown(self, known: FdState, crossing: Crossing) -> FdState:
        before, remaining, after = crossing.before, crossing.remaining, crossing.after
        if known.evidence_kind == "counted":
            return fd_counted.change(known, before, remaining, after, crossing.row_ids, crossing.added)
        if not crossing.added:
            return known
        return fd_witnessed.insert(after, known, crossing.added, crossing.index_columns)

    def probed(self, known: FdState) -> U64 | None:
        if known.evidence_kind == "counted":
            return None
        masks = known.cover.masks
        return masks[unique_masks(masks)[0]]

    def news(self, before: FdState, after: FdState, crossing: Crossing) -> News:
        kind = kind_of(len(crossing.added), len(crossing.row_ids))
        return fd_news(crossing.state.table, before, after, crossing.before, crossing.after, kind)

    def dependencies(self, known: FdState, state: TableState) -> tuple[Sequence[Dependency], int]:
        cover, n = known.cover, len(known.cover)
        return (named_fds(state, cover.masks, cover.rhs), 0) if n <= MAX_LISTED else ([], n)

    def summary(self, known: FdState, state: TableState, *, tracked: bool) -> Summary:
        n, max_lhs, kind = len(known.cover), known.cover.max_lhs, known.evidence_kind
        noun = "dependency" if n == 1 else "dependencies"
        bound = f" of at most {max_lhs} on the left" if max_lhs else ""
        errors = f", errors up to {known.max_error:g}" if known.max_error else ""
        how = f" ({kind} evidence{errors})" if tracked else ""
        fields = {
            "n_fds": n,
            "max_lhs": max_lhs or None,
            "evidence": kind,
            "max_error": known.max_error or None,
        }
        return Summary("fd", n, f"{n:,} minimal functional {noun}{bound}{how}", fields)

    def save(
        self, root: Root, state: TableState, known: FdState, before: FdState | None
    ) -> Mapping[str, Any]:
        return {"fds": save(root, state.folder, known, before, fd_ref(state)).to_dict()}

    def load(self, root: Root, state: TableState) -> FdState | None:
        return load(root, state)


CLASS = FdClass()
