"""Inclusion dependencies inline and on Spark: same INDs, same changes; few jobs per batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Change, Workspace
from holdfast.core.engine.engine import Engine
from holdfast.core.rows.relation import Relation
from holdfast.core.words.dependency import Ind, Side
from holdfast.errors import DamagedFileError
from holdfast.inclusions import values
from holdfast.inclusions.links import facts
from holdfast.kind import kinds
from pipeline.test_engines_agree import written
from reference import inds as oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
Opener = Callable[[str], Workspace]

CUSTOMERS = ("id", "country", "joined")
ORDERS = ("id", "customer", "product", "day", "ship_to")
PRODUCTS = ("code", "price", "origin")
COUNTRIES = ["Peru", "Oman", "Fiji", "Mali", "Cuba", "", 'said "no", left']


@pytest.fixture
def opened(tmp_path: Path, spark: SparkSession) -> Iterator[Opener]:
    """Workspaces by mode of the engine."""
    found: list[Workspace] = []

    def open_one(mode: str) -> Workspace:
        number = len(found)
        given = spark if mode == "spark" else None
        found.append(holdfast.open(tmp_path / f"{mode}-{number}", engine=mode, spark=given))  # type: ignore[arg-type]
        return found[-1]

    yield open_one
    for ws in found:
        ws.close()


def customers(first: int, n: int) -> list[Row]:
    return [(i, COUNTRIES[i % 4], f"2026-01-{i % 28 + 1:02d}") for i in range(first, first + n)]


def products(first: int, n: int) -> list[Row]:
    return [(i, f"{i % 7 + 0.25:.2f}", COUNTRIES[i % 6]) for i in range(first, first + n)]


def orders(seed: int, first: int, n: int, n_customers: int, n_products: int) -> list[Row]:
    """Shipped to the country of the customer."""
    rng = np.random.default_rng(seed)
    bought = rng.integers(0, [n_customers, n_products, 28], (n, 3)).tolist()
    return [
        (first + i, customer, product, f"2026-01-{day + 1:02d}", COUNTRIES[customer % 4])
        for i, (customer, product, day) in enumerate(bought)
    ]


def as_told(d: Ind) -> tuple[Any, ...]:
    return str(d), d.missing_values, d.missing_rows, d.error, d.coverage


def told(change: Change) -> tuple[Any, ...]:
    """What a change says, but for its version, which rows and values it picks and the time it took."""
    events = {(c.event, str(c.dependency), len(c.values), len(c.witnesses)) for c in change.changes}
    assert len(events) == len(change.changes)
    return change.n_inserted, change.n_deleted, change.n_rows, events


def script(ws: Workspace, folder: Path, kinds: Sequence[str]) -> list[Any]:
    """Folders and files of CSV; batches of every sort to one and to several tables; all that was said."""
    sold = orders(1, 0, 90, 40, 30)
    for i in range(3):
        written(folder / "orders" / f"{i}.csv", sold[30 * i : 30 * i + 30], ORDERS)
    strays = [(200, 77, 3, "2026-01-03", "Peru"), (201, 78, 99, "2026-02-01", "Cuba")]

    def csv(name: str, rows: Sequence[Row], names: Sequence[str]) -> str:
        return written(folder / f"{name}.csv", rows, names)

    steps: list[Callable[[], Any]] = [
        lambda: ws.track_all(
            {
                "customers": csv("customers", customers(0, 40), CUSTOMERS),
                "orders": str(folder / "orders"),
            },
            kinds=kinds,
            row_key=["id"],
        ),
        lambda: ws.track(
            "products", csv("products", products(0, 40), PRODUCTS), kinds=("ind",), append_only=True
        ),
        lambda: ws.check("orders", inserts=csv("strays", strays, ORDERS)),
        lambda: ws.apply("orders", inserts=csv("strays", strays, ORDERS)),
        lambda: ws.apply("customers", inserts=csv("more", customers(77, 2), CUSTOMERS)),
        lambda: ws.apply("orders", deletes=csv("gone", [(201,)], ("id",))),
        lambda: ws.apply("orders", updates=csv("updates", [(3, 20, "Fiji")], ("id", "customer", "ship_to"))),
        lambda: ws.apply_all(
            {
                "customers": {
                    "deletes": csv("left", [(i,) for i in range(5)], ("id",)),
                    "inserts": csv("new", customers(300, 3), CUSTOMERS),
                },
                "products": {"inserts": csv("new products", products(60, 2), PRODUCTS)},
                "orders": {
                    "before": csv("before", sold[60:63], ORDERS),
                    "after": csv("after", [(*row[:1], 301, *row[2:]) for row in sold[60:63]], ORDERS),
                },
            }
        ),
        lambda: ws.merge("orders") > 0,
        lambda: ws.drop("customers") > 0,
        lambda: ws.track("customers", csv("again", customers(0, 90), CUSTOMERS), kinds=kinds),
    ]
    said: list[Any] = []
    for step in steps:
        result = step()
        said.append(told(result) if isinstance(result, Change) else result)
        found = [d for d in ws.dependencies(kind="ind", max_error=1.0) if isinstance(d, Ind)]
        said.append(sorted(as_told(d) for d in found))
        said.append(sorted(str(d) for d in ws.dependencies(kind="ind")))
        said.append(sorted(str(d) for d in ws.dependencies(kind="ucc")))
        said.append(ws.inds.clusters())
    return said


@pytest.mark.parametrize("kinds", [("ind",), ("ucc", "ind")])
def test_the_same_script(opened: Opener, tmp_path: Path, kinds: tuple[str, ...]) -> None:
    inline, on_spark = opened("inline"), opened("spark")
    expected = script(inline, tmp_path / "a", kinds)
    found = script(on_spark, tmp_path / "b", kinds)
    for one, other in zip(expected, found, strict=True):
        assert one == other
    wanted = {"orders[customer] in customers[id]"}
    if "ucc" in kinds:
        wanted.add("orders[customer, ship_to] in customers[id, country]")
    held = [wanted <= set(inds) for inds in expected[2::5]]
    assert any(held)
    assert not all(held)
    assert inline.writer.engine.jobs == 0
    assert on_spark.writer.engine.jobs > 10


def test_the_same_script_far_away(opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is looked for in few rows is asked of executors, too, where the segments are far."""
    inline = opened("inline")
    expected = script(inline, tmp_path / "a", ("ucc", "ind"))
    asked: set[str] = set()
    look = Relation.look

    def looked(self: Relation, task: Any, *arguments: Any) -> list[bytes]:
        asked.add(task.__name__)
        return look(self, task, *arguments)

    monkeypatch.setattr(Relation, "look", looked)
    monkeypatch.setattr(Relation, "are_far", lambda self, segments: bool(segments))
    assert script(opened("spark"), tmp_path / "b", ("ucc", "ind")) == expected
    assert {"find_carriers", "check_known", "fetch_part"} <= asked


def test_tasks_that_merge_runs_read_them_again(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the driver: all runs of a workspace would go through it."""
    ws = opened("spark")
    ws.track("t", pa.table({"a": range(50), "b": range(50)}), kinds=("ind",))
    ws.apply("t", inserts=pa.table({"a": range(50, 90), "b": range(50, 90)}))
    generator = ws.inds.generator()
    assert generator is not None
    runs = {ref.name for run in generator.runs for ref in run.files()}
    assert isinstance(ws.writer.root, Path)
    damaged = ws.writer.root / min(runs)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedFileError, match=damaged.name):
        ws.merge("t")
    damaged.write_bytes(content)
    read: list[str] = []
    opened_at = os.open

    def noted(path: Any, *arguments: Any, **options: Any) -> int:
        read.append(str(path))
        return opened_at(path, *arguments, **options)

    monkeypatch.setattr(os, "open", noted)
    ws.merge("t")
    assert [path for path in read if any(path.endswith(name) for name in runs)] == []


def test_combinations_are_counted_by_tasks(opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session on this machine, too: all hashes of all rows would come to the driver."""
    exchanged: list[str] = []
    exchange = Engine.exchange

    def noted(self: Engine, produce: Any, *arguments: Any) -> list[bytes]:
        exchanged.append(produce.__name__)
        return exchange(self, produce, *arguments)

    monkeypatch.setattr(Engine, "exchange", noted)
    ids = range(40)
    told: list[Any] = []
    for mode in ("inline", "spark"):
        ws = opened(mode)
        ws.track(
            "places", pa.table({"x": [i % 8 for i in ids], "y": [i // 8 for i in ids]}), kinds=("ucc", "ind")
        )
        some = pa.table({"a": [i % 4 for i in ids], "b": [i // 10 for i in ids]})
        ws.track("visits", some, kinds=("ucc", "ind"))
        told.append([link.to_dict() for link in ws.inds.links(max_error=0.5).links])
        said = ws.inds.explain(Side("visits", ("a", "b")), Side("places", ("x", "y")))
        told[-1].append(said.to_dict())
    assert told[0] == told[1]
    assert set(exchanged) == {"send_tuples"}


def test_the_same_script_by_shuffle(opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tasks share no disk, values meet by Spark's shuffle: nothing else is different."""
    monkeypatch.setattr(values, "FEW_CELLS", 0)
    monkeypatch.setattr(facts, "PART_TUPLES", 20)
    inline = opened("inline")
    expected = script(inline, tmp_path / "a", ("ucc", "ind"))
    exchanges: list[int] = []
    exchange = Engine.exchange

    def counted(self: Engine, *arguments: Any) -> list[bytes]:
        results = exchange(self, *arguments)
        exchanges.append(len(results))
        return results

    monkeypatch.setattr(Engine, "shuffles", True)
    monkeypatch.setattr(Engine, "exchange", counted)
    on_spark = opened("spark")
    assert script(on_spark, tmp_path / "b", ("ucc", "ind")) == expected
    assert len(exchanges) > 5
    exchanges.clear()
    jobs = on_spark.writer.engine.jobs
    wide = "orders[customer, ship_to] in customers[id, country]"
    at = next(v for v in range(2, 20) if wide in map(str, inline.dependencies("ind", at=v)))
    linked = on_spark.inds.links(max_error=0.5, at=at)
    assert linked == inline.inds.links(max_error=0.5, at=at)
    assert wide.replace(" in ", " -> ") in map(str, linked.links)
    assert on_spark.writer.engine.jobs == jobs + 2  # one looks at the columns, one counts combinations
    assert len(exchanges) == 1
    for table in ("orders", "customers"):
        assert on_spark.inds.not_null(table) == inline.inds.not_null(table)
        assert on_spark.inds.longest(table) == inline.inds.longest(table)
    assert max(exchanges) > 1


# -- jobs per batch ----------------------------------------------------------------------------------------

# A batch is read in one job, deleted rows are located in another; then comes the exchange by value: one job
# for a small batch, two for a large one. Whatever the number of INDs, columns and rows.
IND_INSERT_JOBS = 2
IND_DELETE_JOBS = 3


def numbers(rows: np.ndarray) -> pa.Table:
    return pa.table({f"c{c}": column for c, column in enumerate(rows.T)})


def no_inds(n_rows: int, n_columns: int) -> np.ndarray:
    """Columns that share no value."""
    return np.arange(n_rows * n_columns).reshape(n_columns, n_rows).T


def all_inds(n_rows: int, n_columns: int) -> np.ndarray:
    """Columns with the same values, so that each is in every other one."""
    return np.stack([np.roll(np.arange(n_rows) % 10, c) for c in range(n_columns)], axis=1)


def jobs_of(ws: Workspace, **batch: Any) -> int:
    before = ws.writer.engine.jobs
    ws.apply("t", **batch)
    return ws.writer.engine.jobs - before


@pytest.mark.parametrize("large", [False, True])
def test_jobs_do_not_grow_with_inds_columns_or_rows(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    if large:
        monkeypatch.setattr(values, "FEW_CELLS", 0)
    inserted, deleted, n_inds = set(), set(), set()
    cases = ((no_inds, 60, 4), (all_inds, 60, 4), (all_inds, 60, 12), (all_inds, 3000, 4))
    for i, (make, n_rows, n_columns) in enumerate(cases):
        ws = opened("spark")
        rows = make(n_rows + 20, n_columns)
        names = [f"c{c}" for c in range(n_columns)]
        ws.track("t", numbers(rows[:n_rows]), kinds=("ind",))
        ws.track("other", numbers(rows[:30]), kinds=("ind",))
        n_inds.add(len(ws.dependencies(kind="ind")))
        inserted.add(jobs_of(ws, inserts=written(tmp_path / f"{i}-new.csv", rows[n_rows:].tolist(), names)))
        deleted.add(jobs_of(ws, deletes=written(tmp_path / f"{i}-gone.csv", rows[:3].tolist(), names)))
        database = {
            "t": oracle.Table(tuple(names), [tuple(row) for row in rows[3:].tolist()]),
            "other": oracle.Table(tuple(names), [tuple(row) for row in rows[:30].tolist()]),
        }
        expected = {f"{t}[{a}] in {u}[{b}]" for (t, a), (u, b) in oracle.inclusions(database)}
        assert {str(d) for d in ws.dependencies(kind="ind")} == expected
    assert min(n_inds) < 10
    assert max(n_inds) > 500
    assert inserted == {IND_INSERT_JOBS + large}
    assert deleted == {IND_DELETE_JOBS + large}


def test_jobs_of_several_tables(opened: Opener, tmp_path: Path) -> None:
    """Each is read; the exchange is one for all."""
    ws = opened("spark")
    names = ["c0", "c1", "c2"]
    rows = all_inds(60, 3)
    ws.track_all({t: numbers(rows[:40]) for t in ("a", "b", "c")}, kinds=("ind",))
    before = ws.writer.engine.jobs
    batch = {
        t: {"inserts": written(tmp_path / f"{t}.csv", rows[40:].tolist(), names)} for t in ("a", "b", "c")
    }
    ws.apply_all(batch)
    assert ws.writer.engine.jobs - before == IND_INSERT_JOBS + len(batch) - 1


# -- Spark DataFrames --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["inline", "spark"])
def test_spark_dataframes(opened: Opener, spark: SparkSession, mode: str) -> None:
    schema = "id long, name string, price double"
    rows = [(1, "a", 1.5), (2, "a", None), (3, "b", float("nan")), (4, None, 2.0)]
    ws = opened(mode)
    ws.track("t", spark.createDataFrame(rows, schema).repartition(3), kinds=("ind",))
    ws.track("u", spark.createDataFrame([(Decimal(2), "a")], "n decimal(10,2), s string"), kinds=("ind",))
    live = {"t": list(rows), "u": [(Decimal(2), "a")]}

    def check() -> None:
        database = {
            "t": oracle.Table(("id", "name", "price"), live["t"]),
            "u": oracle.Table(("n", "s"), live["u"]),
        }
        expected = {f"{t}[{a}] in {u}[{b}]" for (t, a), (u, b) in oracle.inclusions(database)}
        assert {str(d) for d in ws.dependencies(kind="ind")} == expected

    check()
    new = [(5, "b", 7.0)]
    ws.apply("t", inserts=spark.createDataFrame(new, schema))
    live["t"] += new
    check()
    ws.apply("t", deletes=spark.createDataFrame([rows[0], rows[1], rows[3]], schema))
    live["t"] = [rows[2], *new]
    check()
    ws.apply("t", inserts=spark.createDataFrame([], schema))
    check()


@pytest.mark.parametrize("evidence", ["counted", "witnessed"])
def test_jobs_of_all_classes_together(opened: Opener, tmp_path: Path, evidence: Any) -> None:
    """An insert is two jobs, whatever the number of classes: it is read and indexed, and all look at it.

    Whatever it breaks, too: a key, a row rule, what is pinned. (What is shown of a rule about one column that
    breaks takes a third job.)
    """
    ws, rng = opened("spark"), np.random.default_rng(5)
    names = ["id", "a", "b", "c", "next"]

    def rows(first: int, n: int) -> np.ndarray:
        ids = np.arange(first, first + n)
        return np.column_stack([ids, rng.integers(0, [9, 40, 40], (n, 3)), ids + 1])

    table = pa.table(dict(zip(names, rows(0, 200).T, strict=True)))
    ws.track("t", table, kinds=kinds(), evidence=evidence)
    ws.pin_rule("not(t.a = s.a and t.b < s.b and t.c > s.c)")
    ws.pin_rule("t.next > t.id")
    for i in range(3):
        some = rows(200 + 20 * i, 20)
        if i == 2:
            some[7, 0] = some[8, 4]
        new = written(tmp_path / f"{i}.csv", some.tolist(), names)
        assert jobs_of(ws, inserts=new) == 2
    broken = {c.kind for c in ws.log("t")[-1].changes if c.change == "broke"}
    assert {"ucc", "row"} <= broken
    assert any(not pin.holds for pin in ws.pins("t"))
