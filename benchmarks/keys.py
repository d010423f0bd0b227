"""The benchmark of keys: discovery from scratch, batches by size, and the peers, on the same data.

For each table, in a process of its own (so that no case inherits another's memory or caches):

1. warm the session up on a small table (Spark, kernels), then `track` the table from CSV;
2. `apply` insert batches of 1,000, 1, 100 and 1 % rows, then delete batches of the same sizes, each from
   a pyarrow Table, each several times with fresh rows;
3. run HPIValid and HyUCC on the table, and HPIValid on the table with the first 1,000 inserts.

The key sets (not only their numbers) are compared with HPIValid's after tracking, after the first
1,000 inserts and at the end. A difference is an error: it heads the report and sets exit code 1.

    python -m benchmarks.keys [--rows 100000,1000000] [--quick] [--swan] [--no-peers] [--data DIR] [--render]
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from benchmarks import tables
from benchmarks.measure import Meter
from benchmarks.peers import TIMEOUT_S, run_peer
from benchmarks.report import (
    RESULTS,
    ROOT,
    Json,
    Target,
    busy,
    machine,
    peer_seconds,
    peer_text,
    run_process_group,
    say,
    seconds_text,
    short,
    spread,
    versions,
)

LINEITEM_ROWS = (100_000, 1_000_000, 10_000_000)
MANY_KEYS_ROWS = 100_000  # of ncvoter
# The sizes of SWAN's own experiments, for `--swan`.
SWAN_TABLES = (("uniprot40", 400_000), ("ncvoter", 5_000_000))
# More than one wants to wait for as CSV: for `--large`, from Parquet.
LARGE_TABLES = (("lineitem", 100_000_000),)
REPEATS = {1: 5, 100: 5, 1_000: 3}
FINAL_CHECK_ROWS = 1_000_000  # larger tables are not written and searched a third time


# --- one case, in its own process ---------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table to measure: `lineitem-1000000` is generated lineitem with a million rows."""

    table: str
    n_rows: int
    data: Path | None = None  # a folder of real CSVs that replace generated tables

    @property
    def name(self) -> str:
        return f"{self.table}-{self.n_rows}"

    @property
    def large(self) -> bool:
        return (self.table, self.n_rows) in LARGE_TABLES

    def open_table(self) -> tables.BenchTable:
        if self.data is not None and (self.data / f"{self.table}.csv").exists():
            return tables.real(self.table, self.data / f"{self.table}.csv")
        return tables.generated(self.table, self.n_rows)


def batch_plan(n_rows: int) -> list[tuple[int, int]]:
    """(rows, repeats) of the batches, in the order they run.

    1,000 comes first, so that the table after its first batch is the original and that batch.

    >>> batch_plan(1_000_000)
    [(1000, 3), (1, 5), (100, 5), (10000, 2)]
    >>> batch_plan(100_000)  # 1 % is 1,000
    [(1000, 3), (1, 5), (100, 5)]
    """
    plan = [(1_000, REPEATS[1_000]), (1, REPEATS[1]), (100, REPEATS[100])]
    percent = n_rows // 100
    if percent not in REPEATS:
        plan.append((percent, 2 if n_rows <= 1_000_000 else 1))
    return plan


def key_positions(ws: Any, table: str, columns: list[str]) -> list[list[int]]:
    """The table's keys as sorted lists of column positions, the form the peers give."""
    at = {name: i for i, name in enumerate(columns)}
    found = [d.to_dict() for d in ws.dependencies(kind="ucc", table=table)]
    return sorted(sorted(at[c] for c in key["columns"]) for key in found)


def measure_case(case: Case, workspace: Path, keys_folder: Path, out: Json) -> None:
    """Fill `out` with the figures; what was measured before an error stays in it."""
    import holdfast

    table = case.open_table()
    name = case.table
    columns = table.rows(np.zeros(0, dtype=np.int64)).column_names
    out.update(table=name, n_rows=table.n_rows, n_columns=len(columns))

    with Meter() as meter:
        ws = holdfast.open(str(workspace))
        warm_up(ws)
    out["warm_up_s"] = meter.elapsed_s
    say(f"  session and warm-up {meter.elapsed_s:.1f} s")

    with Meter(memory=True) as meter:
        ws.track(name, str(table.parquet if case.large else table.csv), kinds=("ucc",))
    keys = key_positions(ws, name, columns)
    out["track"] = {
        "elapsed_s": meter.elapsed_s,
        "peak_bytes": meter.peak_bytes,
        "memory_kind": meter.memory_kind,
        "n_keys": len(keys),
    }
    (keys_folder / "tracked.json").write_text(json.dumps(keys))
    say(f"  track {meter.elapsed_s:.2f} s, {len(keys):,} keys, {(meter.peak_bytes or 0) / 1e9:.2f} GB")

    out["batches"] = []
    inserted = table.n_rows  # the number of the next row to insert
    end = table.n_rows + table.n_future
    for n_batch, repeats in batch_plan(table.n_rows):
        for _ in range(repeats):
            if inserted + n_batch > end:
                break  # a real table ran out of rows held back
            rows = table.rows(np.arange(inserted, inserted + n_batch))
            inserted += n_batch
            out["batches"].append(timed_apply(ws, name, "insert", rows))
            if len(out["batches"]) == 1:
                keys = key_positions(ws, name, columns)
                out["n_keys_after_insert"] = len(keys)
                (keys_folder / "inserted.json").write_text(json.dumps(keys))

    gone = rows_to_delete(table.n_rows)
    taken = 0
    for n_batch, repeats in batch_plan(table.n_rows):
        for _ in range(repeats):
            rows = table.rows(gone[taken : taken + n_batch])
            taken += n_batch
            out["batches"].append(timed_apply(ws, name, "delete", rows))

    keys = key_positions(ws, name, columns)
    out["n_keys_at_end"] = len(keys)
    out["rows_inserted"] = inserted - table.n_rows
    out["rows_deleted"] = taken
    (keys_folder / "end.json").write_text(json.dumps(keys))
    ws.close()


def rows_to_delete(n_rows: int) -> tables.Rows:
    """The numbers of all rows that the plan deletes, in order: drawn at random, each once."""
    n_deletes = sum(n * repeats for n, repeats in batch_plan(n_rows))
    return np.random.default_rng(tables.SEED).choice(n_rows, n_deletes, replace=False)


def warm_up(ws: Any) -> None:
    """Start the session: Spark with its workers, and the kernels on a small table."""
    from holdfast.core.engine.engine import echo

    for _ in range(2):
        ws.writer.engine.run(echo, [{"task": i} for i in range(4 * ws.writer.engine.cores)], where="spark")
    table = tables.generated("lineitem", 20_000)
    table.ensure_files()
    ws.track("warm_up", str(table.csv), kinds=("ucc",))
    ws.apply("warm_up", inserts=table.rows(np.arange(20_000, 21_000)))
    ws.apply("warm_up", deletes=table.rows(np.arange(500)))


def timed_apply(ws: Any, table: str, kind: str, rows: pa.Table) -> Json:
    """Apply one batch of inserts or deletes; only batches of 10,000 rows and more have memory watched."""
    rows = rows.combine_chunks()
    with Meter(memory=rows.num_rows >= 10_000) as meter:
        ws.apply(table, **{f"{kind}s": rows})
    say(f"  {kind} {rows.num_rows:,}: {meter.elapsed_s:.3f} s")
    return {
        "kind": kind,
        "n_rows": rows.num_rows,
        "elapsed_s": meter.elapsed_s,
        "peak_bytes": meter.peak_bytes,
    }


def run_child(case: Case, workspace: Path, keys_folder: Path, out_file: Path) -> None:
    out: Json = {"name": case.name}
    try:
        measure_case(case, workspace, keys_folder, out)
    except Exception as error:
        traceback.print_exc()
        out["error"] = f"{type(error).__name__}: {error}"[:2_000]
    out_file.write_text(json.dumps(out))


# --- all cases ----------------------------------------------------------------------------------


def run_case(case: Case, scratch: Path, peers: bool, timeout_s: float) -> Json:
    """Measure holdfast in a child process, then the peers, then compare the keys."""
    table = case.open_table()
    say(f"{case.name}: files")
    if case.large:
        table.ensure_parquet()
    else:
        table.ensure_files()
    workspace, keys_folder = scratch / f"{case.name}.hold", scratch / f"{case.name}-keys"
    keys_folder.mkdir(parents=True)
    out_file = scratch / f"{case.name}.json"
    say(f"{case.name}: holdfast")
    code = run_process_group(
        [sys.executable, "-m", "benchmarks.keys", "--child", case.table, str(case.n_rows)]
        + ["--child-out", str(out_file), "--child-keys", str(keys_folder), "--child-ws", str(workspace)]
        + (["--data", str(case.data)] if case.data else [])
    )
    result: Json = json.loads(out_file.read_text()) if out_file.exists() else {"name": case.name}
    result.setdefault("table", case.table)
    result.setdefault("n_rows", table.n_rows)
    result.setdefault("n_columns", table.n_columns)
    if code and "error" not in result:
        result["error"] = f"the measuring process ended with code {code}"
    if peers:
        result["peers"] = run_peers(case, table, scratch, keys_folder, timeout_s, result)
        result["agreement"] = compare_keys(keys_folder)
        for check in result["agreement"]:
            if not check["equal"]:
                say(f"!!! {case.name}, {check['state']}: keys DIFFER from HPIValid's: {check}")
    return result


def run_peers(
    case: Case, table: tables.BenchTable, scratch: Path, keys_folder: Path, timeout_s: float, result: Json
) -> list[Json]:
    runs: list[Json] = []

    def run(algorithm: str, csv: Path, state: str, keys_file: Path | None = None) -> Json:
        done = run_peer(algorithm, csv, timeout_s, found_file=keys_file)
        say(f"{case.name}: {algorithm}, {state}: {done}")
        runs.append({**done.to_dict(), "state": state})
        return runs[-1]

    first = run("HPIValid", table.csv, "original", keys_folder / "tracked.peer.json")
    run("HyUCC", table.csv, "original")

    grown = scratch / f"{case.name}-grown.csv"
    if first["outcome"] == "done":
        batch = table.rows(np.arange(table.n_rows, table.n_rows + min(1_000, table.n_future)))
        tables.append_csv(table.csv, batch, grown)
        run("HPIValid", grown, "after 1,000 inserts", keys_folder / "inserted.peer.json")
        grown.unlink()
    else:  # one more thousand rows will not end sooner
        runs.append({**first, "state": "after 1,000 inserts", "inferred": True})

    if "rows_deleted" in result and table.n_rows <= FINAL_CHECK_ROWS and first["outcome"] == "done":
        write_final(table, result, grown)
        run("HPIValid", grown, "end", keys_folder / "end.peer.json")
        grown.unlink()
    return runs


def write_final(table: tables.BenchTable, result: Json, out: Path) -> None:
    """The table as it is after all batches: the original, less the deletes, and the inserts."""
    gone = rows_to_delete(table.n_rows)
    left = np.setdiff1d(np.arange(table.n_rows + result["rows_inserted"]), gone)
    schema = table.rows(left[:0]).schema
    with pa_csv.CSVWriter(out, schema, write_options=tables.PLAIN_CSV) as writer:
        for first in range(0, len(left), tables.CHUNK_ROWS):
            writer.write_table(table.rows(left[first : first + tables.CHUNK_ROWS]))


def compare_keys(keys_folder: Path) -> list[Json]:
    """Whether holdfast's keys equal HPIValid's, for each state that both know."""
    checks: list[Json] = []
    states = (("tracked", "tracked"), ("inserted", "after 1,000 inserts"), ("end", "after all batches"))
    for stem, state in states:
        ours_file, theirs_file = keys_folder / f"{stem}.json", keys_folder / f"{stem}.peer.json"
        if ours_file.exists() and theirs_file.exists():
            ours = {tuple(key) for key in json.loads(ours_file.read_text())}
            theirs = {tuple(key) for key in json.loads(theirs_file.read_text())}
            checks.append(
                {
                    "state": state,
                    "holdfast": len(ours),
                    "HPIValid": len(theirs),
                    "equal": ours == theirs,
                    "only_holdfast": sorted(ours - theirs)[:5],
                    "only_HPIValid": sorted(theirs - ours)[:5],
                }
            )
    return checks


def measure_show(workspace: Path, runs: int = 5) -> Json:
    """Best seconds from start to the first byte, and to the end, of `holdfast show` in a new process."""
    first_s, total_s, error = [], [], ""
    command = [sys.executable, "-m", "holdfast.app.cli", "-w", str(workspace), "show"]
    for _ in range(runs):
        started = time.perf_counter()
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            assert child.stdout is not None
            byte = child.stdout.read(1)
            first = time.perf_counter() - started
            _, err = child.communicate()
        if child.returncode or not byte:
            error = f"exit {child.returncode}: {err.decode(errors='replace')[-500:]}"
            break
        first_s.append(first)
        total_s.append(time.perf_counter() - started)
    if error:
        return {"error": error}
    return {"first_output_s": min(first_s), "total_s": min(total_s), "workspace": workspace.name}


# --- figures from results -----------------------------------------------------------------------


def find_case(results: Json, table: str, n_rows: int | None = None) -> Json | None:
    for case in results["cases"]:
        if case["table"] == table and (n_rows is None or case["n_rows"] == n_rows):
            return case
    return None


def batch_seconds(case: Json | None, kind: str, n_rows: int) -> list[float]:
    batches = (case or {}).get("batches", [])
    return [b["elapsed_s"] for b in batches if b["kind"] == kind and b["n_rows"] == n_rows]


def median_batch(case: Json | None, kind: str, n_rows: int) -> float | None:
    seconds = batch_seconds(case, kind, n_rows)
    return statistics.median(seconds) if seconds else None


def peer(case: Json | None, algorithm: str, state: str) -> Json | None:
    for run in (case or {}).get("peers", []):
        if run["algorithm"] == algorithm and run["state"] == state:
            return run
    return None


def targets(results: Json) -> list[Target]:
    """The table "To reach", with what this run reached."""
    of_growth = [find_case(results, "lineitem", n) for n in LINEITEM_ROWS]
    return [*(_usual_targets(results) if any(of_growth) else ()), *_further_targets(results)]


def _further_targets(results: Json) -> Iterator[Target]:
    """Of tables with many keys, of SWAN's own sizes, and of the largest one: those that were measured."""

    def batches(case: Json | None, name: str, reach_s: float, kinds: tuple[str, ...]) -> Iterator[Target]:
        for kind in kinds if case else ():
            ours = median_batch(case, kind, 1_000)
            reached = "" if ours is None else f"{ours:.3f} s"
            met = None if ours is None else ours <= reach_s
            yield Target(f"{name}: 1,000 {kind}s", f"<= {reach_s:g} s", reached, met)

    many = find_case(results, "ncvoter", MANY_KEYS_ROWS)
    rescan, at_least = peer_seconds(peer(many, "HPIValid", "original"))
    ours = (many or {}).get("track", {}).get("elapsed_s")
    if ours is not None and rescan is not None:
        reached = f"{ours:.2f} s against {'> ' if at_least else ''}{rescan:.2f} s"
        met = True if ours <= rescan else None if at_least else False
        yield Target("ncvoter 100 k x 40, CSV to keys", "<= HPIValid's load + run", reached, met)
    yield from batches(many, "ncvoter 100 k x 40", 0.2, ("insert", "delete"))
    for table, n_rows in SWAN_TABLES:
        case = find_case(results, table, n_rows)
        yield from batches(case, f"{table} {short(n_rows)}", 1.0, ("insert", "delete"))
    for table, n_rows in LARGE_TABLES:
        case = find_case(results, table, n_rows)
        if case is not None and (peak := case.get("track", {}).get("peak_bytes")) is not None:
            what = f"{table} {short(n_rows)}: from scratch, memory in all"
            yield Target(what, "<= 12 GB", f"{peak / 1e9:.1f} GB", peak <= 12e9)
        yield from batches(case, f"{table} {short(n_rows)}", 0.3, ("insert",))


def _usual_targets(results: Json) -> list[Target]:
    small, middle, large = (find_case(results, "lineitem", n) for n in LINEITEM_ROWS)
    adult = find_case(results, "adult")
    found: list[Target] = []

    rescan, at_least = peer_seconds(peer(middle, "HPIValid", "after 1,000 inserts"))
    for kind, factor in (("insert", 20), ("delete", 10)):
        what, reach = f"apply 1,000 {kind}s to 1 M x 16", f">= {factor} x faster than HPIValid's load + run"
        ours = median_batch(middle, kind, 1_000)
        if ours is None or rescan is None:
            found.append(Target(what, reach, "", None))
        else:
            ratio = rescan / ours
            more = "> " if at_least else ""
            reached = f"{more}{ratio:.1f} x ({ours:.3f} s against {more}{rescan:.1f} s)"
            # A peer that was stopped proves a ratio reached, but not one missed.
            found.append(
                Target(what, reach, reached, True if ratio >= factor else None if at_least else False)
            )

    for kind in ("insert", "delete"):
        ours = median_batch(adult, kind, 100)
        reached = "" if ours is None else f"{ours:.3f} s"
        met = None if ours is None else ours < 0.5
        found.append(Target(f"100 {kind}s on 32 k x 15, warm, from Arrow", "< 0.5 s", reached, met))

    for kind in ("insert", "delete"):
        ours, base = median_batch(large, kind, 1_000), median_batch(small, kind, 1_000)
        what = f"growth: 1,000 {kind}s on 10 M rows against 100 k"
        if ours is None or base is None:
            found.append(Target(what, "<= 3 x", "", None))
        else:
            reached = f"{ours / base:.2f} x ({ours:.3f} s against {base:.3f} s)"
            found.append(Target(what, "<= 3 x", reached, ours <= 3 * base))

    scratch, at_least = peer_seconds(peer(middle, "HPIValid", "original"))
    ours = (middle or {}).get("track", {}).get("elapsed_s")
    what = "from scratch, 1 M x 16, CSV to keys"
    if ours is None or scratch is None:
        found.append(Target(what, "<= HPIValid's load + run", "", None))
    else:
        reached = f"{ours:.1f} s against {'> ' if at_least else ''}{scratch:.1f} s"
        met = True if ours <= scratch else None if at_least else False
        found.append(Target(what, "<= HPIValid's load + run", reached, met))

    peak = (large or {}).get("track", {}).get("peak_bytes")
    reached = "" if peak is None else f"{peak / 1e9:.1f} GB"
    met = None if peak is None else peak <= 12e9
    found.append(Target("from scratch, 10 M x 16, memory in all", "<= 12 GB", reached, met))

    show = results.get("show") or {}
    ours = show.get("first_output_s")
    reached = "" if ours is None else f"{ours:.2f} s"
    met = None if ours is None else ours < 2
    found.append(Target("`holdfast show`: start to first output", "< 2 s", reached, met))
    return found


# --- the report ---------------------------------------------------------------------------------


def title(case: Json) -> str:
    return f"{case['table']} {short(case['n_rows'])} x {case['n_columns']}"


def sizes_of(case: Json) -> list[int]:
    return sorted({1, 100, 1_000, case["n_rows"] // 100})


def markdown(results: Json, plot: str) -> str:
    lines = ["# Keys: batches against from-scratch", ""]
    lines += loud(results) + busy(results)
    host = results["machine"]
    lines += [
        f"`{results['command']}` on {results['date']}; {host['cores']} cores ({host['cpu']}), "
        f"{host['memory_bytes'] / 2**30:.0f} GiB, {host['system']}; "
        + ", ".join(f"{name} {version}" for name, version in results["versions"].items())
        + ".",
        "",
        f"![seconds by batch size]({plot})",
        "",
        "## To reach",
        "",
        "| what | reach | reached | |",
        "|---|---|---|---|",
    ]
    lines += [f"| {t.what} | {t.reach} | {t.reached or '-'} | {t.verdict} |" for t in targets(results)]
    lines += [
        "",
        "## From scratch: CSV to keys",
        "",
        "Seconds. Peers: load + run (peak RSS). holdfast: a warm session; its memory is that of driver, JVM "
        "and workers together (PSS).",
        "",
        "| table | keys | holdfast | memory | HPIValid | HyUCC |",
        "|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        track = case.get("track", {})
        theirs = [peer(case, algorithm, "original") for algorithm in ("HPIValid", "HyUCC")]
        n_keys = track.get("n_keys") or next((run["n_keys"] for run in theirs if run and run["n_keys"]), None)
        peak = track.get("peak_bytes")
        lines.append(
            f"| {title(case)} | {'-' if n_keys is None else f'{n_keys:,}'} "
            f"| {seconds_text(track.get('elapsed_s'))} | {'-' if peak is None else f'{peak / 1e9:.1f} GB'} "
            f"| {peer_text(theirs[0])} | {peer_text(theirs[1])} |"
        )
    lines += [
        "",
        "## Batches",
        "",
        "Seconds of `apply` from a pyarrow Table in a warm session: median of fresh batches (the slowest in "
        "brackets). Last column: HPIValid's load + run on the table with 1,000 rows more, what one would do "
        "instead.",
        "",
        "| table | batch | 1 row | 100 | 1,000 | 1 % | instead |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        instead, at_least = peer_seconds(peer(case, "HPIValid", "after 1,000 inserts"))
        for kind in ("insert", "delete"):
            cells = [batch_text(case, kind, n) for n in (1, 100, 1_000, case["n_rows"] // 100)]
            lines.append(
                f"| {title(case)} | {kind}s | {' | '.join(cells)} "
                f"| {'> ' if at_least else ''}{seconds_text(instead)} |"
            )
    lines += [
        "",
        "## The same keys",
        "",
        "| table | when | holdfast | HPIValid | equal |",
        "|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        if not case.get("agreement"):
            lines.append(
                f"| {title(case)} | - | - | {peer_text(peer(case, 'HPIValid', 'original'))} | not compared |"
            )
        for check in case.get("agreement", []):
            lines.append(
                f"| {title(case)} | {check['state']} | {check['holdfast']:,} | {check['HPIValid']:,} "
                f"| {'yes' if check['equal'] else '**NO**'} |"
            )
    return "\n".join(lines) + "\n"


def batch_text(case: Json, kind: str, n_rows: int) -> str:
    seconds = batch_seconds(case, kind, n_rows)
    if not seconds:
        return "-"
    middle = seconds_text(statistics.median(seconds))
    return middle if len(seconds) == 1 else f"{middle} ({seconds_text(max(seconds))})"


def loud(results: Json) -> list[str]:
    """Errors and disagreements, for the head of the report."""
    lines = []
    for case in results["cases"]:
        if "error" in case:
            lines.append(f"**FAILED: {title(case)}: {case['error']}**")
        for check in case.get("agreement", []):
            if not check["equal"]:
                lines.append(
                    f"**KEYS DIFFER: {title(case)}, {check['state']}: holdfast {check['holdfast']:,}, "
                    f"HPIValid {check['HPIValid']:,}; only holdfast (positions) {check['only_holdfast']}, "
                    f"only HPIValid {check['only_HPIValid']}**"
                )
    if "error" in (results.get("show") or {}):
        lines.append(f"**FAILED: `holdfast show`: {results['show']['error']}**")
    return [part for line in lines for part in (line, "")]


# --- the plot -----------------------------------------------------------------------------------

COLOURS = {
    ("lineitem", 0): "#6baed6",
    ("lineitem", 1): "#2171b5",
    ("lineitem", 2): "#08306b",
    ("ncvoter", 0): "#d95f0e",
    ("adult", 0): "#31a354",
}


def draw(results: Json, file: Path) -> None:
    """Two panels (inserts, deletes): seconds by batch size, and the peers from scratch as levels."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 11, "font.family": "DejaVu Sans", "axes.spines.top": False})
    plt.rcParams.update({"axes.spines.right": False, "axes.edgecolor": "#888888"})
    figure, panels = plt.subplots(1, 2, figsize=(12, 7), dpi=100, sharey=True)
    cases = list(coloured(results))
    values = [b["elapsed_s"] for case, _ in cases for b in case.get("batches", [])]
    for case, _ in cases:
        levels = (peer_seconds(peer(case, algorithm, "original"))[0] for algorithm in ("HPIValid", "HyUCC"))
        values += [level for level in levels if level]
    if not values:
        plt.close(figure)
        return
    low, high = math.log10(min(values)) - 0.25, math.log10(max(values)) + 0.3
    gap = (high - low) * 0.034
    right = max([1_000, *(max(sizes_of(case)) for case, _ in cases)])
    labels_at = right * 1.6

    for panel, kind in zip(panels, ("insert", "delete"), strict=True):
        labels: list[tuple[float, str, str]] = []
        for case, colour in cases:
            points = [(n, s) for n in sizes_of(case) if (s := median_batch(case, kind, n)) is not None]
            if points:
                panel.plot(*zip(*points, strict=True), "-o", color=colour, lw=2, ms=5, zorder=3)
                labels.append((points[-1][1], f"{case['table']} {short(case['n_rows'])}", colour))
                panel.plot(  # a thin lead from the last point to its label
                    [points[-1][0], labels_at], [points[-1][1]] * 2, color=colour, lw=0.6, alpha=0.5
                )
            for algorithm, style in (("HPIValid", "--"), ("HyUCC", ":")):
                level, at_least = peer_seconds(peer(case, algorithm, "original"))
                if level is None or (algorithm == "HyUCC" and case["table"] != "lineitem"):
                    continue  # HyUCC on the small tables would only add lines
                panel.plot([0.8, labels_at], [level] * 2, style, color=colour, lw=1.1, zorder=2)
                text = f"{algorithm}, {case['table']} {short(case['n_rows'])}{' (stopped)' * at_least}"
                labels.append((level, text, colour))
        heights = spread([math.log10(seconds) for seconds, _, _ in labels], gap)
        for height, (_, text, colour) in zip(heights, labels, strict=True):
            panel.text(labels_at * 1.15, 10**height, text, color=colour, va="center", fontsize=8.5)
        panel.set(xscale="log", yscale="log", xlim=(0.8, labels_at), ylim=(10**low, 10**high))
        ticks = [10**i for i in range(round(math.log10(right)) + 1)]
        panel.set_xticks(ticks, [short(n) for n in ticks])
        panel.minorticks_off()
        panel.set_xlabel("rows in the batch")
        panel.set_title(f"{kind}s", loc="left", fontweight="bold")
        panel.grid(axis="y", color="#e5e5e5", lw=0.8)
        panel.tick_params(color="#888888", labelleft=True)
    whole = [10**i for i in range(math.ceil(low), math.floor(high) + 1)]
    panels[0].set_yticks(whole, [f"{t:g} s" for t in whole])
    figure.suptitle(
        "holdfast: seconds to keep all keys exact after a batch (solid); peers from scratch (dashed, dotted)",
        x=0.012,
        ha="left",
        fontsize=13,
    )
    figure.subplots_adjust(left=0.06, right=0.825, top=0.88, bottom=0.09, wspace=0.66)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file)
    plt.close(figure)


def coloured(results: Json) -> Iterator[tuple[Json, str]]:
    for case in results["cases"]:
        shade = LINEITEM_ROWS.index(case["n_rows"]) if case["n_rows"] in LINEITEM_ROWS else 0
        yield case, COLOURS.get((case["table"], shade if case["table"] == "lineitem" else 0), "#666666")


# --- the command --------------------------------------------------------------------------------


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, folder / f"{stem}.png")
    (folder / f"{stem}.md").write_text(markdown(results, f"{stem}.png"))


def cases_of(args: argparse.Namespace) -> list[Case]:
    if args.swan:
        return [Case(table, n_rows, args.data) for table, n_rows in SWAN_TABLES]
    if args.large:
        return [Case(table, n_rows) for table, n_rows in LARGE_TABLES]
    cases = [Case("lineitem", n, args.data) for n in args.rows]
    if args.data is not None and (args.data / "lineitem.csv").exists():
        cases = cases[:1]  # one real file has one size
    if not args.only_lineitem:
        cases += [Case("ncvoter", MANY_KEYS_ROWS, args.data), Case("adult", 32_561, args.data)]
    return cases


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keys", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default=None, help="lineitem sizes, such as 100000,1000000")
    parser.add_argument(
        "--quick", action="store_true", help="lineitem at 100 k only; results as keys-quick.*"
    )
    parser.add_argument("--only-lineitem", action="store_true", help="leave out ncvoter and adult")
    parser.add_argument(
        "--swan", action="store_true", help="tables of SWAN's own sizes instead; results as keys-swan.*"
    )
    parser.add_argument(
        "--large", action="store_true", help="100 M rows from Parquet, without peers; results as keys-large.*"
    )
    parser.add_argument("--no-peers", action="store_true", help="measure holdfast only, check nothing")
    parser.add_argument("--peers-only", action="store_true", help="measure the peers only")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds a peer may take")
    parser.add_argument("--data", type=Path, help="folder with real adult.csv, ncvoter.csv or lineitem.csv")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the report and plot again")
    parser.add_argument("--child", nargs=2, metavar=("TABLE", "ROWS"), help=argparse.SUPPRESS)
    for hidden in ("--child-out", "--child-keys", "--child-ws"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    try:
        sizes = [int(n) for n in args.rows.split(",")] if args.rows else list(LINEITEM_ROWS)
    except ValueError:
        parser.error(f"--rows takes whole numbers with commas between, not {args.rows!r}")
    if min(sizes) < 5_000:
        parser.error("--rows: a table needs at least 5,000 rows for the batches")
    args.rows = [100_000] if args.quick and not args.rows else sizes
    return args


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    if args.data is not None:
        args.data = args.data.resolve()
    if args.child:
        case = Case(args.child[0], int(args.child[1]), args.data)
        run_child(case, args.child_ws, args.child_keys, args.child_out)
        return 0
    chosen = [name for name in ("swan", "large", "quick") if getattr(args, name)]
    stem = "-".join(["keys", *chosen[:1]])
    if args.render:
        write_results(json.loads((args.results / f"{stem}.json").read_text()), args.results, stem)
        return 0

    results: Json = {
        "command": shlex.join(["python", "-m", "benchmarks.keys", *argv]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(),
        "seed": tables.SEED,
        "cases": [],
    }
    for line in busy(results):
        say(line)
    tables.DATA.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=tables.DATA))
    try:
        for case in cases_of(args):
            if args.peers_only:
                results["cases"].append(peers_only(case, scratch, args.timeout))
            else:
                peers = not (args.no_peers or case.large)
                results["cases"].append(run_case(case, scratch, peers, args.timeout))
                workspace = scratch / f"{case.name}.hold"
                if "show" not in results and workspace.exists():
                    results["show"] = measure_show(workspace)
                shutil.rmtree(workspace, ignore_errors=True)
            write_results(results, args.results, stem)  # after each case: a long run may be stopped
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    troubles = loud(results)
    for line in troubles:
        say(line)
    say(f"wrote {args.results / stem}.md, .json and .png")
    return 1 if troubles else 0


def peers_only(case: Case, scratch: Path, timeout_s: float) -> Json:
    table = case.open_table()
    table.ensure_files()
    keys_folder = scratch / f"{case.name}-keys"
    keys_folder.mkdir(parents=True)
    result: Json = {
        "name": case.name,
        "table": case.table,
        "n_rows": table.n_rows,
        "n_columns": table.n_columns,
    }
    result["peers"] = run_peers(case, table, scratch, keys_folder, timeout_s, result)
    return result


if __name__ == "__main__":
    sys.exit(main())
