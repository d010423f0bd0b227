"""How the files of a lake are read, the pieces they are read in, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from holdfast.core.words.codec import Coded
from holdfast.errors import UsageError, shorten

UnitKind = Literal["files", "lines", "zip", "tar", "bad"]


# A delimited file takes some 15 times its bytes of memory while it is read (100 MB x 8 columns: 1.5 GB), so
# this is 4 GB for each core. A table that is larger is none of very many small ones.
MAX_FILE_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class LakeReadOptions(Coded):
    """How files are read; one set of options for a whole lake.

    `header`: the first record of a delimited file holds the names; otherwise they are `column_1`,
    `column_2`, ... `delimiter` None is a tab for `.tsv` and `.tab`, and found on the first lines of other
    files. `encoding` None is told by a byte order mark, otherwise UTF-8, otherwise Windows-1252.

    The `json_` options name fields of a document, with dots for nested ones (`table.header`). None: the
    usual names are tried. A cell that is an object gives its field `json_text`.

    `follow_symlinks`: links below a folder are followed, wherever they lead; a source may be a link in any
    case. What is held whole has at most `max_file_bytes` (see `opening`).
    """

    header: bool = True
    delimiter: str | None = None
    encoding: str | None = None
    json_name: str | None = None
    json_headers: str | None = None
    json_rows: str | None = None
    json_columns: str | None = None
    json_text: str = "text"
    follow_symlinks: bool = False
    max_file_bytes: int = MAX_FILE_BYTES

    def __post_init__(self) -> None:
        d = self.delimiter
        if d is not None and (len(d) != 1 or not d.isascii() or d in '\r\n"\0'):
            raise UsageError(
                f"the delimiter must be one ASCII character, no line end and no quote, not {shorten(d)}."
            )
        if self.encoding is not None:
            try:
                "\n".encode(self.encoding)
            except (LookupError, UnicodeError, ValueError):  # also codecs that are not for text, such as hex
                raise UsageError(
                    f"encoding {shorten(self.encoding)} is not known. Next step: try utf-8, utf-16 or cp1252."
                ) from None
        for name in ("json_name", "json_headers", "json_rows", "json_columns", "json_text"):
            if getattr(self, name) == "":
                raise UsageError(f"the option {name} is empty. Expected: the name of a field.")
        most = self.max_file_bytes
        if isinstance(most, bool) or not isinstance(most, int) or most < 1:
            raise UsageError(f"max_file_bytes is {shorten(most)}; expected a whole number from 1.")
        if self.json_rows is not None and self.json_columns is not None:
            raise UsageError(
                f"both json_rows ({shorten(self.json_rows)}) and json_columns "
                f"({shorten(self.json_columns)}) are given. Expected: the one that documents have."
            )


@dataclass(frozen=True, slots=True)
class Unit(Coded):
    """What one task reads.

    - `files`: whole files, `paths` relative to the folder `root`;
    - `lines`: lines of the JSON-lines file `root`; `span` holds the byte where the first begins, the byte
      behind the last, and the number of the first; `prefix` is the file's name;
    - `zip`: members of the archive `root`: their names in `paths`, and in `places` where each is (position
      of its header, stored size, size, method, CRC), so that the archive's directory is parsed only once;
    - `tar`: all of the archive `root`, which can only be streamed;
    - `bad`: the files or folders `paths` below `root` are not read, for the reason in `prefix`.

    `prefix` comes before the names of an archive's members. `follow`: its files may be symbolic links.
    `n_bytes` is the work, in bytes of text as far as that is known without reading.
    """

    kind: UnitKind
    root: str
    n_bytes: int
    paths: tuple[str, ...] = ()
    prefix: str = ""
    span: tuple[int, int, int] = (0, 0, 1)
    places: tuple[tuple[int, ...], ...] = ()
    follow: bool = False


@dataclass(slots=True)
class RawTable:
    """A table as read: all columns have `n_rows` cells, each a text or None for a missing one."""

    name: str
    source: str
    header: list[str]
    columns: list[list[str | None]]
    n_rows: int
    encoding: str


@dataclass(frozen=True, slots=True)
class BadFile:
    """A file, member (`archive!member`) or document (`file#line`) that cannot be read, and why."""

    source: str
    reason: str


class UnreadableError(Exception):
    """Why something cannot be read. It never leaves the package: it becomes a `BadFile`."""
