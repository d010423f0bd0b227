"""The cover kernel equals brute force, its repairs equal a fresh search, and duality holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from holdfast.core.cover.kernels import repair
from holdfast.core.cover.kernels import search as kernel
from holdfast.core.rows.kernels.masks import (
    Masks,
    full_mask,
    mask_of,
    minimal_masks,
    n_words_for,
    popcounts,
    positions_of,
)
from reference import hitting_sets as reference

WIDTHS = (8, 64, 65, 130, 200)
Edge = frozenset[int]


def family_of(sets: list[Edge], n_words: int) -> Masks:
    return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(len(sets), n_words)


def sets_of(family: Masks) -> list[Edge]:
    return [frozenset(positions_of(mask)) for mask in family]


@dataclass(frozen=True)
class Case:
    """Edges over few columns of a wide table, a mask to stay within, and a bound."""

    n_words: int
    edges: list[Edge]
    more_edges: list[Edge]
    within: Edge
    max_size: int

    @property
    def within_mask(self) -> Masks:
        return mask_of(self.within, self.n_words)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    width = draw(st.sampled_from(WIDTHS))
    columns = sorted(draw(st.sets(st.integers(0, width - 1), min_size=1, max_size=8)))
    smallest = min(len(columns), draw(st.integers(0, 3)))
    edge = st.frozensets(st.sampled_from(columns), min_size=smallest)
    edges = draw(st.lists(edge, max_size=10))
    more_edges = draw(st.lists(edge, max_size=5))
    within = draw(st.one_of(st.just(frozenset(columns)), st.frozensets(st.sampled_from(columns))))
    return Case(n_words_for(width), edges, more_edges, within, draw(st.integers(-1, 5)))


TRIANGLE = [frozenset({0, 1}), frozenset({1, 2}), frozenset({0, 2})]


@settings(deadline=None, max_examples=400)
@given(cases())
@example(Case(1, [], [], frozenset(), 0))
@example(Case(1, [frozenset()], [], frozenset({1}), 0))
@example(Case(2, [frozenset({3})], [], frozenset({70}), 0))
@example(Case(1, TRIANGLE, [], frozenset({0, 1, 2}), 1))
@example(Case(1, TRIANGLE, [], frozenset({0, 1, 2}), 2))
def test_search_equals_brute_force(case: Case) -> None:
    found = kernel.minimal_hitting_sets(family_of(case.edges, case.n_words), case.within_mask, case.max_size)
    assert found.dtype == np.uint64
    assert found.shape[1] == case.n_words
    expected = reference.hitting_sets(case.edges, case.within, case.max_size)
    event(f"{len(expected)} sets")
    assert len(found) == len(expected)
    assert set(sets_of(found)) == expected
    assert found.tolist() == sorted(found.tolist(), key=lambda m: (sum(w.bit_count() for w in m), m))


@settings(deadline=None, max_examples=400)
@given(cases())
@example(Case(1, [], TRIANGLE, frozenset({0, 1, 2}), 2))
@example(Case(1, [], [frozenset()], frozenset({0}), 0))
@example(Case(1, TRIANGLE, [], frozenset({0, 1, 2}), 0))
def test_repairs_equal_a_fresh_search(case: Case) -> None:
    old = family_of(case.edges, case.n_words)
    new = family_of(case.more_edges, case.n_words)
    both = np.concatenate([old, new])
    before = kernel.minimal_hitting_sets(old, case.within_mask, case.max_size)
    after = kernel.minimal_hitting_sets(both, case.within_mask, case.max_size)
    event(f"{len(before) - len(after)} sets fewer")
    added = repair.add_edges(before, new, case.within_mask, case.max_size)
    assert added.tolist() == after.tolist()
    removed = repair.remove_edges(after, old, new, case.within_mask, case.max_size)
    assert removed.tolist() == before.tolist()


@settings(deadline=None, max_examples=200)
@given(cases())
def test_duality(case: Case) -> None:
    """The minimal hitting sets of the minimal hitting sets are the minimal edges."""
    edges = family_of(case.edges, case.n_words)
    everything = full_mask(64 * case.n_words)
    cover = kernel.minimal_hitting_sets(edges, everything)
    back = kernel.minimal_hitting_sets(cover, everything)
    assert set(sets_of(back)) == set(sets_of(edges[minimal_masks(edges)]))
    assert len(back) == len(minimal_masks(edges))


def random_edges(rng: np.random.Generator, n_edges: int, n_columns: int, density: float) -> Masks:
    """Complements of random agree sets of which some columns agree more often than others."""
    rates = density * rng.uniform(0.5, 1.5, n_columns)
    bits = np.zeros((n_edges, 64 * n_words_for(n_columns)), dtype=bool)
    bits[:, :n_columns] = rng.random((n_edges, n_columns)) < rates
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint64)


@pytest.mark.parametrize(("n_columns", "n_edges"), [(18, 150), (70, 8), (140, 5)])
@pytest.mark.parametrize("max_size", [0, 2, 3, 4])
def test_larger_families(
    n_columns: int, n_edges: int, max_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several words of edges, hundreds to thousands of sets; laws instead of brute force."""
    rng = np.random.default_rng(n_columns)
    everything = full_mask(n_columns)
    edges = random_edges(rng, n_edges, n_columns, 0.4 if n_columns < 64 else 0.05)
    edges = edges[popcounts(edges) > 0]
    cover = kernel.minimal_hitting_sets(edges, everything, max_size)
    assert len(cover) > 0 or max_size > 0

    unbounded = kernel.minimal_hitting_sets(edges, everything)
    bounded = unbounded[popcounts(unbounded) <= max_size] if max_size else unbounded
    assert cover.tolist() == bounded.tolist()
    hit = (cover[:, None, :] & edges[None, :, :]).any(axis=2)
    assert hit.all()

    half = len(edges) // 2
    no_sets = kernel.minimal_hitting_sets(edges[:0], everything, max_size)
    assert repair.add_edges(no_sets, edges, everything, max_size).tolist() == cover.tolist()
    part = kernel.minimal_hitting_sets(edges[:half], everything, max_size)
    assert repair.add_edges(part, edges[half:], everything, max_size).tolist() == cover.tolist()
    for limit in (0, 1 << 10):  # Edges that leave too much beside them, and little.
        monkeypatch.setattr(repair, "MAX_REMAINDERS", limit)
        monkeypatch.setattr(repair, "THREAD_SETS", limit)
        back = repair.remove_edges(cover, edges[:half], edges[half:], everything, max_size)
        assert back.tolist() == part.tolist()


def test_search_resumes_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps and room for one set at a time give the same cover."""
    edges = random_edges(np.random.default_rng(5), 40, 12, 0.4)
    edges = edges[popcounts(edges) > 0]
    expected = kernel.minimal_hitting_sets(edges, full_mask(12)).tolist()
    monkeypatch.setattr(kernel, "LOOKS_PER_CALL", 1)
    monkeypatch.setattr(kernel, "FIRST_CAPACITY", 1)
    assert kernel.minimal_hitting_sets(edges, full_mask(12)).tolist() == expected
    assert len(expected) > 10
