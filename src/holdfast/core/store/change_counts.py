"""How many dependencies each version changed, by table, kind and event: the history as numbers.

The rows of the ledger are read as columns, and names are numbers from the start: a change of which nobody
wants to know more than that it was never becomes an object. What is counted stays, and a new version is
counted on top of it. So the history of 10,000 versions is read once, and of a batch its own rows.

Changes are those of the table that a dependency is about; of an inclusion the dependent one. What a table had
when it was tracked did not *appear*: such changes have an event of their own, `TRACKED`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.store.ledger import Ledger

I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

TRACKED = "tracked"
_NARROW = ("version", "entry", "table", "kind", "change")
_COMMITS = ("at", "action", "batch_id", "detail")
_ROWS = ("n_rows", "n_inserted", "n_deleted")
UNKNOWN = -1  # where a commit says nothing of rows


class Names:
    """Numbers for names, in the order in which they come."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """The number of a name, which is new if the name is."""
        if name not in self._numbers:
            self._numbers[name] = len(self.texts)
            self.texts.append(name)
        return self._numbers[name]

    def get(self, name: str) -> int:
        """The number of a name; UNKNOWN if it never came."""
        return self._numbers.get(name, UNKNOWN)

    def of(self, column: pa.ChunkedArray) -> I64:
        """The numbers of a column of dictionaries; UNKNOWN for NULL."""
        parts = [np.empty(0, np.int64)]
        for chunk in column.unify_dictionaries().chunks:
            here = np.array([*map(self.number, chunk.dictionary.to_pylist()), UNKNOWN], dtype=np.int64)
            parts.append(here[_numbers(chunk.indices, len(here) - 1)])
        return np.concatenate(parts)


def _numbers(array: pa.Array, null: int) -> NDArray[np.integer[Any]]:
    """Whole numbers with something in place of NULL. pyarrow's own way imports pandas (0.3 s)."""
    valid, content = array.buffers()
    rows = slice(array.offset, array.offset + len(array))
    numbers = np.frombuffer(content, dtype=array.type.to_pandas_dtype())[rows]
    if not array.null_count:
        return numbers
    there = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")[rows]
    return np.where(there.astype(np.bool_), numbers, null)


def _versions(block: pa.Table) -> I64:
    return np.concatenate([np.empty(0, np.int64), *(_numbers(c, 0) for c in block.column("version").chunks)])


@dataclass(frozen=True, slots=True)
class Commits:
    """What was done to tables, oldest first: a row for each version and table."""

    version: I64
    table: I64
    action: I64
    at: I64  # microseconds since 1970
    n_rows: I64  # after it; UNKNOWN where it says nothing of rows, as the two that follow
    n_inserted: I64
    n_deleted: I64


@dataclass(frozen=True, slots=True)
class Counts:
    """How many changes there are, oldest first: a row for each version, table, kind and event."""

    version: I64
    table: I64
    kind: I64
    event: I64
    n: I64

    def chosen(self, rows: Bool | slice) -> Counts:
        return Counts(*(getattr(self, f.name)[rows] for f in fields(self)))


class ChangeCounts:
    """The history of a workspace up to a version, as numbers."""

    def __init__(self) -> None:
        self.version = 0
        self.tables, self.kinds, self.events, self.actions = Names(), Names(), Names(), Names()
        self.batch_ids: dict[int, str] = {}  # by version
        self.commits = Commits(*(np.empty(0, np.int64) for _ in fields(Commits)))
        self.counts = Counts(*(np.empty(0, np.int64) for _ in fields(Counts)))

    def read(self, ledger: Ledger, until: int) -> None:
        """Count the versions after the last one that is counted, up to a version. Cost: their rows."""
        if until <= self.version:
            return
        commits, counts = [self.commits], [self.counts]
        for block in ledger.columns((*_NARROW, *_COMMITS), self.version + 1, until):
            of_commits, of_changes = self._counted(block, self.version + 1, until)
            commits.append(of_commits)
            counts.append(of_changes)
        self.commits = Commits(*_joined(commits, Commits))
        self.counts = Counts(*_joined(counts, Counts))
        self.version = until

    def _counted(self, block: pa.Table, first: int, until: int) -> tuple[Commits, Counts]:
        block = block.combine_chunks()
        version = _versions(block)
        entries = Names()
        entry = entries.of(block.column("entry"))
        wanted = (version >= first) & (version <= until)
        at_commits = np.flatnonzero(wanted & (entry == entries.get("commit")))
        at_changes = np.flatnonzero(wanted & (entry == entries.get("change")))
        table, action = self.tables.of(block.column("table")), self.actions.of(block.column("action"))
        at = np.concatenate(
            [np.empty(0, np.int64), *(_numbers(c.view(pa.int64()), 0) for c in block.column("at").chunks)]
        )
        rows = self._rows(block, version, at_commits)
        columns = (version, table, action, at)
        commits = Commits(*(column[at_commits] for column in columns), *(rows[:, i] for i in range(3)))
        is_track = commits.action == self.actions.number("track")
        kind, event = self.kinds.of(block.column("kind")), self.events.of(block.column("change"))
        appeared = event == self.events.number("appeared")
        event[appeared & np.isin(version, commits.version[is_track])] = self.events.number(TRACKED)
        # Each is a small number: together they are one.
        sizes = [len(names.texts) for names in (self.tables, self.kinds, self.events)]
        together = np.ravel_multi_index(
            (version[at_changes] - first, table[at_changes], kind[at_changes], event[at_changes]),
            (until - first + 1, *sizes),
        )
        different, n = np.unique(together, return_counts=True)
        since, of_table, of_kind, of_event = np.unravel_index(different, (until - first + 1, *sizes))
        return commits, Counts(since + first, of_table, of_kind, of_event, n)

    def _rows(self, block: pa.Table, version: I64, places: I64) -> I64:
        """What the details of commits say of rows, int64[n, 3]; notes the ids of batches."""
        rows = np.full((len(places), len(_ROWS)), UNKNOWN, dtype=np.int64)
        if not len(places):
            return rows
        [details], [ids] = (block.column(name).chunks for name in ("detail", "batch_id"))
        for i, place in enumerate(places.tolist()):
            text, batch_id = details[place].as_py(), ids[place].as_py()
            if batch_id is not None:
                self.batch_ids[int(version[place])] = batch_id
            if text is not None:
                detail = json.loads(text)
                rows[i] = [UNKNOWN if (n := detail.get(name)) is None else n for name in _ROWS]
        return rows


@dataclass(frozen=True, slots=True)
class ChangeTexts:
    """Some changes, and their cells as the ledger has them."""

    version: I64
    table: I64
    kind: I64
    event: I64
    cells: dict[str, list[str | None]]  # by column


def change_texts(
    ledger: Ledger,
    names: ChangeCounts,
    first: int,
    last: int,
    wanted: Any,
    columns: Sequence[str] = ("dependency",),
) -> Iterator[ChangeTexts]:
    """The changes of some versions that `wanted` chooses, with their cells: a file at a time, oldest first.

    `wanted(version, table, kind, event)` says of arrays which rows: bool[n]; `names` has the numbers. Only
    the cells of these become objects. The events are as the ledger has them: what was there when a table was
    tracked is not told apart.
    """
    for block in ledger.columns((*_NARROW, *columns), first, last):
        block = block.combine_chunks()
        if not block.num_rows:
            continue
        version = _versions(block)
        entries = Names()
        is_change = entries.of(block.column("entry")) == entries.get("change")
        table, kind, event = (
            known.of(block.column(name))
            for known, name in ((names.tables, "table"), (names.kinds, "kind"), (names.events, "change"))
        )
        inside = is_change & (version >= first) & (version <= last)
        places = np.flatnonzero(inside & wanted(version, table, kind, event))
        cells = {}
        for column in columns:
            [texts] = block.column(column).chunks
            cells[column] = [texts[place].as_py() for place in places.tolist()]
        yield ChangeTexts(version[places], table[places], kind[places], event[places], cells)


def _joined(parts: Sequence[Any], of: Any) -> Iterator[I64]:
    for field in fields(of):
        yield np.concatenate([getattr(part, field.name) for part in parts])
