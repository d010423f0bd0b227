"""The one exception tree: everything that holdfast raises on purpose.

Every message names the table (and version, where one exists), the offending value, what was
expected, whether anything was applied, and the next step. Values are cut by `shorten`, so a
message never carries a whole cell of a user's data into a log.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

NOTHING_APPLIED = "Nothing was applied."


def shorten(value: object, limit: int = 60) -> str:
    """The value's repr, cut to `limit` characters.

    >>> shorten("a" * 100, 12)
    "'aaaaaaaa..."
    >>> shorten(None)
    'NULL'
    """
    if value is None:
        return "NULL"
    if isinstance(value, str | bytes) and len(value) > limit:
        value = value[:limit]  # repr of a huge cell would be built only to be thrown away
        text = repr(value)
        return text[: limit - 3] + "..."
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def plain_address(place: str) -> str:
    """An address without user, password and options, which no message may tell; a path as it is.

    >>> plain_address("postgresql://me:secret@db.example:5432/shop?sslmode=require")
    'postgresql://db.example:5432/shop'
    >>> plain_address("host=db.example user=me password=secret"), plain_address("data/a@b.csv")
    ('host=db.example user=me ...', 'data/a@b.csv')
    """
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/+", place)
    if scheme is None:
        return re.sub(r"(?i)\bpassword\s*=.*", "...", place)
    rest, _, options = place[scheme.end() :].partition("?")
    if "@" in options:  # whether the `?` is of a password nobody knows
        return f"{scheme[0]}..."
    if not scheme[0].startswith("abfs"):  # there a container stands before the `@`
        rest = rest.rpartition("@")[2]
    is_glob = options and not re.match(r"\w+=", options)
    return f"{scheme[0]}{rest}?{options}" if is_glob else scheme[0] + rest


def shorten_path(path: str, limit: int = 120) -> str:
    """The path's repr, cut at its start: the end says which file it is.

    >>> shorten_path("/a/very/long/way/to/orders.csv", 18)
    "'.../to/orders.csv'"
    """
    path = plain_address(path)
    return repr(path if len(path) <= limit else f"...{path[3 - limit :]}")


def shorten_row(row: Iterable[object], limit: int = 200) -> str:
    """A row as `(1, 'a', NULL)`, each value and the whole cut.

    >>> shorten_row([1, "a", None])
    "(1, 'a', NULL)"
    """
    text = ", ".join(shorten(value) for value in row)
    return f"({text})" if len(text) <= limit else f"({text[: limit - 3]}...)"


def plural(n: int, noun: str) -> str:
    """
    >>> plural(1, "row"), plural(2500, "row")
    ('1 row', '2,500 rows')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def one_of_type(value: object) -> str:
    """What a value is, with its article.

    >>> one_of_type(5), one_of_type({})
    ('an int', 'a dict')
    """
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


def listing(names: Sequence[str], limit: int = 12) -> str:
    """The first names, and how many more there are.

    >>> listing(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    plain = [repr(n)[1:-1] for n in names[:limit]]
    shown = ", ".join(n if len(n) <= 60 else f"{n[:57]}..." for n in plain)
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def hint_at(name: str, names: Iterable[str]) -> str:
    """A question for which name one is meant, whatever its case; "" if none is near.

    >>> hint_at("email", ["id", "EMAIL"]), hint_at("emial", ["id", "email"]), hint_at("x", ["id"])
    (" Did you mean 'EMAIL'?", " Did you mean 'email'?", '')
    """
    by_case: dict[str, str] = {}
    for one in names:
        by_case.setdefault(one.casefold(), one)
    near = difflib.get_close_matches(name.casefold(), by_case, n=1)
    return f" Did you mean {by_case[near[0]]!r}?" if near else ""


class HoldfastError(Exception):
    """Base of all errors that holdfast raises on purpose."""


class UsageError(HoldfastError):
    """A call that cannot be meant: contradicting or missing arguments."""


class SourceError(HoldfastError):
    """A source cannot be read: missing, empty, ragged, not what its name says."""


class SchemaError(HoldfastError):
    """A source's columns do not fit the table."""


class UnknownColumnError(SchemaError):
    """A column is named that the table does not have."""

    @classmethod
    def from_missing(
        cls, table: str, version: int | None, name: str, columns: Sequence[str]
    ) -> UnknownColumnError:
        where = f"table {table!r}" + (f" (version {version})" if version is not None else "")
        hint = hint_at(name.removeprefix(f"{table}."), columns)
        hint = " An arrow is written ->." if re.search("[→⇒]|=>|-$", name) else hint
        return cls(f"{where} has no column {shorten(name)}. Columns: {listing(columns)}.{hint}")


class ColumnTypeError(SchemaError):
    """A value cannot be of its column's type."""


class DuplicateColumnError(SchemaError):
    """A source has two columns of one name."""


class UnknownTableError(HoldfastError):
    """A table is named that the workspace does not track."""

    @classmethod
    def from_missing(cls, name: str, tables: Sequence[str]) -> UnknownTableError:
        hint = hint_at(name, tables)
        if not tables:
            return cls(
                f"the workspace has no table {shorten(name)}: it tracks none. Start with 'holdfast track'."
            )
        return cls(f"the workspace has no table {shorten(name)}. Tables: {listing(tables)}.{hint}")


class TableExistsError(HoldfastError):
    """A table is tracked already."""


class AbsentRowError(HoldfastError):
    """A batch deletes or updates a row that the table does not have."""


class AmbiguousRowError(HoldfastError):
    """A row key names more than one row."""


class WorkspaceError(HoldfastError):
    """The workspace itself cannot be used."""


class StateFormatError(WorkspaceError):
    """The workspace is of another format than this holdfast reads."""


class StoreError(WorkspaceError):
    """An object store cannot be reached, or refuses a request (`denied`)."""

    denied = False

    def __init__(self, message: str, *, denied: bool = False) -> None:
        super().__init__(message)
        self.denied = denied


class DamagedFileError(WorkspaceError):
    """A file of the workspace is missing, cut short or altered."""


class ConflictError(WorkspaceError):
    """Another writer committed first; nothing was applied and the batch can be tried again."""


class EngineError(HoldfastError):
    """Spark or Java cannot be started, or a task failed for a reason that is not the user's input."""


def hides_interrupt(error: BaseException | None) -> bool:
    """Whether an error only hides an interrupt.

    PySpark cancels the job and then fails to collect it; while it talks to Java, it cannot even cancel.

    >>> try:
    ...     try:
    ...         raise KeyboardInterrupt
    ...     finally:
    ...         raise ValueError("the job was cancelled")
    ... except ValueError as error:
    ...     hides_interrupt(error)
    True
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt) or "reentrant call" in str(error):
            return True
        error = error.__context__ or error.__cause__
    return False
