"""The search for minimal hitting sets: of keys, functional dependencies and denial constraints.

A set of vertices *hits* an edge if it shares a vertex with it; it is a *minimal hitting set* of a family of
edges if it hits them all and none of its proper subsets does. Vertices are columns or predicates
(`kernels.vertices`), masks are as in `holdfast.core.rows.kernels.masks`.

- Keys are the minimal hitting sets of the complements of agree sets; so are the left-hand sides of FDs.
- A denial constraint (DC) is a set of predicates; it is valid iff it is part of no evidence, that is, iff it
  hits the complement of every evidence. It is *trivial* iff in some group no outcome satisfies all of its
  predicates. A part of a DC that is not trivial is not trivial either, so minimality needs no second
  thought, and the search never enters a trivial set. Evidence is closed under exchange of the two rows:
  callers give evidence of one direction, and the other is added here. Of a DC and its mirror image one is
  listed: the one whose ascending numbers come first.

The invariant of every result: an antichain; every set has at most `max_size` members (0 or less: any number),
hits every edge, and is minimal; and no such set is missing. Minimality looks at all subsets, so a bound only
cuts the list: it never changes which sets are minimal. No edges have the one minimal hitting set {}; an empty
edge has none. Sets are sorted by size, then by words, so equal covers are equal arrays.

The search goes depth first with critical edges: MMCS of Murakami and Uno (Efficient algorithms for dualizing
large-scale hypergraphs, 2014, sec. 4). A set is extended only while every member has a critical edge, one
that it alone hits. We depart from it, for hundreds of thousands of edges of which a branch soon needs few:

- The edges that are still open are a list per level, not a bitset, and so are the critical edges of each
  member. Filtering them only when needed looked at 1.5 times as many edges: deep down few edges of a long
  list count.
- The vertices common to all critical edges of a member may not join: over all members this is the test of
  MMCS, for all candidates at once and before a vertex is picked.
- It is also why no predicate implied by a member has to be cut: `<` hits every edge that `<=` hits, so beside
  `<`, `<=` would have no critical edge, and beside `<=`, `<` is common to all of its critical edges.
- Vertices common to all open edges complete the set; they are listed at once and leave the candidates. Where
  no others are left to try, the lists of the critical edges are looked at, not copied.
- Mirror images are found twice. Roots that decide some mirrored pairs first save a tenth; not worth it.

Against bitsets of edges, lists took 1.2 times as long for 200 edges of 20 columns, the same for 300 of 30,
0.85 for thousands; for sets of at most 3 to 5 of 60 to 109 columns 0.5 to 0.9.

The number of sets may be exponential in the number of vertices; a caller who cannot bound it should bound
`max_size`. The search returns to Python every few tenths of a second, so that an interrupt is heeded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from holdfast.core.cover.kernels.vertices import (
    JOINS,
    OUTCOMES,
    UNBOUNDED,
    Frame,
    Space,
    Vertices,
    in_order,
    permuted,
)
from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Indices,
    Masks,
    as_masks,
    minimal_masks,
    n_words_for,
    popcounts,
    transposed,
    unique_masks,
    word_lowest,
    word_popcount,
)
from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE
from holdfast.core.words.column_sets import masks_of

# No kernel assigns to slices: the text of the error that cannot occur takes seconds to compile.

# After so many edges of lists the search returns: tenths of a second. A step counts as some, at least.
LOOKS_PER_CALL = 1 << 26
LOOKS_PER_STEP = 16
FIRST_CAPACITY = 1 << 12
# Of more evidences the search gets a part at first. It begins anew when some join: cheap under a bound (two
# predicates, a million evidences of random numbers: 3.6 s, 59 s with all at once), else 6 times dearer.
MANY_EVIDENCES, MANY_BOUNDED = 1 << 21, 1 << 18
# The evidences of the first search; how many join at most after each; how many that contain a set are looked
# for; evidences and sets between two calls of the watch.
FIRST_EVIDENCES = 1 << 14
MOST_JOINING = 1 << 16
CONTAINING = 4
EVIDENCES_CHUNK = 1 << 20
SETS_CHUNK = 1 << 10
NOT_BEGUN = -1
# Edges between two looks at whether a pass may end early.
STRIDE = 16
# What may be below a set: nothing, sets with one more vertex, or larger ones too.
_DEAD, _LAST, _OPEN = 0, 1, 2

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

# Called from time to time with the number of sets found so far, mirror images among them; what it raises ends
# the search.
Watch = Callable[[int], None]


def minimal_hitting_sets(edges: Masks, within: Masks, max_size: int = 0, watch: Watch | None = None) -> Masks:
    """All minimal hitting sets inside `within` of at most `max_size` columns: `uint64[k, n_words]`.

    edges IN `uint64[m, n_words]`, within IN `uint64[n_words]`. Cost: that of `minimal_masks` on the edges,
    then one to a few microseconds per set for some thousand edges.

    >>> edges = np.array([[0b011], [0b110]], dtype=np.uint64)
    >>> minimal_hitting_sets(edges, np.array([0b111], dtype=np.uint64)).tolist()
    [[2], [5]]
    """
    edges = as_masks(edges) & as_masks(within)
    edges = edges[minimal_masks(edges)]
    # Small edges first: more of them are disjoint, so a bound cuts sooner.
    edges = edges[np.argsort(popcounts(edges), kind="stable")]
    vertices = Vertices.columns(WORD_BITS * len(within), max_size)
    return in_order(searched(vertices, edges, edges[:0], vertices.nothing, watch))


def minimal_dcs(evidences: Masks, space: Space, max_size: int = 0, watch: Watch | None = None) -> Masks:
    """All minimal valid DCs that are not trivial, one of each mirrored pair: `uint64[k, n_words]`.

    evidences IN `uint64[m, n_words]`, of at least one direction of each pair of rows; `max_size` bounds the
    number of predicates (0 or less: no bound). No evidence has the one DC {}. A bound cuts the list; it does
    not change what is minimal. Cost (CPU): on adult, 54 predicates, general: 0.8 s for the 67,904 DCs of
    35,980 evidences (1,000 rows), 1.8 s for 43,366 of 72,411 (5,000), 3.1 s for 27,057 of 96,314 (24,000).

    >>> key_or_not = np.array([[0b10]], dtype=np.uint64)
    >>> alone = np.zeros(2, dtype=np.int32)
    >>> column = Space(alone, np.array([EQ, NE], dtype=np.int32), np.array([0, 1], dtype=np.int32), True)
    >>> minimal_dcs(key_or_not, column).tolist()
    [[1]]
    """
    return supported_dcs(evidences, space, max_size, watch)[0]


def supported_dcs(
    evidences: Masks, space: Space, max_size: int = 0, watch: Watch | None = None
) -> tuple[Masks, Masks | None]:
    """(`minimal_dcs`, a part of the evidences that has the same ones; None for all of them)."""
    evidences = as_masks(evidences)
    frame = Frame(space, max_size, evidences.shape[1])
    if frame.bound == 1 and frame.n_groups:
        evidences = frame.outcomes_in(evidences)
    elif len(evidences) > (MANY_EVIDENCES if frame.bound == UNBOUNDED else MANY_BOUNDED):
        sets, chosen = searched_in_parts(frame, evidences, watch)
        return frame.listed(sets), evidences[chosen]
    edges = frame.edges_of(evidences)
    return frame.listed(searched(frame, edges, edges[:0], frame.nothing, watch)), None


# --- The search ------------------------------------------------------------------------------------------


def searched(
    vertices: Vertices, edges: Masks, avoided: Masks, roots: Masks, watch: Watch | None = None
) -> Masks:
    """The minimal sets that contain a root and, unless there are none, miss an avoided edge.

    edges IN uint64[m, n_words]; avoided IN uint64[a, n_words]; roots IN uint64[r, n_words], none of which
    hits all edges. No edges have the set {}. A set is found once for each root that it contains.
    """
    if watch is not None:
        watch(0)
    if len(edges) == 0:
        return vertices.nothing
    # The vertices tried last at a level may use those tried before them, so the frequent ones come last:
    # 1.2 to 2 times as fast as the reverse. Vertices of no edge are left out, and roots with such a member.
    incidence = transposed(edges, vertices.n_vertices)
    degrees = popcounts(incidence)
    order = np.argsort(degrees, kind="stable")[np.count_nonzero(degrees == 0) :]
    back = np.full(vertices.n_vertices, -1, dtype=np.int64)
    back[order] = np.arange(len(order))
    roots = roots[~(roots & ~np.bitwise_or.reduce(edges, axis=0)).any(axis=1)]
    n_edges, n_vertices, n_words = len(edges), len(order), n_words_for(len(order))
    edges, avoided, roots = (permuted(masks, back, n_words) for masks in (edges, avoided, roots))
    group_of, op_of = vertices.group_of[order], vertices.op_of[order]
    group_masks = masks_of(group_of[None, :] == np.arange(vertices.n_groups)[:, None], n_words)
    incidence = incidence[order]

    # Every member has a critical edge of its own. A minimal set has at most two predicates of a group.
    n_levels = min(2 * vertices.n_groups, n_vertices, n_edges) + 2
    n_room = n_edges + len(avoided) + 1
    pool = np.empty(4 * n_room * n_words, dtype=np.uint64)
    spans = np.zeros((n_levels, n_levels + 2, 2), dtype=np.int64)
    tops = np.zeros(n_levels, dtype=np.int64)
    sets = np.zeros((n_levels, n_words), dtype=np.uint64)
    candidates = np.zeros_like(sets)
    branches = np.zeros_like(sets)
    chosen = np.zeros(n_levels, dtype=np.int64)
    state = np.array([NOT_BEGUN, 0, 0, 0], dtype=np.int64)
    minimal = np.empty((FIRST_CAPACITY + n_vertices, n_words), dtype=np.uint64)
    while not _search(
        edges, incidence, avoided, roots, group_of, op_of, group_masks, JOINS, vertices.general,
        vertices.bound, LOOKS_PER_CALL, n_room,
        pool, spans, tops, sets, candidates, branches, chosen, state, minimal,
    ):  # fmt: skip
        if watch is not None:
            watch(int(state[1]))
        if state[1] + n_vertices > len(minimal):
            minimal = np.concatenate([minimal, np.empty_like(minimal)])
        if state[0] != NOT_BEGUN and (tops[state[0]] + n_room) * n_words > len(pool):
            pool = np.concatenate([pool, np.empty_like(pool)])
    return permuted(minimal[: state[1]], order, vertices.nothing.shape[1])


def searched_in_parts(frame: Frame, evidences: Masks, watch: Watch | None = None) -> tuple[Masks, Indices]:
    """As `searched` with all edges of the evidences: with those of some of them, checked on all of them.

    Also which they are in the end.

    Where nearly every pair of rows has evidence of its own (columns of random numbers), lists of all edges
    need gigabytes, and minutes for constraints of two predicates. Most edges decide nothing. So each set
    found with some is looked for in all evidences, in an index with one row of bits for each vertex;
    evidences that contain it join those of the search, until there are none.

    Law: what is minimal among some edges and hits all of them is minimal among all; and a minimal set of all
    edges contains a minimal set of some, which hits all edges, so it is that set.

    evidences IN uint64[m, n_words], m > 0. Cost: one pass to make the index (n_vertices * m bits); for each
    set found a pass over the rows of its members, which ends early if an evidence contains it.
    """
    held = held_by(frame, evidences, watch)
    index = transposed(held, frame.n_vertices)
    chosen = np.unique(np.linspace(0, len(held) - 1, FIRST_EVIDENCES).astype(np.int64))
    valid = held[:0]
    while True:
        edges = frame.complements(held[chosen])
        sets = searched(frame, edges, edges[:0], frame.nothing, watch)
        n_valid = len(valid)
        fresh = sets[unique_masks(np.concatenate([valid, sets]))[1][n_valid:] >= n_valid]
        further, joining = refuted(index, fresh, watch)
        if not len(joining):
            return sets, chosen
        valid = np.concatenate([valid, further])
        chosen = np.union1d(chosen, joining)


def held_by(frame: Frame, evidences: Masks, watch: Watch | None = None) -> Masks:
    """The evidences as sets of vertices: uint64[m, n_words]."""
    held = np.empty((len(evidences), frame.nothing.shape[1]), dtype=np.uint64)
    for start in range(0, len(evidences), EVIDENCES_CHUNK):
        if watch is not None:
            watch(0)
        chunk = evidences[start : start + EVIDENCES_CHUNK]
        held[start : start + EVIDENCES_CHUNK] = permuted(chunk, frame.place, held.shape[1])
    return held


def refuted(index: Masks, sets: Masks, watch: Watch | None = None) -> tuple[Masks, Indices]:
    """(sets that no evidence contains, some evidences that contain others of them).

    index IN uint64[n_vertices, n_blocks], a row of bits for each vertex, of at least one evidence; sets IN
    uint64[k, n_words]. If many
    evidences do, not all sets are looked at: those that are not are in neither.
    """
    valid: list[Masks] = [sets[:0]]
    joining: list[Indices] = [np.empty(0, dtype=np.int64)]
    n_joining = 0
    for start in range(0, len(sets), SETS_CHUNK):
        if watch is not None:
            watch(len(sets))
        part = sets[start : start + SETS_CHUNK]
        containing = np.full((len(part), CONTAINING), -1, dtype=np.int64)
        _containing(index, part, start, containing)
        valid.append(part[containing[:, 0] < 0])
        joining.append(np.unique(containing[containing >= 0]))
        n_joining += len(joining[-1])
        if n_joining > MOST_JOINING:
            break
    return np.concatenate(valid), np.unique(np.concatenate(joining))


@njit(cache=True, nogil=True)
def _containing(index: Masks, sets: Masks, seed: int, out: Indices) -> None:
    """For each set up to `CONTAINING` evidences that contain it, -1 behind the last.

    index IN uint64[n_vertices, n_blocks]; sets IN uint64[k, n_words]; out IN/OUT int64[k, CONTAINING], -1
    everywhere. Every set begins at a place of its own, so that sets do not all find the same evidences.
    """
    n_blocks = index.shape[1]
    members = np.empty(index.shape[0], dtype=np.int64)
    for s in range(sets.shape[0]):
        n_members = 0
        for w in range(sets.shape[1]):
            word = sets[s, w]
            while word != _ZERO:
                members[n_members] = WORD_BITS * w + word_lowest(word)
                n_members += 1
                word &= word - _ONE
        if n_members == 0:  # which is part of everything
            out[s, 0] = 0
            continue
        n_containing = 0
        block = (seed + s) * 40503 % n_blocks
        for _ in range(n_blocks):
            word = _ALL
            for m in range(n_members):
                word &= index[members[m], block]
            if word != _ZERO:
                out[s, n_containing] = WORD_BITS * block + word_lowest(word)
                n_containing += 1
                if n_containing == out.shape[1]:
                    break
            block = block + 1 if block + 1 < n_blocks else 0


@njit(cache=True, nogil=True)
def _search(
    edges: Masks,
    incidence: Masks,
    avoided: Masks,
    roots: Masks,
    group_of: Indices,
    op_of: Indices,
    group_masks: Masks,
    joins: Indices,
    general: bool,
    max_size: int,
    n_looks: int,
    n_room: int,
    pool: Masks,
    spans: Indices,
    tops: Indices,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    chosen: Indices,
    state: Indices,
    minimal: Masks,
) -> bool:
    """Go on with the search until it ends (True), or room or `n_looks` looks are used up (False).

    IN: edges uint64[m, n_words]; incidence uint64[n, m_words], its transpose; avoided uint64[a, n_words];
    roots uint64[r, n_words]; group_of and op_of int64[n]; group_masks uint64[n_groups, n_words];
    joins int64[64]; general: predicates of one group count as one; n_room: the rows of the pool that one
    level may need.

    IN/OUT, one row per level, level = size of the set so far: sets, candidates and branches
    uint64[levels, n_words], the set, the vertices that may still join, those to be tried; chosen
    int64[levels], the vertex that led to the next level; pool uint64[rows * n_words], lists of edges; spans
    int64[levels, levels + 2, 2], where they begin and end: 0 the open edges, 1 the avoided ones that
    are still missed, 2 + k the critical ones of member k; tops int64[levels], the rows in use.

    IN/OUT: state int64[4], the level (NOT_BEGUN: the next root is to be begun), the number of sets found, the
    root, its level; minimal uint64[capacity, n_words], these sets.
    """
    n_words = edges.shape[1]
    level, n_minimal, root, base = state[0], state[1], state[2], state[3]
    common = np.empty(n_words, dtype=np.uint64)
    union = np.empty(n_words, dtype=np.uint64)
    avoiding = avoided.shape[0] > 0
    grouped = False
    for v in range(group_of.shape[0]):
        for w in range(n_words):
            companions = group_masks[group_of[v], w]
            if w == v // WORD_BITS:
                companions &= ~(_ONE << np.uint64(v % WORD_BITS))
            grouped |= companions != _ZERO
    while n_looks > 0:
        n_looks -= LOOKS_PER_STEP
        if n_minimal + group_of.shape[0] > minimal.shape[0]:
            break
        if level == NOT_BEGUN:
            if root == roots.shape[0]:
                state[1] = n_minimal
                return True
            n_looks -= edges.shape[0]
            base = _begin(
                edges, incidence, avoided, roots[root], group_of, op_of, group_masks, joins,
                pool, spans, tops, sets, candidates, chosen,
            )  # fmt: skip
            kind = _DEAD
            if base >= 0:
                kind = _look(
                    base, general, max_size, group_masks, pool, spans, sets, candidates, common, union
                )
            if kind == _DEAD:
                root += 1
                continue
            level = base
            for slot in range(1 if avoiding else 2, 2 + level):
                _cut_common(pool, spans[level, slot, 0], spans[level, slot, 1], candidates[level])
            n_minimal = _open(
                level, kind, pool, spans, sets, candidates, branches, common, union, n_minimal, minimal
            )
            continue
        if (tops[level] + n_room) * n_words > pool.shape[0]:
            break
        # The next vertex of this level, or back to the level above.
        word_index = 0
        while word_index < n_words and branches[level, word_index] == _ZERO:
            word_index += 1
        if word_index == n_words:
            if level == base:
                level = NOT_BEGUN
                root += 1
                continue
            level -= 1
            v = chosen[level]
            candidates[level, v // WORD_BITS] |= _ONE << np.uint64(v % WORD_BITS)
            continue
        v = WORD_BITS * word_index + word_lowest(branches[level, word_index])
        v_bit = _ONE << np.uint64(v % WORD_BITS)
        branches[level, word_index] &= ~v_bit
        chosen[level] = v
        below = level + 1
        for w in range(n_words):
            sets[below, w] = sets[level, w]
            candidates[below, w] = candidates[level, w]
        sets[below, word_index] |= v_bit
        if grouped:
            cut_trivial(group_of[v], sets[below], candidates[below], op_of, group_masks, joins)

        # Of every list the edges without v; open edges with v become its critical ones.
        first, last = spans[level, 0, 0], spans[level, 0, 1]
        able = candidates[below]
        n_looks -= last - first
        if not general and below + 1 == max_size:
            kind = _LAST if _all_hit(pool, first, last, v, able, common) else _DEAD
        else:
            spans[below, 0, 0] = tops[level]
            spans[below, 0, 1] = _without(pool, n_words, first, last, v, tops[level])
            kind = _look(below, general, max_size, group_masks, pool, spans, sets, candidates, common, union)
        if kind == _DEAD:
            candidates[level, word_index] |= v_bit
            continue
        n_looks -= tops[level] - last
        if kind == _LAST:
            for w in range(n_words):
                able[w] &= common[w]
            _cut_last(level, v, avoiding, pool, spans, candidates)
            n_minimal = _listed(sets[below], able, n_minimal, minimal)
            candidates[level, word_index] |= v_bit
            continue
        _descend(level, v, avoiding, pool, spans, tops, candidates)
        level = below
        n_minimal = _open(
            level, kind, pool, spans, sets, candidates, branches, common, union, n_minimal, minimal
        )
    state[0] = level
    state[1] = n_minimal
    state[2] = root
    state[3] = base
    return False


@njit(cache=True, nogil=True)
def _begin(
    edges: Masks,
    incidence: Masks,
    avoided: Masks,
    root: Masks,
    group_of: Indices,
    op_of: Indices,
    group_masks: Masks,
    joins: Indices,
    pool: Masks,
    spans: Indices,
    tops: Indices,
    sets: Masks,
    candidates: Masks,
    chosen: Indices,
) -> int:
    """The level of the root, or -1 if nothing can be found there. Arguments as in `_search`.

    OUT: the row of that level, before `_look`.
    """
    n_vertices, n_edge_words = incidence.shape
    n_edges, n_words = edges.shape
    level = 0
    for v in range(n_vertices):
        w, bit = v // WORD_BITS, _ONE << np.uint64(v % WORD_BITS)
        if root[w] & bit != _ZERO:
            if level == sets.shape[0] - 1:
                return -1
            chosen[level] = v
            level += 1
    for w in range(n_words):
        sets[level, w] = root[w]
        candidates[level, w] = ~root[w]
    for k in range(level):
        group = group_of[chosen[k]]
        ops = 0
        for v in range(n_vertices):
            if group_of[v] == group and root[v // WORD_BITS] >> np.uint64(v % WORD_BITS) & _ONE != _ZERO:
                ops |= 1 << op_of[v]
        if joins[ops] & ops != ops:
            return -1
        cut_trivial(group, sets[level], candidates[level], op_of, group_masks, joins)

    never = np.empty(n_edge_words, dtype=np.uint64)
    twice = np.zeros(n_edge_words, dtype=np.uint64)
    for e_word in range(n_edge_words):
        never[e_word] = _ALL
    if n_edges % WORD_BITS != 0:
        never[n_edge_words - 1] = (_ONE << np.uint64(n_edges % WORD_BITS)) - _ONE
    for k in range(level):
        with_v = incidence[chosen[k]]
        for e_word in range(n_edge_words):
            twice[e_word] |= with_v[e_word] & ~never[e_word]
            never[e_word] &= ~with_v[e_word]
    top = 0
    for slot in range(2 + level):
        spans[level, slot, 0] = top
        if slot == 1:
            for a in range(avoided.shape[0]):
                hit = _ZERO
                for w in range(n_words):
                    pool[n_words * top + w] = avoided[a, w]
                    hit |= avoided[a, w] & root[w]
                if hit == _ZERO:
                    top += 1
        else:
            for e_word in range(n_edge_words):
                word = never[e_word] if slot == 0 else incidence[chosen[slot - 2], e_word] & ~twice[e_word]
                while word != _ZERO:
                    e = WORD_BITS * e_word + word_lowest(word)
                    word &= word - _ONE
                    for w in range(n_words):
                        pool[n_words * top + w] = edges[e, w]
                    top += 1
        spans[level, slot, 1] = top
        if spans[level, slot, 0] == top and (slot >= 2 or (slot == 1 and avoided.shape[0] > 0)):
            return -1
    tops[level] = top
    return level


@njit(cache=True, nogil=True)
def cut_trivial(
    group: int, members: Masks, candidates: Masks, op_of: Indices, group_masks: Masks, joins: Indices
) -> None:
    """Take those vertices of the group out of the candidates that would make the set trivial.

    IN: members uint64[n_words], the set; op_of, group_masks, joins as in `_search`. IN/OUT: candidates
    uint64[n_words].
    """
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
def cut_to_bound(max_size: int, group_masks: Masks, members: Masks, candidates: Masks, union: Masks) -> int:
    """How many groups may join the set; with room for none, only those of members stay candidates.

    IN: max_size, a bound on the groups; group_masks as in `_search`; members uint64[n_words], the set.
    IN/OUT: candidates uint64[n_words]. Scratch: union uint64[n_words].
    """
    n_words = members.shape[0]
    n_more = max_size
    for w in range(n_words):
        union[w] = _ZERO
    for group in range(group_masks.shape[0]):
        for w in range(n_words):
            if group_masks[group, w] & members[w] != _ZERO:
                n_more -= 1
                for x in range(n_words):
                    union[x] |= group_masks[group, x]
                break
    if n_more == 0:
        for w in range(n_words):
            candidates[w] &= union[w]
    return n_more


@njit(cache=True, nogil=True)
def _look(
    level: int,
    general: bool,
    max_size: int,
    group_masks: Masks,
    pool: Masks,
    spans: Indices,
    sets: Masks,
    candidates: Masks,
    common: Masks,
    union: Masks,
) -> int:
    """What may be below a set: nothing (_DEAD), sets with one more vertex (_LAST), or larger ones (_OPEN).

    Arguments as in `_search`; OUT: common uint64[n_words], the vertices that hit all open edges. Scratch:
    union uint64[n_words].
    """
    n_words = sets.shape[1]
    able = candidates[level]
    n_more = max_size if max_size == UNBOUNDED else max_size - level
    if general and max_size < UNBOUNDED:
        n_more = cut_to_bound(max_size, group_masks, sets[level], able, union)
    if n_more < 0 or (n_more == 0 and not general):
        return _DEAD
    first, last = spans[level, 0, 0], spans[level, 0, 1]
    best = _fewest(pool, first, last, UNBOUNDED if general else n_more, able, common, union)
    if best < 0:
        return _DEAD
    if not general and n_more == 1:
        return _LAST
    for w in range(n_words):
        if pool[n_words * best + w] & able[w] != common[w]:
            return _OPEN
    return _LAST


@njit(cache=True, nogil=True)
def _open(
    level: int,
    kind: int,
    pool: Masks,
    spans: Indices,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    common: Masks,
    union: Masks,
    n_minimal: int,
    minimal: Masks,
) -> int:
    """List the sets that one more vertex completes, and set the vertices to try next; the new `n_minimal`.

    Arguments as in `_search`; kind, _LAST or _OPEN. The vertices to try are the candidates in the open edge
    that has fewest.
    """
    n_words = sets.shape[1]
    able, tried = candidates[level], branches[level]
    for w in range(n_words):
        tried[w] = _ZERO
    best = _fewest(pool, spans[level, 0, 0], spans[level, 0, 1], UNBOUNDED, able, common, union)
    if best < 0:
        return n_minimal
    n_minimal = _listed(sets[level], common, n_minimal, minimal)
    for w in range(n_words):
        able[w] &= ~common[w]
        if kind == _OPEN:
            tried[w] = pool[n_words * best + w] & able[w]
            able[w] &= ~tried[w]
    return n_minimal


@njit(cache=True, nogil=True)
def _listed(members: Masks, vertices: Masks, n_minimal: int, minimal: Masks) -> int:
    """Put down the set with each of the vertices: OUT minimal, from `n_minimal`; the new `n_minimal`."""
    n_words = members.shape[0]
    for word_index in range(n_words):
        word = vertices[word_index]
        while word != _ZERO:
            for w in range(n_words):
                minimal[n_minimal, w] = members[w]
            minimal[n_minimal, word_index] |= word & (~word + _ONE)
            word &= word - _ONE
            n_minimal += 1
    return n_minimal


@njit(cache=True, nogil=True)
def _fewest(pool: Masks, first: int, last: int, n_more: int, able: Masks, common: Masks, union: Masks) -> int:
    """The edge of the list with fewest candidates; -1 if so many candidates cannot hit all edges.

    IN: pool, of which the rows first..last are the list; n_more, at least 1 or UNBOUNDED; able
    uint64[n_words], the candidates. OUT: common uint64[n_words], the candidates in all edges. Scratch: union
    uint64[n_words].

    Edges that are disjoint inside the candidates are counted on the way: each needs one of its own.
    """
    n_words = able.shape[0]
    fewest = WORD_BITS * n_words + 1
    best = first
    n_disjoint = 0
    if n_words == 1:  # The common case, without inner loops.
        word = able[0]
        every = word
        if n_more == UNBOUNDED:
            for i in range(first, last):
                inside = pool[i] & word
                every &= inside
                count = word_popcount(inside)
                if count < fewest:
                    fewest = count
                    best = i
        else:
            joined = _ZERO
            for i in range(first, last):
                inside = pool[i] & word
                every &= inside
                count = word_popcount(inside)
                if count < fewest:
                    fewest = count
                    best = i
                if inside & joined == _ZERO:
                    n_disjoint += 1
                    joined |= inside
                    if n_disjoint > n_more:
                        return -1
        common[0] = every
        return best if fewest > 0 else -1
    for w in range(n_words):
        common[w] = able[w]
        union[w] = _ZERO
    for i in range(first, last):
        count = 0
        shared = _ZERO
        for w in range(n_words):
            inside = pool[n_words * i + w] & able[w]
            common[w] &= inside
            shared |= inside & union[w]
            count += word_popcount(inside)
        if count < fewest:
            fewest = count
            best = i
            if count == 0:
                return -1
        if n_more < UNBOUNDED and shared == _ZERO:
            n_disjoint += 1
            if n_disjoint > n_more:
                return -1
            for w in range(n_words):
                union[w] |= pool[n_words * i + w] & able[w]
    return best


@njit(cache=True, nogil=True)
def _all_hit(pool: Masks, first: int, last: int, v: int, able: Masks, common: Masks) -> bool:
    """Whether some candidate hits all edges of the list without v; OUT common uint64[n_words], which do."""
    n_words = able.shape[0]
    at, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    for w in range(n_words):
        common[w] = able[w]
    for i in range(first, last):
        if pool[n_words * i + at] >> shift & _ONE == _ZERO:
            some = _ZERO
            for w in range(n_words):
                common[w] &= pool[n_words * i + w]
                some |= common[w]
            if some == _ZERO:
                return False
    return True


@njit(cache=True, nogil=True)
def _descend(
    level: int, v: int, avoiding: bool, pool: Masks, spans: Indices, tops: Indices, candidates: Masks
) -> None:
    """Make the lists of the level below, without the open edges: those of this level without v.

    Arguments as in `_search`. Open edges with v become the critical ones of v. No vertex may join that is
    common to all critical edges of a member, or to all avoided edges still missed: it leaves the candidates
    of the level below. All in one call: a call for each list took as long as the lists.
    """
    below = level + 1
    n_words = candidates.shape[1]
    at, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    top = spans[below, 0, 1]
    for slot in range(1, 3 + level):
        is_new = slot == 2 + level
        first, last = spans[level, 0 if is_new else slot, 0], spans[level, 0 if is_new else slot, 1]
        dropped = _ZERO if is_new else _ONE
        start = top
        if n_words == 1:  # The common case, without inner loops.
            able = candidates[below, 0]
            common = able
            for i in range(first, last):
                edge = pool[i]
                pool[top] = edge
                drop = (edge >> shift & _ONE) == dropped
                common &= edge | (_ZERO - np.uint64(drop))
                top += 0 if drop else 1
            if slot > 1 or avoiding:
                candidates[below, 0] = able & ~common
        else:
            for i in range(first, last):
                for w in range(n_words):
                    pool[n_words * top + w] = pool[n_words * i + w]
                top += 0 if (pool[n_words * i + at] >> shift & _ONE) == dropped else 1
            if slot > 1 or avoiding:
                _cut_common(pool, start, top, candidates[below])
        spans[below, slot, 0] = start
        spans[below, slot, 1] = top
    tops[below] = top


@njit(cache=True, nogil=True)
def _cut_last(level: int, v: int, avoiding: bool, pool: Masks, spans: Indices, candidates: Masks) -> None:
    """Take out of the candidates below what `_descend` would, without making lists.

    Arguments as in `_search`.
    """
    n_words = candidates.shape[1]
    at, shift = v // WORD_BITS, np.uint64(v % WORD_BITS)
    for slot in range(1 if avoiding else 2, 3 + level):
        is_new = slot == 2 + level
        first, last = spans[level, 0 if is_new else slot, 0], spans[level, 0 if is_new else slot, 1]
        dropped = _ZERO if is_new else _ONE
        for w in range(n_words):
            common = candidates[level + 1, w]
            start = first
            while start < last and common != _ZERO:
                for i in range(start, min(start + STRIDE, last)):
                    drop = (pool[n_words * i + at] >> shift & _ONE) == dropped
                    common &= pool[n_words * i + w] | (_ZERO - np.uint64(drop))
                start += STRIDE
            candidates[level + 1, w] &= ~common


@njit(cache=True, nogil=True)
def _cut_common(pool: Masks, first: int, last: int, candidates: Masks) -> None:
    """Take the vertices that all edges of the list share out of the candidates.

    IN: pool, of which the rows first..last are the list. IN/OUT: candidates uint64[n_words].
    """
    n_words = candidates.shape[0]
    for w in range(n_words):
        common = candidates[w]
        for i in range(first, last):
            common &= pool[n_words * i + w]
        candidates[w] &= ~common


@njit(cache=True, nogil=True)
def _without(pool: Masks, n_words: int, first: int, last: int, v: int, end: int) -> int:
    """Copy the edges of the list that have not the vertex v to the rows from `end`; the row after them.

    IN/OUT: pool, of which the rows first..last are the list; as many rows from `end` on are overwritten.
    """
    bit = _ONE << np.uint64(v % WORD_BITS)
    if n_words == 1:  # The common case, without an inner loop.
        for i in range(first, last):
            edge = pool[i]
            pool[end] = edge
            end += 1 if edge & bit == _ZERO else 0
    else:
        for i in range(first, last):
            for w in range(n_words):
                pool[n_words * end + w] = pool[n_words * i + w]
            end += 1 if pool[n_words * i + v // WORD_BITS] & bit == _ZERO else 0
    return end


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    numbers = np.arange(6, dtype=np.int32)
    space = Space(0 * numbers, numbers, np.array([EQ, NE, GT, GE, LT, LE], dtype=np.int32), True)
    evidence = np.array([[OUTCOMES[0]]], dtype=np.uint64)
    minimal_dcs(evidence, space)
    searched_in_parts(Frame(space, 1, 1), evidence)
