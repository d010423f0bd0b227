"""Commands that read a workspace: what each version did, why something holds, whether the files are whole."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

import holdfast
from holdfast.app import options
from holdfast.app.calls import open_workspace, opened, print_json, referenced_side, reported
from holdfast.app.options import All, In, InColumn, InTable, Json, OneTable, TableName
from holdfast.app.report import (
    Paper,
    plural,
    print_explanation,
    print_fd_explanation,
    print_fd_log,
    print_ind_explanation,
    print_log,
)
from holdfast.errors import UsageError, shorten
from holdfast.fd_reading import FdExplanation
from holdfast.history import Explanation
from holdfast.inspection import IndExplanation
from holdfast.model.dependency import KINDS, Side
from holdfast.model.notation import ARROW, parse_fd


def log(
    ctx: typer.Context,
    table: OneTable = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Only changes of this kind (ucc, ind); fd: the versions at which each functional dependency "
            "held.",
        ),
    ] = None,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """List the versions: what was done, and what it changed.

    With --kind fd: when each functional dependency held, and what it outlived; what broke comes first.
    """
    with reported(ctx):
        if kind not in (None, *KINDS):
            raise UsageError(
                f"dependencies of kind {shorten(kind)} are not known. Kinds: {', '.join(KINDS)}."
            )
        ws = open_workspace(ctx)
        if kind == "fd":
            _log_fds(ws, table, everything, as_json)
            return
        entries = ws.log(table)
        if kind is not None:
            entries = [replace(e, changes=tuple(c for c in e.changes if c.kind == kind)) for e in entries]
        if as_json:
            print_json({"version": ws.version, "log": [e.to_dict() for e in entries]})
        else:
            print_log(Paper(sys.stdout), entries, everything=everything)


def _log_fds(ws: holdfast.Workspace, table: str | None, everything: bool, as_json: bool) -> None:
    version, found = ws.version, ws.fd_log(table)
    if as_json:
        print_json({"version": version, "dependencies": [h.to_dict() for h in found]})
        return
    paper = Paper(sys.stdout)
    names = list(dict.fromkeys(h.fd.table for h in found)) if table is None else [table]
    for i, name in enumerate(names):
        if i:
            paper.line()
        own = [h for h in found if h.fd.table == name]
        print_fd_log(paper, name, own, version=version, everything=everything)
    if not names:
        what = "no functional dependencies are kept" if ws.tables() else "no table is tracked"
        paper.line(f"{what} (version {version}). Track tables with --kinds ucc,fd.")


def explain(
    ctx: typer.Context,
    table: TableName,
    columns: Annotated[
        list[str],
        typer.Argument(
            metavar="COLUMN|FD",
            help="Columns, as separate arguments or with commas; or a functional dependency in quotes, such "
            "as 'zip -> city' ('[] -> city': the column is constant).",
        ),
    ],
    within: In = None,
    in_table: InTable = None,
    in_column: InColumn = None,
    as_json: Json = False,
) -> None:
    """Tell whether something holds, since when, and why.

    Whether columns are unique; with an arrow, as in 'zip, street -> city', whether rows that agree on the
    left agree on the right; with --in, whether all values of a column are in another one.
    """
    with reported(ctx):
        with opened(ctx) as ws:
            told: Explanation | FdExplanation | IndExplanation
            names = ws.schema(table).names
            fd = _fd_asked(names, columns)
            if fd is not None:
                if within or in_table or in_column:
                    raise UsageError("an arrow asks for a functional dependency: leave out --in.")
                told = ws.explain_fd(table, *parse_fd(fd, names, table=table, version=ws.version))
            else:
                named = tuple(options.columns_of(table, names, columns))
                referenced = referenced_side(ws, within, in_table, in_column)
                if referenced is None:
                    told = ws.explain(table, named)
                else:
                    told = ws.explain_ind(Side(table, named), referenced)
        if as_json:
            print_json(told.to_dict())
            return
        paper = Paper(sys.stdout)
        if isinstance(told, Explanation):
            print_explanation(paper, told)
        elif isinstance(told, FdExplanation):
            print_fd_explanation(paper, told)
        else:
            print_ind_explanation(paper, told)


def _fd_asked(names: Sequence[str], given: Sequence[str]) -> str | None:
    """The functional dependency that arguments ask for; None if they are columns."""
    if not any(ARROW in text and text not in names for text in given):
        if given[-1] == "-" and "-" not in names:
            raise UsageError(
                "there is no column '-'. If this was an arrow, the shell took its > for a redirection: put "
                "the dependency in quotes, such as 'zip -> city'."
            )
        return None
    if len(given) > 1:
        raise UsageError(
            "put the whole functional dependency in one argument, such as 'zip, street -> city'."
        )
    return given[0]


def verify(ctx: typer.Context, as_json: Json = False) -> None:
    """Check every live file of the workspace against its checksum."""
    with reported(ctx):
        with opened(ctx) as ws:
            n_files, version = ws.verify(), ws.version
        if as_json:
            print_json({"version": version, "n_files": n_files})
        else:
            Paper(sys.stdout).line(f"{plural(n_files, 'file')}, all as committed (version {version})")
