"""Workspaces that earlier releases wrote (tests/formats), one of each format: they open, and go on exactly.

Each holds the same: two tables with keys, FDs, inclusions and denial constraints after a batch, and a lake.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.core.store.format import FORMAT, OLDEST, check_marker, text_key

FOLDER = Path(__file__).resolve().parent.parent / "formats"
KINDS = ("ucc", "fd", "ind", "dc")
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


@pytest.fixture(params=range(OLDEST, FORMAT + 1))
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with zipfile.ZipFile(FOLDER / f"{request.param}.zip") as file:
        file.extractall(tmp_path)
    [root] = tmp_path.iterdir()
    assert check_marker(root) == request.param
    with holdfast.open(root, engine="inline") as ws:
        yield ws


def listed(ws: holdfast.Workspace) -> list[dict[str, object]]:
    return sorted((d.to_dict() for kind in KINDS for d in ws.dependencies(kind=kind)), key=repr)


def anew(root: Path, customers: dict[str, list[Any]]) -> list[dict[str, object]]:
    """The dependencies of the same rows, found from scratch."""
    with holdfast.open(root, engine="inline") as ws:
        # Spaces of predicates are settled when a table is tracked, so it is tracked as it was.
        ws.track("customers", pa.table(CUSTOMERS), kinds=KINDS)
        ws.track("orders", pa.table(ORDERS).slice(0, 4), kinds=KINDS)
        ws.apply("orders", inserts=pa.table(ORDERS).slice(4))
        if customers != CUSTOMERS:
            ws.apply("customers", deletes=pa.table(CUSTOMERS), inserts=pa.table(customers))
        return listed(ws)


def test_what_it_knows_is_what_holds(old: holdfast.Workspace, tmp_path: Path) -> None:
    assert old.version == 4
    assert listed(old) == anew(tmp_path / "anew", CUSTOMERS)
    assert old.verify() > 0


def test_batches_go_on_exactly(old: holdfast.Workspace, tmp_path: Path) -> None:
    change = old.apply("customers", deletes=pa.table({k: v[1:2] for k, v in CUSTOMERS.items()}))
    assert "orders[city] in customers[city]" in {str(c.dependency) for c in change.broke}
    old.apply(
        "customers", inserts=pa.table({"id": [2, 5], "name": ["Björn", "Dora"], "city": ["Malmö", None]})
    )
    old.merge("orders")
    customers = {k: [*v, more] for (k, v), more in zip(CUSTOMERS.items(), (5, "Dora", None), strict=True)}
    assert listed(old) == anew(tmp_path / "anew", customers)


def test_something_can_be_muted_in_it(old: holdfast.Workspace) -> None:
    assert old.muted() == []
    assert "muted" not in (old.ledger.commit_row(old.ledger.heads()["orders"], "orders").state or {})
    old.mute("orders", "customer -> city", reason="so far")
    with holdfast.open(old.root, engine="inline") as again:
        assert [(str(m), m.reason) for m in again.muted()] == [("customer -> city", "so far")]
        again.apply("orders", deletes=pa.table(ORDERS).slice(0, 1))
        again.unmute("orders", "customer -> city")
        # What is left of it is nothing: an earlier release finds the state that it knows.
        assert "muted" not in (again.ledger.commit_row(again.ledger.heads()["orders"], "orders").state or {})


def test_its_lake(old: holdfast.Workspace, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "capitals.csv").write_text("country,capital\nNorway,Oslo\nSweden,Stockholm\n")
    old.link(tmp_path / "more", add=True)
    lake = old.lake()
    assert lake is not None
    [value] = lake.search("Norway", "value").values
    assert {c.table for c in value.columns} == {"countries.csv", "places.csv", "capitals.csv"}


def test_texts_of_format_5_are_hashed_as_they_were(old: holdfast.Workspace) -> None:
    assert (text_key(old.root) is None) == (check_marker(old.root) == 5)
