"""How much a functional dependency may tell, from counts alone: an upper bound of the score of `fd_ranking`.

score <= sqrt(surprise) * SIZE_FACTOR ^ (|X| - 1), with surprise = (1 - pdep(A)) * (n - K) / (n - 1). K is at
least the number of values of any column in X; pdep(A), the chance that two rows agree on A, is at least 1 / d
for d values. So a report need not look at rows to put last what follows from a nearly unique column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

# Each further column on the left-hand side takes this factor of the score.
SIZE_FACTOR = 0.75


def size_factors(sizes: I64) -> F64:
    """SIZE_FACTOR ^ (|X| - 1), 1 of no columns: float64[n].

    The powers of Python: those of NumPy may differ in the last digit, by how many are worked out at once.

    >>> size_factors(np.array([0, 1, 3])).tolist()
    [1.0, 1.0, 0.5625]
    """
    factors = [SIZE_FACTOR ** max(k - 1, 0) for k in range(int(sizes.max(initial=0)) + 1)]
    return np.array(factors, dtype=np.float64)[sizes]


def score_bounds(n_rows: int, sizes: I64, most_values: ArrayLike, rhs_values: ArrayLike) -> F64:
    """The bounds of some dependencies, 0 to 1: float64[n]; 0 of a constant column.

    Of each the size of the left-hand side, the most values that a column of it has (anything where there is
    none), and the values of the right-hand side.

    >>> ones = np.ones(3, np.int64)
    >>> score_bounds(1000, ones, [10, 500, 1000], [10, 10, 10]).round(2).tolist()
    [0.94, 0.67, 0.0]
    """
    if n_rows < 2:
        return np.zeros(len(sizes))
    groups = np.minimum(n_rows, np.asarray(most_values))
    differ = 1 - 1 / np.maximum(1, np.asarray(rhs_values))
    bounds: F64 = np.sqrt(differ * (n_rows - groups) / (n_rows - 1)) * size_factors(sizes)
    return np.where(sizes > 0, bounds, 0.0)
