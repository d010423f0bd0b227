"""Lines of CSV files that are no records: comments before the header, and `sep=;`, as spreadsheets write it.

Other comments are skipped by an option. What `sep=` says is the delimiter, unless another one is given.
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from holdfast.core.sources.csv_delimiter import others_in
from holdfast.core.sources.csv_walk import codes_of, in_quotes
from holdfast.errors import plural

MARK = b"#"
HEADER_NOTE = "the header begins with #; --comment '#' skips such lines"
SEP_NOTE = "the first line says the delimiter (sep=) and is skipped"
# In so many bytes, of which three may be a byte order mark, `sep=` is seen, and the first comment.
START = 16
_SEP = re.compile(rb"(?i)\"?sep=([^\w\s\"]|\t)\"?(?:\r\n|\n|\r)")
_LINE_END = re.compile(rb"\r\n|\n|\r")


def preamble_size(
    start: bytes, delimiter: str, comment: str | None, *, given: bool, whole: bool
) -> int | None:
    r"""The bytes of the comment lines that a file begins with.

    Recognised are lines with a `#` first that have not as many fields as the first line without one: else the
    last of them is the header. That it is one field, too, says so only if the delimiter is `given`, or that
    line has no other usual one in it. If there is no other line, they are rows. `comment` is the option;
    nothing is recognised where it is given. None if more of the file has to be looked at; `whole`: this is
    all.

    >>> size = lambda text: preamble_size(text, ",", None, given=False, whole=True)
    >>> size(b"# by me, today, here\n#\na,b\n1,2\n"), size(b"#a,b\n1,2\n"), size(b"#a\nb\n")
    (23, 0, 0)
    >>> size(b"# by me\na;b\n1;2\n")
    8
    """
    if (sep := _SEP.match(start)) is not None:
        return sep.end()
    if comment is not None or not start.startswith(MARK):
        return 0
    before, at = 0, 0
    while start.startswith(MARK, at):
        before, at = at, _line_end(start, at)
    end = _line_end(start, at)
    if not whole and not start.endswith((b"\n", b"\r"), at, end):
        return None
    if at == len(start):
        return 0
    d = delimiter.encode()
    n = start.count(d, at, end)
    if start.count(d, before, at) != n:
        return at
    unlike = not n and not given and others_in(start[at:end].decode(errors="replace"), delimiter)
    return at if unlike else before


def has_preamble(start: bytes) -> bool:
    """Whether a file that begins so may have lines before its first record."""
    return start.startswith(MARK) or _SEP.match(start) is not None


def said_delimiter(start: bytes) -> str | None:
    """The delimiter that the first line of a file says.

    >>> said_delimiter(b"sep=;\\r\\nid;v\\r\\n"), said_delimiter(b"sep=x\\n"), said_delimiter(b"id;v\\n")
    (';', None, None)
    """
    sep = _SEP.match(start)
    return None if sep is None or not sep[1].isascii() else sep[1].decode()


def preamble_note(lines: bytes) -> str:
    """What is said of lines that are skipped before the first record."""
    if _SEP.match(lines) is not None:
        return SEP_NOTE
    return f"{plural(n_lines(lines), 'line')} with # at the start skipped; --comment '' reads them"


def _line_end(text: bytes, start: int) -> int:
    """The position behind the line end at or behind `start`; the end of the text if there is none."""
    end = _LINE_END.search(text, start)
    return len(text) if end is None else end.end()


def behind_lines(text: bytes, lines: bytes) -> int:
    """The position in a text behind as many lines as there are in another one."""
    at = 0
    for _ in _LINE_END.finditer(lines):
        at = _line_end(text, at)
    return at


def n_lines(text: bytes) -> int:
    return len(_LINE_END.findall(text))


def without_comments(body: Any, mark: str, delimiter: str, quote: str) -> Any:
    """The text with its comment lines blank: line numbers stay. A line inside of quotes is none."""
    text = body.to_pybytes()
    pattern = re.compile(b"(?m)^" + re.escape(mark.encode()) + b"[^\\r\\n]*")
    if not quote or quote.encode() not in text:
        return pa.py_buffer(pattern.sub(b"", text))
    from holdfast.core.sources.kernels import records

    parts, copied, walked = [], 0, 0
    state = records.new_state()
    for match in pattern.finditer(text):
        if match.start() < walked:
            continue
        piece = text[walked : match.start()]
        if piece:
            limits = records.NO_LIMIT, records.NO_LIMIT
            records.walk_records(codes_of(piece), ord(delimiter), ord(quote), *limits, state)
        walked = match.start()
        if not in_quotes(state):
            parts.append(text[copied : match.start()])
            copied = walked = match.end()
    return pa.py_buffer(b"".join([*parts, text[copied:]]))
