"""The rows that violate something, as the page asks for them: a page of a table, in some order, or a file.

To find them may take seconds, and the answers come one by one: so the listing of a question is held until the
next version, at most so many rows of at most so many questions. What is sorted is what is held; the answer
says if there are more, and the file has all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.app.explorer.asking import asked
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.origins import Origins
from holdfast.app.explorer.routes import Download
from holdfast.app.report.texts import dependency_text
from holdfast.app.writing import csv_pieces
from holdfast.core.words.asking import ask_of
from holdfast.errors import UsageError, listing, shorten

if TYPE_CHECKING:
    import pyarrow as pa

    from holdfast.core.cover.violating_rows import ViolatingRows

I64 = NDArray[np.int64]

MOST_ROWS = 10_000
MOST_CELLS = 1_000_000
MOST_LISTINGS = 8


@dataclass(frozen=True)
class Listing:
    """The first violating rows of a question."""

    rows: ViolatingRows
    table: pa.Table

    @property
    def marks(self) -> list[str]:
        """What the first columns are, which are not of the table itself."""
        return ["row", *self.rows.said, *self.rows.copied]

    def order(self, column: str, *, descending: bool) -> I64:
        """The positions of the rows by a column, NULL last; rows of one value stay as they are."""
        names = self.table.column_names
        if column not in names:
            raise UsageError(f"there is no column {shorten(column)} to sort by. Columns: {listing(names)}.")
        if column == names[0]:  # as numbers, not as the texts that they are shown as
            order = np.argsort(self.rows.row_ids, kind="stable")
            return order[::-1] if descending else order
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self.table.column(column)
        if pa.types.is_list(values.type) or pa.types.is_struct(values.type):
            values = pa.array([None if v is None else str(v) for v in values.to_pylist()], pa.string())
        keys = [("values", "descending" if descending else "ascending")]
        positions = pc.sort_indices(pa.table({"values": values}), sort_keys=keys)
        order = np.asarray(positions, dtype=np.int64)
        return order


class Listings:
    """Listings of the newest version, the last ones asked for."""

    def __init__(self, newest: Newest, origins: Origins) -> None:
        self._newest, self._origins = newest, origins
        self._version = -1
        self._held: dict[tuple[str, str], Listing] = {}

    def get(self, table: str, ask: str) -> Listing:
        if self._version != self._newest.version:
            self._held.clear()
            self._version = self._newest.version
        place = table, ask
        held = self._held.pop(place, None) or self._listing(table, ask)
        while len(self._held) >= MOST_LISTINGS:
            del self._held[next(iter(self._held))]
        self._held[place] = held
        return held

    def _listing(self, table: str, ask: str) -> Listing:
        ws = self._newest.workspace
        n_columns = len(ws.schema(table).names)
        limit = max(100, min(MOST_ROWS, MOST_CELLS // max(1, n_columns)))
        rows = ws.readers.violating(*asked(ws, table, ask), limit)
        return Listing(rows, rows.to_arrow())

    def page(
        self, table: str, ask: str, offset: int, limit: int, sort: str | None, *, descending: bool
    ) -> dict[str, Any]:
        """Some of the rows that violate it, in an order, and what is known of all: if there are not that many
        any more, the last page."""
        from holdfast.core.cover.news import plain_rows

        held = self.get(table, ask)
        rows, names = held.rows, held.table.column_names
        chosen: Any = np.arange(len(rows.row_ids))
        if sort is not None:
            chosen = held.order(sort, descending=descending)
        last = max(0, len(chosen) - 1) // max(1, limit) * limit
        offset = min(offset, last)
        chosen = chosen[offset : offset + limit]
        concerned, marks = set(rows.dependency.columns), held.marks
        columns = [
            {"name": name, "mark": marks[i] if i < len(marks) else None, "concerned": name in concerned}
            for i, name in enumerate(names)
        ]
        totals = rows.totals()
        totals["dependency"] |= {
            "text": dependency_text(totals["dependency"], with_table=False),
            "ask": ask_of(rows.dependency),
        }
        return {
            **totals,
            "noun": rows.noun,
            "columns": columns,
            "n_held": len(rows.row_ids),
            "offset": offset,
            "origins": self._origins.of(self._newest.workspace, table, rows.row_ids[chosen].tolist()),
            "rows": [list(row.values()) for row in plain_rows(held.table.take(chosen))],
        }

    def file(self, table: str, ask: str) -> Download:
        """All rows that violate it, as CSV, a batch at a time."""
        ws = self._newest.workspace
        rows = ws.readers.violating(*asked(ws, table, ask), None)

        def pieces() -> Iterator[bytes]:
            for piece in csv_pieces(rows.schema, rows.batches()):
                yield piece.encode()

        plain = re.sub(r"[^A-Za-z0-9]+", "-", table).strip("-")[:60] or "table"
        return Download(f"{plain}-violations.csv", "text/csv; charset=utf-8", pieces())
