"""Commands that read a workspace: what holds, what held, why, and whether its files are whole."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

import holdfast
from holdfast.app import options
from holdfast.app.calls import note, open_workspace, opened, print_json, referenced_side, reported
from holdfast.app.options import All, Columns, In, InColumn, InTable, Json, MaxError, OneTable, TableName
from holdfast.app.report import (
    Paper,
    name_text,
    plural,
    print_cover,
    print_explanation,
    print_ind_explanation,
    print_inds,
    print_log,
)
from holdfast.errors import UsageError
from holdfast.history import Explanation
from holdfast.inspection import IndExplanation
from holdfast.model.dependency import Ind, Side


def show(
    ctx: typer.Context,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="Only this kind: ucc (keys) or ind (inclusions)."),
    ] = None,
    table: OneTable = None,
    at: Annotated[int | None, typer.Option("--at", metavar="VERSION", help="As of this version.")] = None,
    max_error: MaxError = 0.0,
    with_empty: Annotated[
        bool, typer.Option("--with-empty", help="Inclusions of columns without values, too.")
    ] = False,
    non_uniques: Annotated[
        bool, typer.Option("--non-uniques", help="The maximal combinations that are not unique, too.")
    ] = False,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """Show what holds, or held: minimal keys and inclusions."""
    with reported(ctx):
        _check_kind(kind, max_error, with_empty, non_uniques)
        ws = open_workspace(ctx)
        version = ws.version if at is None else at
        if at is None and version:
            at = version  # all that follows is of one version, whoever writes meanwhile
        names = ws.tables(at) if table is None else [table]
        kinds = {name: ws.kinds(name, at) for name in names}
        keyed = [name for name in names if kind != "ind" and "ucc" in kinds[name]]
        keys = {name: ws.dependencies("ucc", name, at) for name in keyed}
        inds = _inds(ws, kind, table, at, max_error, with_empty)
        bounds = {name: ws.max_columns(name, at) for name in names}
        n_rows = {name: ws.n_rows(name, at) for name in names}
        wanted = {"ucc": (False,), "ind": (True,)}.get(kind or "", (False, True))
        pins = [p for p in ws.pins(table, at) if (p.referenced is not None) in wanted]
        asked = [table] if table is not None else keyed
        maximal = _non_uniques(ws, asked, bounds, at, only=table) if non_uniques else {}
        if as_json:
            found = [d for name in keyed for d in keys[name]] + list(inds)
            document: dict[str, Any] = {
                "version": version,
                "dependencies": [d.to_dict() for d in found],
                "tables": [
                    {
                        "table": name,
                        "n_rows": n_rows[name],
                        "max_columns": bounds[name],
                        "kinds": list(kinds[name]),
                    }
                    for name in names
                ],
                "pins": [p.to_dict() for p in pins],
            }
            if non_uniques:
                document["non_uniques"] = [
                    {"table": name, "columns": list(c)} for name, sets in maximal.items() for c in sets
                ]
            print_json(document)
            return
        paper = Paper(sys.stdout)
        covered = names if kind == "ucc" else keyed
        for i, name in enumerate(covered):
            if i:
                paper.line()
            print_cover(
                paper,
                name,
                keys.get(name),
                version=version,
                n_rows=n_rows[name],
                max_columns=bounds[name],
                pins=[p for p in pins if p.table == name and p.referenced is None],
                non_uniques=maximal.get(name),
                everything=everything,
            )
        if kind != "ucc" and any("ind" in kinds[name] for name in names):
            if covered:
                paper.line()
            print_inds(
                paper,
                inds,
                version=version,
                table=table,
                max_error=max_error,
                pins=[p for p in pins if p.referenced is not None],
                everything=everything,
            )
        elif kind == "ind" and names:
            paper.line(f"no inclusions are kept (version {version}). Track tables with --kinds ucc,ind.")
        if not names:
            paper.line(f"no table is tracked (version {version}). Start with 'holdfast track'.")


def _check_kind(kind: str | None, max_error: float, with_empty: bool, non_uniques: bool) -> None:
    """An option is for the kind that it is about."""
    about: dict[str | None, dict[str, float]] = {
        "ucc": {"--max-error": max_error, "--with-empty": with_empty},
        "ind": {"--non-uniques": non_uniques},
    }
    for name, given in about.get(kind, {}).items():
        if given:
            raise UsageError(f"{name} says nothing about dependencies of kind {kind}: leave out --kind.")


def _inds(
    ws: holdfast.Workspace, kind: str | None, table: str | None, at: int | None, max_error: float, empty: bool
) -> list[Ind]:
    if kind == "ucc":
        return []
    # An unknown kind is an error here, in an empty workspace as well.
    found = ws.dependencies(kind or "ind", table, at, max_error=max_error, with_empty=empty)
    return [d for d in found if isinstance(d, Ind)]


def _non_uniques(
    ws: holdfast.Workspace,
    names: list[str],
    bounds: dict[str, int | None],
    at: int | None,
    *,
    only: str | None,
) -> dict[str, list[tuple[str, ...]]]:
    """The maximal non-uniques; where a bound hides them, a note or (for the only table) an error."""
    found = {}
    for name in names:
        if bounds[name] and only is None:
            note(
                f"note: {name_text(name)} is tracked with --max-columns {bounds[name]}, "
                "which leaves its maximal non-uniques open."
            )
            continue
        found[name] = ws.non_uniques(name, at)
    return found


def log(ctx: typer.Context, table: OneTable = None, everything: All = False, as_json: Json = False) -> None:
    """List the versions: what was done, and what it changed."""
    with reported(ctx):
        ws = open_workspace(ctx)
        entries = ws.log(table)
        if as_json:
            print_json({"version": ws.version, "log": [e.to_dict() for e in entries]})
        else:
            print_log(Paper(sys.stdout), entries, everything=everything)


def explain(
    ctx: typer.Context,
    table: TableName,
    columns: Columns,
    within: In = None,
    in_table: InTable = None,
    in_column: InColumn = None,
    as_json: Json = False,
) -> None:
    """Tell whether columns are unique, since when, and why.

    With --in: whether all values of a column are in another one.
    """
    with reported(ctx):
        with opened(ctx) as ws:
            named = tuple(options.columns_of(table, ws.schema(table).names, columns))
            referenced = referenced_side(ws, within, in_table, in_column)
            told: Explanation | IndExplanation
            if referenced is None:
                told = ws.explain(table, named)
            else:
                told = ws.explain_ind(Side(table, named), referenced)
        if as_json:
            print_json(told.to_dict())
        elif isinstance(told, Explanation):
            print_explanation(Paper(sys.stdout), told)
        else:
            print_ind_explanation(Paper(sys.stdout), told)


def verify(ctx: typer.Context, as_json: Json = False) -> None:
    """Check every live file of the workspace against its checksum."""
    with reported(ctx):
        with opened(ctx) as ws:
            n_files, version = ws.verify(), ws.version
        if as_json:
            print_json({"version": version, "n_files": n_files})
        else:
            Paper(sys.stdout).line(f"{plural(n_files, 'file')}, all as committed (version {version})")
