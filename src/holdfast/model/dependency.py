"""Dependencies: what can hold in a table. One small class per kind, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

KINDS = ("ucc",)


@dataclass(frozen=True, slots=True, order=True)
class Ucc:
    """A unique column combination: no two rows agree on all of its columns.

    Columns are in the order of the schema. The empty combination holds in a table of at most one row.

    >>> str(Ucc("orders", ("customer", "day")))
    'orders[customer, day]'
    """

    kind: ClassVar[str] = "ucc"
    table: str
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}[{', '.join(self.columns)}]"

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "table": self.table, "columns": list(self.columns), "error": 0}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Ucc:
        return cls(fields["table"], tuple(fields["columns"]))


Dependency = Ucc
