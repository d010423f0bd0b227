"""Tables that refer to each other, and what happens to them: for the tests of inclusions.

`orders` refers to `parts` by one column and by two, `visits` is append-only and has no keys. A batch is
{table: (inserts, deletes)}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import holdfast
from holdfast.core.words.dependency import Side
from holdfast.workspace import Workspace
from trust import kit
from trust.kit import Row

Batch = Mapping[str, tuple[list[Row], list[Row]]]
Rows = dict[str, list[Row]]

TYPES: dict[str, dict[str, pa.DataType]] = {
    "parts": {"part": pa.int64(), "supplier": pa.int64(), "price": pa.float64()},
    "orders": {"id": pa.int64(), "part": pa.int32(), "supplier": pa.int64(), "city": pa.string()},
    "visits": {"part": pa.int64(), "city": pa.string()},
}
TYPES["returns"] = TYPES["orders"]

START: Rows = {
    "parts": [(1, 1, 0.5), (1, 2, 0.5), (2, 1, 1.5), (3, 2, 2.0)],
    "orders": [(1, 1, 1, "Rome"), (2, 1, 2, "Oslo"), (3, 2, 1, None), (4, 3, 2, "Rome")],
    "visits": [(1, "Rome"), (2, "Oslo"), (1, "Rome")],
}
HISTORY: list[Batch] = [
    {"orders": ([(5, 1, 1, "Lima")], [])},
    {
        "parts": ([(4, 1, 3.5)], [(3, 2, 2.0)]),
        "orders": ([(6, 4, 1, "Oslo")], [(4, 3, 2, "Rome")]),
    },
    {"visits": ([(4, "Lima"), (1, "Rome")], [])},
    {
        "orders": ([(11, None, None, None)], [])
    },  # little to add: clusters and pair counts get files of their own
]
# The batches that are killed. One table: part 9 is in no catalogue, and "Bern" was never visited.
ONE: Batch = {"orders": ([(7, 9, 1, "Bern"), (8, 2, 1, "Rome")], [(1, 1, 1, "Rome")])}
# Two tables, which only together keep orders[part, supplier] in parts[part, supplier].
BOTH: Batch = {
    "parts": ([(2, 2, 7.5)], [(1, 2, 0.5)]),
    "orders": ([(7, 2, 2, "Rome")], [(2, 1, 2, "Oslo")]),
}
# What follows, to see that nothing hidden is wrong: it takes values away, and brings what was missing.
NEXT: Batch = {
    "parts": ([(9, 1, 1.0)], [(4, 1, 3.5)]),
    "orders": ([(9, 1, 1, "Bern")], [(3, 2, 1, None), (6, 4, 1, "Oslo")]),
    "visits": ([(9, "Bern")], []),
}
# The version that `build` ends with.
BUILT = 7
# Rows of a table that joins later.
RETURNS: list[Row] = [(1, 1, 1, "Rome"), (5, 1, 1, "Lima")]


def table_of(table: str, rows: Sequence[Row]) -> pa.Table:
    types = TYPES[table]
    columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(types.values())]
    return pa.table(columns, names=list(types))


def after(rows: Rows, *batches: Batch) -> Rows:
    """The rows after some batches."""
    found = dict(rows)
    for batch in batches:
        for table, part in batch.items():
            found[table] = kit.after(found[table], part)
    return found


def track(ws: Workspace) -> Any:
    """The two tables with keys and inclusions, as one commit."""
    sources = {table: table_of(table, START[table]) for table in ("parts", "orders")}
    return ws.track_all(sources, kinds=("ucc", "ind"))


def pin(ws: Workspace) -> Any:
    return ws.pin("orders", ["part"], referenced=Side("parts", ("part",)))


def apply(ws: Workspace, batch: Batch, **more: Any) -> Any:
    """Apply a batch: as `apply` if it is of one table, else as `apply_all`."""
    parts = {
        table: {
            name: table_of(table, rows)
            for name, rows in zip(("inserts", "deletes"), both, strict=True)
            if rows
        }
        for table, both in batch.items()
    }
    if len(parts) == 1:
        [(table, part)] = parts.items()
        return ws.apply(table, **part, **more)
    return ws.apply_all(parts, **more)


def build(root: Path) -> None:
    """The workspace that most tests start from: three tables after `HISTORY`, an inclusion pinned."""
    with holdfast.open(root, engine="inline") as ws:
        track(ws)
        ws.track("visits", table_of("visits", START["visits"]), kinds=("ind",), append_only=True)
        for i, batch in enumerate(HISTORY):
            apply(ws, batch, batch_id=f"history-{i}")
        pin(ws)
        assert ws.version == BUILT


def check_rows(found: Mapping[str, Any], rows: Rows) -> None:
    """A snapshot, which is right in itself, is of these rows."""
    expected = {table: [list(row) for row in sorted(r, key=repr)] for table, r in rows.items()}
    assert {table: told["rows"] for table, told in found["tables"].items()} == expected
