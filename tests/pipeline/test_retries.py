"""Spark runs a task again: nothing is counted twice, and what may go better elsewhere gets its chance.

In a session of its own, since the one that tests share gives each task one attempt. On a real cluster, with
speculation: `trust/test_cluster.py`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path

import holdfast
from holdfast.errors import AbsentRowError, DamagedFileError, EngineError
from holdfast.core.engine.engine import Engine
from holdfast.core.engine.session import start_session
from pipeline import task_functions as tasks

folder = Path(sys.argv[1])
spark = start_session(master="local[2,4]")
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")

# A DataFrame of which one partition fails at its first attempt, behind its third batch. Batches must not be
# small: what fills no pipe does not reach the writer before the failure does.
frame = spark.range(0, 160_000, 1, 4).selectExpr("id", "id % 7 AS n")
with holdfast.open(folder / "ws", spark=spark, engine="spark") as ws:
    unreliable = tasks.Unreliable(str(folder), fails=1)
    (table,) = ws.track("t", frame.mapInArrow(unreliable, frame.schema)).tables
    assert (folder / "partition-1").exists(), "the failure did not happen"
    assert (table.n_rows, table.n("ucc")) == (160_000, 1), table
    assert [d.columns for d in ws.dependencies()] == [("id",)]
    staged = [path.name for path in (folder / "ws" / "staging").rglob("*") if path.is_file()]
    assert set(staged) <= {"stamps"}, staged

engine = Engine(spark)
assert engine.run(tasks.stumble_once, [{"marker": str(folder / "marker")}], where="spark") == [b"fine"]


def outcome(task):
    noted = folder / task.__name__
    try:
        engine.run(task, [{"attempts": str(noted)}], where="spark")
    except Exception as error:
        return error, len(noted.read_text())


error, n_attempts = outcome(tasks.stumble_always)
assert type(error) is EngineError
name = "task pipeline.task_functions:stumble_always failed: RuntimeError: never\\nat all (File "
assert str(error).startswith(name) and str(error).endswith("in stumble_always)"), error
assert n_attempts == 4
error, n_attempts = outcome(tasks.damaged_always)
assert type(error) is DamagedFileError
assert str(error) == "the file '\\u00e9' is cut short.\\nRestore it."
assert n_attempts == 4
error, n_attempts = outcome(tasks.refuse_always)
assert type(error) is AbsentRowError and str(error) == "no such row"
assert n_attempts == 1  # it would be refused everywhere
"""


def test_attempts_on_local_2_4(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
