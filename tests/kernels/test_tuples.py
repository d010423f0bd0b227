"""Tuples are found where the plain-Python reference finds them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.rows.kernels import encode
from holdfast.inclusions.kernels import tuple_lookup as tuples
from reference import tuples as reference

N_VALUES = 3


@st.composite
def lookups(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    """(wanted, found, codes, columns, live, stop): some columns of a segment, in any order."""
    width = draw(st.integers(1, 4))
    n_columns = draw(st.integers(width, 6))
    columns = draw(st.permutations(range(n_columns)))[:width]
    n_rows, n_wanted = draw(st.integers(0, 10)), draw(st.integers(0, 10))

    def matrix(low: int, height: int, n: int) -> np.ndarray:
        row = st.lists(st.integers(low, N_VALUES), min_size=n, max_size=n)
        drawn = draw(st.lists(row, min_size=height, max_size=height))
        return np.array(drawn, dtype=np.int32).reshape(height, n)

    found = draw(st.lists(st.sampled_from([-1, -1, -2, 0, 7]), min_size=n_wanted, max_size=n_wanted))
    live = draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    return (
        matrix(-1, width, n_wanted),
        np.array(found, dtype=np.int64),
        matrix(0, n_columns, n_rows),
        np.array(columns, dtype=np.int32),
        np.array(live, dtype=np.bool_),
        draw(st.integers(0, 3)),
    )


def expected(given: tuple[np.ndarray, ...], stop: int) -> list[int]:
    wanted, found, codes, columns, live = given
    rows = [tuple(codes[columns, r].tolist()) if alive else None for r, alive in enumerate(live)]
    return reference.find([tuple(w) for w in wanted.T.tolist()], found.tolist(), rows, stop)


@given(lookups())
def test_find(drawn: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]) -> None:
    *given_arrays, stop = drawn
    wanted, found, codes, columns, live = given_arrays
    told = expected((wanted, found, codes, columns, live), stop)
    offsets, positions = encode.postings(codes[columns[0]], N_VALUES)
    out = found.copy()
    end = tuples.find(wanted, out, codes, columns, live, offsets, positions, stop)
    assert out[:end].tolist() == told
    assert out[end:].tolist() == found[end:].tolist()


@given(lookups())
def test_find_marked(drawn: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]) -> None:
    *given_arrays, stop = drawn
    wanted, found, codes, columns, live = given_arrays
    told = expected((wanted, found, codes, columns, live), stop)
    sizes = np.full(len(columns), N_VALUES, dtype=np.int64)
    seen = tuples.mark(codes, columns, sizes, live)
    assert len(seen) == N_VALUES ** len(columns)
    out = found.copy()
    end = tuples.find_marked(wanted, out, seen, sizes, stop)
    newly = [0 if old == tuples.OPEN and new >= 0 else new for old, new in zip(found, told, strict=False)]
    assert out[:end].tolist() == newly
    assert out[end:].tolist() == found[end:].tolist()


LARGEST = 2**31 - 2


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(st.tuples(*[st.sampled_from([0, 1, 2, LARGEST])] * width), max_size=12)
    )
)
def test_distinct_tuples(rows: list[tuple[int, ...]]) -> None:
    if not rows or len(rows[0]) == 1:  # one column is numbered by its codes, so they have to be small
        rows = [tuple(min(v, 3) for v in row) for row in rows] or [(0,)]
    found = tuples.distinct_tuples(np.array(rows, dtype=np.int32).T)
    assert sorted(found.tolist()) == [i for i, row in enumerate(rows) if rows.index(row) == i]


IDENTITIES = st.tuples(st.sampled_from([0, 1, 2**64 - 1]), st.sampled_from([0, 1, 2**32 - 1]))


@given(st.sets(IDENTITIES).map(sorted), st.lists(IDENTITIES, max_size=12))
def test_look_up(there: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> None:
    def arrays(identities: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        keys, checks = [i[0] for i in identities], [i[1] for i in identities]
        return np.array(keys, dtype=np.uint64), np.array(checks, dtype=np.uint32)

    assert tuples.look_up(*arrays(there), *arrays(wanted)).tolist() == reference.look_up(there, wanted)
