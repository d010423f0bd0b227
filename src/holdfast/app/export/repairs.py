"""SQL that would repair a table: an UPDATE for each row, to be read before anybody runs it.

A row is named by a key none of whose columns is repaired, or by all of its columns, and by the values that
are to be replaced: a statement that does not find its row as it was changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.app.export.sql import DialectName, commented, quoted, spelling_of, sql_type
from holdfast.app.report.texts import name_text
from holdfast.core.cover.news import plain
from holdfast.core.store.arrow_types import python_rows
from holdfast.core.words.change import row_name
from holdfast.core.words.schema import Type
from holdfast.errors import plural
from holdfast.kind import entries

if TYPE_CHECKING:
    from holdfast.functional.repairs import Repairs

ROWS_AT_A_TIME = 1 << 12


def identifying(repairs: Repairs, keys: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The columns that name a row: the narrowest key none of which is repaired; else all."""
    names = repairs.relation.schema.names
    repaired = {names[c] for c in np.unique(repairs.columns).tolist()}
    good = (tuple(key) for key in keys if key and not repaired & set(key))
    return min(good, key=len, default=tuple(names))


def repair_sql(repairs: Repairs, key: Sequence[str], dialect: DialectName) -> Iterator[str]:
    """The script, piece by piece: what proposed it, then an UPDATE for each row."""
    spelling = spelling_of(dialect)
    schema = repairs.relation.schema
    types = dict(zip(schema.names, schema.types, strict=True))
    columns = {name: quoted(fitted) for name, fitted in spelling.fit(schema.names).items()}
    table = quoted(spelling.fit([repairs.table])[repairs.table])
    n_rows = len(np.unique(repairs.row_ids))
    intro = (
        f"holdfast, version {repairs.version} of the workspace: {plural(len(repairs), 'repair')} of "
        f"{plural(n_rows, 'row')} of {name_text(repairs.table)}, proposed by "
        f"{entries()['fd'].counted(len(repairs.fds))}, applied by nobody"
    )
    yield "\n".join(commented(intro)) + "\n"
    order = np.argsort(repairs.row_ids, kind="stable")
    cuts = np.flatnonzero(np.diff(repairs.row_ids[order])) + 1
    rows = np.split(order, cuts) if len(order) else []

    def equals(name: str, value: Any) -> str:
        literal = sql_literal(value, types[name], dialect)
        return f"{columns[name]} IS NULL" if value is None else f"{columns[name]} = {literal}"

    for start in range(0, len(rows), ROWS_AT_A_TIME):
        some = rows[start : start + ROWS_AT_A_TIME]
        ids = repairs.row_ids[[cells[0] for cells in some]]
        before = python_rows(repairs.relation.fetch(ids))
        carriers = np.unique(np.concatenate([repairs.carriers[cells] for cells in some]))
        after = dict(zip(carriers.tolist(), python_rows(repairs.relation.fetch(carriers)), strict=True))
        for row_id, cells, old in zip(ids.tolist(), some, before, strict=True):
            assigned, remarks, changed = [], [], []
            for i in cells.tolist():
                name = schema.names[repairs.columns[i]]
                value = after[int(repairs.carriers[i])][name]
                assigned.append(f"{columns[name]} = {sql_literal(value, types[name], dialect)}")
                changed.append(name)
                said = "; ".join(repairs.fds[f].name for f in repairs.said_by[i].tolist())
                remarks.append(
                    f"row {row_name(row_id)}, {name_text(name)}: confidence {repairs.confidence[i]:.2f}, "
                    f"{repairs.votes[i]} of {repairs.voters[i]} votes: {said}"
                )
            named = dict.fromkeys([*key, *changed])
            where = " AND ".join(equals(name, old[name]) for name in named)
            lines = [line for remark in remarks for line in commented(remark)]
            yield "\n".join([*lines, f"UPDATE {table} SET {', '.join(assigned)} WHERE {where};"]) + "\n"


def sql_literal(value: Any, type_: Type, dialect: DialectName) -> str:
    """A value as SQL writes it.

    >>> sql_literal("it's", Type("text"), "ansi"), sql_literal(None, Type("int"), "ansi")
    ("'it''s'", 'NULL')
    >>> sql_literal(float("inf"), Type("float"), "duckdb")
    "CAST('Infinity' AS DOUBLE)"
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        functions = {"ansi": "X'{}'", "postgres": "decode('{}', 'hex')", "duckdb": "from_hex('{}')"}
        return functions[dialect].format(value.hex())
    if type_.family == "text":
        return _text(str(value))
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST({_text(name)} AS {sql_type(type_, dialect)[0]})"
    if type_.family in ("int", "uint", "decimal"):
        return str(value)
    return f"CAST({_text(str(plain(value)))} AS {sql_type(type_, dialect)[0]})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
