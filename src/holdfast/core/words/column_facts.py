"""What is known of a column without a look at its rows: counts, and what its values are like."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from holdfast.core.words.schema import Type

DENSE = 0.8  # a sequence has at least this share of the integers of its range


def domain(type_: Type, as_text: bool) -> str:
    """What a column's values compare with: columns of different domains have no value in common.

    >>> domain(Type("decimal", 12, 2), False), domain(Type("timestamp", unit="ms", utc=True), False)
    ('number', 'instant')
    >>> domain(Type("date"), True)
    'text'
    """
    if as_text:
        return "text"
    if type_.family in ("int", "uint", "decimal", "float"):
        return "number"
    if type_.family == "timestamp" and type_.utc:
        return "instant"
    return type_.family


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is known of a column without looking at its rows."""

    table: str
    column: str
    position: int
    domain: str  # "number", "text", "date", ...
    n_rows: int
    n_values: int | None  # rows with a value, at most; None where it is not known whether all have one
    n_distinct: int
    low: float | None  # smallest and largest value of a number or a date; None for other domains
    high: float | None
    integers: bool  # all values are integers
    mean_length: float | None  # of the distinct values of a text

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"

    @property
    def has_nulls(self) -> bool:
        return self.n_values is not None and self.n_values < self.n_rows

    @property
    def is_unique(self) -> bool:
        """No two rows share a value, and every row has one."""
        return 0 < self.n_distinct == self.n_rows and not self.has_nulls

    @property
    def span(self) -> float | None:
        """Largest minus smallest value; None where there is none, or one of them is infinite or NaN."""
        if self.low is None or self.high is None or not (isfinite(self.low) and isfinite(self.high)):
            return None
        return self.high - self.low

    @property
    def density(self) -> float:
        """The share of the integers (the days) of its range that occur; decimals count in hundredths."""
        if self.span is None:
            return 0.0
        steps = self.span if self.integers or self.domain != "number" else 100 * self.span
        return min(1.0, self.n_distinct / (steps + 1))

    @property
    def is_sequence(self) -> bool:
        """Integers from 0 or 1 on, nearly without a gap: a counter, a rank, a small quantity."""
        return self.integers and self.low in (0.0, 1.0) and self.density >= DENSE
