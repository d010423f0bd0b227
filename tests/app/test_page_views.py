"""Every view of the page, and what it turns into, in light, in the dark and on a narrow screen: nothing is
out of its place (`layout.py`), and everybody can use it (`axe.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.axe import serious
from app.browser import PAGE, expect, explored
from app.explorer_fake import CLUSTERED, FakeLake, serving
from app.layout import Place, problems

pytestmark = PAGE
Page = Any  # of playwright
REFERENCE = "orders[customer_id] in customers[customer_id]"
HEAD: tuple[Place, ...] = (
    (".top", "above", "#bar"),
    (".brand", "left of", ".tabs"),
    ("#bar", "above", "main"),
)


def bar_clicked(page: Page) -> None:
    box = page.locator(".timeline .up").first.bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + 2)


def pin_pressed(page: Page) -> None:
    page.get_by_role("button", name="Pin [order_id]", exact=True).first.click()


def searched(page: Page) -> None:
    page.locator("#search-text").fill("planet")


@dataclass(frozen=True)
class View:
    """An address of a server, what is done there, what is there when the view is; and where its parts stand,
    on wide screens."""

    address: str
    ready: str
    places: tuple[Place, ...] = ()
    act: Callable[[Page], None] | None = None
    server: str = "reading"


# The health of tables and the timeline come by requests of their own.
DRAWN = "#overview:has(.word.broken) .bar-words:not(:empty)"
OVERVIEW: tuple[Place, ...] = (
    ("#overview .state", "above", ".timeline-part"),
    (".timeline-head", "above", "svg.timeline"),
    (".timeline-part", "above", ".halves"),
    (".healths", "left of", ".right-half"),
    (".health-row .health", "left of", ".health-row .name"),
    (".health-row .name", "left of", ".spark"),
    (".spark", "left of", ".health-row .trouble"),
)
MAP: tuple[Place, ...] = (
    (".tools", "above", ".diagram-stage"),
    (".diagram-stage", "above", ".meanings"),
    (".diagram-middle", "left of", ".diagram .right"),
    (".diagram .zoom", "inside", ".diagram-stage"),
    (".find", "left of", ".tools .save"),
)
TABLE: tuple[Place, ...] = (
    ("#tracked-list", "left of", "#tracked-table"),
    (".sheet .head", "above", ".of-keys"),
    (".of-keys", "above", ".of-columns"),
    (".dependency .kind", "left of", ".dependency .what"),
    (".dependency .what", "left of", ".dependency .scored"),
)
EXPLAIN: tuple[Place, ...] = (
    ("#ask-table", "left of", ".ask-field"),
    (".ask-field", "left of", ".ask-go"),
    (".ask-row", "above", ".explanation"),
)
LAKE: tuple[Place, ...] = (
    ("#lake .left", "left of", "#lake .middle"),
    ("#lake .middle", "left of", "#details"),
    ("#map", "above", "#component-list"),
    ("#component-list li:nth-child(1) .count", "ends with", "#component-list li:nth-child(2) .count"),
    ("#lake .zoom", "inside", "#stage"),
)
VIEWS = {
    "overview": View("", DRAWN, OVERVIEW),
    "versions": View("", ".versions > li", ((".healths", "left of", ".right-half"),), bar_clicked),
    "map": View("#tab=map", "#diagram .reference .label", MAP),
    "reference": View(f"#tab=map&name=orders&ask={REFERENCE}", ".orphan-values tbody tr", MAP),
    "table": View("#tab=table&name=orders", "#tracked-table .dependencies li", TABLE),
    "buttons": View("#tab=table&name=orders", ".act.pin", TABLE, server="writing"),
    "dialog": View(
        "#tab=table&name=orders",
        "dialog.terms",
        (
            (".terms label", "left of", ".terms input"),
            ("#terms-at_most", "in line with", "#terms-reason"),
            (".terms .ends", "inside", ".terms"),
        ),
        pin_pressed,
        "writing",
    ),
    "linked": View("#tab=table&lake=0", "#tracked-table .sample", TABLE[:1]),
    "no such table": View("#tab=table&name=nobody", "#tracked-table .notice.error", TABLE[:1]),
    "dependency": View("#tab=dependency&name=orders&ask=product -> unit_price", "#dependency tr", EXPLAIN),
    "invitation": View("#tab=dependency&name=orders", ".invitation .examples", EXPLAIN),
    "misread": View("#tab=dependency&name=orders&ask=not(this", "#dependency .problem", EXPLAIN),
    "lake": View("#tab=lake", "#details .paged a", LAKE),
    "table of the lake": View("#component=0&table=0", "#details .body h3", LAKE),
    "search": View("#tab=lake", "#search-results .option", LAKE, searched),
    "clusters": View(
        f"#component={CLUSTERED}", "#lake:has(#component-list li) #details li", LAKE, server="fake"
    ),
    "no tables": View("#tab=overview", "#overview .notice", server="empty"),
    "no map": View("#tab=map", "#diagram .notice", server="empty"),
    "nothing to list": View("#tab=table", "#tracked .notice", server="empty"),
    "nothing to ask": View("#tab=dependency", "#dependency .notice", server="empty"),
    "no lake": View("#tab=lake", "#lake .notice", server="empty"),
}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"scheme": "dark"},
    "narrow": {"width": 600, "height": 900},
}
# A sheet of styles, and a view that needs it.
SHEETS = {
    "style.css": "lake",
    "panels.css": "lake",
    "overview.css": "overview",
    "diagram.css": "map",
    "table.css": "table",
    "actions.css": "dialog",
    "dependency.css": "dependency",
}


# A table and a column whose names are longer than a narrow screen is wide.
LONG = "customer_master_data_of_all_subsidiaries_including_historical_records_of_acquired_companies_v2_final"
LONG_VIEWS = {
    "overview": View("", DRAWN),
    "map": View("#tab=map", "#diagram .reference .label"),
    "table": View(f"#tab=table&name={LONG}", "#tracked-table .dependencies li"),
    "history": View("#tab=table&name=orders", "#tracked-table .history li:nth-child(2)"),
    "lake": View("#tab=lake", "#lake .notice"),
    "dependency": View(f"#tab=dependency&name={LONG}&ask=[mail_{LONG}]", "#dependency .verdict-state"),
}


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A workspace of long names, in which a reference broke."""
    ids = list(range(1, 41))
    mails = [f"{i}@example.org" for i in ids]
    customers = pa.table({"customer_id": ids, f"mail_{LONG}": mails, "zip": [f"{i % 9}" for i in ids]})
    rows = {"order_id": list(range(90)), "customer_id": [i % 40 + 1 for i in range(90)]}
    with holdfast.open(tmp_path_factory.mktemp("views") / "long.hold", engine="inline") as ws:
        tables = {LONG: customers, "orders": pa.table({**rows, f"note_{LONG}": ["-"] * 90})}
        ws.track_all(tables, kinds=("ucc", "fd", "ind", "profile"))
        ws.pin(LONG, [f"mail_{LONG}"])
        ws.apply(LONG, deletes=customers.slice(30))
        with explored(ws) as server:
            yield {"reading": server}


@pytest.fixture(scope="module")
def servers(tour_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The workspace of the tour, to look at and to change (nobody does), an empty one, a made-up lake."""
    empty = tmp_path_factory.mktemp("views") / "empty.hold"
    with (
        holdfast.open(tour_place, engine="inline") as ws,
        holdfast.open(empty, engine="inline") as nothing,
        explored(ws) as reading,
        explored(ws, write=True) as writing,
        explored(nothing) as bare,
        serving(FakeLake()) as fake,
    ):
        address = SimpleNamespace(address=fake.address, page_address=fake.address)
        yield {"reading": reading, "writing": writing, "empty": bare, "fake": address}


def seen(browse: Callable[..., Any], servers: dict[str, Any], view: View, **look: Any) -> Page:
    page = browse(servers[view.server], view.address, **look)
    if view.act is not None:
        view.act(page)
    expect(page.locator(view.ready).first).to_be_visible()
    expect(page.locator(".spinner:visible")).to_have_count(0)
    return page


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", VIEWS)
def test_everybody_can_see_it(
    browse: Callable[..., Any], servers: dict[str, Any], name: str, look: str
) -> None:
    view = VIEWS[name]
    page = seen(browse, servers, view, **LOOKS[look])
    assert problems(page, () if look == "narrow" else (*HEAD, *view.places)) == []
    assert serious(page) == []
    # The window says what it shows, and the head which view that is.
    assert re.fullmatch(r".+ \S holdfast explore", page.title())
    assert page.locator("main > section:visible").count() == 1
    assert page.locator(".tabs a[aria-current=page]").count() == 1


@pytest.mark.parametrize("name", LONG_VIEWS)
def test_long_names_have_room_on_a_narrow_screen(
    browse: Callable[..., Any], long: dict[str, Any], name: str
) -> None:
    page = seen(browse, long, LONG_VIEWS[name], width=360, height=740)
    assert problems(page) == []
    assert serious(page) == []
    # Below the tabs there is no empty band; in the lake there is its search.
    parts = "['.tabs', '#bar'].map((at) => document.querySelector(at).getBoundingClientRect())"
    assert page.evaluate(f"(([tabs, bar]) => bar.top - tabs.bottom)({parts})") < (
        70 if name == "lake" else 24
    )
    if name == "overview":
        widths = "[...document.querySelectorAll('.health-row .name')].map((e) => e.clientWidth)"
        assert max(page.evaluate(widths)) > 250
        page.set_viewport_size({"width": 1280, "height": 800})
        assert max(page.evaluate(widths)) > 150


def test_the_window_says_what_it_shows(browse: Callable[..., Any], servers: dict[str, Any]) -> None:
    page = browse(servers["reading"], "#tab=lake")
    expect(page).to_have_title(re.compile(r"^astronomy/planets\.csv \S holdfast explore$"))
    page.locator("#tab-table").click()
    expect(page).to_have_title(re.compile("^Tables "))
    page.goto(f"{servers['reading'].page_address}#tab=dependency&name=orders&ask=product -> unit_price")
    expect(page).to_have_title(re.compile("^product -> unit_price of orders "))
    page.locator("#tab-overview").click()
    expect(page).to_have_title(re.compile("^Overview "))
    page.locator("#tab-lake").click()
    expect(page).to_have_title(re.compile("^astronomy/planets"))


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_lost_sheet_is_seen(browse: Callable[..., Any], servers: dict[str, Any], sheet: str) -> None:
    """The test of the test: without a sheet of styles something is wrong with a view that needs it."""
    view = VIEWS[SHEETS[sheet]]
    page = seen(browse, servers, view)
    lose = "(name) => [...document.styleSheets].find((s) => s.href.endsWith('/' + name)).disabled = true"
    page.evaluate(lose, sheet)
    assert problems(page, (*HEAD, *view.places)) != []
