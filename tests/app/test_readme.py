"""All console examples of the README, one after the other, as commands."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.app.cli import app
from holdfast.app.demo import EXAMPLES

README = Path(__file__).parents[2] / "README.md"


def test_console_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)[1:]
        for command, expected in zip(parts[::2], parts[1::2], strict=True):
            program, *arguments = shlex.split(command)
            assert program == "holdfast"
            result = CliRunner().invoke(app, arguments, catch_exceptions=False)
            assert result.exit_code == 0, result.output
            pattern = ".*?".join(map(re.escape, re.sub(" +", " ", expected).split("...")))
            shown = re.sub(" +", " ", result.stdout)
            assert re.fullmatch(pattern, shown), f"expected:\n{expected}\ngot:\n{result.stdout}"
