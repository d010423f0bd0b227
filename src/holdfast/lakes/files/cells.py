"""Bytes to text, rows to columns, and the names of columns."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from holdfast.core.sources.encodings import without_mark
from holdfast.lakes.files.lake_options import UnreadableError

# Windows-1252 leaves five bytes undefined; as browsers do, they are read as Latin-1 has them.
_WINDOWS = "".join(bytes([i]).decode("cp1252", "ignore") or chr(i) for i in range(256))
_CONTROLS = bytes(i for i in range(32) if i not in b"\t\n\v\f\r\x1a")
# The longer marks first: that of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)  # that of UTF-32 LE is among them


def decoded(raw: bytes, encoding: str | None) -> tuple[str, str]:
    """The text and the name of its encoding; an `UnreadableError` if these bytes are no text.

    A byte order mark decides, then UTF-8 if it fits, then Windows-1252, which fits everything: so there a
    share of control characters that no text has tells binary rubbish.
    """
    if encoding is not None:
        try:
            text = raw.decode(encoding)
        except (UnicodeError, ValueError) as error:
            at = f" at byte {error.start:,}" if isinstance(error, UnicodeDecodeError) else ""
            raise UnreadableError(f"is not {encoding} text{at}") from None
        return _checked(without_mark(text, encoding)), encoding
    if raw[:1] in b"\xef\xff\xfe\0":
        for mark, name in _MARKS:
            if raw.startswith(mark):
                try:
                    return _checked(without_mark(raw.decode(name), name)), name
                except UnicodeDecodeError as error:
                    raise UnreadableError(
                        f"begins with the mark of {name}, but is not {name} text at byte {error.start:,}"
                    ) from None
    if 0 in raw:
        raise UnreadableError("holds NUL bytes: this is not a text file")
    try:
        return raw.decode(), "utf-8"
    except UnicodeDecodeError:
        head = raw[: 1 << 16]
        if 100 * (len(head) - len(head.translate(None, _CONTROLS))) > len(head):
            raise UnreadableError("holds control characters: this is not a text file") from None
        return codecs.charmap_decode(raw, "strict", _WINDOWS)[0], "windows-1252"


def _checked(text: str) -> str:
    if "\0" in text:
        raise UnreadableError("holds NUL characters: this is not a text file")
    return text


def reason_of(error: BaseException) -> str:
    """Why something cannot be read, as a short phrase."""
    if isinstance(error, UnreadableError):
        return str(error)
    if isinstance(error, EOFError):
        return "is cut short"
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno:,}, " if error.lineno > 1 else ""
        return f"is not JSON: {error.msg.removesuffix(' at')} at {line}character {error.colno:,}"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return f"is damaged: {str(error).rpartition(': ')[2]}"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"cannot be read: {first if len(first) <= 200 else first[:197] + '...'}"


def valid(text: str) -> str:
    """The text with each half of a surrogate pair replaced: UTF-8 cannot hold it, JSON's escapes can.

    >>> valid("a\\ud800"), valid("\\ud83d\\ude00") == "\\U0001f600"
    ('a\\ufffd', True)
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def column_names(header: Sequence[str | None], n_columns: int) -> list[str]:
    """Names for `n_columns` columns: stripped, never empty, each once.

    >>> column_names([" a", "", "a", "column_2"], 5)
    ['a', 'column_2', 'a_2', 'column_2_2', 'column_5']
    """
    names = [(name or "").strip() for name in header]
    if len(names) == n_columns and "" not in names and len(set(names)) == n_columns:
        return names
    names += [""] * (n_columns - len(names))
    taken: set[str] = set()
    repeats: dict[str, int] = {}  # a thousand columns of one name must not cost a million look-ups
    for i, name in enumerate(names):
        base = name = name or f"column_{i + 1}"
        while name in taken:
            repeats[base] = repeats.get(base, 1) + 1
            name = f"{base}_{repeats[base]}"
        taken.add(name)
        names[i] = name
    return names


def check_width(n_cells: int, n_rows: int, n_columns: int) -> None:
    """Raise if a few long rows would make a table of almost nothing but missing cells.

    A megabyte can hold a row of half a million cells and half a million rows of one.
    """
    if n_rows * n_columns > 100 * n_cells + 10_000_000:
        raise UnreadableError(
            f"has rows too different in length: {n_rows:,} rows, the longest with {n_columns:,} cells, but "
            f"only {n_cells:,} cells in all"
        )


def transposed(rows: list[list[Any]]) -> tuple[list[list[Any]], int]:
    """The columns of some rows, whose missing cells are None, and how many cells the rows have.

    >>> transposed([["a", "b"], ["c"]])
    ([['a', 'c'], ['b', None]], 3)
    """
    widths = [*map(len, rows)]
    n_cells, width = sum(widths), max(widths, default=0)
    if n_cells == width * len(rows):
        return [[*column] for column in zip(*rows, strict=True)], n_cells
    check_width(n_cells, len(rows), width)
    return [[*column] for column in zip_longest(*rows)], n_cells
