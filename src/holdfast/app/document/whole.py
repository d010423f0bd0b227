"""The whole document, part by part."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import holdfast
from holdfast.app.document import broken, lake, overview, tables
from holdfast.app.document.style import STYLE
from holdfast.app.document.writing import asked, faint, scrolled
from holdfast.app.explorer import Explorer
from holdfast.app.export.er_svg import svg_of
from holdfast.app.report.html import text_html
from holdfast.app.report.texts import name_text

ATTEMPTS = 3


def document(ws: holdfast.Workspace) -> str:
    """The file; it is of one version: if somebody commits meanwhile, it is written again.

    It needs nothing else: no script, no font, no picture from elsewhere. It can be printed. Lists have what
    means most; what looks like chance or is muted is counted. Cost: that of listing what holds, and a look at
    the rows for each of the first things that are broken.
    """
    explorer = Explorer(ws)
    for _ in range(ATTEMPTS):
        version, text = ws.version, "\n".join([*_document(ws, explorer), ""])
        if ws.version == version:
            break
    return text


def _document(ws: holdfast.Workspace, explorer: Explorer) -> Iterator[str]:
    health = asked(explorer, "overview")
    title = f"{name_text(str(ws.root).rstrip('/').rsplit('/', 1)[-1])}: what holds"
    made = f"written {datetime.now(UTC):%Y-%m-%d %H:%M} UTC by holdfast {holdfast.__version__}"
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{text_html(title)}</title><style>{STYLE}</style></head><body>"
    yield f"<header><h1>{text_html(title)}</h1>{faint(f'{overview.in_short(health)}; {made}')}"
    yield f"{overview.health_words(health)}</header><main>"
    drawing = asked(explorer, "map")
    yield from broken.broken(explorer, health, drawing)
    yield "<h2>Tables</h2>"
    yield from overview.tables(health)
    if drawing["references"]:
        yield "<h2>How they hang together</h2>"
        yield scrolled(svg_of(drawing), "Map of the tables", "map")
        yield faint(
            "Beside a line stands which share of the values referred to is used; beside a broken one, how "
            "much of what refers is missing."
        )
    yield from overview.incidents(health, asked(explorer, "timeline", buckets=overview.BUCKETS))
    yield from overview.versions(ws.log(), ws.readers.muted_at(ws.version or None))
    yield from tables.tables(explorer, health)
    yield from lake.lake(explorer)
    yield "</main></body></html>"
