"""The general denial constraints that hold up to a share of the pairs of rows, from counted evidence.

Derived from counted evidence over predicates, and computed anew from it, as the approximate dependencies of
`holdfast.core.cover.approximate` are: a count that changes may move any constraint across the threshold.

The error of a constraint is its number of violating ordered pairs over all n (n - 1) of them: a pair of rows
is looked at in both directions, as the evidence counts it. It only falls when a predicate joins or becomes
stricter, so what is within the threshold is given by the general constraints within it. At threshold 0 they
are those that hold exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.search import Watch
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.cover.kernels.within import minimal_dcs_within
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.denial.constraints import ordered_pairs

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ApproximateDcs:
    """Constraints masks uint64[m, n_words], sorted by size, then words; of each mirrored pair one.

    violations int64[m]: how many ordered pairs are against each.
    """

    masks: U64
    violations: I64

    def __len__(self) -> int:
        return len(self.masks)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"masks": self.masks, "violations": self.violations}


def allowed_ordered_pairs(max_error: float, n_rows: int) -> int:
    """How many violating ordered pairs are within the error: the greatest number whose share is not above it.

    The error is taken as the decimal that was written: see `holdfast.core.cover.approximate.allowed_pairs`.

    >>> allowed_ordered_pairs(0.29, 25), allowed_ordered_pairs(0.0, 10), allowed_ordered_pairs(0.5, 1)
    (174, 0, 0)
    """
    return int(Fraction(max_error).limit_denominator(10**12) * ordered_pairs(n_rows))


def approximate_dcs(
    evidence: CountedEvidence,
    space: Space,
    n_rows: int,
    max_error: float,
    max_size: int = 0,
    watch: Watch | None = None,
) -> ApproximateDcs:
    """All general constraints within an error, with their violations.

    Evidence is over the predicates of the space, of ordered pairs: both directions are counted. With max_size
    exactly those constraints that have at most so many predicates (0: any number). Cost: microseconds per
    constraint (`within.minimal_dcs_within`), of which there may be many more
    than hold exactly: without a bound, a million on adult.

    >>> alone = np.zeros(2, dtype=np.int32)
    >>> space = Space(alone, np.arange(2, dtype=np.int32), np.arange(2, dtype=np.int32), True)
    >>> equal, different = np.array([[0b01], [0b10]], dtype=np.uint64)
    >>> evidence, _, _ = CountedEvidence.empty(2).changed(np.array([equal, different]), np.array([2, 10]))
    >>> dcs = approximate_dcs(evidence, space, n_rows=4, max_error=0.2)
    >>> dcs.masks.tolist(), dcs.violations.tolist()
    ([[1]], [2])
    """
    allowed = allowed_ordered_pairs(max_error, n_rows)
    return ApproximateDcs(
        *minimal_dcs_within(evidence.masks, evidence.counts, space, allowed, max_size, watch)
    )
