"""Tasks that are watched, repeated or killed: importable by Spark's workers.

Each wraps another task, whose name and payload are in its own payload (`wrapped`).
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import sys
import threading
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from holdfast.core.engine.worker import Task, import_task, task_name
from holdfast.core.store.files import NewFile

Payload = dict[str, Any]
Event = tuple[str, str, bool]  # "open" or "map", the path, whether the file was made by it

_recording = threading.local()


def wrapped(function: Task, payloads: Sequence[Payload], **more: Any) -> list[Payload]:
    return [{"task": task_name(function), "payload": payload, **more} for payload in payloads]


def _run(payload: Payload) -> bytes:
    return import_task(payload["task"])(payload["payload"])


# -- watched -----------------------------------------------------------------------------------------------


def _hook(event: str, args: tuple[Any, ...]) -> None:
    events: list[Event] | None = getattr(_recording, "events", None)
    if events is None:
        return
    if event == "open":
        path, _, flags = args
        if flags & os.O_ACCMODE != os.O_RDONLY and not isinstance(path, int):
            events.append(("open", os.fsdecode(path), bool(flags & os.O_EXCL)))
    elif event == "mmap.__new__" and args[2] not in (mmap.ACCESS_READ, mmap.ACCESS_COPY):
        events.append(("map", os.readlink(f"/proc/self/fd/{args[0]}"), False))
    elif event in ("os.truncate", "os.rename", "os.link"):
        events.append((event, os.fsdecode(args[0]), False))


@contextlib.contextmanager
def recorded(folder: Path) -> Iterator[None]:
    """What this thread opens, or maps, to write to, is listed in a new file of the folder."""
    if not hasattr(sys, "_holdfast_hook"):
        sys._holdfast_hook = True  # type: ignore[attr-defined]
        sys.addaudithook(_hook)  # it stays: no hook can be removed
    _recording.events = []
    try:
        yield
    finally:
        events, _recording.events = _recording.events, None
        (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(events))


def watched(payload: Payload) -> bytes:
    with recorded(Path(payload["log"])):
        return _run(payload)


# -- repeated ----------------------------------------------------------------------------------------------


_KILLING = threading.Lock()


class KilledError(BaseException):
    """Stands for SIGKILL: nobody handles it, and nothing is cleared away."""


@contextlib.contextmanager
def killed_at(number: int) -> Iterator[None]:
    """At the so many-th file that is finished: half of it is there, and stays."""
    seal, discard = NewFile.seal, NewFile.discard
    seen = 0

    def dying(file: NewFile) -> None:
        nonlocal seen
        if seen == number:
            file.flush()
            path = file._path
            os.truncate(path, path.stat().st_size // 2)
            raise KilledError
        seen += 1
        seal(file)

    NewFile.seal = dying  # type: ignore[method-assign]
    NewFile.discard = lambda file: file._file.close()  # type: ignore[method-assign]
    try:
        yield
    finally:
        NewFile.seal, NewFile.discard = seal, discard  # type: ignore[method-assign]


def repeated(payload: Payload) -> bytes:
    """A task whose first answer is lost, and whose next attempts are killed at their first and last file."""
    with _KILLING:  # one thread at a time: all of them write their files in the way that is patched
        _run(payload)
        n_files = 0
        while True:
            try:
                with killed_at(n_files):
                    _run(payload)
                break
            except KilledError:
                n_files += 1
        return _run(payload)


def answer_lost(payload: Payload) -> bytes:
    """A task of Spark's first partition whose worker dies when all is written; Spark tries it again."""
    from pyspark import TaskContext

    answer = _run(payload)
    context = TaskContext.get()
    assert context is not None
    if context.partitionId() == 0 and context.attemptNumber() == 0:
        os._exit(1)
    return answer


def executors(batches: Iterator[Any]) -> Iterator[Any]:
    """Of each partition, which executor it is on: a namespace of mounts."""
    import pyarrow as pa

    for _ in batches:
        yield pa.record_batch({"executor": [os.readlink("/proc/self/ns/mnt")]})
