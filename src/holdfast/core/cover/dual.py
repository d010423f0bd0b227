"""Maximal non-uniques from minimal uniques: each cover tells the other.

Law: the complements of the maximal non-uniques are the minimal hitting sets of the minimal
uniques, and the other way round (hypergraph duality).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.search import minimal_hitting_sets
from holdfast.core.rows.kernels.masks import full_mask

U64 = NDArray[np.uint64]


def non_uniques_of(uniques: U64, n_columns: int, n_rows: int) -> U64:
    """The maximal non-uniques of a table with these minimal uniques.

    A table of at most one row has none; one without a unique has two equal rows: all columns.
    """
    full = full_mask(n_columns)
    if n_rows < 2:
        return np.empty((0, len(full)), dtype=np.uint64)
    return full & ~minimal_hitting_sets(uniques, full, 0)
