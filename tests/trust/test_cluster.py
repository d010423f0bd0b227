"""On a cluster: tasks run twice, on machines that see other files than the driver does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from trust import cluster
from trust.cluster import Cluster

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs the addresses 127.0.0.2 and 127.0.0.3"),
    pytest.mark.xdist_group("cluster"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    for name in ("spark", "shared", "private"):
        (folder / name).mkdir()
    return folder


@pytest.fixture(scope="module")
def machines(place: Path) -> Iterator[Cluster]:
    """Two workers that see the folder `shared`, but not what is in `private` if that can be arranged."""
    apart = cluster.hiding(place / "private") if cluster.can_hide() else ()
    with cluster.started(place / "spark", apart=apart) as machines:
        yield machines


def staged_files(workspace: Path) -> set[str]:
    return {path.name for path in (workspace / "staging").rglob("*") if path.is_file()}


UNRELIABLE = """
import holdfast
from pipeline.task_functions import Unreliable

folder = Path(sys.argv[1])
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
frame = spark.range(0, 160_000, 1, 4).selectExpr("id", "id % 7 AS n")
with holdfast.open(folder / "ws", spark=spark, engine="spark") as ws:
    unreliable = Unreliable(str(folder), fails=1, hangs=3)
    (table,) = ws.track("t", frame.mapInArrow(unreliable, frame.schema)).tables
    assert (folder / "partition-1").exists() and (folder / "partition-3").exists()
    print(table.n_rows, [d.columns for d in ws.dependencies()])
"""


def test_attempts_that_fail_or_lose_leave_no_rows(machines: Cluster, place: Path) -> None:
    done = machines.run(
        UNRELIABLE,
        str(place / "shared"),
        cwd=place,
        **{
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.quantile": "0.5",
        },
    )
    assert (done.returncode, done.stdout) == (0, "160000 [('id',)]\n"), done.stderr
    assert staged_files(place / "shared" / "ws") == {"stamps"}


ELSEWHERE = """
import holdfast
from holdfast.errors import HoldfastError

def attempt(what, path, source):
    try:
        with holdfast.open(path, spark=spark, engine="spark") as ws:
            (table,) = ws.track("t", source).tables
            print(what, table.n_rows)
    except HoldfastError as error:
        print(what, type(error).__name__, error)

Path("shared/rows.csv").write_text("a,b\\n" + "".join(f"{n},{n % 3}\\n" for n in range(1000)))
attempt("relative:", "shared/relative", "shared/rows.csv")
attempt("hidden:", "private/ws", "shared/rows.csv")
attempt("frame:", "private/frame", spark.range(10))
"""


@pytest.mark.slow
def test_a_workspace_that_executors_do_not_see(machines: Cluster, place: Path) -> None:
    if not cluster.can_hide():
        pytest.skip("needs the right to make mount namespaces")
    done = machines.run(ELSEWHERE, cwd=place)
    assert done.returncode == 0, done.stderr
    relative, hidden, frame = done.stdout.splitlines()
    assert relative == "relative: 1000"  # the source's path was sent in full
    for line, what, name in ((hidden, "hidden", "ws"), (frame, "frame", "frame")):
        assert line.startswith(f"{what}: WorkspaceError Spark's executors on ")
        assert f"do not see the workspace '{place / 'private' / name}'" in line
        assert "must lie on storage that the driver and all executors reach at the same path" in line
    for pid in machines.workers:
        seen = Path(f"/proc/{pid}/root") / (place / "private").relative_to("/")
        assert list(seen.iterdir()) == []  # executors left nothing on disks of their own
    assert staged_files(place / "private" / "ws") == set()


@pytest.mark.slow
def test_the_entry_point_by_spark_submit(machines: Cluster, place: Path) -> None:
    (place / "shared" / "r.csv").write_text("a,b\n1,2\n2,2\n")
    track = ("-w", "submitted", "--engine", "spark", "track", "t", "r.csv")
    done = machines.submit(Path(holdfast.__file__).parent / "__main__.py", *track, cwd=place / "shared")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("t: 2 rows, 1 minimal key ")
