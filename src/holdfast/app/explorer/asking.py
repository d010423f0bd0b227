"""What an `ask` of an address is about: the reader that knows it and what to give it, and the dependency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import holdfast
from holdfast.core.words.asking import form_of
from holdfast.core.words.condition import Condition, columns_of, formula_of, read_condition
from holdfast.core.words.dependency import Dependency, Fd, Ind, Ucc
from holdfast.core.words.notation import inclusion_text, parse_fd
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import parse_row_rule
from holdfast.core.words.rule_text import located
from holdfast.core.words.schema import Schema
from holdfast.denial.written_rules import read_rule
from holdfast.errors import HoldfastError, UsageError


def asked(ws: holdfast.Workspace, table: str, ask: str) -> tuple[Any, tuple[Any, ...]]:
    """(reader, arguments) of what `ask_of` writes, and of what people type.

    A column's name alone asks for it as a key, unless it says something else: `ask_of` does not know the
    columns of the table, and writes keys in brackets.
    """
    schema = ws.schema(table)
    if ask in schema.names and not _reads(ask, schema):
        return ws.keys, (table, (ask,))
    return ws.read(table, ask)


def dependency_asked(ws: holdfast.Workspace, reader: Any, arguments: tuple[Any, ...]) -> Dependency:
    """The dependency that a reader is asked for; an error where it names columns or tables that are not.

    No row is looked at, but perhaps by a class from elsewhere.
    """
    if reader is ws.inds:
        dependent, referenced = arguments
        for side in arguments:
            _columns(ws, side.table, side.columns)
        if len(dependent.columns) != len(referenced.columns) or not dependent.columns:
            raise UsageError(
                f"{inclusion_text(*arguments)} has {len(dependent.columns)} columns on its left side and "
                f"{len(referenced.columns)} on its right one; give as many on each, at least one."
            )
        return Ind(dependent, referenced)
    table, *rest = arguments
    version, schema = ws.version, ws.schema(table)
    if reader is ws.keys:
        return Ucc(table, _columns(ws, table, rest[0]))
    if reader is ws.fds:
        return Fd(table, *rest)
    [text] = rest
    if reader is ws.dcs:
        return Dc(table, read_rule(text, schema, table, version))
    if reader is ws.row_rules:
        return parse_row_rule(text, schema, table=table, version=version)
    if reader is ws.checks:
        node = read_condition(text, schema, table=table, version=version)
        return Condition(table, formula_of(node), columns_of(node))
    dependency: Dependency = reader.explain(table, text).dependency
    return dependency


def _columns(ws: holdfast.Workspace, table: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Columns of a table, each once, in the order of its schema."""
    tables = ws.writer.tables
    version, state = tables.current(table)
    return tuple(state.schema.names[p] for p in tables.positions(state, version, columns))


def _reads(ask: str, schema: Schema) -> bool:
    """Whether a text says something of columns that are there."""
    try:
        match form_of(ask):
            case "fd":
                parse_fd(ask, schema.names)
            case "rule":
                located(ask, schema.names)
            case "row":
                parse_row_rule(ask, schema)
            case "condition":
                read_condition(ask, schema)
    except HoldfastError:
        return False
    return True
