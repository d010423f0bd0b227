"""Violations of a rule: how many pairs of rows satisfy all of some predicates, and a few of them.

*Left* rows t are compared with *right* rows s; predicate p is `t.x_p op_p s.y_p`. Right values are codes,
left values half ranks in the codes of the column that they are compared with (as in `order_index`; 0 is
NULL). So every operator asks for one range of codes, low <= y < high, or for all codes but these (`!=`), NULL
being the code 0: from there on no operator and no NULL is a special case (`code_ranges`).

Pairs may be a share of all pairs of rows, so they are counted, not listed. There are two ways.

*Scan*: left rows in blocks of 512, one bit each. Along the codes of a right column the left rows that ask
for a code change only at the ends of their ranges, so a block has at most 1,025 different sets of them for a
predicate; they are tabulated. A right row then costs one look-up a predicate, a conjunction of eight words
and their popcount: 512 pairs in a few nanoseconds, whatever the operators. Blocks with few left rows are
compared one by one. It is what batches take, and small groups.

*Sweep*: n log n, for at most two predicates besides equalities. Right rows are inserted by their first value
into a Fenwick tree over their second; a left row asks the tree where its first range begins and where it
ends. Equalities divide the rows into groups, each with a tree of its own. A third `!=` is counted as (all)
minus (equal); a third inequality by a tree over its codes: right rows are halved, left rows that ask for a
whole half leave the predicate out, those that ask for a part of it go on. Where few pairs are left, they are
scanned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import factorize, frozen
from holdfast.core.rows.kernels.masks import word_lowest, word_popcount
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Pairs that are told.
SAMPLES = 3
# Above every code.
TOP = np.int32(0x7FFFFFFF)
# Left rows of a block: one vector of words. Blocks of fewer than FEW rows are compared one by one.
BLOCK, WORDS = 512, 8
FEW = 12
# Codes are looked up among the ends of ranges by their highest bits: as many as stay in the first cache.
BUCKETS = 1 << 13
# Right rows whose conjunctions are built together: they stay in the first cache.
CHUNK = 256
# Matches that are looked at for pairs without a row in common.
LOOKED_AT = 4096
# Counting sort, and numbering tuples by their product, is used up to so many places a row.
PLACES_PER_ROW = 4

# What things cost, in nanoseconds, measured on 1 M rows: to choose between ways to the same answer.
SCAN_ROW, SCAN_PREDICATE, SCAN_TABLE = 1.0, 6.0, 2e4  # a right row and block; with each predicate; a table
PAIR_PREDICATE = 0.3  # to compare two rows on a predicate
SWEEP_ROW = 250.0  # a row of either side
HALVED_TO = 1 << 16  # rows that are rather scanned than halved once more


class Matches(NamedTuple):
    """total: the number of pairs; pairs int64[k, 2]: (left row, position of the right row) of some."""

    total: int
    pairs: I64


class Ranges(NamedTuple):
    """What left rows ask for: codes low <= y < high, or where negated all others.

    low, high int32[n_predicates, n]; negated bool[n_predicates].
    """

    low: I32
    high: I32
    negated: Bool


def code_ranges(half_ranks: I32, ops: Sequence[int]) -> Ranges:
    """The ranges of codes y with `half_rank op y`. IN half_ranks int32[n_predicates, n]; ops: EQ to GE.

    >>> code_ranges(np.array([[4, 3, 0]], np.int32), [LE])[:2]
    (array([[2, 2, 0]], dtype=int32), array([[2147483647, 2147483647,          1]], dtype=int32))
    """
    low, high = np.empty_like(half_ranks), np.empty_like(half_ranks)
    for p, op in enumerate(ops):
        x = half_ranks[p]
        at, above = (x + 1) >> 1, (x >> 1) + 1  # the first code that is not below x, the first above it
        if op in (EQ, NE):
            low[p], high[p] = at, above
            continue
        if op == LT:
            low[p], high[p] = above, TOP
        elif op == LE:
            low[p], high[p] = at, TOP
        elif op == GT:
            low[p], high[p] = 1, at
        elif op == GE:
            low[p], high[p] = 1, above
        else:
            raise ValueError(f"there is no operator number {op}")
        null = x == 0
        low[p, null] = 0
        high[p, null] = 1 if op in (LE, GE) else 0
    return Ranges(low, high, np.array([op == NE for op in ops], dtype=np.bool_))


# --- Scan ------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _note(left, twin, row, pairs, n_pairs):  # type: ignore[no-untyped-def]
    """Keep a pair if it has no row in common with those kept so; and the first few anyway.

    pairs IN/OUT int64[2, SAMPLES, 3]: (left row, right row, right row that the left one is itself) of those
    without a row in common, and of the first; n_pairs IN/OUT int64[2].
    """
    apart = True
    for k in range(n_pairs[0]):
        pair = pairs[0, k]
        if pair[0] == left or pair[1] == row or pair[2] == row or pair[1] == twin:
            apart = False
    for which in range(2):
        n = n_pairs[which]
        if n < SAMPLES and (apart or which == 1):
            pairs[which, n, 0] = left
            pairs[which, n, 1] = row
            pairs[which, n, 2] = twin
            n_pairs[which] += 1


@njit(cache=True, nogil=True)
def _tabulate(  # type: ignore[no-untyped-def]
    low, high, negated, first, n, events, bounds, n_bounds, tables, filled
):
    """The sets of left rows first..first + n that ask for a code, by place: codes from bounds[k - 1] on, and
    below bounds[k], have place k.

    low, high IN int32[P, *]; negated IN bool[P]; events int64[2 * BLOCK]: scratch; bounds OUT int32[P, 2 *
    BLOCK], n_bounds OUT int64[P]; tables OUT uint64[P, 2 * BLOCK + 1, WORDS]; filled OUT bool[P, 2 * BLOCK +
    1]: whether the set is not empty.
    """
    for p in range(low.shape[0]):
        k = 0
        for j in range(n):
            start = np.int64(low[p, first + j])
            stop = np.int64(high[p, first + j])
            if start < stop:
                events[k] = start << 16 | j
                k += 1
                if stop < TOP:
                    events[k] = stop << 16 | j
                    k += 1
        events[:k].sort()
        table = tables[p]
        for w in range(WORDS):
            table[0, w] = 0
        if negated[p]:
            for j in range(n):
                table[0, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
        place = 0
        last = np.int64(-1)
        for e in range(k):
            code = events[e] >> 16
            j = events[e] & 0xFFFF
            if code != last:
                bounds[p, place] = code
                place += 1
                last = code
                for w in range(WORDS):
                    table[place, w] = table[place - 1, w]
            table[place, j >> 6] ^= np.uint64(1) << np.uint64(j & 63)
        n_bounds[p] = place
        for k in range(place + 1):
            some = np.uint64(0)
            for w in range(WORDS):
                some |= table[k, w]
            filled[p, k] = some != 0


@njit(cache=True, nogil=True)
def _index_bounds(bounds, n_bounds, shift, n_buckets, first):  # type: ignore[no-untyped-def]
    """OUT first uint16[n_buckets + 1]: the place of the lowest code of each bucket, a code shifted right."""
    at = 0
    for k in range(n_bounds):
        # Buckets from here on begin at this bound or above it.
        bucket = min(n_buckets + 1, (np.int64(bounds[k]) + (1 << shift) - 1) >> shift)
        for i in range(at, bucket):
            first[i] = k
        at = max(at, bucket)
    for i in range(at, n_buckets + 1):
        first[i] = n_bounds


@njit(cache=True, nogil=True)
def _find_places(codes, index, n, bounds, shift, first, place):  # type: ignore[no-untyped-def]
    """OUT place uint16[n]: how many of the bounds each code has reached. IN index int64[n]: the rows."""
    # Unsigned numbers are indexes as they are: a signed one might count from the end.
    if shift == 0:
        for i in range(n):
            place[i] = first[np.uint32(codes[np.uint64(index[i])])]
        return
    for i in range(n):
        code = codes[np.uint64(index[i])]
        bucket = np.uint64(np.uint32(code) >> np.uint32(shift))
        low = np.int64(first[bucket])
        high = np.int64(first[bucket + np.uint64(1)])
        while low < high:
            middle = (low + high) >> 1
            if bounds[np.uint64(middle)] <= code:
                low = middle + 1
            else:
                high = middle
        place[i] = low


@njit(cache=True, nogil=True)
def _conjoin(table, place, n, n_words, fresh, sets):  # type: ignore[no-untyped-def]
    """IN/OUT sets uint64[CHUNK * WORDS]: and with the set of each row's place; the first time, as it is.

    table IN uint64[* WORDS]: the sets by place; n_words: those of a set in `sets`.
    """
    if n_words == WORDS and fresh:
        for i in range(n):
            to = np.uint64(i) * np.uint64(WORDS)
            of = np.uint64(place[i]) * np.uint64(WORDS)
            for w in range(WORDS):
                sets[to + np.uint64(w)] = table[of + np.uint64(w)]
    elif n_words == WORDS:
        for i in range(n):
            to = np.uint64(i) * np.uint64(WORDS)
            of = np.uint64(place[i]) * np.uint64(WORDS)
            for w in range(WORDS):
                sets[to + np.uint64(w)] &= table[of + np.uint64(w)]
    else:
        for i in range(n):
            to = np.uint64(i) * np.uint64(n_words)
            of = np.uint64(place[i]) * np.uint64(WORDS)
            for w in range(n_words):
                s = table[of + np.uint64(w)]
                sets[to + np.uint64(w)] = s if fresh else sets[to + np.uint64(w)] & s


@njit(cache=True, nogil=True)
def _count_bits(sets, n):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    for i in range(n):
        total += word_popcount(sets[i])
    return total


@njit(cache=True, nogil=True)
def _inside(values, n, low, high, negated, fresh, flags):  # type: ignore[no-untyped-def]
    """IN/OUT flags uint8[CHUNK]: and with whether each value is asked for."""
    width = np.uint32(high - low)
    if fresh:
        for i in range(n):
            flags[i] = (np.uint32(values[i] - low) < width) != negated
    else:
        for i in range(n):
            flags[i] &= np.uint8((np.uint32(values[i] - low) < width) != negated)


@njit(cache=True, nogil=True)
def _scan(  # type: ignore[no-untyped-def]
    low, high, negated, left_offsets, codes, columns, n_codes, rows, dense, right_offsets, twins, pairs,
    n_pairs,
):  # fmt: skip
    """The number of pairs, within groups, of left and right rows that match.

    low, high IN int32[P, n], P > 0; negated IN bool[P]; left_offsets, right_offsets IN int64[G + 1]: of group
    g the left rows, and the entries of rows int32[m] (where dense the right rows themselves); codes IN
    int32[C, *]; columns, n_codes IN int64[P]: the column of each predicate, the number of its codes; twins IN
    int64[n]: the right row that a left row is itself, else -1: never told, but counted; pairs, n_pairs
    IN/OUT: see `_note`, left rows as they stand here.
    """
    n_predicates = low.shape[0]
    events = np.empty(2 * BLOCK, dtype=np.int64)
    bounds = np.empty((n_predicates, 2 * BLOCK), dtype=np.int32)
    n_bounds = np.empty(n_predicates, dtype=np.int64)
    tables = np.empty((n_predicates, 2 * BLOCK + 1, WORDS), dtype=np.uint64)
    flat = tables.reshape(n_predicates, (2 * BLOCK + 1) * WORDS)
    filled = np.empty((n_predicates, 2 * BLOCK + 1), dtype=np.bool_)
    first_places = np.empty((n_predicates, BUCKETS + 1), dtype=np.uint16)
    shifts = np.zeros(n_predicates, dtype=np.int64)
    index = np.empty(CHUNK, dtype=np.int64)
    place = np.empty(CHUNK, dtype=np.uint16)
    sets = np.empty(CHUNK * WORDS, dtype=np.uint64)
    values = np.empty((n_predicates, CHUNK), dtype=np.int32)
    flags = np.empty(CHUNK, dtype=np.uint8)
    total = np.int64(0)
    looked_at = 0
    for g in range(left_offsets.shape[0] - 1):
        begin = right_offsets[g]
        end = right_offsets[g + 1]
        if begin == end:
            continue
        for first in range(left_offsets[g], left_offsets[g + 1], BLOCK):
            n_left = min(BLOCK, left_offsets[g + 1] - first)
            few = n_left < FEW
            n_words = (n_left + 63) >> 6
            selective = False
            if not few:
                _tabulate(low, high, negated, first, n_left, events, bounds, n_bounds, tables, filled)
                n_buckets = 64
                while n_buckets < BUCKETS and n_buckets < end - begin:
                    n_buckets *= 2
                for p in range(n_predicates):
                    shifts[p] = 0
                    while n_codes[p] > n_buckets << shifts[p]:
                        shifts[p] += 1
                    _index_bounds(bounds[p], n_bounds[p], shifts[p], n_buckets, first_places[p])
                # A row that no left row asks for in the first predicate need not be looked at further.
                selective = not filled[0, 0] and not filled[0, n_bounds[0]]
            for at in range(begin, end, CHUNK):
                n = min(CHUNK, end - at)
                for i in range(n):
                    index[i] = at + i if dense else rows[at + i]
                if few:
                    for p in range(n_predicates):
                        column = codes[columns[p]]
                        for i in range(n):
                            values[p, i] = column[index[i]]
                    for j in range(first, first + n_left):
                        for p in range(n_predicates):
                            _inside(values[p], n, low[p, j], high[p, j], negated[p], p == 0, flags)
                        hits = np.int64(0)
                        for i in range(n):
                            hits += flags[i]
                        total += hits
                        if hits > 0 and n_pairs[0] < SAMPLES and looked_at < LOOKED_AT:
                            for i in range(n):
                                if flags[i] != 0 and index[i] != twins[j]:
                                    _note(j, twins[j], index[i], pairs, n_pairs)
                                    looked_at += 1
                    continue
                for p in range(n_predicates):
                    column = codes[columns[p]]
                    _find_places(column, index, n, bounds[p], shifts[p], first_places[p], place)
                    if p == 0 and selective:
                        n_selected = 0
                        for i in range(n):
                            if filled[0, place[i]]:
                                index[n_selected] = index[i]
                                place[n_selected] = place[i]
                                n_selected += 1
                        n = n_selected
                    _conjoin(flat[p], place, n, n_words, p == 0, sets)
                hits = _count_bits(sets, n * n_words)
                total += hits
                if hits > 0 and n_pairs[0] < SAMPLES and looked_at < LOOKED_AT:
                    for i in range(n):
                        for w in range(n_words):
                            bits = sets[i * n_words + w]
                            while bits != 0 and n_pairs[0] < SAMPLES:
                                j = first + 64 * w + word_lowest(bits)
                                bits &= bits - np.uint64(1)
                                if index[i] != twins[j]:
                                    _note(j, twins[j], index[i], pairs, n_pairs)
                                    looked_at += 1
    return total


@njit(cache=True, nogil=True)
def _first_matches(  # type: ignore[no-untyped-def]
    low, high, negated, codes, columns, rows, dense, live, twin, out
):
    """How many of the first right rows that match one left row were written to OUT out int64[SAMPLES].

    low, high IN int32[P]; rows IN int32[m], or where dense all rows; live IN bool[*]: which of them count, or
    empty if all do; twin: the row that it is itself.
    """
    n_matches = 0
    for i in range(codes.shape[1] if dense else rows.shape[0]):
        row = i if dense else np.int64(rows[i])
        match = row != twin and (live.shape[0] == 0 or live[row])
        for p in range(low.shape[0]):
            if not match:
                break
            y = codes[columns[p], row]
            match = (low[p] <= y and y < high[p]) != negated[p]
        if match:
            out[n_matches] = row
            n_matches += 1
            if n_matches == out.shape[0]:
                break
    return n_matches


# --- Sweep -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _by_key(order, keys, n_keys, out):  # type: ignore[no-untyped-def]
    """One stable counting sort: OUT out int32[n], IN order int32[n] by keys int32[n] in 0..n_keys - 1."""
    starts = np.zeros(n_keys + 1, dtype=np.int64)
    for i in range(keys.shape[0]):
        starts[keys[i] + 1] += 1
    for k in range(n_keys):
        starts[k + 1] += starts[k]
    for i in range(order.shape[0]):
        key = keys[order[i]]
        out[starts[key]] = order[i]
        starts[key] += 1


@njit(cache=True, nogil=True)
def _rank(order, groups, bounds, starts, values, out):  # type: ignore[no-untyped-def]
    """OUT out int32[n]: how many right rows of its group are below the bound of each left row.

    order IN int32[n]: left rows by (group, bound); groups, bounds IN int32[n]; starts IN int64[G + 1]: where
    each group begins in values int32[m], which are sorted within groups.
    """
    group = -1
    at = np.int64(0)
    for k in range(order.shape[0]):
        i = order[k]
        if groups[i] != group:
            group = groups[i]
            at = starts[group]
        while at < starts[group + 1] and values[at] < bounds[i]:
            at += 1
        out[i] = at - starts[group]


@njit(cache=True, nogil=True)
def _sweep(starts, inserted, groups, ranks, negated, counts):  # type: ignore[no-untyped-def]
    """OUT counts int64[n]: the right rows that match each left row in two predicates.

    starts IN int64[G + 1]: where each group of right rows begins; inserted IN int32[m]: by group and first
    value, the place of each in the order of its group by second value; groups IN int32[n]: of left rows;
    ranks IN int32[2, 2, n]: by predicate, where the range of a left row begins and ends in the order of its
    group; negated IN bool[2].
    """
    n_left, n_right = groups.shape[0], inserted.shape[0]
    # A left row asks once so many right rows are inserted: 2 * row + 1 where its range begins, 2 * row where
    # it ends. What it asks for before the first and after the last one is known without.
    offsets = np.zeros(n_right + 2, dtype=np.int64)
    for i in range(n_left):
        start = starts[groups[i]]
        size = starts[groups[i] + 1] - start
        for side in range(2):
            rank = ranks[0, side, i]
            if rank > 0 and rank < size:
                offsets[start + rank + 1] += 1
    for k in range(n_right + 1):
        offsets[k + 1] += offsets[k]
    questions = np.empty(offsets[n_right + 1], dtype=np.int64)
    for i in range(n_left):
        start = starts[groups[i]]
        size = starts[groups[i] + 1] - start
        whole = np.int64(ranks[1, 1, i]) - np.int64(ranks[1, 0, i])
        if negated[1]:
            whole = size - whole
        count = whole if negated[0] else np.int64(0)
        for side in range(2):
            rank = ranks[0, side, i]
            if rank > 0 and rank < size:
                questions[offsets[start + rank]] = 2 * i + 1 - side
                offsets[start + rank] += 1
            elif rank > 0:
                count += whole if (side == 1) != negated[0] else -whole
        counts[i] = count
    tree = np.zeros(n_right, dtype=np.int32)
    n_answered = np.int64(0)
    for g in range(starts.shape[0] - 1):
        start = starts[g]
        size = starts[g + 1] - start
        for done in range(size):
            # offsets[k] is now where the questions that come after the first k right rows end.
            while n_answered < offsets[start + done]:
                i = questions[n_answered] >> 1
                begins = questions[n_answered] & 1
                n_answered += 1
                n_between = np.int64(0)
                node = np.int64(ranks[1, 1, i])
                if node == size:
                    n_between = np.int64(done)
                    node = np.int64(0)
                while node > 0:
                    n_between += tree[start + node - 1]
                    node &= node - 1
                node = np.int64(ranks[1, 0, i])
                while node > 0:
                    n_between -= tree[start + node - 1]
                    node &= node - 1
                if negated[1]:
                    n_between = done - n_between
                counts[i] += n_between if (begins == 0) != negated[0] else -n_between
            node = np.int64(inserted[start + done]) + 1
            while node <= size:
                tree[start + node - 1] += 1
                node += node & -node


def _ordered(groups: I32, n_groups: int, values: I32, n_values: int) -> I32:
    """Rows by (group, value): int32[n]. IN groups, values int32[n] below n_groups and n_values."""
    order = np.arange(len(groups), dtype=np.int32)
    limit = PLACES_PER_ROW * len(groups) + 1024
    if n_values > limit or n_groups > limit:
        return np.lexsort((values, groups)).astype(np.int32)
    for keys, n_keys in ((values, n_values), (groups, n_groups)):
        if n_keys > 1:
            sorted_order = np.empty_like(order)
            _by_key(frozen(order), frozen(keys), n_keys, sorted_order)
            order = sorted_order
    return order


class _Sides(NamedTuple):
    """Left and right rows that match where they are of one group, and in what is still to be compared.

    left, right: numbers of rows; groups int32 of each, below n_groups.
    """

    left: I64
    right: I64
    left_groups: I32
    right_groups: I32
    n_groups: int

    def of(self, left: I64, right: slice) -> _Sides:
        """Some of the left rows, and a range of the right rows; of few rows the groups are numbered anew."""
        left_groups, right_groups, n_groups = self.left_groups[left], self.right_groups[right], self.n_groups
        if n_groups > PLACES_PER_ROW * (len(left) + len(right_groups)):
            distinct, numbers = np.unique(np.concatenate([left_groups, right_groups]), return_inverse=True)
            anew: I32 = numbers.astype(np.int32)
            n_groups, left_groups, right_groups = len(distinct), anew[: len(left)], anew[len(left) :]
        return _Sides(self.left[left], self.right[right], left_groups, right_groups, n_groups)

    def scan_cost(self, n_predicates: int) -> float:
        n_left = np.bincount(self.left_groups, minlength=self.n_groups)
        n_right = np.bincount(self.right_groups, minlength=self.n_groups)
        return _scan_cost(n_left, n_right, n_predicates)


class _Job(NamedTuple):
    """All left and right rows of a count, and what was found. Left and right rows are numbered from 0."""

    ranges: Ranges
    codes: I32
    columns: I64
    n_codes: I64
    rows: I32  # int32[m]: the positions of the right rows
    twins: I64  # int64[n]: the right row that a left row is itself, -1 if none
    matches_itself: Bool  # bool[n]: whether these two match
    matches: list[Matches]
    any_pair: bool  # whether to stop at the first matches

    @property
    def is_done(self) -> bool:
        return self.any_pair and any(one.total for one in self.matches)

    def values(self, predicate: int, right: I64) -> I32:
        out: I32 = self.codes[self.columns[predicate]][self.rows[right]]
        return out

    def itself(self, sides: _Sides) -> Bool:
        """bool[n]: left rows of a part that match themselves there."""
        matching = self.matches_itself[sides.left]
        if matching.any():
            here = np.zeros(len(self.rows), dtype=np.bool_)
            here[sides.right] = True
            matching[matching] = here[self.twins[sides.left[matching]]]
        return matching


def _divided(job: _Job, sides: _Sides, predicate: int) -> _Sides:
    """The same with one more equality: groups are divided by it."""
    low, high = (side[predicate][sides.left] for side in job.ranges[:2])
    some = low < high
    low, left = low[some], sides.left[some]
    y = job.values(predicate, sides.right)
    left_groups, n_codes = sides.left_groups[some], int(job.n_codes[predicate])
    if sides.n_groups * n_codes <= PLACES_PER_ROW * (len(low) + len(y)) + 1024:
        return _Sides(
            left, sides.right, left_groups * n_codes + low, sides.right_groups * n_codes + y,
            sides.n_groups * n_codes,
        )  # fmt: skip
    groups = np.concatenate([left_groups, sides.right_groups]).astype(np.uint64) * np.uint64(n_codes)
    groups += np.concatenate([low, y]).astype(np.uint64)
    distinct, numbers = factorize(groups, None)
    numbers -= 1
    return _Sides(left, sides.right, numbers[: len(left)], numbers[len(left) :], len(distinct))


def _swept(job: _Job, sides: _Sides, predicates: Sequence[int]) -> I64:
    """int64[n]: how many right rows match each left row, in at most two predicates and all `!=` beyond."""
    beyond = [p for p in predicates if job.ranges.negated[p]][: max(0, len(predicates) - 2)]
    if beyond:
        rest = [p for p in predicates if p != beyond[0]]
        counts = _swept(job, sides, rest)
        equal = job.ranges.low[beyond[0]][sides.left] < job.ranges.high[beyond[0]][sides.left]
        counts[equal] -= _swept(job, _divided(job, sides, beyond[0]), rest)
        return counts
    starts = np.zeros(sides.n_groups + 1, dtype=np.int64)
    np.cumsum(np.bincount(sides.right_groups, minlength=sides.n_groups), out=starts[1:])
    sizes: I64 = np.diff(starts)[sides.left_groups]
    if not predicates:
        return sizes
    ranks = np.empty((2, 2, len(sides.left)), dtype=np.int32)
    orders = []
    for q, p in enumerate(predicates):
        n_codes = int(job.n_codes[p])
        y = job.values(p, sides.right)
        order = _ordered(sides.right_groups, sides.n_groups, y, n_codes)
        orders.append(order)
        values = frozen(y[order])
        lowest = int(y.min()) if len(y) else n_codes
        for side in range(2):
            bounds = np.minimum(job.ranges[side][p][sides.left], n_codes)
            if (bounds <= lowest).all():
                ranks[q, side] = 0
            elif (bounds == n_codes).all():
                ranks[q, side] = sizes
            else:
                by_bound = _ordered(sides.left_groups, sides.n_groups, bounds, n_codes + 1)
                _rank(
                    frozen(by_bound), frozen(sides.left_groups), frozen(bounds), frozen(starts), values,
                    ranks[q, side],
                )  # fmt: skip
    if len(predicates) == 1:
        inside: I64 = (ranks[0, 1] - ranks[0, 0]).astype(np.int64)
        return sizes - inside if job.ranges.negated[predicates[0]] else inside
    place = np.empty(len(sides.right), dtype=np.int32)
    place[orders[1]] = np.arange(len(place), dtype=np.int32) - starts[sides.right_groups[orders[1]]]
    counts = np.empty(len(sides.left), dtype=np.int64)
    _sweep(
        frozen(starts), frozen(place[orders[0]]), frozen(sides.left_groups), frozen(ranks),
        frozen(job.ranges.negated[list(predicates)]), counts,
    )  # fmt: skip
    return counts


# --- The way to count ------------------------------------------------------------------------------------


def _scan_cost(n_left: I64, n_right: I64, n_predicates: int) -> float:
    """Nanoseconds to scan groups of so many rows."""
    few = n_left < FEW
    blocks = -(-n_left // BLOCK)
    row = SCAN_ROW + SCAN_PREDICATE * n_predicates
    by_block = blocks * (n_right * row + SCAN_TABLE * n_predicates)
    by_pair = n_right * n_predicates * (1 + PAIR_PREDICATE * n_left)
    costs = np.where(few, by_pair, by_block)
    return float(costs[(n_left > 0) & (n_right > 0)].sum())


def _scan_limit(n_rows: int, n_predicates: int, n_unequal: int) -> float:
    """Nanoseconds that a scan may cost where rows of both sides could be swept, or else halved.

    Of the predicates, none an equality, some are `!=`.
    """
    if n_predicates - n_unequal > 2:
        return 2 * SWEEP_ROW * n_rows
    return SWEEP_ROW * n_rows * 2.0 ** max(0, n_predicates - 2)


def _scanned(
    ranges: Ranges, left_offsets: I64, codes: I32, columns: I64, n_codes: I64, rows: I32 | None,
    right_offsets: I64, twins: I64,
) -> Matches:  # fmt: skip
    """`_scan`; twins are positions, and are counted. `rows` None: the right rows are those from 0 on."""
    pairs, n_pairs = np.full((2, SAMPLES, 3), -1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    total = _scan(
        frozen(ranges.low), frozen(ranges.high), frozen(ranges.negated), frozen(left_offsets),
        frozen(codes), frozen(columns), frozen(n_codes),
        frozen(rows if rows is not None else np.empty(0, np.int32)), rows is None, frozen(right_offsets),
        frozen(twins), pairs, n_pairs,
    )  # fmt: skip
    return Matches(int(total), np.concatenate([pairs[0, : n_pairs[0], :2], pairs[1, : n_pairs[1], :2]]))


def _scan_sides(job: _Job, sides: _Sides, predicates: Sequence[int]) -> None:
    """Scan the pairs of each group."""
    by_left = np.argsort(sides.left_groups, kind="stable") if sides.n_groups > 1 else slice(None)
    by_right = np.argsort(sides.right_groups, kind="stable") if sides.n_groups > 1 else slice(None)
    left, right = sides.left[by_left], sides.right[by_right]
    offsets = np.zeros((2, sides.n_groups + 1), dtype=np.int64)
    for side, groups in enumerate((sides.left_groups, sides.right_groups)):
        np.cumsum(np.bincount(groups, minlength=sides.n_groups), out=offsets[side, 1:])
    keep = np.array(predicates, dtype=np.int64)
    ranges = Ranges(
        job.ranges.low[keep[:, None], left], job.ranges.high[keep[:, None], left], job.ranges.negated[keep]
    )
    twins = job.twins[left]
    twins[twins >= 0] = job.rows[twins[twins >= 0]]
    matches = _scanned(
        ranges, offsets[0], job.codes, job.columns[keep], job.n_codes[keep], job.rows[right], offsets[1],
        twins,
    )  # fmt: skip
    matches.pairs[:, 0] = left[matches.pairs[:, 0]]
    job.matches.append(Matches(matches.total - int(job.itself(sides).sum()), matches.pairs))


def _sweep_sides(job: _Job, sides: _Sides, predicates: Sequence[int]) -> None:
    """Sweep, and look for the matches of a few left rows that have some."""
    counts = _swept(job, sides, predicates) - job.itself(sides)
    total = int(counts.sum())
    pairs = [np.empty((0, 2), np.int64)]
    different = {tuple(pair) for one in job.matches for pair in one.pairs.tolist()}  # a scan notes some twice
    some = np.flatnonzero(counts) if len(different) < SAMPLES else np.empty(0, np.int64)
    some = some[np.linspace(0, len(some) - 1, min(2 * SAMPLES, len(some))).astype(np.int64)]
    for i in sides.left[some].tolist():
        twin = int(job.twins[i])
        itself = int(job.rows[twin]) if twin >= 0 else -1
        rows = job.rows[sides.right]
        pairs.append(_matches_of(job.ranges, i, job.codes, job.columns, rows, None, itself))
    job.matches.append(Matches(total, np.concatenate(pairs)))


def _matches_of(
    ranges: Ranges, left: int, codes: I32, columns: I64, rows: I32 | None, live: Bool | None, twin: int
) -> I64:
    """Up to SAMPLES pairs of a left row with live right rows, the given ones or all; none with itself."""
    out = np.empty(SAMPLES, dtype=np.int64)
    n = _first_matches(
        frozen(ranges.low[:, left]), frozen(ranges.high[:, left]), frozen(ranges.negated), frozen(codes),
        frozen(columns), frozen(rows if rows is not None else np.empty(0, np.int32)), rows is None,
        frozen(live if live is not None else np.empty(0, np.bool_)), np.int64(twin), out,
    )  # fmt: skip
    return np.stack([np.full(n, left), out[:n]], axis=1)


def _count_sides(job: _Job, sides: _Sides, predicates: Sequence[int]) -> None:
    """Count the matches of some rows that are left to be compared in these predicates, none an equality."""
    if not len(sides.left) or not len(sides.right) or job.is_done:
        return
    scan = sides.scan_cost(len(predicates)) if predicates else np.inf
    n_unequal = int(job.ranges.negated[list(predicates)].sum())
    if scan <= _scan_limit(len(sides.left) + len(sides.right), len(predicates), n_unequal):
        _scan_sides(job, sides, predicates)
    elif len(predicates) - n_unequal <= 2:
        _sweep_sides(job, sides, predicates)
    else:
        _halve(job, sides, predicates)


def _halve(job: _Job, sides: _Sides, predicates: Sequence[int]) -> None:
    """Count by a tree over the codes of one inequality.

    Right rows are halved by their code; left rows that ask for all codes of a half are counted there without
    the predicate, those that ask for none are left out, and the others go on. Every left row goes on in one
    half at most for each end of its range, and is counted in one at most: O(log n) counts of all rows.
    """
    p = next(p for p in predicates if not job.ranges.negated[p])
    rest = [q for q in predicates if q != p]
    y = job.values(p, sides.right)
    order = np.argsort(y, kind="stable")
    y = y[order]
    sides = sides._replace(right=sides.right[order], right_groups=sides.right_groups[order])
    waiting = [(np.arange(len(sides.left)), 0, len(y))]
    while waiting and not job.is_done:
        left, start, stop = waiting.pop()
        part = sides.of(left, slice(start, stop))
        if part.scan_cost(len(predicates)) <= _scan_limit(
            len(left) + stop - start, len(predicates), len(predicates) - 3
        ):
            _scan_sides(job, part, predicates)
            continue
        middle = start + int(np.searchsorted(y[start:stop], y[(start + stop) // 2]))
        if middle == start:  # the rows of the lower half are all equal
            middle += int(np.searchsorted(y[start:stop], y[start], side="right"))
        low, high = (side[p][part.left] for side in job.ranges[:2])
        for begin, end in ((start, middle), (middle, stop)):
            if begin < end:
                whole = (low <= y[begin]) & (y[end - 1] < high)
                some = ~whole & (low <= y[end - 1]) & (y[begin] < high)
                _count_sides(job, sides.of(left[whole], slice(begin, end)), rest)
                if some.any():
                    waiting.append((left[some], begin, end))


def chosen(pairs: I64) -> I64:
    """At most SAMPLES different ones of some pairs int64[k, 2]: if it can be, none with a row in common.

    >>> chosen(np.array([[1, 7], [1, 8], [1, 7], [2, 9], [3, 5]])).tolist()
    [[1, 7], [2, 9], [3, 5]]
    """
    different = list(dict.fromkeys(map(tuple, pairs[: 16 * SAMPLES].tolist())))
    apart: list[tuple[int, ...]] = []
    for pair in different:
        if not any(set(pair) & set(other) for other in apart):
            apart.append(pair)
    best = [*apart, *(pair for pair in different if pair not in apart)][:SAMPLES]
    return np.array(best, dtype=np.int64).reshape(-1, 2)


class Compared(NamedTuple):
    """Left rows and predicates, and the right columns that they are compared with.

    half_ranks int32[P, n]: the left side of each predicate as half ranks of the codes of its right column;
    ops: EQ to GE, one for each; codes int32[C, *]: right rows, a column each; columns int64[P]: the right
    column of each predicate; n_codes int64[P]: codes of it are below that.
    """

    half_ranks: I32
    ops: tuple[int, ...]
    codes: I32
    columns: I64
    n_codes: I64

    def selective_first(self) -> Compared:
        """The same with equalities first, and `!=` last."""
        order = sorted(range(len(self.ops)), key=lambda p: (self.ops[p] != EQ, self.ops[p] == NE))
        if order == list(range(len(self.ops))):
            return self
        return Compared(
            self.half_ranks[order], tuple(self.ops[p] for p in order), self.codes, self.columns[order],
            self.n_codes[order],
        )  # fmt: skip


def expected_cost(n_left: int, n_right: int, ops: Sequence[int]) -> float:
    """About how many nanoseconds `count_matches` takes."""
    scan = _scan_cost(np.array([n_left]), np.array([n_right]), len(ops))
    n_unequal = ops.count(NE)
    n_others = len(ops) - ops.count(EQ)
    sweep = SWEEP_ROW * (n_left + n_right)
    if n_others - n_unequal <= 2:
        return min(scan, sweep * 2.0 ** max(0, n_others - 2))
    depth = max(1.0, np.log2(1 + (n_left + n_right) / HALVED_TO))
    return min(scan, float(2 * sweep * depth))


def count_matches(
    compared: Compared, rows: I32 | None = None, twins: I64 | None = None, *, any_pair: bool = False
) -> Matches:
    """All pairs of a left row and a right row that satisfy all predicates; of no predicates, all pairs.

    IN rows int32[m]: positions of the right rows, all different; None: all rows of `codes`. IN twins
    int64[n]: the position of the right row that a left row is itself, -1 if it is none of them; that is no
    pair. At least min(total, SAMPLES) pairs are told. With `any_pair` the count may end at the first ones.

    Cost: (n / 512) * m a predicate, or (n + m) log m with at most two predicates that are not equalities,
    doubled by each further `!=`, times log m for each further inequality: whichever is less.
    """
    compared = compared.selective_first()
    half_ranks, ops, codes, columns, n_codes = compared
    n, m = half_ranks.shape[1], len(rows) if rows is not None else codes.shape[1]
    has_twins = twins is not None
    twins = np.full(n, -1, dtype=np.int64) if twins is None else twins
    if not ops:
        return _all_pairs(n, rows if rows is not None else np.arange(m, dtype=np.int32), twins)
    ranges = code_ranges(half_ranks, ops)
    itself = np.zeros(n, dtype=np.bool_)
    if has_twins:
        itself = twins >= 0
        for p in range(len(ops)):
            y = codes[columns[p]][twins]
            itself &= ((ranges.low[p] <= y) & (y < ranges.high[p])) != ranges.negated[p]
    limit = _scan_limit(n + m, len(ops) - ops.count(EQ), ops.count(NE))
    if _scan_cost(np.array([n]), np.array([m]), len(ops)) <= limit:
        ends = np.array([[0, n], [0, m]])
        matches = _scanned(ranges, ends[0], codes, columns, n_codes, rows, ends[1], twins)
        return Matches(matches.total - int(itself.sum()), matches.pairs)
    if rows is None:
        rows = np.arange(m, dtype=np.int32)
    elif has_twins:
        number = np.full(codes.shape[1], -1, dtype=np.int64)
        number[rows] = np.arange(m)
        twins = np.where(twins >= 0, number[twins], -1)
    job = _Job(ranges, codes, columns, n_codes, rows, twins, itself, [], any_pair)
    sides = _Sides(np.arange(n), np.arange(m), np.zeros(n, np.int32), np.zeros(m, np.int32), 1)
    for p, op in enumerate(ops):
        if op == EQ:
            sides = _divided(job, sides, p)
    _count_sides(job, sides, [p for p, op in enumerate(ops) if op != EQ])
    pairs = [one.pairs for one in job.matches if len(one.pairs)][: 4 * SAMPLES]
    total = sum(one.total for one in job.matches)
    return Matches(total, np.concatenate([np.empty((0, 2), np.int64), *pairs]))


def _all_pairs(n: int, rows: I32, twins: I64) -> Matches:
    left, right = (a.reshape(-1) for a in np.meshgrid(np.arange(min(n, SAMPLES + 1)), rows[: SAMPLES + 1]))
    different = right != twins[left]
    total = n * len(rows) - int((twins >= 0).sum())
    return Matches(total, np.stack([left, right.astype(np.int64)], axis=1)[different])


@njit(cache=True, nogil=True)
def _gather(positions, starts, ends, live, rows, offsets):  # type: ignore[no-untyped-def]
    """The live rows of some lists, one after the other: OUT rows int32[*], offsets int64[k + 1].

    positions IN int32[*]; starts, ends IN int64[k]; live IN bool[*], or empty if all are.
    """
    at = 0
    for k in range(starts.shape[0]):
        for i in range(starts[k], ends[k]):
            if live.shape[0] == 0 or live[positions[i]]:
                rows[at] = positions[i]
                at += 1
        offsets[k + 1] = at


def list_cost(starts: I64, ends: I64, n_predicates: int) -> float:
    """About how many nanoseconds `count_in_lists` takes."""
    first, counts = np.unique(starts, return_index=True, return_counts=True)[1:]
    lengths = (ends - starts)[first]
    gather = SCAN_ROW * float(lengths.sum())
    return gather + _scan_cost(counts, lengths, max(1, n_predicates))


def count_in_lists(compared: Compared, positions: I32, starts: I64, ends: I64, live: Bool | None) -> Matches:
    """As `count_matches`, where left row i is compared with rows positions[starts[i]:ends[i]] alone.

    IN positions int32[*]; starts, ends int64[n]: two lists are the same or have no entry in common; live
    bool[*]: which rows count, None if all do. Cost: a scan of each list that is not empty.
    """
    compared = compared.selective_first()
    some = np.flatnonzero(starts < ends)
    order = some[np.argsort(starts[some], kind="stable")]
    first = np.flatnonzero(np.diff(starts[order], prepend=-1))
    begins, stops = starts[order[first]], ends[order[first]]
    rows = np.empty(int((stops - begins).sum()), dtype=np.int32)
    right_offsets = np.zeros(len(first) + 1, dtype=np.int64)
    alive = live if live is not None else np.empty(0, np.bool_)
    _gather(frozen(positions), frozen(begins), frozen(stops), frozen(alive), rows, right_offsets)
    left_offsets = np.append(first, len(order))
    if not compared.ops:
        total = int((np.diff(left_offsets) * np.diff(right_offsets)).sum())
        filled = np.flatnonzero(np.diff(right_offsets))[:SAMPLES]
        pairs = [np.empty((0, 2), np.int64)]
        for g in filled.tolist():
            left_rows = order[left_offsets[g] : left_offsets[g + 1]]
            right_rows = rows[right_offsets[g] : right_offsets[g + 1]]
            pairs.append(_all_pairs(len(left_rows), right_rows, np.full(len(left_rows), -1)).pairs)
            pairs[-1][:, 0] = left_rows[pairs[-1][:, 0]]
        return Matches(total, np.concatenate(pairs))
    ranges = code_ranges(compared.half_ranks[:, order], compared.ops)
    matches = _scanned(
        ranges, left_offsets, compared.codes, compared.columns, compared.n_codes, rows, right_offsets,
        np.full(len(order), -1),
    )  # fmt: skip
    matches.pairs[:, 0] = order[matches.pairs[:, 0]]
    return matches


def first_matches(compared: Compared, lefts: Sequence[int], live: Bool | None) -> I64:
    """Up to SAMPLES matches of each of some left rows: int64[k, 2], (left row, position).

    IN live bool[*]: which right rows count; None: all. Cost: rows are looked at one by one, until that many
    match.
    """
    ranges = code_ranges(compared.half_ranks[:, list(lefts)], compared.ops)
    pairs = [
        _matches_of(ranges, i, compared.codes, compared.columns, None, live, -1) for i in range(len(lefts))
    ]
    matches = np.concatenate([np.empty((0, 2), np.int64), *pairs])
    matches[:, 0] = np.array(lefts, dtype=np.int64)[matches[:, 0]]
    return matches


def warm_up() -> None:
    """Compile all kernels: call each once."""
    n = 4
    codes = np.array([[1, 2, 0, 3], [3, 1, 2, 0]], dtype=np.int32)
    compared = Compared(2 * codes, (LT, GE), codes, np.arange(2), np.array([4, 4]))
    count_matches(compared, twins=np.arange(n))
    starts = np.zeros(n, dtype=np.int64)
    count_in_lists(compared, np.arange(n, dtype=np.int32), starts, starts + n, None)
    first_matches(compared, [0], None)
    job = _Job(
        code_ranges(compared.half_ranks, compared.ops), codes, compared.columns, compared.n_codes,
        np.arange(n, dtype=np.int32), np.full(n, -1), np.zeros(n, np.bool_), [], False,
    )  # fmt: skip
    everything = np.arange(n)
    _swept(job, _Sides(everything, everything, codes[0], codes[1], n), [0, 1])
