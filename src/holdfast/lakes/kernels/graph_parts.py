"""The graph of tables: connected components, spanning forests, communities of bounded size.

A graph has the nodes 0 .. n-1 and undirected edges (left[i], right[i]). An edge may occur several times
and may join a node with itself, which changes nothing but, for communities, the weight. All answers depend
on the arguments alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

# Nodes of a community, at most.
LARGEST = 5000
# Communities that a graph should fall into, about: smaller ones than a share of this are merged.
MANY = 200
PASSES = 20  # over the nodes, per level; and levels
STEPS = 1000  # weights are rounded to this many steps, so that sums of them are exact in any order


# -- Components and forests --------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def root_of(parents, node):  # type: ignore[no-untyped-def]
    """The root of a node's tree. OUT: parents, a shorter way to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit(cache=True, nogil=True)
def _unite(left, right, parents, joining):  # type: ignore[no-untyped-def]
    """Unite the ends of all edges. OUT: parents, whose roots are smallest members; joining, which edges
    joined two trees."""
    for i in range(left.shape[0]):
        a, b = root_of(parents, left[i]), root_of(parents, right[i])
        joining[i] = a != b
        if a < b:
            parents[b] = a
        else:
            parents[a] = b
    for node in range(parents.shape[0]):
        parents[node] = parents[parents[node]]


def components(n: int, left: I32, right: I32) -> I32:
    """The component of each node, as its smallest member: int32[n]. Cost: nearly linear.

    >>> components(4, np.array([3], np.int32), np.array([1], np.int32)).tolist()
    [0, 1, 2, 1]
    """
    return _united(n, left, right)[0]


def spanning(n: int, left: I32, right: I32) -> Bool:
    """Which edges a spanning forest keeps: those that join two trees of the edges before them.

    So the forest of edges that fall in weight is one of greatest weight. Cost: nearly linear.
    """
    return _united(n, left, right)[1]


def forest(n: int, left: I32, right: I32) -> tuple[I32, I32]:
    """(left, right) of the edges of a spanning forest; those of `spanning`, in their order.

    >>> ends = np.array([0, 1, 0], np.int32), np.array([1, 2, 2], np.int32)
    >>> [side.tolist() for side in forest(3, *ends)]
    [[0, 1], [1, 2]]
    """
    inside = spanning(n, left, right)
    return np.asarray(left, np.int32)[inside], np.asarray(right, np.int32)[inside]


def _united(n: int, left: I32, right: I32) -> tuple[I32, Bool]:
    parents = np.arange(n, dtype=np.int32)
    joining = np.empty(len(left), np.bool_)
    _unite(frozen(np.asarray(left, np.int32)), frozen(np.asarray(right, np.int32)), parents, joining)
    return parents, joining


# -- Adjacency ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def adjacency(n, left, right, weights):  # type: ignore[no-untyped-def]
    """(offsets, neighbours, weights): each edge at both of its ends, in order; loops are left out."""
    offsets = np.zeros(n + 1, np.int64)
    for i in range(left.shape[0]):
        if left[i] != right[i]:
            offsets[left[i] + 1] += 1
            offsets[right[i] + 1] += 1
    for node in range(n):
        offsets[node + 1] += offsets[node]
    at = offsets[:n].copy()
    neighbours = np.empty(offsets[n], np.int32)
    edge_weights = np.empty(offsets[n], weights.dtype)
    for i in range(left.shape[0]):
        a, b = left[i], right[i]
        if a != b:
            neighbours[at[a]], edge_weights[at[a]] = b, weights[i]
            neighbours[at[b]], edge_weights[at[b]] = a, weights[i]
            at[a] += 1
            at[b] += 1
    return offsets, neighbours, edge_weights


# -- Communities -------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _move(offsets, neighbours, weights, degrees, sizes, total, order, largest, labels):  # type: ignore[no-untyped-def]
    """One level of Louvain. Nodes move, in order, to the neighbouring community of greatest gain that has
    room, until none does. OUT: labels. True if any node moved."""
    n = degrees.shape[0]
    inside = degrees.copy()  # by community: the weight at its nodes
    members = sizes.copy()
    ties = np.zeros(n, np.int64)  # by community: the weight towards the node at hand
    near = np.empty(n, np.int32)
    ever = False
    for _ in range(PASSES):
        moved = False
        for at in range(n):
            node = order[at]
            current = labels[node]
            n_near = 0
            for i in range(offsets[node], offsets[node + 1]):
                c = labels[neighbours[i]]
                if ties[c] == 0:
                    near[n_near] = c
                    n_near += 1
                ties[c] += weights[i]
            inside[current] -= degrees[node]
            members[current] -= sizes[node]
            k = np.float64(degrees[node])
            best, gain = current, np.float64(ties[current]) - k * np.float64(inside[current]) / total
            for i in range(n_near):
                c = near[i]
                if c != current and members[c] + sizes[node] <= largest:
                    tie_gain = np.float64(ties[c]) - k * np.float64(inside[c]) / total
                    if tie_gain > gain or (tie_gain == gain and best != current and c < best):
                        best, gain = c, tie_gain
                ties[c] = 0
            ties[current] = 0
            inside[best] += degrees[node]
            members[best] += sizes[node]
            if best != current:
                labels[node] = best
                moved = True
        ever = ever or moved
        if not moved:
            break
    return ever


@njit(cache=True, nogil=True)
def _join_small(offsets, neighbours, weights, sizes, order, smallest, largest, parents):  # type: ignore[no-untyped-def]
    """Small communities join the one, among those with room, to which they have the greatest weight.

    `order`: by size, rising. OUT: parents; sizes, at the roots. True if any joined.
    """
    ties = np.zeros(parents.shape[0], np.int64)
    joined = False
    for at in range(order.shape[0]):
        node = order[at]
        if parents[node] != node or sizes[node] >= smallest:
            continue
        for i in range(offsets[node], offsets[node + 1]):
            ties[root_of(parents, neighbours[i])] += weights[i]
        best, most = -1, np.int64(0)
        for i in range(offsets[node], offsets[node + 1]):
            c = root_of(parents, neighbours[i])
            better = ties[c] > most or (ties[c] == most and c < best)
            if better and c != node and sizes[c] + sizes[node] <= largest:
                best, most = c, ties[c]
        for i in range(offsets[node], offsets[node + 1]):
            ties[root_of(parents, neighbours[i])] = 0
        if best >= 0:
            parents[node] = best
            sizes[best] += sizes[node]
            joined = True
    for node in range(parents.shape[0]):
        parents[node] = root_of(parents, node)
    return joined


@njit(cache=True, nogil=True)
def _bundle(sizes, order, beside, largest, parents):  # type: ignore[no-untyped-def]
    """Small communities beside one and the same other are put together, as far as there is room.

    `order`: the small ones, by `beside` and number. OUT: parents.
    """
    first, filled = -1, np.int64(0)
    for at in range(order.shape[0]):
        node = order[at]
        if first >= 0 and beside[node] == beside[first] and filled + sizes[node] <= largest:
            parents[node] = first
            filled += sizes[node]
        else:
            first, filled = node, sizes[node]


class _Grouped:
    """A graph of communities: which node is in which, and the summed edges between them."""

    def __init__(self, n: int, left: I32, right: I32, weights: I64) -> None:
        self.labels: I32 = np.arange(n, dtype=np.int32)
        self.sizes: I64 = np.ones(n, np.int64)
        self.left, self.right, self.weights = left, right, weights
        self.adjacent: tuple[Any, ...] = adjacency(n, frozen(left), frozen(right), frozen(weights))

    def __len__(self) -> int:
        return len(self.sizes)

    def merge(self, parents: I32) -> None:
        """Communities of one parent become one; they are numbered by their parents."""
        roots, at = np.unique(parents, return_inverse=True)
        n, dense = len(roots), at.astype(np.int32)
        self.labels = dense[self.labels]
        self.sizes = np.bincount(dense, self.sizes, n).astype(np.int64)
        low, high = dense[self.left].astype(np.int64), dense[self.right].astype(np.int64)
        keys, at = np.unique(np.minimum(low, high) * n + np.maximum(low, high), return_inverse=True)
        self.weights = np.bincount(at, self.weights, len(keys)).astype(np.int64)
        self.left, self.right = (keys // n).astype(np.int32), (keys % n).astype(np.int32)
        self.adjacent = adjacency(n, frozen(self.left), frozen(self.right), frozen(self.weights))

    def degrees(self) -> I64:
        """The weight at each community, that of its inner edges twice."""
        n = len(self)
        at_ends = np.bincount(self.left, self.weights, n) + np.bincount(self.right, self.weights, n)
        return at_ends.astype(np.int64)


def communities(
    n: int,
    left: I32,
    right: I32,
    weights: NDArray[Any],
    seed: int = 0,
    *,
    largest: int = LARGEST,
    smallest: int | None = None,
) -> I32:
    """The community of each node, numbered by size, the largest first (ties: smallest member): int32[n].

    Louvain's method, with no community of more than `largest` nodes. Those of less than `smallest` (by
    default a share of n that leaves some hundreds) then join the neighbour that they are tied to most and
    that has room; those that find none are put together with others beside the same neighbour. So the
    leaves of a great star, whose hub has no room left, are a few communities, not thousands.

    Weights are positive, and matter in steps of a thousandth of the largest. Cost: a few passes over the
    edges on each of about log(n) levels.
    """
    if smallest is None:
        smallest = max(1, min(largest // 2, n // MANY))
    top = float(np.max(weights, initial=0.0))
    steps = np.maximum(1, np.rint(np.asarray(weights, np.float64) * (STEPS / top if top > 0 else 0.0)))
    graph = _Grouped(n, np.asarray(left, np.int32), np.asarray(right, np.int32), steps.astype(np.int64))
    rng = np.random.default_rng(seed)
    total = float(graph.degrees().sum())
    for _ in range(PASSES if total else 0):
        moved = np.arange(len(graph), dtype=np.int32)
        order = rng.permutation(len(graph)).astype(np.int32)
        stands = _move(
            *map(frozen, (*graph.adjacent, graph.degrees(), graph.sizes)),
            total,
            frozen(order),
            largest,
            moved,
        )
        if not stands:
            break
        graph.merge(moved)
    for _ in range(PASSES):
        parents = np.arange(len(graph), dtype=np.int32)
        order = np.argsort(graph.sizes, kind="stable").astype(np.int32)
        if not _join_small(
            *map(frozen, graph.adjacent), graph.sizes.copy(), frozen(order), smallest, largest, parents
        ):
            break
        graph.merge(parents)
    if (small := np.flatnonzero(graph.sizes < smallest)).size > 1:
        beside = _closest(graph)
        order = small[np.argsort(beside[small], kind="stable")].astype(np.int32)
        parents = np.arange(len(graph), dtype=np.int32)
        _bundle(frozen(graph.sizes), frozen(order), frozen(beside), largest, parents)
        graph.merge(parents)
    firsts = np.full(len(graph), n, np.int64)
    np.minimum.at(firsts, graph.labels, np.arange(n))
    ranks = np.empty(len(graph), np.int32)
    ranks[np.lexsort((firsts, -graph.sizes))] = np.arange(len(graph), dtype=np.int32)
    return ranks[graph.labels]


def _closest(graph: _Grouped) -> I32:
    """The neighbour of each community that it is tied to most, the first of several; -1 without any."""
    offsets, neighbours, weights = graph.adjacent
    owner = np.repeat(np.arange(len(graph)), np.diff(offsets))
    order = np.lexsort((neighbours, -weights, owner))
    first = np.flatnonzero(np.diff(owner[order], prepend=-1))
    closest = np.full(len(graph), -1, np.int32)
    closest[owner[order[first]]] = neighbours[order[first]]
    return closest


def warm_up() -> None:
    ends = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    forest(3, *ends)
    communities(3, *ends, np.ones(2))
    communities(5, np.zeros(4, np.int32), np.arange(1, 5, dtype=np.int32), np.ones(4), largest=2, smallest=2)
