"""The net change of a batch for denial constraints: what left and entered the cover, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.cover.news import MAX_LISTED, Kind, News, broken_text, near_text, witness_pairs
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.proofs import Proofs
from holdfast.core.rows.kernels.masks import first_contained, first_container, without
from holdfast.core.rows.relation import Relation
from holdfast.core.words.change import DependencyChange, Event
from holdfast.denial.approximate_dcs import ApproximateDcs
from holdfast.denial.circular_dcs import telling
from holdfast.denial.constraints import dcs_of, ordered_pairs
from holdfast.denial.dc_cover import closures, mirrored
from holdfast.denial.dc_state import DcState

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


def dc_news(table: str, before: DcState, after: DcState, old: Relation, new: Relation, kind: Kind) -> News:
    """What a batch changed. `old` and `new` hold the rows of the witnesses."""
    bounded = before.bounded(after.cover.max_size)
    exact = _exact(table, bounded, after, old, new, kind)
    if bounded is not before:
        longer = before.listed[without(before.listed, bounded.listed)]
        why = f"has more predicates than are known now, {after.cover.max_size}; it may hold"
        dropped = [
            DependencyChange("dropped", d, why) for d in dcs_of(table, after.space, longer[:MAX_LISTED])
        ]
        unlisted = exact.unlisted + max(0, len(longer) - MAX_LISTED)
        exact, before = News((*exact.changes, *dropped), unlisted), bounded
    if before.approximate is None or after.approximate is None:
        return exact
    near, more = _approximate(table, before, after, new)
    return News((*exact.changes, *near), exact.unlisted + more)


def _exact(table: str, before: DcState, after: DcState, old: Relation, new: Relation, kind: Kind) -> News:
    if before.cover.masks is after.cover.masks:
        return News()
    space, kernel = after.space, after.cover.space
    was, now = before.listed, after.listed
    gone, entered = was[without(was, now)], now[without(now, was)]
    # Inserts only ever break constraints, deletes only ever bring some; only both together need a look.
    nothing = np.empty(0, np.int64)
    if kind == "inserts":
        refuted, implied, fresh, tightened = np.arange(len(gone)), nothing, nothing, np.arange(len(entered))
    elif kind == "deletes":
        refuted, implied, fresh, tightened = nothing, np.arange(len(gone)), np.arange(len(entered)), nothing
    else:
        still, from_broken = _implied_by(gone, now, kernel), _implied_by(entered, was, kernel)
        refuted, implied = np.flatnonzero(still < 0), np.flatnonzero(still >= 0)
        fresh, tightened = np.flatnonzero(from_broken < 0), np.flatnonzero(from_broken >= 0)
    unlisted = sum(max(0, len(part) - MAX_LISTED) for part in (refuted, implied, fresh, tightened))
    refuted, implied, fresh, tightened = (part[:MAX_LISTED] for part in (refuted, implied, fresh, tightened))

    broken = dcs_of(table, space, gone[refuted])
    shown = witness_pairs(_proving(gone[refuted], after.came), new, [d.columns for d in broken])
    errors = _errors(after, gone[refuted], new.n_rows)
    changes = [
        DependencyChange("broke", replace(d, error=e), broken_text(e, after.max_error), w)
        for d, e, w in zip(broken, errors, shown, strict=True)
    ]
    named = dcs_of(table, space, entered[fresh])
    shown = witness_pairs(_proving(entered[fresh], after.went), old, [d.columns for d in named])
    why = "holds now; rows that violated it are gone"
    changes += [
        DependencyChange("appeared", d, why if w else "holds now", w)
        for d, w in zip(named, shown, strict=True)
    ]
    inner = was[_implied_by(entered[tightened], was, kernel)]
    changes += [
        DependencyChange("appeared", d, f"is minimal now that {i.formula} broke")
        for d, i in zip(dcs_of(table, space, entered[tightened]), dcs_of(table, space, inner), strict=True)
    ]
    inner = now[_implied_by(gone[implied], now, kernel)]
    changes += [
        DependencyChange("implied", d, f"still holds, but {i.formula} does now, which says more")
        for d, i in zip(dcs_of(table, space, gone[implied]), dcs_of(table, space, inner), strict=True)
    ]
    return News(tuple(changes), unlisted)


def _implied_by(masks: U64, others: U64, space: Space) -> I64:
    """For each constraint the position of another one that says as much or more, or -1."""
    if not len(masks) or not len(others):
        return np.full(len(masks), -1, dtype=np.int64)
    whole = closures(masks, space)
    straight = first_contained(whole, others)
    turned = first_contained(mirrored(whole, space), others)
    return np.where(straight >= 0, straight, turned)


def _proving(masks: U64, proofs: Proofs) -> I64:
    """For each constraint a pair of rows that violates it, int64[n, 1, 2]; -1 for none."""
    pairs = np.full((len(masks), 1, 2), -1, dtype=np.int64)
    if len(proofs.masks) and len(masks):
        proof = first_container(masks, proofs.masks)
        pairs[proof >= 0, 0] = proofs.pairs[proof[proof >= 0]]
    return pairs


def _errors(after: DcState, masks: U64, n_rows: int) -> list[float]:
    """The errors of constraints now, where errors are kept; else 0, which says nothing."""
    if after.approximate is None or not isinstance(after.evidence, CountedEvidence):
        return [0.0] * len(masks)
    errors: list[float] = (after.evidence.agreeing(masks) / max(1, ordered_pairs(n_rows))).tolist()
    return errors


def _approximate(
    table: str, before: DcState, after: DcState, new: Relation
) -> tuple[list[DependencyChange], int]:
    """Approximate constraints that entered or left the minimal ones within the error.

    Those that are exact and minimal before or after are told as such.
    """
    was, now = before.approximate, after.approximate
    assert was is not None
    assert now is not None
    assert isinstance(after.evidence, CountedEvidence)
    changes: list[DependencyChange] = []
    unlisted, total = 0, max(1, ordered_pairs(new.n_rows))
    sorts: tuple[tuple[Event, ApproximateDcs, ApproximateDcs, U64], ...] = (
        ("within", now, was, after.listed),
        ("beyond", was, now, before.listed),
    )
    for event, here, there, exact in sorts:
        fresh = without(here.masks, there.masks) & without(here.masks, exact)
        masks = telling(here.masks[fresh], after.space)
        unlisted += max(0, len(masks) - MAX_LISTED)
        masks = masks[:MAX_LISTED]
        violations = after.evidence.agreeing(masks).tolist()
        for dc, n in zip(dcs_of(table, after.space, masks), violations, strict=True):
            error = n / total
            reason = near_text(event, error, after.max_error, "a more general one")
            changes.append(DependencyChange(event, replace(dc, error=error), reason))
    return changes, unlisted
