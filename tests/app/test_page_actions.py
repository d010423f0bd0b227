"""The buttons of the page that pin and mute: by mouse and keyboard, refused and told why, read-only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from app.browser import PAGE, expect, explored, until
from holdfast.app.explorer import ExplorerServer, listeners

pytestmark = PAGE
HASH = "#tab=table&name=orders"
Browse = Callable[..., Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "my.hold"
    with holdfast.open(path, engine="inline") as ws:
        orders = {"id": list(range(40)), "zip": [i % 4 for i in range(40)], "city": ["x", "y"] * 20}
        ws.track("orders", pa.table(orders), kinds=("ucc", "fd"))
    return path


@pytest.fixture
def server(path: Path) -> Iterator[ExplorerServer]:
    with holdfast.open(path, engine="inline") as ws, explored(ws, write=True) as running:
        yield running


def state(path: Path) -> tuple[list[str], list[str]]:
    with holdfast.open(path, engine="inline") as ws:
        return [f"{p} {p.terms.at_most} {p.terms.reason}".strip() for p in ws.pins()], list(
            map(str, ws.muted())
        )


def button(page: Any, what: str, name: str) -> Any:
    """Of a key there are two: beside the others, and in the list of what holds."""
    return page.get_by_role("button", name=f"{what} {name}", exact=True).first


def shown(browse: Browse, server: ExplorerServer, address: str = HASH, **how: Any) -> Any:
    """The page with all of a view: its history is what comes last. Until then a key's first button may be
    another one, and whatever comes may say that there is a newer version."""
    page = browse(server, address, **how)
    expect(page.locator("#tracked-table ol.history li")).to_have_count(1)
    return page


def test_muting_and_its_end(browse: Browse, server: ExplorerServer, path: Path) -> None:
    page = shown(browse, server)
    mute = button(page, "Mute", "zip -> city")
    expect(mute).to_have_attribute("aria-pressed", "false")
    mute.focus()
    page.keyboard.press("Enter")
    # The view is there in place, and says that something is folded away.
    folded = page.get_by_role("button", name="Show what is muted (1)")
    expect(folded).to_be_visible()
    expect(page.locator("#outdated")).to_be_hidden()
    expect(mute).to_have_count(0)
    assert state(path) == ([], ["zip -> city"])
    folded.click()
    expect(mute).to_have_attribute("aria-pressed", "true")
    mute.click()
    expect(mute).to_have_attribute("aria-pressed", "false")
    page.mouse.move(0, 0)  # until then the list stays as it is
    expect(page.locator("#tracked-table")).not_to_contain_text("muted")
    assert state(path) == ([], [])


def test_no_other_row_comes_under_the_pointer(browse: Browse, server: ExplorerServer, path: Path) -> None:
    page = shown(browse, server)
    rows = page.locator(".dependencies .dependency")
    expect(rows.filter(has_text="zip -> city")).to_have_count(1)
    before = rows.all_inner_texts()
    mute = page.locator(".dependencies").get_by_role("button", name="Mute zip -> city", exact=True)
    mute.click()
    expect(page.locator("#summary")).to_contain_text("version 2")
    expect(mute).to_have_attribute("aria-pressed", "true")
    assert rows.all_inner_texts() == before
    page.mouse.move(0, 0)
    expect(page.get_by_role("button", name="Show what is muted (1)")).to_be_visible()
    expect(mute).to_have_count(0)


def test_pinning_on_terms(browse: Browse, server: ExplorerServer, path: Path) -> None:
    page = shown(browse, server, width=600, scheme="dark")
    pin, mute = button(page, "Pin", "[id]"), button(page, "Mute", "[id]")
    pin.click()
    dialog = page.get_by_role("dialog", name="Pin [id]")
    expect(dialog.get_by_label("At most")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(pin).to_be_focused()
    assert state(path) == ([], [])
    page.keyboard.press("Enter")
    dialog.get_by_label("At most").fill("many")
    page.keyboard.press("Enter")
    # What is wrong is told there, and what was written stays.
    expect(dialog.get_by_role("alert")).to_contain_text("'many' is no tolerance")
    expect(dialog.get_by_label("At most")).to_have_value("many")
    dialog.get_by_label("At most").fill("1%")
    dialog.get_by_label("Reason").fill("invoices name it")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(pin).to_have_attribute("aria-pressed", "true")
    until(page, "document.activeElement.getAttribute('aria-label') === 'Pin [id]'")
    assert state(path) == (["[id] 1% invoices name it"], [])
    # What is pinned cannot be muted: the button says so, and does nothing.
    expect(mute).to_have_attribute("aria-disabled", "true")
    assert "unpin it" in mute.get_attribute("title")
    expect(page.locator("#tracked-table .of-pins tr")).to_have_count(1)  # now nothing is made anew below
    pin.click()
    expect(pin).to_have_attribute("aria-pressed", "false")
    expect(mute).to_have_attribute("aria-disabled", "false")
    assert state(path) == ([], [])


def test_what_is_refused_is_told_beside_the_button(
    browse: Browse, server: ExplorerServer, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOOK_S", 3_600)
    page = shown(browse, server)
    mute = button(page, "Mute", "[id]")
    expect(mute).to_have_attribute("aria-disabled", "false")
    with holdfast.open(path, engine="inline") as ws:  # somebody else, of whom the page does not hear
        ws.pin("orders", ["id"])
    before = mute.bounding_box()
    mute.click()
    told = page.locator("div.refused")
    expect(told).to_have_attribute("role", "alert")
    expect(told).to_contain_text("[id] of table 'orders' is pinned")
    box = told.bounding_box()
    assert abs(box["y"] - before["y"]) < 60
    page.keyboard.press("Escape")
    expect(told).to_have_count(0)
    assert state(path) == (["[id]"], [])


def test_the_keyboard_stays_at_what_was_muted(browse: Browse, server: ExplorerServer, path: Path) -> None:
    page = shown(browse, server)
    mute, folded = button(page, "Mute", "zip -> city"), page.get_by_role("button", name="Show what is muted")
    mute.press("Enter")
    # It is folded away: the next entry has taken its place.
    expect(folded).to_be_visible()
    expect(button(page, "Mute", "id -> zip")).to_be_focused()
    folded.press("Enter")
    expect(page.get_by_role("link", name="zip -> city", exact=True)).to_be_focused()
    mute.press("Enter")
    # It is back among the others, before those that had been before it.
    expect(page.locator("#tracked-table")).not_to_contain_text("muted")
    expect(mute).to_be_focused()
    expect(mute).to_have_attribute("aria-pressed", "false")
    assert state(path) == ([], [])


def test_the_keyboard_goes_to_the_title_of_an_empty_list(browse: Browse, tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "one.hold", engine="inline") as ws:
        ws.track("t", pa.table({"id": [1, 2, 3]}), kinds=("ucc",))
        with explored(ws, write=True) as server:
            page = shown(browse, server, "#tab=table&name=t")
            page.locator(".dependencies").get_by_role("button", name="Mute [id]").press("Enter")
            expect(page.get_by_role("button", name="Show what is muted (1)")).to_be_visible()
            expect(page.locator(".of-dependencies h3")).to_be_focused()


def test_the_keyboard_comes_back_to_a_list_made_anew(
    browse: Browse, server: ExplorerServer, path: Path
) -> None:
    """While terms are asked for, somebody else changes what is listed."""
    page = shown(browse, server)
    pin = button(page, "Pin", "zip -> city")
    pin.press("Enter")
    dialog = page.get_by_role("dialog", name="Pin zip -> city")
    expect(dialog.get_by_label("At most")).to_be_focused()
    with holdfast.open(path, engine="inline") as ws:
        ws.mute("orders", "id -> zip")
    expect(page.locator("#tracked-table .further")).to_have_text("Show what is muted (1)")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(pin).to_be_focused()


def test_a_server_that_only_reads_has_no_buttons(browse: Browse, path: Path) -> None:
    with holdfast.open(path, engine="inline") as ws, explored(ws) as server:
        page = shown(browse, server)
        expect(page.locator("#tracked-table .dependency", has_text="zip -> city").first).to_be_visible()
        until(page, "document.querySelectorAll('.actions').length === 0")
        expect(page.locator(".act")).to_have_count(0)
