"""Litter: files that no commit needs any more, and when they may go.

Files are written before the commit that names them and are never changed after it. So a batch that
was killed or rejected leaves files behind, and so does every batch that replaces a delete vector or
merges segments. They cost nothing but space, until `remove_litter` takes them away.

The rule. A file in a table's folder under `tables/`, in `values/` or in `lake/` goes only if all of this
holds:

- its name is one that holdfast makes (`unique_name`); other people's files are left alone;
- no state names it that was some table's newest at any time in the last `grace_s` seconds; the state
  that all tables share counts as one more table's. So a reader that has just looked up a version has
  that long to open its files, and the newest state of every table is always whole. Of a dropped table
  nothing but the covers is needed once the drop is that old;
- it is no cover that any commit, however old, names: covers are what time travel reads;
- no job that is under way (`leases.py`) may need it: it was written before the first of them began, and
  what they are based on was not replaced later. So a batch keeps the files that its commit is going to
  name, and those that it reads, however long it takes and wherever a clock jumps meanwhile;
- it was last written `grace_s` seconds ago or earlier, and as long before the first job under way began.

Hence a day by default; with 0 a reader may lose what it has just looked up.

A folder in `staging/` goes when its job is not under way and nothing in it has been written for `grace_s`
seconds, a table's folder when it is as old as a file would have to be and empty, a marker or a file of
stamps that was never finished when it is old. The ledger's own files are left alone: its history is
never cut. On a store the copies of log entries that a newer one stands for go (`delta_log.py`).

Files are listed first, then the jobs that are under way, then the ledger is read: so a file whose job ended
in between is named by the ledger, or nobody will ever name it. A
state is searched for names, not understood: files of a kind that this release does not know are kept.
If any part of the history cannot be read, nothing is removed. To be killed half-way does no harm.

Cost: one `stat` per file, and a pass over the states of all commits, about 1 s for 10,000 of them;
`due` says whether the last pass is long enough ago.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.core.store.bucket import STAGING, Bucket
from holdfast.core.store.delta_log import older_copies
from holdfast.core.store.files import STAMPS, FileRef, forget_stamps
from holdfast.core.store.format import MARKER
from holdfast.core.store.leases import under_way
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.root import Root

# Files of a table lie in a folder of its own; those of the state that tables share directly in `values/`,
# those of the lake in `lake/`.
TABLES, VALUES, LAKE = "tables", "values", "lake"
GRACE_S = 86_400.0
TIDY_EVERY_S = 3_600.0
# Its modification time is when litter was last looked for.
_STAMP = f"{STAGING}/tidied"
# When this process asked a store for it last.
_looked: dict[Bucket, float] = {}
_REF_FIELDS = FileRef("", 0, "").to_dict().keys()
_NAMED_HERE = re.compile(r"[a-z]+-[0-9a-f]{12}\.[a-z]+")
_COVER = re.compile(r"/(cover|fds|approximate|dcs|nearly)-[^/]+$")


def remove_litter(root: Root, ledger: Ledger, *, grace_s: float = GRACE_S) -> int:
    """Remove what the rule above lets go; how many files that were."""
    now = time.time()
    folders = [] if isinstance(root, Bucket) else _folders(root / TABLES)
    files = list(_own_files(root))
    jobs = under_way(root)
    began = min((job.since for job in jobs), default=float("inf"))
    needed = _needed(ledger, now - grace_s, min((job.base for job in jobs), default=None)) if files else set()

    def old(written: float) -> bool:
        return now - written >= grace_s and written < began - grace_s

    unneeded = [name for name, written in files if name not in needed and old(written)]
    if isinstance(root, Bucket):
        unneeded += [name for name, written in older_copies(root) if old(written)]
        unneeded += _unstaged(root, {job.folder for job in jobs}, now - grace_s)
        root.remove(unneeded)
        return len(unneeded)
    n_removed = sum(remove_file(root / name) for name in unneeded)
    for folder in folders:
        if old(_written(folder)):
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
    for folder in _folders(root / STAGING):
        staging = f"{STAGING}/{folder.name}"
        if staging not in [job.folder for job in jobs] and now - _last_written(folder) >= grace_s:
            n_removed += sum(len(names) for _, _, names in os.walk(folder))
            shutil.rmtree(folder, ignore_errors=True)
    for path in (*root.glob(f".{MARKER}.*"), *root.glob(f"{STAMPS}.*")):
        if now - _written(path) >= grace_s:
            n_removed += remove_file(path)
    forget_stamps(root)
    return n_removed


def _unstaged(root: Bucket, jobs: set[str], before: float) -> list[str]:
    """The objects in staging folders of jobs that are not under way, of which the newest is that old."""
    newest: dict[str, float] = {}
    names: dict[str, list[str]] = {}
    for entry in root.entries(STAGING):
        folder = "/".join(entry.name.split("/")[:2])
        if entry.name.count("/") > 1 and folder not in jobs:
            newest[folder] = max(newest.get(folder, 0.0), entry.written)
            names.setdefault(folder, []).append(entry.name)
    return [name for folder, written in newest.items() if written <= before for name in names[folder]]


def due(root: Root, every_s: float = TIDY_EVERY_S) -> bool:
    """Whether nobody has looked for litter for so long; who is told so, is to look now.

    Costs one `stat`, or a request. A workspace that has never been tidied is not due yet: it is new.
    """
    if isinstance(root, Bucket):
        return _due_on_store(root, every_s)
    stamp = root / _STAMP
    try:
        ago = time.time() - stamp.stat().st_mtime
    except FileNotFoundError:
        ago = 0.0
    else:
        if ago < every_s:
            return False
    stamp.touch()
    return ago >= every_s


def _due_on_store(root: Bucket, every_s: float) -> bool:
    now = time.time()
    if now - _looked.get(root, 0.0) < every_s:
        return False
    _looked[root] = now
    written = root.written(_STAMP)
    if written is None or now - written >= every_s:
        root.put(_STAMP, b"")
    return written is not None and now - written >= every_s


def is_cover(ref: FileRef) -> bool:
    """Whether past versions are read from a file: it is kept for good."""
    return _COVER.search(ref.name) is not None


def named_files(state: Any) -> Iterator[FileRef]:
    """The references to files anywhere in a state."""
    if isinstance(state, dict):
        if state.keys() == _REF_FIELDS:
            yield FileRef.from_dict(state)
            return
        state = list(state.values())
    for part in state or ():
        if isinstance(part, dict | list):
            yield from named_files(part)


def _needed(ledger: Ledger, since: float, base: int | None) -> set[str]:
    """The files that states name which were some table's newest at or after a time, and all covers.

    With a version, also what was the newest at or after that.
    """
    needed: set[str] = set()
    newest: dict[str, list[str]] = {}
    for commit in ledger.states():
        replaced = newest.pop(commit.table, [])
        replaced_late = commit.at is None or commit.at.timestamp() > since
        if replaced_late or (base is not None and commit.version > base):
            needed.update(replaced)
        names = list(_names(commit.state))
        needed.update(name for name in names if _COVER.search(name))
        if commit.state is not None:
            newest[commit.table] = names
    return needed.union(*newest.values())


def _names(value: Any) -> Iterator[str]:
    """The names of files anywhere in a state."""
    if isinstance(value, str):
        if value.startswith((f"{TABLES}/", f"{VALUES}/", f"{LAKE}/")):
            yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _names(part)
    elif isinstance(value, list):
        for part in value:
            yield from _names(part)


def _own_files(root: Root) -> Iterator[tuple[str, float]]:
    """(name, time of writing) of the files that holdfast has made for tables and for what they share."""
    if isinstance(root, Bucket):
        for entry in (entry for folder in (TABLES, VALUES, LAKE) for entry in root.entries(folder)):
            if _NAMED_HERE.fullmatch(entry.name.rpartition("/")[2]):
                yield entry.name, entry.written
        return
    shared = [folder for folder in _folders(root) if folder.name in (VALUES, LAKE)]
    for folder in (*_folders(root / TABLES), *shared):
        for path in folder.iterdir():
            if _NAMED_HERE.fullmatch(path.name):
                with contextlib.suppress(OSError):  # another process tidies, too
                    yield path.relative_to(root).as_posix(), path.stat().st_mtime


def _folders(parent: Path) -> list[Path]:
    if not parent.is_dir():
        return []
    return [path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()]


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return float("inf")  # gone, or not ours to remove


def _last_written(folder: Path) -> float:
    """When anything in a folder was last written."""
    paths = (Path(place) / name for place, folders, names in os.walk(folder) for name in (*folders, *names))
    return max(_written(path) for path in (folder, *paths))


def remove_file(path: Path) -> int:
    """1 if the file is gone now and was there before; what cannot be removed stays litter."""
    try:
        path.unlink()
    except OSError:
        return 0
    return 1
