"""A lake and what can go wrong: damaged files, crashes, litter, a full disk, other writers.

A question to a lake whose file is missing or cut has the answer that it had before, or raises a
DamagedFileError that names the file; `verify` names any file that was altered. A step is there whole or not
at all, and what one has left that was stopped goes with the litter.
"""

from __future__ import annotations

import errno
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
from holdfast.core.store.litter import named_files
from holdfast.errors import ConflictError, DamagedFileError, EngineError, HoldfastError, WorkspaceError
from holdfast.lakes import intake
from holdfast.lakes import linker as discovery
from holdfast.lakes.reader.lake_reader import LakeReader
from holdfast.lakes.state import LakeState
from holdfast.workspace import Workspace
from lake_tables import chain, equal, one_column, renamed, write_json_lines
from reference import lake as oracle
from reference.lake import Table
from trust import kit
from trust.damages import empty, flip, remove, truncate

Question = Callable[[LakeReader], Any]
Act = Callable[[Workspace], Any]

FIRST = [
    *renamed(chain(4).tables, lambda i, _: f"chain/{i}.csv"),
    *renamed(equal(3).tables, lambda i, _: f"equal/{i}.csv"),
    Table("odd.csv", ("n", "m"), (("1", "2", None), ("ann", "bob", "v0"))),
]
ADDED = [one_column("more.csv", ["ann", "bob"]), one_column("chain/2.csv", ["v0", "v1"])]
GONE = "equal/0.csv"
NEXT = [one_column("next.csv", ["v0", "v1", "v2"])]
HELD = [*(t for t in FIRST if t.name not in ("chain/2.csv", GONE)), *ADDED]  # after the history
VERSION = 3


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """No power is cut here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def source(folder: Path, tables: list[Table]) -> Path:
    return write_json_lines(tables, folder / f"source-{len(list(folder.iterdir()))}.jsonl")


def add(ws: Workspace, tables: list[Table] = NEXT) -> Any:
    return ws.link(source(ws.root.parent, tables), add=True, json_name="name")


def build(root: Path) -> None:
    """Three steps: several parts, tables that went, several files of inclusions."""
    with holdfast.open(root, engine="inline") as ws:
        ws.link(source(root.parent, FIRST), json_name="name")
        ws.link(source(root.parent, ADDED), replace=True, json_name="name")
        ws.unlink(GONE)
        assert ws.version == VERSION


def state_of(root: Path) -> LakeState:
    with holdfast.open(root, engine="inline", create=False) as ws:
        state = ws.lakes.state()
    assert state is not None
    return state


def inds_of(ws: Workspace) -> dict[oracle.Pair, int]:
    """The inclusions as the oracle tells them: by tables and positions."""
    reader = ws.lake()
    assert reader is not None
    found: dict[oracle.Pair, int] = {}
    first = reader.catalogue.columns_of
    for ind in reader.each_ind():
        a, b = ((s.table, s.id - first(s.table_id).start) for s in (ind.dependent, ind.referenced))
        found[a, b] = ind.shared
    return found


def check(root: Path, tables: list[Table], version: int) -> None:
    """A fresh look finds the lake of these tables, whole."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        assert ws.version == version
        assert inds_of(ws) == oracle.shared(tables)
        reader = ws.lake()
        assert reader is not None
        assert sorted(n for b in reader.nodes() for n in b["name"].to_pylist()) == sorted(
            t.name for t in tables
        )
        assert ws.verify() > 10
    assert not [path for path in (root / "staging").glob("*") if path.is_dir()]


def _told(found: Any) -> Any:
    return json.loads(json.dumps(found.to_dict()))


QUESTIONS: dict[str, Question] = {
    "summary": lambda lake: _told(lake.summary()),
    "inds": lambda lake: sorted(lake.ind_names()),
    "measures": lambda lake: [_told(ind) for ind in lake.each_ind()],
    "inds of a table": lambda lake: sorted(lake.ind_names("chain/1.csv")),
    "joins": lambda lake: [_told(ind) for ind in lake.joins("chain/1.csv")],
    "table": lambda lake: _told(lake.table(0)),
    "ind": lambda lake: _told(lake.ind(0, 1)),
    "resolve": lambda lake: lake.resolve("odd.csv.m"),
    "search": lambda lake: _told(lake.search("v0")),
    "components": lambda lake: _told(lake.components()),
    "component": lambda lake: _told(lake.component(0)),
    "nodes": lambda lake: [b.to_pylist() for b in lake.nodes()],
    "edges": lambda lake: [b.to_pylist() for b in lake.edges()],
}
# Which question must notice, for each kind of file.
NEEDED = {
    "inds": ["inds", "joins"],
    "tables": ["resolve", "nodes", "table"],
    "columns": ["inds", "table"],
    "components": ["nodes"],
    "weights": ["components"],
    "links": ["edges", "component"],
    "dropped": ["inds", "nodes"],
    "offsets": ["measures"],
    "rarity": ["joins"],
}


def ask(root: Path) -> dict[str, Any]:
    """The answer to every question, or the error; what is no HoldfastError comes through."""
    answers: dict[str, Any] = {}
    with holdfast.open(root, engine="inline", create=False) as ws:
        for name, question in QUESTIONS.items():
            reader = ws.lake()
            assert reader is not None
            try:
                answers[name] = question(reader)
            except HoldfastError as error:
                answers[name] = error
        try:
            answers["verify"] = ws.verify()
        except WorkspaceError as error:
            answers["verify"] = error
    return answers


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damage") / "w"
    build(root)
    return root


@pytest.fixture(scope="module")
def truth(base: Path) -> dict[str, Any]:
    answers = ask(base)
    assert not [answer for answer in answers.values() if isinstance(answer, Exception)]
    return answers


@pytest.fixture
def root(base: Path, tmp_path: Path) -> Path:
    shutil.copytree(base, tmp_path / "w")
    return tmp_path / "w"


def files_by_kind(root: Path) -> dict[str, list[str]]:
    """All files that the lake needs, by what their names begin with."""
    found: dict[str, list[str]] = {}
    for ref in named_files(state_of(root).to_dict()):
        found.setdefault(ref.name.split("/")[1].split("-")[0], []).append(ref.name)
    return found


def test_what_is_asked_is_right(base: Path, truth: dict[str, Any]) -> None:
    check(base, HELD, VERSION)
    assert truth["summary"]["n_inds"] == len(truth["inds"]) == len(oracle.shared(HELD)) > 10
    assert set(NEEDED) <= set(files_by_kind(base))


@pytest.mark.parametrize("damage", [remove, truncate, empty], ids=lambda damage: damage.__name__)
def test_files_that_are_cut_or_gone(
    base: Path, truth: dict[str, Any], root: Path, damage: Callable[[Path, Path], None]
) -> None:
    """A file of each kind is cut; those that questions need are also removed and emptied."""
    for kind, names in files_by_kind(base).items():
        for name in names[: damage is truncate or kind in NEEDED]:
            path = root / name
            content = path.read_bytes()
            damage(path, path)
            answers = ask(root)
            for question, answer in answers.items():
                if isinstance(answer, Exception):
                    assert isinstance(answer, DamagedFileError), (name, question)
                    assert name in str(answer)
                    assert len(str(answer)) < 1_000
                else:
                    assert answer == truth[question], f"{name}: {question} has a wrong answer"
            for question in (*NEEDED.get(kind, ()), "verify"):
                if len(names) == 1 or question == "verify":
                    assert isinstance(answers[question], DamagedFileError), f"{name}: {question}"
            path.write_bytes(content)


def test_any_altered_byte_is_found_by_verify(base: Path, root: Path) -> None:
    """A file of the right length is taken as it is; but what is asked ends with an answer or an error."""
    for names in files_by_kind(base).values():
        path = root / names[-1]
        content = path.read_bytes()
        flip(path, path)
        answers = ask(root)
        assert isinstance(answers["verify"], DamagedFileError), path
        assert names[-1] in str(answers["verify"])
        path.write_bytes(content)


STEPS: dict[str, Act] = {
    "add": add,
    "replace": lambda ws: ws.link(source(ws.root.parent, ADDED), replace=True, json_name="name"),
    "drop": lambda ws: ws.unlink("odd.csv"),
}
AFTER: dict[str, list[Table]] = {
    "add": [*HELD, *NEXT],
    "replace": HELD,
    "drop": [t for t in HELD if t.name != "odd.csv"],
}


@pytest.mark.parametrize("step", ["add", "drop"])
def test_steps_on_a_damaged_lake(base: Path, root: Path, tmp_path: Path, step: str) -> None:
    """Nothing is applied, and the file is named; or the file is not needed, and all is as it should be."""
    stopped = set()
    for number, (kind, names) in enumerate(files_by_kind(base).items()):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(root, copy)
        (copy / names[0]).unlink()
        with holdfast.open(copy, engine="inline") as ws:
            told = complaint(lambda ws=ws: STEPS[step](ws))
            if told is not None:
                assert names[0] in told
                assert ws.version == VERSION
                assert not [path for path in (copy / "staging").glob("*") if path.is_dir()]
                stopped.add(kind)
                continue
            assert ws.version == VERSION + 1
            found: dict[oracle.Pair, int] = {}
            told = complaint(lambda ws=ws, found=found: found.update(inds_of(ws)))
            assert names[0] in told if told is not None else found == oracle.shared(AFTER[step])
    assert {"tables", "dropped"} <= stopped


def complaint(act: Callable[[], Any]) -> str | None:
    """What is said of a damaged file, if anything is."""
    try:
        act()
    except DamagedFileError as error:
        return str(error)
    return None


@pytest.mark.parametrize("kind", ["tables", "inds", "columns"])
def test_steps_on_files_that_are_no_parquet(base: Path, root: Path, kind: str) -> None:
    """Of the right length, but something else is in them."""
    for name in files_by_kind(base)[kind]:
        path = root / name
        path.write_bytes(b"?" * path.stat().st_size)
    with holdfast.open(root, engine="inline") as ws:
        for step in ("drop", "add"):
            if kind == "tables" or (kind, step) == ("inds", "drop"):
                with pytest.raises(DamagedFileError, match=f"lake/{kind}-"):
                    STEPS[step](ws)
                assert ws.version == VERSION
        reader = ws.lake()
        assert reader is not None
        with pytest.raises(DamagedFileError, match=f"lake/{kind}-"):
            list(reader.ind_names())


# -- crashes -----------------------------------------------------------------------------------------------


class StoppedError(Exception):
    """Not one of ours."""


def stop(*_: Any, **__: Any) -> Any:
    raise StoppedError


@pytest.mark.parametrize("at", ["plan_lake", "put_together", "match_columns", "connect", "commit"])
@pytest.mark.parametrize("step", ["add", "replace"])
def test_a_step_that_is_stopped_leaves_the_lake(
    base: Path, root: Path, monkeypatch: pytest.MonkeyPatch, step: str, at: str
) -> None:
    before = kit.files_of(root)
    with holdfast.open(root, engine="inline") as ws:
        with monkeypatch.context() as patch:
            if at == "commit":
                patch.setattr(ws.ledger, "append", stop)
            else:
                patch.setattr(intake if at == "plan_lake" else discovery, at, stop)
            with pytest.raises((StoppedError, EngineError)):
                STEPS[step](ws)
        check(root, HELD, VERSION)
        ws.tidy(grace_s=0)
        needed = {ref.name for ref in named_files(state_of(root).to_dict())}
        assert {name for name in kit.files_of(root) if name.startswith("lake/")} == needed <= before
        STEPS[step](ws)
    check(root, AFTER[step], VERSION + 1)


def test_a_first_link_that_is_stopped_leaves_no_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "w"
    with holdfast.open(root, engine="inline") as ws:
        with monkeypatch.context() as patch:
            patch.setattr(discovery, "connect", stop)
            with pytest.raises(StoppedError):
                ws.link(source(tmp_path, FIRST), json_name="name")
        assert (ws.version, ws.lake()) == (0, None)
        assert ws.tidy(grace_s=0) > 0
        assert not list((root / "lake").iterdir())
        ws.link(source(tmp_path, FIRST), json_name="name")
    check(root, FIRST, 1)


def test_a_process_that_is_killed_before_its_commit(base: Path, root: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys, holdfast\n"
        "ws = holdfast.open(sys.argv[1], engine='inline')\n"
        "ws.ledger.append = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "ws.link(sys.argv[2], add=True, json_name='name')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(root), str(source(tmp_path, NEXT))], timeout=600, check=False
    )
    assert run.returncode == -signal.SIGKILL
    with holdfast.open(root, engine="inline") as ws:
        assert inds_of(ws) == oracle.shared(HELD)
        left = kit.files_of(root) - kit.files_of(base)
        assert len(left) > 10
        assert ws.tidy(grace_s=0) >= len(left)
        add(ws)
    check(root, [*HELD, *NEXT], VERSION + 1)


@pytest.mark.parametrize("n", [1, 5, 20, 35])
def test_a_disk_that_is_full(root: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """The n-th file cannot be written."""
    left = n

    def full(_: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with holdfast.open(root, engine="inline") as ws:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(WorkspaceError, match="No space left on device"):
                add(ws)
        assert ws.version == VERSION
    check(root, HELD, VERSION)


# -- litter ------------------------------------------------------------------------------------------------


def test_the_litter_of_older_lakes_goes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the newest lake needs is all that stays; tables that are tracked beside it keep theirs."""
    monkeypatch.setattr(discovery, "MERGE_AT", 2)
    with holdfast.open(root, engine="inline") as ws:
        ws.track("people", kit.table_of(kit.START))
        add(ws)
        old = {name for name in kit.files_of(root) if name.startswith("lake/")}
        ws.unlink("next.csv")
        ws.tidy()  # too young to go
        assert old <= kit.files_of(root)
        assert ws.tidy(grace_s=0) > 5
        needed = {ref.name for ref in named_files(state_of(root).to_dict())}
        assert {name for name in kit.files_of(root) if name.startswith("lake/")} == needed
        assert ws.tidy(grace_s=0) == 0
        assert kit.rows_of(ws, "people") == sorted(kit.START, key=repr)
        # A lake that is linked anew needs nothing of the one before.
        ws.link(source(root.parent, NEXT), json_name="name", anew=True)
        ws.tidy(grace_s=0)
        assert not needed & kit.files_of(root)
    check(root, NEXT, VERSION + 4)


def test_files_of_others_stay(root: Path) -> None:
    mine = [root / "lake" / name for name in ("notes.txt", "inds-1.parquet", "inds-0123456789ab.parquet.bak")]
    for path in mine:
        path.write_text("mine")
    with holdfast.open(root, engine="inline") as ws:
        ws.tidy(grace_s=0)
    assert all(path.exists() for path in mine)


# -- two writers -------------------------------------------------------------------------------------------


@pytest.fixture
def two(root: Path) -> Iterator[tuple[Workspace, Workspace]]:
    with holdfast.open(root, engine="inline") as one, holdfast.open(root, engine="inline") as other:
        yield one, other


def overtaken(ws: Workspace, by: Callable[[], Any]) -> None:
    """Just before the next commit of a workspace, another writer is faster."""
    append = ws.ledger.append

    def late(*args: Any) -> int:
        ws.ledger.append = append  # type: ignore[method-assign]
        by()
        return append(*args)

    ws.ledger.append = late  # type: ignore[method-assign]


@pytest.mark.parametrize("that", list(STEPS))
@pytest.mark.parametrize("this", list(STEPS))
def test_of_two_steps_one_is_a_conflict(two: tuple[Workspace, Workspace], this: str, that: str) -> None:
    one, other = two
    overtaken(other, lambda: STEPS[that](one))
    with pytest.raises(
        ConflictError, match=r"lake .* was changed meanwhile. Nothing was applied. Run it again"
    ):
        STEPS[this](other)
    check(one.root, AFTER[that], VERSION + 1)


def test_after_a_conflict_it_is_run_again(two: tuple[Workspace, Workspace]) -> None:
    one, other = two
    overtaken(other, lambda: one.unlink("odd.csv"))
    with pytest.raises(ConflictError):
        add(other)
    assert add(other).version == VERSION + 2
    check(one.root, [t for t in (*HELD, *NEXT) if t.name != "odd.csv"], VERSION + 2)


def test_two_first_links(tmp_path: Path) -> None:
    root = tmp_path / "w"
    with holdfast.open(root, engine="inline") as one, holdfast.open(root, engine="inline") as other:
        overtaken(other, lambda: one.link(source(tmp_path, FIRST), json_name="name"))
        with pytest.raises(ConflictError, match="Nothing was applied"):
            other.link(source(tmp_path, NEXT), json_name="name")
    check(root, FIRST, 1)


def test_a_tracked_table_is_no_matter_to_the_lake(two: tuple[Workspace, Workspace]) -> None:
    """Writers of tables and of the lake do not disturb each other."""
    one, other = two
    overtaken(other, lambda: one.track("people", kit.table_of(kit.START)))
    assert add(other).version == VERSION + 2
    overtaken(one, lambda: other.unlink("next.csv"))
    assert kit.apply(one, kit.HISTORY[0]).version == VERSION + 4
    assert kit.rows_of(one, "people") == kit.after(kit.START, kit.HISTORY[0])
    check(one.root, HELD, VERSION + 4)


def test_a_reader_keeps_its_lake(two: tuple[Workspace, Workspace]) -> None:
    """What is read is of one version, whoever writes meanwhile."""
    one, other = two
    reader = one.lake()
    assert reader is not None
    inds = reader.ind_names()
    first = next(inds)
    other.unlink(first[0][0])
    add(other)
    assert sorted([first, *inds]) == sorted(reader.ind_names())
    assert (reader.version, reader.summary().n_inds) == (VERSION, len(oracle.shared(HELD)))
