"""Rows of the ledger: what a commit and a change are, and how they become Parquet and come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arro3.core import Array, DataType, Field, RecordBatchReader, Schema, Table

# One commit is read by decoding one row group of a compacted file.
ROWS_PER_GROUP = 256

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_TEXT = DataType.utf8()
SCHEMA = Schema(
    [
        Field("version", DataType.int64(), nullable=False),
        Field("entry", _TEXT, nullable=False),
        Field("table", _TEXT, nullable=False),
        Field("at", DataType.timestamp("us", tz="UTC"), nullable=False),
        Field("action", _TEXT),
        Field("batch_id", _TEXT),
        Field("state", _TEXT),
        Field("heads", _TEXT),
        Field("detail", _TEXT),
        Field("kind", _TEXT),
        Field("change", _TEXT),
        Field("dependency", _TEXT),
        Field("reason", _TEXT),
        Field("witnesses", _TEXT),
    ]
)
ARROW_SCHEMA: Any = pa.RecordBatchReader.from_stream(Table.from_batches([], schema=SCHEMA)).schema
COMMIT_COLUMNS = ("at", "action", "batch_id", "detail")
CHANGE_COLUMNS = ("at", "change", "dependency", "reason", "witnesses")


@dataclass(frozen=True, slots=True)
class CommitRow:
    """One version of the workspace: what was done to which table, and the state it left.

    `append` sets `version`, and `at` and `heads` where they are None. `heads` maps each table to
    the version of its newest commit; the action "drop" takes its table out. `commits` and
    `find_batch` leave `state` and `heads` unread (None).
    """

    table: str
    action: str  # "track", "apply", "merge", "pin", "drop" ...
    state: dict[str, Any] | None = None
    detail: dict[str, Any] | None = None
    batch_id: str | None = None
    version: int = 0
    at: datetime | None = None
    heads: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A dependency that appeared or broke; `append` sets `version` and `at`."""

    table: str
    kind: str  # "ucc" ...
    change: str  # "appeared" | "broke"
    dependency: dict[str, Any]
    reason: str | None = None
    witnesses: list[Any] | None = None  # groups of {"row": id, "values": {...}}
    version: int = 0
    at: datetime | None = None


def encode_commit(commit: CommitRow, changes: Sequence[ChangeRow]) -> Any:
    """The Parquet file of one commit, as an Arrow buffer; the commit row comes first.

    Arrays are built by arro3: `pa.array` of Python objects would import pandas (0.3 s).
    """
    at = (commit.at or datetime.now(UTC)) - EPOCH
    n_rows = 1 + len(changes)
    no_change, no_commit = [None], [None] * len(changes)

    def of_changes(read: Callable[[ChangeRow], str | None]) -> list[str | None]:
        return [*no_change, *(read(change) for change in changes)]

    columns: dict[str, list[Any]] = {
        "version": [commit.version] * n_rows,
        "entry": ["commit", *["change"] * len(changes)],
        "table": [commit.table, *(change.table for change in changes)],
        "at": [at // timedelta(microseconds=1)] * n_rows,
        "action": [commit.action, *no_commit],
        "batch_id": [commit.batch_id, *no_commit],
        "state": [json_text(commit.state), *no_commit],
        "heads": [json_text(commit.heads), *no_commit],
        "detail": [json_text(commit.detail), *no_commit],
        "kind": of_changes(lambda change: change.kind),
        "change": of_changes(lambda change: change.change),
        "dependency": of_changes(lambda change: json_text(change.dependency)),
        "reason": of_changes(lambda change: change.reason),
        "witnesses": of_changes(lambda change: json_text(change.witnesses)),
    }
    arrays = []
    for i, name in enumerate(SCHEMA.names):
        kind = SCHEMA.field(i).type
        if name == "at":
            arrays.append(Array(columns[name], DataType.int64()).cast(kind))
        else:
            arrays.append(Array(columns[name], kind))
    block = pa.RecordBatchReader.from_stream(Table.from_arrays(arrays, schema=SCHEMA)).read_all()
    return to_parquet(block)


def to_parquet(block: Any) -> Any:
    sink = pa.BufferOutputStream()
    pq.write_table(block, sink, compression="zstd", row_group_size=ROWS_PER_GROUP, write_page_checksum=True)
    return sink.getvalue()


def json_text(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def add_columns(block: Any) -> dict[str, list[Any]]:
    """An arro3 block as lists; arro3's own scalars are ten times slower to convert."""
    table = pa.RecordBatchReader.from_stream(RecordBatchReader.from_arrow(block)).read_all()
    wanted = ("path", "size_bytes", "min.version", "max.version")
    return {name: table.column(name).to_pylist() for name in wanted if name in table.column_names}


def row_groups(parquet: Any, first: int, last: int) -> list[int]:
    """The row groups that may hold a range of versions."""
    metadata = parquet.metadata
    if metadata.num_row_groups <= 1:
        return list(range(metadata.num_row_groups))
    position = parquet.schema_arrow.get_field_index("version")
    chosen = []
    for i in range(metadata.num_row_groups):
        bounds = metadata.row_group(i).column(position).statistics
        known = bounds is not None and bounds.has_min_max
        if not known or (bounds.min <= last and bounds.max >= first):
            chosen.append(i)
    return chosen
