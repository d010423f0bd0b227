"""Validation of candidate keys and functional dependencies by refining partitions.

X -> A holds iff A is constant on every cluster of X. Four things keep this cheap:

- A cluster carries the columns on which it is not constant. What is constant on a cluster is constant on
  all its parts, so these sets only shrink, and a cluster on which nothing that is asked for varies is
  dropped: nothing below it can violate. For a minimal X -> A only the clusters of X - {c} that violate
  X - {c} -> A are refined by the last column c.
- All right-hand sides of a left-hand side are checked in one pass, and left-hand sides are walked together:
  sorted as sequences of columns they form a trie, and each prefix is refined once.
- Where few pairs of rows are left for many candidates, sets of pairs are intersected, 64 in a word, instead
  of clusters: a column costs one look at each pair, whatever the number of candidates that have it.
- Where keys alone are asked for, such pairs are compared on all columns: the maximal agree sets among them
  settle what has the prefix for good, candidates of later rounds too (`NOT_SEEN`).
- A violation is turned into evidence on the spot, and evidence refutes other candidates: whoever lies
  inside the agree set and asks for a column outside of it is never looked at.

Evidence for (X, A) is found by climbing: columns are added to X while some cluster still holds two values
of A. When none can be added, a pair that agrees on the set and differs on A agrees on nothing else, so its
agree set is maximal among those without A, as far as the looked-at rows go.

A key X is X -> row: the row itself is the column behind the last one, on which any two rows differ.

Rows are numbers, and `values` int32[n_columns, n] has their values: equal numbers mean equal values, 0 is
NULL. Column after column: a refinement mostly reads one column, and of a cluster that is larger than the
cache a column may still fit. Under the rule that NULLs are distinct, a NULL differs from everything, so a row
with a NULL in X is in no cluster, and a NULL in A makes its cluster vary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows.kernels.encode import frozen, mix
from holdfast.core.rows.kernels.masks import mask_of, unique_masks, word_lowest, word_popcount

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Values of a walk of the trie: they fit into a core's cache. Of keys alone KEY_CHUNKS times as many: what a
# walk costs for each candidate counts more.
CHUNK_VALUES = 1 << 18
KEY_CHUNKS = 1 << 4
# A climb looks at so many rows of a violated candidate's clusters at most.
LEAF_ROWS = 1 << 9
# Climbs for a violation that no evidence explains yet: the first is needed, the others save rounds ...
N_CLIMBS = 3
# ... and are left out once a call has found so many agree sets.
MAX_MASKS = 1 << 12
# Columns with at most so many different values are refined by direct addressing, others by hashing.
DIRECT_IDS = 1 << 12
# Clusters of up to so many rows are refined by comparing their rows with each other.
FEW_ROWS = 12
# What is left of a walk is settled by its pairs of rows if these are so many at most for each candidate, and
# for each row: 75,000 candidate keys of 40 columns on 100,000 rows take 1.0 s, by clusters alone 2.3 s ...
PAIRS_EACH = 1 << 5
PAIRS_A_ROW = 1 << 2
# ... and their agreements on all columns so many bits, half of a core's cache.
PAIR_BITS = 1 << 22
# How many columns of a key's sequence all those pairs agree on that were compared for it; or: no cluster was
# looked at yet, or not all in this way.
NOT_SEEN, NOT_ALL = -2, -1

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def _unequal(values, a, b, column, skip):  # type: ignore[no-untyped-def]
    """Whether two rows differ on a column; on the one behind the last, the row itself, any two do."""
    if column == values.shape[0]:
        return True
    v = values[column, a]
    return v != values[column, b] or (skip and v == 0)


@njit(cache=True, nogil=True)
def _note_differences(values, a, b, need, skip, varying, k):  # type: ignore[no-untyped-def]
    """Add to varying[k] those columns of `need` on which rows a and b differ; whether any is left."""
    undecided = False
    for w in range(need.shape[0]):
        todo = need[w] & ~varying[k, w]
        while todo:
            bit = todo & (~todo + _ONE)
            todo ^= bit
            if _unequal(values, a, b, (w << 6) + word_lowest(bit), skip):
                varying[k, w] |= bit
            else:
                undecided = True
    return undecided


@njit(cache=True, nogil=True)
def _any(varying, k):  # type: ignore[no-untyped-def]
    word = _ZERO
    for w in range(varying.shape[1]):
        word |= varying[k, w]
    return word != _ZERO


@njit(cache=True, nogil=True)
def _split(  # type: ignore[no-untyped-def]
    values, rows, offsets, varying, k, column, n_ids, need, skip, top_row, top, table, slot, ids, sizes,
    leader, differ,
):  # fmt: skip
    """Split cluster k by a column; write the parts on which some column of `need` varies.

    Cluster k is rows[offsets[k]:offsets[k + 1]]. Rows are written from top_row on, clusters from number
    `top` on, with the columns that vary in varying[top]. Returns the new (top_row, top). `table` is -1
    everywhere before and after.
    """
    low = offsets[k]
    size = offsets[k + 1] - low
    n_words = need.shape[0]
    if size == 2:
        a = rows[low]
        b = rows[low + 1]
        v = values[column, a]
        if v == values[column, b] and not (skip and v == 0):
            for w in range(n_words):
                varying[top, w] = _ZERO
            _note_differences(values, a, b, need, skip, varying, top)
            if _any(varying, top):
                rows[top_row] = a
                rows[top_row + 1] = b
                top_row += 2
                top += 1
                offsets[top] = top_row
    elif size <= FEW_ROWS:
        done = np.int64(0)
        for i in range(size):
            if done & (np.int64(1) << i):
                continue
            a = rows[low + i]
            v = values[column, a]
            if skip and v == 0:
                continue
            end = top_row
            for j in range(i + 1, size):
                b = rows[low + j]
                if not (done & (np.int64(1) << j)) and values[column, b] == v:
                    done |= np.int64(1) << j
                    if end == top_row:
                        for w in range(n_words):
                            varying[top, w] = _ZERO
                        rows[end] = a
                        end += 1
                    rows[end] = b
                    end += 1
                    _note_differences(values, b, a, need, skip, varying, top)
            if end > top_row and _any(varying, top):
                top_row = end
                top += 1
                offsets[top] = top_row
    else:
        direct = n_ids <= table.shape[0] and n_ids <= DIRECT_IDS
        capacity = 32
        while capacity < 2 * size:
            capacity *= 2
        n_groups = 0
        for i in range(size):
            r = rows[low + i]
            v = values[column, r]
            if skip and v == 0:
                ids[i] = -1
                continue
            if direct:
                s = np.int64(v)
                g = table[s]
            else:
                s = np.int64(mix(np.uint64(v)) & np.uint64(capacity - 1))
                g = table[s]
                while g >= 0 and values[column, leader[g]] != v:
                    s = (s + 1) & (capacity - 1)
                    g = table[s]
            if g < 0:
                g = n_groups
                table[s] = g
                slot[g] = s
                leader[g] = r
                sizes[g] = 1
                for w in range(n_words):
                    differ[g, w] = _ZERO
                n_groups += 1
            else:
                sizes[g] += 1
                _note_differences(values, r, leader[g], need, skip, differ, g)
            ids[i] = g
        any_varying = False
        for g in range(n_groups):
            table[slot[g]] = -1
            if _any(differ, g):
                # the size becomes a cursor; a group that does not vary gets none
                n = sizes[g]
                sizes[g] = top_row
                for w in range(n_words):
                    varying[top, w] = differ[g, w]
                top_row += n
                top += 1
                offsets[top] = top_row
                any_varying = True
            else:
                sizes[g] = -1
        if any_varying:
            for i in range(size):
                g = ids[i]
                if g >= 0 and sizes[g] >= 0:
                    rows[sizes[g]] = rows[low + i]
                    sizes[g] += 1
    return top_row, top


@njit(cache=True, nogil=True)
def _leaf(values, rows, offsets, varying, first, last, start, column, skip, leaf_rows, out_rows, out_offsets):  # type: ignore[no-untyped-def]
    """Copy some rows of the clusters first..last on which a column varies, from cluster `start` on, around.

    Of a large cluster a window is taken around the first rows that differ. Returns the number of clusters.
    """
    w = column >> 6
    bit = _ONE << np.uint64(column & 63)
    n = 0
    at = 0
    out_offsets[0] = 0
    for step in range(last - first):
        k = first + (start - first + step) % (last - first)
        if not varying[k, w] & bit:
            continue
        low = offsets[k]
        size = offsets[k + 1] - low
        room = min(max(2, leaf_rows // 4), leaf_rows - at)
        if last - first == 1:
            room = leaf_rows
        if room < 2:
            break
        begin = 0
        if size > room:
            second = 1
            while not _unequal(values, rows[low], rows[low + second], column, skip):
                second += 1
            # rows second - 1 and second differ
            begin = max(0, min(second - room // 2, size - room))
            size = room
        for i in range(size):
            out_rows[at + i] = rows[low + begin + i]
        at += size
        n += 1
        out_offsets[n] = at
    return n


@njit(cache=True, nogil=True)
def _climb(  # type: ignore[no-untyped-def]
    values, rows, offsets, varying, n_clusters, column, order, mask, n_ids, need, skip, table, slot, ids,
    sizes, leader, differ, pairs,
):  # fmt: skip
    """From clusters on which a column varies to an agree set without it; pairs that have it.

    The clusters are the first third of `rows`, `offsets` and `varying`. INOUT mask: what the clusters agree
    on, to become the agree set; OUT pairs.
    """
    n_words = mask.shape[0]
    third_rows = rows.shape[0] // 3
    third = varying.shape[0] // 3
    for w in range(n_words):
        need[w] = _ZERO
    need[column >> 6] = _ONE << np.uint64(column & 63)
    first = 0
    last = n_clusters
    side = 1
    for i in range(order.shape[0]):
        c = order[i]
        bit = _ONE << np.uint64(c & 63)
        if c == column or mask[c >> 6] & bit:
            continue
        start = side * third
        top = start
        top_row = side * third_rows
        offsets[top] = top_row
        for k in range(first, last):
            top_row, top = _split(
                values, rows, offsets, varying, k, c, n_ids[c], need, skip, top_row, top, table, slot, ids,
                sizes, leader, differ,
            )  # fmt: skip
        if top > start:
            mask[c >> 6] |= bit
            first = start
            last = top
            side = 3 - side
    # One pair of every cluster, then the next pair of each; only pairs whose agree set is that of the first.
    n = 0
    i = 0
    for j in range(pairs.shape[0]):
        pairs[j, 0] = -1
        pairs[j, 1] = -1
    more = True
    while more and n < pairs.shape[0]:
        more = False
        for k in range(first, last):
            low = offsets[k]
            if low + i + 1 >= offsets[k + 1] or n == pairs.shape[0]:
                continue
            more = True
            a = rows[low + i]
            b = rows[low + i + 1]
            if not _unequal(values, a, b, column, skip):
                continue
            same = True
            for w in range(n_words):
                word = _ZERO
                for c in range(w << 6, min((w + 1) << 6, order.shape[0])):
                    if not _unequal(values, a, b, c, skip):
                        word |= _ONE << np.uint64(c & 63)
                if n == 0:
                    mask[w] = word
                elif mask[w] != word:
                    same = False
            if same:
                pairs[n, 0] = a
                pairs[n, 1] = b
                n += 1
        i += 1


@njit(cache=True, nogil=True)
def _shuffle(order, seed, mask, others_first):  # type: ignore[no-untyped-def]
    """A permutation of the columns; if asked for, columns outside of the mask come first."""
    n = order.shape[0]
    for i in range(n):
        order[i] = i
    state = seed
    for i in range(n - 1, 0, -1):
        state = mix(state + np.uint64(0x9E3779B97F4A7C15))
        j = np.int64(state % np.uint64(i + 1))
        order[i], order[j] = order[j], order[i]
    if others_first:
        at = 0
        for i in range(n):
            c = order[i]
            if not mask[c >> 6] & (_ONE << np.uint64(c & 63)):
                order[i], order[at] = order[at], order[i]
                at += 1


@njit(cache=True, nogil=True)
def _strike(lhs, pending, x, masks, first, last):  # type: ignore[no-untyped-def]
    """Take from pending[x] what the masks first..last refute; whether anything is left."""
    n_words = lhs.shape[1]
    for k in range(first, last):
        inside = True
        for w in range(n_words):
            if lhs[x, w] & ~masks[k, w]:
                inside = False
                break
        if inside:
            for w in range(n_words):
                pending[x, w] &= masks[k, w]
    return _any(pending, x)


@njit(cache=True, nogil=True)
def _strike_all(lhs, pending, masks):  # type: ignore[no-untyped-def]
    for x in range(lhs.shape[0]):
        if _any(pending, x):
            _strike(lhs, pending, x, masks, 0, masks.shape[0])


def strike(lhs: U64, pending: U64, masks: U64) -> None:
    """Take from `pending` what evidence refutes: X -> A, where X is inside an agree set and A is not.

    IN lhs uint64[n, n_words], masks uint64[k, n_words]; INOUT pending uint64[n, n_words]. Cost: n * k
    word tests.
    """
    _strike_all(frozen(lhs), pending, frozen(masks))


# Rows of arrays are named by number: a view of each would count references, a tenth of all time.


@njit(cache=True, nogil=True)
def _pairs_in(offsets, k):  # type: ignore[no-untyped-def]
    """The pairs of rows in a cluster."""
    size = offsets[k + 1] - offsets[k]
    return size * (size - 1) // 2


@njit(cache=True, nogil=True)
def _agreeing(values, ends, n, column, skip, bits, known):  # type: ignore[no-untyped-def]
    """INOUT bits[column]: which of n pairs agree on a column, on the row none; known[column]: it is there."""
    if known[column]:
        return
    known[column] = True
    for at in range((n + 63) >> 6):
        word = _ZERO
        if column < values.shape[0]:
            start = at << 6
            for i in range(min(64, n - start)):
                v = values[column, ends[0, start + i]]
                same = v == values[column, ends[1, start + i]] and not (skip and v == 0)
                word |= np.uint64(same) << np.uint64(i)
        bits[column, at] = word


@njit(cache=True, nogil=True)
def _list_pairs(  # type: ignore[no-untyped-def]
    values, rows, offsets, first, last, need, skip, ends, bits, known, words, places, level
):
    """(number of pairs, number of words): the pairs of rows in the clusters first..last.

    OUT ends uint32[2, *]: the rows of each pair; words[level] uint64, places[level] int32: those that differ
    on some column of `need`, 64 in a word, and which words these are, without words of none. INOUT bits
    uint64[n_columns + 1, *], known bool[n_columns + 1]: see `_agreeing`.
    """
    n = 0
    for k in range(first, last):
        for i in range(offsets[k], offsets[k + 1]):
            for j in range(i + 1, offsets[k + 1]):
                ends[0, n] = rows[i]
                ends[1, n] = rows[j]
                n += 1
    for c in range(known.shape[0]):
        known[c] = False
    n_words = (n + 63) >> 6
    for at in range(n_words):
        words[level, at] = _ZERO
    for c in range(known.shape[0]):
        if need[c >> 6] >> np.uint64(c & 63) & _ONE:
            _agreeing(values, ends, n, c, skip, bits, known)
            for at in range(n_words):
                words[level, at] |= ~bits[c, at]
    if n & 63:
        words[level, n_words - 1] &= (_ONE << np.uint64(n & 63)) - _ONE
    n_listed = 0
    for at in range(n_words):
        if words[level, at]:
            words[level, n_listed] = words[level, at]
            places[level, n_listed] = at
            n_listed += 1
    return n, n_listed


@njit(cache=True, nogil=True)
def _narrowed(words, places, level, n, bits, column, complement, target):  # type: ignore[no-untyped-def]
    """Those pairs of a level, n words, that agree on a column, or do not, at another level; its words."""
    n_new = 0
    for i in range(n):
        at = places[level, i]
        word = words[level, i] & (bits[column, at] ^ complement)
        if word:
            words[target, n_new] = word
            places[target, n_new] = at
            n_new += 1
    return n_new


@njit(cache=True, nogil=True)
def _climb_pairs(  # type: ignore[no-untyped-def]
    words, places, level, n, column, order, mask, values, ends, n_pairs, skip, bits, known, pairs
):
    """From the pairs of a level, which differ on a column, to an agree set without it; pairs that have it.

    INOUT mask: what the pairs agree on, to become the agree set; words, places: this level and the next one
    are overwritten; OUT pairs. What is left in the end agrees on no further column.
    """
    spare = level + 1
    for i in range(order.shape[0]):
        c = order[i]
        bit = _ONE << np.uint64(c & 63)
        if c == column or mask[c >> 6] & bit:
            continue
        _agreeing(values, ends, n_pairs, c, skip, bits, known)
        n_agree = _narrowed(words, places, level, n, bits, c, _ZERO, spare)
        if n_agree:
            mask[c >> 6] |= bit
            n = n_agree
            level, spare = spare, level
    m = 0
    for i in range(n):
        word = words[level, i]
        while word and m < pairs.shape[0]:
            at = (np.int64(places[level, i]) << 6) + word_lowest(word)
            word &= word - _ONE
            pairs[m, 0] = ends[0, at]
            pairs[m, 1] = ends[1, at]
            m += 1
    for j in range(m, pairs.shape[0]):
        pairs[j, 0] = -1
        pairs[j, 1] = -1


@njit(cache=True, nogil=True)
def _seed(x, column, turn, n_climbs):  # type: ignore[no-untyped-def]
    return mix(np.uint64(x * 131 + column) * np.uint64(n_climbs) + np.uint64(turn))


@njit(cache=True, nogil=True)
def _noted(masks, pairs, n_masks, mask, pair):  # type: ignore[no-untyped-def]
    """(masks, pairs) with one more; they double when they are full."""
    if n_masks == masks.shape[0]:
        more_masks = np.empty((2 * n_masks, masks.shape[1]), dtype=np.uint64)
        more_pairs = np.empty((2 * n_masks, pairs.shape[1], 2), dtype=np.int64)
        more_masks[:n_masks] = masks
        more_pairs[:n_masks] = pairs
        masks = more_masks
        pairs = more_pairs
    for w in range(mask.shape[0]):
        masks[n_masks, w] = mask[w]
    for j in range(pair.shape[0]):
        pairs[n_masks, j, 0] = pair[j, 0]
        pairs[n_masks, j, 1] = pair[j, 1]
    return masks, pairs


@njit(cache=True, nogil=True)
def _agree_set(matrix, a, b, skip, agreed, i):  # type: ignore[no-untyped-def]
    """The number of columns on which two rows of a matrix agree; OUT agreed[i]: which."""
    size = 0
    n_columns = matrix.shape[1]
    for w in range(agreed.shape[1]):
        word = _ZERO
        start = w << 6
        if skip:
            for c in range(start, min(start + 64, n_columns)):
                v = matrix[a, c]
                word |= np.uint64(v == matrix[b, c] and v != 0) << np.uint64(c - start)
        else:
            for c in range(start, min(start + 64, n_columns)):
                word |= np.uint64(matrix[a, c] == matrix[b, c]) << np.uint64(c - start)
        agreed[i, w] = word
        size += word_popcount(word)
    return size


@njit(cache=True, nogil=True)
def _compare_pairs(  # type: ignore[no-untyped-def]
    matrix, places, rows, offsets, first, last, skip, agreed, ends, order, pair, masks, pairs, n_masks
):
    """(masks, pairs, n_masks) with the maximal agree sets of all pairs of rows in the clusters first..last.

    Scratch: agreed uint64[n, n_words], ends uint32[2, n], order int32[n] with room for these pairs; pair.
    Cost: n_columns comparisons a pair, and a look at the larger sets until one contains its own.
    """
    n_words = agreed.shape[1]
    starts = np.zeros((n_words << 6) + 2, dtype=np.int64)  # of sizes, the largest first
    n = 0
    for k in range(first, last):
        for i in range(offsets[k], offsets[k + 1]):
            a = places[rows[i]]
            for j in range(i + 1, offsets[k + 1]):
                ends[0, n] = rows[i]
                ends[1, n] = rows[j]
                size = _agree_set(matrix, a, places[rows[j]], skip, agreed, n)
                starts[(n_words << 6) - size + 1] += 1
                n += 1
    for s in range(1, starts.shape[0]):
        starts[s] += starts[s - 1]
    for i in range(n):
        size = 0
        for w in range(n_words):
            size += word_popcount(agreed[i, w])
        order[starts[(n_words << 6) - size]] = i
        starts[(n_words << 6) - size] += 1
    begin = n_masks
    for at in range(n):
        i = order[at]
        lowest = agreed[i, 0]
        whole = begin
        while whole < n_masks:
            if lowest & ~masks[whole, 0] == _ZERO:
                outside = _ZERO
                for w in range(1, n_words):
                    outside |= agreed[i, w] & ~masks[whole, w]
                if outside == _ZERO:
                    break
            whole += 1
        if whole == n_masks:
            for j in range(pair.shape[0]):
                pair[j, 0] = -1
                pair[j, 1] = -1
            masks, pairs = _noted(masks, pairs, n_masks, agreed[i], pair)
            n_masks += 1
        same = lowest == masks[whole, 0]
        for w in range(1, n_words):
            same &= agreed[i, w] == masks[whole, w]
        if same:
            for j in range(pairs.shape[1]):
                if pairs[whole, j, 0] < 0:
                    pairs[whole, j, 0] = ends[0, i]
                    pairs[whole, j, 1] = ends[1, i]
                    break
    return masks, pairs, n_masks


@njit(cache=True, nogil=True)
def _walk_pairs(  # type: ignore[no-untyped-def]
    sequences, lhs, pending, n_met, begin, stop, depth, values, ends, n_pairs, skip, bits, known, words,
    places, n_words_at, path, n_climbs, max_masks, order, mask, last_mask, pair, masks, pairs, n_masks,
):  # fmt: skip
    """(masks, pairs, n_masks): the candidates begin..stop, which share `depth` columns, settled by pairs.

    Level d of the walk are the pairs that agree on the first d columns of `path`: n_words_at[d] words of
    words[d] and places[d]; that of `depth` is given. The last two levels are room for climbs.
    """
    max_depth = sequences.shape[1]
    room = words.shape[0] - 2
    reached = depth
    for x in range(begin, stop):
        if not _any(pending, x):
            continue
        if n_met[x] < n_masks:
            is_open = _strike(lhs, pending, x, masks, n_met[x], n_masks)
            n_met[x] = n_masks
            if not is_open:
                continue
        d = depth
        while d < reached and sequences[x, d] == path[d]:
            d += 1
        reached = d
        while reached < max_depth and sequences[x, reached] >= 0 and n_words_at[reached]:
            c = sequences[x, reached]
            _agreeing(values, ends, n_pairs, c, skip, bits, known)
            n_words_at[reached + 1] = _narrowed(
                words, places, reached, n_words_at[reached], bits, c, _ZERO, reached + 1
            )
            path[reached] = c
            reached += 1
        if not n_words_at[reached]:
            continue
        for w in range(lhs.shape[1]):
            rest = pending[x, w]
            while rest:
                column = (w << 6) + word_lowest(rest)
                rest &= rest - _ONE
                _agreeing(values, ends, n_pairs, column, skip, bits, known)
                for turn in range(n_climbs):
                    if turn and n_masks >= max_masks:
                        break
                    n = _narrowed(words, places, reached, n_words_at[reached], bits, column, ~_ZERO, room)
                    if not n:
                        break
                    _shuffle(order, _seed(x, column, turn, n_climbs), last_mask, turn > 0)
                    for v in range(lhs.shape[1]):
                        mask[v] = lhs[x, v]
                    _climb_pairs(
                        words, places, room, n, column, order, mask, values, ends, n_pairs, skip, bits, known,
                        pair,
                    )  # fmt: skip
                    masks, pairs = _noted(masks, pairs, n_masks, mask, pair)
                    n_masks += 1
                    for v in range(lhs.shape[1]):
                        last_mask[v] = mask[v]
                        pending[x, v] &= mask[v]
                    rest &= mask[w]
    return masks, pairs, n_masks


@njit(cache=True, nogil=True)
def _refute(  # type: ignore[no-untyped-def]
    values, matrix, places, bounds, sequences, lhs, pending, reach, n_ids, skip, chunk_rows, leaf_rows,
    n_climbs, max_masks, keep, pairs_each, pairs_a_row, most_pairs, keys_only,
):  # fmt: skip
    """(masks uint64[k, n_words], pairs int64[k, keep, 2]); see `refute`, whose arguments these are.

    Clusters are taken in chunks of about `chunk_rows` rows, and for each chunk the trie of the candidates is
    walked depth first. Level d of the walk are the clusters of the first d columns of `path` on which
    something varies that a candidate below asks for: numbers first[d] to last[d] of `offsets` and `varying`,
    whose rows end at end_row[d]; union[d] is all that varies on them. A level is written behind the one
    before it, over what an earlier path has left there.

    A candidate whose last level still varies on a pending column is refuted: `_leaf` picks rows, `_climb`
    makes an agree set of them, which strikes what this candidate asks for, and what others ask for when it is
    their turn (`n_met` is the number of masks that each has met).

    Where the clusters of a level have few pairs of rows for the candidates below it, these are settled by
    sets of pairs, 64 in a word (`_walk_pairs`), no more by clusters; keys by comparing these pairs
    (`_compare_pairs`). Candidates that were once are walked in all later chunks, refuted or not.
    """
    n_candidates = sequences.shape[0]
    max_depth = sequences.shape[1]
    n_words = lhs.shape[1]
    n_columns = values.shape[0]
    n_clusters = bounds.shape[0] - 1
    masks = np.empty((64, n_words), dtype=np.uint64)
    pairs = np.empty((64, keep, 2), dtype=np.int64)
    n_masks = 0
    n_met = np.zeros(n_candidates, dtype=np.int64)  # how much of the evidence a candidate has met
    # below[x, d]: what candidates from x on that share the first d columns of x ask for
    levels = max_depth + 1
    below = np.empty((n_candidates, levels, n_words), dtype=np.uint64)
    union = np.empty((levels, n_words), dtype=np.uint64)
    need = np.empty(n_words, dtype=np.uint64)
    wanted_columns = np.empty(n_words, dtype=np.uint64)
    mask = np.empty(n_words, dtype=np.uint64)
    last_mask = np.empty(n_words, dtype=np.uint64)
    pair = np.empty((keep, 2), dtype=np.int64)
    order = np.empty(n_columns, dtype=np.int64)
    leaf_clusters = leaf_rows // 2 + 2
    leaf = np.empty(3 * leaf_rows, dtype=np.int32)
    leaf_offsets = np.empty(3 * leaf_clusters, dtype=np.int64)
    leaf_varying = np.empty((3 * leaf_clusters, n_words), dtype=np.uint64)
    first = np.zeros(levels, dtype=np.int64)
    last = np.zeros(levels, dtype=np.int64)
    end_row = np.zeros(levels, dtype=np.int64)
    path = np.empty(max_depth, dtype=np.int32)
    # Of pairs of rows: how many a level has; room for those that are listed, and for each level of them.
    n_pairs = np.zeros(levels, dtype=np.int64)
    alike = np.full(n_candidates, -1, dtype=np.int64)  # columns that a candidate shares with the next one
    n_every = np.int64(0)
    for k in range(n_clusters):
        n_every += _pairs_in(bounds, k)
    most_pairs = min(most_pairs, n_every)
    pair_words = (most_pairs + 63) >> 6
    ends = np.empty((2, most_pairs), dtype=np.uint32)
    bits = np.empty((n_columns + 1, pair_words), dtype=np.uint64)
    known = np.empty(n_columns + 1, dtype=np.bool_)
    pair_levels = np.empty((levels + 2, pair_words), dtype=np.uint64)
    pair_places = np.empty((levels + 2, pair_words), dtype=np.int32)
    n_words_at = np.zeros(levels, dtype=np.int64)
    agreed = np.empty((most_pairs if keys_only else 0, n_words), dtype=np.uint64)
    by_size = np.empty(most_pairs if keys_only else 0, dtype=np.int32)
    row_word = n_columns >> 6
    row_bit = _ONE << np.uint64(n_columns & 63)
    # Working space for the largest cluster, and for the largest chunk.
    biggest = np.int64(leaf_rows)
    for k in range(n_clusters):
        biggest = max(biggest, bounds[k + 1] - bounds[k])
    n_rows = min(max(biggest, np.int64(chunk_rows)), bounds[n_clusters])
    capacity = max(32, DIRECT_IDS)
    while capacity < 2 * biggest:
        capacity *= 2
    table = np.full(capacity, -1, dtype=np.int32)
    slot = np.empty(biggest, dtype=np.int32)
    ids = np.empty(biggest, dtype=np.int32)
    leader = np.empty(biggest, dtype=np.int32)
    sizes = np.empty(biggest, dtype=np.int64)
    differ = np.empty((biggest, n_words), dtype=np.uint64)
    # Levels of the walk: each is at most as large as the one before.
    rows = np.empty(n_rows * levels + 1, dtype=np.int32)
    offsets = np.empty((n_rows // 2 + 3) * levels, dtype=np.int64)
    varying = np.empty((offsets.shape[0], n_words), dtype=np.uint64)
    done = 0
    while done < n_clusters:
        # a chunk: whole clusters, up to chunk_rows rows, at least one cluster
        end = done + 1
        while end < n_clusters and bounds[end + 1] - bounds[done] <= chunk_rows:
            end += 1
        for x in range(n_candidates - 1, -1, -1):
            shared = -1
            if x + 1 < n_candidates:
                shared = 0
                while (
                    shared < max_depth
                    and sequences[x, shared] >= 0
                    and sequences[x, shared] == sequences[x + 1, shared]
                ):
                    shared += 1
            alike[x] = shared
            for d in range(levels):
                for w in range(n_words):
                    below[x, d, w] = pending[x, w]
                    if w == row_word and reach[x] >= 0:
                        below[x, d, w] |= row_bit
                    if d <= shared:
                        below[x, d, w] |= below[x + 1, d, w]
        for w in range(n_words):
            wanted_columns[w] = below[0, 0, w]
            union[0, w] = _ZERO
        top_row = 0
        top = 0
        offsets[0] = 0
        n_pairs[0] = 0
        for k in range(done, end):
            for w in range(n_words):
                varying[top, w] = _ZERO
            for r in range(bounds[k] + 1, bounds[k + 1]):
                if not _note_differences(values, r, bounds[k], wanted_columns, skip, varying, top):
                    break
            if _any(varying, top):
                for r in range(bounds[k], bounds[k + 1]):
                    rows[top_row] = r
                    top_row += 1
                for w in range(n_words):
                    union[0, w] |= varying[top, w]
                top += 1
                offsets[top] = top_row
                n_pairs[0] += _pairs_in(bounds, k)
        first[0] = 0
        last[0] = top
        end_row[0] = top_row
        depth = 0  # levels 0..depth are the prefix in `path`
        following = 0
        while following < n_candidates:
            x = following
            following += 1
            is_open = _any(pending, x)
            if is_open and n_met[x] < n_masks:
                is_open = _strike(lhs, pending, x, masks, n_met[x], n_masks)
                n_met[x] = n_masks
            if not is_open and reach[x] < 0:
                reach[x] = NOT_ALL
                continue
            d = 0
            while d < depth and sequences[x, d] == path[d]:
                d += 1
            depth = d
            by_pairs = False
            while True:
                violated = reach[x] >= 0 and union[depth, row_word] & row_bit != _ZERO
                for w in range(n_words):
                    if union[depth, w] & pending[x, w]:
                        violated = True
                if not violated or depth == max_depth or sequences[x, depth] < 0:
                    break
                if n_pairs[depth] <= most_pairs:
                    stop = x
                    n_open = 0
                    while True:
                        n_open += 1 if reach[stop] >= 0 or _any(pending, stop) else 0
                        stop += 1
                        if alike[stop - 1] < depth:
                            break
                    n_here = end_row[depth] - offsets[first[depth]]
                    by_pairs = n_pairs[depth] <= pairs_each * n_open + pairs_a_row * n_here
                    if by_pairs and keys_only:
                        n_before = n_masks
                        masks, pairs, n_masks = _compare_pairs(
                            matrix, places, rows, offsets, first[depth], last[depth], skip, agreed, ends,
                            by_size, pair, masks, pairs, n_masks,
                        )  # fmt: skip
                        for y in range(x, stop):
                            _strike(lhs, pending, y, masks, n_before, n_masks)
                            if reach[y] != NOT_ALL:
                                reach[y] = max(reach[y], depth)
                        following = stop
                        break
                    if by_pairs:
                        n_listed, n_words_at[depth] = _list_pairs(
                            values, rows, offsets, first[depth], last[depth], below[x, depth], skip, ends,
                            bits, known, pair_levels, pair_places, depth,
                        )  # fmt: skip
                        masks, pairs, n_masks = _walk_pairs(
                            sequences, lhs, pending, n_met, x, stop, depth, values, ends, n_listed, skip,
                            bits, known, pair_levels, pair_places, n_words_at, path, n_climbs, max_masks,
                            order, mask, last_mask, pair, masks, pairs, n_masks,
                        )  # fmt: skip
                        following = stop
                        break
                c = sequences[x, depth]
                start = last[depth] + 1
                top = start
                top_row = end_row[depth]
                offsets[top] = top_row
                for w in range(n_words):
                    union[depth + 1, w] = _ZERO
                for k in range(first[depth], last[depth]):
                    wanted = False
                    for w in range(n_words):
                        need[w] = varying[k, w] & below[x, depth + 1, w]
                        if need[w]:
                            wanted = True
                    if wanted:
                        top_row, top = _split(
                            values, rows, offsets, varying, k, c, n_ids[c], need, skip, top_row, top, table,
                            slot, ids, sizes, leader, differ,
                        )  # fmt: skip
                n_pairs[depth + 1] = 0
                for k in range(start, top):
                    n_pairs[depth + 1] += _pairs_in(offsets, k)
                    for w in range(n_words):
                        union[depth + 1, w] |= varying[k, w]
                path[depth] = c
                depth += 1
                first[depth] = start
                last[depth] = top
                end_row[depth] = top_row
            if by_pairs:
                continue
            if not violated:
                if reach[x] != NOT_ALL:
                    reach[x] = max(reach[x], depth)
                continue
            reach[x] = NOT_ALL
            # Each violated column gets evidence; one agree set often serves several.
            for w in range(n_words):
                while union[depth, w] & pending[x, w]:
                    column = (w << 6) + word_lowest(union[depth, w] & pending[x, w])
                    for turn in range(n_climbs):
                        if turn and n_masks >= max_masks:
                            break
                        seed = _seed(x, column, turn, n_climbs)
                        n_here = last[depth] - first[depth]
                        begin = first[depth] + np.int64(seed % np.uint64(n_here))
                        n_leaves = _leaf(
                            values, rows, offsets, varying, first[depth], last[depth], begin, column, skip,
                            leaf_rows, leaf, leaf_offsets,
                        )  # fmt: skip
                        _shuffle(order, seed, last_mask, turn > 0)
                        for v in range(n_words):
                            mask[v] = lhs[x, v]
                        _climb(
                            values, leaf, leaf_offsets, leaf_varying, n_leaves, column, order, mask, n_ids,
                            need, skip, table, slot, ids, sizes, leader, differ, pair,
                        )  # fmt: skip
                        masks, pairs = _noted(masks, pairs, n_masks, mask, pair)
                        n_masks += 1
                        for v in range(n_words):
                            last_mask[v] = mask[v]
                            pending[x, v] &= mask[v]
        done = end
    return masks[:n_masks].copy(), pairs[:n_masks].copy()


def refute(
    matrix: I32,
    places: I32,
    offsets: I64,
    sequences: I32,
    lhs: U64,
    pending: U64,
    n_ids: I64,
    nulls_distinct: bool,
    reach: I64 | None = None,
) -> tuple[U64, I64]:
    """(masks, witnesses): evidence against candidates; what is refuted is taken from `pending`.

    IN matrix int32[*, n_columns], places int32[n]: values, row after row, and where the n rows are; IN
    offsets int64[*]: clusters of consecutive rows that agree on what all left-hand sides have in common; IN
    sequences int32[n_candidates, *]: the other columns of each left-hand side, padded with -1, sorted so
    that equal prefixes are neighbours; IN lhs uint64[n_candidates, n_words]: the whole left-hand sides;
    INOUT pending uint64[n_candidates, n_words]: the right-hand sides to check, disjoint from lhs, the row
    among them; IN n_ids int64[n_columns]: all values of column c are below n_ids[c]. OUT masks
    uint64[k, n_words], which may repeat, and witnesses int64[k, WITNESSES, 2]: pairs of rows (numbers below
    n) that have that agree set, -1 for none.

    Law: after the call column A is pending for candidate x iff it was so before, A is constant on each
    cluster of lhs[x], and no mask contains lhs[x] without A. What is no longer pending is refuted by a mask.

    Of keys alone INOUT reach int64[n_candidates] is NOT_SEEN at first. Law: if reach[x] is not negative, each
    pair of rows of a cluster that agrees on the first reach[x] columns of sequences[x] has an agree set that
    is part of some mask, in all calls. So candidates with such a reach are given again, also if refuted.

    Cost: each prefix of the trie refines only clusters that violate something below it.
    """
    n_columns = matrix.shape[1]
    n_words = pending.shape[1]
    has_row = n_columns < 64 * n_words  # else nobody asks for the row
    keys_only = has_row and not (pending & ~mask_of([n_columns], n_words)).any()
    if reach is None or not keys_only:
        reach = np.full(len(lhs), NOT_ALL, dtype=np.int64)
    chunk_rows = max(2, CHUNK_VALUES * (KEY_CHUNKS if keys_only else 1) // max(1, n_columns))
    most_pairs = PAIR_BITS // (n_columns + 1)
    return _refute(  # type: ignore[no-any-return]
        frozen(columns_of(matrix, places)), frozen(matrix), frozen(places), frozen(offsets),
        frozen(sequences), frozen(lhs), pending, reach, frozen(n_ids), nulls_distinct, chunk_rows, LEAF_ROWS,
        N_CLIMBS, MAX_MASKS, WITNESSES, PAIRS_EACH, PAIRS_A_ROW, most_pairs, keys_only,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _unite(group, witnesses, united):  # type: ignore[no-untyped-def]
    for i in range(group.shape[0]):
        g = group[i]
        for j in range(witnesses.shape[1]):
            a = min(witnesses[i, j, 0], witnesses[i, j, 1])
            b = max(witnesses[i, j, 0], witnesses[i, j, 1])
            if a < 0:
                continue
            for k in range(united.shape[1]):
                if united[g, k, 0] == a and united[g, k, 1] == b:
                    break
                if united[g, k, 0] < 0:
                    united[g, k, 0] = a
                    united[g, k, 1] = b
                    break


def unite(masks: U64, witnesses: I64) -> tuple[U64, I64]:
    """The different masks in order of their first occurrence, with the first witnesses of all of a kind.

    IN masks uint64[n, n_words], witnesses int64[n, WITNESSES, 2]. A pair (a, b) is the same as (b, a) and
    comes out with the smaller first. Cost: a hash of each mask.
    """
    first, group = unique_masks(masks)
    united = np.full((len(first), WITNESSES, 2), -1, dtype=np.int64)
    _unite(frozen(group), frozen(witnesses), united)
    return np.ascontiguousarray(masks[first]), united


@njit(cache=True, nogil=True)
def _select(codes, live, identity, part, n_parts, skip_null):  # type: ignore[no-untyped-def]
    wanted = np.empty(identity.shape[0], dtype=np.bool_)
    for v in range(identity.shape[0]):
        wanted[v] = n_parts == 1 or mix(np.uint64(identity[v])) % np.uint64(n_parts) == np.uint64(part)
    if skip_null:
        wanted[0] = False
    n = 0
    for i in range(codes.shape[0]):
        if wanted[codes[i]] and live[i]:
            n += 1
    positions = np.empty(n, dtype=np.int32)
    ids = np.empty(n, dtype=np.int32)
    n = 0
    for i in range(codes.shape[0]):
        if wanted[codes[i]] and live[i]:
            positions[n] = i
            ids[n] = identity[codes[i]]
            n += 1
    return positions, ids


def select(
    codes: I32, live: Bool, identity: I32, part: int, n_parts: int, skip_null: bool
) -> tuple[I32, I32]:
    """(positions, ids): the live rows of a segment whose value falls into one of n_parts parts of all values.

    IN codes int32[n], live bool[n]: a column; IN identity int32[k]: what its codes stand for in all
    segments, 0 for the code 0, NULL. Equal values fall into the same part in every segment.
    """
    return _select(  # type: ignore[no-any-return]
        frozen(codes), frozen(live), frozen(identity), part, n_parts, skip_null
    )


@njit(cache=True, nogil=True)
def _cluster(ids, offsets, n_ids, skip_null):  # type: ignore[no-untyped-def]
    n = ids.shape[0]
    rows = np.empty(n, dtype=np.int32)
    bounds = np.empty(n // 2 + 2, dtype=np.int64)
    bounds[0] = 0
    # Of a value: how many rows of a cluster have it; then, below 0, where the next one of them goes.
    table = np.zeros(n_ids, dtype=np.int32)
    n_rows = 0
    n_clusters = 0
    for k in range(offsets.shape[0] - 1):
        low = offsets[k]
        high = offsets[k + 1]
        if high - low == 2:
            v = ids[low]
            if v == ids[low + 1] and not (skip_null and v == 0):
                rows[n_rows] = low
                rows[n_rows + 1] = low + 1
                n_rows += 2
                n_clusters += 1
                bounds[n_clusters] = n_rows
            continue
        for i in range(low, high):
            table[ids[i]] += 1
        if skip_null:
            table[0] = 0
        for i in range(low, high):
            many = table[ids[i]]
            if many > 1:
                rows[n_rows] = i
                table[ids[i]] = -(n_rows + 1)
                n_rows += many
                n_clusters += 1
                bounds[n_clusters] = n_rows
            elif many < 0:
                rows[-many] = i
                table[ids[i]] = many - 1
        for i in range(low, high):
            table[ids[i]] = 0
    return rows[:n_rows].copy(), bounds[: n_clusters + 1].copy()


def cluster(
    ids: I32, n_ids: int, offsets: I64 | None = None, nulls_distinct: bool = False
) -> tuple[I32, I64]:
    """(rows, offsets): the clusters of rows with equal values, at least two rows each, in the order of their
    first rows; each within one of the clusters that are given by offsets int64[*], if they are.

    IN ids int32[n], all below n_ids; where NULLs are distinct rows of 0 have no equals. Cluster i is
    rows[offsets[i]:offsets[i + 1]], ascending. Cost: three passes over the rows, and n_ids.
    """
    if offsets is None:
        offsets = np.array([0, len(ids)], dtype=np.int64)
    return _cluster(frozen(ids), frozen(offsets), n_ids, nulls_distinct)  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _gather(codes, identity, positions, at, column, out):  # type: ignore[no-untyped-def]
    for i in range(positions.shape[0]):
        out[at[i], column] = identity[codes[positions[i]]]


def gather(codes: I32, identity: I32, positions: I32, at: I64, column: int, out: I32) -> None:
    """OUT out int32[*, n_columns]: out[at[i], column] gets the value of the row positions[i] of a segment.

    IN codes int32[n], identity int32[k] (see `select`), positions int32[m], at int64[m].
    """
    _gather(frozen(codes), frozen(identity), frozen(positions), frozen(at), column, out)


@njit(cache=True, nogil=True)
def _partnered(matrix, rows, offsets, columns, skip, places, bounds):  # type: ignore[no-untyped-def]
    n = 0
    n_clusters = 0
    bounds[0] = 0
    for k in range(offsets.shape[0] - 1):
        low = offsets[k]
        size = offsets[k + 1] - low
        start = n
        everyone = (np.int64(1) << size) - 1
        partnered = everyone if size > FEW_ROWS else np.int64(0)
        for j in range(columns.shape[0]):
            if partnered == everyone:
                break
            c = columns[j]
            for i in range(size - 1):
                v = matrix[rows[low + i], c]
                if skip and v == 0:
                    continue
                for o in range(i + 1, size):
                    if matrix[rows[low + o], c] == v:
                        partnered |= (np.int64(1) << i) | (np.int64(1) << o)
        for i in range(size):
            if partnered == everyone or partnered & (np.int64(1) << i):
                places[n] = low + i
                n += 1
        if n > start:
            n_clusters += 1
            bounds[n_clusters] = n
    return n, n_clusters


def partnered(matrix: I32, rows: I32, offsets: I64, columns: I32, nulls_distinct: bool) -> tuple[I64, I64]:
    """(places, offsets): rows that share a value of one of some columns with another row of their cluster.

    IN matrix int32[n, n_columns]; IN rows int32[m]: rows of it, in clusters offsets int64[*]; IN columns
    int32[*]. OUT places int64[*]: where in `rows` they are, ascending. Clusters of more than FEW_ROWS rows
    stay whole. Cost: a miss of the cache a row.
    """
    places = np.empty(len(rows), dtype=np.int64)
    bounds = np.empty(len(offsets), dtype=np.int64)
    n, n_clusters = _partnered(
        frozen(matrix), frozen(rows), frozen(offsets), frozen(columns), nulls_distinct, places, bounds
    )
    return places[:n], bounds[: n_clusters + 1]


@njit(cache=True, nogil=True)
def _columns_of(matrix, rows, out):  # type: ignore[no-untyped-def]
    # A few rows at a time: they stay in the cache until all of their columns are written, a line each.
    for start in range(0, rows.shape[0], 16):
        for c in range(out.shape[0]):
            for i in range(start, min(start + 16, rows.shape[0])):
                out[c, i] = matrix[rows[i], c]


def columns_of(matrix: I32, rows: I32) -> I32:
    """int32[n_columns, m]: some rows of a matrix, column after column.

    IN matrix int32[n, n_columns], rows int32[m]. Cost: a miss of the cache a row.
    """
    out = np.empty((matrix.shape[1], len(rows)), dtype=np.int32)
    _columns_of(frozen(matrix), frozen(rows), out)
    return out


@njit(cache=True, nogil=True)
def _first_other(codes, live, identity, value):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        if live[i] and identity[codes[i]] != value:
            return i
    return -1


def first_other(codes: I32, live: Bool, identity: I32, value: int) -> int:
    """The position of the first live row whose value is another one, or -1; arguments as in `select`."""
    return int(_first_other(frozen(codes), frozen(live), frozen(identity), value))


def warm_up() -> None:
    codes = np.array([1, 1, 1, 1, 2], dtype=np.int32)
    live = np.ones(5, dtype=np.bool_)
    identity = np.arange(3, dtype=np.int32)
    positions, ids = select(codes, live, identity, 0, 1, False)
    rows, offsets = cluster(ids, 3)
    first_other(codes, live, identity, 1)
    matrix = np.array([[1, 1, 1], [1, 1, 2], [1, 2, 1], [1, 2, 2]], dtype=np.int32)
    gather(codes, identity, positions[rows], np.arange(len(rows)), 0, matrix)
    partnered(matrix, positions[rows], offsets, rows[:1], False)
    sequences = np.ones((1, 1), dtype=np.int32)
    lhs, pending = np.array([[3]], dtype=np.uint64), np.array([[4]], dtype=np.uint64)
    masks, witnesses = refute(matrix, positions[rows], offsets, sequences, lhs, pending, np.full(3, 3), False)
    strike(lhs, pending, masks)
    unite(masks, witnesses)
