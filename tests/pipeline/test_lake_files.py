"""Lakes: what is written in any format is read back, however it is cut, and a bad file stops no other."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import os
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import SourceError, UsageError
from holdfast.lakes.files import (
    BadFile,
    LakeReadOptions,
    RawTable,
    Unit,
    parquet_tables,
    plan_lake,
    read_unit,
)

Cell = str | None
Table = tuple[list[str], list[list[Cell]]]  # names and rows
BIG = 1 << 30


def read(*sources: Path | str, unit_bytes: int = BIG, **options: Any) -> list[RawTable | BadFile]:
    """All that the sources give; options and units go through JSON, as they do on the way to a task."""
    chosen = LakeReadOptions.from_dict(json.loads(json.dumps(LakeReadOptions(**options).to_dict())))
    units = plan_lake([str(source) for source in sources], chosen, unit_bytes)
    sent = [Unit.from_dict(json.loads(json.dumps(unit.to_dict()))) for unit in units]
    assert sent == units
    return [found for unit in sent for found in read_unit(unit, chosen)]


def tables(found: Iterable[RawTable | BadFile]) -> dict[str, Table]:
    """Name to names and rows of the tables; fails if there is a bad file or a name comes twice."""
    result: dict[str, Table] = {}
    for table in found:
        assert isinstance(table, RawTable), table
        assert table.name not in result
        assert all(len(column) == table.n_rows for column in table.columns)
        assert all(type(value) in (str, type(None)) for column in table.columns for value in column)
        assert len(set(table.header)) == len(table.header) == len(table.columns)
        result[table.name] = table.header, [list(row) for row in zip(*table.columns, strict=True)]
    return result


def bad(found: Iterable[RawTable | BadFile]) -> dict[str, str]:
    return {item.source: item.reason for item in found if isinstance(item, BadFile)}


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def one(folder: Path, content: str | bytes, name: str = "t.csv", **options: Any) -> Table:
    """The only table of a file with this content."""
    found = tables(read(write(folder / name, content), **options))
    assert list(found) == [name]
    return found[name]


def reason(folder: Path, content: str | bytes, name: str = "t.csv", **options: Any) -> str:
    """Why a file with this content is bad; its neighbour must be read all the same."""
    write(folder / name, content)
    write(folder / "zz.csv", "a\n1\n")
    found = read(folder, **options)
    assert [item.name for item in found if isinstance(item, RawTable)] == ["zz.csv"]
    ((source, why),) = bad(found).items()
    assert source.startswith(str(folder / name))
    return why


# --- round trips ------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=6) | (
    st.sampled_from(["", " ", '"', '""', ",", ";", "\t", "\r\n", "\r", "\n", "\x85\u2028", "N/A", "1", "é"])
)
names = texts.map(str.strip).filter(bool)


@st.composite
def some_tables(draw: st.DrawFn, *, missing: bool) -> list[Table]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        header = draw(st.lists(names, min_size=1, max_size=4, unique=True))
        cell = texts | st.none() if missing else texts
        found.append((header, draw(st.lists(st.lists(cell, min_size=len(header), max_size=len(header))))))
    return found


def as_csv(table: Table, delimiter: str = ",", quoting: Any = csv.QUOTE_MINIMAL) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting)
    writer.writerow(table[0])
    writer.writerows(table[1])
    return out.getvalue().encode()


def as_document(table: Table, shape: int) -> dict[str, Any]:
    header, rows = table
    columns = [[row[i] for row in rows] for i in range(len(header))]
    if shape == 0:
        return {"headers": header, "rows": rows}
    if shape == 1:
        return {"headers": header, "columns": columns}
    if shape == 2:
        return {"relation": [[name, *values] for name, values in zip(header, columns, strict=True)]}
    if shape == 3:
        cells = [[{"text": v, "id": 1} for v in row] for row in rows]
        return {"tableHeaders": [[{"text": name} for name in header]], "tableData": cells}
    return {"columns": [{"name": n, "values": v} for n, v in zip(header, columns, strict=True)]}


def as_parquet(table: Table) -> bytes:
    header, rows = table
    columns = [pa.array([row[i] for row in rows], pa.string()) for i in range(len(header))]
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(columns, names=header), sink)
    return sink.getvalue()


def as_zip(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def as_tar(members: dict[str, bytes], mode: Any = "w:gz") -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode=mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return sink.getvalue()


@given(
    some_tables(missing=False),
    st.sampled_from([",", ";", "\t", "|", "\x01"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["folder", "gz", "zip", "stored", "bzip", "tar.gz", "tar"]),
    st.sampled_from([1, 100, BIG]),
)
@example([(["a"], [[""], ['"']])], ",", csv.QUOTE_MINIMAL, "folder", BIG)
def test_delimited_round_trip(
    written: list[Table], delimiter: str, quoting: Any, packing: str, unit_bytes: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        members = {f"d{i % 2}/t{i}.csv": as_csv(t, delimiter, quoting) for i, t in enumerate(written)}
        source = folder
        if packing in ("folder", "gz"):
            for path, content in members.items():
                if packing == "gz":
                    write(folder / f"{path}.gz", gzip.compress(content))
                else:
                    write(folder / path, content)
        elif packing in ("tar", "tar.gz"):
            mode = "w:gz" if packing == "tar.gz" else "w"
            source = write(folder / f"lake.{packing}", as_tar(members, mode))
        else:
            method = {"zip": zipfile.ZIP_DEFLATED, "stored": zipfile.ZIP_STORED, "bzip": zipfile.ZIP_BZIP2}
            source = write(folder / "lake.zip", as_zip(members, method[packing]))
        found = tables(read(source, unit_bytes=unit_bytes, delimiter=delimiter))
    ending = ".gz" if packing == "gz" else ""
    assert found == {f"d{i % 2}/t{i}.csv{ending}": t for i, t in enumerate(written)}


@given(
    some_tables(missing=True),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from(["jsonl", "ndjson", "json", "array", "jsonl.gz", "zip", "tar.gz"]),
    st.sampled_from([1, 50, 200, BIG]),
    st.sampled_from(["\n", "\r\n", "\n\n", "\n \n"]),
    st.booleans(),
)
def test_json_round_trip(
    written: list[Table],
    shape: int,
    ascii_only: bool,
    packing: str,
    unit_bytes: int,
    line_end: str,
    last_end: bool,
) -> None:
    documents = [as_document(table, shape) for table in written]
    lines = [json.dumps(document, ensure_ascii=ascii_only) for document in documents]
    content = (line_end.join(lines) + (line_end if last_end else "")).encode()
    step = line_end.count("\n")
    numbers: Sequence[int] = range(1, step * len(lines) + 1, step)
    with TemporaryDirectory() as folder:
        if packing == "array":
            base, numbers = "t.json", range(1, len(lines) + 1)
            path = write(Path(folder, base), f"[{', '.join(lines)}]")
        elif packing == "zip":
            base, path = "t.jsonl", write(Path(folder, "lake.zip"), as_zip({"t.jsonl": content}))
        elif packing == "tar.gz":
            base, path = (
                "t.jsonl.gz",
                write(Path(folder, "lake.tgz"), as_tar({"t.jsonl.gz": gzip.compress(content)})),
            )
        else:
            base = f"t.{packing}"
            path = write(Path(folder, base), gzip.compress(content) if packing == "jsonl.gz" else content)
        found = tables(read(path, unit_bytes=unit_bytes))
    if packing == "json" and len(lines) == 1:
        expected = {base: written[0]}
    else:
        expected = {f"{base}#{n}": t for n, t in zip(numbers, written, strict=True)}
    assert found == expected


@given(some_tables(missing=True), st.booleans())
def test_parquet_round_trip(written: list[Table], packed: bool) -> None:
    members = {f"t{i}.parquet": as_parquet(table) for i, table in enumerate(written)}
    with TemporaryDirectory() as folder:
        if packed:
            source = write(Path(folder, "lake.zip"), as_zip(members))
        else:
            source = Path(folder)
            for name, content in members.items():
                write(source / name, content)
        assert tables(read(source)) == {f"t{i}.parquet": table for i, table in enumerate(written)}


# --- delimited text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ([], [])),
        ("\n\r\n\n", ([], [])),
        ("a,b", (["a", "b"], [])),
        ("a,b\n1,2\n", (["a", "b"], [["1", "2"]])),
        ("a,b\r1,2\r", (["a", "b"], [["1", "2"]])),
        ("a,b\r\n\r\n1,2\r\n\r\n", (["a", "b"], [["1", "2"]])),
        ("a,b\n1\n1,2,3\n", (["a", "b", "column_3"], [["1", None, None], ["1", "2", "3"]])),
        ("a\n \n", (["a"], [[" "]])),
        ('a\n""\n', (["a"], [[""]])),
        ('a,b\n"x\n,""y""",2\n', (["a", "b"], [['x\n,"y"', "2"]])),
        ('a,b\n5" disk,"a"b\n', (["a", "b"], [['5" disk', "ab"]])),
        (" a ,,a,column_2\n", (["a", "column_2", "a_2", "column_2_2"], [])),
        ("a\x85b,c\n1\u20282,\x1c\n", (["a\x85b", "c"], [["1\u20282", "\x1c"]])),
    ],
)
def test_records(tmp_path: Path, content: str, expected: Table) -> None:
    assert one(tmp_path, content) == expected


def test_without_header(tmp_path: Path) -> None:
    assert one(tmp_path, "1,2\n3\n", header=False) == (["column_1", "column_2"], [["1", "2"], ["3", None]])
    assert one(tmp_path, "", header=False) == ([], [])


@pytest.mark.parametrize(
    ("content", "delimiter"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b;c\n1,5;2,5;x\n2,5;1;y\n", ";"),
        ("a\tb\n1,2,3\tx\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ('a;b\n"x;y,z";2\n', ";"),
        ('a,b\n"x;y;z",2\nu;v,3\n', ","),
        ("text\none; two\nthree, four\n", ","),
        ("a;b\n" + "1;2\n" * 9 + "3\n", ";"),
        ('"a\nb";c\n1;2\n', ";"),
        ("a,b,c\n" + "x|y,1,2\n" * 5_000, ","),
        ("a;b\n" + f"{'x' * 30_000};2\n", ";"),
    ],
)
def test_the_delimiter_is_found(tmp_path: Path, content: str, delimiter: str) -> None:
    assert one(tmp_path, content) == one(tmp_path, content, delimiter=delimiter)


def test_tabs_by_ending(tmp_path: Path) -> None:
    for name in ("t.tsv", "t.TAB"):
        assert one(tmp_path, "a,b\tc\n1,2\t3\n", name) == (["a,b", "c"], [["1,2", "3"]])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    (table,) = read(write(tmp_path / "t.csv", "name,stadt\nJosé,Köln\n".encode(encoding)))
    assert isinstance(table, RawTable)
    assert (table.header, table.columns) == (["name", "stadt"], [["José"], ["Köln"]])
    names = {"utf-8-sig": "utf-8", "cp1252": "windows-1252", "latin-1": "windows-1252"}
    assert table.encoding == names.get(encoding, encoding)
    assert one(tmp_path, "a\nJosé\n".encode(encoding), encoding=encoding) == (["a"], [["José"]])


def test_windows_1252_has_a_text_for_each_byte(tmp_path: Path) -> None:
    assert one(tmp_path, b"a\n\x80\xe9\x81\n") == (["a"], [["€é\x81"]])


def test_large_cells_and_wide_tables(tmp_path: Path) -> None:
    cell = "x" * 1_000_000
    assert one(tmp_path, f'a,b\n"{cell}",1\n') == (["a", "b"], [[cell, "1"]])
    wide = ",".join(["c"] * 1_000)
    header, rows = one(tmp_path, f"{wide}\n{wide}\n")
    assert (len(set(header)), header[:2], header[-1]) == (1_000, ["c", "c_2"], "c_1000")
    assert rows == [["c"] * 1_000]


@given(st.lists(st.lists(st.sampled_from(["", "x", "y"]), max_size=3), max_size=12))
def test_rows_of_any_length_in_chunks(rows: list[list[str]]) -> None:
    from holdfast.lakes.files import delimited

    kept = [row for row in rows if row]
    expected = [list(column) for column in itertools.zip_longest(*kept)]
    with pytest.MonkeyPatch.context() as patch:
        for chunk in (1, 2, 5):
            patch.setattr(delimited, "CHUNK", chunk)
            assert delimited._columns(iter(rows)) == (expected, len(kept))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a,b\n1,\x002\n", "NUL"),
        ("a,b\n1,\0\n".encode("utf-16"), "NUL"),
        (b"\xff\xfea", "utf-16"),
        (bytes(range(1, 256)) * 20, "control characters"),
        (b'a,b\n1,2\n"3,4\n5,6\n', "record 3"),
        (b'"', "record 1"),
        (b'a\nx,"\n', "record 2"),
        ("a," * 100_000 + "\n" + "1\n" * 100_000, "different in length"),
    ],
)
def test_bad_texts(tmp_path: Path, content: str | bytes, why: str) -> None:
    assert why in reason(tmp_path, content)


def test_bad_for_the_wanted_encoding(tmp_path: Path) -> None:
    assert reason(tmp_path, b"a\nb\xe9\n", encoding="utf-8") == "is not utf-8 text at byte 3"


# --- JSON -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (
            '{"headers": ["a", 1], "rows": [[1.50, true], [null, 12345678901234567890123], ["x"]]}',
            (["a", "1"], [["1.50", "true"], [None, "12345678901234567890123"], ["x", None]]),
        ),
        ('{"headers": ["a", "b"], "rows": []}', (["a", "b"], [])),
        ('{"headers": ["a"], "rows": [["1", "2"]]}', (["a", "column_2"], [["1", "2"]])),
        ('{"rows": [[1e5, false]]}', (["column_1", "column_2"], [["1e5", "false"]])),
        ('{"headers": ["a", "b"], "columns": [["1", "2"], ["3"]]}', (["a", "b"], [["1", "3"], ["2", None]])),
        ('{"relation": [["a", "1"], ["", "2"]]}', (["a", "column_2"], [["1", "2"]])),
        ('{"relation": [["a", "1"]], "hasHeader": false}', (["column_1"], [["a"], ["1"]])),
        ('{"columns": [{"name": "a", "values": [1]}, {"values": [2]}]}', (["a", "column_2"], [["1", "2"]])),
        (
            '{"tableHeaders": [[{"text": "x"}, {"text": "x"}], [{"text": "x"}, {"text": "y"}]],'
            ' "tableData": [[{"text": "1"}, {"text": null}]]}',
            (["x", "x y"], [["1", None]]),
        ),
        (
            '{"headers": ["a"], "rows": [[[1, "2", {"é": [null, 1.0]}]], [{"no": 1}], [{"text": 2}]]}',
            (["a"], [['[1, "2", {"é": [null, 1.0]}]'], ['{"no": 1}'], ["2"]]),
        ),
        (r'{"headers": ["\ud83d\ude00"], "rows": [["\ud800x"]]}', (["\U0001f600"], [["\ufffdx"]])),
        ('{"headers": ["a"], "rows": [[NaN], [""]]}', (["a"], [["NaN"], [""]])),
        ('{"headers": [], "rows": []}', ([], [])),
    ],
)
def test_documents(tmp_path: Path, document: str, expected: Table) -> None:
    assert one(tmp_path, document, "t.json") == expected


def test_fields_by_option(tmp_path: Path) -> None:
    document = '{"meta": {"id": 7}, "t": {"h": ["a"], "d": [[{"v": {"x": "1"}}], [2]]}}'
    found = tables(
        read(
            write(tmp_path / "t.jsonl", document),
            json_name="meta.id",
            json_headers="t.h",
            json_rows="t.d",
            json_text="v.x",
        )
    )
    assert found == {"7": (["a"], [["1"], ["2"]])}
    document = '{"names": ["a"], "cols": [["1", "2"]], "rows": 5}'
    assert one(tmp_path, document, "u.json", json_headers="names", json_columns="cols") == (
        ["a"],
        [["1"], ["2"]],
    )


@pytest.mark.parametrize(
    ("content", "options", "why"),
    [
        ("", {}, "is empty"),
        ('{"headers": ["a"]', {}, "is not JSON"),
        ('{"a": 1}', {}, "a list of rows in 'rows' or 'tableData', or a list of columns in 'columns'"),
        ('{"a": 1}', {"json_rows": "x.y"}, "no list in the field 'x.y'"),
        ('{"rows": [1]}', {}, "row 1"),
        ('{"columns": [1]}', {}, "'columns'"),
        ('{"columns": [{"name": "a"}]}', {}, "'values'"),
        ("12", {}, "no JSON object"),
        ('{"rows":\n []}\n{"rows":\n []}', {}, "Extra data at line 3"),
        ('{"rows": ["\x01"]}', {}, "Invalid control character at character"),
        ("[" * 100_000, {}, "nested"),
        ('{"rows": [[' + "[" * 5_000 + "]" * 5_000 + "]]}", {}, "nested"),
        (b"PK\0\0", {}, "NUL"),
    ],
)
def test_bad_documents(tmp_path: Path, content: str | bytes, options: dict[str, str], why: str) -> None:
    assert why in reason(tmp_path, content, "t.json", **options)


def test_a_bad_line_stops_no_other(tmp_path: Path) -> None:
    good = '{"headers": ["é"], "rows": [["ü"]]}'
    lines = [good.encode(), b"{oops", good.encode("cp1252"), b"", b"[1]", b'{"x": "\0"}', good.encode()]
    path = write(tmp_path / "t.jsonl", b"\xef\xbb\xbf" + b"\n".join(lines))
    for unit_bytes in (1, 60, BIG):
        found = read(path, unit_bytes=unit_bytes)
        assert [t.name for t in found if isinstance(t, RawTable)] == ["t.jsonl#1", "t.jsonl#3", "t.jsonl#7"]
        assert {t.header[0] for t in found if isinstance(t, RawTable)} == {"é"}
        assert sorted(bad(found)) == [f"{path}#{n}" for n in (2, 5, 6)]
    assert next(iter(bad(found).values())).startswith("is not JSON: Expecting property name")


def test_many_bad_lines_are_told_shortly(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"a": 1}\n' * 1_000 + '{"rows": [["x"]]}\n')
    found = read(path)
    assert [t.name for t in found if isinstance(t, RawTable)] == ["t.jsonl#1001"]
    assert len(bad(found)) == 101
    assert bad(found)[str(path)] == "has 900 more documents that cannot be read"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig", "cp1252", "shift_jis"])
@pytest.mark.parametrize("unit_bytes", [1, BIG])
def test_json_lines_in_other_encodings(tmp_path: Path, encoding: str, unit_bytes: int) -> None:
    content = '{"rows": [["Köln"]]}\n{"rows": [["x"]]}\n' if encoding != "shift_jis" else '{"rows": [["ソ"]]}'
    path = write(tmp_path / "t.jsonl", content.encode(encoding))
    found = tables(read(path, unit_bytes=unit_bytes, encoding=encoding))
    assert len(found) == content.count("rows")
    if encoding in ("utf-16", "utf-8-sig", "cp1252"):
        assert tables(read(path, unit_bytes=unit_bytes)) == found


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20), st.integers(1, 80), st.booleans())
def test_line_numbers_of_parts(lengths: list[int], unit_bytes: int, last_end: bool) -> None:
    """Lines of any length, empty ones too: each is in one part, under its own number."""
    from holdfast.lakes.files import units as plan

    lines = ["" if n == 0 else '{"rows": [["' + "x" * n + '"]]}' for n in lengths]
    content = "\n".join(lines) + ("\n" if last_end else "")
    expected = {f"t.jsonl#{i}": [["x" * n]] for i, n in enumerate(lengths, 1) if n}
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = write(Path(folder, "t.jsonl"), content)
        for block in (7, 1 << 20):
            patch.setattr(plan, "BLOCK", block)
            found = tables(read(path, unit_bytes=unit_bytes))
            assert {name: rows for name, (_, rows) in found.items()} == expected


# --- Parquet ----------------------------------------------------------------------------------------


def test_parquet_values_as_a_csv_spells_them(tmp_path: Path) -> None:
    import datetime as dt
    from decimal import Decimal

    moment = dt.datetime(2024, 1, 31, 10, 0, 0, 250_000)
    columns = {
        "int": (pa.array([1, None], pa.int64()), "1"),
        "uint": (pa.array([2**64 - 1, None], pa.uint64()), "18446744073709551615"),
        "float": (pa.array([0.1, None]), "0.1"),
        "whole": (pa.array([3.0, None]), "3.0"),
        "float32": (pa.array([0.1, None], pa.float32()), "0.1"),
        "bool": (pa.array([True, None]), "true"),
        "date": (pa.array([moment.date(), None]), "2024-01-31"),
        "timestamp": (pa.array([moment, None], pa.timestamp("us")), "2024-01-31 10:00:00.25"),
        "second": (
            pa.array([moment.replace(microsecond=0), None], pa.timestamp("ms")),
            "2024-01-31 10:00:00",
        ),
        "utc": (pa.array([moment, None], pa.timestamp("us", "UTC")), "2024-01-31 10:00:00.25Z"),
        "zone": (pa.array([moment, None], pa.timestamp("us", "Asia/Kolkata")), "2024-01-31 10:00:00.25Z"),
        "time": (pa.array([moment.time(), None], pa.time64("us")), "10:00:00.25"),
        "decimal": (pa.array([Decimal("1.50"), None], pa.decimal128(5, 2)), "1.50"),
        "bytes": (pa.array([b"caf\xc3\xa9", None]), "café"),
        "rubbish": (pa.array([b"\xff\x00", None]), "ff00"),
        "list": (pa.array([[1, None], None]), "[1, null]"),
        "struct": (pa.array([{"é": 1.5}, None]), '{"é": 1.5}'),
        "dictionary": (pa.array(["x", None]).dictionary_encode(), "x"),
        "large": (pa.array(["x", None], pa.large_string()), "x"),
        "duration": (pa.array([dt.timedelta(hours=1), None]), "1:00:00"),
    }
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({name: values for name, (values, _) in columns.items()}), path)
    header, rows = tables(read(path))["t.parquet"]
    assert dict(zip(header, rows[0], strict=True)) == {name: text for name, (_, text) in columns.items()}
    assert rows[1] == [None] * len(columns)


def test_parquet_of_repeated_names_and_no_columns(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(["x"]), pa.array(["y"]), pa.nulls(1)], names=["a", "a", " "])
    pq.write_table(twice, tmp_path / "t.parquet")
    pq.write_table(pa.table({}), tmp_path / "u.parquet")
    assert tables(read(tmp_path)) == {
        "t.parquet": (["a", "a_2", "column_3"], [["x", "y", None]]),
        "u.parquet": ([], []),
    }


def test_bad_parquet(tmp_path: Path) -> None:
    whole = as_parquet((["a"], [["x"]]))
    assert "Parquet" in reason(tmp_path / "1", b"", "t.parquet")
    assert "Parquet" in reason(tmp_path / "2", b"rubbish of no kind", "t.parquet")
    assert "Parquet" in reason(tmp_path / "3", whole[:-9], "t.parquet")
    assert "Parquet" in reason(tmp_path / "4", whole[:4] + b"\xff" * 30 + whole[34:], "t.parquet")


# --- folders and archives ---------------------------------------------------------------------------


def test_names_and_what_is_left_out(tmp_path: Path) -> None:
    for name in ("a.csv", "s/B.CSV", "s/t/c.txt", ".h.csv", "_s/x.csv", "_x.csv", ".git/y.csv", "README.md"):
        write(tmp_path / name, "a\n1\n")
    write(tmp_path / "noending", "x")
    write(tmp_path / "s/lake.zip", as_zip({"m/d.csv": b"a\n1\n", "__MACOSX/._d.csv": b"", "x.md": b""}))
    found = read(tmp_path)
    assert list(tables(found)) == ["s/lake.zip!m/d.csv", "a.csv", "s/B.CSV", "s/t/c.txt"]
    sources = {t.name: t.source for t in found if isinstance(t, RawTable)}
    assert sources["s/B.CSV"] == f"{tmp_path}/s/B.CSV"
    assert sources["s/lake.zip!m/d.csv"] == f"{tmp_path}/s/lake.zip!m/d.csv"
    assert list(tables(read(tmp_path / "_x.csv"))) == ["_x.csv"]
    assert list(tables(read(tmp_path / "a.csv", tmp_path / "s/lake.zip"))) == ["a.csv", "m/d.csv"]


def test_the_working_folder_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "lake/a.csv", "a\n1\n")
    monkeypatch.chdir(tmp_path)
    units = plan_lake(["lake"], LakeReadOptions(), BIG)
    monkeypatch.chdir("/")
    assert [t.source for t in read_unit(units[0], LakeReadOptions())] == [f"{tmp_path}/lake/a.csv"]


@pytest.fixture
def linked(tmp_path: Path) -> Path:
    """A folder with links: out of it, within it, back to itself, to nothing."""
    write(tmp_path / "lake/z/a.csv", "a\n1\n")
    write(tmp_path / "other/b.csv", "a\n1\n")
    write(tmp_path / "other/secret.csv", "password\nhunter2\n")
    os.symlink(tmp_path / "lake", tmp_path / "lake/loop")
    os.symlink(tmp_path / "lake/z", tmp_path / "lake/again")
    os.symlink(tmp_path / "other", tmp_path / "lake/other")
    os.symlink(tmp_path / "other/secret.csv", tmp_path / "lake/notes.csv")
    os.symlink(tmp_path / "other/secret.csv", tmp_path / "lake/notes.md")
    os.symlink("nowhere", tmp_path / "lake/lost.csv")
    os.symlink("me.csv", tmp_path / "lake/me.csv")
    return tmp_path / "lake"


def test_links_are_left_out_and_told(linked: Path) -> None:
    found = read(linked)
    assert [t.name for t in found if isinstance(t, RawTable)] == ["z/a.csv"]
    left_out = ["again", "loop", "lost.csv", "me.csv", "notes.csv", "other"]
    why = "is a symbolic link, which is not followed (--follow-symlinks)"
    assert bad(found) == {f"{linked}/{name}": why for name in left_out}


def test_links_that_are_to_be_followed(linked: Path) -> None:
    found = read(linked, follow_symlinks=True)
    names = ["notes.csv", "other/b.csv", "other/secret.csv", "z/a.csv"]
    assert sorted(t.name for t in found if isinstance(t, RawTable)) == names
    assert bad(found)[f"{linked}/lost.csv"] == "cannot be read: No such file or directory"
    assert "symbolic links" in bad(found)[f"{linked}/me.csv"]
    assert len(bad(found)) == 2


def test_a_source_may_be_a_link(linked: Path, tmp_path: Path) -> None:
    """It was named by the user; what lies below it was not."""
    os.symlink(linked, tmp_path / "door")
    assert list(tables(read(linked / "notes.csv"))) == ["notes.csv"]
    assert [t.name for t in read(tmp_path / "door") if isinstance(t, RawTable)] == ["z/a.csv"]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "t.json", "t.zip", "t.tar", "t.csv.gz"])
def test_a_file_that_becomes_a_link_is_not_read(tmp_path: Path, name: str) -> None:
    """Between the plan and the reading."""
    path = write(tmp_path / "lake" / name, as_zip({"a.csv": b"a\n1\n"}) if name == "t.zip" else b"{}\n" * 99)
    os.rename(path, tmp_path / name)
    for unit_bytes in (BIG, 1):
        path.unlink(missing_ok=True)
        path.write_bytes((tmp_path / name).read_bytes())
        units = plan_lake([str(tmp_path / "lake")], LakeReadOptions(), unit_bytes)
        path.unlink()
        path.symlink_to(tmp_path / name)
        found = [item for unit in units for item in read_unit(unit, LakeReadOptions())]
        assert found
        assert all("is a symbolic link" in item.reason for item in found if isinstance(item, BadFile))
        assert not [item for item in found if isinstance(item, RawTable)]


@pytest.mark.parametrize("follow", [False, True])
def test_only_regular_files_are_read(tmp_path: Path, follow: bool) -> None:
    """None of these ends by itself, and some would make us wait for ever."""
    lake = tmp_path / "lake"
    write(lake / "a.csv", "a\n1\n")
    os.mkfifo(tmp_path / "pipe")
    for ending in ("csv", "csv.gz", "parquet", "jsonl", "json", "zip", "tar", "tgz"):
        os.mkfifo(lake / f"fifo.{ending}")
        os.symlink(tmp_path / "pipe", lake / f"pipe.{ending}")
        os.symlink("/dev/zero", lake / f"zero.{ending}")
    found = read(lake, follow_symlinks=follow)
    assert [t.name for t in found if isinstance(t, RawTable)] == ["a.csv"]
    reasons = bad(found)
    assert len(reasons) == 24
    for source, why in reasons.items():
        expected = "is not a regular file" if follow or "fifo" in source else "is a symbolic link"
        assert why.startswith(expected)
    with pytest.raises(SourceError, match=r"fifo.csv' is not a regular file. Expected: a folder"):
        read(lake / "fifo.csv")


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl", "t.json", "t.zip", "t.tar"])
def test_a_file_that_becomes_a_pipe_does_not_block(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, as_zip({"a.csv": b"a\n1\n"}) if name == "t.zip" else b"{}\n")
    units = plan_lake([str(tmp_path)], LakeReadOptions(), BIG)
    path.unlink()
    os.mkfifo(path)
    (found,) = (item for unit in units for item in read_unit(unit, LakeReadOptions()))
    assert isinstance(found, BadFile)
    assert "is not a regular file" in found.reason


@pytest.mark.skipif(not os.path.exists("/proc/kmsg"), reason="there is no /proc/kmsg")
def test_files_that_say_they_are_empty_are_taken_at_their_word(tmp_path: Path) -> None:
    """/proc/kmsg is a regular file of no bytes, and reading it waits for the kernel's next message."""
    write(tmp_path / "a.csv", "a\n1\n")
    for name in ("/proc/kmsg", "/proc/self/maps"):
        for ending in ("csv", "jsonl", "tar", "zip", "parquet"):
            os.symlink(name, tmp_path / f"{os.path.basename(name)}.{ending}")
    found = read(tmp_path, follow_symlinks=True)
    assert [t.name for t in found if isinstance(t, RawTable) and t.columns] == ["a.csv"]


def test_an_unreadable_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.csv", "a\n1\n")
    write(tmp_path / "closed/b.csv", "a\n1\n")
    scandir = os.scandir

    def guarded(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = read(tmp_path)
    assert bad(found) == {f"{tmp_path}/closed": "folder cannot be read: Permission denied"}
    assert [t.name for t in found if isinstance(t, RawTable)] == ["a.csv"]


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/caf\xe9.csv", "wb") as file:
        file.write(b"a\n1\n")
    assert tables(read(tmp_path)) == {r"caf\xe9.csv": (["a"], [["1"]])}


@pytest.mark.parametrize("pack", [as_zip, as_tar])
def test_names_of_members_stay_names(tmp_path: Path, pack: Any) -> None:
    members = dict.fromkeys(
        ["./a.csv", "../../b.csv", "/etc/c.csv", "d/e.tsv", ".h/x.csv", "in.zip"], b"x\n1\n"
    )
    path = write(tmp_path / ("lake.zip" if pack is as_zip else "lake.tgz"), pack(members))
    assert list(tables(read(path))) == ["a.csv", "../../b.csv", "etc/c.csv", "d/e.tsv"]
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_archives(tmp_path: Path) -> None:
    members = {f"{n}.csv": as_csv(([n], [[f"{n}{i}"] for i in range(3_000)])) for n in "abc"}
    packed = as_zip(members)
    middle = packed.index(b"b.csv") + 2_000
    damaged = write(tmp_path / "1.zip", packed[:middle] + bytes(50) + packed[middle + 50 :])
    found = read(damaged)
    assert [t.name for t in found if isinstance(t, RawTable)] == ["a.csv", "c.csv"]
    assert list(bad(found)) == [f"{damaged}!b.csv"]
    assert bad(read(write(tmp_path / "2.zip", packed[:-30]))) == {
        f"{tmp_path}/2.zip": "is cut short or no zip archive"
    }
    # In a tar archive, only what stands before the damage is sure.
    plain = as_tar(members, "w")
    for name, content in (
        ("3.tgz", gzip.compress(plain)[:-2_000]),
        ("4.tar", plain[: len(plain) // 2]),
        ("5.tar", plain[: plain.index(b"c.csv")] + b"?" * 512 + plain[plain.index(b"c.csv") + 512 :]),
    ):
        found = read(write(tmp_path / name, content))
        assert isinstance(found[0], RawTable)
        assert found[0].name == "a.csv"
        assert isinstance(found[-1], BadFile)
        assert found[-1].source.startswith(f"{tmp_path}/{name}")
    assert isinstance(read(write(tmp_path / "6.tgz", b"no archive"))[0], BadFile)
    assert isinstance(read(write(tmp_path / "7.tar", b"no archive"))[0], BadFile)


MB = 1 << 20
OF_ZEROS = b"a\n" + b"0" * (8 * MB)
LIMITED = "has more than 1,048,576 bytes (--max-file-bytes)"


def sparse_tar(real_size: int) -> bytes:
    """A header of 512 bytes: a file of which nothing but a hole is stored."""
    info = tarfile.TarInfo("t.csv")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"\x80" + real_size.to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    return bytes(header[:512])


def claiming_tar(size: int, name: str = "t.csv", kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header of 512 bytes that claims a member of this size, and nothing behind it."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)[:512]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("t.csv", OF_ZEROS, LIMITED),
        ("t.csv.gz", gzip.compress(OF_ZEROS), LIMITED),
        ("t.csv.gz", gzip.compress(OF_ZEROS[:MB]) * 3, LIMITED),
        ("t.json.gz", gzip.compress(b"[" * 8 * MB), LIMITED),
        ("t.jsonl.gz", gzip.compress(b" " * 8 * MB), LIMITED),
        ("t.json", b"[" * 2 * MB, LIMITED),
        ("t.jsonl", b" " * 2 * MB, LIMITED),
        ("t.jsonl", b"[" * 2 * MB, LIMITED),
        ("t.zip", as_zip({"t.csv": OF_ZEROS}), LIMITED),
        ("t.zip", as_zip({"t.csv": OF_ZEROS}, zipfile.ZIP_BZIP2), LIMITED),
        ("t.zip", as_zip({"t.csv.gz": gzip.compress(OF_ZEROS)}), LIMITED),
        ("t.zip", as_zip({f"{i}.csv": b"a\n" + b"x" * 200_000 for i in range(9)}), LIMITED),
        ("t.tar", as_tar({"t.csv": OF_ZEROS}, "w"), LIMITED),
        ("t.tgz", as_tar({"t.csv": OF_ZEROS}), LIMITED),
        ("t.tgz", as_tar({"t.csv.gz": gzip.compress(OF_ZEROS)}), LIMITED),
        ("t.tgz", as_tar({"t.bin": OF_ZEROS}), LIMITED),
        ("t.parquet", as_parquet((["a"], [["x"]] * 2 * MB)), LIMITED),
        ("t.parquet", as_parquet((["a"], [[None]] * 2 * MB)), LIMITED),
        ("t.tar", claiming_tar(1 << 40), "unexpected end of data"),
        ("t.tar", claiming_tar(1 << 62, "t.jsonl"), "unexpected end of data"),
        ("t.tar", claiming_tar(1 << 40, "t.bin"), "is cut short"),
        ("t.tgz", gzip.compress(claiming_tar(1 << 40)), "unexpected end of data"),
        ("t.tar", claiming_tar(1 << 40, "t.csv", tarfile.GNUTYPE_LONGNAME), "header of a member has"),
        ("t.tar", claiming_tar(1 << 40, "t.csv", tarfile.XHDTYPE), "header of a member has"),
        ("t.tar", sparse_tar(1 << 40), "sparse"),
    ],
    ids=itertools.count(),  # compressed bytes differ from run to run
)
def test_bombs(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    """Whatever they claim or unpack to, memory stays small, they are told, and their neighbours are read."""
    write(tmp_path / name, content)
    write(tmp_path / "zz.csv", "a\n1\n")
    tracemalloc.start()
    found = read(tmp_path, max_file_bytes=MB)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "zz.csv" in [item.name for item in found if isinstance(item, RawTable)]
    assert any(why in reason for reason in bad(found).values()), bad(found)
    assert most < 12 * MB


def test_a_file_of_holes(tmp_path: Path) -> None:
    for name in ("t.csv", "t.jsonl", "t.json", "t.tar", "t.zip", "t.parquet"):
        write(tmp_path / name, "")
        os.truncate(tmp_path / name, 1 << 40)
    found = read(tmp_path)
    assert len(found) == 6
    assert all(
        why.endswith("has more than 268,435,456 bytes (--max-file-bytes)") for why in bad(found).values()
    )


def test_texts_of_parquet_cost_their_memory_once(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000, pa.int32()), pa.array(["x" * 50_000]))
    pq.write_table(pa.table({"a": column}), tmp_path / "t.parquet", store_schema=False)
    (table,) = read(tmp_path)
    assert isinstance(table, RawTable)
    assert table.columns == [["x" * 50_000] * 50_000]
    assert len({*map(id, table.columns[0])}) < 10


def test_streams_may_be_larger_than_the_limit(tmp_path: Path) -> None:
    """They are not held: JSON lines and archives have a limit for each line and member."""
    lines = b"".join(b'{"rows": [["%b"]]}\n' % os.urandom(500).hex().encode() for _ in range(500))
    limit = 200_000
    assert len(lines) > 2 * limit
    members = {f"{i}.csv": b"a\n" + os.urandom(50_000).hex().encode() for i in range(5)}
    write(tmp_path / "a.jsonl", lines)
    write(tmp_path / "b.jsonl.gz", gzip.compress(lines, 1))
    write(tmp_path / "c.zip", as_zip({"t.jsonl": lines, **members}))
    write(tmp_path / "d.tgz", as_tar({"t.jsonl": lines, **members}))
    write(tmp_path / "e.tar", as_tar({"t.jsonl": lines, **members}, "w"))
    for unit_bytes in (BIG, limit):
        assert len(tables(read(tmp_path, unit_bytes=unit_bytes, max_file_bytes=limit))) == 5 * 500 + 3 * 5


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "json"])
def test_a_line_that_is_too_long_stops_no_other(tmp_path: Path, ending: str) -> None:
    lines = [b'{"rows": [["%d"]]}' % i for i in range(5)]
    lines[2] = b'{"rows": [["' + b"2" * 3 * MB + b'"]]}'
    content = b"\n".join(lines)
    path = write(tmp_path / f"t.{ending}", gzip.compress(content) if ending.endswith("gz") else content)
    for unit_bytes in (BIG, 30, 1) if ending != "json" else (1,):
        found = read(tmp_path, unit_bytes=unit_bytes, max_file_bytes=MB)
        names = [t.name for t in found if isinstance(t, RawTable)]
        if ending == "jsonl.gz":  # what follows is not believed
            assert bad(found)
            continue
        assert names == [f"{path.name}#{i}" for i in (1, 2, 4, 5)]
        assert bad(found) == {f"{path}#3": LIMITED}


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.tar", "t.zip", "t.parquet"])
def test_a_file_that_is_cut_while_it_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error, and nothing of it is mapped: that would end the process."""
    table = (["a"], [[f"text {i}"] for i in range(30_000)])
    member = {"t.csv": as_csv(table)}
    contents = {
        "t.csv": as_csv(table),
        "t.jsonl": b'{"rows": [["x"]]}\n' * 30_000,
        "t.tar": as_tar(member, "w"),
        "t.zip": as_zip(member, zipfile.ZIP_STORED),
        "t.parquet": as_parquet(table),
    }
    path = write(tmp_path / name, contents[name])
    units = plan_lake([str(tmp_path)], LakeReadOptions(), 50_000)
    fstat = os.fstat

    def cut(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        if status.st_size == len(contents[name]):
            os.truncate(path, 1_000)
        return status

    monkeypatch.setattr(os, "fstat", cut)
    found = [item for unit in units for item in read_unit(unit, LakeReadOptions())]
    assert bad(found)
    assert len(tables(item for item in found if isinstance(item, RawTable))) < 100


def test_a_member_larger_than_it_says(tmp_path: Path) -> None:
    packed = bytearray(as_zip({"a.csv": b"a\n" + b"1\n" * 10_000}))
    entry = packed.rindex(b"PK\1\2")
    packed[entry + 24 : entry + 28] = (10).to_bytes(4, "little")
    assert "checksum" in bad(read(write(tmp_path / "t.zip", bytes(packed))))[f"{tmp_path}/t.zip!a.csv"]


def test_encrypted_members(tmp_path: Path) -> None:
    packed = bytearray(as_zip({"a.csv": b"a\n"}))
    packed[packed.rindex(b"PK\1\2") + 8] |= 1
    assert list(bad(read(write(tmp_path / "t.zip", bytes(packed)))).values()) == ["is encrypted"]


def test_truncated_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(b"a\n" + os.urandom(500).hex().encode())
    assert reason(tmp_path / "1", packed[:-20], "t.csv.gz") == "is cut short"
    assert "gzip" in reason(tmp_path / "2", b"a,b\n1,2\n", "t.csv.gz")
    lines = gzip.compress(
        b"".join(b'{"rows": [["%b"]]}\n' % os.urandom(20).hex().encode() for _ in range(999))
    )
    found = read(write(tmp_path / "3/t.jsonl.gz", lines[: len(lines) // 2]))
    assert isinstance(found[0], RawTable)
    assert found[-1] == BadFile(f"{tmp_path}/3/t.jsonl.gz", "is cut short")


def test_large_members_are_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.lakes.files import archives

    members = {
        "t.jsonl": b'{"rows": [["x"]]}\n' * 3,
        "u.csv": b"a\n1\n",
        "v.parquet": as_parquet((["a"], [["1"]])),
    }
    path = write(tmp_path / "lake.zip", as_zip(members))
    expected = read(path)
    monkeypatch.setattr(archives, "LARGE", 0)
    assert read(path) == expected
    assert len(tables(expected)) == 5


SAMPLE: Table = (["a", "b"], [[f"x{i}", "é,\n"] for i in range(20)])
DOCUMENTS = "\n".join(json.dumps(as_document(SAMPLE, shape)) for shape in range(5)).encode()
MEMBERS = {"a.csv": as_csv(SAMPLE), "b.jsonl": DOCUMENTS, "c.parquet": as_parquet(SAMPLE)}
WHOLE = {
    "t.csv": as_csv(SAMPLE),
    "t.csv.gz": gzip.compress(as_csv(SAMPLE)),
    "t.jsonl": DOCUMENTS,
    "t.jsonl.gz": gzip.compress(DOCUMENTS),
    "t.json": DOCUMENTS,
    "t.parquet": as_parquet(SAMPLE),
    "t.zip": as_zip(MEMBERS),
    "t.tar": as_tar(MEMBERS, "w"),
    "t.tar.gz": as_tar(MEMBERS),
}


@settings(max_examples=200)
@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_damage_is_told_not_raised(name: str, data: st.DataObject) -> None:
    """Whatever happens to a file's bytes, it gives tables of texts and bad files."""
    content = WHOLE[name]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content)))
        content = (
            content[:at] + data.draw(st.binary(max_size=8)) + content[at + data.draw(st.integers(0, 9)) :]
        )
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content)))]
    with TemporaryDirectory() as folder:
        for found in read(
            write(Path(folder, name), content), unit_bytes=data.draw(st.sampled_from([1, BIG]))
        ):
            if isinstance(found, BadFile):
                assert len(found.reason) < 300
            else:
                assert all(len(column) == found.n_rows for column in found.columns)
                "".join(v or "" for column in (found.header, *found.columns) for v in column).encode()


@pytest.mark.parametrize("index", [2, -1])
def test_a_damaged_dictionary_is_noticed(index: int) -> None:
    """As a Parquet file has it whose pages were altered."""
    column: Any = pa.DictionaryArray.from_arrays(pa.array([0, index], pa.int32()), ["a", "b"], safe=False)
    with pytest.raises(pa.ArrowInvalid):
        parquet_tables._texts(pa.chunked_array([column]))


@settings(max_examples=20)
@given(st.lists(st.integers(0, 500), min_size=1, max_size=30), st.integers(1, 3_000), st.booleans())
def test_units_hold_every_file_once(sizes: list[int], unit_bytes: int, packed: bool) -> None:
    members = {f"t{i:02}.csv": b"x" * size for i, size in enumerate(sizes)}
    with TemporaryDirectory() as folder:
        if packed:
            source = write(Path(folder, "lake.zip"), as_zip(members))
        else:
            source = Path(folder)
            for name, content in members.items():
                write(source / name, content)
        units = plan_lake([str(source)], LakeReadOptions(), unit_bytes)
    assert [path for unit in units for path in unit.paths] == sorted(members)
    assert all(len(unit.paths) == 1 or unit.n_bytes <= unit_bytes + 1_000 for unit in units)


def test_units_of_tiny_files_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.lakes.files import units as plan

    monkeypatch.setattr(plan, "MOST_FILES", 4)
    for i in range(10):
        write(tmp_path / f"{i}.csv", "")
    assert [len(unit.paths) for unit in plan_lake([str(tmp_path)], LakeReadOptions(), BIG)] == [4, 4, 2]


# --- usage ------------------------------------------------------------------------------------------


def test_sources_that_cannot_be_meant(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere' does not exist\. Expected: a folder, or a file ending"):
        plan_lake([str(tmp_path / "nowhere")], LakeReadOptions(), BIG)
    with pytest.raises(SourceError, match="has no file that can be read"):
        plan_lake([str(tmp_path)], LakeReadOptions(), BIG)
    with pytest.raises(SourceError, match=r"t\.docx' is not of a known kind"):
        plan_lake([str(write(tmp_path / "t.docx", ""))], LakeReadOptions(), BIG)


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": "ab"},
        {"delimiter": "\n"},
        {"delimiter": '"'},
        {"encoding": "utf-9"},
        {"encoding": "hex"},
        {"json_text": ""},
        {"json_rows": "a", "json_columns": "b"},
        {"max_file_bytes": 0},
        {"max_file_bytes": "1"},
        {"max_file_bytes": True},
    ],
)
def test_options_that_cannot_be_meant(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        LakeReadOptions(**options)
