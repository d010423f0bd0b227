"""What the tasks of a lake write: files of their own, each written once, by one process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import holdfast
from holdfast import Workspace
from holdfast.core.engine.engine import Engine
from holdfast.core.store.litter import named_files
from holdfast.lakes import index as lake_index
from holdfast.lakes import intake
from holdfast.lakes import linker as discovery
from holdfast.lakes.state import LakeState
from lake_tables import one_column, write_json_lines
from pipeline import task_attempts
from pipeline.test_lake_on_spark import groups_of, shared_of, some_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step = Callable[[Workspace], Any]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits so small that a few tables are several tasks, and that two parts are merged."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(intake, "UNIT_BYTES", 2_000)
    monkeypatch.setattr(discovery, "ENTRIES_PER_TASK", 60)
    monkeypatch.setattr(discovery, "MERGE_AT", 2)
    monkeypatch.setattr(lake_index, "ENTRIES_PER_TASK", 80)


@pytest.fixture
def steps(tmp_path: Path) -> list[Step]:
    """Tables come, more come, of which one is known, one changes, some go."""
    first = write_json_lines(some_tables(14), tmp_path / "first.jsonl")
    more = write_json_lines(some_tables(8, first=13), tmp_path / "more.jsonl")
    changed = write_json_lines([one_column("some/3.csv", ["town 1", "town 2"])], tmp_path / "new.jsonl")
    by_signatures: dict[str, Any] = {"proposer": "signatures", "strategy": "ref2deps", "json_name": "name"}
    return [
        lambda ws: ws.link(first, **by_signatures),
        lambda ws: ws.link(more, add=True, json_name="name"),
        lambda ws: ws.link(changed, replace=True, json_name="name"),
        lambda ws: ws.unlink("some/0.csv", "some/15.csv"),
    ]


def state_of(ws: Workspace) -> LakeState:
    reader = ws.lake()
    assert reader is not None
    return reader.state


def files_below(root: Path) -> set[str]:
    return {str(path) for name in ("lake", "staging") for path in (root / name).rglob("*") if path.is_file()}


def test_no_file_is_written_by_two(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, steps: list[Step]
) -> None:
    """On storage where each machine has a page cache of its own, all that is shared is lost.

    So every file is made by the one that writes it, and is never opened for writing again, by no task and not
    by the driver; nothing is mapped for writing. Files that libraries open by themselves are not seen by the
    audit, so all files must be among those that were.
    """
    root, log = tmp_path / "w", tmp_path / "log"
    log.mkdir()
    there: set[str] = set()
    run = Engine.run

    def watching(engine: Engine, function: Any, payloads: Any, **how: Any) -> list[bytes]:
        payloads = task_attempts.wrapped(function, payloads, log=str(log))
        results = run(engine, task_attempts.watched, payloads, **how)
        there.update(files_below(root))
        return results

    monkeypatch.setattr(Engine, "run", watching)
    with holdfast.open(root, engine="spark", spark=spark) as ws:
        for step in steps[:3]:
            with task_attempts.recorded(log):  # the driver
                step(ws)
            there |= files_below(root)
        n_jobs = ws.writer.engine.jobs

    stamp = f"{root}/staging/tidied"  # when litter was last looked for, by the driver
    opened: dict[str, int] = {}
    writers = [json.loads(file.read_text()) for file in log.iterdir()]
    for events in writers:
        for event, path, new in events:
            if path.startswith((f"{root}/lake/", f"{root}/staging/")) and path != stamp:
                assert (event, new) == ("open", True), path
                opened[path] = opened.get(path, 0) + 1
    assert set(opened.values()) == {1}
    assert there <= {*opened, stamp}
    assert n_jobs > 20
    assert sum(bool(events) for events in writers) > 2 * n_jobs  # tasks of a job write, each for itself
    for name in ("keys", "keychecks", "postings", "pivots", "rarity"):
        stems = [path.removeprefix(f"{root}/").split("-")[0] for path in opened]
        pieces = [s for s in stems if s.startswith("staging/") and s.endswith(f"/{name}")]
        assert len(pieces) > 2, name
        assert f"lake/{name}" in stems, name


@pytest.fixture
def attempted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every task is tried several times before its answer counts."""
    run = Engine.run

    def attempting(engine: Engine, function: Any, payloads: Any, **how: Any) -> list[bytes]:
        return run(engine, task_attempts.repeated, task_attempts.wrapped(function, payloads), **how)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "run", attempting)
        patch.setattr(Engine, "cores", 1)  # the death of one task must not be that of another thread's
        yield


def test_tasks_that_are_lost_and_killed_leave_litter_only(
    tmp_path: Path, steps: list[Step], request: pytest.FixtureRequest
) -> None:
    with holdfast.open(tmp_path / "calm", engine="inline") as calm:
        expected = [(step(calm).n_inds, shared_of(calm), groups_of(calm)) for step in steps]
        n_calm = len(files_below(tmp_path / "calm"))
    request.getfixturevalue("attempted")
    root = tmp_path / "w"
    with holdfast.open(root, engine="inline") as ws:
        found = [(step(ws).n_inds, shared_of(ws), groups_of(ws)) for step in steps]
        assert found == expected
        assert len(files_below(root)) > 3 * n_calm
        assert ws.verify() >= len(list(named_files(state_of(ws).to_dict())))
        ws.tidy(grace_s=0)
        needed = {str(root / ref.name) for ref in list(named_files(state_of(ws).to_dict()))}
        assert {path for path in files_below(root) if "/lake/" in path} == needed
        assert (shared_of(ws), groups_of(ws)) == expected[-1][1:]


def test_tasks_that_merge_parts_read_them_again(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, steps: list[Step]
) -> None:
    """Not the driver, which would read all of a lake now and then."""
    read: list[str] = []
    opened = os.open

    def noted(path: Any, *arguments: Any, **options: Any) -> int:
        read.append(str(path))
        return opened(path, *arguments, **options)

    with holdfast.open(tmp_path / "w", engine="spark", spark=spark) as ws:
        steps[0](ws)
        [part] = state_of(ws).parts
        monkeypatch.setattr(os, "open", noted)
        steps[1](ws)
        monkeypatch.undo()
        assert len(state_of(ws).parts) == 1
        unread = {"values", "checks", "postings", "key_checks"}  # nothing of the driver's asks for these
        names = [part.arrays[name].name for name in unread]
        assert [path for path in read if path.endswith(tuple(names))] == []
