"""Running task functions, inline or on Spark: the same functions on the same payloads.

A *task function* is a function at the top level of an importable module. It takes one dict that JSON
can carry and returns bytes in an encoding of the caller's choice. Data does not travel in payloads:
they name files, and results are small. So a task is the same wherever it runs, and these hold:

- `run` answers in payload order, and costs exactly one Spark job, or none when inline;
- payloads pass through JSON in both cases, so that a task cannot tell where it runs;
- functions travel by name and are imported by the worker, never pickled by value: workers run the
  installed code;
- of several failing tasks the one of the lowest payload index is reported, as when run one by one.

Only what Spark Connect has as well is used (`range`, `mapInArrow`, `toArrow`); progress, which needs a
classic session's status tracker, is left out where there is none.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.errors import EngineError, HoldfastError, SourceError, UsageError, hides_interrupt, shorten
from holdfast.pipeline import session
from holdfast.pipeline.cost import sooner_on_spark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Task = Callable[[dict[str, Any]], bytes]
Progress = Callable[[int, int], None]
Where = Literal["inline", "spark"]
Mode = Literal["auto", "inline", "spark"]

POLL_S = 0.1
PARTITIONS_PER_CORE = 4


class Engine:
    """Runs tasks. Starts Spark only when the first of them is sent there."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        mode: Mode = "auto",
        on_start: Callable[[], None] | None = None,
    ) -> None:
        if mode not in ("auto", "inline", "spark"):
            raise UsageError(f"unknown engine mode {shorten(mode)}. Expected 'auto', 'inline' or 'spark'.")
        self.mode: Mode = mode
        self.jobs = 0
        """Spark jobs launched so far by this engine."""
        self._spark = spark
        self._on_start = on_start  # called before Spark is started, which takes seconds

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
        """How many tasks can run at once. Asks Spark if it runs already, and never starts it."""
        if self._spark is None:
            return session.available_cores()
        if session.is_connect(self._spark):
            told = self._spark.conf.get("spark.default.parallelism", None)
            return int(told) if told else session.available_cores()
        return self._spark.sparkContext.defaultParallelism

    def choose(self, work: float, limit: float) -> Where:
        """Where to do `work` when up to `limit` of it is not worth scheduling; the mode may decide.

        >>> Engine().choose(10, limit=1000), Engine().choose(5000, limit=1000)
        ('inline', 'spark')
        >>> Engine(mode="spark").choose(10, limit=1000)
        'spark'
        """
        if self.mode == "auto":
            return "inline" if work <= limit else "spark"
        return self.mode

    def choose_sooner(self, seconds: float, *, parallel: bool = False) -> Where:
        """Where work of so many seconds of one core is done sooner, a session's start counted; the mode may
        decide. `parallel`: inline tasks would share the machine's cores."""
        if self.mode != "auto":
            return self.mode
        started = self._spark is not None or session.is_there()
        local_cores = session.available_cores() if parallel else 1
        sooner = sooner_on_spark(seconds, started=started, cores=self.cores, local_cores=local_cores)
        return "spark" if sooner else "inline"

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
        `parallel` lets inline tasks share the machine's cores; worth it when they are mostly kernels.
        `progress(done, total)` is called from time to time, perhaps from another thread.
        """
        name = task_name(function)
        texts = [json.dumps(payload) for payload in payloads]
        if not texts:
            return []
        if where == "inline":
            return _run_inline(function, name, texts, progress, self.cores if parallel else 1)
        return self._run_on_spark(name, texts, progress)

    def _run_on_spark(self, name: str, texts: list[str], progress: Progress | None) -> list[bytes]:
        n_tasks = len(texts)
        # Some payloads to a partition where there are many: every Spark task has a cost of its own.
        n_partitions = min(n_tasks, PARTITIONS_PER_CORE * self.cores)
        tasks = self.spark.range(0, n_tasks, 1, n_partitions)  # a row's id is the payload's index
        outcomes = tasks.mapInArrow(
            lambda batches: run_partition(batches, name, texts), "task long, failure string, result binary"
        )
        table = self._collect(outcomes, f"task {name}", EngineError, n_partitions, progress)
        by_task = {
            task: (failure, result)
            for task, failure, result in zip(*(column.to_pylist() for column in table.columns), strict=True)
        }
        for task in range(n_tasks):
            failure = by_task[task][0]
            if failure is not None:
                raise _revive(failure, f"task {name}")
        return [by_task[task][1] for task in range(n_tasks)]

    def stage_dataframe(self, df: DataFrame, folder: Path) -> list[tuple[str, int, int]]:
        """Write the DataFrame's partitions as Arrow IPC files into a folder that the workers reach too.

        Answers with (path, n_rows, n_bytes) of each file, in order of partition; an empty partition has
        none. Column types are the ones that Spark gives. Names are unique, so a second attempt at a
        task writes beside the first, and only the files named in the answer count.

        Raises SourceError if the DataFrame itself cannot be computed.
        """
        place = str(folder)
        files = df.mapInArrow(
            lambda batches: stage_partition(batches, place),
            "partition int, path string, n_rows long, n_bytes long, failure string",
        )
        table = self._collect(files, "reading a DataFrame", SourceError)
        rows = sorted(table.to_pylist(), key=lambda row: row["partition"])
        for row in rows:
            if row["failure"] is not None:
                raise _revive(row["failure"], f"writing a partition to {place}")
        return [(row["path"], row["n_rows"], row["n_bytes"]) for row in rows]

    def close(self) -> None:
        """Let go of the session. One that we started lives on for the next engine, until the process
        ends or `session.stop_session()` is called: starting another costs seconds."""
        self._spark = None

    def _collect(
        self,
        frame: DataFrame,
        doing: str,
        failure: type[HoldfastError],
        n_tasks: int = 0,
        progress: Progress | None = None,
    ) -> pa.Table:
        """Run the one job that computes the frame."""
        self.jobs += 1
        polled = progress is not None and not session.is_connect(frame.sparkSession)
        poller = _Poller(frame.sparkSession, n_tasks, progress) if polled and progress else None
        try:
            with _no_context_log(), poller or contextlib.nullcontext():
                table = frame.toArrow()
        except Exception as error:
            if hides_interrupt(error):
                raise KeyboardInterrupt from None
            raise _spark_failure(error, doing, failure) from None
        if poller is not None and poller.raised is not None:
            raise poller.raised
        if progress is not None:
            progress(n_tasks, n_tasks)
        return table


def task_name(function: Task) -> str:
    """The name under which workers import a task function.

    >>> task_name(echo)
    'holdfast.pipeline.engine:echo'
    """
    module = getattr(function, "__module__", None)
    qualname = getattr(function, "__qualname__", None)
    if not module or not qualname or module == "__main__" or "<" in qualname:
        raise UsageError(
            f"{function!r} cannot be a task: workers import tasks by name, so it must be a function at the "
            "top level of an importable module."
        )
    return f"{module}:{qualname}"


def import_task(name: str) -> Task:
    """The function of a task name."""
    module, _, qualname = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    task: Task = found
    return task


def echo(payload: dict[str, Any]) -> bytes:
    """The task that does nothing: it returns its payload. To warm up, to measure, to test."""
    return json.dumps(payload).encode()


# --- Inline -----------------------------------------------------------------------------------------------


def _run_inline(
    function: Task, name: str, texts: list[str], progress: Progress | None, n_threads: int
) -> list[bytes]:
    """On the driver, one by one or on a few threads: kernels let go of the interpreter's lock."""

    def run(text: str) -> bytes:
        try:
            return _checked(function(json.loads(text)), name)
        except HoldfastError:
            raise
        except Exception as error:
            raise _task_failure(name, error) from error

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


def _checked(result: object, name: str) -> bytes:
    if not isinstance(result, bytes):
        raise TypeError(f"task {name} returned {type(result).__name__}, not bytes")
    return result


# --- In the worker ----------------------------------------------------------------------------------------


def run_partition(batches: Iterator[pa.RecordBatch], name: str, texts: list[str]) -> Iterator[pa.RecordBatch]:
    """Run the tasks whose indexes come in; a failure is an outcome too, so that Spark sees none."""
    import pyarrow as pa

    for batch in batches:
        tasks: Any = batch.column(0).to_pylist()
        for task in tasks:
            failure: str | None = None
            result: bytes | None = None
            try:
                result = _checked(import_task(name)(json.loads(texts[task])), name)
            except Exception as error:
                failure = _describe(error)
            yield pa.record_batch(
                [
                    pa.array([task], pa.int64()),
                    pa.array([failure], pa.string()),
                    pa.array([result], pa.binary()),
                ],
                names=["task", "failure", "result"],
            )


def stage_partition(batches: Iterator[pa.RecordBatch], place: str) -> Iterator[pa.RecordBatch]:
    """Write one partition to one new file, and tell its name and size."""
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    path = Path(place) / f"part-{partition:05d}-{uuid.uuid4().hex}.arrow"
    failure: str | None = None
    n_rows = 0
    writer = None
    sink = None
    try:
        # Only the writing is guarded: an error while reading is the DataFrame's own, and Spark reports it.
        for batch in batches:
            if batch.num_rows == 0 or failure is not None:
                continue
            try:
                if writer is None:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    sink = pa.OSFile(str(path), "wb")
                    writer = pa.ipc.new_file(sink, batch.schema)
                writer.write_batch(batch)
                n_rows += batch.num_rows
            except Exception as error:
                failure = _describe(error)
    finally:
        try:
            if writer is not None:
                writer.close()
            if sink is not None:
                sink.close()
        except Exception as error:  # the disk may be full only now
            failure = failure or _describe(error)
    if writer is None and failure is None:
        return
    n_bytes = path.stat().st_size if failure is None else 0
    yield pa.record_batch(
        [
            pa.array([partition], pa.int32()),
            pa.array([str(path)], pa.string()),
            pa.array([n_rows], pa.int64()),
            pa.array([n_bytes], pa.int64()),
            pa.array([failure], pa.string()),
        ],
        names=["partition", "path", "n_rows", "n_bytes", "failure"],
    )


# --- Failures, there and back -----------------------------------------------------------------------------


def _describe(error: Exception) -> str:
    """An exception as text that the driver can revive."""
    kind = type(error)
    return json.dumps(
        {
            "module": kind.__module__,
            "name": kind.__qualname__,
            "own": isinstance(error, HoldfastError),
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
        }
    )


def _revive(text: str, doing: str) -> HoldfastError:
    told = json.loads(text)
    if told["own"]:
        with contextlib.suppress(ImportError, AttributeError):
            kind: Any = import_task(f"{told['module']}:{told['name']}")
            # Not kind(message): a subclass may take other arguments.
            error: HoldfastError = kind.__new__(kind, told["message"])
            error.args = (told["message"],)
            error.add_note("Raised in a Spark task:\n" + told["traceback"])
            return error
    return _engine_error(doing, told["name"], told["message"], told["traceback"])


def _task_failure(name: str, error: Exception) -> EngineError:
    return _engine_error(
        f"task {name}", type(error).__qualname__, str(error), "".join(traceback.format_exception(error))
    )


def _engine_error(doing: str, kind: str, message: str, trace: str) -> EngineError:
    last = [line.strip() for line in trace.splitlines() if line.strip().startswith("File ")][-1:]
    where = f" ({last[0]})" if last else ""
    error = EngineError(f"{doing} failed: {kind}: {message[:500]}{where}")
    error.add_note("Raised in a task:\n" + trace)
    return error


def _spark_failure(error: Exception, doing: str, kind: type[HoldfastError]) -> HoldfastError:
    """A job that failed as a whole: its cause in one line. Spark's own report stays in `__context__`."""
    text = str(error)
    if "No module named 'holdfast'" in text:
        return EngineError(
            f"{doing} failed: Spark's Python workers cannot import holdfast. "
            "Install it on the cluster's nodes, or add it with spark.addArtifacts."
        )
    if "Python worker exited unexpectedly" in text:
        return EngineError(
            f"{doing} failed: a Python worker died. It most likely ran out of memory: "
            "use fewer cores or give the machine more memory."
        )
    return kind(f"{doing} failed on Spark: {_cause(text) or type(error).__name__}")


def _cause(report: str) -> str:
    """The line of Spark's report that says what happened: the end of the Python traceback, else the start.

    >>> _cause("An exception was thrown.\\nTraceback (most recent call last):\\n  File x\\nKeyError: 'a'\\n")
    "KeyError: 'a'"
    """
    _, mark, trace = report.rpartition("Traceback (most recent call last):")
    if mark:
        raised = [line for line in trace.splitlines() if line and not line[0].isspace()]
        if raised:
            return raised[0][:500]
    lines = [line.strip() for line in report.splitlines() if line.strip()]
    return lines[0][:500] if lines else ""


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


# --- Progress ---------------------------------------------------------------------------------------------

_JOB_GROUP = "spark.jobGroup.id"


class _Poller:
    """Calls `progress` from a thread while the one job of the `with` body runs.

    The job is known by its group. If the caller has set one (notebooks do, to cancel by it), that one
    stays, and only jobs that come after now are counted. What `progress` raises ends the polling, not
    the job, and is kept in `raised`.
    """

    def __init__(self, spark: SparkSession, n_tasks: int, progress: Progress) -> None:
        self.raised: Exception | None = None
        self._context = spark.sparkContext
        self._n_tasks = n_tasks
        self._progress = progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="holdfast-progress", daemon=True)

    def __enter__(self) -> None:
        self._tracker = self._context.statusTracker()
        callers_group = self._context.getLocalProperty(_JOB_GROUP)
        self._own_group = callers_group is None
        self._group = callers_group or f"holdfast-{uuid.uuid4().hex}"
        if self._own_group:
            self._context.setLocalProperty(_JOB_GROUP, self._group)
        self._before = frozenset(self._tracker.getJobIdsForGroup(self._group))
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._own_group:
            with contextlib.suppress(Exception):  # the JVM may be gone, and that is reported elsewhere
                self._context.setLocalProperty(_JOB_GROUP, None)  # type: ignore[arg-type]

    def _poll(self) -> None:
        last = -1
        while not self._over.wait(POLL_S):
            try:
                done = min(self._completed(), self._n_tasks)
            except Exception:
                return  # the session is going down; the job itself will tell
            if done > last:
                last = done
                try:
                    self._progress(done, self._n_tasks)
                except Exception as error:
                    self.raised = error
                    return

    def _completed(self) -> int:
        n_completed = 0
        for job in set(self._tracker.getJobIdsForGroup(self._group)) - self._before:
            known = self._tracker.getJobInfo(job)
            for stage in known.stageIds if known is not None else ():
                status = self._tracker.getStageInfo(stage)
                n_completed += status.numCompletedTasks if status is not None else 0
        return n_completed
