"""Snapshots, upserts and pinned conditions, the same whether tasks run here or on Spark."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.core.rows import batch
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.errors import AbsentRowError, UsageError

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


def test_of_many_equal_rows_as_many_are_told_as_can_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that half of a table has is deleted: its twins do not come to the driver. The first ones go."""
    told: list[int] = []
    locate = Relation.locate

    def noted(self: Relation, *arguments: Any) -> Any:
        answer = locate(self, *arguments)
        told.append(len(answer[0]))
        return answer

    monkeypatch.setattr(Relation, "locate", noted)
    alike, others = pa.table({"a": [1] * 500, "b": [2] * 500}), pa.table({"a": range(9), "b": range(9)})
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.concat_tables([others, alike]))
        ws.apply("t", inserts=alike)
        for n in (1, 3):
            ws.apply("t", deletes=pa.concat_tables([alike.slice(0, n), others.slice(n, 1)]))
        assert told == [3, 7]  # of each of two segments as many as the batch has, and another row once
        # What one part of a batch takes is not there for the next.
        ws.apply("t", deletes=alike.slice(0, 5), before=alike.slice(0, 2), after=others.slice(0, 2))
        assert told[2:] == [10, 14]
        tables = ws.writer.tables
        with tables.opened(tables.state("t")) as relation:
            first = relation.segments[0]
            gone = np.flatnonzero(~open_segment(relation.root, first, relation.schema).live)
            assert gone.tolist() == [1, 3, *range(9, 20)]
        assert ws.n_rows("t") == 1009 - 6 - 5
        with pytest.raises(AbsentRowError, match=r"and 1 more"):
            ws.apply("t", deletes=pa.concat_tables([alike, alike.slice(0, 491)]))


BIT = st.integers(0, 1)
WHOLE_ROWS = st.lists(st.tuples(BIT, BIT), min_size=3, max_size=9)


@given(WHOLE_ROWS, st.booleans(), st.data())
def test_deletes_by_whole_rows(tracked: list[tuple[int, int]], keyed: bool, data: st.DataObject) -> None:
    """Of each row as many go as are named, also among others of its row key, which nobody holds unique."""

    def table(some: Sequence[tuple[int, ...]]) -> pa.Table:
        columns = zip("ab", np.array(some, dtype=np.int64).reshape(-1, 2).T, strict=True)
        return pa.table(dict(columns))

    with tempfile.TemporaryDirectory() as folder, holdfast.open(folder, engine="inline") as ws:
        ws.track("t", table(tracked), **({"row_key": ["a"]} if keyed else {}))
        left = Counter(tracked)
        for _ in range(2):
            inserted = data.draw(WHOLE_ROWS)
            deleted = data.draw(st.permutations([*left.elements()]))
            deleted = deleted[data.draw(st.integers(0, len(deleted))) :]
            deleted += data.draw(st.sampled_from([[], [], [], [(1, 1)]]))
            gone = Counter(deleted)
            if gone <= left:
                ws.apply("t", inserts=table(inserted), deletes=table(deleted))
                left = left - gone + Counter(inserted)
            else:
                with pytest.raises(AbsentRowError):
                    ws.apply("t", inserts=table(inserted), deletes=table(deleted))
            state = ws.writer.tables.state("t")
            with ws.writer.tables.opened(state) as relation:
                segments = [open_segment(relation.root, ref, relation.schema) for ref in relation.segments]
                whole = [s.rows(np.flatnonzero(s.live)).to_pylist() for s in segments]
            assert Counter(tuple(row.values()) for rows in whole for row in rows) == left
