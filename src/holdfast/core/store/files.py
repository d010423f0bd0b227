"""The files of a workspace: written once, named once, checked by length and checksum.

Every file of a workspace that has a checksum is written through `new_file`, by one process, from its
first byte to its last, and never opened for writing again. The checksum is taken of what is written, on
its way to the file, never of what is read back: storage that loses a byte cannot make it look right.
A file's name is unique and its content never changes, so a `FileRef` (name, length, checksum),
kept in a ledger row, says all that is needed to trust it later. A file counts only once a commit
names it: one that a crash left behind is litter, never state.

Cost: xxHash3 runs at memory speed (about 10 GB/s), so the fsync dominates: about 1 ms for the
file and as much for its folder. A file is hashed once per process; later deep checks cost one
`stat`, because path, inode, length and modification time together stand for the content.

Stamps. To hash a large file of which a batch needs a few pages would cost more than the batch. So what a
large file was like when a commit first named it, or when `verify` read it, is noted in `staging/stamps`: its
length, the time of its last modification, and that of its last change of any kind, which no program can set.
A file that has its stamp still is opened unread. One that has not (written to, replaced, restored, copied) is
hashed, so no reader maps a file that a program has altered; what a rotting disk alters behind the file
system's back is left to `verify` and to merges, which always read. Stamps are no state: lost ones cost time.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import mmap
import os
import secrets
import socket
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import xxhash

from holdfast.core.store.bucket import STAGING, Bucket, is_temporary
from holdfast.core.store.root import Root
from holdfast.core.words.codec import Coded
from holdfast.errors import NOTHING_APPLIED, DamagedFileError, WorkspaceError, shorten

# Anything that speaks the buffer protocol: bytes, memoryview, numpy arrays, Arrow buffers.
# `collections.abc.Buffer` exists from Python 3.12 on.
Buffer = Any
Opened = TypeVar("Opened")

# Below this a read is cheaper than mapping the file and taking its page faults.
_MMAP_FROM = 1 << 20

# How often a copy is fetched again that vanishes before it is opened.
_FETCHES = 3

# Bytes that are hashed and written at a time.
_PIECE = 1 << 20

# A stream that merges segments for months must not keep every file it ever saw.
_MAX_REMEMBERED = 100_000

# (path, inode, mtime in ns, ctime in ns) -> checksum of files hashed by this process.
_hashed: dict[tuple[str, int, int, int], str] = {}

SHARED_STORAGE = (
    "With a cluster a workspace must lie on storage that the driver and all executors reach at the same path."
)
STAMPS = f"{STAGING}/stamps"
# [length, mtime in ns, ctime in ns, checksum]
Stamp = list[Any]
# What this process has read last: (path, mtime in ns, inode) of a file of stamps, and name -> stamp.
_stamps: tuple[tuple[str, int, int], dict[str, Stamp]] = (("", 0, 0), {})

_REPAIR = "Restore it from a backup, or rebuild the table with 'holdfast track'."


@dataclass(frozen=True, slots=True)
class FileRef(Coded):
    """What the ledger remembers of a file: enough to find it and to know it unchanged.

    >>> ref = FileRef("tables/orders/segment-0a1b2c3d4e5f.arrow", 7, "d2b1bb1a1bd9c5bc")
    >>> FileRef.from_dict(ref.to_dict()) == ref
    True
    """

    name: str  # relative to the workspace's root, '/' between parts on every system
    length: int
    checksum: str  # xxh3_64, 16 hex digits


def unique_name(folder: str, stem: str, suffix: str) -> str:
    """A name that no file has: `folder/stem-<12 hex digits><suffix>`.

    Random, not counted: two writers based on one version must not meet in a name before the
    ledger has decided which of them wins.

    >>> len(unique_name("tables/orders", "segment", ".arrow"))
    40
    """
    return f"{folder}/{stem}-{secrets.token_hex(6)}{suffix}"


class NewFile:
    """A file that is being written: what passes through is hashed and counted.

    A file object for any writer that does not seek: pyarrow's writers of Arrow IPC and Parquet, NumPy's
    of arrays.
    """

    ref: FileRef
    """Known once the file is sealed."""

    def __init__(self, path: Path, name: str, new_entries: Sequence[Path], *, durable: bool) -> None:
        self.name = name
        self._path = path
        self._file = open(path, "xb")  # noqa: SIM115  `seal` closes it, or `discard`
        self._durable, self._folders = durable, (path.parent, *new_entries)
        self._hasher = xxhash.xxh3_64()
        self._length = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        # In pieces: a piece that was just hashed is written from the processor's cache.
        for start in range(0, view.nbytes, _PIECE):
            piece = view[start : start + _PIECE]
            self._hasher.update(piece)
            self._file.write(piece)
        self._length += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        self._file.flush()

    def seal(self) -> None:
        """Close the file, synced to disk with its name if it has to outlive a power cut."""
        self._file.flush()
        if self._durable:
            os.fsync(self._file.fileno())
        status = os.fstat(self._file.fileno())
        self._file.close()
        for folder in self._folders if self._durable else ():
            sync_folder(folder)
        self.ref = FileRef(self.name, self._length, self._hasher.hexdigest())
        _remember(self._path, status, self.ref.checksum)

    def discard(self) -> None:
        """Leave nothing under the name."""
        with contextlib.suppress(OSError):  # what could not be written is not wanted
            self._file.close()
        with contextlib.suppress(OSError):  # at worst litter: no commit names it
            self._path.unlink(missing_ok=True)


@contextlib.contextmanager
def new_file(root: Root, name: str) -> Iterator[NewFile]:
    """A new file to write to, whole and sealed in the end; then `ref` is its reference.

    The name must be new: an existing file is never overwritten. On any failure nothing is left
    under the name. On a store it is a draft of this process until it is published.
    """
    try:
        if isinstance(root, Bucket):
            _check_name(root, name)
            path = root.cache.draft()
            file = NewFile(path, name, (), durable=False)
        else:
            path = _resolve(root, name)
            file = NewFile(path, name, _make_folders(root, path.parent), durable=not is_temporary(name))
    except FileExistsError:
        raise WorkspaceError(
            f"the file {name!r} exists already in the workspace {str(root)!r}; files are never overwritten. "
            "Nothing was applied. Run it again."
        ) from None
    except OSError as error:
        raise _cannot_write(root, name, error) from error
    try:
        yield file
        file.seal()
        if isinstance(root, Bucket):
            root.add(file.ref, path)
    except OSError as error:
        file.discard()
        raise _cannot_write(root, name, error) from error
    except BaseException:
        file.discard()
        raise


def write_file(root: Root, name: str, buffers: Iterable[Buffer]) -> FileRef:
    """Write a new file of some buffers."""
    with new_file(root, name) as file:
        for buffer in buffers:
            file.write(buffer)
    return file.ref


def opened(
    root: Root, ref: FileRef, open_path: Callable[[Path], Opened], *, by_stamp: bool = False
) -> Opened:
    """A file that is what its reference says, opened; on a store a copy, fetched again if it vanishes."""
    for _ in range(_FETCHES if isinstance(root, Bucket) else 0):
        with contextlib.suppress(FileNotFoundError):
            return open_path(check_file(root, ref, deep=True))
    return open_path(check_file(root, ref, deep=True, by_stamp=by_stamp))


def check_file(root: Root, ref: FileRef, *, deep: bool, fresh: bool = False, by_stamp: bool = False) -> Path:
    """The path of a file that is what its reference says, or DamagedFileError.

    A shallow check costs one `stat`: the file exists and has its length. A deep one compares the
    checksum too, at most once per process unless `fresh` (bit rot changes no time of a file,
    so what becomes part of something new is read again). With `by_stamp` the stamp of a large file will do,
    if it has one. Of a store's file all of it is about the copy here; `verify_file` reads the object.
    """
    if isinstance(root, Bucket):
        return _copy(root, ref, fresh=fresh)
    path = _resolve(root, ref.name)
    descriptor = -1
    try:
        status = os.stat(path)
        if status.st_size != ref.length:
            raise DamagedFileError(
                f"the file {ref.name!r} of the workspace {str(root)!r} has {status.st_size} bytes; "
                f"{ref.length} were written. {_REPAIR}"
            )
        if not deep:
            return path
        checksum = None if fresh else _hashed.get(_key(path, status))
        if checksum is None and by_stamp and not fresh and ref.length >= _MMAP_FROM:
            checksum = _stamped(root, ref.name, status)
        if checksum is None:
            descriptor = os.open(path, os.O_RDONLY)
            checksum = _hash(descriptor, status.st_size)
            _remember(path, status, checksum)
    except FileNotFoundError:
        raise _is_missing(root, ref) from None
    except (OSError, ValueError) as error:  # ValueError: mapping a file that was cut a moment ago
        raise _cannot_read(root, ref.name, error) from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    if checksum != ref.checksum:
        raise DamagedFileError(
            f"the file {ref.name!r} of the workspace {str(root)!r} has been altered: its checksum is "
            f"{checksum}; {ref.checksum} was written. {_REPAIR}"
        )
    return path


def verify_file(root: Root, ref: FileRef) -> None:
    """Read a file again where it lies, without a copy; DamagedFileError if it is not what was written."""
    _check_name(root, ref.name)
    try:
        if isinstance(root, Bucket):
            root.check(ref)
        else:
            check_file(root, ref, deep=True, fresh=True)
    except FileNotFoundError:
        raise _is_missing(root, ref) from None


def _copy(root: Bucket, ref: FileRef, *, fresh: bool) -> Path:
    """The path of a copy; it was checked when it arrived. `fresh`: it is read again."""
    _check_name(root, ref.name)
    checksum: str | None = ref.checksum
    try:
        path = root.local(ref)
        for _ in range(_FETCHES if fresh else 0):
            with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                checksum = _hash(file.fileno(), ref.length)
                break
            path = root.local(ref)
    except FileNotFoundError:
        raise _is_missing(root, ref) from None
    except ValueError:  # mapping a copy that was cut a moment ago
        checksum = None
    except OSError as error:
        raise WorkspaceError(
            f"the file {ref.name!r} of the workspace {str(root)!r} cannot be kept in the cache "
            f"{str(root.cache.folder)!r}: {error.strerror or error}. {NOTHING_APPLIED} Make room there, or "
            "name another folder in HOLDFAST_CACHE."
        ) from error
    if checksum != ref.checksum:
        raise DamagedFileError(
            f"{str(path)!r}, the copy of the file {ref.name!r} of the workspace {str(root)!r}, has been "
            f"altered since it came. {NOTHING_APPLIED} Remove it, look at the disk, and run it again."
        )
    return path


def _is_missing(root: Root, ref: FileRef) -> DamagedFileError:
    return DamagedFileError(f"the file {ref.name!r} of the workspace {str(root)!r} is missing. {_REPAIR}")


def is_there(root: Root, ref: FileRef) -> bool:
    """Whether a file has its name and its length. Cost: a `stat`, or a request."""
    try:
        if isinstance(root, Bucket):
            return root.is_near(ref) or root.length(ref.name) == ref.length
        return os.stat(_resolve(root, ref.name)).st_size == ref.length
    except OSError:
        return False


def missing(root: Root, refs: Sequence[FileRef]) -> list[FileRef]:
    """The files that are not there. Cost: a `stat` for each, or requests side by side."""
    look = functools.partial(is_there, root)
    answers = root.side_by_side(look, refs) if isinstance(root, Bucket) else map(look, refs)
    return [ref for ref, there in zip(refs, answers, strict=True) if not there]


def needs_stamp(root: Root, ref: FileRef) -> bool:
    """Whether a file is large, and not known to be as it was when it got its stamp."""
    if isinstance(root, Bucket) or ref.length < _MMAP_FROM:
        return False
    try:
        status = os.stat(_resolve(root, ref.name))
    except OSError:
        return False
    return status.st_size == ref.length and _stamped(root, ref.name, status) != ref.checksum


def stamp_files(root: Root, refs: Iterable[FileRef], written: Container[str] = ()) -> None:
    """Note what large files are like now, so that later processes open them unread.

    Only those that this process has hashed, by writing or by reading them, or that are `written`: just named
    by a commit, with checksums of their writers. Where it cannot be noted, it is not. Copies of a store's
    files need none.
    """
    if isinstance(root, Bucket):
        return
    stamps: dict[str, Stamp] = {}
    for ref in refs:
        if needs_stamp(root, ref):
            path = _resolve(root, ref.name)
            status = os.stat(path)
            if ref.name in written or _hashed.get(_key(path, status)) == ref.checksum:
                stamps[ref.name] = _stamp(status, ref.checksum)
    if stamps:
        _write_stamps(root, {**_read_stamps(root), **stamps})


def forget_stamps(root: Path) -> None:
    """Remove the stamps of files that are gone."""
    stamps = _read_stamps(root)
    live = {name: stamp for name, stamp in stamps.items() if (root / name).exists()}
    if len(live) < len(stamps):
        _write_stamps(root, live)


def _stamp(status: os.stat_result, checksum: str) -> Stamp:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, checksum]


def _stamped(root: Path, name: str, status: os.stat_result) -> str | None:
    """The checksum that a file had when it got its stamp; None if it has changed since, or has none."""
    stamp = _read_stamps(root).get(name)
    return None if stamp is None or stamp[:3] != _stamp(status, "")[:3] else str(stamp[3])


def _read_stamps(root: Path) -> dict[str, Stamp]:
    """The stamps of a workspace; read again only if they have been written again."""
    global _stamps
    path = root / STAMPS
    try:
        status = os.stat(path)
        version = (os.path.abspath(path), status.st_mtime_ns, status.st_ino)
        if _stamps[0] != version:
            stamps = json.loads(path.read_bytes())
            _stamps = version, {str(k): v for k, v in stamps.items() if isinstance(v, list) and len(v) == 4}
        return _stamps[1]
    except (OSError, ValueError, AttributeError):
        return {}


def _write_stamps(root: Path, stamps: dict[str, Stamp]) -> None:
    """Replace the stamps; of two writers at once one is lost, which costs a later reader time."""
    path = root / STAMPS
    under_way = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(exist_ok=True)
        under_way.write_text(json.dumps(stamps), encoding="utf-8")
        os.replace(under_way, path)
    except OSError:
        with contextlib.suppress(OSError):
            under_way.unlink(missing_ok=True)


def read_file(root: Root, ref: FileRef) -> bytes:
    """The content of a small file, checked: the very bytes returned are the bytes hashed."""
    try:
        if isinstance(root, Bucket):
            content = opened(root, ref, Path.read_bytes)
        else:
            content = check_file(root, ref, deep=False).read_bytes()
    except OSError as error:
        raise _cannot_read(root, ref.name, error) from error
    checksum = xxhash.xxh3_64_hexdigest(content)
    if len(content) != ref.length or checksum != ref.checksum:
        raise DamagedFileError(
            f"the file {ref.name!r} of the workspace {str(root)!r} has been altered: its checksum is "
            f"{checksum}; {ref.checksum} was written. {_REPAIR}"
        )
    return content


def sync_file(path: Path) -> None:
    """Force a file that another library wrote to disk; delta-rs, for one, never does."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk: without it a synced file may lose its name in a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems refuse to sync a folder; they order their names themselves.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def _resolve(root: Path, name: str) -> Path:
    """The path of a name."""
    _check_name(root, name)
    return root.joinpath(name)


def _check_name(root: Root, name: str) -> None:
    """A name read from a damaged ledger must not lead out of the workspace."""
    if not name.strip("/.") or name.startswith("/") or ".." in name.split("/") or "\0" in name:
        raise DamagedFileError(
            f"{shorten(name)} is not a file name inside the workspace {str(root)!r}. "
            "Restore the workspace from a backup, or rebuild it with 'holdfast track'."
        )


def _make_folders(root: Path, folder: Path) -> list[Path]:
    """Make a folder of the workspace; return the parents that got a new entry and so must be synced.

    Never the root itself: where it is not there, a task runs on a machine that does not see the workspace,
    and what it wrote would lie on that machine's disk for ever.
    """
    missing: list[Path] = []
    while not folder.exists():
        if folder == root:
            raise WorkspaceError(
                f"the folder of the workspace {str(root)!r} is not there on {socket.gethostname()}. Nothing "
                f"was applied. {SHARED_STORAGE}"
            )
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(exist_ok=True)  # another writer may make it at the same moment
    return [path.parent for path in missing]


def _hash(descriptor: int, length: int) -> str:
    if length < _MMAP_FROM:
        with open(descriptor, "rb", closefd=False) as file:
            return xxhash.xxh3_64_hexdigest(file.read())
    with mmap.mmap(descriptor, length, access=mmap.ACCESS_READ) as mapped:
        mapped.madvise(mmap.MADV_SEQUENTIAL)
        return xxhash.xxh3_64_hexdigest(mapped)


def _key(path: Path, status: os.stat_result) -> tuple[str, int, int, int]:
    """A file as it is: whoever changes it can set its modification time, but not that of its status."""
    return (os.path.abspath(path), status.st_ino, status.st_mtime_ns, status.st_ctime_ns)


def _remember(path: Path, status: os.stat_result, checksum: str) -> None:
    if len(_hashed) >= _MAX_REMEMBERED:
        _hashed.clear()
    _hashed[_key(path, status)] = checksum


def _cannot_write(root: Root, name: str, error: OSError) -> WorkspaceError:
    reason = os.strerror(error.errno) if error.errno else str(error)  # pyarrow's own texts are long
    return WorkspaceError(
        f"cannot write the file {name!r} of the workspace {str(root)!r}: {reason}. "
        "Nothing was applied. Check the disk's space and your rights, then run it again."
    )


def _cannot_read(root: Root, name: str, error: Exception) -> DamagedFileError:
    return DamagedFileError(
        f"cannot read the file {name!r} of the workspace {str(root)!r}: "
        f"{getattr(error, 'strerror', None) or error}. Check the disk and your rights. {_REPAIR}"
    )
