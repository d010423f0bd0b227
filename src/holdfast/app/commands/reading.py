"""Commands that read a workspace: what each version did, why something holds, whether the files are whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

import holdfast
from holdfast.app import options
from holdfast.app.calls import Referenced, dc_bounds, open_workspace, opened, tell
from holdfast.app.completing import complete_column, complete_kind
from holdfast.app.options import All, Json
from holdfast.app.report.fds import print_fd_log
from holdfast.app.report.log import print_log
from holdfast.app.report.paper import Paper
from holdfast.app.report.rules import print_explained, print_indexes, print_predicates
from holdfast.app.report.texts import name_text, not_kept_text
from holdfast.app.which_table import OneTable, TableName, ThisTable, one_table
from holdfast.core.words.asking import WHOLE, form_of
from holdfast.core.words.condition import is_condition
from holdfast.core.words.notation import ARROW, parse_fd, parse_inclusion, parse_key
from holdfast.core.words.row_rule import is_row_rule
from holdfast.errors import UsageError, listing, plural
from holdfast.kind import Explained, check_kind

Asked = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COLUMN|KEY|FD|IND|RULE",
        autocompletion=complete_column,
        help="Columns, as separate arguments or with commas; or, in quotes, a key: '[id, day]'; a functional "
        "dependency: 'zip -> city' ('[] -> city': the column is constant); an inclusion: "
        "'orders[customer] in customers[id]'; a rule about two rows, t and s: 'not(t.zip = s.zip and "
        "t.state != s.state)'; or one about each row: 'net <= gross', 'quantity > 0', 'email is not null', "
        "\"status in ('open', 'done')\". What a report prints can be pasted, with its table in front or not.",
    ),
]


def log(
    ctx: typer.Context,
    only: ThisTable = None,
    table: OneTable = None,
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            autocompletion=complete_kind,
            help="Only changes of this kind (ucc, ind, dc, row, profile); fd: the versions at which each "
            "functional dependency held.",
        ),
    ] = None,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """List the versions: what was done, and what it changed.

    With --kind fd: when each functional dependency held, and what it outlived; what broke comes first.
    """
    check_kind(kind)
    table = one_table(only, table)
    ws = open_workspace(ctx)
    if kind == "fd":
        _log_fds(ws, table, everything, as_json)
        return
    entries: list[holdfast.LogEntry] = ws.log(table)
    if kind is not None:
        entries = [replace(e, changes=tuple(c for c in e.changes if c.kind == kind)) for e in entries]
    tell(
        as_json,
        lambda: {"version": ws.version, "log": [e.to_dict() for e in entries]},
        print_log,
        entries,
        everything=everything,
        muted=ws.readers.muted_at(ws.version or None),
    )


def _log_fds(ws: holdfast.Workspace, table: str | None, everything: bool, as_json: bool) -> None:
    version, histories = ws.version, ws.fds.log(table)
    muted = ws.readers.muted_at(version or None)
    names = list(dict.fromkeys(h.fd.table for h in histories)) if table is None else [table]

    def report(paper: Paper) -> None:
        for i, name in enumerate(names):
            if i:
                paper.line()
            of_table = [h for h in histories if h.fd.table == name]
            loud = [h for h in of_table if h.fd not in muted]
            print_fd_log(paper, name, loud, version=version, everything=everything)
            paper.muted(len(of_table) - len(loud))
        if not names:
            nothing = f"no table is tracked (version {version}). Track tables with --kinds ucc,fd."
            paper.line(not_kept_text("fd", version) if ws.tables() else nothing)

    tell(as_json, lambda: {"version": version, "dependencies": [h.to_dict() for h in histories]}, report)


def explain(
    ctx: typer.Context,
    table: TableName,
    columns: Asked = None,
    *,
    referenced: Referenced,
    predicates: Annotated[
        bool, typer.Option("--predicates", help="The predicates that denial constraints are made of.")
    ] = False,
    indexes: Annotated[
        bool, typer.Option("--indexes", help="The indexes by which batches are checked against them.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell whether something holds, since when, and why.

    Whether columns are unique; with an arrow, as in 'zip, street -> city', whether rows that agree on the
    left agree on the right; with --in, whether all values of a column are in another one; whether a rule
    holds, and which rows are against it.
    """
    if predicates or indexes:
        if predicates and indexes:
            raise UsageError("--predicates and --indexes are two questions: give one of them.")
        if columns or referenced.named:
            raise UsageError(
                "--predicates and --indexes are about all denial constraints of a table: leave out the rest."
            )
        with opened(ctx) as ws:
            (_explain_predicates if predicates else _explain_indexes)(ws, table, as_json)
        return
    with opened(ctx) as ws:
        table, columns = with_table(ws, table, columns or [])
        reader, asked = question_of(ws, table, columns, referenced)
        explanation: Explained = reader.explain(*asked)
        schema, n_rows = ws.schema(table), ws.n_rows(table)

    tell(as_json, explanation.to_dict, print_explained, explanation, n_rows=n_rows, schema=schema)


def with_table(ws: holdfast.Workspace, table: str, texts: Sequence[str]) -> tuple[str, list[str]]:
    """(table, texts): of one text alone, as reports print it, the table is the one that it begins with."""
    tables = ws.tables()
    if texts or table in tables:
        return table, list(texts)
    sides = parse_inclusion(table)
    named = [name for name in tables if _without_table(name, table) != table]
    if sides is None and not named:
        return table, []
    return max(named, key=len) if sides is None else sides[0].table, [table]


def question_of(
    ws: holdfast.Workspace, table: str, texts: Sequence[str], referenced: Referenced
) -> tuple[Any, tuple[Any, ...]]:
    """(reader, arguments): who knows what arguments ask for, and how it is told."""
    names = ws.schema(table).names
    texts = [text if text in names else _without_table(table, text) for text in texts]
    if not texts:
        raise UsageError(
            f"nothing of table {table!r} is asked for: name columns, a functional dependency or a rule."
        )
    if len(texts) == 1 and (form_of(texts[0]) in WHOLE or ws.readers.reader_of(table, texts[0]) is not None):
        return ws.readers.asked(table, texts[0], None)
    rules = [text for text in texts if options.is_rule(text, names)]
    rule = _only(texts, rules, "rule", "not(t.zip = s.zip)") if rules else None
    fd = None if rules else _fd_of(names, texts)
    if (rule or fd) and referenced.named:
        reason = "a rule is about one table" if rule else "an arrow asks for a functional dependency"
        raise UsageError(f"{reason}: leave out --in.")
    if rule is not None and is_condition(rule):
        return ws.checks, (table, rule)
    if rule is not None:
        about_one = is_row_rule(rule) and not options.names_rows(rule, names)
        return (ws.row_rules if about_one else ws.dcs), (table, rule)
    if fd is not None:
        return ws.fds, (table, *parse_fd(fd, names, table=table, version=ws.version))
    return ws.readers.asked(table, tuple(options.columns_of(table, names, texts)), referenced.side(ws))


def _without_table(table: str, text: str) -> str:
    """A text as reports print it, `orders: quantity > 0` or `orders[id]`, without its table.

    >>> _without_table("orders", "orders: quantity > 0"), _without_table("orders", "orders[id]")
    ('quantity > 0', '[id]')
    >>> _without_table("orders", "orders[a] in t[b]"), _without_table("orders", "orders")
    ('orders[a] in t[b]', 'orders')
    """
    rest = text.removeprefix(name_text(table))
    if rest.startswith(": ") and rest != text:
        return rest[2:]
    return rest if parse_key(rest) is not None else text


def _explain_predicates(ws: holdfast.Workspace, table: str, as_json: bool) -> None:
    version, space, bounds = ws.version, ws.dcs.space(table), dc_bounds(ws.dcs.ref(table))

    def document() -> dict[str, Any]:
        groups = [{**group.to_dict(), "operators": list(group.operators)} for group in space.groups]
        fields = {"version": version, "table": table, "n_predicates": space.n_comparisons, "groups": groups}
        return {**fields, "bounds": bounds} if bounds else fields

    tell(as_json, document, print_predicates, table, space, version=version, bounds=bounds)


def _explain_indexes(ws: holdfast.Workspace, table: str, as_json: bool) -> None:
    version, indexes = ws.version, ws.dcs.indexes(table)
    tell(as_json, lambda: {"version": version, **indexes.to_dict()}, print_indexes, indexes, version=version)


def _fd_of(names: Sequence[str], texts: Sequence[str]) -> str | None:
    """The functional dependency that arguments ask for; None if they are columns."""
    arrows = [text for text in texts if ARROW in text and text not in names]
    if not arrows:
        if texts[-1] == "-" and "-" not in names:
            raise UsageError(
                "there is no column '-'. If this was an arrow, the shell took its > for a redirection: put "
                "the dependency in quotes, such as 'zip -> city'."
            )
        return None
    return _only(texts, arrows, "functional dependency", "zip, street -> city")


def _only(texts: Sequence[str], such: Sequence[str], noun: str, example: str) -> str:
    """The one argument that there is; of several all may be `such`, or what the shell made of one."""
    if len(texts) > 1 and len(such) == len(texts):
        raise UsageError(f"one {noun} is given at a time, and here are {len(texts)}: {listing(texts)}.")
    if len(texts) > 1:
        raise UsageError(f"put the whole {noun} in one argument, such as {example!r}.")
    return texts[0]


def verify(ctx: typer.Context, as_json: Json = False) -> None:
    """Check every live file of the workspace against its checksum."""
    from holdfast.core.store.format import hashing_note

    with opened(ctx) as ws:
        n_files, version = ws.verify(), ws.version
        note = hashing_note(ws.root)
    notes = [] if note is None else [note]

    def report(paper: Paper) -> None:
        paper.line(f"{plural(n_files, 'file')}, all as committed (version {version})")
        for note in notes:
            paper.line(f"  note: {note}")

    tell(as_json, lambda: {"version": version, "n_files": n_files, "notes": notes}, report)
