"""Implication of denial constraints: propagation equals plain propagation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from holdfast.denial.kernels import implication as kernel
from holdfast.denial.kernels.rewriting import STATE_OF
from reference import dc_forms as reference
from reference.dc_hitting_sets import OPERATORS, SYMMETRIC

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
def families(draw: st.DrawFn) -> tuple[int, Dcs, list[int], list[str]]:
    n_groups = draw(st.integers(1, 5))
    one = st.dictionaries(st.integers(0, n_groups - 1), st.sampled_from(OPERATORS), max_size=3)
    dcs = draw(st.lists(one, max_size=25))
    order = draw(st.permutations(range(len(dcs))))
    parts = st.sampled_from(["rule", "rule", "rule", "axiom", "asked"])
    return n_groups, dcs, list(order), draw(st.lists(parts, min_size=len(dcs), max_size=len(dcs)))


@given(families(), st.sampled_from([1, 3, 1000]), st.sets(st.integers(0, 4)))
@settings(deadline=None, max_examples=300)
def test_propagation(
    family: tuple[int, Dcs, list[int], list[str]], per_call: int, without_null: set[int]
) -> None:
    n_groups, dcs, order, parts = family
    images = [image(dc, n_groups) for dc in dcs]
    # A group and its mirror image have NULLs in the same pairs.
    filled = {g for g in without_null if g < n_groups and (g > 1 or n_groups == 1)}
    filled |= {0, 1} if without_null & {0, 1} and n_groups > 1 else set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "TESTS_PER_CALL", per_call)
        found = kernel.implied_by(
            states_of(dcs, n_groups),
            states_of(images, n_groups),
            np.array(order, dtype=np.int64),
            np.array([p == "axiom" for p in parts], dtype=np.bool_),
            np.array([p != "asked" for p in parts], dtype=np.bool_),
            np.array([g in filled for g in range(n_groups)], dtype=np.bool_),
        )
    axioms, asked = ([i for i, p in enumerate(parts) if p == part] for part in ("axiom", "asked"))
    expected = reference.not_implied(
        list(zip(dcs, images, strict=True)), n_groups, order, axioms, asked, filled
    )
    event(f"{len(expected)} of {len(dcs)} stay")
    assert np.flatnonzero(found < 0).tolist() == expected
    assert all(found[i] == i for i in axioms)
    # What implied another one is none of those that were only asked.
    assert all(i == by or parts[by] != "asked" for i, by in enumerate(found.tolist()) if by >= 0)


def test_more_literals_than_a_word_has() -> None:
    """A chain of 90 FDs implies the FD from its first column to its last; with one missing it does not."""
    n = 91
    chain = [{c: "=", c + 1: "!="} for c in range(n - 1)]
    for missing, stays in ((None, False), (40, True)):
        dcs = [dc for c, dc in enumerate(chain) if c != missing] + [{0: "=", n - 1: "!="}]
        states = states_of(dcs, n)
        images = states  # nothing but = and != of columns with themselves
        none = np.zeros(len(dcs), dtype=np.bool_)
        by = kernel.implied_by(states, images, np.arange(len(dcs)), none)
        assert (by[:-1] < 0).all()
        assert (by[-1] < 0) == stays
