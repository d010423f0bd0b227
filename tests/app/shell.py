"""A shell for tests of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from holdfast.app import cli

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "json-schema.json").read_text(encoding="utf-8"))
# Runs a command, and says on standard error which of the heavy modules it has imported.
WHAT_IS_IMPORTED = (
    "import sys\n"
    "from holdfast.app.cli import main\n"
    "try:\n    main()\n"
    "finally:\n"
    "    print([m for m in ('pyspark', 'numba', 'pandas') if m in sys.modules], file=sys.stderr)\n"
)


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    command: str = ""

    def json(self) -> Any:
        """The document without its format, which is as it is described."""
        document = json.loads(self.out)
        validator(self.command).validate(document)
        del document["format"]
        return document


@cache
def validator(command: str) -> Draft202012Validator:
    """Of the documents of a command."""
    return Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/commands/{command}"})


def command_of(args: Sequence[str]) -> str:
    return next((arg for arg in args if arg in cli.COMMANDS), "")


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
        return Outcome(result.exit_code, result.stdout, result.stderr, command_of(args))

    def process(self, *args: str, code: str = "from holdfast.app.cli import main; main()") -> Outcome:
        """As a process of its own."""
        run = subprocess.run(
            [sys.executable, "-c", code, "-w", "my.hold", "--engine", "inline", *args],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        return Outcome(run.returncode, run.stdout, run.stderr, command_of(args))

    def file(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)
