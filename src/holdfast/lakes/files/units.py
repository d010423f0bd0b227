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
from typing import BinaryIO

from holdfast.core.store.format import MARKER
from holdfast.core.store.root import is_stored, object_of
from holdfast.errors import NOTHING_APPLIED, SourceError, shorten_path
from holdfast.lakes.files.archives import zip_members
from holdfast.lakes.files.cells import WIDE, reason_of
from holdfast.lakes.files.file_kinds import EXPECTED, kind_of
from holdfast.lakes.files.json_tables import holds_lines
from holdfast.lakes.files.lake_options import LakeReadOptions, Unit, UnreadableError
from holdfast.lakes.files.opening import LINK, SPECIAL, lines_of, open_regular
from holdfast.lakes.files.raw_tables import one_byte_line_ends

MOST_FILES = 2_000  # a unit of tiny files is small enough by count, not by bytes
PACKED = 4  # bytes of text that a byte of a gzipped or Parquet file stands for, roughly
FILE_COST = 1_000  # opening a file takes as long as reading about so many more bytes
BLOCK = 1 << 20

_File = tuple[str, int]  # path relative to the source's folder, size
_Bad = list[tuple[str, str]]  # paths relative to it of what is not read, and why


def plan_lake(sources: Sequence[str], options: LakeReadOptions, unit_bytes: int) -> list[Unit]:
    """The units of all tables of the sources: folders, archives and single files, in their order.

    Raises a `SourceError` if a source does not exist or holds nothing of a known kind; whatever cannot be
    read inside of one is a unit that says so.
    """
    units: list[Unit] = []
    for source in sources:
        if is_stored(source):
            units += _plan_stored(source, options, max(unit_bytes, 1))
            continue
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
            bad: _Bad = []
            walk = _walk(root, options.follow_symlinks, bad)
            folder_units = _plan_files(root, walk, options, max(unit_bytes, 1), options.follow_symlinks, bad)
            folder_units += _bad_units(root, bad)
            if not folder_units:
                raise _no_files(source)
            units += folder_units
        elif kind_of(root)[0] is None or not stat.S_ISREG(mode):
            reason = "is not of a known kind" if stat.S_ISREG(mode) else SPECIAL
            raise SourceError(
                f"the source {shorten_path(source)} {reason}. Expected: {EXPECTED}. {NOTHING_APPLIED}"
            )
        else:
            folder, name = os.path.split(root)
            bad = []
            single = [(name, os.path.getsize(root))]
            units += _plan_files(folder, single, options, max(unit_bytes, 1), True, bad, alone=True)
            units += _bad_units(folder, bad)
    return units


def _plan_stored(source: str, options: LakeReadOptions, unit_bytes: int) -> list[Unit]:
    """The units of an object of a store, or of those whose names begin with a folder's."""
    bucket, name = object_of(source)
    bad: _Bad = []
    entries = [entry for entry in bucket.entries(name) if entry.name != name]
    if not entries:
        folder, _, single = source.rstrip("/").rpartition("/")
        if not name or not bucket.exists(name) or kind_of(name)[0] is None:
            reason = "is not of a known kind" if name and bucket.exists(name) else "does not exist"
            raise SourceError(
                f"the source {shorten_path(source)} {reason}. Expected: {EXPECTED}. {NOTHING_APPLIED}"
            )
        files = [(single, bucket.length(name))]
        return _plan_files(folder, files, options, unit_bytes, True, bad, alone=True) + _bad_units(
            folder, bad
        )
    root = source.rstrip("/")
    skipped = tuple(e.name.removesuffix(MARKER) for e in entries if e.name.rpartition("/")[2] == MARKER)
    files = []
    for entry in sorted(entries, key=lambda entry: entry.name.split("/")):
        path = entry.name[len(name) :].lstrip("/")
        visible = not any(part[:1] in (".", "_") for part in path.split("/"))
        if visible and kind_of(path)[0] is not None and not entry.name.startswith(skipped or ("/",)):
            files.append((path, entry.length))
    if not files:
        raise _no_files(source)
    return _plan_files(root, files, options, unit_bytes, True, bad) + _bad_units(root, bad)


def _no_files(source: str) -> SourceError:
    return SourceError(
        f"the folder {shorten_path(source)} has no file that can be read. Expected: {EXPECTED}; names that "
        f"begin with '.' or '_' are left out. {NOTHING_APPLIED}"
    )


def _walk(root: str, follow: bool, bad: _Bad) -> Iterator[_File]:
    """All regular files of a known kind below a folder, sorted by name within each folder.

    Workspaces are left out. Symbolic links are told and left out, too: one that leads out of the folder would
    take in what nobody meant, and one that does not a table that is there anyway. Where they are to be
    followed, every folder is entered once, so links that lead back end there, and those that are links come
    last: a folder reached both ways keeps its own path.
    """
    entered: set[tuple[int, int]] = set()
    links = [""]
    while links:
        stack = [links.pop(0)]
        while stack:
            folder = stack.pop()
            full = os.path.join(root, folder) if folder else root
            try:
                status = os.stat(full)
                if (status.st_dev, status.st_ino) in entered:
                    continue
                entered.add((status.st_dev, status.st_ino))
                with os.scandir(full) as entries:
                    listed = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                bad.append((folder, f"folder {reason_of(error)}"))
                continue
            folders: list[str] = []
            if any(entry.name == MARKER for entry in listed):
                continue  # a workspace, perhaps the very one that is being written
            for entry in listed:
                name = entry.name
                if name[0] in "._":
                    continue
                path = f"{folder}/{name}" if folder else name
                try:
                    readable = kind_of(name)[0] is not None
                    if entry.is_symlink() and not follow:
                        if readable or entry.is_dir():
                            bad.append((path, LINK))
                    elif entry.is_dir():
                        (links if entry.is_symlink() else folders).append(path)
                    elif readable and not stat.S_ISREG(entry.stat().st_mode):
                        bad.append((path, SPECIAL))
                    elif readable:
                        yield path, entry.stat().st_size
                except OSError:  # a link to nowhere: reading it will tell
                    yield path, 0
            stack += reversed(folders)


def _bad_units(root: str, bad: _Bad) -> list[Unit]:
    """What is not read, by reason: a folder may have very many links."""
    paths: dict[str, list[str]] = {}
    for path, reason in bad:
        paths.setdefault(reason, []).append(path)
    return [
        Unit("bad", root, 0, tuple(same[i : i + MOST_FILES]), reason)
        for reason, same in paths.items()
        for i in range(0, len(same), MOST_FILES)
    ]


def _plan_files(
    root: str,
    files: Iterable[_File],
    options: LakeReadOptions,
    unit_bytes: int,
    follow: bool,
    bad: _Bad,
    *,
    alone: bool = False,
) -> list[Unit]:
    units: list[Unit] = []
    paths: list[str] = []
    n_bytes = 0
    for path, size in files:
        kind, gzipped = kind_of(path)
        full = os.path.join(root, path)
        file_units: list[Unit] | None = None
        if kind == "zip":
            members = "" if alone else f"{path}!"
            file_units = _plan_zip(full, members, options.max_file_bytes, unit_bytes, follow, path, bad)
        elif kind == "tar":
            cost = size * (PACKED if gzipped else 1)
            file_units = [Unit("tar", full, cost, prefix="" if alone else f"{path}!", follow=follow)]
        elif kind in ("lines", "json") and size > unit_bytes and not gzipped:
            file_units = _plan_lines(full, path, kind == "json", options, unit_bytes, follow)
        if file_units is not None:
            units += file_units
            continue
        cost = min(size, options.max_file_bytes) * (PACKED if gzipped or kind == "parquet" else 1) + FILE_COST
        if paths and (n_bytes + cost > unit_bytes or len(paths) == MOST_FILES):
            units.append(Unit("files", root, n_bytes, tuple(paths), follow=follow))
            paths, n_bytes = [], 0
        paths.append(path)
        n_bytes += cost
    if paths:
        units.append(Unit("files", root, n_bytes, tuple(paths), follow=follow))
    return units


def _plan_zip(
    full: str, prefix: str, limit: int, unit_bytes: int, follow: bool, path: str, bad: _Bad
) -> list[Unit]:
    """The units of a zip archive; of one with a damaged directory none."""
    units: list[Unit] = []
    names: list[str] = []
    places: list[tuple[int, ...]] = []
    n_bytes = 0

    def take() -> None:
        if names:
            members = tuple(names), prefix
            units.append(Unit("zip", full, n_bytes, *members, places=tuple(places), follow=follow))

    try:
        for name, place in zip_members(full, follow, limit):
            if names and (n_bytes + place[2] > unit_bytes or len(names) == MOST_FILES):
                take()
                names, places, n_bytes = [], [], 0
            names.append(name)
            places.append(place)
            n_bytes += place[2] + FILE_COST
    except UnreadableError as error:  # what comes before is read
        bad.append((path, str(error)))
    except (OSError, EOFError, ValueError, NotImplementedError, zipfile.BadZipFile) as error:
        reason = reason_of(error)
        if isinstance(error, zipfile.BadZipFile):
            reason = "is cut short or no zip archive"
        bad.append((path, reason))
        return []
    take()
    return units


def _plan_lines(
    path: str, name: str, maybe: bool, options: LakeReadOptions, unit_bytes: int, follow: bool
) -> list[Unit] | None:
    """The units of a large JSON-lines file; None if it must be read whole.

    `maybe`: a `.json` file need not hold JSON lines.
    """
    if not one_byte_line_ends(options.encoding):
        return None
    limit = options.max_file_bytes
    try:
        with open_regular(path, follow, limit)[0] as file:
            if file.read(4).startswith(WIDE):
                return None
            file.seek(0)
            if maybe and not holds_lines(lines_of(file, limit), options.encoding):
                return None
            file.seek(0)
            spans = _line_spans(file, unit_bytes)
    except (OSError, UnreadableError):
        return None  # reading it will tell
    return [
        Unit("lines", path, end - start, prefix=name, span=(start, end, line), follow=follow)
        for start, end, line in spans
    ]


def _line_spans(file: BinaryIO, unit_bytes: int) -> list[tuple[int, int, int]]:
    """(start, end, number of the first line) of parts in whole lines, each of about `unit_bytes`."""
    spans = []
    start = at = 0
    first = line = 1
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
