"""Queries of databases: what `sql` says, of a DuckDB or SQLite file or a PostgreSQL server.

holdfast brings no driver: DuckDB's package or those of ADBC are imported when they are needed, and named if
they lack. Databases are opened for reading: what would change one is refused by itself. Rows are read as they
come. An address may hold a password, so messages never quote it whole, nor what a driver says of it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

import pyarrow as pa

from holdfast.core.sources.postgres_columns import PostgresColumns
from holdfast.core.sources.sqlite_columns import SqliteRows
from holdfast.errors import NOTHING_APPLIED, SourceError, UsageError, plain_address, shorten, shorten_path

_pa: Any = pa  # third-party stubs lag behind Arrow


class Driver(NamedTuple):
    """How to reach a kind of database."""

    name: str
    module: str
    package: str  # to install


DRIVERS: Mapping[str, Driver] = {
    "duckdb": Driver("DuckDB", "duckdb", "duckdb"),
    "sqlite": Driver("SQLite", "adbc_driver_sqlite.dbapi", "adbc-driver-sqlite"),
    "postgresql": Driver("PostgreSQL", "adbc_driver_postgresql.dbapi", "adbc-driver-postgresql"),
}
_SCHEMES = {"duckdb": "duckdb", "sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}
# Rows from which SQLite's driver takes the types of columns: those of one of its batches.
TYPING_ROWS = 65_536
# Letters of a driver's reason that are shown.
REASON = 240
# What ADBC says first: its own status, and whose error it is.
_STATUS = re.compile(r"^(?:[A-Z_]+: )?(?:\[[A-Za-z]+\] )?")
# What follows the reason: where it is in the query, and the query itself.
_TRAIL = re.compile(r"\n+(?:LINE \d+|Query was|query): |\.\s+SQLSTATE: ")
# What libpq takes for the end of user and password, and what is no escape.
_AMBIGUOUS = re.compile(r"[/?#\[\]@]|:.*:|%(?![0-9A-Fa-f]{2})")
# What the files begin with; DuckDB's have a checksum first.
_SQLITE_MARK, _DUCKDB_MARK = b"SQLite format 3\0", b"DUCK"


def kind_of(place: str) -> str | None:
    """The kind of a database, by its address or by its file; None if it is none.

    >>> kind_of("postgres://me@db.example/shop"), kind_of("orders.csv")
    ('postgresql', None)
    """
    scheme = place.partition("://")[0].lower() if "://" in place else ""
    if scheme:
        return _SCHEMES.get(scheme)
    try:
        with open(place, "rb") as file:
            start = file.read(16)
    except OSError:
        return None
    if start == _SQLITE_MARK:
        return "sqlite"
    return "duckdb" if start[8:12] == _DUCKDB_MARK else None


class Query(NamedTuple):
    """The rows of a query, while its connection is open."""

    rows: Any  # hands out Arrow data
    description: str
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def queried(place: str | os.PathLike[str], sql: str, table: str, *, batch: bool = False) -> Iterator[Query]:
    """The rows of a query; while the connection is open. The columns of a `batch` are those of its table."""
    text = os.fspath(place)
    kind = kind_of(text)
    if kind is None and "://" not in text and not os.path.exists(text):
        raise SourceError(
            f"there is no file {shorten_path(text)} for table {table!r}. {NOTHING_APPLIED} Next step: check "
            f"the path; the working folder is {shorten(os.getcwd())}."
        )
    if kind is None:
        raise UsageError(
            f"sql is given for table {table!r}, but {shorten_path(text)} is no database. {NOTHING_APPLIED} "
            "Next step: give a DuckDB or SQLite file, or an address: postgresql://HOST/DATABASE."
        )
    if not sql.strip():
        raise _no_rows(sql, table)
    if kind == "postgresql":
        _check_address(text, table)
    elif not os.path.isfile(_path(text)):
        raise SourceError(
            f"there is no file {shorten_path(text)} for table {table!r}. {NOTHING_APPLIED} Next step: check "
            f"the address; {kind}:///shop.db is relative, {kind}:////data/shop.db is not."
        )
    driver = DRIVERS[kind]
    try:
        library: Any = importlib.import_module(driver.module)
    except ImportError:
        raise UsageError(
            f"table {table!r} cannot be read from {driver.name}: its driver is not installed. "
            f"{NOTHING_APPLIED} Next step: pip install {driver.package}."
        ) from None
    with contextlib.ExitStack() as open_:
        try:
            connection = library.connect(**_opening(kind, text))
        except library.Error as error:
            raise SourceError(
                f"{driver.name} does not open {shorten_path(text)} for table {table!r}: "
                f"{_reason(error, text)}. {NOTHING_APPLIED} Next step: check the address, the user and the "
                "password, and whether the database is there."
            ) from None
        open_.callback(connection.close)
        description = f"query of {plain_address(text)}"
        notes: tuple[str, ...] = ()
        try:
            if kind == "duckdb":
                rows = connection.sql(sql)
            else:
                cursor = connection.cursor()
                open_.callback(cursor.close)
                rows, notes = _answer(cursor, kind, sql, table)
                notes = () if batch else notes
                rows = _noted(rows, functools.partial(_refusal, driver, text, table))
                if kind == "sqlite" and rows is not None:
                    rows = SqliteRows(rows, functools.partial(_mixed, library, connection, sql))
        except library.Error as error:
            raise _refusal(driver, text, table, error) from None
        if rows is None:
            raise _no_rows(sql, table)
        yield Query(rows, description, notes)


def _answer(cursor: Any, kind: str, sql: str, table: str) -> tuple[Any, tuple[str, ...]]:
    """(a reader of the rows, notes) of a query."""
    if kind == "postgresql":
        cursor.execute("SET TRANSACTION READ ONLY")
    else:
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(TYPING_ROWS)})
    cursor.execute(sql)
    reader = cursor.fetch_record_batch()
    if not len(reader.schema):
        return None, ()
    if kind != "postgresql":
        return reader, ()
    columns = PostgresColumns.of(reader.schema, table)
    converted = (columns.converted(batch) for batch in reader)
    return _pa.RecordBatchReader.from_batches(columns.schema, converted), columns.notes


def _mixed(library: Any, connection: Any, sql: str, names: Sequence[str]) -> dict[str, list[str]]:
    """The storage classes of columns of a query of SQLite that have several in the first rows; of what is no
    SELECT nothing is known."""
    columns = ['"{}"'.format(name.replace('"', '""')) for name in names]
    kinds = ", ".join(f"group_concat(DISTINCT typeof({column}))" for column in columns)
    rows = f"SELECT * FROM ({sql.strip().rstrip(';')}\n) LIMIT {TYPING_ROWS}"
    with contextlib.closing(connection.cursor()) as cursor, contextlib.suppress(library.Error):
        cursor.execute(f"SELECT {kinds} FROM ({rows})")
        several = [sorted({*(listed or "").split(",")} - {"null"}) for listed in cursor.fetchone()]
        return {name: kinds for name, kinds in zip(names, several, strict=True) if len(kinds) > 1}
    return {}


def _noted(reader: Any, refusal: Callable[[Exception], Exception]) -> Any:
    """The reader, of which what breaks on the way is told as the query's."""
    if reader is None:
        return None

    def batches() -> Iterator[Any]:
        try:
            yield from reader
        except (pa.ArrowException, OSError) as error:
            raise refusal(error) from None

    return _pa.RecordBatchReader.from_batches(reader.schema, batches())


def _no_rows(sql: str, table: str) -> UsageError:
    return UsageError(
        f"the sql for table {table!r} has no rows to read: {shorten(sql)}. {NOTHING_APPLIED} Next step: give "
        "one SELECT."
    )


def _refusal(driver: Driver, place: str, table: str, error: Exception) -> SourceError:
    step = "mend the sql, or check your rights"
    if driver.name == "SQLite" and "Type mismatch" in str(error):
        # Its driver takes the type of a column from the first rows.
        step = "give the column one type in the sql: CAST(x AS TEXT), or AS REAL"
    return SourceError(
        f"{driver.name} refuses the query of {shorten_path(place)} for table {table!r}: "
        f"{_reason(error, place)}. {NOTHING_APPLIED} Next step: {step}."
    )


def _reason(error: Exception, place: str) -> str:
    """What a driver says is wrong, without how it came to know it, and without a password."""
    text = " ".join(_TRAIL.split(str(error))[0].split())
    for mark in ("FATAL: ", "ERROR: "):
        text = text.rpartition(mark)[2]
    text = _STATUS.sub("", text)
    for secret in sorted(_secrets(place), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text[:REASON].rstrip(" .:")


def _secrets(place: str) -> set[str]:
    """What of an address must not be told: itself, the user's part of it, the password."""
    if "://" not in place:
        return set()
    rest = place.partition("://")[2]
    user = rest.rpartition("@")[0]
    password = user.partition(":")[2]
    options = [value for name, value in parse_qsl(rest.partition("?")[2]) if "password" in name]
    secrets = {
        place,
        place.partition("://")[2],
        user if password else "",
        password,
        unquote(password),
        *options,
    }
    return {secret for secret in secrets if secret}


def _check_address(place: str, table: str) -> None:
    """Raise if a password has letters that would be taken for another part of the address."""
    user = place.partition("://")[2].rpartition("@")[0]
    if _AMBIGUOUS.search(user):
        raise UsageError(
            f"the address of the database for table {table!r} cannot be read: its user or its password has "
            f"letters that mean something else in an address. {NOTHING_APPLIED} Next step: write %40 for @, "
            "%2F for /, %3A for :, %3F for ?, %23 for #, %25 for %."
        )


def _opening(kind: str, place: str) -> dict[str, Any]:
    """How a database is opened for reading."""
    if kind == "duckdb":
        return {"database": _path(place), "read_only": True}
    if kind == "sqlite":
        return {"uri": f"file:{quote(os.path.abspath(_path(place)))}?mode=ro"}
    scheme, _, rest = place.partition("://")
    return {"uri": f"{scheme.lower()}://{rest}"}


def _path(place: str) -> str:
    """The file of an address: sqlite:///shop.db is relative, sqlite:////data/shop.db is not."""
    if "://" not in place:
        return place
    return unquote(place.partition("://")[2].removeprefix("/"))
