"""Denial constraints on counted evidence: the predicates that all pairs satisfy, under deltas.

    discover: all pairs of rows             -> evidence -> cover
    change:   inserted x all, deleted x all -> evidence +/- -> what came or went -> cover repaired

No row is looked at to decide whether a constraint holds: evidence that contains it is there, or it is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.job_progress import Progress
from holdfast.core.evidence.comparison import compare_all
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.counted_change import changed
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.words.predicate import PredicateSpace
from holdfast.denial.budget import Search, searched
from holdfast.denial.dc_cover import DcCover
from holdfast.denial.dc_state import DcOptions, DcState, kernel_space, near_cover

I64 = NDArray[np.int64]


def discover(
    relation: Relation,
    space: PredicateSpace,
    options: DcOptions,
    progress: Progress | None = None,
    *,
    chosen: bool,
) -> DcState:
    """The constraints of a new relation, from all of its pairs."""
    compared = compare_all(relation, space)
    evidence, _, _ = CountedEvidence.empty(space.n_predicates).changed(compared.masks, compared.counts)
    kernel = kernel_space(space)

    def attempt(bound: int, search: Search) -> DcState:
        cover = search.within(lambda watch: DcCover.of(evidence.masks, kernel, bound, watch))
        state = DcState(
            space,
            evidence,
            cover,
            options.max_error,
            operators=options.operators,
            chosen=chosen,
            within_columns=options.within_columns,
            limits=options.limits,
        )
        return _with_errors(state, relation.n_rows, search)

    return searched(options.limits, options.max_predicates, len(space.groups), progress, attempt)


def change(
    state: DcState,
    before: Relation,
    remaining: Relation,
    relation: Relation,
    row_ids: I64,
    added: Sequence[SegmentRef],
    progress: Progress | None = None,
) -> DcState:
    """The constraints after a batch: `before` it, `remaining` without the deleted rows, `relation` after it.

    Cost: comparing the batch with all rows, or the rows that are left if they are few; then only what came or
    went.
    """
    assert isinstance(state.evidence, CountedEvidence)
    evidence, new, gone, delta, came, went = changed(
        state.evidence, before, remaining, relation, row_ids, added, state.space
    )
    after = replace(state, evidence=evidence, rounds=0, delta=delta, came=came, went=went)

    def attempt(bound: int, search: Search) -> DcState:
        bounded = state.cover.bounded(bound)
        cover = search.within(lambda watch: bounded.repaired(evidence.masks, new, gone, watch))
        return _with_errors(replace(after, cover=cover), relation.n_rows, search)

    return searched(state.limits, state.cover.max_size, len(state.space.groups), progress, attempt)


def _with_errors(state: DcState, n_rows: int, search: Search) -> DcState:
    """With the approximate cover, if one is kept."""
    if not state.max_error:
        return state
    evidence, space = state.evidence, state.space
    assert isinstance(evidence, CountedEvidence)
    near = search.within(
        lambda watch: near_cover(
            evidence, space, state.operators, n_rows, state.max_error, state.cover.max_size, watch
        )
    )
    return replace(state, approximate=near)
