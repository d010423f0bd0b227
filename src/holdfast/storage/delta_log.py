"""The Delta log under the ledger: where it is, and what is wrong with it when delta-rs fails.

delta-rs reports damage by errors of many kinds, panics among them. Here they become
DamagedFileErrors that name the file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.errors import DamagedFileError, HoldfastError, WorkspaceError

FOLDER = "ledger"

# A panic of Rust is a BaseException of a class that cannot be imported, so the code below catches
# all but these.
INTERRUPTS = (KeyboardInterrupt, SystemExit, GeneratorExit)

REPAIR = "Restore the workspace from a backup, or rebuild it with 'holdfast track'."


def location(folder: Path) -> str:
    """The folder as delta-rs takes it: a bare path with a colon in it would be read as a URL."""
    return folder.absolute().as_uri()


def entry_path(folder: Path, delta_version: int) -> Path:
    """The log entry of a Delta version."""
    return folder / "_delta_log" / f"{delta_version:020d}.json"


def has_log(folder: Path) -> bool:
    try:
        return any(name.endswith((".json", ".parquet")) for name in os.listdir(folder / "_delta_log"))
    except OSError:
        return False


def names_file(entry: Path, path: str) -> bool:
    """Whether a log entry exists and adds the file: the answer to 'did my commit land?'."""
    try:
        return path in entry.read_text(encoding="utf-8")
    except OSError:
        return False


def refuse_odd_path(folder: Path) -> None:
    # delta-rs 1.6 decodes a path twice and takes a backslash for a slash: it would write elsewhere.
    if re.search(r"%[0-9A-Fa-f]{2}|\\", str(folder.absolute())):
        raise WorkspaceError(
            f"the workspace's path {str(folder.parent)!r} has a backslash or a '%' code in it, which Delta "
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
def reading(root: Path) -> Iterator[None]:
    """Turn what delta-rs raises on a damaged log into a DamagedFileError that names the file."""
    try:
        yield
    except BaseException as error:
        pass_on(error)
        raise_damaged(root, error)


def raise_damaged(root: Path, error: BaseException) -> NoReturn:
    name, wrong = _find_damage(root / FOLDER / "_delta_log")
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
    entries = [name for name in names if re.fullmatch(r"\d{20}\.json", name)]
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
