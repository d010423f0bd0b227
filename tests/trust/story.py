"""A story that every place of a workspace, and every engine, must tell alike: all classes, all operations.

    sources = write_sources(folder)              # files; `upload` puts them into an object store
    tell("s3://box/ws", "s3://box/sources", ...) == tell(folder / "ws", sources)

What it returns is plain data: it is compared across processes, too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

import holdfast
from holdfast.core.words.dependency import Side
from holdfast.core.words.reliance import Wanted
from holdfast.profile import column_counts, tally
from holdfast.workspace import Workspace

KINDS = ("ucc", "fd", "ind", "dc", "row", "profile")
N = 400
# Column profiles count no more values than these one by one: the distinct values of `id` are a job.
COUNTED_VALUES = 2 * tally.EDGE


def orders(n: int, seed: int) -> pa.Table:
    """Rows with keys, dependencies, orders of numbers, NULLs, and texts."""
    draw = random.Random(seed)
    customers = [draw.randrange(40) for _ in range(n)]
    net = [draw.randrange(1, 500) for _ in range(n)]
    return pa.table(
        {
            "id": pa.array(range(seed * 100_000, seed * 100_000 + n), pa.int64()),
            "customer": pa.array([c if c else None for c in customers], pa.int64()),
            "city": pa.array([f"city {c % 7}" for c in customers]),
            "net": pa.array(net, pa.int64()),
            "gross": pa.array([v + draw.randrange(3) for v in net], pa.int64()),
        }
    )


def customers() -> pa.Table:
    return pa.table({"customer": list(range(41)), "city": [f"city {c % 7}" for c in range(41)]})


def write_sources(folder: Path) -> Path:
    """The files of the story: tables in several formats, batches, a folder of small tables."""
    for name in ("lake", "more", "parts/year=2025", "parts/year=2026"):
        (folder / name).mkdir(parents=True)
    (folder / "orders.csv").write_text(csv_text(orders(N, 1)))
    pq.write_table(customers(), folder / "customers.parquet")
    (folder / "inserts.csv").write_text(csv_text(orders(30, 2)))
    (folder / "deletes.csv").write_text(csv_text(orders(N, 1).slice(10, 20)))
    for year in (2025, 2026):
        pq.write_table(orders(20, year), folder / f"parts/year={year}/rows.parquet")
    for i in range(12):
        words = [f"w{(i + j) % 9}" for j in range(6)]
        (folder / "lake" / f"t{i}.csv").write_text("a,b\n" + "".join(f"{w},{i}\n" for w in words))
    (folder / "more" / "all.csv").write_text("x\n" + "".join(f"w{j}\n" for j in range(9)))
    return folder


def upload(folder: Path, bucket: Any) -> None:
    """Put all files below a folder under their names."""
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(path.relative_to(folder).as_posix(), path.read_bytes())


def csv_text(table: pa.Table) -> str:
    lines = [",".join(table.column_names)]
    for row in table.to_pylist():
        lines.append(",".join("" if value is None else str(value) for value in row.values()))
    return "\n".join(lines) + "\n"


def tell(
    root: str | Path, sources: str | Path, frame: Any = None, *, short: bool = False, **how: Any
) -> list[Any]:
    """What happened, in plain data; a workspace is opened anew in between. `frame` makes Spark DataFrames.

    A `short` story is the first half of it.
    """
    with mock.patch.dict(column_counts.MOST, {"values": COUNTED_VALUES}):
        with holdfast.open(root, **how) as ws:
            facts = list(_first_part(ws, str(sources), frame))
        if short:
            return facts
        with holdfast.open(root, **how) as ws:
            facts += _second_part(ws, str(sources), frame)
        return facts


def _first_part(ws: Workspace, sources: str, frame: Any) -> Iterator[Any]:
    ws.track_all(
        {"orders": f"{sources}/orders.csv", "customers": f"{sources}/customers.parquet"},
        kinds=KINDS,
        within_columns=True,
        max_predicates=3,
        max_arity=2,
    )
    yield holding(ws)
    yield _summary(ws.check("orders", inserts=f"{sources}/inserts.csv"))
    yield _summary(ws.apply("orders", inserts=f"{sources}/inserts.csv"))
    yield holding(ws)
    yield _summary(ws.apply("orders", deletes=f"{sources}/deletes.csv"))
    yield holding(ws)
    inserts = orders(25, 3)
    yield _summary(ws.apply("orders", inserts=inserts if frame is None else frame(inserts)))
    before = orders(N, 1).slice(0, 3)
    after = before.set_column(3, "net", pa.array([1, 2, 3], pa.int64()))
    yield _summary(ws.apply("orders", before=before, after=after))
    yield holding(ws)
    yield _explained(ws)


def _second_part(ws: Workspace, sources: str, frame: Any) -> Iterator[Any]:
    yield holding(ws)
    ws.track("parts", f"{sources}/parts", kinds=("ucc", "fd"), row_key=("id",), max_lhs=2)
    updates = pa.table({"id": [202_500_000, 202_600_001], "city": ["new", None]})
    yield _summary(ws.apply("parts", updates=updates))
    yield _summary(ws.apply("parts", deletes=pa.table({"id": [202_500_003]})))
    yield holding(ws)
    yield _relied_on(ws.pin_all(PINS).pinned)
    upserts = _parts(2025).slice(5, 3).set_column(3, "net", pa.array([501, 502, 503], pa.int64()))
    change = ws.apply("parts", upserts=pa.concat_tables([upserts, _parts(2027).slice(0, 2)]))
    yield [_summary(change), _relied_on(change.pins)]
    snapshot = pa.concat_tables([_parts(2025).slice(4), _parts(2026)])
    change = ws.apply("parts", snapshot=snapshot if frame is None else frame(snapshot))
    yield [_summary(change), _relied_on(change.pins)]
    change = ws.check("orders", inserts=f"{sources}/inserts.csv")
    yield [_summary(change), _relied_on(change.pins)]
    yield [_violating(ws, *asked) for asked in VIOLATED]
    yield [column.to_dict() for column in ws.profiles.of("orders")]
    yield _lake(ws, ws.link(f"{sources}/lake"))
    yield _lake(ws, ws.link(f"{sources}/more", add=True))
    yield _lake(ws, ws.unlink("t3.csv"))
    ws.drop("customers")
    yield holding(ws)
    yield [(entry.version, entry.action) for entry in ws.log()]
    yield holding(ws, at=3)
    ws.merge("orders")
    yield holding(ws)
    ws.verify()
    ws.tidy(grace_s=0)
    ws.verify()
    yield holding(ws)


PINS = [
    Wanted("orders", ("id",)),
    Wanted("orders", ("customer",), Side("customers", ("customer",)), terms={"at_most": 3}),
    Wanted("orders", rule="net <= gross", terms={"at_most": "1%", "severity": "warning"}),
    Wanted("orders", rule="city -> customer"),
    Wanted("parts", rule="net <= 500", terms={"at_most": 2}),
    Wanted("parts", rule="city is not null"),
]
VIOLATED: list[tuple[str, Any]] = [
    ("orders", ["customer"]),
    ("orders", "city -> customer"),
    ("orders", "not(t.city = s.city and t.net < s.net and t.gross > s.gross)"),
    ("orders", "not(t.net < s.net and t.gross > s.gross)"),
    ("orders", "net >= gross"),
    ("parts", "net <= 250"),
]


def _parts(year: int) -> pa.Table:
    return orders(20, year).append_column("year", pa.array([year] * 20, pa.int64()))


def holding(ws: Workspace, at: int | None = None) -> dict[str, Any]:
    """What holds, of every class; how many rows there are."""
    facts: dict[str, Any] = {kind: sorted(str(d) for d in ws.dependencies(kind, at=at)) for kind in KINDS}
    return {**facts, "rows": {table: ws.n_rows(table, at) for table in ws.tables(at)}}


def _explained(ws: Workspace) -> list[Any]:
    """What is said of dependencies that hold and that do not, with values and rows; of references."""
    sides = [Side(table, (column,)) for table in ("orders", "customers") for column in ("customer", "city")]
    inds = [
        ws.inds.explain(one, other).to_dict()
        for one in sides
        for other in sides
        if one.table != other.table and one.columns == other.columns
    ]
    fds = [ws.fds.explain("orders", lhs, "net").to_dict() for lhs in (("id",), ("customer",), ())]
    linkage = ws.inds.links(max_error=0.5)
    filled = [sorted(ws.inds.not_null(table)) for table in ("orders", "customers")]
    return [inds, fds, [link.to_dict() for link in linkage.links], filled]


def _summary(change: Any) -> Any:
    """What is new by a batch, and the counts after it."""
    news = sorted(f"{new.event} {new.dependency}" for new in change.changes)
    return [news, [table.to_dict() for table in change.tables]]


def _relied_on(pins: Any) -> Any:
    """Pins, without the rows that prove them: which of several rows these are is nobody's affair."""
    return [{**pin.to_dict(), "witnesses": None} for pin in pins]


def _violating(ws: Workspace, table: str, question: Any) -> Any:
    """The rows that violate something, in an order of their own."""
    answer = ws.violations(table, question)
    rows = [{name: row[name] for name in ws.schema(table).names} for row in answer.records()]
    return [answer.totals(), sorted(rows, key=json.dumps)]


def _lake(ws: Workspace, change: Any) -> Any:
    lake = ws.lake()
    assert lake is not None
    return [change.n_tables, change.n_components, sorted(map(list, lake.ind_names()))]
