"""Rows of the ledger: what a commit and a change are, and how they become Parquet and come back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arro3.core import Array, DataType, Field, RecordBatchReader, Schema, Table

from holdfast.core.words.change import WitnessRow

# One commit is read by decoding one row group of a compacted file.
ROWS_PER_GROUP = 256

# The table name of a commit row with the state that all tables of a workspace share.
SHARED = ""
# That of the state of the lake. No shell passes such a name, and `track` refuses it.
LAKE = "\x1flake"
NO_TABLES = frozenset((SHARED, LAKE))

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
STATE_COLUMNS = (*COMMIT_COLUMNS, "state", "heads")
# Columns of few different texts.
CODED_COLUMNS = ("entry", "table", "action", "kind", "change")
CHANGE_COLUMNS = ("at", "change", "dependency", "reason", "witnesses", "detail")


@dataclass(frozen=True, slots=True)
class CommitRow:
    """What one version did to one table, and the state it left; a version has one row or several.

    `table` may be `SHARED`. `append` sets `version`, and `at` where it is None, both the same for
    all rows of a version, as is `batch_id`. It sets `heads` on the first row: of each table (and of
    `SHARED`) the version of its newest commit; the action "drop" takes its own table out. `commits`
    and `find_batch` leave `state` and `heads` unread (None).
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
    role: str | None = None  # what it meant then (`core/words/ranks.py`); None where nobody had said so
    version: int = 0
    at: datetime | None = None


def turned_dict(
    commit: CommitRow | None, changes: Sequence[ChangeRow] | None = None
) -> dict[str, Any] | None:
    """The commit that turned something, with what it changed if that is kept."""
    if commit is None:
        return None
    fields = {
        "version": commit.version,
        "action": commit.action,
        "batch_id": commit.batch_id,
        "at": commit.at.isoformat() if commit.at else None,
    }
    return fields if changes is None else {**fields, "changes": [change_dict(c) for c in changes]}


def change_dict(change: ChangeRow) -> dict[str, Any]:
    reason = change.reason
    if reason is not None:  # in older versions of a workspace it ends as a line above rows does
        reason = reason.removesuffix(":").removesuffix(", such as")
    role = {} if change.role is None else {"role": change.role}
    return {
        "change": change.change,
        "dependency": change.dependency,
        **role,
        "reason": reason,
        "witnesses": [
            [WitnessRow.from_dict(row).to_dict() for row in group] for group in change.witnesses or []
        ],
    }


def versioned(
    commits: Sequence[CommitRow], version: int, at: datetime, before: dict[str, int]
) -> list[CommitRow]:
    """The commit rows of a new version, given the heads before it.

    ValueError if there is none, if two are of one table, or if they differ in what rows of a version share.
    """
    names = [commit.table for commit in commits]
    if not names or len(set(names)) != len(names):
        raise ValueError(f"a version has one commit row or several, each of another table; these are {names}")
    batch_ids = {commit.batch_id for commit in commits} - {None}
    times = {commit.at for commit in commits} - {None}
    if len(batch_ids) > 1 or len(times) > 1:
        raise ValueError(
            f"the commit rows of a version have one batch id and one time; these have {batch_ids}, {times}"
        )
    dropped = {commit.table for commit in commits if commit.action == "drop"}
    heads = {**before, **dict.fromkeys(names, version)}
    heads = {name: head for name, head in heads.items() if name not in dropped}
    batch_id = next(iter(batch_ids), None)
    at = next((time for time in times if time is not None), at)
    first, *others = (replace(c, version=version, at=at, batch_id=batch_id, heads=None) for c in commits)
    return [replace(first, heads=heads), *others]


def commit_cells(commit: CommitRow) -> dict[str, Any]:
    """A commit row as it is stored: JSON as text."""
    return {
        "version": commit.version,
        "table": commit.table,
        "at": commit.at,
        "action": commit.action,
        "batch_id": commit.batch_id,
        "state": json_text(commit.state),
        "heads": json_text(commit.heads),
        "detail": json_text(commit.detail),
    }


def encode_commit(commits: Sequence[dict[str, Any]], changes: Sequence[ChangeRow]) -> Any:
    """The Parquet file of one version, as an Arrow buffer."""
    return to_parquet(commit_block(commits, changes))


def commit_block(commits: Sequence[dict[str, Any]], changes: Sequence[ChangeRow]) -> pa.Table:
    """The rows of one version; the cells of the commit rows come first.

    Arrays are built by arro3: `pa.array` of Python objects would import pandas (0.3 s).
    """
    n_rows = len(commits) + len(changes)
    no_change, no_commit = [None] * len(commits), [None] * len(changes)

    def of_commits(name: str) -> list[Any]:
        return [*(cells[name] for cells in commits), *no_commit]

    roles = {role: role and json_text({"role": role}) for role in {change.role for change in changes}}

    def of_changes(read: Callable[[ChangeRow], str | None]) -> list[str | None]:
        return [*no_change, *(read(change) for change in changes)]

    columns: dict[str, list[Any]] = {
        "version": [commits[0]["version"]] * n_rows,
        "entry": ["commit"] * len(commits) + ["change"] * len(changes),
        "table": [*(cells["table"] for cells in commits), *(change.table for change in changes)],
        "at": [(commits[0]["at"] - EPOCH) // timedelta(microseconds=1)] * n_rows,
        "action": of_commits("action"),
        "batch_id": of_commits("batch_id"),
        "state": of_commits("state"),
        "heads": of_commits("heads"),
        "detail": [*(cells["detail"] for cells in commits), *(roles[change.role] for change in changes)],
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
    return pa.RecordBatchReader.from_stream(Table.from_arrays(arrays, schema=SCHEMA)).read_all()


def to_parquet(block: Any) -> Any:
    sink = pa.BufferOutputStream()
    pq.write_table(block, sink, compression="zstd", row_group_size=ROWS_PER_GROUP, write_page_checksum=True)
    return sink.getvalue()


# Made once: a batch of a table with many keys writes thousands of texts.
_AS_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def json_text(value: Any) -> str | None:
    if value is None:
        return None
    return _AS_JSON(value)


def add_columns(block: Any) -> dict[str, list[Any]]:
    """An arro3 block as lists; arro3's own scalars are ten times slower to convert."""
    table = pa.RecordBatchReader.from_stream(RecordBatchReader.from_arrow(block)).read_all()
    wanted = ("path", "size_bytes", "min.version", "max.version")
    return {name: table.column(name).to_pylist() for name in wanted if name in table.column_names}


def lost_version(block: Any, first: int, last: int, *, deep: bool = False) -> int | None:
    """The first version of a range whose commit rows are not as they were appended; None if all are.

    A version has one row with heads, and no two rows of one table. `deep` also asks whether each
    table that has its head there has its row there, at the price of parsing the heads of all versions.
    """
    rows_of: dict[int, list[tuple[str, str | None]]] = {version: [] for version in range(first, last + 1)}
    names = ("version", "entry", "table", "heads")
    for version, entry, table, heads in zip(*(block.column(n).to_pylist() for n in names), strict=True):
        if entry == "commit":
            rows_of.setdefault(version, []).append((table, heads))
    for version, rows in sorted(rows_of.items()):
        tables = {table for table, _ in rows}
        listed = [heads for _, heads in rows if heads is not None]
        if not first <= version <= last or len(listed) != 1 or len(tables) != len(rows):
            return version
        if deep and not tables.issuperset(_heads_at(listed[0], version)):
            return version
    return None


def _heads_at(heads: str, version: int) -> set[str | None]:
    """The tables whose newest commit is that of a version; None among them if `heads` is damaged."""
    try:
        return {table for table, head in json.loads(heads).items() if head == version}
    except (ValueError, AttributeError):
        return {None}


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


def rows_in(
    parquet: Any,
    entry: str,
    columns: Iterable[str],
    first: int,
    last: int,
    table: str | None,
    kind: str | None,
) -> tuple[list[dict[str, Any]], frozenset[str]]:
    """(rows of one kind of entry in a range of versions, the tables that such rows of these groups are of).

    The narrow columns choose the rows; the wide ones are read if there are some, and only their cells become
    Python objects.
    """
    narrow, wide = ("version", "entry", "table", "kind"), list(columns)
    groups = row_groups(parquet, first, last)

    def block(names: Sequence[str]) -> Any:
        return parquet.read_row_groups(groups, columns=list(names), use_threads=False).combine_chunks()

    names = block(narrow)
    keys = [*zip(*(names.column(name).to_pylist() for name in narrow), strict=True)]
    chosen = [
        i
        for i, (v, e, t, k) in enumerate(keys)
        if e == entry and first <= v <= last and table in (None, t) and kind in (None, k)
    ]
    rows = [dict(zip(narrow, keys[i], strict=True)) for i in chosen]
    cells = block(wide) if rows and wide else names
    for name in wide if rows else ():
        column = cells.column(name)
        for row, i in zip(rows, chosen, strict=True):
            # Times as integers: making datetimes of a zone makes pyarrow import pandas or zoneinfo, and a
            # cast of the column pyarrow.compute (0.1 s).
            row[name] = column[i].value if name == "at" else column[i].as_py()
    for row in rows:
        row["at"] = EPOCH + timedelta(microseconds=row["at"])
    return rows, frozenset(t for _, e, t, _ in keys if e == entry)
