"""Several processes on one workspace: one wins, the others can try again, and nothing is lost.

Every writer is a process of its own (a child of `writer.py`), so that nothing but the disk is shared. Tables
that refer to each other share the generator: their writers get in each other's way, and none may lose.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.words.dependency import Side
from holdfast.errors import ConflictError
from holdfast.workspace import Workspace
from trust import kit, shop, writer

WRITER = Path(__file__).parent / "writer.py"
Run = Callable[..., list[dict[str, Any]]]


class Server:
    """The other end of `writer.py`: it and its children are one group of processes, which ends as one."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert self._read() == "ready"
        except BaseException:
            self.close()  # left open, it would fail some other test
            raise

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def run(self, *parts: tuple[str, Path, int, int]) -> list[dict[str, Any]]:
        """Runs writers (role, root, who, n) at once; their answers in that order. None outlives the call."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps([(role, str(root), *more) for role, root, *more in parts]))
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            answers: list[dict[str, Any]] = self._read()
        except BaseException:
            self.close()  # its children may be at it still
            raise
        for answer in answers:
            assert "failed" not in answer, answer["failed"]
        return answers

    def close(self) -> None:
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def run(server: Server) -> Run:
    return server.run


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
    assert reader["n_looks"] >= len(reader["seen"])  # who starts late sees the last version only


def test_one_wins_the_other_gets_a_conflict(run: Run, tmp_path: Path) -> None:
    """By chance both may come one after the other; so it is tried until they meet."""
    root = tmp_path / "w"
    kit.build(root)
    # Both read version 4, and the second commits only after the first: one process, two looks at the disk.
    with holdfast.open(root, engine="inline") as one, holdfast.open(root, engine="inline") as two:
        committer = two._committer
        load = committer.findings

        def slow_load(state: Any) -> Any:
            run(("once", root, 1, 1))
            return load(state)

        committer.findings = slow_load  # type: ignore[method-assign]
        with pytest.raises(
            holdfast.errors.ConflictError, match=r"committed version 5.*Nothing was applied.*again"
        ):
            kit.apply(two, writer.batches(2, 1)[0], batch_id="two")
        committer.findings = load  # type: ignore[method-assign]
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


# -- tables that refer to each other -----------------------------------------------------------------------


def test_no_update_of_tables_that_refer_to_each_other_is_lost(run: Run, tmp_path: Path) -> None:
    """Writers of `orders`, of `parts` and of both, and a reader that looks all the time."""
    root, n = tmp_path / "w", 5
    shop.build(root)
    last = shop.BUILT + 3 * n
    *answers, reader = run(*(("in_shop", root, who, n) for who in (1, 2, 3)), ("read_in_shop", root, 9, last))
    assert sorted(v for answer in answers for v in answer["versions"]) == list(
        range(shop.BUILT + 1, last + 1)
    )
    found = kit.snapshot(root)
    made = [batch for who in (1, 2, 3) for batch in writer.shop_batches(who, n)]
    shop.check_rows(found, shop.after(shop.START, *shop.HISTORY, *made))
    assert found["version"] == last
    assert reader["seen"][-1] == last


def test_the_same_batch_of_two_tables_lands_once(run: Run, tmp_path: Path) -> None:
    root = tmp_path / "w"
    shop.build(root)
    answers = run(*(("same_shop_batch", root, who, 1) for who in (1, 2, 3)))
    assert sorted(answer["repeated"] for answer in answers) == [False, True, True]
    assert {answer["version"] for answer in answers} == {shop.BUILT + 1}
    shop.check_rows(kit.snapshot(root), shop.after(shop.START, *shop.HISTORY, shop.BOTH))


def test_tracking_tables_of_one_workspace_at_once(run: Run, tmp_path: Path) -> None:
    """Three processes make the same workspace; each tracks a table, and all of them share the generator."""
    root = tmp_path / "w"
    answers = run(*(("track_in_shop", root, who, 4) for who in (1, 2, 3)))
    assert sorted(answer["version"] for answer in answers) == [1, 2, 3]
    rows = {f"orders-{who}": [tuple(r) for r in answer["rows"]] for who, answer in enumerate(answers, 1)}
    found = kit.snapshot(root)
    shop.check_rows(found, rows)
    assert "orders-1[part] in orders-2[part]" in found["inclusions"]["held"]


def test_writers_of_tables_that_refer_to_each_other_take_turns(tmp_path: Path) -> None:
    """What one of them remembers of the inclusions is never what the other has changed since."""
    root = tmp_path / "w"
    shop.build(root)
    rows = shop.after(shop.START, *shop.HISTORY)
    turns = zip(writer.shop_batches(1, 4), writer.shop_batches(2, 4), strict=True)
    with holdfast.open(root, engine="inline") as one, holdfast.open(root, engine="inline") as two:
        for first, second in turns:
            shop.apply(one, first)
            shop.apply(two, second)
            rows = shop.after(rows, first, second)
            told = [kit.inclusions_of(ws, rows) for ws in (one, two)]
            assert told[0] == told[1]
    shop.check_rows(kit.snapshot(root), rows)


# What two writers do at the same time: how, what becomes of the rows, and the tables that it changes.
Act = Callable[[Workspace], object]
Effect = Callable[[shop.Rows], shop.Rows]
Doing = tuple[Act, Effect, set[str]]
CATALOGUE: shop.Batch = {"parts": ([(5, 5, 5.0)], [(2, 1, 1.5)])}
SHARED = ""  # the generator, where it is not worked out again on top of what others have done to it


def applying(batch: shop.Batch) -> Doing:
    return lambda ws: shop.apply(ws, batch), lambda rows: shop.after(rows, batch), set(batch)


def unchanged(rows: shop.Rows) -> shop.Rows:
    return rows


def without(table: str) -> Effect:
    return lambda rows: {t: r for t, r in rows.items() if t != table}


def keep_returns(ws: Workspace) -> object:
    return ws.track("returns", shop.table_of("returns", shop.RETURNS), kinds=("ucc", "ind"))


def pin_supplier(ws: Workspace) -> object:
    return ws.pin("orders", ["supplier"], referenced=Side("parts", ("supplier",)))


THESE: dict[str, Doing] = {
    "apply": applying(shop.ONE),
    "apply_all": applying(shop.BOTH),
    "track": (keep_returns, lambda rows: {**rows, "returns": shop.RETURNS}, {"returns"}),
    "merge": (lambda ws: ws.merge("orders"), unchanged, {"orders", SHARED}),
    "drop": (lambda ws: ws.drop("parts"), without("parts"), {"parts", SHARED}),
    "pin": (pin_supplier, unchanged, {"orders", SHARED}),
}
THOSE: dict[str, Doing] = {
    "applies to another table": applying({"visits": ([(5, "Bern")], [])}),
    "applies to parts": applying(CATALOGUE),
    "drops another table": (lambda ws: ws.drop("visits"), without("visits"), {"visits"}),
    "merges parts": (lambda ws: ws.merge("parts"), unchanged, {"parts"}),
    "pins a key": (lambda ws: ws.pin("orders", ["id"]), unchanged, {"orders"}),
    "applies to a table with keys only": (
        lambda ws: kit.apply(ws, kit.HISTORY[0]),
        lambda rows: {**rows, "people": kit.after(rows["people"], kit.HISTORY[0])},
        {"people"},
    ),
}
KEYS_ONLY = ("pins a key", "applies to a table with keys only")


@pytest.fixture(scope="module")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("two") / "w"
    shop.build(root)
    with holdfast.open(root, engine="inline") as ws:
        ws.track("people", kit.table_of(kit.START))
    return root


@pytest.mark.parametrize("that", list(THOSE))
@pytest.mark.parametrize("this", list(THESE))
def test_while_another_writer(beginning: Path, tmp_path: Path, this: str, that: str) -> None:
    """All is computed, but another writer is faster.

    A conflict if both have changed the same table. What tables share is worked out again on top of the
    other's commit where that is little work, and a conflict else.
    """
    root = tmp_path / "w"
    shutil.copytree(beginning, root)
    (act, effect, touched), (other_act, other_effect, other_touched) = THESE[this], THOSE[that]
    if that not in KEYS_ONLY:
        other_touched = {*other_touched, SHARED}
    rows = {**shop.after(shop.START, *shop.HISTORY), "people": kit.START}
    base = shop.BUILT + 1
    with holdfast.open(root, engine="inline") as one, holdfast.open(root, engine="inline") as two:
        append = two.ledger.append

        def late(*args: Any) -> int:
            two.ledger.append = append  # type: ignore[method-assign]
            other_act(one)
            return append(*args)

        two.ledger.append = late  # type: ignore[method-assign]
        if touched & other_touched:
            told = rf"committed version {base + 1}.*Nothing was applied.*again"
            with pytest.raises(ConflictError, match=told):
                act(two)
            assert not list((root / "staging").glob("*/"))
            shop.check_rows(kit.snapshot(root), other_effect(rows))
        act(two)
        assert two.version == base + 2
        rows = effect(other_effect(rows))
        shop.check_rows(kit.snapshot(root), rows)
        # Both go on with what they have seen.
        shop.apply(one, {"orders": ([(99, 1, 1, "Rome")], [])})
        shop.apply(two, {"orders": ([(98, 8, 8, "Bonn")], [(99, 1, 1, "Rome")])})
    shop.check_rows(kit.snapshot(root), shop.after(rows, {"orders": ([(98, 8, 8, "Bonn")], [])}))


def test_a_row_that_two_delete_goes_once(tmp_path: Path) -> None:
    """The last row with a value: its frequency is zero then, and never less."""
    root = tmp_path / "w"
    shop.build(root)
    batch: shop.Batch = {"orders": ([], [(6, 4, 1, "Oslo")])}
    with holdfast.open(root, engine="inline") as one, holdfast.open(root, engine="inline") as two:
        committer = two._committer
        load = committer.among

        def slow(kind: str, at: int | None) -> Any:
            committer.among = load  # type: ignore[method-assign]
            shop.apply(one, batch)
            return load(kind, at)

        committer.among = slow  # type: ignore[method-assign]
        with pytest.raises(ConflictError):
            shop.apply(two, batch)
        with pytest.raises(holdfast.errors.AbsentRowError):
            shop.apply(two, batch)
        assert two.version == shop.BUILT + 1
    shop.check_rows(kit.snapshot(root), shop.after(shop.START, *shop.HISTORY, batch))


def _explained(ws: Workspace) -> object:
    told = ws.inds.explain(Side("orders", ("part",)), Side("parts", ("part",)))
    return told.ind.to_dict(), [value for value, _ in told.missing]


@pytest.mark.parametrize(
    "question",
    [lambda ws: ws.dependencies(), lambda ws: ws.inds.links(max_error=0.5).to_dict(), _explained],
    ids=["dependencies", "links", "explain_ind"],
)
def test_what_is_read_is_of_one_version(tmp_path: Path, question: Callable[[Workspace], object]) -> None:
    """A writer commits at any moment while a reader is at it: the reader sees all of it, or nothing."""
    root = tmp_path / "w"
    shop.build(root)
    row = (1, 9, 1, "Bern")  # breaks a key and inclusions
    there: shop.Batch = {"orders": ([row], [])}
    back: shop.Batch = {"orders": ([], [row])}
    with holdfast.open(root, engine="inline") as reader, holdfast.open(root, engine="inline") as ws:
        before = question(reader)
        shop.apply(ws, there)
        right = (before, question(reader))
        assert right[0] != right[1]
        heads = reader.ledger.heads
        for moment in range(1000):
            looks = 0

            def late(version: int | None = None, moment: int = moment) -> dict[str, int]:
                nonlocal looks
                looks += 1
                if looks == moment + 1:
                    shop.apply(ws, back if row in kit.rows_of(ws, "orders") else there)
                return heads(version)

            reader.ledger.heads = late  # type: ignore[method-assign]
            assert question(reader) in right, f"a commit before look {moment} at the ledger"
            if looks <= moment:
                return
    pytest.fail("a thousand looks at the ledger?")
