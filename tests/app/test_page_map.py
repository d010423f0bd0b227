"""The map of tracked tables in a browser: it is drawn, moved, searched and saved."""

from __future__ import annotations

import json
import re
import struct
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.browser import PAGE, expect, explored, tab_to, until
from app.map_cases import HOSTILE, PRODUCTS, large, parcels, shop
from app.test_er_layout import inside
from holdfast.app.commands.linking import model_of
from holdfast.app.explorer import ExplorerServer, listeners
from holdfast.app.explorer.map_answers import MapAnswers
from holdfast.app.export import to_mermaid
from holdfast.app.export.er_layout import Box

pytestmark = PAGE
SVG = "{http://www.w3.org/2000/svg}"
PAINTED = "performance.getEntriesByName('holdfast-painted-map').length > 0"

Page = Any  # of playwright
Browse = Callable[..., Page]
Point = tuple[float, float]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExplorerServer]:
    with explored(shop(tmp_path_factory.mktemp("map") / "shop")) as server:
        yield server


@pytest.fixture
def mapped(browse: Browse, served: ExplorerServer) -> Browse:
    def go(hash_: str = "#tab=map", **how: Any) -> Page:
        page = browse(served, hash_, **how)
        page.evaluate("sessionStorage.clear()")
        page.reload()
        until(page, PAINTED)
        return page

    return go


def table(page: Page, name: str) -> Page:
    return page.locator(f'.diagram .table[data-table="{name}"]')


def reference(page: Page, child: str, columns: str) -> Page:
    return page.locator(f'.diagram .reference[data-child="{child}"][data-columns="{columns}"]')


def corner(page: Page, name: str) -> Point:
    [x, y] = numbers(table(page, name).get_attribute("transform"))
    return x, y


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)]


def place(page: Page) -> list[float]:
    """Where the drawing is, and its scale."""
    return numbers(page.locator(".diagram-stage > .er > g").get_attribute("transform"))


def way(text: str) -> list[Point]:
    """The corners of a line: of a round one its middle, which a curve comes near."""
    points = re.findall(r"([MLQ])([\d. -]+)", text)
    corners: list[Point] = []
    for letter, given in points:
        at = numbers(given)
        if letter == "Q":
            corners[-1] = (at[0], at[1])
        else:
            corners.append((at[0], at[1]))
    return corners


def check_lines(page: Page) -> tuple[int, int]:
    """No line that is drawn goes through a box; how many of both there are."""
    ways = page.evaluate(
        "[...document.querySelectorAll('.diagram-stage .way')].map((p) => p.getAttribute('d'))"
    )
    boxes = boxes_of(page)
    for text in ways:
        for a, b in pairwise(way(text)):
            assert not any(inside(box, at, a, b) for box, at in boxes), text
    return len(boxes), len(ways)


def boxes_of(page: Page) -> list[tuple[Box, Point]]:
    """The boxes as they are drawn, with their upper left corners."""
    drawn = page.evaluate("""[...document.querySelectorAll(".diagram .table")].map((table) => [
      table.getAttribute("transform"),
      ...["width", "height"].map((name) => Number(table.querySelector(".box").getAttribute(name))),
    ])""")
    found = []
    for text, width, height in drawn:
        [x, y] = numbers(text)
        found.append((Box(width, height), (x, y)))
    return found


def drag(page: Page, name: str, dx: float, dy: float) -> None:
    head = table(page, name).locator(".head").bounding_box()
    x, y = head["x"] + head["width"] / 2, head["y"] + head["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx / 2, y + dy / 2)
    page.mouse.move(x + dx, y + dy)
    page.mouse.up()


def saved(page: Page, button: str) -> bytes:
    with page.expect_download() as download:
        page.get_by_role("button", name=button, exact=True).click()
    return Path(download.value.path()).read_bytes()


# -- what is drawn ----------------------------------------------------------------------------------


def test_tables_and_references_are_drawn_and_what_is_broken_is_told(mapped: Browse) -> None:
    page = mapped()
    assert check_lines(page) == (6, 4)
    expect(page.locator(".diagram aside h2")).to_have_text("2 references are broken")
    expect(reference(page, "lines", "product_id")).to_have_class("reference broken")
    expect(reference(page, "lines", "product_id").locator(".label")).to_have_text("3.5%")
    expect(reference(page, "lines", "order_id")).to_have_class("reference holds")
    expect(reference(page, "lines", "order_id").locator(".label")).to_have_text("91.7%")
    unproved = reference(page, "orders", "discount_id")
    expect(unproved).to_have_class("reference unproved")
    dashes = unproved.locator(".way").evaluate("path => getComputedStyle(path).strokeDasharray")
    assert dashes == "2px, 3px"
    rows = page.locator(".reference-row.broken")
    expect(rows).to_have_count(2)
    expect(rows.locator(".how")).to_have_text(["80 rows", "16 rows"])
    texts = table(page, "lines").locator("text").all_text_contents()
    columns = ["PK", "line_id", "text", "FK", "order_id", "text", "FK", "product_id", "text"]
    assert texts == [*columns, "lines", "200200 rows"]  # and what is said at the number
    expect(page.locator(".diagram .apart")).to_have_text("Without references")


def test_a_hostile_name_is_a_text(mapped: Browse) -> None:
    page = mapped()
    names = page.locator(".diagram .table .name").all_text_contents()
    assert any("<img src=x" in name for name in names)
    assert page.locator(".diagram img").count() == 0


def test_a_hundred_tables_stay_readable(browse: Browse, tmp_path: Path) -> None:
    with explored(large(tmp_path / "w")) as server:
        page = browse(server, "#tab=map", width=1600, height=1000)
        until(page, PAINTED)
        assert check_lines(page) == (100, 200)
        told = page.evaluate("performance.getEntriesByName('holdfast-painted-map')[0].detail")
        assert told == {"tables": 100, "references": 200}
        # From afar names alone are read, and those are large enough.
        expect(page.locator(".diagram .row").first).to_be_hidden()
        heights = page.locator(".diagram .table .name").evaluate_all(
            "names => names.map((name) => name.getBoundingClientRect().height)"
        )
        assert min(heights) > 6
        page.locator(".diagram-stage > .er").focus()
        for _ in range(8):
            page.keyboard.press("+")
        expect(page.locator(".diagram .row").first).not_to_have_css("display", "none")


# -- what is pointed at -----------------------------------------------------------------------------


def test_a_click_on_a_table_opens_it_and_back_it_is_selected(mapped: Browse) -> None:
    page = mapped()
    table(page, "orders").locator(".head").click()
    until(page, "location.hash === '#tab=table&name=orders'")
    page.go_back()
    until(page, "location.hash === '#tab=map&name=orders'")
    expect(page.locator(".diagram .dimming")).to_have_count(1)
    expect(table(page, "orders")).to_have_class("table lit")
    expect(table(page, "customers")).to_have_class("table lit")
    expect(table(page, "products")).to_have_class("table")
    expect(page.locator(".diagram aside h2")).to_have_text("orders")
    page.keyboard.press("Escape")
    expect(page.locator(".diagram .dimming")).to_have_count(0)
    assert page.evaluate("location.hash") == "#tab=map"


def test_a_click_on_a_reference_tells_of_it_and_its_orphans(mapped: Browse) -> None:
    page = mapped()
    reference(page, "lines", "product_id").locator(".hit").dispatch_event("pointermove")
    x, y = page.evaluate("""(() => {
      const path = document.querySelector('.diagram .reference[data-columns="product_id"] .hit');
      const at = path.getPointAtLength(path.getTotalLength() / 2).matrixTransform(path.getScreenCTM());
      return [at.x, at.y];
    })()""")
    page.mouse.click(x, y)
    aside = page.locator(".diagram aside")
    expect(aside.locator("h2")).to_have_text("lines → products")
    expect(aside.locator(".state")).to_have_text("Broken: 2 values in 16 rows are missing.")
    facts = aside.locator(".facts-of")
    expect(facts).to_contain_text("product_id → product_id")
    expect(facts).to_contain_text("a row of lines has at most one products")
    expect(facts).to_contain_text("a row of products has any number of lines")
    expect(facts).to_contain_text("96.5% of its values are found")
    expect(facts).to_contain_text("94.8% of the parent's values are used")
    expect(facts).to_contain_text("version 3 (batch spring)")
    expect(aside.locator(".orphan-values tbody tr")).to_have_text(["p0039", "p0057"])  # and its rows
    links = aside.locator(".ways a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert links[0].startswith("#tab=dependency&name=lines&ask=lines")
    assert links[1:] == ["#tab=table&name=lines", "#tab=table&name=products"]
    assert "ask=" in page.evaluate("location.hash")
    page.reload()
    expect(aside.locator(".orphan-values tbody tr")).to_have_count(2)
    page.get_by_role("link", name="Close").click()
    expect(aside.locator("h2")).to_have_text("2 references are broken")


def test_a_broken_reference_of_several_columns(browse: Browse, tmp_path: Path) -> None:
    """On the map, with its orphans; and all about it, with the rows and a file of them."""
    with explored(parcels(tmp_path / "w")) as server:
        page = browse(server, "#tab=map")
        until(page, PAINTED)
        expect(page.locator(".diagram aside h2")).to_have_text("1 reference is broken")
        page.locator(".diagram aside .group-of a").first.click()
        panel = page.locator(".diagram aside")
        expect(panel.locator(".state")).to_have_text("Broken: 2 combinations in 4 rows are missing.")
        expect(panel.locator(".orphans th")).to_have_text(["order_no", "line_no", "Rows"])
        expect(panel.locator(".orphans td")).to_have_text(["o1", "2", "2", "o1", "3", "2"])
        panel.get_by_role("link", name="All about this dependency").click()
        expect(page.locator(".verdict-state")).to_have_text("Does not hold")
        expect(page.locator(".violations .facts")).to_contain_text(
            "4 of 68 rows violate it; 2 missing combinations"
        )
        expect(page.locator(".violations tbody tr")).to_have_count(4)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download all as CSV").click()
        assert len(Path(download.value.path()).read_bytes().splitlines()) == 5
        page.goto(f"{server.page_address}#tab=table&name=parcels")
        expect(page.locator(".breakages")).to_contain_text("2 combinations missing in 4 rows")


def test_the_list_leads_to_a_reference(mapped: Browse) -> None:
    page = mapped()
    page.locator(".reference-row.holds").first.click()
    expect(page.locator(".diagram aside .state")).to_have_text("Holds: every value is there.")
    expect(page.locator(".diagram aside")).to_contain_text("version 1, when it was tracked")
    expect(reference(page, "lines", "order_id")).to_have_class("reference holds lit")


def test_what_is_pointed_at_stands_out(mapped: Browse) -> None:
    page = mapped()
    table(page, "products").locator(".head").hover()
    expect(table(page, "lines")).to_have_class("table lit")
    expect(table(page, "orders")).to_have_class("table")
    page.locator(".diagram .find").hover()
    expect(page.locator(".diagram .dimming")).to_have_count(0)


def test_by_keyboard(mapped: Browse) -> None:
    page = mapped()
    page.locator(".diagram-stage > .er").focus()
    tab_to(page, "document.activeElement.closest('.diagram .table') !== null")
    table(page, "orders").get_by_role("link").focus()
    page.keyboard.press("Space")
    until(page, "location.hash === '#tab=map&name=orders'")
    expect(page.locator(".diagram aside .head h2")).to_have_text("orders")
    page.keyboard.press("Enter")
    until(page, "location.hash === '#tab=table&name=orders'")


# -- the view ---------------------------------------------------------------------------------------


def test_zoom_and_pan(mapped: Browse) -> None:
    page = mapped()
    page.locator(".diagram-stage > .er").focus()
    whole = place(page)
    page.keyboard.press("+")
    assert place(page)[2] == pytest.approx(whole[2] * 1.3, abs=1e-3)
    page.keyboard.press("-")
    assert place(page) == pytest.approx(whole, abs=0.1)
    page.keyboard.press("ArrowLeft")
    assert place(page) == pytest.approx([whole[0] + 60, *whole[1:]], abs=0.1)
    page.keyboard.press("0")
    assert place(page) == pytest.approx(whole, abs=0.1)
    page.get_by_role("button", name="Zoom in").click()
    assert place(page)[2] > whole[2]
    page.get_by_role("button", name="Show all").click()
    assert place(page) == pytest.approx(whole, abs=0.1)
    page.mouse.move(60, 400)
    page.mouse.wheel(0, -200)
    nearer = "document.querySelector('.diagram-stage > .er > g').getCTM().a"
    until(page, f"{nearer} > {whole[2]} + 0.01")
    page.mouse.down()
    before = place(page)
    page.mouse.move(120, 430)
    page.mouse.up()
    assert place(page) == pytest.approx([before[0] + 60, before[1] + 30, before[2]], abs=0.1)


def test_two_fingers_zoom(mapped: Browse) -> None:
    page = mapped()
    whole = place(page)
    page.evaluate("""(() => {
      const er = document.querySelector(".diagram-stage > .er");
      er.setPointerCapture = () => {};
      const finger = (type, pointerId, clientX) => er.dispatchEvent(new PointerEvent(type, {
        bubbles: true, pointerId, clientX, clientY: 400, button: 0, pointerType: "touch",
      }));
      finger("pointerdown", 1, 300);
      finger("pointerdown", 2, 400);
      finger("pointermove", 2, 500);
      finger("pointerup", 1, 300);
      finger("pointerup", 2, 500);
    })()""")
    assert place(page)[2] == pytest.approx(2 * whole[2], abs=1e-3)


def test_search(mapped: Browse) -> None:
    page = mapped()
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Find a table or column")
    expect(box).to_be_focused()
    box.fill("ORDER")
    expect(page.locator(".n-found")).to_have_text("2 tables")  # orders, and lines by a column
    expect(table(page, "orders")).to_have_class("table match")
    expect(table(page, "lines")).to_have_class("table match")
    expect(page.locator(".diagram .row.match")).to_have_count(2)
    expect(table(page, "products")).to_have_css("opacity", "0.22")
    box.press("Enter")
    expect(page.locator(".n-found")).to_have_text("1 of 2")
    until(page, "location.hash === '#tab=map&name=orders'")
    stage = page.locator(".diagram-stage").bounding_box()
    found = table(page, "orders").bounding_box()
    for start, size in (("x", "width"), ("y", "height")):
        middle = found[start] + found[size] / 2
        assert middle == pytest.approx(stage[start] + stage[size] / 2, abs=2)
    box.press("Enter")
    until(page, "location.hash === '#tab=map&name=lines'")
    box.press("Shift+Enter")
    until(page, "location.hash === '#tab=map&name=orders'")
    box.fill("no such thing")
    expect(page.locator(".n-found")).to_have_text("nothing")
    box.press("Escape")
    expect(box).to_have_value("")
    expect(page.locator(".diagram .searching")).to_have_count(0)


# -- dragging ---------------------------------------------------------------------------------------


def test_a_dragged_table_takes_its_lines_along_and_stays_for_the_session(mapped: Browse) -> None:
    page = mapped()
    again = page.get_by_role("button", name="Lay out again")
    expect(again).to_be_disabled()
    before, others, scale = corner(page, "lines"), corner(page, "orders"), place(page)[2]
    drag(page, "lines", 30, 90)
    moved = corner(page, "lines")
    assert moved == pytest.approx((before[0] + 30 / scale, before[1] + 90 / scale), abs=0.2)
    assert corner(page, "orders") == others
    assert page.evaluate("location.hash") == "#tab=map"  # which is no click
    assert check_lines(page) == (6, 4)
    start = way(reference(page, "lines", "product_id").locator(".way").get_attribute("d"))[0]
    assert moved[1] < start[1] < moved[1] + 100
    page.reload()
    until(page, PAINTED)
    assert corner(page, "lines") == moved
    assert check_lines(page) == (6, 4)
    expect(again).to_be_enabled()
    again.click()
    assert corner(page, "lines") == before
    expect(again).to_be_disabled()
    page.reload()
    until(page, PAINTED)
    assert corner(page, "lines") == before


def test_lines_are_led_around_the_boxes_wherever_a_table_goes(mapped: Browse) -> None:
    page = mapped()
    for dx, dy in ((200, 120), (0, -330), (-180, -50)):
        drag(page, "products", dx, dy)
        boxes = boxes_of(page)
        for (one, (x, y)), (other, (u, v)) in combinations(boxes, 2):  # else no line could help it
            beside = x + one.width <= u or u + other.width <= x
            assert beside or y + one.height <= v or v + other.height <= y
        check_lines(page)


# -- files ------------------------------------------------------------------------------------------


def test_svg(mapped: Browse) -> None:
    page = mapped()
    drag(page, "lines", 40, 40)
    moved = corner(page, "lines")
    text = saved(page, "SVG").decode()
    picture = ET.fromstring(text)
    tables = {g.get("data-table"): g for g in picture.iter(f"{SVG}g") if g.get("class") == "table"}
    assert set(tables) - {"lines", "orders", "customers", "products", "discounts"} == {
        HOSTILE.replace("\u202e", "\\u202e")
    }
    assert numbers(tables["lines"].get("transform", "")) == pytest.approx(moved)
    states = [
        g.get("class") for g in picture.iter(f"{SVG}g") if (g.get("class") or "").startswith("reference")
    ]
    assert sorted(filter(None, states)) == [
        "reference broken",
        "reference broken",
        "reference holds",
        "reference unproved",
    ]
    assert "prefers-color-scheme" in (picture.findtext(f"{SVG}style") or "")
    # All of it is within the picture, and nothing is left of the page.
    [left, top, width, height] = numbers(picture.get("viewBox", ""))
    for group in tables.values():
        x, y = numbers(group.get("transform", ""))
        assert left < x < left + width
        assert top < y < top + height
    assert "tabindex" not in text
    assert "hit" not in text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_png(scheme: str, mapped: Browse) -> None:
    page = mapped(scheme=scheme)
    svg = ET.fromstring(saved(page, "SVG").decode())
    png = saved(page, "PNG")
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", png[16:24])
    wanted = [2 * float(svg.get(name, "0")) for name in ("width", "height")]
    assert size == pytest.approx(wanted, abs=3)
    # Its ground and its lines are those of the page: a picture that could not be drawn is of one colour.
    colours = page.evaluate(
        """async (bytes) => {
      const image = await createImageBitmap(new Blob([new Uint8Array(bytes)], { type: "image/png" }));
      const canvas = new OffscreenCanvas(image.width, image.height);
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, image.width, image.height);
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      return [`${data[0]},${data[1]},${data[2]}`, seen.size];
    }""",
        list(png),
    )
    assert colours[0] == {"light": "255,255,255", "dark": "18,24,31"}[scheme]
    assert colours[1] > 20


def test_mermaid(mapped: Browse, served: ExplorerServer) -> None:
    text = saved(mapped(), "Mermaid").decode()
    assert text == to_mermaid(model_of(served.explorer._newest.workspace))


# -- other workspaces -------------------------------------------------------------------------------


def test_a_new_version_is_drawn_in_place(
    browse: Browse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 3_600)  # the page hears of it by the answer to the click alone
    ws = shop(tmp_path / "w")
    with explored(ws) as server:
        page = browse(server, "#tab=map")
        until(page, PAINTED)
        page.locator(".diagram-stage > .er").focus()
        page.keyboard.press("+")
        page.keyboard.press("ArrowUp")
        before = place(page)
        ws.apply("products", inserts=PRODUCTS.take([3, 5]))
        page.locator(".reference-row.holds").first.click()
        expect(reference(page, "lines", "product_id")).to_have_class(re.compile("reference holds"))
        assert place(page) == before
        expect(page.locator(".diagram aside .state")).to_have_text("Holds: every value is there.")
        page.keyboard.press("Escape")
        expect(page.locator(".diagram aside h2")).to_have_text("1 reference is broken")


def test_nothing_moves_under_the_pointer(
    browse: Browse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New tables and references come, and those that are there stay where they are."""
    monkeypatch.setattr(listeners, "LOOK_S", 0.02)
    ws = shop(tmp_path / "w")
    names = ("customers", "orders", "lines", "products", "discounts")
    with explored(ws) as server:
        page = browse(server, "#tab=map")
        until(page, PAINTED)
        expect(page.locator("#live")).to_have_text("live")
        before = {name: corner(page, name) for name in names}
        seen = place(page)
        box = table(page, "products").bounding_box()
        page.mouse.move(box["x"] + 30, box["y"] + 10)
        expect(table(page, "products")).to_have_class(re.compile("lit"))
        more = {
            f"returns_{i}": pa.table({"product_id": [f"p{j:03}" for j in range(6, 50)]}) for i in range(3)
        }
        ws.track_all(more, kinds=("ucc", "ind"))
        expect(reference(page, "returns_2", "product_id")).to_have_count(1)
        assert {name: corner(page, name) for name in names} == before
        assert place(page) == seen
        expect(table(page, "products")).to_have_class(re.compile("lit"))
        drawn = [(*at, at[0] + box.width, at[1] + box.height) for box, at in boxes_of(page)]
        for a, b in combinations(drawn, 2):
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
        check_lines(page)
        # They go where they belong when somebody asks for it.
        page.get_by_role("button", name="Lay out again").click()
        laid = server.explorer.answer("workspace/map", {})["tables"]
        assert {t["name"]: corner(page, t["name"]) for t in laid if t["name"] in names} == {
            t["name"]: pytest.approx((t["x"], t["y"]), abs=0.06) for t in laid if t["name"] in names
        }
        expect(page.get_by_role("button", name="Lay out again")).to_be_disabled()


def test_tables_are_shown_before_references(
    browse: Browse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, at_once = threading.Event(), MapAnswers._map

    def late(self: MapAnswers) -> dict[str, Any]:
        assert asked.wait(120)
        return at_once(self)

    monkeypatch.setattr(MapAnswers, "_map", late)
    with explored(shop(tmp_path / "w")) as server:
        try:
            page = browse(server, "#tab=map")
            status = page.locator(".diagram-status")
            expect(status).to_have_text("Working out which inclusions among 6 tables are references …")
            assert check_lines(page) == (6, 0)
            expect(page.get_by_role("button", name="SVG")).to_be_disabled()
        finally:
            asked.set()
        until(page, PAINTED)
        assert check_lines(page) == (6, 4)
        expect(status).to_have_text("")


def test_without_tables_or_references_the_next_step_is_told(browse: Browse, tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    with explored(ws) as server:
        page = browse(server, "#tab=map")
        expect(page.locator(".diagram .notice")).to_contain_text("holdfast track-all FOLDER --kinds ucc,ind")
        ws.track("t", pa.table({"a": [1, 2, 3]}))
        ws.track("u", pa.table({"a": [1, 2, 3]}))
        page.reload()
        until(page, PAINTED)
        expect(page.locator(".diagram aside .notice")).to_contain_text("Inclusions are not tracked")
        expect(page.locator(".diagram aside .notice")).to_contain_text("--kinds ucc,ind")
        assert check_lines(page) == (2, 0)


def test_a_failure_is_told(browse: Browse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: MapAnswers) -> dict[str, Any]:
        raise holdfast.errors.UsageError("no luck")

    monkeypatch.setattr(MapAnswers, "_map", broken)
    with explored(shop(tmp_path / "w")) as server:
        page = browse(server, "#tab=map")
        expect(page.get_by_role("alert")).to_contain_text("no luck")


def test_a_narrow_screen_has_the_list_below(mapped: Browse) -> None:
    page = mapped(width=600)
    stage, aside = (page.locator(f".diagram {part}").bounding_box() for part in (".diagram-stage", "aside"))
    assert aside["y"] >= stage["y"] + stage["height"] - 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 600
    mapped(width=1280)


def test_a_table_of_the_lake_that_is_tracked_leads_to_its_view(browse: Browse, tmp_path: Path) -> None:
    planets = {"name": "planets", "headers": ["planet"], "columns": [["Venus", "Earth", "Mars"]]}
    moons = {"name": "moons", "headers": ["of"], "columns": [["Earth", "Mars", "Mars"]]}
    (tmp_path / "sky.jsonl").write_text(f"{json.dumps(planets)}\n{json.dumps(moons)}\n")
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.link(tmp_path / "sky.jsonl", json_name="name")
    ws.track("planets", pa.table({"planet": ["Venus", "Earth", "Mars"]}))
    with explored(ws) as server:
        page = browse(server, "#table=0")
        page.get_by_role("link", name="Open the tracked table").click()
        until(page, "location.hash === '#tab=table&name=planets'")
        page = browse(server, "#table=1")
        expect(page.locator("#details h2").first).to_have_text("moons")
        expect(page.get_by_role("link", name="Open the tracked table")).to_have_count(0)
