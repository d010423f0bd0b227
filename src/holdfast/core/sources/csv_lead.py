"""What stands before the first record of a CSV file: a byte order mark, `sep=`, comments."""

from __future__ import annotations

import os
from typing import Any

from holdfast.core.sources.beginnings import can_split
from holdfast.core.sources.csv_comments import START, behind_lines, has_preamble, preamble_size
from holdfast.core.sources.csv_delimiter import delimiter_of
from holdfast.core.sources.encodings import bom_size
from holdfast.core.sources.raw_files import raw_bytes, size_of
from holdfast.core.sources.read_options import ReadOptions, Split
from holdfast.errors import NOTHING_APPLIED, SourceError

# Bytes that are looked at where more than the first ones have to be.
MORE_BYTES = 1 << 16


def lead_size(path: str, options: ReadOptions, table: str) -> int:
    """The bytes of a file before its first record."""
    size, length = size_of(path), START
    while True:
        start = raw_bytes(path, 0, min(length, size), table)
        skip, whole = bom_size(start), length >= size
        text = start.slice(skip).to_pybytes()
        lead = _preamble(text, delimiter_of(path, options), options, whole=whole)
        if lead is not None:
            return skip + lead
        length = max(8 * length, MORE_BYTES)


def lead_in(body: Any, split: Split, delimiter: str, options: ReadOptions, table: str) -> int:
    """The bytes of the comments before the first record in the text of a first split, which may be short."""
    if not can_split(split.path, options):
        whole = split.most is None
        lead = _preamble(body.to_pybytes(), delimiter, options, whole=whole)
        if lead is None and not whole:  # more of it is read then
            name = os.path.basename(split.path)
            raise SourceError(f"{name} for table {table!r} begins with comments. {NOTHING_APPLIED}")
        return lead or 0
    if not has_preamble(body.slice(0, min(body.size, START)).to_pybytes()):
        return 0
    lead = lead_size(split.path, options, table)
    # In UTF-8 it may have more bytes than in the file, but it has as many lines.
    return behind_lines(body.to_pybytes(), raw_bytes(split.path, 0, lead, table).to_pybytes())


def _preamble(text: bytes, delimiter: str, options: ReadOptions, *, whole: bool) -> int | None:
    given = options.delimiter is not None
    return preamble_size(text, delimiter, options.comment, given=given, whole=whole)
