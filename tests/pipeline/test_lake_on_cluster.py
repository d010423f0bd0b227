"""A lake on a cluster whose machines share storage, but no page cache.

Every worker and the driver have a mount of their own of one folder, at one path (bindfs, in a namespace of
mounts and processes). What one of them has mapped or cached another does not see, as on network storage. When
tasks wrote regions of one file through shared maps, 2 of 3 links such as these were wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pyspark
import pytest

import holdfast
from lake_tables import write_json_lines
from pipeline import cluster_driver
from pipeline.test_lake_on_spark import some_tables

TESTS = Path(__file__).resolve().parent.parent
SPARK = Path(pyspark.__file__).parent


def can_mount() -> bool:
    tools = all(map(shutil.which, ("bindfs", "unshare", "java")))
    return tools and os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not can_mount(), reason="needs root, /dev/fuse, bindfs, unshare and Java"),
]


class Machines:
    """Processes, each with a mount of its own; none outlives the test."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.store, self.mount, self.logs = folder / "store", folder / "shared", folder / "logs"
        for path in (self.store, self.mount, self.logs):
            path.mkdir()
        self._stack = stack
        paths = (Path(holdfast.__file__).parent.parent, TESTS)
        self.env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "work"),
        }

    def start(self, name: str, *command: str, output: int | IO[str] | None = None) -> subprocess.Popen[str]:
        """A process with its mount. When `unshare` is killed, so is all that it has started."""
        mounted = 'bindfs "$0" "$1" && shift && exec "$@"'
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        log = self._stack.enter_context((self.logs / name).open("w"))
        process = subprocess.Popen(
            [*apart, "sh", "-c", mounted, str(self.store), str(self.mount), *command],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=log if output is None else output,
            stderr=log,
            text=True,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def daemon(self, name: str, says: str, *arguments: str) -> str:
        """Start a daemon of Spark; the rest of the first line of its log that has `says`."""
        log = self._stack.enter_context((self.logs / f"{name}-log").open("w"))
        command = ("sh", "-c", 'exec "$0" "$@" 2>&1', *arguments)
        process = self.start(name, *command, output=subprocess.PIPE)
        assert process.stdout is not None
        lines = self._stack.enter_context(process.stdout)
        for line in lines:
            log.write(line)
            if says in line:
                break
        else:
            raise AssertionError(f"{name} ended before it said {says!r}")
        # Nobody reads on, so a thread must, or the daemon could not; it ends with the daemon.
        rest = threading.Thread(target=shutil.copyfileobj, args=(lines, log))
        rest.start()
        self._stack.callback(rest.join)
        self._stack.callback(process.kill)
        return line.split(says)[1].strip()


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[Machines, str]]:
    run = str(SPARK / "bin" / "spark-class")
    deploy = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    with ExitStack() as stack:
        machines = Machines(folder, stack)
        master = machines.daemon("master", "Starting Spark master at ", run, f"{deploy}.master.Master", *here)
        for name in ("one", "two"):
            arguments = (run, f"{deploy}.worker.Worker", *here, "--cores", "1", "--memory", "1g", master)
            machines.daemon(name, "Successfully registered with master", *arguments)
        yield machines, master


def test_machines_without_a_common_page_cache(tmp_path: Path) -> None:
    source = write_json_lines(some_tables(400), tmp_path / "tables.jsonl")
    with holdfast.open(tmp_path / "plain", engine="inline") as ws:
        ws.link(source, json_name="name")
        reader = ws.lake()
        assert reader is not None
        inds = sorted([i.dependent.id, i.referenced.id, i.shared] for i in reader.each_ind())
        n_components = reader.summary().n_components
    assert len(inds) > 1_000
    with cluster(tmp_path) as (machines, master):
        shutil.copy(source, machines.store / "tables.jsonl")
        script, source = str(cluster_driver.__file__), machines.mount / "tables.jsonl"
        for mode in ("calm", "flaky"):
            workspace = str(machines.mount / mode)
            command = (sys.executable, script, master, workspace, str(source), mode)
            driver = machines.start(f"driver-{mode}", *command, output=subprocess.PIPE)
            answer, _ = driver.communicate(timeout=900)
            log = (machines.logs / f"driver-{mode}").read_text()
            assert driver.returncode == 0, log
            found = json.loads(answer.splitlines()[-1])
            assert found["n_executors"] == 2
            assert found["inds"] == inds
            assert found["n_components"] == n_components
            assert found["n_verified"] > 20
            assert ("Lost task" in log) == (mode == "flaky")
        # What was written is what everyone sees: the same lake, from below the mounts.
        with holdfast.open(machines.store / "flaky", engine="inline", create=False) as ws:
            reader = ws.lake()
            assert reader is not None
            assert sorted([i.dependent.id, i.referenced.id, i.shared] for i in reader.each_ind()) == inds
