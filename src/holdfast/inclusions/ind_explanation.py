"""All about one inclusion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.core.store.ledger_rows import CommitRow, turned_dict
from holdfast.core.words.change import WitnessRow
from holdfast.core.words.dependency import Ind, Side
from holdfast.core.words.display import SelfExplaining

# Missing values, or combinations of them, each with a row that carries it.
Missing = tuple[tuple[Any, WitnessRow], ...]


@dataclass(frozen=True, slots=True, repr=False)
class IndExplanation(SelfExplaining):
    """All about one inclusion: whether it holds now, since when, and what is missing."""

    dependent: Side
    referenced: Side
    version: int
    ind: Ind  # with its error now
    holds: bool
    since: int | None  # the first version of the current spell
    missing: Missing
    turned: CommitRow | None  # the commit that made it so, if it was otherwise before

    def to_dict(self) -> dict[str, Any]:
        return {
            "dependent": self.dependent.to_dict(),
            "referenced": self.referenced.to_dict(),
            "version": self.version,
            "holds": self.holds,
            "error": self.ind.error,
            "missing_values": self.ind.missing_values,
            "missing_rows": self.ind.missing_rows,
            "coverage": self.ind.coverage,
            "since": self.since,
            "missing": [{"value": value, **row.to_dict()} for value, row in self.missing],
            "turned": turned_dict(self.turned),
        }
