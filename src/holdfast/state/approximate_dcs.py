"""The general denial constraints that hold up to a share of the ordered pairs of rows, from counted evidence.

Derived from counted evidence, and computed anew from it: a count that changes may move any constraint across
the threshold. The error of a constraint is the number of ordered pairs of rows that violate it over all
n (n - 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.approximate_dcs import minimal_dcs_within
from holdfast.kernels.dc_hitting_sets import Space
from holdfast.state.counted import CountedEvidence

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ApproximateDcs:
    """masks uint64[m, n_words], sorted by size, then words; violations int64[m]: ordered pairs against."""

    masks: U64
    violations: I64

    def __len__(self) -> int:
        return len(self.masks)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"masks": self.masks, "violations": self.violations}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_words: int) -> ApproximateDcs:
        return cls(arrays["masks"].reshape(-1, n_words), arrays["violations"])


def approximate_dcs(
    evidence: CountedEvidence, space: Space, n_rows: int, max_error: float, max_size: int = 0
) -> ApproximateDcs:
    """All general constraints within an error, of at most max_size predicates (0: any number)."""
    # The error is taken as the decimal that was written, see `state.approximate.allowed_pairs`.
    allowed = int(Fraction(max_error).limit_denominator(10**12) * n_rows * (n_rows - 1))
    return ApproximateDcs(*minimal_dcs_within(evidence.masks, evidence.counts, space, allowed, max_size))
