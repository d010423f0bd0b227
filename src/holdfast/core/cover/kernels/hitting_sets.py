"""The cover kernel: minimal hitting sets, from scratch and repaired.

A set of columns *hits* an edge if it shares a column with it; it is a *minimal hitting set* of a family of
edges if it hits them all and none of its proper subsets does. Keys are the minimal hitting sets of the
complements of agree sets; FDs and denial constraints are the same over other edges. Masks are as in
`holdfast.core.rows.kernels.masks`.

The invariant of every result: an antichain; every set lies inside `within`, has at most `max_size` columns
(0 or less: any number), hits every edge, and is minimal; and no such set is missing. Minimality looks at all
subsets, so a bound only cuts the list: it never changes which sets are minimal. No edges have the one minimal
hitting set {}; an edge with no column inside `within` has none. Sets are sorted by size, then by words, so
equal covers are equal arrays.

Three ways in, equal by test:

- `minimal_hitting_sets`: depth-first search with critical edges, MMCS of Murakami and Uno (Efficient
  algorithms for dualizing large-scale hypergraphs, 2014, sec. 4). A set is extended only while every member
  has a critical edge, one that it alone hits. We depart from the paper in what we store: not the critical
  edges of each member but the edges hit exactly *once*, one bitset per level of the search. The critical
  edges of u are `once & incidence[u]`, and the test nearly always ends at the word where it ended before.
- `add_edges`: Berge's step, edge by edge; does not need the old edges.
- `remove_edges`: the search again, confined to the sets that miss a removed edge.

The number of sets may be exponential in the number of columns; a caller who cannot bound it should bound
`max_size`. The search returns to Python every few million steps, so that an interrupt is heeded.
"""

from __future__ import annotations

import numpy as np

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Indices,
    Masks,
    as_masks,
    contains_any,
    minimal_masks,
    n_words_for,
    popcounts,
    positions_of,
    word_lowest,
    word_popcount,
)

# No kernel assigns to slices: the text of the error that cannot occur takes seconds to compile.

STEPS_PER_CALL = 1 << 22
FIRST_CAPACITY = 1 << 10
# With more new sets than this, looking for them in every old set takes longer than a fresh search: 0.4 ns
# per pair of sets against 0.7 to 7 microseconds per set (40 columns, 300 to 14,000 edges).
MAX_NEW_SETS = 1 << 12
NOT_BEGUN = -1
UNBOUNDED = 1 << 62

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


def minimal_hitting_sets(edges: Masks, within: Masks, max_size: int = 0) -> Masks:
    """All minimal hitting sets inside `within` of at most `max_size` columns: `uint64[k, n_words]`.

    edges IN `uint64[m, n_words]`, within IN `uint64[n_words]`. Cost: that of `minimal_masks` on the edges,
    then one to a few microseconds per set for some thousand edges (see the module).

    >>> edges = np.array([[0b011], [0b110]], dtype=np.uint64)
    >>> minimal_hitting_sets(edges, np.array([0b111], dtype=np.uint64)).tolist()
    [[2], [5]]
    """
    nothing_avoided = np.empty((0, len(within)), dtype=np.uint64)
    return _sorted(_searched(as_masks(edges), nothing_avoided, as_masks(within), max_size))


def add_edges(cover: Masks, new_edges: Masks, within: Masks, max_size: int = 0) -> Masks:
    """The cover of old and new edges, from the cover of the old: `uint64[k, n_words]`.

    cover IN `uint64[k, n_words]`, exact for the old edges under the same `within` and `max_size`;
    new_edges IN `uint64[m, n_words]`; within IN `uint64[n_words]`.

    Law (Berge): for one new edge e, sets that hit e stay. A set X that misses e gives X + v for each v in e,
    and X + v is minimal iff no set Y that stays is a part of it; such a Y meets e in v alone and is no larger
    than X. The X + v are pairwise no part of each other: X + v inside X' + v' needs v = v', as X' misses e,
    and then X inside X', so X = X'. A bound is kept: X + v has one column more than X.

    Cost: per edge, one look at every set, and for the sets that miss it a scan of those that meet it once.

    >>> cover = np.array([[0b010], [0b101]], dtype=np.uint64)
    >>> edge = np.array([[0b101]], dtype=np.uint64)
    >>> add_edges(cover, edge, np.array([0b111], dtype=np.uint64)).tolist()
    [[3], [5], [6]]
    """
    allowed = as_masks(within)
    edges = as_masks(new_edges) & allowed
    edges = edges[minimal_masks(edges)]
    return _sorted(_extended(as_masks(cover), edges, max_size if max_size > 0 else UNBOUNDED))


def remove_edges(
    cover: Masks, remaining_edges: Masks, removed_edges: Masks, within: Masks, max_size: int = 0
) -> Masks:
    """The cover of the remaining edges, from that of the remaining and the removed: `uint64[k, n_words]`.

    cover IN `uint64[k, n_words]`, exact under the same `within` and `max_size`; remaining_edges and
    removed_edges IN `uint64[m, n_words]`; within IN `uint64[n_words]`.

    Law: a minimal hitting set of the remaining edges that hits all removed ones is in the old cover; so a new
    one misses at least one of them, and one search confined to such sets finds them all, each once. An old
    set stays iff it contains no new one: a smaller hitting set would contain a minimal one, which is not old,
    for the old cover is an antichain.

    Cost: the search, which is small if the removed edges are large or few; then `contains_any` of the old
    sets and the new, or, when these are many, a fresh search.

    >>> both = np.array([[0b011], [0b101], [0b110]], dtype=np.uint64)
    >>> edge = np.array([[0b101]], dtype=np.uint64)
    >>> remaining = np.array([[0b011], [0b110]], dtype=np.uint64)
    >>> remove_edges(both, remaining, edge, np.array([0b111], dtype=np.uint64)).tolist()
    [[2], [5]]
    """
    old, allowed = as_masks(cover), as_masks(within)
    removed = as_masks(removed_edges) & allowed
    remaining = as_masks(remaining_edges) & allowed
    # A set that misses an edge misses every part of it; one that hits all remaining edges misses no edge
    # that contains one of them.
    removed = removed[minimal_masks(removed)]
    removed = removed[~contains_any(removed, remaining)]
    if len(removed) == 0:
        return _sorted(old)
    # A column of all removed edges is in no new set. Known before the edges are minimised, it makes them
    # fewer: 5 ms instead of 66 for one edge of 13,752. Of one removed edge nothing else is to be checked.
    apart = allowed & ~np.bitwise_and.reduce(removed, axis=0)
    avoided = removed if len(removed) > 1 else removed[:0]
    new = _searched(remaining, avoided, apart, max_size)
    if len(new) > MAX_NEW_SETS:
        return minimal_hitting_sets(remaining, allowed, max_size)
    # A set that contains another one is larger: of thousands of single columns none needs a look.
    stays = np.ones(len(old), dtype=np.bool_)
    larger = np.flatnonzero(popcounts(old) > popcounts(new).min(initial=max_size or WORD_BITS * old.shape[1]))
    stays[larger] = ~contains_any(old[larger], new)
    return _sorted(np.concatenate([old[stays], new]))


def _sorted(sets: Masks) -> Masks:
    """The sets by size, then by words, the first word first."""
    order = np.lexsort((*sets.T[::-1], popcounts(sets)))
    return sets[order]


# --- The search ------------------------------------------------------------------------------------------


def _searched(edges: Masks, avoided: Masks, within: Masks, max_size: int) -> Masks:
    """The minimal hitting sets that miss at least one avoided edge, in the order of the search.

    edges IN uint64[m, n_words]; avoided IN uint64[r, n_words], with r = 0 for no such condition;
    within IN uint64[n_words].
    """
    edges = edges & within
    edges = edges[minimal_masks(edges)]
    n_words = len(within)
    if len(edges) == 0:
        return np.zeros((1, n_words), dtype=np.uint64)
    # Small edges first: more of them are disjoint, so a bound cuts sooner (0.54 s instead of 0.67 s for
    # 96,686 sets of at most 9 of 40 columns). Without a bound it makes no difference.
    edges = edges[np.argsort(popcounts(edges), kind="stable")]
    columns = _by_degree(edges)
    n_edges, n_vertices = len(edges), len(columns)
    if n_vertices == 0:  # The one minimal edge is empty.
        return np.empty((0, n_words), dtype=np.uint64)
    packed = _packed(edges, columns)
    packed_avoided = _packed(avoided, columns)
    incidence = _incidence(packed, n_vertices)

    bound = max_size if max_size > 0 else UNBOUNDED
    # Every member has a critical edge of its own, so no set is larger than the number of edges.
    n_levels = min(n_vertices, n_edges, bound) + 1
    uncovered = np.zeros((n_levels, n_words_for(n_edges)), dtype=np.uint64)
    once = np.zeros_like(uncovered)
    sets = np.zeros((n_levels, packed.shape[1]), dtype=np.uint64)
    candidates = np.zeros_like(sets)
    branches = np.zeros_like(sets)
    chosen = np.zeros(n_levels, dtype=np.int64)
    hints = np.zeros(n_levels, dtype=np.int64)
    state = np.array([NOT_BEGUN, 0], dtype=np.int64)
    found = np.empty((FIRST_CAPACITY, packed.shape[1]), dtype=np.uint64)
    while not _search(
        packed, incidence, packed_avoided, bound, STEPS_PER_CALL,
        uncovered, once, sets, candidates, branches, chosen, hints, state, found,
    ):  # fmt: skip
        if state[1] == len(found):
            found = np.concatenate([found, np.empty_like(found)])
    sets_found: Masks = _unpacked(found[: state[1]], columns, n_words)
    return sets_found


def _by_degree(edges: Masks) -> Indices:
    """The columns that occur in the edges, those in most edges last: the vertices, in order.

    The vertices tried last at a level may use those tried before them, so the frequent ones come last:
    measured 1.2 to 2 times as fast as the reverse, so that no order of the table's columns is a bad one.
    """
    used = np.array(positions_of(np.bitwise_or.reduce(edges, axis=0)), dtype=np.int64)
    degrees = np.zeros(edges.shape[1] * WORD_BITS, dtype=np.int64)
    _count_columns(edges, degrees)
    return used[np.argsort(degrees[used], kind="stable")]


@njit(cache=True)
def _count_columns(masks: Masks, counts: Indices) -> None:
    """masks IN uint64[n, n_words]; counts IN/OUT int64[64 * n_words], raised by the masks with the column."""
    for i in range(masks.shape[0]):
        for w in range(masks.shape[1]):
            word = masks[i, w]
            while word != _ZERO:
                counts[WORD_BITS * w + word_lowest(word)] += 1
                word &= word - _ONE


@njit(cache=True)
def _packed(masks: Masks, columns: Indices) -> Masks:
    """The masks in other words: bit i of the result is bit columns[i] of the mask; other bits are dropped.

    masks IN uint64[n, n_words]; columns IN int64[k]; returns uint64[n, words for k].
    """
    n_packed_words = max(1, (columns.shape[0] + WORD_BITS - 1) // WORD_BITS)
    packed = np.zeros((masks.shape[0], n_packed_words), dtype=np.uint64)
    for i in range(masks.shape[0]):
        for k in range(columns.shape[0]):
            c = columns[k]
            bit = (masks[i, c // WORD_BITS] >> np.uint64(c % WORD_BITS)) & _ONE
            packed[i, k // WORD_BITS] |= bit << np.uint64(k % WORD_BITS)
    return packed


@njit(cache=True)
def _unpacked(packed: Masks, columns: Indices, n_words: int) -> Masks:
    """The inverse of `_packed`: packed IN uint64[n, words for k]; columns IN int64[k]; uint64[n, n_words]."""
    masks = np.zeros((packed.shape[0], n_words), dtype=np.uint64)
    for i in range(packed.shape[0]):
        for w in range(packed.shape[1]):
            word = packed[i, w]
            while word != _ZERO:
                c = columns[WORD_BITS * w + word_lowest(word)]
                masks[i, c // WORD_BITS] |= _ONE << np.uint64(c % WORD_BITS)
                word &= word - _ONE
    return masks


@njit(cache=True)
def _incidence(edges: Masks, n_vertices: int) -> Masks:
    """The transpose: bit e of row v says that edge e has vertex v. edges IN uint64[m, n_words]."""
    n_edge_words = max(1, (edges.shape[0] + WORD_BITS - 1) // WORD_BITS)
    incidence = np.zeros((n_vertices, n_edge_words), dtype=np.uint64)
    for e in range(edges.shape[0]):
        bit = _ONE << np.uint64(e % WORD_BITS)
        for w in range(edges.shape[1]):
            word = edges[e, w]
            while word != _ZERO:
                incidence[WORD_BITS * w + word_lowest(word), e // WORD_BITS] |= bit
                word &= word - _ONE
    return incidence


@njit(cache=True)
def _search(
    edges: Masks,
    incidence: Masks,
    avoided: Masks,
    max_size: int,
    n_steps: int,
    uncovered: Masks,
    once: Masks,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    chosen: Indices,
    hints: Indices,
    state: Indices,
    found: Masks,
) -> bool:
    """Go on with the search until it ends (True), `found` is full, or `n_steps` vertices were tried (False).

    IN: edges uint64[m, n_words], an antichain without the empty edge; incidence uint64[n, m_words], its
    transpose; avoided uint64[r, n_words]: unless r = 0, only sets that miss one of these are found; max_size,
    at least 1.

    IN/OUT, one row per level of the search, level = size of the set so far: uncovered and once
    uint64[levels, m_words], the edges that the set hits never and exactly once; sets, candidates and branches
    uint64[levels, n_words], the set, the vertices that may still join below this level, those to be tried at
    it; chosen int64[levels], the vertex that led to the next level; hints int64[levels], the word in which
    that vertex's critical edge was last seen.

    IN/OUT: state int64[2], the level (NOT_BEGUN at first) and the number of sets found;
    found uint64[capacity, n_words].

    A vertex that takes a member's last critical edge is not put back among the candidates: it would do so
    beside any larger set too.
    """
    n_vertices, n_edge_words = incidence.shape
    n_words = edges.shape[1]
    level, n_found = state[0], state[1]
    if level == NOT_BEGUN:
        for e in range(edges.shape[0]):
            uncovered[0, e // WORD_BITS] |= _ONE << np.uint64(e % WORD_BITS)
        for v in range(n_vertices):
            candidates[0, v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
        level = 0
        if not _open_level(edges, avoided, max_size, uncovered[0], sets[0], candidates[0], branches[0]):
            return True
    for _ in range(n_steps):
        if n_found == found.shape[0]:
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
            v = chosen[level]
            candidates[level, v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
            continue
        v = WORD_BITS * word_index + word_lowest(branches[level, word_index])
        v_bit = _ONE << np.uint64(v % WORD_BITS)
        branches[level, word_index] &= ~v_bit

        # Does every member keep a critical edge?
        v_edges = incidence[v]
        hit_once = once[level]
        minimal = True
        for k in range(level):
            u_edges = incidence[chosen[k]]
            w = hints[k]
            if hit_once[w] & u_edges[w] & ~v_edges[w] != _ZERO:
                continue
            minimal = False
            for w in range(n_edge_words):
                if hit_once[w] & u_edges[w] & ~v_edges[w] != _ZERO:
                    hints[k] = w
                    minimal = True
                    break
            if not minimal:
                break
        if not minimal:
            continue

        # Is anything left to hit?
        open_edges = uncovered[level]
        left = _ZERO
        for w in range(n_edge_words):
            left |= open_edges[w] & ~v_edges[w]
        if left == _ZERO:
            for w in range(n_words):
                found[n_found, w] = sets[level, w]
            found[n_found, word_index] |= v_bit
            n_found += 1
            candidates[level, word_index] |= v_bit
            continue
        below = level + 1
        if below >= max_size:
            candidates[level, word_index] |= v_bit
            continue
        open_below = uncovered[below]
        once_below = once[below]
        for w in range(n_edge_words):
            open_below[w] = open_edges[w] & ~v_edges[w]
            once_below[w] = (hit_once[w] & ~v_edges[w]) | (open_edges[w] & v_edges[w])
        for w in range(n_words):
            sets[below, w] = sets[level, w]
            candidates[below, w] = candidates[level, w]
        sets[below, word_index] |= v_bit
        if _open_level(
            edges, avoided, max_size - below, open_below, sets[below], candidates[below], branches[below]
        ):
            chosen[level] = v
            hints[level] = 0
            level = below
        else:
            candidates[level, word_index] |= v_bit
    state[0] = level
    state[1] = n_found
    return False


@njit(cache=True)
def _open_level(
    edges: Masks,
    avoided: Masks,
    n_more: int,
    uncovered: Masks,
    members: Masks,
    candidates: Masks,
    branches: Masks,
) -> bool:
    """Whether the set can still become a hitting set; if so, the vertices to try next.

    IN: edges uint64[m, n_words]; avoided uint64[r, n_words]; n_more, how many vertices may join; uncovered
    uint64[m_words], not empty; members uint64[n_words], the set so far. IN/OUT: candidates uint64[n_words].
    OUT: branches uint64[n_words], taken out of the candidates.

    The vertices to try are the candidates in the uncovered edge that has fewest. With one vertex to go they
    are those common to all uncovered edges. With more, edges that are disjoint inside the candidates are
    counted on the way: each needs a vertex of its own.
    """
    n_words = edges.shape[1]
    if avoided.shape[0] > 0:
        # A vertex in all the avoided edges that are still missed may not join.
        for w in range(n_words):
            branches[w] = _ALL
        for a in range(avoided.shape[0]):
            common = _ZERO
            for w in range(n_words):
                common |= avoided[a, w] & members[w]
            if common == _ZERO:
                for w in range(n_words):
                    branches[w] &= avoided[a, w]
        for w in range(n_words):
            candidates[w] &= ~branches[w]
    if n_more == 1:
        for w in range(n_words):
            branches[w] = candidates[w]
        for edge_word in range(uncovered.shape[0]):
            rest = uncovered[edge_word]
            while rest != _ZERO:
                e = WORD_BITS * edge_word + word_lowest(rest)
                rest &= rest - _ONE
                some = _ZERO
                for w in range(n_words):
                    branches[w] &= edges[e, w]
                    some |= branches[w]
                if some == _ZERO:
                    return False
    else:
        fewest = WORD_BITS * n_words + 1
        best = 0
        bounded = n_more < UNBOUNDED >> 1
        n_disjoint = 0
        for w in range(n_words):
            branches[w] = _ZERO  # Until the end: the union of the disjoint edges.
        for edge_word in range(uncovered.shape[0]):
            rest = uncovered[edge_word]
            while rest != _ZERO:
                e = WORD_BITS * edge_word + word_lowest(rest)
                rest &= rest - _ONE
                count = 0
                common = _ZERO
                for w in range(n_words):
                    inside = edges[e, w] & candidates[w]
                    count += word_popcount(inside)
                    common |= inside & branches[w]
                if count < fewest:
                    if count == 0:
                        return False
                    fewest = count
                    best = e
                if bounded and common == _ZERO:
                    n_disjoint += 1
                    if n_disjoint > n_more:
                        return False
                    for w in range(n_words):
                        branches[w] |= edges[e, w] & candidates[w]
        for w in range(n_words):
            branches[w] = edges[best, w] & candidates[w]
    for w in range(n_words):
        candidates[w] &= ~branches[w]
    return True


# --- Berge's step ----------------------------------------------------------------------------------------


@njit(cache=True)
def _extended(cover: Masks, edges: Masks, max_size: int) -> Masks:
    """The cover after all edges, in no particular order.

    cover IN uint64[k, n_words]; edges IN uint64[m, n_words]; max_size at least 1.
    """
    for e in range(edges.shape[0]):
        cover = _extended_by(cover, edges[e], max_size)
    return cover


@njit(cache=True)
def _extended_by(cover: Masks, edge: Masks, max_size: int) -> Masks:
    """The cover after one edge; the cover itself if all its sets hit the edge.

    cover IN uint64[k, n_words]; edge IN uint64[n_words]; max_size at least 1.
    """
    n_sets, n_words = cover.shape
    n_columns = WORD_BITS * n_words

    # Sizes, and how each set meets the edge: not at all (-1), in one column (which), in more (n_columns).
    sizes = np.empty(n_sets, dtype=np.int64)
    meets = np.empty(n_sets, dtype=np.int64)
    n_missing = 0
    n_meeting = np.zeros(n_columns + 1, dtype=np.int64)
    n_of_size = np.zeros(n_columns + 1, dtype=np.int64)
    for i in range(n_sets):
        size = 0
        n_common = 0
        where = -1
        for w in range(n_words):
            size += word_popcount(cover[i, w])
            common = cover[i, w] & edge[w]
            if common != _ZERO:
                n_common += word_popcount(common)
                where = WORD_BITS * w + word_lowest(common)
        sizes[i] = size
        n_of_size[size] += 1
        meets[i] = where if n_common <= 1 else n_columns
        if n_common == 0:
            n_missing += 1
        else:
            n_meeting[meets[i]] += 1
    if n_missing == 0:
        return cover

    # The sets by size, so that a scan for parts of X may stop at the size of X.
    by_size = np.empty(n_sets, dtype=np.int64)
    ends = np.zeros(n_columns + 1, dtype=np.int64)
    for size in range(n_columns):
        ends[size + 1] = ends[size] + n_of_size[size]
    for i in range(n_sets):
        by_size[ends[sizes[i]]] = i
        ends[sizes[i]] += 1

    # Those that meet the edge in v alone, together, one per column (as vector instructions want them).
    n_once = n_sets - n_missing - n_meeting[n_columns]
    parts = np.empty((n_words, n_once), dtype=np.uint64)
    part_sizes = np.empty(n_once, dtype=np.int64)
    starts = np.zeros(n_columns + 1, dtype=np.int64)
    ends = np.zeros(n_columns + 1, dtype=np.int64)
    limits = np.zeros(n_columns + 1, dtype=np.int64)
    for v in range(n_columns):
        starts[v + 1] = starts[v] + n_meeting[v]
        ends[v + 1] = limits[v + 1] = starts[v + 1]
    some = np.zeros(n_words, dtype=np.uint64)
    for k in range(n_sets):
        i = by_size[k]
        v = meets[i]
        if v >= 0 and v < n_columns:
            for w in range(n_words):
                parts[w, ends[v]] = cover[i, w]
                some[w] |= cover[i, w]
            part_sizes[ends[v]] = sizes[i]
            ends[v] += 1

    extended = np.empty((n_sets + n_missing, n_words), dtype=np.uint64)
    n_extended = 0
    for i in range(n_sets):
        if meets[i] >= 0:
            for w in range(n_words):
                extended[n_extended, w] = cover[i, w]
            n_extended += 1
    outside = np.empty(n_words, dtype=np.uint64)
    for k in range(n_sets):
        i = by_size[k]
        if meets[i] >= 0 or sizes[i] >= max_size:
            continue
        for edge_word in range(n_words):
            rest = edge[edge_word]
            while rest != _ZERO:
                v = WORD_BITS * edge_word + word_lowest(rest)
                v_bit = rest & (~rest + _ONE)
                rest &= rest - _ONE
                # X comes by size, ascending, so each limit only moves on.
                while limits[v] < starts[v + 1] and part_sizes[limits[v]] <= sizes[i]:
                    limits[v] += 1
                for w in range(n_words):
                    outside[w] = ~cover[i, w]
                outside[edge_word] &= ~v_bit
                if _has_disjoint(parts, starts[v], limits[v], outside, some):
                    continue
                if n_extended == extended.shape[0]:
                    larger = np.empty((2 * n_extended, n_words), dtype=np.uint64)
                    for j in range(n_extended):
                        for w in range(n_words):
                            larger[j, w] = extended[j, w]
                    extended = larger
                for w in range(n_words):
                    extended[n_extended, w] = cover[i, w]
                extended[n_extended, edge_word] |= v_bit
                n_extended += 1
    return extended[:n_extended].copy()


@njit(cache=True)
def _has_disjoint(parts: Masks, start: int, stop: int, outside: Masks, some: Masks) -> bool:
    """Whether some part in start..stop has no column outside.

    parts IN uint64[n_words, n], one per column; outside IN uint64[n_words]; some IN uint64[n_words], the
    union of the parts. The word scanned is the one in which most columns can tell; 64 parts per branch.
    """
    n_words = outside.shape[0]
    telling = 0
    most = -1
    for w in range(n_words):
        says = word_popcount(outside[w] & some[w])
        if says > most:
            telling, most = w, says
    word = outside[telling]
    row = parts[telling]
    for block in range(start, stop, WORD_BITS):
        end = min(block + WORD_BITS, stop)
        hit = False
        for j in range(block, end):
            hit |= (row[j] & word) == _ZERO
        if hit:
            for j in range(block, end):
                common = _ZERO
                for w in range(n_words):
                    common |= parts[w, j] & outside[w]
                if common == _ZERO:
                    return True
    return False


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    edges = np.array([[3], [6]], dtype=np.uint64)
    within = np.array([7], dtype=np.uint64)
    cover = minimal_hitting_sets(edges, within)
    more = add_edges(cover, np.array([[5]], dtype=np.uint64), within)
    remove_edges(more, edges, np.array([[5]], dtype=np.uint64), within)
