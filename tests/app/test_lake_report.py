"""What is told of a lake: on a terminal and in a pipe, whatever its names and values hold."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice

import pytest

from holdfast.app.report.lake import (
    print_joins,
    print_lake_change,
    print_lake_inds,
    print_lake_summary,
    print_overlaps,
)
from holdfast.app.report.paper import Paper
from holdfast.lakes.answers import (
    AskedColumn,
    LakeChange,
    LakeInd,
    LakeOverlap,
    LakeSide,
    LakeSummary,
)
from holdfast.lakes.reader.overlaps import LakeOverlaps

EVIL = ["[red]x[/red]", "\x1b]0;owned\x07", "a\nb", "\u202egnp.exe", "\x9b31m", "\ud800", ":smile:"]
ANSI = re.compile(r"\x1b\[[0-9;]*m")

CHANGE = LakeChange(
    "link",
    1,
    n_tables=1_200,
    n_columns=9_000,
    n_inds=34_567,
    n_components=80,
    n_isolated=200,
    added=1_200,
    removed={"null": 1_000_000, "integer": 20, "non-unique": 3, "coverage": 0},
    phases=(("reading tables", 4.12), ("matching columns", 0.456)),
    proposer="index",
    elapsed_s=4.8,
    filters=("null", "integer", "non-unique", "coverage"),
)


def ind(table: str = "orders.csv", column: str = "customer", **more: object) -> LakeInd:
    dependent, referenced = LakeSide(1, 0, table, column), LakeSide(4, 2, f"{table}2", f"{column}2")
    told = LakeInd(dependent, referenced, 2, 2, 4, 0.5, 1.0, 1.0, 0.3, 0.66, ("ann", "bob"))
    return replace(told, **more)  # type: ignore[arg-type]


def printed(report: Callable[[Paper], None], *, terminal: bool = False, width: int | None = None) -> str:
    file = io.StringIO()
    report(Paper(file, width=width, terminal=terminal))
    return ANSI.sub("", file.getvalue()) if terminal else file.getvalue()


def joins(*inds: LakeInd, table: int = 0, **more: object) -> Callable[[Paper], None]:
    given = {"table": table, "name": "orders.csv", "version": 3, **more}
    return lambda paper: print_joins(paper, inds, **given)  # type: ignore[arg-type]


def test_a_change_reads_top_to_bottom() -> None:
    assert printed(lambda paper: print_lake_change(paper, CHANGE)) == (
        "lake: 1,200 tables, 9,000 columns, 34,567 inclusions (version 1)\n"
        "  1,200 tables added\n"
        "  1,000 tables in 80 components, 200 linked to no other\n"
        "  1,000,023 inclusions kept out by filters:\n"
        "    1,000,000  null        a column has nothing but empty or null-like values\n"
        "           20  integer     a column has nothing but integers\n"
        "            3  non-unique  the referenced column is not unique\n"
        "            0  coverage    too few of the referenced values occur\n"
        "  4.8 s, candidates by index: reading tables 4.1 s, matching columns 0.46 s\n"
    )


def test_a_change_without_filters_or_links() -> None:
    change = replace(CHANGE, filters=(), removed={}, n_components=0, n_isolated=1_200, added=0, dropped=2)
    text = printed(lambda paper: print_lake_change(paper, change))
    assert "no filter is on: every inclusion is listed" in text
    assert "no two tables are linked" in text
    assert "2 tables dropped" in text
    nothing = replace(change, dropped=0, phases=(), proposer="", filters=("null",), removed={"null": 0})
    text = printed(lambda paper: print_lake_change(paper, nothing))
    assert "no table was added or dropped" in text
    assert "0 inclusions kept out by filters\n" in text
    assert text.endswith("  4.8 s\n")


@pytest.mark.parametrize("terminal", [False, True])
def test_files_that_cannot_be_read_are_counted_and_named(terminal: bool) -> None:
    change = replace(CHANGE, n_bad=250, bad=tuple((f"f{i}.csv", f"reason {i}") for i in range(100)))
    text = printed(lambda paper: print_lake_change(paper, change), terminal=terminal, width=100)
    assert "250 files were left out:" in text
    assert "f0.csv: reason 0" in text
    assert ("f99.csv" in text) == (not terminal)
    more = "... and 245 more; the first 100 with --json" if terminal else "... and 150 more"
    assert more in text


def test_lines_that_cannot_be_read_are_not_called_files() -> None:
    def told(*sources: str) -> str:
        change = replace(CHANGE, n_bad=len(sources), bad=tuple((source, "is no table") for source in sources))
        return printed(lambda paper: print_lake_change(paper, change))

    assert "1 line was left out:" in told("web.jsonl#12")
    assert "2 lines were left out:" in told("web.jsonl#12", "web.jsonl#13")
    assert "2 files and lines were left out:" in told("web.jsonl#12", "a.csv")
    assert "1 file was left out:" in told("issue #7.csv")


def test_the_summary_is_the_change_without_what_was_done() -> None:
    summary = LakeSummary(4, 3, 9, 2, 1, 1, ("null",), {"null": 7})
    assert printed(lambda paper: print_lake_summary(paper, summary)) == (
        "lake: 3 tables, 9 columns, 2 inclusions (version 4)\n"
        "  2 tables in 1 component, 1 linked to no other\n"
        "  7 inclusions kept out by filters:\n"
        "    7  null  a column has nothing but empty or null-like values\n"
    )


def test_joins_are_told_from_the_side_that_was_asked_about() -> None:
    assert printed(joins(ind(), n=5)) == (
        "5 joins with orders.csv (version 3)\n"
        "  0.66  customer -> orders.csv2[customer2]\n"
        "        all 2 values match, 50% of the 4 referenced ones; these are unique\n"
        "        both have: ann | bob\n"
        "  ... and 4 more, with lower scores; see --top\n"
    )
    assert "customer2 <- orders.csv[customer]" in printed(joins(ind(), table=2))
    assert "1 join with orders.csv[customer]" in printed(joins(ind(), column="customer"))


def test_nothing_joins() -> None:
    text = printed(joins(filters=("null", "coverage")))
    assert text.splitlines()[0] == "nothing joins with orders.csv (version 3)"
    assert "null, coverage" in text
    assert len(printed(joins()).splitlines()) == 1


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("evil", EVIL)
def test_names_and_values_are_shown_and_never_interpreted(evil: str, terminal: bool) -> None:
    one = ind(evil, f"c{evil}", samples=(evil, f"v{evil}"))
    change = replace(CHANGE, n_bad=1, bad=((evil, f"because {evil}"),))
    asked = AskedColumn(0, evil, 2)
    overlaps = LakeOverlaps(evil, 1, [asked], [LakeOverlap(asked, LakeSide(1, 0, evil, evil), 1, 2)])
    reports: list[Callable[[Paper], None]] = [
        joins(one, name=evil, column=evil),
        lambda paper: print_lake_inds(paper, [one], version=1, subject=evil),
        lambda paper: print_lake_change(paper, change),
        lambda paper: print_overlaps(paper, overlaps, top=1),
    ]
    for report in reports:
        text = printed(report, terminal=terminal, width=300)
        assert all(c.isprintable() or c == "\n" for c in text)
        shown = repr(evil)[1:-1]
        assert shown in text


def test_long_values_are_cut_and_names_are_not() -> None:
    one = ind("t" * 300, samples=("v" * 1000,))
    text = printed(joins(one))
    assert "t" * 300 in text
    assert "v" * 40 not in text


def test_inclusions_stream_into_a_pipe() -> None:
    text = printed(lambda paper: print_lake_inds(paper, islice(many(), 1_000), version=2, n=1_000))
    lines = text.splitlines()
    assert lines[0] == "1,000 inclusions (version 2)"
    assert lines[1] == "  t0.csv[c] in t0.csv2[c2]  coverage 0.5"
    assert len(lines) == 1_001
    partial = ind(shared=1, containment=0.5)
    assert "misses 1 value, coverage" in printed(lambda paper: print_lake_inds(paper, [partial], version=2))


def test_a_terminal_shows_the_first_inclusions_of_endlessly_many() -> None:
    text = printed(lambda paper: print_lake_inds(paper, many(), version=2), terminal=True, width=100)
    assert len(text.splitlines()) == 202
    assert "... and more; all with --all" in text
    exact = printed(
        lambda paper: print_lake_inds(paper, islice(many(), 200), version=2, n=200), terminal=True, width=100
    )
    assert len(exact.splitlines()) == 201


def many() -> Iterator[LakeInd]:
    for i in count():
        yield ind(f"t{i}.csv", "c")
