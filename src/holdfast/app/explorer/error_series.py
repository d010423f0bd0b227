"""How many rows, or pairs of rows, were against a pin at each version: what every state keeps of it.

Rules and conditions that are pinned are counted with every batch, keys and inclusions if they have a
tolerance. Of what nobody pinned no version keeps how much is against it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.app.explorer.health import PinName, name_of, pins_in
from holdfast.core.store.ledger_rows import SHARED
from holdfast.core.words.change import Pin

if TYPE_CHECKING:
    from holdfast.workspace import Workspace

MOST_COMMITS = 2_000  # the newest ones that are looked at
MOST_SERIES = 64

# A version, how many are against it, and which share of all that is; None where that was not counted.
Point = tuple[int, int | None, float | None]


class ErrorSeries:
    """The series of pins that were asked for; a new version is read on top of what is known."""

    def __init__(self) -> None:
        self._known: dict[PinName, tuple[int, list[Point]]] = {}  # read up to a version

    def of(self, ws: Workspace, pin: Pin, until: int) -> dict[str, Any]:
        """The versions at which the count changed, oldest first, and what is counted; `note`: why nothing is.

        Cost: the states of its table, the newest MOST_COMMITS of them, once.
        """
        name, slot = name_of(pin), pin.table if pin.referenced is None else SHARED
        since, points = self._known.pop(name, (0, []))
        if since > until:
            since, points = 0, []
        for commit in ws.ledger.latest(slot, until, since, MOST_COMMITS):
            there = (p for p in pins_in(ws, slot, commit.state) if name_of(p) == name)
            now = next(((p.n_violations, p.error) for p in there), (None, None))
            if now != (points[-1][1:] if points else (None, None)):
                points.append((commit.version, *now))
        while len(self._known) >= MOST_SERIES:
            del self._known[next(iter(self._known))]
        self._known[name] = until, points
        counted = any(n is not None for _, n, _ in points)
        note = (
            "" if counted else "How many are against it is not kept: of a pin like this, give it a tolerance."
        )
        return {"series": [list(point) for point in points], "noun": noun_of(pin), "note": note}


def noun_of(pin: Pin) -> list[str]:
    """What is counted, one and several."""
    if pin.kind == "dc":
        return ["ordered pair of rows", "ordered pairs of rows"]
    return ["row", "rows"]
