"""The join graph of a lake as `graphs.py` writes it: the tables that are linked, and the links.

The files of a lake give each table a place in its component, or in its cluster of it; here all of them get a
place in one drawing, each component in its own circle.

Links are read twice, a piece at a time: first for the tables at their ends, then to be written. Memory: some
numbers for each table of the lake.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.app.export.graphs import GraphEdge, GraphNode
from holdfast.discovery.lake_reader import LakeReader
from holdfast.errors import UsageError
from holdfast.storage.files import FileRef
from holdfast.storage.lake import parquet_batches

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

_AT_ONCE = 10_000  # rows that are Python objects at the same time
_FILLED = 0.9  # of a circle's radius: neighbours do not touch
_CIRCLE = ("x", "y", "r")


class JoinGraph:
    """The links of a lake, perhaps only those of a component, or with a score; and the tables at their ends."""

    def __init__(
        self, root: Path, lake: LakeReader, component: int | None = None, min_score: float = 0.0
    ) -> None:
        graph = lake.state.graph
        n = graph.n_components if graph else 0
        if component is not None and not 0 <= component < n:
            known = f"numbers go from 0 to {n - 1:,}" if n else "no two of its tables are linked"
            raise UsageError(f"the lake (version {lake.version}) has no component {component:,}: {known}.")
        self._root, self._lake = root, lake
        self._files: dict[str, tuple[FileRef, ...]] = graph.files if graph else {}
        self._component, self._min_score = component, min_score
        self._linked: Bool = np.zeros(lake.state.next_table, np.bool_)
        self.n_links = 0
        for batch in self._links():
            for end in ("dep_table", "ref_table"):
                self._linked[_numbers(batch, end)] = True
            self.n_links += len(batch)
        self.n_tables = int(self._linked.sum())

    def _links(self) -> Iterator[pa.RecordBatch]:
        names = ("component", "dep_table", "ref_table", "n_inds", "score")
        for batch in parquet_batches(self._root, self._files.get("edges", ()), names):
            kept = _numbers(batch, "score") >= self._min_score
            if self._component is not None:
                kept &= _numbers(batch, "component") == self._component
            if kept.any():
                yield batch.filter(pa.array(kept))

    def edges(self) -> Iterator[GraphEdge]:
        for batch in self._links():
            for start in range(0, len(batch), _AT_ONCE):
                some = batch.slice(start, _AT_ONCE)
                columns = (
                    some.column(name).to_pylist() for name in ("dep_table", "ref_table", "n_inds", "score")
                )
                yield from map(GraphEdge, *columns)

    def nodes(self) -> Iterator[GraphNode]:
        places = self._places()
        for batch in self._lake.nodes():
            own = batch.filter(pa.array(self._linked[_numbers(batch, "table")]))
            for start in range(0, len(own), _AT_ONCE):
                some = own.slice(start, _AT_ONCE)
                names = ("table", "name", "n_rows", "n_columns", "component")
                columns = (some.column(name).to_pylist() for name in names)
                x, y = places[_numbers(some, "table")].T.tolist()
                yield from map(GraphNode, *columns, x, y)

    def _places(self) -> F64:
        """Where each table of the lake stands, float64[next_table, 2]; NaN for those without a link."""
        found = np.full((self._lake.state.next_table, 2), np.nan)
        layout = self._read("layout", ("table", "component", "cluster", "x", "y"))
        table, component = (layout[name].astype(np.int64) for name in ("table", "component"))
        if not len(table):
            return found
        points = np.column_stack([layout["x"], layout["y"]]).astype(np.float64)
        # A component's tables are adjacent, and in it those of a cluster.
        circles = self._read("clusters", ("component", "cluster", *_CIRCLE))
        cluster = _paired(component, layout["cluster"])
        starts = _starts(cluster)
        middles, radii = _found(cluster[starts], _paired(circles["component"], circles["cluster"]), circles)
        sizes = np.diff(np.append(starts, len(points)))
        points = _fitted(points, starts, radii) + np.repeat(middles, sizes, axis=0)
        circles = self._read("overview", ("component", *_CIRCLE))
        starts = _starts(component)
        middles, radii = _found(component[starts], circles["component"].astype(np.int64), circles)
        sizes = np.diff(np.append(starts, len(points)))
        found[table] = _fitted(points, starts, radii) + np.repeat(middles, sizes, axis=0)
        return found

    def _read(self, name: str, columns: tuple[str, ...]) -> dict[str, NDArray[np.generic]]:
        """Columns of all rows."""
        batches = list(parquet_batches(self._root, self._files.get(name, ()), columns))
        empty = np.empty(0, np.int32)
        return {c: np.concatenate([empty, *(_numbers(b, c) for b in batches)]) for c in columns}


def _numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.generic]:
    return np.asarray(batch.column(name))  # `to_numpy` imports pandas


def _paired(component: NDArray[np.generic], cluster: NDArray[np.generic]) -> I64:
    """A component and a cluster in it as one number; a component without clusters has the cluster -1."""
    return (component.astype(np.int64) << 32) + cluster.astype(np.int64) + 1


def _starts(groups: I64) -> I64:
    """Where each run of equal numbers starts.

    >>> _starts(np.array([4, 4, 7])).tolist()
    [0, 2]
    """
    return np.flatnonzero(np.diff(groups, prepend=groups[0] - 1))


def _found(wanted: I64, known: I64, circles: dict[str, NDArray[np.generic]]) -> tuple[F64, F64]:
    """(middles, radii) of the circles of some numbers; what has none is a circle of radius 1 around 0."""
    middles, radii = np.zeros((len(wanted), 2)), np.ones(len(wanted))
    if len(known):
        order = np.argsort(known, kind="stable")
        at = order[np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)]
        there = known[at] == wanted
        x, y, r = (circles[name].astype(np.float64)[at[there]] for name in _CIRCLE)
        middles[there], radii[there] = np.column_stack([x, y]), r
    return middles, radii


def _fitted(points: F64, starts: I64, radii: F64) -> F64:
    """The points of each run, scaled about 0 so that they fill a circle.

    >>> _fitted(np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 0.0]]), np.array([0, 2]), np.array([10.0, 1.0])).tolist()
    [[5.4, 7.2], [0.0, 0.0], [0.0, 0.0]]
    """
    reach = np.maximum.reduceat(np.hypot(points[:, 0], points[:, 1]), starts)
    factors = np.divide(_FILLED * radii, reach, out=np.ones(len(reach)), where=reach > 0)
    return points * np.repeat(factors, np.diff(np.append(starts, len(points))))[:, None]
