"""The cover: repaired under added and removed evidence it equals the cover from scratch; and the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.core.cover import cover as module
from holdfast.core.cover.cover import Cover
from holdfast.core.cover.dual import non_uniques_of
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, without
from laws.registry import arrays_of, pairs_of, sets_of
from reference import keys as oracle
from reference.keys import Combination
from strategies import Filled, filled

SMALL = [0, 1, 2, 3, 4]
WIDE = [0, 1, 62, 63, 64, 69]


def masks(sets: list[Combination] | set[Combination], width: int) -> np.ndarray:
    n_words = n_words_for(width)
    return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(len(sets), n_words)


@st.composite
def agree_sets(draw: st.DrawFn) -> tuple[int, list[Combination], list[Combination]]:
    """(columns, some agree sets, more of them). In wide tables all but a few columns agree always."""
    width = draw(st.sampled_from([5, 70]))
    free = frozenset(SMALL if width == 5 else WIDE)
    constant = frozenset(range(width)) - free
    sets = st.lists(st.frozensets(st.sampled_from(sorted(free))).map(lambda s: s | constant), max_size=12)
    return width, draw(sets), draw(sets)


BOUNDS = st.sampled_from([0, 0, 1, 2, 3])


@given(agree_sets(), BOUNDS, st.sampled_from([0, 2_000_000]))
@example((5, [], [frozenset()]), 0, 0)
@example((5, [], [frozenset(SMALL)]), 0, 0)
def test_repaired(case: tuple[int, list[Combination], list[Combination]], bound: int, limit: int) -> None:
    """Both ways in, edge by edge and from scratch, are the same."""
    width, old, new = case
    everything = masks([*old, *new], width)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "REPAIR_LIMIT", limit)
        found = Cover.of(masks(old, width), width, bound).repaired(masks(new, width), everything)
    expected = Cover.of(everything, width, bound)
    event(f"{len(expected)} sets")
    assert sets_of(found.masks) == sets_of(expected.masks)
    assert (found.n_columns, found.max_size) == (width, bound)


@given(agree_sets(), BOUNDS)
@example((5, [], [frozenset()]), 0)
def test_relaxed(case: tuple[int, list[Combination], list[Combination]], bound: int) -> None:
    width, kept, removed = case
    removed = [s for s in removed if s not in kept]
    before = Cover.of(masks([*kept, *removed], width), width, bound)
    found = before.relaxed(masks(removed, width), masks(kept, width))
    assert sets_of(found.masks) == sets_of(Cover.of(masks(kept, width), width, bound).masks)


def test_many_removed_at_once() -> None:
    """More than the eight edges that are removed one by one."""
    rng = np.random.default_rng(4)
    sets = {frozenset(rng.choice(9, size=rng.integers(3, 7), replace=False).tolist()) for _ in range(60)}
    ordered = sorted(sets, key=sorted)
    kept, removed = ordered[:20], ordered[20:]
    before = Cover.of(masks(ordered, 9), 9)
    after = before.relaxed(masks(removed, 9), masks(kept, 9))
    assert sets_of(after.masks) == sets_of(Cover.of(masks(kept, 9), 9).masks)
    again = after.repaired(masks(removed, 9), masks(ordered, 9))
    assert sets_of(again.masks) == sets_of(before.masks)


@given(filled(max_rows=9), st.sampled_from(["equal", "distinct"]), st.sampled_from([None, 1, 2]))
def test_the_cover_of_all_agree_sets_is_the_oracles(case: Filled, nulls: str, bound: int | None) -> None:
    n_columns = case.shape.n_columns
    pairs = pairs_of(dict(enumerate(case.rows)), nulls)
    cover = Cover.of(arrays_of(pairs, n_columns)[0], n_columns, bound or 0)
    assert sets_of(cover.masks) == oracle.minimal_uniques(case.rows, n_columns, nulls, bound)


@given(filled(max_rows=9), st.sampled_from(["equal", "distinct"]))
def test_duality(case: Filled, nulls: str) -> None:
    """The maximal non-uniques follow from the minimal uniques."""
    n_columns = case.shape.n_columns
    uniques = masks(oracle.minimal_uniques(case.rows, n_columns, nulls), n_columns)
    found = non_uniques_of(uniques, n_columns, len(case.rows))
    assert sets_of(found) == oracle.maximal_non_uniques(case.rows, n_columns, nulls)


@given(agree_sets())
def test_without(case: tuple[int, list[Combination], list[Combination]]) -> None:
    width, left, right = case
    assert without(masks(left, width), masks(right, width)).tolist() == [s not in right for s in left]
