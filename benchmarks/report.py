"""What the benchmarks share: where and with what they ran, and how their reports write figures."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
CASE_TIMEOUT_S = 3_600.0
Json = dict[str, Any]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- processes ----------------------------------------------------------------------------------


def run_process_group(command: list[str]) -> int:
    """Run a child with its own process group and stop the whole group (a JVM too) if it takes too long."""
    child = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        return child.wait(CASE_TIMEOUT_S)
    except BaseException as stop:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if isinstance(stop, subprocess.TimeoutExpired):
            return -signal.SIGKILL
        raise


# --- where and with what ------------------------------------------------------------------------


def machine() -> Json:
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()}",
        "load_at_start": round(os.getloadavg()[0], 2),
    }


def versions(peers: tuple[str, ...] = ("desbordante",)) -> dict[str, str]:
    """Of holdfast, what it stands on, and the `peers`."""
    found = {"python": platform.python_version()}
    for package in ("holdfast", "pyspark", "numpy", "numba", "pyarrow", "deltalake", *peers):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        git = ["git", "-C", str(ROOT)]
        commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True)
        if commit.returncode == 0:
            found["commit"] = commit.stdout.strip() + (" with changes" if changed.stdout.strip() else "")
    return found


def busy(results: Json) -> list[str]:
    """A warning if other work ran on the machine when the run began: its times are then not to be trusted."""
    load = results["machine"].get("load_at_start", 0)
    if load < 0.7:
        return []
    return [
        f"**The machine was busy (load {load} at the start): take these times as upper bounds only.**",
        "",
    ]


# --- figures ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    what: str
    reach: str
    reached: str
    met: bool | None  # None: not measured

    @property
    def verdict(self) -> str:
        return {True: "yes", False: "**no**", None: "not measured"}[self.met]


def short(n: int) -> str:
    """
    >>> short(1), short(1_000), short(32_561), short(10_000_000)
    ('1', '1,000', '33 k', '10 M')
    """
    if n >= 1_000_000:
        return f"{n / 1_000_000:g} M"
    return f"{n / 1_000:.0f} k" if n >= 10_000 else f"{n:,}"


def seconds_text(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def peer_seconds(run: Json | None) -> tuple[float | None, bool]:
    """Load and run together; and whether that is only a lower bound (it was stopped)."""
    if run is None or run["outcome"] == "failed":
        return None, False
    if run["outcome"] == "done":
        return run["total_s"], False
    return run["elapsed_s"], True


def peer_text(run: Json | None) -> str:
    if run is None:
        return "-"
    if run["outcome"] == "done":
        load, rest = seconds_text(run["load_s"]), seconds_text(run["run_s"])
        return f"{load} + {rest} ({run['peak_rss'] / 1e9:.1f} GB)"
    return run["limit"] or "failed"


# --- plots --------------------------------------------------------------------------------------


def spread(heights: list[float], gap: float) -> list[float]:
    """Label heights near the given ones, at least `gap` apart, in the same order.

    >>> spread([0.0, 0.1, 5.0], 1.0)
    [-0.45, 0.55, 5.0]
    """
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    groups: list[tuple[float, list[int]]] = []  # (middle, members), apart from each other
    for i in order:
        groups.append((heights[i], [i]))
        while len(groups) > 1:
            (low, first), (high, second) = groups[-2], groups[-1]
            if high - low >= gap * (len(first) + len(second)) / 2:
                break
            members = first + second
            groups[-2:] = [(sum(heights[m] for m in members) / len(members), members)]
    placed = [0.0] * len(heights)
    for middle, members in groups:
        for rank, member in enumerate(members):
            placed[member] = round(middle + (rank - (len(members) - 1) / 2) * gap, 6)
    return placed


def run_plainly(
    name: str,
    argv: list[str] | None,
    sizes: tuple[int, int],
    run: Callable[[int, Path], list[Json]],
    write_results: Callable[[Json, Path, str], None],
    description: str | None,
) -> int:
    """The command line of a benchmark without peers: a table of so many rows, or fewer to be quick."""
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}", description=description)
    parser.add_argument("--rows", type=int, default=sizes[0])
    parser.add_argument("--quick", action="store_true", help=f"{sizes[1]:,} rows")
    parser.add_argument("--no-peers", action="store_true", help="there are none")
    parser.add_argument("--timeout", type=float, help="of peers; there are none")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help=f"write the report again from {name}.json")
    args = parser.parse_args(argv)
    stem = f"{name}-quick" if args.quick else name
    if args.render:
        write_results(json.loads((args.results / f"{stem}.json").read_text()), args.results, stem)
        return 0
    results: Json = {
        "command": shlex.join(["python", "-m", "benchmarks", name, *argv]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(),
        "n_rows": sizes[1] if args.quick else args.rows,
    }
    for line in busy(results):
        say(line)
    with tempfile.TemporaryDirectory(prefix=f"holdfast-{name}-", ignore_cleanup_errors=True) as scratch:
        results["cases"] = run(results["n_rows"], Path(scratch))
    write_results(results, args.results, stem)
    return 0
