"""Implication of denial constraints: propagation equals plain propagation, circles a trial of all values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from holdfast.core.rows.kernels.masks import mask_of
from holdfast.denial.kernels import implication as kernel
from holdfast.denial.kernels.rewriting import STATE_OF
from reference import dc_forms as reference
from reference.dc_hitting_sets import OPERATORS, SYMMETRIC, Group, Predicates

Dcs = list[dict[int, str]]


def states_of(dcs: Dcs, n_groups: int) -> np.ndarray:
    states = np.zeros((len(dcs), n_groups), dtype=np.uint8)
    for i, dc in enumerate(dcs):
        for g, op in dc.items():
            states[i, g] = STATE_OF[OPERATORS.index(op)]
    return states


def image(dc: dict[int, str], n_groups: int) -> dict[int, str]:
    """Groups 0 and 1 are each other's mirror images, all others their own."""
    turned = {0: 1, 1: 0} if n_groups > 1 else {}
    return {turned.get(g, g): SYMMETRIC[op] for g, op in dc.items()}


@st.composite
def families(draw: st.DrawFn) -> tuple[int, Dcs, list[int], list[bool]]:
    n_groups = draw(st.integers(1, 5))
    one = st.dictionaries(st.integers(0, n_groups - 1), st.sampled_from(OPERATORS), max_size=3)
    dcs = draw(st.lists(one, max_size=25))
    order = draw(st.permutations(range(len(dcs))))
    axioms = draw(
        st.lists(st.sampled_from([False, False, False, True]), min_size=len(dcs), max_size=len(dcs))
    )
    return n_groups, dcs, list(order), axioms


@given(families(), st.sampled_from([1, 3, 1000]))
@settings(deadline=None, max_examples=300)
def test_propagation(family: tuple[int, Dcs, list[int], list[bool]], per_call: int) -> None:
    n_groups, dcs, order, axioms = family
    images = [image(dc, n_groups) for dc in dcs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "TESTS_PER_CALL", per_call)
        found = kernel.not_implied(
            states_of(dcs, n_groups),
            states_of(images, n_groups),
            np.array(order, dtype=np.int64),
            np.array(axioms, dtype=np.bool_),
        )
    expected = reference.not_implied(
        list(zip(dcs, images, strict=True)), n_groups, order, [i for i, a in enumerate(axioms) if a]
    )
    event(f"{len(expected)} of {len(dcs)} stay")
    assert np.flatnonzero(found).tolist() == expected


def test_more_literals_than_a_word_has() -> None:
    """A chain of 90 FDs implies the FD from its first column to its last; with one missing it does not."""
    n = 91
    chain = [{c: "=", c + 1: "!="} for c in range(n - 1)]
    for missing, stays in ((None, False), (40, True)):
        dcs = [dc for c, dc in enumerate(chain) if c != missing] + [{0: "=", n - 1: "!="}]
        states = states_of(dcs, n)
        images = states  # nothing but = and != of columns with themselves
        none = np.zeros(len(dcs), dtype=np.bool_)
        kept = kernel.not_implied(states, images, np.arange(len(dcs)), none)
        assert kept[:-1].all()
        assert kept[-1] == stays


CIRCLES: list[tuple[Group, ...]] = [
    ((0, 0, True), (1, 1, True), (0, 1, True), (1, 0, True)),
    ((0, 0, False), (1, 1, False), (0, 1, False), (1, 0, False)),
    ((0, 1, True), (2, 2, False), (1, 0, True)),
]


@given(st.sampled_from(CIRCLES), st.data())
@settings(deadline=None, max_examples=300)
def test_circles(groups: tuple[Group, ...], data: st.DataObject) -> None:
    space = Predicates(groups)
    chosen = data.draw(
        st.lists(st.frozensets(st.integers(0, len(space.predicates) - 1), max_size=6), max_size=6)
    )
    dcs = np.array([mask_of(dc, 1) for dc in chosen], dtype=np.uint64).reshape(-1, 1)
    found = kernel.contradictory(
        dcs,
        np.array([2 * groups[g][0] for g, _ in space.predicates]),
        np.array([2 * groups[g][1] + 1 for g, _ in space.predicates]),
        np.array([OPERATORS.index(op) for _, op in space.predicates]),
    )
    possible = reference.evidences(groups)
    expected = [not any(dc <= evidence for evidence in possible) for dc in chosen]
    event("some" if any(expected) else "none")
    assert found.tolist() == expected
