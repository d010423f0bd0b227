"""Commands about single rows: which violate something, and which values look wrong."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.app.calls import Referenced, opened, print_json, tell
from holdfast.app.commands.reading import Asked, question_of, with_table
from holdfast.app.options import Dialect, Json, Output, SqlDialect, check_share
from holdfast.app.report.cleaning import print_repairs, print_violations
from holdfast.app.which_table import TableName
from holdfast.app.writing import TABLE_FILES, print_written, write_table, written_to
from holdfast.core.words.notation import parse_fd
from holdfast.errors import UsageError, plural, shorten_path

if TYPE_CHECKING:
    import holdfast
    from holdfast.functional.repairs import Repairs

ROWS_SHOWN = 20


class RepairFormat(StrEnum):
    sql = "sql"
    csv = "csv"
    parquet = "parquet"


def violations(
    ctx: typer.Context,
    table: TableName,
    columns: Asked = None,
    *,
    referenced: Referenced,
    everything: Annotated[
        bool, typer.Option("--all", help=f"All rows, not only the first {ROWS_SHOWN}.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="The first N rows.")] = None,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Of a rule about two rows the pairs, not each row once.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the rows to a file: .parquet or .csv (- for CSV)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the rows that violate something.

    With the fewest of them to remove so that it holds. What may be asked is what 'holdfast explain' answers.
    Of a functional dependency each row has the value that most rows with the same left side have, and the
    suggested one if its own differs. Nothing is changed.
    """
    if everything and limit is not None:
        raise UsageError("--all and --limit are two answers to one question: give one of them.")
    with opened(ctx) as ws:
        table, columns = with_table(ws, table, columns or [])
        reader, asked = question_of(ws, table, columns, referenced)
        most = None if everything else limit or ROWS_SHOWN
        answer = ws.readers.violating(reader, asked, most, as_pairs=pairs)
        if output is not None:
            write_table(output, answer.schema, answer.batches())
            if as_json:
                print_json(answer.totals())
            else:
                of = "" if answer.complete else f" of {answer.n_violating:,}; --all writes all of them"
                print_written(output, f"{plural(len(answer.row_ids), 'row')}{of}", answer.version)
            return
        records = answer.records()
    tell(
        as_json,
        lambda: {**answer.totals(), "rows": records},
        print_violations,
        answer,
        records,
        everything=everything,
    )


def repairs(
    ctx: typer.Context,
    table: TableName,
    dependencies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FD",
            help="The functional dependencies that vote, in quotes, such as 'zip -> city'; if there is none, "
            "those with one column on the left that almost hold.",
        ),
    ] = None,
    format: Annotated[
        RepairFormat | None,
        typer.Option(help="SQL that would repair the table, or the list; by the end of the file's name."),
    ] = None,
    dialect: SqlDialect = None,
    min_confidence: Annotated[
        float, typer.Option(metavar="SHARE", help="Only repairs of at least this confidence (0 to 1).")
    ] = 0.0,
    everything: Annotated[bool, typer.Option("--all", help="Do not shorten the list.")] = False,
    output: Output = None,
    as_json: Json = False,
) -> None:
    """Propose values for cells that look wrong.

    Each dependency votes for the value that two thirds of the rows with the same left side have. A cell is
    listed if more of them want one other value than its own. It is a proposal to look at: nothing is ever
    applied.
    """
    check_share("--min-confidence", min_confidence, "a share from 0 to 1, such as 0.8")
    chosen = _format(format, output)
    if as_json and chosen is not None:
        raise UsageError("--json prints the list on standard output: leave out --format and --output.")
    if dialect is not None and chosen is not RepairFormat.sql:
        raise UsageError("--dialect is for SQL: add --format sql, or leave it out.")
    if chosen is RepairFormat.parquet and output is None:
        raise UsageError("Parquet goes to a file: add -o repairs.parquet.")
    with opened(ctx) as ws:
        names, version = ws.schema(table).names, ws.version
        fds = [parse_fd(text, names, table=table, version=version) for text in dependencies or []]
        answer = ws.fds.repairs(table, fds).above(min_confidence)
        if chosen is RepairFormat.sql:
            _write_sql(ws, answer, dialect or Dialect.ansi, output)
        elif chosen is not None:
            write_table(output or Path("-"), answer.schema, answer.batches())
        else:
            document = answer.to_dict() if as_json else {}
            shown = answer.values(slice(None if everything else ROWS_SHOWN))
    if chosen is None:
        tell(as_json, lambda: document, print_repairs, answer, shown)
    else:
        print_written(output, plural(len(answer), "repair"), answer.version)


def _format(format: RepairFormat | None, output: Path | None) -> RepairFormat | None:
    """What to write: as is said, or as the name of the file says."""
    suffix = "" if output is None or str(output) == "-" else output.suffix.lower()
    known = {".sql", *TABLE_FILES}
    if format is None and suffix in known:
        return RepairFormat(suffix[1:])
    if format is None and output is not None:
        raise UsageError(
            f"{shorten_path(str(output))} does not say what to write: add --format sql or csv, or name a "
            f"file that ends in {', '.join(sorted(known))}."
        )
    if suffix in known and format is not None and suffix != f".{format.value}":
        raise UsageError(f"--format {format.value} does not go with {shorten_path(str(output))}.")
    if (
        output is not None
        and format in (RepairFormat.csv, RepairFormat.parquet)
        and suffix not in known | {""}
    ):
        raise UsageError(f"{shorten_path(str(output))} is no name for it: end it with .{format.value}.")
    return format


def _write_sql(ws: holdfast.Workspace, answer: Repairs, dialect: Dialect, output: Path | None) -> None:
    from holdfast.app.export.repairs import identifying, repair_sql

    # A row key need not be unique.
    row_key = [ws.schema(answer.table).names[c] for c in answer.relation.locator]
    named = [row_key] if row_key and ws.keys.violations(answer.table, row_key, limit=1).holds else []
    keys = [*named, *(key.columns for key in ws.dependencies("ucc", answer.table))]
    with written_to(output) as file:
        for piece in repair_sql(answer, identifying(answer, keys), dialect.value):
            file.write(piece)
