"""Witnessed evidence of denial constraints: every evidence of the table, each with pairs that prove it.

Kind of state: quadratic, without its counts. Unlike agree sets, of which the maximal ones decide, hardly any
evidence lies inside another: a pair is less, equal or greater in each group. So all of it matters. Law: if
the cover of this evidence is valid on the table, every evidence of the table is here, or that of its pairs
the other way round, or one of them is inside one that is (which only a NULL on one side brings about).

A row that is deleted takes its witnesses along. Evidence without a witness is an orphan: it may still be that
of a pair that nobody wrote down, so it is looked for on the rows or dropped, never trusted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels.living_pairs import living
from holdfast.core.evidence.witnessed import joined, with_witnesses
from holdfast.core.evidence.witnessed_masks import WitnessedMasks
from holdfast.core.rows.kernels.mask_lookup import indices_in
from holdfast.core.rows.kernels.masks import unique_masks

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DcEvidence(WitnessedMasks):
    """Predicates that pairs satisfy; a witness is a pair (t, s), in this order."""

    changed: U64 | None = None  # masks that a step has touched so far; None if nobody asks for that

    def afresh(self) -> DcEvidence:
        """The same at the beginning of a step."""
        return replace(self, changed=self.masks[:0])

    def merged(self, masks: U64, witnesses: I64) -> DcEvidence:
        """With further evidence: witnesses of equal masks are united."""
        if not len(masks):
            return self
        distinct, united, changed = joined(self.masks, self.witnesses, masks, witnesses, directed=True)
        return DcEvidence(distinct, united, self._touching(changed)) if len(changed) else self

    def without_rows(self, row_ids: I64) -> tuple[DcEvidence, DcEvidence]:
        """(evidence, orphans): witnesses of these rows dropped; what is left without one, as it was.

        Cost: a glance at each witness held, and a copy if some go.
        """
        at, left = living(self.witnesses, row_ids)
        orphaned = at[left[:, 0, 0] < 0]
        orphans = DcEvidence(self.masks[orphaned], self.witnesses[orphaned])
        if not len(at):
            return self, orphans
        remaining = with_witnesses(self.masks, self.witnesses, at, left)
        return DcEvidence(*remaining, self._touching(self.masks[at])), orphans

    def _touching(self, masks: U64) -> U64 | None:
        return None if self.changed is None else np.concatenate([self.changed, masks])

    def delta(self) -> tuple[U64, I64]:
        """What the step has changed: masks, and the witnesses that they have now, none if they are gone.

        Cost: a pass over all masks.
        """
        assert self.changed is not None
        masks = self.changed[unique_masks(self.changed)[0]]
        at = indices_in(masks, self.masks)
        witnesses = np.full((len(masks), *self.witnesses.shape[1:]), -1, dtype=np.int64)
        witnesses[at >= 0] = self.witnesses[at[at >= 0]]
        return masks, witnesses

    def with_delta(self, masks: U64, witnesses: I64) -> DcEvidence:
        """With what steps have changed, each mask once. Cost: a pass over all masks, and a copy."""
        at = indices_in(masks, self.masks)
        known = at >= 0
        fresh = ~known & (witnesses[:, 0, 0] >= 0)
        there, pairs = with_witnesses(self.masks, self.witnesses, at[known], witnesses[known])
        return DcEvidence(np.concatenate([there, masks[fresh]]), np.concatenate([pairs, witnesses[fresh]]))
