"""Planning a source: which files, which columns, which types, which splits."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import glob
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.ipc

from holdfast.core.sources import columnar, databases, json_lines
from holdfast.core.sources.beginnings import can_split
from holdfast.core.sources.column_names import check_names
from holdfast.core.sources.csv_plan import SAMPLE_ROWS, plan_csv, same_columns
from holdfast.core.sources.csv_walk import Walk, walk_regions
from holdfast.core.sources.packed import ZIP, bare_name, packing_of, unpacked
from holdfast.core.sources.raw_files import looked, opened_raw, size_of
from holdfast.core.sources.read_options import Kind, ReadOptions, Source, Split
from holdfast.core.sources.respelling import json_notes
from holdfast.core.sources.sqlite_columns import SqliteRows
from holdfast.core.sources.streams import BATCH_ROWS, opened_stream
from holdfast.core.sources.type_rule import TEXT, candidates
from holdfast.core.store.files import new_file, unique_name
from holdfast.core.store.objects import Entry
from holdfast.core.store.root import Root, is_stored, object_of
from holdfast.core.words.schema import Type
from holdfast.errors import (
    NOTHING_APPLIED,
    SchemaError,
    SourceError,
    UnknownColumnError,
    UsageError,
    listing,
    shorten,
    shorten_path,
)

# What Hive and Spark call the folder of rows without a value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

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
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def plan_source(
    source: Any,
    *,
    options: ReadOptions,
    table: str,
    root: Root,
    staging: str,
    split_bytes: int,
    walk: Walk = walk_regions,
    batch: bool = False,
) -> Source:
    """The plan of a source: a path (file, folder or glob), or a table of another library.

    Reads headers, footers and samples; the only pass over whole files is the search for record ends in
    CSV files larger than `split_bytes`, by `walk`. A table in memory, or of Delta Lake, that is larger than
    that is written to the folder `staging` of the workspace. A `batch` has the types of its table, whatever
    was declared for that, and its notes are those that were not told when the table was tracked.
    """
    planned = _planned(
        source, options, table, root=root, staging=staging, split_bytes=split_bytes, walk=walk, batch=batch
    )
    if batch:
        planned.notes = tuple(note for note in planned.notes if note not in options.first_notes)
    else:
        planned.options = dataclasses.replace(planned.options, first_notes=planned.notes)
    return planned


def _planned(
    source: Any,
    options: ReadOptions,
    table: str,
    *,
    root: Root,
    staging: str,
    split_bytes: int,
    walk: Walk,
    batch: bool,
) -> Source:
    place = ""
    if isinstance(source, str | os.PathLike):
        try:
            return _plan_files(os.fspath(source), options, table, split_bytes, walk, batch=batch)
        except _DeltaFolder:
            from holdfast.core.store.delta_tables import opened_delta  # here: most sources need no delta-rs

            place = os.fspath(source)
            source = opened_delta(place, table)
    said: tuple[str, ...] = ()
    if isinstance(source, SqliteRows):
        said = () if batch else source.notes(options.types)
        source = source.typed(options.declared, table, batch=batch)
    elif options.types and not batch:
        what = "a Delta table" if place else "a table in memory, or a query,"
        raise UsageError(
            f"types are declared for table {table!r}, but {what} has its own. Next step: cast its "
            "columns, those of a query in the sql, or leave the types out."
        )
    description, schema, batches = opened_stream(source, table)
    if place:
        description = f"Delta table {PurePath(place).name} (version {source.version()})"
    planned = _plan_batches(schema, batches, description, options, table, root, staging, split_bytes)
    planned.notes += said
    return planned


def _plan_batches(
    schema: pa.Schema,
    batches: Iterable[Any],
    description: str,
    options: ReadOptions,
    table: str,
    root: Root,
    staging: str,
    split_bytes: int,
) -> Source:
    """A table in memory: kept as it is if small, written to an Arrow file as it comes if not."""
    names = columnar.column_names(schema, f"the {description}", table=table)
    check_names(names, f"the {description}", table=table)
    types, nested = columnar.flat_types(schema, table=table)
    source = Source(description, [], tuple(types), tuple(types.values()), options, 0)
    stream, first = iter(batches), []
    if nested:
        source.notes += (columnar.nested_note(nested),)
        schema = pa.schema([schema.field(name) for name in types])
        stream = (batch.select(list(types)) for batch in batches)
    for batch in stream:
        first.append(batch)
        source.n_bytes += batch.nbytes
        if source.n_bytes > split_bytes:
            break
    else:
        source.local_table = pa.Table.from_batches(first, schema)
        return source
    name = unique_name(staging, "source", ".arrow")
    sizes = []
    schema = columnar.without_dictionaries(schema)
    with new_file(root, name) as file, pa.ipc.new_file(file, schema) as writer:
        for batch in itertools.chain(first, stream):
            batch = columnar.decoded(batch, schema)
            for low in range(0, batch.num_rows, BATCH_ROWS):
                part = batch.slice(low, BATCH_ROWS)
                writer.write_batch(part)
                sizes.append((part.num_rows, part.nbytes))
    splits = _row_splits("arrow", name, sizes, split_bytes)
    source.splits += [dataclasses.replace(split, staged=file.ref) for split in splits]
    source.n_bytes = sum(split.n_bytes for split in source.splits)
    return source


def _plan_files(
    location: str, options: ReadOptions, table: str, split_bytes: int, walk: Walk, *, batch: bool
) -> Source:
    listing_of = _stored_files if is_stored(location) else _files
    files, description, base = listing_of(location, options, table)
    partitions = _partitions(list(files), base, location, table)
    kinds = {_kind(path, options, table) for path in files}
    if len(kinds) > 1:
        raise SourceError(
            f"{shorten_path(location)} for table {table!r} mixes files of several formats "
            f"({', '.join(sorted(kinds))}). "
            f"{NOTHING_APPLIED} Next step: give one format, or a glob that picks its files."
        )
    kind = kinds.pop()
    plans: dict[Kind, Callable[..., Source]] = {
        "csv": functools.partial(plan_csv, walk=walk, batch=batch),
        "jsonl": functools.partial(_plan_jsonl, batch=batch),
        "parquet": _plan_columnar,
        "arrow": _plan_columnar,
    }
    if options.types and not batch and kind in ("parquet", "arrow"):
        raise UsageError(
            f"types are declared for table {table!r}, but {kind} files have their own. Next step: leave "
            "the types out."
        )
    source = plans[kind](files, description, kind, options, table, split_bytes)
    if partitions:
        _add_partitions(source, partitions, options, location, table)
    unknown = [name for name in options.types if name not in source.names]
    if unknown and not batch:
        raise UnknownColumnError.from_missing(table, None, unknown[0], source.names)
    return source


def _files(location: str, options: ReadOptions, table: str) -> tuple[dict[str, int], str, str]:
    """The data files of a path, sorted, with their bytes; how to call them in messages; the folder."""
    path = Path(os.path.abspath(location))  # a task's working folder is not ours
    if path.is_file():
        return _sizes([path]), path.name, str(path.parent)
    if path.is_dir():
        if (path / "_delta_log").is_dir():
            raise _DeltaFolder
        files = [f for f in sorted(path.rglob("*")) if not f.is_dir() and _visible(f.relative_to(path))]
        if options.format == "auto":
            files = [f for f in files if _ending(str(f)) in ENDINGS]
        for f in files:
            _check_regular(f, table)
        if not files:
            raise _no_data(location, table)
        return _sizes(files), f"folder {path.name} ({len(files)} files)", str(path)
    if glob.has_magic(location):
        matches = sorted(m for m in glob.glob(str(path), recursive=True) if not os.path.isdir(m))
        root = Path(*itertools.takewhile(lambda part: not glob.has_magic(part), path.parts))
        matches = [m for m in matches if _visible(Path(m).relative_to(root))]
        if not matches:
            raise SourceError(
                f"no file matches {shorten_path(location)} for table {table!r}. {NOTHING_APPLIED} Next step: "
                f"check the pattern; the working folder is {shorten(os.getcwd())}."
            )
        for match in matches:
            _check_regular(Path(match), table)
        return _sizes(matches), f"{os.path.basename(location)} ({len(matches)} files)", str(root)
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


def _sizes(paths: Iterable[str | Path]) -> dict[str, int]:
    return {str(path): size_of(str(path)) for path in paths}


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


def _visible(path: PurePath) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)


def _stored_files(location: str, options: ReadOptions, table: str) -> tuple[dict[str, int], str, str]:
    """The same of a URL of an object store."""
    bucket, name = object_of(location)
    base, listed, entries = _stored(location)
    if base is None:
        return {location.rstrip("/"): listed[0].length}, name.rpartition("/")[2], location.rpartition("/")[0]
    if any(entry.name.startswith(f"{base}/_delta_log/".lstrip("/")) for entry in listed):
        raise _DeltaFolder
    magic, last = glob.has_magic(name), name.rpartition("/")[2]
    files = {f"{bucket}/{entry.name}": entry.length for entry in sorted(entries, key=lambda e: e.name)}
    if options.format == "auto" and not magic:
        files = {path: size for path, size in files.items() if _ending(path) in ENDINGS}
    if not files and not listed:
        raise SourceError(
            f"there is no object {shorten_path(location)} for table {table!r}, nor a folder of that name. "
            f"{NOTHING_APPLIED} Next step: check the address."
        )
    if not files:
        raise _no_data(location, table)
    label = last if magic else f"folder {last}"
    return files, f"{label} ({len(files)} files)", f"{bucket}/{base}"


def stored_bytes(location: str) -> int:
    """The bytes of what a URL of an object store names. Cost: a request, and a listing if it is no object."""
    return sum(entry.length for entry in _stored(location)[2])


def _stored(location: str) -> tuple[str | None, list[Entry], list[Entry]]:
    """(folder, its objects, those that are named): a folder is what names begin with; None for one object."""
    bucket, name = object_of(location)
    magic = glob.has_magic(name)
    if not magic and name and (entry := bucket.entry(name)) is not None:
        return None, [entry], [entry]
    parts = name.split("/")
    base = "/".join(itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    listed = bucket.entries(base)
    wanted = re.compile(_pattern("/".join(parts)) if magic else ".*", re.DOTALL)
    inside = [PurePosixPath(entry.name).relative_to(base) for entry in listed]
    pairs = zip(listed, inside, strict=True)
    return base, listed, [e for e, path in pairs if _visible(path) and wanted.fullmatch(e.name)]


def _pattern(name: str) -> str:
    """A pattern of names as a regular expression: `*` and `?` stay in a folder, `**` does not."""
    special = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(special.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*\*|\*|\?)", name))


class _DeltaFolder(Exception):
    """A folder is a Delta table: its files alone may hold deleted rows."""


def _no_data(location: str, table: str) -> SourceError:
    return SourceError(
        f"the folder {shorten_path(location)} for table {table!r} has no data files. {NOTHING_APPLIED} Next "
        f"step: check the folder; files end in {', '.join(sorted(ENDINGS))}, or give the --format."
    )


def _partitions(files: Sequence[str], base: str, location: str, table: str) -> list[dict[str, str | None]]:
    """The columns that stand in the folders of each file (`year=2026`); none if none has any."""
    values = []
    for path in files:
        named = [part.partition("=") for part in path[len(base) :].split("/")[:-1] if "=" in part]
        values.append({unquote(n): None if v == NO_VALUE else unquote(v) for n, _, v in named})
    for path, partition in zip(files, values, strict=True):
        if list(partition) != list(values[0]):
            raise SchemaError(
                f"the folders of {shorten_path(location)} for table {table!r} do not name the same columns: "
                f"{shorten_path(files[0])} names {listing(list(values[0])) or 'none'}, {shorten_path(path)} "
                f"{listing(list(partition)) or 'none'}. {NOTHING_APPLIED} Next step: give a folder in which "
                "all files stand at the same depth."
            )
    return values if values and values[0] else []


def _add_partitions(
    source: Source,
    partitions: Sequence[dict[str, str | None]],
    options: ReadOptions,
    location: str,
    table: str,
) -> None:
    """Give a planned source the columns of its folders: their values are known, so are their types."""
    both = [name for name in partitions[0] if name in source.names]
    if both:
        raise SchemaError(
            f"{shorten_path(location)} for table {table!r} has the column {shorten(both[0])} in its files "
            f"and in the names of its folders. {NOTHING_APPLIED} Next step: give files without it, or a "
            "folder further inside."
        )
    by_path = dict(zip(dict.fromkeys(split.path for split in source.splits), partitions, strict=True))
    source.splits = [dataclasses.replace(s, partition=by_path[s.path]) for s in source.splits]
    for name in partitions[0]:
        texts = pa.chunked_array([pa.array([p[name] for p in partitions], pa.large_string())])
        declared = options.declared.get(name)
        source.names += (name,)
        source.types += (next(iter(candidates(texts, None))) if declared is None else declared,)


def _ending(path: str) -> str:
    packing = packing_of(path)
    ending = os.path.splitext(bare_name(path).lower())[1]
    return ending if not packing or ENDINGS.get(ending) in ("csv", "jsonl") else packing


def _kind(path: str, options: ReadOptions, table: str) -> Kind:
    if options.format != "auto":
        return options.format
    kind = ENDINGS.get(_ending(path))
    if kind is None and databases.kind_of(path) is not None:
        raise SourceError(
            f"{shorten(os.path.basename(path))} for table {table!r} is a database. {NOTHING_APPLIED} Next "
            "step: say what to read of it: --sql 'SELECT * FROM ...'."
        )
    if kind is None:
        if packing_of(path) == ZIP:  # what is wrong may be the archive
            with opened_raw(path) as raw, unpacked(raw, ZIP, os.path.basename(path), table):
                pass
        raise SourceError(
            f"the format of {shorten(os.path.basename(path))} for table {table!r} cannot be told from its "
            f"ending. {NOTHING_APPLIED} Next step: give the format: --format csv, parquet, json, jsonl or "
            "arrow."
        )
    return kind


def _plan_jsonl(
    files: Mapping[str, int],
    description: str,
    kind: Kind,
    options: ReadOptions,
    table: str,
    split_bytes: int,
    *,
    batch: bool,
) -> Source:
    splits: list[Split] = []
    names: dict[str, Type] = {}
    texts: dict[str, list[str]] = {}
    left_out: dict[str, str] = {}

    def splits_of(path: str) -> list[Split]:
        array = json_lines.is_array(path, files[path], options, table=table)
        cut = can_split(path, options) and not array
        ends = json_lines.cuts(path, files[path], split_bytes) if cut else [0, files[path]]
        pairs = itertools.pairwise(ends)
        return [Split("jsonl", path, low, high, high - low, low == 0, array=array) for low, high in pairs]

    for file_splits in looked(splits_of, files):
        if len(splits) == 0 or len(files) <= 10:
            types, nested, seen = json_lines.sample(
                file_splits[0], options, SAMPLE_ROWS, table=table, batch=batch
            )
            left_out |= dict.fromkeys(nested, columnar.NESTED)
            for name, some in seen.items():
                texts.setdefault(name, []).extend(some)
            for name, t in types.items():
                names[name] = t if names.get(name, TEXT) == TEXT else names[name]
        splits += file_splits
    names = {name: t for name, t in names.items() if name not in left_out}
    options = dataclasses.replace(options, left_out=tuple(left_out))
    notes: tuple[str, ...] = (columnar.nested_note(left_out),) if left_out else ()
    if not batch:
        notes += json_notes(
            {n: texts[n] for n, t in names.items() if t == TEXT and texts.get(n)}, options.types
        )
    check_names(list(names), os.path.basename(next(iter(files))), table=table)
    n_bytes = sum(split.n_bytes for split in splits)
    return Source(description, splits, tuple(names), tuple(names.values()), options, n_bytes, notes=notes)


def _plan_columnar(
    files: Mapping[str, int],
    description: str,
    kind: Kind,
    options: ReadOptions,
    table: str,
    split_bytes: int,
) -> Source:
    splits: list[Split] = []
    names: tuple[str, ...] = ()
    fields: dict[str, pa.DataType] = {}
    read, first = columnar.parquet_schema if kind == "parquet" else columnar.arrow_schema, next(iter(files))
    schemas = looked(lambda path: read(path, files[path], table=table), files)
    for path, (schema, groups) in zip(files, schemas, strict=True):
        columns = columnar.column_names(schema, os.path.basename(path), table=table)
        check_names(columns, os.path.basename(path), table=table)
        names = names or tuple(columns)
        same_columns(columns, names, path, first, table)
        for name in names:  # a file without values for a column says nothing about its type
            if name not in fields or pa.types.is_null(fields[name]):
                fields[name] = schema.field(name).type
        splits += _row_splits(kind, path, groups, split_bytes)
    types, nested = columnar.flat_types(pa.schema([(n, fields[n]) for n in names]), table=table)
    options = dataclasses.replace(options, left_out=tuple(nested))
    n_bytes = sum(split.n_bytes for split in splits)
    notes = (columnar.nested_note(nested),) if nested else ()
    return Source(description, splits, tuple(types), tuple(types.values()), options, n_bytes, notes=notes)


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
