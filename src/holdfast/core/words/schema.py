"""What a table's columns are: names, types, and how the types are coded.

A `Type` is one of a few families with their parameters. A value *code* is the 64-bit stand-in
of a value: exact (and order-preserving as an unsigned integer) for numbers, dates, times,
booleans and decimals of at most 18 digits; xxHash64 for text, binary and wider decimals, which
are called *hashed*. Types are fixed when a table is tracked; a batch must fit them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

Family = Literal["int", "uint", "float", "decimal", "bool", "date", "time", "timestamp", "text", "binary"]
Nulls = Literal["equal", "distinct"]

# Decimals of up to 18 digits fit a signed 64-bit integer at their scale: their code is exact.
MAX_EXACT_DIGITS = 18
# The families that compare with each other by value; the fraction digits of a time's unit.
NUMBERS = ("int", "uint", "float", "decimal")
FRACTION_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


@dataclass(frozen=True, slots=True)
class Type:
    """A column type.

    `precision` and `scale` belong to decimals; `unit` (s, ms, us, ns) to times and timestamps;
    `utc` says whether a timestamp is an instant (stored as UTC) or a local clock reading.

    >>> str(Type("decimal", precision=12, scale=2)), str(Type("timestamp", unit="us", utc=True))
    ('decimal(12,2)', 'timestamp[us,utc]')
    >>> Type.parse("decimal(12,2)") == Type("decimal", precision=12, scale=2)
    True
    """

    family: Family
    precision: int = 0
    scale: int = 0
    unit: str = ""
    utc: bool = False

    @property
    def whole(self) -> bool:
        """Whether all of its values are whole numbers."""
        return self.family in ("int", "uint") or (self.family == "decimal" and self.scale <= 0)

    def __str__(self) -> str:
        if self.family == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.family in ("time", "timestamp"):
            return f"{self.family}[{self.unit}{',utc' if self.utc else ''}]"
        return self.family

    @classmethod
    def parse(cls, text: str) -> Type:
        """The inverse of `str`; `timestamp` and `time` alone mean microseconds."""
        if text.startswith("decimal(") and text.endswith(")"):
            precision, _, scale = text[8:-1].partition(",")
            return cls("decimal", precision=int(precision), scale=int(scale or 0))
        if text in ("time", "timestamp"):
            return cls("time" if text == "time" else "timestamp", unit="us")
        for family in ("time", "timestamp"):
            if text.startswith(f"{family}[") and text.endswith("]"):
                unit, _, utc = text[len(family) + 1 : -1].partition(",")
                if unit in ("s", "ms", "us", "ns") and utc in ("", "utc"):
                    return cls("time" if family == "time" else "timestamp", unit=unit, utc=bool(utc))
        for plain in ("int", "uint", "float", "bool", "date", "text", "binary"):
            if text == plain:
                return cls(plain)
        raise ValueError(f"unknown column type {text!r}")

    @property
    def hashed(self) -> bool:
        """Whether two different values might share a code."""
        wide = self.family == "decimal" and self.precision > MAX_EXACT_DIGITS
        return wide or self.family in ("text", "binary")

    @property
    def ordered(self) -> bool:
        """Whether codes compare as the values do."""
        return not self.hashed


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in order. Positions are bit numbers in every mask."""

    columns: tuple[Column, ...]
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    types: tuple[Type, ...] = field(init=False, repr=False, compare=False)
    places: dict[str, int] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Frozen, and asked for all the time: worked out once.
        object.__setattr__(self, "names", tuple(c.name for c in self.columns))
        object.__setattr__(self, "types", tuple(c.type for c in self.columns))
        object.__setattr__(self, "places", {name: i for i, name in enumerate(self.names)})
        object.__setattr__(self, "_hash", hash(self.columns))

    def __hash__(self) -> int:
        return self._hash  # open segments are looked up by it, fifty times for a batch of one row

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema, (self.columns,)  # hashes of texts differ between processes

    def __len__(self) -> int:
        return len(self.columns)

    def position(self, name: str) -> int | None:
        """The position of a column, or None."""
        return self.places.get(name)

    def restricted(self, names: Collection[str]) -> Schema:
        """The schema of the columns of these names, in its own order; itself if they are all."""
        columns = tuple(c for c in self.columns if c.name in names)
        return self if len(columns) == len(self) else Schema(columns)

    def chosen(self, columns: Sequence[str] | None, exclude: Sequence[str]) -> list[str]:
        """The names that match a pattern of `columns`, all if there is none, and none of `exclude`."""
        return [
            name
            for name in self.names
            if (columns is None or any(fnmatchcase(name, pattern) for pattern in columns))
            and not any(fnmatchcase(name, pattern) for pattern in exclude)
        ]

    def to_dict(self) -> list[dict[str, str]]:
        return [{"name": c.name, "type": str(c.type)} for c in self.columns]

    @classmethod
    def from_dict(cls, columns: Sequence[dict[str, Any]]) -> Schema:
        return cls(tuple(Column(c["name"], Type.parse(c["type"])) for c in columns))
