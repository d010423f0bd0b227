"""What the tests of the page share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from app.browser import Tabs
    from holdfast.app.explorer import ExplorerServer


@pytest.fixture(scope="session")
def tour_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace to look at; nobody changes it."""
    from app.tour import tour

    return tour(tmp_path_factory.mktemp("tour") / "shop.hold")


@pytest.fixture(scope="module")
def tabs() -> Iterator[Tabs]:
    from app.browser import BROWSER, PATIENCE_S, QUIET, Tabs, playwright

    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(
            executable_path=BROWSER, args=list(QUIET), timeout=1_000 * PATIENCE_S
        )
        yield Tabs(launched)
        launched.close()


@pytest.fixture
def browse(tabs: Tabs) -> Iterator[Callable[..., Any]]:
    """Opens the page that a server has, at an address such as `#tab=lake`; at the end nothing failed there,
    nothing was blocked, and nobody's script ran."""
    page = tabs.get("")
    tabs.wrong.clear()
    entered = set()

    def go(
        server: ExplorerServer,
        hash_: str = "",
        *,
        width: int = 1280,
        height: int = 800,
        scheme: str = "light",
    ) -> Any:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        if server.address not in entered:  # with the token; from then on there is a cookie
            page.goto(server.address)
            page.wait_for_url(server.page_address)
            entered.add(server.address)
        page.goto("about:blank")
        page.mouse.move(0, 0)  # where the test before left it, something may be that stays for it
        page.goto(server.page_address + hash_)
        return page

    yield go
    if entered:
        assert page.evaluate("window.__violations") == []
        assert page.evaluate("window.__owned") is None
    page.goto("about:blank")
    assert [line for line in tabs.wrong if not line.startswith("Failed to load resource")] == []
