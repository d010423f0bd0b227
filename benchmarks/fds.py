"""The benchmark of functional dependencies: batches on wide and tall tables, and the peers, on the same data.

For each mode (a table and a way to track it), in a process of its own and in a warm session:

1. `track` from CSV to FDs, with the peak memory;
2. `apply` delete and insert batches, each from a pyarrow Table, each several times. The rows of a batch that
   is deleted are inserted again two batches later, so that a table keeps its size and ends as it began.
   lineitem gets new rows instead, some of which break FDs, and then loses old ones;
3. where agree sets are counted: their number, and on 300,000 of them the time of one query for an error.

Then HyFD, Pyro and Tane on the same CSV files. What they find is compared, FD by FD, at the start and after
batches; where both differ, the rows decide who is wrong (`Judge`). Is it holdfast, then this heads the report
and the exit code is 1. Last, whether comparing equal prefixes of batch rows once pays, and how long it takes
to find the best dependencies of wide tables without the others.

    python -m benchmarks.fds [--modes adult,claims] [--data DIR] [--quick] [--no-peers] [--render]
"""

from __future__ import annotations

import argparse
import datetime
import functools
import hashlib
import json
import shlex
import shutil
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from benchmarks import tables
from benchmarks.fds_report import draw, loud, markdown
from benchmarks.measure import Meter
from benchmarks.peers import PYRO_STEPS, TIMEOUT_S, run_peer
from benchmarks.report import RESULTS, Json, busy, machine, run_process_group, say, versions

MAX_ERROR = 0.01
PYRO_ERROR = int(MAX_ERROR * PYRO_STEPS) / PYRO_STEPS  # what Pyro finds at MAX_ERROR: see peers.py
QUERIES = 2_000
QUERIES_JUDGED = 200
MAX_JUDGED = 500  # differing FDs that the rows decide on
REAL = tables.DATA / "real"  # CSV files of yours, if there are any: they replace generated tables

TRACKED, DELETED, INSERTED, END = "tracked", "after the last delete", "after the inserts", "end"  # states

Lhs = tuple[int, ...]
Found = set[tuple[Lhs, int]]  # FDs by the positions of columns


# --- what is measured ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """An algorithm of desbordante with its options; what it finds is compared with `kind` of ours."""

    algorithm: str
    options: dict[str, float] = field(default_factory=dict)
    max_error: float = 0.0  # of holdfast's FDs that it is to be equal to

    @property
    def name(self) -> str:
        """
        >>> Peer("HyFD").name, Peer("HyFD", {"max_lhs": 4}).name
        ('HyFD', 'HyFD max_lhs=4')
        """
        return " ".join([self.algorithm, *(f"{name}={value:g}" for name, value in self.options.items())])


@dataclass(frozen=True)
class Mode:
    """A table, a way to track it, and the batches that follow."""

    name: str
    table: str
    n_rows: int  # if generated; a CSV of yours has its own
    options: dict[str, Any]  # of `track`
    batches: tuple[tuple[int, int], ...]  # (rows, or minus per cent of the table, and how many)
    peers: tuple[Peer, ...] = ()  # on the table as it is tracked
    peers_later: tuple[Peer, ...] = ()  # on the table as it is at the states `later`
    later: tuple[str, ...] = (DELETED,)
    fresh: bool = False  # inserts are new rows
    queries: bool = False
    n_agree_sets: int | None = None  # of the paper, for the real table
    note: str = ""

    def open_table(self, data: Path | None) -> tables.BenchTable:
        for folder in (data, REAL):
            if folder is not None and (folder / f"{self.table}.csv").exists():
                return tables.complete(self.table, folder / f"{self.table}.csv")
        return tables.generated(self.table, self.n_rows)

    def sizes(self, n_rows: int) -> list[tuple[int, int]]:
        """(rows, how many) of the batches on a table that long.

        >>> Mode("m", "t", 0, {}, ((50, 5), (-1, 3))).sizes(32_561)
        [(50, 5), (325, 3)]
        """
        return [(n if n > 0 else n_rows * -n // 100, repeats) for n, repeats in self.batches]


HYFD, PYRO = Peer("HyFD"), Peer("Pyro")
COUNTED, WITNESSED = {"evidence": "counted"}, {"evidence": "witnessed"}
MODES = {
    mode.name: mode
    for mode in (
        Mode(
            "adult", "adult", 32_561, COUNTED, ((50, 5), (-1, 3)), (HYFD, PYRO), (HYFD,), n_agree_sets=9_555
        ),
        Mode(
            "adult-approximate",
            "adult",
            32_561,
            {**COUNTED, "max_error": MAX_ERROR},
            ((-1, 5),),
            (
                Peer("Pyro", {"error": MAX_ERROR}, PYRO_ERROR),
                Peer("Tane", {"error": MAX_ERROR}, MAX_ERROR),
            ),
            (Peer("Pyro", {"error": MAX_ERROR}, PYRO_ERROR),),
            n_agree_sets=9_555,
            note="FDs and keys within 1 % of all pairs",
        ),
        Mode(
            "claims", "claims", 101_985, COUNTED, ((50, 5), (-1, 3)), (HYFD, PYRO), (HYFD,), n_agree_sets=512
        ),
        Mode("claims-witnessed", "claims", 101_985, WITNESSED, ((50, 5), (-1, 5)), (HYFD, PYRO), (HYFD,)),
        Mode(
            "uniprot",
            "uniprot",
            1_000,
            {**COUNTED, "max_lhs": 1},
            ((50, 5),),
            (Peer("HyFD", {"max_lhs": 1}),),
            (Peer("HyFD", {"max_lhs": 1}),),
            queries=True,
            n_agree_sets=326_698,
            note="agree sets and their index; FDs with one column on the left only, so hardly any is kept",
        ),
        Mode(
            "flight",
            "flight",
            1_000,
            {**COUNTED, "max_lhs": 1},
            ((50, 5), (-10, 3)),
            (Peer("HyFD", {"max_lhs": 1}),),
            (Peer("HyFD", {"max_lhs": 1}),),
            note="agree sets and their index; FDs with one column on the left only",
        ),
        Mode(
            "flight-fds",
            "flight",
            1_000,
            {**COUNTED, "max_lhs": 4},
            ((-10, 5), (50, 5)),
            (Peer("HyFD", {"max_lhs": 4}),),
            (Peer("HyFD", {"max_lhs": 4}),),
            note="FDs with up to 4 columns on the left",
        ),
        Mode(
            "lineitem-100k",
            "lineitem",
            100_000,
            WITNESSED,
            ((1_000, 5),),
            (HYFD, PYRO),
            (PYRO,),
            (INSERTED, END),
            fresh=True,
        ),
        Mode(
            "lineitem-1m",
            "lineitem",
            1_000_000,
            WITNESSED,
            ((1_000, 5),),
            (HYFD, PYRO),
            (PYRO,),
            (END,),
            fresh=True,
        ),
    )
}
QUICK_MODES = ("adult", "adult-approximate", "flight")


@dataclass(frozen=True)
class Batch:
    kind: str  # "insert" or "delete"
    rows: tables.Rows  # numbers of rows of the BenchTable
    checked: bool = False  # what holds after it is written down


def batch_plan(mode: Mode, n_rows: int) -> list[Batch]:
    """The batches in the order they run.

    Old rows: D1 D2 I1 D3 I2 ... Dn In-1 In, for each size, where In inserts what Dn deleted: so
    a batch of inserts never undoes the delete before it, and the table ends as it began.

    >>> plan = batch_plan(Mode("m", "t", 0, {}, ((5, 3),)), 100)
    >>> [batch.kind[0] for batch in plan], [batch.checked for batch in plan].index(True)
    (['d', 'd', 'i', 'd', 'i', 'i'], 3)
    """
    gone = np.random.default_rng(tables.SEED).permutation(n_rows)
    taken, arrived = 0, n_rows
    inserts: list[Batch] = []
    deletes: list[Batch] = []
    plan: list[Batch] = []
    for n_batch, repeats in mode.sizes(n_rows):
        batches = [gone[taken + i * n_batch : taken + (i + 1) * n_batch] for i in range(repeats)]
        taken += repeats * n_batch
        if taken > n_rows:
            raise ValueError(f"{mode.name}: {n_rows} rows are too few for the batches")
        for i, rows in enumerate(batches):
            if mode.fresh:
                inserts.append(Batch("insert", np.arange(arrived, arrived + n_batch)))
                deletes.append(Batch("delete", rows))
                arrived += n_batch
                continue
            plan.append(Batch("delete", rows))
            if i > 0:
                plan.append(Batch("insert", batches[i - 1]))
        if not mode.fresh:
            plan.append(Batch("insert", batches[-1]))
    plan += inserts + deletes
    kinds = [batch.kind for batch in plan]
    last = len(inserts) - 1 if mode.fresh else len(kinds) - 1 - kinds[::-1].index("delete")
    plan[last] = Batch(plan[last].kind, plan[last].rows, checked=True)
    return plan


def rows_at(mode: Mode, n_rows: int, state: str) -> tables.Rows:
    """The numbers of the rows that the table has at a state."""
    there = np.ones(2 * n_rows, dtype=np.bool_)
    there[n_rows:] = False
    for batch in batch_plan(mode, n_rows) if state != TRACKED else ():
        there[batch.rows] = batch.kind == "insert"
        if batch.checked and state != END:
            break
    return np.flatnonzero(there)


# --- one mode, in its own process ---------------------------------------------------------------


def measure_mode(mode: Mode, table: tables.BenchTable, workspace: Path, found: Path, out: Json) -> None:
    """Fill `out` with the figures; what was measured before an error stays in it."""
    import holdfast

    columns = table.rows(np.zeros(0, dtype=np.int64)).column_names
    out.update(table=table.name, n_rows=table.n_rows, n_columns=len(columns))
    note = functools.partial(write_fds, mode=mode, columns=columns, found=found)
    with Meter() as meter:
        ws = holdfast.open(str(workspace))
        warm_up(ws, mode, table)
    out["warm_up_s"] = meter.elapsed_s
    say(f"  session and warm-up {meter.elapsed_s:.1f} s")

    with Meter(memory=True) as meter:
        ws.track(table.name, str(table.csv), kinds=("fd",), **mode.options)
    out["track"] = {
        "elapsed_s": meter.elapsed_s,
        "peak_bytes": meter.peak_bytes,
        "memory_kind": meter.memory_kind,
        "n_fds": note(ws, state=TRACKED),
    }
    peak = (meter.peak_bytes or 0) / 1e9
    say(f"  track {meter.elapsed_s:.2f} s, {out['track']['n_fds']:,} FDs, {peak:.2f} GB")
    counted = mode.options["evidence"] == "counted"
    if counted:
        masks, counts = agree_sets(ws, table.name)
        before = digest(masks, counts)
        out["agree_sets"] = {"n": len(masks), "n_pairs": int(counts.sum()), "paper": mode.n_agree_sets}
        say(f"  {len(masks):,} agree sets")
        if mode.queries:
            out["queries"] = measure_queries(ws, table, len(masks))
        del masks, counts

    out["batches"] = []
    for batch in batch_plan(mode, table.n_rows):
        out["batches"].append(timed_apply(ws, table.name, batch.kind, table.rows(batch.rows)))
        if batch.checked:
            out["n_fds_later"] = note(ws, state=INSERTED if mode.fresh else DELETED)
    out["n_fds_at_end"] = note(ws, state=END)
    if counted:
        after = digest(*agree_sets(ws, table.name))
        out["agree_sets"]["as_at_start"] = before == after
    ws.close()


def write_fds(ws: Any, state: str, mode: Mode, columns: list[str], found: Path) -> int:
    """Write the FDs by position, for each error that a peer is compared at; how many exact ones there are."""
    at = {name: i for i, name in enumerate(columns)}
    exact = 0
    for error in sorted({0.0, *(peer.max_error for peer in (*mode.peers, *mode.peers_later))}):
        fds = ws.dependencies(kind="fd", table=mode.table, **({"max_error": error} if error else {}))
        told = sorted((sorted(at[name] for name in fd.lhs), at[fd.rhs]) for fd in fds)
        (found / ours_file(mode, error, state)).write_text(json.dumps(told))
        exact = exact if error else len(told)
    return exact


def ours_file(mode: Mode, error: float, state: str) -> str:
    return f"{mode.name}, {error:.9f}, {state}.json"


def agree_sets(ws: Any, table: str) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """The different agree sets of a table, as masks, and how many pairs have each."""
    # Not `ws.fds.agree_sets`: a third of a million tuples of names take longer than a batch.
    evidence = ws.fds.evidence(table)
    return evidence.masks, evidence.counts


def digest(masks: npt.NDArray[np.uint64], counts: npt.NDArray[np.int64]) -> str:
    """One text for a multiset of agree sets, whatever its order."""
    order = np.lexsort(masks.T)
    return hashlib.sha256(masks[order].tobytes() + counts[order].tobytes()).hexdigest()


def warm_up(ws: Any, mode: Mode, table: tables.BenchTable) -> None:
    """Start the session: Spark with its workers, and the kernels on a small table, tracked the same way."""
    from holdfast.core.engine.engine import echo

    for _ in range(2):
        ws.writer.engine.run(echo, [{"task": i} for i in range(4 * ws.writer.engine.cores)], where="spark")
    if table.n_rows > 50_000:
        small = tables.generated("lineitem", 20_000)
        small.ensure_files()
        ws.track("warm_up", str(small.csv), kinds=("fd",), **mode.options)
    else:
        small = table
        ws.track("warm_up", table.rows(np.arange(300)), kinds=("fd",), **mode.options)
    for _ in range(2):
        ws.apply("warm_up", deletes=small.rows(np.arange(50)))
        ws.apply("warm_up", inserts=small.rows(np.arange(50)))


def timed_apply(ws: Any, table: str, kind: str, rows: pa.Table) -> Json:
    """Apply one batch. `cpu_s` is the processor's time of the driver: on a busy machine it tells more."""
    rows = rows.combine_chunks()
    cpu_before = time.process_time()
    with Meter() as meter:
        change = ws.apply(table, **{f"{kind}s": rows})
    cpu_s = time.process_time() - cpu_before
    events = [c.event for c in change.changes]
    told = {event: events.count(event) for event in sorted(set(events))}
    say(f"  {kind} {rows.num_rows:,}: {meter.elapsed_s:.3f} s ({cpu_s:.3f} s of processor) {told or ''}")
    return {
        "kind": kind,
        "n_rows": rows.num_rows,
        "elapsed_s": meter.elapsed_s,
        "cpu_s": cpu_s,
        "n_fds": change.tables[0].n("fd"),
        "events": told,
    }


def measure_queries(ws: Any, table: tables.BenchTable, n_agree_sets: int) -> Json:
    """Seconds of one question for the error of X -> A, X of 1 to 4 columns, asked singly."""
    names = table.rows(np.zeros(0, dtype=np.int64)).column_names
    started = time.perf_counter()
    ws.fds.error_of(table.name, [names[0]], names[1])
    first_s = time.perf_counter() - started
    draw_random = np.random.default_rng(tables.SEED)
    asked = [draw_random.choice(len(names), 2 + i % 4, replace=False).tolist() for i in range(QUERIES)]
    answers, seconds = [], []
    for *lhs, rhs in asked:
        left, right = [names[c] for c in lhs], names[rhs]
        started = time.perf_counter()
        answers.append(ws.fds.error_of(table.name, left, right))
        seconds.append(time.perf_counter() - started)
    judge = Judge(table.rows(np.arange(table.n_rows)))
    all_pairs = judge.pairs(())
    wrong = sum(
        judge.violations(tuple(lhs), rhs) / all_pairs != answer
        for (*lhs, rhs), answer in zip(asked[:QUERIES_JUDGED], answers, strict=False)
    )
    result = {
        "n_agree_sets": n_agree_sets,
        "n": QUERIES,
        "first_s": first_s,
        "median_s": statistics.median(seconds),
        "slowest_1_percent_s": float(np.quantile(seconds, 0.99)),
        "judged": QUERIES_JUDGED,
        "wrong": wrong,
    }
    say(f"  a query {result['median_s'] * 1e6:.0f} us, {result['slowest_1_percent_s'] * 1e6:.0f} us at 99 %")
    return result


def run_child(mode: Mode, data: Path | None, workspace: Path, found: Path, out_file: Path) -> None:
    out: Json = {}
    try:
        if mode is SHARING:
            from benchmarks.agree_sets import sharing

            out["rows"] = sharing(data or REAL)
        elif mode is BEST:
            from benchmarks.best_fds import best

            out["rows"] = best(data or REAL)
        else:
            measure_mode(mode, mode.open_table(data), workspace, found, out)
    except Exception as error:
        traceback.print_exc()
        out["error"] = f"{type(error).__name__}: {error}"[:2_000]
    out_file.write_text(json.dumps(out))


# Measurements of their own: of prefixes; of the best dependencies without the others.
SHARING, BEST = Mode("sharing", "", 0, {}, ()), Mode("best", "", 0, {}, ())
ALONE = {mode.name: mode for mode in (SHARING, BEST)}


# --- who is right -------------------------------------------------------------------------------


class Judge:
    """Decides on the rows whether an FD holds and is minimal. NULLs are equal. For few FDs: a sort each."""

    def __init__(self, rows: pa.Table) -> None:
        self.n_rows = rows.num_rows
        encoded = (pc.dictionary_encode(c.combine_chunks(), "encode") for c in rows.columns)
        self.codes = [np.asarray(column.indices).astype(np.int64) for column in encoded]

    def pairs(self, columns: Iterable[int]) -> int:
        """How many pairs of rows agree on the columns.

        >>> judge = Judge(pa.table({"a": [1, 1, None, None], "b": [1, 2, 3, 3]}))
        >>> judge.pairs([]), judge.pairs([0]), judge.pairs([0, 1]), judge.violations((0,), 1)
        (6, 2, 1, 1)
        """
        group = np.zeros(self.n_rows, dtype=np.int64)
        for column in columns:
            codes = self.codes[column]
            _, group = np.unique(group * (codes.max(initial=0) + 1) + codes, return_inverse=True)
        sizes = np.bincount(group)
        return int((sizes * (sizes - 1) // 2).sum())

    def violations(self, lhs: Lhs, rhs: int) -> int:
        return self.pairs(lhs) - self.pairs((*lhs, rhs))

    def is_minimal(self, lhs: Lhs, rhs: int, max_error: float) -> bool:
        """Whether an FD holds within the error and none with a column less does."""
        most = int(Fraction(max_error).limit_denominator(10**12) * self.pairs(()))
        less = (tuple(c for c in lhs if c != left) for left in lhs)
        return self.violations(lhs, rhs) <= most and all(self.violations(x, rhs) > most for x in less)


def compare(what: str, ours: Found, theirs: Found, rows: pa.Table, max_error: float) -> Json:
    """Both sides, and by the rows who is wrong about what only one side has."""
    only_ours, only_theirs = sorted(ours - theirs), sorted(theirs - ours)
    check: Json = {"what": what, "ours": len(ours), "theirs": len(theirs), "equal": ours == theirs}
    if ours == theirs:
        return {**check, "ours_wrong": 0, "theirs_wrong": 0}
    judge = Judge(rows)
    false = [fd for fd in only_ours[:MAX_JUDGED] if not judge.is_minimal(*fd, max_error)]
    missed = [fd for fd in only_theirs[:MAX_JUDGED] if judge.is_minimal(*fd, max_error)]
    unjudged = max(len(only_ours) - MAX_JUDGED, 0) + max(len(only_theirs) - MAX_JUDGED, 0)
    return {
        **check,
        "only_ours": len(only_ours),
        "only_theirs": len(only_theirs),
        "ours_wrong": len(false) + len(missed) + unjudged,
        "theirs_wrong": len(only_ours) + len(only_theirs) - len(false) - len(missed) - unjudged,
        "false": false[:5],
        "missed": missed[:5],
        "unjudged": unjudged,
    }


# --- all modes ----------------------------------------------------------------------------------


@dataclass
class Run:
    """What all modes of a run share."""

    scratch: Path
    data: Path | None
    timeout_s: float | None  # of a peer; None: no peers
    peers: list[Json] = field(default_factory=list)

    @property
    def found(self) -> Path:
        return self.scratch / "found"

    def child(self, mode: Mode) -> Json:
        """Measure one mode in a child process; its workspace is removed afterwards."""
        workspace, out_file = self.scratch / f"{mode.name}.hold", self.scratch / f"{mode.name}.json"
        say(f"{mode.name}: holdfast")
        command = [sys.executable, "-m", "benchmarks.fds", "--child", mode.name]
        command += ["--child-out", str(out_file), "--child-found", str(self.found)]
        command += ["--child-ws", str(workspace)] + (["--data", str(self.data)] if self.data else [])
        code = run_process_group(command)
        result: Json = json.loads(out_file.read_text()) if out_file.exists() else {}
        if code and "error" not in result:
            result["error"] = f"the measuring process ended with code {code}"
        shutil.rmtree(workspace, ignore_errors=True)
        return result

    def mode(self, mode: Mode) -> Json:
        """Measure holdfast, then the peers, then compare."""
        table = mode.open_table(self.data)
        table.ensure_files()
        result = {
            "name": mode.name,
            "table": table.name,
            "n_rows": table.n_rows,
            "n_columns": table.n_columns,
            "real": table.n_future == 0,
            "options": mode.options,
            "note": mode.note,
            "sizes": [n for n, _ in mode.sizes(table.n_rows)],
            "stem": table.csv.stem,
            "peer_names": [peer.name for peer in mode.peers],
            **self.child(mode),
            "agreement": [],
            "not_compared": [],
        }
        if not mode.fresh:
            self.compare_ours(mode, table, result)
        if self.timeout_s is not None:
            asked = [(peer, TRACKED) for peer in mode.peers]
            asked += [(peer, state) for state in mode.later for peer in mode.peers_later]
            for peer, state in asked:
                self.peer(mode, table, peer, state, result)
        for check in result["agreement"]:
            word = "equal" if check["equal"] else "ours WRONG" if check["ours_wrong"] else "theirs wrong"
            say(f"{mode.name}: {check['what']}: {word}")
        return result

    def compare_ours(self, mode: Mode, table: tables.BenchTable, result: Json) -> None:
        """The table at the end is the one at the start, so its FDs are."""
        files = [self.found / ours_file(mode, 0.0, state) for state in (END, TRACKED)]
        if all(file.exists() for file in files):
            rows = table.rows(np.arange(table.n_rows))
            check = compare("at the end: as tracked", *map(read_found, files), rows, 0.0)
            result["agreement"].append(check)

    def peer(self, mode: Mode, table: tables.BenchTable, peer: Peer, state: str, result: Json) -> None:
        """Run a peer on the table at a state, once for all modes that ask, and compare."""
        numbers = rows_at(mode, table.n_rows, state)
        key = f"{table.csv.stem}, {peer.name}, {state if state == TRACKED else f'{mode.name} {state}'}"
        file = self.found / f"{key}.peer.json"
        if not any(run["key"] == key for run in self.peers):
            csv = table.csv if state == TRACKED else self.scratch / f"{mode.name}-later.csv"
            if state != TRACKED:
                write_csv(table, numbers, csv)
            done = run_peer(peer.algorithm, csv, self.timeout_s or TIMEOUT_S, None, file, peer.options)
            say(f"{mode.name}: {peer.name}, {state}: {done}")
            told = {**done.to_dict(), "key": key, "stem": table.csv.stem, "name": peer.name, "state": state}
            self.peers.append(told)
            if state != TRACKED:
                csv.unlink()
        ours = self.found / ours_file(mode, peer.max_error, state)
        what = f"{state}: {peer.name}"
        if ours.exists() and file.exists():
            rows = table.rows(numbers)
            check = compare(what, read_found(ours), read_found(file), rows, peer.max_error)
            result["agreement"].append(check)
        else:
            result["not_compared"].append(what)


def read_found(file: Path) -> Found:
    return {(tuple(lhs), rhs) for lhs, rhs in json.loads(file.read_text())}


def write_csv(table: tables.BenchTable, numbers: tables.Rows, out: Path) -> None:
    schema = table.rows(numbers[:0]).schema
    with pa_csv.CSVWriter(out, schema, write_options=tables.PLAIN_CSV) as writer:
        for first in range(0, len(numbers), tables.CHUNK_ROWS):
            writer.write_table(table.rows(numbers[first : first + tables.CHUNK_ROWS]))


# --- the command --------------------------------------------------------------------------------


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, folder / f"{stem}.png")
    (folder / f"{stem}.md").write_text(markdown(results, f"{stem}.png"))


def parse(argv: list[str]) -> argparse.Namespace:
    names = [*MODES, *ALONE]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fds", description=__doc__.split("\n")[0])
    parser.add_argument("--modes", default=None, help=f"some of {', '.join(names)}; all by default")
    parser.add_argument(
        "--quick", action="store_true", help=f"{', '.join(QUICK_MODES)} only; results as fds-quick.*"
    )
    parser.add_argument("--no-peers", action="store_true", help="measure holdfast only")
    parser.add_argument("--timeout", type=float, default=TIMEOUT_S, help="seconds a peer may take")
    parser.add_argument("--data", type=Path, help="folder with real adult.csv, claims.csv, uniprot.csv, ...")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the report and plot again")
    parser.add_argument("--child", metavar="MODE", help=argparse.SUPPRESS)
    for hidden in ("--child-out", "--child-found", "--child-ws"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.modes = args.modes.split(",") if args.modes else list(QUICK_MODES) if args.quick else names
    if unknown := set(args.modes) - set(names):
        parser.error(f"no mode {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    args.data = args.data.resolve() if args.data else None
    return args


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    if args.child:
        mode = {**MODES, **ALONE}[args.child]
        run_child(mode, args.data, args.child_ws, args.child_found, args.child_out)
        return 0
    stem = "fds-quick" if args.quick else "fds"
    if args.render:
        write_results(json.loads((args.results / f"{stem}.json").read_text()), args.results, stem)
        return 0

    tables.DATA.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=tables.DATA))
    run = Run(scratch, args.data, None if args.no_peers else args.timeout)
    run.found.mkdir()
    results: Json = {
        "command": shlex.join(["python", "-m", "benchmarks.fds", *argv]),
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "machine": machine(),
        "versions": versions(),
        "seed": tables.SEED,
        "modes": [],
        "peers": run.peers,
    }
    for line in busy(results):
        say(line)
    try:
        for mode in (mode for name, mode in MODES.items() if name in args.modes):
            results["modes"].append(run.mode(mode))
            write_results(results, args.results, stem)  # after each mode: a long run may be stopped
        for name in (name for name in ALONE if name in args.modes):
            results[name] = run.child(ALONE[name])
            write_results(results, args.results, stem)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    troubles = loud(results)
    for line in troubles:
        say(line)
    say(f"wrote {args.results / stem}.md, .json and .png")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
