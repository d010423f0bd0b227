"""Covers repaired: what edges, or evidence, that come or go do to the minimal sets.

Both repairs equal a fresh search (`kernels.search`), by test.

- `add_edges`, of columns: Berge's step, edge by edge; does not need the old edges. Up to 14 times as fast
  as a search for few edges (41,083 keys, one more agree set: 1.2 against 16.6 ms).
- `add_evidences`, of denial constraints: one search below each that broke. Edge by edge is ten times as slow
  there: an evidence breaks many, and a predicate that joins must not make a constraint trivial.
- `remove_edges` and `remove_evidences`: one search for each edge that goes, which leaves little to search.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from holdfast.core.cover.kernels.search import Watch, held_by, minimal_dcs, refuted, searched
from holdfast.core.cover.kernels.vertices import (
    JOINS,
    UNBOUNDED,
    Frame,
    Space,
    Vertices,
    in_order,
)
from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.masks import (
    WORD_BITS,
    Flags,
    Indices,
    Masks,
    as_masks,
    contained_in_any,
    contains_any,
    minimal_masks,
    n_words_for,
    transposed,
    unique_masks,
    without,
    word_lowest,
    word_popcount,
)
from holdfast.core.words.column_sets import bits_of, masks_of

# If more than one DC in this many broke, a fresh search is faster than one below each broken DC: of 132,229
# (adult, both directions) 3,279 broken took 0.2 s, 26,032 took 0.67 s, 66,693 took 1.2 s; afresh, 0.8 s.
BROKEN_SHARE = 4

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


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
    edges = as_masks(new_edges) & as_masks(within)
    edges = edges[minimal_masks(edges)]
    return in_order(_extended(as_masks(cover), edges, max_size if max_size > 0 else UNBOUNDED))


def remove_edges(
    cover: Masks, remaining_edges: Masks, removed_edges: Masks, within: Masks, max_size: int = 0
) -> Masks:
    """The cover of the remaining edges, from that of the remaining and the removed: `uint64[k, n_words]`.

    cover IN `uint64[k, n_words]`, exact under the same `within` and `max_size`; remaining_edges and
    removed_edges IN `uint64[m, n_words]`; within IN `uint64[n_words]`.

    Law and cost: see `_relaxed`.

    >>> both = np.array([[0b011], [0b101], [0b110]], dtype=np.uint64)
    >>> edge = np.array([[0b101]], dtype=np.uint64)
    >>> remaining = np.array([[0b011], [0b110]], dtype=np.uint64)
    >>> remove_edges(both, remaining, edge, np.array([0b111], dtype=np.uint64)).tolist()
    [[2], [5]]
    """
    cover, allowed = as_masks(cover), as_masks(within)
    vertices = Vertices.columns(WORD_BITS * len(allowed), max_size)
    edges = as_masks(remaining_edges) & allowed
    avoided = _exposed(as_masks(removed_edges) & allowed, edges)
    gone, new = _relaxed(vertices, cover, edges, avoided, None)
    return in_order(np.concatenate([cover[~gone], new[unique_masks(new)[0]]]))


def add_evidences(
    cover: Masks, old: Masks, new: Masks, space: Space, max_size: int = 0, watch: Watch | None = None
) -> Masks:
    """The cover of old and new evidence, from the cover of the old: `uint64[k, n_words]`.

    cover IN `uint64[k, n_words]`, exact for the old evidences under the same space and bound; old and new IN
    `uint64[m, n_words]`. Instead of all old evidence, any part that has the same cover will do; one that
    only proves its DCs minimal will not: a new DC may need a critical edge that it lacks.

    Law: a DC that is not broken stays; a new one contains a broken one (IncDC, Proposition 1). So one search
    starts at each broken DC, with the critical edges that its members have; of mirrored ones at one of
    them. A new DC may contain several broken ones and is then found as often. If many DCs broke, the search
    is fresh.

    Cost: the test of every DC against the new evidence; per broken DC one pass of bitsets over all edges.
    Berge's step, edge by edge, takes 1.7 s where this takes 0.16 s (20 new evidences, adult, 5,000 rows).
    """
    cover = as_masks(cover)
    frame = Frame(space, max_size, cover.shape[1])
    fresh = frame.edges_of(new)
    # A set hits all edges iff it is part of no complement. The edges are closed under exchange of the rows:
    # a DC is broken iff its mirror image is, and what is found below one mirrors what is below the other.
    sets = frame.packed(cover)
    broken = contained_in_any(sets, ~fresh)
    if not broken.any():
        return cover
    if BROKEN_SHARE * np.count_nonzero(broken) > len(sets):
        return minimal_dcs(np.concatenate([as_masks(old), as_masks(new)]), space, max_size, watch)
    edges = frame.edges_of(np.concatenate([as_masks(old), as_masks(new)]))
    roots = sets[broken]
    new_sets = []
    if frame.bound == UNBOUNDED:
        missed, edge = _missed(roots, fresh)
        single = missed == 1
        new_sets.append(_completed(frame, edges, roots[single], fresh[edge[single]], watch))
        roots = roots[~single]
    if len(roots):

        def search(part: slice) -> None:
            new_sets.append(searched(frame, edges, edges[:0], roots[part], watch))

        _in_threads(search, len(roots), THREAD_ROOTS)
    return in_order(np.concatenate([cover[~broken], frame.listed(np.concatenate(new_sets))]))


def remove_evidences(
    cover: Masks,
    remaining: Masks,
    removed: Masks,
    space: Space,
    max_size: int = 0,
    watch: Watch | None = None,
) -> Masks:
    """The cover of the remaining evidence, from that of the remaining and the removed: `uint64[k, n_words]`.

    cover IN `uint64[k, n_words]`, exact under the same space and bound; remaining and removed IN
    `uint64[m, n_words]`.

    Law and cost: see `_relaxed`. An old DC goes iff it contains a new one in either direction. 4 s for 815 of
    the 435,428 evidences of adult (463,372 DCs), where a fresh search takes a minute.
    """
    cover = as_masks(cover)
    frame = Frame(space, max_size, cover.shape[1])
    edges = frame.edges_of(remaining)
    avoided = _exposed(frame.edges_of(removed), edges)
    if len(avoided) == 0:
        return cover
    gone, new = _relaxed(frame, frame.packed(cover), edges, avoided, watch)
    return in_order(np.concatenate([cover[~gone], frame.listed(new)]))


def repair_supported(
    cover: Masks,
    support: Masks,
    evidences: Masks,
    came: Masks,
    went: Masks,
    space: Space,
    max_size: int,
    watch: Watch | None = None,
) -> tuple[Masks, Masks]:
    """(the cover of the evidences, a part of them that has the same cover), from those before a change.

    cover IN `uint64[k, n_words]`, exact under the same space and bound for the evidences before, and for
    `support`, a part of them; evidences IN `uint64[m, n_words]`: those before without `went`, with `came`.

    Law: evidence that contains no constraint of a cover changes nothing, so what stays of the support need
    only be joined by evidence that contains one. Old constraints hold in old evidence, and so do new ones
    that contain one: they are looked for in what came. Those that appear because some of the support went
    are looked for in all evidences. When none is contained in any, the cover is that of the evidences, as in
    `searched_in_parts`.

    Cost: the repairs on the support, which is a small part where a bound leaves most evidence without a say;
    a look at what came for each constraint; if some of the support went, an index of all evidences.
    """
    cover, came = as_masks(cover), as_masks(came)
    stays = without(support, went)
    dcs, part = cover, support[stays]
    if not stays.all():
        dcs = remove_evidences(cover, part, support[~stays], space, max_size, watch)
    frame = Frame(space, max_size, cover.shape[1])
    old = frame.packed(cover)
    pools = [(came, transposed(held_by(frame, came, watch), frame.n_vertices))]
    if not stays.all():
        pools.append((evidences, transposed(held_by(frame, evidences, watch), frame.n_vertices)))
    valid = frame.nothing[:0]
    while True:
        sets = frame.packed(dcs)
        sets = sets[without(sets, valid)]
        known = ~without(sets, old) if len(pools) > 1 else np.ones(len(sets), dtype=np.bool_)
        joining = []
        for (pool, index), asked in zip(pools, (sets[known], sets[~known]), strict=False):
            if not len(pool):
                valid = np.concatenate([valid, asked])
                continue
            images = frame.mirrored(asked)
            held, containing = refuted(index, np.concatenate([asked, images]), watch)
            joining.append(pool[containing])
            valid = np.concatenate([valid, asked[~without(asked, held) & ~without(images, held)]])
        more = np.concatenate([evidences[:0], *joining])
        if not len(more):
            return dcs, part
        more = more[unique_masks(more)[0]]
        dcs = add_evidences(dcs, part, more, space, max_size, watch)
        part = np.concatenate([part, more])


def _exposed(removed: Masks, edges: Masks) -> Masks:
    """The removed edges that count: uint64[a, n_words] of IN uint64[r, n_words], edges those that remain.

    A set that misses an edge misses every part of it; one that hits all remaining edges misses no edge that
    contains one of them.
    """
    exposed = removed[~contains_any(removed, edges)]
    return exposed[minimal_masks(exposed)]


def _relaxed(
    vertices: Vertices, sets: Masks, edges: Masks, avoided: Masks, watch: Watch | None
) -> tuple[Flags, Masks]:
    """`(gone bool[k], new uint64[n, n_words])`: the sets that are no longer minimal, and those that are now.

    sets IN uint64[k, n_words], the cover of both; edges IN uint64[m, n_words], those that remain; avoided IN
    uint64[a, n_words], those removed (`_exposed`). A new set may be there several times, or its mirror image.

    Law: a minimal hitting set of the remaining edges that hits all removed ones is in the old cover; so a new
    one misses at least one of them. Those that miss a removed edge a are the minimal hitting sets of what is
    left of the others without the vertices of a; of these only the minimal ones count, a few dozen. An old
    set goes iff it has one vertex of a, and hits them without it.

    Cost: for each removed edge two passes over the others, one over the cover and a small search: 5 ms for 4
    of 1,000 edges and 63,914 sets of 40 columns, where a fresh search takes 18 ms.
    """
    gone = np.zeros(len(sets), dtype=np.bool_)
    # What misses the mirror image of an edge mirrors what misses the edge.
    images = vertices.mirrored(avoided)
    first = np.array([a <= b for a, b in zip(avoided.tolist(), images.tolist(), strict=True)], dtype=np.bool_)
    avoided, images = avoided[first], images[first]
    new = [sets[:0]]

    def without_edge(part: slice) -> None:
        for edge, image in zip(avoided[part], images[part], strict=True):
            if watch is not None:
                watch(0)
            remainders = _remainders(edges, edge)
            if remainders is None:
                new.append(searched(vertices, edges, edge[None, :], vertices.nothing, watch))
                remainders = edges & ~edge
            else:
                new.append(searched(vertices, remainders, remainders[:0], vertices.nothing, watch))
            _mark_gone(sets, edge, remainders, gone)
            if (image != edge).any():
                _mark_gone(sets, image, vertices.mirrored(remainders), gone)

    n_alone = THREAD_EDGES if len(sets) + len(edges) >= THREAD_SETS else len(avoided) + 1
    _in_threads(without_edge, len(avoided), n_alone)
    return gone, np.concatenate(new)


# --- Sets that one vertex completes ----------------------------------------------------------------------
#
# A broken set that misses one new edge becomes R + v, for the vertices v of that edge with which each member
# keeps a critical edge: none that is common to all critical edges of a member. Critical edges are looked at
# in blocks, small edges first, until no vertex is common to those of any member.

BLOCK_WORDS = 128
# Roots that are worth a thread of their own.
THREAD_ROOTS = 256


@njit(cache=True, nogil=True)
def _count_missed(sets, edges, counts, which):  # type: ignore[no-untyped-def]
    for i in range(sets.shape[0]):
        for e in range(edges.shape[0]):
            hit = _ZERO
            for w in range(sets.shape[1]):
                hit |= sets[i, w] & edges[e, w]
            if hit == _ZERO:
                counts[i] += 1
                which[i] = e


def _missed(sets: Masks, edges: Masks) -> tuple[Indices, Indices]:
    """(how many edges each set misses, one of them): int64[n] each."""
    counts, which = np.zeros(len(sets), dtype=np.int64), np.zeros(len(sets), dtype=np.int64)
    _count_missed(sets, edges, counts, which)
    return counts, which


@njit(cache=True, nogil=True)
def _add_hits(a, b, c, d, once, twice):  # type: ignore[no-untyped-def]
    """INOUT once, twice uint64[at least n]: edges that one, and that two members have; four more members."""
    for e in range(a.shape[0]):
        one, two = once[e], twice[e]
        two |= one & a[e]
        one |= a[e]
        two |= one & b[e]
        one |= b[e]
        two |= one & c[e]
        one |= c[e]
        two |= one & d[e]
        one |= d[e]
        once[e] = one
        twice[e] = two


@njit(cache=True, nogil=True)
def _complete(roots, missed, edges, incidence, group_of, op_of, joins, allowed):  # type: ignore[no-untyped-def]
    """OUT allowed uint64[r, n_words]: the vertices that complete each root.

    IN roots, missed uint64[r, n_words]: sets, and the one edge that each misses; edges uint64[m, n_words];
    incidence uint64[n + 1, m_words]; group_of, op_of int64[n]; joins int64[64].
    """
    n_rows, n_edge_words = incidence.shape
    n_vertices = n_rows - 1  # the last row is empty: members come in fours
    n_words = edges.shape[1]
    members = np.empty(n_vertices + 4, dtype=np.int64)
    common = np.empty((n_vertices, n_words), dtype=np.uint64)
    once = np.empty(BLOCK_WORDS, dtype=np.uint64)
    twice = np.empty(BLOCK_WORDS, dtype=np.uint64)
    for r in range(roots.shape[0]):
        root = roots[r]
        n_members = 0
        for v in range(n_vertices):
            if root[v // WORD_BITS] >> np.uint64(v % WORD_BITS) & _ONE != _ZERO:
                members[n_members] = v
                n_members += 1
        for k in range(n_members, n_members + 4):
            members[k] = n_vertices
        # The vertices of the missed edge that leave no group trivial.
        able = allowed[r]
        some = _ZERO
        for v in range(n_vertices):
            bit = _ONE << np.uint64(v % WORD_BITS)
            if missed[r, v // WORD_BITS] & bit == _ZERO:
                continue
            ops = 0
            for k in range(n_members):
                if group_of[members[k]] == group_of[v]:
                    ops |= 1 << op_of[members[k]]
            if joins[ops] >> op_of[v] & 1:
                able[v // WORD_BITS] |= bit
                some |= bit
        if some == _ZERO:
            continue
        for k in range(n_members):
            for w in range(n_words):
                common[members[k], w] = able[w]
        n_open = n_members
        for start in range(0, n_edge_words, BLOCK_WORDS):
            if n_open == 0:
                break
            stop = min(start + BLOCK_WORDS, n_edge_words)
            for e in range(stop - start):
                once[e] = _ZERO
                twice[e] = _ZERO
            for k in range(0, n_members, 4):
                _add_hits(
                    incidence[members[k], start:stop], incidence[members[k + 1], start:stop],
                    incidence[members[k + 2], start:stop], incidence[members[k + 3], start:stop],
                    once, twice,
                )  # fmt: skip
            for e in range(stop - start):
                critical = once[e] & ~twice[e]
                while critical != _ZERO:
                    edge = WORD_BITS * (start + e) + word_lowest(critical)
                    critical &= critical - _ONE
                    # The one member that the edge has.
                    u = 0
                    for w in range(n_words):
                        hit = edges[edge, w] & root[w]
                        if hit != _ZERO:
                            u = WORD_BITS * w + word_lowest(hit)
                    before, after = _ZERO, _ZERO
                    for w in range(n_words):
                        before |= common[u, w]
                        common[u, w] &= edges[edge, w]
                        after |= common[u, w]
                    if before != _ZERO and after == _ZERO:
                        n_open -= 1
        for k in range(n_members):
            for w in range(n_words):
                able[w] &= ~common[members[k], w]


# --- Edges that go ---------------------------------------------------------------------------------------

# What is left of other edges: so many minimal ones at most; else the search is confined to sets without it.
MAX_REMAINDERS = 1 << 10
# Removed edges that are worth a thread of their own, beside so many sets and edges.
THREAD_EDGES = 4
THREAD_SETS = 1 << 14


@njit(cache=True, nogil=True)
def _minimal_remainders(edges, edge, sizes, order, minimal):  # type: ignore[no-untyped-def]
    """The number of minimal ones among e & ~edge, OUT minimal uint64[*, n_words]; -1 if there is no room.

    IN edges uint64[m, n_words], edge uint64[n_words]; sizes, order int64[m]: scratch.
    """
    n, n_words = edges.shape
    counts = np.zeros(WORD_BITS * n_words + 2, dtype=np.int64)
    for i in range(n):
        size = 0
        for w in range(n_words):
            size += word_popcount(edges[i, w] & ~edge[w])
        sizes[i] = size
        counts[size + 1] += 1
    for size in range(1, counts.shape[0]):
        counts[size] += counts[size - 1]
    for i in range(n):
        order[counts[sizes[i]]] = i
        counts[sizes[i]] += 1
    n_minimal = 0
    for p in range(n):
        i = order[p]
        covered = False
        for j in range(n_minimal):
            inside = True
            for w in range(n_words):
                if minimal[j, w] & ~(edges[i, w] & ~edge[w]) != _ZERO:
                    inside = False
                    break
            if inside:
                covered = True
                break
        if covered:
            continue
        if n_minimal == minimal.shape[0]:
            return -1
        for w in range(n_words):
            minimal[n_minimal, w] = edges[i, w] & ~edge[w]
        n_minimal += 1
    return n_minimal


def _remainders(edges: Masks, edge: Masks) -> Masks | None:
    """The minimal ones of what edges have beside one edge: uint64[k, n_words]; None if they are many."""
    sizes, order = np.empty(len(edges), dtype=np.int64), np.empty(len(edges), dtype=np.int64)
    minimal = np.empty((MAX_REMAINDERS, edges.shape[1]), dtype=np.uint64)
    n_minimal = _minimal_remainders(edges, edge, sizes, order, minimal)
    return None if n_minimal < 0 else minimal[:n_minimal].copy()


@njit(cache=True, nogil=True)
def _mark_gone(sets, edge, remainders, gone):  # type: ignore[no-untyped-def]
    """OUT gone bool[n]: set where a set has one vertex of the edge, and hits the remainders without it."""
    n_words = sets.shape[1]
    for i in range(sets.shape[0]):
        if gone[i]:
            continue
        shared = 0
        for w in range(n_words):
            shared += word_popcount(sets[i, w] & edge[w])
        if shared != 1:
            continue
        hits = True
        for j in range(remainders.shape[0]):
            some = _ZERO
            for w in range(n_words):
                some |= sets[i, w] & remainders[j, w]
            if some == _ZERO:
                hits = False
                break
        if hits:
            gone[i] = True


def _in_threads(work: Callable[[slice], None], n: int, worth: int) -> None:
    """Do work on parts of n things, on all cores if there are many: kernels let go of Python's lock."""
    n_parts = max(1, min(4 * (os.cpu_count() or 1), n // worth))
    bounds = np.linspace(0, n, n_parts + 1).astype(np.int64).tolist()
    parts = [slice(a, b) for a, b in pairwise(bounds)]
    if n_parts == 1:
        work(parts[0])
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(work, parts))


def _completed(frame: Frame, edges: Masks, roots: Masks, missed: Masks, watch: Watch | None = None) -> Masks:
    """The minimal sets R + v of each root R, which misses one edge alone: uint64[k, n_words].

    edges IN uint64[m, n_words], small ones first; roots, missed IN uint64[r, n_words].
    """
    n_vertices = frame.n_vertices
    allowed = np.zeros_like(roots)
    incidence = masks_of(bits_of(edges, n_vertices).T, n_words_for(len(edges)))
    incidence = np.concatenate([incidence, np.zeros_like(incidence[:1])])

    def complete(part: slice) -> None:
        for start in range(part.start, part.stop, THREAD_ROOTS):
            if watch is not None:
                watch(0)
            some = slice(start, min(start + THREAD_ROOTS, part.stop))
            _complete(
                np.ascontiguousarray(roots[some]), np.ascontiguousarray(missed[some]), edges, incidence,
                frame.group_of, frame.op_of, JOINS, allowed[some],
            )  # fmt: skip

    _in_threads(complete, len(roots), THREAD_ROOTS)
    root, vertex = np.nonzero(bits_of(allowed, n_vertices))
    bits = np.zeros((len(root), n_vertices), dtype=np.bool_)
    bits[np.arange(len(root)), vertex] = True
    return roots[root] | masks_of(bits, roots.shape[1])


# --- Berge's step ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _extended(cover: Masks, edges: Masks, max_size: int) -> Masks:
    """The cover after all edges, in no particular order.

    cover IN uint64[k, n_words]; edges IN uint64[m, n_words]; max_size at least 1.
    """
    for e in range(edges.shape[0]):
        cover = _extended_by(cover, edges[e], max_size)
    return cover


@njit(cache=True, nogil=True)
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
            word = edge[edge_word]
            while word != _ZERO:
                v = WORD_BITS * edge_word + word_lowest(word)
                v_bit = word & (~word + _ONE)
                word &= word - _ONE
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


@njit(cache=True, nogil=True)
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
    """Call every kernel once: the repairs themselves would search such a small cover afresh."""
    numbers = np.arange(2, dtype=np.int32)
    space = Space(0 * numbers, numbers, numbers, True)
    frame = Frame(space, 0, 1)
    edges = frame.edges_of(np.array([[0b01], [0b10]], dtype=np.uint64))
    _missed(edges, edges)
    _completed(frame, edges, edges[:1], edges[1:])
    _remainders(edges, edges[0])
    _mark_gone(edges, edges[0], edges, np.zeros(len(edges), dtype=np.bool_))
    add_edges(edges[:1], edges, edges[0] | edges[1])
