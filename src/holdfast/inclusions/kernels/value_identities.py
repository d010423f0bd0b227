"""Identities of values: 96 bits by which values of different columns, tables and types are compared.

An identity is a *key* (uint64, uniformly distributed) and a *check* (uint32). Two values of one domain
are equal iff their identities are; values of different domains never share one. The key is `mix` of a
64-bit word, a bijection, so the word can be had back; the check says what the word means:

| check | the word |
|---|---|
| `NUMBER + s` | m of the number m / 10^s: 64 bits signed, s as small as can be |
| `BIG` | an integer from 2^63 to 2^64 - 1 |
| `FLOAT` | the bits of a float that is none of these: one NaN, the infinities, large or with many digits |
| `BOOL`, `DATE` | 0 or 1; days since 1970 |
| `TIME + s`, `TIMESTAMP + s`, `INSTANT + s` | m of a point in time m / 10^s seconds, s as small as can be |
| `OVERSIZE` + 30 bits | 64 bits of the hash of a decimal that is none of these, and 30 further ones |
| `TEXT`, `BINARY` + 30 bits | 64 bits of the hash of the bytes, and 30 further ones |

So identities of exact types are exact, and those of text, of binary and of oversized decimals are hashes of
94 bits: SipHash with the workspace's key, or two xxHash64 in a workspace that has none.

**Floats.** A float without a fraction is the integer that it is. One with a fraction is the decimal of at
most 15 digits that reads as this float, if there is one (with up to `MAX_SCALE` digits behind the point).
There is never more than one: of decimals with 15 digits no two read as the same float. So it is found at
the largest scale at which it has at most 15 digits, and loses its zeros there as any other number does.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import OTHER_SEED, float_codes, floats_of_codes, frozen, mix, xxh64
from holdfast.core.rows.kernels.siphash import siphash

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

# Up to 8 bits below each tag are for a scale. The two top bits are for hashes.
NUMBER, BIG, FLOAT, BOOL, DATE, TIME, TIMESTAMP, INSTANT = range(0x100, 0x900, 0x100)
SCALES = 0xFF
OVERSIZE, TEXT, BINARY = 1 << 30, 2 << 30, 3 << 30
HASHED = 3 << 30
OTHER_HASH = (1 << 30) - 1
# Decimals have at most 76 digits. (Arrow lets the point stand farther left: such numbers equal no float.)
MAX_SCALE = 76

_NUMBER, _BIG, _FLOAT = np.uint32(NUMBER), np.uint32(BIG), np.uint32(FLOAT)
_OVERSIZE, _OTHER_HASH = np.uint32(OVERSIZE), np.uint64(OTHER_HASH)
_OTHER_SEED = np.uint64(OTHER_SEED)
_0, _1, _5, _10 = np.uint64(0), np.uint64(1), np.uint64(5), np.uint64(10)
_SIGN = np.uint64(1 << 63)
_FRACTION = np.uint64((1 << 52) - 1)
_HIDDEN = np.uint64(1 << 52)
_NAN = np.uint64(0x7FF8000000000000)
_WORD = np.uint64((1 << 32) - 1)
_MULTIPLIER_INVERSE = np.uint64(pow(0xD6E8FEB86659FD93, -1, 1 << 64))
_DIGITS_15 = 1e15
# Powers of ten up to 10^22 are floats; behind that they are the nearest ones.
_EXACT_POWERS = 22
_POWERS = np.array([float(10**s) for s in range(MAX_SCALE + 1)])
_TENS = np.array([10**s for s in range(19)], dtype=np.uint64)
# 5^s in words of 32 bits, the lowest first.
_FIVES = np.array([[5**s >> 32 * w & 0xFFFFFFFF for w in range(6)] for s in range(MAX_SCALE + 1)], np.uint64)


@njit(cache=True, inline="always")
def unmix(x):  # type: ignore[no-untyped-def]
    """The inverse of `mix`."""
    x ^= x >> np.uint64(32)
    x *= _MULTIPLIER_INVERSE
    x ^= x >> np.uint64(32)
    x *= _MULTIPLIER_INVERSE
    x ^= x >> np.uint64(32)
    return x


@njit(cache=True, nogil=True)
def _mixed(words, out):  # type: ignore[no-untyped-def]
    for i in range(words.shape[0]):
        out[i] = mix(words[i])


def mixed(words: U64) -> U64:
    """The keys of words. IN words uint64[n]. Cost: 2 ns each.

    >>> [f"{int(key):016x}" for key in mixed(np.array([1, 2], np.uint64))]
    ['4179b061e0c0e0d0', '1c9963305febc252']
    """
    out = np.empty(len(words), dtype=np.uint64)
    _mixed(frozen(words), out)
    return out


@njit(cache=True, nogil=True)
def _unmixed(keys, out):  # type: ignore[no-untyped-def]
    for i in range(keys.shape[0]):
        out[i] = unmix(keys[i])


def unmixed(keys: U64) -> U64:
    """The words of keys: the inverse of `mixed`. IN keys uint64[n]."""
    out = np.empty(len(keys), dtype=np.uint64)
    _unmixed(frozen(keys), out)
    return out


@njit(cache=True, inline="always")
def _stripped(u, s):  # type: ignore[no-untyped-def]
    """(u, s) of the same u / 10^s with the smallest s."""
    if u == _0:
        return u, np.int64(0)
    if s == 0 or u % _10 != _0:
        return u, s
    # At most 19 zeros, so each power of two of them goes once.
    if s >= 16 and u % np.uint64(10**16) == _0:
        u //= np.uint64(10**16)
        s -= 16
    if s >= 8 and u % np.uint64(10**8) == _0:
        u //= np.uint64(10**8)
        s -= 8
    if s >= 4 and u % np.uint64(10**4) == _0:
        u //= np.uint64(10**4)
        s -= 4
    if s >= 2 and u % np.uint64(10**2) == _0:
        u //= np.uint64(10**2)
        s -= 2
    if s >= 1 and u % _10 == _0:
        u //= _10
        s -= 1
    return u, s


@njit(cache=True, nogil=True)
def _scaled_identities(codes, scale, tag, keys, checks):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        word = codes[i] ^ _SIGN
        negative = word >= _SIGN
        u, s = _stripped(_0 - word if negative else word, scale)
        keys[i] = mix(_0 - u if negative else u)
        checks[i] = tag + np.uint32(s)


def scaled_identities(codes: U64, scale: int, tag: int) -> tuple[U64, U32]:
    """(keys, checks) of the numbers n / 10^scale, `codes` being the codes of the integers n.

    IN codes uint64[n]; scale from 0 to SCALES; tag NUMBER, DATE, TIME, TIMESTAMP or INSTANT. Nothing
    overflows, whatever n is. Cost: 2-4 ns each, 8-12 ns for those that end in zeros.
    """
    keys, checks = _empty(len(codes))
    _scaled_identities(frozen(codes), np.int64(scale), np.uint32(tag), keys, checks)
    return keys, checks


@njit(cache=True, nogil=True)
def _scaled_codes(keys, checks, scale, tag, codes, possible):  # type: ignore[no-untyped-def]
    for i in range(keys.shape[0]):
        word = unmix(keys[i])
        negative = word >= _SIGN
        u = _0 - word if negative else word
        s = np.int64(checks[i]) - np.int64(tag)
        codes[i] = _SIGN
        possible[i] = False
        if s < 0 or s > scale or (s > 0 and u % _10 == _0):
            continue
        zeros = scale - s
        if u != _0 and zeros > 0:
            if zeros > 18 or u > (_SIGN if negative else _SIGN - _1) // _TENS[zeros]:
                continue
            u *= _TENS[zeros]
        codes[i] = (_0 - u if negative else u) ^ _SIGN
        possible[i] = True


def scaled_codes(keys: U64, checks: U32, scale: int, tag: int) -> tuple[U64, Bool]:
    """(codes, possible): the inverse of `scaled_identities`.

    IN keys uint64[n]; IN checks uint32[n]. Possible is what some code has as its identity.
    """
    codes, possible = np.empty(len(keys), dtype=np.uint64), np.empty(len(keys), dtype=np.bool_)
    _scaled_codes(frozen(keys), frozen(checks), np.int64(scale), np.uint32(tag), codes, possible)
    return codes, possible


@njit(cache=True)
def _order(m, k, f, s):  # type: ignore[no-untyped-def]
    """The sign of m * 2^k - f * 5^s, exactly: both are below 2^256, f below 2^64."""
    low, high = f & _WORD, f >> np.uint64(32)
    carry, carry_high, above = _0, _0, _0
    sign = 0
    for w in range(8):
        five = _FIVES[s, w] if w < 6 else _0
        t = low * five + carry
        carry = t >> np.uint64(32)
        t = (t & _WORD) + high * above + carry_high
        carry_high = t >> np.uint64(32)
        above = five
        shift = 32 * w - k
        if shift >= 64 or shift <= -32:
            word = _0
        elif shift >= 0:
            word = (m >> np.uint64(shift)) & _WORD
        else:
            word = (m << np.uint64(-shift)) & _WORD
        if word != t & _WORD:
            sign = 1 if word > t & _WORD else -1
    return sign


@njit(cache=True)
def _reads_as(m, s, bits):  # type: ignore[no-untyped-def]
    """Whether m / 10^s reads as the positive normal float of these bits.

    It does if it lies between the middles to both neighbours. This is for s over 22, where a division of
    floats would round twice; there m, of at most 15 digits, is no multiple of 5^s, so it never is a middle.
    """
    f = (bits & _FRACTION) | _HIDDEN
    k = 1077 - np.int64(bits >> np.uint64(52)) - s  # the float is 4 f / 2^(k + s)
    below = _1 if f == _HIDDEN else _1 + _1  # floats below a power of two are closer
    f *= np.uint64(4)
    return _order(m, k, f - below, s) > 0 and _order(m, k, f + np.uint64(2), s) < 0


@njit(cache=True)
def _float_identity(x, bits):  # type: ignore[no-untyped-def]
    """(key, check) of a float and its bits."""
    a = abs(x)
    if a != a:
        return mix(_NAN), _FLOAT
    if np.floor(a) == a:
        if -9223372036854775808.0 <= x < 9223372036854775808.0:
            return mix(np.uint64(np.int64(x))), _NUMBER
        if 0.0 < x < 18446744073709551616.0:
            return mix(((bits & _FRACTION) | _HIDDEN) << np.uint64(11)), _BIG
        return mix(bits), _FLOAT
    # The largest scale at which a has at most 15 digits. It has a fraction, so its exponent is below 52, and
    # the first guess is not below 0.
    magnitude = bits & ~_SIGN
    exponent = np.int64(magnitude >> np.uint64(52)) - 1023
    s = np.int64((49 - exponent) * 0.30103)
    s = np.int64(MAX_SCALE) if s > MAX_SCALE else s
    while s > 0 and np.rint(a * _POWERS[s]) >= _DIGITS_15:
        s -= 1
    while s < MAX_SCALE and np.rint(a * _POWERS[s + 1]) < _DIGITS_15:
        s += 1
    # At most 3 roundings of 2^-53 each: less than 1/2 away from the digits, if there are any.
    digits = np.rint(a * _POWERS[s])
    if s <= _EXACT_POWERS:
        exact = digits / _POWERS[s] == a
    else:
        exact = digits > 0.0 and _reads_as(np.uint64(digits), s, magnitude)
    if not exact:
        return mix(bits), _FLOAT
    u, s = _stripped(np.uint64(digits), s)
    return mix(_0 - u if x < 0.0 else u), _NUMBER + np.uint32(s)


@njit(cache=True, nogil=True)
def _float_identities(values, bits, keys, checks):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        keys[i], checks[i] = _float_identity(values[i], bits[i])


def float_identities(codes: U64) -> tuple[U64, U32]:
    """(keys, checks) of floats by their codes.

    IN codes uint64[n]. Cost: 15-30 ns each, 80-140 ns for those below 1e-8.
    """
    values = floats_of_codes(codes)
    keys, checks = _empty(len(codes))
    _float_identities(frozen(values), frozen(values.view(np.uint64)), keys, checks)
    return keys, checks


@njit(cache=True, nogil=True)
def _float_words(keys, checks, words, possible):  # type: ignore[no-untyped-def]
    value = np.empty(1, dtype=np.float64)
    bits = value.view(np.uint64)
    for i in range(keys.shape[0]):
        key, check = keys[i], checks[i]
        word = unmix(key)
        s = np.int64(check) - np.int64(_NUMBER)
        off = 0
        if check == _FLOAT:
            bits[0] = word
        elif check == _BIG:
            value[0] = np.float64(word)
        elif 0 <= s <= MAX_SCALE:
            # Three roundings where the power is not exact: at most three floats off.
            value[0] = np.float64(np.int64(word)) / _POWERS[s]
            off = 3 if s > _EXACT_POWERS else 0
        else:
            value[0] = np.nan
        first = bits[0]
        possible[i] = False
        for step in range(-off, off + 1):
            bits[0] = first + np.uint64(step)
            near_key, near_check = _float_identity(value[0], bits[0])
            if near_key == key and near_check == check:
                possible[i] = True
                break
        words[i] = bits[0]


def codes_of_floats(keys: U64, checks: U32) -> tuple[U64, Bool]:
    """(codes, possible): the inverse of `float_identities`.

    IN keys uint64[n]; IN checks uint32[n]. Possible is what some float has as its identity.
    """
    words, possible = np.empty(len(keys), dtype=np.uint64), np.empty(len(keys), dtype=np.bool_)
    _float_words(frozen(keys), frozen(checks), words, possible)
    return float_codes(words.view(np.float64)), possible


@njit(cache=True)
def _bits_of_integer(words, negative):  # type: ignore[no-untyped-def]
    """The bits of the float that is exactly this integer of at least 2^63, or 0 if there is none."""
    top = 7
    while words[top] == _0:
        top -= 1
    length = 32 * top
    word = words[top]
    while word > _0:
        word >>= _1
        length += 1
    low = 0
    while words[low] == _0:
        low += 1
    shift = 0
    word = words[low]
    while word & _1 == _0:
        word >>= _1
        shift += 1
    odd_length = length - 32 * low - shift
    if odd_length > 53:
        return _0
    odd = words[low] >> np.uint64(shift)
    if low < 7:
        odd |= words[low + 1] << np.uint64(32 - shift)
    if low < 6 and shift > 0:
        odd |= words[low + 2] << np.uint64(64 - shift)
    f = odd << np.uint64(53 - odd_length)
    return (_SIGN if negative else _0) | (np.uint64(length + 1022) << np.uint64(52)) | (f & _FRACTION)


@njit(cache=True, nogil=True)
def _wide_identities(limbs, scale, keyed, k0, k1, keys, checks):  # type: ignore[no-untyped-def]
    """IN limbs, scale: as in `wide_identities`; keyed: whether k0, k1 are the workspace's key.

    OUT keys uint64[n], checks uint32[n]. Zeros behind the point are dropped while the number has more than
    64 bits, a division of all words by ten each; then it is a NUMBER, BIG, an exact FLOAT, or it is hashed.
    """
    width = limbs.shape[1]
    words = np.zeros(8, dtype=np.uint64)  # of 32 bits, the lowest first
    data = np.zeros(33, dtype=np.uint8)
    for i in range(limbs.shape[0]):
        negative = limbs[i, width - 1] >= _SIGN
        carry = _1
        wide = False
        for k in range(4):
            limb = limbs[i, k] if k < width else _0
            if negative and k < width:
                limb = ~limb + carry
                if limb != _0:
                    carry = _0
            wide = wide or (k > 0 and limb != _0)
            words[2 * k] = limb & _WORD
            words[2 * k + 1] = limb >> np.uint64(32)
        s = scale
        while wide and s > 0 and words[0] & _1 == _0:
            remainder = _0
            for w in range(8):
                remainder += words[w]  # 2^32 is 1 modulo 5
            if remainder % _5 != _0:
                break
            remainder = _0
            upper = _0
            for w in range(7, -1, -1):
                t = (remainder << np.uint64(32)) | words[w]
                words[w] = t // _10
                remainder = t - words[w] * _10
                if w > 1:
                    upper |= words[w]
            s -= 1
            wide = upper != _0
        u = words[0] | (words[1] << np.uint64(32))
        if not wide:
            u, s = _stripped(u, s)
            if u < _SIGN or (negative and u == _SIGN):
                keys[i] = mix(_0 - u if negative else u)
                checks[i] = _NUMBER + np.uint32(s)
                continue
            if s == 0 and not negative:
                keys[i] = mix(u)
                checks[i] = _BIG
                continue
            words[0] = u & _WORD
            words[1] = u >> np.uint64(32)
        if s == 0:
            bits = _bits_of_integer(words, negative)
            if bits != _0:
                keys[i] = mix(bits)
                checks[i] = _FLOAT
                continue
        for w in range(8):
            for b in range(4):
                data[4 * w + b] = (words[w] >> np.uint64(8 * b)) & np.uint64(255)
        data[31] |= 128 if negative else 0  # 76 digits leave the top bit free
        data[32] = s
        if keyed:
            low, high = siphash(data, 0, 33, k0, k1)
        else:
            low, high = xxh64(data, 0, 33, _0), xxh64(data, 0, 33, _OTHER_SEED)
        keys[i] = mix(low)
        checks[i] = _OVERSIZE | np.uint32(high & _OTHER_HASH)


def wide_identities(limbs: U64, scale: int, key: tuple[int, int] | None) -> tuple[U64, U32]:
    """(keys, checks) of the decimals n / 10^scale, n being integers of 128 or 256 bits.

    IN limbs uint64[n, 2] or uint64[n, 4], two's complement, the lowest first: Arrow's memory. What is no
    NUMBER, BIG or exact FLOAT is hashed as 32 bytes of magnitude with the sign on top, and s. Cost:
    10 ns each, 60 ns for those that are hashed, 15 ns for each zero that is dropped from more than 64 bits.
    """
    keys, checks = _empty(len(limbs))
    k0, k1 = key or (0, 0)
    keyed = key is not None
    _wide_identities(frozen(limbs), np.int64(scale), keyed, np.uint64(k0), np.uint64(k1), keys, checks)
    return keys, checks


def _empty(n: int) -> tuple[U64, U32]:
    return np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint32)


def warm_up() -> None:
    words = np.array([1], dtype=np.uint64)
    unmixed(mixed(words))
    scaled_codes(*scaled_identities(words, 2, NUMBER), 2, NUMBER)
    codes_of_floats(*float_identities(words))
    wide_identities(np.array([[1, 1]], dtype=np.uint64), 2, None)
