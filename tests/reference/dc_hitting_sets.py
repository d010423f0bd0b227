"""Slow and plain: denial constraints over few groups, by trying every set of predicates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
SYMMETRIC = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
HOLDS = {"<": {"!=", "<", "<="}, "=": {"=", "<=", ">="}, ">": {"!=", ">", ">="}, "null": {"!="}}
LOOSER = {"=": {"<=", ">="}, "<": {"<=", "!="}, ">": {">=", "!="}}

Group = tuple[int, int, bool]  # The two columns, and whether they are ordered.
Dc = frozenset[int]


class Predicates:
    """The predicates of some groups, numbered; with a group (A, B) there is (B, A)."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.predicates = [
            (g, op) for g, (_, _, ordered) in enumerate(groups) for op in OPERATORS[: 6 if ordered else 2]
        ]
        self.number = {predicate: i for i, predicate in enumerate(self.predicates)}
        image = {g: groups.index((b, a, ordered)) for g, (a, b, ordered) in enumerate(groups)}
        self.mirror = [self.number[image[g], SYMMETRIC[op]] for g, op in self.predicates]

    def evidence(self, outcomes: Sequence[str]) -> Dc:
        """What holds under one outcome per group."""
        return frozenset(i for i, (g, op) in enumerate(self.predicates) if op in HOLDS[outcomes[g]])

    def mirrored(self, dc: Dc) -> Dc:
        return frozenset(self.mirror[i] for i in dc)

    def trivial(self, dc: Dc) -> bool:
        for g in range(len(self.groups)):
            ops = {self.predicates[i][1] for i in dc if self.predicates[i][0] == g}
            if not any(ops <= held for held in HOLDS.values()):
                return True
        return False

    @cached_property
    def sensible(self) -> list[Dc]:
        """All sets of predicates that are not trivial."""
        found: list[Dc] = [frozenset()]
        for i in range(len(self.predicates)):
            found += [dc | {i} for dc in found if not self.trivial(dc | {i})]
        return found

    def looser(self, dc: Dc) -> Iterable[Dc]:
        """The DCs that say one thing less: a predicate dropped or replaced by a looser one."""
        for i in dc:
            g, op = self.predicates[i]
            yield dc - {i}
            for other in LOOSER.get(op, ()):
                if (g, other) in self.number:
                    yield (dc - {i}) | {self.number[g, other]}


def covers(space: Predicates, evidences: Iterable[Dc], general: bool, max_size: int) -> list[tuple[int, ...]]:
    """All DCs of the cover as ascending tuples, sorted; of at most `max_size` predicates (0 or less: any).

    The sets: no part is valid. The general ones: one predicate per group, and nothing looser is valid.
    """
    family = set(evidences)
    family |= {space.mirrored(evidence) for evidence in family}

    def valid(dc: Dc) -> bool:
        return not any(dc <= evidence for evidence in family)

    found: list[Dc] = []
    for dc in space.sensible:
        if general and len({space.predicates[i][0] for i in dc}) < len(dc):
            continue
        weaker = space.looser(dc) if general else (dc - {i} for i in dc)
        if valid(dc) and not any(valid(other) for other in weaker):
            found.append(dc)
    canonical = {min(tuple(sorted(dc)), tuple(sorted(space.mirrored(dc)))) for dc in found}
    return sorted(dc for dc in canonical if max_size <= 0 or len(dc) <= max_size)
