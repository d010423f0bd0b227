"""Tables that say once what a functional dependency says: `normalise`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from holdfast.app.calls import opened, tell
from holdfast.app.commands.linking import export_table
from holdfast.app.options import Dialect, Json, SqlDialect, check_share
from holdfast.app.report.normal_form import print_normal_form
from holdfast.app.which_table import TableName
from holdfast.app.writing import written_to
from holdfast.errors import UsageError


class FormName(StrEnum):
    bcnf = "bcnf"
    third = "3nf"


def normalise(
    ctx: typer.Context,
    table: TableName,
    form: Annotated[FormName, typer.Option(help="The normal form.")] = FormName.bcnf,
    min_score: Annotated[
        float | None,
        typer.Option(metavar="S", help="Use functional dependencies of at least this score (0.1)."),
    ] = None,
    max_lhs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Use those of at most N columns on the left (3).")
    ] = None,
    use_all: Annotated[
        bool, typer.Option("--all", help="Use all of them, whatever their score and size.")
    ] = False,
    ddl: Annotated[
        bool, typer.Option("--ddl", help="Print SQL that makes the tables and fills them.")
    ] = False,
    dialect: SqlDialect = None,
    as_json: Json = False,
) -> None:
    """Propose tables in BCNF or 3NF, with the reasoning.

    From the functional dependencies and keys that hold now. Those that look like accidents of the rows at
    hand are set aside, which is said. The table itself stays as it is.
    """
    if dialect is not None and not ddl:
        raise UsageError("--dialect is for SQL: add --ddl, or leave it out.")
    check_share("--min-score", min_score or 0.0, "a score from 0 to 1, such as 0.1")
    with opened(ctx) as ws:
        version = ws.version
        proposed = ws.fds.normalise(table, form.value, min_score=min_score, max_lhs=max_lhs, use_all=use_all)
        source = export_table(ws, table, version) if ddl else None
    sql = None
    if source is not None:
        from holdfast.app.export.normal_form import normal_form_sql

        sql = normal_form_sql(proposed, source, (dialect or Dialect.ansi).value, version=version)
    if sql is not None and not as_json:
        with written_to() as file:
            file.write(sql)
        return
    script = {} if sql is None else {"sql": sql}
    tell(
        as_json,
        lambda: {"version": version, **proposed.to_dict(), **script},
        print_normal_form,
        proposed,
        version=version,
        everything=use_all,
    )
