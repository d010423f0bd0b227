"""The log of a workspace: what each version did, and what it changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import LAKE, NO_TABLES, SHARED, ChangeRow, CommitRow, change_dict
from holdfast.errors import UnknownTableError


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One version: what was done, and what it changed."""

    version: int
    at: datetime
    tables: tuple[str, ...]  # one, unless a batch concerned several
    action: str
    batch_id: str | None
    details: tuple[dict[str, Any], ...]  # one for each table
    changes: tuple[ChangeRow, ...]

    @property
    def table(self) -> str:
        return ", ".join(self.tables)

    def to_dict(self) -> dict[str, Any]:
        parts = [{"table": t, **d} for t, d in zip(self.tables, self.details, strict=True)]
        return {
            "version": self.version,
            "at": self.at.isoformat(),
            "action": self.action,
            "batch_id": self.batch_id,
            **(parts[0] if len(parts) == 1 else {}),
            "tables": parts,
            "changes": [change_dict(c) for c in self.changes],
        }


def read_log(ledger: Ledger, table: str | None = None) -> list[LogEntry]:
    """What each version did and changed, oldest first; of a table, what others did to it as well.

    Of a version of several tables, a table's log has its own part: what was done to it, and the changes
    that are about it. What was done to other tables alone, and changed something about it, is told with
    their names.
    """
    commits: dict[int, list[CommitRow]] = {}
    for commit in ledger.commits():
        if commit.table != SHARED:
            commits.setdefault(commit.version, []).append(commit)
    if table is not None and not any(c.table == table for rows in commits.values() for c in rows):
        raise UnknownTableError.from_missing(
            table, sorted(name for name in ledger.heads() if name not in NO_TABLES)
        )
    by_version: dict[int, list[ChangeRow]] = {}
    for change in ledger.changes():
        if table is None or table in _tables_of(change):
            by_version.setdefault(change.version, []).append(change)
    if table is not None:
        parts = {v: [c for c in rows if c.table == table] for v, rows in commits.items()}
        commits = {
            version: parts[version] or rows
            for version, rows in commits.items()
            if parts[version] or version in by_version
        }
    return [
        LogEntry(
            version,
            _at(rows[0]),
            tuple("the lake" if c.table == LAKE else c.table for c in rows),
            rows[0].action,
            rows[0].batch_id,
            tuple(c.detail or {} for c in rows),
            tuple(by_version.get(version, ())),
        )
        for version, rows in commits.items()
    ]


def _tables_of(change: ChangeRow) -> set[str]:
    """The tables that a dependency is about."""
    sides = [change.dependency.get(side) for side in ("dependent", "referenced")]
    return {change.table, *(side["table"] for side in sides if side)}


def _at(commit: CommitRow) -> datetime:
    assert commit.at is not None
    return commit.at
