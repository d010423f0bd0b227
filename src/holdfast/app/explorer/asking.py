"""What an `ask` of an address is about: the reader that knows it, and what to give it."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast.core.words.asking import form_of
from holdfast.core.words.condition import read_condition
from holdfast.core.words.notation import parse_fd
from holdfast.core.words.row_rule import parse_row_rule
from holdfast.core.words.rule_text import located
from holdfast.core.words.schema import Schema
from holdfast.errors import HoldfastError


def asked(ws: holdfast.Workspace, table: str, ask: str) -> tuple[Any, tuple[Any, ...]]:
    """(reader, arguments) of what `ask_of` writes, and of what people type.

    A column's name alone asks for it as a key, unless it says something else: `ask_of` does not know the
    columns of the table, and writes keys in brackets.
    """
    schema = ws.schema(table)
    if ask in schema.names and not _reads(ask, schema):
        return ws.keys, (table, (ask,))
    return ws.readers.read(table, ask)


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
