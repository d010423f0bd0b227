"""The command line as a user and as a program meet it: output, exit codes, what goes to which stream."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast.app import cli

ROWS = "name,phone,age\nLee,345,20\nPayne,245,30\nLee,234,30\n"
BREAKS_PHONE = "name,phone,age\nPayne,245,31\n"
HARMLESS = "name,phone,age\nKim,999,44\n"


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Shell:
    """Runs commands in a folder, on the workspace `my.hold` in it."""

    folder: Path

    def __call__(self, *args: str, engine: str = "inline") -> Outcome:
        """In this process."""
        given = ["-w", str(self.folder / "my.hold"), "--engine", engine, *args]
        result = CliRunner().invoke(cli.app, given, prog_name="holdfast")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    def process(self, *args: str, code: str = "from holdfast.app.cli import main; main()") -> Outcome:
        """As a process of its own."""
        run = subprocess.run(
            [sys.executable, "-c", code, "-w", "my.hold", "--engine", "inline", *args],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return Outcome(run.returncode, run.stdout, run.stderr)

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace at version 1; tests work on copies."""
    folder = tmp_path_factory.mktemp("tracked")
    shell = Shell(folder)
    source = shell.file("people.csv", ROWS)
    outcome = shell("track", "people", source, "--row-key", "phone")
    assert outcome.code == 0, outcome.err
    return folder


@pytest.fixture
def shell(tracked: Path, tmp_path: Path) -> Shell:
    folder = tmp_path / "work"
    shutil.copytree(tracked, folder)
    return Shell(folder)


# --- Reading ----------------------------------------------------------------------------------------------


def test_show(shell: Shell) -> None:
    outcome = shell("show")
    assert outcome.code == 0
    assert outcome.err == ""
    assert outcome.out.splitlines() == [
        "people: 3 rows, 2 minimal keys (version 1)",
        "    1  phone",
        "    2  name, age",
    ]


def test_show_as_json(shell: Shell) -> None:
    outcome = shell("show", "--json", "--non-uniques")
    assert outcome.err == ""
    assert outcome.json() == {
        "version": 1,
        "dependencies": [
            {"kind": "ucc", "table": "people", "columns": ["phone"], "error": 0},
            {"kind": "ucc", "table": "people", "columns": ["name", "age"], "error": 0},
        ],
        "tables": [{"table": "people", "n_rows": 3, "max_columns": None}],
        "pins": [],
        "non_uniques": [{"table": "people", "columns": ["name"]}, {"table": "people", "columns": ["age"]}],
    }


def test_show_at_a_version(shell: Shell) -> None:
    assert shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE)).code == 0
    now, then = shell("show", "--json").json(), shell("show", "--json", "--at", "1").json()
    assert (now["version"], then["version"]) == (2, 1)
    assert ["phone"] not in [d["columns"] for d in now["dependencies"]]
    assert ["phone"] in [d["columns"] for d in then["dependencies"]]
    assert then["tables"][0]["n_rows"] == 3


def test_reading_imports_neither_spark_nor_numba_nor_pandas(shell: Shell) -> None:
    code = (
        "import sys\n"
        "from holdfast.app.cli import main\n"
        "try:\n    main()\n"
        "finally:\n"
        "    print([m for m in ('pyspark', 'numba', 'pandas') if m in sys.modules], file=sys.stderr)\n"
    )
    shown, logged = shell.process("show", code=code), shell.process("log", "--json", code=code)
    assert (shown.code, shown.err) == (0, "[]\n")
    assert (logged.code, logged.err) == (0, "[]\n")
    assert shown.out.startswith("people: 3 rows")
    assert logged.json()["log"][0]["action"] == "track"


@pytest.mark.parametrize(
    "command",
    [["show"], ["log"], ["explain", "t", "a"], ["apply", "t", "--inserts", "f"], ["verify"], ["drop", "t"]],
)
def test_commands_that_need_a_workspace_do_not_make_one(tmp_path: Path, command: list[str]) -> None:
    outcome = Shell(tmp_path)(*command)
    assert outcome.code == 2
    assert outcome.err.startswith("WorkspaceError: there is no workspace")
    assert list(tmp_path.iterdir()) == []


def test_the_bound_on_keys_is_said(shell: Shell) -> None:
    wide = shell.file("wide.csv", "a,b,c\n1,1,1\n1,2,1\n2,1,1\n2,2,2\n")
    told = shell("track", "wide", wide, "--max-columns", "1")
    assert "0 minimal keys of at most 1 column " in told.out
    assert "--max-columns 1" in shell("show", "--table", "wide").out
    tables = {t["table"]: t for t in shell("show", "--json").json()["tables"]}
    assert tables["wide"]["max_columns"] == 1
    assert tables["people"]["max_columns"] is None
    outcome = shell("show", "--json", "--non-uniques")
    assert {n["table"] for n in outcome.json()["non_uniques"]} == {"people"}
    assert outcome.err.startswith("note: wide is tracked with --max-columns 1")
    assert shell("show", "--table", "wide", "--non-uniques").code == 2


def test_a_pin_wider_than_the_bound_is_judged_by_the_rows(shell: Shell) -> None:
    wide = shell.file("wide.csv", "a,b\n1,1\n1,2\n2,1\n")
    assert shell("track", "wide", wide, "--max-columns", "1").code == 0
    assert "holds" in shell("pin", "wide", "a", "b").out
    assert shell("check", "wide", "--inserts", shell.file("new.csv", "a,b\n2,2\n")).code == 0
    assert shell("check", "wide", "--inserts", shell.file("old.csv", "a,b\n2,1\n")).code == 1


def test_an_empty_table_and_equal_rows(shell: Shell) -> None:
    assert "at most one row" in shell("track", "none", shell.file("none.csv", "a,b\n")).out
    assert "no column combination is unique" in shell("track", "two", shell.file("two.csv", "a\n1\n1\n")).out
    shown = shell("show").out
    assert "no column needed" in shown
    assert "some rows are equal in all columns" in shown


# --- Changing ---------------------------------------------------------------------------------------------


def test_apply_says_what_broke_and_by_which_rows(shell: Shell) -> None:
    outcome = shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE))
    assert (outcome.code, outcome.err) == (0, "")
    headline, *rest = outcome.out.splitlines()
    assert headline.startswith("people: +1 -0 rows, now 4 rows, 2 minimal keys (version 2, ")
    assert rest == [
        "  broke: 1 key",
        "    [phone] is no longer unique:",
        "      row  phone  |  age  name",
        "      0.1  245    |  30   Payne",
        "      1.0  245    |  31   Payne",
        "  appeared: 1 key",
        "    [phone, age] is minimal now that [phone] broke",
    ]


def test_apply_as_json_keeps_standard_output_pure(shell: Shell) -> None:
    shell.file("b.csv", BREAKS_PHONE)
    outcome = shell.process("apply", "people", "--inserts", "b.csv", "--json", "--batch-id", "monday")
    assert outcome.code == 0
    document = outcome.json()
    assert document["batch_id"] == "monday"
    assert [c["change"] for c in document["changes"]] == ["broke", "appeared"]
    assert outcome.err.startswith("people: +1 -0 rows")
    again = shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE), "--batch-id", "monday")
    assert again.code == 0
    assert again.out == "people: batch 'monday' was applied before, as version 2; nothing was done\n"


def test_deletes_and_updates(shell: Shell) -> None:
    assert shell("apply", "people", "--updates", shell.file("u.csv", "phone,age\n234,21\n")).code == 0
    assert shell("apply", "people", "--deletes", shell.file("d.csv", "phone\n345\n")).code == 0
    told = shell("apply", "people", "--before", shell.file("o.csv", "name,phone,age\nLee,234,21\n"),
                 "--after", shell.file("n.csv", "name,phone,age\nLee,234,22\n"))  # fmt: skip
    assert told.code == 0
    assert told.out.startswith("people: +1 -1 rows, now 2 rows")
    assert "the same keys hold as before" in told.out
    actions = [(e["action"], e["n_inserted"], e["n_deleted"]) for e in shell("log", "--json").json()["log"]]
    assert actions == [("track", 3, 0), ("apply", 1, 1), ("apply", 0, 1), ("apply", 1, 1)]


def test_check_applies_nothing_and_gates_on_pins(shell: Shell) -> None:
    breaks, harmless = shell.file("b.csv", BREAKS_PHONE), shell.file("h.csv", HARMLESS)
    unpinned = shell("check", "people", "--inserts", breaks)
    assert unpinned.code == 0
    assert "would break: 1 key" in unpinned.out
    assert shell("pin", "people", "phone").out == "pinned people [phone]: holds (version 2)\n"
    assert shell("check", "people", "--inserts", harmless).code == 0
    broken = shell("check", "people", "--inserts", breaks)
    assert broken.code == 1
    assert "pinned [phone]: WOULD NOT HOLD" in broken.out
    document = shell.process("check", "people", "--inserts", breaks, "--json")
    assert document.code == 1
    assert document.json()["pins"] == [{"table": "people", "columns": ["phone"], "holds": False}]
    assert shell("show", "--json").json()["version"] == 2
    assert "is no longer pinned" in shell("pin", "people", "phone", "--remove").out
    assert shell("check", "people", "--inserts", breaks).code == 0


def test_explain(shell: Shell) -> None:
    assert (
        shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE), "--batch-id", "b1").code == 0
    )
    broken = shell("explain", "people", "phone").out
    assert broken.startswith(
        "people [phone] is not unique (version 2)\n  since version 2, by the apply of batch 'b1'"
    )
    assert "      1.0  245    |  31   Payne" in broken
    unique = shell("explain", "people", "name,phone,age").out
    assert "is unique" in unique
    assert "not minimal: it contains 2 keys" in unique
    document = shell("explain", "people", "age", "phone", "--json").json()
    assert document["columns"] == ["phone", "age"]
    assert document["unique"]
    assert document["minimal"]


def test_log_drop_merge_verify(shell: Shell) -> None:
    assert shell("apply", "people", "--inserts", shell.file("b.csv", BREAKS_PHONE)).code == 0
    assert shell("merge", "people", "--json").json() == {"table": "people", "version": 3, "merged": True}
    assert shell("merge", "people").out == "people: nothing to merge (version 3)\n"
    assert shell("verify").out.endswith("all as committed (version 3)\n")
    assert "is no longer tracked (version 4)" in shell("drop", "people").out
    log = shell("log").out
    assert "track people: 3 rows, 2 keys" in log
    assert "    broke: [phone]\n    appeared: [phone, age]\n" in log
    assert shell("show").out == "no table is tracked (version 4). Start with 'holdfast track'.\n"
    assert shell("show", "--at", "3").out.startswith("people: 4 rows")


def test_verify_names_a_damaged_file(shell: Shell) -> None:
    [cover] = (shell.folder / "my.hold").rglob("cover*.arrow")
    cover.write_bytes(cover.read_bytes()[:-8])
    outcome = shell("verify")
    assert outcome.code == 2
    assert outcome.err.startswith("DamagedFileError: ")
    assert cover.name in outcome.err


def test_reading_options(shell: Shell) -> None:
    odd = shell.file("odd.txt", "1.00;007;NA\n2.50;008;x\n2.50;009;NA\n")
    options = ["--format", "csv", "--no-header", "--delimiter", ";", "--null", "NA", "--null", "-"]
    outcome = shell(
        "track", "odd", odd, *options, "--types", "c0=decimal(12,2),c1=text", "--nulls", "distinct"
    )
    assert outcome.code == 0, outcome.err
    more = shell.file("more.txt", "3.00;010;-\n")  # read as the table was
    assert shell("apply", "odd", "--inserts", more).code == 0
    other = shell.file("more.csv", "c0,c1,c2\n4.00,011,y\n")  # unless it says otherwise
    applied = shell("apply", "odd", "--inserts", other, "--header", "--delimiter", ",")
    assert applied.code == 0, applied.err
    ws = holdfast.open(shell.folder / "my.hold", create=False)
    assert [str(t) for t in ws.schema("odd").types] == ["decimal(12,2)", "text", "text"]
    assert ws.n_rows("odd") == 5


def test_columns_with_commas_in_their_names(shell: Shell) -> None:
    odd = shell.file("odd.csv", '"last, first",b\nx,1\ny,1\n')
    assert shell("track", "odd", odd, "--row-key", '"last, first"').code == 0
    assert shell("explain", "odd", "last, first").out.startswith("odd ['last, first'] is unique")
    assert shell("explain", "odd", '"last, first",b').code == 0


# --- What goes wrong --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["track", "people", "{ok}"], "TableExistsError: table 'people' is tracked already"),
        (["track", "t", "missing.csv"], "SourceError: there is no file 'missing.csv'"),
        (["track", "t", "{empty}"], "SourceError: "),
        (["track", "t", "{ragged}"], "SourceError: line 3 of "),
        (["track", "t", "{ok}", "--row-key", "fone"], "UnknownColumnError: "),
        (["track", "t", "{ok}", "--kinds", "magic"], "UsageError: "),
        (["track", "t", "{ok}", "--types", "name"], "UsageError: --types has 'name'"),
        (["track", "t", "{ok}", "--delimiter", "ab"], "UsageError: the delimiter"),
        (["apply", "people"], "UsageError: the batch is empty"),
        (["apply", "peple", "--inserts", "{ok}"], "UnknownTableError: "),
        (["apply", "people", "--inserts", "{renamed}"], "UnknownColumnError: "),
        (["apply", "people", "--inserts", "{retyped}"], "ColumnTypeError: "),
        (["apply", "people", "--deletes", "{absent}"], "AbsentRowError: "),
        (["explain", "people", "fone"], "UnknownColumnError: "),
        (["explain", "people", ","], "UsageError: no column"),
        (["pin", "people", "phone", "--remove"], "UsageError: [phone] of table 'people' is not pinned"),
        (["show", "--at", "99"], "WorkspaceError: "),
        (["show", "--kind", "magic"], "UsageError: "),
        (["show", "--table", "peple"], "UnknownTableError: "),
        (["log", "--table", "peple"], "UnknownTableError: "),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(shell: Shell, command: list[str], error: str) -> None:
    files = {
        "ok": ROWS,
        "empty": "",
        "ragged": "a,b\n1,2\n3\n",
        "renamed": "name,fone,age\nKim,1,2\n",
        "retyped": "name,phone,age\nKim,abc,2\n",
        "absent": "name,phone,age\nKim,1,2\n",
    }
    paths = {name: shell.file(f"{name}.csv", text) for name, text in files.items()}
    outcome = shell(*(part.format(**paths) for part in command))
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith(error)
    assert outcome.err.count("\n") == 1
    assert shell("show", "--json").json()["version"] == 1


@pytest.mark.parametrize(
    "command",
    [["nonsense"], ["show", "--nonsense"], ["explain", "people"], ["track", "t", "f", "--nulls", "odd"]],
)
def test_usage_errors_have_exit_code_2(shell: Shell, command: list[str]) -> None:
    outcome = shell(*command)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Error: " in outcome.err


def test_a_process_without_workspace(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if k != "HOLDFAST_WORKSPACE"}
    run = subprocess.run(
        [sys.executable, "-m", "holdfast", "show"],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        cwd=tmp_path,
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("UsageError: no workspace is named")


def test_the_workspace_may_come_from_the_environment(shell: Shell) -> None:
    env = {"HOLDFAST_WORKSPACE": str(shell.folder / "my.hold")}
    result = CliRunner().invoke(cli.app, ["show"], env=env)
    assert result.exit_code == 0
    assert result.stdout.startswith("people: 3 rows")


def test_interrupts_and_internal_errors(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def failing(*_: object, **__: object) -> None:
        raise ValueError("two\nlines \x1b[31m")

    monkeypatch.setattr(holdfast.Workspace, "log", interrupted)
    assert shell("log").code == 130
    monkeypatch.setattr(holdfast.Workspace, "log", failing)
    outcome = shell("log")
    assert outcome.code == 70
    assert outcome.err.startswith("internal error: ValueError: ")
    assert "--debug" in outcome.err
    assert outcome.err.count("\n") == 1
    assert "\x1b" not in outcome.err
    result = CliRunner().invoke(cli.app, ["-w", str(shell.folder / "my.hold"), "--debug", "log"])
    assert result.exit_code == 70
    assert "Traceback" in result.stderr


def test_a_reader_that_goes_away(shell: Shell) -> None:
    code = (
        "import os, sys\n"
        "from holdfast.app.cli import main\n"
        "end, start = os.pipe()\n"
        "os.dup2(start, 1)\n"
        "os.close(end)\n"
        "main()\n"
    )
    outcome = shell.process("show", code=code)
    assert (outcome.code, outcome.err) == (141, "")


def test_version_and_help(shell: Shell) -> None:
    assert CliRunner().invoke(cli.app, ["--version"]).stdout == f"holdfast {holdfast.__version__}\n"
    for command in ("track", "apply", "check", "show", "log", "explain", "pin", "drop", "merge", "verify"):
        told = shell(command, "--help")
        assert told.code == 0
        assert "--json" in told.out
