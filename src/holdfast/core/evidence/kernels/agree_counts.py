"""Counted agree sets: all pairs of a batch's rows with a table's rows, by what they agree on.

The middle term of the delta rule, agree(R + D) = agree(R) + cross(R, D) + agree(D), and with `own` the
last: a batch costs |R| * |D| pairs, never |R| squared. Rows are columns of a code matrix, as in
`holdfast.core.evidence.kernels.pairs`; masks are as in `holdfast.core.rows.kernels.masks`.

The paper (DynASt, sec. 4) keeps evidence vectors per attribute value, and multiplies them so that batch rows
with an equal prefix share the product (its algorithm 3). We share the same work, in two ways:

- *Prefixes.* The batch is sorted, columns of fewest values first. The agree sets of a batch row with a block
  of old rows are built column by column, one vector loop each, and every prefix stays on a stack: the next
  batch row starts from the first column on which it differs. A mask is cut into pieces of 16 columns, so
  that a vector holds as many rows as possible; a level of the stack is one piece of the block's masks.
- *Units.* A value is frequent if at least one row in RARITY has it. Rows that are equal but for rare
  values are one unit, on either side, and units are compared with units. Then each batch row is put right:
  the lists of its rare values name the few old rows that it agrees with on more, and each of these pairs
  moves from the one mask to the other. Used for large batches of up to 16 columns, where it leaves out
  most pairs: 530 M pairs of 15 columns in 0.33 s, 5,200 M of 10 columns in 0.93 s, on one core.

Masks are counted where they fall: up to 16 columns in a table of all masks, beyond in a hash table. A pair
costs 1.3 to 2 ns (15 columns, the count being most of it; several tables in turns, against stalls of
stores to one place, were slower), 5 ns with the hash table. Nothing is as large as the number of pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix

U16 = NDArray[np.uint16]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
# Masks uint64[k, n_words], counts int64[k], witnesses int64[k, 2].
Counted = tuple[U64, I64, I64]

# A table of all masks has 512 KB for this many columns; it is also the width of a piece.
DIRECT_COLUMNS = 16
# A block of old rows: its codes and the stack stay in a core's second cache.
BLOCK_BYTES = 1 << 18
# The narrow code of a batch's value that no old row has.
NOTHING = 0xFFFF
MAX_BATCH = NOTHING - 1
# Of frequent values there are at most this many in a column; 62 at most (`_units`). All pairs of
# adult and claims take 0.29 s and 1.4 s with 16, 0.33 s and 0.93 s with 24, 0.40 s and 0.94 s with 32.
RARITY = 24
# Units are tried if a batch has so many rows for each column: to find them costs as much as such a batch.
UNITS_FROM = 20
# And used if at most one pair in so many is put right afterwards, which costs some 5 ns,
MAX_TOUCHED = 8
# and at most one pair of units in so many pairs of rows is left.
MAX_UNITS = 2

_ZERO = np.uint16(0)


# --- Blocks of old rows, prefixes of batch rows ----------------------------------------------------------


@njit(cache=True, nogil=True)
def _narrow(codes, positions, start, n, column, ids, out):  # type: ignore[no-untyped-def]
    """OUT out uint16[n]: a column of n rows from `start` on, as narrow codes (see `_narrowed`).

    IN positions int64[*]: the rows, or none if all are live.
    """
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
    """OUT out uint16[n]: the prefix, with `bit` where the column has the value."""
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
    """OUT table int64[2 ** n_columns], preset to 0: pairs by mask; OUT seen: a pair of each, j * n_rows + i.

    IN rows uint16[n_columns, b]: the sorted batch, columns in the order of levels; IN origin int64[b]: the
    place of each row before; IN shared int64[b]: on how many levels a row equals the one before it; IN
    order int64[n_columns]: the column of each level.
    """
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
        valid = 0  # as many levels of the stack belong to the row at hand
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
    """Count n masks into the table of all masks; the first of each is seen."""
    for i in range(n):
        m = masks[i]
        if table[m] == 0:
            seen[m] = pair + i
        table[m] += weight


@njit(cache=True, nogil=True)
def _count_hashed(  # type: ignore[no-untyped-def]
    codes, positions, n_rows, ids, id_starts, rows, origin, shared, order, own, first, block, n_words
):
    """(masks, counts, seen), not sorted; arguments as of `_count_direct`.

    A slot of the table is (count, pair, words of the mask), empty if the count is 0: one miss of the cache.
    """
    n_levels = order.shape[0]
    n_batch = origin.shape[0]
    stack = np.zeros((n_levels + 1, block), dtype=np.uint16)
    local = np.empty((n_levels, block), dtype=np.uint16)
    # The level before, and at the end the last, that belongs to the same piece; 0 is the empty one.
    before = np.zeros(n_levels, dtype=np.int64)
    last = np.zeros(4 * n_words, dtype=np.int64)
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
        valid = 0  # as many levels of the stack belong to the row at hand
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
                p = 4 * w
                _assemble(
                    stack[last[p]], stack[last[p + 1]], stack[last[p + 2]], stack[last[p + 3]],
                    limit, w == 0, words[w], hashes,
                )  # fmt: skip
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
def _assemble(a, b, c, d, n, fresh, word, hashes):  # type: ignore[no-untyped-def]
    """OUT word uint64[n]: four pieces as one word; INOUT hashes uint64[n]: it is folded in."""
    for i in range(n):
        m = (
            np.uint64(a[i])
            | (np.uint64(b[i]) << np.uint64(16))
            | (np.uint64(c[i]) << np.uint64(32))
            | (np.uint64(d[i]) << np.uint64(48))
        )
        word[i] = m
        hashes[i] = _fold(np.uint64(0) if fresh else hashes[i], m)


@njit(cache=True, nogil=True, inline="always")
def _fold(h, word):  # type: ignore[no-untyped-def]
    """One more word of a mask into its hash, of which the high bits count."""
    h = (h ^ word) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


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
    """Count n masks of one word into a table with room for them; the number of new ones."""
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
    """The same for masks of any width: IN words uint64[n_words, n]."""
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


# --- Units: rows that are equal but for rare values -------------------------------------------------------


@njit(cache=True, nogil=True)
def _ranked(codes, rows, rarity, ranks, row_ranks, sizes, counts):  # type: ignore[no-untyped-def]
    """How many old rows the rare values of the batch have, added up over batch rows and columns.

    IN codes int32[n_columns, n], rows int32[n_columns, b], -1 agreeing with nothing; IN sizes
    int64[n_columns]: one more than the largest code; counts int32[*]: scratch. OUT ranks uint16[n_columns,
    n]: 1, 2, ... for frequent values, else 0; OUT row_ranks uint16[n_columns, b]: the same, else NOTHING.
    """
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
    """The first row of each unit: int64[n_units]. OUT unit int32[n]: the unit of each row.

    IN ranks uint16[n_columns, n]: at most 20 columns, ranks below 63 or NOTHING, so that a row is two words.
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
    """OUT starts int64[n_units + 1], preset to 0, members int64[n]: the rows of each unit, ascending."""
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
def _lists(codes, members, rows, row_members, row_ranks, sizes, starts, ends):  # type: ignore[no-untyped-def]
    """Lists of old rows, int32[*], for the rare values of a batch.

    Rows of both sides go by their place in `members` and `row_members`. OUT starts, ends int64[b, n_columns],
    preset to 0: the list of each batch row and column, ascending.
    """
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
    """OUT table, seen as of `_count_direct`, seen preset to -1; rows go by their place among all members.

    IN ranks uint16[n_columns, n_units], row_ranks uint16[n_columns, m_units]: levels of the units, the
    latter sorted; IN unit_starts, row_starts: where the members of each begin; IN starts, ends, places: see
    `_lists`. With `own` both sides are the same, and a pair counts if its old row has the lower place.

    A mask gets its witness only from a pair that nothing is to be put right about: `pending` are the units
    whose mask has none. Rows that fail here are touched anyway, so the search costs no more than the lists.
    """
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


def _level_order(rows: U16) -> I64:
    """The columns, those with the fewest values first."""
    ordered = np.sort(rows, axis=1)
    return np.argsort((ordered[:, 1:] != ordered[:, :-1]).sum(axis=1), kind="stable")


def _shared(levels: U16) -> I64:
    """int64[b]: on how many levels each of the sorted rows uint16[n_columns, b] equals the one before it."""
    shared = np.zeros(levels.shape[1], dtype=np.int64)
    differ = np.ones((len(levels) + 1, len(shared)), dtype=np.bool_)
    np.not_equal(levels[:, 1:], levels[:, :-1], out=differ[:-1, 1:])
    if len(shared):
        shared[:] = differ.argmax(axis=0)
    return shared


def _units_of(ranks: U16, order: I64 | None) -> tuple[I64, I64, I64]:
    """(first, starts, members): a row of each unit, and its rows; units sorted by their levels if given."""
    unit = np.empty(ranks.shape[1], dtype=np.int32)
    first = _units(ranks, unit)
    if order is not None:
        by = np.lexsort(ranks[order[::-1]][:, first])
        place = np.empty(len(by), dtype=np.int32)
        place[by] = np.arange(len(by))
        first, unit = first[by], place[unit]
    starts = np.zeros(len(first) + 1, dtype=np.int64)
    members = np.empty(len(unit), dtype=np.int64)
    _by_unit(unit, len(first), starts, members)
    return first, starts, members


def _counts_by_units(codes: I32, rows: I32, own: bool) -> Counted | None:
    """The result by units, or None if they would not pay. All rows are live; with `own`, codes are rows."""
    n_columns, n = codes.shape
    n_pairs = n * rows.shape[1]
    sizes = codes.max(axis=1).astype(np.int64) + 1
    ranks = np.empty((n_columns, n), dtype=np.uint16)
    row_ranks = np.empty(rows.shape, dtype=np.uint16)
    scratch = np.empty(int(sizes.max()), dtype=np.int32)
    if _ranked(codes, rows, RARITY, ranks, row_ranks, sizes, scratch) * MAX_TOUCHED > n_pairs:
        return None
    order = _level_order(row_ranks)
    row_first, row_starts, row_members = _units_of(row_ranks, order)
    first, starts, members = (row_first, row_starts, row_members) if own else _units_of(ranks, None)
    if len(first) * len(row_first) * MAX_UNITS > n_pairs:
        return None
    levels = np.take(row_ranks[order], row_first, axis=1)
    list_starts = np.zeros(rows.shape[::-1], dtype=np.int64)
    list_ends = np.zeros(rows.shape[::-1], dtype=np.int64)
    places = _lists(codes, members, rows, row_members, row_ranks, sizes, list_starts, list_ends)
    table = np.zeros(1 << n_columns, dtype=np.int64)
    seen = np.full(1 << n_columns, -1, dtype=np.int64)
    _count_units(
        np.take(ranks[order], first, axis=1), starts, levels, row_starts, _shared(levels), order, own,
        list_starts, list_ends, places, table, seen,
    )  # fmt: skip
    found = np.flatnonzero(table)
    j, r = np.divmod(seen[found], n)
    j, r = row_members[j], members[r]
    if own:
        j, r = np.maximum(j, r), np.minimum(j, r)
    return found.astype(np.uint64)[:, None], table[found], np.stack([j, r], axis=1)


def _large_batch(codes: I32, live: Bool, rows: I32, own: bool, first: int) -> Counted | None:
    """The result by units, or None if they would not pay: pairs with rows before the batch, and its own."""
    if own:
        last = first + rows.shape[1]
        inside = _counts_by_units(frozen(rows), frozen(rows), True) if live[first:last].all() else None
        if inside is None or first == 0:
            return inside
        before = agree_counts(codes[:, :first], live[:first], rows)
        return _merged([before, (inside[0], inside[1], inside[2] + np.array([0, first]))])
    if live.all():
        return _counts_by_units(frozen(codes), frozen(rows), False)
    positions = np.flatnonzero(live)
    found = _counts_by_units(frozen(codes[:, positions]), frozen(rows), False)
    if found is not None:
        found[2][:, 1] = positions[found[2][:, 1]]
    return found


# --- All pairs -------------------------------------------------------------------------------------------


def _narrowed(codes: I32, rows: I32) -> tuple[U16, U16, I64]:
    """(narrow uint16[n_columns, b], ids uint16[*], starts int64[n_columns + 1]): the batch in 16 bits.

    Codes that fit stay as they are, -1 becomes NOTHING. In other columns the values of the batch are
    numbered from 1 on: code v of column c is ids[starts[c] + v], 0 or past the end if the batch has it not.
    """
    narrow = rows.astype(np.uint16)
    tables = [np.empty(0, dtype=np.uint16)]
    sizes = np.zeros(len(codes) + 1, dtype=np.int64)
    largest = np.maximum(codes.max(axis=1, initial=0), rows.max(axis=1, initial=0))
    for c in np.flatnonzero(largest >= NOTHING).tolist():
        values, inverse = np.unique(rows[c], return_inverse=True)
        n_nothing = int(np.searchsorted(values, 0))
        ids = np.zeros(max(1, int(values[-1]) + 1), dtype=np.uint16)
        ids[values[n_nothing:]] = np.arange(1, len(values) - n_nothing + 1)
        narrow[c] = np.where(inverse < n_nothing, NOTHING, inverse + 1 - n_nothing)
        tables.append(ids)
        sizes[c + 1] = len(ids)
    return narrow, np.concatenate(tables), np.cumsum(sizes)


def block_rows(n_columns: int) -> int:
    """How many old rows are compared with the whole batch before the next ones."""
    return max(256, 1 << (BLOCK_BYTES // (4 * max(n_columns, 1))).bit_length() - 1)


@njit(cache=True, nogil=True)
def _settle(masks, order):  # type: ignore[no-untyped-def]
    """INOUT order int64[k]: sorted by the first word, then by all. Shell's sort in runs of equal words."""
    n_words = masks.shape[1]
    low = 0
    while low < order.shape[0]:
        high = low + 1
        while high < order.shape[0] and masks[order[high], 0] == masks[order[low], 0]:
            high += 1
        gap = 1
        while 3 * gap < high - low:
            gap = 3 * gap + 1
        while gap > 0:
            for i in range(low + gap, high):
                k = order[i]
                j = i
                while j - gap >= low:
                    w = 1
                    while w < n_words - 1 and masks[order[j - gap], w] == masks[k, w]:
                        w += 1
                    if masks[order[j - gap], w] <= masks[k, w]:
                        break
                    order[j] = order[j - gap]
                    j -= gap
                order[j] = k
            gap //= 3
        low = high


def _ascending(masks: U64) -> I64:
    """The order of masks by their words, the first most significant; several times faster than lexsort."""
    order = np.argsort(masks[:, 0])
    if masks.shape[1] > 1:
        _settle(masks, order)
    return order


def _merged(parts: list[Counted]) -> Counted:
    """The sum of several results: equal masks become one."""
    masks, counts, witnesses = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    order = _ascending(masks)
    masks, counts, witnesses = masks[order], counts[order], witnesses[order]
    new = np.ones(len(masks), dtype=np.bool_)
    new[1:] = (masks[1:] != masks[:-1]).any(axis=1)
    heads = np.flatnonzero(new)
    return masks[heads], np.add.reduceat(counts, heads) if len(heads) else counts, witnesses[heads]


def agree_counts(
    codes: I32, live: Bool, rows: I32, own: bool = False, first: int = 0, share: bool = True
) -> Counted:
    """(masks, counts, witnesses): the agree sets of all pairs of a batch row with a live row.

    IN codes int32[n_columns, n], 0 for NULL; IN live bool[n]; IN rows int32[n_columns, b]: the batch in the
    same codes, -1 where it agrees with nothing (a new value, or NULL where NULLs are distinct). OUT masks
    uint64[k, n_words], all different, ascending by words, the first most significant; counts int64[k],
    which add up to the number of pairs; witnesses int64[k, 2]: (batch row, row), any one pair of each mask.

    With `own` batch row j is row first + j of codes (-1 for every NULL of a column or for none), paired only
    with the live rows before it: parts of a table, one after the other, see each of its pairs once.
    `share` off compares every batch row with every row: it shows in a benchmark what sharing is worth.

    Cost: see above; codes should be dense, as tables by code are made.

    >>> codes = np.array([[1, 2, 1], [3, 2, 1], [1, 2, 2]], dtype=np.int32)
    >>> masks, counts, witnesses = agree_counts(codes, np.ones(3, dtype=np.bool_), codes, own=True)
    >>> masks[:, 0].tolist(), counts.tolist(), witnesses.tolist()
    ([0, 1, 4], [1, 1, 1], [[1, 0], [2, 0], [2, 1]])
    """
    n_columns, n_batch = rows.shape
    n_words = max(1, (n_columns + 63) // 64)
    n_live = int(np.count_nonzero(live))
    if n_live == 0 or n_batch == 0:
        return np.empty((0, n_words), np.uint64), np.empty(0, np.int64), np.empty((0, 2), np.int64)
    if share and 0 < n_columns <= DIRECT_COLUMNS and n_batch >= UNITS_FROM * n_columns:
        found = _large_batch(codes, live, rows, own, first)
        if found is not None:
            return found
    if n_batch > MAX_BATCH:
        parts = []
        for start in range(0, n_batch, MAX_BATCH):
            part = rows[:, start : start + MAX_BATCH]
            masks, counts, witnesses = _all_pairs(codes, live, part, own, first + start, share)
            parts.append((masks, counts, witnesses + np.array([start, 0])))
        return _merged(parts)
    return _all_pairs(codes, live, rows, own, first, share)


def _all_pairs(codes: I32, live: Bool, rows: I32, own: bool, first: int, share: bool) -> Counted:
    """The result without units, for at most MAX_BATCH batch rows and at least one."""
    n_columns, n_batch = rows.shape
    positions = np.empty(0, np.int64) if live.all() else np.flatnonzero(live)
    n_rows = len(positions) or len(live)
    narrow, ids, id_starts = _narrowed(codes, rows)
    order, origin = np.arange(n_columns), np.arange(n_batch)
    shared = np.zeros(n_batch, dtype=np.int64)
    if share and n_columns:
        order = _level_order(narrow)
        narrow = narrow[order]
        origin = np.lexsort(narrow[::-1])
        narrow = narrow[:, origin]
        shared = _shared(narrow)
    arguments = (
        frozen(codes), frozen(positions), n_rows, frozen(ids), frozen(id_starts), frozen(narrow),
        frozen(origin), frozen(shared), frozen(order), own, first, block_rows(n_columns),
    )  # fmt: skip
    if n_columns <= DIRECT_COLUMNS:
        table = np.zeros(1 << n_columns, dtype=np.int64)
        seen = np.empty(1 << n_columns, dtype=np.int64)
        _count_direct(*arguments, table, seen)
        found = np.flatnonzero(table)
        masks, counts, seen = found.astype(np.uint64)[:, None], table[found], seen[found]
    else:
        masks, counts, seen = _count_hashed(*arguments, max(1, (n_columns + 63) // 64))
        ascending = _ascending(masks)
        masks, counts, seen = masks[ascending], counts[ascending], seen[ascending]
    j, r = np.divmod(seen, n_rows)
    return masks, counts, np.stack([j, positions[r] if len(positions) else r], axis=1)


def warm_up() -> None:
    for n_columns in (2, 17, 65):
        codes = np.zeros((n_columns, 3), dtype=np.int32)
        agree_counts(codes, np.ones(3, dtype=np.bool_), codes, own=True)
    # Two values, each of half of the rows: few units.
    codes = np.repeat(np.arange(2, dtype=np.int32), UNITS_FROM)[None]
    agree_counts(codes, np.ones(2 * UNITS_FROM, dtype=np.bool_), codes)
    agree_counts(codes, np.ones(2 * UNITS_FROM, dtype=np.bool_), codes, own=True)
