"""What a user would do instead: desbordante's key discovery (C++), from scratch, on a CSV.

Each run is a fresh process, watched from outside: one that passes its time or memory is stopped,
and that is its result ("> 300 s"), not an error. Load (parse the CSV, build its indexes) and run
(find the keys) are timed apart; both are what a user waits for.

desbordante compares cells as text, with empty cells (NULL) equal, as holdfast's default does.

    python -m benchmarks.peers HPIValid table.csv [--timeout 300] [--keys keys.json]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

ALGORITHMS = ("HPIValid", "HyUCC")
TIMEOUT_S = 300.0
KEEP_FREE_BYTES = 1_500_000_000
_POLL_S = 0.1


@dataclass(frozen=True)
class PeerRun:
    """One run. `outcome` is "done", "timeout", "memory" or "failed"; figures not reached are None."""

    algorithm: str
    csv: str
    outcome: str
    elapsed_s: float  # of the process, start-up included
    load_s: float | None
    run_s: float | None
    n_keys: int | None
    peak_rss: int
    limit: str = ""  # what stopped it, such as "> 300 s"
    error: str = ""

    @property
    def total_s(self) -> float | None:
        """Load and run together, or None if it did not end."""
        return None if self.load_s is None or self.run_s is None else self.load_s + self.run_s

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "total_s": self.total_s}

    def __str__(self) -> str:
        if self.outcome == "done":
            return (
                f"{self.load_s:.2f} + {self.run_s:.2f} s, {self.n_keys:,} keys, {self.peak_rss / 1e9:.2f} GB"
            )
        return self.limit or f"failed: {self.error}"


def memory_budget() -> int:
    """Bytes a peer may take: what is free now, less a reserve for the system."""
    return max(int(psutil.virtual_memory().available) - KEEP_FREE_BYTES, 500_000_000)


def run_peer(
    algorithm: str,
    csv: Path,
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int | None = None,
    keys_file: Path | None = None,
) -> PeerRun:
    """Run `algorithm` on `csv`. With `keys_file`, the keys are written there as lists of positions."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"no peer {algorithm!r}; there are {', '.join(ALGORITHMS)}")
    memory_bytes = memory_bytes or memory_budget()
    command = [sys.executable, "-m", "benchmarks.peers", "--child", algorithm, str(csv)]
    if keys_file is not None:
        command += ["--keys", str(keys_file)]

    started = time.perf_counter()
    peak, outcome, limit = 0, "", ""
    # Files, not pipes: a child that says more than a pipe holds would wait for a reader.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(command, stdout=out, stderr=err, cwd=Path(__file__).parent.parent)
        watched = psutil.Process(child.pid)
        try:
            while child.poll() is None:
                with contextlib.suppress(psutil.Error):
                    peak = max(peak, int(watched.memory_info().rss))
                if time.perf_counter() - started > timeout_s:
                    outcome, limit = "timeout", f"> {timeout_s:g} s"
                elif peak > memory_bytes:
                    outcome, limit = "memory", f"> {memory_bytes / 1e9:.1f} GB"
                if outcome:
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_POLL_S)
        finally:
            if child.poll() is None:
                child.kill()
            child.wait()
        elapsed_s = time.perf_counter() - started
        out.seek(0)
        err.seek(0)
        said: dict[str, Any] = {}
        for line in out.read().decode().splitlines():  # a stopped run may have said its load time
            with contextlib.suppress(json.JSONDecodeError):
                said.update(json.loads(line))
        error = ""
        if not outcome:
            outcome = "done" if child.returncode == 0 and "n_keys" in said else "failed"
            if outcome == "failed":
                error = f"exit {child.returncode}: " + err.read().decode(errors="replace")[-500:].strip()
    return PeerRun(
        algorithm,
        str(csv),
        outcome,
        elapsed_s,
        said.get("load_s"),
        said.get("run_s"),
        said.get("n_keys"),
        max(peak, said.get("peak_rss", 0)),
        limit,
        error,
    )


def _own_peak() -> int:
    """This process's highest RSS. Not ru_maxrss, which a child inherits from the process that forked it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return int(psutil.Process().memory_info().rss)


def _child(algorithm: str, csv: str, keys_file: str | None) -> None:
    import desbordante

    finder = getattr(desbordante.ucc.algorithms, algorithm)()
    started = time.perf_counter()
    finder.load_data(table=(csv, ",", True))
    print(json.dumps({"load_s": time.perf_counter() - started}), flush=True)
    started = time.perf_counter()
    finder.execute()
    run_s = time.perf_counter() - started
    peak = _own_peak()
    keys = finder.get_uccs()
    if keys_file:
        positions = sorted(sorted(int(i) for i in key.indices) for key in keys)
        Path(keys_file).write_text(json.dumps(positions))
    print(json.dumps({"run_s": run_s, "n_keys": len(keys), "peak_rss": peak}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one of desbordante's key algorithms on a CSV.")
    parser.add_argument("algorithm", choices=ALGORITHMS)
    parser.add_argument("csv", type=Path)
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S)
    parser.add_argument("--keys", type=Path, help="write the keys here as JSON lists of column positions")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        _child(args.algorithm, str(args.csv), str(args.keys) if args.keys else None)
    else:
        print(run_peer(args.algorithm, args.csv, args.timeout, keys_file=args.keys))


if __name__ == "__main__":
    main()
