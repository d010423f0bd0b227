"""A lake inline and on Spark: same inclusions, same components; few jobs, however many tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.engine import session
from holdfast.core.engine.engine import Engine
from holdfast.lakes import index as lake_index
from holdfast.lakes import intake
from holdfast.lakes import linker as discovery
from holdfast.lakes import read_task as lake_read
from holdfast.lakes.answers import LakeChange
from lake_tables import (
    chain,
    equal,
    one_column,
    renamed,
    without_values,
    write_json_lines,
    write_parquet_files,
)
from reference import lake as oracle
from reference.lake import Options, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Opener = Callable[[str], Workspace]


@pytest.fixture
def opened(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Workspaces by mode of the engine; limits so small that a few tables are several tasks."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(intake, "UNIT_BYTES", 4_000)
    monkeypatch.setattr(discovery, "ENTRIES_PER_TASK", 120)
    monkeypatch.setattr(lake_index, "ENTRIES_PER_TASK", 150)
    found: list[Workspace] = []

    def open_one(mode: str) -> Workspace:
        number = len(found)
        given = spark if mode == "spark" else None
        found.append(holdfast.open(tmp_path / f"{mode}-{number}", engine=mode, spark=given))  # type: ignore[arg-type]
        return found[-1]

    yield open_one
    for ws in found:
        ws.close()


def some_tables(n: int, first: int = 0) -> list[Table]:
    """Tables of which many have something in common: towns, people of three towns each, ranks, nothing."""
    found = []
    for i in range(first, first + n):
        towns = tuple(f"town {(i + j) % 11}" for j in range(2 + i % 4))
        people = tuple(f"person {i % 5} {j}" for j in range(len(towns)))
        ranks = tuple(str(j + 1) for j in range(len(towns)))
        missing = tuple(None if j % 2 else "-" for j in range(len(towns)))
        found.append(Table(f"some/{i}.csv", ("town", "who", "rank", "note"), (towns, people, ranks, missing)))
    return found


def shared_of(ws: Workspace) -> dict[oracle.Pair, int]:
    reader = ws.lake()
    assert reader is not None
    first = reader.catalogue.columns_of
    found: dict[oracle.Pair, int] = {}
    for ind in reader.each_ind():
        a, b = ((s.table, s.id - first(s.table_id).start) for s in (ind.dependent, ind.referenced))
        found[a, b] = ind.shared
    return found


def groups_of(ws: Workspace) -> list[tuple[int, str]]:
    reader = ws.lake()
    assert reader is not None
    columns = ("component", "name")
    return sorted(
        row for b in reader.nodes() for row in zip(*(b[name].to_pylist() for name in columns), strict=True)
    )


def told(change: LakeChange) -> dict[str, Any]:
    """What a change says, but for the time it took, and the folder of its sources."""
    found = change.to_dict()
    del found["elapsed_s"]
    found["phases"] = [phase["name"] for phase in found["phases"]]
    found["bad"] = [reason for _, reason in change.bad]
    return found


FIRST = [
    *some_tables(14),
    *renamed(chain(5).tables, lambda i, _: f"chain {i}"),
    *renamed(equal(5).tables, lambda i, _: f"equal {i}"),
    *without_values().tables,
]
ADDED = [
    *renamed(some_tables(6, first=14), lambda i, _: f"more/{i}.parquet"),
    one_column("alone.parquet", ["nobody", "else"]),
]
CHANGED = [
    one_column("some/3.csv", ["town 1", "town 2"]),
    one_column("chain 4", ["v0", "x"]),
    *some_tables(1, 50),
]
GONE = ["some/0.csv", "chain 1", "equal 2", "alone.parquet"]


def script(ws: Workspace, folder: Path, options: Options, **how: Any) -> list[Any]:
    """Tables come from JSON lines and from Parquet files, change and go; all that was said on the way."""
    names = ("filters", "tau", "normalise", "max_error", "min_values")
    given = {name: getattr(options, name) for name in names}
    held = {t.name: t for t in FIRST}
    lines = write_json_lines(FIRST, folder / "first.jsonl")
    (folder / "bad.jsonl").write_text("no json\n")
    steps: list[tuple[Callable[[], LakeChange], Sequence[Table], Sequence[str]]] = [
        (lambda: ws.link(lines, folder / "bad.jsonl", json_name="name", **given, **how), (), ()),
        (lambda: ws.link(write_parquet_files(ADDED, folder / "more"), add=True, **how), ADDED, ()),
        (
            lambda: ws.link(
                write_json_lines(CHANGED, folder / "new.jsonl"), replace=True, json_name="name", **how
            ),
            CHANGED,
            (),
        ),
        (lambda: ws.unlink(*GONE), (), GONE),
    ]
    said: list[Any] = []
    for step, new, gone in steps:
        said.append(told(step()))
        held |= {t.name: t for t in new}
        held = {name: t for name, t in held.items() if name not in gone}
        shared = shared_of(ws)
        assert shared == oracle.shared(list(held.values()), options)
        said += [shared, groups_of(ws)]
    return said


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("options", "how"),
    [
        pytest.param(Options(), {"proposer": "index"}, id="index"),
        pytest.param(Options(tau=0.5), {"proposer": "signatures", "strategy": "ref2deps"}, id="ref2deps"),
        pytest.param(
            Options(filters=("integer",), normalise=("fold",)),
            {"proposer": "signatures", "m": 16, "k": 1, "p": 1},
            id="dep2refs",
            marks=SLOW,
        ),
        pytest.param(
            Options(filters=("null", "coverage"), max_error=0.4, min_values=3), {}, id="partial", marks=SLOW
        ),
    ],
)
def test_the_same_script(opened: Opener, tmp_path: Path, options: Options, how: dict[str, Any]) -> None:
    (tmp_path / "a").mkdir()
    inline, on_spark = opened("inline"), opened("spark")
    expected = script(inline, tmp_path / "a", options, **how)
    found = script(on_spark, tmp_path / "a", options, **how)
    for one, other in zip(expected, found, strict=True):
        assert one == other
    assert expected[0]["n_inds"] > 20
    assert expected[0]["n_bad"] == 1
    assert inline.writer.engine.jobs == 0
    assert on_spark.writer.engine.jobs > 10


def test_the_index_by_shuffle(opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tasks share no disk, entries meet by Spark's shuffle: nothing else is different."""
    for name in "ab":
        (tmp_path / name).mkdir()
    expected = script(opened("inline"), tmp_path / "a", Options())
    ranges: list[int] = []
    exchange = Engine.exchange

    def counted(self: Engine, *arguments: Any, **how: Any) -> list[bytes]:
        ranges.append(len(arguments[3]))
        return exchange(self, *arguments, **how)

    monkeypatch.setattr(lake_index, "ENTRIES_PER_TASK", 30)
    monkeypatch.setattr(Engine, "shuffles", True)
    monkeypatch.setattr(Engine, "exchange", counted)
    assert script(opened("spark"), tmp_path / "b", Options()) == expected
    assert len(ranges) > 2
    assert max(ranges) > 2


# -- jobs --------------------------------------------------------------------------------------------------


def jobs_of_steps(ws: Workspace, folder: Path, n: int, how: dict[str, Any]) -> list[int]:
    """How many jobs a link, an addition, a replacement and a drop of so many tables take."""
    first = write_json_lines(some_tables(n), folder / f"{n}.jsonl")
    more = write_json_lines(some_tables(n, first=n), folder / f"{n}-more.jsonl")
    gone = [t.name for t in some_tables(n // 4)]
    steps: list[Callable[[], LakeChange]] = [
        lambda: ws.link(first, json_name="name", **how),
        lambda: ws.link(more, add=True, json_name="name", **how),
        lambda: ws.link(more, replace=True, json_name="name", **how),
        lambda: ws.unlink(*gone),
    ]
    jobs = []
    for step in steps:
        before = ws.writer.engine.jobs
        step()
        jobs.append(ws.writer.engine.jobs - before)
    return jobs


@pytest.mark.parametrize(
    "how",
    [{"proposer": "index"}, pytest.param({"proposer": "signatures", "strategy": "ref2deps"}, marks=SLOW)],
)
def test_jobs_do_not_grow_with_tables(
    opened: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """Nor with their values or inclusions: each phase is a constant number of jobs.

    If a few tables are several tasks: what a single task writes need not be joined.
    """
    # Tasks as small as these leave many files; that they are gathered at times is a job of its own.
    monkeypatch.setattr(discovery, "GATHER_AT", 1_000)
    few, many = opened("spark"), opened("spark")
    jobs = jobs_of_steps(few, tmp_path, 20, how)
    assert jobs == jobs_of_steps(many, tmp_path, 200, how)
    assert max(jobs) < 15
    n_inds = [ws.lake().summary().n_inds for ws in (few, many)]  # type: ignore[union-attr]
    assert n_inds[1] > 20 * n_inds[0] > 0


def test_small_steps_start_no_spark(tmp_path: Path) -> None:
    """Where the engine may choose, a few tables are not worth it."""
    with holdfast.open(tmp_path / "w", engine="auto") as ws:
        ws.link(write_json_lines(some_tables(5), tmp_path / "t.jsonl"), json_name="name")
        ws.unlink("some/0.csv")
        assert ws.writer.engine.jobs == 0


def test_spark_is_not_started_for_what_is_read_sooner_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some megabytes are read in a second, and a session takes ten of them to start."""
    monkeypatch.setattr(session, "is_there", lambda: False)
    tables = [*some_tables(200), Table("large", ("a",), (tuple(f"{i}{'x' * 60_000}" for i in range(100)),))]
    path = Path(write_json_lines(tables, tmp_path / "t.jsonl"))
    assert path.stat().st_size > 6_000_000
    with holdfast.open(tmp_path / "w", engine="auto") as ws:
        monkeypatch.setattr(Engine, "spark", property(lambda _: pytest.fail("Spark was started")))
        assert ws.link(path, json_name="name").n_tables == 201


@pytest.mark.parametrize(
    ("seconds", "started", "where", "shared"),
    [
        (2.7, False, "inline", "inline"),
        (60, False, "spark", "inline"),
        (600, False, "spark", "spark"),
        (0.5, True, "inline", "inline"),
        (1.5, True, "spark", "inline"),
        (2.7, True, "spark", "spark"),
    ],
)
def test_the_start_of_a_session_counts(
    monkeypatch: pytest.MonkeyPatch, seconds: float, started: bool, where: str, shared: str
) -> None:
    """`shared`: threads would share the same two cores, so processes are worth it for more work only."""
    monkeypatch.setattr(session, "is_there", lambda: started)
    monkeypatch.setattr("holdfast.core.engine.engine.available_cores", lambda: 2)
    assert Engine().choose(1e9 * seconds) == where
    assert Engine().choose(1e9 * seconds, parallel=True) == shared
    assert Engine(mode="inline").choose(1e9 * seconds) == "inline"
    assert Engine(mode="spark").choose(1e9 * seconds) == "spark"


def test_a_running_session_is_seen(spark: SparkSession) -> None:
    assert session.is_there()


def test_blocks_of_a_unit_are_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an archive unpacks to is known only when it is read, so a task may write several blocks."""
    path = write_json_lines(some_tables(40), tmp_path / "t.jsonl")
    answers = []
    for n_bytes in (lake_read.BLOCK_BYTES, 5_000, 0):
        monkeypatch.setattr(lake_read, "BLOCK_BYTES", n_bytes)
        with holdfast.open(tmp_path / f"w{n_bytes}", engine="inline") as ws:
            change = ws.link(path, json_name="name", filters=[])
            lake = ws.lake()
            assert lake is not None
            inds = {(str(ind), ind.coverage, ind.score) for ind in lake.each_ind()}
            answers.append((change.n_tables, change.n_columns, change.n_inds, inds))
    assert answers[0][0] == 40
    assert answers[0] == answers[1] == answers[2]
