"""A workspace in one HTML file, for people without the tool: what is broken, how tables hang together, what
holds in each, and what changed when.

The file needs nothing else: no script, no font, no picture from elsewhere. It can be printed. Lists have what
means most; what looks like chance or is muted is counted. All text comes from data, and is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import holdfast
from holdfast.app.export.er_svg import to_svg
from holdfast.app.export.model import ForeignKey, Model, choose_keys
from holdfast.app.report.html import report_html, table_html, text_html
from holdfast.app.report.log import unmuted
from holdfast.app.report.pins import print_pin
from holdfast.app.report.texts import cell, dependency_text, meaning, name_text
from holdfast.core.store.change_log import LogEntry
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.predicate import Dc
from holdfast.core.words.ranks import COUNTED
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sameness import DependencySet
from holdfast.errors import plural
from holdfast.kind import entries

# Dependencies of a kind that are listed; versions; changes of a version; values of a column.
MOST_LISTED, MOST_VERSIONS, MOST_CHANGES = 25, 40, 6
MOST_VALUES = 4

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --faint: #566373; --paper: #fff; --edge: #d5dde6;
  --bad: #b3261e; --good: #1b6e2f; --soft: #f3f6f9; }
@media (prefers-color-scheme: dark) { :root { --ink: #dde5ee; --faint: #a3b1c0; --paper: #12181f;
  --edge: #364454; --bad: #ff8a80; --good: #7fd493; --soft: #1a232d; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; font: 15px/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.6rem; margin: 0; } h2 { margin: 2.4rem 0 0.6rem; font-size: 1.25rem; }
h3 { margin: 1.4rem 0 0.4rem; font-size: 1rem; } ul { padding-left: 1.2rem; } code { font-size: 0.92em; }
.faint { color: var(--faint); } .bad { color: var(--bad); } .good { color: var(--good); }
table { border-collapse: collapse; } tbody tr { border-top: 1px solid var(--edge); }
.map svg { max-width: 100%; min-width: 48rem; height: auto; }
th { font-weight: 600; } .map, .wide { overflow-x: auto; } section { border-top: 1px solid var(--edge); }
.broken { border-left: 4px solid var(--bad); background: var(--soft); padding: 0.4rem 1rem; }
.broken + .broken { margin-top: 0.6rem; } nav a { margin-right: 0.9rem; }
@media print { body { max-width: none; padding: 0; font-size: 11px; } section { break-inside: avoid-page; }
  nav { display: none; } .map svg { min-width: 0; } }
"""


def document(ws: holdfast.Workspace, model: Model, records: Sequence[dict[str, Any]]) -> str:
    """The whole file; `records` are its tables in short. Cost: that of listing what holds."""
    at = model.version or None
    names = [table.name for table in model.tables]
    title = f"{name_text(str(ws.root).rstrip('/').rsplit('/', 1)[-1])}: what holds"
    made = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text_html(title)}</title><style>{STYLE}</style></head><body>",
        f"<header><h1>{text_html(title)}</h1>",
        f'<p class="faint">version {model.version} of the workspace, {plural(len(names), "table")}; '
        f"written {made} by holdfast {holdfast.__version__}</p></header><main>",
        *_broken(ws, model),
        "<h2>Tables</h2>",
        f'<div class="wide">{table_html(records)}</div>',
    ]
    if names:
        links = "".join(f'<a href="#t{i}">{text_html(name)}</a>' for i, name in enumerate(names))
        parts.append(f'<nav aria-label="Tables">{links}</nav>')
    if model.foreign_keys:
        parts += ["<h2>How they hang together</h2>", f'<div class="map">{to_svg(model)}</div>']
    parts += _versions(ws.log(), ws.readers.muted_at(at))
    for i, name in enumerate(names):
        parts += [f'<section id="t{i}">', *_table(ws, model, name, at), "</section>"]
    return "\n".join([*parts, "</main></body></html>"]) + "\n"


def _broken(ws: holdfast.Workspace, model: Model) -> Iterator[str]:
    """What somebody relies on and does not hold, and references with orphans."""
    pins = ws.pins(at=model.version or None)
    broken = [pin for pin in pins if not pin.holds]
    orphans = [f for f in model.foreign_keys if f.proved and not f.holds]
    yield "<h2>Broken now</h2>"
    if not broken and not orphans:
        counts = ((len(pins), "pin"), (len(model.foreign_keys), "reference"))
        held = " and ".join(plural(n, noun) for n, noun in counts if n)
        yield f'<p class="good">Nothing{held and f": {held} hold"}.</p>'
    for pin in broken:
        yield f'<div class="broken">{report_html(print_pin, pin, with_table=True)}</div>'
    for foreign_key in orphans:
        yield f'<div class="broken"><p>{text_html(str(foreign_key))}: {foreign_key.doubt}</p></div>'


def _versions(log: Sequence[LogEntry], muted: DependencySet) -> Iterator[str]:
    """The newest versions, newest first; of what is muted only how much."""
    yield "<h2>What changed</h2>"
    rows = []
    for entry in log[: -MOST_VERSIONS - 1 : -1]:
        several = len(entry.tables) > 1
        texts = {}
        for event in ("broke", "appeared"):
            of_event = [
                c for c in entry.changes if c.change == event and entry.action not in ("track", "drop")
            ]
            changes = unmuted(of_event, muted)
            shown = [dependency_text(c.dependency, with_table=several) for c in changes[:MOST_CHANGES]]
            rest = ((len(changes) - len(shown), "more"), (len(of_event) - len(changes), "muted"))
            texts[event] = "; ".join([*shown, *(f"and {n:,} {what}" for n, what in rest if n)])
        rows.append(
            {
                "version": f"{entry.version}",
                "at": entry.at,
                "what": entry.action,
                "tables": ", ".join(map(name_text, entry.tables)),
                **texts,
            }
        )
    yield f'<div class="wide">{table_html(rows)}</div>'
    if len(log) > len(rows):
        yield f'<p class="faint">and {len(log) - len(rows):,} earlier versions</p>'


def _table(ws: holdfast.Workspace, model: Model, name: str, at: int | None) -> Iterator[str]:
    table, keys = model.by_name()[name], choose_keys(model)[name]
    yield f"<h2>{text_html(name_text(name))}</h2>"
    yield f'<p class="faint">{plural(table.n_rows, "row")}, {plural(len(table.schema), "column")}</p>'
    yield f'<div class="wide">{table_html(list(_columns(ws, model, name, at)))}</div>'
    out = [f for f in model.foreign_keys if f.dependent.table == name]
    back = [f for f in model.foreign_keys if f.referenced.table == name]
    for title, references in (("Refers to", out), ("Referred to by", back)):
        if references:
            items = "".join(f"<li>{_reference(f)}</li>" for f in references)
            yield f"<h3>{title}</h3><ul>{items}</ul>"
    for kind, entry in entries().items():
        if entry.across or kind not in ws.kinds(name, at):
            continue
        listed = list(ws.dependencies(kind, name, at, ranked=True))
        ranks = ws.readers.order(at).ranks(listed)
        telling = [d for d, rank in zip(listed, ranks, strict=True) if rank.role not in COUNTED]
        yield f"<h3>{text_html(entry.counted(len(listed)))}</h3>"
        items = "".join(f"<li>{_dependency(d)}</li>" for d in telling[:MOST_LISTED])
        yield f"<ul>{items}</ul>" if items else ""
        if len(telling) > MOST_LISTED:
            yield f'<p class="faint">and {len(telling) - MOST_LISTED:,} more</p>'
        for role, what in (("chance", "that look like chance"), ("muted", "muted")):
            if n := sum(rank.role == role for rank in ranks):
                yield f'<p class="faint">and {n:,} {what}</p>'
    if keys.primary is None and table.keys and "ucc" in ws.kinds(name, at):
        yield '<p class="faint">None of its keys looks like a primary key.</p>'


def _columns(ws: holdfast.Workspace, model: Model, name: str, at: int | None) -> Iterator[dict[str, Any]]:
    """The columns of a table: types, keys, what is known of their values."""
    table, keys = model.by_name()[name], choose_keys(model)[name]
    profiles = {p.column: p for p in ws.profiles.of(name, at)} if "profile" in ws.kinds(name, at) else {}
    starts = {c for f in model.foreign_keys if f.dependent.table == name for c in f.dependent.columns}
    for column in table.schema.columns:
        roles = ["primary key"] * (column.name in (keys.primary or ()))
        roles += ["unique"] * ((column.name,) in keys.unique) + ["reference"] * (column.name in starts)
        distinct = table.distinct.get(column.name)
        fields = {
            "column": column.name,
            "type": str(column.type),
            "role": ", ".join(roles),
            "distinct values": "" if distinct is None else f"{distinct:,}",
            "NULLs": "none" if column.name in table.filled else "",
        }
        if (profile := profiles.get(column.name)) is not None:
            top = [f"{cell(t.value)} ({t.n_rows:,})" for t in (profile.top or ())[:MOST_VALUES]]
            ends = "" if profile.low is None else f"{cell(profile.low)} to {cell(profile.high)}"
            fields |= {
                "distinct values": profile.distinct_text,
                "NULLs": f"{profile.n_nulls:,}" if profile.n_nulls else "none",
                "from, to": ends,
                "most frequent": ", ".join(top),
            }
        yield fields


def _reference(foreign_key: ForeignKey) -> str:
    text = text_html(str(foreign_key))
    if foreign_key.holds:
        return text
    style = "bad" if foreign_key.proved else "faint"
    return f'{text} <span class="{style}">{foreign_key.doubt}</span>'


def _dependency(dependency: Dependency) -> str:
    text = f"<code>{text_html(dependency_text(dependency.to_dict(), with_table=False))}</code>"
    if isinstance(dependency, Dc):
        return f'{text} <span class="faint">{text_html(meaning(dependency))}</span>'
    if isinstance(dependency, RowRule):
        return f'{text} <span class="faint">{text_html(dependency.sentence)}</span>'
    return text
