"""The oracle of denial constraints against what it is short for: all sets of predicates, tried one by one."""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import dcs, predicates
from reference.dc_hitting_sets import covers
from reference.dcs import Group, Space

NAMES = ["a", "b", "x"]
CROSS: list[Group] = [("a", "a", True), ("a", "b", True), ("b", "a", True)]
SPACES = [
    Space([("a", "a", True), ("x", "x", False)], NAMES),
    Space([("a", "a", True), ("b", "b", True), ("x", "x", False)], NAMES),
    Space(CROSS, NAMES),
    Space([("a", "b", False), ("b", "a", False), ("a", "a", False), ("x", "x", False)], NAMES),
    Space([], NAMES),
]
VALUES = st.sampled_from([None, 0.0, -0.0, 1.0, float("nan")])
ROWS = st.lists(st.tuples(VALUES, VALUES, st.sampled_from(["p", "q", None])), max_size=6)


@given(st.sampled_from(SPACES), ROWS, st.sampled_from([None, 0, 1, 2]))
def test_exact_constraints(space: Space, rows: list[Any], max_predicates: int | None) -> None:
    evidence = space.evidence(rows)
    sets = [frozenset(i for i in range(len(space.words)) if mask >> i & 1) for mask in evidence]
    bound = -1 if max_predicates is None else max_predicates
    for found, general in (
        (space.general(evidence, max_predicates=max_predicates), True),
        (space.set_minimal(evidence, max_predicates=max_predicates), False),
    ):
        expected = covers(space.predicates, sets, general, bound)
        if max_predicates == 0:  # there, 0 is any number
            expected = [dc for dc in expected if not dc]
        assert sorted(found) == expected
        assert not any(found.values())
        for dc in found:
            assert predicates.canonical([space.words[i] for i in dc], space.words) == dc


@settings(max_examples=30)
@given(st.sampled_from(SPACES[:3]), ROWS, st.sampled_from([0.1, 0.3, 0.5, 1.0]))
def test_approximate_constraints(space: Space, rows: list[Any], max_error: float) -> None:
    """Each one is judged by its pairs of rows, not by evidence."""
    most = dcs.allowed(max_error, rows)

    def pairs(dc: Any) -> int:
        return len(dcs.violating(rows, NAMES, [space.words[i] for i in dc]))

    expected: dict[tuple[int, ...], int] = {}
    for dc in space.predicates.sensible:
        one_each = len({space.predicates.predicates[i][0] for i in dc}) == len(dc)
        if one_each and pairs(dc) <= most and not any(pairs(other) <= most for other in space.looser(dc)):
            expected[space.canonical(dc)] = pairs(dc)
    assert space.general(space.evidence(rows), most) == expected


@given(ROWS, st.sampled_from(SPACES[:3]))
def test_evidence_and_violations_agree(rows: list[Any], space: Space) -> None:
    evidence = space.evidence(rows)
    assert evidence.total() == dcs.total_pairs(rows)
    told = [dict(zip(NAMES, map(dcs.comparable, row), strict=True)) for row in rows]
    by_pair = Counter(
        sum(1 << i for i, p in enumerate(space.words) if p in predicates.evidence(t, s, space.words))
        for t, s in permutations(told, 2)
    )
    assert evidence == by_pair


def test_operators_bound_what_is_looser() -> None:
    """1 and 2: never `=`; but if `<=` may not be said, `<` is the most general that is violated by none."""
    space = Space([("a", "a", True), ("b", "b", True)], ["a", "b"])
    evidence = space.evidence([(1, 5), (2, 7)])
    told = {tuple(space.words[i] for i in dc) for dc in space.general(evidence)}
    assert (("a", "<=", "a"), ("b", ">=", "b")) in told
    told = {
        tuple(space.words[i] for i in dc) for dc in space.general(evidence, operators=("=", "<", ">", "!="))
    }
    assert (("a", "<", "a"), ("b", ">", "b")) in told
    assert (("a", "=", "a"),) in told
    assert all(op not in ("<=", ">=") for dc in told for _, op, _ in dc)


@pytest.mark.parametrize(
    ("left", "right", "crossed"),
    [
        ([1, 2, 3, 4, 5, 6, 7], [7, 6, 8], False),  # 2 of 7
        ([1, 2, 3, 4, 5, 6], [6, 5, None, 6], True),  # 2 of 6, and of 2
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [1, 2, 3], True),  # 3 of 10
        ([1, None], [2, None], False),  # NULL is no value
        ([None], [None], False),
        ([], [], False),
    ],
)
def test_columns_that_share_values(left: list[Any], right: list[Any], crossed: bool) -> None:
    n = max(len(left), len(right))
    rows = [(left[i % len(left)], right[i % len(right)], "x", 0) for i in range(n)]
    schema = pa.schema({"a": pa.int64(), "b": pa.int8(), "x": pa.string(), "u": pa.uint64()})
    found = dcs.groups(rows, schema)
    assert found - {("a", "b", True), ("b", "a", True)} == {
        ("a", "a", True),
        ("b", "b", True),
        ("x", "x", False),
        ("u", "u", True),
    }
    assert (("a", "b", True) in found) == (("b", "a", True) in found) == crossed
    assert dcs.groups(rows, schema, ["x"]) == {("x", "x", False)}
