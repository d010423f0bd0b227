"""The join graph of a lake as `graphs.py` writes it: the tables that are linked, and the links.

The files of a lake give each table a place in its component, or in its cluster of it; here all of them get a
place in one drawing, each component in its own circle.

Links are read twice, a piece at a time: first for the tables at their ends, then to be written. Memory: some
numbers for each table of the lake.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.app.export.graphs import GraphEdge, GraphNode
from holdfast.errors import UsageError
from holdfast.lakes.reader.joins import reaches, rounded_scores
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.reader.pages import RowGroups, arrow, numbers

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

_AT_ONCE = 10_000  # rows that are Python objects at the same time
_FILLED = 0.9  # of a circle's radius: neighbours do not touch
_CIRCLE = ("x", "y", "r")


class JoinGraph:
    """Links of a lake, all or only those of a component or of a least score; and the tables at their ends."""

    def __init__(
        self, root: Path, lake: LakeReader, component: int | None = None, min_score: float = 0.0
    ) -> None:
        graph = lake.state.graph
        n = graph.n_components if graph else 0
        if component is not None and not 0 <= component < n:
            known = f"numbers go from 0 to {n - 1:,}" if n else "no two of its tables are linked"
            raise UsageError(f"the lake (version {lake.version}) has no component {component:,}: {known}.")
        self._lake = lake
        self._files = {name: RowGroups(root, refs) for name, refs in graph.files.items()} if graph else {}
        self._component, self._min_score = component, min_score
        self._linked: Bool = np.zeros(lake.state.next_table, np.bool_)
        self.n_links = 0
        for rows in self._links():
            for end in ("dep_table", "ref_table"):
                self._linked[numbers(rows.column(end))] = True
            self.n_links += len(rows)
        self.n_tables = int(self._linked.sum())

    def _links(self) -> Iterator[pa.Table]:
        for rows in self._pieces("edges", ("component", "dep_table", "ref_table", "n_inds", "score")):
            scores = rounded_scores(numbers(rows.column("score")))
            kept = reaches(scores, self._min_score)
            if self._component is not None:
                kept &= numbers(rows.column("component")) == self._component
            if kept.any():
                at = rows.column_names.index("score")
                yield _where(rows.set_column(at, "score", arrow(scores)), kept)

    def edges(self) -> Iterator[GraphEdge]:
        names = ("dep_table", "ref_table", "n_inds", "score")
        for rows in self._links():
            for some in _slices(rows):
                yield from map(GraphEdge, *(some.column(name).to_pylist() for name in names))

    def nodes(self) -> Iterator[GraphNode]:
        places = self._places()
        names = ("table", "name", "n_rows", "n_columns", "component")
        for batch in self._lake.nodes():
            own = _where(batch, self._linked[numbers(batch.column("table"))])
            for some in _slices(own):
                x, y = places[numbers(some.column("table"))].T.tolist()
                yield from map(GraphNode, *(some.column(name).to_pylist() for name in names), x, y)

    def _places(self) -> F64:
        """Where each table of the lake stands, float64[next_table, 2]; NaN for those without a link."""
        found = np.full((self._lake.state.next_table, 2), np.nan)
        layout = self._read("layout", ("table", "component", "cluster", "x", "y"))
        table, component = (layout[name].astype(np.int64) for name in ("table", "component"))
        if not len(table):
            return found
        points = np.column_stack([layout["x"], layout["y"]]).astype(np.float64)
        circles = self._read("clusters", ("component", "cluster", *_CIRCLE))
        points = _placed(
            points,
            _paired(component, layout["cluster"]),
            _paired(circles["component"], circles["cluster"]),
            circles,
        )
        circles = self._read("overview", ("component", *_CIRCLE))
        found[table] = _placed(points, component, circles["component"].astype(np.int64), circles)
        return found

    def _pieces(self, name: str, columns: tuple[str, ...]) -> Iterator[pa.Table]:
        files = self._files.get(name)
        if files is not None:
            for group in range(len(files)):
                yield files.read(group, columns)

    def _read(self, name: str, columns: tuple[str, ...]) -> dict[str, NDArray[Any]]:
        """Columns of all rows."""
        pieces = list(self._pieces(name, columns))
        empty = np.empty(0, np.int32)
        return {c: np.concatenate([empty, *(numbers(p.column(c)) for p in pieces)]) for c in columns}


def _where(rows: Any, kept: Bool) -> Any:
    """The rows that are marked, of a table or a batch."""
    return rows.take(arrow(np.flatnonzero(kept)))


def _slices(rows: Any) -> Iterator[Any]:
    for start in range(0, len(rows), _AT_ONCE):
        yield rows.slice(start, _AT_ONCE)


def _paired(component: NDArray[Any], cluster: NDArray[Any]) -> I64:
    """A component and a cluster in it as one number; a component without clusters has the cluster -1."""
    return (component.astype(np.int64) << 32) + cluster.astype(np.int64) + 1


def _placed(points: F64, groups: I64, known: I64, circles: dict[str, NDArray[Any]]) -> F64:
    """The points of each group, in the circle of that number; what has none gets one of radius 1 around 0.

    Points of a group are adjacent.
    """
    starts = np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))
    sizes = np.diff(np.append(starts, len(points)))
    middles, radii = np.zeros((len(starts), 2)), np.ones(len(starts))
    if len(known):
        order = np.argsort(known, kind="stable")
        at = order[np.minimum(np.searchsorted(known[order], groups[starts]), len(known) - 1)]
        there = known[at] == groups[starts]
        x, y, r = (circles[name].astype(np.float64)[at[there]] for name in _CIRCLE)
        middles[there], radii[there] = np.column_stack([x, y]), r
    reach = np.maximum.reduceat(np.hypot(points[:, 0], points[:, 1]), starts)
    factors = np.divide(_FILLED * radii, reach, out=np.ones(len(reach)), where=reach > 0)
    placed: F64 = points * np.repeat(factors, sizes)[:, None] + np.repeat(middles, sizes, axis=0)
    return placed
