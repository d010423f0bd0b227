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
- it was last written `grace_s` seconds ago or earlier. So a batch that is still being computed keeps
  the files that its commit is going to name, if it takes no longer than that. Hence a day by default;
  0 is safe only while nobody writes.

A folder in `staging/` goes when nothing in it has been written for `grace_s` seconds, a table's
folder when it is old and empty, a marker under way when it is old. The ledger's own files are left
alone: its history is never cut.

Files are listed before the ledger is read, so one that was committed in between is known to live. A
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

from holdfast.storage.files import STAGING
from holdfast.storage.format import MARKER
from holdfast.storage.ledger import Ledger

# Files of a table lie in a folder of its own; those of the state that tables share directly in `values/`,
# those of the lake in `lake/`.
TABLES, VALUES, LAKE = "tables", "values", "lake"
GRACE_S = 86_400.0
TIDY_EVERY_S = 3_600.0
# Its modification time is when litter was last looked for.
_STAMP = f"{STAGING}/tidied"
_OWN = re.compile(r"[a-z]+-[0-9a-f]{12}\.[a-z]+")
_COVER = re.compile(r"/(cover|fds|approximate|dcs|nearly)-[^/]+$")


def remove_litter(root: Path, ledger: Ledger, *, grace_s: float = GRACE_S) -> int:
    """Remove what the rule above lets go; how many files that were."""
    now = time.time()
    files = list(_own_files(root))
    needed = _needed(ledger, now - grace_s) if files else set()
    n_removed = 0
    for name, written in files:
        if name not in needed and now - written >= grace_s:
            n_removed += remove_file(root / name)
    for folder in _folders(root / TABLES):
        if now - _written(folder) >= grace_s:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
    for folder in _folders(root / STAGING):
        if now - _last_written(folder) >= grace_s:
            n_removed += sum(len(names) for _, _, names in os.walk(folder))
            shutil.rmtree(folder, ignore_errors=True)
    for path in root.glob(f".{MARKER}.*"):
        if now - _written(path) >= grace_s:
            n_removed += remove_file(path)
    return n_removed


def due(root: Path, every_s: float = TIDY_EVERY_S) -> bool:
    """Whether nobody has looked for litter for so long; who is told so, is to look now.

    Costs one `stat`. A workspace that has never been tidied is not due yet: it is new.
    """
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


def _needed(ledger: Ledger, since: float) -> set[str]:
    """The files that states name which were some table's newest at or after a time, and all covers."""
    needed: set[str] = set()
    newest: dict[str, list[str]] = {}
    for commit in ledger.states():
        replaced = newest.pop(commit.table, [])
        if commit.at is None or commit.at.timestamp() > since:
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


def _own_files(root: Path) -> Iterator[tuple[str, float]]:
    """(name, time of writing) of the files that holdfast has made for tables and for what they share."""
    shared = [folder for folder in _folders(root) if folder.name in (VALUES, LAKE)]
    for folder in (*_folders(root / TABLES), *shared):
        for path in folder.iterdir():
            if _OWN.fullmatch(path.name):
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
