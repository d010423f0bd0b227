"""Witnessed evidence of denial constraints: every evidence of the table, each with pairs that prove it.

Kind of state: quadratic, without its counts. Unlike agree sets, of which the maximal ones decide, hardly any
evidence lies inside another: a pair is less, equal or greater in each group. So all of it matters. Law: if
the cover of this evidence is valid on the table, every evidence of the table is here, or inside one that is
(which only a NULL on one side brings about).

A row that is deleted takes its witnesses along. Evidence without a witness is an orphan: it may still be that
of a pair that nobody wrote down, so it is looked for on the rows or dropped, never trusted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels.living_pairs import living
from holdfast.core.evidence.witnessed import joined
from holdfast.core.evidence.witnessed_masks import WitnessedMasks

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


class DcEvidence(WitnessedMasks):
    """Predicates that pairs satisfy; a witness is a pair (t, s), in this order."""

    __slots__ = ()

    def merged(self, masks: U64, witnesses: I64) -> DcEvidence:
        """With further evidence: witnesses of equal masks are united."""
        if not len(masks):
            return self
        distinct, united = joined(self.masks, self.witnesses, masks, witnesses, directed=True)
        return self if distinct is self.masks else DcEvidence(distinct, united)

    def without_rows(self, row_ids: I64) -> tuple[DcEvidence, DcEvidence]:
        """(evidence, orphans): witnesses of these rows dropped; what is left without one, as it was.

        Cost: a lookup for each witness held.
        """
        pairs = living(self.witnesses, row_ids)
        if pairs is self.witnesses:
            return self, DcEvidence(self.masks[:0], self.witnesses[:0])
        alive = pairs[:, 0, 0] >= 0
        if alive.all():
            return DcEvidence(self.masks, pairs), DcEvidence(self.masks[:0], self.witnesses[:0])
        remaining = DcEvidence(np.ascontiguousarray(self.masks[alive]), pairs[alive])
        return remaining, DcEvidence(np.ascontiguousarray(self.masks[~alive]), self.witnesses[~alive])
