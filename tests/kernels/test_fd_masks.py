"""Agree sets as functional dependencies see them: kernels against their references."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import fd_masks
from holdfast.core.rows.kernels.masks import full_mask, mask_of, n_words_for, positions_of
from reference import fd_masks as reference

Mask = frozenset[int]
WIDTHS = st.sampled_from([1, 3, 6, 64, 65, 130])


def packed(sets: list[Mask], width: int) -> np.ndarray:
    words = n_words_for(width)
    return np.array([mask_of(sorted(s), words) for s in sets], dtype=np.uint64).reshape(-1, words)


@st.composite
def families(draw: st.DrawFn, width: int, *, unique: bool = False, max_size: int = 12) -> list[Mask]:
    # A few columns, spread over all words, so that sets contain each other.
    used = sorted({draw(st.integers(0, width - 1)) for _ in range(5)})
    sets = st.frozensets(st.sampled_from(used))
    return draw(st.lists(sets, max_size=max_size, unique=unique))


@given(st.data(), WIDTHS)
def test_maximal_for(data: st.DataObject, width: int) -> None:
    masks = data.draw(families(width, unique=True, max_size=24))
    found = fd_masks.maximal_for(packed(masks, width), full_mask(width))
    assert [frozenset(positions_of(m)) for m in found] == reference.maximal_for(masks, width)


def test_maximal_for_more_than_a_stride() -> None:
    rng = np.random.default_rng(3)
    masks = list({frozenset(np.flatnonzero(rng.random(70) < p).tolist()) for p in rng.random(400)})
    found = fd_masks.maximal_for(packed(masks, 70), full_mask(70))
    assert [frozenset(positions_of(m)) for m in found] == reference.maximal_for(masks, 70)


@given(st.data(), WIDTHS)
def test_breaks(data: st.DataObject, width: int) -> None:
    masks, lhs = data.draw(families(width)), data.draw(families(width))
    rhs = [data.draw(st.frozensets(st.integers(0, width - 1), max_size=3)) for _ in lhs]
    found = fd_masks.breaks(packed(masks, width), packed(lhs, width), packed(rhs, width))
    assert found.tolist() == reference.breaks(masks, lhs, rhs)
