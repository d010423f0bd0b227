"""Other forms of the denial constraints of a table: each says what it should, and no more."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from holdfast.core.cover.kernels import search
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, positions_of
from holdfast.core.words.predicate import OPERATORS, Group, Operator, PredicateSpace, is_trivial
from holdfast.core.words.rule_text import located
from holdfast.denial.circular_dcs import tautologies
from holdfast.denial.forms import concise, restricted, set_minimal
from reference import dc_forms as reference
from reference.dc_hitting_sets import Predicates

Outcomes = list[list[int]]


def space_of(*columns: str, across: tuple[tuple[str, str], ...] = ()) -> PredicateSpace:
    """Columns in capitals have no order."""
    pairs = [(c, c) for c in columns] + [pair for a, b in across for pair in ((a, b), (b, a))]
    return PredicateSpace(tuple(Group(a, b, a.islower()) for a, b in pairs))


SPACES = [
    space_of("a"),
    space_of("a", "B"),
    space_of("a", "b"),
    space_of("A", "B", "C"),
    space_of("a", "b", across=(("a", "b"),)),
    space_of("A", "B", "c", across=(("A", "B"),)),
]


def kernel_space(space: PredicateSpace, general: bool) -> Space:
    group_of, op_of, mirror = np.array([space.group_of, space.op_of, space.mirror], dtype=np.int32)
    return Space(group_of, op_of, mirror, general)


def family(space: PredicateSpace, outcomes: Outcomes) -> Any:
    n_words = n_words_for(space.n_predicates)
    sets = [[i for i in range(space.n_predicates) if space.evidence(one) >> i & 1] for one in outcomes]
    return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(-1, n_words)


def plain(space: PredicateSpace) -> Predicates:
    """The same space as the reference has it, with the same numbers."""
    names = sorted({g.left for g in space.groups})
    return Predicates([(names.index(g.left), names.index(g.right), g.ordered) for g in space.groups])


def tuples(masks: Any) -> list[tuple[int, ...]]:
    return sorted(positions_of(mask) for mask in masks)


def sets_of(masks: Any) -> list[frozenset[int]]:
    return [frozenset(positions_of(mask)) for mask in masks]


@st.composite
def tables(draw: st.DrawFn, spaces: list[PredicateSpace] = SPACES) -> tuple[PredicateSpace, Outcomes]:
    space = draw(st.sampled_from(spaces))
    n = len(space.groups)
    return space, draw(st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), max_size=10))


def dcs(space: PredicateSpace, *rules: str) -> Any:
    n_words = n_words_for(space.n_predicates)
    names = [g.left for g in space.groups if g.left == g.right]
    parsed = [located(rule, names) for rule in rules]
    masks = [mask_of([space.number(p) for p, _ in ps], n_words) for ps in parsed]
    return np.array(masks, dtype=np.uint64).reshape(-1, n_words)


# -- set-minimal ---------------------------------------------------------------------------------------------


@given(tables(), st.integers(0, 4))
@settings(deadline=None, max_examples=200)
def test_set_minimal_equals_the_search(table: tuple[PredicateSpace, Outcomes], max_size: int) -> None:
    space, outcomes = table
    evidence = family(space, outcomes)
    general = search.minimal_dcs(evidence, kernel_space(space, True), max_size)
    expected = search.minimal_dcs(evidence, kernel_space(space, False), max_size)
    found = set_minimal(general, space, max_size=max_size)
    event(f"{len(general)} -> {len(expected)}")
    assert found.complete
    assert found.masks.tolist() == expected.tolist()


WIDE = [
    PredicateSpace(tuple(Group(f"c{i}", f"c{i}", False) for i in range(70))),
    PredicateSpace(tuple(Group(f"c{i}", f"c{i}", i % 4 == 0) for i in range(24))),
    PredicateSpace(tuple(Group(f"c{i}", f"c{i}", True) for i in range(12))),
]


@given(tables(WIDE).filter(lambda t: len(t[1]) <= 2))
@settings(deadline=None, max_examples=20)
def test_set_minimal_of_many_groups(table: tuple[PredicateSpace, Outcomes]) -> None:
    """More than 64 predicates, more than 21 and more than 64 groups."""
    space, outcomes = table
    evidence = family(space, outcomes)
    general = search.minimal_dcs(evidence, kernel_space(space, True))
    expected = search.minimal_dcs(evidence, kernel_space(space, False))
    assert set_minimal(general, space).masks.tolist() == expected.tolist()
    assert restricted(general, space, OPERATORS).tolist() == general.tolist()


@given(tables(), st.integers(0, 8))
@settings(deadline=None)
def test_set_minimal_up_to_a_limit(table: tuple[PredicateSpace, Outcomes], limit: int) -> None:
    space, outcomes = table
    general = search.minimal_dcs(family(space, outcomes), kernel_space(space, True))
    everything = set_minimal(general, space)
    some = set_minimal(general, space, limit)
    assert some.complete == (len(everything.masks) <= limit)
    assert len(some.masks) == min(limit, len(everything.masks))
    assert set(tuples(some.masks)) <= set(tuples(everything.masks))


# -- operators ---------------------------------------------------------------------------------------------


@given(tables(), st.sets(st.sampled_from(OPERATORS)))
@settings(deadline=None, max_examples=200)
def test_restricted_by_definition(table: tuple[PredicateSpace, Outcomes], operators: set[Operator]) -> None:
    space, outcomes = table
    general = search.minimal_dcs(family(space, outcomes), kernel_space(space, True))
    found = restricted(general, space, operators)
    turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
    allowed = operators | {turned.get(op, op) for op in operators}
    event(f"{len(general)} -> {len(found)}")
    assert tuples(found) == reference.restricted(plain(space), sets_of(general), allowed)


@given(tables())
@settings(deadline=None)
def test_all_operators_change_nothing(table: tuple[PredicateSpace, Outcomes]) -> None:
    space, outcomes = table
    general = search.minimal_dcs(family(space, outcomes), kernel_space(space, True))
    assert restricted(general, space, OPERATORS).tolist() == general.tolist()
    assert restricted(general, space, ("=", "!=", "<", "<=")).tolist() == general.tolist()


def test_keys_and_fds_remain() -> None:
    space = space_of("a", "b", "C")
    cover = dcs(space, "not(t.a = s.a and t.b <= s.b)", "not(t.a < s.a and t.C != s.C)")
    assert tuples(restricted(cover, space, ["=", "!="])) == tuples(dcs(space, "not(t.a = s.a and t.b = s.b)"))
    by_order = dcs(space, "not(t.a < s.a and t.C != s.C)")
    assert tuples(restricted(cover, space, ["<", "!="])) == tuples(by_order)
    assert tuples(restricted(cover, space, [])) == []
    none = np.zeros((1, 1), dtype=np.uint64)  # at most one row: nothing needs to be written
    assert restricted(none, space, []).tolist() == [[0]]


# -- concise -----------------------------------------------------------------------------------------------


@st.composite
def any_dcs(draw: st.DrawFn) -> tuple[PredicateSpace, Any, Any]:
    """DCs of any kind, several predicates in a group among them, and an order."""
    space = draw(st.sampled_from(SPACES))
    sets = draw(st.lists(st.frozensets(st.integers(0, space.n_predicates - 1), max_size=4), max_size=12))
    masks = np.array([mask_of(s, 1) for s in sets], dtype=np.uint64).reshape(-1, 1)
    return space, masks, np.array(draw(st.permutations(range(len(sets)))), dtype=np.int64)


@given(any_dcs())
@settings(deadline=None, max_examples=200)
def test_what_is_dropped_is_implied(given_: tuple[PredicateSpace, Any, Any]) -> None:
    """By trying all values of two rows: any that violate what is dropped violate something that stays."""
    space, masks, order = given_
    kept = concise(masks, space, order)
    stays, sets = plain(space), sets_of(masks)
    dropped = set(range(len(masks))) - set(kept.tolist())
    event(f"{len(dropped)} of {len(masks)} dropped")
    for i in dropped:
        assert reference.implied(stays, [sets[j] for j in kept], sets[i])
    assert concise(masks[kept], space).tolist() == list(range(len(kept)))


@given(tables())
@settings(deadline=None)
def test_concise_covers_imply_the_cover(table: tuple[PredicateSpace, Outcomes]) -> None:
    space, outcomes = table
    cover = search.minimal_dcs(family(space, outcomes), kernel_space(space, True))
    kept = concise(cover, space)
    event(f"{len(cover)} -> {len(kept)}")
    sets = sets_of(cover)
    for dc in sets:
        assert reference.implied(plain(space), [sets[j] for j in kept], dc)


def kept_rules(space: PredicateSpace, rules: list[str], order: list[int] | None = None) -> list[str]:
    given_ = None if order is None else np.array(order)
    return [rules[i] for i in concise(dcs(space, *rules), space, given_)]


SAME = ["t.{0} = s.{0}", "t.{0} != s.{0}"]


def fd(lhs: str, rhs: str) -> str:
    return f"not({' and '.join([*(SAME[0].format(c) for c in lhs), SAME[1].format(rhs)])})"


def test_what_follows_goes() -> None:
    space = space_of("a", "b", "C", "D")
    loose, strict = "not(t.a <= s.a and t.C = s.C)", "not(t.a < s.a and t.C = s.C)"
    assert kept_rules(space, [loose, strict]) == [loose]
    assert kept_rules(space, [strict, loose]) == [loose]
    assert kept_rules(space, [strict, "not(t.a > s.a and t.C = s.C)"]) == [strict]  # mirrored
    chain = [fd("C", "D"), fd("D", "a"), fd("C", "a")]
    assert kept_rules(space, chain) == chain[:2]
    assert kept_rules(space, chain[::-1]) == [fd("D", "a"), fd("C", "D")]
    key = "not(t.C = s.C)"
    assert kept_rules(space, [fd("Ca", "b"), key]) == [key]
    assert kept_rules(space, ["not(t.a < s.a and t.a <= s.a)", "not(t.a < s.a)"]) == [
        "not(t.a < s.a and t.a <= s.a)"
    ]
    # Two that together leave nothing: what is neither equal nor different.
    assert kept_rules(space, [key, "not(t.C != s.C)", "not(t.a < s.a)"]) == [key, "not(t.C != s.C)"]
    # With NULL, what is not at most the other need not be greater.
    thirds = ["not(t.a <= s.a and t.C = s.C)", "not(t.a > s.a and t.D = s.D)", "not(t.C = s.C and t.D = s.D)"]
    assert kept_rules(space, thirds) == thirds


def test_the_least_interesting_goes() -> None:
    """Columns C and D determine each other: one of two rules that use them follows from the other."""
    space = space_of("a", "b", "C", "D")
    same = [fd("C", "D"), fd("D", "C")]
    twins = ["not(t.a < s.a and t.C = s.C)", "not(t.a < s.a and t.D = s.D)"]
    assert kept_rules(space, same + twins) == [*same, twins[0]]
    assert kept_rules(space, same + twins, [3, 2, 1, 0]) == [*same, twins[1]]


def test_the_constraint_without_predicates_implies_all() -> None:
    space = space_of("a")
    masks = np.array([[0b1], [0], [0b1000]], dtype=np.uint64)
    assert concise(masks, space).tolist() == [1]
    assert concise(masks[:0], space).tolist() == []


# -- tautologies -------------------------------------------------------------------------------------------

CIRCULAR = space_of("a", "b", "C", across=(("a", "b"),))


@given(st.lists(st.frozensets(st.integers(0, CIRCULAR.n_predicates - 1), max_size=5), max_size=8))
@example([frozenset()])
@settings(deadline=None, max_examples=200)
def test_tautologies_by_trying_all_values(sets: list[frozenset[int]]) -> None:
    sensible = [s for s in sets if not is_trivial(CIRCULAR.predicates[i] for i in s)]
    masks = np.array([mask_of(s, 1) for s in sensible], dtype=np.uint64).reshape(-1, 1)
    possible = reference.evidences(tuple(plain(CIRCULAR).groups))
    expected = [not any(s <= evidence for evidence in possible) for s in sensible]
    event("some" if any(expected) else "none")
    assert tautologies(masks, CIRCULAR).tolist() == expected


def test_tautologies_go_and_help() -> None:
    """Rows with the same C have t.a = s.b, and so t.b = s.a; with t.b = s.b as well, all four are equal."""
    circle = "not(t.a != s.a and t.b = s.b and t.a = s.b and t.b = s.a)"
    rule = "not(t.C = s.C and t.a != s.b)"
    follows = "not(t.C = s.C and t.b = s.b and t.a != s.a)"
    assert tautologies(dcs(CIRCULAR, circle, rule, follows), CIRCULAR).tolist() == [True, False, False]
    assert kept_rules(CIRCULAR, [follows, rule]) == [follows, rule]
    assert kept_rules(CIRCULAR, [follows, rule, circle]) == [rule]


@pytest.mark.parametrize("n", [0, 1])
def test_spaces_without_predicates(n: int) -> None:
    nothing = PredicateSpace(())
    masks = np.zeros((n, 1), dtype=np.uint64)
    assert set_minimal(masks, nothing).masks.tolist() == masks.tolist()
    assert restricted(masks, nothing, ["="]).tolist() == masks.tolist()
    assert concise(masks, nothing).tolist() == list(range(n))
    assert tautologies(masks, nothing).tolist() == [False] * n


def test_all_pairs_of_outcomes_are_tried() -> None:
    """The reference would prove anything if it tried nothing."""
    assert len(reference.evidences(((0, 0, True), (1, 1, False)))) == len(list(product(range(4), range(2))))
