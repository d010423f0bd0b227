"""Planning a lake: which files there are, and the units they are read in.

Small files are put together and large JSON-lines files and zip archives are divided, so that a unit has
about `unit_bytes` of text and at most `MOST_FILES` files. Costs a walk over the folders, the directories of
zip archives, and one pass over JSON-lines files larger than a unit, to count their lines.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Iterable, Iterator, Sequence

from holdfast.errors import NOTHING_APPLIED, SourceError, shorten_path
from holdfast.storage.format import MARKER

from .archives import zip_members
from .json_tables import holds_lines
from .kinds import EXPECTED, kind_of
from .options import LakeReadOptions, Unit
from .read import one_byte_line_ends
from .texts import WIDE, reason_of

MOST_FILES = 2_000  # a unit of tiny files is small enough by count, not by bytes
PACKED = 4  # bytes of text that a byte of a gzipped or Parquet file stands for, roughly
FILE_COST = 1_000  # opening a file takes as long as reading about so many more bytes
BLOCK = 1 << 20

_File = tuple[str, int]  # path relative to the source's folder, size


def plan_lake(sources: Sequence[str], options: LakeReadOptions, unit_bytes: int) -> list[Unit]:
    """The units of all tables of the sources: folders, archives and single files, in their order.

    Raises a `SourceError` if a source does not exist or holds nothing of a known kind; whatever cannot be
    read inside of one is a unit that says so.
    """
    units: list[Unit] = []
    for source in sources:
        root = os.path.abspath(os.path.expanduser(source))
        try:
            mode = os.stat(root).st_mode
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            absent = isinstance(error, FileNotFoundError | ValueError)
            reason = "does not exist" if absent else reason_of(error)
            raise SourceError(
                f"the source {shorten_path(source)} {reason}. Expected: {EXPECTED}. {NOTHING_APPLIED}"
            ) from None
        if stat.S_ISDIR(mode):
            bad: list[Unit] = []
            found = _plan_files(root, _walk(root, bad), options, max(unit_bytes, 1)) + bad
            if not found:
                raise SourceError(
                    f"the folder {shorten_path(source)} has no file that can be read. Expected: {EXPECTED}; "
                    f"names that begin with '.' or '_' are left out. {NOTHING_APPLIED}"
                )
            units += found
        elif kind_of(root)[0] is None or not stat.S_ISREG(mode):
            raise SourceError(
                f"the source {shorten_path(source)} is not of a known kind. Expected: {EXPECTED}. "
                f"{NOTHING_APPLIED}"
            )
        else:
            folder, name = os.path.split(root)
            single = [(name, os.path.getsize(root))]
            units += _plan_files(folder, single, options, max(unit_bytes, 1), alone=True)
    return units


def _walk(root: str, bad: list[Unit]) -> Iterator[_File]:
    """All files of a known kind below a folder, sorted by name within each folder.

    Workspaces are left out. Every folder is entered once, so links that lead back end there. Those that are
    links come last: a folder reached both ways keeps its own path.
    """
    seen: set[tuple[int, int]] = set()
    links = [""]
    while links:
        stack = [links.pop(0)]
        while stack:
            folder = stack.pop()
            full = os.path.join(root, folder) if folder else root
            try:
                status = os.stat(full)
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                with os.scandir(full) as entries:
                    found = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                bad.append(Unit("bad", full, 0, (f"folder {reason_of(error)}",)))
                continue
            folders: list[str] = []
            if any(entry.name == MARKER for entry in found):
                continue  # a workspace, perhaps the very one that is being written
            for entry in found:
                name = entry.name
                if name[0] in "._":
                    continue
                path = f"{folder}/{name}" if folder else name
                try:
                    if entry.is_dir():
                        (links if entry.is_symlink() else folders).append(path)
                    elif kind_of(name)[0] is not None and (entry.is_file() or entry.is_symlink()):
                        yield path, entry.stat().st_size
                except OSError:  # a link to nowhere: reading it will tell
                    yield path, 0
            stack += reversed(folders)


def _plan_files(
    root: str, files: Iterable[_File], options: LakeReadOptions, unit_bytes: int, *, alone: bool = False
) -> list[Unit]:
    units: list[Unit] = []
    paths: list[str] = []
    n_bytes = 0
    for path, size in files:
        kind, gzipped = kind_of(path)
        own: list[Unit] | None = None
        if kind == "zip":
            own = _plan_zip(os.path.join(root, path), "" if alone else f"{path}!", size, unit_bytes)
        elif kind == "tar":
            cost = size * (PACKED if gzipped else 1)
            own = [Unit("tar", os.path.join(root, path), cost, prefix="" if alone else f"{path}!")]
        elif kind in ("lines", "json") and size > unit_bytes and not gzipped:
            own = _plan_lines(os.path.join(root, path), path, kind == "json", options, unit_bytes)
        if own is not None:
            units += own
            continue
        cost = size * (PACKED if gzipped or kind == "parquet" else 1) + FILE_COST
        if paths and (n_bytes + cost > unit_bytes or len(paths) == MOST_FILES):
            units.append(Unit("files", root, n_bytes, tuple(paths)))
            paths, n_bytes = [], 0
        paths.append(path)
        n_bytes += cost
    if paths:
        units.append(Unit("files", root, n_bytes, tuple(paths)))
    return units


def _plan_zip(path: str, prefix: str, size: int, unit_bytes: int) -> list[Unit]:
    units: list[Unit] = []
    names: list[str] = []
    places: list[tuple[int, ...]] = []
    n_bytes = 0
    try:
        for name, place in zip_members(path):
            if names and (n_bytes + place[2] > unit_bytes or len(names) == MOST_FILES):
                units.append(Unit("zip", path, n_bytes, tuple(names), prefix, places=tuple(places)))
                names, places, n_bytes = [], [], 0
            names.append(name)
            places.append(place)
            n_bytes += place[2] + FILE_COST
    except (OSError, EOFError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        reason = reason_of(error)
        if isinstance(error, zipfile.BadZipFile):
            reason = "is cut short or no zip archive"
        return [Unit("bad", path, size, (reason,))]
    if names:
        units.append(Unit("zip", path, n_bytes, tuple(names), prefix, places=tuple(places)))
    return units


def _plan_lines(
    path: str, name: str, maybe: bool, options: LakeReadOptions, unit_bytes: int
) -> list[Unit] | None:
    """The units of a large JSON-lines file; None if it must be read whole.

    `maybe`: a `.json` file need not hold JSON lines.
    """
    if not one_byte_line_ends(options.encoding):
        return None
    try:
        with open(path, "rb") as file:
            if file.read(4).startswith(WIDE):
                return None
            if maybe:
                file.seek(0)
                if not holds_lines(file, options.encoding):
                    return None
            spans = _line_spans(path, unit_bytes)
    except OSError:
        return None  # reading it will tell
    return [
        Unit("lines", path, end - start, prefix=name, span=(start, end, line)) for start, end, line in spans
    ]


def _line_spans(path: str, unit_bytes: int) -> list[tuple[int, int, int]]:
    """(start, end, number of the first line) of parts in whole lines, each of about `unit_bytes`."""
    spans = []
    start = at = 0
    first = line = 1
    with open(path, "rb", 0) as file:
        while block := file.read(BLOCK):
            low = 0
            while low < len(block):
                # The part ends behind the first line end at or after its wanted size.
                wanted = max(start + unit_bytes - 1 - at, low)
                end = block.find(b"\n", wanted) if wanted < len(block) else -1
                if end < 0:
                    line += block.count(b"\n", low)
                    break
                line += block.count(b"\n", low, end + 1)
                spans.append((start, at + end + 1, first))
                start, first, low = at + end + 1, line, end + 1
            at += len(block)
    if start < at:
        spans.append((start, at, first))
    return spans
