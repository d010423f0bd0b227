"""Commands that change a workspace, or say what would change it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated

import typer

import holdfast
from holdfast.app import options
from holdfast.app.calls import BROKEN, Referenced, dc_bounds, opened, tell, tell_change
from holdfast.app.options import Batch, Batches, BatchId, Held, Json, Reading, TableName, Tracking
from holdfast.app.report.changes import print_long_held
from holdfast.app.report.paper import Paper
from holdfast.app.report.pins import print_pinned
from holdfast.app.report.texts import name_text
from holdfast.core.words.change import Change
from holdfast.core.words.dependency import Fd
from holdfast.core.words.notation import ARROW
from holdfast.errors import UsageError, listing


def track(
    ctx: typer.Context,
    table: TableName,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A CSV, Parquet or JSON file, a folder, a glob; - is standard input; with --sql a database.",
        ),
    ],
    how: Tracking,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Start to track a table: find what holds in it."""
    _track(ctx, {table: source}, how, reading, as_json)


def track_all(
    ctx: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(metavar="NAME=SOURCE|FILE", help="Tables; a file's table is named after it."),
    ],
    how: Tracking,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Start to track several tables as one version.

    The options hold for each of them.
    """
    _track(ctx, options.sources_of(sources), how, reading, as_json)


def _track(
    ctx: typer.Context, sources: Mapping[str, str], how: Tracking, reading: Reading, as_json: bool
) -> None:
    files, tracking = reading.read_options(), how.track_options()
    with opened(ctx, create=True) as ws:
        change = ws.track_all(sources, options=files, **tracking)
        bounds = {t.table: dc_bounds(ws.dcs.ref(t.table, change.version)) for t in change.tables}
    tell_change(change, as_json, bounds)


def apply(
    ctx: typer.Context,
    table: TableName,
    *,
    batch: Batch,
    batch_id: BatchId = None,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Apply a batch; say what broke or appeared, and why.

    Deletes come first, then inserts; all of it is one version, or nothing is applied.
    """
    files = reading.read_options()
    with opened(ctx) as ws:
        change = ws.apply(table, **asdict(batch), batch_id=batch_id, options=files)
    tell_change(change, as_json)


def apply_all(
    ctx: typer.Context, *, parts: Batches, batch_id: BatchId = None, reading: Reading, as_json: Json = False
) -> None:
    """Apply batches to several tables as one version.

    So parents can come with their children. The reading options hold for all of the files.
    """
    files = reading.read_options()
    with opened(ctx) as ws:
        batches = options.batches_of(ws.tables(), asdict(parts))
        change = ws.apply_all(batches, batch_id=batch_id, options=files)
    tell_change(change, as_json)


def check(
    ctx: typer.Context,
    table: TableName,
    *,
    batch: Batch,
    held: Held = None,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Say what a batch would change, and apply nothing.

    Exit code 1 if something pinned would not hold after it; with --held also if a functional dependency
    would break that had held for long.
    """
    files = reading.read_options()
    with opened(ctx) as ws:
        _check_held(ws, held, [table])
        change = ws.check(table, **asdict(batch), options=files)
    _tell_checked(change, held, as_json)


def check_all(
    ctx: typer.Context, *, parts: Batches, held: Held = None, reading: Reading, as_json: Json = False
) -> None:
    """Say what batches to several tables would change.

    Nothing is applied. Exit code 1 if something pinned would not hold after them; with --held also if a
    functional dependency would break that had held for long.
    """
    files = reading.read_options()
    with opened(ctx) as ws:
        batches = options.batches_of(ws.tables(), asdict(parts))
        _check_held(ws, held, batches)
        change = ws.check_all(batches, options=files)
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
            help="Columns, as separate arguments or with commas; or, in quotes, a functional dependency: "
            "'zip -> city'; or a rule about two rows, t and s: 'not(t.zip = s.zip and t.state != s.state)'; "
            "or a condition on each row: "
            "'quantity > 0', 'email is not null', 'net <= gross', \"status in ('open', 'done')\".",
        ),
    ] = None,
    *,
    referenced: Referenced,
    remove: Annotated[bool, typer.Option("--remove", help="Rely on it no longer.")] = False,
    as_json: Json = False,
) -> None:
    """Rely on a key, inclusion or rule, so that `check` guards it.

    Every batch then says whether it holds, and `check` has exit code 1 if it would not. Of a rule it also
    says how many pairs of rows violate it.
    """
    with opened(ctx) as ws:
        rule, named_table = _rule_to_pin(ws, table, columns or [])
        if rule is not None:
            if referenced.named:
                raise UsageError("a rule is about one table: leave out --in.")
            pinned = ws.pin_rule(rule, table=named_table, remove=remove)
        else:
            named = options.columns_of(table, ws.schema(table).names, columns or [])
            pinned = ws.pin(table, named, referenced=referenced.side(ws), remove=remove)
        version = ws.version
    document = {**pinned.to_dict(), "pinned": not remove, "version": version}
    tell(as_json, lambda: document, print_pinned, pinned, version=version, removed=remove)


def _rule_to_pin(ws: holdfast.Workspace, table: str, texts: Sequence[str]) -> tuple[str | None, str | None]:
    """(rule, table) that arguments ask for; (None, table) if they are columns."""
    if not texts and table not in ws.tables() and options.is_rule(table, ()):
        return table, None
    names = ws.schema(table).names
    if not any(options.is_rule(text, names) or (ARROW in text and text not in names) for text in texts):
        return None, table
    if len(texts) > 1:
        raise UsageError("put the whole rule in one argument, in quotes, such as 'not(t.zip = s.zip)'.")
    return texts[0], table


def drop(ctx: typer.Context, table: TableName, as_json: Json = False) -> None:
    """Stop tracking a table; its history stays."""
    with opened(ctx) as ws:
        version = ws.drop(table)
    history = f"'holdfast show --at {version - 1}' still shows what held"
    line = f"{name_text(table)} is no longer tracked (version {version}); {history}"
    tell(as_json, lambda: {"table": table, "version": version}, Paper.line, line)


def merge(ctx: typer.Context, table: TableName, as_json: Json = False) -> None:
    """Merge the segments of a table into few large ones.

    Its rows and what holds in them stay as they are; reading it gets faster.
    """
    with opened(ctx) as ws:
        before = ws.version
        version = ws.merge(table)
    document = {"table": table, "version": version, "merged": version > before}
    done = "segments merged" if version > before else "nothing to merge"
    tell(as_json, lambda: document, Paper.line, f"{name_text(table)}: {done} (version {version})")
