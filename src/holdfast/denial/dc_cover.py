"""The cover of denial constraints: the most general ones that hold now, repaired with the evidence.

Kind of state: derived. Law: cover(E) = the minimal sets of predicates that are part of no evidence in E,
that are not trivial, in which no predicate can be dropped or loosened; one of each mirrored pair
(`core/cover/kernels`). Evidence that comes makes them longer or stricter, evidence that goes shorter or
looser, and both repairs equal the cover computed anew (tests/laws).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels import search
from holdfast.core.cover.kernels.repair import add_evidences, remove_evidences
from holdfast.core.cover.kernels.search import Watch, minimal_dcs
from holdfast.core.cover.kernels.vertices import OUTCOMES, Space
from holdfast.core.rows.kernels.masks import popcounts, unique_masks, without
from holdfast.core.words.column_sets import bits_of, masks_of

U64 = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class DcCover:
    """Masks of predicates uint64[n, n_words], sorted by size, then by words."""

    masks: U64
    space: Space
    max_size: int = 0  # predicates of a constraint; 0: any number

    @classmethod
    def of(cls, evidence: U64, space: Space, max_size: int = 0, watch: Watch | None = None) -> DcCover:
        return cls(minimal_dcs(evidence, space, max_size, watch), space, max_size)

    def __len__(self) -> int:
        return len(self.masks)

    def bounded(self, max_size: int) -> DcCover:
        """The cover of the same evidence under a bound that is not wider: a bound only cuts the list."""
        if max_size == self.max_size:
            return self
        return DcCover(self.masks[popcounts(self.masks) <= max_size], self.space, max_size)

    def repaired(self, evidence: U64, came: U64, went: U64, watch: Watch | None = None) -> DcCover:
        """The cover of `evidence`, which is what this is the cover of without `went` and with `came`.

        Cost: follows what broke, and what becomes possible; of much of either, a search afresh.
        """
        if not len(came) and not len(went):
            return self
        if self.max_size == 1 or (self.max_size and len(evidence) > search.MANY_BOUNDED):
            # A pass, or a search of a part: sooner than to make ready all edges for a repair.
            return DcCover.of(evidence, self.space, self.max_size, watch)
        old = evidence[without(evidence, came)] if len(came) else evidence
        masks = self.masks
        if len(went):
            masks = remove_evidences(masks, old, went, self.space, self.max_size, watch)
        if len(came):
            masks = add_evidences(masks, old, came, self.space, self.max_size, watch)
        return self if np.array_equal(masks, self.masks) else DcCover(masks, self.space, self.max_size)


def closures(masks: U64, space: Space) -> U64:
    """With every predicate what follows from it in its group: uint64[n, n_words].

    Of constraints with one predicate a group, one says more than another iff it lies in the other's closure.
    """
    n = len(space.op_of)
    follows = np.zeros((n, n), dtype=np.bool_)
    for outcome in OUTCOMES:
        held = (outcome >> space.op_of) & 1 == 1
        # p implies q unless some outcome has p without q.
        follows |= held[:, None] & ~held[None, :]
    same_group = space.group_of[:, None] == space.group_of[None, :]
    return masks_of((bits_of(masks, n).astype(np.float32) @ (same_group & ~follows)) > 0, masks.shape[1])


def mirrored(masks: U64, space: Space) -> U64:
    """The symmetric constraints: uint64[n, n_words]."""
    return masks_of(bits_of(masks, len(space.mirror))[:, space.mirror], masks.shape[1])


def both_ways(masks: U64, space: Space) -> U64:
    """Constraints and their symmetric ones, each once."""
    everything = np.concatenate([masks, mirrored(masks, space)])
    return everything[unique_masks(everything)[0]]
