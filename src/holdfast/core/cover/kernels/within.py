"""Approximate denial constraints: all general ones that few enough pairs of rows violate.

Evidence is counted in both directions: masks of predicates, each with its number of ordered pairs. The pairs
that violate a DC are those of the evidence that contains it: its *support*, which only falls when predicates
join. A DC is *within* the allowance iff its support is at most that. As for the exact ones
(`kernels.vertices`), a DC is general iff none of its predicates can be dropped or loosened
without leaving the allowance. Trivial DCs have support 0 in any table and are not listed.

Law: written with loose predicates alone, the general DCs are the minimal sets of loose predicates that are
within and not trivial: a strict predicate is two loose ones, and to loosen it is to drop one of them. With an
allowance of 0 they are the exact general DCs, which `kernels.search` finds in half to three quarters of the
time. Dependencies and keys within an allowance are found in the index of agree sets instead
(`agree_index.minimal_by_search`): under a bound, in a half to a fiftieth of the time that they take here.

The search goes depth first over sets X that are not within. Evidence that contains X is *open*; evidence that
contains all of X but one member is *critical* to this member.

- One pass over the open evidence, copied to a list, gives the support of X + v for every candidate v. Where
  it is that of X, v tells nothing apart, here or below, and is no candidate any more. Where it is within,
  nothing below X + v is minimal, and X + v is unless a part of it without an earlier member is within, too.
- That is a question about the critical evidence: does what has v exceed what the allowance leaves? Evidence
  of many pairs comes first, so this is soon known, and on adult the answer is yes 98 times in 100. So
  critical evidence is no list but a bitset per level, of all members together: lists of it had ten
  times as many entries as those of open evidence, and took twice the time.
- A member without critical evidence ends the branch.
- *Only what may help is tried.* As many candidates M are gathered as X + M, not being within, can hold (those
  of the greatest support first). No result is inside X + M, so each one below has a candidate outside, and
  only these are tried, each with those tried before it and with all of M; so nothing is found twice. In MMCS
  the edge that is to be hit has this role: M is its complement. Nearly every node then leads to a result: for
  the 1,545,175 DCs of adult at 0.0001, 1,442,710 nodes.
- *Under a bound* on the predicates, a candidate that could not do even with the best others is none.
- *Mirror images are searched once.* Where X and the candidates are their own mirror images, p and its mirror
  image q are tried one after the other, p without q, and q only together with p; the latter is
  again a symmetric place. That is half of the search.

Sets are sorted by size, then by words, so equal covers are equal arrays.
"""

from __future__ import annotations

import numpy as np

from holdfast.core.cover.kernels.search import Watch, cut_to_bound, cut_trivial
from holdfast.core.cover.kernels.vertices import JOINS, OUTCOMES, UNBOUNDED, Frame, Space
from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Indices,
    Masks,
    as_masks,
    n_words_for,
    unique_masks,
    word_lowest,
)
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE
from holdfast.core.words.column_sets import bits_of, masks_of

# After so many entries of lists and words of bitsets the search returns: tenths of a second.
LOOKS_PER_CALL = 1 << 26
FIRST_CAPACITY = 1 << 12
# Supports of a list of at least so many entries are summed up by bytes of the masks, not by bits: three
# quarters of the time for lists of 1,000, two thirds for 10,000.
MIN_FOR_BYTES = 1 << 8
# Entries per branch in a sum that may end early: the vector loop inside must be long.
STRIDE = 64
NOT_BEGUN = -1
NONE = -1
# Of a group, what is said in `_cut_weak`: it has a member; two of its vertices are counted.
_HAS_MEMBER, _HAS_TWO = -2, -3
# Columns of `levels`.
_MEMBER, _SYMMETRIC, _REQUIRED = 0, 1, 2

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_BYTE = np.uint64(0xFF)


def minimal_dcs_within(
    evidences: Masks,
    counts: Indices,
    space: Space,
    allowed: int,
    max_size: int = 0,
    watch: Watch | None = None,
) -> tuple[Masks, Indices]:
    """`(dcs uint64[k, n_words], violations int64[k])`: all general DCs that at most `allowed` ordered pairs
    violate, one of each mirrored pair, each with the exact number of pairs that do.

    evidences IN `uint64[m, n_words]`, all different, and counts IN `int64[m]`, at least 1, of all ordered
    pairs; so the mirror image of an evidence is there with the same count, a ValueError if not. space IN,
    of which `general` is not looked at; allowed at least 0; `max_size` bounds the number of predicates (0
    or less: no bound). A bound cuts the list; it does not change what is minimal. If all pairs together are
    within, the one DC is {}.

    Cost (CPU): on adult (54 predicates, 24,000 rows, 96,314 evidences) about 17 microseconds per DC, of which
    there are most at small errors: 27,057 at 0, 979,493 at 0.000001, 1,545,175 at 0.0001, 396,493 at 0.01. Of
    at most 4 predicates there are 8, 634, 153 and 3,532, found in 0.6 s; of at most 3, in 0.3 s.

    >>> alone = np.zeros(2, dtype=np.int32)
    >>> column = Space(alone, np.array([EQ, NE], dtype=np.int32), np.array([0, 1], dtype=np.int32), True)
    >>> nearly_a_key = np.array([[0b10], [0b01]], dtype=np.uint64), np.array([40, 2])
    >>> [array.tolist() for array in minimal_dcs_within(*nearly_a_key, column, allowed=2)]
    [[[1]], [2]]
    """
    masks = as_masks(evidences)
    frame = Frame(space._replace(general=True), max_size, masks.shape[1])
    order = np.argsort(-counts, kind="stable")
    counts = np.ascontiguousarray(counts[order], dtype=np.int64)
    held = bits_of(masks[order], frame.n_predicates)[:, frame.predicates]
    family, images = (masks_of(bits, frame.nothing.shape[1]) for bits in (held, held[:, frame.vertex_mirror]))
    distinct, numbers = unique_masks(np.concatenate([family, images]))
    if len(distinct) != len(family) or not (counts[numbers[len(family) :]] == counts).all():
        raise ValueError(
            "the evidence is not that of all pairs of rows in both directions, each counted once"
        )
    total = int(counts.sum())
    if total <= allowed:
        return np.zeros((1, frame.n_words), dtype=np.uint64), np.array([total], dtype=np.int64)
    if frame.n_predicates == 0:
        return np.zeros((0, frame.n_words), dtype=np.uint64), np.zeros(0, dtype=np.int64)
    sets, violations = _searched(frame, family, counts, allowed, watch)

    # Of a DC and its mirror image the violations are the same, and either may have been found.
    dcs = frame.listed(sets)
    shown = frame.packed(dcs)
    images = masks_of(bits_of(sets, frame.n_vertices)[:, frame.vertex_mirror], sets.shape[1])
    _, numbers = unique_masks(np.concatenate([shown, sets, images]))
    violations_of = np.empty(len(numbers), dtype=np.int64)
    violations_of[numbers[len(dcs) :]] = np.concatenate([violations, violations])
    return dcs, violations_of[: len(dcs)].copy()


def _searched(
    frame: Frame, family: Masks, counts: Indices, allowed: int, watch: Watch | None
) -> tuple[Masks, Indices]:
    """`(sets, violations)`: the minimal sets within the allowance, one of each mirrored pair, unsorted.

    family IN uint64[m, n_words], over the vertices of the frame, closed under exchange of the rows; counts IN
    int64[m], descending, more than `allowed` in all.
    """
    n_vertices = frame.n_vertices
    n_evidences, n_words = family.shape
    # Vertices that are tried last may use those tried before, so they should be those with little open
    # evidence. Mirror images have one support; they stand side by side.
    held = bits_of(family, n_vertices)
    numbers = np.arange(n_vertices)
    order = np.lexsort((numbers, np.minimum(numbers, frame.vertex_mirror), -(counts @ held)))
    back = np.argsort(order)
    held = held[:, order]
    group_of, op_of = frame.group_of[order], frame.op_of[order]
    mirror = back[frame.vertex_mirror[order]]
    group_masks = masks_of(group_of[None, :] == np.arange(frame.n_groups)[:, None], n_words)
    bitmaps = masks_of(held.T, n_words_for(n_evidences))

    n_levels = min(2 * frame.n_groups, n_vertices) + 2  # A minimal set has at most two of a group.
    pool = np.empty(4 * (n_evidences + 1) * n_words, dtype=np.uint64)
    pool[: n_evidences * n_words] = masks_of(held, n_words).reshape(-1)
    weights = np.empty(4 * (n_evidences + 1), dtype=np.int64)
    weights[:n_evidences] = counts
    ends = np.zeros(n_levels + 1, dtype=np.int64)
    ends[1] = n_evidences
    opened = np.zeros((n_levels, bitmaps.shape[1]), dtype=np.uint64)
    opened[0] = masks_of(np.ones((1, n_evidences), dtype=np.bool_), bitmaps.shape[1])
    critical = np.zeros_like(opened)
    sets = np.zeros((n_levels, n_words), dtype=np.uint64)
    candidates = np.zeros_like(sets)
    candidates[0] = masks_of(np.ones((1, n_vertices), dtype=np.bool_), n_words)
    branches = np.zeros_like(sets)
    levels = np.full((n_levels, 3), NONE, dtype=np.int64)
    levels[0, _SYMMETRIC] = 1
    state = np.array([NOT_BEGUN, 0], dtype=np.int64)
    minimal = np.empty((FIRST_CAPACITY + n_vertices, n_words), dtype=np.uint64)
    violations = np.empty(len(minimal), dtype=np.int64)
    while not _search(
        bitmaps, group_of, op_of, mirror, group_masks, JOINS, allowed, frame.bound, LOOKS_PER_CALL,
        pool, weights, ends, opened, critical, sets, candidates, branches, levels, state, minimal, violations,
    ):  # fmt: skip
        if watch is not None:
            watch(2 * int(state[1]))  # of mirrored ones one is found
        if state[1] + n_vertices > len(minimal):
            minimal = np.concatenate([minimal, np.empty_like(minimal)])
            violations = np.concatenate([violations, np.empty_like(violations)])
        if 3 * ends[state[0] + 1] + 2 > len(weights):  # At least what the search asks for.
            pool = np.concatenate([pool, np.empty_like(pool)])
            weights = np.concatenate([weights, np.empty_like(weights)])
    in_order = bits_of(minimal[: state[1]], n_vertices)[:, back]
    return masks_of(in_order, n_words), violations[: state[1]]


@njit(cache=True, nogil=True)
def _search(
    bitmaps: Masks,
    group_of: Indices,
    op_of: Indices,
    mirror: Indices,
    group_masks: Masks,
    joins: Indices,
    allowed: int,
    max_size: int,
    n_looks: int,
    pool: Masks,
    weights: Indices,
    ends: Indices,
    opened: Masks,
    critical: Masks,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    levels: Indices,
    state: Indices,
    minimal: Masks,
    violations: Indices,
) -> bool:
    """Go on with the search until it ends (True), or room or `n_looks` looks are used up (False).

    IN: bitmaps uint64[n, n_blocks], the evidence that has each vertex; group_of, op_of and mirror int64[n];
    group_masks uint64[n_groups, n_words]; joins int64[64], see `cut_trivial`.

    IN/OUT, one row per level, level = size of the set so far: sets, candidates and branches
    uint64[levels, n_words], the set, the vertices that may still join, those to be tried; opened and critical
    uint64[levels, n_blocks], the evidence that contains the set, and that misses exactly one member; levels
    int64[levels, 3], the vertex that led to the next level, whether this one is symmetric (1 or 0), and the
    vertex that must join or NONE.

    IN/OUT: pool uint64[rows * n_words] and weights int64[rows], lists of open evidence and their counts: that
    of level l is the rows from ends[l] to ends[l + 1], the first one is all evidence.

    IN/OUT: state int64[2], the level (NOT_BEGUN at first) and the number of sets found; minimal
    uint64[capacity, n_words], violations int64[capacity].
    """
    n_vertices, n_blocks = bitmaps.shape
    n_words = sets.shape[1]
    sums = np.empty(WORD_BITS * n_words, dtype=np.int64)
    order = np.empty(n_vertices, dtype=np.int64)
    together = np.empty(n_words, dtype=np.uint64)
    table = np.empty(256, dtype=np.int64)
    gains = np.empty((2, group_masks.shape[0]), dtype=np.int64)
    level, n_minimal = state[0], state[1]
    looked = 0
    if level == NOT_BEGUN:
        level = 0
        n_minimal = _open_level(
            0, bitmaps, group_of, op_of, mirror, group_masks, joins, allowed, max_size,
            pool, weights, ends, critical, sets, candidates, branches, levels,
            sums, order, together, table, gains, n_minimal, minimal, violations,
        )  # fmt: skip
    while looked < n_looks and n_minimal + n_vertices <= minimal.shape[0]:
        # Room for the list of the level below and a part of it.
        first, last = ends[level], ends[level + 1]
        if last + 2 * (last - first) + 2 > weights.shape[0]:
            break
        # The next vertex of this level, or back to the level above.
        word_index = 0
        while word_index < n_words and branches[level, word_index] == _ZERO:
            word_index += 1
        if word_index == n_words:
            if level == 0:
                state[1] = n_minimal
                return True
            level -= 1
            v = levels[level, _MEMBER]
            candidates[level, v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
            continue
        v = WORD_BITS * word_index + word_lowest(branches[level, word_index])
        v_bit = _ONE << np.uint64(v % WORD_BITS)
        branches[level, word_index] &= ~v_bit
        below = level + 1
        for b in range(n_blocks):
            has = bitmaps[v, b]
            critical[below, b] = (critical[level, b] & has) | (opened[level, b] & ~has)
            opened[below, b] = opened[level, b] & has
        looked += n_blocks
        if not _all_needed(bitmaps, critical[below], sets[level]):
            candidates[level, word_index] |= v_bit
            continue
        for w in range(n_words):
            sets[below, w] = sets[level, w]
            candidates[below, w] = candidates[level, w]
        sets[below, word_index] |= v_bit
        cut_trivial(group_of[v], sets[below], candidates[below], op_of, group_masks, joins)
        levels[level, _MEMBER] = v
        levels[below, _REQUIRED] = NONE
        if levels[level, _REQUIRED] != NONE:  # v is that one: now q and p are both there.
            levels[below, _SYMMETRIC] = 1
        else:
            levels[below, _SYMMETRIC] = levels[level, _SYMMETRIC] & (mirror[v] == v)
            if levels[level, _SYMMETRIC] == 1 and mirror[v] < v:
                levels[below, _REQUIRED] = mirror[v]
        ends[below + 1] = _with(pool, weights, n_words, first, last, v, last)
        looked += last - first + 2 * (ends[below + 1] - last)
        level = below
        n_minimal = _open_level(
            level, bitmaps, group_of, op_of, mirror, group_masks, joins, allowed, max_size,
            pool, weights, ends, critical, sets, candidates, branches, levels,
            sums, order, together, table, gains, n_minimal, minimal, violations,
        )  # fmt: skip
    state[0] = level
    state[1] = n_minimal
    return False


@njit(cache=True, nogil=True)
def _open_level(
    level: int,
    bitmaps: Masks,
    group_of: Indices,
    op_of: Indices,
    mirror: Indices,
    group_masks: Masks,
    joins: Indices,
    allowed: int,
    max_size: int,
    pool: Masks,
    weights: Indices,
    ends: Indices,
    critical: Masks,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    levels: Indices,
    sums: Indices,
    order: Indices,
    together: Masks,
    table: Indices,
    gains: Indices,
    n_minimal: int,
    minimal: Masks,
    violations: Indices,
) -> int:
    """List the sets that one more vertex completes, and set the vertices to try next; the new `n_minimal`.

    Arguments as in `_search`. Scratch: sums int64[64 * n_words], order int64[n], together uint64[n_words],
    table int64[256], gains int64[2, n_groups], and the rows of the pool after those of this level.
    """
    n_words = sets.shape[1]
    n_groups = group_masks.shape[0]
    members, able, tried = sets[level], candidates[level], branches[level]
    symmetric, required = levels[level, _SYMMETRIC] == 1, levels[level, _REQUIRED]
    for w in range(n_words):
        tried[w] = _ZERO

    n_more = max_size
    if max_size < UNBOUNDED:
        n_more = cut_to_bound(max_size, group_masks, members, able, together)
        if n_more < 0:
            return n_minimal

    first, last = ends[level], ends[level + 1]
    total = _supports(pool, weights, n_words, first, last, able, table, sums)
    n_able = 0
    for word_index in range(n_words):
        word = able[word_index]
        while word != _ZERO:
            v = WORD_BITS * word_index + word_lowest(word)
            bit = word & (~word + _ONE)
            word &= word - _ONE
            if allowed < sums[v] < total:
                # In the order of supports, the greatest first.
                k = n_able
                while k > 0 and sums[order[k - 1]] < sums[v]:
                    order[k] = order[k - 1]
                    k -= 1
                order[k] = v
                n_able += 1
                continue
            able[word_index] &= ~bit
            if sums[v] > allowed or (required != NONE and v != required) or (symmetric and mirror[v] < v):
                continue
            # The last member is needed: v would not have come here else.
            spared = levels[level - 1, _MEMBER] if level > 0 else NONE
            if _minimal(bitmaps, weights, critical[level], members, spared, v, allowed - sums[v]):
                for w in range(n_words):
                    minimal[n_minimal, w] = members[w]
                minimal[n_minimal, word_index] |= bit
                violations[n_minimal] = sums[v]
                n_minimal += 1
    if required != NONE:
        w, bit = required // WORD_BITS, _ONE << np.uint64(required % WORD_BITS)
        tried[w] = able[w] & bit
        able[w] &= ~bit
        return n_minimal
    if n_more < n_groups:
        n_able = _cut_weak(
            n_more, total, allowed, group_of, op_of, group_masks, joins, members,
            able, sums, order, n_able, gains,
        )  # fmt: skip

    # The candidates that stay together: first as many as must in any case, then one by one.
    for w in range(n_words):
        together[w] = _ZERO
    spare = total - allowed
    n_sure = 0
    while n_sure < n_able:
        v = order[n_sure]
        spare -= total - sums[v]
        if spare <= 0:
            break
        together[v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
        n_sure += 1
    if n_sure == n_able:
        return n_minimal
    stop = last
    for i in range(first, last):
        missing = _ZERO
        for w in range(n_words):
            pool[n_words * stop + w] = pool[n_words * i + w]
            missing |= together[w] & ~pool[n_words * i + w]
        weights[stop] = weights[i]
        stop += 1 if missing == _ZERO else 0
    for k in range(n_sure, n_able):
        v = order[k]
        if _beyond(pool, weights, n_words, last, stop, v, allowed):
            stop = _with(pool, weights, n_words, last, stop, v, last)
            continue
        tried[v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
        if symmetric:
            tried[mirror[v] // WORD_BITS] |= _ONE << np.uint64(mirror[v] % WORD_BITS)
    for w in range(n_words):
        able[w] &= ~tried[w]
    return n_minimal


@njit(cache=True, nogil=True)
def _cut_weak(
    n_more: int,
    total: int,
    allowed: int,
    group_of: Indices,
    op_of: Indices,
    group_masks: Masks,
    joins: Indices,
    members: Masks,
    able: Masks,
    sums: Indices,
    order: Indices,
    n_able: int,
    gains: Indices,
) -> int:
    """Take the vertices out of the candidates that, with the best of the others, would not do; how many stay.

    IN: n_more, how many groups may join; total, the support of the set; members uint64[n_words]; sums
    int64[n], the support with each candidate. IN/OUT: able uint64[n_words], the candidates; order
    int64[n], the first n_able, by falling support. Scratch: gains int64[2, n_groups].

    What several vertices take from the support together is at most the sum of what each takes alone.
    """
    n_groups, n_words = group_masks.shape
    for group in range(n_groups):
        gains[0, group] = 0
        gains[1, group] = NONE
    best = 0
    for k in range(n_able - 1, -1, -1):
        v = order[k]
        group = group_of[v]
        gain = total - sums[v]
        if gains[1, group] == NONE:
            gains[0, group] = gain
            gains[1, group] = v
            for w in range(n_words):
                if group_masks[group, w] & members[w] != _ZERO:
                    gains[1, group] = _HAS_MEMBER
            if gains[1, group] == _HAS_MEMBER:  # One more of it costs no predicate.
                gains[0, group] = 0
                best += gain
        elif gains[1, group] >= 0 and joins[1 << op_of[gains[1, group]]] >> op_of[v] & 1 != 0:
            gains[0, group] += gain
            gains[1, group] = _HAS_TWO
    # The best groups that may join; the least of them would give way to another one.
    least = 0
    for group in range(n_groups):
        rank = 0
        for rival in range(n_groups):
            more = gains[0, rival] - gains[0, group]
            rank += 1 if more > 0 or (more == 0 and rival < group) else 0
        if rank < n_more:
            best += gains[0, group]
        if rank == n_more - 1:
            least = gains[0, group]
    n_staying = 0
    for k in range(n_able):
        v = order[k]
        group = group_of[v]
        lost = 0 if gains[1, group] == _HAS_MEMBER else max(0, least - gains[0, group])
        if total - best + lost <= allowed:
            order[n_staying] = v
            n_staying += 1
        else:
            able[v // WORD_BITS] &= ~(_ONE << np.uint64(v % WORD_BITS))
    return n_staying


@njit(cache=True, nogil=True)
def _supports(
    pool: Masks,
    weights: Indices,
    n_words: int,
    first: int,
    last: int,
    able: Masks,
    table: Indices,
    sums: Indices,
) -> int:
    """The pairs of a list; OUT sums int64[64 * n_words]: how many of them have each candidate.

    IN: pool and weights, of which the rows first..last are the list; able uint64[n_words], the candidates: of
    other vertices the sums mean nothing. Scratch: table int64[256].
    """
    for v in range(sums.shape[0]):
        sums[v] = 0
    total = 0
    if last - first < MIN_FOR_BYTES:
        for i in range(first, last):
            weight = weights[i]
            total += weight
            for w in range(n_words):
                word = pool[n_words * i + w] & able[w]
                while word != _ZERO:
                    sums[WORD_BITS * w + word_lowest(word)] += weight
                    word &= word - _ONE
        return total
    for i in range(first, last):
        total += weights[i]
    for w in range(n_words):
        for low in range(0, WORD_BITS, 8):
            shift = np.uint64(low)
            if able[w] >> shift & _BYTE == _ZERO:
                continue
            for x in range(256):
                table[x] = 0
            for i in range(first, last):
                table[pool[n_words * i + w] >> shift & _BYTE] += weights[i]
            # The upper half has the highest bit; folded into the lower one, it is no longer told apart.
            half = 128
            for bit in range(7, -1, -1):
                for x in range(half):
                    sums[WORD_BITS * w + low + bit] += table[half + x]
                    table[x] += table[half + x]
                half //= 2
    return total


@njit(cache=True, nogil=True)
def _all_needed(bitmaps: Masks, critical: Masks, members: Masks) -> bool:
    """Whether each member has critical evidence. IN: as in `_search`, critical uint64[n_blocks]."""
    for w in range(members.shape[0]):
        word = members[w]
        while word != _ZERO:
            has = bitmaps[WORD_BITS * w + word_lowest(word)]
            word &= word - _ONE
            b = 0
            while b < critical.shape[0] and critical[b] & ~has[b] == _ZERO:
                b += 1
            if b == critical.shape[0]:
                return False
    return True


@njit(cache=True, nogil=True)
def _minimal(
    bitmaps: Masks, weights: Indices, critical: Masks, members: Masks, spared: int, v: int, slack: int
) -> bool:
    """Whether the critical evidence of each member but `spared` that has v is of more than `slack` pairs.

    IN: as in `_search`, of one level; weights, of which the first are those of all evidence.
    """
    with_v = bitmaps[v]
    for w in range(members.shape[0]):
        word = members[w]
        while word != _ZERO:
            u = WORD_BITS * w + word_lowest(word)
            word &= word - _ONE
            if u == spared:
                continue
            with_u = bitmaps[u]
            margin = slack
            for b in range(critical.shape[0]):
                alone = critical[b] & with_v[b] & ~with_u[b]
                while alone != _ZERO:
                    margin -= weights[WORD_BITS * b + word_lowest(alone)]
                    alone &= alone - _ONE
                if margin < 0:
                    break
            if margin >= 0:
                return False
    return True


@njit(cache=True, nogil=True)
def _beyond(pool: Masks, weights: Indices, n_words: int, first: int, last: int, v: int, limit: int) -> bool:
    """Whether the evidence of the list (rows first..last) that has v is of more than `limit` pairs."""
    word, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    total = 0
    for start in range(first, last, STRIDE):
        for i in range(start, min(start + STRIDE, last)):
            total += weights[i] & -np.int64(pool[n_words * i + word] >> shift & _ONE)
        if total > limit:
            return True
    return False


@njit(cache=True, nogil=True)
def _with(pool: Masks, weights: Indices, n_words: int, first: int, last: int, v: int, end: int) -> int:
    """Copy the evidence of the list that has the vertex v to the rows from `end`; the row after them.

    IN/OUT: pool and weights, of which the rows first..last are the list; one row more than those copied is
    overwritten. `end` is the list's own first row, or after its last.
    """
    word, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    for i in range(first, last):
        for w in range(n_words):
            pool[n_words * end + w] = pool[n_words * i + w]
        weights[end] = weights[i]
        end += 0 if pool[n_words * i + word] >> shift & _ONE == _ZERO else 1
    return end


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    numbers = np.arange(6, dtype=np.int32)
    space = Space(0 * numbers, numbers, np.array([EQ, NE, GT, GE, LT, LE], dtype=np.int32), True)
    outcomes = np.array([[OUTCOMES[0]], [OUTCOMES[1]], [OUTCOMES[2]]], dtype=np.uint64)
    minimal_dcs_within(outcomes, np.array([4, 2, 4], dtype=np.int64), space, 2)
