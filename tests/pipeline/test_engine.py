"""The engine's contract: the same answers, the same errors, wherever a task runs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from holdfast.core.engine import session
from holdfast.core.engine.cost import available_cores
from holdfast.core.engine.engine import Engine, Where, count_rows, echo
from holdfast.core.engine.job_progress import labelled
from holdfast.core.engine.worker import run_over_rows, task_name
from holdfast.core.store.files import FileRef
from holdfast.errors import AbsentRowError, EngineError, SourceError, UsageError, WorkspaceError
from pipeline import task_functions as tasks

EVERYWHERE = pytest.mark.parametrize("where", ["inline", "spark"])


def numbers(n: int) -> list[dict[str, object]]:
    return [{"n": i} for i in range(n)]


@EVERYWHERE
def test_results_come_in_payload_order(engine_spark: Engine, where: Where) -> None:
    payloads = [{"n": n, "sleep_s": 0.2 if n == 0 else 0} for n in range(7)]
    assert engine_spark.run(tasks.double, payloads, where=where) == [str(2 * n).encode() for n in range(7)]


@EVERYWHERE
def test_payload_passes_through_json(engine_spark: Engine, where: Where) -> None:
    payload = {"list": (1, 2), "text": 'é"\n', "none": None, "big": 2**63}
    seen = b'{"list": ["list", [1, 2]], "text": ["str", "\\u00e9\\"\\n"], "none": ["NoneType", null], '
    seen += b'"big": ["int", 9223372036854775808]}'
    assert engine_spark.run(tasks.describe, [payload], where=where) == [seen]


@EVERYWHERE
def test_our_own_errors_come_back_as_they_were(engine_spark: Engine, where: Where) -> None:
    with pytest.raises(AbsentRowError) as caught:
        engine_spark.run(tasks.refuse, numbers(5), where=where)  # 2 and 3 fail: the lower index counts
    assert type(caught.value) is AbsentRowError
    assert str(caught.value) == "no such row: 2. Nothing was applied."


@EVERYWHERE
def test_an_error_with_a_constructor_of_its_own_comes_back_too(engine_spark: Engine, where: Where) -> None:
    with pytest.raises(tasks.PickyError) as caught:
        engine_spark.run(tasks.picky, [{"n": 7}], where=where)
    assert str(caught.value) == "table 'orders' has no row 7"


@EVERYWHERE
def test_other_exceptions_become_engine_errors(engine_spark: Engine, where: Where) -> None:
    with pytest.raises(EngineError) as caught:
        engine_spark.run(tasks.stumble, [{"n": 1}, {"n": 0}], where=where)
    message = str(caught.value)
    assert "task pipeline.task_functions:stumble failed: ZeroDivisionError" in message
    assert "in stumble" in message
    assert "org.apache.spark" not in message
    assert any("return str(1 // payload" in note for note in caught.value.__notes__)


@EVERYWHERE
def test_a_task_must_return_bytes(engine_spark: Engine, where: Where) -> None:
    with pytest.raises(EngineError, match="returned str, not bytes"):
        engine_spark.run(tasks.forget_bytes, [{"text": "a"}], where=where)


def test_a_dead_worker_is_told_and_survived(engine_spark: Engine) -> None:
    with pytest.raises(EngineError, match="a Python worker died"):
        engine_spark.run(tasks.die, [{}, {}], where="spark")
    assert engine_spark.run(echo, [{}], where="spark") == [b"{}"]


@pytest.mark.parametrize("task", [lambda payload: b"", str, len])
def test_only_importable_functions_are_tasks(engine_inline: Engine, task: object) -> None:
    if task is str or task is len:  # importable, if odd
        assert task_name(task).startswith("builtins:")  # type: ignore[arg-type]
        return
    with pytest.raises(UsageError, match="top level of an importable module"):
        engine_inline.run(task, [{}], where="inline")  # type: ignore[arg-type]


def test_a_dataframe_brings_its_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that has none starts no other."""
    monkeypatch.setattr(session, "start_session", lambda: pytest.fail("another session is started"))
    engine = Engine()
    assert sum(map(int, engine.run_over(spark.range(10), count_rows, {}))) == 10
    assert engine.spark is spark


def test_through_connect_a_job_is_described_by_a_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which has no commas."""
    tags: list[str] = []

    class Tagged:
        def addTag(self, tag: str) -> None:
            assert tag
            assert "," not in tag
            tags.append(tag)

        def removeTag(self, tag: str) -> None:
            tags.remove(tag)

    monkeypatch.setattr(session, "is_connect", lambda spark: True)
    with labelled(cast("SparkSession", Tagged()), "holdfast: task a:f, b:g") as group:
        assert tags == [group, "holdfast: task a:f; b:g"]
    assert not tags


def test_no_payload_no_job(engine_spark: Engine) -> None:
    assert engine_spark.run(echo, [], where="spark") == []
    assert engine_spark.jobs == 0


def test_one_run_is_one_spark_job(engine_spark: Engine, spark: SparkSession, tmp_path: Path) -> None:
    context = spark.sparkContext
    group = f"count-{tmp_path.name}"
    context.setJobGroup(group, "counted by Spark itself")
    try:
        engine_spark.run(tasks.double, numbers(5), where="spark")
        engine_spark.run(tasks.double, numbers(3), where="spark", progress=lambda done, total: None)
        engine_spark.run_over(spark.range(10), count_rows, {})
        engine_spark.run(tasks.double, numbers(3), where="inline")
        assert context.getLocalProperty("spark.jobGroup.id") == group  # the caller's group is left alone
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]
    assert engine_spark.jobs == 3
    assert len(context.statusTracker().getJobIdsForGroup(group)) == 3


@EVERYWHERE
def test_progress_ends_at_the_total(engine_spark: Engine, tmp_path: Path, where: Where) -> None:
    seen: list[tuple[int, int]] = []
    marker = tmp_path / "seen"

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        marker.touch()

    payloads = [{"n": n, "marker": str(marker)} for n in range(4)]  # none is done before it was told
    engine_spark.run(tasks.double_when_told, payloads, where=where, progress=progress)
    assert seen[-1] == (4, 4)
    assert [total for _, total in seen] == [4] * len(seen)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert len({done for done, _ in seen}) > 1


@EVERYWHERE
def test_what_progress_raises_is_raised(engine_spark: Engine, where: Where) -> None:
    def complain(done: int, total: int) -> None:
        raise KeyError("progress")

    with pytest.raises(KeyError, match="progress"):
        engine_spark.run(tasks.double, [{"n": 1, "sleep_s": 0.3}], where=where, progress=complain)


def test_progress_leaves_no_job_group_behind(engine_spark: Engine, spark: SparkSession) -> None:
    engine_spark.run(echo, [{}], where="spark", progress=lambda *_: None)
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None


def test_the_daemon_compiles_nothing(tmp_path: Path) -> None:
    """With an empty cache, workers would wait for minutes until kernels are compiled that nobody needs."""
    code = "from holdfast.core.engine import daemon; from holdfast.core.engine.kernels import activity\n"
    code += "daemon.preload(); from holdfast.core.rows.kernels import masks; print(activity._n_compiled)"
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout == "0\n"
    assert not list(tmp_path.rglob("*.nbc"))


def test_workers_come_with_the_kernels_loaded(engine_spark: Engine) -> None:
    pytest.importorskip("numba")
    assert engine_spark.run(tasks.numba_is_loaded, [{}, {}], where="spark") == [b"yes"] * 2


def test_workers_survive_their_tasks(engine_spark: Engine) -> None:
    """A small task on a warm session takes 0.1 s; with a new worker it would be seconds."""
    workers = [w for _ in range(6) for w in engine_spark.run(tasks.process, [{}, {}], where="spark")]
    assert len(set(workers)) < len(workers)


def test_mode_decides() -> None:
    assert Engine(mode="inline").choose(1e15) == "inline"
    assert Engine(mode="spark").choose(0) == "spark"
    with pytest.raises(UsageError, match="'cluster'"):
        Engine(mode="cluster")  # type: ignore[arg-type]


def test_cores(engine_inline: Engine, engine_spark: Engine, spark: SparkSession) -> None:
    assert engine_inline.cores == available_cores()
    assert engine_spark.cores == spark.sparkContext.defaultParallelism


# --- a workspace on a cluster -----------------------------------------------------------------------------


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the session's executors for other machines."""
    monkeypatch.setattr(session, "is_local", lambda _: False)


def test_before_the_first_job_executors_are_asked_whether_they_see_the_workspace(
    spark: SparkSession, tmp_path: Path, elsewhere: None
) -> None:
    engine = Engine(spark, "spark", root=tmp_path)
    assert engine.run(echo, [{}], where="spark") == [b"{}"]
    assert engine.jobs == 2
    assert engine.run(echo, [{}], where="spark") == [b"{}"]
    assert engine.jobs == 3
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_executors_that_do_not_see_the_workspace(
    spark: SparkSession, tmp_path: Path, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    unseen = FileRef("staging/a/nonce", 32, "0" * 16)
    monkeypatch.setattr("holdfast.core.engine.engine.write_file", lambda *_: unseen)
    engine = Engine(spark, "spark", root=tmp_path)
    attempts = (
        lambda: engine.run(echo, [{}], where="spark"),
        lambda: engine.run_over(spark.range(3), count_rows, {}),
    )
    for attempt in attempts:
        with pytest.raises(WorkspaceError) as caught:
            attempt()
        assert str(caught.value).startswith(
            f"Spark's executors on {socket.gethostname()} do not see the workspace {str(tmp_path)!r}"
        )
        assert "storage that the driver and all executors reach at the same path" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_local_session_is_not_asked(spark: SparkSession, tmp_path: Path) -> None:
    engine = Engine(spark, "spark", root=tmp_path)
    engine.run(echo, [{}], where="spark")
    assert engine.jobs == 1


# --- over the rows of a DataFrame -------------------------------------------------------------------------


def test_answers_come_in_the_order_of_partitions(engine_spark: Engine, spark: SparkSession) -> None:
    frame = spark.range(0, 1000, 1, 4).select("id", F.col("id").cast("string").alias("text"))
    answers = [json.loads(answer) for answer in engine_spark.run_over(frame, tasks.spans, {"rows": 100})]
    assert [span for span in answers if span[1] - span[0] > 100] == []
    assert [answers[0][0], *(high for _, high in answers)] == [*(low for low, _ in answers), 1000]
    assert sum(map(int, engine_spark.run_over(frame, count_rows, {}))) == 1000


def test_an_empty_frame_has_no_rows(engine_spark: Engine, spark: SparkSession) -> None:
    assert engine_spark.run_over(spark.range(0, 8, 1, 4).where("id >= 6"), tasks.spans, {"rows": 9}) == [
        b"[6, 8]"
    ]
    assert engine_spark.run_over(spark.range(0), tasks.spans, {"rows": 9}) == []


def test_a_task_over_rows_refuses_and_fails_as_others_do(engine_spark: Engine, spark: SparkSession) -> None:
    with pytest.raises(AbsentRowError, match="no such row: 2"):
        engine_spark.run_over(spark.range(4), tasks.refuse_rows, {"n": 2})
    with pytest.raises(EngineError, match="refuse_rows failed: ZeroDivisionError"):
        engine_spark.run_over(spark.range(4), tasks.refuse_rows, {"n": 0})


@pytest.mark.parametrize(
    ("column", "cause"),
    [("CAST(concat('x', id) AS INT)", "CAST_INVALID_INPUT"), ("raise_error('no good')", "no good")],
)
def test_a_failing_dataframe_is_a_source_error(
    engine_spark: Engine, spark: SparkSession, column: str, cause: str
) -> None:
    with pytest.raises(SourceError, match=cause) as caught:
        engine_spark.run_over(spark.range(4).selectExpr(column), count_rows, {})
    assert "org.apache" not in str(caught.value)


def test_what_fails_while_rows_are_read_is_raised_as_it_is() -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": [1, 2, 3]})
        raise ConnectionError

    with pytest.raises(ConnectionError):
        list(run_over_rows(rows(), (task_name(count_rows), {}), ()))


def test_an_interrupt_behind_a_failed_job_is_an_interrupt(engine_spark: Engine, spark: SparkSession) -> None:
    """PySpark's handler cancels the job; collecting it then fails, which hides the interrupt."""

    class Frame:
        sparkSession = spark

        def toArrow(self) -> None:
            try:
                raise KeyboardInterrupt
            finally:
                raise RuntimeError("an error occurred while calling getResult")

    with pytest.raises(KeyboardInterrupt):
        engine_spark._collect(Frame(), "a job", EngineError)  # type: ignore[arg-type]


def test_a_job_says_what_it_is(engine_spark: Engine, spark: SparkSession) -> None:
    [seen] = engine_spark.run(tasks.label, [{}], where="spark")
    description, group = json.loads(seen)
    assert description == "holdfast: task pipeline.task_functions:label"
    assert group.startswith("holdfast-")
    context = spark.sparkContext
    context.setJobGroup("mine", "my own words")
    try:
        [seen] = engine_spark.run(tasks.label, [{}], where="spark")
        assert json.loads(seen) == ["my own words", "mine"]
    finally:
        for name in ("spark.jobGroup.id", "spark.job.description"):
            context.setLocalProperty(name, None)  # type: ignore[arg-type]


def test_an_interrupted_job_is_cancelled(spark: SparkSession, tmp_path: Path) -> None:
    raised: list[BaseException] = []

    def work(group: str) -> None:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", group)
        try:
            Engine(spark).run(tasks.wait_long, [{"marker": str(tmp_path / "runs")}], where="spark")
        except EngineError as error:
            raised.append(error)

    def interrupted() -> None:
        with labelled(spark, "to be interrupted") as group:
            threads.append(threading.Thread(target=work, args=(group,)))
            threads[0].start()
            while not (tmp_path / "runs").exists():
                assert threads[0].is_alive(), raised
                time.sleep(0.02)
            raise KeyboardInterrupt

    threads: list[threading.Thread] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    threads[0].join(timeout=100)
    assert not threads[0].is_alive()
    assert raised


# --- the exchange -----------------------------------------------------------------------------------------


def test_blocks_of_a_part_meet(engine_spark: Engine) -> None:
    payloads = [{"start": 100 * i, "n": 40} for i in range(5)]
    consumers = [{"part": part} for part in range(9)]
    results = engine_spark.exchange(tasks.by_remainder, payloads, tasks.sum_of_blocks, consumers)
    numbers = [100 * i + j for i in range(5) for j in range(40)]
    expected = [
        [part, sum(n for n in numbers if n % 7 == part)] for part in range(9)
    ]  # 7 and 8 have no block
    assert [json.loads(result) for result in results] == expected
    assert engine_spark.jobs == 1


def test_every_part_has_a_partition_of_its_own(engine_spark: Engine) -> None:
    """By their hashes a third of 40 partitions would be empty, and some would have three parts."""
    if not hasattr(DataFrame, "repartitionById"):
        pytest.skip("Spark 4.0 divides by hashes alone")
    payloads = [{"parts": 40}] * 3
    consumers = [{"part": part} for part in range(40)]
    results = engine_spark.exchange(tasks.to_every_part, payloads, tasks.partition_of_blocks, consumers)
    assert [json.loads(result) for result in results] == [[part, 3] for part in range(40)]


def test_more_parts_than_partitions(engine_spark: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.core.engine.engine.MOST_PARTITIONS", 7)
    consumers = [{"part": part} for part in range(40)]
    results = engine_spark.exchange(
        tasks.to_every_part, [{"parts": 40}] * 9, tasks.partition_of_blocks, consumers
    )
    partitions, n_blocks = zip(*map(json.loads, results), strict=True)
    assert (set(n_blocks), set(partitions) <= set(range(7))) == ({9}, True)


def test_errors_of_an_exchange(engine_spark: Engine) -> None:
    consumers = [{"part": part} for part in range(7)]
    with pytest.raises(EngineError, match="producing blocks failed: ZeroDivisionError"):
        engine_spark.exchange(tasks.by_remainder, [{"start": 0, "n": 0}], tasks.sum_of_blocks, consumers)
    with pytest.raises(AbsentRowError, match="no such part: 3"):
        engine_spark.exchange(
            tasks.by_remainder,
            [{"start": 0, "n": 40}],
            tasks.sum_of_blocks,
            [{**consumer, "absent": 3} for consumer in consumers],
        )
