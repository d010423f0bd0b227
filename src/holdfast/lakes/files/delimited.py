"""Delimited text (CSV, TSV): one file, one table.

Python's csv module does the parsing: quotes, doubled quotes, line ends inside quotes, all three kinds of
line end. It is lenient where files are (`"a"b` is `ab`), but a quote that is never closed swallows the rest
of a file, so it makes the file bad.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from itertools import chain, islice

from holdfast.lakes.files.cells import check_width, column_names, decoded, transposed
from holdfast.lakes.files.file_kinds import Kind
from holdfast.lakes.files.lake_options import LakeReadOptions, RawTable, UnreadableError

DELIMITERS = ",;\t|"
CHUNK = 4096  # rows transposed at once: small enough that a large file's rows are freed as its columns grow
HEAD = 1 << 14  # characters in which the delimiter is looked for
HEAD_ROWS = 25


def allow_long_cells() -> None:
    """The csv module refuses cells above 128 KiB until it is told otherwise, once in a process."""
    csv.field_size_limit(sys.maxsize)


def delimited_table(raw: bytes, kind: Kind, name: str, source: str, options: LakeReadOptions) -> RawTable:
    """The table in these bytes; an `UnreadableError` if they hold none."""
    text, encoding = decoded(raw, options.encoding)
    delimiter = options.delimiter or ("\t" if kind == "tabs" else _delimiter(text))
    lines: Iterator[str] = io.StringIO(text, newline="")
    try:
        if '"' in text:
            columns, n_rows = _columns(_closed(lines, delimiter))
        else:
            columns, n_rows = _columns(csv.reader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise UnreadableError(f"is not delimited text: {error}") from None
    if not options.header:
        return RawTable(name, source, column_names((), len(columns)), columns, n_rows, encoding)
    header = [column[0] for column in columns]
    for column in columns:
        del column[0]
    return RawTable(name, source, column_names(header, len(columns)), columns, max(n_rows - 1, 0), encoding)


def _columns(rows: Iterator[list[str]]) -> tuple[list[list[str | None]], int]:
    """The columns of all records, the header's cells among them, and the number of records."""
    chunk = [row for row in islice(rows, CHUNK) if row]
    columns, n_cells = transposed(chunk)
    n_rows = len(chunk)
    while chunk := list(islice(rows, CHUNK)):
        chunk = [row for row in chunk if row]
        more, n_more = transposed(chunk)
        n_cells += n_more
        check_width(n_cells, n_rows + len(chunk), max(len(columns), len(more)))
        columns += [[None] * n_rows for _ in range(len(more) - len(columns))]
        for column, values in zip(columns, more, strict=False):
            column += values
        for column in columns[len(more) :]:
            column += [None] * len(chunk)
        n_rows += len(chunk)
    return columns, n_rows


def _closed(lines: Iterator[str], delimiter: str) -> Iterator[list[str]]:
    """The records of the lines; raises at the end if a quote is still open.

    The csv module tells that only in its strict mode, which refuses `"a"b` too. So a line is added behind
    the last: it comes back as a record of its own, unless it was taken for the inside of a quoted cell,
    which its own quote would close.
    """
    letter = "y" if delimiter == "x" else "x"
    last = [f'{letter}"{letter}']
    records = csv.reader(chain(lines, last), delimiter=delimiter)
    row = next(records)
    n = 1
    for following in records:
        yield row
        row = following
        n += 1
    if row != last:
        raise UnreadableError(f"has a quote that is never closed, opened in record {n:,}")


def _delimiter(text: str) -> str:
    """The delimiter of a file, by its first records; a comma if in doubt.

    That which cuts all records into the same number of cells, at least two; of several the one with the
    most cells; if none does, the one that does so for the header and most of the other records.
    """
    head = text[:HEAD]
    candidates = [d for d in DELIMITERS[1:] if d in head]
    if not candidates:
        return ","
    cut = len(head) < len(text)
    if cut and (end := head.rfind("\n")) > 0:
        head = head[: end + 1]
    best, best_score = ",", (0.6, 0)
    for delimiter in (",", *candidates):
        rows = islice(csv.reader(io.StringIO(head, newline=""), delimiter=delimiter), HEAD_ROWS + 1)
        widths = [len(row) for row in rows if row]
        if len(widths) > 1 and (cut or len(widths) > HEAD_ROWS):
            widths.pop()  # may be half a record
        if widths and widths[0] > 1:
            score = (widths.count(widths[0]) / len(widths), widths[0])
            if score > best_score:
                best, best_score = delimiter, score
    return best
