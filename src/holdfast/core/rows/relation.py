"""A relation: the live segments of one table, and the jobs that look at them.

Each method is one job at most: it makes the payloads of `tasks.py`, runs them inline or on Spark, whichever
the estimated work deserves, and merges the small results. Relations are values: a method that changes
something returns a new one, and only a ledger commit makes it the table's state.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.engine.cost import available_cores
from holdfast.core.engine.distance import TABLE_BYTES, are_far
from holdfast.core.engine.engine import Engine, Where
from holdfast.core.engine.job_progress import Progress
from holdfast.core.rows import tasks
from holdfast.core.rows.deletes import write_deletes
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.rows.segments import ROW_BITS, open_segment
from holdfast.core.rows.table_state import OrderKey, SegmentRef, agreeing_pairs, distinct_values, payloads_of
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.bucket import Bucket
from holdfast.core.store.bundle import Bundle, unpack, write_bundle
from holdfast.core.store.files import unique_name
from holdfast.core.store.root import Root
from holdfast.core.words.schema import Nulls, Schema

I64 = NDArray[np.int64]

# What work takes on one core, in ns: to index a row of a column, to look up a row, to merge a cell.
NS_INDEX, NS_LOCATE, NS_MERGE = 10, 5_000, 30
ORDER_WORK = 10  # an order index is as much work as indexes of so many columns
# Inline work of so many ns runs on all cores.
WORTH_THREADS = 2e7
# Segments of one size that are merged into one.
MERGE_FANOUT = 8
# Of wide tables it is these: each segment costs a few calls per column and batch, whatever its rows.
WIDE_COLUMNS, WIDE_FANOUT = 64, 4
SMALLEST_TIER = 1024
# Rows, and cells, of the largest segment that a merge makes: what one task reads and writes, and what a
# machine fetches. A store takes some gigabytes at once.
MERGED_ROWS, MERGED_CELLS = 1 << 22, 1 << 28
# What batches have added is merged into segments of this share of a table's rows, unless it has few: tasks
# look at segments side by side, so one for all rows would leave all but one of the cores idle.
MERGED_SHARE, MERGED_FEW = 8, 1 << 18


@dataclass(frozen=True)
class Relation:
    """The encoded, versioned rows of a table."""

    root: Root
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
        return distinct_values(self.segments, len(self.schema))

    def ranking(self) -> list[int]:
        """The columns, most selective first: those on which the fewest pairs of rows agree.

        Not those with the most values: of one that is mostly NULL half of all rows may agree. On a table of
        voters with such a column, keys are validated in 2.0 s, where they took 3.5 s by numbers of values.
        """
        n_columns, distinct = len(self.schema), self.distinct()
        pairs = agreeing_pairs(self.segments, n_columns, nulls_distinct=self.nulls == "distinct")
        return sorted(range(n_columns), key=lambda c: (pairs[c], -distinct[c], c))

    def by(self, engine: Engine) -> Relation:
        """The same, looked at by another engine. What is known of positions is known to both."""
        same = replace(self, engine=engine)
        vars(same)["_places"] = self._places
        return same

    @cached_property
    def live(self) -> list[Payload]:
        """The segments with live rows, for payloads: the very same list for all of them."""
        return [s.to_dict() for s in self.segments if s.n_live]

    @cached_property
    def schema_text(self) -> str:
        return json.dumps(self.schema.to_dict())

    def payload(self, **fields: Any) -> Payload:
        return {
            "root": str(self.root),
            "folder": self.folder,
            "schema": self.schema_text,
            "nulls": self.nulls,
            "locator": list(self.locator),
            "compress": self.compress,
            **fields,
        }

    def stage(self, what: str, **arrays: NDArray[Any]) -> dict[str, Any]:
        """Write arrays for the tasks of a job to read."""
        name = unique_name(self.staging, what, ".arrow")
        return write_bundle(self.root, name, arrays, {"holdfast": what}).to_dict()

    def shares(self, ns: float) -> int:
        """Into how many tasks work of so many nanoseconds of one core is divided, so that no core is idle."""
        if self.engine.choose(ns, parallel=ns > WORTH_THREADS) == "spark":
            return self.engine.shares(ns)
        return available_cores() if ns > WORTH_THREADS else 1

    def run(self, task: Any, payloads: list[Payload], ns: float) -> list[Bundle]:
        """The results of tasks that take so many nanoseconds of one core together; one job.

        Where the table lies far away it is Spark's, however little the work is.
        """
        parallel = ns > WORTH_THREADS
        where = self.engine.choose(ns, parallel=parallel)
        if where == "inline" and self.is_far:
            where = "spark"
        results = self.engine.run(task, payloads, where=where, progress=self.progress, parallel=parallel)
        return [unpack(r) for r in results]

    # -- looking ------------------------------------------------------------------------------

    def locate(
        self, queries: Sequence[SegmentRef], columns: Sequence[int], n_taken: int | None = None
    ) -> tuple[I64, I64, I64]:
        """(query, row id) of all live rows that equal a query row on some columns, and each query's leader.

        Queries are numbered through the query segments; the locator's columns are among `columns`. A query
        that equals another may leave it to that one, its leader, to be paired with rows. Given how many rows
        are taken before, only so many are told as queries can take: the first ones.
        """
        starts = np.cumsum([0, *(q.n_rows for q in queries)])
        leader = np.arange(starts[-1])
        pairs = [(i, q, s) for i, q in enumerate(queries) for s in self.segments if s.n_live and q.n_rows]
        one, other, on = payloads_of(self.segments), payloads_of(queries), list(columns)
        spare = {q.number: None if n_taken is None else n_taken + int(starts[-1]) - q.n_rows for q in queries}
        payloads = [
            self.payload(segment=one[s.number], queries=other[q.number], columns=on, spare=spare[q.number])
            for _, q, s in pairs
        ]
        results = self.run(tasks.locate_rows, payloads, NS_LOCATE * sum(q.n_rows for _, q, _ in pairs))
        if not results:
            return np.empty(0, np.int64), np.empty(0, np.int64), leader
        for (i, _, _), r in zip(pairs, results, strict=True):
            leader[starts[i] + r.array("repeat")] = starts[i] + r.array("leader")
        query = [starts[i] + r.array("query") for (i, _, _), r in zip(pairs, results, strict=True)]
        return np.concatenate(query), np.concatenate([r.array("row_id") for r in results]), leader

    def fetch(self, row_ids: Sequence[int] | I64) -> pa.Table:
        """The values of rows by id, in that order; deleted rows too while their segment lives.

        By one job where segments would have to come from a store to this machine.
        """
        ids = np.asarray(row_ids, dtype=np.int64)
        concerned = self.that_may_have(ids)
        if not self.are_far(concerned):
            return tasks.fetch_rows(self.root, self.schema, concerned, ids)
        wanted = ids.tolist()  # not staged: who reads may have no right to write
        payloads = [self.payload(segment=s.to_dict(), row_ids=wanted) for s in concerned]
        tables = [pa.ipc.open_stream(s).read_all() for s in self.look(tasks.fetch_part, payloads, concerned)]
        parts = [(t.column(0).to_numpy(), t.remove_column(0)) for t in tables]
        return tasks.in_order(parts, self.schema)

    def look(self, task: Any, payloads: list[Payload], segments: Sequence[SegmentRef]) -> list[bytes]:
        """What tasks say that see little of segments: one job where these are far, else without one."""
        where: Where = "spark" if self.are_far(segments) else "inline"
        return self.engine.run(task, payloads, where=where, progress=self.progress)

    def that_may_have(self, row_ids: I64) -> list[SegmentRef]:
        """The segments that may have some of the rows; those that are not merged do.

        A row is in a merged one only if the segment that it came in is none of the relation's. So most rows
        are found without a look at any file: on a store it may be far away.
        """
        numbers = set(np.unique(row_ids >> ROW_BITS).tolist())
        moved = not numbers <= {s.number for s in self.segments if not s.merged}
        return [s for s in self.segments if (moved if s.merged else s.number in numbers)]

    def are_far(self, segments: Sequence[SegmentRef]) -> bool:
        """Whether segments had better be looked at by executors, however little that is."""
        return are_far(self.engine, self.root, (s.file for s in segments))

    @cached_property
    def is_far(self) -> bool:
        """Whether the whole table had better be looked at by executors: asked once, a look at each copy."""
        return are_far(self.engine, self.root, (s.file for s in self.segments), TABLE_BYTES)

    def positioned(self, row_ids: I64) -> tuple[tuple[SegmentRef, I64], ...]:
        """Rows by id as positions, ascending, in the segments that have them.

        Of segments that are not merged it is arithmetic; ids of merged ones are looked up, by one job where
        these are far. Answers are remembered: all classes ask for the rows that a batch deletes.
        """
        name = row_ids.tobytes()
        places = self._places.get(name)
        if places is None:
            places = self._places[name] = self._looked_up(row_ids)
        return places

    @cached_property
    def _places(self) -> dict[bytes, tuple[tuple[SegmentRef, I64], ...]]:
        return {}

    def _looked_up(self, row_ids: I64) -> tuple[tuple[SegmentRef, I64], ...]:
        refs = self.that_may_have(row_ids)
        merged = [s for s in refs if s.merged]
        at: dict[SegmentRef, I64] = {}
        if self.are_far(merged):
            staged = self.stage("row_ids", row_ids=row_ids)
            payloads = [self.payload(segment=s.to_dict(), row_ids=staged) for s in merged]
            results = self.look(tasks.position_rows, payloads, merged)
            at = {s: unpack(r).array("positions") for s, r in zip(merged, results, strict=True)}
        for s in refs:
            if s not in at:
                at[s] = tasks.ascending_positions(open_segment(self.root, s, self.schema), row_ids)
        return tuple((s, at[s]) for s in refs if len(at[s]))

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
            lacking, self.run(tasks.index_segment, payloads, NS_INDEX * work), strict=True
        ):
            segments[i] = SegmentRef.from_dict(json.loads(result.meta["segment"]))
        return replace(self, segments=tuple(segments))

    def without_rows(self, row_ids: I64) -> Relation:
        """With these rows deleted: a new delete vector for each segment they touch."""
        root, touched = self.root, dict(self.positioned(row_ids))

        def without(ref: SegmentRef) -> SegmentRef:
            return write_deletes(root, self.folder, ref, touched[ref])

        # On a store the vector that a segment has is a request.
        written = (
            root.side_by_side(without, [*touched]) if isinstance(root, Bucket) else map(without, touched)
        )
        changed = dict(zip(touched, written, strict=True))
        return replace(self, segments=tuple(changed.get(s, s) for s in self.segments))

    def tidied(
        self,
        next_number: int,
        index_columns: Sequence[int],
        orders: Sequence[OrderKey] = (),
        *,
        everything: bool = False,
    ) -> tuple[Relation, int]:
        """(relation, next number): segments merged where one size has become too many.

        Size-tiered: MERGE_FANOUT segments of one size become one of the next, of a MERGED_SHAREth of the
        table at most. Segments that are mostly deleted are rewritten, empty ones dropped. `everything`: all
        of them, as far as they go into segments of MERGED_ROWS rows. Row ids stay. Cost: a row is written
        again once for each size, and some 8 times near the largest.
        """
        segments = [s for s in self.segments if s.n_live]
        fanout = min(MERGE_FANOUT, WIDE_FANOUT) if len(self.schema) > WIDE_COLUMNS else MERGE_FANOUT
        largest = max(1, min(MERGED_ROWS, MERGED_CELLS // max(1, len(self.schema))))
        suiting = min(largest, max(MERGED_FEW, self.n_rows // MERGED_SHARE))
        blocked: set[int] = set()
        while True:
            mergeable = [s for s in segments if s.number not in blocked]
            if everything:
                runs = [run for run in _packed(mergeable, largest) if len(run) > 1 or run[0].n_deleted]
            else:
                runs = _runs_to_merge(mergeable, fanout, suiting)
            if not runs:
                return replace(self, segments=tuple(segments)), next_number
            payloads = [
                self.payload(
                    segments=[s.to_dict() for s in run],
                    number=next_number + i,
                    columns=list(index_columns),
                    orders=[list(k) for k in orders],
                )
                for i, run in enumerate(runs)
            ]
            n_cells = len(self.schema) * sum(s.n_rows for run in runs for s in run)
            for run, result in zip(
                runs, self.run(tasks.merge_run, payloads, NS_MERGE * n_cells), strict=True
            ):
                merged = json.loads(result.meta["segment"])
                if merged is None:  # texts share a code: these segments stay apart, the others try again
                    blocked |= set(json.loads(result.meta["apart"]))
                    continue
                at = segments.index(run[0])
                segments = [s for s in segments if s not in run]
                segments.insert(at, SegmentRef.from_dict(merged))
            next_number += len(runs)


def _tier(n_rows: int) -> int:
    return int(np.log2(max(n_rows, SMALLEST_TIER) / SMALLEST_TIER) / np.log2(MERGE_FANOUT))


def _packed(segments: Sequence[SegmentRef], n_rows: int) -> list[list[SegmentRef]]:
    """The segments in runs of so many rows at most, in order; larger ones are alone.

    A run and the next one's first segment are too many, so there is nothing to do twice.
    """
    runs: list[list[SegmentRef]] = []
    for ref in segments:
        if runs and sum(s.n_live for s in runs[-1]) + ref.n_live <= n_rows:
            runs[-1].append(ref)
        else:
            runs.append([ref])
    return runs


def _runs_to_merge(segments: Sequence[SegmentRef], fanout: int, n_rows: int) -> list[list[SegmentRef]]:
    """The next segments to merge into some of so many rows at most, in one job; none where there are none.

    Of a size of which there are too many those go together that are enough, or that have room for no other.
    """
    worn = [[ref] for ref in segments if ref.n_deleted > ref.n_rows // 2]
    if worn:
        return worn
    tiers: dict[int, list[SegmentRef]] = {}
    for ref in segments:
        tiers.setdefault(_tier(ref.n_live), []).append(ref)
    for _, members in sorted(tiers.items()):
        if len(members) >= fanout:
            *full, last = _packed(members, n_rows)
            runs = [run for run in full if len(run) > 1] + ([last] if len(last) >= fanout else [])
            if runs:
                return runs
    return []
