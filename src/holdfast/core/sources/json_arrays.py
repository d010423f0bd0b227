"""A JSON file that is one array of objects, as JSON lines: the same bytes, with line ends between objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

U8 = NDArray[np.uint8]

# Bytes of a text that are looked at together: arrays of as many 32-bit numbers are in memory meanwhile.
BLOCK = 1 << 22
_NEWLINE, _RETURN, _BLANK, _QUOTE, _BACKSLASH, _COMMA, _CLOSE = (np.uint8(ord(c)) for c in '\n\r "\\,]')
_DEPTH = np.zeros(256, dtype=np.int32)
_DEPTH[[ord("["), ord("{")]] = 1
_DEPTH[[ord("]"), ord("}")]] = -1


def is_array(start: bytes) -> bool:
    """Whether JSON text is an array, by its first bytes."""
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


class UnclosedArray(ValueError):
    """An array that does not end; `last` is what there is of its last object, which is number `n_objects`."""

    def __init__(self, lines: bytearray) -> None:
        super().__init__("the array is not closed")
        self.n_objects, self.last = lines.count(b"\n") + 1, lines.rpartition(b"\n")[2]


def as_lines(body: Any) -> Any:
    r"""An array of objects as a line for each; UnclosedArray if it does not end.

    Outside of texts a line end is a blank like any other, so it becomes one, and the commas between the
    objects become line ends. What follows the array stays behind the last object, for its error. Cost: some
    passes over blocks of bytes; memory: the text once more.

    >>> as_lines(pa.py_buffer(b'[{"a": "],",\n"b": [1, 2]},\n {"a": 3}]\n')).to_pybytes()
    b' {"a": "],", "b": [1, 2]}\n  {"a": 3}  '
    """
    text = bytearray(body.to_pybytes())
    first, last = text.find(b"["), text.rfind(b"]")
    codes = np.frombuffer(text, np.uint8)
    depth, quoted, escaped, closed = 0, 0, False, -1
    for low in range(0, len(codes), BLOCK):
        block = codes[low : low + BLOCK]
        is_escaped = _escaped(block, escaped)
        escaped = bool(is_escaped[-1])
        quotes = (block == _QUOTE) & ~is_escaped[:-1]
        inside = (np.cumsum(quotes, dtype=np.int32) + quoted) & 1
        quoted = int(inside[-1])
        outside = (inside == 0) & ~quotes
        depths = np.cumsum(np.where(outside, _DEPTH[block], 0), dtype=np.int32) + depth
        depth = int(depths[-1])
        ends = np.flatnonzero(outside & (depths == 0) & (block == _CLOSE))
        if closed < 0 and len(ends):
            closed = low + int(ends[0])
        block[outside & ((block == _NEWLINE) | (block == _RETURN))] = _BLANK
        block[outside & (block == _COMMA) & (depths == 1)] = _NEWLINE
    codes[first] = _BLANK
    if closed < 0:
        raise UnclosedArray(text)
    if closed == last and not text[last + 1 :].strip():
        codes[last] = _BLANK
    return pa.py_buffer(bytes(text))


def _escaped(block: U8, before: bool) -> NDArray[np.bool_]:
    """Whether each byte, and the one behind the last, follows a backslash that is not escaped itself.

    `before`: whether the first one does. So does each byte behind a run of an odd number of backslashes.
    """
    slash = block == _BACKSLASH
    escaped = np.zeros(len(block) + 1, dtype=np.bool_)
    if before:
        escaped[0], slash[0] = True, False
    at = np.flatnonzero(slash)
    if len(at):
        starts = np.flatnonzero(np.diff(at, prepend=-2) != 1)
        lengths = np.diff(np.append(starts, len(at)))
        escaped[(at[starts] + lengths)[lengths % 2 == 1]] = True
    return escaped
