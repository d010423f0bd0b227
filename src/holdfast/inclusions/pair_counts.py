"""Pair counts: for every ordered pair of columns the values they share. Sparse, exact.

Kind of state: linear. Law: s(C + D) = s(C) + s(D), for the clusters C and what a batch changes of them, D.

The counts of a pair (a, b) are the distinct values that occur in both, and the rows of a that carry one
of them; (a, a) has all of a's. So a is included in b iff both counts of values agree (Lemma 4.2: every
cluster with a has b), and what is missing is a difference. Pairs that share nothing are not kept.

Reading needs no kernels: `show` uses this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.store.root import Root
from holdfast.inclusions.generator import SumRef, read_pairs

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class PairCounts:
    """Sorted by pair, `a << 32 | b`; signed in a delta."""

    pairs: U64
    values: I64
    rows: I64

    @classmethod
    def empty(cls) -> PairCounts:
        return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> PairCounts:
        return cls(*(np.asarray(arrays[name]) for name in ("pairs", "values", "rows")))

    @classmethod
    def load(cls, root: Root, refs: Sequence[SumRef]) -> PairCounts:
        """The sum of the files that a state names."""
        return cls.sum([cls.from_arrays(arrays) for arrays in read_pairs(root, refs)])

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        return {"pairs": self.pairs, "values": self.values, "rows": self.rows}

    def __len__(self) -> int:
        return len(self.pairs)

    @classmethod
    def sum(cls, parts: Sequence[PairCounts]) -> PairCounts:
        """The sum of several; pairs that share nothing any more are gone. Cost: a sort of all."""
        parts = [p for p in parts if len(p)]
        if len(parts) < 2:
            return parts[0] if parts else cls.empty()
        everything = np.concatenate([p.pairs for p in parts])
        pairs, where = np.unique(everything, return_inverse=True)
        values, rows = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
        np.add.at(values, where, np.concatenate([p.values for p in parts]))
        np.add.at(rows, where, np.concatenate([p.rows for p in parts]))
        nonzero = (values != 0) | (rows != 0)
        return cls(pairs[nonzero], values[nonzero], rows[nonzero])

    def without_columns(self, gone: Bool) -> PairCounts:
        """After some columns were dropped. IN gone bool[n_ids]."""
        staying = ~(gone[self.left] | gone[self.right])
        return PairCounts(self.pairs[staying], self.values[staying], self.rows[staying])

    @property
    def left(self) -> I64:
        return (self.pairs >> np.uint64(32)).astype(np.int64)

    @property
    def right(self) -> I64:
        return (self.pairs & _LOW).astype(np.int64)

    def of_columns(self, n_ids: int) -> tuple[I64, I64]:
        """(distinct, rows) of each column: distinct values and rows with a value, int64[n_ids]."""
        distinct, rows = np.zeros(n_ids, np.int64), np.zeros(n_ids, np.int64)
        itself = self.left == self.right
        distinct[self.left[itself]] = self.values[itself]
        rows[self.left[itself]] = self.rows[itself]
        return distinct, rows

    def of_left(self, columns: I64) -> PairCounts:
        """The pairs whose left column is one of these (ascending). Cost: follows what is found."""
        first = columns.astype(np.uint64) << np.uint64(32)
        starts = np.searchsorted(self.pairs, first)
        lengths = np.searchsorted(self.pairs, first | _LOW, side="right") - starts
        ends = np.cumsum(lengths)
        at = np.arange(int(lengths.sum())) + np.repeat(starts - (ends - lengths), lengths)
        return PairCounts(self.pairs[at], self.values[at], self.rows[at])

    def holding(self, n_ids: int) -> U64:
        """The pairs (a, b), a other than b, of which a has values and all of them are in b."""
        distinct, _ = self.of_columns(n_ids)
        holds = (self.values == distinct[self.left]) & (self.left != self.right) & (self.values > 0)
        held: U64 = self.pairs[holds]
        return held

    def at(self, pairs: U64) -> tuple[I64, I64]:
        """(values, rows) of some pairs; 0 for those that share nothing."""
        where = np.searchsorted(self.pairs, pairs)
        where[where == len(self.pairs)] = 0
        if not len(self.pairs):
            return np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)
        there = self.pairs[where] == pairs
        return np.where(there, self.values[where], 0), np.where(there, self.rows[where], 0)


def pair_ids(left: I64, right: I64) -> U64:
    """`a << 32 | b` of aligned column ids."""
    return (left.astype(np.uint64) << np.uint64(32)) | right.astype(np.uint64)


def by_left(pairs: U64, n_ids: int) -> tuple[I64, NDArray[np.uint32]]:
    """(offsets, rights) of sorted pairs: the right columns of each left one, offsets int64[n_ids + 1]."""
    bounds = np.arange(n_ids + 1, dtype=np.uint64) << np.uint64(32)
    return np.searchsorted(pairs, bounds).astype(np.int64), (pairs & _LOW).astype(np.uint32)
