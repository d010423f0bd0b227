"""CHECK constraints: DuckDB takes them in CREATE TABLE and enforces them; what does not hold is a comment."""

from __future__ import annotations

import duckdb
import pytest

from holdfast.app.export import DIALECTS, ExportTable, Model, to_sql
from holdfast.app.export.checks import checks_of
from holdfast.app.export.sql import DialectName, quoted, sql_type
from holdfast.core.words.predicate import OPERATORS, Operator
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.schema import Column, Schema, Type

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
