"""Counted evidence: a signed multiset of agree sets that answers for any set of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from holdfast.core.evidence import counted as module
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, positions_of
from laws.registry import pairs_of
from reference import agree_index as reference
from reference.keys import Combination
from strategies import shapes

WIDTH = 150  # three words
COLUMNS = [0, 1, 5, 63, 64, 149]
SETS = st.frozensets(st.sampled_from(COLUMNS))
COUNTS = st.dictionaries(SETS, st.integers(1, 5), max_size=10)
CHANGES = st.lists(st.tuples(SETS, st.integers(-3, 3)), max_size=12)


def family_of(sets: list[Combination]) -> np.ndarray:
    n_words = n_words_for(WIDTH)
    return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(len(sets), n_words)


def sets_of(masks: np.ndarray) -> set[Combination]:
    found = [frozenset(positions_of(m)) for m in masks]
    assert len(found) == len(set(found)), "masks are all different"
    return set(found)


def change(
    state: CountedEvidence, deltas: list[tuple[Combination, int]]
) -> tuple[CountedEvidence, np.ndarray, np.ndarray]:
    return state.changed(family_of([s for s, _ in deltas]), np.array([n for _, n in deltas], dtype=np.int64))


def evidence(counts: reference.Counts) -> CountedEvidence:
    return change(CountedEvidence.empty(WIDTH), list(counts.items()))[0]


def told(state: CountedEvidence) -> dict[Combination, int]:
    assert state.masks.shape == (len(state), n_words_for(WIDTH))
    assert state.counts.shape == (len(state),)
    assert state.n_pairs == state.counts.sum()
    sets_of(state.masks)
    return {frozenset(positions_of(m)): n for m, n in zip(state.masks, state.counts.tolist(), strict=True)}


def ask(state: CountedEvidence, counts: reference.Counts, lhs: list[Combination], rhs: list[int]) -> None:
    """The answers of the state are those by definition."""
    masks, columns = family_of(lhs), np.array(rhs, dtype=np.int64)
    expected = [reference.violations(counts, x, a) for x, a in zip(lhs, rhs, strict=True)]
    assert state.violations(masks, columns).tolist() == expected
    assert state.holds(masks, columns).tolist() == [n == 0 for n in expected]
    assert state.agreeing(masks).tolist() == [reference.violations(counts, x, -1) for x in lhs]


@given(COUNTS, st.lists(CHANGES, max_size=5), st.data())
def test_changes_add_up(counts: dict[Combination, int], changes: list[Any], data: st.DataObject) -> None:
    """After any changes, asked or not asked in between: the counts, what came and went, all answers."""
    state = evidence(counts)
    lhs = data.draw(st.lists(SETS, min_size=1, max_size=6))
    rhs = [data.draw(st.sampled_from(COLUMNS)) for _ in lhs]
    for deltas in changes:
        if data.draw(st.booleans()):
            ask(state, counts, lhs, rhs)
        if data.draw(st.booleans()):
            arrays = {name: array.reshape(-1) for name, array in state.to_arrays().items()}
            state = CountedEvidence.from_arrays(arrays, WIDTH)
        after, added, gone = reference.changed(counts, deltas)
        if any(n < 0 for n in after.values()):
            event("below zero")
            with pytest.raises(ValueError, match=r"would be left with -[0-9]+ pairs of rows"):
                change(state, deltas)
        else:
            new, new_added, new_gone = change(state, deltas)
            assert sets_of(new_added) == added
            assert sets_of(new_gone) == gone
            assert told(state) == counts, "the old state stays as it is"
            ask(state, counts, lhs, rhs)
            state, counts = new, after
        assert told(state) == counts
    ask(state, counts, lhs, rhs)


@given(COUNTS, CHANGES)
def test_in_any_order_and_in_any_parts(counts: dict[Combination, int], deltas: Any) -> None:
    positive = [(s, abs(n)) for s, n in deltas]
    expected, _, _ = reference.changed(counts, positive)
    assert told(change(evidence(counts), positive[::-1])[0]) == expected
    state = evidence(counts)
    for one in positive:
        state = change(state, [one])[0]
    assert told(state) == expected
    back, _, _ = change(state, [(s, -n) for s, n in positive])
    assert told(back) == counts


@given(COUNTS, st.data())
def test_read_only_arrays(counts: dict[Combination, int], data: st.DataObject) -> None:
    """What is loaded lies in memory maps; it is never written to."""
    arrays = evidence(counts).to_arrays()
    for array in arrays.values():
        array.flags.writeable = False
    state = CountedEvidence.from_arrays(arrays, WIDTH)
    grown, _, _ = change(state, [(frozenset({5}), 2), (frozenset({64}), 1)])
    assert told(state) == counts
    assert told(grown) == reference.changed(counts, [(frozenset({5}), 2), (frozenset({64}), 1)])[0]
    lhs = data.draw(SETS)
    ask(state, counts, [lhs], [0])
    ask(grown, told(grown), [lhs], [0])


@given(COUNTS)
def test_spare_slots_are_given_up(counts: dict[Combination, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_SPARE", 1)
        state = evidence(counts)
        ask(state, counts, [frozenset()], [0])
        many = [(frozenset({i}), 1) for i in range(100)]
        grown = change(state, many)[0]
        ask(grown, told(grown), [frozenset(), frozenset({1})], [1, 0])
        shrunk, _, gone = change(grown, [(s, -n) for s, n in many])
        assert told(shrunk) == counts
        assert sets_of(gone) == {s for s, _ in many} - counts.keys()
        small = change(shrunk, [(frozenset({7}), 1)])[0]
        assert told(small) == reference.changed(counts, [(frozenset({7}), 1)])[0]
        ask(small, told(small), [frozenset(), frozenset({7})], [1, 0])
        assert len(small._slot_counts) <= len(counts) + 1


def test_nothing_changed() -> None:
    state = evidence({frozenset({1}): 2})
    same, added, gone = change(state, [])
    assert same is state
    assert (len(added), len(gone)) == (0, 0)
    empty = CountedEvidence.empty(0)
    assert (len(empty), empty.n_pairs, empty.masks.shape) == (0, 0, (0, 1))
    assert empty.agreeing(np.zeros((1, 1), np.uint64)).tolist() == [0]


@given(
    shape=shapes(types=("int", "text", "float"), pool_size=3),
    nulls=st.sampled_from(["equal", "distinct"]),
    data=st.data(),
)
def test_g1_by_definition(shape: Any, nulls: str, data: st.DataObject) -> None:
    """Violating pairs of rows, counted from the rows: NULLs and duplicates among them."""
    rows = data.draw(shape.rows(max_size=9))
    n_words = n_words_for(shape.n_columns)
    pairs = pairs_of(dict(enumerate(rows)), nulls)
    masks = np.array([mask_of(s, n_words) for s in pairs], dtype=np.uint64).reshape(-1, n_words)
    state, _, _ = CountedEvidence.empty(shape.n_columns).changed(
        masks, np.array([len(p) for p in pairs.values()], dtype=np.int64)
    )
    assert state.n_pairs == len(rows) * (len(rows) - 1) // 2
    lhs = data.draw(st.frozensets(st.integers(0, shape.n_columns - 1)))
    asked = mask_of(lhs, n_words)[None, :]
    assert state.agreeing(asked).tolist() == [reference.violations_of_rows(rows, lhs, -1, nulls)]
    for rhs in range(shape.n_columns):
        expected = reference.violations_of_rows(rows, lhs, rhs, nulls)
        assert state.violations(asked, np.array([rhs])).tolist() == [expected]
        assert state.holds(asked, np.array([rhs])).tolist() == [expected == 0]
