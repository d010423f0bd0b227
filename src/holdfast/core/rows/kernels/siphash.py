"""SipHash-2-4 with 128 bits: a hash of bytes that nobody can steer who does not know the key.

Texts come from strangers. Of a hash with fixed seeds (xxHash, say) different texts with one hash can be
computed on paper. Of SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) nobody knows
how to, as long as the key is secret. A workspace draws its key when it is made.

Cost, one core: 18 ns a text and 0.75 ns a byte for all 128 bits; xxHash64 takes 8 ns and 0.7 ns for 64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, word_at

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_0 = np.uint64(0)
_I0 = np.uint64(0x736F6D6570736575)
_I1 = np.uint64(0x646F72616E646F6D)
_I2 = np.uint64(0x6C7967656E657261)
_I3 = np.uint64(0x7465646279746573)
_EE, _DD = np.uint64(0xEE), np.uint64(0xDD)
_13, _16, _17, _21, _32 = np.uint64(13), np.uint64(16), np.uint64(17), np.uint64(21), np.uint64(32)
_51, _48, _47, _43 = np.uint64(51), np.uint64(48), np.uint64(47), np.uint64(43)


@njit(cache=True, inline="always")
def _round(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    v0 += v1
    v2 += v3
    v1 = (v1 << _13) | (v1 >> _51)
    v3 = (v3 << _16) | (v3 >> _48)
    v1 ^= v0
    v3 ^= v2
    v0 = (v0 << _32) | (v0 >> _32)
    v2 += v1
    v0 += v3
    v1 = (v1 << _17) | (v1 >> _47)
    v3 = (v3 << _21) | (v3 >> _43)
    v1 ^= v2
    v3 ^= v0
    v2 = (v2 << _32) | (v2 >> _32)
    return v0, v1, v2, v3


@njit(cache=True, nogil=True)
def siphash(data, start, end, k0, k1):  # type: ignore[no-untyped-def]
    """(low, high) of the bytes data[start:end]."""
    v0, v1, v2, v3 = k0 ^ _I0, k1 ^ _I1 ^ _EE, k0 ^ _I2, k1 ^ _I3
    i = start
    while i + 8 <= end:
        m = word_at(data, i)
        v3 ^= m
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
        v0 ^= m
        i += 8
    m = np.uint64(end - start) << np.uint64(56)
    shift = _0
    while i < end:
        m |= np.uint64(data[i]) << shift
        shift += np.uint64(8)
        i += 1
    v3 ^= m
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    v0 ^= m
    v2 ^= _EE
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= _DD
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3


@njit(cache=True, nogil=True)
def _siphashes(offsets, data, k0, k1, low, high):  # type: ignore[no-untyped-def]
    for i in range(low.shape[0]):
        low[i], high[i] = siphash(data, offsets[i], offsets[i + 1], k0, k1)


def siphashes(offsets: I64, data: NDArray[np.uint8], key: tuple[int, int]) -> tuple[U64, U64]:
    """(low, high): the 128 bits of the hash of each byte string data[offsets[i]:offsets[i + 1]].

    IN offsets int64[n + 1]; IN data uint8[*]; key: two words of 64 bits.
    """
    low, high = np.empty(len(offsets) - 1, np.uint64), np.empty(len(offsets) - 1, np.uint64)
    _siphashes(frozen(offsets), frozen(data), np.uint64(key[0]), np.uint64(key[1]), low, high)
    return low, high


def warm_up() -> None:
    siphashes(np.array([0, 2], dtype=np.int64), np.zeros(2, dtype=np.uint8), (0, 0))
