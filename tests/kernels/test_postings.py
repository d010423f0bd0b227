"""Posting lists are counted and followed as plain Python does; what leads out of an array is told."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.rows.kernels import postings as kernel
from holdfast.core.rows.kernels.postings import UNSOUND, listed

kernel.warm_up()
SMALL = st.integers(-2, 9)


def plain(offsets: list[int], positions: list[int], codes: list[int], n_rows: int, limit: int) -> int:
    n = 0
    for c in codes:
        if not 0 <= c < len(offsets) - 1 or not 0 <= offsets[c] <= offsets[c + 1] <= len(positions):
            return UNSOUND
        n += offsets[c + 1] - offsets[c]
        if n > limit:
            return n
    rows = [p for c in codes for p in positions[offsets[c] : offsets[c + 1]]]
    return n if all(0 <= p < n_rows for p in rows) else UNSOUND


@given(st.lists(SMALL, max_size=6), st.lists(SMALL, max_size=9), st.lists(SMALL, max_size=6), SMALL, SMALL)
@example([0, 2, 3], [1, 0, 2], [0, 1, 0], 3, 9)
@example([0, 2, 3], [1, 0, 2], [0, 1], 3, 2)
@example([0, 2, 3], [1, 0, 3], [1], 3, 9)
def test_as_plain_python(
    offsets: list[int], positions: list[int], codes: list[int], n_rows: int, limit: int
) -> None:
    arrays = [np.array(values, np.int32) for values in (offsets, positions, codes)]
    found = listed(*arrays, n_rows, limit)
    assert found == plain(offsets, positions, codes, n_rows, limit)


@given(st.lists(st.lists(st.integers(0, 7), max_size=4), min_size=1, max_size=6), st.data())
def test_sound_lists_are_counted(lists: list[list[int]], data: st.DataObject) -> None:
    offsets = np.cumsum([0, *map(len, lists)]).astype(np.int32)
    positions = np.array([p for one in lists for p in one], np.int32)
    codes = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=8))
    found = listed(offsets, positions, np.array(codes, np.int32), 8, 1 << 20)
    assert found == sum(len(lists[c]) for c in codes)
