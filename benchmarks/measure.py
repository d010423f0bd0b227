"""Seconds and memory of a piece of work, over the whole process tree.

`Meter` times a block and, on request, watches the memory of this process and all its descendants
(driver, JVM, Python workers) until the block ends. Memory is PSS where the system tells it (Linux):
a page shared by n processes counts 1/n in each, so memory maps of one file are not counted n times.
Elsewhere it is RSS, which overstates; `Meter.memory_kind` says which.

The watcher is a process of its own, not a thread: a kernel that holds the interpreter's lock for
seconds would stop a thread from sampling just when memory peaks. It samples every 100 ms, or
less often when one sample is dear, so that it never takes more than a tenth of a core. A peak between
two samples is missed.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

INTERVAL_S = 0.1
MOST_OF_A_CORE = 0.1
ON_LINUX = sys.platform.startswith("linux")


def process_memory(pid: int) -> int:
    """Bytes of one process: PSS on Linux, else RSS; 0 once it is gone."""
    if ON_LINUX:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
        except (FileNotFoundError, ProcessLookupError):
            return 0
        except PermissionError:  # another user's process: RSS is all one may see
            pass
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0


def tree_memory(root: int, leave_out: int = 0) -> int:
    """Bytes of a process and all its descendants, but for the process `leave_out`."""
    try:
        below = psutil.Process(root).children(recursive=True)
    except psutil.Error:
        return 0
    return sum(process_memory(pid) for pid in (root, *(p.pid for p in below)) if pid != leave_out)


@dataclass
class Meter:
    """Time a block; with `memory=True`, watch its process tree too.

    Timed work that lasts milliseconds is better not watched: sampling a large process disturbs it.

    >>> with Meter() as meter:
    ...     _ = sum(range(1000))
    >>> meter.elapsed_s < 5, meter.peak_bytes
    (True, None)
    """

    memory: bool = False
    elapsed_s: float = 0.0
    peak_bytes: int | None = None
    memory_kind: str = "PSS" if ON_LINUX else "RSS"
    _watcher: subprocess.Popen[str] | None = field(default=None, repr=False)
    _started: float = 0.0

    def __enter__(self) -> Meter:
        if self.memory:
            command = [sys.executable, "-m", "benchmarks.measure", str(os.getpid())]
            root = Path(__file__).parent.parent
            self._watcher = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
            )
            assert self._watcher.stdout is not None
            self._watcher.stdout.readline()  # the first sample is taken: start the clock only now
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.elapsed_s = time.perf_counter() - self._started
        if self._watcher is not None:
            out, _ = self._watcher.communicate("stop\n")
            self.peak_bytes = int(out) if out.strip() else None
            self._watcher = None


def _watch(root: int) -> None:
    """Sample until standard input speaks or closes, then print the peak."""
    peak = tree_memory(root, leave_out=os.getpid())
    print("watching", flush=True)
    pause = INTERVAL_S
    while not select.select([sys.stdin], [], [], pause)[0]:
        started = time.perf_counter()
        peak = max(peak, tree_memory(root, leave_out=os.getpid()))
        pause = max(INTERVAL_S, (time.perf_counter() - started) / MOST_OF_A_CORE)
    print(max(peak, tree_memory(root, leave_out=os.getpid())))


if __name__ == "__main__":
    _watch(int(sys.argv[1]))
