"""What Spark shows of a job, how far it has come, and its end if its caller is interrupted."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from holdfast.core.engine import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
"""Called with (tasks done, all tasks)."""

POLL_S = 0.1
_JOB_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"


@contextlib.contextmanager
def labelled(spark: SparkSession, description: str) -> Iterator[str]:
    """The one job of the `with` body: described in Spark's pages, in a group by which it is known. Through
    Connect these are two tags.

    If the body is interrupted, the job is cancelled. If the caller has set a group (notebooks do, to cancel
    by it), that one stays.
    """
    if session.is_connect(spark):
        # The server describes its jobs by their plans; tags are what it shows of ours, and have no commas.
        tag, said = f"holdfast-{uuid.uuid4().hex}", description.replace(",", ";")
        spark.addTag(tag)
        spark.addTag(said)
        try:
            yield tag
        except Exception:
            raise
        except BaseException:
            cancel_group(spark, tag)
            raise
        finally:
            spark.removeTag(said)
            spark.removeTag(tag)
        return
    context = spark.sparkContext
    callers = {name: context.getLocalProperty(name) for name in (_JOB_GROUP, _DESCRIPTION)}
    group = callers[_JOB_GROUP] or f"holdfast-{uuid.uuid4().hex}"
    context.setLocalProperty(_JOB_GROUP, group)
    if callers[_DESCRIPTION] is None:
        context.setLocalProperty(_DESCRIPTION, description)
    try:
        yield group
    except Exception:
        raise
    except BaseException:
        cancel_group(spark, group)
        raise
    finally:
        with contextlib.suppress(Exception):  # the JVM may be gone, and that is reported elsewhere
            for name, value in callers.items():
                context.setLocalProperty(name, value)  # type: ignore[arg-type]


def cancel_group(spark: SparkSession, group: str) -> None:
    """Cancel the jobs of a group, as `labelled` calls it. What fails is left to who runs them."""
    with contextlib.suppress(Exception):
        if session.is_connect(spark):
            spark.interruptTag(group)
        else:
            spark.sparkContext.cancelJobGroup(group)


class Poller:
    """Calls `progress` from a thread while the one job of the `with` body runs.

    The job is one of a group; only those that come after now are counted. What `progress` raises ends the
    polling, not the job, and is kept in `raised`.
    """

    def __init__(self, spark: SparkSession, group: str, n_tasks: int, progress: Progress) -> None:
        self.raised: Exception | None = None
        self._tracker = spark.sparkContext.statusTracker()
        self._group = group
        self._before = frozenset(self._tracker.getJobIdsForGroup(group))
        self._n_tasks = n_tasks
        self._progress = progress
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="holdfast-progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

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
