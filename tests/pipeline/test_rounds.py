"""Functions side by side: their jobs are one job a round; what is refused or fails reaches whoever asked."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.core.engine.engine import Engine, echo
from holdfast.core.engine.rounds import side_by_side
from holdfast.errors import UsageError
from pipeline import task_functions as tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refuse(payload: dict[str, Any]) -> bytes:
    raise UsageError(f"no {payload['n']}")


def asking(*rounds: int) -> Any:
    """A function that asks in some rounds, so many tasks in each, and tells all it got."""

    def function(engine: Engine) -> list[int]:
        seen = []
        for n in rounds:
            results = engine.run(echo, [{"n": i} for i in range(n)], where="spark")
            seen += [json.loads(r)["n"] for r in results]
        return seen

    return function


def test_jobs_are_those_of_the_function_with_the_most_rounds(spark: SparkSession) -> None:
    engine = Engine(spark, mode="spark")
    results = side_by_side(engine, [asking(2), asking(), asking(1, 3, 2), asking(2, 1)])
    assert results == [[0, 1], [], [0, 0, 1, 2, 0, 1], [0, 1, 0]]
    assert engine.jobs == 3


def test_a_refusal_is_that_of_whoever_asked(spark: SparkSession) -> None:
    engine = Engine(spark, mode="spark")
    seen: list[list[int]] = []

    def refused(engine: Engine) -> None:
        engine.run(refuse, [{"n": 7}], where="spark")

    with pytest.raises(UsageError, match="no 7"):
        side_by_side(engine, [refused, lambda e: seen.append(asking(1, 2)(e))])
    assert seen == [[0, 0, 1]]
    assert engine.jobs == 2


def test_an_exception_of_a_function_does_not_keep_others_waiting(spark: SparkSession) -> None:
    def failing(engine: Engine) -> None:
        raise ZeroDivisionError

    engine = Engine(spark, mode="spark")
    seen: list[list[int]] = []
    with pytest.raises(ZeroDivisionError):
        side_by_side(engine, [failing, lambda e: seen.append(asking(1)(e))])
    assert seen == [[0]]


def test_an_interrupt_cancels_their_jobs(spark: SparkSession, tmp_path: Path) -> None:
    """Whose threads do not see it. No other job begins."""
    engine = Engine(spark, mode="spark")
    ended: list[Any] = []

    def waiting(name: str) -> Any:
        payload = {"marker": str(tmp_path / name)}

        def function(engine: Engine) -> None:
            ended.append(engine.run(tasks.wait_long, [payload], where="spark"))

        return function

    def interrupt() -> None:
        while not (tmp_path / "a").exists():
            time.sleep(0.02)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    # PySpark's own handler would cancel all jobs; through Spark Connect there is none.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            side_by_side(engine, [waiting("a"), waiting("b")])
    finally:
        signal.signal(signal.SIGINT, handler)
        thread.join()
    assert ended == []
    assert (engine.jobs, engine.groups) == (1, set())


def test_without_spark_they_run_one_after_the_other() -> None:
    engine = Engine(mode="inline")
    order: list[int] = []
    assert side_by_side(engine, [lambda e: order.append(1), lambda e: order.append(2)]) == [None, None]
    assert order == [1, 2]
    engine.close()
