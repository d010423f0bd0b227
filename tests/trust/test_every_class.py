"""What every class of dependencies is held to, over the registry: none can forget it.

- what is maintained equals what is found from scratch, after every batch and after a restart;
- a check foretells what the batch does, and does nothing; to merge segments changes nothing that holds;
- the log adds up: what held, with what appeared and without what left, is what holds;
- whatever happens to a file that it needs, `verify` names it, and nobody gets a wrong answer;
- a step that fails leaves all as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from cases import constant_columns
from holdfast import kind as contract
from holdfast.core.rows.writer import Writer
from holdfast.core.store import litter
from holdfast.errors import DamagedFileError
from trust.damages import DAMAGES

contract.forget(constant_columns.ENTRY.kind)  # it is there in these tests only
NAMES = ("a", "b", "c")
# How each is tracked; what is known of denial constraints must not depend on the rows, nor on the clock.
OPTIONS: dict[str, dict[str, Any]] = {"dc": {"within_columns": True, "dc_seconds": 3_600}}
KINDS = ("ucc", "fd", "ind", "dc", "row", "profile", "constant")
Row = tuple[int | None, ...]
cells = st.one_of(st.none(), st.integers(0, 3))
rows_of = st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=6)


@pytest.fixture(autouse=True)
def with_a_class_from_elsewhere() -> Iterator[None]:
    contract.register(constant_columns.ENTRY)
    yield
    contract.forget(constant_columns.ENTRY.kind)


def test_all_of_them_are_here() -> None:
    """A new class adds its kind to this module."""
    assert set(contract.kinds()) == set(KINDS)


def table(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(NAMES)
    return pa.table({n: pa.array(list(c), pa.int64()) for n, c in zip(NAMES, columns, strict=True)})


def holding(ws: holdfast.Workspace, kind: str, at: int | None = None) -> set[str]:
    return {str(d) if kind != "constant" else d.name for d in ws.dependencies(kind, at=at)}


def tracked(root: Path, kind: str, rows: list[Row], **more: Any) -> holdfast.Workspace:
    ws = holdfast.open(root, engine="inline")
    ws.track("t", table(rows), kinds=(kind,), **OPTIONS.get(kind, {}), **more)
    return ws


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_batches(tmp_path_factory: pytest.TempPathFactory, kind: str, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("w")
    rows: list[Row] = data.draw(rows_of)
    ws = tracked(folder / "w", kind, rows)
    for i in range(data.draw(st.integers(1, 3))):
        gone = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
        batch = {"inserts": data.draw(st.one_of(st.just([]), rows_of)), "deletes": [rows[g] for g in gone]}
        rows = [row for j, row in enumerate(rows) if j not in gone] + batch["inserts"]
        given = parts({part: some for part, some in batch.items() if some})
        if not given:
            continue
        before = holding(ws, kind)
        foretold = ws.check("t", **given)
        assert holding(ws, kind) == before
        change = ws.apply("t", **given)
        assert [c.to_dict() for c in foretold.changes] == [c.to_dict() for c in change.changes]
        after = holding(ws, kind)
        with tracked(folder / f"anew-{i}", kind, rows) as anew:
            assert after == holding(anew, kind)
        events = {"appeared": set[str](), "gone": set[str]()}
        for c in (c for c in change.changes if c.dependency.kind == kind):
            name = c.dependency.name if kind == "constant" else str(c.dependency)
            events["appeared" if c.event == "appeared" else "gone"].add(name)
        assert (before - events["gone"]) | events["appeared"] == after
        assert holding(ws, kind, at=change.version - 1) == before
        if data.draw(st.booleans()):
            ws.merge("t")
            assert holding(ws, kind) == after
        if data.draw(st.booleans()):
            ws.close()
            ws = holdfast.open(folder / "w", engine="inline", create=False)
    assert ws.verify() > 0
    ws.close()


# -- damage ------------------------------------------------------------------------------------------------

MAX_ERROR = 0.2
HISTORY: list[dict[str, list[Row]]] = [
    {"inserts": [(4, 4, 2), (5, 5, 2)]},
    {"inserts": [(6, 7, 2)], "deletes": [(2, 2, 2)]},
]
BATCH: dict[str, list[Row]] = {"inserts": [(1, 8, 3), (9, 9, None)], "deletes": [(4, 4, 2)]}


def parts(batch: dict[str, list[Row]]) -> dict[str, pa.Table]:
    return {part: table(rows) for part, rows in batch.items()}


def listed(ws: holdfast.Workspace, kind: str, at: int | None = None) -> list[Any]:
    return [d.to_dict() for d in ws.dependencies(kind, at=at, max_error=0.0 if at else MAX_ERROR)]


def applied(ws: holdfast.Workspace, kind: str) -> tuple[list[Any], list[Any]]:
    """What a batch changes, and what holds after it."""
    return [c.to_dict() for c in ws.apply("t", **parts(BATCH)).changes], listed(ws, kind)


# Each is asked of a workspace that nobody has looked at yet; the batch last.
QUESTIONS: dict[str, Callable[[holdfast.Workspace, str], Any]] = {
    "verify": lambda ws, kind: ws.verify(),
    "list": listed,
    "list of the past": lambda ws, kind: listed(ws, kind, at=2),
    "batch": applied,
}


def asked(root: Path, kind: str) -> dict[str, Any]:
    """The answer to every question, or the error; anything but a damaged file comes through."""
    answers: dict[str, Any] = {}
    for name, question in QUESTIONS.items():
        with holdfast.open(root, engine="inline", create=False) as ws:
            try:
                answers[name] = question(ws, kind)
            except DamagedFileError as error:
                answers[name] = error
    return answers


Sound = tuple[Path, list[str], dict[str, Any]]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sound]:
    """Of a kind: a workspace that nobody has damaged, the files that it needs, what it answers."""

    @cache
    def of(kind: str) -> Sound:
        folder = tmp_path_factory.mktemp("sound")
        more = {"max_error": MAX_ERROR} if "max_error" in contract.entries()[kind].takes else {}
        with tracked(folder / "w", kind, [(1, 1, 2), (2, 2, 2), (3, 3, 2)], **more) as ws:
            for batch in HISTORY:
                ws.apply("t", **parts(batch))
            states = [(commit.table, commit.state) for commit in ws.ledger.states()]
        newest = litter.named_files(list(dict(states).values()))
        covers = (ref for _, state in states for ref in litter.named_files(state) if litter.is_cover(ref))
        names = sorted({ref.name for ref in (*newest, *covers)})
        shutil.copytree(folder / "w", folder / "asked")
        return folder / "w", names, asked(folder / "asked", kind)

    return of


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_damage(
    tmp_path: Path, sound: Callable[[str], Sound], kind: str, damage: Callable[[Path, Path], None]
) -> None:
    """Of every file: `verify` names it, and whoever needs it has the right answer or is told of it."""
    whole, names, truth = sound(kind)
    for i, name in enumerate(names):
        root = tmp_path / str(i)
        shutil.copytree(whole, root)
        damage(root / name, alike(root / name))
        answers = asked(root, kind)
        assert isinstance(answers["verify"], DamagedFileError), f"verify does not see {name}"
        for question, answer in answers.items():
            if isinstance(answer, DamagedFileError):
                assert Path(name).name in str(answer), f"{question}: {answer}"
            else:
                assert answer == truth[question], f"{question}: a wrong answer without {name}"
        shutil.rmtree(root)


def alike(path: Path) -> Path:
    """A file with another content, if there is one of the same kind, and of the same length."""
    content, stem = path.read_bytes(), path.name.split("-")[0]
    others = [other for other in path.parent.iterdir() if other.read_bytes() != content]
    return min(others, key=lambda p: (p.name.split("-")[0] != stem, p.stat().st_size != len(content), p))


# -- other failures ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_fails(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(1, 1, 2), (2, 2, 2), (3, 3, 2)]
    with tracked(tmp_path / "w", kind, rows) as ws:
        before, new = holding(ws, kind), table([(1, 2, 3), (1, 2, 3)])

        def fail(*_: Any) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(Writer, "append", fail)
            with pytest.raises(OSError, match="No space"):
                ws.apply("t", inserts=new)
        assert (ws.version, holding(ws, kind)) == (1, before)
        ws.apply("t", inserts=new)
        with tracked(tmp_path / "anew", kind, [*rows, (1, 2, 3), (1, 2, 3)]) as anew:
            assert holding(ws, kind) == holding(anew, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_reads_nothing_again(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last commit of a process knows stays open: the state that names it is the very same."""
    with tracked(tmp_path / "w", kind, [(1, 1, 2), (2, 2, 2), (3, 3, 2)]) as ws:
        cls = contract.entries()[kind].dependency_class
        monkeypatch.setattr(type(cls), "load", lambda *_: pytest.fail("it is read again"))
        for row in ((4, 4, 2), (5, 5, 3)):
            ws.apply("t", inserts=table([row]))
