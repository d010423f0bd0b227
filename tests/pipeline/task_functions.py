"""Task functions for tests of the engine: importable by Spark's workers, and trivial."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import AbsentRowError, DamagedFileError, HoldfastError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

Payload = dict[str, Any]


class PickyError(HoldfastError):
    """An error whose constructor takes something else than a message."""

    def __init__(self, *, table: str, row: int) -> None:
        super().__init__(f"table {table!r} has no row {row}")


def double(payload: Payload) -> bytes:
    time.sleep(payload.get("sleep_s", 0))
    return str(2 * payload["n"]).encode()


def double_when_told(payload: Payload) -> bytes:
    """Waits for a file; two minutes end it in a test that went wrong."""
    end = time.monotonic() + 120
    while not Path(payload["marker"]).exists() and time.monotonic() < end:
        time.sleep(0.01)
    return double(payload)


def describe(payload: Payload) -> bytes:
    """The payload as the task sees it, types included."""
    return json.dumps({key: [type(value).__name__, value] for key, value in payload.items()}).encode()


def refuse(payload: Payload) -> bytes:
    if payload["n"] == 2:
        raise AbsentRowError(f"no such row: {payload['n']}. Nothing was applied.")
    if payload["n"] == 3:
        raise SchemaError("column 'a' is missing")
    return b"fine"


def picky(payload: Payload) -> bytes:
    raise PickyError(table="orders", row=payload["n"])


def stumble(payload: Payload) -> bytes:
    return str(1 // payload["n"]).encode()


def forget_bytes(payload: Payload) -> bytes:
    return payload["text"]  # type: ignore[no-any-return]


def die(payload: Payload) -> bytes:
    os._exit(3)


def process(payload: Payload) -> bytes:
    return str(os.getpid()).encode()


def numba_is_loaded(payload: Payload) -> bytes:
    import sys

    return b"yes" if "numba" in sys.modules else b"no"


def first_time(marker: Path) -> bool:
    """Whether nobody has asked for this marker before, in any process."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def note(payload: Payload) -> None:
    """Write down that an attempt was made."""
    with open(payload["attempts"], "a") as file:
        file.write("x")


def stumble_once(payload: Payload) -> bytes:
    if first_time(Path(payload["marker"])):
        raise RuntimeError("not at the first attempt")
    return b"fine"


def stumble_always(payload: Payload) -> bytes:
    note(payload)
    raise RuntimeError("never\nat all")


def damaged_always(payload: Payload) -> bytes:
    note(payload)
    raise DamagedFileError("the file 'é' is cut short.\nRestore it.")


def refuse_always(payload: Payload) -> bytes:
    note(payload)
    raise AbsentRowError("no such row")


@dataclass(frozen=True)
class Unreliable:
    """For `mapInArrow`: passes batches through; the first attempt at some partitions fails or hangs half-way.

    What hangs, goes on hanging until it is killed; five minutes end it in a test that went wrong. The first
    attempts are told by markers in a folder; without one, by Spark.
    """

    folder: str | None
    fails: int
    hangs: int = -1

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        partition = context.partitionId()
        unreliable = partition in (self.fails, self.hangs)
        if self.folder is None:
            first = unreliable and context.attemptNumber() == 0
        else:
            first = unreliable and first_time(Path(self.folder) / f"partition-{partition}")
        for number, batch in enumerate(batches):
            if first and number == 3:
                if partition == self.fails:
                    raise OSError("connection reset")
                time.sleep(300)
            yield batch


def spans(rows: Iterator[pa.RecordBatch], payload: Payload) -> Iterator[bytes]:
    """[first, behind the last] of runs of at most so many rows, by their first column."""
    for batch in rows:
        for low in range(0, batch.num_rows, payload["rows"]):
            ids = batch.column(0).slice(low, payload["rows"]).to_pylist()
            yield json.dumps([ids[0], ids[-1] + 1]).encode()


def refuse_rows(rows: Iterator[pa.RecordBatch], payload: Payload) -> Iterator[bytes]:
    for batch in rows:
        yield str(batch.num_rows // payload["n"]).encode()
        raise AbsentRowError(f"no such row: {payload['n']}. Nothing was applied.")


def label(payload: Payload) -> bytes:
    """What Spark shows of the job that this task belongs to."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    names = ("spark.job.description", "spark.jobGroup.id")
    return json.dumps([context.getLocalProperty(name) for name in names]).encode()


def wait_long(payload: Payload) -> bytes:
    Path(payload["marker"]).touch()
    time.sleep(120)
    return b""


def wait_for_the_end(payload: Payload) -> bytes:
    """Names its process in a file, and waits to be killed."""
    path = Path(payload["marker"])
    path.with_suffix(".part").write_text(str(os.getpid()))
    path.with_suffix(".part").rename(path)
    time.sleep(3600)
    return b""


def to_every_part(payload: Payload) -> Iterator[tuple[int, bytes]]:
    for part in range(payload["parts"]):
        yield part, b"block"


def partition_of_blocks(blocks: Iterator[bytes], payload: Payload) -> bytes:
    """The number of the partition, and how many blocks are there."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return json.dumps([context.partitionId(), len(list(blocks))]).encode()


def by_remainder(payload: Payload) -> Iterator[tuple[int, bytes]]:
    """Numbers, in a block for each remainder."""
    1 // payload["n"]
    for part in range(7):
        numbers = range(payload["start"], payload["start"] + payload["n"])
        yield part, json.dumps([n for n in numbers if n % 7 == part]).encode()


def sum_of_blocks(blocks: Iterator[bytes], payload: Payload) -> bytes:
    if payload.get("absent") == payload["part"]:
        raise AbsentRowError(f"no such part: {payload['part']}")
    return json.dumps([payload["part"], sum(sum(json.loads(block)) for block in blocks)]).encode()
