"""Comparisons that run in a circle, alone or with rules about each row: by a trial of all values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from holdfast.core.rows.kernels.masks import mask_of, positions_of
from holdfast.core.words.predicate import OPERATORS, Group, Operator, PredicateSpace
from holdfast.core.words.row_rule import RowRule
from holdfast.denial import circular_dcs
from holdfast.denial.circular_dcs import RowOrder, contradictory, following_from_rows, written_out
from reference import dc_forms as reference
from reference.dc_hitting_sets import Predicates

NAMES = ("a", "b", "c")
# (columns that are compared with each other, which are ordered); c is compared with itself only.
SPACES = [
    [(0, 0, True), (1, 1, True), (0, 1, True), (1, 0, True)],
    [(0, 0, False), (1, 1, False), (0, 1, False), (1, 0, False)],
    [(0, 1, True), (2, 2, False), (1, 0, True)],
    [(0, 0, True), (1, 1, True)],
]
Rules = list[tuple[int, Operator, int]]


def space_of(groups: list[tuple[int, int, bool]]) -> PredicateSpace:
    return PredicateSpace(tuple(Group(NAMES[a], NAMES[b], ordered) for a, b, ordered in groups))


def order_of(rules: Rules, filled: set[int]) -> RowOrder:
    named = [RowRule("t", NAMES[a], op, NAMES[b]) for a, op, b in rules]
    return RowOrder.of(NAMES, named, {NAMES[c] for c in filled})


def rules_of(pairs: list[tuple[int, int]], operators: list[Operator]) -> st.SearchStrategy[Rules]:
    rule = st.tuples(st.sampled_from(pairs), st.sampled_from(operators))
    return st.lists(rule.map(lambda r: (r[0][0], r[1], r[0][1])), max_size=3)


@given(st.sampled_from(SPACES), st.sampled_from([1, 1 << 22]), st.data())
@settings(max_examples=300)
def test_what_no_two_rows_can_violate(
    groups: list[tuple[int, int, bool]], at_once: int, data: st.DataObject
) -> None:
    """Sound with NULLs, complete without."""
    space, plain = space_of(groups), Predicates(groups)
    ordered = groups[0][2]
    rules = data.draw(rules_of([(0, 1), (1, 0)], list(OPERATORS if ordered else OPERATORS[:2])))
    filled = data.draw(st.sets(st.integers(0, 2)))
    sets = data.draw(
        st.lists(st.frozensets(st.integers(0, len(plain.predicates) - 1), min_size=1, max_size=5), max_size=6)
    )
    masks = np.array([mask_of(s, 1) for s in sets], dtype=np.uint64).reshape(-1, 1)
    possible = reference.evidences(tuple(groups), tuple(rules), frozenset(filled))
    expected = [not any(s <= evidence for evidence in possible) for s in sets]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(circular_dcs, "AT_ONCE", at_once)
        found = contradictory(masks, space, order_of(rules, filled)).tolist()
        alone = contradictory(masks, space).tolist()
    event(f"{sum(found)} of {sum(expected)}")
    assert all(true for said, true in zip(found, expected, strict=True) if said)
    if (filled >= {0, 1} or not rules) and possible:
        assert found == expected
    without_rules = reference.evidences(tuple(groups))
    assert alone == [not any(s <= evidence for evidence in without_rules) for s in sets]


@given(rules_of([(0, 1), (1, 2), (0, 2), (2, 0)], list(OPERATORS)), st.sets(st.integers(0, 2)), st.data())
@settings(max_examples=300)
def test_rules_about_rows_that_follow_from_others(
    rules: Rules, filled: set[int], data: st.DataObject
) -> None:
    asked = 0, data.draw(st.sampled_from(OPERATORS)), data.draw(st.integers(1, 2))
    found = order_of(rules, filled).implies(RowRule("t", NAMES[asked[0]], asked[1], NAMES[asked[2]]))
    rows = [dict(enumerate(row)) for row in product([None, *range(3)], repeat=3)]
    possible = [row for row in rows if reference.keeps(row, rules, filled)]
    expected = all(reference.keeps(row, [asked], ()) for row in possible)
    event(f"{found} of {expected}")
    assert expected or not found
    if filled == {0, 1, 2} and possible:
        assert found == expected


def test_what_is_at_most_another_and_differs_is_less() -> None:
    order = order_of([(0, "<=", 1), (1, "!=", 0)], {0, 1, 2})
    assert order.implies(RowRule("t", "a", "<", "b"))


@given(st.sampled_from(SPACES[:3]), st.data())
@settings(max_examples=100)
def test_written_out(groups: list[tuple[int, int, bool]], data: st.DataObject) -> None:
    """With all that any two rows satisfy that satisfy the given, but for what is said by a tighter one."""
    space, plain = space_of(groups), Predicates(groups)
    rules = data.draw(rules_of([(0, 1), (1, 0)], list(OPERATORS if groups[0][2] else OPERATORS[:2])))
    asked = data.draw(st.frozensets(st.integers(0, len(plain.predicates) - 1), min_size=1, max_size=4))
    masks = np.array([mask_of(asked, 1)], dtype=np.uint64)
    satisfying = [
        e for e in reference.evidences(tuple(groups), tuple(rules), frozenset({0, 1, 2})) if asked <= e
    ]
    if not satisfying:
        return
    order = order_of(rules, {0, 1, 2})
    [found] = written_out(masks, space, order)
    assert reference.closure(plain, frozenset(positions_of(found))) == frozenset.intersection(*satisfying)
    assert len({space.group_of[i] for i in positions_of(found)}) == len(positions_of(found))
    if not plain.trivial(asked):
        assert (
            following_from_rows(masks, space, order).tolist() == contradictory(masks, space, order).tolist()
        )


def test_a_rule_says_nothing_of_nulls() -> None:
    """With low <= high, a low above another high has a low that is above it: if all have values."""
    space = PredicateSpace(tuple(Group(a, b, True) for a in ("low", "high") for b in ("low", "high")))
    rule = RowRule("t", "low", "<=", "high")

    def says(text: str, filled: set[str]) -> bool:
        number = {str(p): i for i, p in enumerate(space.predicates)}
        masks = np.array([mask_of([number[p] for p in text.split(" and ")], 1)], dtype=np.uint64)
        return bool(contradictory(masks, space, RowOrder.of(("low", "high"), [rule], filled))[0])

    assert says("t.low > s.high and t.low <= s.low", set())
    assert says("t.high < s.low and t.high >= s.high", set())
    # Two NULLs are equal, so nothing says that there are values.
    assert not says("t.low >= s.high and t.low <= s.low and t.high != s.high", {"low"})
    assert not says("t.low = s.high and t.high != s.low and t.high = s.high", set())
    assert not says("t.low = s.low and t.low != s.high", {"low", "high"})
