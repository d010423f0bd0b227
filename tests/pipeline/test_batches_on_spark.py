"""Snapshots, upserts and pinned conditions, the same whether tasks run here or on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast.core.rows import batch
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows(ids: Any, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    ids = np.asarray(ids)
    words = np.char.add("w", (ids % 7).astype(str))
    return pa.table({"id": ids, "word": words, "n": rng.integers(-3, 50, len(ids))})


def history(path: Path, **how: Any) -> list[Any]:
    """What some batches did, and what holds after each."""
    told: list[Any] = []
    with holdfast.open(path, **how) as ws:
        ws.track("t", rows(range(600), 1), row_key=["id"], kinds=("ucc", "fd"))
        for condition in ("n >= 0", "word in ('w1', 'w2', 'w3', 'w4', 'w5', 'w6')"):
            ws.pin_rule(condition, table="t")
        kept = pa.concat_tables([rows(range(600), 1).slice(50), rows(range(600, 620), 2)])
        for parts in (
            {"snapshot": kept},
            {"upserts": pa.concat_tables([kept.slice(0, 30), rows(range(590, 640), 3)])},
            {"snapshot": rows(range(200), 1)},
        ):
            change = ws.apply("t", **parts)
            [part] = change.tables
            counts = part.n_inserted, part.n_deleted, part.n_updated, part.n_unchanged, part.n_rows
            pins = [(str(pin), pin.n_violations) for pin in change.pins]
            told.append((counts, pins, sorted(map(str, ws.dependencies()))))
    return told


def test_engines_agree(tmp_path: Path, spark: SparkSession) -> None:
    inline = history(tmp_path / "inline", engine="inline")
    assert history(tmp_path / "spark", engine="spark", spark=spark) == inline
    counts = [counts for counts, _, _ in inline]
    assert counts[0] == (20, 50, 0, 550, 570)
    assert counts[2][-1] == 200


def test_an_update_by_rows_of_dataframes_holds_no_rows_on_the_driver(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = rows(range(5, 25), 1), rows(range(15, 35), 2)
    told = []
    for engine in ("inline", "spark"):
        make: Any = spark.createDataFrame if engine == "spark" else pa.table
        with holdfast.open(tmp_path / engine, engine=engine, spark=spark) as ws:  # type: ignore[arg-type]
            ws.track("t", before, kinds=("ucc", "fd"))
            if engine == "spark":
                monkeypatch.setattr(batch, "read_rows", None)
            with pytest.raises(UsageError, match="has 20 rows before and 19 after; it needs as many"):
                ws.apply("t", before=make(before), after=make(after.slice(1)))
            [change] = ws.apply("t", before=make(before), after=make(after)).tables
            counts = change.n_inserted, change.n_deleted, change.n_updated, change.n_rows
            every_row = ws.violations("t", "id < 0").to_arrow().sort_by("id").select(after.column_names)
            told.append((counts, every_row.to_pylist(), sorted(map(str, ws.dependencies()))))
    inline, on_spark = told
    assert inline == on_spark
    assert inline[:2] == ((20, 20, 20, 20), after.to_pylist())


def test_nested_columns_of_a_dataframe(tmp_path: Path, spark: SparkSession) -> None:
    frame = spark.createDataFrame(
        [(1, ["a"], "x"), (2, ["b"], "x")], "id int, many array<string>, word string"
    )
    with holdfast.open(tmp_path / "my.hold", engine="spark", spark=spark) as ws:
        change = ws.track("t", frame)
        assert ws.schema("t").names == ("id", "word")
    assert any("many" in note for note in change.notes)
