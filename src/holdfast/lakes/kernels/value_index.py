"""The inverted index of a part of a lake: sort its entries, find values, and give frequent values bitmaps.

A value is known by two hashes, (h1, h2). An *entry* (h1, h2, column) says that a column has the value; an
index is the entries sorted by value, then column, as three aligned arrays `keys`, `key_checks` and
`postings`. The columns of one value stand together: its *posting*, known by where it starts and how long it
is. h1 is spread evenly over 64 bits, which makes radix sort and a directory of leading bits fast; all
results are right for any keys, also where different values agree on h1.

A bitmap holds one posting as bits: bit `c % 64` of word `c // 64` stands for column c. It costs one bit for
each column of the part, so only long postings are worth one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Bits of a digit of the radix sort. With 8 the open cache lines of all 256 targets fit into the first cache.
_DIGIT = 8
# Entries that a bucket of the directory has on average: two cache lines of keys.
_BUCKET = 16


# --- Sorting ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _scatter(keys, checks, columns, shift, ends, to_keys, to_checks, to_columns):  # type: ignore[no-untyped-def]
    """One stable pass by the digit at `shift`. IN/OUT ends int64[2 ** _DIGIT]: where each digit starts."""
    mask = np.uint64((1 << _DIGIT) - 1)
    for i in range(keys.shape[0]):
        key = keys[i]
        digit = np.int64((key >> shift) & mask)
        j = ends[digit]
        to_keys[j] = key
        to_checks[j] = checks[i]
        to_columns[j] = columns[i]
        ends[digit] = j + 1


@njit(cache=True, nogil=True)
def _digit_starts(keys, low, n_passes, starts):  # type: ignore[no-untyped-def]
    """Where the entries of each digit start, for the digits from bit `low` up.

    IN/OUT starts int64[n_passes, 2 ** _DIGIT], zero.
    """
    mask = np.uint64((1 << _DIGIT) - 1)
    for i in range(keys.shape[0]):
        key = keys[i] >> low
        for p in range(n_passes):
            starts[p, np.int64(key & mask)] += 1
            key >>= np.uint64(_DIGIT)
    for p in range(n_passes):
        total = 0
        for d in range(starts.shape[1]):
            n = starts[p, d]
            starts[p, d] = total
            total += n


@njit(cache=True, nogil=True)
def _after(keys, checks, columns, i, j):  # type: ignore[no-untyped-def]
    if keys[i] != keys[j]:
        return keys[i] > keys[j]
    if checks[i] != checks[j]:
        return checks[i] > checks[j]
    return columns[i] > columns[j]


@njit(cache=True, nogil=True)
def _sort_group(keys, checks, columns, low, high):  # type: ignore[no-untyped-def]
    """Merge sort of entries low..high - 1, in place: never quadratic, whatever agrees with what."""
    n = high - low
    order = np.arange(low, high)
    spare = np.empty(n, np.int64)
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            i, middle = start, min(start + width, n)
            j, end = middle, min(start + 2 * width, n)
            for m in range(start, end):
                if j >= end or (i < middle and not _after(keys, checks, columns, order[i], order[j])):
                    spare[m] = order[i]
                    i += 1
                else:
                    spare[m] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    keys[low:high] = keys[order]
    checks[low:high] = checks[order]
    columns[low:high] = columns[order]


@njit(cache=True, nogil=True)
def _mend(keys, checks, columns, shift):  # type: ignore[no-untyped-def]
    """Sort the groups that agree above `shift` and are not in order yet: few, if keys are spread evenly."""
    n = keys.shape[0]
    low = np.int64(0)  # a plain 0 is a type of its own at first, and compiles what it is passed to twice
    while low < n:
        high = low + 1
        head = keys[low] >> shift
        sorted_already = True
        while high < n and keys[high] >> shift == head:
            if _after(keys, checks, columns, high - 1, high):
                sorted_already = False
            high += 1
        if not sorted_already:
            _sort_group(keys, checks, columns, low, high)
        low = high


def sort_entries(values: U64, checks: U64, columns: I32) -> tuple[U64, U64, I32]:
    """(keys, key_checks, postings): the entries sorted by (h1, h2, column).

    IN values uint64[n], checks uint64[n], columns int32[n], in any order; the fastest is ascending columns.
    Cost: two to six passes over the entries and as many bytes again as they have: a radix sort by the leading
    bits of h1, then a sort of each group that these do not tell apart.

    >>> hashes = np.array([7, 5, 7], np.uint64), np.zeros(3, np.uint64)
    >>> sort_entries(*hashes, np.array([0, 0, 1], np.int32))[2]
    array([0, 0, 1], dtype=int32)
    """
    n = len(values)
    # 8 bits more than it takes to number the entries: then about one value in 2 ** 9 meets another.
    n_passes = min(-(-(n.bit_length() + 8) // _DIGIT), 64 // _DIGIT)
    low = 64 - n_passes * _DIGIT
    source = [frozen(values), frozen(checks), frozen(columns)]
    starts = np.zeros((n_passes, 1 << _DIGIT), np.int64)
    _digit_starts(source[0], np.uint64(low), n_passes, starts)
    spare: list[list[NDArray[np.generic]]] = []
    for p in range(n_passes):
        target = spare.pop() if spare else [np.empty_like(a) for a in source]
        _scatter(*map(frozen, source), np.uint64(low + p * _DIGIT), starts[p], *target)
        if p:
            spare.append(source)
        source = target
    keys, key_checks, postings = source
    _mend(keys, key_checks, postings, np.uint64(low))
    return keys, key_checks, postings


# --- Finding ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _first_at_least(keys, checks, low, high, key, check):  # type: ignore[no-untyped-def]
    """The first entry of low..high - 1 that is not before the value, `high` if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key or (keys[middle] == key and checks[middle] < check):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _run_end(keys, checks, start):  # type: ignore[no-untyped-def]
    """Where the run of the value of entry `start` ends: most runs are short, so it gallops."""
    n = keys.shape[0]
    key, check = keys[start], checks[start]
    low, step = start, 1
    high = low + 1
    while high < n and keys[high] == key and checks[high] == check:
        low = high
        step *= 2
        high = low + step
    high = min(high, n)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] == key and checks[middle] == check:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _find(keys, checks, buckets, shift, wanted, wanted_checks, starts, lengths):  # type: ignore[no-untyped-def]
    n = keys.shape[0]
    for w in range(wanted.shape[0]):
        key, check = wanted[w], wanted_checks[w]
        bucket = np.int64(key >> shift)
        low = _first_at_least(keys, checks, buckets[bucket], buckets[bucket + 1], key, check)
        starts[w] = low
        lengths[w] = 0
        if low < n and keys[low] == key and checks[low] == check:
            lengths[w] = _run_end(keys, checks, low) - low


def find(keys: U64, key_checks: U64, wanted: U64, wanted_checks: U64) -> tuple[I64, I32]:
    """(starts int64[m], lengths int32[m]): the posting of each wanted value; length 0 if it has none.

    IN keys uint64[n], key_checks uint64[n]: an index; IN wanted uint64[m], wanted_checks uint64[m], in any
    order. Cost: a directory of at most m entries, then one look into it, a few neighbouring keys, and a
    gallop to the end of the posting for each wanted value.

    >>> zeros = np.zeros(3, np.uint64)
    >>> find(np.array([5, 7, 7], np.uint64), zeros, np.array([7, 6], np.uint64), zeros[:2])
    (array([1, 1]), array([2, 0], dtype=int32))
    """
    n, m = len(keys), len(wanted)
    starts, lengths = np.zeros(m, np.int64), np.zeros(m, np.int32)
    if n and m:
        bits = max(1, min(n // _BUCKET, m).bit_length())
        shift = np.uint64(64 - bits)
        bounds = np.arange(1 << bits, dtype=np.uint64) << shift
        buckets = np.append(np.searchsorted(keys, bounds), n).astype(np.int64)
        _find(
            frozen(keys),
            frozen(key_checks),
            buckets,
            shift,
            frozen(wanted),
            frozen(wanted_checks),
            starts,
            lengths,
        )
    return starts, lengths


# --- Frequent values -------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _long_runs(keys, checks, min_length, starts, lengths):  # type: ignore[no-untyped-def]
    n = keys.shape[0]
    m = 0
    done = np.int64(0)
    # A run as long as that covers a multiple of `min_length`: only those entries are looked at.
    for at in range(0, n, min_length):
        if at >= done:
            start = _first_at_least(keys, checks, done, at, keys[at], checks[at])
            done = _run_end(keys, checks, at)
            if done - start >= min_length:
                starts[m] = start
                lengths[m] = done - start
                m += 1
    return m


def long_runs(keys: U64, key_checks: U64, min_length: int) -> tuple[I64, I32]:
    """(starts int64[f], lengths int32[f]): the postings of at least `min_length` columns, in their order.

    IN keys uint64[n], key_checks uint64[n]: an index. Cost: n / min_length binary searches.

    >>> long_runs(np.array([5, 7, 7], np.uint64), np.zeros(3, np.uint64), 2)
    (array([1]), array([2], dtype=int32))
    """
    step = max(1, min_length)
    most = len(keys) // step
    starts, lengths = np.empty(most, np.int64), np.empty(most, np.int32)
    m = _long_runs(frozen(keys), frozen(key_checks), step, starts, lengths)
    return starts[:m].copy(), lengths[:m].copy()


@njit(cache=True, nogil=True)
def _bitmaps(postings, starts, lengths, maps):  # type: ignore[no-untyped-def]
    for f in range(starts.shape[0]):
        for j in range(starts[f], starts[f] + lengths[f]):
            c = postings[j]
            maps[f, c >> 6] |= np.uint64(1) << np.uint64(c & 63)


def bitmaps(postings: I32, starts: I64, lengths: I32, n_columns: int) -> U64:
    """Each posting as bits: uint64[f, ceil(n_columns / 64)].

    IN postings int32[n]; IN starts int64[f], lengths int32[f]. Cost: one step for each entry, and the map.

    >>> bitmaps(np.array([0, 2, 64], np.int32), np.array([0]), np.array([3], np.int32), 65)
    array([[5, 1]], dtype=uint64)
    """
    maps = np.zeros((len(starts), -(-n_columns // 64)), np.uint64)
    _bitmaps(frozen(postings), frozen(starts), frozen(lengths), maps)
    return maps


def warm_up() -> None:
    hashes = np.array([2, 1, 1], np.uint64)
    zeros = np.zeros(3, np.uint64)
    keys, checks, postings = sort_entries(hashes, zeros, np.array([0, 1, 0], np.int32))
    find(keys, checks, hashes, zeros)
    bitmaps(postings, *long_runs(keys, checks, 2), 2)
