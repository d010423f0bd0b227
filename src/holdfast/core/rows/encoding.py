"""From a source to segments: the first step of the pipeline, all or nothing.

A small source is read and encoded inline as one segment; a large one by a job with one task per
split, each of which writes segments of its own. Segments count only when a commit names them.

Types of text files are guessed from a sample and verified on every value while encoding. A task
in which a guess fails says which types would survive, and the job is run again with those; that
is rare, and the result does not depend on the guess.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.engine.cost import available_cores
from holdfast.core.engine.engine import Engine, Where
from holdfast.core.engine.job_progress import Progress
from holdfast.core.engine.worker import task_name
from holdfast.core.rows import tasks
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.sources import (
    ReadOptions,
    Source,
    best_type,
    plan_source,
    read_local,
    read_split,
    standard_input,
    stored_bytes,
)
from holdfast.core.sources.column_names import check_names
from holdfast.core.sources.columnar import column_names, flat_types, nested_note
from holdfast.core.sources.csv_delimiter import other_cut
from holdfast.core.sources.csv_walk import Region, walk_task
from holdfast.core.sources.databases import queried
from holdfast.core.sources.respelling import unlike_notes
from holdfast.core.store.arrow_types import arrow_schema
from holdfast.core.store.bundle import Bundle, unpack
from holdfast.core.store.files import check_file
from holdfast.core.store.root import Root, is_stored, source_path
from holdfast.core.words.schema import Column, Nulls, Schema, Type
from holdfast.errors import (
    NOTHING_APPLIED,
    SchemaError,
    SourceError,
    UnknownColumnError,
    UsageError,
    WorkspaceError,
    listing,
    one_of_type,
    shorten,
    shorten_path,
)

I64 = NDArray[np.int64]

# A function of a segment and the payload that looks at each new segment while it is hot: arrays by name.
Look = Callable[[Segment, dict[str, Any]], dict[str, NDArray[Any]]]

# What it takes on one core to read and encode a byte, in ns.
NS_BYTE = 40
# The same to find the record ends of CSV text; of so many bytes they are found here, whatever the engine.
NS_WALK, WALK_BYTES = 2, 64 << 20
# Sources up to this size are one segment, read by one task; splits of larger ones are between the other two.
# In this process they are small: those that are read at once are in memory.
WHOLE_BYTES = 16 << 20
MIN_SPLIT_BYTES = 8 << 20
MAX_SPLIT_BYTES = 384 << 20
INLINE_SPLIT_BYTES = 64 << 20
# A task over a DataFrame writes a segment whenever it has read so much; rows of a partition of less than
# the smaller number are answered, and encoded together on the driver.
FRAME_BYTES = 128 << 20
SMALL_BYTES = 64 << 10
ALL = 1 << 62
# Further segment numbers of one task: it writes more than one only for colliding or very many rows.
SPARE_NUMBERS = 32


@dataclass(frozen=True, slots=True)
class Seen:
    """What a task's looks saw of its segments, which were numbered anew behind it: all `raised` by so much.

    So a row id in the arrays is one of the table once its segment's number is raised, too.
    """

    arrays: dict[str, NDArray[Any]]
    raised: int


@dataclass(frozen=True, slots=True)
class Encoded:
    """Segments, their schema, and what was seen of them on the way, task by task."""

    schema: Schema
    options: ReadOptions
    segments: tuple[SegmentRef, ...]
    seen: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Where segments go, and for which table."""

    root: Root
    folder: str
    table: str
    version: int | None
    nulls: Nulls
    engine: Engine
    progress: Progress | None = None
    compress: bool = False
    indexed: Sequence[int] = ()  # columns that new segments have an index on from the beginning
    orders: Sequence[OrderKey] = ()

    def payload(
        self, schema: Schema, locator: list[int], number: int, spare: int, **fields: Any
    ) -> dict[str, Any]:
        """What every encoding task needs: its segment's number, and spare ones should it need more."""
        return {
            "root": str(self.root),
            "folder": self.folder,
            "table": self.table,
            "version": self.version,
            "nulls": self.nulls,
            "compress": self.compress,
            "columns": list(self.indexed),
            "orders": [list(key) for key in self.orders],
            "schema": json.dumps(schema.to_dict()),
            "locator": locator,
            "number": number,
            "spare": spare,
            "n_spare": SPARE_NUMBERS,
            **fields,
        }


def plan(source: Any, options: ReadOptions, target: Target, staging: str) -> Source:
    """Plan any source. Of a Spark DataFrame nothing is computed yet."""
    if options.sql is not None:
        return _plan_query(source, options, target, staging)
    if isinstance(source, str) and source == standard_input.NAME:
        return _plan_input(options, target, staging)
    if isinstance(source, str | os.PathLike):
        source = source_path(source, f"source of table {target.table!r}")
    try:
        if isinstance(source, str) and standard_input.is_pipe(source):
            return _plan_input(options, target, staging, source)
        if not _is_spark(source):
            if isinstance(source, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
                # Arrow looks at names even to count bytes.
                column_names(source.schema, f"the pyarrow {type(source).__name__}", table=target.table)
            split_bytes = _split_bytes(_size(source), target.engine)
            return plan_source(
                source,
                options=options,
                table=target.table,
                root=target.root,
                staging=staging,
                split_bytes=split_bytes,
                walk=functools.partial(_walk, target),
                batch=target.version is not None,
            )
        return _framed(source, target)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else shorten(str(error), 100)[1:-1]
        if not isinstance(source, str | Path):  # a table in memory goes to staging if it is large
            raise WorkspaceError(
                f"cannot write to the workspace {str(target.root)!r}: {reason}. {NOTHING_APPLIED} "
                "Check the disk's space and your rights, then run it again."
            ) from error
        raise SourceError(
            f"cannot read {shorten_path(str(source))} for table {target.table!r}: {reason}. "
            f"{NOTHING_APPLIED} Next step: check the path and your rights."
        ) from None


def _plan_query(place: Any, options: ReadOptions, target: Target, staging: str) -> Source:
    """The plan of a query of a database: its rows are read now, as those of a table in memory."""
    if not isinstance(place, str | os.PathLike):
        raise UsageError(
            f"sql is given for table {target.table!r}, but its source is {one_of_type(place)}. "
            f"{NOTHING_APPLIED} Next step: give the file or the address of a database, or the rows of the "
            "query without sql: connection.sql('SELECT ...') of DuckDB, cursor.fetch_record_batch() of ADBC."
        )
    batch = target.version is not None
    with queried(place, options.sql or "", target.table, batch=batch) as query:
        source = plan(query.rows, replace(options, sql=None), target, staging)
        source.description = query.description
        source.notes += query.notes
        return source


def _plan_input(options: ReadOptions, target: Target, staging: str, pipe: str | None = None) -> Source:
    """The plan of standard input, or of a pipe: that of a file of the workspace, which tasks find by its
    reference."""
    ref, kind = standard_input.spooled(target.root, staging, target.table, pipe)
    reading = options if options.format != "auto" else replace(options, format=kind)
    source = plan(str(check_file(target.root, ref, deep=False)), reading, target, staging)
    source.description = "standard input" if pipe is None else f"pipe {os.path.basename(pipe)}"
    source.options = replace(source.options, format=options.format)
    source.splits = [replace(split, staged=ref) for split in source.splits]
    return source


def _walk(target: Target, regions: list[Region]) -> list[I64]:
    """Where the records of regions end: by one job if they are many bytes."""
    n_bytes = sum(region.end - region.start for region in regions)
    where: Where = "inline"
    if n_bytes > WALK_BYTES:
        where = target.engine.choose(NS_WALK * n_bytes, parallel=True)
    payloads = [region.to_dict() for region in regions]
    walked = target.engine.run(walk_task, payloads, where=where, progress=target.progress, parallel=True)
    return [np.frombuffer(modes, np.int64).reshape(-1, 2) for modes in walked]


def _framed(frame: Any, target: Target) -> Source:
    """The plan of a Spark DataFrame: its columns and types are what Spark says."""
    schema, what = target.engine.schema_of(frame), "Spark DataFrame"
    names = column_names(schema, f"the {what}", table=target.table)
    check_names(names, f"the {what}", table=target.table)
    types, nested = flat_types(schema, table=target.table)
    source = Source(what, [], tuple(types), tuple(types.values()), ReadOptions(), 0, frame=frame)
    if nested:
        source.frame, source.notes = frame.drop(*nested), (nested_note(nested),)
    return source


def _split_bytes(size: int, engine: Engine) -> int:
    """How large the splits of a source of some bytes are to be."""
    if reads_inline(size, engine):
        share = -(-size // available_cores())
        return WHOLE_BYTES if size <= WHOLE_BYTES else max(MIN_SPLIT_BYTES, min(INLINE_SPLIT_BYTES, share))
    smallest = MIN_SPLIT_BYTES if engine.mode == "auto" else 1 << 16
    return max(smallest, min(MAX_SPLIT_BYTES, -(-size // (2 * engine.cores))))


def reads_inline(size: int, engine: Engine) -> bool:
    """Whether a source of some bytes is read in this process."""
    return engine.choose(NS_BYTE * size, parallel=size > WHOLE_BYTES) == "inline"


def _is_spark(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.sql")


def _size(source: Any) -> int:
    """Bytes of a source, as far as they can be told without reading it."""
    nbytes = getattr(source, "nbytes", None)
    if isinstance(nbytes, int):
        return nbytes
    if hasattr(source, "memory_usage"):
        return int(source.memory_usage(index=False).sum())
    if isinstance(source, str) and is_stored(source):
        return stored_bytes(source)
    if isinstance(source, str | Path):
        path = Path(source)
        if path.is_file():
            return path.stat().st_size
        files = (
            path.rglob("*")
            if path.is_dir()
            else Path(path.anchor or ".").glob(str(path.relative_to(path.anchor)))
        )
        return sum(f.stat().st_size for f in files if f.is_file())
    return 0


def encode_new(
    source: Source, target: Target, row_key: list[str], numbers: int, *, locate: bool, look: Look | None
) -> Encoded:
    """Encode the rows of a table that is being tracked, settling its types.

    `locate`: rows will have to be found by content. `look`: looks at each segment.
    """
    types = list(source.types)
    # Lists of all rounds: a type that failed once is never tried again, so the rounds end.
    survivors: dict[str, list[list[str]]] = {}
    while True:
        schema = Schema(tuple(Column(n, t) for n, t in zip(source.names, types, strict=True)))
        locator = [schema.names.index(c) for c in row_key] or list(range(len(schema)))
        locator = locator if locate else []
        results = _encode(source, schema, target, locator, numbers, guessed=source.guessed, look=look)
        failed = [json.loads(result.meta["failed"]) for result in results]
        if not any(failed):
            pairs = zip(source.types, types, strict=True)
            source.notes += unlike_notes(dict(zip(source.names, pairs, strict=True)))
            return encoded(schema, source.options.settled(schema, _words(results)), results)
        for name, survived in (item for lists in failed for item in lists.items()):
            survivors.setdefault(name, []).append(survived)
        for name, lists in survivors.items():
            types[source.names.index(name)] = Type.parse(best_type(lists))


def encode_batch(source: Source, schema: Schema, target: Target, locator: list[int], number: int) -> Encoded:
    """Encode rows that must fit an existing table; columns that the source lacks are NULL."""
    results = _encode(source, schema, target, locator, number, guessed=False, look=None)
    source.words |= _words(results)
    return encoded(schema, source.options, results)


def encode_table(rows: pa.Table, schema: Schema, target: Target, locator: list[int], number: int) -> Encoded:
    """Encode typed rows that are in memory, inline."""
    payload = target.payload(schema, locator, number, number + 1, look=None)
    return encoded(schema, ReadOptions(), [unpack(tasks.write_rows(rows, schema, payload))])


def _encode(
    source: Source,
    schema: Schema,
    target: Target,
    locator: list[int],
    number: int,
    *,
    guessed: bool,
    look: Look | None,
) -> list[Bundle]:
    name = None if look is None else task_name(look)
    if source.local_table is not None:
        rows = read_rows(source, schema, target)
        payload = target.payload(schema, locator, number, number + 1, look=name)
        return [unpack(tasks.write_rows(tasks.filled(rows, schema), schema, payload))]
    if source.frame is not None:
        return _encode_frame(source, schema, target, locator, number, name)
    inline = reads_inline(source.n_bytes, target.engine)
    groups = [source.splits] if inline and source.n_bytes <= WHOLE_BYTES else [[s] for s in source.splits]
    payloads = [
        target.payload(
            schema,
            locator,
            number + i,
            number + len(groups) + SPARE_NUMBERS * i,
            splits=[s.to_dict() for s in group],
            options=source.options.to_dict(),
            present=list(source.names),
            guessed=guessed,
            look=name,
        )
        for i, group in enumerate(groups)
    ]
    where: Where = "inline" if inline else "spark"
    results = target.engine.run(
        tasks.encode_part, payloads, where=where, progress=target.progress, parallel=True
    )
    return [unpack(r) for r in results]


def _encode_frame(
    source: Source, schema: Schema, target: Target, locator: list[int], number: int, look: str | None
) -> list[Bundle]:
    """Encode the rows of a Spark DataFrame where they come to be; those of small partitions here, together.

    A task does not know how many segments those before it write, so it numbers its own from 0 on, and they
    are raised here (`Seen`).
    """
    present = list(source.names)
    payload = target.payload(
        schema, locator, 0, 1, look=look, present=present, most=FRAME_BYTES, small=SMALL_BYTES
    )
    results = [unpack(r) for r in target.engine.run_over(source.frame, tasks.encode_frame, payload)]
    read = schema.restricted(present)
    small = [tasks.answered_rows(r, read) for r in results if "rows" in r.meta]
    bundles = [r for r in results if "rows" not in r.meta]
    if small:
        rows = tasks.filled(pa.concat_tables(small), schema)
        bundles.append(unpack(tasks.write_rows(rows, schema, payload)))
    for bundle in bundles:
        refs = json.loads(bundle.meta["segments"])
        raised = [{**ref, "number": number + ref["number"]} for ref in refs]
        bundle.meta |= {"segments": json.dumps(raised), "raised": str(number)}
        number += len(refs)
    return bundles


def _words(results: list[Bundle]) -> set[str]:
    """The words that tasks have read as NULL."""
    return {word for r in results for word in json.loads(r.meta.get("words", "[]"))}


def encoded(schema: Schema, options: ReadOptions, results: list[Bundle]) -> Encoded:
    segments = [SegmentRef.from_dict(s) for r in results for s in json.loads(r.meta["segments"])]
    seen = [Seen({n: r.array(n) for n in r.names}, int(r.meta.get("raised", 0))) for r in results if r.names]
    return Encoded(schema, options, tuple(segments), tuple(seen))


def read_rows(source: Source, schema: Schema, target: Target) -> pa.Table:
    """The rows of a batch's source on the driver, with the columns it has, typed as the table's."""
    present = schema.restricted(source.names)
    names, types = present.names, present.types
    if source.local_table is not None:
        return read_local(source, names, types, table=target.table, version=target.version)
    if source.frame is not None:
        payload = target.payload(present, [], 0, 1, look=None, present=list(names), most=ALL, small=ALL)
        answers = target.engine.run_over(source.frame, tasks.encode_frame, payload)
        rows = [tasks.answered_rows(unpack(answer), present) for answer in answers]
        return pa.concat_tables([arrow_schema(present).empty_table(), *rows])
    parts = [
        read_split(
            split.located(target.root),
            names,
            types,
            options=source.options,
            table=target.table,
            version=target.version,
            words=source.words,
        )
        for split in source.splits
    ]
    return pa.concat_tables(parts)


def check_columns(source: Source, schema: Schema, target: Target, required: list[str], what: str) -> None:
    """The source has all required columns and none that the table lacks."""
    for name in source.names:
        if schema.position(name) is None:
            unknown = UnknownColumnError.from_missing(target.table, target.version, name, schema.names)
            hint = other_cut(source.names, schema.names)
            raise UnknownColumnError(f"{what} ({source.description}): {unknown} {NOTHING_APPLIED}{hint}")
    there = set(source.names)
    missing = [c for c in required if c not in there]
    if missing:
        verb = "lacks" if what == "the snapshot" else "lack"
        said = f" {'; '.join(source.notes)}." if source.notes else ""
        raise SchemaError(
            f"{what} ({source.description}) of table {target.table!r} (version {target.version}) {verb} "
            f"the column{'s' if len(missing) > 1 else ''} {listing(missing)}.{said} Expected: "
            f"{listing(required)}. {NOTHING_APPLIED} Add what is missing, or track the table anew."
        )
