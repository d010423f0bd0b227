"""A shell for tests of the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
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
        """The document without its format, which is as it is described, every field of it."""
        document = json.loads(self.out)
        validator(self.command).validate(document)
        undescribed = sorted(set(fields_undescribed(document, [SCHEMA["$defs"]["commands"][self.command]])))
        assert not undescribed, f"docs/json-schema.json does not say what these are: {undescribed}"
        del document["format"]
        return document


@cache
def validator(command: str) -> Draft202012Validator:
    """Of the documents of a command."""
    return Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/commands/{command}"})


def fields_undescribed(value: Any, schemas: Sequence[Any], at: str = "") -> Iterator[str]:
    """The paths of fields that no schema of those that are about a value names. An object may have any field
    if a schema of it names none."""
    about = [s for schema in schemas for s in _all_about(schema)]
    if isinstance(value, list):
        items = [s["items"] for s in about if "items" in s]
        for each in value:
            yield from fields_undescribed(each, items, at)
    elif isinstance(value, dict):
        named = [s["properties"] for s in about if "properties" in s]
        others = [s["additionalProperties"] for s in about if s.get("additionalProperties")]
        for name, field in value.items() if named or others or not about else ():
            inside = [properties[name] for properties in named if name in properties] or others
            if inside:
                yield from fields_undescribed(field, inside, f"{at}/{name}")
            else:
                yield f"{at}/{name}"


def _all_about(schema: Any) -> Iterator[dict[str, Any]]:
    """The parts of a schema that are about the very same value."""
    if "$ref" in schema:
        [*_, name] = schema["$ref"].split("/")
        yield from _all_about(SCHEMA["$defs"][name])
    yield schema
    for part in (*schema.get("allOf", ()), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _all_about(part)
    if "then" in schema:
        yield from _all_about(schema["then"])


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
