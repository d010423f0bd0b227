"""A batch: which rows go, which rows come.

Deletes name full rows, each removing one occurrence, or values of the declared row key. Updates
are deletes and inserts: by row key with the new values (columns that are left out keep theirs), or
as rows before and rows after. Whatever cannot be resolved rejects the whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.encoding import (
    SPARE_NUMBERS,
    WHOLE_BYTES,
    Target,
    check_columns,
    encode_batch,
    encode_table,
    encoded,
    plan,
    read_rows,
    reads_inline,
)
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import filled, rewrite_part
from holdfast.core.sources import ReadOptions, Source
from holdfast.core.store.arrow_types import python_rows
from holdfast.errors import (
    NOTHING_APPLIED,
    AbsentRowError,
    AmbiguousRowError,
    UsageError,
    shorten,
    shorten_row,
)

I64 = NDArray[np.int64]

# What it takes on one core to fetch a cell of an old row and encode it anew, in ns.
NS_CELL = 300


@dataclass(frozen=True, slots=True)
class Batch:
    """What a user hands in: any source for each part, None for none."""

    inserts: Any = None
    deletes: Any = None
    updates: Any = None  # rows by row key with new values
    before: Any = None  # rows before an update ...
    after: Any = None  # ... and after it, as many

    def __post_init__(self) -> None:
        if (self.before is None) != (self.after is None):
            raise UsageError("an update by rows needs both, the rows before and the rows after.")
        if all(part is None for part in (self.inserts, self.deletes, self.updates, self.before)):
            raise UsageError("the batch is empty: give inserts, deletes or updates.")


def batches_of(batches: Mapping[str, Mapping[str, Any]]) -> dict[str, Batch]:
    """What a user hands in for several tables."""
    if not batches:
        raise UsageError("no batch is given: map tables to their inserts, deletes or updates.")
    part_names = ("inserts", "deletes", "updates", "before", "after")
    for table, parts in batches.items():
        for name in parts:
            if name not in part_names:
                raise UsageError(
                    f"the batch of table {table!r} has an unknown part {shorten(name)}. "
                    f"Parts: {', '.join(part_names)}."
                )
    return {table: Batch(*(parts.get(name) for name in part_names)) for table, parts in batches.items()}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A batch on a relation: ids of rows to delete, segments of rows to insert."""

    row_ids: I64
    segments: tuple[SegmentRef, ...]

    @property
    def n_inserted(self) -> int:
        return sum(s.n_rows for s in self.segments)


@dataclass(frozen=True)
class Resolver:
    """Resolves the parts of one batch against one version of a table."""

    relation: Relation
    target: Target
    row_key: tuple[str, ...]
    options: ReadOptions
    staging: str
    query_target: Target  # where query rows go: staging

    def resolve(self, batch: Batch, number: int) -> Resolved:
        schema, locator = self.relation.schema, list(self.relation.locator)
        gone: list[I64] = []
        new_rows: list[pa.Table] = []
        if batch.deletes is not None:
            gone.append(self._deleted(self._plan(batch.deletes), "deletes", gone))
        if batch.before is not None:
            before, after = self._plan(batch.before), self._plan(batch.after)
            gone.append(self._deleted(before, "rows before the update", gone))
            check_columns(after, schema, self.target, list(schema.names), "the rows after the update")
            rows = read_rows(after, schema, self.target)
            if len(rows) != len(gone[-1]):
                raise UsageError(
                    f"the update of table {self.target.table!r} has {len(gone[-1])} rows before and "
                    f"{len(rows)} after; it needs as many. {NOTHING_APPLIED}"
                )
            new_rows.append(rows)
        segments: list[SegmentRef] = []
        if batch.updates is not None:
            ids, rewritten = self._updated(self._plan(batch.updates), gone, number)
            gone.append(ids)
            segments.extend(rewritten)
            number = max((s.number + 1 for s in segments), default=number)
        row_ids = _all(gone)
        if batch.inserts is not None:
            source = self._plan(batch.inserts)
            check_columns(source, schema, self.target, list(schema.names), "the inserts")
            if source.local_table is None and self._large(source):
                segments.extend(encode_batch(source, schema, self.target, locator, number).segments)
                number = max((s.number + 1 for s in segments), default=number)
            else:
                new_rows.append(read_rows(source, schema, self.target))
        if any(len(rows) for rows in new_rows):
            rows = pa.concat_tables(new_rows)
            segments.extend(encode_table(rows, schema, self.target, locator, number).segments)
        return Resolved(row_ids, tuple(segments))

    def _plan(self, source: Any) -> Source:
        return plan(source, self.options, self.target, self.staging)

    def _large(self, source: Source) -> bool:
        """Whether a source is encoded without a look at its rows here."""
        if source.frame is not None:
            return True
        return source.n_bytes > WHOLE_BYTES or not reads_inline(source.n_bytes, self.target.engine)

    def _deleted(self, source: Source, what: str, gone: Sequence[I64]) -> I64:
        """The ids of the rows that a source names: full rows, or values of the row key.

        Rows that another part of the batch has taken (`gone`) are not there any more.
        """
        schema = self.relation.schema
        # A row key of all columns: the rows are named in full, so each removes one occurrence.
        by_key = set(source.names) == set(self.row_key) != set(schema.names)
        if not by_key:
            check_columns(source, schema, self.target, list(schema.names), f"the {what}")
        columns = [schema.names.index(c) for c in self.row_key] if by_key else list(range(len(schema)))
        return self._matched(self._queries(source), columns, gone, unique=by_key)

    def _queries(self, source: Source) -> Sequence[SegmentRef]:
        """The rows of a source as query segments; of a small one in their order."""
        schema, locator = self.relation.schema, list(self.relation.locator)
        if self._large(source):
            return encode_batch(source, schema, self.query_target, locator, 0).segments
        return self._in_order(filled(read_rows(source, schema, self.target), schema), 0)

    def _updated(
        self, source: Source, gone: Sequence[I64], number: int
    ) -> tuple[I64, tuple[SegmentRef, ...]]:
        """(ids, segments of the new rows) of an update by row key."""
        schema, table = self.relation.schema, self.target.table
        if not self.row_key:
            raise UsageError(
                f"table {table!r} has no row key, so an update cannot name its rows. {NOTHING_APPLIED} "
                "Give rows before and after, or track the table with --row-key."
            )
        check_columns(source, schema, self.target, list(self.row_key), "the updates")
        queries = self._queries(source)
        ids = self._matched(queries, [schema.names.index(c) for c in self.row_key], gone, unique=True)
        return ids, self._rewritten(queries, ids, source.names, number)

    def _rewritten(
        self, queries: Sequence[SegmentRef], ids: I64, names: Sequence[str], number: int
    ) -> tuple[SegmentRef, ...]:
        """The rows of these ids, encoded anew by tasks: columns of these names as the queries say."""
        relation, schema = self.relation, self.relation.schema
        staged = relation.stage("row_ids", row_ids=ids)
        starts = np.cumsum([0, *(q.n_rows for q in queries)]).tolist()
        payloads = [
            self.target.payload(
                schema,
                list(relation.locator),
                number + i,
                number + len(queries) + SPARE_NUMBERS * i,
                queries=q.to_dict(),
                row_ids=staged,
                span=starts[i : i + 2],
                segments=relation.live,
                present=list(names),
                look=None,
            )
            for i, q in enumerate(queries)
        ]
        results = relation.run(rewrite_part, payloads, NS_CELL * len(schema) * len(ids))
        return encoded(schema, self.options, results).segments

    def _in_order(self, rows: pa.Table, number: int) -> list[SegmentRef]:
        """The rows as query segments, in their order."""
        if not len(rows):
            return []
        locator = list(self.relation.locator)
        segments = encode_table(rows, self.relation.schema, self.query_target, locator, number).segments
        if len(segments) == 1:
            return list(segments)
        # Texts collide, so rows changed places: cut until each part is one segment.
        half = len(rows) // 2
        first = self._in_order(rows.slice(0, half), number)
        return [*first, *self._in_order(rows.slice(half), first[-1].number + 1)]

    def _matched(
        self, queries: Sequence[SegmentRef], columns: Sequence[int], gone: Sequence[I64], *, unique: bool
    ) -> I64:
        """One row id per query; equal queries take different rows.

        Equal queries match the same rows and different ones none in common, so a query's smallest
        match names its group, and the k-th query of a group takes the k-th match.
        """
        n_queries = sum(q.n_rows for q in queries)
        query, row_id = self.relation.locate(queries, columns)
        if gone:
            present = ~np.isin(row_id, _all(gone))
            query, row_id = query[present], row_id[present]
        order = np.lexsort((row_id, query))
        query, row_id = query[order], row_id[order]
        starts = np.searchsorted(query, np.arange(n_queries))
        counts = np.searchsorted(query, np.arange(n_queries), side="right") - starts
        missing = np.flatnonzero(counts == 0)
        if len(missing):
            raise self._absent(queries, int(missing[0]), columns, len(missing))
        if unique and (counts > 1).any():
            first = int(np.flatnonzero(counts > 1)[0])
            raise AmbiguousRowError(
                f"the row key {self._shown(queries, first, columns)} names {int(counts[first])} rows of "
                f"table {self.target.table!r} (version {self.target.version}). {NOTHING_APPLIED} "
                "Name the rows in full, or mend the key first."
            )
        group = row_id[starts]
        by_group = np.lexsort((np.arange(n_queries), group))
        ordered = group[by_group]
        rank = np.empty(n_queries, dtype=np.int64)
        rank[by_group] = np.arange(n_queries) - np.searchsorted(ordered, ordered)
        short = np.flatnonzero(rank >= counts)
        if len(short):
            raise self._absent(queries, int(short[0]), columns, len(short))
        taken: I64 = row_id[starts + rank]
        return taken

    def _shown(self, queries: Sequence[SegmentRef], query: int, columns: Sequence[int]) -> str:
        # The queries are segments like any other.
        query_rows = replace(self.relation, segments=tuple(queries))
        starts = np.cumsum([0, *(q.n_rows for q in queries)])
        at = int(np.searchsorted(starts, query, side="right")) - 1
        row_id = (queries[at].number << 32) + query - int(starts[at])
        [values] = python_rows(query_rows.fetch([row_id]))
        names = [self.relation.schema.names[c] for c in columns]
        return shorten_row(values[n] for n in names)

    def _absent(
        self, queries: Sequence[SegmentRef], query: int, columns: Sequence[int], n: int
    ) -> AbsentRowError:
        more = f" (and {n - 1} more)" if n > 1 else ""
        return AbsentRowError(
            f"the batch deletes or updates {self._shown(queries, query, columns)}{more} of table "
            f"{self.target.table!r}, which has no such row (left) at version {self.target.version}. "
            f"{NOTHING_APPLIED} Was this batch applied before?"
        )


def _all(ids: Sequence[I64]) -> I64:
    return np.concatenate(ids) if ids else np.empty(0, np.int64)
