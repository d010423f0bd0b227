"""What the page asks, answered with plain dicts: a route for each question (`routes.py`), in parts by what
they are about.

An answer is about the newest version of the workspace: a commit by another process is seen by the next
question. Readers of a workspace are not made for several threads, so one lock lets questions in one by one;
they take milliseconds, but for the first of a large lake.

Lists are bounded wherever a workspace's are not: no answer is larger than a browser can take.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.app.explorer.lake_answers import LakeAnswers
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.overview_answers import OverviewAnswers
from holdfast.app.explorer.routes import NotFoundError, Route
from holdfast.app.explorer.tracked_answers import TrackedAnswers
from holdfast.errors import WorkspaceError, shorten
from holdfast.kind import entries, kinds

if TYPE_CHECKING:
    from holdfast.workspace import Workspace

PARTS = (LakeAnswers, TrackedAnswers, OverviewAnswers)


class Explorer:
    """Answers about one workspace; may be asked by several threads."""

    def __init__(self, workspace: Workspace) -> None:
        self._newest = Newest(workspace)
        self._lock = threading.Lock()
        self._routes = {"summary": Route(self.summary)}
        for part in PARTS:
            self._routes.update(part(self._newest).routes())

    def answer(self, path: str, fields: Mapping[str, str]) -> dict[str, Any]:
        """What a route answers, from the newest version; `fields` are the parameters as texts."""
        route = self._routes.get(path)
        if route is None:
            raise NotFoundError(f"there is nothing at api/{shorten(path)[1:-1]}.")
        parameters = route.read(fields)
        with self._lock:
            self._newest.refresh()
            try:
                return route.method(**parameters)
            except WorkspaceError:
                # Another process may have committed, and removed files, since we looked.
                if not self._newest.refresh():
                    raise
                return route.method(**parameters)

    @property
    def version(self) -> int:
        """The version that the last question was answered from; -1 before the first."""
        return self._newest.version

    def newest_version(self) -> int:
        """The newest version of the workspace, seen without waiting for a question. Cost: a `stat`."""
        return self._newest.workspace.version

    def prepare(self) -> None:
        """Work out what the first page asks for, so that it is there when the page is."""
        if self._newest.workspace.version:
            self.answer("workspace/overview", {})

    def close(self, patience_s: float = 2.0) -> None:
        """Wait for the question that is being answered, and let no other one in."""
        self._lock.acquire(timeout=patience_s)

    def summary(self) -> dict[str, Any]:
        """What every view needs: the tables that are tracked, the lake in short."""
        ws, at, version = self._newest.workspace, self._newest.at, self._newest.version
        tables = [
            {"name": name, "n_rows": ws.n_rows(name, at), "kinds": list(ws.kinds(name, at))}
            for name in ws.tables(at)
        ]
        linked = self._newest.lake
        lake = None if linked is None else {**linked.summary().to_dict(), "version": version}
        nouns = {kind: list(entries()[kind].nouns) for kind in kinds()}
        return {"lake": lake, "workspace": {"version": version, "tables": tables, "nouns": nouns}}
