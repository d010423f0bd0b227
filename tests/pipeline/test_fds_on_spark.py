"""Functional dependencies inline and on Spark: same FDs, same errors, same changes; few jobs per batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Change, Workspace
from holdfast.core.engine.engine import Engine
from holdfast.core.evidence import shuffled
from holdfast.core.words.dependency import Fd
from holdfast.inclusions import values
from pipeline.test_engines_agree import generated, written
from reference import fds as oracle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("id", "shop", "day", "price", "note", "city")
Row = tuple[Any, ...]
Opener = Callable[[str], Workspace]


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


def orders(seed: int, n_rows: int, first: int = 0) -> list[Row]:
    """A city for each shop."""
    return [(*row, ["Rome", "Oslo", "Lima"][int(row[1][-1]) % 3]) for row in generated(seed, n_rows, first)]


def told(change: Change) -> tuple[Any, ...]:
    """What a change says, but for its version, the rows it shows and the time it took."""
    events = {
        (c.event, str(c.dependency), c.dependency.error, c.held, bool(c.witnesses)) for c in change.changes
    }
    assert len(events) == len(change.changes)
    return change.tables, events


def listed(ws: Workspace, max_error: float) -> list[Any]:
    """All that is listed of the FDs of the table."""
    exact = [str(d) for d in ws.dependencies(kind="fd")]
    if not max_error:
        return exact
    nearly = [(str(d), d.error) for d in ws.dependencies(max_error=max_error)]
    return [exact, nearly, sorted(ws.fds.agree_sets("t"))]


def script(ws: Workspace, folder: Path, max_error: float, **options: Any) -> list[Any]:
    """Track a folder of CSV files, then batches of every sort; all that was said on the way."""
    rows = orders(1, 90)
    for i in range(3):
        written(folder / "parts" / f"{i}.csv", rows[30 * i : 30 * i + 30], NAMES)

    def csv(name: str, of: Sequence[Row], names: Sequence[str] = NAMES) -> str:
        return written(folder / f"{name}.csv", of, names)

    strays = [(300, *rows[0][1:5], "Bern"), (301, *rows[1][1:])]
    steps: list[Callable[[], Any]] = [
        lambda: ws.track("t", str(folder / "parts"), row_key=["id"], max_error=max_error or None, **options),
        lambda: ws.check("t", inserts=csv("strays", strays)),
        lambda: ws.apply("t", inserts=csv("new", orders(2, 12, first=200))),
        lambda: ws.apply("t", inserts=csv("strays", strays)),
        lambda: ws.apply("t", deletes=csv("gone", rows[:10])),
        lambda: ws.apply("t", deletes=csv("stray", [(300,)], ("id",))),
        lambda: ws.apply("t", updates=csv("updates", [(i, "Lima") for i in range(40, 44)], ("id", "city"))),
        lambda: ws.apply(
            "t",
            before=csv("before", rows[60:63]),
            after=csv("after", [(*row[:4], "changed", row[5]) for row in rows[60:63]]),
            inserts=csv("again", rows[:3]),
        ),
        lambda: ws.merge("t") > 0,
        lambda: ws.apply("t", inserts=csv("last", orders(3, 5, first=400))),
    ]
    said: list[Any] = []
    for step in steps:
        result = step()
        said.append(told(result) if isinstance(result, Change) else result)
        said.append(listed(ws, max_error))
    for lhs, rhs in ((("shop",), "city"), (("city",), "shop"), (("shop", "day"), "note"), ((), "id")):
        explained = ws.fds.explain("t", lhs, rhs)
        said.append((explained.holds, explained.violations, explained.g3, len(explained.groups)))
        said.append(ws.fds.error_of("t", lhs, rhs))
    return said


CASES = [
    {"evidence": "counted", "kinds": ("fd",), "max_error": 0.05},
    {"evidence": "counted", "kinds": ("ucc", "fd"), "nulls": "distinct", "max_lhs": 2},
    {"evidence": "witnessed", "kinds": ("fd",)},
    {"evidence": "witnessed", "kinds": ("ucc", "fd"), "nulls": "distinct", "max_lhs": 2},
]


@pytest.mark.parametrize("options", CASES, ids=lambda o: f"{o['evidence']}-{'-'.join(o['kinds'])}")
def test_the_same_script(opened: Opener, tmp_path: Path, options: dict[str, Any]) -> None:
    inline, on_spark = opened("inline"), opened("spark")
    given = {"max_error": 0.0, **options}
    expected = script(inline, tmp_path / "a", **given)
    found = script(on_spark, tmp_path / "b", **given)
    for one, other in zip(expected, found, strict=True):
        assert one == other
    assert inline.writer.engine.jobs == 0
    assert on_spark.writer.engine.jobs > 10
    held = ["t: shop -> city" in str(fds) for fds in expected[1::2]]
    assert any(held)
    assert not all(held)


def test_the_same_script_by_shuffle(opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a table is more than a task should read, candidates are validated by Spark's shuffle."""
    options: dict[str, Any] = {"evidence": "witnessed", "kinds": ("ucc", "fd"), "max_error": 0.0}
    expected = script(opened("inline"), tmp_path / "a", **options)
    relayed: list[int] = []
    exchange = Engine.exchange

    def counted(self: Engine, *arguments: Any, **how: Any) -> list[bytes]:
        relayed.append(len(how.get("relays", ())))
        return exchange(self, *arguments, **how)

    monkeypatch.setattr(shuffled, "SHUFFLED_ROWS", 0)
    monkeypatch.setattr(Engine, "shuffles", True)
    monkeypatch.setattr(Engine, "exchange", counted)
    assert script(opened("spark"), tmp_path / "b", **options) == expected
    assert relayed.count(2) > 3
    assert set(relayed) == {0, 2}  # groups of rows, for explanations and errors, need no relay


def skewed(first: int, n: int) -> pa.Table:
    """Nine of ten rows have one shop, of which they say different things; two columns lack most values."""
    ids = range(first, first + n)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "shop": ["main" if i % 10 else f"s{i}" for i in ids],
            "city": ["Rome" if i % 10 else f"c{i % 30}" for i in ids],
            "price": [i % 1009 for i in ids],
            "note": [None if i % 10 else f"n{i}" for i in ids],
            "copy": [None if i % 10 else f"s{i}" for i in ids],
        }
    )


def test_one_value_that_most_rows_have(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows meet in one task, by the shuffle too, whatever the others do: keys, FDs and inclusions."""
    held: list[Any] = []
    exchanged: list[str] = []
    exchange = Engine.exchange

    def noted(self: Engine, produce: Any, *arguments: Any, **how: Any) -> list[bytes]:
        exchanged.append(produce.__name__)
        return exchange(self, produce, *arguments, **how)

    monkeypatch.setattr(Engine, "exchange", noted)
    for mode in ("inline", "spark"):
        if mode == "spark":
            monkeypatch.setattr(shuffled, "SHUFFLED_ROWS", 0)
            monkeypatch.setattr(shuffled, "PART_ROWS", 1000)
            monkeypatch.setattr(values, "FEW_CELLS", 0)
            monkeypatch.setattr(Engine, "shuffles", True)
        ws = opened(mode)
        ws.track("t", skewed(0, 6000), kinds=("ucc", "fd", "ind"), evidence="witnessed")
        said = [ws.dependencies(kind, "t") for kind in ("ucc", "fd", "ind")]
        broken = skewed(6000, 800).set_column(2, "city", [["Bern"] * 800])
        ws.apply("t", inserts=broken)
        ws.apply("t", deletes=skewed(0, 900))
        held.append([*said, *(ws.dependencies(kind, "t") for kind in ("ucc", "fd", "ind"))])
    assert held[0] == held[1]
    assert len(set(exchanged)) == 2, exchanged  # of candidates, and of the values of inclusions
    assert "t: shop -> city" in map(str, held[0][1])
    assert "t: shop -> city" not in map(str, held[0][4])
    assert "t[copy] in t[shop]" in map(str, held[0][5])


# -- jobs per batch ----------------------------------------------------------------------------------------

# Counted: a batch is read in one job, and compared with all segments in another; deleted rows are
# located in one more.
COUNTED_INSERT_JOBS = 2
COUNTED_DELETE_JOBS = 3
# Witnessed: a batch is read and indexed, and probes; a delete reads, locates, and validates in rounds.
WITNESSED_INSERT_JOBS = 2
WITNESSED_DELETE_JOBS = 2


def numbers(rows: np.ndarray) -> pa.Table:
    return pa.table({f"c{c}": column for c, column in enumerate(rows.T)})


def few_fds(n_rows: int) -> np.ndarray:
    """One column that determines all; pairs of equal columns."""
    half = np.arange(n_rows)
    return np.stack([half, *(half % (2 + c // 2 * 3) for c in range(6))], axis=1)


def many_fds(n_rows: int) -> np.ndarray:
    """Hundreds of FDs of several columns."""
    return np.random.default_rng(5).integers(0, 9, (n_rows, 7))


def jobs_of(ws: Workspace, **batch: Any) -> tuple[int, int]:
    """(jobs, rounds of validation) of one batch."""
    before = ws.writer.engine.jobs
    ws.apply("t", **batch)
    return ws.writer.engine.jobs - before, ws.log("t")[-1].details[0]["rounds"]


@pytest.mark.parametrize("evidence", ["counted", "witnessed"])
def test_jobs_do_not_grow_with_fds_or_rows(opened: Opener, tmp_path: Path, evidence: Any) -> None:
    inserted, deleted, n_fds = set(), set(), set()
    names = [f"c{c}" for c in range(7)]
    for i, (make, n_rows) in enumerate(((few_fds, 60), (many_fds, 60), (many_fds, 600))):
        ws = opened("spark")
        rows = make(n_rows + 20)
        ws.track("t", numbers(rows[:n_rows]), kinds=("fd",), evidence=evidence)
        n_fds.add(len(ws.dependencies(kind="fd")))
        assert min(n_fds) > 0, "there is something to break"
        new = written(tmp_path / f"{i}-new.csv", rows[n_rows:].tolist(), names)
        jobs, rounds = jobs_of(ws, inserts=new)
        assert rounds == 0, "an insert needs no look at the data but the comparison"
        inserted.add(jobs)
        gone = written(tmp_path / f"{i}-gone.csv", rows[:3].tolist(), names)
        jobs, rounds = jobs_of(ws, deletes=gone)
        assert rounds <= 4
        assert evidence == "witnessed" or not rounds
        deleted.add(jobs - rounds)
        if n_rows < 100:
            now = [tuple(r) for r in rows[3:].tolist()]
            expected = oracle.minimal_fds(now, 7, "equal")
            found = {(d.lhs, d.rhs) for d in ws.dependencies(kind="fd") if isinstance(d, Fd)}
            assert found == {(tuple(names[c] for c in sorted(lhs)), names[rhs]) for lhs, rhs in expected}
    assert max(n_fds) > 4 * min(n_fds)
    if evidence == "counted":
        assert inserted == {COUNTED_INSERT_JOBS}
        assert deleted == {COUNTED_DELETE_JOBS}
    else:
        assert inserted == {WITNESSED_INSERT_JOBS}
        assert (
            max(deleted) <= WITNESSED_DELETE_JOBS + 1
        )  # an index, when FDs have shrunk past the ones there are


# -- Spark DataFrames --------------------------------------------------------------------------------------


@pytest.mark.parametrize("evidence", ["counted", "witnessed"])
@pytest.mark.parametrize("mode", ["inline", "spark"])
def test_spark_dataframes(opened: Opener, spark: SparkSession, mode: str, evidence: Any) -> None:
    rows: list[Row] = [(1, "a", 1.5), (2, "a", None), (3, "b", float("nan")), (4, None, 1.5)]
    schema = "id long, name string, price double"
    ws = opened(mode)
    ws.track("t", spark.createDataFrame(rows, schema).repartition(3), kinds=("fd",), evidence=evidence)
    live = list(rows)

    def check() -> None:
        names = ("id", "name", "price")
        expected = oracle.minimal_fds(live, 3, "equal")
        found = {(d.lhs, d.rhs) for d in ws.dependencies(kind="fd") if isinstance(d, Fd)}
        assert found == {(tuple(names[c] for c in sorted(lhs)), names[rhs]) for lhs, rhs in expected}

    check()
    new: list[Row] = [(5, "b", float("nan")), (1, "a", 1.5)]
    ws.apply("t", inserts=spark.createDataFrame(new, schema))
    live += new
    check()
    ws.apply("t", deletes=spark.createDataFrame([rows[0], rows[2]], schema))
    live = [rows[1], rows[3], *new]
    check()
    ws.apply("t", inserts=spark.createDataFrame([], schema))
    check()
