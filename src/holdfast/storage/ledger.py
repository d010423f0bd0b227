"""The ledger: the workspace's history, one Delta table at `<root>/ledger`.

Every batch appends one *commit row* (which names the table's live segments and files) and one
*change row* per dependency that appeared or broke, all in one Parquet file that one Delta commit
adds. So a commit is visible whole or not at all, and any Delta reader can query the history.

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
without actions, so the commit, which nobody was told of, is gone and the next one follows.

A `Ledger` may be used by several threads; processes must be spawned, not forked (tokio).
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from arro3.core import Array, DataType, Field, RecordBatchReader, Schema, Table
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from holdfast.errors import ConflictError, DamagedFileError, HoldfastError, WorkspaceError
from holdfast.storage.files import FileRef, check_file, sync_file, sync_folder, unique_name, write_file

FOLDER = "ledger"

# A compaction takes as long as a few appends, and every live file costs a reader of the whole
# history about 1 ms: more would slow the reader, fewer the writer.
COMPACT_EVERY = 64

# Between compactions: halves the log entries that an open has to read.
CHECKPOINT_EVERY = 32

# A file of this size is left alone, so a compaction rewrites a few megabytes, however old the ledger.
COMPACT_BELOW = 4 << 20

# One commit is read by decoding one row group of a compacted file.
_ROWS_PER_GROUP = 256

# Every failed swap means that another process made progress, so this bounds bad luck, not work.
_MAX_ATTEMPTS = 200

# A panic of Rust is a BaseException of a class that cannot be imported, so the code below catches
# all but these.
_INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TEXT = DataType.utf8()
_SCHEMA = Schema(
    [
        Field("version", DataType.int64(), nullable=False),
        Field("entry", _TEXT, nullable=False),
        Field("table", _TEXT, nullable=False),
        Field("at", DataType.timestamp("us", tz="UTC"), nullable=False),
        Field("action", _TEXT),
        Field("batch_id", _TEXT),
        Field("state", _TEXT),
        Field("heads", _TEXT),
        Field("detail", _TEXT),
        Field("kind", _TEXT),
        Field("change", _TEXT),
        Field("dependency", _TEXT),
        Field("reason", _TEXT),
        Field("witnesses", _TEXT),
    ]
)
_ARROW_SCHEMA: Any = pa.RecordBatchReader.from_stream(Table.from_batches([], schema=_SCHEMA)).schema
_COMMIT_COLUMNS = ("at", "action", "batch_id", "detail")
_CHANGE_COLUMNS = ("at", "change", "dependency", "reason", "witnesses")

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

_REPAIR = "Restore the workspace from a backup, or rebuild it with 'holdfast track'."


@dataclass(frozen=True, slots=True)
class CommitRow:
    """One version of the workspace: what was done to which table, and the state it left.

    `append` sets `version`, and `at` and `heads` where they are None. `heads` maps each table to
    the version of its newest commit; the action "drop" takes its table out. `commits` and
    `find_batch` leave `state` and `heads` unread (None).
    """

    table: str
    action: str  # "track", "apply", "merge", "pin", "drop" ...
    state: dict[str, Any] | None = None
    detail: dict[str, Any] | None = None
    batch_id: str | None = None
    version: int = 0
    at: datetime | None = None
    heads: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A dependency that appeared or broke; `append` sets `version` and `at`."""

    table: str
    kind: str  # "ucc" ...
    change: str  # "appeared" | "broke"
    dependency: dict[str, Any]
    reason: str | None = None
    witnesses: list[Any] | None = None  # groups of {"row": id, "values": {...}}
    version: int = 0
    at: datetime | None = None


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
        # The newest commit row, once read or written; kept as text, so that no caller shares its parts.
        self._tip: dict[str, Any] = {"version": 0}
        self._slim: dict[str, list[CommitRow]] = {}  # file -> its commit rows without state
        self._snapshot = self._take_snapshot()

    # -- opening ------------------------------------------------------------------------------

    @classmethod
    def create(cls, root: Path) -> Ledger:
        """The workspace's ledger, made if there is none; safe with several creators at once."""
        root = Path(root)
        folder = root / FOLDER
        _refuse_odd_path(folder)
        if not _has_log(folder):
            tables = root / "tables"
            if tables.is_dir() and any(tables.iterdir()):
                raise DamagedFileError(
                    f"the workspace {str(root)!r} has tables but no ledger: the folder {FOLDER!r} is gone "
                    f"or empty. Nothing was written. {_REPAIR}"
                )
            try:
                folder.mkdir(parents=True, exist_ok=True)
                DeltaTable.create(
                    _location(folder),
                    schema=DeltaSchema.from_arrow(_SCHEMA),
                    mode="error",
                    name="holdfast ledger",
                    configuration=_CONFIGURATION,
                    commit_properties=CommitProperties(max_commit_retries=0),
                    post_commithook_properties=_NO_HOOKS,
                )
                sync_file(_entry(folder, 0))
                for made in (folder / "_delta_log", folder, root):
                    sync_folder(made)
            except BaseException as error:
                _pass_on(error)
                # The usual reason is another creator; then its ledger is there to be opened.
                if not _has_log(folder):
                    raise WorkspaceError(
                        f"cannot create the ledger of the workspace {str(root)!r}: {_brief(error)}. "
                        "Check the disk's space and your rights, then run it again."
                    ) from None
        return cls.open(root)

    @classmethod
    def open(cls, root: Path) -> Ledger:
        """The ledger of an existing workspace."""
        root = Path(root)
        folder = root / FOLDER
        _refuse_odd_path(folder)
        if not _has_log(folder):
            raise DamagedFileError(
                f"the workspace {str(root)!r} has no ledger: {FOLDER}/_delta_log is missing or empty. "
                f"{_REPAIR}"
            )
        with _reading(root):
            table = DeltaTable(_location(folder))
        return cls(root, table)

    # -- reading ------------------------------------------------------------------------------

    @property
    def version(self) -> int:
        """The newest version; 0 when nothing has been committed."""
        return self._refresh().version

    def heads(self, version: int | None = None) -> dict[str, int]:
        """Of each table the version of its newest commit, now or as of a version."""
        snapshot = self._refresh()
        if version is None:
            version = snapshot.version
        return dict(self.commit_row(version).heads or {}) if version else {}

    def commit_row(self, version: int) -> CommitRow:
        """The commit row of a version, with its state."""
        tip = self._tip
        if version and tip["version"] == version:
            return self._commit(tip)
        snapshot = self._refresh()
        if not 1 <= version <= snapshot.version:
            known = f"it has 1 to {snapshot.version}" if snapshot.version else "it has none yet"
            raise WorkspaceError(
                f"the workspace {str(self.root)!r} has no version {version}: {known}. "
                "List them with 'holdfast log'."
            )
        for file in _spanning(snapshot.files, version, version):
            columns = (*_COMMIT_COLUMNS, "state", "heads")
            for row in self._rows(file, "commit", columns, version, version):
                if version == snapshot.version:
                    self._tip = row
                return self._commit(row)
        raise self._gap(version)

    def commits(self, table: str | None = None) -> list[CommitRow]:
        """All commits (of a table), oldest first, without `state` and `heads`."""
        files = self._refresh().files
        rows = [row for file in files for row in self._slim_rows(file) if table in (None, row.table)]
        return sorted(rows, key=lambda row: row.version)

    def states(self) -> Iterator[CommitRow]:
        """All commits with their states, oldest first; in memory are those of one file at a time."""
        for file in self._refresh().files:
            columns = (*_COMMIT_COLUMNS, "state", "heads")
            rows = self._rows(file, "commit", columns, file.first, file.last)
            yield from map(self._commit, sorted(rows, key=lambda row: row["version"]))

    def verify(self) -> int:
        """Read every live file whole, with its page checksums; how many there are."""
        files = self._refresh().files
        for file in files:
            with self._open_file(file.path, file.length, fresh=True) as parquet:
                block = parquet.read(use_threads=False).select(_SCHEMA.names)
            entries = zip(block.column("version").to_pylist(), block.column("entry").to_pylist(), strict=True)
            versions = sorted(version for version, entry in entries if entry == "commit")
            if versions != list(range(file.first, file.last + 1)):
                raise self._gap(file.first)
        return len(files)

    def find_batch(self, table: str, batch_id: str) -> CommitRow | None:
        """The newest commit of a batch id to a table, if it was applied; without `state`."""
        for file in reversed(self._refresh().files):
            for row in reversed(self._slim_rows(file)):
                if row.batch_id == batch_id and row.table == table:
                    return row
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
            for row in self._rows(file, "change", _CHANGE_COLUMNS, first, last, table=table, kind=kind):
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

    def append(self, base_version: int, commit: CommitRow, changes: Sequence[ChangeRow]) -> int:
        """Append a commit and its changes as version `base_version + 1`, and return that version.

        ConflictError if another writer has committed since `base_version`; nothing is applied then.
        JSON fields must be plain JSON: a NaN or a date in them is a ValueError or TypeError.
        """
        with self._lock:
            self._expect(base_version)
            version = base_version + 1
            at = commit.at or datetime.now(UTC)
            heads = commit.heads
            if heads is None:
                heads = {**self.heads(base_version), commit.table: version}
                if commit.action == "drop":
                    del heads[commit.table]
            row = replace(commit, version=version, at=at, heads=heads)
            content = _encode(row, changes)
            name = _file_name(f"commit-{version:08d}", content)
            self._swap_in(write_file(self.root, name, [content]), version, 1 + len(changes))
            self._tip = {
                "version": version,
                "table": row.table,
                "at": at,
                "action": row.action,
                "batch_id": row.batch_id,
                "state": _json(row.state),
                "heads": _json(heads),
                "detail": _json(row.detail),
            }
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
                _pass_on(error)
                raise WorkspaceError(
                    f"cannot write version {version} to the ledger of the workspace {str(self.root)!r}: "
                    f"{_brief(error)}. Nothing was applied. Check the disk's space and your rights, "
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
        next_entry = _entry(self._folder, snapshot.delta_version + 1)
        try:
            self._table.create_write_transaction(
                actions,
                mode="append",
                schema=DeltaSchema.from_arrow(_SCHEMA),
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
            if not _names(next_entry, path):
                if isinstance(error, CommitFailedError):
                    return False
                raise
            if isinstance(error, _INTERRUPTS):
                raise
        try:
            sync_file(next_entry)
            sync_folder(next_entry.parent)
        except OSError as error:
            raise WorkspaceError(
                f"the file {name!r} of the workspace {str(self.root)!r} is committed, but could not be "
                f"forced to disk: {_brief(error)}. Check the disk, then look at 'holdfast log'."
            ) from error
        self._refresh()
        return True

    def _expect(self, base_version: int) -> _Snapshot:
        """The newest snapshot, if its version is the base version."""
        snapshot = self._refresh()
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
        except _INTERRUPTS:
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
            with self._open_file(file.path, file.length) as parquet:
                blocks.append(parquet.read(use_threads=False).select(_SCHEMA.names).cast(_ARROW_SCHEMA))
        block = pa.concat_tables(blocks)
        if block.column("entry").to_pylist().count("commit") != last - first + 1:
            raise self._gap(first)  # never make it worse: a damaged history stays as it is
        content = _to_parquet(block)
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
        with self._lock:
            seen = self._snapshot.delta_version
            # The table may be ahead of the snapshot, where taking one failed half-way.
            if self._table.version() != seen or os.path.exists(_entry(self._folder, seen + 1)):
                with _reading(self.root):
                    self._table.update_incremental()
                self._snapshot = self._take_snapshot()
            elif not os.path.exists(self._folder):
                raise DamagedFileError(
                    f"the ledger of the workspace {str(self.root)!r} is gone: the folder {FOLDER!r} is "
                    f"missing. {_REPAIR}"
                )
            return self._snapshot

    def _take_snapshot(self) -> _Snapshot:
        with _reading(self.root):
            columns = _columns(self._table.get_add_actions(flatten=True))
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
        entry = _entry(self._folder, delta_version)
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
                f"damaged: it is not what was written for version {version} or later. {_REPAIR}"
            )

    def _gap(self, version: int) -> DamagedFileError:
        return DamagedFileError(
            f"the ledger of the workspace {str(self.root)!r} has lost version {version}: no live file of "
            f"{FOLDER!r} holds it. {_REPAIR}"
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
                    f"{length} were written. {_REPAIR}"
                )
            if told := _CHECKSUM.fullmatch(path):
                check_file(self.root, FileRef(name, length, told[1]), deep=True, fresh=fresh)
            with pq.ParquetFile(full, page_checksum_verification=True) as parquet:
                yield parquet
        except HoldfastError:
            raise
        except FileNotFoundError:
            raise DamagedFileError(
                f"the file {name!r} of the workspace {str(self.root)!r} is missing. {_REPAIR}"
            ) from None
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            raise DamagedFileError(
                f"the file {name!r} of the workspace {str(self.root)!r} cannot be read: {_brief(error)}. "
                f"{_REPAIR}"
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
            groups = _row_groups(parquet, first, last)
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
                row["at"] = _EPOCH + timedelta(microseconds=row["at"])
        return rows

    def _slim_rows(self, file: _File) -> list[CommitRow]:
        rows = self._slim.get(file.path)
        if rows is None:
            found = self._rows(file, "commit", _COMMIT_COLUMNS, file.first, file.last)
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
                f"{row['version']} is not JSON. {_REPAIR}"
            ) from None


def _encode(commit: CommitRow, changes: Sequence[ChangeRow]) -> Any:
    """The Parquet file of one commit, as an Arrow buffer; the commit row comes first.

    Arrays are built by arro3: `pa.array` of Python objects would import pandas (0.3 s).
    """
    at = (commit.at or datetime.now(UTC)) - _EPOCH
    n_rows = 1 + len(changes)
    no_change, no_commit = [None], [None] * len(changes)

    def of_changes(read: Callable[[ChangeRow], str | None]) -> list[str | None]:
        return [*no_change, *(read(change) for change in changes)]

    columns: dict[str, list[Any]] = {
        "version": [commit.version] * n_rows,
        "entry": ["commit", *["change"] * len(changes)],
        "table": [commit.table, *(change.table for change in changes)],
        "at": [at // timedelta(microseconds=1)] * n_rows,
        "action": [commit.action, *no_commit],
        "batch_id": [commit.batch_id, *no_commit],
        "state": [_json(commit.state), *no_commit],
        "heads": [_json(commit.heads), *no_commit],
        "detail": [_json(commit.detail), *no_commit],
        "kind": of_changes(lambda change: change.kind),
        "change": of_changes(lambda change: change.change),
        "dependency": of_changes(lambda change: _json(change.dependency)),
        "reason": of_changes(lambda change: change.reason),
        "witnesses": of_changes(lambda change: _json(change.witnesses)),
    }
    arrays = []
    for i, name in enumerate(_SCHEMA.names):
        kind = _SCHEMA.field(i).type
        if name == "at":
            arrays.append(Array(columns[name], DataType.int64()).cast(kind))
        else:
            arrays.append(Array(columns[name], kind))
    block = pa.RecordBatchReader.from_stream(Table.from_arrays(arrays, schema=_SCHEMA)).read_all()
    return _to_parquet(block)


def _file_name(stem: str, content: Any) -> str:
    """A new name that carries the content's checksum."""
    return unique_name(FOLDER, stem, f"_{xxhash.xxh3_64_hexdigest(memoryview(content))}.parquet")


def _to_parquet(block: Any) -> Any:
    sink = pa.BufferOutputStream()
    pq.write_table(block, sink, compression="zstd", row_group_size=_ROWS_PER_GROUP, write_page_checksum=True)
    return sink.getvalue()


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


def _json(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _columns(block: Any) -> dict[str, list[Any]]:
    """An arro3 block as lists; arro3's own scalars are ten times slower to convert."""
    table = pa.RecordBatchReader.from_stream(RecordBatchReader.from_arrow(block)).read_all()
    wanted = ("path", "size_bytes", "min.version", "max.version")
    return {name: table.column(name).to_pylist() for name in wanted if name in table.column_names}


def _spanning(files: Iterable[_File], first: int, last: int) -> list[_File]:
    return [file for file in files if file.first <= last and file.last >= first]


def _row_groups(parquet: Any, first: int, last: int) -> list[int]:
    """The row groups that may hold a range of versions."""
    metadata = parquet.metadata
    if metadata.num_row_groups <= 1:
        return list(range(metadata.num_row_groups))
    position = parquet.schema_arrow.get_field_index("version")
    chosen = []
    for i in range(metadata.num_row_groups):
        bounds = metadata.row_group(i).column(position).statistics
        known = bounds is not None and bounds.has_min_max
        if not known or (bounds.min <= last and bounds.max >= first):
            chosen.append(i)
    return chosen


def _location(folder: Path) -> str:
    """The folder as delta-rs takes it: a bare path with a colon in it would be read as a URL."""
    return folder.absolute().as_uri()


def _entry(folder: Path, delta_version: int) -> Path:
    """The log entry of a Delta version."""
    return folder / "_delta_log" / f"{delta_version:020d}.json"


def _has_log(folder: Path) -> bool:
    try:
        return any(name.endswith((".json", ".parquet")) for name in os.listdir(folder / "_delta_log"))
    except OSError:
        return False


def _names(entry: Path, path: str) -> bool:
    """Whether a log entry exists and adds the file: the answer to 'did my commit land?'."""
    try:
        return path in entry.read_text(encoding="utf-8")
    except OSError:
        return False


def _refuse_odd_path(folder: Path) -> None:
    # delta-rs 1.6 decodes a path twice and takes a backslash for a slash: it would write elsewhere.
    if re.search(r"%[0-9A-Fa-f]{2}|\\", str(folder.absolute())):
        raise WorkspaceError(
            f"the workspace's path {str(folder.parent)!r} has a backslash or a '%' code in it, which Delta "
            "Lake cannot address. Nothing was written. Choose another folder."
        )


def _now_ms() -> int:
    return (datetime.now(UTC) - _EPOCH) // timedelta(milliseconds=1)


def _pass_on(error: BaseException) -> None:
    """Raise again what is no failure of delta-rs. Its panics are no `Exception`, so all are caught."""
    if isinstance(error, (*_INTERRUPTS, HoldfastError, MemoryError)):
        raise error


def _brief(error: BaseException) -> str:
    """The first lines of a Rust error without colours and stack frames, cut to a sentence's length."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    text = re.split(r"\n\s*\d+: ", text)[0]
    text = " ".join(text.replace("↳", " ").split()).rstrip(".")
    return text if len(text) <= 200 else f"{text[:197]}..."


@contextmanager
def _reading(root: Path) -> Iterator[None]:
    """Turn what delta-rs raises on a damaged log into a DamagedFileError that names the file."""
    try:
        yield
    except BaseException as error:
        _pass_on(error)
        _raise_damaged(root, error)


def _raise_damaged(root: Path, error: BaseException) -> NoReturn:
    name, wrong = _find_damage(root / FOLDER / "_delta_log")
    if name.endswith(".checkpoint.parquet"):
        raise DamagedFileError(
            f"the file '{FOLDER}/_delta_log/{name}' of the workspace {str(root)!r} {wrong}. It only repeats "
            f"the log entries before it: move it and '{FOLDER}/_delta_log/_last_checkpoint' away, then open "
            "the workspace again."
        ) from None
    if name:
        raise DamagedFileError(
            f"the file '{FOLDER}/_delta_log/{name}' of the workspace {str(root)!r} {wrong}. {_REPAIR}"
        ) from None
    raise DamagedFileError(
        f"the ledger of the workspace {str(root)!r} cannot be read: {_brief(error)}. {_REPAIR}"
    ) from None


def _find_damage(log: Path) -> tuple[str, str]:
    """The first log file that is not what it should be, and what is wrong with it."""
    try:
        names = sorted(os.listdir(log))
    except OSError:
        return "", ""
    for name in names:
        if name.endswith(".checkpoint.parquet"):
            try:
                pq.read_metadata(log / name)
            except (pa.ArrowException, OSError, ValueError) as error:
                return name, f"is damaged: {_brief(error)}"
    entries = [name for name in names if re.fullmatch(r"\d{20}\.json", name)]
    for name in entries:
        try:
            for line in (log / name).read_text(encoding="utf-8").splitlines():
                if line and not isinstance(json.loads(line), dict):
                    raise ValueError("a line is no JSON object")
        except (OSError, ValueError) as error:
            return name, f"is damaged: {_brief(error)}"
    for expected, name in enumerate(entries):
        if int(name[:20]) != expected:
            return f"{expected:020d}.json", "is missing"
    checkpoint = log / "_last_checkpoint"
    try:
        version = int(json.loads(checkpoint.read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""
    name = f"{version:020d}.checkpoint.parquet"
    return (name, "is missing") if name not in names else ("", "")
