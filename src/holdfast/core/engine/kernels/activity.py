"""How much is being compiled, for those who show progress.

The first use of a kernel compiles it, which takes seconds. Numba tells of it while it happens
(`compiling.py` passes it on to here); whoever shows progress asks `compiling()` from time to time. Spark's
workers compile in processes of their own: of them the entries are seen that they leave in the cache.

Nothing here imports Numba, so that asking costs nothing where no kernel is used.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator

from holdfast.core.engine.kernels.cache_folders import SUFFIX, places

PATIENCE_S = 1.0
"""Compiling for less than this is not worth a word."""
LINGER_S = 0.5
"""Between two kernels: still compiling."""
WORKERS_LINGER_S = 10.0
"""Workers are seen only when a kernel is ready, and one may take seconds."""
LOOK_AGAIN_S = 1.0

_depth = 0
_n_compiled = 0
_seconds = 0.0
_since: float | None = None
_until = -LINGER_S

_expected: int | None = None

_entries_here: set[str] = set()
_entries_before: set[str] | None = None
_n_by_workers = 0
_workers_until = -WORKERS_LINGER_S
_looked = 0.0


def begin() -> None:
    """A kernel starts to be compiled. Those that it calls are compiled inside of it, one at a time."""
    global _depth, _since
    _depth += 1
    if _depth == 1:
        _since = time.monotonic()


def end() -> None:
    """It is compiled, or has failed."""
    global _depth, _n_compiled, _seconds, _since, _until
    _depth -= 1
    _n_compiled += 1
    if _depth == 0 and _since is not None:
        _until = time.monotonic()
        _seconds += _until - _since
        _since = None


def entry_written(name: str) -> None:
    """An entry of the cache is this process's own."""
    _entries_here.add(name)


def watch_workers() -> None:
    """From now on, entries that other processes write into the cache count as work of ours."""
    global _entries_before
    _entries_before = _entries()


@contextlib.contextmanager
def expecting(n_kernels: int) -> Iterator[None]:
    """Other processes compile so many kernels while this one waits."""
    global _expected, _since
    watch_workers()
    _expected, since = n_kernels, _since
    _since = _since or time.monotonic()
    try:
        yield
    finally:
        _expected, _since = None, since


def expected() -> int | None:
    """How many kernels are compiled in all, if that is known."""
    return _expected


def compiling() -> int | None:
    """How many kernels have been compiled so far, if that is what is going on; else None."""
    now = time.monotonic()
    since = _since  # another thread's
    here = since is not None or now - _until < LINGER_S
    seconds = _seconds + (now - since if since is not None else 0.0)
    n_by_workers = _by_workers(now)
    if (here and seconds >= PATIENCE_S) or now - _workers_until < WORKERS_LINGER_S:
        return _n_compiled + n_by_workers
    return None


def _by_workers(now: float) -> int:
    global _n_by_workers, _workers_until, _looked
    if _entries_before is not None and now - _looked >= LOOK_AGAIN_S:
        _looked = now
        names = _entries() - _entries_before - _entries_here
        n_entries = len(names) if _expected is None else min(_expected, len({_kernel(n) for n in names}))
        if n_entries > _n_by_workers:
            _workers_until = now
        _n_by_workers = n_entries
    return _n_by_workers


def _kernel(entry: str) -> str:
    """Of which kernel an entry is: one may have several, for other types of arguments."""
    return entry.partition(f".{sys.implementation.cache_tag}.")[0]


def _entries() -> set[str]:
    folder = places().writable
    if folder is None:
        return set()
    try:
        return {name for name in os.listdir(folder) if name.endswith(SUFFIX)}
    except OSError:
        return set()
