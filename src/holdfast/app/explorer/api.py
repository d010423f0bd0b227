"""What the page asks, answered with plain dicts: a route for each question (`routes.py`), in parts by what
they are about.

An answer is about the newest version of the workspace: a commit by another process is seen by the next
question. Readers of a workspace are not made for several threads, so one lock lets questions in one by one;
they take milliseconds, but for the first of a large lake. Actions, the few routes that change something,
stand in a table of their own, and go through the same lock.

Lists are bounded wherever a workspace's are not: no answer is larger than a browser can take.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.app.explorer.dependency_answers import DependencyAnswers
from holdfast.app.explorer.lake_answers import LakeAnswers
from holdfast.app.explorer.map_answers import MapAnswers
from holdfast.app.explorer.newest import Newest
from holdfast.app.explorer.overview_answers import OverviewAnswers
from holdfast.app.explorer.relying_answers import RelyingAnswers
from holdfast.app.explorer.routes import Download, NotFoundError, ReadOnlyError, Route
from holdfast.app.explorer.table_answers import TableAnswers
from holdfast.app.explorer.tracked_answers import TrackedAnswers
from holdfast.errors import WorkspaceError, shorten
from holdfast.kind import entries, kinds

if TYPE_CHECKING:
    from holdfast.workspace import Workspace

PARTS = (
    OverviewAnswers,
    MapAnswers,
    TableAnswers,
    TrackedAnswers,
    DependencyAnswers,
    LakeAnswers,
    RelyingAnswers,
)
READ_ONLY = "this page only reads: start it with 'holdfast explore --write' to pin and mute from it."


class Explorer:
    """Answers about one workspace, and changes it if `write` allows that; may be asked by several threads."""

    def __init__(self, workspace: Workspace, *, write: bool = False) -> None:
        self.write = write
        self._newest = Newest(workspace)
        self._lock = threading.Lock()
        self._routes = {"summary": Route(self.summary)}
        self._actions: dict[str, Route] = {}
        for part in PARTS:
            made = part(self._newest)
            self._routes.update(made.routes())
            if isinstance(made, RelyingAnswers):
                self._actions.update(made.actions())

    def answer(self, path: str, fields: Mapping[str, str]) -> Any:
        """What a route answers, a dict or a `Download`, from the newest version; `fields` are the parameters
        as texts."""
        route = self._routes.get(path)
        if route is None:
            raise NotFoundError(f"there is nothing at api/{shorten(path)[1:-1]}.")
        parameters = route.read(fields)
        with self._lock:
            self._newest.refresh()
            try:
                answer = route.method(**parameters)
            except WorkspaceError:
                # Another process may have committed, and removed files, since we looked.
                if not self._newest.refresh():
                    raise
                answer = route.method(**parameters)
        if isinstance(answer, Download):
            return replace(answer, pieces=self._one_by_one(answer.pieces))
        return answer

    def _one_by_one(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Other questions are answered between two pieces."""
        while True:
            with self._lock:
                piece = next(pieces, None)
            if piece is None:
                return
            yield piece

    def changes(self, path: str) -> bool:
        """Whether a route changes something."""
        return path in self._actions

    def act(self, path: str, fields: Mapping[str, str]) -> dict[str, Any]:
        """What an action did, on top of the newest version; it is not tried again."""
        if not self.write:
            raise ReadOnlyError(READ_ONLY)
        route = self._actions[path]
        parameters = route.read(fields)
        with self._lock:
            self._newest.refresh()
            done: Any = route.method(**parameters)
            self._newest.refresh()
        return {**done, "version": self._newest.version}

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
        about = {"version": version, "changed": self._newest.lake_changed}
        lake = None if linked is None else {**linked.summary().to_dict(), **about}
        nouns = {kind: list(entries()[kind].nouns) for kind in kinds()}
        workspace = {"version": version, "tables": tables, "nouns": nouns}
        return {"lake": lake, "workspace": workspace, "write": self.write}
