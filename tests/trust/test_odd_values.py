"""Values that Arrow holds and Python does not: tracked, changed and shown like any other, never an error.

Texts of bytes that are not UTF-8, dates and timestamps outside the years 1 to 9999, times outside a day or
with nanoseconds. Wherever rows are shown they are escaped, or in ISO order.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import holdfast
from app.shell import Shell
from holdfast.app.explorer.api import Explorer
from holdfast.core.cover.news import plain
from holdfast.core.store.arrow_types import python_values
from holdfast.core.words.dependency import Side
from holdfast.errors import AbsentRowError, ColumnTypeError


def temporal(counts: list[int], t: Any) -> Any:
    width = pa.int32() if t.bit_width == 32 else pa.int64()
    return pa.array(counts, width).view(t)


# Three different values of each type, and how the first is shown.
ODD: dict[str, tuple[Any, str]] = {
    "text": (pa.array([b"caf\xe9", b"\xff", b"a\xc3"], pa.binary()).view(pa.string()), r"caf\xe9"),
    "date": (temporal([3_000_000, 2**31 - 1, -800_000], pa.date32()), "10183-09-21"),
    "seconds": (temporal([2**62, -(2**63), 2**40], pa.timestamp("s")), "146138514283-06-19T07:45:04"),
    "milliseconds": (temporal([2**62, -(2**63), 1], pa.timestamp("ms")), "146140482-04-24T15:36:27.904"),
    "instants": (
        temporal([2**62, -(2**62), 1], pa.timestamp("us", "UTC")),
        "148108-07-06T14:00:27.387904+00:00",
    ),
    "nanoseconds": (temporal([-(2**63), 1, 2], pa.timestamp("ns")), "1677-09-21T00:12:43.145224192"),
    "clock": (temporal([1, 2, 3], pa.time64("ns")), "00:00:00.000000001"),
    "no clock": (temporal([-1, 86_400_000_000, 3], pa.time64("us")), "-00:00:00.000001"),
    "decimal": (
        pa.array([Decimal(10) ** 30, Decimal(-1), Decimal(0)], pa.decimal256(60, 2)),
        f"1{'0' * 30}.00",
    ),
}


def source(folder: Path, name: str, ids: list[int], values: Any) -> Path:
    table = pa.table({"id": pa.array(ids, pa.int64()), "v": values})
    with pa.ipc.new_file(str(folder / f"{name}.arrow"), table.schema) as file:
        file.write_table(table)
    return folder / f"{name}.arrow"


@pytest.mark.parametrize("kind", ODD)
def test_rows_of_odd_values_are_shown(kind: str, tmp_path: Path) -> None:
    values, shown = ODD[kind]
    first, third = values.slice(0, 1), values.slice(2, 1)
    assert str(python_values(values)[0]) == shown
    assert len({str(v) for v in python_values(values)}) == 3
    ws = holdfast.open(tmp_path / "my.hold", engine="inline")
    tables = {
        "odd": source(tmp_path, "odd", [1, 2], values.slice(0, 2)),
        "known": source(tmp_path, "known", [10, 20, 30], values.take(pa.array([0, 1, 1]))),
    }
    ws.track_all(tables, kinds=("ucc", "fd", "dc", "ind"), row_key=("id",))

    # A key, a dependency and a constraint break; then an inclusion; an update reads the row that it changes.
    change = ws.apply("odd", inserts=source(tmp_path, "again", [3], first))
    assert {c.dependency.kind for c in change.broke} >= {"ucc", "fd", "dc"}
    for broke in change.broke:
        assert shown in [row.values["v"] for row in broke.witnesses[0]]
    assert shown in json.dumps(change.to_dict()).replace("\\\\", "\\")
    change = ws.apply("odd", inserts=source(tmp_path, "new", [4], third))
    [broke] = [c for c in change.broke if c.dependency.kind == "ind"]
    assert broke.values == (plain(python_values(third)[0]),)
    ws.apply("odd", updates=source(tmp_path, "update", [4], first))
    ws.apply("odd", updates=source(tmp_path, "back", [4], third))
    with pytest.raises(AbsentRowError, match=r"\(77\)|\(77, "):
        ws.apply("odd", deletes=source(tmp_path, "absent", [77], first))

    assert ws.explain("odd", ["v"]).duplicates[0][0].values["v"] == shown
    assert shown in [
        value for group in ws.fds.explain("odd", ["v"], "id").groups for value in group.lhs.values()
    ]
    assert ws.inds.explain(Side("odd", ("v",)), Side("known", ("v",))).missing[0][0] == broke.values[0]
    assert ws.dcs.explain("odd", "not(t.v = s.v and t.id != s.id)").pairs[0][0].values["v"] == shown
    ws.merge("odd")
    ws.verify()

    shell = Shell(tmp_path)
    for args in (["explain", "odd", "v"], ["explain", "odd", "v -> id"], ["log"]):
        for end in ([], ["--json"]):
            told = shell(*args, *end)
            assert told.code == 0, told.err
    assert shown in shell("explain", "odd", "v").out.replace("\\\\", "\\")
    entries = Explorer(ws).answer("workspace/log", {"table": "odd"})["entries"]
    assert shown in json.dumps(entries, ensure_ascii=False).replace("\\\\", "\\")


def test_an_odd_value_of_another_type_is_named(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("t", pa.table({"a": [1, 2]}))
    for kind in ("text", "date"):
        values, shown = ODD[kind]
        pq.write_table(pa.table({"a": values}), tmp_path / "batch.parquet")
        with pytest.raises(ColumnTypeError) as told:
            ws.apply("t", inserts=tmp_path / "batch.parquet")
        assert shown in str(told.value).replace("\\\\", "\\")


def test_nanoseconds_count_where_no_column_is_a_key(tmp_path: Path) -> None:
    """The first look at a table compares two rows: times that differ in nanoseconds alone are different."""
    values, _ = ODD["clock"]
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("t", pa.table({"at": values}))
    assert [d.columns for d in ws.dependencies("ucc", "t")] == [("at",)]
