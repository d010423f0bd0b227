"""Graphs in plain Python: the slow reference of graph_parts.py and graph_layout.py."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Edge = tuple[int, int]


def components(n: int, edges: Sequence[Edge]) -> list[int]:
    """The smallest node that can be reached from each node."""
    labels = list(range(n))
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            low = min(labels[a], labels[b])
            if labels[a] != low or labels[b] != low:
                labels[a] = labels[b] = low
                changed = True
    return labels


def forest(n: int, edges: Sequence[Edge]) -> list[Edge]:
    """The edges whose ends the edges before them do not join."""
    return [(a, b) for i, (a, b) in enumerate(edges) if (labels := components(n, edges[:i]))[a] != labels[b]]


def communities(
    n: int, edges: Sequence[Edge], steps: Sequence[int], seed: int, largest: int, smallest: int
) -> list[int]:
    """Louvain with bounded sizes, step by step as the law of the kernel says; weights are whole numbers."""
    groups = [[i] for i in range(n)]  # by community
    rng = np.random.default_rng(seed)
    total = float(2 * sum(steps))

    def weights_between() -> list[dict[int, int]]:
        of = {node: c for c, nodes in enumerate(groups) for node in nodes}
        between: list[dict[int, int]] = [{} for _ in groups]
        for (a, b), w in zip(edges, steps, strict=True):
            x, y = of[a], of[b]
            between[x][y] = between[x].get(y, 0) + w
            between[y][x] = between[y].get(x, 0) + w
        return between  # the weight inside a community counts twice

    def merged(parents: Sequence[int]) -> list[list[int]]:
        return [
            [node for c, p in enumerate(parents) if p == root for node in groups[c]]
            for root in sorted(set(parents))
        ]

    for _ in range(20 if total else 0):
        between = weights_between()
        k = len(groups)
        degrees = [sum(told.values()) for told in between]
        labels = list(range(k))
        order = rng.permutation(k).tolist()
        ever = False
        for _ in range(20):
            moved = False
            for node in order:
                own = labels[node]
                towards: dict[int, int] = {}
                for other, w in between[node].items():
                    if other != node:
                        towards[labels[other]] = towards.get(labels[other], 0) + w
                gains = {}
                for c in {own, *towards}:
                    there = [o for o in range(k) if o != node and labels[o] == c]
                    if c == own or sum(len(groups[o]) for o in [node, *there]) <= largest:
                        inside = sum(degrees[o] for o in there)
                        gains[c] = float(towards.get(c, 0)) - float(degrees[node]) * float(inside) / total
                better = [(-gain, c) for c, gain in gains.items() if gain > gains[own]]
                if better:
                    labels[node] = min(better)[1]
                    moved = ever = True
            if not moved:
                break
        if not ever:
            break
        groups = merged(labels)

    for _ in range(20):
        between = weights_between()
        parents = list(range(len(groups)))
        sizes = [len(nodes) for nodes in groups]

        def root(c: int, parents: list[int] = parents) -> int:
            while parents[c] != c:
                c = parents[c]
            return c

        joined = False
        for node in sorted(range(len(groups)), key=lambda c: (len(groups[c]), c)):
            if parents[node] != node or sizes[node] >= smallest:
                continue
            towards = {}
            for other, w in between[node].items():
                if other != node:
                    towards[root(other)] = towards.get(root(other), 0) + w
            fitting = [(-w, c) for c, w in towards.items() if c != node and sizes[c] + sizes[node] <= largest]
            if fitting:
                best = min(fitting)[1]
                parents[node] = best
                sizes[best] += sizes[node]
                joined = True
        if not joined:
            break
        groups = merged([root(c) for c in range(len(groups))])

    between = weights_between()
    beside = [
        min(((-w, c) for c, w in told.items() if c != node), default=(0, -1))[1]
        for node, told in enumerate(between)
    ]
    parents = list(range(len(groups)))
    first = -1
    small = [c for c in range(len(groups)) if len(groups[c]) < smallest]
    filled = 0
    for c in sorted(small, key=lambda c: (beside[c], c)):
        if first >= 0 and beside[c] == beside[first] and filled + len(groups[c]) <= largest:
            parents[c] = first
            filled += len(groups[c])
        else:
            first, filled = c, len(groups[c])
    groups = merged(parents)
    groups.sort(key=lambda nodes: (-len(nodes), min(nodes)))
    out = [0] * n
    for c, nodes in enumerate(groups):
        for node in nodes:
            out[node] = c
    return out


def repulsion(
    points: Sequence[tuple[float, float]], masses: Sequence[float], far: float
) -> list[list[float]]:
    """The sum over all other points of mass/d, away from them; beyond `far`, of mass far^2/d^3."""
    out = []
    for i, (x, y) in enumerate(points):
        fx = fy = 0.0
        for j, (u, v) in enumerate(points):
            if i != j:
                d = math.hypot(x - u, y - v)
                f = masses[j] / d if d <= far else masses[j] * far**2 / d**3
                fx += f * (x - u) / d
                fy += f * (y - v) / d
        out.append([fx, fy])
    return out


def overlap(places: Sequence[Sequence[float]], radii: Sequence[float]) -> float:
    """By how much two of the circles overlap at most, over the smaller radius; 0 if none do."""
    return max(
        (
            (radii[i] + radii[j] - math.hypot(places[i][0] - places[j][0], places[i][1] - places[j][1]))
            / min(radii[i], radii[j])
            for i in range(len(radii))
            for j in range(i)
        ),
        default=0.0,
    )
