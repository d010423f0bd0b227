"""Queries of SQLite files and of a PostgreSQL server, by the drivers of ADBC."""

from __future__ import annotations

import datetime as dt
import sqlite3
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast
from holdfast.core.rows import encoding
from holdfast.errors import (
    ColumnTypeError,
    HoldfastError,
    SchemaError,
    SourceError,
    UnknownColumnError,
    UsageError,
)
from pipeline import database
from pipeline.test_feeding import ROWS, rows_of

# One server for all tests of a run; with the clusters, as a fifth group would wait for another one.
pytestmark = pytest.mark.xdist_group("cluster")


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[holdfast.Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as opened:
        yield opened


# -- SQLite --------------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    pytest.importorskip("adbc_driver_sqlite", reason="adbc-driver-sqlite is not installed")
    path = tmp_path / "my shop.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("create table t (id integer, name text)")
    connection.executemany("insert into t values (?, ?)", [tuple(row.values()) for row in ROWS])
    connection.execute("create table late (x)")
    connection.executemany("insert into late values (?)", [(None,)] * 3_000 + [("late",)])
    connection.execute("create table mixed (x)")
    connection.executemany("insert into mixed values (?)", [(i,) for i in range(70_000)] + [("late",)])
    connection.commit()
    connection.close()
    return path


def test_sqlite_files(ws: holdfast.Workspace, shop: Path) -> None:
    ws.track("t", str(shop), options={"sql": "select * from t"})
    assert rows_of(ws) == ROWS
    ws.apply("t", inserts=f"sqlite:///{shop}", options={"sql": "select id + 10 as id, name from t"})
    assert ws.n_rows("t") == 6
    ws.track("typed", shop, options={"sql": "select 1.5 r, x'ff' b, null n, 'ä' t, 7 i"})
    assert [str(t) for t in ws.schema("typed").types] == ["float", "binary", "int", "text", "int"]
    ws.track("late", shop, options={"sql": "select rowid id, x from late"})
    assert str(ws.schema("late").types[1]) == "text"


def test_what_sqlite_has_no_types_for_is_told(ws: holdfast.Workspace, shop: Path) -> None:
    sql = """select 1 id, '2026-01-31' day, '2026-01-31 14:05:00' at, 1.25 price, 2.0 n, 0.3333 x, 'a' t
        union all select 2, null, null, null, 3.0, 1.5, '2026-01-31'"""
    assert ws.track("sold", shop, options={"sql": sql}).notes == (
        "sold: day: dates are texts, as SQLite has no dates; --types day=date reads them as such",
        "sold: at: dates are texts, as SQLite has no dates; --types at=timestamp[us] reads them as such",
        "sold: price: decimals are floats, as SQLite has no decimals; --types price=decimal(18,2) reads them "
        "as such",
    )
    assert ws.n_rows("sold") == 2
    assert ws.apply("sold", snapshot=shop, options={"sql": sql}).notes == ()
    assert ws.track("none", shop, options={"sql": "select * from t where id < 0"}).notes == ()


def test_a_column_of_mixed_types_is_told(ws: holdfast.Workspace, shop: Path) -> None:
    sql = """select 1 id, 1 x, 12345678.25 "a ""y", 'p' t, x'ff' b -- the first
        union all select 2, 'a', 'b', 'q', null union all select 3, null, null, null, 0.5;"""
    notes = ws.track("t", shop, options={"sql": sql}).notes
    step = "in the sql gives it one type"
    assert notes == (
        f"t: x: integer and text values are read as texts; CAST(x AS TEXT), or AS REAL, {step}",
        't: a "y: real and text values are read as texts, with seven digits of the reals; '
        f'CAST(a "y AS TEXT), or AS REAL, {step}',
        "t: b: blob and real values are read as bytes, with seven digits of the reals; "
        f"CAST(b AS TEXT), or AS REAL, {step}",
    )
    assert ws.apply("t", snapshot=shop, options={"sql": sql}).notes == ()
    assert ws.track("columns", shop, options={"sql": "pragma table_info(t)"}).notes == ()


def test_declared_types_of_sqlite(ws: holdfast.Workspace, shop: Path) -> None:
    sql = """select 1 id, '2026-01-31' day, '2026-1-31 14:05' at, 0.1 price, 7 n, null x
        union all select 2, null, null, 1234.5, null, null"""
    types = {"day": "date", "at": "timestamp[us]", "price": "decimal(18,2)", "n": "float", "x": "date"}
    change = ws.track("t", shop, options={"sql": sql, "types": types}, row_key=["id"])
    assert change.notes == ()
    assert {c.name: str(c.type) for c in ws.schema("t").columns} == {"id": "int", **types}
    assert rows_of(ws)[0] == {
        "id": 1,
        "day": dt.date(2026, 1, 31),
        "at": dt.datetime(2026, 1, 31, 14, 5),
        "price": Decimal("0.10"),
        "n": 7.0,
        "x": None,
    }
    assert ws.apply("t", snapshot=shop, options={"sql": sql}).tables[0].n_unchanged == 2
    assert (
        ws.apply("t", updates=shop, options={"sql": "select 1 id, '2026-02-01' day"}).tables[0].n_updated == 1
    )
    assert ws.apply("t", deletes=shop, options={"sql": "select 1 id"}).tables[0].n_deleted == 1
    for column, type_, error in (
        (
            "'2026-02-30' x",
            "date",
            "'x' of table 'u' is date by declaration; the query has '2026-02-30' in row 2",
        ),
        ("0.125 x", "decimal(18,2)", "'x' of table 'u' is decimal.18,2.; the query has 0.125 in row 2"),
    ):
        with pytest.raises(ColumnTypeError, match=error):
            ws.track(
                "u", shop, options={"sql": f"select null x union all select {column}", "types": {"x": type_}}
            )
    with pytest.raises(UnknownColumnError, match="nowhere"):
        ws.track("u", shop, options={"sql": "select 1 id", "types": {"nowhere": "int"}})


def test_a_sqlite_file_is_opened_for_reading(ws: holdfast.Workspace, shop: Path, tmp_path: Path) -> None:
    for sql in ("insert into t values (9, 'x')", "create table new (x)", "drop table t"):
        with pytest.raises(SourceError, match=r"SQLite refuses the query .*readonly database.*Nothing was"):
            ws.track("u", shop, options={"sql": sql})
    with pytest.raises(SourceError, match=r"there is no file 'sqlite:///.*none.db' for table 'u'"):
        ws.track("u", f"sqlite:///{tmp_path / 'none.db'}", options={"sql": "select 1"})
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(SourceError, match=r"SQLite refuses the query .*: .*no such table: nowhere\."):
        ws.track("u", shop, options={"sql": "select * from nowhere"})
    with pytest.raises(SourceError, match=r"Type mismatch in column 0.* Next step: give the column one type"):
        ws.track("u", shop, options={"sql": "select x from mixed"})
    ws.track("u", shop, options={"sql": "select cast(x as text) x from mixed"})
    for sql in ("", "  ", "attach ':memory:' as other"):
        with pytest.raises(UsageError, match=r"has no rows to read: .*give one SELECT"):
            ws.track("v", shop, options={"sql": sql})
    assert (ws.version, ws.tables()) == (1, ["u"])


# -- PostgreSQL ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("adbc_driver_postgresql", reason="adbc-driver-postgresql is not installed")
    bin = database.programs()
    if bin is None:
        pytest.skip("there is no PostgreSQL server here: no initdb, not below /usr/lib/postgresql either")
    with database.served(bin) as address:
        run(address, "create type mood as enum ('sad', 'ok')")
        run(address, f"create table everything ({', '.join(f'{n} {t}' for n, (t, *_) in TYPES.items())})")
        values = ", ".join(literal for _, literal, *_ in TYPES.values())
        run(address, f"insert into everything values ({values})")
        run(address, "insert into everything (i2) values (null)")
        yield address


def run(address: str, sql: str) -> None:
    dbapi: Any = sys.modules.get("adbc_driver_postgresql.dbapi") or pytest.importorskip(
        "adbc_driver_postgresql.dbapi"
    )
    with dbapi.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        connection.commit()


WHO = uuid.UUID("0e37df36-f698-11e6-8dd4-cb9ced3df976")
# name: (type, literal, the type here, the value here)
TYPES: dict[str, tuple[str, str, str, Any]] = {
    "i2": ("int2", "-1", "int", -1),
    "i4": ("int4", "2", "int", 2),
    "i8": ("int8", "9223372036854775807", "int", 2**63 - 1),
    "amount": ("numeric(12,2)", "2.5", "decimal(12,2)", Decimal("2.50")),
    "hundreds": ("numeric(5,-2)", "1234", "decimal(7,0)", Decimal(1200)),
    "tiny": ("numeric(3,5)", "0.00123", "decimal(5,5)", Decimal("0.00123")),
    "wide": ("numeric(60,2)", "1e50", "decimal(60,2)", Decimal(10) ** 50),
    "free": ("numeric", "1.50", "decimal(38,18)", Decimal("1.5")),
    "f4": ("float4", "1.5", "float", 1.5),
    "f8": ("float8", "2.5", "float", 2.5),
    "b": ("bool", "true", "bool", True),
    "t": ("text", "'ä'", "text", "ä"),
    "vc": ("varchar(20)", "'v'", "text", "v"),
    "c": ("char(4)", "'ch'", "text", "ch  "),
    "d": ("date", "'2024-01-02'", "date", dt.date(2024, 1, 2)),
    "ts": (
        "timestamp",
        "'2024-01-02 10:00:00.000005'",
        "timestamp[us]",
        dt.datetime(2024, 1, 2, 10, 0, 0, 5),
    ),
    "tz": (
        "timestamptz",
        "'2024-01-02 10:00+02'",
        "timestamp[us,utc]",
        dt.datetime(2024, 1, 2, 8, tzinfo=dt.UTC),
    ),
    "ti": ("time", "'10:11:12.5'", "time[us]", dt.time(10, 11, 12, 500_000)),
    "who": ("uuid", f"'{WHO}'", "text", str(WHO)),
    "j": ("json", """'{"a":1}'""", "text", '{"a":1}'),
    "jb": ("jsonb", """'{"a":1}'""", "text", '{"a": 1}'),
    "by": ("bytea", r"'\xff00'", "binary", b"\xff\x00"),
    "m": ("mood", "'ok'", "text", "ok"),
    "o": ("oid", "4000000000", "int", 4_000_000_000),
    "address": ("inet", "'10.0.0.1'", "binary", b"\x02 \x00\x04\n\x00\x00\x01"),
    "parts": ("int[]", "array[1, 2]", "", None),
}


def test_postgres_types(ws: holdfast.Workspace, server: str) -> None:
    """Numbers are numbers, texts texts; NULL is NULL."""
    change = ws.track("t", server, options={"sql": "select * from everything"}, kinds=("ucc",))
    flat = {name: column for name, column in TYPES.items() if column[2]}
    assert {c.name: str(c.type) for c in ws.schema("t").columns} == {n: c[2] for n, c in flat.items()}
    row = next(row for row in rows_of(ws) if row["i2"] is not None)
    assert row == {name: value for name, (*_, value) in flat.items()}
    empty = next(row for row in rows_of(ws) if row["i2"] is None)
    assert empty == dict.fromkeys(flat)
    assert change.notes == (
        "t: parts is nested and left out: flatten what you want to keep",
        "t: free is numeric without digits of its own, read as decimal(38,18); cast it in the sql to have it "
        "otherwise",
        "t: address (inet): values are kept as the server sends them, in bytes; cast them to text in the sql "
        "to read them",
    )
    # A batch of Arrow's, and a snapshot of the server: the same types.
    ws.apply("t", inserts=pa.table({**{n: [None] for n in flat}, "amount": [Decimal("9.99")]}))
    again = ws.apply("t", snapshot=server, options={"sql": "select * from everything"})
    assert (again.tables[0].n_inserted, again.tables[0].n_deleted, ws.n_rows("t")) == (0, 1, 2)


def test_numbers_are_one_value_however_they_are_written(ws: holdfast.Workspace, server: str) -> None:
    sql = "select * from (values (1, 1.5::numeric), (2, 1.50), (3, 2)) t(id, n)"
    ws.track("t", server, options={"sql": sql}, kinds=("ucc",))
    assert [str(d) for d in ws.dependencies("ucc")] == ["t[id]"]
    for value in ("'NaN'::numeric", "1e30::numeric", "1 / 3.0"):
        with pytest.raises(
            ColumnTypeError, match=r"column 'n' .*decimal\(38,18\), and has .*cast it in the sql"
        ):
            ws.apply("t", inserts=server, options={"sql": f"select 4 as id, {value} as n"})
    assert (ws.version, ws.n_rows("t")) == (1, 3)
    with pytest.raises(SchemaError, match=r"column 'x' .*month_day_nano_interval"):
        ws.track("u", server, options={"sql": "select interval '1 day' x"})


def test_a_server_is_only_read(ws: holdfast.Workspace, server: str) -> None:
    for sql in (
        "insert into everything (i2) values (9)",
        "delete from everything returning i2",
        "drop table everything",
    ):
        with pytest.raises(SourceError, match=r"in a read-only transaction. Nothing was applied"):
            ws.track("t", server, options={"sql": sql})
    ws.track("t", server, options={"sql": "select count(*) n from everything"})
    assert rows_of(ws) == [{"n": 2}]


def test_what_goes_wrong_is_said_and_no_password_with_it(ws: holdfast.Workspace, server: str) -> None:
    ok, place = "select 1 x", server.partition("@")[2]
    port = place.partition(":")[2].partition("/")[0]
    ws.track("t", server, options={"sql": ok})
    wrong: list[tuple[str, str, type[HoldfastError], str]] = [
        (
            server,
            "select * from nowhere",
            SourceError,
            'relation "nowhere" does not exist. Nothing was applied',
        ),
        (server, "selekt 1", SourceError, 'syntax error at or near "selekt". Nothing'),
        (server, "select 1; select 2", SourceError, "cannot insert multiple commands"),
        (server, "begin", UsageError, "has no rows to read: 'begin'.*give one SELECT"),
        (server, "select 1 a, 2 a", HoldfastError, "two columns 'a'"),
        (
            server,
            "select 1 / (i - 300000) x from generate_series(1, 300001) i",
            SourceError,
            "query of .*division by zero",
        ),
        (server.replace(database.PASSWORD, "wr0ngs3cr3t"), ok, SourceError, "password authentication failed"),
        (
            server.rpartition("/")[0] + "/nodb",
            ok,
            SourceError,
            '"nodb" does not exist',
        ),
        (server.replace(f":{port}/", ":1/"), ok, SourceError, "Connection refused.*check the address"),
        (server.replace(f":{port}/", ":port/"), ok, SourceError, "does not open"),
        (server.replace("s3cr3t", "%zzs3cr3t"), ok, UsageError, "%25 for %"),
        (server.replace("s3cr3t", "s3/cr3t"), ok, UsageError, "%2F for /"),
        (server + "?password=s3cr3t&odd=1", ok, SourceError, "odd"),
    ]
    for address, sql, error, what in wrong:
        with pytest.raises(error, match=what) as told:
            ws.apply("t", inserts=address, options={"sql": sql})
        assert "cr3t" not in str(told.value)
    assert (ws.version, ws.n_rows("t"), ws.verify() > 0) == (1, 1, True)
    ws.track("upper", server.replace("postgresql://", "POSTGRES://"), options={"sql": ok})
    ws.track("options", f"postgresql://{place}?user=me&password={database.PASSWORD}", options={"sql": ok})
    root = Path(str(ws.writer.root))
    assert not any(b"cr3t" in path.read_bytes() for path in root.rglob("*") if path.is_file())


def test_a_large_answer_goes_through_in_parts(
    ws: holdfast.Workspace, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is staged as it comes; what breaks on the way leaves nothing."""
    monkeypatch.setattr(encoding, "WHOLE_BYTES", 1)
    monkeypatch.setattr(encoding, "MIN_SPLIT_BYTES", 1 << 16)
    text = "select i id, (i % 100)::numeric(12, 2) n, md5(i::text)::uuid u from generate_series(1, {}) i"
    ws.track("t", server, options={"sql": text.format(200_000)}, kinds=("ucc",))
    assert (ws.n_rows("t"), [str(d) for d in ws.dependencies("ucc")]) == (200_000, ["t[id]", "t[u]"])
    broken = text.format(90_001).replace("(i % 100)", "(1 / (i - 90000))")
    with pytest.raises(SourceError, match=r"division by zero\. Nothing was applied"):
        ws.apply("t", inserts=server, options={"sql": broken})
    assert (ws.version, ws.n_rows("t")) == (1, 200_000)
