"""The marker that makes a folder a workspace, and the format that its state has.

`holdfast.json` in the root is the first file of a workspace and never changes. It appears whole
or not at all, and of two processes that create a workspace at once exactly one writes it.
A folder with other things in it is refused, so that a wrong path never strews state over a
user's files.

The marker holds the secret by which the workspace hashes texts (`text_key`), drawn when it is made.
Formats are never refused for being old: what a format lacks has a meaning of its own here.

| format | what is new |
|---|---|
| 5 | texts are hashed by xxHash64 with fixed seeds, so whoever writes the values can make them collide |
| 6 | texts are hashed by SipHash-2-4 with the key of the marker |
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Any

from holdfast.core.store.bucket import Bucket
from holdfast.core.store.files import sync_folder
from holdfast.core.store.root import Root
from holdfast.errors import DamagedFileError, StateFormatError, WorkspaceError, listing

FORMAT = 6
OLDEST = 5
# From this format on the marker has a key.
KEYED = 6
MARKER = "holdfast.json"

# Two words of 64 bits.
Key = tuple[int, int]

# The marker under way; a crash may leave one behind, and nobody reads it.
_UNDER_WAY = f".{MARKER}."


def create_marker(root: Root) -> bool:
    """Make a folder a workspace; whether it was this call that did it.

    Safe to call again and by several processes: a marker that is there is checked, not replaced.
    """
    if isinstance(root, Bucket):
        return _put_marker(root)
    temporary = root / f"{_UNDER_WAY}{secrets.token_hex(6)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        names = sorted(n for n in os.listdir(root) if not n.startswith(_UNDER_WAY))
        if MARKER in names:
            check_marker(root)
            return False
        if names:
            raise _not_empty(root, names)
        with open(temporary, "xb") as file:
            file.write(_new_marker())
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, not a rename: a rename would replace the marker of a faster creator.
            os.link(temporary, root / MARKER)
        except FileExistsError:
            check_marker(root)
            return False
        sync_folder(root)
    except FileExistsError:
        raise WorkspaceError(
            f"{str(root)!r} is a file; a workspace is a folder. Nothing was written. "
            "Name a new or an empty folder."
        ) from None
    except OSError as error:
        raise WorkspaceError(
            f"cannot create a workspace in {str(root)!r}: {error.strerror or error}. "
            "Check the path, the disk's space and your rights."
        ) from error
    finally:
        with contextlib.suppress(OSError):  # nobody reads it
            temporary.unlink(missing_ok=True)
    return True


def _put_marker(root: Bucket) -> bool:
    """Make a place of a store a workspace."""
    names = sorted(entry.name for entry in root.entries(""))
    if MARKER in names:
        check_marker(root)
        return False
    if names:
        raise _not_empty(root, names)
    root.probe()
    if root.put_new(MARKER, _new_marker()):
        return True
    check_marker(root)
    return False


def _new_marker() -> bytes:
    marker = {"format": FORMAT, "holdfast": _release(), "key": new_key()}
    return f"{json.dumps(marker)}\n".encode()


def _not_empty(root: Root, names: list[str]) -> WorkspaceError:
    return WorkspaceError(
        f"the folder {str(root)!r} is no holdfast workspace and is not empty: it holds {listing(names, 3)}. "
        "Nothing was written. Name a new or an empty folder."
    )


def has_marker(root: Root) -> bool:
    """Whether there is a workspace, or what should be one."""
    return root.exists(MARKER) if isinstance(root, Bucket) else (root / MARKER).exists()


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_hex(16)


def check_marker(root: Root) -> int:
    """The format of a workspace that this holdfast can read, or the error that says why it cannot."""
    content = _read_marker(root)
    if isinstance(root, Bucket):
        root.marker = content
    version: int = _parsed(root, content)["format"]
    return version


def text_key(root: Root) -> Key | None:
    """The secret by which a workspace hashes texts; None where it hashes them with fixed seeds (format 5).

    Cost: a `stat`; the marker is read once in a process. On a store it is read when a workspace is opened,
    and tasks are told of it: another one may have been made in its place since.
    """
    if isinstance(root, Bucket):
        if root.marker is None:
            check_marker(root)
        assert root.marker is not None
        return _key_of(root, root.marker)
    try:
        status = os.stat(root / MARKER)
    except OSError:
        check_marker(root)  # says what is wrong
        raise
    return _key(root, status.st_ino, status.st_mtime_ns)


def hashing_note(root: Root) -> str | None:
    """What whoever looks after a workspace should know of its hashes; None if there is nothing."""
    if text_key(root) is not None:
        return None
    return (
        f"its texts are hashed with fixed seeds (format {check_marker(root)}), so whoever writes values can "
        "make them collide; track the tables anew, in a new workspace, to get a key"
    )


@lru_cache(maxsize=64)
def _key(root: Path, inode: int, modified_ns: int) -> Key | None:
    """By inode and time as well: a workspace may be removed, and another one made in its place."""
    return _key_of(root, _read_marker(root))


@lru_cache(maxsize=64)
def _key_of(root: Root, content: bytes) -> Key | None:
    marker = _parsed(root, content)
    if marker["format"] < KEYED:
        return None
    secret = bytes.fromhex(marker["key"])
    return int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")


def _read_marker(root: Root) -> bytes:
    if isinstance(root, Bucket):
        try:
            return root.content(MARKER)
        except FileNotFoundError:
            raise WorkspaceError(
                f"there is no workspace {str(root)!r}. Check the address, or create one with 'holdfast "
                "track' or 'holdfast link'."
            ) from None
    try:
        return (root / MARKER).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        if not root.exists():
            raise WorkspaceError(
                f"there is no workspace {str(root)!r}. Check the path, or create one with 'holdfast track' "
                "or 'holdfast link'."
            ) from None
        if not root.is_dir():
            raise WorkspaceError(
                f"{str(root)!r} is a file; a workspace is a folder. Check the path, "
                "or create one with 'holdfast track'."
            ) from None
        raise WorkspaceError(
            f"the folder {str(root)!r} is no holdfast workspace: it has no {MARKER!r}. Check the path, "
            "or create a workspace in a new folder with 'holdfast track'."
        ) from None
    except OSError as error:
        raise WorkspaceError(
            f"cannot read the workspace {str(root)!r}: {error.strerror or error}. Check your rights."
        ) from error


def _parsed(root: Root, content: bytes) -> dict[str, Any]:
    try:
        marker = json.loads(content)
        version = marker["format"]
        if type(version) is not int or version < 1:
            raise ValueError(version)
        if KEYED <= version <= FORMAT and len(bytes.fromhex(marker["key"])) != 16:
            raise ValueError(marker["key"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedFileError(
            f"the file {MARKER!r} of the workspace {str(root)!r} is damaged: it does not name a format and a "
            "key. Restore it from a backup: without its key the workspace cannot be read. Or rebuild it with "
            "'holdfast track' in a new folder."
        ) from None
    if version > FORMAT:
        raise StateFormatError(
            f"the workspace has format {version}; this holdfast reads {OLDEST} to {FORMAT}. "
            "Upgrade holdfast, or rebuild with 'holdfast track'."
        )
    if version < OLDEST:
        raise StateFormatError(
            f"the workspace has format {version}, of an older holdfast; this one reads {OLDEST} to {FORMAT}. "
            "Use the older release for it, or rebuild it with 'holdfast track'."
        )
    return dict(marker)


def _release() -> str:
    from importlib import metadata

    try:
        return metadata.version("holdfast")
    except metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
