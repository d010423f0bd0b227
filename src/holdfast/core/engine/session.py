"""The Spark session: someone else's if there is one, else one that we start, quietly and fast.

A session that is there already (a notebook's, a cluster's, Spark Connect's) is used as it is: we
change no setting of it and never stop it. Only when there is none do we start one: on the cluster that was
asked for (`use`, HOLDFAST_MASTER, spark-defaults.conf), else in this process. With which Java, `java.py`;
with which settings, `launch.py`; from which archive of classes, `class_archive.py`; in which folders,
`private_folders.py`.

The JVM's standard output and error go to an unlinked file from its birth to its death, so neither
start-up notes, nor a failed task, nor the exit can reach the user's screen. We hand the file to the
JVM when it is launched, rather than point our own descriptor 2 elsewhere for a while as is commonly
done: a progress bar of ours may be painting there while Spark starts.

Nothing here imports pyspark before a session is asked for: work that runs inline never pays for it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

from holdfast.core.engine.class_archive import archive_options
from holdfast.core.engine.cost import available_cores
from holdfast.core.engine.java import find_java
from holdfast.core.engine.kernels import activity
from holdfast.core.engine.launch import (
    defaults,
    end_jvm,
    environment,
    is_local_master,
    launch_variables,
    quoted_tail,
    spark_settings,
    temporary_files_of,
    without_token,
)
from holdfast.core.engine.private_folders import scratch
from holdfast.errors import EngineError, UsageError, listing, shorten

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# The cores of a cluster that does not tell, and the most that work is divided for.
UNKNOWN_CORES, MOST_CORES = 64, 1_000
# Where servers listen if their addresses do not say, and how long they may take to answer.
PORTS, ANSWER_S = {"sc": 15_002, "spark": 7_077}, 10.0


@dataclass
class _OwnSession:
    """What we started, and so must end."""

    spark: SparkSession
    gateway: Any
    pid: int = field(default_factory=os.getpid)


@dataclass(frozen=True)
class Wishes:
    """What a session is to be like that we start: a master, and settings of Spark's."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


_own_session: _OwnSession | None = None
_wishes = Wishes()
_lock = threading.RLock()


def use(
    master: str | None = None, remote: str | None = None, settings: Mapping[str, str] | None = None
) -> None:
    """Say what the next session is to be like; it is started when it is needed first.

    `master` is Spark's own (`spark://host:7077`, `yarn`, `k8s://...`, `local[4]`), `remote` the address of a
    Spark Connect server (`sc://host:15002`). What neither says is read from HOLDFAST_MASTER and from Spark's
    spark-defaults.conf. Raises UsageError for a master where the environment has chosen another one.
    """
    global _wishes
    if master is not None:
        if remote is not None:
            raise UsageError("a master and a Spark Connect server are given. Give one of them.")
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            raise UsageError(
                f"the master {shorten(master)} is given, but spark-submit has started Spark already "
                "(PYSPARK_GATEWAY_PORT). Next step: give the master to spark-submit, before the script."
            )
        if variables := _connect_variables():
            raise UsageError(
                f"the master {shorten(master)} is given, but {listing(variables)} in the environment asks "
                "for Spark Connect. Next step: unset it, or give no master."
            )
    if remote is not None:
        os.environ["SPARK_REMOTE"] = remote
    _wishes = Wishes(master, dict(settings or {}))


def start_session(*, master: str | None = None, app_name: str = "holdfast") -> SparkSession:
    """The session to work with: the active one if there is one, else a new one that is ours.

    `master` and `app_name` matter only for a new one. SPARK_REMOTE, or being launched by
    spark-submit, means that someone else has set up Spark: then we ask for a session and change
    nothing. Otherwise we start one on the master that is given or wished for, else a local one.

    Raises EngineError, with the last lines that Spark or Java printed, if it cannot be started.
    """
    with _lock:
        if _own_session is not None and _own_session.pid == os.getpid() and _is_alive(_own_session.spark):
            return _own_session.spark
        existing = _existing_session()
        if existing is not None:
            return existing
        if is_configured_elsewhere():
            return _join_session(app_name)
        return start_own(master=master or _wished_master(), app_name=app_name)


def is_there() -> bool:
    """Whether `start_session` would find a session, so that none must be started."""
    with _lock:
        if _own_session is not None and _own_session.pid == os.getpid() and _is_alive(_own_session.spark):
            return True
        return is_configured_elsewhere() or _existing_session() is not None


def stop_session() -> None:
    """Stop the session that we started, and its JVM. A session of someone else's is left alone."""
    global _own_session
    with _lock:
        session, _own_session = _own_session, None
        if session is None or session.pid != os.getpid():
            return
        from pyspark import SparkContext

        with contextlib.suppress(Exception):  # the JVM may be gone already
            session.spark.stop()
        end_jvm(session.gateway, wait_s=60)
        if SparkContext._gateway is session.gateway:  # so that the next session launches a JVM of its own
            SparkContext._gateway = None
            SparkContext._jvm = None


def owns(spark: SparkSession) -> bool:
    """Whether the session was started by us, with our settings."""
    return _own_session is not None and _own_session.spark is spark


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which has no sparkContext and no JVM to ask."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run on this machine: a Spark Connect server may be anywhere, whatever its master."""
    return not is_connect(spark) and is_local_master(spark.sparkContext.master)


def expected_cores() -> int:
    """How many tasks will run at once in a session that is not there yet."""
    return UNKNOWN_CORES if expects_cluster() else available_cores()


def expects_cluster() -> bool:
    """Whether a session that is not there yet will be one of a cluster, as far as anybody knows."""
    return is_configured_elsewhere() or not is_local_master(_wished_master())


def _wished_master() -> str | None:
    return _wishes.master or os.environ.get("HOLDFAST_MASTER") or defaults().get("spark.master")


def cluster_cores(spark: SparkSession) -> int:
    """How many tasks a cluster can run at once, as far as its settings tell: executors come and go.

    With dynamic allocation that has no bound, and through Spark Connect, nobody knows; then `UNKNOWN_CORES`
    are assumed, or what is there already if that is more. Never more than `MOST_CORES`.
    """
    cores = _configured_cores(spark)
    if is_connect(spark):
        cores = cores or UNKNOWN_CORES
    else:
        cores = max(UNKNOWN_CORES if cores is None else cores, spark.sparkContext.defaultParallelism)
    return min(cores, MOST_CORES)


@lru_cache(maxsize=4)
def _configured_cores(spark: SparkSession) -> int | None:
    """The cores that the settings of a session tell of, 0 if they do not; None with dynamic allocation that
    has no bound. Asked once: through Spark Connect each setting is a call of the server."""

    def number(key: str) -> int:
        value = spark.conf.get(key, None)
        return int(value) if value is not None and value.isdecimal() else 0

    each = number("spark.executor.cores") or 1
    if str(spark.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        return number("spark.dynamicAllocation.maxExecutors") * each or None
    return max(
        number("spark.default.parallelism"),
        number("spark.executor.instances") * each,
        number("spark.cores.max"),
    )


def is_configured_elsewhere() -> bool:
    """Whether the environment says that Spark is set up already: Spark Connect, or spark-submit."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or bool(_connect_variables())


def _connect_variables() -> list[str]:
    """The variables of the environment by which sessions are of Spark Connect."""
    names = [name for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED") if name in os.environ]
    if os.environ.get("SPARK_API_MODE", "").lower() == "connect":
        names.append("SPARK_API_MODE")
    return names


def _is_alive(spark: SparkSession) -> bool:
    context: Any = spark.sparkContext
    return context._jsc is not None and not bool(context._jsc.sc().isStopped())


def _existing_session() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None or is_configured_elsewhere():
        return active
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        # "Active" is per thread: a session that another thread started is only found this way.
        return SparkSession.builder.getOrCreate()
    return None


def _join_session(app_name: str) -> SparkSession:
    from pyspark.sql import SparkSession

    _check_listening(os.environ.get("SPARK_REMOTE", ""))
    try:
        builder = SparkSession.builder.appName(app_name)
        for key, value in _wishes.settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()
    except Exception as error:
        if "PACKAGE_NOT_INSTALLED" in str(error):
            raise EngineError(
                f"Spark Connect needs more packages here: {first_line(error)}. Install them: pip install "
                "'holdfast[connect]'."
            ) from None
        where = without_token(os.environ.get("SPARK_REMOTE", "the session set up by the environment"))
        raise EngineError(
            f"cannot connect to Spark ({where}): {first_line(error)}. "
            "Is the server running? Unset SPARK_REMOTE to let holdfast start Spark here."
        ) from None


def _check_listening(address: str) -> None:
    """Raise if nobody listens where a Spark Connect server, or a standalone master, should be: Spark itself
    would ask for minutes. A master may have several addresses; one of them will do."""
    servers = re.fullmatch(r"(sc|spark)://([^/;]+).*", address)
    if servers is None:
        return
    failures = []
    for server in servers[2].split(","):
        host, _, port = server.rpartition(":") if re.search(r":\d+$", server) else (server, "", "")
        try:
            place = host.strip("[]"), int(port or PORTS[servers[1]])
            with socket.create_connection(place, timeout=ANSWER_S):
                return
        except OSError as error:
            failures.append(error.strerror or str(error))
    raise EngineError(
        f"cannot connect to Spark ({without_token(address)}): {failures[0]}. Is it running? Without "
        "--master, --remote and their variables (HOLDFAST_MASTER, SPARK_REMOTE) holdfast starts Spark on "
        "this machine."
    )


def start_own(*, master: str | None, app_name: str, options: list[str] | None = None) -> SparkSession:
    """A new session of our own; `options`: of the JVM, in place of those that use the class archive."""
    global _own_session
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    _check_listening(master or "")
    java = find_java()
    if options is None:
        options = archive_options(java)
    conf = SparkConf(loadDefaults=False)
    for key, value in spark_settings(master, app_name, options, _wishes.settings).items():
        conf.set(key, value)
    gateway = None
    with tempfile.TemporaryFile() as printed:
        try:
            variables = launch_variables(java, master, _wishes.settings)
            with environment(variables), temporary_files_of(java_gateway):
                # What `builder.getOrCreate()` does by itself, but for the JVM's two output streams.
                # The lock goes with them: the scratch folder is in use until the JVM has ended, too.
                streams = {"stdout": printed, "stderr": printed, "pass_fds": [scratch().lock]}
                gateway = SparkContext._gateway or java_gateway.launch_gateway(  # type: ignore[no-untyped-call]
                    conf, popen_kwargs=streams
                )
                context = SparkContext(conf=conf, gateway=gateway)
                spark = SparkSession.builder.getOrCreate()
        except BaseException as error:
            if gateway is not None:
                end_jvm(gateway, wait_s=10)
            SparkContext._gateway = None
            SparkContext._jvm = None
            if not isinstance(error, Exception):
                raise
            raise EngineError(
                f"Spark could not be started{'' if master is None else f' on {master}'} with Java "
                f"{java.version} ({java.source}: {java.home}): "
                f"{first_line(error)}." + quoted_tail(_read_back(printed))
            ) from None
    _own_session = _OwnSession(spark, gateway)
    atexit.register(_stop_at_exit)
    activity.watch_workers()
    assert context is spark.sparkContext
    return spark


def _stop_at_exit() -> None:
    """End the JVM and do not wait: it stops its own Spark when its pipe closes.

    A proper `stop()` waits a second for PySpark's accumulator server to look up; every command line
    call would pay it. Unstopped, that server reports the JVM's going as an error: hence the handler.
    """
    session = _own_session
    if session is None or session.pid != os.getpid():
        return
    server = getattr(session.spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    end_jvm(session.gateway, wait_s=0)


def _read_back(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, without a closing full stop.

    >>> first_line(ValueError("no such host.\\n  at java.net"))
    'no such host'
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ")[:300] if lines else type(error).__name__
