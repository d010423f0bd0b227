"""Bloom signatures, proposers and the validator in plain Python: the slow reference of signatures.py
and lakes/kernels/value_sets.py.

A value is its (h1, h2), a column a set of values, a signature a big int. A pair is tested by looking at it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

Value = tuple[int, int]  # h1, h2

_ALL = 2**64 - 1


def mixed(x: int) -> int:
    """The finaliser of core/rows/kernels/encode.py.

    >>> mixed(0), hex(mixed(1))
    (0, '0x4179b061e0c0e0d0')
    """
    for _ in range(2):
        x ^= x >> 32
        x = x * 0xD6E8FEB86659FD93 & _ALL
    return x ^ (x >> 32)


def bits_of(value: Value, m: int, k: int, p: int) -> set[int]:
    """The bits of a value: at most k of each of the p passes of m bits.

    >>> sorted(bits_of((7, 7), 5, 1, 2))
    [2, 9]
    """
    found = set()
    for q in range(p):
        a, b = (mixed((h + q * 0x9E3779B97F4A7C15) & _ALL) for h in value)
        found |= {q * m + (((a + i * b & _ALL) >> 32) * m >> 32) for i in range(k)}
    return found


def signature(values: Iterable[Value], m: int, k: int, p: int) -> int:
    """The bits of all values.

    >>> signature([], 5, 1, 2), signature([(7, 7)], 5, 1, 2)
    (0, 516)
    """
    bits = {bit for value in values for bit in bits_of(value, m, k, p)}
    return sum(1 << bit for bit in bits)


def supersets(parts: Sequence[int], wholes: Sequence[int], allowed: Collection[int]) -> list[tuple[int, int]]:
    """(part, whole) of all pairs in which the whole is allowed and has all bits of the part.

    >>> supersets([1, 2], [3, 2], {0, 1})
    [(0, 0), (1, 0), (1, 1)]
    """
    return [(i, j) for i, a in enumerate(parts) for j, b in enumerate(wholes) if j in allowed and not a & ~b]


def subsets(wholes: Sequence[int], parts: Sequence[int], allowed: Collection[int]) -> list[tuple[int, int]]:
    """(whole, part) of all pairs in which the part is allowed and has no bit that the whole lacks.

    >>> subsets([3, 2], [1, 2], {0, 1})
    [(0, 0), (0, 1), (1, 1)]
    """
    return [(i, j) for i, b in enumerate(wholes) for j, a in enumerate(parts) if j in allowed and not a & ~b]


def valid(
    pairs: Iterable[tuple[int, int]], a: Sequence[Collection[Value]], b: Sequence[Collection[Value]]
) -> list[bool]:
    """Whether column i of a is a subset of column j of b.

    >>> valid([(0, 0), (0, 1)], [{(1, 1)}], [{(1, 1), (2, 0)}, {(1, 2)}])
    [True, False]
    """
    return [set(a[i]) <= set(b[j]) for i, j in pairs]
