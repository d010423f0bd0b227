"""Parquet: one file, one table, each value spelled as a CSV file would spell it.

Integers and decimals plainly, floats by the shortest text that reads back the same, dates and times in ISO
order without a fraction of zeros, booleans as `true` and `false`, nested values as JSON. NULL is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from holdfast.lakes.files.cells import column_names, reason_of
from holdfast.lakes.files.lake_options import RawTable, UnreadableError
from holdfast.lakes.files.opening import too_large

_pa: Any = pa  # third-party stubs lag behind Arrow
pc: Any = pa.compute
types: Any = pa.types


def parquet_table(raw: bytes, name: str, source: str, limit: int) -> RawTable:
    """The table in these bytes; an `UnreadableError` if they hold none, or one of too many bytes.

    A cell counts as one byte more than its value has, as in a delimited file. Texts stay in dictionaries: a
    text that is stored once costs its memory once, however many rows have it.
    """
    try:
        with pq.ParquetFile(pa.BufferReader(raw)) as file:
            meta, schema = file.metadata, file.schema_arrow
        if meta.num_rows * len(schema) > limit:
            raise too_large(limit)
        texts = [f.name for f in schema if types.is_string(f.type) or types.is_binary(f.type)]
        with pq.ParquetFile(pa.BufferReader(raw), metadata=meta, read_dictionary=texts) as file:
            table = pa.Table.from_batches(_batches(file, limit), file.schema_arrow)
        columns = [_texts(column) for column in table.columns]
    except (pa.ArrowException, OSError, ValueError, OverflowError, RecursionError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise UnreadableError(reason_of(error)) from None
        reason = reason_of(error).removeprefix("cannot be read: ")
        raise UnreadableError(f"is not readable as Parquet: {reason}") from None
    header = column_names(table.column_names, len(columns))
    return RawTable(name, source, header, columns, table.num_rows if columns else 0, "utf-8")


def _batches(file: Any, limit: int) -> Iterator[Any]:
    n_bytes = 0
    for batch in file.iter_batches(use_threads=False):
        n_bytes += batch.nbytes + batch.num_rows * batch.num_columns
        if n_bytes > limit:
            raise too_large(limit)
        yield batch


def _texts(column: Any) -> list[str | None]:
    t = column.type
    if types.is_dictionary(t):
        cells: list[str | None] = []
        for chunk in column.chunks:
            chunk.validate(full=True)  # indices of a damaged file may lead out of the dictionary
            values = _texts(_pa.chunked_array([chunk.dictionary]))
            cells += [None if i is None else values[i] for i in chunk.indices.to_pylist()]
        return cells
    if isinstance(t, pa.BaseExtensionType):
        column = _pa.chunked_array([chunk.storage for chunk in column.chunks], t.storage_type)
        return _texts(column)
    if types.is_string(t) or types.is_large_string(t):
        texts: list[str | None] = column.to_pylist()
        return texts
    if types.is_null(t):
        return [None] * len(column)
    if types.is_float64(t):
        return [None if v is None else repr(v) for v in column.to_pylist()]
    if types.is_floating(t):  # their shortest text is that of their own precision
        narrow = np.float16 if types.is_float16(t) else np.float32
        return [None if v is None else str(narrow(v)) for v in column.to_pylist()]
    if types.is_timestamp(t) or types.is_time(t):
        if types.is_timestamp(t) and t.tz is not None:
            column = column.cast(_pa.timestamp(t.unit, "UTC"))  # one text for one moment, whatever its zone
        return [_without_zeros(v) for v in column.cast(_pa.string()).to_pylist()]
    if types.is_integer(t) or types.is_boolean(t) or types.is_date32(t) or types.is_decimal(t):
        plain: list[str | None] = column.cast(_pa.string()).to_pylist()
        return plain
    return [_text(v) for v in column.to_pylist()]


def _without_zeros(text: str | None) -> str | None:
    """
    >>> _without_zeros("2024-01-31 10:00:00.000000"), _without_zeros("10:00:00.250"), _without_zeros("10:00")
    ('2024-01-31 10:00:00', '10:00:00.25', '10:00')
    """
    if text is None or "." not in text:
        return text
    zone = "Z" if text.endswith("Z") else ""
    return text.removesuffix("Z").rstrip("0").rstrip(".") + zone


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=_text)
    return str(value)
