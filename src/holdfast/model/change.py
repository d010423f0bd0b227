"""What a batch did to the dependencies of a table, and which rows are the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.errors import shorten
from holdfast.model.dependency import Dependency

Event = Literal["appeared", "broke", "implied"]
ROWS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class WitnessRow:
    """A row that proves something: its id, and its values as they were."""

    row_id: int
    values: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"row": self.row_id, "values": dict(self.values)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> WitnessRow:
        return cls(fields["row"], fields["values"])


Pair = tuple[WitnessRow, WitnessRow]


@dataclass(frozen=True, slots=True)
class DependencyChange:
    """A dependency that entered or left the cover.

    - `appeared`: it is minimal now. Either duplicates went, or a narrower one broke.
    - `broke`: it does not hold any more; the witnesses are the rows that broke it.
    - `implied`: it holds still, but a narrower one appeared, so it left the cover.
    """

    event: Event
    dependency: Dependency
    reason: str
    witnesses: tuple[Pair, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "change": self.event,
            "dependency": self.dependency.to_dict(),
            "reason": self.reason,
            "witnesses": [[row.to_dict() for row in pair] for pair in self.witnesses],
        }


@dataclass(frozen=True, slots=True)
class Pin:
    """A combination that somebody relies on, and whether it is unique."""

    table: str
    columns: tuple[str, ...]
    holds: bool

    def to_dict(self) -> dict[str, Any]:
        return {"table": self.table, "columns": list(self.columns), "holds": self.holds}


@dataclass(frozen=True, slots=True)
class Change:
    """The net change of one batch (or of tracking a table): one version of the workspace."""

    table: str
    action: str  # "track", "apply", "check"
    version: int  # of the workspace, after; for a check, the version it was checked against
    n_inserted: int
    n_deleted: int
    n_rows: int
    n_keys: int
    changes: tuple[DependencyChange, ...]
    elapsed_s: float
    batch_id: str | None = None
    max_columns: int = 0
    repeated: bool = False  # the batch id was applied before: nothing was done
    pins: tuple[Pin, ...] = ()
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def broke(self) -> list[DependencyChange]:
        return [c for c in self.changes if c.event == "broke"]

    @property
    def appeared(self) -> list[DependencyChange]:
        return [c for c in self.changes if c.event == "appeared"]

    @property
    def broken_pins(self) -> list[Pin]:
        return [p for p in self.pins if not p.holds]

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "action": self.action,
            "version": self.version,
            "batch_id": self.batch_id,
            "repeated": self.repeated,
            "n_inserted": self.n_inserted,
            "n_deleted": self.n_deleted,
            "n_rows": self.n_rows,
            "n_keys": self.n_keys,
            "max_columns": self.max_columns or None,
            "elapsed_s": round(self.elapsed_s, 4),
            "changes": [c.to_dict() for c in self.changes],
            "pins": [p.to_dict() for p in self.pins],
        }

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, limit: int = 10) -> Iterator[str]:
        """The change in words; at most `limit` changes of each sort."""
        if self.repeated:
            before = f"was applied before, as version {self.version}; nothing was done"
            yield f"{self.table}: batch {self.batch_id!r} {before}"
            return
        yield self.headline()
        for pin in self.broken_pins:
            yield f"  PINNED, does not hold: [{', '.join(pin.columns)}]"
        if self.action == "track":
            return
        for title, changes in (
            ("would break" if self.action == "check" else "broke", self.broke),
            ("would appear" if self.action == "check" else "appeared", self.appeared),
            ("implied by a narrower key", [c for c in self.changes if c.event == "implied"]),
        ):
            yield from _described(title, changes, limit)
        if not self.changes:
            yield "  nothing changed: the same keys hold"

    def headline(self) -> str:
        keys = f"{self.n_keys:,} minimal key{'' if self.n_keys == 1 else 's'}"
        columns = f"{self.max_columns} column{'' if self.max_columns == 1 else 's'}"
        bound = f" of at most {columns}" if self.max_columns else ""
        rows = f"{self.n_rows:,} row{'' if self.n_rows == 1 else 's'}"
        if self.action == "track":
            return f"{self.table}: {rows}, {keys}{bound} (version {self.version}, {self.elapsed_s:.2f} s)"
        what = f"+{self.n_inserted:,} -{self.n_deleted:,} rows"
        if self.action == "check":
            end = f"({self.elapsed_s:.2f} s; nothing applied)"
            return f"{self.table}: {what} would leave {rows}, {keys}{bound} {end}"
        end = f"(version {self.version}, {self.elapsed_s:.2f} s)"
        return f"{self.table}: {what}, now {rows}, {keys}{bound} {end}"


def _described(title: str, changes: Sequence[DependencyChange], limit: int) -> Iterator[str]:
    for change in changes[:limit]:
        yield f"  {title}: [{', '.join(change.dependency.columns)}] {change.reason}"
        for pair in change.witnesses[:1]:
            for row in pair:
                yield f"      {row_text(row, change.dependency.columns)}"
    if len(changes) > limit:
        yield f"  ... and {len(changes) - limit:,} more {title}"


def row_name(row_id: int) -> str:
    """A row id as `segment.position`: which batch brought the row, and its place in it.

    >>> row_name((1 << 32) + 7)
    '1.7'
    """
    return f"{row_id >> 32}.{row_id & 0xFFFFFFFF}"


def row_text(row: WitnessRow, first: Sequence[str], limit: int = 8) -> str:
    """A witness as `row 0.17: name='Lee' | phone=345, age=20`: the dependency's columns first."""
    own = [f"{c}={shorten(row.values.get(c), 40)}" for c in first if c in row.values]
    others = [f"{c}={shorten(v, 24)}" for c, v in row.values.items() if c not in first]
    room = max(0, limit - len(own))
    shown = others[:room] + (["..."] if len(others) > room else [])
    text = ", ".join(own) + (" | " if own and shown else "") + ", ".join(shown)
    name = f"row {row_name(row.row_id)}"
    return f"{name}: {text}" if row.values else name
