"""The cover: the minimal combinations that hold now, derived from evidence and repaired with it.

Kind of state: derived. Law: cover(E) = the minimal hitting sets of the complements of the agree
sets in E; a set of columns tells a pair apart iff it has a column on which the pair differs. So
adding evidence specialises the cover, removing evidence generalises it, and both repairs equal
the cover computed anew (tests/laws).

With `max_size` the cover holds exactly those minimal sets that have at most so many columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.repair import add_edges, remove_edges
from holdfast.core.cover.kernels.search import minimal_hitting_sets
from holdfast.core.rows.kernels.masks import contains_any, full_mask, minimal_masks

U64 = NDArray[np.uint64]

# Above this share of broken sets x new edges, enumeration from scratch beats edge-wise repair.
REPAIR_LIMIT = 2_000_000
# So few sets and agree sets are enumerated in a few milliseconds, less than more than a few edges take.
FEW_SETS = 20_000
FEW_EDGES = 8


@dataclass(frozen=True, slots=True)
class Cover:
    """Minimal sets of columns, masks uint64[n, n_words], of a table with n_columns columns."""

    masks: U64
    n_columns: int
    max_size: int = 0  # 0: no bound

    @classmethod
    def of(cls, agree_sets: U64, n_columns: int, max_size: int = 0) -> Cover:
        """The cover of some evidence, by depth-first enumeration with critical edges."""
        full = full_mask(n_columns)
        return cls(minimal_hitting_sets(full & ~agree_sets, full, max_size), n_columns, max_size)

    def __len__(self) -> int:
        return len(self.masks)

    def repaired(self, added: U64, agree_sets: U64) -> Cover:
        """The cover after evidence was added; `agree_sets` is all evidence, the added included."""
        full = full_mask(self.n_columns)
        edges = full & ~added
        edges = edges[minimal_masks(edges)]
        if len(edges) > FEW_EDGES and len(self.masks) + len(agree_sets) <= FEW_SETS:
            return Cover.of(agree_sets, self.n_columns, self.max_size)
        n_broken = sum(int((~(self.masks & edge).any(axis=1)).sum()) for edge in edges[:64])
        if not n_broken and len(edges) <= 64:
            return self
        if len(edges) > 64 or n_broken * len(self.masks) * self.n_columns > REPAIR_LIMIT * 64:
            return Cover.of(agree_sets, self.n_columns, self.max_size)
        return Cover(add_edges(self.masks, edges, full, self.max_size), self.n_columns, self.max_size)

    def relaxed(self, removed: U64, agree_sets: U64) -> Cover:
        """The cover after evidence was removed; `agree_sets` is the evidence that remains."""
        if not len(removed):
            return self
        full = full_mask(self.n_columns)
        gone = full & ~removed
        remaining = full & ~agree_sets
        remaining = remaining[minimal_masks(remaining)]
        gone = gone[~contains_any(gone, remaining)] if len(remaining) else gone
        if not len(gone):
            return self  # every removed edge is implied by one that remains
        if len(gone) > 8:
            return Cover(minimal_hitting_sets(remaining, full, self.max_size), self.n_columns, self.max_size)
        sets = remove_edges(self.masks, remaining, gone, full, self.max_size)
        return Cover(sets, self.n_columns, self.max_size)
