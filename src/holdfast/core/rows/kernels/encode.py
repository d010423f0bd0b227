"""Values to 64-bit codes, codes to segment-local dictionaries.

A code is exact for numbers (and order-preserving as an unsigned integer), and xxHash64 for
bytes. A dictionary is the sorted distinct codes of one column of one segment; a local code is
1 + the position in it, and 0 is NULL.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_P1 = np.uint64(11400714785074694791)
_P2 = np.uint64(14029467366897019727)
_P3 = np.uint64(1609587929392839161)
_P4 = np.uint64(9650029242287828579)
_P5 = np.uint64(2870177450012600261)
_SIGN = np.uint64(1 << 63)
# What a NULL contributes to the hash of a row. A value with this code only costs a comparison.
_NULL_IN_ROW = np.uint64(0x9E3779B97F4A7C15)


def int_codes(values: NDArray[np.int64]) -> U64:
    """Codes of signed integers: the sign bit flipped, so that unsigned order is numeric order.

    >>> [int(c) >> 60 for c in int_codes(np.array([-1, 0, 1]))]
    [7, 8, 8]
    """
    return np.ascontiguousarray(values, dtype=np.int64).view(np.uint64) ^ _SIGN


def ints_of_codes(codes: U64) -> NDArray[np.int64]:
    """The inverse of `int_codes`."""
    return (codes ^ _SIGN).view(np.int64)


def float_codes(values: NDArray[np.float64]) -> U64:
    """Codes of floats in numeric order; -0.0 equals 0.0, every NaN equals every NaN and comes last."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN like any other
        canonical = np.where(np.isnan(values), np.nan, values + 0.0)  # -0.0 + 0.0 is 0.0
    bits = np.ascontiguousarray(canonical, dtype=np.float64).view(np.uint64)
    negative = (bits & _SIGN) != 0
    return np.where(negative, ~bits, bits | _SIGN)


def floats_of_codes(codes: U64) -> NDArray[np.float64]:
    """The inverse of `float_codes`."""
    negative = (codes & _SIGN) == 0
    return np.where(negative, ~codes, codes ^ _SIGN).view(np.float64)


@njit(cache=True, inline="always")
def _rotate(x, r):  # type: ignore[no-untyped-def]
    return (x << np.uint64(r)) | (x >> np.uint64(64 - r))


@njit(cache=True, inline="always")
def word_at(data, i):  # type: ignore[no-untyped-def]
    w = np.uint64(0)
    for k in range(8):
        w |= np.uint64(data[i + k]) << np.uint64(8 * k)
    return w


@njit(cache=True, nogil=True)
def xxh64(data, start, end, seed):  # type: ignore[no-untyped-def]
    """xxHash64 of the bytes data[start:end]: IN data uint8[*], seed uint64. The result is a uint64."""
    n = end - start
    i = start
    if n >= 32:
        v1 = seed + _P1 + _P2
        v2 = seed + _P2
        v3 = seed
        v4 = seed - _P1
        while i + 32 <= end:
            v1 = _rotate(v1 + word_at(data, i) * _P2, 31) * _P1
            v2 = _rotate(v2 + word_at(data, i + 8) * _P2, 31) * _P1
            v3 = _rotate(v3 + word_at(data, i + 16) * _P2, 31) * _P1
            v4 = _rotate(v4 + word_at(data, i + 24) * _P2, 31) * _P1
            i += 32
        h = _rotate(v1, 1) + _rotate(v2, 7) + _rotate(v3, 12) + _rotate(v4, 18)
        h = (h ^ (_rotate(v1 * _P2, 31) * _P1)) * _P1 + _P4
        h = (h ^ (_rotate(v2 * _P2, 31) * _P1)) * _P1 + _P4
        h = (h ^ (_rotate(v3 * _P2, 31) * _P1)) * _P1 + _P4
        h = (h ^ (_rotate(v4 * _P2, 31) * _P1)) * _P1 + _P4
    else:
        h = seed + _P5
    h += np.uint64(n)
    while i + 8 <= end:
        h ^= _rotate(word_at(data, i) * _P2, 31) * _P1
        h = _rotate(h, 27) * _P1 + _P4
        i += 8
    if i + 4 <= end:
        w = np.uint64(0)
        for k in range(4):
            w |= np.uint64(data[i + k]) << np.uint64(8 * k)
        h ^= w * _P1
        h = _rotate(h, 23) * _P2 + _P3
        i += 4
    while i < end:
        h ^= np.uint64(data[i]) * _P5
        h = _rotate(h, 11) * _P1
        i += 1
    h ^= h >> np.uint64(33)
    h *= _P2
    h ^= h >> np.uint64(29)
    h *= _P3
    h ^= h >> np.uint64(32)
    return h


@njit(cache=True, nogil=True)
def _bytes_codes(offsets, data, seed, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        out[i] = xxh64(data, offsets[i], offsets[i + 1], seed)


# The seed of a hash beside that of codes, which have seed 0.
OTHER_SEED = 0x9E3779B97F4A7C15


def bytes_codes(offsets: I64, data: NDArray[np.uint8], seed: int = 0) -> U64:
    """xxHash64 of each byte string data[offsets[i]:offsets[i + 1]]; codes of values have seed 0.

    IN offsets int64[n + 1]; IN data uint8[*]. Cost: about 1 ns a byte.
    """
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    _bytes_codes(frozen(offsets), frozen(data), np.uint64(seed), out)
    return out


@njit(cache=True, nogil=True)
def _bytes_differ(offsets, data, at, other_offsets, other_data, other_at, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        low, high = offsets[at[i]], offsets[at[i] + 1]
        other_low = other_offsets[other_at[i]]
        out[i] = high - low != other_offsets[other_at[i] + 1] - other_low
        if not out[i]:
            for k in range(high - low):
                if data[low + k] != other_data[other_low + k]:
                    out[i] = True
                    break


def bytes_differ(
    offsets: I64,
    data: NDArray[np.uint8],
    at: I64,
    other_offsets: I64,
    other_data: NDArray[np.uint8],
    other_at: I64,
) -> Bool:
    """Where byte string at[i] of one list is not byte string other_at[i] of another: bool[n].

    IN offsets, other_offsets int64[*]; IN data, other_data uint8[*]; IN at, other_at int64[n].
    """
    out = np.empty(len(at), dtype=np.bool_)
    _bytes_differ(
        frozen(offsets), frozen(data), frozen(at), frozen(other_offsets), frozen(other_data),
        frozen(other_at), out,
    )  # fmt: skip
    return out


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only contiguous view: memory maps are read-only, and Numba compiles for that once.

    A batch of one row asks for some 800 of them, and most are as they should be.
    """
    flags = array.flags
    if flags.c_contiguous and not flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


@njit(cache=True, inline="always")
def mix(x):  # type: ignore[no-untyped-def]
    """A 64-bit finaliser: every bit of the code moves every bit of the result."""
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    x ^= x >> np.uint64(32)
    return x


@njit(cache=True, nogil=True)
def _factorize(values, valid, has_nulls, seed, codes):  # type: ignore[no-untyped-def]
    """The distinct values, uint64[*], in the order of their first occurrence: a hash table that grows.

    IN values uint64[n]; IN valid bool[n], read if there are NULLs; OUT codes int32[n]: 1 + the place of each
    value among the distinct ones, 0 for NULL.
    """
    capacity = 1024
    slots = np.full(capacity, -1, dtype=np.int32)
    uniques = np.empty(512, dtype=np.uint64)
    n = 0
    for i in range(values.shape[0]):
        if has_nulls and not valid[i]:
            codes[i] = 0
            continue
        v = values[i]
        s = np.int64(mix(v ^ seed) & np.uint64(capacity - 1))
        while True:
            u = slots[s]
            if u < 0:
                if n == uniques.shape[0]:
                    bigger = np.empty(2 * n, dtype=np.uint64)
                    bigger[:n] = uniques
                    uniques = bigger
                    capacity *= 2
                    slots = np.full(capacity, -1, dtype=np.int32)
                    for k in range(n):
                        t = np.int64(mix(uniques[k] ^ seed) & np.uint64(capacity - 1))
                        while slots[t] >= 0:
                            t = (t + 1) & (capacity - 1)
                        slots[t] = k
                    s = np.int64(mix(v ^ seed) & np.uint64(capacity - 1))
                    while slots[s] >= 0:
                        s = (s + 1) & (capacity - 1)
                slots[s] = n
                uniques[n] = v
                codes[i] = n + 1
                n += 1
                break
            if uniques[u] == v:
                codes[i] = u + 1
                break
            s = (s + 1) & (capacity - 1)
    return uniques[:n].copy()


@njit(cache=True, nogil=True)
def _relabel(codes, rank):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        codes[i] = rank[codes[i]]


_NO_NULLS = np.ones(0, dtype=np.bool_)
# Of the hash table behind `factorize`, drawn anew in each process: with a fixed one a stranger could write
# values that all fall into one slot. The result does not depend on it.
_SEED = np.uint64(secrets.randbits(64))


def factorize(values: U64, valid: Bool | None) -> tuple[U64, I32]:
    """(dictionary, codes): sorted distinct values, and for each row 1 + its position in them, 0 for NULL.

    IN values uint64[n]; IN valid bool[n] or None when nothing is NULL. Cost: one hash probe a
    row, and a sort of the distinct values only.
    """
    codes = np.empty(len(values), dtype=np.int32)
    has_nulls = valid is not None
    validity = frozen(valid if valid is not None else _NO_NULLS)
    uniques = _factorize(frozen(values), validity, has_nulls, _SEED, codes)
    order = np.argsort(uniques)
    rank = np.empty(len(uniques) + 1, dtype=np.int32)
    rank[0] = 0
    rank[order + 1] = np.arange(1, len(uniques) + 1, dtype=np.int32)
    _relabel(codes, rank)
    return uniques[order], codes


@njit(cache=True, nogil=True)
def _mix_column(hashes, dictionary, codes, null):  # type: ignore[no-untyped-def]
    for i in range(hashes.shape[0]):
        c = codes[i]
        v = null if c == 0 else dictionary[c - 1]
        hashes[i] = mix(hashes[i] * _P1 + v)


def mix_column(hashes: U64, dictionary: U64, codes: I32) -> None:
    """Fold one column into the hashes of rows: equal rows get equal hashes, in any segment.

    OUT hashes uint64[n], updated; IN dictionary uint64[k]; IN codes int32[n]. Two NULLs are equal
    here whatever the NULL rule of the table: a row is identified by its content.
    """
    _mix_column(hashes, frozen(dictionary), frozen(codes), _NULL_IN_ROW)


@njit(cache=True, nogil=True)
def _postings(codes, offsets, positions):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        offsets[codes[i] + 1] += 1
    for c in range(1, offsets.shape[0]):
        offsets[c] += offsets[c - 1]
    cursor = offsets[:-1].copy()
    for i in range(codes.shape[0]):
        c = codes[i]
        positions[cursor[c]] = i
        cursor[c] += 1


def postings(codes: I32, n_values: int) -> tuple[I32, I32]:
    """(offsets, positions): the rows of each local code, ascending.

    IN codes int32[n] in 0..n_values. Rows of code c are positions[offsets[c]:offsets[c + 1]];
    offsets has n_values + 2 entries. Cost: a counting sort.
    """
    offsets = np.zeros(n_values + 2, dtype=np.int32)
    positions = np.empty(len(codes), dtype=np.int32)
    _postings(frozen(codes), offsets, positions)
    return offsets, positions


@njit(cache=True, nogil=True)
def _gallop(dictionary, low, v):  # type: ignore[no-untyped-def]
    """The first place from `low` on of a sorted dictionary whose value is at least v, or its length."""
    n = dictionary.shape[0]
    step = 1
    high = low
    while high < n and dictionary[high] < v:
        low = high + 1
        high += step
        step *= 2
    if high > n:
        high = n
    while low < high:
        middle = (low + high) >> 1
        if dictionary[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _translate(dictionary, wanted, out):  # type: ignore[no-untyped-def]
    n = dictionary.shape[0]
    low = 0
    for j in range(wanted.shape[0]):
        low = _gallop(dictionary, low, wanted[j])
        out[j + 1] = low + 1 if low < n and dictionary[low] == wanted[j] else -1


def translate(dictionary: U64, wanted: U64) -> I32:
    """For each local code of `wanted` the local code in `dictionary`, -1 where it has none.

    IN dictionary uint64[n] sorted; IN wanted uint64[m] sorted; the result is int32[m + 1], and
    its entry 0 is 0: NULL stays NULL. Cost: m log(n / m) comparisons.
    """
    out = np.empty(len(wanted) + 1, dtype=np.int32)
    out[0] = 0
    _translate(frozen(dictionary), frozen(wanted), out)
    return out


@njit(cache=True, nogil=True)
def _half_ranks(dictionary, wanted, out):  # type: ignore[no-untyped-def]
    n = dictionary.shape[0]
    low = 0
    for j in range(wanted.shape[0]):
        low = _gallop(dictionary, low, wanted[j])
        out[j + 1] = 2 * low + (2 if low < n and dictionary[low] == wanted[j] else 1)


def half_ranks(dictionary: U64, wanted: U64) -> I32:
    """For each local code of `wanted` its *half rank* in `dictionary`: as `translate`, but what is absent has
    a place too.

    IN dictionary uint64[n] sorted, n below 2 ** 30; IN wanted uint64[m] sorted; the result is int32[m + 1]:
    2 * the local code in `dictionary`, the odd number between its neighbours if it has none, and entry 0
    is 0 for NULL. Law: half ranks compare with 2 * local codes as the values do. Cost: m log(n / m)
    comparisons.

    >>> half_ranks(np.array([5, 7], dtype=np.uint64), np.array([1, 5, 6, 9], dtype=np.uint64)).tolist()
    [0, 1, 2, 3, 5]
    """
    out = np.empty(len(wanted) + 1, dtype=np.int32)
    out[0] = 0
    _half_ranks(frozen(dictionary), frozen(wanted), out)
    return out


def warm_up() -> None:
    values = np.array([3, 1, 3], dtype=np.uint64)
    dictionary, codes = factorize(values, None)
    factorize(values, np.array([True, False, True]))
    mix_column(np.zeros(3, dtype=np.uint64), dictionary, codes)
    postings(codes, len(dictionary))
    translate(dictionary, dictionary)
    half_ranks(dictionary, dictionary)
    texts = np.array([0, 2], dtype=np.int64), np.zeros(2, dtype=np.uint8)
    bytes_codes(*texts)
    first = np.zeros(1, dtype=np.int64)
    bytes_differ(*texts, first, *texts, first)
