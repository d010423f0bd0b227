"""All about one rule: about two rows, or about each row alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.core.words.change import Pair, WitnessRow
from holdfast.core.words.display import SelfExplaining
from holdfast.core.words.predicate import Dc
from holdfast.core.words.row_rule import RowRule
from holdfast.core.words.sentences import sentence

if TYPE_CHECKING:
    from holdfast.denial.access.access import Selection


@dataclass(frozen=True, slots=True)
class DcList:
    """Denial constraints in some form."""

    dcs: list[Dc]
    complete: bool  # not cut at a limit
    n_dropped: int = 0  # those that the others imply


@dataclass(frozen=True, slots=True, repr=False)
class DcExplanation(SelfExplaining):
    """Whether a rule about two rows holds, and why."""

    table: str
    dc: Dc  # with its error
    version: int
    holds: bool
    n_violations: int  # ordered pairs of rows
    pairs: tuple[Pair, ...]  # a few of them
    minimal: bool  # it is one of those that are listed
    implied_by: tuple[Dc, ...]  # those listed that say as much or more
    since: int | None  # the first version of the spell in which it holds, or does not; None: not known
    pinned: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "rule": self.dc.to_dict(),
            "formula": self.dc.formula,
            "sentence": sentence(self.dc),
            "version": self.version,
            "holds": self.holds,
            "n_violations": self.n_violations,
            "error": self.dc.error,
            "pairs": [[row.to_dict() for row in pair] for pair in self.pairs],
            "minimal": self.minimal,
            "implied_by": [d.to_dict() for d in self.implied_by],
            "since": self.since,
            "pinned": self.pinned,
        }


@dataclass(frozen=True, slots=True, repr=False)
class RowExplanation(SelfExplaining):
    """Whether a rule about each row alone holds, and the rows that are against it."""

    rule: RowRule  # with its error and number of exceptions
    version: int
    holds: bool
    exceptions: tuple[WitnessRow, ...]
    since: int | None  # the first version of the spell in which it holds, or does not; None: not known

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.rule.table,
            "rule": self.rule.to_dict(),
            "formula": self.rule.formula,
            "version": self.version,
            "holds": self.holds,
            "since": self.since,
            "exceptions": [row.to_dict() for row in self.exceptions],
        }


@dataclass(frozen=True, slots=True)
class IndexReport:
    """How batches are looked up for the constraints of a table."""

    table: str
    evidence_kind: str
    selection: Selection | None  # None: counted evidence compares a batch with all rows, and needs none

    def to_dict(self) -> dict[str, Any]:
        selection = {} if self.selection is None else self.selection.to_dict()
        return {"table": self.table, "evidence": self.evidence_kind, **selection}
