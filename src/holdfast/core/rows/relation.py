"""A relation: the live segments of one table, and the jobs that look at them.

Each method is one job at most, whatever the number of candidates or keys: it makes the payloads
of `tasks.py`, runs them inline or on Spark, whichever the estimated work deserves, and merges the
small results. Relations are values: a method that changes something returns a new one, and only a
ledger commit makes it the table's state.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.engine.engine import Engine, Progress
from holdfast.core.evidence.fd_validation import NO_PIVOT
from holdfast.core.evidence.kernels.fd_partitions import unite
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows import tasks
from holdfast.core.rows.kernels.masks import (
    contained_in_any,
    mask_of,
    minimal_masks,
    n_words_for,
    popcounts,
    positions_of,
)
from holdfast.core.rows.segments import MAX_ROWS, open_segment, write_deletes
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.sources.arrow_types import arrow_schema
from holdfast.core.store.bundle import Bundle, unpack, write_bundle
from holdfast.core.store.files import unique_name
from holdfast.core.words.schema import Nulls, Schema

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]

# What is done inline at most (a Spark job costs 0.2 s, its first one many times that):
INLINE_VALIDATE = 4_000_000  # rows x pivots
INLINE_PROBE = 40_000_000  # pairs of rows, estimated from the lengths of posting lists
INLINE_INDEX = 4_000_000  # rows x columns
ORDER_WORK = 10  # an order index is as much work as indexes of so many columns
INLINE_LOCATE = 2_000_000  # lookups
INLINE_MERGE = 2_000_000  # rows
# Inline work above this share of its limit runs on all cores.
WORTH_THREADS = 0.05
# Rows of one validation task.
PART_ROWS = 1 << 21
# Segments of one size that are merged into one.
MERGE_FANOUT = 8
# Of wide tables it is these: each segment costs a few calls per column and batch, whatever its rows.
WIDE_COLUMNS, WIDE_FANOUT = 64, 4
SMALLEST_TIER = 1024


@dataclass(frozen=True, slots=True)
class Refutation:
    """What a validation found: which candidates are not unique, and evidence against them."""

    refuted: Bool
    masks: U64
    witnesses: I64


@dataclass(frozen=True, slots=True)
class FdRefutation:
    """What a validation of FDs found: for each left-hand side the columns that it does not determine.

    refuted uint64[n, n_words]. For each refuted (lhs, A) some mask contains lhs and lacks A; witnesses
    are pairs of row ids with exactly that agree set.
    """

    refuted: U64
    masks: U64
    witnesses: I64


@dataclass(frozen=True)
class Relation:
    """The encoded, versioned rows of a table."""

    root: Path
    folder: str  # where new files go
    staging: str  # where files of this job go; removed after it
    schema: Schema
    nulls: Nulls
    locator: tuple[int, ...]
    segments: tuple[SegmentRef, ...]
    engine: Engine
    progress: Progress | None = None
    compress: bool = False

    @property
    def n_rows(self) -> int:
        return sum(s.n_live for s in self.segments)

    @property
    def n_words(self) -> int:
        return n_words_for(len(self.schema))

    def distinct(self) -> list[int]:
        """An estimate of the distinct values of each column: no less than the largest segment's."""
        if not self.segments:
            return [0] * len(self.schema)
        sums = np.sum([s.distinct for s in self.segments], axis=0)
        return [int(min(d, self.n_rows)) for d in sums]

    def ranking(self) -> list[int]:
        """The columns, most selective first."""
        distinct = self.distinct()
        return sorted(range(len(self.schema)), key=lambda c: (-distinct[c], c))

    def by(self, engine: Engine) -> Relation:
        """The same, looked at by another engine."""
        return replace(self, engine=engine)

    def payload(self, **fields: Any) -> Payload:
        return {
            "root": str(self.root),
            "folder": self.folder,
            "schema": json.dumps(self.schema.to_dict()),
            "nulls": self.nulls,
            "locator": list(self.locator),
            "compress": self.compress,
            **fields,
        }

    def stage(self, what: str, **arrays: NDArray[Any]) -> dict[str, Any]:
        """Write arrays for the tasks of a job to read."""
        name = unique_name(self.staging, what, ".arrow")
        return write_bundle(self.root, name, arrays, {"holdfast": what}).to_dict()

    def run(self, task: Any, payloads: list[Payload], work: float, limit: float) -> list[Bundle]:
        where = self.engine.choose(work, limit)
        results = self.engine.run(
            task, payloads, where=where, progress=self.progress, parallel=work > limit * WORTH_THREADS
        )
        return [unpack(r) for r in results]

    # -- looking ------------------------------------------------------------------------------

    def validate(self, candidates: U64) -> Refutation:
        """Which candidates are not unique on the live rows, with evidence against each.

        One task per pivot column (the most selective column of a candidate) and part of its
        values; a candidate is unique iff no part refutes it.
        """
        refuted = np.zeros(len(candidates), dtype=np.bool_)
        empty = ~candidates.any(axis=1)
        found = [self._any_pair()] if empty.any() and self.n_rows > 1 else []
        refuted[empty] = self.n_rows > 1
        rest = np.flatnonzero(~empty)
        if len(rest) and self.n_rows > 1:
            ranking = self.ranking()
            pivots = _pivots(candidates[rest], ranking)
            chosen = np.unique(pivots)
            if self._few_pairs(len(chosen)):
                masks, witnesses = self._all_pairs()
                refuted[rest] = contained_in_any(candidates[rest], masks)
                return Refutation(refuted, *self._united([*found, (masks, witnesses)]))
            n_parts = -(-self.n_rows // PART_ROWS)
            if self.engine.choose(self.n_rows * len(chosen), INLINE_VALIDATE) == "spark":
                n_parts = max(n_parts, -(-2 * self.engine.cores // len(chosen)))
            staged = self.stage("candidates", masks=candidates[rest], pivots=pivots)
            live = [s.to_dict() for s in self.segments if s.n_live]
            payloads = [
                self.payload(
                    segments=live, candidates=staged, ranking=ranking, pivot=int(p), part=i, n_parts=n_parts
                )
                for p in chosen
                for i in range(n_parts)
            ]
            for result in self.run(tasks.validate_part, payloads, self.n_rows * len(chosen), INLINE_VALIDATE):
                refuted[rest[result.array("candidate")]] = True
                found.append(self._evidence(result))
        return Refutation(refuted, *self._united(found))

    def validate_fds(self, lhs: U64, rhs: U64) -> FdRefutation:
        """Which columns of rhs[i] lhs[i] does not determine on the live rows, with evidence against each.

        lhs, rhs uint64[n, n_words], rhs[i] disjoint from lhs[i]. One job, divided as in `validate`; the
        empty left-hand side is a task of its own. Masks are all different.
        """
        refuted = np.zeros_like(rhs)
        found: list[tuple[U64, I64]] = []
        asked = np.flatnonzero(rhs.any(axis=1))
        if len(asked) and self.n_rows > 1:
            ranking = self.ranking()
            pivots = _pivots(lhs[asked], ranking)
            chosen = np.unique(pivots)
            if self._few_pairs(len(chosen)):
                masks, witnesses = self._all_pairs()
                for mask in masks:
                    inside = ~(lhs[asked] & ~mask).any(axis=1)
                    refuted[asked[inside]] |= rhs[asked[inside]] & ~mask
                return FdRefutation(refuted, *unite(masks, witnesses))
            work = self.n_rows * len(chosen)
            n_parts = -(-self.n_rows // PART_ROWS)
            if self.engine.choose(work, INLINE_VALIDATE) == "spark":
                n_parts = max(n_parts, -(-2 * self.engine.cores // len(chosen)))
            staged = self.stage("candidates", lhs=lhs[asked], rhs=rhs[asked], pivots=pivots)
            live = [s.to_dict() for s in self.segments if s.n_live]
            payloads = [
                self.payload(
                    segments=live, candidates=staged, ranking=ranking, pivot=int(p), part=i, n_parts=n
                )
                for p in chosen
                for n in [1 if p == NO_PIVOT else n_parts]
                for i in range(n)
            ]
            for result in self.run(tasks.validate_fd_part, payloads, work, INLINE_VALIDATE):
                refuted[asked[result.array("candidate")]] |= result.array("refuted").reshape(-1, self.n_words)
                found.append(self._evidence(result))
        return FdRefutation(refuted, *unite(*self._united(found)))

    def _few_pairs(self, n_pivots: int) -> bool:
        """Whether comparing all rows with each other is less than to look at them pivot by pivot."""
        return self.n_rows * (self.n_rows - 1) // 2 <= n_pivots

    def _all_pairs(self) -> tuple[U64, I64]:
        """The evidence of all pairs of live rows; one task."""
        payload = self.payload(segments=[s.to_dict() for s in self.segments if s.n_live])
        work = float(self.n_rows * self.n_rows)
        [result] = self.run(tasks.compare_rows, [payload], work, INLINE_VALIDATE)
        return self._evidence(result)

    def probe(
        self, batch: Sequence[SegmentRef], keys: U64, index_columns: Sequence[int], rhs: U64 | None = None
    ) -> tuple[U64, I64]:
        """Evidence of all pairs of a batch row with another row that agree on some key.

        With `rhs` the keys are left-hand sides, and of the pairs that agree on one those count that differ
        on a column of its rhs. The segments of the batch are the newest of the relation; they are probed
        with themselves, too. Every key has an indexed column.
        """
        probes = probes_for(keys, index_columns, rhs)
        staged = self.stage("keys", masks=keys, rhs=rhs if rhs is not None else keys[:0])
        payloads, work = [], 0.0
        new = {s.number for s in batch}
        for i, part in enumerate(batch):
            earlier = [s for s in self.segments if s.number not in new] + list(batch[: i + 1])
            for segment in earlier:
                if not segment.n_live:
                    continue
                payloads.append(
                    self.payload(
                        segment=segment.to_dict(),
                        batch=part.to_dict(),
                        keys=staged,
                        probes=[asdict(p) for p in probes],
                        own=segment.number == part.number,
                        settled=segment.number not in new,
                    )
                )
                walked = [p.columns for p in probes if not p.determines]
                shortest = [min(segment.n_rows / max(1, segment.distinct[c]) for c in p) for p in walked]
                work += part.n_rows * (sum(shortest) + len(self.schema))
        results = self.run(tasks.probe_segment, payloads, work, INLINE_PROBE)
        return self._united([self._evidence(r) for r in results])

    def locate(self, queries: Sequence[SegmentRef], columns: Sequence[int]) -> tuple[I64, I64]:
        """(query, row id) of all live rows that equal a query row on some columns.

        Queries are numbered through the query segments; the locator's columns are among `columns`.
        """
        starts = np.cumsum([0, *(q.n_rows for q in queries)])
        pairs = [(i, q, s) for i, q in enumerate(queries) for s in self.segments if s.n_live and q.n_rows]
        payloads = [
            self.payload(segment=s.to_dict(), queries=q.to_dict(), columns=list(columns)) for _, q, s in pairs
        ]
        work = float(sum(q.n_rows for _, q, _ in pairs))
        results = self.run(tasks.locate_rows, payloads, work, INLINE_LOCATE)
        if not results:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        query = [starts[i] + r.array("query") for (i, _, _), r in zip(pairs, results, strict=True)]
        return np.concatenate(query), np.concatenate([r.array("row_id") for r in results])

    def fetch(self, row_ids: Sequence[int] | I64) -> pa.Table:
        """The values of rows by id, in that order; deleted rows too while their segment lives."""
        wanted = np.asarray(row_ids, dtype=np.int64)
        tables, order = [], []
        for ref in self.segments:
            segment = open_segment(self.root, ref, self.schema)
            positions = segment.positions(wanted)
            here = np.flatnonzero(positions >= 0)
            if len(here):
                tables.append(segment.rows(positions[here]))
                order.append(here)
        if not tables:
            return arrow_schema(self.schema).empty_table()
        back = np.argsort(np.concatenate(order))
        return pa.concat_tables(tables).take(pa.array(back))

    def _any_pair(self) -> tuple[U64, I64]:
        """The evidence of two live rows, whichever."""
        refs = [s for s in self.segments if s.n_live]
        opened = [open_segment(self.root, s, self.schema) for s in refs]
        ids = np.concatenate([s.row_ids(np.flatnonzero(s.live)[:2]) for s in opened])[:2]
        rows = self.fetch(ids)
        agreed = [c for c, column in enumerate(rows.columns) if _agree(*column, nulls=self.nulls)]
        witnesses = np.full((1, WITNESSES, 2), -1, dtype=np.int64)
        witnesses[0, 0] = ids
        return mask_of(agreed, self.n_words)[None, :], witnesses

    def _evidence(self, result: Bundle) -> tuple[U64, I64]:
        return (
            result.array("masks").reshape(-1, self.n_words),
            result.array("witnesses").reshape(-1, WITNESSES, 2),
        )

    def _united(self, found: list[tuple[U64, I64]]) -> tuple[U64, I64]:
        masks = [m for m, _ in found] or [np.empty((0, self.n_words), np.uint64)]
        witnesses = [w for _, w in found] or [np.empty((0, WITNESSES, 2), np.int64)]
        return np.concatenate(masks), np.concatenate(witnesses)

    # -- changing -----------------------------------------------------------------------------

    def with_segments(self, added: Sequence[SegmentRef]) -> Relation:
        return replace(self, segments=(*self.segments, *added))

    def indexed(self, columns: Sequence[int], orders: Sequence[OrderKey] = ()) -> Relation:
        """With an index on these columns, and these order indexes, in every segment; one job for all."""
        lacking = []
        for i, s in enumerate(self.segments):
            indexed, ordered = s.indexed, s.ordered
            missing = [c for c in columns if c not in indexed]
            unordered = [k for k in orders if k not in ordered]
            if s.n_live and (missing or unordered):
                lacking.append((i, s, missing, unordered))
        payloads = [
            self.payload(segment=s.to_dict(), columns=missing, orders=[list(k) for k in unordered])
            for _, s, missing, unordered in lacking
        ]
        work = sum(s.n_rows * (len(m) + ORDER_WORK * len(o)) for _, s, m, o in lacking)
        segments = list(self.segments)
        for (i, *_), result in zip(
            lacking, self.run(tasks.index_segment, payloads, work, INLINE_INDEX), strict=True
        ):
            segments[i] = SegmentRef.from_dict(json.loads(result.meta["segment"]))
        return replace(self, segments=tuple(segments))

    def without_rows(self, row_ids: I64) -> Relation:
        """With these rows deleted: a new delete vector for each segment they touch."""
        segments = []
        for ref in self.segments:
            positions = open_segment(self.root, ref, self.schema).positions(row_ids)
            here = positions[positions >= 0]
            segments.append(write_deletes(self.root, self.folder, ref, here) if len(here) else ref)
        return replace(self, segments=tuple(segments))

    def tidied(
        self,
        next_number: int,
        index_columns: Sequence[int],
        orders: Sequence[OrderKey] = (),
        *,
        everything: bool = False,
    ) -> tuple[Relation, int]:
        """(relation, next number): segments merged where one size has become too many.

        Size-tiered: MERGE_FANOUT segments of one size become one of the next. Segments that are
        mostly deleted are rewritten, empty ones dropped. Row ids stay.
        """
        segments = [s for s in self.segments if s.n_live]
        blocked: set[int] = set()
        while True:
            fanout = min(MERGE_FANOUT, WIDE_FANOUT) if len(self.schema) > WIDE_COLUMNS else MERGE_FANOUT
            mergeable = [s for s in segments if s.number not in blocked]
            run = _run_to_merge(mergeable, fanout, everything=everything)
            if not run:
                return replace(self, segments=tuple(segments)), next_number
            payload = self.payload(
                segments=[s.to_dict() for s in run],
                number=next_number,
                columns=list(index_columns),
                orders=[list(k) for k in orders],
            )
            [result] = self.run(tasks.merge_run, [payload], sum(s.n_rows for s in run), INLINE_MERGE)
            merged = json.loads(result.meta["segment"])
            numbers = {s.number for s in run}
            if merged is None:  # texts share a code: these segments stay apart, the others try again
                blocked |= set(json.loads(result.meta["apart"]))
                continue
            ref = SegmentRef.from_dict(merged)
            at = next(i for i, s in enumerate(segments) if s.number in numbers)
            segments = [s for s in segments if s.number not in numbers]
            segments.insert(at, ref)
            next_number += 1
            if everything:
                return replace(self, segments=tuple(segments)), next_number


def _pivots(masks: U64, ranking: Sequence[int]) -> I64:
    """The most selective column of each set, NO_PIVOT of the empty one: int64[n]."""
    pivots = np.full(len(masks), NO_PIVOT, dtype=np.int64)
    place = np.empty(len(ranking), dtype=np.int64)
    place[ranking] = np.arange(len(ranking))
    # Word by word, from the last column to the first, so that the most selective one is written last.
    row, word = np.nonzero(masks)
    octets = np.ascontiguousarray(masks[row, word], dtype="<u8").view(np.uint8).reshape(-1, 8)
    at, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    column = 64 * word[at] + bit
    order = np.argsort(-place[column], kind="stable")
    pivots[row[at][order]] = column[order]
    return pivots


def _tier(n_rows: int) -> int:
    return int(np.log2(max(n_rows, SMALLEST_TIER) / SMALLEST_TIER) / np.log2(MERGE_FANOUT))


def _run_to_merge(segments: Sequence[SegmentRef], fanout: int, *, everything: bool) -> list[SegmentRef]:
    """The next segments to merge, or none."""
    if everything:
        fitting = [s for s in segments if s.n_live <= MAX_ROWS]
        needed = len(fitting) > 1 or any(s.n_deleted for s in fitting)
        return fitting if needed and sum(s.n_live for s in fitting) <= MAX_ROWS else []
    for ref in segments:
        if ref.n_deleted > ref.n_rows // 2:
            return [ref]
    # Only what batches have added: the segments of `track` come in a size that suits the table.
    tiers: dict[int, list[SegmentRef]] = {}
    for ref in segments:
        tiers.setdefault(_tier(ref.n_live), []).append(ref)
    for _, members in sorted(tiers.items()):
        if len(members) >= fanout and sum(s.n_live for s in members) <= MAX_ROWS // 4:
            return members
    return []


def probes_for(keys: U64, index_columns: Sequence[int], rhs: U64 | None = None) -> list[tasks.Probe]:
    """What to probe for: a pair that agrees on a key agrees on the columns of one of the probes.

    These are the minimal sets of indexed columns of the keys. Keys of one column that come with right-hand
    sides are probes of their own, since one old row of each value can answer them.
    """
    if rhs is None:
        return [tasks.Probe(list(columns), []) for columns in _indexed_parts(keys, index_columns)]
    single = popcounts(keys) == 1
    alone = [
        tasks.Probe(list(positions_of(key)), list(positions_of(right)), determines=True)
        for key, right in zip(keys[single], rhs[single], strict=True)
    ]
    others, theirs = keys[~single], rhs[~single]
    probes = []
    for columns in _indexed_parts(others, index_columns):
        part = mask_of(columns, keys.shape[1])
        mine = ((others & part) == part).all(axis=1)
        probes.append(tasks.Probe(list(columns), list(positions_of(np.bitwise_or.reduce(theirs[mine])))))
    return [*alone, *probes]


def _indexed_parts(keys: U64, index_columns: Sequence[int]) -> list[tuple[int, ...]]:
    """The minimal sets of indexed columns of the keys. Single columns are, and what contains one is not."""
    parts = keys & mask_of(index_columns, keys.shape[1])
    single = np.bitwise_or.reduce(parts[popcounts(parts) == 1], axis=0)
    rest = parts[~(parts & single).any(axis=1)]
    return [*((c,) for c in positions_of(single)), *(positions_of(m) for m in rest[minimal_masks(rest)])]


def _agree(left: Any, right: Any, *, nulls: Nulls) -> bool:
    """Whether two Arrow scalars of one type are one value. Python's values may have lost something."""
    if not (left.is_valid and right.is_valid):
        return left.is_valid == right.is_valid and nulls == "equal"
    if pa.types.is_floating(left.type) and pc.is_nan(left).as_py():
        return bool(pc.is_nan(right).as_py())
    return bool(pc.equal(left, right).as_py())
