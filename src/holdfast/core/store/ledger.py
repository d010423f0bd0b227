"""The ledger: the workspace's history, one Delta table at `<root>/ledger`.

Every batch appends one *commit row* per table that it touches (which names the table's live segments
and files), perhaps one for the state that all tables share, and one *change row* per dependency that
appeared or broke, all in one Parquet file that one Delta commit adds. So a version is visible whole
or not at all, however many tables it changes, and any Delta reader can query the history.

Versions. Holdfast counts its own: 1, 2, 3 ... without a gap. They are not Delta's, which also
count compactions. A row never leaves the table: compaction moves rows to another file, and no
file is ever vacuumed. So version v reads the same for ever, without Delta's time travel.

Conflicts. An append lands only from the snapshot in which its base version was the newest (compare-and-swap,
`ledger_files.py`). A failed swap is looked at: if only a compaction came between, it is tried again; if
another commit did, it is a ConflictError.

Cost. Per append: one Parquet file synced, one log entry synced. Reading prunes by the minimum
and maximum version that Delta keeps per file, then by Parquet row group, then by column. Every
`COMPACT_EVERY` commits the writer merges the small files and writes a Delta checkpoint; both are
housekeeping after the commit (`compaction.py`).

A `Ledger` may be used by several threads; processes must be spawned, not forked (tokio).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.core.store.compaction import keep_house
from holdfast.core.store.delta_log import FOLDER, REPAIR, brief, pass_on
from holdfast.core.store.files import FileRef, write_file
from holdfast.core.store.ledger_files import LedgerFiles, LiveFile, Snapshot, add_action, content_name
from holdfast.core.store.ledger_rows import (
    CHANGE_COLUMNS,
    COMMIT_COLUMNS,
    STATE_COLUMNS,
    ChangeRow,
    CommitRow,
    commit_cells,
    encode_commit,
    lost_version,
    versioned,
)
from holdfast.core.store.root import Root, remove_file
from holdfast.errors import ConflictError, DamagedFileError, HoldfastError, WorkspaceError

# Every failed swap means that another process made progress, so this bounds bad luck, not work.
_MAX_ATTEMPTS = 200


class Ledger:
    """A workspace's history. Every read looks first whether another writer has added to it."""

    def __init__(self, files: LedgerFiles) -> None:
        self.root = files.root
        self._files = files
        # All commit rows of the newest version, once read or written; kept as text, so that no caller
        # shares their parts.
        self._tip: list[dict[str, Any]] = []
        self._slim: dict[str, list[CommitRow]] = {}  # file -> its commit rows without state

    @classmethod
    def create(cls, root: Root) -> Ledger:
        """The workspace's ledger, made if there is none; safe with several creators at once."""
        return cls(LedgerFiles.create(root))

    @classmethod
    def open(cls, root: Root) -> Ledger:
        """The ledger of an existing workspace."""
        return cls(LedgerFiles.open(root))

    # -- reading ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The newest version; 0 when nothing has been committed."""
        return self._files.refresh().version

    def heads(self, version: int | None = None) -> dict[str, int]:
        """Of each table the version of its newest commit, now or as of a version.

        `SHARED` is among them once the tables of the workspace share a state.
        """
        snapshot = self._files.refresh(at_once=False)
        if version is None:
            version = snapshot.version
        if not version:
            return {}
        for row in self._commit_rows(version):
            heads = self._parse(row, "heads")
            if heads is not None:
                return dict(heads)
        raise self._files.gap(version)

    def commit_row(self, version: int, table: str | None = None) -> CommitRow:
        """The commit row of a version for a table (else its first one), with its state.

        DamagedFileError if the version has none for that table. The rows of the newest version are
        kept: asked for again, they cost no look at the disk.
        """
        for row in self._commit_rows(version, table):
            if table in (None, row["table"]):
                return self._commit(row)
        raise self._files.gap(version, table)

    def _commit_rows(self, version: int, table: str | None = None) -> list[dict[str, Any]]:
        """The commit rows of a version as they are stored; perhaps only those of a table."""
        tip = self._tip
        if version and tip and tip[0]["version"] == version:
            return tip
        snapshot = self._files.refresh(at_once=False)
        if not 1 <= version <= snapshot.version:
            known = f"it has 1 to {snapshot.version}" if snapshot.version else "it has none yet"
            raise WorkspaceError(
                f"the workspace {str(self.root)!r} has no version {version}: {known}. "
                "List them with 'holdfast log'."
            )
        newest = version == snapshot.version
        if newest:
            table = None  # the others will be asked for, too
        for file in _spanning(snapshot.files, version, version):
            rows = self._files.rows(file, "commit", STATE_COLUMNS, version, version, table=table)
            if rows:
                if newest:
                    self._tip = rows
                return rows
        return []

    def commits(self, table: str | None = None) -> list[CommitRow]:
        """All commit rows (of a table), oldest first, without `state` and `heads`.

        Within a version they keep the order in which they were appended; those of `SHARED` are among them.
        """
        files = self._files.refresh(at_once=False).files
        rows = [row for file in files for row in self._slim_rows(file) if table in (None, row.table)]
        return sorted(rows, key=lambda row: row.version)

    def states(
        self, table: str | None = None, first: int = 1, last: int | None = None
    ) -> Iterator[CommitRow]:
        """Commit rows with their states, oldest first: all, or those of a table in a range of versions.

        In memory are those of one file at a time.
        """
        files = self._files.refresh(at_once=False).files
        last = files[-1].last if files and last is None else last or 0
        for file in _spanning(files, first, last):
            rows = self._files.rows(file, "commit", STATE_COLUMNS, first, last, table=table)
            yield from map(self._commit, sorted(rows, key=lambda row: row["version"]))

    def latest(self, table: str, until: int, since: int, most: int) -> list[CommitRow]:
        """The newest commit rows of a table after one version, up to another, with states, oldest first.

        At most so many. Cost: that of the files that they lie in, the newest ones; none older is looked at.
        """
        rows: list[dict[str, Any]] = []
        for file in sorted(self._files.refresh(at_once=False).files, key=lambda f: -f.last):
            if len(rows) >= most or file.last <= since:
                break
            if file.first <= until:
                rows += self._files.rows(file, "commit", STATE_COLUMNS, since + 1, until, table=table)
        rows.sort(key=lambda row: int(row["version"]))
        return [self._commit(row) for row in rows[-most:]]

    def columns(self, columns: Sequence[str], first: int, last: int) -> Iterator[Any]:
        """Some columns of all rows of a range of versions, and of some near them: Arrow tables by file.

        Names (`CODED_COLUMNS`) are dictionaries; within a version rows are as they were appended.
        """
        for file in _spanning(self._files.refresh(at_once=False).files, first, last):
            yield self._files.columns(file, columns, first, last)

    def verify(self) -> int:
        """Read every live file whole, with its page checksums; how many there are.

        DamagedFileError if a version lacks a commit row, has one twice, or has lost that of a table, or if
        the newest log entry is gone.
        """
        files = self._files.refresh(at_once=False).files
        self._files.check_newest()
        for file in files:
            lost = lost_version(self._files.block(file), file.first, file.last, deep=True)
            if lost is not None:
                raise DamagedFileError(
                    f"the file '{FOLDER}/{file.path}' of the workspace {str(self.root)!r} is damaged: it "
                    f"lacks rows of version {lost} or has them twice. {REPAIR}"
                )
        return len(files)

    def find_batch(self, tables: Iterable[str], batch_id: str) -> dict[str, CommitRow | None]:
        """The newest commit of a batch id to each table, if it was applied; without `state`.

        All of one version: a batch of several tables is one commit, and is seen by all or by none of them. An
        id belongs to one life of a table: what was applied before the table was dropped does not count.
        Cost: a look at the commits since then.
        """
        rows: dict[str, CommitRow | None] = dict.fromkeys(tables)
        unknown = set(rows)
        for file in reversed(self._files.refresh(at_once=False).files):
            for row in reversed(self._slim_rows(file)) if unknown else ():
                if row.table not in unknown:
                    continue
                if row.batch_id == batch_id:
                    rows[row.table] = row
                if row.batch_id == batch_id or row.action in ("track", "drop"):
                    unknown.discard(row.table)
        return rows

    def changes(
        self,
        table: str | None = None,
        since: int | None = None,
        until: int | None = None,
        kind: str | None = None,
    ) -> list[ChangeRow]:
        """The changes after version `since` up to and with version `until`, oldest first.

        Within a version they keep the order in which they were appended.
        """
        snapshot = self._files.refresh(at_once=False)
        first = 1 if since is None else since + 1
        last = snapshot.version if until is None else until
        changes: list[ChangeRow] = []
        for file in _spanning(snapshot.files, first, last):
            for row in self._files.rows(file, "change", CHANGE_COLUMNS, first, last, table=table, kind=kind):
                changes.append(
                    ChangeRow(
                        table=row["table"],
                        kind=row["kind"],
                        change=row["change"],
                        dependency=self._parse(row, "dependency"),
                        reason=row["reason"],
                        witnesses=self._parse(row, "witnesses"),
                        role=(self._parse(row, "detail") or {}).get("role"),
                        version=row["version"],
                        at=row["at"],
                    )
                )
        return sorted(changes, key=lambda change: change.version)

    def _slim_rows(self, file: LiveFile) -> list[CommitRow]:
        rows = self._slim.get(file.path)
        if rows is None:
            cells = self._files.rows(file, "commit", COMMIT_COLUMNS, file.first, file.last)
            rows = sorted((self._commit(row) for row in cells), key=lambda row: row.version)
            with self._files.lock:
                live = {f.path for f in self._files.snapshot.files}
                self._slim = {path: known for path, known in self._slim.items() if path in live}
                self._slim[file.path] = rows
        return rows

    def _commit(self, row: dict[str, Any]) -> CommitRow:
        return CommitRow(
            table=row["table"],
            action=row["action"],
            state=self._parse(row, "state"),
            detail=self._parse(row, "detail"),
            batch_id=row["batch_id"],
            version=row["version"],
            at=row["at"],
            heads=self._parse(row, "heads"),
        )

    def _parse(self, row: dict[str, Any], name: str) -> Any:
        text = row.get(name)
        if text is None:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise DamagedFileError(
                f"the ledger of the workspace {str(self.root)!r} is damaged: {name!r} of version "
                f"{row['version']} is not JSON. {REPAIR}"
            ) from None

    # -- writing ------------------------------------------------------------------------------

    def append(self, base_version: int, commits: Sequence[CommitRow], changes: Sequence[ChangeRow]) -> int:
        """Append commit rows and changes as version `base_version + 1`, and return that version.

        At least one commit row, each of another table. They are visible together or not at all.
        ConflictError if another writer has committed since `base_version`; nothing is applied then.
        JSON fields must be plain JSON: a NaN or a date in them is a ValueError or TypeError.
        """
        with self._files.lock:
            self._expect(base_version)
            version = base_version + 1
            rows = versioned(commits, version, datetime.now(UTC), self.heads(base_version))
            cells = [commit_cells(row) for row in rows]
            content = encode_commit(cells, changes)
            name = content_name(f"commit-{version:08d}", content)
            self._swap_in(write_file(self.root, name, [content]), version, len(cells) + len(changes))
            self._tip = cells
            keep_house(self._files)
            return version

    def _swap_in(self, ref: FileRef, version: int, n_rows: int) -> None:
        """Make the file part of the table if nobody has committed since the base version."""
        for _ in range(_MAX_ATTEMPTS):
            try:
                snapshot = self._expect(version - 1)
            except HoldfastError:
                remove_file(self.root, ref.name)
                raise
            add = add_action(ref, version, version, n_rows, moves_rows=False)
            try:
                landed = self._files.swap(snapshot, [add], ref.name, {"holdfastVersion": version})
            except BaseException as error:
                pass_on(error)
                raise WorkspaceError(
                    f"cannot write version {version} to the ledger of the workspace {str(self.root)!r}: "
                    f"{brief(error)}. Nothing was applied. Check the disk's space and your rights, "
                    "then run it again."
                ) from None
            if landed:
                return
        raise ConflictError(
            f"other writers kept the ledger of the workspace {str(self.root)!r} busy for {_MAX_ATTEMPTS} "
            "attempts. Nothing was applied. Run it again."
        )

    def _expect(self, base_version: int) -> Snapshot:
        """The newest snapshot, if its version is the base version."""
        snapshot = self._files.refresh()
        if isinstance(self.root, Path):  # of a store it would be a request more for each commit
            self._files.check_newest()
        newest = snapshot.version
        if newest > base_version:
            raise ConflictError(
                f"another writer committed version {newest} of the workspace while this batch was based on "
                f"version {base_version}. Nothing was applied. Run it again."
            )
        if newest < base_version:
            raise WorkspaceError(
                f"this batch was based on version {base_version}, but the ledger of the workspace "
                f"{str(self.root)!r} ends at version {newest}. Nothing was applied. "
                "Was the workspace restored from a backup? Open it again."
            )
        return snapshot


def _spanning(files: Iterable[LiveFile], first: int, last: int) -> list[LiveFile]:
    return [file for file in files if file.first <= last and file.last >= first]
