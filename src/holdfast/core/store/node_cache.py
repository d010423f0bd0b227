"""Copies of immutable files on this machine's disk, for workspaces that lie on an object store.

A copy is named by what it is a copy of, is checked against its checksum when it arrives, and appears whole.
So what is there can be mapped without a look at its content, by every process of the machine: the drivers
and Spark's Python workers alike. Two that want one file at once wait for each other, and one of them gets it.

The cache is no state. It may vanish at any time, wholly or in part, also between the look for a copy and its
opening: then the file is fetched again. It is bounded: when it has grown over its limit, the copies that were
looked for longest ago go. What is mapped stays readable until it is let go.

HOLDFAST_CACHE names its folder, HOLDFAST_CACHE_BYTES its limit. Else it lies on the disks that Spark gives to
executors, else where this user's caches do; and takes up to half of what would be free there without it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.errors import UsageError, WorkspaceError, shorten

# Where Spark tells its executors to keep temporary files: standalone and Kubernetes, YARN.
_SPARK_FOLDERS = ("SPARK_LOCAL_DIRS", "SPARK_EXECUTOR_DIRS", "LOCAL_DIRS")
# What was begun by a process that has died is removed after so long.
_ABANDONED_S = 86_400.0
# A look at the whole cache for what may go: after so much of its limit has been added by this process.
_LOOK_AFTER = 1 / 16
_GOES_DOWN_TO = 0.8
_DRAFTS = "under-way"


class NodeCache:
    """The copies in a folder."""

    def __init__(self, folder: Path, limit: int | None) -> None:
        self.folder, self._given = folder, limit
        self._until_look = 0.0  # bytes; a look at the first arrival: other processes may have filled it
        (folder / _DRAFTS).mkdir(mode=0o700, parents=True, exist_ok=True)

    def draft(self) -> Path:
        """A path for a file that is under way; nobody else has it."""
        return self.folder / _DRAFTS / secrets.token_hex(12)

    def look(self, key: str, length: int) -> Path | None:
        """The copy of a key, if there is one; it counts as used now."""
        path = self._path(key)
        try:
            if os.stat(path).st_size != length:
                path.unlink(missing_ok=True)
                return None
            os.utime(path)
        except OSError:
            return None
        return path

    def fetched(self, key: str, length: int, fetch: Callable[[Path], None]) -> Path:
        """The copy of a key; `fetch` writes it to a path, and checks it, if there is none."""
        path = self.look(key, length)
        if path is not None:
            return path
        with self._locked(key):
            path = self.look(key, length)
            if path is not None:
                return path
            draft = self.draft()
            try:
                fetch(draft)
                return self.adopted(key, draft)
            finally:
                draft.unlink(missing_ok=True)

    def adopted(self, key: str, draft: Path) -> Path:
        """A draft becomes the copy of a key."""
        path = self._path(key)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        length = draft.stat().st_size
        draft.replace(path)
        self._until_look -= length
        if self._until_look <= 0:
            self._until_look = self._shrink(path) * _LOOK_AFTER
        return path

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()[:40]
        return self.folder / name[:2] / name[2:]

    @contextlib.contextmanager
    def _locked(self, key: str) -> Iterator[None]:
        """Hold the lock of a key: one of 256, so that there is nothing to remove."""
        name = hashlib.sha256(key.encode()).hexdigest()[:2]
        descriptor = os.open(self.folder / f"{name}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            with contextlib.suppress(OSError):  # no locks here: then two may fetch the same
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def limit(self, n_bytes: int | None = None) -> int:
        """How many bytes it may take, if its copies take so many; else they are counted."""
        if self._given is not None:
            return self._given
        if n_bytes is None:
            n_bytes = 0
            for entry in _files(self.folder):
                with contextlib.suppress(OSError):  # another process removes
                    n_bytes += entry.stat().st_size
        # What is here counts as free: else each process would leave less of it.
        return (shutil.disk_usage(self.folder).free + n_bytes) // 2

    def _shrink(self, newest: Path) -> int:
        """Remove the copies that were used longest ago while there are too many, and what was abandoned.

        Answers with the limit.
        """
        copies, now = [], time.time()
        for entry in _files(self.folder):
            with contextlib.suppress(OSError):  # another process removes, too
                status = entry.stat()
                if Path(entry.path).parent.name == _DRAFTS:
                    if now - status.st_mtime > _ABANDONED_S:
                        os.unlink(entry.path)
                elif not entry.name.endswith(".lock"):
                    copies.append((status.st_mtime_ns, status.st_size, entry.path))
        total = sum(size for _, size, _ in copies)
        limit = self.limit(total)
        if total <= limit:
            return limit
        for _, size, path in sorted(copies):
            if total <= limit * _GOES_DOWN_TO:
                break
            if path != str(newest):
                with contextlib.suppress(OSError):
                    os.unlink(path)
                total -= size
        return limit


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            else:
                yield entry


def node_cache() -> NodeCache:
    """The cache of this machine and user, by the environment of this process."""
    limit = os.environ.get("HOLDFAST_CACHE_BYTES")
    for base, chosen in _candidates():
        folder = base if chosen else base / f"holdfast-files-{os.geteuid()}"
        try:
            _make_private(folder)
            return NodeCache(folder, _limit(limit))
        except OSError as error:
            if chosen:
                raise WorkspaceError(
                    f"the folder {str(folder)!r}, which HOLDFAST_CACHE names, cannot be used: "
                    f"{error.strerror or error}. Name one that is yours, or none."
                ) from None
    folder = Path(tempfile.mkdtemp(prefix="holdfast-files-"))
    return NodeCache(folder, _limit(limit))


def _candidates() -> Iterator[tuple[Path, bool]]:
    """Folders in order of preference, and whether the user has chosen one."""
    chosen = os.environ.get("HOLDFAST_CACHE")
    if chosen:
        yield Path(chosen).absolute(), True
    for name in _SPARK_FOLDERS:
        for base in os.environ.get(name, "").split(","):
            if os.path.isabs(base) and os.path.isdir(base):
                yield Path(base), False
    base = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")
    if not os.path.isabs(base) and os.path.isabs(home) and os.path.isdir(home):
        base = os.path.join(home, ".cache")
    if os.path.isabs(base):
        yield Path(base), False
    yield Path(tempfile.gettempdir()), False


def _make_private(folder: Path) -> None:
    """Make a folder that only this user can fill: what lies in it is taken for what was written."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        raise PermissionError(0, "it belongs to somebody else")
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(0, "others can write to it")


def _limit(given: str | None) -> int | None:
    if given is None:
        return None
    if not given.isdecimal() or not int(given):
        raise UsageError(f"HOLDFAST_CACHE_BYTES is {shorten(given)}; expected a number of bytes.")
    return int(given)
