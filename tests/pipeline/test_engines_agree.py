"""The same script inline and on Spark: same keys, same non-uniques, same changes; few jobs per batch."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Change, Workspace
from holdfast.core.rows import encoding
from holdfast.errors import SourceError
from reference import keys as oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("id", "shop", "day", "price", "note")
Row = tuple[Any, ...]
Opener = Callable[[str], Workspace]


def generated(seed: int, n_rows: int, first: int = 0) -> list[Row]:
    rng = np.random.default_rng(seed)
    return [
        (
            first + i,
            f"shop {rng.integers(0, 6)}",
            f"2026-11-{rng.integers(1, 29):02d}",
            f"{rng.integers(0, 40) / 4:.2f}",
            rng.choice(["", "late", "gift, wrapped", 'said "no"']),
        )
        for i in range(n_rows)
    ]


def written(path: Path, rows: Sequence[Row], names: Sequence[str] = NAMES) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(names)
        writer.writerows(rows)
    return str(path)


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


def told(change: Change) -> tuple[Any, ...]:
    """What a change says, but for its version, the rows it shows and the time it took."""
    events = {(c.event, c.dependency.columns, c.reason, bool(c.witnesses)) for c in change.changes}
    pins = tuple((p.columns, p.holds) for p in change.pins)
    return change.n_inserted, change.n_deleted, change.n_rows, change.tables[0].n("ucc"), pins, events


def script(ws: Workspace, folder: Path, nulls: Any) -> list[Any]:
    """Track a folder of CSV files, then batches of every sort; all that was said on the way."""
    rows = generated(1, 90)
    for i in range(3):
        written(folder / "parts" / f"{i}.csv", rows[30 * i : 30 * i + 30])
    new = generated(2, 12, first=200)
    copies = [(300 + i, *row[1:]) for i, row in enumerate(rows[:4])]
    updates = [(rows[i][0], "shop 9", "2026-12-24") for i in range(40, 48)]
    before, after = rows[60:63], [(*row[:4], "changed") for row in rows[60:63]]
    steps: list[Callable[[], Any]] = [
        lambda: ws.track("t", str(folder / "parts"), row_key=["id"], nulls=nulls),
        lambda: ws.pin("t", ["shop", "day", "price", "note"]).to_dict(),
        lambda: ws.check("t", inserts=written(folder / "copies.csv", copies)),
        lambda: ws.apply("t", inserts=written(folder / "new.csv", new)),
        lambda: ws.apply("t", inserts=written(folder / "copies.csv", copies)),
        lambda: ws.apply("t", deletes=written(folder / "gone.csv", rows[:10])),
        lambda: ws.apply("t", updates=written(folder / "updates.csv", updates, ("id", "shop", "day"))),
        lambda: ws.apply(
            "t",
            before=written(folder / "before.csv", before),
            after=written(folder / "after.csv", after),
            deletes=written(folder / "keys.csv", [row[:1] for row in rows[70:75]], ("id",)),
            inserts=written(folder / "again.csv", rows[:3]),
        ),
        lambda: (
            ws.merge("t") > 0
        ),  # a version of its own, unless the segments of Spark's tasks were merged before
        lambda: ws.apply("t", inserts=written(folder / "last.csv", generated(3, 5, first=400))),
    ]
    said: list[Any] = []
    for step in steps:
        result = step()
        said.append(told(result) if isinstance(result, Change) else result)
        said.append([d.columns for d in ws.dependencies(table="t")])
        said.append(ws.keys.non_uniques("t"))
    log = [entry for entry in ws.log("t") if entry.action != "merge"]
    said.append([(e.action, len(e.changes), [d.get("n_rows") for d in e.details]) for e in log])
    said.append(str(ws.schema("t").types))
    for columns in itertools.combinations(NAMES, 2):
        explained = ws.explain("t", columns)
        since = [e.version for e in log].index(explained.since)
        said.append((columns, explained.unique, since, bool(explained.duplicates)))
    return said


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
def test_the_same_script(opened: Opener, tmp_path: Path, nulls: str) -> None:
    inline, on_spark = opened("inline"), opened("spark")
    expected = script(inline, tmp_path / "a", nulls)
    found = script(on_spark, tmp_path / "b", nulls)
    for one, other in zip(expected, found, strict=True):
        assert one == other
    assert inline.writer.engine.jobs == 0
    assert on_spark.writer.engine.jobs > 10


# -- jobs per batch ----------------------------------------------------------------------------------------

# A batch reads its source and indexes it, and probes: one job each. A delete reads, locates, and validates
# in rounds, each one job for all candidates.
INSERT_JOBS = 2
DELETE_JOBS = 2


def jobs_of(ws: Workspace, **batch: Any) -> tuple[int, int]:
    """(jobs, rounds of validation) of one batch."""
    before = ws.writer.engine.jobs
    ws.apply("t", **batch)
    return ws.writer.engine.jobs - before, ws.log("t")[-1].details[0]["rounds"]


def numbers(rows: np.ndarray) -> pa.Table:
    return pa.table({f"c{c}": column for c, column in enumerate(rows.T)})


def few_keys(n_rows: int) -> np.ndarray:
    """One key: a counter. All else is constant."""
    return np.stack([np.arange(n_rows), *np.zeros((7, n_rows), dtype=np.int64)], axis=1)


def many_keys(n_rows: int) -> np.ndarray:
    """Dozens of keys of several columns."""
    return np.random.default_rng(5).integers(0, 9, (n_rows, 8))


def test_jobs_do_not_grow_with_keys_or_rows(opened: Opener, tmp_path: Path) -> None:
    inserted, deleted, n_keys = set(), set(), set()
    for make, n_rows in ((few_keys, 60), (many_keys, 60), (many_keys, 600)):
        ws = opened("spark")
        rows = make(n_rows + 20)
        ws.track("t", numbers(rows[:n_rows]))
        n_keys.add(len(ws.dependencies(table="t")))
        names = [f"c{c}" for c in range(8)]
        new = written(tmp_path / f"{n_rows}-new.csv", rows[n_rows:].tolist(), names)
        jobs, rounds = jobs_of(ws, inserts=new)
        assert rounds == 0, "an insert needs no look at the data but the probe"
        inserted.add(jobs)
        gone = written(tmp_path / f"{n_rows}-gone.csv", rows[:3].tolist(), names)
        jobs, rounds = jobs_of(ws, deletes=gone)
        deleted.add(jobs - rounds)
        assert rounds <= 4
        now = [tuple(r) for r in rows[3:].tolist()]
        if n_rows < 100:
            found = {d.columns for d in ws.dependencies(table="t")}
            expected = oracle.minimal_uniques(now, 8, "equal")
            assert found == {tuple(names[c] for c in sorted(k)) for k in expected}
    assert min(n_keys) == 1
    assert max(n_keys) > 30
    assert inserted == {INSERT_JOBS}
    assert max(deleted) <= DELETE_JOBS + 1  # an index, when keys have shrunk past the ones there are


def test_the_best_functional_dependencies(opened: Opener, tmp_path: Path) -> None:
    """Found by both in the same way, from rows in several segments."""
    answers = []
    for ws in (opened("inline"), opened("spark")):
        rows = many_keys(600)
        rows[:, 6], rows[:, 7] = rows[:, 0] % 4, rows[:, 1] * 9 + rows[:, 2]
        ws.track("t", numbers(rows[:500]), kinds=["ucc"], max_columns=1)
        ws.apply("t", inserts=numbers(rows[500:]))
        answers.append([ws.fds.best("t", 5, by=by, seconds=None) for by in ("score", "redundancy")])
    assert answers[0] == answers[1]
    assert {("c0",), ("c7",)} <= {r.fd.lhs for r in answers[0][0].fds}


# -- Spark DataFrames --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["inline", "spark"])
def test_spark_dataframes(opened: Opener, spark: SparkSession, tmp_path: Path, mode: str) -> None:
    rows = [(1, "a", 1.5), (2, "a", None), (3, "b", float("nan")), (4, None, 1.5)]
    schema = "id long, name string, price double"
    ws = holdfast.open(tmp_path / "w", engine=mode, spark=spark)  # type: ignore[arg-type]
    ws.track("t", spark.createDataFrame(rows, schema).repartition(3))
    live = list(rows)

    def check() -> None:
        names = ("id", "name", "price")
        expected = oracle.minimal_uniques(live, 3, "equal")
        assert {d.columns for d in ws.dependencies(table="t")} == {
            tuple(names[c] for c in sorted(k)) for k in expected
        }
        assert ws.n_rows("t") == len(live)

    check()
    new = [(1, "a", 2.5), (5, "b", float("nan"))]
    change = ws.apply("t", inserts=spark.createDataFrame(new, schema))
    assert {c.dependency.columns for c in change.broke} == {("id",), ("name", "price")}
    live += new
    check()
    ws.apply("t", deletes=spark.createDataFrame([rows[0], rows[2]], schema))
    live = [rows[1], rows[3], *new]
    check()
    ws.apply("t", inserts=spark.createDataFrame([], schema))
    check()
    ws.close()


def test_record_ends_are_found_by_tasks(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one job for all files, where line ends stand in quotes; an unclosed quote is told as ever."""
    rows = [(i, f"a\n{i}\n\n", f'"{i % 7}"\n', "", "x\r\ny") for i in range(9_000)]
    for i in range(2):
        written(tmp_path / "odd" / f"{i}.csv", rows[4_500 * i : 4_500 * i + 4_500])
    ws, other = opened("spark"), opened("spark")
    ws.track("t", tmp_path / "odd")
    jobs = ws.writer.engine.jobs
    monkeypatch.setattr(encoding, "WALK_BYTES", 0)
    other.track("t", tmp_path / "odd")
    assert other.writer.engine.jobs == jobs + 1
    assert other.n_rows("t") == ws.n_rows("t") == 9_000
    assert other.schema("t") == ws.schema("t")
    keys = [d.columns for d in other.dependencies(table="t")]
    assert ("id",) in keys
    assert keys == [d.columns for d in ws.dependencies(table="t")]
    with (tmp_path / "odd" / "0.csv").open("a") as file:
        file.write('7,"never closed')
    with pytest.raises(
        SourceError, match=r"0\.csv for table 'u' has a quote that is never closed, in the rec"
    ):
        other.track("u", tmp_path / "odd")
