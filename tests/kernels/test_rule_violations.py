"""Matches of a rule equal the plain-Python reference, whichever way they are counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from holdfast.core.rows.kernels.operators import EQ, GE, GT, LE, LT, NE
from holdfast.denial.kernels import rule_violations
from holdfast.denial.kernels.rule_violations import (
    SAMPLES,
    Compared,
    Matches,
    chosen,
    code_ranges,
    count_in_lists,
    count_matches,
    expected_cost,
    first_matches,
    list_cost,
)
from reference import rule_violations as reference
from reference.predicate_evidence import holds

OPERATORS = st.integers(EQ, GE)
# What it is said to cost decides how to count: no scan, no sweep, scans of small parts only, as measured.
COSTS: dict[str, dict[str, float]] = {
    "scan": {"SWEEP_ROW": 1e12},
    "sweep": {"SWEEP_ROW": 0.0},
    "small scans": {"SWEEP_ROW": 2.0, "SCAN_TABLE": 0.0},
    "groups": {"SWEEP_ROW": 6.0, "SCAN_TABLE": 0.0, "SCAN_ROW": 2.0},
    "groups anew": {"SWEEP_ROW": 6.0, "SCAN_TABLE": 0.0, "SCAN_ROW": 2.0, "PLACES_PER_ROW": 0},
    "measured": {},
}


@contextmanager
def costs(which: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in COSTS[which].items():
            patch.setattr(rule_violations, name, value)
        yield


@st.composite
def comparisons(draw: st.DrawFn, max_predicates: int = 5, max_rows: int = 12) -> dict[str, Any]:
    """Right rows as codes, left rows as half ranks of them: ties, NULLs, values that the column lacks."""
    n_columns, n_rows = draw(st.integers(1, 3)), draw(st.integers(0, max_rows))
    tops = [draw(st.sampled_from([1, 2, 4, 9])) for _ in range(n_columns)]
    codes = [draw(st.lists(st.integers(0, t), min_size=n_rows, max_size=n_rows)) for t in tops]
    n_predicates, n_left = draw(st.integers(0, max_predicates)), draw(st.integers(0, max_rows))
    columns = [draw(st.integers(0, n_columns - 1)) for _ in range(n_predicates)]
    half_ranks = [
        draw(st.lists(st.integers(0, 2 * tops[c] + 1), min_size=n_left, max_size=n_left)) for c in columns
    ]
    rows: list[int] | None = None
    if n_rows and draw(st.booleans()):
        rows = draw(st.lists(st.integers(0, n_rows - 1), unique=True, max_size=n_rows))
    some = list(range(n_rows)) if rows is None else rows
    twins, own = [-1] * n_left, draw(st.booleans())
    if some and own:
        twins = [*draw(st.permutations(some)), *twins][:n_left]
    return {
        "half_ranks": half_ranks,
        "ops": [draw(OPERATORS) for _ in columns],
        "codes": codes,
        "columns": columns,
        "rows": rows,
        "twins": twins,
        "n_codes": [tops[c] + 1 for c in columns],
    }


def compared(drawn: dict[str, Any]) -> Compared:
    n_predicates, n_left = len(drawn["ops"]), len(drawn["twins"])
    return Compared(
        np.array(drawn["half_ranks"], dtype=np.int32).reshape(n_predicates, n_left),
        tuple(drawn["ops"]),
        np.array(drawn["codes"], dtype=np.int32).reshape(len(drawn["codes"]), -1),
        np.array(drawn["columns"], dtype=np.int64),
        np.array(drawn["n_codes"], dtype=np.int64),
    )


def counted(drawn: dict[str, Any], *, any_pair: bool = False) -> Matches:
    rows = drawn["rows"]
    twins = np.array(drawn["twins"], dtype=np.int64)
    return count_matches(
        compared(drawn),
        None if rows is None else np.array(rows, dtype=np.int32),
        None if (twins < 0).all() else twins,
        any_pair=any_pair,
    )


def expected(drawn: dict[str, Any]) -> set[tuple[int, int]]:
    rows = range(len(drawn["codes"][0])) if drawn["rows"] is None else drawn["rows"]
    return reference.matches(
        drawn["half_ranks"], drawn["ops"], drawn["codes"], drawn["columns"], rows, drawn["twins"]
    )


def check(found: Matches, pairs: set[tuple[int, int]]) -> None:
    assert found.total == len(pairs)
    told = set(map(tuple, found.pairs.tolist()))
    assert told <= pairs
    assert len(told) >= min(SAMPLES, len(pairs))
    assert found.pairs.dtype == np.int64


# A scan of one half notes a pair twice, and the other half has more.
NOTED_TWICE: dict[str, Any] = {
    "half_ranks": [[0, 0, 0, 0, 0, 0, 5, 0, 0], [0] * 9, [0, 0, 0, 0, 0, 0, 1, 0, 0]],
    "ops": [4, 3, 2],
    "codes": [[0] * 12, [0, 1, 1, 0, 2, 2, 2, 2, 0, 0, 0, 0]],
    "columns": [1, 0, 1],
    "rows": [1, 2, 4, 5, 6, 7],
    "twins": [-1] * 9,
    "n_codes": [3, 2, 3],
}


@settings(max_examples=300)
@example(NOTED_TWICE, "small scans")
@given(comparisons(), st.sampled_from(sorted(COSTS)))
def test_all_ways_to_count(drawn: dict[str, Any], way: str) -> None:
    pairs = expected(drawn)
    with costs(way):
        check(counted(drawn), pairs)
        some = counted(drawn, any_pair=True)
    assert min(1, len(pairs)) <= some.total <= len(pairs)
    assert set(map(tuple, some.pairs.tolist())) <= pairs
    assert bool(len(some.pairs)) == bool(pairs)
    event(f"{way}, {len(drawn['ops'])} predicates")


def test_any_pair_ends_the_count() -> None:
    """Of a rule that most pairs violate only a part of the rows is compared."""
    rng = np.random.default_rng(7)
    drawn = {**spread(rng, 300, 900, n_right=300), "ops": [GE, NE, LT]}
    drawn = {
        **drawn,
        "half_ranks": [*drawn["half_ranks"], drawn["half_ranks"][0]],
        "ops": [*drawn["ops"], LE],
    }
    drawn = {**drawn, "columns": [0, 1, 2, 1], "n_codes": [901] * 4}
    with costs("groups"):
        assert 0 < counted(drawn, any_pair=True).total < counted(drawn).total


def spread(rng: np.random.Generator, n_left: int, top: int, n_right: int = 70) -> dict[str, Any]:
    n_predicates = 3
    return {
        "half_ranks": rng.integers(0, 2 * top + 2, (n_predicates, n_left)).tolist(),
        "codes": rng.integers(0, top + 1, (n_predicates, n_right)).tolist(),
        "columns": list(range(n_predicates)),
        "n_codes": [top + 1] * n_predicates,
        "rows": None,
        "twins": [-1] * n_left,
    }


@pytest.mark.parametrize("n_left", [11, 12, 63, 64, 65, 511, 512, 513, 600])
@pytest.mark.parametrize("top", [5, 300, 50_000])
def test_blocks(n_left: int, top: int) -> None:
    """Around the borders of words and blocks; dictionaries below and above the size of the index."""
    rng = np.random.default_rng(n_left + top)
    for ops in ([LT, GE, NE], [EQ, GT, LE], [NE, NE, LT]):
        drawn = {**spread(rng, n_left, top), "ops": ops}
        with costs("scan"):
            check(counted(drawn), expected(drawn))


@pytest.mark.parametrize("n_left", [5, 40, 520])
def test_more_rows_than_are_looked_at_together(n_left: int) -> None:
    rng = np.random.default_rng(n_left)
    drawn = {**spread(rng, n_left, 900, n_right=2 * rule_violations.CHUNK + 7), "ops": [GE, LT, NE]}
    pairs = expected(drawn)
    for way in sorted(COSTS):
        with costs(way):
            check(counted(drawn), pairs)


@pytest.mark.parametrize("way", sorted(COSTS))
@pytest.mark.parametrize(
    "ops",
    [
        [LT, GT],
        [LE, GE],
        [EQ, LT, GT],
        [EQ, EQ, LE],
        [NE, NE, NE, NE],
        [LT, LT, LT],
        [LE, GE, GT, NE],
        [GE, LT, LE, GT],
        [EQ, GE, LT, LE],
        [EQ, NE],
        [EQ],
        [GT],
        [NE],
    ],
)
def test_own_rows(ops: list[int], way: str) -> None:
    """A table with itself: a row is never paired with itself."""
    rng = np.random.default_rng(sum(ops))
    n = 150
    for top in (3, 40, 1000):
        codes = rng.integers(0, top + 1, (len(ops), n))
        drawn = {
            "half_ranks": (2 * codes).tolist(),
            "codes": codes.tolist(),
            "columns": list(range(len(ops))),
            "n_codes": [top + 1] * len(ops),
            "ops": ops,
            "rows": None,
            "twins": list(range(n)),
        }
        with costs(way):
            check(counted(drawn), expected(drawn))


@given(comparisons(max_predicates=3), st.data())
def test_lists(drawn: dict[str, Any], data: st.DataObject) -> None:
    """Each left row with the rows of a list."""
    n_rows, n_left = len(drawn["codes"][0]), len(drawn["twins"])
    positions = data.draw(st.permutations(range(n_rows)))
    cuts = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=3)))
    bounds = list(zip([0, *cuts], [*cuts, n_rows], strict=True))
    lists = [data.draw(st.sampled_from([*bounds, (0, 0)])) for _ in range(n_left)]
    live = data.draw(st.none() | st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    starts, ends = (np.array([b[side] for b in lists], dtype=np.int64) for side in range(2))
    found = count_in_lists(
        compared(drawn),
        np.array(positions, dtype=np.int32),
        starts,
        ends,
        None if live is None else np.array(live, dtype=np.bool_),
    )
    everything = expected({**drawn, "rows": None, "twins": [-1] * n_left})
    pairs = {
        (i, row)
        for i, row in everything
        if row in positions[lists[i][0] : lists[i][1]] and (live is None or live[row])
    }
    check(found, pairs)
    assert list_cost(starts, ends, len(drawn["ops"])) >= 0


@given(comparisons(), st.data())
def test_first_matches(drawn: dict[str, Any], data: st.DataObject) -> None:
    n_rows, n_left = len(drawn["codes"][0]), len(drawn["twins"])
    drawn = {**drawn, "twins": [-1] * n_left, "rows": None}
    lefts = data.draw(st.lists(st.integers(0, n_left - 1), unique=True)) if n_left else []
    live = data.draw(st.none() | st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
    found = first_matches(compared(drawn), lefts, None if live is None else np.array(live, dtype=np.bool_))
    pairs = {(i, row) for i, row in expected(drawn) if live is None or live[row]}
    assert set(map(tuple, found.tolist())) <= pairs
    for i in lefts:
        mine = [row for left, row in found.tolist() if left == i]
        assert mine == sorted(row for left, row in pairs if left == i)[:SAMPLES]


@given(st.lists(st.integers(0, 9), max_size=8), OPERATORS)
@example([0, 1, 2], LE)
def test_code_ranges(half_ranks: list[int], op: int) -> None:
    low, high, negated = code_ranges(np.array([half_ranks], dtype=np.int32), [op])
    for i, x in enumerate(half_ranks):
        for y in range(7):
            inside = bool(low[0, i] <= y < high[0, i])
            assert (inside != negated[0]) == holds(x or None, reference.SIGNS[op], 2 * y or None)


def test_no_such_operator() -> None:
    with pytest.raises(ValueError, match="no operator number 6"):
        code_ranges(np.zeros((1, 1), np.int32), [6])


def test_chosen_pairs_share_no_row_if_they_can() -> None:
    assert chosen(np.array([[1, 2], [2, 1], [1, 2], [3, 1], [4, 5]])).tolist() == [[1, 2], [4, 5], [2, 1]]
    assert chosen(np.empty((0, 2), np.int64)).shape == (0, 2)


def test_the_less_there_is_to_do_the_less_it_costs() -> None:
    sizes = [10, 1000, 100_000, 10_000_000]
    for ops in ((), (LT,), (EQ, LT, GT), (LT, GT, LE), (NE, NE, NE)):
        for found in (
            [expected_cost(n, 1_000_000, ops) for n in sizes],
            [expected_cost(1000, n, ops) for n in sizes],
        ):
            assert found == sorted(found)
