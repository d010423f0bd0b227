"""The cover kernel of denial constraints: minimal hitting sets that are not trivial.

A DC is a set of predicates; it is valid iff it is part of no evidence, that is, iff it hits the complement
of every evidence (an *edge*). It is *trivial* iff in some group no outcome satisfies all of its predicates.
A part of a DC that is not trivial is not trivial either, so minimality needs no second thought, and the
search never enters a trivial set. Masks of predicates are as in `holdfast.core.rows.kernels.masks`.

*Two kinds of cover.* `=`, `<` and `>` are *strict*: each says what two *loose* predicates of its group say
together: `<` is `<=` and `!=`, `>` is `>=` and `!=`, `=` is `<=` and `>=` (also where NULL is involved).

- The cover of *sets* holds every set-minimal DC. There `<` beside `{<=, !=}` is noise, and so is X + `<`
  where X + `<=` is valid: 903,259 DCs for the first 1,000 rows of adult.
- The cover of *general* DCs (`Space.general`) holds those in which no predicate can be dropped or replaced
  by a looser one, each written with at most one predicate per group: 67,904 for the same rows, as many as
  FastADC finds. Law: written with loose predicates alone, they are the set-minimal DCs over the loose
  predicates. For a strict one can be loosened iff one of its two loose ones has no edge that it alone hits.
  So the general DCs are found by the same search, over half of the predicates.

Every set-minimal DC is a general one made stricter, so the general ones lose nothing.

Evidence is closed under exchange of the two rows: callers give evidence of one direction, and the other is
added here. Of a DC and its mirror image one is listed: the one whose ascending numbers come first.

The search is MMCS (see `kernels.hitting_sets`), with these departures, for hundreds of thousands of
edges of which a branch soon needs few:

- The edges that are still open are a list per level, not a bitset, and so are the *critical* edges of each
  member, those that it alone hits. Filtering them only when needed looked at 1.5 times as many edges:
  deep down few edges of a long list count.
- The vertices common to all critical edges of a member may not join: over all members this is the test of
  MMCS, for all candidates at once and before a vertex is picked.
- It is also why no predicate implied by a member has to be cut: `<` hits every edge that `<=` hits, so beside
  `<`, `<=` would have no critical edge, and beside `<=`, `<` is common to all of its critical edges.
- Vertices common to all open edges complete the set; they are listed at once and leave the candidates.
- Mirror images are found twice. Roots that decide some mirrored pairs first save a tenth; not worth it.

Sets are sorted by size, then by words, so equal covers are equal arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Flags,
    Indices,
    Masks,
    as_masks,
    n_words_for,
    popcounts,
    transposed,
    unique_masks,
    word_lowest,
    word_popcount,
)

EQ, NE, LT, LE, GT, GE = range(6)
# The operators that hold under each outcome, one bit each: <, =, >, NULL on one side. An unordered group has
# the first two operators only, and what follows is true of it too.
OUTCOMES = (
    1 << NE | 1 << LT | 1 << LE,
    1 << EQ | 1 << LE | 1 << GE,
    1 << NE | 1 << GT | 1 << GE,
    1 << NE,
)
HALVES = ((EQ, LE, GE), (LT, LE, NE), (GT, GE, NE))

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
UNBOUNDED = 1 << 62

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)

Numbers = NDArray[np.int32]
# Called from time to time with the number of sets found so far, mirror images among them; what it raises ends
# the search.
Watch = Callable[[int], None]
Bits = NDArray[np.bool_]


class Space(NamedTuple):
    """The predicates, and which cover is meant.

    group_of, op_of, mirror `int32[n_predicates]`: the group of each predicate (0, 1, ...), its operator (`EQ`
    to `GE`), and the predicate that it becomes when the two rows are exchanged. An ordered group has all six
    operators, another one `EQ` and `NE`. general: the general DCs, rather than all set-minimal ones.
    """

    group_of: Numbers
    op_of: Numbers
    mirror: Numbers
    general: bool


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
    evidences = as_masks(evidences)
    frame = Frame(space, max_size, evidences.shape[1])
    if frame.bound == 1 and frame.n_groups:
        evidences = frame.outcomes_in(evidences)
    if len(evidences) > (MANY_EVIDENCES if frame.bound == UNBOUNDED else MANY_BOUNDED):
        return frame.listed(searched_in_parts(frame, evidences, watch))
    edges = frame.edges_of(evidences)
    if len(edges) == 0:
        return np.zeros((1, frame.n_words), dtype=np.uint64)
    return frame.listed(searched(frame, edges, edges[:0], frame.nothing, watch))


# --- Between the masks of callers and those of the search ------------------------------------------------


class Frame:
    """The vertices of the search (predicates, all or the loose ones) and the way to them and back.

    Packed masks have bit i for predicate `vertices[i]`, in the order of the predicates.
    """

    def __init__(self, space: Space, max_size: int, n_words: int) -> None:
        self.n_words = n_words
        self.general = space.general
        self.bound = max_size if max_size > 0 else UNBOUNDED
        self.n_predicates = len(space.group_of)
        self.mirror = np.asarray(space.mirror, dtype=np.int64)
        groups = np.asarray(space.group_of, dtype=np.int64)
        ops = np.asarray(space.op_of, dtype=np.int64)
        self.n_groups = int(groups.max(initial=-1)) + 1
        # numbers[g, op]: the predicate, or -1.
        numbers = np.full((self.n_groups, 6), -1, dtype=np.int64)
        numbers[groups, ops] = np.arange(self.n_predicates)
        self.numbers = numbers
        self.ordered = numbers[(numbers >= 0).all(axis=1)]
        strict = np.zeros(self.n_predicates, dtype=np.bool_)
        if self.general:
            strict[self.ordered[:, [EQ, LT, GT]]] = True
        self.vertices = np.flatnonzero(~strict)
        self.group_of = groups[self.vertices]
        self.op_of = ops[self.vertices]
        self.place = np.full(self.n_predicates, -1, dtype=np.int64)  # of each predicate among the vertices
        self.place[self.vertices] = np.arange(len(self.vertices))
        self.nothing = np.zeros((1, n_words_for(len(self.vertices))), dtype=np.uint64)
        self.vertex_mirror = self.place[self.mirror[self.vertices]]

    def edges_of(self, evidences: Masks) -> Masks:
        """The complements of the evidences and of their mirror images, distinct, small ones first."""
        n_words = n_words_for(len(self.vertices))
        # Bit by bit in a kernel: as arrays of bytes hundreds of thousands of evidences take seconds.
        return self.complements(permuted(as_masks(evidences), self.place, n_words))

    def complements(self, held: Masks) -> Masks:
        """`edges_of` evidences that are sets of vertices."""
        everything = masks_of(np.ones((1, len(self.vertices)), dtype=np.bool_), held.shape[1])
        edges = np.concatenate([held, self.mirrored(held)]) ^ everything
        distinct, _ = unique_masks(edges)
        edges = edges[distinct]
        return edges[np.argsort(popcounts(edges), kind="stable")]

    def outcomes_in(self, evidences: Masks) -> Masks:
        """Each outcome of a group that is in some evidence, alone: `uint64[k, n_words]`.

        Constraints of one predicate depend on nothing else. `<`, `=` and `>` are seen iff that predicate is;
        NULL on one side satisfies `!=` alone, which counts as seen with `<` or `>` too: no matter.
        """
        seen = bits_of(np.bitwise_or.reduce(evidences, axis=0)[None, :], self.n_predicates)[0]
        sets = []
        for numbers in self.numbers:
            for outcome, sign in zip(OUTCOMES, (LT, EQ, GT, NE), strict=True):
                if numbers[sign] >= 0 and seen[numbers[sign]]:
                    members = [n for op, n in enumerate(numbers) if outcome >> op & 1 and n >= 0]
                    sets.append(np.isin(np.arange(self.n_predicates), members))
        return masks_of(np.array(sets, dtype=np.bool_).reshape(len(sets), self.n_predicates), self.n_words)

    def mirrored(self, sets: Masks) -> Masks:
        """The mirror images of sets of vertices."""
        return permuted(sets, self.vertex_mirror, sets.shape[1])

    def packed(self, cover: Masks, mirrored: bool = True) -> Masks:
        """The DCs, and their mirror images if `mirrored`, distinct, over the vertices."""
        bits = bits_of(as_masks(cover), self.n_predicates)
        if self.general:
            for strict, left, right in HALVES:
                said = bits[:, self.ordered[:, strict]]
                bits[:, self.ordered[:, left]] |= said
                bits[:, self.ordered[:, right]] |= said
        held = bits[:, self.vertices]
        if mirrored:
            held = np.concatenate([held, held[:, self.vertex_mirror]])
        sets = masks_of(held, n_words_for(len(self.vertices)))
        return sets[unique_masks(sets)[0]]

    def listed(self, sets: Masks) -> Masks:
        """The DCs as callers want them: of each mirrored pair the canonical, distinct, sorted."""
        bits = np.zeros((len(sets), self.n_predicates), dtype=np.bool_)
        bits[:, self.vertices] = bits_of(sets, len(self.vertices))
        if self.general:
            for strict, left, right in HALVES:
                said = bits[:, self.ordered[:, left]] & bits[:, self.ordered[:, right]]
                bits[:, self.ordered[:, strict]] = said
            for strict, left, right in HALVES:
                said = bits[:, self.ordered[:, strict]]
                bits[:, self.ordered[:, left]] &= ~said
                bits[:, self.ordered[:, right]] &= ~said
        # Two sets of one size: the first to come is the one with the least number that is not in both.
        image = bits[:, self.mirror]
        differs = bits != image
        least = differs.argmax(axis=1)
        rows = np.arange(len(bits))
        other = differs[rows, least] & ~bits[rows, least]
        bits[other] = image[other]
        dcs = masks_of(bits, self.n_words)
        return in_order(dcs[unique_masks(dcs)[0]])


@njit(cache=True, nogil=True)
def _permute(masks: Masks, place: Indices, out: Masks) -> None:
    for i in range(masks.shape[0]):
        for w in range(masks.shape[1]):
            word = masks[i, w]
            while word != _ZERO:
                at = place[WORD_BITS * w + word_lowest(word)]
                word &= word - _ONE
                if at >= 0:
                    out[i, at // WORD_BITS] |= _ONE << np.uint64(at % WORD_BITS)


def permuted(masks: Masks, place: Indices, n_words: int) -> Masks:
    """The masks with bit i at place[i], without it where that is negative: `uint64[n, n_words]`.

    masks IN `uint64[n, *]` with bits below `len(place)`; place IN `int64[n_bits]`. Cost: the bits set.
    """
    out = np.zeros((len(masks), n_words), dtype=np.uint64)
    _permute(np.ascontiguousarray(masks), place, out)
    return out


def in_order(dcs: Masks) -> Masks:
    """By size, then by words."""
    return dcs[np.lexsort((*dcs.T[::-1], popcounts(dcs)))]


def bits_of(masks: Masks, n_bits: int) -> Bits:
    """`bool[n, n_bits]`, a new array."""
    octets = np.ascontiguousarray(masks, dtype="<u8").view(np.uint8)
    bits: Bits = np.unpackbits(octets, axis=1, count=n_bits, bitorder="little").astype(np.bool_)
    return bits


def masks_of(bits: Bits, n_words: int) -> Masks:
    """The inverse of `bits_of`: `uint64[n, n_words]`."""
    octets = np.zeros((len(bits), 8 * n_words), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view("<u8").astype(np.uint64)


def _joins() -> Indices:
    """For each set of operators, as bits, those that may join it without making it trivial: `int64[64]`."""
    joins = np.zeros(64, dtype=np.int64)
    for state in range(64):
        for op in range(6):
            if any((state | 1 << op) & ~outcome == 0 for outcome in OUTCOMES):
                joins[state] |= 1 << op
    return joins


JOINS = _joins()


# --- The search ------------------------------------------------------------------------------------------


def searched(frame: Frame, edges: Masks, avoided: Masks, roots: Masks, watch: Watch | None = None) -> Masks:
    """The minimal sets that contain a root and, unless there are none, miss an avoided edge.

    edges IN uint64[m, n_words], m > 0; avoided IN uint64[a, n_words]; roots IN uint64[r, n_words]. A set is
    found once for each root that it contains.
    """
    if watch is not None:
        watch(0)
    # The vertices tried last at a level may use those tried before them: frequent ones come last.
    n_vertices = len(frame.vertices)
    incidence = transposed(edges, n_vertices)
    order = np.argsort(popcounts(incidence), kind="stable")
    back = np.argsort(order)

    edges, avoided, roots = (permuted(masks, back, masks.shape[1]) for masks in (edges, avoided, roots))
    n_edges, n_words = edges.shape
    group_of, op_of = frame.group_of[order], frame.op_of[order]
    in_group = group_of[None, :] == np.arange(frame.n_groups)[:, None]
    group_masks = masks_of(in_group, n_words)
    incidence = incidence[order]

    # A minimal set has at most two predicates of a group.
    n_levels = min(2 * frame.n_groups, n_vertices) + 2
    n_room = n_edges + len(avoided) + 1
    pool = np.empty(4 * n_room * n_words, dtype=np.uint64)
    spans = np.zeros((n_levels, n_levels + 2, 2), dtype=np.int64)
    tops = np.zeros(n_levels, dtype=np.int64)
    sets = np.zeros((n_levels, n_words), dtype=np.uint64)
    candidates = np.zeros_like(sets)
    branches = np.zeros_like(sets)
    chosen = np.zeros(n_levels, dtype=np.int64)
    state = np.array([NOT_BEGUN, 0, 0, 0], dtype=np.int64)
    found = np.empty((FIRST_CAPACITY + n_vertices, n_words), dtype=np.uint64)
    while not _search(
        edges, incidence, avoided, roots, group_of, op_of, group_masks, JOINS, frame.general,
        frame.bound, LOOKS_PER_CALL, n_room,
        pool, spans, tops, sets, candidates, branches, chosen, state, found,
    ):  # fmt: skip
        if watch is not None:
            watch(int(state[1]))
        if state[1] + n_vertices > len(found):
            found = np.concatenate([found, np.empty_like(found)])
        if state[0] != NOT_BEGUN and (tops[state[0]] + n_room) * n_words > len(pool):
            pool = np.concatenate([pool, np.empty_like(pool)])
    return permuted(found[: state[1]], order, n_words)


def searched_in_parts(frame: Frame, evidences: Masks, watch: Watch | None = None) -> Masks:
    """As `searched` with all edges of the evidences: with those of some of them, checked on all of them.

    Where nearly every pair of rows has evidence of its own (columns of random numbers), lists of all edges
    need gigabytes, and minutes for constraints of two predicates. Most edges decide nothing. So each set
    found with some is looked for in all evidences, in an index with one row of bits for each vertex;
    evidences that contain it join those of the search, until there are none.

    Law: what is minimal among some edges and hits all of them is minimal among all; and a minimal set of all
    edges contains a minimal set of some, which hits all edges, so it is that set.

    evidences IN uint64[m, n_words], m > 0. Cost: one pass to make the index (n_vertices * m bits); for each
    set found a pass over the rows of its members, which ends early if an evidence contains it.
    """
    held = np.empty((len(evidences), frame.nothing.shape[1]), dtype=np.uint64)
    for start in range(0, len(evidences), EVIDENCES_CHUNK):
        if watch is not None:
            watch(0)
        chunk = evidences[start : start + EVIDENCES_CHUNK]
        held[start : start + EVIDENCES_CHUNK] = permuted(chunk, frame.place, held.shape[1])
    index = transposed(held, len(frame.vertices))
    chosen = np.unique(np.linspace(0, len(held) - 1, FIRST_EVIDENCES).astype(np.int64))
    valid = held[:0]
    while True:
        edges = frame.complements(held[chosen])
        sets = searched(frame, edges, edges[:0], frame.nothing, watch)
        n_valid = len(valid)
        fresh = sets[unique_masks(np.concatenate([valid, sets]))[1][n_valid:] >= n_valid]
        joining: list[Indices] = []
        n_joining = 0
        for start in range(0, len(fresh), SETS_CHUNK):
            if watch is not None:
                watch(len(sets))
            part = fresh[start : start + SETS_CHUNK]
            containing = np.full((len(part), CONTAINING), -1, dtype=np.int64)
            _containing(index, part, start, containing)
            valid = np.concatenate([valid, part[containing[:, 0] < 0]])
            joining.append(np.unique(containing[containing >= 0]))
            n_joining += len(joining[-1])
            if n_joining > MOST_JOINING:
                break
        if not n_joining:
            return sets
        chosen = np.union1d(chosen, np.concatenate(joining))


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
        n_found = 0
        block = (seed + s) * 40503 % n_blocks
        for _ in range(n_blocks):
            word = _ALL if n_members else _ZERO
            for m in range(n_members):
                word &= index[members[m], block]
            if word != _ZERO:
                out[s, n_found] = WORD_BITS * block + word_lowest(word)
                n_found += 1
                if n_found == out.shape[1]:
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
    found: Masks,
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
    root, its level; found uint64[capacity, n_words].
    """
    n_words = edges.shape[1]
    level, n_found, root, base = state[0], state[1], state[2], state[3]
    common = np.empty(n_words, dtype=np.uint64)
    while n_looks > 0:
        n_looks -= LOOKS_PER_STEP
        if n_found + group_of.shape[0] > found.shape[0]:
            break
        if level == NOT_BEGUN:
            if root == roots.shape[0]:
                state[1] = n_found
                return True
            n_looks -= edges.shape[0]
            base = _begin(
                edges, incidence, avoided, roots[root], group_of, op_of, group_masks, joins,
                pool, spans, tops, sets, candidates, chosen,
            )  # fmt: skip
            if base < 0:
                root += 1
                continue
            level = base
            n_found = _open_level(
                level, avoided.shape[0] > 0, general, max_size, group_of, group_masks,
                pool, spans, tops, sets, candidates, branches, chosen, common, n_found, found,
            )  # fmt: skip
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
        _cut_trivial(group_of[v], sets[below], candidates[below], op_of, group_masks, joins)

        # Of every list the edges without v; open edges with v become its critical ones.
        top = tops[level]
        for slot in range(2 + level):
            spans[below, slot, 0] = top
            n_looks -= spans[level, slot, 1] - spans[level, slot, 0]
            top = _without(pool, n_words, spans[level, slot, 0], spans[level, slot, 1], v, top)
            spans[below, slot, 1] = top
        spans[below, 2 + level, 0] = top
        top = _with(pool, n_words, spans[level, 0, 0], spans[level, 0, 1], v, top)
        spans[below, 2 + level, 1] = top
        tops[below] = top
        level = below
        n_found = _open_level(
            level, avoided.shape[0] > 0, general, max_size, group_of, group_masks,
            pool, spans, tops, sets, candidates, branches, chosen, common, n_found, found,
        )  # fmt: skip
    state[0] = level
    state[1] = n_found
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

    OUT: the row of that level, before `_open_level`.
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
        _cut_trivial(group, sets[level], candidates[level], op_of, group_masks, joins)

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
        if slot >= 2 and spans[level, slot, 0] == top:
            return -1
    tops[level] = top
    return level


@njit(cache=True, nogil=True)
def _cut_trivial(
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
def _open_level(
    level: int,
    avoiding: bool,
    general: bool,
    max_size: int,
    group_of: Indices,
    group_masks: Masks,
    pool: Masks,
    spans: Indices,
    tops: Indices,
    sets: Masks,
    candidates: Masks,
    branches: Masks,
    chosen: Indices,
    common: Masks,
    n_found: int,
    found: Masks,
) -> int:
    """List the sets that one more vertex completes, and set the vertices to try next; the new `n_found`.

    Arguments as in `_search`; common: scratch, uint64[n_words].

    No vertex may join that is common to all critical edges of a member, or to all avoided edges still missed.
    The vertices to try are the candidates in the open edge that has fewest.
    """
    n_words = sets.shape[1]
    members, able, tried = sets[level], candidates[level], branches[level]
    for w in range(n_words):
        tried[w] = _ZERO

    # With no room for another predicate only the groups of members are left (and not even they, in sets).
    size = level
    if general and max_size < UNBOUNDED:
        size = 0
        for group in range(group_masks.shape[0]):
            for w in range(n_words):
                if group_masks[group, w] & members[w] != _ZERO:
                    size += 1
                    break
    if size > max_size:
        return n_found
    if size == max_size:
        for w in range(n_words):
            common[w] = _ZERO
        if general:
            for k in range(level):
                for w in range(n_words):
                    common[w] |= group_masks[group_of[chosen[k]], w]
        for w in range(n_words):
            able[w] &= common[w]

    for slot in range(1 if avoiding else 2, 2 + level):
        if spans[level, slot, 0] == spans[level, slot, 1]:
            return n_found
        _cut_common(pool, spans[level, slot, 0], spans[level, slot, 1], able)

    if spans[level, 0, 0] == spans[level, 0, 1]:  # A root that is a hitting set itself.
        for w in range(n_words):
            found[n_found, w] = members[w]
        return n_found + 1
    fewest = WORD_BITS * n_words + 1
    best = -1
    for w in range(n_words):
        common[w] = able[w]
    for i in range(spans[level, 0, 0], spans[level, 0, 1]):
        count = 0
        for w in range(n_words):
            word = pool[n_words * i + w] & able[w]
            common[w] &= word
            count += word_popcount(word)
        if count < fewest:
            fewest = count
            best = i
            if count == 0:
                return n_found
    for word_index in range(n_words):
        word = common[word_index]
        while word != _ZERO:
            for w in range(n_words):
                found[n_found, w] = members[w]
            found[n_found, word_index] |= word & (~word + _ONE)
            word &= word - _ONE
            n_found += 1
        able[word_index] &= ~common[word_index]
    if general or size + 1 < max_size:
        for w in range(n_words):
            tried[w] = pool[n_words * best + w] & able[w]
            able[w] &= ~tried[w]
    return n_found


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


@njit(cache=True, nogil=True)
def _with(pool: Masks, n_words: int, first: int, last: int, v: int, end: int) -> int:
    """As `_without`, but those that have the vertex."""
    bit = _ONE << np.uint64(v % WORD_BITS)
    if n_words == 1:
        for i in range(first, last):
            edge = pool[i]
            pool[end] = edge
            end += 0 if edge & bit == _ZERO else 1
    else:
        for i in range(first, last):
            for w in range(n_words):
                pool[n_words * end + w] = pool[n_words * i + w]
            end += 0 if pool[n_words * i + v // WORD_BITS] & bit == _ZERO else 1
    return end


def trivial_dcs(dcs: Masks, space: Space) -> Flags:
    """Whether each DC is trivial: `bool[n]` for IN `uint64[n, n_words]`. Cost: one pass over the bits."""
    bits = bits_of(as_masks(dcs), len(space.group_of))
    n_groups = int(np.max(space.group_of, initial=-1)) + 1
    ops = np.zeros((len(bits), n_groups), dtype=np.int64)
    for predicate, (group, op) in enumerate(zip(space.group_of, space.op_of, strict=True)):
        ops[:, group] |= bits[:, predicate].astype(np.int64) << int(op)
    fits = np.zeros(ops.shape, dtype=np.bool_)
    for outcome in OUTCOMES:
        fits |= (ops & ~outcome) == 0
    return np.logical_not(fits.all(axis=1))


def warm_up() -> None:
    """Call every kernel once, so that Numba's cache on disk holds them all."""
    numbers = np.arange(6, dtype=np.int32)
    space = Space(0 * numbers, numbers, np.array([EQ, NE, GT, GE, LT, LE], dtype=np.int32), True)
    evidence = np.array([[OUTCOMES[0]]], dtype=np.uint64)
    minimal_dcs(evidence, space)
    searched_in_parts(Frame(space, 1, 1), evidence)
