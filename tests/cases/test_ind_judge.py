"""An independent engine judges: DuckDB counts what is missing, for every ordered pair of columns.

A small database in the shape of TPC-H (its eight tables, its types, skewed and partly NULL foreign keys) is
generated here. Where `tpchgen-cli` is installed, TPC-H itself at scale 0.002 is judged as well.
"""

from __future__ import annotations

import datetime as dt
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.words.dependency import Ind

Tables = dict[str, pa.Table]
Column = tuple[str, str]
Counts = tuple[int, int, int, int]  # missing values, missing rows, values of the one, values of the other

MONEY = pa.decimal128(15, 2)
EPOCH = dt.date(1992, 1, 1)
WORDS = ["almond", "blush", "coral", "drab", "forest", "ghost", "ivory", "lace", "misty", "navy"]


# -- a small database --------------------------------------------------------------------------------------


def generated(seed: int) -> Tables:
    """Eight tables of 5 to 400 rows."""
    rng = np.random.default_rng(seed)

    def chosen(values: Any, n: int, nulls: float = 0.0) -> list[Any]:
        found = [values[i] for i in rng.integers(0, len(values), n)]
        return [None if rng.random() < nulls else v for v in found]

    def money(n: int, largest: int) -> pa.Array:
        return pa.array([Decimal(int(v)).scaleb(-2) for v in rng.integers(-500, largest, n)], MONEY)

    def days(n: int, first: int, last: int) -> pa.Array:
        return pa.array([EPOCH + dt.timedelta(int(d)) for d in rng.integers(first, last, n)], pa.date32())

    def words(n: int) -> list[str]:
        return [" ".join(pair) for pair in zip(chosen(WORDS, n), chosen(WORDS, n), strict=True)]

    customers = (1 + np.arange(120)).tolist()
    parts, suppliers = (1 + np.arange(80)).tolist(), (1 + np.arange(20)).tolist()
    offers = [(p, (p + 5 * k) % 20 + 1) for p in parts for k in range(4)]
    sold = [offers[i] for i in rng.integers(0, len(offers) // 2, 400)]
    return {
        "region": pa.table(
            {
                "r_regionkey": pa.array(range(5), pa.int64()),
                "r_name": ["AFRICA", "AMERICA", "ASIA", "EU", "ME"],
            }
        ),
        "nation": pa.table(
            {
                "n_nationkey": pa.array(range(25), pa.int32()),
                "n_name": [f"NATION {i}" for i in range(25)],
                "n_regionkey": pa.array([i % 5 for i in range(25)], pa.int8()),
            }
        ),
        "supplier": pa.table(
            {
                "s_suppkey": suppliers,
                "s_name": [f"Supplier#{i:09d}" for i in suppliers],
                "s_nationkey": chosen(range(25), 20),
                "s_acctbal": money(20, 900_000),
            }
        ),
        "customer": pa.table(
            {
                "c_custkey": customers,
                "c_name": [f"Customer#{i:09d}" for i in customers],
                "c_nationkey": pa.array(chosen(range(25), 120, nulls=0.1), pa.float64()),
                "c_mktsegment": chosen(["AUTOMOBILE", "BUILDING", "FURNITURE"], 120),
                "c_active": pa.array(chosen([True, False], 120)),
            }
        ),
        "part": pa.table(
            {
                "p_partkey": parts,
                "p_name": words(80),
                "p_size": pa.array(rng.integers(1, 51, 80), pa.int16()),
                "p_retailprice": pa.array(rng.integers(0, 4000, 80) / 4),
            }
        ),
        "partsupp": pa.table(
            {
                "ps_partkey": [p for p, _ in offers],
                "ps_suppkey": pa.array([s for _, s in offers], pa.uint64()),
                "ps_supplycost": money(len(offers), 100_000),
                "ps_comment": words(len(offers)),
            }
        ),
        "orders": pa.table(
            {
                "o_orderkey": [4 * i + 1 for i in range(200)],
                "o_custkey": chosen(customers[:80], 200, nulls=0.02),
                "o_orderstatus": chosen(["F", "O", "P"], 200),
                "o_totalprice": money(200, 4_000),
                "o_orderdate": days(200, 0, 60),
                "o_created": pa.array(
                    [dt.datetime(1992, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 90, 200)],
                    pa.timestamp("s"),
                ),
            }
        ),
        "lineitem": pa.table(
            {
                "l_orderkey": [4 * int(i) + 1 for i in rng.integers(0, 200, 400)],
                "l_partkey": [p for p, _ in sold],
                "l_suppkey": [s for _, s in sold],
                "l_linenumber": rng.integers(1, 8, 400),
                "l_quantity": pa.array([Decimal(int(q)).scaleb(0) for q in rng.integers(1, 51, 400)], MONEY),
                "l_linestatus": chosen(["F", "O"], 400),
                "l_shipdate": days(400, 10, 50),
                "l_received": pa.array(
                    [dt.datetime(1992, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 40, 400)],
                    pa.timestamp("us"),
                ),
                "l_comment": words(400),
            }
        ),
    }


# -- the judge ---------------------------------------------------------------------------------------------


def domain(type_: pa.DataType) -> str:
    """Columns of different domains share no value."""
    is_ = pa.types
    if is_.is_integer(type_) or is_.is_floating(type_) or is_.is_decimal(type_):
        return "number"
    if is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_):
        return "text"
    return "timestamp" if is_.is_timestamp(type_) else str(type_)


def judged(tables: Mapping[str, pa.Table]) -> dict[tuple[Column, Column], Counts]:
    """For every ordered pair of columns what DuckDB counts. A query per column and domain."""
    found: dict[tuple[Column, Column], Counts] = {}
    with duckdb.connect(":memory:") as connection:
        sizes: dict[Column, tuple[int, int]] = {}
        domains: dict[Column, str] = {}
        names: dict[Column, str] = {}
        for table, rows in tables.items():
            connection.register(table, rows)
            for field in rows.schema:
                column = table, field.name
                names[column] = f"values_{len(names)}"
                connection.execute(
                    f"CREATE TABLE {names[column]} AS SELECT {field.name} AS v, count(*) AS n "
                    f"FROM {table} WHERE v IS NOT NULL GROUP BY v"
                )
                [sizes[column]] = connection.execute(
                    f"SELECT count(*), coalesce(sum(n), 0)::BIGINT FROM {names[column]}"
                ).fetchall()
                domains[column] = domain(field.type)
        for a in names:
            partners = [b for b in names if b != a and domains[b] == domains[a]]
            queries = [
                f"SELECT {i}, count(*), coalesce(sum(n), 0)::BIGINT FROM {names[a]} "
                f"WHERE NOT EXISTS (SELECT 1 FROM {names[b]} AS other WHERE other.v = {names[a]}.v)"
                for i, b in enumerate(partners)
            ]
            counted = connection.execute(" UNION ALL ".join(queries)).fetchall() if queries else []
            missing = {partners[i]: (values, rows) for i, values, rows in counted}
            for b in names:
                if b != a:
                    found[a, b] = (*missing.get(b, sizes[a]), sizes[a][0], sizes[b][0])
    return found


def check(ws: Workspace, tables: Mapping[str, pa.Table]) -> frozenset[str]:
    """Every pair against the judge; the INDs that hold."""
    expected = {pair: n for pair, n in judged(tables).items() if n[2] and n[3]}
    told: dict[tuple[Column, Column], Ind] = {}
    for d in ws.dependencies(kind="ind", max_error=1.0):
        assert isinstance(d, Ind)
        if len(d.dependent.columns) == 1:
            pair = (d.dependent.table, d.dependent.columns[0]), (d.referenced.table, d.referenced.columns[0])
            assert pair not in told
            told[pair] = d
    assert set(told) == set(expected)
    for pair, (values, rows, inside, outside) in expected.items():
        d = told[pair]
        assert (d.missing_values, d.missing_rows) == (values, rows), str(d)
        assert (d.error, d.coverage) == (values / inside, (inside - values) / outside), str(d)
    for max_error in (0.0, 0.02, 0.3):
        close = {
            (a, b) for (a, b), (missing, _, inside, _) in expected.items() if missing / inside <= max_error
        }
        found = [d for d in ws.dependencies(kind="ind", max_error=max_error) if len(d.dependent.columns) == 1]
        assert {str(d) for d in found} == {f"{t}[{a}] in {u}[{b}]" for (t, a), (u, b) in close}
    return frozenset(str(d) for d in told.values() if not d.missing_values)


FOREIGN_KEYS = {
    "nation[n_regionkey] in region[r_regionkey]",
    "supplier[s_nationkey] in nation[n_nationkey]",
    "customer[c_nationkey] in nation[n_nationkey]",
    "partsupp[ps_partkey] in part[p_partkey]",
    "partsupp[ps_suppkey] in supplier[s_suppkey]",
    "orders[o_custkey] in customer[c_custkey]",
    "lineitem[l_orderkey] in orders[o_orderkey]",
    "lineitem[l_partkey] in part[p_partkey]",
    "lineitem[l_suppkey] in supplier[s_suppkey]",
}


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with holdfast.open(tmp_path / "w", engine="inline") as found:
        yield found


def taken(tables: Tables, table: str, rng: np.random.Generator, n: int) -> tuple[pa.Table, pa.Table]:
    """(some rows, the others)."""
    order = rng.permutation(len(tables[table]))
    return tables[table].take(pa.array(order[:n])), tables[table].take(pa.array(np.sort(order[n:])))


def test_duckdb_confirms(ws: Workspace) -> None:
    rng = np.random.default_rng(3)
    tables, others = generated(1), generated(2)
    ws.track_all(tables, kinds=("ind",))
    seen = [check(ws, tables)]
    assert seen[0] >= FOREIGN_KEYS

    # Orders of customers that are not there yet; then the customers.
    new = others["orders"].slice(0, 30)
    new = new.set_column(1, "o_custkey", pa.array(range(110, 140)))
    change = ws.apply("orders", inserts=new)
    tables["orders"] = pa.concat_tables([tables["orders"], new])
    seen.append(check(ws, tables))
    broke = {str(c.dependency): c for c in change.broke}
    assert set(broke) == seen[0] - seen[1]
    assert set(broke["orders[o_custkey] in customer[c_custkey]"].values) <= set(range(121, 140))
    more = others["customer"].slice(0, 19).set_column(0, "c_custkey", pa.array(range(121, 140)))
    change = ws.apply("customer", inserts=more)
    tables["customer"] = pa.concat_tables([tables["customer"], more])
    seen.append(check(ws, tables))
    assert "orders[o_custkey] in customer[c_custkey]" in {str(c.dependency) for c in change.appeared}

    # Parents go, of several tables at once; a batch deletes and inserts.
    batch: dict[str, dict[str, pa.Table]] = {}
    for table, n in (("part", 5), ("supplier", 3), ("lineitem", 200), ("nation", 1)):
        gone, kept = taken(tables, table, rng, n)
        batch[table] = {"deletes": gone}
        tables[table] = kept
    arrived = others["lineitem"].slice(0, 50)
    batch["lineitem"]["inserts"] = arrived
    tables["lineitem"] = pa.concat_tables([tables["lineitem"], arrived])
    before = seen[-1]
    change = ws.apply_all(batch)
    seen.append(check(ws, tables))
    assert {str(c.dependency) for c in change.broke} == before - seen[-1]
    assert {str(c.dependency) for c in change.appeared} == seen[-1] - before

    # A table goes and comes back with other rows.
    ws.drop("orders")
    without = {name: rows for name, rows in tables.items() if name != "orders"}
    seen.append(check(ws, without))
    tables["orders"] = others["orders"]
    ws.track("orders", others["orders"], kinds=("ind",))
    seen.append(check(ws, tables))
    for name in tables:
        ws.merge(name)
    assert check(ws, tables) == seen[-1]
    assert len(set(seen)) == len(seen), "every step changes something"


def test_keys_change_nothing_for_unary_inds(ws: Workspace) -> None:
    """The same with keys: and of two columns what DuckDB confirms."""
    tables = generated(1)
    ws.track_all(tables, kinds=("ucc", "ind"))
    check(ws, tables)
    wide = [d for d in ws.dependencies(kind="ind") if len(d.dependent.columns) == 2]
    told = {str(d) for d in wide}
    assert "lineitem[l_partkey, l_suppkey] in partsupp[ps_partkey, ps_suppkey]" in told
    keys = [(d.table, set(d.columns)) for d in ws.dependencies(kind="ucc")]
    unary = [d for d in ws.dependencies(kind="ind") if len(d.dependent.columns) == 1]
    expected = set()
    with duckdb.connect(":memory:") as connection:
        for name, rows in tables.items():
            connection.register(name, rows)
        for one, other in combinations(unary, 2):
            (t, u), (a, b) = (one.dependent.table, one.referenced.table), (one.dependent, other.dependent)
            x, y = one.referenced.columns[0], other.referenced.columns[0]
            if (t, u) != (other.dependent.table, other.referenced.table) or a == b or x == y:
                continue
            if not any(table == u and key <= {x, y} for table, key in keys):
                continue
            names = tables[t].column_names
            pairs = sorted([(a.columns[0], x), (b.columns[0], y)], key=lambda pair: names.index(pair[0]))
            (a1, x1), (a2, x2) = pairs
            [n_missing] = connection.execute(
                f"SELECT count(*) FROM {t} WHERE ({a1} IS NOT NULL OR {a2} IS NOT NULL) AND NOT EXISTS ("
                f"SELECT 1 FROM {u} AS other WHERE ({t}.{a1} IS NULL OR {t}.{a1} = other.{x1}) "
                f"AND ({t}.{a2} IS NULL OR {t}.{a2} = other.{x2}))"
            ).fetchone() or [0]
            if not n_missing:
                expected.add(f"{t}[{a1}, {a2}] in {u}[{x1}, {x2}]")
    assert told == expected


# -- TPC-H -------------------------------------------------------------------------------------------------


def tpch_command() -> list[str] | None:
    """How to run the generator: its executable, on the path or beside Python, or its package."""
    path = shutil.which("tpchgen-cli") or shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent))
    if path:
        return [path]
    return [sys.executable, "-m", "tpchgen_cli"] if importlib.util.find_spec("tpchgen_cli") else None


@pytest.mark.skipif(tpch_command() is None, reason="tpchgen-cli is not installed")
def test_duckdb_confirms_tpch(ws: Workspace, tmp_path: Path) -> None:
    """Every pair of the 61 columns, before and after rows of three tables go, and half of them come back."""
    command = tpch_command()
    assert command is not None
    folder = tmp_path / "tpch"
    subprocess.run(
        [*command, "parquet", "-s", "0.002", f"--output-dir={folder}"], check=True, capture_output=True
    )
    tables = {path.stem: _without_views(pq.read_table(path)) for path in sorted(folder.glob("*.parquet"))}
    assert len(tables) == 8
    assert sum(len(t.column_names) for t in tables.values()) == 61
    ws.track_all(tables, kinds=("ind",))
    assert check(ws, tables) >= FOREIGN_KEYS
    rng = np.random.default_rng(5)
    gone: Tables = {}
    for table, n in (("lineitem", 1000), ("orders", 300), ("part", 10)):
        gone[table], tables[table] = taken(tables, table, rng, n)
    ws.apply_all({table: {"deletes": rows} for table, rows in gone.items()})
    check(ws, tables)
    back = {table: rows.slice(0, len(rows) // 2) for table, rows in gone.items()}
    ws.apply_all({table: {"inserts": rows} for table, rows in back.items()})
    check(ws, {**tables, **{table: pa.concat_tables([tables[table], rows]) for table, rows in back.items()}})


def _without_views(table: pa.Table) -> pa.Table:
    """Texts as Arrow can take rows of."""
    fields = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))
