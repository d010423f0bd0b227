"""SQL that would repair a table: an UPDATE for each row, to be read before anybody runs it.

A row is named by a key none of whose columns is repaired, or by all of its columns, and by the values that
are to be replaced: a statement that does not find its row as it was changes nothing. A row that SQL cannot
say has a comment that says why, and no statement.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.app.export.conditions import Untold, literal
from holdfast.app.export.sql import DialectName, commented, quoted, spelling_of, sql_type
from holdfast.app.report.texts import fd_text, name_text
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
        if value is None:
            return f"{columns[name]} IS NULL"
        return f"{columns[name]} = {sql_literal(value, types[name], dialect)}"

    for start in range(0, len(rows), ROWS_AT_A_TIME):
        some = rows[start : start + ROWS_AT_A_TIME]
        ids = repairs.row_ids[[cells[0] for cells in some]]
        before = python_rows(repairs.relation.fetch(ids))
        carriers = np.unique(np.concatenate([repairs.carriers[cells] for cells in some]))
        after = dict(zip(carriers.tolist(), python_rows(repairs.relation.fetch(carriers)), strict=True))
        for row_id, cells, old in zip(ids.tolist(), some, before, strict=True):
            new: dict[str, Any] = {}
            remarks = []
            for i in cells.tolist():
                name = schema.names[repairs.columns[i]]
                new[name] = after[int(repairs.carriers[i])][name]
                said = "; ".join(
                    fd_text(fd.lhs, fd.rhs) for fd in map(repairs.fds.__getitem__, repairs.said_by[i])
                )
                remarks.append(
                    f"row {row_name(row_id)}, {name_text(name)}: confidence {repairs.confidence[i]:.2f}, "
                    f"{repairs.votes[i]} of {repairs.voters[i]} votes: {said}"
                )
            try:
                literals = {name: sql_literal(value, types[name], dialect) for name, value in new.items()}
                where = " AND ".join(equals(name, old[name]) for name in dict.fromkeys([*key, *new]))
            except Untold as why:
                statement = []
                remarks.append(f"no UPDATE: {why}")
            else:
                assigned = ", ".join(f"{columns[name]} = {text}" for name, text in literals.items())
                statement = [f"UPDATE {table} SET {assigned} WHERE {where};"]
            lines = [line for remark in remarks for line in commented(remark)]
            yield "\n".join([*lines, *statement]) + "\n"


def sql_literal(value: Any, type_: Type, dialect: DialectName) -> str:
    """A value as SQL writes it; `Untold` if it cannot.

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
        return literal(str(value))
    if isinstance(value, float):
        if math.isfinite(value):
            return repr(value)
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST({literal(name)} AS {sql_type(type_, dialect)[0]})"
    if type_.family == "decimal":
        return f"{value:f}"  # with an exponent it would be a float
    if type_.family in ("int", "uint"):
        return str(value)
    return f"CAST({literal(str(plain(value)))} AS {sql_type(type_, dialect)[0]})"
