"""What a small batch costs, what a cold process costs, and what several kinds cost together.

1. **row**: one row in and one row out, in turn, in a resident process; keys, FDs and inclusions of lineitem.
2. **batch**: 1,000 rows in and out of 100,000 x 15, with denial constraints of at most three predicates, too.
3. **cold**: processes from their start to their end: `--help`, `show`, `apply` of 100 rows to 32,000 x 15 and
   `track` of these, with keys.
4. **together**: a first `track` of all four kinds beside one of each.
5. **large**: 1 %, 10 % and 30 % of the rows in, and out again, beside finding everything anew; keys and FDs
   of lineitem, FDs of adult, claims and flight (stand-ins, as in `fds`).

Everything is inline, in processes of their own; seconds are of the clock, and of the processor: all threads.
BASE names the checkout of another version: it is measured in turn with this one.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv

from benchmarks import tables
from benchmarks.report import ROOT, Target, run_plainly, say, seconds_text

COLD_ROWS, BATCH_ROWS = 32_000, 100_000
REPEATS, ROW_REPEATS, BATCHES = 10, 30, 7
KINDS = ("ucc", "fd", "ind", "dc")
# To be reached: seconds of the processor, and shares.
ROW_S, BATCH_SHARE, TOGETHER_SHARE, ANEW_SHARE = 0.020, 0.5, 1.2, 1.0
SHARES = (0.01, 0.1, 0.3)
# Rows and columns of what is tracked for FDs besides; of flight for those of up to four columns.
OTHERS = {"adult": (32_561, 15), "claims": (101_985, 10), "flight": (1_000, 109)}
COLD_S = {"show": 0.3, "apply": 0.8, "track": 1.0}
Json = dict[str, Any]

RESIDENT = """
import json, statistics, sys, time
import numpy as np
from benchmarks import tables
import holdfast

asked = json.loads(sys.argv[1])
n_rows, n_batch = asked["n_rows"], asked["n_batch"]
columns, table = range(asked["n_columns"]), asked.get("table", "lineitem")
future = asked["n_batches"] * n_batch
def rows(n, start):
    if table == "lineitem":
        return tables.lineitem(n, start=start, table_rows=n_rows + future).select(columns)
    numbers = np.arange(start, start + n, dtype=np.int64)
    return getattr(tables, table + "_rows")(numbers, tables.SEED, n_rows).select(columns)
def timed(work):
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - processor
def medians(runs):
    return dict(zip(("seconds", "cpu_s"), map(statistics.median, zip(*runs, strict=True)), strict=True))
how = {"max_predicates": 3} if "dc" in asked["kinds"] else {"max_lhs": 4} if table == "flight" else {}
with holdfast.open(asked["root"], engine="inline") as ws:
    ws.track("first", rows(500, 0), kinds=asked["kinds"], **how)  # kernels are loaded
    ws.drop("first")
    whole = rows(n_rows, 0)
    out = {"track": medians([timed(lambda: ws.track("t", whole, kinds=asked["kinds"], **how))])}
    ins, outs = [], []
    for i in range(asked["n_batches"]):
        batch = rows(n_batch, n_rows + i * n_batch)
        ins.append(timed(lambda: ws.apply("t", inserts=batch)))
        outs.append(timed(lambda: ws.apply("t", deletes=batch)))
    if ins:
        out |= {"in": medians(ins[1:]), "out": medians(outs[1:])}
    for share in asked.get("shares", ()):
        more = rows(int(share * n_rows), n_rows)
        out[f"{share:.0%} in"] = medians([timed(lambda: ws.apply("t", inserts=more))])
        out[f"{share:.0%} out"] = medians([timed(lambda: ws.apply("t", deletes=more))])
print(json.dumps(out))
"""


def environment(checkout: Path) -> dict[str, str]:
    """That of a process which imports holdfast from a checkout, and these benchmarks."""
    folders = [str(checkout / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def resident(checkout: Path, **asked: Any) -> Json:
    command = [sys.executable, "-c", RESIDENT, json.dumps(asked)]
    done = subprocess.run(command, env=environment(checkout), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer: Json = json.loads(done.stdout.splitlines()[-1])
    return answer


def cold(checkout: Path, arguments: list[str]) -> tuple[float, float]:
    """(seconds, seconds of the processor) of the command line."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "holdfast", *arguments]
    done = subprocess.run(command, env=environment(checkout), capture_output=True, text=True)
    elapsed_s, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return elapsed_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold_cases(versions: dict[str, Path], scratch: Path) -> list[Json]:
    """Each command of each version in turn: what was measured first is no warmer than what came last."""
    columns = tables.LINEITEM_COLUMNS[:15]
    n_future = 100 * (REPEATS + 1)
    rows = tables.lineitem(COLD_ROWS + n_future).select(columns)
    table = scratch / "t.csv"
    pa_csv.write_csv(rows.slice(0, COLD_ROWS), table)
    for i in range(REPEATS + 1):
        pa_csv.write_csv(rows.slice(COLD_ROWS + 100 * i, 100), scratch / f"{i}.csv")
    roots = {name: str(scratch / f"cold-{name}") for name in versions}
    inline = ["--engine", "inline"]
    commands: dict[str, Callable[[str, int], list[str]]] = {
        "help": lambda root, i: ["--help"],
        "track": lambda root, i: ["-w", f"{root}-{i}", *inline, "track", "t", str(table)],
        "apply": lambda root, i: [
            *("-w", f"{root}-0", *inline, "apply", "t", "--inserts", str(scratch / f"{i}.csv"))
        ],
        "show": lambda root, i: ["-w", f"{root}-0", "show"],
    }
    cases = []
    for what, arguments in commands.items():
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in versions}
        for i in range(REPEATS + 1):  # the first one finds nothing in memory
            for name, checkout in versions.items():
                run = cold(checkout, arguments(roots[name], i))
                runs[name] += [run] if i else []
        for name, measured in runs.items():
            seconds, cpu_s = zip(*measured, strict=True)
            case = {"what": what, "version": name, "seconds": statistics.median(seconds)}
            cases.append({**case, "cpu_s": statistics.median(cpu_s), "best_s": min(cpu_s)})
            say(json.dumps(cases[-1]))
    return cases


def run(n_rows: int, scratch: Path) -> list[Json]:
    versions = {"new": ROOT}
    if os.environ.get("BASE"):
        versions = {"base": Path(os.environ["BASE"]).absolute(), **versions}
    cases = []
    for name, checkout in versions.items():

        def measured(
            what: str, kinds: tuple[str, ...], name: str = name, checkout: Path = checkout, **asked: Any
        ) -> None:
            root = str(scratch / f"{name}-{len(cases)}")
            answer = resident(checkout, root=root, kinds=kinds, **asked)
            case = {"version": name, "kinds": kinds, "n_rows": asked["n_rows"]}
            for part, figures in answer.items():
                cases.append({"what": f"{what}: {part}", **case, **figures})
                say(json.dumps(cases[-1]))

        measured("row", KINDS[:3], n_rows=n_rows, n_columns=16, n_batch=1, n_batches=ROW_REPEATS)
        n = min(n_rows, BATCH_ROWS)
        measured("batch", KINDS, n_rows=n, n_columns=15, n_batch=1_000, n_batches=BATCHES)
        for kind in KINDS:
            measured("alone", (kind,), n_rows=n_rows, n_columns=16, n_batch=0, n_batches=0)
        measured("together", KINDS, n_rows=n_rows, n_columns=16, n_batch=0, n_batches=0)
        shares = {"n_columns": 16, "n_batch": 0, "n_batches": 0, "shares": SHARES}
        measured("large", KINDS[:2], n_rows=n_rows, **shares)
        for table, (most, n_columns) in OTHERS.items():
            of_table = {**shares, "table": table, "n_rows": min(n_rows, most), "n_columns": n_columns}
            measured(f"large, {table}", KINDS[1:2], **of_table)
    return cases + cold_cases(versions, scratch)


# --- the report ---------------------------------------------------------------------------------


def targets(cases: list[Json]) -> list[Target]:
    def figure(what: str, version: str = "new", name: str = "cpu_s") -> float | None:
        figures = [c[name] for c in cases if c["what"] == what and c["version"] == version]
        return max(figures) if figures else None

    def within(what: str, reached: float | None, reach: float, unit: str = " s") -> Target:
        met = None if reached is None else reached <= reach
        return Target(what, f"<= {reach:g}{unit}", f"{seconds_text(reached)}{unit}", met)

    def compared(one: float | None, other: float | None) -> float | None:
        return one / other if one is not None and other else None

    out = [within(f"one row {part}, median", figure(f"row: {part}"), ROW_S) for part in ("in", "out")]
    for part in ("in", "out"):
        of_base = compared(figure(f"batch: {part}"), figure(f"batch: {part}", "base"))
        out.append(within(f"1,000 rows {part}, of the base's", of_base, BATCH_SHARE, ""))
    out += [within(f"`{what}`, cold, median", figure(what), reach) for what, reach in COLD_S.items()]
    together = compared(figure("together: track"), figure("alone: track"))
    for table in ("lineitem", *OTHERS):
        large = "large" if table == "lineitem" else f"large, {table}"
        for share in SHARES:
            for part in ("in", "out"):
                of_anew = compared(figure(f"{large}: {share:.0%} {part}"), figure(f"{large}: track"))
                what = f"{table}: {share:.0%} of the rows {part}, of finding anew"
                out.append(within(what, of_anew, ANEW_SHARE, ""))
    return [*out, within("all kinds together, of the slowest alone", together, TOGETHER_SHARE, "")]


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    cases = results["cases"]
    lines = [
        "# Small batches, cold processes, kinds together",
        "",
        f"{results['date']}, `{results['command']}`, lineitem of {results['n_rows']:,} rows, work in one "
        f"process, {results['machine']['cores']} cores. To be reached are seconds of the processor.",
        "",
        "| what | to reach | reached | met |",
        "|---|---|---|---|",
        *(f"| {t.what} | {t.reach} | {t.reached} | {t.verdict} |" for t in targets(cases)),
        "",
        "| what | kinds | version | seconds | of the processor |",
        "|---|---|---|---|---|",
        *(
            f"| {c['what']} | {', '.join(c.get('kinds', ['ucc']))} | {c['version']} "
            f"| {seconds_text(c['seconds'])} | {seconds_text(c['cpu_s'])} |"
            for c in cases
        ),
    ]
    (folder / f"{stem}.md").write_text("\n".join(lines) + "\n")


def main(argv: list[str] | None = None) -> int:
    return run_plainly("latency", argv, (1_000_000, 20_000), run, write_results, __doc__)


if __name__ == "__main__":
    sys.exit(main())
