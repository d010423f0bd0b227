"""Where rows came from: which version inserted them, in which batch, and as which of its rows.

A row id names the segment that the row was first written to, and its place there. Segments are numbered as
batches come, so the next number that each version kept says which one wrote a segment; of a batch of several
segments those before it have to be there still to say how many rows came before. Files are not kept: a
version knows the id of its batch, and no more of its source.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.core.store.ledger_rows import CommitRow
from holdfast.core.words.change import place_of

if TYPE_CHECKING:
    from holdfast.workspace import Workspace


@dataclass
class _Writes:
    """The versions of a table that wrote segments, oldest first, as far as they are read."""

    until: int = 0
    next_number: int = 0
    first: list[int] = field(default_factory=list)  # the number of the first segment that each wrote
    written: list[tuple[int, str | None, dict[int, int]]] = field(default_factory=list)

    def read(self, commit: CommitRow) -> None:
        if commit.state is None or commit.action == "track":  # what was there before has another past
            self.next_number, self.first, self.written = 0, [], []
        fields = commit.state or {}
        end = fields.get("next_number", self.next_number)
        if commit.action in ("track", "apply") and end > self.next_number:
            sizes = {s["number"]: s["n_rows"] for s in fields["segments"] if s["number"] >= self.next_number}
            self.first.append(self.next_number)
            self.written.append((commit.version, commit.batch_id, sizes))
        self.next_number = end


class Origins:
    """Of the rows of tables; a new version is read on top of what is known."""

    def __init__(self) -> None:
        self._writes: dict[str, _Writes] = {}

    def of(self, ws: Workspace, table: str, row_ids: Sequence[int]) -> list[dict[str, Any]]:
        """The version, the batch id, and the place from 1 among the rows that it inserted, or None.

        Cost: the states of the table, once.
        """
        writes = self._writes.setdefault(table, _Writes())
        if ws.version > writes.until:
            for commit in ws.ledger.states(table, writes.until + 1, ws.version):
                writes.read(commit)
            writes.until = ws.version
        return [self._origin(writes, int(row_id)) for row_id in row_ids]

    def _origin(self, writes: _Writes, row_id: int) -> dict[str, Any]:
        number, place = place_of(row_id)
        at = bisect_right(writes.first, number) - 1
        if at < 0 or number >= writes.next_number:
            return {"version": None, "batch_id": None, "position": None}
        version, batch_id, sizes = writes.written[at]
        earlier = range(writes.first[at], number)
        known = all(n in sizes for n in earlier)
        position = place + 1 + sum(sizes[n] for n in earlier) if known else None
        return {"version": version, "batch_id": batch_id, "position": position}
