"""The people of `kit`, twice: with counted and with witnessed evidence of their functional dependencies.

Both tables have the same rows, and a batch to them is one commit. Approximate dependencies are kept for the
counted one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import holdfast
from holdfast.workspace import Workspace
from trust import kit
from trust.kit import Row

COUNTED, WITNESSED = TABLES = ("counted", "witnessed")
MAX_ERROR = 0.1
# The version that `build` ends with.
BUILT = 5


def track(ws: Workspace, table: str) -> Any:
    return ws.track(
        table,
        kit.table_of(kit.START),
        kinds=("ucc", "fd") if table == COUNTED else ("fd",),
        evidence=table,
        max_error=MAX_ERROR if table == COUNTED else None,
    )


def apply(ws: Workspace, batch: tuple[list[Row], list[Row]], **more: Any) -> Any:
    """A batch to both, or to those that are there."""
    inserts, deletes = batch
    part = {"inserts": kit.table_of(inserts), "deletes": kit.table_of(deletes)}
    return ws.apply_all(dict.fromkeys(ws.tables(), part), **more)


def build(root: Path) -> None:
    with holdfast.open(root, engine="inline") as ws:
        for table in TABLES:
            track(ws, table)
        for i, batch in enumerate(kit.HISTORY):
            apply(ws, batch, batch_id=f"history-{i}")
        assert ws.version == BUILT
