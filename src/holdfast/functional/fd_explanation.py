"""All about one functional dependency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow, turned_dict
from holdfast.core.words.dependency import Fd
from holdfast.core.words.display import SelfExplaining

if TYPE_CHECKING:
    from holdfast.core.evidence.groups import ViolatingGroup
    from holdfast.core.rows.relation import Relation

# (since, turned) of a pinned dependency that holds now, or does not, at a version; None if it is not pinned.
PinnedSince = Callable[[int, TableState, Fd, bool], tuple[int | None, CommitRow | None]]
GROUPS_SHOWN = 8
ROWS_PER_GROUP = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """What violates a dependency; nothing, if it holds."""

    violations: int = 0
    rows_to_remove: int = 0
    violating_rows: int = 0
    groups: tuple[ViolatingGroup, ...] = ()

    @classmethod
    def of(cls, relation: Relation, mask: NDArray[np.uint64], column: int) -> Measured:
        """What the rows say of a dependency; one that holds after all has no groups."""
        from holdfast.core.cover.news import plain_rows
        from holdfast.core.evidence.groups import measure_fds, violating_groups

        measures = measure_fds(relation, mask[None, :], np.array([column], dtype=np.int64))
        violations = int(measures.violations[0])
        if not violations:
            return cls()
        groups = violating_groups(relation, mask, column, GROUPS_SHOWN, ROWS_PER_GROUP, plain_rows)
        n_removed = relation.n_rows - int(measures.kept_rows[0])
        return cls(violations, n_removed, int(measures.violating_rows[0]), tuple(groups))


@dataclass(frozen=True, slots=True, repr=False)
class FdExplanation(SelfExplaining):
    """All about one functional dependency: whether it holds now, since when, what violates it."""

    table: str
    lhs: tuple[str, ...]
    rhs: str
    version: int
    n_rows: int
    trivial: bool  # the right-hand side is among the left: it cannot be violated
    holds: bool
    minimal: bool | None  # None where a bound hides it, or none are tracked
    inside: tuple[Fd, ...]  # the minimal dependencies that imply it
    key: tuple[str, ...] | None  # columns of the left-hand side that determine every column
    since: int | None  # the first version of the current spell; None where that is not known
    turned: CommitRow | None  # the commit that made it so, if it was otherwise before
    turned_by: tuple[ChangeRow, ...]  # what that commit changed, with the rows that did it
    violations: int  # pairs of rows
    error: float  # g1: their share of all pairs
    g3: float  # the share of rows to remove, at least, until it holds
    rows_to_remove: int
    violating_rows: int  # rows that some other row contradicts
    groups: tuple[ViolatingGroup, ...]  # rows by left-hand value, largest group first
    max_lhs: int | None  # the bound on left-hand sides

    @property
    def fd(self) -> Fd:
        return Fd(self.table, self.lhs, self.rhs, self.error)

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "lhs": list(self.lhs),
            "rhs": self.rhs,
            "version": self.version,
            "n_rows": self.n_rows,
            "trivial": self.trivial,
            "holds": self.holds,
            "minimal": self.minimal,
            "inside": [fd.to_dict() for fd in self.inside],
            "key": None if self.key is None else list(self.key),
            "since": self.since,
            "turned": turned_dict(self.turned, self.turned_by),
            "violations": self.violations,
            "error": self.error,
            "g3": self.g3,
            "rows_to_remove": self.rows_to_remove,
            "violating_rows": self.violating_rows,
            "groups": [group.to_dict() for group in self.groups],
            "max_lhs": self.max_lhs,
        }
