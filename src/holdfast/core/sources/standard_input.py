"""Standard input as a source: `-`; or a pipe that this process was given, such as `<(...)` of a shell.

It is read once, into a file of the workspace that goes with the job.
"""

from __future__ import annotations

import itertools
import os
import stat
import sys
from collections.abc import Iterator
from typing import IO

from holdfast.core.sources import columnar, json_arrays
from holdfast.core.sources.packed import packing_by_mark, unpacked
from holdfast.core.sources.read_options import Kind
from holdfast.core.store.files import FileRef, check_file, new_file, unique_name
from holdfast.core.store.root import Root
from holdfast.errors import NOTHING_APPLIED, SourceError, shorten_path

NAME = "-"
BLOCK = 1 << 20
DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")
_MARKS: dict[bytes, Kind] = {b"PAR1": "parquet", b"ARROW1": "arrow", columnar.STREAM_MARK: "arrow"}


def is_pipe(place: str) -> bool:
    """Whether a path is a pipe that this process was given; it is not opened.

    One with a name in a folder may have no writer, and whoever opens it then waits for ever: it is refused as
    a source.
    """
    try:
        return place.startswith(DESCRIPTORS) and stat.S_ISFIFO(os.stat(place).st_mode)
    except (OSError, ValueError):
        return False


def spooled(root: Root, staging: str, table: str, pipe: str | None = None) -> tuple[FileRef, Kind]:
    """(file, kind) of what standard input or a pipe holds, decompressed."""
    if pipe is not None:
        with open(pipe, "rb") as stream:
            return _unpacked(root, staging, stream, f"the pipe {shorten_path(pipe)}", table)
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError(
            f"table {table!r} is to be read from standard input (-), and nothing is piped into it. "
            f"{NOTHING_APPLIED} Next step: holdfast track orders - < orders.csv, or give the file."
        )
    return _unpacked(root, staging, sys.stdin.buffer, "standard input", table)


def _unpacked(root: Root, staging: str, stream: IO[bytes], name: str, table: str) -> tuple[FileRef, Kind]:
    ref, what = _written(root, staging, iter(lambda: stream.read(BLOCK), b""), name, table)
    if what in _KINDS:
        return ref, _KINDS[what]
    with (
        open(check_file(root, ref, deep=False), "rb") as raw,
        unpacked(raw, what, name, table) as file,
    ):
        ref, what = _written(root, staging, iter(lambda: file.read(BLOCK), b""), name, table)
    return ref, _KINDS.get(what, "csv")


_KINDS: dict[str, Kind] = {f".{kind}": kind for kind in ("csv", "jsonl", "parquet", "arrow")}


def _written(root: Root, staging: str, blocks: Iterator[bytes], name: str, table: str) -> tuple[FileRef, str]:
    """(file, ending) of some blocks: the ending says what the first of them looks like."""
    first = next(blocks, b"")
    if not first:
        raise SourceError(
            f"{name}, the source of table {table!r}, is empty. {NOTHING_APPLIED} Next step: check "
            "what is piped in; it is read once, so only one part of a batch can come from it."
        )
    ending = packing_by_mark(first) or f".{kind_of(first)}"
    with new_file(root, unique_name(staging, "standard-input", ending)) as file:
        for block in itertools.chain([first], blocks):
            file.write(block)
    return file.ref, ending


def kind_of(start: bytes) -> Kind:
    """The format of what begins with these bytes: CSV, unless it is another one's mark.

    >>> kind_of(b"PAR1..."), kind_of(b' {"a": 1}'), kind_of(b"a,b")
    ('parquet', 'jsonl', 'csv')
    """
    for mark, kind in _MARKS.items():
        if start.startswith(mark):
            return kind
    is_json = json_arrays.is_array(start) or start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    return "jsonl" if is_json else "csv"
