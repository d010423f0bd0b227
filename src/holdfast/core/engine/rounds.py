"""Functions that work side by side: what they ask of Spark in a round is one job.

Every class of dependencies looks at a batch in its own way, some in several rounds, and a Spark job costs a
tenth of a second before it does anything. So each function runs on a thread of its own, with an engine that
waits until all the others wait, too, or have ended; then the tasks that all have asked for are one job. Jobs:
as many as the function with the most rounds has, not their sum.

What is done inline is done where it is asked for. Where nothing goes to Spark there are no threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

from holdfast.core.engine.calls import Call
from holdfast.core.engine.engine import Engine, Outcome
from holdfast.core.engine.job_progress import Progress

Result = TypeVar("Result")
# How often jobs are cancelled while functions that were interrupted have not ended.
CANCEL_S = 0.2


def side_by_side(engine: Engine, functions: Sequence[Callable[[Engine], Result]]) -> list[Result]:
    """What the functions return, in their order; each is given the engine to use.

    If some raise, the exception of the first of them is raised when all have ended. If the caller is
    interrupted, which threads do not see, their jobs are cancelled, and they end with these.
    """
    if len(functions) < 2 or not engine.uses_spark:
        return [function(engine) for function in functions]
    engine.check_root()
    gathering = _Gathering(engine, len(functions))

    def run(function: Callable[[Engine], Result]) -> Result:
        try:
            return function(_Asking(engine, gathering))
        finally:
            gathering.leave()

    with ThreadPoolExecutor(len(functions)) as threads:
        running = [threads.submit(run, function) for function in functions]
        try:
            wait(running)
        except BaseException:
            gathering.is_over = True
            while wait(running, CANCEL_S).not_done:
                engine.cancel()
            raise
    return [future.result() for future in running]


class _Asking(Engine):
    """An engine whose jobs wait for those of others."""

    def __init__(self, engine: Engine, gathering: _Gathering) -> None:
        super().__init__(engine.spark, engine.mode, root=engine.root)
        self._is_seen = True  # as was asked before
        self._gathering = gathering
        self.groups = gathering.engine.groups

    def run_job(self, calls: list[Call], progress: Progress | None) -> list[Outcome]:
        return self._gathering.ask(calls, progress)

    def exchange(self, *arguments: Any, **options: Any) -> list[bytes]:
        """A job of its own: nobody else's tasks can be part of it."""
        return self._gathering.engine.exchange(*arguments, **options)


class _Request:
    """The calls of one function in a round, and what came of them."""

    def __init__(self, calls: list[Call], progress: Progress | None) -> None:
        self.calls, self.progress = calls, progress
        self.outcomes: list[Outcome] | None = None
        self.failure: BaseException | None = None


class _Gathering:
    """The requests of a round. Whoever completes it runs it; the others wait meanwhile."""

    def __init__(self, engine: Engine, n_running: int) -> None:
        self.engine, self._n_running = engine, n_running
        self.is_over = False  # no job is to come any more
        self._waiting: list[_Request] = []
        self._changed = threading.Condition()

    def ask(self, calls: list[Call], progress: Progress | None) -> list[Outcome]:
        request = _Request(calls, progress)
        with self._changed:
            self._waiting.append(request)
            self._run_if_complete()
            while request.outcomes is None and request.failure is None:
                self._changed.wait()
        if request.failure is not None:
            raise request.failure
        assert request.outcomes is not None
        return request.outcomes

    def leave(self) -> None:
        """One function has ended: nobody waits for it any more."""
        with self._changed:
            self._n_running -= 1
            self._run_if_complete()

    def _run_if_complete(self) -> None:
        if not self._waiting or len(self._waiting) < self._n_running:
            return
        requests, self._waiting = self._waiting, []
        try:
            if self.is_over:
                raise KeyboardInterrupt
            calls = [call for request in requests for call in request.calls]
            progress = next((request.progress for request in requests if request.progress), None)
            outcomes = iter(self.engine.run_job(calls, progress))
            for request in requests:
                request.outcomes = [next(outcomes) for _ in request.calls]
        except BaseException as failure:
            for request in requests:
                request.failure = failure
        self._changed.notify_all()
