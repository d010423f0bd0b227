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
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows.kernels.encode import frozen, mix

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Rows of a walk of the trie: their values on some columns fit into a core's cache.
CHUNK_ROWS = 1 << 14
# A climb looks at so many rows of a refuted candidate's partition at most.
LEAF_ROWS = 1 << 9


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _refine(rows, offsets, first, last, column, skip, null, top_row, top_cluster, slots, ids, sizes):  # type: ignore[no-untyped-def]
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


def refine(values: U64, rows: I32, offsets: I64, nulls_distinct: bool, null: int) -> tuple[I32, I64]:
    """(rows, offsets): the clusters split by one more column; what is left alone is dropped.

    IN values uint64[n]: the column; IN rows int32[*], offsets int64[*]: clusters of its rows.
    """
    n_clusters = len(offsets) - 1
    biggest = int(np.diff(offsets).max(initial=0))
    out_rows = np.empty(2 * len(rows), dtype=np.int32)
    out_rows[: len(rows)] = rows
    out_offsets = np.empty(n_clusters + 2 + len(rows) // 2 + 1, dtype=np.int64)
    out_offsets[: n_clusters + 1] = offsets
    slots, ids, sizes = _scratch(biggest)
    top_row, top_cluster = _refine(
        out_rows, out_offsets, 0, n_clusters, frozen(values), nulls_distinct, np.uint64(null),
        len(rows), n_clusters + 1, slots, ids, sizes,
    )  # fmt: skip
    return out_rows[len(rows) : top_row], out_offsets[n_clusters + 1 : top_cluster + 1] - len(rows)


@njit(cache=True, nogil=True)
def _scratch(biggest):  # type: ignore[no-untyped-def]
    """Working space for clusters of up to so many rows."""
    capacity = 32
    while capacity < 2 * biggest:
        capacity *= 2
    return (
        np.empty(capacity, dtype=np.int32),
        np.empty(biggest, dtype=np.int32),
        np.empty(biggest, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def _validate(values, slot, bounds, sequences, skip, nulls, refuted, chunk_rows, leaf_rows):  # type: ignore[no-untyped-def]
    n_candidates = sequences.shape[0]
    max_depth = sequences.shape[1]
    n_clusters = bounds.shape[0] - 1
    # The clusters that refute: of which candidate, and their rows.
    found_of = np.empty(64, dtype=np.int64)
    found_offsets = np.zeros(65, dtype=np.int64)
    found_rows = np.empty(256, dtype=np.int32)
    n_found = 0
    k = 0
    while k < n_clusters:
        # a chunk: whole clusters, up to chunk_rows rows, at least one cluster
        end = k + 1
        while end < n_clusters and bounds[end + 1] - bounds[k] <= chunk_rows:
            end += 1
        base = bounds[k]
        n_rows = bounds[end] - base
        biggest = np.int64(0)
        for c in range(k, end):
            biggest = max(biggest, bounds[c + 1] - bounds[c])
        slots, ids, sizes = _scratch(biggest)
        # Levels of the walk: each is at most as large as the one before.
        levels = max_depth + 1
        rows = np.empty(n_rows * levels, dtype=np.int32)
        offsets = np.empty((n_rows // 2 + 2) * levels, dtype=np.int64)
        first = np.zeros(levels, dtype=np.int64)
        last = np.zeros(levels, dtype=np.int64)
        top = np.zeros(levels, dtype=np.int64)
        for c in range(k, end + 1):
            offsets[c - k] = bounds[c] - base
        for i in range(n_rows):
            rows[i] = base + i
        last[0] = end - k
        top[0] = n_rows
        depth = 0  # levels 0..depth are the prefix in `path`
        path = np.full(max_depth, -1, dtype=np.int32)
        for x in range(n_candidates):
            if refuted[x]:
                continue
            d = 0
            while d < depth and sequences[x, d] == path[d]:
                d += 1
            depth = d
            unique = first[depth] == last[depth]
            while not unique and depth < max_depth and sequences[x, depth] >= 0:
                c = sequences[x, depth]
                start = last[depth] + 1
                top_row, top_cluster = _refine(
                    rows, offsets, first[depth], last[depth], values[slot[c]], skip, nulls[c],
                    top[depth], start, slots, ids, sizes,
                )  # fmt: skip
                path[depth] = c
                depth += 1
                first[depth] = start
                last[depth] = top_cluster
                top[depth] = top_row
                unique = start == top_cluster
            if unique:
                continue
            refuted[x] = True
            taken = np.int64(0)
            for j in range(first[depth], last[depth]):
                low = offsets[j]
                size = offsets[j + 1] - low
                if taken and taken + size > leaf_rows:
                    break
                size = min(size, leaf_rows)
                taken += size
                if n_found == found_of.shape[0]:
                    more_of = np.empty(2 * n_found, dtype=np.int64)
                    more_of[:n_found] = found_of
                    found_of = more_of
                    more_offsets = np.zeros(2 * n_found + 1, dtype=np.int64)
                    more_offsets[: n_found + 1] = found_offsets
                    found_offsets = more_offsets
                at = found_offsets[n_found]
                if at + size > found_rows.shape[0]:
                    more_rows = np.empty(2 * (at + size), dtype=np.int32)
                    more_rows[:at] = found_rows[:at]
                    found_rows = more_rows
                for i in range(size):
                    found_rows[at + i] = rows[low + i]
                found_of[n_found] = x
                n_found += 1
                found_offsets[n_found] = at + size
        k = end
    return (
        found_of[:n_found].copy(),
        found_offsets[: n_found + 1].copy(),
        found_rows[: found_offsets[n_found]].copy(),
    )


def validate(
    values: U64, slot: I32, offsets: I64, sequences: I32, nulls_distinct: bool, nulls: U64, refuted: Bool
) -> tuple[I64, I64, I32]:
    """(candidate, offsets, rows): clusters that refute candidates; each candidate once.

    IN values uint64[k, n]: the codes of n rows, column c at values[slot[c]], its NULL given as
    nulls[c]; IN offsets int64[*]: clusters of consecutive rows that agree on what all candidates
    have in common; IN sequences int32[n_candidates, *]: the other columns of each candidate, padded
    with -1, sorted so that equal prefixes are neighbours; INOUT refuted bool[n_candidates]:
    candidates that are set already are skipped. Cluster i is rows[offsets[i]:offsets[i + 1]] and
    belongs to candidate[i]; at most LEAF_ROWS rows of a candidate are returned.

    Cost: each prefix of the trie refines only rows that still have a partner.
    """
    return _validate(  # type: ignore[no-any-return]
        frozen(values), frozen(slot), frozen(offsets), frozen(sequences), nulls_distinct,
        frozen(nulls), refuted, CHUNK_ROWS, LEAF_ROWS,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _climb(values, owner, bounds, skip, nulls, masks, witnesses):  # type: ignore[no-untyped-def]
    n_columns = values.shape[0]
    n_clusters = owner.shape[0]
    k = 0
    while k < n_clusters:
        end = k + 1
        while end < n_clusters and owner[end] == owner[k]:
            end += 1
        x = owner[k]
        base = bounds[k]
        n_rows = bounds[end] - base
        biggest = np.int64(0)
        for c in range(k, end):
            biggest = max(biggest, bounds[c + 1] - bounds[c])
        slots, ids, sizes = _scratch(biggest)
        half_clusters = n_rows // 2 + 2
        rows = np.empty(3 * n_rows, dtype=np.int32)
        offsets = np.empty(3 * half_clusters, dtype=np.int64)
        for c in range(k, end + 1):
            offsets[c - k] = bounds[c] - base
        for i in range(n_rows):
            rows[i] = base + i
        first = np.int64(0)
        last = np.int64(end - k)
        side = 1
        turn = (x * 7) % n_columns
        for step in range(n_columns):
            c = (turn + step) % n_columns
            bit = np.uint64(1) << np.uint64(c & 63)
            if masks[x, c >> 6] & bit:
                continue
            start = side * half_clusters
            _, top_cluster = _refine(
                rows, offsets, first, last, values[c], skip, nulls[c], side * n_rows, start, slots, ids, sizes
            )
            if top_cluster > start:
                masks[x, c >> 6] |= bit
                first = start
                last = top_cluster
                side = 3 - side
        j = 0
        i = 0
        while j < witnesses.shape[1]:
            # one pair of every cluster, then the next pair of each
            any_left = False
            for c in range(first, last):
                low = offsets[c]
                if low + i + 1 < offsets[c + 1] and j < witnesses.shape[1]:
                    witnesses[x, j, 0] = rows[low + i]
                    witnesses[x, j, 1] = rows[low + i + 1]
                    j += 1
                    any_left = True
            if not any_left:
                break
            i += 1
        k = end


def climb(
    values: U64, owner: I64, offsets: I64, nulls_distinct: bool, nulls: U64, masks: U64, witnesses: I64
) -> None:
    """From clusters that refute a candidate to an agree set that no column can be added to.

    Columns are added while duplicates remain, in another order for each candidate. The result is
    the strongest evidence that these rows hold against the candidate and its supersets.

    IN values uint64[n_columns, n]; IN owner int64[k], ascending runs: the candidate of each cluster;
    IN offsets int64[k + 1]: clusters of consecutive rows; INOUT masks uint64[n_candidates, n_words]:
    the candidates, to become agree sets; OUT witnesses int64[n_candidates, WITNESSES, 2], preset
    to -1: pairs of rows (numbers below n) that have that agree set.
    """
    _climb(frozen(values), frozen(owner), frozen(offsets), nulls_distinct, frozen(nulls), masks, witnesses)


@njit(cache=True, nogil=True)
def _gather(dictionary, codes, positions, at, null, out):  # type: ignore[no-untyped-def]
    for i in range(positions.shape[0]):
        c = codes[positions[i]]
        out[at[i]] = null if c == 0 else dictionary[c - 1]


def gather(dictionary: U64, codes: I32, positions: I32, at: I64, null: int, out: U64) -> None:
    """OUT out uint64[*]: at[i] gets the value code of the row positions[i], NULL as `null`.

    IN dictionary uint64[k], codes int32[n], positions int32[m], at int64[m].
    """
    _gather(frozen(dictionary), frozen(codes), frozen(positions), frozen(at), np.uint64(null), out)


@njit(cache=True, nogil=True)
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
    nulls = np.array([9, 9], dtype=np.uint64)
    rows, offsets = cluster(values[0], False, 9)
    refine(values[1], rows, offsets, False, 9)
    refuted = np.zeros(1, dtype=np.bool_)
    sequences = np.ones((1, 1), dtype=np.int32)
    slot = np.arange(2, dtype=np.int32)
    owner, offsets, rows = validate(values, slot, offsets, sequences, False, nulls, refuted)
    masks = np.ones((1, 1), dtype=np.uint64)
    witnesses = np.full((1, WITNESSES, 2), -1, dtype=np.int64)
    climb(values[:, rows], owner, offsets, False, nulls, masks, witnesses)
    dictionary = np.array([4, 5], dtype=np.uint64)
    codes = np.array([1, 2, 0], dtype=np.int32)
    positions = select(dictionary, codes, np.ones(3, dtype=np.bool_), 9, 0, 1, False)
    gather(dictionary, codes, positions, np.arange(len(positions)), 9, np.empty(len(positions), np.uint64))
