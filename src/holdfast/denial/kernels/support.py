"""How much evidence stands behind a denial constraint: the pairs of rows that nearly violate it.

For two predicates p and q of a DC, let M be the number of pairs that satisfy all its other predicates, N_p
the number of those that satisfy q as well (all but p, perhaps), and N_q likewise. If p and q had nothing to
do with each other among the M pairs, N_p * N_q / M of them would satisfy both and violate the DC. So many
violations chance would make. The least of this over all p and q is what stands behind the DC. With two
predicates it is the test of independence of two features; with more, a long DC gets no credit for what a part
of it says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Indices,
    Masks,
    as_masks,
    popcounts,
    transposed,
    word_lowest,
)

F64 = NDArray[np.float64]

# Words of 64 evidences whose counters stay in the first cache.
BLOCK = 128
# Words compared in one call: between two calls an interrupt is heard.
TESTS_PER_CALL = 1 << 30

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


class Support(NamedTuple):
    """int64[k] violations: pairs that satisfy all predicates; int64[k] near: all but one; float64[k]
    expected: the violations that chance would make (infinite with fewer than two predicates)."""

    violations: Indices
    near: Indices
    expected: F64


def support(dcs: Masks, evidences: Masks, counts: Indices) -> Support:
    """What the evidence says of each DC.

    IN dcs uint64[k, n_words]; evidences uint64[m, n_words], different masks; counts int64[m], the pairs of
    each. The predicates that an evidence lacks are counted up to 3, for 64 evidences at once, from one bit
    per predicate and evidence; only where at most 2 are lacking is it asked which ones. Cost: 0.03 ns per
    predicate of a DC and evidence, and 3 ns for each evidence that lacks at most 2 (most, of short DCs).

    >>> either = np.array([[0b01], [0b10], [0b00]], dtype=np.uint64)
    >>> support(np.array([[0b11]], dtype=np.uint64), either, np.array([10, 20, 70]))
    Support(violations=array([0]), near=array([30]), expected=array([2.]))
    """
    masks, family = as_masks(dcs), as_masks(evidences)
    weights = np.ascontiguousarray(counts, dtype=np.int64)
    backing = Support(
        np.zeros(len(masks), dtype=np.int64),
        np.zeros(len(masks), dtype=np.int64),
        np.full(len(masks), np.inf),
    )
    lacked = _lacked(family)
    n_at_once = max(1, TESTS_PER_CALL // max(1, family.size))
    for at in range(0, len(masks), n_at_once):
        here = slice(at, at + n_at_once)
        _support(masks[here], family, lacked, weights, *(part[here] for part in backing))
    return backing


def _lacked(evidences: Masks) -> Masks:
    """uint64[64 * n_words, blocks * BLOCK]: a bit for each evidence that lacks a predicate.

    Words beyond the last evidence have all bits.
    """
    m, n_words = evidences.shape
    n_blocks = -(-m // (WORD_BITS * BLOCK))
    lacked = np.full((WORD_BITS * n_words, BLOCK * n_blocks), ~_ZERO)
    by_predicate = transposed(~evidences, WORD_BITS * n_words)
    lacked[:, : by_predicate.shape[1]] = by_predicate
    return lacked


@njit(cache=True, nogil=True)
def _support(
    dcs: Masks,
    evidences: Masks,
    lacked: Masks,
    counts: Indices,
    violations: Indices,
    near: Indices,
    expected: F64,
) -> None:
    """IN dcs uint64[k, n_words]; evidences uint64[m, n_words]; lacked, as of `_lacked`; counts int64[m].

    OUT violations, near int64[k], preset to 0; expected float64[k], preset to infinity.
    """
    n_evidences, n_words = evidences.shape
    members = np.empty(WORD_BITS * n_words, dtype=np.int64)
    place = np.zeros(WORD_BITS * n_words, dtype=np.int64)
    low = np.empty(BLOCK, dtype=np.uint64)
    high = np.empty(BLOCK, dtype=np.uint64)
    for i in range(dcs.shape[0]):
        size = 0
        for w in range(n_words):
            word = dcs[i, w]
            while word != _ZERO:
                members[size] = WORD_BITS * w + word_lowest(word)
                place[members[size]] = size
                size += 1
                word &= word - _ONE
        # lacking[p, p]: all but p are satisfied; lacking[p, q]: all but p and q.
        lacking = np.zeros((size, size), dtype=np.int64)
        n_violations = 0
        for start in range(0, lacked.shape[1], BLOCK):
            low[:] = _ZERO
            high[:] = _ZERO
            for k in range(size):
                more = lacked[members[k], start : start + BLOCK]
                for b in range(BLOCK):
                    # Two bits that count to 3 and stay there.
                    both = low[b] & more[b]
                    low[b] = (low[b] ^ more[b]) | (high[b] & both)
                    high[b] |= both
            for b in range(BLOCK):
                few = ~(low[b] & high[b])
                while few != _ZERO:
                    e = WORD_BITS * (start + b) + word_lowest(few)
                    few &= few - _ONE
                    if e >= n_evidences:
                        break
                    p, q = -1, -1
                    for w in range(n_words):
                        word = dcs[i, w] & ~evidences[e, w]
                        while word != _ZERO:
                            p, q = place[WORD_BITS * w + word_lowest(word)], p
                            word &= word - _ONE
                    if p < 0:
                        n_violations += counts[e]
                    else:
                        lacking[q if q >= 0 else p, p] += counts[e]
        violations[i] = n_violations
        for p in range(size):
            near[i] += lacking[p, p]
            for q in range(p):
                without_p = np.float64(lacking[p, p] + n_violations)
                without_q = np.float64(lacking[q, q] + n_violations)
                without_both = without_p + without_q - n_violations + lacking[q, p]
                chance = without_p * without_q / without_both if without_both > 0.0 else 0.0
                expected[i] = min(expected[i], chance)


def most_expected(dcs: Masks, joint: F64) -> F64:
    """An upper bound of `Support.expected`, from pairs of predicates alone: float64[k].

    IN dcs uint64[k, n_words]; joint float64[n + 1, n + 1]: how many pairs of rows satisfy predicates i and j,
    the last row and column standing for no predicate at all. Law: exact for DCs of two or three predicates;
    infinite with fewer; else at most as many violations are expected as pairs satisfy any two predicates.
    Cost: size ** 2 steps a DC.
    """
    masks = as_masks(dcs)
    expected = np.full(len(masks), np.inf)
    _most_expected(masks, np.ascontiguousarray(joint), int(popcounts(masks).max(initial=0)), expected)
    return expected


@njit(cache=True, nogil=True)
def _most_expected(dcs: Masks, joint: F64, largest: int, expected: F64) -> None:
    """Arguments as in `most_expected`; IN largest: the size of the largest DC.

    OUT expected float64[k], preset to infinity.
    """
    members = np.empty(largest, dtype=np.int64)
    nothing = joint.shape[0] - 1
    for i in range(dcs.shape[0]):
        size = 0
        for w in range(dcs.shape[1]):
            word = dcs[i, w]
            while word != _ZERO:
                members[size] = WORD_BITS * w + word_lowest(word)
                size += 1
                word &= word - _ONE
        least = np.inf
        for a in range(size):
            for b in range(a):
                p, q = members[a], members[b]
                if size > 3:
                    least = min(least, joint[p, q])
                    continue
                rest = nothing if size == 2 else members[3 - a - b]
                among = joint[rest, rest]
                least = min(least, joint[p, rest] * joint[q, rest] / among if among > 0.0 else 0.0)
        expected[i] = least


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    masks = np.array([[3], [1]], dtype=np.uint64)
    support(masks, masks, np.array([1, 1]))
    most_expected(masks, np.ones((3, 3)))
