"""Sorted runs of (value, column, count): find values in them, consolidate them, merge them.

A value is known by its identity, a 64-bit `key` and a 32-bit `check`. An *entry* says that a value
occurs `count` times in a column; in a delta counts may be negative. Entries are sorted by (key,
check, column), and no two agree on all three. Keys are spread evenly over 64 bits, so a directory of
their leading bits finds a value with a few reads, however long the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entries:
    """Aligned arrays, one element per entry."""

    keys: U64
    checks: U32
    columns: U32
    counts: I64

    def __len__(self) -> int:
        return len(self.keys)

    def slice(self, start: int, end: int) -> Entries:
        return Entries(*(a[start:end] for a in self.arrays()))

    def arrays(self) -> tuple[Any, ...]:
        return self.keys, self.checks, self.columns, self.counts


def no_entries() -> Entries:
    return _room_for(0)


def _room_for(n: int) -> Entries:
    """Entries for a kernel to write."""
    return Entries(
        np.empty(n, np.uint64), np.empty(n, np.uint32), np.empty(n, np.uint32), np.empty(n, np.int64)
    )


def joined(parts: Sequence[Entries]) -> Entries:
    """The entries of all parts behind each other."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return no_entries()
    return Entries(*(np.concatenate(arrays) for arrays in zip(*(p.arrays() for p in parts), strict=True)))


@njit(cache=True, nogil=True)
def _consolidate(keys, checks, columns, counts, order, out_keys, out_checks, out_columns, out_counts):  # type: ignore[no-untyped-def]
    """How many entries there are once those of one value and column are summed up.

    IN keys, checks, columns, counts: entries; IN/OUT order int64[n]: their positions by key, then by all
    three. OUT out_keys, out_checks, out_columns, out_counts: the sums that are not zero, in that order.
    """
    n = keys.shape[0]
    m = 0
    i = 0
    while i < n:
        key = keys[order[i]]
        j = i + 1
        while j < n and keys[order[j]] == key:
            j += 1
        # Insertion sort of the few entries of one key by (check, column).
        for a in range(i + 1, j):
            moving = order[a]
            b = a - 1
            while b >= i:
                other = order[b]
                if checks[other] < checks[moving] or (
                    checks[other] == checks[moving] and columns[other] <= columns[moving]
                ):
                    break
                order[b + 1] = other
                b -= 1
            order[b + 1] = moving
        a = i
        while a < j:
            first = order[a]
            total = counts[first]
            b = a + 1
            while b < j and checks[order[b]] == checks[first] and columns[order[b]] == columns[first]:
                total += counts[order[b]]
                b += 1
            if total != 0:
                out_keys[m] = key
                out_checks[m] = checks[first]
                out_columns[m] = columns[first]
                out_counts[m] = total
                m += 1
            a = b
        i = j
    return m


def consolidate(entries: Entries) -> Entries:
    """Entries in order, those of one value and column summed, those that sum to nothing gone.

    Cost: a sort of the keys.
    """
    order = np.argsort(entries.keys).astype(np.int64)
    out = _room_for(len(entries))
    m = _consolidate(*map(frozen, entries.arrays()), order, *out.arrays())
    return out.slice(0, m)


@njit(cache=True, nogil=True)
def _merge(ak, ac, al, an, bk, bc, bl, bn, ok, oc, ol, on):  # type: ignore[no-untyped-def]
    i, j, m = 0, 0, 0
    na, nb = ak.shape[0], bk.shape[0]
    while i < na or j < nb:
        if j == nb:
            side = -1
        elif i == na:
            side = 1
        elif ak[i] != bk[j]:
            side = -1 if ak[i] < bk[j] else 1
        elif ac[i] != bc[j]:
            side = -1 if ac[i] < bc[j] else 1
        elif al[i] != bl[j]:
            side = -1 if al[i] < bl[j] else 1
        else:
            side = 0
        if side <= 0:
            ok[m], oc[m], ol[m], on[m] = ak[i], ac[i], al[i], an[i]
            i += 1
            if side == 0:
                on[m] += bn[j]
                j += 1
        else:
            ok[m], oc[m], ol[m], on[m] = bk[j], bc[j], bl[j], bn[j]
            j += 1
        if on[m] != 0:
            m += 1
    return m


def merge(runs: Sequence[Entries]) -> Entries:
    """One run with the sums of several. Cost: a pass over each pair of neighbours in size."""
    waiting = sorted(runs, key=len, reverse=True)
    while len(waiting) > 1:
        a, b = waiting.pop(), waiting.pop()
        # One more than needed: a sum of zero is written before it is dropped.
        out = _room_for(len(a) + len(b) + 1)
        m = _merge(*map(frozen, (*a.arrays(), *b.arrays())), *out.arrays())
        waiting.append(out.slice(0, m))
        waiting.sort(key=len, reverse=True)
    return waiting[0] if waiting else no_entries()


# Entries that a bucket of a directory has on average: two cache lines of keys.
BUCKET = 16


def directory(keys: U64, first: int, bits: int) -> tuple[NDArray[np.uint32], int]:
    """(starts, shift): where the buckets of a run start, which divide its keys by their next bits.

    IN keys uint64[n], sorted, all of them with the leading `bits` bits of `first`, the rest of which are 0.
    A key's bucket is `(key - first) >> shift`; bucket i is keys[starts[i]:starts[i + 1]].
    """
    n_bits = min(max(1, (len(keys) // BUCKET).bit_length() - 1), 64 - bits, 31)
    shift = 64 - bits - n_bits
    bounds = np.uint64(first) + (np.arange(1 << n_bits, dtype=np.uint64) << np.uint64(shift))
    return np.append(np.searchsorted(keys, bounds), len(keys)).astype(np.uint32), shift


@njit(cache=True, nogil=True)
def _find(keys, checks, starts, first, shift, wanted_keys, wanted_checks, out_starts, out_ends):  # type: ignore[no-untyped-def]
    n = keys.shape[0]
    reads = 0
    for w in range(wanted_keys.shape[0]):
        key, check = wanted_keys[w], wanted_checks[w]
        bucket = np.int64((key - first) >> shift)
        low, high = np.int64(starts[bucket]), np.int64(starts[bucket + 1])
        while low < high:
            middle = (low + high) >> 1
            reads += 1
            if keys[middle] < key:
                low = middle + 1
            else:
                high = middle
        while low < n and keys[low] == key and checks[low] < check:
            low += 1
        end = low
        while end < n and keys[end] == key and checks[end] == check:
            end += 1
        out_starts[w] = low
        out_ends[w] = end
    return reads


def find(
    keys: U64,
    checks: U32,
    starts: NDArray[np.uint32],
    first: int,
    shift: int,
    wanted_keys: U64,
    wanted_checks: U32,
) -> tuple[I64, I64, int]:
    """(starts, ends, reads): where the entries of each wanted value stand in a run.

    IN keys uint64[n], checks uint32[n]: a run, sorted; IN starts, first, shift: its directory; IN
    wanted_keys uint64[m], wanted_checks uint32[m], in the range of the run. starts, ends int64[m]; `reads`
    counts the keys that were read. Cost: one look into the directory and a few neighbouring keys for each
    wanted value, however long the run, since keys are spread evenly; right for any keys.
    """
    out_starts = np.empty(len(wanted_keys), dtype=np.int64)
    out_ends = np.empty(len(wanted_keys), dtype=np.int64)
    run: tuple[Any, ...] = (keys, checks, starts)
    wanted: tuple[Any, ...] = (wanted_keys, wanted_checks)
    reads = _find(
        *map(frozen, run), np.uint64(first), np.uint64(shift), *map(frozen, wanted), out_starts, out_ends
    )
    return out_starts, out_ends, int(reads)


def value_starts(entries: Entries) -> I64:
    """Where the values of a run start: int64[n_values + 1], the last one its length."""
    n = len(entries)
    if not n:
        return np.zeros(1, np.int64)
    fresh = (entries.keys[1:] != entries.keys[:-1]) | (entries.checks[1:] != entries.checks[:-1])
    return np.concatenate([[0], np.flatnonzero(fresh) + 1, [n]]).astype(np.int64)


def warm_up() -> None:
    one = Entries(
        np.array([1, 1], np.uint64), np.zeros(2, np.uint32), np.array([0, 1], np.uint32), np.ones(2, np.int64)
    )
    merge([consolidate(one), one])
    starts, shift = directory(one.keys, 0, 0)
    find(one.keys, one.checks, starts, 0, shift, one.keys[:1], one.checks[:1])
