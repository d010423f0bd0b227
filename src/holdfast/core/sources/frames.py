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
from holdfast.errors import NOTHING_APPLIED, ColumnTypeError, SchemaError, shorten


def arrow_table(frame: Any, table: str, what: str = "the pandas DataFrame") -> pa.Table:
    """The frame's columns, in order, under the texts of their labels; those of a named index first."""
    pandas_later.needed()
    if frame.columns.nlevels > 1:
        raise SchemaError(
            f"the pandas DataFrame for table {table!r} has columns of {frame.columns.nlevels} levels, for "
            f"example {shorten(frame.columns[0])}. {NOTHING_APPLIED} Next step: give it plain names, for "
            "example frame.columns = ['_'.join(map(str, c)) for c in frame.columns]."
        )
    frame = _with_index(frame, table)
    names = ["" if _missing(label) else str(label) for label in frame.columns]
    check_names(names, what, table=table)
    columns = [_column(frame.iloc[:, i], name, table, what) for i, name in enumerate(names)]
    return pa.table(columns, names=names)


def _missing(label: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_scalar(label) and pd.isna(label))


def _with_index(frame: Any, table: str) -> Any:
    """The frame with its index as columns, unless that only numbers the rows."""
    import pandas as pd

    index = frame.index
    if isinstance(index, pd.RangeIndex) or (not len(index) and index.names == [None]):
        return frame
    if any(_missing(name) for name in index.names):
        raise SchemaError(
            f"the pandas DataFrame for table {table!r} has an index that is no plain range and has "
            f"no name, for example {shorten(index[0])}. {NOTHING_APPLIED} Next step: "
            "frame.reset_index(drop=True) leaves it out, frame.rename_axis('id') makes a column of it."
        )
    return pd.concat([index.to_frame(index=False), frame.reset_index(drop=True)], axis=1)


def _column(values: Any, name: str, table: str, what: str) -> Any:
    import pandas as pd

    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    # The values of a category are those of its categories.
    distinct = values.cat.categories.to_series() if isinstance(values.dtype, pd.CategoricalDtype) else values
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
        _refuse(distinct.dropna(), name, table, what)
    value_type = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if distinct.dtype == object and _may_have_lost(value_type):
        present = distinct.dropna()
        kinds = set(map(_kind_of, present))
        if len(kinds) > 1 or kinds == {_ZONED_TIME}:
            _refuse(present, name, table, what)
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


def _refuse(values: Any, name: str, table: str, where: str) -> NoReturn:
    """Raise what is wrong with the values of a column, NULLs left out."""
    kinds = values.astype(object).map(_kind_of)
    common = kinds.value_counts().index
    if len(common) > 1:
        what = f"mixes values of type {' and '.join(common[:3])}"
        shown = values[kinds != common[0]].iloc[0]
        cure = "convert the column to one type, for example with astype"
    else:
        what = f"has values of type {common[0]} that no type of holdfast holds"
        shown = next((v for v in values if not _fits_alone(v)), values.iloc[0])
        cure = "convert the column, for example with astype(str), or leave it out"
    raise ColumnTypeError(
        f"column {shorten(name)} of table {table!r} {what} in {where}, for example "
        f"{shorten(shown)}. {NOTHING_APPLIED} Next step: {cure}."
    )
