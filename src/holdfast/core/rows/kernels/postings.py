"""Posting lists of an index that lies in a file: where they are, and whether they can be followed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.kernels.compiling import njit
from holdfast.core.rows.kernels.encode import frozen

I32 = NDArray[np.int32]

UNSOUND = -1


@njit(cache=True, nogil=True)
def _listed(offsets, positions, codes, n_rows, limit):  # type: ignore[no-untyped-def]
    n = 0
    for i in range(codes.shape[0]):
        c = codes[i]
        if c < 0 or c + 1 >= offsets.shape[0]:
            return UNSOUND
        start, end = offsets[c], offsets[c + 1]
        if start < 0 or end < start or end > positions.shape[0]:
            return UNSOUND
        n += end - start
        if n > limit:
            return n
    for i in range(codes.shape[0]):
        for at in range(offsets[codes[i]], offsets[codes[i] + 1]):
            if positions[at] < 0 or positions[at] >= n_rows:
                return UNSOUND
    return n


def listed(offsets: I32, positions: I32, codes: I32, n_rows: int, limit: int) -> int:
    """How many rows the lists of some codes have together; UNSOUND if one leads out of its array or segment.

    IN offsets int32[n_codes + 1]; IN positions int32[*]; IN codes int32[n]. As soon as there are more than
    `limit` rows that is the answer, and rows are not looked at. Cost: the rows of the lists, `limit` at most.
    """
    return int(_listed(frozen(offsets), frozen(positions), frozen(codes), n_rows, limit))


def warm_up() -> None:
    """Compile (or load) the kernel for the signature in use."""
    few = np.zeros(2, np.int32)
    listed(few, few, few, 1, 1)
