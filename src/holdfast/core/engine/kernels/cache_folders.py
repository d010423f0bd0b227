"""The folders that compiled kernels are read from and written to.

In this order, the first that can be written gets what is compiled:

1. NUMBA_CACHE_DIR, if it is set: whoever names a folder means that one;
2. `__pycache__` beside the sources;
3. `$XDG_CACHE_HOME/holdfast`, or `~/.cache/holdfast`;
4. `holdfast-UID` in the temporary folder.

Beside the sources is read from even where only an administrator writes: what was compiled there with
`python -m holdfast.kernels` serves all users of an installation. Last, `compiled` beside the sources is what
a wheel brought along; nothing is ever written there. If none can be written, kernels that did not come along
are compiled in every process, and a line says so, once.

Machine code is run as it is found, so 3. and 4. must be folders that nobody else can have filled: ours, no
link, closed to others, in folders that only we and the administrator can rename. Nothing here imports
Numba: those who show progress ask here, and commands that only read must start fast.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

KERNELS = Path(os.path.realpath(__file__)).parent
SHIPPED = KERNELS / "compiled"
SUFFIX = ".nbc"
BESIDE = "HOLDFAST_COMPILING"  # set where modules are compiled beside each other already


@dataclass(frozen=True, slots=True)
class Places:
    """Where machine code is: folders to look in, in this order, and the one for what is compiled."""

    readable: tuple[Path, ...]
    writable: Path | None


@functools.cache
def places() -> Places:
    """The folders of this process; looked for once, at the cost of a file that is made and removed.

    Processes with the same environment, user and installation find the same: Spark's workers too.
    """
    readable: list[Path] = []
    for folder, private in _candidates():
        if private and not _made_private(folder):
            continue
        if _can_be_written(folder):
            return Places((folder, *readable, SHIPPED), folder)
        readable.append(folder)
    return Places((*readable, SHIPPED), None)


def _candidates() -> Iterator[tuple[Path, bool]]:
    """Folders in order of preference, and whether each must be the user's alone."""
    # One installation, one folder: by its real path, so that a worker that imports it by a link finds it too.
    name = f"kernels-{hashlib.sha256(os.fsencode(KERNELS)).hexdigest()[:16]}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen).absolute() / name, False
    yield KERNELS / "__pycache__", False
    base = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")  # stays as it is for a user who is not among the users
    if not os.path.isabs(base) and os.path.isabs(home) and os.path.isdir(home):
        base = os.path.join(home, ".cache")
    if os.path.isabs(base):
        yield Path(base, "holdfast", name), True
    # Not tempfile.gettempdir(), which may answer with the current folder.
    for base in (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp"):
        if os.path.isabs(base) and os.path.isdir(base):
            yield Path(base, f"holdfast-{os.geteuid()}", name), True


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _made_private(folder: Path) -> bool:
    """Whether the folder is there, or could be made, and nobody else can put files into it."""
    try:
        for path in (folder.parent, folder):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                about = path.lstat()
                if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
                    return False
                if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                    return False
        return all(_keeps_names(path) for path in Path(os.path.realpath(folder.parent)).parents)
    except OSError:
        return False


def _keeps_names(folder: Path) -> bool:
    """Whether others cannot rename what we have in a folder; a shared one such as /tmp is sticky."""
    about = folder.stat()
    if about.st_uid not in (0, os.geteuid()):
        return False
    return not about.st_mode & stat.S_IWOTH or bool(about.st_mode & stat.S_ISVTX)


_log = logging.getLogger("holdfast")


_said = False


def say_uncached(reason: str) -> None:
    """Say that the next process compiles again; once. Without logging set up: on standard error."""
    global _said
    if not _said:
        _said = True
        _log.warning(
            "kernels cannot be kept (%s): every process compiles them again. "
            "Set NUMBA_CACHE_DIR to a folder that can be written.",
            reason,
        )
