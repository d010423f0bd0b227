"""What the parts of the document share: pieces of HTML, moments, commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.app.explorer import Explorer
from holdfast.app.report.html import table_html, text_html
from holdfast.app.report.texts import cell

Json = Mapping[str, Any]


def asked(explorer: Explorer, question: str, **fields: object) -> dict[str, Any]:
    """The answer to a question of the page."""
    answer: dict[str, Any] = explorer.answer(f"workspace/{question}", {n: str(v) for n, v in fields.items()})
    return answer


def faint(text: str) -> str:
    return f'<p class="faint">{text_html(text)}</p>'


def code(text: str) -> str:
    return f"<code>{text_html(text)}</code>"


def wide(records: Sequence[Mapping[str, Any]], name: str, css: str = "") -> str:
    """A table that may be wider than the page."""
    return scrolled(table_html(records), name, f"wide {css}".strip()) if records else ""


def scrolled(text: str, name: str, css: str = "wide") -> str:
    """What may be wider than the page is scrolled, by keys too."""
    return f'<div class="{css}" role="group" aria-label="{text_html(name)}" tabindex="0">{text}</div>'


def items(lines: Iterable[str]) -> str:
    """A list of pieces of HTML; nothing if there is none."""
    text = "".join(f"<li>{line}</li>" for line in lines)
    return f"<ul>{text}</ul>" if text else ""


def and_more(n: int, what: str, *command: str) -> str:
    """How many more there are, and the command that lists them."""
    if n <= 0:
        return ""
    return f'<p class="faint">and {n:,} more{text_html(what and f" {what}")}: {command_of(*command)}</p>'


def command_of(*words: str) -> str:
    """A command as it is typed.

    >>> command_of("explain", "orders", "zip -> city")
    '<code>holdfast explain orders &#x27;zip -&gt; city&#x27;</code>'
    """
    return code(shlex.join(["holdfast", *words]))


def moment(at: str | None) -> str:
    """
    >>> moment("2026-11-19T00:49:42.557495+00:00"), moment(None)
    ('2026-11-19 00:49 UTC', '')
    """
    return "" if at is None else f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def since(version: int | None, at: str | None, *, at_least: bool = False) -> str:
    """
    >>> since(3, "2026-11-19T00:49:42+00:00"), since(None, None)
    ('since version 3, 2026-11-19 00:49 UTC', '')
    """
    if version is None:
        return ""
    text = f"since version {version:,}{' or before' if at_least else ''}"
    return f"{text}, {moment(at)}" if at else text


def moved(fields: Json) -> str:
    """The rows that came and went with a batch.

    >>> moved({"n_inserted": 5, "n_deleted": 0}), moved({})
    ('+5 rows', '')
    """
    counts = [(sign, fields.get(name) or 0) for sign, name in (("+", "n_inserted"), ("-", "n_deleted"))]
    text = " ".join(f"{sign}{n:,}" for sign, n in counts if n)
    return text and f"{text} row{'' if sum(n for _, n in counts) == 1 else 's'}"


def plain(value: Any) -> str:
    """A value of JSON as reports write it."""
    return cell(value)
