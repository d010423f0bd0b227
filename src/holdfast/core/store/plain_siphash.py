"""SipHash-2-4 of one text in plain Python: for readers of a lake, who look up a value and load no kernels.

Cost: 10 us and 2 us a byte; `kernels.siphash` is the same for many.
"""

from __future__ import annotations

from holdfast.core.store.format import Key

_WORD = (1 << 64) - 1


def siphash(data: bytes, key: Key) -> Key:
    """(low, high) of the bytes.

    >>> low, high = siphash(b"", (0x0706050403020100, 0x0F0E0D0C0B0A0908))
    >>> f"{low:016x} {high:016x}"
    'e6a825ba047f81a3 930255c71472f66d'
    """
    k0, k1 = key
    v = [
        k0 ^ 0x736F6D6570736575,
        k1 ^ 0x646F72616E646F6D ^ 0xEE,
        k0 ^ 0x6C7967656E657261,
        k1 ^ 0x7465646279746573,
    ]
    tail = len(data) - len(data) % 8
    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, tail, 8)]
    for word in (*words, int.from_bytes(data[tail:], "little") | (len(data) & 0xFF) << 56):
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xEE
    _rounds(v, 4)
    low = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    _rounds(v, 4)
    return low, v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[int], n: int) -> None:
    a, b, c, d = v
    for _ in range(n):
        a, c = (a + b) & _WORD, (c + d) & _WORD
        b, d = _rotated(b, 13) ^ a, _rotated(d, 16) ^ c
        a = _rotated(a, 32)
        c, a = (c + b) & _WORD, (a + d) & _WORD
        b, d = _rotated(b, 17) ^ c, _rotated(d, 21) ^ a
        c = _rotated(c, 32)
    v[:] = a, b, c, d


def _rotated(word: int, by: int) -> int:
    return (word << by | word >> (64 - by)) & _WORD
