"""What a shell completes: tables, columns and kinds. It asks while somebody types, so no error is told."""

from __future__ import annotations

from collections.abc import Callable

import typer

import holdfast
from holdfast.errors import HoldfastError
from holdfast.kind import kinds


def complete_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """The tables of the workspace that is named so far."""
    return [name for name in _tables(ctx) if name.startswith(incomplete)]


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """The columns of the table that is named so far; the last one of several with commas."""
    table = ctx.params.get("table")
    if table is None:  # behind an option that waits for its value, arguments are not read yet
        table = next((name for name in ctx.args if name in _tables(ctx)), None)
    return _last_of(incomplete, _columns(ctx, table))


def complete_other_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """The columns of the table that --in-table names."""
    return _last_of(incomplete, _columns(ctx, ctx.params.get("in_table")))


def complete_side(ctx: typer.Context, incomplete: str) -> list[str]:
    """TABLE.COLUMN: the tables first, then the columns of the one whose dot is there."""
    sides: list[str] = []
    for table in _tables(ctx):
        front = f"{table}."
        if incomplete.startswith(front):
            columns = _last_of(incomplete[len(front) :], _columns(ctx, table))
            sides += [front + column for column in columns]
        elif front.startswith(incomplete):
            sides.append(front)
    return sides


def complete_kind(incomplete: str) -> list[str]:
    """A kind of dependencies."""
    return [kind for kind in kinds() if kind.startswith(incomplete)]


def complete_kinds(incomplete: str) -> list[str]:
    """Kinds, with commas between."""
    return _last_of(incomplete, list(kinds()))


def _last_of(incomplete: str, names: list[str]) -> list[str]:
    """A list with commas, its last part completed by what is not in it yet.

    >>> _last_of("a,b", ["a", "b", "bc", "c"]), _last_of("x", ["x,y"])
    (['a,b', 'a,bc'], ['x,y'])
    """
    front, comma, last = incomplete.rpartition(",")
    given = front.split(",")
    return [front + comma + name for name in names if name.startswith(last) and name not in given]


def _tables(ctx: typer.Context) -> list[str]:
    return _asked(ctx, lambda ws: ws.tables())


def _columns(ctx: typer.Context, table: str | None) -> list[str]:
    return [] if table is None else _asked(ctx, lambda ws: list(ws.schema(table).names))


def _asked(ctx: typer.Context, question: Callable[[holdfast.Workspace], list[str]]) -> list[str]:
    """What the workspace says that is named so far, or the default one; nothing if it cannot be read."""
    from holdfast.app.calls import found_workspace

    place = (ctx.parent.params.get("workspace") if ctx.parent else None) or found_workspace()
    if place is None:
        return []
    try:
        with holdfast.open(place, create=False, engine="inline") as ws:
            return question(ws)
    except HoldfastError:
        return []
