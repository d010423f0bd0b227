"""Attribute clusters: sets of columns that share a value, what a batch does to them, and pair counts.

Clusters are a list of lists in three arrays: cluster i has the columns columns[offsets[i]:offsets[i + 1]],
ascending; sizes[i] is the number of values that occur in just these columns, and rows[...], aligned with
columns, how many rows carry them in each. All of it is additive: a change is a list of clusters with
signed sizes and rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix

U64 = NDArray[np.uint64]
U32 = NDArray[np.uint32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

WITNESSES = 4  # values kept per broken inclusion


class Clusters(NamedTuple):
    offsets: I64  # [n + 1]
    columns: U32  # [total]
    sizes: I64  # [n]
    rows: I64  # [total]


def no_clusters() -> Clusters:
    return Clusters(
        np.zeros(1, np.int64), np.empty(0, np.uint32), np.empty(0, np.int64), np.empty(0, np.int64)
    )


def joined_clusters(parts: Sequence[Clusters]) -> Clusters:
    """The clusters of all parts behind each other."""
    if not parts:
        return no_clusters()
    starts = np.cumsum([0, *(len(p.columns) for p in parts)])
    offsets = [p.offsets[:-1] + s for p, s in zip(parts, starts, strict=False)]
    return Clusters(
        np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        np.concatenate([p.columns for p in parts]),
        np.concatenate([p.sizes for p in parts]),
        np.concatenate([p.rows for p in parts]),
    )


@njit(cache=True, nogil=True)
def _tally(offsets, columns, owner, representative):  # type: ignore[no-untyped-def]
    """How many different lists of columns there are, by a table of their hashes that grows.

    IN offsets int64[n + 1], columns uint32[*]: the lists; OUT owner int64[n]: the number of each one, in the
    order of first occurrence, -1 for an empty one; OUT representative int64[n]: the first list of a number.
    """
    capacity = 1024
    slots = np.full(capacity, -1, dtype=np.int64)
    hashes = np.empty(512, dtype=np.uint64)
    n = 0
    for e in range(offsets.shape[0] - 1):
        start, end = offsets[e], offsets[e + 1]
        if start == end:
            owner[e] = -1
            continue
        h = np.uint64(end - start)
        for i in range(start, end):
            h = mix(h * np.uint64(11400714785074694791) + np.uint64(columns[i]))
        s = np.int64(h & np.uint64(capacity - 1))
        while True:
            c = slots[s]
            if c < 0:
                break
            if hashes[c] == h:
                r = representative[c]
                if offsets[r + 1] - offsets[r] == end - start:
                    same = True
                    for i in range(end - start):
                        if columns[offsets[r] + i] != columns[start + i]:
                            same = False
                            break
                    if same:
                        break
            s = (s + 1) & (capacity - 1)
        if slots[s] >= 0:
            owner[e] = slots[s]
            continue
        if n == hashes.shape[0]:
            bigger = np.empty(2 * n, dtype=np.uint64)
            bigger[:n] = hashes
            hashes = bigger
            capacity *= 2
            slots = np.full(capacity, -1, dtype=np.int64)
            for k in range(n):
                t = np.int64(hashes[k] & np.uint64(capacity - 1))
                while slots[t] >= 0:
                    t = (t + 1) & (capacity - 1)
                slots[t] = k
            s = np.int64(h & np.uint64(capacity - 1))
            while slots[s] >= 0:
                s = (s + 1) & (capacity - 1)
        slots[s] = n
        hashes[n] = h
        representative[n] = e
        owner[e] = n
        n += 1
    return n


@njit(cache=True, nogil=True)
def _sum_up(offsets, sizes, rows, owner, out_offsets, out_sizes, out_rows):  # type: ignore[no-untyped-def]
    for e in range(owner.shape[0]):
        c = owner[e]
        if c < 0:
            continue
        out_sizes[c] += sizes[e]
        to = out_offsets[c]
        for i in range(offsets[e + 1] - offsets[e]):
            out_rows[to + i] += rows[offsets[e] + i]


@njit(cache=True, nogil=True)
def _copy_lists(offsets, columns, chosen, out_offsets, out_columns):  # type: ignore[no-untyped-def]
    at = 0
    for i in range(chosen.shape[0]):
        out_offsets[i] = at
        for k in range(offsets[chosen[i]], offsets[chosen[i] + 1]):
            out_columns[at] = columns[k]
            at += 1
    out_offsets[chosen.shape[0]] = at


def _lists(clusters: Clusters, chosen: I64) -> tuple[I64, U32]:
    lengths = clusters.offsets[chosen + 1] - clusters.offsets[chosen]
    offsets = np.empty(len(chosen) + 1, dtype=np.int64)
    columns = np.empty(int(lengths.sum()), dtype=np.uint32)
    _copy_lists(frozen(clusters.offsets), frozen(clusters.columns), frozen(chosen), offsets, columns)
    return offsets, columns


def tally(clusters: Clusters) -> Clusters:
    """Clusters with each set of columns once, sizes and rows summed; what sums to nothing is gone.

    Cost: one hash of each list. In the order of first occurrence.
    """
    n = len(clusters.sizes)
    owner = np.empty(n, dtype=np.int64)
    representative = np.empty(n, dtype=np.int64)
    n_sets = _tally(frozen(clusters.offsets), frozen(clusters.columns), owner, representative)
    offsets, columns = _lists(clusters, representative[:n_sets])
    sizes, rows = np.zeros(n_sets, np.int64), np.zeros(len(columns), np.int64)
    _sum_up(*map(frozen, (clusters.offsets, clusters.sizes, clusters.rows, owner)), offsets, sizes, rows)
    summed = Clusters(offsets, columns, sizes, rows)
    lengths = np.diff(offsets)
    any_rows = np.zeros(n_sets, dtype=np.bool_)
    any_rows[np.repeat(np.arange(n_sets), lengths)[rows != 0]] = True
    nonzero = (sizes != 0) | any_rows
    if nonzero.all():
        return summed
    chosen = np.flatnonzero(nonzero).astype(np.int64)
    offsets, columns = _lists(summed, chosen)
    return Clusters(offsets, columns, sizes[nonzero], rows[np.repeat(nonzero, lengths)])


def without_columns(clusters: Clusters, gone: Bool) -> Clusters:
    """The clusters after some columns were dropped. IN gone bool[n_ids]."""
    keep = ~gone[clusters.columns]
    n_before = np.concatenate([[0], np.cumsum(keep)])
    return tally(
        Clusters(
            n_before[clusters.offsets].astype(np.int64),
            clusters.columns[keep],
            clusters.sizes,
            clusters.rows[keep],
        )
    )


@njit(cache=True, nogil=True)
def _absorb(  # type: ignore[no-untyped-def]
    d_starts, d_columns, d_counts, o_starts, o_columns, o_counts, appended,
    hold_offsets, hold_columns, mark, e_offsets, e_columns, e_sizes, e_rows, d_new, broken, witnesses,
):  # fmt: skip
    """Two events per value: its old cluster leaves, its new one comes. Returns a position with a count
    below zero, or -1."""
    n_events = 0
    at = 0
    e_offsets[0] = 0
    for v in range(d_starts.shape[0] - 1):
        i, i_end = o_starts[v], o_starts[v + 1]
        j, j_end = d_starts[v], d_starts[v + 1]
        old_size = i_end - i
        for k in range(i, i_end):
            e_columns[at] = o_columns[k]
            e_rows[at] = 0 if appended[o_columns[k]] else -o_counts[k]
            at += 1
        n_events += 1
        e_offsets[n_events] = at
        e_sizes[n_events - 1] = -1
        start = at
        same = True
        while i < i_end or j < j_end:
            if j == j_end or (i < i_end and o_columns[i] < d_columns[j]):
                column, count = o_columns[i], o_counts[i]
                i += 1
            else:
                column, count = d_columns[j], d_counts[j]
                was = False
                if i < i_end and o_columns[i] == column:
                    was = True
                    if not appended[column]:
                        count += o_counts[i]
                    i += 1
                d_new[j] = not was
                j += 1
                if count < 0:
                    return j - 1
                if was != (count > 0):
                    same = False
                if count == 0:
                    continue
            e_columns[at] = column
            e_rows[at] = 0 if appended[column] else count
            at += 1
        n_events += 1
        e_offsets[n_events] = at
        e_sizes[n_events - 1] = 1
        if same and old_size == at - start:
            continue
        for k in range(start, at):
            mark[e_columns[k]] = v
        for k in range(start, at):
            a = e_columns[k]
            for h in range(hold_offsets[a], hold_offsets[a + 1]):
                if mark[hold_columns[h]] != v:
                    if broken[h] < witnesses.shape[1]:
                        witnesses[h, broken[h]] = v
                    broken[h] += 1
    return -1


class Absorbed(NamedTuple):
    """What a delta did: cluster events, which delta entries are new, which inclusions it broke."""

    events: Clusters  # not tallied: old clusters with size -1, new ones with +1
    fresh: Bool  # [n_delta]: the value was not in the column before
    broken: I64  # [n_holding]: how many values break each inclusion that held
    witnesses: I64  # [n_holding, WITNESSES]: values (positions in the delta) that do, -1 for none
    negative: int  # a delta entry whose count fell below zero, or -1


def absorb(
    starts: I64,
    columns: U32,
    counts: I64,
    old_starts: I64,
    old_columns: U32,
    old_counts: I64,
    appended: Bool,
    hold_offsets: I64,
    hold_columns: U32,
) -> Absorbed:
    """Merge and extract in one: the clusters of the values of a delta, before and after it.

    IN starts int64[n_values + 1], columns uint32[n], counts int64[n]: the delta's entries, by value,
    columns ascending; IN old_*: what the runs say of the same values; IN appended bool[n_ids]: columns
    without frequencies (their count is 1); IN hold_offsets int64[n_ids + 1], hold_columns uint32[n_holding]:
    for each column those it is included in. Cost: a pass over both, and for each changed value a look
    at the inclusions of its columns.
    """
    n_values, n_new, n_old = len(starts) - 1, len(columns), len(old_columns)
    size = 2 * n_old + n_new
    e_offsets, e_columns = np.zeros(2 * n_values + 1, np.int64), np.empty(size, np.uint32)
    e_sizes, e_rows = np.zeros(2 * n_values, np.int64), np.empty(size, np.int64)
    fresh = np.zeros(n_new, np.bool_)
    broken = np.zeros(len(hold_columns), np.int64)
    witnesses = np.full((len(hold_columns), WITNESSES), -1, np.int64)
    mark = np.full(len(appended), -1, np.int64)
    inputs: tuple[Any, ...] = (
        starts,
        columns,
        counts,
        old_starts,
        old_columns,
        old_counts,
        appended,
        hold_offsets,
        hold_columns,
    )
    negative = _absorb(
        *map(frozen, inputs), mark, e_offsets, e_columns, e_sizes, e_rows, fresh, broken, witnesses
    )
    used = int(e_offsets[-1])
    events = Clusters(e_offsets, e_columns[:used], e_sizes, e_rows[:used])
    return Absorbed(events, fresh, broken, witnesses, int(negative))


@njit(cache=True, nogil=True)
def _pairs(offsets, columns, sizes, rows):  # type: ignore[no-untyped-def]
    """(pairs uint64[n], counts int64[n, 2]) of all clusters, in no order. IN: the arrays of `Clusters`."""
    capacity = 1024
    slots = np.full(capacity, -1, dtype=np.int64)
    ids = np.empty(512, dtype=np.uint64)
    values = np.empty((512, 2), dtype=np.int64)
    n = 0
    for c in range(sizes.shape[0]):
        for i in range(offsets[c], offsets[c + 1]):
            for j in range(offsets[c], offsets[c + 1]):
                p = (np.uint64(columns[i]) << np.uint64(32)) | np.uint64(columns[j])
                s = np.int64(mix(p) & np.uint64(capacity - 1))
                while slots[s] >= 0 and ids[slots[s]] != p:
                    s = (s + 1) & (capacity - 1)
                if slots[s] < 0:
                    if n == ids.shape[0]:
                        more_ids = np.empty(2 * n, dtype=np.uint64)
                        more_ids[:n] = ids
                        ids = more_ids
                        more_values = np.empty((2 * n, 2), dtype=np.int64)
                        more_values[:n] = values
                        values = more_values
                        capacity *= 2
                        slots = np.full(capacity, -1, dtype=np.int64)
                        for k in range(n):
                            t = np.int64(mix(ids[k]) & np.uint64(capacity - 1))
                            while slots[t] >= 0:
                                t = (t + 1) & (capacity - 1)
                            slots[t] = k
                        s = np.int64(mix(p) & np.uint64(capacity - 1))
                        while slots[s] >= 0:
                            s = (s + 1) & (capacity - 1)
                    slots[s] = n
                    ids[n] = p
                    values[n, 0] = 0
                    values[n, 1] = 0
                    n += 1
                values[slots[s], 0] += sizes[c]
                values[slots[s], 1] += rows[i]
    return ids[:n].copy(), values[:n].copy()


def pair_counts(clusters: Clusters) -> tuple[U64, I64, I64]:
    """(pairs, values, rows) of all ordered pairs of columns that share a cluster, sorted by pair.

    A pair is `a << 32 | b`; values counts the distinct values that a and b share, rows the rows of a
    that carry one of them. (a, a) has all of a's. Cost: the square of each cluster's length.
    """
    arrays: tuple[Any, ...] = clusters
    ids, counts = _pairs(*map(frozen, arrays))
    order = np.argsort(ids)
    return ids[order], counts[order, 0], counts[order, 1]


def warm_up() -> None:
    starts = np.array([0, 1], np.int64)
    none = no_clusters()
    absorbed = absorb(
        starts,
        np.zeros(1, np.uint32),
        np.ones(1, np.int64),
        np.zeros(2, np.int64),
        none.columns,
        none.rows,
        np.zeros(1, np.bool_),
        np.zeros(2, np.int64),
        none.columns,
    )
    pair_counts(without_columns(tally(absorbed.events), np.zeros(1, np.bool_)))
