"""The report in a browser: everybody can see it, and on paper nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.axe import serious
from app.browser import PAGE, Tabs
from holdfast.app.document import document

pytestmark = PAGE
PAPER = 717  # pixels of A4 between the margins that Chromium leaves
# What stands out of its box or of the page, and is cut there: of letters, tables and pictures.
CUT = """() => [...document.querySelectorAll("body, .wide, .map, table, svg")].filter((e) =>
  e.scrollWidth > e.clientWidth + 1 && !(e instanceof SVGElement)
  || e.getBoundingClientRect().right > document.documentElement.clientWidth + 1
).map((e) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 60)}`)"""


@pytest.fixture(scope="module")
def wide_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of forty columns with long names and long cells, and a key that broke."""
    columns = {
        f"a_column_with_a_long_name_{i}": [f"{'long' * 9}{i}-{j}" for j in range(3)] for i in range(40)
    }
    place = tmp_path_factory.mktemp("wide") / "wide.hold"
    with holdfast.open(place, engine="inline") as ws:
        ws.track("wide", pa.table(columns), kinds=("ucc", "ind", "profile"))
        ws.pin("wide", ["a_column_with_a_long_name_0"])
        ws.apply("wide", inserts=pa.table({name: values[:1] for name, values in columns.items()}))
    return place


@pytest.fixture
def tab(tabs: Tabs) -> Iterator[Any]:
    page = tabs.get("")
    yield page
    page.emulate_media(media="screen", color_scheme="light")
    page.goto("about:blank")


def shown(page: Any, place: Path, folder: Path) -> None:
    file = folder / "report.html"
    with holdfast.open(place, engine="inline") as ws:
        file.write_text(document(ws), "utf-8")
    page.goto(file.as_uri())


@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_see_it(tab: Any, tour_place: Path, tmp_path: Path, scheme: str, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    shown(tab, tour_place, tmp_path)
    assert serious(tab) == []
    # Wide tables are scrolled in their place, and the page is not.
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.locator("h1").count() == tab.locator("main").count() == 1


@pytest.mark.parametrize("which", ["tour_place", "wide_place"])
def test_nothing_is_cut_off_on_paper(
    tab: Any, request: pytest.FixtureRequest, tmp_path: Path, which: str
) -> None:
    tab.set_viewport_size({"width": PAPER, "height": 1000})
    shown(tab, request.getfixturevalue(which), tmp_path)
    tab.emulate_media(media="print")
    assert tab.locator(".wide").count() > 0
    assert tab.evaluate(CUT) == []
    assert tab.pdf(format="A4").startswith(b"%PDF")
