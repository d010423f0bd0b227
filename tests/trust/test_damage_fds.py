"""Damage to functional dependencies: their covers, their evidence of both kinds, the approximate ones.

As in `test_damage.py`: each question has the answer that it had before, or raises a WorkspaceError that
names the file; one that needs the file does raise, and `verify` finds it. A process reads a file once, so
every question is asked of a workspace that has not looked at it.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.store.ledger_rows import CommitRow
from holdfast.core.words.dependency import Fd
from holdfast.errors import DamagedFileError, WorkspaceError
from holdfast.workspace import Workspace
from trust import kit, twins
from trust.damages import DAMAGES, flip, flip_at
from trust.twins import COUNTED, MAX_ERROR, WITNESSED

Question = Callable[[Workspace], Any]
Damage = Callable[[Path, Path], None]


def _told(change: Any) -> dict[str, Any]:
    told: dict[str, Any] = change.to_dict()
    del told["elapsed_s"]
    return told


def _check(table: str) -> Question:
    inserts, deletes = (kit.table_of(rows) for rows in kit.BATCH)
    return lambda ws: _told(ws.check(table, inserts=inserts, deletes=deletes))


def _fds(table: str, at: int | None = None, max_error: float = 0.0) -> Question:
    return lambda ws: [d.to_dict() for d in ws.dependencies("fd", table, at, max_error=max_error)]


QUESTIONS: dict[str, Question] = {
    "tables": lambda ws: ws.tables(),
    "version": lambda ws: ws.version,
    "keys": lambda ws: kit.keys_of(ws, COUNTED),
    "rows": lambda ws: {t: kit.rows_of(ws, t) for t in ws.tables()},
    "log": lambda ws: [entry.to_dict() for entry in ws.log()],
    "fds, counted": _fds(COUNTED),
    "fds, witnessed": _fds(WITNESSED),
    "fds, counted, at 3": _fds(COUNTED, 3),
    "fds, witnessed, at 3": _fds(WITNESSED, 3),
    "nearly": _fds(COUNTED, None, MAX_ERROR),
    "nearly, at 3": _fds(COUNTED, 3, MAX_ERROR),
    "nearly, any error": _fds(COUNTED, None, 0.3),
    "agree sets": lambda ws: ws.fds.agree_sets(COUNTED),
    "error, counted": lambda ws: ws.fds.error_of(COUNTED, ["city"], "grade"),
    "error, witnessed": lambda ws: ws.fds.error_of(WITNESSED, ["city"], "grade"),
    "explain what holds": lambda ws: ws.fds.explain(WITNESSED, ["id"], "name").to_dict(),
    "explain what does not": lambda ws: ws.fds.explain(COUNTED, ["city"], "grade").to_dict(),
    "histories": lambda ws: [h.to_dict() for h in ws.fds.log()],
    "ranking": lambda ws: ws.fds.rank(WITNESSED).to_dict(),
    "normal form": lambda ws: ws.fds.normalise(COUNTED).to_dict(),
    "check, counted": _check(COUNTED),
    "check, witnessed": _check(WITNESSED),
}
# Which questions must notice, for each kind of file of the newest state.
NEEDED = {
    "counted cover": ["fds, counted", "check, counted", "histories", "normal form"],
    "witnessed cover": ["fds, witnessed", "check, witnessed", "explain what holds", "ranking"],
    "counted evidence": ["agree sets", "error, counted", "nearly, any error", "check, counted"],
    "witnessed evidence": ["check, witnessed"],
    "approximate": ["nearly", "check, counted"],
}


def ask(root: Path) -> dict[str, Any]:
    """The answer to every question, or the error; anything but a WorkspaceError comes through."""
    answers: dict[str, Any] = {}
    for name, question in (*QUESTIONS.items(), ("verify", Workspace.verify)):
        try:
            with holdfast.open(root, engine="inline", create=False) as ws:
                answers[name] = question(ws)
        except WorkspaceError as error:
            answers[name] = error
    return answers


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damage") / "w"
    twins.build(root)
    return root


@pytest.fixture(scope="module")
def truth(base: Path) -> dict[str, Any]:
    answers = ask(base)
    assert not [answer for answer in answers.values() if isinstance(answer, Exception)]
    return answers


def _live(root: Path, kind: str, at: int | None = None) -> str:
    """A file of a kind that a state names, the newest one unless said otherwise."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        counted, witnessed = (ws.fds.ref(table, at) for table in (COUNTED, WITNESSED))
    assert counted is not None
    assert witnessed is not None
    refs = {
        "counted cover": counted.cover,
        "witnessed cover": witnessed.cover,
        "counted evidence": counted.evidence,
        "witnessed evidence": witnessed.evidence,
        "approximate": counted.approximate,
    }
    ref = refs[kind]
    assert ref is not None
    return ref.name


def _other(root: Path, name: str) -> Path:
    """Another file of the kind; of the same length, if there is one: only the checksum tells them apart."""
    path = root / name
    alike = sorted(path.parent.glob(f"{path.name.split('-')[0]}-*{path.suffix}"))
    content = path.read_bytes()
    others = [p for p in alike if p.read_bytes() != content]
    assert others
    return min(others, key=lambda p: p.stat().st_size != len(content))


def _judge(answers: dict[str, Any], truth: dict[str, Any], name: str, needed: list[str]) -> None:
    for question, answer in answers.items():
        if isinstance(answer, WorkspaceError):
            assert name in str(answer), f"{question}: {answer}"
            assert len(str(answer)) < 1_000
        else:
            assert answer == truth[question], f"{question}: a wrong answer"
    for question in (*needed, "verify"):
        assert isinstance(answers[question], DamagedFileError), f"{question} did not notice"


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", list(NEEDED))
def test_files_of_functional_dependencies(
    base: Path, truth: dict[str, Any], tmp_path: Path, kind: str, damage: Damage
) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(base, kind)
    damage(root / name, _other(root, name))
    answers = ask(root)
    _judge(answers, truth, name, NEEDED[kind])
    # What is told of keys and rows is as good as before.
    assert [answers[q] for q in ("keys", "rows", "log")] == [truth[q] for q in ("keys", "rows", "log")]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize(
    ("kind", "question"),
    [
        ("counted cover", "fds, counted, at 3"),
        ("witnessed cover", "fds, witnessed, at 3"),
        ("approximate", "nearly, at 3"),
    ],
)
def test_covers_of_old_versions(
    base: Path, truth: dict[str, Any], tmp_path: Path, kind: str, question: str, damage: Damage
) -> None:
    """They are not live, but time travel reads them; `verify` looks at all of them, too."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(base, kind, at=3)
    assert name != _live(base, kind)
    damage(root / name, root / _live(base, kind))
    _judge(ask(root), truth, name, [question])


def test_old_evidence_is_not_needed(base: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    """Tidying leaves the covers of all versions, and the evidence of the newest."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    old = {_live(base, kind, at=3) for kind in ("counted evidence", "witnessed evidence")}
    assert old <= kit.files_of(root)
    with holdfast.open(root, engine="inline") as ws:
        ws.tidy(grace_s=0)
        assert not old & kit.files_of(root)
        tables = {name for name in kit.files_of(root) if name.startswith("tables/")}
        assert tables == kit.needed_files(ws)
    answers = ask(root)
    assert answers == {**truth, "verify": answers["verify"]}


@pytest.mark.parametrize("kind", list(NEEDED))
def test_a_damaged_batch_is_not_applied(base: Path, tmp_path: Path, kind: str) -> None:
    """An apply that meets damage leaves both tables at the version they had."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(root, kind)
    content = (root / name).read_bytes()
    before = kit.snapshot(base)
    flip(root / name, root)
    with holdfast.open(root, engine="inline") as ws:
        with pytest.raises(DamagedFileError, match=Path(name).name):
            twins.apply(ws, kit.BATCH)
        assert ws.version == before["version"]
        assert not list((root / "staging").glob("*/"))
        # Restored from a backup, the same object goes on.
        (root / name).write_bytes(content)
        twins.apply(ws, kit.BATCH)
    rows = kit.after(kit.START, *kit.HISTORY, kit.BATCH)
    found = kit.snapshot(root)
    assert all(found["tables"][table]["rows"] == [list(row) for row in rows] for table in twins.TABLES)


def test_damage_under_an_open_workspace(base: Path, tmp_path: Path) -> None:
    """What was read already stays right, or is known to be damaged; `verify` reads again."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    names = [_live(root, kind) for kind in NEEDED]
    with holdfast.open(root, engine="inline") as ws:
        twins.apply(ws, kit.BATCH)
        told = [d.to_dict() for d in ws.dependencies()]
        name = _live(root, "counted cover")
        assert name not in names
        flip(root / name, root)
        with contextlib.suppress(DamagedFileError):
            assert [d.to_dict() for d in ws.dependencies()] == told
        with pytest.raises(DamagedFileError, match=Path(name).name):
            ws.verify()


def test_evidence_that_does_not_fit_its_rows_is_damage(base: Path, tmp_path: Path) -> None:
    """A whole file of another time: an agree set would have less than no pairs. Nothing is applied."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    with holdfast.open(root, engine="inline") as ws:
        now, first = ws.fds.ref(COUNTED), ws.fds.ref(COUNTED, 1)
        assert now is not None
        assert first is not None
        mixed = replace(now, evidence=first.evidence)
        wrong = ws.writer.tables.state(COUNTED).keeping(fds=mixed.to_dict())
        ws.ledger.append(twins.BUILT, [CommitRow(COUNTED, "apply", wrong.to_dict())], [])
    rows = kit.after(kit.START, *kit.HISTORY)
    with holdfast.open(root, engine="inline") as ws:
        with pytest.raises(DamagedFileError, match="Nothing was applied"):
            ws.apply(COUNTED, deletes=kit.table_of([r for r in rows if r[0] in (9, 10)]))
        assert ws.version == twins.BUILT + 1
        assert kit.rows_of(ws, COUNTED) == rows
        assert {d.lhs for d in ws.dependencies("fd", WITNESSED) if isinstance(d, Fd)}


def _flip_bytes(base: Path, truth: dict[str, Any], folder: Path, seed: int, n: int) -> None:
    """Any bit of any file of functional dependencies: never a wrong answer, never a crash."""
    rng = random.Random(seed)
    found = [p for kind in ("fds", "agreement", "approximate") for p in base.glob(f"tables/*/{kind}-*")]
    names = sorted(path.relative_to(base) for path in found)
    for i in range(n):
        root = folder / str(i)
        shutil.copytree(base, root)
        file = root / rng.choice(names)
        at, bits = rng.randrange(file.stat().st_size), 1 << rng.randrange(8)
        flip_at(file, at, bits)
        for question, answer in ask(root).items():
            if not isinstance(answer, WorkspaceError):
                assert answer == truth[question], f"byte {at} ^ {bits} of {file.name}: {question} is wrong"
        shutil.rmtree(root)


def test_any_byte(base: Path, truth: dict[str, Any], tmp_path: Path) -> None:
    _flip_bytes(base, truth, tmp_path, 0, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 105))
def test_many_bytes(base: Path, truth: dict[str, Any], tmp_path: Path, seed: int) -> None:
    _flip_bytes(base, truth, tmp_path, seed, 60)
