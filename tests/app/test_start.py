"""What a command that only reads imports, as a process of its own: what it does not use costs nobody time."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app.shell import Shell
from holdfast.app.report.paper import Paper

# Runs a command, and says on standard error what it has imported.
EVERY_MODULE = (
    "import sys\n"
    "from holdfast.app.cli import main\n"
    "try:\n    main()\n"
    "finally:\n    print(*sys.modules, file=sys.stderr)\n"
)
PACKAGES = {
    "pyspark",
    "numba",
    "pandas",
    "obstore",
    "duckdb",
    "IPython",
    "pyarrow.compute",
    "pyarrow.dataset",
}
# Of Rich only what measures the width of a text is needed off a terminal.
RICH = {"rich.console", "rich.table", "rich.text", "rich.progress"}
# What tells of classes that no table is tracked for.
READERS = {
    "holdfast.functional.fd_reading",
    "holdfast.inclusions.ind_reading",
    "holdfast.inclusions.links.references",
    "holdfast.denial.dc_reading",
    "holdfast.denial.row_reading",
    "holdfast.denial.check_reading",
    "holdfast.profile.profile_reading",
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    assert shell("track", "people", shell.file("people.csv", "name,phone\nLee,1\nLee,2\n")).code == 0
    return shell


def imported(shell: Shell, *command: str) -> set[str]:
    outcome = shell.process(*command, code=EVERY_MODULE)
    assert outcome.code == 0, outcome.err
    return set(outcome.err.split())


@pytest.mark.parametrize("command", [("show",), ("show", "--json"), ("show", "--table", "people")])
def test_show_imports_what_it_uses(shell: Shell, command: tuple[str, ...]) -> None:
    modules = imported(shell, *command)
    assert "holdfast.functional.key_reading" in modules
    assert modules & (PACKAGES | RICH | READERS) == set()


def test_show_imports_the_reader_of_what_is_tracked(shell: Shell) -> None:
    orders = shell.file("orders.csv", "id,net,gross,note\n1,2,3,a\n2,3,4,b\n3,4,4,b\n")
    assert shell("track", "orders", orders, "--kinds", "fd,row").code == 0
    assert shell("pin", "people", "phone > 0").code == 0
    modules = imported(shell, "show")
    readers = {
        "holdfast.functional.fd_reading",
        "holdfast.denial.row_reading",
        "holdfast.denial.check_reading",
    }
    assert modules & (PACKAGES | RICH) == set()
    assert readers <= modules
    assert "holdfast.profile.profile_reading" not in modules


def test_other_commands_that_read(shell: Shell) -> None:
    for command in (["log"], ["pins"], ["--help"]):
        assert imported(shell, *command) & (PACKAGES | RICH) == set(), command


@pytest.mark.parametrize(
    ("environment", "terminal"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"TTY_COMPATIBLE": "1"}, True),
        ({"TTY_COMPATIBLE": "0"}, False),
    ],
)
def test_what_is_no_terminal_is_one_if_the_environment_says_so(
    environment: dict[str, str], terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    paper = Paper(io.StringIO())
    assert paper.is_terminal is terminal is paper.console.is_terminal


def test_a_closed_file_is_no_terminal() -> None:
    file = io.StringIO()
    file.close()
    assert Paper(file).is_terminal is False
