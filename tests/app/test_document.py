"""`holdfast report`: one HTML file that needs nothing else, whatever names and cells there are."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

import holdfast
from app.shell import Shell

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
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(data)
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
    told = Shell(folder)("report", "-o", str(out))
    assert "report.html: 2 tables" in told.out
    text = out.read_text("utf-8")
    page = Reader(text)
    assert "Broken now" in page.headings
    words = " ".join(page.words)
    assert "DOES NOT HOLD" in words
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
