"""The tour of `make demo`, run inline, and the files that it runs on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holdfast
from holdfast.app import demo
from holdfast.app.examples import make_orders
from holdfast.app.report.texts import dependency_text

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_what_holds_breaks_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    demo.run(tmp_path / "demo.hold", engine="inline")
    with holdfast.open(tmp_path / "demo.hold", create=False) as ws:
        *versions, linked = ws.log()
    assert linked.action == "link"
    events = [[(c.change, dependency_text(c.dependency)) for c in v.changes] for v in versions[1:]]
    assert ("broke", "orders[invoice]") in events[0]
    assert ("appeared", "orders[invoice]") in events[1]
    assert ("appeared", "orders[tracking]") in events[2]
    assert events[4] == [("broke", "orders[customer_id] in customers[customer_id]")]
    assert events[5] == [("appeared", "orders[customer_id] in customers[customer_id]")]
    assert ("broke", "orders: product -> unit_price") in events[6]
    assert {c.kind for c in versions[-1].changes if c.change == "broke"} == {"dc", "row"}
    counts = [(4000, 0), (5, 0), (0, 1), (1, 1), (712, 0), (1, 0), (1, 0), (1, 0), (800, 0), (1, 0)]
    inserted = [sum(detail["n_inserted"] for detail in v.details) for v in versions]
    deleted = [sum(detail["n_deleted"] for detail in v.details) for v in versions]
    assert list(zip(inserted, deleted, strict=True)) == counts

    text = capsys.readouterr().out
    steps = text.split("\n$ holdfast -w demo.hold ")
    assert [s.split("\n", 1)[0] for s in steps[1:]] == [
        "track orders orders.csv --row-key order_id --kinds ucc,fd,ind",
        "apply orders --inserts 1-inserts.csv",
        "apply orders --deletes 2-deletes.csv",
        "apply orders --updates 3-updates.csv",
        "track-all customers.csv products.csv --kinds ucc,ind",
        "links",
        "apply orders --inserts 4-inserts.csv",
        "apply customers --inserts 5-inserts.csv",
        "show --top 3",
        "normalise orders",
        "apply orders --inserts 6-inserts.csv",
        "explain orders 'product -> unit_price'",
        "track parcels parcels.csv --kinds dc",
        "show --kind dc --top 4",
        "apply parcels --inserts 7-inserts.csv",
        "link tables",
        "joins satellites.csv",
        "show --table orders",
    ]
    track, insert, delete, update, more, links, stranger, arrival, top, normal, typo, why = steps[1:13]
    parcels, best, heavy, lake, joins, show = steps[13:]
    assert "lake: 7 tables, 22 columns, 5 inclusions" in lake
    assert "Satellite of -> astronomy/planets.csv[Planet]" in joins
    assert "4,000 rows, 4 minimal keys, 32 minimal functional dependencies (counted evidence)" in track
    assert "[invoice] is no longer unique:" in insert
    assert insert.count("R24-004488") == 2  # both rows that share the invoice
    assert "[invoice] is unique now; its duplicates are gone" in delete
    assert "[tracking] is unique now" in update
    assert "orders[customer_id] in customers[customer_id]" in more
    proposed, _, left_out = links.partition("left out: ")
    assert "orders[customer_id] -> customers[customer_id]" in proposed
    assert "orders[product] -> products[product]" in proposed
    assert "orders[quantity]" not in proposed
    assert "see why with --all" in left_out
    assert "misses 1 value in 1 row: 701" in stranger
    assert "14006" in stranger  # the row that carries it
    assert "healed by this batch" in arrival
    assert "broke: 3 functional dependencies, each with a key above on the left" in insert
    assert "product -> unit_price\n        explains 3,993 redundant values" in top
    assert "orders_product[product, unit_price]" in normal
    assert "does not hold any more; it had held through 5 versions:" in typo
    assert "product anchor: 355 rows, 2 values of unit_price: 89.00 (354), 98.00 (1)" in why
    assert "800 rows, 27 minimal denial constraints (32 predicates, counted evidence), 3 row rules" in parcels
    rule = (
        "of two rows with the same zone, the one with the higher fee never has a lower or equal weight_kg\n"
    )
    assert rule in best
    assert rule in heavy
    assert "ordered_at < shipped_at does not hold any more: 1 row of 801 violates it" in heavy
    assert "customer_id, placed_at" in show
    assert "  1  unit_price -> product\n" in show
    assert "orders[product] in products[product]" in show
    assert str(tmp_path / "demo.hold") in show  # what to try next


def test_the_tour_fits_a_terminal_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as if it were a terminal
    monkeypatch.setenv("COLUMNS", "80")
    demo.run(tmp_path / "demo.hold", engine="inline")
    lines = ANSI.sub("", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if "R24-004488" in line]
    assert [row[1:4] for row in rows] == [["R24-004488", "|", "13988"], ["R24-004488", "|", "14004"]] * 2


def test_the_bundled_files_are_what_the_script_writes(tmp_path: Path) -> None:
    make_orders.write(tmp_path)
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    batches = ["1-inserts.csv", "2-deletes.csv", "3-updates.csv", "4-inserts.csv", "5-inserts.csv"]
    batches += ["6-inserts.csv", "7-inserts.csv"]
    assert sorted(written) == [*batches, "customers.csv", "orders.csv", "parcels.csv", "products.csv"]
    for name, content in written.items():
        assert (demo.EXAMPLES / name).read_bytes() == content
