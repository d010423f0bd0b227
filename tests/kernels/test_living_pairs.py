"""Witnesses without the pairs of deleted rows, against the definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels.living_pairs import living

NOTHING = (-1, -1)
IDS = st.integers(0, 8) | st.integers(1 << 40, (1 << 40) + 3)
PAIRS = st.tuples(IDS, IDS) | st.just(NOTHING)


@given(st.lists(st.lists(PAIRS, min_size=3, max_size=3), max_size=8), st.lists(IDS, max_size=5))
def test_pairs_of_rows_that_go(witnesses: list[list[tuple[int, int]]], row_ids: list[int]) -> None:
    there = np.array(witnesses, dtype=np.int64).reshape(-1, 3, 2)
    at, left = living(there, np.array(row_ids, dtype=np.int64))
    expected = {}
    for i, some in enumerate(witnesses):
        alive = [pair for pair in some if pair != NOTHING and not set(pair) & set(row_ids)]
        if any(set(pair) & set(row_ids) for pair in some):
            expected[i] = [*alive, *[NOTHING] * (3 - len(alive))]
    assert at.tolist() == list(expected)
    assert [list(map(tuple, some)) for some in left.tolist()] == list(expected.values())
    assert there.reshape(-1, 3, 2).tolist() == [list(map(list, some)) for some in witnesses]
