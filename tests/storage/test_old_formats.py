"""Workspaces that earlier releases wrote (tests/formats): they open, and go on exactly.

Each holds the same two tables after a batch, with their dependencies, and a lake; `formats/make.py` says what
each has beside that.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from formats.make import CUSTOMERS, FOLDER, LIVES, ORDERS, PINS, Life, begin
from holdfast.core.store import format
from holdfast.core.store.format import FORMAT, OLDEST, check_marker, text_key

NAMES = sorted(path.stem for path in FOLDER.glob("*.zip"))


def opened(name: str, folder: Path) -> holdfast.Workspace:
    with zipfile.ZipFile(FOLDER / f"{name}.zip") as file:
        file.extractall(folder)
    [root] = folder.iterdir()
    assert check_marker(root) == int(name.split("-")[0])
    return holdfast.open(root, engine="inline")


@pytest.fixture(params=NAMES)
def life(request: pytest.FixtureRequest) -> Life:
    return LIVES[request.param]


@pytest.fixture
def old(request: pytest.FixtureRequest, life: Life, tmp_path: Path) -> Iterator[holdfast.Workspace]:
    [name] = [name for name, other in LIVES.items() if other is life]
    with opened(name, tmp_path / "old") as ws:
        yield ws


def test_every_format_has_one() -> None:
    assert sorted(LIVES) == NAMES
    assert {int(name.split("-")[0]) for name in NAMES} == {*range(OLDEST, FORMAT + 1)}


def listed(ws: holdfast.Workspace) -> list[dict[str, object]]:
    return sorted((d.to_dict() for d in ws.dependencies()), key=repr)


def anew(root: Path, life: Life, customers: dict[str, list[Any]]) -> list[dict[str, object]]:
    """The dependencies of the same rows, found from scratch."""
    with holdfast.open(root, engine="inline") as ws:
        begin(ws, life)
        if customers != CUSTOMERS:
            ws.apply("customers", deletes=pa.table(CUSTOMERS), inserts=pa.table(customers))
        return listed(ws)


def test_what_it_knows_is_what_holds(old: holdfast.Workspace, life: Life, tmp_path: Path) -> None:
    assert old.version == life.version
    assert listed(old) == anew(tmp_path / "anew", life, CUSTOMERS)
    assert old.verify() > 0


def test_batches_go_on_exactly(old: holdfast.Workspace, life: Life, tmp_path: Path) -> None:
    change = old.apply("customers", deletes=pa.table({k: v[1:2] for k, v in CUSTOMERS.items()}))
    assert "orders[city] in customers[city]" in {str(c.dependency) for c in change.broke}
    old.apply(
        "customers", inserts=pa.table({"id": [2, 5], "name": ["Björn", "Dora"], "city": ["Malmö", None]})
    )
    old.merge("orders")
    customers = {k: [*v, more] for (k, v), more in zip(CUSTOMERS.items(), (5, "Dora", None), strict=True)}
    assert listed(old) == anew(tmp_path / "anew", life, customers)


def test_something_can_be_muted_in_it(old: holdfast.Workspace) -> None:
    assert old.muted("orders") == [] or old.unmute("orders", "price -> customer")
    assert "muted" not in (old.ledger.commit_row(old.ledger.heads()["orders"], "orders").state or {})
    old.mute("orders", "price -> city", reason="so far")
    with holdfast.open(old.root, engine="inline") as again:
        assert [(str(m), m.reason) for m in again.muted("orders")] == [("price -> city", "so far")]
        again.apply("orders", deletes=pa.table(ORDERS).slice(0, 1))
        again.unmute("orders", "price -> city")
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


def test_the_next_format_reads_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format, "FORMAT", FORMAT + 1)
    with opened(str(FORMAT), tmp_path) as ws:
        assert text_key(ws.root) is not None
        # Its texts are those of the batch: by another hash none of them would be there.
        change = ws.apply("customers", deletes=pa.table({k: v[1:2] for k, v in CUSTOMERS.items()}))
        assert change.tables[0].n_deleted == 1


@pytest.fixture
def full(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with opened("6-all", tmp_path / "full") as ws:
        yield ws


def test_what_is_pinned_in_it(full: holdfast.Workspace) -> None:
    pins = full.pins("orders")
    assert {(str(p), p.holds, p.n_violations) for p in pins} == {
        ("[no]", True, None),
        ("[customer, city]", True, 2),
        ("not(t.customer = s.customer and t.city != s.city)", True, 0),
        ("not(t.city = s.city and t.price < s.price)", True, 2),
        ("price > 0", True, 0),
        ("paid is not null", True, 1),
        ("orders[city] in customers[city]", True, 0),
    }
    assert [p.terms.reason for p in pins if str(p) == "[customer, city]"] == ["more than one order"]
    assert sorted(p.terms.owner for p in pins) == sorted(w.terms.get("owner", "") for w in PINS)
    broken = {"no": [15], "customer": [2], "city": ["Oslo"], "price": [Decimal("0.00")], "paid": [None]}
    change = full.apply("orders", inserts=pa.table(broken))
    assert {(str(p), p.holds, p.n_violations) for p in change.pins} == {
        ("[no]", False, 1),
        ("[customer, city]", True, 2),
        ("not(t.customer = s.customer and t.city != s.city)", False, 4),
        ("not(t.city = s.city and t.price < s.price)", True, 2),
        ("price > 0", False, 1),
        ("paid is not null", False, 2),
        ("orders[city] in customers[city]", True, 1),
    }


def test_what_is_muted_in_it(full: holdfast.Workspace) -> None:
    assert [(str(m), m.reason) for m in full.muted()] == [
        ("[name, city]", ""),
        ("price -> customer", "prices are few"),
    ]


def test_its_profiles(full: holdfast.Workspace) -> None:
    assert {d.name for d in full.dependencies(kind="profile", table="orders")} == {
        *(f"{column} is not null" for column in ("no", "customer", "city", "price")),
        "no >= 1",
        "customer >= 1",
        "price > 0",
        "paid >= '2020-01-01'",
    }
