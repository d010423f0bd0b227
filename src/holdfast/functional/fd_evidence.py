"""Witnessed evidence of functional dependencies: the agree sets that matter, each with pairs that prove it.

Kind of state: quadratic, kept in part. What matters are the *relevant* agree sets, those that are maximal
for some right-hand side (`fd_cover.py`); others are kept as a reserve for the day that a larger one goes.
Law: if the cover of this evidence is valid on the table, its relevant agree sets are the table's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels.living_pairs import living
from holdfast.core.evidence.witnessed import joined, with_reserve, with_witnesses
from holdfast.core.rows.kernels.masks import n_words_for, without
from holdfast.functional.fd_cover import Relevant

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# Agree sets kept that are not relevant now.
RESERVE = 4096


@dataclass(frozen=True)
class FdEvidence:
    """Masks uint64[n, n_words], all different; witnesses int64[n, k, 2]: pairs of row ids, -1 for none."""

    masks: U64
    witnesses: I64
    n_columns: int

    @classmethod
    def empty(cls, n_columns: int, n_witnesses: int) -> FdEvidence:
        n_words = n_words_for(n_columns)
        return cls(np.empty((0, n_words), np.uint64), np.empty((0, n_witnesses, 2), np.int64), n_columns)

    def __len__(self) -> int:
        return len(self.masks)

    @cached_property
    def relevant(self) -> Relevant:
        return Relevant.of(self.masks, self.n_columns)

    def merged(self, masks: U64, witnesses: I64) -> FdEvidence:
        """With further evidence: witnesses of equal masks are united, the reserve is cut to size."""
        if not len(masks):
            return self
        distinct, united, changed = joined(self.masks, self.witnesses, masks, witnesses)
        if not len(changed):
            return self
        merged = FdEvidence(distinct, united, self.n_columns)
        if len(merged) - len(merged.relevant.masks) <= RESERVE:
            return merged
        chosen = with_reserve(distinct, ~without(distinct, merged.relevant.masks), RESERVE)
        return FdEvidence(np.ascontiguousarray(distinct[chosen]), united[chosen], self.n_columns)

    def without_rows(self, row_ids: I64) -> tuple[FdEvidence, U64, U64]:
        """(evidence, orphans, columns): witnesses of these rows dropped; relevant masks left without one.

        Orphans are no longer part of the evidence; `columns` are those that each was maximal for. Cost: a
        lookup for each witness held.
        """
        at, left = living(self.witnesses, row_ids)
        if not len(at):
            return self, self.masks[:0], self.masks[:0]
        orphaned = ~without(self.relevant.masks, self.masks[at[left[:, 0, 0] < 0]])
        evidence = FdEvidence(*with_witnesses(self.masks, self.witnesses, at, left), self.n_columns)
        return evidence, self.relevant.masks[orphaned], self.relevant.columns[orphaned]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"masks": self.masks, "witnesses": self.witnesses}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int, n_witnesses: int) -> FdEvidence:
        n_words = n_words_for(n_columns)
        masks, witnesses = arrays["masks"].reshape(-1, n_words), arrays["witnesses"]
        return cls(masks, witnesses.reshape(-1, n_witnesses, 2), n_columns)
