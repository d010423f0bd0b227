"""Functional dependencies on counted evidence (DynASt): the agree sets of all pairs, under deltas.

    discover: all pairs of rows          -> evidence -> relevant agree sets -> cover
    change:   inserted x all, deleted x all -> evidence +/- -> those that came or went -> cover repaired

No row is looked at to decide whether a dependency holds: its agree sets are there, or they are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.approximate import approximate_cover
from holdfast.core.cover.cover import Cover
from holdfast.core.evidence.comparison import compare_all
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.counted_change import changed
from holdfast.core.rows.kernels.masks import mask_of, n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.functional.fd_cover import FdCover, Relevant
from holdfast.functional.fd_state import FdState

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# With more agree sets than this, left-hand sides of at most so many columns are tried one by one on the
# index: finding the relevant ones among 326,698 agree sets of 222 columns takes 45 s, trying columns 0.1 s.
TRIED_FROM = {1: 4_000, 2: 50_000}


def discover(relation: Relation, max_lhs: int, max_error: float) -> FdState:
    """The dependencies of a new relation, from all of its pairs."""
    compared = compare_all(relation)
    n_columns = len(relation.schema)
    evidence, _, _ = CountedEvidence.empty(n_columns).changed(compared.masks, compared.counts)
    relevant: Relevant | None = None
    if _tried(evidence, max_lhs):
        cover = tried_cover(evidence, max_lhs)
    else:
        relevant = Relevant.of(evidence.masks, n_columns)
        cover = FdCover.of(relevant, max_lhs)
    state = FdState(evidence, cover, relevant, max_error)
    return _with_errors(state, relation.n_rows)


def change(
    state: FdState,
    before: Relation,
    remaining: Relation,
    relation: Relation,
    row_ids: I64,
    added: Sequence[SegmentRef],
) -> FdState:
    """The dependencies after a batch: `before` it, `remaining` without the deleted rows, `relation` after it.

    Cost: comparing the batch with all rows, or the rows that are left if they are few; then only what came or
    went.
    """
    assert isinstance(state.evidence, CountedEvidence)
    evidence, new, gone, delta, came, went = changed(
        state.evidence, before, remaining, relation, row_ids, added
    )
    relevant, max_lhs = state.relevant, state.cover.max_lhs
    if _tried(evidence, max_lhs):
        relevant = None
        cover = tried_cover(evidence, max_lhs, state.cover if not len(gone) else None)
        if np.array_equal(cover.keyed, state.cover.keyed):
            cover = state.cover
    elif relevant is None:
        relevant = Relevant.of(evidence.masks, evidence.n_columns)
        cover = FdCover.of(relevant, max_lhs)
    else:
        relevant = relevant.changed(new, gone, evidence.masks)
        cover = state.cover.repaired(state.relevant, relevant)  # type: ignore[arg-type]
    after = FdState(evidence, cover, relevant, state.max_error, delta=delta, came=came, went=went)
    return _with_errors(after, relation.n_rows)


def _tried(evidence: CountedEvidence, max_lhs: int) -> bool:
    return max_lhs in TRIED_FROM and len(evidence) > TRIED_FROM[max_lhs]


def tried_cover(evidence: CountedEvidence, max_lhs: int, grown: FdCover | None = None) -> FdCover:
    """The minimal dependencies with at most max_lhs columns on the left, each tried on the index.

    Level by level: a set is tried if none of its parts holds. Equal to the hitting sets, by test. `grown` is
    the cover before agree sets were added and none vanished: right-hand sides of which all dependencies
    still hold keep theirs.
    """
    n = evidence.n_columns
    covers = list(grown.covers) if grown is not None else []
    tried_rhs = np.arange(n)
    if grown is not None:
        tried_rhs = np.unique(grown.rhs[~evidence.holds(grown.masks, grown.rhs.astype(np.int64))])
    nothing = np.zeros((n, n_words_for(n)), np.uint64)
    constant = np.zeros(n, np.bool_)
    constant[tried_rhs] = evidence.holds(nothing[tried_rhs], tried_rhs)
    single = np.stack([mask_of([c], nothing.shape[1]) for c in range(n)])
    open_ = tried_rhs[~constant[tried_rhs]]
    left, right = (grid.ravel() for grid in np.meshgrid(np.arange(n), open_, indexing="ij"))
    left, right = left[left != right], right[left != right]
    holds = evidence.holds(single[left], right)
    masks_of: dict[int, U64] = {}
    for a in tried_rhs.tolist():
        if constant[a]:
            masks_of[a] = nothing[:1]
            continue
        of_rhs = right == a
        parts = [single[left[of_rhs & holds]]]
        if max_lhs > 1:
            failing = single[left[of_rhs & ~holds]]
            first, second = np.triu_indices(len(failing), 1)
            tried = failing[first] | failing[second]
            parts.append(tried[evidence.holds(tried, np.full(len(tried), a, np.int64))])
        masks_of[a] = np.concatenate(parts)
    if grown is None:
        return FdCover(tuple(Cover(masks_of[a], n, max_lhs) for a in range(n)), max_lhs)
    for a, masks in masks_of.items():
        covers[a] = Cover(masks, n, max_lhs)
    return FdCover(tuple(covers), max_lhs)


def _with_errors(state: FdState, n_rows: int) -> FdState:
    """With the approximate cover, if one is kept."""
    if not state.max_error:
        return state
    assert isinstance(state.evidence, CountedEvidence)
    cover = approximate_cover(state.evidence, n_rows, state.max_error, state.cover.max_lhs)
    return replace(state, approximate=cover)
