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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.bundle import open_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root
from holdfast.core.words.change import Pin, WitnessRow
from holdfast.core.words.codec import Coded
from holdfast.core.words.dependency import Side
from holdfast.core.words.reliance import USUAL, Terms

FOLDER = "values"


@dataclass(frozen=True, slots=True)
class ValueTable(Coded):
    """The columns of a table that take part: ids `first`, `first + 1`, ... in this order."""

    table: str
    first: int
    columns: tuple[str, ...]
    as_text: bool = False
    append_only: bool = False

    @property
    def ids(self) -> range:
        return range(self.first, self.first + len(self.columns))


@dataclass(frozen=True, slots=True)
class RunRef(Coded):
    """A live run; `parts[i]` holds the keys whose top `bits` are i, None where there are none."""

    n_entries: int
    bits: int
    parts: tuple[FileRef | None, ...]
    append_only: bool  # its entries are of append-only tables, so it carries no frequencies

    def files(self) -> list[FileRef]:
        return [f for f in self.parts if f is not None]


@dataclass(frozen=True, slots=True)
class SumRef(Coded):
    """A file of signed counts, and how many there are in it."""

    file: FileRef
    n: int


@dataclass(frozen=True, slots=True)
class PinnedInd(Coded):
    """An inclusion that somebody relies on, and whether it holds within the tolerance.

    `n_violations` counts the rows whose value is missing; None if the last batch of its tables was of an
    earlier release, which counted only inclusions with a tolerance.
    """

    dependent: Side
    referenced: Side
    holds: bool
    terms: Terms = USUAL
    n_violations: int | None = None
    n_rows: int = 0  # of the dependent table, when they were counted

    @property
    def tables(self) -> set[str]:
        return {self.dependent.table, self.referenced.table}

    def pin(self, witnesses: tuple[tuple[WitnessRow, ...], ...] = ()) -> Pin:
        side, n = self.dependent, self.n_violations
        error = None if n is None else n / max(1, self.n_rows)
        return Pin(
            side.table,
            side.columns,
            self.holds,
            self.referenced,
            n_violations=n,
            witnesses=witnesses,
            terms=self.terms,
            error=error,
        )


@dataclass(frozen=True, slots=True)
class GeneratorState(Coded):
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


def read_pairs(root: Root, refs: Sequence[SumRef]) -> Iterator[dict[str, NDArray[Any]]]:
    """The files of pair counts that a state names, one by one; their sum is what holds."""
    for ref in refs:
        bundle = open_bundle(root, ref.file, "pairs")
        yield {name: bundle.array(name) for name in ("pairs", "values", "rows")}
