"""What a commit says of a table: its options, its live segments, where its cover and evidence lie.

Everything here is plain data that goes into a ledger row as JSON. Reading it needs no kernels and
no Spark, so `show` and `log` start fast.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.core.words.codec import Coded, decoded
from holdfast.core.words.column_facts import ColumnFacts, domain
from holdfast.core.words.column_sets import n_pairs, words_for
from holdfast.core.words.schema import Nulls, Schema

U64 = NDArray[np.uint64]
# An order index: two columns, and whether the second falls along its chains (IncDC, section 6).
OrderKey = tuple[int, int, bool]
Part = TypeVar("Part")


class IndexRef(NamedTuple):
    """A file with an index on each of some columns."""

    columns: tuple[int, ...]
    file: FileRef


class OrdersRef(NamedTuple):
    """A file with some order indexes."""

    keys: tuple[OrderKey, ...]
    file: FileRef


@dataclass(frozen=True, slots=True)
class SegmentRef(Coded):
    """A live segment: its file, its delete vector and its indexes."""

    number: int
    n_rows: int
    file: FileRef
    distinct: tuple[int, ...]  # distinct values per column
    merged: bool = False  # row ids are listed, not computed
    n_deleted: int = 0
    deletes: FileRef | None = None
    indexes: tuple[IndexRef, ...] = ()
    orders: tuple[OrdersRef, ...] = ()
    # Per column, as it was written: pairs of rows with the same value, and NULLs. Not in older workspaces.
    equal_pairs: tuple[int, ...] = ()
    nulls: tuple[int, ...] = ()

    @property
    def n_live(self) -> int:
        return self.n_rows - self.n_deleted

    @property
    def indexed(self) -> frozenset[int]:
        return frozenset(c for columns, _ in self.indexes for c in columns)

    @property
    def ordered(self) -> frozenset[OrderKey]:
        """The order indexes it has."""
        return frozenset(key for keys, _ in self.orders for key in keys)


def payloads_of(segments: Iterable[SegmentRef]) -> dict[int, dict[str, Any]]:
    """What payloads say of segments, by number: the very same object for all of them.

    A job of many pairs of segments names each a thousand times; its calls write it once (`Calls`).
    """
    return {s.number: s.to_dict() for s in segments}


@dataclass(frozen=True, slots=True)
class TableState(Coded):
    """One table at one version.

    What a class of dependencies keeps of it are further fields of the same JSON object, which only that class
    reads: `kept`. A class that this release does not know keeps what it has.
    """

    table: str
    folder: str
    schema: Schema
    kinds: tuple[str, ...]
    nulls: Nulls
    row_key: tuple[str, ...]  # () when none is declared
    options: dict[str, Any]  # how its files are read, unless a batch says otherwise
    next_number: int  # of the next segment
    segments: tuple[SegmentRef, ...]
    index_columns: tuple[int, ...] = ()  # what keys and left-hand sides are probed on
    append_only: bool = False  # no deletes, so rows need not be found by content
    # What is indexed for denial constraints and pinned rules, beside `index_columns`:
    rule_columns: tuple[int, ...] = ()
    orders: tuple[OrderKey, ...] = ()
    # Dependencies that are not worth telling, with reasons, as `Muted` has them in JSON; see `kind.muted_of`.
    muted: tuple[dict[str, Any], ...] = ()
    kept: Mapping[str, Any] = field(default_factory=dict)  # of the classes, as JSON
    _parts: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        state = Coded.to_dict(self)
        if not self.muted:
            del state["muted"]
        return {**state.pop("kept"), **state}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> TableState:
        classes = {name: value for name, value in fields.items() if name not in _FIELDS and value is not None}
        return decoded(cls, {**fields, "kept": classes})

    def part(self, name: str, decode: Callable[[Any], Part]) -> Part | None:
        """What a class keeps in a field, decoded once; None where it keeps nothing."""
        if self.kept.get(name) is None:
            return None
        if name not in self._parts:
            self._parts[name] = decode(self.kept[name])
        part: Part = self._parts[name]
        return part

    def keeping(self, **parts: Any) -> TableState:
        """With fields of classes, as JSON."""
        return replace(self, kept={**self.kept, **parts})

    @property
    def n_rows(self) -> int:
        return sum(s.n_live for s in self.segments)

    def column_facts(self, *, as_text: bool = False) -> list[ColumnFacts]:
        """What the state alone says of the columns; neither ranges nor lengths."""
        n_rows, distinct = self.n_rows, distinct_values(self.segments, len(self.schema))
        filled = values_at_most(self.segments, len(self.schema))
        columns = zip(self.schema.names, self.schema.types, filled, distinct, strict=True)
        return [
            ColumnFacts(
                table=self.table,
                column=name,
                position=position,
                domain=domain(type_, as_text),
                n_rows=n_rows,
                n_values=n_values,
                n_distinct=n_distinct,
                low=None,
                high=None,
                integers=type_.whole,
                mean_length=None,
            )
            for position, (name, type_, n_values, n_distinct) in enumerate(columns)
        ]

    @property
    def compressed(self) -> bool:
        """Whether its segments are: rows of a table that only grows and of which no class keeps anything are
        hardly looked at."""
        return self.append_only and not any(self.kept.values())

    @property
    def indexed_columns(self) -> list[int]:
        """The columns that every segment has an index on."""
        return list(dict.fromkeys([*self.index_columns, *self.rule_columns]))

    @property
    def locator(self) -> list[int]:
        """The columns that rows are found by: the row key, or all; none where rows are never looked for."""
        if self.append_only:
            return []
        if not self.row_key:
            return list(range(len(self.schema)))
        return [p for p in map(self.schema.position, self.row_key) if p is not None]


def distinct_values(segments: Sequence[SegmentRef], n_columns: int) -> list[int]:
    """An estimate of the distinct values of each column: no less than the largest segment's."""
    if not segments:
        return [0] * n_columns
    n_rows = sum(s.n_live for s in segments)
    return [min(sum(of_column), n_rows) for of_column in zip(*(s.distinct for s in segments), strict=True)]


def values_at_most(segments: Sequence[SegmentRef], n_columns: int) -> list[int | None]:
    """How many live rows have a value in each column, at most; None where nothing tells whether all have.

    A segment counted its NULLs as it was written: whichever rows were deleted since, the others are there.
    """
    if any(len(s.nulls) != n_columns for s in segments):  # of an older workspace
        return [None] * n_columns
    counts: list[int | None] = []
    for position in range(n_columns):
        written = sum(s.nulls[position] for s in segments)
        left = sum(max(0, s.nulls[position] - s.n_deleted) for s in segments)
        counts.append(None if written and not left else sum(s.n_live for s in segments) - left)
    return counts


def agreeing_pairs(segments: Sequence[SegmentRef], n_columns: int, *, nulls_distinct: bool) -> list[int]:
    """An estimate, up to a factor, of how many pairs of rows agree on each column: those within a segment.

    Where they were not counted, the values of a column are taken to be equally frequent.
    """
    counts = [0] * n_columns
    for s in segments:
        if s.equal_pairs:
            nulls = [0 if nulls_distinct else n_pairs(n) for n in s.nulls]
            within = [a + b for a, b in zip(s.equal_pairs, nulls, strict=True)]
        else:
            within = [n_pairs(s.n_rows) // max(1, d) for d in s.distinct]
        counts = [a + b for a, b in zip(counts, within, strict=True)]
    return counts


_FIELDS = frozenset(f.name for f in fields(TableState))


def table_folder(table: str) -> str:
    """A folder name that is readable, safe on any file system and different for different tables.

    >>> table_folder("orders 2024/Q1")
    'tables/orders_2024_Q1-f96867'
    """
    slug = re.sub(r"[^A-Za-z0-9]+", "_", table).strip("_")[:40] or "table"
    return f"tables/{slug}-{hashlib.sha256(table.encode()).hexdigest()[:6]}"


def read_masks(root: Root, ref: FileRef, what: str, n_columns: int) -> U64:
    """The masks of a cover or of evidence, uint64[n, n_words]."""
    masks: U64 = open_bundle(root, ref, what).array("masks").reshape(-1, words_for(n_columns))
    return masks
