"""Column profiles inline and on Spark: the same, and no job of their own in a batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.core.engine.engine import Engine
from holdfast.core.evidence import shuffled
from holdfast.core.rows import some_rows
from holdfast.profile import column_counts, tally, value_ranking

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {
            "id": list(numbers),
            "status": [("open", "done", None)[i % 3] for i in numbers],
            "sku": [f"AB-{i % 97:04}" for i in numbers],
            "price": [i % 400 / 4 for i in numbers],
        }
    )


def script(ws: holdfast.Workspace) -> list[Any]:
    """What is told on the way, and the profiles after each step."""
    told: list[Any] = [ws.track("t", rows(0, 600), kinds=("ucc", "profile")).to_dict()]
    told.append(ws.profiles.of("t").to_dict())
    batches: list[dict[str, pa.Table]] = [
        {"inserts": rows(600, 650)},
        {"deletes": rows(0, 20)},  # the lowest ids: an end is used up
        {"deletes": rows(300, 320), "inserts": rows(700, 720)},
        {"inserts": pa.table({**{n: rows(1, 2).column(n) for n in ("id", "sku", "price")}, "status": ["x"]})},
    ]
    for batch in batches:
        change = ws.apply("t", **batch).to_dict()
        told += [change["changes"], change["tables"], ws.profiles.of("t").to_dict()]
    return told


def test_engines_agree(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(some_rows, "PART_ROWS", 100)
    monkeypatch.setattr(value_ranking, "RANGE_VALUES", 50)
    answers = []
    for mode in ("inline", "spark"):
        with holdfast.open(tmp_path / mode, engine=mode, spark=spark if mode == "spark" else None) as ws:  # type: ignore[arg-type]
            answers.append(script(ws))
    inline, on_spark = answers
    for left, right in zip(inline[1:], on_spark[1:], strict=True):
        assert left == right


def test_a_batch_has_no_further_job(tmp_path: Path, spark: SparkSession) -> None:
    jobs: dict[tuple[str, ...], list[int]] = {}
    for kinds in (("ucc", "fd"), ("ucc", "fd", "profile")):
        with holdfast.open(tmp_path / "-".join(kinds), engine="spark", spark=spark) as ws:
            ws.track("t", rows(0, 600), kinds=kinds)
            engine, counted = ws.writer.engine, []
            for batch in ({"inserts": rows(600, 650)}, {"inserts": rows(650, 660)}):
                before = engine.jobs
                ws.apply("t", **batch)
                counted.append(engine.jobs - before)
            jobs[kinds] = counted
    assert jobs["ucc", "fd", "profile"] == jobs["ucc", "fd"]


def test_many_values_are_one_job(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "EDGE", 2)
    monkeypatch.setitem(column_counts.MOST, "values", 90)
    with holdfast.open(tmp_path / "w", engine="spark", spark=spark) as ws:
        ws.track("t", rows(0, 600), kinds=("profile",))
        before = ws.writer.engine.jobs
        profile = ws.profiles.of("t")
        assert ws.writer.engine.jobs == before + 1
        assert [p.n_distinct for p in profile] == [600, 2, 97, 400]
        assert ws.writer.engine.jobs == before + 1
        # Of a large table on a cluster each segment is counted once, and sends what it has.
        monkeypatch.setattr(value_ranking, "RANGE_VALUES", 50)
        monkeypatch.setattr(shuffled, "SHUFFLED_ROWS", 0)
        monkeypatch.setattr(Engine, "shuffles", True)
        sent: list[str] = []
        exchange = Engine.exchange

        def noted(self: Engine, produce: Any, *arguments: Any, **how: Any) -> list[bytes]:
            sent.append(produce.__name__)
            return exchange(self, produce, *arguments, **how)

        monkeypatch.setattr(Engine, "exchange", noted)
        assert ws.profiles.of("t").to_dict() == profile.to_dict()
        assert sent == ["send_counts"]
