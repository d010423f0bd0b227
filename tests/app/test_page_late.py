"""What comes late: answers that somebody did not wait for, and versions while somebody looks at the page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.axe import serious
from app.browser import PAGE, expect, explored, until
from app.map_cases import shop
from holdfast.app.explorer import ExplorerServer, overview_answers

pytestmark = PAGE
Page = Any  # of playwright
Browse = Callable[..., Page]


@pytest.fixture(scope="module")
def tour(tour_place: Path) -> Iterator[ExplorerServer]:
    with holdfast.open(tour_place, engine="inline") as ws, explored(ws) as server:
        yield server


@contextmanager
def holding(page: Page, address: str, most: int = 1) -> Iterator[list[Any]]:
    """The first requests of an address, which wait to be continued; later ones do not."""
    held: list[Any] = []
    page.route(address, lambda route: route.continue_() if len(held) >= most else held.append(route))
    yield held
    page.unroute(address)


def href(page: Page, tab: str) -> str:
    return str(page.locator(f"#tab-{tab}").get_attribute("href"))


# --- Somebody went on -------------------------------------------------------------------------------------


def test_an_answer_for_a_view_that_was_left_is_none_of_the_others(
    browse: Browse, tour: ExplorerServer
) -> None:
    """The links in the head lead back to where each view was."""
    page = browse(tour)
    expect(page.locator(".health-row").first).to_be_visible()
    with holding(page, "**/api/workspace/map") as held:
        with page.expect_request("**/api/workspace/map"):
            page.goto(f"{tour.page_address}#tab=map&name=orders")
        page.goto(f"{tour.page_address}#tab=table&name=customers")
        expect(page.locator("#tracked-table h2")).to_have_text("customers")
        held[0].continue_()
        until(page, "performance.getEntriesByName('holdfast-painted-map').length > 0")
    assert href(page, "table") == "#tab=table&name=customers"
    assert href(page, "map") == "#tab=map&name=orders"


@pytest.mark.parametrize("left", ["#tab=dependency&name=orders&ask=[order_id]", "#tab=overview&picked=8-8"])
def test_a_view_that_was_left_before_it_began_does_not_begin(
    browse: Browse, tour: ExplorerServer, left: str
) -> None:
    page = browse(tour)
    page.goto("about:blank")
    asked: list[str] = []

    def noted(request: Any) -> None:
        asked.append(request.url)

    page.on("request", noted)
    with holding(page, "**/api/summary") as held:
        with page.expect_request("**/api/summary"):
            page.goto(tour.page_address + left)
        until(page, "document.querySelector('main > section:not([hidden])')?.children.length > 0")
        page.goto(f"{tour.page_address}#tab=table&name=customers")
        until(page, "document.querySelector('#tab-table').ariaCurrent === 'page'")
        held[0].continue_()
        expect(page.locator("#tracked-table h2")).to_have_text("customers")
        expect(page.locator("#tracked-table .loading")).to_have_count(0)
    page.remove_listener("request", noted)
    assert href(page, "table") == "#tab=table&name=customers"
    assert not any("/workspace/explain" in url or "/workspace/versions" in url for url in asked)


def test_a_version_that_somebody_did_not_wait_for_is_there_later(browse: Browse, tmp_path: Path) -> None:
    """Who leaves a table while it is asked for anew finds the new version there, not half of it."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": list(range(20)), "b": [1] * 20}), kinds=("ucc", "fd"))
        with explored(ws) as server:
            page = browse(server, "#tab=table&name=t")
            facts = page.locator("#tracked-table .facts").first
            expect(page.locator("#tracked-table .of-history li")).to_have_count(1)
            with holding(page, "**/api/workspace/table?*"):
                with page.expect_request("**/api/workspace/table?*"):
                    ws.apply("t", inserts=pa.table({"a": [20], "b": [1]}))
                page.locator("#tab-overview").click()
                expect(page.locator("#overview")).to_be_visible()
            page.locator("#tab-table").click()
            expect(facts).to_contain_text("21 rows")
            expect(page.locator("#tracked-table .of-history li")).to_have_count(2)


def test_a_lake_that_somebody_did_not_wait_for_is_there_later(browse: Browse, tmp_path: Path) -> None:
    sky = tmp_path / "sky"
    sky.mkdir()
    for name in ("planets", "moons"):
        (sky / f"{name}.csv").write_text("planet\nVenus\nEarth\nMars\n", encoding="utf-8")
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 2]}))
        ws.link(sky / "planets.csv")
        with explored(ws) as server:
            page = browse(server, "#tab=table&lake=0")
            facts = page.locator("#tracked-table .facts").first
            expect(facts).to_contain_text("0 inclusions")
            expect(page.locator("#live")).to_have_text("live")
            with holding(page, "**/api/linked?*"):
                with page.expect_request("**/api/linked?*"):
                    ws.link(sky / "moons.csv", add=True)
                page.locator("#tab-overview").click()
                expect(page.locator("#overview")).to_be_visible()
            page.locator("#tab-table").click()
            expect(facts).to_contain_text("2 inclusions")


# --- Somebody looks at it ---------------------------------------------------------------------------------


def wide(first: int, n: int) -> pa.Table:
    """Many columns, each with some frequent values."""
    columns = {f"c{k}": [f"v{i % (k + 2)}" for i in range(first, first + n)] for k in range(24)}
    return pa.table({"id": list(range(first, first + n)), **columns})


def test_what_is_unfolded_in_a_table_stays_so(browse: Browse, tmp_path: Path) -> None:
    """Columns, values and versions; and nothing of it moves under the pointer."""
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("wide", wide(0, 300), kinds=("ucc", "profile"))
        for i in range(7):
            ws.apply("wide", inserts=wide(300 + i, 1))
        with explored(ws) as server:
            page = browse(server, "#tab=table&name=wide")
            columns, past = (page.locator(f"#tracked-table .of-{name}") for name in ("columns", "history"))
            lines, versions = columns.locator("tbody tr"), past.locator(".history > li")
            expect(versions).to_have_count(5)
            past.locator(".more").click()
            versions.nth(6).locator("summary").click()
            expect(versions.nth(6).locator("details > :not(summary)").first).to_be_visible()
            columns.locator(".more").click()
            expect(lines).to_have_count(25)
            lines.nth(20).locator("button.inline").click()
            values = lines.nth(20).locator(".sampled")
            n = values.count()
            assert n > 3
            cell = lines.nth(20).locator(".at-distinct")
            cell.hover()
            page.evaluate("window.__line = document.querySelectorAll('.of-columns tbody tr')[20]")
            ws.apply("wide", inserts=wide(500, 1))
            expect(page.locator("#tracked-table .facts").first).to_contain_text("308 rows")
            expect(versions.first).to_contain_text("Version 9")
            assert page.evaluate("window.__line.isConnected && window.__line.matches(':hover')")
            page.mouse.move(0, 0)
            until(page, "!window.__line.isConnected")
            expect(lines).to_have_count(25)
            expect(values).to_have_count(n)
            assert lines.nth(20).locator("button.inline").count() == 0
            expect(versions).to_have_count(8)
            opened = past.locator("details[open]")
            expect(opened).to_have_count(1)
            expect(opened).to_have_attribute("id", "version-2")
            expect(opened.locator(":scope > :not(summary)").first).to_be_visible()


def test_a_version_about_other_tables_changes_nothing_of_a_linked_one(browse: Browse, tmp_path: Path) -> None:
    (tmp_path / "sky").mkdir()
    for name in ("planets", "moons"):
        (tmp_path / "sky" / f"{name}.csv").write_text("planet\nVenus\nEarth\nMars\n", encoding="utf-8")
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 2]}))
        ws.link(tmp_path / "sky")
        with explored(ws) as server:
            page = browse(server, "#tab=table&lake=0")
            inclusions = page.locator("#tracked-table .of-references")
            inclusions.locator("button.inline").first.click()
            expect(inclusions.locator(".values").first).to_contain_text("Venus")
            page.mouse.move(0, 0)
            page.evaluate("document.activeElement.blur()")
            page.evaluate("window.__values = document.querySelector('.of-references .values')")
            for i in range(2):  # the second one is asked for when the first one was shown
                with page.expect_response("**/api/linked?*"):
                    ws.apply("t", inserts=pa.table({"a": [3 + i]}))
            assert page.evaluate("window.__values.isConnected")


LATER = """
const [now, every] = [Date.now, setInterval];
window.__later = 0;
Date.now = () => now() + window.__later;
window.setInterval = (act, ms, ...more) => every(act, ms === 60000 ? 50 : ms, ...more);
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[holdfast.Workspace]:
    """Twelve tables; of ten the primary key broke, and the overview lists four at a time."""
    monkeypatch.setattr(overview_answers, "MOST_INCIDENTS", 4)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        names = [f"t{i:02}" for i in range(12)]
        rows = pa.table({"id": list(range(40)), "word": ["a"] * 40})
        ws.track_all(dict.fromkeys(names, rows), kinds=("ucc",))
        for name in names[:10]:
            ws.apply(name, inserts=rows.slice(0, 1))
        yield ws


def incidents_of(page: Page) -> list[str]:
    return list(
        page.evaluate("[...document.querySelectorAll('.incident')].map((e) => e.getAttribute('href'))")
    )


def test_what_broke_before_is_asked_for_once(browse: Browse, broken: holdfast.Workspace) -> None:
    with explored(broken) as server:
        page = browse(server, "#tab=overview")
        listed, more = page.locator(".incident"), page.locator(".side button.more")
        expect(listed).to_have_count(4)
        with holding(page, "**/api/workspace/incidents?*", most=2) as held:
            with page.expect_request("**/api/workspace/incidents?*"):
                more.dblclick()
            expect(more).to_have_attribute("aria-disabled", "true")
            for one in held:
                one.continue_()
            expect(listed).to_have_count(8)
            assert len(held) == 1
        assert len({*incidents_of(page)}) == 8


def test_what_is_listed_of_what_broke_stays_with_a_new_version(
    browse: Browse, broken: holdfast.Workspace
) -> None:
    """Under the pointer, where the version waits; when it is shown; after another view."""
    with explored(broken) as server:
        page = browse(server, "#tab=overview")
        listed, more = page.locator(".incident"), page.locator(".side button.more")
        waiting = page.get_by_role("button", name="Show what is newer")
        expect(listed).to_have_count(4)
        more.hover()
        broken.apply("t10", inserts=pa.table({"id": [1], "word": ["b"]}))
        expect(waiting).to_be_visible()
        more.click()  # of the newer version: nothing comes twice, and nothing is left out
        expect(listed).to_have_count(8)
        assert incidents_of(page)[0].startswith("#tab=dependency&name=t10")
        assert len({*incidents_of(page)}) == 8
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur()")
        broken.apply("t11", inserts=pa.table({"id": [1], "word": ["b"]}))
        expect(listed.first).to_have_attribute("href", re.compile("name=t11"))
        expect(listed).to_have_count(8)
        page.locator("#tab-map").click()
        page.locator("#tab-overview").click()
        expect(listed).to_have_count(8)


def test_a_version_that_comes_while_more_of_what_broke_is_on_its_way(
    browse: Browse, broken: holdfast.Workspace
) -> None:
    with explored(broken) as server:
        page = browse(server, "#tab=overview")
        listed, more = page.locator(".incident"), page.locator(".side button.more")
        expect(listed).to_have_count(4)
        with holding(page, "**/api/workspace/incidents?*") as held:
            with page.expect_request("**/api/workspace/incidents?*"):
                more.click()
            broken.apply("t10", inserts=pa.table({"id": [1], "word": ["b"]}))
            expect(page.locator(".newest")).to_contain_text("version 12")
            held[0].continue_()
            expect(listed).to_have_count(8)
        assert incidents_of(page)[0].startswith("#tab=dependency&name=t10")
        assert len({*incidents_of(page)}) == 8


def test_how_long_ago_it_was_is_said_anew(tabs: Any, broken: holdfast.Workspace) -> None:
    page = tabs.get(LATER)
    with explored(broken) as server:
        page.goto(server.address)
        expect(page.locator(".group-broke time").first).to_have_text("just now")
        expect(page.locator(".health-row time").first).to_have_text("just now")
        page.evaluate("window.__later = 3 * 3600e3")
        for place in (".group-broke time", ".health-row time", ".newest time"):
            expect(page.locator(place).first).to_have_text("3 hours ago")
        page.goto("about:blank")


def test_rows_that_are_gone_leave_no_page_without_rows(browse: Browse, tmp_path: Path) -> None:
    """The last page of those that are left; what somebody points at stays until then."""
    ids = list(range(160))
    rows = pa.table({"id": ids, "zip": ["a"] * 160, "city": [f"c{i}" for i in ids]})
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", rows, kinds=("fd",))
        with explored(ws) as server:
            page = browse(server, "#tab=dependency&name=t&ask=zip -> city")
            pager, lines = page.locator(".pager"), page.locator(".violations tbody tr")
            for first in (51, 101):
                page.get_by_role("button", name="Next").click()
                expect(pager).to_contain_text(f"Rows {first} to {first + 49} of 160")
            lines.nth(3).hover()
            page.evaluate("window.__line = document.querySelectorAll('.violations tbody tr')[3]")
            with page.expect_response("**/api/workspace/violations?*"):
                ws.apply("t", deletes=rows.slice(0, 132))
            until(page, "!document.querySelector('.violations [aria-busy]')")
            assert page.evaluate("window.__line.isConnected")
            page.mouse.move(0, 0)
            expect(pager).to_contain_text("Rows 1 to 28 of 28")
            expect(lines).to_have_count(28)
            ws.apply("t", inserts=rows.slice(0, 60))
            expect(pager).to_contain_text("Rows 1 to 50 of 88")


def test_everybody_can_see_a_timeline_that_is_on_its_way(browse: Browse, tour: ExplorerServer) -> None:
    """A slider has a value, whatever has come."""
    page = browse(tour)
    page.goto("about:blank")
    with holding(page, "**/api/workspace/timeline*") as held:
        page.goto(tour.page_address)
        expect(page.locator(".health-row").first).to_be_visible()
        slider = page.locator("svg.timeline")
        expect(slider).to_have_attribute("aria-valuetext", "on their way")
        assert serious(page) == []
        held[0].continue_()
        expect(page.locator(".bar-words")).not_to_be_empty()
        expect(slider).not_to_have_attribute("aria-valuetext", "on their way")


def test_the_timeline_stays_under_the_pointer_and_the_keyboard(
    browse: Browse, broken: holdfast.Workspace
) -> None:
    with explored(broken) as server:
        page = browse(server, "#tab=overview")
        slider = page.get_by_role("slider", name="Versions of the workspace")
        words, reach = page.locator(".bar-words"), page.locator(".timeline-head .range")
        newer = page.locator(".timeline-head .newer")
        expect(reach).to_have_text("versions 1 to 11")
        slider.focus()
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
        expect(words).to_contain_text("Version 8,")
        broken.apply("t10", inserts=pa.table({"id": [1], "word": ["b"]}))
        expect(newer).to_be_visible()
        page.keyboard.press("ArrowRight")
        expect(words).to_contain_text("Version 9,")
        expect(reach).to_have_text("versions 1 to 11")
        newer.click()
        expect(reach).to_have_text("versions 1 to 12")
        expect(words).to_contain_text("Version 9,")
        box = slider.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 4.5 / 12, box["y"] + 30)
        expect(words).to_contain_text("Version 5,")
        broken.apply("t11", inserts=pa.table({"id": [1], "word": ["b"]}))
        expect(newer).to_be_visible()
        # What somebody asks for is there at once.
        page.mouse.wheel(0, 100)
        expect(reach).to_have_text("versions 1 to 13")
        expect(newer).to_be_hidden()


def test_versions_beside_the_timeline_are_those_of_its_filter(
    browse: Browse, broken: holdfast.Workspace
) -> None:
    with explored(broken) as server:
        page = browse(server, "#tab=overview&picked=2-5")
        versions = page.locator(".versions > li")
        expect(versions).to_have_count(4)
        page.get_by_label("Table", exact=True).select_option("t01")
        expect(versions).to_have_count(1)
        expect(versions.first).to_contain_text("Version 3")
        page.get_by_label("Table", exact=True).select_option("")
        expect(versions).to_have_count(4)


@pytest.mark.parametrize("selected", ["", "&name=orders"])
def test_the_focus_beside_the_map_stays_with_a_new_version(
    browse: Browse, tmp_path: Path, selected: str
) -> None:
    with shop(tmp_path / "w") as ws, explored(ws) as server:
        page = browse(server, f"#tab=map{selected}")
        until(page, "performance.getEntriesByName('holdfast-painted-map').length > 0")
        link = page.locator(".diagram .right .reference-row").nth(1)
        link.focus()
        to = link.get_attribute("href")
        page.evaluate("window.__row = document.activeElement")
        ws.apply("discounts", inserts=pa.table({"discount_id": ["new"], "share": [0.5]}))
        until(page, "!window.__row.isConnected")
        assert page.evaluate("document.activeElement.getAttribute('href')") == to


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_before_the_map_is_there_nothing_of_it_can_be_pressed(
    browse: Browse, tour: ExplorerServer, scheme: str
) -> None:
    """And what its lines mean looks as it does later."""
    legend = """[...document.querySelectorAll('.meanings path, .meanings circle')].map((shape) => {
      const { stroke, fill, strokeWidth, strokeDasharray } = getComputedStyle(shape);
      return [stroke, fill, strokeWidth, strokeDasharray].join(" ");
    })"""
    page = browse(tour, "#tab=overview", scheme=scheme)
    with holding(page, "**/api/workspace/map*") as held:
        with page.expect_request("**/api/workspace/map*"):
            page.locator("#tab-map").click()
        tools = page.locator(".tools .tool")
        expect(tools).to_have_count(4)
        expect(page.locator(".tools .tool:enabled")).to_have_count(0)
        before = page.evaluate(legend)
        held[0].continue_()
        expect(page.locator(".save .tool:enabled")).to_have_count(3)
    assert page.evaluate(legend) == before


# --- Somebody types ---------------------------------------------------------------------------------------


def test_what_is_typed_is_there_after_another_view(browse: Browse, tour: ExplorerServer) -> None:
    page = browse(tour, "#tab=dependency&name=orders&ask=[order_id]")
    field, table = page.locator("#ask-text"), page.locator("#ask-table")
    expect(page.locator(".verdict-state")).to_be_visible()
    field.fill("product, quan")
    page.locator("#tab-overview").click()
    expect(page.locator(".health-row").first).to_be_visible()
    page.locator("#tab-dependency").click()
    expect(page.locator("#dependency")).to_be_visible()
    expect(field).to_have_value("product, quan")
    # Another address has its own text.
    page.goto(f"{tour.page_address}#tab=dependency&name=customers&ask=[customer_id]")
    expect(field).to_have_value("[customer_id]")
    expect(table).to_have_value("customers")


def test_a_picture_that_comes_late_takes_nobody_away_from_a_field(
    browse: Browse, tour: ExplorerServer
) -> None:
    page = browse(tour, "#tab=table&name=orders")
    graph, field = page.locator("#tracked-table .of-graph"), page.locator(".narrowing input[type=search]")
    with holding(page, "**/api/workspace/fds?*follow=1*") as held:
        with page.expect_request("**/api/workspace/fds?*follow=1*"):
            graph.get_by_role("button", name="follow from a key").click()
        field.focus()
        held[0].continue_()
        expect(graph).to_contain_text("Draw the others again")
    expect(field).to_be_focused()
    # Who stays at the button finds the one that takes it back.
    graph.get_by_role("button", name="Draw the others again").focus()
    page.keyboard.press("Enter")
    expect(graph.get_by_role("button", name="follow from a key")).to_be_focused()


def test_enter_opens_what_is_typed_and_not_what_was(browse: Browse, tour: ExplorerServer) -> None:
    page = browse(tour, "#tab=lake")
    expect(page.locator("#details .paged a").first).to_be_visible()
    page.evaluate("""() => {
      window.__opened = [];
      addEventListener("hashchange", () => window.__opened.push(location.hash));
      const ask = window.fetch;
      window.fetch = async (...asked) => {
        const answer = await ask(...asked);
        if (window.__go || !asked[0].includes("api/search")) return answer;
        return new Promise((resolve) => { window.__go = () => resolve(answer); });
      };
    }""")
    page.locator("#search-text").fill("planets")
    until(page, "window.__go !== undefined")
    # The answer to what was typed before is there before the next question is asked.
    page.evaluate("""() => {
      const field = document.querySelector("#search-text");
      field.value = "countries";
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
      field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
      window.__go();
    }""")
    expect(page.locator("#details .head h2")).to_contain_text("countries")
    assert page.evaluate("window.__opened.length") == 1


@pytest.mark.parametrize(("address", "place"), [("table", "#tracked-table"), ("dependency", ".explanation")])
def test_a_view_that_waits_for_the_tables_says_so(
    browse: Browse, tour: ExplorerServer, address: str, place: str
) -> None:
    page = browse(tour)
    page.goto("about:blank")
    with holding(page, "**/api/summary") as held:
        with page.expect_request("**/api/summary"):
            page.goto(f"{tour.page_address}#tab={address}")
        expect(page.locator(f"{place} .loading")).to_be_visible()
        held[0].continue_()
        expect(page.locator(f"{place} .loading")).to_have_count(0)
