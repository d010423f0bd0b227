"""The Delta log under the ledger: where it is, and what is wrong with it when delta-rs fails.

delta-rs reports damage by errors of many kinds, panics among them. Here they become
DamagedFileErrors that name the file.

A log entry that is gone shows as a gap, but for the newest one: without it the log is the sound log of
the version before. So a copy of the newest entry is kept in `ledger/_newest`, made once the entry is on
disk. The law: whoever has seen an entry has seen its copy made, or has made it (`keep_newest` after a
commit and at opening). So a process that is killed between entry and copy causes no alarm, and its
entry, once anybody has opened the workspace again, cannot be lost unnoticed. Each copy has the name
of its entry and older ones go only after it is there: writers that pass each other never put the mark back.

On a store the copy is a request after each commit, and whether an entry is missing is a listing at opening
and when the workspace is verified; older copies are litter.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from holdfast.core.store.bucket import LEDGER, Bucket
from holdfast.core.store.root import Root, content_of
from holdfast.errors import DamagedFileError, HoldfastError, StoreError, WorkspaceError

FOLDER = LEDGER

# A panic of Rust is a BaseException of a class that cannot be imported, so the code below catches
# all but these.
INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)

REPAIR = "Restore the workspace from a backup, or rebuild it with 'holdfast track'."

Answer = TypeVar("Answer")
# How often a store is asked by way of delta-rs.
ASKS = 4

_LOG, _NEWEST = "_delta_log", "_newest"
_ENTRY = re.compile(r"\d{20}\.json")

# The process that delta-rs runs in, once it does.
_runs_in: int | None = None


def refuse_forked(root: Root) -> None:
    """Raise in a process that was forked from one that has used delta-rs: its threads are not there."""
    global _runs_in
    process = os.getpid()
    if _runs_in is None:
        _runs_in = process
    if _runs_in != process:
        raise WorkspaceError(
            f"the workspace {str(root)!r} cannot be used in process {process}: it was forked from process "
            f"{_runs_in}, which has opened a workspace, and Delta Lake does not survive a fork. Nothing was "
            "applied. Open the workspace in a process that is spawned, for example by "
            "multiprocessing.get_context('spawn'), or fork before the first workspace is opened."
        )


def opened_table(root: Root) -> DeltaTable:
    """The Delta table of a workspace's ledger."""
    return patiently(root, lambda: DeltaTable(location(root), storage_options=options_of(root)))


def patiently(root: Root, ask: Callable[[], Answer]) -> Answer:
    """What delta-rs answers. A store is asked again if it fails: delta-rs gives up at a cut answer."""
    for _ in range(ASKS - 1 if isinstance(root, Bucket) else 0):
        try:
            return ask()
        except CommitFailedError:
            raise
        except BaseException as error:
            pass_on(error)
    return ask()


def location(root: Root) -> str:
    """The ledger as delta-rs takes it: a bare path with a colon in it would be read as a URL."""
    return f"{root}/{FOLDER}" if isinstance(root, Bucket) else (root / FOLDER).absolute().as_uri()


def options_of(root: Root) -> dict[str, str] | None:
    """What delta-rs needs to reach a store; the environment is its own affair."""
    return dict(root.options) if isinstance(root, Bucket) else None


def entry_name(delta_version: int) -> str:
    """The log entry of a Delta version, in the workspace."""
    return f"{FOLDER}/{_LOG}/{delta_version:020d}.json"


def copy_name(delta_version: int) -> str:
    """The copy of a log entry, in the workspace."""
    return f"{FOLDER}/{_NEWEST}/{delta_version:020d}.json"


def entry_path(folder: Path, delta_version: int) -> Path:
    """The log entry of a Delta version, on this machine."""
    return folder / _LOG / f"{delta_version:020d}.json"


def keep_newest(root: Root, delta_version: int) -> None:
    """Keep a copy of a log entry that is on disk, in place of those of older entries.

    Where the folder cannot be written (a read-only workspace) there is no copy, and no failure.
    """
    if isinstance(root, Bucket):
        with suppress(StoreError):
            root.copy(entry_name(delta_version), copy_name(delta_version))
        return
    folder = root / FOLDER
    entry, copies = entry_path(folder, delta_version), folder / _NEWEST
    under_way = copies / f"{entry.name}.{secrets.token_hex(6)}"
    with suppress(OSError):
        content = entry.read_bytes()
        if not content:  # what a power cut leaves of an entry that nobody was told of
            return
        copies.mkdir(exist_ok=True)
        under_way.write_bytes(content)
        os.replace(under_way, copies / entry.name)
        for name in os.listdir(copies):
            if name[: len(entry.name)] < entry.name:
                with suppress(FileNotFoundError):  # another writer removes them, too
                    os.unlink(copies / name)


def newest_kept(root: Root, seen: int = 0) -> int:
    """The Delta version of the newest entry that has a copy, the seen one or a newer one; -1 if none has."""
    try:
        if isinstance(root, Bucket):
            copies = root.entries(f"{FOLDER}/{_NEWEST}", after=copy_name(seen - 1))
            names = [entry.name.rpartition("/")[2] for entry in copies]
        else:
            names = os.listdir(root / FOLDER / _NEWEST)
    except OSError:
        return -1
    return max((int(name[:20]) for name in names if _ENTRY.fullmatch(name)), default=-1)


def older_copies(root: Bucket) -> Iterator[tuple[str, float]]:
    """(name, time of writing) of the copies on a store that a newer one stands for."""
    copies = sorted(root.entries(f"{FOLDER}/{_NEWEST}"), key=lambda entry: entry.name)
    return ((entry.name, entry.written) for entry in copies[:-1])


def check_newest(root: Root, seen: int) -> int:
    """Raise if the newest entry of the log is gone, of which one was seen; else which one has a copy, or -1.

    Costs a listing of one file, and one `stat`; of a store a listing from that entry on, and a request.
    """
    newest = newest_kept(root, seen)
    if newest < 0:
        return newest
    wrong = "is missing"
    if isinstance(root, Bucket):
        if root.exists(entry_name(newest)):
            return newest
        names = [entry.name.rpartition("/")[2] for entry in root.entries(f"{FOLDER}/{_LOG}")]
    else:
        try:
            if entry_path(root / FOLDER, newest).stat().st_size:
                return newest
            wrong = "is empty"
        except FileNotFoundError:
            pass
        except OSError:
            return newest  # whoever reads it says why
        names = os.listdir(root / FOLDER / _LOG)  # a network file system may remember what was absent
    numbers = [int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.(json|checkpoint\.parquet)", name)]
    if max(numbers, default=-1) > newest or (wrong == "is missing" and newest in numbers):
        return newest
    copy = copy_name(newest)
    raise DamagedFileError(
        f"the file {entry_name(newest)!r} of the workspace {str(root)!r} {wrong}, and with it the "
        f"newest version. Copy {copy!r}, which is the same, to its place. If the workspace was put back to "
        f"an older state on purpose, remove {copy!r} instead."
    )


def has_log(root: Root) -> bool:
    if isinstance(root, Bucket):
        return root.has(f"{FOLDER}/{_LOG}", ".json", ".parquet")
    try:
        return any(name.endswith((".json", ".parquet")) for name in os.listdir(root / FOLDER / _LOG))
    except OSError:
        return False


def has_entry(root: Root, delta_version: int) -> bool:
    """Whether there is a log entry of a Delta version. Cost: a `stat`, or a request."""
    if isinstance(root, Bucket):
        return root.exists(entry_name(delta_version))
    return os.path.exists(root / entry_name(delta_version))


def names_file(root: Root, delta_version: int, path: str) -> bool:
    """Whether a log entry exists and adds the file: the answer to 'did my commit land?'."""
    try:
        return path in content_of(root, entry_name(delta_version)).decode("utf-8")
    except OSError:
        return False


def refuse_odd_path(root: Root) -> None:
    # delta-rs 1.6 decodes a path twice and takes a backslash for a slash: it would write elsewhere.
    path = str(root) if isinstance(root, Bucket) else str(root.absolute())
    if re.search(r"%[0-9A-Fa-f]{2}|\\", path):
        raise WorkspaceError(
            f"the workspace's path {str(root)!r} has a backslash or a '%' code in it, which Delta "
            "Lake cannot address. Nothing was written. Choose another folder."
        )


def pass_on(error: BaseException) -> None:
    """Raise again what is no failure of delta-rs. Its panics are no `Exception`, so all are caught."""
    if isinstance(error, (*INTERRUPTS, HoldfastError, MemoryError)):
        raise error


def brief(error: BaseException) -> str:
    """The first lines of a Rust error without colours and stack frames, cut to a sentence's length."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    text = re.split(r"\n\s*\d+: ", text)[0]
    text = " ".join(text.replace("↳", " ").split()).rstrip(".")
    return text if len(text) <= 200 else f"{text[:197]}..."


@contextmanager
def reading(root: Root) -> Iterator[None]:
    """Turn what delta-rs raises on a damaged log into a DamagedFileError that names the file."""
    try:
        yield
    except BaseException as error:
        pass_on(error)
        raise_damaged(root, error)


def raise_damaged(root: Root, error: BaseException) -> NoReturn:
    name, wrong = ("", "") if isinstance(root, Bucket) else _find_damage(root / FOLDER / _LOG)
    if name.endswith(".checkpoint.parquet"):
        raise DamagedFileError(
            f"the file '{FOLDER}/_delta_log/{name}' of the workspace {str(root)!r} {wrong}. It only repeats "
            f"the log entries before it: move it and '{FOLDER}/_delta_log/_last_checkpoint' away, then open "
            "the workspace again."
        ) from None
    if name:
        raise DamagedFileError(
            f"the file '{FOLDER}/_delta_log/{name}' of the workspace {str(root)!r} {wrong}. {REPAIR}"
        ) from None
    raise DamagedFileError(
        f"the ledger of the workspace {str(root)!r} cannot be read: {brief(error)}. {REPAIR}"
    ) from None


def _find_damage(log: Path) -> tuple[str, str]:
    """The first log file that is not what it should be, and what is wrong with it."""
    try:
        names = sorted(os.listdir(log))
    except OSError:
        return "", ""
    for name in names:
        if name.endswith(".checkpoint.parquet"):
            try:
                pq.read_metadata(log / name)
            except (pa.ArrowException, OSError, ValueError) as error:
                return name, f"is damaged: {brief(error)}"
    entries = [name for name in names if _ENTRY.fullmatch(name)]
    for name in entries:
        try:
            for line in (log / name).read_text(encoding="utf-8").splitlines():
                if line and not isinstance(json.loads(line), dict):
                    raise ValueError("a line is no JSON object")
        except (OSError, ValueError) as error:
            return name, f"is damaged: {brief(error)}"
    for expected, name in enumerate(entries):
        if int(name[:20]) != expected:
            return f"{expected:020d}.json", "is missing"
    checkpoint = log / "_last_checkpoint"
    try:
        version = int(json.loads(checkpoint.read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", ""
    name = f"{version:020d}.checkpoint.parquet"
    return (name, "is missing") if name not in names else ("", "")
