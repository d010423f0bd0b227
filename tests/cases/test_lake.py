"""Lakes against the oracle: every combination of filters, every way to match, and tables at their worst.

What is linked is compared with `reference.lake`: the inclusions, the values that both sides share, what each
filter keeps out, and the components of the join graph. How inclusions are looked for changes nothing.
"""

from __future__ import annotations

import functools
import gzip
import io
import itertools
import json
import os
import random
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast.errors import SourceError, UsageError
from holdfast.lakes import index as lake_index
from holdfast.lakes import intake, signing
from holdfast.lakes import linker as discovery
from holdfast.lakes import match as lake_match
from holdfast.lakes import propose as lake_propose
from holdfast.lakes.answers import BAD_LISTED, LakeChange
from holdfast.workspace import Workspace
from lake_tables import (
    AWKWARD,
    CASES,
    INTEGERS,
    NO_INTEGERS,
    NOTHINGS,
    POOLS,
    VARIANTS,
    WORDS,
    chain,
    crossed,
    csv_text,
    equal,
    one_column,
    one_in_all,
    one_long,
    renamed,
    without_values,
    write_json_lines,
    write_parquet_files,
)
from reference import lake as oracle
from reference.lake import FILTERS, NULL_LIKE, Options, Pair, Table

WAYS = {
    "index": {"proposer": "index"},
    "dep2refs": {"proposer": "signatures", "strategy": "dep2refs"},
    "ref2deps": {"proposer": "signatures", "strategy": "ref2deps"},
}
HOPELESS = {"m": 8, "k": 1, "p": 1}  # signatures by which almost every pair is a candidate
COMBINATIONS = [c for n in range(5) for c in itertools.combinations(FILTERS, n)]


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut is no matter here, and syncing would take most of the time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as opened:
        yield opened


# -- a workspace, and what the oracle says -----------------------------------------------------------------


def arguments(options: Options) -> dict[str, Any]:
    """Options of the oracle as `link` takes them."""
    names = ("filters", "tau", "null_values", "normalise", "max_error", "min_values")
    return {name: getattr(options, name) for name in names}


def link(ws: Workspace, tables: Sequence[Table], options: Options | None = None, **how: Any) -> LakeChange:
    """Link tables, or add or replace them; they go through one file of JSON lines."""
    file = ws.root.parent / f"tables-{len(list(ws.root.parent.iterdir()))}.jsonl"
    given = {} if how.get("add") or how.get("replace") else arguments(options or Options())
    return ws.link(write_json_lines(tables, file), json_name="name", **given, **how)


def shared_of(ws: Workspace) -> dict[Pair, int]:
    """The inclusions of the lake with the values that both sides have, by tables and positions."""
    reader = ws.lake()
    assert reader is not None
    catalogue = reader.catalogue

    def side(column: int) -> oracle.Column:
        table = int(catalogue.table_of[column])
        return catalogue.table_name(table), column - catalogue.columns_of(table).start

    rows = [
        row for batch in reader.inds() for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)
    ]
    found = {(side(a), side(b)): shared for a, b, shared in rows}
    assert len(found) == len(rows)
    return found


def groups_of(ws: Workspace) -> tuple[set[frozenset[str]], set[str]]:
    """The components of the join graph, and the tables that are in none."""
    reader = ws.lake()
    assert reader is not None
    found: dict[int, set[str]] = {}
    for batch in reader.nodes():
        for name, component in zip(batch["name"].to_pylist(), batch["component"].to_pylist(), strict=True):
            found.setdefault(component, set()).add(name)
    alone = found.pop(-1, set())
    return {frozenset(group) for group in found.values()}, alone


@functools.cache
def verdict(
    tables: tuple[Table, ...], options: Options
) -> tuple[dict[Pair, int], dict[str, int], oracle.Graph]:
    """Removed inclusions are counted where they hold exactly."""
    removed = oracle.removed(tables, replace(options, max_error=0.0))
    return oracle.shared(tables, options), removed, oracle.graph(tables, options)


def agree(ws: Workspace, change: LakeChange, tables: Sequence[Table], options: Options | None = None) -> None:
    """All that a lake tells is what the oracle says of its tables."""
    shared, removed, graph = verdict(tuple(tables), options or Options())
    assert shared_of(ws) == shared
    assert dict(change.removed) == removed
    assert groups_of(ws) == (set(graph.components), set(graph.isolated))
    assert change.n_inds == len(shared)
    assert change.n_tables == len(tables)
    assert change.n_columns == sum(len(t.columns) for t in tables)
    assert (change.n_components, change.n_isolated) == (len(graph.components), len(graph.isolated))
    assert change.version == ws.version
    some = shared and next(iter(shared))[0][0]
    reader = ws.lake()
    assert reader is not None
    if some:  # a table by itself is read in another way
        expected = [pair for pair in shared if some in (pair[0][0], pair[1][0])]
        assert len(list(reader.ind_names(some))) == len(expected) == reader.ranked_joins(some)[1]


# -- lakes -------------------------------------------------------------------------------------------------


def random_tables(seed: int, n: int, pools: Sequence[str] = tuple(POOLS), max_rows: int = 9) -> list[Table]:
    """Tables of columns that list, repeat, leave out or miss values of some pools."""
    rng = random.Random(seed)
    found = []
    for i in range(n):
        n_rows, cells = rng.randrange(max_rows + 1), []
        for _ in range(rng.randrange(5)):
            pool = POOLS[rng.choice(list(pools))]
            some = pool[: rng.choice((2, 4, len(pool)))]
            if rng.random() < 0.4:
                cells.append(tuple(some[j % len(some)] for j in range(n_rows)))
            else:
                gap = (None,) if rng.random() < 0.3 else ()
                cells.append(tuple(rng.choice((*some, *gap)) for _ in range(n_rows)))
        found.append(Table(f"r{seed}/{i}.csv", tuple(f"h{j}" for j in range(len(cells))), tuple(cells)))
    return found


def hard_tables() -> list[Table]:
    """All that a filter or a proposer might stumble over, in one lake."""
    parts = {
        "empty": without_values().tables,
        "chain": chain(6).tables,
        "equal": equal(5).tables,
        "crossed": crossed(4).tables,
        "in all": one_in_all(6).tables,
        "long": one_long(7).tables,
    }
    lake = [replace(t, name=f"{part}/{t.name}") for part, tables in parts.items() for t in tables]
    same = (("x", "y", "z"), ("z", "z", "y"))
    return [
        *lake,
        Table("same/one", ("a", "b"), same),
        Table("same/two", ("a", "b"), same),
        Table("nothings", ("a", "b", "c"), (NOTHINGS[:5], NULL_LIKE[:5], (*NULL_LIKE[:4], None))),
        Table("more nothings", ("a", "b"), (tuple(NULL_LIKE), tuple(NULL_LIKE[:1]) * 14)),
        Table("integers", ("a", "b", "c"), (INTEGERS, (*INTEGERS[:9], "?"), ("1",) * 10)),
        Table("near integers", ("a",), (NO_INTEGERS,)),
        Table("some integers", ("a", "b"), (("1", "2", "", "-"), ("1", "2", "x", "-"))),
        Table("cell", ("a",), (("v0",),)),
        Table("lone", ("a",), (("seen", "nowhere", "else"),)),
        Table("words", ("a", "b", "c"), (WORDS, WORDS[:6] * 2, (*WORDS[:11], None))),
        Table("awkward", ("a", "b"), (AWKWARD, AWKWARD[::-1])),
        Table("variants", ("a",), (VARIANTS,)),
    ]


HARD = tuple(hard_tables())


@pytest.mark.parametrize("way", list(WAYS))
@pytest.mark.parametrize("filters", COMBINATIONS, ids=lambda c: "+".join(c) or "none")
def test_filters_and_ways(ws: Workspace, filters: tuple[str, ...], way: str) -> None:
    options = Options(filters=filters)
    change = link(ws, HARD, options, **WAYS[way])
    assert change.proposer == WAYS[way]["proposer"]
    assert change.filters == filters
    agree(ws, change, HARD, options)


@pytest.mark.parametrize(("number", "filters"), list(enumerate(COMBINATIONS)))
def test_random_lakes_with_hopeless_signatures(ws: Workspace, number: int, filters: tuple[str, ...]) -> None:
    way = list(WAYS.values())[number % 3]
    options = Options(filters=filters, tau=(0.2, 0.5, 1.0, 0.0)[number % 4])
    tables = random_tables(number, 14, pools=[list(POOLS)[number % len(POOLS)], "words", "mixed"])
    agree(ws, link(ws, tables, options, **HOPELESS, **way), tables, options)


@pytest.mark.parametrize("name", [name for name in CASES if name != "nothing at all"])
def test_cases_known_without_looking(ws: Workspace, name: str) -> None:
    case = CASES[name]()
    options = Options(filters=())
    change = link(ws, case.tables, options, **WAYS["index" if len(name) % 2 else "ref2deps"])
    assert set(shared_of(ws)) == case.pairs
    assert change.n_inds == len(case.pairs)


def test_hopeless_signatures_on_hard_tables(ws: Workspace) -> None:
    for way in ("dep2refs", "ref2deps"):
        agree(
            ws,
            link(ws, HARD, Options(filters=()), anew=True, **HOPELESS, **WAYS[way]),
            HARD,
            Options(filters=()),
        )


# -- many and wide -----------------------------------------------------------------------------------------


def test_three_hundred_tables(ws: Workspace) -> None:
    tables = random_tables(7, 300, max_rows=11)
    agree(ws, link(ws, tables), tables)
    signed = link(ws, tables, anew=True, **WAYS["dep2refs"])
    agree(ws, signed, tables)


@pytest.mark.parametrize("way", list(WAYS))
def test_very_wide_tables(ws: Workspace, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """More columns than a block of the signature matrix has: one of 1,000 and some of 840."""
    monkeypatch.setattr(signing, "BLOCKS_PER_TASK", 1)
    n_groups, widths = 600, [1_000, 840, 840, 840, 840]
    tables, group_of = [], {}
    for t, width in enumerate(widths):
        numbers = [(i * 7 + t) % n_groups for i in range(width)]
        group_of |= {(f"t{t}", i): g for i, g in enumerate(numbers)}
        cells = tuple((f"a{g}", f"b{g}") for g in numbers)
        tables.append(Table(f"t{t}", tuple(f"c{i}" for i in range(width)), cells))
    change = link(ws, tables, **WAYS[way])
    members: dict[int, list[oracle.Column]] = {}
    for column, group in group_of.items():
        members.setdefault(group, []).append(column)
    expected = {pair: 2 for group in members.values() for pair in itertools.permutations(group, 2)}
    assert shared_of(ws) == expected
    assert (change.n_columns, change.n_components) == (sum(widths), 1)
    assert len(group_of) > 4096


def test_cells_of_any_length(ws: Workspace) -> None:
    """What is shown of a long text is cut, what is compared is not."""
    long, other = "x" * 100_000, "x" * 99_999 + "y"
    tables = [
        one_column("one", [long]),
        one_column("two", [long, "a"]),
        one_column("three", [other, long[:-1]]),
        one_column("short", [long[:1000]]),
    ]
    agree(ws, link(ws, tables), tables)
    assert set(shared_of(ws)) == {(("one", 0), ("two", 0))}


# -- files of all kinds ------------------------------------------------------------------------------------


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


ODD_FILES = {
    "empty.csv": "",
    "no rows.csv": "a,b\n",
    "cell.csv": "a\nx\n",
    "header only twice.csv": "a,a,a\n",
    "doubled.csv": "a,a,,a\nx,y,z,x\nq,y,z,q\n",
    "ragged.csv": "a,b\nx\nx,y,z\n\n\ny,x\n",
    "quoted.csv": 'a,b\n"x,y","two\nlines"\n"say ""hi""",x\n',
    "quoted again.csv": 'p\n"say ""hi"""\n"x,y"\n',
    "lines.csv": 'p\n"two\nlines"\nx\n',
    "nulls.csv": "a,b\n,-\nN/A,?\n",
    "semicolons.csv": "a;b\nx;y\ny;x\n",
    "tabs.tsv": "a\tb\nx\ty\ny\tx\n",
    "deep/er/cell.csv": "a\nx\n",
}


ODD_TABLES = [
    Table("empty.csv", (), ()),
    Table("no rows.csv", ("a", "b"), ((), ())),
    Table("cell.csv", ("a",), (("x",),)),
    Table("header only twice.csv", ("a", "a_2", "a_3"), ((), (), ())),
    Table("doubled.csv", ("a", "a_2", "column_3", "a_3"), (("x", "q"), ("y", "y"), ("z", "z"), ("x", "q"))),
    Table("ragged.csv", ("a", "b", "column_3"), (("x", "x", "y"), (None, "y", "x"), (None, "z", None))),
    Table("quoted.csv", ("a", "b"), (("x,y", 'say "hi"'), ("two\nlines", "x"))),
    Table("quoted again.csv", ("p",), (('say "hi"', "x,y"),)),
    Table("lines.csv", ("p",), (("two\nlines", "x"),)),
    Table("nulls.csv", ("a", "b"), (("", "N/A"), ("-", "?"))),
    Table("semicolons.csv", ("a", "b"), (("x", "y"), ("y", "x"))),
    Table("tabs.tsv", ("a", "b"), (("x", "y"), ("y", "x"))),
    Table("deep/er/cell.csv", ("a",), (("x",),)),
]


def headers_of(ws: Workspace) -> dict[str, list[str]]:
    reader = ws.lake()
    assert reader is not None
    numbers = [n for batch in reader.nodes() for n in batch["table"].to_pylist()]
    tables = [reader.table(n) for n in numbers]
    return {t.name: [c.name for c in t.columns] for t in tables}


@pytest.mark.parametrize("filters", [(), FILTERS])
def test_odd_csv_files(ws: Workspace, tmp_path: Path, filters: tuple[str, ...]) -> None:
    options = Options(filters=filters)
    change = ws.link(write(tmp_path / "lake", ODD_FILES), **arguments(options))
    agree(ws, change, ODD_TABLES, options)
    assert headers_of(ws) == {t.name: list(t.header) for t in ODD_TABLES}
    assert (change.added, change.n_bad) == (len(ODD_TABLES), 0)


def test_files_without_headers(ws: Workspace, tmp_path: Path) -> None:
    files = {"a.csv": "x,y\ny,x\n", "b.csv": "x\ny\nz\n", "c.csv": ""}
    tables = [
        Table("a.csv", ("column_1", "column_2"), (("x", "y"), ("y", "x"))),
        Table("b.csv", ("column_1",), (("x", "y", "z"),)),
        Table("c.csv", (), ()),
    ]
    agree(ws, ws.link(write(tmp_path / "lake", files), header=False), tables)
    assert headers_of(ws) == {t.name: list(t.header) for t in tables}


def test_the_same_text_in_several_encodings(ws: Workspace, tmp_path: Path) -> None:
    texts, encodings = ("Zürich", "Málaga", "naïve", "€ 5"), ("utf-8", "utf-8-sig", "utf-16", "cp1252")
    text = "\n".join(("Städte", *texts)) + "\n"
    files = {f"{encoding}.csv": text.encode(encoding) for encoding in encodings}
    tables = [Table(f"{encoding}.csv", ("Städte",), (texts,)) for encoding in encodings]
    change = ws.link(write(tmp_path / "lake", files))
    agree(ws, change, tables)
    assert change.n_inds == 12
    assert {name for names in headers_of(ws).values() for name in names} == {"Städte"}


def test_the_same_tables_in_all_formats(ws: Workspace, tmp_path: Path) -> None:
    """A folder of CSV and Parquet files, archives and JSON lines of every shape: one component of equals."""
    table = Table("t.csv", ("city", "land"), (("Rome", "Oslo", "Bern"), ("it", "no", "ch")))
    rows, columns = [list(r) for r in table.rows], [list(c) for c in table.columns]
    documents: list[dict[str, Any]] = [
        {"headers": ["city", "land"], "rows": rows},
        {"header": ["city", "land"], "columns": columns},
        {"relation": [["city", *columns[0]], ["land", *columns[1]]]},
        {"relation": columns, "hasHeader": False},
        {
            "tableHeaders": [[{"text": "city"}, {"text": "land"}]],
            "tableData": [[{"text": cell, "links": [1]} for cell in row] for row in rows],
        },
        {"columns": [{"name": n, "values": v} for n, v in zip(table.header, columns, strict=True)]},
    ]
    text = csv_text(table)
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("in/side.csv", text)
    with tarfile.open(fileobj=tarred, mode="w:gz") as tar:
        info = tarfile.TarInfo("in/side.csv")
        info.size = len(text.encode())
        tar.addfile(info, io.BytesIO(text.encode()))
    folder = write(
        tmp_path / "lake",
        {
            "t.csv": text,
            "packed.csv.gz": gzip.compress(text.encode()),
            "lines.jsonl": "".join(json.dumps(d) + "\n" for d in documents),
            "one.json": json.dumps(documents[0]),
            "some.json": json.dumps(documents[:2]),
            "a.zip": zipped.getvalue(),
            "b.tar.gz": tarred.getvalue(),
        },
    )
    pq.write_table(pa.table({"city": columns[0], "land": columns[1]}), folder / "t.parquet")
    names = ["a.zip!in/side.csv", "b.tar.gz!in/side.csv", "t.csv", "packed.csv.gz", "t.parquet"]
    names += [f"lines.jsonl#{i}" for i in range(1, 7)] + ["one.json", "some.json#1", "some.json#2"]
    tables = [replace(table, name=name) for name in names]
    change = ws.link(folder)
    assert change.bad == ()
    agree(ws, change, tables)
    assert change.n_inds == 2 * len(names) * (len(names) - 1)
    # An archive by itself is a folder; an option names the fields of JSON that is not of a usual shape.
    change = ws.link(folder / "a.zip", folder / "b.tar.gz", anew=True)
    assert groups_of(ws) == (set(), {"in/side.csv"})
    before = f"another table of this name was read before it: {folder / 'a.zip'}!in/side.csv"
    assert change.bad == ((f"{folder / 'b.tar.gz'}!in/side.csv", before),)
    odd = {
        "meta": {"id": "mine"},
        "body": {"heads": ["a", "b"], "cells": [[{"t": "Rome"}, 1.50], [None, True]]},
    }
    file = write(tmp_path, {"odd.jsonl": json.dumps(odd)}) / "odd.jsonl"
    fields = {
        "json_name": "meta.id",
        "json_headers": "body.heads",
        "json_rows": "body.cells",
        "json_text": "t",
    }
    ws.link(file, folder / "t.csv", anew=True, **fields)
    assert headers_of(ws) == {"mine": ["a", "b"], "t.csv": ["city", "land"]}
    reader = ws.lake()
    assert reader is not None
    assert reader.table(0).rows == (("Rome", "1.5"), (None, "true"))


def test_parquet_with_nulls(ws: Workspace, tmp_path: Path) -> None:
    tables = [
        Table("a.parquet", ("c0", "c1"), (("x", None, "y"), (None, None, None))),
        Table("b.parquet", ("c0", "c1"), (("x", "y", "z"), ("x", "y", None))),
        Table("c.parquet", ("c0",), ((),)),
    ]
    for filters in ((), FILTERS):
        options = Options(filters=filters)
        change = ws.link(
            write_parquet_files(tables, tmp_path / "lake"), **arguments(options), anew=bool(filters)
        )
        agree(ws, change, tables, options)


# -- bad files ---------------------------------------------------------------------------------------------


def test_bad_files_are_left_out_and_told(ws: Workspace, tmp_path: Path) -> None:
    good = {"good.csv": "a\nx\ny\n", "better.csv": "b\nx\ny\nz\n"}
    bad = {
        "open.csv": 'a\n"never closed\n',
        "no.parquet": b"PAR1 no PAR1",
        "cut.csv.gz": gzip.compress(b"a\n" * 99)[:-9],
        "no.zip": b"PK no archive",
        "lines.jsonl": '{"rows": [["x"]]}\n{"no": "table"}\nno json\n',
    }
    folder = write(tmp_path / "lake", {**good, **bad})
    change = ws.link(folder)
    tables = [
        Table("better.csv", ("b",), (("x", "y", "z"),)),
        Table("good.csv", ("a",), (("x", "y"),)),
        Table("lines.jsonl#1", ("column_1",), (("x",),)),
    ]
    agree(ws, change, tables)
    told = {source.removeprefix(f"{folder}/"): reason for source, reason in change.bad}
    assert set(told) == {"open.csv", "no.parquet", "cut.csv.gz", "no.zip", "lines.jsonl#2", "lines.jsonl#3"}
    assert change.n_bad == len(change.bad) == 6
    assert "quote that is never closed" in told["open.csv"]
    assert "no table" in told["lines.jsonl#2"]
    assert "not JSON" in told["lines.jsonl#3"]
    assert all(len(reason) < 400 for reason in told.values())


def test_of_many_bad_files_some_are_listed(ws: Workspace, tmp_path: Path) -> None:
    n = BAD_LISTED + 30
    files = {f"{i}.csv": '"' for i in range(n)}
    change = ws.link(write(tmp_path / "lake", {**files, "good.csv": "a\nx\n"}))
    assert (change.n_tables, change.n_bad, len(change.bad)) == (1, n, BAD_LISTED)


def test_a_name_that_is_taken(ws: Workspace) -> None:
    """The first table of a name stays; `replace` puts the new one in its place."""
    first, second = one_column("t", ["x"]), one_column("t", ["x", "y"])
    other = one_column("u", ["x", "y", "z"])
    change = link(ws, [first, second, other])
    agree(ws, change, [first, other])
    assert (change.added, change.n_bad) == (2, 1)
    change = link(ws, [second, one_column("v", ["y"])], add=True)
    assert (change.added, change.known, change.n_bad) == (1, 1, 0)
    agree(ws, change, [first, other, one_column("v", ["y"])])
    change = link(ws, [second], add=True)
    assert (change.added, change.known, change.version) == (0, 1, ws.version) == (0, 1, 2)
    change = link(ws, [second], replace=True)
    assert (change.added, change.replaced, change.n_bad) == (0, 1, 0)
    agree(ws, change, [other, one_column("v", ["y"]), second])


@pytest.mark.parametrize(
    ("sources", "options", "told"),
    [
        ([], {}, "no source is named"),
        (["lake"], {"add": True, "anew": True}, "give one of add, replace and anew"),
        (["lake"], {"proposer": "magic"}, "unknown proposer"),
        (["lake"], {"strategy": "both"}, "unknown strategy"),
        (["lake"], {"filters": ["nil"]}, "unknown filters"),
        (["lake"], {"normalise": ["nfc"]}, "unknown normalise"),
        (["lake"], {"tau": 1.1}, "tau is 1.1"),
        (["lake"], {"tau": float("nan")}, "tau is nan"),
        (["lake"], {"max_error": 1}, "max_error is 1"),
        (["lake"], {"max_error": -0.1}, "max_error is -0.1"),
        (["lake"], {"m": 0}, "m is '?0"),
        (["lake"], {"k": 65}, "k is '?65"),
        (["lake"], {"p": 1.5}, "p is '?1.5"),
        (["lake"], {"min_values": 0}, "min_values is '?0"),
        (["lake"], {"m": True}, "m is"),
        (["lake"], {"m": 60_000, "p": 64}, "too long"),
        (["lake"], {"tau": "x"}, "tau is 'x'"),
        (["lake"], {"tau": [0.5]}, "tau is"),
        (["lake"], {"filters": "null"}, "expected a list of texts"),
        (["lake"], {"null_values": "abc"}, "expected a list of texts"),
        (["lake"], {"null_values": 3}, "expected a list of texts"),
        (["lake"], {"null_values": ["a", "\ud800"]}, "no Unicode text"),
        (["lake"], {"colour": "red"}, "colour"),
        (["lake"], {"delimiter": "ab"}, "delimiter"),
        (["lake"], {"encoding": "klingon"}, "klingon"),
    ],
)
def test_what_cannot_be_meant(
    ws: Workspace, tmp_path: Path, sources: list[str], options: dict[str, Any], told: str
) -> None:
    write(tmp_path / "lake", {"a.csv": "a\nx\n"})
    with pytest.raises(UsageError, match=told):
        ws.link(*(tmp_path / s for s in sources), **options)
    assert (ws.version, ws.lake()) == (0, None)


def test_sources_that_are_none(ws: Workspace, tmp_path: Path) -> None:
    write(tmp_path / "lake", {"a.txt.bak": "?"})
    for source in (tmp_path / "nowhere", tmp_path / "lake", "", "\0", "\ud800"):
        with pytest.raises((SourceError, UsageError)):
            ws.link(source)
    assert (ws.version, ws.lake()) == (0, None)


def test_where_nothing_can_be_read(ws: Workspace, tmp_path: Path) -> None:
    """A lake is not replaced by nothing: not by bad files either."""
    bad = write(tmp_path / "bad", {f"{i}.csv": '"' for i in range(3)})
    with pytest.raises(SourceError, match=r"no table could be read.*first of 3.*Nothing was applied"):
        ws.link(bad)
    assert (ws.version, ws.lake()) == (0, None)
    tables = chain(3).tables
    agree(ws, link(ws, tables), tables)
    for more in ({"anew": True}, {"add": True}, {"replace": True}):
        with pytest.raises(SourceError, match="Nothing was applied"):
            ws.link(bad, **more)
    assert ws.version == 1
    assert set(shared_of(ws)) == chain(3).pairs


def test_workspaces_are_no_sources(ws: Workspace, tmp_path: Path) -> None:
    """A folder may hold the workspace itself, and others: their files are no tables."""
    folder = write(tmp_path, {"a.csv": "x\nv\n", "deep/b.csv": "x\nv\n"})
    with holdfast.open(tmp_path / "deep" / "other.hold", engine="inline") as other:
        other.link(folder / "a.csv")
    change = ws.link(folder)
    assert (change.n_tables, change.n_inds, change.bad) == (2, 2, ())


def test_tables_go_by_the_end_of_their_names(ws: Workspace) -> None:
    tables = [one_column(name, ["v"]) for name in ("x/a.csv", "y/a.csv", "y/b.csv", "c.csv")]
    link(ws, tables)
    with pytest.raises(UsageError, match=r"x/a\.csv, y/a\.csv"):
        ws.unlink("b.csv", "a.csv")
    with pytest.raises(holdfast.errors.UnknownTableError, match=r"'d\.csv'"):
        ws.unlink("c.csv", "d.csv")
    with pytest.raises(UsageError, match="is a column"):
        ws.unlink("c.csv.c")
    assert ws.version == 1
    change = ws.unlink("b.csv", "x/a.csv", "y/b.csv")
    assert change.dropped == 2
    agree(ws, change, [tables[1], tables[3]])


# -- options -----------------------------------------------------------------------------------------------

SPELLINGS = [
    Table("a", ("x", "y"), (("Cat", "DOG "), ("none", "NIL"))),
    Table("b", ("x", "y"), ((" cat", "dog"), ("nil", "None"))),
    Table("c", ("x", "y"), (("\uff43\uff41\uff54", "dog"), ("1", "none"))),
    Table("d", ("x", "y"), (("straße", "cat"), ("\u2460", "nil"))),
    Table("e", ("x", "y"), (("STRASSE", "CAT"), ("2", "1"))),
    Table("v", ("x",), (VARIANTS,)),
]


@pytest.mark.parametrize(
    "normalise", [c for n in range(4) for c in itertools.combinations(oracle.NORMALISATIONS, n)], ids=str
)
def test_normalisation_and_values_that_are_none(ws: Workspace, normalise: tuple[str, ...]) -> None:
    options = Options(normalise=normalise, null_values=("None", " nil "), tau=0.0)
    agree(ws, link(ws, SPELLINGS, options, **WAYS["ref2deps"]), SPELLINGS, options)


@pytest.mark.parametrize("tau", [0, 1, 0.5, 1 / 3])
def test_coverage(ws: Workspace, tau: float) -> None:
    """Columns of one to six of the same values: each share of small numbers is there."""
    options = Options(tau=tau)
    tables = chain(6).tables
    agree(ws, link(ws, tables, options), tables, options)
    assert len(shared_of(ws)) == sum(i >= tau * j for j in range(1, 7) for i in range(1, j))


@pytest.mark.parametrize("max_error", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("min_values", [1, 5, 9])
def test_partial_inclusions(ws: Workspace, max_error: float, min_values: int) -> None:
    options = Options(max_error=max_error, min_values=min_values, filters=FILTERS[: min_values // 2])
    tables = [*random_tables(3, 12, ["words", "mixed"], 14), *crossed(10).tables, *chain(11).tables]
    tables = renamed(tables, lambda i, name: f"{i}/{name}")
    way = WAYS["ref2deps" if max_error == 0.5 else "index"]  # signatures are used where no value may miss
    agree(ws, link(ws, tables, options, **way), tables, options)


def test_partial_inclusions_are_kept_up(ws: Workspace) -> None:
    options = Options(max_error=0.25, min_values=4)
    tables = {t.name: t for t in [*crossed(9).tables, *renamed(chain(9).tables, lambda i, n: f"chain {i}")]}
    agree(ws, link(ws, list(tables.values()), options), list(tables.values()), options)
    more = [one_column("t3", [f"v{i}" for i in range(1, 9)]), one_column("new", ["v1", "v2", "v3", "q"])]
    change = link(ws, more, replace=True)
    tables |= {t.name: t for t in more}
    agree(ws, change, list(tables.values()), options)
    change = ws.unlink("t0", "chain 8")
    agree(ws, change, [t for n, t in tables.items() if n not in ("t0", "chain 8")], options)


# -- small limits ------------------------------------------------------------------------------------------

LIMITS: dict[str, list[tuple[Any, str, Any]]] = {
    "chunks": [(lake_propose, "CHUNK", 3), (lake_match, "LINKS_KEPT", 1)],
    "tasks": [
        (discovery, "ENTRIES_PER_TASK", 5),
        (lake_index, "ENTRIES_PER_TASK", 4),
        (signing, "BLOCKS_PER_TASK", 1),
        (intake, "UNIT_BYTES", 300),
    ],
    "merges": [(discovery, "MERGE_AT", 2), (discovery, "GATHER_AT", 1)],
    "bitmaps": [(lake_index, "long_posting", lambda n_columns: 2)],
    "few bitmaps": [(lake_index, "long_posting", lambda n_columns: 2), (lake_index, "BITMAP_BYTES", 64)],
}
LIMITS["all"] = [limit for limits in LIMITS.values() for limit in limits]


def few_tables(names: str, seed: int) -> dict[str, Table]:
    """Some small tables that have nearly everything."""
    tables = [
        *renamed(chain(4).tables, lambda i, _: f"{names} chain {i}"),
        *renamed(equal(3).tables, lambda i, _: f"{names} equal {i}"),
        *renamed(random_tables(seed, 3, ["words", "mixed"], 5), lambda i, _: f"{names} any {i}"),
        Table(f"{names} odd", ("a", "b", "c"), (("1", "?"), ("-", ""), (None, "v0"))),
        Table(f"{names} empty", (), ()),
    ]
    return {table.name: table for table in tables}


@pytest.mark.parametrize(
    ("limits", "way"),
    [
        *itertools.product(("chunks", "all"), WAYS),
        ("tasks", "index"),
        ("merges", "dep2refs"),
        ("bitmaps", "index"),
        ("few bitmaps", "ref2deps"),
    ],
)
def test_limits_change_nothing(ws: Workspace, monkeypatch: pytest.MonkeyPatch, limits: str, way: str) -> None:
    """A history of tables that come, change and go, with limits that all of them pass."""
    for module, name, value in LIMITS[limits]:
        monkeypatch.setattr(module, name, value)
    options = Options(filters=("integer", "coverage") if limits == "all" else FILTERS)
    held = few_tables("first", 5)
    how: dict[str, Any] = {**WAYS[way], **(HOPELESS if limits == "chunks" else {})}
    agree(ws, link(ws, list(held.values()), options, **how), list(held.values()), options)

    added = few_tables("more", 6)
    held |= added
    agree(ws, link(ws, list(added.values()), add=True, **WAYS[way]), list(held.values()), options)

    others = few_tables("other", 7).values()
    new = {name: replace(table, name=name) for name, table in zip(list(held)[::5], others, strict=False)}
    held |= new
    agree(ws, link(ws, list(new.values()), replace=True, **WAYS[way]), list(held.values()), options)

    gone = list(held)[::4]
    held = {name: table for name, table in held.items() if name not in gone}
    agree(ws, ws.unlink(*gone), list(held.values()), options)


def check_links(ws: Workspace, tables: Sequence[Table]) -> None:
    """A link of two tables counts their inclusions, and has the score of the best."""
    reader = ws.lake()
    assert reader is not None
    best: dict[tuple[str, str], list[float]] = {}
    for ind in reader.each_ind():
        if ind.dependent.table_id != ind.referenced.table_id:
            best.setdefault((ind.dependent.table, ind.referenced.table), []).append(ind.score)
    found = {}
    for batch in reader.edges():
        columns = (batch[name].to_pylist() for name in ("dependent", "referenced", "n_inds", "score"))
        for a, b, n, score in zip(*columns, strict=True):
            found[a, b] = n, score
    assert {pair: n for pair, (n, _) in found.items()} == oracle.graph(tables).edges
    for pair, (_, score) in found.items():
        assert score == pytest.approx(max(best[pair]), abs=1e-5)


def test_links_have_the_scores_of_their_inclusions(ws: Workspace) -> None:
    """Whether the tables of a link came together or one after the other; and after others went."""
    held = few_tables("first", 5)
    link(ws, list(held.values()))
    check_links(ws, list(held.values()))
    more = few_tables("more", 6)
    link(ws, list(more.values()), add=True)
    check_links(ws, [*held.values(), *more.values()])
    ws.unlink("first chain 2", "more odd")
    check_links(ws, [t for n, t in (held | more).items() if n not in ("first chain 2", "more odd")])


def test_all_go_and_others_come(ws: Workspace) -> None:
    tables = chain(5).tables
    link(ws, tables)
    agree(ws, ws.unlink(*(t.name for t in tables)), [])
    assert ws.version == 2
    agree(ws, link(ws, tables[::-1], add=True), tables)
    assert [entry.action for entry in ws.log()] == ["link", "link --drop", "link --add"]


def test_a_part_without_columns_is_no_other_part(ws: Workspace) -> None:
    numbers = Table("numbers", ("a",), (("1", "2", "2"),))
    others = Table("others", ("b", "c"), (("1", "2", "2"), ("2", "1", "1")))
    nothing = Table("nothing", (), ())
    agree(ws, link(ws, [numbers]), [numbers])
    agree(ws, link(ws, [nothing], add=True), [numbers, nothing])
    agree(ws, link(ws, [others], add=True), [numbers, nothing, others])


def test_a_lake_is_linked_once(ws: Workspace) -> None:
    tables = chain(3).tables
    for more in ({"add": True}, {"replace": True}):
        with pytest.raises(holdfast.errors.WorkspaceError, match="has no lake"):
            link(ws, tables, **more)
    link(ws, tables)
    with pytest.raises(UsageError, match=r"has a lake of 3 tables: add to it.*--replace.*--anew"):
        link(ws, tables)
    with pytest.raises(UsageError, match=r"linked with tau = 0.2, not '?0.5.*--anew"):
        ws.link(ws.root.parent, add=True, tau=0.5)
    assert ws.version == 1
    options = Options(tau=0.5, filters=("coverage",))
    agree(ws, link(ws, tables, options, anew=True), tables, options)
    # The same options once more are no others.
    again = arguments(options) | {"filters": ["coverage"], "normalise": []}
    file = write_json_lines([one_column("x", ["v0"])], ws.root.parent / "x.jsonl")
    agree(ws, ws.link(file, add=True, json_name="name", **again), [*tables, one_column("x", ["v0"])], options)
