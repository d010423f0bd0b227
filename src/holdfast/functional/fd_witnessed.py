"""Functional dependencies on witnessed evidence: cover, probe, validate.

    propose a cover from the evidence -> validate what is new in it -> what refutes it is evidence

- `discover` starts the loop from a sample's evidence.
- `delete` drops the witnesses of deleted rows. Relevant agree sets left without one are checked together;
  those that are gone relax the cover, and the loop validates the smaller left-hand sides.
- `insert` probes the old rows with the batch: all pairs that agree on a left-hand side and differ on its
  right-hand side. Their evidence alone repairs the cover: a pair that violates a new, larger left-hand side
  violates the old one inside it. Left-hand sides of which that costs less are validated instead.

No pass over all pairs is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.agree_probe import probe
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.proofs import Proofs
from holdfast.core.evidence.refute import validate_fds
from holdfast.core.evidence.selective import selective
from holdfast.core.rows.kernels.masks import contains_any, without
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.functional.fd_cover import FdCover, by_lhs, has_column, keyed
from holdfast.functional.fd_evidence import FdEvidence
from holdfast.functional.fd_state import FdState

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Most pairs that agree on an indexed column differ on some right-hand side: all their columns are compared.
PAIRS_PER_ROW = 1.0  # see `selective`


def discover(relation: Relation, masks: U64, witnesses: I64, max_lhs: int) -> FdState:
    """The dependencies of a relation from scratch, starting from a sample's evidence."""
    evidence = FdEvidence.empty(len(relation.schema), WITNESSES).merged(masks, witnesses)
    cover = FdCover.of(evidence.relevant, max_lhs)
    return settle(relation, evidence, cover, proven=cover.keyed[:0])


def settle(relation: Relation, evidence: FdEvidence, cover: FdCover, proven: U64) -> FdState:
    """Validate the dependencies of the cover that are not `proven` to hold, until all of them do.

    Every round's evidence refutes at least one proposed dependency for good, so the loop ends.
    """
    rounds = 0
    while True:
        fresh = without(cover.keyed, proven)
        if not fresh.any():
            return FdState(evidence, cover, None, rounds=rounds)
        masks, rhs = cover.masks[fresh], cover.rhs[fresh]
        lhs, together, group = by_lhs(masks, rhs)
        result = validate_fds(relation, lhs, together)
        rounds += 1
        refuted = has_column(result.refuted[group], rhs)
        proven = np.concatenate([proven, keyed(masks[~refuted], rhs[~refuted])])
        if not refuted.any():
            return FdState(evidence, cover, None, rounds=rounds)
        merged = evidence.merged(result.masks, result.witnesses)
        cover = cover.repaired(evidence.relevant, merged.relevant)
        evidence = merged


def delete(relation: Relation, state: FdState, row_ids: I64) -> FdState:
    """The dependencies after rows were deleted; `relation` is without them already.

    Cost: a lookup of each witness; and only if a relevant agree set lost its last one, a validation of those
    and of the smaller left-hand sides that their end allows.
    """
    before = state.evidence
    assert isinstance(before, FdEvidence)
    evidence, orphans, columns = before.without_rows(row_ids)
    if not len(orphans):
        return FdState(evidence, state.cover, None)
    check = validate_fds(relation, orphans, columns)
    evidence = evidence.merged(check.masks, check.witnesses)
    cover = state.cover.repaired(before.relevant, evidence.relevant)
    # What held holds still: only what is new to the cover needs a look.
    after = settle(relation, evidence, cover, proven=state.cover.keyed)
    gone = ~check.refuted.any(axis=1)
    at = ~without(before.masks, orphans[gone])
    went = Proofs(before.masks[at], before.witnesses[at, 0])
    return FdState(after.evidence, after.cover, None, rounds=after.rounds + 1, went=went)


def insert(
    relation: Relation, state: FdState, batch: Sequence[SegmentRef], index_columns: Sequence[int]
) -> FdState:
    """The dependencies after the batch's segments were added; `relation` has them already."""
    cover, before = state.cover, state.evidence
    assert isinstance(before, FdEvidence)
    if not len(cover) or not sum(s.n_rows for s in batch):
        return FdState(before, cover, None, went=state.went)  # nothing left to break
    lhs, together, group = by_lhs(cover.masks, cover.rhs)
    n_batch = sum(s.n_rows for s in batch)
    probed = selective(relation, lhs, index_columns, n_batch, PAIRS_PER_ROW)
    evidence = before
    if probed.any():
        masks, witnesses = probe(relation, batch, lhs[probed], index_columns, together[probed])
        evidence = evidence.merged(masks, witnesses)
    rounds, holding = 0, probed[group]
    if not probed.all():
        check = validate_fds(relation, lhs[~probed], together[~probed])
        evidence = evidence.merged(check.masks, check.witnesses)
        rounds = 1
        refuted = np.zeros_like(together)
        refuted[~probed] = check.refuted
        holding = holding | ~has_column(refuted[group], cover.rhs)
    if evidence is before:
        return FdState(before, cover, None, rounds=rounds, went=state.went)
    after = cover.repaired(before.relevant, evidence.relevant)
    proven = _proven(after, cover, holding)
    settled = settle(relation, evidence, after, proven=keyed(after.masks[proven], after.rhs[proven]))
    return FdState(settled.evidence, settled.cover, None, rounds=rounds + settled.rounds, went=state.went)


def _proven(after: FdCover, before: FdCover, holding: Bool) -> Bool:
    """Which dependencies of `after` need no validation: bool[n].

    All pairs that violate a probed left-hand side, or one that was validated, are in the evidence; so are
    all that violate a larger one.
    """
    ends = np.cumsum([0, *(len(c) for c in before.covers)])
    parts = []
    for a, cover in enumerate(after.covers):
        held = before.covers[a].masks[holding[ends[a] : ends[a + 1]]]
        parts.append(contains_any(cover.masks, held) if len(held) else np.zeros(len(cover), np.bool_))
    return np.concatenate(parts)
