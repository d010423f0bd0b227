"""A Chromium for tests of the page: one for all of them, with what to wait for there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest

from app.serving import explored as explored

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
if BROWSER is None:
    pytest.skip("no Chromium here", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

# Nothing here is measured: a machine that is busy with other things may take its time.
PATIENCE_S = 90.0
expect.set_options(timeout=1_000 * PATIENCE_S)

PAGE = pytest.mark.xdist_group("browser")
QUIET = (
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
WATCH = """
window.__violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.__violations.push(e.violatedDirective));
"""

Page = Any  # of playwright, which may not be there
Visit = Callable[..., Page]


class Tabs:
    """One browser for all tests, and in it a tab for each script that runs before the page's own.

    A new tab takes longer than most tests. What a test did there is gone with the next page, but for the
    history, in which the tests only go back as far as they came.
    """

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.wrong: list[str] = []
        self._open: dict[str, Page] = {}

    def get(self, script: str) -> Page:
        if script not in self._open:
            self._open[script] = self._new(script)
        return self._open[script]

    def _new(self, script: str) -> Page:
        context = self.browser.new_context()
        context.add_init_script(WATCH + script)
        page = context.new_page()
        page.set_default_timeout(1_000 * PATIENCE_S)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda line: self.wrong.append(line.text) if line.type == "error" else None)
        page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        return page


def until(page: Page, condition: str, timeout_s: float = PATIENCE_S) -> Any:
    """Waits for an expression to be true. Playwright's own way evaluates a text, which the page forbids."""
    end = time.monotonic() + timeout_s
    while not (found := page.evaluate(condition)):
        assert time.monotonic() < end, f"{condition} did not come true in {timeout_s} s"
        page.wait_for_timeout(20)
    return found


def tab_to(page: Page, condition: str) -> None:
    """Goes on by the Tab key. A busy browser may drop the key: then the same element has the focus still.

    If another one has it, an element made anew included, the page took it there, and that is what is told.
    """
    before = page.evaluate_handle("document.activeElement")
    end = time.monotonic() + PATIENCE_S
    while True:
        page.bring_to_front()
        page.keyboard.press("Tab")
        again = time.monotonic() + 5
        while time.monotonic() < again:
            if page.evaluate(condition):
                return
            page.wait_for_timeout(20)
        stays = before.evaluate("element => element === document.activeElement")
        focused = page.evaluate("document.activeElement.outerHTML")
        assert stays, f"{condition} did not come true; the focus is at {focused:.200}"
        assert time.monotonic() < end, f"the Tab key does nothing at {focused:.200}"
