"""Pairs of rows that an index gives: posting lists that are walked, joins by hashes, orders, columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels.probed_pairs import walked_pairs
from holdfast.core.evidence.probe_place import Access, Place, column_hashes, padded
from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.operators import EQ, GE, LE, SYMMETRIC
from holdfast.core.rows.kernels.order_index import blocks
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.store.root import Root
from holdfast.core.words.schema import Schema

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# Rows with equal values that are compared as a block, a tenth of the work for each pair.
BLOCK_ROWS = 192


def walk_equalities(place: Place, accesses: Sequence[Access]) -> None:
    """Equalities of a batch: posting lists, each walked once for all accesses whose source it is."""
    place.begin()
    right, values = place.columns.groups.right, place.values
    groups, ops = padded([a.others for a in accesses])
    sources = [a.source[0][0] for a in accesses]
    for g in sorted(set(sources)):
        wanted = np.array([i for i, source in enumerate(sources) if source == g], dtype=np.int32)
        offsets, positions = place.segment.index(int(right[g]))
        at = values[g] >> 1
        starts = offsets[at]
        ends = np.where(values[g] & 1, starts, offsets[np.minimum(at + 1, len(offsets) - 1)])
        lengths = (ends - starts).astype(np.int64)
        for first, last in blocks(lengths, place.BLOCK):
            part = slice(first, last)
            pairs = walked_pairs(
                place.segment.codes,
                place.segment.live,
                np.ascontiguousarray(values[:, part]),
                right,
                positions,
                starts[part],
                ends[part],
                wanted,
                groups,
                ops,
                place.within,
                first,
            )
            place.take(pairs.batch + first, pairs.old)


def join_equalities(place: Place, access: Access) -> None:
    """Equalities of a whole table: rows with equal hashes of the columns concerned."""
    place.begin()
    groups = place.columns.groups
    equal = [g for g, op in access.predicates if op == EQ]
    right, left = tuple(groups.right[equal].tolist()), tuple(groups.left[equal].tolist())
    others = tuple((g, op) for g, op in access.others if op != EQ)
    keys, order = _sorted_keys(place.segment.root, place.segment.ref, place.segment.schema, right)
    if place.within and left == right:
        # Each row with those before it in its run of equal hashes.
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        change = np.ones(len(keys), dtype=np.bool_)
        change[1:] = keys[1:] != keys[:-1]
        starts = np.maximum.accumulate(np.where(change, np.arange(len(keys)), 0))[rank]
        ends = rank
    else:
        probe_keys = column_hashes(place.source, left)
        by_key = np.argsort(probe_keys)  # searching sorted keys stays in the cache
        starts, ends = np.empty(len(probe_keys), np.int64), np.empty(len(probe_keys), np.int64)
        starts[by_key] = np.searchsorted(keys, probe_keys[by_key], side="left")
        ends[by_key] = np.searchsorted(keys, probe_keys[by_key], side="right")
    if not place.limit:
        starts, ends = _compared_in_blocks(place, order, starts, ends, same=place.within and left == right)
    for probes, rows in _ranges(starts, ends, place.BLOCK):
        if not place.room:
            place.complete = False
            return
        rows = order[rows]
        if place.within and left != right:
            before = rows < probes
            probes, rows = probes[before], rows[before]
        place.take(*place.compared(probes, rows, others))


def _compared_in_blocks(place: Place, order: I64, starts: I64, ends: I64, *, same: bool) -> tuple[I64, I64]:
    """Compare rows with many equals as blocks: what is left to list, as (starts, ends).

    IN starts, ends int64[n]: for each row of the source the run of the segment's rows in `order` that have
    its hash; `same`: that part of its own run that is before it.
    """
    if same:
        # Of each run its last row has all the others before it.
        sizes = np.bincount(starts, minlength=len(order) + 1)
        many = sizes[starts] >= BLOCK_ROWS
    else:
        many = ends - starts >= BLOCK_ROWS
    if not many.any():
        return starts, ends
    rows = np.flatnonzero(many)
    rows = rows[np.argsort(starts[rows], kind="stable")]
    change = np.flatnonzero(np.append(True, starts[rows[1:]] != starts[rows[:-1]]))
    for run in np.split(rows, change[1:]):
        run = run[place.source.live[run]]
        if not len(run):
            continue
        if same:
            place.compare(run, run, within=True)
        elif len(run) * int(ends[run[0]] - starts[run[0]]) >= BLOCK_ROWS**2 // 2:
            equals = order[starts[run[0]] : ends[run[0]]]
            if not place.within:
                place.compare(run, equals, within=False)
            else:
                many[run] = False  # across columns of one segment: pairs before the row only
        else:
            many[run] = False
    return np.where(many, 0, starts), np.where(many, 0, ends)


def _ranges(starts: I64, ends: I64, size: int) -> Iterator[tuple[I64, I64]]:
    """(row, place) for every place in starts[row] .. ends[row], in blocks of about so many."""
    lengths = ends - starts
    rows = np.flatnonzero(lengths > 0)
    for first, last in blocks(lengths[rows], size):
        part = rows[first:last]
        sizes = lengths[part]
        probes = np.repeat(part, sizes)
        within = np.arange(len(probes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield probes, np.repeat(starts[part], sizes) + within


@lru_cache(maxsize=64)
def _sorted_keys(root: Root, ref: SegmentRef, schema: Schema, columns: tuple[int, ...]) -> tuple[U64, I64]:
    """(hashes of the rows on some columns, ascending; whose they are, ascending where equal)."""
    keys = column_hashes(open_segment(root, ref, schema), columns)
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def fetch_by_order(place: Place, access: Access) -> None:
    """Two predicates: the rows that an order index gives for each row of the source (Fetch and Fetch+)."""
    place.begin()
    assert access.key is not None
    (first, op), (second, other_op) = access.source
    # t is the row of the source: `t.A op s.B` asks for the s with `s.B sym(op) t.A`.
    ops = SYMMETRIC[op], SYMMETRIC[other_op]
    index = _order(place.segment, access.key)
    a, b = place.values[first], place.values[second]
    counts = order_index.count(index, a, b, *ops)
    _fetched(place, access, counts, lambda part: order_index.fetch(index, a[part], b[part], *ops))


def fetch_by_column(place: Place, access: Access) -> None:
    """One predicate: the rows that a column's posting lists give for each row of the source."""
    place.begin()
    [(group, op)] = access.source
    op = SYMMETRIC[op]
    index = order_index.ColumnIndex(*place.segment.index(int(place.columns.groups.right[group])))
    values = place.values[group]
    counts = order_index.count_column(index, values, op)
    _fetched(place, access, counts, lambda part: order_index.fetch_column(index, values[part], op))


def _fetched(place: Place, access: Access, counts: I64, fetch: Callable[[slice], order_index.Hits]) -> None:
    """What an index gives for the rows of the source, block by block."""
    for start, stop in blocks(counts, place.BLOCK):
        if not place.room:
            place.complete = False
            return
        hits = fetch(slice(start, stop))
        probes, rows = hits.probes.astype(np.int64) + start, hits.rows.astype(np.int64)
        if place.within:
            before = rows < probes
            probes, rows = probes[before], rows[before]
        place.take(*place.compared(probes, rows, access.others))


def _order(segment: Segment, key: OrderKey) -> order_index.OrderIndex:
    if key in segment.ref.ordered:
        return segment.order(key)
    a, b, falling = key
    return order_index.build(segment.codes[a], segment.codes[b], GE, LE if falling else GE)
