"""Row counts: sums of rows, and the rules that are read off them by definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.denial.row_counts import OPERATORS, SATISFYING, RowCounts
from laws import row_counts
from reference import row_outcomes as reference
from strategies import shapes

COUNTS = st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4), max_size=6)
SHAPES = shapes(types=("int", "small int", "float", "text"), pool_size=3)


def counts_of(counts: list[list[int]]) -> RowCounts:
    return RowCounts(np.array(counts, dtype=np.int64).reshape(-1, 4))


@given(SHAPES, st.data())
def test_linear(shape, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    """s(R + D) = s(R) + s(D), and back again."""
    rows = dict(enumerate(data.draw(shape.rows(max_size=9))))
    cut = data.draw(st.integers(0, len(rows)))
    old = {i: r for i, r in rows.items() if i < cut}
    new = {i: r for i, r in rows.items() if i >= cut}
    n = shape.n_columns
    before, whole = row_counts.scratch(old, n, "equal"), row_counts.scratch(rows, n, "equal")
    after = row_counts.grown(before, old, new, n, "equal")
    assert row_counts.meaning(after) == row_counts.meaning(whole)
    assert after.n_rows == (len(rows) if n > 1 else 0)
    back = row_counts.shrunk(after, old, new, n, "equal")
    assert row_counts.meaning(back) == row_counts.meaning(before)


@given(COUNTS, st.lists(st.booleans(), min_size=6, max_size=6), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))
@example([[0, 0, 0, 3], [0, 0, 0, 0]], [True] * 6, 1.0)
@example([[9, 1, 0, 0], [0, 1, 9, 0], [5, 0, 5, 0], [0, 2, 0, 0]], [True] * 6, 0.1)
@example([[9, 1, 0, 0], [9, 0, 0, 1], [0, 9, 0, 0]], [False] * 6, 0.1)
def test_tightest(counts: list[list[int]], ordered: list[bool], max_error: float) -> None:
    ordered = ordered[: len(counts)]
    for count, has_order in zip(counts, ordered, strict=True):
        if not has_order:  # everything that differs is LESS
            count[reference.LESS] += count[reference.GREATER]
            count[reference.GREATER] = 0
    state = counts_of(counts)
    found = state.tightest(np.array(ordered, dtype=np.bool_), max_error)
    violations = state.violations()
    assert violations.shape == (len(counts), len(OPERATORS))
    for p, (count, has_order) in enumerate(zip(counts, ordered, strict=True)):
        expected = reference.rule(count, has_order, max_error)
        told = None if found[p] < 0 else (OPERATORS[found[p]], violations[p, found[p]])
        assert told == expected
        assert state.n_compared[p] == sum(count[:3])


def test_operators() -> None:
    assert {op: set(outcomes) for op, outcomes in SATISFYING.items()} == reference.SATISFIED


@given(COUNTS)
def test_arrays(counts: list[list[int]]) -> None:
    state = counts_of(counts)
    again = RowCounts.from_arrays({k: v.reshape(-1) for k, v in state.to_arrays().items()})
    assert row_counts.meaning(again) == row_counts.meaning(state) == counts
    assert len(again) == len(counts)


def test_more_goes_than_there_is() -> None:
    state = counts_of([[1, 0, 0, 2]])
    with pytest.raises(ValueError, match="left with -1 rows"):
        state.minus(counts_of([[0, 1, 0, 0]]))
    assert state.counts.tolist() == [[1, 0, 0, 2]]


def test_nothing() -> None:
    state = RowCounts(np.zeros((0, 4), dtype=np.int64))
    assert state.n_rows == 0
    assert state.tightest(np.ones(0, dtype=np.bool_)).tolist() == []
    empty = RowCounts(np.zeros((2, 4), dtype=np.int64))
    assert empty.tightest(np.ones(2, dtype=np.bool_), 1.0).tolist() == [-1, -1]
