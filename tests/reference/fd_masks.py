"""What agree sets are maximal for, and what they break, by definition; masks are sets of columns."""

from __future__ import annotations

from collections.abc import Sequence

Mask = frozenset[int]


def maximal_for(masks: Sequence[Mask], n_columns: int) -> list[Mask]:
    """For each mask the columns that it lacks and that every proper superset among the masks has."""
    return [
        frozenset(
            a for a in range(n_columns) if a not in m and all(a in other for other in masks if m < other)
        )
        for m in masks
    ]


def breaks(masks: Sequence[Mask], lhs: Sequence[Mask], rhs: Sequence[Mask]) -> list[bool]:
    """Whether a pair with the agree set violates one of lhs[j] -> rhs[j]."""
    return [any(x <= m and not right <= m for x, right in zip(lhs, rhs, strict=True)) for m in masks]
