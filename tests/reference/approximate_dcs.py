"""Slow and plain: approximate denial constraints over few groups, by trying every one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from .dc_hitting_sets import Dc, Predicates


def counted(space: Predicates, pairs: Iterable[Sequence[str]]) -> Counter[Dc]:
    """The evidence of unordered pairs of rows, given as one outcome per group, in both directions."""
    found: Counter[Dc] = Counter()
    for outcomes in pairs:
        evidence = space.evidence(outcomes)
        found[evidence] += 1
        found[space.mirrored(evidence)] += 1
    return found


def written(space: Predicates) -> list[Dc]:
    """All DCs of at most one predicate per group; none of them is trivial."""
    choices: list[list[list[int]]] = [[[]] for _ in space.groups]
    for i, (g, _) in enumerate(space.predicates):
        choices[g].append([i])
    return [frozenset(i for chosen in choice for i in chosen) for choice in product(*choices)]


def violations(counts: Mapping[Dc, int], dc: Dc) -> int:
    """How many ordered pairs satisfy all predicates."""
    return sum(n for evidence, n in counts.items() if dc <= evidence)


def within(
    space: Predicates, counts: Mapping[Dc, int], allowed: int, max_size: int
) -> dict[tuple[int, ...], int]:
    """The general DCs that at most `allowed` pairs violate, as ascending tuples, with their violations.

    Of at most `max_size` predicates (0 or less: any); nothing looser is within; one of each mirrored pair.
    """
    every = {dc: violations(counts, dc) for dc in written(space)}
    found = {}
    for dc, n in every.items():
        small = max_size <= 0 or len(dc) <= max_size
        if small and n <= allowed and all(every[other] > allowed for other in space.looser(dc)):
            found[min(tuple(sorted(dc)), tuple(sorted(space.mirrored(dc))))] = n
    return found
