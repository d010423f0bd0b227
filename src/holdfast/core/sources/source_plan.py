"""Planning a source: which files, which columns, which types, which splits."""

from __future__ import annotations

import dataclasses
import difflib
import glob
import itertools
import os
import stat
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from holdfast.core.sources import columnar, csv_files, frames, json_lines
from holdfast.core.sources.read_options import Kind, ReadOptions, Source, Split
from holdfast.core.sources.type_rule import TEXT, candidates, spelling_of
from holdfast.core.words.schema import Type
from holdfast.errors import (
    NOTHING_APPLIED,
    SchemaError,
    SourceError,
    UnknownColumnError,
    UsageError,
    shorten,
    shorten_path,
)

SAMPLE_ROWS = 2_000
# A column that is NULL all through the sample is looked at again at the start of this many other splits.
MORE_SAMPLES = 15
STAGED_ROWS = 65_536

ENDINGS: dict[str, Kind] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def plan_source(source: Any, *, options: ReadOptions, table: str, staging: Path, split_bytes: int) -> Source:
    """The plan of a source: a path (file, folder or glob), a pandas DataFrame or a pyarrow table or reader.

    Reads headers, footers and samples; the only pass over whole files is the search for record ends in
    CSV files larger than `split_bytes`. A table in memory larger than that is written to `staging`.
    """
    if isinstance(source, str | os.PathLike):
        return _plan_files(os.fspath(source), options, table, split_bytes)
    if options.types:
        raise UsageError(
            f"types are declared for table {table!r}, but a table in memory has its own. Next step: cast its "
            "columns, or leave the types out."
        )
    classes = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)
    kind = next((f"pyarrow {c.__name__}" for c in classes if isinstance(source, c)), "")
    if type(source).__module__.split(".")[0] == "pandas" and hasattr(source, "columns"):
        kind, source = "pandas DataFrame", frames.arrow_table(source, table)
    if not kind:
        raise UsageError(
            f"table {table!r} cannot be read from a {type(source).__name__}. Next step: give a path, a "
            "pandas or Spark DataFrame, or a pyarrow Table."
        )
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    batches = source.to_batches(STAGED_ROWS) if isinstance(source, pa.Table) else source
    return _plan_batches(source.schema, batches, kind, options, table, staging, split_bytes)


def plan_arrow_files(files: Sequence[str], description: str, *, table: str, split_bytes: int) -> Source:
    """The plan of Arrow IPC files that are known one by one: a folder may hold others that do not count."""
    options = ReadOptions(format="arrow")
    return _plan_columnar(list(files), description, "arrow", options, table, split_bytes)


def _plan_batches(
    schema: pa.Schema,
    batches: Iterable[Any],
    description: str,
    options: ReadOptions,
    table: str,
    staging: Path,
    split_bytes: int,
) -> Source:
    """A table in memory: kept as it is if small, written to an Arrow file as it comes if not."""
    csv_files.check_names(schema.names, f"the {description}", table=table)
    types = columnar.declared_types(schema, table=table)
    source = Source(description, [], tuple(schema.names), types, False, options, 0)
    stream, first = iter(batches), []
    for batch in stream:
        first.append(batch)
        source.n_bytes += batch.nbytes
        if source.n_bytes > split_bytes:
            break
    else:
        source.local_table = pa.Table.from_batches(first, schema)
        return source
    staging.mkdir(parents=True, exist_ok=True)
    path = staging / f"source-{uuid.uuid4().hex}.arrow"
    sizes = []
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in itertools.chain(first, stream):
            for low in range(0, batch.num_rows, STAGED_ROWS):
                part = batch.slice(low, STAGED_ROWS)
                writer.write_batch(part)
                sizes.append((part.num_rows, part.nbytes))
    source.splits += _row_splits("arrow", str(path), sizes, split_bytes)
    source.n_bytes = sum(split.n_bytes for split in source.splits)
    return source


def _plan_files(location: str, options: ReadOptions, table: str, split_bytes: int) -> Source:
    files, description = _files(location, options, table)
    files = [os.path.abspath(path) for path in files]  # a task's working folder is not ours
    kinds = {_kind(path, options, table) for path in files}
    if len(kinds) > 1:
        raise SourceError(
            f"{shorten_path(location)} for table {table!r} mixes files of several formats "
            f"({', '.join(sorted(kinds))}). "
            f"{NOTHING_APPLIED} Next step: give one format, or a glob that picks its files."
        )
    kind = kinds.pop()
    plan = {"csv": _plan_csv, "jsonl": _plan_jsonl, "parquet": _plan_columnar, "arrow": _plan_columnar}[kind]
    if options.types and kind in ("parquet", "arrow"):
        raise UsageError(
            f"types are declared for table {table!r}, but {kind} files have their own. Next step: leave "
            "the types out."
        )
    source = plan(files, description, kind, options, table, split_bytes)
    unknown = [name for name in options.types if name not in source.names]
    if unknown:
        raise UnknownColumnError.from_missing(table, None, unknown[0], source.names)
    return source


def _files(location: str, options: ReadOptions, table: str) -> tuple[list[str], str]:
    """The data files of a path, sorted, and how to call the source in messages."""
    path = Path(location)
    if path.is_file():
        return [location], path.name
    if path.is_dir():
        if (path / "_delta_log").is_dir():
            raise SourceError(
                f"{shorten_path(location)} for table {table!r} is a Delta table; its files alone may hold "
                "deleted rows. "
                f"{NOTHING_APPLIED} Next step: read it with deltalake or Spark and give the table."
            )
        files = [f for f in sorted(path.rglob("*")) if not f.is_dir() and _visible(f.relative_to(path))]
        if options.format == "auto":
            files = [f for f in files if _ending(str(f)) in ENDINGS]
        for f in files:
            _refuse_partitions(f.relative_to(path), location, table)
            _check_regular(f, table)
        if not files:
            raise SourceError(
                f"the folder {shorten_path(location)} for table {table!r} has no data files. "
                f"{NOTHING_APPLIED} Next step: check the folder; files end in "
                f"{', '.join(sorted(ENDINGS))}, or give the format."
            )
        return [str(f) for f in files], f"folder {path.name} ({len(files)} files)"
    if glob.has_magic(location):
        matches = sorted(m for m in glob.glob(location, recursive=True) if not os.path.isdir(m))
        root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
        matches = [m for m in matches if _visible(Path(m).relative_to(root))]
        if not matches:
            raise SourceError(
                f"no file matches {shorten_path(location)} for table {table!r}. {NOTHING_APPLIED} Next step: "
                f"check the pattern; the working folder is {shorten(os.getcwd())}."
            )
        for match in matches:
            _check_regular(Path(match), table)
        return matches, f"{os.path.basename(location)} ({len(matches)} files)"
    if path.exists() or path.is_symlink():
        _check_regular(path, table)
    folder = path.parent
    names = [f.name for f in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(path.name, names, n=3)
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    if not hint:
        hint = f" Next step: check the path; the working folder is {shorten(os.getcwd())}."
    what = "there is no file" if folder.is_dir() else "there is no folder for the file"
    raise SourceError(f"{what} {shorten_path(location)} for table {table!r}. {NOTHING_APPLIED}{hint}")


def _check_regular(path: Path, table: str) -> None:
    """Raise if a path is no file that can be read twice; looks at it without opening it."""
    if path.is_file():
        return
    if not path.exists():
        kind, reason = "a symbolic link that leads nowhere", ""
        cure = "mend the link, or remove it"
    else:
        mode = path.stat().st_mode
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        reason, cure = ", and a source is read more than once", "write it to a file, and give that file"
    raise SourceError(
        f"{shorten_path(str(path))} for table {table!r} is {kind}{reason}. {NOTHING_APPLIED} "
        f"Next step: {cure}."
    )


def _visible(path: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)


def _refuse_partitions(path: Path, location: str, table: str) -> None:
    named = [part for part in path.parts[:-1] if "=" in part]
    if named:
        raise SchemaError(
            f"{shorten_path(location)} for table {table!r} is partitioned: the column "
            f"{named[0].split('=')[0]!r} stands in folder names ({shorten(named[0])}) and would be lost. "
            f"{NOTHING_APPLIED} Next step: read the folder with Spark and give the DataFrame."
        )


def _ending(path: str) -> str:
    lower = os.path.basename(path).lower()
    ending = os.path.splitext(lower.removesuffix(".gz"))[1]
    return ending if not lower.endswith(".gz") or ENDINGS.get(ending) in ("csv", "jsonl") else ".gz"


def _kind(path: str, options: ReadOptions, table: str) -> Kind:
    if options.format != "auto":
        return options.format
    kind = ENDINGS.get(_ending(path))
    if kind is None:
        raise SourceError(
            f"the format of {shorten(os.path.basename(path))} for table {table!r} cannot be told from its "
            f"ending. {NOTHING_APPLIED} Next step: give the format: csv, parquet, jsonl or arrow."
        )
    return kind


def _same_columns(columns: Sequence[str], names: tuple[str, ...], path: str, first: str, table: str) -> None:
    if different := columnar.difference(columns, names):
        raise SchemaError(
            f"the files for table {table!r} differ: {shorten(os.path.basename(path))} {different}, compared "
            f"with {shorten(os.path.basename(first))}. {NOTHING_APPLIED} Next step: give all files the "
            "same columns."
        )


def _plan_csv(
    files: list[str], description: str, kind: Kind, options: ReadOptions, table: str, split_bytes: int
) -> Source:
    names: tuple[str, ...] = ()
    splits: list[Split] = []
    samples: list[pa.Table] = []
    n_rows = max(SAMPLE_ROWS // min(len(files), 10), 1)
    for path in files:
        ends = csv_files.cuts(path, options, split_bytes, table=table)
        file_splits = [
            Split("csv", path, low, high, high - low, low == 0) for low, high in itertools.pairwise(ends)
        ]
        columns = csv_files.columns_of(file_splits[0], options, table=table)
        names = names or columns
        _same_columns(columns, names, path, files[0], table)
        if len(samples) < 10:
            rows = csv_files.first_rows(file_splits[0], options, n_rows, table=table)
            samples.append(rows.select(list(names)))
        splits += file_splits
    sample = pa.concat_tables(samples)
    undecided = [n for n in names if sample[n].null_count == len(sample)]
    later = [s for s in splits if s.path != files[0] or not s.first]
    if undecided and later:
        for split in later[:: max(len(later) // MORE_SAMPLES, 1)][:MORE_SAMPLES]:
            rows = csv_files.first_rows(split, options, n_rows, table=table)
            samples.append(rows.select(list(names)))
        sample = pa.concat_tables(samples)
    declared, spellings, types = options.declared, {}, []
    for name in names:
        spelling = spelling_of(sample[name])
        if spelling is not None:
            spellings[name] = spelling
        if name in declared:
            types.append(declared[name])
        elif sample[name].null_count == len(sample):
            types.append(TEXT)
        else:
            types.append(next(candidates(sample[name], spelling)))
    options = dataclasses.replace(options, spellings=spellings)
    n_bytes = sum(split.n_bytes for split in splits)
    return Source(description, splits, names, tuple(types), True, options, n_bytes)


def _plan_jsonl(
    files: list[str], description: str, kind: Kind, options: ReadOptions, table: str, split_bytes: int
) -> Source:
    splits: list[Split] = []
    names: dict[str, Type] = {}
    for path in files:
        whole = [0, os.path.getsize(path)]
        ends = json_lines.cuts(path, split_bytes) if csv_files.can_split(path, options) else whole
        file_splits = [
            Split("jsonl", path, low, high, high - low, low == 0) for low, high in itertools.pairwise(ends)
        ]
        if len(splits) == 0 or len(files) <= 10:
            columns = json_lines.sample(file_splits[0], options, SAMPLE_ROWS, table=table)
            for name, t in zip(*columns, strict=True):
                names[name] = t if names.get(name, TEXT) == TEXT else names[name]
        splits += file_splits
    csv_files.check_names(list(names), os.path.basename(files[0]), table=table)
    n_bytes = sum(split.n_bytes for split in splits)
    return Source(description, splits, tuple(names), tuple(names.values()), False, options, n_bytes)


def _plan_columnar(
    files: list[str], description: str, kind: Kind, options: ReadOptions, table: str, split_bytes: int
) -> Source:
    splits: list[Split] = []
    names: tuple[str, ...] = ()
    fields: dict[str, pa.DataType] = {}
    for path in files:
        if kind == "parquet":
            schema, groups = columnar.parquet_schema(path, table=table)
        else:
            schema, groups = columnar.arrow_schema(path, table=table)
        columns = columnar.column_names(schema, os.path.basename(path), table=table)
        csv_files.check_names(columns, os.path.basename(path), table=table)
        names = names or tuple(columns)
        _same_columns(columns, names, path, files[0], table)
        for name in names:  # a file without values for a column says nothing about its type
            if name not in fields or pa.types.is_null(fields[name]):
                fields[name] = schema.field(name).type
        splits += _row_splits(kind, path, groups, split_bytes)
    types = columnar.declared_types(pa.schema([(n, fields[n]) for n in names]), table=table)
    n_bytes = sum(split.n_bytes for split in splits)
    return Source(description, splits, names, types, False, options, n_bytes)


def _row_splits(kind: Kind, path: str, groups: list[tuple[int, int]], split_bytes: int) -> list[Split]:
    """The splits of a file by its (rows, bytes) groups: whole groups of at least `split_bytes` together."""
    splits: list[Split] = []
    low, high, pending, batch = 0, 0, 0, 0
    for number, (rows, size) in enumerate(groups, 1):
        high, pending = high + rows, pending + size
        if pending >= split_bytes:
            splits.append(Split(kind, path, low, high, pending, not splits, batch))
            low, pending, batch = high, 0, number
    if low < high or not splits:
        splits.append(Split(kind, path, low, high, pending, not splits, batch))
    return splits
