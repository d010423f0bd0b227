"""Counted agree sets and the index over them: who contains a set of columns, and how many pairs are those.

Agree sets lie in *slots*: `masks` uint64[n_slots, n_words], `counts` int64[n_slots], 0 for a free slot. A
slot keeps its agree set for as long as it has pairs. A `table` uint64[a power of two] finds the slot of a
mask: open addressing, an entry is 32 bits of the mask's hash and the slot.

The index is the transpose, in blocks of 64 slots. Of the masks: one bitmap over the slots for each column,
so a superset query is a conjunction of bitmaps. Of the counts: one word for each bit of the counts of a
block, so the sum of the counts of some slots is a few population counts, however many slots they are. It
stands where the paper (DynASt, sec. 6) has a prefix tree, AStree, and a hash table with the counts: a
query of the tree visits every agree set that it finds, here it costs 3 to 12 ns for 64 of them.

Two ways to the minimal left-hand sides within a number of violating pairs, equal by test: sums over the
supersets of all sets of columns at once (few columns), and a depth-first search on the bitmaps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix
from holdfast.core.rows.kernels.masks import turn, word_lowest, word_popcount

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

BLOCK = 64  # slots to a word
TILE = 8  # blocks transposed together, so that the words of a column fill a cache line: half the time
# Words that the search looks at before it returns to Python, so that an interrupt is heeded: about 0.2 s.
WORDS_PER_CALL = 1 << 27
FIRST_CAPACITY = 1 << 10

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_EMPTY = _ALL  # no slot has this number
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_NOT_BEGUN = -1


# --- Slots -----------------------------------------------------------------------------------------------


class Touched(NamedTuple):
    """What `add_counts` did."""

    negative: int  # the slot whose count fell below zero, -1 if none did
    added: I64  # slots that have an agree set now and had none before, in the order of the input
    gone: I64  # slots that had one and are free now; their masks are still there
    blocks: Bool  # bool[n_blocks]: with a slot that changed


def table_of(masks: U64, counts: I64, room: int) -> U64:
    """The hash table of these slots, with room for so many agree sets: uint64[a power of two].

    IN masks uint64[n_slots, n_words], all different where IN counts int64[n_slots] is not 0. Cost: a hash
    and a random access for each.
    """
    table = np.full(1 << max(6, (2 * room - 1).bit_length() if room else 0), _EMPTY, dtype=np.uint64)
    _fill(frozen(masks), frozen(counts), table)
    return table


def add_counts(masks: U64, counts: I64, table: U64, delta_masks: U64, deltas: I64) -> Touched:
    """Add signed counts to agree sets; new ones take free slots, those left with no pairs free theirs.

    INOUT masks uint64[n_slots, n_words], counts int64[n_slots], table uint64[*] (see `table_of`), with room
    for all of them; IN delta_masks uint64[d, n_words], deltas int64[d]: a mask may come several times, what
    counts is the sum. If a count falls below zero the arrays are of no further use.

    Cost: a hash and a random access or two for each delta.
    """
    blocks = np.zeros(n_blocks_for(len(counts)), dtype=np.bool_)
    tags = np.empty(len(delta_masks), dtype=np.uint64)
    slots = np.empty(len(delta_masks), dtype=np.int64)
    before = np.empty(len(delta_masks), dtype=np.int64)
    n_touched = _add(masks, counts, table, frozen(delta_masks), frozen(deltas), tags, slots, before, blocks)
    slots, before = slots[:n_touched], before[:n_touched]
    after = counts[slots]
    if (after < 0).any():
        return Touched(int(slots[np.argmax(after < 0)]), slots[:0], slots[:0], blocks)
    _forget(table, tags[:n_touched][after == 0], slots[after == 0])
    return Touched(-1, slots[(before == 0) & (after > 0)], slots[(before > 0) & (after == 0)], blocks)


@njit(cache=True, nogil=True)
def _tag(masks, k):  # type: ignore[no-untyped-def]
    """32 bits of the hash of one mask: where its place in a table begins, and what is stored there."""
    h = np.uint64(0)
    for w in range(masks.shape[1]):
        h = mix(h * np.uint64(0x9E3779B97F4A7C15) + masks[k, w])
    return h >> _HALF


@njit(cache=True, nogil=True)
def _fill(masks, counts, table):  # type: ignore[no-untyped-def]
    last = np.uint64(table.shape[0] - 1)
    for slot in range(masks.shape[0]):
        if counts[slot] == 0:
            continue
        tag = _tag(masks, slot)
        place = tag & last
        while table[place] != _EMPTY:
            place = (place + _ONE) & last
        table[place] = (tag << _HALF) | np.uint64(slot)


@njit(cache=True, nogil=True)
def _add(masks, counts, table, delta_masks, deltas, tags, slots, before, blocks):  # type: ignore[no-untyped-def]
    """The number n of different masks that deltas come with.

    OUT, the first n: tags uint64[d] and slots int64[d] of these, before int64[d], their counts till now.
    """
    n_words = masks.shape[1]
    last = np.uint64(table.shape[0] - 1)
    # A slot that is emptied, or filled and emptied, is not given away before all is added.
    touched = np.zeros(counts.shape[0], dtype=np.bool_)
    free = np.int64(0)
    n = 0
    # All hashes first: the look-ups that follow do not wait for each other's, nor for the table.
    for i in range(delta_masks.shape[0]):
        tags[i] = _tag(delta_masks, i)
    for i in range(delta_masks.shape[0]):
        tag = tags[i]
        place = tag & last
        slot = np.int64(-1)
        while table[place] != _EMPTY:
            entry = table[place]
            if entry >> _HALF == tag:
                k = np.int64(entry & _LOW)
                same = True
                for w in range(n_words):
                    if masks[k, w] != delta_masks[i, w]:
                        same = False
                        break
                if same:
                    slot = k
                    break
            place = (place + _ONE) & last
        if slot < 0:
            while counts[free] != 0 or touched[free]:
                free += 1
            slot = free
            for w in range(n_words):
                masks[slot, w] = delta_masks[i, w]
            table[place] = (tag << _HALF) | np.uint64(slot)
        if not touched[slot]:
            touched[slot] = True
            tags[n] = tag
            slots[n] = slot
            before[n] = counts[slot]
            blocks[slot >> 6] = True
            n += 1
        counts[slot] += deltas[i]
    return n


@njit(cache=True, nogil=True)
def _forget(table, tags, slots):  # type: ignore[no-untyped-def]
    """Take slots out of the table; what was pushed on by an entry moves back, so no grave is left behind."""
    last = np.uint64(table.shape[0] - 1)
    for i in range(slots.shape[0]):
        entry = (tags[i] << _HALF) | np.uint64(slots[i])
        hole = tags[i] & last
        while table[hole] != entry:
            hole = (hole + _ONE) & last
        place = hole
        while True:
            place = (place + _ONE) & last
            entry = table[place]
            if entry == _EMPTY:
                break
            home = (entry >> _HALF) & last
            if ((place - home) & last) >= ((place - hole) & last):
                table[hole] = entry
                hole = place
        table[hole] = _EMPTY


# --- The index -------------------------------------------------------------------------------------------


def n_blocks_for(n_slots: int) -> int:
    return -(-n_slots // BLOCK)


class AgreeIndex(NamedTuple):
    """The transpose of masks and counts; bit i of block b stands for slot 64 b + i. Free slots are 0."""

    bitmaps: U64  # uint64[n_columns, n_blocks]: the slots with the column
    planes: U64  # uint64[n_blocks, 64]: bit j of the counts
    depths: I64  # int64[n_blocks]: planes that are not all 0
    live: U64  # uint64[n_blocks]: the slots in use
    sizes: I64  # int64[n_columns]: how many slots have the column


def index_of(masks: U64, counts: I64, n_columns: int) -> AgreeIndex:
    """The index of IN masks uint64[n_slots, n_words], counts int64[n_slots].

    Cost: 0.2 microseconds for each block and word that is not 0: 11 ms for 326,698 masks of 4 words.
    """
    n_blocks = n_blocks_for(len(counts))
    index = AgreeIndex(
        np.zeros((n_columns, n_blocks), np.uint64),
        np.zeros((n_blocks, BLOCK), np.uint64),
        np.zeros(n_blocks, np.int64),
        np.zeros(n_blocks, np.uint64),
        np.zeros(n_columns, np.int64),
    )
    _transpose(frozen(masks), frozen(counts), np.ones(n_blocks, np.bool_), *index)
    return index


def reindexed(index: AgreeIndex, masks: U64, counts: I64, blocks: Bool) -> AgreeIndex:
    """A new index, of slots of which only those in some blocks have changed; there may be more slots now.

    IN masks uint64[n_slots, n_words], counts int64[n_slots]; IN blocks bool[n_blocks]: all that differ. The
    old index stays as it is. Cost: a copy, and that of `index_of` for the blocks.
    """
    n_columns, n_old = index.bitmaps.shape
    n_blocks = len(blocks)
    fresh = AgreeIndex(
        np.empty((n_columns, n_blocks), np.uint64),
        np.empty((n_blocks, BLOCK), np.uint64),
        np.zeros(n_blocks, np.int64),
        np.zeros(n_blocks, np.uint64),
        np.empty(n_columns, np.int64),
    )
    fresh.bitmaps[:, :n_old] = index.bitmaps
    fresh.bitmaps[:, n_old:] = 0
    fresh.planes[:n_old] = index.planes
    fresh.planes[n_old:] = 0
    fresh.depths[:n_old] = index.depths
    fresh.live[:n_old] = index.live
    _transpose(frozen(masks), frozen(counts), frozen(blocks), *fresh)
    return fresh


@njit(cache=True, nogil=True)
def _transpose(masks, counts, blocks, bitmaps, planes, depths, live, sizes):  # type: ignore[no-untyped-def]
    """Work out some blocks of an index, a tile of them at a time: first the counts, then the masks.

    IN masks uint64[n_slots, n_words], counts int64[n_slots]; IN blocks bool[n_blocks]: which; INOUT bitmaps,
    planes, depths, live: see `AgreeIndex`; OUT sizes, counted anew over all blocks.
    """
    n_slots, n_words = masks.shape
    n_columns, n_blocks = bitmaps.shape
    squares = np.empty((TILE, BLOCK), dtype=np.uint64)
    tile = np.empty(TILE, dtype=np.int64)
    start = 0
    while start < n_blocks:
        n_tile = 0
        while start < n_blocks and n_tile < TILE:
            if blocks[start]:
                tile[n_tile] = start
                n_tile += 1
            start += 1
        for d in range(n_tile):
            b = tile[d]
            first = BLOCK * b
            here = min(BLOCK, n_slots - first)
            square = squares[d]
            for i in range(here):
                square[i] = np.uint64(counts[first + i])
            for i in range(here, BLOCK):
                square[i] = _ZERO
            some = _ZERO
            used = _ZERO
            for i in range(BLOCK):
                some |= square[i]
                used |= np.uint64(square[i] != _ZERO) << np.uint64(i)
            live[b] = used
            depth = 0
            while some:
                some >>= _ONE
                depth += 1
            depths[b] = depth
            turn(square)
            for j in range(BLOCK):
                planes[b, j] = square[j]
        for w in range(n_words):
            for d in range(n_tile):
                b = tile[d]
                first = BLOCK * b
                here = min(BLOCK, n_slots - first)
                square = squares[d]
                used = live[b]
                some = _ZERO
                for i in range(here):
                    word = masks[first + i, w] & (_ZERO - ((used >> np.uint64(i)) & _ONE))
                    square[i] = word
                    some |= word
                for i in range(here, BLOCK):
                    square[i] = _ZERO
                if some:
                    turn(square)
            for c in range(64 * w, min(64 * w + 64, n_columns)):
                for d in range(n_tile):
                    bitmaps[c, tile[d]] = squares[d, c - 64 * w]
    for c in range(n_columns):
        n = np.int64(0)
        for b in range(n_blocks):
            n += word_popcount(bitmaps[c, b])
        sizes[c] = n


@njit(cache=True, nogil=True)
def _weight(planes, depths, b, word):  # type: ignore[no-untyped-def]
    """The sum of the counts of some slots of a block."""
    total = np.int64(0)
    for j in range(depths[b]):
        total += word_popcount(word & planes[b, j]) << j
    return total


@njit(cache=True, nogil=True)
def _by_size(lhs, q, sizes, columns):  # type: ignore[no-untyped-def]
    """The number of columns of a mask; columns OUT: the one of fewest slots first."""
    n = 0
    for w in range(lhs.shape[1]):
        word = lhs[q, w]
        while word:
            c = 64 * w + word_lowest(word)
            word &= word - _ONE
            i = n
            while i > 0 and sizes[columns[i - 1]] > sizes[c]:
                columns[i] = columns[i - 1]
                i -= 1
            columns[i] = c
            n += 1
    return n


@njit(cache=True, nogil=True)
def _query(bitmaps, planes, depths, live, sizes, lhs, rhs, any_will_do, totals):  # type: ignore[no-untyped-def]
    columns = np.empty(bitmaps.shape[0], dtype=np.int64)
    for q in range(lhs.shape[0]):
        n = _by_size(lhs, q, sizes, columns)
        a = rhs[q]
        total = np.int64(0)
        for b in range(live.shape[0]):
            word = bitmaps[columns[0], b] if n > 0 else live[b]
            if a >= 0:
                word &= ~bitmaps[a, b]
            for i in range(1, n):
                if word == _ZERO:
                    break
                word &= bitmaps[columns[i], b]
            if word:
                if any_will_do:
                    total = np.int64(1)
                    break
                total += _weight(planes, depths, b, word)
        totals[q] = total


def violating_pairs(index: AgreeIndex, lhs: U64, rhs: I64) -> I64:
    """How many pairs violate lhs[q] -> rhs[q]; those that agree on lhs[q] where rhs[q] is -1: int64[q].

    IN lhs uint64[q, n_words], rhs int64[q]. Cost: a few nanoseconds for each block of 64 agree sets.
    """
    totals = np.empty(len(lhs), dtype=np.int64)
    _query(*(frozen(a) for a in index), frozen(lhs), frozen(rhs), False, totals)
    return totals


def any_violating(index: AgreeIndex, lhs: U64, rhs: I64) -> Bool:
    """Whether some pair violates lhs[q] -> rhs[q]: bool[q]; as `violating_pairs`, but ends at the first."""
    totals = np.empty(len(lhs), dtype=np.int64)
    _query(*(frozen(a) for a in index), frozen(lhs), frozen(rhs), True, totals)
    return totals > 0


# --- Few columns: all sets at once -----------------------------------------------------------------------


def superset_sums(masks: U64, counts: I64, n_columns: int) -> I64:
    """For each set of columns the pairs that agree on it: int64[2 ** n_columns], the set as an index.

    IN masks uint64[n, 1], counts int64[n]. The zeta transform: column by column each set without it takes
    over what its union with it has. Cost: n_columns * 2 ** n_columns / 2 additions.

    >>> superset_sums(np.array([[0b01], [0b11]], dtype=np.uint64), np.array([5, 2]), 2).tolist()
    [7, 7, 2, 2]
    """
    sums = np.zeros(1 << n_columns, dtype=np.int64)
    _superset_sums(frozen(masks), frozen(counts), n_columns, sums)
    return sums


@njit(cache=True, nogil=True)
def _superset_sums(masks, counts, n_columns, sums):  # type: ignore[no-untyped-def]
    for k in range(masks.shape[0]):
        sums[np.int64(masks[k, 0])] += counts[k]
    for c in range(n_columns):
        bit = 1 << c
        for base in range(0, sums.shape[0], 2 * bit):
            for x in range(base, base + bit):
                sums[x] += sums[x + bit]


def minimal_by_sums(sums: I64, n_columns: int, rhs: int, allowed: int, max_size: int) -> tuple[U64, I64]:
    """(masks uint64[m, 1], violations int64[m]): the minimal X with at most `allowed` pairs against X -> rhs.

    IN sums int64[2 ** n_columns] (see `superset_sums`); rhs -1: pairs that agree on X; at most max_size
    columns. Violations only fall when X grows, so X is minimal iff no X without one of its columns is
    within. Ascending. Cost: one look at every set, then a word operation for 64 sets and column.
    """
    n_words = max(1, len(sums) // 64)
    within = np.zeros(n_words, dtype=np.uint64)
    masks, violations = _minimal_by_sums(frozen(sums), n_columns, rhs, allowed, max_size, within)
    return masks.reshape(-1, 1), violations


@njit(cache=True, nogil=True)
def _minimal_by_sums(sums, n_columns, rhs, allowed, max_size, within):  # type: ignore[no-untyped-def]
    """within OUT uint64[*]: a bit for each set of columns."""
    n_here = min(64, sums.shape[0])
    a_bit = 1 << rhs if rhs >= 0 else 0
    for w in range(within.shape[0]):
        word = _ZERO
        for i in range(n_here):
            x = 64 * w + i
            # A set with rhs itself has no violations; it is left out, and so is no subset of another.
            if x & a_bit == 0:
                v = sums[x] - sums[x | a_bit] if a_bit else sums[x]
                word |= np.uint64(v <= allowed) << np.uint64(i)
        within[w] = word
    # The bits of a word at which column c is in the set, for the first six columns.
    has = np.empty(6, dtype=np.uint64)
    for c in range(6):
        has[c] = _ZERO
        for i in range(64):
            if (i >> c) & 1:
                has[c] |= _ONE << np.uint64(i)
    masks = np.empty(64, dtype=np.uint64)
    violations = np.empty(64, dtype=np.int64)
    n = 0
    for w in range(within.shape[0]):
        word = within[w]
        for c in range(n_columns):
            if word == _ZERO:
                break
            if c < 6:
                word &= ~((within[w] << np.uint64(1 << c)) & has[c])
            elif (w >> (c - 6)) & 1:
                word &= ~within[w ^ (1 << (c - 6))]
        while word:
            x = 64 * w + word_lowest(word)
            word &= word - _ONE
            if word_popcount(np.uint64(x)) > max_size:
                continue
            if n == masks.shape[0]:
                more_masks = np.empty(2 * n, dtype=np.uint64)
                more_violations = np.empty(2 * n, dtype=np.int64)
                more_masks[:n] = masks
                more_violations[:n] = violations
                masks = more_masks
                violations = more_violations
            masks[n] = np.uint64(x)
            violations[n] = sums[x] - sums[x | a_bit] if a_bit else sums[x]
            n += 1
    return masks[:n].copy(), violations[:n].copy()


# --- Many columns: a search on the bitmaps ---------------------------------------------------------------


def minimal_by_search(
    index: AgreeIndex, n_words: int, rhs: int, allowed: int, max_size: int
) -> tuple[U64, I64]:
    """(masks uint64[m, n_words], violations int64[m]): as `minimal_by_sums`, in the order of the search.

    A node of the search is a set X that is not within; its agree sets, those that violate it, are a list of
    words, shorter the deeper it goes. A column c may join X
    - not if no violating pair is told apart by it: nor would one be beside a larger set,
    - as a result if X + c is within: then nothing larger is minimal,
    - else as a node. Columns are tried by their gain, the violating pairs that they tell apart, greatest
      first, each with those after it. Gains only fall when X grows, so a node ends where the greatest gains
      of all the columns that may still join would not do.
    A set has to keep, for each member, pairs that this member alone tells apart (`once` has those that one
    member does), and, to be a result, more of them than would be allowed.

    max_size at least 1. Cost: a weighing of the violating agree sets for each node and column; agree sets
    of many pairs should come first, they decide soonest.
    """
    n_columns, n_blocks = index.bitmaps.shape
    n_levels = max(1, min(max_size, n_columns))
    words = np.empty((n_levels, n_blocks), dtype=np.uint64)
    at = np.empty((n_levels, n_blocks), dtype=np.int64)
    once = np.zeros((n_levels, n_blocks), dtype=np.uint64)
    columns = np.empty((n_levels, n_columns), dtype=np.int64)
    below = np.empty((n_levels, n_columns), dtype=np.int64)
    # Of each level: words, columns to try, those tried, violations, the member that led to the next.
    levels = np.zeros((n_levels, 5), dtype=np.int64)
    state = np.array([_NOT_BEGUN, 0], dtype=np.int64)
    masks = np.empty((max(FIRST_CAPACITY, 2 * n_columns), n_words), dtype=np.uint64)
    violations = np.empty(len(masks), dtype=np.int64)
    arrays = tuple(frozen(a) for a in (index.bitmaps, index.planes, index.depths, index.live))
    while not _search(
        *arrays, rhs, allowed, n_levels, WORDS_PER_CALL,
        words, at, once, columns, below, levels, state, masks, violations,
    ):  # fmt: skip
        if len(masks) - state[1] <= n_columns:
            masks = np.concatenate([masks, np.empty_like(masks)])
            violations = np.concatenate([violations, np.empty_like(violations)])
    return masks[: state[1]].copy(), violations[: state[1]].copy()


_WORDS, _COLUMNS, _TRIED, _VIOLATIONS, _MEMBER = 0, 1, 2, 3, 4


@njit(cache=True, nogil=True)
def _keeps_members(bitmaps, planes, depths, once, levels, level, c, slack):  # type: ignore[no-untyped-def]
    """Whether, beside c, each member still tells apart more than `slack` pairs on its own."""
    for k in range(level):
        u = levels[k, _MEMBER]
        alone = np.int64(0)
        for b in range(once.shape[1]):
            word = once[level, b] & bitmaps[c, b] & ~bitmaps[u, b]
            if word:
                alone += _weight(planes, depths, b, word)
                if alone > slack:
                    break
        if alone <= slack:
            return False
    return True


@njit(cache=True, nogil=True)
def _open(
    bitmaps: U64,
    planes: U64,
    depths: I64,
    allowed: int,
    words: U64,
    at: I64,
    once: U64,
    columns: I64,
    below: I64,
    levels: I64,
    level: int,
    masks: U64,
    violations: I64,
    n_masks: int,
) -> int:
    """Weigh the columns that may join the set of a level: results are put down, the others sorted by gain.

    Returns the number of results so far.
    """
    is_last = level == levels.shape[0] - 1
    violating = levels[level, _VIOLATIONS]
    n_here = levels[level, _WORDS]
    n_kept = 0
    for i in range(levels[level, _COLUMNS]):
        c = columns[level, i]
        v = np.int64(0)
        for j in range(n_here):
            b = at[level, j]
            word = words[level, j] & bitmaps[c, b]
            if word:
                v += _weight(planes, depths, b, word)
                if is_last and v > allowed:
                    break
        if v > allowed:
            if is_last or v == violating:
                continue
            k = n_kept
            while k > 0 and below[level, k - 1] > v:
                below[level, k] = below[level, k - 1]
                columns[level, k] = columns[level, k - 1]
                k -= 1
            below[level, k] = v
            columns[level, k] = c
            n_kept += 1
        elif _keeps_members(bitmaps, planes, depths, once, levels, level, c, allowed - v):
            for w in range(masks.shape[1]):
                masks[n_masks, w] = _ZERO
            for k in range(level):
                u = levels[k, _MEMBER]
                masks[n_masks, u >> 6] |= _ONE << np.uint64(u & 63)
            masks[n_masks, c >> 6] |= _ONE << np.uint64(c & 63)
            violations[n_masks] = v
            n_masks += 1
    levels[level, _COLUMNS] = n_kept
    levels[level, _TRIED] = 0
    return n_masks


@njit(cache=True, nogil=True)
def _search(
    bitmaps: U64,
    planes: U64,
    depths: I64,
    live: U64,
    rhs: int,
    allowed: int,
    n_levels: int,
    n_words_per_call: int,
    words: U64,
    at: I64,
    once: U64,
    columns: I64,
    below: I64,
    levels: I64,
    state: I64,
    masks: U64,
    violations: I64,
) -> bool:
    """Go on with the search until it ends (True), `masks` may be too small, or time is up (False).

    IN bitmaps, planes, depths, live: see `AgreeIndex`.

    INOUT, one row per level, level = size of the set so far: words uint64[n_levels, n_blocks] and at
    int64[n_levels, n_blocks], the words of violating agree sets that are not 0, and their blocks; once
    uint64[n_levels, n_blocks], the agree sets that exactly one member tells apart; columns
    int64[n_levels, n_columns], those that may join, the greatest gain first, and below, the violations that
    each would leave; levels int64[n_levels, 5].

    INOUT state int64[2], the level (_NOT_BEGUN at first) and the number of results; masks
    uint64[capacity, n_words], violations int64[capacity].
    """
    n_columns, n_blocks = bitmaps.shape
    level = state[0]
    n_masks = state[1]
    looked = np.int64(0)
    if level == _NOT_BEGUN:
        n = 0
        total = np.int64(0)
        for b in range(n_blocks):
            word = live[b] & ~bitmaps[rhs, b] if rhs >= 0 else live[b]
            if word:
                words[0, n] = word
                at[0, n] = b
                total += _weight(planes, depths, b, word)
                n += 1
        if total <= allowed:
            for w in range(masks.shape[1]):
                masks[0, w] = _ZERO
            violations[0] = total
            state[1] = 1
            return True
        levels[0, _WORDS] = n
        levels[0, _VIOLATIONS] = total
        n = 0
        for c in range(n_columns):
            if c != rhs:
                columns[0, n] = c
                n += 1
        levels[0, _COLUMNS] = n
        level = 0
        n_masks = _open(
            bitmaps, planes, depths, allowed, words, at, once, columns, below, levels, 0,
            masks, violations, n_masks,
        )  # fmt: skip
    while looked < n_words_per_call and masks.shape[0] - n_masks > n_columns:
        i = levels[level, _TRIED]
        n = levels[level, _COLUMNS]
        n_more = n_levels - level - 1  # columns that may join besides this one
        enough = False
        n_useful = 0
        if i < n and n_more > 0:
            c = columns[level, i]
            violating = levels[level, _VIOLATIONS]
            # What is to be told apart by later columns, less the greatest gains of all but one of them.
            shortfall = below[level, i] - allowed
            j = i + 1
            while j < n and j < i + n_more:
                shortfall -= violating - below[level, j]
                j += 1
            if j < n and shortfall > 0:
                while j < n and violating - below[level, j] >= shortfall:
                    j += 1
                enough = j > i + n_more
            else:
                enough = shortfall <= 0
                j = n
            n_useful = j
        if not enough:
            # Gains fall along the level: those after this one would not do either.
            if level == 0:
                state[1] = n_masks
                return True
            level -= 1
            continue
        levels[level, _TRIED] = i + 1
        looked += n_blocks
        if not _keeps_members(bitmaps, planes, depths, once, levels, level, c, 0):
            continue
        # With all the columns that may join, would it do?
        if n_more >= n_useful - i - 1:
            remaining = np.int64(0)
            for j in range(levels[level, _WORDS]):
                b = at[level, j]
                word = words[level, j] & bitmaps[c, b]
                k = i + 1
                while word and k < n_useful:
                    word &= bitmaps[columns[level, k], b]
                    k += 1
                if word:
                    remaining += _weight(planes, depths, b, word)
                    if remaining > allowed:
                        break
            if remaining > allowed:
                continue
        deeper = level + 1
        levels[level, _MEMBER] = c
        for b in range(n_blocks):
            once[deeper, b] = once[level, b] & bitmaps[c, b]
        n = 0
        for j in range(levels[level, _WORDS]):
            b = at[level, j]
            word = words[level, j]
            once[deeper, b] |= word & ~bitmaps[c, b]
            word &= bitmaps[c, b]
            if word:
                words[deeper, n] = word
                at[deeper, n] = b
                n += 1
        levels[deeper, _WORDS] = n
        levels[deeper, _VIOLATIONS] = below[level, i]
        for k in range(i + 1, n_useful):
            columns[deeper, k - i - 1] = columns[level, k]
        levels[deeper, _COLUMNS] = n_useful - i - 1
        looked += n * (n_useful - i)
        level = deeper
        n_masks = _open(
            bitmaps, planes, depths, allowed, words, at, once, columns, below, levels, level,
            masks, violations, n_masks,
        )  # fmt: skip
    state[0] = level
    state[1] = n_masks
    return False


def warm_up() -> None:
    masks = np.array([[1], [3], [0]], dtype=np.uint64)
    counts = np.array([1, 2, 0], dtype=np.int64)
    table = table_of(masks, counts, 3)
    index = index_of(masks, counts, 2)
    touched = add_counts(masks, counts, table, masks[:2].copy(), np.array([-1, 1], dtype=np.int64))
    index = reindexed(index, masks, counts, touched.blocks)
    rhs = np.array([1, -1, 0], dtype=np.int64)
    violating_pairs(index, masks, rhs)
    any_violating(index, masks, rhs)
    minimal_by_sums(superset_sums(masks, counts, 2), 2, 0, 0, 2)
    minimal_by_search(index, 1, 0, 0, 2)
