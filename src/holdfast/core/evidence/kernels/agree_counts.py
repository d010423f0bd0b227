"""Counted agree sets: all pairs of a batch's rows with a table's rows, by what they agree on.

The middle term of the delta rule, agree(R + D) = agree(R) + cross(R, D) + agree(D), and with `within`
the last: a batch costs |R| * |D| pairs, never |R| squared. Rows are columns of a code matrix, as in
`holdfast.core.evidence.kernels.pairs`; masks are as in `holdfast.core.rows.kernels.masks`.

An agree set is the key of a pair in `holdfast.core.evidence.kernels.compared_pairs`, with one comparison for
each column, equal or not. The paper (DynASt, sec. 4) keeps evidence vectors per attribute value, and
multiplies them so that batch rows with an equal prefix share the product (its algorithm 3). We share the same
work: *prefixes*, as all comparisons of pairs do. And for large batches of up to 16 columns most pairs are
left out. A value is frequent if at least one row in RARITY has it; how many old rows agree with a batch row
on which frequent values is counted

- by a *cube* (`frequency_cube.py`), where its cells are few: whatever the number of rows,
- or by *units*: rows that are equal but for rare values are one, on either side, and units are compared with
  units. 530 M pairs of 15 columns in 0.33 s, on one core.

Then each batch row is put right: the lists of its rare values name the few old rows that it agrees with on
more, and each of these pairs moves from the one mask to the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.evidence.kernels.compared_pairs import (
    Comparisons,
    all_pairs,
    ascending,
    extend,
    level_order,
    shared_levels,
)
from holdfast.core.evidence.kernels.frequency_cube import RARE, Cube, counted_by_cube, cube_for
from holdfast.core.rows.kernels.encode import frozen, postings
from holdfast.core.rows.kernels.masks import unique_masks

I16 = NDArray[np.int16]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
# Masks uint64[k, n_words], counts int64[k], witnesses int64[k, 2].
Counted = tuple[U64, I64, I64]

# Cubes and units are counted in a table of all masks, which has 512 KB for this many columns.
UNITS_COLUMNS = 16
# The half rank of a batch's value that no old row has.
NOTHING = 1
# Of frequent values there are at most this many in a column; 62 at most (`_pack`). All pairs of
# adult and claims take 0.29 s and 1.4 s with 16, 0.33 s and 0.93 s with 24, 0.40 s and 0.94 s with 32.
RARITY = 24
# Both are tried if a batch has so many rows for each column: to rank values costs as much as such a batch.
UNITS_FROM = 20
# And used if at most one pair in so many is put right afterwards, which costs some 5 ns,
MAX_TOUCHED = 8
# and, of units, if at most one pair of them in so many pairs of rows is left.
MAX_UNITS = 2


# --- Cubes, and units: rows that are equal but for rare values -------------------------------------------


@njit(cache=True, nogil=True)
def _ranked(codes, rows, rarity, ranks, row_ranks, sizes, counts):  # type: ignore[no-untyped-def]
    """How many old rows the rare values of the batch have, added up over batch rows and columns.

    IN codes int32[n_columns, n], rows int32[n_columns, b], -1 agreeing with nothing; IN sizes
    int64[n_columns]: one more than the largest code; counts int32[*]: scratch. OUT ranks int16[n_columns, n]:
    1, 2, ... for frequent values, else 0; OUT row_ranks int16[n_columns, b]: the same, else RARE.
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
            row_ranks[c, j] = RARE
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
def _pack(ranks, out):  # type: ignore[no-untyped-def]
    """OUT out uint64[n, 2], preset to 0: equal where IN ranks int16[n_columns, n] are, at most 20 columns."""
    for c in range(ranks.shape[0]):
        shift = np.uint64(6 * (c % 10))
        for i in range(ranks.shape[1]):
            out[i, c // 10] |= np.uint64(ranks[c, i] & 63) << shift


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
            if 0 <= v < size and row_ranks[c, j] == RARE:
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
    ranks, unit_starts, row_ranks, row_starts, shared, order, within, starts, ends, places, table, witnesses
):
    """OUT table, witnesses int64[2 ** n_columns], preset to 0 and -1: how many pairs have a mask, and one.

    Rows go by their place among all members; a pair is j * n + i. IN ranks int16[n_columns, n_units],
    row_ranks int16[n_columns, m_units]: levels of the units, the latter sorted; IN shared, order
    int64[n_columns]: see `shared_levels`, the column of each level; IN unit_starts, row_starts: where the
    members of each begin; IN starts, ends, places: see `_lists`. With `within` both sides are the same, and a
    pair counts if its old row has the lower place.

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
            extend(stack[d], ranks[d], row_ranks[d, u], order[d], False, False, n_units, stack[d + 1])
        weight = row_starts[u + 1] - row_starts[u]
        n_pending = 0
        for i in range(u if within else n_units):
            m = top[i]
            if witnesses[m] < 0:
                pending[n_pending] = i
                n_pending += 1
            table[m] += weight * weights[i]
        if within and weight > 1:
            table[top[u]] += weight * (weight - 1) // 2
            pending[n_pending] = u
            n_pending += 1
        for j in range(row_starts[u], row_starts[u + 1]):
            n_touched = 0
            for c in range(n_levels):
                bit = np.uint16(1 << c)
                for x in range(starts[j, c], ends[j, c]):
                    r = places[x]
                    if within and r >= j:
                        break
                    touched[n_touched] = r
                    n_touched += agreed[r] == 0
                    agreed[r] |= bit
            n_still = 0
            for x in range(n_pending):
                i = pending[x]
                m = top[i]
                if witnesses[m] >= 0:
                    continue
                for r in range(unit_starts[i], min(unit_starts[i + 1], j) if within else unit_starts[i + 1]):
                    if agreed[r] == 0:
                        witnesses[m] = j * n + r
                        break
                if witnesses[m] < 0:
                    pending[n_still] = i
                    n_still += 1
            n_pending = n_still
            for x in range(n_touched):
                r = touched[x]
                m = top[unit[r]]
                whole = m | agreed[r]
                agreed[r] = 0
                if witnesses[whole] < 0:
                    witnesses[whole] = j * n + r
                table[m] -= 1
                table[whole] += 1


def _units_of(ranks: I16, order: I64 | None) -> tuple[I64, I64, I64]:
    """(first, starts, members): a row of each unit, and its rows; units sorted by their levels if given."""
    packed = np.zeros((ranks.shape[1], 2), dtype=np.uint64)
    _pack(frozen(ranks), packed)
    first, unit = unique_masks(packed)
    if order is not None:
        by = np.lexsort(ranks[order[::-1]][:, first])
        place = np.empty(len(by), dtype=np.int64)
        place[by] = np.arange(len(by))
        first, unit = first[by], place[unit]
    starts, members = postings(unit.astype(np.int32), len(first) - 1)
    return first, starts.astype(np.int64), members.astype(np.int64)


class _Ranked(NamedTuple):
    """Rows and a batch of them, all live: their codes, the ranks of these, and the sizes of dictionaries."""

    codes: I32
    rows: I32
    ranks: I16
    row_ranks: I16
    sizes: I64

    def lists(self, members: I64, row_members: I64) -> tuple[I64, I64, I32]:
        """(starts, ends, places): see `_lists`."""
        starts = np.zeros(self.rows.shape[::-1], dtype=np.int64)
        ends = np.zeros(self.rows.shape[::-1], dtype=np.int64)
        places = _lists(self.codes, members, self.rows, row_members, self.row_ranks, self.sizes, starts, ends)
        return starts, ends, places


def _counts_by_frequency(codes: I32, rows: I32, within: bool) -> Counted | None:
    """The result by a cube or by units, or None if neither would pay. `within`: codes are the rows' own."""
    n_columns, n = codes.shape
    n_pairs = n * rows.shape[1]
    sizes = codes.max(axis=1).astype(np.int64) + 1
    ranks = np.empty((n_columns, n), dtype=np.int16)
    row_ranks = np.empty(rows.shape, dtype=np.int16)
    scratch = np.empty(int(sizes.max()), dtype=np.int32)
    ranked = _Ranked(frozen(codes), frozen(rows), ranks, row_ranks, sizes)
    if _ranked(ranked.codes, ranked.rows, RARITY, ranks, row_ranks, sizes, scratch) * MAX_TOUCHED > n_pairs:
        return None
    cube = cube_for(ranks.max(axis=1).astype(np.int64), n, rows.shape[1])
    if cube is None:
        return _counts_by_units(ranked, within)
    return _halved(codes, rows) if within else _counts_by_cube(ranked, cube)


def _counts_by_cube(ranked: _Ranked, cube: Cube) -> Counted:
    n = ranked.codes.shape[1]
    lists = ranked.lists(np.arange(n), np.arange(ranked.rows.shape[1]))
    table, witnesses = counted_by_cube(cube, *ranked[:4], lists)
    masks = np.flatnonzero(table)
    pairs = np.stack(np.divmod(witnesses[masks], n), axis=1)
    return masks.astype(np.uint64)[:, None], table[masks], pairs


def _counts_by_units(ranked: _Ranked, within: bool) -> Counted | None:
    """The result by units, or None if they would not pay."""
    _, rows, ranks, row_ranks, _ = ranked
    n_columns, n = ranks.shape
    order = level_order(row_ranks)
    row_first, row_starts, row_members = _units_of(row_ranks, order)
    first, starts, members = (row_first, row_starts, row_members) if within else _units_of(ranks, None)
    if len(first) * len(row_first) * MAX_UNITS > n * rows.shape[1]:
        return None
    levels = np.take(row_ranks[order], row_first, axis=1)
    table = np.zeros(1 << n_columns, dtype=np.int64)
    witnesses = np.full(1 << n_columns, -1, dtype=np.int64)
    _count_units(
        np.take(ranks[order], first, axis=1), starts, levels, row_starts, shared_levels(levels), order,
        within, *ranked.lists(members, row_members), table, witnesses,
    )  # fmt: skip
    masks = np.flatnonzero(table)
    j, r = np.divmod(witnesses[masks], n)
    j, r = row_members[j], members[r]
    if within:
        j, r = np.maximum(j, r), np.minimum(j, r)
    return masks.astype(np.uint64)[:, None], table[masks], np.stack([j, r], axis=1)


def _halved(codes: I32, rows: I32) -> Counted:
    """The pairs of live rows among themselves: those of either half, and of one half with the other."""
    half = rows.shape[1] // 2
    live = np.ones(rows.shape[1], dtype=np.bool_)
    lower = agree_counts(codes[:, :half], live[:half], rows[:, :half], within=True)
    upper = agree_counts(codes[:, half:], live[half:], rows[:, half:], within=True)
    cross = agree_counts(codes[:, :half], live[:half], rows[:, half:])
    upper = upper[0], upper[1], upper[2] + half
    return _merged(_merged(lower, upper), (cross[0], cross[1], cross[2] + np.array([half, 0])))


def _large_batch(codes: I32, live: Bool, rows: I32, within: bool, first: int) -> Counted | None:
    """The result by frequency, or None if it would not pay: pairs with rows before the batch, and its own."""
    if within:
        last = first + rows.shape[1]
        batch_codes = codes[:, first:last]
        inside = _counts_by_frequency(batch_codes, rows, True) if live[first:last].all() else None
        if inside is None or first == 0:
            return inside
        before = agree_counts(codes[:, :first], live[:first], rows)
        return _merged(before, (inside[0], inside[1], inside[2] + np.array([0, first])))
    if live.all():
        return _counts_by_frequency(codes, rows, False)
    positions = np.flatnonzero(live)
    counted = _counts_by_frequency(codes[:, positions], rows, False)
    if counted is not None:
        counted[2][:, 1] = positions[counted[2][:, 1]]
    return counted


def _merged(left: Counted, right: Counted) -> Counted:
    """The sum of two results of masks of one word: equal masks become one."""
    masks, heads, inverse = np.unique(
        np.concatenate([left[0], right[0]])[:, 0], return_index=True, return_inverse=True
    )
    counts = np.zeros(len(masks), dtype=np.int64)
    np.add.at(counts, inverse, np.concatenate([left[1], right[1]]))
    return masks[:, None], counts, np.concatenate([left[2], right[2]])[heads]


# --- All pairs -------------------------------------------------------------------------------------------


def agree_counts(
    codes: I32, live: Bool, rows: I32, within: bool = False, first: int = 0, share: bool = True
) -> Counted:
    """(masks, counts, witnesses): the agree sets of all pairs of a batch row with a live row.

    IN codes int32[n_columns, n], 0 for NULL; IN live bool[n]; IN rows int32[n_columns, b]: the batch in the
    same codes, -1 where it agrees with nothing (a new value, or NULL where NULLs are distinct). OUT masks
    uint64[k, n_words], all different, ascending by words, the first most significant; counts int64[k],
    which add up to the number of pairs; witnesses int64[k, 2]: (batch row, row), any one pair of each mask.

    With `within` batch row j is row first + j of codes (-1 for every NULL of a column or for none), paired
    only with the live rows before it: parts of a table, one after the other, see each of its pairs once.
    `share` off compares every batch row with every row: it shows in a benchmark what sharing is worth.

    Cost: that of `all_pairs`, unless units leave most pairs out; codes should be dense, as tables by code are
    made.

    >>> codes = np.array([[1, 2, 1], [3, 2, 1], [1, 2, 2]], dtype=np.int32)
    >>> masks, counts, witnesses = agree_counts(codes, np.ones(3, dtype=np.bool_), codes, within=True)
    >>> masks[:, 0].tolist(), counts.tolist(), witnesses.tolist()
    ([0, 1, 4], [1, 1, 1], [[1, 0], [2, 0], [2, 1]])
    """
    n_columns, n_batch = rows.shape
    large = n_batch >= max(2, UNITS_FROM * n_columns) and live.any()
    if share and 0 < n_columns <= UNITS_COLUMNS and large:
        counted = _large_batch(codes, live, rows, within, first)
        if counted is not None:
            return counted
    columns = np.arange(n_columns)
    compared = Comparisons(columns, np.zeros(n_columns, dtype=np.bool_), columns, n_columns)
    values = np.where(rows < 0, np.int32(NOTHING), 2 * rows)
    pairs = all_pairs(codes, live, values, compared, within, first, share)
    masks, counts, numbers = pairs.entries()
    if not pairs.direct:
        order = ascending(masks, n_columns)
        masks, counts, numbers = masks[order], counts[order], numbers[order]
    return masks, counts, np.stack(pairs.rows_of(numbers), axis=1)


def warm_up() -> None:
    # Two values, each of half of the rows: few units. Of one column a cube has few cells, of seven too many.
    for n_columns in (1, 7):
        codes = np.tile(np.repeat(np.arange(2, dtype=np.int32), UNITS_FROM * n_columns), (n_columns, 1))
        live = np.ones(codes.shape[1], dtype=np.bool_)
        agree_counts(codes, live, codes)
        agree_counts(codes, live, codes, within=True)
