"""What the page asks about how tracked tables hang together: the diagram of `export/er_drawing.py`, and what
is known of a reference.

References are those that an export proposes, those that were such before they broke, and pinned inclusions.
To choose them costs a look at all inclusions, so the answer is kept until the next version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.routes import NotFoundError, Route, Text
from holdfast.app.explorer.tracked_answers import dependency_dict
from holdfast.app.export.diagrams import to_mermaid
from holdfast.app.export.er_drawing import DrawnReference, drawing_of
from holdfast.app.export.er_svg import MARGIN, STYLE
from holdfast.app.export.model import ExportTable, ForeignKey, Model
from holdfast.core.store.ledger_rows import turned_dict
from holdfast.core.words.dependency import Ind, Side
from holdfast.errors import shorten

if TYPE_CHECKING:
    from holdfast.core.cover.violating_rows import ViolatingRows

MOST_ORPHANS = 100  # values of a reference that are listed
MOST_ROWS = 1_000_000  # with orphans that are looked at, to count those of each value


class MapAnswers:
    def __init__(self, newest: Newest) -> None:
        self._newest = newest

    def routes(self) -> Mapping[str, Route]:
        return {
            "workspace/map": Route(self.map, (Text("references", ("yes", "no"), "yes"),)),
            "workspace/map/mermaid": Route(self.mermaid),
            "workspace/orphans": Route(self.orphans, (Text("table", needed=True), Text("ask", needed=True))),
        }

    def map(self, references: str) -> dict[str, Any]:
        """The drawing; without references it is there at once."""
        answer: dict[str, Any] = self._newest.cached(
            ("map", references), self._map if references == "yes" else self._boxes
        )
        return answer

    def mermaid(self) -> dict[str, Any]:
        """The text of `export --format mermaid`."""
        return {"version": self._newest.version, "text": self._newest.cached("mermaid", self._mermaid)}

    def orphans(self, table: str, ask: str) -> dict[str, Any]:
        """What is known of a reference: since when it is as it is, and the values that are missing, those in
        most rows first. A job over the rows of the child if there are any."""
        answer: dict[str, Any] = self._newest.cached(
            ("orphans", table, ask), lambda: self._orphans(table, ask)
        )
        return answer

    # -- inside -------------------------------------------------------------------------------

    def _mermaid(self) -> str:
        from holdfast.app.commands.linking import model_of

        return to_mermaid(model_of(self._newest.workspace))

    def _boxes(self) -> dict[str, Any]:
        ws, at = self._newest.workspace, self._newest.at
        tables = tuple(ExportTable(name, ws.schema(name, at), ws.n_rows(name, at)) for name in ws.tables(at))
        return self._answer(Model(at or 0, tables), frozenset())

    def _map(self) -> dict[str, Any]:
        from holdfast.app.commands.linking import model_of

        ws, at = self._newest.workspace, self._newest.at
        pinned = [
            (Side(p.table, p.columns), p.referenced) for p in ws.pins(at=at) if p.referenced is not None
        ]
        relied = ws.inds.measured(pinned, at)
        return self._answer(with_pins(model_of(ws, with_broken=True), relied), frozenset(map(_sides, relied)))

    def _answer(self, model: Model, relied: frozenset[tuple[Side, Side]]) -> dict[str, Any]:
        newest = self._newest
        drawing = drawing_of(model)
        drawn = [(r.foreign_key.dependent, r.foreign_key.referenced) for r in drawing.references]
        ws, at = newest.workspace, newest.at
        measured = ws.inds.measured(drawn, at)
        references = [
            reference_dict(r, ind, _sides(ind) in relied)
            for r, ind in zip(drawing.references, measured, strict=True)
        ]
        return {
            **drawing.to_dict(),
            "references": references,
            "version": newest.version,
            "margin": MARGIN,
            "style": STYLE,
            "without_inclusions": [t.name for t in model.tables if "ind" not in ws.kinds(t.name, at)],
        }

    def _orphans(self, table: str, ask: str) -> dict[str, Any]:
        there = self.map("yes")["references"]
        reference = next((r for r in there if (r["child"], r["ask"]) == (table, ask)), None)
        if reference is None:
            raise NotFoundError(
                f"table {shorten(table)} has no reference {shorten(ask)} (version {self._newest.version})."
            )
        ws = self._newest.workspace
        ind = Ind(
            Side(table, tuple(reference["columns"])),
            Side(reference["parent"], tuple(reference["parent_columns"])),
        )
        since, turned = ws.inds.spell(ind) if reference["state"] != "unproved" else (None, None)
        answer = {"version": self._newest.version, "since": since, "turned": turned_dict(turned)}
        if reference["state"] != "broken":
            return {**answer, "n_values": 0, "n_rows": 0, "values": [], "complete": True}
        rows = ws.violations(table, ind.columns, referenced=ind.referenced, limit=MOST_ROWS)
        return {
            **answer,
            "n_values": rows.n_groups,
            "n_rows": rows.n_violating,
            "values": orphans_of(rows, ind.columns),
            "complete": rows.complete,
        }


def reference_dict(drawn: DrawnReference, ind: Ind, pinned: bool) -> dict[str, Any]:
    """A reference as it is drawn, and the inclusion that it is, by which the page asks about it."""
    fields = dependency_dict(ind)
    return {
        **drawn.to_dict(),
        "ask": fields.get("ask", fields["text"]),
        "pinned": pinned,
        "missing_values": ind.missing_values,
        "missing_rows": ind.missing_rows,
        "coverage": 1 - ind.error if drawn.foreign_key.proved else None,  # of the child's values
        "used": ind.coverage if drawn.foreign_key.proved else None,  # of the parent's values
    }


def _sides(ind: Ind) -> tuple[Side, Side]:
    return ind.dependent, ind.referenced


def with_pins(model: Model, pinned: list[Ind]) -> Model:
    """A model with the pinned inclusions as foreign keys, those too that miss too much to be proposed."""
    there = {(f.dependent.table, f.referenced.table, frozenset(f.pairs)) for f in model.foreign_keys}
    added = list(model.foreign_keys)
    for ind in pinned:
        foreign_key = ForeignKey(ind.dependent, ind.referenced, 1.0, ind.error)
        key = (ind.table, ind.referenced.table, frozenset(foreign_key.pairs))
        if key not in there:
            there.add(key)
            added.append(foreign_key)
    return replace(model, foreign_keys=tuple(added))


def orphans_of(rows: ViolatingRows, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Missing values and how many rows have each: those of most rows first, then the oldest. Of several
    columns a value is the list of theirs."""
    from holdfast.core.cover.news import plain_rows

    groups, first, counts = np.unique(rows.said["group"], return_index=True, return_counts=True)
    order = np.lexsort((groups, -counts))[:MOST_ORPHANS]
    some = plain_rows(rows.relation.fetch(rows.row_ids[first[order]]).select(list(columns)))
    values = [[row[c] for c in columns] if len(columns) > 1 else row[columns[0]] for row in some]
    return [{"value": value, "n_rows": n} for value, n in zip(values, counts[order].tolist(), strict=True)]
