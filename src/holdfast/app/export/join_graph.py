"""The join graph of a lake as `graphs.py` writes it: the tables that join with others, and the joins.

All tables get a place in one drawing, each component in its own circle. Memory: the joins, and some numbers
for each table of the lake.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from holdfast.app.export.graphs import GraphEdge, GraphNode
from holdfast.errors import UsageError
from holdfast.lakes.reader.joins import reaches, rounded_scores
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.reader.pages import arrow, numbers

_AT_ONCE = 10_000  # rows that are Python objects at the same time


class ExportedGraph:
    """Joins of a lake, all or only those of a component or of a least score; and the tables at their ends."""

    def __init__(self, lake: LakeReader, component: int | None = None, min_score: float = 0.0) -> None:
        n = lake.graph.n_components
        if component is not None and not 0 <= component < n:
            range_text = f"numbers go from 0 to {n - 1:,}" if n else "no two of its tables are linked"
            raise UsageError(
                f"the lake (version {lake.version}) has no component {component:,}: {range_text}."
            )
        self._lake = lake
        joins = lake.graph.links(component)
        joins = joins.only(np.flatnonzero(reaches(rounded_scores(joins.score), min_score)))
        order = np.lexsort((joins.ref, joins.dep, -joins.score, lake.graph.component_of[joins.dep]))
        self._joins = joins.only(order)
        self._joined = np.zeros(lake.state.next_table, np.bool_)
        self._joined[joins.dep] = self._joined[joins.ref] = True
        self.n_joins, self.n_tables = len(joins), int(self._joined.sum())

    def edges(self) -> Iterator[GraphEdge]:
        for start in range(0, len(self._joins), _AT_ONCE):
            some = self._joins.only(slice(start, start + _AT_ONCE))
            columns = (some.dep, some.ref, some.n_inds, rounded_scores(some.score))
            yield from map(GraphEdge, *(column.tolist() for column in columns))

    def nodes(self) -> Iterator[GraphNode]:
        places = self._lake.graph.whole()
        names = ("table", "name", "n_rows", "n_columns", "component")
        for batch in self._lake.nodes():
            joined = batch.take(arrow(np.flatnonzero(self._joined[numbers(batch.column("table"))])))
            for start in range(0, len(joined), _AT_ONCE):
                some = joined.slice(start, _AT_ONCE)
                x, y = places[numbers(some.column("table"))].T.tolist()
                yield from map(GraphNode, *(some.column(name).to_pylist() for name in names), x, y)
