"""Places: where a workspace lies, and what a user calls it or a source.

A workspace lies in a folder of this machine, a `Path`, or under a URL of an object store, a `Bucket`. Both
have the same files by the same law (`files.py`); who needs no more than that does not ask which it is.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from holdfast.core.store.bucket import Bucket, bucket_of, use_options
from holdfast.errors import NOTHING_APPLIED, HoldfastError, SourceError, WorkspaceError, shorten_path

Root = Path | Bucket

# Two letters at least: `C:/` is a drive. One slash is enough: `dbfs:/x`, and `Path` folds two into one.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
# How obstore and Delta Lake both understand a store; `az` names a container, `abfss` its account, too.
STORES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss")


def root_of(address: str) -> Root:
    """The place of a payload's address: what `str` makes of a place."""
    return bucket_of(address) if _SCHEME.match(address) else _folder(address)


@lru_cache(maxsize=16)
def _folder(address: str) -> Path:
    """Tasks of a small batch ask for the same one many times."""
    return Path(address)


def workspace_root(given: str | os.PathLike[str], options: Mapping[str, str] | None) -> Root:
    """The place that a user calls a workspace; `options` are for its store and for those of its sources."""
    text = os.fspath(given)
    if options is not None:
        use_options(options)
    if is_stored(text):
        if not re.fullmatch(r"[^:]+://[^/]+/.+", text.rstrip("/")):
            raise WorkspaceError(
                f"{shorten_path(text)} names a whole store; a workspace is a folder in it. {NOTHING_APPLIED} "
                "Name one: s3://bucket/folder."
            )
        return bucket_of(text, options)
    return Path(local_path(text, "workspace", WorkspaceError)).absolute()


def is_stored(text: str) -> bool:
    """Whether an address is one of an object store. A `Path` of it has lost a slash, and is none."""
    scheme = _SCHEME.match(text)
    return scheme is not None and scheme[1].lower() in STORES and text[scheme.end() :].startswith("/")


def object_of(url: str) -> tuple[Bucket, str]:
    """The store of a URL, and the name in it."""
    authority = re.match(r"[^:]+://[^/]+", url)
    assert authority is not None
    return bucket_of(authority[0]), url[authority.end() :].strip("/")


def source_path(given: str | os.PathLike[str], what: str) -> str:
    """The path or the URL of a source."""
    text = os.fspath(given)
    return text if is_stored(text) else local_path(text, what, SourceError)


def local_path(place: str | os.PathLike[str], what: str, error: type[HoldfastError]) -> str:
    """The path that a place names; `error` if it is a URL of anything but a file of this machine.

    >>> local_path("file:///tmp/my%20data.csv", "source", HoldfastError)
    '/tmp/my data.csv'
    >>> local_path("data/s3.csv", "source", HoldfastError)
    'data/s3.csv'
    """
    text = os.fspath(place)
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text
    if scheme[1].lower() == "file":
        # By hand but for the host: '?' and '#' are letters of a path like any other.
        rest = text[len("file:") :]
        host = urlsplit(f"file:{rest}").netloc if rest.startswith("//") else ""
        if host.lower() in ("", "localhost"):
            return unquote(f"/{rest.lstrip('/')[len(host) :].lstrip('/')}")
    raise error(
        f"{shorten_path(text)}, the {what}, is a URL that holdfast cannot reach: it knows paths of this "
        f"machine, file:// and, as texts, {', '.join(f'{s}://' for s in STORES)}. {NOTHING_APPLIED}"
    )


def content_of(root: Root, name: str) -> bytes:
    """A small file by its name; FileNotFoundError if there is none."""
    return root.content(name) if isinstance(root, Bucket) else (root / name).read_bytes()


def remove_file(root: Root, name: str) -> None:
    """Remove a file, if it is there."""
    if isinstance(root, Bucket):
        root.remove([name])
    else:
        (root / name).unlink(missing_ok=True)


def remove_folder(root: Root, name: str) -> None:
    """Remove a folder with all that is in it. What cannot be removed is litter."""
    if isinstance(root, Bucket):
        root.remove_folder(name)
    else:
        shutil.rmtree(root / name, ignore_errors=True)
