"""Answers in a notebook: the report of each, as HTML.

What the command line prints of an answer is shown as it is there, lists and rows are tables, and a workspace
is its tables and their map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from holdfast.app.explorer import Explorer
from holdfast.app.export.er_svg import svg_of
from holdfast.app.report.changes import print_change
from holdfast.app.report.html import report_html, table_html, text_html
from holdfast.app.report.links import print_links
from holdfast.app.report.paper import Paper
from holdfast.app.report.rules import print_explained
from holdfast.core.store.tabular import Dependencies, Listed, Ranked
from holdfast.core.words.change import Change
from holdfast.core.words.display import TableMap
from holdfast.errors import plural
from holdfast.inclusions.links.scored import Linkage
from holdfast.kind import entries
from holdfast.workspace import Workspace

MOST_ROWS = 50  # of a list
MOST_DRAWN = 150  # tables of a diagram


@runtime_checkable
class _Rows(Protocol):
    """Rows with their own columns, however many there are."""

    def batches(self, n_rows: int) -> Iterable[pa.Table]: ...


def html_of(answer: object) -> str:
    """What a notebook shows of an answer."""
    match answer:
        case Workspace():
            return _workspace(answer)
        case TableMap(workspace=Workspace() as workspace):
            return f'<div style="overflow: auto">{map_of(workspace)}</div>'
        case Change():
            return report_html(print_change, answer)
        case Linkage():
            return report_html(print_links, answer, version=None)
        case Dependencies():
            lines = [{"kind": d.kind, "table": d.table, "dependency": str(d)} for d in answer[:MOST_ROWS]]
            return _listed(f"dependencies: {len(answer):,}", lines, len(answer))
        case Listed():
            title = f"{answer.noun}: {len(answer):,}"
            return _listed(title, answer.records()[:MOST_ROWS], len(answer))
        case Ranked():
            items = answer.ranked()
            lines = [
                {"score": f"{i.score:.2f}", "dependency": str(i), "reasons": "; ".join(i.reasons)}
                for i in items[:MOST_ROWS]
            ]
            return _listed(f"{len(items):,} ranked, best first", lines, len(items))
        case _Rows():
            first = next(iter(answer.batches(MOST_ROWS)), None)
            rows = [] if first is None else first.to_pylist()
            return _listed(repr(answer).split("\n")[0], rows)
        case _:
            return report_html(print_explained, answer)


def text_of(answer: object) -> str:
    """The report of an explanation, in plain text."""
    file = StringIO()
    print_explained(Paper(file, terminal=False), answer)  # type: ignore[arg-type]
    return file.getvalue().rstrip()


def _listed(title: str, records: Sequence[Mapping[str, Any]], n: int | None = None) -> str:
    """A table of the first of n records."""
    more = 0 if n is None else n - len(records)
    tail = f"<p>... and {more:,} more; all with to_pandas()</p>" if more > 0 else ""
    return f"<div><p><b>{text_html(title)}</b></p>{table_html(records)}{tail}</div>"


def _workspace(ws: Workspace) -> str:
    """The tables of a workspace with what is known of them, and the diagram of those that inclusions join."""
    at = ws.version or None
    names = ws.tables(at)
    table = _listed(f"{plural(len(names), 'table')} (version {ws.version})", table_records(ws, at))
    drawn = any("ind" in ws.kinds(name, at) for name in names) and len(names) <= MOST_DRAWN
    return table + (html_of(ws.map()) if drawn else "")


def map_of(ws: Workspace) -> str:
    """The tables and their references, as the page's map has them: broken ones and pinned ones, too."""
    return svg_of(Explorer(ws).answer("workspace/map", {}))


def table_records(ws: Workspace, at: int | None) -> list[dict[str, Any]]:
    """What is known of each table, in short."""
    records = []
    for name in ws.tables(at):
        pins = ws.pins(name, at)
        broken = sum(not pin.holds for pin in pins)
        records.append(
            {
                "table": name,
                "rows": f"{ws.n_rows(name, at):,}",
                "columns": f"{len(ws.schema(name, at)):,}",
                "kept": ", ".join(entries()[kind].nouns[1] for kind in ws.kinds(name, at)),
                "pins": f"{broken:,} of {len(pins):,} broken" if broken else f"{len(pins):,}" if pins else "",
            }
        )
    return records
