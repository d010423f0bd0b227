"""A cluster that shares nothing but an object store: all classes, all operations, as on one machine.

Two workers and the driver run where the folder of their temporary files is a disk of their own: none sees
what another has written. The workspace and the sources are on S3; what reaches it is told to the driver only.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.engine.packing import FOLDER, pack, settings_for
from holdfast.core.store.bucket import Bucket
from trust import cluster, story
from trust.cluster import Cluster
from trust.object_store import Store, environment_for

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs the addresses 127.0.0.2 and 127.0.0.3"),
    pytest.mark.skipif(not cluster.can_hide(), reason="needs the right to make mount namespaces (root)"),
    pytest.mark.xdist_group("cluster"),
]

STORY = """
import json, sys
from holdfast.core.evidence import shuffled
from holdfast.core.rows import relation
from holdfast.inclusions import values
from trust import story

# As of a table of some size: values meet by Spark's shuffle, and rows that validate candidates; and the
# driver lets tasks fetch rows.
values.FEW_CELLS = shuffled.SHUFFLED_ROWS = relation.FAR_BYTES = 0
url, options = sys.argv[1], json.loads(sys.argv[2])
how = {"engine": "spark", "spark": spark, "storage_options": options, "short": sys.argv[3] == "short"}
print(json.dumps(story.tell(f"{url}/ws", f"{url}/sources", frame=spark.createDataFrame, **how)))
"""
# What a client of Spark Connect does, and nothing else of Spark's.
CLIENT = """
import os
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(os.environ["SERVER"]).getOrCreate()
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    for name in ("spark", "disk", "sources"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="module")
def apart(place: Path) -> list[str]:
    return cluster.hiding(place / "disk", size="1g")


@pytest.fixture(scope="module")
def machines(place: Path, apart: list[str]) -> Iterator[Cluster]:
    with cluster.started(place / "spark", apart=apart, disk=place / "disk") as machines:
        yield machines


@pytest.fixture(scope="module")
def sources(place: Path) -> Path:
    return story.write_sources(place / "sources" / "files")


@pytest.fixture(scope="module")
def told(place: Path, sources: Path) -> Any:
    return json.loads(json.dumps(story.tell(place / "ws", sources, engine="inline")))


def place_on(store: Store, sources: Path, name: str) -> str:
    """A place for a workspace, with the sources of the story beside it."""
    story.upload(sources, Bucket(f"s3://box/{name}/sources", store.options))
    return f"s3://box/{name}"


def on_disk(place: Path) -> dict[str, str]:
    return {"HOLDFAST_CACHE": str(place / "disk" / "cache"), "TMPDIR": str(place / "disk")}


def test_nothing_is_shared_but_a_store(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path, told: Any
) -> None:
    url = place_on(store, sources, "plain")
    arguments = (url, json.dumps(store.options), "all of it")
    cache = {"spark.executorEnv.HOLDFAST_CACHE": on_disk(place)["HOLDFAST_CACHE"]}
    done = machines.run(STORY, *arguments, cwd=place, apart=apart, variables=on_disk(place), **cache)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == told
    assert list((place / "disk").iterdir()) == []  # of this process: nothing went where everybody looks
    for pid in machines.workers:
        disk = Path(f"/proc/{pid}/root") / (place / "disk").relative_to("/")
        copies = [path for path in disk.glob("cache/??/*") if path.is_file()]
        assert copies, "tasks ran without a copy of anything"


def test_through_spark_connect(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path, told: Any
) -> None:
    pytest.importorskip("grpc", reason="needs holdfast[connect]")
    url = place_on(store, sources, "connect")
    with cluster.connect_server(machines, apart=apart) as server:
        done = cluster.run_driver(
            CLIENT + STORY,
            url,
            json.dumps(store.options),
            "short",
            cwd=place,
            apart=apart,
            variables={**on_disk(place), "SERVER": server},
        )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts
    assert facts == told[: len(facts)]


def command_line(
    machines: Cluster, place: Path, apart: list[str], store: Store, url: str, lines: list[str], *command: str
) -> str:
    """What a command says that has run on the cluster, with these lines more in spark-defaults.conf.

    Credentials of the environment go along.
    """
    before = _apps(place)
    conf = place / "conf"
    conf.mkdir(exist_ok=True)
    settings = [f"{key} {value}" for key, value in machines.settings.items() if key != "spark.master"]
    settings += [f"spark.executorEnv.PYTHONPATH {cluster.PYTHON_PATH}", *lines]
    (conf / "spark-defaults.conf").write_text("".join(f"{line}\n" for line in settings))
    done = cluster.run_driver(
        "from holdfast.app.cli import main; main()",
        *("-w", f"{url}/ws", "--engine", "spark", *command),
        cwd=place,
        apart=apart,
        variables={**on_disk(place), **environment_for(store.address), "SPARK_CONF_DIR": str(conf)},
    )
    assert done.returncode == 0, done.stderr
    assert len(_apps(place) - before) == 1  # it ran there, on the one core that the tests ask for
    return done.stdout


def _apps(place: Path) -> set[Path]:
    """What ran on each worker, by its folder."""
    return {app for host in cluster.WORKERS for app in (place / "spark" / host).glob("app-*")}


def test_the_command_line_reaches_a_cluster(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path
) -> None:
    url = place_on(store, sources, "command")
    options = ("--master", machines.master, "--spark-conf", "spark.cores.max=1")
    track = ("track", "orders", f"{url}/sources/orders.csv")
    told = command_line(machines, place, apart, store, url, [], *options, *track)
    assert told.startswith("orders: 400 rows, ")


@pytest.mark.slow
def test_the_command_line_reaches_the_cluster_of_spark_defaults(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path
) -> None:
    url = place_on(store, sources, "defaults")
    with holdfast.open(f"{url}/ws", engine="inline", storage_options=store.options) as ws:
        ws.track("orders", f"{url}/sources/orders.csv")
    apply = ("apply", "orders", "--deletes", f"{url}/sources/deletes.csv")
    told = command_line(
        machines, place, apart, store, url, [f"spark.master {machines.master}", "spark.cores.max 1"], *apply
    )
    assert told.startswith("orders: +0 -20 rows, now 380 rows")


ASK = """
import pyarrow as pa

def ask(batches):
    import holdfast, numba
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"path": [holdfast.__file__], "other": [numba.__file__]})

paths = spark.range(2, numPartitions=2).mapInArrow(ask, "path string, other string").collect()
print(json.dumps([path for row in paths for path in row]))
"""


@pytest.mark.slow
def test_executors_need_nothing_but_the_archive(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path, told: Any
) -> None:
    """`holdfast pack`, and two settings: what tasks import lies in the unpacked archive, kernels too."""
    archive = str(place / "sources" / "holdfast.tar.gz")
    pack(Path(archive))
    url = place_on(store, sources, "packed")
    done = machines.run(
        STORY + ASK,
        url,
        json.dumps(store.options),
        "short",
        cwd=place,
        apart=apart,
        variables=on_disk(place),
        **settings_for(archive),
    )
    assert done.returncode == 0, done.stderr
    facts, paths = map(json.loads, done.stdout.splitlines())
    assert facts == told[: len(facts)]
    assert len(paths) == 4
    assert all(f"/{FOLDER}/" in path for path in paths)


KILLER = """
import os, signal, threading, time, random

def kill_executors():
    draw = random.Random(7)
    while True:
        time.sleep(draw.uniform(2, 5))
        for name in os.listdir("/proc"):
            try:  # this text is part of the driver's own command
                is_java = name.isdecimal() and os.readlink(f"/proc/{name}/exe").endswith("/java")
                command = open(f"/proc/{name}/cmdline").read() if is_java else ""
            except OSError:
                continue
            if "CoarseGrainedExecutorBackend" in command and sys.argv[4] in command and draw.random() < 0.5:
                os.kill(int(name), signal.SIGKILL)

threading.Thread(target=kill_executors, daemon=True).start()
"""


@pytest.mark.slow
def test_executors_die_and_tasks_are_speculated(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path, told: Any
) -> None:
    url = place_on(store, sources, "killed")
    done = machines.run(
        KILLER + STORY,
        url,
        json.dumps(store.options),
        "all of it",
        machines.master.rpartition(":")[2],
        cwd=place,
        apart=apart,
        variables=on_disk(place),
        **{
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.5",
            "spark.task.maxFailures": "100",
            "spark.deploy.maxExecutorRetries": "-1",
            "spark.excludeOnFailure.enabled": "false",
        },
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == told
