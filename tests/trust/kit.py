"""What the trust tests share: a small table, its history, and what a workspace looks like from outside.

Nothing here touches Spark. `snapshot` reads everything a user could see, down to the rows in the
segments and the frequencies in the runs, so that two equal snapshots are equal workspaces; and it holds
keys, functional dependencies and inclusions against the oracles of the very rows it found. `shop.py` has
tables that refer to each other, `twins.py` tables with functional dependencies, `every.py` tables that are
tracked for every kind there is.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import holdfast
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import TableState
from holdfast.core.store import litter
from holdfast.core.words.dependency import Fd
from holdfast.inclusions.runs import entries_in_range
from holdfast.workspace import Workspace
from reference import fds as fd_oracle
from reference import inds as oracle

COLUMNS = ("id", "name", "city", "grade", "score")
TYPES = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.float64())
Row = tuple[Any, ...]
# How the files of covers are called: older versions need them, too.
COVERS = ("cover-", "fds-", "approximate-", "dcs-", "nearly-")

START: list[Row] = [
    (1, "Ada", "Rome", 1, 0.5),
    (2, "Bob", "Rome", 2, 0.5),
    (3, "Cyd", "Oslo", 1, 1.5),
    (4, "Dan", None, 2, 1.5),
    (5, "Eve", "Oslo", 3, 2.5),
    (6, "Fay", "Lima", 3, 3.5),
]
# (inserts, deletes) of three batches: several segments, delete vectors and indexes.
HISTORY: list[tuple[list[Row], list[Row]]] = [
    ([(7, "Gus", "Lima", 1, 0.5), (8, "Ada", "Bern", 4, 9.5)], []),
    ([(9, "Hal", "Rome", 4, 4.5)], [(4, "Dan", None, 2, 1.5)]),
    ([(10, "Ida", None, 5, 4.5)], [(8, "Ada", "Bern", 4, 9.5)]),
]
# The batch that is killed: it breaks [id], deletes, and touches two segments.
BATCH: tuple[list[Row], list[Row]] = (
    [(1, "Kim", "Oslo", 2, 7.5), (11, "Ada", "Rome", 1, 8.5)],
    [(5, "Eve", "Oslo", 3, 2.5), (7, "Gus", "Lima", 1, 0.5)],
)
# What follows it, to see that nothing hidden is wrong: it brings [id] back.
NEXT: tuple[list[Row], list[Row]] = ([(12, "Lou", "Lima", 9, 1.5)], [(1, "Ada", "Rome", 1, 0.5)])


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(TYPES)]
    return pa.table(columns, names=list(COLUMNS))


def after(rows: Iterable[Row], *batches: tuple[list[Row], list[Row]]) -> list[Row]:
    """The rows after some batches."""
    found = Counter(rows)
    for inserts, deletes in batches:
        found.subtract(deletes)
        found.update(inserts)
    assert min(found.values()) >= 0
    return sorted(found.elements(), key=repr)


def minimal_keys(rows: Sequence[Row], names: Sequence[str] = COLUMNS) -> list[list[str]]:
    """The oracle: all minimal unique combinations by trying every one (NULLs equal)."""
    found: list[tuple[int, ...]] = []
    for size in range(len(names) + 1):
        for columns in itertools.combinations(range(len(names)), size):
            if any(set(key) <= set(columns) for key in found):
                continue
            if len({tuple(row[c] for c in columns) for row in rows}) == len(rows):
                found.append(columns)
    return sorted([names[c] for c in key] for key in found)


def apply(ws: Workspace, batch: tuple[list[Row], list[Row]], table: str = "people", **more: Any) -> Any:
    inserts, deletes = batch
    return ws.apply(
        table,
        inserts=table_of(inserts) if inserts else None,
        deletes=table_of(deletes) if deletes else None,
        **more,
    )


def build(root: Path) -> None:
    """The workspace that most tests start from: the table `people` after `HISTORY`."""
    with holdfast.open(root, engine="inline") as ws:
        ws.track("people", table_of(START))
        for i, batch in enumerate(HISTORY):
            apply(ws, batch, batch_id=f"history-{i}")


def rows_of(ws: Workspace, table: str) -> list[Row]:
    """The live rows, read from the segments themselves."""
    return rows_of_state(ws, ws.writer.tables.state(table))


def rows_of_state(ws: Workspace, state: TableState) -> list[Row]:
    rows: list[Row] = []
    for ref in state.segments:
        segment = open_segment(ws.root, ref, state.schema)
        found = segment.rows(np.flatnonzero(segment.live)).to_pydict()
        rows += zip(*found.values(), strict=True)
    return sorted(rows, key=repr)


def keys_of(ws: Workspace, table: str, at: int | None = None) -> list[list[str]]:
    return sorted(list(d.columns) for d in ws.dependencies("ucc", table, at))


def inds_of(ws: Workspace, at: int | None = None) -> list[str]:
    return [str(d) for d in ws.dependencies("ind", at=at)]


def expected_inds(ws: Workspace, rows: Mapping[str, Sequence[Row]]) -> list[str]:
    """The oracle: all inclusions that hold among some rows, of one column and of several."""
    database = _database(ws, rows)
    found = [f"{t}[{a}] in {u}[{b}]" for (t, a), (u, b) in oracle.inclusions(database)]
    for (t, left), (u, right) in oracle.wide_inclusions(database, _keys_by_table(ws, rows)):
        found.append(f"{t}[{', '.join(left)}] in {u}[{', '.join(right)}]")
    return sorted(found)


def _keys_by_table(ws: Workspace, rows: Mapping[str, Sequence[Row]]) -> dict[str, list[list[str]]]:
    """The minimal keys of the tables whose keys are tracked."""
    return {t: minimal_keys(r, ws.schema(t).names) for t, r in rows.items() if "ucc" in ws.kinds(t)}


def _database(ws: Workspace, rows: Mapping[str, Sequence[Row]]) -> oracle.Database:
    state = ws.inds.generator()
    assert state is not None
    return {
        t.table: oracle.Table(
            tuple(ws.schema(t.table).names), rows[t.table], t.columns, t.append_only, t.as_text
        )
        for t in state.tables
    }


def frequencies_of(ws: Workspace) -> dict[str, list[int]]:
    """What the runs say: for each column how often its values occur, sorted."""
    state = ws.inds.generator()
    assert state is not None
    names, totals = state.names(), Counter[tuple[int, int, int]]()
    for run in state.runs:
        entries = entries_in_range(ws.root, run, 0, 2**64 - 1)
        assert len(entries) == run.n_entries
        keys, checks, columns, counts = (a.tolist() for a in entries.arrays())
        for place, n in zip(zip(columns, keys, checks, strict=True), counts, strict=True):
            totals[place] += n
    found: dict[str, list[int]] = {f"{t}.{c}": [] for t, c in names.values()}
    for (column, _, _), n in totals.items():
        if column in names and n:
            found[".".join(names[column])].append(n)
    return {name: sorted(counts) for name, counts in found.items()}


def inclusions_of(ws: Workspace, rows: Mapping[str, Sequence[Row]]) -> dict[str, Any] | None:
    """All that a workspace shows of inclusions; every part of it is what the oracle says of these rows."""
    if ws.inds.generator() is None:
        return None
    database = _database(ws, rows)
    listed = ws.dependencies("ind", max_error=1.0)
    unary = {
        ((d.dependent.table, d.dependent.columns[0]), (d.referenced.table, d.referenced.columns[0])): (
            oracle.Inclusion(d.missing_values, d.missing_rows, d.error, d.coverage)
        )
        for d in listed
        if len(d.dependent.columns) == 1
    }
    assert unary == oracle.inclusions(database, max_error=1.0)
    held = inds_of(ws)
    assert sorted(held) == expected_inds(ws, rows)
    for pin in (pin for pin in ws.pins() if pin.referenced is not None):
        whole = pin.n_violations == 0 if pin.terms.at_most else pin.holds
        assert whole == (str(pin) in held), pin
    clusters = [[[list(column) for column in columns], n] for columns, n in ws.inds.clusters()]
    assert {frozenset(map(tuple, columns)): n for columns, n in clusters} == oracle.clusters(database)
    frequencies = frequencies_of(ws)
    assert frequencies == {
        f"{t}.{c}": sorted(
            1 if database[t].append_only else n for n in oracle.frequencies(database[t], c).values()
        )
        for t, c in oracle.columns_of(database)
    }
    return {
        "listed": [d.to_dict() for d in listed],
        "held": held,
        "clusters": clusters,
        "frequencies": frequencies,
    }


def fds_of(ws: Workspace, table: str, rows: Sequence[Row]) -> dict[str, Any]:
    """All that a workspace shows of functional dependencies; each part is as the oracle says."""
    names, kept = ws.schema(table).names, ws.fds.ref(table)
    assert kept is not None

    def arrow(fd: fd_oracle.FD) -> str:
        return Fd(table, tuple(names[c] for c in sorted(fd[0])), names[fd[1]]).name

    found = {"held": [d.name for d in ws.dependencies("fd", table) if isinstance(d, Fd)]}
    assert sorted(found["held"]) == sorted(map(arrow, fd_oracle.minimal_fds(rows, len(names), "equal")))
    if kept.evidence_kind == "counted":
        counted = fd_oracle.agree_counts(rows, "equal")
        expected = [(tuple(names[c] for c in sorted(agreed)), n) for agreed, n in counted.items()]
        assert sorted(ws.fds.agree_sets(table)) == sorted(expected)
    if kept.max_error:
        nearly = fd_oracle.approximate_fds(rows, len(names), "equal", kept.max_error)
        told = ws.dependencies("fd", table, max_error=kept.max_error)
        errors = {d.name: d.error for d in told if isinstance(d, Fd)}
        total = max(1, fd_oracle.total_pairs(rows))
        assert errors == {arrow(fd): n / total for fd, n in nearly.items()}
        nearly_of_all = ws.dependencies(None, table, max_error=kept.max_error)
        found["nearly"] = [f"{d} {getattr(d, 'error', '')}" for d in nearly_of_all]
    return found


def snapshot(root: Path) -> dict[str, Any]:
    """All that a workspace shows, from a fresh look at it; JSON can carry it."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        tables = {}
        rows = {table: rows_of(ws, table) for table in ws.tables()}
        for table in rows:
            assert len(rows[table]) == ws.n_rows(table), (len(rows[table]), ws.n_rows(table))
            tables[table] = {
                "rows": [list(row) for row in rows[table]],
                "kinds": list(ws.kinds(table)),
                "pins": [pin.to_dict() for pin in ws.pins(table)],
                "muted": [muted.to_dict() for muted in ws.muted(table)],
                "holding": {kind: [str(d) for d in ws.dependencies(kind, table)] for kind in ws.kinds(table)},
            }
            if "ucc" in ws.kinds(table):
                tables[table]["keys"] = keys_of(ws, table)
                tables[table]["non_uniques"] = sorted(map(list, ws.keys.non_uniques(table)))
                assert tables[table]["keys"] == minimal_keys(rows[table], ws.schema(table).names)
            if "fd" in ws.kinds(table):
                tables[table]["fds"] = fds_of(ws, table, rows[table])
        n_files = ws.verify()
        assert n_files >= 2 * len(tables)
        log = [(entry.version, entry.table, entry.action, entry.batch_id) for entry in ws.log()]
        assert [entry[0] for entry in log] == list(range(1, ws.version + 1))
        return {
            "version": ws.version,
            "tables": tables,
            "inclusions": inclusions_of(ws, rows),
            "past": {str(v): [str(d) for d in ws.dependencies(at=v)] for v in range(1, ws.version + 1)},
            "log": [list(entry) for entry in log],
        }


def needed_files(ws: Workspace) -> set[str]:
    """The files that tidying must leave: those of the newest states, and the covers of all versions."""
    needed: set[str] = set()
    heads = ws.ledger.heads()
    for commit in ws.ledger.states():
        if commit.state is None:
            continue
        newest = heads.get(commit.table) == commit.version
        refs = litter.named_files(commit.state)
        needed |= {ref.name for ref in refs if newest or ref.name.split("/")[-1].startswith(COVERS)}
    return needed


def files_of(root: Path) -> set[str]:
    """The files of a workspace outside its ledger, by name."""
    return {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and "ledger" not in path.relative_to(root).parts
    }
