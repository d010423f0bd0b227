"""Slow and plain: families of masks as sets of Python ints, hitting sets by trying every subset."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations


def maximal(masks: Sequence[int]) -> list[int]:
    """Indices of the maximal masks; of equal ones the first."""
    return [
        i
        for i, mask in enumerate(masks)
        if mask not in masks[:i] and not any(mask != other and mask & ~other == 0 for other in masks)
    ]


def minimal(masks: Sequence[int]) -> list[int]:
    """Indices of the minimal masks; of equal ones the first."""
    return [
        i
        for i, mask in enumerate(masks)
        if mask not in masks[:i] and not any(mask != other and other & ~mask == 0 for other in masks)
    ]


def first_container(masks: Sequence[int], wholes: Sequence[int]) -> list[int]:
    return [next((j for j, whole in enumerate(wholes) if mask & ~whole == 0), -1) for mask in masks]


def first_contained(masks: Sequence[int], parts: Sequence[int]) -> list[int]:
    return [next((j for j, part in enumerate(parts) if part & ~mask == 0), -1) for mask in masks]


def unique(masks: Sequence[int]) -> tuple[list[int], list[int]]:
    """Index of the first occurrence of each distinct mask, and for each mask the number of its like."""
    distinct = list(dict.fromkeys(masks))
    return [masks.index(mask) for mask in distinct], [distinct.index(mask) for mask in masks]


def hitting_sets(
    edges: Iterable[frozenset[int]], within: frozenset[int], max_size: int
) -> set[frozenset[int]]:
    """All minimal hitting sets inside `within` of at most `max_size` members (0 or less: any number).

    Subsets in order of size: one that hits every edge is minimal unless it contains one found before.
    """
    family = set(edges)
    largest = len(within) if max_size <= 0 else min(max_size, len(within))
    found: set[frozenset[int]] = set()
    for size in range(largest + 1):
        for members in map(frozenset, combinations(sorted(within), size)):
            if all(members & edge for edge in family) and not any(smaller <= members for smaller in found):
                found.add(members)
    return found
