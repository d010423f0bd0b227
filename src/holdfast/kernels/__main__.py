"""Compile every kernel into Numba's on-disk cache: `python -m holdfast.kernels`.

Part of the set-up, so that neither the first batch nor each of Spark's workers pays for it. A module
takes part by having a function `warm_up()` that calls its kernels once per signature on tiny arrays.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time

import holdfast.kernels


def main() -> None:
    started = time.perf_counter()
    warmed = []
    for found in pkgutil.iter_modules(holdfast.kernels.__path__, holdfast.kernels.__name__ + "."):
        if found.name.endswith(".__main__"):
            continue
        warm_up = getattr(importlib.import_module(found.name), "warm_up", None)
        if warm_up is not None:
            name = found.name.rpartition(".")[2]
            if sys.stderr.isatty():
                print(f"\r\033[Kkernels: compiling {name}", end="", file=sys.stderr, flush=True)
            warm_up()
            warmed.append(name)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    print(f"kernels: {', '.join(warmed) or 'none'} ready ({time.perf_counter() - started:.1f} s)")


if __name__ == "__main__":
    main()
