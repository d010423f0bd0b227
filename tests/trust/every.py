"""Tables that are tracked for every kind of the registry, and what happens to them: no kind is forgotten.

`counted` and `witnessed` have the same rows and keep evidence of these kinds; both refer to `sorts`. Some of
each kind of thing that can be pinned is pinned in `counted`, some is muted in `witnessed`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import holdfast
from holdfast import kind as contract
from holdfast.core.words.dependency import Fd, Ind, Side
from holdfast.core.words.reliance import PinTerms, Wanted
from holdfast.workspace import Workspace
from trust.kit import Row

COUNTED, WITNESSED = TWINS = ("counted", "witnessed")
SORTS = "sorts"
TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "sort": pa.string(),
    "net": pa.int64(),
    "gross": pa.int64(),
    "place": pa.string(),
}
START: list[Row] = [
    (1, "a", 1, 2, "Rome"),
    (2, "a", 3, 3, "Rome"),
    (3, "b", 5, 6, "Rome"),
    (4, None, 2, 4, "Rome"),
    (5, "b", 7, 9, "Rome"),
    (6, "c", 4, 4, "Rome"),
]
HISTORY: list[tuple[list[Row], list[Row]]] = [
    ([(7, "c", 6, 8, "Rome"), (8, "a", 8, 9, "Oslo")], [(4, None, 2, 4, "Rome")]),
    ([(9, "b", 9, 9, "Rome")], [(8, "a", 8, 9, "Oslo")]),
]
# The batch that is killed: of each kind it breaks something, and what is pinned too.
BATCH: tuple[list[Row], list[Row]] = (
    [(1, "zz", 12, 10, "Bern"), (10, "a", -2, 1, None)],
    [(3, "b", 5, 6, "Rome"), (7, "c", 6, 8, "Rome")],
)
# By the row key: a row with other values, one that stays as it is, a new one.
UPSERTS: list[Row] = [(1, "a", 20, 10, "Bern"), (5, "b", 7, 9, "Rome"), (20, "zz", 1, 1, None)]
# The whole table as it is to be.
SNAPSHOT: list[Row] = [*START[:2], (3, "b", 50, 6, "Oslo"), (9, "b", 9, 9, "Rome"), (30, "zz", 0, 1, None)]
# What follows, whatever was killed: a row goes that all of the above leave alone.
NEXT: tuple[list[Row], list[Row]] = ([(12, "c", 1, 5, "Rome")], [(2, "a", 3, 3, "Rome")])
# The version that `fill` ends with.
BUILT = 8


def table_of(rows: list[Row]) -> pa.Table:
    return pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(TYPES.items())})


def sorts() -> pa.Table:
    return pa.table({"sort": ["a", "b", "c", "d"], "rank": [1, 2, 3, 3]})


def track(ws: Workspace, table: str = COUNTED) -> Any:
    """One commit; denial constraints compare each column with itself, so that there are few, and no clock
    ends the search for them."""
    return ws.track(
        table,
        table_of(START),
        kinds=contract.kinds(),
        row_key=["id"],
        within_columns=True,
        dc_seconds=3_600,
        evidence=table,
        max_error=0.1 if table == COUNTED else None,
    )


def apply(ws: Workspace, batch: tuple[list[Row], list[Row]], *tables: str, **more: Any) -> Any:
    """A batch to those of the tables that are there, as one commit."""
    inserts, deletes = map(table_of, batch)
    part = {"inserts": inserts, "deletes": deletes}
    return ws.apply_all({table: part for table in tables if table in ws.tables()}, **more)


def wanted(table: str, **terms: Any) -> list[Wanted]:
    """One of each kind of thing that can be pinned."""
    how = PinTerms(**terms)
    return [
        Wanted(table, ("id",), terms=how),
        Wanted(table, ("sort",), Side(SORTS, ("sort",)), terms=how),
        Wanted(table, rule="sort -> place", terms=how),
        Wanted(table, rule="not(t.net < s.net and t.gross > s.gross)", terms=how),
        Wanted(table, rule="net > 0", terms=how),
    ]


def mute(ws: Workspace) -> Any:
    return ws.mute(COUNTED, Ind(Side(COUNTED, ("net",)), Side(COUNTED, ("gross",))), reason="by chance")


def fill(ws: Workspace) -> None:
    ws.track(SORTS, sorts(), kinds=contract.kinds(), within_columns=True, dc_seconds=3_600)
    for table in TWINS:
        track(ws, table)
    ws.pin_all(wanted(COUNTED, at_most="20%"))
    ws.mute(WITNESSED, Ind(Side(WITNESSED, ("sort",)), Side(SORTS, ("sort",))))
    ws.mute(WITNESSED, Fd(WITNESSED, ("sort",), "place"), reason="one town so far")
    for batch in HISTORY:
        apply(ws, batch, *TWINS)


def build(root: Path) -> None:
    """The workspace that the operations start from."""
    with holdfast.open(root, engine="inline") as ws:
        fill(ws)
        assert ws.version == BUILT
