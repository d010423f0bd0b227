"""Tables in JSON documents: one document, one table.

A document holds its cells by rows or by columns, under fields that the options name or, without them, under
the usual ones, tried in this order:

- `{"headers": [..], "rows": [[..], ..]}` and `{"headers": [..], "columns": [[..], ..]}`;
- `{"tableHeaders": [[{"text": ..}, ..]], "tableData": [[{"text": ..}, ..], ..]}` (WikiTables);
- `{"columns": [{"name": .., "values": [..]}, ..]}`;
- `{"relation": [[..], ..]}` (Web Data Commons): columns, each beginning with its name unless `hasHeader` is
  false.

Numbers are never parsed: a cell is the text that the document has. true and false are `true` and `false`,
null is a missing cell, an object gives its field `text` (or another, by option). A list, and an object
without that field, is JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from types import NoneType
from typing import Any

from holdfast.errors import shorten
from holdfast.lakes.files.cells import check_width, column_names, decoded, reason_of, transposed, valid
from holdfast.lakes.files.lake_options import BadFile, LakeReadOptions, RawTable, UnreadableError
from holdfast.lakes.files.opening import too_large

HEADERS = ("headers", "header", "tableHeaders")
ROWS = ("rows", "tableData")
COLUMNS = ("columns", "relation")
# A file of records that are no tables would otherwise give a bad document for each of its lines.
MOST_BAD = 100

_PLAIN = frozenset((str, NoneType))
_ABSENT: Any = object()
_ERRORS = (UnreadableError, json.JSONDecodeError, RecursionError)


class _Number(str):
    """The text of a number, which a list must show without quotes."""

    __slots__ = ()


_DECODER = json.JSONDecoder(parse_float=_Number, parse_int=_Number, parse_constant=_Number)


def line_tables(
    lines: Iterable[bytes], first: int, name: str, source: str, options: LakeReadOptions
) -> Iterator[RawTable | BadFile]:
    """The tables of a JSON-lines file, one a line; `first` is the number of the first of these lines.

    Each line is decoded on its own: one in another encoding does not take the rest with it. One of too many
    bytes may come cut.
    """
    limit = options.max_file_bytes
    numbered = ((i, line) for i, line in enumerate(lines, first) if len(line) > limit or not line.isspace())
    return _documents(numbered, name, source, options)


def text_tables(
    text: str, encoding: str, name: str, source: str, options: LakeReadOptions
) -> Iterator[RawTable | BadFile]:
    """The tables of JSON lines that are decoded already."""
    numbered = ((i, line) for i, line in enumerate(text.split("\n"), 1) if line and not line.isspace())
    return _documents(numbered, name, source, options, encoding)


def json_tables(raw: bytes, name: str, source: str, options: LakeReadOptions) -> Iterator[RawTable | BadFile]:
    """The tables of a JSON file: one document, an array of documents, or a document a line.

    Raises an `UnreadableError` if it is none of those.
    """
    text, encoding = decoded(raw, options.encoding)
    if not text or text.isspace():
        raise UnreadableError("is empty. Expected: a JSON document")
    try:
        parsed = _DECODER.decode(text)
    except (json.JSONDecodeError, RecursionError) as error:
        first = text.lstrip().partition("\n")[0]
        if str(error).startswith("Extra data") and _is_document(first):
            return text_tables(text, encoding, name, source, options)
        raise UnreadableError(reason_of(error)) from None
    if isinstance(parsed, list):
        return _documents(enumerate(parsed, 1), name, source, options, encoding, _has_halves(text))
    return iter((_table(parsed, _has_halves(text), encoding, name, source, options),))


def holds_lines(lines: Iterable[bytes], encoding: str | None) -> bool:
    """Whether a JSON file holds a document a line: the first line is one, and the file has more than it."""
    line_stream = iter(lines)
    try:
        first = decoded(next(line_stream, b""), encoding)[0]
    except UnreadableError:
        return False
    return any(not line.isspace() for line in line_stream) and _is_document(first)


def _is_document(line: str) -> bool:
    try:
        return type(_DECODER.decode(line)) is dict
    except _ERRORS:
        return False


def _documents(
    numbered: Iterable[tuple[int, Any]],
    name: str,
    source: str,
    options: LakeReadOptions,
    encoding: str = "",
    halves: bool = False,
) -> Iterator[RawTable | BadFile]:
    """The tables of numbered documents: bytes of lines, texts of lines, or parsed ones."""
    n_bad = 0
    for number, document in numbered:
        try:
            read_as = encoding
            if isinstance(document, bytes):
                if len(document) > options.max_file_bytes:
                    raise too_large(options.max_file_bytes)
                document, read_as = decoded(document, options.encoding)
            if type(document) is str:
                halves = _has_halves(document)
                document = _DECODER.decode(document)
            yield _table(document, halves, read_as, f"{name}#{number}", f"{source}#{number}", options)
        except _ERRORS as error:
            n_bad += 1
            if n_bad <= MOST_BAD:
                yield BadFile(f"{source}#{number}", reason_of(error))
    if n_bad > MOST_BAD:
        yield BadFile(source, f"has {n_bad - MOST_BAD:,} more documents that cannot be read")


def _has_halves(text: str) -> bool:
    """Whether a JSON text may have escapes of halves of surrogate pairs."""
    return "\\ud" in text or "\\uD" in text


def _table(
    document: Any, halves: bool, encoding: str, name: str, source: str, options: LakeReadOptions
) -> RawTable:
    if type(document) is not dict:
        raise UnreadableError(f"is no JSON object. Expected: {_expected(options)}")
    header, columns = _parts(document, options)
    n_rows = len(columns[0]) if columns else 0
    columns += [[None] * n_rows for _ in range(len(header) - len(columns))]
    field = options.json_text
    texts = [
        column if _PLAIN.issuperset(map(type, column)) else [_cell(value, field) for value in column]
        for column in columns
    ]
    if halves:
        texts = [[value if value is None else valid(value) for value in column] for column in texts]
        header = [value if value is None else valid(value) for value in header]
    if options.json_name is not None:
        title = _cell(_at(document, options.json_name), field)
        if title and not title.isspace():
            name = valid(title) if halves else title
    return RawTable(name, source, column_names(header, len(texts)), texts, n_rows, encoding)


def _parts(document: dict[str, Any], options: LakeReadOptions) -> tuple[list[str | None], list[list[Any]]]:
    """The names and the columns of a document, all columns of one length."""
    header: list[str | None] = []
    headers = _field(document, options.json_headers, HEADERS)
    if headers is not None:
        header = _header(headers[1], options.json_text)
    rows = None if options.json_columns is not None else _field(document, options.json_rows, ROWS)
    if rows is not None:
        return header, _by_rows(rows[1])
    column_field = _field(document, options.json_columns, COLUMNS)
    if column_field is None:
        raise UnreadableError(f"is no table. Expected: {_expected(options)}")
    field, columns = column_field
    kinds = {*map(type, columns)}
    if kinds == {dict}:
        if any(type(column.get("values")) is not list for column in columns):
            raise UnreadableError(f"has a column in {field!r} without a list 'values'")
        if not header:
            header = [_cell(column.get("name"), options.json_text) for column in columns]
        columns = [column["values"] for column in columns]
    elif not kinds <= {list}:
        raise UnreadableError(f"has something in {field!r} that is neither a list of cells nor an object")
    elif field.endswith("relation") and headers is None and document.get("hasHeader", True) is not False:
        header = [_cell(column[0], options.json_text) if column else None for column in columns]
        columns = [column[1:] for column in columns]
    lengths = {*map(len, columns)}
    if len(lengths) > 1:
        n_rows = max(lengths)
        check_width(sum(map(len, columns)), n_rows, len(columns))
        columns = [column + [None] * (n_rows - len(column)) for column in columns]
    return header, [*columns]


def _by_rows(rows: list[Any]) -> list[list[Any]]:
    for number, row in enumerate(rows, 1) if {*map(type, rows)} - {list} else ():
        if type(row) is not list:
            raise UnreadableError(f"has a row that is no list: row {number:,} is {shorten(row, 40)}")
    return transposed(rows)[0]


def _header(headers: list[Any], field: str) -> list[str | None]:
    """The names; of several header rows, the texts of each column side by side, repeated ones once."""
    if not headers or type(headers[0]) is not list:
        return [_cell(value, field) for value in headers]
    rows = [[_cell(value, field) for value in row] for row in headers if type(row) is list]
    return [" ".join(dict.fromkeys(filter(None, column))) for column in zip_longest(*rows)]


def _field(
    document: dict[str, Any], option: str | None, usual: tuple[str, ...]
) -> tuple[str, list[Any]] | None:
    """The field's name and its list; None if no usual one is there. One that was asked for must be."""
    if option is not None:
        value = _at(document, option)
        if type(value) is not list:
            raise UnreadableError(f"has no list in the field {option!r}")
        return option, value
    for name in usual:
        value = document.get(name)
        if type(value) is list:
            return name, value
    return None


def _at(document: dict[str, Any], path: str) -> Any:
    """The value at a dotted path; the whole path as one name comes first."""
    if path in document or "." not in path:
        return document.get(path, _ABSENT)
    value: Any = document
    for part in path.split("."):
        value = value.get(part, _ABSENT) if type(value) is dict else _ABSENT
    return value


def _cell(value: Any, field: str) -> str | None:
    if value is None or type(value) is str:
        return value
    if type(value) is _Number:
        return str(value)
    if type(value) is dict:
        inner = _at(value, field)
        return _json(value) if inner is _ABSENT else None if inner is None else _json(inner, plain=True)
    return None if value is _ABSENT else _json(value)


def _json(value: Any, *, plain: bool = False) -> str:
    """The value as JSON text, its numbers as they were; a text without quotes if it is to be plain."""
    if type(value) is list:
        return f"[{', '.join([_json(v) for v in value])}]"
    if type(value) is dict:
        return "{" + ", ".join([f"{_json(k)}: {_json(v)}" for k, v in value.items()]) + "}"
    if type(value) is _Number or (plain and type(value) is str):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def _expected(options: LakeReadOptions) -> str:
    rows = [options.json_rows] if options.json_rows else [] if options.json_columns else [*ROWS]
    columns = [options.json_columns] if options.json_columns else [] if options.json_rows else [*COLUMNS]
    parts = [f"a list of rows in {' or '.join(map(repr, rows))}"] if rows else []
    parts += [f"a list of columns in {' or '.join(map(repr, columns))}"] if columns else []
    headers = [options.json_headers] if options.json_headers else [*HEADERS]
    return f"{', or '.join(parts)}, with names in {' or '.join(map(repr, headers))}"
