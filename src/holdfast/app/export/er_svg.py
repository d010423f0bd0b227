"""The entity-relationship diagram as a picture: SVG that needs nothing else, for page, notebook and file.

Lines end as in `diagrams`, in crow's feet; a foreign key that does not quite hold is red and broken, and says
how much of it is missing. Of a wide table the columns of keys and references are shown, and the first others.
Colours follow the reader's light or dark setting. Names come from data: they are escaped, cut where they are
long (the whole name is in a `title`), and what cannot be seen is written as a code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from holdfast.app.export.diagrams import drawn, ends, key_marks
from holdfast.app.export.er_layout import Box, Line, Point, layout
from holdfast.app.export.model import ChosenKeys, ExportTable, ForeignKey, Model, choose_keys, header
from holdfast.app.report.texts import columns_text, name_text, safe
from holdfast.errors import plural

ROW, HEAD = 20.0, 26.0  # heights
EM = 7.2  # the width of a character, for room; the font decides
MARK = 22.0  # the room of PK or FK
LONGEST = 28  # characters of a name
MOST_ROWS = 12  # columns of a table, unless more are of keys and references
MARGIN = 16.0
ROUND = 5.0  # the radius of corners

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


@dataclass(frozen=True, slots=True)
class _Drawing:
    """A table as it is drawn: the columns that are shown, and how many are not."""

    table: ExportTable
    columns: tuple[str, ...]
    marks: dict[str, list[str]]
    hidden: int

    @classmethod
    def of(cls, table: ExportTable, keys: ChosenKeys, foreign_keys: Sequence[ForeignKey]) -> _Drawing:
        marks = key_marks(table, keys, foreign_keys)
        ends = {c for f in foreign_keys if f.referenced.table == table.name for c in f.referenced.columns}
        wanted = {c for c in table.schema.names if marks[c] or c in ends}
        for column in table.schema.names:
            if len(wanted) >= MOST_ROWS:
                break
            wanted.add(column)
        shown = tuple(c for c in table.schema.names if c in wanted)
        return cls(table, shown, marks, len(table.schema.names) - len(shown))

    @property
    def box(self) -> Box:
        names = [len(_cut(c)) + len(_type(self.table, c)) * 0.85 + 3 for c in self.columns]
        title = len(_cut(self.table.name)) * 1.1 + len(f"{self.table.n_rows:,}") + 3
        width = max([self.room + EM * n for n in names] + [EM * title + 16, 110.0])
        return Box(round(width), HEAD + ROW * (len(self.columns) + bool(self.hidden)))

    @property
    def room(self) -> float:
        """The width of the marks."""
        return 5 + MARK * max([1, *(len(marks) for marks in self.marks.values())])

    def height_of(self, column: str) -> float:
        return HEAD + ROW * (self.columns.index(column) + 0.5)


def to_svg(model: Model, *, all_keys: bool = False) -> str:
    """The diagram of a model. Cost: that of `er_layout`."""
    chosen, foreign_keys = choose_keys(model, all_keys=all_keys), drawn(model)
    drawings = [_Drawing.of(table, chosen[table.name], foreign_keys) for table in model.tables]
    number = {drawing.table.name: i for i, drawing in enumerate(drawings)}
    lines = []
    for foreign_key in foreign_keys:
        child, parent = number[foreign_key.dependent.table], number[foreign_key.referenced.table]
        child_y = drawings[child].height_of(foreign_key.dependent.columns[0])
        parent_y = drawings[parent].height_of(foreign_key.referenced.columns[0])
        lines.append(Line(child, child_y, parent, parent_y))
    boxes = [drawing.box for drawing in drawings]
    places = layout(boxes, lines)
    width, height = places.width + 2 * MARGIN, places.height + 2 * MARGIN
    broken = sum(not f.holds for f in foreign_keys)
    told = f"{plural(len(boxes), 'table')}, {plural(len(lines), 'reference')}"
    told += f", {broken:,} of them broken" if broken else ""
    parts = [
        f"<!-- {header(model)} -->",
        f'<svg xmlns="http://www.w3.org/2000/svg" class="er" role="img" aria-label="{told}" '
        f'width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="{-MARGIN:.0f} {-MARGIN:.0f} {width:.0f} {height:.0f}">',
        f"<title>{told}</title>",
        f"<style>{STYLE}</style>",
    ]
    tables = model.by_name()
    for foreign_key, path in zip(foreign_keys, places.paths, strict=True):
        parts += _reference(foreign_key, path, *ends(tables, foreign_key))
    for drawing, box, corner in zip(drawings, boxes, places.corners, strict=True):
        parts += _table(drawing, box, corner)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _cut(name: str) -> str:
    text = name_text(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _type(table: ExportTable, column: str) -> str:
    position = table.schema.position(column)
    return "" if position is None else str(table.schema.types[position])


def _text(x: float, y: float, text: str, css: str = "", anchor: str = "", whole: str | None = None) -> str:
    title = "" if whole is None or whole == text else f"<title>{escape(safe(whole))}</title>"
    css, anchor = css and f' class="{css}"', anchor and f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}"{css}{anchor}>{title}{escape(safe(text))}</text>'


def _table(drawing: _Drawing, box: Box, corner: Point) -> Iterator[str]:
    table, (x, y) = drawing.table, corner
    name = escape(safe(table.name), quote=True)
    yield f'<g class="table" data-table="{name}" transform="translate({x:.1f} {y:.1f})">'
    yield f'<rect width="{box.width:g}" height="{box.height:g}" rx="4"/>'
    yield f'<rect class="head" width="{box.width:g}" height="{HEAD:g}" rx="4"/>'
    yield _text(8, 17, _cut(table.name), "name", whole=table.name)
    yield _text(box.width - 8, 17, f"{table.n_rows:,}", "faint", "end", plural(table.n_rows, "row"))
    for i, column in enumerate(drawing.columns):
        line = HEAD + ROW * i + 14
        marks = drawing.marks[column]
        if marks:
            yield _text(7, line, " ".join(marks), "faint")
        yield _text(drawing.room, line, _cut(column), whole=column)
        yield _text(box.width - 8, line, _type(table, column), "faint", "end")
    if drawing.hidden:
        line = HEAD + ROW * len(drawing.columns) + 14
        yield _text(drawing.room, line, f"and {plural(drawing.hidden, 'column')} more", "faint")
    yield "</g>"


def _reference(foreign_key: ForeignKey, path: Sequence[Point], single: bool, required: bool) -> Iterator[str]:
    title = f"{foreign_key}: {'holds' if foreign_key.holds else foreign_key.doubt}"
    if len(foreign_key.pairs) > 1:
        title += f" ({columns_text(foreign_key.dependent.columns)[1:-1]})"
    css = "holds" if foreign_key.holds else "broken" if foreign_key.proved else "unproved"
    child, parent = (
        escape(safe(side.table), quote=True) for side in (foreign_key.dependent, foreign_key.referenced)
    )
    yield f'<g class="reference {css}" data-child="{child}" data-parent="{parent}">'
    yield f"<title>{escape(safe(title))}</title>"
    yield f'<path class="way" d="{_rounded(path)}"/>'
    yield _end(path[0], path[1], "child", bar=single)
    yield _end(path[-1], path[-2], "parent", bar=required)
    if not foreign_key.holds:
        (x, y), way = path[0], 1 if path[1][0] > path[0][0] else -1
        share = f"{100 * foreign_key.error:.2g} %" if foreign_key.proved else "unproved"
        yield _text(x + 16 * way, y - 5, share, "faint", "" if way > 0 else "end")
    yield "</g>"


def _end(at: Point, towards: Point, side: str, *, bar: bool) -> str:
    """A crow's foot at a child unless it has one at most (`bar`); a second bar or a ring at a parent."""
    (x, y), way = at, 1 if towards[0] >= at[0] else -1
    foot = f"M{x:.1f} {y - 5:.1f}L{x + 9 * way:.1f} {y:.1f}L{x:.1f} {y + 5:.1f}"
    line = "M{0:.1f} {1:.1f}V{2:.1f}"
    ring = f'<circle cx="{x + 13 * way:.1f}" cy="{y:.1f}" r="3"/>'
    first = line.format(x + 6 * way, y - 5, y + 5)
    if side == "child":
        return f'<path d="{first if bar else foot}"/>{ring}'
    if bar:
        return f'<path d="{first}{line.format(x + 11 * way, y - 5, y + 5)}"/>'
    return f'<path d="{first}"/>{ring}'


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
