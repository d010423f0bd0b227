"""Several processes on one workspace: one wins, the others can try again, and nothing is lost.

Every writer is a process of its own (`writer.py`), so that nothing but the disk is shared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from trust import kit, writer

WRITER = Path(__file__).parent / "writer.py"
Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def run() -> Iterator[Run]:
    """Runs writers (role, root, who, n) at once; their answers in that order. None outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def run(*parts: tuple[str, Path, int, int]) -> list[dict[str, Any]]:
        processes = [
            subprocess.Popen(
                [sys.executable, str(WRITER), *map(str, part)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for part in parts
        ]
        started.extend(processes)
        for process in processes:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                pytest.fail(process.communicate(timeout=60)[1])
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = []
        for process in processes:
            out, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
            assert err == ""
            answer = json.loads(out)
            assert "failed" not in answer, answer["failed"]
            answers.append(answer)
        return answers

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_no_update_is_lost(run: Run, tmp_path: Path) -> None:
    """Three writers with six batches each, and a reader that looks all the time."""
    root, n = tmp_path / "w", 6
    kit.build(root)
    first = len(kit.HISTORY) + 2
    last = first + 3 * n - 1
    *answers, reader = run(*(("same_table", root, who, n) for who in (1, 2, 3)), ("read", root, 9, last))
    assert sorted(v for answer in answers for v in answer["versions"]) == list(range(first, last + 1))
    rows = kit.after(kit.START, *kit.HISTORY, *(b for who in (1, 2, 3) for b in writer.batches(who, n)))
    found = kit.snapshot(root)
    assert found["tables"]["people"]["rows"] == [list(row) for row in rows]
    assert found["tables"]["people"]["keys"] == kit.minimal_keys(rows)
    assert found["version"] == last
    assert reader["seen"][-1] == last
    assert reader["n_looks"] >= len(reader["seen"]) >= 2


def test_one_wins_the_other_gets_a_conflict(run: Run, tmp_path: Path) -> None:
    """By chance both may come one after the other; so it is tried until they meet."""
    root = tmp_path / "w"
    kit.build(root)
    # Both read version 4, and the second commits only after the first: one process, two looks at the disk.
    with holdfast.open(root, engine="inline") as one, holdfast.open(root, engine="inline") as two:
        load = two._load

        def slow_load(state: Any) -> Any:
            run(("once", root, 1, 1))
            return load(state)

        two._load = slow_load  # type: ignore[method-assign]
        with pytest.raises(
            holdfast.errors.ConflictError, match=r"committed version 5.*Nothing was applied.*again"
        ):
            kit.apply(two, writer.batches(2, 1)[0], batch_id="two")
        two._load = load  # type: ignore[method-assign]
        assert one.version == two.version == 5
        assert kit.rows_of(one, "people") == kit.after(kit.START, *kit.HISTORY, *writer.batches(1, 1))
        assert not list((root / "staging").glob("*/"))
        assert kit.apply(two, writer.batches(2, 1)[0], batch_id="two").version == 6
        rows = kit.after(kit.START, *kit.HISTORY, *writer.batches(1, 1), *writer.batches(2, 1))
        assert kit.rows_of(one, "people") == rows
        assert kit.keys_of(one, "people") == kit.minimal_keys(rows)


def test_two_at_once_both_outcomes_are_whole(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "w"
    kit.build(root)
    answers = run(("once", root, 1, 1), ("once", root, 2, 1))
    won = [who for who, answer in enumerate(answers, 1) if "version" in answer]
    assert won
    assert all("Nothing was applied" in answer["message"] for answer in answers if "error" in answer)
    rows = kit.after(kit.START, *kit.HISTORY, *(writer.batches(who, 1)[0] for who in won))
    found = kit.snapshot(root)
    assert found["version"] == 4 + len(won)
    assert found["tables"]["people"]["rows"] == [list(row) for row in rows]
    assert found["tables"]["people"]["keys"] == kit.minimal_keys(rows)


def test_the_same_batch_id_from_two_processes_lands_once(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "w"
    kit.build(root)
    answers = run(*(("same_batch", root, who, 1) for who in (1, 2, 3)))
    assert sorted(answer["repeated"] for answer in answers) == [False, True, True]
    assert {answer["version"] for answer in answers} == {5}
    assert kit.snapshot(root)["tables"]["people"]["rows"] == [
        list(row) for row in kit.after(kit.START, *kit.HISTORY, kit.BATCH)
    ]


def test_writers_of_different_tables_do_not_disturb_each_other(run: Run, tmp_path: Path) -> None:
    root, n = tmp_path / "w", 6
    with holdfast.open(root, engine="inline") as ws:
        for who in (1, 2):
            ws.track(f"people-{who}", kit.table_of(kit.START))
    answers = run(("own_table", root, 1, n), ("own_table", root, 2, n))
    assert [answer["conflicts"] for answer in answers] == [0, 0]
    found = kit.snapshot(root)
    assert found["version"] == 2 + 2 * n
    for who in (1, 2):
        rows = kit.after(kit.START, *writer.batches(who, n))
        assert found["tables"][f"people-{who}"]["rows"] == [list(row) for row in rows]
        assert found["tables"][f"people-{who}"]["keys"] == kit.minimal_keys(rows)


def test_creating_and_tracking_at_once(run: Run, tmp_path: Path) -> None:
    """Three processes make the same workspace and track the same table in it: one of them does."""
    root = tmp_path / "w"
    answers = run(*(("track", root, who, who + 2) for who in (1, 2, 3)))
    won = [who for who, answer in enumerate(answers, 1) if "version" in answer]
    assert len(won) == 1
    for answer in answers:
        if "error" in answer:
            assert answer["error"] in ("TableExistsError", "ConflictError")
            assert "Nothing was" in answer["message"]
    found = kit.snapshot(root)
    assert found["version"] == 1
    rows = sorted((writer.row(won[0], i) for i in range(won[0] + 2)), key=repr)
    assert found["tables"]["people"]["rows"] == [list(row) for row in rows]
