"""Agree sets as functional dependencies see them: what one is maximal for, and what it breaks.

A pair of rows with agree set m violates X -> A iff m contains X and lacks A. So for a right-hand side A
only the agree sets that lack A count, and of these only the maximal ones. All right-hand sides are served
by one question per agree set:

Law: m is maximal among the sets that lack A iff A is outside of m and in every set that contains m
properly. So the columns that m is maximal *for* are the intersection of its proper supersets, minus m.

Masks are as in `holdfast.core.rows.kernels.masks`.
"""

from __future__ import annotations

import numpy as np

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import STRIDE, Flags, Indices, Masks, as_masks, popcounts, word_popcount

_ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def _maximal_for(masks: Masks, sizes: Indices, full: Masks, out: Masks) -> None:
    """masks IN uint64[n, n_words], all different, sorted by size, descending; sizes IN int64[n]; full IN
    uint64[n_words]; out OUT uint64[n, n_words].

    Only masks that are maximal for something are compared with: if a proper superset of m lacks A, so does
    one that is maximal for A.
    """
    n_masks, n_words = masks.shape
    maximal = np.empty((n_words, n_masks), dtype=np.uint64)  # by columns
    n_maximal = 0
    n_larger = 0
    common = np.empty(n_words, dtype=np.uint64)
    for i in range(n_masks):
        if i > 0 and sizes[i] < sizes[i - 1]:
            n_larger = n_maximal
        telling = 0  # the word that rules out most
        most = -1
        for w in range(n_words):
            common[w] = full[w]
            says = word_popcount(masks[i, w])
            if says > most:
                telling, most = w, says
        word = masks[i, telling]
        candidates = maximal[telling]
        # The smallest of the larger ones come last and are nearest: two of them settle most cases.
        stop = n_larger
        open_ = True
        while stop > 0 and open_:
            start = max(stop - STRIDE, 0)
            hit = False
            for j in range(start, stop):
                hit |= (word & ~candidates[j]) == _ZERO
            if hit:
                for j in range(start, stop):
                    missing = _ZERO
                    for w in range(n_words):
                        missing |= masks[i, w] & ~maximal[w, j]
                    if missing == _ZERO:
                        outside = _ZERO
                        for w in range(n_words):
                            common[w] &= maximal[w, j]
                            outside |= common[w] & ~masks[i, w]
                        open_ = outside != _ZERO
                        if not open_:
                            break
            stop = start
        relevant = _ZERO
        for w in range(n_words):
            out[i, w] = common[w] & ~masks[i, w]
            relevant |= out[i, w]
        if relevant != _ZERO:
            for w in range(n_words):
                maximal[w, n_maximal] = masks[i, w]
            n_maximal += 1


def maximal_for(masks: Masks, full: Masks) -> Masks:
    """For each mask the columns that it is maximal for: `uint64[n, n_words]`.

    masks IN `uint64[n, n_words]`, all different; full IN `uint64[n_words]`, all columns. Cost: at most n * k
    word tests, if k of the masks are maximal for some column; a mask with two supersets that share nothing
    else is done when they are found.

    >>> masks = np.array([[0b001], [0b011], [0b101]], dtype=np.uint64)
    >>> maximal_for(masks, np.array([0b111], dtype=np.uint64)).tolist()
    [[0], [4], [2]]
    """
    family = as_masks(masks)
    sizes = popcounts(family)
    order = np.argsort(-sizes, kind="stable")
    out = np.empty_like(family)
    _maximal_for(np.ascontiguousarray(family[order]), sizes[order], as_masks(full), out)
    result = np.empty_like(out)
    result[order] = out
    return result


@njit(cache=True, nogil=True)
def _breaks(masks: Masks, lhs: Masks, rhs: Masks, broken: Flags) -> None:
    n_words = masks.shape[1]
    for i in range(masks.shape[0]):
        for j in range(lhs.shape[0]):
            missing = _ZERO
            violated = _ZERO
            for w in range(n_words):
                missing |= lhs[j, w] & ~masks[i, w]
                violated |= rhs[j, w] & ~masks[i, w]
            if missing == _ZERO and violated != _ZERO:
                broken[i] = True
                break


def breaks(masks: Masks, lhs: Masks, rhs: Masks) -> Flags:
    """Whether a pair with this agree set violates lhs[j] -> some column of rhs[j], for any j: `bool[n]`.

    masks IN `uint64[n, n_words]`; lhs, rhs IN `uint64[m, n_words]`. Cost: at most n * m word tests.

    >>> masks = np.array([[0b001], [0b011]], dtype=np.uint64)
    >>> breaks(masks, np.array([[0b001]], dtype=np.uint64), np.array([[0b010]], dtype=np.uint64))
    array([ True, False])
    """
    family = as_masks(masks)
    broken = np.zeros(len(family), dtype=np.bool_)
    _breaks(family, as_masks(lhs), as_masks(rhs), broken)
    return broken


def warm_up() -> None:
    few = np.array([[1], [3]], dtype=np.uint64)
    maximal_for(few, few[1])
    breaks(few, few, few)
