"""Candidate keys: minimal uniques and maximal non-uniques, discovered and maintained (SWAN).

The evidence of a pair of rows is its agree set; the cover is the minimal hitting sets of the
complements; both live in the core. This module is the loop around them:

    propose a cover from the evidence -> validate what is new in it -> what refutes it is evidence

- `discover` starts the loop from a sample's evidence.
- `delete` drops the witnesses of deleted rows. Agree sets left without one are checked together;
  those that are gone relax the cover, and the loop validates the smaller keys.
- `insert` probes the old rows with the batch (SWAN alg. 1-2): all pairs that agree on a key. Their
  evidence alone repairs the cover: a pair that agrees on no key refutes none, and every new
  minimal unique is a superset of an old one. No further look at the data. Of a batch that is a large part
  of the table, keys whose lists are long are validated instead, and what then is new to the cover, too.

Departures from the paper: duplicate groups and PLIs are replaced by agree sets with witnesses
(a maximal non-unique is a maximal agree set, and a delete concerns it only if it hits every
witness); uniqueness is checked by partition refinement over all candidates at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.cover import Cover
from holdfast.core.evidence.agree_probe import probe
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.refute import validate
from holdfast.core.evidence.selective import selective
from holdfast.core.evidence.witnessed import WitnessedEvidence
from holdfast.core.rows.kernels.masks import contains_any, without
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.functional.refs import PinnedKey

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# Most pairs that agree on an indexed column are told apart by the next one.
PAIRS_PER_ROW = 4.0  # see `selective`


@dataclass(frozen=True, slots=True)
class KeyState:
    """What is known of a table's keys; exact for the relation it was computed on."""

    evidence: WitnessedEvidence
    cover: Cover
    rounds: int = 0  # validation jobs of the last step
    pins: tuple[PinnedKey, ...] = ()


def discover(relation: Relation, masks: U64, witnesses: I64, max_columns: int) -> KeyState:
    """The keys of a relation from scratch, starting from a sample's evidence."""
    evidence = WitnessedEvidence.empty(relation.n_words, WITNESSES).merged(masks, witnesses)
    cover = Cover.of(evidence.maximal, len(relation.schema), max_columns)
    return settle(relation, evidence, cover, proven=cover.masks[:0])


def settle(
    relation: Relation,
    evidence: WitnessedEvidence,
    cover: Cover,
    proven: U64,
    exhausted: U64 | None = None,
) -> KeyState:
    """Validate the cover's sets that are not `proven` to be unique, until all of them are.

    Every round's evidence refutes at least one proposed set for good, so the loop ends. What contains a set
    that a round has exhausted (`Refutation`) is unique, as it contradicts no evidence.
    """
    rounds, exhausted = 0, proven[:0] if exhausted is None else exhausted
    while True:
        proposed = cover.masks[without(cover.masks, proven)]
        proposed = proposed[~contains_any(proposed, exhausted)]
        if not len(proposed):
            return KeyState(evidence, cover, rounds)
        result = validate(relation, proposed)
        rounds += 1
        proven = np.concatenate([proven, proposed[~result.refuted]])
        exhausted = np.concatenate([exhausted, result.exhausted])
        if not result.refuted.any():
            return KeyState(evidence, cover, rounds)
        evidence = evidence.merged(result.masks, result.witnesses)
        cover = cover.repaired(result.masks, evidence.maximal)


def delete(relation: Relation, state: KeyState, row_ids: I64) -> KeyState:
    """The keys after rows were deleted; `relation` is without them already.

    Cost: a lookup of each witness; and only if one of the maximal non-uniques lost its last one,
    a validation of those, and of the smaller keys that their end allows.
    """
    evidence, orphans = state.evidence.without_rows(row_ids)
    if not len(orphans):
        return replace(state, evidence=evidence, rounds=0)
    check = validate(relation, orphans)
    evidence = evidence.merged(check.masks, check.witnesses)
    gone = orphans[~check.refuted]
    cover = state.cover.relaxed(gone, evidence.maximal)
    # What was unique stays unique: only sets that are new to the cover need a look.
    after = settle(relation, evidence, cover, proven=state.cover.masks, exhausted=check.exhausted)
    return replace(after, rounds=after.rounds + 1)


def insert(
    relation: Relation, state: KeyState, batch: Sequence[SegmentRef], index_columns: Sequence[int]
) -> KeyState:
    """The keys after the batch's segments were added; `relation` has them already."""
    cover = state.cover
    if not len(cover) or not sum(s.n_rows for s in batch):
        return replace(state, rounds=0)  # no key left to break
    if not cover.masks.any(axis=1).all():
        # The empty key: there was one row at most, so the batch is the table.
        return settle(relation, state.evidence, cover, proven=cover.masks[:0])
    keys = cover.masks
    probed = selective(relation, keys, index_columns, sum(s.n_rows for s in batch), PAIRS_PER_ROW)
    masks, witnesses, unique = keys[:0], state.evidence.witnesses[:0], probed.copy()
    if probed.any():
        non_uniques = state.evidence.maximal
        masks, witnesses = probe(relation, batch, keys[probed], index_columns, non_uniques=non_uniques)
    if not probed.all():
        check = validate(relation, keys[~probed])
        unique[~probed] = ~check.refuted
        masks = np.concatenate([masks, check.masks])
        witnesses = np.concatenate([witnesses, check.witnesses])
    rounds = int(not probed.all())
    if not len(masks):
        return replace(state, rounds=rounds)
    evidence = state.evidence.merged(masks, witnesses)
    after = cover.repaired(masks, evidence.maximal)
    if probed.all():
        return KeyState(evidence, after, rounds)
    # All pairs that agree on a probed key are evidence, so what contains one is unique, as is what contains
    # one that is valid.
    proven = after.masks[contains_any(after.masks, keys[unique])]
    settled = settle(relation, evidence, after, proven)
    return replace(settled, rounds=rounds + settled.rounds)
