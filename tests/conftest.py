"""Fixtures that all tests share: one Spark session per run, started by the first test that asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from holdfast.pipeline.engine import Engine
from holdfast.pipeline.session import start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = str(Path(__file__).resolve().parent)

# Spark's workers import task functions of the tests by name (`pipeline.task_functions`).
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH", "")]))
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)

# What standard error holds must not depend on how fast the machine is.
os.environ["HOLDFAST_PROGRESS"] = "0"

# No deadline: the first example of a kernel may compile it.
settings.register_profile("default", max_examples=50, deadline=None)
settings.register_profile(
    "slow", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HOLDFAST_HYPOTHESIS", "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that need Spark go to one process, so that a run starts it once however many processes it has."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    yield start_session(app_name="holdfast-tests")
    stop_session()


@pytest.fixture
def engine_inline() -> Iterator[Engine]:
    engine = Engine(mode="inline")
    yield engine
    engine.close()


@pytest.fixture
def engine_spark(spark: SparkSession) -> Iterator[Engine]:
    engine = Engine(spark, mode="spark")
    yield engine
    engine.close()
