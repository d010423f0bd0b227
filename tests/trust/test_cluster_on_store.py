"""A cluster that shares nothing but an object store: all classes, all operations, as on one machine.

Two workers and the driver run where the folder of their temporary files is a disk of their own: none sees
what another has written. The workspace and the sources are on S3; what reaches it is told to the driver only.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.core.engine.packing import FOLDER, pack, settings_for
from holdfast.core.store.bucket import Bucket
from trust import cluster, story
from trust.cluster import Cluster
from trust.lost_workers import lost_kinds
from trust.object_store import Store, environment_for

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs the addresses 127.0.0.2 and 127.0.0.3"),
    pytest.mark.skipif(not cluster.can_hide(), reason="needs the right to make mount namespaces (root)"),
    pytest.mark.xdist_group("cluster"),
]

STORY = """
import json, sys
from holdfast.core.engine import distance
from holdfast.core.evidence import shuffled
from holdfast.inclusions import values
from trust import lost_workers, story

# As of a table of some size: values meet by Spark's shuffle, and rows that validate candidates; and the
# driver lets tasks fetch rows.
values.FEW_CELLS = shuffled.SHUFFLED_ROWS = distance.FAR_BYTES = 0
url, options = sys.argv[1], json.loads(sys.argv[2])
if sys.argv[4] != "no worker":
    lost_workers.lose_workers(f"{url}/lost", options, each=sys.argv[4])
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


# How much of the story is told, and of which jobs workers are lost.
ALL, SHORT, CALM = "all of it", "short", "no worker"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}


def place_on(store: Store, sources: Path, name: str) -> str:
    """A place for a workspace, with the sources of the story beside it."""
    story.upload(sources, Bucket(f"s3://box/{name}/sources", store.options))
    return f"s3://box/{name}"


def on_disk(place: Path) -> dict[str, str]:
    return {"HOLDFAST_CACHE": str(place / "disk" / "cache"), "TMPDIR": str(place / "disk")}


# The ways in which an engine has tasks run. Of each a worker dies, which costs the fast test some seconds.
WAYS = {"run", "produce", "relay", "consume", "over"}
# Of each of these tasks one dies in the slow test, with the module that it is in. A new one belongs here.
TASKS = {
    "consume facts count_tuples",
    "consume index index_entries",
    "consume sent_parts answer_part",
    "consume shuffled refute_part",
    "consume value_tasks absorb_blocks",
    "over tasks encode_frame",
    "produce facts send_tuples",
    "produce index send_entries",
    "produce shuffled send_values",
    "produce sent_groups send_groups",
    "produce sent_sides send_sides",
    "produce value_ranking send_counts",
    "produce value_tasks collect_blocks",
    "relay shuffled find_repeated",
    "relay shuffled send_rows",
    "run agree_probe probe_segment",
    "run column_tasks count_part",
    "run comparison compare_part",
    "run comparison compare_predicates",
    "run components forest_part",
    "run components number_tables",
    "run conditions check_part",
    "run differing compare_bucket",
    "run differing locate_pairs",
    "run facts look_at_segment",
    "run group_tasks violating_part",
    "run index put_piece",
    "run match count_dropped",
    "run match link_tables",
    "run match match_columns",
    "run missing missing_in_segment",
    "run read_task read_lake_unit",
    "run row_counting count_part",
    "run row_counting except_part",
    "run row_counting find_ends",
    "run shuffled read_rows",
    "run tasks encode_part",
    "run tasks fetch_part",
    "run tasks index_segment",
    "run tasks locate_rows",
    "run tasks merge_run",
    "run tasks rewrite_part",
    "run tuple_tasks check_tuples",
    "run value_tasks merge_part",
    "run violating_pairs pairs_part",
    "run violation_changes compare_part",
    "run violations count_part",
}


@pytest.mark.parametrize("each", ["method", pytest.param("function", marks=pytest.mark.slow)])
def test_nothing_is_shared_but_a_store(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path, told: Any, each: str
) -> None:
    """And of each kind of job a worker is lost, when its task has written all."""
    url = place_on(store, sources, f"plain-{each}")
    arguments = (url, json.dumps(store.options), ALL, each)
    cache = {"spark.executorEnv.HOLDFAST_CACHE": on_disk(place)["HOLDFAST_CACHE"]}
    done = machines.run(STORY, *arguments, cwd=place, apart=apart, variables=on_disk(place), **cache)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == told
    lost = lost_kinds(f"{url}/lost", store.options)
    assert {kind.split()[0] for kind in lost} == WAYS
    assert done.stderr.count("Lost task") >= len(lost)
    assert each == "method" or lost == TASKS
    assert list((place / "disk").iterdir()) == []  # of this process: nothing went where everybody looks
    for pid in machines.workers:
        disk = Path(f"/proc/{pid}/root") / (place / "disk").relative_to("/")
        copies = [path for path in disk.glob("cache/??/*") if path.is_file()]
        assert copies, "tasks ran without a copy of anything"


@pytest.mark.parametrize("part", [SHORT, pytest.param(ALL, marks=pytest.mark.slow)])
def test_through_spark_connect(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path, told: Any, part: str
) -> None:
    pytest.importorskip("grpc", reason="needs holdfast[connect]")
    url = place_on(store, sources, f"connect-{part.split()[0]}")
    with cluster.connect_server(machines, apart=apart) as server:
        done = cluster.run_driver(
            CLIENT + STORY,
            url,
            json.dumps(store.options),
            part,
            CALM,
            cwd=place,
            apart=apart,
            variables={**on_disk(place), "SERVER": server},
        )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert len(facts) == len(told) if part == ALL else facts
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
        SHORT,
        CALM,
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
import os, random, signal, threading, time
from holdfast.core.engine.engine import Engine

collect, n_jobs, kills = Engine._collect, 0, []

def counted(*arguments, **options):
    global n_jobs
    n_jobs += 1
    return collect(*arguments, **options)

Engine._collect = counted

def working():
    # The executors of this cluster that run Python. The driver's own command has this text, too.
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text().split(chr(0))
            is_java = os.readlink(folder / "exe").endswith("/java")
            has_children = any(path.read_text() for path in folder.glob("task/*/children"))
        except OSError:
            continue
        backend = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
        if is_java and has_children and backend in command and f"-Djava.io.tmpdir={sys.argv[5]}" in command:
            yield int(folder.name)

def kill_executors():
    # While tasks run, and again when the driver is some jobs further: it gets on however slow a machine is.
    draw, due = random.Random(7), 3
    tracker = spark.sparkContext.statusTracker()
    while True:
        time.sleep(0.05)
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        if n_jobs >= due and any(stage is not None and stage.numActiveTasks for stage in stages):
            executors = sorted(working())
            if executors:
                kills.append(draw.choice(executors))
                os.kill(kills[-1], signal.SIGKILL)
                due = n_jobs + draw.randint(4, 12)

threading.Thread(target=kill_executors, daemon=True).start()
"""
KILLS = """
print(json.dumps(kills))
"""


@pytest.mark.slow
def test_executors_die_and_tasks_are_speculated(
    machines: Cluster, place: Path, apart: list[str], store: Store, sources: Path, told: Any
) -> None:
    url = place_on(store, sources, "killed")
    done = machines.run(
        KILLER + STORY + KILLS,
        *(url, json.dumps(store.options), ALL, CALM, str(machines.folder)),
        cwd=place,
        apart=apart,
        variables=on_disk(place),
        **SPECULATION,
        **{"spark.task.maxFailures": "100", "spark.excludeOnFailure.enabled": "false"},
    )
    assert done.returncode == 0, done.stderr
    facts, kills = map(json.loads, done.stdout.splitlines())
    assert facts == told
    assert len(kills) > 3
    lost = set(re.findall(r"Lost executor (\d+) on", done.stderr))
    assert len(lost) >= len(kills) - 1, done.stderr  # the last one may be killed when all is done


FLAKY = """
import json, re
import holdfast
from holdfast.core.store.bucket import bucket_of
from pipeline.task_functions import Unreliable

url, options = sys.argv[1], json.loads(sys.argv[2])
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
frame = spark.range(0, 160_000, 1, 4).selectExpr("id", "id % 7 AS n")
flaky = frame.mapInArrow(Unreliable(None, fails=1, hangs=3), frame.schema)
for name, source in (("flaky", flaky), ("calm", frame)):
    with holdfast.open(f"{url}/{name}", engine="spark", spark=spark, storage_options=options) as ws:
        (table,) = ws.track("t", source).tables
        ws.tidy(grace_s=0)
        ws.verify()
        keys = [str(key) for key in ws.dependencies()]
        names = [entry.name for entry in bucket_of(f"{url}/{name}").entries("")]
    print(json.dumps([table.n_rows, keys, sorted(re.sub("[0-9a-f]{6,}", "*", name) for name in names)]))
"""


@pytest.mark.slow
def test_a_dataframe_that_fails_or_hangs_at_its_first_attempt(
    machines: Cluster, place: Path, apart: list[str], store: Store
) -> None:
    """Its rows are counted once, and what attempts leave that lose is litter that housekeeping removes."""
    arguments = ("s3://box/frames", json.dumps(store.options))
    done = machines.run(FLAKY, *arguments, cwd=place, apart=apart, variables=on_disk(place), **SPECULATION)
    assert done.returncode == 0, done.stderr
    flaky, calm = map(json.loads, done.stdout.splitlines())
    assert flaky[:2] == [160_000, ["t[id]"]]
    assert flaky == calm
    assert "connection reset" in done.stderr


# The command `log`, which waits for tasks of the cluster that do not end.
ENDLESS = """
import sys
import holdfast
from holdfast.app import cli
from holdfast.core.engine.rounds import side_by_side
from pipeline.task_functions import wait_for_the_end

folder, how, *command = sys.argv[1:]

def waiting(number):
    payload = {"marker": f"{folder}/{how}-{number}"}
    return lambda engine: engine.run(wait_for_the_end, [payload], where="spark")

def log(ws, *_, **__):
    if how == "alone":
        waiting(0)(ws.writer.engine)
    else:
        side_by_side(ws.writer.engine, [waiting(0), waiting(1)])

holdfast.Workspace.log = log
cli.main(command)
"""


@pytest.mark.slow
def test_a_command_that_is_cancelled_cancels_its_jobs_through_connect(
    machines: Cluster, place: Path, apart: list[str], store: Store
) -> None:
    """By Ctrl-C or SIGTERM: the server would go on with them."""
    pytest.importorskip("grpc", reason="needs holdfast[connect]")
    url, folder = "s3://box/cancelled", place / "waiting"
    folder.mkdir()
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", pa.table({"a": [1, 2]}))
    variables = {**on_disk(place), **environment_for(store.address)}
    with cluster.connect_server(machines, apart=apart) as server:
        command = ("--remote", server, "--engine", "spark", "-w", url, "log")

        def cancelled(how: str, n_tasks: int, number: signal.Signals) -> int:
            """The exit code of a command that was sent a signal when all of its tasks were running."""
            markers = [folder / f"{how}-{i}" for i in range(n_tasks)]
            arguments = (ENDLESS, str(folder), how, *command)
            with cluster.launched_driver(*arguments, cwd=place, variables=variables) as driver:
                cluster.wait_for(lambda: driver.poll() is not None or all(map(Path.exists, markers)))
                driver.send_signal(number)
                printed, errors = driver.communicate(timeout=cluster.LONG_S)
            assert printed == "", errors
            assert errors.endswith("interrupted\n")
            workers = [Path("/proc", path.read_text()) for path in markers]
            cluster.wait_for(lambda: not any(map(Path.exists, workers)))
            return driver.returncode

        assert cancelled("alone", 1, signal.SIGINT) == 130
        assert cancelled("side by side", 2, signal.SIGTERM) == 143
