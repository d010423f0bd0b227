"""The profile of a column: what its counts say, as it is shown, stored for every version, and read again.

Plain data: reading one needs neither Arrow nor kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.core.words.codec import Coded
from holdfast.core.words.column_rule import ColumnRule

# The most frequent values that are told; all of them if they are at most ALL_VALUES.
TOP_VALUES, ALL_VALUES = 10, 20
TOP_PATTERNS = 10


@dataclass(frozen=True, slots=True)
class Counted(Coded):
    """A value, or a pattern, and the rows that have it."""

    value: Any  # as JSON carries it: numbers and texts as they are, all else as text
    n_rows: int


@dataclass(frozen=True, slots=True)
class Lengths(Coded):
    """Of texts in characters, of binary values in bytes."""

    low: int
    high: int
    mean: float


@dataclass(frozen=True, slots=True)
class ColumnProfile(Coded):
    """What the values of a column are like.

    `n_distinct` and `top` are None where they are not known: there are more values than are counted with
    every batch (`more_than`, unless texts are too long to be counted), and nobody has counted them. `low` and
    `high` are None of values without an order, of long texts, and where there are no values. `patterns` are
    shapes if there are few, else forms (`text_shapes.py`); None: there are many, or no such texts.
    """

    column: str
    type: str
    n_rows: int
    n_nulls: int
    n_distinct: int | None
    more_than: int = 0
    low: Any = None
    high: Any = None
    top: tuple[Counted, ...] | None = None
    lengths: Lengths | None = None
    patterns: tuple[Counted, ...] | None = None
    n_patterns: int | None = None  # how many there are; `patterns` are the first
    rules: tuple[ColumnRule, ...] = ()

    @property
    def n_values(self) -> int:
        """The rows that have a value."""
        return self.n_rows - self.n_nulls

    @property
    def distinct_text(self) -> str:
        """How many distinct values it has, as far as it is known."""
        if self.n_distinct is not None:
            return f"{self.n_distinct:,}"
        return f"more than {self.more_than:,}" if self.more_than else "?"
