"""The objects of a store under a URL: S3, Google Cloud Storage, Azure, and whatever speaks like them.

What the client raises becomes a StoreError that names the store and the next step; what is not there, a
FileNotFoundError. Requests that fail are asked again by the client for a while.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from holdfast.errors import NOTHING_APPLIED, StoreError, WorkspaceError, shorten

# A store that is busy is asked again; one that is not there must not keep anybody waiting for minutes.
_RETRIES = {
    "max_retries": 8,
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=4), "base": 2},
    "retry_timeout": timedelta(seconds=60),
}
_WAITS_S = (0.1, 0.4, 1.6)
# A request has stalled if it has no answer for so long, or no more of one. Clients count the sending of its
# body in, and sixteen bodies may share a slow line: so a put has longer, by its length at the slowest rate.
# What they call the timeout is that of a whole request, and none is too long while bytes come.
STALLED_S, SLOWEST = 30, 1 << 16
_NO_TIMEOUT = timedelta(days=1)
# Bytes of a body for which the first limit will do; there is a client for each step of eight times as many.
STEP_BYTES, _STEP = 1 << 21, 8
# What belongs to the HTTP client; all other options belong to the store.
_CLIENT = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "read_timeout",
    "timeout",
    "user_agent",
)
_PROBE = "conditional-put"
# What S3 and Azure answer to a request that they refuse.
_ANSWER = re.compile(r"<Code>(\w+)</Code>\s*(?:<Message>([^<\n]*))?")
# Names of options may begin with the store's.
_PREFIX = re.compile(r"^(aws|azure_storage|azure|google)_")
# What variables of the environment begin with, by the scheme; Azure has many.
_CLOUDS = {"s3": "AWS", "s3a": "AWS", "gs": "GOOGLE"}
_ALL_CLOUDS = ("AWS", "AZURE", "GOOGLE")
# Where machines of a cloud ask for the credentials of their role.
_METADATA = "169.254.169.254"


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """An object of the store."""

    name: str
    length: int
    written: float  # by the store's clock


class Objects:
    """The objects whose names begin with a URL."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self.url, self.options = url, dict(options)
        self._store = _connect(url, self.options)
        self._patient: dict[int, Any] = {}  # clients for puts of many bytes, by the most bytes

    def __str__(self) -> str:
        return self.url

    def content(self, name: str) -> bytes:
        """A small object; FileNotFoundError if there is none."""
        content = self.content_below(name, sys.maxsize)
        assert content is not None
        return content

    def content_below(self, name: str, most: int) -> bytes | None:
        """An object in one request; None if it has more bytes than that."""
        import obstore

        with self._reading(name):
            answer = obstore.get(self._store, name)
            return bytes(answer.bytes()) if answer.meta["size"] <= most else None

    def entry(self, name: str) -> Entry | None:
        """An object of the store; None if there is none of the name."""
        import obstore

        with self._reading(name), contextlib.suppress(FileNotFoundError):
            return _entry(obstore.head(self._store, name))
        return None

    def length(self, name: str) -> int:
        """The length of an object; FileNotFoundError if there is none."""
        entry = self.entry(name)
        if entry is None:
            raise FileNotFoundError(name)
        return entry.length

    def exists(self, name: str) -> bool:
        return self.entry(name) is not None

    def written(self, name: str) -> float | None:
        """When an object was put; None if there is none."""
        entry = self.entry(name)
        return None if entry is None else entry.written

    def put(self, name: str, content: bytes) -> None:
        """Put an object, in place of one of its name."""
        import obstore

        with self._writing(name):
            obstore.put(self._store, name, content)

    def put_new(self, name: str, content: Any) -> bool:
        """Put an object if there is none of the name; whether it was this call that did it.

        A client does not ask again if there was no answer in time: it may be there.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        store = self._store_for(len(content))
        with self._writing(name):
            try:
                obstore.put(store, name, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
        return True

    def _store_for(self, n_bytes: int) -> Any:
        """The client that waits long enough for a put of so many bytes."""
        if n_bytes <= STEP_BYTES:
            return self._store
        most = STEP_BYTES
        while most < n_bytes:
            most *= _STEP
        if most not in self._patient:
            self._patient[most] = _connect(self.url, self.options, most)
        return self._patient[most]

    def copy(self, name: str, to: str) -> None:
        """Put under a name what another has, in place of what has that name. No byte of it comes here."""
        import obstore

        with self._writing(to):
            obstore.copy(self._store, name, to)

    def entries(self, folder: str, after: str | None = None) -> list[Entry]:
        """The objects of a folder and of those below it, or those of them whose names come after one.

        For housekeeping, and to see whether something is missing: nothing is found by a listing.
        """
        import obstore

        def listed() -> list[Entry]:
            pages = obstore.list(self._store, folder or None, offset=after)
            return [_entry(one) for some in pages for one in some]

        return _again(self._reading, folder, listed)

    def has(self, folder: str, *endings: str) -> bool:
        """Whether a folder has an object whose name ends so. Cost: a page of its listing, if the first do."""
        import obstore

        def seen() -> bool:
            pages = obstore.list(self._store, folder, chunk_size=1)
            return any(str(one["path"]).endswith(endings or "") for some in pages for one in some)

        return _again(self._reading, folder, seen)

    def remove(self, names: Sequence[str]) -> None:
        """Remove objects; those that are gone already do not matter."""
        import obstore

        def removed() -> None:
            with contextlib.suppress(FileNotFoundError):
                obstore.delete(self._store, list(names))

        if names:
            _again(self._writing, names[0], removed)

    def range(self, name: str, start: int, end: int) -> Any:
        """Some bytes of an object; FileNotFoundError if there is none."""
        import obstore

        with self._reading(name):
            return memoryview(obstore.get_range(self._store, name, start=start, end=end))

    def probe(self) -> None:
        """Raise if the store puts an object although there is one of its name: no commit would be safe.

        Costs one request once a workspace has been probed. Who may only read is not asked.
        """
        try:
            if self.put_new(_PROBE, b"") and self.put_new(_PROBE, b""):
                raise WorkspaceError(
                    f"the store of {self.url!r} ignores the condition of a put (If-None-Match), so two "
                    f"writers could both commit. {NOTHING_APPLIED} Use a store that supports conditional "
                    "puts, or an option of yours that turns them on (aws_conditional_put=etag)."
                )
        except StoreError as error:
            if not error.denied:
                raise

    @contextlib.contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        with self._reaching(f"read {name!r} in"):
            yield

    @contextlib.contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            with self._reaching(f"write {name!r} to"):
                yield
        except FileNotFoundError as error:  # what there is not is what it would lie in
            raise StoreError(
                f"cannot write {name!r} to {self.url!r}: {_reason(error)}. {NOTHING_APPLIED} Make the bucket "
                "or container first."
            ) from None

    @contextlib.contextmanager
    def _reaching(self, doing: str) -> Iterator[None]:
        """Turn what the client raises into an error that names the workspace and the next step."""
        from obstore import exceptions

        try:
            yield
        except (FileNotFoundError, WorkspaceError, exceptions.AlreadyExistsError):
            raise
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError, PermissionError) as error:
            raise StoreError(
                f"cannot {doing} {self.url!r}: the store refuses it ({_reason(error)}). {NOTHING_APPLIED} "
                "Check the credentials and what they may do.",
                denied=True,
            ) from None
        except (exceptions.BaseError, OSError, ValueError) as error:
            if _METADATA in str(error):  # the last place where the client looks for credentials
                raise StoreError(
                    f"cannot {doing} {self.url!r}: there are no credentials for it. {NOTHING_APPLIED} Set "
                    "the variables of the store (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AZURE_..., "
                    "GOOGLE_...), or give storage_options.",
                    denied=True,
                ) from None
            raise StoreError(
                f"cannot {doing} {self.url!r}: {_reason(error)}. {NOTHING_APPLIED} Check the address and the "
                "network, then run it again."
            ) from None


def _entry(about: Any) -> Entry:
    return Entry(str(about["path"]), int(about["size"]), about["last_modified"].timestamp())


def _again(
    reaching: Callable[[str], contextlib.AbstractContextManager[None]], name: str, request: Callable[[], T]
) -> T:
    """The answer to what the client asks once only: a listing that is cut, the removal of many objects."""
    for wait_s in _WAITS_S:
        try:
            with reaching(name):
                return request()
        except StoreError as error:
            if error.denied:
                raise
            time.sleep(wait_s)
    with reaching(name):
        return request()


class ObjectFile(io.RawIOBase):
    """An object as a file that is read. Every read is a request: whoever reads little at a time buffers.

    Its length is asked for, too, unless it is given.
    """

    def __init__(self, objects: Objects, name: str, length: int | None = None) -> None:
        self._objects, self._name = objects, name
        self._length, self._at = objects.length(name) if length is None else length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        n = min(len(view), self._length - self._at)
        if n <= 0:
            return 0
        view[:n] = self._objects.range(self._name, self._at, self._at + n)
        self._at += n
        return n


def _connect(url: str, options: Mapping[str, str], n_bytes: int = 0) -> Any:
    """A client whose puts may be of so many bytes."""
    from obstore.store import from_url

    client, store = _variables(url), {}
    others = tuple(f"{cloud.lower()}_" for cloud in _ALL_CLOUDS if cloud != _cloud(url))
    for name, value in options.items():
        bare = _PREFIX.sub("", name.lower())
        if name.lower().startswith(others):
            continue  # of one mapping for a workspace here and sources there
        if bare in _CLIENT:
            client[bare] = _flag(value)
        else:
            store[name] = value
    if not client.keys() & {"timeout", "read_timeout"}:
        stalled = timedelta(seconds=STALLED_S + n_bytes / SLOWEST)
        client |= {"timeout": max(_NO_TIMEOUT, stalled), "read_timeout": stalled}
    try:
        connect: Any = from_url  # its overloads name the options of each store
        return connect(url, config=store or None, client_options=client, retry_config=_RETRIES)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # for options that it does not know the client panics
        raise StoreError(
            f"cannot open the store of {shorten(url)}: {_reason(error)}. Check the address and the options."
        ) from None


def _cloud(url: str) -> str:
    return _CLOUDS.get(url.partition(":")[0].lower(), "AZURE")


def _variables(url: str) -> dict[str, Any]:
    """What variables of the environment say to the HTTP client: it only reads them if it is told nothing."""
    said = {name: value for name, value in os.environ.items() if name.startswith(f"{_cloud(url)}_")}
    bare = {_PREFIX.sub("", name.lower()): _flag(value) for name, value in said.items()}
    return {name: value for name, value in bare.items() if name in _CLIENT}


def _flag(value: str) -> str | bool:
    return value if value.lower() not in ("true", "false") else value.lower() == "true"


def _reason(error: BaseException) -> str:
    """What the store answers, or the first line of what a client says, without its debugging notes."""
    text = str(error)
    if (answer := _ANSWER.search(text)) is not None:
        return f"{answer[1]}: {(answer[2] or '').strip()[:200]}".rstrip(". :")
    line = text.strip().split("\n")[0]
    return line[:200].rstrip(". ") or type(error).__name__
