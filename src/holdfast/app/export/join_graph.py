"""The join graph of a lake as `graphs.py` writes it: the tables that are linked, and the links.

All tables get a place in one drawing, each component in its own circle. Memory: the links, and some numbers
for each table of the lake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from holdfast.app.export.graphs import GraphEdge, GraphNode
from holdfast.errors import UsageError
from holdfast.lakes.reader.joins import reaches, rounded_scores
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.reader.pages import arrow, numbers

_AT_ONCE = 10_000  # rows that are Python objects at the same time


class ExportedGraph:
    """Links of a lake, all or only those of a component or of a least score; and the tables at their ends."""

    def __init__(self, lake: LakeReader, component: int | None = None, min_score: float = 0.0) -> None:
        n = lake.graph.n_components
        if component is not None and not 0 <= component < n:
            known = f"numbers go from 0 to {n - 1:,}" if n else "no two of its tables are linked"
            raise UsageError(f"the lake (version {lake.version}) has no component {component:,}: {known}.")
        self._lake = lake
        links = lake.graph.links(component)
        links = links.only(np.flatnonzero(reaches(rounded_scores(links.score), min_score)))
        order = np.lexsort((links.ref, links.dep, -links.score, lake.graph.component_of[links.dep]))
        self._links = links.only(order)
        self._linked = np.zeros(lake.state.next_table, np.bool_)
        self._linked[links.dep] = self._linked[links.ref] = True
        self.n_links, self.n_tables = len(links), int(self._linked.sum())

    def edges(self) -> Iterator[GraphEdge]:
        for start in range(0, len(self._links), _AT_ONCE):
            some = self._links.only(slice(start, start + _AT_ONCE))
            columns = (some.dep, some.ref, some.n_inds, rounded_scores(some.score))
            yield from map(GraphEdge, *(column.tolist() for column in columns))

    def nodes(self) -> Iterator[GraphNode]:
        places = self._lake.graph.whole()
        names = ("table", "name", "n_rows", "n_columns", "component")
        for batch in self._lake.nodes():
            own = batch.take(arrow(np.flatnonzero(self._linked[numbers(batch.column("table"))])))
            for some in _slices(own):
                x, y = places[numbers(some.column("table"))].T.tolist()
                yield from map(GraphNode, *(some.column(name).to_pylist() for name in names), x, y)


def _slices(rows: Any) -> Iterator[Any]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows.slice(start, _AT_ONCE)
