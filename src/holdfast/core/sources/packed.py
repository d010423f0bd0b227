"""Compressed CSV and JSON files: gzip, bzip2, xz, and zip archives of one file. They are not cut."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

from holdfast.core.sources.columnar import first_line
from holdfast.core.sources.raw_files import opened_raw
from holdfast.errors import NOTHING_APPLIED, SourceError, listing, shorten

# By the ending of a file.
_OPEN: Mapping[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
ZIP = ".zip"
PACKINGS = (*_OPEN, ZIP)
# What such a file begins with, and no text.
_MARKS = {
    ".gz": rb"\x1f\x8b",
    ".bz2": rb"BZh[1-9](1AY&SY|\x17rE8P)",
    ".xz": rb"\xfd7zXZ\x00",
    ZIP: rb"PK\x03\x04",
}
MARK_BYTES = 10


def packing_of(path: str) -> str:
    """The ending that says how a file is compressed; "" if it is not."""
    ending = os.path.splitext(path.lower())[1]
    return ending if ending in PACKINGS else ""


def packing_by_mark(start: bytes) -> str:
    """The same by the first bytes.

    >>> packing_by_mark(b"BZh91AY&SY"), packing_by_mark(b"a,b")
    ('.bz2', '')
    """
    return next((ending for ending, mark in _MARKS.items() if re.match(mark, start)), "")


def bare_name(path: str) -> str:
    """The name of what is in a file: without the ending of its compression, or the one name of an archive."""
    packing = packing_of(path)
    bare = path[: len(path) - len(packing)]
    if packing != ZIP or os.path.splitext(bare)[1]:
        return bare
    try:
        with opened_raw(path) as raw, zipfile.ZipFile(raw) as archive:
            return _only_file(archive)
    except (SourceError, zipfile.BadZipFile):
        return bare  # what is wrong is said when it is read


@contextlib.contextmanager
def unpacked(raw: IO[bytes], packing: str, name: str, table: str) -> Iterator[IO[bytes]]:
    """The content of a compressed file; what is wrong with it is a SourceError."""
    try:
        if packing == ZIP:
            with zipfile.ZipFile(raw) as archive, archive.open(_only_file(archive, name, table)) as file:
                yield file
        else:
            with _OPEN[packing](raw) as file:
                yield file
    except (OSError, EOFError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
        raise SourceError(
            f"{name} for table {table!r} cannot be decompressed: {first_line(error)}. "
            f"{NOTHING_APPLIED} Next step: write the file again."
        ) from None


def _only_file(archive: zipfile.ZipFile, name: str = "", table: str = "") -> str:
    """The one file of an archive; what other systems add to it does not count."""
    names = [i.filename for i in archive.infolist() if not i.is_dir() and "__MACOSX" not in i.filename]
    if len(names) == 1:
        return names[0]
    held = f"{len(names)} files: {listing([shorten(n) for n in names[:3]])}" if names else "no file"
    raise SourceError(
        f"{shorten(name)} for table {table!r} must have one file in it, and has {held}. {NOTHING_APPLIED} "
        "Next step: unpack it, and give the folder or a glob; 'holdfast link' reads archives of many tables."
    )
