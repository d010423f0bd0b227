"""Denial constraints inline and on Spark: same constraints, same errors, same changes; few jobs per batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast import Change, Workspace
from holdfast.core.words.predicate import Dc
from holdfast.denial import dc_witnessed
from pipeline.test_engines_agree import generated, written
from reference.dcs import Space

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("id", "shop", "day", "price", "note", "paid")
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
    """What is paid is the price, or less, or not known: two columns that are compared."""
    rows = generated(seed, n_rows, first)
    return [(*row, None if i % 7 == 3 else row[3]) for i, row in enumerate(rows)]


def told(change: Change) -> tuple[Any, ...]:
    """What a change says, but for its version, the rows it shows and the time it took."""
    events = {(c.event, str(c.dependency), c.dependency.error, bool(c.witnesses)) for c in change.changes}
    assert len(events) == len(change.changes)
    return change.tables, events


def listed(ws: Workspace, max_error: float) -> list[Any]:
    exact = [str(d) for d in ws.dependencies(kind="dc")]
    if not max_error:
        return exact
    return [exact, [(str(d), d.error) for d in ws.dependencies(kind="dc", max_error=max_error)]]


def script(ws: Workspace, folder: Path, max_error: float, **options: Any) -> list[Any]:
    """Track a folder of CSV files, then batches of every sort; all that was said on the way."""
    rows = orders(1, 60)
    for i in range(3):
        written(folder / "parts" / f"{i}.csv", rows[20 * i : 20 * i + 20], NAMES)

    def csv(name: str, of: Sequence[Row], names: Sequence[str] = NAMES) -> str:
        return written(folder / f"{name}.csv", of, names)

    strays = [(300, *rows[0][1:5], rows[1][3]), (301, *rows[1][1:])]
    steps: list[Callable[[], Any]] = [
        lambda: ws.track("t", str(folder / "parts"), row_key=["id"], max_error=max_error or None, **options),
        lambda: ws.check("t", inserts=csv("strays", strays)),
        lambda: ws.apply("t", inserts=csv("new", orders(2, 12, first=200))),
        lambda: ws.apply("t", inserts=csv("strays", strays)),
        lambda: ws.apply("t", deletes=csv("gone", rows[:10])),
        lambda: ws.apply("t", deletes=csv("stray", [(300,)], ("id",))),
        lambda: ws.apply(
            "t", updates=csv("updates", [(i, "changed") for i in range(30, 34)], ("id", "note"))
        ),
        lambda: ws.apply(
            "t",
            before=csv("before", rows[50:53]),
            after=csv("after", [(*row[:4], "other", row[5]) for row in rows[50:53]]),
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
    said.append(ws.dcs.space("t"))
    return said


CASES = [
    {"evidence": "counted", "max_error": 0.02, "max_predicates": 3},
    {"evidence": "witnessed", "max_predicates": 3},
]


@pytest.mark.parametrize("options", CASES, ids=lambda o: o["evidence"])
def test_the_same_script(opened: Opener, tmp_path: Path, options: dict[str, Any]) -> None:
    inline, on_spark = opened("inline"), opened("spark")
    given = {"max_error": 0.0, "kinds": ("dc",), **options}
    expected = script(inline, tmp_path / "a", **given)
    found = script(on_spark, tmp_path / "b", **given)
    for one, other in zip(expected, found, strict=True):
        assert one == other
    assert inline.writer.engine.jobs == 0
    assert on_spark.writer.engine.jobs > 10
    assert len({str(dcs) for dcs in expected[1::2]}) > 3, "the batches change something"
    assert any("t.price" in str(dc) and "s.paid" in str(dc) for dc in expected[1]), "across columns"


# -- jobs per batch ----------------------------------------------------------------------------------------

# A batch is read in one job, and in another compared with all segments (counted) or probed (witnessed), its
# rows counted for row rules; deleted rows are located, too.
INSERT_JOBS = 2
COUNTED_DELETE_JOBS = 3
# Of witnessed evidence, deleted rows are looked for only in rounds, if evidence is lost.
WITNESSED_DELETE_JOBS = 3
MAX_ROUNDS = 4


def numbers(rows: np.ndarray) -> pa.Table:
    return pa.table({f"c{c}": column for c, column in enumerate(rows.T)})


def few_dcs(n_rows: int) -> np.ndarray:
    """Columns that rise together, three of them in steps; none shares values with another."""
    return np.stack([np.arange(n_rows) // (1 + c) + 1000 * c for c in range(4)], axis=1)


def many_dcs(n_rows: int) -> np.ndarray:
    """The same, but they are compared with each other."""
    return np.stack([np.arange(n_rows) // (1 + c) for c in range(4)], axis=1)


def at_random(n_rows: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 40, (n_rows, 4)) + 100 * np.arange(4)


def jobs_of(ws: Workspace, **batch: Any) -> tuple[int, int]:
    """(jobs, rounds of validation) of one batch."""
    before = ws.writer.engine.jobs
    ws.apply("t", **batch)
    return ws.writer.engine.jobs - before, ws.log("t")[-1].details[0]["rounds"]


@pytest.mark.parametrize(
    ("evidence", "indexed"), [("counted", False), ("witnessed", False), ("witnessed", True)]
)
def test_jobs_do_not_grow_with_constraints_or_rows(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evidence: Any, indexed: bool
) -> None:
    if indexed:  # as if tables were large
        monkeypatch.setattr(dc_witnessed, "SCANNED_ROWS", 0)
    inserted, deleted, n_dcs = set(), set(), set()
    names = [f"c{c}" for c in range(4)]
    for i, (make, n_rows) in enumerate(((few_dcs, 40), (many_dcs, 40), (at_random, 40), (at_random, 400))):
        ws, inline = opened("spark"), opened("inline")
        rows = make(n_rows + 10)
        for one in (ws, inline):
            one.track("t", numbers(rows[:n_rows]), kinds=("dc",), evidence=evidence)
        n_dcs.add(len(ws.dependencies(kind="dc")))
        assert min(n_dcs) > 0, "there is something to break"
        new = written(tmp_path / f"{i}-new.csv", rows[n_rows:].tolist(), names)
        gone = written(tmp_path / f"{i}-gone.csv", rows[:3].tolist(), names)
        jobs, _ = jobs_of(ws, inserts=new)
        inserted.add(jobs)
        jobs, rounds = jobs_of(ws, deletes=gone)
        assert rounds <= (MAX_ROUNDS if evidence == "witnessed" else 0)
        deleted.add(jobs - rounds)
        inline.apply("t", inserts=new)
        inline.apply("t", deletes=gone)
        assert ws.dependencies(kind="dc") == inline.dependencies(kind="dc")
    assert max(n_dcs) > 100 * min(n_dcs)
    assert inserted == {INSERT_JOBS}
    assert deleted == {COUNTED_DELETE_JOBS if evidence == "counted" else WITNESSED_DELETE_JOBS}


@pytest.mark.parametrize("n_rules", [1, 4])
def test_jobs_do_not_grow_with_rules(opened: Opener, tmp_path: Path, n_rules: int) -> None:
    """What is pinned is watched beside what is kept; others look for pairs to show, if the known ones go."""
    rules = ["t.c0 = s.c0 and t.c1 != s.c1", "t.c0 < s.c0 and t.c1 > s.c1", "t.c2 = s.c2", "t.c3 <= s.c2"]
    jobs = []
    for n_pinned in (0, n_rules):
        ws = opened("spark")
        rows = at_random(220)
        ws.track("t", numbers(rows[:200]), kinds=("ucc",))
        for rule in rules[:n_pinned]:
            ws.pin_rule(f"not({rule})")
        new = written(tmp_path / f"{n_pinned}-new.csv", rows[200:].tolist(), [f"c{c}" for c in range(4)])
        gone = written(tmp_path / f"{n_pinned}-gone.csv", rows[:20].tolist(), [f"c{c}" for c in range(4)])
        jobs.append([_jobs(ws, inserts=new), _jobs(ws, deletes=gone), _jobs(ws, inserts=gone, deletes=new)])
        assert len(ws.pins("t")) == n_pinned
    without, with_rules = jobs
    more = [b - a for a, b in zip(without, with_rules, strict=True)]
    assert more[0] == 0
    assert all(0 <= n <= 3 for n in more)


def _jobs(ws: Workspace, **batch: Any) -> int:
    before = ws.writer.engine.jobs
    ws.apply("t", **batch)
    return ws.writer.engine.jobs - before


# -- Spark DataFrames --------------------------------------------------------------------------------------


@pytest.mark.parametrize("evidence", ["counted", "witnessed"])
@pytest.mark.parametrize("mode", ["inline", "spark"])
def test_spark_dataframes(opened: Opener, spark: SparkSession, mode: str, evidence: Any) -> None:
    rows: list[Row] = [(1, "a", 1.5), (2, "a", None), (3, "b", float("nan")), (4, None, 1.5)]
    schema = "id long, name string, price double"
    ws = opened(mode)
    ws.track("t", spark.createDataFrame(rows, schema).repartition(3), kinds=("dc",), evidence=evidence)
    live = list(rows)

    def check() -> None:
        groups = [(g.left, g.right, g.ordered) for g in ws.dcs.space("t").groups]
        space = Space(groups, ["id", "name", "price"])
        found = [d for d in ws.dependencies(kind="dc") if isinstance(d, Dc)]
        words = {space.numbers((p.left, p.op, p.right) for p in d.predicates) for d in found}
        assert words == set(space.telling(space.general(space.evidence(live))))

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
