"""dbt tests (`schema.yml`, dbt 1.10 or newer): unique, not_null, relationships, and combinations of columns.

Pinned conditions are accepted_values and not_null where they say no more, and expressions elsewhere; one that
need not hold for each row is a comment. Four things differ from SQL's constraints, and are seen to:

- `dbt_utils.unique_combination_of_columns` takes two NULLs for equal, UNIQUE does not. A key with columns
  that may be NULL is tested on the rows without NULL.
- `relationships` takes one column. A foreign key of several is tested column by column, which is weaker.
- Texts are rendered by Jinja, and put into quotes without a look inside: names with `{{`, `{%`, `{#` or a
  quote are left out, as dbt itself fails on them.
- A model's name has letters, digits and underscores. A table with a space in its name, or the like, is a
  model with another name and an alias.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from holdfast.app.export import yaml
from holdfast.app.export.conditions import ConditionSql, Untold
from holdfast.app.export.model import (
    ChosenKeys,
    ExportTable,
    ForeignKey,
    Model,
    broken_text,
    choose_keys,
    doubt_of,
    header,
)
from holdfast.app.export.names import DIGEST, digest
from holdfast.app.report.texts import columns_text, name_text, safe
from holdfast.core.words.change import Pin
from holdfast.core.words.condition import Absent, Among, Node, Not

# Words that the common databases take for a column only in quotes, so whoever made the column quoted it.
_WORDS = """
    all analyse analyze and anti any array as asc asof asymmetric at authorization between binary both by
    case cast check collate collation column concurrently constraint create cross current current_catalog
    current_date current_role current_schema current_time current_timestamp current_user default deferrable
    delete desc describe distinct do drop else end except exists false fetch following for foreign freeze
    from full glob grant group having ilike in initially inner insert intersect into is isnull join lambda
    lateral leading left like limit localtime localtimestamp natural not notnull null of offset on only or
    order outer overlaps pivot pivot_longer pivot_wider placing positional primary qualify references
    returning revoke right row rows select semi session_user set show similar some start summarize symmetric
    table tablesample then to trailing trigger true union unique unpack unpivot update user using values
    variadic verbose when where window with
"""
RESERVED = frozenset(_WORDS.split())
# A text that accepted_values may put into quotes as it is.
_PLAIN_VALUE = re.compile(r"[^'\\{}\0]*")


def to_dbt(model: Model, *, all_keys: bool = False) -> str:
    """A properties file with one entry per table and the tests that pass on the data of now.

    A foreign key that does not quite hold warns instead of failing. Linear in the text.
    """
    chosen = choose_keys(model, all_keys=all_keys)
    # Of a table that is not part of this export, too: a foreign key may refer to it.
    parents = (f.referenced.table for f in model.foreign_keys)
    names = model_names([*(t.name for t in model.tables), *parents])
    models: list[yaml.Value] = []
    for table in model.tables:
        if table.name in names:
            foreign_keys = [f for f in model.foreign_keys if f.dependent.table == table.name]
            conditions = model.conditions(table)
            models += _entry(table, chosen[table.name], foreign_keys, names, conditions)
        else:
            models.append(yaml.Comment(f"left out, as dbt cannot name it: {name_text(table.name)}"))
    document: yaml.Value = {"version": 2, "models": models}
    return "\n".join([f"# {header(model)}", *yaml.lines(document)]) + "\n"


def needs_quotes(name: str) -> bool:
    """Whether a column can be meant only by its quoted name.

    Databases that fold names fold them one way, so a name of one case is left as it is.

    >>> [needs_quotes(n) for n in ("id", "ID", "customerId", "order", "unit price")]
    [False, False, True, True, True]
    """
    one_case = name in (name.lower(), name.upper())
    return not (one_case and re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)) or name.lower() in RESERVED


def _speakable(name: str) -> bool:
    """Whether dbt can name a column. It hands names on to SQL, and no database takes a NUL in one."""
    return name != "" and not any(part in name for part in ("{{", "{%", "{#", '"', "\0"))


def _speakable_table(name: str) -> bool:
    """Whether dbt can name a table: it writes `ref('name')` on its own."""
    return _speakable(name) and "'" not in name and "\\" not in name


def model_names(tables: Iterable[str]) -> dict[str, str]:
    """The name of each table's model; tables that dbt cannot name are left out.

    >>> model_names(["orders", "Order Details", "order-details", "it's"])
    {'orders': 'orders', 'Order Details': 'Order_Details', 'order-details': 'order_details_08ad14'}
    """
    speakable = [t for t in dict.fromkeys(tables) if _speakable_table(t)]
    names = {t: t for t in speakable if re.fullmatch(r"\w+", t)}
    taken = {name.lower() for name in names}
    for table in speakable:
        if table not in names:
            name = plain = re.sub(r"\W+", "_", table)
            length = DIGEST
            while name.lower() in taken:
                name, length = f"{plain}_{digest(table, length)}", length + 1
            names[table] = name
            taken.add(name.lower())
    return names


def _in_sql(name: str) -> str:
    return f'"{name}"' if needs_quotes(name) else name


def _entry(
    table: ExportTable,
    keys: ChosenKeys,
    foreign_keys: list[ForeignKey],
    names: Mapping[str, str],
    conditions: Iterable[tuple[Pin, Node]] = (),
) -> list[yaml.Value]:
    """The comments and the entry of a table."""
    comments = [*keys.remark(table.name), *map(broken_text, table.broken), *keys.remark_left_out(table)]
    name = names[table.name]
    if name != table.name:
        comments.append(f"{name_text(table.name)} is the model {name}, by an alias: dbt takes no such name")
    mute = [c for c in table.schema.names if not _speakable(c)]
    if mute:
        comments.append(f"columns left out, as dbt cannot name them: {columns_text(mute)}")
    tests: dict[str, list[yaml.Value]] = {c: [] for c in table.schema.names}
    combined: list[yaml.Value] = []
    for key in keys.all():
        if len(key) == 1:
            tests[key[0]].append("unique")
        elif not set(key) & set(mute):
            combined.append(_combination(table, key))
    for column in table.schema.names:
        if column in table.filled:
            tests[column].append("not_null")
    comments += _relationships(foreign_keys, tests, names)
    comments += _conditions(table, conditions, mute, tests, combined)
    columns: list[yaml.Value] = [
        {
            "name": column,
            **({"quote": True} if needs_quotes(column) else {}),
            "data_tests": column_tests,
        }
        for column, column_tests in tests.items()
        if column_tests and column not in mute
    ]
    entry: dict[str, yaml.Value] = {"name": name}
    if name != table.name:
        entry["config"] = {"alias": table.name}
    if combined:
        entry["data_tests"] = combined
    if columns:
        entry["columns"] = columns
    return [*map(yaml.Comment, comments), entry]


def _combination(table: ExportTable, key: tuple[str, ...]) -> yaml.Value:
    arguments: dict[str, yaml.Value] = {"combination_of_columns": key}
    if any(map(needs_quotes, key)):
        arguments["quote_columns"] = True
    test: dict[str, yaml.Value] = {"arguments": arguments}
    nullable = [c for c in key if c not in table.filled]
    if nullable:
        test["config"] = {"where": " and ".join(f"{_in_sql(c)} is not null" for c in nullable)}
    return {"dbt_utils.unique_combination_of_columns": test}


def _relationships(
    foreign_keys: Iterable[ForeignKey], tests: dict[str, list[yaml.Value]], names: Mapping[str, str]
) -> list[str]:
    """Adds the tests of foreign keys to those of their columns; remarks on what cannot be tested as it is."""
    remarks = []
    tested = set()
    # Whole ones first: a part of a wider foreign key may be the same, and less is known of its error.
    for foreign_key in sorted(foreign_keys, key=lambda f: len(f.pairs)):
        parent = foreign_key.referenced.table
        if not (parent in names and all(map(_speakable, foreign_key.referenced.columns))):
            remarks.append(f"left out, as dbt cannot name it: {foreign_key}")
            continue
        if len(foreign_key.pairs) > 1:
            remarks.append(f"{foreign_key} is tested column by column: relationships takes one")
        for column, field in foreign_key.pairs:
            if (column, parent, field) in tested:
                continue
            tested.add((column, parent, field))
            to = f"ref('{names[parent]}')"
            test: dict[str, yaml.Value] = {"arguments": {"to": to, "field": _in_sql(field)}}
            if not foreign_key.holds:
                tests[column].append(yaml.Comment(f"{foreign_key}: {foreign_key.doubt}"))
                test["config"] = {"severity": "warn"}
            tests[column].append({"relationships": test})
    return remarks


def _conditions(
    table: ExportTable,
    conditions: Iterable[tuple[Pin, Node]],
    mute: Sequence[str],
    tests: dict[str, list[yaml.Value]],
    of_table: list[yaml.Value],
) -> list[str]:
    """Adds the tests of pinned conditions to those of a column, or of the table; remarks on the others."""
    remarks = []
    for pin, node in conditions:
        doubt = doubt_of(pin)
        if not doubt and set(pin.columns) & {*mute}:
            doubt = "dbt cannot name its columns"
        if not doubt:
            try:
                place, test = _condition(table, node)
            except Untold as why:
                doubt = str(why)
        if doubt:
            remarks.append(f"pinned {safe(str(pin))}: {doubt}")
            continue
        config: dict[str, yaml.Value] = {} if pin.severity == "error" else {"config": {"severity": "warn"}}
        (of_table if place is None else tests[place]).append(_with(test, config))
    return remarks


def _condition(table: ExportTable, node: Node) -> tuple[str | None, tuple[str, dict[str, yaml.Value]]]:
    """(column, (test, arguments)) of a condition; no column: a test of the table."""
    if isinstance(node, Not) and isinstance(node.part, Absent):
        return node.part.column, ("not_null", {})
    if isinstance(node, Among) and all(
        isinstance(c, str) and _PLAIN_VALUE.fullmatch(c) for c in node.constants
    ):
        return node.column, ("accepted_values", {"values": [str(c) for c in node.constants]})
    sql = ConditionSql(table.schema, {c: _in_sql(c) for c in table.schema.names}, "ansi")
    text = sql.written(node)
    if any(part in text for part in ("{{", "{%", "{#")):
        raise Untold("dbt would render what stands in its braces")
    return None, ("dbt_utils.expression_is_true", {"expression": text})


def _with(test: tuple[str, dict[str, yaml.Value]], config: Mapping[str, yaml.Value]) -> yaml.Value:
    name, arguments = test
    fields: dict[str, yaml.Value] = {**({"arguments": arguments} if arguments else {}), **config}
    return {name: fields} if fields else name
