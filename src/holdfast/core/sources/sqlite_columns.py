"""Rows of SQLite: it has neither dates nor decimals, so its driver hands out none, but for declared types."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from holdfast.core.sources.columnar import fit_table
from holdfast.core.sources.respelling import of_known_type
from holdfast.core.sources.type_rule import TEXT, decode, first_unfit
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.words.schema import Type
from holdfast.errors import NOTHING_APPLIED, ColumnTypeError, UnknownColumnError, listing, shorten

_pa: Any = pa  # third-party stubs lag behind Arrow
pc: Any = pa.compute

ROWS_LOOKED_AT = 2_000
_WRITTEN_NUMBER = r"^-?[0-9]+(\.[0-9]+e[+-][0-9]+)?$"  # by the driver, in a column of texts
_TIMES = (Type("date"), Type("timestamp", unit="us"), Type("timestamp", unit="us", utc=True))
_HUNDREDTHS = Type("decimal", precision=18, scale=2)


class SqliteRows:
    """The rows of a query of SQLite; they come once.

    `mixed` tells those of some columns that have several storage classes, and which.
    """

    def __init__(self, reader: Any, mixed: Callable[[Sequence[str]], Mapping[str, Sequence[str]]]) -> None:
        self.schema, self._mixed = reader.schema, mixed
        self._reader, self._first = reader, next(iter(reader), None)

    def notes(self, declared: Collection[str]) -> tuple[str, ...]:
        """What is said of columns whose types are not declared, by the first rows; and of mixed ones."""
        if self._first is None:
            return ()
        names = [
            name
            for name, values in zip(self.schema.names, self._first.columns, strict=True)
            if _may_mix(values)
        ]
        mixed = self._mixed(names) if names else {}
        plain = [n for n in self.schema.names if n not in declared and n not in mixed]
        return (*sqlite_notes(self._first.select(plain)), *mixed_notes(mixed))

    def typed(self, declared: Mapping[str, Type], table: str, *, batch: bool) -> Any:
        """A reader of the rows, with columns of declared types as such.

        Texts are read as those of JSON are; a number must be of its type without loss. Those that a `batch`
        lacks need not be there.
        """
        missing = [name for name in declared if name not in self.schema.names]
        if missing and not batch:
            raise UnknownColumnError.from_missing(table, None, missing[0], self.schema.names)
        wanted = {name: t for name, t in declared.items() if name in self.schema.names}
        fields = [
            _pa.field(f.name, arrow_type(wanted[f.name])) if f.name in wanted else f for f in self.schema
        ]
        schema = pa.schema(fields)
        return _pa.RecordBatchReader.from_batches(schema, self._batches(schema, wanted, table))

    def _batches(self, schema: pa.Schema, wanted: Mapping[str, Type], table: str) -> Iterator[Any]:
        first_row = 0
        for batch in itertools.chain([] if self._first is None else [self._first], self._reader):
            rows = pa.Table.from_batches([batch])
            columns = [
                _typed(rows.select([name]), wanted[name], table, first_row)
                if name in wanted
                else rows.column(name)
                for name in schema.names
            ]
            yield from pa.table(columns, schema=schema).combine_chunks().to_batches()
            first_row += len(rows)


def _typed(rows: pa.Table, t: Type, table: str, first_row: int) -> Any:
    """The one column of some rows as values of a type, or a ColumnTypeError."""
    [name], values = rows.column_names, rows.column(0)
    if t == TEXT or not pa.types.is_string(values.type):
        fit = fit_table(rows, [name], [t], table=table, where="the query", first_row=first_row)
        return fit.column(0)
    texts = values.cast(pa.large_string())
    typed = of_known_type(texts, t)
    if typed is None:
        at = first_unfit(texts, lambda part: of_known_type(part, t) is not None)
        raise ColumnTypeError(
            f"column {shorten(name)} of table {table!r} is {t} by declaration; the query has "
            f"{shorten(texts[at].as_py())} in row {first_row + at + 1}. {NOTHING_APPLIED} Next step: mend "
            "the value, or leave the type out."
        )
    return typed


def _may_mix(values: Any) -> bool:
    """Whether values of a column may have been numbers, which the driver writes as texts or bytes there."""
    if not pa.types.is_string(values.type):
        return bool(pa.types.is_binary(values.type)) and values.null_count < len(values)
    return pc.any(pc.match_substring_regex(values, _WRITTEN_NUMBER)).as_py() is True


def mixed_notes(mixed: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What is said of columns that have values of several storage classes.

    >>> mixed_notes({"x": ["integer", "text"]})[0].split("; ")[0]
    'x: integer and text values are read as texts'
    """
    notes = []
    for name, kinds in mixed.items():
        made = "bytes" if "blob" in kinds else "texts"
        digits = ", with seven digits of the reals" if "real" in kinds else ""
        notes.append(
            f"{listing([name])}: {' and '.join(kinds)} values are read as {made}{digits}; "
            f"CAST({shorten(name)[1:-1]} AS TEXT), or AS REAL, in the sql gives it one type"
        )
    return tuple(notes)


def sqlite_notes(rows: pa.RecordBatch) -> tuple[str, ...]:
    """What the first rows show: texts that are all dates or times, floats of two digits at most."""
    dates: dict[Type, list[str]] = {}
    hundredths = []
    for field, values in zip(rows.schema, rows.slice(0, ROWS_LOOKED_AT).columns, strict=True):
        present = values.drop_null()
        if not len(present):
            continue
        if pa.types.is_string(field.type):
            texts = pa.chunked_array([present.cast(pa.large_string())])
            t = next((t for t in _TIMES if decode(texts, t) is not None), None)
            if t is not None:
                dates.setdefault(t, []).append(field.name)
        elif pa.types.is_floating(field.type):
            fits = pc.equal(pc.round(present, 2), present)
            whole = pc.equal(pc.floor(present), present)
            if pc.all(fits).as_py() and not pc.all(whole).as_py():
                hundredths.append(field.name)
    notes = [
        f"{listing(names)}: dates are texts, as SQLite has no dates; --types {shorten(names[0])[1:-1]}={t} "
        "reads them as such"
        for t, names in dates.items()
    ]
    if hundredths:
        notes.append(
            f"{listing(hundredths)}: decimals are floats, as SQLite has no decimals; --types "
            f"{shorten(hundredths[0])[1:-1]}={_HUNDREDTHS} reads them as such"
        )
    return tuple(notes)
