"""Typed sources: Parquet, Arrow files and tables in memory.

Values keep what they are: a cast to the table's type must lose nothing, and values of different type
families never match. Numbers are one family here (an int fits a float column if the float holds it
exactly, a float a decimal column if it reads back the same), everything else only fits itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.ipc
import pyarrow.parquet as pq

from holdfast.core.sources.raw_files import REQUEST, cut_short, opened_by_arrow
from holdfast.core.sources.read_options import Split
from holdfast.core.sources.type_rule import first_unfit
from holdfast.core.store.arrow_types import arrow_type, is_duration, is_nested, python_values, type_of
from holdfast.core.words.schema import NUMBERS, Type
from holdfast.errors import (
    NOTHING_APPLIED,
    ColumnTypeError,
    SchemaError,
    SourceError,
    listing,
    shorten,
    shorten_path,
)

_pa: Any = pa  # third-party stubs lag behind Arrow
pc: Any = pa.compute

STREAM_MARK = b"\xff\xff\xff\xff"  # what a stream of Arrow begins with; a file has another mark


def table_label(table: str, version: int | None) -> str:
    return f"table {table!r}" + (f" (version {version})" if version is not None else "")


def check_columns(
    columns: Sequence[str], names: Sequence[str], *, where: str, table: str, version: int | None
) -> None:
    """Raise unless `columns` are the wanted ones, in any order."""
    if different := difference(columns, names):
        raise SchemaError(
            f"{where} does not have the columns of {table_label(table, version)}: it {different}. "
            f"Expected: {listing(names)}. {NOTHING_APPLIED} Next step: rename, add or leave out columns so "
            "that they match."
        )


def difference(columns: Sequence[str], names: Sequence[str]) -> str:
    """What some columns lack of the wanted ones, and have in addition; "" if they are the same.

    >>> difference(["a", "b", "c"], ["c", "d"])
    'lacks d and has a, b in addition'
    """
    there, wanted = set(columns), set(names)
    missing = [n for n in names if n not in there]
    extra = [n for n in columns if n not in wanted]
    parts = [f"lacks {listing(missing)}"] if missing else []
    parts += [f"has {listing(extra)} in addition"] if extra else []
    return " and ".join(parts)


def fit_table(
    rows: pa.Table,
    names: Sequence[str],
    types: Sequence[Type],
    *,
    table: str,
    where: str,
    version: int | None = None,
    first_row: int = 0,
) -> pa.Table:
    """The wanted columns in order, each cast to its type without loss, or a ColumnTypeError.

    `first_row` is the number of rows of `where` before this part, for messages.
    """
    check_columns(rows.column_names, names, where=where, table=table, version=version)
    columns = [
        _fit_column(rows.column(name), name, t, table, where, version, first_row)
        for name, t in zip(names, types, strict=True)
    ]
    return pa.table(
        columns, schema=pa.schema([(n, arrow_type(t)) for n, t in zip(names, types, strict=True)])
    )


def _fit_column(
    values: Any, name: str, t: Type, table: str, where: str, version: int | None, first_row: int
) -> Any:
    wanted = arrow_type(t)
    values = plain(values)
    if values.type == wanted:
        return values
    if pa.types.is_null(values.type):
        return values.cast(wanted)
    source_type = type_of(values.type, table=table, column=name)
    numeric = source_type.family in NUMBERS and t.family in NUMBERS
    if (source_type.family == t.family and source_type.utc == t.utc) or numeric:
        cast = _lossless(values, source_type, t)
        if cast is not None:
            return cast
        at = first_unfit(values, lambda part: _lossless(part, source_type, t) is not None)
        reason = "which would lose something" if source_type.family != t.family else "which does not fit"
    else:
        at = pc.index(values.is_valid(), True).as_py()
        if at < 0:  # only NULLs: nothing to compare
            return _pa.chunked_array([_pa.nulls(len(values), wanted)])
        reason = f"of type {source_type}, and values of different types never match"
    raise ColumnTypeError(
        f"column {shorten(name)} of {table_label(table, version)} is {t}; {where} has "
        f"{shorten(python_values(values.slice(at, 1))[0])} in row {first_row + at + 1}, {reason}. "
        f"{NOTHING_APPLIED} Next step: cast the column to {t} in the source, or mend the value."
    )


def plain(values: Any) -> Any:
    """A column without dictionary, run-end encoding or extension around its values."""
    if isinstance(values.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in values.chunks]
        values = _pa.chunked_array(chunks, values.type.storage_type)
    if pa.types.is_dictionary(values.type):
        values = _pa.chunked_array(map(_decoded, values.chunks), _decoded_type(values.type))
    elif pa.types.is_run_end_encoded(values.type):
        chunks = [pc.run_end_decode(chunk) for chunk in values.chunks]
        values = _pa.chunked_array(chunks, values.type.value_type)
    return values


def without_views(t: pa.DataType) -> pa.DataType:
    """The type of the same values, for what Arrow cannot do with views."""
    if pa.types.is_string_view(t):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(t) else t


def without_dictionaries(schema: pa.Schema) -> pa.Schema:
    """The schema of the same rows without dictionaries: a file has one for all batches, a stream may not."""
    return pa.schema([_pa.field(f.name, _decoded_type(f.type), f.nullable, f.metadata) for f in schema])


def _decoded_type(t: Any) -> pa.DataType:
    return without_views(t.value_type) if pa.types.is_dictionary(t) else t


def decoded(batch: Any, schema: pa.Schema) -> Any:
    """A record batch without dictionaries, in the schema without them."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        _decoded(column) if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return _pa.RecordBatch.from_arrays(columns, schema=schema)


def _decoded(column: Any) -> Any:
    """The values of a column with a dictionary. Of one of views, as in polars, Arrow casts and takes none."""
    return column.dictionary.cast(without_views(column.type.value_type)).take(column.indices)


def _lossless(values: Any, source_type: Type, t: Type) -> Any | None:
    """The cast, or None if Arrow calls it lossy or a value would not come back the same."""
    wanted = arrow_type(t)
    try:
        if t.family == "decimal" and source_type.family in ("int", "uint"):
            # Arrow asks for room for every int64; what counts is room for these. 20 digits hold uint64.
            wide = pa.decimal256(20 + t.scale, t.scale)
            return values.cast(wide).cast(wanted)
        if {source_type.family, t.family} == {"decimal", "float"}:
            cast = values.cast(wanted)
            back = cast.cast(values.type)
            same = pc.all(pc.equal(back, values)).as_py() is not False
            return cast if same else None
        return values.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if t.family == "float" and source_type.family in ("int", "uint"):
            # Arrow refuses every integer beyond 2**53, also those that a float holds exactly.
            exact = all(v is None or int(float(v)) == v for v in values.to_pylist())
            return values.cast(wanted, safe=False) if exact else None
        return None


def column_names(schema: pa.Schema, where: str, *, table: str) -> list[str]:
    """The names of a schema's columns; Arrow does not look whether they are texts."""
    try:
        return list(schema.names)
    except UnicodeDecodeError as error:
        raise _not_a_name(error, where, table) from None


def _not_a_name(error: UnicodeDecodeError, where: str, table: str) -> SchemaError:
    return SchemaError(
        f"{where} for table {table!r} has a column name that is not UTF-8: {shorten(error.object)}. "
        f"{NOTHING_APPLIED} Next step: rename the column."
    )


def flat_types(schema: pa.Schema, *, table: str) -> tuple[dict[str, Type], dict[str, str]]:
    """(types by column, columns that are no part of a table, with why); if all are such, it is an error."""
    out = {f.name: NESTED if is_nested(f.type) else DURATION for f in schema if _has_no_type(f.type)}
    if len(out) == len(schema.names):
        out = {}  # what `type_of` says of the first one is what is wrong
    return {f.name: type_of(f.type, table=table, column=f.name) for f in schema if f.name not in out}, out


def _has_no_type(dt: pa.DataType) -> bool:
    return is_nested(dt) or is_duration(dt)


def nested_note(out: Mapping[str, str]) -> str:
    """What is said of columns that are left out.

    >>> nested_note({"took": DURATION, "tags": NESTED}).split("; ")[1]
    'took is a duration and left out: cast to numbers what you want to keep'
    """
    notes = []
    for why, (one, many, cure) in _CURES.items():
        names = [name for name, reason in out.items() if reason == why]
        if names:
            notes.append(f"{listing(names)} {one if len(names) == 1 else many} and left out: {cure}")
    return "; ".join(notes)


# Why columns are left out, and what is to be done about it.
NESTED, DURATION = "nested", "duration"
_CURES = {
    NESTED: ("is nested", "are nested", "flatten what you want to keep"),
    DURATION: ("is a duration", "are durations", "cast to numbers what you want to keep"),
}


def parquet_schema(path: str, size: int, *, table: str) -> tuple[pa.Schema, list[tuple[int, int]]]:
    """The schema and (rows, uncompressed bytes) of every row group, of a file of so many bytes."""
    with _open_parquet(path, table, size) as file:
        meta = file.metadata
        groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
        return file.schema_arrow, [(g.num_rows, g.total_byte_size) for g in groups]


def _open_parquet(path: str, table: str, size: int | None = None) -> Any:
    try:
        return pq.ParquetFile(opened_by_arrow(path, size))  # see raw_files
    except PermissionError:
        raise  # the caller says so
    except UnicodeDecodeError as error:
        raise _not_a_name(error, shorten_path(path), table) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(
            f"{shorten_path(path)} for table {table!r} is not a Parquet file: {first_line(error)}. "
            f"{NOTHING_APPLIED} Next step: check the file, or give its --format."
        ) from None


def _damaged(path: str, table: str, error: Exception) -> SourceError:
    return SourceError(
        f"{shorten_path(path)} for table {table!r} is damaged: {first_line(error)}. {NOTHING_APPLIED} "
        "Next step: write the file again."
    )


def first_line(error: Exception) -> str:
    """The first line of an error's text, cut: Arrow quotes cells in its messages."""
    return shorten(str(error).split("\n")[0], 100).strip("'\"").rstrip(".")


def read_parquet(split: Split, names: Sequence[str], left_out: Collection[str], *, table: str) -> pa.Table:
    with _open_parquet(split.path, table) as file:
        groups, before, skipped = [], 0, 0
        for g in range(file.metadata.num_row_groups):
            n_rows = file.metadata.row_group(g).num_rows
            if before < split.end and before + n_rows > split.start:
                groups.append(g)
            elif before + n_rows <= split.start:
                skipped += n_rows
            before += n_rows
        there = [n for n in file.schema_arrow.names if n not in left_out]
        wanted = [n for n in names if n in set(there)]
        if len(wanted) < len(there):
            wanted = there  # the surplus is reported by `fit_table`
        try:
            rows_read: pa.Table = file.read_row_groups(groups, columns=wanted, use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            raise _damaged(split.path, table, error) from None
    return _rows(rows_read, split.start - skipped, split, table)


def open_arrow(path: str, *, table: str, fields: Sequence[int] = (), size: int | None = None) -> Any:
    """A reader of the batches of an Arrow file or stream, or of some columns of them."""
    options = _pa.ipc.IpcReadOptions(included_fields=[*fields], use_threads=False)
    try:
        try:
            return pa.ipc.open_file(opened_by_arrow(path, size), options=options)  # not mapped, see raw_files
        except pa.ArrowInvalid:
            stream = opened_by_arrow(path, size)
            if stream.read(len(STREAM_MARK)) != STREAM_MARK:
                raise
            stream.seek(0)
            return pa.ipc.open_stream(_pa.BufferedInputStream(stream, REQUEST), options=options)
    except PermissionError:
        raise
    except (pa.ArrowInvalid, OSError) as error:
        raise SourceError(
            f"{shorten_path(path)} for table {table!r} is not an Arrow file: {first_line(error)}. "
            f"{NOTHING_APPLIED} Next step: check the file, or give its --format."
        ) from None


def arrow_schema(path: str, size: int, *, table: str) -> tuple[pa.Schema, list[tuple[int, int]]]:
    """The schema and (rows, bytes) of every batch, the bytes by those of the first one; `size` of the file.

    Reads the first batch, and of the others one column, the narrowest. A stream is read from its beginning
    only, so its batches are one.
    """
    reader = open_arrow(path, table=table, size=size)
    schema, first = reader.schema, next(_arrow_batches(reader, 0, path, table), None)
    if not schema.names or first is None:
        return schema, []
    row_bytes = first.nbytes / max(first.num_rows, 1)
    narrow = min(range(len(schema)), key=lambda i: _width(schema.field(i).type))
    counted = _arrow_batches(open_arrow(path, table=table, fields=[narrow], size=size), 0, path, table)
    n_rows = [batch.num_rows for batch in counted]
    if isinstance(reader, pa.RecordBatchReader):
        n_rows = [sum(n_rows)]
    return schema, [(n, int(n * row_bytes)) for n in n_rows]


def _width(t: pa.DataType) -> int:
    """About the bytes that Arrow reads for a value."""
    if isinstance(t, pa.DictionaryType):
        t = t.index_type
    try:
        return int(t.bit_width) // 8
    except ValueError:
        return 0 if pa.types.is_null(t) else 1_000


def _arrow_batches(reader: Any, start: int, path: str, table: str) -> Iterator[Any]:
    """The batches of a file from one on, or those of a stream."""
    try:
        if isinstance(reader, pa.RecordBatchReader):
            yield from reader
        else:
            yield from (reader.get_batch(i) for i in range(start, reader.num_record_batches))
    except (pa.ArrowInvalid, OSError) as error:
        raise _damaged(path, table, error) from None


def read_arrow(split: Split, *, table: str) -> pa.Table:
    reader = open_arrow(split.path, table=table)
    batches, n_rows = [], 0
    for batch in _arrow_batches(reader, split.batch, split.path, table):
        if n_rows >= split.end - split.start:
            break
        batches.append(batch)
        n_rows += batch.num_rows
    return _rows(pa.Table.from_batches(batches, reader.schema), 0, split, table)


def _rows(rows_read: pa.Table, low: int, split: Split, table: str) -> pa.Table:
    """The rows of a split, from row `low` of what was read."""
    rows = rows_read.slice(low, split.end - split.start)
    if rows.num_rows < split.end - split.start:
        raise cut_short(split.path, table)
    return rows
