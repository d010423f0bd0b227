"""A few masks looked for in a large family, at a pass over it and no table of it."""

from __future__ import annotations

import numpy as np

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import mix
from holdfast.core.rows.kernels.masks import Indices, Masks, as_masks


def indices_in(masks: Masks, family: Masks) -> Indices:
    """The first index in IN family `uint64[n, n_words]` of each of IN masks, all different: int64[k], -1 for
    those that are not there.

    Cost: a hash of each mask. The table holds `masks` alone, so that the family is read from end to end
    without a cache miss for each of its members, as `without` and `unique_masks` have.

    >>> indices_in(np.array([[4], [7]], dtype=np.uint64), np.array([[9], [4], [4]], dtype=np.uint64))
    array([ 1, -1])
    """
    wanted, among = as_masks(masks), as_masks(family)
    indices = np.full(len(wanted), -1, dtype=np.int64)
    slots = np.full(1 << max(4, (2 * len(wanted)).bit_length()), -1, dtype=np.int64)
    _indices_in(wanted, among, slots, indices)
    return indices


@njit(cache=True, nogil=True)
def _slot(masks, i, last_slot):  # type: ignore[no-untyped-def]
    h = np.uint64(0)
    for w in range(masks.shape[1]):
        h = mix(h ^ masks[i, w])
    return h & last_slot


@njit(cache=True, nogil=True)
def _same(left, i, right, j):  # type: ignore[no-untyped-def]
    same = True
    for w in range(left.shape[1]):
        same &= left[i, w] == right[j, w]
    return same


@njit(cache=True, nogil=True)
def _indices_in(masks, family, slots, indices):  # type: ignore[no-untyped-def]
    """masks IN uint64[k, n_words], all different; family IN uint64[n, n_words]; slots IN/OUT int64[a power of
    two > 2k], -1 everywhere; indices IN/OUT int64[k], -1 everywhere."""
    last_slot = np.uint64(slots.shape[0] - 1)
    step = np.uint64(1)
    for k in range(masks.shape[0]):
        slot = _slot(masks, k, last_slot)
        while slots[slot] >= 0:
            slot = (slot + step) & last_slot
        slots[slot] = k
    for i in range(family.shape[0]):
        slot = _slot(family, i, last_slot)
        while slots[slot] >= 0:
            k = slots[slot]
            if _same(masks, k, family, i):
                if indices[k] < 0:
                    indices[k] = i
                break
            slot = (slot + step) & last_slot


def warm_up() -> None:
    few = np.array([[1], [3]], dtype=np.uint64)
    indices_in(few, few)
