"""The view of one dependency in a browser: asked for, its life on a line and as a list, the rows."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest

import holdfast
from app.browser import PAGE, expect, explored, until
from app.explorer_fake import IMAGE, SCRIPT
from holdfast.app.explorer import ExplorerServer

pytestmark = PAGE
N = 120  # orders of one product
ALL = N + 2  # with one that replaces another, and one of another price


def orders(first: int, n: int, price: float = 2.5) -> pa.Table:
    ids = list(range(first, first + n))
    return pa.table({"id": ids, "product": ["rope"] * n, "price": [price] * n, SCRIPT: [IMAGE] * n})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Workspace]:
    """`id` broke and was healed; `product -> price` is broken."""
    with holdfast.open(tmp_path_factory.mktemp("page") / "w", engine="inline") as ws:
        ws.track("orders", orders(1, N), kinds=("ucc", "fd", "ind"))
        ws.track("gone", orders(1, 1), kinds=("ucc",))
        ws.drop("gone")
        ws.apply("orders", inserts=orders(1, 1), batch_id="twice")
        ws.apply("orders", deletes=orders(1, 1), inserts=orders(N + 1, 1), batch_id="mended")
        ws.apply("orders", inserts=orders(N + 2, 1, 3.5), batch_id="dear")
        ws.pin("orders", ["id"], owner="ann", reason="invoices name it")
        yield ws


@pytest.fixture(scope="module")
def server(shop: holdfast.Workspace) -> Iterator[ExplorerServer]:
    with explored(shop) as server:
        yield server


def at(ask: str, table: str = "orders") -> str:
    return f"#{urlencode({'tab': 'dependency', 'name': table, 'ask': ask})}"


def verdict(page: Any) -> Any:
    return page.locator(".verdict-state")


def test_what_is_broken(browse: Callable[..., Any], server: ExplorerServer) -> None:
    """Since when, by which batch and row; the rows page and sort, and what would mend them is marked."""
    page = browse(server, at("product -> price"), scheme="dark")
    expect(verdict(page)).to_have_text("Does not hold")
    expect(page.locator(".sentence")).to_have_text("Rows with the same product have the same price.")
    expect(page.locator(".in-short")).to_contain_text("Until then it had never broken.")
    turn = page.locator(".turns details[open]")
    expect(turn.locator("summary")).to_contain_text("batch dear")
    expect(turn.locator(".flag.brought")).to_have_text("row 1 of the batch")
    rows = page.locator(".violations tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first.locator("td").nth(1)).to_have_text("batch dear, row 1")
    expect(rows.nth(1).locator("td").nth(1)).to_have_text("version 1, row 2")
    expect(rows.nth(1).locator("td").nth(1).locator("span")).to_have_attribute(
        "title", "Row 0.1: inserted by version 1, as row 2 of what it inserted"
    )
    expect(page.locator(".violations .facts")).to_contain_text(f"{ALL} of {ALL} rows violate it")
    expect(rows.first).to_have_class("remove")
    expect(rows.first.locator(".repair")).to_contain_text(f"2.5 {ALL - 1} of {ALL} rows have it")
    expect(page.locator(".violations tr.remove")).to_have_count(1)
    # Up, down, and as they came; the keyboard stays where it was.
    head = page.locator(".violations th", has_text="id").get_by_role("button", name="id", exact=True)
    head.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".violations th[aria-sort=ascending]")).to_have_count(1)
    expect(rows.first.locator("td").nth(6)).to_have_text("1")
    expect(page.locator(".violations th[aria-sort=ascending] button")).to_be_focused()
    page.keyboard.press("Enter")
    expect(rows.first).to_have_class("remove")
    expect(page.locator(".violations th[aria-sort=descending]")).to_have_count(1)
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".pager")).to_contain_text(f"Rows 51 to 100 of {ALL}")
    page.get_by_role("button", name="Next").click()
    expect(rows).to_have_count(ALL - 100)
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    with page.expect_download() as loading:
        page.get_by_role("link", name="Download all as CSV").click()
    assert loading.value.suggested_filename == "orders-violations.csv"
    with Path(loading.value.path()).open(newline="", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == ALL


def test_what_broke_and_holds_again(browse: Callable[..., Any], server: ExplorerServer) -> None:
    """The line has a button for each stretch, and arrow keys go along it; the list says the same."""
    page = browse(server, at("[id]"))
    expect(verdict(page)).to_have_text("Holds")
    expect(page.locator(".in-short")).to_contain_text("It broke once before.")
    expect(page.locator(".verdict")).to_contain_text("owner ann")
    expect(page.locator(".verdict")).to_contain_text("invoices name it")
    bars = page.locator(".life-line button")
    expect(bars).to_have_count(3)
    expect(page.locator(".turns summary .stretch-state")).to_have_text(
        ["Holds since version 5", "Did not hold in version 4", "Held in versions 1 to 3"]
    )
    expect(page.locator(".turns details[open] summary")).to_contain_text("batch twice")
    bars.nth(1).focus()
    page.keyboard.press("ArrowRight")
    expect(bars.nth(2)).to_be_focused()
    page.keyboard.press("Home")
    expect(bars.nth(0)).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(bars.nth(2)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".turns details").first).to_have_attribute("open", "")
    expect(page.locator(".violations")).to_contain_text("known without a look at the rows")


def test_what_it_follows_from(browse: Callable[..., Any], server: ExplorerServer) -> None:
    page = browse(server, at("[id, price]"))
    expect(page.locator(".implied")).to_contain_text("It follows from [id]")
    page.locator(".implied a").first.click()
    expect(page.locator("#ask-text")).to_have_value("[id]")
    expect(page.locator(".verdict h2")).to_have_text("[id]")
    page.go_back()
    expect(page.locator(".verdict h2")).to_have_text("[id, price]")


def test_asking(browse: Callable[..., Any], server: ExplorerServer) -> None:
    """Columns and signs are proposed; the keyboard chooses; names that need quotes get them."""
    page = browse(server, "#tab=dependency&name=orders")
    field, options = page.get_by_role("combobox", name="Dependency"), page.locator("#ask-list [role=option]")
    expect(page.locator(".examples button").first).to_contain_text("[id]")
    expect(field).to_have_attribute("aria-expanded", "false")
    field.press_sequentially("pro")
    expect(options.first).to_contain_text("product")
    expect(field).to_have_attribute("aria-expanded", "true")
    field.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    expect(field).to_have_attribute("aria-activedescendant", options.first.get_attribute("id"))
    field.press("ArrowUp")  # round the end
    expect(options.last).to_have_attribute("aria-selected", "true")
    field.press("Escape")
    expect(page.locator("#ask-list")).to_be_hidden()
    field.press("ArrowUp")  # opens the list at its end
    expect(options.last).to_have_attribute("aria-selected", "true")
    field.press("Escape")
    field.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    field.press("Enter")
    expect(field).to_have_value("product ")
    expect(options.first).to_contain_text("->")
    field.press_sequentially("-> pri")
    expect(options.first).to_contain_text("price")
    field.press("ArrowDown")
    field.press("Enter")
    field.press("Escape")
    expect(page.locator("#ask-list")).to_be_hidden()
    field.press("Enter")
    expect(verdict(page)).to_have_text("Does not hold")
    assert "ask=product+-%3E+price" in page.evaluate("location.hash")
    field.fill("")
    field.press_sequentially("not(t.")
    option = options.filter(has_text="script")
    expect(option).to_have_count(1)
    option.click()
    expect(field).to_have_value(f'not(t."{SCRIPT}" ')
    field.fill("orders[id] in ord")
    expect(options).to_have_text(re.compile(r"orders\["))


def test_a_condition_that_nobody_watches(browse: Callable[..., Any], server: ExplorerServer) -> None:
    page = browse(server, at("price > 3"), width=600)
    expect(verdict(page)).to_have_text("Does not hold")
    expect(page.locator(".life")).to_contain_text("nobody kept watch over it")
    expect(page.locator(".violations .facts")).to_contain_text(f"{ALL - 1} of {ALL} rows violate it")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_errors(browse: Callable[..., Any], server: ExplorerServer) -> None:
    """What the server says, with the place in the text; and what can be asked instead."""
    page = browse(server, at("prodct -> price"))
    expect(page.get_by_role("alert")).to_contain_text("no column 'prodct'")
    expect(page.get_by_role("alert")).to_contain_text("Did you mean 'product'?")
    page.goto(server.page_address + at("not(t.id = s.id and t.price ~ s.price)"))
    expect(page.get_by_role("alert").locator("pre")).to_contain_text("^")
    page.goto(server.page_address + at("[id]", "gone"))
    expect(page.get_by_role("alert")).to_contain_text("was dropped at version 3")
    page.goto(server.page_address + at("[id]", "nobody"))
    expect(page.get_by_role("alert")).to_contain_text("no table 'nobody'")


def test_what_takes_long_says_so(browse: Callable[..., Any], server: ExplorerServer) -> None:
    page = browse(server, "#tab=dependency")
    held: list[Any] = []
    page.route("**/api/workspace/violations?*", lambda route: held.append(route))
    page.goto(server.page_address + at("product -> price"))
    expect(page.locator(".violations .notice")).to_contain_text(re.compile(r"looked at: \d+ s"))
    expect(verdict(page)).to_have_text("Does not hold")  # what is known is there
    for route in held:
        route.continue_()
    page.unroute("**/api/workspace/violations?*")
    expect(page.locator(".violations tbody tr")).to_have_count(50)


def test_a_new_version_is_shown_in_place(browse: Callable[..., Any], tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", orders(1, 3), kinds=("ucc", "fd"))
        ws.apply("t", inserts=orders(7, 1, 9.0))
        with explored(ws) as server:
            page = browse(server, at("product -> price", "t"))
            expect(page.locator(".violations tbody tr")).to_have_count(4)
            page.evaluate("window.__same = document.querySelector('.verdict')")
            ws.apply("t", inserts=orders(8, 1, 9.0))
            expect(page.locator(".violations tbody tr")).to_have_count(5)  # now nothing is made anew below
            page.locator(".violations th button").nth(1).click()
            expect(page.locator(".violations th[aria-sort=ascending]")).to_have_count(1)
            ws.apply("t", deletes=pa.concat_tables([orders(7, 1, 9.0), orders(8, 1, 9.0)]))
            expect(verdict(page)).to_have_text("Holds")
            until(page, "window.__same === document.querySelector('.verdict')")


def test_how_much_is_against_a_pin_is_drawn_and_said(browse: Callable[..., Any], tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("orders", orders(1, 8), kinds=("ucc", "fd"))
        ws.pin_rule("product -> price", table="orders", at_most="60%")
        for i, price in enumerate((2.5, 9.0, 9.0, 2.5)):
            ws.apply("orders", inserts=orders(10 + i, 1, price))
        ws.pin("orders", ["id"])
        with explored(ws) as server:
            page = browse(server, at("product -> price"))
            expect(page.locator(".against-words")).to_have_text(
                "Against it: 0 ordered pairs of rows in version 2; "
                "40 ordered pairs of rows (30.3%) since version 6."
            )
            parts = page.locator(".life-line .stretch .against")
            expect(parts).to_have_count(page.locator(".life-line .stretch").count())
            # As high as the most that was against it, and along the versions of the stretch.
            ways = parts.locator("path").evaluate_all("all => all.map((path) => path.getAttribute('d'))")
            assert ways[-1] == "M0.00 14.10H25.00L25.00 4.20H50.00L50.00 2.00H100.00"
            page = browse(server, at("[id]"))
            expect(page.locator(".against-words")).to_have_text("Against it: 0 rows in version 7.")
