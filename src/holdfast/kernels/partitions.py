"""Validation of candidate keys by refining partitions.

A partition is a list of clusters: sets of at least two rows that agree on some columns (the
position lists of SWAN, sec. IV-B). Refining by one more column splits every cluster by that
column's values and drops what is left alone. A set of columns is unique iff its partition is
empty; a refinement only ever touches rows that are still in doubt.

Candidates are validated together: sorted as sequences of columns, they form a trie, and each
prefix is refined once. Clusters are independent of each other, so the trie is walked for one
small chunk of clusters after the other: the chunk stays in the cache, and a candidate that one
chunk has refuted is not looked at again.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .encode import frozen, mix
from .pairs import WITNESSES

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Rows of a walk of the trie: their values on some columns fit into a core's cache.
CHUNK_ROWS = 1 << 14
# A climb looks at so many rows of a refuted candidate's partition at most.
CLIMB_ROWS = 1 << 11


@njit(cache=True)
def _cluster(values, skip, null):  # type: ignore[no-untyped-def]
    n = values.shape[0]
    capacity = 1024
    while capacity < 2 * n:
        capacity *= 2
    slots = np.full(capacity, -1, dtype=np.int32)
    group = np.empty(n, dtype=np.int32)
    sizes = np.zeros(n, dtype=np.int32)
    n_groups = 0
    for i in range(n):
        v = values[i]
        if skip and v == null:
            group[i] = -1
            continue
        s = np.int64(mix(v) & np.uint64(capacity - 1))
        while True:
            first = slots[s]
            if first < 0:
                slots[s] = i
                group[i] = n_groups
                sizes[n_groups] = 1
                n_groups += 1
                break
            if values[first] == v:
                g = group[first]
                group[i] = g
                sizes[g] += 1
                break
            s = (s + 1) & (capacity - 1)
    n_clusters = 0
    n_rows = 0
    for g in range(n_groups):
        if sizes[g] > 1:
            n_clusters += 1
            n_rows += sizes[g]
    rows = np.empty(n_rows, dtype=np.int32)
    offsets = np.empty(n_clusters + 1, dtype=np.int64)
    cursor = np.full(n_groups, -1, dtype=np.int64)
    at = 0
    k = 0
    for g in range(n_groups):
        if sizes[g] > 1:
            offsets[k] = at
            cursor[g] = at
            at += sizes[g]
            k += 1
    offsets[k] = at
    for i in range(n):
        g = group[i]
        if g >= 0 and cursor[g] >= 0:
            rows[cursor[g]] = i
            cursor[g] += 1
    return rows, offsets


def cluster(values: U64, nulls_distinct: bool, null: int) -> tuple[I32, I64]:
    """(rows, offsets): the clusters of rows with equal values, at least two rows each.

    IN values uint64[n], NULL given as the code `null`. Cluster i is rows[offsets[i]:offsets[i + 1]].
    Cost: one hash probe a row.
    """
    return _cluster(frozen(values), nulls_distinct, np.uint64(null))  # type: ignore[no-any-return]


@njit(cache=True)
def _refine(rows, offsets, first, last, column, skip, null, top_row, top_cluster, slots, ids, sizes):
    # type: ignore[no-untyped-def]
    """Refine clusters first..last; write the result behind (top_row, top_cluster).

    Cluster k is rows[offsets[k]:offsets[k + 1]]; the result's first cluster is number
    top_cluster, and rows are written from top_row on. Returns the new (top_row, top_cluster).
    """
    offsets[top_cluster] = top_row
    for k in range(first, last):
        low = offsets[k]
        high = offsets[k + 1]
        size = high - low
        if size == 2:
            v = column[rows[low]]
            if v == column[rows[low + 1]] and not (skip and v == null):
                rows[top_row] = rows[low]
                rows[top_row + 1] = rows[low + 1]
                top_row += 2
                top_cluster += 1
                offsets[top_cluster] = top_row
        elif size <= 12:
            done = np.int64(0)
            for i in range(size):
                if done & (np.int64(1) << i):
                    continue
                v = column[rows[low + i]]
                if skip and v == null:
                    continue
                start = top_row
                for j in range(i + 1, size):
                    if not (done & (np.int64(1) << j)) and column[rows[low + j]] == v:
                        done |= np.int64(1) << j
                        if top_row == start:
                            rows[top_row] = rows[low + i]
                            top_row += 1
                        rows[top_row] = rows[low + j]
                        top_row += 1
                if top_row > start:
                    top_cluster += 1
                    offsets[top_cluster] = top_row
        else:
            capacity = 32
            while capacity < 2 * size:
                capacity *= 2
            slots[:capacity] = -1
            n_groups = 0
            for i in range(size):
                v = column[rows[low + i]]
                if skip and v == null:
                    ids[i] = -1
                    continue
                s = np.int64(mix(v) & np.uint64(capacity - 1))
                while True:
                    j = slots[s]
                    if j < 0:
                        slots[s] = i
                        ids[i] = n_groups
                        sizes[n_groups] = 1
                        n_groups += 1
                        break
                    if column[rows[low + j]] == v:
                        g = ids[j]
                        ids[i] = g
                        sizes[g] += 1
                        break
                    s = (s + 1) & (capacity - 1)
            # sizes become cursors; a group of one gets none
            for g in range(n_groups):
                if sizes[g] > 1:
                    size_g = sizes[g]
                    sizes[g] = top_row
                    top_row += size_g
                    top_cluster += 1
                    offsets[top_cluster] = top_row
                else:
                    sizes[g] = -1
            for i in range(size):
                g = ids[i]
                if g >= 0 and sizes[g] >= 0:
                    rows[sizes[g]] = rows[low + i]
                    sizes[g] += 1
    return top_row, top_cluster


@njit(cache=True)
def _validate(
    values, order, bounds, first_cluster, last_cluster, sequences, skip, nulls, refuted, masks, witnesses,
    n_found, in_pivot, chunk_rows, climb_rows,
):  # type: ignore[no-untyped-def]
    n_columns = values.shape[0]
    n_candidates = sequences.shape[0]
    max_depth = sequences.shape[1]
    k = first_cluster
    while k < last_cluster:
        # a chunk: whole clusters, up to chunk_rows rows, at least one cluster
        end = k + 1
        while end < last_cluster and bounds[end + 1] - bounds[k] <= chunk_rows:
            end += 1
        n_rows = bounds[end] - bounds[k]
        biggest = 0
        for c in range(k, end):
            biggest = max(biggest, bounds[c + 1] - bounds[c])
        capacity = 32
        while capacity < 2 * biggest:
            capacity *= 2
        slots = np.empty(capacity, dtype=np.int32)
        ids = np.empty(biggest, dtype=np.int32)
        sizes = np.empty(biggest, dtype=np.int64)
        # Levels of the walk and then of a climb: each is at most as large as the one before.
        levels = max_depth + 2
        rows = np.empty(n_rows * levels + 2 * (climb_rows + biggest) * 2, dtype=np.int32)
        offsets = np.empty(
            (n_rows // 2 + 2) * levels + 2 * ((climb_rows + biggest) // 2 + 2) * 2, dtype=np.int64
        )
        level_first = np.zeros(levels + 1, dtype=np.int64)
        level_last = np.zeros(levels + 1, dtype=np.int64)
        level_top = np.zeros(levels + 1, dtype=np.int64)
        for c in range(k, end + 1):
            offsets[c - k] = bounds[c] - bounds[k]
        for i in range(n_rows):
            rows[i] = order[bounds[k] + i]
        level_first[0] = 0
        level_last[0] = end - k
        level_top[0] = n_rows
        depth = 0  # levels 0..depth are the prefix of `path`
        path = np.full(max_depth + 1, -1, dtype=np.int32)
        for x in range(n_candidates):
            if refuted[x]:
                continue
            d = 0
            while d < depth and d < max_depth and sequences[x, d] == path[d]:
                d += 1
            depth = d
            unique = level_first[depth] == level_last[depth]
            while not unique and depth < max_depth and sequences[x, depth] >= 0:
                c = sequences[x, depth]
                start = level_last[depth] + 1
                top_row, top_cluster = _refine(
                    rows, offsets, level_first[depth], level_last[depth], values[c], skip, nulls[c],
                    level_top[depth], start, slots, ids, sizes,
                )
                path[depth] = c
                depth += 1
                level_first[depth] = start
                level_last[depth] = top_cluster
                level_top[depth] = top_row
                unique = start == top_cluster
            if unique:
                continue
            refuted[x] = True
            # Climb: add columns while duplicates remain. The result is a non-unique that no
            # column can be added to (as far as the rows looked at show), the strongest
            # evidence against this candidate and its supersets.
            here_first = level_first[depth]
            here_last = here_first + 1
            while (
                here_last < level_last[depth]
                and offsets[here_last + 1] - offsets[here_first] <= climb_rows
            ):
                here_last += 1
            mask = np.zeros(masks.shape[1], dtype=np.uint64)
            mask[in_pivot >> 6] |= np.uint64(1) << np.uint64(in_pivot & 63)
            for j in range(depth):
                c = path[j]
                mask[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
            base_row = level_top[depth]
            base_cluster = level_last[depth] + 1
            half_rows = climb_rows + biggest
            half_clusters = (climb_rows + biggest) // 2 + 2
            side = 0
            turn = (x * 7) % n_columns
            for step in range(n_columns):
                c = (turn + step) % n_columns
                if (mask[c >> 6] >> np.uint64(c & 63)) & np.uint64(1):
                    continue
                start = base_cluster + side * half_clusters
                top_row, top_cluster = _refine(
                    rows, offsets, here_first, here_last, values[c], skip, nulls[c],
                    base_row + side * half_rows, start, slots, ids, sizes,
                )
                if top_cluster > start:
                    mask[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
                    here_first = start
                    here_last = top_cluster
                    side = 1 - side
            for w in range(masks.shape[1]):
                masks[x, w] = mask[w]
            j = 0
            cluster_at = here_first
            while j < witnesses.shape[1] and cluster_at < here_last:
                witnesses[x, j, 0] = rows[offsets[cluster_at]]
                witnesses[x, j, 1] = rows[offsets[cluster_at] + 1]
                cluster_at += 1
                j += 1
            cluster_at = here_first
            while j < witnesses.shape[1] and cluster_at < here_last:
                # few clusters: further pairs of the larger ones
                low = offsets[cluster_at]
                i = low + 1
                while j < witnesses.shape[1] and i + 1 < offsets[cluster_at + 1]:
                    witnesses[x, j, 0] = rows[i]
                    witnesses[x, j, 1] = rows[i + 1]
                    i += 1
                    j += 1
                cluster_at += 1
            n_found += 1
        k = end
    return n_found


def validate(
    values: U64,
    rows: I32,
    offsets: I64,
    pivot: int,
    sequences: I32,
    refuted: Bool,
    nulls_distinct: bool,
    nulls: U64,
    masks: U64,
    witnesses: I64,
) -> int:
    """Refute candidates on these clusters; returns how many candidates were refuted here.

    IN values uint64[n_columns, n]: codes of n rows, NULL of column c given as nulls[c]; IN rows
    int32[*], offsets int64[*]: clusters of equal values of the column `pivot`, which every
    candidate contains; IN sequences int32[n_candidates, *]: the other columns of each candidate,
    padded with -1, sorted so that equal prefixes are neighbours; INOUT refuted bool[n_candidates]:
    candidates that are set already are skipped; OUT masks uint64[n_candidates, n_words], witnesses
    int64[n_candidates, WITNESSES, 2] (preset to -1): for a candidate refuted here, an agree set
    that contains it and pairs of rows that have it.

    Cost: each prefix of the trie refines only rows that still have a partner.
    """
    return int(
        _validate(
            frozen(values), frozen(rows), frozen(offsets), 0, len(offsets) - 1, frozen(sequences),
            nulls_distinct, frozen(nulls), refuted, masks, witnesses, 0, np.int64(pivot),
            CHUNK_ROWS, CLIMB_ROWS,
        )
    )  # fmt: skip


@njit(cache=True)
def _gather(dictionary, codes, positions, at, null, out):  # type: ignore[no-untyped-def]
    for i in range(positions.shape[0]):
        c = codes[positions[i]]
        out[at[i]] = null if c == 0 else dictionary[c - 1]


def gather(dictionary: U64, codes: I32, positions: I32, at: I64, null: int, out: U64) -> None:
    """OUT out uint64[*]: at[i] gets the value code of the row positions[i], NULL as `null`.

    IN dictionary uint64[k], codes int32[n], positions int32[m], at int64[m].
    """
    _gather(frozen(dictionary), frozen(codes), frozen(positions), frozen(at), np.uint64(null), out)


@njit(cache=True)
def _select(dictionary, codes, live, null, part, n_parts, skip_null, wanted):  # type: ignore[no-untyped-def]
    # Decide once per value, then once per row.
    for v in range(dictionary.shape[0]):
        wanted[v + 1] = mix(dictionary[v]) % np.uint64(n_parts) == np.uint64(part)
    wanted[0] = (not skip_null) and mix(null) % np.uint64(n_parts) == np.uint64(part)
    n = 0
    for i in range(codes.shape[0]):
        if wanted[codes[i]] and live[i]:
            n += 1
    out = np.empty(n, dtype=np.int32)
    n = 0
    for i in range(codes.shape[0]):
        if wanted[codes[i]] and live[i]:
            out[n] = i
            n += 1
    return out


def select(
    dictionary: U64, codes: I32, live: Bool, null: int, part: int, n_parts: int, skip_null: bool
) -> I32:
    """Positions of the live rows whose value falls into one of n_parts parts of all values.

    Equal values fall into the same part in every segment. IN dictionary uint64[k], codes int32[n],
    live bool[n].
    """
    wanted = np.empty(len(dictionary) + 1, dtype=np.bool_)
    return _select(  # type: ignore[no-any-return]
        frozen(dictionary), frozen(codes), frozen(live), np.uint64(null), part, n_parts, skip_null, wanted
    )


def warm_up() -> None:
    values = np.array([[1, 1, 2, 2], [1, 1, 1, 2]], dtype=np.uint64)
    rows, offsets = cluster(values[0], False, 9)
    refuted = np.zeros(1, dtype=np.bool_)
    masks = np.zeros((1, 1), dtype=np.uint64)
    witnesses = np.full((1, WITNESSES, 2), -1, dtype=np.int64)
    sequences = np.ones((1, 1), dtype=np.int32)
    nulls = np.array([9, 9], dtype=np.uint64)
    validate(values, rows, offsets, 0, sequences, refuted, False, nulls, masks, witnesses)
    dictionary = np.array([4, 5], dtype=np.uint64)
    codes = np.array([1, 2, 0], dtype=np.int32)
    positions = select(dictionary, codes, np.ones(3, dtype=np.bool_), 9, 0, 1, False)
    gather(dictionary, codes, positions, np.arange(len(positions)), 9, np.empty(len(positions), np.uint64))
