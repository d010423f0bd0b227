"""The order in which every report tells what holds, or what changed: what it means comes before its name.

A dependency has a *role* and a score of 0 to 1. First comes what somebody has pinned, then foreign keys (the
inclusions that `links` would propose) and primary keys, then other dependencies; last come those that look
like chance, which people are told only the number of. Of one role, what had held through many versions comes
first, then what has the higher score, then what had held longer. `holdfast/order.py` says who has which.

Changes are told by event, what broke first; of an event in sections: foreign keys, primary keys, and what is
left of each kind. The section with the best change comes first. Lists for programs have the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from holdfast.core.words.change import DependencyChange

Role = Literal["pinned", "foreign key", "primary key", "dependency", "chance"]
ROLES: tuple[Role, ...] = get_args(Role)
# Roles that have a section of their own in the report of a batch, whatever their kind.
SECTIONS = ("foreign key", "primary key")
# The order of events; see `DependencyChange`.
EVENTS = ("broke", "appeared", "implied", "within", "beyond", "dropped")
# A dependency that had held through so many versions was hardly an accident.
LONG_HELD = 5

Place = tuple[int, bool, float, int]


class Rank(NamedTuple):
    """What a dependency means."""

    role: Role = "dependency"
    score: float = 0.0

    def place(self, held: int = 0) -> Place:
        """Where it stands: the smallest place comes first.

        >>> ranks = [Rank("chance", 0.9), Rank("dependency", 0.2), Rank("foreign key", 0.6)]
        >>> [rank.role for rank in sorted(ranks, key=Rank.place)]
        ['foreign key', 'dependency', 'chance']
        """
        return ROLES.index(self.role), held < LONG_HELD, -self.score, -held


def section(role: str, kind: str) -> str:
    """What a change is told among: its role, if that has a section, or its kind."""
    return role if role in SECTIONS else kind


def in_order(changes: Iterable[DependencyChange]) -> tuple[DependencyChange, ...]:
    """Changes as they are told; those of one place stay in the order given. Cost: a sort."""
    placed = [(c, Rank(c.role, c.score).place(c.held)) for c in changes]
    best: dict[tuple[str, str], Place] = {}
    for c, place in placed:
        at = c.event, section(c.role, c.dependency.kind)
        best[at] = min(place, best.get(at, place))
    first = {at: (EVENTS.index(at[0]), place, number) for number, (at, place) in enumerate(best.items())}

    def key(item: tuple[DependencyChange, Place]) -> tuple[tuple[int, Place, int], Place]:
        c, place = item
        return first[c.event, section(c.role, c.dependency.kind)], place

    return tuple(c for c, _ in sorted(placed, key=key))


def best_first(ranks: Sequence[Rank]) -> list[int]:
    """The positions of ranks, as they are told."""
    return sorted(range(len(ranks)), key=lambda i: ranks[i].place())
