"""The minimal dependencies and keys that hold up to a share of the pairs of rows, from counted evidence.

Derived from counted evidence, and computed anew from it: a count that changes may move any dependency
across the threshold, and all of them are weighed faster than a repair would find out which.

The error is g1 (DynASt, definitions 6.1 and 6.2): the violating pairs over all n (n - 1) / 2 unordered pairs
of rows; of a key X, the pairs that agree on X. It only falls when columns join X, so what is within the
threshold is closed upwards and given by its minimal sets. At threshold 0 they are those that hold exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.kernels.agree_index import (
    index_of,
    minimal_by_search,
    minimal_by_sums,
    superset_sums,
)
from holdfast.core.rows.kernels.masks import n_words_for, popcounts
from holdfast.core.words.column_sets import n_pairs

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Up to so many columns every set of them is looked at: 2 ** 20 sums are 8 MB.
MAX_COLUMNS_FOR_SUMS = 20
KEY = -1  # in place of a right-hand side


@dataclass(frozen=True, slots=True)
class ApproximateCover:
    """Left-hand sides masks uint64[m, n_words] and rhs int32[m], sorted by rhs, size, words.

    rhs is a column, or -1 for a key: the mask alone. violations int64[m]: how many pairs are against it.
    """

    masks: U64
    rhs: I32
    violations: I64

    def __len__(self) -> int:
        return len(self.masks)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return {"masks": self.masks, "rhs": self.rhs, "violations": self.violations}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_words: int) -> ApproximateCover:
        return cls(arrays["masks"].reshape(-1, n_words), arrays["rhs"], arrays["violations"])


def allowed_pairs(max_error: float, n_rows: int) -> int:
    """How many violating pairs are within the error: the greatest number whose share is not above it.

    The error is taken as the decimal that was written, not as the binary fraction just below or above it:
    29 of 100 pairs are within 0.29, though 0.29 * 100 < 29.

    >>> allowed_pairs(0.29, 200) == 29 * 199, allowed_pairs(0.0, 10), allowed_pairs(0.5, 1)
    (True, 0, 0)
    """
    return int(Fraction(max_error).limit_denominator(10**12) * n_pairs(n_rows))


def approximate_cover(
    evidence: CountedEvidence, n_rows: int, max_error: float, max_size: int = 0
) -> ApproximateCover:
    """All minimal left-hand sides of each column, and all minimal keys, within an error.

    With max_size exactly those of them that have at most so many columns (0: any number). Cost: up to 20
    columns, that of looking at all sets of columns, once for each right-hand side; beyond, a search, whose
    length follows the number of sets that are not within: bound it by max_size.

    >>> masks = np.array([[0b001], [0b011], [0b000]], dtype=np.uint64)
    >>> evidence, _, _ = CountedEvidence.empty(2).changed(masks, np.array([1, 1, 4]))
    >>> cover = approximate_cover(evidence, n_rows=4, max_error=0.2)
    >>> list(zip(cover.masks[:, 0].tolist(), cover.rhs.tolist(), cover.violations.tolist()))
    [(2, -1, 1), (2, 0, 0), (1, 1, 1)]
    """
    n_columns = evidence.n_columns
    n_words = n_words_for(n_columns)
    allowed = allowed_pairs(max_error, n_rows)
    bound = min(max_size, n_columns) if max_size > 0 else n_columns
    every_rhs = range(KEY, n_columns)
    if n_columns <= MAX_COLUMNS_FOR_SUMS:
        sums = superset_sums(evidence.masks, evidence.counts, n_columns)
        parts = [minimal_by_sums(sums, n_columns, a, allowed, bound) for a in every_rhs]
    else:
        # Agree sets of many pairs first: the search looks no further once they forbid a set.
        order = np.argsort(-evidence.counts, kind="stable")
        index = index_of(evidence.masks[order], evidence.counts[order], n_columns)
        parts = [minimal_by_search(index, n_words, a, allowed, bound) for a in every_rhs]
    masks = np.concatenate([m for m, _ in parts])
    violations = np.concatenate([v for _, v in parts])
    rhs = np.repeat(np.array(every_rhs, dtype=np.int32), [len(m) for m, _ in parts])
    order = np.lexsort((*masks.T[::-1], popcounts(masks), rhs))
    return ApproximateCover(masks[order], rhs[order], violations[order])
