"""What the page asks about tracked tables: what holds in them, and how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.routes import Route, Text
from holdfast.app.report.texts import dependency_text, meaning, safe
from holdfast.core.store.change_log import LogEntry
from holdfast.core.words.asking import ask_of
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule
from holdfast.kind import dependency_from, kinds

MOST_DEPENDENCIES = 1_000
MOST_ENTRIES = 200
MOST_CHANGES = 200  # of one entry of the log


class TrackedAnswers:
    def __init__(self, newest: Newest) -> None:
        self._newest = newest

    def routes(self) -> Mapping[str, Route]:
        return {
            "workspace/dependencies": Route(self.dependencies, (Text("table"), Text("kind", kinds()))),
            "workspace/log": Route(self.log, (Text("table"),)),
        }

    def dependencies(self, table: str | None, kind: str | None) -> dict[str, Any]:
        """The first dependencies of a table, or of all, as reports tell them; `n` counts them all."""
        answer: dict[str, Any] = self._newest.cached(
            ("dependencies", table, kind), lambda: self._dependencies(table, kind)
        )
        return answer

    def _dependencies(self, table: str | None, kind: str | None) -> dict[str, Any]:
        newest = self._newest
        dependencies = newest.workspace.dependencies(kind, table, newest.at, ranked=True)
        first = [dependency_dict(d, with_table=table is None) for d in dependencies[:MOST_DEPENDENCIES]]
        return {"version": newest.version, "n": len(dependencies), "dependencies": first}

    def log(self, table: str | None) -> dict[str, Any]:
        """The newest entries of the log, newest first."""
        answer: dict[str, Any] = self._newest.cached(("log", table), lambda: self._log(table))
        return answer

    def _log(self, table: str | None) -> dict[str, Any]:
        entries = self._newest.workspace.log(table)[: -MOST_ENTRIES - 1 : -1]
        return {"entries": list(map(entry_dict, entries))}


def dependency_dict(dependency: Dependency, *, with_table: bool = False) -> dict[str, Any]:
    """A dependency with a text for people, as the command line writes it; a rule also with its sentence.

    >>> fields = dependency_dict(RowRule("orders", "net", "<=", "gross"), with_table=True)
    >>> fields["kind"], fields["text"], fields["sentence"]
    ('row', 'orders: net <= gross', 'net is at most gross')
    """
    fields = dependency.to_dict()
    fields["text"] = dependency_text(fields, with_table=with_table)
    fields["ask"] = ask_of(dependency)
    if isinstance(dependency, Dc):
        fields["sentence"] = meaning(dependency)
    elif isinstance(dependency, RowRule):
        fields["sentence"] = safe(dependency.sentence)
    return fields


def entry_dict(entry: LogEntry) -> dict[str, Any]:
    """An entry of the log; of its changes the first, and how many there are."""
    fields = replace(entry, changes=entry.changes[:MOST_CHANGES]).to_dict()
    for change in fields["changes"]:
        change["text"] = dependency_text(change["dependency"], with_table=len(entry.tables) > 1)
        change["ask"] = ask_of(dependency_from(change["dependency"]))
    return {**fields, "n_changes": len(entry.changes)}
