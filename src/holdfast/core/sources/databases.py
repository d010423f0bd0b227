"""Queries of databases: what `sql` says, of a DuckDB or SQLite file or a PostgreSQL server.

holdfast brings no driver: DuckDB's package or those of ADBC are imported when they are needed, and named if
they lack. Databases are opened for reading. An address may hold a password, so messages never quote it whole.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from holdfast.core.sources.columnar import first_line
from holdfast.errors import NOTHING_APPLIED, SourceError, UsageError, shorten_path


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


def shown(place: str) -> str:
    """An address without user, password and options.

    >>> shown("postgresql://me:secret@db.example:5432/shop?sslmode=require")
    'postgresql://db.example:5432/shop'
    """
    if "://" not in place:
        return place
    parts = urlsplit(place)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextlib.contextmanager
def queried(place: str | os.PathLike[str], sql: str, table: str) -> Iterator[tuple[Any, str]]:
    """(what hands out the rows of a query as Arrow data, what to call it); while the connection is open."""
    text = os.fspath(place)
    kind, name = kind_of(text), shown(text)
    if kind is None:
        raise UsageError(
            f"sql is given for table {table!r}, but {shorten_path(name)} is no database. {NOTHING_APPLIED} "
            "Next step: give a DuckDB or SQLite file, or an address: postgresql://HOST/DATABASE."
        )
    driver = DRIVERS[kind]
    try:
        library: Any = importlib.import_module(driver.module)
    except ImportError:
        raise UsageError(
            f"table {table!r} cannot be read from {driver.name}: its driver is not installed. "
            f"{NOTHING_APPLIED} Next step: pip install {driver.package}."
        ) from None
    try:
        with contextlib.ExitStack() as open_:
            if kind == "duckdb":
                connection = library.connect(_path(text), read_only=True)
                open_.callback(connection.close)
                rows = connection.sql(sql)
            else:
                connection = library.connect(_path(text) if kind == "sqlite" else text)
                open_.callback(connection.close)
                cursor = connection.cursor()
                open_.callback(cursor.close)
                cursor.execute(sql)
                rows = cursor.fetch_record_batch()
            if rows is None:
                raise UsageError(
                    f"the sql for table {table!r} has no rows to read: {shorten_path(sql)}. "
                    f"{NOTHING_APPLIED} Next step: give one SELECT."
                )
            yield rows, f"query of {name}"
    except library.Error as error:
        raise SourceError(
            f"{driver.name} refuses the query of {shorten_path(name)} for table {table!r}: "
            f"{first_line(error)}. {NOTHING_APPLIED} Next step: mend the sql, or check the address and your "
            "rights."
        ) from None


def _path(place: str) -> str:
    """The file of an address: sqlite:///shop.db is relative, sqlite:////data/shop.db is not."""
    if "://" not in place:
        return place
    return unquote(place.partition("://")[2].removeprefix("/"))
