"""An independent engine judges functional dependencies: DuckDB groups, counts and joins after batches.

It counts the groups of every set of columns, so the cover is judged whole: what is in it holds, nothing
smaller does, and nothing is missing. Pairs are counted by a self join (g1), rows to remove by the most
frequent values (g3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import holdfast
from cases.test_ind_judge import generated as database
from holdfast import Workspace
from holdfast.core.words.dependency import Fd, Ucc

NAMES = [f"c{c}" for c in range(7)]
Columns = tuple[str, ...]
Found = set[tuple[Columns, str]]


def generated(rng: np.random.Generator, n_rows: int) -> pa.Table:
    """Numbers, texts and NULLs; some columns follow from others, one of them nearly."""
    region = rng.integers(0, 40, n_rows)
    shop = rng.integers(0, 25, n_rows)
    stray = rng.random(n_rows) < 0.004
    columns = [
        rng.integers(0, max(10, n_rows), n_rows),
        region,
        region // 6,
        shop,
        np.where(stray, 99, shop % 7),
        (region // 6) * 3 + shop % 3,
        rng.integers(0, 2, n_rows),
    ]
    arrays: list[pa.Array] = []
    for c, values in enumerate(columns):
        mask = (values % 5 == 3) & (rng.random(n_rows) < 0.9) if c in (2, 6) else np.zeros(n_rows, np.bool_)
        texts = [f"v{v}" for v in values]
        arrays.append(pa.array(texts, pa.string(), mask=mask) if c % 2 else pa.array(values, mask=mask))
    return pa.table(arrays, names=NAMES)


class Judge:
    """A DuckDB table with the rows that are live."""

    def __init__(self, rows: pa.Table, nulls: str) -> None:
        self.connection = duckdb.connect(":memory:", config={"threads": 1})  # many small queries
        self.connection.register("given", rows)
        self.connection.execute("CREATE TABLE rows AS SELECT *, row_number() OVER () AS place FROM given")
        self.names: list[str] = rows.column_names
        self.n_rows, self.nulls = len(rows), nulls

    def one(self, query: str) -> tuple[Any, ...]:
        row = self.connection.execute(query).fetchone()
        assert row is not None
        return row

    def known(self, columns: Columns) -> str:
        """With NULLs distinct a row with a NULL among the columns agrees with no other."""
        if self.nulls == "equal" or not columns:
            return ""
        return "WHERE " + " AND ".join(f"{c} IS NOT NULL" for c in columns)

    def holds(self, lhs: Columns, rhs: str) -> bool:
        """No group of the left-hand side has two values."""
        n_values = f"count(DISTINCT {rhs}) + CAST(count(*) > count({rhs}) AS INT)"
        if self.nulls == "distinct":
            alone = f"count(*) > 1 AND count(*) > count({rhs})"
            n_values = f"CASE WHEN {alone} THEN 2 ELSE count(DISTINCT {rhs}) END"
        grouped = f"FROM rows {self.known(lhs)} {_grouped(lhs)}"
        return not self.connection.execute(f"SELECT 1 {grouped} HAVING {n_values} > 1 LIMIT 1").fetchall()

    def minimal(self, max_lhs: int | None = None) -> Found:
        """The minimal dependencies: those of which the right-hand side tells no agreeing rows apart."""
        found: Found = set()
        largest = len(self.names) - 1 if max_lhs is None else max_lhs
        pairs = {
            frozenset(columns): self.grouped_pairs(columns)
            for size in range(min(largest + 1, len(self.names)) + 1)
            for columns in combinations(self.names, size)
        }
        for lhs in (lhs for size in range(largest + 1) for lhs in combinations(self.names, size)):
            for rhs in (c for c in self.names if c not in lhs):
                smaller = any(b == rhs and set(a) < set(lhs) for a, b in found)
                if not smaller and pairs[frozenset(lhs)] == pairs[frozenset([*lhs, rhs])]:
                    found.add((lhs, rhs))
        return found

    def grouped_pairs(self, columns: Columns) -> int:
        """The pairs of rows that agree on the columns, from the sizes of groups."""
        sizes = f"SELECT count(*) AS n FROM rows {self.known(columns)} {_grouped(columns)}"
        return int(self.one(f"SELECT coalesce(sum(n * (n - 1) // 2), 0) FROM ({sizes})")[0])

    def agreeing(self, columns: Columns) -> str:
        same = "IS NOT DISTINCT FROM" if self.nulls == "equal" else "="
        return " AND ".join([f"a.{c} {same} b.{c}" for c in columns] or ["TRUE"])

    def pairs(self, lhs: Columns, rhs: str | None = None) -> int:
        """The pairs of rows that agree on the left-hand side, not on the right-hand side: a self join."""
        unlike = "" if rhs is None else f"WHERE NOT coalesce({self.agreeing((rhs,))}, FALSE)"
        join = f"rows a JOIN rows b ON a.place < b.place AND {self.agreeing(lhs)}"
        return int(self.one(f"SELECT count(*) FROM {join} {unlike}")[0])

    def kept(self, lhs: Columns, rhs: str) -> int:
        """The rows that can stay: of each group those with the most frequent value.

        With NULLs distinct every row with a NULL on the left is its own group, and each NULL on the right is
        another value.
        """
        keys = list(lhs)
        value = rhs
        if self.nulls == "distinct":
            anything = " OR ".join(f"{c} IS NULL" for c in lhs) or "FALSE"
            keys.append(f"CASE WHEN {anything} THEN place END")
            value = f"{rhs}, CASE WHEN {rhs} IS NULL THEN place END"
        groups = ", ".join(f"{key} AS k{i}" for i, key in enumerate(keys))
        by = ", ".join(f"k{i}" for i in range(len(keys)))
        counted = (
            f"SELECT {groups + ',' if groups else ''} count(*) AS n FROM rows "
            f"GROUP BY {', '.join([*keys, value])}"
        )
        most = f"SELECT max(n) AS n FROM ({counted}) {'GROUP BY ' + by if by else ''}"
        return int(self.one(f"SELECT coalesce(sum(n), 0) FROM ({most})")[0])


def _grouped(columns: Columns) -> str:
    return f"GROUP BY {', '.join(columns)}" if columns else ""


def cover(ws: Workspace, table: str) -> Found:
    listed = ws.dependencies(kind="fd", table=table)
    return {(d.lhs, d.rhs) for d in listed if isinstance(d, Fd)}


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as found:
        yield found


def history(rng: np.random.Generator, n_rows: int, batches: Iterable[tuple[int, int]]) -> Iterator[Any]:
    """(rows to delete, rows to insert, rows after), the first with the rows to track."""
    rows = generated(rng, n_rows)
    yield None, rows, rows
    for n_deleted, n_inserted in batches:
        gone = np.sort(rng.choice(len(rows), n_deleted, replace=False))
        new, deletes = generated(rng, n_inserted), rows.take(pa.array(gone))
        rows = pa.concat_tables([rows.take(np.setdiff1d(np.arange(len(rows)), gone)), new])
        yield deletes, new, rows


BATCHES = ((0, 60), (300, 0), (50, 120), (700, 5))
EVIDENCE: tuple[Any, ...] = ("counted", "witnessed")


def both(ws: Workspace, deletes: pa.Table | None, inserts: pa.Table, nulls: Any) -> None:
    """The same batch to two tables, one for each kind of evidence; the first one tracks them."""
    if deletes is None:
        for evidence in EVIDENCE:
            ws.track(evidence, inserts, kinds=("fd",), nulls=nulls, evidence=evidence)
    else:
        ws.apply_all({table: {"deletes": deletes, "inserts": inserts} for table in EVIDENCE})


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_duckdb_confirms(ws: Workspace, nulls: Any) -> None:
    seen = []
    for deletes, inserts, rows in history(np.random.default_rng(11), 900, BATCHES):
        both(ws, deletes, inserts, nulls)
        judge = Judge(rows, nulls)
        found = judge.minimal()
        for evidence in EVIDENCE:
            assert ws.n_rows(evidence) == len(rows)
            assert cover(ws, evidence) == found
        for lhs, rhs in found:
            assert judge.holds(lhs, rhs)
            for column in lhs:
                assert not judge.holds(tuple(c for c in lhs if c != column), rhs), (lhs, rhs, column)
        seen.append(frozenset(found))
    assert len(set(seen)) > 2, "the batches change something"
    assert max(map(len, seen)) > 10


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_duckdb_counts_the_same_pairs(ws: Workspace, nulls: Any) -> None:
    """Errors of what is listed, and of any columns that are asked for."""
    rng = np.random.default_rng(5)
    for deletes, inserts, rows in history(rng, 300, ((0, 40), (120, 30), (200, 0))):
        if deletes is None:
            ws.track("t", rows, kinds=("fd",), nulls=nulls, evidence="counted", max_error=0.02)
        else:
            ws.apply("t", deletes=deletes, inserts=inserts)
        judge, total = Judge(rows, nulls), len(rows) * (len(rows) - 1) // 2
        for max_error in (0.02, 0.1):
            listed = ws.dependencies(table="t", max_error=max_error)
            assert {type(d) for d in listed} == {Fd, Ucc}
            for d in listed:
                lhs, rhs = (d.lhs, d.rhs) if isinstance(d, Fd) else (d.columns, None)
                assert d.error == judge.pairs(lhs, rhs) / total
                assert d.error <= max_error
                for column in lhs:
                    smaller = tuple(c for c in lhs if c != column)
                    assert judge.pairs(smaller, rhs) / total > max_error, (d, column)
        for size in (0, 1, 2, 3):
            lhs = tuple(c for c in NAMES if c in rng.choice(NAMES, size, replace=False))
            assert ws.fds.error_of("t", lhs) == judge.pairs(lhs) / total
            for rhs in set(NAMES) - set(lhs):
                assert ws.fds.error_of("t", lhs, rhs) == judge.pairs(lhs, rhs) / total


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_duckdb_removes_as_many_rows(ws: Workspace, nulls: Any) -> None:
    steps = list(history(np.random.default_rng(7), 250, ((30, 60),)))
    for deletes, inserts, _ in steps:
        both(ws, deletes, inserts, nulls)
    rows = steps[-1][2]
    judge, total = Judge(rows, nulls), len(rows) * (len(rows) - 1) // 2
    for lhs, rhs in asked():
        pairs, n_removed = judge.pairs(lhs, rhs), len(rows) - judge.kept(lhs, rhs)
        for evidence in EVIDENCE:
            told = ws.fds.explain(evidence, lhs, rhs)
            assert (told.violations, told.error) == (pairs, pairs / total)
            assert (told.rows_to_remove, told.g3) == (n_removed, n_removed / len(rows)), (lhs, rhs)
            assert told.holds == judge.holds(lhs, rhs) == (pairs == 0)


def asked() -> Sequence[tuple[Columns, str]]:
    sides: list[Columns] = [
        (),
        ("c3",),
        ("c1",),
        ("c6",),
        ("c1", "c3"),
        ("c2", "c6"),
        ("c0",),
        ("c2", "c4", "c5"),
    ]
    return [(lhs, rhs) for lhs in sides for rhs in NAMES if rhs not in lhs]


def test_duckdb_confirms_a_database(ws: Workspace) -> None:
    """Many types, several tables as one commit."""
    tables = database(3)
    for evidence in EVIDENCE:
        named = {f"{evidence} {table}": rows for table, rows in tables.items()}
        ws.track_all(named, kinds=("fd",), evidence=evidence, max_lhs=2)
    rng = np.random.default_rng(1)
    batches, after = {}, {}
    for table, rows in tables.items():
        gone = pa.array(rng.random(len(rows)) < 0.4)
        after[table] = rows.filter(pc.invert(gone))
        batches.update({f"{evidence} {table}": {"deletes": rows.filter(gone)} for evidence in EVIDENCE})
    ws.apply_all(batches)
    for at, judged in ((2, tables), (3, after)):
        for table, rows in judged.items():
            found = Judge(rows, "equal").minimal(2)
            for evidence in EVIDENCE:
                listed = ws.dependencies(kind="fd", table=f"{evidence} {table}", at=at)
                assert {(d.lhs, d.rhs) for d in listed if isinstance(d, Fd)} == found, table
