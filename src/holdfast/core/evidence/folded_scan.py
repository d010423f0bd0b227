"""Constraints that no index serves: rows that are equal on all columns concerned are folded into one, the
folded rows are compared, and only what violates a constraint there is unfolded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.comparison import rows_of_part
from holdfast.core.evidence.half_ranks import half_rank_rows
from holdfast.core.evidence.kernels.predicate_evidence import Groups, ListedPairs, evidence_counts
from holdfast.core.evidence.kernels.probed_pairs import pairs_with_outcomes
from holdfast.core.evidence.probe_place import Access, Place, column_hashes
from holdfast.core.rows.kernels.masks import contains_any
from holdfast.core.rows.kernels.operators import EQ, EQUAL, GREATER, GT, LESS, LT, NULL
from holdfast.core.rows.kernels.order_index import blocks
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.root import Root
from holdfast.core.words.schema import Schema

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# From so many rows on both sides on it is found out which are equal before all are compared: to fold a row
# costs as much as to compare it with a hundred others.
FOLDED_FROM = 4096


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows in groups that are equal on some columns: group i is order[starts[i]:starts[i + 1]]."""

    order: I64
    starts: I64

    @property
    def first(self) -> I64:
        return self.order[self.starts[:-1]]

    @property
    def sizes(self) -> I64:
        return np.diff(self.starts)


@lru_cache(maxsize=32)
def _folded(root: Root, ref: SegmentRef, schema: Schema, columns: tuple[int, ...]) -> Fold:
    """The rows of a segment, folded; deleted ones too: files never change, and so they are folded once."""
    segment = open_segment(root, ref, schema)
    keys = column_hashes(segment, columns)
    order = np.argsort(keys, kind="stable")
    change = np.ones(len(order), dtype=np.bool_)
    if len(order):
        change[1:] = keys[order[1:]] != keys[order[:-1]]
        for c in columns:  # a collision of hashes only makes two groups of one
            codes = segment.codes[c][order]
            change[1:] |= codes[1:] != codes[:-1]
    return Fold(order, np.append(np.flatnonzero(change), len(order)))


def scan_folded(place: Place, access: Access, dcs: U64, part: tuple[int, int]) -> None:
    """Constraints that no index serves: all folded rows compared in the groups concerned."""
    place.begin()
    if len(access.groups) == len(place.columns.space.groups):
        _scan_all(place, part)
        return
    whole = place.columns.groups
    numbers = np.array(access.groups, dtype=np.int64)
    columns = tuple(sorted(set(whole.right[numbers].tolist())))
    local = {c: i for i, c in enumerate(columns)}
    groups = Groups(
        np.array([local[c] for c in whole.left[numbers].tolist()], dtype=np.int32),
        np.array([local[c] for c in whole.right[numbers].tolist()], dtype=np.int32),
        np.ascontiguousarray(whole.ordered[numbers]),
        np.ascontiguousarray(whole.first[numbers]),
    )
    segment, source = place.segment, place.source
    fold = _folded(segment.root, segment.ref, segment.schema, columns)
    probe_fold = fold if place.within else _folded(source.root, source.ref, source.schema, columns)
    first, last = rows_of_part(len(probe_fold.sizes), *part, triangle=place.within)
    codes = np.ascontiguousarray(segment.codes[list(columns)][:, fold.first])
    pairs_ = [(int(whole.left[g]), int(whole.right[g])) for g in access.groups]
    values = half_rank_rows(segment, source, probe_fold.first[first:last], pairs_)
    alive = np.ones(codes.shape[1], dtype=np.bool_)
    n_words = place.columns.n_words
    batch = values[:, None, :]
    masks = evidence_counts(codes, alive, batch, groups, n_words, place.within, first).masks
    many = first + np.flatnonzero(probe_fold.sizes[first:last] > 1) if place.within else np.empty(0, np.int64)
    if len(many):
        # Two equal rows of one group.
        equal = ListedPairs(codes, batch, groups, n_words).evidence(many - first, many)
        masks = np.concatenate([masks, equal.masks])
    masks = masks[contains_any(masks, dcs)]
    if not len(masks):
        return
    outcomes = _outcomes(masks, groups)
    blocks_of_pairs = pairs_with_outcomes(values, codes, groups.right, groups.ordered, outcomes, place.BLOCK)
    for listed in blocks_of_pairs:
        if not place.room:
            place.complete = False
            return
        i, j = listed.batch + first, listed.old
        if place.within:
            once = (j < i) | ((j == i) & (probe_fold.sizes[i] > 1))
            i, j = i[once], j[once]
        _unfold(place, probe_fold, fold, i, j)


def _scan_all(place: Place, part: tuple[int, int]) -> None:
    """All groups are concerned: what is compared is evidence itself, of one of the rows that are equal."""
    first, last = rows_of_part(place.source.ref.n_rows, *part, triangle=place.within)
    segment, source = place.segment, place.source
    columns = tuple(sorted(set(place.columns.groups.right.tolist())))
    if min(segment.ref.n_rows, source.ref.n_rows) < FOLDED_FROM:
        columns = ()
    rows, twins = _different(segment, columns)
    probes = rows if place.within else _different(source, columns)[0]
    # Rows within a segment are numbered among those that are compared.
    start, stop = np.searchsorted(probes, [first, last])
    everything = len(rows) == segment.ref.n_rows or not (columns or place.within)
    number = int(start) if place.within else 0
    place.compare(probes[start:stop], None if everything else rows, place.within, number)
    if place.within:
        place.take(*twins[:, (first <= twins[0]) & (twins[0] < last)])


def _different(segment: Segment, columns: tuple[int, ...]) -> tuple[I64, I64]:
    """(rows, twins): the first of each lot of live rows that are equal on some columns, ascending, and
    int64[2, *], the first two of each lot of several. Of no columns: all live rows, and none."""
    if not columns:
        return np.flatnonzero(segment.live), np.empty((2, 0), np.int64)
    fold = _folded(segment.root, segment.ref, segment.schema, columns)
    there = segment.live[fold.order]
    order, group = fold.order[there], np.repeat(np.arange(len(fold.sizes)), fold.sizes)[there]
    begins = np.flatnonzero(np.diff(group, prepend=-1))
    several = begins[np.diff(begins, append=len(order)) > 1]
    return np.sort(order[begins]), np.stack([order[several], order[several + 1]])


def _outcomes(masks: U64, groups: Groups) -> NDArray[np.uint8]:
    """The outcomes uint8[k, n_groups] of pairs with some evidence."""
    bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=1, bitorder="little")
    first = groups.first.astype(np.int64)
    outcomes = np.full((len(masks), len(first)), LESS, dtype=np.uint8)
    by_order = np.flatnonzero(groups.ordered)
    outcomes[:, by_order] = NULL
    for op, outcome in ((LT, LESS), (GT, GREATER)):
        outcomes[:, by_order] = np.where(bits[:, first[by_order] + op], outcome, outcomes[:, by_order])
    return np.where(bits[:, first + EQ], np.uint8(EQUAL), outcomes)


def _unfold(place: Place, probes: Fold, rows: Fold, i: I64, j: I64) -> None:
    """All pairs of rows of the groups probes[i] and rows[j]."""
    sizes = probes.sizes[i] * rows.sizes[j]
    for first, last in blocks(sizes, place.BLOCK):
        if not place.room:
            place.complete = False
            return
        part = sizes[first:last]
        if last - first == 1 and place.limit and part[0] > place.room:
            place.complete = False
            part = np.array([place.room])
        pair = np.repeat(np.arange(first, last), part)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(part) - part, part)
        width = rows.sizes[j[pair]]
        left = probes.order[probes.starts[i[pair]] + within // width]
        right = rows.order[rows.starts[j[pair]] + within % width]
        if place.within:
            # Of one group with itself each pair comes twice.
            once = (i[pair] != j[pair]) | (right < left)
            left, right = left[once], right[once]
        place.take(left, right)
