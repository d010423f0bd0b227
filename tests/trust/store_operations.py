"""What a writer does to a workspace on a store while it is killed, or while another one races with it.

    python store_operations.py OPERATION URL NAME FOLDER

Each operation can be done again, which does what is left to do, and undone. It imports as little as it can:
every kill pays for a process.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import holdfast
from holdfast.core.words.dependency import Side
from holdfast.core.words.reliance import Wanted
from holdfast.errors import ConflictError
from holdfast.workspace import Workspace

U_IN_T = Side("t", ("id",))


def rows(start: int, n: int) -> pa.Table:
    return pa.table({"id": list(range(start, start + n)), "n": [i % 3 for i in range(start, start + n)]})


@dataclass(frozen=True)
class Operation:
    """`act` is given a name that no act before it had, and a folder of small tables."""

    act: Callable[[Workspace, str, Path], Any]
    undo: Callable[[Workspace], Any]


def build(ws: Workspace, folder: Path) -> None:
    """The workspace that all of them start from."""
    ws.track("t", rows(0, 10), row_key=["id"], kinds=("ucc", "fd", "ind"))
    _track(ws, "u", 5)
    _in_two_segments(ws)
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / f"{name}.csv").write_text(f"{name}\nEarth\nMars\n")
    ws.link(folder / "one")


def facts(ws: Workspace) -> dict[str, Any]:
    """All that an operation changes; the number of the version is none of it."""
    lake = ws.lake()
    assert lake is not None
    return {
        "rows": {table: ws.n_rows(table) for table in ws.tables()},
        "segments": {table: len(ws.writer.tables.state(table).segments) for table in ws.tables()},
        "holding": sorted(map(str, ws.dependencies())),
        "pins": sorted(str(pin) for pin in ws.pins() if pin.holds),
        "muted": sorted(map(str, ws.muted())),
        "links": sorted(map(list, lake.ind_names())),
    }


def _with(some: pa.Table, n: int) -> pa.Table:
    """Rows with another `n`, which no other table has."""
    return some.set_column(1, "n", [[n] * len(some)])


def _track(ws: Workspace, table: str, n: int) -> None:
    if table not in ws.tables():
        ws.track(table, rows(0, n), kinds=("ucc", "ind"))


def _drop(ws: Workspace, table: str) -> None:
    if table in ws.tables():
        ws.drop(table)


def _in_two_segments(ws: Workspace) -> None:
    """A row goes and comes back: the same rows, and something to merge."""
    ws.apply("t", deletes=rows(0, 1))
    ws.apply("t", inserts=rows(0, 1))


PINNED = [Wanted("t", ("id",)), Wanted("u", ("id",), U_IN_T), Wanted("t", rule="n < 3")]

OPERATIONS: dict[str, Operation] = {
    "apply": Operation(
        lambda ws, name, _: ws.apply("t", inserts=rows(100, 7), batch_id=name),
        lambda ws: ws.apply("t", deletes=rows(100, 7)),
    ),
    "delete": Operation(
        lambda ws, name, _: ws.apply("t", deletes=rows(3, 4), batch_id=name),
        lambda ws: ws.apply("t", inserts=rows(3, 4)),
    ),
    "update": Operation(
        lambda ws, name, _: ws.apply("t", updates=_with(rows(4, 2), 8), batch_id=name),
        lambda ws: ws.apply("t", updates=rows(4, 2)),
    ),
    "upsert": Operation(
        lambda ws, name, _: ws.apply("t", upserts=_with(rows(9, 2), 8), batch_id=name),
        lambda ws: ws.apply("t", deletes=_with(rows(10, 1), 8), updates=rows(9, 1)),
    ),
    "track": Operation(lambda ws, *_: _track(ws, "v", 6), lambda ws: ws.drop("v")),
    "drop": Operation(lambda ws, *_: _drop(ws, "u"), lambda ws: _track(ws, "u", 5)),
    "merge": Operation(lambda ws, *_: ws.merge("t"), _in_two_segments),
    "link": Operation(
        lambda ws, _, folder: ws.link(folder / "two", add=True), lambda ws: ws.unlink("two.csv")
    ),
    "pin": Operation(lambda ws, *_: ws.pin_all(PINNED), lambda ws: ws.pin_all([], prune=True)),
    "mute": Operation(lambda ws, *_: ws.mute("u", ["id"], U_IN_T), lambda ws: ws.unmute("u", ["id"], U_IN_T)),
}


# -- a race ------------------------------------------------------------------------------------------------


def race(ws: Workspace, name: str) -> None:
    """What one of several does at once, as often as `ROUNDS`; who comes second does it again."""
    done = 0
    while done < ROUNDS:
        start = 1_000 * sum(name.encode()) + 10 * done
        with contextlib.suppress(ConflictError):
            RACERS[name](ws, start)
            done += 1


def _coming_and_going(ws: Workspace, _: int) -> None:
    """A table that others do not touch, but what holds among tables is theirs, too."""
    _track(ws, "v", 6)
    while "v" in ws.tables():
        with contextlib.suppress(ConflictError):
            ws.drop("v")


def _both(ws: Workspace, start: int) -> None:
    ws.apply_all({table: {"inserts": rows(start, 10)} for table in ("t", "u")})


ROUNDS = 6
RACERS: dict[str, Callable[[Workspace, int], Any]] = {
    "one": lambda ws, start: ws.apply("t", inserts=rows(start, 10)),
    "two": lambda ws, start: ws.apply("t", inserts=rows(start, 10)),
    "drop": _coming_and_going,
    "merge": lambda ws, _: ws.merge("t"),
    "all": _both,
}


def main(operation: str, url: str, name: str, folder: str) -> None:
    with holdfast.open(url, engine="inline", create=False) as ws:
        if operation == "race":
            race(ws, name)
        else:
            OPERATIONS[operation].act(ws, name, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
