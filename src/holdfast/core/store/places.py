"""Places: what a user calls the path of a workspace or of a source, as a path of this machine.

Stores that are named by a URL are not supported yet, and a URL is no path: `Path("s3://bucket/ws")` is a
folder called `s3:` in the working folder. So a URL is refused before anything is read or written; only
`file://` names a path.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from holdfast.errors import NOTHING_APPLIED, HoldfastError, shorten_path

# Two letters at least: `C:/` is a drive. One slash is enough: `dbfs:/x`, and `Path` folds two into one.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


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
        f"{shorten_path(text)}, the {what}, is a URL: stores are not supported yet, only paths of this "
        f"machine and file://. {NOTHING_APPLIED}"
    )
