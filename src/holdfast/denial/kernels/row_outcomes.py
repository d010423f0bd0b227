"""Two columns of the same row compared: how many rows have <, =, > or a NULL, in many pairs of columns.

Values are compared as *words*, signed integers that compare as the values do:

- *narrow* words are codes with the top bit flipped (`narrow_words`): they do for two columns of one type.
- *wide* words have 128 bits, and are exact for numbers of every type (`wide_words`): the word of a number v
  is 2 * v * 10^18 or, if that is no integer, the odd one between its neighbours. Integers and decimals with
  up to 18 digits behind the point have even words, so a float that is none of them equals none of them, and
  stands in its place among them. What is beyond all 64-bit integers has the word of an infinity, and NaN a
  greater one. (Two floats are compared by their codes: those keep apart what wide words do not.)

Rows are taken in blocks that fit a cache: each column's words are gathered once, then every pair is one loop
without branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen
from holdfast.core.rows.kernels.operators import EQUAL, GREATER, LESS, NULL

U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Digits behind the point that wide words keep.
DIGITS = 18

Numbers = Literal["signed", "unsigned", "float"]  # what codes stand for

# Values of a block: those of 16 columns are 512 KB of words.
_BLOCK, _SMALLEST_BLOCK = 1 << 16, 256
_0, _1 = np.uint64(0), np.uint64(1)
_SIGN = np.uint64(1 << 63)
_LOW = np.uint64((1 << 32) - 1)
_FRACTION = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)
_POWER = np.uint64(10**DIGITS)
# The upper half of the word of an infinity: numbers of 64 bits stay below 2^64 * 10^18 * 2 < 2^125.
_INFINITE = np.uint64(1 << 62)


class Words(NamedTuple):
    """The words of some values, int64[n]; of wide ones the upper halves, and the lower, top bit flipped."""

    high: I64
    low: I64 | None = None


def narrow_words(codes: U64) -> Words:
    """The words of codes that compare as the values do. IN codes uint64[n]."""
    return Words((np.ascontiguousarray(codes) ^ _SIGN).view(np.int64))


@njit(cache=True, inline="always")
def _product(a, b):  # type: ignore[no-untyped-def]
    """(high, low) of a * b."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> np.uint64(32), b & _LOW, b >> np.uint64(32)
    lowest = a_low * b_low
    middle = a_high * b_low + (lowest >> np.uint64(32))
    other = a_low * b_high + (middle & _LOW)
    high = a_high * b_high + (middle >> np.uint64(32)) + (other >> np.uint64(32))
    return high, (other << np.uint64(32)) | (lowest & _LOW)


@njit(cache=True, inline="always")
def _store(negative, high, low, i, out_high, out_low):  # type: ignore[no-untyped-def]
    """The number of this size and sign as two's complement."""
    if negative:
        high, low = ~high + (_1 if low == _0 else _0), _0 - low
    out_high[i] = np.int64(high)
    out_low[i] = np.int64(low ^ _SIGN)


@njit(cache=True, nogil=True)
def _integer_words(codes, signed, factor, out_high, out_low):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        word = codes[i] ^ _SIGN if signed else codes[i]
        negative = signed and word >= _SIGN
        high, low = _product(_0 - word if negative else word, factor)
        _store(negative, (high << _1) | (low >> np.uint64(63)), low << _1, i, out_high, out_low)


@njit(cache=True, nogil=True)
def _float_words(codes, out_high, out_low):  # type: ignore[no-untyped-def]
    """The wide words of floats. IN codes uint64[n]; OUT out_high, out_low int64[n]."""
    for i in range(codes.shape[0]):
        negative = codes[i] & _SIGN == _0
        bits = ~codes[i] if negative else codes[i] ^ _SIGN
        bits &= ~_SIGN
        exponent = np.int64(bits >> np.uint64(52))
        fraction = bits & _FRACTION
        if exponent == 2047:
            _store(negative, _INFINITE + (_1 if fraction != _0 else _0), _0, i, out_high, out_low)
            continue
        # The number is fraction * 2^shift / 2; its word is fraction * 10^18 * 2^shift without what is behind
        # the point, and the last bit set if something is.
        if exponent > 0:
            fraction |= _HIDDEN
            shift = exponent - 1074
        else:
            shift = np.int64(-1073)
        if shift > 12:  # at least 2^64: a normal float has 53 digits
            _store(negative, _INFINITE, _0, i, out_high, out_low)
            continue
        high, low = _product(fraction, _POWER)
        if shift >= 0:
            if shift > 0:
                high = (high << np.uint64(shift)) | (low >> np.uint64(64 - shift))
                low <<= np.uint64(shift)
        else:
            cut = np.uint64(-shift)
            if shift <= -128:
                rest = high | low
                high, low = _0, _0
            elif shift < -64:
                rest = low | (high << (np.uint64(128) - cut))
                high, low = _0, high >> (cut - np.uint64(64))
            elif shift == -64:
                rest = low
                high, low = _0, high
            else:
                rest = low << (np.uint64(64) - cut)
                low = (low >> cut) | (high << (np.uint64(64) - cut))
                high >>= cut
            if rest != _0:
                low |= _1
        _store(negative, high, low, i, out_high, out_low)


def wide_words(codes: U64, numbers: Numbers, scale: int) -> Words:
    """The words of numbers of any type by their codes: v / 10^scale of integers v, or floats.

    IN codes uint64[n]; `scale` from 0 to DIGITS, 0 for floats. Law: the words of two numbers, at least one of
    them no float, compare as the numbers do; NaN is the greatest, -0.0 equals 0.0. Cost: 2-4 ns each.

    >>> words = wide_words(np.array([(1 << 63) + 150], np.uint64), "signed", 2)
    >>> (int(words.high[0]) << 64) + (int(words.low[0]) + (1 << 63)) == 2 * 10**18 * 3 // 2
    True
    """
    if not 0 <= scale <= DIGITS:
        raise ValueError(f"{scale} digits behind the point do not fit: 0 to {DIGITS} do")
    high, low = np.empty(len(codes), dtype=np.int64), np.empty(len(codes), dtype=np.int64)
    if numbers == "float":
        _float_words(frozen(codes), high, low)
    else:
        factor = np.uint64(10 ** (DIGITS - scale))
        _integer_words(frozen(codes), numbers == "signed", factor, high, low)
    return Words(high, low)


# -- rows --------------------------------------------------------------------------------------


class Compared(NamedTuple):
    """A column as it is compared: codes int32[n_rows], 0 for NULL, and the words of the values 1, 2, ..."""

    codes: I32
    words: Words


@njit(cache=True, nogil=True)
def _gather(words, codes, out):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        c = codes[i]
        out[i] = words[c - 1] if c > 0 else 0


@njit(cache=True, nogil=True)
def _gather_filled(codes, out):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(codes.shape[0]):
        out[i] = codes[i] > 0
        n += out[i]
    return n


@njit(cache=True, nogil=True)
def _count_full(a, b):  # type: ignore[no-untyped-def]
    """(less, equal) where no row has a NULL."""
    less, equal = np.int64(0), np.int64(0)
    for i in range(a.shape[0]):
        less += a[i] < b[i]
        equal += a[i] == b[i]
    return less, equal


@njit(cache=True, nogil=True)
def _count_filled(a, b, a_filled, b_filled):  # type: ignore[no-untyped-def]
    """(less, equal, filled)."""
    less, equal, filled = np.int64(0), np.int64(0), np.int64(0)
    for i in range(a.shape[0]):
        f = np.int64(a_filled[i] & b_filled[i])
        filled += f
        less += f & np.int64(a[i] < b[i])
        equal += f & np.int64(a[i] == b[i])
    return less, equal, filled


@njit(cache=True, nogil=True)
def _count_wide(a, a_low, b, b_low, a_filled, b_filled):  # type: ignore[no-untyped-def]
    """(less, equal, filled)."""
    less, equal, filled = np.int64(0), np.int64(0), np.int64(0)
    for i in range(a.shape[0]):
        f = np.int64(a_filled[i] & b_filled[i])
        filled += f
        same = np.int64(a[i] == b[i])
        less += f & (np.int64(a[i] < b[i]) | (same & np.int64(a_low[i] < b_low[i])))
        equal += f & same & np.int64(a_low[i] == b_low[i])
    return less, equal, filled


@njit(cache=True, nogil=True)
def _count_block(highs, lows, filled, n_filled, pairs, wide, ordered, counts):  # type: ignore[no-untyped-def]
    """OUT counts int64[n_pairs, 4], added to. IN highs, lows int64[n_columns, n]; filled uint8[n_columns, n];
    n_filled int64[n_columns]; pairs int64[n_pairs, 2]; wide, ordered bool[n_pairs]."""
    n = highs.shape[1]
    for p in range(pairs.shape[0]):
        a, b = pairs[p, 0], pairs[p, 1]
        if wide[p]:
            less, equal, both = _count_wide(highs[a], lows[a], highs[b], lows[b], filled[a], filled[b])
        elif n_filled[a] == n and n_filled[b] == n:
            less, equal = _count_full(highs[a], highs[b])
            both = n
        else:
            less, equal, both = _count_filled(highs[a], highs[b], filled[a], filled[b])
        if not ordered[p]:
            less = both - equal
        counts[p, 0] += less
        counts[p, 1] += equal
        counts[p, 2] += both - less - equal
        counts[p, 3] += n - both


def count_outcomes(columns: Sequence[Compared], pairs: I64, ordered: Bool) -> I64:
    """How many rows have each outcome in each pair: int64[n_pairs, 4], at LESS, EQUAL, GREATER and NULL.

    IN pairs int64[n_pairs, 2], numbers of `columns`, both narrow or both wide; IN ordered bool[n_pairs]: of a
    pair without order everything that differs is LESS. Law: the sum over parts of the rows is that of the
    whole. Cost: a gather for each row and column, and 0.1 to 0.3 ns for each row and pair.
    """
    counts = np.zeros((len(pairs), 4), dtype=np.int64)
    n_rows = len(columns[0].codes) if columns else 0
    size = max(_SMALLEST_BLOCK, _BLOCK // max(1, len(columns)))
    size = max(1, min(size, n_rows))
    wide = np.array([columns[a].words.low is not None for a in pairs[:, 0].tolist()], dtype=np.bool_)
    highs, lows = np.zeros((len(columns), size), np.int64), np.zeros((len(columns), size), np.int64)
    filled, n_filled = np.zeros((len(columns), size), np.uint8), np.zeros(len(columns), np.int64)
    codes = [frozen(c.codes) for c in columns]
    words = [frozen(c.words.high) for c in columns]
    more = [None if c.words.low is None else frozen(c.words.low) for c in columns]
    pairs, wide, ordered = frozen(pairs), frozen(wide), frozen(ordered)
    for first in range(0, n_rows, size):
        n = min(size, n_rows - first)
        if n < size:
            highs, lows, filled = (np.zeros((len(columns), n), m.dtype) for m in (highs, lows, filled))
        for c, low in enumerate(more):
            block = codes[c][first : first + n]
            _gather(words[c], block, highs[c])
            if low is not None:
                _gather(low, block, lows[c])
            n_filled[c] = _gather_filled(block, filled[c])
        _count_block(highs, lows, filled, n_filled, pairs, wide, ordered, counts)
    return counts


def outcomes(left: Compared, right: Compared, ordered: bool) -> U8:
    """The outcome of each row in one pair: uint8[n], as `count_outcomes` counts them."""
    null = (left.codes == 0) | (right.codes == 0)
    if null.all():  # there may be no words at all
        return np.full(len(null), NULL, dtype=np.uint8)
    rows = [np.where(null, 1, side.codes) - 1 for side in (left, right)]
    a, b = left.words.high[rows[0]], right.words.high[rows[1]]
    less, equal = a < b, a == b
    if left.words.low is not None and right.words.low is not None:
        a, b = left.words.low[rows[0]], right.words.low[rows[1]]
        less, equal = less | (equal & (a < b)), equal & (a == b)
    outcome = np.full(len(null), GREATER if ordered else LESS, dtype=np.uint8)
    outcome[less] = LESS
    outcome[equal] = EQUAL
    outcome[null] = NULL
    return outcome


@njit(cache=True, nogil=True)
def _equal_rows(codes, words, other_codes, other_words, out):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(codes.shape[0]):
        a, b = codes[i], other_codes[i]
        if a > 0 and b > 0 and words[a - 1] == other_words[b - 1]:
            if n == out.shape[0]:
                break
            out[n] = i
            n += 1
    return n


def equal_rows(left: Compared, right: Compared, limit: int) -> I64:
    """The first rows, at most `limit`, that have equal values in two narrow columns: int64[n], ascending."""
    out = np.empty(limit, dtype=np.int64)
    sides = [frozen(array) for side in (left, right) for array in (side.codes, side.words.high)]
    return out[: _equal_rows(*sides, out)]


@njit(cache=True, nogil=True)
def _live_range(codes, live, n_values):  # type: ignore[no-untyped-def]
    low, high = n_values + 1, 0
    for i in range(codes.shape[0]):
        c = codes[i]
        if c > 0 and live[i]:
            low = min(low, c)
            high = max(high, c)
            if low == 1 and high == n_values:
                break
    return low, high


def live_range(codes: I32, live: Bool, n_values: int) -> tuple[int, int]:
    """(lowest, highest) local code of the rows that are live; (n_values + 1, 0) if none has a value.

    IN codes int32[n] in 0..n_values; IN live bool[n]. Ends as soon as both ends of the dictionary were seen.
    """
    low, high = _live_range(frozen(codes), frozen(live), n_values)
    return int(low), int(high)


def warm_up() -> None:
    codes = np.array([(1 << 63) - 1, 1 << 63], dtype=np.uint64)
    local = np.arange(3, dtype=np.int32)
    kinds: tuple[Numbers, ...] = ("signed", "unsigned", "float")
    columns = [Compared(local, narrow_words(codes))] * 2
    columns += [Compared(local, wide_words(codes, kind, 0)) for kind in kinds]
    pairs = np.array([[0, 1], [2, 3]])
    for rows in (local, local[1:]):  # with a NULL, and without
        count_outcomes([Compared(rows, c.words) for c in columns], pairs, np.ones(2, dtype=np.bool_))
    equal_rows(columns[0], columns[1], 2)
    live_range(local, np.ones(3, dtype=np.bool_), 2)
