"""Denial constraints as they are listed: with other operators than the cover has, or within an error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.discovery.counted_files import load_counted
from holdfast.discovery.dc_forms import restricted
from holdfast.discovery.dcs import EQUALITY, dcs_of, kernel_space
from holdfast.errors import UsageError
from holdfast.model.predicate import Dc
from holdfast.state.approximate_dcs import approximate_dcs
from holdfast.storage.constraints import DcRef, read_dcs, read_near_dcs
from holdfast.storage.tables import TableState

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


def listed_masks(root: Path, ref: DcRef) -> U64:
    """The constraints that hold, written with the operators that the table is tracked with."""
    masks = read_dcs(root, ref)
    if ref.operators and not EQUALITY.issuperset(ref.operators):
        masks = restricted(masks, ref.space, ref.operators)
    return masks


def near_dcs(root: Path, state: TableState, max_error: float, *, newest: bool) -> list[Dc]:
    """The minimal constraints within an error: at the newest version any, at others the one that is kept."""
    ref = state.dcs
    assert ref is not None
    if ref.evidence_kind != "counted":
        raise UsageError(
            f"table {state.table!r} keeps witnessed evidence of its denial constraints, which tells what holds "
            "but not what almost holds. Track it anew with --evidence counted to list constraints with errors."
        )
    if max_error == ref.max_error:
        masks, violations = read_near_dcs(root, ref)
    elif newest:
        evidence = load_counted(root, "dc-evidence", ref.evidence, ref.deltas, ref.space.n_predicates)
        near = approximate_dcs(evidence, kernel_space(ref.space), state.n_rows, max_error, ref.max_predicates)
        masks, violations = near.masks, near.violations
    else:
        kept = f" {ref.max_error:g} is" if ref.max_error else "none is"
        raise UsageError(
            f"errors of denial constraints of older versions are known for the error that table {state.table!r} "
            f"is tracked with:{kept}. Ask for that, or leave out the version."
        )
    total = max(1, state.n_rows * (state.n_rows - 1))
    return [
        replace(dc, error=n / total)
        for dc, n in zip(dcs_of(state.table, ref.space, masks), violations.tolist(), strict=True)
    ]
