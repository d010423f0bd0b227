"""Witnesses whose rows are still there: one pass over all pairs that prove something."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix

I64 = NDArray[np.int64]

MOST_NEAR = 21  # bits of a hash: no cache has room for more


def living(witnesses: I64, row_ids: I64) -> tuple[I64, I64]:
    """(at, left): which have a pair of one of these rows, ascending, and the pairs that each has left, first.

    IN witnesses int64[n, k, 2]: pairs of row ids, -1 where there is none; row_ids int64[*]. Cost: a glance at
    each row id, 2 ns, and a lookup of those that may be one of these.

    >>> pairs = np.array([[[5, 6], [-1, -1]], [[1, 2], [3, 4]]])
    >>> at, left = living(pairs, np.array([2]))
    >>> at.tolist(), left.tolist()
    ([1], [[[3, 4], [-1, -1]]])
    """
    n_bits = min(MOST_NEAR, max(14, (16 * len(row_ids)).bit_length()))
    near = np.zeros(1 << n_bits, np.bool_)  # by a hash: in the cache of the processor, unlike the slots
    slots = np.full(1 << max(4, (2 * len(row_ids)).bit_length()), -1, dtype=np.int64)
    at = np.empty(len(witnesses), np.int64)
    at = at[: _touched(frozen(witnesses), frozen(row_ids), 64 - n_bits, near, slots, at)].copy()
    left = witnesses[at]
    _living(left, slots)
    return at, left


@njit(cache=True, inline="always")
def _spread(row_id, shift):  # type: ignore[no-untyped-def]
    return (np.uint64(row_id) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift)


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
def _touched(witnesses, row_ids, shift, near, slots, at):  # type: ignore[no-untyped-def]
    """How many have a pair of these rows; OUT at int64[n]: which.

    near IN/OUT bool[2 ** (64 - shift)], False everywhere; slots IN/OUT int64[a power of two > 2 *
    len(row_ids)], -1 everywhere.
    """
    last_slot = np.uint64(slots.shape[0] - 1)
    for k in range(row_ids.shape[0]):
        near[_spread(row_ids[k], shift)] = True
        slot = mix(np.uint64(row_ids[k])) & last_slot
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last_slot
        slots[slot] = row_ids[k]
    n = 0
    for i in range(witnesses.shape[0]):
        for j in range(witnesses.shape[1]):
            first, second = witnesses[i, j, 0], witnesses[i, j, 1]
            is_near = first >= 0 and (near[_spread(first, shift)] or near[_spread(second, shift)])
            if is_near and (_is_in(first, slots) or _is_in(second, slots)):
                at[n] = i
                n += 1
                break
    return n


@njit(cache=True, nogil=True)
def _living(pairs, slots):  # type: ignore[no-untyped-def]
    """IN/OUT pairs int64[n, k, 2]: without those of the rows in IN slots; those that are left first."""
    for i in range(pairs.shape[0]):
        n = 0
        for j in range(pairs.shape[1]):
            first, second = pairs[i, j, 0], pairs[i, j, 1]
            if first >= 0 and not (_is_in(first, slots) or _is_in(second, slots)):
                pairs[i, n, 0], pairs[i, n, 1] = first, second
                n += 1
        for j in range(n, pairs.shape[1]):
            pairs[i, j, 0] = pairs[i, j, 1] = -1


def warm_up() -> None:
    living(np.array([[[1, 2], [-1, -1]]]), np.array([2]))
