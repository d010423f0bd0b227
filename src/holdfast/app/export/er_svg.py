"""The entity-relationship diagram as a picture: SVG that needs nothing else, for page, notebook and file.

What is drawn, and where, is `er_drawing`'s. A foreign key that does not quite hold is red and broken, and
says how much of it is missing. Colours follow the reader's light or dark setting. Names come from data: they
are escaped, cut where they are long (the whole name is in a `title`), and what cannot be seen is written as a
code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from holdfast.app.export.er_drawing import HEAD, ROUND, ROW, drawing_of
from holdfast.app.export.er_layout import Point
from holdfast.app.export.model import Model, header
from holdfast.app.report.texts import safe
from holdfast.errors import plural

Fields = Mapping[str, Any]
MARGIN = 16.0

STYLE = """
.er { --paper: #fff; --ink: #1c2733; --faint: #647282; --line: #93a1b0; --head: #e6edf5; --edge: #c6d0db;
  --bad: #b3261e; color-scheme: light dark; font: 12px system-ui, sans-serif; background: var(--paper); }
.er text { fill: var(--ink); } .er .faint { fill: var(--faint); font-size: 10px; }
.er rect { fill: var(--paper); stroke: var(--edge); } .er .head { fill: var(--head); }
.er .name { font-weight: 600; } .er path { fill: none; stroke: var(--line); stroke-width: 1.3; }
.er circle { fill: var(--paper); stroke: var(--line); } .er .unproved .way { stroke-dasharray: 2 3; }
.er .broken path, .er .broken circle { stroke: var(--bad); } .er .broken .way { stroke-dasharray: 5 3; }
.er .reference text { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.er .broken path { stroke-width: 1.7; } .er .broken text { fill: var(--bad); }
@media (prefers-color-scheme: dark) { .er { --paper: #12181f; --ink: #dde5ee; --faint: #93a1b0;
  --line: #6b7b8c; --head: #1f2a36; --edge: #364454; --bad: #ff8a80; } }
"""


def to_svg(model: Model, *, all_keys: bool = False) -> str:
    """The diagram of a model. Cost: that of `er_layout`."""
    return f"<!-- {header(model)} -->\n{svg_of(drawing_of(model, all_keys=all_keys).to_dict())}"


def svg_of(drawing: Fields) -> str:
    """The picture of a drawing in its JSON form. On a reference stands what is missing of it; else, where it
    is known, which share of its parent's values are `used`."""
    width, height = drawing["width"] + 2 * MARGIN, drawing["height"] + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="er" role="img" aria-label="{drawing["summary"]}" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}">',
        f"<title>{drawing['summary']}</title>",
        f"<style>{STYLE}</style>",
    ]
    for reference in drawing["references"]:
        parts += _reference(reference, drawing)
    if drawing["apart"] is not None:
        parts.append(_text(0, drawing["apart"] - 12, "Without references", "faint"))
    for table in drawing["tables"]:
        parts += _table(table)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(x: float, y: float, text: str, css: str = "", anchor: str = "", whole: str | None = None) -> str:
    title = "" if whole is None or whole == text else f"<title>{escape(safe(whole))}</title>"
    css, anchor = css and f' class="{css}"', anchor and f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}"{css}{anchor}>{title}{escape(safe(text))}</text>'


def _table(table: Fields) -> Iterator[str]:
    width, room, n_rows = table["width"], table["room"], table["n_rows"]
    name = escape(safe(table["name"]), quote=True)
    yield f'<g class="table" data-table="{name}" transform="translate({table["x"]:.1f} {table["y"]:.1f})">'
    yield f'<rect width="{width:g}" height="{table["height"]:g}" rx="4"/>'
    yield f'<rect class="head" width="{width:g}" height="{HEAD:g}" rx="4"/>'
    yield _text(8, 17, table["title"], "name", whole=table["name"])
    yield _text(width - 8, 17, f"{n_rows:,}", "faint", "end", plural(n_rows, "row"))
    for i, column in enumerate(table["columns"]):
        line = HEAD + ROW * i + 14
        if column["marks"]:
            yield _text(7, line, " ".join(column["marks"]), "faint")
        yield _text(room, line, column["text"], whole=column["name"])
        yield _text(width - 8, line, column["type"], "faint", "end")
    if table["remark"]:
        yield _text(room, HEAD + ROW * len(table["columns"]) + 14, table["remark"], "faint")
    yield "</g>"


def _reference(reference: Fields, drawing: Fields) -> Iterator[str]:
    child, parent = (escape(safe(reference[side]), quote=True) for side in ("child", "parent"))
    path, shapes, sizes = reference["path"], drawing["ends"], drawing["sizes"]
    yield f'<g class="reference {reference["state"]}" data-child="{child}" data-parent="{parent}">'
    yield f"<title>{escape(safe(reference['title']))}</title>"
    yield f'<path class="way" d="{_rounded(path)}"/>'
    yield _end(shapes[reference["ends"][0]], sizes, path[0], path[1])
    yield _end(shapes[reference["ends"][1]], sizes, path[-1], path[-2])
    used = reference.get("used")
    if label := reference["label"] or ("" if used is None else f"{100 * used:.3g} %"):
        (x, y), way = path[0], 1 if path[1][0] > path[0][0] else -1
        yield _text(x + 16 * way, y - 5, label, "faint", "" if way > 0 else "end")
    yield "</g>"


def _end(shape: Fields, sizes: Fields, at: Point, towards: Point) -> str:
    (x, y), way = at, "" if towards[0] >= at[0] else " scale(-1 1)"
    ring = f'<circle cx="{sizes["ring_at"]:g}" r="{sizes["ring"]:g}"/>' if shape["ring"] else ""
    return f'<g transform="translate({x:.1f} {y:.1f}){way}"><path d="{shape["shape"]}"/>{ring}</g>'


def _rounded(path: Sequence[Point]) -> str:
    """The way of a line, with round corners.

    >>> _rounded([(0, 0), (20, 0), (20, 30)])
    'M0.0 0.0L15.0 0.0Q20.0 0.0 20.0 5.0L20.0 30.0'
    """
    points = [path[0], *(b for a, b in pairwise(path) if a != b)]
    text = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        (x0, y0), (x1, y1) = _near(corner, before), _near(corner, after)
        text += f"L{x0:.1f} {y0:.1f}Q{corner[0]:.1f} {corner[1]:.1f} {x1:.1f} {y1:.1f}"
    return f"{text}L{points[-1][0]:.1f} {points[-1][1]:.1f}"


def _near(corner: Point, other: Point) -> Point:
    """The point where a corner begins to be round: on the way to another, half of it at most."""
    (x, y), (u, v) = corner, other
    length = max(abs(u - x), abs(v - y))
    share = min(ROUND, length / 2) / length
    return x + (u - x) * share, y + (v - y) * share
