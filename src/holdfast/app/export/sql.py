"""SQL DDL: tables with their keys and foreign keys, in an order in which a database takes them.

The script runs as it is: what a database would refuse is a comment that says why. All names are quoted,
so no list of reserved words has to be kept up, and letters keep their case.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal, get_args

from holdfast.app.export.model import (
    ExportTable,
    ForeignKey,
    Model,
    broken_text,
    choose_keys,
    creation_order,
    header,
)
from holdfast.app.export.names import DIGEST, digest, fit, lower_ascii
from holdfast.app.report.texts import columns_text, name_text
from holdfast.core.words.schema import Type

if TYPE_CHECKING:
    from holdfast.app.export.checks import Checks

DialectName = Literal["ansi", "postgres", "duckdb"]
DIALECTS: tuple[DialectName, ...] = get_args(DialectName)
CONSTRAINT_NAME_LENGTH = 48


@dataclass(frozen=True, slots=True)
class _Dialect:
    """What a database takes: the bytes of a name, whether `A` is `a`, the columns of a key and the bytes of
    its values, and whether a foreign key can be added to a table that exists."""

    name: DialectName
    title: str
    max_name: int | None
    ignores_case: bool
    max_key_columns: int | None
    max_key_bytes: int | None
    alters: bool

    def fit(self, names: Iterable[str]) -> dict[str, str]:
        """A name that the database takes for each name."""
        return fit(names, max_bytes=self.max_name, ignores_case=self.ignores_case)

    def refusal(self, table: ExportTable, columns: Sequence[str]) -> str:
        """Why these columns can be no key here, however unique they are, or ""."""
        if self.max_key_columns is not None and len(columns) > self.max_key_columns:
            return f"a key of {self.title} has at most {self.max_key_columns} columns"
        sizes = {c: table.longest.get(c, 0) for c in columns}
        # Of each value a length and a gap, of the whole a header. A value may be compressed; that is no rule.
        total = 8 + sum(size + 8 for size in sizes.values())
        if self.max_key_bytes is not None and total > self.max_key_bytes:
            longest = max(sizes, key=sizes.__getitem__)
            return (
                f"a value of {name_text(longest)} has {sizes[longest]:,} bytes, and an index of {self.title} "
                f"takes {self.max_key_bytes:,} a row"
            )
        return ""


SPELLINGS = {
    "ansi": _Dialect("ansi", "SQL", 128, False, None, None, True),
    "postgres": _Dialect("postgres", "PostgreSQL", 63, False, 32, 2704, True),  # a third of a page
    "duckdb": _Dialect("duckdb", "DuckDB", None, True, None, None, False),
}


def to_sql(
    model: Model,
    dialect: DialectName = "ansi",
    *,
    all_keys: bool = False,
    checks: Checks | None = None,
) -> str:
    """CREATE TABLE statements, parents first, and ALTER TABLE for what cannot be said in them.

    Declared are the keys of `choose_keys`, NOT NULL for columns known to have none, the foreign keys that
    hold and refer to a key, and `checks`; the others are comments. Linear in the text, after
    `creation_order`.
    """
    return SqlScript(model, spelling_of(dialect), all_keys, checks).text()


def spelling_of(dialect: DialectName) -> _Dialect:
    if dialect not in SPELLINGS:
        raise ValueError(f"unknown SQL dialect {dialect!r}; known are {', '.join(DIALECTS)}")
    return SPELLINGS[dialect]


# --- Names and types --------------------------------------------------------------------------------------


def quoted(name: str) -> str:
    """A delimited identifier.

    >>> print(quoted('the "best" one'))
    "the ""best"" one"
    """
    return '"' + name.replace('"', '""') + '"'


def listed(names: Iterable[str]) -> str:
    return f"({', '.join(map(quoted, names))})"


def commented(text: str) -> list[str]:
    """The text as comment lines. A line end inside of a quoted name must not end the comment."""
    return [f"-- {line}".rstrip() for line in text.splitlines()]


def script_of(blocks: Iterable[Iterable[str]]) -> str:
    """Blocks of lines, with an empty line between them."""
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def sql_type(type: Type, dialect: DialectName) -> tuple[str, str]:
    """The type of a column, and a remark if not all values fit ("" if they do).

    >>> sql_type(Type("decimal", precision=12, scale=2), "ansi")
    ('DECIMAL(12,2)', '')
    """
    fine = type.unit == "ns"
    cut = "nanoseconds do not fit"
    match type.family:
        case "int":
            return "BIGINT", ""
        case "uint":
            return {"ansi": "DECIMAL(20,0)", "postgres": "NUMERIC(20,0)", "duckdb": "UBIGINT"}[dialect], ""
        case "float":
            return "DOUBLE" if dialect == "duckdb" else "DOUBLE PRECISION", ""
        case "decimal":
            # A scale below zero or above the precision is for Arrow only: the same numbers, said otherwise.
            scale = max(type.scale, 0)
            precision = max(type.precision - min(type.scale, 0), scale, 1)
            if dialect == "duckdb" and precision > 38:
                return "VARCHAR", f"as text: {type} has more than 38 digits"
            return f"{'NUMERIC' if dialect == 'postgres' else 'DECIMAL'}({precision},{scale})", ""
        case "bool":
            return "BOOLEAN", ""
        case "date":
            return "DATE", ""
        case "time":
            # Without digits, a TIME of standard SQL has whole seconds only.
            return f"TIME({9 if fine else 6})" if dialect == "ansi" else "TIME", (
                cut if fine and dialect != "ansi" else ""
            )
        case "timestamp":
            zone = " WITH TIME ZONE" if type.utc else ""
            if dialect == "ansi":
                return f"TIMESTAMP({9 if fine else 6}){zone}", ""
            if dialect == "duckdb" and fine and not type.utc:
                return "TIMESTAMP_NS", ""
            return f"TIMESTAMP{zone}", cut if fine else ""
        case "text":
            return "TEXT" if dialect == "postgres" else "VARCHAR", ""
        case "binary":
            return {"ansi": "VARBINARY", "postgres": "BYTEA", "duckdb": "BLOB"}[dialect], ""


# PostgreSQL casts a foreign key's value to the type of what it refers to only upwards.
_NUMBERS = {"int": 0, "uint": 1, "decimal": 1, "float": 2}


def _comparable(child: Type, parent: Type, dialect: DialectName) -> bool:
    """Whether a foreign key may go from a column of one type to a column of another."""
    if dialect == "duckdb":
        return sql_type(child, dialect)[0] == sql_type(parent, dialect)[0]
    if child.family in _NUMBERS and parent.family in _NUMBERS:
        return dialect == "ansi" or _NUMBERS[child.family] <= _NUMBERS[parent.family]
    return child.family == parent.family and child.utc == parent.utc


@dataclass(frozen=True, slots=True)
class SqlConstraint:
    """A key (`pk`, `uq`) of the first columns, a foreign key (`fk`) from them to those of `parent`, or a
    condition on them (`ck`)."""

    kind: Literal["pk", "uq", "fk", "ck"]
    table: str
    columns: tuple[str, ...]
    parent: str = ""
    referenced: tuple[str, ...] = ()


def constraint_names(constraints: Sequence[SqlConstraint], tables: Iterable[str]) -> dict[SqlConstraint, str]:
    """A short name for each, such as `orders_customer_fk`.

    A name depends on its constraint alone. Where two would get the same one, or that of a table (whose name
    an index must not have), or where it is too long, a digest of the whole constraint is part of it.
    """

    def plain(c: SqlConstraint) -> str:
        words = "_".join((c.table,) if c.kind == "pk" else (c.table, *c.columns))
        return re.sub(r"[^a-z0-9]+", "_", lower_ascii(words)).strip("_")

    wanted = {c: f"{plain(c)}_{c.kind}" for c in constraints}
    often = Counter(wanted.values())
    taken = {lower_ascii(t) for t in tables}
    names: dict[SqlConstraint, str] = {}
    for c, name in wanted.items():
        if plain(c) and often[name] == 1 and name not in taken and len(name) <= CONSTRAINT_NAME_LENGTH:
            names[c] = name
    taken.update(names.values())
    for c in wanted:
        if c in names:
            continue
        whole = repr((c.kind, c.table, c.columns, c.parent, c.referenced))
        for length in count(DIGEST):
            end = f"{digest(whole, length)}_{c.kind}"
            start = plain(c)[: CONSTRAINT_NAME_LENGTH - len(end) - 1].rstrip("_")
            names[c] = f"{start or 'c'}_{end}"
            if names[c] not in taken:
                break
        taken.add(names[c])
    return names


# --- The script -------------------------------------------------------------------------------------------


class SqlScript:
    """One run of `to_sql`: what is decided once and needed all over."""

    def __init__(self, model: Model, dialect: _Dialect, all_keys: bool, checks: Checks | None = None) -> None:
        self.model = model
        self.checks = checks
        self.dialect = dialect
        self.tables = model.by_name()
        self.keys = choose_keys(model, all_keys=all_keys)
        columns = {t.name: set(t.schema.names) for t in model.tables}
        for foreign_key in model.foreign_keys:
            side = foreign_key.referenced
            columns.setdefault(side.table, set()).update(side.columns)
        self.table_names = dialect.fit(columns)
        self.column_names = {
            # A table's own columns come in their order: the first of two that collide keeps its name.
            name: dialect.fit(self.tables[name].schema.names if name in self.tables else sorted(referenced))
            for name, referenced in columns.items()
        }
        self.obstacles = {f: reason for f in model.foreign_keys if (reason := self._obstacle(f))}
        usable = [f for f in model.foreign_keys if f not in self.obstacles]
        self.order, self.late = creation_order(model, usable)
        if not dialect.alters:
            self._do_without_alter()
        self.constraints = {f: self._constraint(f) for f in model.foreign_keys}
        names = [c for t in model.tables for c in (*self._key_constraints(t), *self._broken(t))]
        names += self.constraints.values()
        self.names = constraint_names(names, self.table_names.values())

    def _do_without_alter(self) -> None:
        """What closes a cycle cannot be had, and what refers to its own table could not be loaded."""
        title = self.dialect.title
        for f in self.model.foreign_keys:
            if f not in self.late:
                continue
            if f.dependent.table == f.referenced.table:
                reason = f"{title} takes no row before the one that it refers to, not even in one statement"
                self.obstacles[f] = f"it refers to its own table, and {reason}"
            else:
                reason = f"{title} adds no foreign key to a table that exists"
                self.obstacles[f] = f"it closes a cycle, and {reason}"
        self.late = frozenset()

    def _obstacle(self, foreign_key: ForeignKey) -> str:
        """Why this cannot be declared, or ""."""
        child, parent = foreign_key.dependent, foreign_key.referenced
        if not foreign_key.holds:
            return f"{'it does not hold: ' if foreign_key.proved else ''}{foreign_key.doubt}"
        if parent.table not in self.tables:
            return f"{name_text(parent.table)} is not part of this export"
        table = self.tables[parent.table]
        if self.keys[parent.table].declared(parent.columns) is None:
            if () in table.keys:
                return f"{name_text(parent.table)} has at most one row, and no key to refer to"
            if not table.keys:
                return f"no key of {name_text(parent.table)} is known"
            return f"{columns_text(parent.columns)} is not unique in {name_text(parent.table)}"
        if refusal := self.dialect.refusal(table, parent.columns):
            return refusal
        for a, b in foreign_key.pairs:
            types = (declared_type(self.tables[child.table], a), declared_type(table, b))
            if not _comparable(*types, self.dialect.name):
                child_type, parent_type = (sql_type(t, self.dialect.name)[0] for t in types)
                return f"{name_text(a)} is {child_type}, and {name_text(b)} is {parent_type}"
        return ""

    def _constraint(self, foreign_key: ForeignKey) -> SqlConstraint:
        """The foreign key with its pairs of columns in the order of the key that it refers to."""
        pairs = list(foreign_key.pairs)
        parent = foreign_key.referenced
        if parent.table in self.keys and (key := self.keys[parent.table].declared(parent.columns)):
            pairs.sort(key=lambda pair: key.index(pair[1]))
        columns, referenced = zip(*pairs, strict=True)
        return SqlConstraint("fk", foreign_key.dependent.table, columns, parent.table, referenced)

    def _key_constraints(self, table: ExportTable) -> list[SqlConstraint]:
        chosen = self.keys[table.name]
        primary = [SqlConstraint("pk", table.name, chosen.primary)] if chosen.primary else []
        return primary + [SqlConstraint("uq", table.name, columns) for columns in chosen.unique]

    def _broken(self, table: ExportTable) -> list[SqlConstraint]:
        """The pinned keys that are not unique now, as they would be declared."""
        primary = set(table.primary_key or ())
        kinds: list[Literal["pk", "uq"]] = ["pk" if set(p.columns) == primary else "uq" for p in table.broken]
        return [SqlConstraint(k, table.name, p.columns) for k, p in zip(kinds, table.broken, strict=True)]

    # --- Text ---

    def text(self) -> str:
        parts = [commented(header(self.model))]
        parts += [self._create(table) for table in self.order]
        late = [f for f in self.model.foreign_keys if f in self.late]
        if late:
            parts.append([f"{self._alter(f)}  -- score {f.score:.2f}" for f in late])
        parts += [
            [*commented(f"{f}: {reason} (score {f.score:.2f})"), *commented(self._alter(f))]
            for f, reason in self.obstacles.items()
        ]
        return script_of(parts)

    def _columns(self, table: str, columns: Iterable[str]) -> str:
        return listed(self.column_names[table][c] for c in columns)

    def _clause(self, constraint: SqlConstraint) -> str:
        words = {"pk": "PRIMARY KEY", "uq": "UNIQUE", "fk": "FOREIGN KEY"}[constraint.kind]
        clause = f"CONSTRAINT {quoted(self.names[constraint])} {words} "
        clause += self._columns(constraint.table, constraint.columns)
        if constraint.kind == "fk":
            clause += f" REFERENCES {quoted(self.table_names[constraint.parent])} "
            clause += self._columns(constraint.parent, constraint.referenced)
        return clause

    def _alter(self, foreign_key: ForeignKey) -> str:
        return self._added(self.constraints[foreign_key])

    def _added(self, constraint: SqlConstraint) -> str:
        name = quoted(self.table_names[constraint.table])
        return f"ALTER TABLE {name} ADD {self._clause(constraint)};"

    def _create(self, table: ExportTable) -> list[str]:
        chosen = self.keys[table.name]
        remarks = chosen.remark(table.name)
        if chosen.nullable:
            remarks.append(not_primary(table.primary_key or (), chosen.nullable))
        for pin, constraint in zip(table.broken, self._broken(table), strict=True):
            remarks.append(f"{broken_text(pin)}\n{self._added(constraint)}")
        remarks += chosen.remark_left_out(table)
        name = self.table_names[table.name]
        if name != table.name:
            remarks.append(f"in the data, the table is {name_text(table.name)}")
        if self.checks is not None:
            remarks += self.checks.comments.get(table.name, ())
        names = self.column_names[table.name]
        elements = [column_element(table, c, names[c], self.dialect) for c in table.schema.names]
        for constraint in self._key_constraints(table):
            if refusal := self.dialect.refusal(table, constraint.columns):
                remarks.append(f"{columns_text(constraint.columns)} is unique, but {refusal}")
            else:
                elements.append((self._clause(constraint), ""))
        for foreign_key, constraint in self.constraints.items():
            inline = foreign_key not in self.obstacles and foreign_key not in self.late
            if inline and constraint.table == table.name:
                elements.append((self._clause(constraint), f"score {foreign_key.score:.2f}"))
        if self.checks is not None:
            elements += self.checks.elements.get(table.name, ())
        if not elements:
            remarks.append(f"{name_text(table.name)} has no columns")
        return create_table(name, elements, remarks)


def not_primary(key: Sequence[str], nullable: Sequence[str]) -> str:
    """Why a key that was chosen is not declared as the primary key."""
    null = f"there may be NULL in {columns_text(nullable)}"
    return f"{columns_text(key)} is UNIQUE and not the PRIMARY KEY: {null}"


def column_element(table: ExportTable, column: str, name: str, dialect: _Dialect) -> tuple[str, str]:
    """A column of CREATE TABLE, under a name that fits, and a remark."""
    type, remark = sql_type(declared_type(table, column), dialect.name)
    remarks = [f"in the data: {name_text(column)}"] if name != column else []
    not_null = " NOT NULL" if column in table.filled else ""
    return f"{quoted(name)} {type}{not_null}", "; ".join(remarks + ([remark] if remark else []))


def create_table(name: str, elements: Sequence[tuple[str, str]], remarks: Iterable[str]) -> list[str]:
    """The lines of CREATE TABLE, remarks before it; without elements there are only those."""
    lines = [line for remark in remarks for line in commented(remark)]
    if not elements:
        return lines
    lines.append(f"CREATE TABLE {quoted(name)} (")
    for i, (element, remark) in enumerate(elements):
        comma = "," if i < len(elements) - 1 else ""
        lines.append(f"  {element}{comma}" + (f"  -- {remark}" if remark else ""))
    return [*lines, ");"]


def declared_type(table: ExportTable, column: str) -> Type:
    return table.schema.types[table.schema.names.index(column)]
