"""Workers that die: of each kind of job, the first task to end takes its worker with it.

    lose_workers("s3://box/marks", options, each="function")        # in a driver, for good
    lost_kinds("s3://box/marks", options)

What a task has written is published by then and its answer is lost, so Spark tries it again. Who dies is
decided by an object store, which all processes see: whoever puts the mark of a kind first. Importable by
Spark's workers, where the tasks run that wrap others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from holdfast.core.engine.engine import Engine
from holdfast.core.engine.worker import import_task, task_name
from holdfast.core.store.bucket import Bucket, publish_all

Payload = dict[str, Any]
Each = Literal["method", "function"]


def lose_workers(marks: str, options: Mapping[str, str], each: Each) -> None:
    """Let this process's engines lose a worker for `each` way of running tasks, or function that is run."""
    run_job, exchange, run_over = Engine.run_job, Engine.exchange, Engine.run_over

    def wrapped(way: str, function: str, payload: Payload) -> Payload:
        mark = way if each == "method" else f"{way} {function.rpartition('.')[2]}"
        where = {"marks": marks, "options": dict(options), "mark": mark.replace(":", " ")}
        return {**where, "task": function, "payload": payload}

    def all_wrapped(way: str, function: Callable[..., Any], payloads: list[Payload]) -> list[Payload]:
        return [wrapped(way, task_name(function), payload) for payload in payloads]

    def losing_job(engine: Engine, calls: Any, progress: Any) -> Any:
        losing = [(task_name(run), wrapped("run", *call)) for call in calls]
        return run_job(engine, losing, progress)

    def losing_exchange(
        engine: Engine,
        produce: Any,
        payloads: Any,
        consume: Any,
        consumers: Any,
        progress: Any = None,
        **how: Any,
    ) -> Any:
        making = all_wrapped("produce", produce, payloads)
        meeting = all_wrapped("consume", consume, consumers)
        relays = [(relay, all_wrapped("relay", f, some)) for f, some in how.get("relays", ())]
        return exchange(engine, make, making, meet, meeting, progress, relays=relays)

    def losing_over(engine: Engine, df: Any, function: Any, payload: Payload) -> Any:
        return run_over(engine, df, over, wrapped("over", task_name(function), payload))

    Engine.run_job = losing_job  # type: ignore[method-assign]
    Engine.exchange = losing_exchange  # type: ignore[method-assign, assignment]
    Engine.run_over = losing_over  # type: ignore[method-assign]


def lost_kinds(marks: str, options: Mapping[str, str]) -> set[str]:
    return {entry.name for entry in Bucket(marks, options).entries("")}


def run(payload: Payload) -> bytes:
    answer: bytes = import_task(payload["task"])(payload["payload"])
    _die(payload)
    return answer


def make(payload: Payload) -> Iterator[tuple[int, bytes]]:
    yield from import_task(payload["task"])(payload["payload"])
    _die(payload)


def relay(blocks: Iterator[bytes], payload: Payload) -> Iterator[tuple[int, bytes]]:
    yield from import_task(payload["task"])(blocks, payload["payload"])
    _die(payload)


def meet(blocks: Iterator[bytes], payload: Payload) -> bytes:
    answer: bytes = import_task(payload["task"])(blocks, payload["payload"])
    _die(payload)
    return answer


def over(rows: Iterator[Any], payload: Payload) -> Iterator[bytes]:
    yield from import_task(payload["task"])(rows, payload["payload"])
    _die(payload)


def _die(payload: Payload) -> None:
    """End this process if it is a worker, and the first of its kind to come here."""
    from pyspark import TaskContext

    if TaskContext.get() is None:  # the driver, with a part that has no blocks
        return
    publish_all()
    if _marks(payload["marks"], *sorted(payload["options"].items())).put_new(payload["mark"], b"x"):
        os._exit(1)


@lru_cache(maxsize=2)
def _marks(url: str, *options: tuple[str, str]) -> Bucket:
    return Bucket(url, dict(options))
