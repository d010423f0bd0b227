"""What the page is told of a table of the lake in the view of tables, and the command that would track it."""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest

import holdfast
from app.shell import Shell
from holdfast.app.explorer import Explorer
from holdfast.errors import UnknownTableError

FILES = {
    "planets.csv": "planet,moons\nVenus,0\nEarth,1\nMars,2\n",
    "far out/my moons.csv": "moon,of\nMoon,Earth\nPhobos,Mars\n",
    "rings/planets.csv": "ringed\nSaturn\nUranus\n",
}


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    for name, content in FILES.items():
        (tmp_path / "sky" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sky" / name).write_text(content, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "sky" / "old.zip", "w") as archive:
        archive.writestr("comets.csv", "comet\nHalley\n")
    shell = Shell(tmp_path)
    assert shell("link", str(tmp_path / "sky")).code == 0
    return shell


def linked(shell: Shell, name: str) -> dict[str, Any]:
    with holdfast.open(shell.folder / "my.hold", engine="inline") as ws:
        explorer, lake = Explorer(ws), ws.lake()
        assert lake is not None
        number = {"id": str(lake.resolve(name))}
        answer: dict[str, Any] = explorer.answer("linked", number)
        table = explorer.answer("table", number)
        assert {field: answer[field] for field in table} == table
        return answer


def tracked(shell: Shell) -> dict[str, int]:
    with holdfast.open(shell.folder / "my.hold", engine="inline") as ws:
        return {name: ws.n_rows(name) for name in ws.tables()}


def test_the_command_tracks_the_table(shell: Shell) -> None:
    """Each under a name that is not taken, whatever its file is called."""
    expected: dict[str, int] = {}
    for name, short, n_rows in (
        ("planets.csv", "planets", 3),
        ("far out/my moons.csv", "my moons", 2),
        ("rings/planets.csv", "rings/planets.csv", 2),
    ):
        before = linked(shell, name)
        assert before["is_tracked"] is False
        program, *arguments = shlex.split(before["command"])
        assert program == "holdfast"
        assert shell(*arguments).code == 0
        expected[short] = n_rows
        assert tracked(shell) == expected
        assert linked(shell, name)["is_tracked"] is (short == name)


def test_what_is_no_file_of_its_own_needs_one(shell: Shell) -> None:
    assert linked(shell, "old.zip!comets.csv")["command"] == (
        "holdfast track comets FILE --kinds ucc,fd,dc,profile"
    )


def test_a_number_of_no_table_is_refused(shell: Shell) -> None:
    with (
        holdfast.open(shell.folder / "my.hold", engine="inline") as ws,
        pytest.raises(UnknownTableError, match="no table number 99"),
    ):
        Explorer(ws).answer("linked", {"id": "99"})
