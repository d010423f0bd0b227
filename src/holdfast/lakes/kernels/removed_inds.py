"""How many inclusions hold before filters, and which filter removes how many of them.

A lake may have far more inclusions between columns of small integers than can be listed. They are counted:
the columns that contain a dep of frequent values are an intersection of bitmaps, and each filter that looks
at the referenced column alone is a bitmap too, so that a filter's count is that of the bits they share. A
dep that is filtered itself needs no more than the bits of the whole intersection. Columns like 1, 2, 3 are
often equal: what a dep of frequent values counts is remembered for the next one with the same values.

Deps, postings and bitmaps are those of `rarest_value`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen
from holdfast.core.rows.kernels.masks import word_lowest, word_popcount
from holdfast.lakes.kernels.rarest_value import (
    BLOCK,
    all_mapped,
    block_of_all,
    has_bit,
    listed_columns,
    most_values,
    rarest_first,
)

U64 = NDArray[np.uint64]
U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Bits of `flags` and of `filters`; and what a referenced column counts for, 0 being none of these.
NULL, INTEGER, UNIQUE = 1, 2, 4
NON_UNIQUE, COVERAGE = 4, 8
_IS_NULL, _IS_INTEGER, _IS_NON_UNIQUE, _IS_LARGE = 1, 2, 3, 4

# Deps with fewer values than this have a bitmap, made at need, of the columns too large for them.
_SIZES = 64
# Deps of frequent values that are remembered.
_REMEMBERED = 1 << 14

_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def _class_maps(classes, maps):  # type: ignore[no-untyped-def]
    """IN classes uint8[n]; OUT maps uint64[4, words], zero: bitmaps of the columns of each class."""
    for c in range(classes.shape[0]):
        maps[classes[c], c >> 6] |= _ONE << np.uint64(c & 63)


@njit(cache=True, nogil=True)
def _map_large(n, classes, sizes, tau, large):  # type: ignore[no-untyped-def]
    """OUT large uint64[words]: the columns of class 0 of which n values are too small a part."""
    large[:] = 0
    for c in range(classes.shape[0]):
        if classes[c] == 0 and n < tau * sizes[c]:
            large[c >> 6] |= _ONE << np.uint64(c & 63)


@njit(cache=True, nogil=True)
def _count_mapped(  # type: ignore[no-untyped-def]
    order, n, slots, maps, live, class_maps, by_size, map_large, sizes, tau, only_total, block, counts
):
    """OUT counts int64[5]: the live columns that have all n values, of class 0 and not too large [0], of
    class 1, 2, 3, or of class 0 and too large [4]; where `only_total` all but those of class 1 are in [0].

    IN map_large uint64[words]: the too large ones, if `by_size` is 1; if 2 they are told by `sizes`; if 0
    none is. OUT block uint64[BLOCK]: scratch.
    """
    n_words = live.shape[0]
    counts[:] = 0
    for begin in range(0, n_words, BLOCK):
        end = min(begin + BLOCK, n_words)
        if block_of_all(order, n, slots, maps, live, begin, end, block) == 0:
            continue
        total, first = 0, 0
        null = class_maps[_IS_NULL, begin:end]
        for w in range(end - begin):
            total += word_popcount(block[w])
            first += word_popcount(block[w] & null[w])
        counts[_IS_NULL] += first
        total -= first
        if not only_total:
            second, third = 0, 0
            integer, non_unique = class_maps[_IS_INTEGER, begin:end], class_maps[_IS_NON_UNIQUE, begin:end]
            for w in range(end - begin):
                second += word_popcount(block[w] & integer[w])
                third += word_popcount(block[w] & non_unique[w])
            counts[_IS_INTEGER] += second
            counts[_IS_NON_UNIQUE] += third
            total -= second + third
            n_large = 0
            if by_size == 1 and total > 0:
                too_large = map_large[begin:end]
                for w in range(end - begin):
                    n_large += word_popcount(block[w] & too_large[w])
            elif by_size == 2 and total > 0:
                for w in range(end - begin):
                    word = block[w] & class_maps[0, begin + w]
                    while word != 0:
                        if n < tau * sizes[((begin + w) << 6) + word_lowest(word)]:
                            n_large += 1
                        word &= word - _ONE
            counts[_IS_LARGE] += n_large
            total -= n_large
        counts[0] += total


@njit(cache=True, nogil=True)
def _same_values(starts, first, second, n):  # type: ignore[no-untyped-def]
    i = 0
    while i < n and starts[first + i] == starts[second + i]:
        i += 1
    return i == n


@njit(cache=True, nogil=True)
def _has_all(order, n, slots, maps, c):  # type: ignore[no-untyped-def]
    i = 0
    while i < n and (maps[slots[order[i]], c >> 6] >> np.uint64(c & 63)) & _ONE != 0:
        i += 1
    return i == n


@njit(cache=True, nogil=True)
def _removed(  # type: ignore[no-untyped-def]
    offsets,
    starts,
    lengths,
    slots,
    postings,
    maps,
    dep_classes,
    dep_ids,
    classes,
    class_maps,
    sizes,
    live,
    tau,
    coverage,
    removed,
):
    """Count, dep by dep, and add to the filter that takes it each inclusion in a live column.

    IN offsets to maps: the deps and the index of `rarest_value`; IN dep_classes uint8[d], dep_ids int64[d];
    IN classes uint8[n], class_maps uint64[4, words], sizes int32[n], live uint64[words] of the columns of the
    index. IN/OUT removed int64[5], as `removed` gives it. Deps of frequent values are counted by bitmaps, or
    as an earlier dep of the same values was; the others by their listed columns.
    """
    n_words = live.shape[0]
    n_deps = offsets.shape[0] - 1
    order = np.empty(most_values(offsets), np.int64)
    held = np.empty(64 * n_words, np.int32)
    block = np.empty(BLOCK, np.uint64)
    counts = np.zeros(5, np.int64)
    large = np.empty((_SIZES, n_words), np.uint64)
    has_large = np.zeros(_SIZES, np.bool_)
    remembered = np.full(_REMEMBERED, -1, np.int64)
    remembered_counts = np.empty((_REMEMBERED, 5), np.int64)
    for i in range(n_deps):
        low, high = offsets[i], offsets[i + 1]
        n = high - low
        if n == 0:
            continue
        rarest_first(lengths, low, high, order)
        if lengths[order[0]] == 0:
            continue
        dep_id = dep_ids[i]
        dep_class = dep_classes[i]
        if all_mapped(order, n, lengths, slots, n_words):
            # Only the first class matters to a filtered dep, all of them to another: two kinds.
            only_total = dep_class != 0
            hashed = np.uint64(n)
            for v in range(low, high):
                hashed = (hashed ^ np.uint64(starts[v])) * np.uint64(0x9E3779B97F4A7C15)
                hashed ^= hashed >> np.uint64(29)
            place = np.int64(hashed & np.uint64(_REMEMBERED - 1))
            earlier = remembered[place]
            if (
                earlier >= 0
                and offsets[earlier + 1] - offsets[earlier] == n
                and (dep_classes[earlier] != 0) == only_total
                and _same_values(starts, low, offsets[earlier], n)
            ):
                for k in range(5):
                    counts[k] = remembered_counts[place, k]
            else:
                by_size = 0
                if coverage and not only_total:
                    by_size = 1 if n < _SIZES else 2
                if by_size == 1 and not has_large[n]:
                    _map_large(n, classes, sizes, tau, large[n])
                    has_large[n] = True
                _count_mapped(
                    order,
                    n,
                    slots,
                    maps,
                    live,
                    class_maps,
                    by_size,
                    large[min(n, _SIZES - 1)],
                    sizes,
                    tau,
                    only_total,
                    block,
                    counts,
                )
                remembered[place] = i
                for k in range(5):
                    remembered_counts[place, k] = counts[k]
            if dep_id >= 0 and has_bit(live, dep_id) != 0 and _has_all(order, n, slots, maps, dep_id):
                # To a filtered dep all but the first class are one: there, any of them will do.
                what = classes[dep_id]
                if what == 0 and coverage and n < tau * sizes[dep_id]:
                    what = _IS_LARGE
                counts[what] -= 1
        else:
            counts[:] = 0
            n_held = listed_columns(order, n, starts, lengths, slots, postings, maps, live, held)
            for j in range(n_held):
                c = held[j]
                if c != dep_id:
                    what = classes[c]
                    if what == 0 and coverage and n < tau * sizes[c]:
                        what = _IS_LARGE
                    counts[what] += 1
        total = counts[0] + counts[1] + counts[2] + counts[3] + counts[4]
        if dep_class == _IS_NULL:
            removed[_IS_NULL] += total
        elif dep_class == _IS_INTEGER:
            removed[_IS_NULL] += counts[_IS_NULL]
            removed[_IS_INTEGER] += total - counts[_IS_NULL]
        else:
            for k in range(5):
                removed[k] += counts[k]


def _filtered(flags: U8, filters: int) -> U8:
    """1 where filter null removes the column on either side, else 2 where integer does, else 0."""
    classes = np.zeros(len(flags), np.uint8)
    if filters & INTEGER:
        classes[(flags & INTEGER) != 0] = _IS_INTEGER
    if filters & NULL:
        classes[(flags & NULL) != 0] = _IS_NULL
    return classes


def removed(
    offsets: I64,
    starts: I64,
    lengths: I32,
    slots: I32,
    postings: I32,
    maps: U64,
    dep_flags: U8,
    dep_ids: I64,
    flags: U8,
    sizes: I32,
    live: U64,
    tau: float,
    filters: int,
) -> I64:
    """int64[5]: how many inclusions are kept [0], or removed by null [1], integer [2], non-unique [3] or
    coverage [4]: each by the first of the filters, in this order, that is on and applies.

    All inclusions of the deps in live columns of the index count, but for that of a dep in itself.

    IN offsets, starts, lengths, slots, postings, maps as in `rarest_value.containing`; IN dep_flags uint8[d];
    IN dep_ids int64[d]: the dep's own number in the index, or -1; IN flags uint8[n], sizes int32[n] (of value
    sets) of the columns of the index; IN live uint64[words]; `filters`: 1 null, 2 integer, 4 non-unique, 8
    coverage. flags: 1 null, 2 integer, 4 unique.

    Cost of a dep: as `containing`, but where all its values have bitmaps only bits are counted, none listed,
    and nothing is done if a dep of the same values (in the same order) was counted lately. Memory: 4 bytes
    and up to 8 more for each column of the index, the latter for coverage of deps with up to 63 values.
    """
    classes = _filtered(flags, filters)
    if filters & NON_UNIQUE:
        classes[(classes == 0) & ((flags & UNIQUE) == 0)] = _IS_NON_UNIQUE
    class_maps = np.zeros((4, len(live)), np.uint64)
    _class_maps(classes, class_maps)
    counts = np.zeros(5, np.int64)
    index: tuple[Any, ...] = (offsets, starts, lengths, slots, postings, maps)
    columns: tuple[Any, ...] = (_filtered(dep_flags, filters), dep_ids, classes, class_maps, sizes, live)
    _removed(*map(frozen, index), *map(frozen, columns), float(tau), bool(filters & COVERAGE), counts)
    return counts


def warm_up() -> None:
    offsets, starts = np.array([0, 1]), np.array([0])
    lengths, slots = np.array([2], np.int32), np.array([0], np.int32)
    index = (offsets, starts, lengths, slots, np.array([0, 1], np.int32))
    flags, sizes = np.array([4, 4], np.uint8), np.array([1, 1], np.int32)
    words = np.array([3], np.uint64)
    removed(*index, words.reshape(1, 1), flags[:1], np.array([0]), flags, sizes, words, 0.2, 15)
