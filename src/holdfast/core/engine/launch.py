"""What a JVM of ours is launched with, and how it ends.

- **Silence.** Spark logs errors only, to where they are shown if the start fails (`quoted_tail`).
- **Speed.** Compiling with C1 only, the serial collector: the figures are in docs/decisions.
- **Strangers.** All ports are on the loopback address, and other users of this machine reach that, too.
  Spark's own ports demand a secret that Spark makes up in the JVM's memory (`spark.authenticate`), py4j's
  a token from a private file; Python's workers are reached by sockets in a private folder, or where its
  path is too long for that, by ports with a secret of their own.
- **Leftovers.** All temporary files lie in our scratch folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from holdfast.core.engine.cost import available_cores
from holdfast.core.engine.java import JavaHome
from holdfast.core.engine.private_folders import scratch_folder

COLLECTOR = ("-XX:+UseSerialGC",)
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", *COLLECTOR)
# 10,000 by default: then every batch costs more in bookkeeping than in copying.
MAX_RECORDS = "65536"

# Errors only, to a stream that nobody sees unless the start fails: then its tail explains why.
LOG4J = """\
status = off
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex{short}
"""


def spark_settings(
    master: str | None, app_name: str, archive_options: list[str], wished: Mapping[str, str]
) -> dict[str, str]:
    """The settings of a session that we start; of one in this process also what keeps strangers out.

    What the user wishes counts most. On a cluster, what its spark-defaults.conf says counts more than ours.
    """
    if not is_local_master(master):
        ours = _cluster_settings(app_name, archive_options)
        return {**ours, **defaults(), "spark.master": str(master), **wished}
    return {**_local_settings(master, app_name, archive_options), **wished}


def _cluster_settings(app_name: str, archive_options: list[str]) -> dict[str, str]:
    """What we need of a session on a cluster. The driver is quiet; its memory and network are Spark's."""
    return {
        "spark.app.name": app_name,
        "spark.driver.extraJavaOptions": " ".join(_quote(option) for option in _quiet(archive_options)),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": MAX_RECORDS,
        "spark.executorEnv.PYTHONPATH": python_path(),
    }


def _quiet(archive_options: list[str]) -> list[str]:
    """Options of a driver's JVM that says nothing, and leaves nothing behind."""
    scratch = scratch_folder()
    log4j = scratch / "log4j2.properties"
    log4j.write_text(LOG4J, encoding="utf-8")
    return [
        *archive_options,
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        f"-Djava.io.tmpdir={scratch}",
    ]


def defaults() -> dict[str, str]:
    """What Spark's spark-defaults.conf says, in SPARK_CONF_DIR or below SPARK_HOME; nothing if there is none.

    A line is a key and a value with blanks, '=' or ':' between them, as in Java's properties.
    """
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder is None and "SPARK_HOME" in os.environ:
        folder = os.path.join(os.environ["SPARK_HOME"], "conf")
    if folder is None:
        return {}
    try:
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8")
    except OSError:
        return {}
    lines = (re.fullmatch(r"\s*([^\s=:#!][^\s=:]*)\s*[\s=:]\s*(.*?)\s*", line) for line in text.splitlines())
    return {line[1]: line[2] for line in lines if line is not None}


def _local_settings(master: str | None, app_name: str, archive_options: list[str]) -> dict[str, str]:
    cores = available_cores()
    scratch = scratch_folder()
    java_options = _quiet([*JVM_OPTIONS, *archive_options])
    settings = {
        "spark.app.name": app_name,
        "spark.master": master or f"local[{cores}]",
        "spark.driver.memory": os.environ.get("HOLDFAST_DRIVER_MEMORY", "1g"),
        "spark.driver.extraJavaOptions": " ".join(_quote(option) for option in java_options),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": MAX_RECORDS,
        "spark.python.worker.reuse": "true",
        "spark.executorEnv.PYTHONPATH": python_path(),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Spark makes up the secret itself, in the JVM's memory: no command line, file or variable has it.
        "spark.authenticate": "true",
        "spark.local.dir": str(scratch),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.python.daemon.module": "holdfast.core.engine.daemon",
    }
    if len(str(scratch)) + len("/.") + 36 + len(".sock") < 104:  # the longest that macOS binds
        settings |= {
            "spark.python.unix.domain.socket.enabled": "true",
            "spark.python.unix.domain.socket.dir": str(scratch),
        }
    return settings


def is_local_master(master: str | None) -> bool:
    """Whether the executors run inside the driver's JVM."""
    return master is None or master == "local" or master.startswith("local[")


def without_token(address: str) -> str:
    """The address of a Spark Connect server as messages may tell it.

    >>> without_token("sc://host:15002/;token=secret;use_ssl=true")
    'sc://host:15002/;token=...;use_ssl=true'
    """
    return re.sub(r"(;token=)[^;]*", r"\1...", address)


def launch_variables(java: JavaHome, master: str | None, wished: Mapping[str, str]) -> dict[str, str | None]:
    """The environment variables of the launch; None removes one.

    On a cluster, workers run the interpreter that Spark was told of, else one of this one's path. PySpark
    looks at the variable only; the setting is spark-submit's, which does not start us.
    """
    variables: dict[str, str | None] = {"JAVA_HOME": str(java.home)}
    if not is_local_master(master):
        setting = {**defaults(), **wished}.get("spark.pyspark.python")
        variables["PYSPARK_PYTHON"] = setting or os.environ.get("PYSPARK_PYTHON", sys.executable)
    if is_local_master(master):
        import pyspark

        variables["PYSPARK_PYTHON"] = sys.executable
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
        # The launcher is a JVM of its own that only prints a command line.
        variables["SPARK_LAUNCHER_OPTS"] = " ".join((*JVM_OPTIONS, "-Xshare:auto"))
        if (Path(pyspark.__file__).parent / "jars").is_dir():
            variables["SPARK_HOME"] = None  # another Spark's jars would not fit this PySpark
    return variables


def python_path() -> str:
    """What workers must have on their path: this holdfast, wherever it was imported from."""
    root = str(Path(__file__).resolve().parents[3])
    rest = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return os.pathsep.join([root, *(entry for entry in rest if entry != root)])


@contextlib.contextmanager
def environment(variables: dict[str, str | None]) -> Iterator[None]:
    """Set variables for the launch only: the user's own subprocesses must not inherit them."""
    before = {name: os.environ.get(name) for name in variables}

    def assign(values: dict[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    assign(variables)
    try:
        yield
    finally:
        assign(before)


@contextlib.contextmanager
def temporary_files_of(module: Any) -> Iterator[None]:
    """Let a module of PySpark make its temporary folders in ours: there they go, even if we are killed."""
    usual = module.tempfile
    module.tempfile = SimpleNamespace(
        mkdtemp=partial(tempfile.mkdtemp, dir=scratch_folder()), mkstemp=tempfile.mkstemp
    )
    try:
        yield
    finally:
        module.tempfile = usual


def end_jvm(gateway: Any, wait_s: float) -> None:
    """Close the pipe that the JVM watches: at its end it exits by itself, running its own clean-up."""
    process = getattr(gateway, "proc", None)
    with contextlib.suppress(Exception):
        gateway.shutdown()
    if process is None:
        return
    with contextlib.suppress(OSError):
        process.stdin.close()
    if wait_s:
        try:
            process.wait(timeout=wait_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _quote(option: str) -> str:
    return f'"{option}"' if " " in option else option


def quoted_tail(text: str, n_lines: int = 8) -> str:
    """The last lines of what a process printed, for the end of an error's message."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "".join(f"\n    {line[:300]}" for line in lines[-n_lines:])
