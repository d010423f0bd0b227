"""The process that Spark forks its Python workers from, with the kernels loaded beforehand.

Importing Numba takes 2 s and every worker process would pay it again, after each minute of idleness
too, since Spark then lets its workers go. The daemon lives as long as the session, pays once, and its
children share the pages. `launch.spark_settings` names this module in `spark.python.daemon.module`,
for local sessions only: a cluster's own daemon is not ours to replace.

Two rules keep the fork safe and the protocol clean:

- nothing loaded here may leave a thread running that could hold a lock while we fork: a fork copies
  locks, but not the threads that would release them. Kernels are compiled without `parallel=True`, so
  calling them starts none. Importing pyarrow starts one, jemalloc's, which the allocator itself takes
  care of at a fork on Linux; elsewhere pandas and pyarrow are left to the worker, as PySpark does;
- nothing may print: Spark reads the daemon's address from its standard output.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import warnings
from collections.abc import Iterator

PRELOAD_SWITCH = "HOLDFAST_PRELOAD"
"""Set to 0, workers start without the kernels: to measure what the preloading is worth."""


def preload() -> None:
    """Import the kernels and load what the cache has of them. What it lacks is compiled by who needs it."""
    if sys.platform == "linux":
        importlib.import_module("pandas")  # and with it pyarrow: together 1 s in every worker
        importlib.import_module("pyspark.worker")
    from holdfast.core.engine.kernels import compiling, warming

    for name in warming.kernel_modules():
        # A module that fails here fails again in the task that needs it, where the error is reported;
        # here it would only end the daemon, and Spark would say "failed to connect".
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    with contextlib.suppress(Exception):
        compiling.load_entries()


@contextlib.contextmanager
def _standard_output_kept_clean() -> Iterator[None]:
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def main() -> None:
    if os.environ.get(PRELOAD_SWITCH, "1") != "0":
        with _standard_output_kept_clean(), contextlib.suppress(ImportError):
            preload()
    from pyspark.daemon import manager

    # A worker collects garbage after every task. Frozen, what we loaded is not looked at again (0.1 s
    # per task otherwise), and its pages stay shared.
    gc.freeze()

    # Python 3.12 on warns of any thread at a fork; under PYTHONWARNINGS=error that would be our end.
    warnings.filterwarnings("ignore", message=".*multi-threaded", category=DeprecationWarning)
    manager()


if __name__ == "__main__":
    main()
