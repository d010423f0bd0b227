"""Rules about one column, found by its profile: `status in ('open', 'done')`, `quantity >= 1`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from holdfast.core.words.codec import Coded

Aspect = Literal["nulls", "values", "range", "pattern"]


@dataclass(frozen=True, slots=True, order=True)
class ColumnRule(Coded):
    """What all rows of a table keep in one column; `formula` is a condition (`condition.py`), written in one
    way: so it can be explained, and pinned, as it is.

    `score` says how much it means, from 0 to 1, and `reason` why.
    """

    kind: ClassVar[str] = "profile"
    table: str
    formula: str
    columns: tuple[str, ...] = field(compare=False, default=())
    aspect: Aspect = field(compare=False, default="values")
    score: float = field(compare=False, default=0.0)
    reason: str = field(compare=False, default="")
    error: float = field(compare=False, default=0.0)  # no row violates it

    @property
    def name(self) -> str:
        return self.formula

    def __str__(self) -> str:
        return f"{self.table}: {self.formula}"
