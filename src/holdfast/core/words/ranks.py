"""The order in which every report tells what holds, or what changed: what it means comes before its name.

A dependency has a *role* and a score of 0 to 1. First comes what somebody has pinned, then foreign keys (the
inclusions that `links` would propose) and primary keys, then other dependencies; last come those that look
like chance, and those that somebody has muted, which people are told only the number of. Of one role, what
had held through many versions comes first, then what has the higher score, then what had held longer.
`holdfast/order.py` says who has which.

Changes are told by event, what broke first; of an event in sections: foreign keys, primary keys, and what is
left of each kind; what is pinned stands in the section that it would have if it were not. The section with
the best change comes first; but keys stand above functional dependencies,
and these above denial constraints, since what says the same is only counted there. Lists for programs have
the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

if TYPE_CHECKING:
    from holdfast.core.words.change import DependencyChange

Role = Literal["pinned", "foreign key", "primary key", "dependency", "chance", "muted"]
ROLES: tuple[Role, ...] = get_args(Role)
_NUMBERS = {role: i for i, role in enumerate(ROLES)}
# Roles that people are told only the number of; of what looks like chance some, if there is nothing else.
COUNTED = ("chance", "muted")
# Roles that have a section of their own in the report of a batch, whatever their kind.
SECTIONS = ("foreign key", "primary key")
# The order of events; see `DependencyChange`.
EVENTS = ("broke", "appeared", "implied", "within", "beyond", "dropped")
# Of sections in one place.
KINDS = {"ucc": 0, "fd": 1, "dc": 2}
# A dependency that had held through so many versions was hardly an accident.
LONG_HELD = 5

Place = tuple[int, bool, float, int]


class Rank(NamedTuple):
    """What a dependency means."""

    role: Role = "dependency"
    score: float = 0.0
    unpinned: Role | None = None  # of what is pinned: the role that it has by itself

    @property
    def meant(self) -> Role:
        """The role that it has by itself, pinned or not."""
        return self.unpinned or self.role

    def place(self, held: int = 0) -> Place:
        """Where it stands: the smallest place comes first.

        >>> ranks = [Rank("chance", 0.9), Rank("dependency", 0.2), Rank("foreign key", 0.6)]
        >>> [rank.role for rank in sorted(ranks, key=Rank.place)]
        ['foreign key', 'dependency', 'chance']
        """
        return _place(self.role, self.score, held)


def _place(role: Role, score: float, held: int) -> Place:
    return _NUMBERS[role], held < LONG_HELD, -score, -held


def section(role: str, kind: str) -> str:
    """What a change is told among: its role by itself, if that has a section, or its kind."""
    return role if role in SECTIONS else kind


def in_order(changes: Iterable[DependencyChange]) -> tuple[DependencyChange, ...]:
    """Changes as they are told; those of one place stay in the order given. Cost: a sort."""
    placed = [
        (c, (c.event, section(c.meant, c.dependency.kind)), _place(c.role, c.score, c.held)) for c in changes
    ]
    best: dict[tuple[str, str], Place] = {}
    for _, at, place in placed:
        best[at] = min(place, best.get(at, place))
    for above, below in (("fd", "dc"), ("ucc", "fd")):
        for event in EVENTS:
            if {(event, above), (event, below)} <= best.keys():
                best[event, above] = min(best[event, above], best[event, below])
    sections = sorted(best, key=lambda at: (EVENTS.index(at[0]), best[at], KINDS.get(at[1], len(KINDS))))
    number = {at: i for i, at in enumerate(sections)}
    return tuple(c for c, *_ in sorted(placed, key=lambda p: (number[p[1]], p[2])))


def best_first(ranks: Sequence[Rank]) -> list[int]:
    """The positions of ranks, as they are told."""
    return sorted(range(len(ranks)), key=lambda i: ranks[i].place())
