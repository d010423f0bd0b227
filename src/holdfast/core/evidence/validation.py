"""Validation of candidates X -> A on the rows of many segments: which are refuted, and by what evidence.

A task looks at one pivot column, which all its left-hand sides contain, and at one part of the pivot's
values; the kernels are in `kernels/partitions.py`. A key is X -> row: the row is the column behind the
last one.

Exactness: equal codes of two segments can be a collision of hashes. For a key that only invents an
agreement, which its witness betrays; for X -> A it can also hide a violation, which nobody betrays. So no
code is compared here at all, only identities (`identities.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.identities import Identities, identities_of
from holdfast.core.evidence.kernels import partitions
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, positions_of
from holdfast.core.rows.segments import Segment
from holdfast.core.words.column_sets import bits_of, masks_of

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# The pivot of an empty left-hand side, whose one cluster is all rows.
NO_PIVOT = -1
# Values that are gathered at once; a larger cluster is gathered whole.
GATHER_VALUES = 1 << 22
# At most so many values are laid out row after row (128 MB); of a whole table, for all tasks of a process ...
MATRIX_VALUES = 1 << 25
# ... once this share of the rows has been asked for.
MATRIX_SHARE = 8
# Clusters of more rows than this in all are split by what all candidates have in common.
NARROWED_ROWS = 1 << 16
# Rows that an empty left-hand side is climbed from, besides those that prove that a column varies; and rows
# of the largest clusters that are looked at first.
SAMPLE_ROWS = 1 << 11
# Of so many segments each is looked for among rows: 1 ns a row and segment.
FEW_SEGMENTS = 8
# Rows of each of these clusters.
CLUSTER_ROWS = 1 << 6


@dataclass(frozen=True, slots=True)
class Place:
    """Which rows a task looks at: those whose value of the pivot falls into one of several parts."""

    pivot: int
    part: int
    n_parts: int


# -- rows ----------------------------------------------------------------------------------------


class Rows(Protocol):
    """Numbered rows of a table, wherever they are."""

    def partnered(self, rows: I32, offsets: I64, columns: I32, nulls_distinct: bool) -> tuple[I64, I64]:
        """(places, offsets): rows that share a value of one of the columns with another of their cluster."""

    def values(self, rows: I32) -> tuple[I32, I32]:
        """(int32[*, n_columns], int32[n]): identities of values, row after row, and where these rows are."""

    def row_ids(self, rows: I32) -> I64: ...


class Layout:
    """Some rows of each segment, segment after segment, numbered from 0 on; their values row after row.

    Rows are asked for in the order of clusters, so each value is a miss of the cache, or two: 20 ns. Once
    many have been asked for, all are laid out in the order of segments, 3 ns a value; then a row is one miss.
    """

    def __init__(self, identities: Identities, positions: Sequence[I32]) -> None:
        self.identities = identities
        self.positions = positions
        self.starts = np.cumsum([0, *map(len, positions)])  # the first row of each segment
        self._n_asked = 0
        self._matrix: I32 | None = None
        self._lock = threading.Lock()

    def partnered(self, rows: I32, offsets: I64, columns: I32, nulls_distinct: bool) -> tuple[I64, I64]:
        """(places, offsets): rows that share a value of one of the columns with another of their cluster."""
        if self._matrix is not None:
            return partitions.partnered(self._matrix, rows, offsets, columns, nulls_distinct)
        matrix = self._gathered(rows, columns.tolist())
        places, every = (np.arange(n, dtype=np.int32) for n in matrix.shape)
        return partitions.partnered(matrix, places, offsets, every, nulls_distinct)

    def values(self, rows: I32) -> tuple[I32, I32]:
        """(int32[*, n_columns], int32[n]): identities of values, row after row, and where these rows are."""
        n_rows, columns = int(self.starts[-1]), range(self.identities.n_columns)
        with self._lock:
            self._n_asked += len(rows)
            worth = self._n_asked * MATRIX_SHARE >= n_rows
            if self._matrix is None and worth and n_rows * len(columns) <= MATRIX_VALUES:
                self._matrix = self._gathered(np.arange(n_rows, dtype=np.int32), columns)
        if self._matrix is not None:
            return self._matrix, rows
        return self._gathered(rows, columns), np.arange(len(rows), dtype=np.int32)

    def _gathered(self, rows: I32, columns: Sequence[int]) -> I32:
        """int32[n, len(columns)]"""
        out = np.empty((len(rows), len(columns)), dtype=np.int32)
        for i, at, positions in self._by_segment(rows):
            for j, c in enumerate(columns):
                codes, identity = self.identities.segments[i].codes[c], self.identities.of(c)[0][i]
                partitions.gather(codes, identity, positions, at, j, out)
        return out

    def column(self, rows: I32, column: int) -> I32:
        """int32[n]: the values of rows in one column."""
        return self._gathered(rows, [column]).ravel()

    def row_ids(self, rows: I32) -> I64:
        ids = np.empty(len(rows), dtype=np.int64)
        for i, at, positions in self._by_segment(rows):
            ids[at] = self.identities.segments[i].row_ids(positions)
        return ids

    def _by_segment(self, rows: I32) -> Iterator[tuple[int, I64, I32]]:
        """(segment, which of the rows are there, their positions)."""
        n_segments = len(self.positions)
        owner = np.searchsorted(self.starts[1:], rows, side="right").astype(np.uint16)
        if n_segments <= FEW_SEGMENTS:
            each = [np.flatnonzero(owner == i) for i in range(n_segments)]
        else:  # small numbers are sorted by their digits: 10 ns a row, whatever the segments
            ends = np.cumsum(np.bincount(owner, minlength=n_segments))
            each = np.split(np.argsort(owner, kind="stable"), ends[:-1])
        for i, at in enumerate(each):
            if len(at):
                yield i, at, self.positions[i][rows[at] - self.starts[i]]


@lru_cache(maxsize=1)
def _whole(identities: Identities) -> Layout:
    """All rows of a table, for all tasks of this process."""
    return Layout(identities, [np.arange(s.ref.n_rows, dtype=np.int32) for s in identities.segments])


def clustered_rows(
    identities: Identities, segments: Sequence[Segment], place: Place, nulls_distinct: bool
) -> tuple[Layout, I32, I64]:
    """(layout, rows, offsets): the live rows of the part in clusters of equal values of the pivot."""
    per_segment, n_ids = identities.of(place.pivot)
    selected = [
        partitions.select(s.codes[place.pivot], s.live, identity, place.part, place.n_parts, nulls_distinct)
        for s, identity in zip(segments, per_segment, strict=True)
    ]
    rows, offsets = partitions.cluster(np.concatenate([ids for _, ids in selected]), n_ids)
    positions = [positions for positions, _ in selected]
    if sum(s.codes.size for s in segments) > MATRIX_VALUES:
        return Layout(identities, positions), rows, offsets
    layout = _whole(identities)
    numbers = [p + np.int32(first) for p, first in zip(positions, layout.starts[:-1], strict=True)]
    return layout, np.concatenate(numbers)[rows], offsets


def narrowed(
    layout: Layout, rows: I32, offsets: I64, common: Sequence[int], nulls_distinct: bool
) -> tuple[I32, I64, list[int]]:
    """(rows, offsets, columns): clusters split by some of the columns that all candidates have in common.

    One column of many rows is read instead of all: of a table of 5 M x 40 one candidate of 25 columns is
    validated in a tenth of the time. Columns are taken as they come, the most selective first.
    """
    columns: list[int] = []
    for c in common:
        if len(rows) <= NARROWED_ROWS:
            break
        at, offsets = partitions.cluster(
            layout.column(rows, c), layout.identities.of(c)[1], offsets, nulls_distinct
        )
        rows = rows[at]
        columns.append(c)
    return rows, offsets, columns


def telling_rows(
    identities: Identities, segments: Sequence[Segment], columns: Sequence[int]
) -> tuple[Layout, I32, I64]:
    """(layout, rows, offsets): some live rows as one cluster; two differ on each column that varies.

    Every column is read until a second value is found. A column of nothing but NULLs has none, but there
    are two rows, so it varies where NULLs are distinct.
    """
    layout = Layout(identities, [np.flatnonzero(s.live).astype(np.int32) for s in segments])
    n_live = int(layout.starts[-1])
    first = layout.values(np.zeros(1, dtype=np.int32))[0][0]
    telling = [0, 1]
    for c in columns:
        per_segment, _ = identities.of(c)
        for i, segment in enumerate(segments):
            position = partitions.first_other(segment.codes[c], segment.live, per_segment[i], int(first[c]))
            if position >= 0:
                telling.append(int(layout.starts[i] + np.searchsorted(layout.positions[i], position)))
                break
    sampled = np.linspace(0, n_live - 1, min(n_live, SAMPLE_ROWS)).astype(int)
    rows = np.union1d(telling, sampled).astype(np.int32)
    return layout, rows, np.array([0, len(rows)], dtype=np.int64)


# -- validation ----------------------------------------------------------------------------------


def trie(candidates: U64, fixed: Sequence[int], ranking: Sequence[int]) -> tuple[I32, I64]:
    """(sequences, order): each candidate's columns but the fixed ones, most selective first, sorted.

    sequences[i] belongs to candidates[order[i]].
    """
    further = [c for c in ranking if c not in fixed]
    member = bits_of(candidates, 64 * candidates.shape[1])[:, further]
    sizes = member.sum(axis=1)
    sequences = np.full((len(candidates), max(1, int(sizes.max(initial=0)))), -1, dtype=np.int32)
    row, rank = np.nonzero(member)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sequences[row, np.arange(len(row)) - starts[row]] = rank
    order = np.lexsort(sequences.T[::-1])
    column = np.array([*further, -1], dtype=np.int32)  # the padding, -1, stays -1
    return column[sequences[order]], order


def prefixes_of(sequences: I32, fixed: Sequence[int], reach: I64, n_words: int) -> U64:
    """The fixed columns and the first of each sequence, as many as it reaches; nothing if that is negative.

    At least one column of the sequence, if there are: of other rows with its value nobody has asked.
    """
    there = (np.arange(sequences.shape[1]) < np.maximum(reach, 1)[:, None]) & (sequences >= 0)
    bits = np.zeros((len(sequences), 64 * n_words), dtype=np.bool_)
    row, place = np.nonzero(there)
    bits[row, sequences[row, place]] = True
    bits[:, list(fixed)] = True
    return masks_of(bits & (reach >= 0)[:, None], n_words)


def columns_of_any(masks: U64, n_columns: int) -> list[int]:
    """The columns, of the first so many, that some mask has."""
    columns: list[int] = np.flatnonzero(bits_of(masks, n_columns).any(axis=0)).tolist()
    return columns


def validate_candidates(
    segments: Sequence[Segment],
    lhs: U64,
    rhs: U64,
    place: Place,
    ranking: Sequence[int],
    nulls_distinct: bool,
) -> tuple[U64, U64, I64, U64]:
    """(refuted, masks, witnesses, prefixes): which right-hand sides vary within a cluster, and evidence.

    Where keys alone are asked for, prefixes uint64[n, n_words] are parts of them: the agree set of each pair
    of rows of this part that agrees on one is part of some mask; all zero for none.

    refuted uint64[n, n_words] is part of rhs. For each refuted (lhs, A) some mask contains lhs and lacks A;
    witnesses int64[k, WITNESSES, 2] are pairs of row ids with exactly that agree set. All left-hand sides
    contain the pivot, or all are empty (NO_PIVOT); there are two live rows at least. Memory: the rows of
    the part, MATRIX_VALUES values, and GATHER_VALUES or those of the largest cluster.

    Only rows that share a value of the pivot and of a next column with another are gathered whole.
    """
    n_columns = len(segments[0].schema)
    identities = identities_of(segments)
    fixed = [place.pivot]
    if place.pivot == NO_PIVOT:
        sorted_ = np.full((len(lhs), 1), -1, dtype=np.int32), np.arange(len(lhs))
        columns = columns_of_any(rhs, n_columns)
        layout, rows, offsets = telling_rows(identities, segments, columns)
    else:
        layout, rows, offsets = clustered_rows(identities, segments, place, nulls_distinct)
        everywhere = set(positions_of(np.bitwise_and.reduce(lhs))) - {place.pivot}
        common = [c for c in ranking if c in everywhere]
        rows, offsets, columns = narrowed(layout, rows, offsets, common, nulls_distinct)
        fixed += columns
        sorted_ = trie(lhs, fixed, ranking)
    n_ids = np.array([identities.of(c)[1] for c in range(n_columns)], dtype=np.int64)
    refuted, masks, witnesses, reach = refuted_in(
        layout, rows, offsets, lhs, rhs, sorted_, n_ids, nulls_distinct
    )
    agreed = masks[:, : n_words_for(n_columns)]  # no two rows agree on the row
    prefixes = np.zeros_like(lhs)
    if place.pivot != NO_PIVOT:
        prefixes[sorted_[1]] = prefixes_of(sorted_[0], fixed, reach, lhs.shape[1])
    return refuted, *partitions.unite(agreed, witnesses), prefixes


def refuted_in(
    layout: Rows,
    rows: I32,
    offsets: I64,
    lhs: U64,
    rhs: U64,
    sorted_: tuple[I32, I64],
    n_ids: I64,
    nulls_distinct: bool,
) -> tuple[U64, U64, I64, I64]:
    """(refuted, masks, witnesses, reach): as `validate_candidates`, of rows in clusters that agree on what
    all left-hand sides have in common; `sorted_` is their `trie`, n_ids int64[n_columns] and reach, in the
    trie's order, as in the kernel. Masks are as wide as the candidates, and may repeat."""
    n_columns, (sequences, order) = len(n_ids), sorted_
    sorted_lhs, pending = np.ascontiguousarray(lhs[order]), np.ascontiguousarray(rhs[order])
    masks = [np.empty((0, lhs.shape[1]), dtype=np.uint64)]
    witnesses = [np.empty((0, WITNESSES, 2), dtype=np.int64)]
    reach = np.full(len(lhs), partitions.NOT_SEEN, dtype=np.int64)
    for at, bounds, is_sample in looks(offsets, GATHER_VALUES // n_columns):
        open_ = np.flatnonzero(pending.any(axis=1) | (reach >= 0))  # sequences stay sorted
        if not len(open_):
            break
        here, still, reached = rows[at], pending[open_], reach[open_]
        second = np.unique(sequences[open_, 0])
        if second[0] >= 0:
            places, bounds = layout.partnered(here, bounds, second, nulls_distinct)
            here = here[places]
        agree_sets, pairs = partitions.refute(
            *layout.values(here),
            bounds,
            sequences[open_],
            sorted_lhs[open_],
            still,
            n_ids,
            nulls_distinct,
            reached,
        )
        pending[open_] = still
        if not is_sample:
            reach[:] = partitions.NOT_ALL  # of those refuted before
            reach[open_] = reached
        if len(agree_sets):
            partitions.strike(sorted_lhs, pending, agree_sets)
            masks.append(agree_sets)
            real = pairs >= 0
            pairs[real] = layout.row_ids(here[pairs[real]])
            witnesses.append(pairs)
    has_row = n_columns < 64 * rhs.shape[1]
    if has_row and not (rhs & ~mask_of([n_columns], rhs.shape[1])).any():
        # Of keys: no rows that could violate what is pending were left to look at.
        reach[(reach == partitions.NOT_SEEN) & pending.any(axis=1)] = 0
    unrefuted = np.empty_like(pending)
    unrefuted[order] = pending
    return rhs & ~unrefuted, np.concatenate(masks), np.concatenate(witnesses), reach


def looks(offsets: I64, n_rows: int) -> Iterator[tuple[I64 | slice, I64, bool]]:
    """(rows, offsets, whether it is a sample): some rows of the largest clusters, then all clusters, about
    n_rows rows at a time.

    What a few rows refute is not looked for in many; of large clusters a few rows are most likely to.
    """
    sizes = np.diff(offsets)
    if len(sizes) and offsets[-1] > 4 * SAMPLE_ROWS:
        largest = np.argsort(-sizes, kind="stable")[: max(1, SAMPLE_ROWS // CLUSTER_ROWS)]
        taken = np.minimum(sizes[largest], CLUSTER_ROWS)
        ends = np.cumsum(taken)
        at = np.repeat(offsets[largest] - (ends - taken), taken) + np.arange(ends[-1])
        yield at, np.append(0, ends), True
    first = 0
    while first < len(sizes):
        last = max(int(np.searchsorted(offsets, offsets[first] + n_rows, side="right")) - 1, first + 1)
        yield slice(offsets[first], offsets[last]), offsets[first : last + 1] - offsets[first], False
        first = last
