"""The command line: `holdfast -w my.hold COMMAND`.

- `--json` prints one document on standard output; whatever else there is to say goes to standard error.
- Exit codes: 0 fine; 1 a pinned combination would not hold (`check`); 2 bad input or usage; 70 an error
  in holdfast itself; 130 interrupted.
- Commands that read import neither Spark nor Numba (a test watches), so they answer in well under 2 s.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import holdfast
from holdfast.app.report import (
    Paper,
    columns_text,
    name_text,
    plural,
    print_change,
    print_cover,
    print_explanation,
    print_headline,
    print_log,
    progress_on,
    safe,
)
from holdfast.errors import HoldfastError, UsageError, shorten
from holdfast.model.change import Change

BROKEN, BAD_INPUT, INTERNAL, INTERRUPTED, NO_READER = 1, 2, 70, 130, 141

app = typer.Typer(
    name="holdfast",
    help="What holds in your data, kept true while the data changes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class EngineName(StrEnum):
    auto = "auto"
    inline = "inline"
    spark = "spark"


class NullRule(StrEnum):
    equal = "equal"
    distinct = "distinct"


@dataclass(frozen=True, slots=True)
class Globals:
    """What stands before the command."""

    workspace: Path | None
    engine: EngineName
    debug: bool


# --- Options that several commands share ------------------------------------------------------------------

TableName = Annotated[str, typer.Argument(metavar="TABLE", help="The table's name in the workspace.")]
Columns = Annotated[
    list[str], typer.Argument(metavar="COLUMN", help="Columns, as separate arguments or with commas.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
All = Annotated[bool, typer.Option("--all", help="Do not shorten long lists.")]

Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="NAME", help="csv, parquet, jsonl or arrow; by the file's ending if not given."
    ),
]
Delimiter = Annotated[
    str | None, typer.Option("--delimiter", metavar="CHAR", help=r"Between CSV fields; \t or tab is a tab.")
]
Quote = Annotated[
    str | None, typer.Option("--quote", metavar="CHAR", help='Around CSV fields; "" turns quoting off.')
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", help="Of CSV files, such as latin-1.")
]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether CSV files start with the names of the columns."),
]
Null = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="An unquoted CSV field that is NULL, instead of the empty one. Repeatable.",
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--types", metavar="COL=TYPE,...", help="Types of CSV columns, such as zip=text,price=decimal(12,2)."
    ),
]

Inserts = Annotated[
    str | None, typer.Option("--inserts", metavar="F", help="Rows to insert: a file, folder or glob.")
]
Deletes = Annotated[
    str | None, typer.Option("--deletes", metavar="F", help="Rows to delete: in full, or only their row key.")
]
Updates = Annotated[str | None, typer.Option("--updates", metavar="F", help="Row keys with new values.")]
Before = Annotated[str | None, typer.Option("--before", metavar="F", help="Rows to update, as they are ...")]
After = Annotated[
    str | None, typer.Option("--after", metavar="F", help="... and as they will be, in the same order.")
]


# --- Commands ---------------------------------------------------------------------------------------------


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"holdfast {holdfast.__version__}")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    workspace: Annotated[
        Path | None,
        typer.Option(
            "-w", "--workspace", metavar="PATH", envvar="HOLDFAST_WORKSPACE", help="The workspace's folder."
        ),
    ] = None,
    engine: Annotated[
        EngineName,
        typer.Option(
            "--engine", help="Where work runs: auto runs small work in this process and the rest on Spark."
        ),
    ] = EngineName.auto,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    ctx.obj = Globals(workspace, engine, debug)


@app.command()
def track(
    ctx: typer.Context,
    table: TableName,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A CSV, Parquet or JSON file, a folder or a glob.")
    ],
    kinds: Annotated[str, typer.Option("--kinds", help="Kinds of dependencies to keep: ucc (keys).")] = "ucc",
    nulls: Annotated[
        NullRule, typer.Option("--nulls", help="Whether two NULLs are equal, or distinct as in SQL's UNIQUE.")
    ] = NullRule.equal,
    row_key: Annotated[
        list[str] | None,
        typer.Option("--row-key", metavar="COL,...", help="Columns by which deletes and updates name rows."),
    ] = None,
    max_columns: Annotated[
        int | None,
        typer.Option("--max-columns", min=1, metavar="N", help="Look for keys of at most N columns."),
    ] = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Start to track a table: find its keys."""
    with _reported(ctx):
        reading = _reading(format, delimiter, quote, encoding, header, null, types)
        with _opened(ctx, create=True) as ws:
            change = ws.track(
                table,
                source,
                kinds=_split(kinds),
                nulls=nulls.value,
                row_key=[c for text in row_key or () for c in _split(text)],
                max_columns=max_columns,
                options=reading,
            )
        _print_change(change, as_json)


@app.command()
def apply(
    ctx: typer.Context,
    table: TableName,
    inserts: Inserts = None,
    deletes: Deletes = None,
    updates: Updates = None,
    before: Before = None,
    after: After = None,
    batch_id: Annotated[
        str | None, typer.Option("--batch-id", metavar="ID", help="Apply the batch of this name only once.")
    ] = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Apply a batch; say which keys broke or appeared, and why.

    Deletes come first, then inserts; all of it is one version, or nothing is applied.
    """
    with _reported(ctx):
        reading = _reading(format, delimiter, quote, encoding, header, null, types)
        with _opened(ctx) as ws:
            change = ws.apply(
                table,
                inserts=inserts,
                deletes=deletes,
                updates=updates,
                before=before,
                after=after,
                batch_id=batch_id,
                options=reading,
            )
        _print_change(change, as_json)


@app.command()
def check(
    ctx: typer.Context,
    table: TableName,
    inserts: Inserts = None,
    deletes: Deletes = None,
    updates: Updates = None,
    before: Before = None,
    after: After = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Say what a batch would change, and apply nothing.

    Exit code 1 if a pinned combination would not be unique after it.
    """
    with _reported(ctx):
        reading = _reading(format, delimiter, quote, encoding, header, null, types)
        with _opened(ctx) as ws:
            change = ws.check(
                table,
                inserts=inserts,
                deletes=deletes,
                updates=updates,
                before=before,
                after=after,
                options=reading,
            )
        _print_change(change, as_json)
        if change.broken_pins:
            raise typer.Exit(BROKEN)


@app.command()
def show(
    ctx: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Only this kind: ucc (keys).")
    ] = None,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only this table.")] = None,
    at: Annotated[int | None, typer.Option("--at", metavar="VERSION", help="As of this version.")] = None,
    non_uniques: Annotated[
        bool, typer.Option("--non-uniques", help="The maximal combinations that are not unique, too.")
    ] = False,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """Show the minimal keys that hold, or held at a version."""
    with _reported(ctx):
        ws = _open(ctx)
        version = ws.version if at is None else at
        names = ws.tables(at) if table is None else [table]
        found = {name: ws.dependencies(kind, name, at) for name in names}
        if not names and kind is not None:
            ws.dependencies(kind)  # an unknown kind is an error in an empty workspace as well
        bounds = {name: ws.max_columns(name, at) for name in names}
        n_rows = {name: ws.n_rows(name, at) for name in names}
        pins = ws.pins(table, at)
        maximal: dict[str, list[tuple[str, ...]]] = {}
        for name in names if non_uniques else ():
            if bounds[name] and table is None:
                _note(
                    f"note: {name_text(name)} is tracked with --max-columns {bounds[name]}, "
                    "which leaves its maximal non-uniques open."
                )
                continue
            maximal[name] = ws.non_uniques(name, at)
        if as_json:
            document: dict[str, Any] = {
                "version": version,
                "dependencies": [d.to_dict() for name in names for d in found[name]],
                "tables": [{"table": n, "n_rows": n_rows[n], "max_columns": bounds[n]} for n in names],
                "pins": [p.to_dict() for p in pins],
            }
            if non_uniques:
                document["non_uniques"] = [
                    {"table": name, "columns": list(c)} for name, sets in maximal.items() for c in sets
                ]
            _print_json(document)
            return
        paper = Paper(sys.stdout)
        for i, name in enumerate(names):
            if i:
                paper.line()
            print_cover(
                paper,
                name,
                found[name],
                version=version,
                n_rows=n_rows[name],
                max_columns=bounds[name],
                pins=[p for p in pins if p.table == name],
                non_uniques=maximal.get(name),
                everything=everything,
            )
        if not names:
            paper.line(f"no table is tracked (version {version}). Start with 'holdfast track'.")


@app.command()
def log(
    ctx: typer.Context,
    table: Annotated[str | None, typer.Option("--table", metavar="TABLE", help="Only this table.")] = None,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """List the versions: what was done, and what it changed."""
    with _reported(ctx):
        ws = _open(ctx)
        entries = ws.log(table)
        if as_json:
            _print_json({"version": ws.version, "log": [e.to_dict() for e in entries]})
        else:
            print_log(Paper(sys.stdout), entries, everything=everything)


@app.command()
def explain(ctx: typer.Context, table: TableName, columns: Columns, as_json: Json = False) -> None:
    """Tell whether columns are unique, since when, and why."""
    with _reported(ctx), _opened(ctx) as ws:
        told = ws.explain(table, _columns(ws, table, columns))
        if as_json:
            _print_json(told.to_dict())
        else:
            print_explanation(Paper(sys.stdout), told)


@app.command()
def pin(
    ctx: typer.Context,
    table: TableName,
    columns: Columns,
    remove: Annotated[bool, typer.Option("--remove", help="Rely on it no longer.")] = False,
    as_json: Json = False,
) -> None:
    """Rely on a combination, so that `check` guards it.

    Every batch then says whether it holds, and `check` has exit code 1 if it would not.
    """
    with _reported(ctx), _opened(ctx) as ws:
        pinned = ws.pin(table, _columns(ws, table, columns), remove=remove)
        if as_json:
            _print_json({**pinned.to_dict(), "pinned": not remove, "version": ws.version})
            return
        paper = Paper(sys.stdout)
        what = f"{name_text(table)} {columns_text(pinned.columns)}"
        if remove:
            paper.line(f"{what} is no longer pinned (version {ws.version})")
        else:
            state = ("holds", "green") if pinned.holds else ("DOES NOT HOLD", "bold red")
            paper.line(f"pinned {what}: ", state, f" (version {ws.version})")


@app.command()
def drop(ctx: typer.Context, table: TableName, as_json: Json = False) -> None:
    """Stop tracking a table; its history stays."""
    with _reported(ctx), _opened(ctx) as ws:
        version = ws.drop(table)
        if as_json:
            _print_json({"table": table, "version": version})
        else:
            kept = f"'holdfast show --at {version - 1}' still shows what held"
            Paper(sys.stdout).line(f"{name_text(table)} is no longer tracked (version {version}); {kept}")


@app.command()
def merge(ctx: typer.Context, table: TableName, as_json: Json = False) -> None:
    """Merge all segments of a table into one.

    Its rows and keys stay as they are; reading it gets faster.
    """
    with _reported(ctx):
        with _opened(ctx) as ws:
            before = ws.version
            version = ws.merge(table)
        if as_json:
            _print_json({"table": table, "version": version, "merged": version > before})
        elif version > before:
            Paper(sys.stdout).line(f"{name_text(table)}: merged into one segment (version {version})")
        else:
            Paper(sys.stdout).line(f"{name_text(table)}: nothing to merge (version {version})")


@app.command()
def verify(ctx: typer.Context, as_json: Json = False) -> None:
    """Check every live file of the workspace against its checksum."""
    with _reported(ctx):
        with _opened(ctx) as ws:
            n_files, version = ws.verify(), ws.version
        if as_json:
            _print_json({"version": version, "n_files": n_files})
        else:
            Paper(sys.stdout).line(f"{plural(n_files, 'file')}, all as committed (version {version})")


# --- Between the commands and the workspace ---------------------------------------------------------------


def _open(ctx: typer.Context, *, create: bool = False, progress: Any = None) -> holdfast.Workspace:
    given: Globals = ctx.obj
    if given.workspace is None:
        raise UsageError("no workspace is named: holdfast -w my.hold COMMAND, or set HOLDFAST_WORKSPACE.")
    return holdfast.open(given.workspace, engine=given.engine.value, create=create, progress=progress)


@contextlib.contextmanager
def _opened(ctx: typer.Context, *, create: bool = False) -> Iterator[holdfast.Workspace]:
    """The workspace, with its progress on standard error; the display is gone when the block ends."""
    with progress_on(Paper(sys.stderr)) as hook, _open(ctx, create=create, progress=hook) as ws:
        yield ws


@contextlib.contextmanager
def _reported(ctx: typer.Context) -> Iterator[None]:
    """Errors as one line on standard error, and as an exit code."""
    debug = ctx.obj.debug
    try:
        yield
        sys.stdout.flush()
    except HoldfastError as error:
        if debug:
            traceback.print_exception(error)
        _note(f"{type(error).__name__}: {error}")
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        _note("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader has gone (`holdfast show | head`). Nothing is left to say, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(NO_READER) from None
    except typer.Exit:
        raise
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        hint = "" if debug else " Run it with 'holdfast --debug ...' to see where, and please report it."
        _note(f"internal error: {type(error).__name__}: {shorten(str(error), 300)}.{hint}")
        raise typer.Exit(INTERNAL) from None


def _note(text: str) -> None:
    print(safe(text), file=sys.stderr)


def _print_json(document: dict[str, Any]) -> None:
    # ASCII: right in every encoding, and no cell can send a terminal an escape sequence.
    print(json.dumps(document, indent=2, allow_nan=False))


def _print_change(change: Change, as_json: bool) -> None:
    if as_json:
        print_headline(Paper(sys.stderr), change)
        _print_json(change.to_dict())
    else:
        print_change(Paper(sys.stdout), change)


def _split(text: str) -> list[str]:
    """The parts between commas; a part with a comma in it stands in double quotes.

    >>> _split('a, b,"last, first"')
    ['a', 'b', 'last, first']
    """
    [row] = list(csv.reader([text], skipinitialspace=True)) or [[]]
    return [part for part in row if part]


def _columns(ws: holdfast.Workspace, table: str, given: Sequence[str]) -> list[str]:
    """The columns that arguments name: an argument is a column, or several with commas between."""
    known = ws.schema(table).names
    found = [c for text in given for c in ([text] if text in known else _split(text))]
    if not found:
        raise UsageError(f"no column of table {table!r} is named.")
    return found


def _reading(
    format: str | None,
    delimiter: str | None,
    quote: str | None,
    encoding: str | None,
    header: bool | None,
    null: Sequence[str] | None,
    types: Sequence[str] | None,
) -> dict[str, Any]:
    """The reading options that were given; for the others the table's own count."""
    if delimiter in ("\\t", "tab"):
        delimiter = "\t"
    given = {
        "format": format,
        "delimiter": delimiter,
        "quote": quote,
        "encoding": encoding,
        "header": header,
        "null_values": list(null) if null else None,
        "types": dict(_type(part) for text in types for part in _split_types(text)) if types else None,
    }
    return {name: value for name, value in given.items() if value is not None}


def _split_types(text: str) -> list[str]:
    """The parts between commas, except for those inside a type.

    >>> _split_types("price=decimal(12,2),at=timestamp[us,utc],zip=text")
    ['price=decimal(12,2)', 'at=timestamp[us,utc]', 'zip=text']
    """
    return [part for part in re.split(r",(?![^(\[]*[)\]])", text) if part]


def _type(text: str) -> tuple[str, str]:
    column, equals, kind = text.rpartition("=")
    if not equals or not column or not kind:
        raise UsageError(f"--types has {shorten(text)}; expected COLUMN=TYPE, such as zip=text.")
    return column, kind.strip()


def main(args: Sequence[str] | None = None) -> None:
    """The entry point of `holdfast`."""
    for stream in (sys.stdout, sys.stderr):
        # Where the terminal cannot show a character its escape stands in, rather than a traceback.
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        app(args=args, prog_name="holdfast")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
