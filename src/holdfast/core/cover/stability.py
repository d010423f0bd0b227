"""What a dependency has outlived, as rankings count it: batches, and rows that changed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

# How much of a score it can take away: mildly, as it needs a history.
STABILITY_SHARE = 0.15
HALF_VERSIONS = 4


@dataclass(frozen=True, slots=True)
class Stability:
    """What each dependency has outlived: versions through which it held, rows that changed meanwhile."""

    versions: I64
    changed_rows: I64

    @classmethod
    def none(cls, n: int) -> Stability:
        """No history: each was seen at one version."""
        return cls(np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.int64))

    def through(self, n_changed: int) -> Stability:
        """With one more batch, of so many rows: what held before it has outlived it, all else is new.

        >>> history = Stability(np.array([3, 0]), np.array([40, 0])).through(5)
        >>> history.versions.tolist(), history.changed_rows.tolist()
        ([4, 1], [45, 0])
        """
        return Stability(self.versions + 1, np.where(self.versions > 0, self.changed_rows + n_changed, 0))


def stability(history: Stability, n_rows: int) -> F64:
    """How much a dependency has outlived: 0 if seen at one version only, towards 1 with batches and rows.

    >>> stability(Stability(np.array([1, 5]), np.array([0, 100])), 100).tolist()
    [0.0, 0.5]
    """
    outlived = np.maximum(history.versions - 1, 0)
    rows = history.changed_rows
    by_versions: F64 = outlived / (outlived + HALF_VERSIONS)
    return (by_versions + rows / np.maximum(1, rows + n_rows)) / 2
