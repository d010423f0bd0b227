"""Functional dependencies on the command line: found, broken, explained, ranked, logged, normalised."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pytest

from app.parts import part
from app.shell import WHAT_IS_IMPORTED, Shell
from holdfast.app.report.changes import print_change
from holdfast.app.report.fds import print_fd_log, print_fds
from holdfast.app.report.paper import Paper
from holdfast.app.report.rankings import print_ranking
from holdfast.core.cover.history import Spell
from holdfast.core.words.change import Change, DependencyChange, Pair, WitnessRow
from holdfast.core.words.dependency import Fd, Ucc
from holdfast.functional.fd_past import FdHistory
from holdfast.functional.fd_ranking import FdRanking, RankedFd

PLACES = "id,zip,city,state\n1,10,Ulm,BW\n2,10,Ulm,BW\n3,20,Bern,BE\n4,30,Bern,BE\n5,30,Bern,BE\n"
HARMLESS = "id,zip,city,state\n6,20,Bern,BE\n"
BREAKS_ZIP = "id,zip,city,state\n7,10,Ulm-Mitte,BW\n"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def track(folder: Path, *options: str, kinds: str = "ucc,fd") -> Shell:
    folder.mkdir(exist_ok=True)
    shell = Shell(folder)
    outcome = shell("track", "places", shell.file("places.csv", PLACES), "--kinds", kinds, *options)
    assert outcome.code == 0, outcome.err
    return shell


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("places")
    track(folder, "--row-key", "id")
    return folder


@pytest.fixture
def shell(tracked: Path, tmp_path: Path) -> Shell:
    """The table `places` at version 1, with keys and functional dependencies; a copy."""
    shutil.copytree(tracked, tmp_path / "work")
    return Shell(tmp_path / "work")


# --- Tracking ---------------------------------------------------------------------------------------------


def test_track_says_what_it_found_and_how_it_is_kept(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    source = shell.file("places.csv", PLACES)
    outcome = shell("track", "places", source, "--kinds", "ucc,fd")
    assert (outcome.code, outcome.err) == (0, "")
    headline, *rest = outcome.out.splitlines()
    assert headline.startswith(
        "places: 5 rows, 1 minimal key, 7 minimal functional dependencies (counted evidence) (version 1, "
    )
    assert rest == [
        "  [id]",
        "  new: 7 functional dependencies",
        "    city -> state",
        "    state -> city",
        "    zip -> city",
        "    zip -> state",
        "    ... and 3 with a key on the left",
    ]
    bounded = shell(
        "track", "b", source, "--kinds", "fd", "--max-lhs", "1", "--evidence", "witnessed", "--json"
    )
    assert "functional dependencies of at most 1 on the left (witnessed evidence) (version 2" in bounded.err
    assert (bounded.json()["n_fds"], bounded.json()["max_lhs"], bounded.json()["n_keys"]) == (7, 1, None)
    almost = shell("track-all", f"c={source}", "--kinds", "fd", "--max-error", "0.1", "--evidence", "counted")
    assert "functional dependencies (counted evidence, errors up to 0.1) (version 3" in almost.out


def test_dependencies_of_keys_alone_are_only_counted(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = shell("track", "t", shell.file("t.csv", "a,b\n1,1\n2,1\n3,2\n"), "--kinds", "ucc,fd").out
    assert told.endswith("  [a]\n  new: 1 functional dependency, all with the key on the left\n")
    told = shell("track", "u", shell.file("u.csv", "a,b\n1,1\n"), "--kinds", "ucc,fd").out
    assert "  new: 2 functional dependencies, all with the key on the left\n" in told
    many = Change("track", 1, (part("t", 9, 0, 9, None, n_fds=80_000, unlisted=80_000),), (), 0.1)
    assert printed(many).splitlines()[1:] == [
        "  new: 80,000 functional dependencies: too many to list, but see 'holdfast show --top 20'"
    ]
    change = DependencyChange("appeared", Ucc("t", ("a",)), "holds")
    many = Change("track", 1, (part("t", 9, 0, 9, 5_001, unlisted=5_000),), (change,), 0.1)
    where = "see them with 'holdfast show --all'"
    assert printed(many).splitlines()[1:] == ["  [a]", f"  ... and 5,000 more; {where}"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--max-lhs", "2"], "--max-lhs is about functional dependencies, which are not to be kept: add fd"),
        (["--evidence", "counted"], "--evidence is about functional dependencies"),
        (["--max-error", "0.1"], "--max-error is about functional dependencies"),
        (["--kinds", "fd", "--max-error", "2"], "max_error is 2.0; expected a share between 0 and 1"),
        (["--kinds", "fd", "--max-error", "0.1", "--evidence", "witnessed"], "errors are known from counted"),
        (["--kinds", "fd", "--as-text"], "--as-text is about inclusions"),
    ],
)
def test_options_for_what_is_not_kept(tmp_path: Path, options: list[str], error: str) -> None:
    shell = Shell(tmp_path)
    outcome = shell("track", "t", shell.file("p.csv", PLACES), *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"UsageError: {error}")


# --- Showing ----------------------------------------------------------------------------------------------


def test_show(shell: Shell) -> None:
    outcome = shell("show")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "places: 5 rows, 1 minimal key (version 1)",
        "    1  id",
        "",
        "places: 5 rows, 7 minimal functional dependencies (counted evidence, version 1)",
        "    1  city -> state",
        "    1  state -> city",
        "    1  zip -> city",
        "    1  zip -> state",
        "    1  id -> zip",
        "    1  id -> city",
        "    1  id -> state",
    ]
    assert shell("show", "--kind", "fd").out == "\n".join(outcome.out.splitlines()[3:]) + "\n"
    assert "->" not in shell("show", "--kind", "ucc").out
    assert shell("show", "--kind", "ind").out.startswith("no inclusions are kept")


def test_show_as_json(shell: Shell) -> None:
    document = shell("show", "--kind", "fd", "--json").json()
    assert document["version"] == 1
    lines = [line.split(maxsplit=1)[1] for line in shell("show", "--kind", "fd").out.splitlines()[1:]]
    assert [f"{', '.join(d['lhs'])} -> {d['rhs']}" for d in document["dependencies"]] == lines
    zips = {"kind": "fd", "table": "places", "lhs": ["zip"], "rhs": "city", "error": 0, "role": "dependency"}
    [score] = [d["score"] for d in document["dependencies"] if zips.items() <= d.items()]
    assert 0 < score < 1
    assert len(document["dependencies"]) == 7
    [table] = document["tables"]
    assert table["fds"] == {"evidence": "counted", "max_lhs": None, "max_error": None}
    assert {d["kind"] for d in shell("show", "--json").json()["dependencies"]} == {"ucc", "fd"}


def test_show_at_a_version(shell: Shell) -> None:
    assert shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP)).code == 0
    assert "zip -> city\n" not in shell("show", "--kind", "fd").out
    assert "zip -> city\n" in shell("show", "--kind", "fd", "--at", "1").out
    denied = shell("show", "--kind", "fd", "--at", "1", "--max-error", "0.3")
    assert denied.code == 2
    assert "evidence is kept for the newest version only" in denied.err
    both = shell("show", "--at", "1", "--max-error", "0.3")  # what is asked for is not this alone
    assert both.code == 0
    assert both.err.startswith("note: exact ones are shown: ")
    assert "zip -> city\n" in both.out


def test_reading_imports_neither_spark_nor_numba_nor_pandas(shell: Shell) -> None:
    for command in (["show"], ["show", "--kind", "fd", "--json"], ["log"]):
        outcome = shell.process(*command, code=WHAT_IS_IMPORTED)
        assert (outcome.code, outcome.err) == (0, "[]\n")


def test_show_of_what_almost_holds(shell: Shell) -> None:
    assert shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP)).code == 0
    shown = shell("show", "--max-error", "0.2").out.splitlines()
    assert shown[0] == "places: 6 rows, 2 minimal keys with an error of at most 0.2 (version 2)"
    assert shown[1:3] == ["    1  id", "    2  zip, city  error 0.133"]
    assert "    1  zip -> city  error 0.133" in shown
    assert "    1  zip -> state" in shown
    [fd] = [
        d
        for d in shell("show", "--kind", "fd", "--max-error", "0.2", "--json").json()["dependencies"]
        if d["lhs"] == ["zip"] and d["rhs"] == "city"
    ]
    assert fd["error"] == pytest.approx(2 / 15)
    keys = shell("show", "--kind", "ucc", "--max-error", "0.2", "--json").json()["dependencies"]
    assert [k["columns"] for k in keys] == [["id"], ["zip", "city"]]
    assert shell("show", "--max-error", "1.5").code == 2


def test_the_tracked_error_is_known_at_every_version(tmp_path: Path) -> None:
    shell = track(tmp_path, "--max-error", "0.2", "--max-lhs", "1", kinds="fd")
    told = shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP))
    assert "  no longer minimal within the error: 1 key\n    [zip] error 0.2667, beyond 0.2\n" in told.out
    shown = shell("show", "--kind", "fd", "--max-error", "0.2", "--at", "1")
    assert shown.code == 0, shown.err
    assert "errors up to 0.2, version 1)" in shown.out
    assert "wider left sides were not looked for: the table is tracked with --max-lhs 1" in shown.out
    # Keys are not tracked; those that almost hold are known all the same, within the bound.
    keys = shell("show", "--kind", "ucc", "--max-error", "0.2").out
    assert keys.startswith("places: 6 rows, 1 minimal key of at most 1 column with an error of at most 0.2")
    assert shell("show", "--kind", "ucc").out.endswith("its keys are not tracked\n")


def test_witnessed_evidence_knows_what_holds_only(tmp_path: Path) -> None:
    shell = track(tmp_path, "--evidence", "witnessed")
    assert "7 minimal functional dependencies (witnessed evidence, version 1)" in shell("show").out
    denied = shell("show", "--kind", "fd", "--max-error", "0.1")
    assert denied.code == 2
    assert "Track it anew with --evidence counted" in denied.err
    both = shell("show", "--max-error", "0.1")
    assert both.code == 0
    assert both.err.startswith("note: exact ones are shown: ")
    assert "with an error" not in both.out


def test_show_top(shell: Shell) -> None:
    outcome = shell("show", "--top", "5")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "places: the first 5 of 7 functional dependencies, best first (version 1)"
    assert re.fullmatch(r"  0\.\d\d  \w+ -> \w+", lines[1])
    assert lines[2].startswith("        explains 3 redundant values; left-hand side of 1 column")
    assert re.fullmatch(r"     -  id -> \w+  follows from the key \[id\]", lines[9])
    assert lines[-1] == "  3 follow from keys and come last"
    document = shell("show", "--kind", "fd", "--top", "2", "--json").json()
    first, _ = document["dependencies"]
    assert (first["kind"], first["key"], first["measured"]) == ("fd", None, True)
    assert first["score"] > 0.5
    assert first["reasons"]
    assert document["tables"][0]["ranking"] == {
        "n_fds": 7, "n_key_implied": 3, "n_measured": 4, "n_certain": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--top", "3", "--kind", "ucc"], "--top ranks functional dependencies"),
        (["--top", "3", "--at", "1"], "--top ranks what holds now"),
        (["--kind", "fd", "--non-uniques"], "--non-uniques says nothing about dependencies of kind fd"),
        (
            ["--kind", "fds"],
            "dependencies of kind 'fds' are not known. Kinds: ucc, fd, ind, dc, row, ",
        ),
    ],
)
def test_show_of_what_cannot_be(shell: Shell, options: list[str], error: str) -> None:
    outcome = shell("show", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"UsageError: {error}")


def test_tables_without_functional_dependencies(tmp_path: Path) -> None:
    shell = track(tmp_path, kinds="ucc")
    how = "(version 1). Track tables with --kinds ucc,fd.\n"
    assert shell("show", "--kind", "fd").out == f"no functional dependencies are kept {how}"
    assert shell("show", "--top", "3").out == f"no functional dependencies are kept {how}"
    assert shell("log", "--kind", "fd").out == f"no functional dependencies are kept {how}"
    batch = shell.file("b.csv", HARMLESS)
    for command in (
        ["log", "--kind", "fd", "--table", "places"],
        ["normalise", "places"],
        ["check", "places", "--inserts", batch, "--held", "2"],
        ["check-all", "--inserts", f"places={batch}", "--held", "2"],
    ):
        outcome = shell(*command)
        assert (outcome.code, outcome.out) == (2, "")
        assert "are not tracked" in outcome.err
        assert re.search("--kinds (ucc,)?fd", outcome.err)


# --- Changing ---------------------------------------------------------------------------------------------


def test_apply_says_what_broke_and_by_which_rows(shell: Shell) -> None:
    for i in range(2):
        more = shell.file(f"{i}.csv", HARMLESS.replace("6,", f"{60 + i},"))
        told = shell("apply", "places", "--inserts", more).out
        assert "the same keys and functional dependencies hold as before" in told
    outcome = shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP))
    headline, *rest = outcome.out.splitlines()
    assert "now 8 rows, 1 minimal key, 5 minimal functional dependencies (version 4, " in headline
    assert rest == [
        "  broke: 2 functional dependencies",
        "    state -> city",
        "    zip -> city",
        "    each does not hold any more; it had held through 3 versions:",
        "      row  zip  city       state  |  id",
        "      0.0  10   Ulm        BW     |  1",
        "      3.0  10   Ulm-Mitte  BW     |  7",
    ]
    log = shell("log").out
    assert "apply places: +1 -0, now 8 rows, 1 key, 5 functional dependencies\n" in log
    assert "    broke: state -> city; zip -> city\n" in log


def test_changes_as_json(shell: Shell) -> None:
    shell("apply", "places", "--inserts", shell.file("h.csv", HARMLESS))
    document = shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP), "--json").json()
    broke = [c for c in document["changes"] if c["change"] == "broke"]
    assert [c["held"] for c in broke] == [2, 2]
    assert [c["dependency"]["lhs"] for c in broke] == [["state"], ["zip"]]
    [[left, right]] = broke[0]["witnesses"]
    assert {left["values"]["city"], right["values"]["city"]} == {"Ulm", "Ulm-Mitte"}
    assert document["n_fds"] == 5


def test_a_key_that_breaks_takes_its_dependencies_along(shell: Shell) -> None:
    told = shell("apply", "places", "--inserts", shell.file("b.csv", "id,zip,city,state\n1,20,Bern,BE\n")).out
    assert "  broke: 1 primary key\n    [id] is no longer unique:\n" in told
    assert "  broke: 3 functional dependencies, each with a key above on the left\n" in told
    assert "id -> zip" not in told


def test_check_gates_on_what_has_held_for_long(shell: Shell) -> None:
    breaks, harmless = shell.file("b.csv", BREAKS_ZIP), shell.file("h.csv", HARMLESS)
    assert shell("apply", "places", "--inserts", harmless).code == 0
    assert shell("check", "places", "--inserts", breaks).code == 0
    assert shell("check", "places", "--inserts", breaks, "--held", "3").code == 0
    closed = shell("check", "places", "--inserts", breaks, "--held", "2")
    assert closed.code == 1
    assert "  would break: 2 functional dependencies\n" in closed.out
    assert closed.out.endswith(
        "  2 functional dependencies that had held through at least 2 versions WOULD BREAK\n"
    )
    assert shell("check", "places", "--inserts", shell.file("i.csv", HARMLESS.replace("6", "8"))).code == 0
    document = shell.process("check", "places", "--inserts", "b.csv", "--held", "2", "--json")
    assert document.code == 1
    assert document.json()["changes"][0]["held"] == 2
    assert "WOULD BREAK" in document.err
    both = shell("check-all", "--inserts", f"places={breaks}", "--held", "1")
    assert both.code == 1
    assert shell("show", "--json").json()["version"] == 2


def test_a_gate_sees_what_a_report_does_not_list(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.functional import fd_news as fd_report

    monkeypatch.setattr(fd_report, "MAX_LISTED", 0)
    batch = shell.file("b.csv", BREAKS_ZIP)
    outcome = shell("check", "places", "--inserts", batch, "--held", "1")
    assert outcome.code == 1
    assert "a functional dependency (not listed) that had held through at least 1 version WOULD BREAK" in (
        outcome.out
    )
    assert shell("check", "places", "--inserts", batch, "--held", "9").code == 0


def test_top_within_an_error(shell: Shell) -> None:
    outcome = shell("show", "--top", "2", "--max-error", "0.2", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    found = outcome.json()["dependencies"]
    assert len(found) == 2
    assert all(d["score"] >= 0 and d["reasons"] and d["error"] <= 0.2 for d in found)


# --- Explaining -------------------------------------------------------------------------------------------


def test_explain_a_broken_one(shell: Shell) -> None:
    assert (
        shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP), "--batch-id", "b1").code == 0
    )
    outcome = shell("explain", "places", "zip -> city")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "places: zip -> city does not hold (version 2)"
    assert lines[1].startswith("  since version 2, by the apply of batch 'b1' on ")
    assert lines[2:6] == [
        "  2 of 15 pairs of rows violate it (g1 0.133)",
        "  3 rows contradict one another; without 1 row it would hold (g3 0.167)",
        "  broke: 1 functional dependency",
        "    zip -> city does not hold any more:",
    ]
    assert lines[9:] == [
        "  rows in violation by zip:",
        "    zip 10: 3 rows, 2 values of city: Ulm (2), Ulm-Mitte (1)",
        "      row  zip  city       |  id  state",
        "      0.0  10   Ulm        |  1   BW",
        "      0.1  10   Ulm        |  2   BW",
        "      1.0  10   Ulm-Mitte  |  7   BW",
    ]
    document = shell("explain", "places", "zip->city", "--json").json()
    assert (document["holds"], document["violations"], document["rows_to_remove"]) == (False, 2, 1)
    assert document["groups"][0]["lhs"] == {"zip": 10}
    assert document["turned"]["batch_id"] == "b1"


def test_explain_what_holds(shell: Shell) -> None:
    assert shell("explain", "places", "zip -> city").out.splitlines() == [
        "places: zip -> city holds (version 1)",
        "  since version 1, when the table was tracked",
        "  minimal: without any one of the columns on its left it does not hold",
    ]
    assert shell("explain", "places", "state, id -> city").out.splitlines()[2:] == [
        "  not minimal: less on the left is enough",
        "    id -> city",
        "    state -> city",
        "  it follows from the key [id]",
    ]
    assert shell("explain", "places", "id, zip -> zip").out.splitlines()[1:] == [
        "  always: zip is among the columns on the left"
    ]
    assert (
        "all rows: 5 rows, 2 values of city: Bern (3), Ulm (2)"
        in shell("explain", "places", "[] -> city").out
    )


def test_explain_beyond_the_bound(tmp_path: Path) -> None:
    shell = track(tmp_path, "--max-lhs", "1")
    rows = "a,b,c\n1,1,1\n1,2,2\n2,1,2\n2,2,1\n"
    assert shell("track", "x", shell.file("x.csv", rows), "--kinds", "fd", "--max-lhs", "1").code == 0
    told = shell("explain", "x", "a, b -> c").out
    assert told.startswith("x: a, b -> c holds (version 2)\n  minimal: ")
    assert "found by a look at the rows: --max-lhs 1 keeps dependencies of that many columns" in told


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        (["zip -> town"], "UnknownColumnError: table 'places' (version 1) has no column 'town'"),
        (["zip -> city, state"], "UsageError: 'zip -> city, state' has 2 columns on its right side"),
        (["zip ->"], "UsageError: 'zip ->' has no column on its right side"),
        (["zip", "state -> city"], "UsageError: put the whole functional dependency in one argument"),
        (["zip", "-"], "UsageError: there is no column '-'. If this was an arrow, the shell took its >"),
        (["zip -> city", "--in", "places.id"], "UsageError: an arrow asks for a functional dependency"),
    ],
)
def test_explain_of_what_is_none(shell: Shell, columns: list[str], error: str) -> None:
    outcome = shell("explain", "places", *columns)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(error)


def test_odd_names_can_be_copied(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    odd = shell.file("odd.csv", '"last, first",a->b,c\nx,1,1\ny,1,1\n')
    assert shell("track", "odd", odd, "--kinds", "ucc,fd").code == 0
    shown = shell("show", "--kind", "fd").out
    assert '    0  [] -> "a->b"\n' in shown
    for line in shown.splitlines()[1:]:
        assert shell("explain", "odd", line[5:].strip()).out.startswith(f"odd: {line[5:].strip()} holds")
    assert shell("explain", "odd", "a->b").out.startswith("odd[a->b] is not unique")  # a column as it is


# --- Over time --------------------------------------------------------------------------------------------


def test_log_of_functional_dependencies(shell: Shell) -> None:
    assert shell("apply", "places", "--inserts", shell.file("h.csv", HARMLESS)).code == 0
    assert shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP)).code == 0
    outcome = shell("log", "--kind", "fd")
    assert (outcome.code, outcome.err) == (0, "")
    assert (
        outcome.out.splitlines()
        == [
            "places: 7 functional dependencies in 3 versions of the table, 2 of them broken (version 3)",
            "  broken:",
            "    held    at versions  outlived rows  dependency",
            "    2 of 3  1-2          +1 -0          zip -> city",
            "    2 of 3  1-2          +1 -0          state -> city",
            "  holding:",
            "    held    at versions  outlived rows  dependency",
            "    3 of 3  1-           +2 -0          id -> zip",
            "    3 of 3  1-           +2 -0          id -> city",
            "    3 of 3  1-           +2 -0          id -> state",
            "    3 of 3  1-           +2 -0          zip -> state",
            "    3 of 3  1-           +2 -0          city -> state",
        ]
        or "city, zip" in outcome.out
    )
    assert shell("apply", "places", "--deletes", shell.file("d.csv", "id\n7\n")).code == 0
    assert "    3 of 4  1-2, 4-      +1 -0          zip -> city\n" in shell("log", "--kind", "fd").out
    document = shell("log", "--kind", "fd", "--table", "places", "--json").json()
    assert document["version"] == 4
    [zip_city] = [d for d in document["dependencies"] if (d["lhs"], d["rhs"]) == (["zip"], "city")]
    assert zip_city["spells"] == [{"first": 1, "last": 2}, {"first": 4, "last": None}]
    assert zip_city["breaks"] == [3]


def test_log_of_one_kind(shell: Shell) -> None:
    assert shell("apply", "places", "--inserts", shell.file("b.csv", BREAKS_ZIP)).code == 0
    assert "->" in shell("log", "--all").out
    assert "->" not in shell("log", "--kind", "ucc", "--all").out
    assert shell("log", "--kind", "key").code == 2


# --- Normal forms and exports -----------------------------------------------------------------------------


def test_normalise(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    rows = ["id,zip,city,note"] + [f"{i},{i % 8},{'AB'[i % 8 // 5]},n{i}" for i in range(64)]
    assert shell("track", "t", shell.file("t.csv", "\n".join(rows) + "\n"), "--kinds", "ucc,fd").code == 0
    outcome = shell("normalise", "t")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("t: 2 tables in BCNF (version 1)\n")
    assert "  t_zip[zip, city]\n      key  [zip]\n" in outcome.out
    third = shell("normalise", "t", "--form", "3nf", "--json").json()
    assert (third["version"], third["form"], len(third["parts"])) == (1, "3nf", 2)
    assert "sql" not in third
    ddl = shell("normalise", "t", "--ddl", "--dialect", "postgres").out
    assert 'CREATE TABLE "t_zip" (' in ddl
    assert 'FOREIGN KEY ("zip") REFERENCES "t_zip" ("zip")' in ddl
    assert json.loads(shell("normalise", "t", "--ddl", "--json").out)["sql"].startswith("-- holdfast")
    strict = shell("normalise", "t", "--min-score", "0.99").out
    assert strict.startswith("t: one table, as it is, in BCNF, with respect to the FDs used")
    assert "set aside: 1 FD" in strict
    assert shell("normalise", "t", "--min-score", "0.99", "--all").out.startswith("t: 2 tables in BCNF")
    assert shell("normalise", "t", "--dialect", "duckdb").code == 2
    assert shell("normalise", "t", "--min-score", "2").code == 2


@pytest.mark.parametrize("kinds", ["fd", "ucc,fd", "ucc,fd,ind"])
def test_exports_of_a_workspace_with_functional_dependencies(tmp_path: Path, kinds: str) -> None:
    shell = track(tmp_path, kinds=kinds)
    for name in ("sql", "dbt", "mermaid", "graphviz"):
        outcome = shell("export", "--format", name)
        assert (outcome.code, outcome.err) == (0, "")
        assert "places" in outcome.out


def test_the_rest_works_with_functional_dependencies(shell: Shell) -> None:
    assert shell("merge", "places").code == 0
    assert shell("verify").code == 0
    assert shell("drop", "places").code == 0
    assert shell("show", "--kind", "fd", "--at", "1").code == 0


# --- Reports ----------------------------------------------------------------------------------------------


def pair(**columns: tuple[object, object]) -> Pair:
    rows = [WitnessRow(i << 32, {name: values[i] for name, values in columns.items()}) for i in (0, 1)]
    return rows[0], rows[1]


def a_change(*changes: DependencyChange, unlisted: int = 0) -> Change:
    return Change("apply", 9, (part("t", 1, 0, 4, 2, n_fds=3, unlisted=unlisted),), changes, 0.1)


def printed(change: Change, *, terminal: bool = False, width: int | None = None) -> str:
    file = io.StringIO()
    print_change(Paper(file, width=width, terminal=terminal), change)
    return file.getvalue()


def test_long_held_ones_come_first() -> None:
    rows = pair(a=(1, 1), b=(2, 3), c=(4, 4), d=(5, 6))
    changes = [
        DependencyChange("broke", Fd("t", ("a",), "b"), "does not hold any more", (rows,), held=1),
        DependencyChange("broke", Fd("t", ("c",), "d"), "does not hold any more", held=12),
        DependencyChange("broke", Fd("t", ("a",), "d"), "does not hold any more", held=3),
    ]
    text = printed(a_change(*changes))
    assert text.splitlines()[1:] == [
        "  broke: 3 functional dependencies",
        "    c -> d does not hold any more; it had held through 12 versions",
        "    a -> d does not hold any more; it had held through 3 versions",
        "    a -> b does not hold any more:",
        "      row  a  b  |  d  c",
        "      0.0  1  2  |  5  4",
        "      1.0  1  3  |  6  4",
    ]
    assert "\x1b[1;31mc -> d" in printed(a_change(*changes), terminal=True, width=100)


def test_many_changes_are_cut_and_counted() -> None:
    names = [f"c{i}" for i in range(40)]
    broke = [DependencyChange("broke", Fd("t", (n,), "x"), "does not hold any more") for n in names]
    wider = [DependencyChange("appeared", Fd("t", (n, "y"), "x"), "holds now") for n in names]
    text = printed(a_change(*broke, *wider, unlisted=70_000))
    assert "  broke: 40 functional dependencies\n" in text
    assert "    c19 -> x\n" in text
    assert "    c20 -> x\n" not in text
    assert "    ... and 20 more; all with --json\n" in text
    assert "    c9, y -> x\n    each holds now\n    ... and 30 more; all with --json\n" in text
    assert text.endswith("  70,000 more changes of keys or functional dependencies: too many to list\n")


def test_dependencies_on_keys_that_changed_are_counted_beside_the_others() -> None:
    changes = [
        DependencyChange("appeared", Ucc("t", ("a",)), "is unique now"),
        DependencyChange("appeared", Fd("t", ("a",), "b"), "holds now"),
        DependencyChange("appeared", Fd("t", ("a",), "c"), "holds now"),
        DependencyChange("appeared", Fd("t", ("b",), "c"), "holds now"),
    ]
    assert printed(a_change(*changes)).splitlines()[1:] == [
        "  appeared: 1 key",
        "    [a] is unique now",
        "  appeared: 3 functional dependencies",
        "    b -> c holds now",
        "    ... and 2 with a key above on the left",
    ]


def test_what_comes_within_an_error_or_leaves_it() -> None:
    changes = [
        DependencyChange("within", Fd("t", ("a",), "b", 0.01), "error 0.01, within 0.02"),
        DependencyChange("within", Ucc("t", ("a",), 0.01), "error 0.01, within 0.02"),
        DependencyChange("within", Fd("t", ("d",), "b", 0.01), "error 0.01, within 0.02"),
        DependencyChange("beyond", Fd("t", ("c",), "b", 0.03), "error 0.03, beyond 0.02"),
    ]
    assert printed(a_change(*changes)).splitlines()[1:] == [
        "  within the error now: 1 key",
        "    [a] error 0.01, within 0.02",
        "  within the error now: 2 functional dependencies",
        "    d -> b error 0.01, within 0.02",
        "    ... and 1 with a key above on the left",
        "  no longer minimal within the error: 1 functional dependency",
        "    c -> b error 0.03, beyond 0.02",
    ]


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("evil", ["[red]x[/red]", "\x1b]0;owned\x07", "a\nb", "\u202egnp.exe", "\ud800"])
def test_names_are_shown_and_never_interpreted(evil: str, terminal: bool) -> None:
    file = io.StringIO()
    paper = Paper(file, terminal=terminal, width=200)
    fd = Fd(evil, (evil,), "b")
    ranked = RankedFd(fd, 0.5, (f"follows from the key [{evil}]",), (evil,), True, 1, 1, 0.5, 1.0, 1, 0)
    history = FdHistory(fd, (Spell(1, 2),), 3, 2, 0, 5, 5, False, None)
    broke = DependencyChange(
        "broke", fd, "does not hold any more", (pair(**{evil: (evil, evil), "b": (1, 2)}),)
    )
    print_fds(paper, evil, [fd], version=1, n_rows=2, evidence="counted evidence", max_lhs=None)
    print_ranking(paper, evil, FdRanking((ranked,), 1, 1, 0, 1), version=1)
    print_fd_log(paper, evil, [history], version=1)
    print_change(paper, a_change(broke))
    text = file.getvalue()
    text.encode("utf-8")
    assert all(c.isprintable() or c == "\n" for c in ANSI.sub("", text))
    shown = evil if evil.isprintable() else repr(evil).strip("'")
    assert ANSI.sub("", text).count(shown) >= 8


def test_a_terminal_shows_a_screenful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    fds = [Fd("t", (f"k{i}",), rhs) for i in range(60) for rhs in ("a", "b", "x, y")]

    def shown(*, terminal: bool, everything: bool) -> list[str]:
        file = io.StringIO()
        print_fds(
            Paper(file, terminal=terminal, width=120),
            "t",
            fds,
            version=3,
            n_rows=9,
            evidence="counted evidence",
            max_lhs=2,
            everything=everything,
        )
        return ANSI.sub("", file.getvalue()).splitlines()

    first = shown(terminal=True, everything=False)
    assert first[2] == '    1  k0 -> a, b, "x, y"'
    assert len(first) == 2 + 40 + 1
    assert first[-1].startswith("  ... and 60 more; the most telling with --top 20, all with --all")
    assert len(shown(terminal=True, everything=True)) == 2 + 60
    piped = shown(terminal=False, everything=False)
    assert len(piped) == 2 + 180
    assert piped[4] == '    1  k0 -> "x, y"'


def test_a_ranking_says_what_was_not_measured() -> None:
    fds = tuple(
        RankedFd(Fd("t", ("a",), b), 0.5, ("why",), None, b == "b", 1, 1, 0.5, 1.0, 1, 0) for b in "bc"
    )
    file = io.StringIO()
    print_ranking(Paper(file), "t", FdRanking(fds, 900, 300, 256, 1), version=1)
    assert file.getvalue().splitlines() == [
        "t: the first 2 of 900 functional dependencies, best first (version 1)",
        "  0.50  a -> b",
        "        why",
        "  <0.50  a -> c",
        "        why",
        "  300 follow from keys and come last",
        "  256 of the other 600 were measured on the rows",
        "  only the first 1 are certain: the score of what was not measured is an upper bound",
    ]


def test_a_log_marks_what_broke_after_a_long_time() -> None:
    fd = Fd("t", ("a",), "b")
    spells = (Spell(1, 4), Spell(6, 6), Spell(8, None))
    histories = [
        FdHistory(fd, (Spell(1, 9),), 10, 9, 0, 12_000, 3, False, None),
        FdHistory(Fd("t", (), "c"), spells, 10, 6, 2, 5, 0, False, None),
    ]
    file = io.StringIO()
    print_fd_log(Paper(file, terminal=True, width=100), "t", histories, version=11)
    assert "\x1b[1;31ma -> b" in file.getvalue()
    lines = ANSI.sub("", file.getvalue()).splitlines()
    assert [line.rstrip() for line in lines[3::3]] == [
        "    9 of 10  1-9          +12,000 -3     a -> b",
        "    6 of 10  1-4, 6, 8-   +5 -0          [] -> c  (a narrower one holds)",
    ]
