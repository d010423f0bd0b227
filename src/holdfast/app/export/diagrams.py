"""Diagrams of tables, keys and foreign keys: Mermaid (`erDiagram`) and Graphviz (DOT).

A foreign key ends in `zero or one` at its parent if its columns may be NULL or if it does not quite hold
(then the line is broken too), else in `exactly one`; at its child in `zero or one` if its columns are a
key there, else in `zero or more`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from holdfast.app.export.model import ChosenKeys, ExportTable, ForeignKey, Model, choose_keys, header
from holdfast.app.export.names import digest
from holdfast.app.report.texts import columns_text, name_text, safe
from holdfast.core.words.schema import Type

# Words that Mermaid reads as part of its language, even where a name is due.
_WORDS = """
    accdescr acctitle class classdef constructor direction end erdiagram fk hasownproperty many o one only
    optionally pk style subgraph title to tostring u uk valueof zero
"""
_MERMAID_WORDS = frozenset(_WORDS.split())


def drawn(model: Model) -> list[ForeignKey]:
    """The foreign keys between tables that are there."""
    names = {t.name for t in model.tables}
    return [f for f in model.foreign_keys if f.referenced.table in names]


def ends(tables: Mapping[str, ExportTable], foreign_key: ForeignKey) -> tuple[bool, bool]:
    """Whether a parent has one child at most, and whether a child must have a parent."""
    child = tables[foreign_key.dependent.table]
    columns = foreign_key.dependent.columns
    return child.tells_apart(columns), foreign_key.holds and child.filled.issuperset(columns)


def _label(foreign_key: ForeignKey) -> str:
    """The columns of a foreign key, and how far it is from holding."""
    columns = columns_text(foreign_key.dependent.columns)[1:-1]
    return columns if foreign_key.holds else f"{columns}: {foreign_key.doubt}"


def key_marks(
    table: ExportTable, keys: ChosenKeys, foreign_keys: Sequence[ForeignKey]
) -> dict[str, list[str]]:
    """PK, FK and UK of each column. UK is for keys of one column: in a wider one, a column is not unique."""
    starts = {c for f in foreign_keys if f.dependent.table == table.name for c in f.dependent.columns}
    return {
        c: ["PK"] * (c in (keys.primary or ())) + ["FK"] * (c in starts) + ["UK"] * ((c,) in keys.unique)
        for c in table.schema.names
    }


# --- Mermaid ----------------------------------------------------------------------------------------------


def _header(model: Model, chosen: Mapping[str, ChosenKeys]) -> str:
    left_out = sum(keys.left_out for keys in chosen.values())
    return header(model) + (f"; keys that are not marked: {left_out:,}" if left_out else "")


def to_mermaid(model: Model, *, all_keys: bool = False) -> str:
    """An `erDiagram`. Linear in the text.

    Names of columns and types are cut down to ASCII letters, digits and `_`, which every version of Mermaid
    takes; a name that had to change is beside it as it was.
    """
    chosen = choose_keys(model, all_keys=all_keys)
    foreign_keys = drawn(model)
    ids = _mermaid_ids(model)
    tables = model.by_name()
    lines = [f"%% {_header(model, chosen)}", "erDiagram"]
    for table in model.tables:
        alias = "" if ids[table.name] == table.name else f'["{_mermaid_text(table.name) or " "}"]'
        lines.append(f"    {ids[table.name]}{alias} {{")
        marks = key_marks(table, chosen[table.name], foreign_keys)
        lines += (f"        {line}" for line in _attributes(table, chosen[table.name], marks))
        lines.append("    }")
    for foreign_key in foreign_keys:
        single, required = ends(tables, foreign_key)
        line = "--" if foreign_key.holds else ".."
        relation = f"{'|o' if single else '}o'}{line}{'||' if required else 'o|'}"
        child, parent = ids[foreign_key.dependent.table], ids[foreign_key.referenced.table]
        lines.append(f'    {child} {relation} {parent} : "{_mermaid_text(_label(foreign_key))}"')
    return "\n".join(lines) + "\n"


def _mermaid_ids(model: Model) -> dict[str, str]:
    """An identifier for each table: its name if that will do."""
    ids = {}
    taken = {t.name for t in model.tables}
    for table in model.tables:
        name = table.name
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and name.lower() not in _MERMAID_WORDS:
            ids[name] = name
            continue
        words = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
        identifier = f"t_{words[:24]}_{digest(name)}" if words else f"t_{digest(name)}"
        while identifier in taken:
            identifier += "_"
        ids[name] = identifier
        taken.add(identifier)
    return ids


def _mermaid_text(text: str) -> str:
    """Text in double quotes: what Mermaid, HTML or Markdown could read as theirs is written as a code.

    >>> _mermaid_text('50 % "off"')
    '50 #37; #34;off#34;'
    """
    coded = re.sub(r'["%#;<>&\\`*~{}\[\]|]', lambda m: f"#{ord(m[0])};", safe(text))
    # A line with `direction LR` anywhere sets the direction of the diagram.
    return re.sub(r"(?i)(direction)\s", r"\1#32;", coded)


def _attributes(table: ExportTable, keys: ChosenKeys, marks: dict[str, list[str]]) -> Iterator[str]:
    """`type name PK, FK "comment"`, one per column."""
    taken: set[str] = set()
    for i, column in enumerate(table.schema.columns):
        name = re.sub(r"[^A-Za-z0-9_]+", "_", column.name)
        if not re.search(r"[A-Za-z0-9]", name):
            name = f"column_{i + 1}"
        if not re.match(r"[A-Za-z_]", name) or name.lower() in ("pk", "fk", "uk"):
            name = f"_{name}"
        while name.lower() in taken:
            name += "_"
        taken.add(name.lower())
        remarks = [] if name == column.name else [name_text(column.name)]
        for key in keys.unique:
            if len(key) > 1 and column.name in key:
                companions = [c for c in key if c != column.name]
                remarks.append(f"unique with {columns_text(companions)[1:-1]}")
        key_marks = marks[column.name]
        yield (
            f"{_mermaid_type(column.type)} {name}"
            + (f" {', '.join(key_marks)}" if key_marks else "")
            + (f' "{_mermaid_text("; ".join(remarks))}"' if remarks else "")
        )


def _mermaid_type(type: Type) -> str:
    """
    >>> _mermaid_type(Type("decimal", precision=12, scale=2)), _mermaid_type(Type("timestamp", utc=True))
    ('decimal_12_2', 'timestamp_utc')
    """
    if type.family == "decimal":
        return re.sub(r"\W+", "_", str(type)).strip("_")
    return f"{type.family}_utc" if type.utc else type.family


# --- Graphviz ---------------------------------------------------------------------------------------------


def to_graphviz(model: Model, *, all_keys: bool = False) -> str:
    """A directed graph in DOT, from children to parents, with crow's feet. Linear in the text."""
    chosen = choose_keys(model, all_keys=all_keys)
    foreign_keys = drawn(model)
    ids = {t.name: f"t{i}" for i, t in enumerate(model.tables)}
    tables = model.by_name()
    lines = [
        f"// {_header(model, chosen)}",
        "digraph holdfast {",
        "  rankdir=LR;",
        '  node [shape=plain, fontname="Helvetica"];',
        '  edge [dir=both, fontname="Helvetica", fontsize=10];',
    ]
    for table in model.tables:
        marks = key_marks(table, chosen[table.name], foreign_keys)
        lines.append(f"  {ids[table.name]} [label=<")
        lines += (f"    {line}" for line in _html_table(table, chosen[table.name], marks))
        lines.append("  >];")
    ports = {t.name: {c: f"c{i}" for i, c in enumerate(t.schema.names)} for t in model.tables}
    for foreign_key in foreign_keys:
        single, required = ends(tables, foreign_key)
        tail, head = (
            f"{ids[side.table]}:{ports[side.table][side.columns[0]]}"
            for side in (foreign_key.dependent, foreign_key.referenced)
        )
        looks = [
            f"arrowtail={'teeodot' if single else 'crowodot'}",
            f"arrowhead={'teetee' if required else 'teeodot'}",
        ]
        # One column is told by where the line starts; several, and what is missing, have to be said.
        if len(foreign_key.pairs) > 1 or not foreign_key.holds:
            looks.append(f"label=<{_html(_label(foreign_key))}>")
        if not foreign_key.holds:
            looks.append("style=dashed")
        lines.append(f"  {tail} -> {head} [{', '.join(looks)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _html(text: str) -> str:
    """Text in an HTML-like label.

    >>> _html("a<b>\\n")
    'a&lt;b&gt;\\\\n'
    """
    return escape(safe(text))


def _html_table(table: ExportTable, keys: ChosenKeys, marks: dict[str, list[str]]) -> Iterator[str]:
    yield '<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="4">'
    yield f'<TR><TD COLSPAN="3" BGCOLOR="#e8eef4"><B>{_html(name_text(table.name))}</B></TD></TR>'
    for i, column in enumerate(table.schema.columns):
        cells = (", ".join(marks[column.name]), name_text(column.name), str(column.type))
        mark, name, type = map(_html, cells)
        yield (
            f'<TR><TD>{mark}</TD><TD ALIGN="LEFT" PORT="c{i}">{name}</TD><TD ALIGN="LEFT">{type}</TD></TR>'
        )
    for key in keys.unique:
        if len(key) > 1:
            yield f'<TR><TD COLSPAN="3" ALIGN="LEFT">unique {_html(columns_text(key))}</TD></TR>'
    yield "</TABLE>"
