"""What the page asks about the past of tracked tables: what was done to them, and what that changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.app.explorer.listing import sentence_of
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.routes import Route, Text
from holdfast.app.report.log import unmuted
from holdfast.app.report.texts import dependency_text
from holdfast.core.store.change_log import LogEntry
from holdfast.core.words.asking import ask_of
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.ranks import Rank
from holdfast.core.words.sameness import NONE, DependencySet
from holdfast.kind import dependency_from

MOST_ENTRIES = 200
MOST_CHANGES = 200  # of one entry of the log


class TrackedAnswers:
    def __init__(self, newest: Newest) -> None:
        self._newest = newest

    def routes(self) -> Mapping[str, Route]:
        return {"workspace/log": Route(self.log, (Text("table"),))}

    def log(self, table: str | None) -> dict[str, Any]:
        """The newest entries of the log, newest first."""
        answer: dict[str, Any] = self._newest.cached(("log", table), lambda: self._log(table))
        return answer

    def _log(self, table: str | None) -> dict[str, Any]:
        ws = self._newest.workspace
        muted = ws.readers.muted_at(self._newest.at)
        return {"entries": [entry_dict(e, muted) for e in ws.log(table)[: -MOST_ENTRIES - 1 : -1]]}


def rank_dict(rank: Rank) -> dict[str, Any]:
    """What a dependency means, and what somebody has said of it."""
    return {"role": rank.role, "pinned": rank.role == "pinned", "muted": rank.role == "muted"}


def dependency_dict(dependency: Dependency, *, with_table: bool = False) -> dict[str, Any]:
    """A dependency with a text for people, as the command line writes it; a rule also with its sentence.

    >>> from holdfast.core.words.row_rule import RowRule
    >>> fields = dependency_dict(RowRule("orders", "net", "<=", "gross"), with_table=True)
    >>> fields["kind"], fields["text"], fields["sentence"]
    ('row', 'orders: net <= gross', 'net is at most gross')
    """
    fields = dependency.to_dict()
    fields["text"] = dependency_text(fields, with_table=with_table)
    fields["ask"] = ask_of(dependency)
    if sentence := sentence_of(dependency):
        fields["sentence"] = sentence
    return fields


def entry_dict(entry: LogEntry, muted: DependencySet = NONE) -> dict[str, Any]:
    """An entry of the log; of its changes that are not muted the first, and how many of both there are."""
    changes = unmuted(entry.changes, muted)
    fields = replace(entry, changes=tuple(changes[:MOST_CHANGES])).to_dict()
    fields["n_muted"] = len(entry.changes) - len(changes)
    for change in fields["changes"]:
        change["text"] = dependency_text(change["dependency"], with_table=len(entry.tables) > 1)
        change["ask"] = ask_of(dependency_from(change["dependency"]))
    return {**fields, "n_changes": len(changes)}
