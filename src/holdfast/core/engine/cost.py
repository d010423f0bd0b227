"""Whether work is done sooner on Spark: its start, its jobs and the cores of both sides, in seconds."""

from __future__ import annotations

import os
from pathlib import Path

# What Spark adds to the work (2 cores, shared): starting a session takes 3.7 s and its first job 5.7 s, in
# which workers start and load kernels; a later job takes 0.2 to 0.4 s.
START_S, JOB_S = 9.4, 0.3
# Of inline tasks that share the cores, the part that only one of them can do at a time: what is not spent in
# kernels. Of matching and drawing a lake it is 0.05 to 0.4, of indexing 0.5 to 0.7, much of it in NumPy.
ALONE = 0.3


def sooner_on_spark(seconds: float, *, started: bool, cores: int, local_cores: int) -> bool:
    """Whether `cores` of Spark are done before this process with work of so many seconds of one core.

    `local_cores` share the work inline; 1 where its tasks run one after the other.

    >>> sooner_on_spark(2.7, started=False, cores=2, local_cores=1)
    False
    >>> sooner_on_spark(2.7, started=True, cores=2, local_cores=1)
    True
    >>> sooner_on_spark(60, started=False, cores=2, local_cores=1)
    True
    >>> sooner_on_spark(60, started=False, cores=2, local_cores=2)
    False
    """
    inline = seconds * (ALONE + (1 - ALONE) / local_cores) if local_cores > 1 else seconds
    return (0 if started else START_S) + JOB_S + seconds / cores < inline


def available_cores() -> int:
    """The cores that this process may use: its affinity, cut by a container's quota."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        cores = min(cores, max(1, -(-int(quota) // int(period))))
    except (OSError, ValueError):  # no cgroup v2, or quota "max"
        pass
    return cores
