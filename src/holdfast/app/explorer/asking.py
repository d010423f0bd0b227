"""What an address or a request of the page is about: `ask` names one dependency of a table."""

from __future__ import annotations

import json
from typing import Any

import holdfast
from holdfast.core.words.dependency import Ind, Side
from holdfast.errors import UsageError, shorten
from holdfast.kind import entries


def asked(ws: holdfast.Workspace, table: str, ask: str) -> tuple[Any, tuple[Any, ...]]:
    """(reader, arguments) of an `ask`: what a dependency says as JSON, or its text as lists have it."""
    if ask.startswith("{"):
        return _of_fields(ws, table, ask)
    names = ws.schema(table).names
    if ask not in names and ask.endswith("]"):
        left, within, right = ask.partition("] in ")
        if within:
            other, _, columns = right[:-1].partition("[")
            return ws.inds, (Side(table, _listed(left.partition("[")[2])), Side(other, _listed(columns)))
        if ask.startswith("["):
            return ws.keys, (table, _listed(ask[1:-1]))
    return ws.asked(table, ask, None)


def _listed(columns: str) -> tuple[str, ...]:
    return tuple(filter(None, columns.split(", ")))


def _of_fields(ws: holdfast.Workspace, table: str, ask: str) -> tuple[Any, tuple[Any, ...]]:
    try:
        fields = json.loads(ask)
        dependency = entries()[fields["kind"]].dependency.from_dict({"table": table, **fields})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(f"{shorten(ask)} names no dependency of table {table!r}.") from None
    if dependency.table != table:
        raise UsageError(f"{dependency.name} is about table {dependency.table!r}, not {table!r}.")
    match dependency.kind:
        case "ucc":
            return ws.keys, (table, dependency.columns)
        case "fd":
            return ws.fds, (table, dependency.lhs, dependency.rhs)
        case "ind":
            assert isinstance(dependency, Ind)
            return ws.inds, (dependency.dependent, dependency.referenced)
        case "dc":
            return ws.dcs, (table, dependency.name)
        case "row":
            return ws.row_rules, (table, dependency.name)
        case "check" | "profile":
            return ws.checks, (table, dependency.name)
        case _:
            return ws.elsewhere[dependency.kind], (table, dependency.name)
