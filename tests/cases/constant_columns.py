"""A class of dependencies from outside the package: columns of which all rows have one value.

All there is to it: the dependency, what is known of a table, how a batch changes it, how it is read; and the
line that registers it. NULL counts as a value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import Past
from holdfast.core.cover.news import News, plain_rows
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.words.change import DependencyChange, Summary, WitnessRow
from holdfast.core.words.codec import Coded
from holdfast.errors import UsageError
from holdfast.kind import Crossing, Entry, Explanation, TableClass, Tracking, register

I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Constant(Coded):
    """All rows have the same value in a column."""

    kind: ClassVar[str] = "constant"
    table: str
    columns: tuple[str]

    @property
    def name(self) -> str:
        return f"constant({self.columns[0]})"


@dataclass(frozen=True)
class Constants:
    """Of each column two rows that differ, int64[n_columns, 2]; -1 where none do."""

    differing: I64

    @property
    def columns(self) -> list[int]:
        return np.flatnonzero(self.differing[:, 0] < 0).tolist()


class ConstantClass(TableClass[Constants]):
    def discover(self, tracking: Tracking) -> Constants:
        return looked_at(tracking.rows, np.full((len(tracking.rows.schema), 2), -1, np.int64))

    def shrunk(self, known: Constants, crossing: Crossing) -> Constants:
        """A pair that lost a row proves nothing any more; only its column is looked at again."""
        lost = np.isin(known.differing, crossing.row_ids).any(axis=1)
        differing = np.where(lost[:, None], -1, known.differing)
        return looked_at(crossing.remaining, differing) if lost.any() else known

    def grown(self, known: Constants, crossing: Crossing) -> Constants:
        return looked_at(crossing.after, known.differing) if crossing.added else known

    def news(self, before: Constants, after: Constants, crossing: Crossing) -> News:
        table, names = crossing.state.table, crossing.state.schema.names
        changes = []
        for c in sorted({*before.columns} - {*after.columns}):
            rows = plain_rows(crossing.after.fetch(after.differing[c]))
            pair = tuple(WitnessRow(int(i), row) for i, row in zip(after.differing[c], rows, strict=True))
            broken = Constant(table, (names[c],))
            changes.append(DependencyChange("broke", broken, "has two values", (pair,)))
        for c in sorted({*after.columns} - {*before.columns}):
            changes.append(DependencyChange("appeared", Constant(table, (names[c],)), "has one value now"))
        return News(tuple(changes))

    def dependencies(self, known: Constants, state: TableState) -> tuple[Sequence[Constant], int]:
        return constants(state, known.columns), 0

    def summary(self, known: Constants, state: TableState, *, tracked: bool) -> Summary:
        n = len(known.columns)
        return Summary("constant", n, f"{n:,} constant column{'' if n == 1 else 's'}", {"n_constant": n})

    def save(
        self, root: Path, state: TableState, known: Constants, before: Constants | None
    ) -> Mapping[str, Any]:
        if known is before:
            return {}
        name = unique_name(state.folder, "cover", ".arrow")
        file = write_bundle(root, name, {"differing": known.differing.ravel()}, {"holdfast": "constants"})
        return {"constants": file.to_dict()}

    def load(self, root: Path, state: TableState) -> Constants | None:
        file = state.part("constants", FileRef.from_dict)
        return None if file is None else stored(root, file)


class ConstantReader:
    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.past: Past[FileRef] = Past(tables, cover_of)

    def listed(self, state: TableState, max_error: float = 0.0) -> list[Constant]:
        file = state.part("constants", FileRef.from_dict)
        return [] if file is None else constants(state, stored(self.tables.root, file).columns)

    def reads(self, question: str, state: TableState) -> bool:
        return question.startswith("constant(")

    def explain(self, table: str, question: str) -> Explanation:
        version, state = self.tables.current(table)
        [column] = self.tables.positions(state, version, [question[len("constant(") : -1]])
        file = state.part("constants", FileRef.from_dict)
        if file is None:
            raise UsageError(f"constants of table {table!r} are not tracked.")
        root = self.tables.root
        [a, b] = stored(root, file).differing[column].tolist()
        rows: tuple[WitnessRow, ...] = ()
        if a >= 0:
            with self.tables.opened(state) as relation:
                pair = plain_rows(relation.fetch(np.array([a, b])))
            rows = tuple(WitnessRow(i, row) for i, row in zip((a, b), pair, strict=True))

        def held(file: FileRef) -> bool:
            return column in stored(root, file).columns

        since, _ = self.past.spell(table, version, held, now=a < 0)
        dependency = Constant(table, (state.schema.names[column],))
        reason = "all rows have one value" if a < 0 else "two rows differ"
        return Explanation(dependency, version, a < 0, since, reason, rows)


def looked_at(rows: Relation, differing: I64) -> Constants:
    """With a pair for each column that has none, if two rows differ in it. The plainest way there is."""
    differing = differing.copy()
    segments = [open_segment(rows.root, ref, rows.schema) for ref in rows.segments]
    parts = [segment.row_ids(np.flatnonzero(segment.live)) for segment in segments]
    ids = np.concatenate([np.empty(0, np.int64), *parts])
    values = plain_rows(rows.fetch(ids))
    for c in np.flatnonzero(differing[:, 0] < 0).tolist():
        name = rows.schema.names[c]
        other = next((i for i, row in enumerate(values) if row[name] != values[0][name]), None)
        if other is not None:
            differing[c] = ids[0], ids[other]
    return Constants(differing)


def constants(state: TableState, columns: Sequence[int]) -> list[Constant]:
    return [Constant(state.table, (state.schema.names[c],)) for c in columns]


def stored(root: Path, file: FileRef) -> Constants:
    return Constants(open_bundle(root, file, "constants").array("differing").reshape(-1, 2))


def cover_of(fields: Mapping[str, Any]) -> tuple[FileRef, FileRef] | None:
    if not fields.get("constants"):
        return None
    file = FileRef.from_dict(fields["constants"])
    return file, file


ENTRY = Entry(
    "constant",
    "constants",
    ConstantClass(),
    ("constant column", "constant columns"),
    reader=ConstantReader,
    dependency=Constant,
)
register(ENTRY)
