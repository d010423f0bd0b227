"""The marker that makes a folder a workspace, and the format that its state has.

`holdfast.json` in the root is the first file of a workspace and never changes. It appears whole
or not at all, and of two processes that create a workspace at once exactly one writes it.
A folder with other things in it is refused, so that a wrong path never strews state over a
user's files.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from importlib import metadata
from pathlib import Path

from holdfast.errors import DamagedFileError, StateFormatError, WorkspaceError, listing
from holdfast.storage.files import sync_folder

FORMAT = 5
MARKER = "holdfast.json"

# The marker under way; a crash may leave one behind, and nobody reads it.
_UNDER_WAY = f".{MARKER}."


def create_marker(root: Path) -> bool:
    """Make a folder a workspace; whether it was this call that did it.

    Safe to call again and by several processes: a marker that is there is checked, not replaced.
    """
    temporary = root / f"{_UNDER_WAY}{secrets.token_hex(6)}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        names = sorted(n for n in os.listdir(root) if not n.startswith(_UNDER_WAY))
        if MARKER in names:
            check_marker(root)
            return False
        if names:
            raise WorkspaceError(
                f"the folder {str(root)!r} is no holdfast workspace and is not empty: "
                f"it holds {listing(names, 3)}. Nothing was written. Name a new or an empty folder."
            )
        content = json.dumps({"format": FORMAT, "holdfast": _release()}) + "\n"
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(content)
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


def check_marker(root: Path) -> int:
    """The format of a workspace that this holdfast can read, or the error that says why it cannot."""
    try:
        content = (root / MARKER).read_bytes()
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
    try:
        marker = json.loads(content)
        found = marker["format"]
        if type(found) is not int or found < 1:
            raise ValueError(found)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedFileError(
            f"the file {MARKER!r} of the workspace {str(root)!r} is damaged: it does not name a format. "
            f'Restore it from a backup; a workspace of this release has {{"format": {FORMAT}}} in it.'
        ) from None
    if found > FORMAT:
        raise StateFormatError(
            f"the workspace has format {found}; this holdfast reads {FORMAT}. "
            "Upgrade holdfast, or rebuild with 'holdfast track'."
        )
    if found < FORMAT:
        raise StateFormatError(
            f"the workspace has format {found}, of an older holdfast; this one reads {FORMAT}. "
            "Use the older release for it, or rebuild it with 'holdfast track'."
        )
    return found


def _release() -> str:
    try:
        return metadata.version("holdfast")
    except metadata.PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"
