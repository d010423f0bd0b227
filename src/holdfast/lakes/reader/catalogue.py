"""What all questions to a lake need: its names, the numbers of its columns, its texts. Needs no kernels.

Everything is read when it is first asked for, and no more of it than that: flat arrays are memory maps, names
are Arrow arrays (never Python lists of all of them), texts and rows are read by row group. Tables and columns
are numbered through all parts in the order of their files, so a number is also the number of a row in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.store.root import Root
from holdfast.errors import UnknownColumnError, UnknownTableError
from holdfast.lakes.answers import FoundColumn, LakeSide
from holdfast.lakes.reader.pages import RowGroups, arrow, numbers
from holdfast.lakes.state import LakeState, Part, live_tables

I32 = NDArray[np.int32]
U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]


class LakeCatalogue:
    """The tables and columns of a lake at a version. Dropped tables keep their numbers; they are not live."""

    def __init__(self, root: Root, state: LakeState, version: int) -> None:
        self.root, self.state, self.version = root, state, version
        self.parts = [Part(root, ref) for ref in state.parts]
        self.table_rows = RowGroups(root, [f for part in state.parts for f in part.tables])
        self.column_rows = RowGroups(root, [f for part in state.parts for f in part.columns])

    # -- tables ------------------------------------------------------------------------------

    @cached_property
    def live(self) -> Bool:
        """Which tables are not dropped, bool[next_table]."""
        return live_tables(self.root, self.state)

    @cached_property
    def table_names(self) -> pa.LargeStringArray:
        return self.table_rows.texts("name")

    def names_of(self, tables: NDArray[Any]) -> pa.LargeStringArray:
        return self.table_names.take(arrow(tables))

    def name_list(self, tables: NDArray[Any]) -> list[str]:
        names: list[str] = self.names_of(tables).to_pylist()
        return names

    def table_name(self, table: int) -> str:
        return str(self.table_names[table].as_py())

    @cached_property
    def name_ranks(self) -> I32:
        """The place of each table by its name, int32[next_table]; of equal names only one is live."""
        ranks = np.empty(len(self.table_names), np.int32)
        ranks[numbers(pc.array_sort_indices(self.table_names))] = np.arange(len(ranks), dtype=np.int32)
        return ranks

    def check_table(self, table: int) -> None:
        """UnknownTableError unless it is the number of a live table."""
        if not 0 <= table < self.state.next_table:
            raise UnknownTableError(
                f"the lake (version {self.version}) has no table number {table}: "
                f"numbers go from 0 to {self.state.next_table - 1}."
            )
        if not self.live[table]:
            raise UnknownTableError(
                f"the table {self.table_name(table)!r} (number {table}) was dropped from the lake "
                f"(version {self.version})."
            )

    def columns_of(self, table: int) -> range:
        """The numbers of a table's columns."""
        bounds = np.searchsorted(self.table_of, np.array([table, table + 1], np.int32))
        return range(int(bounds[0]), int(bounds[1]))

    # -- columns -----------------------------------------------------------------------------

    @cached_property
    def column_names(self) -> pa.LargeStringArray:
        return self.column_rows.texts("name")

    @cached_property
    def table_of(self) -> I32:
        """The table of each column, ascending, int32[next_column]."""
        by_part = [part.array("table_of") + np.int32(part.ref.first_table) for part in self.parts]
        return np.concatenate([np.empty(0, np.int32), *by_part])

    @cached_property
    def sizes(self) -> I32:
        """How many values each column has."""
        return np.concatenate([np.empty(0, np.int32), *(part.sizes for part in self.parts)])

    @cached_property
    def n_rows(self) -> I32:
        return self._joined("n_rows", np.int32)

    @cached_property
    def flags(self) -> NDArray[np.uint8]:
        return self._joined("flags", np.uint8)

    @cached_property
    def rarity(self) -> NDArray[np.float32]:
        return self._joined("rarity", np.float32)

    def _joined(self, name: str, dtype: Any) -> NDArray[Any]:
        if len(self.parts) == 1:
            return self.parts[0].array(name)
        return np.concatenate([np.empty(0, dtype), *(part.array(name) for part in self.parts)])

    def column_names_of(self, table: int) -> list[str]:
        columns = self.columns_of(table)
        names: list[str] = self.column_names[columns.start : columns.stop].to_pylist()
        return names

    def check_column(self, column: int) -> None:
        """UnknownColumnError unless it is the number of a column of a live table."""
        if not 0 <= column < self.state.next_column:
            raise UnknownColumnError(
                f"the lake (version {self.version}) has no column number {column}: "
                f"numbers go from 0 to {self.state.next_column - 1}."
            )
        self.check_table(int(self.table_of[column]))

    def values(self, column: int) -> tuple[U64, U64]:
        """The value set of a column: (h1, h2), sorted."""
        part = next(p for p in reversed(self.parts) if p.ref.first_column <= column)
        _, values, checks = part.values_of(np.array([column - part.ref.first_column]))
        return values, checks

    def texts(self, column: int) -> pa.StringArray:
        """The texts of a column's values, in the order of `values`. Cost: the row group they lie in."""
        rows = self.column_rows.rows(np.array([column], np.int64), ("texts",))
        return rows.column("texts").combine_chunks().flatten()

    def sides(self, columns: NDArray[Any]) -> list[LakeSide]:
        """Columns with their names."""
        tables = self.table_of[columns]
        names = self.column_names.take(arrow(columns)).to_pylist()
        sides = zip(columns.tolist(), tables.tolist(), self.name_list(tables), names, strict=True)
        return [LakeSide(*side) for side in sides]

    def found_columns(self, columns: NDArray[Any]) -> tuple[FoundColumn, ...]:
        return tuple(FoundColumn(s.id, s.column, s.table_id, s.table) for s in self.sides(columns))

    # -- texts -------------------------------------------------------------------------------

    @cached_property
    def null_like(self) -> frozenset[str]:
        return self.state.options.null_like()

    def telling(self, texts: Sequence[str], n: int) -> tuple[str, ...]:
        """The first `n` texts, those that say nothing (empty, "n/a" and the like) last."""
        return tuple(sorted(texts[: 4 * n], key=self.null_like.__contains__)[:n])
