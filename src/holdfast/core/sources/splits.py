"""Reading one split: the same function in a Spark task and inline on the driver."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from holdfast.core.sources import columnar, csv_files, json_lines
from holdfast.core.sources.read_options import ReadOptions, Source, Split
from holdfast.core.sources.respelling import point_remedy, read_column, remedy, respelt, survivors
from holdfast.core.sources.type_rule import decode, first_unfit, suggestion
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.words.schema import Type
from holdfast.errors import NOTHING_APPLIED, ColumnTypeError, shorten


def read_split(
    split: Split,
    names: Sequence[str],
    types: Sequence[Type],
    *,
    options: ReadOptions,
    table: str,
    version: int | None = None,
    words: set[str] | None = None,
) -> pa.Table:
    """The rows of a split: exactly `names`, in order, of `arrow_type(types)`.

    Every value is held to its column's type without loss; the first that does not fit is a
    ColumnTypeError, and columns too many or too few are a SchemaError. `version` is that of the table a
    batch goes to, for messages. `words` gets those that were NULL in columns that are no texts.
    """
    if split.partition:
        bare, inner = _without_partition(split, names, types)
        rows = read_split(bare, *inner, options=options, table=table, version=version, words=words)
        return _with_partition(rows, split, names, types, table, version)
    if split.kind == "csv":
        text = csv_files.open_text(split, options, table=table)
        texts = csv_files.read_texts(text, names, options, table=table, version=version)
        schema = pa.schema([(n, arrow_type(t)) for n, t in zip(names, types, strict=True)])
        columns = []
        for name, t in zip(names, types, strict=True):
            form = options.forms.get(name)
            values, seen = read_column(texts.column(name), t, None, form, options.typed_nulls)
            if words is not None:
                words.update(seen)
            if values is None:
                raise _unfit(texts.column(name), name, t, split, options, table, version)
            columns.append(values)
        return pa.table(columns, schema=schema)
    if split.kind == "jsonl":
        return json_lines.read_objects(split, names, types, options, table=table, version=version)[0]
    if split.kind == "parquet":
        rows = columnar.read_parquet(split, names, options.left_out, table=table)
    else:
        rows = columnar.read_arrow(split, table=table)
        rows = rows.drop_columns([n for n in options.left_out if n in rows.column_names])
    return columnar.fit_table(
        rows,
        names,
        types,
        table=table,
        where=csv_files.file_name(split),
        version=version,
        first_row=split.start,
    )


def read_split_guessed(
    split: Split,
    names: Sequence[str],
    types: Sequence[Type],
    options: ReadOptions,
    table: str,
    words: set[str] | None = None,
) -> tuple[pa.Table, dict[str, list[str]]]:
    """Like `read_split` for a table that is being tracked, with types that are guesses.

    A column whose guess fails here comes back as text, and the dict lists all types (in the rule's
    order, "text" last) that its values of this split survive. The caller reads all splits again with the
    `best_type` of the lists of all rounds until no guess fails. Types that the user declared are no guesses.
    `words` gets those that were NULL in columns that are no texts.
    """
    if split.partition:
        bare, inner = _without_partition(split, names, types)
        rows, failed = read_split_guessed(bare, *inner, options, table, words)
        return _with_partition(rows, split, names, types, table, None), failed
    if split.kind == "jsonl":
        return json_lines.read_objects(split, names, types, options, table=table, guessed=True)
    if split.kind != "csv":
        return read_split(split, names, types, options=options, table=table), {}
    text = csv_files.open_text(split, options, table=table)
    rows = csv_files.read_texts(text, names, options, table=table)
    columns, failed = [], {}
    for name, t in zip(names, types, strict=True):
        texts = rows.column(name)
        declared = name in options.types
        spelling, form = options.spellings.get(name), options.forms.get(name)
        allowed = None if declared else spelling or "point"
        values, seen = read_column(texts, t, allowed, form, options.typed_nulls)
        if words is not None:
            words.update(seen)
        if values is None and declared:
            raise _unfit(texts, name, t, split, options, table, None)
        if values is None:
            failed[name] = [str(c) for c in survivors(texts, spelling, form, options.typed_nulls)]
        columns.append(texts if values is None else values)
    return pa.table(columns, names=list(names)), failed


def read_local(
    source: Source, names: Sequence[str], types: Sequence[Type], *, table: str, version: int | None = None
) -> pa.Table:
    """`read_split` for a source that is a small table in memory."""
    assert source.local_table is not None
    return columnar.fit_table(
        source.local_table, names, types, table=table, where=f"the {source.description}", version=version
    )


def _without_partition(
    split: Split, names: Sequence[str], types: Sequence[Type]
) -> tuple[Split, tuple[list[str], list[Type]]]:
    """The split of the file alone, and the (names, types) of the columns that it is to have."""
    inner = [(n, t) for n, t in zip(names, types, strict=True) if n not in split.partition]
    return replace(split, partition={}), ([n for n, _ in inner], [t for _, t in inner])


def _with_partition(
    rows: pa.Table,
    split: Split,
    names: Sequence[str],
    types: Sequence[Type],
    table: str,
    version: int | None,
) -> pa.Table:
    """The rows of a file with the columns of its folders."""
    columns = []
    for name, t in zip(names, types, strict=True):
        if name not in split.partition:
            columns.append(rows.column(name))
            continue
        text = split.partition[name]
        values = decode(pa.chunked_array([pa.repeat(pa.scalar(text, pa.large_string()), rows.num_rows)]), t)
        if values is None:
            raise ColumnTypeError(
                f"column {shorten(name)} of {columnar.table_label(table, version)} is {t}; the folders of "
                f"{csv_files.file_name(split)} say {shorten(text)}. {NOTHING_APPLIED} Next step: track the "
                f"table with --types {shorten(name)[1:-1]}=text, or rename the folder."
            )
        columns.append(values)
    return pa.table(columns, names=list(names))


def _unfit(
    texts: Any, name: str, t: Type, split: Split, options: ReadOptions, table: str, version: int | None
) -> ColumnTypeError:
    form, words = options.forms.get(name), options.typed_nulls
    at = first_unfit(texts, lambda part: read_column(part, t, None, form, words)[0] is not None)
    value = texts[at].as_py()
    cure, plain = remedy(value, t, form), respelt(texts.slice(at, 1), form)[0].as_py()
    what = "the batch" if version is not None else "the file"
    row = csv_files.row_number(split, options, at)
    again = "track the table again with" if version is not None else ""
    step = point_remedy(value, t, form, again or "say") or (
        f"{cure}{again or 'declare'} --types {shorten(name)[1:-1]}={suggestion(plain, t)}, or mend the value"
    )
    return ColumnTypeError(
        f"column {shorten(name)} of {columnar.table_label(table, version)} is {t}; {what} has "
        f"{shorten(value)} in row {row} of {csv_files.file_name(split)}. {NOTHING_APPLIED} Next step: {step}."
    )
