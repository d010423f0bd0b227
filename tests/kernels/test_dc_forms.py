"""Sentences in other languages than that of general DCs: equal to trying every set of predicates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from holdfast.denial.kernels import rewriting as kernel
from reference import dc_forms as reference
from reference.dc_hitting_sets import OPERATORS, Dc, Group, Predicates, covers

OUTCOMES = ["<", "=", ">", "null"]
SPACES: list[tuple[Group, ...]] = [
    ((0, 0, True),),
    ((0, 0, False), (1, 1, False), (2, 2, False)),
    ((0, 0, True), (1, 1, False)),
    ((0, 0, True), (1, 1, True)),
    ((0, 1, True), (1, 0, True)),
    ((0, 1, False), (2, 2, True), (1, 0, False)),
]


@cache
def predicates_of(groups: tuple[Group, ...]) -> Predicates:
    return Predicates(groups)


def states_of(space: Predicates, dcs: list[Dc]) -> np.ndarray:
    states = np.zeros((len(dcs), len(space.groups)), dtype=np.uint8)
    for row, dc in zip(states, dcs, strict=True):
        for i in dc:
            g, op = space.predicates[i]
            row[g] |= kernel.STATE_OF[OPERATORS.index(op)]
    return states


def told(space: Predicates, found: kernel.Sentences) -> list[tuple[int, ...]]:
    sets = [
        frozenset(i for i, (g, op) in enumerate(space.predicates) if row[g] >> OPERATORS.index(op) & 1)
        for row in found.operators.tolist()
    ]
    return reference.listed(space, sets)


@st.composite
def general_covers(draw: st.DrawFn) -> tuple[Predicates, list[Dc]]:
    space = predicates_of(draw(st.sampled_from(SPACES)))
    n = len(space.groups)
    outcomes = st.lists(st.sampled_from(OUTCOMES), min_size=n, max_size=n)
    evidences = [space.evidence(o) for o in draw(st.lists(outcomes, max_size=10))]
    return space, [frozenset(dc) for dc in covers(space, evidences, general=True, max_size=0)]


def sentences(
    space: Predicates, cover: list[Dc], language: kernel.Language, max_size: int = 0, limit: int | None = None
) -> kernel.Sentences:
    images = [space.mirrored(dc) for dc in cover]
    ordered = np.array([group[2] for group in space.groups])
    return kernel.sentences(
        states_of(space, cover), states_of(space, images), ordered, language, max_size, limit
    )


@given(general_covers(), st.integers(0, 4), st.sampled_from([1, 1 << 10]))
@settings(deadline=None, max_examples=200)
def test_sets_of_operators(given_: tuple[Predicates, list[Dc]], max_size: int, per_call: int) -> None:
    space, cover = given_
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "DCS_PER_CALL", per_call)
        found = sentences(space, cover, kernel.sets_of_operators(), max_size)
    expected = reference.set_minimal(space, cover, max_size)
    event(f"{len(expected)} from {len(cover)}")
    assert found.complete
    assert told(space, found) == expected
    assert len(found.operators) <= 2 * len(expected)  # each once, or it and its mirror image


@given(general_covers(), st.sets(st.sampled_from(["=", "!=", "<", "<="])))
@settings(deadline=None, max_examples=200)
def test_single_operators(given_: tuple[Predicates, list[Dc]], some: set[str]) -> None:
    space, cover = given_
    allowed = some | {{"<": ">", "<=": ">="}.get(op, op) for op in some}
    bits = sum(1 << OPERATORS.index(op) for op in allowed)
    found = sentences(space, cover, kernel.single_operators(bits))
    expected = reference.restricted(space, cover, allowed)
    event(f"{len(expected)} from {len(cover)}")
    assert told(space, found) == expected


@given(general_covers(), st.integers(0, 6))
@settings(deadline=None)
def test_a_limit_ends_the_search(given_: tuple[Predicates, list[Dc]], limit: int) -> None:
    space, cover = given_
    found = sentences(space, cover, kernel.sets_of_operators(), limit=limit)
    expected = reference.set_minimal(space, cover)
    assert set(told(space, found)) <= set(expected)
    assert len(told(space, found)) >= min(len(expected), limit + 1)
    if found.complete:
        assert told(space, found) == expected
