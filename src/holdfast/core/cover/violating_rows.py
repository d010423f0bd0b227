"""Rows that violate something: how many there are, the fewest to remove, and the rows themselves.

What is listed are ids and a few numbers a row, some 50 bytes; values are fetched a batch at a time
(`batches`), by tasks where segments are far away. So the rows of any table go to a file without being held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.cover.news import plain_rows
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.display import Displayed
from holdfast.errors import plural

if TYPE_CHECKING:
    import pandas as pd

    from holdfast.core.rows.relation import Relation

I64 = NDArray[np.int64]

# Rows whose values are fetched at a time.
BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Removal:
    """The fewest rows without which a dependency holds: exactly known, or between two numbers."""

    at_least: int
    at_most: int  # so many are marked

    @property
    def exact(self) -> bool:
        return self.at_least == self.at_most

    def __str__(self) -> str:
        """
        >>> str(Removal(1, 1)), str(Removal(3, 5))
        ('1 row', 'at most 5 rows, and at least 3')
        """
        if self.exact:
            return plural(self.at_most, "row")
        return f"at most {plural(self.at_most, 'row')}, and at least {self.at_least:,}"


@dataclass(frozen=True, eq=False)
class ViolatingRows(Displayed):
    """The rows that violate a dependency.

    As a table: `_row`, a column for each of `said` and `copied`, then those of the table itself."""

    dependency: Dependency
    version: int
    n_rows: int  # of the table
    n_violating: int  # rows that some other row contradicts, or that violate it alone
    removal: Removal
    relation: Relation = field(repr=False)
    row_ids: I64 = field(repr=False)  # of the rows that are listed: all, or the first ones
    said: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)  # numbers and flags, of each
    # Values of other rows: the column, and the row of each (-1: NULL).
    copied: Mapping[str, tuple[str, I64]] = field(default_factory=dict, repr=False)
    n_groups: int | None = None  # left-hand values, duplicated values, missing values
    n_violations: int | None = None  # pairs of rows; of a denial constraint ordered ones
    noun: str = ""  # what the groups are
    n_listed_rows: int | None = None  # where a row is listed more than once: how many there are

    @property
    def holds(self) -> bool:
        return self.n_violating == 0

    @property
    def complete(self) -> bool:
        """Whether all of them are listed."""
        return self.n_listed >= self.n_violating

    @property
    def n_listed(self) -> int:
        """How many of the rows that violate it are listed."""
        return len(self.row_ids) if self.n_listed_rows is None else self.n_listed_rows

    @property
    def schema(self) -> pa.Schema:
        return self._table(self.row_ids[:0], slice(0, 0)).schema

    def batches(self, n_rows: int = BATCH_ROWS) -> Iterator[pa.Table]:
        """The rows that are listed, some at a time: whoever takes them holds no more than one batch."""
        for start in range(0, len(self.row_ids), n_rows):
            chosen = slice(start, start + n_rows)
            yield self._table(self.row_ids[chosen], chosen)

    def to_arrow(self) -> pa.Table:
        return pa.concat_tables([self.schema.empty_table(), *self.batches()])

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def totals(self) -> dict[str, Any]:
        """What is known of all rows, for programs."""
        return {
            "dependency": self.dependency.to_dict(),
            "version": self.version,
            "holds": self.holds,
            "n_rows": self.n_rows,
            "n_violating": self.n_violating,
            "n_groups": self.n_groups,
            "n_violations": self.n_violations,
            "remove": {"at_least": self.removal.at_least, "at_most": self.removal.at_most},
            "complete": self.complete,
        }

    def records(self) -> list[dict[str, Any]]:
        """The rows that are listed, as JSON can carry them."""
        return [record for batch in self.batches() for record in plain_rows(batch)]

    def to_dict(self) -> dict[str, Any]:
        return {**self.totals(), "rows": self.records()}

    def __repr__(self) -> str:
        listed = f"{len(self.row_ids):,} listed"
        return (
            f"{self.dependency}: {plural(self.n_violating, 'row')} of {self.n_rows:,} violate it, {listed}; "
            f"without {self.removal} it holds"
        )

    def _table(self, row_ids: I64, chosen: slice) -> pa.Table:
        columns: dict[str, Any] = {"row": row_texts(row_ids)}
        columns |= {name: pa.array(array[chosen]) for name, array in self.said.items()}
        columns |= {name: self._copied(column, ids[chosen]) for name, (column, ids) in self.copied.items()}
        columns = dict(zip(self._names(columns), columns.values(), strict=True))
        fetched = self.relation.fetch(row_ids)
        columns |= dict(zip(fetched.column_names, fetched.columns, strict=True))
        return pa.table(columns)

    def _names(self, names: Mapping[str, Any]) -> list[str]:
        """`_row`; with more of these where the table has such a column."""
        front = "_"
        while any(f"{front}{name}" in self.relation.schema.names for name in names):
            front += "_"
        return [f"{front}{name}" for name in names]

    def _copied(self, column: str, row_ids: I64) -> pa.ChunkedArray:
        needed, place = np.unique(row_ids[row_ids >= 0], return_inverse=True)
        at = np.full(len(row_ids), -1, dtype=np.int64)
        at[row_ids >= 0] = place
        values = self.relation.fetch(needed).column(column)
        return values.take(pa.array(at, mask=at < 0))


def row_texts(row_ids: I64) -> pa.Array:
    """Row ids as people read them (`words.change.row_name`).

    >>> row_texts(np.array([(1 << 32) + 7])).to_pylist()
    ['1.7']
    """
    parts = [pa.array(part).cast(pa.string()) for part in (row_ids >> 32, row_ids & 0xFFFFFFFF)]
    return pc.binary_join_element_wise(*parts, ".")
