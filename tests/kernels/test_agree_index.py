"""Slots, index and searches over counted agree sets equal their plain reference, at one to four words."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import agree_index as kernel
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, positions_of
from reference import agree_index as reference
from reference.keys import Combination

WIDTHS = (1, 5, 64, 65, 130, 222)
Counts = dict[Combination, int]


def arrays_of(counts: Counts, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    masks = family_of(list(counts), n_columns)
    return masks, np.array(list(counts.values()), dtype=np.int64)


def family_of(sets: list[Combination], n_columns: int) -> np.ndarray:
    n_words = n_words_for(n_columns)
    return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(len(sets), n_words)


def sets_of(masks: np.ndarray) -> list[Combination]:
    return [frozenset(positions_of(m)) for m in masks]


@st.composite
def widths_and_columns(draw: st.DrawFn, max_columns: int = 7) -> tuple[int, list[int]]:
    """A width, and a few columns of it, so that inclusion and equality are common."""
    width = draw(st.sampled_from(WIDTHS))
    columns = draw(st.sets(st.integers(0, width - 1), min_size=1, max_size=max_columns))
    return width, sorted(columns)


def counted(columns: list[int], max_size: int = 12) -> st.SearchStrategy[Counts]:
    n_pairs = st.one_of(st.integers(1, 4), st.sampled_from([63, 64, 2**31, 2**40 + 5]))
    return st.dictionaries(st.frozensets(st.sampled_from(columns)), n_pairs, max_size=max_size)


def slots_of(counts: Counts, n_columns: int, room: int, free_first: bool) -> tuple[np.ndarray, np.ndarray]:
    """The agree sets in slots of which `room` are free, with what a former owner has left in them."""
    masks, pairs = arrays_of(counts, n_columns)
    litter = np.full((room, masks.shape[1]), 1, dtype=np.uint64)
    nothing = np.zeros(room, dtype=np.int64)
    parts = [(litter, nothing), (masks, pairs)] if free_first else [(masks, pairs), (litter, nothing)]
    return np.concatenate([m for m, _ in parts]), np.concatenate([n for _, n in parts])


@given(st.data(), widths_and_columns(), st.booleans())
def test_add_counts(data: st.DataObject, where: tuple[int, list[int]], free_first: bool) -> None:
    n_columns, columns = where
    counts = data.draw(counted(columns))
    some = st.frozensets(st.sampled_from(columns))
    if counts:
        some = st.one_of(some, st.sampled_from(list(counts)))
    change = [
        (s, data.draw(st.sampled_from([-1, 0, 1, 2, -counts.get(s, 0)]))) for s in data.draw(st.lists(some))
    ]
    masks, pairs = slots_of(counts, n_columns, len(change), free_first)
    table = kernel.table_of(masks, pairs, len(counts) + len(change))
    index = kernel.index_of(masks, pairs, n_columns)
    given_masks = family_of([s for s, _ in change], n_columns)
    touched = kernel.add_counts(
        masks, pairs, table, given_masks, np.array([n for _, n in change], dtype=np.int64)
    )
    after, added, gone = reference.changed(counts, change)
    if any(n < 0 for n in after.values()):
        event("below zero")
        assert pairs[touched.negative] == after[sets_of(masks)[touched.negative]] < 0
        return
    assert touched.negative == -1
    live = pairs > 0
    assert dict(zip(sets_of(masks[live]), pairs[live].tolist(), strict=True)) == after
    assert live.sum() == len(after)
    order = list(dict.fromkeys(s for s, _ in change))
    assert sets_of(masks[touched.added]) == [s for s in order if s in added]
    assert sets_of(masks[touched.gone]) == [s for s in order if s in gone]
    # The table finds what is there, and nothing else.
    again = kernel.add_counts(
        masks.copy(), pairs.copy(), table.copy(), masks[live], np.ones(live.sum(), np.int64)
    )
    assert len(again.added) == 0
    assert (table != np.uint64(2**64 - 1)).sum() == len(after)
    # The index handed down is the index built anew.
    for left, right in zip(
        kernel.reindexed(index, masks, pairs, touched.blocks),
        kernel.index_of(masks, pairs, n_columns),
        strict=True,
    ):
        assert left.tolist() == right.tolist()


def test_a_table_that_is_nearly_full() -> None:
    """Long chains, over the end of the table and around, survive what is taken out."""
    rng = np.random.default_rng(3)
    sets = [frozenset(np.flatnonzero(rng.random(12) < 0.5).tolist()) for _ in range(300)]
    counts = dict.fromkeys(sets[:60], 1)
    masks, pairs = slots_of(counts, 12, 200, True)
    table = np.full(64, np.uint64(2**64 - 1), dtype=np.uint64)
    kernel._fill(kernel.frozen(masks), kernel.frozen(pairs), table)
    for _ in range(200):
        free = 63 - len(counts)
        gone = [s for s in counts if rng.random() < 0.2]
        added = [s for s in dict.fromkeys(sets) if s not in counts][:free]
        change = [(s, -1) for s in gone] + [(s, 1) for s in added]
        masks_given = family_of([s for s, _ in change], 12)
        touched = kernel.add_counts(masks, pairs, table, masks_given, np.array([n for _, n in change]))
        counts, expected_added, expected_gone = reference.changed(counts, change)
        assert set(sets_of(masks[touched.added])) == expected_added == set(added)
        assert set(sets_of(masks[touched.gone])) == expected_gone == set(gone)
        rng.shuffle(sets)  # type: ignore[arg-type]


@given(st.data(), widths_and_columns(), st.integers(0, 70), st.booleans())
def test_queries(data: st.DataObject, where: tuple[int, list[int]], room: int, free_first: bool) -> None:
    n_columns, columns = where
    counts = data.draw(counted(columns))
    masks, pairs = slots_of(counts, n_columns, room, free_first)
    index = kernel.index_of(masks, pairs, n_columns)
    lhs = data.draw(st.lists(st.frozensets(st.sampled_from(columns)), max_size=8))
    rhs = [data.draw(st.sampled_from([-1, *columns])) for _ in lhs]
    asked = family_of(lhs, n_columns), np.array(rhs, dtype=np.int64)
    expected = [reference.violations(counts, x, a) for x, a in zip(lhs, rhs, strict=True)]
    assert kernel.violating_pairs(index, *asked).tolist() == expected
    assert kernel.any_violating(index, *asked).tolist() == [n > 0 for n in expected]


@pytest.mark.parametrize("n_columns", WIDTHS)
@pytest.mark.parametrize("n_sets", [0, 1, 63, 64, 65, 64 * kernel.TILE, 1000])
def test_index_of_many_blocks(n_columns: int, n_sets: int) -> None:
    """Bit for bit; free slots in between, a last block cut short, blocks of large counts."""
    rng = np.random.default_rng(n_columns + n_sets)
    bits = rng.random((n_sets, n_columns)) < rng.random(n_columns)
    masks = family_of([frozenset(np.flatnonzero(row).tolist()) for row in bits], n_columns)
    counts = rng.integers(0, 3, n_sets) * rng.choice([1, 100, 2**50], n_sets)
    index = kernel.index_of(masks, counts, n_columns)
    live = counts > 0

    def bitmap(flags: np.ndarray) -> list[int]:
        padded = np.zeros(64 * kernel.n_blocks_for(n_sets), dtype=np.bool_)
        padded[:n_sets] = flags
        return np.packbits(padded, bitorder="little").view(np.uint64).tolist()  # type: ignore[no-any-return]

    assert index.live.tolist() == bitmap(live)
    assert index.sizes.tolist() == (bits & live[:, None]).sum(axis=0).tolist()
    for c in range(n_columns):
        assert index.bitmaps[c].tolist() == bitmap(bits[:, c] & live)
    for j in range(64):
        assert index.planes[:, j].tolist() == bitmap((counts >> j) & 1 > 0)
    for b, depth in enumerate(index.depths.tolist()):
        assert depth == int(counts[64 * b : 64 * b + 64].max()).bit_length()


@given(st.integers(0, 8).flatmap(lambda n: st.tuples(st.just(n), counted(list(range(n)) or [0]))))
def test_superset_sums(case: tuple[int, Counts]) -> None:
    n_columns, counts = case
    counts = {s: n for s, n in counts.items() if all(c < n_columns for c in s)}
    masks, pairs = arrays_of(counts, n_columns)
    sums = kernel.superset_sums(masks, pairs, n_columns)
    assert sums.tolist() == reference.superset_sums(counts, n_columns)


@st.composite
def cases(draw: st.DrawFn, widths: tuple[int, ...]) -> tuple[int, Counts, int, int, int]:
    """(n_columns, counts, rhs, allowed, max_size): agree sets that differ in few columns.

    The other columns agree in all pairs, or in none, so every set of them is as good as any other.
    """
    n_columns = draw(st.sampled_from(widths))
    columns = sorted(draw(st.sets(st.integers(0, n_columns - 1), min_size=1, max_size=7)))
    always = frozenset(range(n_columns)) - frozenset(columns)
    pairs = st.integers(1, 6)
    counts = draw(st.dictionaries(st.frozensets(st.sampled_from(columns)), pairs, max_size=14))
    counts = {s | always: n for s, n in counts.items()}
    rhs = draw(st.sampled_from([-1, *columns]))
    allowed = draw(st.integers(0, sum(counts.values())))
    return n_columns, counts, rhs, allowed, draw(st.integers(1, 7))


@settings(max_examples=200)
@given(cases((3, 6, 7, 9)))
@example((3, {}, 0, 0, 1))
@example((3, {frozenset({0, 1, 2}): 3}, -1, 2, 3))
def test_minimal_by_sums(case: tuple[int, Counts, int, int, int]) -> None:
    n_columns, counts, rhs, allowed, max_size = case
    counts = {s & frozenset(range(n_columns)): n for s, n in counts.items()}
    sums = kernel.superset_sums(*arrays_of(counts, n_columns), n_columns)
    masks, violations = kernel.minimal_by_sums(sums, n_columns, rhs, allowed, max_size)
    expected = reference.minimal_within(counts, range(n_columns), rhs, allowed, max_size)
    event(f"{len(expected)} sets")
    assert masks[:, 0].tolist() == sorted(masks[:, 0].tolist())
    assert dict(zip(sets_of(masks), violations.tolist(), strict=True)) == expected
    assert len(masks) == len(expected)


@settings(max_examples=250)
@given(cases((3, 7, 64, 70, 140)))
@example((70, {frozenset(range(70)): 3}, -1, 2, 7))
@example((70, {frozenset(range(70)): 3}, -1, 3, 7))
def test_minimal_by_search(case: tuple[int, Counts, int, int, int]) -> None:
    n_columns, counts, rhs, allowed, max_size = case
    masks, pairs = arrays_of(counts, n_columns)
    index = kernel.index_of(masks, pairs, n_columns)
    found, violations = kernel.minimal_by_search(index, masks.shape[1], rhs, allowed, max_size)
    # Columns on which all pairs agree are in no minimal set.
    telling = [c for c in range(n_columns) if any(c not in s for s in counts)]
    expected = reference.minimal_within(counts, telling, rhs, allowed, max_size)
    event(f"{len(expected)} sets")
    assert dict(zip(sets_of(found), violations.tolist(), strict=True)) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("max_size", [1, 2, 3, 4, 12])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 0.4])
def test_search_equals_sums(share: float, max_size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks, hundreds of sets; interrupted at every turn, too."""
    rng = np.random.default_rng(7)
    n_columns = 12
    bits = rng.random((900, n_columns)) < rng.uniform(0.1, 0.95, n_columns)
    sets = dict.fromkeys(frozenset(np.flatnonzero(row).tolist()) for row in bits)
    counts = {s: int(rng.zipf(1.7)) % 1000 + 1 for s in sets}
    masks, pairs = arrays_of(counts, n_columns)
    index = kernel.index_of(masks, pairs, n_columns)
    sums = kernel.superset_sums(masks, pairs, n_columns)
    allowed = int(share * pairs.sum())
    for words_per_call in (1 << 27, 1):
        monkeypatch.setattr(kernel, "WORDS_PER_CALL", words_per_call)
        monkeypatch.setattr(kernel, "FIRST_CAPACITY", 1 if words_per_call == 1 else 1024)
        for rhs in range(-1, n_columns):
            expected, expected_violations = kernel.minimal_by_sums(sums, n_columns, rhs, allowed, max_size)
            found, violations = kernel.minimal_by_search(index, 1, rhs, allowed, max_size)
            order = np.argsort(found[:, 0])
            assert found[order].tolist() == expected.tolist()
            assert violations[order].tolist() == expected_violations.tolist()
