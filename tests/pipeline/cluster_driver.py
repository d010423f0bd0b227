"""Links a lake on a given cluster, in a process of its own: `cluster_driver.py MASTER WORKSPACE SOURCE MODE`.

MODE "flaky": a worker dies in every job but the graph's when its task has written all; Spark tries it again.
Prints one line of JSON: inclusions, how many components, how many files were verified.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import holdfast
from holdfast.discovery import lake as discovery
from holdfast.pipeline import lake_index
from holdfast.pipeline.engine import Engine
from pipeline import task_attempts


def main(master: str, workspace: str, source: str, mode: str) -> None:
    # So small that tasks of one array are many, and share pages of it if they share a file.
    discovery.UNIT_BYTES, discovery.ENTRIES_PER_TASK, lake_index.ENTRIES_PER_TASK = 300, 120, 25
    if mode == "flaky":
        run = Engine.run

        def losing(engine: Engine, function: Any, payloads: Any, **how: Any) -> list[bytes]:
            if function.__module__ == "holdfast.pipeline.lake_graph":
                return run(engine, function, payloads, **how)
            return run(engine, task_attempts.answer_lost, task_attempts.wrapped(function, payloads), **how)

        Engine.run = losing  # type: ignore[method-assign]
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.task.maxFailures": "4",
        # No job before both executors are there, or one of them would write all.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
    }
    builder = SparkSession.builder.master(master).appName("holdfast-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    hosts = spark.range(0, 8, 1, 8).mapInArrow(task_attempts.executors, "executor string").toArrow()
    with holdfast.open(workspace, engine="spark", spark=spark) as ws:
        ws.link(source, json_name="name")
        reader = ws.lake()
        assert reader is not None
        inds = sorted((i.dependent.id, i.referenced.id, i.shared) for i in reader.each_ind())
        found = {
            "inds": inds,
            "n_components": reader.summary().n_components,
            "n_verified": ws.verify(),
            "n_executors": len(set(hosts["executor"].to_pylist())),
        }
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
