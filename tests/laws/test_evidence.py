"""Witnessed evidence: merging is a union, witnesses are real pairs, dead rows take theirs along."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence import witnessed as module
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.witnessed import WitnessedEvidence
from holdfast.core.rows.kernels.masks import n_words_for
from laws.registry import Pairs, arrays_of, sets_of
from reference.hitting_sets import maximal
from reference.keys import Combination

WIDTH = 70  # two words
COLUMNS = [0, 1, 5, 63, 64, 69]
PAIR = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda p: p[0] != p[1])
# Mask -> pairs; here any pair may have any mask, which no table would allow, but no law forbids.
PAIRS = st.dictionaries(
    st.frozensets(st.sampled_from(COLUMNS)), st.lists(PAIR, min_size=1, max_size=6, unique=True), max_size=8
)


def evidence(*parts: Pairs) -> WitnessedEvidence:
    found = WitnessedEvidence.empty(n_words_for(WIDTH), WITNESSES)
    for part in parts:
        found = found.merged(*arrays_of(part, WIDTH))
    return found


def told(state: WitnessedEvidence) -> dict[Combination, set[frozenset[int]]]:
    """Mask -> witnesses; checks that they stand in front, each once, and the rest is -1."""
    assert state.masks.shape == (len(state), n_words_for(WIDTH))
    assert state.witnesses.shape == (len(state), WITNESSES, 2)
    sets_of(state.masks)  # all different
    found = {}
    for mask, witnesses in zip(state.masks, state.witnesses.tolist(), strict=True):
        real = [frozenset(p) for p in witnesses if p[0] >= 0]
        assert all(p == [-1, -1] for p in witnesses[len(real) :])
        assert len(set(real)) == len(real)
        [columns] = sets_of(mask[None, :])
        found[columns] = set(real)
    return found


def handed_in(*parts: Pairs) -> dict[Combination, set[frozenset[int]]]:
    """Everything that was merged, limited as the arrays are limited."""
    found: dict[Combination, set[frozenset[int]]] = {}
    for part in parts:
        for columns, pairs in part.items():
            found.setdefault(columns, set()).update(frozenset(p) for p in pairs[:WITNESSES])
    return found


@given(st.lists(PAIRS, max_size=4))
def test_merged_is_the_union(parts: list[Pairs]) -> None:
    found, everything = told(evidence(*parts)), handed_in(*parts)
    assert found.keys() == everything.keys()
    for columns, pairs in found.items():
        assert pairs <= everything[columns]
        assert len(pairs) == min(WITNESSES, len(everything[columns])), (
            "no witness is lost while there is room"
        )


@given(st.lists(PAIRS, min_size=1, max_size=4), st.booleans())
def test_lots_joined_one_by_one_are_the_lots_joined_at_once(parts: list[Pairs], directed: bool) -> None:
    lots = [arrays_of(part, WIDTH) for part in parts]
    empty = WitnessedEvidence.empty(n_words_for(WIDTH), WITNESSES)
    masks, witnesses = empty.masks, empty.witnesses
    for lot in lots:
        masks, witnesses, _ = module.joined(masks, witnesses, *lot, directed=directed)
    everything = (np.concatenate(arrays) for arrays in zip(*lots, strict=True))
    at_once = module.joined(empty.masks, empty.witnesses, *everything, directed=directed)
    np.testing.assert_array_equal(masks, at_once[0])
    np.testing.assert_array_equal(witnesses, at_once[1])
    again, same, changed = module.joined(masks, witnesses, *at_once[:2], directed=directed)
    assert again is masks, "nothing is new"
    assert same is witnesses
    assert not len(changed)


@given(PAIRS, PAIRS)
def test_joined_says_what_has_changed(a: Pairs, b: Pairs) -> None:
    empty = WitnessedEvidence.empty(n_words_for(WIDTH), WITNESSES)
    masks, witnesses, _ = module.joined(empty.masks, empty.witnesses, *arrays_of(a, WIDTH))
    before = told(WitnessedEvidence(masks, witnesses))
    masks, witnesses, changed = module.joined(masks, witnesses, *arrays_of(b, WIDTH))
    after = told(WitnessedEvidence(masks, witnesses))
    assert sets_of(changed) == {columns for columns in after if after[columns] != before.get(columns)}


@given(PAIRS, PAIRS, PAIRS)
def test_merged_in_any_order(a: Pairs, b: Pairs, c: Pairs) -> None:
    masks = [sets_of(evidence(*order).masks) for order in ([a, b, c], [c, b, a], [b, a, c])]
    inner = evidence(b, c)
    nested = evidence(a).merged(inner.masks, inner.witnesses)
    assert masks[0] == masks[1] == masks[2] == sets_of(nested.masks)


@given(PAIRS)
def test_merging_twice_is_merging_once(part: Pairs) -> None:
    assert told(evidence(part, part)) == told(evidence(part))


@given(PAIRS)
def test_maximal(part: Pairs) -> None:
    bits = [sum(1 << c for c in columns) for columns in part]
    expected = {columns for i, columns in enumerate(part) if i in maximal(bits)}
    assert sets_of(evidence(part).maximal) == expected


@given(PAIRS, st.sets(st.integers(0, 12)))
def test_without_rows(part: Pairs, dead: set[int]) -> None:
    before = evidence(part)
    after, orphans = before.without_rows(np.array(sorted(dead), dtype=np.int64))
    expected = {columns: {p for p in pairs if not p & dead} for columns, pairs in told(before).items()}
    assert told(after) == {columns: pairs for columns, pairs in expected.items() if pairs}
    gone = {columns for columns, pairs in expected.items() if not pairs}
    assert sets_of(orphans) == gone & sets_of(before.maximal), "orphans are maximal masks without a witness"


@given(PAIRS)
def test_arrays_and_back(part: Pairs) -> None:
    state = evidence(part)
    arrays: dict[str, Any] = {name: array.reshape(-1) for name, array in state.to_arrays().items()}
    back = WitnessedEvidence.from_arrays(arrays, n_words_for(WIDTH), WITNESSES)
    assert told(back) == told(state)


@given(PAIRS, PAIRS)
def test_the_reserve_is_cut_but_nothing_maximal(a: Pairs, b: Pairs) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RESERVE", 2)
        small = evidence(a, b)
    whole = evidence(a, b)
    assert sets_of(small.maximal) == sets_of(whole.maximal)
    assert sets_of(small.masks) <= sets_of(whole.masks)
    assert len(small) <= len(whole.maximal) + 2
