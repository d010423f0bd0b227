"""Fixtures that all tests share: one Spark session per run, started by the first test that asks for it; and
how a test becomes an ordinary user where root runs it."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from holdfast.core.engine.engine import Engine
from holdfast.core.engine.session import start_session, stop_session
from holdfast.core.store import format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from trust.object_store import Store

TESTS = str(Path(__file__).resolve().parent)

# Spark's workers import task functions of the tests by name (`pipeline.task_functions`).
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH", "")]))
if TESTS not in sys.path:
    sys.path.insert(0, TESTS)

# Workspaces of tests go to memory where there is room: a commit waits for the disk, and tests make thousands.
# Processes of tests inherit it; set TMPDIR to look at what a test left behind.
MEMORY, ROOM = Path("/dev/shm"), 6 << 30
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    _folder = tempfile.mkdtemp(prefix="holdfast-tests-", dir=MEMORY)
    os.environ["TMPDIR"] = tempfile.tempdir = _folder
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)

# What standard error holds must not depend on how fast the machine is.
os.environ["HOLDFAST_PROGRESS"] = "0"

# A shell starts what it puts into the background with Ctrl-C ignored, and processes of tests inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first example of a kernel may compile it. CI judges a commit, so there the examples are a
# function of the tests; everywhere else, and in the slow tests, every run looks at new ones.
settings.register_profile("default", max_examples=50, deadline=None, derandomize="CI" in os.environ)
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
def store_of_s3() -> Iterator[Store]:
    """An object store with a bucket `box`, for all tests of a process."""
    from trust.object_store import served

    with served() as store:
        store.new_bucket("box")
        yield store


@pytest.fixture(scope="session")
def store(store_of_s3: Store) -> Store:
    """The same, where one kind of store will do."""
    return store_of_s3


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the slow tests did, all together: they say it by `record_property`."""
    done: Counter[str] = Counter()
    for report in terminalreporter.getreports("passed"):
        done.update({name: n for name, n in report.user_properties if isinstance(n, int)})
    if done:
        terminalreporter.write_line(", ".join(f"{n:,} {name}" for name, n in sorted(done.items())))


# --- Tests of what an ordinary user may not do --------------------------------------------------------------

# Root without CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: bound by the rights of files, as everybody is.
AS_ORDINARY_USER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for capability in (1, 2):
    if libc.prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP: it is gone with the next program
        raise OSError(ctypes.get_errno(), "root cannot give up its rights here")
os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
"""


def overrides_rights() -> bool:
    """Whether this process may read and write whatever the rights of a file say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return os.geteuid() == 0
    return any(int(line.split()[1], 16) & 0b10 for line in lines if line.startswith("CapEff:"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is marked `ordinary_user` runs in a process of its own, where root runs it."""
    if pyfuncitem.get_closest_marker("ordinary_user") is None or not overrides_rights():
        return None
    temporary = pyfuncitem.funcargs["tmp_path"] / "ordinary"
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={temporary}", pyfuncitem.nodeid]
    done = subprocess.run(
        [sys.executable, "-c", AS_ORDINARY_USER, *options],
        cwd=pyfuncitem.config.rootpath,
        env={name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode or "1 passed" not in done.stdout:
        pytest.fail(f"as an ordinary user:\n{done.stdout}{done.stderr}", pytrace=False)
    return True


@pytest.fixture(scope="session", autouse=True)
def one_key() -> Iterator[None]:
    """All workspaces of a process have one key: what fails once fails again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(format, "new_key", lambda: "0123456789abcdef" * 2)
        yield


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
