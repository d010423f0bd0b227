"""Standard input as a source: `-`. It is read once, into a file of the workspace that goes with the job."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

from holdfast.core.sources import json_arrays
from holdfast.core.sources.packed import packing_by_mark, unpacked
from holdfast.core.sources.read_options import Kind
from holdfast.core.store.files import FileRef, check_file, new_file, unique_name
from holdfast.core.store.root import Root
from holdfast.errors import NOTHING_APPLIED, SourceError

NAME = "-"
BLOCK = 1 << 20
_MARKS: dict[bytes, Kind] = {b"PAR1": "parquet", b"ARROW1": "arrow"}


def spooled(root: Root, staging: str, table: str) -> tuple[FileRef, Kind]:
    """(file, kind) of what standard input holds, decompressed."""
    if sys.stdin is None or sys.stdin.isatty():
        raise SourceError(
            f"table {table!r} is to be read from standard input (-), and nothing is piped into it. "
            f"{NOTHING_APPLIED} Next step: holdfast track orders - < orders.csv, or give the file."
        )
    ref, what = _written(root, staging, iter(lambda: sys.stdin.buffer.read(BLOCK), b""), table)
    if what in _KINDS:
        return ref, _KINDS[what]
    with (
        open(check_file(root, ref, deep=False), "rb") as raw,
        unpacked(raw, what, "standard input", table) as file,
    ):
        ref, what = _written(root, staging, iter(lambda: file.read(BLOCK), b""), table)
    return ref, _KINDS.get(what, "csv")


_KINDS: dict[str, Kind] = {f".{kind}": kind for kind in ("csv", "jsonl", "parquet", "arrow")}


def _written(root: Root, staging: str, blocks: Iterator[bytes], table: str) -> tuple[FileRef, str]:
    """(file, ending) of some blocks: the ending says what the first of them looks like."""
    first = next(blocks, b"")
    if not first:
        raise SourceError(
            f"standard input, the source of table {table!r}, is empty. {NOTHING_APPLIED} Next step: check "
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
