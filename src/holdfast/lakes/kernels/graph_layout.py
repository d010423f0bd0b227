"""Drawing a graph: places for its nodes, and places for circles that must not overlap.

The drawing is a balance of forces: nodes repel each other as charges in the plane do, with 1/d, and an edge
pulls with strength * d, and harder if it is longer than the discs of the neighbours at its ends. An edge is
the weaker, the more edges both of its ends have. So the leaves of a star fill a disc, and so do the nodes of
a clique, about as dense as the nodes of other parts, however many there are; with equal strengths a clique
would fall into a point.

Forces are balanced on several levels: nodes are merged in pairs until a handful is left, and each coarse
drawing is the start of the next finer one, so that few steps suffice on each. Repulsion is that of Barnes
and Hut: distant nodes act as one. Cost: O(n log n + edges) per step.

Coordinates are such that the closest neighbour of a node, linked or not, is typically at distance 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen
from holdfast.lakes.kernels.circles import packed
from holdfast.lakes.kernels.graph_parts import adjacency, components

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

THETA = 1.0  # a cell acts as one charge if it is this many times as far as it is wide
DIRECT = 100  # up to so many nodes all pairs are computed
DEPTH = 20  # of the tree; deeper points share a leaf
COARSEST = 6  # nodes of the coarsest level
UNFOLDED = 20  # up to so many nodes, on all levels but the finest, repulsion reaches any distance
STEPS_FIRST, STEPS = 150, 60  # on the coarsest level, and on each of the others
# On levels of more nodes than this the coarser ones have done most of the work: a third less time in all.
LARGE, STEPS_LARGE = 1_000, 30
FAR = 4.0  # nodes' distances beyond which repulsion falls with 1/d^3: regions need not push each other far
CLOSEST = 0.75  # nodes are moved apart to this distance in the end, of a typical distance of 1
GAP = 1.0  # between the parts of a graph that is not connected
SHARE = 0.6  # radius of the disc that k nodes fill, over sqrt(k)
EPSILON = 1e-12


# -- Forces ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _build(x, y, mass, first, heads, following, cells):  # type: ignore[no-untyped-def]
    """A quadtree over the points. OUT: first, the first of a cell's four children or -1; heads and
    following, the points of a leaf as a list; cells[:, 0..3], centre of mass, mass and width squared.

    Cost: O(n log n) for points that are spread.
    """
    n = x.shape[0]
    x0, y0 = x.min(), y.min()
    width = max(x.max() - x0, y.max() - y0) * 1.0001 + EPSILON
    corners = np.empty((first.shape[0], 3))
    corners[0, 0], corners[0, 1], corners[0, 2] = x0, y0, width
    first[0], heads[0] = -1, -1
    cells[0, :] = 0.0
    used = 1
    for p in range(n):
        cell, depth = 0, 0
        while True:
            cells[cell, 0] += mass[p] * x[p]
            cells[cell, 1] += mass[p] * y[p]
            cells[cell, 2] += mass[p]
            if first[cell] < 0:
                q = heads[cell]
                if q < 0 or depth >= DEPTH or used + 4 > first.shape[0]:
                    following[p] = q
                    heads[cell] = p
                    break
                first[cell] = used
                half = corners[cell, 2] / 2
                for c in range(4):
                    corners[used + c, 0] = corners[cell, 0] + half * (c & 1)
                    corners[used + c, 1] = corners[cell, 1] + half * (c >> 1)
                    corners[used + c, 2] = half
                    first[used + c], heads[used + c] = -1, -1
                    cells[used + c, :] = 0.0
                used += 4
                child = first[cell]
                if x[q] >= corners[cell, 0] + half:
                    child += 1
                if y[q] >= corners[cell, 1] + half:
                    child += 2
                heads[child], following[q] = q, -1
                heads[cell] = -1
                cells[child, 0], cells[child, 1] = mass[q] * x[q], mass[q] * y[q]
                cells[child, 2] = mass[q]
            half = corners[cell, 2] / 2
            child = first[cell]
            if x[p] >= corners[cell, 0] + half:
                child += 1
            if y[p] >= corners[cell, 1] + half:
                child += 2
            cell = child
            depth += 1
    for cell in range(used):
        if cells[cell, 2] > 0:
            cells[cell, 0] /= cells[cell, 2]
            cells[cell, 1] /= cells[cell, 2]
        cells[cell, 3] = corners[cell, 2] * corners[cell, 2]


@njit(cache=True, nogil=True)
def _repelled(p, x, y, mass, first, heads, following, cells, theta, far2, stack):  # type: ignore[no-untyped-def]
    """(fx, fy, stiffness) of the repulsion at a point of mass 1; `stack` is scratch."""
    fx, fy, stiff = 0.0, 0.0, 0.0
    px, py = x[p], y[p]
    stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        cell = stack[top]
        if first[cell] >= 0:
            dx, dy = px - cells[cell, 0], py - cells[cell, 1]
            d2 = dx * dx + dy * dy
            if cells[cell, 3] < theta * theta * d2:
                f = cells[cell, 2] / d2
                if d2 > far2:
                    f *= far2 / d2
                fx += f * dx
                fy += f * dy
                stiff += f
            else:
                for c in range(4):
                    if cells[first[cell] + c, 2] > 0:
                        stack[top] = first[cell] + c
                        top += 1
        else:
            q = heads[cell]
            while q >= 0:
                if q != p:
                    dx, dy = px - x[q], py - y[q]
                    d2 = dx * dx + dy * dy
                    if d2 < 1e-8:  # on the same spot: part in a direction that the numbers decide
                        angle = 2.399963 * min(p, q)
                        side = 1e-4 if p < q else -1e-4
                        dx, dy, d2 = side * math.cos(angle), side * math.sin(angle), 1e-8
                    f = mass[q] / d2
                    if d2 > far2:
                        f *= far2 / d2
                    fx += f * dx
                    fy += f * dy
                    stiff += f
                q = following[q]
    return fx, fy, stiff


@njit(cache=True, nogil=True)
def _capacity(n):  # type: ignore[no-untyped-def]
    """Cells of a tree. One of a single leaf, for few points, has all of them in a list: all pairs."""
    return 1 if n <= DIRECT else 8 * n + 64


@njit(cache=True, nogil=True)
def _repulsion(x, y, mass, theta, far2):  # type: ignore[no-untyped-def]
    n = x.shape[0]
    capacity = _capacity(n)
    first, heads = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    following, cells = np.empty(n, np.int32), np.empty((capacity, 4))
    stack = np.empty(4 * DEPTH + 8, np.int32)
    _build(x, y, mass, first, heads, following, cells)
    out = np.empty((n, 2))
    for p in range(n):
        out[p, 0], out[p, 1], _ = _repelled(p, x, y, mass, first, heads, following, cells, theta, far2, stack)
    return out


def repulsion(x: F64, y: F64, mass: F64, theta: float = THETA, far: float = FAR) -> F64:
    """The repulsion at each point, float64[n, 2]: sum over the others of mass/d, away from them, and of
    mass * far^2/d^3 beyond `far`. With theta 0 no cell is taken as one, and the sums are exact."""
    return np.asarray(_repulsion(*map(frozen, (x, y, mass)), theta, far * far))


@njit(cache=True, nogil=True)
def _relax(x, y, mass, offsets, neighbours, strengths, reach, n_steps, hot, cold, far):  # type: ignore[no-untyped-def]
    """Balance the forces, node by node. OUT: x, y.

    A node moves by its force over the stiffness of all that acts on it, which is Newton's step without
    the mixed terms, and at most by the temperature, which falls from `hot` to `cold`.
    """
    n = x.shape[0]
    capacity = _capacity(n)
    first, heads = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    following, cells = np.empty(n, np.int32), np.empty((capacity, 4))
    stack = np.empty(4 * DEPTH + 8, np.int32)
    far2 = far * far
    for step in range(n_steps):
        most = 0.0
        limit = hot * (cold / hot) ** (step / max(1, n_steps - 1))
        _build(x, y, mass, first, heads, following, cells)
        for p in range(n):
            fx, fy, stiff = _repelled(p, x, y, mass, first, heads, following, cells, THETA, far2, stack)
            fx, fy, stiff = fx * mass[p], fy * mass[p], stiff * mass[p]
            for i in range(offsets[p], offsets[p + 1]):
                q, s = neighbours[i], strengths[i]
                ax, ay = x[p] - x[q], y[p] - y[q]
                long = reach[i] + SHARE * (math.sqrt(mass[p]) + math.sqrt(mass[q]))
                over = (ax * ax + ay * ay) / (long * long)
                if over > 1:
                    s *= over
                fx -= s * ax
                fy -= s * ay
                stiff += s if over <= 1 else 3 * s
            dx, dy = fx / (stiff + EPSILON), fy / (stiff + EPSILON)
            length = math.sqrt(dx * dx + dy * dy)
            if length > limit:
                dx, dy = dx * limit / length, dy * limit / length
            most = max(most, length)
            x[p] += dx
            y[p] += dy
        if most < cold:
            break


# -- Levels ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _pairs(mass, offsets, neighbours, strengths, parents):  # type: ignore[no-untyped-def]
    """Merge nodes in pairs: neighbours first, then nodes that share a neighbour (the leaves of a star).
    OUT: parents, dense. The answer is how many there are."""
    n = mass.shape[0]
    degrees = offsets[1:] - offsets[:-1]
    order = np.argsort(degrees, kind="mergesort")
    parents[:] = -1
    count = 0
    for at in range(n):
        p = order[at]
        if parents[p] >= 0:
            continue
        best, most = -1, 0.0
        for i in range(offsets[p], offsets[p + 1]):
            q = neighbours[i]
            if parents[q] < 0 and q != p:
                pull = strengths[i] / (mass[p] * mass[q])
                if best < 0 or pull > most:
                    best, most = q, pull
        if best >= 0:
            parents[p] = count
            parents[best] = count
            count += 1
    for hub in range(n):
        waiting = -1
        for i in range(offsets[hub], offsets[hub + 1]):
            q = neighbours[i]
            if parents[q] < 0:
                if waiting < 0:
                    waiting = q
                elif q != waiting:
                    parents[waiting] = count
                    parents[q] = count
                    count += 1
                    waiting = -1
    for p in range(n):
        if parents[p] < 0:
            parents[p] = count
            count += 1
    return count


@njit(cache=True, nogil=True)
def _coarse(parents, count, mass, offsets, neighbours, strengths, reach):  # type: ignore[no-untyped-def]
    """(mass, offsets, neighbours, strengths, reach) of the merged graph; parallel edges are summed."""
    n = mass.shape[0]
    merged = np.zeros(count)
    members = np.full((count, 2), -1, np.int32)
    for p in range(n):
        merged[parents[p]] += mass[p]
        members[parents[p], 0 if members[parents[p], 0] < 0 else 1] = p
    ends = np.zeros(count + 1, np.int64)
    out = np.empty(neighbours.shape[0], np.int32)
    pulls, far = np.empty(neighbours.shape[0]), np.empty(neighbours.shape[0])
    place = np.full(count, -1, np.int64)
    m = 0
    for c in range(count):
        start = m
        for k in range(2):
            p = members[c, k]
            if p < 0:
                continue
            for i in range(offsets[p], offsets[p + 1]):
                d = parents[neighbours[i]]
                if d == c:
                    continue
                if place[d] < start:
                    place[d] = m
                    out[m], pulls[m], far[m] = d, strengths[i], reach[i]
                    m += 1
                else:
                    pulls[place[d]] += strengths[i]
                    far[place[d]] = max(far[place[d]], reach[i])
        ends[c + 1] = m
    return merged, ends, out[:m].copy(), pulls[:m].copy(), far[:m].copy()


@njit(cache=True, nogil=True)
def _springs(n, offsets, neighbours, weights):  # type: ignore[no-untyped-def]
    """(strengths, reach) of the edges: how strongly they pull, and the length that they easily have."""
    sums = np.zeros(n)
    for p in range(n):
        for i in range(offsets[p], offsets[p + 1]):
            sums[p] += weights[i]
    strengths, reach = np.empty(weights.shape[0]), np.empty(weights.shape[0])
    for p in range(n):
        for i in range(offsets[p], offsets[p + 1]):
            q = neighbours[i]
            strengths[i] = math.sqrt(weights[i] / min(sums[p], sums[q]))
            degree = max(offsets[p + 1] - offsets[p], offsets[q + 1] - offsets[q])
            reach[i] = 2 * SHARE * math.sqrt(degree)
    return strengths, reach


@njit(cache=True, nogil=True)
def _refined(x, y, parents, mass, offsets, neighbours, turn):  # type: ignore[no-untyped-def]
    """(x, y) of the nodes of a finer level: where their parent is, a little towards their neighbours.

    The two of a pair part in the direction of what they are linked to: a ring would be crossed otherwise.
    """
    n = parents.shape[0]
    finer_x, finer_y = np.empty(n), np.empty(n)
    for p in range(n):
        parent = parents[p]
        dx, dy = 0.0, 0.0
        for i in range(offsets[p], offsets[p + 1]):
            beside = parents[neighbours[i]]
            dx += x[beside] - x[parent]
            dy += y[beside] - y[parent]
        apart = 0.5 * math.sqrt(mass[p])
        length = math.sqrt(dx * dx + dy * dy)
        if length > apart:
            dx, dy = dx * apart / length, dy * apart / length
        angle = turn + 2.399963 * p
        finer_x[p] = x[parent] + dx + 0.2 * apart * math.cos(angle)
        finer_y[p] = y[parent] + dy + 0.2 * apart * math.sin(angle)
    return finer_x, finer_y


@njit(cache=True, nogil=True)
def _connected(offsets, neighbours, weights, seed):  # type: ignore[no-untyped-def]
    """(x, y) of a connected graph of at least two nodes, not yet scaled."""
    n = offsets.shape[0] - 1
    masses = [np.ones(n)]
    starts = [offsets]
    ends = [neighbours]
    strength, far = _springs(n, offsets, neighbours, weights)
    pulls = [strength]
    reaches = [far]
    above = [np.zeros(n, np.int32)]
    while masses[-1].shape[0] > COARSEST:
        parents = np.empty(masses[-1].shape[0], np.int32)
        count = _pairs(masses[-1], starts[-1], ends[-1], pulls[-1], parents)
        if count > 0.95 * parents.shape[0]:
            break
        mass, offset, neighbour, strength, far = _coarse(
            parents, count, masses[-1], starts[-1], ends[-1], pulls[-1], reaches[-1]
        )
        above.append(parents)
        masses.append(mass)
        starts.append(offset)
        ends.append(neighbour)
        pulls.append(strength)
        reaches.append(far)
    turn = 0.7 + 0.61803399 * (seed % 1000003)
    size = math.sqrt(n) * 0.6
    count = masses[-1].shape[0]
    x, y = np.empty(count), np.empty(count)
    for p in range(count):
        angle = turn + 2 * math.pi * p / count
        x[p], y[p] = size * math.cos(angle), size * math.sin(angle)
    level = len(masses) - 1
    while level >= 0:
        mass = masses[level]
        spacing = math.sqrt(n / mass.shape[0])
        n_steps = STEPS if mass.shape[0] <= LARGE else STEPS_LARGE
        if level == len(masses) - 1:
            n_steps = STEPS_FIRST
        hot = 2.0 * size if level == len(masses) - 1 else 3.0 * spacing
        limit = np.inf if level > 0 and mass.shape[0] <= UNFOLDED else FAR * spacing
        springs = starts[level], ends[level], pulls[level], reaches[level]
        _relax(x, y, mass, *springs, n_steps, hot, 0.02 * spacing, limit)
        if level > 0:
            x, y = _refined(x, y, above[level], masses[level - 1], starts[level - 1], ends[level - 1], turn)
        level -= 1
    return x, y


# -- Finish ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _nearest(x, y, order):  # type: ignore[no-untyped-def]
    """The distance of each point to the closest other. `order`: by x. Cost: about n sqrt(n)."""
    n = x.shape[0]
    out = np.full(n, np.inf)
    for a in range(n):
        p = order[a]
        best = np.inf
        for way in (-1, 1):
            b = a + way
            while 0 <= b < n:
                q = order[b]
                dx = x[q] - x[p]
                if dx * dx >= best:
                    break
                dy = y[q] - y[p]
                best = min(best, dx * dx + dy * dy)
                b += way
        out[p] = math.sqrt(best)
    return out


@njit(cache=True, nogil=True)
def _part(x, y, closest, n_rounds):  # type: ignore[no-untyped-def]
    """Move nodes apart that are closer than allowed, both by half of what lacks. OUT: x, y."""
    n = x.shape[0]
    for _ in range(n_rounds):
        order = np.argsort(x, kind="mergesort")
        moved = False
        for a in range(n):
            p = order[a]
            for b in range(a + 1, n):
                q = order[b]
                dx = x[q] - x[p]
                if dx >= closest:
                    break
                dy = y[q] - y[p]
                d2 = dx * dx + dy * dy
                if abs(dy) < closest and d2 < 0.98 * closest * closest:
                    d = math.sqrt(d2)
                    if d < 1e-6:
                        angle = 2.399963 * min(p, q)
                        dx, dy, d = 1e-6 * math.cos(angle), 1e-6 * math.sin(angle), 1e-6
                    f = 0.5 * (closest - d) / d
                    x[p] -= f * dx
                    y[p] -= f * dy
                    x[q] += f * dx
                    y[q] += f * dy
                    moved = True
        if not moved:
            break


@njit(cache=True, nogil=True)
def _finish(x, y):  # type: ignore[no-untyped-def]
    """Scale to a typical distance of 1, part what is too close, lay the long side flat, centre. OUT: x, y."""
    n = x.shape[0]
    scale = np.median(_nearest(x, y, np.argsort(x, kind="mergesort"))) + EPSILON
    x /= scale
    y /= scale
    _part(x, y, CLOSEST, 20)
    x -= x.mean()
    y -= y.mean()
    xx, yy, xy = (x * x).sum(), (y * y).sum(), (x * y).sum()
    angle = 0.5 * math.atan2(2 * xy, xx - yy)
    cos, sin = math.cos(angle), math.sin(angle)
    for p in range(n):
        x[p], y[p] = cos * x[p] + sin * y[p], cos * y[p] - sin * x[p]
    x -= (x.min() + x.max()) / 2
    y -= (y.min() + y.max()) / 2


@njit(cache=True, nogil=True)
def _each(firsts, offsets, neighbours, weights, seed, out):  # type: ignore[no-untyped-def]
    """Lay out each of the connected parts `firsts[i] : firsts[i + 1]`. OUT: out."""
    for part in range(firsts.shape[0] - 1):
        a, b = firsts[part], firsts[part + 1]
        n = b - a
        if n <= 1:
            out[a:b] = 0.0
        elif n == 2:
            out[a, 0], out[a, 1], out[a + 1, 0], out[a + 1, 1] = -0.5, 0.0, 0.5, 0.0
        else:
            low, high = offsets[a], offsets[b]
            near = neighbours[low:high] - np.int32(a)
            x, y = _connected(offsets[a : b + 1] - low, near, weights[low:high].copy(), seed)
            _finish(x, y)
            for p in range(n):
                out[a + p, 0], out[a + p, 1] = x[p], y[p]


def layouts(n: int, left: I32, right: I32, weights: NDArray[Any], seed: int = 0) -> tuple[F32, I32]:
    """(places float32[n, 2], part int32[n]): each connected part drawn for itself, around (0, 0).

    The part of a node is its smallest member. Weights are positive; repeated edges add up. One call for
    any number of parts: twenty thousand of two nodes cost milliseconds.
    """
    parts = components(n, left, right)
    order = np.argsort(parts, kind="stable")
    rank = np.empty(n, np.int32)
    rank[order] = np.arange(n, dtype=np.int32)
    firsts = np.append(np.flatnonzero(np.diff(parts[order], prepend=-1)), n).astype(np.int64)
    pulls = np.asarray(weights, np.float64)
    pulls = np.maximum(pulls, 1e-3 * np.max(pulls, initial=0.0) + EPSILON)
    adjacent = adjacency(n, frozen(rank[left]), frozen(rank[right]), frozen(pulls))
    placed = np.zeros((n, 2), np.float32)
    _each(frozen(firsts), *map(frozen, adjacent), seed, placed)
    out = np.empty_like(placed)
    out[order] = placed
    return out, parts


def layout(n: int, left: I32, right: I32, weights: NDArray[Any], seed: int = 0) -> F32:
    """A place for each node: float32[n, 2]. Parts that are not connected lie beside each other.

    10,000 nodes with 30,000 edges take about a second.
    """
    places, parts = layouts(n, left, right, weights, seed)
    members, at = np.unique(parts, return_inverse=True)
    if len(members) > 1:
        radii = np.zeros(len(members))
        np.maximum.at(radii, at, np.hypot(places[:, 0], places[:, 1]))
        places += packed(radii + GAP / 2)[at]
    return places


def warm_up() -> None:
    n = DIRECT + 20
    ends = np.arange(n - 1, dtype=np.int32), np.arange(1, n, dtype=np.int32)
    layout(n + 3, *ends, np.ones(n - 1))
    repulsion(np.arange(3.0), np.arange(3.0), np.ones(3))
