"""Exports: DuckDB takes the DDL and enforces it; names of any kind stay names in every format."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.app.export import (
    DIALECTS,
    FORMATS,
    ExportTable,
    ForeignKey,
    Model,
    to_dbt,
    to_graphviz,
    to_mermaid,
    to_sql,
    to_svg,
)
from holdfast.app.export.checks import checks_of
from holdfast.app.export.dbt import needs_quotes
from holdfast.app.export.model import DECLARED, choose_keys, creation_order
from holdfast.app.export.names import fit
from holdfast.app.export.sql import DialectName, quoted, sql_type
from holdfast.app.export.yaml import scalar
from holdfast.core.words.dependency import Side
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.schema import Column, Schema, Type

NAN = float("nan")


def table(
    name: str,
    columns: dict[str, str],
    *keys: tuple[str, ...],
    primary: tuple[str, ...] | None = None,
    not_null: str | tuple[str, ...] = (),
    n_rows: int = 1_000,
    longest: Mapping[str, int] | None = None,
) -> ExportTable:
    schema = Schema(tuple(Column(c, Type.parse(t)) for c, t in columns.items()))
    filled = frozenset(not_null.split() if isinstance(not_null, str) else not_null)
    return ExportTable(name, schema, n_rows, keys, primary, filled, longest or {})


def link(
    child: str, columns: str | tuple[str, ...], parent: str, referenced: str | tuple[str, ...], **how: float
) -> ForeignKey:
    sides = [
        Side(t, tuple(c.split()) if isinstance(c, str) else c)
        for t, c in ((child, columns), (parent, referenced))
    ]
    return ForeignKey(sides[0], sides[1], how.get("score", 0.5), how.get("error", 0.0))


LINES = 'order "lines"'
SHOP = Model(
    7,
    (
        table(
            LINES,
            {"order": "int", "no": "int", "part": "int", "supplier": "int", "line\nend": "text"},
            ("order", "no"),
            primary=("order", "no"),
            not_null="order no part supplier",
        ),
        table(
            "orders",
            {"id": "int", "customer": "int", "day": "date", "total": "decimal(12,2)"},
            ("id",),
            ("customer", "day"),
            primary=("id",),
            not_null="id day",
        ),
        table(
            "customers",
            {"id": "int", "boss": "int", "best order": "int", "Code": "text"},
            ("id",),
            ("Code",),
            primary=("id",),
            not_null="id",
        ),
        table(
            "partsupp",
            {"part": "int", "supplier": "int", "cost": "float"},
            ("part", "supplier"),
            ("supplier", "cost"),
            primary=("part", "supplier"),
            not_null="part supplier",
        ),
        table("profiles", {"customer": "int"}, ("customer",), primary=("customer",), not_null="customer"),
    ),
    (
        link("orders", "customer", "customers", "id", score=0.95),
        link(LINES, "order", "orders", "id", score=0.9),
        link(LINES, "supplier part", "partsupp", "supplier part", score=0.8),
        link("customers", "boss", "customers", "id", score=0.7),
        link("customers", ("best order",), "orders", "id", score=0.3),
        link("profiles", "customer", "customers", "id", score=0.6),
    ),
)


def made(ddl: str) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(ddl)
    return connection


@pytest.fixture(scope="module")
def shared() -> Iterator[duckdb.DuckDBPyConnection]:
    """One connection for all examples of a property: to open one costs more than the example."""
    with duckdb.connect() as connection:
        yield connection


@contextlib.contextmanager
def on_trial(connection: duckdb.DuckDBPyConnection, ddl: str) -> Iterator[duckdb.DuckDBPyConnection]:
    connection.execute("begin")
    try:
        connection.execute(ddl)
        yield connection
    finally:
        connection.execute("rollback")


def declared(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str, tuple[str, ...]]]:
    rows = connection.execute(
        "select table_name, constraint_type, constraint_column_names from duckdb_constraints()"
    ).fetchall()
    return sorted((t, kind, tuple(columns)) for t, kind, columns in rows if kind not in ("NOT NULL", "CHECK"))


# --- SQL: what is declared, and what a database makes of it -----------------------------------------------


def test_duckdb_takes_the_tables_and_enforces_their_keys() -> None:
    db = made(to_sql(SHOP, "duckdb"))
    assert declared(db) == [
        ("customers", "PRIMARY KEY", ("id",)),
        ("customers", "UNIQUE", ("Code",)),
        (LINES, "FOREIGN KEY", ("order",)),
        (LINES, "FOREIGN KEY", ("part", "supplier")),  # in the order of the key, or DuckDB refuses
        (LINES, "PRIMARY KEY", ("order", "no")),
        ("orders", "FOREIGN KEY", ("customer",)),
        ("orders", "PRIMARY KEY", ("id",)),
        ("partsupp", "PRIMARY KEY", ("part", "supplier")),
        ("profiles", "FOREIGN KEY", ("customer",)),
        ("profiles", "PRIMARY KEY", ("customer",)),
    ]
    # A boss below in the same file: no foreign key is in the way. UNIQUE: NULL is no duplicate.
    db.execute("insert into customers values (2, 1, null, null), (3, 1, null, null), (1, null, 10, 'Ann')")
    db.execute("insert into orders values (10, 1, '2024-01-01', 9.99), (11, null, '2024-01-01', null)")
    db.execute("insert into partsupp values (1, 2, 0.5)")
    db.execute(f"insert into {quoted(LINES)} values (10, 1, 1, 2, 'x')")
    for wrong in (
        "insert into customers values (4, null, null, 'Ann')",  # the name is taken
        "insert into customers values (null, null, null, null)",
        "insert into orders values (12, 9, '2024-01-01', null)",  # no such customer
        "insert into orders values (12, 1, null, null)",  # NOT NULL
        f"insert into {quoted(LINES)} values (10, 2, 2, 1, 'x')",  # the parts are there, the pair is not
        f"insert into {quoted(LINES)} values (10, 1, 1, 2, 'x')",
    ):
        with pytest.raises(duckdb.ConstraintException):
            db.execute(wrong)


def test_a_cycle_is_broken_where_the_score_is_lowest() -> None:
    closing = 'ALTER TABLE "customers" ADD CONSTRAINT "customers_best_order_fk" FOREIGN KEY ("best order")'
    for dialect in ("ansi", "postgres"):
        lines = to_sql(SHOP, dialect).split("\n")  # type: ignore[arg-type]
        altered = [line for line in lines if line.startswith("ALTER")]
        assert len(altered) == 2
        assert altered[0].startswith('ALTER TABLE "customers" ADD CONSTRAINT "customers_boss_fk"')
        assert altered[1].startswith(closing)
        assert altered[1].endswith('REFERENCES "orders" ("id");  -- score 0.30')
        assert lines.index('CREATE TABLE "customers" (') < lines.index('CREATE TABLE "orders" (')
    text = to_sql(SHOP, "duckdb")
    boss = "-- customers[boss] in customers[id]: it refers to its own table, and DuckDB takes no row before"
    assert f"\n{boss}" in text
    assert '\n-- ALTER TABLE "customers" ADD CONSTRAINT "customers_boss_fk"' in text
    assert "it closes a cycle, and DuckDB adds no foreign key to a table that exists" in text
    assert f"\n-- {closing}" in text


def test_the_script_says_what_it_is() -> None:
    first = "holdfast, version 7 of the workspace: proposed by what holds in the data, not declared"
    for name, write in FORMATS.items():
        text = write(SHOP)
        assert first in text.split("\n")[0], name
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
    assert to_sql(SHOP).startswith("-- ")


def test_a_foreign_key_that_does_not_hold_is_a_comment() -> None:
    for error, words in ((0.021, "2.1 %"), (1e-7, "1e-05 %"), (NAN, "nan %")):
        model = Model(
            1,
            (
                table("a", {"x": "int"}, ("x",), primary=("x",), not_null="x"),
                table("b", {"x": "int"}),
            ),
            (link("b", "x", "a", "x", error=error),),
        )
        text = to_sql(model, "duckdb")
        assert f"-- b[x] in a[x]: it does not hold: {words} of its values are missing" in text
        assert declared(made(text)) == [("a", "PRIMARY KEY", ("x",))]


PARENT = {"x": "int", "y": "int", "z": "text"}


@pytest.mark.parametrize(
    ("parent", "fk", "unique", "reason"),
    [
        (table("p", PARENT, ("x", "y")), ("x y", "x y"), [("x", "y")], None),
        (table("p", PARENT, ("x",)), ("x y", "x y"), [("x",), ("x", "y")], None),
        (table("p", PARENT, ("x", "y")), ("x", "x"), [], "[x] is not unique in p"),
        (table("p", PARENT), ("x", "x"), [], "no key of p is known"),
        (table("p", PARENT, (), n_rows=1), ("x", "x"), [], "p has at most one row, and no key to refer to"),
        (table("p", PARENT, ("z",)), ("x", "z"), [("z",)], "x is BIGINT, and z is VARCHAR"),
    ],
)
def test_what_a_foreign_key_may_refer_to(
    parent: ExportTable, fk: tuple[str, str], unique: list[Any], reason: str | None
) -> None:
    model = Model(1, (table("c", PARENT), parent), (link("c", fk[0], "p", fk[1]),))
    text = to_sql(model, "duckdb")
    wanted = [("p", "UNIQUE", key) for key in unique]
    if reason is None:
        wanted.insert(0, ("c", "FOREIGN KEY", tuple(fk[0].split())))
    else:
        assert f": {reason} (score 0.50)\n-- ALTER TABLE" in text
    assert declared(made(text)) == sorted(wanted)


def test_a_parent_that_is_left_out() -> None:
    model = Model(1, (table("c", {"x": "int"}),), (link("c", "x", "p", "id"),))
    text = to_sql(model, "duckdb")
    assert "p is not part of this export" in text
    made(text)
    assert "ref('p')" in to_dbt(model)
    assert "p" not in to_mermaid(model).split("erDiagram")[1].split()
    assert "->" not in to_graphviz(model)


def test_a_primary_key_needs_columns_without_null() -> None:
    keyed = table("t", {"a": "int", "b": "int"}, ("a", "b"), primary=("b", "a"), not_null="a")
    text = to_sql(Model(1, (keyed,)), "duckdb")
    assert "-- [b, a] is UNIQUE and not the PRIMARY KEY: there may be NULL in [b]" in text
    assert declared(made(text)) == [("t", "UNIQUE", ("a", "b"))]
    filled = table("t", {"a": "int", "b": "int"}, ("a", "b"), primary=("b", "a"), not_null="a b")
    assert declared(made(to_sql(Model(1, (filled,)), "duckdb"))) == [("t", "PRIMARY KEY", ("b", "a"))]


def test_no_rows_are_no_evidence() -> None:
    empty = table("t", {"a": "int"}, (), not_null="a", n_rows=0)
    text = to_sql(Model(1, (empty,)), "duckdb")
    assert "-- t has at most one row: that nothing is in it twice makes no key" in text
    assert "NOT NULL" not in text
    assert "not_null" not in to_dbt(Model(1, (empty,)))
    assert declared(made(text)) == []


def test_all_keys_only_if_asked_for() -> None:
    wide = [("a", "b"), ("a", "c"), ("b", "c")]
    model = Model(1, (table("t", dict.fromkeys("abcd", "int"), ("d",), *wide),))
    few, many = to_sql(model, "duckdb"), to_sql(model, "duckdb", all_keys=True)
    assert "-- keys of t that are not declared here: 3" in few
    assert declared(made(few)) == [("t", "UNIQUE", ("d",))]
    assert "not declared here" not in many
    assert declared(made(many)) == sorted(("t", "UNIQUE", key) for key in [("d",), *wide])
    assert to_dbt(model, all_keys=True).count("unique_combination_of_columns") == 3
    assert to_dbt(model).count("unique_combination_of_columns") == 0


def test_few_rows_prove_no_key() -> None:
    """Of eight people no two need share a first name; nor need they of two hundred."""
    columns = dict.fromkeys(("id", "code", "first", "last", "born"), "text")
    keys = [("id",), ("code",), ("first",), ("last", "born")]
    for n_rows, unique in ((8, [("code",)]), (50, [("code",)]), (200, [("code",)])):
        people = table("people", columns, *keys, primary=("id",), not_null="id", n_rows=n_rows)
        model = Model(1, (people, table("c", {"code": "text"})), (link("c", "code", "people", "code"),))
        text = to_sql(model, "duckdb")
        assert [c for t, kind, c in declared(made(text)) if kind == "UNIQUE"] == unique
        why = f"in {n_rows} rows values may differ by chance"
        if n_rows >= 100:
            why = "nothing refers to them, and they may be unique by chance"
        assert f"-- keys of people that are not declared here: {4 - 1 - len(unique)} ({why})\n" in text
        assert to_dbt(model).count("- unique\n") == 1 + len(unique)
        every = to_sql(model, "duckdb", all_keys=True)
        assert len([c for t, kind, c in declared(made(every)) if kind == "UNIQUE"]) == 3
        assert "not declared here" not in every


def test_columns_that_refer_to_others_have_their_names_from_there() -> None:
    """That no two customers have the same card today is no rule; had the cards no table, it might be one."""
    columns = {"customer_id": "int", "last_name": "text", "card_id": "int"}
    keys = [("customer_id",), ("last_name",), ("card_id",)]
    customers = table("customer", columns, *keys, primary=("customer_id",), not_null="customer_id")
    card = table("card", {"card_id": "int"}, ("card_id",), primary=("card_id",))
    model = Model(1, (customers, card), (link("customer", "card_id", "card", "card_id"),))
    assert list(choose_keys(model)["customer"].unique) == []
    why = "nothing refers to it, and it may be unique by chance; all columns of 1 refer to other tables"
    assert f"-- keys of customer that are not declared here: 2 ({why})\n" in to_sql(model, "duckdb")
    assert list(choose_keys(Model(1, model.tables))["customer"].unique) == [("card_id",)]
    # What has outlived batches may be a key whatever it is called.
    lasting = dataclasses.replace(customers, stability={("last_name",): 1.0})
    assert ("last_name",) in choose_keys(Model(1, (lasting, card)))["customer"].unique


def test_declared_are_the_keys_that_are_worth_it() -> None:
    """Whatever their width: not what is long, a fraction, or differs by chance; all if that is asked for."""
    columns = {
        "order": "int",
        "no": "int",
        "note": "text",
        "price": "decimal(9,2)",
        "day": "date",
        "code": "text",
    }
    keys = [("note",), ("code",), ("price",), ("order", "no"), ("day", "price")]
    distinct = {"order": 300, "no": 7, "note": 1_000, "price": 1_000, "day": 200, "code": 1_000}
    lines = table("order_lines", columns, *keys, longest={"note": 300, "code": 9})
    model = Model(1, (dataclasses.replace(lines, distinct=distinct),))
    assert list(choose_keys(model)["order_lines"].unique) == [("code",), ("order", "no")]
    assert choose_keys(model)["order_lines"].left_out == 3
    why = "nothing refers to them, and they may be unique by chance"
    assert f"-- keys of order_lines that are not declared here: 3 ({why})\n" in to_sql(model, "duckdb")
    assert len(choose_keys(model, all_keys=True)["order_lines"].unique) == 5


def test_a_foreign_key_without_a_value_is_a_comment() -> None:
    tables = (
        table("film", {"language_id": "int"}),
        table("language", {"id": "int"}, primary=("id",), not_null="id"),
    )
    unproved = ForeignKey(Side("film", ("language_id",)), Side("language", ("id",)), 0.8, 0.0, proved=False)
    text = to_sql(Model(1, tables, (unproved,)), "duckdb")
    assert "-- film[language_id] in language[id]: unproved, as its column has no value (score 0.80)\n" in text
    assert "FOREIGN KEY" not in "".join(line for line in text.splitlines() if not line.startswith("--"))
    assert "severity: warn" in to_dbt(Model(1, tables, (unproved,)))


def test_postgres_takes_no_long_values_in_an_index() -> None:
    """2,704 bytes a row, with a header of eight and a length of four for each value, in steps of eight."""
    columns = {"id": "int", "note": "text", "code": "text"}
    for longest, taken in ((2_688, True), (2_689, False), (21_000, False)):
        noted = table(
            "t",
            columns,
            ("note",),
            ("id", "code"),
            primary=("id", "code"),
            not_null="id code",
            longest={"note": longest, "code": 7},
        )
        model = Model(1, (noted, table("c", {"note": "text"})), (link("c", "note", "t", "note"),))
        text = to_sql(model, "postgres")
        code = [line for line in text.split("\n") if not line.startswith("--")]
        assert any('UNIQUE ("note")' in line for line in code) == taken
        assert any("FOREIGN KEY" in line for line in code) == taken
        reason = f"a value of note has {longest:,} bytes, and an index of PostgreSQL takes 2,704 a row"
        assert (f"-- [note] is unique, but {reason}" in text) == (not taken)
        assert (f"-- c[note] in t[note]: {reason}" in text) == (not taken)
        assert 'PRIMARY KEY ("id", "code")' in text
        assert 'UNIQUE ("note")' in to_sql(model, "duckdb")
    both = table("t", columns, ("note", "code"), longest={"note": 1_500, "code": 1_501})
    text = to_sql(Model(1, (both,)), "postgres", all_keys=True)
    assert "-- [note, code] is unique, but a value of code has 1,501 bytes" in text


def test_constraint_names_are_short_unique_and_stable() -> None:
    long = "a" * 70
    tables = (
        table("t", {"a_b": "int", "c": "int"}, ("a_b", "c"), primary=("a_b", "c"), not_null="a_b c"),
        table("t_a", {"b": "int", "日本": "int", long: "int"}, ("b",), ("日本",), (long,)),
        table("T", {"a": "int", "b": "int"}, ("a",)),
        table("t_pk", {"x": "int"}),
    )
    fks = (link("T", "a", "t_a", "b"), link("T", "a", "t_a", ("日本",)), link("T", "b", "t_a", "b"))

    def names(model: Model) -> dict[str, str]:
        found = re.findall(
            r'CONSTRAINT ("[^"]+") (.*?),?(?:  -- .*)?;?$', to_sql(model, all_keys=True), re.MULTILINE
        )
        assert len({name.lower() for name, _ in found}) == len(found)
        assert all(re.fullmatch(r'"[a-z0-9_]{1,48}"', name) for name, _ in found)
        assert not {name.strip('"') for name, _ in found} & {t.name for t in model.tables}
        return {clause: name for name, clause in found}

    whole = names(Model(1, tables, fks))
    assert len(whole) == 8
    assert whole['FOREIGN KEY ("b") REFERENCES "t_a" ("b")'] == '"t_b_fk"'
    reordered = names(Model(2, tables[::-1], fks[::-1]))
    assert {c: n for c, n in whole.items() if "KEY (" in c or "_uq" in n} == reordered
    assert names(Model(1, tables)) == {c: n for c, n in whole.items() if "FOREIGN" not in c}


EVERY_TYPE = {
    "int": ("BIGINT", "BIGINT", "BIGINT"),
    "uint": ("DECIMAL(20,0)", "NUMERIC(20,0)", "UBIGINT"),
    "float": ("DOUBLE PRECISION", "DOUBLE PRECISION", "DOUBLE"),
    "decimal(12,2)": ("DECIMAL(12,2)", "NUMERIC(12,2)", "DECIMAL(12,2)"),
    "decimal(3,-2)": ("DECIMAL(5,0)", "NUMERIC(5,0)", "DECIMAL(5,0)"),
    "decimal(2,5)": ("DECIMAL(5,5)", "NUMERIC(5,5)", "DECIMAL(5,5)"),
    "decimal(60,10)": ("DECIMAL(60,10)", "NUMERIC(60,10)", "VARCHAR"),
    "bool": ("BOOLEAN", "BOOLEAN", "BOOLEAN"),
    "date": ("DATE", "DATE", "DATE"),
    "time[us]": ("TIME(6)", "TIME", "TIME"),
    "time[ns]": ("TIME(9)", "TIME", "TIME"),
    "timestamp[s]": ("TIMESTAMP(6)", "TIMESTAMP", "TIMESTAMP"),
    "timestamp[ns]": ("TIMESTAMP(9)", "TIMESTAMP", "TIMESTAMP_NS"),
    "timestamp[us,utc]": (
        "TIMESTAMP(6) WITH TIME ZONE",
        "TIMESTAMP WITH TIME ZONE",
        "TIMESTAMP WITH TIME ZONE",
    ),
    "text": ("VARCHAR", "TEXT", "VARCHAR"),
    "binary": ("VARBINARY", "BYTEA", "BLOB"),
}


def test_types_of_every_family() -> None:
    for name, wanted in EVERY_TYPE.items():
        assert tuple(sql_type(Type.parse(name), d)[0] for d in DIALECTS) == wanted
    everything = table("t", {t: t for t in EVERY_TYPE}, *((t,) for t in EVERY_TYPE))
    db = made(to_sql(Model(1, (everything,)), "duckdb"))
    types = db.execute(
        "select data_type from duckdb_columns() where not internal order by column_index"
    ).fetchall()
    assert [t for (t,) in types] == [duckdb_type for _, _, duckdb_type in EVERY_TYPE.values()]
    lossy = [line for line in to_sql(Model(1, (everything,)), "postgres").split("\n") if "do not fit" in line]
    assert [line.split('"')[1] for line in lossy] == ["time[ns]", "timestamp[ns]"]


@pytest.mark.parametrize(
    ("child", "parent", "taken_by"),
    [
        ("int", "decimal(20,0)", {"ansi", "postgres"}),
        ("decimal(12,2)", "int", {"ansi"}),
        ("decimal(12,2)", "decimal(10,2)", {"ansi", "postgres"}),
        ("uint", "float", {"ansi", "postgres"}),
        ("timestamp[ms]", "timestamp[us]", {"ansi", "postgres", "duckdb"}),
        ("timestamp[us,utc]", "timestamp[us]", set()),
        ("int", "text", set()),
    ],
)
def test_types_that_a_foreign_key_can_join(child: str, parent: str, taken_by: set[str]) -> None:
    tables = (table("c", {"x": child}), table("p", {"x": parent}, ("x",)))
    model = Model(1, tables, (link("c", "x", "p", "x"),))
    for dialect in DIALECTS:
        lines = to_sql(model, dialect).split("\n")
        assert any(line.startswith("  CONSTRAINT") and "FOREIGN KEY" in line for line in lines) == (
            dialect in taken_by
        )
    made(to_sql(model, "duckdb"))


def test_what_a_dialect_cannot_have_is_altered_and_said() -> None:
    long = "é" * 40
    odd = table("", {"id": "int", "ID": "int", "": "int", "a\0": "int", long: "int"}, ("ID",))
    db = made(to_sql(Model(1, (odd,)), "duckdb"))
    columns = [
        c
        for (c,) in db.execute(
            "select column_name from duckdb_columns() where not internal order by column_index"
        ).fetchall()
    ]
    assert columns[0] == "id"
    assert columns[1].startswith("ID_")
    assert declared(db)[0][2] == (columns[1],)
    assert "  -- in the data: ID\n" in to_sql(Model(1, (odd,)), "duckdb")
    postgres = to_sql(Model(1, (odd,)), "postgres")
    assert '"ID" BIGINT,\n' in postgres
    assert all(len(name.encode()) <= 63 for name in re.findall(r'"([^"]*)"', postgres))
    key = tuple(f"c{i}" for i in range(40))
    wide = table("t", dict.fromkeys(key, "int"), key, primary=key, not_null=key)
    text = to_sql(Model(1, (wide,)), "postgres")
    assert "is unique, but a key of PostgreSQL has at most 32 columns" in text
    assert "CONSTRAINT" not in text
    made(to_sql(Model(1, (wide,)), "duckdb"))


def test_tables_without_columns_and_no_tables() -> None:
    nothing = Model(1, (table("t", {}),))
    assert "-- t has no columns" in to_sql(nothing, "duckdb")
    assert duckdb.connect().extract_statements(to_sql(nothing, "duckdb")) == []
    assert to_dbt(Model(1, ())).endswith("version: 2\nmodels: []\n")
    for write in FORMATS.values():
        write(nothing)
        write(Model(1, ()))


@pytest.mark.parametrize(
    ("tables", "fks", "message"),
    [
        ((table("t", {"a": "int"}), table("t", {"a": "int"})), (), "same name"),
        ((table("t", {"a": "int", "b": "int"}),), (link("t", "a b", "t", "b"),), "does not pair"),
        ((table("t", {"a": "int"}),), (link("t", "a", "t", "c"),), "no column 'c'"),
        ((table("t", {"a": "int"}),), (link("u", "a", "t", "a"),), "starts at a table that is left out"),
        ((table("t", {"a": "int", "b": "int"}),), (link("t", "a", "t", "b"),) * 2, "twice"),
        (
            (table("t", {"a": "int", "b": "int"}),),
            (link("t", "a b", "t", "b a"), link("t", "b a", "t", "a b")),
            "twice",
        ),
        ((table("t", {"a": "int", "b": "int"}),), (link("t", "a a", "t", "a b"),), "twice"),
    ],
)
def test_a_model_makes_sense(
    tables: tuple[ExportTable, ...], fks: tuple[ForeignKey, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Model(1, tables, fks)
    with pytest.raises(ValueError, match="no column 'z'"):
        table("t", {"a": "int"}, ("z",))
    with pytest.raises(ValueError, match="unknown SQL dialect 'x'"):
        to_sql(SHOP, "x")  # type: ignore[arg-type]


# --- dbt --------------------------------------------------------------------------------------------------


def test_dbt_tests() -> None:
    assert to_dbt(Model(3, SHOP.tables[1:4], SHOP.foreign_keys[:1])) == (
        """\
# holdfast, version 3 of the workspace: proposed by what holds in the data, not declared
version: 2
models:
  # keys of orders that are not declared here: 1 (nothing refers to it, and it may be unique by chance)
  - name: orders
    columns:
      - name: id
        data_tests:
          - unique
          - not_null
      - name: customer
        data_tests:
          - relationships:
              arguments:
                to: ref('customers')
                field: id
      - name: day
        data_tests:
          - not_null
  - name: customers
    columns:
      - name: id
        data_tests:
          - unique
          - not_null
      - name: Code
        quote: true
        data_tests:
          - unique
  # keys of partsupp that are not declared here: 1 (nothing refers to it, and it may be unique by chance)
  - name: partsupp
    data_tests:
      - dbt_utils.unique_combination_of_columns:
          arguments:
            combination_of_columns:
              - part
              - supplier
    columns:
      - name: part
        data_tests:
          - not_null
      - name: supplier
        data_tests:
          - not_null
"""
    )


def test_dbt_takes_nulls_for_equal_and_keys_do_not() -> None:
    keyed = table("t", {"a": "int", "order": "int"}, ("a", "order"), primary=("a", "order"), not_null="a")
    assert """\
            combination_of_columns:
              - a
              - order
            quote_columns: true
          config:
            where: "\\"order\\" is not null"
""" in to_dbt(Model(1, (keyed,)))


def test_dbt_warns_of_what_does_not_quite_hold_and_splits_what_is_wide() -> None:
    tables = (table("c", {"a": "int", "b": "int"}), table("p", {"Key": "int", "b": "int"}))
    fks = (link("c", "a b", "p", "Key b"), link("c", "a", "p", "Key", error=0.5))
    text = to_dbt(Model(1, tables, fks))
    assert "# c[a, b] in p[Key, b] is tested column by column: relationships takes one" in text
    assert text.count("- relationships:") == 2
    assert (
        """\
          # c[a] in p[Key]: 50 % of its values are missing
          - relationships:
              arguments:
                to: ref('p')
                field: "\\"Key\\""
              config:
                severity: warn
      - name: b
"""
        in text
    )


def test_no_nul_of_a_name_is_written() -> None:
    nul = table("t", {"a\0": "int", "b\0": "float", "c": "int"}, ("a\0",), ("c", "b\0"), primary=("a\0",))
    model = Model(1, (nul,), (link("t", "c", "t", ("a\0",), error=0.1), link("t", ("b\0",), "t", "c")))
    rules = [RowRule("t", "a\0", "<", "b\0"), RowRule("t", "a\0", "<", "c", error=0.1, n_exceptions=1)]
    texts = [to_dbt(model, all_keys=True)]
    for dialect in DIALECTS:
        texts.append(to_sql(model, dialect, all_keys=True, checks=checks_of(model, rules, dialect)))
    for text in texts:
        assert "\0" not in text
    # A dbt test would hand the escaped name on to a database.
    code = [line for line in texts[0].split("\n") if not line.lstrip().startswith("#")]
    assert not any(r"\x00" in line for line in code)
    assert r"columns left out, as dbt cannot name them: ['a\x00', 'b\x00']" in texts[0]


def test_dbt_leaves_out_what_it_cannot_name() -> None:
    tables = (
        table("it's", {"a": "int"}, ("a",)),
        table("t", {"{{ a }}": "int", 'b"c': "int", "d": "int"}, ("{{ a }}",), ('b"c', "d"), ("d",)),
    )
    fks = (link("t", "d", "it's", "a"), link("t", "d", "t", ('b"c',)))
    text = to_dbt(Model(1, tables, fks), all_keys=True)
    code = [line for line in text.split("\n") if not line.lstrip().startswith("#")]
    assert not any("it's" in line or "{{" in line or 'b"c' in line for line in code)
    assert "# columns left out, as dbt cannot name them: [{{ a }}, 'b\"c']" in text
    assert text.count("left out") == 4
    alone = to_dbt(Model(1, tables[:1]))
    assert alone.endswith('models:\n  # left out, as dbt cannot name it: "it\'s"\n  []\n')


def test_dbt_takes_names_with_spaces_by_an_alias() -> None:
    tables = (
        table("Order Details", {"order id": "int"}),
        table("order_details", {"id": "int"}),
        table("Orders 2024", {"id": "int"}, ("id",)),
    )
    fks = (link("Order Details", ("order id",), "Orders 2024", "id"),)
    assert (
        to_dbt(Model(1, tables, fks)).split("models:\n")[1]
        == """\
  # Order Details is the model Order_Details_494f3b, by an alias: dbt takes no such name
  - name: Order_Details_494f3b
    config:
      alias: "Order Details"
    columns:
      - name: "order id"
        quote: true
        data_tests:
          - relationships:
              arguments:
                to: ref('Orders_2024')
                field: id
  - name: order_details
  # Orders 2024 is the model Orders_2024, by an alias: dbt takes no such name
  - name: Orders_2024
    config:
      alias: "Orders 2024"
    columns:
      - name: id
        data_tests:
          - unique
"""
    )


def test_dbt_quotes_what_duckdb_takes_only_in_quotes() -> None:
    db = duckdb.connect()
    for (word,) in db.execute("select keyword_name from duckdb_keywords()").fetchall():
        db.execute(f"create or replace table t ({quoted(word)} int)")
        name = quoted(word) if needs_quotes(word) else word
        db.execute(f"select {name} as c from t where {name} is not null group by {name}")


# --- Diagrams ---------------------------------------------------------------------------------------------


def test_mermaid() -> None:
    text = to_mermaid(SHOP)
    assert (
        """\
    orders {
        int id PK
        int customer FK
        date day
        decimal_12_2 total
    }
    customers {
        int id PK
        int boss FK
        int best_order FK "best order"
        text Code UK
    }
"""
        in text
    )
    assert re.search(
        r'\n    t_order_lines_\w{6}\["order #34;lines#34;"\] \{\n        int order PK, FK\n', text
    )
    relations = [line.split(" : ") for line in text.split("\n") if " : " in line]
    assert [re.sub(r"_\w{6}\b", "", ends).strip() for ends, _ in relations] == [
        "orders }o--o| customers",  # an order may have no customer
        "t_order_lines }o--|| orders",
        "t_order_lines }o--|| partsupp",
        "customers }o--o| customers",
        "customers }o--o| orders",
        "profiles |o--|| customers",  # one profile per customer
    ]
    assert relations[2][1] == '"supplier, part"'


def test_diagrams_show_wide_keys_and_what_does_not_quite_hold() -> None:
    tables = (table("a", {"x": "int", "y": "int"}, ("x", "y"), primary=("x", "y"), not_null="x"),)
    model = Model(1, tables, (link("a", "x", "a", "y", error=0.1),))
    mermaid = to_mermaid(model)
    assert '        int x FK "unique with y"\n        int y "unique with x"\n' in mermaid
    assert '    a }o..o| a : "x: 10 #37; of its values are missing"\n' in mermaid
    dot = to_graphviz(model)
    assert '<TR><TD COLSPAN="3" ALIGN="LEFT">unique [x, y]</TD></TR>' in dot
    assert "label=<x: 10 % of its values are missing>, style=dashed];" in dot


def test_graphviz() -> None:
    text = to_graphviz(SHOP)
    assert '<TR><TD>PK, FK</TD><TD ALIGN="LEFT" PORT="c0">order</TD><TD ALIGN="LEFT">int</TD></TR>' in text
    edges = [line.strip() for line in text.split("\n") if "->" in line]
    assert edges == [
        "t1:c1 -> t2:c0 [arrowtail=crowodot, arrowhead=teeodot];",
        "t0:c0 -> t1:c0 [arrowtail=crowodot, arrowhead=teetee];",
        "t0:c3 -> t3:c1 [arrowtail=crowodot, arrowhead=teetee, label=<supplier, part>];",
        "t2:c1 -> t2:c0 [arrowtail=crowodot, arrowhead=teeodot];",
        "t2:c2 -> t1:c0 [arrowtail=crowodot, arrowhead=teeodot];",
        "t4:c0 -> t2:c0 [arrowtail=teeodot, arrowhead=teetee];",
    ]


# --- Names of any kind ------------------------------------------------------------------------------------

EVIL = (
    "",
    " ",
    "a",
    "A",
    "select",
    "pk",
    "one",
    "no",
    "12",
    "~",
    "- a: b # c",
    'x"); DROP TABLE "a',
    "x' OR 1=1 --",
    "a\n-- b",
    "a\r\nb",
    "a\u2028b",
    "\0",
    "\ufeff",
    "/* a",
    "{{ x }}",
    "%%{init: {}}%%",
    "direction  TB",
    "</TD>&amp;<B>",
    '"',
    '""',
    "\\",
    "日本",
    "e\u0301",
    "\U0001f600",
    "n" * 80,
    "_n" * 80,
)
names = st.sampled_from(EVIL) | st.text(max_size=6)
well_formed = names.filter(lambda name: name.encode("utf-8", "replace").decode() == name)


@st.composite
def models(draw: st.DrawFn, *, backwards: bool = False) -> Model:
    """Tables, keys and foreign keys of any names; if `backwards`, parents stand before their children."""
    tables = []
    for name in draw(st.lists(well_formed, min_size=1, max_size=4, unique=True)):
        columns = draw(st.lists(well_formed, min_size=1, max_size=4, unique=True))
        some = st.lists(st.sampled_from(columns), max_size=3, unique=True).map(tuple)
        keys = draw(st.lists(some, max_size=3, unique_by=frozenset))
        kinds = st.sampled_from(["int", "int", "int", "text", *EVERY_TYPE])
        tables.append(
            table(
                name,
                {c: draw(kinds) for c in columns},
                *keys,
                primary=draw(st.sampled_from([*keys, None])),
                not_null=draw(some),
                n_rows=draw(st.sampled_from([0, 9, 100])),
            )
        )
    fks: dict[Any, ForeignKey] = {}
    for _ in range(draw(st.integers(0, 4))):
        i, j = draw(st.integers(0, len(tables) - 1)), draw(st.integers(0, len(tables) - 1))
        child, parent = tables[max(i, j) if backwards else i], tables[min(i, j) if backwards else j]
        arity = draw(st.integers(1, min(2, len(child.schema), len(parent.schema))))
        sides = [Side(t.name, tuple(draw(st.permutations(t.schema.names))[:arity])) for t in (child, parent)]
        score, error = draw(st.sampled_from([0.1, 0.9, NAN])), draw(st.sampled_from([0.0, 0.0, 0.02, NAN]))
        fk = ForeignKey(sides[0], sides[1], score, error)
        fks[child.name, parent.name, frozenset(fk.pairs)] = fk
    return Model(draw(st.integers(0, 99)), tuple(tables), tuple(fks.values()))


def to_declare(model: Model) -> list[tuple[str, tuple[str, ...]]]:
    """The foreign keys that DuckDB can have, by definition; for models without cycles."""
    tables = {t.name: t for t in model.tables}
    wanted = []
    for f in model.foreign_keys:
        child, parent = tables[f.dependent.table], tables[f.referenced.table]
        keys = [k for k in (*parent.keys, parent.primary_key or ()) if k]
        types = [
            tuple(sql_type(t.schema.types[t.schema.names.index(c)], "duckdb")[0] for c in side.columns)
            for t, side in ((child, f.dependent), (parent, f.referenced))
        ]
        # DuckDB could not load a table that refers to itself.
        possible = f.error == 0 and types[0] == types[1] and child is not parent
        if possible and any(set(k) <= set(f.referenced.columns) for k in keys):
            wanted.append((child.name, f.dependent.columns))
    return wanted


# A second key that is likely one, but not so likely that it is declared though nothing refers to it.
LIKELY = table("", {"": "int", " ": "int", "a": "int", "A": "int"}, ("",), (" ",), primary=("",), n_rows=100)


@given(models(backwards=True), st.booleans())
@example(Model(0, (LIKELY,), ()), False)
def test_duckdb_takes_any_names(shared: duckdb.DuckDBPyConnection, model: Model, all_keys: bool) -> None:
    text = to_sql(model, "duckdb", all_keys=all_keys)
    assert len(shared.extract_statements(text)) == len(model.tables)
    found: dict[str, list[str]] = {}
    with on_trial(shared, text) as db:
        for name, column in db.execute(
            "select table_name, column_name from duckdb_columns() where not internal order by column_index"
        ).fetchall():
            found.setdefault(name, []).append(column)
        constraints = declared(db)
    table_names = fit([t.name for t in model.tables], ignores_case=True)
    column_names = {t.name: fit(t.schema.names, ignores_case=True) for t in model.tables}
    assert found == {table_names[t.name]: list(column_names[t.name].values()) for t in model.tables}
    assert sorted((t, sorted(c)) for t, kind, c in constraints if kind == "FOREIGN KEY") == sorted(
        (table_names[t], sorted(column_names[t][c] for c in columns)) for t, columns in to_declare(model)
    )
    for t in model.tables:
        ours = {
            frozenset(c) for name, kind, c in constraints if name == table_names[t.name] and "KEY" in kind
        }
        ours |= {
            frozenset(c) for name, kind, c in constraints if (name, kind) == (table_names[t.name], "UNIQUE")
        }
        for key in t.keys:
            telling = t.key_scores()(key) >= DECLARED and not model.referring(t.name).issuperset(key)
            if key and (telling or all_keys or key == t.primary_key):
                assert frozenset(column_names[t.name][c] for c in key) in ours


@given(models(), st.sampled_from(DIALECTS))
def test_any_cycles_are_broken(shared: duckdb.DuckDBPyConnection, model: Model, dialect: DialectName) -> None:
    to_sql(model, dialect).encode("utf-8")
    with on_trial(shared, to_sql(model, "duckdb")) as db:
        assert len(db.execute("show tables").fetchall()) == len(model.tables)
    order, late = creation_order(model, model.foreign_keys)
    assert sorted(t.name for t in order) == sorted(t.name for t in model.tables)
    rank = {t.name: i for i, t in enumerate(order)}
    for f in model.foreign_keys:
        child, parent = f.dependent.table, f.referenced.table
        if f in late and child != parent:
            # Late for a reason: without it, the parent needs the child already.
            above, waiting = set(), [parent]
            while waiting:
                name = waiting.pop()
                above.add(name)
                early = (g for g in model.foreign_keys if g not in late and g.dependent.table == name)
                waiting += [g.referenced.table for g in early if g.referenced.table not in above]
            assert child in above
        else:
            assert (rank[parent] < rank[child]) == (child != parent)


@given(st.lists(names, unique=True), st.sampled_from([None, 20, 63]), st.booleans())
def test_names_fit(given_names: list[str], limit: int | None, ignores_case: bool) -> None:
    fitted = fit(given_names, max_bytes=limit, ignores_case=ignores_case)
    assert list(fitted) == given_names
    texts = [name.lower() if ignores_case and name.isascii() else name for name in fitted.values()]
    assert len(set(texts)) == len(texts)
    for name, text in fitted.items():
        assert text
        assert "\0" not in text
        assert limit is None or len(text.encode("utf-8")) <= limit
        if name and name.isascii() and "\0" not in name and len(name) <= (limit or 99) and not ignores_case:
            assert text == name


@given(names)
def test_quotes_hold_any_name_in(name: str) -> None:
    inside = quoted(name)[1:-1]
    assert re.fullmatch(r'(?:[^"]|"")*', inside)
    assert inside.replace('""', '"') == name


@given(names)
def test_yaml_holds_any_text(name: str) -> None:
    text = scalar(name)
    text.encode("utf-8")
    assert text.isprintable()
    if text.startswith('"'):
        assert ast.literal_eval(text) == name  # the escapes in use mean the same in Python
    else:
        assert text == name
        assert re.fullmatch(r"[A-Za-z_][\w.]*|ref\('\w+'\)", text)


@given(models(), st.booleans())
def test_yaml_is_read_as_it_was_meant(model: Model, all_keys: bool) -> None:
    read = yaml.safe_load(to_dbt(model, all_keys=all_keys))
    assert read["version"] == 2
    # A model's name is the table's, or there is an alias.
    aliases = {e["name"]: e.get("config", {}).get("alias", e["name"]) for e in read["models"]}
    tables = {t.name: t for t in model.tables}
    for entry in read["models"]:
        assert re.fullmatch(r"\w+", entry["name"])
        keyed = tables[aliases[entry["name"]]]
        columns = {c["name"]: c["data_tests"] for c in entry.get("columns", [])}
        assert set(columns) <= set(keyed.schema.names)
        for test in entry.get("data_tests", []):
            told = test["dbt_utils.unique_combination_of_columns"]["arguments"]["combination_of_columns"]
            assert set(told) <= set(keyed.schema.names)
        for column, tests in columns.items():
            plain = [t for t in tests if isinstance(t, str)]
            assert ("not_null" in plain) == (column in keyed.not_null and keyed.n_rows > 0)
            for test in tests:
                if isinstance(test, dict):
                    arguments = test["relationships"]["arguments"]
                    parent = tables[aliases[arguments["to"][5:-2]]]
                    assert arguments["field"].strip('"') in parent.schema.names


ENTITY = re.compile(r'    [A-Za-z]\w*(\["[^"%\\]+"\])? \{', re.ASCII)
KEY = "(PK|FK|UK)"
ATTRIBUTE = re.compile(
    rf'        (?!{KEY}\b)[a-z]\w* (?!{KEY}\b)[A-Za-z_]\w*( {KEY}(, {KEY})*)?( "[^"%\\]*")?',
    re.ASCII | re.IGNORECASE,
)
RELATION = re.compile(r'    [A-Za-z]\w* [|}]o(--|\.\.)(\|\||o\|) [A-Za-z]\w* : "[^"%\\]*"', re.ASCII)


@given(models(), st.booleans())
def test_mermaid_takes_any_names(model: Model, all_keys: bool) -> None:
    text = to_mermaid(model, all_keys=all_keys)
    comment, start, *lines, end = text.split("\n")
    assert comment.startswith("%% ")
    assert (start, end) == ("erDiagram", "")
    assert all(line.isprintable() for line in lines)
    assert not any(re.search(r"direction\s+(TB|BT|RL|LR)", line, re.IGNORECASE) for line in lines)
    shapes = [ENTITY, ATTRIBUTE, RELATION, re.compile("    }")]
    counts = [sum(shape.fullmatch(line) is not None for line in lines) for shape in shapes]
    n_columns = sum(len(t.schema) for t in model.tables)
    assert counts == [len(model.tables), n_columns, len(model.foreign_keys), len(model.tables)]
    entities = [line.split("[")[0].split()[0] for line in lines if ENTITY.fullmatch(line)]
    assert len(set(entities)) == len(model.tables)


@given(models(), st.booleans())
def test_graphviz_takes_any_names(model: Model, all_keys: bool) -> None:
    text = to_graphviz(model, all_keys=all_keys)
    assert all(line.isprintable() for line in text.split("\n"))
    labels = re.findall(r"\[label=<\n(.*?)\n  >\];", text, re.DOTALL)
    for t, label in zip(model.tables, labels, strict=True):
        rows = ET.fromstring(label).findall("TR")
        assert [cell.get("PORT") for row in rows for cell in row if cell.get("PORT")] == [
            f"c{i}" for i in range(len(t.schema))
        ]
        told = [row[1].text for row in rows if len(row) == 3]
        for name, shown in zip(t.schema.names, told, strict=True):
            assert shown == name or ast.literal_eval(shown or "") == name
    for label in re.findall(r"label=<([^\n]*)>(?:, style=dashed)?\];", text):
        ET.fromstring(f"<P>{label}</P>")


SVG = "{http://www.w3.org/2000/svg}"


@given(models(), st.booleans())
def test_svg_takes_any_names(model: Model, all_keys: bool) -> None:
    picture = ET.fromstring(to_svg(model, all_keys=all_keys))
    kinds = [group.get("class", "").split()[0] for group in picture.findall(f"{SVG}g")]
    assert kinds.count("table") == len(model.tables)
    inside = {t.name for t in model.tables}
    assert kinds.count("reference") == sum(f.referenced.table in inside for f in model.foreign_keys)
    assert all(text.isprintable() for element in picture.iter() for text in (element.text or "").split("\n"))


def test_svg() -> None:
    picture = ET.fromstring(to_svg(SHOP))
    tables = {g.get("data-table"): g for g in picture.findall(f"{SVG}g") if g.get("class") == "table"}
    assert set(tables) == {t.name for t in SHOP.tables}
    shown = [text.text for text in tables["orders"].findall(f"{SVG}text")]
    assert {"orders", "id", "PK"} <= set(shown)
    broken = [g for g in picture.iter(f"{SVG}g") if g.get("class") == "reference broken"]
    assert len(broken) == sum(not f.holds for f in SHOP.foreign_keys)
    for group in broken:
        assert "of its values are missing" in (group.findtext(f"{SVG}title") or "")


def test_a_wide_table_shows_keys_and_references_first() -> None:
    wide = table("wide", {f"c{i}": "int" for i in range(40)} | {"other": "int"})
    model = Model(
        1,
        (wide, table("o", {"id": "int"}, ("id",))),
        (ForeignKey(Side("wide", ("other",)), Side("o", ("id",)), 1.0, 0.0),),
    )
    text = to_svg(model)
    assert ">other<" in text
    assert ">c10<" in text
    assert ">c11<" not in text
    assert ">and 29 columns more<" in text


def test_the_same_model_gives_the_same_text() -> None:
    """Whatever the order of sets, which differs from one process to the next."""
    script = (
        "from holdfast.app.export import *\n"
        "from holdfast.core.words.dependency import Side\n"
        "from holdfast.core.words.schema import Column, Schema, Type\n"
        f"model = {SHOP!r}\n"
        "for write in FORMATS.values(): print(write(model), end='')\n"
    )
    wanted = "".join(write(SHOP) for write in FORMATS.values())
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            stdout=subprocess.PIPE,
            check=True,
        )
        assert told.stdout.decode("utf-8") == wanted
