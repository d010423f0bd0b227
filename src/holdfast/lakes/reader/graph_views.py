"""The join graph of a lake as the page draws it: the components, then one of them, then a cluster of it.

Needs no kernels: places and links were computed by the commit. The files are sorted by component, so a view
reads the row groups of its own; of many links only the best are kept while reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
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
from holdfast.lakes.reader.catalogue import I32, LakeCatalogue
from holdfast.lakes.reader.joins import rounded_scores
from holdfast.lakes.reader.pages import ROWS_AT_ONCE, RowGroups, arrow, numbers
from holdfast.lakes.state import GraphRef, open_array

_OVERVIEW = ("component", "n_tables", "n_inds", "hub", "x", "y", "r")
_CLUSTERS = ("component", "cluster", "n_tables", "hub", "x", "y", "r")
_EDGES = ("component", "dep_table", "ref_table", "n_inds", "score")
_LAYOUT = ("component", "cluster", "table", "x", "y", "degree")


class GraphViews:
    """The views of a lake's graph; a lake without one has no components."""

    def __init__(self, catalogue: LakeCatalogue) -> None:
        self._catalogue = catalogue
        self._graph = catalogue.state.graph or GraphRef({}, 0, catalogue.state.n_tables, 0)
        self._files: dict[str, RowGroups] = {}

    @cached_property
    def component_of(self) -> I32:
        """The component of each table, -1 for those without: int32[next_table]."""
        for ref in self._graph.files.get("components", ()):
            return open_array(self._catalogue.root, ref)
        return np.full(self._catalogue.state.next_table, -1, np.int32)

    def files(self, name: str) -> RowGroups:
        found = self._files.get(name)
        if found is None:
            found = RowGroups(self._catalogue.root, self._graph.files.get(name, ()), at_once=ROWS_AT_ONCE)
            self._files[name] = found
        return found

    def components(self, limit: int) -> LakeComponents:
        """The largest components."""
        files = self.files("overview")
        n = min(limit, int(files.starts[-1]))
        rows = files.rows(np.arange(n), _OVERVIEW).to_pydict() if n else {name: [] for name in _OVERVIEW}
        names = self._names(rows["hub"])
        found = zip(
            *(rows[k] for k in ("component", "n_tables", "n_inds")),
            names,
            *(rows[k] for k in "xyr"),
            strict=True,
        )
        return LakeComponents(tuple(LakeComponent(*c) for c in found), self._graph.n_components - n)

    def component(self, component: int, max_edges: int) -> LakeGraph | LakeClusters:
        """The tables of a component and their best links; of a large one its clusters and theirs."""
        row = self._one("overview", _OVERVIEW, component)
        name, n_tables = self._names([row["hub"]])[0], int(row["n_tables"])
        clusters = self._rows("clusters", _CLUSTERS, component).sort_by("cluster").to_pydict()
        if not clusters["cluster"]:
            return self._drawn(component, None, name, max_edges)
        hubs = self._names(clusters["hub"])
        circles = zip(
            clusters["cluster"],
            clusters["n_tables"],
            hubs,
            *(clusters[k] for k in "xyr"),
            strict=True,
        )
        at = {cluster: i for i, cluster in enumerate(clusters["cluster"])}
        links = self._rows("cluster_links", ("component", "left", "right", "n"), component).to_pydict()
        ends = zip(links["left"], links["right"], links["n"], strict=True)
        return LakeClusters(
            component,
            name,
            n_tables,
            tuple(LakeCluster(*c) for c in circles),
            tuple((at[left], at[right], n) for left, right, n in ends),
        )

    def cluster(self, component: int, cluster: int, max_edges: int) -> LakeGraph:
        """The tables of a cluster of a component and the best links among them."""
        self._one("overview", _OVERVIEW, component)
        found = self._rows("clusters", _CLUSTERS, component)
        found = _where(found, "cluster", cluster).to_pylist()
        if not found:
            raise UsageError(f"component {component} of the lake has no cluster {cluster}.")
        return self._drawn(component, cluster, self._names([found[0]["hub"]])[0], max_edges)

    def cluster_of(self, table: int) -> int | None:
        """The cluster of a table; None where its component has none, or where it is in no component."""
        component = int(self.component_of[table])
        if component < 0 or not self._graph.files.get("clusters"):
            return None
        layout = _where(self._rows("layout", _LAYOUT, component), "table", table)
        [cluster] = layout.column("cluster").to_pylist()
        return None if cluster < 0 else int(cluster)

    def edges(self) -> Iterator[pa.RecordBatch]:
        """All links between tables, a row group at a time: numbers and names, inclusions, score."""
        files = self.files("edges")
        for group in range(len(files)):
            rows = files.read(group, _EDGES[1:])
            ends = [self._catalogue.names_of(numbers(rows.column(i))) for i in (0, 1)]
            names = ["dep_table", "ref_table", "dependent", "referenced", "n_inds", "score"]
            score = arrow(rounded_scores(numbers(rows.column(3))))
            columns = [rows.column(0), rows.column(1), *ends, rows.column(2), score]
            yield from pa.table(columns, names=names).to_batches()

    def _drawn(self, component: int, cluster: int | None, name: str, max_edges: int) -> LakeGraph:
        if max_edges < 0:
            raise UsageError(f"cannot draw {max_edges} links. Expected 0 or more.")
        layout = self._rows("layout", _LAYOUT, component)
        if cluster is not None:
            layout = _where(layout, "cluster", cluster)
        layout = layout.sort_by("table")
        tables: I32 = numbers(layout.column("table"))
        nodes = LakeNodes(
            tables.tolist(),
            self._names(tables),
            *(layout.column(k).to_pylist() for k in ("x", "y", "degree")),
        )
        edges, n_edges = self._best_edges(component, tables, max_edges)
        return LakeGraph(component, cluster, name, len(tables), nodes, edges, n_edges)

    def _best_edges(self, component: int, tables: I32, limit: int) -> tuple[LakeEdges, int]:
        """The best links among some tables (ascending), and how many there are.

        Each table's best link comes before second ones of others: the best of all may lie in a few cliques.
        """
        kept: list[NDArray[Any]] = [np.empty(0, t) for t in (np.int64, np.int64, np.float64, np.int64)]
        n = 0
        for rows in self._pieces("edges", _EDGES, component):
            ends = [numbers(rows.column(k)) for k in ("dep_table", "ref_table")]
            at = [np.minimum(np.searchsorted(tables, end), max(len(tables) - 1, 0)) for end in ends]
            inside = (tables[at[0]] == ends[0]) & (tables[at[1]] == ends[1])
            n += int(inside.sum())
            found = [*at, rounded_scores(numbers(rows.column("score"))), numbers(rows.column("n_inds"))]
            kept = [np.concatenate([old, new[inside]]) for old, new in zip(kept, found, strict=True)]
            kept = _strongest(kept, limit)
        start, end, score, n_inds = (column.tolist() for column in kept)
        return LakeEdges(start, end, score, n_inds), n

    # -- rows of a component -----------------------------------------------------------------

    def _pieces(self, name: str, columns: tuple[str, ...], component: int) -> Iterator[pa.Table]:
        files = self.files(name)
        low, high = files.bounds("component")
        for group in np.flatnonzero((low <= component) & (high >= component)).tolist():
            rows = files.read(group, columns)
            yield _where(rows, "component", component)

    def _rows(self, name: str, columns: tuple[str, ...], component: int) -> pa.Table:
        found = list(self._pieces(name, columns, component))
        if found:
            return pa.concat_tables(found)
        return pa.table({column: pa.nulls(0, pa.int32()) for column in columns})

    def _one(self, name: str, columns: tuple[str, ...], component: int) -> dict[str, Any]:
        found: list[dict[str, Any]] = self._rows(name, columns, component).to_pylist()
        if not found:
            n = self._graph.n_components
            known = f"numbers go from 0 to {n - 1}" if n else "no two of its tables are linked"
            raise UsageError(
                f"the lake (version {self._catalogue.version}) has no component {component}: {known}."
            )
        return found[0]

    def _names(self, tables: NDArray[Any] | list[int]) -> list[str]:
        names: list[str] = self._catalogue.names_of(np.asarray(tables, np.int64)).to_pylist()
        return names


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


def _where(rows: pa.Table, name: str, value: int) -> pa.Table:
    return rows.take(arrow(np.flatnonzero(numbers(rows.column(name)) == value)))
