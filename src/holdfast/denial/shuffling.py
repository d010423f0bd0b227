"""What chance would make of comparisons: were every column shuffled, how often would they be satisfied?

A column that is shuffled has the same values as before, and nothing to do with the others. So what is
violated then is not said by the columns alone. Looked at are some SHUFFLED rows of the largest segment,
evenly spaced: these are estimates, and different texts of one code count as equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.kernels.operators import EQUAL, NULL
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import comparison
from holdfast.denial.kernels import row_outcomes
from holdfast.denial.row_counting import Rows, compared_pairs, is_wide, ordered_pairs
from holdfast.denial.row_counts import SATISFYING

U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

SHUFFLED = 1 << 12
# With how many others each row is compared.
ROUNDS = 32


def count_shuffled(relation: Relation, pairs: I32) -> I64:
    """The outcomes of two columns in different rows, as of one row: int64[n_pairs, 4].

    IN pairs as in `row_counting.count_all`. Cost: 0.1 to 0.3 ns for each pair, row and round.
    """
    counts = np.zeros((len(pairs), 4), dtype=np.int64)
    segment, at = _sample(relation)
    if segment is None or not len(pairs):
        return counts
    columns, sides = compared_pairs(Rows(segment, at), pairs)
    others, ordered = sides + np.array([0, len(columns)]), ordered_pairs(segment.schema.types, pairs)
    for shift in np.unique(np.linspace(1, len(at) - 1, ROUNDS).astype(np.int64)):
        turned, _ = compared_pairs(Rows(segment, np.roll(at, shift)), pairs)
        counts += row_outcomes.count_outcomes([*columns, *turned], others, ordered)
    return counts


def shuffled_shares(relation: Relation, dcs: Sequence[Dc]) -> F64:
    """The share of the pairs of rows that satisfy all predicates of each DC: float64[n].

    Each column has values of two different rows, drawn at random, the same in every call. Cost: ROUNDS
    passes over SHUFFLED values for each two columns that are compared, and for each predicate of a DC.
    """
    satisfying = np.zeros(len(dcs), dtype=np.int64)
    segment, at = _sample(relation)
    if segment is None or not dcs:
        return satisfying.astype(np.float64)
    names = list(relation.schema.names)
    groups = dict.fromkeys((names.index(p.left), names.index(p.right)) for dc in dcs for p in dc.predicates)
    draw = np.random.default_rng(0)
    for _ in range(ROUNDS):
        first = {c: draw.integers(len(at), size=SHUFFLED) for group in groups for c in group}
        second = {c: (rows + draw.integers(1, len(at), size=SHUFFLED)) % len(at) for c, rows in first.items()}
        outcomes = {(a, b): _outcomes(segment, a, at[first[a]], b, at[second[b]]) for a, b in groups}
        for i, dc in enumerate(dcs):
            violated = np.ones(SHUFFLED, dtype=np.bool_)
            for p in dc.predicates:
                outcome = outcomes[names.index(p.left), names.index(p.right)]
                allowed = [*SATISFYING[p.op], NULL] if p.op == "!=" else SATISFYING[p.op]
                violated &= np.isin(outcome, allowed)
            satisfying[i] += np.count_nonzero(violated)
    return satisfying / (SHUFFLED * ROUNDS)


def _sample(relation: Relation) -> tuple[Segment | None, I64]:
    """The largest segment and some positions in it; None if it has fewer than two live rows."""
    largest = max(relation.segments, key=lambda s: s.n_live, default=None)
    if largest is None or largest.n_live < 2:
        return None, np.empty(0, np.int64)
    segment = open_segment(relation.root, largest, relation.schema)
    live = np.flatnonzero(segment.live)
    return segment, live[:: -(-len(live) // SHUFFLED)]


def _outcomes(segment: Segment, a: int, at: I64, b: int, others: I64) -> U8:
    """The outcomes of column a at some positions with column b at others; two NULLs are equal."""
    left_type, right_type = segment.schema.types[a], segment.schema.types[b]
    wide = is_wide(left_type, right_type)
    left, right = Rows(segment, at).compared(a, wide=wide), Rows(segment, others).compared(b, wide=wide)
    outcomes = row_outcomes.outcomes(left, right, comparison(left_type, right_type) == "order")
    outcomes[(left.codes == 0) & (right.codes == 0)] = EQUAL
    return outcomes
