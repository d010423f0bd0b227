"""Functional dependencies at the edge: empty, tiny, constant, NULL, wide, bounded; and bugs that were."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Change, Workspace
from holdfast.core.rows import codes
from holdfast.core.words.dependency import Fd, Ucc
from holdfast.errors import UsageError
from holdfast.functional import fd_news as fd_report
from holdfast.functional import fd_state as fd_options
from reference import fds as oracle

Columns = dict[str, list[Any]]
Opener = Callable[..., Workspace]
EVIDENCE = pytest.mark.parametrize("evidence", ["counted", "witnessed"])
NULLS = pytest.mark.parametrize("nulls", ["equal", "distinct"])


@pytest.fixture
def tracked(tmp_path: Path) -> Opener:
    def track(columns: Columns | pa.Table, **options: Any) -> Workspace:
        ws = holdfast.open(tmp_path / "w", engine="inline")
        table = columns if isinstance(columns, pa.Table) else ints(columns)
        ws.track("t", table, **{"kinds": ("fd",), **options})
        return ws

    return track


def ints(columns: Columns) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def fds(ws: Workspace, **where: Any) -> list[str]:
    found = ws.dependencies(kind="fd", table="t", **where)
    assert all(isinstance(d, Fd) for d in found)
    return [d.name for d in found if isinstance(d, Fd)]


def expected(table: pa.Table, nulls: str = "equal", max_lhs: int | None = None) -> set[str]:
    rows = [tuple(row.values()) for row in table.to_pylist()]
    names = table.column_names
    found = oracle.minimal_fds(rows, len(names), nulls, max_lhs)
    return {arrow(names, lhs, rhs) for lhs, rhs in found}


def arrow(names: Sequence[str], lhs: Collection[int], rhs: int) -> str:
    return Fd("t", tuple(names[c] for c in sorted(lhs)), names[rhs]).name


def events(change: Change) -> set[tuple[str, str]]:
    return {(c.event, c.dependency.name) for c in change.changes if isinstance(c.dependency, Fd)}


# -- small tables ------------------------------------------------------------------------------------------


@EVIDENCE
@NULLS
@pytest.mark.parametrize(
    ("columns", "found"),
    [
        pytest.param({"a": [], "b": []}, ["[] -> a", "[] -> b"], id="empty"),
        pytest.param({"a": [1], "b": [2]}, ["[] -> a", "[] -> b"], id="one row"),
        pytest.param({"a": [1, 1], "b": [2, 2]}, ["[] -> a", "[] -> b"], id="two equal rows"),
        pytest.param({"a": [1, 2], "b": [3, 4]}, ["a -> b", "b -> a"], id="two rows that share nothing"),
        pytest.param({"a": [1, 2, 3], "b": [7, 7, 7]}, ["[] -> b"], id="a constant column"),
        pytest.param({"a": [1, 1, 2], "b": [1, 2, 2]}, [], id="none at all"),
        pytest.param({"a": [5] * 9, "b": [6] * 9}, ["[] -> a", "[] -> b"], id="duplicates only"),
        pytest.param(
            {"a": [5] * 4 + [6] * 4, "b": [1] * 4 + [2] * 4}, ["a -> b", "b -> a"], id="two rows, often"
        ),
        pytest.param({"a": [1, 2, 3]}, [], id="one column"),
        pytest.param({"a": [1, 1, 1]}, ["[] -> a"], id="one constant column"),
    ],
)
def test_small_tables(tracked: Opener, columns: Columns, found: list[str], evidence: str, nulls: str) -> None:
    ws = tracked(columns, evidence=evidence, nulls=nulls)
    assert fds(ws) == found
    assert set(found) == expected(ints(columns), nulls)


@EVIDENCE
def test_fds_are_listed_short_ones_first(tracked: Opener, evidence: str) -> None:
    table = ints({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [1, 2, 3, 4], "d": [0, 0, 0, 0]})
    ws = tracked(table, evidence=evidence)
    assert fds(ws) == ["[] -> d", "c -> a", "c -> b", "a, b -> c"]
    [last] = [d for d in ws.dependencies(kind="fd", table="t") if len(d.lhs) == 2]
    assert last.to_dict() == {"kind": "fd", "table": "t", "lhs": ["a", "b"], "rhs": "c", "error": 0}
    assert str(last) == "t: a, b -> c"


@EVIDENCE
@pytest.mark.parametrize(
    ("nulls", "found"), [("equal", ["[] -> a", "[] -> b"]), ("distinct", ["a -> b", "b -> a"])]
)
def test_all_null(tracked: Opener, evidence: str, nulls: str, found: list[str]) -> None:
    """With NULLs distinct no two rows agree on a column of NULLs: it is a key, and not constant."""
    ws = tracked({"a": [None, None], "b": [None, None]}, evidence=evidence, nulls=nulls)
    assert fds(ws) == found
    ws.apply("t", deletes=ints({"a": [None], "b": [None]}))
    assert fds(ws) == ["[] -> a", "[] -> b"]
    ws.apply("t", inserts=ints({"a": [None], "b": [1]}))
    assert set(fds(ws)) == expected(ints({"a": [None, None], "b": [None, 1]}), nulls)


@EVIDENCE
@NULLS
def test_a_column_of_nulls_beside_others(tracked: Opener, evidence: str, nulls: str) -> None:
    table = ints({"a": [1, 1, 2, 2], "n": [None] * 4, "b": [1, 1, 2, None]})
    ws = tracked(table, evidence=evidence, nulls=nulls)
    assert set(fds(ws)) == expected(table, nulls)
    more = ints({"a": [1, 3], "n": [None, 5], "b": [1, None]})
    ws.apply("t", inserts=more)
    assert set(fds(ws)) == expected(pa.concat_tables([table, more]), nulls)
    ws.apply("t", deletes=table)
    assert set(fds(ws)) == expected(more, nulls)


# -- histories ---------------------------------------------------------------------------------------------


@EVIDENCE
def test_a_table_that_fills_and_empties(tracked: Opener, evidence: str) -> None:
    ws = tracked({"a": [], "b": []}, evidence=evidence)
    seen = [fds(ws)]
    for batch in (
        {"inserts": {"a": [1], "b": [1]}},
        {"inserts": {"a": [1], "b": [2]}},
        {"inserts": {"a": [2], "b": [2]}},
        {"deletes": {"a": [1, 2], "b": [2, 2]}},
        {"deletes": {"a": [1], "b": [1]}},
        {"inserts": {"a": [5, 6], "b": [5, 6]}},
    ):
        ws.apply("t", **{part: ints(rows) for part, rows in batch.items()})
        seen.append(fds(ws))
    constant = ["[] -> a", "[] -> b"]
    assert seen == [constant, constant, ["[] -> a"], [], constant, constant, ["a -> b", "b -> a"]]
    assert [fds(ws, at=version) for version in range(1, 8)] == seen


@EVIDENCE
def test_a_constant_that_stops_being_one(tracked: Opener, evidence: str) -> None:
    ws = tracked({"a": [1, 1, 1], "b": [1, 2, 3], "c": [7, 7, 7]}, evidence=evidence)
    assert fds(ws) == ["[] -> a", "[] -> c"]
    change = ws.apply("t", inserts=ints({"a": [1], "b": [3], "c": [8]}))
    assert events(change) == {("broke", "[] -> c")}
    [broke] = change.broke
    for left, right in broke.witnesses:
        assert {left.values["c"], right.values["c"]} == {7, 8}
    assert fds(ws) == ["[] -> a"]
    change = ws.apply("t", deletes=ints({"a": [1], "b": [3], "c": [7]}))
    assert events(change) == {("appeared", "b -> c")}


@EVIDENCE
def test_a_column_that_becomes_constant_by_deletes(tracked: Opener, evidence: str) -> None:
    ws = tracked({"a": [1, 1, 2, 2], "b": [1, 2, 3, 4], "c": [5, 5, 6, 6]}, evidence=evidence)
    assert set(fds(ws)) == {"a -> c", "b -> a", "b -> c", "c -> a"}
    change = ws.apply("t", deletes=ints({"a": [2, 2], "b": [3, 4], "c": [6, 6]}))
    assert fds(ws) == ["[] -> a", "[] -> c"]
    assert events(change) == {
        ("appeared", "[] -> a"),
        ("appeared", "[] -> c"),
        ("implied", "a -> c"),
        ("implied", "b -> a"),
        ("implied", "b -> c"),
        ("implied", "c -> a"),
    }


@EVIDENCE
def test_a_batch_that_deletes_everything(tracked: Opener, evidence: str) -> None:
    columns = {"a": [1, 1, 2, 3], "b": [1, 2, 2, 3], "c": [1, 2, 3, 3]}
    ws = tracked(columns, evidence=evidence)
    before = fds(ws)
    ws.apply("t", deletes=ints(columns))
    assert fds(ws) == ["[] -> a", "[] -> b", "[] -> c"]
    assert ws.n_rows("t") == 0
    if evidence == "counted":
        assert ws.fds.agree_sets("t") == []
    change = ws.apply("t", inserts=ints(columns))
    assert fds(ws) == before
    assert {e for e, _ in events(change)} == {"broke", "appeared"}


@EVIDENCE
def test_a_table_that_is_replaced_in_one_batch(tracked: Opener, evidence: str) -> None:
    """Everything goes and other rows come: the report is the net change."""
    old, new = {"a": [1, 1, 2], "b": [1, 1, 2]}, {"a": [1, 1, 2], "b": [1, 2, 2]}
    ws = tracked(old, evidence=evidence)
    change = ws.apply("t", deletes=ints(old), inserts=ints(new))
    assert fds(ws) == []
    assert events(change) == {("broke", "a -> b"), ("broke", "b -> a")}


@EVIDENCE
def test_rows_that_come_back(tracked: Opener, evidence: str) -> None:
    """Deleted and inserted again, in the same batch and in the next."""
    columns = {"a": [1, 2, 2], "b": [1, 1, 2], "c": [3, 3, 4]}
    ws = tracked(columns, evidence=evidence)
    before, row = fds(ws), ints({"a": [2], "b": [2], "c": [4]})
    change = ws.apply("t", deletes=row, inserts=row)
    assert (change.changes, fds(ws)) == ((), before)
    ws.apply("t", deletes=row)
    assert fds(ws) == ["[] -> b", "[] -> c"]
    ws.apply("t", inserts=row)
    assert fds(ws) == before
    change = ws.apply("t", inserts=row)
    assert (change.changes, fds(ws)) == ((), before)


@EVIDENCE
def test_an_empty_batch(tracked: Opener, evidence: str) -> None:
    ws = tracked({"a": [1, 2], "b": [1, 1]}, evidence=evidence)
    nothing = ints({"a": [], "b": []})
    change = ws.apply("t", inserts=nothing, deletes=nothing)
    assert (change.version, change.changes, change.n_rows) == (2, (), 2)


@EVIDENCE
def test_nan_and_minus_zero(tracked: Opener, evidence: str) -> None:
    table = pa.table({"x": [float("nan"), 1.0, 0.0], "k": ["n", "one", "zero"]})
    ws = tracked(table, evidence=evidence)
    assert fds(ws) == ["x -> k", "k -> x"]
    ws.apply("t", inserts=pa.table({"x": [-float("nan"), -0.0], "k": ["n", "zero"]}))
    assert fds(ws) == ["x -> k", "k -> x"], "NaN is NaN, -0.0 is 0.0"
    change = ws.apply("t", inserts=pa.table({"x": [float("nan"), 7.0], "k": ["other", "zero"]}))
    assert events(change) == {("broke", "x -> k"), ("broke", "k -> x")}
    ws.apply("t", deletes=pa.table({"x": [float("nan"), 7.0], "k": ["other", "zero"]}))
    assert fds(ws) == ["x -> k", "k -> x"]


# -- texts that share a code -------------------------------------------------------------------------------


@EVIDENCE
@NULLS
def test_texts_with_colliding_hashes(
    tracked: Opener, monkeypatch: pytest.MonkeyPatch, evidence: str, nulls: str
) -> None:
    """Equal codes of different texts neither break what holds, nor hide what does not."""
    monkeypatch.setattr(codes, "hash_texts", lambda texts, key: np.zeros(len(texts), dtype=np.uint64))
    rng = np.random.default_rng(3)

    def rows(n: int) -> pa.Table:
        drawn = rng.integers(0, [6, 3, 4], (n, 3))
        columns = [[f"v{v}" if v else None for v in column] for column in drawn.T.tolist()]
        determined = [None if a is None else a + "!" for a in columns[0]]
        arrays = [pa.array(column, pa.string()) for column in (*columns, determined)]
        return pa.table(dict(zip("abcd", arrays, strict=True)))

    parts = [rows(n) for n in (8, 3, 1, 5, 4)]
    ws = tracked(parts[0], evidence=evidence, nulls=nulls)
    for i, part in enumerate(parts[1:], 2):
        ws.apply("t", inserts=part)
        assert set(fds(ws)) == expected(pa.concat_tables(parts[:i]), nulls)
    for i in range(1, 5):
        ws.apply("t", deletes=parts[i - 1])
        assert set(fds(ws)) == expected(pa.concat_tables(parts[i:]), nulls)


# -- wide tables -------------------------------------------------------------------------------------------


@EVIDENCE
@NULLS
@pytest.mark.parametrize("n_columns", [64, 65, 70, 130])
def test_wide_tables(tracked: Opener, evidence: str, nulls: str, n_columns: int) -> None:
    """Masks of several words. Six columns vary, the others are constant; one of them is NULL."""
    last, middle = n_columns - 1, n_columns // 2
    values = [
        [1, 1, 2, 2, 3, 3],
        [1, 2, 1, 2, 1, 2],
        [1, 1, 2, 2, 4, 4],
        [1, None, 1, 2, 2, None],
        [4, 4, 5, 4, 4, 5],
        [1, 1, 1, 1, 2, 2],
    ]
    varying = dict(zip(sorted([3, 61, middle, middle + 1, last - 1, last]), values, strict=True))
    columns: Columns = {f"c{c}": varying.get(c, [7] * 6) for c in range(n_columns)}
    narrow = ints({f"c{c}": values for c, values in varying.items()})

    def wanted(rows: pa.Table) -> set[str]:
        constants = {f"[] -> c{c}" for c in range(n_columns) if c not in varying}
        return constants | expected(rows, nulls)

    ws = tracked(columns, evidence=evidence, nulls=nulls)
    assert set(fds(ws)) == wanted(narrow)

    def wide(rows: pa.Table) -> pa.Table:
        found = {f"c{c}": [7] * len(rows) for c in range(n_columns)}
        return ints({**found, **rows.to_pydict()})

    new = ints({f"c{c}": [values[0], values[0], 9] for c, values in varying.items()})
    new = new.set_column(5, f"c{last}", pa.array([1, 2, 9]))
    ws.apply("t", inserts=wide(new))
    assert set(fds(ws)) == wanted(pa.concat_tables([narrow, new]))
    ws.apply("t", deletes=wide(narrow.slice(0, 4)))
    assert set(fds(ws)) == wanted(pa.concat_tables([narrow.slice(4), new]))
    if evidence == "counted":
        assert sum(n for _, n in ws.fds.agree_sets("t")) == 5 * 4 // 2


@EVIDENCE
def test_a_wide_table_with_a_bound(tracked: Opener, evidence: str) -> None:
    """70 columns that all vary: too many FDs to list, but those of one column are few."""
    rng = np.random.default_rng(8)
    values = rng.integers(0, 3, (70, 40))
    values[69], values[1] = values[5] + 1, np.arange(40)
    table = pa.table({f"c{c}": column for c, column in enumerate(values)})
    ws = tracked(table.slice(0, 30), evidence=evidence, max_lhs=1)
    assert set(fds(ws)) == expected(table.slice(0, 30), max_lhs=1)
    ws.apply("t", inserts=table.slice(30))
    assert set(fds(ws)) == expected(table, max_lhs=1)
    ws.apply("t", deletes=table.slice(5, 30))
    assert set(fds(ws)) == expected(pa.concat_tables([table.slice(0, 5), table.slice(35)]), max_lhs=1)


# -- bounds ------------------------------------------------------------------------------------------------


@EVIDENCE
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_a_bound_on_the_left_hand_side(tracked: Opener, evidence: str, bound: int) -> None:
    rng = np.random.default_rng(2)
    table = pa.table({name: rng.integers(0, 3, 30) for name in "abcde"})
    ws = tracked(table.slice(0, 20), evidence=evidence, max_lhs=bound)
    assert set(fds(ws)) == expected(table.slice(0, 20), max_lhs=bound)
    change = ws.apply("t", inserts=table.slice(20), deletes=table.slice(0, 12))
    assert set(fds(ws)) == expected(table.slice(12), max_lhs=bound)
    assert change.tables[0].fields["max_lhs"] == bound
    change = ws.apply("t", deletes=table.slice(15))
    assert set(fds(ws)) == expected(table.slice(12, 3), max_lhs=bound)
    assert change.tables[0].n("fd") == len(fds(ws))


@EVIDENCE
def test_a_bound_wider_than_the_table(tracked: Opener, evidence: str) -> None:
    columns = {"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [1, 2, 3, 4]}
    ws = tracked(columns, evidence=evidence, max_lhs=50)
    assert set(fds(ws)) == expected(ints(columns))


# -- approximate ones --------------------------------------------------------------------------------------


def errors(ws: Workspace, kind: str, max_error: float, **where: Any) -> dict[str, float]:
    found = ws.dependencies(kind=kind, table="t", max_error=max_error, **where)
    return {d.name if isinstance(d, Fd) else str(d): d.error for d in found if isinstance(d, Fd | Ucc)}


NEARLY = {"a": [1, 1, 1, 1, 2], "b": [1, 1, 1, 2, 3], "c": [1, 2, 3, 4, 5]}


def test_errors_are_shares_of_pairs(tracked: Opener) -> None:
    ws = tracked(NEARLY, evidence="counted", max_error=0.3)
    # Of ten pairs three agree on a and not on b; three agree on b.
    exact = {"b -> a": 0.0, "c -> a": 0.0, "c -> b": 0.0}
    assert errors(ws, "fd", 0.3) == {"a -> b": 0.3, "b -> c": 0.3, **exact}
    assert errors(ws, "ucc", 0.3) == {"t[b]": 0.3, "t[c]": 0.0}
    assert errors(ws, "fd", 0.29) == exact
    assert errors(ws, "fd", 1.0) == {"[] -> a": 0.4, "[] -> b": 0.7, "[] -> c": 1.0}
    assert errors(ws, "ucc", 1.0) == {"t[]": 1.0}
    assert fds(ws) == ["b -> a", "c -> a", "c -> b"], "the exact ones are kept all the same"


def test_the_tracked_error_is_kept_for_all_versions(tracked: Opener) -> None:
    ws = tracked(NEARLY, evidence="counted", max_error=0.3)
    before = errors(ws, "fd", 0.3), errors(ws, "ucc", 0.3)
    change = ws.apply("t", inserts=ints({"a": [1], "b": [5], "c": [6]}))
    now = errors(ws, "fd", 0.3)
    assert now == {"b -> a": 0.0, "b -> c": 0.2, "c -> a": 0.0, "c -> b": 0.0}
    assert ("beyond", "a -> b") in events(change)
    assert (errors(ws, "fd", 0.3, at=1), errors(ws, "ucc", 0.3, at=1)) == before
    assert errors(ws, "fd", 0.3, at=2) == now
    with pytest.raises(UsageError, match=r"0\.3"):
        ws.dependencies(kind="fd", table="t", max_error=0.1, at=1)


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_errors_of_tiny_tables(tracked: Opener, n_rows: int) -> None:
    ws = tracked({"a": list(range(n_rows)), "b": [1] * n_rows}, evidence="counted", max_error=0.5)
    if n_rows < 2:
        assert errors(ws, "fd", 0.5) == {"[] -> a": 0.0, "[] -> b": 0.0}
        assert errors(ws, "ucc", 0.5) == {"t[]": 0.0}
    else:
        assert errors(ws, "fd", 0.5) == {"[] -> b": 0.0}
        assert errors(ws, "ucc", 0.5) == {"t[a]": 0.0}


def test_max_error_is_the_error_that_is_told(tracked: Opener) -> None:
    """29 of 100 pairs and their like: rounding must not lose what is exactly at the threshold."""
    rng = np.random.default_rng(4)
    table = pa.table({name: rng.integers(0, 4, 25) for name in "abc"})  # 300 pairs
    ws = tracked(table, evidence="counted")
    rows = [tuple(row.values()) for row in table.to_pylist()]
    told = {oracle.g1(rows, lhs, rhs, "equal") for lhs, rhs in product([(), (0,), (1,), (0, 1)], range(3))}
    assert len(told) > 5
    for error in told - {0.0}:
        found = oracle.approximate_fds(rows, 3, "equal", error)
        named = {arrow("abc", lhs, rhs): n / 300 for (lhs, rhs), n in found.items()}
        assert errors(ws, "fd", error) == named


def test_errors_need_counted_evidence(tracked: Opener) -> None:
    with pytest.raises(UsageError, match="counted"):
        tracked(NEARLY, evidence="witnessed", max_error=0.1)
    ws = tracked(NEARLY, evidence="witnessed")
    with pytest.raises(UsageError, match="counted"):
        ws.dependencies(kind="fd", table="t", max_error=0.1)


def test_nothing_is_tracked_where_options_are_refused(tracked: Opener, tmp_path: Path) -> None:
    for options, match in REFUSED:
        with pytest.raises(UsageError, match=match):
            tracked(NEARLY, **options)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        assert (ws.tables(), ws.version) == ([], 0)


REFUSED: Sequence[tuple[dict[str, Any], str]] = [
    ({"evidence": "guessed"}, "guessed"),
    ({"max_lhs": 0}, "max_lhs"),
    ({"max_lhs": -1}, "max_lhs"),
    ({"max_error": -0.1}, "max_error"),
    ({"max_error": 1.5}, "max_error"),
    ({"max_error": float("nan")}, "max_error"),
    ({"max_error": 0.1, "evidence": "witnessed"}, "counted"),
    ({"kinds": ("ucc",), "max_lhs": 2}, "fd"),
    ({"kinds": ("ucc",), "max_error": 0.1}, "fd"),
    ({"kinds": ("ucc",), "evidence": "counted"}, "fd"),
]


# -- beside keys and inclusions ----------------------------------------------------------------------------


@EVIDENCE
def test_all_kinds_together(tracked: Opener, evidence: str) -> None:
    columns = {"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [1, 1, 2, 2]}
    ws = tracked(columns, kinds=("ucc", "fd", "ind"), evidence=evidence)
    assert set(fds(ws)) == {"a -> c", "c -> a"}
    assert [str(d) for d in ws.dependencies(kind="ucc")] == ["t[a, b]", "t[b, c]"]
    inds = ws.dependencies(kind="ind")
    assert len(ws.dependencies()) == 2 + 2 + len(inds)
    change = ws.apply("t", inserts=ints({"a": [1], "b": [1], "c": [3]}))
    broke = {str(c.dependency) for c in change.broke}
    assert broke >= {"t: a -> c", "t[a, b]", "t[c] in t[a]"}
    assert set(fds(ws)) == {"c -> a"}


def test_tables_that_do_not_track_fds(tracked: Opener) -> None:
    ws = tracked(NEARLY, kinds=("ucc",))
    assert ws.dependencies(kind="fd") == []
    assert ws.dependencies(kind="fd", table="t") == []
    change = ws.apply("t", inserts=ints({"a": [9], "b": [9], "c": [9]}))
    assert change.tables[0].n("fd") is None
    with pytest.raises(UsageError):
        ws.fds.agree_sets("t")


@EVIDENCE
def test_append_only_tables(tracked: Opener, evidence: str) -> None:
    ws = tracked(NEARLY, evidence=evidence, append_only=True)
    new = ints({"a": [2], "b": [1], "c": [6]})
    change = ws.apply("t", inserts=new)
    assert [c.dependency.name for c in change.broke if isinstance(c.dependency, Fd)] == ["b -> a"]
    assert set(fds(ws)) == expected(pa.concat_tables([ints(NEARLY), new]))
    with pytest.raises(UsageError, match="append-only"):
        ws.apply("t", deletes=new)


@EVIDENCE
def test_a_table_that_is_dropped_and_tracked_again(tracked: Opener, evidence: str) -> None:
    ws = tracked(NEARLY, evidence=evidence)
    ws.drop("t")
    assert ws.dependencies(kind="fd") == []
    change = ws.track("t", ints({"a": [1, 1], "b": [1, 2], "c": [3, 3]}), kinds=("fd",), evidence=evidence)
    assert fds(ws) == ["[] -> a", "[] -> c"]
    assert events(change) == {("appeared", "[] -> a"), ("appeared", "[] -> c")}
    assert fds(ws, at=1) == ["b -> a", "c -> a", "c -> b"]


def test_a_cost_model_chooses_the_evidence(tracked: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    ws = tracked(NEARLY)
    assert sum(n for _, n in ws.fds.agree_sets("t")) == 10
    monkeypatch.setattr(fd_options, "COMPARISON_BUDGET", 0)
    ws.track("tall", ints(NEARLY), kinds=("fd",))
    with pytest.raises(UsageError, match="counted"):
        ws.fds.agree_sets("tall")
    ws.track("asked for errors", ints(NEARLY), kinds=("fd",), max_error=0.1)
    assert len(ws.fds.agree_sets("asked for errors")) == len(ws.fds.agree_sets("t"))


@EVIDENCE
def test_changes_that_are_too_many_to_list(
    tracked: Opener, monkeypatch: pytest.MonkeyPatch, evidence: str
) -> None:
    """They are counted; what holds is known all the same."""
    columns = {name: [1, 1, 2, 2] for name in "abcd"}
    more = {name: [1] if name in "ab" else [3] for name in "abcd"}
    ws = tracked(columns, evidence=evidence)
    change = ws.apply("t", inserts=ints(more))
    assert change.tables[0].unlisted == 0
    broke, after = events(change), fds(ws)
    ws.apply("t", deletes=ints(more))
    monkeypatch.setattr(fd_report, "MAX_LISTED", 1)
    change = ws.apply("t", inserts=ints(more))
    assert events(change) < broke
    assert len(events(change)) + change.tables[0].unlisted == len(broke)
    assert f"{change.tables[0].unlisted} more changes" in str(change)
    assert ws.log("t")[-1].details[0]["n_changes"] == len(broke)
    assert fds(ws) == after
    held = {h.fd.name: h.holds for h in ws.fds.log("t")}
    assert all(held[arrow] == (event != "broke") for event, arrow in broke)


@EVIDENCE
def test_what_broke_is_told_however_much_is_implied(
    tracked: Opener, monkeypatch: pytest.MonkeyPatch, evidence: str
) -> None:
    """A list that is cut is cut for each event on its own: two FDs are implied now, one broke."""
    monkeypatch.setattr(fd_report, "MAX_LISTED", 1)
    columns = {"a": [1, 1, 1, 1, 2], "b": [1, 1, 2, 2, 3], "c": [1, 2, 1, 2, 1], "d": [1, 2, 3, 3, 5]}
    ws = tracked(columns, evidence=evidence)
    change = ws.apply(
        "t",
        deletes=ints({"a": [2], "b": [3], "c": [1], "d": [5]}),
        inserts=ints({"a": [1], "b": [1], "c": [1], "d": [9]}),
    )
    [broke] = change.broke
    assert broke.dependency == Fd("t", ("b", "c"), "d")
    assert broke.held == 1
    assert broke.witnesses


# -- versions and processes --------------------------------------------------------------------------------


@EVIDENCE
def test_two_handles_take_turns(tracked: Opener, tmp_path: Path, evidence: str) -> None:
    """Each sees what the other one did, and counts the same versions."""
    ws = tracked({"a": [1, 1, 2], "b": [1, 1, 2], "c": [1, 2, 3]}, evidence=evidence)
    other = holdfast.open(tmp_path / "w", engine="inline")
    assert fds(other) == ["a -> b", "b -> a", "c -> a", "c -> b"]
    ws.apply("t", inserts=ints({"a": [3], "b": [3], "c": [4]}))
    other.apply("t", inserts=ints({"a": [4], "b": [4], "c": [5]}))
    change = ws.apply("t", inserts=ints({"a": [1], "b": [9], "c": [6]}))
    assert [(c.dependency.name, c.held) for c in change.broke if isinstance(c.dependency, Fd)] == [
        ("a -> b", 3)
    ]
    change = other.apply("t", deletes=ints({"a": [1], "b": [9], "c": [6]}))
    assert events(change) == {("appeared", "a -> b")}
    assert fds(ws) == fds(other) == ["a -> b", "b -> a", "c -> a", "c -> b"]
    assert [h.to_dict() for h in ws.fds.log("t")] == [h.to_dict() for h in other.fds.log("t")]
    [history] = [h for h in ws.fds.log("t") if h.fd.name == "a -> b"]
    assert (history.breaks, history.n_held, history.n_versions, history.n_current) == ((4,), 4, 5, 1)
    other.close()


@EVIDENCE
def test_a_table_that_is_tracked_again_starts_anew(tracked: Opener, evidence: str) -> None:
    """What held before the drop does not count for the table that has its name now."""
    columns = {"a": [1, 1, 2], "b": [1, 1, 2]}
    ws = tracked(columns, evidence=evidence)
    for i in (3, 4):
        ws.apply("t", inserts=ints({"a": [i], "b": [i]}))
    assert [h.n_held for h in ws.fds.log("t")] == [3, 3]
    ws.drop("t")
    ws.track("t", ints(columns), kinds=("fd",), evidence=evidence)
    assert [(h.n_held, h.n_versions) for h in ws.fds.log("t")] == [(1, 1), (1, 1)]
    assert ws.fds.explain("t", ["a"], "b").since == 5
    change = ws.apply("t", inserts=ints({"a": [1], "b": [7]}))
    [broke] = change.broke
    assert broke.held == 1
    told = ws.fds.explain("t", ["a"], "b")
    assert told.turned is not None
    assert (told.since, told.turned.version, told.violations) == (6, 6, 2)


@EVIDENCE
def test_a_check_leaves_nothing_behind(tracked: Opener, tmp_path: Path, evidence: str) -> None:
    columns = {"a": [1, 1, 2, 3], "b": [1, 1, 2, 3]}
    ws = tracked(columns, evidence=evidence)
    files = sorted(p for p in (tmp_path / "w").rglob("*") if p.is_file())
    change = ws.check("t", inserts=ints({"a": [1], "b": [7]}), deletes=ints({"a": [2], "b": [2]}))
    assert [str(c.dependency) for c in change.broke] == ["t: a -> b"]
    assert change.tables[0].n("fd") == 1
    assert sorted(p for p in (tmp_path / "w").rglob("*") if p.is_file()) == files
    assert (ws.version, fds(ws)) == (1, ["a -> b", "b -> a"])


@EVIDENCE
def test_a_repeated_batch_says_how_many_fds_there_are(tracked: Opener, evidence: str) -> None:
    ws = tracked({"a": [1, 1, 2], "b": [1, 1, 2]}, evidence=evidence, max_lhs=2)
    row = ints({"a": [1], "b": [7]})
    first = ws.apply("t", inserts=row, batch_id="x")
    again = ws.apply("t", inserts=row, batch_id="x")
    assert again.repeated
    assert (again.changes, ws.n_rows("t")) == ((), 4)
    assert [(t.n("fd"), t.fields["max_lhs"]) for t in (*first.tables, *again.tables)] == [(1, 2), (1, 2)]


@EVIDENCE
def test_a_batch_that_changes_nothing_writes_no_cover(tracked: Opener, evidence: str) -> None:
    """The cover of the version before is named again."""
    ws = tracked({"a": [1, 1, 2], "b": [1, 1, 2], "c": [1, 2, 3]}, evidence=evidence)
    before = ws.fds.ref("t")
    ws.apply("t", inserts=ints({"a": [2], "b": [2], "c": [4]}))
    after = ws.fds.ref("t")
    assert before is not None
    assert after is not None
    assert before.cover == after.cover
