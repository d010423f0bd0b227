"""pandas DataFrames as Arrow tables: column by column, nothing lost, and clear words for what cannot be kept.

Arrow converts. What it would convert with a loss is refused: texts beside bytes (they would meet), datetimes
beside dates (the time of day would go), times with a zone, periods (they would be bare numbers). NaN, None
and NaT are NULL. An index that is no plain range is columns, too; without a name it is refused.

Cost: that of Arrow's conversion; a look at each value only for objects that became bytes, dates or times.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, NoReturn

import pyarrow as pa

from holdfast.core.sources.column_names import check_names
from holdfast.core.store import pandas_later
from holdfast.errors import NOTHING_APPLIED, ColumnTypeError, DuplicateColumnError, SchemaError, shorten


def arrow_table(
    frame: Any, table: str, what: str = "the pandas DataFrame", *, of_rows: bool = False
) -> pa.Table:
    """The frame's columns, in order, under the texts of their labels; those of a named index first.

    `of_rows`: it was made of a list of rows, which messages speak of.
    """
    pandas_later.needed()
    if frame.columns.nlevels > 1:
        raise SchemaError(
            f"the pandas DataFrame for table {table!r} has columns of {frame.columns.nlevels} levels, for "
            f"example {shorten(_plain(frame.columns[0]))}. {NOTHING_APPLIED} Next step: give it plain names, "
            "for example frame.columns = ['_'.join(map(str, c)) for c in frame.columns]."
        )
    frame = _with_index(frame, table)
    names = ["" if _missing(label) else str(label) for label in frame.columns]
    check_names(names, what, table=table)
    columns = [_column(frame.iloc[:, i], name, table, what, of_rows) for i, name in enumerate(names)]
    return pa.table(columns, names=names)


def _missing(label: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_scalar(label) and pd.isna(label))


def _plain(value: Any) -> Any:
    """A label as Python's own value, for messages.

    >>> import numpy as np
    >>> _plain((np.int64(0), "x"))
    (0, 'x')
    """
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if type(value).__module__ == "numpy" else value


def _with_index(frame: Any, table: str) -> Any:
    """The frame with its index as columns, unless that only numbers the rows."""
    import pandas as pd

    index = frame.index
    if isinstance(index, pd.RangeIndex) or (not len(index) and index.names == [None]):
        return frame
    if any(_missing(name) for name in index.names):
        names = [f"id_{k}" if _missing(name) else name for k, name in enumerate(index.names, 1)]
        new, made = ("'id'", "a column") if len(names) == 1 else (shorten(names), "columns")
        raise SchemaError(
            f"the pandas DataFrame for table {table!r} has an index that is no plain range and has "
            f"no name, for example {shorten(_plain(index[0]))}. {NOTHING_APPLIED} Next step: "
            f"frame.reset_index(drop=True) leaves it out, frame.rename_axis({new}) makes {made} of it."
        )
    check_names([str(name) for name in index.names], "the index of the pandas DataFrame", table=table)
    columns = [str(label) for label in frame.columns]
    for name in index.names:
        if str(name) in columns:
            raise DuplicateColumnError(
                f"the index of the pandas DataFrame for table {table!r} is called {shorten(str(name))}, as "
                f"its column {columns.index(str(name)) + 1} is. {NOTHING_APPLIED} Next step: "
                "frame.reset_index(drop=True) leaves the index out, frame.rename_axis(index="
                f"{{{shorten(name)}: {shorten(f'index_{name}')}}}) makes a column of another name of it."
            )
    return pd.concat([index.to_frame(index=False), frame.reset_index(drop=True)], axis=1)


def _column(values: Any, name: str, table: str, what: str, of_rows: bool) -> Any:
    import pandas as pd

    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    # The values of a category are those of its categories.
    is_category = isinstance(values.dtype, pd.CategoricalDtype)
    distinct = values.cat.categories.to_series() if is_category else values
    for kind, plural, cure in (
        (pd.PeriodDtype, "periods", "dt.to_timestamp() makes dates of them, astype(str) texts"),
        (pd.IntervalDtype, "intervals", "astype(str) makes texts of them; or keep their ends as columns"),
    ):
        if isinstance(distinct.dtype, kind):
            raise ColumnTypeError(
                f"column {shorten(name)} of table {table!r} holds {plural} in {what}, and "
                f"holdfast has no type for them. {NOTHING_APPLIED} Next step: {cure}."
            )
    try:
        column: Any = pa.array(values, from_pandas=True)
    except UnicodeEncodeError as error:
        raise ColumnTypeError(
            f"column {shorten(name)} of table {table!r} has half of a surrogate pair, which no text may "
            f"have, in {what}: {shorten(error.object)}. {NOTHING_APPLIED} Next step: mend the "
            "value."
        ) from None
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        _refuse(distinct, name, table, what, is_category, of_rows)
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if distinct.dtype == object and _may_have_lost(value_type):
        present = distinct.dropna()
        kinds = set(map(_kind_of, present))
        if len(kinds) > 1 or kinds == {_ZONED_TIME}:
            _refuse(distinct, name, table, what, is_category, of_rows)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _may_have_lost(t: pa.DataType) -> bool:
    is_: Any = pa.types  # third-party stubs lag behind Arrow
    return any(f(t) for f in (is_.is_binary, is_.is_large_binary, is_.is_date, is_.is_timestamp, is_.is_time))


_ZONED_TIME = "time with a time zone"


def _kind_of(value: Any) -> str:
    """What a value is, in a word; values of one kind can stand in one column."""
    if isinstance(value, dt.datetime):
        return "datetime" if value.tzinfo is None else "datetime with a time zone"
    if isinstance(value, dt.time) and value.tzinfo is not None:
        return _ZONED_TIME
    return "bytes" if isinstance(value, bytes) else type(value).__name__


def _fits_alone(value: Any) -> bool:
    try:
        pa.array([value])
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return True


def _refuse(values: Any, name: str, table: str, where: str, is_category: bool, of_rows: bool) -> NoReturn:
    """Raise what is wrong with the values of a column, or of a category, which are in no row."""
    values = values.reset_index(drop=True).dropna()
    kinds = values.astype(object).map(_kind_of)
    common = kinds.value_counts().index
    if len(common) > 1:
        what = f"mixes values of type {' and '.join(common[:3])}"
        at = int((kinds != common[0]).to_numpy().argmax())
        cast = "astype"
        cure = "convert the column to one type, for example with CAST"
    else:
        what = f"has values of type {common[0]} that no type of holdfast holds"
        at = next((k for k, v in enumerate(values) if not _fits_alone(v)), 0)
        cast = "astype(str)"
        cure = "convert the column, for example with CAST, or leave it out"
    cast = f"str(row[{shorten(name)}]) in each row" if of_rows else cast
    row = "" if is_category else f" in row {values.index[at] + 1}"
    raise ColumnTypeError(
        f"column {shorten(name)} of table {table!r} {what} in {where}, for example "
        f"{shorten(values.iloc[at])}{row}. {NOTHING_APPLIED} Next step: {cure.replace('CAST', cast)}."
    )
