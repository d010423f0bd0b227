"""Sources: every split reads on its own, nothing is lost, and every error says where and what to do."""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.core.sources import (
    ReadOptions,
    Source,
    Split,
    beginnings,
    best_type,
    csv_files,
    csv_walk,
    json_lines,
    plan_source,
    raw_files,
    read_local,
    read_split,
    read_split_guessed,
)
from holdfast.core.sources.csv_walk import Region, walk_region
from holdfast.core.sources.kernels import records
from holdfast.core.store.arrow_types import arrow_type, type_of
from holdfast.core.words.schema import Type
from holdfast.errors import (
    ColumnTypeError,
    DuplicateColumnError,
    HoldfastError,
    SchemaError,
    SourceError,
    UnknownColumnError,
    UsageError,
)
from reference.records import record_ends

records.warm_up()
BIG = 1 << 30


def plan(source: Any, folder: Path, split_bytes: int = BIG, **options: Any) -> Source:
    planned = plan_source(
        source,
        options=ReadOptions(**options),
        table="orders",
        root=folder,
        staging="staging",
        split_bytes=split_bytes,
    )
    planned.splits = [split.located(folder) for split in planned.splits]
    return planned


def track(source: Source) -> pa.Table:
    """What the caller does: read all splits, narrow failed guesses, until none fails."""
    types = list(source.types)
    if source.local_table is not None:
        return read_local(source, source.names, types, table="orders")
    survivors: dict[str, list[list[str]]] = {}
    for _ in range(6):
        read = [read_split_guessed(s, source.names, types, source.options, "orders") for s in source.splits]
        failed = {name for _, lists in read for name in lists}
        if not failed:
            return pa.concat_tables(t for t, _ in read)
        for name in failed:
            survivors.setdefault(name, []).extend(lists[name] for _, lists in read if name in lists)
            types[source.names.index(name)] = Type.parse(best_type(survivors[name]))
    raise AssertionError("the guesses do not settle")


def fit(source: Source, schema: dict[str, str], version: int | None = None) -> pa.Table:
    """A batch for a table of this schema."""
    types = [Type.parse(t) for t in schema.values()]
    parts = [
        read_split(
            s,
            list(schema),
            types,
            options=source.options,
            table="orders",
            version=version,
        )
        for s in source.splits
    ]
    if source.local_table is not None:
        parts.append(read_local(source, list(schema), types, table="orders", version=version))
    return pa.concat_tables(parts)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def types_of(found: pa.Table) -> dict[str, str]:
    return {f.name: str(type_of(f.type, table="t", column=f.name)) for f in found.schema}


# --- types of Arrow ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "uint",
        "float",
        "decimal(12,2)",
        "decimal(38,0)",
        "decimal(50,3)",
        "bool",
        "date",
        "time[s]",
        "time[ms]",
        "time[us]",
        "time[ns]",
        "timestamp[s]",
        "timestamp[ns]",
        "timestamp[us,utc]",
        "text",
        "binary",
    ],
)
def test_arrow_type_and_back(text: str) -> None:
    assert str(type_of(arrow_type(Type.parse(text)), table="t", column="c")) == text


@pytest.mark.parametrize(
    ("arrow", "text"),
    [
        (pa.int8(), "int"),
        (pa.uint32(), "int"),
        (pa.uint64(), "uint"),
        (pa.float16(), "float"),
        (pa.float32(), "float"),
        (pa.string(), "text"),
        (pa.string_view(), "text"),
        (pa.null(), "text"),
        (pa.dictionary(pa.int32(), pa.date64()), "date"),
        (pa.run_end_encoded(pa.int32(), pa.int8()), "int"),
        (pa.timestamp("ms", "Europe/Berlin"), "timestamp[ms,utc]"),
        (pa.binary(4), "binary"),
        (pa.binary_view(), "binary"),
        (pa.decimal32(5, 2), "decimal(5,2)"),
        (pa.decimal128(5, -2), "decimal(7,0)"),
        (pa.uuid(), "binary"),
    ],
)
def test_type_of(arrow: pa.DataType, text: str) -> None:
    assert str(type_of(arrow, table="t", column="c")) == text


@pytest.mark.parametrize(
    "arrow", [pa.list_(pa.int8()), pa.struct([("x", pa.int8())]), pa.map_(pa.string(), pa.int8())]
)
def test_nested_types_are_refused(arrow: pa.DataType) -> None:
    with pytest.raises(
        SchemaError, match=r"column 'tags' of table 'orders' is nested.*flatten it or leave it out"
    ):
        type_of(arrow, table="orders", column="tags")
    with pytest.raises(SchemaError, match=r"duration.*cast it"):
        type_of(pa.duration("s"), table="orders", column="tags")


# --- options and plans ------------------------------------------------------------------------------


def test_options_and_splits_survive_json() -> None:
    options = ReadOptions(
        format="csv",
        header=False,
        delimiter=";",
        null_values=("", "NA"),
        types={"a": "int"},
        spellings={"b": "T6"},
    )
    assert ReadOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options
    assert ReadOptions.from_dict(ReadOptions().to_dict()) == ReadOptions()
    split = Split("csv", "a.csv", 3, 9, 6, False)
    assert Split.from_dict(json.loads(json.dumps(split.to_dict()))) == split


@pytest.mark.parametrize(
    "options",
    [
        {"format": "xml"},
        {"delimiter": ",,"},
        {"delimiter": ""},
        {"delimiter": "\n"},
        {"quote": "''"},
        {"delimiter": '"'},
        {"encoding": "utf-9"},
        {"types": {"a": "number"}},
    ],
)
def test_impossible_options(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ReadOptions(**options)


def test_csv_is_typed(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "orders.csv",
        'id,price,day,code,note,seen\n1,10.50,2024-01-01,007,,2024-01-01T10:00:00\n2,0.25,2024-01-02,7,"",\n',
    )
    source = plan(path, tmp_path)
    assert source.guessed
    assert source.description == "orders.csv"
    found = track(source)
    assert types_of(found) == {
        "id": "int",
        "price": "decimal(18,2)",
        "day": "date",
        "code": "text",
        "note": "text",
        "seen": "timestamp[us]",
    }
    assert found.to_pylist() == [
        {
            "id": 1,
            "price": Decimal("10.50"),
            "day": dt.date(2024, 1, 1),
            "code": "007",
            "note": None,
            "seen": dt.datetime(2024, 1, 1, 10),
        },
        {
            "id": 2,
            "price": Decimal("0.25"),
            "day": dt.date(2024, 1, 2),
            "code": "7",
            "note": "",
            "seen": None,
        },
    ]


@pytest.mark.parametrize(
    ("name", "content", "options", "rows"),
    [
        ("a.csv", "a,b\n1,x\n", {}, [(1, "x")]),
        ("a.CSV", "a,b\r\n1,x\r\n", {}, [(1, "x")]),
        ("a.csv", "a,b\r1,x\r", {}, [(1, "x")]),
        ("a.csv", "\n\na,b\n\n1,x\n\n", {}, [(1, "x")]),
        ("a.csv", "a,b\n1,x", {}, [(1, "x")]),
        ("a.csv", b"\xef\xbb\xbfa,b\n1,x\n", {}, [(1, "x")]),
        ("a.csv", b'\xef\xbb\xbf"a","b"\n1,x\n', {}, [(1, "x")]),
        ("a.csv", 'a,b\n1,2\n"3",', {}, [(1, 2), (3, None)]),
        ("a.tsv", 'a\tb\n"3"\t', {}, [(3, None)]),
        ("a.csv", "a,b\n\ufeffx,1\n\ufeffy,2\n", {}, [("\ufeffx", 1), ("\ufeffy", 2)]),
        ("a.csv", "\ufeffa,b\n\ufeffx,1\n", {}, [("\ufeffx", 1)]),
        ("a.csv", 'a,b\n\ufeff"x",1\n', {}, [('\ufeff"x"', 1)]),
        ("a.tsv", "a\tb\n1\tx\n", {}, [(1, "x")]),
        ("a.tsv", "a,b\n1,x\n", {"delimiter": ","}, [(1, "x")]),
        ("a.dat", "a;b\n1;x\n", {"format": "csv", "delimiter": ";"}, [(1, "x")]),
        ("a.csv", "a,b\n1,NA\n2,\n", {"null_values": ("NA",)}, [(1, None), (2, "")]),
        ("a.csv", 'a,b\n1,"NA"\n2,NA\n', {"null_values": ("NA",)}, [(1, "NA"), (2, None)]),
        ("a.csv", "a,b\n1,'x,y'\n", {"quote": "'"}, [(1, "x,y")]),
        ("a.csv", 'a,b\n1,"x\n2,y"\n', {"quote": ""}, [(1, '"x'), (2, 'y"')]),
        ("a.csv", 'a,b\n1,5" pipe\n2,y\n', {}, [(1, '5" pipe'), (2, "y")]),
        ("a.csv", 'a,b\n1,"x\n""y"""\n', {}, [(1, 'x\n"y"')]),
        ("a.csv", "a,b\n1,é\n".encode("latin-1"), {"encoding": "latin-1"}, [(1, "é")]),
        ("a.csv", "a,b\n1,€\n".encode("cp1252"), {"encoding": "cp1252"}, [(1, "€")]),
        ("a.csv", "a,b\n1,é\n".encode("utf-16"), {"encoding": "utf-16"}, [(1, "é")]),
        ("a.csv.gz", gzip.compress(b"a,b\n1,x\n", mtime=0), {}, [(1, "x")]),
        ("a.tsv.gz", gzip.compress(b"a\tb\n1\tx\n", mtime=0), {}, [(1, "x")]),
        ("a.jsonl.gz", gzip.compress(b'{"a":1,"b":"x"}\n', mtime=0), {}, [(1, "x")]),
        ("a.ndjson", b'\xef\xbb\xbf{"a":1,"b":"x"}\n', {}, [(1, "x")]),
    ],
)
def test_spellings_of_files(
    tmp_path: Path, name: str, content: str | bytes, options: dict[str, Any], rows: list[tuple[Any, ...]]
) -> None:
    path = write(tmp_path, name, content)
    for split_bytes in (BIG, 1):
        found = track(plan(path, tmp_path, split_bytes, **options))
        assert found.column_names == ["a", "b"]
        assert [tuple(r.values()) for r in found.to_pylist()] == rows


def test_only_a_files_own_mark_goes(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
        mark = "" if "".encode(encoding) else "\ufeff"
        path = write(tmp_path, "a.csv", f"{mark}\ufeffa,b\n\ufeff1,2\n".encode(encoding))
        assert track(plan(path, tmp_path, encoding=encoding)).to_pydict() == {
            "\ufeffa": ["\ufeff1"],
            "b": [2],
        }
        path = write(tmp_path, "b.csv", f"{mark}\ufeff1,2\n".encode(encoding))
        found = track(plan(path, tmp_path, encoding=encoding, header=False))
        assert found.to_pydict() == {"c0": ["\ufeff1"], "c1": [2]}


def test_a_mark_inside_json_lines_is_refused_wherever_the_file_is_cut(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '\ufeff{"a":1}\n\ufeff{"a":2}\n')
    for split_bytes in (BIG, 10):
        with pytest.raises(SourceError, match=r"line 2 of a.jsonl"):
            track(plan(path, tmp_path, split_bytes))


def test_an_unclosed_quote_before_an_empty_last_field_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="never closed, in the record that begins in line 3"):
        track(plan(write(tmp_path, "a.csv", 'a,b\n1,2\n3,"4,'), tmp_path))


def test_without_a_header(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "1,x\n2,y\n3,z\n")
    found = track(plan(path, tmp_path, 4, header=False))
    assert found.to_pydict() == {"c0": [1, 2, 3], "c1": ["x", "y", "z"]}


@pytest.mark.parametrize("content", ["a,b\n", "a,b", "a,b\r\n\r\n\n"])
def test_header_only_is_no_rows(tmp_path: Path, content: str) -> None:
    for split_bytes in (1, BIG):
        found = track(plan(write(tmp_path, "a.csv", content), tmp_path, split_bytes))
        assert found.num_rows == 0
        assert types_of(found) == {"a": "text", "b": "text"}


def test_uncuttable_files_are_one_split(tmp_path: Path) -> None:
    text = "a,b\n" + "1,é\n" * 50
    for name, content, options in (
        ("a.csv", text.encode("utf-16"), {"encoding": "utf-16"}),
        ("a.csv", text.encode("shift-jis", "replace"), {"encoding": "shift-jis"}),
        ("a.csv.gz", gzip.compress(text.encode()), {}),
    ):
        source = plan(write(tmp_path, name, content), tmp_path, 16, **options)
        assert len(source.splits) == 1
        assert track(source).num_rows == 50
    source = plan(write(tmp_path, "a.csv", text.encode("latin-1")), tmp_path, 16, encoding="latin-1")
    assert len(source.splits) > 10
    assert track(source).column("b").to_pylist() == ["é"] * 50


def test_splits_have_the_wanted_size(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a,b\n" + '1,"x\ny"\n' * 1000)
    source = plan(path, tmp_path, 500)
    assert source.n_bytes == path.stat().st_size == sum(s.n_bytes for s in source.splits)
    assert all(460 <= s.n_bytes <= 500 for s in source.splits)
    assert [s.first for s in source.splits] == [True] + [False] * (len(source.splits) - 1)


CELL = st.one_of(
    st.none(),
    st.text(st.sampled_from('ab",;\n\r\té€𝄞 1.\'"\ufeff'), max_size=8),
    st.sampled_from(["", "1", "1.50", "007", '"', '""', "\r\n", "NULL"]),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(CELL, min_size=n, max_size=n), max_size=12)),
    split_bytes=st.integers(1, 60),
    quote_all=st.booleans(),
    delimiter=st.sampled_from(",;\t"),
    newline=st.sampled_from(["\n", "\r\n"]),
    ended=st.booleans(),
)
@example([["\n", None], ['a"', "\r"]], 1, False, ",", "\r\n", True)
@example([['5" pipe', "x"]], 3, False, ",", "\n", True)
@example([[""]], 1, True, ",", "\n", True)
@example([["1", "2"], ['"', None]], 60, False, ",", "\n", False)
@example([["\ufeff1", "2"], ["\ufeff3", "4"]], 1, False, ",", "\n", True)
@example([[None, "", None], ["", None, "1"], [None, None, "1.50"]], 29, True, ",", "\n", False)
def test_any_table_of_texts_reads_back_for_any_split_size(
    tmp_path: Path,
    rows: list[list[str | None]],
    split_bytes: int,
    quote_all: bool,
    delimiter: str,
    newline: str,
    ended: bool,
) -> None:
    names = [f"c{i}" for i in range(len(rows[0]) if rows else 2)]
    out = io.StringIO(newline="")
    # QUOTE_NOTNULL came with Python 3.12: fields are quoted by hand so that NULL and "" differ.
    for row in [names, *rows]:
        fields = []
        for cell in row:
            bare = cell is not None and cell != "" and not set(cell) & {'"', delimiter, "\n", "\r"}
            if cell is None and len(row) > 1:
                fields.append("")
            elif bare and not quote_all:
                fields.append(str(cell))
            else:
                fields.append('"' + (cell or "").replace('"', '""') + '"')
        out.write(delimiter.join(fields) + newline)
    expected = [[("" if cell is None and len(row) == 1 else cell) for cell in row] for row in rows]
    path = write(tmp_path, "a.csv", out.getvalue() if ended else out.getvalue().removesuffix(newline))
    source = plan(path, tmp_path, split_bytes, delimiter=delimiter)
    texts = dict.fromkeys(names, "text")
    assert [list(r.values()) for r in fit(source, texts).to_pylist()] == expected
    whole = plan(path, tmp_path, BIG, delimiter=delimiter)
    assert track(source).to_pylist() == track(whole).to_pylist()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.lists(st.text(st.sampled_from('ab",\n\r é'), min_size=1, max_size=6), min_size=2, max_size=2),
        max_size=9,
    ),
    split_bytes=st.integers(1, 40),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_what_pythons_csv_module_writes_reads_back(
    tmp_path: Path, rows: list[list[str]], split_bytes: int, quoting: Any
) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=quoting).writerows([["x", "y"], *rows])
    found = fit(plan(path, tmp_path, split_bytes), {"x": "text", "y": "text"})
    assert [list(r.values()) for r in found.to_pylist()] == rows


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(
        st.sampled_from(["a,b\n", '"x\ny",2\n', '5" p,"q"\r\n', "\n", '"""",""\n', "c,d\r"]), max_size=20
    ),
    block=st.integers(1, 12),
    piece=st.integers(1, 12),
    split_bytes=st.integers(1, 20),
)
def test_cuts_do_not_depend_on_the_walks_blocks(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parts: list[str],
    block: int,
    piece: int,
    split_bytes: int,
) -> None:
    """Pieces without quotes are passed by another way than the others: both must see the same records."""
    path = write(tmp_path, "a.csv", "x,y\n" + "".join(parts))
    whole = fit(plan(path, tmp_path), {"x": "text", "y": "text"})
    monkeypatch.setattr(raw_files, "BLOCK", block)
    monkeypatch.setattr(csv_walk, "PIECE", piece)
    source = plan(path, tmp_path, split_bytes)
    assert fit(source, {"x": "text", "y": "text"}).to_pylist() == whole.to_pylist()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.sampled_from(["", "a", "a,", '"', '"a"', "a\r"]),
    parts=st.lists(st.sampled_from(["a", ",", '"', "\n", "\r", '""', '\n"']), max_size=20),
    block=st.integers(1, 12),
    piece=st.integers(1, 12),
)
def test_a_region_is_walked_from_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, parts: list[str], block: int, piece: int
) -> None:
    """Each text of `before` leaves another mode; from there it goes on as if all had been walked."""
    monkeypatch.setattr(raw_files, "BLOCK", block)
    monkeypatch.setattr(csv_walk, "PIECE", piece)
    text = (before + "".join(parts)).encode()
    path = tmp_path / "region.csv"
    path.write_bytes(text)
    modes = walk_region(Region(str(path), len(before), len(text), ",", '"', "orders"))
    state = records.new_state()

    def walk(part: bytes) -> int:
        limits = records.NO_LIMIT, records.NO_LIMIT
        records.walk_records(np.frombuffer(part, np.uint8), 44, 34, *limits, state)
        return int(state[0])

    mode, end = modes[walk(text[: len(before)])].tolist()
    assert mode == walk(text[len(before) :])
    ends = [0, *(position for position, *_ in record_ends(text, 44, 34))]
    assert end == -1 or (end in ends and end >= len(before))
    line_feeds = [e for e in ends if e > len(before) and text[e - 1] == 10]
    if line_feeds:
        assert 0 <= end <= line_feeds[0]


# --- guesses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("early", "late", "expected"),
    [
        ("1", "2.5", "float"),
        ("1.5", "2.25", "float"),
        ("1.50", "2.5", "text"),
        ("1", "x", "text"),
        ("1", "2024-01-01", "text"),
        ("1.5", "3", "text"),  # 3 is not how this column spells 3.0
        ("2024-01-01 00:00:00", "2024-01-01T00:00:00", "text"),
        ("2024-01-01", "", "date"),
        ("", "7", "int"),  # the sample had only NULLs: later splits are looked at
        ("", "", "text"),
    ],
)
def test_guesses_are_verified_on_all_rows(tmp_path: Path, early: str, late: str, expected: str) -> None:
    path = write(tmp_path, "a.csv", "k,v\n" + f"1,{early}\n" * 3000 + f"2,{late}\n" * 3000)
    found = track(plan(path, tmp_path, 4000))
    assert types_of(found)["v"] == expected
    assert found.num_rows == 6000
    if expected == "text" and early:
        assert found.column("v").unique().to_pylist() == [early, late]


def test_a_failed_guess_lists_what_survives(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a,b\n1,5\n1.5,x\n")
    source = plan(path, tmp_path)
    found, failed = read_split_guessed(
        source.splits[0], source.names, [Type("int"), Type("int")], source.options, "orders"
    )
    assert failed == {"a": ["float", "decimal(18,1)", "text"], "b": ["text"]}
    assert types_of(found) == {"a": "text", "b": "text"}
    assert found.column("a").to_pylist() == ["1", "1.5"]


def test_declared_types_are_no_guesses(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a,b\n1,2\n2.50,x\n")
    found = track(plan(path, tmp_path, types={"a": "float"}))
    assert found.column("a").to_pylist() == [1.0, 2.5]
    with pytest.raises(
        ColumnTypeError, match=r"'b' of table 'orders' is int; the file has 'x' in row 2 of a.csv"
    ):
        track(plan(path, tmp_path, types={"b": "int"}))
    with pytest.raises(UnknownColumnError, match="'prise'"):
        plan(path, tmp_path, types={"prise": "int"})


# --- batches for a table ----------------------------------------------------------------------------


@pytest.mark.parametrize("split_bytes", [BIG, 10, 1])
def test_a_batch_that_does_not_fit_names_the_row(tmp_path: Path, split_bytes: int) -> None:
    lines = [f'{i},"a\nb"\n' for i in range(11)]
    path = write(tmp_path, "new.csv", "qty,note\n" + "".join(lines) + "3.5,x\n4.5,y\n")
    with pytest.raises(ColumnTypeError) as caught:
        fit(plan(path, tmp_path, split_bytes), {"qty": "int", "note": "text"}, version=3)
    assert str(caught.value) == (
        "column 'qty' of table 'orders' (version 3) is int; the batch has '3.5' in row 12 of new.csv. "
        "Nothing was applied. Next step: track the table again with --types qty=float, or mend the value."
    )


def test_a_batch_may_order_its_columns_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path, "new.csv", "b,a\nx,1\ny,2\n")
    for split_bytes in (BIG, 1):
        found = fit(plan(path, tmp_path, split_bytes), {"a": "int", "b": "text"})
        assert found.to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "pandas"])
def test_a_batch_must_have_the_tables_columns(tmp_path: Path, ending: str) -> None:
    batch = pa.table({"a": [1], "c": [2]})
    path = tmp_path / f"new.{ending}"
    source: Any = path
    if ending == "csv":
        path.write_text("a,c\n1,2\n")
    elif ending == "parquet":
        pq.write_table(batch, path)
    elif ending == "arrow":
        with pa.ipc.new_file(str(path), batch.schema) as writer:
            writer.write_table(batch)
    else:
        source = batch.to_pandas()
    with pytest.raises(SchemaError, match=r"\(version 4\): it lacks b and has c in addition. Expected: a, b"):
        fit(plan(source, tmp_path), {"a": "int", "b": "int"}, version=4)


LOSSLESS: list[tuple[pa.Array, str, list[Any] | None]] = [
    (pa.array([1, None], pa.int8()), "int", [1, None]),
    (pa.array([1], pa.uint64()), "int", [1]),
    (pa.array([2**63], pa.uint64()), "int", None),
    (pa.array([1, 2**60]), "float", [1.0, 2.0**60]),
    (pa.array([2**53 + 1]), "float", None),
    (pa.array([2**63 - 1]), "float", None),
    (pa.array([2.0, None]), "int", [2, None]),
    (pa.array([1.0, 2.5]), "int", None),
    (pa.array([float("nan")]), "int", None),
    (pa.array([1e19]), "int", None),
    (pa.array([7]), "decimal(18,2)", [Decimal("7.00")]),
    (pa.array([10**17]), "decimal(18,2)", None),
    (pa.array([17954.55, 0.1]), "decimal(18,2)", [Decimal("17954.55"), Decimal("0.10")]),
    (pa.array([0.125]), "decimal(18,2)", None),
    (pa.array([float("nan")]), "decimal(18,2)", None),
    (pa.array([Decimal("0.10")]), "float", [0.1]),
    (pa.array([Decimal("12345678901234567.89")]), "float", None),
    (pa.array([Decimal("1.50")]), "decimal(18,1)", [Decimal("1.5")]),
    (pa.array([Decimal("1.55")]), "decimal(18,1)", None),
    (pa.array([Decimal("2.00")]), "int", [2]),
    (pa.array([Decimal("2.50")]), "int", None),
    (pa.array([True]), "int", None),
    (pa.array(["1"]), "int", None),
    (pa.array([1]), "text", None),
    (pa.array(["x"]), "binary", None),
    (pa.array(["x"], pa.string_view()), "text", ["x"]),
    (pa.array(["x", None, "x"]).dictionary_encode(), "text", ["x", None, "x"]),
    (pa.array([dt.date(2024, 1, 1)]), "timestamp", None),
    (pa.array([dt.date(2024, 1, 1)], pa.date64()), "date", [dt.date(2024, 1, 1)]),
    (pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns")), "timestamp", [dt.datetime(2024, 1, 1)]),
    (pa.array([1], pa.timestamp("ns")), "timestamp", None),
    (pa.array([0], pa.timestamp("us", "UTC")), "timestamp", None),
    (pa.array([0], pa.timestamp("us")), "timestamp[us,utc]", None),
    (pa.nulls(2), "int", [None, None]),
    (pa.array([None], pa.string()), "int", [None]),
    (pa.array([], pa.string()), "int", []),
]


@pytest.mark.parametrize(("values", "text", "expected"), LOSSLESS)
def test_casts_lose_nothing(tmp_path: Path, values: pa.Array, text: str, expected: list[Any] | None) -> None:
    source = plan(pa.table({"v": values}), tmp_path)
    if expected is None:
        with pytest.raises(
            ColumnTypeError, match=r"column 'v' of table 'orders' \(version 2\) is .*in row \d, .*"
        ):
            fit(source, {"v": text}, version=2)
    else:
        found = fit(source, {"v": text})
        assert found.column("v").to_pylist() == expected
        assert found.schema.field("v").type == arrow_type(Type.parse(text))


def test_the_first_lossy_value_is_named(tmp_path: Path) -> None:
    values = pa.chunked_array([[1.0] * 500, [2.0, 2.5, 3.5]])
    with pytest.raises(ColumnTypeError, match=r"has 2.5 in row 502, .* Nothing was applied. Next step"):
        fit(plan(pa.table({"v": values}), tmp_path), {"v": "int"})


# --- Parquet, Arrow, tables in memory ---------------------------------------------------------------


@pytest.mark.parametrize("split_bytes", [BIG, 2000, 1])
@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrows", "memory", "batch", "reader", "pandas"])
def test_typed_sources(tmp_path: Path, kind: str, split_bytes: int) -> None:
    whole = pa.table({"a": pa.array(range(1000), pa.int32()), "b": [str(i % 7) for i in range(1000)]})
    path = tmp_path / f"x.{kind}"
    source: Any = {"memory": whole, "pandas": whole.to_pandas(), "reader": whole.to_reader(100)}.get(
        kind, path
    )
    if kind == "parquet":
        pq.write_table(whole, path, row_group_size=130)
    elif kind == "arrow":
        with pa.ipc.new_file(str(path), whole.schema) as writer:
            writer.write_table(whole, max_chunksize=130)
    elif kind == "arrows":
        with pa.ipc.new_stream(str(path), whole.schema) as writer:
            writer.write_table(whole, max_chunksize=130)
    elif kind == "batch":
        source = whole.to_batches()[0]
    planned = plan(source, tmp_path, split_bytes)
    assert planned.names == ("a", "b")
    assert list(map(str, planned.types)) == ["int", "text"]
    assert not planned.guessed
    assert (planned.local_table is None) == (kind in ("parquet", "arrow", "arrows") or split_bytes < BIG)
    if split_bytes < BIG and kind in ("parquet", "arrow", "reader"):
        assert len(planned.splits) > 1
    assert track(planned).to_pydict() == whole.to_pydict()


def test_streams_of_arrow(tmp_path: Path) -> None:
    """Whatever their name; of each batch another dictionary, no batches, a batch that is cut."""
    batches = [pa.record_batch({"a": pa.array([text]).dictionary_encode()}) for text in "xyx"]
    for n in (0, 3):
        with pa.ipc.new_stream(str(tmp_path / f"{n}.arrow"), batches[0].schema) as writer:
            for batch in batches[:n]:
                writer.write_batch(batch)
        planned = plan(tmp_path / f"{n}.arrow", tmp_path, 1)
        assert len(planned.splits) == 1
        assert track(planned).to_pydict() == {"a": ["x", "y", "x"][:n]}
    path = tmp_path / "3.arrow"
    os.truncate(path, path.stat().st_size - 20)
    with pytest.raises(
        SourceError, match=r"3.arrow.*damaged.*Nothing was applied. Next step: write the file"
    ):
        plan(path, tmp_path)


def test_a_part_of_a_row_group_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": range(100)}), path, row_group_size=30)
    for low, high in [(0, 100), (10, 40), (30, 60), (95, 100), (0, 0)]:
        split = Split("parquet", str(path), low, high, 0)
        found = read_split(split, ["a"], [Type("int")], options=ReadOptions(), table="t")
        assert found.column("a").to_pylist() == list(range(low, high))


def test_tables_without_rows(tmp_path: Path) -> None:
    empty = pa.table({"a": pa.array([], pa.int64())})
    pq.write_table(empty, tmp_path / "x.parquet")
    assert track(plan(tmp_path / "x.parquet", tmp_path)).num_rows == 0
    assert track(plan(empty, tmp_path)).num_rows == 0
    assert track(plan(empty.to_reader(), tmp_path)).num_rows == 0


def test_pandas_frames(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "a": [1, None],
            "b": ["x", None],
            "c": pd.Categorical(["u", "v"]),
            4: pd.to_datetime(["2024-01-01", None]),
        }
    )
    found = track(plan(frame.set_index(pd.RangeIndex(5, 7)), tmp_path))
    assert types_of(found) == {"a": "float", "b": "text", "c": "text", "4": "timestamp[ns]"}
    assert fit(plan(frame[["a"]], tmp_path), {"a": "int"}).column("a").to_pylist() == [1, None]
    sparse = pd.DataFrame(
        {"a": pd.arrays.SparseArray([0, 0, 7]), "b": pd.Series([1, 2.5, None], dtype=object)}
    )
    assert track(plan(sparse, tmp_path)).to_pydict() == {"a": [0, 0, 7], "b": [1.0, 2.5, None]}
    stamps = [pd.Timestamp("2024-01-01", tz="UTC"), None, pd.Timestamp("2024-01-01", tz="Europe/Rome")]
    assert types_of(track(plan(pd.DataFrame({"a": stamps}, dtype=object), tmp_path))) == {
        "a": "timestamp[us,utc]"
    }
    assert track(plan(pd.DataFrame({"a": []}), tmp_path)).num_rows == 0


def test_pandas_objects_of_mixed_type(tmp_path: Path) -> None:
    frame = pd.DataFrame({"ok": [1, 2, 3], "code": ["a", "b", 7]})
    with pytest.raises(
        ColumnTypeError, match=r"'code' of table 'orders' mixes values of type str and int.*example 7"
    ):
        plan(frame, tmp_path)
    with pytest.raises(SchemaError, match="'tags' of table 'orders' is nested"):
        plan(pd.DataFrame({"tags": [[1], [2]]}), tmp_path)


# --- folders and globs ------------------------------------------------------------------------------


def test_a_folder_is_all_its_data_files(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    write(folder, "b/2.csv", "y,x\nb,2\n")
    write(folder, "1.csv", "x,y\n1,a\n")
    for skipped in ("_SUCCESS", ".1.csv.crc", "_tmp/3.csv", ".hidden/4.csv", "README.md"):
        write(folder, skipped, "nonsense")
    source = plan(folder, tmp_path)
    assert source.description == "folder orders (2 files)"
    assert track(source).to_pydict() == {"x": [1, 2], "y": ["a", "b"]}
    assert track(plan(str(folder / "**" / "*.csv"), tmp_path)).to_pydict() == {"x": [1, 2], "y": ["a", "b"]}


def test_types_of_a_folder_are_verified_on_all_files(tmp_path: Path) -> None:
    for i in range(30):
        write(tmp_path, f"d/{i:02}.csv", f"x\n{i}\n" if i < 29 else "x\nlast\n")
    assert types_of(track(plan(tmp_path / "d", tmp_path))) == {"x": "text"}


def test_a_parquet_file_of_nulls_does_not_decide_the_type(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    pq.write_table(pa.table({"x": pa.nulls(2)}), tmp_path / "d" / "1.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "d" / "2.parquet")
    assert track(plan(tmp_path / "d", tmp_path)).to_pydict() == {"x": [None, None, 1]}


# --- JSON lines -------------------------------------------------------------------------------------


def lines_of(objects: Iterable[Any]) -> str:
    return "".join(json.dumps(o) + "\n" for o in objects)


@pytest.mark.parametrize("split_bytes", [BIG, 30, 1])
def test_json_lines(tmp_path: Path, split_bytes: int) -> None:
    rows = [
        {"i": 1, "f": 1.5, "b": True, "s": "2024-01-01", "n": None, "m": 1},
        {"i": -2, "s": 'ü\n"', "m": 2.5},
        {"f": 2, "i": None, "b": False, "m": 3},
    ]
    path = write(tmp_path, "a.jsonl", lines_of(rows).replace("\n", "\n\n"))
    found = track(plan(path, tmp_path, split_bytes))
    assert types_of(found) == {"i": "int", "f": "float", "b": "bool", "s": "text", "n": "text", "m": "float"}
    assert found.to_pylist() == [{k: r.get(k) for k in rows[0]} for r in rows]


@pytest.mark.parametrize(("late", "expected"), [(2.5, "float"), (2, "int"), (None, "int"), (2**53, "int")])
def test_json_guesses_are_verified(tmp_path: Path, late: Any, expected: str) -> None:
    path = write(tmp_path, "a.jsonl", lines_of([{"v": 1}] * 2500 + [{"v": late}]))
    for split_bytes in (BIG, 3000):
        found = track(plan(path, tmp_path, split_bytes))
        assert types_of(found) == {"v": expected}
        assert found.column("v").to_pylist() == [1] * 2500 + [late]


@pytest.mark.parametrize(
    ("late", "error", "message"),
    [
        (
            {"v": "x"},
            ColumnTypeError,
            "column 'v' of table 'orders' mixes types|column 'v' of table 'orders' is",
        ),
        ({"v": True}, ColumnTypeError, "column 'v'"),
        ({"v": [1]}, SchemaError, "column 'v' of table 'orders' is nested: line 2501 .*flatten it"),
        ({"v": {"x": 1}}, SchemaError, "nested: line 2501"),
        ({"v": 2**64}, ColumnTypeError, "column 'v'"),
        ({"w": 1}, SchemaError, "line 2501 of a.jsonl has the key 'w'.*--types w=text"),
    ],
)
@pytest.mark.parametrize("split_bytes", [BIG, 3000])
def test_json_errors_behind_the_sample(
    tmp_path: Path, late: Any, error: type[HoldfastError], message: str, split_bytes: int
) -> None:
    path = write(tmp_path, "a.jsonl", lines_of([{"v": 1}] * 2500 + [late]))
    with pytest.raises(error, match=message):
        track(plan(path, tmp_path, split_bytes))


def test_json_integers_that_no_float_holds(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", lines_of([{"v": 1.5}] * 2500 + [{"v": 2**53 + 1}]))
    with pytest.raises(ColumnTypeError, match=r"line 2501 of a.jsonl has 9007199254740993"):
        track(plan(path, tmp_path))


def test_json_columns_can_be_declared(tmp_path: Path) -> None:
    objects = [{"d": "2024-01-01", "p": "1.50"}] * 2100 + [{"late": 3}]
    path = write(tmp_path, "a.jsonl", lines_of(objects))
    found = track(plan(path, tmp_path, types={"d": "date", "p": "decimal(9,2)", "late": "int"}))
    assert types_of(found) == {"d": "date", "p": "decimal(9,2)", "late": "int"}
    assert found.slice(2099).to_pylist() == [
        {"d": dt.date(2024, 1, 1), "p": Decimal("1.50"), "late": None},
        {"d": None, "p": None, "late": 3},
    ]
    with pytest.raises(
        ColumnTypeError, match=r"'d' of table 'orders' is int by declaration; line 1 of a.jsonl"
    ):
        track(plan(path, tmp_path, types={"d": "int", "late": "int"}))


def test_a_json_batch_for_a_table(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", lines_of([{"a": 1}, {"a": "x", "b": 2}]))
    with pytest.raises(ColumnTypeError, match=r"mixes types: line 2 of a.jsonl has 'x'"):
        plan(path, tmp_path)
    path = write(tmp_path, "b.jsonl", lines_of([{"a": 1}, {"a": 2, "b": 2}]))
    assert fit(plan(path, tmp_path), {"b": "int", "a": "int"}).to_pydict() == {"b": [None, 2], "a": [1, 2]}
    with pytest.raises(
        ColumnTypeError, match=r"'a' of table 'orders' \(version 5\) is text; line 1 of b.jsonl has 1"
    ):
        fit(plan(path, tmp_path), {"b": "int", "a": "text"}, version=5)


# --- errors -----------------------------------------------------------------------------------------

HUGE = "z" * 20_000
BREAK: list[tuple[str, str | bytes | None, dict[str, Any], type[HoldfastError], str]] = [
    ("empty.csv", b"", {}, SourceError, "empty.csv for table 'orders' is empty: it has no header"),
    ("empty.csv", b"\n\r\n\n", {}, SourceError, "is empty: it has no header"),
    ("empty.csv", b"\xef\xbb\xbf", {}, SourceError, "is empty"),
    ("empty.csv", b"", {"header": False}, SourceError, "is empty: it has no row"),
    ("empty.jsonl", b"", {}, SourceError, "is empty"),
    ("empty.jsonl", b"{}\n{}\n", {}, SourceError, "is empty"),
    ("empty.parquet", b"", {}, SourceError, "is not a Parquet file"),
    ("not.parquet", b"a,b\n1,2\n", {}, SourceError, "is not a Parquet file"),
    ("not.arrow", b"a,b\n1,2\n", {}, SourceError, "is not an Arrow file"),
    ("bad.csv.gz", b"a,b\n1,2\n", {}, SourceError, "cannot be decompressed"),
    ("cut.csv.gz", gzip.compress(b"a,b\n1,2\n" * 9, mtime=0)[:-9], {}, SourceError, "cannot be decompressed"),
    ("x.xlsx", b"PK", {}, SourceError, "cannot be told from its ending.*--format csv"),
    ("semi.csv", "a;b;c\n1;2;3\n4;5\n", {}, SourceError, "a single column .*probably --delimiter ';' "),
    ("both.csv", "a|b;c|d\n1|2;3|4\n", {}, SourceError, r"probably --delimiter '\|'"),
    ("tabs.csv", "a\tb\n1\t2\t3\n", {}, SourceError, "probably --delimiter tab .or ',', if it is one column"),
    ("x.tsv", "a,b\n1\n", {}, SourceError, "probably --delimiter ',' .or tab, if"),
    (
        "dup.csv",
        "a,b,a\n1,2,3\n",
        {"names": ("a", "b", "a")},
        DuplicateColumnError,
        "two columns 'a': 1 and 3",
    ),
    ("noname.csv", "a,,c\n1,2,3\n", {"names": ("a", "", "c")}, SchemaError, "no name for its column 2 of 3"),
    (
        "ragged.csv",
        "a,b\n1,2\n3\n",
        {},
        SourceError,
        "line 3 of ragged.csv .* has 1 field instead of 2: '3'",
    ),
    (
        "ragged.csv",
        'a,b\n\n"x\ny",2\n1,2,3\n',
        {},
        SourceError,
        "line 5 of ragged.csv .* 3 fields instead of 2",
    ),
    (
        "ragged.csv",
        "a,b\n1,2\n# note\n3,4\n",
        {},
        SourceError,
        r"line 3 of ragged.csv .* has 1 field instead of 2: '# note'\. .*skip lines that begin with # "
        r"\(--comment '#'\)",
    ),
    ("ragged.csv", f"a,b\n1,2,{HUGE}\n", {}, SourceError, "line 2 of ragged.csv"),
    ("ragged.csv", "1,2\n3\n", {"header": False}, SourceError, "line 2 of ragged.csv"),
    (
        "open.csv",
        'a,b\n1,2\n3,"x\n4,5\n',
        {},
        SourceError,
        "never closed, in the record that begins in line 3",
    ),
    (
        "open.csv",
        'a,b\n1,2\n"3,x\n4,5\n',
        {},
        SourceError,
        "never closed, in the record that begins in line 3",
    ),
    ("open.csv", 'a,b\n1,"', {}, SourceError, "never closed, in the record that begins in line 2"),
    ("open.csv", 'a,b\n1,"""', {}, SourceError, "never closed"),
    ("open.csv", 'a,"b\n1,2\n', {}, SourceError, "never closed, in the record that begins in line 1"),
    ("open.csv", f'a,b\n1,"{HUGE}\n', {}, SourceError, "never closed"),
    (
        "bytes.csv",
        b"a,b\n1,x\n2,\xe9\n",
        {},
        SourceError,
        r"line 3 of bytes.csv .* not utf-8: b'\\xe9.*latin-1 or cp1252",
    ),
    ("bytes.csv", b"a,\xe9\n1,x\n", {}, SourceError, "line 1 of bytes.csv .* not utf-8"),
    ("bytes.csv", b"a,b\n1,\x81\n", {"encoding": "cp1252"}, SourceError, "line 2 of bytes.csv .* not cp1252"),
    ("bad.jsonl", '{"a":1}\n\n{"a":2\n', {}, SourceError, "line 3 of bad.jsonl .* is not one JSON object"),
    ("bad.jsonl", '{"a":1}\n[1]\n', {}, SourceError, "line 2 of bad.jsonl .* is not one JSON object"),
    ("bad.json", "[1]", {}, SourceError, "object 1 of bad.json .* Next step: write an array of objects"),
    ("bad.jsonl", '[\n{"a":1}\n', {}, SourceError, "bad.jsonl .* is cut short: .* object 1, is '{.a.:1}'"),
    ("bad.jsonl", '{"a":1,"a":2}\n', {}, SourceError, "a key comes twice"),
    ("bad.jsonl", f'{{"a":1}}\n{{"a":"{HUGE}\n', {}, SourceError, "line 2 of bad.jsonl"),
    ("bad.jsonl", b'{"a":"\xe9"}\n', {}, SourceError, "line 1 of bad.jsonl .* not utf-8"),
    (
        "mix.jsonl",
        f'{{"a":1}}\n{{"a":"{HUGE}"}}\n',
        {},
        ColumnTypeError,
        "'a' of table 'orders' mixes types: line [12]",
    ),
    ("nest.jsonl", f'{{"a":["{HUGE}"]}}\n', {}, SchemaError, "'a' of table 'orders' is nested: line 1"),
    ("noname.jsonl", '{"":1}\n', {}, SchemaError, "no name for its column 1"),
    ("type.csv", f"a\n{HUGE}\n", {"types": {"a": "int"}}, ColumnTypeError, "is int; the file has 'zzz"),
]


@pytest.mark.parametrize("split_bytes", [BIG, 1])
@pytest.mark.parametrize(("name", "content", "options", "error", "message"), BREAK)
def test_broken_files(
    tmp_path: Path,
    name: str,
    content: str | bytes,
    options: dict[str, Any],
    error: type[HoldfastError],
    message: str,
    split_bytes: int,
) -> None:
    path = write(tmp_path, name, content)
    with pytest.raises(error, match=message) as caught:
        track(plan(path, tmp_path, split_bytes, **options))
    text = str(caught.value)
    assert "Nothing was applied." in text
    assert "Next step" in text
    assert "'orders'" in text
    assert len(text) < 700


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (b"7,8,9\n", "line 3003 of a.csv .* has 3 fields instead of 2: '7,8,9'"),
        (b"7,\xe9\n", "line 3003 of a.csv .* not utf-8"),
        (b'7,"open\n8,9\n', "never closed, in the record that begins in line 3003"),
    ],
)
@pytest.mark.parametrize("split_bytes", [BIG, 5000, 100, 1])
def test_line_numbers_are_those_of_the_file(
    tmp_path: Path, broken: bytes, message: str, split_bytes: int
) -> None:
    path = write(tmp_path, "a.csv", b"\na,b\n" + b'1,"x\ny"\n' * 1500 + broken)
    with pytest.raises(SourceError, match=message):
        track(plan(path, tmp_path, split_bytes))


def test_a_long_record_is_read_with_larger_blocks(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "a,b\n1,x\n" + f"2,{HUGE * 90}\n" + "3,y\n" * 5000)
    found = track(plan(path, tmp_path))
    assert found.column("a").to_pylist() == [1, 2] + [3] * 5000
    path = write(tmp_path, "a.jsonl", lines_of([{"a": 1}, {"a": 2, "b": HUGE * 90}]))
    assert track(plan(path, tmp_path)).num_rows == 2


def test_missing_files(tmp_path: Path) -> None:
    write(tmp_path, "orders.csv", "a\n1\n")
    for path, message in (
        (tmp_path / "order.csv", "there is no file .* Did you mean 'orders.csv'"),
        (tmp_path / "zzz.csv", "there is no file .*Next step: check the path"),
        (tmp_path / "no" / "such.csv", "there is no folder for the file"),
        (tmp_path / "*.parquet", "no file matches"),
    ):
        with pytest.raises(SourceError, match=message) as caught:
            plan(path, tmp_path)
        assert "table 'orders'" in str(caught.value)
    (tmp_path / "void").mkdir()
    write(tmp_path, "void/_SUCCESS", "")
    with pytest.raises(SourceError, match="has no data files"):
        plan(tmp_path / "void", tmp_path)


def test_folders_that_cannot_be_read_as_one_table(tmp_path: Path) -> None:
    make: Callable[[str, str], Path] = lambda name, text: write(tmp_path, name, text)  # noqa: E731
    make("differ/1.csv", "a,b\n1,2\n")
    make("differ/2.csv", "a,c\n1,2\n")
    with pytest.raises(SchemaError, match=r"'2.csv' lacks b and has c in addition, compared with '1.csv'"):
        plan(tmp_path / "differ", tmp_path)
    make("mixed/1.csv", "a\n1\n")
    make("mixed/2.jsonl", '{"a":1}\n')
    with pytest.raises(SourceError, match=r"several formats \(csv, jsonl\)"):
        plan(tmp_path / "mixed", tmp_path)
    make("parts/year=2024/1.csv", "a\n1\n")
    make("parts/2.csv", "a\n1\n")
    with pytest.raises(SchemaError, match=r"do not name the same columns: .* names none, .*1.csv' year"):
        plan(tmp_path / "parts", tmp_path)
    make("both/a=2024/1.csv", "a\n1\n")
    with pytest.raises(SchemaError, match="has the column 'a' in its files and in the names of its folders"):
        plan(tmp_path / "both", tmp_path)
    make("delta/_delta_log/0.json", "{}")
    make("delta/1.parquet", "")
    with pytest.raises(SourceError, match=r"is a Delta table that cannot be opened: .*without holdfast"):
        plan(tmp_path / "delta", tmp_path)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_columns_in_the_names_of_folders(tmp_path: Path, kind: str) -> None:
    days = {"2024-01-05": "a%2Fb", "2024-02-05": "__HIVE_DEFAULT_PARTITION__"}
    for day, shop in days.items():
        folder = tmp_path / "parts" / f"day={day}" / "shop n" / f"shop={shop}"
        folder.mkdir(parents=True)
        written(folder, kind)
    source = plan(tmp_path / "parts", tmp_path, 2_000)
    assert source.names == ("a", "b", "day", "shop")
    assert [str(t) for t in source.types] == ["int", "text", "date", "text"]
    assert len(source.splits) > 4
    rows = track(source)
    assert rows.num_rows == 2_000
    assert rows.column("a").to_pylist() == [*range(1_000), *range(1_000)]
    first, second = (dt.date.fromisoformat(day) for day in days)
    assert rows.column("day").to_pylist() == [first] * 1_000 + [second] * 1_000
    assert rows.column("shop").to_pylist() == ["a/b"] * 1_000 + [None] * 1_000
    schema = {"day": "date", "a": "int", "shop": "text", "b": "text"}
    assert fit(source, schema, version=3).column_names == list(schema)
    with pytest.raises(ColumnTypeError, match=r"column 'day' of .* \(version 3\) is int; the folders"):
        fit(source, {**schema, "day": "int"}, version=3)


def test_partitions_of_a_part_of_a_folder(tmp_path: Path) -> None:
    for year in (2024, 2025):
        write(tmp_path, f"parts/year={year}/month=1/rows.csv", "a\n1\n")
    assert plan(tmp_path / "parts" / "year=2024", tmp_path).names == ("a", "month")
    assert plan(str(tmp_path / "parts" / "*" / "*" / "*.csv"), tmp_path).names == ("a", "year", "month")
    single = plan(tmp_path / "parts/year=2024/month=1/rows.csv", tmp_path)
    assert single.names == ("a",)
    declared = plan(tmp_path / "parts", tmp_path, types={"month": "text"})
    assert [str(t) for t in declared.types] == ["int", "int", "text"]


def test_things_that_are_no_source(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="from an int"):
        plan(7, tmp_path)
    with pytest.raises(UsageError, match="has its own"):
        plan(pa.table({"a": [1]}), tmp_path, types={"a": "int"})
    with pytest.raises(DuplicateColumnError):
        plan(pa.table([[1], [2]], names=["a", "a"]), tmp_path)
    with pytest.raises(DuplicateColumnError):
        plan(pd.DataFrame([[1, 2]], columns=["a", "a"]), tmp_path)
    with pytest.raises(SchemaError, match="'tags' of table 'orders' is nested"):
        plan(pa.table({"tags": [[1]]}), tmp_path)


# --- files that change while they are read ----------------------------------------------------------


def written(folder: Path, kind: str) -> Path:
    """A file of 1,000 rows in this format."""
    whole = pa.table({"a": range(1000), "b": [f"text {i}" for i in range(1000)]})
    path = folder / f"orders.{kind}"
    if kind == "parquet":
        pq.write_table(whole, path, row_group_size=130)
    elif kind == "arrow":
        with pa.ipc.new_file(str(path), whole.schema) as writer:
            writer.write_table(whole, max_chunksize=130)
    elif kind == "arrows":
        with pa.ipc.new_stream(str(path), whole.schema) as writer:
            writer.write_table(whole, max_chunksize=130)
    elif kind == "csv":
        path.write_text("a,b\n" + "".join(f"{i},text {i}\n" for i in range(1000)))
    else:
        path.write_text("".join(f'{{"a": {i}, "b": "text {i}"}}\n' for i in range(1000)))
    return path


@pytest.mark.parametrize("size", ["half", "nothing"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "arrows"])
def test_a_file_cut_behind_its_plan_is_an_error(tmp_path: Path, kind: str, size: str) -> None:
    """Never fewer rows without a word."""
    path = written(tmp_path, kind)
    planned = plan(path, tmp_path, 4_000)
    assert len(planned.splits) > 2 or kind == "arrows"
    os.truncate(path, path.stat().st_size // 2 if size == "half" else 0)
    for split in planned.splits[-1:] if size == "half" else planned.splits:
        with pytest.raises(SourceError, match=r"orders.*Nothing was applied. Next step"):
            read_split_guessed(split, planned.names, planned.types, planned.options, "orders")


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "arrows"])
def test_a_source_is_never_mapped(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever cuts a mapped file kills the reader (SIGBUS); here it is cut before Arrow sees a byte of it."""
    from holdfast.core.sources import columnar, csv_files, json_lines

    path = written(tmp_path, kind)
    planned = plan(path, tmp_path)
    seen = []

    def cut(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            found = function(*args, **options)
            mapped = str(path) in Path("/proc/self/maps").read_text()
            seen.append(mapped)
            if not mapped:
                os.truncate(path, 100)
            return found

        return call

    monkeypatch.setattr(csv_files, "utf8_bytes", cut(csv_files.utf8_bytes))
    monkeypatch.setattr(json_lines, "utf8_bytes", cut(json_lines.utf8_bytes))
    monkeypatch.setattr(columnar, "_open_parquet", cut(columnar._open_parquet))
    monkeypatch.setattr(columnar, "open_arrow", cut(columnar.open_arrow))
    if kind in ("csv", "jsonl", "arrows"):  # all of it was read before
        assert track(planned).num_rows == 1000
    else:
        with pytest.raises(SourceError, match=r"orders.* is damaged.*Nothing was applied"):
            track(planned)
    assert seen == [False]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@pytest.mark.parametrize("n_bytes", [1, 10, 100, 1_000, 15_000])
@pytest.mark.parametrize("packed", [False, True])
def test_a_sample_does_not_depend_on_what_is_read_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, n_bytes: int, packed: bool
) -> None:
    from holdfast.core.sources import source_plan as planning

    path = written(tmp_path, kind)
    if packed:
        path = write(tmp_path, f"a.{kind}.gz", gzip.compress(Path(path).read_bytes()))
    monkeypatch.setattr(planning, "SAMPLE_ROWS", 40)
    whole = plan(path, tmp_path)
    monkeypatch.setattr(beginnings, "SAMPLE_BYTES", n_bytes)
    monkeypatch.setattr(beginnings, "LEAST_PACKED", 1_000)
    monkeypatch.setattr(csv_files, "HEADER_BYTES", n_bytes)
    monkeypatch.setattr(csv_files, "SAMPLE_BLOCK", 64)
    assert plan(path, tmp_path) == whole
    assert track(plan(path, tmp_path, 2_000)).num_rows == 1000


@pytest.mark.parametrize("given_as", ["a.csv", "./a.csv", ".", "*.csv", Path("a.csv")])
def test_paths_are_sent_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_as: str | Path
) -> None:
    """A task's working folder is not the driver's."""
    (tmp_path / "a.csv").write_text("a\n1\n")
    monkeypatch.chdir(tmp_path)
    source = plan(given_as, tmp_path)
    monkeypatch.chdir("/")
    assert [split.path for split in source.splits] == [str(tmp_path / "a.csv")]
    assert track(source).to_pydict() == {"a": [1]}


# --- Compressed files ---------------------------------------------------------------------------------------

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lambda content: lzma.compress(content, preset=0),
}


@pytest.mark.parametrize("ending", list(PACKERS))
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_of_a_compressed_file_only_the_beginning_is_decompressed_to_plan_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, kind: str
) -> None:
    """Tasks read the rest: a header is not worth gigabytes on the driver."""
    rng = np.random.default_rng(1)
    words = [rng.bytes(40).hex() for _ in range(30_000)]
    monkeypatch.setattr(beginnings, "SAMPLE_BYTES", 1 << 19)
    line = "{i},{word}\n" if kind == "csv" else '{{"id":{i},"word":"{word}"}}\n'
    text = "id,word\n" * (kind == "csv") + "".join(line.format(i=i, word=w) for i, w in enumerate(words))
    path = tmp_path / f"a.{kind}{ending}"
    path.write_bytes(PACKERS[ending](text.encode()))
    sizes: list[int] = []
    decompressed = csv_files.utf8_bytes

    def counted(*arguments: Any, **more: Any) -> Any:
        body = decompressed(*arguments, **more)
        sizes.append(body.size)
        return body

    for module in (csv_files, json_lines):
        monkeypatch.setattr(module, "utf8_bytes", counted)
    source = plan(path, tmp_path)
    assert 0 < sum(sizes) < len(text) * 0.7
    monkeypatch.undo()
    rows = track(source)
    assert (rows["id"].to_pylist(), rows["word"].to_pylist()) == (list(range(len(words))), words)


@pytest.mark.parametrize("n_comments", [0, 1, 4_000])
def test_comments_before_the_header_of_a_compressed_file(tmp_path: Path, n_comments: int) -> None:
    """However far down it is, and however few rows are behind it."""
    for n_rows in (5, 50_000):
        comments = "".join(f"# {i:060} of no use\n" for i in range(n_comments))
        rows = "".join(f"{i},{i:020}x\n" for i in range(n_rows))
        path = tmp_path / f"{n_rows}.csv.gz"
        path.write_bytes(gzip.compress(f"{comments}id,word\n{rows}".encode()))
        source = plan(path, tmp_path)
        assert source.names == ("id", "word")
        assert track(source).num_rows == n_rows
