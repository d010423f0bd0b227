"""What a worker does: it imports tasks by their names and runs those of its partition, or one over the rows
of its partition of a DataFrame.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.core.engine.calls import Call, Calls, calls_of
from holdfast.core.engine.failures import TaskFailure, describe, import_name, is_outcome
from holdfast.core.store.bucket import Reach, discard_all, grant, publish_all
from holdfast.core.store.files import FileRef
from holdfast.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

Task = Callable[[dict[str, Any]], bytes]
Produce = Callable[[dict[str, Any]], Iterator[tuple[int, bytes]]]
# Given the blocks of a part and its payload, it yields (part, block) for the next step.
Relay = Callable[[Iterator[bytes], dict[str, Any]], Iterator[tuple[int, bytes]]]
Consume = Callable[[Iterator[bytes], dict[str, Any]], bytes]
RowTask = Callable[[Iterator[Any], dict[str, Any]], Iterator[bytes]]


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


def import_task(name: str) -> Callable[..., Any]:
    """The function of a task name."""
    task: Callable[..., Any] = import_name(name)
    return task


def checked(result: object, name: str) -> bytes:
    """A task's result; TypeError if it is not bytes."""
    if not isinstance(result, bytes):
        raise TypeError(f"task {name} returned {type(result).__name__}, not bytes")
    return result


def run_partition(
    batches: Iterator[pa.RecordBatch], carried: Calls | tuple[str, FileRef], reaches: Sequence[Reach]
) -> Iterator[pa.RecordBatch]:
    """Run the tasks whose indexes come in. What a task refuses is an outcome; what else fails, Spark sees.

    What a task has written is published before its answer names it.
    """
    grant(reaches)
    for batch in batches:
        tasks: Any = batch.column(0).to_pylist()
        for task in tasks:
            yield _outcome(task, carried)


def _outcome(task: int, carried: Calls | tuple[str, FileRef], *arguments: Any) -> pa.RecordBatch:
    """What came of a call, by its number: its result, or why it refuses. What else fails is raised."""
    import pyarrow as pa

    refusal: str | None = None
    result: bytes | None = None
    name = "a job"
    try:
        name, payload = calls_of(carried)[task]
        result = checked(import_task(name)(*arguments, payload), name)
        publish_all()
    except Exception as error:
        discard_all()  # or the next task of this process would publish it
        described = describe(error, f"task {name}")
        if not is_outcome(error):
            raise TaskFailure(described) from None
        refusal = described
    return pa.record_batch(
        [pa.array([task], pa.int64()), pa.array([refusal], pa.string()), pa.array([result], pa.binary())],
        names=["task", "refusal", "result"],
    )


def produce_blocks(
    batches: Iterator[pa.RecordBatch], carried: Calls | tuple[str, FileRef], reaches: Sequence[Reach]
) -> Iterator[pa.RecordBatch]:
    """Run the producers of an exchange whose indexes come in. Whatever fails, Spark sees: it is one job."""
    grant(reaches)
    for batch in batches:
        numbers: Any = batch.column(0).to_pylist()
        for number in numbers:
            yield from _blocks(number, carried)


def relay_blocks(
    batches: Iterator[pa.RecordBatch], carried: Calls | tuple[str, FileRef], reaches: Sequence[Reach]
) -> Iterator[pa.RecordBatch]:
    """Run the relays of the parts whose blocks come in, part by part."""
    grant(reaches)
    for part, blocks in _by_part(batches):
        yield from _blocks(part, carried, blocks)


def _blocks(number: int, carried: Calls | tuple[str, FileRef], *arguments: Any) -> Iterator[pa.RecordBatch]:
    """The blocks that a call yields, each as a batch."""
    import pyarrow as pa

    try:
        name, payload = calls_of(carried)[number]
        for part, block in import_name(name)(*arguments, payload):
            yield pa.record_batch(
                [pa.array([part], pa.int32()), pa.array([checked(block, name)], pa.binary())],
                names=["part", "block"],
            )
    except Exception as error:
        raise TaskFailure(describe(error, "producing blocks")) from None


def _by_part(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[bytes]]]:
    """(part, its blocks) of rows that are sorted by part."""
    rows = (
        (part, block)
        for batch in batches
        for part, block in zip(batch.column(0).to_pylist(), batch.column(1), strict=True)
    )
    for part, some in itertools.groupby(rows, lambda row: row[0]):
        yield part, (block.as_py() for _, block in some)


def consume_blocks(
    batches: Iterator[pa.RecordBatch], carried: Calls | tuple[str, FileRef], reaches: Sequence[Reach]
) -> Iterator[pa.RecordBatch]:
    """Run the consumers of the parts whose blocks come in, part by part."""
    grant(reaches)
    for part, blocks in _by_part(batches):
        yield _outcome(part, carried, blocks)


def run_over_rows(
    rows: Iterator[pa.RecordBatch], call: Call, reaches: Sequence[Reach]
) -> Iterator[pa.RecordBatch]:
    """What a function makes of the rows of a partition, answer by answer.

    As in `run_partition`, what it refuses is an outcome, and the last one. What fails while rows are read is
    the DataFrame's own, and raised as it is.
    """
    import pyarrow as pa
    from pyspark import TaskContext

    grant(reaches)
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    name, payload = call
    reading = _Reading(rows)
    results = import_name(name)(reading, payload)
    for part in itertools.count():
        refusal: str | None = None
        result: bytes | None = None
        try:
            result = checked(next(results), name)
            publish_all()
        except StopIteration:
            return
        except Exception as error:
            if error is reading.failure:
                raise
            described = describe(error, f"task {name}")
            if not is_outcome(error):
                raise TaskFailure(described) from None
            refusal = described
        yield pa.record_batch(
            [
                pa.array([partition], pa.int32()),
                pa.array([part], pa.int32()),
                pa.array([refusal], pa.string()),
                pa.array([result], pa.binary()),
            ],
            names=["partition", "part", "refusal", "result"],
        )
        if refusal is not None:
            return


class _Reading:
    """Rows that are read; knows what was raised by reading them."""

    def __init__(self, rows: Iterator[pa.RecordBatch]) -> None:
        self._rows = rows
        self.failure: Exception | None = None

    def __iter__(self) -> _Reading:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._rows)
        except StopIteration:
            raise
        except Exception as error:
            self.failure = error
            raise
