"""How far a Spark job has come: asked from a thread while it runs."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
"""Called with (tasks done, all tasks)."""

POLL_S = 0.1
_JOB_GROUP = "spark.jobGroup.id"


class Poller:
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
