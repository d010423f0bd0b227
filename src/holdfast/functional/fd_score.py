"""How much a functional dependency may tell, from counts alone: an upper bound of the score of `fd_ranking`.

score <= sqrt(surprise) * SIZE_FACTOR ^ (|X| - 1), with surprise = (1 - pdep(A)) * (n - K) / (n - 1). K is at
least the number of values of any column in X; pdep(A), the chance that two rows agree on A, is at least 1 / d
for d values. So a report need not look at rows to put last what follows from a nearly unique column.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

from holdfast.core.words.dependency import Fd

# Each further column on the left-hand side takes this factor of the score.
SIZE_FACTOR = 0.75


def score_bound(fd: Fd, n_rows: int, distinct: Mapping[str, int]) -> float:
    """The bound, 0 to 1; 0 of a constant column.

    >>> fd = Fd("orders", ("product",), "unit_price")
    >>> [round(score_bound(fd, 1000, {"product": n, "unit_price": 10}), 2) for n in (10, 500, 1000)]
    [0.94, 0.67, 0.0]
    """
    if n_rows < 2 or not fd.lhs:
        return 0.0
    groups = min(n_rows, max(distinct[c] for c in fd.lhs))
    differ = 1 - 1 / max(1, distinct[fd.rhs])
    return sqrt(differ * (n_rows - groups) / (n_rows - 1)) * SIZE_FACTOR ** (len(fd.lhs) - 1)
