"""Which pairs of rows violate constraints: found by indexes, not by comparing all of them (IncDC, section 8).

An *access* serves some constraints: every pair that violates one of them is among those that it finds.

- *equality*: all equalities of a set hold. A batch walks posting lists; a whole table is joined with itself
  on a hash of the columns, at the cost of sorting it.
- *order*: two predicates, answered by an order index (algorithms 1 and 2).
- *column*: one predicate, answered by posting lists in the order of their values.
- *scan*: no index helps. Rows that are equal on all columns concerned are folded into one, the folded rows
  are compared, and only what violates a constraint there is unfolded.

What is found is compared in all groups, and evidence that violates some constraint leaves the task, once
each. One job, whatever the number of constraints.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.half_ranks import SpaceColumns, half_rank_rows, parsed_space, space_columns
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.kernels.predicate_evidence import (
    Evidence,
    Groups,
    ListedPairs,
    evidence_counts,
    planned,
)
from holdfast.core.evidence.kernels.probed_pairs import (
    EQUAL,
    GREATER,
    LESS,
    ONE_NULL,
    pairs_with_outcomes,
    satisfied,
    walked_pairs,
)
from holdfast.core.evidence.witnessed import unite
from holdfast.core.rows.kernels import order_index
from holdfast.core.rows.kernels.masks import contains_any, unique_masks, without
from holdfast.core.rows.kernels.order_index import SYMMETRIC, blocks
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, open_segment, row_hashes
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.rows.tasks import Payload, opened, parsed_schema, staged
from holdfast.core.store.bundle import pack
from holdfast.core.words.codec import Coded
from holdfast.core.words.predicate import PredicateSpace
from holdfast.core.words.schema import Schema

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Pairs that are gathered at once.
BLOCK = 1 << 21
# Rows with equal values that are compared as a block, a tenth of the work for each pair.
BLOCK_ROWS = 192
# Estimated nanoseconds of work that are done inline at most, and in one task: a table of counts, and the
# half ranks of the rows, are made anew in each.
INLINE_NS = 4e9
TASK_NS = 8e8
MAX_PARTS = 64
NS_LISTED = 40.0  # to compare a pair that an index found, in all groups
NS_FOLDED = 3.0  # to compare two folded rows
NS_JOINED = 300.0  # a row of a join: hashed, sorted, searched


Asked = tuple[tuple[int, int], ...]  # predicates: the number of the group, the operator


@dataclass(frozen=True, slots=True)
class Access(Coded):
    """How pairs (t, s) are found, t being the batch row: those that satisfy some predicates.

    The index answers `source`: one equality, two predicates on the order index `key`, or one on posting
    lists; what it gives is compared on `others`. A scan has no source, and compares in the groups given.
    """

    kind: Literal["equality", "order", "column", "scan"]
    source: Asked
    others: Asked = ()
    key: OrderKey | None = None
    groups: tuple[int, ...] = ()  # of a scan

    @property
    def predicates(self) -> Asked:
        return (*self.source, *self.others)


@dataclass(frozen=True, slots=True)
class Plan:
    """How all pairs are found that violate some constraints, given in both directions."""

    space: PredicateSpace
    dcs: U64  # uint64[k, n_words]
    accesses: tuple[Access, ...]
    scanned: U64  # those of the constraints that no access but a scan serves


@dataclass(frozen=True, slots=True)
class Found:
    """Evidence that violates a constraint, with pairs (t, s) of row ids that have it."""

    masks: U64  # uint64[k, n_words], all different
    witnesses: I64  # int64[k, WITNESSES, 2]
    complete: bool  # whether every violating pair was looked at


def probe(
    relation: Relation,
    plan: Plan,
    batch: Sequence[SegmentRef] | None = None,
    limit: int = 0,
    *,
    apart: bool = False,
) -> Found:
    """The evidence of pairs of rows that violate one of the plan's constraints.

    With a batch, of its rows with all others; without, of all pairs of live rows, or (`apart`) of those of
    each segment alone. With a limit a task looks at so many pairs of an access at most, and `complete` tells
    whether that was all.
    """
    n_words = plan.dcs.shape[1]
    accesses = plan.accesses
    shared = {
        "space": json.dumps(plan.space.to_dict()),
        "dcs": relation.stage("constraints", masks=plan.dcs, scanned=plan.scanned),
        "limit": limit,
        "whole": batch is None,
    }
    payloads, work = [], 0.0
    new = {s.number for s in batch or ()}
    others = [s for s in relation.segments if s.number not in new and s.n_live]
    parts = [s for s in (relation.segments if batch is None else batch) if s.n_live]
    listed = [asdict(a) for a in accesses if a.kind != "scan"]
    scans = [asdict(a) for a in accesses if a.kind == "scan"]
    for i, part in enumerate(parts):
        for segment in [*(others if batch is not None else ()), *parts[: i + 1]]:
            own = segment.number == part.number
            if apart and not own:
                continue
            fields = {**shared, "segment": segment.to_dict(), "source": part.to_dict(), "own": own}
            if listed:
                rows = part.n_rows + (segment.n_rows if batch is None else 0)
                ns = rows * len(listed) * NS_JOINED
                work += ns
                # A table is joined on each set on its own; a batch walks lists for all of them at once.
                n_lots = 1 if batch is not None else min(len(listed), 1 + int(ns / TASK_NS))
                for lot in range(n_lots):
                    payloads.append(
                        relation.payload(**fields, accesses=listed[lot::n_lots], part=0, n_parts=1)
                    )
            for scan in scans:
                folding = 1.0 if len(scan["groups"]) == len(plan.space.groups) else FOLDING
                ns = part.n_rows * segment.n_rows * NS_FOLDED * (0.5 if own else 1.0) / folding
                n_parts = min(MAX_PARTS, 1 + int(ns / TASK_NS))
                work += ns
                scanned = {**fields, "accesses": [scan], "n_parts": n_parts}
                payloads += [relation.payload(**scanned, part=p) for p in range(n_parts)]
    results = relation.run(probe_pairs, payloads, work, INLINE_NS)
    masks = [r.array("masks").reshape(-1, n_words) for r in results] or [np.empty((0, n_words), np.uint64)]
    found = [r.array("witnesses").reshape(-1, 2) for r in results] or [np.empty((0, 2), np.int64)]
    everything, witnesses = np.concatenate(masks), np.concatenate(found)
    first, group = unique_masks(everything)
    padded = np.full((len(everything), WITNESSES, 2), -1, dtype=np.int64)
    padded[:, 0] = witnesses
    complete = all(r.meta["complete"] == "yes" for r in results)
    return Found(everything[first], unite(padded, group, len(first)), complete)


# Rows that are folded into one, at a guess: only for the division of work.
FOLDING = 4.0


def evidence_of(relation: Relation, space: PredicateSpace, pairs: I64) -> tuple[U64, I64]:
    """(masks, pairs): the evidence of a few pairs (t, s) of row ids, int64[p, 2], and of (s, t)."""
    columns = space_columns(space, relation.schema)
    masks, witnesses = [np.empty((0, columns.n_words), np.uint64)], [np.empty((0, 2), np.int64)]
    opened_ = [open_segment(relation.root, s, relation.schema) for s in relation.segments]
    places = [(segment, segment.positions(pairs[:, 0])) for segment in opened_]
    for segment in opened_:
        theirs = segment.positions(pairs[:, 1])
        for source, mine in places:
            at = np.flatnonzero((theirs >= 0) & (mine >= 0))
            if not len(at):
                continue
            values = half_rank_rows(segment, source, mine[at], columns.pairs)[:, None, :]
            listed = ListedPairs(segment.codes, values, columns.groups, columns.n_words)
            for i in range(len(at)):  # one by one: which direction has which mask
                found = listed.evidence(np.array([i]), theirs[at[i : i + 1]])
                masks.append(found.masks)
                t, s = pairs[at[i]].tolist()
                turned = found.batch_first.tolist()
                witnesses.append(np.array([(t, s) if first else (s, t) for first in turned]))
    return np.concatenate(masks), np.concatenate(witnesses)


# -- in a task ---------------------------------------------------------------------------------


def probe_pairs(payload: Payload) -> bytes:
    """The violating evidence among the rows of one segment and those of another."""
    schema = parsed_schema(payload["schema"])
    columns = space_columns(parsed_space(payload["space"]), schema)
    constraints = staged({**payload, "constraints": payload["dcs"]}, "constraints")
    dcs, scanned = (constraints.array(name).reshape(-1, columns.n_words) for name in ("masks", "scanned"))
    place = _Place(
        opened(payload, "segment", schema),
        opened(payload, "source", schema),
        payload["own"],
        columns,
        dcs,
        payload["limit"],
    )
    part = payload["part"], payload["n_parts"]
    for access in map(Access.from_dict, payload["accesses"]):
        if access.kind == "scan":
            _scan(place, access, scanned, part)
        elif access.kind == "order":
            _by_order(place, access)
        elif access.kind == "column":
            _by_column(place, access)
        elif payload["whole"]:
            _joined(place, access)
    walked = [Access.from_dict(a) for a in payload["accesses"] if a["kind"] == "equality"]
    if walked and not payload["whole"]:
        _walked(place, walked)
    masks, witnesses = place.evidence()
    return pack({"masks": masks, "witnesses": witnesses}, {"complete": "yes" if place.complete else "no"})


@dataclass
class _Place:
    """The rows that a task compares, and what it has found among them."""

    segment: Segment
    source: Segment
    own: bool
    columns: SpaceColumns
    dcs: U64
    limit: int
    complete: bool = True
    _found: list[tuple[U64, I64]] = field(default_factory=list)
    _looked: int = 0
    _pairs: ListedPairs | None = None
    _plan: Any = None
    _values: I32 | None = None
    _known: U64 = field(init=False)  # evidence that was looked at

    def __post_init__(self) -> None:
        self._known = self.dcs[:0]

    @property
    def values(self) -> I32:
        """Half ranks of the source's rows: int32[n_groups, n]."""
        if self._values is None:
            everything = np.arange(self.source.ref.n_rows)
            self._values = half_rank_rows(self.segment, self.source, everything, self.columns.pairs)
        return self._values

    def begin(self) -> None:
        """The next access: its pairs are counted against the limit."""
        self._looked = 0

    @property
    def room(self) -> int:
        return max(0, self.limit - self._looked) if self.limit else 1 << 62

    def compared(self, mine: I64, theirs: I64, asked: Asked) -> tuple[I64, I64]:
        """Those of the pairs that satisfy some predicates."""
        if not asked or not len(mine):
            return mine, theirs
        groups, ops = _padded([asked])
        right = self.columns.groups.right
        kept = satisfied(self.segment.codes, self.values, right, groups[0], ops[0], mine, theirs)
        return mine[kept], theirs[kept]

    def take(self, mine: I64, theirs: I64) -> None:
        """Compare listed pairs: rows of the source with rows of the segment."""
        live = self.source.live[mine] & self.segment.live[theirs]
        if self.own:
            live &= mine != theirs
        mine, theirs = mine[live], theirs[live]
        if len(mine) > self.room:
            mine, theirs, self.complete = mine[: self.room], theirs[: self.room], False
        self._looked += len(mine)
        if self._pairs is None:
            groups, n_words = self.columns.groups, self.columns.n_words
            self._pairs = ListedPairs(self.segment.codes, self.values[:, None, :], groups, n_words)
        for start in range(0, len(mine), BLOCK):
            part = slice(start, start + BLOCK)
            self._keep(self._pairs.evidence(mine[part], theirs[part]))

    def compare(self, mine: I64, theirs: I64 | None, own: bool, first: int = 0) -> None:
        """Compare live rows of the source with live rows of the segment (None: all of these), each with each.

        `own`: mine are those of theirs from number `first` on, each with those before it.
        """
        codes, live = self.segment.codes, self.segment.live
        if theirs is not None:
            codes, live = codes[:, theirs], live[theirs]
        groups, n_words = self.columns.groups, self.columns.n_words
        self._plan = self._plan or planned(groups, n_words)
        batch = self.values[:, None, mine]
        found = evidence_counts(codes, live, batch, groups, n_words, own, first, self._plan)
        self._keep(found, mine, theirs)

    def _keep(self, found: Evidence, rows: I64 | None = None, old_rows: I64 | None = None) -> None:
        """Take down what violates a constraint; rows and old_rows: whose the numbers of witnesses are."""
        # Most evidence comes again and again; constraints are many.
        unknown = np.flatnonzero(without(found.masks, self._known))
        self._known = np.concatenate([self._known, found.masks[unknown]])
        violating = unknown[contains_any(found.masks[unknown], self.dcs)]
        if not len(violating):
            return
        first, second = found.witnesses[violating].T
        mine = found.batch_first[violating]
        if rows is not None:
            ours = rows[np.where(mine, first, second)]
            other = np.where(mine, second, first)
            other = other if old_rows is None else old_rows[other]
            first, second = np.where(mine, ours, other), np.where(mine, other, ours)
        t = np.where(mine, self.source.row_ids(np.where(mine, first, 0)), -1)
        s = np.where(mine, self.segment.row_ids(np.where(mine, second, 0)), -1)
        t = np.where(mine, t, self.segment.row_ids(np.where(mine, 0, first)))
        s = np.where(mine, s, self.source.row_ids(np.where(mine, 0, second)))
        self._found.append((found.masks[violating], np.stack([t, s], axis=1)))

    def evidence(self) -> tuple[U64, I64]:
        """(masks, a pair of row ids of each)."""
        if not self._found:
            return self.dcs[:0], np.empty((0, 2), np.int64)
        masks, witnesses = (np.concatenate(part) for part in zip(*self._found, strict=True))
        first, _ = unique_masks(masks)
        return masks[first], witnesses[first]


def _walked(place: _Place, accesses: Sequence[Access]) -> None:
    """Equalities of a batch: posting lists, each walked once for all accesses whose source it is."""
    place.begin()
    right, values = place.columns.groups.right, place.values
    groups, ops = _padded([a.others for a in accesses])
    sources = [a.source[0][0] for a in accesses]
    for g in sorted(set(sources)):
        wanted = np.array([i for i, source in enumerate(sources) if source == g], dtype=np.int32)
        offsets, positions = place.segment.index(int(right[g]))
        at = values[g] >> 1
        starts = offsets[at]
        ends = np.where(values[g] & 1, starts, offsets[np.minimum(at + 1, len(offsets) - 1)])
        lengths = (ends - starts).astype(np.int64)
        for first, last in blocks(lengths, BLOCK):
            part = slice(first, last)
            found = walked_pairs(
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
                place.own,
                first,
            )
            place.take(found.batch + first, found.old)


def _padded(sets: Sequence[Asked]) -> tuple[I32, I32]:
    """(groups, operators) of sets of predicates, int32[n_sets, *], padded with -1."""
    groups = np.full((len(sets), max(map(len, sets))), -1, dtype=np.int32)
    ops = groups.copy()
    for i, asked in enumerate(sets):
        for j, (g, op) in enumerate(asked):
            groups[i, j], ops[i, j] = g, op
    return groups, ops


def _joined(place: _Place, access: Access) -> None:
    """Equalities of a whole table: rows with equal hashes of the columns concerned."""
    place.begin()
    groups = place.columns.groups
    equal = [g for g, op in access.predicates if op == order_index.EQ]
    right, left = tuple(groups.right[equal].tolist()), tuple(groups.left[equal].tolist())
    others = tuple((g, op) for g, op in access.others if op != order_index.EQ)
    keys, order = _sorted_keys(place.segment.root, place.segment.ref, place.segment.schema, right)
    if place.own and left == right:
        # Each row with those before it in its run of equal hashes.
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        change = np.ones(len(keys), dtype=np.bool_)
        change[1:] = keys[1:] != keys[:-1]
        starts = np.maximum.accumulate(np.where(change, np.arange(len(keys)), 0))[rank]
        ends = rank
    else:
        own_keys = _hashes(place.source, left)
        by_key = np.argsort(own_keys)  # searching sorted keys stays in the cache
        starts, ends = np.empty(len(own_keys), np.int64), np.empty(len(own_keys), np.int64)
        starts[by_key] = np.searchsorted(keys, own_keys[by_key], side="left")
        ends[by_key] = np.searchsorted(keys, own_keys[by_key], side="right")
    if not place.limit:
        starts, ends = _compared_in_blocks(place, order, starts, ends, same=place.own and left == right)
    for mine, theirs in _ranges(starts, ends):
        if not place.room:
            place.complete = False
            return
        theirs = order[theirs]
        if place.own and left != right:
            before = theirs < mine
            mine, theirs = mine[before], theirs[before]
        place.take(*place.compared(mine, theirs, others))


def _compared_in_blocks(place: _Place, order: I64, starts: I64, ends: I64, *, same: bool) -> tuple[I64, I64]:
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
            place.compare(run, run, own=True)
        elif len(run) * int(ends[run[0]] - starts[run[0]]) >= BLOCK_ROWS**2 // 2:
            theirs = order[starts[run[0]] : ends[run[0]]]
            if not place.own:
                place.compare(run, theirs, own=False)
            else:
                many[run] = False  # across columns of one segment: pairs before the row only
        else:
            many[run] = False
    return np.where(many, 0, starts), np.where(many, 0, ends)


def _ranges(starts: I64, ends: I64) -> Iterator[tuple[I64, I64]]:
    """(row, place) for every place in starts[row] .. ends[row], in blocks."""
    lengths = ends - starts
    rows = np.flatnonzero(lengths > 0)
    for first, last in blocks(lengths[rows], BLOCK):
        part = rows[first:last]
        sizes = lengths[part]
        mine = np.repeat(part, sizes)
        within = np.arange(len(mine)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield mine, np.repeat(starts[part], sizes) + within


@lru_cache(maxsize=64)
def _sorted_keys(root: Path, ref: SegmentRef, schema: Schema, columns: tuple[int, ...]) -> tuple[U64, I64]:
    """(hashes of the rows on some columns, ascending; whose they are, ascending where equal)."""
    keys = _hashes(open_segment(root, ref, schema), columns)
    order = np.argsort(keys, kind="stable")
    return keys[order], order


def _hashes(segment: Segment, columns: Sequence[int]) -> U64:
    values = ((segment.dictionary(c), segment.codes[c]) for c in columns)
    return row_hashes(values, segment.ref.n_rows, segment.key)


def _by_order(place: _Place, access: Access) -> None:
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


def _by_column(place: _Place, access: Access) -> None:
    """One predicate: the rows that a column's posting lists give for each row of the source."""
    place.begin()
    [(group, op)] = access.source
    op = SYMMETRIC[op]
    index = order_index.ColumnIndex(*place.segment.index(int(place.columns.groups.right[group])))
    values = place.values[group]
    counts = order_index.count_column(index, values, op)
    _fetched(place, access, counts, lambda part: order_index.fetch_column(index, values[part], op))


def _fetched(place: _Place, access: Access, counts: I64, fetch: Callable[[slice], order_index.Hits]) -> None:
    """What an index gives for the rows of the source, block by block."""
    for start, stop in blocks(counts, BLOCK):
        if not place.room:
            place.complete = False
            return
        hits = fetch(slice(start, stop))
        mine, theirs = hits.probes.astype(np.int64) + start, hits.rows.astype(np.int64)
        if place.own:
            before = theirs < mine
            mine, theirs = mine[before], theirs[before]
        place.take(*place.compared(mine, theirs, access.others))


def _order(segment: Segment, key: OrderKey) -> order_index.OrderIndex:
    if key in segment.ref.ordered:
        return segment.order(key)
    a, b, falling = key
    return order_index.build(
        segment.codes[a], segment.codes[b], order_index.GE, order_index.LE if falling else order_index.GE
    )


# -- rows that are equal on all columns concerned ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fold:
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
def _folded(root: Path, ref: SegmentRef, schema: Schema, columns: tuple[int, ...]) -> _Fold:
    """The rows of a segment, folded; deleted ones too: files never change, and so they are folded once."""
    segment = open_segment(root, ref, schema)
    keys = _hashes(segment, columns)
    order = np.argsort(keys, kind="stable")
    change = np.ones(len(order), dtype=np.bool_)
    if len(order):
        change[1:] = keys[order[1:]] != keys[order[:-1]]
        for c in columns:  # a collision of hashes only makes two groups of one
            codes = segment.codes[c][order]
            change[1:] |= codes[1:] != codes[:-1]
    return _Fold(order, np.append(np.flatnonzero(change), len(order)))


def _scan(place: _Place, access: Access, dcs: U64, part: tuple[int, int]) -> None:
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
    mine = fold if place.own else _folded(source.root, source.ref, source.schema, columns)
    share = np.array([part[0], part[0] + 1]) / part[1]
    n = len(mine.sizes)
    first, last = ((np.sqrt(share) if place.own else share) * n).round().astype(np.int64).tolist()
    codes = np.ascontiguousarray(segment.codes[list(columns)][:, fold.first])
    pairs_ = [(int(whole.left[g]), int(whole.right[g])) for g in access.groups]
    values = half_rank_rows(segment, source, mine.first[first:last], pairs_)
    alive = np.ones(codes.shape[1], dtype=np.bool_)
    n_words = place.columns.n_words
    batch = values[:, None, :]
    masks = evidence_counts(codes, alive, batch, groups, n_words, place.own, first).masks
    many = first + np.flatnonzero(mine.sizes[first:last] > 1) if place.own else np.empty(0, np.int64)
    if len(many):
        # Two equal rows of one group.
        equal = ListedPairs(codes, batch, groups, n_words).evidence(many - first, many)
        masks = np.concatenate([masks, equal.masks])
    masks = masks[contains_any(masks, dcs)]
    if not len(masks):
        return
    found = pairs_with_outcomes(values, codes, groups.right, groups.ordered, _outcomes(masks, groups), BLOCK)
    for listed in found:
        if not place.room:
            place.complete = False
            return
        i, j = listed.batch + first, listed.old
        if place.own:
            own = (j < i) | ((j == i) & (mine.sizes[i] > 1))
            i, j = i[own], j[own]
        _unfold(place, mine, fold, i, j)


def _scan_all(place: _Place, part: tuple[int, int]) -> None:
    """All groups are concerned: what is compared is the evidence itself."""
    share = np.array([part[0], part[0] + 1]) / part[1]
    n = place.source.ref.n_rows
    first, last = ((np.sqrt(share) if place.own else share) * n).round().astype(np.int64).tolist()
    mine = np.arange(first, last)
    live = place.source.live[mine]
    if live.all():
        place.compare(mine, None, place.own, first)
    elif place.own:
        # Numbers of live rows among live rows: `own` wants each row beside those before it.
        alive = np.flatnonzero(place.source.live)
        start, stop = np.searchsorted(alive, [first, last])
        place.compare(alive[start:stop], alive, True, int(start))
    else:
        place.compare(mine[live], None, False, 0)


def _outcomes(masks: U64, groups: Groups) -> NDArray[np.uint8]:
    """The outcomes uint8[k, n_groups] of pairs with some evidence."""
    bits = np.unpackbits(np.ascontiguousarray(masks).view(np.uint8), axis=1, bitorder="little")
    first = groups.first.astype(np.int64)
    told = np.full((len(masks), len(first)), LESS, dtype=np.uint8)
    by_order = np.flatnonzero(groups.ordered)
    told[:, by_order] = ONE_NULL
    for op, outcome in ((order_index.LT, LESS), (order_index.GT, GREATER)):
        told[:, by_order] = np.where(bits[:, first[by_order] + op], outcome, told[:, by_order])
    return np.where(bits[:, first + order_index.EQ], np.uint8(EQUAL), told)


def _unfold(place: _Place, mine: _Fold, theirs: _Fold, i: I64, j: I64) -> None:
    """All pairs of rows of the groups mine[i] and theirs[j]."""
    sizes = mine.sizes[i] * theirs.sizes[j]
    for first, last in blocks(sizes, BLOCK):
        if not place.room:
            place.complete = False
            return
        part = sizes[first:last]
        if last - first == 1 and place.limit and part[0] > place.room:
            place.complete = False
            part = np.array([place.room])
        pair = np.repeat(np.arange(first, last), part)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(part) - part, part)
        width = theirs.sizes[j[pair]]
        left = mine.order[mine.starts[i[pair]] + within // width]
        right = theirs.order[theirs.starts[j[pair]] + within % width]
        if place.own:
            # Of one group with itself each pair comes twice.
            once = (i[pair] != j[pair]) | (right < left)
            left, right = left[once], right[once]
        place.take(left, right)
