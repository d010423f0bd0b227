"""An independent engine judges: DuckDB counts duplicates of what is reported, after several batches."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import holdfast

N_ROWS, N_COLUMNS = 2_000, 8
NAMES = [f"c{c}" for c in range(N_COLUMNS)]


def generated(rng: np.random.Generator, n_rows: int) -> pa.Table:
    """Numbers, texts and NULLs; columns from a few values to hundreds, two of them correlated."""
    sizes = [3, 12, 40, 150, 400, 700, 25, 60]
    columns = [rng.integers(0, size, n_rows) for size in sizes]
    columns[6] = columns[3] // 6 + rng.integers(0, 2, n_rows)
    arrays: list[pa.Array] = []
    for c, values in enumerate(columns):
        mask = rng.random(n_rows) < (0.02 if c in (1, 4) else 0.0)
        if c % 3 == 2:
            arrays.append(pa.array([f"v{v}" for v in values], pa.string(), mask=mask))
        elif c == 3:
            arrays.append(pa.array(values / 4, mask=mask))
        else:
            arrays.append(pa.array(values, mask=mask))
    return pa.table(arrays, names=NAMES)


class Judge:
    """A DuckDB table with the rows that are live."""

    def __init__(self, rows: pa.Table, nulls: str) -> None:
        self.connection = duckdb.connect(":memory:")
        self.connection.register("rows", rows)
        self.nulls = nulls

    def is_unique(self, columns: tuple[str, ...]) -> bool:
        group = ", ".join(columns) or "()"
        where = (
            " AND ".join(f"{c} IS NOT NULL" for c in columns)
            if self.nulls == "distinct" and columns
            else "TRUE"
        )
        query = f"SELECT 1 FROM rows WHERE {where} GROUP BY {group} HAVING count(*) > 1 LIMIT 1"
        return not self.connection.execute(query).fetchall()


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_duckdb_confirms(tmp_path: Path, nulls: str) -> None:
    rng = np.random.default_rng(11)
    rows = generated(rng, N_ROWS)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", rows, nulls=nulls)  # type: ignore[arg-type]
        judged = [_judge(ws, rows, nulls)]
        for n_deleted, n_inserted in ((0, 60), (400, 0), (50, 120), (1500, 5)):
            gone = np.sort(rng.choice(len(rows), n_deleted, replace=False))
            new = generated(rng, n_inserted)
            deletes = rows.take(pa.array(gone))
            ws.apply("t", deletes=deletes, inserts=new)
            rows = pa.concat_tables([rows.take(np.setdiff1d(np.arange(len(rows)), gone)), new])
            assert ws.n_rows("t") == len(rows)
            judged.append(_judge(ws, rows, nulls))
    assert len(set(judged)) > 2, "the batches change something"


def _judge(ws: holdfast.Workspace, rows: pa.Table, nulls: str) -> frozenset[tuple[str, ...]]:
    judge = Judge(rows, nulls)
    keys = [d.columns for d in ws.dependencies(table="t")]
    non_uniques = ws.keys.non_uniques("t")
    assert keys
    assert non_uniques
    for key in keys:
        assert judge.is_unique(key), key
        for column in key:
            assert not judge.is_unique(tuple(c for c in key if c != column)), (key, column)
    for columns in non_uniques:
        assert not judge.is_unique(columns), columns
        for column in set(NAMES) - set(columns):
            assert judge.is_unique(tuple(c for c in NAMES if c in columns or c == column)), (columns, column)
    return frozenset(keys)
