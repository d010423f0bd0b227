"""Codes and dictionaries in plain Python: the slow reference of core/rows/kernels/encode.py."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence

WORD = (1 << 64) - 1
SIGN = 1 << 63
NULL_IN_ROW = 0x9E3779B97F4A7C15


def int_code(value: int) -> int:
    """
    >>> int_code(-(2**63)), int_code(2**63 - 1) == WORD
    (0, True)
    """
    return value + SIGN


def float_code(value: float) -> int:
    value = float("nan") if value != value else value + 0.0
    [bits] = struct.unpack("<Q", struct.pack("<d", value))
    return bits ^ WORD if bits & SIGN else bits | SIGN


def mix(x: int) -> int:
    for _ in range(2):
        x ^= x >> 32
        x = x * 0xD6E8FEB86659FD93 & WORD
    return x ^ x >> 32


def row_hash(codes: Sequence[int | None], start: int = 0) -> int:
    """The hash of a row from the value codes of its columns; None for NULL."""
    found = start
    for code in codes:
        found = mix((found * 11400714785074694791 + (NULL_IN_ROW if code is None else code)) & WORD)
    return found


def factorize(values: Sequence[int | None]) -> tuple[list[int], list[int]]:
    dictionary = sorted({v for v in values if v is not None})
    return dictionary, [0 if v is None else dictionary.index(v) + 1 for v in values]


def postings(codes: Sequence[int], n_values: int) -> tuple[list[int], list[int]]:
    lists = [[i for i, c in enumerate(codes) if c == code] for code in range(n_values + 1)]
    offsets = [0]
    for rows in lists:
        offsets.append(offsets[-1] + len(rows))
    return offsets, [i for rows in lists for i in rows]


def translate(dictionary: Sequence[int], wanted: Sequence[int]) -> list[int]:
    def local(value: int) -> int:
        at = bisect_left(dictionary, value)
        return at + 1 if at < len(dictionary) and dictionary[at] == value else -1

    return [0, *map(local, wanted)]


def half_ranks(dictionary: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """2 * the local code of each value, or the odd number between those of its neighbours; 0 for NULL."""
    smaller = [sum(v < w for v in dictionary) for w in wanted]
    return [0, *(2 * n + (2 if w in dictionary else 1) for n, w in zip(smaller, wanted, strict=True))]
