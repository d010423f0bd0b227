"""Makes docs/explore.png: `python docs/explore_picture.py [FILE]`, where Playwright and a Chromium are.

The bundled shop, as it comes about: what it sold in two months is tracked, the third one comes in day by day.
A few things go wrong on the way, and not all of them are mended.
"""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from playwright.sync_api import sync_playwright

import holdfast
from holdfast.app.explorer import Explorer, ExplorerServer

EXAMPLES = Path(holdfast.__file__).parent / "app" / "examples"
MONTH = [f"2024-03-{day:02}" for day in range(1, 31)]
DAY = timedelta(days=1)
LATE = range(691, 701)  # customers who order before anybody has written them down

Row = dict[str, str]


class Shop:
    """A workspace, and what time it is there: each of its days has one commit or more."""

    def __init__(self, folder: Path, ws: holdfast.Workspace) -> None:
        self.folder, self.ws = folder, ws
        self.now = datetime.now(UTC) - len(MONTH) * DAY - timedelta(hours=2)

    def track(self, table: str, rows: list[Row], *kinds: str) -> None:
        self.ws.track(table, self._file(rows), kinds=kinds)

    def apply(self, table: str, batch: str, inserts: list[Row], deletes: list[Row] | None = None) -> None:
        gone = None if deletes is None else self._file(deletes, "deletes.csv")
        if inserts or deletes:
            self.ws.apply(table, inserts=self._file(inserts), deletes=gone, batch_id=batch)

    def _file(self, rows: list[Row], name: str = "rows.csv") -> Path:
        file = self.folder / name
        with file.open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return file


def read(name: str) -> list[Row]:
    with (EXAMPLES / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def fill(shop: Shop) -> None:
    orders, customers, parcels = read("orders.csv"), read("customers.csv"), read("parcels.csv")
    is_late = [int(c["customer_id"]) in LATE for c in customers]
    early = [o for o in orders if o["placed_at"] < MONTH[0] and int(o["customer_id"]) not in LATE]
    shop.track("customers", [c for c, late in zip(customers, is_late, strict=True) if not late], "ucc", "ind")
    shop.track("products", read("products.csv"), "ucc", "ind")
    shop.track("orders", early, "ucc", "fd", "ind")
    shop.track("parcels", [p for p in parcels if p["ordered_at"] < MONTH[0]], "ucc", "dc")
    shop.ws.pin("orders", ["invoice"], reason="the ledger books by it")
    shop.ws.pin_rule("quantity > 0", table="orders")
    shop.ws.pin_rule("ordered_at < shipped_at", table="parcels", owner="the depot")
    twice: list[Row] = []  # an order that the till sends again
    for number, day in enumerate(MONTH):
        shop.now += DAY
        placed = [o for o in orders if o["placed_at"].startswith(day)]
        if number < 18:
            placed = [o for o in placed if int(o["customer_id"]) not in LATE]
        if number == 20:
            shop.apply(
                "customers", f"crm {day}", [c for c, late in zip(customers, is_late, strict=True) if late]
            )
        if number == 8:
            twice = [{**placed[0], "order_id": "90001"}]
            placed += twice
        if number == 28:
            placed += read("6-inserts.csv")  # two digits of a price are swapped
        shop.apply("orders", f"till {day}", placed, twice if number == 10 else None)
        sent = [p for p in parcels if p["ordered_at"].startswith(day)]
        if number == 29:
            sent += read("7-inserts.csv")  # shipped before it is ordered
        shop.apply("parcels", f"depot {day}", sent)


def picture(ws: holdfast.Workspace, file: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with ExplorerServer(Explorer(ws)) as server, sync_playwright() as playwright:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.goto(server.address)
            page.locator(".incidents li").first.wait_for()
            page.locator(".live.on").wait_for()
            page.screenshot(path=file)
            browser.close()
        finally:
            server.shutdown()
            thread.join()


def main(file: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        holdfast.open(Path(folder) / "shop.hold", engine="inline") as ws,
    ):
        shop = Shop(Path(folder), ws)

        class Clock(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:
                return shop.now.astimezone(tz)

        with patch("holdfast.core.store.ledger.datetime", Clock):
            fill(shop)
        picture(ws, file)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "explore.png")
