"""The cover of functional dependencies: one cover of minimal left-hand sides for each right-hand side.

Kind of state: derived. Law: X -> A holds iff X has, for every agree set that lacks A, a column outside of
it. So the minimal left-hand sides of A are the minimal hitting sets of the complements of the agree sets
that lack A, and of these only the maximal ones count. An agree set is *relevant* if it is maximal for some
A; relevant ones are few (794 of 39,528 on a table of 1,000 x 109), and they alone decide the cover.

Both are repaired, not computed again: an added agree set can only push others below it, a vanished one
can only expose those below it, and a right-hand side whose relevant agree sets are the same keeps its cover.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.cover import Cover
from holdfast.core.evidence.kernels.fd_masks import maximal_for
from holdfast.core.rows.kernels.masks import contained_in_any, full_mask, n_words_for, unique_masks, without

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_ONE = np.uint64(1)
# With more than this share of the relevant agree sets changed, enumeration beats repair.
MOST_CHANGED = 0.25


@dataclass(frozen=True, slots=True)
class Relevant:
    """The agree sets that are maximal for some column: masks, and the columns of each, uint64[n, n_words]."""

    masks: U64
    columns: U64
    n_columns: int

    @classmethod
    def of(cls, agree_sets: U64, n_columns: int) -> Relevant:
        """From all agree sets, which are all different."""
        columns = maximal_for(agree_sets, full_mask(n_columns))
        relevant = columns.any(axis=1)
        return cls(np.ascontiguousarray(agree_sets[relevant]), columns[relevant], n_columns)

    def changed(self, added: U64, gone: U64, agree_sets: U64) -> Relevant:
        """After agree sets were added and others vanished; `agree_sets` are all there are now.

        Law: what was below others stays below, unless one above it vanished. Cost: only the relevant, the
        added and those below a vanished one are compared.
        """
        gone = gone[~without(gone, self.masks)]
        staying = self.masks[without(self.masks, gone)]
        parts = [staying, added[without(added, staying)]]
        if len(gone):
            below = agree_sets[contained_in_any(agree_sets, gone)]
            below = below[without(below, np.concatenate(parts))]
            parts.append(below)
        elif not len(added):
            return self
        return Relevant.of(np.concatenate(parts), self.n_columns)

    def lacking(self, column: int) -> U64:
        """The maximal agree sets that lack a column, with it set: their complements are its edges."""
        word, bit = column >> 6, _ONE << np.uint64(column & 63)
        masks: U64 = self.masks[(self.columns[:, word] & bit) != 0]
        masks[:, word] |= bit
        return masks

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"relevant": self.masks, "relevant_for": self.columns}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int) -> Relevant:
        n_words = n_words_for(n_columns)
        return cls(
            arrays["relevant"].reshape(-1, n_words), arrays["relevant_for"].reshape(-1, n_words), n_columns
        )


@dataclass(frozen=True)
class FdCover:
    """All minimal functional dependencies of a table: covers[A] are the left-hand sides of column A."""

    covers: tuple[Cover, ...]
    max_lhs: int = 0  # 0: no bound

    @classmethod
    def of(cls, relevant: Relevant, max_lhs: int = 0) -> FdCover:
        """From scratch: an enumeration for each right-hand side."""
        n = relevant.n_columns
        return cls(tuple(Cover.of(relevant.lacking(a), n, max_lhs) for a in range(n)), max_lhs)

    @classmethod
    def of_flat(cls, masks: U64, rhs: I32, n_columns: int, max_lhs: int = 0) -> FdCover:
        """The inverse of `masks` and `rhs`, which must be sorted by right-hand side."""
        starts = np.searchsorted(rhs, np.arange(n_columns + 1))
        covers = [Cover(masks[a:b], n_columns, max_lhs) for a, b in pairwise(starts)]
        return cls(tuple(covers), max_lhs)

    def __len__(self) -> int:
        return sum(len(c) for c in self.covers)

    @cached_property
    def masks(self) -> U64:
        """The left-hand sides of all, by right-hand side: uint64[n, n_words]."""
        return np.concatenate([c.masks for c in self.covers])

    @cached_property
    def rhs(self) -> I32:
        """The right-hand side of each: int32[n]."""
        return np.repeat(np.arange(len(self.covers), dtype=np.int32), [len(c) for c in self.covers])

    @property
    def keyed(self) -> U64:
        """Left-hand and right-hand side as one mask, uint64[n, n_words + 1]: equal iff the FDs are."""
        return keyed(self.masks, self.rhs)

    def repaired(self, before: Relevant, after: Relevant) -> FdCover:
        """The cover of `after`, from this, which is the cover of `before`.

        Cost: only right-hand sides whose relevant agree sets changed; each by the cheapest way that is right:
        edges added, edges removed, or, when both happened, enumeration.
        """
        if before is after:
            return self
        stayed = int((~without(after.masks, before.masks)).sum())
        if max(len(before.masks), len(after.masks)) - stayed > MOST_CHANGED * len(after.masks):
            return FdCover.of(after, self.max_lhs)
        covers = []
        for a, cover in enumerate(self.covers):
            old, new = before.lacking(a), after.lacking(a)
            added, gone = new[without(new, old)], old[without(old, new)]
            if len(gone) and len(added):
                gone = gone[~contained_in_any(gone, added)]  # pushed below an added one: still implied
            if not len(gone):
                covers.append(cover.repaired(added, new) if len(added) else cover)
            elif not len(added) or contained_in_any(added, gone).all():  # exposed by those that vanished
                covers.append(cover.relaxed(gone, new))
            else:
                covers.append(Cover.of(new, len(self.covers), self.max_lhs))
        if all(a is b for a, b in zip(covers, self.covers, strict=True)):
            return self
        return FdCover(tuple(covers), self.max_lhs)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"masks": self.masks, "rhs": self.rhs}


def keyed(masks: U64, rhs: I32 | I64) -> U64:
    """Left-hand and right-hand side as one mask: uint64[n, n_words + 1]."""
    return np.concatenate([masks, rhs.astype(np.uint64)[:, None]], axis=1)


def by_lhs(masks: U64, rhs: I32) -> tuple[U64, U64, I64]:
    """(lhs, rhs, group): every left-hand side once, with all its right-hand sides as a mask.

    group[i] says which of them is masks[i].
    """
    first, group = unique_masks(masks)
    lhs = masks[first]
    together = np.zeros_like(lhs)
    np.bitwise_or.at(together, (group, rhs >> 6), _ONE << (rhs & 63).astype(np.uint64))
    return lhs, together, group


def has_column(masks: U64, columns: I32) -> Bool:
    """Whether masks[i] has the column columns[i]: bool[n]."""
    words = masks[np.arange(len(masks)), columns >> 6]
    has: Bool = (words >> (columns & 63).astype(np.uint64)) & _ONE == _ONE
    return has
