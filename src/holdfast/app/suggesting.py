"""What is worth to be relied on, of what holds now: what `pin --suggested` and `pin --from-links` pin.

Keys are of those that `export` declares, references those that `links` chooses and the data proves, and
conditions what the profiles of columns suggest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import holdfast
from holdfast.core.words.change import Pin
from holdfast.core.words.condition import Condition, is_condition, read_condition
from holdfast.core.words.condition_strength import implies
from holdfast.core.words.predicate import written_name
from holdfast.core.words.reliance import PinTerms, Wanted

if TYPE_CHECKING:
    from holdfast.app.export import ExportTable, Model
    from holdfast.core.words.dependency import Side


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to pin, and what speaks for it."""

    wanted: Wanted
    reason: str

    @property
    def name(self) -> tuple[str, str]:
        """(table, what is suggested), as its pin says it."""
        wanted = self.wanted
        text = wanted.rule or str(Pin(wanted.table, wanted.columns, True, wanted.referenced))
        return wanted.table, text

    def on(self, terms: PinTerms) -> Wanted:
        """On some terms."""
        return replace(self.wanted, terms=terms)


def suggested(ws: holdfast.Workspace, table: str | None = None) -> list[Suggestion]:
    """What is worth a pin, of a table or of all: it holds now, and hardly by chance."""
    from holdfast.app.commands.linking import model_of

    if table is not None:
        ws.schema(table)  # the error that there is no such table
    model = model_of(ws)
    suggestions: list[Suggestion] = []
    for each in model.tables:
        if table in (None, each.name):
            # The sources of suggestions, a line each.
            suggestions += _keys(ws, model, each)
            suggestions += _references(model, each.name)
            suggestions += _conditions(ws, model, each)
    # Two of them may have the same to say: that a column of a key is not NULL.
    once: dict[tuple[str, str], Suggestion] = {}
    for suggestion in suggestions:
        once.setdefault(suggestion.name, suggestion)
    return list(once.values())


def linked(ws: holdfast.Workspace, table: str | None = None) -> list[Suggestion]:
    """The references that `links` chooses, of a table or of all, but for those that only names speak for."""
    links = (link for link in ws.inds.links(table).links if link.chosen and link.proved)
    return [_reference(link.dependent, link.referenced, link.score) for link in links]


def _keys(ws: holdfast.Workspace, model: Model, table: ExportTable) -> Iterator[Suggestion]:
    """Of the keys that an export declares the primary key and those that others refer to, and that their
    columns have no NULL. Others may be unique by chance, and a pin of one would close a gate for nothing."""
    from holdfast.app.export import choose_keys

    if "ucc" not in ws.kinds(table.name):
        return
    primary = table.primary_key or ws.readers.order(model.version or None).table(table.name).primary_key or ()
    referenced = [
        set(f.referenced.columns) for f in model.foreign_keys if f.holds and f.referenced.table == table.name
    ]
    columns: dict[str, None] = {}
    for key in choose_keys(model)[table.name].all():
        reasons = ["it looks like the primary key"] * (set(key) == set(primary))
        reasons += ["foreign keys refer to it"] * (set(key) in referenced)
        if reasons:
            yield Suggestion(Wanted(table.name, key), reasons[0])
            columns |= dict.fromkeys(key)
    for column in columns:
        rule = f"{written_name(column)} is not null"
        # Some names would make another rule of it.
        if column in table.filled and is_condition(rule):
            yield Suggestion(Wanted(table.name, rule=rule), "a column of a key, without a NULL now")


def _conditions(ws: holdfast.Workspace, model: Model, table: ExportTable) -> Iterator[Suggestion]:
    """What the profiles of columns suggest: that they have no NULL, few values, a range or a pattern.

    What values a key or a reference may have, others say; nor is suggested what follows from a condition that
    is pinned.
    """
    linked = model.referring(table.name) | set(table.primary_key or ())
    muted = ws.readers.muted_at(model.version or None)
    relied = {
        str(pin): read_condition(str(pin), table.schema) for pin in model.pins if pin.table == table.name
    }
    for suggestion in ws.profiles.suggestions(table.name):
        if Condition(table.name, suggestion.text, (suggestion.column,)) in muted:
            continue
        node = read_condition(suggestion.text, table.schema)
        if suggestion.text not in relied and any(implies(pinned, node) for pinned in relied.values()):
            continue
        if suggestion.column not in linked or suggestion.text.endswith(" is not null"):
            yield Suggestion(Wanted(table.name, rule=suggestion.text), suggestion.reason)


def _references(model: Model, table: str) -> Iterator[Suggestion]:
    for key in model.foreign_keys:
        if key.dependent.table == table and key.holds:
            yield _reference(key.dependent, key.referenced, key.score)


def _reference(dependent: Side, referenced: Side, score: float) -> Suggestion:
    wanted = Wanted(dependent.table, dependent.columns, referenced)
    return Suggestion(wanted, f"it looks like a foreign key, score {score:.2f}")
