"""Reading a unit: its tables, and its bad files among them."""

from __future__ import annotations

import csv
import io
import os
import struct
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import chain, islice
from typing import IO

from holdfast.core.store.root import is_stored
from holdfast.lakes.files.archives import tar_members, zip_member
from holdfast.lakes.files.cells import WIDE, decoded, reason_of
from holdfast.lakes.files.delimited import allow_long_cells, delimited_table
from holdfast.lakes.files.file_kinds import Kind, kind_of, member_name, shown
from holdfast.lakes.files.json_tables import json_tables, line_tables, text_tables
from holdfast.lakes.files.lake_options import BadFile, LakeReadOptions, RawTable, Unit, UnreadableError
from holdfast.lakes.files.opening import (
    drained,
    gunzipped,
    lines_of,
    open_regular,
    read_regular,
    too_large,
    unpacked,
)
from holdfast.lakes.files.parquet_tables import parquet_table

# Files of a store that are read ahead.
AHEAD = 16

# What a damaged file can make the readers raise. MemoryError is not among them: it is about the machine.
_ERRORS = (
    UnreadableError,
    OSError,
    EOFError,
    ValueError,
    RecursionError,
    NotImplementedError,
    csv.Error,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


def read_unit(unit: Unit, options: LakeReadOptions) -> Iterator[RawTable | BadFile]:
    """The tables of a unit, in its order, and a `BadFile` for each that cannot be read.

    One table is in memory at a time, besides the file it comes from; JSON lines are streamed.
    """
    allow_long_cells()
    if unit.kind == "files":
        return _read_files(unit, options)
    if unit.kind == "lines":
        return _read_lines(unit, options)
    if unit.kind == "zip":
        return _read_zip(unit, options)
    if unit.kind == "tar":
        return _read_tar(unit, options)
    return _not_read(unit)


def _not_read(unit: Unit) -> Iterator[BadFile]:
    for path in unit.paths:
        yield BadFile(shown(os.path.join(unit.root, path) if path else unit.root), unit.prefix)


def _read_files(unit: Unit, options: LakeReadOptions) -> Iterator[RawTable | BadFile]:
    limit = options.max_file_bytes
    for path, read_whole in _openings(unit, limit):
        full = os.path.join(unit.root, path)
        name, source = shown(path), shown(full)
        kind, gzipped = kind_of(path)
        try:
            if kind == "lines":
                with open_regular(full, unit.follow, limit)[0] as stream:
                    yield from _stream_tables(stream, gzipped, name, source, options)
                continue
            yield from _whole_tables(read_whole(), kind, gzipped, name, source, options)
        except _ERRORS as error:
            yield BadFile(source, reason_of(error))


def _openings(unit: Unit, limit: int) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The files of a unit, each with what reads it whole. On a store some are read ahead: a request takes as
    long as reading some thousand small files from a disk."""

    def reading(path: str) -> Callable[[], bytes]:
        return partial(read_regular, os.path.join(unit.root, path), unit.follow, limit)

    if not is_stored(unit.root):
        yield from ((path, reading(path)) for path in unit.paths)
        return
    with ThreadPoolExecutor(AHEAD) as threads:
        ahead: deque[tuple[str, Future[bytes] | None]] = deque()
        paths = iter(unit.paths)
        while True:
            for path in islice(paths, AHEAD - len(ahead)):
                lines = kind_of(path)[0] == "lines"
                ahead.append((path, None if lines else threads.submit(reading(path))))
            if not ahead:
                return
            path, future = ahead.popleft()
            yield path, reading(path) if future is None else future.result


def _read_lines(unit: Unit, options: LakeReadOptions) -> Iterator[RawTable | BadFile]:
    start, end, first = unit.span
    source, limit = shown(unit.root), options.max_file_bytes
    try:
        with open_regular(unit.root, unit.follow, limit)[0] as file:
            file.seek(start)
            lines = lines_of(file, limit, end - start)
            yield from line_tables(lines, first, shown(unit.prefix), source, options)
    except _ERRORS as error:
        yield BadFile(source, reason_of(error))


def _read_zip(unit: Unit, options: LakeReadOptions) -> Iterator[RawTable | BadFile]:
    archive = shown(unit.root)
    try:
        with open_regular(unit.root, unit.follow, options.max_file_bytes)[0] as file:
            for path, place in zip(unit.paths, unit.places, strict=True):
                name = shown(member_name(path) or path)
                source = f"{archive}!{name}"
                try:
                    member = zip_member(file, path, place)
                    yield from _member_tables(member, f"{shown(unit.prefix)}{name}", source, options)
                except _ERRORS as error:
                    yield BadFile(source, reason_of(error))
    except _ERRORS as error:
        yield BadFile(archive, reason_of(error))


def _read_tar(unit: Unit, options: LakeReadOptions) -> Iterator[RawTable | BadFile]:
    """A tar archive cannot be read behind a place where it is damaged: what came before is kept."""
    archive = shown(unit.root)
    last = "at its start"
    try:
        for path, stream in tar_members(unit.root, unit.follow, options.max_file_bytes):
            name = shown(path)
            last = f"after {name}"
            source = f"{archive}!{name}"
            try:
                yield from _member_tables(stream, f"{shown(unit.prefix)}{name}", source, options)
            except _ERRORS as error:
                yield BadFile(source, reason_of(error))
    except _ERRORS as error:
        reason = reason_of(error).removeprefix("cannot be read: ")
        yield BadFile(archive, f"cannot be read {last}: {reason}")


def _member_tables(
    member: bytes | IO[bytes], name: str, source: str, options: LakeReadOptions
) -> Iterator[RawTable | BadFile]:
    kind, gzipped = kind_of(name)
    if kind == "lines":
        stream = io.BytesIO(member) if isinstance(member, bytes) else member
        return _stream_tables(stream, gzipped, name, source, options)
    raw = member if isinstance(member, bytes) else drained(member, options.max_file_bytes)
    return _whole_tables(raw, kind, gzipped, name, source, options)


def _whole_tables(
    raw: bytes, kind: Kind | None, gzipped: bool, name: str, source: str, options: LakeReadOptions
) -> Iterator[RawTable | BadFile]:
    limit = options.max_file_bytes
    if gzipped:
        raw = gunzipped(raw, limit)
    elif len(raw) > limit:
        raise too_large(limit)
    if kind == "json":
        return json_tables(raw, name, source, options)
    if kind == "parquet":
        return iter((parquet_table(raw, name, source, limit),))
    return iter((delimited_table(raw, kind or "delimited", name, source, options),))


def _stream_tables(
    stream: IO[bytes], gzipped: bool, name: str, source: str, options: LakeReadOptions
) -> Iterator[RawTable | BadFile]:
    """The tables of JSON lines. Two-byte encodings are taken whole: their line ends are not a byte."""
    limit = options.max_file_bytes
    if gzipped:
        stream = unpacked(stream, limit)
    lines = lines_of(stream, limit)
    first = next(lines, b"")
    if first.startswith(WIDE) or not one_byte_line_ends(options.encoding):
        if len(first) > limit:
            raise too_large(limit)
        text, encoding = decoded(first + drained(stream, limit), options.encoding)
        yield from text_tables(text, encoding, name, source, options)
    elif first:
        yield from line_tables(chain((first,), lines), 1, name, source, options)


def one_byte_line_ends(encoding: str | None) -> bool:
    return encoding is None or "\n".encode(encoding) == b"\n"
