"""The delimiter of a CSV file: by its ending, and where it cannot be that, by its first rows.

A file is cut by a comma (`.tsv`: a tab), unless its first record is then a single field that has another
usual delimiter in it. Such a file is cut by that one if it cuts all rows of the sample alike, and no other
one does; a note says so, and the batches of the table are cut alike. Else it is an error, as it may be one
column. So no file is read otherwise that could be read without this.

A header that a comma cuts may have another one, too (`id;price, EUR`). If only that one cuts all rows of the
sample alike, it is the delimiter; if both do, and the comma not into more fields, nobody can tell: an error.
So it is of a file without a header (`1,5;2,25`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.core.sources.packed import bare_name
from holdfast.core.sources.read_options import ReadOptions
from holdfast.errors import NOTHING_APPLIED, SourceError, shorten

USUAL = ",;\t|"
_NAMES = {"\t": "a tab"}


class UnclearDelimiterError(SourceError):
    """The first record is a single field that another delimiter would cut."""


def delimiter_of(path: str, options: ReadOptions) -> str:
    if options.delimiter is not None:
        return options.delimiter
    return "\t" if bare_name(path).lower().endswith((".tsv", ".tab")) else ","


def others_in(field: str, delimiter: str) -> list[str]:
    """The other usual delimiters in a field, that which is in it most often first."""
    return sorted((d for d in USUAL if d != delimiter and d in field), key=field.count, reverse=True)


def check_cut(fields: Sequence[str], delimiter: str, options: ReadOptions, where: str, *, table: str) -> None:
    """Raise if a first record, cut by a delimiter that nobody has asked for, seems to have another one."""
    if len(fields) > 1 or options.delimiter is not None or not (others := others_in(fields[0], delimiter)):
        return
    raise UnclearDelimiterError(
        f"{where} for table {table!r} has a single column {shorten(fields[0])} when read with delimiter "
        f"{delimiter!r}. {NOTHING_APPLIED} Next step: give the delimiter, probably --delimiter "
        f"{_option(others[0])} (or {_option(delimiter)}, if it is one column)."
    )


def says_more(names: Sequence[str], cuts: Mapping[str, int], quote: str) -> bool:
    """Whether a header has more fields than other delimiters cut it into, and no quote that only these close.

    >>> says_more(["id", "lat|lon"], {"|": 2}, '"'), says_more(["id", "v", "lat|lon"], {"|": 2}, '"')
    (False, True)
    >>> says_more(['id;"a', " b", ' c";q'], {";": 2}, '"')
    False
    """
    return len(names) > max(cuts.values()) and not (quote and any(quote in name for name in names))


def two_cuts(cuts: Mapping[str, int], where: str, *, table: str) -> str:
    """What is said of a file that several delimiters cut alike, by how many columns each makes of it."""
    ways = ", ".join(f"{n} by {_option(delimiter)}" for delimiter, n in cuts.items())
    options = " or ".join(f"--delimiter {_option(delimiter)}" for delimiter in cuts)
    return (
        f"{where} for table {table!r} may have several delimiters, each of which cuts its "
        f"first rows alike (columns: {ways}). {NOTHING_APPLIED} Next step: give the delimiter, {options}."
    )


def delimiter_note(delimiter: str) -> str:
    """
    >>> delimiter_note(";")
    '; is the delimiter (--delimiter)'
    """
    return f"{_NAMES.get(delimiter, delimiter)} is the delimiter (--delimiter)"


def other_cut(names: Sequence[str], columns: Sequence[str]) -> str:
    """What to do about a header that another delimiter would cut into columns of the table; "": nothing.

    >>> other_cut(["id,v"], ["id", "v", "b"]), other_cut(["id"], ["v"]), other_cut(["a", "b"], ["a"])
    (" Its fields seem to be between other delimiters: give --delimiter ','.", '', '')
    """
    [field] = names if len(names) == 1 else [""]
    for delimiter in others_in(field, ""):
        if {name.strip() for name in field.split(delimiter)} <= {*columns}:
            return f" Its fields seem to be between other delimiters: give --delimiter {_option(delimiter)}."
    return ""


def _option(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else f"'{delimiter}'"
