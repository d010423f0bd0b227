"""What a commit says of the generator: the columns that take part in INDs, and where its parts lie.

The generator (value -> {column: frequency}) is shared by all tables of a workspace, so its state is a
commit row of its own, beside those of the tables. Plain data, JSON in a ledger row; reading it needs
neither kernels nor Spark.

- *runs*: sorted (value, column, count) entries. A run's parts divide the values by the top `bits` of
  their key. The frequency of a value in a column is the sum over all runs.
- *clusters* and *pairs* are sums, too: files of signed counts, the first the largest. Pairs are kept
  for all versions, since past inclusions are read from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.words.dependency import Side

FOLDER = "values"


@dataclass(frozen=True, slots=True)
class ValueTable:
    """The columns of a table that take part: ids `first`, `first + 1`, ... in this order."""

    table: str
    first: int
    columns: tuple[str, ...]
    as_text: bool = False
    append_only: bool = False

    @property
    def ids(self) -> range:
        return range(self.first, self.first + len(self.columns))

    def to_dict(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "first": self.first,
            "columns": list(self.columns),
            "as_text": self.as_text,
            "append_only": self.append_only,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> ValueTable:
        return cls(
            fields["table"],
            fields["first"],
            tuple(fields["columns"]),
            fields["as_text"],
            fields["append_only"],
        )


@dataclass(frozen=True, slots=True)
class RunRef:
    """A live run; `parts[i]` holds the keys whose top `bits` are i, None where there are none."""

    n_entries: int
    bits: int
    parts: tuple[FileRef | None, ...]
    append_only: bool  # its entries are of append-only tables, so it carries no frequencies

    def files(self) -> list[FileRef]:
        return [f for f in self.parts if f is not None]

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_entries": self.n_entries,
            "bits": self.bits,
            "parts": [f.to_dict() if f else None for f in self.parts],
            "append_only": self.append_only,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> RunRef:
        parts = tuple(FileRef.from_dict(f) if f else None for f in fields["parts"])
        return cls(fields["n_entries"], fields["bits"], parts, fields["append_only"])


@dataclass(frozen=True, slots=True)
class SumRef:
    """A file of signed counts, and how many there are in it."""

    file: FileRef
    n: int

    def to_dict(self) -> dict[str, Any]:
        return {"file": self.file.to_dict(), "n": self.n}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SumRef:
        return cls(FileRef.from_dict(fields["file"]), fields["n"])


@dataclass(frozen=True, slots=True)
class PinnedInd:
    """An inclusion that somebody relies on, and whether it holds."""

    dependent: Side
    referenced: Side
    holds: bool

    def to_dict(self) -> dict[str, Any]:
        sides = {"dependent": self.dependent.to_dict(), "referenced": self.referenced.to_dict()}
        return {**sides, "holds": self.holds}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> PinnedInd:
        return cls(Side.from_dict(fields["dependent"]), Side.from_dict(fields["referenced"]), fields["holds"])


@dataclass(frozen=True, slots=True)
class GeneratorState:
    """The generator at one version of the workspace."""

    tables: tuple[ValueTable, ...] = ()
    next_id: int = 0
    runs: tuple[RunRef, ...] = ()
    n_dead: int = 0  # entries of dropped columns that are still in the runs, at least
    clusters: tuple[SumRef, ...] = ()
    pairs: tuple[SumRef, ...] = ()
    max_arity: int = 4
    composites: FileRef | None = None  # n-ary INDs and what refutes the others
    pins: tuple[PinnedInd, ...] = ()

    def table(self, name: str) -> ValueTable | None:
        return next((t for t in self.tables if t.table == name), None)

    def names(self) -> dict[int, tuple[str, str]]:
        """Column id -> (table, column)."""
        return {i: (t.table, c) for t in self.tables for i, c in zip(t.ids, t.columns, strict=True)}

    def live(self) -> NDArray[np.bool_]:
        """Which column ids are in use, bool[next_id]."""
        live = np.zeros(self.next_id, dtype=np.bool_)
        for t in self.tables:
            live[t.first : t.first + len(t.columns)] = True
        return live

    def append_only(self) -> NDArray[np.bool_]:
        """Which column ids carry no frequencies, bool[next_id]."""
        marked = np.zeros(self.next_id, dtype=np.bool_)
        for t in self.tables:
            marked[t.first : t.first + len(t.columns)] = t.append_only
        return marked

    def files(self) -> list[FileRef]:
        return [*self.covers(), *(s.file for s in self.clusters), *(f for r in self.runs for f in r.files())]

    def covers(self) -> list[FileRef]:
        """The files that past inclusions are read from."""
        return [*(s.file for s in self.pairs), *([self.composites] if self.composites else [])]

    def to_dict(self) -> dict[str, Any]:
        return {
            "tables": [t.to_dict() for t in self.tables],
            "next_id": self.next_id,
            "runs": [r.to_dict() for r in self.runs],
            "n_dead": self.n_dead,
            "clusters": [s.to_dict() for s in self.clusters],
            "pairs": [s.to_dict() for s in self.pairs],
            "max_arity": self.max_arity,
            "composites": self.composites.to_dict() if self.composites else None,
            "pins": [p.to_dict() for p in self.pins],
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> GeneratorState:
        return cls(
            tables=tuple(ValueTable.from_dict(t) for t in fields["tables"]),
            next_id=fields["next_id"],
            runs=tuple(RunRef.from_dict(r) for r in fields["runs"]),
            n_dead=fields["n_dead"],
            clusters=tuple(SumRef.from_dict(s) for s in fields["clusters"]),
            pairs=tuple(SumRef.from_dict(s) for s in fields["pairs"]),
            max_arity=fields["max_arity"],
            composites=FileRef.from_dict(fields["composites"]) if fields["composites"] else None,
            pins=tuple(PinnedInd.from_dict(p) for p in fields["pins"]),
        )


def read_pairs(root: Path, refs: Sequence[SumRef]) -> Iterator[dict[str, NDArray[Any]]]:
    """The files of pair counts that a state names, one by one; their sum is what holds."""
    for ref in refs:
        bundle = open_bundle(root, ref.file, "pairs")
        yield {name: bundle.array(name) for name in ("pairs", "values", "rows")}
