"""A table of the lake in the view of tables: what is known of it, where it leads, how it would be tracked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.browser import PAGE, expect, explored, until
from app.explorer_fake import IMAGE, SCRIPT
from holdfast.app.explorer import ExplorerServer, listeners

pytestmark = PAGE
Browse = Callable[..., Any]

FILES = {
    "planets.csv": "planet,moons,rings\nVenus,0,no\nEarth,1,no\nMars,2,no\nSaturn,146,yes\n",
    "moons.csv": "moon,of\nMoon,Earth\nPhobos,Mars\nDeimos,Mars\nTitan,Saturn\n",
    "visits.csv": "probe,planet\nMariner,Venus\nCassini,Saturn\nViking\n",
    "alone.csv": f"{SCRIPT},n\n{IMAGE},1\n",
}


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    (tmp_path / "sky").mkdir()
    for name, content in FILES.items():
        (tmp_path / "sky" / name).write_text(content, encoding="utf-8")
    with holdfast.open(tmp_path / "my.hold", engine="inline") as made:
        made.track("probes", pa.table({"probe": ["Mariner", "Cassini"]}), kinds=("ucc",))
        made.link(tmp_path / "sky")
        yield made


@pytest.fixture
def server(ws: holdfast.Workspace) -> Iterator[ExplorerServer]:
    with explored(ws, write=True) as running:
        yield running


def number(ws: holdfast.Workspace, name: str) -> int:
    lake = ws.lake()
    assert lake is not None
    table = lake.resolve(name)
    assert isinstance(table, int)
    return table


def test_it_opens_from_the_graph_and_leads_on(
    browse: Browse, server: ExplorerServer, ws: holdfast.Workspace, tmp_path: Path
) -> None:
    page = browse(server, f"#table={number(ws, 'moons.csv')}")
    page.get_by_role("link", name="Open the table").click()
    sheet = page.locator("#tracked-table")
    expect(sheet.locator("h2")).to_have_text("moons.csv")
    assert page.evaluate("location.hash") == f"#tab=table&lake={number(ws, 'moons.csv')}"
    expect(sheet.locator(".facts")).to_contain_text("linked, not tracked")
    expect(sheet.locator(".facts")).to_contain_text("4 rows · 2 columns · 1 inclusion")
    # What would be known of a tracked one: not looked for, and the command that would.
    command = f"holdfast track moons {tmp_path / 'sky' / 'moons.csv'} --kinds ucc,fd,dc,profile"
    for key in ("keys", "dependencies"):
        expect(sheet.locator(f".of-{key}")).to_contain_text("not looked for")
        expect(sheet.locator(f".of-{key} .command")).to_have_text(command)
    # Nothing can be pinned, and the list of tracked tables has none that is this one.
    expect(page.locator("#tracked-list .row")).to_have_count(1)
    expect(page.locator("#tracked-list [aria-current]")).to_have_count(0)
    expect(sheet.locator(".act")).to_have_count(0)
    expect(sheet.locator(".of-rows tbody tr")).to_have_count(4)
    # The inclusion with its coverage, its values, and the other table.
    out = sheet.locator(".reference", has_text="planets.csv")
    expect(out).to_contain_text("of→planets.csv.planet")
    expect(out).to_contain_text("covers 75%")
    out.get_by_role("button", name="values").click()
    expect(out.locator(".match .chip")).to_have_text(["Earth", "Mars", "Saturn"])
    expect(out.locator(".rest .chip")).to_have_text(["Venus"])
    out.locator("a.to").click()
    expect(sheet.locator("h2")).to_have_text("planets.csv")
    expect(sheet.locator(".of-references h4.into + .paged .reference")).to_have_count(2)
    page.go_back()
    expect(sheet.locator("h2")).to_have_text("moons.csv")
    page.get_by_role("link", name="Open it in the join graph").click()
    expect(page.locator("#details h2").first).to_have_text("moons.csv")
    # The view of tables is where it was.
    page.locator("#tab-table").click()
    expect(sheet.locator("h2")).to_have_text("moons.csv")
    page.locator("#tracked-list .row").click()
    expect(sheet.locator("h2")).to_have_text("probes")
    expect(sheet.locator(".of-history summary")).to_have_count(1)


def test_its_columns_and_the_inclusions_of_one(
    browse: Browse, server: ExplorerServer, ws: holdfast.Workspace
) -> None:
    id_ = number(ws, "visits.csv")
    page = browse(server, f"#tab=table&lake={id_}&column=probe", width=600, scheme="dark")
    sheet = page.locator("#tracked-table")
    columns = sheet.locator(".of-columns tbody tr")
    expect(columns.nth(0)).to_contain_text("probeUQ")
    expect(columns.nth(1).locator(".at-null")).to_have_text("33.3%")
    expect(columns.nth(1).locator(".at-values")).to_contain_text("Saturn")
    title = sheet.locator(".of-references h3")
    expect(title).to_have_text("Inclusions of probe 0")
    expect(sheet.locator("button.column[aria-pressed=true]")).to_have_text("probe")
    planet = sheet.get_by_role("button", name="planet", exact=True)
    planet.press("Enter")
    expect(title).to_have_text("Inclusions of planet 1")
    until(page, f"location.hash === '#tab=table&lake={id_}&column=planet'")
    # A new version: in place, and the keyboard where it was.
    ws.track("more", pa.table({"a": [1]}), kinds=("ucc",))
    expect(page.locator("#tracked-list .row")).to_have_count(2)
    expect(title).to_have_text("Inclusions of planet 1")
    expect(planet).to_be_focused()
    planet.press("Enter")
    expect(title).to_have_text("Inclusions 1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 600


def test_one_that_nothing_joins_with_and_one_that_is_not_there(
    browse: Browse, server: ExplorerServer, ws: holdfast.Workspace
) -> None:
    page = browse(server, f"#tab=table&lake={number(ws, 'alone.csv')}")
    sheet = page.locator("#tracked-table")
    expect(sheet.locator(".leads")).to_have_text("It is in no component: nothing joins with it.")
    expect(sheet.locator(".of-columns .column").first).to_have_text(SCRIPT)
    expect(sheet.locator(".of-rows td").first).to_have_text(IMAGE)
    expect(sheet.locator(".of-references")).to_contain_text("Contained in no other column.")
    ws.track("alone.csv", pa.table({"n": [1]}), kinds=("ucc",))
    page.get_by_role("link", name="Open the tracked table").click()
    expect(sheet.locator("h2")).to_have_text("alone.csv")
    expect(sheet.locator(".facts")).to_contain_text("tracked since version 3")
    page = browse(server, "#tab=table&lake=99")
    expect(sheet.get_by_role("alert")).to_contain_text("has no table number 99")
    page = browse(server, "#tab=table&name=moons.csv")  # by its name only a tracked one
    expect(sheet.get_by_role("alert")).to_contain_text("What is linked is found by the search of the lake.")


def test_the_graph_follows_the_lake(
    browse: Browse,
    server: ExplorerServer,
    ws: holdfast.Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a new version of the lake what was seen is shown in place; batches of tables change nothing."""
    monkeypatch.setattr(listeners, "LOOK_S", 0.02)
    page = browse(server, f"#table={number(ws, 'moons.csv')}")
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("#details .head h2")).to_have_text("moons.csv")
    expect(page.locator("#graph-facts")).to_contain_text("3 tables")
    until(page, "performance.getEntriesByName('holdfast-first-paint').length === 1")  # marked once it is seen
    page.evaluate("window.__stays = true; performance.clearMarks('holdfast-first-paint')")
    ws.apply("probes", inserts=pa.table({"probe": ["Viking"]}))
    (tmp_path / "sky" / "rovers.csv").write_text("rover,planet\nSpirit,Mars\nOne,Earth\nTwo,Saturn\n")
    ws.link(tmp_path / "sky" / "rovers.csv", add=True)
    expect(page.locator("#graph-facts")).to_contain_text("4 tables")
    expect(page.locator("#details .head h2")).to_have_text("moons.csv")
    expect(page.locator("#summary")).to_contain_text("5 tables")
    until(page, "performance.getEntriesByName('holdfast-first-paint').length === 1")
    assert page.evaluate("window.__stays")
    expect(page.locator("#outdated")).to_be_hidden()
    # It follows while it is not seen, too; and so do the other views while it is.
    page.locator("#tab-overview").click()
    expect(page.locator(".health-row .number")).to_have_text("3")
    page.locator("#tab-lake").click()
    page.mouse.move(0, 0)
    ws.apply("probes", inserts=pa.table({"probe": ["Voyager"]}))
    until(page, "document.querySelector('.health-row .number').textContent === '4'")
    assert page.evaluate("performance.getEntriesByName('holdfast-first-paint').length") == 1
