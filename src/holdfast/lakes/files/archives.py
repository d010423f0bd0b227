"""Members of archives, as bytes or streams. Nothing is ever written to disk."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from holdfast.lakes.files.file_kinds import kind_of, member_name
from holdfast.lakes.files.lake_options import UnreadableError
from holdfast.lakes.files.opening import most_bytes, open_regular, too_large, unpacked

_tarfile: Any = tarfile  # its stubs leave out the errors of headers

ENCRYPTED = 1
# A larger member is streamed rather than taken into memory, where its kind allows.
LARGE = 1 << 26
# Names and attributes of a tar archive's member, which tarfile takes into memory.
LONGEST_HEADER = 1 << 20
_HEADER = struct.Struct("<4s2B4HL2L2H")  # a member's own header, before its name


def zip_members(path: str, follow: bool, limit: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and place of all members of a zip archive that hold tables.

    A place is the position of the member's header, its stored size, its size, its method (-1 if it is
    encrypted) and its CRC. Members may share bytes, so what they say of their sizes is summed up: an
    `UnreadableError` at the member where it is more than the archive may unpack to.

    Cost: one pass over the archive's directory, about 10 microseconds a member.
    """
    stream, size = open_regular(path, follow, limit)
    allowance = most_bytes(size, limit)
    with stream, zipfile.ZipFile(stream) as archive:
        for info in archive.infolist():
            name = member_name(info.filename)
            if name is None or info.is_dir() or kind_of(name)[0] in (None, "zip", "tar"):
                continue
            allowance -= info.file_size
            if allowance < 0:
                raise too_large(limit)
            method = -1 if info.flag_bits & ENCRYPTED else info.compress_type
            yield (
                info.filename,
                (info.header_offset, info.compress_size, info.file_size, method, info.CRC),
            )


def zip_member(file: BinaryIO, name: str, place: tuple[int, ...]) -> bytes | IO[bytes]:
    """The member's bytes, or a stream of them if it is large or packed in an unusual way.

    The directory is not read again, and a member that inflates to more than it said is stopped there.
    """
    start, stored, size, method, crc = place
    if method < 0:
        raise UnreadableError("is encrypted")
    if method not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or max(size, stored) > LARGE:
        return _streamed(file, name, start)
    file.seek(max(start, 0))
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[:4] != b"PK\3\4":
        raise UnreadableError("is not where the archive's directory says")
    fields = _HEADER.unpack(header)
    file.seek(fields[-2] + fields[-1], io.SEEK_CUR)
    raw = file.read(stored)
    if method == zipfile.ZIP_DEFLATED:
        inflate = zlib.decompressobj(-15)
        raw = inflate.decompress(raw, size + 1)
    if len(raw) != size or zlib.crc32(raw) != crc:
        raise UnreadableError("is damaged: its bytes do not match its checksum")
    return raw


def _streamed(file: BinaryIO, name: str, start: int) -> IO[bytes]:
    archive = zipfile.ZipFile(file)
    for info in archive.infolist():
        if info.header_offset == start and info.filename == name:
            return archive.open(info)
    raise UnreadableError("is not where the archive's directory says")


class _Header(tarfile.TarInfo):
    """A member's header. A damaged one is an error: tarfile alone takes it for the archive's end."""

    @classmethod
    def fromtarfile(cls, tar: Any) -> Any:
        try:
            return super().fromtarfile(tar)
        except (
            _tarfile.InvalidHeaderError,
            _tarfile.TruncatedHeaderError,
            _tarfile.SubsequentHeaderError,
        ) as error:
            raise UnreadableError(f"the header of a member is damaged ({error})") from None

    def _proc_member(self, tar: Any) -> Any:
        if self.type in _LONG_HEADERS and self.size > LONGEST_HEADER:
            raise UnreadableError(f"the header of a member has {self.size:,} bytes")
        parent: Any = super()
        return parent._proc_member(tar)


_LONG_HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class _Ending:
    """A stream that does not end for ever: tarfile passes a member of a terabyte that is not there by
    reading nothing, a hundred million times."""

    PATIENCE = 100

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._n_empty = 0

    def read(self, size: int) -> bytes:
        chunk = self._stream.read(size)
        if not chunk:
            self._n_empty += 1
            if self._n_empty > self.PATIENCE:
                raise UnreadableError("is cut short")
        return chunk


def tar_members(path: str, follow: bool, limit: int) -> Iterator[tuple[str, Any]]:
    """Name and stream of all members of a tar archive, gzipped or not, that hold tables, in its order.

    A stream must be read before the next member is asked for.
    """
    with open_regular(path, follow, limit)[0] as file:
        # Inflated here, as tarfile's own way of streaming gzip moves what it has read ahead with every read.
        gzipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        plain: Any = _Ending(unpacked(file, limit) if gzipped else file)
        archive: Any
        with tarfile.open(mode="r|", fileobj=plain, tarinfo=_Header) as archive:
            while (info := archive.next()) is not None:
                archive.members = []  # or the archive remembers every member it has passed
                name = member_name(info.name)
                if name is None or not info.isreg() or kind_of(name)[0] in (None, "zip", "tar"):
                    continue
                if info.issparse():  # its holes would be read as NUL bytes, which no table has
                    yield name, _Holes()
                    continue
                stream = archive.extractfile(info)
                if stream is not None:
                    yield name, stream


class _Holes(io.RawIOBase):
    """A member that is stored without its holes."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise UnreadableError("is stored as a sparse file")
