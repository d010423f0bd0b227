"""Evidence with one pair of rows each: what a step saw come, or go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.comparison import Compared
from holdfast.core.rows.kernels.masks import without

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Proofs:
    """Masks uint64[k, n_words] with one pair of row ids each, int64[k, 2]. For the report of a step only."""

    masks: U64
    pairs: I64

    @classmethod
    def none(cls, n_words: int) -> Proofs:
        return cls(np.empty((0, n_words), np.uint64), np.empty((0, 2), np.int64))

    @classmethod
    def among(cls, compared: Compared, wanted: U64) -> Proofs:
        """Those of the wanted masks."""
        if not len(wanted):
            return cls.none(compared.masks.shape[1])
        telling = ~without(compared.masks, wanted)
        return cls(compared.masks[telling], compared.witnesses[telling])
