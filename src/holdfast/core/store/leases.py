"""Leases: the jobs that are under way in a workspace, so that nobody takes their files for litter.

A job holds a lease from before its first file until after its commit: the file `lease` in its staging
folder, locked (`flock`) as long as the process lives, however it ends. It says which version the job is
based on; when it was written tells when the job began. No clock decides whether a job lives.

A lock of another machine may not be seen here, and some file systems and all object stores have none. Then,
and only then, the clock does: such a lease counts for `FOREIGN_S`. A commit checks its files once more in
any case.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.core.store.bucket import LEASE, STAGING, Bucket
from holdfast.core.store.objects import Entry
from holdfast.core.store.root import Root

FOREIGN_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Lease:
    """A job that is under way."""

    folder: str  # its staging folder
    since: float  # when it began, by the clock that stamps the workspace's files
    base: int  # the version that it is based on


@contextlib.contextmanager
def held(root: Root, folder: str, base: int) -> Iterator[None]:
    """Hold a lease in a staging folder; on a store it goes with the folder."""
    if isinstance(root, Bucket):
        root.put_new(f"{folder}/{LEASE}", json.dumps({"host": "", "base": base}).encode())
        yield
        return
    with open(root / folder / LEASE, "x", encoding="utf-8") as file:
        host = socket.gethostname()
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # no locks here: nobody can see whether this process lives
            host = ""
        json.dump({"host": host, "base": base}, file)
        file.flush()
        yield


def under_way(root: Root) -> list[Lease]:
    """The jobs that may still commit. Cost: a look at each staging folder."""
    if isinstance(root, Bucket):
        return [lease for entry in root.entries(STAGING) if (lease := _put_lease(root, entry)) is not None]
    try:
        folders = [folder for folder in (root / STAGING).iterdir() if folder.is_dir()]
    except FileNotFoundError:
        return []
    return [lease for folder in folders if (lease := _read(folder)) is not None]


def _put_lease(root: Bucket, entry: Entry) -> Lease | None:
    """The lease that an object is, if it is one that counts."""
    folder, _, name = entry.name.rpartition("/")
    if name != LEASE or time.time() - entry.written >= FOREIGN_S:
        return None
    with contextlib.suppress(FileNotFoundError):  # it ends at this moment
        return Lease(folder, entry.written, int(json.loads(root.content(entry.name))["base"]))
    return None


def _read(folder: Path) -> Lease | None:
    """The lease in a staging folder; None if its job has ended, or if there is none."""
    try:
        with open(folder / LEASE, encoding="utf-8") as file:
            since = os.fstat(file.fileno()).st_mtime
            locked = _locked(file.fileno())
            text = file.read()
    except OSError:  # it ends at this moment
        return None
    try:
        fields = json.loads(text)
        base, host = int(fields["base"]), str(fields["host"])
    except (ValueError, KeyError, TypeError):
        # It begins at this moment, or its job died then. Nothing was written for it yet, and what was written
        # just now is no litter: without a lock there is nothing to wait for.
        base, host = 0, socket.gethostname()
    if locked or (host != socket.gethostname() and time.time() - since < FOREIGN_S):
        return Lease(f"{STAGING}/{folder.name}", since, base)
    return None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
