"""The join graph of a lake, drawn when somebody looks: the components, one of them, a cluster of one.

A commit stores the component of each table and its inclusions (`components.py`). Links lie in files, where a
pair of tables may occur in several; what is drawn are the links of one component, merged. Everything depends
on the links alone, not on how files divide them, so what is drawn twice is drawn alike.

Cost: a pass over the link files for a component, and the layout of what is shown. Memory: the links of a
component.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.root import Root
from holdfast.lakes.graph.links import live_links, weigh
from holdfast.lakes.state import LakeState, live_tables, open_array

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Key = TypeVar("Key")
Drawn = TypeVar("Drawn")

# A component of more tables is drawn as clusters, none of which has more.
CLUSTERED = 10_000
# Links per table that decide its place, beside a spanning forest of the strongest.
LINKS_PER_TABLE = 4
SEED = 1
GAP = 0.3  # between circles, of the radius of a circle for one table
FILLED = 0.9  # of a circle's radius: neighbours do not touch
# Views that are remembered: going back and forth is at once.
VIEWS = 8


@dataclass(frozen=True, slots=True)
class Links:
    """Links between tables, one for each ordered pair, best first: int32[n], and float32[n] scores."""

    dep: I32
    ref: I32
    n_inds: I32
    score: F32

    def __len__(self) -> int:
        return len(self.dep)

    def only(self, chosen: NDArray[Any] | slice) -> Links:
        return Links(self.dep[chosen], self.ref[chosen], self.n_inds[chosen], self.score[chosen])

    @classmethod
    def merged(cls, dep: I32, ref: I32, n_inds: I32, score: F32) -> Links:
        """Of links among which a pair may occur again: inclusions are added, the better score counts."""
        key = (dep.astype(np.int64) << 32) | ref
        order = np.argsort(key, kind="stable")
        firsts = np.flatnonzero(np.diff(key[order], prepend=-1))
        totals = _reduced(np.add, n_inds[order].astype(np.int64), firsts)
        best = _reduced(np.maximum, score[order], firsts)
        key = key[order[firsts]]
        most = np.minimum(totals, np.iinfo(np.int32).max).astype(np.int32)
        links = cls((key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32), most, best)
        return links.only(np.argsort(-best, kind="stable"))

    def undirected(self) -> tuple[I32, I32, F32]:
        """(left, right, score) with left < right, one per pair, ascending, the better score of the two."""
        low, high = np.minimum(self.dep, self.ref).astype(np.int64), np.maximum(self.dep, self.ref)
        key = (low << 32) | high
        order = np.argsort(key, kind="stable")
        firsts = np.flatnonzero(np.diff(key[order], prepend=-1))
        pairs = key[order[firsts]]
        best = _reduced(np.maximum, self.score[order], firsts)
        return (pairs >> 32).astype(np.int32), (pairs & 0xFFFFFFFF).astype(np.int32), best


@dataclass(frozen=True, slots=True)
class Circles:
    """Components, or clusters of one: sizes, hubs int32[n], places float32[n, 2], radii float64[n]."""

    sizes: I64
    hubs: I32
    places: F32
    radii: F64

    def only(self, some: slice) -> Circles:
        return Circles(self.sizes[some], self.hubs[some], self.places[some], self.radii[some])


@dataclass(frozen=True, slots=True)
class Component:
    """The tables of a component, ascending, with their degrees and links; `labels` are their clusters."""

    tables: I32
    degrees: I32
    links: Links
    labels: I32 | None  # None where it is drawn whole


class JoinGraph:
    """The graph of a lake at one version. Several threads may ask at the same time."""

    def __init__(self, root: Root, state: LakeState) -> None:
        self._root, self._state = root, state
        self._components: dict[int, Component] = {}
        self._circles: dict[int, tuple[Circles, tuple[I32, I32, I64]]] = {}
        self._places: dict[tuple[int, int | None], tuple[Component, F32]] = {}

    @cached_property
    def component_of(self) -> I32:
        """The component of each table, -1 for those without: int32[next_table]."""
        graph = self._state.graph
        for ref in graph.files.get("components", ()) if graph is not None else ():
            return open_array(self._root, ref)
        return np.full(self._state.next_table, -1, np.int32)

    @cached_property
    def weights(self) -> I64:
        """Inclusions by dependent table, and by referenced table those in another: int64[2, next_table]."""
        graph = self._state.graph
        for ref in graph.files.get("weights", ()) if graph is not None else ():
            return open_array(self._root, ref)
        # Of a lake of an older format.
        weights = np.zeros((2, self._state.next_table), np.int64)
        for dep, ref_, n_inds, _ in live_links(self._root, self._state.links, self._dead):
            weigh(weights, dep, ref_, n_inds)
        return weights

    @cached_property
    def _dead(self) -> Bool:
        return ~live_tables(self._root, self._state)

    @cached_property
    def _members(self) -> tuple[I32, I64]:
        """(tables by component, ascending in each; where each component begins, and the end)."""
        linked = np.flatnonzero(self.component_of >= 0)
        numbers = self.component_of[linked]
        tables: I32 = linked[np.argsort(numbers, kind="stable")].astype(np.int32)
        return tables, np.append(0, np.cumsum(np.bincount(numbers))).astype(np.int64)

    @property
    def n_components(self) -> int:
        return len(self._members[1]) - 1

    def is_clustered(self, component: int) -> bool:
        """Whether a component has too many tables to be drawn whole."""
        starts = self._members[1]
        return bool(starts[component + 1] - starts[component] > CLUSTERED)

    def overview(self, limit: int) -> tuple[Circles, I64]:
        """The largest components as circles beside each other, the largest in the middle; inclusions."""
        from holdfast.lakes.kernels.circles import packed

        tables, starts = self._members
        n = min(limit, len(starts) - 1)
        sizes = np.diff(starts[: n + 1])
        some = tables[: starts[n]]
        groups = np.repeat(np.arange(n), sizes)
        radii = np.sqrt(sizes)
        weight = self.weights.sum(axis=0)[some]
        circles = Circles(sizes, some[_hubs(groups, weight, n)], packed(radii + GAP / 2), radii)
        return circles, np.bincount(groups, self.weights[0, some], n).astype(np.int64)

    def links(self, component: int | None = None) -> Links:
        """The links of a component, or of all."""
        parts: list[list[NDArray[Any]]] = [[], [], [], []]
        for batch in live_links(self._root, self._state.links, self._dead):
            inside = batch[0] != batch[1]
            if component is not None:
                inside &= self.component_of[batch[0]] == component
            for part, column in zip(parts, batch, strict=True):
                part.append(column[inside])
        types = (np.int32, np.int32, np.int32, np.float32)
        whole = [np.concatenate([np.empty(0, t), *p]) for t, p in zip(types, parts, strict=True)]
        return Links.merged(*whole)

    def component(self, component: int) -> Component:
        """The tables of a component, their links, and their clusters if they are many."""
        return _remembered(self._components, component, lambda: self._component(component))

    def _component(self, component: int) -> Component:
        tables, starts = self._members
        members = tables[starts[component] : starts[component + 1]]
        links = self.links(component)
        left, right, _ = links.undirected()
        ends = np.searchsorted(members, np.concatenate([left, right]))
        degrees = np.bincount(ends, minlength=len(members)).astype(np.int32)
        if not self.is_clustered(component):
            return Component(members, degrees, links, None)
        from holdfast.lakes.kernels.graph_parts import communities

        strongest = _strongest_of(members, links)
        labels = communities(len(members), *strongest, SEED, largest=max(2, CLUSTERED // 2))
        return Component(members, degrees, links, labels)

    def clusters(self, component: int) -> tuple[Circles, tuple[I32, I32, I64]]:
        """The clusters of a great component, and how many links there are between them: (left, right, n)."""
        return _remembered(self._circles, component, lambda: self._clusters(component))

    def _clusters(self, component: int) -> tuple[Circles, tuple[I32, I32, I64]]:
        from holdfast.lakes.kernels.circles import apart
        from holdfast.lakes.kernels.graph_layout import layout

        subgraph = self.component(component)
        assert subgraph.labels is not None
        sizes = np.bincount(subgraph.labels)
        k = len(sizes)
        links = subgraph.links
        ends = [subgraph.labels[np.searchsorted(subgraph.tables, end)] for end in (links.dep, links.ref)]
        a, b = (end[ends[0] != ends[1]].astype(np.int64) for end in ends)
        keys, counts = np.unique(np.minimum(a, b) * k + np.maximum(a, b), return_counts=True)
        left, right = (keys // k).astype(np.int32), (keys % k).astype(np.int32)
        ties = counts / np.minimum(sizes[left], sizes[right])
        rough = layout(k, left, right, ties, SEED) if k > 1 else np.zeros((1, 2), np.float32)
        radii = np.sqrt(sizes)
        hubs = subgraph.tables[_hubs(subgraph.labels, subgraph.degrees, k)]
        circles = Circles(sizes, hubs, apart(rough, radii + GAP * np.sqrt(radii)), radii)
        return circles, (left, right, counts)

    def places(self, component: int, cluster: int | None = None) -> tuple[Component, F32]:
        """The tables of a component, or of a cluster of it, and their places around its middle."""
        return _remembered(self._places, (component, cluster), lambda: self._placed(component, cluster))

    def _placed(self, component: int, cluster: int | None) -> tuple[Component, F32]:
        from holdfast.lakes.kernels.graph_layout import layout

        subgraph = self.component(component)
        if cluster is not None:
            assert subgraph.labels is not None
            inside = subgraph.labels == cluster
            tables = subgraph.tables[inside]
            ends = (np.isin(end, tables) for end in (subgraph.links.dep, subgraph.links.ref))
            links = subgraph.links.only(np.logical_and(*ends))
            subgraph = Component(tables, subgraph.degrees[inside], links, None)
        drawn = layout(len(subgraph.tables), *_strongest_of(subgraph.tables, subgraph.links), SEED)
        if cluster is not None:  # it need not be connected
            drawn = drawn - (drawn.min(axis=0) + drawn.max(axis=0)) / 2
        return subgraph, drawn

    def whole(self) -> F64:
        """Where each table stands in one drawing of all: float64[next_table, 2], NaN without links."""
        from holdfast.lakes.kernels.graph_layout import layouts

        placed = np.full((self._state.next_table, 2), np.nan)
        circles, _ = self.overview(self.n_components)
        tables, starts = self._members
        n_great = int((circles.sizes > CLUSTERED).sum())  # they come first
        for c in range(n_great):
            inner, _ = self.clusters(c)
            drawn = [self.places(c, cluster) for cluster in range(len(inner.sizes))]
            members = np.concatenate([part.tables for part, _ in drawn])
            points = _in_circles(np.concatenate([at for _, at in drawn]), inner)
            placed[members] = _in_circles(points, circles.only(slice(c, c + 1)))
        small = circles.only(slice(n_great, None))
        members = tables[starts[n_great] :]
        position = np.full(self._state.next_table, -1, np.int32)
        position[members] = np.arange(len(members), dtype=np.int32)
        left, right, score = self.links().undirected()
        here = position[left] >= 0
        groups = np.repeat(np.arange(len(small.sizes), dtype=np.int32), small.sizes)
        chosen = _strongest(groups, position[left[here]], position[right[here]], score[here])
        placed[members] = _in_circles(layouts(len(members), *chosen, SEED)[0], small)
        return placed


def _in_circles(points: NDArray[Any], circles: Circles) -> F64:
    """Points around 0, those of a circle behind each other, as points in their circles."""
    groups = np.repeat(np.arange(len(circles.sizes)), circles.sizes)
    reach = np.zeros(len(circles.sizes))
    np.maximum.at(reach, groups, np.hypot(points[:, 0], points[:, 1]))
    factors = np.divide(FILLED * circles.radii, reach, out=np.ones(len(reach)), where=reach > 0)
    scaled: F64 = points * factors[groups, None] + circles.places[groups]
    return scaled


def _remembered(views: dict[Key, Drawn], key: Key, make: Callable[[], Drawn]) -> Drawn:
    """What was made for a key, or is now; the oldest goes."""
    view = views.get(key)
    if view is None:
        view = make()
        while len(views) >= VIEWS:
            views.pop(next(iter(views)), None)
        views[key] = view
    return view


def _hubs(groups: NDArray[Any], weights: NDArray[Any], n_groups: int) -> I64:
    """The position of the greatest weight of each group, the first of several."""
    order = np.lexsort((np.arange(len(groups)), -weights, groups))
    hubs: I64 = order[np.searchsorted(groups[order], np.arange(n_groups))]
    return hubs


def _reduced(ufunc: np.ufunc, values: NDArray[Any], firsts: I64) -> NDArray[Any]:
    """`reduceat`, which refuses to reduce nothing."""
    return ufunc.reduceat(values, firsts) if len(firsts) else values


def _strongest(groups: I32, left: I32, right: I32, score: F32) -> tuple[I32, I32, F32]:
    """The links that decide places: a spanning forest of the best, and the best few per table of a group.

    IN groups int32[n], of each position; links between positions of one group, by (left, right), which
    decides among equal scores.
    """
    from holdfast.lakes.kernels.graph_parts import spanning

    group_of = groups[left]
    order = np.lexsort((-score, group_of))
    group_of = group_of[order]
    rank = np.arange(len(order)) - np.searchsorted(group_of, group_of)
    strong = rank < LINKS_PER_TABLE * np.bincount(groups, minlength=1)[group_of]
    if not strong.all():
        strong |= spanning(len(groups), left[order], right[order])
    return left[order[strong]], right[order[strong]], score[order[strong]]


def _strongest_of(tables: I32, links: Links) -> tuple[I32, I32, F32]:
    """Those of one group: the tables, ascending."""
    left, right, score = links.undirected()
    a, b = (np.searchsorted(tables, end).astype(np.int32) for end in (left, right))
    return _strongest(np.zeros(len(tables), np.int32), a, b, score)
