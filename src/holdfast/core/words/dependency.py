"""Dependencies: what can hold in tables. One small class per kind, and its JSON.

`predicate.py` has denial constraints, `row_rule.py` rules about each row. Other classes bring their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from holdfast.core.words.codec import Coded


class Dependency(Protocol):
    """What can hold, of any kind."""

    kind: ClassVar[str]

    @property
    def table(self) -> str:
        """Of an inclusion the dependent one."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the table that it is about."""

    @property
    def name(self) -> str:
        """As people write it, without the table where that is clear."""

    def to_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True, order=True)
class Ucc(Coded):
    """A unique column combination: no two rows agree on all of its columns.

    Columns are in the order of the schema. The empty combination holds in a table of at most one row.
    `error` is the share of the pairs of rows that agree on the columns (0 when it is a key).

    >>> str(Ucc("orders", ("customer", "day")))
    'orders[customer, day]'
    """

    kind: ClassVar[str] = "ucc"
    table: str
    columns: tuple[str, ...]
    error: float = field(default=0.0, compare=False)

    @property
    def name(self) -> str:
        return f"[{', '.join(self.columns)}]"

    def __str__(self) -> str:
        return f"{self.table}{self.name}"


def extended(columns: Iterable[str], keys: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Those of some keys to which columns add others.

    >>> extended(("id", "day"), [("id",), ("day", "id"), ("rate",), ()])
    [('id',)]
    """
    whole = {*columns}
    return [key for key in keys if key and whole > {*key}]


@dataclass(frozen=True, slots=True, order=True)
class Fd(Coded):
    """A functional dependency: rows that agree on the left-hand side agree on the right-hand side.

    The left-hand side is in the order of the schema; an empty one says that the right-hand side is
    constant. `error` is the share of the pairs of rows that violate it (g1; 0 when it holds).

    >>> str(Fd("orders", ("zip", "street"), "city")), str(Fd("orders", (), "currency"))
    ('orders: zip, street -> city', 'orders: [] -> currency')
    """

    kind: ClassVar[str] = "fd"
    table: str
    lhs: tuple[str, ...]
    rhs: str
    error: float = field(default=0.0, compare=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.lhs, self.rhs)

    @property
    def name(self) -> str:
        return f"{', '.join(self.lhs) or '[]'} -> {self.rhs}"

    def __str__(self) -> str:
        return f"{self.table}: {self.name}"


@dataclass(frozen=True, slots=True, order=True)
class Side(Coded):
    """Columns of one table, as one side of an inclusion dependency."""

    table: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}[{', '.join(self.columns)}]"


@dataclass(frozen=True, slots=True, order=True)
class Ind(Coded):
    """An inclusion dependency: the values of the dependent side occur in the referenced side.

    Two INDs are equal if their sides are. `error` is the share of the dependent side's distinct values
    that are missing (0 when it holds), `missing_values` and `missing_rows` count them and the rows that
    carry them (None where frequencies are not kept). `coverage` is the share of the referenced side's
    distinct values that occur in the dependent one (None with several columns: it is not kept).

    >>> str(Ind(Side("orders", ("customer",)), Side("customers", ("id",))))
    'orders[customer] in customers[id]'
    """

    kind: ClassVar[str] = "ind"
    dependent: Side
    referenced: Side
    error: float = field(default=0.0, compare=False)
    missing_values: int = field(default=0, compare=False)
    missing_rows: int | None = field(default=0, compare=False)
    coverage: float | None = field(default=1.0, compare=False)

    @property
    def table(self) -> str:
        return self.dependent.table

    @property
    def columns(self) -> tuple[str, ...]:
        return self.dependent.columns

    @property
    def name(self) -> str:
        return f"{self.dependent} in {self.referenced}"

    def __str__(self) -> str:
        return self.name
