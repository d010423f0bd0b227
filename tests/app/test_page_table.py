"""The view of one table in a browser: what is broken, what holds, filters, the picture, a new version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.browser import PAGE, Page, expect, explored, tab_to, until
from holdfast.app.explorer import listeners

pytestmark = PAGE

PAINTED = "performance.getEntriesByName('holdfast-painted-table').length > 0"
HOSTILE = '<img src=x onerror="window.__owned = 2">'
Browse = Callable[..., Page]


def orders(first: int, n: int, **more: list[Any]) -> pa.Table:
    numbers = range(first, first + n)
    columns: dict[str, list[Any]] = {
        "order_id": list(numbers),
        "customer_id": [i % 30 + 1 for i in numbers],
        "zip": [i % 8 for i in numbers],
        "city": [f"town {i % 8 // 2}" for i in numbers],
        "net": [i * 7 % 13 for i in numbers],
        "gross": [i * 7 % 13 + i % 3 for i in numbers],
        HOSTILE: [f"{HOSTILE}{i % 5}" for i in numbers],
    }
    return pa.table({**columns, **more})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Workspace]:
    """Customers and orders; a batch broke a pinned condition and a reference."""
    with holdfast.open(tmp_path_factory.mktemp("shop") / "w", engine="inline") as ws:
        customers = pa.table({"id": list(range(1, 41)), "name": [f"n{i % 9}" for i in range(40)]})
        ws.track_all(
            {"customers": customers, "orders": orders(1, 240)}, kinds=("ucc", "fd", "ind", "row", "profile")
        )
        ws.pin("orders", ["order_id"], owner="ann")
        ws.pin_rule("net >= 0", table="orders", severity="warning", reason="no refunds here")
        ws.apply("orders", inserts=orders(900, 1, customer_id=[77], net=[-5]), batch_id="night-1")
        yield ws


def open_orders(browse: Browse, server: Any, more: str = "", **how: Any) -> Page:
    page = browse(server, f"#tab=table&name=orders{more}", **how)
    until(page, PAINTED)
    return page


def of(page: Page, section: str) -> Any:
    return page.locator(f"#tracked-table .of-{section}")


def test_what_a_table_is_and_what_is_broken(browse: Browse, shop: holdfast.Workspace) -> None:
    with explored(shop) as server:
        page = open_orders(browse, server)
        expect(page.locator("#tracked-table h2")).to_have_text("orders")
        alarms = page.locator(".breakages > li")
        expect(alarms).to_have_count(2)
        expect(alarms.nth(0)).to_contain_text("net >= 0")
        expect(alarms.nth(0)).to_contain_text("1 row")
        expect(alarms.nth(1)).to_contain_text("orders[customer_id] in customers[id]")
        expect(alarms.nth(1)).to_contain_text("1 value missing in 1 row")
        expect(of(page, "keys")).to_contain_text("[order_id]")
        expect(of(page, "keys").locator(".why")).to_contain_text("named like a key")
        expect(of(page, "keys").locator(".why")).to_contain_text("never NULL")
        columns = of(page, "columns")
        expect(columns.locator("tbody tr")).to_have_count(7)
        expect(columns.locator("tbody tr").nth(0)).to_contain_text("PK")
        expect(columns.locator("tbody tr").nth(1)).to_contain_text("FK")
        expect(columns.locator("tbody tr").nth(4)).to_contain_text("-5")
        expect(columns.locator("tbody tr").nth(6)).to_contain_text(HOSTILE)
        expect(of(page, "pins").locator("tr")).to_have_count(2)
        expect(of(page, "pins").locator("tr").nth(0)).to_contain_text("warning")
        expect(of(page, "pins").locator("tr").nth(1)).to_contain_text("owner ann")
        expect(of(page, "history").locator(".history > li")).to_have_count(4)
        # The lost reference leads to the table that it is about.
        of(page, "references").locator("a.to", has_text="customers").first.click()
        expect(page.locator("#tracked-table h2")).to_have_text("customers")
        expect(of(page, "references")).to_contain_text("orders")
        page.go_back()
        expect(page.locator("#tracked-table h2")).to_have_text("orders")


def test_filters(browse: Browse, shop: holdfast.Workspace) -> None:
    with explored(shop) as server:
        page = open_orders(browse, server)
        rows, status = page.locator(".dependency"), page.locator(".narrowing .status")
        chip = page.locator(".chips-of-kinds button", has_text="Functional dependencies")
        chip.click()
        expect(chip).to_have_attribute("aria-pressed", "true")
        expect(rows.locator(".kind").first).to_have_text("FD")
        until(page, "performance.getEntriesByName('holdfast-filtered').length > 0")
        page.locator(".narrowing input[type=search]").fill("zip -> city")
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text("zip -> city")
        expect(rows.first).to_contain_text("since v1")
        expect(status).to_contain_text("1 of")
        until(page, "location.hash.includes('q=zip') && location.hash.includes('kind=fd')")
        # Leads to all about it.
        link = rows.first.locator("a.ask").get_attribute("href")
        assert link.startswith("#tab=dependency&name=orders&ask=zip")
        page.locator(".narrowing input[type=search]").fill("")
        chip.locator("xpath=..").locator("button").first.click()
        column = of(page, "columns").locator("button.column").nth(3)
        column.click()
        expect(column).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".of-column .chip")).to_contain_text("city")
        until(
            page,
            "[...document.querySelectorAll('.dependency .what')].every(e => e.textContent.includes('city'))",
        )
        page.locator(".of-column .chip").click()
        expect(column).to_have_attribute("aria-pressed", "false")
        page.locator(".narrowing input[type=range]").fill("0.9")
        expect(page.locator(".narrowing output")).to_have_text("≥ 0.90")
        until(
            page,
            "[...document.querySelectorAll('.dependency .number')].every(e => Number(e.textContent) >= 0.9)",
        )
        page.locator(".narrowing input[type=search]").fill("no such thing")
        expect(page.locator(".dependencies")).to_contain_text("Take a filter away")


def test_the_address_has_the_filters(browse: Browse, shop: holdfast.Workspace) -> None:
    with explored(shop) as server:
        page = open_orders(browse, server, "&column=zip&kind=fd&q=city&score=0.2", scheme="dark", width=600)
        expect(page.locator(".of-column .chip")).to_contain_text("zip")
        expect(page.locator(".narrowing input[type=search]")).to_have_value("city")
        expect(page.locator(".narrowing output")).to_have_text("≥ 0.20")
        expect(page.locator(".chips-of-kinds [aria-pressed=true]")).to_contain_text("Functional dependencies")
        expect(page.locator(".dependency", has_text="zip -> city")).to_have_count(1)
        for row in page.locator(".dependency .what").all_text_contents():
            assert "zip" in row
            assert "city" in row
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width == 0  # nothing sticks out


def test_what_looks_like_chance_is_folded_away(browse: Browse, shop: holdfast.Workspace) -> None:
    with explored(shop) as server:
        page = open_orders(browse, server)
        expect(page.locator(".dependency.chance")).to_have_count(0)
        more = page.locator(".further button")
        while "chance" not in more.text_content():
            before = page.locator(".dependency").count()
            more.click()
            expect(page.locator(".dependency").nth(before)).to_be_attached()
        n = page.locator(".dependency").count()
        number = int(re.search(r"\((\d+)\)", more.text_content()).group(1))  # type: ignore[union-attr]
        more.click()
        expect(page.locator(".dependency.chance")).to_have_count(min(number, 50))
        assert page.locator(".dependency").nth(n - 1).get_attribute("class") == "dependency"


def test_the_picture_of_left_sides(browse: Browse, shop: holdfast.Workspace) -> None:
    with explored(shop) as server:
        page = open_orders(browse, server)
        graph = of(page, "graph")
        knot = graph.locator(".knot[aria-label^='zip -> city']")
        expect(knot).to_have_count(1)
        expect(graph.locator(".knot[aria-label^='order_id ->']")).to_have_count(0)  # a key
        expect(graph).to_contain_text("follow from a key")
        knot.focus()
        expect(graph.locator(".bundle.on")).to_have_count(1)
        expect(graph.locator("text.on", has_text="city")).to_have_count(1)
        page.keyboard.press("Enter")
        expect(page.locator(".narrowing input[type=search]")).to_have_value("zip -> city")
        expect(page.locator(".dependency")).to_have_count(1)


def test_the_keyboard_reaches_it_all(browse: Browse, shop: holdfast.Workspace) -> None:
    with explored(shop) as server:
        page = open_orders(browse, server)
        page.locator("#tracked-list a[aria-current]").focus()
        for what in (".ask", ".column", ".chips-of-kinds button", "input[type=search]", "input[type=range]"):
            tab_to_some(page, what)


def tab_to_some(page: Page, selector: str) -> None:
    for _ in range(60):
        before = "document.activeElement !== window.__before"
        page.evaluate("window.__before = document.activeElement")
        tab_to(page, before)
        if page.evaluate(f"document.activeElement.matches({selector!r})"):
            return
    raise AssertionError(f"the Tab key does not lead to {selector}")


def test_a_new_version_is_shown_in_place(
    browse: Browse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 3_600)  # the page hears of it by the answer to the click alone
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("orders", orders(1, 60), kinds=("ucc", "fd"))
        with explored(ws) as server:
            page = open_orders(browse, server, "&kind=fd")
            until(page, "document.querySelectorAll('#tracked-table .loading').length === 0")
            expect(page.locator(".dependency", has_text="zip -> city")).to_have_count(1)
            of(page, "history").locator("summary").click()
            with holdfast.open(tmp_path / "w", engine="inline") as other:
                other.apply("orders", inserts=orders(500, 1, zip=[1], city=["nowhere"]))
            page.locator(".chips-of-kinds button", has_text="Functional dependencies").click()
            expect(page.locator("#tracked-table .facts").first).to_contain_text("61 rows")
            expect(page.locator(".dependency .code", has_text=re.compile("^zip -> city$"))).to_have_count(0)
            # Who looked at a version looks at it still, and the focus stays at its place.
            expect(of(page, "history").locator(".history > li")).to_have_count(2)
            expect(of(page, "history").locator("details[open]")).to_have_attribute("id", "version-1")
            until(page, "document.activeElement.textContent.startsWith('Functional dependencies')")


def test_a_version_that_comes_while_the_view_is_on_its_way(browse: Browse, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("orders", orders(1, 60), kinds=("ucc", "fd"))
        with explored(ws) as server:
            page = browse(server, "#tab=overview")
            held: list[Any] = []
            log = "**/api/workspace/log?*"
            page.route(log, lambda route: route.continue_() if held else held.append(route))
            with page.expect_request(log):
                page.locator("#tab-table").click()
            expect(page.locator("#tracked-table .facts").first).to_contain_text("60 rows")
            ws.apply("orders", inserts=orders(500, 1))
            expect(page.locator("#summary")).to_contain_text("version 2")
            held[0].continue_()
            expect(page.locator("#tracked-table .facts").first).to_contain_text("61 rows")
            expect(of(page, "history").locator(".history > li")).to_have_count(2)
            page.unroute(log)


DEPENDENCIES = "**/api/workspace/dependencies?*"


def wide(n: int) -> pa.Table:
    """Many dependencies: columns that go round at their own pace."""
    return pa.table({"id": list(range(n)), **{f"c{k}": [i % k for i in range(n)] for k in range(2, 12)}})


def open_wide(browse: Browse, server: Any) -> Page:
    page = browse(server, "#tab=table&name=wide")
    expect(page.locator(".dependency")).to_have_count(50)
    expect(page.locator("#tracked-table .loading")).to_have_count(0)
    return page


def all_name(page: Page, text: str) -> None:
    """Waits for a list of nothing else."""
    rows = "[...document.querySelectorAll('.dependency .what')]"
    until(page, f"{rows}.length > 0 && {rows}.every(e => e.textContent.includes('{text}'))")


def test_a_version_that_comes_while_a_page_is_on_its_way(browse: Browse, tmp_path: Path) -> None:
    """The page that somebody asked for is shown, wherever the pointer is; then the version is."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("wide", wide(60), kinds=("ucc", "fd"))
        with explored(ws) as server:
            page = open_wide(browse, server)
            rows, more = page.locator(".dependency"), page.locator(".further button")
            held: list[Any] = []
            page.route(DEPENDENCIES, lambda route: route.continue_() if held else held.append(route))
            with page.expect_request(DEPENDENCIES):
                more.focus()
                more.press("Enter")
            rows.first.hover()
            ws.apply("wide", inserts=wide(61).slice(60))
            expect(page.locator("#tracked-table .facts").first).to_contain_text("61 rows")
            held[0].continue_()
            expect(rows).to_have_count(100)
            expect(of(page, "history").locator(".history > li")).to_have_count(2)
            page.unroute(DEPENDENCIES)


def test_a_filter_ends_what_is_on_its_way(browse: Browse, tmp_path: Path) -> None:
    """Neither a page of the list that was there nor a version takes the place of what is asked for."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("wide", wide(60), kinds=("ucc", "fd"))
        with explored(ws) as server:
            page = open_wide(browse, server)
            rows = page.locator(".dependency")
            held: list[Any] = []
            page.route(DEPENDENCIES, lambda route: held.append(route) if len(held) < 2 else route.continue_())
            with page.expect_request(DEPENDENCIES):
                page.locator(".further button").click()
            rows.first.hover()
            page.locator(".narrowing input[type=search]").focus()
            with page.expect_request(DEPENDENCIES):
                page.keyboard.type("id")
            ws.apply("wide", inserts=wide(61).slice(60))
            expect(page.locator("#tracked-table .facts").first).to_contain_text("61 rows")
            held[1].continue_()
            all_name(page, "id")
            # Who leaves before the answer is there finds what was asked for.
            held.clear()
            with page.expect_request(DEPENDENCIES):
                page.locator(".narrowing input[type=search]").fill("c3")
            page.locator("#tab-overview").click()
            page.unroute(DEPENDENCIES)
            page.locator("#tab-table").click()
            all_name(page, "c3")


def test_errors_and_empty_states(browse: Browse, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        with explored(ws) as server:
            page = browse(server, "#tab=table")
            expect(page.locator("#tracked-table")).to_contain_text("holdfast track NAME FILE")
        ws.track("bare", pa.table({"a": [1, 1], "b": [2, 2]}), kinds=("ucc",))
        with explored(ws) as server:
            page = browse(server, "#tab=table&name=nobody")
            expect(page.locator("#tracked-table .error")).to_contain_text("nobody")
            page = browse(server, "#tab=table&name=bare&column=none")
            expect(page.locator(".dependencies .error")).to_contain_text("has no column 'none'")
            page = browse(server, "#tab=table&name=bare")
            until(page, PAINTED)
            expect(of(page, "keys")).to_contain_text("some rows are the same")
            expect(of(page, "graph")).to_contain_text("--kinds ucc,fd")
            expect(of(page, "references")).to_contain_text("--kinds ucc,ind")
            expect(page.locator(".dependencies")).to_contain_text("Nothing is known to hold")


def test_what_is_folded_away_is_unfolded(browse: Browse, tmp_path: Path) -> None:
    """Functional dependencies that follow from a key, and frequent values beyond the first."""
    colours = ["red", "blue", "green", "black", "white"]
    shirts = {
        "id": list(range(50)),
        "colour": [colours[i % 5] for i in range(50)],
        "warm": [i % 5 < 1 for i in range(50)],
    }
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("shirts", pa.table(shirts), kinds=("ucc", "fd", "profile"))
        with explored(ws) as server:
            page = browse(server, "#tab=table&name=shirts")
            knots = page.locator(".fd-graph .knot")
            expect(knots).to_have_count(1)
            page.get_by_role("button", name="2 follow from a key").click()
            expect(knots).to_have_attribute("aria-label", re.compile("^id -> "))
            again = page.get_by_role("button", name="Draw the others again")
            expect(again).to_be_focused()
            again.press("Enter")
            expect(knots).to_have_attribute("aria-label", re.compile("^colour -> warm"))
            values = page.locator(".facts-of-columns tr", has_text="colour").locator(".sampled")
            expect(values).to_have_count(3)
            page.get_by_role("button", name="2 more").click()
            expect(values).to_have_count(5)


def test_names_from_right_to_left_do_not_turn_rules_round(browse: Browse, tmp_path: Path) -> None:
    names = ("מספר", "עיר")
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({names[0]: [1, 2, 2], names[1]: ["a", "b", "b"]}), kinds=("fd",))
        with explored(ws) as server:
            page = browse(server, "#tab=table&name=t")
            rule = page.locator(".dependency .code", has_text="->").first
            expect(rule).to_contain_text(" -> ")
            words = rule.text_content().split(" -> ")
            places = rule.evaluate(
                """(rule, words) => {
                  const texts = document.createTreeWalker(rule, NodeFilter.SHOW_TEXT), range = new Range();
                  const places = [];
                  while (texts.nextNode()) {
                    const { data } = texts.currentNode;
                    for (const word of words.filter((w) => data.includes(w))) {
                      range.setStart(texts.currentNode, data.indexOf(word));
                      range.setEnd(texts.currentNode, data.indexOf(word) + word.length);
                      places.push([words.indexOf(word), range.getBoundingClientRect().left]);
                    }
                  }
                  return places.sort().map(([, left]) => left);
                }""",
                words,
            )
            assert len(places) == 2
            assert places[0] < places[1]
