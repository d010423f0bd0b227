"""What the page asks about a lake."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
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
            "linked": Route(self.linked, (Whole("id"),)),
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

    def linked(self, id: int) -> dict[str, Any]:
        """The same for the view of tables: with the command that would track it, and whether a tracked table
        has its name."""
        fields, tracked = self.table(id), self._newest.workspace.tables(self._newest.at)
        command = tracking(fields["name"], fields["source"], tracked)
        return {**fields, "command": command, "is_tracked": fields["name"] in tracked}

    def ind(self, dependent: int, referenced: int) -> dict[str, Any]:
        return self._newest.linked.ind(dependent, referenced, MOST_TEXTS).to_dict()

    def search(self, q: str, what: str, limit: int) -> dict[str, Any]:
        return self._newest.linked.search(q, what, limit).to_dict()


def tracking(name: str, source: str, tracked: Collection[str]) -> str:
    """The command that tracks a table of a lake, under the name of its file if no table has that yet.

    A member of an archive, or one of many documents, is no file: FILE stands for one of its own.

    >>> tracking("sky/planets.csv.gz", "/data/sky/planets.csv.gz", ())
    'holdfast track planets /data/sky/planets.csv.gz --kinds ucc,fd,dc,profile'
    >>> tracking("all.zip!my moons.csv", "/data/all.zip!my moons.csv", ("planets",))
    "holdfast track 'my moons' FILE --kinds ucc,fd,dc,profile"
    """
    stem = PurePosixPath(name.rpartition("!")[2]).name.split(".")[0]
    short = stem if stem and stem not in tracked else name
    file = "FILE" if "!" in source or "#" in source else shlex.quote(source)
    return f"holdfast track {shlex.quote(short)} {file} --kinds ucc,fd,dc,profile"
