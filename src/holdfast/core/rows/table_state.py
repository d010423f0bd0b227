"""What a commit says of a table: its options, its live segments, where its cover and evidence lie.

Everything here is plain data that goes into a ledger row as JSON. Reading it needs no kernels and
no Spark, so `show` and `log` start fast.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.words.codec import Coded
from holdfast.core.words.schema import Nulls, Schema
from holdfast.denial.constraints import DcRef, PinnedRule

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
EvidenceKind = Literal["counted", "witnessed"]
# An order index: two columns, and whether the second falls along its chains (IncDC, section 6).
OrderKey = tuple[int, int, bool]


class IndexRef(NamedTuple):
    """A file with an index on each of some columns."""

    columns: tuple[int, ...]
    file: FileRef


class OrdersRef(NamedTuple):
    """A file with some order indexes."""

    keys: tuple[OrderKey, ...]
    file: FileRef


class PinnedKey(NamedTuple):
    """Columns that somebody relies on, and whether they are unique."""

    columns: tuple[str, ...]
    holds: bool


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

    def files(self) -> list[FileRef]:
        own = [self.file, *([self.deletes] if self.deletes else [])]
        return [*own, *(f for _, f in self.indexes), *(f for _, f in self.orders)]


@dataclass(frozen=True, slots=True)
class FdRef(Coded):
    """How the functional dependencies of a table are kept, and where they lie."""

    evidence_kind: EvidenceKind
    max_lhs: int  # 0: left-hand sides of any size
    max_error: float  # 0: only those that hold exactly
    cover: FileRef
    evidence: FileRef
    approximate: FileRef | None  # the minimal ones within max_error
    deltas: tuple[FileRef, ...] = ()  # what batches have added to counted evidence since, oldest first

    def files(self) -> list[FileRef]:
        near = [self.approximate] if self.approximate else []
        return [self.cover, self.evidence, *self.deltas, *near]


@dataclass(frozen=True, slots=True)
class TableState(Coded):
    """One table at one version."""

    table: str
    folder: str
    schema: Schema
    kinds: tuple[str, ...]
    nulls: Nulls
    row_key: tuple[str, ...]  # () when none is declared
    max_columns: int  # 0: keys of any size
    options: dict[str, Any]  # how its files are read, unless a batch says otherwise
    next_number: int  # of the next segment
    segments: tuple[SegmentRef, ...]
    index_columns: tuple[int, ...]
    cover: FileRef | None  # None where keys are not tracked
    evidence: FileRef | None
    append_only: bool = False  # no deletes, so rows need not be found by content
    pins: tuple[PinnedKey, ...] = ()
    fds: FdRef | None = None  # None where functional dependencies are not tracked
    dcs: DcRef | None = None  # None where denial constraints are not tracked
    row_rules: FileRef | None = None  # outcomes of comparisons within rows; None where not tracked
    rules: tuple[PinnedRule, ...] = ()  # pinned rules about pairs of rows
    # What is indexed for denial constraints and pinned rules, beside `index_columns`:
    rule_columns: tuple[int, ...] = ()
    orders: tuple[OrderKey, ...] = ()

    @property
    def n_rows(self) -> int:
        return sum(s.n_live for s in self.segments)

    @property
    def compressed(self) -> bool:
        """Whether its segments are: rows of a table that only grows and has no keys are hardly looked at."""
        looked_at = any(map(self.tracks, ("ucc", "fd", "dc", "row"))) or self.rules
        return self.append_only and not looked_at

    def tracks(self, kind: str) -> bool:
        return kind in self.kinds

    @property
    def locator(self) -> list[int]:
        """The columns that rows are found by: the row key, or all; none where rows are never looked for."""
        if self.append_only:
            return []
        if not self.row_key:
            return list(range(len(self.schema)))
        return [p for p in map(self.schema.position, self.row_key) if p is not None]

    def covers(self) -> list[FileRef]:
        """The files that tell what held, which older versions need, too."""
        fds = [self.fds.cover, self.fds.approximate] if self.fds is not None else []
        dcs = [self.dcs.cover, self.dcs.approximate] if self.dcs is not None else []
        return [f for f in (self.cover, *fds, *dcs, self.row_rules) if f is not None]

    def files(self) -> list[FileRef]:
        keys = [f for f in (self.cover, self.evidence, self.row_rules) if f is not None]
        fds = self.fds.files() if self.fds is not None else []
        dcs = self.dcs.files() if self.dcs is not None else []
        return [*keys, *fds, *dcs, *(f for s in self.segments for f in s.files())]


def table_folder(table: str) -> str:
    """A folder name that is readable, safe on any file system and different for different tables.

    >>> table_folder("orders 2024/Q1")
    'tables/orders_2024_Q1-f96867'
    """
    slug = re.sub(r"[^A-Za-z0-9]+", "_", table).strip("_")[:40] or "table"
    return f"tables/{slug}-{hashlib.sha256(table.encode()).hexdigest()[:6]}"


def read_masks(root: Path, ref: FileRef, what: str, n_columns: int) -> U64:
    """The masks of a cover or of evidence, uint64[n, n_words]."""
    masks: U64 = open_bundle(root, ref, what).array("masks").reshape(-1, max(1, (n_columns + 63) // 64))
    return masks


def read_fds(root: Path, ref: FileRef, n_columns: int) -> tuple[U64, I32]:
    """(masks, rhs) of the minimal functional dependencies: left-hand sides uint64[n, n_words], int32[n]."""
    bundle = open_bundle(root, ref, "fds")
    return bundle.array("masks").reshape(-1, max(1, (n_columns + 63) // 64)), bundle.array("rhs")


def read_approximate(root: Path, ref: FileRef, n_columns: int) -> tuple[U64, I32, I64]:
    """(masks, rhs, violations) of the minimal approximate dependencies; rhs is -1 for a key."""
    bundle = open_bundle(root, ref, "approximate")
    masks = bundle.array("masks").reshape(-1, max(1, (n_columns + 63) // 64))
    return masks, bundle.array("rhs"), bundle.array("violations")


def columns_of(masks: U64) -> list[tuple[int, ...]]:
    """The column positions of each mask.

    >>> columns_of(np.array([[5], [0]], dtype=np.uint64))
    [(0, 2), ()]
    """
    # Word by word: of wide tables nearly all words are 0.
    row, word = np.nonzero(masks)
    octets = np.ascontiguousarray(masks[row, word], dtype="<u8").view(np.uint8).reshape(-1, 8)
    at, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    columns = (64 * word[at] + bit).tolist()
    ends = np.cumsum(np.bincount(row[at], minlength=len(masks))).tolist()
    return [tuple(columns[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
