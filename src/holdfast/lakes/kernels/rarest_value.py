"""Which columns have all the values of a column, or nearly all: by its rarest value.

A column that has all values of another has its rarest one. So the columns of the shortest posting are
looked at, and those that remain are intersected with the next shortest posting, and so on: exact, as all
values are intersected, and cheap, as most columns have a value that few others have. Frequent values have
bitmaps: with one, "is this column in the posting?" is one bit; where all values of a column are frequent,
whole bitmaps are intersected, 64 columns at a time.

The columns asked about (*deps*) are given by their values: `starts`, `lengths` (of postings, from
`value_index.find`) and `slots` (the row of `maps` that is the value's bitmap, or -1) at
offsets[i]:offsets[i + 1]. The columns found are those of the index (`postings`), if `allowed` has their bit.
Which values have bitmaps changes the time and nothing else.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen
from holdfast.core.rows.kernels.masks import word_lowest

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Words of a bitmap that are intersected at a time: they stay in the first cache.
BLOCK = 512
# Where all values have bitmaps and the shortest posting has fewer columns than 1 / LISTED of the words of a
# bitmap, testing the columns one by one is faster than intersecting bitmaps.
LISTED = 4
# Postings this many times longer than the columns to look for are galloped through, others merged.
GALLOP = 8
# Up to so many values are sorted, by insertion.
_FEW = 24
# Pairs to make room for at first.
_ROOM = 1 << 12

_ONE = np.uint64(1)


# --- Steps that `removed_inds` takes too, in inner loops: inlined ----------------------------------------


@njit(cache=True, inline="always")
def has_bit(words, c):  # type: ignore[no-untyped-def]
    return (words[c >> 6] >> np.uint64(c & 63)) & _ONE


@njit(cache=True, inline="always")
def rarest_first(lengths, low, high, order):  # type: ignore[no-untyped-def]
    """OUT order int64[high - low or more]: low..high - 1, the shortest first; by rising length if they are
    few, by the rising number of its bits if they are many: that is near enough, and takes two passes.
    """
    n = high - low
    if n <= _FEW:
        for i in range(n):
            length = lengths[low + i]
            j = i
            while j > 0 and lengths[order[j - 1]] > length:
                order[j] = order[j - 1]
                j -= 1
            order[j] = low + i
    else:
        ends = np.zeros(34, np.int64)
        shortest = low
        for v in range(low, high):
            bits, length = 0, lengths[v]
            if length < lengths[shortest]:
                shortest = v
            while length > 0:
                length >>= 1
                bits += 1
            ends[bits + 1] += 1
        for bits in range(1, 34):
            ends[bits] += ends[bits - 1]
        first = 0
        for v in range(low, high):
            bits, length = 0, lengths[v]
            while length > 0:
                length >>= 1
                bits += 1
            order[ends[bits]] = v
            if v == shortest:
                first = ends[bits]
            ends[bits] += 1
        order[first] = order[0]
        order[0] = shortest


@njit(cache=True, inline="always")
def seek(postings, low, high, c):  # type: ignore[no-untyped-def]
    """The first place in low..high - 1 whose column is not before c, `high` if there is none: gallops."""
    step = 1
    end = low
    while end < high and postings[end] < c:
        low = end + 1
        end += step
        step *= 2
    end = min(end, high)
    while low < end:
        middle = (low + end) >> 1
        if postings[middle] < c:
            low = middle + 1
        else:
            end = middle
    return low


@njit(cache=True, inline="always")
def all_mapped(order, n, lengths, slots, n_words):  # type: ignore[no-untyped-def]
    """Whether to intersect bitmaps: all values have one, and the shortest posting is not very short."""
    mapped = np.int64(lengths[order[0]]) * LISTED >= n_words
    i = 0
    while mapped and i < n:
        mapped = slots[order[i]] >= 0
        i += 1
    return mapped


@njit(cache=True, inline="always")
def listed_columns(order, n, starts, lengths, slots, postings, maps, allowed, held):  # type: ignore[no-untyped-def]
    """How many allowed columns have all n values; they are held[:result], ascending.

    IN order int64[n]: the values, from `rarest_first`. OUT held int32[lengths[order[0]] or more].
    """
    first = order[0]
    n_held = np.int64(0)
    for j in range(starts[first], starts[first] + lengths[first]):
        c = postings[j]
        held[n_held] = c
        n_held += np.int64(has_bit(allowed, c))
    i = 1
    while i < n and n_held > 0:
        v = order[i]
        low, high = starts[v], starts[v] + lengths[v]
        n_common = np.int64(0)
        if slots[v] >= 0:
            row = slots[v]
            for a in range(n_held):
                c = held[a]
                held[n_common] = c
                n_common += np.int64((maps[row, c >> 6] >> np.uint64(c & 63)) & _ONE)
        elif high - low <= GALLOP * n_held:
            at = np.int64(0)
            while at < n_held and low < high:
                c, posted = held[at], postings[low]
                held[n_common] = c
                n_common += np.int64(c == posted)
                at += np.int64(c <= posted)
                low += np.int64(posted <= c)
        else:
            for a in range(n_held):
                c = held[a]
                low = seek(postings, low, high, c)
                if low < high and postings[low] == c:
                    held[n_common] = c
                    n_common += 1
        n_held = n_common
        i += 1
    return n_held


@njit(cache=True, inline="always")
def block_of_all(order, n, slots, maps, allowed, begin, end, block):  # type: ignore[no-untyped-def]
    """OUT block uint64[end - begin or more]: words begin..end - 1 of the intersection of n bitmaps and
    `allowed`. Returns 0 if all are 0.
    """
    # Views that start at 0: the compiler sees that no index is negative, and uses vector instructions.
    size = end - begin
    line = maps[slots[order[0]], begin:end]
    permitted = allowed[begin:end]
    some = np.uint64(0)
    for w in range(size):
        x = permitted[w] & line[w]
        block[w] = x
        some |= x
    i = 1
    while i < n and some != 0:
        line = maps[slots[order[i]], begin:end]
        some = np.uint64(0)
        for w in range(size):
            x = block[w] & line[w]
            block[w] = x
            some |= x
        i += 1
    return some


# --- Exact -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def most_values(offsets):  # type: ignore[no-untyped-def]
    """How many values the largest dep has; at least one."""
    most = 1
    for i in range(offsets.shape[0] - 1):
        most = max(most, offsets[i + 1] - offsets[i])
    return most


@njit(cache=True, nogil=True)
def _columns_of(order, n, starts, lengths, slots, postings, maps, allowed, block, held):  # type: ignore[no-untyped-def]
    """How many allowed columns have all n values; they are held[:result], ascending.

    IN order int64[n]: the values, from `rarest_first`. OUT held int32[64 * words]; block uint64[BLOCK],
    scratch.
    """
    n_words = allowed.shape[0]
    if lengths[order[0]] == 0:
        return 0
    if not all_mapped(order, n, lengths, slots, n_words):
        return listed_columns(order, n, starts, lengths, slots, postings, maps, allowed, held)
    n_held = 0
    for begin in range(0, n_words, BLOCK):
        end = min(begin + BLOCK, n_words)
        if block_of_all(order, n, slots, maps, allowed, begin, end, block) != 0:
            for w in range(end - begin):
                word = block[w]
                while word != 0:
                    held[n_held] = ((begin + w) << 6) + word_lowest(word)
                    n_held += 1
                    word &= word - _ONE
    return n_held


@njit(cache=True, nogil=True)
def _room(pairs, n, wanted, capacity):  # type: ignore[no-untyped-def]
    """The pairs int32[2 or 3, *], of which n are in use, with room for `wanted`; twice as long if need be."""
    if wanted <= pairs.shape[1]:
        return pairs
    grown = np.empty((pairs.shape[0], max(wanted, min(2 * pairs.shape[1], capacity))), np.int32)
    grown[:, :n] = pairs[:, :n]
    return grown


@njit(cache=True, nogil=True)
def _containing(offsets, starts, lengths, slots, postings, maps, allowed, capacity, room):  # type: ignore[no-untyped-def]
    pairs = np.empty((2, min(capacity, room)), np.int32)
    order = np.empty(most_values(offsets), np.int64)
    held = np.empty(64 * allowed.shape[0], np.int32)
    block = np.empty(BLOCK, np.uint64)
    n_pairs = np.int64(0)  # a plain 0 is a type of its own, and compiles what it is passed to twice
    n_deps = offsets.shape[0] - 1
    for i in range(n_deps):
        n = offsets[i + 1] - offsets[i]
        if n == 0:
            continue
        rarest_first(lengths, offsets[i], offsets[i + 1], order)
        n_held = _columns_of(order, n, starts, lengths, slots, postings, maps, allowed, block, held)
        if n_pairs > 0 and n_pairs + n_held > capacity:
            return pairs, n_pairs, i
        pairs = _room(pairs, n_pairs, n_pairs + n_held, capacity)
        for j in range(n_held):
            pairs[0, n_pairs + j] = i
            pairs[1, n_pairs + j] = held[j]
        n_pairs += n_held
    return pairs, n_pairs, n_deps


def containing(
    offsets: I64,
    starts: I64,
    lengths: I32,
    slots: I32,
    postings: I32,
    maps: U64,
    allowed: U64,
    capacity: int,
) -> tuple[I32, I32, int]:
    """(dep int32[k], ref int32[k], n_done): the allowed columns that have all values of a dep.

    IN offsets int64[d + 1]; IN starts int64[v], lengths int32[v], slots int32[v]: the deps' values, in any
    order; IN postings int32[*]; IN maps uint64[f, words]; IN allowed uint64[words]. Sorted by dep, then ref;
    complete for the first n_done deps. A dep without values, or with one that the index lacks, has none; a
    column of the index has itself.

    At most `capacity` pairs, unless one dep alone has more; n_done >= 1 if there are deps. Cost of a dep: its
    shortest posting, then what remains of it for each other value; for a dep of frequent values only, its
    bitmaps. Memory: 4 bytes for each column of the index, and the pairs.

    >>> index = np.array([0, 1, 1, 2], np.int32)  # value 0 in columns 0 and 1, value 1 in columns 1 and 2
    >>> values = np.array([0, 2]), np.array([2, 2], np.int32), np.array([-1, -1], np.int32)
    >>> containing(np.array([0, 2]), *values, index, np.zeros((0, 1), np.uint64), np.array([7], np.uint64), 9)
    (array([0], dtype=int32), array([1], dtype=int32), 1)
    """
    arrays: tuple[Any, ...] = (offsets, starts, lengths, slots, postings, maps, allowed)
    pairs, n, n_done = _containing(*map(frozen, arrays), max(capacity, 1), _ROOM)
    return pairs[0, :n], pairs[1, :n], int(n_done)


# --- With some values missing ----------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _count_prefix(order, begin, end, starts, lengths, postings, allowed, counts, held):  # type: ignore[no-untyped-def]
    """How many allowed columns have some of the values begin..end - 1 of `order`; held[:result], ascending.

    IN/OUT counts int32[64 * words], zero: how many of these values each column has.
    """
    n_held = 0
    for i in range(begin, end):
        v = order[i]
        for j in range(starts[v], starts[v] + lengths[v]):
            c = postings[j]
            if has_bit(allowed, c):
                if counts[c] == 0:
                    held[n_held] = c
                    n_held += 1
                counts[c] += 1
    if end - begin > 1:
        if n_held * 16 > counts.shape[0]:
            n_held = 0
            for c in range(counts.shape[0]):
                if counts[c] > 0:
                    held[n_held] = c
                    n_held += 1
        else:
            held[:n_held].sort()
    return n_held


@njit(cache=True, nogil=True)
def _count_value(v, starts, lengths, slots, postings, maps, counts, held, n_held):  # type: ignore[no-untyped-def]
    """Add 1 to the counts of the held columns that have value v. IN held int32[n_held], ascending."""
    low, high = starts[v], starts[v] + lengths[v]
    if slots[v] >= 0:
        row = slots[v]
        for a in range(n_held):
            c = held[a]
            counts[c] += np.int32((maps[row, c >> 6] >> np.uint64(c & 63)) & _ONE)
    elif high - low <= GALLOP * n_held:
        for j in range(low, high):
            c = postings[j]
            counts[c] += np.int32(counts[c] > 0)  # a column that is held has a count
    else:
        for a in range(n_held):
            c = held[a]
            low = seek(postings, low, high, c)
            if low < high and postings[low] == c:
                counts[c] += 1


@njit(cache=True, nogil=True)
def _nearly(order, n, needed, starts, lengths, slots, postings, maps, allowed, counts, held):  # type: ignore[no-untyped-def]
    """How many allowed columns have `needed` of the n values; held[:result], ascending, and their counts."""
    absent = np.int64(0)
    while absent < n and lengths[order[absent]] == 0:
        absent += 1
    if n - absent < needed:
        return 0
    # A column that has none of these lacks too many.
    prefix = n - needed + 1
    n_held = _count_prefix(order, absent, prefix, starts, lengths, postings, allowed, counts, held)
    for i in range(prefix, n):
        if n_held == 0:
            break
        _count_value(order[i], starts, lengths, slots, postings, maps, counts, held, n_held)
        least = needed - (n - 1 - i)
        n_enough = 0
        for a in range(n_held):
            c = held[a]
            if counts[c] >= least:
                held[n_enough] = c
                n_enough += 1
            else:
                counts[c] = 0
        n_held = n_enough
    return n_held


@njit(cache=True, nogil=True)
def _nearly_containing(offsets, starts, lengths, slots, postings, maps, allowed, max_missing, capacity, room):  # type: ignore[no-untyped-def]
    pairs = np.empty((3, min(capacity, room)), np.int32)
    order = np.empty(most_values(offsets), np.int64)
    held = np.empty(64 * allowed.shape[0], np.int32)
    counts = np.zeros(64 * allowed.shape[0], np.int32)
    block = np.empty(BLOCK, np.uint64)
    n_pairs = np.int64(0)
    n_deps = offsets.shape[0] - 1
    for i in range(n_deps):
        n = offsets[i + 1] - offsets[i]
        if n == 0:
            continue
        rarest_first(lengths, offsets[i], offsets[i + 1], order)
        exact = max_missing[i] <= 0
        if exact:
            n_held = _columns_of(order, n, starts, lengths, slots, postings, maps, allowed, block, held)
        else:
            needed = max(np.int64(1), n - max_missing[i])
            n_held = _nearly(order, n, needed, starts, lengths, slots, postings, maps, allowed, counts, held)
        if n_pairs > 0 and n_pairs + n_held > capacity:
            return pairs, n_pairs, i
        pairs = _room(pairs, n_pairs, n_pairs + n_held, capacity)
        for j in range(n_held):
            c = held[j]
            pairs[0, n_pairs + j] = i
            pairs[1, n_pairs + j] = c
            pairs[2, n_pairs + j] = n if exact else counts[c]
            counts[c] = 0
        n_pairs += n_held
    return pairs, n_pairs, n_deps


def nearly_containing(
    offsets: I64,
    starts: I64,
    lengths: I32,
    slots: I32,
    postings: I32,
    maps: U64,
    allowed: U64,
    max_missing: I32,
    capacity: int,
) -> tuple[I32, I32, I32, int]:
    """(dep, ref, shared int32[k], n_done): the allowed columns that lack at most max_missing[i] values of
    dep i, and how many of its values they have, at least one.

    IN max_missing int32[d]; the rest as in `containing`, of which this is the case max_missing = 0. A value
    that the index lacks counts as missing.

    Cost of a dep: its max_missing + 1 shortest postings, as a column that is in none of them lacks too many;
    then a test of each column that may still do for each other value. Memory: 8 bytes for each column of the
    index, and the pairs.
    """
    arrays: tuple[Any, ...] = (offsets, starts, lengths, slots, postings, maps, allowed, max_missing)
    pairs, n, n_done = _nearly_containing(*map(frozen, arrays), max(capacity, 1), _ROOM)
    return pairs[0, :n], pairs[1, :n], pairs[2, :n], int(n_done)


# --- How rare a column's values are ----------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _rarity(offsets, lengths, values, log_n, pivots, rarities):  # type: ignore[no-untyped-def]
    for i in range(offsets.shape[0] - 1):
        low, high = offsets[i], offsets[i + 1]
        pivots[i] = 0
        rarities[i] = 0.0
        if low == high:
            continue
        rarest = low
        total = 0.0
        for v in range(low, high):
            if lengths[v] < lengths[rarest]:
                rarest = v
            total += 1.0 - math.log(max(lengths[v], 1)) / log_n
        pivots[i] = values[rarest]
        rarities[i] = min(max(total / (high - low), 0.0), 1.0)


def rarity(offsets: I64, lengths: I32, values: U64, n_columns: int) -> tuple[U64, NDArray[np.float32]]:
    """(pivots uint64[d], rarity float32[d]): each column's rarest value, and how rare all are on average.

    IN offsets int64[d + 1]; IN lengths int32[v], values uint64[v] of its values. Of equally rare values the
    pivot is the first. Rarity is the mean of log(N / df) / log(N): 1 if no other column has any of the
    values, 0 if all columns have them all; N = n_columns, at least 2, df = length of the posting, at least 1.
    Both are 0 for a column without values.

    >>> one = np.array([1], np.int32), np.array([77], np.uint64)
    >>> rarity(np.array([0, 1]), *one, 10)
    (array([77], dtype=uint64), array([1.], dtype=float32))
    """
    n = len(offsets) - 1
    pivots, rarities = np.empty(n, np.uint64), np.empty(n, np.float32)
    arrays: tuple[Any, ...] = (offsets, lengths, values)
    _rarity(*map(frozen, arrays), math.log(max(n_columns, 2)), pivots, rarities)
    return pivots, rarities


def warm_up() -> None:
    offsets, starts = np.array([0, 1]), np.array([0])
    lengths, slots = np.array([2], np.int32), np.array([0], np.int32)
    postings = np.array([0, 1], np.int32)
    maps, allowed = np.array([[3]], np.uint64), np.array([3], np.uint64)
    index = (offsets, starts, lengths, slots, postings, maps, allowed)
    containing(*index, 2)
    nearly_containing(*index, np.array([1], np.int32), 2)
    rarity(offsets, lengths, np.array([7], np.uint64), 2)
