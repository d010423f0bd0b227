"""One table after the other: its health, columns, keys and why, references, pins, and what else holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.app.document.overview import health_of, reason_html
from holdfast.app.document.writing import (
    Json,
    and_more,
    asked,
    code,
    command_of,
    faint,
    items,
    plain,
    since,
    wide,
)
from holdfast.app.explorer import Explorer
from holdfast.app.report.html import text_html
from holdfast.app.report.texts import cell, name_text, share
from holdfast.errors import plural
from holdfast.kind import entries

MOST_TABLES, MOST_COLUMNS, MOST_VALUES = 100, 200, 4
MOST_KEYS, MOST_LISTED = 5, 25


def tables(explorer: Explorer, overview: Json) -> Iterator[str]:
    """Those with problems first, as the overview has them."""
    listed = overview["tables"]
    for i, table in enumerate(listed):
        # A table that is not told of in full is named, so that a link to it leads somewhere.
        yield f'<section id="t{i}"><h2>{text_html(name_text(table["name"]))} {health_of(table)}</h2>'
        if i < MOST_TABLES:
            yield from _table(explorer, table)
        else:
            yield f'<p class="faint">{command_of("show", table["name"])}</p>'
        yield "</section>"


def _table(explorer: Explorer, table: Json) -> Iterator[str]:
    name = table["name"]
    answer = asked(explorer, "table", name=name)
    tracked = answer["tracked"]
    counts = f"{plural(answer['n_rows'], 'row')}, {plural(len(answer['columns']), 'column')}"
    yield faint(f"{counts}, tracked {since(tracked['version'], tracked['at'])}")
    yield items(reason_html(reason) for reason in table["why"])
    columns = [_column(column) for column in answer["columns"][:MOST_COLUMNS]]
    yield wide(columns, f"Columns of {name_text(name)}")
    yield and_more(len(answer["columns"]) - MOST_COLUMNS, "columns", "profile", name)
    yield from _keys(name, answer["keys"])
    references = answer["references"]
    for title, side in (("Refers to", "out"), ("Referred to by", "into")):
        if references[side]:
            yield f"<h3>{title}</h3>"
            yield items(map(_reference, references[side][:MOST_LISTED]))
            meant = references[f"n_{side}"] - references[f"n_chance_{side}"]
            yield and_more(meant - MOST_LISTED, "", "show", name, "--kind", "ind")
    if answer["pins"]:
        yield f"<h3>{plural(answer['n_pins'], 'pin')}</h3>"
        yield items(map(_pin, answer["pins"][:MOST_LISTED]))
        yield and_more(answer["n_pins"] - MOST_LISTED, "", "pins", name)
    for kind in table["kinds"]:
        if kind != "ucc" and not entries()[kind].across:
            yield from _kind(explorer, name, kind)


def _column(column: Json) -> dict[str, Any]:
    """What is known of a column: its type, its part in keys and references, and its values."""
    roles = [
        word
        for word, there in (("primary key", column["is_primary"]), ("unique", column["is_unique"]))
        if there
    ]
    roles += [f"refers to {target}" for target in column["refers_to"]]
    about = "about " if column["is_estimate"] else ""
    fields = {
        "column": name_text(column["name"]),
        "type": column["type"],
        "role": ", ".join(roles),
        "distinct values": f"{about}{column['n_distinct']:,}",
    }
    if "n_nulls" in column:
        top = [f"{cell(t['value'])} ({t['n_rows']:,})" for t in (column["top"] or ())[:MOST_VALUES]]
        fields |= {
            "NULLs": f"{column['n_nulls']:,}" if column["n_nulls"] else "none",
            "from, to": "" if column["low"] is None else f"{plain(column['low'])} to {plain(column['high'])}",
            "most frequent": ", ".join(top),
        }
    return fields


def _keys(name: str, keys: Json) -> Iterator[str]:
    """The keys that look meant, and why: the primary key first."""
    if keys["n"] is None:
        return
    yield f"<h3>{text_html(entries()['ucc'].counted(keys['n']))}</h3>"
    if keys["n"] and not keys["has_primary"]:
        yield faint("None of them looks like a primary key.")
    meant = [key for key in keys["first"] if key["role"] != "chance"]
    yield items(map(_key, meant[:MOST_KEYS]))
    yield and_more(len(meant) - MOST_KEYS, "", "show", name, "--kind", "ucc")
    if keys["n_chance"]:
        yield faint(f"and {keys['n_chance']:,} that look like chance")


def _key(key: Json) -> str:
    """A key, what it is, since when, and what speaks for it and against it, by points."""
    role = "" if key["role"] == "dependency" else f"{key['role']}, "
    why = f"{role}score {key['score']:.2f}: {', '.join(map(_reason, key['reasons']))}; {_since(key)}"
    return f'{code(key["text"])} <span class="faint">{text_html(why)}</span>'


def _reason(reason: Json) -> str:
    """
    >>> _reason({"text": "texts", "columns": ["invoice"], "points": -0.125})
    'texts (invoice) -0.1'
    """
    columns = f" ({', '.join(map(name_text, reason['columns']))})" if reason["columns"] else ""
    points = f" {reason['points']:+.1f}" if abs(reason["points"]) >= 0.05 else ""
    return f"{reason['text']}{columns}{points}"


def _since(dependency: Json) -> str:
    at = dependency["since"]
    return "" if at is None else since(at["version"], at["at"])


def _reference(reference: Json) -> str:
    """A reference: whether it holds, since when, and what is missing."""
    text = code(reference["text"])
    if reference["missing_values"]:
        n, rows = plural(reference["missing_values"], "value"), plural(reference["missing_rows"], "row")
        return f'{text} <span class="bad">misses {n} in {rows} ({share(100 * reference["error"])} %)</span>'
    role = "" if reference["role"] == "dependency" else reference["role"]
    return (
        f'{text} <span class="faint">{text_html(", ".join(filter(None, (role, _since(reference)))))}</span>'
    )


def _pin(pin: Json) -> str:
    state = '<span class="good">holds</span>' if pin["holds"] else '<span class="bad">does not hold</span>'
    severity = "" if pin["severity"] == "error" else f"severity {pin['severity']}"
    at_most = "" if pin["at_most"] is None else f"tolerated: {pin['at_most']}"
    terms = filter(None, (pin["counted"], severity, at_most, pin["reason"], pin["owner"]))
    return f'{code(pin["text"])} {state} <span class="faint">{text_html("; ".join(terms))}</span>'


def _kind(explorer: Explorer, name: str, kind: str) -> Iterator[str]:
    """What holds of a kind, best first, each since when; how much looks like chance or is muted."""
    answer = asked(explorer, "dependencies", table=name, kind=kind, limit=MOST_LISTED)
    n_meant = answer["n_matching"] - answer["n_chance"] - answer["n_muted"]
    yield f"<h3>{text_html(entries()[kind].counted(answer['n_matching']))}</h3>"
    yield items(map(_dependency, answer["dependencies"][:n_meant]))
    yield and_more(n_meant - MOST_LISTED, "", "show", name, "--kind", kind)
    for n, what in ((answer["n_chance"], "that look like chance"), (answer["n_muted"], "muted")):
        if n:
            yield faint(f"and {n:,} {what}")


def _dependency(dependency: Json) -> str:
    words = "; ".join(filter(None, (dependency.get("sentence"), _since(dependency))))
    return f'{code(dependency["text"])} <span class="faint">{text_html(words)}</span>'
