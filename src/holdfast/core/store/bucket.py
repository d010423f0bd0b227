"""A workspace on an object store: S3, Google Cloud Storage, Azure, and whatever speaks like them.

The law of files is that of a folder (`files.py`): unique names, written once, named by a commit. What differs
is where bytes are. A file is read as a whole into this machine's cache (`node_cache.py`) and mapped there. A
new file is a draft on this machine until it is *published*: put under its name, if nothing has that name.
Files are published before anybody else can be told of them: at the end of a task, before a job is sent to
Spark, before a commit. So files of a batch travel together, and temporary ones that nobody asks for never do.

A put whose answer was lost or late is tried again and finds its own object; the content decides.

Stores that ignore the condition of a put would let two writers both commit. `probe` finds them out.

Credentials come from the environment (AWS_..., GOOGLE_..., AZURE_...) or from the options that the workspace
was opened with. They travel to tasks in the job's closure, and are never written.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import mmap
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import xxhash

from holdfast.core.store.node_cache import NodeCache, node_cache
from holdfast.core.store.objects import Objects
from holdfast.errors import NOTHING_APPLIED, DamagedFileError, StoreError, WorkspaceError

if TYPE_CHECKING:
    from holdfast.core.store.files import FileRef

# Requests at once: a request takes 10 to 50 ms, whatever it moves.
AT_ONCE = 16
# Pieces of one file that are read ahead.
AHEAD = 4
# Variables that say who one is, by cloud: a key of one set and a token of another are nobody.
_IDENTITIES = (
    ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    (
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_CLIENT_ID",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_STORAGE_TENANT_ID",
        "AZURE_CLIENT_ID",
        "AZURE_CLIENT_SECRET",
        "AZURE_TENANT_ID",
    ),
    ("GOOGLE_SERVICE_ACCOUNT_KEY",),
)
# Variables by which stores are reached, and which mean the same on every machine.
_ADDRESSES = (
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_CONDITIONAL_PUT",
    "AWS_SERVER_SIDE_ENCRYPTION",
    "AWS_SSE_KMS_KEY_ID",
    "AWS_SSE_BUCKET_KEY_ENABLED",
    "AWS_SSE_CUSTOMER_KEY_BASE64",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_ENDPOINT",
    "AZURE_STORAGE_USE_EMULATOR",
    "AZURE_ALLOW_HTTP",
    "AZURITE_BLOB_STORAGE_URL",
)
T = TypeVar("T")
Answer = TypeVar("Answer")

# Files of one job lie here, and its lease. No commit names them.
STAGING, LEASE = "staging", "lease"
# The ledger's files lie here; they belong to no job.
LEDGER = "ledger"
_PIECE = 8 << 20
# Drafts of so many bytes go along with a job where the store does not take them.
_SENT_BYTES = 32 << 20


def is_temporary(name: str) -> bool:
    return name.startswith(f"{STAGING}/")


class Bucket(Objects):
    """The files of a workspace on a store. One for each URL in a process (`bucket_of`)."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        super().__init__(url, options)
        self._drafts: dict[str, tuple[FileRef, Path]] = {}  # by name: what is not published yet
        self._lock = threading.RLock()
        self._cache: NodeCache | None = None
        self._jobs = 0  # that are under way in this process
        self._removes_drafts = False  # when the process ends: those of a batch that was refused
        self._is_staged = False  # whether temporary files have been published, here or perhaps by tasks
        self.marker: bytes | None = None
        """Which workspace this is, as it was read last (`format.py`)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bucket) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    @property
    def cache(self) -> NodeCache:
        if self._cache is None:
            self._cache = node_cache()
        return self._cache

    def add(self, ref: FileRef, draft: Path) -> None:
        """Take a file that was written to a draft; it is published with the next ones."""
        with self._lock:
            if not self._removes_drafts:
                self._removes_drafts = True
                atexit.register(self._remove_drafts, os.getpid())
            self._drafts[ref.name] = ref, draft

    def publish(self, *, temporary: bool) -> None:
        """Put drafts under their names, all at once; temporary ones only if they are asked for.

        They may be read here before, and by everybody after.
        """
        with self._lock:
            drafts = [d for d in self._drafts.values() if temporary or not is_temporary(d[0].name)]
            self._is_staged |= temporary
        self.side_by_side(self._publish, drafts)

    def shared(self) -> tuple[tuple[FileRef, bytes], ...]:
        """Publish all drafts; or give them, with what is in them, to who may only read: for a job's tasks.

        Raises the StoreError if they are too much to go along with a job.
        """
        try:
            self.publish(temporary=True)
        except StoreError as error:
            with self._lock:
                drafts = list(self._drafts.values())
            if not error.denied or sum(ref.length for ref, _ in drafts) > _SENT_BYTES:
                raise
            return tuple((ref, draft.read_bytes()) for ref, draft in drafts)
        return ()

    def receive(self, ref: FileRef, content: bytes) -> None:
        """Take a file that came along with a job as a copy."""
        if not self.is_near(ref):
            copy = self.cache.draft()
            copy.write_bytes(content)
            self.cache.adopted(self._key(ref), copy)

    def _publish(self, drafted: tuple[FileRef, Path]) -> None:
        ref, draft = drafted
        try:
            with open(draft, "rb") as file:
                if ref.length:
                    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                        self._put_file(ref, content)
                else:
                    self._put_file(ref, b"")
        except FileNotFoundError:
            if ref.name in self._drafts:
                raise WorkspaceError(
                    f"the draft of the file {ref.name!r} is gone from {str(draft.parent)!r}. "
                    f"{NOTHING_APPLIED} Run it again, and let nobody remove new files there."
                ) from None
            return  # another thread has published it
        # First a copy, then no draft: in between it is found twice, and never not at all.
        with self._lock:
            with contextlib.suppress(OSError):  # without a copy it will be fetched
                copy = self.cache.draft()
                os.link(draft, copy)
                self.cache.adopted(self._key(ref), copy)
            self._drafts.pop(ref.name, None)
            draft.unlink(missing_ok=True)

    def _put_file(self, ref: FileRef, content: Any) -> None:
        try:
            is_new = self.put_new(ref.name, content)
        except StoreError as error:
            if error.denied:
                raise
            is_new = self.put_new(ref.name, content)  # if it has arrived after all, the content says so
        if is_new:
            return
        if xxhash.xxh3_64_hexdigest(self.content(ref.name)) != ref.checksum:
            raise WorkspaceError(
                f"the file {ref.name!r} exists already in the workspace {self.url!r}; files are never "
                f"overwritten. {NOTHING_APPLIED} Run it again."
            )

    def _remove_drafts(self, process: int) -> None:
        if os.getpid() == process:  # a forked child has the handler, too
            for _, draft in self._drafts.values():
                with contextlib.suppress(OSError):
                    draft.unlink(missing_ok=True)

    @contextlib.contextmanager
    def job(self) -> Iterator[None]:
        """While a job is under way here.

        What is still a draft when the last one has ended was refused, or has failed: it goes, or it would be
        published with the next commit. Not so files of the ledger, which are removed by name where a commit
        is lost.
        """
        with self._lock:
            self._jobs += 1
        try:
            yield
        finally:
            with self._lock:
                self._jobs -= 1
                if not self._jobs:
                    self._discard([name for name in self._drafts if not name.startswith(f"{LEDGER}/")])

    def discard(self) -> None:
        """Remove all drafts."""
        self._discard(list(self._drafts))

    def _discard(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                drafted = self._drafts.pop(name, None)
                if drafted is not None:
                    drafted[1].unlink(missing_ok=True)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files, also those that are not published yet; what is gone already does not matter."""
        self._discard(names)
        super().remove(names)

    def local(self, ref: FileRef) -> Path:
        """The path of a copy, as it was written; it may vanish before it is opened (`files.opened`)."""
        with self._lock:
            drafted = self._drafts.get(ref.name)
        if drafted is not None and drafted[0] == ref:
            return drafted[1]
        return self.cache.fetched(self._key(ref), ref.length, lambda path: self._fetch(ref, path))

    def is_near(self, ref: FileRef) -> bool:
        """Whether a file can be read without a request."""
        return ref.name in self._drafts or self.cache.look(self._key(ref), ref.length) is not None

    def check(self, ref: FileRef) -> None:
        """Read an object whole, and compare it; the copies are not asked."""
        checksum, length = xxhash.xxh3_64(), 0
        for piece in self._pieces(ref):
            checksum.update(piece)
            length += len(piece)
        self._compare(ref, length, checksum.hexdigest())

    def _fetch(self, ref: FileRef, path: Path) -> None:
        checksum, length = xxhash.xxh3_64(), 0
        with open(path, "xb") as file:
            for piece in self._pieces(ref):
                checksum.update(piece)
                length += file.write(piece)
        self._compare(ref, length, checksum.hexdigest())

    def _pieces(self, ref: FileRef) -> Iterator[Any]:
        """The content of a file, some at a time, several requests at once; of a draft, the draft's."""
        with self._lock:
            drafted = self._drafts.get(ref.name)
        if drafted is not None:
            with open(drafted[1], "rb") as file:
                while piece := file.read(_PIECE):
                    yield piece
            return
        ranges = [(low, min(low + _PIECE, ref.length)) for low in range(0, ref.length, _PIECE)]
        if len(ranges) <= 1:
            yield memoryview(self.content(ref.name))
            return
        length = self.length(ref.name)
        if length != ref.length:
            self._compare(ref, length, "")
        with ThreadPoolExecutor(AHEAD) as threads:
            asked = [threads.submit(self.range, ref.name, *some) for some in ranges[:AHEAD]]
            for i in range(len(ranges)):
                yield asked.pop(0).result()
                if i + AHEAD < len(ranges):
                    asked.append(threads.submit(self.range, ref.name, *ranges[i + AHEAD]))

    def _compare(self, ref: FileRef, length: int, checksum: str) -> None:
        if length != ref.length:
            raise DamagedFileError(
                f"the file {ref.name!r} of the workspace {self.url!r} has {length} bytes; {ref.length} were "
                f"written. Restore it from a backup, or rebuild the table with 'holdfast track'."
            )
        if checksum != ref.checksum:
            raise DamagedFileError(
                f"the file {ref.name!r} of the workspace {self.url!r} has been altered: its checksum is "
                f"{checksum}; {ref.checksum} was written. Restore it from a backup, or rebuild the table "
                "with 'holdfast track'."
            )

    def _key(self, ref: FileRef) -> str:
        return f"{self.url}\0{ref.name}\0{ref.length}\0{ref.checksum}"

    def remove_folder(self, folder: str) -> None:
        """Remove what lies in a staging folder, and what was to be published there. What fails is litter.

        A folder that no task was told of has nothing in it but a lease.
        """
        with self._lock:
            self._discard([name for name in self._drafts if name.startswith(f"{folder}/")])
        with contextlib.suppress(WorkspaceError):
            lease = [f"{folder}/{LEASE}"]
            self.remove([entry.name for entry in self.entries(folder)] if self._is_staged else lease)

    def side_by_side(
        self, do: Callable[[T], Answer], items: Sequence[T], at_once: int = AT_ONCE
    ) -> list[Answer]:
        """What comes of each item, in their order, where a request or two is asked for each.

        The first of them that fails is raised, and those that were not begun are left.
        """
        if len(items) <= 1:
            return [do(item) for item in items]
        threads = ThreadPoolExecutor(min(at_once, len(items)))
        try:
            return [future.result() for future in [threads.submit(do, item) for item in items]]
        finally:
            threads.shutdown(cancel_futures=True)


_buckets: dict[str, Bucket] = {}
_defaults: dict[str, str] = {}
_sources: set[str] = set()  # whole stores that use the defaults: no workspace is one, so they have no drafts
_creating = threading.Lock()


def bucket_of(url: str, options: Mapping[str, str] | None = None) -> Bucket:
    """The bucket of a URL; with options, if they are others than before, one that uses these.

    Without any it is the one that there is, or uses those that a workspace was last opened with. A whole
    store, which sources lie in, always uses the last ones, unless it was given some.
    """
    url = url.rstrip("/")
    with _creating:
        known = _buckets.get(url)
        if known is None or (options is not None and dict(options) != known.options):
            known = _buckets[url] = Bucket(url, _defaults if options is None else options)
            if options is None and url.count("/") == 2:
                _sources.add(url)
            else:
                _sources.discard(url)
        return known


def forget() -> None:
    """Forget all stores and their options."""
    with _creating:
        _buckets.clear()
        _sources.clear()
        _defaults.clear()


def use_options(options: Mapping[str, str]) -> None:
    """Options for stores that are met from now on, and for those that sources were read from by others."""
    with _creating:
        if dict(options) != _defaults:
            for url in _sources:
                _buckets.pop(url, None)
            _sources.clear()
            _defaults.clear()
            _defaults.update(options)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a task needs to reach a workspace of the process that sends it.

    Credentials of the environment go along, as Spark itself does it; where a task has any of its own for a
    cloud, it has all of them.
    """

    url: str
    options: dict[str, str]
    marker: bytes | None
    environment: dict[str, str]
    drafts: tuple[tuple[FileRef, bytes], ...]  # of who may not put them there


def reaches() -> list[Reach]:
    """To the buckets of this process, and to what it has drafted: others are about to be told of it."""
    names = itertools.chain(_ADDRESSES, *_IDENTITIES)
    environment = {name: os.environ[name] for name in names if name in os.environ}
    return [
        Reach(bucket.url, bucket.options, bucket.marker, environment, bucket.shared())
        for bucket in list(_buckets.values())
    ]


def grant(reaches: Sequence[Reach]) -> None:
    """Use what another process reaches in this one, which runs its tasks."""
    for reach in reaches:
        if reach.url not in _buckets:
            known = [names for names in _IDENTITIES if not os.environ.keys().isdisjoint(names)]
            for name, value in reach.environment.items():
                if not any(name in names for names in known):
                    os.environ.setdefault(name, value)
        bucket = bucket_of(reach.url, reach.options)
        bucket.marker = reach.marker
        for ref, content in reach.drafts:
            bucket.receive(ref, content)


def publish_all() -> None:
    """Publish what this process has drafted, a task: others are about to be told of it."""
    for bucket in list(_buckets.values()):
        bucket.publish(temporary=True)


def discard_all() -> None:
    """Remove what this process has drafted, a task that fails: nobody is told of it."""
    for bucket in list(_buckets.values()):
        bucket.discard()
