"""Approximate denial constraints: by definition from the rows, exact at the threshold, shorter above it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.core.cover.kernels.search import minimal_dcs
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, positions_of
from holdfast.denial.approximate_dcs import ApproximateDcs, allowed_ordered_pairs, approximate_dcs
from reference.approximate_dcs import within
from reference.dc_hitting_sets import OPERATORS, Dc, Predicates
from reference.predicate_evidence import holds

# Two columns of one ordered type, compared with each other too, and one of another type.
PREDICATES = Predicates([(0, 0, True), (1, 1, True), (0, 1, True), (1, 0, True), (2, 2, False)])
SPACE = Space(
    np.array([g for g, _ in PREDICATES.predicates], dtype=np.int32),
    np.array([OPERATORS.index(op) for _, op in PREDICATES.predicates], dtype=np.int32),
    np.array(PREDICATES.mirror, dtype=np.int32),
    general=True,
)
N_PREDICATES = len(PREDICATES.predicates)
Row = tuple[int | None, int | None, str | None]
NUMBERS = st.none() | st.integers(0, 2)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.sampled_from([None, "a", "b"])), max_size=8)
ERRORS = st.sampled_from([0.0, 0.01, 0.1, 0.2, 0.29, 1 / 3, 0.5, 1.0]) | st.floats(0, 1)


def counts_of(rows: list[Row]) -> Counter[Dc]:
    """By comparing every value of every ordered pair."""
    return Counter(
        frozenset(
            i
            for i, (g, op) in enumerate(PREDICATES.predicates)
            if holds(t[PREDICATES.groups[g][0]], op, s[PREDICATES.groups[g][1]])
        )
        for j, t in enumerate(rows)
        for k, s in enumerate(rows)
        if j != k
    )


def evidence_of(rows: list[Row]) -> CountedEvidence:
    counts = counts_of(rows)
    n_words = n_words_for(N_PREDICATES)
    masks = np.array([mask_of(s, n_words) for s in counts], dtype=np.uint64).reshape(-1, n_words)
    numbers = np.array(list(counts.values()), dtype=np.int64)
    return CountedEvidence.empty(N_PREDICATES).changed(masks, numbers)[0]


def told(dcs: ApproximateDcs) -> dict[tuple[int, ...], int]:
    found = dict(zip(map(positions_of, dcs.masks), dcs.violations.tolist(), strict=True))
    assert len(found) == len(dcs)
    return found


@given(ROWS, ERRORS, st.integers(0, 4))
@example([(1, 1, "a"), (1, 1, "a"), (2, 1, "a")], 1 / 3, 0)
@example([(None, 1, None), (None, 1, None), (2, None, "a")], 0.5, 2)
def test_by_definition(rows: list[Row], error: float, max_size: int) -> None:
    found = told(approximate_dcs(evidence_of(rows), SPACE, len(rows), error, max_size))
    allowed = allowed_ordered_pairs(error, len(rows))
    event(f"{min(len(found), 20)} constraints")
    assert found == within(PREDICATES, counts_of(rows), allowed, max_size)


@given(ROWS, st.integers(0, 3))
def test_error_zero_is_exact(rows: list[Row], max_size: int) -> None:
    evidence = evidence_of(rows)
    dcs = approximate_dcs(evidence, SPACE, len(rows), 0.0, max_size)
    assert dcs.masks.tolist() == minimal_dcs(evidence.masks, SPACE, max_size).tolist()
    assert not dcs.violations.any()


@given(ROWS, st.tuples(ERRORS, ERRORS))
def test_a_larger_error_only_loosens(rows: list[Row], errors: tuple[float, float]) -> None:
    """What is within the smaller error is one within the larger, or one of these made stricter."""
    evidence = evidence_of(rows)
    strict, loose = (approximate_dcs(evidence, SPACE, len(rows), e) for e in sorted(errors))

    def known(dc: Dc) -> bool:
        image = PREDICATES.mirrored(dc)
        if min(tuple(sorted(dc)), tuple(sorted(image))) in general:
            return True
        return any(known(other) for other in PREDICATES.looser(dc))

    general = told(loose)
    assert all(known(frozenset(dc)) for dc in told(strict))


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(0, 10**4))
@example(200, 100, 29)
@example(10**6, 10**4, 1)
def test_allowed_ordered_pairs(n_rows: int, below: int, above: int) -> None:
    """The greatest number of pairs whose share is not above the error, as it was written."""
    share = Fraction(min(above, below), below)
    allowed = allowed_ordered_pairs(float(share), n_rows)
    assert allowed <= share * n_rows * (n_rows - 1) < allowed + 1


def test_no_rows_and_one() -> None:
    for n_rows in (0, 1):
        dcs = approximate_dcs(CountedEvidence.empty(N_PREDICATES), SPACE, n_rows, 0.1)
        assert told(dcs) == {(): 0}
