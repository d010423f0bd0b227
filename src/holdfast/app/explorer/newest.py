"""The newest version of a workspace, as all answers about it see it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.app.explorer.routes import NotFoundError

if TYPE_CHECKING:
    from holdfast.workspace import Workspace

# Answers that stay until the next version; a cover may take a second to list.
_MOST_ANSWERS = 64


class Answer(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


class Lake(Protocol):
    """What is asked of a lake; `LakeReader` answers."""

    @property
    def state(self) -> object: ...
    def summary(self) -> Answer: ...
    def components(self, limit: int, /) -> Answer: ...
    def component(self, component: int, max_edges: int, /) -> Answer: ...
    def cluster(self, component: int, cluster: int, max_edges: int, /) -> Answer: ...
    def table(self, table: int, /) -> Answer: ...
    def ind(self, dependent: int, referenced: int, limit: int, /) -> Answer: ...
    def search(self, text: str, what: str, limit: int, /) -> Answer: ...


class Newest:
    """The version that questions are answered from, and what was worked out for it."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.version = -1  # before the first question
        self.lake: Lake | None = None
        self.lake_changed = -1  # the version since which, at least, the lake is as it is
        self._answers: dict[Hashable, Any] = {}

    def refresh(self) -> bool:
        """Turn to the newest version; whether there was one."""
        version = self.workspace.version
        if version == self.version:
            return False
        lake = self.workspace.lake()
        if lake is None or self.lake is None or lake.state != self.lake.state:
            self.lake, self.lake_changed = lake, version  # else the open one has its names at hand
        self.version = version
        self._answers.clear()
        return True

    @property
    def at(self) -> int | None:
        return self.version or None  # an empty workspace has no version to ask for

    @property
    def linked(self) -> Lake:
        if self.lake is None:
            raise NotFoundError("the workspace has no lake: link one with 'holdfast link'.")
        return self.lake

    def cached(self, key: Hashable, work: Callable[[], Any]) -> Any:
        """What `work` gives, kept until the next version."""
        if key not in self._answers:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            self._answers[key] = work()
        return self._answers[key]
