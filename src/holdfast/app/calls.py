"""What all commands have in common: the workspace they open, how they fail, how they print JSON."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

import holdfast
from holdfast.app.completing import complete_other_column, complete_side, complete_table
from holdfast.app.options import EngineName, columns_of
from holdfast.app.report.paper import Paper, progress_on
from holdfast.app.report.texts import columns_text, safe, share, side_text
from holdfast.core.words.dependency import Side
from holdfast.errors import HoldfastError, UnknownTableError, UsageError, plural, shorten

if TYPE_CHECKING:
    from holdfast.core.words.change import Change
    from holdfast.denial.constraints import DcRef
    from holdfast.functional.refs import FdRef

BROKEN, BAD_INPUT, INTERNAL, INTERRUPTED, NO_READER, TERMINATED = 1, 2, 70, 130, 141, 143
DEFAULT_WORKSPACE = ".holdfast"
JSON_FORMAT = 1
"""Of what `--json` prints; raised when a field goes or changes its meaning."""


@dataclass(frozen=True, slots=True)
class Globals:
    """What stands before the command."""

    workspace: str | None
    engine: EngineName
    debug: bool


def use_cluster(master: str | None, remote: str | None, settings: Sequence[str]) -> None:
    """Let Spark run where the user says, once it is needed."""
    from holdfast.core.engine import session

    pairs = [setting.partition("=") for setting in settings]
    for setting, (key, equals, _) in zip(settings, pairs, strict=True):
        if not key or not equals:
            raise UsageError(f"--spark-conf takes KEY=VALUE, not {shorten(setting)}.")
    session.use(master, remote, {key: value for key, _, value in pairs})


def open_workspace(ctx: typer.Context, *, create: bool = False, progress: Any = None) -> holdfast.Workspace:
    settings: Globals = ctx.obj
    place = settings.workspace
    if place is None:
        place = found_workspace() or (DEFAULT_WORKSPACE if create else None)
        if place is None:
            raise UsageError(
                f"no workspace is named, and no folder {DEFAULT_WORKSPACE!r} is here or above: "
                "holdfast -w my.hold COMMAND, or set HOLDFAST_WORKSPACE. 'holdfast track' makes one here."
            )
        note(f"workspace {place}")
    from holdfast.core.store import pandas_later

    pandas_later.postpone()
    return holdfast.open(place, engine=settings.engine.value, create=create, progress=progress)


def found_workspace() -> str | None:
    """The default workspace: `.holdfast` in this folder or in the nearest one above that has it."""
    from holdfast.core.store.format import MARKER

    for up in range(len(os.getcwd().split(os.sep))):
        place = os.path.join(*[os.pardir] * up, DEFAULT_WORKSPACE)
        if os.path.exists(os.path.join(place, MARKER)):
            return place
    return None


@contextlib.contextmanager
def opened(ctx: typer.Context, *, create: bool = False) -> Iterator[holdfast.Workspace]:
    """The workspace, with its progress on standard error; the display is gone when the block ends."""
    with progress_on(Paper(sys.stderr)) as hook, open_workspace(ctx, create=create, progress=hook) as ws:
        yield ws


@contextlib.contextmanager
def reported(ctx: typer.Context) -> Iterator[None]:
    """Errors as one line on standard error, and as an exit code."""
    debug = ctx.obj.debug
    try:
        yield
        sys.stdout.flush()
    except HoldfastError as error:
        if debug:
            traceback.print_exception(error)
        for line in _error_lines(f"{type(error).__name__}: {error}"):
            note(line)
        raise typer.Exit(BAD_INPUT) from None
    except KeyboardInterrupt:
        note("interrupted")
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
        note(f"internal error: {type(error).__name__}: {shorten(str(error), 300)}.{hint}")
        raise typer.Exit(INTERNAL) from None


def as_command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as a command: its errors are reported, and groups of options are spread out.

    A group is a dataclass whose fields are options; a parameter of that type stands for all of them, in
    their order. So a block of options is written once, and its meaning beside it. An option has the name of
    its field or parameter (`max_lhs`: `--max-lhs`), unless it says another.
    """
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for name, parameter in _parameters(function).items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            options += _parameters(groups[name]).values()
        else:
            options.append(parameter)

    @functools.wraps(function)
    def command(ctx: typer.Context, **values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        with reported(ctx):
            function(ctx, **values)

    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {option.name: option.annotation for option in options}
    return command


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """By keyword: so those without a default may stand behind others."""
    parameters = inspect.signature(function, eval_str=True).parameters
    return {name: p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for name, p in parameters.items()}


# What an error about a rule ends with: the rule, and a caret below the place.
_POINTED = re.compile(r"(.*)\n(  [^\n]*)\n( +\^)", re.DOTALL)


def _error_lines(text: str) -> tuple[str, ...]:
    r"""The lines of an error message: one, unless it points at a place in a rule.

    >>> _error_lines("no table 'a\nb'."), _error_lines("at character 2 of the rule: no.\n  n(t.a)\n   ^")
    (("no table 'a\nb'.",), ('at character 2 of the rule: no.', '  n(t.a)', '   ^'))
    """
    pointed = _POINTED.fullmatch(text)
    return (text,) if pointed is None else pointed.groups()


def note(text: str) -> None:
    print(safe(text), file=sys.stderr)


def print_json(document: dict[str, Any]) -> None:
    """A document as `docs/json-schema.json` describes it."""
    # ASCII: right in every encoding, and no cell can send a terminal an escape sequence.
    print(json.dumps({"format": JSON_FORMAT, **document}, indent=2, allow_nan=False))


Arguments = ParamSpec("Arguments")


def tell(
    as_json: bool,
    document: Callable[[], dict[str, Any]],
    report: Callable[Concatenate[Paper, Arguments], None],
    *args: Arguments.args,
    **named: Arguments.kwargs,
) -> None:
    """An answer on standard output: for programs the document, for people the report of the arguments."""
    if as_json:
        print_json(document())
    else:
        report(Paper(sys.stdout), *args, **named)


def tell_change(change: Change, as_json: bool, bounds: Mapping[str, Sequence[str]] | None = None) -> None:
    """A change for people, or for programs with its headlines on standard error.

    `bounds` says of tables what the search for denial constraints left out.
    """
    from holdfast.app.report.changes import print_change, print_headlines

    if as_json:
        print_headlines(Paper(sys.stderr), change)
        document = change.to_dict()
        for part in (document, *document["tables"]):
            if restrictions := (bounds or {}).get(part.get("table")):
                part["bounds"] = list(restrictions)
        print_json(document)
    else:
        print_change(Paper(sys.stdout), change, bounds)


def dc_bounds(ref: DcRef | None) -> list[str]:
    """What bounds the search for denial constraints, in words."""
    if ref is None:
        return []
    bounds = []
    if ref.max_predicates:
        limits = f"the limits: {ref.limits}" if ref.stopped else "--max-predicates"
        bounds.append(f"at most {plural(ref.max_predicates, 'predicate')} ({limits})")
    if ref.operators:
        bounds.append(f"only the operators {' '.join(ref.operators)} (--operators)")
    if ref.within_columns:
        bounds.append("each column compared with itself only (--within-columns)")
    if ref.chosen:
        columns = dict.fromkeys(group.left for group in ref.space.groups)
        bounds.append(f"only the columns {columns_text(list(columns))} (--columns, --exclude)")
    return bounds


def evidence_text(ref: FdRef | DcRef) -> str:
    """Which evidence is kept, and up to which error.

    >>> from holdfast.functional.refs import FdRef
    >>> ref = FdRef("counted", 3, 0.01, *[None] * 3)
    >>> evidence_text(ref)
    'counted evidence, errors up to 0.01'
    """
    errors = f", errors up to {share(ref.max_error)}" if ref.max_error else ""
    return f"{ref.evidence_kind} evidence{errors}"


@dataclass(frozen=True, slots=True)
class Referenced:
    """The column that an inclusion is about, as an option or as two."""

    within: Annotated[
        list[str] | None,
        typer.Option(
            "--in",
            metavar="TABLE.COLUMN",
            help="An inclusion in this column, not a key; of several columns with commas: payment.a,b.",
            autocompletion=complete_side,
        ),
    ] = None
    in_table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE",
            help="The same, where names have dots: the table ...",
            autocompletion=complete_table,
        ),
    ] = None
    in_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="... and the column; repeated, or with commas, several.",
            autocompletion=complete_other_column,
        ),
    ] = None

    @property
    def named(self) -> bool:
        return bool(self.within or self.in_table or self.in_column)

    def side(self, ws: holdfast.Workspace) -> Side | None:
        """The side that the options name; None if they name none."""
        within, table, columns = self.within, self.in_table, self.in_column
        if not within:
            if table is None and not columns:
                return None
            if table is None or not columns:
                raise UsageError(
                    "--in-table and --in-column belong together: give both, or --in TABLE.COLUMN."
                )
            return Side(table, tuple(columns_of(table, ws.schema(table).names, columns)))
        if table is not None or columns:
            raise UsageError("give --in TABLE.COLUMN, or --in-table and --in-column; not all of them.")
        if len(within) > 1:
            raise UsageError(
                f"--in is given {len(within)} times; give it once: several columns of one table have commas "
                "between, such as --in payment.a,b."
            )
        return named_side(ws, within[0], "--in", "say it with --in-table and --in-column")


def named_side(ws: holdfast.Workspace, text: str, where: str, otherwise: str) -> Side:
    """The columns that TABLE.COLUMN names, or TABLE.COLUMN,COLUMN: names may have dots where it is clear."""
    if "." not in text:
        raise UsageError(f"{where} has {shorten(text)}; expected TABLE.COLUMN, such as customers.id.")
    tables = ws.tables()
    splits = [(text[:i], text[i + 1 :]) for i, c in enumerate(text) if c == "."]
    schemas = {name: ws.schema(name) for name, _ in splits if name in tables}
    if not schemas:
        raise UnknownTableError.from_missing(splits[0][0], tables)
    sides = [
        Side(name, tuple(columns_of(name, schemas[name].names, [columns])))
        for name, columns in splits
        if name in schemas
    ]
    existing = [s for s in sides if all(schemas[s.table].position(c) is not None for c in s.columns)]
    if len(existing) > 1:
        both = " or ".join(map(side_text, existing))
        raise UsageError(f"{where} {shorten(text)} may be {both}: {otherwise}.")
    return (existing or sides)[0]
