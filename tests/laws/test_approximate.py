"""Approximate covers: by definition from the rows, monotone in the error, exact at the threshold."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.core.cover import approximate as module
from holdfast.core.cover.approximate import ApproximateCover, allowed_pairs, approximate_cover
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, popcounts, positions_of
from laws.registry import pairs_of
from reference import agree_index as reference
from reference.keys import Combination, Row, minimal_uniques
from strategies import shapes

SHAPES = shapes(types=("int", "text", "float"), pool_size=3)
NULLS = st.sampled_from(["equal", "distinct"])
ERRORS = st.sampled_from([0.0, 0.01, 0.1, 0.2, 0.29, 1 / 3, 0.5, 1.0]) | st.floats(0, 1)


def evidence(rows: list[Row], n_columns: int, nulls: str) -> CountedEvidence:
    n_words = n_words_for(n_columns)
    pairs = pairs_of(dict(enumerate(rows)), nulls)
    masks = np.array([mask_of(s, n_words) for s in pairs], dtype=np.uint64).reshape(-1, n_words)
    counts = np.array([len(p) for p in pairs.values()], dtype=np.int64)
    return CountedEvidence.empty(n_columns).changed(masks, counts)[0]


def told(cover: ApproximateCover) -> dict[tuple[Combination, int], int]:
    found = [frozenset(positions_of(m)) for m in cover.masks]
    keyed = list(zip(found, cover.rhs.tolist(), strict=True))
    assert len(set(keyed)) == len(keyed) == len(cover)
    assert (cover.masks.dtype, cover.rhs.dtype, cover.violations.dtype) == (np.uint64, np.int32, np.int64)
    order = list(zip(cover.rhs.tolist(), popcounts(cover.masks).tolist(), cover.masks.tolist(), strict=True))
    assert order == sorted(order)
    return dict(zip(keyed, cover.violations.tolist(), strict=True))


def by_definition(
    rows: list[Row], n_columns: int, nulls: str, allowed: int, max_size: int
) -> dict[tuple[Combination, int], int]:
    """From the rows: all sets in order of size, those that contain one found before left out."""
    counts = {s: len(p) for s, p in pairs_of(dict(enumerate(rows)), nulls).items()}
    expected = {}
    for rhs in range(-1, n_columns):
        bound = max_size or n_columns
        for lhs, n in reference.minimal_within(counts, range(n_columns), rhs, allowed, bound).items():
            assert n == reference.violations_of_rows(rows, lhs, rhs, nulls)
            expected[lhs, rhs] = n
    return expected


@given(shape=SHAPES, nulls=NULLS, error=ERRORS, max_size=st.integers(0, 4), data=st.data())
@pytest.mark.parametrize("limit", [0, 20])
def test_cover_by_definition(
    limit: int, shape: Any, nulls: str, error: float, max_size: int, data: st.DataObject
) -> None:
    """Both ways, sums and search, under both NULL rules."""
    rows = data.draw(shape.rows(max_size=8))
    state = evidence(rows, shape.n_columns, nulls)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_COLUMNS_FOR_SUMS", limit)
        cover = approximate_cover(state, len(rows), error, max_size)
    allowed = allowed_pairs(error, len(rows))
    expected = by_definition(rows, shape.n_columns, nulls, allowed, max_size)
    event(f"{len(expected)} dependencies")
    assert told(cover) == expected


@given(shape=SHAPES, nulls=NULLS, data=st.data())
def test_error_zero_is_exact(shape: Any, nulls: str, data: st.DataObject) -> None:
    """Keys are those that the definition of a key gives; it knows of no pairs."""
    rows = data.draw(shape.rows(max_size=9))
    cover = told(approximate_cover(evidence(rows, shape.n_columns, nulls), len(rows), 0.0, 0))
    assert not any(cover.values())
    assert {x for x, a in cover if a < 0} == minimal_uniques(rows, shape.n_columns, nulls)


@given(shape=SHAPES, nulls=NULLS, errors=st.tuples(ERRORS, ERRORS), data=st.data())
def test_a_larger_error_only_shortens(
    shape: Any, nulls: str, errors: tuple[float, float], data: st.DataObject
) -> None:
    """What is within the smaller error contains something that is within the larger."""
    rows = data.draw(shape.rows(max_size=9))
    state = evidence(rows, shape.n_columns, nulls)
    strict, loose = (told(approximate_cover(state, len(rows), e, 0)) for e in sorted(errors))
    assert all(any(y <= x and a == b for y, b in loose) for x, a in strict)


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 10**4))
@example(200, 100, 29)
@example(10**6, 10**4, 1)
def test_allowed_pairs(n_rows: int, below: int, above: int) -> None:
    """The greatest number of pairs whose share is not above the error, as it was written."""
    share = Fraction(min(above, below), below)
    total = n_rows * (n_rows - 1) // 2
    allowed = allowed_pairs(float(share), n_rows)
    assert allowed <= share * total < allowed + 1


@pytest.mark.parametrize(
    ("n_columns", "error", "max_size"),
    [(21, 0.0, 2), (21, 0.05, 2), (21, 0.2, 3), (21, 0.7, 1), (70, 0.1, 1), (70, 0.1, 2)],
)
def test_wide_tables(n_columns: int, error: float, max_size: int) -> None:
    """More columns than sums are for; random rows with few values."""
    rng = np.random.default_rng(n_columns)
    rows = [tuple(row) for row in rng.integers(0, rng.integers(2, 6, n_columns), (7, n_columns)).tolist()]
    cover = told(approximate_cover(evidence(rows, n_columns, "equal"), len(rows), error, max_size))
    counts = {s: len(p) for s, p in pairs_of(dict(enumerate(rows)), "equal").items()}
    allowed = allowed_pairs(error, len(rows))
    some = (-1, 0, 7, n_columns - 1)  # the reference tries every set of columns
    expected = {
        (x, a): n
        for a in some
        for x, n in reference.minimal_within(counts, range(n_columns), a, allowed, max_size).items()
    }
    assert {key: n for key, n in cover.items() if key[1] in some} == expected
    assert {a for _, a in cover} <= set(range(-1, n_columns))


def test_arrays_and_back() -> None:
    rows: list[Row] = [(1, 2, 3), (1, 2, 4), (2, 2, 3), (2, 1, None)]
    cover = approximate_cover(evidence(rows, 3, "equal"), 4, 0.2, 0)
    arrays: dict[str, Any] = {name: array.reshape(-1) for name, array in cover.to_arrays().items()}
    assert told(ApproximateCover.from_arrays(arrays, 1)) == told(cover)
    assert len(cover) > 0


def test_no_columns_and_no_rows() -> None:
    assert told(approximate_cover(CountedEvidence.empty(0), 0, 0.1, 0)) == {(frozenset(), -1): 0}
    one = approximate_cover(CountedEvidence.empty(2), 1, 0.0, 0)
    assert told(one) == {(frozenset(), a): 0 for a in (-1, 0, 1)}
    wide = approximate_cover(CountedEvidence.empty(70), 1, 0.0, 3)
    assert told(wide) == {(frozenset(), a): 0 for a in range(-1, 70)}
