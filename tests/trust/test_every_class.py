"""What every class of dependencies is held to, over the registry: none can forget it.

- what is maintained equals what is found from scratch, after every batch and after a restart;
- a check foretells what the batch does, and does nothing;
- the log adds up: what held, with what appeared and without what left, is what holds;
- every file that a class names is checked by `verify`, and a step that fails leaves all as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
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

contract.forget(constant_columns.ENTRY.kind)  # it is there in these tests only
NAMES = ("a", "b", "c")
# How each is tracked; that of denial constraints must not depend on the rows.
OPTIONS: dict[str, dict[str, Any]] = {"dc": {"within_columns": True}}
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


def tracked(root: Path, kind: str, rows: list[Row]) -> holdfast.Workspace:
    ws = holdfast.open(root, engine="inline")
    ws.track("t", table(rows), kinds=(kind,), **OPTIONS.get(kind, {}))
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
        parts = {part: table(given) for part, given in batch.items() if given}
        if not parts:
            continue
        before = holding(ws, kind)
        foretold = ws.check("t", **parts)
        assert holding(ws, kind) == before
        change = ws.apply("t", **parts)
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
            ws.close()
            ws = holdfast.open(folder / "w", engine="inline", create=False)
    assert ws.verify() > 0
    ws.close()


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_it_names(tmp_path: Path, kind: str) -> None:
    with tracked(tmp_path / "w", kind, [(1, 1, 2), (2, 2, 2), (3, 3, 2)]) as ws:
        entry = contract.entries()[kind]
        fields = ws._committer.among(kind, None)[0] if entry.across else ws.writer.tables.state("t").kept
        files = list(litter.named_files(dict(fields or {})))
        assert files
        for ref in files:
            path = ws.root / ref.name
            content = path.read_bytes()
            path.write_bytes(content[:-1])
            with pytest.raises(DamagedFileError, match=path.name):
                ws.verify()
            path.write_bytes(content)
        assert ws.verify() > 0


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
