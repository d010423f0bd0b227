"""The net change of a batch for functional dependencies: what left and entered the cover, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.approximate import ApproximateCover
from holdfast.core.cover.news import MAX_LISTED, Kind, News, broken_text, near_text, witness_pairs
from holdfast.core.evidence.proofs import Proofs
from holdfast.core.rows.kernels.masks import first_contained, first_container, popcounts, without
from holdfast.core.rows.relation import Relation
from holdfast.core.words.change import DependencyChange, Event
from holdfast.core.words.column_sets import columns_of, n_pairs
from holdfast.core.words.dependency import Dependency, Fd, Ucc
from holdfast.functional.fd_cover import FdCover, has_column, keyed
from holdfast.functional.fd_evidence import FdEvidence
from holdfast.functional.fd_state import FdState

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


def fd_news(table: str, before: FdState, after: FdState, old: Relation, new: Relation, kind: Kind) -> News:
    """What a batch changed. `old` and `new` hold the rows of the witnesses."""
    exact = _exact(table, before, after, old, new, kind)
    if after.approximate is None or before.approximate is None:
        return exact
    near, more = _approximate(table, before, after, new)
    return replace(exact, changes=(*exact.changes, *near), unlisted=exact.unlisted + more)


def _exact(table: str, before: FdState, after: FdState, old: Relation, new: Relation, kind: Kind) -> News:
    if before.cover is after.cover:
        return News()
    names = new.schema.names
    removed, removed_rhs = _difference(before.cover, after.cover)
    entered, entered_rhs = _difference(after.cover, before.cover)
    # Inserts only ever break dependencies, deletes only ever bring some; only both together need a look.
    everything, nothing = np.arange(len(removed)), np.empty(0, np.int64)
    if kind == "inserts":
        refuted, narrowed = everything, nothing
        fresh, widened = nothing, np.arange(len(entered))
    elif kind == "deletes":
        refuted, narrowed = nothing, everything
        fresh, widened = np.arange(len(entered)), nothing
    else:
        implied_by = _inside(removed, removed_rhs, after.cover)
        from_broken = _inside(entered, entered_rhs, before.cover)
        refuted, narrowed = np.flatnonzero(implied_by < 0), np.flatnonzero(implied_by >= 0)
        fresh, widened = np.flatnonzero(from_broken < 0), np.flatnonzero(from_broken >= 0)
    broken = keyed(removed[refuted], removed_rhs[refuted])
    unlisted = sum(max(0, len(part) - MAX_LISTED) for part in (refuted, narrowed, fresh, widened))
    refuted, narrowed, fresh, widened = (part[:MAX_LISTED] for part in (refuted, narrowed, fresh, widened))
    narrower = _inside(removed[narrowed], removed_rhs[narrowed], after.cover)
    wider = _inside(entered[widened], entered_rhs[widened], before.cover)
    came = _evidence(after.evidence, after.came)
    pairs = _proving(removed[refuted], removed_rhs[refuted], came)
    errors = _errors(after, removed[refuted], removed_rhs[refuted], new.n_rows)
    named = _named(table, names, removed[refuted], removed_rhs[refuted])
    shown = witness_pairs(pairs, new, [(*d.lhs, d.rhs) for d in named])
    broke = [
        DependencyChange("broke", replace(d, error=e), broken_text(e, after.max_error), w)
        for d, e, w in zip(named, errors, shown, strict=True)
    ]
    inner = _named(table, names, after.cover.masks[narrower], removed_rhs[narrowed])
    implied = [
        DependencyChange("implied", d, f"still holds, but {i.name} alone does now")
        for d, i in zip(_named(table, names, removed[narrowed], removed_rhs[narrowed]), inner, strict=True)
    ]
    inner = _named(table, names, before.cover.masks[wider], entered_rhs[widened])
    minimal = [
        DependencyChange("appeared", d, f"is minimal now that {i.name} broke")
        for d, i in zip(_named(table, names, entered[widened], entered_rhs[widened]), inner, strict=True)
    ]
    pairs = _proving(entered[fresh], entered_rhs[fresh], after.went)
    named = _named(table, names, entered[fresh], entered_rhs[fresh])
    shown = witness_pairs(pairs, old, [(*d.lhs, d.rhs) for d in named])
    gone = "holds now; rows that violated it are gone"
    appeared = [
        DependencyChange("appeared", d, gone if w else "holds now", w)
        for d, w in zip(named, shown, strict=True)
    ]
    return News((*broke, *appeared, *minimal, *implied), unlisted, broken)


def _errors(after: FdState, masks: U64, rhs: I32, n_rows: int) -> list[float]:
    """The errors of dependencies now, where errors are kept; else 0, which says nothing."""
    if after.approximate is None or isinstance(after.evidence, FdEvidence):
        return [0.0] * len(masks)
    violations = after.evidence.violations(masks, rhs.astype(np.int64))
    return (violations / max(1, n_pairs(n_rows))).tolist()  # type: ignore[no-any-return]


def _approximate(
    table: str, before: FdState, after: FdState, new: Relation
) -> tuple[list[DependencyChange], int]:
    """Approximate dependencies that entered or left the minimal ones within the error.

    Those that are exact and minimal before or after are told as such.
    """
    was, now = before.approximate, after.approximate
    assert was is not None
    assert now is not None
    names = new.schema.names
    changes: list[DependencyChange] = []
    unlisted = 0
    sorts: tuple[tuple[Event, ApproximateCover, ApproximateCover, FdCover], ...] = (
        ("within", now, was, after.cover),
        ("beyond", was, now, before.cover),
    )
    for event, here, there, exact in sorts:
        fresh = without(keyed(here.masks, here.rhs), keyed(there.masks, there.rhs))
        fresh &= without(keyed(here.masks, here.rhs), exact.keyed)
        chosen = np.flatnonzero(fresh)
        unlisted += max(0, len(chosen) - MAX_LISTED)
        chosen = chosen[:MAX_LISTED]
        violations = here.violations[chosen] if event == "within" else _now(after, here, chosen)
        total = max(1, n_pairs(new.n_rows))
        for (columns, a), n in zip(
            zip(columns_of(here.masks[chosen]), here.rhs[chosen].tolist(), strict=True),
            violations.tolist(),
            strict=True,
        ):
            side, error = tuple(names[c] for c in columns), n / total
            named: Dependency = Ucc(table, side, error) if a < 0 else Fd(table, side, names[a], error)
            reason = near_text(event, error, after.max_error, "a smaller one")
            changes.append(DependencyChange(event, named, reason))
    return changes, unlisted


def _now(after: FdState, cover: ApproximateCover, chosen: I64) -> I64:
    """The violations, after the batch, of dependencies that were approximate before it."""
    assert not isinstance(after.evidence, FdEvidence)
    rhs = cover.rhs[chosen].astype(np.int64)
    counts = after.evidence.agreeing(cover.masks[chosen])
    fds = np.flatnonzero(rhs >= 0)
    counts[fds] = after.evidence.violations(cover.masks[chosen][fds], rhs[fds])
    return counts


def _difference(cover: FdCover, second: FdCover) -> tuple[U64, I32]:
    """(masks, rhs) of the dependencies of one cover that are not in another, small left-hand sides first."""
    masks, rhs = [], []
    for a, (here, there) in enumerate(zip(cover.covers, second.covers, strict=True)):
        if here is not there:
            masks.append(here.masks[without(here.masks, there.masks)])
            rhs.append(np.full(len(masks[-1]), a, np.int32))
    if not masks:
        return cover.masks[:0], cover.rhs[:0]
    together, columns = np.concatenate(masks), np.concatenate(rhs)
    order = np.argsort(popcounts(together), kind="stable")
    return together[order], columns[order]


def _inside(masks: U64, rhs: I32, cover: FdCover) -> I64:
    """For each X -> A the position of a dependency X' -> A of the cover with X' inside X, or -1."""
    starts = np.cumsum([0, *(len(c) for c in cover.covers)])
    positions = np.full(len(masks), -1, dtype=np.int64)
    for a in np.unique(rhs).tolist():
        at = np.flatnonzero(rhs == a)
        inner = first_contained(masks[at], cover.covers[a].masks)
        positions[at] = np.where(inner >= 0, starts[a] + inner, -1)
    return positions


def _evidence(evidence: object, came: Proofs) -> Proofs:
    if isinstance(evidence, FdEvidence):
        return Proofs(evidence.masks, evidence.witnesses[:, 0])
    return came


def _proving(masks: U64, rhs: I32, proofs: Proofs) -> I64:
    """For each X -> A a pair of rows with an agree set that violates it, int64[n, 1, 2]; -1 for none."""
    pairs = np.full((len(masks), 1, 2), -1, dtype=np.int64)
    if not len(proofs.masks):
        return pairs
    for a in np.unique(rhs).tolist():
        at = np.flatnonzero(rhs == a)
        lacking = np.flatnonzero(~has_column(proofs.masks, np.full(len(proofs.masks), a, np.int32)))
        if len(lacking):
            proof = first_container(masks[at], proofs.masks[lacking])
            hit = proof >= 0
            pairs[at[hit], 0] = proofs.pairs[lacking[proof[hit]]]
    return pairs


def _named(table: str, names: Sequence[str], masks: U64, rhs: I32) -> list[Fd]:
    return [
        Fd(table, tuple(names[c] for c in columns), names[a])
        for columns, a in zip(columns_of(masks), rhs.tolist(), strict=True)
    ]
