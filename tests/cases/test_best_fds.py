"""The best functional dependencies without the others: what sorting all of them says, in either order."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

import holdfast
from cases.test_fd_ranking import related
from holdfast.core.evidence import refute, validation
from holdfast.core.evidence.kernels import partitions
from holdfast.errors import UsageError
from holdfast.functional import best_fds as module
from holdfast.functional.best_fds import BestFds, By, best_fds
from reference.best_fds import Measured
from reference.best_fds import best_fds as oracle
from reference.keys import Row
from strategies import Filled, batches, filled, varied_shapes

ORDERS: tuple[By, ...] = ("score", "redundancy")
# Limits of production that small tables never reach.
SMALL: list[tuple[Any, str, int]] = [
    (module, "ROUND", 2),
    (module, "WAITING", 2),
    (module, "SAMPLE_ROWS", 5),
    (module, "MOST_SETS", 12),
    (validation, "GATHER_VALUES", 8),
    (validation, "MATRIX_VALUES", 0),
    (validation, "SAMPLE_ROWS", 1),
    (validation, "CLUSTER_ROWS", 2),
    (partitions, "CHUNK_VALUES", 4),
    (partitions, "LEAF_ROWS", 2),
    (partitions, "MAX_MASKS", 2),
    (refute, "PART_ROWS", 3),
]


@contextmanager
def limits(*, small: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for where, name, value in SMALL if small else ():
            patch.setattr(where, name, value)
        yield


def told(best: BestFds, names: Sequence[str]) -> list[Measured]:
    position = {name: i for i, name in enumerate(names)}
    assert all(r.measured and r.key is None and r.fd.error == 0 for r in best.fds)
    return [
        Measured(tuple(position[c] for c in r.fd.lhs), position[r.fd.rhs], r.redundancy or 0, r.score)
        for r in best.fds
    ]


def constants(rows: Sequence[Row], table: pa.Table, nulls: str) -> tuple[str, ...]:
    from reference.fds import holds

    return tuple(n for c, n in enumerate(table.column_names) if holds(rows, (), c, nulls))


def check(rows: Sequence[Row], table: pa.Table, nulls: str, best: Callable[[int, By], BestFds]) -> None:
    """Both orders, from one dependency to more than there are."""
    for by in ORDERS:
        expected = oracle(rows, table.num_columns, nulls, by)
        event(f"{min(len(expected), 10)} dependencies")
        for n in {1, 1 + len(expected) // 2, len(expected) + 1}:
            answer = best(n, by)
            assert told(answer, table.column_names) == expected[:n]
            assert answer.constants == constants(rows, table, nulls)
            assert (answer.n_certain, answer.stopped_at) == (len(answer.fds), None)


# -- equal to the definition -------------------------------------------------------------------------------


@given(filled(max_columns=6, max_rows=12), st.sampled_from(["equal", "distinct"]), st.booleans())
def test_the_best_of_any_table(table: Filled, nulls: str, small: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, limits(small=small):
        relation = related(Path(folder), table.table, nulls)
        check(table.rows, table.table, nulls, lambda n, by: best_fds(relation, "t", n, by, seconds=None))


def numbers(rows: Sequence[Sequence[int]]) -> Filled:
    """Rows of numbers: small pools, so that left-hand sides are large."""
    from strategies import Shape

    schema = pa.schema([pa.field(f"c{c}", pa.int64()) for c in range(len(rows[0]))])
    return Filled(Shape(schema, ((),) * len(rows[0])), tuple(map(tuple, rows)))


@given(
    st.integers(3, 5).flatmap(
        lambda k: st.lists(st.tuples(*[st.integers(0, 1 + c % 3) for c in range(k)]), min_size=2, max_size=20)
    ),
    st.booleans(),
)
@example([(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 0)], True)
def test_larger_left_hand_sides(rows: list[tuple[int, ...]], small: bool) -> None:
    table = numbers(rows)
    with tempfile.TemporaryDirectory() as folder, limits(small=small):
        relation = related(Path(folder), table.table)
        check(rows, table.table, "equal", lambda n, by: best_fds(relation, "t", n, by, seconds=None))


@given(st.data())
def test_a_table_after_batches(data: st.DataObject) -> None:
    """Inserts and deletes later, in several segments, whatever the table is tracked for."""
    shape = data.draw(varied_shapes(max_columns=5))
    live = data.draw(shape.rows(max_size=10))
    nulls, kinds = (
        data.draw(st.sampled_from(["equal", "distinct"])),
        data.draw(st.sampled_from(["ucc", "fd"])),
    )
    bound = {"max_lhs": 1} if kinds == "fd" else {"max_columns": 1}
    with tempfile.TemporaryDirectory() as folder, limits(small=data.draw(st.booleans())):
        ws = holdfast.open(Path(folder) / "w", engine="inline")
        ws.track("t", shape.table(live), kinds=[kinds], nulls=nulls, **bound)
        for _ in range(data.draw(st.integers(1, 3))):
            batch = data.draw(batches(shape, live))
            ws.apply("t", inserts=shape.table(batch.inserts), deletes=shape.table(batch.deletes))
            live = batch.applied_to(live)
        check(live, shape.table(live), nulls, lambda n, by: ws.fds.best("t", n, by=by, seconds=None))


# -- wide tables -------------------------------------------------------------------------------------------


def wide(n_columns: int = 70, n_varying: int = 9, n_rows: int = 26) -> Filled:
    """Columns that follow from two others, from one, or from none, on both sides of the end of a word; all
    others are constant."""
    rng = np.random.default_rng(3)
    columns = [np.zeros(n_rows, dtype=np.int64)] * n_columns
    first = 64 - n_varying // 2
    for c in range(first, first + n_varying):
        a, b = (columns[i] for i in (first, first + 1))
        fresh = rng.integers(0, 2 + c % 2, n_rows)
        columns[c] = [a * 7 + b, a * fresh % 3, fresh, fresh][c % 4] if c > first + 2 else fresh
    return numbers(np.stack(columns, axis=1).tolist())


@pytest.mark.parametrize("by", ORDERS)
@pytest.mark.parametrize("small", [False, True])
def test_wide_tables(tmp_path: Path, by: By, small: bool) -> None:
    """More columns than a word has."""
    table = wide()
    names = table.table.column_names
    relation = related(tmp_path, table.table)
    with limits(small=small):
        for max_lhs in (None, 1, 2):
            expected = oracle(table.rows, 70, "equal", by, max_lhs)
            assert len(expected) > 3
            for n in (1, 5, len(expected) + 1):
                best = best_fds(relation, "t", n, by, max_lhs=max_lhs, seconds=None)
                assert told(best, names) == expected[:n]
                assert (best.n_certain, len(best.constants)) == (len(best.fds), 61)


def test_as_tracked_ones_are_ranked(tmp_path: Path) -> None:
    """Where all are tracked, and nothing has happened yet, the ranking begins in the same way."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 6, 120), rng.integers(0, 4, 120)
    c = rng.integers(0, 3, 120)
    table = pa.table({"id": np.arange(120), "a": a, "b": b, "c": c, "ab": a * 4 + b, "x": a % 3, "y": c * b})
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", table, kinds=["fd"])
        ranked = [r for r in ws.fds.rank("t").fds if r.key is None and r.fd.lhs]
        assert len(ranked) > 5
        for n in range(1, len(ranked) + 2):
            assert list(ws.fds.best("t", n, seconds=None).fds) == ranked[:n]
        listed = {(fd.lhs, fd.rhs) for fd in ws.dependencies("fd", "t") if isinstance(fd, holdfast.Fd)}
        redundant = ws.fds.best("t", 1000, by="redundancy", seconds=None)
        assert {(r.fd.lhs, r.fd.rhs) for r in redundant.fds} < listed
        values = [r.redundancy or 0 for r in redundant.fds]
        assert values == sorted(values, reverse=True)


# -- limits, answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ORDERS)
def test_what_is_certain_when_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: By) -> None:
    """The first of those that are told, wherever the search stops."""
    table = wide(n_columns=70)
    relation = related(tmp_path, table.table)
    n = 1000
    everything = best_fds(relation, "t", n, by, seconds=None)
    numbers_certain = set()
    with limits(small=True):
        for seconds in range(0, 120, 15):  # of a clock that is looked at once a second
            monkeypatch.setattr(module.time, "perf_counter", itertools.count().__next__)
            best = best_fds(relation, "t", n, by, seconds=seconds)
            monkeypatch.undo()
            assert best.fds[: best.n_certain] == everything.fds[: best.n_certain]
            numbers_certain.add(best.n_certain if best.stopped_at else None)
    assert len(numbers_certain) > 1


def test_as_a_table(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 1, 2, 3], "b": [1, 1, 1, 2], "k": [1, 2, 3, 4], "z": [0] * 4}))
        best = ws.fds.best("t", by="redundancy")
        assert repr(best) == "1 by redundancy, best first\n  1  t: a -> b"
        assert repr(ws.fds.best("t")).startswith("1 ranked, best first\n  0.3")
        document = best.to_dict()
        assert (document["by"], document["constants"], document["n_certain"]) == ("redundancy", ["z"], 1)
        assert document["fds"][0]["redundancy"] == 1
        assert BestFds.__name__ not in best._repr_html_()
        assert best.to_arrow().column("rhs").to_pylist() == ["b"]
        assert best.to_pandas()["redundancy"].tolist() == [1]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"n": 0}, "n is 0; expected at least 1"),
        ({"max_lhs": 0}, "max_lhs is 0; expected at least 1"),
        ({"by": "size"}, "the order 'size' is not known. Orders: score, redundancy"),
    ],
)
def test_what_cannot_be_asked(tmp_path: Path, how: dict[str, Any], error: str) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1]}))
        with pytest.raises(UsageError, match=error):
            ws.fds.best("t", **how)
