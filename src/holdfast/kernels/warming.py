"""Compile every kernel into Numba's on-disk cache: `python -m holdfast.kernels`.

Part of the set-up, so that neither the first batch nor each of Spark's workers pays for it. A module
takes part by having a function `warm_up()` that calls its kernels once per signature on tiny arrays.
Modules are compiled beside each other, on all cores: minutes of work, of which each file of the cache
belongs to one module.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed

import holdfast.kernels


def warm(name: str) -> bool:
    """Compile the kernels of a module; whether it has any."""
    warm_up = getattr(importlib.import_module(name), "warm_up", None)
    if warm_up is None:
        return False
    warm_up()
    return True


def main() -> None:
    started = time.perf_counter()
    found = pkgutil.iter_modules(holdfast.kernels.__path__, holdfast.kernels.__name__ + ".")
    names = [m.name for m in found if m.name.rpartition(".")[2] not in ("__main__", "warming")]
    n_warmed = 0
    # Spawned: a fork would copy whatever threads the importing process has.
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        runs = {pool.submit(warm, name): name for name in names}
        for done, run in enumerate(as_completed(runs), 1):
            n_warmed += run.result()
            if sys.stderr.isatty():
                told = f"kernels: compiled {done} of {len(names)} modules"
                print(f"\r\033[K{told}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"kernels: {n_warmed} modules ready ({time.perf_counter() - started:.1f} s)")
