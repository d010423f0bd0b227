"""The files of the ledger: a Delta table, the snapshot of what is live in it, and the swap that adds to it.

Conflicts. Delta lets two appends pass each other. Here they must not: an append is made with
`max_commit_retries=0` from the very snapshot in which the newest version was seen to be the base
version. delta-rs then either creates the one log entry that follows the snapshot (a hard link
that fails if the entry exists) or fails: compare-and-swap.
With delta-rs's default of 15 retries an append from a stale snapshot would silently succeed, and
two creators would both "create", the second replacing the first one's metadata.

Durability. delta-rs syncs nothing; the log entry is synced here before `swap` returns. A power
cut in the few milliseconds before can leave an empty last log entry: Delta reads it as an entry
without actions, so the commit, which nobody was told of, is gone and the next one follows. A copy of
the newest entry (`delta_log.py`) tells such an entry from one that was lost later.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
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
from deltalake.transaction import AddAction

from holdfast.core.store.bucket import Bucket
from holdfast.core.store.delta_log import (
    FOLDER,
    INTERRUPTS,
    REPAIR,
    brief,
    check_newest,
    entry_name,
    entry_path,
    has_entry,
    has_log,
    keep_newest,
    location,
    names_file,
    opened_table,
    options_of,
    pass_on,
    patiently,
    reading,
    refuse_forked,
    refuse_odd_path,
)
from holdfast.core.store.files import (
    FileRef,
    check_file,
    opened,
    sync_file,
    sync_folder,
    unique_name,
    verify_file,
)
from holdfast.core.store.ledger_rows import (
    CODED_COLUMNS,
    EPOCH,
    LAKE,
    SCHEMA,
    SHARED,
    add_columns,
    row_groups,
    rows_in,
)
from holdfast.core.store.root import Root, content_of
from holdfast.errors import DamagedFileError, HoldfastError, WorkspaceError

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

# How long a look at a store's log counts for those who only read.
MOMENT_S = 0.1
MAX_NAMES = 1 << 10  # files of which is known which tables they have commits to

_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


@dataclass(frozen=True, slots=True)
class LiveFile:
    """One live Parquet file and the versions it spans."""

    path: str  # relative to the ledger's folder
    length: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was live at one version of the Delta table."""

    delta_version: int
    files: tuple[LiveFile, ...]  # by first version

    @property
    def version(self) -> int:
        return max((file.last for file in self.files), default=0)


class LedgerFiles:
    """The Delta table of a workspace's ledger; `snapshot` is the newest that was looked at."""

    def __init__(self, root: Root, table: Any) -> None:
        self.root = root
        self.lock = threading.RLock()
        self._table = table
        self._looked = 0.0
        self._tables: dict[str, frozenset[str]] = {}  # that have commits in a file
        self.snapshot = self._take_snapshot()
        if self.check_newest() < self.snapshot.delta_version:
            keep_newest(root, self.snapshot.delta_version)

    @classmethod
    def create(cls, root: Root) -> LedgerFiles:
        """The files of a workspace's ledger, made if there are none; safe with several creators at once."""
        refuse_odd_path(root)
        refuse_forked(root)
        if not has_log(root):
            if _has_files(root):
                raise DamagedFileError(
                    f"the workspace {str(root)!r} has tables but no ledger: the folder {FOLDER!r} is gone "
                    f"or empty. Nothing was written. {REPAIR}"
                )
            try:
                if isinstance(root, Path):
                    (root / FOLDER).mkdir(parents=True, exist_ok=True)
                patiently(root, lambda: _create_table(root))
                if isinstance(root, Path):
                    entry = entry_path(root / FOLDER, 0)
                    sync_file(entry)
                    for made in (entry.parent, root / FOLDER, root):
                        sync_folder(made)
            except BaseException as error:
                pass_on(error)
                # The usual reason is another creator; then its ledger is there to be opened.
                if not has_log(root):
                    raise WorkspaceError(
                        f"cannot create the ledger of the workspace {str(root)!r}: {brief(error)}. "
                        "Check the disk's space and your rights, then run it again."
                    ) from None
        return cls._opened(root)

    @classmethod
    def open(cls, root: Root) -> LedgerFiles:
        """The files of an existing workspace's ledger."""
        refuse_odd_path(root)
        refuse_forked(root)
        if not has_log(root):
            raise DamagedFileError(
                f"the workspace {str(root)!r} has no ledger: {FOLDER}/_delta_log is missing or empty. "
                f"{REPAIR}"
            )
        return cls._opened(root)

    @classmethod
    def _opened(cls, root: Root) -> LedgerFiles:
        """The same of one that is known to be there."""
        with reading(root):
            table = opened_table(root)
        return cls(root, table)

    # -- reading ------------------------------------------------------------------------------

    def refresh(self, *, at_once: bool = True) -> Snapshot:
        """The newest snapshot. One `stat`, or request, when nothing is new.

        Who only reads need not look `at_once`: on a store what was seen a moment ago will do.
        """
        refuse_forked(self.root)
        with self.lock:
            if isinstance(self.root, Bucket):
                if not at_once and time.monotonic() - self._looked < MOMENT_S:
                    return self.snapshot
                self._looked = time.monotonic()
            seen = self.snapshot.delta_version
            # The table may be ahead of the snapshot, where taking one failed half-way.
            if self._table.version() != seen or has_entry(self.root, seen + 1):
                with reading(self.root):
                    patiently(self.root, self._table.update_incremental)
                self.snapshot = self._take_snapshot()
            elif isinstance(self.root, Path) and not os.path.exists(self.root / FOLDER):
                raise DamagedFileError(
                    f"the ledger of the workspace {str(self.root)!r} is gone: the folder {FOLDER!r} is "
                    f"missing. {REPAIR}"
                )
            return self.snapshot

    def check_newest(self) -> int:
        """Raise if the newest log entry is gone; else which one has a copy (`delta_log.py`)."""
        return check_newest(self.root, self.snapshot.delta_version)

    def _take_snapshot(self) -> Snapshot:
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
                with self.open_file(path, length) as parquet:
                    versions = parquet.read(columns=["version"]).column(0).to_pylist()
                first, last = min(versions, default=0), max(versions, default=0)
            files.append(LiveFile(path, length, first, last))
        files.sort(key=lambda file: (file.first, file.last))
        covered = 0
        for file in files:
            if file.first > covered + 1:
                raise self.gap(covered + 1)
            covered = max(covered, file.last)
        self._check_last_entry(self._table.version(), covered)
        return Snapshot(self._table.version(), tuple(files))

    def _check_last_entry(self, delta_version: int, version: int) -> None:
        """Raise if the newest log entry is not the one that was written, as far as it tells of itself.

        A damaged entry before it shows as a gap in the versions. The newest one would only make the
        newest version disappear: delta-rs passes over actions that it does not know. An empty entry
        is what a power cut leaves of a commit that nobody was told of. A store has an entry whole, or not.
        """
        if isinstance(self.root, Bucket):
            return
        entry = entry_name(delta_version)
        try:
            text = content_of(self.root, entry).decode("utf-8")
            lines = [json.loads(line) for line in text.splitlines() if line]
            actions = {key: value for line in lines for key, value in line.items()}
            commit = actions.get("commitInfo", {})
            wrong = (
                not _ACTIONS.issuperset(actions)
                or commit.get("holdfastEntry", delta_version) != delta_version
                or commit.get("holdfastVersion", version) != version
            )
        except FileNotFoundError:  # a foreign tool may have cleaned up behind its checkpoint
            return
        except (OSError, ValueError, AttributeError):
            wrong = True
        if wrong:
            raise DamagedFileError(
                f"the file {entry!r} of the workspace {str(self.root)!r} is "
                f"damaged: it is not what was written for version {version} or later. {REPAIR}"
            )

    def gap(self, version: int, table: str | None = None) -> DamagedFileError:
        """What to raise where a version is lost, perhaps only that of a table."""
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
    def open_file(
        self, path: str, length: int, *, fresh: bool = False, coded: Sequence[str] = ()
    ) -> Iterator[Any]:
        """A Parquet file, with whatever is wrong with it turned into a DamagedFileError.

        Columns that are `coded` are read as dictionaries.

        Page checksums leave headers and footer out, so the name carries one of the whole file; it
        is checked once per process, or now if `fresh`. Files merged by another tool have none.
        """
        name = f"{FOLDER}/{path}"
        try:
            with pq.ParquetFile(
                self._checked(name, length, fresh),
                page_checksum_verification=True,
                read_dictionary=list(coded) or None,
            ) as parquet:
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

    def _checked(self, name: str, length: int, fresh: bool) -> Any:
        """What Arrow can read a live file from."""
        root = self.root
        named = _CHECKSUM.fullmatch(name.removeprefix(f"{FOLDER}/"))
        if named is not None:
            ref = FileRef(name, length, named[1])
            if isinstance(root, Bucket):
                if fresh:
                    verify_file(root, ref)
                return opened(root, ref, lambda path: pa.OSFile(str(path)))
            return check_file(root, ref, deep=True, fresh=fresh)
        content = content_of(root, name)
        if len(content) != length:
            raise DamagedFileError(
                f"the file {name!r} of the workspace {str(root)!r} has {len(content)} bytes; "
                f"{length} were written. {REPAIR}"
            )
        return pa.BufferReader(content)

    def block(self, file: LiveFile) -> pa.Table:
        """All rows of a file, read afresh."""
        with self.open_file(file.path, file.length, fresh=True) as parquet:
            return parquet.read(use_threads=False).select(SCHEMA.names)

    def columns(self, file: LiveFile, columns: Sequence[str], first: int, last: int) -> pa.Table:
        """Some columns of all rows that may be of a range of versions; names are dictionaries.

        No row becomes a Python object. Cost: the row groups of these versions, of these columns.
        """
        with self.open_file(file.path, file.length, coded=CODED_COLUMNS) as parquet:
            return parquet.read_row_groups(row_groups(parquet, first, last), columns=list(columns))

    def rows(
        self,
        file: LiveFile,
        entry: str,
        columns: Iterable[str],
        first: int,
        last: int,
        table: str | None = None,
        kind: str | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of one kind of entry in a range of versions.

        Cost: see `rows_in`; nothing where the file is known to have no commit to the table.
        """
        commits = entry == "commit"
        if commits and table is not None and table not in self._tables.get(file.path, {table}):
            return []
        with self.open_file(file.path, file.length) as parquet:
            rows, tables = rows_in(parquet, entry, columns, first, last, table, kind)
        if commits and first <= file.first and file.last <= last:
            if len(self._tables) >= MAX_NAMES:
                self._tables.clear()
            self._tables[file.path] = tables
        return rows

    # -- writing ------------------------------------------------------------------------------

    def swap(self, snapshot: Snapshot, actions: list[Any], name: str, metadata: dict[str, Any]) -> bool:
        """Write the log entry that follows the snapshot; False if another writer wrote it first.

        The snapshot must be the very one that the caller's decision was made on: delta-rs swaps
        on what the table object has seen, and any refresh in between moves that on.
        On True the entry is on disk and has been read. `name` is the file that it adds.
        """
        if self._table.version() != snapshot.delta_version:
            return False
        path, next_entry = name.removeprefix(f"{FOLDER}/"), snapshot.delta_version + 1
        if isinstance(self.root, Bucket):
            self.root.publish(temporary=False)

        def commit() -> None:
            self._table.create_write_transaction(
                actions,
                mode="append",
                schema=DeltaSchema.from_arrow(SCHEMA),
                commit_properties=CommitProperties(
                    custom_metadata={**metadata, "holdfastEntry": next_entry},
                    max_commit_retries=0,
                ),
                # A checkpoint that fails here would look like a commit that failed.
                post_commithook_properties=_NO_HOOKS,
            )

        try:
            patiently(self.root, commit)
        except BaseException as error:
            # Ask the log, not the error: a failure after the link is no failed commit, and taking
            # it for one would delete a live file.
            if not self._landed(next_entry, path):
                if isinstance(error, CommitFailedError):
                    return False
                raise
            if isinstance(error, INTERRUPTS):
                raise
        if isinstance(self.root, Path):
            self._force_to_disk(self.root / FOLDER, next_entry, name)
        keep_newest(self.root, next_entry)
        self.refresh()
        return True

    def _landed(self, delta_version: int, path: str) -> bool:
        """Whether a log entry adds a file."""
        try:
            return names_file(self.root, delta_version, path)
        except WorkspaceError as error:
            raise WorkspaceError(
                f"whether the file {path!r} was committed to the workspace {str(self.root)!r} is not known: "
                f"{error} Look at 'holdfast log' before you run it again, or give the batch an id "
                "(--batch-id): then to run it again does no harm."
            ) from None

    def _force_to_disk(self, folder: Path, delta_version: int, name: str) -> None:
        """What delta-rs does not do: the log entry is on disk."""
        entry = entry_path(folder, delta_version)
        try:
            sync_file(entry)
            sync_folder(entry.parent)
        except OSError as error:
            raise WorkspaceError(
                f"the file {name!r} of the workspace {str(self.root)!r} is committed, but could not be "
                f"forced to disk: {brief(error)}. Check the disk, then look at 'holdfast log'."
            ) from error

    def checkpoint(self) -> None:
        """Write a Delta checkpoint, so that an open reads fewer log entries."""
        self._table.create_checkpoint()


def _create_table(root: Root) -> None:
    """Make the Delta table, unless there is one: an answer that was cut has made it, too."""
    if isinstance(root, Bucket) and has_log(root):
        return
    DeltaTable.create(
        location(root),
        schema=DeltaSchema.from_arrow(SCHEMA),
        mode="error",
        name="holdfast ledger",
        configuration=_CONFIGURATION,
        commit_properties=CommitProperties(max_commit_retries=0),
        post_commithook_properties=_NO_HOOKS,
        storage_options=options_of(root),
    )


def _has_files(root: Root) -> bool:
    """Whether there are files of tables."""
    if isinstance(root, Bucket):
        return any(root.has(folder) for folder in ("tables", "values"))
    return any(path.is_dir() and any(path.iterdir()) for path in (root / "tables", root / "values"))


def add_action(ref: FileRef, first: int, last: int, n_rows: int, *, moves_rows: bool) -> Any:
    """The action that makes a file live; `moves_rows`: they are those of files that go."""
    stats = {
        "numRecords": n_rows,
        "minValues": {"version": first},
        "maxValues": {"version": last},
        "nullCount": {"version": 0},
    }
    path = ref.name.removeprefix(f"{FOLDER}/")
    return AddAction(path, ref.length, {}, now_ms(), not moves_rows, json.dumps(stats))


def content_name(stem: str, content: Any) -> str:
    """A new name that carries the content's checksum."""
    return unique_name(FOLDER, stem, f"_{xxhash.xxh3_64_hexdigest(memoryview(content))}.parquet")


def now_ms() -> int:
    """Milliseconds since 1970, as Delta dates its actions."""
    return (datetime.now(UTC) - EPOCH) // timedelta(milliseconds=1)
