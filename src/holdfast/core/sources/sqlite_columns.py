"""What is said of columns of SQLite: it has neither dates nor decimals, so its driver hands out none."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute

from holdfast.core.sources.type_rule import decode
from holdfast.core.words.schema import Type
from holdfast.errors import listing, shorten

pc: Any = pa.compute

ROWS_LOOKED_AT = 2_000
_TIMES = (Type("date"), Type("timestamp", unit="us"), Type("timestamp", unit="us", utc=True))


def sqlite_notes(rows: pa.RecordBatch) -> tuple[str, ...]:
    """What the first rows show: texts that are all dates or times, floats of two digits at most."""
    dates, hundredths = [], []
    for field, values in zip(rows.schema, rows.slice(0, ROWS_LOOKED_AT).columns, strict=True):
        present = values.drop_null()
        if not len(present):
            continue
        if pa.types.is_string(field.type):
            texts = pa.chunked_array([present.cast(pa.large_string())])
            if any(decode(texts, t) is not None for t in _TIMES):
                dates.append(field.name)
        elif pa.types.is_floating(field.type):
            fits = pc.equal(pc.round(present, 2), present)
            whole = pc.equal(pc.floor(present), present)
            if pc.all(fits).as_py() and not pc.all(whole).as_py():
                hundredths.append(field.name)
    notes = []
    if dates:
        notes.append(
            f"{listing(dates)}: dates are texts, as SQLite has no dates; as CSV (sqlite3 -csv -header FILE "
            "SQL) they are read as such"
        )
    if hundredths:
        notes.append(
            f"{listing(hundredths)}: decimals are floats, as SQLite has no decimals; "
            f"CAST(ROUND({shorten(hundredths[0])[1:-1]} * 100) AS INTEGER) counts them exactly"
        )
    return tuple(notes)
