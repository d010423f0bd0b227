"""What a table can be read from: other libraries, databases, packed files, arrays of JSON, standard input."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import holdfast
from holdfast.core.rows import encoding
from holdfast.core.sources import json_arrays, source_plan
from holdfast.errors import (
    ColumnTypeError,
    DuplicateColumnError,
    HoldfastError,
    SchemaError,
    SourceError,
    UsageError,
)
from relations import live_rows

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": None}, {"id": 3, "name": "c"}]
ARROW = pa.Table.from_pylist(ROWS)
CSV = "id,name\n1,a\n2,\n3,c\n"


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as opened:
        yield opened


def rows_of(ws: holdfast.Workspace, table: str = "t") -> list[dict[str, Any]]:
    relation = ws.writer.tables.rows(ws.writer.tables.state(table))
    return sorted(live_rows(relation).to_pylist(), key=lambda row: str(row))


# -- other libraries -----------------------------------------------------------------------------


class Stream:
    """What polars, arro3 and others are, seen from here."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def delta_table(folder: Path) -> Any:
    import deltalake

    deltalake.write_deltalake(folder / "delta", ARROW)
    return deltalake.DeltaTable(folder / "delta")


def dataset(folder: Path) -> Any:
    pq.write_table(ARROW, folder / "d.parquet")
    return ds.dataset(folder / "d.parquet")


SOURCES: dict[str, Callable[[Path], Any]] = {
    "a C stream": lambda folder: Stream(ARROW),
    "DuckDB": lambda folder: duckdb.connect().sql(
        "select * from (values (1::bigint, 'a'), (2, null), (3, 'c')) t(id, name)"
    ),
    "Delta": delta_table,
    "a dataset": dataset,
    "a scanner": lambda folder: dataset(folder).scanner(),
    "a list of dicts": lambda folder: [{"id": 1, "name": "a"}, {"id": 2}, {"name": "c", "id": 3}],
    "an index": lambda folder: pd.DataFrame({"name": ["a", None, "c"]}, index=pd.Index([1, 2, 3], name="id")),
}


@pytest.mark.parametrize("what", SOURCES)
@pytest.mark.parametrize("staged", [False, True])
def test_tables_of_other_libraries(
    ws: holdfast.Workspace, tmp_path: Path, what: str, staged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if staged:  # as one that is too large to be held in memory
        monkeypatch.setattr(encoding, "WHOLE_BYTES", -1)
        monkeypatch.setattr(encoding, "MIN_SPLIT_BYTES", 0)
        monkeypatch.setattr(encoding, "INLINE_SPLIT_BYTES", 0)
    ws.track("t", SOURCES[what](tmp_path), row_key=["id"])
    assert rows_of(ws) == ROWS
    [told] = ws.apply("t", snapshot=SOURCES[what](tmp_path) if what != "Delta" else ARROW).tables
    assert told.n_unchanged == 3


def test_a_stream_that_breaks_is_said_to(ws: holdfast.Workspace) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield ARROW.to_batches()[0]
        raise OSError("the server went away")

    reader = pa.RecordBatchReader.from_batches(ARROW.schema, batches())
    with pytest.raises(SourceError, match=r"RecordBatchReader for table 't' cannot be read: .*went away"):
        ws.track("t", reader)
    assert ws.tables() == []


def test_lists_keep_what_they_hold(ws: holdfast.Workspace) -> None:
    large = 2**63 - 1
    ws.track("t", [{"n": large}, {"n": None, "x": 0.5}, {"x": float("nan")}])
    assert rows_of(ws) == sorted(
        [{"n": large, "x": None}, {"n": None, "x": 0.5}, {"n": None, "x": None}], key=str
    )
    with pytest.raises(HoldfastError, match=r"column 'n' of table 'u' mixes .* in the list of rows"):
        ws.track("u", [{"n": 1}, {"n": "one"}])
    with pytest.raises(UsageError, match=r"list of rows for table 'u' has \(1, 2\) in it, which is no dict"):
        ws.track("u", [{"n": 1}, (1, 2)])


def test_an_index_is_not_lost(ws: holdfast.Workspace) -> None:
    frame = pd.DataFrame({"name": ["a", "b"]}, index=["x", "y"])
    with pytest.raises(SchemaError, match=r"no plain range and has no name, for example 'x'. Nothing"):
        ws.track("t", frame)
    with pytest.raises(DuplicateColumnError, match=r"the index .* is called 'name', as its column 1 is"):
        ws.track("t", frame.rename_axis("name"))
    index = pd.MultiIndex.from_tuples([(1, "x"), (2, "y")], names=["a", "b"])
    ws.track("t", pd.DataFrame({"n": [1, 2]}, index=index))
    assert ws.schema("t").names == ("a", "b", "n")
    ws.track("ranged", pd.DataFrame({"n": [1, 2, 3]}).iloc[1:])
    assert ws.schema("ranged").names == ("n",)


def test_types_that_were_declared_for_a_table_do_not_hinder_typed_batches(
    ws: holdfast.Workspace, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(CSV)
    ws.track("t", tmp_path / "t.csv", options={"types": {"id": "int"}})
    pq.write_table(ARROW, tmp_path / "more.parquet")
    ws.apply("t", inserts=tmp_path / "more.parquet")
    ws.apply("t", inserts=ROWS)
    assert ws.n_rows("t") == 9


# -- databases -----------------------------------------------------------------------------------


def test_duckdb_files(ws: holdfast.Workspace, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table t as select * from (values (1::bigint, 'a'), (2, null)) t(id, name)")
    ws.track("t", path, options={"sql": "select * from t"})
    assert rows_of(ws) == ROWS[:2]
    [told] = ws.apply(
        "t", snapshot=f"duckdb:///{path}", options={"sql": "select * from t where id = 1"}
    ).tables
    assert (told.n_deleted, told.n_unchanged) == (1, 1)
    ws.apply("t", inserts=ROWS[1:])  # a batch of another sort: the query is not the table's
    with pytest.raises(SourceError, match=r"DuckDB refuses the query of .*shop.db' for table 't': .*nowhere"):
        ws.apply("t", inserts=path, options={"sql": "select * from nowhere"})
    with pytest.raises(SourceError, match=r"'shop.db' for table 'u' is a database.*--sql 'SELECT"):
        ws.track("u", path)
    (tmp_path / "no.csv").write_text(CSV)
    with pytest.raises(UsageError, match=r"is no database. Nothing was applied"):
        ws.track("u", tmp_path / "no.csv", options={"sql": "select 1"})
    with pytest.raises(SourceError, match=r"there is no file '.*nope.db' for table 'u'.*working folder"):
        ws.track("u", tmp_path / "nope.db", options={"sql": "select 1"})


def test_a_driver_that_is_missing_is_named_and_no_password_told(
    ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "postgresql://me:secret@localhost/shop"
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(UsageError, match="pip install adbc-driver-postgresql") as told:
        ws.track("t", address, options={"sql": "select 1"})
    assert "secret" not in str(told.value)
    with pytest.raises(
        UsageError, match=r"its source is a Table. Nothing was applied.*fetch_record_batch\(\)"
    ):
        ws.track("t", ARROW, options={"sql": "select 1"})


def test_connections_and_cursors_are_no_sources(ws: holdfast.Workspace) -> None:
    """The error says what is: as are options for reading that are not among the options."""
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="adbc-driver-sqlite is not installed")
    with duckdb.connect() as connection:
        with pytest.raises(
            UsageError,
            match=r"sql says how sources are read. .*address of a database: options={'sql': ...}\.",
        ):
            ws.track("t", connection, sql="select 1")  # type: ignore[call-arg]
        with pytest.raises(UsageError, match=r"from a DuckDBPyConnection. .*give .*connection.sql\('SELECT"):
            ws.track("t", connection)
        ws.track("t", connection.sql("select 1 a"))
    with dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select 2 a")
        with pytest.raises(UsageError, match=r"from an AdbcSqliteConnection. .* with options={'sql': "):
            ws.track("u", connection)
        with pytest.raises(UsageError, match=r"from a Cursor. .* cursor.fetch_record_batch\(\)\."):
            ws.apply("t", inserts=cursor)
        ws.apply("t", inserts=cursor.fetch_record_batch())
    assert rows_of(ws) == [{"a": 1}, {"a": 2}]
    with pytest.raises(UsageError, match=r"from an int. Nothing was applied. Next step: give a path"):
        ws.track("u", 5)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:secret@host/db",
        "POSTGRES://me:secret@host/db",
        "postgresql:/me:secret@host/db",
        "postgresql://me:se/secret@host/db",
        "postgresql://me:se@secret@host/db",
        "postgresql://me:se?secret@host/db",
        "postgresql://me:%zzsecret@host/db",
        "postgresql://host/db?user=me&password=secret",
        "postgresql://host/db?password=a@secret",
        "mysql://me:secret@host/db",
        "host=localhost user=me password=secret",
    ],
)
def test_no_password_is_told_whatever_an_address_looks_like(
    ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """With sql and without; where there is a driver, and where there is none."""
    for driver in (True, False):
        if not driver:
            monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
        for options in ({"sql": "select 1"}, {}):
            with pytest.raises(HoldfastError) as told:
                ws.track("t", address, options=options)
            assert "secret" not in str(told.value)
            assert told.value.__cause__ is None
            assert told.value.__suppress_context__ or told.value.__context__ is None
    assert not any(b"secret" in p.read_bytes() for p in Path(str(ws.writer.root)).rglob("*") if p.is_file())


def test_every_part_of_a_stream_may_have_a_dictionary_of_its_own(
    ws: holdfast.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small, and so large that it is staged."""
    parts = [pa.array(["a", "b", None] * 3).dictionary_encode(), pa.array(["b", "c"] * 2).dictionary_encode()]
    rows = pa.table({"id": list(range(13)), "name": pa.chunked_array(parts)})
    ws.track("small", rows.to_reader())
    monkeypatch.setattr(encoding, "WHOLE_BYTES", 1)
    monkeypatch.setattr(encoding, "MIN_SPLIT_BYTES", 1)
    ws.track("large", rows.to_reader())
    assert rows_of(ws, "small") == rows_of(ws, "large")
    assert {row["id"]: row["name"] for row in rows_of(ws, "large")} == dict(
        enumerate(rows["name"].to_pylist())
    )


# -- packed files --------------------------------------------------------------------------------


def zipped(content: bytes, *names: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return sink.getvalue()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "t.csv.gz": gzip.compress,
    "t.csv.bz2": bz2.compress,
    "t.csv.xz": lzma.compress,
    "t.csv.zip": lambda content: zipped(content, "whatever"),
    "t.zip": lambda content: zipped(content, "in/side.csv", "__MACOSX/in/._side.csv"),
    "T.ZIP": lambda content: zipped(content.replace(b",", b"\t"), "t.tsv"),
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_files(ws: holdfast.Workspace, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(PACKED[name](CSV.encode()))
    ws.track("t", tmp_path / name)
    assert rows_of(ws) == ROWS
    (tmp_path / name).write_bytes(PACKED[name](CSV.encode())[:-9])
    with pytest.raises(SourceError, match=r"cannot be (decompressed|told)"):
        ws.apply("t", inserts=tmp_path / name)


def test_an_archive_of_several_files_is_refused(ws: holdfast.Workspace, tmp_path: Path) -> None:
    (tmp_path / "t.csv.zip").write_bytes(zipped(CSV.encode(), "a.csv", "b.csv"))
    with pytest.raises(SourceError, match=r"must have one file in it, and has 2 files: 'a.csv', 'b.csv'"):
        ws.track("t", tmp_path / "t.csv.zip")


# -- arrays of JSON ------------------------------------------------------------------------------

VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{},:\n\u2028é', max_size=6)
NESTED = st.recursive(
    VALUES, lambda v: st.lists(v, max_size=2) | st.dictionaries(st.text('k\\"', max_size=2), v)
)


@example(objects=[{"a": "\\"}, {"a": '\\"]'}], indent=None, block=1)
@given(
    objects=st.lists(st.dictionaries(st.text('ab"\\', max_size=3), NESTED), max_size=5),
    indent=st.sampled_from([None, 0, 2]),
    block=st.integers(1, 40),
)
def test_an_array_is_lines(objects: list[Any], indent: int | None, block: int) -> None:
    text = json.dumps(objects, indent=indent, ensure_ascii=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_arrays, "BLOCK", block)
        lines = json_arrays.as_lines(pa.py_buffer(f" {text}\r\n".encode())).to_pybytes().split(b"\n")
    assert [json.loads(line) for line in lines if line.strip()] == objects


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.zip"])
def test_arrays_of_objects(ws: holdfast.Workspace, tmp_path: Path, name: str) -> None:
    def write(text: str) -> None:
        packed = {"t.json": lambda b: b, "t.json.gz": gzip.compress, "t.zip": lambda b: zipped(b, "x.json")}
        (tmp_path / name).write_bytes(packed[name](text.encode()))

    write("\ufeff\n" + json.dumps(ROWS, indent=2))
    ws.track("t", tmp_path / name)
    assert rows_of(ws) == ROWS
    write(json.dumps([*ROWS, {"id": "four", "name": "d"}], indent=2))
    with pytest.raises(HoldfastError, match=r"object 4 of .* has 'four'"):
        ws.apply("t", inserts=tmp_path / name)
    for wrong, says in (
        ('[{"id": 1, "name": "a\nb"}]', r"object 1 of .* is not one JSON object"),
        ('[{"id": 1}, {"id": 2}] []', r"object 2 of .* is not one JSON object"),
        ('[{"id": 1}, {"id": ', r"cut short: .*, object 2, is '{\"id\":'. .* copy the file again"),
        ('[{"id": 1}, {"id": 2}', r"cut short: .*, object 2, is '{\"id\": 2}'"),
    ):
        write(wrong)
        with pytest.raises(SourceError, match=says):
            ws.apply("t", inserts=tmp_path / name)


@pytest.mark.parametrize("text", [json.dumps(ROWS), "\n".join(map(json.dumps, ROWS))])
def test_json_is_a_format(ws: holdfast.Workspace, tmp_path: Path, text: str) -> None:
    (tmp_path / "rows.txt").write_text(text)
    ws.track("t", tmp_path / "rows.txt", options={"format": "json"})
    assert rows_of(ws) == ROWS
    [told] = ws.apply("t", snapshot=tmp_path / "rows.txt", options={"format": "json"}).tables
    assert told.n_unchanged == 3
    with pytest.raises(UsageError, match=r"'xml' is not known. Formats: .*, json\."):
        ws.track("u", tmp_path / "rows.txt", options={"format": "xml"})


# -- standard input ------------------------------------------------------------------------------


def parquet_bytes() -> bytes:
    sink = io.BytesIO()
    pq.write_table(ARROW, sink)
    return sink.getvalue()


def stream_bytes() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ARROW.schema) as writer:
        writer.write_table(ARROW)
    return sink.getvalue()


PIPED = {
    "csv": CSV.encode(),
    "csv.gz": gzip.compress(CSV.encode()),
    "csv.zip": zipped(CSV.encode(), "x.csv"),
    "jsonl": "\n".join(map(json.dumps, ROWS)).encode(),
    "json": json.dumps(ROWS).encode(),
    "parquet": parquet_bytes(),
    "arrow stream": stream_bytes(),
}


class Piped:
    """Standard input with some bytes in it."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize("what", PIPED)
def test_standard_input(ws: holdfast.Workspace, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Piped(PIPED[what]))
    ws.track("t", "-")
    assert rows_of(ws) == ROWS
    monkeypatch.setattr(sys, "stdin", Piped(PIPED["parquet"]))
    [told] = ws.apply("t", snapshot="-").tables  # of another format than the table's first rows
    assert told.n_unchanged == 3
    with pytest.raises(SourceError, match=r"standard input, the source of table 't', is empty.*read once"):
        ws.apply("t", inserts="-")


def test_a_pipe_that_is_given(ws: holdfast.Workspace, tmp_path: Path) -> None:
    """As a shell does it with <(...): read once, in any format. One with a name is refused."""

    def piped(content: bytes, change: Callable[[str], Any]) -> Any:
        reading, writing = os.pipe()

        def write() -> None:
            with open(writing, "wb") as file:
                file.write(content)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            return change(f"/dev/fd/{reading}")
        finally:
            writer.join(timeout=120)
            os.close(reading)

    piped(gzip.compress(b"id,name\n1,a\n2,\n3,c\n"), lambda pipe: ws.track("t", pipe))
    assert rows_of(ws) == ROWS
    [told] = piped(parquet_bytes(), lambda pipe: ws.apply("t", snapshot=Path(pipe))).tables
    assert told.n_unchanged == 3
    with pytest.raises(SourceError, match=r"the pipe '/dev/fd/\d+', the source of table 't', is empty"):
        piped(b"", lambda pipe: ws.apply("t", inserts=pipe))
    os.mkfifo(tmp_path / "named.csv")
    with pytest.raises(SourceError, match="is a pipe, and a source is read more than once"):
        ws.apply("t", inserts=tmp_path / "named.csv")


def test_a_delta_folder_is_what_its_newest_version_holds(ws: holdfast.Workspace, tmp_path: Path) -> None:
    import deltalake

    place = tmp_path / "delta"
    deltalake.write_deltalake(place, ARROW.slice(0, 1))
    deltalake.write_deltalake(place, ARROW.slice(1), mode="append")
    deltalake.write_deltalake(place, pa.table({"id": [9], "name": ["gone"]}), mode="append")
    deltalake.DeltaTable(place).delete("id = 9")
    ws.track("t", place, row_key=["id"])
    assert rows_of(ws) == ROWS
    deltalake.DeltaTable(place).delete("id = 2")
    [told] = ws.apply("t", snapshot=str(place)).tables
    assert (told.n_deleted, told.n_unchanged) == (1, 2)
    with pytest.raises(UsageError, match="a Delta table has its own"):
        ws.track("u", place, options={"types": {"id": "text"}})


@pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t"])
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zip"])
def test_compressed_files_without_their_ending_are_known(
    ws: holdfast.Workspace, tmp_path: Path, name: str, ending: str
) -> None:
    text = (CSV if name != "t.jsonl" else "\n".join(map(json.dumps, ROWS))).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("t.csv", text)
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    (tmp_path / name).write_bytes(pack[ending](text) if ending in pack else packed.getvalue())
    options = {} if "." in name else {"format": "csv"}
    for encoding_ in ("utf-8", "latin-1"):
        with pytest.raises(
            SourceError,
            match=f"{name} for table 't' is compressed, which .* name it {name}{ending}, or unpack",
        ):
            ws.track("t", tmp_path / name, options={**options, "encoding": encoding_})


def test_an_archive_of_two_files_says_so(ws: holdfast.Workspace, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.csv", "id\n1\n")
        archive.writestr("b.csv", "id\n2\n")
    with pytest.raises(
        SourceError, match=r"'two.zip' for table 't' must have one file in it, and has 2 files: "
    ):
        ws.track("t", tmp_path / "two.zip")
    (tmp_path / "no.zip").write_bytes(b"PK")
    with pytest.raises(SourceError, match=r"no.zip for table 't' cannot be decompressed"):
        ws.track("t", tmp_path / "no.zip")


def test_dates_in_json_are_told(ws: holdfast.Workspace, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    rows = [{"day": "2026-01-02", "at": f"2026-01-02T03:04:0{i}Z", "x": "2026-01", "n": i} for i in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"day": None}]))
    assert ws.track("t", path).notes == (
        "t: day: dates are texts, as JSON has no dates; --types day=date reads them as such",
        "t: at: dates are texts, as JSON has no dates; --types at=timestamp[us,utc] reads them as such",
    )
    assert ws.apply("t", inserts=path).notes == ()
    types = {"day": "date", "at": "timestamp[us,utc]"}
    assert ws.track("u", path, options={"types": types}).notes == ()
    assert [str(t) for t in ws.schema("u").types] == ["date", "timestamp[us,utc]", "text", "int"]


def test_dates_and_times_in_json_are_spelt_as_in_csv(ws: holdfast.Workspace, tmp_path: Path) -> None:
    """Where the type is declared, or known of the table, with the year first."""
    path, other = tmp_path / "t.jsonl", tmp_path / "other.jsonl"
    path.write_text('{"day": "2026/01/02", "open": "9:30"}\n{"day": "2026-1-3", "open": "2:05 PM"}\n')
    other.write_text('{"day": "2026/1/2", "open": "09:30:00"}\n')
    assert ws.track("t", path).notes == (
        "t: day: dates are texts, as JSON has no dates; --types day=date reads them as such",
        "t: open: times of the day are texts, as JSON has no times; --types open=time[us] reads them as such",
    )
    ws.track("u", path, options={"types": {"day": "date", "open": "time[us]"}})
    assert ws.apply("u", deletes=other).tables[0].n_deleted == 1
    for bad, reason in (
        ("31/1/2026", "'day' .* is date; line 2"),
        ("25:00", "'open' .* is time.us.; line 2"),
    ):
        row = {"day": "2026-01-04", "open": "10:00"} | {"open" if ":" in bad else "day": bad}
        other.write_text('{"day": "2026/01/02"}\n' + json.dumps(row) + "\n")
        with pytest.raises(ColumnTypeError, match=f"{reason} of other.jsonl has '{bad}'"):
            ws.apply("u", inserts=other)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1.5", "1.50"),
        ("2", "2.00"),
        ("1.50", "1.50"),
        ("1.5000", "1.50"),
        ("0.1", "0.10"),
        ("1E2", "100.00"),
        ("-15e-1", "-1.50"),
        ("1234567890123456.78", "1234567890123456.78"),  # no float holds it
        ('"1.5"', "1.50"),
        ("null", None),
    ],
)
@pytest.mark.parametrize("form", ['%s\n{"id": 2, "price": "7"}', '%s\n{"id": 2, "price": 7}', "[%s]"])
def test_decimals_are_numbers_of_json(
    ws: holdfast.Workspace, tmp_path: Path, written: str, value: str | None, form: str
) -> None:
    """By their own digits, in batches and in a first file that declares them."""
    path, first = tmp_path / "j.jsonl", tmp_path / "t.csv"
    first.write_text("id,price\n1,1.50\n2,7.00\n")
    path.write_text(form % f'{{"id": 1, "price": {written}}}')
    expected = None if value is None else Decimal(value)
    ws.track("t", first, row_key=["id"])
    ws.apply("t", upserts=path)
    ws.track("u", path, options={"types": {"price": "decimal(18,2)"}})
    for table in ("t", "u"):
        assert {row["id"]: row["price"] for row in rows_of(ws, table)}[1] == expected


@pytest.mark.parametrize(
    "bad", ["1e-3", "1.555", "0.30000000000000004", "1e17", "1e999999999", "true", "NaN"]
)
def test_numbers_of_json_that_are_no_decimals(ws: holdfast.Workspace, tmp_path: Path, bad: str) -> None:
    path = tmp_path / "j.jsonl"
    ws.track("t", pa.table({"id": [1], "price": pa.array([Decimal("1.50")], pa.decimal128(18, 2))}))
    shown = {"true": "True", "NaN": "nan"}.get(bad, bad)
    path.write_text(f'{{"id": 1, "price": 2}}\n{{"id": 2, "price": {bad}}}\n')
    for call in (
        lambda: ws.apply("t", inserts=path),
        lambda: ws.track("u", path, options={"types": {"price": "decimal(18,2)"}}),
    ):
        with pytest.raises(
            ColumnTypeError, match=rf"'price' .*is decimal.18,2.*; line 2 of j.jsonl has {shown}\."
        ):
            call()
    path.write_text('{"id": 1, "price": 2}\n' * 2_000 + '{"id": 1, "price": 2, "other": 1}\n')
    with pytest.raises(SchemaError, match=r"line 2001 of j.jsonl has the key 'other'"):
        ws.apply("t", inserts=path)


def test_columns_of_json_beside_decimals_stay_as_they_are(ws: holdfast.Workspace, tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text(
        '{"a": 1, "x": 1.50, "n": 3, "d": {"e": 1}}\n{"a": 2.5, "x": 2, "n": 18446744073709551615}\n'
    )
    ws.track("t", path, options={"types": {"a": "decimal(9,1)", "n": "uint"}})
    assert [str(t) for t in ws.schema("t").types] == ["decimal(9,1)", "float", "uint"]
    assert rows_of(ws) == [
        {"a": Decimal("1.0"), "x": 1.5, "n": 3},
        {"a": Decimal("2.5"), "x": 2.0, "n": 2**64 - 1},
    ]


def test_endings_that_are_packed_and_nothing_else(tmp_path: Path, ws: holdfast.Workspace) -> None:
    (tmp_path / "t.parquet.bz2").write_bytes(bz2.compress(parquet_bytes()))
    with pytest.raises(SourceError, match="cannot be told from its ending"):
        ws.track("t", tmp_path / "t.parquet.bz2")
    assert source_plan.ENDINGS[".json"] == "jsonl"


# -- nested columns ------------------------------------------------------------------------------

NESTED_ROWS = [
    {"id": 1, "tags": ["x"], "name": "a", "at": {"x": 1}},
    {"id": 2, "tags": None, "name": None, "at": None},
    {"id": 3, "tags": [], "name": "c", "at": {"x": None}},
]


def written(kind: str, folder: Path, rows: list[dict[str, Any]]) -> Any:
    if kind == "jsonl":
        (folder / "n.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "json":
        (folder / "n.json").write_text(json.dumps(rows))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "n.parquet")
    elif kind == "arrow":
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_file(folder / "n.arrow", table.schema) as writer:
            writer.write_table(table)
    else:
        return {"list": rows, "pandas": pd.DataFrame(rows), "pyarrow": pa.Table.from_pylist(rows)}[kind]
    return folder / f"n.{kind}"


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "arrow", "list", "pandas", "pyarrow"])
def test_nested_columns_are_left_out_and_said_to_be(
    ws: holdfast.Workspace, tmp_path: Path, kind: str
) -> None:
    change = ws.track("t", written(kind, tmp_path, NESTED_ROWS), row_key=["id"])
    assert rows_of(ws) == ROWS
    note = "t: tags, at are nested and left out: flatten what you want to keep"
    assert change.notes == (note,)
    assert note in str(change)
    change = ws.apply("t", snapshot=written(kind, tmp_path, NESTED_ROWS))
    assert (change.tables[0].n_unchanged, change.notes) == (3, ())
    [told] = ws.apply("t", upserts=written(kind, tmp_path, ROWS[:2])).tables  # without them it is the same
    assert told.n_unchanged == 2
    nested = [{"id": 4, "name": ["d"]}]
    with pytest.raises(SchemaError, match=r"lack the column name. name is nested and left out.*Nothing was"):
        ws.apply("t", inserts=written(kind, tmp_path, nested))
    with pytest.raises(SchemaError, match=r"column 'name' of table 'u' is nested.*flatten"):
        ws.track("u", written(kind, tmp_path, [{"name": ["d"]}]))


def test_nested_values_without_a_type_in_common(ws: holdfast.Workspace, tmp_path: Path) -> None:
    lines = ['{"id": 1, "x": [1, "a", {}]}', '{"id": 2, "x": 7}', '{"id": 3, "x": {"y": [true]}}']
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    ws.track("t", tmp_path / "t.jsonl")
    assert [row["id"] for row in rows_of(ws)] == [1, 2, 3]
    (tmp_path / "t.jsonl").write_text("\n".join([*lines, '{"id": 4, "y": 1}']))
    with pytest.raises(HoldfastError, match="'y'"):
        ws.apply("t", inserts=tmp_path / "t.jsonl")
