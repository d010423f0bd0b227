"""The page of `holdfast explore` in a browser, with a made-up lake."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from app.browser import PAGE, PATIENCE_S, Tabs, expect, explored, tab_to, until
from app.explorer_fake import (
    ALONE,
    CITIES,
    CLUSTERED,
    COVERED,
    CUT,
    HOSTILE,
    IMAGE,
    IN_A_COMPONENT,
    LARGE,
    SCRIPT,
    STATIC,
    SVG,
    WIDE,
    FakeLake,
    Serving,
    component,
    components,
    serving,
)
from app.shell import Shell
from holdfast.app.explorer.server import page_that_leads_to

pytestmark = PAGE
COUNTRIES = CITIES * IN_A_COMPONENT + 1
# Chromium without a graphics card emulates WebGL, which the page would not use.
A_CARD = """
const context = WebGL2RenderingContext.prototype;
const { getParameter, drawElements } = context;
context.getParameter = function (name) { return name === 0x9246 ? "a card" : getParameter.call(this, name); };
window.__drawn = {};
context.drawElements = function (mode, count, type, offset) {
  drawElements.call(this, mode, count, type, offset);
  const [width, height] = [this.drawingBufferWidth, this.drawingBufferHeight];
  const pixels = new Uint8Array(4 * width * height);
  this.readPixels(0, 0, width, height, this.RGBA, this.UNSIGNED_BYTE, pixels);
  let lit = 0;
  for (let i = 3; i < pixels.length; i += 4) if (pixels[i]) lit += 1;
  window.__drawn[mode] = { count, lit, error: this.getError() };
};
"""

Page = Any  # of playwright
Visit = Callable[..., Page]


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving(FakeLake()) as running:
        yield running


@pytest.fixture
def lake() -> FakeLake:
    return FakeLake()


@pytest.fixture
def visit(tabs: Tabs, served: Serving, lake: FakeLake) -> Iterator[Visit]:
    """Opens the page; at the end, nothing failed there, nothing was blocked, and nobody's script ran."""
    visited: list[Page] = []
    served.lake = lake
    tabs.wrong.clear()

    def leave(page: Page) -> None:
        assert page.evaluate("window.__violations") == []
        assert page.evaluate("window.__owned") is None
        page.context.set_offline(False)
        page.goto("about:blank")

    def go(
        hash_: str = "#tab=lake",
        *,
        width: int = 1280,
        scheme: str = "light",
        script: str = "",
        at: str = served.address,
    ) -> Page:
        page = tabs.get(script)
        if page in visited:
            leave(page)
        else:
            visited.append(page)
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme=scheme)
        page.bring_to_front()  # of several tabs only one has the keyboard
        page.goto(at + hash_)
        return page

    yield go
    for page in visited:
        leave(page)
    # Answers with an error are asked for by some tests.
    assert [line for line in tabs.wrong if not line.startswith("Failed to load resource")] == []


def painted(page: Page, nodes: int | None = None) -> float:
    """Waits for a graph, of this many nodes; when it was painted, in ms from the start of the navigation."""
    wanted = "true" if nodes is None else f"window.__holdfast.nodes === {nodes}"
    until(page, f"window.__holdfast !== undefined && {wanted}")
    return float(page.evaluate("window.__holdfast.painted"))


def click_node(page: Page, id_: int) -> None:
    """Points at a node, and clicks once the page has seen that: on a busy machine its place may change."""
    end, aside = time.monotonic() + PATIENCE_S, 0
    while True:
        place = page.evaluate(f"window.__holdfast.place({id_})")
        x, y = place["x"] + aside, place["y"]
        page.mouse.move(x, y)
        if page.evaluate(f"document.elementFromPoint({x}, {y})?.classList.contains('pointing') ?? false"):
            break
        assert time.monotonic() < end, f"the page does not see the pointer on node {id_}"
        page.wait_for_timeout(20)
        aside = 1 - aside  # a pointer that stays tells nothing
    page.mouse.down()
    page.mouse.up()


def hash_of(page: Page) -> str:
    return str(page.evaluate("location.hash"))


def slide(page: Page, key: str, value: float) -> None:
    page.locator(f"#least-{key}").fill(str(value))


# -- the lake ---------------------------------------------------------------------------------------


def test_it_opens_with_all_components_and_the_largest_one(visit: Visit) -> None:
    page = visit()
    painted(page, 48)
    expect(page.locator("#summary")).to_contain_text("31,204 tables")
    expect(page.locator("#summary")).to_contain_text("filters: null, integer, non-unique, coverage")
    expect(page.locator("#n-components")).to_have_text(f"{len(components()) + 1234:,}")
    first = page.locator("#component-list a").first
    expect(first).to_contain_text("web/airports_0.csv")
    expect(first).to_have_attribute("aria-current", "true")
    expect(page.locator("#component-list a")).to_have_count(200)
    page.get_by_role("button", name="Show 124 more").click()
    expect(page.locator("#component-list a")).to_have_count(324)
    expect(page.locator("#graph-facts")).to_contain_text("48 clusters")
    assert hash_of(page) == "#tab=lake"


def test_a_click_on_a_circle_drills_in(visit: Visit) -> None:
    page = visit()
    painted(page)
    until(page, "window.__holdfast.component(1) !== null")
    place = page.evaluate(f"window.__holdfast.component({LARGE})")
    page.mouse.move(place["x"], place["y"])
    expect(page.locator("#tip")).to_contain_text("10,000 tables")
    page.mouse.click(place["x"], place["y"])
    painted(page, 10_000)
    assert hash_of(page) == f"#component={LARGE}"
    expect(page.locator("#crumbs")).to_contain_text("gov/census_0.csv")
    expect(page.locator("#graph-facts")).to_have_text("10,000 tables, 30,000 edges")


def test_the_list_drills_in_and_a_node_is_selected(visit: Visit) -> None:
    page = visit()
    page.locator("#component-list a", has_text="geo/cities.csv").click()
    painted(page, 180)
    assert hash_of(page) == f"#component={CITIES}"
    expect(page.locator("#details h2")).to_contain_text("Tables 180")
    click_node(page, COUNTRIES)
    expect(page.locator("#details .head h2")).to_have_text("geo/countries.csv")
    assert hash_of(page) == f"#component={CITIES}&table={COUNTRIES}"
    page.keyboard.press("Escape")
    expect(page.locator("#details h2")).to_contain_text("Tables 180")
    assert hash_of(page) == f"#component={CITIES}"


def test_the_list_of_tables_narrows(visit: Visit) -> None:
    page = visit(f"#component={CITIES}")
    page.locator(".narrow").fill("COUNTRIES")
    expect(page.locator("#details li")).to_have_count(1)
    page.locator("#details li a").click()
    expect(page.locator("#details .head h2")).to_have_text("geo/countries.csv")
    page.locator(".close").click()
    page.locator(".narrow").fill("no such table")
    expect(page.locator("#details")).to_contain_text("Nothing found")


def test_a_table_has_columns_rows_and_inclusions(visit: Visit) -> None:
    page = visit(f"#component={CITIES}&table={COUNTRIES}")
    details = page.locator("#details")
    expect(details.locator(".source")).to_have_text("/srv/lake/geo/countries.csv")
    expect(details.locator(".columns tbody tr")).to_have_count(5)
    expect(details.locator(".columns tbody tr").first).to_contain_text("unique")
    expect(details.locator(".sample tbody tr")).to_have_count(10)
    expect(details.locator(".sample")).to_contain_text("Tromsø")
    expect(details.locator(".sample .nothing", has_text="empty text")).to_have_count(1)
    expect(details.locator("h3.out")).to_contain_text("Contained in 1")
    expect(details.locator("h3.into")).to_contain_text("Contains 5")
    expect(details.locator(".ind .number").first).to_be_visible()
    details.locator(".ind").first.click()
    expect(details.locator(".ind").first).to_have_attribute("aria-expanded", "true")
    expect(details.locator(".match .chip").first).to_have_text("Oslo")
    expect(details.locator(".rest .chip").first).to_have_text("Oslo North")
    details.locator(".values .go").click()
    expect(details.locator(".head h2")).not_to_have_text("geo/countries.csv")
    assert re.fullmatch(rf"#component={CITIES}&table=\d+", hash_of(page))


def test_a_wide_table_shows_a_few_columns_first(visit: Visit) -> None:
    page = visit(f"#table={WIDE['id']}")
    columns = page.locator("#details .columns tbody tr")
    expect(columns).to_have_count(20)
    expect(page.locator("#details")).to_contain_text("and 240 columns more")
    page.get_by_role("button", name="Show 200 more of 280").click()
    expect(columns).to_have_count(220)
    page.get_by_role("button", name="Show 80 more of 80").click()
    expect(columns).to_have_count(300)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_column_shows_its_inclusions_only(visit: Visit) -> None:
    page = visit(f"#component={CITIES}&table={COUNTRIES}")
    inds = page.locator("#details .ind")
    expect(inds).to_have_count(6)
    column = page.locator("button.column", has_text="population")
    column.click()
    expect(page.locator("#details")).to_contain_text("All filtered")
    column.click()
    expect(inds).to_have_count(6)


def test_sliders_filter_edges_and_inclusions(visit: Visit) -> None:
    page = visit(f"#component={CITIES}&table={COUNTRIES}")
    painted(page, 180)
    expect(page.locator("#details .ind")).to_have_count(6)
    slide(page, "score", 0.5)
    expect(page.locator("#graph-facts")).to_contain_text(re.compile(r"^180 tables, \d+ of 288 edges$"))
    until(
        page,
        """(() => {
      const shown = [...document.querySelectorAll("#details .ind .meter:nth-of-type(2) .number")];
      return shown.length > 0 && shown.every((node) => Number(node.innerText) >= 0.5);
    })()""",
    )
    until(page, "location.hash.includes('score=0.5')")
    slide(page, "score", 0)
    slide(page, "coverage", 0.8)
    expect(page.locator("#graph-facts")).to_have_text("180 tables, 288 edges")
    expect(page.locator("#details")).to_contain_text("hidden by filters")
    slide(page, "coverage", 1)
    expect(page.locator("#details")).to_contain_text("All filtered")
    until(page, "location.hash.includes('coverage=1')")
    # Filters stay on the way, and come with the address.
    page.locator(".close").click()
    page.locator("#details li a").first.click()
    until(page, "location.hash.includes('coverage=1')")
    page.reload()
    expect(page.locator("output[for=least-coverage]")).to_have_text("≥ 100%")


def test_edges_are_filtered_by_coverage_where_it_is_told(visit: Visit) -> None:
    page = visit(f"#component={COVERED}")
    painted(page)
    slide(page, "coverage", 0.5)
    few = sum(c >= 0.5 for c in component(COVERED)["edges"]["coverage"])
    expect(page.locator("#graph-facts")).to_contain_text(f", {few} of ")


def test_who_goes_on_at_once_takes_the_filters_along(visit: Visit) -> None:
    """The address is written a moment after a slider moved: what is done in between knows of it."""
    page = visit(f"#component={CITIES}&table={COUNTRIES}")
    expect(page.locator("#details .head h2")).to_have_text("geo/countries.csv")
    slide(page, "score", 0.5)
    until(page, "location.hash.includes('score=0.5')")
    page.evaluate("""() => {
      const slider = document.getElementById("least-score");
      slider.value = 0;
      slider.dispatchEvent(new Event("input"));
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
    }""")
    expect(page.locator("#details h2")).to_contain_text("Tables 180")
    assert hash_of(page) == f"#component={CITIES}"
    expect(page.locator("#least-score")).to_have_value("0")


def test_nodes_without_an_edge_are_dimmed(visit: Visit) -> None:
    page = visit(f"#component={CITIES}")
    painted(page, 180)
    dark = """() => {
      const canvas = document.querySelector("#stage canvas");
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      let sum = 0;
      for (let i = 3; i < pixels.length; i += 4) sum += pixels[i];
      return sum;
    }"""
    before = page.evaluate(dark)
    slide(page, "score", 1)
    expect(page.locator("#graph-facts")).to_contain_text("0 of 288 edges")
    until(page, f"({dark})() < {0.5 * before}")


def test_of_very_many_edges_only_the_best_are_in_the_graph(visit: Visit) -> None:
    """Nodes whose edges were left out are no strangers, and the selected table shows its own."""
    told = component(CUT)
    drawn = {i for end in ("from", "to") for i in told["edges"][end]}
    lonely = next(i for i in range(told["n_tables"]) if i not in drawn)
    page = visit(f"#component={CUT}")
    painted(page, told["n_tables"])
    expect(page.locator("#graph-facts")).to_contain_text(f"(the best of {told['n_edges']})")
    assert page.evaluate("window.__holdfast.faint()") == 0
    slide(page, "score", min(told["edges"]["score"]) + 0.01)
    until(page, "window.__holdfast.faint() > 0")  # what was left out would not pass, either
    slide(page, "score", 0)
    click_node(page, told["nodes"]["id"][lonely])
    expect(page.locator("#details .head h2")).to_have_text(told["nodes"]["label"][lonely])
    n = told["nodes"]["degree"][lonely]
    until(page, f"window.__holdfast.lit() === {n}")
    assert page.evaluate("window.__holdfast.faint()") == told["n_tables"] - 1 - n
    page.keyboard.press("Escape")
    page.mouse.move(600, 5)
    until(page, "window.__holdfast.lit() === 0 && window.__holdfast.faint() === 0")


def test_clusters_open_and_crumbs_back_and_reload_lead_back(visit: Visit) -> None:
    page = visit(f"#component={CLUSTERED}")
    painted(page, 48)
    click_node(page, 7)
    painted(page, 572)
    assert hash_of(page) == f"#component={CLUSTERED}&cluster=7"
    expect(page.locator("#crumbs a")).to_have_count(2)
    page.locator("#details li a").first.click()
    expect(page.locator("#details .head")).to_be_visible()
    with_table = hash_of(page)
    page.reload()
    painted(page, 572)
    assert hash_of(page) == with_table
    expect(page.locator("#details .head")).to_be_visible()
    expect(page.locator("#crumbs a").first).to_contain_text("web/airports_0.csv")
    page.go_back()
    expect(page.locator("#details h2")).to_contain_text("Tables 572")
    page.go_back()
    painted(page, 48)
    expect(page.locator("#details h2")).to_contain_text("Clusters 48")
    page.go_forward()
    painted(page, 572)
    page.locator("#crumbs a").first.click()
    painted(page, 48)


def test_the_view_moves_by_drag_wheel_keys_and_buttons(visit: Visit) -> None:
    page = visit(f"#component={CITIES}")
    painted(page, 180)
    middle = page.locator("#stage canvas.front").first
    box = middle.bounding_box()

    def apart() -> float:
        a, b = (page.evaluate(f"window.__holdfast.place({COUNTRIES + i})") for i in (0, 70))
        return float(((a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2) ** 0.5)

    def left() -> float:
        return float(page.evaluate(f"window.__holdfast.place({COUNTRIES})")["x"])

    start, at = apart(), left()
    page.mouse.move(box["x"] + 30, box["y"] + 200)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 240, steps=3)
    page.mouse.up()
    assert left() == pytest.approx(at + 60, abs=1)
    assert apart() == pytest.approx(start, rel=1e-3)
    assert hash_of(page) == f"#component={CITIES}"  # a drag selects nothing
    page.mouse.wheel(0, -300)  # which nobody waits for
    end = time.monotonic() + PATIENCE_S
    while apart() < 1.2 * start:
        assert time.monotonic() < end, "the wheel does nothing"
        page.wait_for_timeout(20)
    middle.focus()
    page.keyboard.press("0")
    assert apart() == pytest.approx(start, rel=1e-3)
    page.keyboard.press("+")
    assert apart() == pytest.approx(1.3 * start, rel=1e-3)
    page.keyboard.press("-")
    assert apart() == pytest.approx(start, rel=1e-3)
    page.locator("#zoom-in").click()
    assert apart() > 1.3 * start
    page.locator("#zoom-fit").click()
    assert apart() == pytest.approx(start, rel=1e-3)


def test_the_list_of_components_marks_when_it_is_painted(visit: Visit) -> None:
    """The graph beside it has a mark of its own, and may take longer."""
    page = visit("#tab=lake")
    until(page, "performance.getEntriesByName('holdfast-painted-lake').length === 1")
    assert page.locator("#component-list a").count() > 0


def test_ten_thousand_nodes_are_painted_and_move(visit: Visit) -> None:
    """How fast is measured by `benchmarks/page.py`."""
    page = visit(f"#component={LARGE}")
    painted(page, 10_000)
    assert page.evaluate("performance.getEntriesByName('holdfast-first-paint').length") >= 1
    assert page.evaluate("window.__holdfast.nodes") == 10_000
    expect(page.locator("#graph-facts")).to_contain_text("10,000 tables")
    node = component(LARGE)["nodes"]["id"][0]
    before = page.evaluate(f"window.__holdfast.place({node})")
    page.evaluate("""async () => {
      const canvas = document.querySelector("#stage canvas.front");
      for (let i = 0; i < 30; i++) {
        canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -20, clientX: 500, clientY: 400 }));
        await new Promise(requestAnimationFrame);
      }
    }""")
    assert page.evaluate(f"window.__holdfast.place({node})") != before


def test_webgl_draws_where_there_is_a_graphics_card(visit: Visit) -> None:
    page = visit(f"#component={CITIES}", script=A_CARD)
    painted(page, 180)
    points, lines = (until(page, f"window.__drawn[{mode}]") for mode in (0, 1))
    assert points["count"] == 180
    assert lines["count"] == 2 * 288
    assert points["lit"] > lines["lit"] > 500
    assert points["error"] == lines["error"] == 0
    slide(page, "score", 0.5)
    until(page, "window.__drawn[1].count < 300")
    # The card is taken away: the page goes on without it.
    page.evaluate("""() => {
      const canvas = document.querySelector("#stage canvas");
      canvas.getContext("webgl2").getExtension("WEBGL_lose_context").loseContext();
    }""")
    until(page, "document.querySelector('#stage canvas').getContext('2d') !== null")
    click_node(page, COUNTRIES)
    expect(page.locator("#details .head h2")).to_have_text("geo/countries.csv")


# A busy machine: the page hears late that its address has changed.
LATE = """
addEventListener("hashchange", (event) => {
  if (event.late) return;
  event.stopImmediatePropagation();
  setTimeout(() => dispatchEvent(Object.assign(new Event("hashchange"), { late: true })), 400);
});
"""


def test_whoever_sets_a_filter_and_goes_on_gets_there(visit: Visit) -> None:
    page = visit(f"#component={CITIES}", script=LATE)
    painted(page, 180)
    slide(page, "score", 0.1)
    page.evaluate(f"location.hash = '#component={CITIES}&table={COUNTRIES}'")
    expect(page.locator("#details .head h2")).to_have_text("geo/countries.csv")
    assert "score=0.1" in hash_of(page)
    assert f"table={COUNTRIES}" in hash_of(page)


def test_a_table_without_inclusions_is_in_no_component(visit: Visit) -> None:
    page = visit(f"#table={ALONE['id']}")
    expect(page.locator(".message")).to_contain_text("In no component")
    expect(page.locator("#details .head h2")).to_have_text("misc/alone.csv")
    expect(page.locator("#details")).to_contain_text("No inclusions")


def test_a_lake_that_is_not_made_up(visit: Visit, tmp_path: Path) -> None:
    """With the server of `holdfast explore`, on a workspace."""
    files = {
        "cities.csv": ["city,country", "Oslo,Norway", "Bergen,Norway", "Turku,Finland", f"{SCRIPT},Iceland"],
        f"{IMAGE[:4]}.csv": ["town,visits", f"{SCRIPT},3", "Oslo,1", "Turku,8"],
        "alone.csv": [IMAGE.replace('"', ""), "x"],
    }
    (tmp_path / "lake").mkdir()
    for name, lines in files.items():
        (tmp_path / "lake" / name).write_text("\n".join(lines), "utf-8")
    shell = Shell(tmp_path)
    (tmp_path / "orders.csv").write_text("id,day\n1,mon\n2,tue\n", "utf-8")
    assert shell("track", "orders", str(tmp_path / "orders.csv"), "--kinds", "ucc,fd,ind,dc").code == 0
    assert shell("link", str(tmp_path / "lake")).code == 0
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws, explored(ws) as server:
        page = visit("", at=server.address)
        page.wait_for_url(server.page_address)
        page.locator("#tab-lake").click()
        painted(page, 2)
        expect(page.locator("#summary")).to_contain_text("3 tables")
        page.locator("#details li a", has_text="<img").click()
        expect(page.locator("#details .sample td").first).to_have_text(SCRIPT)
        page.locator("#details .ind").first.click()
        expect(page.locator("#details .match .chip")).to_have_count(3)
        expect(page.locator("#details .rest .chip")).to_have_text("Bergen")
        page.locator("#search-text").fill("alone")
        page.locator("#search-results .option").first.click()
        expect(page.locator(".message")).to_contain_text("In no component")
        page.locator("#tab-table").click()
        expect(page.locator("#tracked-table h3", has_text="Keys 2")).to_be_visible()
        expect(page.locator("#tracked-table .history > li")).to_have_count(1)
        page.goto("about:blank")  # nothing is asked of the server any more


def test_the_way_in_is_open_to_who_has_the_file(tabs: Tabs, tmp_path: Path) -> None:
    """From a file, which is another site, and with the address; the page's own address opens nothing."""
    holdfast.open(tmp_path / "my.hold", engine="inline").close()
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws, explored(ws) as server:
        file = tmp_path / "page.html"
        file.write_bytes(page_that_leads_to(server.address))
        for way in (file.as_uri(), server.address):
            context = tabs.browser.new_context()
            page = context.new_page()
            page.set_default_timeout(1_000 * PATIENCE_S)
            assert page.goto(server.page_address).status == 403
            page.goto("about:blank")
            page.goto(way)
            page.wait_for_url(server.page_address)
            expect(page.locator("#tab-table")).to_be_visible()
            [cookie] = context.cookies(server.page_address)
            assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
            assert cookie["path"] == f"/{server.place}/"
            assert page.evaluate("document.cookie") == ""
            page.reload()
            expect(page.locator("#tab-table")).to_be_visible()
            page.go_back()
            page.wait_for_url("about:blank")  # nothing on the way in was kept
            context.close()


# -- search -----------------------------------------------------------------------------------------


def test_the_search_finds_tables_columns_and_values(visit: Visit) -> None:
    page = visit()
    painted(page, 48)
    page.keyboard.press("/")
    expect(page.locator("#search-text")).to_be_focused()
    page.locator("#search-text").fill("countr")  # at once: an answer to half of it would come in between
    results = page.locator("#search-results")
    expect(results.locator(".group-title").first).to_contain_text("Tables")
    expect(results.locator(".option").first).to_contain_text("geo/countries.csv")
    expect(results.locator(".group").nth(1)).to_contain_text("country")
    page.keyboard.press("ArrowDown")
    expect(results.locator(".option").first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(results).to_be_hidden()
    expect(page.locator("#details .head h2")).to_have_text("geo/countries.csv")
    painted(page, 180)
    page.locator("#search-text").fill("Oslo")
    expect(results).to_contain_text("Value Oslo in 180 columns")
    results.locator(".option").first.click()
    expect(page.locator("#details .head h2")).to_have_text("geo/cities.csv")


def test_enter_opens_what_was_typed_not_what_is_still_listed(visit: Visit) -> None:
    page = visit()
    page.locator("#search-text").fill("countr")
    expect(page.locator("#search-results .option").first).to_contain_text("geo/countries.csv")
    page.locator("#search-text").fill("stations_7.csv")
    page.keyboard.press("Enter")
    expect(page.locator("#details .head h2")).to_have_text("web/stations_7.csv")
    expect(page.locator("#search-results")).to_be_hidden()


def test_the_keyboard_goes_where_the_reader_goes(visit: Visit) -> None:
    page = visit(f"#component={CITIES}")
    painted(page, 180)
    where = "document.activeElement.closest('#details h2')?.textContent"
    page.locator("#search-text").fill("countries")
    page.keyboard.press("Enter")
    until(page, f"{where} === 'geo/countries.csv'")
    page.keyboard.press("Escape")
    until(page, f"{where} === 'Tables 180neighbours'")
    tab_to(page, "document.activeElement.matches('.narrow')")
    tab_to(page, "document.activeElement.matches('#details li a')")
    page.keyboard.press("Enter")
    until(page, "document.activeElement.matches('#details .head h2')")
    # Whoever is elsewhere stays there.
    page.locator("#component-list a").nth(1).focus()
    page.keyboard.press("Enter")
    painted(page, 10_000)
    until(page, "document.activeElement === document.querySelectorAll('#component-list a')[1]")


def test_a_table_in_a_cluster_opens_its_cluster(visit: Visit) -> None:
    page = visit(f"#component={CITIES}")
    painted(page, 180)
    page.locator("#search-text").fill("stations_7.csv")
    page.locator("#search-results .option").first.click()
    painted(page, 572)
    expect(page.locator("#details .head h2")).to_have_text("web/stations_7.csv")
    until(page, f"location.hash.startsWith('#component={CLUSTERED}&cluster=7&table=')")


def test_the_search_finds_nothing_or_fails_in_words(visit: Visit, lake: FakeLake) -> None:
    page = visit()
    page.locator("#search-text").fill("zzz")
    expect(page.locator("#search-results")).to_contain_text("Nothing found")
    lake.broken.add("search")
    page.locator("#search-text").fill("zzzz")
    expect(page.locator("#search-results")).to_contain_text("told to fail at search")
    page.keyboard.press("Escape")
    expect(page.locator("#search-results")).to_be_hidden()


# -- strangers' texts -------------------------------------------------------------------------------


def test_markup_in_names_headers_and_cells_is_text(visit: Visit) -> None:
    page = visit(f"#component={HOSTILE}&table={HOSTILE * IN_A_COMPONENT}")
    painted(page, 4)
    details = page.locator("#details")
    expect(details.locator(".head h2")).to_have_text(f"evil/{SCRIPT}.csv")
    expect(details.locator(".sample th").first).to_have_text(IMAGE)
    expect(details.locator(".sample td").first).to_have_text(SCRIPT)
    expect(details.locator(".sample td").nth(3)).to_have_text(SVG)
    expect(details.locator(".columns .column").nth(1)).to_have_text(SCRIPT)
    details.locator(".ind").first.click()
    expect(details.locator(".match .chip").first).to_have_text(SCRIPT)
    expect(details.locator(".rest .chip").first).to_contain_text(SVG)
    page.locator("#search-text").fill("<script")
    expect(page.locator("#search-results .option").first).to_contain_text(f"evil/{SCRIPT}.csv")
    assert page.locator("main script, main img, main svg[onload], .results script").count() == 0
    place = page.evaluate("window.__holdfast.place(300001)")
    page.mouse.move(place["x"], place["y"])
    page.locator("#tab-table").click()
    expect(page.locator("#tracked-list")).to_contain_text(f"customers {SCRIPT}")
    expect(page.locator("#tracked-table")).to_contain_text(f"[{IMAGE}]")
    page.wait_for_timeout(100)


def test_what_cannot_be_seen_is_shown(visit: Visit) -> None:
    page = visit(f"#component={HOSTILE}&table={HOSTILE * IN_A_COMPONENT}")
    cells = page.locator("#details .sample tbody tr").nth(2).locator("td")
    expect(cells.nth(1)).to_have_text(r"\u202eabc\n\x00")
    expect(cells.nth(1).locator(".escape")).to_have_text([r"\u202e", r"\n", r"\x00"])
    expect(cells.nth(2)).to_have_text("␣␣Bergen␣")
    page.keyboard.press("Escape")
    expect(page.locator("#details .narrow")).to_be_visible()  # the list, no more the table: both have entries
    expect(page.locator("#details li", has_text=r"evil/\u202egnp.exe\n2.csv")).to_be_visible()
    page.locator("#details li a", has_text="gnp.exe").click()
    until(page, r"document.title.startsWith('evil/\\u202egnp.exe\\n2.csv')")


def test_the_address_is_not_trusted(visit: Visit) -> None:
    page = visit("#tab=lake&component=javascript:alert(1)&table=<img>&score=9")
    painted(page, 48)
    expect(page.locator("#crumbs")).to_contain_text("web/airports_0.csv")
    page = visit(f"#tab=tracked&name={IMAGE}")
    expect(page.locator("#tracked-table")).to_contain_text(IMAGE)


def test_the_files_have_no_way_to_run_a_text() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|DOMParser|"
        r"createContextualFragment|setHTML|srcdoc|javascript:|https?://(?!www\.w3\.org/2000/svg)"
    )
    files = sorted(STATIC.iterdir())
    assert {f.suffix for f in files} == {".html", ".css", ".js"}
    for file in files:
        assert forbidden.findall(file.read_text("utf-8")) == [], file.name
        assert not re.search(r"setTimeout\(\s*[\"'`]", file.read_text("utf-8")), file.name
    page = (STATIC / "index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)", page)
    modules = {f.name for f in files if f.suffix == ".js"}
    used = set(re.findall(r'(?:src|href)="([a-z0-9_]+\.js)"', page))
    for file in files:
        if file.suffix == ".js":
            text = file.read_text("utf-8")
            imported = re.findall(r'(?:from |import\()"\./([^"]+)"', text)
            used |= set(imported)
    assert used == modules


def test_no_sheet_says_how_elements_of_another_view_look() -> None:
    """A class alone, such as `.broken`, stands in one sheet; others give it a meaning only beside another."""
    shared = {"style.css", "panels.css"}
    alone: dict[str, set[str]] = {}
    beside: dict[str, set[str]] = {}
    for sheet in STATIC.glob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text("utf-8"), flags=re.DOTALL)
        for selectors in re.findall(r"([^{}]+)\{", text):
            for selector in selectors.split(","):
                first, *more = re.findall(r"\.([a-z-]+)", selector) or [""]
                if re.fullmatch(r"\.[a-z-]+\b[^.]*", selector.strip()):
                    alone.setdefault(first, set()).add(sheet.name)
                for name in more:
                    beside.setdefault(name, set()).add(sheet.name)
    for name, sheets in alone.items():
        views = sheets - shared
        assert len(views) <= 1, f".{name} stands alone in {sorted(sheets)}"
        assert not views or not beside.get(name, set()) - views - shared, f".{name} of {sorted(views)}"


# -- tracked tables ---------------------------------------------------------------------------------


def test_tracked_tables_with_what_holds_and_their_history(visit: Visit) -> None:
    page = visit()
    page.locator("#tab-table").click()
    sheet = page.locator("#tracked-table")
    expect(sheet.locator("h2")).to_have_text("orders")
    for words in (
        "Keys 2",
        "References 1",
        "Columns 2",
        "What holds 8",
        "Functional dependencies by left side 1",
    ):
        expect(sheet.locator("h3", has_text=words)).to_be_visible()
    expect(sheet.locator(".dependency")).to_have_count(8)
    expect(sheet).to_contain_text("orders[customer_id] in customers[customer_id]")
    expect(sheet).to_contain_text("rows with the same zip have the same city")
    expect(sheet).to_contain_text("8 exceptions")
    expect(sheet.locator(".picture .knot")).to_have_count(1)
    entries = sheet.locator(".history > li")
    expect(entries).to_have_count(3)
    expect(entries.first).to_contain_text("Version 3")
    entries.first.locator("summary").click()
    expect(entries.first.locator(".sample tbody tr")).to_have_count(2)
    expect(entries.first.locator(".sample")).to_contain_text("9007199254740993")  # 2^53 + 1, to the digit
    expect(entries.first.locator(".sample")).to_contain_text("1.3")
    expect(entries.first.locator("summary")).to_contain_text("1, now 4,004 rows")
    expect(entries.first.locator("summary")).not_to_contain_text("orders")
    expect(entries.nth(1)).to_contain_text("batch night-2")
    # A row count of another table comes with its name.
    expect(entries.nth(1).locator("summary")).to_contain_text(re.compile(r"customers: \+5 .0, now 771 rows"))
    entries.nth(2).locator("summary").click()
    expect(entries.nth(2)).to_contain_text("not(t.zip = s.zip and t.city != s.city)")
    expect(entries.nth(2)).to_contain_text("and 70 more changes")
    page.locator("#tracked-list a").nth(1).click()
    expect(sheet.locator("h2")).to_have_text(f"customers {SCRIPT}")
    expect(sheet).to_contain_text("No combination of columns is unique")
    expect(sheet).to_contain_text("Nothing is known to hold")
    page.go_back()
    expect(sheet.locator("h2")).to_have_text("orders")
    page.locator("#tab-lake").click()
    expect(page.locator("#lake")).to_be_visible()


# -- nothing there, or something wrong --------------------------------------------------------------


@pytest.mark.parametrize("lake", [FakeLake(lake=False, tracked=False)])
def test_an_empty_workspace(visit: Visit) -> None:
    page = visit()
    expect(page.locator(".message")).to_contain_text("holdfast link FOLDER")
    page.locator("#tab-table").click()
    expect(page.locator("#tracked-table")).to_contain_text("holdfast track NAME FILE")


@pytest.mark.parametrize("lake", [FakeLake(inds=False)])
def test_a_lake_without_inclusions(visit: Visit) -> None:
    page = visit()
    expect(page.locator(".message")).to_contain_text("No inclusions")
    expect(page.locator("#component-list")).to_contain_text("No components")


@pytest.mark.parametrize("path", ["summary", "components", "component", "table", "ind", "workspace/log"])
def test_an_error_is_told_in_words(visit: Visit, lake: FakeLake, path: str) -> None:
    lake.broken.add(path)
    tracked = path.startswith("workspace")
    with_parts = path in ("component", "table", "ind")
    page = visit(
        "#tab=tracked" if tracked else f"#component={CITIES}&table={COUNTRIES}" if with_parts else "#tab=lake"
    )
    if path == "ind":
        page.locator("#details .ind").first.click()
    expect(page.locator(".notice.error:visible").first).to_contain_text(f"told to fail at {path}")


def test_what_is_not_there_and_a_server_that_is_gone(visit: Visit) -> None:
    page = visit("#component=77777")
    expect(page.locator(".message")).to_contain_text("no component 77777")
    page.locator("#component-list a", has_text="geo/cities.csv").click()
    painted(page, 180)
    page.evaluate("location.hash = '#table=299999'")  # of the graphs the largest is as good as any
    painted(page, 48)
    page.evaluate(f"location.hash = '#component={CITIES}&table=299999'")
    expect(page.locator("#details")).to_contain_text("no table 299999")
    page.get_by_text("Back to the list").click()
    expect(page.locator("#details h2")).to_contain_text("Tables 180")
    page.context.set_offline(True)
    page.locator("#component-list a").first.click()
    expect(page.locator(".message")).to_contain_text("Is 'holdfast explore' still running?")


def test_a_workspace_that_has_changed(visit: Visit, lake: FakeLake) -> None:
    page = visit(f"#component={CITIES}")
    painted(page, 180)
    page.evaluate("window.__stays = true")
    lake.version += 1
    page.locator("#details li a").first.click()
    heading = page.locator("#details .head h2")
    expect(heading).to_be_visible()
    name, hash_ = heading.text_content(), hash_of(page)
    # The pointer is there, so it waits until it is asked for; then all is as it was, without a reload. The
    # pointer stays: what waits comes by itself when it leaves.
    newer = page.get_by_role("button", name="Show what is newer")
    page.evaluate("performance.clearMarks('holdfast-first-paint')")
    newer.evaluate("button => button.click()")
    until(page, "performance.getEntriesByName('holdfast-first-paint').length > 0")
    painted(page, 180)
    expect(heading).to_have_text(name)
    assert hash_of(page) == hash_
    assert page.evaluate("window.__stays")
    expect(newer).to_be_hidden()
    expect(page.locator("#outdated")).to_be_hidden()


# -- how it looks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [800, 1280, 1600])
def test_everything_has_its_place(visit: Visit, width: int) -> None:
    page = visit(f"#component={CITIES}&table={COUNTRIES}", width=width)
    painted(page, 180)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for place in ("#map", "#component-list", "#stage", "#details .head", "#search-text", "#least-score"):
        box = page.locator(place).bounding_box()
        assert box["width"] > 60, place
        assert box["x"] >= 0, place
        assert box["x"] + box["width"] <= width, place
    assert page.locator("#stage").bounding_box()["height"] > 300


def test_dark_where_the_system_is(visit: Visit) -> None:
    def ground(scheme: str) -> int:
        page = visit(scheme=scheme)
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return int(re.findall(r"\d+", colour)[0])

    assert ground("light") > 200
    assert ground("dark") < 60
