"""Texts that collide under xxHash64: what a stranger can write who knows the hash and its seeds.

A lane of xxHash64 takes eight bytes w into its state by `rotl(state + w * P2, 31) * P1`. Two texts of
64 bytes that differ in two words of one lane meet again if the second difference undoes the first.
"""

from __future__ import annotations

import random
import struct

import xxhash

_P1 = 11400714785074694791
_P2 = 14029467366897019727
_TO_WORD = pow(_P2, -1, 1 << 64)
_64 = 1 << 64
_PLAIN = bytes(byte for byte in range(0x20, 0x7F) if byte not in b'",')


def _text(first: int, second: int) -> bytes:
    return struct.pack("<Q", first) + b"-" * 24 + struct.pack("<Q", second) + b"-" * 24


def _plain(text: bytes) -> bool:
    return all(byte in _PLAIN for byte in text)


def _word(rng: random.Random) -> int:
    word: int = struct.unpack("<Q", bytes(rng.choices(_PLAIN, k=8)))[0]
    return word


def _absorbed(state: int, word: int) -> int:
    state = (state + word * _P2) % _64
    return ((state << 31 | state >> 33) * _P1) % _64


def colliding_texts(n: int) -> list[str]:
    """Texts of one xxHash64 (seed 0): the second word of the lane is solved for."""
    rng = random.Random(1)
    start = (_P1 + _P2) % _64
    target = (_absorbed(start, _word(rng)) + _word(rng) * _P2) % _64
    texts: list[bytes] = []
    while len(texts) < n:
        first = _word(rng)
        text = _text(first, (target - _absorbed(start, first)) * _TO_WORD % _64)
        if _plain(text):
            texts.append(text)
    assert len({xxhash.xxh64_intdigest(t, 0) for t in texts}) == 1
    return [text.decode() for text in texts]


def colliding_pair(*seeds: int) -> tuple[str, str]:
    """Two texts that collide under several seeds at once, whatever the state of the lane was before.

    The first words differ so that the state grows by 2^k, which the rotation makes 2^(k - 33) unless it
    carries; the second words make up for that.
    """
    rng = random.Random(2)
    while True:
        k = rng.randrange(52, 63)
        more = (1 << k) * _TO_WORD % _64
        less = (1 << k - 33) * _P1 * _TO_WORD % _64
        first, second = _word(rng), _word(rng)
        left, right = _text(first, second), _text((first + more) % _64, (second - less) % _64)
        if _plain(right) and all(
            xxhash.xxh64_intdigest(left, s) == xxhash.xxh64_intdigest(right, s) for s in seeds
        ):
            return left.decode(), right.decode()
