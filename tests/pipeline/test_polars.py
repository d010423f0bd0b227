"""polars as a source: all of its types, lazy frames, and what Arrow has no form for."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.rows import encoding
from holdfast.errors import ColumnTypeError, HoldfastError, SchemaError, SourceError
from pipeline.test_feeding import rows_of

pl = pytest.importorskip("polars", reason="polars is not installed")

NOON = dt.datetime(2024, 1, 2, 12, 0, 0, 5)
VALUES: dict[str, tuple[Any, list[Any], str]] = {
    "Int8": (pl.Int8, [-1, None], "int"),
    "UInt64": (pl.UInt64, [2**64 - 1, None], "uint"),
    "Float32": (pl.Float32, [1.5, None], "float"),
    "Decimal": (pl.Decimal(10, 2), [Decimal("1.50"), None], "decimal(10,2)"),
    "Boolean": (pl.Boolean, [True, None], "bool"),
    "String": (pl.String, ["ä", None], "text"),
    "Binary": (pl.Binary, [b"\xff", None], "binary"),
    "Categorical": (pl.Categorical, ["a", None], "text"),
    "Enum": (pl.Enum(["a", "b"]), ["b", None], "text"),
    "Date": (pl.Date, [dt.date(2024, 1, 2), None], "date"),
    "Time": (pl.Time, [dt.time(1, 2, 3, 4), None], "time[ns]"),
    "Datetime": (pl.Datetime("us"), [NOON, None], "timestamp[us]"),
    "Datetime ms": (pl.Datetime("ms"), [NOON.replace(microsecond=5000), None], "timestamp[ms]"),
    "Datetime zone": (
        pl.Datetime("us", "Europe/Berlin"),
        [NOON.replace(tzinfo=dt.UTC), None],
        "timestamp[us,utc]",
    ),
    "Null": (pl.Null, [None, None], "text"),
}


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as opened:
        yield opened


@pytest.mark.parametrize("name", VALUES)
def test_types(ws: holdfast.Workspace, name: str) -> None:
    """Eager and lazy, alone in a batch, and chunk by chunk."""
    dtype, values, kind = VALUES[name]
    frame = pl.DataFrame({"id": [0, 1], "x": pl.Series(values, dtype=dtype)})
    ws.track("t", frame, kinds=("ucc",))
    assert str(ws.schema("t").types[1]) == kind
    assert [row["x"] for row in rows_of(ws)] == values
    more = frame.with_columns(id=pl.col("id") + 2)
    ws.apply("t", inserts=more.lazy())
    ws.apply("t", inserts=pl.concat([more.with_columns(id=pl.col("id") + 2)] * 1, rechunk=False))
    assert [(row["id"], row["x"]) for row in sorted(rows_of(ws), key=lambda r: int(r["id"]))] == [
        (i, values[i % 2]) for i in range(6)
    ]
    ws.apply("t", deletes=more)
    assert ws.n_rows("t") == 4


@pytest.mark.parametrize(
    ("dtype", "values", "error", "step"),
    [
        (pl.Object, [object()], ColumnTypeError, "cast it to text, or leave it out"),
        (pl.Int128, [2**100], ColumnTypeError, r"Decimal\(38, 0\)"),
        (pl.UInt128, [2**100], ColumnTypeError, r"Decimal\(38, 0\)"),
    ],
    ids=["Object", "Int128", "UInt128"],
)
def test_types_that_are_refused(
    ws: holdfast.Workspace, dtype: Any, values: list[Any], error: type[HoldfastError], step: str
) -> None:
    frame = pl.DataFrame({"id": [0], "x": pl.Series(values, dtype=dtype)})
    for source in (frame, frame.lazy()) if dtype is not pl.Object else (frame,):
        with pytest.raises(error, match=rf"column 'x' of table 't' .*Nothing was applied.*{step}"):
            ws.track("t", source)
    assert ws.version == 0


def test_nested_columns_are_left_out(ws: holdfast.Workspace) -> None:
    frame = pl.DataFrame({"id": [0], "list": [[1]], "struct": [{"a": 1}], "array": [[1, 2]]})
    change = ws.track("t", frame.cast({"array": pl.Array(pl.Int64, 2)}))
    assert change.notes == ("t: list, struct, array are nested and left out: flatten what you want to keep",)


def test_durations_are_left_out(ws: holdfast.Workspace, tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [0, 1], "took": [dt.timedelta(1)] * 2, "list": [[1], [2]]})
    frame.write_ipc(tmp_path / "t.arrow")
    note = "list is nested and left out: flatten what you want to keep"
    more = "took is a duration and left out: cast to numbers what you want to keep"
    for table, source in (("t", frame), ("u", frame.lazy()), ("v", tmp_path / "t.arrow")):
        assert ws.track(table, source).notes == (f"{table}: {note}; {more}",)
        assert ws.schema(table).names == ("id",)
        assert ws.apply(table, snapshot=source).notes == ()
    with pytest.raises(SchemaError, match="column 'took' of table 'w' is of a type that holdfast does not"):
        ws.track("w", frame.select("took"))


def test_a_series_is_one_column(ws: holdfast.Workspace) -> None:
    ws.track("t", pl.Series("x", [1, 2]))
    assert rows_of(ws) == [{"x": 1}, {"x": 2}]


def test_a_lazy_frame_is_computed_batch_by_batch(
    ws: holdfast.Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "WHOLE_BYTES", 1)
    monkeypatch.setattr(encoding, "MIN_SPLIT_BYTES", 1 << 12)
    pl.DataFrame({"id": range(5_000), "name": [f"n{i % 7}" for i in range(5_000)]}).write_csv(
        tmp_path / "r.csv"
    )
    lazy = pl.scan_csv(tmp_path / "r.csv").filter(pl.col("id") % 2 == 0)
    ws.track("t", lazy.with_columns(kind=pl.col("name").cast(pl.Categorical)), kinds=("ucc", "fd"))
    assert (ws.n_rows("t"), [str(d) for d in ws.dependencies("ucc")]) == (2_500, ["t[id]"])
    assert "name -> kind" in [d.name for d in ws.dependencies("fd")]
    with pytest.raises(SourceError, match=r"the polars LazyFrame for table 'u' cannot be read: .*zz"):
        ws.track("u", lazy.select("zz"))
    with pytest.raises(SourceError, match=r"the polars LazyFrame for table 't' cannot be read: .*conversion"):
        ws.apply("t", inserts=lazy.with_columns(pl.col("name").cast(pl.Int64).cast(pl.String), kind="name"))
    assert (ws.version, ws.n_rows("t"), ws.verify() > 0) == (1, 2_500, True)
