"""Answers in a notebook: the report of each, as HTML.

What the command line prints of an answer is shown as it is there, lists and rows are tables, and a workspace
is its tables and their diagram. Colours can be read on light and on dark paper. All text comes from data: it
is escaped, and what cannot be seen is written as a code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from io import StringIO
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa
from rich.terminal_theme import TerminalTheme

from holdfast.app.commands.linking import model_of
from holdfast.app.export.er_svg import to_svg
from holdfast.app.report.changes import print_change
from holdfast.app.report.links import print_links
from holdfast.app.report.paper import Paper
from holdfast.app.report.rules import print_explained
from holdfast.app.report.texts import cell, safe
from holdfast.core.store.tabular import Dependencies, Listed, Ranked
from holdfast.core.words.change import Change
from holdfast.errors import plural
from holdfast.inclusions.links.scored import Linkage
from holdfast.kind import entries
from holdfast.workspace import Workspace

WIDTH = 110  # characters of a report
MOST_ROWS = 50  # of a list
MOST_DRAWN = 150  # tables of a diagram

_RED, _GREEN, _YELLOW, _CYAN = (198, 40, 40), (46, 125, 50), (154, 103, 0), (11, 114, 133)
_PAPER, _INK, _GREY = (255, 255, 255), (0, 0, 0), (115, 115, 115)
# The eight colours of terminals, of which reports use four.
_THEME = TerminalTheme(_PAPER, _INK, [_INK, _RED, _GREEN, _YELLOW, _CYAN, _CYAN, _CYAN, _GREY])
_PRE = "white-space: pre-wrap; line-height: 1.35; margin: 0.4em 0; background: none; color: inherit"
_CELL = "text-align: left; vertical-align: top; padding: 0.15em 0.8em 0.15em 0"


@runtime_checkable
class _Rows(Protocol):
    """Rows with their own columns, however many there are."""

    def batches(self, n_rows: int) -> Iterable[pa.Table]: ...


def html_of(answer: object) -> str:
    """What a notebook shows of an answer."""
    match answer:
        case Workspace():
            return _workspace(answer)
        case Change():
            return _report(print_change, answer)
        case Linkage():
            return _report(print_links, answer, version=None)
        case Dependencies():
            lines = [{"kind": d.kind, "table": d.table, "dependency": str(d)} for d in answer[:MOST_ROWS]]
            return _table(f"dependencies: {len(answer):,}", lines, len(answer))
        case Listed():
            title = f"{answer.noun}: {len(answer):,}"
            return _table(title, answer.records()[:MOST_ROWS], len(answer))
        case Ranked():
            items = answer.ranked()
            lines = [
                {"score": f"{i.score:.2f}", "dependency": str(i), "reasons": "; ".join(i.reasons)}
                for i in items[:MOST_ROWS]
            ]
            return _table(f"{len(items):,} ranked, best first", lines, len(items))
        case _Rows():
            first = next(iter(answer.batches(MOST_ROWS)), None)
            rows = [] if first is None else first.to_pylist()
            return _table(repr(answer).split("\n")[0], rows)
        case _:
            return _report(print_explained, answer)


def text_of(answer: object) -> str:
    """The report of an explanation, in plain text."""
    file = StringIO()
    print_explained(Paper(file, terminal=False), answer)  # type: ignore[arg-type]
    return file.getvalue().rstrip()


def _report(printed: Callable[..., None], *answer: Any, **how: Any) -> str:
    """What a report prints, with its styles."""
    paper = Paper(StringIO(), width=WIDTH, terminal=True, recorded=True)
    printed(paper, *answer, **how)
    code = paper.console.export_html(theme=_THEME, inline_styles=True, code_format="{code}")
    return f'<pre style="{_PRE}">{code.rstrip()}</pre>'


def _table(title: str, records: Sequence[Mapping[str, Any]], n: int | None = None) -> str:
    """A table of the first of n records."""
    names = list(dict.fromkeys(name for record in records for name in record))
    head = "".join(f'<th style="{_CELL}">{escape(safe(name))}</th>' for name in names)
    rows = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_value(r.get(name))}</td>' for name in names) + "</tr>"
        for r in records
    )
    more = 0 if n is None else n - len(records)
    tail = f"<p>... and {more:,} more; all with to_pandas()</p>" if more > 0 else ""
    body = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if records else ""
    return f"<div><p><b>{escape(safe(title))}</b></p>{body}{tail}</div>"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return escape(safe(value))
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list | tuple):
        return escape(", ".join(safe(str(part)) for part in value))
    return escape(cell(value))


def _workspace(ws: Workspace) -> str:
    """The tables of a workspace with what is known of them, and the diagram of those that inclusions join."""
    at = ws.version or None
    names = ws.tables(at)
    records = []
    for name in names:
        kinds = ws.kinds(name, at)
        pins = ws.pins(name, at)
        broken = sum(not pin.holds for pin in pins)
        records.append(
            {
                "table": name,
                "rows": f"{ws.n_rows(name, at):,}",
                "columns": len(ws.schema(name, at)),
                "kept": ", ".join(entries()[kind].nouns[1] for kind in kinds),
                "pins": f"{broken:,} of {len(pins):,} broken" if broken else f"{len(pins):,}" if pins else "",
            }
        )
    table = _table(f"{plural(len(names), 'table')} (version {ws.version})", records)
    drawn = any("ind" in ws.kinds(name, at) for name in names) and len(names) <= MOST_DRAWN
    return table + (f'<div style="overflow: auto">{to_svg(model_of(ws))}</div>' if drawn else "")
