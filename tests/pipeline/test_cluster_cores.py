"""How many tasks a cluster is taken to run at once while executors come and go, and how jobs are divided."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.core.engine.engine import MOST_PARTITIONS, PARTITIONS_PER_CORE, Engine, echo
from holdfast.core.engine.session import MOST_CORES, UNKNOWN_CORES

DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}
ENDLESS = str((1 << 31) - 1)  # what Spark takes for no bound


class Divided(Exception):
    """Raised with the number of partitions of a job, in place of running it."""


class Session:
    """A session by its settings, of which so many cores are there now."""

    def __init__(self, settings: Mapping[str, str], now: int, master: str = "yarn") -> None:
        self.sparkContext = SimpleNamespace(master=master, defaultParallelism=now)
        self.conf = settings

    def range(self, start: int, end: int, step: int, n_partitions: int) -> Any:
        raise Divided(n_partitions)


class RemoteSession:
    """The same through Spark Connect, which tells no more than settings."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.conf = settings


def cores(spark: Any) -> int:
    return Engine(spark).cores


@pytest.mark.parametrize(
    ("settings", "now", "expected"),
    [
        ({}, 6, 6),
        ({"spark.executor.instances": "3", "spark.executor.cores": "4"}, 2, 12),
        ({"spark.cores.max": "10"}, 2, 10),
        ({"spark.cores.max": "10"}, 16, 16),
        (DYNAMIC, 2, UNKNOWN_CORES),
        (DYNAMIC, UNKNOWN_CORES + 9, UNKNOWN_CORES + 9),
        (DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "infinity"}, 2, UNKNOWN_CORES),
        (DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "5"}, 2, 5),
        (DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "5", "spark.executor.cores": "4"}, 2, 20),
        (DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "5", "spark.executor.instances": "3"}, 2, 5),
        (
            DYNAMIC | {"spark.dynamicAllocation.maxExecutors": ENDLESS, "spark.executor.cores": "4"},
            2,
            MOST_CORES,
        ),
        ({"spark.dynamicAllocation.enabled": "FALSE", "spark.dynamicAllocation.maxExecutors": "9"}, 2, 2),
    ],
)
def test_a_cluster_counts_as_what_it_can_grow_to(settings: dict[str, str], now: int, expected: int) -> None:
    assert cores(Session(settings, now)) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, UNKNOWN_CORES),
        ({"spark.default.parallelism": "6"}, 6),
        (DYNAMIC, UNKNOWN_CORES),
        (DYNAMIC | {"spark.dynamicAllocation.maxExecutors": "5", "spark.executor.cores": "4"}, 20),
        ({"spark.executor.instances": "800", "spark.executor.cores": "4"}, MOST_CORES),
    ],
)
def test_through_connect_settings_tell_or_nobody(settings: dict[str, str], expected: int) -> None:
    assert cores(RemoteSession(settings)) == expected


@pytest.mark.parametrize(
    ("master", "n_tasks", "n_partitions"),
    [
        ("yarn", 3, 3),
        ("yarn", 1_000, 1_000),  # a cluster grows with the tasks that wait
        ("spark://host:7077", MOST_PARTITIONS + 5, MOST_PARTITIONS),
        ("local[2]", 3, 3),
        ("local[2]", 1_000, 2 * PARTITIONS_PER_CORE),
    ],
)
def test_a_job_asks_for_as_many_partitions_as_it_has_tasks(
    master: str, n_tasks: int, n_partitions: int
) -> None:
    engine: Any = Engine(Session(DYNAMIC, 2, master))  # type: ignore[arg-type]
    with pytest.raises(Divided) as caught:
        engine.run(echo, [{}] * n_tasks, where="spark")
    assert caught.value.args == (n_partitions,)
