"""What the page may change: what somebody relies on, and what they need not be told of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.app.explorer.asking import asked
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.routes import Route, Text
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.reliance import SEVERITIES, PinTerms, Wanted
from holdfast.core.words.sameness import DependencySet
from holdfast.muting import dependency_asked

NAMED = (Text("table", needed=True), Text("ask", needed=True))
TERMS = (Text("at_most"), Text("severity", SEVERITIES), Text("reason"), Text("owner"))


class RelyingAnswers:
    """Each action is one version, or none if it changes nothing; or an error, and nothing is changed."""

    def __init__(self, newest: Newest) -> None:
        self._newest = newest

    def routes(self) -> Mapping[str, Route]:
        return {}

    def actions(self) -> Mapping[str, Route]:
        return {
            "workspace/pin": Route(self.pin, (*NAMED, *TERMS)),
            "workspace/unpin": Route(self.unpin, NAMED),
            "workspace/mute": Route(self.mute, (*NAMED, Text("reason"))),
            "workspace/unmute": Route(self.unmute, NAMED),
        }

    def pin(self, table: str, ask: str, **given: str | None) -> dict[str, Any]:
        terms: Any = {name: text for name, text in given.items() if text is not None}
        change = self._newest.workspace.pin_all([self._wanted(self._dependency(table, ask), terms)])
        return change.to_dict()

    def unpin(self, table: str, ask: str) -> dict[str, Any]:
        pin = self._newest.workspace.unpin(self._wanted(self._dependency(table, ask), {}))
        return {"removed": pin.to_dict()}

    def mute(self, table: str, ask: str, reason: str | None) -> dict[str, Any]:
        muted = self._newest.workspace.mute(table, self._dependency(table, ask), reason=reason)
        return {"muted": muted.to_dict()}

    def unmute(self, table: str, ask: str) -> dict[str, Any]:
        muted = self._newest.workspace.unmute(table, self._dependency(table, ask))
        return {"removed": muted.to_dict()}

    def _dependency(self, table: str, ask: str) -> Dependency:
        ws = self._newest.workspace
        return dependency_asked(ws.readers, *asked(ws, table, ask))

    def _wanted(self, dependency: Dependency, terms: PinTerms) -> Wanted:
        """What a dependency asks to be pinned; if it is pinned, as it is: a key may be as a rule."""
        ws = self._newest.workspace
        state = ws.writer.tables.state(dependency.table)
        this = DependencySet([dependency], lambda _: state.nulls)
        pins = (p.dependency for p in ws.pins(dependency.table) if p.dependency in this)
        return Wanted.of(next(pins, dependency), terms)
