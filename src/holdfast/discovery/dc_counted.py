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

from holdfast.discovery.dcs import DcOptions, DcState, kernel_space, near_cover
from holdfast.discovery.proofs import Proofs
from holdfast.errors import NOTHING_APPLIED, DamagedFileError
from holdfast.model.predicate import PredicateSpace
from holdfast.pipeline.comparison import Compared, compare_all, compare_deletes, compare_inserts
from holdfast.pipeline.relation import Relation
from holdfast.state.counted import CountedEvidence
from holdfast.state.dc_cover import DcCover
from holdfast.storage.tables import SegmentRef

I64 = NDArray[np.int64]


def discover(relation: Relation, space: PredicateSpace, options: DcOptions, *, chosen: bool) -> DcState:
    """The constraints of a new relation, from all of its pairs."""
    compared = compare_all(relation, space)
    evidence, _, _ = CountedEvidence.empty(space.n_predicates).changed(compared.masks, compared.counts)
    cover = DcCover.of(evidence.masks, kernel_space(space), options.max_predicates)
    found = DcState(space, evidence, cover, options.max_error, operators=options.operators, chosen=chosen)
    return _with_errors(found, relation.n_rows)


def change(
    state: DcState,
    before: Relation,
    remaining: Relation,
    relation: Relation,
    row_ids: I64,
    added: Sequence[SegmentRef],
) -> DcState:
    """The constraints after a batch: `before` it, `remaining` without the deleted rows, `relation` after it.

    Cost: comparing the batch with all rows; then only what came or went.
    """
    assert isinstance(state.evidence, CountedEvidence)
    nothing = Compared.none(state.n_words)
    gone = compare_deletes(before, remaining, row_ids, state.space) if len(row_ids) else nothing
    come = compare_inserts(relation, added, state.space) if added else nothing
    delta = np.concatenate([come.masks, gone.masks]), np.concatenate([come.counts, -gone.counts])
    try:
        evidence, new, old = state.evidence.changed(*delta)
    except ValueError as error:
        raise DamagedFileError(
            f"the evidence kept in {before.folder!r} is not that of its rows: {error}. {NOTHING_APPLIED} "
            "Restore the workspace from a backup, or rebuild the table with 'holdfast track'."
        ) from error
    found = replace(
        state,
        evidence=evidence,
        cover=state.cover.repaired(evidence.masks, new, old),
        rounds=0,
        delta=delta,
        came=Proofs.among(come, new),
        went=Proofs.among(gone, old),
    )
    return _with_errors(found, relation.n_rows)


def _with_errors(found: DcState, n_rows: int) -> DcState:
    """With the approximate cover, if one is kept."""
    if not found.max_error:
        return found
    assert isinstance(found.evidence, CountedEvidence)
    near = near_cover(
        found.evidence, found.space, found.operators, n_rows, found.max_error, found.cover.max_size
    )
    return replace(found, approximate=near)
