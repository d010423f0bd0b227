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
from holdfast.core.engine.engine import Engine
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
# Rows of the largest segment that a merge makes: what one task reads and writes, and what a machine fetches.
MERGED_ROWS = 1 << 22
# Rows of segments that are so many bytes away are fetched by tasks.
FAR_BYTES = 32 << 20


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
        """The same, looked at by another engine."""
        return replace(self, engine=engine)

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
        """The results of tasks that take so many nanoseconds of one core together; one job."""
        parallel = ns > WORTH_THREADS
        where = self.engine.choose(ns, parallel=parallel)
        results = self.engine.run(task, payloads, where=where, progress=self.progress, parallel=parallel)
        return [unpack(r) for r in results]

    # -- looking ------------------------------------------------------------------------------

    def locate(self, queries: Sequence[SegmentRef], columns: Sequence[int]) -> tuple[I64, I64, I64]:
        """(query, row id) of all live rows that equal a query row on some columns, and each query's leader.

        Queries are numbered through the query segments; the locator's columns are among `columns`. A query
        that equals another may leave it to that one, its leader, to be paired with rows.
        """
        starts = np.cumsum([0, *(q.n_rows for q in queries)])
        leader = np.arange(starts[-1])
        pairs = [(i, q, s) for i, q in enumerate(queries) for s in self.segments if s.n_live and q.n_rows]
        one, other, on = payloads_of(self.segments), payloads_of(queries), list(columns)
        payloads = [
            self.payload(segment=one[s.number], queries=other[q.number], columns=on) for _, q, s in pairs
        ]
        results = self.run(tasks.locate_rows, payloads, NS_LOCATE * sum(q.n_rows for _, q, _ in pairs))
        if not results:
            return np.empty(0, np.int64), np.empty(0, np.int64), leader
        for (i, _, _), r in zip(pairs, results, strict=True):
            leader[starts[i] + r.array("repeat")] = starts[i] + r.array("leader")
        query = [starts[i] + r.array("query") for (i, _, _), r in zip(pairs, results, strict=True)]
        return np.concatenate(query), np.concatenate([r.array("row_id") for r in results]), leader

    def row_ids(self) -> I64:
        """The ids of all live rows: eight bytes a row, on the driver."""
        opened = [open_segment(self.root, ref, self.schema) for ref in self.segments if ref.n_live]
        ids = [segment.row_ids(np.flatnonzero(segment.live)) for segment in opened]
        return np.concatenate([np.empty(0, np.int64), *ids])

    def fetch(self, row_ids: Sequence[int] | I64) -> pa.Table:
        """The values of rows by id, in that order; deleted rows too while their segment lives.

        By one job where segments would have to come from a store to this machine.
        """
        ids = np.asarray(row_ids, dtype=np.int64)
        concerned = self.that_may_have(ids)
        if self._n_far(concerned) <= FAR_BYTES or not self.engine.shuffles:
            return tasks.fetch_rows(self.root, self.schema, concerned, ids)
        wanted = ids.tolist()  # not staged: who reads may have no right to write
        payloads = [self.payload(segment=s.to_dict(), row_ids=wanted) for s in concerned]
        streams = self.engine.run(tasks.fetch_part, payloads, where="spark", progress=self.progress)
        tables = [pa.ipc.open_stream(stream).read_all() for stream in streams]
        parts = [(t.column(0).to_numpy(), t.remove_column(0)) for t in tables]
        return tasks.in_order(parts, self.schema)

    def that_may_have(self, row_ids: I64) -> list[SegmentRef]:
        """The segments that may have some of the rows; those that are not merged do.

        A row is in a merged one only if the segment that it came in is none of the relation's. So most rows
        are found without a look at any file: on a store it may be far away.
        """
        numbers = set(np.unique(row_ids >> ROW_BITS).tolist())
        moved = not numbers <= {s.number for s in self.segments if not s.merged}
        return [s for s in self.segments if (moved if s.merged else s.number in numbers)]

    def _n_far(self, segments: Sequence[SegmentRef]) -> int:
        """Bytes of segments that lie on a store and have no copy on this machine."""
        root = self.root
        return sum(s.file.length for s in segments if isinstance(root, Bucket) and not root.is_near(s.file))

    def positioned(self, row_ids: I64) -> tuple[tuple[SegmentRef, I64], ...]:
        """Rows by id as positions in the segments that have them."""
        parts = []
        for ref in self.that_may_have(row_ids):
            at = open_segment(self.root, ref, self.schema).positions(row_ids)
            if (at >= 0).any():
                parts.append((ref, at[at >= 0].astype(np.int64)))
        return tuple(parts)

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
        touched = dict(self.positioned(row_ids))
        segments = [
            write_deletes(self.root, self.folder, s, touched[s]) if s in touched else s for s in self.segments
        ]
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
        mostly deleted are rewritten, empty ones dropped. `everything`: all of them, as far as they go into
        segments of MERGED_ROWS rows. Row ids stay.
        """
        segments = [s for s in self.segments if s.n_live]
        fanout = min(MERGE_FANOUT, WIDE_FANOUT) if len(self.schema) > WIDE_COLUMNS else MERGE_FANOUT
        blocked: set[int] = set()
        while True:
            mergeable = [s for s in segments if s.number not in blocked]
            runs = _all_runs(mergeable) if everything else _run_to_merge(mergeable, fanout)
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


def _all_runs(segments: Sequence[SegmentRef]) -> list[list[SegmentRef]]:
    """All segments in runs of MERGED_ROWS rows at most; without those that are as good as merged.

    A run and the next one's first segment are too many, so there is nothing to do twice.
    """
    runs: list[list[SegmentRef]] = []
    for ref in segments:
        if runs and sum(s.n_live for s in runs[-1]) + ref.n_live <= MERGED_ROWS:
            runs[-1].append(ref)
        else:
            runs.append([ref])
    return [run for run in runs if len(run) > 1 or run[0].n_deleted]


def _run_to_merge(segments: Sequence[SegmentRef], fanout: int) -> list[list[SegmentRef]]:
    """The next segments to merge, or none."""
    for ref in segments:
        if ref.n_deleted > ref.n_rows // 2:
            return [[ref]]
    # Only what batches have added: the segments of `track` come in a size that suits the table.
    tiers: dict[int, list[SegmentRef]] = {}
    for ref in segments:
        tiers.setdefault(_tier(ref.n_live), []).append(ref)
    for _, members in sorted(tiers.items()):
        if len(members) >= fanout and sum(s.n_live for s in members) <= MERGED_ROWS:
            return [members]
    return []
