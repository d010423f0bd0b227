"""Spark DataFrames of which tasks write segments of their own: what they saw names the rows of these."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.core.rows.encoding import SMALL_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Of 24 bytes each, so the partitions of two frames are far above what a task answers as rows.
HALF = 4_500


@pytest.mark.parametrize(
    "how",
    [{"kinds": ("ucc",)}, {"kinds": ("fd",), "evidence": "witnessed"}, {"kinds": ("ucc", "fd")}],
    ids=["keys", "fds", "both"],
)
@pytest.mark.parametrize("mode", ["inline", "spark"])
def test_the_only_witness_of_a_later_segment_goes(
    tmp_path: Path, spark: SparkSession, mode: Any, how: dict[str, Any]
) -> None:
    """Tasks number their segments from 0 on: the rows that they saw are those of the segment's number now."""
    with holdfast.open(tmp_path / "w", engine=mode, spark=spark) as ws:
        rows = two_segments(spark)
        ws.track("t", rows, **how)
        assert [s.number for s in ws.writer.tables.state("t").segments] == [0, 1]
        table = rows.toArrow()
        for gone in (HALF + 9, 3):
            at = table["id"].to_pylist().index(gone)
            ws.apply("t", deletes=table.slice(at, 1))
            table = pa.concat_tables([table.slice(0, at), table.slice(at + 1)])
            with holdfast.open(tmp_path / str(gone), engine="inline") as again:
                again.track("t", table, **how)
                assert set(map(str, ws.dependencies())) == set(map(str, again.dependencies()))


def two_segments(spark: SparkSession) -> DataFrame:
    """Two partitions; in each of them two rows alone agree on a column."""
    assert HALF * 32 > SMALL_BYTES
    a = f"if(id = {HALF + 9}, {HALF + 5}, id) + 1000 as a"
    b = "if(id = 3, 1, id) + 1000 as b"
    return spark.range(0, 2 * HALF, 1, 2).selectExpr("id", a, b, "id % 7 as c")
