"""CHECK constraints from row rules and pinned conditions: `CHECK ("ship_date" >= "order_date")`.

A CHECK is violated where its condition is false, and NULL makes it unknown: rows with a NULL pass, as they do
in a row rule. What a database would not enforce as it is meant, or what does not hold, is a comment that says
why. Names of tables and columns are those of `sql`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.app.export.conditions import ConditionSql, Untold
from holdfast.app.export.model import ExportTable, Model, doubt_of
from holdfast.app.export.sql import (
    DialectName,
    SqlConstraint,
    SqlScript,
    constraint_names,
    declared_type,
    quoted,
    spelling_of,
    sql_type,
)
from holdfast.app.report.texts import name_text, rule_text, safe
from holdfast.core.words.change import Pin
from holdfast.core.words.condition import Compared, Node
from holdfast.core.words.row_rule import RowRule


@dataclass(frozen=True, slots=True)
class Checks:
    """What CREATE TABLE says of rules, by table: elements with a remark each, and comments before it."""

    elements: Mapping[str, Sequence[tuple[str, str]]]
    comments: Mapping[str, Sequence[str]]


def checks_of(
    model: Model, rules: Sequence[RowRule], dialect: DialectName = "ansi", *, all_rules: bool = False
) -> Checks:
    """The constraints for CREATE TABLE statements.

    Declared are rules that hold; without `all_rules` not those between columns whose ranges are apart, and
    not `!=`: both may well be accidents. What is pinned is none. Linear in the rules.
    """
    pinned = {t.name: model.conditions(t) for t in model.tables}
    compared = {(t, node) for t, conditions in pinned.items() for _, node in conditions}
    rules = [r for r in rules if (r.table, Compared(r.left, r.op, partner=r.right)) not in compared]
    script = _CheckScript(model, rules, dialect, all_rules)
    elements: dict[str, list[tuple[str, str]]] = {}
    comments: dict[str, list[str]] = {}
    for t in model.tables:
        elements[t.name] = [(script.clause(r), script.remark(t, r)) for r in script.declared(t)]
        comments[t.name] = script.comments(t)
        for pin, node in pinned[t.name]:
            script.tell(t, pin, node, elements[t.name], comments[t.name])
    return Checks(elements, comments)


class _CheckScript:
    """One run: what is decided once and needed all over."""

    def __init__(self, model: Model, rules: Sequence[RowRule], dialect: DialectName, all_rules: bool) -> None:
        self.dialect = spelling_of(dialect)
        self.all_rules = all_rules
        names = SqlScript(model, self.dialect, all_keys=False)
        self.table_names, self.column_names = names.table_names, names.column_names
        self.rules: dict[str, list[RowRule]] = {t.name: [] for t in model.tables}
        for rule in dict.fromkeys(rules):
            if rule.table in self.rules:
                self.rules[rule.table].append(rule)
        # The operator is part of what a name depends on: there may be two rules about the same columns.
        constraints = {
            r: SqlConstraint("ck", r.table, r.columns, referenced=(r.op,))
            for of_table in self.rules.values()
            for r in of_table
        }
        pinned = {
            (pin.table, str(pin)): SqlConstraint("ck", pin.table, pin.columns, referenced=(str(pin),))
            for pin in model.pins
            if pin.table in self.rules
        }
        every = [*constraints.values(), *pinned.values()]
        names_of = constraint_names(every, self.table_names.values())
        self.names = {rule: names_of[constraint] for rule, constraint in constraints.items()}
        self.pin_names = {pin: names_of[constraint] for pin, constraint in pinned.items()}

    def left_out(self, rule: RowRule) -> bool:
        return not self.all_rules and rule.n_exceptions == 0 and (rule.apart or rule.op == "!=")

    def declared(self, table: ExportTable) -> list[RowRule]:
        return [r for r in self.rules[table.name] if not self.left_out(r) and not self.obstacle(table, r)]

    def obstacle(self, table: ExportTable, rule: RowRule) -> str:
        """Why a rule cannot be declared, or ""."""
        if rule.n_exceptions or rule.error > 0:
            n = rule.n_exceptions
            return f"it does not hold: {n:,} of {rule.n_compared:,} rows violate{'s' if n == 1 else ''} it"
        types = [declared_type(table, c) for c in rule.columns]
        strict = rule.op in ("<", ">", "!=")
        for column, type_ in zip(rule.columns, types, strict=True):
            written, remark = sql_type(type_, self.dialect.name)
            if remark and strict and type_.family in ("time", "timestamp"):
                return f"{name_text(column)} is {written}: {remark}, so values that differ may become equal"
        if strict and self.compares_floats(table, rule):
            return (
                f"{self.dialect.title} compares these columns as floats, so values that differ may be equal"
            )
        return ""

    def compares_floats(self, table: ExportTable, rule: RowRule) -> bool:
        """Whether one column alone is a float: databases compare both as floats, and not by value."""
        families = {declared_type(table, c).family for c in rule.columns}
        return "float" in families and len(families) > 1

    def remark(self, table: ExportTable, rule: RowRule) -> str:
        return "compared as floats" if self.compares_floats(table, rule) else ""

    def clause(self, rule: RowRule) -> str:
        left, right = (quoted(self.column_names[rule.table][c]) for c in rule.columns)
        op = "<>" if rule.op == "!=" else rule.op
        return f"CONSTRAINT {quoted(self.names[rule])} CHECK ({left} {op} {right})"

    def alter(self, rule: RowRule) -> str:
        return f"ALTER TABLE {quoted(self.table_names[rule.table])} ADD {self.clause(rule)};"

    def tell(
        self,
        table: ExportTable,
        pin: Pin,
        node: Node,
        elements: list[tuple[str, str]],
        comments: list[str],
    ) -> None:
        """Adds a pinned condition: a constraint, or the comment why there is none."""
        names = {c: quoted(name) for c, name in self.column_names[table.name].items()}
        sql = ConditionSql(table.schema, names, self.dialect.name)
        text = f"{name_text(table.name)}: {safe(str(pin))}"
        reason = safe(f" ({pin.terms.reason})") if pin.terms.reason else ""
        try:
            condition = sql.written(node)
        except Untold as why:
            comments.append(f"pinned {text}{reason}: {why}")
            return
        clause = f"CONSTRAINT {quoted(self.pin_names[pin.table, str(pin)])} CHECK ({condition})"
        if doubt := doubt_of(pin):
            alter = f"ALTER TABLE {quoted(self.table_names[table.name])} ADD {clause};"
            comments.append(f"pinned {text}{reason}: {doubt}\n{alter}")
        else:
            remarks = [f"pinned{reason}", *sorted(sql.remarks)]
            elements.append((clause, "; ".join(remarks)))

    def comments(self, table: ExportTable) -> list[str]:
        """Rules that are not declared: why, and how they would be."""
        rules = self.rules[table.name]
        comments = [
            f"{name_text(rule.table)}: {rule_text(rule)}: {reason}\n{self.alter(rule)}"
            for rule in rules
            if not self.left_out(rule) and (reason := self.obstacle(table, rule))
        ]
        n = sum(map(self.left_out, rules))
        if n:
            what = (
                "row rules of {} that are not declared here, with <> or about values that are far apart: {:,}"
            )
            comments.append(what.format(name_text(table.name), n))
        return comments
