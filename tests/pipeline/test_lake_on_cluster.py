"""A lake on a cluster whose machines share storage, but no page cache.

Every worker and the driver have a mount of their own of one folder, at one path (bindfs). What one of them
has mapped or cached another does not see, as on network storage. When tasks wrote regions of one file through
shared maps, 2 of 3 links such as these were wrong.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import holdfast
from lake_tables import write_json_lines
from pipeline.test_lake_on_spark import some_tables
from trust import cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not cluster.can_mount(), reason="needs root, /dev/fuse, bindfs and unshare"),
    pytest.mark.xdist_group("cluster"),
]

# Links a lake, "flaky" with workers that die in every job but the graph's when their task has written all:
# Spark tries it again. Prints one line of JSON.
LINK = """
import holdfast
from holdfast.lakes import index as lake_index, intake, linker
from holdfast.core.engine.engine import Engine
from pipeline import task_attempts

workspace, source, mode = sys.argv[1:]
# So small that tasks of one array are many, and would share pages of it if they shared a file.
intake.UNIT_BYTES, linker.ENTRIES_PER_TASK, lake_index.ENTRIES_PER_TASK = 300, 120, 25
if mode == "flaky":
    run = Engine.run

    def losing(engine, function, payloads, **how):
        if function.__module__ == "holdfast.lakes.graph.components":
            return run(engine, function, payloads, **how)
        return run(engine, task_attempts.answer_lost, task_attempts.wrapped(function, payloads), **how)

    Engine.run = losing
hosts = spark.range(0, 8, 1, 8).mapInArrow(task_attempts.executors, "executor string").toArrow()
with holdfast.open(workspace, engine="spark", spark=spark) as ws:
    ws.link(source, json_name="name")
    reader = ws.lake()
    answer = {
        "inds": sorted((i.dependent.id, i.referenced.id, i.shared) for i in reader.each_ind()),
        "n_components": reader.summary().n_components,
        "n_verified": ws.verify(),
        "n_executors": len(set(hosts["executor"].to_pylist())),
    }
print(json.dumps(answer), flush=True)
spark.stop()
"""


def test_machines_without_a_common_page_cache(tmp_path: Path) -> None:
    source = write_json_lines(some_tables(400), tmp_path / "tables.jsonl")
    with holdfast.open(tmp_path / "plain", engine="inline") as ws:
        ws.link(source, json_name="name")
        reader = ws.lake()
        assert reader is not None
        inds = sorted([i.dependent.id, i.referenced.id, i.shared] for i in reader.each_ind())
        n_components = reader.summary().n_components
    assert len(inds) > 1_000
    store, mount, files = (tmp_path / name for name in ("store", "shared", "spark"))
    for folder in (store, mount, files):
        folder.mkdir()
    shutil.copy(source, store / "tables.jsonl")
    apart = cluster.mounting(store, mount)
    with cluster.started(files, apart=apart) as machines:
        for mode in ("calm", "flaky"):
            arguments = (str(mount / mode), str(mount / "tables.jsonl"), mode)
            # No job before both executors are there, or one of them would write all.
            both = {
                "spark.scheduler.minRegisteredResourcesRatio": "1.0",
                "spark.scheduler.maxRegisteredResourcesWaitingTime": "300s",
            }
            done = machines.run(LINK, *arguments, cwd=tmp_path, apart=apart, **both)
            assert done.returncode == 0, done.stderr
            answer = json.loads(done.stdout.splitlines()[-1])
            assert answer["n_executors"] == 2
            assert answer["inds"] == inds
            assert answer["n_components"] == n_components
            assert answer["n_verified"] > 20
            assert ("Lost task" in done.stderr) == (mode == "flaky")
    # What was written is what everyone sees: the same lake, from below the mounts.
    with holdfast.open(store / "flaky", engine="inline", create=False) as ws:
        reader = ws.lake()
        assert reader is not None
        assert sorted([i.dependent.id, i.referenced.id, i.shared] for i in reader.each_ind()) == inds
