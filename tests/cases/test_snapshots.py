"""Snapshots and upserts: the difference that they make is the one by hand, in rows and in counts."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.core.rows import batch, differing, encoding, tasks
from holdfast.core.rows.matching import Matching
from holdfast.core.rows.relation import Relation
from holdfast.errors import AmbiguousRowError, SchemaError, UsageError
from reference.keys import Row, canonical_row
from relations import live_rows
from strategies import Shape, varied_shapes

TABLE = "t"


def tracked(folder: Path, source: Any, **how: Any) -> holdfast.Workspace:
    ws = holdfast.open(folder / "w", engine="inline")
    ws.track(TABLE, source, **how)
    return ws


def rows_of(ws: holdfast.Workspace) -> list[Row]:
    relation = ws.writer.tables.rows(ws.writer.tables.state(TABLE))
    return [tuple(row.values()) for row in live_rows(relation).to_pylist()]


def bag(rows: list[Row]) -> Counter[Any]:
    return Counter(map(canonical_row, rows))


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[Shape, list[Row], list[Row]]:
    """A shape, rows, and rows that have many in common with them."""
    shape = draw(varied_shapes(max_columns=3))
    rows = draw(shape.rows(max_size=12))
    some = draw(st.lists(st.sampled_from(rows), max_size=12)) if rows else []
    return shape, rows, [*some, *draw(shape.rows(max_size=4))]


@settings(max_examples=40)
@given(case=snapshots(), with_key=st.booleans(), large=st.booleans(), bucket=st.sampled_from([1, 5, 1 << 20]))
def test_a_snapshot_is_the_table_after_it(
    case: tuple[Shape, list[Row], list[Row]], with_key: bool, large: bool, bucket: int
) -> None:
    shape, before, after = case
    key = shape.names[:1] if with_key else []
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if large:  # encoded by tasks, as rows that are not looked at here
            patch.setattr(batch, "WHOLE_BYTES", -1)
        patch.setattr(differing, "BUCKET", bucket)
        with tracked(Path(folder), shape.table(before), row_key=key) as ws:
            [told] = ws.apply(TABLE, snapshot=shape.table(after), allow_empty=True).tables
            assert bag(rows_of(ws)) == bag(after)
    stay = bag(before) & bag(after)
    gone, come = bag(before) - stay, bag(after) - stay
    assert (told.n_deleted, told.n_inserted) == (gone.total(), come.total())
    assert told.n_unchanged == stay.total()
    keys = [Counter({k: sum(n for row, n in rows.items() if row[0] == k) for k in {r[0] for r in rows}})
            for rows in (gone, come)]  # fmt: skip
    assert told.n_updated == ((keys[0] & keys[1]).total() if with_key else 0)


@given(
    rows=st.lists(st.integers(0, 3), max_size=8),
    queries=st.lists(st.integers(0, 4), max_size=8),
    data=st.data(),
)
def test_each_query_takes_a_row_of_its_own(rows: list[int], queries: list[int], data: st.DataObject) -> None:
    """Whether equal queries lead themselves, or another one looks for them."""
    leader = np.arange(len(queries))
    for q, value in enumerate(queries):
        equal = [p for p in range(q) if queries[p] == value and leader[p] == p]
        if equal and data.draw(st.booleans()):
            leader[q] = equal[-1]
    pairs = [
        (q, r)
        for q, value in enumerate(queries)
        for r, row in enumerate(rows)
        if value == row and leader[q] == q
    ]
    pairs = data.draw(st.permutations(pairs))
    query, row_id = (np.array([p[i] for p in pairs], dtype=np.int64) for i in (0, 1))
    matching = Matching.of(query, row_id, leader)
    assert matching.counts.tolist() == [rows.count(value) for value in queries]
    left = {value: [r for r, row in enumerate(rows) if row == value] for value in queries}
    assert matching.taken.tolist() == [left[value].pop(0) if left[value] else -1 for value in queries]


def test_many_equal_rows_are_few_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_pairs = []
    honest = tasks.locate

    def counted(*arrays: Any) -> Any:
        query, row = honest(*arrays)
        n_pairs.append(len(query))
        return query, row

    monkeypatch.setattr(tasks, "locate", counted)
    rows = pa.table({"a": [1] * 400 + [2] * 400})
    with tracked(tmp_path, rows) as ws:
        [told] = ws.apply(TABLE, snapshot=rows.slice(100)).tables
        assert (told.n_deleted, told.n_inserted, told.n_unchanged) == (100, 0, 700)
        ws.apply(TABLE, deletes=rows.slice(100))
        assert ws.n_rows(TABLE) == 0
    assert n_pairs == [800, 700]


def test_only_the_difference_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tasks hand to the driver follows the rows that go and come, whatever the rows that stay."""
    numbers = list(range(4000))
    before, after = (
        pa.table({"a": rows, "b": [n % 7 for n in rows]}) for rows in (numbers, [*numbers[5:], -1])
    )
    results: list[tuple[Any, Any]] = []
    honest = Relation.run

    def recorded(relation: Relation, task: Any, *rest: Any) -> Any:
        bundles = honest(relation, task, *rest)
        results.extend((task, bundle) for bundle in bundles)
        return bundles

    monkeypatch.setattr(differing, "BUCKET", 1000)
    with tracked(tmp_path, before) as ws:
        monkeypatch.setattr(Relation, "run", recorded)
        [told] = ws.apply(TABLE, snapshot=after).tables
    assert (told.n_deleted, told.n_inserted, told.n_unchanged) == (5, 1, 3995)
    compared = [bundle for task, bundle in results if task is differing.compare_bucket]
    assert len(compared) == 8
    n_values = [len(bundle.array(name)) for _, bundle in results for name in bundle.names]
    assert sum(n_values) == 6


def test_a_snapshot_in_several_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal rows stand in different query segments, and take different rows."""
    lines = [f"{i % 50},{i % 3}" for i in range(3000)]
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    changed = [*lines[:2500], *lines[:10], "7,NEW", "7,NEW"]
    (tmp_path / "s.csv").write_text("a,b\n" + "\n".join(changed) + "\n")
    with tracked(tmp_path, tmp_path / "t.csv", options={"types": {"b": "text"}}) as ws:
        for module in (batch, encoding):
            monkeypatch.setattr(module, "WHOLE_BYTES", 1000)
        monkeypatch.setattr(encoding, "MIN_SPLIT_BYTES", 2000)
        monkeypatch.setattr(encoding, "INLINE_SPLIT_BYTES", 2000)
        [told] = ws.apply(TABLE, snapshot=tmp_path / "s.csv").tables
        expected = Counter(tuple(line.split(",")) for line in changed)
        assert Counter((str(a), b) for a, b in rows_of(ws)) == expected
    stay = (Counter(lines) & Counter(changed)).total()
    assert (told.n_unchanged, told.n_inserted) == (stay, len(changed) - stay)


PEOPLE = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "c"], "age": [7, 8, None]})


def test_upserts_of_some_columns_keep_the_others(tmp_path: Path) -> None:
    with tracked(tmp_path, PEOPLE, row_key=["id"]) as ws:
        [told] = ws.apply(TABLE, upserts=pa.table({"id": [3, 1], "age": [9.0, 7.0]})).tables
        assert (told.n_updated, told.n_unchanged, told.n_inserted) == (1, 1, 1)
        assert sorted(rows_of(ws)) == [(1, "a", 7.0), (2, "b", 8.0), (3, "c", 9.0)]
        with pytest.raises(SchemaError, match=r"new row key \(4\), and lack the columns name of it. Nothing"):
            ws.apply(TABLE, upserts=pa.table({"id": [3, 4], "age": [9.0, 7.0]}))
        # A row that the same batch deletes is not there any more: its key is new.
        row = pa.table({"id": [2], "name": ["z"], "age": [1.0]})
        [told] = ws.apply(TABLE, deletes=pa.table({"id": [2]}), upserts=row).tables
        assert (told.n_updated, told.n_unchanged, told.n_rows) == (0, 0, 3)


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_an_upsert_whose_row_key_is_null_is_told(tmp_path: Path, nulls: str) -> None:
    """NULL names a row as other values do, whatever keys make of it."""
    with tracked(tmp_path, PEOPLE, row_key=["id"], nulls=nulls) as ws:
        rows = pa.table({"id": pa.array([4, None], pa.int64()), "name": ["d", "e"], "age": [1.0, 2.0]})
        note = "t: upserts have NULL in id of the row key, where it names a row like other values"
        change = ws.apply(TABLE, upserts=rows)
        assert (change.n_inserted, change.notes) == (2, (note,))
        change = ws.apply(TABLE, upserts=rows)
        assert (change.tables[0].n_unchanged, change.notes) == (2, (note,))
        assert ws.apply(TABLE, upserts=rows.slice(0, 1)).notes == ()


def test_a_snapshot_without_rows_is_refused_unless_it_is_meant(tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("id,name,age\n")
    with tracked(tmp_path, PEOPLE) as ws:
        ws.track("none", PEOPLE.iloc[:0])
        expected = r"snapshot \(empty.csv\) of table 't' .* would delete all 3 rows .*--allow-empty"
        for call in (ws.apply, ws.check):
            with pytest.raises(UsageError, match=expected):
                call(TABLE, snapshot=empty)
        with pytest.raises(UsageError, match=expected):
            ws.apply_all({"none": {"snapshot": PEOPLE.iloc[:0]}, TABLE: {"snapshot": empty}})
        assert (ws.version, ws.n_rows(TABLE)) == (2, 3)
        assert ws.check(TABLE, snapshot=empty, allow_empty=True).tables[0].n_deleted == 3
        ws.apply("none", snapshot=PEOPLE.iloc[:0])  # it has none to lose
        ws.apply_all({TABLE: {"snapshot": empty, "allow_empty": True}})
        assert ws.n_rows(TABLE) == 0


def test_what_is_refused(tmp_path: Path) -> None:
    row = PEOPLE.iloc[:1]
    with tracked(tmp_path, PEOPLE, row_key=["id"]) as ws:
        with pytest.raises(AmbiguousRowError, match=r"the row key \(5\) more than once. Nothing was applied"):
            ws.apply(TABLE, upserts=pd.DataFrame({"id": [1, 5, 5], "name": ["a"] * 3, "age": [7.0] * 3}))
        with pytest.raises(SchemaError, match=r"the snapshot .* lacks the column age"):
            ws.apply(TABLE, snapshot=PEOPLE[["id", "name"]])
        with pytest.raises(UsageError, match="it stands alone: leave out deletes"):
            ws.apply(TABLE, snapshot=row, deletes=row)
        with pytest.raises(UsageError, match="give the rows of both as upserts"):
            ws.check(TABLE, upserts=row, updates=row)
        assert ws.version == 1
        ws.drop(TABLE)
        ws.track(TABLE, PEOPLE, append_only=True)
        for part in ("upserts", "snapshot"):
            with pytest.raises(UsageError, match=f"cannot have (a )?{part}. Nothing was applied"):
                ws.apply_all({TABLE: {part: row}})
        ws.drop(TABLE)
        ws.track(TABLE, PEOPLE)
        with pytest.raises(UsageError, match="no row key, so upserts cannot name its rows"):
            ws.apply(TABLE, upserts=row)
