"""Reports on a terminal and in a pipe: nothing is interpreted, nothing is cut where a program reads it."""

from __future__ import annotations

import io
import re
import time
from pathlib import Path

import pyarrow as pa
import pytest

import holdfast
from holdfast.app import report
from holdfast.app.report import Paper
from holdfast.model.change import Change, DependencyChange, Pair, WitnessRow
from holdfast.model.dependency import Ucc

EVIL = ["[red]x[/red]", "\x1b]0;owned\x07", "a\nb", "\u202egnp.exe", "\x9b31m", "\ud800", ":smile:"]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def a_change(*changes: DependencyChange) -> Change:
    return Change("t", "apply", 2, 1, 0, 4, 2, changes, 0.1)


def pair(**columns: tuple[object, object]) -> Pair:
    rows = [WitnessRow(i << 32, {name: values[i] for name, values in columns.items()}) for i in (0, 1)]
    return rows[0], rows[1]


def printed(change: Change, *, terminal: bool = False, width: int | None = None) -> str:
    file = io.StringIO()
    report.print_change(Paper(file, width=width, terminal=terminal), change)
    return file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("evil", EVIL)
def test_names_and_cells_are_shown_and_never_interpreted(evil: str, terminal: bool) -> None:
    name = f"c{evil}"
    broke = DependencyChange(
        "broke", Ucc("t", (name,)), "is no longer unique:", (pair(**{name: (evil, evil)}),)
    )
    text = printed(a_change(broke), terminal=terminal, width=200)
    plain = ANSI.sub("", text)
    assert all(c.isprintable() or c == "\n" for c in plain)
    text.encode("utf-8")
    shown = evil if evil.isprintable() else repr(evil)
    assert plain.count(shown.strip("'")) >= 4  # in the key, the header and both rows


@pytest.mark.parametrize("evil", EVIL)
def test_a_table_of_any_name(evil: str) -> None:
    file = io.StringIO()
    report.print_cover(Paper(file), evil, [Ucc(evil, (evil,))], version=1, n_rows=1, max_columns=None)
    assert all(c.isprintable() or c == "\n" for c in file.getvalue())


def test_a_pipe_gets_no_colours_and_whole_lines() -> None:
    names = [f"a_rather_long_column_name_{i}" for i in range(40)]
    file = io.StringIO()
    report.print_cover(Paper(file), "t", [Ucc("t", tuple(names))], version=1, n_rows=9, max_columns=None)
    assert file.getvalue().splitlines()[1] == f"   40  {', '.join(names)}"


def test_a_narrow_terminal_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    names = [f"column_{i}" for i in range(12)]
    file = io.StringIO()
    paper = Paper(file, width=24, terminal=True)
    report.print_cover(paper, "t", [Ucc("t", tuple(names))], version=1, n_rows=9, max_columns=None)
    rows = pair(**{name: (f"value {i}", f"value {i}") for i, name in enumerate(names)})
    report.print_pair(paper, rows, set(names), "red", indent=6)
    text = ANSI.sub("", file.getvalue())
    assert max(map(len, text.splitlines())) <= 24
    assert all(name in text for name in names)
    assert "\x1b[3" not in file.getvalue()  # no colour; bold is none


def test_a_terminal_shows_the_first_keys_of_a_long_cover_unless_asked() -> None:
    keys = [Ucc("t", (f"k{i}",)) for i in range(450)]

    def shown(*, terminal: bool, everything: bool) -> str:
        file = io.StringIO()
        paper = Paper(file, width=80, terminal=terminal)
        report.print_cover(paper, "t", keys, version=1, n_rows=9, max_columns=None, everything=everything)
        return ANSI.sub("", file.getvalue())

    first = shown(terminal=True, everything=False)
    assert "k199" in first
    assert "k200" not in first
    assert "... and 250 more" in first
    assert "--all" in first
    assert "k449" in shown(terminal=True, everything=True)
    assert "k449" in shown(terminal=False, everything=False)


def test_changes_by_the_same_rows_stand_together() -> None:
    rows = pair(a=(1, 1), b=(2, 2), c=(3, 4))
    changes = [DependencyChange("broke", Ucc("t", (c,)), "is no longer unique:", (rows,)) for c in "ab"]
    assert printed(a_change(*changes)).splitlines()[1:] == [
        "  broke: 2 keys",
        "    [a]",
        "    [b]",
        "    each is no longer unique:",
        "      row  a  b  |  c",
        "      0.0  1  2  |  3",
        "      1.0  1  2  |  4",
    ]


def test_long_reports_say_how_much_they_leave_out() -> None:
    changes = [DependencyChange("appeared", Ucc("t", (f"k{i}",)), "is unique now") for i in range(25)]
    text = printed(a_change(*changes))
    assert "appeared: 25 keys" in text
    assert "... and 5 more; all with --json" in text


def test_witnesses_fit_the_terminal() -> None:
    columns = {f"c{i}": ("x" * 15, "y" * 15) for i in range(9)}
    rows = pair(key=("k", "k"), **columns)
    text = printed(
        a_change(DependencyChange("broke", Ucc("t", ("key",)), "broke:", (rows,))), terminal=True, width=80
    )
    lines = ANSI.sub("", text).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("more)" in line for line in lines)


def test_a_change_whose_rows_have_no_values_names_them() -> None:
    rows = (WitnessRow(5, {}), WitnessRow((2 << 32) + 1, {}))
    text = printed(a_change(DependencyChange("broke", Ucc("t", ("a",)), "is no longer unique:", (rows,))))
    assert "rows 0.5 and 2.1" in text


def test_an_explanation_names_the_batch_and_its_rows(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "my.hold", engine="inline")
    ws.track("t", pa.table({"a": [1, 2], "b": [1, 1]}))
    ws.apply("t", inserts=pa.table({"a": [2], "b": [2]}), batch_id="[bold]b[/bold]")
    file = io.StringIO()
    report.print_explanation(Paper(file), ws.explain("t", ["a"]))
    report.print_log(Paper(file), ws.log())
    text = file.getvalue()
    assert "by the apply of batch '[bold]b[/bold]'" in text
    assert "apply t batch '[bold]b[/bold]': +1 -0, now 3 rows" in text
    assert "these rows are there still" in text


def test_progress_is_shown_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PATIENCE_S", 0.0)
    with report.progress_on(Paper(io.StringIO())) as hook:
        assert hook is None
    file = io.StringIO()
    with report.progress_on(Paper(file, width=80, terminal=True)) as hook:
        assert hook is not None
        hook("starting Spark", 0, 0)
        time.sleep(0.3)
        hook("reading [red]", 1, 4)
        time.sleep(0.3)
    text = ANSI.sub("", file.getvalue())
    assert "starting Spark (a few seconds) ..." in text
    assert "reading [red]" in text
    assert "1/4" in text
