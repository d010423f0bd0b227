"""The kernels that list pairs of rows against their plain definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import probed_pairs as dc_probe
from holdfast.core.rows.kernels.encode import postings
from reference import dc_probe as reference


@dataclass
class Case:
    codes: np.ndarray  # int32[n_columns, n]
    live: np.ndarray
    values: np.ndarray  # int32[n_groups, b]
    right: np.ndarray
    ordered: np.ndarray

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(b, r) for b in range(self.values.shape[1]) for r in range(self.codes.shape[1])]


@st.composite
def cases(draw: st.DrawFn, max_groups: int = 4) -> Case:
    n_columns, n, b = draw(st.integers(1, 3)), draw(st.integers(0, 7)), draw(st.integers(0, 5))
    n_groups = draw(st.integers(1, max_groups))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return Case(
        rng.integers(0, 4, (n_columns, n)).astype(np.int32),
        rng.random(n) < 0.8,
        rng.integers(0, 8, (n_groups, b)).astype(np.int32),
        rng.integers(0, n_columns, n_groups).astype(np.int32),
        rng.integers(0, 2, n_groups).astype(np.int32),
    )


def predicates(draw: st.DrawFn, n_groups: int, at_most: int) -> list[tuple[int, int]]:
    one = st.tuples(st.integers(0, n_groups - 1), st.integers(0, 5))
    return draw(st.lists(one, max_size=at_most))


@given(cases(), st.data())
def test_satisfied(case: Case, data: st.DataObject) -> None:
    asked = predicates(data.draw, len(case.right), 3)
    pairs = np.array(case.pairs, dtype=np.int64).reshape(-1, 2)
    groups, ops = (np.array([p[i] for p in asked], dtype=np.int32) for i in range(2))
    found = dc_probe.satisfied(case.codes, case.values, case.right, groups, ops, pairs[:, 0], pairs[:, 1])
    lists = case.codes.tolist(), case.values.tolist(), case.right.tolist()
    assert found.tolist() == [reference.satisfied(*lists, asked, b, r) for b, r in case.pairs]


@given(cases(), st.data())
def test_walked_pairs(case: Case, data: st.DataObject) -> None:
    """The live rows on the lists that satisfy one of the sets wanted, each once."""
    source = data.draw(st.integers(0, len(case.right) - 1))
    sets = [predicates(data.draw, len(case.right), 3) for _ in range(data.draw(st.integers(1, 3)))]
    wanted = data.draw(st.lists(st.sampled_from(range(len(sets))), min_size=1, unique=True))
    own = data.draw(st.booleans()) and case.values.shape[1] <= case.codes.shape[1]
    first = data.draw(st.integers(0, case.codes.shape[1] - case.values.shape[1])) if own else 0
    column = int(case.right[source])
    offsets, positions = postings(case.codes[column], 4)
    at = case.values[source] >> 1
    starts = offsets[np.minimum(at, 4)]
    ends = np.where((case.values[source] & 1) | (at > 4), starts, offsets[np.minimum(at + 1, 5)])
    width = max(map(len, sets))
    groups = np.full((len(sets), width), -1, dtype=np.int32)
    ops = groups.copy()
    for i, asked in enumerate(sets):
        for j, (g, op) in enumerate(asked):
            groups[i, j], ops[i, j] = g, op
    found = dc_probe.walked_pairs(
        case.codes, case.live, case.values, case.right, positions, starts, ends.astype(np.int32),
        np.array(wanted, dtype=np.int32), groups, ops, own, first,
    )  # fmt: skip
    lists = case.codes.tolist(), case.values.tolist(), case.right.tolist()
    expected = [
        (b, r)
        for b, r in case.pairs
        if case.live[r]
        and not (own and r >= first + b)
        and reference.satisfied(*lists, [(source, reference.EQ)], b, r)
        and any(reference.satisfied(*lists, sets[k], b, r) for k in wanted)
    ]
    assert sorted(zip(found.batch.tolist(), found.old.tolist(), strict=True)) == expected


@pytest.mark.parametrize("max_groups", [4, 70])
@given(st.data())
def test_pairs_with_outcomes(max_groups: int, data: st.DataObject) -> None:
    """Also with more groups than a word has room for; all pairs are found in small blocks."""
    case = data.draw(cases(max_groups))
    there = [
        tuple(
            reference.outcome(
                bool(case.ordered[g]), int(case.values[g, b]), 2 * int(case.codes[case.right[g], r])
            )
            for g in range(len(case.right))
        )
        for b, r in case.pairs
    ]
    wanted = data.draw(st.lists(st.sampled_from(there), unique=True)) if there else []
    wanted.append(tuple([3] * len(case.right)))
    block = data.draw(st.integers(1, 9))
    blocks = dc_probe.pairs_with_outcomes(
        case.values, case.codes, case.right, case.ordered, np.array(wanted, dtype=np.uint8), block
    )
    found = [p for part in blocks for p in zip(part.batch.tolist(), part.old.tolist(), strict=True)]
    assert found == [pair for pair, outcomes in zip(case.pairs, there, strict=True) if outcomes in wanted]


def test_long_lists_grow_the_output() -> None:
    n = 5000
    codes = np.ones((1, n), dtype=np.int32)
    offsets, positions = postings(codes[0], 1)
    found = dc_probe.walked_pairs(
        codes, np.ones(n, np.bool_), np.full((1, 3), 2, np.int32), np.zeros(1, np.int32), positions,
        np.repeat(offsets[1:2], 3), np.repeat(offsets[2:3], 3), np.zeros(1, np.int32),
        np.zeros((1, 1), np.int32), np.zeros((1, 1), np.int32), False, 0,
    )  # fmt: skip
    assert len(found.batch) == 3 * n
    assert np.bincount(found.batch).tolist() == [n, n, n]
