"""Reports as HTML: what is printed with its styles, and tables. All text comes from data, and is escaped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from html import escape
from io import StringIO
from typing import Any

from rich.terminal_theme import TerminalTheme

from holdfast.app.report.paper import Paper
from holdfast.app.report.texts import cell, safe

WIDTH = 110  # characters of a report

_RED, _GREEN, _YELLOW, _CYAN = (198, 40, 40), (46, 125, 50), (154, 103, 0), (11, 114, 133)
_PAPER, _INK, _GREY = (255, 255, 255), (0, 0, 0), (115, 115, 115)
# The eight colours of terminals, of which reports use four: to be read on light and on dark paper.
_THEME = TerminalTheme(_PAPER, _INK, [_INK, _RED, _GREEN, _YELLOW, _CYAN, _CYAN, _CYAN, _GREY])
_PRE = "white-space: pre-wrap; line-height: 1.35; margin: 0.4em 0; background: none; color: inherit"
_CELL = "text-align: left; vertical-align: top; padding: 0.15em 0.8em 0.15em 0"


def text_html(text: str) -> str:
    """A text from data."""
    return escape(safe(text))


def report_html(printed: Callable[..., None], *answer: Any, **how: Any) -> str:
    """What a report prints, with its styles."""
    paper = Paper(StringIO(), width=WIDTH, terminal=True, recorded=True)
    printed(paper, *answer, **how)
    code = paper.console.export_html(theme=_THEME, inline_styles=True, code_format="{code}")
    return f'<pre style="{_PRE}">{code.rstrip()}</pre>'


def table_html(records: Sequence[Mapping[str, Any]]) -> str:
    """Records as a table, with a column for each field that one of them has."""
    names = list(dict.fromkeys(name for record in records for name in record))
    head = "".join(f'<th scope="col" style="{_CELL}">{text_html(name)}</th>' for name in names)
    rows = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_value(r.get(name, ""))}</td>' for name in names) + "</tr>"
        for r in records
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if records else ""


def _value(value: Any) -> str:
    if isinstance(value, str):
        return text_html(value)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list | tuple):
        return text_html(", ".join(map(str, value)))
    return escape(cell(value))
