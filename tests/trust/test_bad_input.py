"""Bad input: one clear error each, that names what is wrong; and nothing is applied.

Every case is a call that must fail, the class of its error, and the words that its message must have.
After each one the workspace must be as it was: version, dependencies, rows, and no file left in
staging.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast.core.rows import encoding as pipeline_encode
from holdfast.core.store.format import FORMAT
from holdfast.core.words.dependency import Side
from holdfast.errors import (
    AbsentRowError,
    AmbiguousRowError,
    ColumnTypeError,
    DamagedFileError,
    DuplicateColumnError,
    HoldfastError,
    SchemaError,
    SourceError,
    StateFormatError,
    TableExistsError,
    UnknownColumnError,
    UnknownTableError,
    UsageError,
    WorkspaceError,
)
from holdfast.workspace import Workspace
from trust import kit, twins

HUGE = "x" * 100_000
HEADER = "id,name,city,grade,score\n"
LINE = "1,Ada,Rome,1,0.5\n"
MESSAGE_LIMIT = 1_000

Call = Callable[[Workspace, Path], Any]
Look = Callable[[Path], Any]


@dataclass(frozen=True)
class Case:
    name: str
    error: type[HoldfastError]
    words: tuple[str, ...]
    call: Call


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def track(name: str, content: str | bytes, **options: Any) -> Call:
    """Track a file of this content as a new table."""
    return lambda ws, folder: ws.track("new", write(folder, name, content), options=options or None)


def insert(content: str | bytes, name: str = "more.csv", **options: Any) -> Call:
    return lambda ws, folder: ws.apply(
        "people", inserts=write(folder, name, content), options=options or None
    )


def delete(*rows: kit.Row) -> Call:
    return lambda ws, folder: ws.apply("people", deletes=kit.table_of(list(rows)))


def people(**changed: Any) -> pa.Table:
    """One more row of `people`, with some columns otherwise."""
    plain = {"id": [99], "name": ["Zoe"], "city": ["Rome"], "grade": [1], "score": [0.5]}
    return pa.table({name: values for name, values in (plain | changed).items() if len(values)})


def parquet(folder: Path, table: pa.Table) -> Path:
    pq.write_table(table, folder / "batch.parquet")
    return folder / "batch.parquet"


def pipe(folder: Path, name: str) -> Path:
    os.mkfifo(folder / name)
    return folder / name


def frame(make: Callable[[], Any]) -> Call:
    """Track a pandas DataFrame with a column 'a' of these values."""
    return lambda ws, folder: ws.track("new", pd.DataFrame({"a": make()}))


def labels(*names: Any) -> Call:
    """Track a pandas DataFrame with these labels of columns."""
    return lambda ws, folder: ws.track(
        "new", pd.DataFrame([range(len(names))], columns=pd.Index(names, dtype=object))
    )


def indexed(levels: tuple[str | None, ...], name: str) -> pd.DataFrame:
    """A pandas DataFrame of one column, with an index of levels of these names."""
    columns = ["first", "second"][: len(levels)]
    frame = pd.DataFrame({name: [1, 2], "first": [0, 1], "second": ["x", "y"]})[[name, *columns]]
    return frame.set_index(columns).rename_axis(list(levels))


def objects(*values: Any) -> Call:
    return frame(lambda: pd.Series(values, dtype=object))


NOTHING = "Nothing was applied"
# A name that Arrow takes and no text has.
NO_NAME = pa.table([[1]], schema=pa.schema([pa.field(b"a\xff", pa.int64())]))

ODD_FRAMES = [
    Case(
        "several levels of columns",
        SchemaError,
        ("2 levels", "('a', 'x')", "frame.columns =", NOTHING),
        lambda ws, folder: ws.track(
            "new", pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]))
        ),
    ),
    Case(
        "an index of several levels without names",
        SchemaError,
        ("example (0, 'x').", "reset_index(drop=True)", "frame.rename_axis(['a', 'id_2'])", NOTHING),
        lambda ws, folder: ws.track("new", indexed(("a", None), "b")),
    ),
    Case(
        "an index without a name",
        SchemaError,
        ("example 0.", "frame.rename_axis('id') makes a column", NOTHING),
        lambda ws, folder: ws.track("new", indexed((None,), "b")),
    ),
    Case(
        "an index that is called like a column",
        DuplicateColumnError,
        ("the index", "'b'", "column 1", "frame.rename_axis(index={'b': 'index_b'})", NOTHING),
        lambda ws, folder: ws.track("new", indexed(("a", "b"), "b")),
    ),
    Case(
        "an index of which two levels are called alike",
        DuplicateColumnError,
        ("two columns 'a': 1 and 2", NOTHING),
        lambda ws, folder: ws.track("new", indexed(("a", "a"), "b")),
    ),
    Case("labels that read alike", DuplicateColumnError, ("two columns '1'", NOTHING), labels(1, "1")),
    Case("no label", SchemaError, ("no name", "column 1 of 2"), labels(None, "b")),
    Case("a label that is NaN", SchemaError, ("no name", "column 2 of 2"), labels("a", float("nan"))),
    Case("half a surrogate pair as a label", SchemaError, ("surrogate", "rename"), labels("a\ud800", "b")),
    Case("half a surrogate pair", ColumnTypeError, ("'a'", "surrogate", NOTHING), objects("x", "a\ud800")),
    Case("texts beside bytes", ColumnTypeError, ("str and bytes", "b'x'", NOTHING), objects("x", b"x")),
    Case(
        "dates beside datetimes",
        ColumnTypeError,
        ("date and datetime", "datetime.datetime(2024, 1, 1, 5", NOTHING),
        objects(dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 5)),
    ),
    Case(
        "datetimes with and without a time zone",
        ColumnTypeError,
        ("datetime with a time zone", "mixes", NOTHING),
        objects(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1)),
    ),
    Case(
        "times with a time zone",
        ColumnTypeError,
        ("time with a time zone", NOTHING),
        objects(dt.time(1, tzinfo=dt.UTC)),
    ),
    Case("bools beside numbers", ColumnTypeError, ("bool and int", NOTHING), objects(True, 2)),
    Case("too large integers", ColumnTypeError, ("'a'", str(2**70), "no type", NOTHING), objects(1, 2**70)),
    Case(
        "a decimal that is no number",
        ColumnTypeError,
        ("Decimal('Infinity')", NOTHING),
        objects(Decimal("1.5"), Decimal("Infinity")),
    ),
    Case("complex numbers", ColumnTypeError, ("complex", "no type", NOTHING), frame(lambda: [1j, 2j])),
    Case(
        "periods",
        ColumnTypeError,
        ("'a'", "periods", "to_timestamp", NOTHING),
        frame(lambda: pd.period_range("2024-01", periods=2, freq="M")),
    ),
    Case(
        "intervals", ColumnTypeError, ("intervals", "astype", NOTHING), frame(lambda: pd.interval_range(0, 2))
    ),
    Case(
        "categories of intervals",
        ColumnTypeError,
        ("intervals", NOTHING),
        frame(lambda: pd.cut(pd.Series([1, 2, 3]), 2)),
    ),
    Case(
        "categories of several types",
        ColumnTypeError,
        ("mixes", "int", "str", NOTHING),
        frame(lambda: pd.Categorical(["x", 1])),
    ),
    Case(
        "categories of texts and bytes",
        ColumnTypeError,
        ("mixes", "str", "bytes", NOTHING),
        frame(lambda: pd.Categorical(["x", b"x"])),
    ),
    Case("durations", SchemaError, ("'a'", "duration", NOTHING), frame(lambda: pd.to_timedelta([1, 2], "s"))),
    Case(
        "no columns but rows",
        SchemaError,
        ("no columns",),
        lambda ws, _: ws.track("new", pd.DataFrame(index=range(1))),
    ),
    Case("a Series", UsageError, ("Series", "DataFrame"), lambda ws, _: ws.track("new", pd.Series([1]))),
]

SPECIAL_FILES = [
    Case(
        "a pipe",
        SourceError,
        ("pipe.csv", "is a pipe", "more than once", "write it to a file", NOTHING),
        lambda ws, folder: ws.track("new", pipe(folder, "pipe.csv")),
    ),
    Case(
        "a pipe as a batch",
        SourceError,
        ("is a pipe", "'people'", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=pipe(folder, "pipe.csv")),
    ),
    Case(
        "a link to a pipe",
        SourceError,
        ("link.csv", "is a pipe", NOTHING),
        lambda ws, folder: (
            (folder / "link.csv").symlink_to(pipe(folder, "pipe")),
            ws.track("new", folder / "link.csv"),
        ),
    ),
    Case(
        "a pipe in a folder",
        SourceError,
        ("b.csv", "is a pipe", NOTHING),
        lambda ws, folder: (write(folder, "a.csv", "a\n1\n"), pipe(folder, "b.csv"), ws.track("new", folder)),
    ),
    Case(
        "a pipe in a glob",
        SourceError,
        ("b.csv", "is a pipe", NOTHING),
        lambda ws, folder: (
            write(folder, "a.csv", "a\n1\n"),
            pipe(folder, "b.csv"),
            ws.track("new", str(folder / "*.csv")),
        ),
    ),
    Case(
        "a device",
        SourceError,
        ("'/dev/zero'", "is a device", NOTHING),
        lambda ws, folder: ws.track("new", "/dev/zero", options={"format": "csv"}),
    ),
    Case(
        "a link that leads nowhere",
        SourceError,
        ("link.csv", "leads nowhere", NOTHING),
        lambda ws, folder: (
            (folder / "link.csv").symlink_to("gone.csv"),
            ws.track("new", folder / "link.csv"),
        ),
    ),
]

ENCODINGS = [
    Case(
        f"{encoding} {name}",
        SourceError,
        (f"seems to be {encoding.upper()} text", f"(--encoding {encoding})", "iconv -f", NOTHING),
        track(name, text.encode(encoding)),
    )
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32")
    for name, text in (("a.csv", 'a,b\n1,é\n2,"y"\n'), ("a.jsonl", '{"a": 1, "b": "é"}\n'))
] + [
    Case(
        "utf-16 of a batch",
        SourceError,
        ("UTF-16", "'people'", NOTHING),
        insert((HEADER + LINE).encode("utf-16")),
    ),
    Case(
        "a name in Arrow that is no text",
        SchemaError,
        ("not UTF-8", r"b'a\xff'", "rename", NOTHING),
        lambda ws, folder: ws.track("new", NO_NAME),
    ),
    Case(
        "a name in Parquet that is no text",
        SchemaError,
        ("not UTF-8", r"b'a\xff'", "batch.parquet", NOTHING),
        lambda ws, folder: ws.track("new", parquet(folder, NO_NAME)),
    ),
    Case(
        "half a surrogate pair in JSON",
        SourceError,
        ("line 2", "surrogate", NOTHING),
        track("a.jsonl", '{"a": "x"}\n{"a": "\\ud800"}\n'),
    ),
    Case(
        "half a surrogate pair as a key in JSON",
        SourceError,
        ("line 1", "surrogate", NOTHING),
        track("a.jsonl", '{"a\\ud800": 1}\n'),
    ),
]

SOURCES = [
    Case(
        "missing file",
        SourceError,
        ("there is no file", "gone.csv", "'new'", NOTHING),
        lambda ws, folder: ws.track("new", folder / "gone.csv"),
    ),
    Case(
        "missing file with a near name",
        SourceError,
        ("Did you mean 'orders.csv'?",),
        lambda ws, folder: (write(folder, "orders.csv", "a\n1\n"), ws.track("new", folder / "order.csv")),
    ),
    Case(
        "missing folder",
        SourceError,
        ("no folder", NOTHING),
        lambda ws, folder: ws.track("new", folder / "no" / "where.csv"),
    ),
    Case(
        "missing file of a batch",
        SourceError,
        ("there is no file", "gone.csv", "'people'", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=folder / "gone.csv"),
    ),
    Case(
        "a glob without a match",
        SourceError,
        ("no file matches", "*.csv", NOTHING),
        lambda ws, folder: ws.track("new", str(folder / "x*.csv")),
    ),
    Case(
        "a folder without data",
        SourceError,
        ("no data files", NOTHING),
        lambda ws, folder: ((folder / "d").mkdir(), ws.track("new", folder / "d")),
    ),
    Case("unknown ending", SourceError, ("format", "data.xyz", "csv, parquet"), track("data.xyz", "a\n1\n")),
    Case("empty file", SourceError, ("empty.csv", "is empty", "header", NOTHING), track("empty.csv", "")),
    Case("empty batch file", SourceError, ("is empty", "'people'", NOTHING), insert("")),
    Case("empty JSON lines", SourceError, ("is empty", NOTHING), track("empty.jsonl", "")),
    Case("empty parquet", SourceError, ("not a Parquet file", NOTHING), track("empty.parquet", b"")),
    Case("blank lines only", SourceError, ("is empty", NOTHING), track("blank.csv", "\n\n\n")),
    Case(
        "wrong delimiter",
        SourceError,
        ("single column", "--delimiter ';'", NOTHING),
        track("semi.csv", "a;b\n1;2\n3;4;5\n"),
    ),
    Case(
        "wrong delimiter of a batch",
        SourceError,
        ("single column", "';'", NOTHING),
        insert(HEADER.replace(",", ";") + LINE),
    ),
    Case(
        "a delimiter of two characters",
        UsageError,
        ("delimiter", "one ASCII character", "';;'"),
        track("a.csv", "a;;b\n", delimiter=";;"),
    ),
    Case(
        "too few fields",
        SourceError,
        ("line 3 of ragged.csv", "1 field instead of 2", "'7'", NOTHING),
        track("ragged.csv", "a,b\n1,2\n7\n"),
    ),
    Case(
        "too many fields",
        SourceError,
        ("line 3", "3 fields instead of 2", NOTHING),
        track("ragged.csv", "a,b\n1,2\n7,8,9\n"),
    ),
    Case(
        "ragged batch",
        SourceError,
        ("line 3", "4 fields instead of 5", "'people'", NOTHING),
        insert(HEADER + LINE + "5,Eve,Oslo,3\n"),
    ),
    Case(
        "unclosed quote",
        SourceError,
        ("quote", "never closed", "line 3", NOTHING),
        track("quote.csv", 'a,b\n1,2\n3,"4\n5,6\n'),
    ),
    Case(
        "not UTF-8",
        SourceError,
        ("line 2", "not utf-8", "encoding", "latin-1", NOTHING),
        track("latin.csv", "a,b\nM\xfcller,1\n".encode("latin-1")),
    ),
    Case(
        "not UTF-8 in the header",
        SourceError,
        ("line 1", "not utf-8", NOTHING),
        track("latin.csv", "stra\xdfe,b\nx,1\n".encode("latin-1")),
    ),
    Case(
        "not UTF-16",
        SourceError,
        ("not utf-16", NOTHING),
        track("odd.csv", b"\xff\xfea\x00,\x00b\x00\n\x00\xd8", encoding="utf-16"),
    ),
    Case(
        "not UTF-8 in a batch",
        SourceError,
        ("not utf-8", "'people'", NOTHING),
        insert((HEADER + "9,Jos\xe9,Rome,1,0.5\n").encode("latin-1")),
    ),
    Case(
        "not UTF-8 in JSON lines",
        SourceError,
        ("line 1", "not utf-8", NOTHING),
        track("l.jsonl", b'{"a": "\xe9"}\n'),
    ),
    Case(
        "unknown encoding",
        UsageError,
        ("encoding 'klingon'", "utf-8"),
        track("a.csv", "a\n", encoding="klingon"),
    ),
    Case("unknown option", UsageError, ("option", "colour"), track("a.csv", "a\n", colour="red")),
    Case("unknown format", UsageError, ("'excel'", "csv, parquet"), track("a.csv", "a\n", format="excel")),
    Case(
        "unknown type", UsageError, ("'a'", "'money'", "int,"), track("a.csv", "a\n1\n", types={"a": "money"})
    ),
    Case(
        "type of an unknown column",
        UnknownColumnError,
        ("'b'", "Columns: a"),
        track("a.csv", "a\n1\n", types={"b": "int"}),
    ),
    Case(
        "a value that is not of the declared type",
        ColumnTypeError,
        ("'a'", "is int", "'x'", "row 2"),
        track("a.csv", "a\n1\nx\n", types={"a": "int"}),
    ),
    Case(
        "duplicate column names",
        DuplicateColumnError,
        ("two columns 'a'", "1 and 3", NOTHING),
        track("twice.csv", "a,b,a\n1,2,3\n", names=["a", "b", "a"]),
    ),
    Case(
        "duplicate names in a batch",
        UnknownColumnError,
        ("no column 'name_2'", "'people'", NOTHING),
        insert("id,name,name,grade,score\n"),
    ),
    Case(
        "duplicate names in pandas",
        DuplicateColumnError,
        ("two columns 'a'",),
        lambda ws, folder: ws.track("new", pd.DataFrame([[1, 2]], columns=["a", "a"])),
    ),
    Case(
        "duplicate names in Arrow",
        DuplicateColumnError,
        ("two columns 'a'",),
        lambda ws, folder: ws.track("new", pa.table([[1], [2]], names=["a", "a"])),
    ),
    Case(
        "duplicate keys in JSON",
        SourceError,
        ("line 1", "a key comes twice"),
        track("twice.jsonl", '{"a": 1, "a": 2}\n'),
    ),
    Case(
        "a name that is empty",
        SchemaError,
        ("no name", "column 2 of 2"),
        track("a.csv", "a,b\n1,2\n", names=["a", ""]),
    ),
    Case("too few names", SchemaError, ("2 columns", "1 names"), track("a.csv", "a,b\n1,2\n", names=["a"])),
    Case("an order of dates", UsageError, ("dates", "'ydm'", "dmy"), track("a.csv", "a\n1\n", dates="ydm")),
    Case("a decimal point", UsageError, ("decimal", "';'"), track("a.csv", "a\n1\n", decimal=";")),
    Case(
        "not JSON",
        SourceError,
        ("line 2", "not one JSON object", NOTHING),
        track("a.jsonl", '{"a": 1}\n{"a"\n'),
    ),
    Case(
        "JSON that is no object", SourceError, ("object 1", "not one JSON object"), track("a.jsonl", "[1]\n")
    ),
    Case("nested JSON", SchemaError, ("'a'", "nested", "flatten"), track("a.jsonl", '{"a": {"b": 1}}\n')),
    Case(
        "mixed JSON",
        ColumnTypeError,
        ("'a'", "mixes types", "line 2"),
        track("a.jsonl", '{"a": 1}\n{"a": "x"}\n'),
    ),
    Case(
        "nested Arrow",
        SchemaError,
        ("'a'", "nested", "'new'", "flatten"),
        lambda ws, folder: ws.track("new", pa.table({"a": [[1, 2]]})),
    ),
    Case(
        "nested Parquet",
        SchemaError,
        ("'a'", "nested", "flatten"),
        lambda ws, folder: ws.track("new", parquet(folder, pa.table({"a": [{"x": 1}]}))),
    ),
    Case(
        "nested pandas",
        SchemaError,
        ("'a'", "nested"),
        lambda ws, folder: ws.track("new", pd.DataFrame({"a": [[1], [2]]})),
    ),
    Case(
        "mixed objects in pandas",
        ColumnTypeError,
        ("'a'", "mixes values", "int", "str", "'x' in row 2", "astype"),
        lambda ws, folder: ws.track("new", pd.DataFrame({"a": [1, "x", 2]}, index=pd.RangeIndex(5, 8))),
    ),
    Case(
        "mixed values in a list of rows",
        ColumnTypeError,
        ("'a'", "int and str in the list of rows", "'x' in row 3", "for example with str(row['a'])", NOTHING),
        lambda ws, folder: ws.track("new", [{"a": 1}, {"b": 2}, {"a": "x"}, {"a": 2}]),
    ),
    Case(
        "odd objects in pandas",
        ColumnTypeError,
        ("'a'",),
        lambda ws, folder: ws.track("new", pd.DataFrame({"a": [object(), object()]})),
    ),
    Case(
        "a table of no columns",
        SchemaError,
        ("no column", "'new'"),
        lambda ws, folder: ws.track("new", pa.table({})),
    ),
    Case(
        "an empty pandas DataFrame",
        SchemaError,
        ("no column", "'new'"),
        lambda ws, folder: ws.track("new", pd.DataFrame()),
    ),
    Case(
        "not a source", UsageError, ("'new'", "dict", "path"), lambda ws, folder: ws.track("new", {"a": [1]})
    ),
    Case("no source", UsageError, ("'new'", "NoneType"), lambda ws, folder: ws.track("new", None)),
    Case(
        "a CSV named Parquet", SourceError, ("not a Parquet file", "format"), track("a.parquet", "a,b\n1,2\n")
    ),
    Case(
        "Parquet named CSV",
        SourceError,
        ("a.csv", NOTHING),
        lambda ws, folder: ws.track("new", parquet(folder, people()).rename(folder / "a.csv")),
    ),
    Case(
        "truncated Parquet",
        SourceError,
        ("not a Parquet file",),
        lambda ws, folder: ws.track(
            "new", write(folder, "b.parquet", parquet(folder, people()).read_bytes()[:300])
        ),
    ),
    Case(
        "truncated gzip",
        SourceError,
        ("cannot be decompressed", NOTHING),
        track("a.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 9999)[:-20]),
    ),
    Case("not gzip", SourceError, ("cannot be decompressed", NOTHING), track("a.csv.gz", "a,b\n1,2\n")),
    Case(
        "a damaged Delta table",
        SourceError,
        ("a Delta table that cannot be opened", "'new'", NOTHING),
        lambda ws, folder: (
            (folder / "delta" / "_delta_log").mkdir(parents=True),
            write(folder / "delta" / "_delta_log", f"{0:020}.json", "no log"),
            ws.track("new", folder / "delta"),
        ),
    ),
]

BATCHES = [
    Case(
        "a column is missing",
        SchemaError,
        ("'people'", "version 4", "lack", "city", NOTHING),
        insert("id,name,grade,score\n9,Z,1,0.5\n"),
    ),
    Case(
        "a column is renamed",
        UnknownColumnError,
        ("'people'", "'town'", "Columns:", NOTHING),
        insert(HEADER.replace("city", "town") + LINE),
    ),
    Case(
        "a column is misspelt",
        UnknownColumnError,
        ("'nmae'", "Did you mean 'name'?", NOTHING),
        insert(HEADER.replace("name", "nmae") + LINE),
    ),
    Case(
        "a column too many",
        UnknownColumnError,
        ("'extra'", "Columns:", NOTHING),
        insert("extra," + HEADER + "1," + LINE),
    ),
    Case(
        "text in an int column",
        ColumnTypeError,
        ("'id'", "'people'", "is int", "'seven'", "row 1", NOTHING),
        insert(HEADER + "seven,Z,Rome,1,0.5\n"),
    ),
    Case(
        "a padded number", ColumnTypeError, ("'id'", "'007'", NOTHING), insert(HEADER + "007,Z,Rome,1,0.5\n")
    ),
    Case(
        "a fraction in an int column",
        ColumnTypeError,
        ("'grade'", "1.5", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=people(grade=[1.5])),
    ),
    Case(
        "a retyped Arrow column",
        ColumnTypeError,
        ("'name'", "is text", "17", "int", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=people(name=[17])),
    ),
    Case(
        "a retyped Parquet column",
        ColumnTypeError,
        ("'id'", "is int", "'99'", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=parquet(folder, people(id=["99"]))),
    ),
    Case(
        "a retyped pandas column",
        ColumnTypeError,
        ("'id'", "is int", "'99'", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=people(id=["99"]).to_pandas()),
    ),
    Case(
        "a retyped JSON column",
        ColumnTypeError,
        ("'grade'", "is int", "'one'", NOTHING),
        insert('{"id": 1, "name": "Z", "city": null, "grade": "one", "score": 1.0}\n', "more.jsonl"),
    ),
    Case(
        "an integer too large",
        ColumnTypeError,
        ("'id'", "9223372036854775808", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=people(id=pa.array([2**63], pa.uint64()))),
    ),
    Case(
        "nested batch",
        SchemaError,
        ("lack the column name", "name is nested", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=people(name=[["Z"]])),
    ),
    Case(
        "mixed objects in a batch",
        ColumnTypeError,
        ("'name'", "mixes values", NOTHING),
        lambda ws, folder: ws.apply(
            "people",
            inserts=pd.concat([people().to_pandas(), people(name=[1]).to_pandas()], ignore_index=True),
        ),
    ),
    Case(
        "bad deletes keep good inserts out",
        AbsentRowError,
        (NOTHING,),
        lambda ws, folder: ws.apply("people", inserts=people(), deletes=people()),
    ),
    Case(
        "bad inserts keep good deletes out",
        ColumnTypeError,
        (NOTHING,),
        lambda ws, folder: ws.apply("people", inserts=people(id=["x"]), deletes=kit.table_of(kit.START[:1])),
    ),
    Case(
        "deleting an absent row",
        AbsentRowError,
        (
            "the batch deletes (id, name, city, grade, score) = (1, 'Ada', 'Rome', 1, 0.75) of table "
            f"'people' (version 4), which has no such row. {NOTHING}. Was this batch applied before?",
        ),
        delete((1, "Ada", "Rome", 1, 0.75)),
    ),
    Case(
        "deleting several absent rows",
        AbsentRowError,
        ("(1, 'Ada', NULL, 1, 0.5)", "and 2 more", NOTHING),
        delete(
            (1, "Ada", None, 1, 0.5), (3, "Cyd", "Oslo", 1, 1.5), (77, "", "", 0, 0.0), (78, "", "", 0, 0.0)
        ),
    ),
    Case(
        "deleting a row twice",
        AbsentRowError,
        ("(1, 'Ada', 'Rome', 1, 0.5)", "fewer such rows than the batch names", NOTHING),
        delete((1, "Ada", "Rome", 1, 0.5), (1, "Ada", "Rome", 1, 0.5)),
    ),
    Case(
        "deleting a deleted row",
        AbsentRowError,
        ("(2, 'Bob', 'Rome', 2, 0.5)", NOTHING),
        delete((2, "Bob", "Rome", 2, 0.5)),
    ),
    Case(
        "deleting and updating a row",
        AbsentRowError,
        ("(1, 'Ada', 'Rome', 1, 0.5)", "no such row but those that other parts", NOTHING),
        lambda ws, folder: ws.apply(
            "people", deletes=kit.table_of(kit.START[:1]), before=kit.table_of(kit.START[:1]), after=people()
        ),
    ),
    Case(
        "deletes by part of the columns",
        SchemaError,
        ("'people'", "lack", "grade", NOTHING),
        lambda ws, folder: ws.apply("people", deletes=pa.table({"id": [1]})),
    ),
    Case(
        "an empty batch",
        UsageError,
        ("batch is empty", "upserts or a snapshot"),
        lambda ws, folder: ws.apply("people"),
    ),
    Case(
        "before without after",
        UsageError,
        ("both", "before", "after"),
        lambda ws, folder: ws.apply("people", before=people()),
    ),
    Case(
        "after without before",
        UsageError,
        ("both", "before", "after"),
        lambda ws, folder: ws.apply("people", after=people()),
    ),
    Case(
        "more before than after",
        UsageError,
        ("'people'", "2 rows before", "1 after", NOTHING),
        lambda ws, folder: ws.apply("people", before=kit.table_of(kit.START[2:4]), after=people()),
    ),
    Case(
        "an update without a row key",
        UsageError,
        ("'people'", "no row key", "--row-key", NOTHING),
        lambda ws, folder: ws.apply("people", updates=people()),
    ),
    Case(
        "an update of an absent row",
        AbsentRowError,
        ("the batch updates (id) = (99) of table 'keyed'", "no such row. ", NOTHING),
        lambda ws, folder: ws.apply("keyed", updates=pa.table({"id": [99], "v": [1]})),
    ),
    Case(
        "an update without its key",
        SchemaError,
        ("'keyed'", "lack", "id", NOTHING),
        lambda ws, folder: ws.apply("keyed", updates=pa.table({"v": [1]})),
    ),
    Case(
        "an update of an unknown column",
        UnknownColumnError,
        ("'keyed'", "'w'", NOTHING),
        lambda ws, folder: ws.apply("keyed", updates=pa.table({"id": [1], "w": [1]})),
    ),
    Case(
        "one row updated twice",
        AbsentRowError,
        ("updates (id) = (1) of", "'keyed'", "fewer such rows than the batch names", NOTHING),
        lambda ws, folder: ws.apply("keyed", updates=pa.table({"id": [1, 1], "v": [1, 2]})),
    ),
    Case(
        "a row that is deleted and updated",
        AbsentRowError,
        ("updates (id) = (1) of", "no such row but those that other parts of the batch take", NOTHING),
        lambda ws, folder: ws.apply(
            "keyed", deletes=pa.table({"id": [1]}), updates=pa.table({"id": [1], "v": [2]})
        ),
    ),
    Case(
        "a row key that is not unique",
        AmbiguousRowError,
        ("(3)", "2 rows", "'keyed'", "version 4", NOTHING),
        lambda ws, folder: ws.apply("keyed", updates=pa.table({"id": [3], "v": [1]})),
    ),
    Case(
        "a delete by a key that is not unique",
        AmbiguousRowError,
        ("(3)", "2 rows", NOTHING),
        lambda ws, folder: ws.apply("keyed", deletes=pa.table({"id": [3]})),
    ),
]

NAMES = [
    Case(
        "unknown table in apply",
        UnknownTableError,
        ("'poeple'", "Tables: keyed, people", "Did you mean 'people'?"),
        lambda ws, folder: ws.apply("poeple", inserts=people()),
    ),
    Case(
        "unknown table in check",
        UnknownTableError,
        ("'x'", "Tables:"),
        lambda ws, folder: ws.check("x", inserts=people()),
    ),
    Case(
        "unknown table in dependencies",
        UnknownTableError,
        ("'x'", "Tables:"),
        lambda ws, folder: ws.dependencies(table="x"),
    ),
    Case("unknown table in log", UnknownTableError, ("'x'", "Tables:"), lambda ws, folder: ws.log("x")),
    Case("unknown table in explain", UnknownTableError, ("'x'",), lambda ws, folder: ws.explain("x", ["id"])),
    Case("unknown table in merge", UnknownTableError, ("'x'",), lambda ws, folder: ws.merge("x")),
    Case("unknown table in drop", UnknownTableError, ("'x'",), lambda ws, folder: ws.drop("x")),
    Case("unknown table in pin", UnknownTableError, ("'x'",), lambda ws, folder: ws.pin("x", ["id"])),
    Case(
        "table exists",
        TableExistsError,
        ("'people'", "tracked already", "version 4", "holdfast apply"),
        lambda ws, folder: ws.track("people", people()),
    ),
    Case(
        "unknown column in explain",
        UnknownColumnError,
        ("'people'", "version 4", "'nam'", "Columns: id, name", "Did you mean 'name'?"),
        lambda ws, folder: ws.explain("people", ["id", "nam"]),
    ),
    Case(
        "unknown column in pin",
        UnknownColumnError,
        ("'people'", "'nam'", "Did you mean 'name'?"),
        lambda ws, folder: ws.pin("people", ["nam"]),
    ),
    Case(
        "unpinning what is not pinned",
        UsageError,
        ("id", "'people'", "not pinned"),
        lambda ws, folder: ws.pin("people", ["id"], remove=True),
    ),
    Case(
        "unknown column in the row key",
        UnknownColumnError,
        ("'new'", "'idd'", "Did you mean 'id'?"),
        lambda ws, folder: ws.track("new", people(), row_key=["idd"]),
    ),
    Case(
        "a version to come",
        WorkspaceError,
        ("no version 99", "1 to 4", "holdfast log"),
        lambda ws, folder: ws.dependencies(at=99),
    ),
    Case("version 0", WorkspaceError, ("no version 0",), lambda ws, folder: ws.n_rows("people", at=0)),
    Case(
        "a table before it was tracked",
        UnknownTableError,
        ("'keyed'", "Tables: people"),
        lambda ws, folder: ws.dependencies(table="keyed", at=1),
    ),
    Case(
        "unknown kind to track",
        UsageError,
        ("'magic'", "ucc"),
        lambda ws, folder: ws.track("new", people(), kinds=["magic"]),
    ),
    Case(
        "no kind to track",
        UsageError,
        ("no kind", "ucc"),
        lambda ws, folder: ws.track("new", people(), kinds=[]),
    ),
    Case(
        "unknown kind to show",
        UsageError,
        ("'magic'", "ucc"),
        lambda ws, folder: ws.dependencies(kind="magic"),
    ),
    Case(
        "unknown rule for NULLs",
        UsageError,
        ("'maybe'", "'equal' or 'distinct'"),
        lambda ws, folder: ws.track("new", people(), nulls="maybe"),
    ),  # type: ignore[arg-type]
    Case(
        "keys of no column",
        UsageError,
        ("max_columns is 0", "at least 1"),
        lambda ws, folder: ws.track("new", people(), max_columns=0),
    ),
    Case(
        "a table without a name",
        UsageError,
        ("''", "cannot name a table"),
        lambda ws, folder: ws.track("", people()),
    ),
    Case(
        "a table with a line end in its name",
        UsageError,
        ("cannot name a table",),
        lambda ws, folder: ws.track("a\nb", people()),
    ),
    Case(
        "unknown engine",
        UsageError,
        ("'gpu'", "'inline'"),
        lambda ws, folder: holdfast.open(ws.root, engine="gpu").track("new", people()),
    ),  # type: ignore[arg-type]
]

INCLUSIONS = [
    Case(
        "patterns that name no column",
        UnknownColumnError,
        ("'new'", "'idd'", "Did you mean 'id'?"),
        lambda ws, folder: ws.track("new", people(), kinds=["ind"], columns=["idd"]),
    ),
    Case(
        "patterns that leave no column",
        UsageError,
        ("'new'", "leave no column", NOTHING),
        lambda ws, folder: ws.track("new", people(), kinds=["ind"], exclude=["*"]),
    ),
    Case(
        "an error over 1",
        UsageError,
        ("max_error is 1.5", "0 to 1"),
        lambda ws, folder: ws.dependencies(kind="ind", max_error=1.5),
    ),
    Case(
        "an error under 0",
        UsageError,
        ("max_error is -0.1", "0 to 1"),
        lambda ws, folder: ws.dependencies(max_error=-0.1),
    ),
    Case(
        "links without inclusions",
        UsageError,
        ("no table", "--kinds ucc,ind"),
        lambda ws, folder: ws.inds.links(),
    ),
    Case(
        "an inclusion of columns that take no part",
        UsageError,
        ("'id'", "'people'", "takes no part", "--kinds ind"),
        lambda ws, folder: ws.inds.explain(Side("people", ("id",)), Side("keyed", ("id",))),
    ),
    Case(
        "an inclusion of an unknown column",
        UnknownColumnError,
        ("'people'", "'idd'", "Did you mean 'id'?"),
        lambda ws, folder: ws.inds.explain(Side("people", ("idd",)), Side("keyed", ("id",))),
    ),
    Case(
        "huge pattern",
        UnknownColumnError,
        ("xxx...",),
        lambda ws, folder: ws.track("new", people(), kinds=["ind"], columns=[HUGE]),
    ),
    Case("no tables to track", UsageError, ("no table",), lambda ws, folder: ws.track_all({})),
    Case("no batches", UsageError, ("no batch",), lambda ws, folder: ws.apply_all({})),
    Case("no batches to check", UsageError, ("no batch",), lambda ws, folder: ws.check_all({})),
    Case(
        "an empty batch among others",
        UsageError,
        ("batch is empty",),
        lambda ws, folder: ws.apply_all({"people": {"inserts": people()}, "keyed": {}}),
    ),
    Case(
        "an unknown part of a batch",
        UsageError,
        ("'people'", "'insert'", "inserts, deletes"),
        lambda ws, folder: ws.apply_all({"people": {"insert": people()}}),
    ),
    Case(
        "an unknown table among others",
        UnknownTableError,
        ("'poeple'", "Did you mean 'people'?"),
        lambda ws, folder: ws.apply_all(
            {"keyed": {"inserts": pa.table({"id": [9], "v": [9]})}, "poeple": {"inserts": people()}}
        ),
    ),
    Case(
        "a bad batch among good ones",
        ColumnTypeError,
        ("'id'", "'x'", NOTHING),
        lambda ws, folder: ws.apply_all(
            {"keyed": {"inserts": pa.table({"id": [9], "v": [9]})}, "people": {"inserts": people(id=["x"])}}
        ),
    ),
    Case(
        "a bad table among good ones",
        SourceError,
        ("there is no file", "gone.csv", NOTHING),
        lambda ws, folder: ws.track_all(
            {"new": people(), "other": folder / "gone.csv"}, kinds=["ucc", "ind"]
        ),
    ),
    Case(
        "a tracked table among new ones",
        TableExistsError,
        ("'people'", "tracked already"),
        lambda ws, folder: ws.track_all({"new": people(), "people": people()}),
    ),
]

FUNCTIONAL = [
    Case(
        "left-hand sides of no column",
        UsageError,
        ("max_lhs is 0", "at least 1"),
        lambda ws, folder: ws.track("new", people(), kinds=["fd"], max_lhs=0),
    ),
    *(
        Case(
            f"an error of {error} to track",
            UsageError,
            (f"max_error is {error}", "between 0 and 1"),
            lambda ws, folder, error=error: ws.track("new", people(), kinds=["fd"], max_error=error),
        )
        for error in (-0.1, 0.0, 1.0, 1.5, float("nan"))
    ),
    Case(
        "unknown evidence",
        UsageError,
        ("'guessed'", "counted", "witnessed"),
        lambda ws, folder: ws.track("new", people(), kinds=["fd"], evidence="guessed"),
    ),
    Case(
        "huge evidence",
        UsageError,
        ("xxx...", "counted"),
        lambda ws, folder: ws.track("new", people(), kinds=["fd"], evidence=HUGE),
    ),
    Case(
        "errors without counts",
        UsageError,
        ("counted evidence", "max_error"),
        lambda ws, folder: ws.track("new", people(), kinds=["fd"], max_error=0.1, evidence="witnessed"),
    ),
    *(
        Case(
            f"{name} without functional dependencies",
            UsageError,
            (name, "ucc", "kind fd"),
            lambda ws, folder, given=given: ws.track("new", people(), kinds=["ucc"], **given),
        )
        for name, given in {
            "max_lhs": {"max_lhs": 2},
            "max_error": {"max_error": 0.1},
            "evidence": {"evidence": "counted"},
        }.items()
    ),
    Case(
        "errors of witnessed evidence",
        UsageError,
        ("'witnessed'", "--evidence counted"),
        lambda ws, folder: ws.dependencies(kind="fd", table="witnessed", max_error=0.1),
    ),
    Case(
        "another error of an older version",
        UsageError,
        ("'counted'", "0.1", "0.2"),
        lambda ws, folder: ws.dependencies(kind="fd", table="counted", max_error=0.2, at=5),
    ),
    Case(
        "agree sets of witnessed evidence",
        UsageError,
        ("'witnessed'", "--evidence counted"),
        lambda ws, folder: ws.fds.agree_sets("witnessed"),
    ),
    *(
        Case(
            f"{name} of a table without functional dependencies",
            UsageError,
            ("'people'", "not tracked", "--kinds fd"),
            call,
        )
        for name, call in {
            "agree sets": lambda ws, folder: ws.fds.agree_sets("people"),
            "an error": lambda ws, folder: ws.fds.error_of("people", ["id"], "name"),
            "histories": lambda ws, folder: ws.fds.log("people"),
            "a ranking": lambda ws, folder: ws.fds.rank("people"),
            "a normal form": lambda ws, folder: ws.fds.normalise("people"),
        }.items()
    ),
    *(
        Case(f"{name} of an unknown table", UnknownTableError, ("'x'", "Tables:"), call)
        for name, call in {
            "agree sets": lambda ws, folder: ws.fds.agree_sets("x"),
            "an explanation": lambda ws, folder: ws.fds.explain("x", ["id"], "name"),
            "histories": lambda ws, folder: ws.fds.log("x"),
            "a ranking": lambda ws, folder: ws.fds.rank("x"),
            "a normal form": lambda ws, folder: ws.fds.normalise("x"),
        }.items()
    ),
    *(
        Case(
            f"an unknown column on the {side}",
            UnknownColumnError,
            ("'counted'", "'nam'", "Did you mean 'name'?"),
            call,
        )
        for side, call in {
            "left": lambda ws, folder: ws.fds.explain("counted", ["nam"], "city"),
            "right": lambda ws, folder: ws.fds.explain("counted", ["id"], "nam"),
            "left of an error": lambda ws, folder: ws.fds.error_of("counted", ["nam"]),
            "right of an error": lambda ws, folder: ws.fds.error_of("counted", ["id"], "nam"),
        }.items()
    ),
    Case(
        "huge column on the left",
        UnknownColumnError,
        ("xxx...",),
        lambda ws, folder: ws.fds.explain("counted", [HUGE], "city"),
    ),
    Case(
        "a ranking of none",
        UsageError,
        ("top is 0", "at least 1"),
        lambda ws, folder: ws.fds.rank("counted", top=0),
    ),
    Case(
        "an unknown normal form",
        UsageError,
        ("'4nf'", "bcnf", "3nf"),
        lambda ws, folder: ws.fds.normalise("counted", "4nf"),
    ),
    Case(
        "a row that is not there",
        AbsentRowError,
        ("'counted'", NOTHING),
        lambda ws, folder: ws.apply_all(
            {"witnessed": {"inserts": people()}, "counted": {"inserts": people(), "deletes": people(id=[98])}}
        ),
    ),
    Case(
        "a bad value",
        ColumnTypeError,
        ("'id'", "'x'", NOTHING),
        lambda ws, folder: ws.apply_all(
            {"witnessed": {"inserts": people()}, "counted": {"inserts": people(id=["x"])}}
        ),
    ),
]

APPEND_ONLY = [
    Case(
        f"{part} of an append-only table",
        UsageError,
        ("'events'", "append-only", NOTHING, "--append-only"),
        call,
    )
    for part, call in {
        "deletes": lambda ws, folder: ws.apply("events", deletes=people()),
        "updates": lambda ws, folder: ws.apply("events", updates=people()),
        "before and after": lambda ws, folder: ws.apply("events", before=people(), after=people()),
        "deletes among inserts": lambda ws, folder: ws.apply_all(
            {"people": {"inserts": people()}, "events": {"inserts": people(), "deletes": people()}}
        ),
        "checked deletes": lambda ws, folder: ws.check("events", deletes=people()),
    }.items()
]

HUGE_VALUES = [
    Case("huge absent row", AbsentRowError, ("xxx...", NOTHING), delete((1, HUGE, HUGE, 1, 0.5))),
    Case(
        "huge value in an int column", ColumnTypeError, ("xxx...", NOTHING), insert(HEADER + f"{HUGE},,,,\n")
    ),
    Case(
        "huge value in an int column of Arrow",
        ColumnTypeError,
        ("xxx...", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=people(id=[HUGE])),
    ),
    Case(
        "huge binary value",
        ColumnTypeError,
        ("binary", NOTHING),
        lambda ws, folder: ws.apply("people", inserts=people(name=[HUGE.encode()])),
    ),
    Case("huge ragged row", SourceError, ("xxx...", NOTHING), insert(HEADER + f"{HUGE},1\n")),
    Case("huge column name", UnknownColumnError, ("xxx...", NOTHING), insert(f"{HUGE}," + HEADER)),
    Case(
        "huge column name in explain",
        UnknownColumnError,
        ("xxx...",),
        lambda ws, folder: ws.explain("people", [HUGE]),
    ),
    Case(
        "many huge column names",
        UnknownColumnError,
        ("xxx...",),
        lambda ws, folder: ws.apply("wide", inserts=people()),
    ),
    Case("huge table name", UsageError, ("xxx...",), lambda ws, folder: ws.track(HUGE, people())),
    Case(
        "huge unknown table",
        UnknownTableError,
        ("xxx...",),
        lambda ws, folder: ws.apply(HUGE, inserts=people()),
    ),
    Case("huge path", SourceError, ("xxx",), lambda ws, folder: ws.track("new", folder / f"{HUGE}.csv")),
    Case("huge file name", SourceError, ("xxx",), track("x" * 240 + ".csv", "")),
    Case(
        "huge JSON value",
        ColumnTypeError,
        ("xxx...", NOTHING),
        insert(json.dumps({"id": HUGE, "name": "", "city": "", "grade": 1, "score": 1.5}) + "\n", "m.jsonl"),
    ),
    Case("huge JSON line", SourceError, ("xxx...", NOTHING), track("m.jsonl", f'{{"a": "{HUGE}\n')),
    Case("huge nested JSON", SchemaError, ("nested", NOTHING), track("m.jsonl", f'{{"a": ["{HUGE}"]}}\n')),
    Case(
        "huge JSON key",
        UnknownColumnError,
        ("xxx...", NOTHING),
        insert(json.dumps({HUGE: 1}) + "\n", "m.jsonl"),
    ),
    Case(
        "huge nested type",
        SchemaError,
        ("nested",),
        lambda ws, folder: ws.track("new", pa.table({"a": [{f"f{i}": i for i in range(2000)}]})),
    ),
    Case(
        "huge mixed pandas value",
        ColumnTypeError,
        ("mixes values",),
        lambda ws, folder: ws.track("new", pd.DataFrame({"a": [1, HUGE, 2]})),
    ),
    Case(
        "huge part of a batch",
        UsageError,
        ("xxx...",),
        lambda ws, folder: ws.apply_all({"people": {HUGE: people()}}),
    ),
    Case(
        "huge inclusion",
        UnknownColumnError,
        ("xxx...",),
        lambda ws, folder: ws.inds.explain(Side("people", (HUGE,)), Side("keyed", ("id",))),
    ),
    Case("huge kind", UsageError, ("xxx...",), lambda ws, folder: ws.dependencies(kind=HUGE)),
    Case("huge type", UsageError, ("xxx...",), track("a.csv", "a\n1\n", types={"a": HUGE})),
    Case("huge option", UsageError, ("option",), track("a.csv", "a\n1\n", **{HUGE: 1})),
    Case(
        "huge engine",
        UsageError,
        ("xxx",),
        lambda ws, folder: holdfast.open(ws.root, engine=HUGE).track("new", people()),
    ),  # type: ignore[arg-type]
    Case(
        "huge pin",
        UsageError,
        ("not pinned",),
        lambda ws, folder: ws.pin("wide", ws.schema("wide").names, remove=True),
    ),
]

# Their messages list every column of a table, in full.
TOO_LONG = [
    Case(
        "many huge column names and a pattern",
        UsageError,
        ("leave no column", "xxx..."),
        lambda ws, folder: ws.track(
            "new", pa.table({f"{'x' * 500}{i}": [i] for i in range(400)}), kinds=["ind"], exclude=["*"]
        ),
    ),
    Case(
        "huge inclusion of many columns",
        UsageError,
        ("takes no part in inclusions",),
        lambda ws, folder: ws.inds.explain(
            Side("wide", ws.schema("wide").names), Side("wide", ws.schema("wide").names)
        ),
    ),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace of two tables; `keyed` has a row key, of which the value 3 is there twice."""
    root = tmp_path_factory.mktemp("bad") / "w"
    with holdfast.open(root, engine="inline") as ws:
        ws.track("people", kit.table_of(kit.START))
        kit.apply(ws, ([], [(2, "Bob", "Rome", 2, 0.5)]))
        ws.track("keyed", pa.table({"id": [1, 2, 3, 3], "v": [10, 20, 30, 31]}), row_key=["id"])
        ws.apply("keyed", inserts=pa.table({"id": [4], "v": [40]}))
    return root


@pytest.fixture(scope="module")
def wide(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a third table whose 400 column names are long."""
    root = tmp_path_factory.mktemp("wide") / "w"
    shutil.copytree(base, root)
    with holdfast.open(root, engine="inline") as ws:
        ws.track("wide", pa.table({f"{'x' * 500}{i}": [i] for i in range(400)}))
    return root


def _shown(root: Path) -> Any:
    """What a workspace says: less than `kit.snapshot`, whose oracle knows keys of few columns only."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        assert ws.verify() > 0
        return [d.to_dict() for d in ws.dependencies()], [e.to_dict() for e in ws.log()]


def _check(case: Case, base: Path, folder: Path, *, litter: bool = False, look: Look = kit.snapshot) -> None:
    """`litter`: files that no commit names may be left behind, for `tidy` to remove."""
    root = folder / "w"
    shutil.copytree(base, root)
    if litter:
        _tidy(root)
    before, files = look(root), kit.files_of(root)
    with (
        holdfast.open(root, engine="inline", create=False) as ws,
        pytest.raises(case.error) as caught,
    ):
        case.call(ws, folder)
    message = str(caught.value)
    assert type(caught.value) is case.error, message
    for word in case.words:
        assert word in message, message
    assert "\n" not in message
    assert len(message) < MESSAGE_LIMIT, f"{len(message)} characters"
    assert look(root) == before
    if litter:
        _tidy(root)
    assert kit.files_of(root) == files, "files are left behind"
    assert not list((root / "staging").glob("*/"))


def _tidy(root: Path) -> None:
    with holdfast.open(root, engine="inline", create=False) as ws:
        ws.tidy(grace_s=0)


@pytest.mark.parametrize(
    "case",
    [*SOURCES, *SPECIAL_FILES, *ENCODINGS, *ODD_FRAMES, *BATCHES, *NAMES],
    ids=lambda case: case.name,
)
def test_bad_input(case: Case, base: Path, tmp_path: Path) -> None:
    _check(case, base, tmp_path)


@pytest.mark.parametrize("case", INCLUSIONS, ids=lambda case: case.name)
def test_bad_input_about_inclusions(case: Case, base: Path, tmp_path: Path) -> None:
    """One table of several may have been written before another one is refused."""
    _check(case, base, tmp_path, litter=True)


@pytest.fixture(scope="module")
def events(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a third table that is append-only."""
    root = tmp_path_factory.mktemp("events") / "w"
    shutil.copytree(base, root)
    with holdfast.open(root, engine="inline") as ws:
        ws.track("events", people(), append_only=True)
    return root


@pytest.fixture(scope="module")
def dependent(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with two tables that have functional dependencies, at versions 5 and 6."""
    root = tmp_path_factory.mktemp("dependent") / "w"
    shutil.copytree(base, root)
    with holdfast.open(root, engine="inline") as ws:
        for table in twins.TABLES:
            twins.track(ws, table)
        ws.apply(twins.COUNTED, inserts=people())
    return root


@pytest.mark.parametrize("case", FUNCTIONAL, ids=lambda case: case.name)
def test_bad_input_about_functional_dependencies(case: Case, dependent: Path, tmp_path: Path) -> None:
    _check(case, dependent, tmp_path, litter=True)


@pytest.mark.parametrize("case", APPEND_ONLY, ids=lambda case: case.name)
def test_append_only_tables(case: Case, events: Path, tmp_path: Path) -> None:
    _check(case, events, tmp_path, litter=True)


@pytest.mark.parametrize("case", HUGE_VALUES, ids=lambda case: case.name)
def test_messages_stay_short(case: Case, wide: Path, tmp_path: Path) -> None:
    _check(case, wide, tmp_path, look=_shown)


@pytest.mark.parametrize("case", TOO_LONG, ids=lambda case: case.name)
def test_messages_about_many_columns_stay_short(case: Case, wide: Path, tmp_path: Path) -> None:
    _check(case, wide, tmp_path, litter=True, look=_shown)


# --- Not errors -------------------------------------------------------------------------------------------


def test_a_file_with_a_header_only_is_a_table_without_rows(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        change = ws.track("t", write(tmp_path, "t.csv", "a,b\n"))
        assert (change.n_rows, kit.keys_of(ws, "t")) == (0, [[]])
        change = ws.apply("t", inserts=write(tmp_path, "more.csv", "a,b\nx,1\nx,2\n"))
        assert (change.n_rows, kit.keys_of(ws, "t")) == (2, [["b"]])
        change = ws.apply("t", inserts=write(tmp_path, "none.csv", "a,b\n"))
        assert (change.n_inserted, change.n_rows, change.changes) == (0, 2, ())


def test_a_column_of_whole_numbers_whose_last_file_has_fractions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types are guessed from the first ten files. No guess is tried twice, so the guessing ends."""
    rounds: list[list[str]] = []

    def encode(source: Any, schema: Any, *rest: Any, **options: Any) -> Any:
        rounds.append([str(c.type) for c in schema.columns])
        assert rounds.count(rounds[-1]) == 1, "a round that was there before: this never ends"
        return real(source, schema, *rest, **options)

    real = pipeline_encode._encode
    monkeypatch.setattr(pipeline_encode, "_encode", encode)
    (tmp_path / "days").mkdir()
    for number in range(11):
        write(tmp_path / "days", f"{number:02}.csv", f"id,price\n{number},{number}\n")
    write(tmp_path / "days", "11.csv", "id,price\n11,1.50\n")
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        assert ws.track("t", str(tmp_path / "days")).n_rows == 12
    assert rounds == [["int", "int"], ["int", "decimal(18,2)"]]


def test_a_repeated_batch_id_does_nothing_and_says_so(base: Path, tmp_path: Path) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    with holdfast.open(root, engine="inline") as ws:
        first = ws.apply("people", inserts=people(), batch_id="monday")
        files = kit.files_of(root)
        again = ws.apply("people", inserts=people(), batch_id="monday")
        assert (again.repeated, again.version, again.n_inserted) == (True, first.version, 0)
        assert "'monday' was applied before, as version 5; nothing was done" in str(again)
        assert (ws.version, kit.files_of(root)) == (5, files)
        # Ids belong to a table.
        assert not ws.apply("keyed", inserts=pa.table({"id": [9], "v": [9]}), batch_id="monday").repeated


# --- The workspace itself ---------------------------------------------------------------------------------


def _refused(path: Path, error: type[HoldfastError], *words: str, create: bool = False) -> None:
    with pytest.raises(error) as caught:
        holdfast.open(path, engine="inline", create=create)
    assert type(caught.value) is error
    for word in (str(path), *words):
        assert word in str(caught.value)
    assert len(str(caught.value)) < MESSAGE_LIMIT


@pytest.mark.parametrize("create", [False, True])
def test_a_file_is_no_workspace(tmp_path: Path, create: bool) -> None:
    _refused(write(tmp_path, "w", "hello"), WorkspaceError, "is a file", create=create)
    _refused(tmp_path / "w" / "inside", WorkspaceError, create=create)


@pytest.mark.parametrize("create", [False, True])
def test_a_plain_folder_is_no_workspace(tmp_path: Path, create: bool) -> None:
    write(tmp_path, "thesis.txt", "all my work")
    _refused(tmp_path, WorkspaceError, "no holdfast workspace", create=create)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_a_workspace_that_is_not_there(tmp_path: Path) -> None:
    _refused(tmp_path / "w", WorkspaceError, "there is no workspace", "holdfast track")
    assert not (tmp_path / "w").exists()


@pytest.mark.ordinary_user
def test_a_source_without_rights(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        for name in ("a.csv", "a.parquet", "a.jsonl", "a.arrow"):
            source = write(tmp_path, name, "a\n1\n")
            source.chmod(0)
            with pytest.raises(SourceError, match="denied") as caught:
                ws.track("t", source)
            assert name in str(caught.value)
            assert "Nothing was applied" in str(caught.value)


@pytest.mark.ordinary_user
def test_a_workspace_without_rights(base: Path, tmp_path: Path) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    root.chmod(0)
    try:
        _refused(root, WorkspaceError, "rights")
    finally:
        root.chmod(0o755)


@pytest.mark.ordinary_user
def test_a_workspace_that_may_only_be_read(base: Path, tmp_path: Path) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    for path in (root, *root.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with holdfast.open(root, engine="inline") as ws:
            assert ws.n_rows("people") == 5
            with pytest.raises(WorkspaceError, match="cannot write"):
                ws.apply("people", inserts=people())
    finally:
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (f'{{"format": {FORMAT + 1}}}', StateFormatError, f"format {FORMAT + 1}; this holdfast reads"),
        ('{"format": 99, "new": []}', StateFormatError, "format 99"),
        ('{"format": 0}', DamagedFileError, "damaged"),
        ('{"format": "1"}', DamagedFileError, "damaged"),
        ('{"format": true}', DamagedFileError, "damaged"),
        ('{"form', DamagedFileError, "damaged"),
        ("", DamagedFileError, "damaged"),
        ("[]", DamagedFileError, "damaged"),
        (b"\xff\x00\xfe", DamagedFileError, "damaged"),
        ("[" * 100_000, DamagedFileError, "damaged"),
    ],
)
def test_a_bad_marker(
    base: Path, tmp_path: Path, create: bool, content: str | bytes, error: type[HoldfastError], words: str
) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    (root / "holdfast.json").unlink()
    write(root, "holdfast.json", content)
    with pytest.raises(error, match=words):
        holdfast.open(root, create=create)
