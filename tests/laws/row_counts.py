"""Row counts as the registry of states wants them: rows are tuples of Python values, all columns compared.

Two columns have an order where both hold numbers and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from holdfast.denial.row_counts import RowCounts
from reference import row_outcomes as reference

Rows = Mapping[int, Sequence[Any]]


def outcome(x: Any, y: Any) -> int:
    numbers = [isinstance(v, int | float) for v in (x, y)]
    if x is not None and y is not None and numbers[0] != numbers[1]:
        return reference.LESS  # they do not compare; any outcome will do that follows from the row alone
    return reference.outcome(x, y, ordered=all(numbers))


def scratch(rows: Rows, n_columns: int, nulls: str) -> RowCounts:
    counts = np.zeros((n_columns * (n_columns - 1) // 2, 4), dtype=np.int64)
    for row in rows.values():
        for p, (a, b) in enumerate(combinations(range(n_columns), 2)):
            counts[p, outcome(row[a], row[b])] += 1
    return RowCounts(counts)


def grown(state: RowCounts, old: Rows, new: Rows, n_columns: int, nulls: str) -> RowCounts:
    """s(R + D) = s(R) + s(D)."""
    return state.plus(scratch(new, n_columns, nulls))


def shrunk(state: RowCounts, left: Rows, gone: Rows, n_columns: int, nulls: str) -> RowCounts:
    """s(R) = s(R + D) - s(D)."""
    return state.minus(scratch(gone, n_columns, nulls))


def meaning(state: RowCounts) -> list[list[int]]:
    found: list[list[int]] = state.counts.tolist()
    return found
