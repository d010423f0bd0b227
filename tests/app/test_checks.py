"""CHECK constraints: DuckDB takes them in CREATE TABLE and enforces them; what does not hold is a comment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import yaml
from hypothesis import given

from holdfast import Pin
from holdfast.app.export import DIALECTS, ExportTable, Model, to_dbt, to_sql
from holdfast.app.export.checks import checks_of
from holdfast.app.export.conditions import ConditionSql, Untold
from holdfast.app.export.sql import DialectName, quoted, sql_type
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.words.condition import Condition, Node, columns_of, read_condition
from holdfast.core.words.predicate import OPERATORS, Operator
from holdfast.core.words.reliance import Terms
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.schema import Column, Schema, Type
from laws.test_conditions import NODES, ROWS
from laws.test_conditions import SCHEMA as CONDITION_SCHEMA
from laws.test_conditions import TYPES as CONDITION_TYPES
from reference.conditions import truth

COLUMNS = {
    "ordered": "date",
    "ship date": "date",
    "net": "decimal(12,2)",
    "gross": "float",
    "paid": "float",
    'a"\nb': "int",
    "seen": "timestamp[ns]",
    "left": "timestamp[ns]",
}
ORDERS = Model(
    3,
    (ExportTable("orders", Schema(tuple(Column(n, Type.parse(t)) for n, t in COLUMNS.items())), 10),),
)
LATE = RowRule("orders", "ordered", "<=", "ship date", n_compared=9)


def rule(left: str, op: Operator, right: str, exceptions: int = 0, apart: bool = False) -> RowRule:
    return RowRule("orders", left, op, right, exceptions / 10, exceptions, 9, apart)


def written(rules: list[RowRule], dialect: DialectName = "ansi", *, all_rules: bool = False) -> list[str]:
    """The lines of the script that have to do with rules."""
    checks = checks_of(ORDERS, rules, dialect, all_rules=all_rules)
    lines = to_sql(ORDERS, dialect, checks=checks).split("\n")
    return [line for line in lines if "CHECK" in line or line.startswith("-- ")]


def test_script() -> None:
    rules = [
        LATE,
        rule("net", "<=", "gross"),
        rule("gross", ">=", "paid", exceptions=1),
        rule("paid", "!=", 'a"\nb'),
        rule("net", "<", 'a"\nb', apart=True),
        rule("net", "<", "gross"),
        RowRule("elsewhere", "a", "<", "b"),
    ]
    assert written(rules) == [
        "-- holdfast, version 3 of the workspace: proposed by what holds in the data, not declared",
        "-- orders: gross >= paid: it does not hold: 1 of 9 rows violates it",
        '-- ALTER TABLE "orders" ADD CONSTRAINT "orders_gross_paid_ck" CHECK ("gross" >= "paid");',
        "-- orders: net < gross: SQL compares these columns as floats, so values that differ may be equal",
        '-- ALTER TABLE "orders" ADD CONSTRAINT "orders_net_gross_fa218e_ck" CHECK ("net" < "gross");',
        "-- row rules of orders that are not declared here, with <> or about values that are far apart: 2",
        '  CONSTRAINT "orders_ordered_ship_date_ck" CHECK ("ordered" <= "ship date"),',
        '  CONSTRAINT "orders_net_gross_7e2253_ck" CHECK ("net" <= "gross")  -- compared as floats',
    ]


def test_all_rules() -> None:
    rules = [rule("ordered", "!=", "ship date"), rule("net", "<", 'a"\nb', apart=True)]
    checks = checks_of(ORDERS, rules, "postgres", all_rules=True)
    text = to_sql(ORDERS, "postgres", checks=checks)
    assert 'CHECK ("ordered" <> "ship date"),' in text
    assert 'CHECK ("net" < "a""\nb")\n' in text
    assert "not declared here" not in text


def test_nothing_to_say() -> None:
    assert len(written([])) == 1
    assert checks_of(ORDERS, []).elements == {"orders": []}
    assert checks_of(ORDERS, []).comments == {"orders": []}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_names_depend_on_the_rules_alone(dialect: DialectName) -> None:
    rules = [rule("net", op, "gross") for op in OPERATORS] + [LATE]
    forward, backward = (
        [line.replace("),", ")") for line in written(some, dialect, all_rules=True)]
        for some in (rules, rules[::-1])
    )
    assert sorted(forward) == sorted(backward)
    names = [line.split("CONSTRAINT ")[1].split('"')[1] for line in forward if "CONSTRAINT" in line]
    assert len(set(names)) == len(names) == 7


def test_unknown_dialect() -> None:
    with pytest.raises(ValueError, match="unknown SQL dialect 'oracle'"):
        checks_of(ORDERS, [], "oracle")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dialect", "op", "declared"),
    [("postgres", "<", False), ("postgres", "<=", True), ("ansi", "<", True), ("duckdb", "!=", True)],
)
def test_nanoseconds_that_a_database_cuts_off(dialect: DialectName, op: Operator, declared: bool) -> None:
    """What differs may become equal; what is at most something stays so."""
    checks = checks_of(ORDERS, [rule("seen", op, "left")], dialect, all_rules=True)
    assert bool(checks.elements["orders"]) == declared
    assert ("nanoseconds do not fit" in "".join(checks.comments["orders"])) == (not declared)


def create(model: Model, rules: list[RowRule]) -> str:
    """CREATE TABLE with the constraints in it."""
    checks = checks_of(model, rules, "duckdb", all_rules=True)
    [table] = model.tables
    elements = [f"{quoted(c.name)} {sql_type(c.type, 'duckdb')[0]}" for c in table.schema.columns]
    elements += [clause for clause, _ in checks.elements[table.name]]
    return f"CREATE TABLE {quoted(table.name)} ({', '.join(elements)})"


def test_duckdb_enforces_them() -> None:
    judge = duckdb.connect()
    judge.execute(create(ORDERS, [LATE, rule("gross", ">=", "paid"), rule("net", "<=", 'a"\nb')]))
    insert = 'INSERT INTO orders (ordered, "ship date", net, gross, paid, "a""\nb") VALUES '
    judge.execute(
        insert + "('2026-01-01', '2026-01-01', 1.50, 2, 1, 2), (NULL, '2026-01-01', 1, NULL, 5, NULL)"
    )
    judge.execute(insert + "(NULL, NULL, NULL, 'nan', 'nan', 0), (NULL, NULL, NULL, 'nan', 1, 0)")
    for bad in (
        "('2026-01-02', '2026-01-01', NULL, NULL, NULL, NULL)",
        "(NULL, NULL, 1.50, NULL, NULL, 1)",
        "(NULL, NULL, NULL, 1, 'nan', NULL)",
    ):
        with pytest.raises(duckdb.ConstraintException, match="CHECK constraint failed"):
            judge.execute(insert + bad)


# -- pinned conditions -------------------------------------------------------------------------------------


@given(NODES, ROWS)
def test_duckdb_finds_the_same_rows(node: Node, rows: list[dict[str, Any]]) -> None:
    """What violates a condition here does there; compared as floats, what holds here at least holds there."""
    sql = ConditionSql(CONDITION_SCHEMA, {name: quoted(name) for name in CONDITION_TYPES}, "duckdb")
    try:
        condition = sql.written(node)
    except Untold:
        return
    types = {name: Type.parse(type_) for name, type_ in CONDITION_TYPES.items()}
    arrays = {n: pa.array([row[n] for row in rows], arrow_type(t)) for n, t in types.items()}
    judge = duckdb.connect()
    judge.register("given", pa.table({"at_row": range(len(rows)), **arrays}))
    columns = ", ".join(f"{quoted(n)}::{sql_type(t, 'duckdb')[0]} AS {quoted(n)}" for n, t in types.items())
    judge.execute(f"CREATE TABLE t AS SELECT at_row, {columns} FROM given")
    there = {i for (i,) in judge.execute(f"SELECT at_row FROM t WHERE NOT ({condition})").fetchall()}
    here = {i for i, row in enumerate(rows) if truth(node, row) is False}
    assert there <= here if sql.remarks else there == here


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("i > 0 and other != 'it''s'", """("i" > 0) AND ("other" <> 'it''s')"""),
        ("not (i in (1, 2) or b = true)", 'NOT (("i" IN (1, 2)) OR ("b" = TRUE))'),
        ("other like 'a\\%%'", "\"other\" LIKE 'a\\%%' ESCAPE '\\'"),
        ("zone >= '1970-01-01 01:00+01:00'", "CAST('1970-01-01 00:00:00+00:00' AS TIMESTAMP WITH TIME ZONE)"),
        ("f >= 0.1", '"f" >= 0.1'),
        ("f > 0.5", '"f" > 0.5'),
    ],
)
def test_conditions_of_all_dialects(dialect: DialectName, text: str, sql: str) -> None:
    writer = ConditionSql(CONDITION_SCHEMA, {name: quoted(name) for name in CONDITION_TYPES}, dialect)
    assert sql in writer.written(read_condition(text, CONDITION_SCHEMA))
    assert writer.remarks == ({"compared as floats"} if text == "f >= 0.1" else set())


@pytest.mark.parametrize(
    ("dialect", "text", "why"),
    [
        ("ansi", "other < 'b'", "collation"),
        ("postgres", "other matches 'a+'", "regular expressions of PostgreSQL"),
        ("duckdb", "f > 0.1", "DuckDB compares f as floats"),
        ("duckdb", "not (f >= 0.1)", "as floats"),
        ("duckdb", "other like 'a\\b'", "escapes nothing"),
        ("ansi", "other = 'a\0b'", "no NUL"),
    ],
)
def test_conditions_that_have_no_sql(dialect: DialectName, text: str, why: str) -> None:
    writer = ConditionSql(CONDITION_SCHEMA, {name: quoted(name) for name in CONDITION_TYPES}, dialect)
    with pytest.raises(Untold, match=why):
        writer.written(read_condition(text, CONDITION_SCHEMA))


def test_postgres_orders_texts_by_code_points() -> None:
    writer = ConditionSql(CONDITION_SCHEMA, {"other": '"other"'}, "postgres")
    written = writer.written(read_condition("other < 'b'", CONDITION_SCHEMA))
    assert written == '"other" COLLATE "C" < \'b\''


def pinned(text: str, *, n: int = 0, at_most: str = "", severity: str = "error", reason: str = "") -> Pin:
    """A pinned condition of the orders, as n rows violate it."""
    [table] = ORDERS.tables
    columns = columns_of(read_condition(text, table.schema))
    terms = Terms.of(False, {"at_most": at_most, "severity": severity, "reason": reason})
    condition = Condition("orders", text, columns, n / 10, n)
    holds = terms.allows(n, 10)
    return Pin("orders", columns, holds, condition=condition, n_violations=n, terms=terms, error=n / 10)


PINS = (
    pinned("net >= 0 and net <= 1000", reason="prices\nare not"),
    pinned("gross > 0", n=2),
    pinned("paid > 0", n=1, at_most="20%"),
    pinned('ordered <= "ship date"'),
    pinned('"a""\nb" in (1, 2)', severity="warning"),
    pinned("seen is not null"),
)


def test_pinned_conditions_are_constraints() -> None:
    model = replace(ORDERS, pins=PINS)
    text = to_sql(model, "duckdb", checks=checks_of(model, [LATE], "duckdb"))
    lines = [line for line in text.split("\n") if "CHECK" in line or line.startswith("-- ")]
    assert lines[1:] == [
        "-- pinned orders: gross > 0: it does not hold: 2 rows violate it",
        '-- ALTER TABLE "orders" ADD CONSTRAINT "orders_gross_ck" CHECK ("gross" > 0);',
        "-- pinned orders: paid > 0: it is pinned with a tolerance: at most 20%, now 1 row",
        '-- ALTER TABLE "orders" ADD CONSTRAINT "orders_paid_ck" CHECK ("paid" > 0);',
        '  CONSTRAINT "orders_net_ck" CHECK (("net" >= 0) AND ("net" <= 1000)),  -- pinned (prices are not)',
        '  CONSTRAINT "orders_ordered_ship_date_ck" CHECK ("ordered" <= "ship date"),  -- pinned',
        '  CONSTRAINT "orders_a_b_ck" CHECK ("a""',
        '  CONSTRAINT "orders_seen_ck" CHECK ("seen" IS NOT NULL)  -- pinned',
    ]
    judge = duckdb.connect()
    judge.execute(text)
    insert = 'INSERT INTO orders (net, gross, ordered, "ship date", seen, "a""\nb") VALUES '
    judge.execute(insert + "(5, -1, '2026-01-01', '2026-01-01', '2026-01-01', 1)")
    for bad in (
        "(-5, 1, NULL, NULL, '2026-01-01', 1)",
        "(5, 1, '2026-01-02', '2026-01-01', '2026-01-01', 1)",
        "(5, 1, NULL, NULL, NULL, 1)",
        "(5, 1, NULL, NULL, '2026-01-01', 3)",
    ):
        with pytest.raises(duckdb.ConstraintException, match="CHECK constraint failed"):
            judge.execute(insert + bad)


def test_what_not_null_says_is_not_said_twice() -> None:
    [table] = ORDERS.tables
    model = replace(ORDERS, tables=(replace(table, not_null=frozenset(["seen"])),), pins=PINS[-1:])
    assert checks_of(model, [], "duckdb").elements == {"orders": []}
    assert "not_null" in to_dbt(model)


def test_pinned_conditions_are_dbt_tests() -> None:
    words = pinned("ordered in ('2026-01-01')"), PINS[4], PINS[1], PINS[2], PINS[5]
    kept = Schema((*ORDERS.tables[0].schema.columns, Column("word", Type.parse("text"))))
    table = replace(ORDERS.tables[0], schema=kept)
    word = Pin(
        "orders",
        ("word",),
        True,
        condition=Condition("orders", "word in ('a b', 'no')", ("word",)),
        n_violations=0,
        terms=Terms(severity="info"),
    )
    quoted_word = replace(word, condition=Condition("orders", "word in ('it''s')", ("word",)), terms=Terms())
    jinja = replace(word, condition=Condition("orders", "word = '{{ x }}'", ("word",)))
    text = to_dbt(replace(ORDERS, tables=(table,), pins=(*words, word, quoted_word, jinja)))
    [entry] = yaml.safe_load(text)["models"]
    assert entry["data_tests"] == [
        {"dbt_utils.expression_is_true": {"arguments": {"expression": "ordered IN (DATE '2026-01-01')"}}},
        {"dbt_utils.expression_is_true": {"arguments": {"expression": "word IN ('it''s')"}}},
    ]
    assert {c["name"]: c["data_tests"] for c in entry["columns"]} == {
        "seen": ["not_null"],
        "word": [
            {"accepted_values": {"arguments": {"values": ["a b", "no"]}, "config": {"severity": "warn"}}}
        ],
    }
    comments = [line.strip() for line in text.split("\n") if line.strip().startswith("# pinned")]
    assert comments == [
        '# pinned "a""\\nb" in (1, 2): dbt cannot name its columns',
        "# pinned gross > 0: it does not hold: 2 rows violate it",
        "# pinned paid > 0: it is pinned with a tolerance: at most 20%, now 1 row",
        "# pinned word = '{{ x }}': dbt would render what stands in its braces",
    ]
