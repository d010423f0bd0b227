"""Answers as tables: dependencies, versions, rankings that can be looked at, and go on as Arrow or pandas."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from holdfast.core.store.change_log import LogEntry
from holdfast.core.words.change import Pin
from holdfast.core.words.dependency import Dependency
from holdfast.core.words.display import Displayed
from holdfast.core.words.reliance import Muted

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item")
# `repr` shows so many.
SHOWN = 20


def arrow_of(records: Sequence[dict[str, Any]]) -> pa.Table:
    """One column for each field, in the order in which they first occur; what is nested is JSON text.

    >>> arrow_of([{"a": 1, "b": ["x"]}, {"a": 2, "c": {"d": 1}}]).to_pylist()
    [{'a': 1, 'b': ['x'], 'c': None}, {'a': 2, 'b': None, 'c': '{"d": 1}'}]
    """
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [_plain(record.get(name)) for record in records] for name in names}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return list(value)
    return json.dumps(value) if isinstance(value, list | tuple | dict) else value


def shown(heading: str, lines: Iterable[str], n: int) -> str:
    """The first of n lines below a heading."""
    first = [f"  {line}" for _, line in zip(range(SHOWN), lines, strict=False)]
    more = [f"  ... and {n - len(first):,} more"] if n > len(first) else []
    return "\n".join([heading, *first, *more])


class Ranked(Displayed, ABC):
    """What is ranked, best first: each has a score, a text and fields for programs."""

    __slots__ = ()

    @abstractmethod
    def ranked(self) -> Sequence[Any]:
        """Those that are listed."""

    def to_arrow(self) -> pa.Table:
        return arrow_of([item.to_dict() for item in self.ranked()])

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def __repr__(self) -> str:
        items = self.ranked()
        lines = (f"{item.score:.2f}  {item}" for item in items)
        return shown(f"{len(items):,} ranked, best first", lines, len(items))


class Listed(list[Item], Displayed, ABC, Generic[Item]):
    """A list like any other, that can be looked at and goes on as a table."""

    noun = "items"

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """One flat mapping for each."""

    @abstractmethod
    def lines(self) -> Iterable[str]:
        """What `repr` says of each."""

    def to_dict(self) -> dict[str, Any]:
        items: list[Any] = list(self)
        return {self.noun: [item.to_dict() for item in items]}

    def to_arrow(self) -> pa.Table:
        return arrow_of(self.records())

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def __repr__(self) -> str:
        return shown(f"{len(self):,} {self.noun}", self.lines(), len(self))


class Dependencies(Listed[Dependency]):
    """What holds: `kind`, `table`, `columns`, `name` and `error` of each."""

    noun = "dependencies"

    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "kind": d.kind,
                "table": d.table,
                "columns": d.columns,
                "name": d.name,
                "error": getattr(d, "error", 0.0),
            }
            for d in self
        ]

    def lines(self) -> Iterable[str]:
        return (f"{d.kind:<4} {d}" for d in self)


class PinList(Listed[Pin]):
    """What is pinned, on which terms, and whether it holds."""

    noun = "pins"

    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "table": pin.table,
                "kind": pin.kind,
                "pin": str(pin),
                "holds": pin.holds,
                "n_violations": pin.n_violations,
                "error": pin.error,
                "at_most": pin.terms.at_most or None,
                "severity": pin.severity,
                "reason": pin.terms.reason or None,
                "owner": pin.terms.owner or None,
            }
            for pin in self
        ]

    def lines(self) -> Iterable[str]:
        return (f"{'holds' if pin.holds else 'DOES NOT HOLD':<13}  {pin.table}: {pin}" for pin in self)


class MutedList(Listed[Muted]):
    """What is muted, and why."""

    noun = "muted"

    def records(self) -> list[dict[str, Any]]:
        return [{"table": m.table, "kind": m.kind, "muted": str(m), "reason": m.reason or None} for m in self]

    def lines(self) -> Iterable[str]:
        return (f"{m.table}: {m}{f', {m.reason}' if m.reason else ''}" for m in self)


class Log(Listed[LogEntry]):
    """What each version did."""

    noun = "versions"

    def records(self) -> list[dict[str, Any]]:
        return [
            {
                "version": entry.version,
                "at": entry.at,
                "action": entry.action,
                "tables": entry.tables,
                "batch_id": entry.batch_id,
                "n_inserted": sum(int(d.get("n_inserted") or 0) for d in entry.details),
                "n_deleted": sum(int(d.get("n_deleted") or 0) for d in entry.details),
                "n_changes": len(entry.changes),
            }
            for entry in self
        ]

    def lines(self) -> Iterable[str]:
        return (f"{e.version}  {e.action} {e.table}: {len(e.changes):,} changes" for e in self)
