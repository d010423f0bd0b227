"""Every view of the page, in light, in the dark and on a narrow screen: seen whole, and by everybody."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import holdfast
from app.browser import PAGE, expect, explored
from holdfast.app.explorer import ExplorerServer

axe = pytest.importorskip("axe_playwright_python")
AXE = (files(axe) / "axe.min.js").read_text("utf-8")
EXAMPLES = Path(holdfast.__file__).parent / "app" / "examples"
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExplorerServer]:
    """The shop of the tour: something broke, something is pinned, and there is a lake beside it."""
    folder = tmp_path_factory.mktemp("views")
    with holdfast.open(folder / "shop.hold", engine="inline") as ws:
        tables = {name: EXAMPLES / f"{name}.csv" for name in ("customers", "products")}
        ws.track_all(tables, kinds=("ucc", "fd", "ind", "profile"))
        ws.track(
            "orders", EXAMPLES / "orders.csv", row_key=["order_id"], kinds=("ucc", "fd", "ind", "profile")
        )
        ws.track("parcels", EXAMPLES / "parcels.csv", kinds=("dc",))
        ws.pin("orders", ["invoice"])
        ws.pin("orders", ["customer_id"], referenced=holdfast.Side("customers", ("customer_id",)))
        ws.pin_rule("quantity > 0", table="orders", reason="orders of nothing are mistakes", owner="ann")
        for table, batch in (("orders", 1), ("orders", 4), ("orders", 6), ("parcels", 7)):
            ws.apply(table, inserts=EXAMPLES / f"{batch}-inserts.csv", batch_id=f"batch-{batch}")
        ws.link(EXAMPLES / "tables")
        with explored(ws) as running:
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
    page.evaluate(AXE)
    rules = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}
    violations = page.evaluate("(rules) => axe.run(document, rules)", rules)["violations"]
    serious = [
        f"{v['id']}: {node['html'][:200]} {node.get('failureSummary', '')}"
        for v in violations
        if v["impact"] in ("serious", "critical")
        for node in v["nodes"][:3]
    ]
    assert serious == []
    picture = base64.b64encode(page.screenshot()).decode()
    n_colours, largest_share = page.evaluate(COLOURS, f"data:image/png;base64,{picture}")
    assert n_colours > 30
    assert largest_share < 0.97  # else it is empty
