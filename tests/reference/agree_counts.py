"""Counted agree sets in plain Python: the slow reference of agree_counts.py; masks are ints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Columns = Sequence[Sequence[int]]


def agree_mask(codes: Columns, r: int, rows: Columns, j: int) -> int:
    """The columns on which batch row j has the code of row r."""
    return sum(1 << c for c in range(len(codes)) if codes[c][r] == rows[c][j])


def paired(live: Sequence[bool], r: int, j: int, own: bool, first: int) -> bool:
    """Whether batch row j is compared with row r; of the batch's own rows, only with those before it."""
    return live[r] and (not own or r < first + j)


def agree_counts(
    codes: Columns, live: Sequence[bool], rows: Columns, n_batch: int, own: bool, first: int
) -> dict[int, int]:
    """How many pairs have each agree set."""
    return Counter(
        agree_mask(codes, r, rows, j)
        for j in range(n_batch)
        for r in range(len(live))
        if paired(live, r, j, own, first)
    )
