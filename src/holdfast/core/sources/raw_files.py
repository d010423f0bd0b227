"""Bytes of files that belong to others.

They are read, never mapped: whoever cuts a mapped file kills the process that reads it (SIGBUS). A file that
has become shorter than it was when its splits were planned is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from holdfast.errors import NOTHING_APPLIED, SourceError

BLOCK = 16 << 20


def raw_bytes(path: str, start: int, end: int, table: str | None = None) -> Any:
    """Bytes of a file, as a buffer of Arrow; `table` is for the message if they are no longer there."""
    with pa.OSFile(path) as file:
        file.seek(start)
        content: Any = file.read_buffer(end - start)
    if content.size < end - start:
        raise cut_short(path, table)
    return content


def blocks_of(path: str, start: int, end: int, table: str | None = None) -> Iterator[bytearray]:
    """The same bytes block by block; a block is filled anew when the next one is asked for."""
    block = bytearray(min(BLOCK, max(end - start, 0)))
    with open(path, "rb") as file:
        file.seek(start)
        for low in range(start, end, BLOCK):
            if end - low < len(block):
                block = bytearray(end - low)
            if file.readinto(block) < len(block):
                raise cut_short(path, table)
            yield block


def cut_short(path: str, table: str | None) -> SourceError:
    label = f" for table {table!r}" if table is not None else ""
    return SourceError(
        f"{os.path.basename(path)}{label} was cut short while it was read. {NOTHING_APPLIED} "
        "Next step: run again when the file is written."
    )
