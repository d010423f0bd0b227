"""Approximate denial constraints: all general ones that few enough pairs of rows violate.

Evidence is counted, in both directions: a mask of predicates and its number of ordered pairs. The pairs that
violate a DC are those of the evidence that contains it, its *support* here, so a DC is *within* the allowance
iff its support is at most that; with more predicates the support only falls. As for the exact ones (see
`holdfast.kernels.dc_hitting_sets`) a DC is general iff none of its predicates can be dropped or loosened
without leaving the allowance, and trivial ones, of which every table has support 0, are not listed.

Law: written with loose predicates alone, the general DCs are the minimal sets of loose predicates within the
allowance that are not trivial: a strict predicate is two loose ones, to loosen it is to drop one of them. With
an allowance of 0 they are the exact general DCs.

The search goes depth first over sets X that are not within. Each level has lists of evidence, copied: the
*open* evidence contains X; the *critical* evidence of a member u contains all of X but u.

- One pass over the open evidence gives the support of X + v for every v that may join. If it is that of X, v
  tells nothing apart, here or below, and leaves the candidates. If it is within, X + v is a result or
  nothing below is one.
- X + v is minimal iff beside it the critical evidence of each member, restricted to v, is more than the
  allowance leaves. Evidence of many pairs comes first, so that the sum is soon beyond it.
- A member needs critical evidence, so no v may join that is in none of the critical evidence of one.
- *What does not help is not tried.* A greedy set M of candidates, as large as can be while X + M is not
  within, contains no Y that is; so every result below has a candidate outside of M, and only those are
  tried (the role of the open edge in MMCS, where M is the complement of one). If there is none, the node ends:
  without this the search would visit all sets that are not within, millions where there are thousands.
  The candidates are tried in turn, each with those tried before and all of M, so nothing is found twice.
- *A bound on the predicates* ends a node whose best candidates together could not do.
- *Mirror images are searched once.* A node is symmetric if X and the candidates are their own mirror images.
  There, p and its mirror p' are tried one after the other; p without p', and p' only together with p, which
  leads to a symmetric node again. This halves the search.

Sets are sorted by size, then by words, so equal covers are equal arrays.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from holdfast.kernels.dc_hitting_sets import (
    JOINS,
    UNBOUNDED,
    Space,
    _bits_of,
    _Frame,
    _masks_of,
)
from holdfast.kernels.masks import (
    WORD_BITS,
    Indices,
    Masks,
    as_masks,
    unique_masks,
    word_lowest,
)

# Only intrinsics cross from one module's kernels to another's (see `holdfast.kernels.hitting_sets`).

# Entries of lists that are looked at before the search returns, so that an interrupt is heeded.
LOOKS_PER_CALL = 1 << 26
FIRST_CAPACITY = 1 << 12
NOT_BEGUN = -1
NONE = -1
STRIDE = 64

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


def minimal_dcs_within(
    evidences: Masks, counts: Indices, space: Space, allowed: int, max_size: int = 0
) -> tuple[Masks, Indices]:
    """`(dcs uint64[k, n_words], violations int64[k])`: all general DCs that `allowed` ordered pairs violate at
    most, one of each mirrored pair, with the exact number that do.

    evidences IN `uint64[m, n_words]`, all different, and counts IN `int64[m]`, at least 1: of all ordered
    pairs, so that the mirror image of an evidence is there with the same count (ValueError if not). space IN:
    `general` is not looked at. `max_size` bounds the number of predicates (0 or less: no bound); it cuts the
    list and does not change what is minimal. If all pairs together are within, the one DC is {}.

    >>> alone = np.zeros(2, dtype=np.int32)
    >>> column = Space(alone, np.array([EQ, NE], dtype=np.int32), np.array([0, 1], dtype=np.int32), True)
    >>> mostly_different = np.array([[0b10], [0b01]], dtype=np.uint64), np.array([40, 2])
    >>> [found.tolist() for found in minimal_dcs_within(*mostly_different, column, allowed=2)]
    [[[1]], [2]]
    """
    given = as_masks(evidences)
    frame = _Frame(space._replace(general=True), max_size, given.shape[1])
    order = np.argsort(-counts, kind="stable")
    counts = np.require(counts[order], dtype=np.int64)
    held = _bits_of(given[order], frame.n_predicates)[:, frame.vertices]
    family = _masks_of(held, frame.nothing.shape[1])
    _check_closed(family, _masks_of(held[:, frame.vertex_mirror], frame.nothing.shape[1]), counts)
    total = int(counts.sum())
    if total <= allowed:
        return np.zeros((1, frame.n_words), dtype=np.uint64), np.array([total], dtype=np.int64)
    sets, violations = _searched(frame, family, counts, allowed)
    return _listed(frame, sets, violations)


def _check_closed(family: Masks, images: Masks, counts: Indices) -> None:
    _, inverse = unique_masks(np.concatenate([family, images]))
    if not (counts[inverse[len(family) :] % len(counts)] == counts).all() or (inverse >= len(counts)).any():
        raise ValueError("the evidence does not count every pair of rows in both directions")


def _listed(frame: _Frame, sets: Masks, violations: Indices) -> tuple[Masks, Indices]:
    """The DCs as callers want them, each with its violations, which are also those of its mirror image."""
    dcs = frame.listed(sets)
    shown = frame.packed(dcs, mirrored=False)  # In the same order: they are all different.
    images = _masks_of(_bits_of(sets, len(frame.vertices))[:, frame.vertex_mirror], sets.shape[1])
    _, places = unique_masks(np.concatenate([shown, sets, images]))
    out = np.full(len(dcs) + 2 * len(sets), NONE, dtype=np.int64)
    out[places[len(dcs) :]] = np.concatenate([violations, violations])
    return dcs, out[: len(dcs)]


def _searched(frame: _Frame, family: Masks, counts: Indices, allowed: int) -> tuple[Masks, Indices]:
    """The minimal sets within the allowance, of each mirrored pair at least one, and their violations.

    family IN uint64[m, n_words], over the vertices, and counts IN int64[m], descending; more than `allowed`
    in all.
    """
    n_vertices = len(frame.vertices)
    n_evidences, n_words = family.shape
    # Vertices tried last may use those tried before, so the rare ones, of which little is open, come last.
    # A vertex and its mirror image have one support and stand side by side.
    held = _bits_of(family, n_vertices)
    supports = counts @ held
    pair = np.minimum(np.arange(n_vertices), frame.vertex_mirror)
    order = np.lexsort((np.arange(n_vertices), pair, -supports))
    back = np.argsort(order)
    family = _masks_of(held[:, order], n_words)
    group_of, op_of = frame.group_of[order], frame.op_of[order]
    mirror = back[frame.vertex_mirror[order]]
    group_masks = _masks_of(group_of[None, :] == np.arange(frame.n_groups)[:, None], n_words)

    n_levels = min(2 * frame.n_groups, n_vertices) + 2  # At most two predicates of a group.
    n_room = n_evidences + 1
    pool = np.empty(4 * n_room * n_words, dtype=np.uint64)
    weights = np.empty(4 * n_room, dtype=np.int64)
    pool[: n_evidences * n_words] = family.reshape(-1)
    weights[:n_evidences] = counts
    spans = np.zeros((n_levels, n_levels + 1, 2), dtype=np.int64)
    tops = np.zeros(n_levels, dtype=np.int64)
    sets = np.zeros((n_levels, n_words), dtype=np.uint64)
    candidates = np.zeros_like(sets)
    branches = np.zeros_like(sets)
    # Of each level: the vertex that led to the next, whether it is symmetric, the vertex that must join.
    levels = np.full((n_levels, 3), NONE, dtype=np.int64)
    state = np.array([NOT_BEGUN, 0, 0], dtype=np.int64)
    found = np.empty((FIRST_CAPACITY + n_vertices, n_words), dtype=np.uint64)
    violations = np.empty(len(found), dtype=np.int64)
    spans[0, 0, 1] = tops[0] = n_evidences
    candidates[0] = _masks_of(np.ones((1, n_vertices), dtype=np.bool_), n_words)[0]
    levels[0, _SYMMETRIC] = 1
    while not _search(
        group_of, op_of, mirror, group_masks, JOINS, allowed, frame.bound, LOOKS_PER_CALL, n_room,
        pool, weights, spans, tops, sets, candidates, branches, levels, state, found, violations,
    ):  # fmt: skip
        if state[1] + n_vertices > len(found):
            found = np.concatenate([found, np.empty_like(found)])
            violations = np.concatenate([violations, np.empty_like(violations)])
        if tops[state[0]] + n_room > len(weights):
            pool = np.concatenate([pool, np.empty_like(pool)])
            weights = np.concatenate([weights, np.empty_like(weights)])
    global STATS
    STATS = state.tolist()
    sets_found = _bits_of(found[: state[1]], n_vertices)[:, back]
    return _masks_of(sets_found, n_words), violations[: state[1]]


_MEMBER, _SYMMETRIC, _REQUIRED = 0, 1, 2


@njit(cache=True, nogil=True)
def _search(
    group_of: Indices,
    op_of: Indices,
    mirror: Indices,
    group_masks: Masks,
    joins: Indices,
    allowed: int,
    max_size: int,
    n_looks: int,
    n_room: int,
    pool: Masks,
    weights: Indices,
    spans: Indices,
    tops: Indices,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    levels: Indices,
    state: Indices,
    found: Masks,
    violations: Indices,
) -> bool:
    """Go on with the search until it ends (True), or room or `n_looks` entries are used up (False)."""
    n_vertices = group_of.shape[0]
    n_words = sets.shape[1]
    sums = np.empty(n_vertices, dtype=np.int64)
    order = np.empty(n_vertices, dtype=np.int64)
    scratch = np.empty(n_words, dtype=np.uint64)
    reach = np.empty(group_masks.shape[0], dtype=np.int64)
    level, n_found = state[0], state[1]
    looked = 0
    if level == NOT_BEGUN:
        level = 0
        n_found = _open_level(
            0, allowed, max_size, group_of, op_of, mirror, group_masks, pool, weights, spans, tops,
            sets, candidates, branches, levels, sums, order, reach, scratch, n_found, found, violations,
        )  # fmt: skip
    while looked < n_looks and n_found + n_vertices <= found.shape[0]:
        if tops[level] + n_room > weights.shape[0]:
            break
        # The next vertex of this level, or back to the level above.
        word_index = 0
        while word_index < n_words and branches[level, word_index] == _ZERO:
            word_index += 1
        if word_index == n_words:
            if level == 0:
                state[1] = n_found
                return True
            level -= 1
            v = levels[level, _MEMBER]
            candidates[level, v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
            continue
        state[2] += 1
        v = WORD_BITS * word_index + word_lowest(branches[level, word_index])
        v_bit = _ONE << np.uint64(v % WORD_BITS)
        branches[level, word_index] &= ~v_bit
        levels[level, _MEMBER] = v
        below = level + 1
        for w in range(n_words):
            sets[below, w] = sets[level, w]
            candidates[below, w] = candidates[level, w]
        sets[below, word_index] |= v_bit
        _cut_trivial(group_of[v], sets[below], candidates[below], op_of, group_masks, joins)
        # With p' comes p, and then the set is its own mirror image again.
        levels[below, _REQUIRED] = NONE
        if levels[level, _REQUIRED] != NONE:
            levels[below, _SYMMETRIC] = 1
        elif levels[level, _SYMMETRIC] == 1 and mirror[v] != v:
            levels[below, _SYMMETRIC] = 0
            if mirror[v] < v:
                levels[below, _REQUIRED] = mirror[v]
        else:
            levels[below, _SYMMETRIC] = levels[level, _SYMMETRIC]

        # Of every list the evidence with v; the open one without v becomes its critical one.
        top = tops[level]
        for slot in range(1 + level):
            spans[below, slot, 0] = top
            top = _with(pool, weights, n_words, spans[level, slot, 0], spans[level, slot, 1], v, top)
            spans[below, slot, 1] = top
        spans[below, 1 + level, 0] = top
        top = _without(pool, weights, n_words, spans[level, 0, 0], spans[level, 0, 1], v, top)
        spans[below, 1 + level, 1] = top
        tops[below] = top
        looked += 2 * (spans[level, 0, 1] - spans[level, 0, 0]) + top - tops[level]
        level = below
        n_found = _open_level(
            level, allowed, max_size, group_of, op_of, mirror, group_masks, pool, weights, spans, tops,
            sets, candidates, branches, levels, sums, order, reach, scratch, n_found, found, violations,
        )  # fmt: skip
    state[0] = level
    state[1] = n_found
    return False


@njit(cache=True, nogil=True)
def _open_level(
    level: int,
    allowed: int,
    max_size: int,
    group_of: Indices,
    op_of: Indices,
    mirror: Indices,
    group_masks: Masks,
    pool: Masks,
    weights: Indices,
    spans: Indices,
    tops: Indices,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    levels: Indices,
    sums: Indices,
    order: Indices,
    reach: Indices,
    scratch: Masks,
    n_found: int,
    found: Masks,
    violations: Indices,
) -> int:
    """List the sets that one more vertex completes, and set the vertices to try next; the new `n_found`."""
    n_words = sets.shape[1]
    n_groups = group_masks.shape[0]
    members, able, tried = sets[level], candidates[level], branches[level]
    for w in range(n_words):
        tried[w] = _ZERO
    required = levels[level, _REQUIRED]

    # With no room for another predicate only the groups of members are left.
    n_more = max_size
    if max_size < UNBOUNDED:
        for w in range(n_words):
            scratch[w] = _ZERO
        for group in range(n_groups):
            for w in range(n_words):
                if group_masks[group, w] & members[w] != _ZERO:
                    n_more -= 1
                    for x in range(n_words):
                        scratch[x] |= group_masks[group, x]
                    break
        if n_more < 0:
            return n_found
        if n_more == 0:
            for w in range(n_words):
                able[w] &= scratch[w]

    # A member whose critical evidence would be none is not needed.
    for slot in range(1, 1 + level):
        for w in range(n_words):
            some = _ZERO
            for i in range(spans[level, slot, 0], spans[level, slot, 1]):
                some |= pool[n_words * i + w]
            able[w] &= some

    first, last = spans[level, 0, 0], spans[level, 0, 1]
    total = _supports(pool, weights, n_words, first, last, able, sums)
    n_able = 0
    for word_index in range(n_words):
        word = able[word_index]
        while word != _ZERO:
            v = WORD_BITS * word_index + word_lowest(word)
            bit = word & (~word + _ONE)
            word &= word - _ONE
            if allowed < sums[v] < total:
                # By support, the greatest first.
                k = n_able
                while k > 0 and sums[order[k - 1]] < sums[v]:
                    order[k] = order[k - 1]
                    k -= 1
                order[k] = v
                n_able += 1
                continue
            able[word_index] &= ~bit
            if sums[v] > allowed or (required != NONE and v != required):
                continue
            if levels[level, _SYMMETRIC] == 1 and mirror[v] < v:
                continue
            if _minimal(pool, weights, n_words, spans[level], level, v, allowed - sums[v]):
                for w in range(n_words):
                    found[n_found, w] = members[w]
                found[n_found, word_index] |= bit
                violations[n_found] = sums[v]
                n_found += 1
    if n_able == 0:
        return n_found
    if required != NONE:
        w, bit = required // WORD_BITS, _ONE << np.uint64(required % WORD_BITS)
        tried[w] = able[w] & bit
        able[w] &= ~bit
        return n_found
    if n_more < n_groups:
        n_able = _cut_weak(
            n_more, total, allowed, group_of, group_masks, members, able, sums, order, n_able, reach
        )
        if n_able == 0:
            return n_found

    # M: first as many as surely fit together, then one by one.
    for w in range(n_words):
        scratch[w] = _ZERO
    spare = total - allowed
    n_sure = 0
    while n_sure < n_able:
        v = order[n_sure]
        spare -= total - sums[v]
        if spare <= 0:
            break
        scratch[v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
        n_sure += 1
    start = tops[level]
    stop = start
    for i in range(first, last):
        missing = _ZERO
        for w in range(n_words):
            pool[n_words * stop + w] = pool[n_words * i + w]
            missing |= scratch[w] & ~pool[n_words * i + w]
        weights[stop] = weights[i]
        stop += 1 if missing == _ZERO else 0
    for k in range(n_sure, n_able):
        v = order[k]
        word_index, bit = v // WORD_BITS, _ONE << np.uint64(v % WORD_BITS)
        if _beyond(pool, weights, n_words, start, stop, v, allowed):
            stop = _with(pool, weights, n_words, start, stop, v, start)
            scratch[word_index] |= bit
        else:
            tried[word_index] |= bit
    if levels[level, _SYMMETRIC] == 1:
        for word_index in range(n_words):
            word = tried[word_index]
            while word != _ZERO:
                v = mirror[WORD_BITS * word_index + word_lowest(word)]
                word &= word - _ONE
                tried[v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
    for w in range(n_words):
        able[w] &= ~tried[w]
    return n_found


@njit(cache=True, nogil=True)
def _cut_weak(
    n_more: int,
    total: int,
    allowed: int,
    group_of: Indices,
    group_masks: Masks,
    members: Masks,
    able: Masks,
    sums: Indices,
    order: Indices,
    n_able: int,
    reach: Indices,
) -> int:
    """Take the vertices out of the candidates that, with the best of the others, would not do."""
    n_groups = group_masks.shape[0]
    n_words = members.shape[0]
    base = 0  # What the groups of members can still take away.
    for group in range(n_groups):
        reach[group] = 0
    # order has the weakest vertices first; a group has at most two.
    for k in range(n_able - 1, -1, -1):
        group = group_of[order[k]]
        mine = False
        for w in range(n_words):
            mine |= group_masks[group, w] & members[w] != _ZERO
        gain = total - sums[order[k]]
        if mine:
            if reach[group] == 0:
                reach[group] = -1
                base += gain
        elif reach[group] == 0:
            reach[group] = gain
        elif reach[group] > 0:
            # Twice its first at most: a third one must not count again.
            reach[group] = max(reach[group], min(2 * reach[group], reach[group] + gain))
    return n_able


@njit(cache=True, nogil=True)
def _supports(
    pool: Masks, weights: Indices, n_words: int, first: int, last: int, able: Masks, sums: Indices
) -> int:
    """The pairs of a list; OUT sums int64[n]: of those with each of the vertices."""
    for v in range(sums.shape[0]):
        sums[v] = 0
    total = 0
    if n_words == 1:
        only = able[0]
        for i in range(first, last):
            weight = weights[i]
            total += weight
            word = pool[i] & only
            while word != _ZERO:
                sums[word_lowest(word)] += weight
                word &= word - _ONE
        return total
    for i in range(first, last):
        weight = weights[i]
        total += weight
        for w in range(n_words):
            word = pool[n_words * i + w] & able[w]
            while word != _ZERO:
                sums[WORD_BITS * w + word_lowest(word)] += weight
                word &= word - _ONE
    return total


@njit(cache=True, nogil=True)
def _minimal(
    pool: Masks, weights: Indices, n_words: int, spans: Indices, level: int, v: int, slack: int
) -> bool:
    """Whether beside v the critical evidence of each member is more than the slack."""
    for slot in range(1, level):
        if not _beyond(pool, weights, n_words, spans[slot, 0], spans[slot, 1], v, slack):
            return False
    return True


@njit(cache=True, nogil=True)
def _beyond(
    pool: Masks, weights: Indices, n_words: int, first: int, last: int, v: int, limit: int
) -> bool:
    """Whether the evidence of the list that has v is of more than `limit` pairs."""
    word, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    total = 0
    for start in range(first, last, STRIDE):
        if n_words == 1:
            for i in range(start, min(start + STRIDE, last)):
                total += weights[i] & -np.int64(pool[i] >> shift & _ONE)
        else:
            for i in range(start, min(start + STRIDE, last)):
                total += weights[i] & -np.int64(pool[n_words * i + word] >> shift & _ONE)
        if total > limit:
            return True
    return False


@njit(cache=True, nogil=True)
def _cut_trivial(
    group: int, members: Masks, candidates: Masks, op_of: Indices, group_masks: Masks, joins: Indices
) -> None:
    """Take those vertices of the group out of the candidates that would make the set trivial."""
    ops = 0
    for w in range(members.shape[0]):
        word = group_masks[group, w] & members[w]
        while word != _ZERO:
            ops |= 1 << op_of[WORD_BITS * w + word_lowest(word)]
            word &= word - _ONE
    for w in range(members.shape[0]):
        word = group_masks[group, w] & candidates[w]
        while word != _ZERO:
            v = word_lowest(word)
            if joins[ops] >> op_of[WORD_BITS * w + v] & 1 == 0:
                candidates[w] &= ~(_ONE << np.uint64(v))
            word &= word - _ONE


@njit(cache=True, nogil=True)
def _with(
    pool: Masks, weights: Indices, n_words: int, first: int, last: int, v: int, end: int
) -> int:
    """Copy the evidence of the list that has the vertex v to the rows from `end`; the row after them."""
    word, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    if n_words == 1:
        for i in range(first, last):
            mask = pool[i]
            pool[end] = mask
            weights[end] = weights[i]
            end += np.int64(mask >> shift & _ONE)
        return end
    for i in range(first, last):
        has = np.int64(pool[n_words * i + word] >> shift & _ONE)
        for w in range(n_words):
            pool[n_words * end + w] = pool[n_words * i + w]
        weights[end] = weights[i]
        end += has
    return end


@njit(cache=True, nogil=True)
def _without(
    pool: Masks, weights: Indices, n_words: int, first: int, last: int, v: int, end: int
) -> int:
    """As `_with`, but those that have it not."""
    word, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    if n_words == 1:
        for i in range(first, last):
            mask = pool[i]
            pool[end] = mask
            weights[end] = weights[i]
            end += np.int64(~(mask >> shift) & _ONE)
        return end
    for i in range(first, last):
        has = np.int64(~(pool[n_words * i + word] >> shift) & _ONE)
        for w in range(n_words):
            pool[n_words * end + w] = pool[n_words * i + w]
        weights[end] = weights[i]
        end += has
    return end
