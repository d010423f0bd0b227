"""Reports on a terminal and in a pipe: nothing is interpreted, nothing is cut where a program reads it."""

from __future__ import annotations

import io
import re
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import holdfast
from app.parts import part
from holdfast.app.report import paper
from holdfast.app.report.changes import print_change
from holdfast.app.report.covers import print_cover, print_inds
from holdfast.app.report.events import print_events
from holdfast.app.report.explanations import print_explanation, print_ind_explanation
from holdfast.app.report.links import print_links
from holdfast.app.report.log import print_log
from holdfast.app.report.paper import Paper, progress_on
from holdfast.app.report.rows import print_rows
from holdfast.core.engine.kernels import activity, compiling
from holdfast.core.words.change import Change, DependencyChange, Pair, WitnessRow
from holdfast.core.words.dependency import Ind, Side, Ucc
from holdfast.inclusions.ind_explanation import IndExplanation
from holdfast.inclusions.links.scored import Link, Linkage, Reason

EVIL = ["[red]x[/red]", "\x1b]0;owned\x07", "a\nb", "\u202egnp.exe", "\x9b31m", "\ud800", ":smile:"]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def a_change(*changes: DependencyChange) -> Change:
    return Change("apply", 2, (part("t", 1, 0, 4, 2),), changes, 0.1)


def ind(dependent: str, referenced: str = "p.id", error: float = 0.0, missing: int = 0) -> Ind:
    sides = [Side(table, (column,)) for table, column in (x.split(".") for x in (dependent, referenced))]
    return Ind(sides[0], sides[1], error, missing, missing)


def broken(which: Ind, reason: str, *rows: tuple[int, dict[str, object]]) -> DependencyChange:
    return DependencyChange("broke", which, reason, tuple((WitnessRow(i, values),) for i, values in rows))


def pair(**columns: tuple[object, object]) -> Pair:
    rows = [WitnessRow(i << 32, {name: values[i] for name, values in columns.items()}) for i in (0, 1)]
    return rows[0], rows[1]


def printed(change: Change, *, terminal: bool = False, width: int | None = None) -> str:
    file = io.StringIO()
    print_change(Paper(file, width=width, terminal=terminal), change)
    return file.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("evil", EVIL)
def test_names_and_cells_are_shown_and_never_interpreted(evil: str, terminal: bool) -> None:
    name = f"c{evil}"
    broke = DependencyChange(
        "broke", Ucc("t", (name,)), "is no longer unique", (pair(**{name: (evil, evil)}),)
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
    print_cover(Paper(file), evil, [Ucc(evil, (evil,))], version=1, n_rows=1, max_columns=None)
    assert all(c.isprintable() or c == "\n" for c in file.getvalue())


def test_a_pipe_gets_no_colours_and_whole_lines() -> None:
    names = [f"a_rather_long_column_name_{i}" for i in range(40)]
    file = io.StringIO()
    print_cover(Paper(file), "t", [Ucc("t", tuple(names))], version=1, n_rows=9, max_columns=None)
    assert file.getvalue().splitlines()[1] == f"   40  {', '.join(names)}"


def test_a_narrow_terminal_shows_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    names = [f"column_{i}" for i in range(12)]
    file = io.StringIO()
    page = Paper(file, width=24, terminal=True)
    print_cover(page, "t", [Ucc("t", tuple(names))], version=1, n_rows=9, max_columns=None)
    rows = pair(**{name: (f"value {i}", f"value {i}") for i, name in enumerate(names)})
    print_rows(page, rows, set(names), "red", indent=6)
    text = ANSI.sub("", file.getvalue())
    assert max(map(len, text.splitlines())) <= 24
    assert all(name in text for name in names)
    assert "\x1b[3" not in file.getvalue()  # no colour; bold is none


def test_a_terminal_shows_the_first_keys_of_a_long_cover_unless_asked() -> None:
    keys = [Ucc("t", (f"k{i}",)) for i in range(450)]

    def shown(*, terminal: bool, everything: bool) -> str:
        file = io.StringIO()
        page = Paper(file, width=80, terminal=terminal)
        print_cover(page, "t", keys, version=1, n_rows=9, max_columns=None, everything=everything)
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
    changes = [DependencyChange("broke", Ucc("t", (c,)), "is no longer unique", (rows,)) for c in "ab"]
    assert printed(a_change(*changes)).splitlines()[1:] == [
        "  broke: 2 keys",
        "    [a]",
        "    [b]",
        "    each is no longer unique:",
        "      row  a  b  |  c",
        "      0.0  1  2  |  3",
        "      1.0  1  2  |  4",
    ]


def test_one_bad_row_that_breaks_many_inclusions_is_shown_once() -> None:
    row = (1 << 32, {"nr": 5, "customer": 7, "ship": 8})
    changes = [
        broken(ind("t.customer", "p.id"), "misses 1 value in 1 row: 7", row),
        broken(ind("t.customer", "q.id"), "misses 1 value in 1 row: 7", row),
    ]
    assert printed(a_change(*changes)).splitlines()[1:] == [
        "  broke: 2 inclusions",
        "    t[customer] in p[id]",
        "    t[customer] in q[id]",
        "    each misses 1 value in 1 row: 7",
        "      row  customer  |  nr  ship",
        "      1.0  7         |  5   8",
    ]
    changes.append(broken(ind("t.ship"), "misses 1 value in 1 row: 8", row))
    assert printed(a_change(*changes)).splitlines()[1:] == [
        "  broke: 3 inclusions",
        "    t[customer] in p[id] misses 1 value in 1 row: 7",
        "    t[customer] in q[id] misses 1 value in 1 row: 7",
        "    t[ship] in p[id] misses 1 value in 1 row: 8",
        "      row  customer  ship  |  nr",
        "      1.0  7         8     |  5",
    ]


def test_inclusions_that_share_rows_stand_together_and_others_apart() -> None:
    a, b, c = ((i, {"x": i, "y": i}) for i in (1, 2, 3))
    changes = [
        broken(ind("t.x", "p.id"), "misses 1", a),
        broken(ind("t.x", "q.id"), "misses 3", c),
        broken(ind("u.x", "p.id"), "misses 1", a),  # the row of this id is one of another table
        broken(ind("t.x", "r.id"), "misses 1 and 2", a, b),
    ]
    assert printed(a_change(*changes)).splitlines()[2:] == [
        "    t[x] in p[id] misses 1",
        "    t[x] in r[id] misses 1 and 2",
        "      row  x  |  y",
        "      0.1  1  |  1",
        "      0.2  2  |  2",
        "    t[x] in q[id] misses 3",
        "      row  x  |  y",
        "      0.3  3  |  3",
        "    u[x] in p[id] misses 1",
        "      row  x  |  y",
        "      0.1  1  |  1",
    ]
    joined = broken(ind("t.x", "s.id"), "misses 2 and 3", b, c)
    lines = printed(a_change(*changes, joined)).splitlines()[2:]
    assert [line for line in lines if "0." in line] == [
        "      0.1  1  |  1",
        "      0.2  2  |  2",
        "      0.3  3  |  3",
        "      0.1  1  |  1",
    ]


def test_only_the_cells_in_question_are_marked() -> None:
    rows = [(i, {"x": f"x{i}", "y": f"y{i}"}) for i in (1, 2)]
    changes = [broken(ind("t.x"), "misses", *rows), broken(ind("t.y"), "misses", rows[1])]
    text = printed(a_change(*changes), terminal=True, width=80)
    assert re.findall(r"\x1b\[31m([xy]\d)\x1b", text) == ["x1", "x2", "y2"]


def test_many_rows_and_many_inclusions_are_counted() -> None:
    rows = [(i, {"x": i}) for i in range(9)]
    text = printed(a_change(broken(ind("t.x"), "misses 9 values", *rows)))
    assert "      ... and 3 more; all with --json" in text.splitlines()
    changes = [broken(ind(f"t.c{i}"), "has no value left to be included") for i in range(25)]
    lines = printed(a_change(*changes)).splitlines()
    assert lines[1] == "  broke: 25 inclusions"
    assert lines[-2:] == [
        "    each has no value left to be included",
        "    ... and 5 more; all with --json",
    ]


def test_keys_and_inclusions_of_several_tables() -> None:
    tables = (part("t", 1, 0, 4, 2), part("a,b", 1, 0, 4, None))
    changes = (
        DependencyChange("broke", Ucc("t", ("k",)), "is no longer unique"),
        broken(ind("t.x", "a,b.id"), "misses 1 value"),
        DependencyChange("appeared", ind("a,b.id", "t.x"), "holds now"),
    )
    text = printed(Change("apply", 3, tables, changes, 0.1, n_inds=4))
    assert text.splitlines() == [
        "t: +1 -0 rows, now 4 rows, 2 minimal keys",
        "'a,b': +1 -0 rows, now 4 rows, 4 inclusions in the workspace (version 3, 0.10 s)",
        "  broke: 1 key",
        "    t[k] is no longer unique",
        "  broke: 1 inclusion",
        "    t[x] in 'a,b'[id] misses 1 value",
        "  appeared: 1 inclusion",
        "    'a,b'[id] in t[x] holds now",
    ]
    same = printed(Change("check", 3, tables, (), 0.1, n_inds=4))
    assert same.splitlines()[-1] == "  the same keys and inclusions would hold as before"


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("evil", EVIL)
def test_inclusions_of_any_name(evil: str, terminal: bool) -> None:
    file = io.StringIO()
    page = Paper(file, width=200, terminal=terminal)
    which = Ind(Side(evil, (evil,)), Side(f"p{evil}", (evil,)), 0.5, 1, 1)
    row = WitnessRow(1, {evil: evil})
    reason = f"misses 1 value in 1 row: {evil!r}"
    change = DependencyChange("broke", which, reason, ((row,),), (evil,))
    table = part(evil, 1, 0, 4, None)
    print_change(page, Change("apply", 2, (table, table), (change,), 0.1, n_inds=1))
    print_change(page, Change("track", 2, (table,), (change,), 0.1, n_inds=1))
    print_change(page, Change("apply", 2, (table,), (), 0.1, batch_id=evil, repeated=True))
    print_inds(page, [which], version=1, table=evil, max_error=0.5)
    explained = IndExplanation(which.dependent, which.referenced, 1, which, False, 1, ((evil, row),), None)
    print_ind_explanation(page, explained)
    link = Link(which.dependent, which.referenced, 0.9, (Reason("name", 1.0, 1.0, evil),), True, 0.5, 1)
    print_links(page, Linkage((link,), {}), version=1)
    plain = ANSI.sub("", file.getvalue())
    assert all(c.isprintable() or c == "\n" for c in plain)
    file.getvalue().encode("utf-8")


@pytest.mark.parametrize("width", [30, 60, 80])
def test_inclusions_fit_the_terminal_and_names_stay_whole(width: int) -> None:
    inds = [ind("orders.customer_id", "customers.id"), ind("items.order_number", "orders.number", 0.25, 1)]
    file = io.StringIO()
    print_inds(Paper(file, width=width, terminal=True), inds, version=1, max_error=0.5)
    text = ANSI.sub("", file.getvalue())
    assert max(map(len, text.splitlines())) <= width
    for side in ("orders[customer_id]", "customers[id]", "items[order_number]", "orders[number]"):
        assert side in text
    assert ("dependent" in text) == (width == 80)


def test_a_terminal_shows_the_first_inclusions_unless_asked() -> None:
    inds = [ind(f"t.c{i}") for i in range(250)]

    def shown(*, terminal: bool, everything: bool) -> str:
        file = io.StringIO()
        page = Paper(file, width=80, terminal=terminal)
        print_inds(page, inds, version=1, everything=everything)
        return ANSI.sub("", file.getvalue())

    first = shown(terminal=True, everything=False)
    assert "t[c199]" in first
    assert "t[c200]" not in first
    assert "... and 50 more; all with --all, --json or in a pipe" in first
    assert "t[c249]" in shown(terminal=True, everything=True)
    assert "t[c249]" in shown(terminal=False, everything=False)


def test_errors_are_not_rounded_away_and_rows_may_be_unknown() -> None:
    file = io.StringIO()
    tiny = Ind(Side("t", ("a",)), Side("u", ("b",)), 1 / 300_000, 1, None, 2.5)
    print_inds(Paper(file), [tiny], version=1, max_error=0.1)
    assert file.getvalue().splitlines() == [
        "0 inclusions, 1 more with an error of at most 0.1 (version 1)",
        "  t[a] in u[b]  error 3.33e-06, misses 1 value, coverage 2.5",
    ]


def a_link(i: int, *points: float, chosen: bool = False) -> Link:
    reasons = tuple(
        Reason(f"r{j}", abs(p), 1.0 if p > 0 else -1.0, f"reason {p}") for j, p in enumerate(points)
    )
    score = 0.9 if chosen else 0.1
    return Link(Side("t", (f"c{i}",)), Side("p", ("id", "nr")[: 1 + i % 2]), score, reasons, chosen, 0.0, 0)


def test_links_show_the_weightiest_reasons() -> None:
    linkage = Linkage(
        (a_link(0, 0.5, -3.0, 2.0, 1.0, chosen=True), a_link(1, 2.0, -1.0, -0.1)), {"p": ("id",)}
    )

    def shown(**how: bool) -> list[str]:
        file = io.StringIO()
        print_links(Paper(file), linkage, version=7, **how)
        return file.getvalue().splitlines()

    assert shown() == [
        "1 foreign key among 2 candidates (version 7)",
        "  0.90  t[c0] -> p[id]",
        "        -3.0  reason -3.0",
        "        +2.0  reason 2.0",
        "        +1.0  reason 1.0",
        "left out: 1 candidate; see why with --all",
    ]
    assert shown(everything=True)[-3:] == [
        "left out:",
        "  0.10  t[c1] -> p[id, nr]",
        "        -1.0  reason -1.0",
    ]
    assert shown(reasons=True, everything=True)[-3:] == [
        "        +2.0  reason 2.0",
        "        -1.0  reason -1.0",
        "        -0.1  reason -0.1",
    ]


def test_candidates_that_are_left_out_are_counted() -> None:
    linkage = Linkage(tuple(a_link(i) for i in range(15)), {})

    def shown(*, terminal: bool, everything: bool) -> str:
        file = io.StringIO()
        page = Paper(file, width=60, terminal=terminal)
        print_links(page, linkage, version=7, everything=everything)
        return ANSI.sub("", file.getvalue())

    for terminal in (True, False):
        assert shown(terminal=terminal, everything=False).splitlines() == [
            "0 foreign keys among 15 candidates (version 7)",
            "left out: 15 candidates; see why with --all",
        ]
        assert "t[c14]" in shown(terminal=terminal, everything=True)


def test_a_link_of_a_column_without_a_value_is_marked() -> None:
    file = io.StringIO()
    link = Link(Side("t", ("p_id",)), Side("p", ("id",)), 0.8, (), True, 0.0, 0, proved=False)
    print_links(Paper(file), Linkage((link,), {}), version=1)
    assert file.getvalue().splitlines()[1] == (
        "  0.80  t[p_id] -> p[id]  unproved: by name, the column has no value"
    )


def test_reasons_that_are_wrapped_stand_behind_their_points() -> None:
    words = "a reason of many words that do not fit one line"
    link = Link(Side("t", ("a",)), Side("p", ("id",)), 0.9, (Reason("x", 2.0, 1.0, words),), True, 0.0, 0)
    file = io.StringIO()
    print_links(Paper(file, width=40, terminal=True), Linkage((link,), {}), version=1)
    lines = [line.rstrip() for line in ANSI.sub("", file.getvalue()).splitlines()[-2:]]
    assert lines == ["        +2.0  a reason of many words", "              that do not fit one line"]


def test_an_empty_column_is_included_in_any() -> None:
    none = Ind(Side("t", ("a",)), Side("u", ("b",)), coverage=0.0)
    file = io.StringIO()
    print_ind_explanation(
        Paper(file), IndExplanation(none.dependent, none.referenced, 3, none, True, 1, (), None)
    )
    assert file.getvalue().splitlines() == [
        "t[a] in u[b] holds (version 3)",
        "  since version 1, when its tables were tracked",
        "  [a] has no value that could be missing",
    ]


def test_events_of_the_ledger_need_no_reason() -> None:
    file = io.StringIO()
    told = {"change": "dropped", "dependency": ind("t.a").to_dict(), "reason": None, "witnesses": []}
    print_events(Paper(file), [told], limit=5)
    assert file.getvalue() == "  dropped: 1 inclusion\n    t[a] in p[id]\n"


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
    text = printed(a_change(DependencyChange("broke", Ucc("t", ("a",)), "is no longer unique", (rows,))))
    assert "rows 0.5 and 2.1" in text


def test_an_explanation_names_the_batch_and_its_rows(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "my.hold", engine="inline")
    ws.track("t", pa.table({"a": [1, 2], "b": [1, 1]}))
    ws.apply("t", inserts=pa.table({"a": [2], "b": [2]}), batch_id="[bold]b[/bold]")
    file = io.StringIO()
    print_explanation(Paper(file), ws.explain("t", ["a"]))
    print_log(Paper(file), ws.log())
    text = file.getvalue()
    assert "by the apply of batch '[bold]b[/bold]'" in text
    assert "apply t batch '[bold]b[/bold]': +1 -0, now 3 rows" in text
    assert "these rows are there still" in text


class _Lines(io.StringIO):
    """A file that can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition()

    def write(self, text: str) -> int:
        with self.changed:
            self.changed.notify_all()
            return super().write(text)

    def wait_for(self, line: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: re.search(line, self.getvalue()), timeout=60), (
                self.getvalue()
            )


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress, at once."""
    monkeypatch.delenv(paper.SWITCH)
    monkeypatch.setattr(paper, "PATIENCE_S", 0.0)
    monkeypatch.setattr(paper, "WORD_AFTER_S", 0.001)


def test_progress_can_be_switched_off(shown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_PROGRESS", "0")
    for terminal in (False, True):
        file = io.StringIO()
        with progress_on(Paper(file, terminal=terminal)) as hook:
            assert hook is None
        assert file.getvalue() == ""


def test_what_is_over_soon_needs_no_progress(shown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paper, "WORD_AFTER_S", float("inf"))
    file = io.StringIO()
    with progress_on(Paper(file)) as hook:
        assert hook is not None
        hook("reading", 0, 1)
    assert file.getvalue() == ""


def test_progress_off_a_terminal_is_a_line_when_it_takes_long(shown: None) -> None:
    lines = _Lines()
    with progress_on(Paper(lines)) as hook:
        assert hook is not None
        lines.wait_for(r"^(preparing, \d+ s\n)+$")  # again, if this thread is late
        hook("reading [red]", 1, 4)
        lines.wait_for(r"\nreading \[red\] 1/4, \d+ s\n$")
        hook("writing", 0, 0)
        lines.wait_for(r"1/4, \d+ s\nwriting, \d+ s\n$")
        hook("searching", 5000, 0)  # nobody knows how many there will be
        lines.wait_for(r"\nsearching \(5,000 so far\), \d+ s\n$")


def test_progress_survives_that_nobody_reads_it(shown: None) -> None:
    lines = io.StringIO()
    lines.close()
    with progress_on(Paper(lines, terminal=False)) as hook:
        assert hook is not None
        hook("reading", 0, 1)


@pytest.mark.parametrize("terminal", [False, True])
def test_compiling_is_told_whatever_the_stage(
    terminal: bool, shown: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "PATIENCE_S", 0.0)
    monkeypatch.setattr(activity, "LINGER_S", 1e9)
    monkeypatch.setattr(activity, "_until", -1e9)
    monkeypatch.setattr(paper, "LESS_OFTEN_S", 0.001)
    lines = _Lines()

    @compiling.njit()
    def doubled(x: int) -> int:
        return 2 * x

    doubled.py_func.__module__ = "holdfast.lakes.kernels.of_a_test"
    with progress_on(Paper(lines, width=80, terminal=terminal)) as hook:
        assert hook is not None
        hook("reading", 0, 1)
        lines.wait_for("reading")
        n_compiled = activity._n_compiled
        assert doubled(21) == 42
        lines.wait_for(rf"compiling kernels, once.*\({n_compiled + 1} so far\)")


def test_progress_on_a_terminal(shown: None) -> None:
    file = io.StringIO()
    with progress_on(Paper(file, width=80, terminal=True)) as hook:
        assert hook is not None
        # It is drawn by a thread of its own, several times a second.
        for told, shown in (
            (("starting Spark", 0, 0), "starting Spark (a few seconds) ..."),
            (("reading [red]", 1, 4), "1/4"),
        ):
            hook(*told)
            end = time.monotonic() + 60
            while shown not in (text := ANSI.sub("", file.getvalue())):
                assert time.monotonic() < end, text
                time.sleep(0.01)
    assert "reading [red]" in text
