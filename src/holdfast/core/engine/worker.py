"""What a worker does: it imports tasks by their names and runs those of its partition, or writes its
partition of a DataFrame to a file.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.core.engine.failures import TaskFailure, describe, import_name, is_outcome
from holdfast.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Task = Callable[[dict[str, Any]], bytes]
Call = tuple[str, str]  # the name of a task function, its payload as JSON


def task_name(function: Callable[..., Any]) -> str:
    """The name under which workers import a function.

    >>> task_name(import_task)
    'holdfast.core.engine.worker:import_task'
    """
    module = getattr(function, "__module__", None)
    qualname = getattr(function, "__qualname__", None)
    if not module or not qualname or module == "__main__" or "<" in qualname:
        raise UsageError(
            f"{function!r} cannot be a task: workers import tasks by name, so it must be a function at the "
            "top level of an importable module."
        )
    return f"{module}:{qualname}"


def import_task(name: str) -> Task:
    """The function of a task name."""
    task: Task = import_name(name)
    return task


def checked(result: object, name: str) -> bytes:
    """A task's result; TypeError if it is not bytes."""
    if not isinstance(result, bytes):
        raise TypeError(f"task {name} returned {type(result).__name__}, not bytes")
    return result


def run_partition(batches: Iterator[pa.RecordBatch], calls: list[Call]) -> Iterator[pa.RecordBatch]:
    """Run the tasks whose indexes come in. What a task refuses is an outcome; what else fails, Spark sees."""
    import pyarrow as pa

    for batch in batches:
        tasks: Any = batch.column(0).to_pylist()
        for task in tasks:
            refusal: str | None = None
            result: bytes | None = None
            name, text = calls[task]
            try:
                result = checked(import_task(name)(json.loads(text)), name)
            except Exception as error:
                described = describe(error, f"task {name}")
                if not is_outcome(error):
                    raise TaskFailure(described) from None
                refusal = described
            yield pa.record_batch(
                [
                    pa.array([task], pa.int64()),
                    pa.array([refusal], pa.string()),
                    pa.array([result], pa.binary()),
                ],
                names=["task", "refusal", "result"],
            )


def stage_partition(batches: Iterator[pa.RecordBatch], place: str) -> Iterator[pa.RecordBatch]:
    """Write one partition to one new file of a folder that is there, and tell its name and size.

    The file gets its name when it is whole; an attempt that fails leaves nothing, one that is killed a
    `.part` file at most. What fails while reading is the DataFrame's own and raised as it is.
    """
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    path = Path(place) / f"part-{partition:05d}-{uuid.uuid4().hex}.arrow"
    part = path.with_suffix(".part")
    doing = f"writing a partition to {place}"
    n_rows = 0
    with contextlib.ExitStack() as removal:
        removal.callback(part.unlink, missing_ok=True)
        writer = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            with _seen_by_spark(doing):
                if writer is None:
                    sink = pa.OSFile(str(part), "wb")
                    writer = pa.ipc.new_file(sink, batch.schema)
                writer.write_batch(batch)
            n_rows += batch.num_rows
        if writer is None:
            return
        with _seen_by_spark(doing):  # the disk may be full only now
            writer.close()
            sink.close()
            n_bytes = part.stat().st_size
            part.replace(path)
    yield pa.record_batch(
        [
            pa.array([partition], pa.int32()),
            pa.array([str(path)], pa.string()),
            pa.array([n_rows], pa.int64()),
            pa.array([n_bytes], pa.int64()),
        ],
        names=["partition", "path", "n_rows", "n_bytes"],
    )


@contextlib.contextmanager
def _seen_by_spark(doing: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise TaskFailure(describe(error, doing)) from None
