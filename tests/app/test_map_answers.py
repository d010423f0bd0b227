"""What the page is told of the map of tracked tables, asked without a browser."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.map_cases import HOSTILE, PRODUCTS, large, parcels, shop
from app.test_er_layout import inside
from holdfast.app.commands.linking import model_of
from holdfast.app.explorer import Explorer
from holdfast.app.explorer.map_answers import MOST_ORPHANS
from holdfast.app.explorer.routes import NotFoundError
from holdfast.app.export import to_mermaid
from holdfast.app.export.er_layout import Box
from holdfast.core.words.dependency import Side


@pytest.fixture(scope="module")
def explorer(tmp_path_factory: pytest.TempPathFactory) -> Explorer:
    return Explorer(shop(tmp_path_factory.mktemp("map") / "shop"))


def references(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{r['child']}.{r['columns'][0]}": r for r in answer["references"]}


def check_drawing(answer: dict[str, Any]) -> None:
    """No line goes through a box; every line ends at the columns that it is about."""
    tables = {t["name"]: t for t in answer["tables"]}
    boxes = [(Box(t["width"], t["height"]), (t["x"], t["y"])) for t in answer["tables"]]
    for r in answer["references"]:
        for a, b in pairwise(r["path"]):
            assert not any(inside(box, at, tuple(a), tuple(b)) for box, at in boxes)
        sizes = answer["sizes"]
        for end, side, column in (
            (r["path"][0], "child", r["columns"][0]),
            (r["path"][-1], "parent", r["parent_columns"][0]),
        ):
            table = tables[r[side]]
            row = [c["name"] for c in table["columns"]].index(column)
            assert end[1] == pytest.approx(table["y"] + sizes["head"] + sizes["row"] * (row + 0.5))
            assert end[0] in (table["x"], table["x"] + table["width"])


def test_the_map_has_boxes_ways_and_what_is_known_of_references(explorer: Explorer) -> None:
    answer = explorer.answer("workspace/map", {})
    check_drawing(answer)
    found = references(answer)
    assert {name: r["state"] for name, r in found.items()} == {
        "orders.customer_id": "broken",
        "orders.discount_id": "unproved",
        "lines.order_id": "holds",
        "lines.product_id": "broken",
    }
    products = found["lines.product_id"]
    assert (products["parent"], products["parent_columns"]) == ("products", ["product_id"])
    assert products["ends"] == ["zero or more", "zero or one"]
    assert (products["missing_values"], products["missing_rows"]) == (2, 16)
    assert products["coverage"] == 1 - 2 / 57
    assert products["used"] == pytest.approx(55 / 58)
    assert found["lines.order_id"]["used"] == 110 / 120
    assert found["lines.order_id"]["ends"] == ["zero or more", "exactly one"]
    assert found["orders.discount_id"]["used"] is None
    assert [name for name, r in found.items() if r["pinned"]] == ["lines.order_id"]
    # No export would propose it any more.
    assert found["orders.customer_id"]["missing_values"] == 30
    marks = {t["name"]: {c["name"]: c["marks"] for c in t["columns"]} for t in answer["tables"]}
    assert marks["lines"] == {"line_id": ["PK"], "order_id": ["FK"], "product_id": ["FK"]}
    [alone] = [t for t in answer["tables"] if t["y"] >= answer["apart"]]
    assert alone["name"] == HOSTILE


def test_boxes_are_there_before_references(explorer: Explorer) -> None:
    answer = explorer.answer("workspace/map", {"references": "no"})
    assert answer["references"] == []
    assert [t["name"] for t in answer["tables"]] == sorted(
        ["customers", "orders", "lines", "products", "discounts", HOSTILE]
    )


def test_the_diagram_is_that_of_the_export(explorer: Explorer) -> None:
    text = explorer.answer("workspace/map/mermaid", {})["text"]
    assert text == to_mermaid(model_of(explorer._newest.workspace))


def test_orphans_are_listed_with_the_rows_that_have_them(explorer: Explorer) -> None:
    found = references(explorer.answer("workspace/map", {}))["lines.product_id"]
    answer = explorer.answer("workspace/orphans", {"table": "lines", "ask": found["ask"]})
    assert answer["values"] == [{"value": "p003", "n_rows": 9}, {"value": "p005", "n_rows": 7}]
    assert (answer["n_values"], answer["n_rows"], answer["complete"]) == (2, 16, True)
    assert answer["since"] == answer["turned"]["version"] == 3
    assert answer["turned"]["batch_id"] == "spring"


def test_what_holds_has_no_orphans(explorer: Explorer) -> None:
    found = references(explorer.answer("workspace/map", {}))
    for name, since in (("lines.order_id", 1), ("orders.discount_id", None)):
        asked = {"table": found[name]["child"], "ask": found[name]["ask"]}
        answer = explorer.answer("workspace/orphans", asked)
        assert (answer["values"], answer["n_values"], answer["since"]) == ([], 0, since)


def test_an_unknown_reference_is_not_found(explorer: Explorer) -> None:
    with pytest.raises(NotFoundError, match=r"table 'lines' has no reference 'lines\[x\]'"):
        explorer.answer("workspace/orphans", {"table": "lines", "ask": "lines[x]"})


def test_the_map_is_that_of_the_newest_version(tmp_path: Path) -> None:
    ws = shop(tmp_path / "shop")
    explorer = Explorer(ws)
    assert references(explorer.answer("workspace/map", {}))["lines.product_id"]["state"] == "broken"
    ws.apply("products", inserts=PRODUCTS.take([3, 5]))
    healed = references(explorer.answer("workspace/map", {}))["lines.product_id"]
    assert healed["state"] == "holds"
    answer = explorer.answer("workspace/orphans", {"table": "lines", "ask": healed["ask"]})
    assert (answer["since"], answer["values"]) == (5, [])


def test_many_orphans_are_bounded(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    n = MOST_ORPHANS + 50
    parents = pa.table({"id": list(range(n))})
    # Value i in i + 1 rows.
    children = pa.table({"parent_id": [i for i in range(n) for _ in range(i + 1)]})
    ws.track_all({"parents": parents, "children": children}, kinds=("ucc", "ind"))
    ws.pin("children", ["parent_id"], referenced=Side("parents", ("id",)))
    ws.apply("parents", deletes=parents)
    explorer = Explorer(ws)
    [found] = explorer.answer("workspace/map", {})["references"]
    answer = explorer.answer("workspace/orphans", {"table": "children", "ask": found["ask"]})
    wanted = [{"value": i, "n_rows": i + 1} for i in reversed(range(n - MOST_ORPHANS, n))]
    assert answer["values"] == wanted
    assert (answer["n_values"], answer["n_rows"]) == (n, n * (n + 1) // 2)


def test_a_pinned_inclusion_is_a_reference_though_it_never_held(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    tables = {
        "sizes": pa.table({"size": ["S", "M", "L"]}),
        "shirts": pa.table({"fit": ["S", "M", "XL", "?"]}),
    }
    ws.track_all(tables, kinds=("ucc", "ind"))
    ws.pin("shirts", ["fit"], referenced=Side("sizes", ("size",)))
    [found] = Explorer(ws).answer("workspace/map", {})["references"]
    assert (found["state"], found["pinned"], found["missing_rows"]) == ("broken", True, 2)


def test_a_column_that_refers_elsewhere_now_has_one_reference(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ids = [f"s{i:03}" for i in range(80)]
    tables = {
        "sites": pa.table({"site_id": ids}),
        "sites_new": pa.table({"site_id": [*ids, "more"]}),
        "visits": pa.table({"visit_id": range(90), "site_id": [ids[i % 70] for i in range(90)]}),
    }
    ws.track_all(tables, kinds=("ucc", "ind"))
    explorer = Explorer(ws)

    def parents() -> list[tuple[str, str]]:
        found = explorer.answer("workspace/map", {})["references"]
        return [(r["parent"], r["state"]) for r in found if r["child"] == "visits"]

    assert parents() == [("sites", "holds")]
    ws.apply("sites", deletes=tables["sites"].slice(0, 40))
    assert parents() == [("sites_new", "holds")]


def test_a_copied_column_is_no_broken_reference(tmp_path: Path) -> None:
    """What told that it is a copy, an inclusion of both columns, broke as well."""
    ws = holdfast.open(tmp_path / "w", engine="inline")
    mails = [f"{i}.{'abcdefgh'[i % 8]}@example.org" for i in range(60)]
    customers = pa.table({"customer_id": list(range(1, 61)), "mail": mails})
    ids = [i % 60 for i in range(200)]
    orders = pa.table(
        {
            "order_id": [f"o{i}" for i in range(200)],
            "customer_id": [i + 1 for i in ids],
            "customer_mail": [mails[i] for i in ids],
        }
    )
    ws.track_all({"customers": customers, "orders": orders}, kinds=("ucc", "ind"))
    explorer = Explorer(ws)
    assert set(references(explorer.answer("workspace/map", {}))) == {"orders.customer_id"}
    ws.apply("customers", deletes=customers.slice(0, 20))
    assert len(ws.inds.broken()) >= 2
    [found] = explorer.answer("workspace/map", {})["references"]
    assert (found["columns"], found["missing_values"]) == (["customer_id"], 20)


def test_references_of_several_columns(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    orders, lines = [f"o{i // 6}" for i in range(36)], [i % 6 for i in range(36)]
    parents = pa.table({"order_no": orders, "line_no": lines, "price": [i * 1.5 for i in range(36)]})
    children = pa.table(
        {"parcel_id": [f"x{i}" for i in range(68)], "order_no": orders[:34] * 2, "line_no": lines[:34] * 2}
    )
    ws.track_all({"order_lines": parents, "parcels": children}, kinds=("ucc", "ind"))
    explorer = Explorer(ws)
    answer = explorer.answer("workspace/map", {})
    [found] = [r for r in answer["references"] if len(r["columns"]) == 2]
    assert dict(zip(found["columns"], found["parent_columns"], strict=True)) == {
        "order_no": "order_no",
        "line_no": "line_no",
    }
    assert found["used"] is None
    told = explorer.answer("workspace/orphans", {"table": found["child"], "ask": found["ask"]})
    assert told["since"] == 1


@pytest.mark.parametrize("pinned", [False, True])
def test_a_broken_reference_of_several_columns_is_told_everywhere(pinned: bool, tmp_path: Path) -> None:
    explorer = Explorer(parcels(tmp_path / "w", pinned=pinned))

    def wide(table: str, side: str) -> list[Any]:
        listed = explorer.answer("workspace/table", {"name": table})["references"][side]
        return [r for r in listed if len(r["dependent"]["columns"]) > 1]

    [overview] = [t for t in explorer.answer("workspace/overview", {})["tables"] if t["name"] == "parcels"]
    assert overview["health"] == "broken"
    ask = overview["why"][0]["ask"]
    assert ask == "parcels[order_no, line_no] in order_lines[order_no, line_no]"
    [reference] = [r for r in explorer.answer("workspace/map", {})["references"] if r["child"] == "parcels"]
    assert (reference["state"], reference["pinned"], reference["ask"]) == ("broken", pinned, ask)
    assert (reference["missing_values"], reference["missing_rows"]) == (2, 4)
    assert reference["coverage"] == 1 - 2 / 34
    answer = explorer.answer("workspace/orphans", {"table": "parcels", "ask": ask})
    assert answer["values"] == [{"value": ["o1", 2], "n_rows": 2}, {"value": ["o1", 3], "n_rows": 2}]
    assert (answer["n_values"], answer["n_rows"], answer["complete"]) == (2, 4, True)
    assert answer["turned"]["batch_id"] == "lost"
    for table, side in (("parcels", "out"), ("order_lines", "into")):
        [listed] = wide(table, side)
        assert listed["ask"] == ask
        assert listed["role"] == ("pinned" if pinned else "foreign key")
        assert (listed["missing_values"], listed["missing_rows"]) == (2, 4)
    assert explorer.answer("workspace/explain", {"table": "parcels", "ask": ask})["holds"] is False
    page = explorer.answer("workspace/violations", {"table": "parcels", "ask": ask})
    assert (page["n_violating"], page["n_groups"]) == (4, 2)
    # Lines that the table has again make it hold.
    ws = explorer._newest.workspace
    ws.apply(
        "order_lines", inserts=pa.table({"order_no": ["o1"] * 2, "line_no": [2, 3], "price": [0.0, 1.0]})
    )
    [reference] = [r for r in explorer.answer("workspace/map", {})["references"] if r["child"] == "parcels"]
    assert (reference["state"], reference["missing_values"]) == ("holds", 0)
    [listed] = wide("parcels", "out")
    assert not listed["missing_values"]


def copied(place: Path) -> holdfast.Workspace:
    """Half of the customers are gone; orders have copies of their mails, which never were references."""
    mails = [f"{i}.{'abcdefgh'[i % 8]}@example.org" for i in range(60)]
    customers = pa.table({"customer_id": list(range(1, 61)), "mail": mails})
    ids = [i % 60 for i in range(200)]
    orders = {"order_id": [f"o{i}" for i in range(200)], "customer_id": [i + 1 for i in ids]}
    ws = holdfast.open(place, engine="inline")
    tables = {
        "customers": customers,
        "orders": pa.table({**orders, "customer_mail": [mails[i] for i in ids]}),
    }
    ws.track_all(tables, kinds=("ucc", "ind"))
    ws.apply("customers", deletes=customers.slice(0, 30))
    return ws


def moved(place: Path) -> holdfast.Workspace:
    """Visits refer to the new sites now; a pin says that they refer to colours, which never was so."""
    ids = [f"s{i:03}" for i in range(80)]
    sites = pa.table({"site_id": ids})
    visits = pa.table({"visit_id": range(90), "site_id": [ids[i % 70] for i in range(90)]})
    ws = holdfast.open(place, engine="inline")
    colours = pa.table({"colour": ["red", "green", "s001"]})
    tables = {"sites": sites, "sites_new": pa.table({"site_id": [*ids, "more"]}), "visits": visits}
    ws.track_all({**tables, "colours": colours}, kinds=("ucc", "ind"))
    ws.pin("visits", ["site_id"], referenced=Side("colours", ("colour",)))
    ws.apply("sites", deletes=sites.slice(0, 40))
    return ws


@pytest.mark.parametrize(("made", "n"), [(shop, 2), (parcels, 1), (copied, 1), (moved, 1)])
def test_what_is_broken_on_the_map_is_so_in_both_tables(made: Any, n: int, tmp_path: Path) -> None:
    ws = made(tmp_path / "w")
    explorer = Explorer(ws)
    drawn = {r["ask"] for r in explorer.answer("workspace/map", {})["references"] if r["state"] == "broken"}
    assert len(drawn) == n
    for side in ("out", "into"):
        tables = [explorer.answer("workspace/table", {"name": name}) for name in ws.tables()]
        listed = [r for table in tables for r in table["references"][side] if r["missing_values"]]
        assert sorted(r["ask"] for r in listed) == sorted(drawn), side


def test_map_and_table_have_the_same_primary_keys(tmp_path: Path) -> None:
    """Of tables that take no part in inclusions, too, and none where no key is worth it."""
    ws = shop(tmp_path / "w")
    ws.track("lonely", pa.table({"id": list(range(9)), "word": ["a"] * 9}), kinds=("ucc",))
    notes = pa.table({"day": [f"2026-01-0{i % 9}" for i in range(9)], "note": [i * 0.3 for i in range(9)]})
    ws.track("notes", notes, kinds=("ucc", "ind"))
    explorer = Explorer(ws)
    drawn = {
        t["name"]: [c["name"] for c in t["columns"] if "PK" in c["marks"]]
        for t in explorer.answer("workspace/map", {})["tables"]
    }
    listed = {
        name: [
            c["name"]
            for c in explorer.answer("workspace/table", {"name": name})["columns"]
            if c["is_primary"]
        ]
        for name in ws.tables()
    }
    assert drawn == listed
    assert (drawn["lonely"], drawn["notes"], drawn["lines"]) == (["id"], [], ["line_id"])


@pytest.mark.parametrize("kinds", [("ucc",), ("ucc", "ind")])
def test_without_references_the_tables_are_there(kinds: tuple[str, ...], tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("t", pa.table({"a": list(range(5))}), kinds=kinds)
    answer = Explorer(ws).answer("workspace/map", {})
    assert answer["without_inclusions"] == ([] if "ind" in kinds else ["t"])
    assert (len(answer["tables"]), answer["references"], answer["apart"]) == (1, [], None)


def test_a_workspace_without_tables_has_an_empty_map(tmp_path: Path) -> None:
    answer = Explorer(holdfast.open(tmp_path / "w", engine="inline")).answer("workspace/map", {})
    assert (answer["tables"], answer["references"]) == ([], [])


def test_a_hundred_tables_and_two_hundred_references(tmp_path: Path) -> None:
    answer = Explorer(large(tmp_path / "w")).answer("workspace/map", {})
    assert (len(answer["tables"]), len(answer["references"])) == (100, 200)
    check_drawing(answer)
    joined = {r[side] for r in answer["references"] for side in ("child", "parent")}
    for table in answer["tables"]:
        assert (table["y"] >= answer["apart"]) == (table["name"] not in joined)
