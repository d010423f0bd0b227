"""Repairs equal a vote counted by hand, and their SQL repairs the table in DuckDB."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import UnknownColumnError, UsageError
from holdfast.app.export import DIALECTS
from holdfast.app.export.conditions import Untold
from holdfast.app.export.repairs import identifying, repair_sql, sql_literal
from holdfast.app.export.sql import DialectName
from holdfast.core.words.schema import Type
from reference import violations as reference

COLUMNS = ("a", "b", "c", "d")
cells = st.one_of(st.none(), st.integers(0, 2))
rows_ = st.lists(st.tuples(cells, cells, cells, cells), min_size=2, max_size=14)
dependencies = st.lists(
    st.tuples(st.lists(st.sampled_from(COLUMNS[:3]), unique=True, max_size=2), st.sampled_from(COLUMNS)),
    min_size=1,
    max_size=4,
    unique_by=lambda fd: (tuple(sorted(fd[0])), fd[1]),
)
Fds = list[tuple[list[str], str]]


@settings(max_examples=40)
@given(rows_, rows_, dependencies, st.sampled_from(["equal", "distinct"]), st.lists(st.integers(0, 20)))
@example([(0, 0, 0, None), (0, 0, 0, 1), (0, 0, 0, 1)], [(0, 0, 0, 2)] * 2, [(["a"], "d")], "equal", [])
@example([(0, 0, 0, 1)] * 3, [(0, 1, 0, 2)] * 2, [(["a"], "d"), (["b"], "d")], "equal", [])
def test_votes(
    first: Sequence[Any], then: Sequence[Any], fds: Fds, nulls: str, deleted: Sequence[int]
) -> None:
    whole = [dict(zip((*COLUMNS, "n"), (*row, i), strict=True)) for i, row in enumerate([*first, *then])]
    schema = pa.schema([(name, pa.int64()) for name in (*COLUMNS, "n")])
    gone = sorted({i % len(whole) for i in deleted})[: len(whole) - 1]
    live = [row for i, row in enumerate(whole) if i not in gone]
    named = [fd for fd in fds if fd[1] not in fd[0]]
    with tempfile.TemporaryDirectory() as folder, holdfast.open(f"{folder}/w", engine="inline") as ws:
        start = pa.Table.from_pylist(whole[: len(first)], schema)
        ws.track("t", start, kinds=("ucc",), nulls=nulls, row_key=["n"])
        ws.apply("t", inserts=pa.Table.from_pylist(whole[len(first) :], schema))
        if gone:
            ws.apply("t", deletes=pa.table({"n": gone}))
        repairs = ws.fds.repairs("t", fds)
        numbers = repairs.relation.fetch(repairs.row_ids).column("n").to_pylist()
        at = {row["n"]: i for i, row in enumerate(live)}
        values = zip(*repairs.values(), strict=True)
        proposals = {}
        for n, c, (old, new), votes, voters in zip(
            numbers, repairs.columns, values, repairs.votes, repairs.voters, strict=True
        ):
            column = schema.names[c]
            assert old == live[at[n]][column]
            proposals[at[n], column] = (new, votes, voters)
        assert proposals == reference.votes_of(live, named)
        assert np.all(np.diff(repairs.confidence) <= 0)
        assert [len(by) for by in repairs.said_by] == repairs.votes.tolist()
        for by, c in zip(repairs.said_by, repairs.columns, strict=True):
            assert {repairs.fds[i].rhs for i in by} == {schema.names[c]}
        assert repairs.to_arrow().schema == repairs.schema
        assert len(repairs.above(0.5)) == int((repairs.confidence >= 0.5).sum())


def people(n: int = 400) -> pa.Table:
    """Zips with a city and a state each, some of them misspelt."""
    rng = np.random.default_rng(3)
    zips = rng.integers(0, 40, n)
    city = [f"city {z // 2}" for z in zips]
    state = [f"state {z // 8}" for z in zips]
    for i in rng.choice(n, 12, replace=False).tolist():
        city[i] = city[i].replace("city", "cxty")
    return pa.table({"id": np.arange(n), "zip": [f"z{z}" for z in zips], "city": city, "state": state})


def test_the_dependencies_of_a_table_vote(tmp_path: Path) -> None:
    table = people()
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("people", table, kinds=("ucc",))  # functional dependencies need not be tracked
        repairs = ws.repairs("people")
        names = {fd.name for fd in repairs.fds}
        assert {"zip -> city", "zip -> state", "city -> state"} <= names
        assert not any(fd.lhs == ("id",) or fd.rhs == "id" for fd in repairs.fds)  # single rows do not vote
        old, new = repairs.values()
        assert len(repairs) == 12
        assert all(o.replace("cxty", "city") == n for o, n in zip(old, new, strict=True))
        assert "12 repairs by" in repr(repairs)
        assert len(ws.repairs("people", ["zip -> city"])) == 12
        assert len(ws.repairs("people", ["city -> state", "zip, state -> state"])) == 0
        with pytest.raises(UnknownColumnError, match="zap"):
            ws.repairs("people", ["zap -> city"])
        with pytest.raises(UsageError, match="->"):
            ws.repairs("people", ["zip"])


def test_nothing_determines_anything(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", pa.table({"a": [1, 2, 3], "b": [1, 1, 1]}))
        ws.track("none", pa.table({"a": pa.array([], pa.int64())}))
        for table in ("t", "none"):
            repairs = ws.repairs(table)
            assert (len(repairs), repairs.fds, repairs.to_dict()["repairs"]) == (0, (), [])


VALUES = {
    "text": ("it's\n", "other"),
    "number": (7, -1),
    "share": (0.1, float("nan")),
    "money": (Decimal("1.50"), Decimal("2.00")),
    "day": (dt.date(2020, 2, 29), dt.date(1999, 1, 1)),
    "clock": (dt.time(1, 2, 3), dt.time(4, 5, 6)),
    "at": (dt.datetime(2020, 1, 2, 3, 4, 5, 6), dt.datetime(1970, 1, 1)),
    "bytes": (b"\x00'\xff", b""),
    "flag": (True, False),
}


@pytest.mark.parametrize("with_key", [True, False])
def test_the_sql_repairs_the_table(tmp_path: Path, with_key: bool) -> None:
    """Of all types, NULL among the old values; each statement finds its row, and no other."""
    columns: dict[str, Any] = {"id": list(range(6)), "g": [1, 1, 1, 1, 1, 2]}
    for name, (right, wrong) in VALUES.items():
        columns[name] = pa.array([right, right, right, wrong, None, wrong])
    table = pa.table(columns)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("odd 'table'", table, kinds=("ucc",))
        repairs = ws.repairs("odd 'table'", [f"g -> {name}" for name in VALUES])
        assert len(repairs) == 2 * len(VALUES)
        key = identifying(repairs, [("g", "flag"), ("id",)] if with_key else [("flag",)])
        assert key == (("id",) if with_key else tuple(table.column_names))
        script = "".join(repair_sql(repairs, key, "duckdb"))
        db = duckdb.connect(":memory:")
        db.register("given", table)
        db.execute("""CREATE TABLE "odd 'table'" AS SELECT * FROM given""")
        db.execute(script)
        rows = db.execute("""SELECT * FROM "odd 'table'" ORDER BY id""").fetchall()
    right = tuple(value for value, _ in VALUES.values())
    assert rows[:5] == [(i, 1, *right) for i in range(5)]
    assert repr(rows[5]) == repr((5, 2, *(wrong for _, wrong in VALUES.values())))
    assert script.count("UPDATE") == 2
    for dialect in ("ansi", "postgres"):
        assert "".join(repair_sql(repairs, key, dialect)).count("UPDATE") == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_nul_of_a_name_or_a_value_reaches_sql(tmp_path: Path, dialect: DialectName) -> None:
    """What no text of SQL can hold: names are fitted, and a row with such a value has no UPDATE."""
    zips, cities = [1] * 4 + [2] * 4, ["Ulm", "Ulm", "Ulm", "Bonn", "a\0b", "a\0b", "a\0b", "Bonn"]
    table = pa.table({"k\0": range(8), "zip\0": zips, "city\0": cities})
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", table, kinds=("ucc",))
        repairs = ws.fds.repairs("t", [(["zip\0"], "city\0")])
        script = "".join(repair_sql(repairs, ("k\0",), dialect))
    assert "\0" not in script
    assert r"""row 0.3, 'city\x00': confidence""" in script
    assert script.count('UPDATE "') == 1
    assert "-- no UPDATE: a text of SQL has no NUL in it\n" in script
    with pytest.raises(Untold, match="NUL"):
        sql_literal("a\0b", Type("text"), dialect)


def test_small_decimals_are_written_to_the_last_digit() -> None:
    """A number with an exponent would be a float of SQL, which has 17 digits."""
    value, type_ = Decimal("0.00000012345678901234567890"), Type("decimal", precision=38, scale=26)
    assert sql_literal(value, type_, "duckdb") == "0.00000012345678901234567890"
