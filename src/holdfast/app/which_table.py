"""How a command is told which table it is about."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.app.completing import complete_table
from holdfast.errors import UsageError, shorten

TableName = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="The table's name in the workspace.", autocompletion=complete_table),
]
OneTable = Annotated[
    str | None,
    typer.Option("--table", metavar="TABLE", help="Only this table.", autocompletion=complete_table),
]
ThisTable = Annotated[
    str | None,
    typer.Argument(metavar="[TABLE]", help="Only this table.", autocompletion=complete_table),
]


def one_table(argument: str | None, option: str | None) -> str | None:
    """The table that is named, as an argument or by --table."""
    if argument is not None and option not in (None, argument):
        raise UsageError(f"TABLE is {shorten(argument)}, and --table {shorten(option)}: give one of them.")
    return argument if option is None else option
