"""JSON lines: one object per line, a key per column; or one array of such objects (`json_arrays`).

Whole numbers are int, numbers with a fraction or an exponent float, `true` and `false` bool, strings text:
a string that looks like a date stays text, and a note says so. A missing key is NULL. A column of a declared
type that JSON lacks (date, timestamp, time, ...) is spelt as a string, by `type_rule`. Decimals are strings
or numbers: of these the digits count as the file has them, never a float in between.

The columns are the keys of the first records, and those that the user declares; keys that have objects or
arrays there are left out. A key that comes up later
is an error, never dropped: looking at all keys beforehand would read every file twice, for a rare case with
a simple cure (declare the key's type).

Arrow reads; where it refuses, the split is read again line by line in Python to say what is wrong and where.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute
import pyarrow.json

from holdfast.core.sources import json_arrays
from holdfast.core.sources.beginnings import can_split, heads
from holdfast.core.sources.columnar import table_label
from holdfast.core.sources.csv_files import (
    MAX_BLOCK,
    READ_BLOCK,
    file_name,
    lines_until,
    utf8_bytes,
)
from holdfast.core.sources.encodings import for_arrow
from holdfast.core.sources.json_numbers import EXACT_NUMBERS, Fraction, digits_of, wide_type
from holdfast.core.sources.raw_files import opened_raw, raw_bytes
from holdfast.core.sources.read_options import ReadOptions, Split
from holdfast.core.sources.respelling import of_known_type
from holdfast.core.sources.type_rule import TEXT
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.words.schema import Type
from holdfast.errors import (
    NOTHING_APPLIED,
    ColumnTypeError,
    HoldfastError,
    SchemaError,
    SourceError,
    listing,
    shorten,
)

_json: Any = pa.json  # third-party stubs lag behind Arrow
pc: Any = pa.compute

# What a JSON value can be a value of, in the order in which a column's type is chosen.
NATIVE = ("int", "float", "bool", "text")
_FITS = {"int": ("int", "float"), "float": ("float",), "bool": ("bool",), "text": ("text",)}
INT64 = range(-(2**63), 2**63)
EXACT = 2.0**53
BLOCK = 1 << 20  # bytes between two looks at a split that is read line by line


def cuts(path: str, size: int, split_bytes: int) -> list[int]:
    """Positions behind line ends about `split_bytes` apart; a JSON string has no raw line end in it."""
    positions = [0]
    if size <= split_bytes:
        return [0, size]
    with opened_raw(path, size) as file:
        while positions[-1] + split_bytes < size:
            file.seek(positions[-1] + split_bytes - 1)
            file.readline()
            if file.tell() >= size:
                break
            positions.append(file.tell())
    return [*positions, size] if positions[-1] < size or size == 0 else positions


def is_array(path: str, size: int, options: ReadOptions, *, table: str) -> bool:
    """Whether a file is one array. No more is read, or decompressed, than its beginning."""
    if can_split(path, options):
        return json_arrays.is_array(raw_bytes(path, 0, min(size, BLOCK), table).to_pybytes())
    body = utf8_bytes(next(heads(Split("jsonl", path, 0, size, 0), options, BLOCK)), options, table=table)
    return json_arrays.is_array(body.slice(0, min(body.size, BLOCK)).to_pybytes())


def _body(split: Split, options: ReadOptions, table: str) -> Any:
    """The bytes of a split: UTF-8, a line for each object."""
    body = utf8_bytes(split, options, table=table)
    if not split.array:
        return body
    try:
        return json_arrays.as_lines(body)
    except json_arrays.UnclosedArray as error:
        raise SourceError(
            f"{file_name(split)} for table {table!r} is cut short: its array has no end, and the last of it, "
            f"object {error.n_objects}, is {shorten(error.last[:200].strip().decode(errors='replace'))}. "
            f"{NOTHING_APPLIED} Next step: write or copy the file again, all of it."
        ) from None


def _objects(body: Any, split: Split, table: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line in the split, object) of every line that is not blank."""
    reader: Any = pa.BufferReader(body)
    for number, ended in enumerate(io.BufferedReader(reader, BLOCK), 1):
        line = ended.removesuffix(b"\n")
        if not line.strip():
            continue
        try:
            fields = json.loads(line.decode(), object_pairs_hook=_unique_keys, parse_float=Fraction)
            if not isinstance(fields, dict):
                raise ValueError("not an object")
            if b"\\u" in line and not _is_text(fields):
                raise ValueError("an escape of half a surrogate pair")
        except (UnicodeDecodeError, ValueError, RecursionError) as error:
            _malformed(line, error, number, split, table)
        yield number, fields


def _is_text(fields: dict[str, Any]) -> bool:
    """Whether all keys and texts of an object can be written as UTF-8: JSON's escapes say more than that."""
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key comes twice")
    return fields


def _place(split: Split, line: int) -> str:
    noun = "object" if split.array else "line"
    return f"{noun} {lines_until(split) + line} of {file_name(split)}"


def _malformed(line: bytes, error: Exception, number: int, split: Split, table: str) -> NoReturn:
    where = f"{_place(split, number)} for table {table!r}"
    if isinstance(error, UnicodeDecodeError):
        raise SourceError(
            f"{where} has bytes that are not utf-8: {shorten(line[error.start : error.start + 8])}. "
            f"{NOTHING_APPLIED} Next step: give the file's encoding, for example --encoding latin-1."
        ) from None
    reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
    wanted = "an array of objects" if split.array else "one object per line, without line breaks inside"
    raise SourceError(
        f"{where} is not one JSON object: {shorten(line[:200].decode(errors='replace'))} "
        f"({shorten(reason)[1:-1]}). "
        f"{NOTHING_APPLIED} Next step: write {wanted}."
    ) from None


def _kind(value: Any) -> str | None:
    """The family of a JSON value; None for null, "nested" for objects and arrays."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    return "text" if isinstance(value, str) else "nested"


def sample(
    split: Split, options: ReadOptions, n_rows: int, *, table: str, batch: bool = False
) -> tuple[dict[str, Type], list[str], dict[str, list[str]]]:
    """(guessed types by column, keys that are nested, texts by column) of a file's first records.

    A column of only NULLs is text. If all keys are nested, it is an error. Nothing is guessed of declared
    types, and of a `batch`, which has those of its table.
    """
    for head in heads(split, options):
        whole = head is split
        try:
            n_records, families, nested, texts = _families(head, options, n_rows, table, batch=batch)
        except HoldfastError:
            if whole:
                raise
            continue
        if whole or n_records == n_rows:
            break
    declared = options.declared
    families |= {name: None for name in declared if name not in families}
    if not families:
        raise SourceError(
            f"{file_name(split)} for table {table!r} is empty: it has no JSON object with a key. "
            f"{NOTHING_APPLIED} Next step: check how the file was written."
        )
    if not families.keys() - nested.keys() or declared.keys() & nested.keys():
        raise next(error for key, error in nested.items() if key in declared or not declared)
    types = {
        name: declared.get(name) or (Type(fits[0]) if fits else TEXT)  # type: ignore[arg-type]
        for name, fits in families.items()
        if name not in nested
    }
    return types, list(nested), texts


def _families(
    split: Split, options: ReadOptions, n_rows: int, table: str, *, batch: bool
) -> tuple[int, dict[str, list[str] | None], dict[str, SchemaError], dict[str, list[str]]]:
    """How many of the first records there are, what the values of each key can be, which are nested, and the
    values that are texts."""
    body = _body(split, options, table)
    families: dict[str, list[str] | None] = {}
    nested: dict[str, SchemaError] = {}
    texts: dict[str, list[str]] = {}
    n_records = 0
    for line, fields in itertools.islice(_objects(body, split, table), n_rows):
        n_records += 1
        for key, value in fields.items():
            if _kind(value) == "nested":
                families.setdefault(key, None)
                nested.setdefault(key, _nested(key, value, line, split, table))
            elif key not in nested:
                before = families.setdefault(key, None)
                if not batch and key not in options.types:
                    families[key] = _narrow(before, value, key, line, split, table)
                if isinstance(value, str):
                    texts.setdefault(key, []).append(value)
    return n_records, families, nested, texts


def _narrow(
    fits: list[str] | None, value: Any, key: str, line: int, split: Split, table: str
) -> list[str] | None:
    kind = _kind(value)
    if kind is None:
        return fits
    if kind == "nested":
        raise _nested(key, value, line, split, table)
    allowed: Sequence[str] = _FITS[kind]
    if kind == "int" and value not in INT64:
        allowed = ()
    fitting = [f for f in allowed if fits is None or f in fits]
    if kind == "int" and "float" in fitting and not _exact(value):
        fitting.remove("float")
    if not fitting:
        before = f"; values before it are {fits[0]}" if fits else ""
        what = "mixes types" if fits else "has a number that no 64-bit integer holds"
        raise ColumnTypeError(
            f"column {shorten(key)} of table {table!r} {what}: {_place(split, line)} has {shorten(value)} "
            f"({kind}){before}. {NOTHING_APPLIED} Next step: write all its values as strings, or all as "
            "numbers."
        )
    return fitting


def _nested(key: str, value: Any, line: int, split: Split, table: str) -> SchemaError:
    return SchemaError(
        f"column {shorten(key)} of table {table!r} is nested: {_place(split, line)} has "
        f"{shorten(json.dumps(value)[:200])[1:-1]}. {NOTHING_APPLIED} Next step: flatten it or leave it out."
    )


def _exact(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def read_objects(
    split: Split,
    names: Sequence[str],
    types: Sequence[Type],
    options: ReadOptions,
    *,
    table: str,
    version: int | None = None,
    guessed: bool = False,
) -> tuple[pa.Table, dict[str, list[str]]]:
    """The split's rows, and for each column whose guess fails (only if `guessed`) the types it survives.

    A failed column comes back as text without values: it must be read again anyway.
    """
    body = _body(split, options, table)
    schema = pa.schema([(n, arrow_type(t)) for n, t in zip(names, types, strict=True)])
    if body.size == 0:
        return schema.empty_table(), {}
    # Types that JSON lacks are read as strings and decoded by the rule for texts.
    raw = {
        n: (arrow_type(t) if t.family in NATIVE else pa.large_string())
        for n, t in zip(names, types, strict=True)
    }
    by_name = dict(zip(names, types, strict=True))
    exact = {n: t for n, t in by_name.items() if t.family in EXACT_NUMBERS}
    try:
        rows = _read_exactly(body, raw, "infer" if options.left_out else "error", exact, split, table)
        if {*rows.column_names} - {*names, *options.left_out}:
            _diagnose(body, split, by_name, options, table, version, guessed=False)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        fits = _diagnose(body, split, by_name, options, table, version, guessed=guessed)
        if not fits and not options.left_out:
            raise SourceError(
                f"{file_name(split)} for table {table!r} cannot be read as JSON lines: "
                f"{shorten(str(error), 100)[1:-1]}. {NOTHING_APPLIED} Next step: write one object per line."
            ) from None
        # All keys are known by now; what is left out need not have one type.
        raw = {n: dt for n, dt in raw.items() if n not in fits}
        rows = _read_exactly(body, raw, "ignore", exact, split, table)
        if fits:
            columns = [
                pa.chunked_array([pa.nulls(rows.num_rows, pa.large_string())])
                if n in fits
                else rows.column(n)
                for n in names
            ]
            return pa.table(columns, names=list(names)), fits
    for name, t in by_name.items():
        if t.family == "float" and _has_large(rows.column(name)):
            _diagnose(body, split, by_name, options, table, version, guessed=False)
    columns = []
    for name, t in by_name.items():
        column: Any = rows.column(name)
        if t.family not in NATIVE and column.type != arrow_type(t):
            decoded = of_known_type(column, t)
            if decoded is None:
                _diagnose(body, split, by_name, options, table, version, guessed=False)
            column = decoded
        columns.append(column)
    return pa.table(columns, schema=schema), {}


def _read_exactly(
    body: Any,
    columns: Mapping[str, pa.DataType],
    unexpected: str,
    exact: Mapping[str, Type],
    split: Split,
    table: str,
) -> pa.Table:
    """The rows; where `exact` columns have numbers, these by their digits: as values, or texts among strings.

    Cost: that of Arrow, three times if they are numbers; if there are strings among them, or one does not
    fit, some 20 microseconds a row in Python, as Arrow would read more in strings than is there.
    """
    try:
        return _read(body, columns, unexpected)
    except pa.ArrowInvalid:
        if not exact:
            raise
    with contextlib.suppress(pa.ArrowInvalid):  # what does not fit is looked at one by one
        return _numbers(body, columns, unexpected, exact)
    texts: dict[str, list[str | None]] = {name: [] for name in exact}
    keys: set[str] = set()
    for _, fields in _objects(body, split, table):
        keys |= fields.keys()
        for name, column in texts.items():
            value: Any = fields.get(name)
            kind = _kind(value)
            if kind not in (None, "text", "int", "float"):
                raise pa.ArrowInvalid(f"{kind} among numbers")
            column.append(digits_of(value) if kind in ("int", "float") else value)
    rest = _read(body, {name: dt for name, dt in columns.items() if name not in texts}, "ignore")
    spelt: dict[str, Any] = {name: pa.array(column, pa.large_string()) for name, column in texts.items()}
    n_rows = len(next(iter(spelt.values())))
    other = keys - columns.keys() if unexpected != "ignore" else set()
    return pa.table(
        {name: rest.column(name) for name in rest.column_names}
        | {name: pa.chunked_array([column]) for name, column in spelt.items()}
        | {name: pa.nulls(n_rows) for name in other}
    )


def _numbers(
    body: Any, columns: Mapping[str, pa.DataType], unexpected: str, exact: Mapping[str, Type]
) -> pa.Table:
    """The rows, if all values of the `exact` columns are numbers of their types; ArrowInvalid if not."""
    _read(body, dict.fromkeys(exact, pa.float64()), "ignore")  # takes no strings
    rows = _read(body, {**columns, **{name: wide_type(t) for name, t in exact.items()}}, unexpected)
    for name, t in exact.items():
        values = rows.column(name).cast(arrow_type(t))
        rows = rows.set_column(rows.column_names.index(name), name, values)
    return rows


def _read(body: Any, columns: Mapping[str, pa.DataType], unexpected: str) -> pa.Table:
    block_size = READ_BLOCK
    while True:
        try:
            rows: pa.Table = _json.read_json(
                pa.BufferReader(for_arrow(body)),
                read_options=_json.ReadOptions(use_threads=False, block_size=block_size),
                parse_options=_json.ParseOptions(
                    explicit_schema=pa.schema(list(columns.items())),
                    newlines_in_values=False,
                    unexpected_field_behavior=unexpected,
                ),
            )
            return rows
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block_size >= min(body.size, MAX_BLOCK):
                raise
            block_size = min(block_size * 8, body.size, MAX_BLOCK)


def _has_large(values: Any) -> bool:
    """Whether a float column has values from 2**53 on, where a JSON integer may have lost digits."""
    size = pc.max(pc.abs(values.filter(pc.is_finite(values)))).as_py()
    return size is not None and size >= EXACT


def _diagnose(
    body: Any,
    split: Split,
    types: Mapping[str, Type],
    options: ReadOptions,
    table: str,
    version: int | None,
    *,
    guessed: bool,
) -> dict[str, list[str]]:
    """Read line by line: raise what is wrong, or say which types the columns with failed guesses survive."""
    fits: dict[str, list[str] | None] = dict.fromkeys(types)
    failed: set[str] = set()
    for line, fields in _objects(body, split, table):
        for key, value in fields.items():
            if key in options.left_out:
                continue
            if key not in types:
                raise SchemaError(
                    f"{_place(split, line)} has the key {shorten(key)}, which "
                    f"{table_label(table, version)} has no column for. Columns: {listing(list(types))}. "
                    f"{NOTHING_APPLIED} Next step: declare it when the table is tracked, for example "
                    f"--types {shorten(key)[1:-1]}=text, or leave it out."
                )
            if value is None:
                continue
            is_guess = guessed and key not in options.types
            if is_guess:
                fits[key] = _narrow(fits[key], value, key, line, split, table)
            if _fits_type(value, types[key]):
                continue
            failed.add(key)
            if is_guess and types[key] == TEXT:  # narrowed to text by another split, or by the sample
                raise ColumnTypeError(
                    f"column {shorten(key)} of table {table!r} mixes types: {_place(split, line)} has "
                    f"{shorten(value)} ({_kind(value)}), others have text. "
                    f"{NOTHING_APPLIED} Next step: write all its values as strings, or all as numbers."
                )
            if not is_guess:
                reason = "" if version is not None else " by declaration" if key in options.types else ""
                raise ColumnTypeError(
                    f"column {shorten(key)} of {table_label(table, version)} is {types[key]}{reason}; "
                    f"{_place(split, line)} has {shorten(value)}. "
                    f"{NOTHING_APPLIED} Next step: mend the value, or write all values of the column alike."
                )
    return {key: [*(f for f in fits[key] or () if f != "text"), "text"] for key in types if key in failed}


def _fits_type(value: Any, t: Type) -> bool:
    kind = _kind(value)
    if t.family == "int":
        return kind == "int" and value in INT64
    if t.family == "float":
        return kind == "float" or (kind == "int" and _exact(value))
    if t.family in ("bool", "text"):
        return kind == t.family
    if t.family in EXACT_NUMBERS and kind in ("int", "float"):
        value, kind = digits_of(value), "text"
    texts = pa.chunked_array([pa.array([value], pa.large_string())]) if kind == "text" else None
    return texts is not None and of_known_type(texts, t) is not None
