"""What a commit says of a table: its options, its live segments, where its cover and evidence lie.

Everything here is plain data that goes into a ledger row as JSON. Reading it needs no kernels and
no Spark, so `show` and `log` start fast.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.words.schema import Nulls, Schema
from holdfast.denial.constraints import DcRef, PinnedRule

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
EvidenceKind = Literal["counted", "witnessed"]
# An order index: two columns, and whether the second falls along its chains (IncDC, section 6).
OrderKey = tuple[int, int, bool]


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """A live segment: its file, its delete vector and its indexes."""

    number: int
    n_rows: int
    file: FileRef
    distinct: tuple[int, ...]  # distinct values per column
    merged: bool = False  # row ids are listed, not computed
    n_deleted: int = 0
    deletes: FileRef | None = None
    indexes: tuple[tuple[tuple[int, ...], FileRef], ...] = ()
    orders: tuple[tuple[tuple[OrderKey, ...], FileRef], ...] = ()

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

    def to_dict(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "n_rows": self.n_rows,
            "file": self.file.to_dict(),
            "distinct": list(self.distinct),
            "merged": self.merged,
            "n_deleted": self.n_deleted,
            "deletes": self.deletes.to_dict() if self.deletes else None,
            "indexes": [{"columns": list(c), "file": f.to_dict()} for c, f in self.indexes],
            "orders": [{"keys": [list(k) for k in keys], "file": f.to_dict()} for keys, f in self.orders],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SegmentRef:
        return cls(
            number=fields["number"],
            n_rows=fields["n_rows"],
            file=FileRef.from_dict(fields["file"]),
            distinct=tuple(fields["distinct"]),
            merged=fields["merged"],
            n_deleted=fields["n_deleted"],
            deletes=FileRef.from_dict(fields["deletes"]) if fields["deletes"] else None,
            indexes=tuple((tuple(i["columns"]), FileRef.from_dict(i["file"])) for i in fields["indexes"]),
            orders=tuple(
                (tuple((a, b, falling) for a, b, falling in o["keys"]), FileRef.from_dict(o["file"]))
                for o in fields["orders"]
            ),
        )


@dataclass(frozen=True, slots=True)
class FdRef:
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

    def to_dict(self) -> dict[str, Any]:
        return {
            "evidence_kind": self.evidence_kind,
            "max_lhs": self.max_lhs,
            "max_error": self.max_error,
            "cover": self.cover.to_dict(),
            "evidence": self.evidence.to_dict(),
            "deltas": [d.to_dict() for d in self.deltas],
            "approximate": self.approximate.to_dict() if self.approximate else None,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> FdRef:
        return cls(
            evidence_kind=fields["evidence_kind"],
            max_lhs=fields["max_lhs"],
            max_error=fields["max_error"],
            cover=FileRef.from_dict(fields["cover"]),
            evidence=FileRef.from_dict(fields["evidence"]),
            approximate=FileRef.from_dict(fields["approximate"]) if fields["approximate"] else None,
            deltas=tuple(FileRef.from_dict(d) for d in fields["deltas"]),
        )


@dataclass(frozen=True, slots=True)
class TableState:
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
    pins: tuple[tuple[tuple[str, ...], bool], ...] = ()  # pinned columns, and whether they are unique
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

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "folder": self.folder,
            "schema": self.schema.to_dict(),
            "kinds": list(self.kinds),
            "nulls": self.nulls,
            "row_key": list(self.row_key),
            "max_columns": self.max_columns,
            "options": self.options,
            "next_number": self.next_number,
            "segments": [s.to_dict() for s in self.segments],
            "index_columns": list(self.index_columns),
            "cover": self.cover.to_dict() if self.cover else None,
            "evidence": self.evidence.to_dict() if self.evidence else None,
            "append_only": self.append_only,
            "pins": [{"columns": list(columns), "holds": holds} for columns, holds in self.pins],
            "fds": self.fds.to_dict() if self.fds else None,
            "dcs": self.dcs.to_dict() if self.dcs else None,
            "row_rules": self.row_rules.to_dict() if self.row_rules else None,
            "rules": [r.to_dict() for r in self.rules],
            "rule_columns": list(self.rule_columns),
            "orders": [list(k) for k in self.orders],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> TableState:
        return cls(
            table=fields["table"],
            folder=fields["folder"],
            schema=Schema.from_dict(fields["schema"]),
            kinds=tuple(fields["kinds"]),
            nulls=fields["nulls"],
            row_key=tuple(fields["row_key"]),
            max_columns=fields["max_columns"],
            options=fields["options"],
            next_number=fields["next_number"],
            segments=tuple(SegmentRef.from_dict(s) for s in fields["segments"]),
            index_columns=tuple(fields["index_columns"]),
            cover=FileRef.from_dict(fields["cover"]) if fields["cover"] else None,
            evidence=FileRef.from_dict(fields["evidence"]) if fields["evidence"] else None,
            append_only=fields["append_only"],
            pins=tuple((tuple(p["columns"]), p["holds"]) for p in fields["pins"]),
            fds=FdRef.from_dict(fields["fds"]) if fields["fds"] else None,
            dcs=DcRef.from_dict(fields["dcs"]) if fields["dcs"] else None,
            row_rules=FileRef.from_dict(fields["row_rules"]) if fields["row_rules"] else None,
            rules=tuple(PinnedRule.from_dict(r) for r in fields["rules"]),
            rule_columns=tuple(fields["rule_columns"]),
            orders=tuple((a, b, falling) for a, b, falling in fields["orders"]),
        )


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
