"""Pairs of rows that may violate a constraint: listed by an index, compared, or found by comparing all.

A pair that satisfies a constraint's predicates satisfies any of them. An index lists the pairs that satisfy
one or two, and they are compared on others. Where no index helps all rows are compared, and those pairs are
listed that have certain outcomes.

Values are as in `kernels.compared_pairs`: an old row's is 2 * its local code, a batch row's is
its half rank, for each group (A, B) that of the batch row's A among the values of the old column B. Operators
are `EQ` to `GE` of `holdfast.core.rows.kernels.order_index`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.evidence.kernels.compared_pairs import fold
from holdfast.core.rows.kernels.encode import frozen
from holdfast.core.rows.kernels.operators import EQ, EQUAL, GREATER, GT, LE, LT, NE, NULL

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


class Pairs(NamedTuple):
    """Pairs (batch row, old row), int64[p] each."""

    batch: I64
    old: I64


@njit(cache=True, nogil=True, inline="always")
def _holds(op, t, s):  # type: ignore[no-untyped-def]
    """Whether a batch row's value and an old row's satisfy an operator; 0 is NULL, below all others."""
    if op == EQ:
        return t == s
    if op == NE:
        return t != s
    if (t == 0) != (s == 0):
        return False
    if op == LT:
        return t < s
    if op == LE:
        return t <= s
    if op == GT:
        return t > s
    return t >= s


@njit(cache=True, nogil=True)
def _walk(codes, live, values, right, positions, starts, ends, wanted, groups, ops, within, first, out):  # type: ignore[no-untyped-def]
    """The number of pairs written to OUT out int64[limit, 2]; -1 - number if they do not all fit."""
    n = 0
    for b in range(starts.shape[0]):
        for p in range(starts[b], ends[b]):
            r = positions[p]
            if within and r >= first + b:
                break  # positions ascend: each pair of batch rows is seen once
            if not live[r]:
                continue
            for i in range(wanted.shape[0]):
                k = wanted[i]
                satisfied = True
                for j in range(groups.shape[1]):
                    g = groups[k, j]
                    if g < 0:
                        break
                    if not _holds(ops[k, j], values[g, b], 2 * codes[right[g], r]):
                        satisfied = False
                        break
                if satisfied:
                    if n == out.shape[0]:
                        return -1 - n
                    out[n, 0] = b
                    out[n, 1] = r
                    n += 1
                    break
    return n


def walked_pairs(
    codes: I32,
    live: Bool,
    values: I32,
    right: I32,
    positions: I32,
    starts: I32,
    ends: I32,
    wanted: I32,
    groups: I32,
    ops: I32,
    within: bool,
    first: int,
) -> Pairs:
    """The pairs on the posting lists of one index that satisfy one of some sets of predicates, each once.

    IN codes int32[n_columns, n], live bool[n]: the old rows; IN values int32[n_groups, n_batch]: half ranks
    of the batch; IN right int32[n_groups]: the old column of each group; IN positions int32[n]: the posting
    lists, starts, ends int32[n_batch]: the list of each batch row; IN groups, ops int32[n_sets, *]: the
    predicates of each set, padded with -1, the most selective first; IN wanted int32[*]: the sets to compare.
    `within`: batch row j is old row first + j, and is paired with the rows before it only.

    Cost: the sum of the list lengths; a random access or two for each entry.
    """
    limit = int((ends.astype(np.int64) - starts).sum())
    size = min(limit, 1 << 12)
    while True:
        out = np.empty((size, 2), dtype=np.int64)
        n = _walk(
            frozen(codes), frozen(live), frozen(values), frozen(right), frozen(positions), frozen(starts),
            frozen(ends), frozen(wanted), frozen(groups), frozen(ops), within, np.int64(first), out,
        )  # fmt: skip
        if n >= 0:
            return Pairs(out[:n, 0].copy(), out[:n, 1].copy())
        size = min(limit, 32 * size)


@njit(cache=True, nogil=True)
def _satisfied(codes, values, right, groups, ops, batch, old, out):  # type: ignore[no-untyped-def]
    for i in range(batch.shape[0]):
        satisfied = True
        for j in range(groups.shape[0]):
            g = groups[j]
            if not _holds(ops[j], values[g, batch[i]], 2 * codes[right[g], old[i]]):
                satisfied = False
                break
        out[i] = satisfied


def satisfied(codes: I32, values: I32, right: I32, groups: I32, ops: I32, batch: I64, old: I64) -> Bool:
    """Which of the pairs (batch[i], old[i]) satisfy all of some predicates: bool[p].

    IN batch, old int64[p]; IN groups, ops int32[*]: the predicates, the most selective first; the rest as of
    `walked_pairs`.
    """
    out = np.empty(len(batch), dtype=np.bool_)
    _satisfied(
        frozen(codes), frozen(values), frozen(right), frozen(groups), frozen(ops), frozen(batch),
        frozen(old), out,
    )  # fmt: skip
    return out


# --- Pairs by what comes of their comparison --------------------------------------------------------------

# A pair has one outcome in each group, as in `predicate_evidence`; 32 of them are a word.
GROUPS_OF_A_WORD = 32


@njit(cache=True, nogil=True)
def _outcome_hashes(outcomes, out):  # type: ignore[no-untyped-def]
    """OUT out uint64[k]: hashes of IN outcomes uint8[k, n_groups]; they start as 1 and are hardly ever 0."""
    for k in range(outcomes.shape[0]):
        h = np.uint64(1)
        for start in range(0, outcomes.shape[1], GROUPS_OF_A_WORD):
            word = np.uint64(0)
            for g in range(start, min(outcomes.shape[1], start + GROUPS_OF_A_WORD)):
                word |= np.uint64(outcomes[k, g]) << np.uint64(2 * (g - start))
            h = fold(h, word)
        out[k] = h if h != 0 else np.uint64(1)  # 0 is a free place in a table


@njit(cache=True, nogil=True)
def _add_outcomes(value, column, shift, ordered, word):  # type: ignore[no-untyped-def]
    """INOUT word uint64[n]: the outcome of a batch row's value against 2 * column[j], int32[n], added."""
    equal = np.uint64(EQUAL) << shift
    greater = np.uint64(GREATER) << shift
    one_null = np.uint64(NULL) << shift
    nothing = np.uint64(0)
    if not ordered:
        for j in range(word.shape[0]):
            word[j] |= equal if 2 * column[j] == value else nothing
        return
    for j in range(word.shape[0]):
        old_value = 2 * column[j]
        outcome = greater if value > old_value else (equal if value == old_value else nothing)
        word[j] |= one_null if (value == 0) != (old_value == 0) else outcome


@njit(cache=True, nogil=True)
def _with_outcomes(values, codes, right, ordered, table, bits, start, stop, out):  # type: ignore[no-untyped-def]
    """(pairs written to OUT out int64[*, 2], the batch row to go on with): stops when out may be too small.

    IN table uint64[1 << bits]: hashes wanted, each at its place or after it; 0 is free.
    """
    n, n_groups = codes.shape[1], right.shape[0]
    hashes = np.empty(n, dtype=np.uint64)
    word = np.empty(n, dtype=np.uint64)
    last = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    n_pairs = 0
    for b in range(start, stop):
        if n_pairs + n > out.shape[0]:
            return n_pairs, b
        for j in range(n):
            hashes[j] = np.uint64(1)
        for first in range(0, n_groups, GROUPS_OF_A_WORD):
            for j in range(n):
                word[j] = np.uint64(0)
            for g in range(first, min(n_groups, first + GROUPS_OF_A_WORD)):
                _add_outcomes(
                    values[g, b], codes[right[g]], np.uint64(2 * (g - first)), ordered[g] != 0, word
                )
            for j in range(n):
                hashes[j] = fold(hashes[j], word[j])
        for j in range(n):
            h = hashes[j] if hashes[j] != 0 else np.uint64(1)
            s = np.int64(h >> shift)
            while table[s] != h and table[s] != 0:
                s = (s + 1) & last
            if table[s] == h:
                out[n_pairs, 0] = b
                out[n_pairs, 1] = j
                n_pairs += 1
    return n_pairs, stop


def pairs_with_outcomes(
    values: I32, codes: I32, right: I32, ordered: I32, outcomes: NDArray[np.uint8], block: int
) -> Iterator[Pairs]:
    """The pairs (batch row, old row) that have one of some outcomes in all groups, in blocks.

    IN values int32[n_groups, b]: half ranks of the batch; IN codes int32[n_columns, n]; IN right, ordered
    int32[n_groups]; IN outcomes uint8[k, n_groups]: LESS (of an unordered group: different), EQUAL, GREATER,
    NULL. Outcomes are looked up by a hash, so another pair may slip in, hardly ever.

    Cost: b * n pairs, some 10 ns each for 15 groups.
    """
    hashes = np.empty(len(outcomes), dtype=np.uint64)
    _outcome_hashes(frozen(outcomes), hashes)
    bits = max(10, 3 + len(hashes).bit_length())
    table = np.zeros(1 << bits, dtype=np.uint64)
    for h in np.unique(hashes).tolist():
        s = h >> (64 - bits)
        while table[s]:
            s = (s + 1) & (len(table) - 1)
        table[s] = h
    start, stop = 0, values.shape[1]
    out = np.empty((max(block, codes.shape[1]), 2), dtype=np.int64)
    while start < stop:
        n, start = _with_outcomes(
            frozen(values), frozen(codes), frozen(right), frozen(ordered), table, bits, start, stop, out
        )
        yield Pairs(out[:n, 0].copy(), out[:n, 1].copy())


def warm_up() -> None:
    codes = np.array([[1, 1, 2]], dtype=np.int32)
    row = np.zeros(3, dtype=np.int32)
    walked_pairs(
        codes, np.ones(3, np.bool_), 2 * codes, row[:1], row, row, row + 3, row[:1], row[None, :1],
        row[None, :1], True, 0,
    )  # fmt: skip
    at = np.zeros(1, dtype=np.int64)
    satisfied(codes, 2 * codes, row[:1], row[:1], row[:1], at, at)
    ordered = np.ones(1, dtype=np.int32)
    list(pairs_with_outcomes(2 * codes, codes, row[:1], ordered, np.zeros((1, 1), np.uint8), 4))
