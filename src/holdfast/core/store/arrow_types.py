"""The one table between holdfast's column types and Arrow's.

`arrow_type` is what a typed column looks like in memory and in raw Parquet files; `type_of` is the
canonical type of whatever Arrow a source brings. `type_of(arrow_type(t)) == t` for every type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.core.words.schema import Schema, Type
from holdfast.errors import NOTHING_APPLIED, SchemaError, shorten

_pa: Any = pa  # third-party stubs want literal units and lag behind Arrow
_PLAIN: dict[str, pa.DataType] = {
    "int": pa.int64(),
    "uint": pa.uint64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "text": pa.large_string(),
    "binary": pa.large_binary(),
}
MAX_DECIMAL128_DIGITS = 38


def arrow_type(t: Type) -> pa.DataType:
    """The Arrow type that holds every value of `t`.

    >>> from holdfast.core.words.schema import Type
    >>> str(arrow_type(Type("decimal", precision=12, scale=2))), str(arrow_type(Type("text")))
    ('decimal128(12, 2)', 'large_string')
    """
    if t.family == "decimal":
        wide = t.precision > MAX_DECIMAL128_DIGITS
        return (_pa.decimal256 if wide else _pa.decimal128)(t.precision, t.scale)
    if t.family == "time":
        return (_pa.time32 if t.unit in ("s", "ms") else _pa.time64)(t.unit)
    if t.family == "timestamp":
        return _pa.timestamp(t.unit, tz="UTC" if t.utc else None)
    return _PLAIN[t.family]


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a table's typed rows."""
    return pa.schema([pa.field(c.name, arrow_type(c.type)) for c in schema.columns])


def is_nested(dt: pa.DataType) -> bool:
    """Whether values of a type have parts: lists, structs, maps, unions.

    >>> is_nested(pa.list_(pa.int8())), is_nested(pa.dictionary(pa.int8(), pa.string()))
    (True, False)
    """
    if isinstance(dt, pa.BaseExtensionType):
        return is_nested(dt.storage_type)
    if pa.types.is_dictionary(dt) or pa.types.is_run_end_encoded(dt):
        return is_nested(dt.value_type)
    return bool(pa.types.is_nested(dt))


def is_duration(dt: pa.DataType) -> bool:
    """Whether values of a type are spans of time, for which holdfast has no type.

    >>> is_duration(pa.duration("us")), is_duration(pa.time64("us"))
    (True, False)
    """
    if isinstance(dt, pa.BaseExtensionType):
        return is_duration(dt.storage_type)
    if pa.types.is_dictionary(dt) or pa.types.is_run_end_encoded(dt):
        return is_duration(dt.value_type)
    return bool(pa.types.is_duration(dt) or pa.types.is_interval(dt))


def type_of(dt: pa.DataType, *, table: str, column: str) -> Type:
    """The canonical column type of an Arrow type.

    Widths of integers and floats vanish; a dictionary, a run-end encoding or an extension is what it
    encodes; any time zone means an instant. A column without a type (only NULLs) is text.

    >>> str(type_of(pa.dictionary(pa.int8(), pa.string_view()), table="t", column="c"))
    'text'
    """
    is_ = pa.types
    if is_.is_dictionary(dt) or is_.is_run_end_encoded(dt):
        return type_of(dt.value_type, table=table, column=column)
    if isinstance(dt, pa.BaseExtensionType):
        return type_of(dt.storage_type, table=table, column=column)
    if is_.is_uint64(dt):
        return Type("uint")
    if is_.is_integer(dt):
        return Type("int")
    if is_.is_floating(dt):
        return Type("float")
    if is_.is_decimal(dt):
        if dt.scale < 0:  # hundreds, thousands: whole numbers with more digits
            return Type("decimal", precision=dt.precision - dt.scale, scale=0)
        return Type("decimal", precision=dt.precision, scale=dt.scale)
    if is_.is_boolean(dt):
        return Type("bool")
    if is_.is_date(dt):
        return Type("date")
    if is_.is_time(dt):
        return Type("time", unit=dt.unit)
    if is_.is_timestamp(dt):
        return Type("timestamp", unit=dt.unit, utc=dt.tz is not None)
    if is_.is_string(dt) or is_.is_large_string(dt) or is_.is_string_view(dt) or is_.is_null(dt):
        return Type("text")
    if is_.is_binary(dt) or is_.is_large_binary(dt) or is_.is_binary_view(dt) or is_.is_fixed_size_binary(dt):
        return Type("binary")
    if is_.is_nested(dt):
        reason, step = "is nested", "flatten it or leave it out"
    else:
        reason, step = "is of a type that holdfast does not keep", "cast it to a number or to text"
    raise SchemaError(
        f"column {shorten(column)} of table {table!r} {reason}: {shorten(str(dt))[1:-1]}. "
        f"{NOTHING_APPLIED} Next step: {step}."
    )


def python_values(values: Any) -> list[Any]:
    """The values of a column as Python holds them; what Python cannot hold without loss, as a text.

    Such are dates and timestamps outside the years 1 to 9999, clock times outside a day or with nanoseconds,
    and texts of bytes that are not UTF-8: these bytes are escaped. For people, never for comparisons: a
    text may have the same escapes in plain letters.

    >>> python_values(pa.array([19_000, 3_000_000], pa.int32()).view(pa.date32()))
    [datetime.date(2022, 1, 8), '10183-09-21']
    >>> python_values(pa.array([b"caf\\xe9"], pa.large_binary()).view(pa.large_string()))
    ['caf\\\\xe9']
    """
    is_, dt = pa.types, values.type
    if is_.is_large_string(dt) or is_.is_string(dt):
        raw = values.cast(pa.large_binary()).to_pylist()
        return [None if v is None else v.decode("utf-8", "backslashreplace") for v in raw]
    if is_.is_temporal(dt):
        return [_temporal_value(scalar) for scalar in values]
    plain: list[Any] = values.to_pylist()
    return plain


def python_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table, their values by `python_values`."""
    columns = {name: python_values(rows.column(name)) for name in rows.column_names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


_UNIT_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def _temporal_value(scalar: Any) -> Any:
    if not scalar.is_valid:
        return None
    is_, dt = pa.types, scalar.type
    if is_.is_date32(dt):
        per_day = 1
    elif is_.is_date64(dt):
        per_day = 86_400_000
    else:
        per_day = 86_400 * 10 ** _UNIT_DIGITS[dt.unit]
    days, rest = divmod(scalar.value, per_day)
    if not is_.is_time(dt) or (days == 0 and (dt.unit != "ns" or rest % 1000 == 0)):
        try:
            value = scalar.as_py()
        except (ValueError, OverflowError):
            pass
        else:
            if value == value:  # the smallest of all nanoseconds would be pandas' NaT
                return value
    if is_.is_time(dt):
        sign = "-" if scalar.value < 0 else ""
        return sign + _clock(abs(scalar.value), dt.unit)
    date = str(np.datetime64(days, "D"))
    return date if is_.is_date(dt) else f"{date}T{_clock(rest, dt.unit)}{'+00:00' if dt.tz else ''}"


def _clock(count: int, unit: str) -> str:
    """
    >>> _clock(3_661_000_000_001, "ns"), _clock(90, "s")
    ('01:01:01.000000001', '00:01:30')
    """
    digits = _UNIT_DIGITS[unit]
    seconds, rest = divmod(count, 10**digits)
    fraction = f".{rest:0{digits}}" if rest else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
