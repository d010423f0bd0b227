"""Damage to denial constraints, row rules and pinned rules: each file that they lie in.

As in `test_damage_fds.py`: each question has the answer that it had before, or raises a WorkspaceError that
names the file; one that needs the file does raise, and `verify` finds it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.evidence import evidence_files
from holdfast.denial import dc_witnessed
from holdfast.denial.constraints import dc_ref, row_file
from holdfast.errors import DamagedFileError, WorkspaceError
from holdfast.workspace import Workspace
from trust import kit
from trust.damages import DAMAGES

COUNTED, WITNESSED = TABLES = ("counted", "witnessed")
MAX_ERROR = 0.1
RULE = "not(t.{a} < s.{a} and t.{b} > s.{b})"
Question = Callable[[Workspace], Any]
Damage = Callable[[Path, Path], None]


def _dcs(kind: str, table: str, at: int | None = None, max_error: float = 0.0) -> Question:
    return lambda ws: [d.to_dict() for d in ws.dependencies(kind, table, at, max_error=max_error)]


def _check(table: str) -> Question:
    inserts, deletes = (kit.table_of(rows) for rows in kit.BATCH)

    def ask(ws: Workspace) -> dict[str, Any]:
        told: dict[str, Any] = ws.check(table, inserts=inserts, deletes=deletes).to_dict()
        del told["elapsed_s"]
        return told

    return ask


QUESTIONS: dict[str, Question] = {
    "log": lambda ws: [entry.to_dict() for entry in ws.log()],
    "pins": lambda ws: [p.to_dict() for p in ws.pins()],
    "dcs, counted": _dcs("dc", COUNTED),
    "dcs, witnessed": _dcs("dc", WITNESSED),
    "dcs, counted, at 3": _dcs("dc", COUNTED, 3),
    "nearly": _dcs("dc", COUNTED, None, MAX_ERROR),
    "nearly, any error": _dcs("dc", COUNTED, None, 0.3),
    "row rules": _dcs("row", COUNTED),
    "check, counted": _check(COUNTED),
    "check, witnessed": _check(WITNESSED),
    "verify": Workspace.verify,
}
# What each kind of file is needed for.
NEEDED = {
    "counted cover": ["dcs, counted", "check, counted"],
    "witnessed cover": ["dcs, witnessed", "check, witnessed"],
    "counted evidence": ["nearly, any error", "check, counted"],
    "witnessed evidence": ["check, witnessed"],
    "counted change": ["nearly, any error", "check, counted"],
    "witnessed change": ["check, witnessed"],
    "nearly": ["nearly", "check, counted"],
    "row rules": ["row rules", "check, counted"],
    "order index": [],
}


def ask(root: Path) -> dict[str, Any]:
    """The answer to every question, or the error; anything but a WorkspaceError comes through."""
    answers: dict[str, Any] = {}
    for name, question in QUESTIONS.items():
        try:
            with holdfast.open(root, engine="inline", create=False) as ws:
                answers[name] = question(ws)
        except WorkspaceError as error:
            answers[name] = error
    return answers


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damage") / "w"
    with pytest.MonkeyPatch.context() as patch, holdfast.open(root, engine="inline") as ws:
        patch.setattr(dc_witnessed, "SCANNED_ROWS", 0)
        patch.setattr(evidence_files, "DELTAS_FROM", 0)
        patch.setattr(evidence_files, "DELTA_SHARE", 1e9)
        patch.setattr(evidence_files, "DELTAS_SHARE", 1e9)
        for table in TABLES:
            error = MAX_ERROR if table == COUNTED else None
            ws.track(table, kit.table_of(kit.START), kinds=("dc",), evidence=table, max_error=error)
        numbers = [c.name for c in ws.schema(COUNTED).columns if c.type.family == "int"]
        ws.pin_rule(RULE.format(a=numbers[0], b=numbers[-1]), table=WITNESSED)
        for inserts, deletes in kit.HISTORY:
            part = {"inserts": kit.table_of(inserts), "deletes": kit.table_of(deletes)}
            ws.apply_all(dict.fromkeys(TABLES, part))
    return root


@pytest.fixture(scope="module")
def truth(base: Path) -> dict[str, Any]:
    answers = ask(base)
    assert not [answer for answer in answers.values() if isinstance(answer, Exception)]
    return answers


def _live(root: Path, kind: str) -> str:
    """A file of a kind that the newest state names."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        states = [ws.writer.tables.state(table) for table in TABLES]
    counted, witnessed = (dc_ref(state) for state in states)
    assert counted is not None
    assert witnessed is not None
    orders = [file for segment in states[1].segments for _, file in segment.orders]
    ref = {
        "counted cover": counted.cover,
        "witnessed cover": witnessed.cover,
        "counted evidence": counted.evidence,
        "witnessed evidence": witnessed.evidence,
        "counted change": counted.deltas[0],
        "witnessed change": witnessed.deltas[0],
        "nearly": counted.approximate,
        "row rules": row_file(states[0]),
        "order index": orders[0] if orders else None,
    }[kind]
    assert ref is not None
    return ref.name


def _other(root: Path, name: str) -> Path:
    """A file with another content, of the same kind if there is one."""
    path = root / name
    content = path.read_bytes()
    alike = sorted(path.parent.glob(f"{path.name.split('-')[0]}-*{path.suffix}"))
    others = [p for p in (*alike, *sorted(path.parent.iterdir())) if p.read_bytes() != content]
    return others[0]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", list(NEEDED))
def test_files_of_denial_constraints(
    base: Path, truth: dict[str, Any], tmp_path: Path, kind: str, damage: Damage
) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(base, kind)
    damage(root / name, _other(root, name))
    answers = ask(root)
    for question, answer in answers.items():
        if isinstance(answer, WorkspaceError):
            assert name in str(answer), f"{question}: {answer}"
        else:
            assert answer == truth[question], f"{question}: a wrong answer"
    for question in (*NEEDED[kind], "verify"):
        assert isinstance(answers[question], DamagedFileError), f"{question} did not notice"
    assert answers["log"] == truth["log"]
