"""Tables of other libraries: whatever hands out Arrow data, pandas DataFrames, and lists of dicts.

pyarrow's tables, readers and datasets; Delta tables; and by the C stream of Arrow polars, DuckDB, ADBC and
all that have it (`__arrow_c_stream__`). A stream is read once, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from holdfast.core.sources import frames
from holdfast.core.sources.columnar import first_line
from holdfast.errors import NOTHING_APPLIED, ColumnTypeError, SourceError, UsageError, one_of_type, shorten

_pa: Any = pa  # third-party stubs lag behind Arrow
# What polars has and Arrow has not, and what to do.
_AS_DECIMAL = "cast it, to Int64 or to Decimal(38, 0)"
_ONLY_POLARS = {
    "Object": "cast it to text, or leave it out",
    "Int128": _AS_DECIMAL,
    "UInt128": _AS_DECIMAL,
}
# Rows of a batch of a table in memory.
BATCH_ROWS = 65_536


def opened_stream(source: Any, table: str) -> tuple[str, pa.Schema, Iterable[Any]]:
    """(what it is, its schema, its record batches) of a table of another library."""
    library = type(source).__module__.split(".")[0]
    kind = f"{library} {type(source).__name__}"
    if library == "pandas" and hasattr(source, "columns"):
        source = frames.arrow_table(source, table, f"the {kind}")
    elif isinstance(source, list):
        kind = "list of rows"
        source = frames.arrow_table(_framed(source, table), table, f"the {kind}", of_rows=True)
    elif library == "polars":
        source = _of_polars(source, kind, table)
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return kind, source.schema, source.to_batches(BATCH_ROWS)
    reader = _reader(source, kind, table)
    return kind, reader.schema, _batches(reader, kind, table)


def _framed(rows: list[Any], table: str) -> Any:
    """The rows as a DataFrame of objects: keys in the order in which they come up, those that lack NULL."""
    import pandas as pd

    if not all(issubclass(kind, dict) for kind in set(map(type, rows))):
        odd = next(row for row in rows if not isinstance(row, dict))
        raise UsageError(
            f"the list of rows for table {table!r} has {shorten(odd)} in it, which is no dict. "
            f"{NOTHING_APPLIED} Next step: give each row as a dict from columns to values."
        )
    return pd.DataFrame(rows, dtype=object)


def _of_polars(source: Any, kind: str, table: str) -> Any:
    """What holds the rows of a polars frame or series; a lazy one is computed batch by batch.

    Arrow has no form for what polars itself adds: of an Object it would hand out addresses of memory.
    """
    if hasattr(source, "to_frame"):  # a series
        source = source.to_frame()
    try:
        columns = source.collect_schema()
    except Exception as error:  # a lazy frame is checked here
        raise _broken(error, kind, table) from None
    for name, dtype in columns.items():
        if str(dtype) in _ONLY_POLARS:
            raise ColumnTypeError(
                f"column {shorten(name)} of table {table!r} is of type {dtype} in the {kind}, which holdfast "
                f"does not keep. {NOTHING_APPLIED} Next step: {_ONLY_POLARS[str(dtype)]}."
            )
    return _lazy_reader(source, kind, table) if hasattr(source, "collect") else source


def _lazy_reader(source: Any, kind: str, table: str) -> Any:
    schema = _pa.RecordBatchReader.from_stream(source.head(0).collect()).schema

    def batches() -> Iterator[Any]:
        try:
            older = not hasattr(source, "collect_batches")
            for frame in [source.collect()] if older else source.collect_batches():
                yield from _pa.RecordBatchReader.from_stream(frame, schema)
        except Exception as error:
            raise _broken(error, kind, table) from None

    return _pa.RecordBatchReader.from_batches(schema, batches())


def _reader(source: Any, kind: str, table: str) -> Any:
    """A reader of the record batches of a source."""
    try:
        if isinstance(source, pa.RecordBatchReader):
            return source
        if hasattr(source, "__arrow_c_stream__"):
            return _pa.RecordBatchReader.from_stream(source)
        if hasattr(source, "to_pyarrow_dataset"):  # a Delta table
            source = source.to_pyarrow_dataset()
        if hasattr(source, "scanner"):  # a dataset of pyarrow
            source = source.scanner()
        if hasattr(source, "to_reader"):
            return source.to_reader()
    except Exception as error:  # of whatever library it is
        raise _broken(error, kind, table) from None
    step = (
        "a path, a pandas or Spark DataFrame, a list of dicts, or what hands out Arrow data (pyarrow, "
        "polars, DuckDB, ADBC)"
    )
    if hasattr(source, "sql") and hasattr(source, "execute"):  # a connection of DuckDB
        step = "the rows of a query: connection.sql('SELECT ...')"
    elif hasattr(source, "fetch_record_batch"):  # a cursor of ADBC
        step = "the rows of its query: cursor.fetch_record_batch()"
    elif hasattr(source, "cursor") or hasattr(source, "fetchone"):  # of another database
        step = "the file or the address of the database, with options={'sql': 'SELECT ...'}"
    raise UsageError(
        f"table {table!r} cannot be read from {one_of_type(source)}. {NOTHING_APPLIED} Next step: "
        f"give {step}."
    )


def _batches(reader: Any, kind: str, table: str) -> Iterator[Any]:
    try:
        yield from reader
    except (pa.ArrowException, OSError) as error:
        raise _broken(error, kind, table) from None


def _broken(error: Exception, kind: str, table: str) -> SourceError:
    return SourceError(
        f"the {kind} for table {table!r} cannot be read: {first_line(error)}. {NOTHING_APPLIED} "
        "Next step: see whether it can be read without holdfast."
    )
