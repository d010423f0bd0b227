"""Commands that change a workspace, or say what would change it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Annotated

import typer

import holdfast
from holdfast.app import options
from holdfast.app.calls import BROKEN, dc_bounds, note, opened, tell, tell_change
from holdfast.app.commands.relying import FailOn, Gate, SeverityName
from holdfast.app.options import Batch, Batches, BatchId, Held, Json, Reading, Tracking
from holdfast.app.report.changes import print_long_held
from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import name_text
from holdfast.app.which_table import TableName
from holdfast.core.words.change import Change, GateError
from holdfast.core.words.dependency import Fd
from holdfast.core.words.reliance import Severity
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
    fail_on: Gate = None,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Apply a batch; say what broke or appeared, and why.

    Deletes come first, then inserts; all of it is one version, or nothing is applied. With --fail-on it is a
    gate: judged on what is committed then, and not between two runs.
    """
    files = reading.read_options()
    with _gated(as_json), opened(ctx) as ws:
        gate: Severity | None = None if fail_on is None else fail_on.value
        change = ws.apply(table, **asdict(batch), batch_id=batch_id, options=files, fail_on=gate)
    tell_change(change, as_json)


def apply_all(
    ctx: typer.Context,
    *,
    parts: Batches,
    batch_id: BatchId = None,
    fail_on: Gate = None,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Apply batches to several tables as one version.

    So parents can come with their children. The reading options hold for all of the files.
    """
    files = reading.read_options()
    with _gated(as_json), opened(ctx) as ws:
        batches = options.batches_of(ws.tables(), asdict(parts))
        gate: Severity | None = None if fail_on is None else fail_on.value
        change = ws.apply_all(batches, batch_id=batch_id, options=files, fail_on=gate)
    tell_change(change, as_json)


@contextlib.contextmanager
def _gated(as_json: bool) -> Iterator[None]:
    """What a batch would have changed that a gate has refused, and the exit code."""
    try:
        yield
    except GateError as refused:
        tell_change(refused.change, as_json)
        note(f"GateError: {refused}")
        raise typer.Exit(BROKEN) from None


def check(
    ctx: typer.Context,
    table: TableName,
    *,
    batch: Batch,
    held: Held = None,
    fail_on: FailOn = SeverityName.error,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Say what a batch would change, and apply nothing.

    Exit code 1 if something pinned would not hold after it, within its tolerance; of severity error, unless
    --fail-on says otherwise. With --held also if a functional dependency would break that had held for long.
    """
    files = reading.read_options()
    with opened(ctx) as ws:
        _check_held(ws, held, [table])
        change = ws.check(table, **asdict(batch), options=files)
    _tell_checked(change, held, fail_on, as_json)


def check_all(
    ctx: typer.Context,
    *,
    parts: Batches,
    held: Held = None,
    fail_on: FailOn = SeverityName.error,
    reading: Reading,
    as_json: Json = False,
) -> None:
    """Say what batches to several tables would change.

    Nothing is applied. Exit codes are those of 'holdfast check'.
    """
    files = reading.read_options()
    with opened(ctx) as ws:
        batches = options.batches_of(ws.tables(), asdict(parts))
        _check_held(ws, held, batches)
        change = ws.check_all(batches, options=files)
    _tell_checked(change, held, fail_on, as_json)


def _check_held(ws: holdfast.Workspace, held: int | None, tables: Iterable[str]) -> None:
    """A gate that nothing can ever close is a mistake."""
    names = [t for t in tables if t in ws.tables()]
    if held is not None and names and not any("fd" in ws.kinds(name) for name in names):
        raise UsageError(
            f"--held is about functional dependencies, and those of {listing(names)} are not tracked. Track "
            "with --kinds ucc,fd, or leave it out."
        )


def _tell_checked(change: Change, held: int | None, fail_on: SeverityName, as_json: bool) -> None:
    """The report, and the exit code: whether what is pinned holds, and what has held for long."""
    tell_change(change, as_json)
    closed = bool(change.failing(fail_on.value))
    if held is not None and any(t.longest >= held for t in change.tables):
        listed = sum(c.held >= held for c in change.broke if isinstance(c.dependency, Fd))
        print_long_held(Paper(sys.stderr if as_json else sys.stdout), listed, held)
        closed = True
    if closed:
        raise typer.Exit(BROKEN)


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
