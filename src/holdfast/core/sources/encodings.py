"""Encodings of text files: which can be cut, what a byte order mark is, which one a file seems to have."""

from __future__ import annotations

import codecs
import functools
from typing import Any

import pyarrow as pa

from holdfast.core.sources.read_options import ReadOptions

BOM = codecs.BOM_UTF8
# The longer marks first: that of UTF-32 begins with that of UTF-16.
_WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def is_utf8(options: ReadOptions) -> bool:
    return codecs.lookup(options.encoding).name in ("utf-8", "utf-8-sig", "ascii")


@functools.cache
def is_single_byte(encoding: str) -> bool:
    """Whether every byte is a character and ASCII is itself, so that records can be found in raw bytes."""
    ascii_bytes = bytes(range(128))
    try:
        if ascii_bytes.decode(encoding) != ascii_bytes.decode("ascii"):
            return False
    except UnicodeError:
        return False
    pairs = (bytes([b, second]) for b in range(128, 256) for second in (0x41, 0xA1))
    return all(len(pair.decode(encoding, "replace")) == 2 for pair in pairs)


def wide_encoding(start: bytes) -> str | None:
    """The encoding of more than a byte for each character that a file seems to have, by its first bytes.

    Its mark says so, or NULs where UTF-16 has them in ASCII letters: in a header or the start of JSON.

    >>> wide_encoding("a,b".encode("utf-16")), wide_encoding("a,b".encode("utf-16-be")), wide_encoding(b"a,b")
    ('utf-16', 'utf-16-be', None)
    """
    for mark, encoding in _WIDE_MARKS:
        if start.startswith(mark):
            return encoding
    if len(start) >= 4 and start[0] and start[2] and start[1] == 0 == start[3]:
        return "utf-16-le"
    if len(start) >= 4 and start[1] and start[3] and start[0] == 0 == start[2]:
        return "utf-16-be"
    return None


def without_mark(text: str, encoding: str) -> str:
    """A decoded file without its byte order mark: one at most, and encodings that write one drop it.

    >>> without_mark("\ufeff\ufeffa", "utf-16-le") == "\ufeffa" == without_mark("\ufeffa", "utf-16")
    True
    """
    writes_mark = "".encode(encoding) != b""
    return text if writes_mark else text.removeprefix("\ufeff")


def bom_size(body: Any) -> int:
    return len(BOM) if body.size >= len(BOM) and body.slice(0, len(BOM)).to_pybytes() == BOM else 0


def for_arrow(body: Any) -> Any:
    """A split's bytes for Arrow, whose readers drop a byte order mark; the file's own is gone already.

    What looks like one here is the first cell's first character, so Arrow gets one more to drop.
    """
    return pa.py_buffer(BOM + body.to_pybytes()) if bom_size(body) else body
