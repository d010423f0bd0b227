"""Counted agree sets: all pairs of a batch's rows with a table's rows, by what they agree on."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .encode import frozen, mix

U16 = NDArray[np.uint16]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

PIECE_BITS = 16
DIRECT_COLUMNS = 16
BLOCK_BYTES = 1 << 18
NOTHING = 0xFFFF
RARITY = 16
MAX_BATCH = NOTHING - 1

_ZERO = np.uint16(0)


@njit(cache=True, nogil=True)
def _narrow(codes, positions, start, n, column, ids, out):  # type: ignore[no-untyped-def]
    """OUT out uint16[n]: one column of the rows start.. of a block, in the narrow codes of the batch."""
    values = codes[column]
    dense = positions.shape[0] == 0
    if ids.shape[0] == 0 and dense:
        for i in range(n):
            out[i] = np.uint16(values[start + i])
    elif ids.shape[0] == 0:
        for i in range(n):
            out[i] = np.uint16(values[positions[start + i]])
    else:
        for i in range(n):
            v = values[start + i] if dense else values[positions[start + i]]
            out[i] = ids[v] if v < ids.shape[0] else _ZERO


@njit(cache=True, nogil=True)
def _extend(prefix, column, value, bit, n, out):  # type: ignore[no-untyped-def]
    for i in range(n):
        out[i] = prefix[i] | (bit if column[i] == value else _ZERO)


@njit(cache=True, nogil=True)
def _limit(positions, start, n, own, last):  # type: ignore[no-untyped-def]
    """How many of the n rows of a block a batch row is paired with: those before row `last`."""
    if not own:
        return n
    if positions.shape[0] == 0:
        return min(n, max(0, last - start))
    low = 0
    high = n
    while low < high:
        middle = (low + high) >> 1
        if positions[start + middle] < last:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _count_direct(  # type: ignore[no-untyped-def]
    codes, positions, n_rows, ids, id_starts, rows, origin, shared, order, own, first, block, table, seen
):
    n_levels = order.shape[0]
    n_batch = origin.shape[0]
    stack = np.zeros((n_levels + 1, block), dtype=np.uint16)
    local = np.empty((n_levels, block), dtype=np.uint16)
    start = 0
    while start < n_rows:
        n = min(block, n_rows - start)
        for d in range(n_levels):
            c = order[d]
            _narrow(codes, positions, start, n, c, ids[id_starts[c] : id_starts[c + 1]], local[d])
        valid = 0  # levels 0..valid - 1 of the stack belong to the row at hand
        j = 0
        while j < n_batch:
            valid = min(valid, shared[j])
            limit = _limit(positions, start, n, own, first + origin[j])
            if limit == 0:
                j += 1
                continue
            for d in range(valid, n_levels):
                _extend(stack[d], local[d], rows[d, j], np.uint16(1 << order[d]), n, stack[d + 1])
            valid = n_levels
            weight = 1
            while (
                j + weight < n_batch
                and shared[j + weight] == n_levels
                and (not own or _limit(positions, start, n, own, first + origin[j + weight]) == limit)
            ):
                weight += 1
            _tally(stack[n_levels], limit, weight, np.int64(origin[j]) * n_rows + start, table, seen)
            j += weight
        start += n


@njit(cache=True, nogil=True)
def _tally(masks, n, weight, pair, table, seen):  # type: ignore[no-untyped-def]
    for i in range(n):
        m = masks[i]
        if table[m] == 0:
            seen[m] = pair + i
        table[m] += weight


@njit(cache=True, nogil=True)
def _count_hashed(  # type: ignore[no-untyped-def]
    codes, positions, n_rows, ids, id_starts, rows, origin, shared, order, own, first, block, n_words
):
    n_levels = order.shape[0]
    n_batch = origin.shape[0]
    n_pieces = 4 * n_words
    stack = np.zeros((n_levels + 1, block), dtype=np.uint16)
    local = np.empty((n_levels, block), dtype=np.uint16)
    # The level before, and at the end the last, that belongs to the same piece; 0 is the empty one.
    before = np.zeros(n_levels, dtype=np.int64)
    last = np.zeros(n_pieces, dtype=np.int64)
    for d in range(n_levels):
        p = order[d] >> 4
        before[d] = last[p]
        last[p] = d + 1
    words = np.empty((n_words, block), dtype=np.uint64)
    hashes = np.empty(block, dtype=np.uint64)
    bits = 10
    table = np.zeros((1 << bits, n_words + 2), dtype=np.uint64)
    n_masks = 0
    start = 0
    while start < n_rows:
        n = min(block, n_rows - start)
        for d in range(n_levels):
            c = order[d]
            _narrow(codes, positions, start, n, c, ids[id_starts[c] : id_starts[c + 1]], local[d])
        valid = 0
        j = 0
        while j < n_batch:
            valid = min(valid, shared[j])
            limit = _limit(positions, start, n, own, first + origin[j])
            if limit == 0:
                j += 1
                continue
            for d in range(valid, n_levels):
                bit = np.uint16(1 << (order[d] & 15))
                _extend(stack[before[d]], local[d], rows[d, j], bit, n, stack[d + 1])
            valid = n_levels
            weight = 1
            while (
                j + weight < n_batch
                and shared[j + weight] == n_levels
                and (not own or _limit(positions, start, n, own, first + origin[j + weight]) == limit)
            ):
                weight += 1
            for w in range(n_words):
                _assemble(
                    stack[last[4 * w]], stack[last[4 * w + 1]], stack[last[4 * w + 2]], stack[last[4 * w + 3]],
                    limit, w == 0, words[w], hashes,
                )
            if 2 * (n_masks + limit) > table.shape[0]:
                while 2 * (n_masks + limit) > 1 << bits:
                    bits += 1
                table = _rehashed(table, bits)
            pair = np.uint64(origin[j]) * np.uint64(n_rows) + np.uint64(start)
            if n_words == 1:
                n_masks += _tally_word(words[0], hashes, limit, np.uint64(weight), pair, bits, table)
            else:
                n_masks += _tally_words(words, hashes, limit, np.uint64(weight), pair, bits, table)
            j += weight
        start += n
    masks = np.empty((n_masks, n_words), dtype=np.uint64)
    counts = np.empty(n_masks, dtype=np.int64)
    seen = np.empty(n_masks, dtype=np.int64)
    k = 0
    for s in range(table.shape[0]):
        if table[s, 0] > 0:
            counts[k] = table[s, 0]
            seen[k] = table[s, 1]
            for w in range(n_words):
                masks[k, w] = table[s, w + 2]
            k += 1
    return masks, counts, seen


@njit(cache=True, nogil=True)
def _rehashed(table, bits):  # type: ignore[no-untyped-def]
    """The same entries in a table of 1 << bits slots."""
    bigger = np.zeros((1 << bits, table.shape[1]), dtype=np.uint64)
    shift = np.uint64(64 - bits)
    for k in range(table.shape[0]):
        if table[k, 0] == 0:
            continue
        h = np.uint64(0)
        for w in range(2, table.shape[1]):
            h = _fold(h, table[k, w])
        s = np.int64(h >> shift)
        while bigger[s, 0] != 0:
            s = (s + 1) & ((1 << bits) - 1)
        for x in range(table.shape[1]):
            bigger[s, x] = table[k, x]
    return bigger


@njit(cache=True, nogil=True)
def _tally_word(words, hashes, n, weight, pair, bits, table):  # type: ignore[no-untyped-def]
    shift = np.uint64(64 - bits)
    last = (1 << bits) - 1
    n_new = 0
    for i in range(n):
        m = words[i]
        s = np.int64(hashes[i] >> shift)
        while table[s, 2] != m and table[s, 0] != 0:
            s = (s + 1) & last
        if table[s, 0] == 0:
            table[s, 1] = pair + np.uint64(i)
            table[s, 2] = m
            n_new += 1
        table[s, 0] += weight
    return n_new


@njit(cache=True, nogil=True)
def _tally_words(words, hashes, n, weight, pair, bits, table):  # type: ignore[no-untyped-def]
    shift = np.uint64(64 - bits)
    last = (1 << bits) - 1
    n_words = words.shape[0]
    n_new = 0
    for i in range(n):
        s = np.int64(hashes[i] >> shift)
        while table[s, 0] != 0:
            same = True
            for w in range(n_words):
                if table[s, w + 2] != words[w, i]:
                    same = False
                    break
            if same:
                break
            s = (s + 1) & last
        if table[s, 0] == 0:
            table[s, 1] = pair + np.uint64(i)
            for w in range(n_words):
                table[s, w + 2] = words[w, i]
            n_new += 1
        table[s, 0] += weight
    return n_new


@njit(cache=True, nogil=True, inline="always")
def _fold(h, word):  # type: ignore[no-untyped-def]
    """One more word of a mask into its hash, of which the high bits count."""
    h = (h ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@njit(cache=True, nogil=True)
def _assemble(a, b, c, d, n, fresh, word, hashes):  # type: ignore[no-untyped-def]
    for i in range(n):
        m = (
            np.uint64(a[i])
            | (np.uint64(b[i]) << np.uint64(16))
            | (np.uint64(c[i]) << np.uint64(32))
            | (np.uint64(d[i]) << np.uint64(48))
        )
        word[i] = m
        hashes[i] = _fold(np.uint64(0) if fresh else hashes[i], m)


# --- Units: rows that look alike but for rare values -----------------------------------------------------


@njit(cache=True, nogil=True)
def _ranked(codes, rows, rarity, ranks, row_ranks, sizes, counts):  # type: ignore[no-untyped-def]
    """OUT ranks uint16[n_columns, n], row_ranks uint16[n_columns, b]; the sum of the lists of the batch."""
    n_columns, n = codes.shape
    b = rows.shape[1]
    total = np.int64(0)
    for c in range(n_columns):
        size = sizes[c]
        for v in range(size):
            counts[v] = 0
        for i in range(n):
            v = codes[c, i]
            if v >= 0:
                counts[v] += 1
        for j in range(b):
            v = rows[c, j]
            row_ranks[c, j] = NOTHING
            if 0 <= v < size and counts[v] * rarity < n:
                total += counts[v]
        n_ranks = 0
        for v in range(size):
            if counts[v] * rarity >= n:
                n_ranks += 1
                counts[v] = n_ranks
            else:
                counts[v] = 0
        for i in range(n):
            v = codes[c, i]
            ranks[c, i] = counts[v] if v >= 0 else 0
        for j in range(b):
            v = rows[c, j]
            if 0 <= v < size and counts[v] > 0:
                row_ranks[c, j] = counts[v]
    return total


@njit(cache=True, nogil=True)
def _units(ranks, unit):  # type: ignore[no-untyped-def]
    """OUT unit int32[n]: rows with equal ranks in all columns have one number; the result is a row of each.

    IN ranks uint16[n_columns, n], at most 16 columns; 63 and more are one value.
    """
    n_columns, n = ranks.shape
    low = np.zeros(n, dtype=np.uint64)
    high = np.zeros(n, dtype=np.uint64)
    for c in range(n_columns):
        key = low if c < 10 else high
        shift = np.uint64(6 * (c % 10))
        for i in range(n):
            key[i] |= np.uint64(min(ranks[c, i], np.uint16(63))) << shift
    capacity = 1024
    while capacity < 2 * n:
        capacity *= 2
    slots = np.full(capacity, -1, dtype=np.int32)
    chosen = np.empty(n, dtype=np.int64)
    n_units = 0
    for i in range(n):
        s = np.int64(mix(low[i] * np.uint64(0x9E3779B97F4A7C15) + high[i]) & np.uint64(capacity - 1))
        while True:
            k = slots[s]
            if k < 0:
                slots[s] = n_units
                chosen[n_units] = i
                unit[i] = n_units
                n_units += 1
                break
            if low[chosen[k]] == low[i] and high[chosen[k]] == high[i]:
                unit[i] = k
                break
            s = (s + 1) & (capacity - 1)
    return chosen[:n_units].copy()


@njit(cache=True, nogil=True)
def _by_unit(unit, n_units, starts, members):  # type: ignore[no-untyped-def]
    """OUT starts int64[n_units + 1], members int64[n]: the rows of each unit, ascending."""
    for i in range(unit.shape[0]):
        starts[unit[i] + 1] += 1
    for u in range(n_units):
        starts[u + 1] += starts[u]
    cursor = starts.copy()
    for i in range(unit.shape[0]):
        u = unit[i]
        members[cursor[u]] = i
        cursor[u] += 1


@njit(cache=True, nogil=True)
def _lists(codes, members, ranks, rows, row_members, row_ranks, sizes, starts, ends):  # type: ignore[no-untyped-def]
    """The places (among members) of the rare values of a batch: starts, ends OUT int64[b, n_columns]."""
    n_columns, n = codes.shape
    b = rows.shape[1]
    places = np.empty(n * n_columns, dtype=np.int32)
    top = np.int64(0)
    for c in range(n_columns):
        size = sizes[c]
        cursor = np.zeros(size + 1, dtype=np.int64)
        wanted = np.zeros(size, dtype=np.bool_)
        for j in range(b):
            v = rows[c, j]
            if 0 <= v < size and row_ranks[c, j] == NOTHING:
                wanted[v] = True
        for i in range(n):
            v = codes[c, i]
            if v >= 0 and wanted[v]:
                cursor[v + 1] += 1
        cursor[0] = top
        for v in range(size):
            cursor[v + 1] += cursor[v]
        top = cursor[size]
        for x in range(b):
            v = rows[c, row_members[x]]
            if 0 <= v < size and wanted[v]:
                starts[x, c] = cursor[v]
                ends[x, c] = cursor[v + 1]
        for x in range(n):
            v = codes[c, members[x]]
            if v >= 0 and wanted[v]:
                places[cursor[v]] = x
                cursor[v] += 1
    return places


@njit(cache=True, nogil=True)
def _count_units(  # type: ignore[no-untyped-def]
    ranks, unit_starts, row_ranks, row_starts, shared, order, own, starts, ends, places, table, seen
):
    n_levels = order.shape[0]
    n_units = unit_starts.shape[0] - 1
    n = unit_starts[n_units]
    stack = np.zeros((n_levels + 1, n_units), dtype=np.uint16)
    weights = np.empty(n_units, dtype=np.int64)
    unit = np.empty(n, dtype=np.int32)
    for u in range(n_units):
        weights[u] = unit_starts[u + 1] - unit_starts[u]
        for r in range(unit_starts[u], unit_starts[u + 1]):
            unit[r] = u
    agreed = np.zeros(n, dtype=np.uint16)
    touched = np.empty(n + 1, dtype=np.int32)
    pending = np.empty(n_units + 1, dtype=np.int32)
    top = stack[n_levels]
    for u in range(row_starts.shape[0] - 1):
        for d in range(shared[u], n_levels):
            _extend(stack[d], ranks[d], row_ranks[d, u], np.uint16(1 << order[d]), n_units, stack[d + 1])
        weight = row_starts[u + 1] - row_starts[u]
        n_pending = 0
        for i in range(u if own else n_units):
            m = top[i]
            if seen[m] < 0:
                pending[n_pending] = i
                n_pending += 1
            table[m] += weight * weights[i]
        if own and weight > 1:
            table[top[u]] += weight * (weight - 1) // 2
            pending[n_pending] = u
            n_pending += 1
        for j in range(row_starts[u], row_starts[u + 1]):
            n_touched = 0
            for c in range(n_levels):
                bit = np.uint16(1 << c)
                for x in range(starts[j, c], ends[j, c]):
                    r = places[x]
                    if own and r >= j:
                        break
                    touched[n_touched] = r
                    n_touched += agreed[r] == 0
                    agreed[r] |= bit
            left = 0
            for x in range(n_pending):
                i = pending[x]
                m = top[i]
                if seen[m] >= 0:
                    continue
                for r in range(unit_starts[i], min(unit_starts[i + 1], j) if own else unit_starts[i + 1]):
                    if agreed[r] == 0:
                        seen[m] = j * n + r
                        break
                if seen[m] < 0:
                    pending[left] = i
                    left += 1
            n_pending = left
            for x in range(n_touched):
                r = touched[x]
                m = top[unit[r]]
                whole = m | agreed[r]
                agreed[r] = 0
                if seen[whole] < 0:
                    seen[whole] = j * n + r
                table[m] -= 1
                table[whole] += 1


def _units_of(ranks: U16) -> tuple[I64, I64, I64]:
    """(a row of each unit, starts, members)."""
    unit = np.empty(ranks.shape[1], dtype=np.int32)
    chosen = _units(ranks, unit)
    order = _level_order(ranks[:, chosen])
    by = np.lexsort(ranks[order[::-1]][:, chosen])
    place = np.empty(len(by), dtype=np.int32)
    place[by] = np.arange(len(by))
    starts = np.zeros(len(by) + 1, dtype=np.int64)
    members = np.empty(len(unit), dtype=np.int64)
    _by_unit(place[unit], len(by), starts, members)
    return chosen[by], starts, members


def _level_order(rows: U16) -> I64:
    return np.argsort([len(np.unique(r)) for r in rows], kind="stable")


def _by_units(codes: I32, rows: I32, own: bool) -> tuple[U64, I64, I64] | None:
    n_columns, n = codes.shape
    b = rows.shape[1]
    sizes = codes.max(axis=1) + 1
    ranks = np.empty((n_columns, n), dtype=np.uint16)
    row_ranks = np.empty((n_columns, b), dtype=np.uint16)
    n_touched = _ranked(codes, rows, RARITY, ranks, row_ranks, sizes, np.zeros(int(sizes.max()), np.int32))
    if 4 * n_touched > 0.6 * n * b:
        return None
    chosen, row_starts, row_members = _units_of(row_ranks)
    unit_ranks = row_ranks[:, chosen]
    if own:
        starts, members = row_starts, row_members
        old_ranks = ranks[:, chosen]
    else:
        unit = np.empty(n, dtype=np.int32)
        old = _units(ranks, unit)
        starts = np.zeros(len(old) + 1, dtype=np.int64)
        members = np.empty(n, dtype=np.int64)
        _by_unit(unit, len(old), starts, members)
        old_ranks = ranks[:, old]
    order = _level_order(unit_ranks)
    unit_ranks = unit_ranks[order]
    shared = _shared(unit_ranks)
    list_starts = np.zeros((b, n_columns), dtype=np.int64)
    list_ends = np.zeros((b, n_columns), dtype=np.int64)
    places = _lists(codes, members, ranks, rows, row_members, row_ranks, sizes, list_starts, list_ends)
    table = np.zeros(1 << n_columns, dtype=np.int64)
    seen = np.full(1 << n_columns, -1, dtype=np.int64)
    _count_units(
        old_ranks[order], starts, unit_ranks, row_starts, shared, order, own,
        list_starts, list_ends, places, table, seen,
    )
    found = np.flatnonzero(table)
    j, r = np.divmod(seen[found], n)
    j, r = row_members[j], members[r]
    if own:
        j, r = np.maximum(j, r), np.minimum(j, r)
    return found.astype(np.uint64)[:, None], table[found], np.stack([j, r], axis=1)


def _shared(rows: U16) -> I64:
    differ = rows[:, 1:] != rows[:, :-1]
    shared = np.zeros(rows.shape[1], dtype=np.int64)
    shared[1:] = np.where(differ.any(axis=0), differ.argmax(axis=0), len(rows))
    return shared


def _narrowed(codes: I32, rows: I32) -> tuple[U16, U16, I64]:
    """(rows uint16[n_columns, b], ids uint16[*], starts int64[n_columns + 1])."""
    n_columns = len(codes)
    narrow = rows.astype(np.uint16)
    tables: list[U16] = []
    starts = np.zeros(n_columns + 1, dtype=np.int64)
    largest = codes.max(axis=1, initial=0)
    for c in np.flatnonzero(largest >= NOTHING).tolist():
        values = np.unique(rows[c])
        values = values[values >= 0]
        ids = np.zeros(int(values[-1]) + 1 if len(values) else 1, dtype=np.uint16)
        ids[values] = np.arange(1, len(values) + 1)
        known = rows[c] >= 0
        narrow[c] = np.where(known, ids[rows[c] * known], NOTHING)
        tables.append(ids)
        starts[c + 1] = len(ids)
    return narrow, np.concatenate([np.empty(0, np.uint16), *tables]), np.cumsum(starts)


def _in_parts(
    codes: I32, live: Bool, rows: I32, own: bool, first: int, share: bool
) -> tuple[U64, I64, I64]:
    """Batches of more rows than there are narrow codes: the sum of their parts."""
    found = []
    for start in range(0, rows.shape[1], MAX_BATCH):
        part = rows[:, start : start + MAX_BATCH]
        masks, counts, witnesses = agree_counts(codes, live, part, own, first + start, share)
        found.append((masks, counts, witnesses + np.array([start, 0])))
    masks, counts, witnesses = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    order = np.lexsort(masks.T[::-1])
    masks, counts, witnesses = masks[order], counts[order], witnesses[order]
    heads = np.flatnonzero(np.append(True, (masks[1:] != masks[:-1]).any(axis=1)))[: len(masks)]
    return masks[heads], np.add.reduceat(counts, heads) if len(heads) else counts, witnesses[heads]


def block_rows(n_columns: int) -> int:
    block = max(256, BLOCK_BYTES // (4 * max(n_columns, 1)))
    return 1 << int(np.log2(block))


def agree_counts(
    codes: I32, live: Bool, rows: I32, own: bool = False, first: int = 0, share: bool = True, units: bool = False
) -> tuple[U64, I64, I64]:
    n_columns, n_batch = rows.shape
    n_words = max(1, (n_columns + 63) // 64)
    positions = np.empty(0, np.int64) if live.all() else np.flatnonzero(live)
    n_rows = len(positions) if len(positions) or not live.any() else len(live)
    if n_rows == 0 or n_batch == 0:
        return np.empty((0, n_words), np.uint64), np.empty(0, np.int64), np.empty((0, 2), np.int64)
    if units and 0 < n_columns <= DIRECT_COLUMNS:
        r = _by_units(rows if own else codes, rows, own)
        if r is not None: return r
    if n_batch > MAX_BATCH:
        return _in_parts(codes, live, rows, own, first, share)
    narrow, ids, id_starts = _narrowed(codes, rows)
    if share:
        n_values = [len(np.unique(r)) for r in narrow]
        order = np.argsort(n_values, kind="stable")
        origin = np.lexsort(narrow[order[::-1]]) if n_columns else np.arange(n_batch)
        narrow = narrow[order][:, origin]
        differ = narrow[:, 1:] != narrow[:, :-1]
        shared = np.zeros(n_batch, dtype=np.int64)
        shared[1:] = np.where(differ.any(axis=0), differ.argmax(axis=0), n_columns) if n_columns else 0
    else:
        order = np.arange(n_columns)
        origin = np.arange(n_batch)
        shared = np.zeros(n_batch, dtype=np.int64)
    arguments = (
        frozen(codes), frozen(positions), n_rows, frozen(ids), frozen(id_starts), frozen(narrow),
        frozen(origin), frozen(shared), frozen(order), own, first, block_rows(n_columns),
    )  # fmt: skip
    if n_columns <= DIRECT_COLUMNS:
        totals = np.zeros(1 << n_columns, dtype=np.int64)
        at = np.empty(1 << n_columns, dtype=np.int64)
        _count_direct(*arguments, totals, at)
        found = np.flatnonzero(totals)
        masks, counts, seen = found.astype(np.uint64)[:, None], totals[found], at[found]
    else:
        masks, counts, seen = _count_hashed(*arguments, n_words)
        by = np.lexsort(masks.T[::-1])
        masks, counts, seen = masks[by], counts[by], seen[by]
    j, r = np.divmod(seen, n_rows)
    return masks, counts, np.stack([j, positions[r] if len(positions) else r], axis=1)
