"""A batch: which rows go, which rows come.

Deletes name full rows, each removing one occurrence, or values of the declared row key. Updates
are deletes and inserts: by row key with the new values (columns that are left out keep theirs), or
as rows before and rows after. Upserts are updates of row keys that are there and inserts of the others. A
snapshot is the whole table as it is to be: what it lacks goes, what it has in addition comes, duplicates
counted; rows that are in both stay as they are. Whatever cannot be resolved rejects the whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.differing import difference
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
from holdfast.core.rows.matching import Matching
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import filled, rewrite_part
from holdfast.core.sources import ReadOptions, Source
from holdfast.core.sources.respelling import nulls_notes
from holdfast.core.store.arrow_types import python_rows
from holdfast.errors import (
    NOTHING_APPLIED,
    AbsentRowError,
    AmbiguousRowError,
    SchemaError,
    UsageError,
    listing,
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
    upserts: Any = None  # rows by row key: new values, or new rows
    snapshot: Any = None  # the whole table as it is to be
    allow_empty: bool = False  # that a snapshot has no rows

    @property
    def parts(self) -> list[str]:
        """The parts that there are."""
        return [name for name in PARTS if name != ALLOW_EMPTY and getattr(self, name) is not None]

    def __post_init__(self) -> None:
        parts = self.parts
        if not parts:
            raise UsageError("the batch is empty: give inserts, deletes, updates, upserts or a snapshot.")
        if ("before" in parts) != ("after" in parts):
            raise UsageError("an update by rows needs both, the rows before and the rows after.")
        if "snapshot" in parts and len(parts) > 1:
            raise UsageError(
                "a snapshot says what the whole table is to be, so it stands alone: leave out "
                f"{listing(parts[:-1])}."
            )
        if "upserts" in parts and "updates" in parts:
            raise UsageError("upserts are updates, too: give the rows of both as upserts.")


PARTS, ALLOW_EMPTY = Batch.__slots__, "allow_empty"


def batches_of(batches: Mapping[str, Mapping[str, Any]]) -> dict[str, Batch]:
    """What a user hands in for several tables."""
    if not batches:
        raise UsageError("no batch is given: map tables to their inserts, deletes or updates.")
    for table, parts in batches.items():
        for name in parts:
            if name not in PARTS:
                raise UsageError(
                    f"the batch of table {table!r} has an unknown part {shorten(name)}. "
                    f"Parts: {', '.join(PARTS)}."
                )
    return {table: Batch(**parts) for table, parts in batches.items()}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A batch on a relation: ids of rows to delete, segments of rows to insert.

    `n_updated` of them are the same row before and after. `n_unchanged` counts the rows of upserts and of a
    snapshot that are there as they are to be; None where the batch has neither.
    """

    row_ids: I64
    segments: tuple[SegmentRef, ...]
    n_updated: int = 0
    n_unchanged: int | None = None
    notes: tuple[str, ...] = ()  # of the sources


@dataclass(frozen=True)
class Resolver:
    """Resolves the parts of one batch against one version of a table."""

    relation: Relation
    target: Target
    row_key: tuple[str, ...]
    options: ReadOptions
    staging: str
    query_target: Target  # where query rows go: staging
    sources: list[Source] = field(default_factory=list)  # those that were planned

    def resolve(self, batch: Batch, number: int) -> Resolved:
        """The batch on the relation; new segments are numbered from `number` on."""
        resolved = self._resolved(batch, number)
        notes = dict.fromkeys(note for source in self.sources for note in source.notes)
        words = {word for source in self.sources for word in source.words} - {*self.options.typed_nulls}
        return replace(resolved, notes=(*notes, *nulls_notes(words), *resolved.notes))

    def _resolved(self, batch: Batch, number: int) -> Resolved:
        if batch.snapshot is not None:
            return self._replaced(self._plan(batch.snapshot), number, allow_empty=batch.allow_empty)
        schema, locator = self.relation.schema, list(self.relation.locator)
        gone: list[I64] = []
        new_rows: list[pa.Table] = []
        segments: list[SegmentRef] = []
        n_updated, n_unchanged = 0, None
        notes: tuple[str, ...] = ()

        def come(source: Source, what: str) -> int:
            """How many rows come; those of a large source are encoded where they are read."""
            nonlocal number
            check_columns(source, schema, self.target, list(schema.names), what)
            if source.local_table is not None or not self._large(source):
                new_rows.append(read_rows(source, schema, self.target))
                return len(new_rows[-1])
            some = encode_batch(source, schema, self.target, locator, number).segments
            segments.extend(some)
            number = max((s.number + 1 for s in some), default=number)
            return sum(s.n_rows for s in some)

        if batch.deletes is not None:
            gone.append(self._deleted(self._plan(batch.deletes), "deletes", gone))
        if batch.before is not None:
            before, after = self._plan(batch.before), self._plan(batch.after)
            gone.append(self._deleted(before, "rows before the update", gone))
            n_after = come(after, "the rows after the update")
            if n_after != len(gone[-1]):
                raise UsageError(
                    f"the update of table {self.target.table!r} has {len(gone[-1])} rows before and "
                    f"{n_after} after; it needs as many. {NOTHING_APPLIED}"
                )
            n_updated += n_after
        if batch.updates is not None or batch.upserts is not None:
            if batch.updates is not None:
                done = self._updated(self._plan(batch.updates), gone, number)
            else:
                done = self._upserted(self._plan(batch.upserts), gone, number)
                n_unchanged, notes = done.n_unchanged, done.notes
            gone.append(done.row_ids)
            segments.extend(done.segments)
            n_updated += done.n_updated
            number = max((s.number + 1 for s in segments), default=number)
        row_ids = _all(gone)
        if batch.inserts is not None:
            come(self._plan(batch.inserts), "the inserts")
        if any(len(rows) for rows in new_rows):
            rows = pa.concat_tables(new_rows)
            segments.extend(encode_table(rows, schema, self.target, locator, number).segments)
        return Resolved(row_ids, tuple(segments), n_updated, n_unchanged, notes)

    def _plan(self, given: Any) -> Source:
        source = plan(given, self.options, self.target, self.staging)
        self.sources.append(source)
        return source

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
        columns = self._key_columns if by_key else list(range(len(schema)))
        does = what if what == "deletes" else "updates"
        return self._matched(self._queries(source), columns, gone, does, unique=by_key)

    def _queries(self, source: Source) -> Sequence[SegmentRef]:
        """The rows of a source as query segments; of a small one in their order."""
        schema, locator = self.relation.schema, list(self.relation.locator)
        if self._large(source):
            return encode_batch(source, schema, self.query_target, locator, 0).segments
        return self._in_order(filled(read_rows(source, schema, self.target), schema), 0)

    def _updated(self, source: Source, gone: Sequence[I64], number: int) -> Resolved:
        """An update by row key."""
        queries = self._keyed(source, "updates", "Give rows before and after")
        ids = self._matched(queries, self._key_columns, gone, "updates", unique=True)
        segments = self._rewritten(queries, np.arange(len(ids)), ids, source.names, number)
        return Resolved(ids, segments, len(ids))

    def _upserted(self, source: Source, gone: Sequence[I64], number: int) -> Resolved:
        """Rows by row key: those whose key is there with their new values, the others as new rows.

        Rows that say nothing new are left alone.
        """
        schema, table, key = self.relation.schema, self.target.table, self._key_columns
        queries = self._keyed(source, "upserts", "Give inserts and deletes, or a snapshot")
        twice = self._first_twice(queries, key)
        if twice is not None:
            raise AmbiguousRowError(
                f"the upserts of table {table!r} have the row key {self._shown(queries, twice, key)} more "
                f"than once. {NOTHING_APPLIED} Give each row once, as it is to be."
            )
        there = self._match(queries, key, gone, counted=True)
        self._check_unique(queries, key, there)
        new = np.flatnonzero(there.taken < 0)
        missing = [name for name in schema.names if name not in source.names]
        if len(new) and missing:
            raise SchemaError(
                f"the upserts ({source.description}) of table {table!r} (version {self.target.version}) have "
                f"the new row key {self._shown(queries, int(new[0]), key)}, and lack the columns "
                f"{listing(missing)} of it. {NOTHING_APPLIED} Add what is missing, or give the rows that are "
                "there as updates."
            )
        columns = [schema.names.index(name) for name in source.names]
        same = self._match(queries, columns, gone, counted=False).taken >= 0
        come = np.flatnonzero(~same)
        ids = there.taken[come]
        segments = self._rewritten(queries, come, ids, source.names, number)
        ids = ids[ids >= 0]
        absent = [name for name, c in zip(self.row_key, key, strict=True) if any(q.nulls[c] for q in queries)]
        note = (
            f"upserts have NULL in {listing(absent)} of the row key, where it names a row like other values"
        )
        return Resolved(ids, segments, len(ids), int(same.sum()), (note,) if absent else ())

    def _replaced(self, source: Source, number: int, *, allow_empty: bool) -> Resolved:
        """The difference between a snapshot and the table: by whole rows, each as often as it is there.

        One without rows is more often an export that failed than a table without rows. The row key
        says which of the rows that go and come are one row before and after.
        """
        relation, schema = self.relation, self.relation.schema
        check_columns(source, schema, self.target, list(schema.names), "the snapshot")
        queries = self._queries(source)
        if not allow_empty and relation.n_rows and not any(q.n_rows for q in queries):
            raise UsageError(
                f"the snapshot ({source.description}) of table {self.target.table!r} (version "
                f"{self.target.version}) has no rows, so it would delete all {relation.n_rows:,} rows of the "
                f"table. {NOTHING_APPLIED} Next step: check how it was written; --allow-empty "
                "(allow_empty=True) if the table is to be empty."
            )
        come, gone = difference(relation, queries)
        segments = self._rewritten(queries, come, np.full(len(come), -1), schema.names, number)
        n_updated = 0
        if self.row_key and len(come) and len(gone):
            query, row_id, leader = relation.locate(segments, self._key_columns)
            going = np.isin(row_id, gone)
            n_updated = int((Matching.of(query[going], row_id[going], leader).taken >= 0).sum())
        n_unchanged = sum(q.n_rows for q in queries) - len(come)
        return Resolved(gone, segments, n_updated, n_unchanged)

    @property
    def _key_columns(self) -> list[int]:
        return [self.relation.schema.names.index(c) for c in self.row_key]

    def _keyed(self, source: Source, what: str, instead: str) -> Sequence[SegmentRef]:
        """The rows of a source that names rows by their row key."""
        table = self.target.table
        if not self.row_key:
            raise UsageError(
                f"table {table!r} has no row key, so {what} cannot name its rows. {NOTHING_APPLIED} "
                f"{instead}, or track the table with --row-key."
            )
        check_columns(source, self.relation.schema, self.target, list(self.row_key), f"the {what}")
        return self._queries(source)

    def _first_twice(self, queries: Sequence[SegmentRef], columns: Sequence[int]) -> int | None:
        """The first query that another one equals on some columns."""
        query_rows = replace(self.relation, segments=tuple(queries))
        query, _, leader = query_rows.locate(queries, columns)
        matches = np.bincount(query, minlength=len(leader))[leader]
        twice = np.flatnonzero(matches > 1)
        return int(twice[0]) if len(twice) else None

    def _rewritten(
        self, queries: Sequence[SegmentRef], chosen: I64, ids: I64, names: Sequence[str], number: int
    ) -> tuple[SegmentRef, ...]:
        """Some queries as rows of the table, encoded by tasks: columns of these names as the queries say.

        The others are those of the rows of these ids. `chosen` ascends.
        """
        relation, schema = self.relation, self.relation.schema
        if not len(chosen):
            return ()
        bounds = np.cumsum([0, *(q.n_rows for q in queries)])
        starts = np.searchsorted(chosen, bounds).tolist()
        positions = chosen - bounds[np.searchsorted(bounds, chosen, side="right") - 1]
        staged = relation.stage("chosen", positions=positions, row_ids=ids)
        payloads = [
            self.target.payload(
                schema,
                list(relation.locator),
                number + i,
                number + len(queries) + SPARE_NUMBERS * i,
                queries=q.to_dict(),
                chosen=staged,
                span=starts[i : i + 2],
                segments=relation.live,
                present=list(names),
                look=None,
            )
            for i, q in enumerate(queries)
            if starts[i] < starts[i + 1]
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

    def _match(
        self, queries: Sequence[SegmentRef], columns: Sequence[int], gone: Sequence[I64], *, counted: bool
    ) -> Matching:
        """The rows that queries take by some columns, without those that are taken already; if not `counted`,
        their counts are of those that are looked at."""
        n_taken = None if counted else sum(map(len, gone))
        query, row_id, leader = self.relation.locate(queries, columns, n_taken)
        if gone:
            present = ~np.isin(row_id, _all(gone))
            query, row_id = query[present], row_id[present]
        return Matching.of(query, row_id, leader)

    def _matched(
        self,
        queries: Sequence[SegmentRef],
        columns: Sequence[int],
        gone: Sequence[I64],
        what: str,
        *,
        unique: bool,
    ) -> I64:
        """One row id per query, or an error, which says `what` the batch does to them; equal queries take
        different rows."""
        matching = self._match(queries, columns, gone, counted=unique)
        absent = np.flatnonzero(matching.counts == 0)
        if unique and not len(absent):
            self._check_unique(queries, columns, matching)
        absent = absent if len(absent) else np.flatnonzero(matching.taken < 0)
        if len(absent):
            which = "no such row but those that other parts of the batch take" if gone else "no such row"
            if matching.counts[absent[0]]:
                which = "fewer such rows than the batch names"
            raise self._absent(queries, int(absent[0]), columns, len(absent), what, which)
        return matching.taken

    def _check_unique(
        self, queries: Sequence[SegmentRef], columns: Sequence[int], matching: Matching
    ) -> None:
        several = np.flatnonzero(matching.counts > 1)
        if len(several):
            first = int(several[0])
            raise AmbiguousRowError(
                f"the row key {self._shown(queries, first, columns)} names {int(matching.counts[first])} "
                f"rows of table {self.target.table!r} (version {self.target.version}). {NOTHING_APPLIED} "
                "Name the rows in full, or mend the key first."
            )

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
        self, queries: Sequence[SegmentRef], query: int, columns: Sequence[int], n: int, what: str, which: str
    ) -> AbsentRowError:
        names = listing([self.relation.schema.names[c] for c in columns])
        more = f" (and {n - 1:,} more)" if n > 1 else ""
        return AbsentRowError(
            f"the batch {what} ({names}) = {self._shown(queries, query, columns)}{more} of table "
            f"{self.target.table!r} (version {self.target.version}), which has {which}. {NOTHING_APPLIED} "
            "Was this batch applied before?"
        )


def _all(ids: Sequence[I64]) -> I64:
    return np.concatenate(ids) if ids else np.empty(0, np.int64)
