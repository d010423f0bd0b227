"""Bytes of files that belong to others, on this machine or in an object store.

They are read, never mapped: whoever cuts a mapped file kills the process that reads it (SIGBUS). A file that
has become shorter than it was when its splits were planned is an error. Of an object only the bytes are read
that are asked for.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa

from holdfast.core.store.objects import ObjectFile
from holdfast.core.store.root import is_stored, object_of
from holdfast.errors import NOTHING_APPLIED, SourceError

Answer = TypeVar("Answer")

BLOCK = 16 << 20
# A request takes as long as some megabytes.
REQUEST = 8 << 20


def size_of(path: str) -> int:
    """The bytes of a file."""
    if is_stored(path):
        bucket, name = object_of(path)
        return bucket.length(name)
    return os.path.getsize(path)


def opened_raw(path: str, size: int | None = None) -> BinaryIO:
    """A file to be read from its beginning, or in some places; of an object `size` saves a request."""
    if is_stored(path):
        return io.BufferedReader(ObjectFile(*object_of(path), size), REQUEST)
    return open(path, "rb")


def opened_by_arrow(path: str, size: int | None = None) -> Any:
    """A file for Arrow's readers, which look for what they need; of an object `size` saves a request."""
    return pa.PythonFile(ObjectFile(*object_of(path), size), mode="r") if is_stored(path) else pa.OSFile(path)


def raw_bytes(path: str, start: int, end: int, table: str | None = None) -> Any:
    """Bytes of a file, as a buffer of Arrow; `table` is for the message if they are no longer there.

    Of an object it is one request.
    """
    content: Any
    if is_stored(path):
        bucket, name = object_of(path)
        content = pa.py_buffer(bucket.range(name, start, end) if start < end else b"")
    else:
        with pa.OSFile(path) as file:
            file.seek(start)
            content = file.read_buffer(end - start)
    if content.size < end - start:
        raise cut_short(path, table)
    return content


def looked(look: Callable[[str], Answer], paths: Iterable[str]) -> Iterable[Answer]:
    """What a look at each file says, in their order. At objects many at once: each costs some requests."""
    paths = list(paths)
    if not paths or not is_stored(paths[0]):
        return map(look, paths)
    return object_of(paths[0])[0].side_by_side(look, paths)


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
