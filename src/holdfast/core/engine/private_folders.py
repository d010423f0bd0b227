"""Folders that only this user can reach: a cache that stays, and this process's scratch folder.

Whatever Spark, Java and PySpark put into the temporary folder lies in the scratch folder (`scratch`); if we
are killed, the next process that starts Spark removes it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path


def cache_folder() -> Path:
    """Where wrapper and class archive lie: `$XDG_CACHE_HOME/holdfast`, else `~/.cache/holdfast`.

    The JVM runs what it finds there, so the folder must be ours and closed to others; if it cannot
    be (no home, read-only disk), a private folder that lives as long as this process takes its place.
    """
    with contextlib.suppress(OSError, RuntimeError):
        base = os.environ.get("XDG_CACHE_HOME")
        folder = (Path(base) if base else Path.home() / ".cache") / "holdfast"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid == os.getuid() and os.access(folder, os.W_OK):
            if status.st_mode & 0o022:
                folder.chmod(0o700)
            return folder
    return scratch_folder() / "cache"


@dataclass(frozen=True)
class Scratch:
    """This process's folder for Spark's spills, sockets, warehouse and settings."""

    folder: Path
    lock: int
    """The descriptor that holds the folder's lock; the JVM inherits it."""


_scratch: Scratch | None = None
_SCRATCH_PREFIX = "holdfast-spark-"
_SCRATCH_NAME = re.compile(_SCRATCH_PREFIX + r"\w{8}")  # as `mkdtemp` makes them
_LOCK = "in-use.lock"


def scratch_folder() -> Path:
    """The folder for all that lives as long as this process."""
    return scratch().folder


def scratch() -> Scratch:
    """The scratch folder, made now if there is none; removed at exit, or by a later process.

    A lock says that it is in use. The kernel lets go of it when the last process that holds it ends,
    however it ends: no process number is looked at, which might be another's by now. First, folders of
    earlier processes go that were killed.
    """
    global _scratch
    if _scratch is None:
        parent = Path(tempfile.gettempdir())
        _remove_abandoned(parent)
        while _scratch is None:
            _scratch = _locked_folder(Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=parent)))
        (_scratch.folder / "cache").mkdir(mode=0o700)
        atexit.register(_remove_scratch, _scratch.folder, os.getpid())
    return _scratch


def _locked_folder(folder: Path) -> Scratch | None:
    """The new folder, locked; None if another process took it for abandoned before it was."""
    try:
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(folder / _LOCK)):
            return Scratch(folder, lock)
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:  # a file system without locks: nobody will take the folder for abandoned
        (folder / _LOCK).unlink()
        return Scratch(folder, lock)
    os.close(lock)
    return None


def _remove_abandoned(parent: Path) -> None:
    """Remove the scratch folders of this user that no process has locked."""
    for folder in parent.glob(f"{_SCRATCH_PREFIX}*"):
        with contextlib.suppress(OSError):  # in use (BlockingIOError), or going, or not ours to remove
            status = folder.lstat()
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
            if not ours or _SCRATCH_NAME.fullmatch(folder.name) is None:
                continue
            try:
                lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                folder.rmdir()  # only if it is empty: killed before there was a lock, or about to make one
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_tree(folder)
            finally:
                os.close(lock)


def _remove_scratch(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child inherits the handler, but not the folder
        _remove_tree(folder)


def _remove_tree(folder: Path) -> None:
    """Remove a scratch folder, its lock last: without it nobody would go on where we were killed."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            with contextlib.suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def short_digest(text: str) -> str:
    """Twelve hexadecimal digits that tell texts apart, for names in the cache."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
