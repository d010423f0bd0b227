"""A lake, open for questions: what it holds, what joins, where a value is. Neither Spark nor kernels.

Opening reads nothing: every answer reads what it needs, and keeps the names and flat arrays for the next one.
Methods take the numbers that the page links with, or, where a person asks, the names that `resolve` knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from holdfast.core.store.root import Root
from holdfast.errors import UsageError, shorten
from holdfast.lakes.answers import (
    AskedColumn,
    LakeClusters,
    LakeColumn,
    LakeComponents,
    LakeGraph,
    LakeInd,
    LakeMatches,
    LakeOverlap,
    LakeSummary,
    LakeTable,
    SearchResult,
)
from holdfast.lakes.reader import joins as lake_joins
from holdfast.lakes.reader import value_search
from holdfast.lakes.reader.catalogue import U64, LakeCatalogue
from holdfast.lakes.reader.graph_views import GraphViews
from holdfast.lakes.reader.joins import SAMPLES, Direction
from holdfast.lakes.reader.overlaps import LakeOverlaps, live_sizes, most_shared
from holdfast.lakes.reader.pages import ROWS_AT_ONCE, RowGroups, arrow, numbers
from holdfast.lakes.state import INDS_SCHEMA, INTEGER_COLUMN, NULL_COLUMN, UNIQUE_COLUMN, LakeState

INDS_OF_A_TABLE = 500
_NODES_AT_ONCE = 100_000
_INDS_AT_ONCE = 10_000

Names = tuple[str, str]  # table, column


class LakeReader:
    """A lake at one version of the workspace. Several threads may ask at the same time."""

    def __init__(self, root: Root, state: LakeState, version: int) -> None:
        self.state, self.version = state, version
        self.catalogue = LakeCatalogue(root, state, version)
        self._views = GraphViews(self.catalogue)
        self.graph = self._views.graph
        self._inds = RowGroups(root, state.inds, at_once=ROWS_AT_ONCE)

    def summary(self) -> LakeSummary:
        state, graph = self.state, self.state.graph
        return LakeSummary(
            self.version,
            state.n_tables,
            state.n_columns,
            state.n_inds,
            graph.n_components if graph else 0,
            graph.n_isolated if graph else state.n_tables,
            state.options.filters,
            state.removed,
        )

    # -- the join graph ----------------------------------------------------------------------

    def components(self, limit: int = 2_000) -> LakeComponents:
        """The largest components of the join graph."""
        return self._views.components(limit)

    def component(self, component: int, max_edges: int = 30_000) -> LakeGraph | LakeClusters:
        """A component's tables and best links; if it is too large to draw, its clusters and theirs."""
        return self._views.component(component, max_edges)

    def cluster(self, component: int, cluster: int, max_edges: int = 30_000) -> LakeGraph:
        """The tables of a cluster of a large component, and their best links."""
        return self._views.cluster(component, cluster, max_edges)

    def nodes(self) -> Iterator[pa.RecordBatch]:
        """The live tables: number, name, source, n_rows, n_columns, component (-1: none)."""
        fields = ("name", "source", "n_rows", "n_columns")
        tables = np.flatnonzero(self.catalogue.live)
        for start in range(0, len(tables), _NODES_AT_ONCE):
            some = tables[start : start + _NODES_AT_ONCE]
            rows = self.catalogue.table_rows.rows(some, fields)
            rows = rows.add_column(0, "table", arrow(some.astype(np.int32)))
            components = arrow(self.graph.component_of[some])
            yield from rows.append_column("component", components).to_batches()

    def edges(self) -> Iterator[pa.RecordBatch]:
        """The links between tables: dep_table, ref_table (numbers), dependent, referenced (names), n_inds,
        score."""
        return self._views.edges()

    # -- tables and columns ------------------------------------------------------------------

    def table(self, table: int, limit: int = INDS_OF_A_TABLE) -> LakeTable:
        """A table: its columns, first rows, and its `limit` best inclusions."""
        catalogue = self.catalogue
        catalogue.check_table(table)
        fields = ("name", "source", "n_rows", "rows")
        (row,) = catalogue.table_rows.rows(np.array([table]), fields).to_pylist()
        columns = catalogue.columns_of(table)
        inds, n_inds = lake_joins.best(catalogue, lake_joins.pieces(catalogue, self._inds, columns), limit)
        return LakeTable(
            table,
            row["name"],
            row["source"],
            row["n_rows"],
            int(self.graph.component_of[table]),
            self._views.cluster_of(table),
            self._columns(columns),
            tuple(map(tuple, row["rows"] or ())),
            tuple(lake_joins.lake_inds(catalogue, inds)),
            n_inds,
        )

    def _columns(self, columns: range) -> tuple[LakeColumn, ...]:
        if not columns:
            return ()
        fields = ("name", "n_values", "n_rows", "n_missing", "texts")
        rows = self.catalogue.column_rows.rows(np.arange(columns.start, columns.stop), fields)
        counts = (rows.column(name).to_pylist() for name in fields[:-1])
        flags = self.catalogue.flags[columns.start : columns.stop].tolist()
        texts = rows.column("texts")
        return tuple(
            LakeColumn(
                columns[i],
                name,
                n_values,
                n_rows,
                n_missing,
                bool(flags[i] & UNIQUE_COLUMN),
                bool(flags[i] & INTEGER_COLUMN),
                bool(flags[i] & NULL_COLUMN),
                self.catalogue.telling(texts[i].values[: 4 * SAMPLES].to_pylist(), SAMPLES),
            )
            for i, (name, n_values, n_rows, n_missing) in enumerate(zip(*counts, strict=True))
        )

    def ind(self, dependent: int, referenced: int, limit: int = 100) -> LakeMatches:
        """Two columns side by side: the values that both have, and those that only one has."""
        for column in (dependent, referenced):
            self.catalogue.check_column(column)
        return lake_joins.side_by_side(self.catalogue, dependent, referenced, limit)

    # -- questions of people -----------------------------------------------------------------

    def search(self, text: str, what: str = "all", limit: int = 50) -> SearchResult:
        """Names that contain a text, and the columns that have it as a value."""
        return value_search.search(self.catalogue, text, what, limit)

    def resolve(self, text: str) -> int | tuple[int, int]:
        """The table that a text names, or the table and the position of a column (TABLE.COLUMN)."""
        return value_search.resolve(self.catalogue, text)

    def joins(
        self,
        text: str,
        limit: int = 20,
        min_score: float = 0.0,
        direction: Direction = "both",
        samples: int = SAMPLES,
    ) -> lake_joins.LakeJoins:
        """The inclusions of a table or column, those first that are likeliest to be meaningful joins.

        `out`: it is the dependent side, its values occur elsewhere; `in`: others' values occur in it. Each
        comes with a few shared values.
        """
        return lake_joins.LakeJoins(self.ranked_joins(text, limit, min_score, direction, samples)[0])

    def ranked_joins(
        self,
        text: str,
        limit: int = 20,
        min_score: float = 0.0,
        direction: Direction = "both",
        samples: int = SAMPLES,
    ) -> tuple[list[LakeInd], int]:
        """`joins`, and how many there are without the limit."""
        if direction not in ("both", "out", "in"):
            raise UsageError(f"{shorten(direction)} is no direction. Expected one of: both, out, in.")
        if limit < 1:
            raise UsageError(f"a limit of {limit} shows nothing. Expected 1 or more.")
        columns = self.columns(text)
        pieces = lake_joins.pieces(self.catalogue, self._inds, columns, direction)
        inds, n = lake_joins.best(self.catalogue, pieces, limit, min_score)
        return lake_joins.lake_inds(self.catalogue, inds, columns, samples), n

    def overlaps(self, text: str, top: int = 20) -> LakeOverlaps:
        """The columns with the most values in common with a table's, or with one column: `top` for each.

        They need not contain it, and no filter leaves any out but the column itself. Equal ones come by the
        names of their tables.
        """
        columns, catalogue = self.columns(text), self.catalogue
        table, name, _ = self.subject(text)
        first, names = catalogue.columns_of(table).start, catalogue.column_names_of(table)
        asked = [
            (AskedColumn(c - first, names[c - first], int(catalogue.sizes[c])), *catalogue.values(c), c)
            for c in columns
        ]
        return self.overlapping(name, asked, top)

    def overlapping(
        self, table: str, asked: Sequence[tuple[AskedColumn, U64, U64, int | None]], top: int = 20
    ) -> LakeOverlaps:
        """The same of columns with their values, (h1, h2), and their numbers if they are of the lake."""
        if top < 1:
            raise UsageError(f"the best {top} overlaps are none. Expected 1 or more.")
        overlaps: list[LakeOverlap] = []
        sizes = live_sizes(self.catalogue)
        for column, values, checks, number in asked:
            others, shared = most_shared(self.catalogue, sizes, values, checks, top, number)
            facts = self.catalogue.sides(others), shared.tolist(), self.catalogue.sizes[others].tolist()
            overlaps += [LakeOverlap(column, *fact) for fact in zip(*facts, strict=True)]
        return LakeOverlaps(table, self.version, [column for column, *_ in asked], overlaps)

    def subject(self, text: str) -> tuple[int, str, str | None]:
        """What a text names, in full: the number and name of a table, and the name of a column or None."""
        target = self.resolve(text)
        table = target if isinstance(target, int) else target[0]
        name = self.catalogue.table_name(table)
        if isinstance(target, int):
            return table, name, None
        column = self.catalogue.columns_of(table)[target[1]]
        return table, name, str(self.catalogue.column_names[column].as_py())

    def columns(self, text: str) -> range:
        """The numbers of the columns that a text names: all of a table, or one."""
        target = self.resolve(text)
        if isinstance(target, int):
            return self.catalogue.columns_of(target)
        column = self.catalogue.columns_of(target[0])[target[1]]
        return range(column, column + 1)

    # -- all inclusions ----------------------------------------------------------------------

    def inds(self, text: str | None = None) -> Iterator[pa.RecordBatch]:
        """The inclusions of the lake, or of a table or column, by the numbers of their columns: dependent,
        referenced, shared."""
        columns = None if text is None else self.columns(text)
        for piece in lake_joins.pieces(self.catalogue, self._inds, columns):
            arrays = [arrow(x) for x in (piece.dependent, piece.referenced, piece.shared)]
            yield pa.record_batch(arrays, schema=INDS_SCHEMA)

    def named_inds(self, text: str | None = None) -> Iterator[pa.RecordBatch]:
        """The same with names: dep_table, dep_column, ref_table, ref_column, shared."""
        for batch in self.inds(text):
            columns = []
            for side in ("dependent", "referenced"):
                column_ids = batch.column(side)
                tables = self.catalogue.table_of[numbers(column_ids)]
                columns += [self.catalogue.names_of(tables), self.catalogue.column_names.take(column_ids)]
            names = ["dep_table", "dep_column", "ref_table", "ref_column", "shared"]
            yield pa.record_batch([*columns, batch.column("shared")], names=names)

    def ind_names(self, text: str | None = None) -> Iterator[tuple[Names, Names, int]]:
        """The same as Python texts: ((table, column), (table, column), shared)."""
        for batch in self.named_inds(text):
            for start in range(0, len(batch), _INDS_AT_ONCE):
                columns = (x.to_pylist() for x in batch.slice(start, _INDS_AT_ONCE).columns)
                for a, b, c, d, shared in zip(*columns, strict=True):
                    yield (a, b), (c, d), shared

    def each_ind(self, text: str | None = None) -> Iterator[LakeInd]:
        """The same with all measures, in the order of the files."""
        columns = None if text is None else self.columns(text)
        for piece in lake_joins.pieces(self.catalogue, self._inds, columns):
            for start in range(0, len(piece), _INDS_AT_ONCE):
                some = piece.at(slice(start, start + _INDS_AT_ONCE))
                yield from lake_joins.lake_inds(self.catalogue, some)
