"""SQL for a decomposition: the proposed tables with their keys, parents first, and how the table fills them.

The script runs as it is, next to the table that it takes apart, which it leaves alone. Every proposed table
is a projection, so no INSERT breaks a foreign key. Names are those of `sql`: quoted, and fitted to the
database; a column has the name in every table that it has in the original.
"""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import TopologicalSorter

from holdfast.app.export.model import ExportTable
from holdfast.app.export.sql import (
    DialectName,
    column_element,
    commented,
    create_table,
    listed,
    not_primary,
    quoted,
    script_of,
    spelling_of,
)
from holdfast.app.report.texts import columns_text, fd_text, name_text, safe
from holdfast.functional.normal_forms.proposal import Decomposition, Part


def normal_form_sql(
    proposed: Decomposition,
    source: ExportTable,
    dialect: DialectName = "ansi",
    *,
    version: int,
    all_keys: bool = False,
) -> str:
    """CREATE TABLE with keys and foreign keys, then INSERT INTO ... SELECT DISTINCT, for each proposed table.

    `source` is the table itself, as in an export; of it the schema, the number of rows, the columns without
    NULL and the longest values are needed. A key is the PRIMARY KEY if there is no NULL in it, else UNIQUE.
    Declared are also the keys that foreign keys refer to and, where there are rows enough, those of a single
    column; the others only if asked for, as they may be accidents.
    """
    return _Script(proposed, source, dialect, version, all_keys).text()


class _Script:
    """One run of `normal_form_sql`: what is decided once and needed all over."""

    def __init__(
        self, proposed: Decomposition, source: ExportTable, dialect: DialectName, version: int, all_keys: bool
    ) -> None:
        self.proposed, self.source, self.version, self.all_keys = proposed, source, version, all_keys
        self.dialect = spelling_of(dialect)
        self.columns = self.dialect.fit(source.schema.names)
        self.tables = self.dialect.fit([source.name, *(part.name for part in proposed.parts)])
        self.referenced = {(r.table, r.columns) for part in proposed.parts for r in part.references}
        parts = {part.name: part for part in proposed.parts}
        needs = {part.name: sorted(r.table for r in part.references) for part in proposed.parts}
        self.order = [parts[name] for name in TopologicalSorter(needs).static_order()]

    def text(self) -> str:
        proposed = self.proposed
        respect = "" if proposed.complete else ", with respect to the FDs used"
        title = (
            f"holdfast, version {self.version} of the workspace: {name_text(proposed.table)} in "
            f"{proposed.form.upper()}{respect}; proposed by what holds in the data"
        )
        blocks = [commented(title)]
        if proposed.has_duplicates:
            blocks[0] += commented(f"rows that {name_text(proposed.table)} has several times are there once")
        if not proposed.splits:
            blocks[0] += commented("there is nothing to split")
        else:
            blocks[0] += self._lost()
            blocks += [self._create(part) for part in self.order]
            blocks += [[self._fill(part) for part in self.order]]
        return script_of(blocks)

    def _lost(self) -> list[str]:
        lines = [f"not guarded any more: {fd_text(fd.lhs, fd.rhs)}" for fd in self.proposed.lost]
        lines += [f"not guarded any more: the key {columns_text(key)}" for key in self.proposed.lost_keys]
        if nullable := self._nullable(
            c for part in self.proposed.parts for r in part.references for c in r.columns
        ):
            lines.append(f"join with IS NOT DISTINCT FROM: there may be NULL in {columns_text(nullable)}")
        return [comment for line in lines for comment in commented(line)]

    def _nullable(self, columns: Iterable[str]) -> tuple[str, ...]:
        wanted = set(columns) - self.source.filled
        return tuple(c for c in self.source.schema.names if c in wanted)

    def _listed(self, columns: Iterable[str]) -> str:
        return listed(self.columns[c] for c in columns)

    def _create(self, part: Part) -> list[str]:
        remarks = [safe(part.reason)]
        keys: list[str] = []
        declared = [key for key in part.keys if key and self._is_declared(part, key)]
        for key in declared:
            nullable = self._nullable(key)
            if refusal := self.dialect.refusal(self.source, key):
                remarks.append(f"{columns_text(key)} is unique, but {refusal}")
                continue
            if key == part.primary_key and nullable:
                remarks.append(not_primary(key, nullable))
            primary = key == part.primary_key and not nullable
            keys.append(f"{'PRIMARY KEY' if primary else 'UNIQUE'} {self._listed(key)}")
        if not part.primary_key:
            remarks.append("it has at most one row")
        elif left_out := len(part.keys) - len(declared):
            more = "or more " if part.more_keys else ""
            why = "" if self.source.tells_keys else f"({self.source.few_rows})"
            remarks.append(f"keys that are not declared here: {left_out:,} {more}{why}".rstrip())
        for reference in part.references:
            if self.dialect.refusal(self.source, reference.columns):
                continue  # said of the key that it refers to
            keys.append(
                f"FOREIGN KEY {self._listed(reference.columns)} "
                f"REFERENCES {quoted(self.tables[reference.table])} {self._listed(reference.columns)}"
            )
        elements = [column_element(self.source, c, self.columns[c], self.dialect) for c in part.columns]
        return create_table(self.tables[part.name], elements + [(key, "") for key in keys], remarks)

    def _is_declared(self, part: Part, key: tuple[str, ...]) -> bool:
        return (
            self.all_keys
            or key == part.primary_key
            or (len(key) == 1 and self.source.tells_keys)
            or (part.name, key) in self.referenced
        )

    def _fill(self, part: Part) -> str:
        columns = ", ".join(quoted(self.columns[c]) for c in part.columns)
        return (
            f"INSERT INTO {quoted(self.tables[part.name])} ({columns})\n"
            f"  SELECT DISTINCT {columns} FROM {quoted(self.tables[self.source.name])};"
        )
