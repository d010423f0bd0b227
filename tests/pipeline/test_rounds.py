"""Functions side by side: their jobs are one job a round; what is refused or fails reaches whoever asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.core.engine.engine import Engine, echo
from holdfast.core.engine.rounds import side_by_side
from holdfast.errors import UsageError

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


def test_without_spark_they_run_one_after_the_other() -> None:
    engine = Engine(mode="inline")
    order: list[int] = []
    assert side_by_side(engine, [lambda e: order.append(1), lambda e: order.append(2)]) == [None, None]
    assert order == [1, 2]
    engine.close()
