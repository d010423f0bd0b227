"""What a commit says of a table's keys and functional dependencies: how they are kept, and where they lie.

Reading it needs no kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.table_state import TableState, read_masks
from holdfast.core.store.bundle import open_bundle, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.root import Root
from holdfast.core.words.change import Pair, Pin
from holdfast.core.words.codec import Coded
from holdfast.core.words.column_sets import columns_of, n_pairs, words_for
from holdfast.core.words.dependency import Fd, Ucc
from holdfast.core.words.options import EvidenceKind
from holdfast.core.words.reliance import USUAL, Terms

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Combinations = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PinnedKey(Coded):
    """Columns that somebody relies on, and whether they are unique within the tolerance.

    `n_violations` counts the rows to remove, all but one of those that agree; None if the last batch was of
    an earlier release, which counted only keys with a tolerance.
    """

    columns: tuple[str, ...]
    holds: bool
    terms: Terms = USUAL
    n_violations: int | None = None

    def pin(self, table: str, n_rows: int, witnesses: tuple[Pair, ...] = ()) -> Pin:
        n = self.n_violations
        error = None if n is None else n / max(1, n_rows)
        pin = Pin(table, self.columns, self.holds, n_violations=n, terms=self.terms, error=error)
        return replace(pin, witnesses=witnesses)


@dataclass(frozen=True, slots=True)
class KeyRef(Coded):
    """How the keys of a table are kept, and where they lie."""

    cover: FileRef
    evidence: FileRef
    max_columns: int = 0  # 0: keys of any size
    pins: tuple[PinnedKey, ...] = ()


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


def key_ref(state: TableState) -> KeyRef | None:
    """How the keys of a table are kept; None where they are not tracked."""
    return state.part("cover", lambda _: KeyRef.from_dict(state.kept))


def fd_ref(state: TableState) -> FdRef | None:
    """How the functional dependencies of a table are kept; None where they are not tracked."""
    return state.part("fds", FdRef.from_dict)


def read_fds(root: Root, ref: FileRef, n_columns: int) -> tuple[U64, I32]:
    """(masks, rhs) of the minimal functional dependencies: left-hand sides uint64[n, n_words], int32[n]."""
    bundle = open_bundle(root, ref, "fds")
    return bundle.array("masks").reshape(-1, words_for(n_columns)), bundle.array("rhs")


def read_approximate(root: Root, ref: FileRef, n_columns: int) -> tuple[U64, I32, I64]:
    """(masks, rhs, violations) of the minimal approximate dependencies; rhs is -1 for a key."""
    bundle = open_bundle(root, ref, "approximate")
    masks = bundle.array("masks").reshape(-1, words_for(n_columns))
    return masks, bundle.array("rhs"), bundle.array("violations")


def combinations(masks: U64, names: tuple[str, ...]) -> Combinations:
    """Sets of columns by name. Every batch asks for the keys, and hardly any changes them: 3 ms."""
    return _combinations(masks.tobytes(), masks.shape[1], names)


@lru_cache(maxsize=8)
def _combinations(words: bytes, n_words: int, names: tuple[str, ...]) -> Combinations:
    masks = np.frombuffer(words, np.uint64).reshape(-1, n_words)
    return tuple(tuple(names[c] for c in columns) for columns in columns_of(masks))


@lru_cache(maxsize=256)
def stored_combinations(root: Root, cover: FileRef, names: tuple[str, ...]) -> Combinations:
    """The minimal keys of a cover, by name; read once in a process."""
    return combinations(read_masks(root, cover, "cover", len(names)), names)


def stored_keys(root: Root, state: TableState) -> Combinations | None:
    """The minimal keys of a table, by name; None where they are not tracked."""
    ref = key_ref(state)
    return None if ref is None else stored_combinations(root, ref.cover, state.schema.names)


def write_part(root: Root, folder: str, what: str, arrays: Mapping[str, NDArray[Any]]) -> FileRef:
    """A new file of a table: the bundle `what`."""
    return write_bundle(root, unique_name(folder, what, ".arrow"), dict(arrays), {"holdfast": what})


def named_fds(state: TableState, masks: U64, rhs: I32, violations: I64 | None = None) -> list[Fd]:
    """Functional dependencies with the names of their columns: short ones first, then as in the schema."""
    names, total = state.schema.names, n_pairs(state.n_rows)
    counts = [0] * len(masks) if violations is None else violations.tolist()
    ordered = sorted(
        zip(columns_of(masks), rhs.tolist(), counts, strict=True), key=lambda f: (len(f[0]), f[0], f[1])
    )
    return [
        Fd(state.table, tuple(names[c] for c in lhs), names[a], n / total if n else 0.0)
        for lhs, a, n in ordered
    ]


def named_uccs(state: TableState, masks: U64) -> list[Ucc]:
    """Keys with the names of their columns, short ones first."""
    names = state.schema.names
    ordered = sorted(columns_of(masks), key=lambda columns: (len(columns), columns))
    return [Ucc(state.table, tuple(names[c] for c in columns)) for columns in ordered]
