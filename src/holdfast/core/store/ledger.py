"""The ledger: the workspace's history, one Delta table at `<root>/ledger`.

Every batch appends one *commit row* per table that it touches (which names the table's live segments
and files), perhaps one for the state that all tables share, and one *change row* per dependency that
appeared or broke, all in one Parquet file that one Delta commit adds. So a version is visible whole
or not at all, however many tables it changes, and any Delta reader can query the history.

Versions. Holdfast counts its own: 1, 2, 3 ... without a gap. They are not Delta's, which also
count compactions. A row never leaves the table: compaction moves rows to another file, and no
file is ever vacuumed. So version v reads the same for ever, without Delta's time travel.

Conflicts. Delta lets two appends pass each other. Here they must not: an append is made with
`max_commit_retries=0` from the very snapshot in which the newest version was seen to be the base
version. delta-rs then either creates the one log entry that follows the snapshot (a hard link
that fails if the entry exists) or fails: compare-and-swap. A failed swap is looked at: if only a
compaction came between, it is tried again; if another commit did, it is a ConflictError.
With delta-rs's default of 15 retries an append from a stale snapshot would silently succeed, and
two creators would both "create", the second replacing the first one's metadata.

Cost. Per append: one Parquet file synced, one log entry synced. Reading prunes by the minimum
and maximum version that Delta keeps per file, then by Parquet row group, then by column. Every
`COMPACT_EVERY` commits the writer merges the small files and writes a Delta checkpoint; both are
housekeeping after the commit, and failing at them is no failure of the commit.

Durability. delta-rs syncs nothing; the log entry is synced here before `append` returns. A power
cut in the few milliseconds before can leave an empty last log entry: Delta reads it as an entry
without actions, so the commit, which nobody was told of, is gone and the next one follows. A copy of
the newest entry (`delta_log.py`) tells such an entry from one that was lost later.

A `Ledger` may be used by several threads; processes must be spawned, not forked (tokio).
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from holdfast.core.store.delta_log import (
    FOLDER,
    INTERRUPTS,
    REPAIR,
    brief,
    check_newest,
    entry_path,
    has_log,
    keep_newest,
    location,
    names_file,
    newest_kept,
    pass_on,
    reading,
    refuse_forked,
    refuse_odd_path,
)
from holdfast.core.store.files import FileRef, check_file, sync_file, sync_folder, unique_name, write_file
from holdfast.core.store.ledger_rows import (
    ARROW_SCHEMA,
    CHANGE_COLUMNS,
    COMMIT_COLUMNS,
    EPOCH,
    LAKE,
    SCHEMA,
    SHARED,
    STATE_COLUMNS,
    ChangeRow,
    CommitRow,
    add_columns,
    commit_cells,
    encode_commit,
    lost_version,
    row_groups,
    to_parquet,
    versioned,
)
from holdfast.errors import ConflictError, DamagedFileError, HoldfastError, WorkspaceError

# A compaction takes as long as a few appends, and every live file costs a reader of the whole
# history about 1 ms: more would slow the reader, fewer the writer.
COMPACT_EVERY = 64

# Between compactions: halves the log entries that an open has to read.
CHECKPOINT_EVERY = 32

# A file of this size is left alone, so a compaction rewrites a few megabytes, however old the ledger.
COMPACT_BELOW = 4 << 20

# Every failed swap means that another process made progress, so this bounds bad luck, not work.
_MAX_ATTEMPTS = 200

_CONFIGURATION = {
    "delta.appendOnly": "true",  # no other tool may delete history; merging files stays allowed
    "delta.enableExpiredLogCleanup": "false",  # Delta would drop log entries after 30 days
    "delta.logRetentionDuration": "interval 36500 days",
    "delta.deletedFileRetentionDuration": "interval 36500 days",  # a foreign VACUUM keeps old files
}

# What a line of a Delta log entry can be (the protocol's section "Actions").
_ACTIONS = frozenset(
    ("add", "remove", "cdc", "metaData", "protocol", "commitInfo", "txn", "domainMetadata", "sidecar")
)

_CHECKSUM = re.compile(r"commits?-.*_([0-9a-f]{16})\.parquet")

_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True, slots=True)
class _File:
    """One live Parquet file and the versions it spans."""

    path: str  # relative to the ledger's folder
    length: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _Snapshot:
    delta_version: int
    files: tuple[_File, ...]  # by first version

    @property
    def version(self) -> int:
        return max((file.last for file in self.files), default=0)


class Ledger:
    """A workspace's history. Every read looks first whether another writer has added to it."""

    def __init__(self, root: Path, table: Any) -> None:
        self.root = root
        self._folder = root / FOLDER
        self._table = table
        self._lock = threading.RLock()
        # All commit rows of the newest version, once read or written; kept as text, so that no caller
        # shares their parts.
        self._tip: list[dict[str, Any]] = []
        self._slim: dict[str, list[CommitRow]] = {}  # file -> its commit rows without state
        self._snapshot = self._take_snapshot()
        check_newest(root)
        if newest_kept(self._folder) < self._snapshot.delta_version:
            keep_newest(self._folder, self._snapshot.delta_version)

    # -- opening ------------------------------------------------------------------------------

    @classmethod
    def create(cls, root: Path) -> Ledger:
        """The workspace's ledger, made if there is none; safe with several creators at once."""
        root = Path(root)
        folder = root / FOLDER
        refuse_odd_path(folder)
        refuse_forked(root)
        if not has_log(folder):
            if any(path.is_dir() and any(path.iterdir()) for path in (root / "tables", root / "values")):
                raise DamagedFileError(
                    f"the workspace {str(root)!r} has tables but no ledger: the folder {FOLDER!r} is gone "
                    f"or empty. Nothing was written. {REPAIR}"
                )
            try:
                folder.mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    location(folder),
                    schema=DeltaSchema.from_arrow(SCHEMA),
                    mode="error",
                    name="holdfast ledger",
                    configuration=_CONFIGURATION,
                    commit_properties=CommitProperties(max_commit_retries=0),
                    post_commithook_properties=_NO_HOOKS,
                )
                sync_file(entry_path(folder, 0))
                for made in (folder / "_delta_log", folder, root):
                    sync_folder(made)
            except BaseException as error:
                pass_on(error)
                # The usual reason is another creator; then its ledger is there to be opened.
                if not has_log(folder):
                    raise WorkspaceError(
                        f"cannot create the ledger of the workspace {str(root)!r}: {brief(error)}. "
                        "Check the disk's space and your rights, then run it again."
                    ) from None
        return cls.open(root)

    @classmethod
    def open(cls, root: Path) -> Ledger:
        """The ledger of an existing workspace."""
        root = Path(root)
        folder = root / FOLDER
        refuse_odd_path(folder)
        refuse_forked(root)
        if not has_log(folder):
            raise DamagedFileError(
                f"the workspace {str(root)!r} has no ledger: {FOLDER}/_delta_log is missing or empty. "
                f"{REPAIR}"
            )
        with reading(root):
            table = DeltaTable(location(folder))
        return cls(root, table)

    # -- reading ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The newest version; 0 when nothing has been committed."""
        return self._refresh().version

    def heads(self, version: int | None = None) -> dict[str, int]:
        """Of each table the version of its newest commit, now or as of a version.

        `SHARED` is among them once the tables of the workspace share a state.
        """
        snapshot = self._refresh()
        if version is None:
            version = snapshot.version
        if not version:
            return {}
        for row in self._commit_rows(version):
            heads = self._parse(row, "heads")
            if heads is not None:
                return dict(heads)
        raise self._gap(version)

    def commit_row(self, version: int, table: str | None = None) -> CommitRow:
        """The commit row of a version for a table (else its first one), with its state.

        DamagedFileError if the version has none for that table. The rows of the newest version are
        kept: asked for again, they cost no look at the disk.
        """
        for row in self._commit_rows(version, table):
            if table in (None, row["table"]):
                return self._commit(row)
        raise self._gap(version, table)

    def _commit_rows(self, version: int, table: str | None = None) -> list[dict[str, Any]]:
        """The commit rows of a version as they are stored; perhaps only those of a table."""
        tip = self._tip
        if version and tip and tip[0]["version"] == version:
            return tip
        snapshot = self._refresh()
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
            rows = self._rows(file, "commit", STATE_COLUMNS, version, version, table=table)
            if rows:
                if newest:
                    self._tip = rows
                return rows
        return []

    def commits(self, table: str | None = None) -> list[CommitRow]:
        """All commit rows (of a table), oldest first, without `state` and `heads`.

        Within a version they keep the order in which they were appended; those of `SHARED` are among them.
        """
        files = self._refresh().files
        rows = [row for file in files for row in self._slim_rows(file) if table in (None, row.table)]
        return sorted(rows, key=lambda row: row.version)

    def states(self) -> Iterator[CommitRow]:
        """All commit rows with their states, oldest first; in memory are those of one file at a time."""
        for file in self._refresh().files:
            rows = self._rows(file, "commit", STATE_COLUMNS, file.first, file.last)
            yield from map(self._commit, sorted(rows, key=lambda row: row["version"]))

    def verify(self) -> int:
        """Read every live file whole, with its page checksums; how many there are.

        DamagedFileError if a version lacks a commit row, has one twice, or has lost that of a table, or if
        the newest log entry is gone.
        """
        files = self._refresh().files
        check_newest(self.root)
        for file in files:
            with self._open_file(file.path, file.length, fresh=True) as parquet:
                block = parquet.read(use_threads=False).select(SCHEMA.names)
            lost = lost_version(block, file.first, file.last, deep=True)
            if lost is not None:
                raise DamagedFileError(
                    f"the file '{FOLDER}/{file.path}' of the workspace {str(self.root)!r} is damaged: it "
                    f"lacks rows of version {lost} or has them twice. {REPAIR}"
                )
        return len(files)

    def find_batch(self, table: str, batch_id: str) -> CommitRow | None:
        """The newest commit of a batch id to a table, if it was applied; without `state`.

        An id belongs to one life of a table: what was applied before the table was dropped does not count.
        Cost: a look at the commits since then.
        """
        for file in reversed(self._refresh().files):
            for row in reversed(self._slim_rows(file)):
                if row.table != table:
                    continue
                if row.batch_id == batch_id:
                    return row
                if row.action in ("track", "drop"):
                    return None
        return None

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
        snapshot = self._refresh()
        first = 1 if since is None else since + 1
        last = snapshot.version if until is None else until
        found: list[ChangeRow] = []
        for file in _spanning(snapshot.files, first, last):
            for row in self._rows(file, "change", CHANGE_COLUMNS, first, last, table=table, kind=kind):
                found.append(
                    ChangeRow(
                        table=row["table"],
                        kind=row["kind"],
                        change=row["change"],
                        dependency=self._parse(row, "dependency"),
                        reason=row["reason"],
                        witnesses=self._parse(row, "witnesses"),
                        version=row["version"],
                        at=row["at"],
                    )
                )
        return sorted(found, key=lambda change: change.version)

    # -- writing ------------------------------------------------------------------------------

    def append(self, base_version: int, commits: Sequence[CommitRow], changes: Sequence[ChangeRow]) -> int:
        """Append commit rows and changes as version `base_version + 1`, and return that version.

        At least one commit row, each of another table. They are visible together or not at all.
        ConflictError if another writer has committed since `base_version`; nothing is applied then.
        JSON fields must be plain JSON: a NaN or a date in them is a ValueError or TypeError.
        """
        with self._lock:
            self._expect(base_version)
            version = base_version + 1
            rows = versioned(commits, version, datetime.now(UTC), self.heads(base_version))
            cells = [commit_cells(row) for row in rows]
            content = encode_commit(cells, changes)
            name = _file_name(f"commit-{version:08d}", content)
            self._swap_in(write_file(self.root, name, [content]), version, len(cells) + len(changes))
            self._tip = cells
            self._keep_house()
            return version

    def _swap_in(self, ref: FileRef, version: int, n_rows: int) -> None:
        """Make the file part of the table if nobody has committed since the base version."""
        for _ in range(_MAX_ATTEMPTS):
            try:
                snapshot = self._expect(version - 1)
            except HoldfastError:
                (self.root / ref.name).unlink(missing_ok=True)
                raise
            add = _add_action(ref, version, version, n_rows, moves_rows=False)
            try:
                landed = self._swap(snapshot, [add], ref.name, {"holdfastVersion": version})
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

    def _swap(self, snapshot: _Snapshot, actions: list[Any], name: str, metadata: dict[str, Any]) -> bool:
        """Write the log entry that follows the snapshot; False if another writer wrote it first.

        The snapshot must be the very one that the caller's decision was made on: delta-rs swaps
        on what the table object has seen, and any refresh in between moves that on.
        On True the entry is on disk and has been read. `name` is the file that it adds.
        """
        if self._table.version() != snapshot.delta_version:
            return False
        path = name.removeprefix(f"{FOLDER}/")
        next_entry = entry_path(self._folder, snapshot.delta_version + 1)
        try:
            self._table.create_write_transaction(
                actions,
                mode="append",
                schema=DeltaSchema.from_arrow(SCHEMA),
                commit_properties=CommitProperties(
                    custom_metadata={**metadata, "holdfastEntry": snapshot.delta_version + 1},
                    max_commit_retries=0,
                ),
                # A checkpoint that fails here would look like a commit that failed.
                post_commithook_properties=_NO_HOOKS,
            )
        except BaseException as error:
            # Ask the log, not the error: a failure after the link is no failed commit, and taking
            # it for one would delete a live file.
            if not names_file(next_entry, path):
                if isinstance(error, CommitFailedError):
                    return False
                raise
            if isinstance(error, INTERRUPTS):
                raise
        try:
            sync_file(next_entry)
            sync_folder(next_entry.parent)
        except OSError as error:
            raise WorkspaceError(
                f"the file {name!r} of the workspace {str(self.root)!r} is committed, but could not be "
                f"forced to disk: {brief(error)}. Check the disk, then look at 'holdfast log'."
            ) from error
        keep_newest(self._folder, snapshot.delta_version + 1)
        self._refresh()
        return True

    def _expect(self, base_version: int) -> _Snapshot:
        """The newest snapshot, if its version is the base version."""
        snapshot = self._refresh()
        check_newest(self.root)
        found = snapshot.version
        if found > base_version:
            raise ConflictError(
                f"another writer committed version {found} of the workspace while this batch was based on "
                f"version {base_version}. Nothing was applied. Run it again."
            )
        if found < base_version:
            raise WorkspaceError(
                f"this batch was based on version {base_version}, but the ledger of the workspace "
                f"{str(self.root)!r} ends at version {found}. Nothing was applied. "
                "Was the workspace restored from a backup? Open it again."
            )
        return snapshot

    def _keep_house(self) -> None:
        """Merge the small files and write a checkpoint, now and then; never fails the commit.

        A compaction that loses against another writer is simply dropped: the small files are
        still there after the next commit.
        """
        small = sum(f.first == f.last and f.length < COMPACT_BELOW for f in self._snapshot.files)
        try:
            if small >= COMPACT_EVERY:
                self._compact()
            elif self._snapshot.delta_version % CHECKPOINT_EVERY == 0:
                self._table.create_checkpoint()
        except INTERRUPTS:
            raise
        except BaseException:
            pass  # whatever it is, the commit stands, and the next one tries again

    def _compact(self) -> None:
        """Merge the longest run of small files into one, if no other writer comes between.

        Not by delta-rs's `optimize.compact`: in 1.6.6 it ignores `max_commit_retries`, rebases
        itself, and lets two concurrent compactions both land, which doubles every row. The same
        compare-and-swap as for appends cannot.
        """
        snapshot = self._snapshot
        run = _longest_run(snapshot.files)
        if len(run) < 2:
            return
        first, last = run[0].first, max(file.last for file in run)
        blocks = []
        for file in run:
            with self._open_file(file.path, file.length, fresh=True) as parquet:
                blocks.append(parquet.read(use_threads=False).select(SCHEMA.names).cast(ARROW_SCHEMA))
        block = pa.concat_tables(blocks)
        lost = lost_version(block, first, last)
        if lost is not None:
            raise self._gap(lost)  # never make it worse: a damaged history stays as it is
        content = to_parquet(block)
        name = _file_name(f"commits-{first:08d}-{last:08d}", content)
        ref = write_file(self.root, name, [content])
        actions: list[Any] = [_add_action(ref, first, last, block.num_rows, moves_rows=True)]
        actions += [RemoveAction(file.path, False, _now_ms(), file.length, {}) for file in run]
        if not self._swap(snapshot, actions, name, {"holdfastCompaction": True}):
            (self.root / name).unlink(missing_ok=True)
            return
        self._table.create_checkpoint()

    # -- snapshots and files ------------------------------------------------------------------

    def _refresh(self) -> _Snapshot:
        """The newest snapshot. One `stat` when nothing is new."""
        refuse_forked(self.root)
        with self._lock:
            seen = self._snapshot.delta_version
            # The table may be ahead of the snapshot, where taking one failed half-way.
            if self._table.version() != seen or os.path.exists(entry_path(self._folder, seen + 1)):
                with reading(self.root):
                    self._table.update_incremental()
                self._snapshot = self._take_snapshot()
            elif not os.path.exists(self._folder):
                raise DamagedFileError(
                    f"the ledger of the workspace {str(self.root)!r} is gone: the folder {FOLDER!r} is "
                    f"missing. {REPAIR}"
                )
            return self._snapshot

    def _take_snapshot(self) -> _Snapshot:
        with reading(self.root):
            columns = add_columns(self._table.get_add_actions(flatten=True))
        files = []
        unknown = [None] * len(columns["path"])
        lasts = columns.get("max.version", unknown)
        for path, length, first, last in zip(
            columns["path"], columns["size_bytes"], columns.get("min.version", unknown), lasts, strict=True
        ):
            path = unquote(path)
            if first is None or last is None:  # merged by a tool that keeps no statistics
                with self._open_file(path, length) as parquet:
                    versions = parquet.read(columns=["version"]).column(0).to_pylist()
                first, last = min(versions, default=0), max(versions, default=0)
            files.append(_File(path, length, first, last))
        files.sort(key=lambda file: (file.first, file.last))
        covered = 0
        for file in files:
            if file.first > covered + 1:
                raise self._gap(covered + 1)
            covered = max(covered, file.last)
        self._check_last_entry(self._table.version(), covered)
        return _Snapshot(self._table.version(), tuple(files))

    def _check_last_entry(self, delta_version: int, version: int) -> None:
        """Raise if the newest log entry is not the one that was written, as far as it tells of itself.

        A damaged entry before it shows as a gap in the versions. The newest one would only make the
        newest version disappear: delta-rs passes over actions that it does not know. An empty entry
        is what a power cut leaves of a commit that nobody was told of.
        """
        entry = entry_path(self._folder, delta_version)
        try:
            lines = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines() if line]
            told = {key: value for line in lines for key, value in line.items()}
            commit = told.get("commitInfo", {})
            wrong = (
                not _ACTIONS.issuperset(told)
                or commit.get("holdfastEntry", delta_version) != delta_version
                or commit.get("holdfastVersion", version) != version
            )
        except FileNotFoundError:  # a foreign tool may have cleaned up behind its checkpoint
            return
        except (OSError, ValueError, AttributeError):
            wrong = True
        if wrong:
            raise DamagedFileError(
                f"the file '{FOLDER}/_delta_log/{entry.name}' of the workspace {str(self.root)!r} is "
                f"damaged: it is not what was written for version {version} or later. {REPAIR}"
            )

    def _gap(self, version: int, table: str | None = None) -> DamagedFileError:
        part = "" if table is None else f" of the table {table!r}"
        if table == SHARED:
            part = " of the state that its tables share"
        if table == LAKE:
            part = " of the lake"
        return DamagedFileError(
            f"the ledger of the workspace {str(self.root)!r} has lost version {version}{part}: no live file "
            f"of {FOLDER!r} holds it. {REPAIR}"
        )

    @contextmanager
    def _open_file(self, path: str, length: int, *, fresh: bool = False) -> Iterator[Any]:
        """A Parquet file, with whatever is wrong with it turned into a DamagedFileError.

        Page checksums leave headers and footer out, so the name carries one of the whole file; it
        is checked once per process, or now if `fresh`. Files merged by another tool have none.
        """
        full = self._folder / path
        name = f"{FOLDER}/{path}"
        try:
            found = os.path.getsize(full)
            if found != length:
                raise DamagedFileError(
                    f"the file {name!r} of the workspace {str(self.root)!r} has {found} bytes; "
                    f"{length} were written. {REPAIR}"
                )
            if told := _CHECKSUM.fullmatch(path):
                check_file(self.root, FileRef(name, length, told[1]), deep=True, fresh=fresh)
            with pq.ParquetFile(full, page_checksum_verification=True) as parquet:
                yield parquet
        except HoldfastError:
            raise
        except FileNotFoundError:
            raise DamagedFileError(
                f"the file {name!r} of the workspace {str(self.root)!r} is missing. {REPAIR}"
            ) from None
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise DamagedFileError(
                f"the file {name!r} of the workspace {str(self.root)!r} cannot be read: {brief(error)}. "
                f"{REPAIR}"
            ) from None

    def _rows(
        self,
        file: _File,
        entry: str,
        columns: Iterable[str],
        first: int,
        last: int,
        table: str | None = None,
        kind: str | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of one kind of entry in a range of versions.

        The narrow columns choose the rows; of the wide ones only the chosen cells become Python
        objects.
        """
        narrow = ["version", "entry", "table", "kind"]
        wide = list(columns)
        with self._open_file(file.path, file.length) as parquet:
            groups = row_groups(parquet, first, last)
            block = parquet.read_row_groups(groups, columns=[*narrow, *wide], use_threads=False)
            block = block.combine_chunks()
            keys = zip(*(block.column(name).to_pylist() for name in narrow), strict=True)
            chosen = [
                i
                for i, (v, e, t, k) in enumerate(keys)
                if e == entry and first <= v <= last and table in (None, t) and kind in (None, k)
            ]
            rows: list[dict[str, Any]] = [{} for _ in chosen]
            for name in (*narrow, *wide):
                column = block.column(name)
                for row, i in zip(rows, chosen, strict=True):
                    # Times as integers: making datetimes of a zone makes pyarrow import pandas or
                    # zoneinfo, and a cast of the column pyarrow.compute (0.1 s).
                    row[name] = column[i].value if name == "at" else column[i].as_py()
            for row in rows:
                row["at"] = EPOCH + timedelta(microseconds=row["at"])
        return rows

    def _slim_rows(self, file: _File) -> list[CommitRow]:
        rows = self._slim.get(file.path)
        if rows is None:
            found = self._rows(file, "commit", COMMIT_COLUMNS, file.first, file.last)
            rows = sorted((self._commit(row) for row in found), key=lambda row: row.version)
            with self._lock:
                live = {f.path for f in self._snapshot.files}
                self._slim = {path: kept for path, kept in self._slim.items() if path in live}
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


def _add_action(ref: FileRef, first: int, last: int, n_rows: int, *, moves_rows: bool) -> Any:
    stats = {
        "numRecords": n_rows,
        "minValues": {"version": first},
        "maxValues": {"version": last},
        "nullCount": {"version": 0},
    }
    path = ref.name.removeprefix(f"{FOLDER}/")
    return AddAction(path, ref.length, {}, _now_ms(), not moves_rows, json.dumps(stats))


def _longest_run(files: Iterable[_File]) -> list[_File]:
    """The longest run of neighbouring small files, oldest first, cut where it grows too large.

    Neighbours, so that the versions of the merged file are again one range of their own.
    """
    best: list[_File] = []
    run: list[_File] = []
    length = 0
    for file in files:
        if file.length >= COMPACT_BELOW or length + file.length > 2 * COMPACT_BELOW:
            run, length = [], 0
        if file.length < COMPACT_BELOW:
            run.append(file)
            length += file.length
        if len(run) > len(best):
            best = list(run)
    return best


def _spanning(files: Iterable[_File], first: int, last: int) -> list[_File]:
    return [file for file in files if file.first <= last and file.last >= first]


def _file_name(stem: str, content: Any) -> str:
    """A new name that carries the content's checksum."""
    return unique_name(FOLDER, stem, f"_{xxhash.xxh3_64_hexdigest(memoryview(content))}.parquet")


def _now_ms() -> int:
    return (datetime.now(UTC) - EPOCH) // timedelta(milliseconds=1)
