"""Every view of the page, in light, in the dark and on a narrow screen: seen whole, and by everybody."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from app.axe import serious
from app.browser import PAGE, expect, explored
from holdfast.app.explorer import ExplorerServer

pytestmark = PAGE

# An address, and what is there when the view is.
VIEWS = {
    "overview": ("", "#overview .word.broken"),
    "map": ("#tab=map", "#diagram [data-table]"),
    "table": ("#tab=table&name=orders", "#tracked-table h3"),
    "dependency": ("#tab=dependency&name=orders&ask=product -> unit_price", "#dependency tr"),
    "lake": ("#tab=lake", "#component-list a"),
    "linked": ("#tab=table&lake=0", "#tracked-table .sample"),
}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"scheme": "dark"},
    "narrow": {"width": 600, "height": 900},
}
# What is there beyond the right edge, if anything can be scrolled there.
TOO_WIDE = """() => {
  const most = document.documentElement.clientWidth;
  const page = document.scrollingElement;
  if (page.scrollWidth <= most) return [];
  return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > most + 1)
    .map((e) => `${e.tagName} ${e.id} ${e.className}`).slice(0, 5);
}"""
# Of a picture: how many colours it has, and which share of it is of the most frequent one.
COLOURS = """async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const { width, height } = image;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  return [counts.size, Math.max(...counts.values()) / pixels.length];
}"""


@pytest.fixture(scope="module")
def server(tour_place: Path) -> Iterator[ExplorerServer]:
    with holdfast.open(tour_place, engine="inline") as ws, explored(ws) as running:
        yield running


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("view", VIEWS)
def test_everybody_can_see_it(
    server: ExplorerServer, browse: Callable[..., Any], view: str, look: str
) -> None:
    address, ready = VIEWS[view]
    page = browse(server, address, **LOOKS[look])
    expect(page.locator(ready).first).to_be_visible()
    expect(page.locator(".spinner:visible")).to_have_count(0)
    assert page.evaluate(TOO_WIDE) == []
    assert serious(page) == []
    picture = base64.b64encode(page.screenshot()).decode()
    n_colours, largest_share = page.evaluate(COLOURS, f"data:image/png;base64,{picture}")
    assert n_colours > 30
    assert largest_share < 0.97  # else it is empty
