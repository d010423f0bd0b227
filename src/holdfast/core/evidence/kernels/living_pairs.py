"""Witnesses whose rows are still there: one pass over all pairs that prove something."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix

I64 = NDArray[np.int64]


def living(witnesses: I64, row_ids: I64) -> I64:
    """The witnesses without pairs of these rows, those that are left first; the same array if all are.

    IN witnesses int64[n, k, 2]: pairs of row ids, -1 where there is none; row_ids int64[*]. Cost: a lookup
    for each row id, and a copy if some go.

    >>> pairs = np.array([[[1, 2], [3, 4]], [[5, 6], [-1, -1]]])
    >>> living(pairs, np.array([2])).tolist()
    [[[3, 4], [-1, -1]], [[5, 6], [-1, -1]]]
    >>> living(pairs, np.array([7])) is pairs
    True
    """
    slots = np.full(1 << max(4, (2 * len(row_ids)).bit_length()), -1, dtype=np.int64)
    pairs = np.empty_like(witnesses)
    return pairs if _living(frozen(witnesses), frozen(row_ids), slots, pairs) else witnesses


@njit(cache=True, nogil=True)
def _is_in(row_id, slots):  # type: ignore[no-untyped-def]
    last_slot = np.uint64(slots.shape[0] - 1)
    slot = mix(np.uint64(row_id)) & last_slot
    while slots[slot] >= 0:
        if slots[slot] == row_id:
            return True
        slot = (slot + np.uint64(1)) & last_slot
    return False


@njit(cache=True, nogil=True)
def _is_dead(witnesses, i, j, slots):  # type: ignore[no-untyped-def]
    return _is_in(witnesses[i, j, 0], slots) or _is_in(witnesses[i, j, 1], slots)


@njit(cache=True, nogil=True)
def _first_dead(witnesses, slots):  # type: ignore[no-untyped-def]
    """The first index of witnesses of which a pair goes; their number if none does."""
    for i in range(witnesses.shape[0]):
        for j in range(witnesses.shape[1]):
            if witnesses[i, j, 0] >= 0 and _is_dead(witnesses, i, j, slots):
                return i
    return witnesses.shape[0]


@njit(cache=True, nogil=True)
def _living(witnesses, row_ids, slots, pairs):  # type: ignore[no-untyped-def]
    """Whether some pair goes; then OUT pairs int64[n, k, 2] are the others. Else nothing is written there.

    slots IN/OUT int64[a power of two > 2 * len(row_ids)], -1 everywhere.
    """
    last_slot = np.uint64(slots.shape[0] - 1)
    for k in range(row_ids.shape[0]):
        slot = mix(np.uint64(row_ids[k])) & last_slot
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last_slot
        slots[slot] = row_ids[k]
    first = _first_dead(witnesses, slots)
    if first == witnesses.shape[0]:
        return False
    for i in range(witnesses.shape[0]):
        at = 0
        for j in range(witnesses.shape[1]):
            if witnesses[i, j, 0] >= 0 and (i < first or not _is_dead(witnesses, i, j, slots)):
                pairs[i, at, 0], pairs[i, at, 1] = witnesses[i, j, 0], witnesses[i, j, 1]
                at += 1
        for j in range(at, witnesses.shape[1]):
            pairs[i, j, 0] = pairs[i, j, 1] = -1
    return True


def warm_up() -> None:
    living(np.array([[[1, 2], [-1, -1]]]), np.array([2]))
