"""What can happen to a file: each damage takes its path, and that of another file of its kind."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from holdfast.core.store.files import STAMPS


def remove(path: Path, other: Path) -> None:
    path.unlink()


def truncate(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path, other: Path) -> None:
    os.truncate(path, 0)


def flip(path: Path, other: Path) -> None:
    """One byte in the middle is another; length and modification time stay, as with a rotten disk."""
    flip_at(path, path.stat().st_size // 2)


def flip_at(path: Path, at: int, bits: int = 0xFF) -> None:
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= bits
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def rot(root: Path, name: str, at: int, bits: int = 0xFF) -> None:
    """A byte of a large file is another, and no time of the file tells: so its stamp is made to fit."""
    flip_at(root / name, at, bits)
    stamps = json.loads((root / STAMPS).read_text())
    status = (root / name).stat()
    stamps[name][1:3] = [status.st_mtime_ns, status.st_ctime_ns]
    (root / STAMPS).unlink()  # a new inode: processes read it again
    (root / STAMPS).write_text(json.dumps(stamps))


def replace(path: Path, other: Path) -> None:
    shutil.copyfile(other, path)


DAMAGES = [remove, truncate, empty, flip, replace]
