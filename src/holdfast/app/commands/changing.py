"""Commands that change a workspace, or say what would change it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Annotated

import typer

import holdfast
from holdfast.app import options
from holdfast.app.calls import BROKEN, dc_bounds, opened, print_json, referenced_side, reported, tell_change
from holdfast.app.options import (
    After,
    AfterOf,
    AppendOnly,
    AsText,
    BatchId,
    Before,
    BeforeOf,
    Chosen,
    DcSeconds,
    Deletes,
    DeletesOf,
    Delimiter,
    Encoding,
    Evidence,
    Exclude,
    Format,
    Header,
    Held,
    In,
    InColumn,
    Inserts,
    InsertsOf,
    InTable,
    Json,
    Kinds,
    MaxArity,
    MaxColumns,
    MaxDcs,
    MaxError,
    MaxLhs,
    MaxPredicates,
    Null,
    NullRule,
    Nulls,
    Operators,
    Quote,
    RowKey,
    TableName,
    Types,
    Updates,
    UpdatesOf,
    WithinColumns,
)
from holdfast.app.report import Paper, name_text, print_long_held, print_pinned
from holdfast.core.words.change import Change
from holdfast.core.words.dependency import Fd
from holdfast.errors import UsageError, listing


def track(
    ctx: typer.Context,
    table: TableName,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="A CSV, Parquet or JSON file, a folder or a glob.")
    ],
    kinds: Kinds = "ucc",
    nulls: Nulls = NullRule.equal,
    row_key: RowKey = None,
    max_columns: MaxColumns = None,
    append_only: AppendOnly = False,
    as_text: AsText = False,
    columns: Chosen = None,
    exclude: Exclude = None,
    max_arity: MaxArity = None,
    max_lhs: MaxLhs = None,
    max_error: MaxError = None,
    evidence: Evidence = None,
    max_predicates: MaxPredicates = None,
    operators: Operators = None,
    within_columns: WithinColumns = False,
    dc_seconds: DcSeconds = None,
    max_dcs: MaxDcs = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Start to track a table: find what holds in it."""
    with reported(ctx):
        reading = options.reading(format, delimiter, quote, encoding, header, null, types)
        how = options.tracking(
            kinds, nulls, row_key, max_columns, append_only, as_text, columns, exclude, max_arity, max_lhs,
            max_error, evidence, max_predicates, operators, within_columns, dc_seconds, max_dcs,
        )  # fmt: skip
        with opened(ctx, create=True) as ws:
            change = ws.track(table, source, options=reading, **how)
            bounds = _bounds(ws, change)
        tell_change(change, as_json, bounds)


def track_all(
    ctx: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="NAME=SOURCE|FILE", help="Tables; a file's table is named after it."),
    ],
    kinds: Kinds = "ucc",
    nulls: Nulls = NullRule.equal,
    row_key: RowKey = None,
    max_columns: MaxColumns = None,
    append_only: AppendOnly = False,
    as_text: AsText = False,
    columns: Chosen = None,
    exclude: Exclude = None,
    max_arity: MaxArity = None,
    max_lhs: MaxLhs = None,
    max_error: MaxError = None,
    evidence: Evidence = None,
    max_predicates: MaxPredicates = None,
    operators: Operators = None,
    within_columns: WithinColumns = False,
    dc_seconds: DcSeconds = None,
    max_dcs: MaxDcs = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Start to track several tables as one version.

    The options hold for each of them.
    """
    with reported(ctx):
        reading = options.reading(format, delimiter, quote, encoding, header, null, types)
        how = options.tracking(
            kinds, nulls, row_key, max_columns, append_only, as_text, columns, exclude, max_arity, max_lhs,
            max_error, evidence, max_predicates, operators, within_columns, dc_seconds, max_dcs,
        )  # fmt: skip
        tables = options.sources_of(sources)
        with opened(ctx, create=True) as ws:
            change = ws.track_all(tables, options=reading, **how)
            bounds = _bounds(ws, change)
        tell_change(change, as_json, bounds)


def _bounds(ws: holdfast.Workspace, change: Change) -> dict[str, list[str]]:
    """Of each table what bounds the search for its denial constraints."""
    return {t.table: dc_bounds(ws.dcs.ref(t.table, change.version)) for t in change.tables}


def apply(
    ctx: typer.Context,
    table: TableName,
    inserts: Inserts = None,
    deletes: Deletes = None,
    updates: Updates = None,
    before: Before = None,
    after: After = None,
    batch_id: BatchId = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Apply a batch; say what broke or appeared, and why.

    Deletes come first, then inserts; all of it is one version, or nothing is applied.
    """
    with reported(ctx):
        reading = options.reading(format, delimiter, quote, encoding, header, null, types)
        with opened(ctx) as ws:
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
        tell_change(change, as_json)


def apply_all(
    ctx: typer.Context,
    inserts: InsertsOf = None,
    deletes: DeletesOf = None,
    updates: UpdatesOf = None,
    before: BeforeOf = None,
    after: AfterOf = None,
    batch_id: BatchId = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Apply batches to several tables as one version.

    So parents can come with their children. The reading options hold for all of the files.
    """
    with reported(ctx):
        reading = options.reading(format, delimiter, quote, encoding, header, null, types)
        given = {
            "inserts": inserts,
            "deletes": deletes,
            "updates": updates,
            "before": before,
            "after": after,
        }
        with opened(ctx) as ws:
            batches = options.batches_of(ws.tables(), given)
            change = ws.apply_all(batches, batch_id=batch_id, options=reading)
        tell_change(change, as_json)


def check(
    ctx: typer.Context,
    table: TableName,
    inserts: Inserts = None,
    deletes: Deletes = None,
    updates: Updates = None,
    before: Before = None,
    after: After = None,
    held: Held = None,
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

    Exit code 1 if something pinned would not hold after it; with --held also if a functional dependency
    would break that had held for long.
    """
    with reported(ctx):
        reading = options.reading(format, delimiter, quote, encoding, header, null, types)
        with opened(ctx) as ws:
            _check_held(ws, held, [table])
            change = ws.check(
                table,
                inserts=inserts,
                deletes=deletes,
                updates=updates,
                before=before,
                after=after,
                options=reading,
            )
        _tell_checked(change, held, as_json)


def check_all(
    ctx: typer.Context,
    inserts: InsertsOf = None,
    deletes: DeletesOf = None,
    updates: UpdatesOf = None,
    before: BeforeOf = None,
    after: AfterOf = None,
    held: Held = None,
    format: Format = None,
    delimiter: Delimiter = None,
    quote: Quote = None,
    encoding: Encoding = None,
    header: Header = None,
    null: Null = None,
    types: Types = None,
    as_json: Json = False,
) -> None:
    """Say what batches to several tables would change.

    Nothing is applied. Exit code 1 if something pinned would not hold after them; with --held also if a
    functional dependency would break that had held for long.
    """
    with reported(ctx):
        reading = options.reading(format, delimiter, quote, encoding, header, null, types)
        given = {
            "inserts": inserts,
            "deletes": deletes,
            "updates": updates,
            "before": before,
            "after": after,
        }
        with opened(ctx) as ws:
            batches = options.batches_of(ws.tables(), given)
            _check_held(ws, held, batches)
            change = ws.check_all(batches, options=reading)
        _tell_checked(change, held, as_json)


def _check_held(ws: holdfast.Workspace, held: int | None, tables: Iterable[str]) -> None:
    """A gate that nothing can ever close is a mistake."""
    names = [t for t in tables if t in ws.tables()]
    if held is not None and names and not any("fd" in ws.kinds(name) for name in names):
        raise UsageError(
            f"--held is about functional dependencies, and those of {listing(names)} are not tracked. Track "
            "with --kinds ucc,fd, or leave it out."
        )


def _tell_checked(change: Change, held: int | None, as_json: bool) -> None:
    """The report, and the exit code: whether what is pinned holds, and what has held for long."""
    tell_change(change, as_json)
    closed = bool(change.broken_pins)
    if held is not None and any(t.longest >= held for t in change.tables):
        listed = sum(c.held >= held for c in change.broke if isinstance(c.dependency, Fd))
        print_long_held(Paper(sys.stderr if as_json else sys.stdout), listed, held)
        closed = True
    if closed:
        raise typer.Exit(BROKEN)


def pin(
    ctx: typer.Context,
    table: Annotated[
        str,
        typer.Argument(
            metavar="[TABLE]", help="The table's name; a rule needs none if the workspace has one table."
        ),
    ],
    columns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COLUMN...|RULE",
            help="Columns, as separate arguments or with commas; or a rule about two rows, t and s, in "
            "quotes: 'not(t.zip = s.zip and t.state != s.state)'.",
        ),
    ] = None,
    within: In = None,
    in_table: InTable = None,
    in_column: InColumn = None,
    remove: Annotated[bool, typer.Option("--remove", help="Rely on it no longer.")] = False,
    as_json: Json = False,
) -> None:
    """Rely on a key, an inclusion or a rule, so that `check` guards it.

    Every batch then says whether it holds, and `check` has exit code 1 if it would not. Of a rule it also
    says how many pairs of rows violate it.
    """
    with reported(ctx):
        with opened(ctx) as ws:
            rule, named_table = _rule_to_pin(ws, table, columns or [])
            referenced = None
            if rule is not None:
                if within or in_table or in_column:
                    raise UsageError("a rule is about one table: leave out --in.")
                pinned = ws.pin_rule(rule, table=named_table, remove=remove)
            else:
                named = options.columns_of(table, ws.schema(table).names, columns or [])
                referenced = referenced_side(ws, within, in_table, in_column)
                pinned = ws.pin(table, named, referenced=referenced, remove=remove)
            version = ws.version
        if as_json:
            print_json({**pinned.to_dict(), "pinned": not remove, "version": version})
        else:
            print_pinned(Paper(sys.stdout), pinned, version=version, removed=remove)


def _rule_to_pin(ws: holdfast.Workspace, table: str, given: Sequence[str]) -> tuple[str | None, str | None]:
    """(rule, table) that arguments ask for; (None, table) if they are columns."""
    if not given and table not in ws.tables() and options.is_rule(table, ()):
        return table, None
    names = ws.schema(table).names
    if not any(options.is_rule(text, names) for text in given):
        return None, table
    if len(given) > 1:
        raise UsageError("put the whole rule in one argument, in quotes, such as 'not(t.zip = s.zip)'.")
    return given[0], table


def drop(ctx: typer.Context, table: TableName, as_json: Json = False) -> None:
    """Stop tracking a table; its history stays."""
    with reported(ctx):
        with opened(ctx) as ws:
            version = ws.drop(table)
        if as_json:
            print_json({"table": table, "version": version})
        else:
            kept = f"'holdfast show --at {version - 1}' still shows what held"
            Paper(sys.stdout).line(f"{name_text(table)} is no longer tracked (version {version}); {kept}")


def merge(ctx: typer.Context, table: TableName, as_json: Json = False) -> None:
    """Merge all segments of a table into one.

    Its rows and what holds in them stay as they are; reading it gets faster.
    """
    with reported(ctx):
        with opened(ctx) as ws:
            before = ws.version
            version = ws.merge(table)
        if as_json:
            print_json({"table": table, "version": version, "merged": version > before})
        elif version > before:
            Paper(sys.stdout).line(f"{name_text(table)}: merged into one segment (version {version})")
        else:
            Paper(sys.stdout).line(f"{name_text(table)}: nothing to merge (version {version})")
