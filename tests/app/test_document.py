"""`holdfast report`: one HTML file that needs nothing else, whatever names and cells there are."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import holdfast
from app.shell import Shell
from holdfast.app.document import broken, document, overview, tables
from holdfast.app.explorer import health

HOSTILE = "<script>alert(1)</script>"
VOID = {"meta", "br", "img", "input", "link"}


class Reader(HTMLParser):
    """The words of a page; every element is closed by its own end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.headings: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.classes: list[str] = []
        self.names: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = dict(attrs)
        assert tag != "script"
        assert not any(name.startswith("on") or name == "src" for name in fields)
        if fields.get("href"):
            self.links.append(str(fields["href"]))
        if fields.get("id"):
            self.ids.add(str(fields["id"]))
        self.classes.append(str(fields.get("class", "")))
        self.names.append(str(fields.get("aria-label", "")))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(data.strip())
        if self.open and self.open[-1] != "style":
            self.words.append(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("document")
    people = pa.table({"id": [1, 2, 3], "name": ["Ada", HOSTILE, "Cleo"], "boss": [1, 1, 2]})
    calls = pa.table({"person_id": [1, 2, 2], "net": [1, 2, 3], "gross": [2, 3, 4]})
    with holdfast.open(folder / "my.hold", engine="inline") as ws:
        ws.track_all(
            {"people": people, f"calls {HOSTILE}": calls}, kinds=("ucc", "fd", "ind", "row", "dc", "profile")
        )
        ws.pin("people", ["name"])
        ws.pin_rule("net <= gross", table=f"calls {HOSTILE}")
        ws.apply("people", inserts=pa.table({"id": [4], "name": ["Ada"], "boss": [9]}))
    return folder


def test_the_file_says_what_is_broken_and_what_holds(folder: Path) -> None:
    out = folder / "report.html"
    assert "report.html: 2 tables" in Shell(folder)("report", "-o", str(out)).out
    text = out.read_text("utf-8")
    page = Reader(text)
    assert "Broken now" in page.headings
    words = " ".join(page.words)
    assert "does not hold since version" in words
    assert "gross" in words
    assert "1 to 9" in words  # the ends of a column that is profiled
    assert {link[1:] for link in page.links} <= page.ids
    assert "people" in page.headings
    # Nothing from elsewhere.
    assert set(re.findall(r"https?://[^\"' <]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_it_goes_to_standard_output_too(folder: Path) -> None:
    text = Shell(folder)("report").out
    assert text.startswith("<!DOCTYPE html>")
    Reader(text)


def test_an_empty_workspace_has_a_report(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "my.hold", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1]}))
        ws.drop("t")
    page = Reader(Shell(tmp_path)("report").out)
    assert "Nothing" in " ".join(page.words)


@pytest.fixture(scope="module")
def tour(tour_place: Path) -> Reader:
    with holdfast.open(tour_place, engine="inline") as ws:
        return Reader(document(ws))


def test_it_says_what_the_page_says_of_the_whole(tour: Reader) -> None:
    words = " ".join(" ".join(tour.words).split())
    assert "1 broken 1 drifting 2 hold 1 unwatched" in words
    assert (
        "orders[customer_id] in customers[customer_id] pinned: does not hold (1 row), since version 8,"
        in words
    )
    assert "pinned because: " not in words  # that of a pin which holds stands with its table
    assert "orders of nothing are mistakes; ann" in words
    assert "parcels version 10, batch batch-7, +1 row" in words  # an incident
    assert {"100 %", "7.7 %"} <= set(tour.words)  # on the map: what is used, and what is missing
    assert "orders: 4,000 rows at version 2, 4,007 now; 8 dependencies broke" in tour.names
    assert any(name.startswith("versions 1 to 12: 11 dependencies broke") for name in tour.names)


def test_it_says_when_it_broke_and_which_rows_did(tour: Reader) -> None:
    words = " ".join(" ".join(tour.words).split())
    assert "functional dependency: rows with the same product have the same unit_price." in words
    assert "does not hold since version 9, batch batch-6, +1 row" in words
    assert "held in versions 2 to 8, when the table was tracked, +4,000 rows" in words
    assert "355 of 4,007 rows violate it; without 1 row it holds." in words
    assert "and 345 more rows: holdfast violations orders 'product -> unit_price' --all" in words
    assert "R24-004507" in words  # a cell of the row
    assert "1 value in 1 row is missing: 701 (1 row)" in words
    # A reference that is not pinned, and broke: the map has it, and so has this.
    assert "reference: 7.7 % of its values are missing" in words
    assert tour.classes.count("reference broken") == 2


def test_it_says_why_a_key_is_the_primary_key_and_since_when(tour: Reader) -> None:
    words = " ".join(" ".join(tour.words).split())
    assert "[order_id] primary key, score 0.97: one column, not by chance, named like a key +2.0" in words
    assert "orders[product] in products[product] foreign key, since version 2" in words
    assert "unit_price -> product since version 2" in words
    assert "7 tables with 22 columns; 5 inclusions between them, which make 2 components" in words


def test_it_has_a_word_for_whatever_health_there_is() -> None:
    assert tuple(overview.WORDS) == health.WORDS


def test_what_is_too_much_is_counted(tour_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broken, "MOST_SHOWN", 1)
    monkeypatch.setattr(broken, "MOST_LISTED", 2)
    monkeypatch.setattr(tables, "MOST_TABLES", 1)
    monkeypatch.setattr(tables, "MOST_LISTED", 3)
    with holdfast.open(tour_place, engine="inline") as ws:
        page = Reader(document(ws))
    words = " ".join(" ".join(page.words).split())
    assert page.classes.count("trouble broken") + page.classes.count("trouble drifting") == 1
    assert "and 2 more: holdfast pins" in words
    assert "and 7 more: holdfast show orders --kind fd" in words
    assert "parcels drifting holdfast show parcels" in words
    assert {link[1:] for link in page.links} <= page.ids
