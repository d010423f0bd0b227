"""Sets of columns that are looked up among others, and among those inside them: as plain sets say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.words import column_sets
from holdfast.core.words.column_sets import MaskSet, masks_from, places_among

SETS = st.lists(st.frozensets(st.sampled_from([0, 1, 2, 3, 63, 64, 65, 130]), max_size=5), max_size=12)


@pytest.mark.parametrize("compared", [1, 1 << 20])
@given(known=SETS.map(lambda sets: list(dict.fromkeys(sets))), asked=SETS, wide=st.booleans())
def test_places_and_what_is_inside(
    known: list[frozenset[int]], asked: list[frozenset[int]], wide: bool, compared: int
) -> None:
    if not wide:
        known, asked = ([s & frozenset(range(64)) for s in sets] for sets in (known, asked))
        known = list(dict.fromkeys(known))
    n_words = 3 if wide else 1
    masks, others = (masks_from([sorted(s) for s in sets], n_words) for sets in (asked, known))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_sets, "COMPARED", compared)
        mask_set = MaskSet(others)
        places = [known.index(s) if s in known else -1 for s in asked]
        assert mask_set.places(masks).tolist() == places_among(masks, others).tolist() == places
        inside = mask_set.inside(masks)
    assert inside.dtype == np.bool_
    assert inside.tolist() == [any(k <= s for k in known) for s in asked]
