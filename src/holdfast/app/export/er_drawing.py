"""An entity-relationship diagram as boxes and ways: what is drawn, and where, whoever draws it.

`er_svg` writes it as a picture, and the page draws it, both from its JSON. Of a wide table the columns of
keys and references are shown, and the first others; of a table without references fewer, where others have
some. Lines end in crow's feet: `ENDS` has their shapes, as they are where a line leaves to the right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.app.export.diagrams import drawn, ends, key_marks
from holdfast.app.export.er_layout import Box, Line, Point, layout
from holdfast.app.export.model import ChosenKeys, ExportTable, ForeignKey, Model, choose_keys
from holdfast.app.report.texts import columns_text, name_text
from holdfast.errors import plural

ROW, HEAD = 20.0, 26.0  # heights
EM = 7.2  # the width of a character, for room; the font decides
LEAST = 110.0  # the width of a table
MARK = 22.0  # the room of PK or FK
LONGEST = 28  # characters of a name
MOST_ROWS = 12  # columns of a table, unless more are of keys and references
MOST_ROWS_APART = 4  # of a table without references
ROUND = 5.0  # the radius of corners

# Shapes of the ends of a line, and whether a ring stands behind: "zero".
ENDS: Mapping[str, tuple[str, bool]] = {
    "zero or more": ("M0 -5L9 0L0 5", True),
    "zero or one": ("M6 -5V5", True),
    "exactly one": ("M6 -5V5M11 -5V5", False),
}
RING_AT, RING = 13.0, 3.0


@dataclass(frozen=True, slots=True)
class DrawnColumn:
    name: str
    type: str
    marks: tuple[str, ...]  # PK, FK, UK

    @property
    def text(self) -> str:
        return cut(self.name)


@dataclass(frozen=True, slots=True)
class DrawnTable:
    """A table: the columns that are shown, how many are not, its box, and its upper left corner."""

    table: ExportTable
    columns: tuple[DrawnColumn, ...]
    hidden: int
    box: Box
    corner: Point = (0.0, 0.0)

    @classmethod
    def of(
        cls, table: ExportTable, keys: ChosenKeys, foreign_keys: Sequence[ForeignKey], most: int
    ) -> DrawnTable:
        marks = key_marks(table, keys, foreign_keys)
        ends = {c for f in foreign_keys if f.referenced.table == table.name for c in f.referenced.columns}
        wanted = {c for c in table.schema.names if marks[c] or c in ends}
        for column in table.schema.names:
            if len(wanted) >= most:
                break
            wanted.add(column)
        shown = tuple(
            DrawnColumn(c.name, str(c.type), tuple(marks[c.name]))
            for c in table.schema.columns
            if c.name in wanted
        )
        hidden = len(table.schema) - len(shown)
        names = [len(c.text) + len(c.type) * 0.85 + 3 for c in shown]
        title = len(cut(table.name)) * 1.1 + len(f"{table.n_rows:,}") + 3
        width = max([_room(shown) + EM * n for n in names] + [EM * title + 16, LEAST])
        return cls(table, shown, hidden, Box(round(width), HEAD + ROW * (len(shown) + bool(hidden))))

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def title(self) -> str:
        return cut(self.name)

    @property
    def room(self) -> float:
        """The width of the marks."""
        return _room(self.columns)

    @property
    def remark(self) -> str:
        """What stands below the columns."""
        return f"and {plural(self.hidden, 'column')} more" if self.hidden else ""

    def height_of(self, column: str) -> float:
        return HEAD + ROW * ([c.name for c in self.columns].index(column) + 0.5)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "n_rows": self.table.n_rows,
            "x": self.corner[0],
            "y": self.corner[1],
            "width": self.box.width,
            "height": self.box.height,
            "room": self.room,
            "columns": [
                {"name": c.name, "text": c.text, "type": c.type, "marks": list(c.marks)} for c in self.columns
            ],
            "all_columns": list(self.table.schema.names),
            "remark": self.remark,
        }


@dataclass(frozen=True, slots=True)
class DrawnReference:
    """A foreign key: its way from child to parent, how it ends there, and where below the tops of boxes."""

    foreign_key: ForeignKey
    ends: tuple[str, str]  # of `ENDS`, at the child and at the parent
    below: tuple[float, float]
    path: tuple[Point, ...] = ()

    @property
    def state(self) -> str:
        if self.foreign_key.holds:
            return "holds"
        return "broken" if self.foreign_key.proved else "unproved"

    @property
    def title(self) -> str:
        f = self.foreign_key
        text = f"{f}: {'holds' if f.holds else f.doubt}"
        return f"{text} ({columns_text(f.dependent.columns)[1:-1]})" if len(f.pairs) > 1 else text

    @property
    def label(self) -> str:
        """What stands on the line: how much is missing."""
        match self.state:
            case "broken":
                return f"{100 * self.foreign_key.error:.2g} %"
            case "unproved":
                return "unproved"
        return ""

    def to_dict(self) -> dict[str, Any]:
        child, parent = self.foreign_key.dependent, self.foreign_key.referenced
        return {
            "child": child.table,
            "columns": list(child.columns),
            "parent": parent.table,
            "parent_columns": list(parent.columns),
            "state": self.state,
            "title": self.title,
            "label": self.label,
            "ends": list(self.ends),
            "below": list(self.below),
            "path": [list(point) for point in self.path],
        }


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of it. `apart`: where the tables without references begin, if others stand above them."""

    tables: tuple[DrawnTable, ...]
    references: tuple[DrawnReference, ...]
    width: float
    height: float
    apart: float | None

    @property
    def summary(self) -> str:
        broken = sum(r.state == "broken" for r in self.references)
        text = f"{plural(len(self.tables), 'table')}, {plural(len(self.references), 'reference')}"
        return f"{text}, {broken:,} of them broken" if broken else text

    def to_dict(self) -> dict[str, Any]:
        return {
            "width": self.width,
            "height": self.height,
            "apart": self.apart,
            "tables": [table.to_dict() for table in self.tables],
            "references": [reference.to_dict() for reference in self.references],
            "summary": self.summary,
            "sizes": {"row": ROW, "head": HEAD, "round": ROUND, "ring_at": RING_AT, "ring": RING},
            "ends": {name: {"shape": shape, "ring": ring} for name, (shape, ring) in ENDS.items()},
        }


def drawing_of(model: Model, *, all_keys: bool = False) -> Drawing:
    """The diagram of a model. Cost: that of `er_layout`."""
    chosen, foreign_keys = choose_keys(model, all_keys=all_keys), drawn(model)
    joined = {side.table for f in foreign_keys for side in (f.dependent, f.referenced)}
    tables = [
        DrawnTable.of(
            table,
            chosen[table.name],
            foreign_keys,
            MOST_ROWS if table.name in joined or not joined else MOST_ROWS_APART,
        )
        for table in model.tables
    ]
    number, by_name = {table.name: i for i, table in enumerate(tables)}, model.by_name()
    references, lines = [], []
    for foreign_key in foreign_keys:
        child, parent = number[foreign_key.dependent.table], number[foreign_key.referenced.table]
        below = (
            tables[child].height_of(foreign_key.dependent.columns[0]),
            tables[parent].height_of(foreign_key.referenced.columns[0]),
        )
        single, required = ends(by_name, foreign_key)
        names = "zero or one" if single else "zero or more", "exactly one" if required else "zero or one"
        references.append(DrawnReference(foreign_key, names, below))
        lines.append(Line(child, below[0], parent, below[1]))
    places = layout([table.box for table in tables], lines)
    return Drawing(
        tuple(
            DrawnTable(t.table, t.columns, t.hidden, t.box, corner)
            for t, corner in zip(tables, places.corners, strict=True)
        ),
        tuple(
            DrawnReference(r.foreign_key, r.ends, r.below, path)
            for r, path in zip(references, places.paths, strict=True)
        ),
        places.width,
        places.height,
        places.apart,
    )


def cut(name: str) -> str:
    text = name_text(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _room(columns: Sequence[DrawnColumn]) -> float:
    return 5 + MARK * max([1, *(len(c.marks) for c in columns)])
