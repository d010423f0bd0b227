"""Evidence of pairs of rows: agree sets, consolidated, each with a few witnesses.

Rows are columns of a code matrix `codes` int32[n_columns, n_rows]: local codes, 0 is NULL. An
agree set is a mask, uint64[n_words], with bit c set where the two rows agree on column c. Under
the rule that NULLs are distinct, two NULLs do not agree.

Consolidated evidence is `masks` uint64[k, n_words], all different, with `witnesses`
int64[k, WITNESSES, 2]: up to WITNESSES pairs of row positions that have that agree set, -1
where there are fewer. A result is as large as the number of different agree sets, never as the
number of pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen, mix

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Columns whose codes share a word of so many bits.
WORD_COLUMNS, WORD_BITS = 16, 64
# Pairs kept per agree set: a delete orphans an agree set only when it hits every one of them.
WITNESSES = 4


@njit(cache=True, nogil=True)
def _slot(slots, masks, mask):  # type: ignore[no-untyped-def]
    capacity = slots.shape[0]
    h = np.uint64(0)
    for w in range(mask.shape[0]):
        h = mix(h * np.uint64(0x9E3779B97F4A7C15) + mask[w])
    s = np.int64(h & np.uint64(capacity - 1))
    while slots[s] >= 0:
        k = slots[s]
        same = True
        for w in range(mask.shape[0]):
            if masks[k, w] != mask[w]:
                same = False
                break
        if same:
            return s
        s = (s + 1) & (capacity - 1)
    return s


@njit(cache=True, nogil=True)
def _grown(masks, witnesses, n):  # type: ignore[no-untyped-def]
    size = 2 * masks.shape[0]
    new_masks = np.empty((size, masks.shape[1]), dtype=np.uint64)
    new_masks[:n] = masks[:n]
    new_witnesses = np.full((size, witnesses.shape[1], 2), -1, dtype=np.int64)
    new_witnesses[:n] = witnesses[:n]
    slots = np.full(4 * size, -1, dtype=np.int64)
    for k in range(n):
        slots[_slot(slots, new_masks, new_masks[k])] = k
    return slots, new_masks, new_witnesses


@njit(cache=True, nogil=True)
def _record(slots, masks, witnesses, n, mask, a, b):  # type: ignore[no-untyped-def]
    """Count one pair; the caller keeps n below the capacity. Returns the new n."""
    s = _slot(slots, masks, mask)
    k = slots[s]
    if k < 0:
        k = n
        slots[s] = k
        for w in range(mask.shape[0]):
            masks[k, w] = mask[w]
        n += 1
    for j in range(witnesses.shape[1]):
        if witnesses[k, j, 0] < 0:
            witnesses[k, j, 0] = a
            witnesses[k, j, 1] = b
            break
        if witnesses[k, j, 0] == a and witnesses[k, j, 1] == b:
            break
    return n


@njit(cache=True, nogil=True)
def _pairs_evidence(codes, left, right, distinct, keep):  # type: ignore[no-untyped-def]
    n_columns = codes.shape[0]
    n_words = max(1, (n_columns + 63) // 64)
    masks = np.empty((64, n_words), dtype=np.uint64)
    witnesses = np.full((64, keep, 2), -1, dtype=np.int64)
    slots = np.full(256, -1, dtype=np.int64)
    mask = np.empty(n_words, dtype=np.uint64)
    n = 0
    for i in range(left.shape[0]):
        a = left[i]
        b = right[i]
        mask[:] = np.uint64(0)
        for c in range(n_columns):
            v = codes[c, a]
            if v == codes[c, b] and not (distinct and v == 0):
                mask[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
        if n == masks.shape[0]:
            slots, masks, witnesses = _grown(masks, witnesses, n)
        n = _record(slots, masks, witnesses, n, mask, a, b)
    return masks[:n].copy(), witnesses[:n].copy()


def pairs_evidence(codes: I32, left: I64, right: I64, nulls_distinct: bool) -> tuple[U64, I64]:
    """The consolidated agree sets of the pairs (left[i], right[i]), all different rows of one matrix.

    IN codes int32[n_columns, n_rows]; IN left, right int64[p].
    """
    return _pairs_evidence(  # type: ignore[no-any-return]
        frozen(codes), frozen(left), frozen(right), nulls_distinct, WITNESSES
    )


@njit(cache=True, nogil=True)
def _sample_pairs(codes, positions, at, hop):  # type: ignore[no-untyped-def]
    left = np.empty(at.shape[0], dtype=np.int64)
    right = np.empty(at.shape[0], dtype=np.int64)
    n = 0
    for i in range(at.shape[0]):
        h = hop[i]
        # Fall back to the nearest neighbour: in a small cluster a long hop leaves it.
        while h > 0:
            if at[i] + h < positions.shape[0]:
                a = positions[at[i]]
                b = positions[at[i] + h]
                if codes[a] == codes[b]:
                    left[n] = a
                    right[n] = b
                    n += 1
                    break
            h //= 2
    return left[:n].copy(), right[:n].copy()


def sample_pairs(codes: I32, positions: I32, n_pairs: int, rng: np.random.Generator) -> tuple[I64, I64]:
    """Up to n_pairs pairs of rows that share a value of one column.

    IN codes int32[n], the column; IN positions int32[n], its rows ordered by code (`postings`).
    Half of the pairs are direct neighbours, the others a few rows apart.
    """
    n = len(positions)
    if n < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    at = np.arange(n - 1) if n - 1 <= n_pairs else rng.integers(0, n - 1, n_pairs)
    hop = np.where(rng.random(len(at)) < 0.5, 1, rng.integers(1, 64, len(at)))
    return _sample_pairs(frozen(codes), frozen(positions), frozen(at), frozen(hop))  # type: ignore[no-any-return]


@njit(cache=True, nogil=True)
def _choose(starts, ends, translated, probes, chosen):  # type: ignore[no-untyped-def]
    """OUT chosen int32[n_batch, n_probes]; see `choose_lists`."""
    n_probes = probes.shape[0]
    users = np.zeros(starts.shape[0], dtype=np.int64)
    for b in range(starts.shape[1]):
        users[:] = 0
        for s in range(n_probes):
            best = -1
            shortest = np.int64(0)
            for j in range(probes.shape[1]):
                k = probes[s, j]
                if k < 0:
                    break
                if translated[k, b] < 0:
                    best = -1
                    break
                length = np.int64(ends[k, b]) - np.int64(starts[k, b])
                if best < 0 or length < shortest:
                    best = k
                    shortest = length
            chosen[b, s] = best
            if best >= 0:
                users[best] += 1
        # A list that another probe walks anyway is free: it is taken, too, if it is not too long.
        for s in range(n_probes):
            best = chosen[b, s]
            if best < 0 or users[best] != 1:
                continue
            shortest = np.int64(ends[best, b]) - np.int64(starts[best, b])
            for j in range(probes.shape[1]):
                k = probes[s, j]
                if k < 0:
                    break
                length = np.int64(ends[k, b]) - np.int64(starts[k, b])
                if k != best and users[k] > 0 and length <= 2 * shortest:
                    users[best] = 0
                    users[k] += 1
                    chosen[b, s] = k
                    break


def choose_lists(starts: I32, ends: I32, translated: I32, probes: I32) -> I32:
    """For each probe and batch row the index whose list is walked.

    IN starts, ends int32[n_indexes, n_batch]: the posting list of each batch row in each index; IN
    translated int32[n_indexes, n_batch]: its local code there, -1 for none; IN probes
    int32[n_probes, *]: sets of indexes, padded with -1. The result is int32[n_batch, n_probes],
    -1 where some index of the probe has no such value: the intersection is empty (SWAN alg. 2,
    line 15). Else it is the shortest list, or one of at most twice its length that another probe of the
    row walks as well: lookups are shared, as in SWAN's cache.
    """
    chosen = np.empty((starts.shape[1], len(probes)), dtype=np.int32)
    _choose(frozen(starts), frozen(ends), frozen(translated), frozen(probes), chosen)
    return chosen


@njit(cache=True, nogil=True)
def _count_entries(starts, ends, chosen, counts):  # type: ignore[no-untyped-def]
    """OUT counts int64[n_indexes]; see `count_entries`."""
    last = np.full(starts.shape[0], -1, dtype=np.int64)
    for b in range(chosen.shape[0]):
        for s in range(chosen.shape[1]):
            k = chosen[b, s]
            if k >= 0 and last[k] != b:
                last[k] = b
                counts[k] += np.int64(ends[k, b]) - np.int64(starts[k, b])


def count_entries(starts: I32, ends: I32, chosen: I32) -> I64:
    """The entries that are walked in each index: int64[n_indexes]. IN as of `choose_lists`."""
    counts = np.zeros(len(starts), dtype=np.int64)
    _count_entries(frozen(starts), frozen(ends), frozen(chosen), counts)
    return counts


@njit(cache=True, nogil=True)
def _contradicted(codes, live, translated, positions, starts, ends, rhs, differs):  # type: ignore[no-untyped-def]
    for b in range(differs.shape[0]):
        for p in range(starts[b], ends[b]):
            r = positions[p]
            if live[r]:
                for j in range(rhs.shape[0]):
                    if codes[rhs[j], r] != translated[rhs[j], b]:
                        differs[b] = True
                        break
                break


def contradicted(
    codes: I32, live: Bool, translated: I32, positions: I32, starts: I32, ends: I32, rhs: I32
) -> Bool:
    """Whether each batch row differs on a column of `rhs` from the old rows with its value of a column.

    The column is one that determines those of `rhs` among the old rows, so one of them speaks for
    all. IN as in `probe`; IN rhs int32[*]; the result is bool[n_batch]. Cost: one old row a batch row.
    """
    differs = np.zeros(len(starts), dtype=np.bool_)
    _contradicted(
        frozen(codes), frozen(live), frozen(translated), frozen(positions), frozen(starts), frozen(ends),
        frozen(rhs), differs,
    )  # fmt: skip
    return differs


class RowWords(NamedTuple):
    """Some bits of the codes of each row in some columns, in one word: a random access looks at all of them.

    Rows whose words differ under the mask of a probe do not agree on its columns. Made if a batch walks many
    entries: 100,000 rows probed in 10 M rows take 1.3 s of a processor in place of 5.5.
    """

    old: U64  # uint64[n]
    batch: U64  # uint64[n_batch]
    probes: U64  # uint64[n_probes]


NO_WORDS = RowWords(*(np.zeros(0, np.uint64) for _ in range(3)))


@njit(cache=True, nogil=True)
def _add_bits(codes, shift, mask, words):  # type: ignore[no-untyped-def]
    """INOUT words uint64[n]: some bits of IN codes int32[n], added at a place."""
    for r in range(words.shape[0]):
        words[r] |= (np.uint64(codes[r]) & mask) << shift


def row_words(codes: I32, translated: I32, columns: I32) -> RowWords:
    """The words of old rows and of a batch, and masks for its probes.

    IN codes int32[n_columns, n], translated int32[n_columns, n_batch], columns int32[n_probes, *]: as of
    `probe`. Of more columns than a word has room for those of the fewest probes are left out. Cost: a pass
    over the columns, 1 ns a code.
    """
    used, counts = np.unique(columns[columns >= 0], return_counts=True)
    used = used[np.argsort(-counts, kind="stable")][:WORD_COLUMNS]
    bits = max(1, WORD_BITS // max(1, len(used)))
    mask = np.uint64((1 << min(bits, 32)) - 1)
    old, batch = (np.zeros(side.shape[1], np.uint64) for side in (codes, translated))
    probes = np.zeros(len(columns), np.uint64)
    for place, c in enumerate(used.tolist()):
        shift = np.uint64(place * bits)
        _add_bits(frozen(codes[c]), shift, mask, old)
        _add_bits(frozen(translated[c]), shift, mask, batch)
        probes[(columns == c).any(axis=1)] |= mask << shift
    return RowWords(old, batch, probes)


@njit(cache=True, nogil=True)
def _probe(  # type: ignore[no-untyped-def]
    codes,
    live,
    translated,
    positions,
    starts,
    ends,
    chosen,
    index,
    column,
    columns,
    rhs,
    within,
    words,
    batch_words,
    probe_words,
    keep,
):
    """(masks uint64[k, n_words], witnesses int64[k, keep, 2]); see `probe`, whose arguments these are.

    An entry of a list is compared on the columns of each probe that chose the list, until one is met; only
    then is its whole agree set worked out. Words, if there are any, tell first which ones are not met.
    """
    has_words = words.shape[0] > 0
    n_columns = codes.shape[0]
    n_words = max(1, (n_columns + 63) // 64)
    masks = np.empty((64, n_words), dtype=np.uint64)
    witnesses = np.full((64, keep, 2), -1, dtype=np.int64)
    slots = np.full(256, -1, dtype=np.int64)
    mask = np.empty(n_words, dtype=np.uint64)
    here = np.empty(chosen.shape[1], dtype=np.int64)
    n = 0
    for b in range(chosen.shape[0]):
        n_here = 0
        differ = np.uint64(0)
        for s in range(chosen.shape[1]):
            if chosen[b, s] == index:
                here[n_here] = s
                n_here += 1
        if n_here == 0:
            continue
        for p in range(starts[b], ends[b]):
            r = positions[p]
            if within and r >= b:
                break  # positions ascend: each pair of batch rows is seen once
            same = False
            if has_words:
                differ = words[r] ^ batch_words[b]
            for i in range(n_here):
                s = here[i]
                if has_words and differ & probe_words[s] != 0:
                    continue
                same = True
                for j in range(columns.shape[1]):
                    c = columns[s, j]
                    if c < 0:
                        break
                    if c != column and codes[c, r] != translated[c, b]:
                        same = False
                        break
                if same and rhs[s, 0] >= 0:
                    same = False
                    for j in range(rhs.shape[1]):
                        c = rhs[s, j]
                        if c < 0:
                            break
                        if codes[c, r] != translated[c, b]:
                            same = True
                            break
                if same:
                    break
            if not same or not live[r]:
                continue
            mask[:] = np.uint64(0)
            for c in range(n_columns):
                if codes[c, r] == translated[c, b]:
                    mask[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
            if n == masks.shape[0]:
                slots, masks, witnesses = _grown(masks, witnesses, n)
            n = _record(slots, masks, witnesses, n, mask, b, r)
    return masks[:n].copy(), witnesses[:n].copy()


def probe(
    codes: I32,
    live: Bool,
    translated: I32,
    positions: I32,
    starts: I32,
    ends: I32,
    chosen: I32,
    index: int,
    column: int,
    probe_columns: I32,
    probe_rhs: I32,
    within: bool,
    words: RowWords = NO_WORDS,
) -> tuple[U64, I64]:
    """The consolidated agree sets of batch rows with the old rows that one index finds for them.

    IN codes int32[n_columns, n], live bool[n]: the old rows; IN translated int32[n_columns,
    n_batch]: the batch in the codes of the old rows, -1 for a value (or a distinct NULL) that none
    of them has; IN positions int32[n]: the index, which is on `column`; IN starts, ends
    int32[n_batch]: the list of each batch row in it; IN chosen int32[n_batch, n_probes] (see
    `choose_lists`): rows are looked up where it equals `index`; IN probe_columns int32[n_probes, *]:
    the columns that a pair must agree on to be of interest, padded with -1, best the most
    selective first; IN probe_rhs int32[n_probes, *], likewise: if there are any, a pair must also differ
    on one of these. `within`: the old rows are the batch itself, each pair is seen once. IN words: those of
    these rows and probes, if it is worth while. Witnesses are (batch position, old position).

    Cost: the sum of the list lengths; a random access for each entry, or, without words, several.
    """
    return _probe(  # type: ignore[no-any-return]
        frozen(codes),
        frozen(live),
        frozen(translated),
        frozen(positions),
        frozen(starts),
        frozen(ends),
        frozen(chosen),
        np.int64(index),
        np.int64(column),
        frozen(probe_columns),
        frozen(probe_rhs),
        within,
        frozen(words.old),
        frozen(words.batch),
        frozen(words.probes),
        WITNESSES,
    )


def warm_up() -> None:
    codes = np.array([[1, 1, 2], [0, 0, 1]], dtype=np.int32)
    rows = np.array([0, 1], dtype=np.int64)
    pairs_evidence(codes, rows, rows + 1, False)
    positions = np.array([0, 1, 2], dtype=np.int32)
    sample_pairs(codes[0], positions, 2, np.random.default_rng(0))
    live = np.ones(3, dtype=np.bool_)
    starts, ends = np.zeros((1, 3), np.int32), np.ones((1, 3), np.int32)
    probes = np.zeros((1, 1), np.int32)
    chosen = choose_lists(starts, ends, codes[:1], probes)
    probe(codes, live, codes, positions, starts[0], ends[0], chosen, 0, 0, probes, probes - 1, False)
    contradicted(codes, live, codes, positions, starts[0], ends[0], probes[0])
