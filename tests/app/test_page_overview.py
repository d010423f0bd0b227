"""The overview of the page in a browser, over real workspaces: health, what broke, timeline, news."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.browser import PAGE, expect, explored, until
from app.serving import answering
from app.test_overview_answers import counted, filled
from holdfast.app.explorer import Explorer, ExplorerServer, listeners, overview_answers
from holdfast.app.explorer.overview_answers import OverviewAnswers
from holdfast.errors import UsageError

pytestmark = PAGE
Page = Any  # of playwright
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path_factory.mktemp("page") / "shop.hold", engine="inline") as made:
        yield filled(made)


@pytest.fixture(scope="module")
def server(ws: holdfast.Workspace) -> Iterator[ExplorerServer]:
    with explored(ws) as running:
        yield running


def bars(page: Page) -> None:
    expect(page.locator(".timeline .up").first).to_be_attached()


def test_it_is_the_first_view_and_says_what_is_broken(browse: Visit, server: ExplorerServer) -> None:
    page = browse(server)
    expect(page.locator("#tab-overview")).to_have_attribute("aria-current", "page")
    expect(page.locator(".word.broken")).to_have_text("1 broken")
    expect(page.locator(".word.none")).to_have_text("0 drifting")
    assert "pin of severity error" in page.locator(".word.broken").get_attribute("title")
    rows = page.locator(".health-row")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("orders[customer_id] in customers[id]")
    expect(rows.nth(0)).to_contain_text("since version 8")
    expect(rows.nth(1)).to_contain_text("customers")
    expect(rows.nth(0).locator(".spark .mark").first).to_be_attached()
    expect(page.locator("#summary")).to_contain_text("2 tracked tables")
    until(page, "performance.getEntriesByName('holdfast-painted-overview').length === 1")
    tabs = page.locator(".tabs a").all_inner_texts()
    assert tabs[0] == "Overview"
    assert tabs[-1] == "Lake"


def test_what_broke_leads_to_the_dependency(browse: Visit, server: ExplorerServer) -> None:
    page = browse(server, "#tab=overview")
    groups = page.locator(".group-broke")
    expect(groups.first).to_contain_text("version 8")
    expect(groups.first).to_contain_text("batch bad")
    expect(groups.first).to_contain_text("+2 rows")
    link = groups.first.locator(".incident", has_text="orders[customer_id] in customers[id]")
    expect(link).to_contain_text("broken")
    href = link.get_attribute("href")
    assert href.startswith("#tab=dependency&name=orders&ask=orders")
    again = page.locator(".group-broke", has_text="version 2").locator(".incident.over")
    expect(again.first).to_contain_text("again since 3")


def test_a_click_on_a_bar_lists_its_versions(browse: Visit, server: ExplorerServer) -> None:
    page = browse(server, "#tab=overview")
    bars(page)
    box = page.locator(".timeline").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 7.5 / 9, box["y"] + 30)
    listed = page.locator(".versions > li")
    expect(listed).to_have_count(1)
    expect(listed.first).to_contain_text("Version 8")
    expect(listed.first).to_contain_text("batch bad")
    expect(listed.first.locator(".changed a").first).to_be_visible()
    expect(page.locator(".incidents")).to_be_hidden()
    page.get_by_role("button", name="Back to what broke").click()
    expect(page.locator(".incidents")).to_be_visible()
    expect(page.locator(".versions")).to_be_hidden()


def test_zoom_and_the_bar_that_is_picked_are_in_the_address(browse: Visit, server: ExplorerServer) -> None:
    page = browse(server, "#tab=overview&versions=2-9&picked=8-8")
    listed = page.locator(".versions > li")
    expect(listed).to_have_count(1)
    expect(listed.first).to_contain_text("Version 8")
    expect(page.locator(".range")).to_have_text("versions 2 to 9")
    expect(page.locator(".timeline .picked")).to_have_count(1)
    page.get_by_role("button", name="Back to what broke").click()
    expect(page.locator(".incidents")).to_be_visible()
    assert page.evaluate("location.hash") == "#tab=overview&versions=2-9"
    page.get_by_role("button", name="All versions (0)").click()
    expect(page.locator(".range")).to_have_text("versions 1 to 9")
    assert page.evaluate("location.hash") == "#tab=overview"
    # A bar says which batch it was; what is picked is there again after another view.
    box = page.locator(".timeline").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 7.5 / 9, box["y"] + 30)
    expect(page.locator(".bar-words")).to_contain_text("Version 8, batch bad, ")
    page.mouse.down()
    page.mouse.up()
    expect(listed).to_have_count(1)
    assert page.evaluate("location.hash") == "#tab=overview&picked=8-8"
    page.locator("#tab-map").click()
    page.locator("#tab-overview").click()
    expect(listed.first).to_contain_text("Version 8")
    page.evaluate("location.hash = '#tab=overview'")
    expect(page.locator(".incidents")).to_be_visible()
    expect(page.locator(".versions")).to_be_hidden()


def test_of_two_addresses_the_later_is_followed(browse: Visit, server: ExplorerServer) -> None:
    """Though the first one has to wait for what there is, and so ends last."""
    page = browse(server)
    page.goto(f"{server.page_address}#tab=overview&picked=8-8")
    bars(page)
    expect(page.locator(".health-row").first).to_be_visible()
    expect(page.locator(".versions > li").first).to_contain_text("Version 8")
    expect(page.locator(".incidents")).to_be_hidden()


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("_overview", "The tables cannot be listed"),
        ("_timeline", "The timeline cannot be shown"),
        ("_versions", "The versions cannot be listed"),
    ],
)
def test_what_goes_wrong_is_told_in_its_place(
    browse: Visit, ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch, what: str, words: str
) -> None:
    def fails(*_: Any) -> Any:
        raise UsageError("this was not to be.")

    monkeypatch.setattr(OverviewAnswers, what, fails)
    with explored(ws) as server:
        page = browse(server, "#tab=overview&picked=8-8")
        error = page.locator("#overview .notice.error")
        expect(error).to_have_count(1)
        expect(error).to_contain_text(words)
        expect(error).to_contain_text("this was not to be.")
        for part, other in ((".health-row", "_overview"), (".versions > li", "_versions")):
            if what not in (other, "_overview"):  # without the tables nothing else is asked for
                expect(page.locator(part).first).to_be_visible()


def test_what_broke_before_is_listed_on_demand(
    browse: Visit, ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview_answers, "MOST_INCIDENTS", 2)
    with explored(ws) as server:
        n = server.explorer.answer("workspace/overview", {})["n_incidents"]
        page = browse(server, "#tab=overview")
        expect(page.locator(".incident")).to_have_count(2)
        more = page.get_by_role("button", name=f"Show more of {n}")
        for shown in (*range(4, n, 2), n):
            more.click()
            expect(page.locator(".incident")).to_have_count(shown)
        expect(more).to_have_count(0)


def test_a_table_says_how_many_pins_it_has_and_if_nothing_is_watched(browse: Visit, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "few.hold", engine="inline") as ws:
        ws.track_all({name: pa.table({"a": [1, 1]}) for name in ("pinned", "idle")}, kinds=("ucc",))
        ws.pin_rule("a = 1", table="pinned")
        with explored(ws) as server:
            page = browse(server, "#tab=overview")
            rows = page.locator(".health-row")
            expect(rows).to_have_count(2)
            expect(rows.first.locator(".name-and-pins")).to_have_text("pinned1 pin")
            expect(rows.first.locator(".health")).to_have_text("holds")
            expect(rows.nth(1).locator(".health")).to_have_text("unwatched")
            expect(page.locator(".word.unwatched")).to_have_text("1 unwatched")


def test_the_timeline_by_the_keyboard(browse: Visit, server: ExplorerServer) -> None:
    page = browse(server, "#tab=overview")
    bars(page)
    slider = page.get_by_role("slider", name="Versions of the workspace")
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).to_have_attribute("aria-valuenow", "1")
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuenow", "2")
    expect(page.locator(".bar-words")).to_contain_text("Version 2")
    expect(page.locator(".bar-words")).to_contain_text("broke")
    page.keyboard.press("Enter")
    expect(page.locator(".versions > li")).to_contain_text("Version 2")
    page.locator(".side h2", has_text="Version 2").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".incidents")).to_be_visible()
    until(page, "document.activeElement.classList.contains('timeline')")
    page.keyboard.press("+")
    expect(page.locator(".timeline-head .range")).not_to_have_text("versions 1 to 9")
    page.keyboard.press("0")
    expect(page.locator(".timeline-head .range")).to_have_text("versions 1 to 9")


def test_the_timeline_zooms_by_wheel_drag_and_buttons(browse: Visit, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "many.hold", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 2], "b": [1, 1]}), kinds=("ucc", "fd"))
        for i in range(39):
            ws.apply("t", inserts=pa.table({"a": [10 + i % 9], "b": [i]}))
        with explored(ws) as server:
            page = browse(server, "#tab=overview")
            bars(page)
            shown = page.locator(".timeline-head .range")
            expect(shown).to_have_text("versions 1 to 40")
            box = page.locator(".timeline").bounding_box()
            x, y = box["x"], box["y"] + 50
            page.mouse.move(x + box["width"] / 4, y)
            page.mouse.down()
            page.mouse.move(x + box["width"] / 3, y)
            page.mouse.move(x + box["width"] * 3 / 4 - 2, y)
            expect(page.locator(".timeline .selection")).to_be_attached()
            page.mouse.up()
            expect(shown).to_have_text("versions 11 to 30")
            expect(page.locator(".timeline .selection")).to_have_count(0)
            page.get_by_role("button", name="Later").click()
            expect(shown).to_have_text("versions 21 to 40")
            page.get_by_role("button", name="Zoom in (+)").click()
            expect(shown).to_have_text("versions 26 to 35")
            page.mouse.move(x + 1, y)
            page.mouse.wheel(0, 100)
            expect(shown).to_have_text("versions 21 to 40")
            page.get_by_role("button", name="All versions (0)").click()
            expect(shown).to_have_text("versions 1 to 40")


def n_bars(ws: holdfast.Workspace, table: str, kind: str | None = None) -> int:
    """Versions that broke something, which few versions have a bar each for."""
    return len({version for version, event in counted(ws, table, kind) if event == "broke"})


def test_the_timeline_by_table_and_kind(
    browse: Visit, server: ExplorerServer, ws: holdfast.Workspace
) -> None:
    page = browse(server, "#tab=overview")
    bars(page)
    page.get_by_label("Table", exact=True).select_option("customers")
    expect(page.locator(".timeline .up")).to_have_count(n_bars(ws, "customers"))
    assert page.evaluate("location.hash") == "#tab=overview&name=customers"
    page.get_by_label("Kind", exact=True).select_option("ind")
    page.get_by_label("Table", exact=True).select_option("orders")
    expect(page.locator(".timeline .up")).to_have_count(n_bars(ws, "orders", "ind"))
    # So it is again when somebody comes back.
    page.reload()
    expect(page.locator(".timeline .up")).to_have_count(n_bars(ws, "orders", "ind"))
    assert page.get_by_label("Table", exact=True).input_value() == "orders"
    assert page.get_by_label("Kind", exact=True).input_value() == "ind"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_narrow_screen(browse: Visit, server: ExplorerServer, scheme: str) -> None:
    page = browse(server, "#tab=overview", width=600, scheme=scheme)
    bars(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 600
    expect(page.locator(".health-row").first).to_be_visible()


def test_a_workspace_without_tables_says_what_to_do(browse: Visit, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "empty.hold", engine="inline") as ws, explored(ws) as server:
        page = browse(server, "#tab=overview")
        expect(page.locator("#overview")).to_contain_text("Track one with: holdfast track")


# --- Live -------------------------------------------------------------------------------------------------


def test_a_batch_is_seen_without_a_reload(
    browse: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In place: what is scrolled stays, and so does the focus."""
    monkeypatch.setattr(listeners, "LOOK_S", 0.02)
    with holdfast.open(tmp_path / "live.hold", engine="inline") as ws:
        sources = {f"t{i:02d}": pa.table({"id": list(range(40))}) for i in range(30)}
        ws.track_all(sources, kinds=("ucc",))
        with explored(ws) as server:
            page = browse(server, "#tab=overview", height=600)
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator(".word.hold")).to_have_text("30 hold")
            page.evaluate("window.__stays = true")
            page.locator("a[href='#tab=table&name=t20']").focus()
            page.locator("#overview").evaluate("node => { node.scrollTop = 300; }")
            ws.apply("t07", inserts=pa.table({"id": [3]}), batch_id="twice")
            expect(page.locator(".word.drifting")).to_have_text("1 drifting")
            expect(page.locator("#summary")).to_contain_text("version 2")
            # The keyboard is in the list: rows stay until it leaves, or somebody asks for what is newer.
            newer = page.get_by_role("button", name="Show what is newer")
            expect(newer).to_be_visible()
            expect(page.locator(".health-row").first).to_contain_text("t00")
            assert page.evaluate("document.activeElement.getAttribute('href')") == "#tab=table&name=t20"
            assert page.locator("#overview").evaluate("node => node.scrollTop") == 300
            newer.evaluate("button => button.click()")
            expect(page.locator(".health-row").first).to_contain_text("t07")
            expect(page.locator(".incident").first).to_contain_text("[id]")
            expect(newer).to_be_hidden()
            assert page.evaluate("window.__stays")
            assert page.evaluate("document.activeElement.getAttribute('href')") == "#tab=table&name=t20"
            expect(page.locator("#outdated")).to_be_hidden()


def on_a_port_of_its_own(ws: holdfast.Workspace) -> ExplorerServer:
    """On one that no system gives to others by itself: it is free when the server comes back."""
    for port in random.sample(range(20_000, 32_000), 100):
        with contextlib.suppress(UsageError):
            return ExplorerServer(Explorer(ws), port)
    raise AssertionError("no port is free")


UNDER = """([x, y]) => {
  const node = document.elementFromPoint(x, y).closest("a");
  window.__under ??= node;
  return [node === window.__under, node.getAttribute("href"), node.getBoundingClientRect().top];
}"""


def test_nothing_moves_under_the_pointer(
    browse: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 0.02)
    with holdfast.open(tmp_path / "live.hold", engine="inline") as ws:
        ws.track_all({f"t{i:02d}": pa.table({"id": list(range(40))}) for i in range(9)}, kinds=("ucc",))
        with explored(ws) as server:
            page = browse(server, "#tab=overview")
            expect(page.locator("#live")).to_have_text("live")
            box = page.locator("a[href='#tab=table&name=t03']").bounding_box()
            point = [box["x"] + 20, box["y"] + box["height"] / 2]
            page.mouse.move(*point)
            before = page.evaluate(UNDER, point)
            ws.apply("t07", inserts=pa.table({"id": [3]}), batch_id="twice")
            expect(page.locator(".word.drifting")).to_have_text("1 drifting")
            expect(page.get_by_role("button", name="Show what is newer")).to_be_visible()
            assert page.evaluate(UNDER, point) == before
            page.mouse.move(0, 0)
            expect(page.locator(".health-row").first).to_contain_text("t07")
            expect(page.locator(".incident")).to_have_count(1)
            # What broke is not moved either.
            page.locator(".incident").hover()
            ws.apply("t08", inserts=pa.table({"id": [3]}))
            expect(page.locator(".word.drifting")).to_have_text("2 drifting")
            expect(page.locator(".incident")).to_have_count(1)
            page.get_by_role("button", name="Show what is newer").evaluate("button => button.click()")
            expect(page.locator(".incident")).to_have_count(2)


def test_a_lost_server_is_told_and_found_again(
    browse: Visit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 0.02)
    with holdfast.open(tmp_path / "lost.hold", engine="inline") as ws:
        ws.track("t", pa.table({"id": list(range(40))}), kinds=("ucc",))
        with answering(on_a_port_of_its_own(ws)) as server:
            page = browse(server, "#tab=overview")
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator(".health-row")).to_have_count(1)
            port, token, place = server.port, server.token, server.place
        expect(page.locator("#live")).to_contain_text("The server does not answer.")
        expect(page.locator("#live")).to_contain_text("Trying again.")
        expect(page.locator(".health-row")).to_have_count(1)  # what was seen stays
        ws.apply("t", inserts=pa.table({"id": [3]}))
        again = ExplorerServer(Explorer(ws), port)
        again.token, again.place = token, place
        with answering(again):
            expect(page.locator("#live")).to_have_text("live")
            expect(page.locator(".word.drifting")).to_have_text("1 drifting")
