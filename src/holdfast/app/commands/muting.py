"""Commands about what reports are to leave out: to mute it, and to list it."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.app.calls import Referenced, opened, tell
from holdfast.app.commands.reading import Asked, question_of, with_table
from holdfast.app.options import Json
from holdfast.app.report.muted import print_all_muted, print_muted
from holdfast.app.which_table import TableName, ThisTable
from holdfast.errors import UsageError


def mute(
    ctx: typer.Context,
    table: TableName,
    columns: Asked = None,
    *,
    referenced: Referenced,
    reason: Annotated[str | None, typer.Option(metavar="TEXT", help="Why nobody need be told of it.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Tell of it again.")] = False,
    as_json: Json = False,
) -> None:
    """Have reports only count an accident of the rows.

    Or what is of no interest. Whatever 'holdfast explain' understands, listed now or not. It is kept as
    exactly as before, and --json lists it, with "muted": true. What is pinned cannot be muted; pinning
    unmutes.
    """
    if remove and reason is not None:
        raise UsageError("--remove takes no --reason: leave it out.")
    from holdfast.muting import dependency_asked

    with opened(ctx) as ws:
        table, columns = with_table(ws, table, columns or [])
        dependency = dependency_asked(ws.readers, *question_of(ws, table, columns, referenced))
        muted = ws.unmute(table, dependency) if remove else ws.mute(table, dependency, reason=reason)
        version = ws.version
    document = {**muted.to_dict(), "muted": not remove, "version": version}
    tell(as_json, lambda: document, print_muted, muted, version=version, removed=remove)


def muted(
    ctx: typer.Context,
    table: ThisTable = None,
    as_json: Json = False,
) -> None:
    """List what is muted, and why."""
    with opened(ctx) as ws:
        version = ws.version
        listed = ws.muted(table, version or None)
    document = {"version": version, "muted": [each.to_dict() for each in listed]}
    tell(as_json, lambda: document, print_all_muted, listed, version=version)
