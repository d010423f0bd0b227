"""What comes late: answers that somebody did not wait for, and versions while somebody looks at the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.browser import PAGE, expect, explored, until
from holdfast.app.explorer import ExplorerServer

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
