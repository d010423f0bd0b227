"""Approximate denial constraints equal brute force, and the exact ones at an allowance of 0."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from holdfast.core.cover.kernels import within as kernel
from holdfast.core.cover.kernels.search import minimal_dcs
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.rows.kernels.masks import Indices, Masks, mask_of, n_words_for, popcounts, positions_of
from reference import approximate_dcs as reference
from reference.dc_hitting_sets import OPERATORS, Dc, Group, Predicates

ORDERED = (0, 0, True)
UNORDERED = (1, 1, False)
ACROSS = [(2, 3, True), (3, 2, True)]
SPACES = [
    [ORDERED],
    [UNORDERED, (4, 4, False), (5, 5, False)],
    [ORDERED, UNORDERED],
    [ORDERED, (6, 6, True)],
    [ORDERED, UNORDERED, (6, 6, True), (4, 4, False)],
    [(7, 7, True), ORDERED, (6, 6, True)],
    ACROSS,
    [UNORDERED, *ACROSS],
    [*ACROSS, (2, 2, True), (3, 3, True)],
    [(2, 3, False), ORDERED, (3, 2, False), UNORDERED],
]
OUTCOMES = ["<", "=", ">", "null"]


def space_of(predicates: Predicates) -> Space:
    return Space(
        np.array([g for g, _ in predicates.predicates], dtype=np.int32),
        np.array([OPERATORS.index(op) for _, op in predicates.predicates], dtype=np.int32),
        np.array(predicates.mirror, dtype=np.int32),
        general=True,
    )


def arrays_of(predicates: Predicates, counts: Counter[Dc]) -> tuple[Masks, Indices]:
    n_words = n_words_for(len(predicates.predicates))
    masks = np.array([mask_of(s, n_words) for s in counts], dtype=np.uint64).reshape(len(counts), n_words)
    return masks, np.array(list(counts.values()), dtype=np.int64)


def told(dcs: Masks, violations: Indices) -> dict[tuple[int, ...], int]:
    assert dcs.dtype == np.uint64
    assert violations.dtype == np.int64
    assert dcs.tolist() == sorted(dcs.tolist(), key=lambda m: (sum(w.bit_count() for w in m), m))
    found = dict(zip(map(positions_of, dcs), violations.tolist(), strict=True))
    assert len(found) == len(dcs)
    return found


@dataclass(frozen=True)
class Case:
    """Outcomes per group of unordered pairs of rows, each given some times."""

    groups: list[Group]
    pairs: list[tuple[list[str], int]]
    allowed: int
    max_size: int

    @property
    def predicates(self) -> Predicates:
        return predicates_of(tuple(self.groups))

    @property
    def counts(self) -> Counter[Dc]:
        every = [outcomes for outcomes, times in self.pairs for _ in range(times)]
        return reference.counted(self.predicates, every)


@cache
def predicates_of(groups: tuple[Group, ...]) -> Predicates:
    return Predicates(groups)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    groups = draw(st.sampled_from(SPACES))
    outcomes = st.lists(st.sampled_from(OUTCOMES), min_size=len(groups), max_size=len(groups))
    # Three outcomes are more often alike than four.
    outcomes |= st.lists(st.sampled_from(OUTCOMES[:3]), min_size=len(groups), max_size=len(groups))
    pairs = draw(st.lists(st.tuples(outcomes, st.sampled_from([1, 1, 1, 2, 3, 9])), max_size=16))
    n_pairs = 2 * sum(times for _, times in pairs)
    allowed = draw(st.integers(0, 6) | st.integers(0, n_pairs))
    return Case(groups, pairs, allowed, draw(st.integers(-1, 4)))


def everywhere(outcome: str, n: int) -> list[tuple[list[str], int]]:
    return [([outcome], n)]


@settings(max_examples=300)
@given(cases())
@example(Case([ORDERED], [], 0, 0))
@example(Case([ORDERED], everywhere("<", 3), 5, 0))
@example(Case([ORDERED], everywhere("<", 3), 6, 0))
@example(Case([ORDERED], everywhere("=", 3), 5, 1))
@example(Case([ORDERED], everywhere("null", 1) + everywhere("=", 1), 1, 0))
@example(Case([ORDERED], everywhere("<", 2) + everywhere("=", 1), 2, 1))
@example(Case([ORDERED, UNORDERED], [(["<", "="], 1), (["=", "<"], 2)], 1, 0))
def test_search_equals_brute_force(case: Case) -> None:
    predicates, counts = case.predicates, case.counts
    masks, numbers = arrays_of(predicates, counts)
    found = kernel.minimal_dcs_within(masks, numbers, space_of(predicates), case.allowed, case.max_size)
    expected = reference.within(predicates, counts, case.allowed, case.max_size)
    event(f"{len(expected)} DCs")
    event("some with violations" if any(expected.values()) else "none with violations")
    assert told(*found) == expected


@settings(max_examples=200)
@given(cases())
def test_nothing_allowed_is_exact(case: Case) -> None:
    masks, numbers = arrays_of(case.predicates, case.counts)
    space = space_of(case.predicates)
    dcs, violations = kernel.minimal_dcs_within(masks, numbers, space, 0, case.max_size)
    assert dcs.tolist() == minimal_dcs(masks, space, case.max_size).tolist()
    assert not violations.any()


@given(cases(), st.randoms(use_true_random=False))
def test_order_of_evidence_is_no_matter(case: Case, random: Random) -> None:
    masks, numbers = arrays_of(case.predicates, case.counts)
    space = space_of(case.predicates)
    order = list(range(len(masks)))
    random.shuffle(order)
    one = kernel.minimal_dcs_within(masks, numbers, space, case.allowed)
    other = kernel.minimal_dcs_within(
        masks[order], numbers[order], space._replace(general=False), case.allowed
    )
    assert [a.tolist() for a in one] == [a.tolist() for a in other]


def table_counts(seed: int, n_rows: int, groups: list[Group]) -> tuple[Predicates, Counter[Dc]]:
    """The evidence of all pairs of some random rows, many ties, some NULLs."""
    rng = np.random.default_rng(seed)
    n_columns = 1 + max(max(a, b) for a, b, _ in groups)
    values = np.minimum(rng.integers(-1, 6, size=(n_rows, n_columns)), rng.integers(1, 6, n_columns)).tolist()
    predicates = Predicates(groups)

    def outcome(a: int, b: int) -> str:
        if a == b:
            return "="
        if -1 in (a, b):
            return "null"
        return "<" if a < b else ">"

    pairs = [[outcome(t[a], s[b]) for a, b, _ in groups] for t, s in combinations(values, 2)]
    return predicates, reference.counted(predicates, pairs)


NARROW = [(0, 0, True), (1, 1, True), (2, 2, False), (3, 3, False), (0, 1, True), (1, 0, True)]
# Over 64 loose predicates, and some of them in the first word with their mirror images in the second.
WIDE = [(0, 24, True), *((c, c, c % 2 == 0) for c in range(25)), (24, 0, True)]


@pytest.mark.parametrize("allowed", [0, 1, 20, 300, 1500])
def test_a_table(allowed: int) -> None:
    """All pairs of 50 rows: lists long enough to be summed up by bytes, against brute force."""
    predicates, counts = table_counts(7, 50, NARROW)
    masks, numbers = arrays_of(predicates, counts)
    assert len(masks) > kernel.MIN_FOR_BYTES
    expected = reference.within(predicates, counts, allowed, 0)
    for max_size in range(6):
        found = kernel.minimal_dcs_within(masks, numbers, space_of(predicates), allowed, max_size)
        assert told(*found) == {
            dc: n for dc, n in expected.items() if max_size in (0, max(max_size, len(dc)))
        }


@pytest.mark.parametrize(("allowed", "max_size"), [(0, 2), (60, 1), (5, 2), (60, 2), (200, 2), (200, 0)])
def test_two_words(allowed: int, max_size: int) -> None:
    """Of up to two predicates, all are tried; of more, each one found is looked at."""
    predicates, counts = table_counts(11, 24, WIDE)
    masks, numbers = arrays_of(predicates, counts)
    space = space_of(predicates)
    found = told(*kernel.minimal_dcs_within(masks, numbers, space, allowed, max_size))

    @cache
    def violations(dc: Dc) -> int:
        return reference.violations(counts, dc)

    assert found
    for dc, n in found.items():
        assert n == violations(frozenset(dc)) <= allowed
        assert all(violations(other) > allowed for other in predicates.looser(frozenset(dc)))
        assert dc <= tuple(sorted(predicates.mirrored(frozenset(dc))))
        assert max_size <= 0 or len(dc) <= max_size
    numbered = range(len(predicates.predicates))
    small = [frozenset(dc) for size in range(min(max_size, 2) + 1) for dc in combinations(numbered, size)]
    for written in small:
        if (
            len({predicates.predicates[i][0] for i in written}) < len(written)
            or violations(written) > allowed
        ):
            continue
        if all(violations(other) > allowed for other in predicates.looser(written)):
            image = predicates.mirrored(written)
            assert min(tuple(sorted(written)), tuple(sorted(image))) in found


def test_search_resumes_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks for one vertex and room for few sets at a time give the same DCs."""
    predicates, counts = table_counts(3, 30, NARROW)
    masks, numbers = arrays_of(predicates, counts)
    space = space_of(predicates)
    expected = told(*kernel.minimal_dcs_within(masks, numbers, space, 40))
    calls = []
    search = kernel._search

    def counting(*arguments: Any) -> bool:
        calls.append(1)
        ended: bool = search(*arguments)
        return ended

    monkeypatch.setattr(kernel, "_search", counting)
    monkeypatch.setattr(kernel, "LOOKS_PER_CALL", 1)
    monkeypatch.setattr(kernel, "FIRST_CAPACITY", 0)
    assert told(*kernel.minimal_dcs_within(masks, numbers, space, 40)) == expected
    assert len(calls) > len(expected) > 100


def test_mirror_images_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    predicates, counts = table_counts(5, 40, NARROW)
    masks, numbers = arrays_of(predicates, counts)
    searched: list[int] = []
    search = kernel._searched

    def counting(*arguments: Any) -> tuple[Masks, Indices]:
        found = search(*arguments)
        searched.append(len(found[0]))
        return found

    monkeypatch.setattr(kernel, "_searched", counting)
    listed = [
        len(kernel.minimal_dcs_within(masks, numbers, space_of(predicates), n)[0]) for n in (0, 30, 300)
    ]
    assert searched == listed
    assert min(listed) > 50


def test_one_direction_alone_is_an_error() -> None:
    predicates, counts = table_counts(1, 6, NARROW)
    masks, numbers = arrays_of(predicates, counts)
    space = space_of(predicates)
    images = {mask: predicates.mirrored(mask) for mask in counts}
    one_sided = next(i for i, mask in enumerate(counts) if images[mask] != mask)
    kept = np.arange(len(masks)) != one_sided
    with pytest.raises(ValueError, match="both directions"):
        kernel.minimal_dcs_within(masks[kept], numbers[kept], space, 0)
    with pytest.raises(ValueError, match="both directions"):
        kernel.minimal_dcs_within(masks, numbers + ~kept, space, 0)
    twice = np.concatenate([masks, masks]), np.concatenate([numbers, numbers])
    with pytest.raises(ValueError, match="each counted once"):
        kernel.minimal_dcs_within(*twice, space, 0)


def test_no_predicates() -> None:
    nothing = np.empty(0, dtype=np.int32)
    space = Space(nothing, nothing, nothing, general=True)
    masks = np.zeros((1, 1), dtype=np.uint64)
    for allowed, expected in ((1, []), (2, [[0]])):
        dcs, violations = kernel.minimal_dcs_within(masks, np.array([2]), space, allowed)
        assert (dcs.tolist(), violations.tolist()) == (expected, [2] * len(expected))
    assert popcounts(kernel.minimal_dcs_within(masks[:0], np.array([], np.int64), space, 0)[0]).tolist() == [
        0
    ]
