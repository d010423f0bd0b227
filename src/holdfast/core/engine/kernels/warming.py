"""Compile every kernel into the cache on disk: `python -m holdfast.kernels`.

Part of the set-up, so that neither the first batch nor each of Spark's workers pays for it. Run by whoever
installs, it serves all users of the installation. A module takes part by having a function `warm_up()` that
calls its kernels once per signature on tiny arrays. Modules are compiled beside each other, on all cores,
long ones first: minutes of work.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, wait

from holdfast.core.engine.kernels import activity
from holdfast.core.engine.kernels.cache_folders import KERNELS, places

SOURCES = KERNELS.parents[2]
SAY_AFTER_S = 2.0
"""In a pipe a line is due after so long; on a terminal there is one line, always up to date."""
SAY_AGAIN_S = 10.0


def kernel_modules() -> list[str]:
    """The names of all modules that have kernels, long ones first."""
    sources = {
        ".".join(("holdfast", *path.relative_to(SOURCES).with_suffix("").parts)): path.read_text(
            encoding="utf-8"
        )
        for path in SOURCES.rglob("kernels/*.py")
    }
    names = [name for name, source in sources.items() if "\ndef warm_up(" in source]
    return sorted(names, key=lambda name: (-len(sources[name]), name))


def warm(name: str) -> None:
    """Compile the kernels of a module, or load them if they are there."""
    importlib.import_module(name).warm_up()


def main() -> None:
    started = time.perf_counter()
    folder = places().writable
    if folder is None:
        sys.exit("kernels: no folder can be written. Set NUMBA_CACHE_DIR to one that can.")
    os.umask(0o022)  # beside the sources they are for all users; a folder of one user's own is closed anyway
    names = kernel_modules()
    terminal = sys.stderr.isatty()
    begin, finish = ("\r\033[K", "") if terminal else ("", "\n")
    n_ready, said = -1, started
    activity.watch_workers()
    # Spawned: a fork would copy whatever threads the importing process has.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting = {pool.submit(warm, name) for name in names}
        while waiting:
            done, waiting = wait(waiting, timeout=0.2)
            for run in done:
                run.result()
            now = time.perf_counter()
            is_news = n_ready != len(names) - len(waiting)
            if now - said >= (SAY_AFTER_S if is_news else SAY_AGAIN_S) or (terminal and now - said >= 1):
                n_ready, said = len(names) - len(waiting), now
                kernels = f"{activity.compiling() or 0} so far"
                words = f"compiling kernels, once: {kernels}, {n_ready} of {len(names)} modules ready"
                print(f"{begin}{words}", end=finish, file=sys.stderr, flush=True)
    print(begin if terminal else "", end="", file=sys.stderr, flush=True)
    print(f"kernels: {len(names)} modules ready in {folder} ({time.perf_counter() - started:.1f} s)")
