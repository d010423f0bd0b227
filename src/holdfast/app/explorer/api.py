"""What the page asks, answered with plain dicts: one method for each route, and what a route may be given.

An answer is about the newest version of the workspace: a commit by another process is seen by the next
question. Readers of a workspace are not made for several threads, so one lock lets questions in one by one;
they take milliseconds, but for the first of a large lake.

Lists are bounded wherever a workspace's are not: no answer is larger than a browser can take.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from holdfast.app.report.texts import dependency_text, meaning, safe
from holdfast.core.store.change_log import LogEntry
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule
from holdfast.errors import HoldfastError, UsageError, WorkspaceError, shorten
from holdfast.kind import entries, kinds

MOST_COMPONENTS = 2_000
MOST_EDGES = 1_000_000
USUAL_EDGES = 30_000
MOST_RESULTS = 1_000
MOST_TEXTS = 100  # of each list of an inclusion
MOST_DEPENDENCIES = 1_000
MOST_ENTRIES = 200
MOST_CHANGES = 200  # of one entry of the log
WHAT = ("all", "table", "column", "value")

# Answers about tracked tables, which stay until the next version; a cover may take a second to list.
_MOST_ANSWERS = 64
_LARGEST = (1 << 31) - 1
_LONGEST = 10_000


class NotFoundError(HoldfastError):
    """There is no such route, or nothing that it could tell of."""


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


class Source(Protocol):
    """What is asked of a workspace."""

    @property
    def version(self) -> int: ...
    def tables(self, at: int | None = None) -> list[str]: ...
    def kinds(self, table: str, at: int | None = None) -> tuple[str, ...]: ...
    def n_rows(self, table: str, at: int | None = None) -> int: ...
    def dependencies(
        self,
        kind: str | None = None,
        table: str | None = None,
        at: int | None = None,
        *,
        ranked: bool = False,
    ) -> list[Dependency]: ...
    def log(self, table: str | None = None) -> list[LogEntry]: ...
    def lake(self) -> Lake | None: ...


# -- what a route may be given -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number within bounds; needed unless it has a default."""

    name: str
    default: int | None = None
    least: int = 0
    most: int = _LARGEST

    def read(self, text: str | None) -> int:
        """
        >>> Whole("limit", 50, 1, 1000).read(None), Whole("id").read("7")
        (50, 7)
        """
        if text is None:
            if self.default is None:
                raise UsageError(f"the parameter {self.name!r} is missing; expected a whole number.")
            return self.default
        # int() takes more: signs, spaces, underscores, digits of all scripts.
        plain = text.isascii() and text.isdigit() and len(text) <= 12
        if not plain or not self.least <= int(text) <= self.most:
            raise UsageError(
                f"the parameter {self.name!r} is {shorten(text)}; expected a whole number from "
                f"{self.least:,} to {self.most:,}."
            )
        return int(text)


@dataclass(frozen=True, slots=True)
class Text:
    """A text, perhaps one of a few."""

    name: str
    choices: tuple[str, ...] = ()
    default: str | None = None
    needed: bool = False

    def read(self, text: str | None) -> str | None:
        """
        >>> Text("kind", ("ucc", "fd")).read(""), Text("q").read("Ada")
        (None, 'Ada')
        """
        if not text and not self.needed:
            return self.default
        if text is None:
            raise UsageError(f"the parameter {self.name!r} is missing.")
        if self.choices and text not in self.choices:
            raise UsageError(
                f"the parameter {self.name!r} is {shorten(text)}; expected one of {', '.join(self.choices)}."
            )
        if len(text) > _LONGEST:
            raise UsageError(f"the parameter {self.name!r} is longer than {_LONGEST:,} characters.")
        return text


@dataclass(frozen=True, slots=True)
class _Route:
    method: Callable[..., dict[str, Any]]
    parameters: tuple[Whole | Text, ...] = ()

    def read(self, fields: Mapping[str, str]) -> dict[str, Any]:
        names = [p.name for p in self.parameters]
        for name in fields:
            if name not in names:
                there = f"Known: {', '.join(names)}." if names else "There is none."
                raise UsageError(f"the parameter {shorten(name)} is not known. {there}")
        return {p.name: p.read(fields.get(p.name)) for p in self.parameters}


# -- answers -----------------------------------------------------------------------------------------------


class Explorer:
    """Answers about one workspace; may be asked by several threads."""

    def __init__(self, workspace: Source) -> None:
        self._workspace = workspace
        self._lock = threading.Lock()
        self._version = -1
        self._lake: Lake | None = None
        self._answers: dict[tuple[str | None, ...], dict[str, Any]] = {}
        edges = Whole("max_edges", USUAL_EDGES, 0, MOST_EDGES)
        self._routes = {
            "summary": _Route(self.summary),
            "components": _Route(self.components),
            "component": _Route(self.component, (Whole("id"), edges)),
            "cluster": _Route(self.cluster, (Whole("component"), Whole("id"), edges)),
            "table": _Route(self.table, (Whole("id"),)),
            "ind": _Route(self.ind, (Whole("dependent"), Whole("referenced"))),
            "search": _Route(
                self.search,
                (Text("q", needed=True), Text("what", WHAT, "all"), Whole("limit", 50, 1, MOST_RESULTS)),
            ),
            "workspace/dependencies": _Route(self.dependencies, (Text("table"), Text("kind", kinds()))),
            "workspace/log": _Route(self.log, (Text("table"),)),
        }

    def answer(self, path: str, fields: Mapping[str, str]) -> dict[str, Any]:
        """What a route answers, from the newest version; `fields` are the parameters as texts."""
        route = self._routes.get(path)
        if route is None:
            raise NotFoundError(f"there is nothing at api/{shorten(path)[1:-1]}.")
        parameters = route.read(fields)
        with self._lock:
            self._refresh()
            try:
                return route.method(**parameters)
            except WorkspaceError:
                # Another process may have committed, and removed files, since we looked.
                if not self._refresh():
                    raise
                return route.method(**parameters)

    @property
    def version(self) -> int:
        """The version that the last question was answered from; -1 before the first."""
        return self._version

    def close(self, patience_s: float = 2.0) -> None:
        """Wait for the question that is being answered, and let no other one in."""
        self._lock.acquire(timeout=patience_s)

    def _refresh(self) -> bool:
        """Turn to the newest version; whether there was one."""
        version = self._workspace.version
        if version == self._version:
            return False
        lake = self._workspace.lake()
        if lake is None or self._lake is None or lake.state != self._lake.state:
            self._lake = lake  # else the open one has its names and arrays at hand
        self._version = version
        self._answers.clear()
        return True

    @property
    def _at(self) -> int | None:
        return self._version or None  # an empty workspace has no version to ask for

    def _linked(self) -> Lake:
        if self._lake is None:
            raise NotFoundError("the workspace has no lake: link one with 'holdfast link'.")
        return self._lake

    # -- the lake --

    def summary(self) -> dict[str, Any]:
        ws, at = self._workspace, self._at
        tables = [
            {"name": name, "n_rows": ws.n_rows(name, at), "kinds": list(ws.kinds(name, at))}
            for name in ws.tables(at)
        ]
        lake = None if self._lake is None else {**self._lake.summary().to_dict(), "version": self._version}
        nouns = {kind: list(entries()[kind].nouns) for kind in kinds()}
        return {"lake": lake, "workspace": {"version": self._version, "tables": tables, "nouns": nouns}}

    def components(self) -> dict[str, Any]:
        return self._linked().components(MOST_COMPONENTS).to_dict()

    def component(self, id: int, max_edges: int) -> dict[str, Any]:
        return self._linked().component(id, max_edges).to_dict()

    def cluster(self, component: int, id: int, max_edges: int) -> dict[str, Any]:
        return self._linked().cluster(component, id, max_edges).to_dict()

    def table(self, id: int) -> dict[str, Any]:
        return self._linked().table(id).to_dict()

    def ind(self, dependent: int, referenced: int) -> dict[str, Any]:
        return self._linked().ind(dependent, referenced, MOST_TEXTS).to_dict()

    def search(self, q: str, what: str, limit: int) -> dict[str, Any]:
        return self._linked().search(q, what, limit).to_dict()

    # -- tracked tables --

    def dependencies(self, table: str | None, kind: str | None) -> dict[str, Any]:
        """The first dependencies of a table, or of all, as reports tell them; `n` counts them all."""
        return self._cached(("dependencies", table, kind), lambda: self._dependencies(table, kind))

    def _dependencies(self, table: str | None, kind: str | None) -> dict[str, Any]:
        dependencies = self._workspace.dependencies(kind, table, self._at, ranked=True)
        first = [dependency_dict(d, with_table=table is None) for d in dependencies[:MOST_DEPENDENCIES]]
        return {"version": self._version, "n": len(dependencies), "dependencies": first}

    def log(self, table: str | None) -> dict[str, Any]:
        """The newest entries of the log, newest first."""
        return self._cached(("log", table), lambda: self._log(table))

    def _log(self, table: str | None) -> dict[str, Any]:
        newest = self._workspace.log(table)[: -MOST_ENTRIES - 1 : -1]
        return {"entries": list(map(entry_dict, newest))}

    def _cached(self, key: tuple[str | None, ...], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self._answers:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            self._answers[key] = work()
        return self._answers[key]


# -- texts -------------------------------------------------------------------------------------------------


def dependency_dict(dependency: Dependency, *, with_table: bool = False) -> dict[str, Any]:
    """A dependency with a text for people, as the command line writes it; a rule also with its sentence.

    >>> fields = dependency_dict(RowRule("orders", "net", "<=", "gross"), with_table=True)
    >>> fields["kind"], fields["text"], fields["sentence"]
    ('row', 'orders: net <= gross', 'net is at most gross')
    """
    fields = dependency.to_dict()
    fields["text"] = dependency_text(fields, with_table=with_table)
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
    return {**fields, "n_changes": len(entry.changes)}
