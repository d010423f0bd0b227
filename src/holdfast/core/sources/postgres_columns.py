"""Columns of PostgreSQL as its driver hands them out, made what people know them as.

| type | the driver's | here |
|---|---|---|
| numeric(p, s) | text | decimal(p, s) |
| numeric | text | decimal(38, 18), which is said |
| uuid | 16 bytes | text |
| oid | a signed number | an unsigned one |
| without a form in Arrow (inet, timetz, xml ...) | what the server sends, bytes | the same, which is said |

Numbers must be numbers: as texts 1.5 and 1.50 would differ. A value that the decimal does not hold, such as
NaN, is refused. All else keeps what it is. Cost: a pass over such columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from holdfast.core.sources.type_rule import first_unfit
from holdfast.core.store.arrow_types import MAX_DECIMAL128_DIGITS
from holdfast.errors import NOTHING_APPLIED, ColumnTypeError, listing, shorten

_pa: Any = pa  # third-party stubs lag behind Arrow
pc: Any = pa.compute
# What a numeric without digits of its own becomes: what others, too, take it for.
DIGITS, SCALE = 38, 18
MAX_DIGITS = 76
# The text of a UUID has so many letters; hyphens stand at these.
UUID_LETTERS, HYPHENS = 36, (8, 13, 18, 23)


@dataclass(frozen=True, slots=True)
class PostgresColumns:
    """How the columns of one answer are made what they are to be, and what is to be said of it."""

    schema: pa.Schema
    conversions: dict[int, Callable[[Any], Any]]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, schema: pa.Schema, table: str) -> PostgresColumns:
        fields, conversions = list(schema), dict[int, Callable[[Any], Any]]()
        free, raw = [], []
        for i, field in enumerate(schema):
            said = field.metadata or {}
            kind = (said.get(b"POSTGRESQL:type") or said.get(b"ADBC:postgresql:typname") or b"").decode()
            is_opaque = isinstance(field.type, _pa.OpaqueType)
            if kind == "numeric":
                digits = _digits(int(said.get(b"POSTGRESQL:typmod", b"-1")))
                if digits is None:
                    free.append(field.name)
                new, convert = _decimal(digits or (DIGITS, SCALE), field.name, table)
            elif isinstance(field.type, _pa.UuidType):
                new, convert = pa.large_string(), uuid_texts
            elif kind == "oid" and pa.types.is_int32(field.type):
                new, convert = pa.uint32(), _unsigned
            else:
                if is_opaque and pa.types.is_binary(field.type.storage_type):
                    raw.append(f"{field.name} ({field.type.type_name})")
                continue
            fields[i], conversions[i] = pa.field(field.name, new), convert
        return cls(pa.schema(fields), conversions, (*_note_of_numerics(free), *_note_of_bytes(raw)))

    def converted(self, batch: Any) -> Any:
        """A record batch with the columns converted."""
        columns = [
            self.conversions[i](column) if i in self.conversions else column
            for i, column in enumerate(batch.columns)
        ]
        return _pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _digits(modifier: int) -> tuple[int, int] | None:
    """(precision, scale) as PostgreSQL packs them; None if a column has none of its own.

    >>> _digits(786438), _digits(-1)
    ((12, 2), None)
    >>> _digits(((5 << 16) | (-2 & 0x7FF)) + 4), _digits(((3 << 16) | 5) + 4)
    ((7, 0), (5, 5))
    """
    if modifier < 4:
        return None
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    if scale < 0:  # hundreds, thousands
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    return (precision, scale) if precision <= MAX_DIGITS else None


def _decimal(digits: tuple[int, int], name: str, table: str) -> tuple[pa.DataType, Callable[[Any], Any]]:
    make = _pa.decimal256 if digits[0] > MAX_DECIMAL128_DIGITS else _pa.decimal128
    wanted: pa.DataType = make(*digits)

    # Arrow casts 1e30 to a decimal(38,18) without a word: digits before the point are counted here.
    room = rf"^-?0*\d{{0,{digits[0] - digits[1]}}}(\.\d*)?$"

    def cast(texts: Any) -> Any | None:
        if pc.all(pc.match_substring_regex(texts, room)).as_py() is False:
            return None
        try:
            return texts.cast(wanted)
        except pa.ArrowInvalid:
            return None

    def convert(column: Any) -> Any:
        texts = column.storage if isinstance(column, _pa.ExtensionArray) else column
        values = cast(texts)
        if values is None:
            at = first_unfit(pa.chunked_array([texts]), lambda part: cast(part) is not None)
            value = texts[at].as_py()
            raise ColumnTypeError(
                f"column {shorten(name)} of table {table!r} is numeric, read as decimal({digits[0]},"
                f"{digits[1]}), and has {shorten(value)}, which that does not hold. {NOTHING_APPLIED} Next "
                "step: cast it in the sql, to float8 or to a numeric of enough digits, or leave the row out."
            )
        return values

    return wanted, convert


def uuid_texts(column: Any) -> Any:
    """UUIDs as texts, all at once.

    >>> uuid_texts(pa.array([bytes(range(16)), None], pa.uuid())).to_pylist()
    ['00010203-0405-0607-0809-0a0b0c0d0e0f', None]
    """
    absent = column.storage.is_null().to_numpy(zero_copy_only=False)
    whole = b"".join(value or bytes(16) for value in column.storage.to_pylist())
    letters = np.frombuffer(whole.hex().encode(), np.uint8).reshape(-1, 32)
    texts = np.full((len(column), UUID_LETTERS), ord("-"), dtype=np.uint8)
    texts[:, [i for i in range(UUID_LETTERS) if i not in HYPHENS]] = letters
    offsets = np.arange(len(column) + 1, dtype=np.int64) * UUID_LETTERS
    valid = np.packbits(~absent, bitorder="little")
    buffers = [_pa.py_buffer(part) for part in (valid, offsets, texts)]
    return _pa.Array.from_buffers(pa.large_string(), len(column), buffers)


def _unsigned(column: Any) -> Any:
    return column.view(pa.uint32())


def _note_of_numerics(names: list[str]) -> list[str]:
    are = (
        "is numeric without digits of its own"
        if len(names) == 1
        else "are numeric without digits of their own"
    )
    says = f"read as decimal({DIGITS},{SCALE}); cast it in the sql to have it otherwise"
    return [f"{listing(names)} {are}, {says}"] if names else []


def _note_of_bytes(names: list[str]) -> list[str]:
    what = "as the server sends them, in bytes; cast them to text in the sql to read them"
    return [f"{listing(names)}: values are kept {what}"] if names else []
