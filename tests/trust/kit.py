"""What the trust tests share: a small table, its history, and what a workspace looks like from outside.

Nothing here touches Spark. `snapshot` reads everything a user could see, down to the rows in the
segments, so that two equal snapshots are equal workspaces.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import holdfast
from holdfast.storage.segments import open_segment
from holdfast.storage.tables import TableState
from holdfast.workspace import Workspace

COLUMNS = ("id", "name", "city", "grade", "score")
TYPES = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.float64())
Row = tuple[Any, ...]

START: list[Row] = [
    (1, "Ada", "Rome", 1, 0.5),
    (2, "Bob", "Rome", 2, 0.5),
    (3, "Cyd", "Oslo", 1, 1.5),
    (4, "Dan", None, 2, 1.5),
    (5, "Eve", "Oslo", 3, 2.5),
    (6, "Fay", "Lima", 3, 3.5),
]
# (inserts, deletes) of three batches: several segments, delete vectors and indexes.
HISTORY: list[tuple[list[Row], list[Row]]] = [
    ([(7, "Gus", "Lima", 1, 0.5), (8, "Ada", "Bern", 4, 9.5)], []),
    ([(9, "Hal", "Rome", 4, 4.5)], [(4, "Dan", None, 2, 1.5)]),
    ([(10, "Ida", None, 5, 4.5)], [(8, "Ada", "Bern", 4, 9.5)]),
]
# The batch that is killed: it breaks [id], deletes, and touches two segments.
BATCH: tuple[list[Row], list[Row]] = (
    [(1, "Kim", "Oslo", 2, 7.5), (11, "Ada", "Rome", 1, 8.5)],
    [(5, "Eve", "Oslo", 3, 2.5), (7, "Gus", "Lima", 1, 0.5)],
)
# What follows it, to see that nothing hidden is wrong: it brings [id] back.
NEXT: tuple[list[Row], list[Row]] = ([(12, "Lou", "Lima", 9, 1.5)], [(1, "Ada", "Rome", 1, 0.5)])


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(TYPES)]
    return pa.table(columns, names=list(COLUMNS))


def after(rows: Iterable[Row], *batches: tuple[list[Row], list[Row]]) -> list[Row]:
    """The rows after some batches."""
    found = Counter(rows)
    for inserts, deletes in batches:
        found.subtract(deletes)
        found.update(inserts)
    assert min(found.values()) >= 0
    return sorted(found.elements(), key=repr)


def minimal_keys(rows: Sequence[Row], names: Sequence[str] = COLUMNS) -> list[list[str]]:
    """The oracle: all minimal unique combinations by trying every one (NULLs equal)."""
    found: list[tuple[int, ...]] = []
    for size in range(len(names) + 1):
        for columns in itertools.combinations(range(len(names)), size):
            if any(set(key) <= set(columns) for key in found):
                continue
            if len({tuple(row[c] for c in columns) for row in rows}) == len(rows):
                found.append(columns)
    return sorted([names[c] for c in key] for key in found)


def apply(ws: Workspace, batch: tuple[list[Row], list[Row]], table: str = "people", **more: Any) -> Any:
    inserts, deletes = batch
    return ws.apply(
        table,
        inserts=table_of(inserts) if inserts else None,
        deletes=table_of(deletes) if deletes else None,
        **more,
    )


def build(root: Path) -> None:
    """The workspace that most tests start from: the table `people` after `HISTORY`."""
    with holdfast.open(root, engine="inline") as ws:
        ws.track("people", table_of(START))
        for i, batch in enumerate(HISTORY):
            apply(ws, batch, batch_id=f"history-{i}")


def rows_of(ws: Workspace, table: str) -> list[Row]:
    """The live rows, read from the segments themselves."""
    return rows_of_state(ws, ws._current(table)[1])


def rows_of_state(ws: Workspace, state: TableState) -> list[Row]:
    rows: list[Row] = []
    for ref in state.segments:
        segment = open_segment(ws.root, ref, state.schema)
        found = segment.rows(np.flatnonzero(segment.live)).to_pydict()
        rows += zip(*found.values(), strict=True)
    return sorted(rows, key=repr)


def keys_of(ws: Workspace, table: str, at: int | None = None) -> list[list[str]]:
    return sorted(list(d.columns) for d in ws.dependencies(table=table, at=at))


def snapshot(root: Path) -> dict[str, Any]:
    """All that a workspace shows, from a fresh look at it; JSON can carry it."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        tables = {}
        for table in ws.tables():
            rows = rows_of(ws, table)
            assert len(rows) == ws.n_rows(table), (len(rows), ws.n_rows(table))
            tables[table] = {
                "rows": [list(row) for row in rows],
                "keys": keys_of(ws, table),
                "non_uniques": sorted(map(list, ws.non_uniques(table))),
                "pins": [pin.to_dict() for pin in ws.pins(table)],
            }
        n_files = ws.verify()
        assert n_files >= 2 * len(tables)
        log = [(entry.version, entry.table, entry.action, entry.batch_id) for entry in ws.log()]
        assert [entry[0] for entry in log] == list(range(1, ws.version + 1))
        return {"version": ws.version, "tables": tables, "log": [list(entry) for entry in log]}


def files_of(root: Path) -> set[str]:
    """The files of a workspace outside its ledger, by name."""
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and "ledger" not in path.relative_to(root).parts
    }
