"""What a user would do instead: desbordante's algorithms (C++), from scratch, on CSV files.

Keys come from one table (HPIValid, HyUCC), as do functional dependencies (HyFD; Pyro and Tane, also
approximate ones) and denial constraints (FastADC), inclusion dependencies from several (Spider, Faida).

Each run is a fresh process, watched from outside: one that passes its time or memory is stopped,
and that is its result ("> 300 s"), not an error. Load (parse the CSV, build its indexes) and run
(find the dependencies) are timed apart; both are what a user waits for. The processor's seconds, of
all threads, are recorded too: on a busy machine they tell more than the clock's.

desbordante compares cells as text, with empty cells (NULL) equal, as holdfast's default for keys does.
For INDs an empty cell is a value to Spider (A is in B only if B has an empty cell too) and nothing
to Faida (as to holdfast); TPC-H has none. Spider is exact, and uses all cores and up to 2 GB before
it goes to disk (its defaults). Faida is approximate: it may report an IND that does not hold.

HyFD is exact by design, but not always in fact: of desbordante 2.5's 3,815 FDs of generated lineitem with
100,000 rows, 7 do not hold (`fds.py` judges). Pyro and Tane take an error, the share of unordered
pairs of different rows that violate an FD, as holdfast's g1. Tane's is exact. Pyro rounds each error up to a
multiple of 1/32768 before it compares: so at 0.01 it finds what holds within 327/32768.

FastADC finds approximate DCs by default; here it finds exact ones (evidence_threshold 0) unless told to.
It compares columns as holdfast does (30 % of the values shared), or each with itself only
(allow_cross_columns=false), and lists the same general DCs.

    python -m benchmarks.peers HPIValid table.csv [--timeout 300] [--found keys.json]
    python -m benchmarks.peers Pyro table.csv --option error=0.01 [--found fds.json]
    python -m benchmarks.peers FastADC table.csv --option allow_cross_columns=false [--found dcs.json]
    python -m benchmarks.peers Spider orders.csv customer.csv [--found inds.json]
"""

from __future__ import annotations

import argparse
import contextlib
import csv as csv_reader
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

KEY_ALGORITHMS = ("HPIValid", "HyUCC")
FD_ALGORITHMS = ("HyFD", "Pyro", "Tane")
IND_ALGORITHMS = ("Spider", "Faida")
DC_ALGORITHMS = ("FastADC",)
ALGORITHMS = (*KEY_ALGORITHMS, *FD_ALGORITHMS, *IND_ALGORITHMS, *DC_ALGORITHMS)
PYRO_STEPS = 32_768  # Pyro rounds errors up to a multiple of 1 / PYRO_STEPS
TIMEOUT_S = 300.0
KEEP_FREE_BYTES = 1_500_000_000
_POLL_S = 0.1
_PREDICATE = re.compile(r"t\.(.+) (==|!=|<|<=|>|>=) s\.(.+)")


@dataclass(frozen=True)
class PeerRun:
    """One run. `outcome` is "done", "timeout", "memory" or "failed"; figures not reached are None."""

    algorithm: str
    csv: str
    outcome: str
    elapsed_s: float  # of the process, start-up included
    load_s: float | None
    run_s: float | None
    n_found: int | None  # keys, FDs, INDs or DCs
    peak_rss: int
    cpu_s: float = 0.0  # of all threads, load and run
    limit: str = ""  # what stopped it, such as "> 300 s"
    error: str = ""
    options: Mapping[str, float] = field(default_factory=dict)

    @property
    def total_s(self) -> float | None:
        """Load and run together, or None if it did not end."""
        return None if self.load_s is None or self.run_s is None else self.load_s + self.run_s

    @property
    def noun(self) -> str:
        if self.algorithm in FD_ALGORITHMS:
            return "fds"
        if self.algorithm in DC_ALGORITHMS:
            return "dcs"
        return "inds" if self.algorithm in IND_ALGORITHMS else "keys"

    def to_dict(self) -> dict[str, Any]:
        """All figures; what was found is counted as `n_keys`, `n_fds`, `n_inds` or `n_dcs`."""
        figures = asdict(self)
        figures[f"n_{self.noun}"] = figures.pop("n_found")
        return {**figures, "total_s": self.total_s}

    def __str__(self) -> str:
        if self.outcome == "done":
            return (
                f"{self.load_s:.2f} + {self.run_s:.2f} s ({self.cpu_s:.1f} s of processor), "
                f"{self.n_found:,} {self.noun}, {self.peak_rss / 1e9:.2f} GB"
            )
        return self.limit or f"failed: {self.error}"


def memory_budget() -> int:
    """Bytes a peer may take: what is free now, less a reserve for the system."""
    return max(int(psutil.virtual_memory().available) - KEEP_FREE_BYTES, 500_000_000)


def run_peer(
    algorithm: str,
    csv: Path | Sequence[Path],
    timeout_s: float = TIMEOUT_S,
    memory_bytes: int | None = None,
    found_file: Path | None = None,
    options: Mapping[str, float] | None = None,
) -> PeerRun:
    """Run `algorithm` on one CSV (keys, FDs, DCs) or several (INDs), with desbordante's `options`.

    With `found_file`, what was found is written there: keys as lists of column positions, FDs as
    [positions of the left-hand side, position of the right-hand side], INDs as pairs such as
    ["orders.o_custkey", "customer.c_custkey"], a table being named as its file is, DCs as lists of
    predicates such as ["salary", "<", "salary"].
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"no peer {algorithm!r}; there are {', '.join(ALGORITHMS)}")
    files = [csv] if isinstance(csv, Path) else list(csv)
    memory_bytes = memory_bytes or memory_budget()
    command = [sys.executable, "-m", "benchmarks.peers", algorithm, *(str(file.resolve()) for file in files)]
    if found_file is not None:
        command += ["--found", str(found_file.resolve())]
    for name, value in (options or {}).items():
        command += ["--option", f"{name}={json.dumps(value)}"]

    started = time.perf_counter()
    peak, cpu_s, outcome, limit = 0, 0.0, "", ""
    # Files, not pipes: a child that says more than a pipe holds would wait for a reader. A folder of its
    # own, beside the data: Faida always, and Spider when short of memory, write into the current one.
    with (
        tempfile.TemporaryDirectory(prefix="peer-", dir=files[0].parent) as scratch,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        command += ["--child", scratch]
        child = subprocess.Popen(command, stdout=out, stderr=err, cwd=Path(__file__).parent.parent)
        watched = psutil.Process(child.pid)
        try:
            while child.poll() is None:
                with contextlib.suppress(psutil.Error):
                    peak = max(peak, int(watched.memory_info().rss))
                    times = watched.cpu_times()
                    cpu_s = times.user + times.system
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
            outcome = "done" if child.returncode == 0 and "n_found" in said else "failed"
            if outcome == "failed":
                error = f"exit {child.returncode}: " + err.read().decode(errors="replace")[-500:].strip()
    return PeerRun(
        algorithm,
        str(csv) if isinstance(csv, Path) else str(files[0].parent),
        outcome,
        elapsed_s,
        said.get("load_s"),
        said.get("run_s"),
        said.get("n_found"),
        max(peak, said.get("peak_rss", 0)),
        said.get("cpu_s", cpu_s),
        limit,
        error,
        dict(options or {}),
    )


def _own_peak() -> int:
    """This process's highest RSS. Not ru_maxrss, which a child inherits from the process that forked it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return int(psutil.Process().memory_info().rss)


def _child(
    algorithm: str, files: list[str], found_file: Path | None, folder: Path, options: dict[str, float]
) -> None:
    import desbordante

    os.chdir(folder)
    sources = [(file, ",", True) for file in files]
    families = {"HyFD": desbordante.fd, "Pyro": desbordante.afd, "Tane": desbordante.afd}
    families |= {"FastADC": desbordante.dc}
    families |= dict.fromkeys(KEY_ALGORITHMS, desbordante.ucc) | dict.fromkeys(
        IND_ALGORITHMS, desbordante.ind
    )
    finder = getattr(families[algorithm].algorithms, algorithm)()
    if algorithm == "Faida":
        options = {"max_arity": 1, **options}  # unary INDs, as Spider finds
    elif algorithm in ("Pyro", "Tane"):
        options = {"error": 0.0, **options}
    elif algorithm in DC_ALGORITHMS:
        options = {"evidence_threshold": 0.0, **options}
    cpu_before, started = time.process_time(), time.perf_counter()
    if algorithm in IND_ALGORITHMS:
        finder.load_data(tables=sources)
    else:
        finder.load_data(table=sources[0])
    print(json.dumps({"load_s": time.perf_counter() - started}), flush=True)
    started = time.perf_counter()
    finder.execute(**options)
    run_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu_before
    peak = _own_peak()
    if algorithm in IND_ALGORITHMS:
        found = _ind_pairs(finder.get_inds(), files)
    elif algorithm in DC_ALGORITHMS:
        found = sorted(_predicates(str(dc)) for dc in finder.get_dcs())
    elif algorithm in FD_ALGORITHMS:
        found = sorted([sorted(int(i) for i in fd.lhs_indices), int(fd.rhs_index)] for fd in finder.get_fds())
    else:
        found = sorted(sorted(int(i) for i in key.indices) for key in finder.get_uccs())
    if found_file is not None:
        found_file.write_text(json.dumps(found))
    print(json.dumps({"run_s": run_s, "cpu_s": cpu_s, "n_found": len(found), "peak_rss": peak}), flush=True)


def _ind_pairs(inds: list[Any], files: list[str]) -> list[Any]:
    """INDs by name: [dependent, referenced], each "table.column"."""
    columns: list[list[str]] = []
    for file in files:
        with Path(file).open(newline="") as head:
            names = next(csv_reader.reader(head))
        columns.append([f"{Path(file).stem}.{name}" for name in names])

    def name(side: Any) -> str:
        (column,) = side.column_indices
        return columns[side.table_index][column]

    return sorted([name(ind.get_lhs()), name(ind.get_rhs())] for ind in inds)


def _predicates(text: str) -> list[list[str]]:
    """The predicates of a DC as desbordante writes it.

    >>> _predicates("¬{ t.state == s.state ∧ t.a b <= s.c }")
    [['a b', '<=', 'c'], ['state', '=', 'state']]
    """
    found = []
    for part in text.removeprefix("¬{ ").removesuffix(" }").split(" ∧ "):
        match = _PREDICATE.fullmatch(part)
        if match is None:
            raise ValueError(f"no predicate: {part!r} of {text!r}")
        left, op, right = match.groups()
        found.append([left, op.replace("==", "="), right])
    return sorted(found)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one of desbordante's algorithms on CSV files.")
    parser.add_argument("algorithm", choices=ALGORITHMS)
    parser.add_argument("csv", type=Path, nargs="+", help="one file for keys and FDs, all tables for INDs")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S)
    parser.add_argument(
        "--found", type=Path, help="write keys and FDs (positions), INDs or DCs (names) here as JSON"
    )
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=NUMBER", help="of the algorithm: error=0.01"
    )
    parser.add_argument("--child", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.algorithm not in IND_ALGORITHMS and len(args.csv) > 1:
        parser.error(f"{args.algorithm} looks at one table")
    try:
        options = {name: json.loads(value) for name, _, value in (o.partition("=") for o in args.option)}
    except json.JSONDecodeError:
        parser.error(f"--option takes a name and a number, such as error=0.01, not {args.option}")
    if args.child is not None:
        _child(args.algorithm, [str(file) for file in args.csv], args.found, args.child, options)
    else:
        csv = args.csv if args.algorithm in IND_ALGORITHMS else args.csv[0]
        print(run_peer(args.algorithm, csv, args.timeout, found_file=args.found, options=options))


if __name__ == "__main__":
    main()
