"""SipHash-2-4-128 as the paper writes it: a state of four words, two rounds a word, four at the ends."""

from __future__ import annotations

import struct


def left(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) % 2**64


def sip_round(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = (v0 + v1) % 2**64
    v1 = left(v1, 13) ^ v0
    v0 = left(v0, 32)
    v2 = (v2 + v3) % 2**64
    v3 = left(v3, 16) ^ v2
    v0 = (v0 + v3) % 2**64
    v3 = left(v3, 21) ^ v0
    v2 = (v2 + v1) % 2**64
    v1 = left(v1, 17) ^ v2
    v2 = left(v2, 32)
    return v0, v1, v2, v3


def siphash(data: bytes, key: tuple[int, int]) -> tuple[int, int]:
    k0, k1 = key
    a, b, c, d = struct.unpack(">4Q", b"somepseudorandomlygeneratedbytes")
    v0, v1, v2, v3 = k0 ^ a, k1 ^ b ^ 0xEE, k0 ^ c, k1 ^ d
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v0, v1, v2, v3 = sip_round(*sip_round(v0, v1, v2, v3 ^ word))
        v0 ^= word
    v2 ^= 0xEE
    for _ in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    low = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    for _ in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    return low, v0 ^ v1 ^ v2 ^ v3
