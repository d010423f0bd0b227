"""How the workspaces of this folder are made; `PYTHONPATH=src python tests/formats/make.py 6-all` writes one.

One is made when state has parts that no workspace here has, and then never again: it is what the release of
that day wrote. `tests/storage/test_old_formats.py` opens each of them.

- `5.zip`: keys, FDs, inclusions and denial constraints of two tables after a batch, and a lake. Texts are
  hashed with fixed seeds.
- `6.zip`: the same, with a key of its own.
- `6-all.zip`: beside that column profiles, pins of every kind with terms, conditions, something muted, merged
  segments and delete vectors, counted evidence with its changes, denial constraints up to a bound with their
  support, errors, and a lake with tables added and dropped.
- `6-witnessed.zip`: witnessed evidence, that of denial constraints with its changes.

The first two were made by hand: `begin`, and a link of two tables.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import holdfast
from holdfast import Side
from holdfast.core.cover.kernels import search
from holdfast.core.evidence import evidence_files

FOLDER = Path(__file__).resolve().parent
CUSTOMERS = {
    "id": [1, 2, 3, 4],
    "name": ["Ada", "Björn", "Chen", "Ada"],
    "city": ["London", "Malmö", "Taipei", "Taipei"],
}
ORDERS = {
    "no": [10, 11, 12, 13, 14, 15],
    "customer": [1, 2, 2, 3, 4, 1],
    "city": ["London", "Malmö", "Malmö", "Taipei", "Taipei", "London"],
    "price": [Decimal(p) for p in ("12.50", "7.00", "7.00", "99.90", "1.00", "3.25")],
    "paid": [date(2024, 1, d) if d else None for d in (2, 3, 0, 4, 5, 6)],
}
# They come and go, and leave their marks in the files.
PASSING = {
    "no": [16, 17],
    "customer": [3, 3],
    "city": ["Taipei", "Malmö"],
    "price": [Decimal("5.00"), Decimal("0.50")],
    "paid": [None, date(2024, 1, 7)],
}
COUNTRIES = "country,code\nNorway,NO\nSweden,SE\nTaiwan,TW\n"
PLACES = "place,land\nOslo,Norway\nMalmö,Sweden\nTaipei,Taiwan\n"


@dataclass(frozen=True)
class Life:
    """What a workspace of this folder has been through."""

    version: int
    kinds: tuple[str, ...] = ("ucc", "fd", "ind", "dc")
    how: Mapping[str, Any] = field(default_factory=dict)  # its tables are tracked


BOUNDED = {"max_predicates": 3, "max_error": 0.05, "evidence": "counted"}
LIVES = {
    "5": Life(4),
    "6": Life(4),
    "6-all": Life(13, ("ucc", "fd", "ind", "dc", "profile"), BOUNDED),
    "6-witnessed": Life(6, how={"evidence": "witnessed"}),
}


def begin(ws: holdfast.Workspace, life: Life) -> None:
    """What all of them begin with. Spaces of predicates are settled when a table is tracked."""
    ws.track("customers", pa.table(CUSTOMERS), kinds=life.kinds, **life.how)
    ws.track("orders", pa.table(ORDERS).slice(0, 4), kinds=life.kinds, **life.how)
    ws.apply("orders", inserts=pa.table(ORDERS).slice(4))


def go_on(ws: holdfast.Workspace, sources: Path) -> None:
    """What only the workspace with all of it has been through."""
    passing = pa.table(PASSING)
    ws.apply("orders", inserts=passing)
    ws.merge("orders")
    for row in range(2):  # a delete vector, and another one in its place
        ws.apply("orders", deletes=passing.slice(row, 1))
    ws.pin_all(PINS)
    ws.mute("orders", "price -> customer", reason="prices are few")
    ws.mute("customers", ["name", "city"])
    for name, text in (("countries", COUNTRIES), ("places", PLACES), ("more", "land\nSweden\nNorway\n")):
        (sources / f"{name}.csv").write_text(text)
    ws.link(sources / "countries.csv")
    ws.link(sources / "places.csv", sources / "more.csv", add=True)
    ws.unlink("more.csv")


def go_on_witnessed(ws: holdfast.Workspace, sources: Path) -> None:
    """What the workspace of witnessed evidence has been through."""
    ws.apply("orders", inserts=pa.table(PASSING))
    ws.apply("orders", deletes=pa.table(PASSING))
    for name, text in (("countries", COUNTRIES), ("places", PLACES)):
        (sources / f"{name}.csv").write_text(text)
    ws.link(sources / "countries.csv", sources / "places.csv")


PINS = [
    holdfast.Wanted("orders", ("no",), terms={"severity": "warning", "owner": "sales"}),
    holdfast.Wanted(
        "orders", ("customer", "city"), terms={"at_most": "50%", "reason": "more than one order"}
    ),
    holdfast.Wanted("orders", ("city",), Side("customers", ("city",)), terms={"at_most": 1}),
    holdfast.Wanted("orders", rule="customer -> city"),
    holdfast.Wanted("orders", rule="not(t.city = s.city and t.price < s.price)", terms={"at_most": "20%"}),
    holdfast.Wanted("orders", rule="price > 0", terms={"owner": "sales"}),
    holdfast.Wanted("orders", rule="paid is not null", terms={"at_most": 1, "severity": "info"}),
]


HISTORIES: dict[str, Callable[[holdfast.Workspace, Path], None]] = {
    "6-all": go_on,
    "6-witnessed": go_on_witnessed,
}


def make(name: str) -> None:
    """Write the workspace of a name, unless it is there; of small limits, so that it has all files."""
    if name not in HISTORIES or (FOLDER / f"{name}.zip").exists():
        raise SystemExit(f"{name}.zip is there, or of an earlier release.")
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(search, "MANY_BOUNDED", 2),
        patch.object(evidence_files, "DELTAS_FROM", 1),
        patch.object(evidence_files, "DELTA_SHARE", 10.0),
        patch.object(evidence_files, "DELTAS_SHARE", 10.0),
    ):
        root, sources = Path(folder) / "zipped" / "ws", Path(folder) / "sources"
        sources.mkdir()
        with holdfast.open(root, engine="inline") as ws:
            begin(ws, LIVES[name])
            HISTORIES[name](ws, sources)
            ws.tidy(grace_s=0)
            print(ws.log())
        shutil.make_archive(str(FOLDER / name), "zip", root.parent)


if __name__ == "__main__":
    make(sys.argv[1])
