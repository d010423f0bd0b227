"""Value sets of columns in flat arrays: is one a subset of another (MANY, sec. 4.2, algorithm 7)?

Set i of (offsets int64[n + 1], values uint64[E], checks uint64[E]) has the values (h1, h2) of
offsets[i]:offsets[i + 1], sorted by (h1, h2), none twice. The two hashes together are a value's identity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# A set this many times as long as the other is searched, a shorter one is read through.
GALLOP = 16


def validated(
    dep: I32,
    ref: I32,
    a_offsets: I64,
    a_values: U64,
    a_checks: U64,
    b_offsets: I64,
    b_values: U64,
    b_checks: U64,
) -> Bool:
    """Whether set dep[i] of a is a subset of set ref[i] of b: bool[n]. Exact on (h1, h2).

    IN dep, ref int32[n], in any order: candidates that are sorted by one of them find that set in the cache.
    IN a_*, b_*: the sets, perhaps the same arrays. The empty set is a subset of every set.

    Cost: a step for each value of the larger set, or for each of the smaller one a search in the larger,
    until the first value that is missing.
    """
    contained = np.empty(len(dep), dtype=np.bool_)
    a = (frozen(a_offsets), frozen(a_values), frozen(a_checks))
    b = (frozen(b_offsets), frozen(b_values), frozen(b_checks))
    _validate(frozen(dep), frozen(ref), *a, *b, contained)
    return contained


@njit(cache=True, nogil=True)
def _read(av, ac, i, i_end, bv, bc, j, j_end):  # type: ignore[no-untyped-def]
    """Whether a[i:i_end] is part of b[j:j_end], by reading b through.

    The step is taken without a branch: a branch on "is this one the next value of a" cannot be foretold.
    Leaving on a larger h1 can: nearly all candidates that a signature lets pass are right.
    """
    while i < i_end:
        if j_end - j < i_end - i or bv[j] > av[i]:
            return False
        i += (bv[j] == av[i]) & (bc[j] == ac[i])
        j += 1
    return True


@njit(cache=True, nogil=True)
def _gallop(av, ac, i, i_end, bv, bc, j, j_end):  # type: ignore[no-untyped-def]
    """Whether a[i:i_end] is part of b[j:j_end], by a search for each value from the place of the last."""
    while i < i_end:
        value, check = av[i], ac[i]
        step = 1
        low, high = j, j
        while high < j_end and (bv[high] < value or (bv[high] == value and bc[high] < check)):
            low = high + 1
            high += step
            step *= 2
        high = min(high, j_end)
        while low < high:
            middle = (low + high) >> 1
            if bv[middle] < value or (bv[middle] == value and bc[middle] < check):
                low = middle + 1
            else:
                high = middle
        if low == j_end or bv[low] != value or bc[low] != check:
            return False
        j = low + 1
        i += 1
    return True


@njit(cache=True, nogil=True)
def _validate(dep, ref, ao, av, ac, bo, bv, bc, contained):  # type: ignore[no-untyped-def]
    for e in range(dep.shape[0]):
        i, i_end = ao[dep[e]], ao[dep[e] + 1]
        j, j_end = bo[ref[e]], bo[ref[e] + 1]
        if i_end - i > j_end - j:
            contained[e] = False
        elif (j_end - j) > GALLOP * (i_end - i):
            contained[e] = _gallop(av, ac, i, i_end, bv, bc, j, j_end)
        else:
            contained[e] = _read(av, ac, i, i_end, bv, bc, j, j_end)


def warm_up() -> None:
    zero = np.zeros(1, dtype=np.int32)
    one = (np.array([0, 1], dtype=np.int64), np.ones(1, dtype=np.uint64), np.ones(1, dtype=np.uint64))
    validated(zero, zero, *one, *one)
