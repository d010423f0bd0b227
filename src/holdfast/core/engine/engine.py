"""Running task functions, inline or on Spark: the same functions on the same payloads.

A *task function* is a function at the top level of an importable module. It takes one dict that JSON
can carry and returns bytes in an encoding of the caller's choice. Data does not travel in payloads:
they name files, and results are small. So a task is the same wherever it runs, and these hold:

- `run` answers in payload order, and costs exactly one Spark job, or none when inline;
- payloads pass through JSON in both cases, so that a task cannot tell where it runs;
- functions travel by name and are imported by the worker, never pickled by value: workers run the
  installed code;
- of several tasks that refuse their payload the one of the lowest index is reported, as when run one by
  one; a task that fails for another reason is tried again by Spark, as often as the session says, and
  fails the job at last (`failures`).

Only what Spark Connect has as well is used (`range`, `mapInArrow`, `toArrow`); progress, which needs a
classic session's status tracker, is left out where there is none.
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.core.engine import session
from holdfast.core.engine.calls import STAGED_BYTES, Call, Calls
from holdfast.core.engine.cost import JOB_S, available_cores, sooner_on_spark
from holdfast.core.engine.failures import describe, revive, spark_failure
from holdfast.core.engine.job_progress import Poller, Progress, cancel_group, labelled
from holdfast.core.engine.worker import (
    Consume,
    Produce,
    Relay,
    RowTask,
    Task,
    checked,
    consume_blocks,
    produce_blocks,
    relay_blocks,
    run_over_rows,
    run_partition,
    task_name,
)
from holdfast.core.store.bucket import STAGING, Bucket, Reach, reaches
from holdfast.core.store.files import SHARED_STORAGE, FileRef, read_file, write_file
from holdfast.core.store.root import Root, remove_folder, root_of
from holdfast.errors import (
    NOTHING_APPLIED,
    DamagedFileError,
    EngineError,
    HoldfastError,
    SourceError,
    StoreError,
    UsageError,
    WorkspaceError,
    hides_interrupt,
    listing,
    shorten,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Where = Literal["inline", "spark"]
Mode = Literal["auto", "inline", "spark"]
Outcome = tuple[str | None, bytes | None]  # why a task refuses, or its result

OUTCOMES = "task long, refusal string, result binary"
PARTITIONS_PER_CORE = 4
# Work is divided into so many tasks whatever it is, and into more if each of them has so many ns to do.
FEW_TASKS, TASK_NS = 8, 2e8
MOST_PARTITIONS = 10_000
# At least so many tasks look for the workspace: executors may be more than the cores that Spark tells of.
LOOKS = 8
# What the system says to who may not write.
_NO_RIGHT = (errno.EACCES, errno.EPERM, errno.EROFS)


class Engine:
    """Runs tasks. Starts Spark only when the first of them is sent there."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        mode: Mode = "auto",
        on_start: Callable[[], None] | None = None,
        root: Root | None = None,
    ) -> None:
        if mode not in ("auto", "inline", "spark"):
            raise UsageError(f"unknown engine mode {shorten(mode)}. Expected 'auto', 'inline' or 'spark'.")
        self.mode: Mode = mode
        self.jobs = 0
        """Spark jobs launched so far by this engine."""
        self._spark = spark
        self._on_start = on_start  # called before Spark is started, which takes seconds
        self.root = root  # the workspace
        self._is_seen = False  # whether executors are known to see it
        self.groups: set[str] = set()
        """Of the jobs that run now, by which they can be cancelled."""

    @property
    def spark(self) -> SparkSession:
        """The session; started now if there is none."""
        if self._spark is None:
            if self._on_start is not None:
                self._on_start()
            self._spark = session.start_session()
        return self._spark

    @property
    def cores(self) -> int:
        """How many tasks can run at once. Asks Spark if it runs already, and never starts it.

        On a cluster it is what it can grow to, not what it has at this moment.
        """
        if self._spark is None:
            return session.expected_cores()
        if session.is_local(self._spark):
            return self._spark.sparkContext.defaultParallelism
        return session.cluster_cores(self._spark)

    @property
    def uses_spark(self) -> bool:
        """Whether tasks may go to Spark without its being started for them."""
        return self.mode == "spark" or (self.mode == "auto" and self._spark is not None)

    def choose(self, ns: float, *, parallel: bool = False) -> Where:
        """Where work of so many nanoseconds of one core is done sooner, a session's start counted; the mode
        may decide. `parallel`: inline tasks would share the machine's cores.

        >>> Engine().choose(1e6), Engine().choose(1e11)
        ('inline', 'spark')
        >>> Engine(mode="spark").choose(10)
        'spark'
        """
        if self.mode != "auto":
            return self.mode
        if ns <= JOB_S * 1e9:  # less than a job's start: nobody has to be asked how many cores there are
            return "inline"
        started = self._spark is not None or session.is_there()
        local_cores = available_cores() if parallel else 1
        sooner = sooner_on_spark(ns / 1e9, started=started, cores=self.cores, local_cores=local_cores)
        return "spark" if sooner else "inline"

    def shares(self, ns: float) -> int:
        """Into how many tasks work of so many nanoseconds of one core is divided on Spark.

        As many as keep its cores busy, but on a large cluster none that is hardly worth it.
        """
        most = 2 * self.cores
        return max(min(most, FEW_TASKS), min(most, int(ns / TASK_NS)))

    def run(
        self,
        function: Task,
        payloads: list[dict[str, Any]],
        *,
        where: Where,
        progress: Progress | None = None,
        parallel: bool = False,
    ) -> list[bytes]:
        """The function's results, one per payload and in their order.

        A HoldfastError raised by a task is raised here with its class and message. Any other exception
        becomes an EngineError that names the task; the task's traceback is in its notes.
        Raises WorkspaceError if the tasks would run where the workspace cannot be seen.
        Tasks whose files a store does not take run inline: who may only read it commits nothing.
        `parallel` lets inline tasks share the machine's cores; worth it when they are mostly kernels.
        `progress(done, total)` is called from time to time, perhaps from another thread.
        """
        name = task_name(function)
        if not payloads:
            return []
        if where == "spark":
            self.check_root()
            calls = [(name, payload) for payload in payloads]
            try:
                return [answered(outcome) for outcome in self.run_job(calls, progress)]
            except StoreError as error:
                if not error.denied:
                    raise
            # Who may only read a store can write here: what is drafted need not be put there.
        texts = [json.dumps(payload) for payload in payloads]
        return _run_inline(function, name, texts, progress, available_cores() if parallel else 1)

    def run_job(self, calls: list[Call], progress: Progress | None) -> list[Outcome]:
        """One Spark job of tasks, perhaps of several functions; what came of each, in their order."""
        n_tasks = len(calls)
        # Some payloads to a partition where there are many: every Spark task has a cost of its own. Only here
        # it is known how many run at once; a cluster grows with the tasks that wait.
        local = session.is_local(self.spark)
        n_partitions = min(n_tasks, PARTITIONS_PER_CORE * self.cores if local else MOST_PARTITIONS)
        tasks = self.spark.range(0, n_tasks, 1, n_partitions)  # a row's id is the payload's index
        listed = Calls.of(calls)
        with self._carried(listed) as carried:
            reach = reaches()
            outcomes = tasks.mapInArrow(lambda batches: run_partition(batches, carried, reach), OUTCOMES)
            names = listing(list(listed.functions()))
            table = self._collect(outcomes, f"task {names}", EngineError, n_partitions, progress)
        by_task = {
            task: (refusal, result)
            for task, refusal, result in zip(*(column.to_pylist() for column in table.columns), strict=True)
        }
        return [by_task[task] for task in range(n_tasks)]

    @contextlib.contextmanager
    def _carried(self, calls: Calls) -> Iterator[Calls | tuple[str, FileRef]]:
        """What a job carries of its calls: themselves, or the name of the file that they are in if they are
        many; it is removed after the job. Who may only read the workspace carries many, too."""
        root = self.root
        if root is None or calls.n_bytes <= STAGED_BYTES:
            yield calls
            return
        folder = f"{STAGING}/{secrets.token_hex(6)}"
        try:
            yield _staged(calls, root, folder) or calls
        finally:
            remove_folder(root, folder)

    def check_root(self) -> None:
        """Raise WorkspaceError unless the executors see the workspace at the driver's path.

        Asked before the first job of an engine whose tasks may run on other machines, and not again. As
        many tasks as can run at once look for a file that the driver has just written: Spark spreads them,
        so every executor that is there by now is likely to have one. Costs one job; none in a local session.
        """
        root = self.root
        if self._is_seen or not isinstance(root, Path) or session.is_local(self.spark):
            return
        folder = f"{STAGING}/{secrets.token_hex(6)}"
        try:
            nonce = write_file(root, f"{folder}/nonce", [secrets.token_bytes(32)])
            look = task_name(look_for), {"root": str(root), "file": nonce.to_dict()}
            looks = self.run_job([look] * max(self.cores, LOOKS), None)
            answers = list(map(answered, looks))
        finally:
            remove_folder(root, folder)
        blind = sorted({answer.decode() for answer in answers if answer})
        if blind:
            raise WorkspaceError(
                f"Spark's executors on {listing(blind)} do not see the workspace {str(root)!r}, which the "
                f"driver sees. {NOTHING_APPLIED} {SHARED_STORAGE} Next step: move it there, or work without "
                "the cluster (engine 'inline', or a session on this machine)."
            )
        self._is_seen = True

    @property
    def has_cluster(self) -> bool:
        """Whether tasks would run on other machines, as far as is known before there is a session."""
        if self.mode == "inline":
            return False
        return session.expects_cluster() if self._spark is None else not session.is_local(self._spark)

    @staticmethod
    def schema_of(df: DataFrame) -> pa.Schema:
        """The columns and types that Spark gives."""
        from pyspark.sql.pandas.types import to_arrow_schema

        schema: pa.Schema = to_arrow_schema(df.schema)
        return schema

    @property
    def shuffles(self) -> bool:
        """Whether tasks on Spark hand data to each other by its shuffle: where they share no disk."""
        return self.has_cluster

    def exchange(
        self,
        produce: Produce,
        payloads: list[dict[str, Any]],
        consume: Consume,
        consumers: list[dict[str, Any]],
        progress: Progress | None = None,
        *,
        relays: Sequence[tuple[Relay, list[dict[str, Any]]]] = (),
    ) -> list[bytes]:
        """What a function makes of the blocks of each part; one job, by Spark's shuffle.

        `produce` yields (part, block) for each of its payloads; `consume` is given the blocks of one part, in
        any order, and the payload of that part. Between them blocks may pass through `relays`, which are
        given the blocks of a part and yield blocks for the next; a part that has none is passed over. Blocks
        are bytes: the JVM moves and spills them as they are, and has them made again where an executor is
        lost. Errors are as in `run`. Memory of a task: the blocks of one part.
        """
        self.check_root()
        name = task_name(consume)
        steps: list[tuple[Any, list[dict[str, Any]]]] = [(produce, payloads), *relays, (consume, consumers)]
        listed = [Calls.of([(task_name(f), payload) for payload in some]) for f, some in steps]
        with contextlib.ExitStack() as stack:
            making, *passing, meeting = [stack.enter_context(self._carried(calls)) for calls in listed]
            reach = reaches()
            n_tasks = [min(len(some), MOST_PARTITIONS) for _, some in steps]
            tasks = self.spark.range(0, len(payloads), 1, n_tasks[0])
            blocks = tasks.mapInArrow(
                lambda batches: produce_blocks(batches, making, reach), "part int, block binary"
            )
            for n_parts, carried in zip(n_tasks[1:], passing, strict=False):
                blocks = _met(blocks, n_parts).mapInArrow(_relaying(carried, reach), "part int, block binary")
            outcomes = _met(blocks, n_tasks[-1]).mapInArrow(
                lambda batches: consume_blocks(batches, meeting, reach),
                "task long, refusal string, result binary",
            )
            doing = f"task {listing([name for calls in listed for name in calls.functions()])}"
            table = self._collect(outcomes, doing, EngineError, sum(n_tasks), progress)
        results = {row["task"]: answered((row["refusal"], row["result"])) for row in table.to_pylist()}
        missing = [part for part in range(len(consumers)) if part not in results]
        for part in missing:  # parts without a block have no row to come by
            results[part] = checked(consume(iter(()), json.loads(json.dumps(consumers[part]))), name)
        return [results[part] for part in range(len(consumers))]

    def run_over(self, df: DataFrame, function: RowTask, payload: dict[str, Any]) -> list[bytes]:
        """What a function makes of the rows of each partition of a DataFrame, in the order of partitions.

        The rows go through it where they come to be, in one job, and only its answers come here. It is given
        batches and the payload, and yields any number of answers. Those of the attempt that counts are taken,
        whatever others a task has had. Errors are as in `run`.

        Raises SourceError if the DataFrame itself cannot be computed.
        """
        if self._spark is None:
            self._spark = df.sparkSession
        self.check_root()
        call = task_name(function), payload
        reach = reaches()
        answers = df.mapInArrow(
            lambda rows: run_over_rows(rows, call, reach),
            "partition int, part int, refusal string, result binary",
        )
        table = self._collect(answers, "reading a DataFrame", SourceError)
        rows = sorted(table.to_pylist(), key=lambda row: (row["partition"], row["part"]))
        return [answered((row["refusal"], row["result"])) for row in rows]

    def cancel(self) -> None:
        """Cancel the jobs that run now, on whatever thread; there they fail."""
        for group in list(self.groups):
            cancel_group(self.spark, group)

    def close(self) -> None:
        """Let go of the session. One that we started lives on for the next engine, until the process
        ends or `session.stop_session()` is called: starting another costs seconds."""
        self._spark = None

    def _collect(
        self,
        frame: DataFrame,
        doing: str,
        kind: type[HoldfastError],
        n_tasks: int = 0,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Run the one job that computes the frame."""
        self.jobs += 1
        spark, poller = frame.sparkSession, None
        try:
            with _no_context_log(), labelled(spark, f"holdfast: {doing}") as group:
                if progress is not None and not session.is_connect(spark):
                    poller = Poller(spark, group, n_tasks, progress)
                with poller or contextlib.nullcontext(), self._running(group):
                    table = frame.toArrow()
        except Exception as error:
            if hides_interrupt(error):
                raise KeyboardInterrupt from None
            raise spark_failure(error, doing, kind) from None
        if poller is not None and poller.raised is not None:
            raise poller.raised
        if progress is not None:
            progress(n_tasks, n_tasks)
        return table

    @contextlib.contextmanager
    def _running(self, group: str) -> Iterator[None]:
        self.groups.add(group)
        try:
            yield
        finally:
            self.groups.discard(group)


def _staged(calls: Calls, root: Root, folder: str) -> tuple[str, FileRef] | None:
    """Calls in a file that tasks can read; None without the right to write one."""
    try:
        file = calls.staged(root, f"{folder}/calls.arrow")
        if isinstance(root, Bucket):
            root.publish(temporary=True)
    except WorkspaceError as error:
        is_denied = isinstance(error, StoreError) and error.denied
        if not is_denied and getattr(error.__cause__, "errno", None) not in _NO_RIGHT:
            raise
        remove_folder(root, folder)  # or it would go along
        return None
    return str(root), file


def answered(outcome: Outcome) -> bytes:
    """The result of a task; its refusal is raised."""
    refusal, result = outcome
    if refusal is not None:
        raise revive(refusal)
    assert result is not None
    return result


def echo(payload: dict[str, Any]) -> bytes:
    """The task that does nothing: it returns its payload. To warm up, to measure, to test."""
    return json.dumps(payload).encode()


def count_rows(rows: Iterator[Any], payload: dict[str, Any]) -> Iterator[bytes]:
    """The function over rows that counts them. To warm up, to measure, to test."""
    yield str(sum(batch.num_rows for batch in rows)).encode()


def look_for(payload: dict[str, Any]) -> bytes:
    """The task that looks for a file of the workspace: nothing if it is seen, else the host's name."""
    try:
        read_file(root_of(payload["root"]), FileRef.from_dict(payload["file"]))
    except DamagedFileError:
        return socket.gethostname().encode()
    return b""


# --- Inline -----------------------------------------------------------------------------------------------


def _relaying(carried: Calls | tuple[str, FileRef], reach: list[Reach]) -> Callable[[Any], Iterator[Any]]:
    return lambda batches: relay_blocks(batches, carried, reach)


def _met(blocks: DataFrame, n_parts: int) -> DataFrame:
    """Blocks of one part in one partition, behind each other: a task has those of one part at a time.

    Of as many partitions as there are parts each has one; Spark 4.0 hashes parts, so that a third are empty.
    """
    by_number = hasattr(blocks, "repartitionById") and not blocks.sparkSession.version.startswith("4.0.")
    met = blocks.repartitionById(n_parts, "part") if by_number else blocks.repartition(n_parts, "part")
    return met.sortWithinPartitions("part")


def _run_inline(
    function: Task, name: str, texts: list[str], progress: Progress | None, n_threads: int
) -> list[bytes]:
    """On the driver, one by one or on a few threads: kernels let go of the interpreter's lock."""

    def run(text: str) -> bytes:
        try:
            return checked(function(json.loads(text)), name)
        except HoldfastError:
            raise
        except Exception as error:
            raise revive(describe(error, f"task {name}")) from error

    results = []
    with contextlib.ExitStack() as stack:
        if n_threads > 1 and len(texts) > 1:
            outcomes = stack.enter_context(ThreadPoolExecutor(n_threads)).map(run, texts)
        else:
            outcomes = map(run, texts)
        for done in range(len(texts)):
            if progress is not None:
                progress(done, len(texts))
            results.append(next(outcomes))
    if progress is not None:
        progress(len(texts), len(texts))
    return results


# --- Jobs -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _no_context_log() -> Iterator[None]:
    """Keep PySpark from logging a failure of this thread to standard error: we raise it ourselves."""
    from pyspark.logger import PySparkLogger

    thread = threading.get_ident()

    def passes(record: logging.LogRecord) -> bool:
        return record.thread != thread

    loggers = [PySparkLogger.getLogger(f"{kind}QueryContextLogger") for kind in ("DataFrame", "SQL")]
    for logger in loggers:
        logger.addFilter(passes)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(passes)
