"""The rows that violate something, and repairs, are the same whether tasks run here or on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import holdfast
from holdfast import Side, Workspace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTIONS: tuple[tuple[Any, Any], ...] = (
    ("zip -> city", None),
    (["zip", "pay"], None),
    ("tax <= pay", None),
    ("tax < 900 and city != '?'", None),
    ("not(t.zip = s.zip and t.pay < s.pay and t.tax > s.tax)", None),
    ("zip", Side("zips", ("zip",))),
)


def made(path: Path) -> None:
    rng = np.random.default_rng(11)
    zips, pay = rng.integers(0, 60, 3000), rng.integers(0, 500, 3000)
    tax = np.where(rng.random(3000) < 0.01, 900, pay // 2)
    city = np.where(rng.random(3000) < 0.02, "?", (zips // 3).astype(str))
    rows = pa.table({"zip": zips, "city": city, "pay": pay, "tax": tax})
    with holdfast.open(path, engine="inline") as ws:
        ws.track_all({"t": rows.slice(0, 2000), "zips": pa.table({"zip": np.arange(55)})}, kinds=("ind",))
        ws.apply("t", inserts=rows.slice(2000))


def answers(ws: Workspace) -> list[Any]:
    outcome: list[Any] = [ws.violations("t", q, referenced=side).to_dict() for q, side in QUESTIONS]
    return [*outcome, ws.repairs("t").to_dict()]


def test_engines_agree(tmp_path: Path, spark: SparkSession) -> None:
    made(tmp_path / "w")
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        inline = answers(ws)
    with holdfast.open(tmp_path / "w", engine="spark", spark=spark) as ws:
        assert answers(ws) == inline
    assert all(outcome["n_violating"] for outcome in inline[:-1])
    assert inline[-1]["n_repairs"] > 20
