"""How much was against a dependency at each version: what every state keeps of it.

What is pinned is counted with every batch. Of the rest, all versions keep the counts of row rules and of
inclusions of one column, and, where a table is tracked with an error, those of keys, functional dependencies
and denial constraints that are minimal within it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.app.explorer.health import name_of, pins_in
from holdfast.core.rows.table_state import TableState
from holdfast.core.store.ledger_rows import SHARED
from holdfast.core.words.asking import ask_of
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Dependency, Ind
from holdfast.inclusions.generator import GeneratorState

if TYPE_CHECKING:
    from holdfast.core.store.ledger_rows import CommitRow
    from holdfast.workspace import Workspace

MOST_COMMITS = 2_000  # the newest ones that are looked at
MOST_SERIES = 64
# What is counted, one and several: of pins, and by kind of what is not pinned.
ROWS = ("row", "rows")
ORDERED_PAIRS = ("ordered pair of rows", "ordered pairs of rows")
PAIRS = ("pair of rows", "pairs of rows")
NOUNS = {
    "ucc": PAIRS,
    "fd": PAIRS,
    "dc": ORDERED_PAIRS,
    "row": ROWS,
    "ind": ("missing value", "missing values"),
}

# How many are against it, and which share of all that is; None where that was not counted.
Count = tuple[int | None, float | None]
NOT_COUNTED: Count = (None, None)
Point = tuple[int, int | None, float | None]  # with the version


class ErrorSeries:
    """The series that were asked for; a new version is read on top of what is known."""

    def __init__(self) -> None:
        # By who counted, the table and the dependency: read up to a version.
        self._known: dict[tuple[str, str, str], tuple[int, list[Point]]] = {}

    def of(
        self,
        ws: Workspace,
        reader: Any,
        arguments: tuple[Any, ...],
        dependency: Dependency,
        pin: Pin | None,
        until: int,
    ) -> dict[str, Any] | None:
        """The versions at which the count changed, oldest first, and what is counted.

        None where nothing is counted; of a pin with a `note` that says why. Cost: the states of its table,
        the newest MOST_COMMITS of them, once; and the covers of these, unless it is pinned and counted.
        """
        slot = SHARED if isinstance(dependency, Ind) else dependency.table

        def of_pins(commit: CommitRow) -> Count:
            assert pin is not None
            there = (p for p in pins_in(ws, slot, commit.state) if name_of(p) == name_of(pin))
            return next(((p.n_violations, p.error) for p in there), NOT_COUNTED)

        def of_covers(commit: CommitRow) -> Count:
            if commit.state is None:  # dropped
                return NOT_COUNTED
            state = (GeneratorState if slot == SHARED else TableState).from_dict(commit.state)
            count: Count | None = reader.against(state, *arguments)
            return count or NOT_COUNTED

        name = dependency.table, ask_of(dependency)
        if pin is not None:
            points = self._points(ws, ("pin", *name), slot, until, of_pins)
            if any(n is not None for _, n, _ in points):
                return _fields(points, ORDERED_PAIRS if pin.rule is not None else ROWS)
        if hasattr(reader, "against"):
            points = self._points(ws, ("cover", *name), slot, until, of_covers)
            if any(n for _, n, _ in points):
                return _fields(points, NOUNS[dependency.kind])
        if pin is None:
            return None
        return _fields(
            [], ROWS, "How many are against it is not known yet: the next batch of its table counts them."
        )

    def _points(
        self,
        ws: Workspace,
        name: tuple[str, str, str],
        slot: str,
        until: int,
        count: Callable[[CommitRow], Count],
    ) -> list[Point]:
        since, points = self._known.pop(name, (0, []))
        if since > until:
            since, points = 0, []
        for commit in ws.ledger.latest(slot, until, since, MOST_COMMITS):
            if commit.action == "track" and slot != SHARED:
                points = []  # another table, of the same name
            now = count(commit)
            if now != (points[-1][1:] if points else NOT_COUNTED):
                points.append((commit.version, *now))
        while len(self._known) >= MOST_SERIES:
            del self._known[next(iter(self._known))]
        self._known[name] = until, points
        return points


def _fields(points: list[Point], noun: tuple[str, str], note: str = "") -> dict[str, Any]:
    return {"series": [list(point) for point in points], "noun": list(noun), "note": note}
