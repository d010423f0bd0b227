"""Witnessed evidence: agree sets that matter for the cover, each with live pairs that prove it.

Kind of state: quadratic, kept in part. Of all pairs of rows only the *maximal* agree sets decide
which combinations are unique: they are the maximal non-uniques. Law: if the cover computed from
this evidence is valid on the table, then the maximal masks held here are exactly the table's
maximal non-uniques (both are minimal transversals of each other).

A row that is deleted takes its witnesses along. A mask without a witness is an orphan: it may
still hold, by a pair that nobody wrote down, so it is checked on the data or dropped, never
trusted. Masks below a maximal one are kept as a reserve: when the larger one goes, they are
evidence at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels.living_pairs import living
from holdfast.core.evidence.witnessed_masks import WitnessedMasks
from holdfast.core.rows.kernels.mask_lookup import indices_in
from holdfast.core.rows.kernels.masks import maximal_masks, popcounts, unique_masks

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# Non-maximal masks kept: enough to absorb the deletes of most batches, little to store.
RESERVE = 4096


class WitnessedEvidence(WitnessedMasks):
    """Agree sets: those that are maximal, and some below them."""

    __slots__ = ()

    @property
    def maximal(self) -> U64:
        """The maximal masks: the maximal non-uniques, once the cover is valid."""
        return self.masks[maximal_masks(self.masks)]

    def merged(self, masks: U64, witnesses: I64) -> WitnessedEvidence:
        """With further evidence: witnesses of equal masks are united, the reserve is cut to size.

        Cost: a hash of each mask, a sort of the new witnesses.
        """
        if not len(masks):
            return self
        distinct, united, changed = joined(self.masks, self.witnesses, masks, witnesses)
        if not len(changed):
            return self
        needed = np.zeros(len(distinct), dtype=np.bool_)
        needed[maximal_masks(distinct)] = True
        chosen = with_reserve(distinct, needed, RESERVE)
        return WitnessedEvidence(np.ascontiguousarray(distinct[chosen]), united[chosen])

    def without_rows(self, row_ids: I64) -> tuple[WitnessedEvidence, U64]:
        """(evidence, orphans): witnesses of these rows dropped; maximal masks left without one.

        Orphans are no longer part of the evidence. Cost: a lookup for each witness held.
        """
        at, left = living(self.witnesses, row_ids)
        if not len(at):
            return self, self.masks[:0]
        orphaned = np.zeros(len(self), dtype=np.bool_)
        orphaned[maximal_masks(self.masks)] = True
        orphans = self.masks[at[orphaned[at] & (left[:, 0, 0] < 0)]]
        return WitnessedEvidence(*with_witnesses(self.masks, self.witnesses, at, left)), orphans


def with_witnesses(masks: U64, witnesses: I64, at: I64, others: I64) -> tuple[U64, I64]:
    """(masks, witnesses) with other witnesses of the masks IN at int64[*], all different.

    Those that have none are no evidence: the last ones take their places, which is faster than moving all
    that come after them. Cost: a copy.
    """
    gone = at[others[:, 0, 0] < 0]
    n_left = len(masks) - len(gone)
    witnesses = witnesses.copy()
    witnesses[at] = others
    if not len(gone):
        return masks, witnesses
    moved = np.setdiff1d(np.arange(n_left, len(masks)), gone)
    holes = gone[gone < n_left]
    remaining = masks[:n_left].copy()
    remaining[holes], witnesses[holes] = masks[moved], witnesses[moved]
    return remaining, witnesses[:n_left]


def joined(
    masks: U64, witnesses: I64, more_masks: U64, more_witnesses: I64, *, directed: bool = False
) -> tuple[U64, I64, U64]:
    """(masks, witnesses, changed) of two lots of evidence: every mask once, with the witnesses of both.

    The masks of the first lot are all different, their witnesses as `unite` gives them; the same arrays come
    back if nothing is new. `changed` are the masks that the first lot lacks, or has with other witnesses.
    Unless pairs are `directed`, (a, b) is the same as (b, a).

    Cost: a hash of each mask, and a sort of the witnesses of masks of the second lot.
    """
    first, group = unique_masks(more_masks)
    different = more_masks[first]
    at = indices_in(different, masks)
    known = np.flatnonzero(at >= 0)
    more = more_witnesses if directed else np.sort(more_witnesses, axis=2)
    united = unite(np.concatenate([witnesses[at[known]], more]), np.concatenate([known, group]), len(first))
    fresh = at < 0
    changed = fresh.copy()
    changed[known] = (united[known] != witnesses[at[known]]).any(axis=(1, 2))
    if not changed.any():
        return masks, witnesses, different[:0]
    pairs = np.concatenate([witnesses, united[fresh]])
    pairs[at[known]] = united[known]
    return np.concatenate([masks, different[fresh]]), pairs, different[changed]


def with_reserve(masks: U64, needed: NDArray[np.bool_], reserve: int) -> I64:
    """The positions of the masks to keep, ascending: those needed, and the largest of the others."""
    spare = np.flatnonzero(~needed)
    largest = spare[np.argsort(-popcounts(masks[spare]), kind="stable")[:reserve]]
    return np.sort(np.concatenate([np.flatnonzero(needed), largest]))


def unite(pairs: I64, group: I64, n_groups: int) -> I64:
    """The first distinct pairs of each group, padded with -1."""
    n_witnesses = pairs.shape[1]
    flat = pairs.reshape(-1, 2)
    owner = np.repeat(group, n_witnesses)
    real = flat[:, 0] >= 0
    flat, owner = flat[real], owner[real]
    # Sorted by owner, then pair; equal neighbours are duplicates.
    order = np.lexsort((flat[:, 1], flat[:, 0], owner))
    flat, owner = flat[order], owner[order]
    fresh = np.ones(len(flat), dtype=np.bool_)
    fresh[1:] = (owner[1:] != owner[:-1]) | (flat[1:] != flat[:-1]).any(axis=1)
    flat, owner = flat[fresh], owner[fresh]
    starts = np.searchsorted(owner, np.arange(n_groups))
    rank = np.arange(len(owner)) - starts[owner]
    united = np.full((n_groups, n_witnesses, 2), -1, dtype=np.int64)
    early = rank < n_witnesses
    united[owner[early], rank[early]] = flat[early]
    return united
