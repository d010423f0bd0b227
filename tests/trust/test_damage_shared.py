"""Damage to what tables share: runs, clusters, pair counts, composite inclusions.

As in `test_damage.py`: each question has the answer that it had before, or raises a WorkspaceError that
names the file; one that needs the file does raise, and `verify` finds it. A process reads a file once, so
damage comes to a copy that this process has not looked at.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.store import litter
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.core.words.dependency import Side
from holdfast.errors import DamagedFileError, WorkspaceError
from holdfast.inclusions.generator import GeneratorState
from holdfast.workspace import Workspace
from trust import kit, shop
from trust.damages import DAMAGES, flip, flip_at

Question = Callable[[Workspace], Any]
Damage = Callable[[Path, Path], None]


def covers_of(state: GeneratorState) -> set[str]:
    """The files that past inclusions are read from."""
    return {ref.name for ref in litter.named_files(state.to_dict()) if litter.is_cover(ref)}


def _told(change: Any) -> dict[str, Any]:
    told: dict[str, Any] = change.to_dict()
    del told["elapsed_s"]
    return told


def _explained(ws: Workspace, left: str, right: str) -> dict[str, Any]:
    return ws.inds.explain(*(Side(t, (c,)) for t, c in (side.split(".") for side in (left, right)))).to_dict()


def _batch(batch: shop.Batch) -> dict[str, dict[str, Any]]:
    return {
        table: {"inserts": shop.table_of(table, inserts), "deletes": shop.table_of(table, deletes)}
        for table, (inserts, deletes) in batch.items()
    }


QUESTIONS: dict[str, Question] = {
    "tables": lambda ws: ws.tables(),
    "version": lambda ws: ws.version,
    "keys": lambda ws: {t: kit.keys_of(ws, t) for t in ("orders", "parts")},
    "inclusions": lambda ws: [d.to_dict() for d in ws.dependencies("ind")],
    "inclusions of a table": lambda ws: [d.to_dict() for d in ws.dependencies("ind", "visits")],
    "inclusions at 3": lambda ws: kit.inds_of(ws, at=3),
    "almost": lambda ws: [d.to_dict() for d in ws.dependencies("ind", max_error=1.0)],
    "clusters": lambda ws: ws.inds.clusters(),
    "links": lambda ws: ws.inds.links(max_error=0.5).to_dict(),
    "explain what holds": lambda ws: _explained(ws, "orders.part", "parts.part"),
    "explain what does not": lambda ws: _explained(ws, "parts.supplier", "visits.city"),
    "pins": lambda ws: [pin.to_dict() for pin in ws.pins()],
    "log": lambda ws: [entry.to_dict() for entry in ws.log()],
    "rows": lambda ws: {t: kit.rows_of(ws, t) for t in ws.tables()},
    "frequencies": kit.frequencies_of,
    "check one table": lambda ws: _told(ws.check("orders", **_batch(shop.ONE)["orders"])),
    "check two tables": lambda ws: _told(ws.check_all(_batch(shop.BOTH))),
}
# Which questions must notice, for each kind of file of the newest state.
NEEDED = {
    "run": ["check one table", "check two tables", "explain what does not", "frequencies"],
    "append-only run": ["check one table", "check two tables", "explain what does not", "frequencies"],
    "clusters": ["clusters"],
    "change of clusters": ["clusters"],
    "pairs": ["inclusions", "inclusions of a table", "almost", "check one table", "explain what holds"],
    "change of pairs": ["inclusions", "inclusions of a table", "almost", "check one table"],
    "composites": ["inclusions", "check two tables"],
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
    shop.build(root)
    return root


@pytest.fixture(scope="module")
def truth(base: Path) -> dict[str, Any]:
    answers = ask(base)
    assert not [answer for answer in answers.values() if isinstance(answer, Exception)]
    return answers


def _live(root: Path, kind: str) -> str:
    """A file of a kind that the newest state names."""
    with holdfast.open(root, engine="inline", create=False) as ws:
        state = ws.inds.generator()
    assert state is not None
    assert len(state.pairs) > 1
    assert len(state.clusters) > 1
    refs = {
        "run": next(r for r in state.runs if not r.append_only).files()[0],
        "append-only run": next(r for r in state.runs if r.append_only).files()[0],
        "clusters": state.clusters[0].file,
        "change of clusters": state.clusters[-1].file,
        "pairs": state.pairs[0].file,
        "change of pairs": state.pairs[-1].file,
        "composites": state.composites,
    }
    ref = refs[kind]
    assert ref is not None
    return ref.name


def _other(root: Path, name: str) -> Path:
    """Another file of the kind; of the same length, if there is one: only the checksum tells them apart."""
    path = root / name
    alike = sorted((root / "values").glob(f"{path.name.split('-')[0]}-*{path.suffix}"))
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
def test_files_that_tables_share(
    base: Path, truth: dict[str, Any], tmp_path: Path, kind: str, damage: Damage
) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(base, kind)
    damage(root / name, _other(root, name))
    answers = ask(root)
    _judge(answers, truth, name, NEEDED[kind])
    # What the tables have to themselves is as good as before.
    assert [answers[q] for q in ("keys", "rows", "log")] == [truth[q] for q in ("keys", "rows", "log")]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", ["pairs", "composites"])
def test_what_past_inclusions_are_read_from(base: Path, tmp_path: Path, kind: str, damage: Damage) -> None:
    """Not live, but time travel reads it; `verify` looks at all of it, too."""
    whole, root = tmp_path / "whole", tmp_path / "w"
    shutil.copytree(base, whole)
    with holdfast.open(whole, engine="inline") as ws:
        past = {v: kit.inds_of(ws, at=v) for v in range(1, shop.BUILT + 1)}
        ws.drop("parts")  # which sums the pairs up anew
        ws.tidy(grace_s=0)
        old, new = ws.inds.generator(shop.BUILT), ws.inds.generator()
        assert old is not None
        assert new is not None
        assert not covers_of(old) & covers_of(new)
        newest = kit.inds_of(ws)
        ref = old.pairs[0].file if kind == "pairs" else old.composites
        assert ref is not None
    shutil.copytree(whole, root)
    damage(root / ref.name, _other(root, ref.name))
    with holdfast.open(root, engine="inline") as ws:
        assert kit.inds_of(ws) == newest
        for version, expected in past.items():
            told = ws.inds.generator(version)
            assert told is not None
            if ref.name in covers_of(told):
                with pytest.raises(DamagedFileError, match=Path(ref.name).name):
                    ws.dependencies("ind", at=version)
            else:
                assert kit.inds_of(ws, at=version) == expected
        with pytest.raises(DamagedFileError, match=Path(ref.name).name):
            ws.verify()


def test_old_runs_and_clusters_are_not_needed(base: Path, tmp_path: Path) -> None:
    """What a merge has replaced may go; every version still says its inclusions."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    with holdfast.open(root, engine="inline") as ws:
        past = {v: kit.inds_of(ws, at=v) for v in range(1, ws.version + 1)}
        old = ws.inds.generator()
        assert old is not None
        ws.merge("orders")
        ws.tidy(grace_s=0)
        new = ws.inds.generator()
        assert new is not None
        assert len(new.runs) == 2  # with and without frequencies
        gone = {f.name for r in old.runs for f in r.files()} - {f.name for r in new.runs for f in r.files()}
        assert gone
        assert not gone & kit.files_of(root)
        assert {v: kit.inds_of(ws, at=v) for v in past} == past
    shop.check_rows(kit.snapshot(root), shop.after(shop.START, *shop.HISTORY))


def test_damage_under_an_open_workspace(base: Path, tmp_path: Path) -> None:
    """What is open already stays right; `verify` reads again."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(root, "pairs")
    with holdfast.open(root, engine="inline") as ws:
        told = kit.inds_of(ws)
        flip(root / name, root)
        assert kit.inds_of(ws) == told
        with pytest.raises(DamagedFileError, match=Path(name).name):
            ws.verify()


@pytest.mark.parametrize("kind", ["run", "append-only run", "pairs", "change of pairs", "composites"])
def test_a_damaged_batch_is_not_applied(base: Path, tmp_path: Path, kind: str) -> None:
    """An apply that meets damage leaves all tables at the version they had."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(root, kind)
    content = (root / name).read_bytes()
    before = kit.snapshot(base)
    flip(root / name, root)
    with holdfast.open(root, engine="inline") as ws:
        for batch in (shop.ONE, shop.BOTH):
            with pytest.raises(DamagedFileError, match=Path(name).name):
                shop.apply(ws, batch)
            assert ws.version == before["version"]
        assert not list((root / "staging").glob("*/"))
        # Restored from a backup, the same object goes on.
        (root / name).write_bytes(content)
        assert kit.snapshot(root) == before
        shop.apply(ws, shop.BOTH)
    shop.check_rows(kit.snapshot(root), shop.after(shop.START, *shop.HISTORY, shop.BOTH))


@pytest.mark.parametrize(("kind", "operation"), [("clusters", "drop"), ("pairs", "drop"), ("run", "merge")])
def test_a_damaged_drop_or_merge_changes_nothing(
    base: Path, tmp_path: Path, kind: str, operation: str
) -> None:
    root = tmp_path / "w"
    shutil.copytree(base, root)
    name = _live(root, kind)
    flip(root / name, root)
    with holdfast.open(root, engine="inline") as ws:
        with pytest.raises(DamagedFileError, match=Path(name).name):
            getattr(ws, operation)("orders")
        assert (ws.version, ws.tables()) == (shop.BUILT, ["orders", "parts", "visits"])
        assert not list((root / "staging").glob("*/"))


def test_runs_that_do_not_fit_their_tables_are_damage(base: Path, tmp_path: Path) -> None:
    """Whole files of another time: a value would occur less than never. It says so and applies nothing."""
    root = tmp_path / "w"
    shutil.copytree(base, root)
    with holdfast.open(root, engine="inline") as ws:
        state = ws.inds.generator()
        assert state is not None
        # A run less, as if a commit had been lost half-way.
        short = replace(state, runs=state.runs[1:])
        ws.ledger.append(shop.BUILT, [CommitRow(SHARED, "apply", short.to_dict())], [])
        with pytest.raises(DamagedFileError, match=r"less than never.*Nothing was applied"):
            shop.apply(ws, shop.BOTH)
        assert ws.version == shop.BUILT + 1
        assert kit.rows_of(ws, "orders") == shop.after(shop.START, *shop.HISTORY)["orders"]


def _flip_bytes(base: Path, truth: dict[str, Any], folder: Path, seed: int, n: int) -> None:
    """Any bit of any file that the tables share, the ledger too: never a wrong answer, never a crash."""
    rng = random.Random(seed)
    names = [*(base / "values").iterdir(), *base.glob("ledger/*.parquet"), *base.glob("ledger/*/*.json")]
    names = sorted(path.relative_to(base) for path in names)
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
