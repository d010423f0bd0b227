"""Each mask kernel equals its plain reference, at one, two and three words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.core.rows.kernels import masks as kernel
from holdfast.core.rows.kernels.mask_lookup import indices_in
from reference import hitting_sets as reference

WIDTHS = (5, 64, 65, 130, 192)


def family_of(masks: list[int], n_words: int) -> kernel.Masks:
    """Python ints as a family of masks."""
    rows = [kernel.mask_of([c for c in range(64 * n_words) if mask >> c & 1], n_words) for mask in masks]
    return np.array(rows, dtype=np.uint64).reshape(len(masks), n_words)


@st.composite
def families(draw: st.DrawFn, n_families: int) -> tuple[int, tuple[list[int], ...]]:
    """`n_families` families of one width, over few columns, so that inclusion and equality are common."""
    width = draw(st.sampled_from(WIDTHS))
    columns = draw(st.lists(st.integers(0, width - 1), min_size=1, max_size=7, unique=True))
    background = draw(st.sampled_from([0, (1 << width) - 1]))
    mask = st.sets(st.sampled_from(columns)).map(lambda chosen: background ^ sum(1 << c for c in chosen))
    lists = st.lists(mask, max_size=12)
    return kernel.n_words_for(width), tuple(draw(lists) for _ in range(n_families))


@settings(deadline=None)
@given(families(1))
@example((1, ([],)))
@example((2, ([0, 0],)))
def test_extremes_counts_and_distinct(case: tuple[int, tuple[list[int]]]) -> None:
    n_words, (masks,) = case
    family = family_of(masks, n_words)
    assert kernel.popcounts(family).tolist() == [mask.bit_count() for mask in masks]
    assert kernel.maximal_masks(family).tolist() == reference.maximal(masks)
    assert kernel.minimal_masks(family).tolist() == reference.minimal(masks)
    first, inverse = kernel.unique_masks(family)
    assert (first.tolist(), inverse.tolist()) == reference.unique(masks)
    for n_bits in (0, 5, 64 * n_words):
        rows = kernel.transposed(family, n_bits)
        assert rows.shape == (n_bits, 1)
        assert [int(row[0]) for row in rows] == [
            sum((mask >> bit & 1) << i for i, mask in enumerate(masks)) for bit in range(n_bits)
        ]


@settings(deadline=None)
@given(families(2))
@example((1, ([0, 1], [])))
@example((1, ([], [0, 1])))
def test_inclusion(case: tuple[int, tuple[list[int], list[int]]]) -> None:
    n_words, (masks, others) = case
    family, other_family = family_of(masks, n_words), family_of(others, n_words)
    containers = reference.first_container(masks, others)
    assert kernel.first_container(family, other_family).tolist() == containers
    assert kernel.contained_in_any(family, other_family).tolist() == [j >= 0 for j in containers]
    different = list(dict.fromkeys(masks))
    indices = indices_in(family_of(different, n_words), other_family)
    assert indices.tolist() == [others.index(mask) if mask in others else -1 for mask in different]
    assert kernel.without(family, other_family).tolist() == [mask not in others for mask in masks]
    contained = reference.first_contained(masks, others)
    assert kernel.first_contained(family, other_family).tolist() == contained
    assert kernel.contains_any(family, other_family).tolist() == [j >= 0 for j in contained]


def test_transposing_twice_gives_the_masks() -> None:
    family = np.random.default_rng(3).integers(0, 1 << 63, (200, 3), dtype=np.uint64)
    rows = kernel.transposed(family, 190)
    assert rows.shape == (190, 4)
    mask_of_190 = np.array([(1 << 64) - 1, (1 << 64) - 1, (1 << 62) - 1], dtype=np.uint64)
    back = kernel.transposed(rows, 200)
    assert back.tolist() == (family & mask_of_190).tolist()


@pytest.mark.parametrize("width", WIDTHS)
def test_families_longer_than_a_stride(width: int) -> None:
    """Several strides of the vector scan, and a last one cut short."""
    rng = np.random.default_rng(width)
    n_words = kernel.n_words_for(width)
    masks = [int.from_bytes(rng.bytes(24), "little") & ((1 << width) - 1) for _ in range(300)]
    masks += [mask & int.from_bytes(rng.bytes(24), "little") for mask in masks[:150]]
    rng.shuffle(masks)
    family = family_of(masks, n_words)
    assert kernel.maximal_masks(family).tolist() == reference.maximal(masks)
    assert kernel.minimal_masks(family).tolist() == reference.minimal(masks)
    wholes = masks[:201]
    found = kernel.first_container(family, family_of(wholes, n_words)).tolist()
    assert found == reference.first_container(masks, wholes)
    found = kernel.first_contained(family, family_of(wholes, n_words)).tolist()
    assert found == reference.first_contained(masks, wholes)
    first, inverse = kernel.unique_masks(family)
    assert (first.tolist(), inverse.tolist()) == reference.unique(masks)


@given(st.integers(0, 200), st.data())
def test_positions_round_trip(n_columns: int, data: st.DataObject) -> None:
    n_words = kernel.n_words_for(n_columns)
    positions = data.draw(st.sets(st.integers(0, n_columns - 1))) if n_columns else set()
    mask = kernel.mask_of(positions, n_words)
    assert mask.dtype == np.uint64
    assert mask.flags.writeable
    assert mask.shape == (n_words,)
    assert kernel.positions_of(mask) == tuple(sorted(positions))
    assert kernel.positions_of(kernel.full_mask(n_columns)) == tuple(range(n_columns))


def test_other_layouts_give_the_same_answer() -> None:
    """Read-only, transposed and strided arrays are copied, not compiled for."""
    family = np.array([[1, 0], [3, 4], [3, 5], [8, 0]], dtype=np.uint64)
    expected = kernel.maximal_masks(family).tolist()
    read_only = family.copy()
    read_only.flags.writeable = False
    assert kernel.maximal_masks(read_only).tolist() == expected
    assert kernel.maximal_masks(np.asfortranarray(family)).tolist() == expected
    assert kernel.maximal_masks(np.repeat(family, 2, axis=0)[::2]).tolist() == expected
    assert kernel.first_container(read_only, read_only).tolist() == [0, 1, 2, 3]
