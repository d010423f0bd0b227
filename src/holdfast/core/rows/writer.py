"""What changing a workspace takes: an engine, staged files, the commit.

Everything before the commit only writes files that nothing names; the commit is one ledger append, whatever
the number of tables. So a crash at any point loses nothing committed, and a rejected batch leaves nothing
behind but litter.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core.rows.table_state import TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.store import format as marker
from holdfast.core.store import leases, litter
from holdfast.core.store.bucket import STAGING, Bucket
from holdfast.core.store.files import (
    STAMPS,
    FileRef,
    check_file,
    missing,
    needs_stamp,
    stamp_files,
    verify_file,
)
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.store.root import Root, remove_folder
from holdfast.errors import (
    NOTHING_APPLIED,
    AbsentRowError,
    ConflictError,
    DamagedFileError,
    HoldfastError,
    WorkspaceError,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.core.engine.engine import Engine, Mode
    from holdfast.core.engine.job_progress import Progress
    from holdfast.core.rows.relation import Relation

ProgressHook = Callable[[str, int, int], None]
# Writers of other tables do not disturb this one: its commit is tried again on top of theirs.
COMMIT_ATTEMPTS = 20
# Objects that are verified at a time: of each some pieces are in memory.
_VERIFIED_AT_ONCE = 4


@dataclass(frozen=True)
class Context:
    """Where a step works: the workspace, a folder for its temporary files, the engine."""

    root: Root
    staging: str
    engine: Engine
    progress: Callable[[str], Progress | None]

    def relation(self, state: TableState, folder: str, stage: str) -> Relation:
        from holdfast.core.rows.relation import Relation

        return Relation(
            self.root,
            folder,
            self.staging,
            state.schema,
            state.nulls,
            tuple(state.locator),
            state.segments,
            self.engine,
            self.progress(stage),
            state.compressed,
        )


class Writer:
    """A workspace that is open for changes. Its ledger and its tables are read through it, too."""

    def __init__(
        self,
        root: Root,
        *,
        spark: SparkSession | None = None,
        engine: Mode = "auto",
        create: bool = True,
        progress: ProgressHook | None = None,
    ) -> None:
        self.root = root
        if create and not marker.has_marker(root):
            marker.create_marker(root)
        elif isinstance(root, Bucket):
            root.probe()  # as it was when the workspace was made, elsewhere perhaps
        marker.check_marker(root)
        # Not `open`: a creator that was killed behind the marker has left a workspace without a ledger.
        self.ledger = Ledger.create(root)
        self.tables = Tables(root, self.ledger, lambda: self.engine)
        self._spark, self._mode, self._hook = spark, engine, progress
        self._engine: Engine | None = None

    def close(self) -> None:
        """Let go of the engine. A Spark session that holdfast started lives until the process ends."""
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            from holdfast.core.engine.engine import Engine

            starting = self.progress("starting Spark")
            on_start = None if starting is None else lambda: starting(0, 0)
            self._engine = Engine(self._spark, self._mode, on_start, self.root)
        return self._engine

    def progress(self, stage: str) -> Progress | None:
        """Where a stage of the work tells how far it is; None if nobody listens."""
        hook = self._hook
        return None if hook is None else lambda done, total: hook(stage, done, total)

    @contextlib.contextmanager
    def context(self, base: int, *, commit: bool = True) -> Iterator[Context]:
        """What a step on top of a version works with; its staging folder is removed after it.

        A step that commits nothing needs no right to write: it is staged elsewhere then.
        """
        with contextlib.ExitStack() as job:
            root = self.root
            if not commit and isinstance(root, Path) and not _writable(root):
                root = job.enter_context(_shadow(root))
            staging = job.enter_context(self.staging(base, root, leased=commit))
            try:
                yield Context(root, staging, self.engine, self.progress)
            except (LookupError, ValueError, AbsentRowError):
                # Perhaps of a file that was opened by its stamp and is not what it was.
                self._check_states(base)
                raise

    def _check_states(self, base: int) -> None:
        """Raise if a file of the states at a version is not what was written; once in a process.

        Not of a store, where a copy was hashed when it came: nothing is to be fetched for this.
        """
        if isinstance(self.root, Bucket):
            return
        for table, version in self.ledger.heads(base).items():
            for ref in litter.named_files(self.ledger.commit_row(version, table).state):
                check_file(self.root, ref, deep=True)

    @contextlib.contextmanager
    def staging(self, base: int, root: Root | None = None, *, leased: bool = True) -> Iterator[str]:
        """A folder for the files of one job on top of a version, removed after it; while it is there, nobody
        takes the job's files for litter. On a store a job that commits nothing needs no lease."""
        root = self.root if root is None else root
        name = f"{STAGING}/{secrets.token_hex(6)}"
        with contextlib.ExitStack() as lease:
            try:
                if isinstance(root, Path):
                    (root / name).mkdir(parents=True)
                else:
                    lease.enter_context(root.job())
                if leased or isinstance(root, Path):
                    lease.enter_context(leases.held(root, name, base))
            except OSError as error:
                remove_folder(root, name)
                raise WorkspaceError(
                    f"cannot write to the workspace {str(root)!r}: {error.strerror}. {NOTHING_APPLIED} "
                    "Check the disk's space and your rights, then run it again."
                ) from error
            try:
                yield name
            finally:
                remove_folder(root, name)

    def append(self, base: int, commits: Sequence[CommitRow], changes: Sequence[ChangeRow] = ()) -> int:
        """Append to the ledger; on top of commits to other tables if there were any meanwhile."""
        names = [c.table for c in commits]
        heads = self.ledger.heads(base)
        base_heads = [heads.get(name) for name in names]
        files = {ref.name: ref for commit in commits for ref in litter.named_files(commit.state)}
        for _ in range(COMMIT_ATTEMPTS):
            self._check_named(files, {name: heads[name] for name in names if name in heads})
            try:
                version = self.ledger.append(base, commits, list(changes))
            except ConflictError:
                newest = self.ledger.version
                heads = self.ledger.heads(newest)
                if newest == base or [heads.get(name) for name in names] != base_heads:
                    raise
                base = newest
            else:
                with contextlib.suppress(HoldfastError, OSError):  # the commit stands
                    self._stamp(files, {name: heads[name] for name in names if name in heads})
                return version
        raise ConflictError(
            f"other writers kept the workspace busy for {COMMIT_ATTEMPTS} attempts. {NOTHING_APPLIED} "
            "Run it again."
        )

    def _check_named(self, files: Mapping[str, FileRef], heads: Mapping[str, int]) -> None:
        """Raise if a file that a commit is to name is not there, with its length.

        In a folder all of them are looked at: a `stat` for each. On a store only those that the tables'
        newest states do not name, side by side: a request for each that has no copy here. The others were
        looked at when they were named, and stay while they are a newest state's (`litter.py`); to ask for
        each file of a large table at every commit would take longer than the batch.
        """
        refs = list(files.values())
        if isinstance(self.root, Bucket):
            older = self._named_at(heads)
            refs = [ref for name, ref in files.items() if name not in older]
        for ref in missing(self.root, refs):
            raise DamagedFileError(
                f"the file {ref.name!r} of the workspace {str(self.root)!r}, which the new version would "
                f"name, is gone or cut short. {NOTHING_APPLIED} Run it again; if the file is an older "
                "one, 'holdfast verify' says so, and it has to come from a backup."
            )

    def _named_at(self, heads: Mapping[str, int]) -> set[str]:
        """The files that tables name at versions."""
        rows = (self.ledger.commit_row(version, table) for table, version in heads.items())
        return {ref.name for row in rows for ref in litter.named_files(row.state)}

    def _stamp(self, files: Mapping[str, FileRef], heads: Mapping[str, int]) -> None:
        """Stamp the large files that a commit has just named first, and those that were hashed for it."""
        large = [ref for ref in files.values() if needs_stamp(self.root, ref)]
        if large:
            stamp_files(self.root, large, files.keys() - self._named_at(heads))

    def verify(self) -> int:
        """Check every file that the workspace needs against its checksum; how many there are.

        Needed are the files of the newest states, the covers of all versions (for time travel) and
        the ledger's. The first one that is missing or altered is named in a DamagedFileError. Of a store
        some objects are read at the same time.
        """
        n_ledger = self.ledger.verify()
        heads = self.ledger.heads()
        files: dict[str, FileRef] = {}
        for commit in self.ledger.states():
            newest = heads.get(commit.table) == commit.version
            refs = litter.named_files(commit.state)
            files |= {ref.name: ref for ref in refs if newest or litter.is_cover(ref)}
        check = functools.partial(verify_file, self.root)
        if isinstance(self.root, Bucket):
            self.root.side_by_side(check, [*files.values()], at_once=_VERIFIED_AT_ONCE)
        else:
            for ref in files.values():
                check(ref)
        stamp_files(self.root, files.values())
        return n_ledger + len(files)

    def tidy(self, *, grace_s: float = litter.GRACE_S) -> int:
        """Remove files that nothing needs any more; how many. See `core/store/litter.py` for the rule."""
        return litter.remove_litter(self.root, self.ledger, grace_s=grace_s)

    def tidy_when_due(self) -> None:
        """Remove litter, at most once an hour and workspace; never fails the commit before it."""
        with contextlib.suppress(HoldfastError, OSError):
            if litter.due(self.root):
                litter.remove_litter(self.root, self.ledger)


def _writable(root: Path) -> bool:
    """Whether jobs can be staged in a workspace."""
    folder = root / STAGING
    return os.access(folder if folder.is_dir() else root, os.W_OK)


@contextlib.contextmanager
def _shadow(root: Path) -> Iterator[Path]:
    """A folder that looks like the workspace, with a staging folder of its own, for a job that only reads.

    It is made of links, so nothing is copied. It lies where temporary files do (TMPDIR).
    """
    try:
        shadow = Path(tempfile.mkdtemp(prefix="holdfast-check-"))
    except OSError as error:
        raise WorkspaceError(
            f"the workspace {str(root)!r} is read-only, and no temporary folder can be made: "
            f"{error.strerror}. Set TMPDIR to a folder with room."
        ) from error
    try:
        (shadow / STAGING).mkdir()
        for path in root.iterdir():
            if path.name != STAGING:
                (shadow / path.name).symlink_to(path)
        (shadow / STAMPS).symlink_to(root / STAMPS)
        yield shadow
    finally:
        shutil.rmtree(shadow, ignore_errors=True)
