"""What the page asks about a lake."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.routes import Route, Text, Whole

MOST_COMPONENTS = 2_000
MOST_EDGES = 1_000_000
USUAL_EDGES = 30_000
MOST_RESULTS = 1_000
MOST_TEXTS = 100  # of each list of an inclusion
WHAT = ("all", "table", "column", "value")


class LakeAnswers:
    def __init__(self, newest: Newest) -> None:
        self._newest = newest

    def routes(self) -> Mapping[str, Route]:
        edges = Whole("max_edges", USUAL_EDGES, 0, MOST_EDGES)
        limit = Whole("limit", 50, 1, MOST_RESULTS)
        return {
            "components": Route(self.components),
            "component": Route(self.component, (Whole("id"), edges)),
            "cluster": Route(self.cluster, (Whole("component"), Whole("id"), edges)),
            "table": Route(self.table, (Whole("id"),)),
            "ind": Route(self.ind, (Whole("dependent"), Whole("referenced"))),
            "search": Route(self.search, (Text("q", needed=True), Text("what", WHAT, "all"), limit)),
        }

    def components(self) -> dict[str, Any]:
        return self._newest.linked.components(MOST_COMPONENTS).to_dict()

    def component(self, id: int, max_edges: int) -> dict[str, Any]:
        return self._newest.linked.component(id, max_edges).to_dict()

    def cluster(self, component: int, id: int, max_edges: int) -> dict[str, Any]:
        return self._newest.linked.cluster(component, id, max_edges).to_dict()

    def table(self, id: int) -> dict[str, Any]:
        return self._newest.linked.table(id).to_dict()

    def ind(self, dependent: int, referenced: int) -> dict[str, Any]:
        return self._newest.linked.ind(dependent, referenced, MOST_TEXTS).to_dict()

    def search(self, q: str, what: str, limit: int) -> dict[str, Any]:
        return self._newest.linked.search(q, what, limit).to_dict()
