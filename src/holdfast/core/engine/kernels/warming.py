"""Compile every kernel into the cache on disk: `python -m holdfast.kernels`.

Part of the set-up, so that neither the first batch nor each of Spark's workers pays for it. Run by whoever
installs, it serves all users of the installation. A module takes part by having a function `warm_up()` that
calls its kernels once per signature on tiny arrays. Modules are compiled beside each other, on all cores,
long ones first: minutes of work. `python -m holdfast.kernels MODULE ...` compiles those of some modules.

`python -m holdfast.kernels --ship` compiles them for the baseline of processors of this kind, into the
folder that wheels take along (`make wheel`): then nothing is compiled where such a wheel is installed.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, wait
from importlib import metadata
from pathlib import Path

from holdfast.core.engine.kernels import activity
from holdfast.core.engine.kernels.cache_folders import BESIDE, KERNELS, SHIPPED, SUFFIX, places

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


def n_ready() -> tuple[int, int]:
    """How many modules are compiled for this processor, and how many have kernels. Imports all of them."""
    from holdfast.core.engine.kernels.compiling import modules_ready

    names = kernel_modules()
    for name in names:
        importlib.import_module(name)
    return len(modules_ready().intersection(names)), len(names)


def ship() -> None:
    """Compile all kernels for the baseline; the tag of wheels that have them is beside them.

    Where Numba's own wheel can be installed, ours can.
    """
    from holdfast.core.engine.kernels.compiling import baselines

    if not baselines():
        sys.exit("kernels: this processor is less than the baseline; kernels for it cannot be tried here.")
    shutil.rmtree(SHIPPED, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        chosen = {"NUMBA_CACHE_DIR": folder, "NUMBA_CPU_NAME": baselines()[0], "NUMBA_CPU_FEATURES": ""}
        subprocess.run([sys.executable, "-m", "holdfast.kernels"], env={**os.environ, **chosen}, check=True)
        entries = list(Path(folder).rglob(f"*{SUFFIX}"))
        SHIPPED.mkdir()
        for entry in entries:
            shutil.copyfile(entry, SHIPPED / entry.name)
    wheel = metadata.distribution("numba").read_text("WHEEL") or ""
    tags = [line.partition(":")[2].strip() for line in wheel.splitlines() if line.startswith("Tag:")]
    (SHIPPED / "wheel-tag.txt").write_text(f"{tags[-1]}\n", encoding="utf-8")
    print(f"kernels: {len(entries)} entries for {baselines()[0]} in {SHIPPED} ({tags[-1]})")


def main() -> None:
    if sys.argv[1:] == ["--ship"]:
        ship()
        return
    started = time.perf_counter()
    folder = places().writable
    if folder is None:
        sys.exit("kernels: no folder can be written. Set NUMBA_CACHE_DIR to one that can.")
    os.umask(0o022)  # beside the sources they are for all users; a folder of one user's own is closed anyway
    names = [name for name in kernel_modules() if not sys.argv[1:] or name in sys.argv[1:]]
    terminal = sys.stderr.isatty()
    begin, finish = ("\r\033[K", "") if terminal else ("", "\n")
    n_ready, said = -1, started
    activity.watch_workers()
    os.environ[BESIDE] = "1"  # what the workers meet they compile themselves: all cores are busy
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
