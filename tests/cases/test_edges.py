"""Tables at the edge: empty, tiny, constant, all NULL, wide; and bugs that were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.rows import relation
from holdfast.core.rows.segments import Segment
from holdfast.core.words.change import Change
from holdfast.errors import UsageError
from holdfast.functional import key_class, key_news
from reference import keys as oracle

Columns = dict[str, list[Any]]
Keys = list[tuple[str, ...]]
Opener = Callable[..., Workspace]


@pytest.fixture
def tracked(tmp_path: Path) -> Opener:
    def track(columns: Columns | pa.Table, **options: Any) -> Workspace:
        ws = holdfast.open(tmp_path / "w", engine="inline")
        ws.track("t", columns if isinstance(columns, pa.Table) else ints(columns), **options)
        return ws

    return track


def ints(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def keys(ws: Workspace, **where: Any) -> Keys:
    return [d.columns for d in ws.dependencies(table="t", **where)]


@pytest.mark.parametrize(
    ("columns", "expected", "non_uniques"),
    [
        pytest.param({"a": [], "b": []}, [()], [], id="empty"),
        pytest.param({"a": [1], "b": [2]}, [()], [], id="one row"),
        pytest.param({"a": [1, 1], "b": [2, 2]}, [], [("a", "b")], id="two equal rows"),
        pytest.param({"a": [1, 2], "b": [3, 4]}, [("a",), ("b",)], [()], id="two rows that share nothing"),
        pytest.param({"a": [1, 2, 3], "b": [7, 7, 7]}, [("a",)], [("b",)], id="a constant column"),
        pytest.param({"a": [7, 7], "b": [7, 7], "c": [1, 2]}, [("c",)], [("a", "b")], id="constant columns"),
        pytest.param({"a": [1, 2, 3]}, [("a",)], [()], id="one column, a key"),
        pytest.param({"a": [1, 2, 1]}, [], [("a",)], id="one column, no key"),
    ],
)
def test_small_tables(tracked: Opener, columns: Columns, expected: Keys, non_uniques: Keys) -> None:
    ws = tracked(columns)
    assert keys(ws) == expected
    assert ws.keys.non_uniques("t") == non_uniques


@pytest.mark.parametrize(("nulls", "expected"), [("equal", []), ("distinct", [("a",), ("b",)])])
def test_all_null(tracked: Opener, nulls: str, expected: Keys) -> None:
    """Two rows of NULLs are equal rows, or tell each other apart by any column, as in SQL's UNIQUE."""
    nothing = {"a": [None, None], "b": [None, None]}
    ws = tracked(nothing, nulls=nulls)
    assert keys(ws) == expected
    change = ws.apply("t", deletes=ints({"a": [None], "b": [None]}))
    assert (change.n_deleted, keys(ws)) == (1, [()])


def test_a_table_that_fills_and_empties(tracked: Opener) -> None:
    ws = tracked({"a": [], "b": []})
    seen = [keys(ws)]
    for batch in (
        {"inserts": {"a": [1], "b": [1]}},
        {"inserts": {"a": [1], "b": [2]}},
        {"inserts": {"a": [1], "b": [2]}},
        {"deletes": {"a": [1, 1], "b": [2, 1]}},
        {"deletes": {"a": [1], "b": [2]}},
        {"inserts": {"a": [5, 6], "b": [5, 5]}},
    ):
        ws.apply("t", **{part: ints(rows) for part, rows in batch.items()})
        seen.append(keys(ws))
    assert seen == [[()], [()], [("b",)], [], [()], [()], [("a",)]]
    assert [keys(ws, at=version) for version in range(1, 8)] == seen


def test_an_empty_batch_is_a_version_without_changes(tracked: Opener) -> None:
    ws = tracked({"a": [1, 2]})
    change = ws.apply("t", inserts=ints({"a": []}), deletes=ints({"a": []}))
    assert (change.version, change.changes, change.n_rows) == (2, (), 2)


def test_changes_that_are_too_many_to_list(tracked: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted, shortest first, by sort; what holds is known all the same."""
    columns = {name: [1, 2, 3] for name in "abcd"} | {"e": [1, 1, 1]}
    ws, more = tracked(columns), ints({"a": [1], "b": [1], "c": [4], "d": [4], "e": [1]})
    third = ints({"a": [3], "b": [3], "c": [3], "d": [3], "e": [1]})
    batches: list[dict[str, pa.Table]] = [{"inserts": more}, {"deletes": more}]
    batches += [{"inserts": more, "deletes": third}, {"inserts": third, "deletes": more}]

    def told(change: Change) -> set[tuple[str, str, str]]:
        return {(c.event, c.dependency.name, c.reason) for c in change.changes}

    every = [ws.apply("t", **batch) for batch in batches]
    assert [c.tables[0].unlisted for c in every] == [0] * 4
    monkeypatch.setattr(key_news, "MAX_LISTED", 1)
    for whole, batch in zip(every, batches, strict=True):
        change = ws.apply("t", **batch)
        assert told(change) <= told(whole)
        assert {c.event for c in change.changes} == {c.event for c in whole.changes}
        assert all(c.witnesses for c in change.broke)
        assert change.tables[0].unlisted == len(whole.changes) - len(change.changes) > 0
        assert ws.log("t")[-1].details[0]["n_changes"] == len(whole.changes)
        assert keys(ws) == keys(ws, at=whole.version)
    monkeypatch.setattr(key_class, "MAX_LISTED", 3)
    change = ws.track("u", ints(columns))
    assert [c.dependency.columns for c in change.changes] == [("a",), ("b",), ("c",)]
    assert (change.tables[0].unlisted, len(ws.dependencies(table="u"))) == (1, 4)


def test_a_batch_of_nothing_is_refused(tracked: Opener) -> None:
    with pytest.raises(UsageError, match="the batch is empty"):
        tracked({"a": [1, 2]}).apply("t")


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_seventy_columns(tracked: Opener, nulls: str) -> None:
    """Masks of two words. Only six columns vary; the others are constant, or NULL."""
    varying = {
        3: [1, 1, 2, 2, 3],
        62: [1, 2, 1, 2, 1],
        63: [1, 1, 1, 2, 2],
        64: [4, 4, 5, 4, 4],
        69: [1, 1, 1, 1, 2],
    }
    columns: Columns = {f"c{c}": varying.get(c, [7] * 5) for c in range(70)}
    rows = list(zip(*columns.values(), strict=True))
    narrow = [tuple(row[c] for c in varying) for row in rows]

    def expected(narrow: list[tuple[Any, ...]]) -> set[tuple[str, ...]]:
        at = list(varying)
        found = oracle.minimal_uniques(narrow, len(varying), nulls)
        return {tuple(f"c{at[c]}" for c in sorted(key)) for key in found}

    ws = tracked(columns, nulls=nulls)
    assert set(keys(ws)) == expected(narrow)
    ws.apply("t", inserts=ints({name: [values[0]] for name, values in columns.items()}))
    assert keys(ws) == []
    gone = [columns[name][0:1] * 2 for name in columns]
    ws.apply("t", deletes=ints(dict(zip(columns, gone, strict=True))))
    assert set(keys(ws)) == expected(narrow[1:])
    told = ws.explain("t", ["c64", "c5"])
    assert not told.unique
    assert told.duplicates


def test_nan_and_minus_zero(tracked: Opener) -> None:
    table = pa.table({"a": [float("nan"), 1.0, 0.0], "b": [1, 2, 3]})
    ws = tracked(table)
    assert keys(ws) == [("a",), ("b",)]
    change = ws.apply("t", inserts=pa.table({"a": [-float("nan"), -0.0], "b": [4, 5]}))
    assert [c.dependency.columns for c in change.broke] == [("a",)]
    ws.apply("t", deletes=pa.table({"a": [float("nan"), 0.0], "b": [4, 5]}))
    assert keys(ws) == [("a",), ("b",)]


@pytest.mark.parametrize("bound", [1, 2])
def test_a_bound_on_the_size_of_keys(tracked: Opener, bound: int) -> None:
    columns = {"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [0, 0, 0, 1]}
    ws = tracked(columns, max_columns=bound)
    assert keys(ws) == ([] if bound == 1 else [("a", "b")])
    assert ws.keys.max_columns("t") == bound
    with pytest.raises(UsageError, match="at most"):
        ws.keys.non_uniques("t")
    told = ws.explain("t", ["a", "b"])
    assert told.unique
    assert not ws.explain("t", ["a", "c"]).unique


# -- bugs that were, and bugs that are ---------------------------------------------------------------------


def test_a_row_key_of_all_columns(tracked: Opener) -> None:
    """Rows named by such a key are named in full, so one occurrence goes; it used to be ambiguous."""
    ws = tracked({"a": [5, 5]}, row_key=("a",))
    change = ws.apply("t", deletes=ints({"a": [5]}))
    assert (change.n_deleted, change.n_rows) == (1, 1)
    ws.apply("t", deletes=ints({"a": [5]}))
    assert ws.n_rows("t") == 0


def test_a_row_key_that_is_not_unique_is_told(tmp_path: Path) -> None:
    columns = {"a": [1, 2, 2], "b": ["x", "y", "y"], "c": [1, 2, 3]}
    with holdfast.open(tmp_path / "w", engine="inline") as ws:

        def notes(*row_key: str, **how: Any) -> tuple[str, ...]:
            change = ws.track("t", pa.table(columns), row_key=row_key, **how)
            ws.drop("t")
            return change.notes

        step = "comes more than once, so batches cannot name such rows by it"
        assert notes("b", "a") == (f"t: the row key (b, a) is not unique: ('y', 2) {step}",)
        assert notes("a", kinds=("fd", "ucc")) == (f"t: the row key (a) is not unique: (2) {step}",)
        assert notes("c") == notes("a", "c") == notes() == notes("a", kinds=("ind",)) == ()
        columns["c"] = [1, 2, 2]
        assert notes("a", "b", "c") == ()


def test_a_pin_wider_than_the_bound(tracked: Opener) -> None:
    """A batch reports a pin as `pins` does, also where the cover has no keys of its size."""
    ws = tracked({"a": [1, 1, 2], "b": [1, 2, 1]}, max_columns=1)
    assert ws.pin("t", ["a", "b"]).holds
    change = ws.check("t", inserts=ints({"a": [3], "b": [3]}))
    assert [p.holds for p in change.pins] == [True]
    change = ws.apply("t", inserts=ints({"a": [3], "b": [3]}))
    assert [p.holds for p in change.pins] == [p.holds for p in ws.pins("t")] == [True]
    change = ws.check("t", inserts=ints({"a": [3], "b": [3]}))
    assert [p.holds for p in change.pins] == [False]


def test_equal_rows_in_two_parts_of_a_batch(tracked: Opener) -> None:
    """Two occurrences, one deleted and one updated: each part takes its own."""
    ws = tracked({"a": [5, 5, 6]})
    ws.apply("t", deletes=ints({"a": [5]}), before=ints({"a": [5]}), after=ints({"a": [7]}))
    assert ws.n_rows("t") == 2
    assert keys(ws) == [("a",)]
    assert not ws.explain("t", []).unique


def test_a_bound_hides_the_past_of_wider_combinations(tracked: Opener) -> None:
    ws = tracked({"a": [1, 1, 2], "b": [1, 2, 1], "c": [1, 2, 3]}, max_columns=1)
    ws.apply("t", inserts=ints({"a": [3], "b": [3], "c": [3]}))
    told = ws.explain("t", ["a", "b"])
    assert told.unique
    assert told.since is None
    assert ws.explain("t", ["c"]).since == 2


def test_a_bound_hides_when_a_wider_combination_turned(tracked: Opener) -> None:
    """A key inside it is gone, and it is unique still: the next cover says nothing of it."""
    ws = tracked({"a": [1, 2], "b": [1, 2], "c": [1, 1]}, max_columns=1)
    ws.apply("t", inserts=ints({"a": [1], "b": [2], "c": [1]}))
    told = ws.explain("t", ["a", "b"])
    assert (told.unique, told.minimal, told.since, told.turned) == (True, True, None, None)
    assert ws.explain("t", ["a", "b", "c"]).minimal is None
    ws.apply("t", inserts=ints({"a": [1], "b": [2], "c": [2]}))
    told = ws.explain("t", ["a", "b"])
    assert (told.unique, told.minimal, told.since, told.turned) == (False, False, None, None)
    assert ws.explain("t", ["a"]).since == 2
    rows = {"a": [1], "b": [2], "c": [1]}
    ws.apply("t", deletes=ints(rows))
    ws.apply("t", deletes=ints(rows | {"c": [2]}))
    told = ws.explain("t", ["a", "b"])
    assert (told.unique, told.minimal, told.since, told.turned) == (True, False, None, None)


def test_a_delete_looks_into_no_merged_segment_for_rows_that_were_never_merged(
    tracked: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a store a segment is far away, and the ids of rows say which one they came in."""
    monkeypatch.setattr(relation, "MERGE_FANOUT", 2)
    monkeypatch.setattr(relation, "SMALLEST_TIER", 4)
    ws = tracked({"a": list(range(100)), "b": [i % 7 for i in range(100)]})
    for i in range(100, 104):
        ws.apply("t", inserts=ints({"a": [i], "b": [i]}))
    assert {s.merged for s in ws.writer.tables.state("t").segments} == {False, True}
    looks: list[bool] = []
    positions = Segment.positions

    def watched(segment: Segment, row_ids: Any) -> Any:
        looks.append(segment.ref.merged)
        return positions(segment, row_ids)

    monkeypatch.setattr(Segment, "positions", watched)
    ws.apply("t", deletes=ints({"a": [5, 90], "b": [5, 6]}))
    assert looks
    assert not any(looks)
    ws.apply("t", deletes=ints({"a": [6, 101], "b": [6, 101]}))
    assert set(looks) == {False, True}
    assert ws.n_rows("t") == 100
    assert keys(ws) == [("a",)]
