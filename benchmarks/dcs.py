"""The benchmark of denial constraints: from scratch, batches, pinned rules, and the peer on the same data.

For each mode (a table and a way to track it), in a process of its own and in a warm session:

1. `track` to constraints, with the peak memory;
2. `apply`: an insert batch of new rows, then a delete batch of as many old rows, and so on, several times. So
   each finds a table of about its first size;
3. at the end `track` again, from scratch, of the rows as they are then: the constraints must be those that
   were maintained.

The modes `table10-...`, with airport and adult-tenth, are the tables of IncDC's table 10 (`published`):
10 % of the rows are inserted once, and then as many deleted.

The modes `pin-...` track a table of a million rows without its constraints, pin one rule with two
inequalities, and apply batches; the counts of violations are compared with those of a sort and a scan.

Then FastADC on the same CSV files. What it finds is compared, constraint by constraint; where both differ,
the rows decide who is wrong (`Judge`). Is it holdfast, then this heads the report and the exit code is 1.

    python -m benchmarks.dcs [--modes airport,tax-50k] [--data DIR] [--quick] [--no-peers] [--render]
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import shlex
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from benchmarks import published, tables
from benchmarks.dcs_report import draw, loud, markdown
from benchmarks.measure import Meter
from benchmarks.peers import run_peer
from benchmarks.report import RESULTS, Json, busy, machine, run_process_group, say, versions
from benchmarks.tax import tax_table

PEER_TIMEOUT_S = 600.0
MAX_JUDGED = 20  # differing constraints that the rows decide on
REAL = tables.DATA / "real"  # CSV files of yours, if there are any

TRACKED, INSERTED, END = "tracked", "after the first inserts", "end"  # states

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Triple = tuple[str, str, str]  # left, operator, right
Told = tuple[Triple, ...]  # a constraint: sorted, the lesser of itself and its mirror image
Found = set[Told]

MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
LOOSER = {"=": ("<=", ">="), "<": ("<=", "!="), ">": (">=", "!=")}


# --- what is measured ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """FastADC with its options, on the table at some states."""

    algorithm: str
    options: dict[str, float] = field(default_factory=dict)
    states: tuple[str, ...] = (TRACKED,)

    @property
    def across(self) -> bool:
        """Whether different columns are compared too."""
        return bool(self.options.get("allow_cross_columns", True))

    @property
    def name(self) -> str:
        """
        >>> Peer("FastADC", {"allow_cross_columns": False}).name
        'FastADC, no different columns'
        """
        return self.algorithm + ("" if self.across else ", no different columns")


@dataclass(frozen=True)
class Mode:
    """A table, a way to track it, and the batches that follow."""

    name: str
    table: str
    n_rows: int
    options: dict[str, Any] = field(default_factory=dict)  # of `track`
    n_batch: int = 0
    repeats: int = 0
    peers: tuple[Peer, ...] = ()
    again: bool = False  # track the last rows from scratch, and compare
    rule: str = ""  # pinned, and nothing else is found
    n_dcs: int | None = None  # published, for the real table
    note: str = ""

    def open_table(self, data: Path | None) -> tables.BenchTable | None:
        """The table: yours if there is one, else generated; None for airport, which is not generated."""
        if self.table == "claims":
            return published.decoded(self.file(data) or tables.generated("claims", self.n_rows))
        if self.table == "tax":
            return tax_table(self.n_rows)
        if self.table in published.MAKERS:
            return published.stand_in(self.table, self.n_rows)
        if self.table == "lineitem":
            return tables.generated("lineitem", self.n_rows)
        generated = tables.generated("adult", self.n_rows) if self.table == "adult" else None
        return self.file(data) or generated

    def file(self, data: Path | None) -> tables.BenchTable | None:
        """The table from a CSV of yours, if there is one."""
        for folder in (data, REAL):
            if folder is not None and (folder / f"{self.table}.csv").exists():
                return first_rows(self.table, self.n_rows, folder)
        return None


FASTADC = Peer("FastADC", states=(TRACKED, INSERTED))
SAME_COLUMNS = Peer("FastADC", {"allow_cross_columns": False})
WITNESSED = {"evidence": "witnessed"}
PINS = {"kinds": ("ucc",), "max_columns": 1}
MODES = {
    mode.name: mode
    for mode in (
        Mode("airport", "airport", 30_000, {}, 3_000, 3, (FASTADC,), again=True, n_dcs=31),
        Mode("adult-1k", "adult", 1_000, {}, peers=(SAME_COLUMNS,)),
        Mode("adult-5k", "adult", 5_000, {}, peers=(SAME_COLUMNS,)),
        Mode("adult", "adult", 24_000, {}, 240, 3, again=True),
        Mode("adult-tenth", "adult", 24_000, {}, 2_400, 1, again=True),
        *(
            Mode(name, name.removeprefix("table10-"), line.n_rows, {}, line.n_rows // 10, 1, again=True)
            for name, line in published.TABLE_10.items()
            if name.removeprefix("table10-") in published.MAKERS
        ),
        # All rows at hand but one: a tenth of the others is inserted.
        Mode("table10-claims", "claims", 92_713, {"within_columns": True}, 9_271, 1, again=True),
        Mode("tax-50k", "tax", 50_000, WITNESSED, 1_000, 3, again=True),
        Mode("tax-500k", "tax", 500_000, WITNESSED, 1_000, 3, again=True),
        Mode(
            "pin-same-state",
            "tax",
            1_000_000,
            PINS,
            1_000,
            4,
            rule="not(t.state = s.state and t.salary < s.salary and t.rate > s.rate)",
            note="holds",
        ),
        Mode(
            "pin-few-values",
            "tax",
            1_000_000,
            PINS,
            1_000,
            4,
            rule="not(t.single_exemp < s.single_exemp and t.married_exemp < s.married_exemp)",
            note="holds",
        ),
        Mode(
            "pin-zip",
            "tax",
            1_000_000,
            PINS,
            1_000,
            4,
            rule="not(t.zip < s.zip and t.area_code > s.area_code)",
            note="nearly holds: rows of one state violate it",
        ),
        Mode(
            "pin-many-values",
            "lineitem",
            1_000_000,
            PINS,
            1_000,
            4,
            rule="not(t.l_orderkey < s.l_orderkey and t.l_extendedprice > s.l_extendedprice)",
            note="every second pair violates it",
        ),
    )
}
QUICK_MODES = ("airport", "tax-50k")


def first_rows(name: str, n_rows: int, folder: Path) -> tables.BenchTable:
    """The first rows of a CSV of yours; its other rows, and those of NAME_increment.csv, are the future.

    A header such as `elevation(Integer)` loses the type. In the table's own files text is UTF-8, and has
    single quotes for double ones and semicolons for commas: so no value needs quotes.
    """
    rows = pa.concat_tables(
        _read(file) for file in (folder / f"{name}.csv", folder / f"{name}_increment.csv") if file.exists()
    ).combine_chunks()
    stem = f"{name}-first-{n_rows}"
    return tables.BenchTable(
        name,
        n_rows,
        tables.DATA / f"{stem}.csv",
        tables.DATA / f"{stem}.parquet",
        lambda numbers: rows.take(pa.array(numbers)),
        rows.num_rows - n_rows,
    )


def _read(file: Path) -> pa.Table:
    text = file.read_bytes()
    try:
        text.decode()
        encoding = "utf8"
    except UnicodeDecodeError:
        encoding = "latin-1"
    table = pa_csv.read_csv(
        pa.BufferReader(text),
        read_options=pa_csv.ReadOptions(encoding=encoding),
        convert_options=pa_csv.ConvertOptions(null_values=[""], strings_can_be_null=True),
    )
    columns = list(table.columns)
    for i, column in enumerate(columns):
        if pa.types.is_string(column.type):
            columns[i] = pc.replace_substring(pc.replace_substring(column, '"', "'"), ",", ";")
    return pa.table(columns, names=[name.partition("(")[0] for name in table.column_names])


@dataclass(frozen=True)
class Batch:
    kind: str  # "insert" or "delete"
    rows: tables.Rows  # numbers of rows of the BenchTable
    state: str = ""  # what holds after it is written down, as of this state


def batch_plan(mode: Mode) -> list[Batch]:
    """Inserts of new rows and deletes of old ones, in turn.

    >>> plan = batch_plan(Mode("m", "t", 100, {}, 5, 2))
    >>> [(batch.kind, len(batch.rows), batch.state) for batch in plan][:2], plan[2].rows.tolist()
    ([('insert', 5, 'after the first inserts'), ('delete', 5, '')], [105, 106, 107, 108, 109])
    """
    gone = np.random.default_rng(tables.SEED).permutation(mode.n_rows)
    plan: list[Batch] = []
    for i in range(mode.repeats):
        first, last = i * mode.n_batch, (i + 1) * mode.n_batch
        new = np.arange(mode.n_rows + first, mode.n_rows + last)
        plan += [Batch("insert", new, "" if i else INSERTED), Batch("delete", gone[first:last])]
    return plan


def rows_at(mode: Mode, state: str) -> tables.Rows:
    """The numbers of the rows that the table has at a state, ascending."""
    there = np.zeros(mode.n_rows + mode.n_batch * mode.repeats, dtype=np.bool_)
    there[: mode.n_rows] = True
    for batch in batch_plan(mode) if state != TRACKED else ():
        there[batch.rows] = batch.kind == "insert"
        if batch.state == state:
            break
    return np.flatnonzero(there)


# --- one mode, in its own process ---------------------------------------------------------------


def measure_mode(mode: Mode, table: tables.BenchTable, workspace: Path, found: Path, out: Json) -> None:
    """Fill `out` with the figures; what was measured before an error stays in it."""
    import holdfast

    with Meter() as meter:
        ws = holdfast.open(str(workspace))
        warm_up(ws, mode, table)
    out["warm_up_s"] = meter.elapsed_s
    say(f"  session and warm-up {meter.elapsed_s:.1f} s")
    if mode.rule:
        measure_rule(ws, mode, table, out)
    else:
        measure_constraints(ws, mode, table, found, out)
    ws.close()


def measure_constraints(ws: Any, mode: Mode, table: tables.BenchTable, found: Path, out: Json) -> None:
    note = functools.partial(write_dcs, ws, mode, found=found)
    out["track"] = timed_track(ws, mode.table, source_of(table), mode)
    n_dcs = out["track"]["n_dcs"] = note(mode.table, TRACKED)
    kept = ws.dcs.ref(mode.table)
    space = ws.dcs.space(mode.table)
    across = sum(len(group.operators) for group in space.groups if group.left < group.right)
    out |= {"n_predicates": space.n_predicates, "n_comparisons": space.n_comparisons, "n_across": across}
    out["evidence_kind"] = kept.evidence_kind
    say(f"  {out['n_predicates']} predicates, {n_dcs:,} constraints, {out['evidence_kind']}")
    out["batches"] = []
    for batch in batch_plan(mode):
        out["batches"].append(timed_apply(ws, mode.table, batch.kind, table.rows(batch.rows)))
        if batch.state:
            out["n_dcs_later"] = note(mode.table, batch.state)
    if mode.repeats:
        out["n_dcs_at_end"] = note(mode.table, END)
    if mode.again:
        ws.drop(mode.table)
        last = table.rows(rows_at(mode, END)).combine_chunks()
        out["again"] = timed_track(ws, "again", last, mode)
        out["again"]["n_dcs"] = write_dcs(ws, mode, "again", f"{END}, again", found=found)


def measure_rule(ws: Any, mode: Mode, table: tables.BenchTable, out: Json) -> None:
    """Batches without the rule, then pin it (which verifies it), then batches with it."""
    out["track"] = timed_track(ws, mode.table, source_of(table), mode)
    plan = batch_plan(mode)
    out["batches_without"] = [
        timed_apply(ws, mode.table, batch.kind, table.rows(batch.rows)) for batch in plan[:2]
    ]
    with Meter(memory=True) as meter:
        pin = ws.pin_rule(mode.rule, table=mode.table)
    say(f"  pin {meter.elapsed_s:.2f} s: {pin}")
    out["pin"] = {"elapsed_s": meter.elapsed_s, "peak_bytes": meter.peak_bytes}
    out["batches"] = [timed_apply(ws, mode.table, batch.kind, table.rows(batch.rows)) for batch in plan[2:]]
    out["violations"] = violations_told(ws, mode)
    out["violations_counted"] = count_violations(mode.rule, table.rows(rows_at(mode, END)))
    say(f"  violations: told {out['violations']}, counted {out['violations_counted']:,}")


def violations_told(ws: Any, mode: Mode) -> int | None:
    """The newest count of the pinned rule's violations."""
    pins = [pin for pin in ws.pins(mode.table) if pin.rule is not None]
    return int(pins[-1].n_violations) if pins else None


def source_of(table: tables.BenchTable) -> str:
    """Generated tables are read from Parquet, others from CSV, as the peer reads them."""
    return str(table.parquet if table.name in ("tax", "lineitem", *published.MAKERS) else table.csv)


def timed_track(ws: Any, name: str, source: Any, mode: Mode) -> Json:
    cpu_before = time.process_time()
    with Meter(memory=True) as meter:
        ws.track(name, source, **{"kinds": ("dc",), **mode.options})
    cpu_s = time.process_time() - cpu_before
    peak = (meter.peak_bytes or 0) / 1e9
    say(f"  track {meter.elapsed_s:.2f} s ({cpu_s:.2f} s of the driver's processor), {peak:.2f} GB")
    return {
        "elapsed_s": meter.elapsed_s,
        "cpu_s": cpu_s,
        "peak_bytes": meter.peak_bytes,
        "memory_kind": meter.memory_kind,
    }


def timed_apply(ws: Any, table: str, kind: str, rows: pa.Table) -> Json:
    """Apply one batch. `cpu_s` is the processor's time of the driver: on a busy machine it tells more."""
    rows = rows.combine_chunks()
    cpu_before = time.process_time()
    with Meter() as meter:
        change = ws.apply(table, **{f"{kind}s": rows})
    cpu_s = time.process_time() - cpu_before
    events = [c.event for c in change.changes]
    told = {event: events.count(event) for event in sorted(set(events))}
    n_dcs = change.tables[0].n("dc")
    say(
        f"  {kind} {rows.num_rows:,}: {meter.elapsed_s:.3f} s ({cpu_s:.3f} s of the driver's processor), "
        f"{n_dcs} constraints {told or ''}"
    )
    return {
        "kind": kind,
        "n_rows": rows.num_rows,
        "elapsed_s": meter.elapsed_s,
        "cpu_s": cpu_s,
        "n_dcs": n_dcs,
        "events": told,
    }


def warm_up(ws: Any, mode: Mode, table: tables.BenchTable) -> None:
    """Start the session: Spark with its workers, and the kernels on a small table, tracked the same way."""
    from holdfast.core.engine.engine import echo

    for _ in range(2):
        ws.writer.engine.run(echo, [{"task": i} for i in range(4 * ws.writer.engine.cores)], where="spark")
    small = table.rows(np.arange(min(table.n_rows // 2, 2_000)))
    if mode.name in published.TABLE_10 or mode.table == "adult":
        # All columns of a few rows have more constraints than those of all rows.
        small = small.select(range(5))
    ws.track("warm_up", small, **{"kinds": ("dc",), **mode.options})
    if mode.rule:
        ws.pin_rule(mode.rule, table="warm_up")
    for _ in range(2):
        ws.apply("warm_up", deletes=small.slice(0, 50))
        ws.apply("warm_up", inserts=small.slice(0, 50))


def run_child(mode: Mode, data: Path | None, workspace: Path, found: Path, out_file: Path) -> None:
    out: Json = {}
    try:
        table = mode.open_table(data)
        assert table is not None
        measure_mode(mode, table, workspace, found, out)
    except Exception as error:
        traceback.print_exc()
        out["error"] = f"{type(error).__name__}: {error}"[:2_000]
    out_file.write_text(json.dumps(out))


# --- what was found -----------------------------------------------------------------------------


def canonical(predicates: Iterable[Iterable[str]]) -> Told:
    """A constraint, the same for both of its forms.

    >>> canonical([("a", ">", "a")]) == canonical([("a", "<", "a")])
    True
    """
    one = sorted((left, op, right) for left, op, right in predicates)
    other = sorted((right, MIRRORED[op], left) for left, op, right in one)
    return tuple(min(one, other))


def write_dcs(ws: Any, mode: Mode, table: str, state: str, *, found: Path) -> int:
    """Write the constraints; how many there are."""
    dcs = ws.dependencies(kind="dc", table=table)
    told = [[(p.left, p.op, p.right) for p in dc.predicates] for dc in dcs]
    (found / ours_file(mode, state)).write_text(json.dumps(told))
    return len(told)


def ours_file(mode: Mode, state: str) -> str:
    return f"{mode.name}, {state}.json"


def read_found(file: Path, *, across: bool = True) -> Found:
    """The constraints in a file; unless `across`, those that compare each column with itself only.

    These are all there are over these predicates: what can be dropped or loosened in a constraint depends on
    its own groups alone.
    """
    found = {canonical(told) for told in json.loads(file.read_text())}
    return found if across else {dc for dc in found if all(left == right for left, _, right in dc)}


# --- who is right -------------------------------------------------------------------------------


class Judge:
    """Decides on the rows whether a constraint holds and is general. For few: n ** 2 comparisons each.

    NULL is equal to NULL, and unlike every value.
    """

    BLOCK = 300

    def __init__(self, rows: pa.Table) -> None:
        self.n_rows = rows.num_rows
        self.rows = rows
        self._codes: dict[tuple[str, str], tuple[Codes, Codes]] = {}

    def codes(self, left: str, right: str) -> tuple[Codes, Codes]:
        """The values of two columns as numbers that compare as they do; -1 for NULL."""
        if (left, right) not in self._codes:
            both = pa.concat_arrays([self.rows[c].combine_chunks() for c in (left, right)])
            encoded = pc.dictionary_encode(both)
            rank = np.full(len(encoded.dictionary) + 1, -1, dtype=np.int32)
            rank[pc.array_sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(rank) - 1)
            codes = rank[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
            self._codes[left, right] = codes[: self.n_rows], codes[self.n_rows :]
        return self._codes[left, right]

    def holds(self, dc: Told) -> bool:
        """
        >>> judge = Judge(pa.table({"a": [1, 1, None, None], "b": [1, 2, 3, 3]}))
        >>> judge.holds((("a", "=", "a"), ("b", "=", "b"))), judge.holds((("a", "<", "a"), ("b", ">=", "b")))
        (False, True)
        """
        for first in range(0, self.n_rows, self.BLOCK):
            last = min(first + self.BLOCK, self.n_rows)
            violated = np.ones((last - first, self.n_rows), dtype=np.bool_)
            violated[np.arange(last - first), np.arange(first, last)] = False
            for left, op, right in dc:
                t_codes, s_codes = self.codes(left, right)
                violated &= _satisfied(t_codes[first:last, None], op, s_codes[None])
            if violated.any():
                return False
        return True

    def is_general(self, dc: Told) -> bool:
        """Whether it holds, and nothing with a predicate less or a looser one does."""
        if not self.holds(dc):
            return False
        for i, (left, op, right) in enumerate(dc):
            if self.holds((*dc[:i], *dc[i + 1 :])):
                return False
            if not pa.types.is_string(self.rows.schema.field(left).type):
                for looser in LOOSER.get(op, ()):
                    if self.holds((*dc[:i], (left, looser, right), *dc[i + 1 :])):
                        return False
        return True


def _satisfied(a: Codes, op: str, b: Codes) -> npt.NDArray[np.bool_]:
    satisfied: npt.NDArray[np.bool_]
    if op in ("=", "!="):
        satisfied = (a == b) == (op == "=")
        return satisfied
    satisfied = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op](a, b)
    if min(a.min(initial=0), b.min(initial=0)) < 0:
        satisfied &= (a >= 0) == (b >= 0)  # two NULLs: -1 compares with -1 as it should
    return satisfied


def compare(what: str, ours: Found, theirs: Found, rows: pa.Table) -> Json:
    """Both sides, and by the rows who is wrong about what only one side has."""
    only_ours, only_theirs = sorted(ours - theirs), sorted(theirs - ours)
    check: Json = {"what": what, "ours": len(ours), "theirs": len(theirs), "equal": ours == theirs}
    if ours == theirs:
        return {**check, "ours_wrong": 0, "theirs_wrong": 0, "unjudged": 0}
    judge = Judge(rows)
    false = [dc for dc in only_ours[:MAX_JUDGED] if not judge.is_general(dc)]
    missed = [dc for dc in only_theirs[:MAX_JUDGED] if judge.is_general(dc)]
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


def count_violations(rule: str, rows: pa.Table) -> int:
    """Ordered pairs that violate a rule of equalities and two strict inequalities, each within a column.

    By a sort and a count of inversions, n log n. No column may have NULLs.

    >>> rows = pa.table({"g": [1, 1, 1, 2], "a": [1, 2, 2, 3], "b": [5, 4, 5, 1]})
    >>> count_violations("not(t.a < s.a and t.b > s.b)", rows)
    4
    >>> count_violations("not(t.g = s.g and t.a < s.a and t.b > s.b)", rows)
    1
    >>> count_violations("not(t.a < s.a and t.b < s.b)", rows)
    0
    """
    group = np.zeros(rows.num_rows, dtype=np.int64)
    signed: list[Ints] = []
    for part in rule.removeprefix("not(").removesuffix(")").split(" and "):
        left, op, _ = part.split()
        codes = Judge(rows).codes(left[2:], left[2:])[0].astype(np.int64)
        if op == "=":
            group = group * (codes.max(initial=0) + 1) + codes
        else:
            signed.append(codes if op == "<" else codes.max(initial=0) - codes)
    first, second = signed  # now t is less than s in both: count what ascends together
    falling = second.max(initial=0) - second
    # Within a group; equal in the first: in the order of the second's fall, where nothing is an inversion.
    order = np.lexsort((falling, first, group))
    return inversions((group * (falling.max(initial=0) + 1) + falling)[order])


def inversions(values: Ints) -> int:
    """How many pairs i < j have values[i] > values[j].

    Bit by bit from the highest: values that agree in the bits before stand together, in their old order; a
    pair is an inversion iff at the first bit in which they differ the earlier one has it set.

    >>> inversions(np.array([3, 1, 2, 1]))
    4
    """
    values = np.unique(values, return_inverse=True)[1].astype(np.int64)
    found = 0
    for bit in reversed(range(int(values.max(initial=0)).bit_length())):
        high, one = values >> (bit + 1), (values >> bit) & 1
        ones = np.cumsum(one)
        starts = np.flatnonzero(np.diff(high, prepend=-1))
        before = np.repeat((ones - one)[starts], np.diff(starts, append=len(values)))
        found += int((ones - before)[one == 0].sum())
        values = values[np.argsort(values >> bit, kind="stable")]
    return found


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
        command = [sys.executable, "-m", "benchmarks.dcs", "--child", mode.name]
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
        result: Json = {
            "name": mode.name,
            "table": mode.table,
            "n_rows": mode.n_rows,
            "n_batch": mode.n_batch,
            "options": mode.options,
            "rule": mode.rule,
            "note": mode.note,
            "peer_names": [peer.name for peer in mode.peers],
            "agreement": [],
            "not_compared": [],
        }
        table = mode.open_table(self.data)
        if table is None:
            say(f"{mode.name}: there is no {mode.table}.csv; skipped")
            return {**result, "missing": f"{mode.table}.csv"}
        table.ensure_files()
        real = table.csv.stem.startswith(f"{mode.table}-first")
        result |= {"n_columns": table.n_columns, "real": real, "stem": table.csv.stem}
        result["published_dcs"] = mode.n_dcs if real else None
        result |= self.child(mode)
        files = [self.found / ours_file(mode, state) for state in (TRACKED, INSERTED)]
        if all(file.exists() for file in files):
            before, after = map(read_found, files)
            result["changed"] = {"broke": len(before - after), "appeared": len(after - before)}
        if mode.again:
            files = [self.found / ours_file(mode, state) for state in (END, f"{END}, again")]
            self.compare_files(mode, "at the end: from scratch", files, table, END, result)
        if self.timeout_s is not None:
            for peer in mode.peers:
                for state in peer.states:
                    self.peer(mode, table, peer, state, result)
        for check in result["agreement"]:
            word = "equal" if check["equal"] else "ours WRONG" if check["ours_wrong"] else "theirs wrong"
            say(f"{mode.name}: {check['what']}: {word}")
        return result

    def peer(self, mode: Mode, table: tables.BenchTable, peer: Peer, state: str, result: Json) -> None:
        """Run a peer on the table at a state and compare."""
        key = f"{table.csv.stem}, {peer.name}, {state}"
        file = self.found / f"{key}.peer.json"
        csv = table.csv
        if state != TRACKED:
            csv = self.scratch / f"{mode.name}-later.csv"
            pa_csv.write_csv(table.rows(rows_at(mode, state)), csv, tables.PLAIN_CSV)
        done = run_peer(peer.algorithm, csv, self.timeout_s or PEER_TIMEOUT_S, None, file, peer.options)
        say(f"{mode.name}: {peer.name}, {state}: {done}")
        told = {**done.to_dict(), "csv": csv.name, "key": key, "stem": table.csv.stem}
        self.peers.append({**told, "name": peer.name, "state": state})
        files = [self.found / ours_file(mode, state), file]
        what = f"{state}: {peer.name}"
        self.compare_files(mode, what, files, table, state, result, across=peer.across)

    def compare_files(
        self,
        mode: Mode,
        what: str,
        files: list[Path],
        table: tables.BenchTable,
        state: str,
        result: Json,
        *,
        across: bool = True,
    ) -> None:
        """The constraints in two files, ours first."""
        if not all(file.exists() for file in files):
            result["not_compared"].append(what)
            return
        ours, theirs = (read_found(file, across=across) for file in files)
        result["agreement"].append(compare(what, ours, theirs, table.rows(rows_at(mode, state))))


# --- the command --------------------------------------------------------------------------------


def write_results(results: Json, folder: Path, stem: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(results, indent=1) + "\n")
    draw(results, folder / f"{stem}.png")
    (folder / f"{stem}.md").write_text(markdown(results, f"{stem}.png"))


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dcs", description=__doc__.split("\n")[0])
    parser.add_argument("--modes", default=None, help=f"some of {', '.join(MODES)}; all by default")
    parser.add_argument(
        "--quick", action="store_true", help=f"{', '.join(QUICK_MODES)} only; results as dcs-quick.*"
    )
    parser.add_argument("--no-peers", action="store_true", help="measure holdfast only")
    parser.add_argument("--timeout", type=float, default=PEER_TIMEOUT_S, help="seconds a peer may take")
    parser.add_argument("--data", type=Path, help="folder with airport.csv, airport_increment.csv, adult.csv")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--render", action="store_true", help="only write the report and plot again")
    parser.add_argument("--child", metavar="MODE", help=argparse.SUPPRESS)
    for hidden in ("--child-out", "--child-found", "--child-ws"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.modes = args.modes.split(",") if args.modes else list(QUICK_MODES) if args.quick else list(MODES)
    if unknown := set(args.modes) - set(MODES):
        parser.error(f"no mode {', '.join(sorted(unknown))}; there are {', '.join(MODES)}")
    args.data = args.data.resolve() if args.data else None
    return args


def command_text(argv: list[str]) -> str:
    """The command, without where folders lie.

    >>> command_text(["--data", "/home/me/tables", "--quick"])
    'python -m benchmarks.dcs --data tables --quick'
    """
    told = [Path(arg).name if "/" in arg else arg for arg in argv]
    return shlex.join(["python", "-m", "benchmarks.dcs", *told])


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    args = parse(argv)
    if args.child:
        run_child(MODES[args.child], args.data, args.child_ws, args.child_found, args.child_out)
        return 0
    stem = "dcs-quick" if args.quick else "dcs"
    if args.render:
        write_results(json.loads((args.results / f"{stem}.json").read_text()), args.results, stem)
        return 0

    tables.DATA.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="run-", dir=tables.DATA))
    run = Run(scratch, args.data, None if args.no_peers else args.timeout)
    run.found.mkdir()
    results: Json = {
        "command": command_text(argv),
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
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    troubles = loud(results)
    for line in troubles:
        say(line)
    say(f"wrote {stem}.md, .json and .png")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
