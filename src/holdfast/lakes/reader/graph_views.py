"""The join graph of a lake as the page shows it: the components, then one of them, then a cluster of it.

Places are worked out for what is shown, when it is shown (`drawing.py`); of many links the best are sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.errors import UsageError
from holdfast.lakes.answers import (
    LakeCluster,
    LakeClusters,
    LakeComponent,
    LakeComponents,
    LakeEdges,
    LakeGraph,
    LakeNodes,
)
from holdfast.lakes.graph.drawing import JoinGraph, Links
from holdfast.lakes.reader.catalogue import I32, LakeCatalogue
from holdfast.lakes.reader.joins import rounded_scores
from holdfast.lakes.reader.pages import arrow

_LINKS_AT_ONCE = 100_000


class GraphViews:
    """The views of a lake's graph; a lake without one has no components."""

    def __init__(self, catalogue: LakeCatalogue) -> None:
        self._catalogue = catalogue
        self.graph = JoinGraph(catalogue.root, catalogue.state)

    def components(self, limit: int) -> LakeComponents:
        """The largest components."""
        circles, n_inds = self.graph.overview(limit)
        columns = (circles.sizes, n_inds), (circles.places[:, 0], circles.places[:, 1], circles.radii)
        counts, places = ([column.tolist() for column in part] for part in columns)
        n = len(circles.sizes)
        listed = zip(range(n), *counts, self._names(circles.hubs), *places, strict=True)
        return LakeComponents(tuple(LakeComponent(*c) for c in listed), self.graph.n_components - n)

    def component(self, component: int, max_edges: int) -> LakeGraph | LakeClusters:
        """The tables of a component and their best links; of a large one its clusters and theirs."""
        self._check(component)
        subgraph = self.graph.component(component)
        name = self._hub(component)
        if subgraph.labels is None:
            return self._drawn(component, None, name, max_edges)
        circles, (left, right, counts) = self.graph.clusters(component)
        places = [c.tolist() for c in (circles.places[:, 0], circles.places[:, 1], circles.radii)]
        sizes, hubs = circles.sizes.tolist(), self._names(circles.hubs)
        listed = zip(range(len(sizes)), sizes, hubs, *places, strict=True)
        links = zip(left.tolist(), right.tolist(), counts.tolist(), strict=True)
        clusters = tuple(LakeCluster(*c) for c in listed)
        return LakeClusters(component, name, len(subgraph.tables), clusters, tuple(links))

    def cluster(self, component: int, cluster: int, max_edges: int) -> LakeGraph:
        """The tables of a cluster of a component and the best links among them."""
        self._check(component)
        subgraph = self.graph.component(component)
        n = 0 if subgraph.labels is None else int(subgraph.labels.max()) + 1
        if not 0 <= cluster < n:
            raise UsageError(f"component {component} of the lake has no cluster {cluster}.")
        hub = self.graph.clusters(component)[0].hubs[cluster]
        return self._drawn(component, cluster, self._names([hub])[0], max_edges)

    def cluster_of(self, table: int) -> int | None:
        """The cluster of a table; None where its component has none, or where it is in no component."""
        component = int(self.graph.component_of[table])
        if component < 0 or not self.graph.is_clustered(component):
            return None
        subgraph = self.graph.component(component)
        assert subgraph.labels is not None
        return int(subgraph.labels[np.searchsorted(subgraph.tables, table)])

    def edges(self) -> Iterator[pa.RecordBatch]:
        """All links between tables: numbers and names, inclusions, score."""
        links = self.graph.links()
        for start in range(0, len(links), _LINKS_AT_ONCE):
            some = links.only(slice(start, start + _LINKS_AT_ONCE))
            names = ["dep_table", "ref_table", "dependent", "referenced", "n_inds", "score"]
            ends = [self._catalogue.names_of(end) for end in (some.dep, some.ref)]
            score = arrow(rounded_scores(some.score))
            columns = [arrow(some.dep), arrow(some.ref), *ends, arrow(some.n_inds), score]
            yield from pa.table(columns, names=names).to_batches()

    def _drawn(self, component: int, cluster: int | None, name: str, max_edges: int) -> LakeGraph:
        if max_edges < 0:
            raise UsageError(f"cannot draw {max_edges} links. Expected 0 or more.")
        subgraph, places = self.graph.places(component, cluster)
        tables = subgraph.tables
        nodes = LakeNodes(
            tables.tolist(),
            self._names(tables),
            *(column.tolist() for column in (places[:, 0], places[:, 1], subgraph.degrees)),
        )
        edges = _listed(tables, subgraph.links, max_edges)
        return LakeGraph(component, cluster, name, len(tables), nodes, edges, len(subgraph.links))

    def _hub(self, component: int) -> str:
        return self._names(self.graph.overview(component + 1)[0].hubs[component:])[0]

    def _check(self, component: int) -> None:
        n = self.graph.n_components
        if not 0 <= component < n:
            extent = f"numbers go from 0 to {n - 1}" if n else "no two of its tables are linked"
            raise UsageError(
                f"the lake (version {self._catalogue.version}) has no component {component}: {extent}."
            )

    def _names(self, tables: NDArray[Any] | list[Any]) -> list[str]:
        return self._catalogue.name_list(np.asarray(tables, np.int64))


def _listed(tables: I32, links: Links, limit: int) -> LakeEdges:
    """At most so many links, best first; each table's best link comes before second ones of others."""
    ends = [np.searchsorted(tables, end).astype(np.int64) for end in (links.dep, links.ref)]
    strongest = _strongest([*ends, rounded_scores(links.score), links.n_inds.astype(np.int64)], limit)
    start, end, score, n_inds = (column.tolist() for column in strongest)
    return LakeEdges(start, end, score, n_inds)


def _strongest(edges: list[NDArray[Any]], limit: int) -> list[NDArray[Any]]:
    """At most `limit` edges (from, to, score, inclusions), by falling score; first, each table's best one."""
    order = np.lexsort((edges[1], edges[0], -edges[2]))
    if len(order) > limit:
        best = np.zeros(len(order), np.bool_)
        for end in edges[:2]:
            best[np.unique(end[order], return_index=True)[1]] = True
        rank = np.argsort(~best, kind="stable")[:limit]
        order = order[np.sort(rank)]
    return [column[order] for column in edges]
