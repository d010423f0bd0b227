"""Denial constraints as they are listed: with other operators than the cover has, or within an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.evidence_files import load_counted
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.root import Root
from holdfast.core.words.predicate import Dc
from holdfast.denial.circular_dcs import tautologies, telling
from holdfast.denial.constraints import DcRef, dcs_of, ordered_pairs, read_dcs, read_near_dcs
from holdfast.denial.dc_state import in_operators, near_cover
from holdfast.errors import UsageError

U64 = NDArray[np.uint64]


def cover_masks(root: Root, ref: DcRef) -> U64:
    """The constraints that hold, tautologies too, written with the operators that a table is tracked with."""
    return in_operators(read_dcs(root, ref), ref.space, ref.operators)


def listed_masks(root: Root, ref: DcRef) -> U64:
    """The constraints that hold and say something, written with these operators."""
    return telling(cover_masks(root, ref), ref.space)


def near_dcs(root: Root, state: TableState, ref: DcRef, max_error: float, *, newest: bool) -> list[Dc]:
    """The minimal constraints within an error: at the newest version any, at others the one that is kept."""
    if ref.evidence_kind != "counted":
        raise UsageError(
            f"table {state.table!r} keeps witnessed evidence of its denial constraints, which tells what "
            "holds but not what almost holds. Track it anew with --evidence counted to list them with errors."
        )
    if max_error == ref.max_error:
        masks, violations = read_near_dcs(root, ref)
    elif newest:
        evidence = load_counted(root, "comparisons", ref.evidence, ref.deltas, ref.space.n_predicates)
        near = near_cover(evidence, ref.space, ref.operators, state.n_rows, max_error, ref.max_predicates)
        masks, violations = near.masks, near.violations
    else:
        tracked = f"{ref.max_error:g} is" if ref.max_error else "none is"
        raise UsageError(
            "errors of denial constraints of older versions are known only for the error that a table is "
            f"tracked with; of {state.table!r} {tracked}. Ask for that, or leave out the version."
        )
    says_something = ~tautologies(masks, ref.space)
    masks, violations = masks[says_something], violations[says_something]
    total = max(1, ordered_pairs(state.n_rows))
    return [
        replace(dc, error=n / total)
        for dc, n in zip(dcs_of(state.table, ref.space, masks), violations.tolist(), strict=True)
    ]
