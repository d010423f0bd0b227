"""What the values of columns are like: `profile`."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.app.calls import opened, tell
from holdfast.app.completing import complete_column
from holdfast.app.options import At, Json, columns_of
from holdfast.app.report.profiles import print_column, print_profile
from holdfast.app.which_table import TableName


def profile(
    ctx: typer.Context,
    table: TableName,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="COL,...",
            help="Only these columns, and all that is known of them.",
            autocompletion=complete_column,
        ),
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show what the values of each column are like.

    NULLs, distinct values, extremes, the most frequent values, lengths and patterns of texts, and rules that
    all rows keep. Of a table that is tracked with --kinds profile it is maintained; else it is counted now.
    """
    with opened(ctx) as ws:
        names = columns_of(table, ws.schema(table, at).names, column) if column else None
        whole = ws.profiles.of(table, at)
    shown = whole if names is None else whole.restricted(names)
    tell(as_json, shown.to_dict, print_profile if names is None else print_column, shown)
