"""A standalone Spark cluster on this machine: a master and workers on addresses of their own, loopback only.

    with started(folder, apart=hiding(private)) as cluster:
        done = cluster.run(script, ...)

`apart` is a command that runs another one where files look otherwise: where a folder is empty (`hiding`), or
is mounted by each process for itself (`mounting`); `can_hide` and `can_mount` say whether this machine lets
us. Nothing is left behind: the processes are one group each, logs and scratch files lie in the given folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from holdfast.core.engine.java import find_java
from trust.object_store import listening

WORKERS = ("127.0.0.2", "127.0.0.3")  # two hosts: Spark never tries a straggling task again on the same one
SPARK_HOME = Path(pyspark.__file__).parent
PYTHON_PATH = os.pathsep.join(path for path in sys.path if path)
START_S = 600

# The driver's half: a session on the cluster, with the settings of its caller, as a notebook would make it.
DRIVER = """\
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession

builder = SparkSession.builder
for key, value in json.loads(os.environ["CLUSTER_SETTINGS"]).items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
"""


@dataclass(frozen=True)
class Cluster:
    master: str
    folder: Path
    workers: tuple[int, ...]
    """Process numbers: `/proc/<pid>/root` is what a worker sees."""

    @property
    def settings(self) -> dict[str, str]:
        """Of a driver on this machine."""
        return {
            "spark.master": self.master,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(self.folder / "driver"),
            "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={self.folder}",
            "spark.executor.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Djava.io.tmpdir={self.folder}",
            "spark.executor.memory": "512m",
            "spark.ui.enabled": "false",
        }

    def run(
        self,
        script: str,
        *arguments: str,
        cwd: Path,
        apart: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        **settings: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a driver: a script that finds the session in `spark`, and its arguments in `sys.argv`."""
        conf = {**self.settings, "spark.executorEnv.PYTHONPATH": PYTHON_PATH, **settings}
        variables = {"CLUSTER_SETTINGS": json.dumps(conf), **(variables or {})}
        return run_driver(DRIVER + script, *arguments, cwd=cwd, apart=apart, variables=variables)


def run_driver(
    script: str, *arguments: str, cwd: Path, apart: Sequence[str], variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a script, perhaps where files look otherwise."""
    return subprocess.run(
        [*apart, sys.executable, "-c", script, *arguments],
        cwd=cwd,
        env=_environment("127.0.0.1")
        | {"PYTHONPATH": PYTHON_PATH, "PYSPARK_PYTHON": sys.executable}
        | dict(variables),
        capture_output=True,
        text=True,
        timeout=900,
    )


@contextlib.contextmanager
def started(folder: Path, *, apart: Sequence[str] = (), disk: Path | None = None) -> Iterator[Cluster]:
    """A running cluster of two workers with one core each; its files lie in the folder.

    `disk`: where workers keep temporary files; a place that `apart` makes each worker's own.
    """
    with contextlib.ExitStack() as stack:
        master = ("org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0")
        _, url = _launch(stack, folder, "127.0.0.1", master, r"Starting Spark master at (spark://\S+)", ())
        workers = []
        for host in WORKERS:
            work = ("--host", host, "--cores", "1", "--memory", "1g", "--work-dir", str(folder / host))
            worker = ("org.apache.spark.deploy.worker.Worker", *work, url)
            sign = r"(Successfully registered) with master"
            pid, _ = _launch(stack, folder, host, worker, sign, apart, disk)
            workers.append(pid)
        yield Cluster(url, folder, tuple(workers))


@contextlib.contextmanager
def connect_server(cluster: Cluster, *, apart: Sequence[str] = ()) -> Iterator[str]:
    """A Spark Connect server whose executors are those of the cluster; its address."""
    settings = {
        **cluster.settings,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.port.maxRetries": "0",  # no other port than the one that it is told
        "spark.executorEnv.PYTHONPATH": PYTHON_PATH,
        "spark.pyspark.python": sys.executable,
        "spark.default.parallelism": "2",  # otherwise a client does not know how much runs at once
    }
    command = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    path = cluster.folder / "connect.log"

    @contextlib.contextmanager
    def starting(port: int) -> Iterator[subprocess.Popen[bytes]]:
        told = ["--conf", f"spark.connect.grpc.binding.port={port}", "spark-internal"]
        with open(path, "wb") as log:
            process = subprocess.Popen(
                [*apart, str(SPARK_HOME / "bin" / "spark-submit"), *command, *told],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=_environment("127.0.0.1")
                | {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_MEMORY": "1g"},
                start_new_session=True,
            )
        try:
            yield process
        finally:
            _end(process)

    with contextlib.ExitStack() as stack:
        try:
            port = listening(stack, starting)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{path.read_text(errors='replace')[-4000:]}") from None
        yield f"sc://127.0.0.1:{port}"


def can_hide() -> bool:
    """Whether this process may give its children a file system of their own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


def hiding(folder: Path, size: str = "16m") -> list[str]:
    """Where a folder is empty, and a disk of its own."""
    return ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} none "$0" && exec "$@"', str(folder)]


def can_mount() -> bool:
    tools = all(map(shutil.which, ("bindfs", "unshare")))
    return tools and os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


def mounting(store: Path, folder: Path) -> list[str]:
    """Where `folder` is a mount of `store` that no other process has: with a page cache of its own.

    When `unshare` is killed, so is all that it has started, the mount's own process included.
    """
    script = 'bindfs "$0" "$1" && shift && exec "$@"'
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return [*apart, "sh", "-c", script, str(store), str(folder)]


def _launch(
    stack: contextlib.ExitStack,
    folder: Path,
    host: str,
    command: Sequence[str],
    sign: str,
    apart: Sequence[str],
    disk: Path | None = None,
) -> tuple[int, str]:
    """Start a process of Spark's; answers when its log shows the sign. It ends with the stack."""
    full = [*apart, str(SPARK_HOME / "bin" / "spark-class"), *command, "--webui-port", "0"]
    path = folder / f"{host}.log"
    environment = _environment(host) | {"SPARK_LOCAL_DIRS": str(disk or folder / f"local-{host}")}
    with open(path, "wb") as log:
        process = subprocess.Popen(
            full, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
        )
    stack.callback(_end, process)
    deadline = time.monotonic() + START_S
    while True:
        seen = re.search(sign, path.read_text(errors="replace"))
        if seen is not None:
            return process.pid, seen[1]
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(
                f"{' '.join(full)} did not start:\n{path.read_text(errors='replace')[-4000:]}"
            )
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its executors; their Python workers end when they see no executor any more."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _environment(host: str) -> dict[str, str]:
    spark = ("SPARK_HOME", "SPARK_CONF_DIR", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS")
    return {name: value for name, value in os.environ.items() if name not in spark} | {
        "SPARK_HOME": str(SPARK_HOME),
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": host,  # the web page of a master or worker is bound to it as well
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
