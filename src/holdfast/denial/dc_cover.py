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
from holdfast.core.cover.kernels.repair import add_evidences, remove_evidences, repair_supported
from holdfast.core.cover.kernels.search import Watch, supported_dcs
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
    support: U64 | None = None  # some of the evidence, of which this is the cover too; None: all of it

    @classmethod
    def of(cls, evidence: U64, space: Space, max_size: int = 0, watch: Watch | None = None) -> DcCover:
        masks, support = supported_dcs(evidence, space, max_size, watch)
        return cls(masks, space, max_size, support)

    def __len__(self) -> int:
        return len(self.masks)

    def bounded(self, max_size: int) -> DcCover:
        """The cover of the same evidence under a bound that is not wider: a bound only cuts the list."""
        if max_size == self.max_size:
            return self
        return DcCover(self.masks[popcounts(self.masks) <= max_size], self.space, max_size, self.support)

    def repaired(self, evidence: U64, came: U64, went: U64, watch: Watch | None = None) -> DcCover:
        """The cover of `evidence`, which is what this is the cover of without `went` and with `came`.

        Cost: follows what broke, and what becomes possible; of much of either, a search afresh.
        """
        if not len(came) and not len(went):
            return self
        many = self.max_size and len(evidence) > search.MANY_BOUNDED
        if self.max_size == 1 or (many and (self.support is None or len(self.support) > search.MANY_BOUNDED)):
            # A pass; or there is no small part of the evidence to repair the cover on: the search finds one.
            return DcCover.of(evidence, self.space, self.max_size, watch)
        masks, support = self.masks, self.support
        if support is not None:
            masks, support = repair_supported(
                masks, support, evidence, came, went, self.space, self.max_size, watch
            )
        else:
            old = evidence[without(evidence, came)] if len(came) else evidence
            if len(went):
                masks = remove_evidences(masks, old, went, self.space, self.max_size, watch)
            if len(came):
                masks = add_evidences(masks, old, came, self.space, self.max_size, watch)
        if np.array_equal(masks, self.masks):
            masks = self.masks  # which is how readers see that nothing changed
            if support is None or self.support is None or np.array_equal(support, self.support):
                return self
        return DcCover(masks, self.space, self.max_size, support)


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
