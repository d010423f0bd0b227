"""Validation of candidate functional dependencies on the rows of many segments.

As for keys (`key_validation.py`) a task looks at one pivot column, which all its left-hand sides contain, and
at one part of the pivot's values; the kernels are in `core/evidence/kernels/fd_partitions.py`.

Exactness: equal codes of two segments can be a collision of hashes. For a key that only invents an
agreement, which its witness betrays; for X -> A it can also hide a violation, which nobody betrays. So no
code is compared here at all: each value gets an *identity*, a number that equal values of all segments
share and no others do. Dictionaries are sorted, so identities are a merge of them; where two segments share
the code of a text the texts are compared, and a column in which any two differ is numbered by its texts.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.evidence.kernels import fd_partitions
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.key_validation import Place, text_identities, trie
from holdfast.core.rows.codes import texts_differ
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.rows.segments import Segment

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# The pivot of an empty left-hand side, whose one cluster is all rows.
NO_PIVOT = -1
# Values that are gathered at once; a larger cluster is gathered whole.
GATHER_VALUES = 1 << 22
# A table of at most so many values is kept row after row (128 MB), for all tasks of a process.
MATRIX_VALUES = 1 << 25
# Rows that an empty left-hand side is climbed from, besides those that prove that a column varies.
SAMPLE_ROWS = 1 << 11


# -- identities ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identities:
    """What the local codes of some segments stand for: equal values, equal numbers; 0 is NULL.

    Equal by the files of the segments, so that deletes do not matter. Numbers are the same in every process.
    """

    root: Path
    files: tuple[str, ...]
    segments: tuple[Segment, ...] = field(compare=False, repr=False)
    _known: dict[int, tuple[list[I32], int]] = field(default_factory=dict, compare=False, repr=False)
    _matrices: dict[int, I32] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, compare=False, repr=False)

    def of(self, column: int) -> tuple[list[I32], int]:
        """(for each segment int32[1 + distinct values], one more than the largest number) of a column."""
        with self._lock:
            if column not in self._known:
                self._known[column] = column_identities(self.segments, column)
            return self._known[column]

    def fill(self, number: int, positions: I32, at: I64, out: I32) -> None:
        """out[at[i]] gets the values of the row positions[i] of one segment; out int32[*, n_columns].

        Rows come in the order of clusters, so each value is a miss of the cache, or two: 13 ns. Of a table
        that is not too large all rows are laid out once, in order; then each row is one miss.
        """
        if sum(s.codes.size for s in self.segments) > MATRIX_VALUES:
            self._gather(number, positions, at, out)
            return
        with self._lock:
            if number not in self._matrices:
                n_columns, n_rows = self.segments[number].codes.shape
                matrix = self._matrices[number] = np.empty((n_rows, n_columns), dtype=np.int32)
                everything = np.arange(n_rows)
                self._gather(number, everything.astype(np.int32), everything, matrix)
        fd_partitions.copy_rows(self._matrices[number], positions, at, out)

    def _gather(self, number: int, positions: I32, at: I64, out: I32) -> None:
        for c, codes in enumerate(self.segments[number].codes):
            fd_partitions.gather(codes, self.of(c)[0][number], positions, at, c, out)


@lru_cache(maxsize=1)
def _shared(fresh: Identities) -> Identities:
    return fresh


def identities_of(segments: Sequence[Segment]) -> Identities:
    """The identities of these segments, from this process's cache if they are there."""
    files = tuple(s.ref.file.name for s in segments)
    return _shared(Identities(segments[0].root, files, tuple(segments)))


def column_identities(segments: Sequence[Segment], column: int) -> tuple[list[I32], int]:
    """(for each segment int32[1 + distinct values], one more than the largest number) of a column.

    Cost: a merge of the dictionaries, and a comparison of the texts that two segments share.
    """
    dictionaries = [s.dictionary(column) for s in segments]
    sizes = [len(d) for d in dictionaries]
    if len(segments) == 1:
        return [np.arange(sizes[0] + 1, dtype=np.int32)], sizes[0] + 1
    everything = np.concatenate(dictionaries)
    order = np.argsort(everything, kind="stable")  # merges sorted runs
    ordered = everything[order]
    again = np.zeros(len(order), dtype=np.bool_)  # the same code as its neighbour
    again[1:] = ordered[1:] == ordered[:-1]
    if segments[0].schema.types[column].hashed:
        shared = np.flatnonzero(again)
        texts = pa.concat_arrays([s.texts(column) for s in segments])
        pairs = texts.take(pa.array(order[shared - 1])), texts.take(pa.array(order[shared]))
        if texts_differ(*pairs).any():
            exact = text_identities(segments, column)
            highest = max(int(e.max(initial=0)) for e in exact)
            return [_with_null(e) for e in exact], highest + 2
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(~again) - 1
    n_values = len(order) - int(again.sum())
    return [_with_null(n) for n in np.split(numbers, np.cumsum(sizes)[:-1])], n_values + 1


def _with_null(numbers: I64 | U64) -> I32:
    """The numbers, each one more, behind 0 for NULL."""
    out = np.zeros(len(numbers) + 1, dtype=np.int32)
    out[1:] = numbers
    out[1:] += 1
    return out


# -- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of several segments, in any order; their values are gathered when asked for."""

    identities: Identities
    segments: Sequence[Segment]
    owner: I32
    position: I32

    @classmethod
    def of(cls, identities: Identities, segments: Sequence[Segment], positions: Sequence[I32 | I64]) -> Rows:
        """The given rows of each segment, segment after segment."""
        owner = np.repeat(np.arange(len(segments), dtype=np.int32), [len(p) for p in positions])
        return cls(identities, segments, owner, np.concatenate(positions).astype(np.int32, copy=False))

    def __len__(self) -> int:
        return len(self.owner)

    def take(self, at: I32 | I64 | slice) -> Rows:
        return Rows(self.identities, self.segments, self.owner[at], self.position[at])

    def row_ids(self) -> I64:
        ids = np.empty(len(self), dtype=np.int64)
        for i, segment in enumerate(self.segments):
            here = self.owner == i
            ids[here] = segment.row_ids(self.position[here])
        return ids

    def values(self) -> I32:
        """int32[n, n_columns]: the identities of the rows' values."""
        out = np.empty((len(self), len(self.segments[0].schema)), dtype=np.int32)
        for i in range(len(self.segments)):
            at = np.flatnonzero(self.owner == i)
            if len(at):
                self.identities.fill(i, self.position[at], at, out)
        return out


def clustered_rows(
    identities: Identities, segments: Sequence[Segment], place: Place, nulls_distinct: bool
) -> tuple[Rows, I64]:
    """(rows, offsets): the live rows of the part in clusters of equal values of the pivot."""
    per_segment, n_ids = identities.of(place.pivot)
    found = [
        fd_partitions.select(
            s.codes[place.pivot], s.live, identity, place.part, place.n_parts, nulls_distinct
        )
        for s, identity in zip(segments, per_segment, strict=True)
    ]
    rows = Rows.of(identities, segments, [positions for positions, _ in found])
    order, offsets = fd_partitions.cluster(np.concatenate([ids for _, ids in found]), n_ids)
    return rows.take(order), offsets


def telling_rows(
    identities: Identities, segments: Sequence[Segment], columns: Sequence[int]
) -> tuple[Rows, I64]:
    """(rows, offsets): some live rows as one cluster, among them two that differ on each column that varies.

    Every column is read until a second value is found. A column of nothing but NULLs has none, but there
    are two rows, so it varies where NULLs are distinct.
    """
    live = [np.flatnonzero(s.live) for s in segments]
    n_live = sum(map(len, live))
    chosen = Rows.of(identities, segments, live).take(
        np.unique(np.concatenate([[0, 1], np.linspace(0, n_live - 1, min(n_live, SAMPLE_ROWS)).astype(int)]))
    )
    first, telling = chosen.take(slice(0, 1)), []
    for c in columns:
        per_segment, _ = identities.of(c)
        i = int(first.owner[0])
        value = int(per_segment[i][segments[i].codes[c][first.position[0]]])
        for j, segment in enumerate(segments):
            other = fd_partitions.first_other(segment.codes[c], segment.live, per_segment[j], value)
            if other >= 0:
                telling.append((j, other))
                break
    have = set(zip(chosen.owner.tolist(), chosen.position.tolist(), strict=True))
    more = [t for t in dict.fromkeys(telling) if t not in have]
    rows = Rows(
        identities,
        segments,
        np.concatenate([chosen.owner, np.array([i for i, _ in more], dtype=np.int32)]),
        np.concatenate([chosen.position, np.array([p for _, p in more], dtype=np.int32)]),
    )
    return rows, np.array([0, len(rows)], dtype=np.int64)


# -- validation ----------------------------------------------------------------------------------


def validate_fd_candidates(
    segments: Sequence[Segment],
    lhs: U64,
    rhs: U64,
    place: Place,
    ranking: Sequence[int],
    nulls_distinct: bool,
) -> tuple[U64, U64, I64]:
    """(refuted, masks, witnesses): which right-hand sides vary within a cluster of this part, and evidence.

    refuted uint64[n, n_words] is part of rhs. For each refuted (lhs, A) some mask contains lhs and lacks A;
    witnesses int64[k, WITNESSES, 2] are pairs of row ids with exactly that agree set. All left-hand sides
    contain the pivot, or all are empty (NO_PIVOT); there are two live rows at least. Memory: the rows of
    the part, and the values of GATHER_VALUES or of the largest cluster.
    """
    n_columns = len(segments[0].schema)
    identities = identities_of(segments)
    if place.pivot == NO_PIVOT:
        sequences, order = np.full((len(lhs), 1), -1, dtype=np.int32), np.arange(len(lhs))
        asked = np.unpackbits(np.bitwise_or.reduce(rhs, axis=0).view(np.uint8), bitorder="little")[:n_columns]
        rows, offsets = telling_rows(identities, segments, np.flatnonzero(asked).tolist())
    else:
        sequences, order = trie(lhs, place.pivot, ranking)
        rows, offsets = clustered_rows(identities, segments, place, nulls_distinct)
    sorted_lhs, pending = np.ascontiguousarray(lhs[order]), np.ascontiguousarray(rhs[order])
    n_ids = np.array([identities.of(c)[1] for c in range(n_columns)], dtype=np.int64)
    masks = [np.empty((0, lhs.shape[1]), dtype=np.uint64)]
    witnesses = [np.empty((0, WITNESSES, 2), dtype=np.int64)]
    first = 0
    while first < len(offsets) - 1 and pending.any():
        # whole clusters, about GATHER_VALUES values
        limit = offsets[first] + GATHER_VALUES // n_columns
        last = max(int(np.searchsorted(offsets, limit, side="right")) - 1, first + 1)
        low, high = int(offsets[first]), int(offsets[last])
        here = rows.take(slice(low, high))
        open_ = np.flatnonzero(pending.any(axis=1))  # sequences stay sorted
        still = pending[open_]
        found, pairs = fd_partitions.refute(
            here.values(),
            offsets[first : last + 1] - low,
            sequences[open_],
            sorted_lhs[open_],
            still,
            n_ids,
            nulls_distinct,
        )
        pending[open_] = still
        if len(found):
            fd_partitions.strike(sorted_lhs, pending, found)
            masks.append(found)
            real = pairs >= 0
            pairs[real] = here.take(pairs[real]).row_ids()
            witnesses.append(pairs)
        first = last
    left = np.empty_like(pending)
    left[order] = pending
    found = np.concatenate(masks)[:, : n_words_for(n_columns)]
    return rhs & ~left, *fd_partitions.unite(found, np.concatenate(witnesses))
