"""Commands about foreign keys: which there seem to be, and how other tools are told."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

import holdfast
from holdfast.app.calls import opened, tell
from holdfast.app.options import All, Dialect, Json, MaxMissing, Output, SqlDialect
from holdfast.app.report.links import print_links
from holdfast.app.which_table import OneTable, ThisTable, one_table
from holdfast.app.writing import print_written, written_to
from holdfast.core.words.dependency import Ucc
from holdfast.core.words.row_rule import RowRule
from holdfast.errors import UsageError, plural

if TYPE_CHECKING:
    from holdfast.app.export import ExportTable, Model
    from holdfast.order import Order


class ExportFormat(StrEnum):
    sql = "sql"
    dbt = "dbt"
    mermaid = "mermaid"
    graphviz = "graphviz"
    svg = "svg"


def links(
    ctx: typer.Context,
    only: ThisTable = None,
    table: OneTable = None,
    max_error: MaxMissing = None,
    reasons: Annotated[bool, typer.Option("--reasons", help="All reasons, not only the weightiest.")] = False,
    everything: All = False,
    as_json: Json = False,
) -> None:
    """Rank inclusions as foreign keys, and say why.

    A score is between 0 and 1; what is over 0.5 is proposed. Reasons add points to it, or take some away.
    """
    with opened(ctx) as ws:
        linkage, version = ws.inds.links(one_table(only, table), max_error=max_error), ws.version
    tell(
        as_json,
        lambda: {"version": version, **linkage.to_dict()},
        print_links,
        linkage,
        version=version,
        reasons=reasons,
        everything=everything,
    )


def export(
    ctx: typer.Context,
    format: Annotated[ExportFormat, typer.Option(help="What to write.")] = ExportFormat.sql,
    dialect: SqlDialect = None,
    all_keys: Annotated[
        bool,
        typer.Option("--all-keys", help="Every minimal key (and every row rule), not only the telling ones."),
    ] = False,
    max_error: MaxMissing = None,
    output: Output = None,
) -> None:
    """Write keys and foreign keys as SQL, dbt tests or a diagram.

    It is a proposal: what holds in the data, not what was declared. SQL also has CHECK constraints, of
    the row rules that are tracked and of pinned conditions, which dbt tests, too.
    """
    if dialect is not None and format is not ExportFormat.sql:
        raise UsageError(f"--dialect is for SQL, not for {format.value}: leave it out.")
    from holdfast.app.export import choose_keys

    with opened(ctx) as ws:
        model = model_of(ws, max_error)
        rules = row_rules_of(ws, model, max_error or 0.0) if format is ExportFormat.sql else []
    text = _written(model, rules, format, dialect or Dialect.ansi, all_keys=all_keys)
    with written_to(output) as file:
        file.write(text)
    counts = f"{plural(len(model.tables), 'table')}, {plural(len(model.foreign_keys), 'foreign key')}"
    left_out = sum(keys.left_out for keys in choose_keys(model, all_keys=all_keys).values())
    if left_out:
        counts += f"; left out: {plural(left_out, 'key')}, all with --all-keys"
    print_written(output, counts, model.version)


def row_rules_of(ws: holdfast.Workspace, model: Model, max_error: float = 0.0) -> list[RowRule]:
    """The row rules of the tables of an export, of the same version: those that hold, then those that almost
    do, which are no more than comments."""
    rules = []
    for error in (0.0, max_error) if max_error else (0.0,):
        for table in model.tables:
            listed = ws.dependencies("row", table.name, model.version or None, max_error=error)
            rules += [r for r in listed if isinstance(r, RowRule) and bool(r.n_exceptions) == bool(error)]
    return rules


def _written(
    model: Model, rules: Sequence[RowRule], format: ExportFormat, dialect: Dialect, *, all_keys: bool
) -> str:
    from holdfast.app.export import FORMATS, checks_of, to_sql

    if format is ExportFormat.sql:
        checks = checks_of(model, rules, dialect.value, all_rules=all_keys)
        return to_sql(model, dialect.value, all_keys=all_keys, checks=checks)
    return FORMATS[format.value](model, all_keys=all_keys)


def model_of(ws: holdfast.Workspace, max_error: float | None = None, *, with_broken: bool = False) -> Model:
    """What an export is made from: all tables with their keys, and the foreign keys that are proposed.

    Without a table that takes part in inclusions there are keys only. `with_broken`: those too that held once
    and miss more now than a proposal may.
    """
    from holdfast.app.export import ForeignKey, Model

    at = ws.version or None  # all of it of one version, whoever commits meanwhile
    names = ws.tables(at)
    primary: dict[str, tuple[str, ...]] = {}
    foreign_keys: list[ForeignKey] = []
    if any("ind" in ws.kinds(name, at) for name in names):
        linkage = ws.inds.links(max_error=max_error, at=at, with_broken=with_broken)
        primary = dict(linkage.primary_keys)
        foreign_keys = [
            ForeignKey(link.dependent, link.referenced, link.score, link.error, link.proved)
            for link in linkage.links
            if link.chosen
        ]
    order = ws.readers.order(at)  # of all tables at once: it reads every pin
    referred = {(f.referenced.table, f.referenced.columns) for f in foreign_keys}
    tables = tuple(
        export_table(ws, name, at, linked, order, is_referred=(name, linked) in referred)
        for name in names
        for linked in [primary.get(name)]
    )
    pins = tuple(pin for pin in ws.pins(at=at) if pin.kind == "check")
    return Model(at or 0, tables, tuple(foreign_keys), pins)


def export_table(
    ws: holdfast.Workspace,
    name: str,
    at: int | None,
    linked: tuple[str, ...] | None = None,
    order: Order | None = None,
    *,
    is_referred: bool = False,
) -> ExportTable:
    """What an export says of one table. `linked`: the key that `links` has chosen; it is the primary key if a
    foreign key refers to it, or it would be worth it by itself; else the one that every report tells is. A
    pinned key that is not unique now stays the primary key unless another one looks more like it; what is
    pinned is weighed as if it had outlived everything."""
    from holdfast.app.export import ExportTable
    from holdfast.core.words.key_score import WORTH

    muted = ws.readers.muted_at(at)
    keys = tuple(k.columns for k in ws.dependencies("ucc", name, at) if isinstance(k, Ucc) and k not in muted)
    schema, n_rows, not_null = ws.schema(name, at), ws.n_rows(name, at), ws.inds.not_null(name, at)
    order = order or ws.readers.order(at)
    of_table, longest = order.table(name), ws.inds.longest(name, at)
    distinct, stability = of_table.distinct, of_table.stability(keys)
    is_worth = linked is not None and (is_referred or of_table.key_scores(linked) >= WORTH)
    primary = linked if is_worth else of_table.primary_key
    pinned = [pin for pin in order.pins if pin.kind == "ucc" and pin.table == name]
    broken = tuple(pin for pin in pinned if not pin.holds or pin.n_violations)
    if broken:
        relied = {frozenset(pin.columns) for pin in pinned}

        def score(key: tuple[str, ...]) -> float:
            return float(of_table.key_scores.scores([key], 1.0 if frozenset(key) in relied else None)[0])

        primary = max([*(pin.columns for pin in broken), *([primary] if primary else [])], key=score)
    with_nulls = frozenset(schema.names) - not_null if n_rows else frozenset()
    return ExportTable(
        name, schema, n_rows, keys, primary, not_null, longest, distinct, stability, with_nulls, broken
    )
