"""Bytes of files that belong to others, on this machine or in an object store.

They are read, never mapped: whoever cuts a mapped file kills the process that reads it (SIGBUS). A file that
has become shorter than it was when its splits were planned is an error. Of an object only the bytes are read
that are asked for.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from holdfast.core.store.objects import ObjectFile
from holdfast.core.store.root import is_stored, object_of
from holdfast.errors import NOTHING_APPLIED, SourceError

BLOCK = 16 << 20
# A request takes as long as some megabytes.
REQUEST = 8 << 20


def size_of(path: str) -> int:
    """The bytes of a file."""
    if is_stored(path):
        bucket, name = object_of(path)
        return bucket.length(name)
    return os.path.getsize(path)


def opened_raw(path: str) -> BinaryIO:
    """A file to be read from its beginning, or in some places."""
    if is_stored(path):
        return io.BufferedReader(ObjectFile(*object_of(path)), REQUEST)
    return open(path, "rb")


def opened_by_arrow(path: str) -> Any:
    """A file for Arrow's readers, which look for what they need."""
    return pa.PythonFile(ObjectFile(*object_of(path)), mode="r") if is_stored(path) else pa.OSFile(path)


def raw_bytes(path: str, start: int, end: int, table: str | None = None) -> Any:
    """Bytes of a file, as a buffer of Arrow; `table` is for the message if they are no longer there."""
    with opened_by_arrow(path) as file:
        file.seek(start)
        content: Any = file.read_buffer(end - start)
    if content.size < end - start:
        raise cut_short(path, table)
    return content


def blocks_of(path: str, start: int, end: int, table: str | None = None) -> Iterator[bytearray]:
    """The same bytes block by block; a block is filled anew when the next one is asked for."""
    block = bytearray(min(BLOCK, max(end - start, 0)))
    with opened_raw(path) as file:
        file.seek(start)
        for low in range(start, end, BLOCK):
            if end - low < len(block):
                block = bytearray(end - low)
            if file.readinto(block) < len(block):  # type: ignore[attr-defined]
                raise cut_short(path, table)
            yield block


def cut_short(path: str, table: str | None) -> SourceError:
    label = f" for table {table!r}" if table is not None else ""
    return SourceError(
        f"{os.path.basename(path)}{label} was cut short while it was read. {NOTHING_APPLIED} "
        "Next step: run again when the file is written."
    )
