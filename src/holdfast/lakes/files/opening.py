"""Opening files that belong to others: regular ones only, without waiting, and never too much of them.

What a file claims about its size decides nothing alone. Bytes are counted as they are read and unpacked:

- what is held whole (a delimited file, a JSON document, a Parquet file, one line of JSON lines) has at most
  `max_file_bytes`;
- what is streamed (JSON lines, archives) may be larger, but if it has more bytes than that, they are at most
  `RATIO` times those that are stored. Text is rarely packed to less than a twentieth; a bomb is packed to a
  thousandth.

A file without bytes is not read at all: those of /proc say so of themselves, and some wait for ever.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from holdfast.core.sources.raw_files import opened_raw, size_of
from holdfast.core.store.root import is_stored, object_of
from holdfast.lakes.files.lake_options import UnreadableError

RATIO = 100
CHUNK = 1 << 20
_BUFFER = 1 << 17

LINK = "is a symbolic link, which is not followed (--follow-symlinks)"
SPECIAL = "is not a regular file"
CUT_SHORT = "was cut short while it was read"


def too_large(limit: int) -> UnreadableError:
    return UnreadableError(f"has more than {limit:,} bytes (--max-file-bytes)")


def most_bytes(stored: int, limit: int) -> int:
    """How many bytes may come out of so many stored ones."""
    return max(limit, RATIO * stored)


def open_regular(path: str, follow: bool, limit: int) -> tuple[BinaryIO, int]:
    """A regular file, or an object of a store, and its size; `follow`: it may be a symbolic link."""
    if is_stored(path):
        return opened_raw(path), size_of(path)
    descriptor, size = _opened(path, follow, limit)
    if not size:
        os.close(descriptor)
        return io.BytesIO(), 0
    return open(descriptor, "rb"), size


def read_regular(path: str, follow: bool, limit: int) -> bytes:
    """All bytes of a regular file. Four calls of the system: a lake has very many small files.

    Of an object of a store: one request.
    """
    if is_stored(path):
        bucket, name = object_of(path)
        raw = bucket.content_below(name, limit)
        if raw is None:
            raise too_large(limit)
        return raw
    descriptor, size = _opened(path, follow, limit)
    try:
        if size > limit:
            raise too_large(limit)
        raw = os.read(descriptor, size) if size else b""
        while len(raw) < size:  # a read of 2 GB or more comes in parts
            more = os.read(descriptor, size - len(raw))
            if not more:
                raise UnreadableError(CUT_SHORT)
            raw += more
    finally:
        os.close(descriptor)
    return raw


def _opened(path: str, follow: bool, limit: int) -> tuple[int, int]:
    # A FIFO that nobody writes to would make us wait, unless asked not to.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise UnreadableError(LINK) from None
        raise
    status = os.fstat(descriptor)
    # A file with holes has fewer bytes on disk than it says.
    if stat.S_ISREG(status.st_mode) and status.st_size <= most_bytes(status.st_blocks * 512, limit):
        return descriptor, status.st_size
    os.close(descriptor)
    raise too_large(limit) if stat.S_ISREG(status.st_mode) else UnreadableError(SPECIAL)


def drained(stream: IO[bytes], limit: int) -> bytes:
    """All bytes of a stream that says nothing reliable about its length."""
    chunks = []
    n_bytes = 0
    while chunk := stream.read(CHUNK):
        n_bytes += len(chunk)
        if n_bytes > limit:
            raise too_large(limit)
        chunks.append(chunk)
    return b"".join(chunks)


def gunzipped(raw: bytes, limit: int) -> bytes:
    """What gzipped bytes unpack to. Files of one member, nearly all, in one call."""
    inflate = zlib.decompressobj(wbits=31)
    with contextlib.suppress(zlib.error):  # the other way has the better words
        plain = inflate.decompress(raw, limit + 1)
        if inflate.eof and not inflate.unused_data and len(plain) <= limit:
            return plain
    return drained(unpacked(io.BytesIO(raw), limit), limit)


def unpacked(stream: IO[bytes], limit: int) -> BinaryIO:
    """What a gzip stream unpacks to, as a stream."""
    return io.BufferedReader(_Unpacked(stream, limit), _BUFFER)


class _Counted:
    """A stream that counts what is read of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.n_bytes = 0

    def read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        self.n_bytes += len(chunk)
        return chunk


class _Unpacked(io.RawIOBase):
    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stored = _Counted(stream)
        stored: Any = self._stored
        self._plain = gzip.GzipFile(fileobj=stored)
        self._limit = limit
        self._n_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._plain.read1(len(buffer))  # what is there: the bytes before a damaged place count
        self._n_bytes += len(chunk)
        if self._n_bytes > most_bytes(self._stored.n_bytes, self._limit):
            raise too_large(self._limit)
        buffer[: len(chunk)] = chunk
        return len(chunk)


def lines_of(stream: IO[bytes], limit: int, n_bytes: int | None = None) -> Iterator[bytes]:
    """The lines of a stream, or those that begin within the next `n_bytes`.

    Of a line with more bytes than the limit the first ones come, one more than the limit, and no others.
    """
    taken = 0
    while n_bytes is None or taken < n_bytes:
        line = stream.readline(limit + 1)
        if not line:
            if n_bytes is not None:
                raise UnreadableError(CUT_SHORT)
            return
        taken += len(line)
        if len(line) > limit and not line.endswith(b"\n"):
            while tail := stream.readline(CHUNK):
                taken += len(tail)
                if tail.endswith(b"\n"):
                    break
        yield line
