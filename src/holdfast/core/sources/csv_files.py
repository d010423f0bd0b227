"""CSV files: their header, their splits, their texts, and what is wrong with them.

A file is cut only behind a record end, found by the kernel `walk_records` (blocks without a quote are
passed by a search for newlines alone). Every split is then read by Arrow with all columns as text. Line
and row numbers in messages are those of the file, also from a later split: they are counted only when
something is wrong. Blank lines are ignored.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from holdfast.core.sources.beginnings import can_split, heads
from holdfast.core.sources.column_names import names_of
from holdfast.core.sources.columnar import check_columns, first_line
from holdfast.core.sources.csv_comments import (
    HEADER_NOTE,
    MARK,
    START,
    has_preamble,
    preamble_note,
    without_comments,
)
from holdfast.core.sources.csv_delimiter import check_cut, delimiter_of
from holdfast.core.sources.csv_lead import lead_in, lead_size
from holdfast.core.sources.csv_walk import Region, Walk, first_record, in_quotes, walk_blocks, walk_to
from holdfast.core.sources.encodings import (
    BOM,
    bom_size,
    for_arrow,
    is_utf8,
    wide_encoding,
    without_mark,
)
from holdfast.core.sources.packed import MARK_BYTES, packing_by_mark, packing_of, unpacked
from holdfast.core.sources.raw_files import blocks_of, looked, opened_raw, raw_bytes, size_of
from holdfast.core.sources.read_options import ReadOptions, Split
from holdfast.errors import (
    NOTHING_APPLIED,
    HoldfastError,
    SchemaError,
    SourceError,
    plural,
    shorten,
)

_csv: Any = pa.csv  # third-party stubs lag behind Arrow
SAMPLE_BLOCK = 1 << 20
# Bytes in which the header is looked for first.
HEADER_BYTES = 1 << 16
# Measured on 144 MB x 16 columns: 1 MB blocks 0.59 s, 4 MB 0.57 s, 32 MB 0.64 s.
READ_BLOCK = 4 << 20
MAX_BLOCK = 2**31 - 1  # Arrow counts the bytes of a block in 32 bits


@dataclass(frozen=True, slots=True)
class Text:
    """UTF-8 bytes of a split behind byte order mark and header, and what was cut off before."""

    body: Any  # pa.Buffer
    names: tuple[str, ...]  # of the file, in its order
    lines_before: int  # line ends between the start of the split and the body
    split: Split
    trailing: tuple[str, ...] = ()  # columns at the end that the header does not name
    notes: tuple[str, ...] = ()  # what was made of the header


def file_name(split: Split) -> str:
    return os.path.basename(split.path)


def utf8_bytes(split: Split, options: ReadOptions, *, table: str) -> Any:
    """The split's bytes, decompressed and as UTF-8 (not yet checked if they should be UTF-8 already)."""
    packing = packing_of(split.path)
    if packing:
        with (
            opened_raw(split.path, split.end) as raw,
            unpacked(raw, packing, file_name(split), table) as file,
        ):
            body = pa.py_buffer(file.read(-1 if split.most is None else split.most))
    else:
        body = raw_bytes(split.path, split.start, split.end, table)
        if split.first and (mark := packing_by_mark(body.slice(0, min(MARK_BYTES, body.size)).to_pybytes())):
            raise SourceError(
                f"{file_name(split)} for table {table!r} is compressed, which its name does not say. "
                f"{NOTHING_APPLIED} Next step: name it {file_name(split)}{mark}, or unpack it."
            )
    if not is_utf8(options):
        coded = body.to_pybytes()
        try:
            text = coded.decode(options.encoding)
        except UnicodeError as error:
            at = getattr(error, "start", 0)
            raise undecodable(split, options, table, coded, at) from None
        return pa.py_buffer(without_mark(text, options.encoding).encode())
    if not split.first:
        return body
    wide = wide_encoding(body.slice(0, min(4, body.size)).to_pybytes())
    if wide is not None:
        raise SourceError(
            f"{file_name(split)} for table {table!r} seems to be {wide.upper()} text, not "
            f"{options.encoding}. {NOTHING_APPLIED} Next step: give its encoding (--encoding {wide}), "
            f"or convert it: iconv -f {wide.upper()} -t UTF-8."
        )
    return body.slice(bom_size(body))


def undecodable(split: Split, options: ReadOptions, table: str, raw: bytes, at: int) -> SourceError:
    line = lines_until(split) + raw.count(b"\n", 0, at) + 1
    encodings = "latin-1 or cp1252" if is_utf8(options) else "utf-8"
    return SourceError(
        f"line {line} of {file_name(split)} for table {table!r} has bytes that are not {options.encoding}: "
        f"{shorten(raw[at : at + 8])}. {NOTHING_APPLIED} Next step: give the file's encoding, "
        f"for example --encoding {encodings}."
    )


def open_text(split: Split, options: ReadOptions, *, table: str) -> Text:
    """The split without byte order mark and header, and the file's column names."""
    delimiter = delimiter_of(split.path, options)
    body = _ended(utf8_bytes(split, options, table=table), delimiter)
    if not split.first:
        return Text(body, header_of(split, options, table=table).names, 0, split)
    if options.comment:
        body = without_comments(body, options.comment, delimiter, options.quote)
    lead = lead_in(body, split, delimiter, options, table)
    begin, end, closed = first_record(body.slice(lead), delimiter, options.quote)
    begin, end = lead + begin, lead + end
    if not closed:
        raise unclosed_quote(split.path, options, table)
    if begin == end:
        raise SourceError(
            f"{file_name(split)} for table {table!r} is empty: it has no "
            f"{'header' if options.header else 'row'}. "
            f"{NOTHING_APPLIED} Next step: check how the file was written."
        )
    fields = _fields(body.slice(begin, end - begin), delimiter, split, options, table)
    check_cut(fields, delimiter, options, file_name(split), table=table)
    if not options.header:
        end = lead
    elif _has_one_more(body.slice(end), len(fields), delimiter, split, options, table):
        fields.append("")
    names, trailing, notes = names_of(fields, options, file_name(split), table=table)
    if lead:
        notes += (preamble_note(body.slice(0, lead).to_pybytes()),)
    if options.header and options.comment is None and body.slice(begin, 1).to_pybytes() == MARK:
        notes += (HEADER_NOTE,)
    lines_before = body.slice(0, end).to_pybytes().count(b"\n")
    return Text(body.slice(end), names, lines_before, split, trailing, notes)


def _has_one_more(
    body: Any, n_fields: int, delimiter: str, split: Split, options: ReadOptions, table: str
) -> bool:
    """Whether the first row has one field more than the header, an empty one: a delimiter ends its line."""
    begin, end = _short_record(body, delimiter, options.quote)
    text = body.slice(begin, end - begin).to_pybytes().rstrip(b"\r\n").decode(errors="replace")
    if not text.endswith(delimiter):
        return False
    row = _fields(pa.py_buffer(text.encode()), delimiter, split, options, table)
    return len(row) == n_fields + 1 and row[-1] == ""


def _short_record(body: Any, delimiter: str, quote: str) -> tuple[int, int]:
    """(start, end) of the first record; equal if there is none, or it is too long to be looked at."""
    window = body.slice(0, min(body.size, HEADER_BYTES))
    begin, end, closed = first_record(window, delimiter, quote)
    whole = closed and (end < window.size or window.size < HEADER_BYTES)
    return (begin, end) if whole else (0, 0)


def header_of(split: Split, options: ReadOptions, *, table: str) -> Text:
    """The header of the file that a split belongs to, without what is behind it.

    No more is read, or decompressed, than it takes.
    """
    return replace(_begun(split, options, table), body=pa.py_buffer(b""))


def _begun(split: Split, options: ReadOptions, table: str) -> Text:
    """The text of the first split of a file as far as its header is certain."""
    if can_split(split.path, options):
        end = _header_end(split.path, split.start or split.end, options, table)
        return open_text(Split("csv", split.path, 0, end, 0), options, table=table)
    for head in heads(split, options, 2 * HEADER_BYTES):
        try:
            text = open_text(head, options, table=table)
        except HoldfastError:
            if head is split:
                raise
            continue
        if head is split or text.body.size >= HEADER_BYTES:
            break
    return text


def _ended(body: Any, delimiter: str) -> Any:
    """The bytes with a line end behind an empty last field.

    Without one Arrow takes that field for quoted, and so not for NULL, if the field before it is.
    """
    ends_empty = body.size and body.slice(body.size - 1).to_pybytes() == delimiter.encode()
    return pa.py_buffer(body.to_pybytes() + b"\n") if ends_empty else body


def _header_end(path: str, size: int, options: ReadOptions, table: str) -> int:
    """The position behind the header, and a short first row, within the first `size` bytes of a file."""
    length, delimiter = 2 * HEADER_BYTES, delimiter_of(path, options)
    while True:
        start = raw_bytes(path, 0, min(length, size), table)
        skip = bom_size(start)
        if has_preamble(start.slice(skip, min(START, start.size - skip)).to_pybytes()):
            skip = lead_size(path, options, table)
        record = start.slice(min(skip, start.size))
        end = skip + first_record(record, delimiter, options.quote)[1]
        if end + HEADER_BYTES <= start.size or length >= size:
            row = start.slice(end) if options.header and end < start.size else start.slice(0, 0)
            return end + _short_record(row, delimiter, options.quote)[1]
        length *= 8


def _fields(record: Any, delimiter: str, split: Split, options: ReadOptions, table: str) -> list[str]:
    raw = record.to_pybytes()
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise undecodable(split, options, table, raw, error.start) from None
    row = _csv.read_csv(
        # Without a line end Arrow cannot count the columns.
        pa.BufferReader(for_arrow(pa.py_buffer(raw + b"\n"))),
        read_options=_csv.ReadOptions(
            use_threads=False, autogenerate_column_names=True, block_size=len(raw) + len(BOM) + 2
        ),
        parse_options=_parse_options(delimiter, options),
        convert_options=_csv.ConvertOptions(default_column_type=pa.large_string(), strings_can_be_null=False),
    )
    return [column[0].as_py() for column in row.columns]


def _parse_options(delimiter: str, options: ReadOptions, on_ragged: Any = None) -> Any:
    return _csv.ParseOptions(
        delimiter=delimiter,
        quote_char=options.quote or False,
        double_quote=bool(options.quote),
        newlines_in_values=bool(options.quote),
        invalid_row_handler=on_ragged,
    )


def cuts(
    files: Mapping[str, int], options: ReadOptions, split_bytes: int, walk: Walk, *, table: str
) -> list[list[int]]:
    """Of each file: positions behind record ends, about `split_bytes` apart; 0 first, the file's size last.

    Two neighbours are a split. One `walk` for all files that are larger than a split. Also tells an unclosed
    quote before anything is read.
    """
    large = [path for path, size in files.items() if size > split_bytes and can_split(path, options)]
    regions = list(looked(lambda path: _regions(path, files[path], options, split_bytes, table), large))
    walked = iter(walk([region for of_file in regions for region in of_file]))
    ends = looked(lambda path: _header_end(path, files[path], options, table), large)
    composed = {
        path: _composed(path, files[path], of_file, end, walked, options, table)
        for path, of_file, end in zip(large, regions, ends, strict=True)
    }
    return [composed.get(path, [0, size]) for path, size in files.items()]


def _regions(path: str, size: int, options: ReadOptions, split_bytes: int, table: str) -> list[Region]:
    """A file in parts of one length, `split_bytes` at most."""
    skip = lead_size(path, options, table)
    n_regions = max(1, -(-(size - skip) // split_bytes))
    bounds = [skip + (size - skip) * i // n_regions for i in range(n_regions + 1)]
    delimiter = delimiter_of(path, options)
    return [Region(path, *pair, delimiter, options.quote, table) for pair in itertools.pairwise(bounds)]


def _composed(
    path: str,
    size: int,
    regions: list[Region],
    header_end: int,
    walked: Iterator[Any],
    options: ReadOptions,
    table: str,
) -> list[int]:
    """The cuts of a file: each region's walk is that from the mode in which the one before it has ended."""
    from holdfast.core.sources.kernels import records

    positions, mode = [0], records.RECORD_START
    for region, modes in zip(regions, walked, strict=False):
        mode, position = modes[mode].tolist()
        if region is not regions[0] and max(positions[-1] + 1, header_end) <= position < size:
            positions.append(position)
    if mode == records.QUOTED:
        raise unclosed_quote(path, options, table)
    return [*positions, size]


def lines_until(split: Split) -> int:
    return sum(block.count(b"\n") for block in blocks_of(split.path, 0, split.start))


def row_number(split: Split, options: ReadOptions, position: int) -> int:
    """The number, from 1 and without the header, of the row at a position of the split. Only for messages."""
    records = 0
    if split.start:
        blocks = blocks_of(split.path, lead_size(split.path, options, ""), split.start)
        records = int(walk_blocks(blocks, delimiter_of(split.path, options), options.quote)[1])
    return records - (1 if records and options.header else 0) + position + 1


def unclosed_quote(path: str, options: ReadOptions, table: str) -> SourceError:
    size, delimiter = size_of(path), delimiter_of(path, options)
    if can_split(path, options):
        skip = lead_size(path, options, table)
        state = walk_blocks(blocks_of(path, skip, size, table), delimiter, options.quote)
    else:
        body = utf8_bytes(Split("csv", path, 0, size, 0), options, table=table)
        state = walk_to(body, delimiter, options.quote)
    return SourceError(
        f"{os.path.basename(path)} for table {table!r} has a quote that is never closed, in the record "
        f"that begins in line {int(state[3]) + 1}. {NOTHING_APPLIED} Next step: close the quote, or turn "
        "quoting off (--quote '')."
    )


def _text_schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([(n, pa.large_string()) for n in names])


def read_texts(
    text: Text, names: Sequence[str], options: ReadOptions, *, table: str, version: int | None = None
) -> pa.Table:
    """All rows of the split, every column as large_string, in the order of `names`."""
    where = file_name(text.split)
    there = [n for n in text.names if n not in options.left_out]
    check_columns(there, names, where=where, table=table, version=version)
    if text.body.size == 0:
        return _text_schema(names).empty_table()
    batches = list(_batches(text, options, READ_BLOCK, table))
    texts = pa.Table.from_batches(batches, _text_schema(text.names))
    _check_last_quote(text, texts, options, table)
    for name in (n for n in options.left_out if n in text.names):
        values = texts.column(name).drop_null()
        if len(values):
            raise SchemaError(
                f"{where} for table {table!r} has a column without a name at its end, which is empty at "
                f"first, and then has {shorten(values[0].as_py())}. {NOTHING_APPLIED} Next step: name the "
                "column in the header, or give --names."
            )
    return texts.select(list(names))


def first_rows(split: Split, options: ReadOptions, n_rows: int, *, table: str) -> pa.Table:
    """The first rows of a split as text, and all columns of its file. Reads no more of it than they need."""
    for head in heads(split, options):
        whole = head is split
        try:
            # One row more than is wanted: only the last one can be half a record.
            rows = read_sample(open_text(head, options, table=table), options, n_rows + 1, table=table)
        except HoldfastError:
            if whole:
                raise
            continue
        if whole or rows.num_rows > n_rows:
            break
    return rows.slice(0, n_rows)


def read_sample(text: Text, options: ReadOptions, n_rows: int, *, table: str) -> pa.Table:
    """The first rows as text, without reading on."""
    schema = _text_schema(text.names)
    if text.body.size == 0:
        return schema.empty_table()
    batches, n_read = [], 0
    for batch in _batches(text, options, SAMPLE_BLOCK, table):
        batches.append(batch)
        n_read += batch.num_rows
        if n_read >= n_rows:
            break
    return pa.Table.from_batches(batches, schema).slice(0, n_rows)


def _batches(text: Text, options: ReadOptions, block_size: int, table: str) -> Iterator[Any]:
    """Arrow's reader over the body; a record longer than a block makes it begin again with larger ones."""
    ragged: list[Any] = []

    def on_ragged(row: Any) -> str:
        ragged.append(row)
        return "error"

    delimiter = delimiter_of(text.split.path, options)
    done = 0
    while True:
        skip = done
        try:
            reader = _csv.open_csv(
                pa.BufferReader(for_arrow(text.body)),
                read_options=_csv.ReadOptions(
                    use_threads=False, column_names=list(text.names), block_size=block_size
                ),
                parse_options=_parse_options(delimiter, options, on_ragged),
                convert_options=_csv.ConvertOptions(
                    column_types={n: pa.large_string() for n in text.names},
                    null_values=list(options.nulls),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
            for batch in reader:
                if skip >= batch.num_rows:
                    skip -= batch.num_rows
                    continue
                part = batch.slice(skip)
                skip = 0
                done += part.num_rows
                yield part
            return
        except pa.ArrowInvalid as error:
            if "straddling" in str(error) and block_size < min(text.body.size, MAX_BLOCK):
                block_size = min(block_size * 8, text.body.size, MAX_BLOCK)
                continue
            _explain(error, ragged, text, options, table)


def _explain(error: Exception, ragged: list[Any], text: Text, options: ReadOptions, table: str) -> NoReturn:
    """Raise the clear form of an error of Arrow's reader."""
    split, where = text.split, file_name(text.split)
    raw = text.body.to_pybytes()
    try:
        raw.decode()
    except UnicodeDecodeError as bad:
        base = Split("csv", split.path, split.start, split.end, 0)
        wrong = undecodable(
            base, options, table, b"\n" * text.lines_before + raw, text.lines_before + bad.start
        )
        raise wrong from None
    delimiter = delimiter_of(split.path, options)
    state = walk_to(text.body, delimiter, options.quote)
    if in_quotes(state):
        raise unclosed_quote(split.path, options, table) from None
    if ragged:
        row = ragged[-1]
        number = row.number if row.number is not None else int(state[1])
        lines = int(walk_to(text.body, delimiter, options.quote, number - 1)[2])
        line = lines_until(split) + text.lines_before + lines + 1
        step = "mend the line, quote fields that contain the delimiter, or give another --delimiter"
        if options.comment is None and row.text.startswith(MARK.decode()):
            step = "skip lines that begin with # (--comment '#'), or mend the line"
        raise SourceError(
            f"line {line} of {where} for table {table!r} has {plural(row.actual_columns, 'field')} instead "
            f"of {row.expected_columns}: {shorten(row.text)}. {NOTHING_APPLIED} Next step: {step}."
        ) from None
    raise SourceError(
        f"{where} for table {table!r} cannot be read as CSV: {first_line(error)}. {NOTHING_APPLIED} "
        "Next step: check the file and its format."
    ) from None


def _check_last_quote(text: Text, texts: pa.Table, options: ReadOptions, table: str) -> None:
    """Raise if the last field's quote is never closed: Arrow takes it for closed at the end of the file."""
    if not options.quote or texts.num_rows == 0:
        return
    last = texts.column(texts.num_columns - 1)[texts.num_rows - 1].as_py()
    if last is None:
        return
    q = options.quote
    tail = (q + last.replace(q, q + q)).encode()
    if len(tail) > text.body.size or text.body.slice(text.body.size - len(tail)).to_pybytes() != tail:
        return
    state = walk_to(text.body, delimiter_of(text.split.path, options), q)  # `""` at the end looks alike
    if in_quotes(state):
        raise unclosed_quote(text.split.path, options, table)
