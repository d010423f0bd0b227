"""The disk: full, not writable, or about to lose power. A batch is whole or it is not there, and says so."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.store import files, leases, ledger_files
from holdfast.errors import WorkspaceError
from holdfast.workspace import Workspace
from trust import kit, shop, twins


@contextmanager
def room_for(n_bytes: int) -> Iterator[None]:
    """No file can grow beyond so many bytes: what a full disk looks like to a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _returns(ws: Workspace) -> Any:
    return ws.track("returns", shop.table_of("returns", shop.RETURNS), kinds=("ucc", "ind"))


OPERATIONS: dict[str, tuple[Callable[[Path], None], Callable[[Workspace], Any]]] = {
    "track": (kit.build, lambda ws: ws.track("again", kit.table_of(kit.START))),
    "apply": (kit.build, lambda ws: kit.apply(ws, kit.BATCH, batch_id="full")),
    "merge": (kit.build, lambda ws: ws.merge("people")),
    "pin": (kit.build, lambda ws: ws.pin("people", ["id"])),
    "track in the shop": (shop.build, _returns),
    "apply in the shop": (shop.build, lambda ws: shop.apply(ws, shop.ONE, batch_id="full")),
    "apply_all in the shop": (shop.build, lambda ws: shop.apply(ws, shop.BOTH, batch_id="full")),
    "merge in the shop": (shop.build, lambda ws: ws.merge("orders")),
    "drop in the shop": (shop.build, lambda ws: ws.drop("parts")),
}


@pytest.mark.parametrize(
    ("operation", "n_bytes"),
    [
        (operation, n_bytes)
        for operation in OPERATIONS
        for n_bytes in ([500, 3_000, 7_000] if "shop" in operation else [0, 500, 2_000, 4_000, 7_000])
    ],
)
def test_a_full_disk(tmp_path: Path, operation: str, n_bytes: int) -> None:
    root = tmp_path / "w"
    build, run = OPERATIONS[operation]
    build(root)
    before = kit.snapshot(root)
    tables = {name for name in kit.files_of(root) if name.startswith(("tables/", "values/"))}

    with holdfast.open(root, engine="inline") as ws:
        with room_for(n_bytes), pytest.raises(WorkspaceError, match="cannot write") as caught:
            run(ws)
        assert "Nothing was applied" in str(caught.value)
        assert kit.snapshot(root) == before
        assert not list((root / "staging").glob("*/"))
        with holdfast.open(root, engine="inline") as other:
            other.tidy(grace_s=0)
        assert {n for n in kit.files_of(root) if n.startswith(("tables/", "values/"))} <= tables
        # There is room again: the same object goes on.
        run(ws)
    found = kit.snapshot(root)
    assert found["version"] == before["version"] + 1
    assert found != before


def test_a_new_workspace_on_a_full_disk(tmp_path: Path) -> None:
    for n_bytes in (0, 10, 100, 1_000):
        with room_for(n_bytes), pytest.raises(WorkspaceError, match="cannot create"):
            holdfast.open(tmp_path / "w", engine="inline")
    kit.build(tmp_path / "w")


def test_a_workspace_whose_folder_is_a_file(tmp_path: Path) -> None:
    root = tmp_path / "w"
    with holdfast.open(root, engine="inline") as ws:
        (root / "tables").write_text("not a folder")
        with pytest.raises(WorkspaceError, match="cannot write the file 'tables/"):
            ws.track("people", kit.table_of(kit.START))
        (root / "tables").unlink()
        (root / "staging").rmdir()
        (root / "staging").write_text("not a folder")
        with pytest.raises(WorkspaceError, match="cannot write"):
            ws.track("people", kit.table_of(kit.START))


def test_a_commit_names_nothing_that_a_power_cut_could_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file that a commit names, and every folder on the way to it, is synced before the commit."""
    synced: set[Path] = set()
    root = tmp_path / "w"

    def record(path: Path) -> None:
        synced.add(Path(path))
        plain(path)

    plain = files.sync_folder
    monkeypatch.setattr(files, "sync_folder", record)
    monkeypatch.setattr(ledger_files, "sync_folder", record)
    sealed: set[str] = set()
    seal = files.NewFile.seal

    def sealing(file: files.NewFile) -> None:
        if file.name.startswith("ledger/"):
            # The commit itself: by now everything must be on the disk.
            folders = {(root / n).parent for n in sealed}
            wanted = {p for folder in folders for p in (folder, *folder.parents) if p.is_relative_to(root)}
            wanted = {p for p in wanted if "staging" not in p.parts}
            assert wanted <= synced, wanted - synced
        else:
            sealed.add(file.name)
        seal(file)

    monkeypatch.setattr(files.NewFile, "seal", sealing)
    with holdfast.open(root, engine="inline") as ws:
        synced.clear()  # the marker's sync of the root came before the folders were made
        ws.track("people", kit.table_of(kit.START))
        kit.apply(ws, kit.HISTORY[0])
        shop.track(ws)
        shop.apply(ws, shop.HISTORY[1])
        twins.track(ws, twins.COUNTED)
        kit.apply(ws, kit.HISTORY[0], twins.COUNTED)
    kinds = {Path(name).name.split("-")[0] for name in sealed if not name.startswith("staging/")}
    assert kinds >= {"segment", "evidence", "run", "clusters", "cover", "fds", "agreement", "approximate"}
    assert any(name.startswith("values/cover-") and name.endswith(".json") for name in sealed)
    shutil.rmtree(root)


def _tree(root: Path) -> dict[str, tuple[int, int]]:
    """Every file and folder, and when it was last changed."""
    return {str(p): (p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in (root, *root.rglob("*"))}


@pytest.mark.parametrize("operation", ["check", "check_all in the shop"])
def test_a_check_needs_no_right_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """On a read-only workspace it says what it says elsewhere, writes nothing there, and leaves nothing."""
    root, temporary = tmp_path / "w", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    inserts, deletes = (kit.table_of(rows) for rows in kit.BATCH)
    if operation == "check":
        kit.build(root)

        def check(ws: Workspace) -> Any:
            return ws.check("people", inserts=inserts, deletes=deletes)
    else:
        shop.build(root)
        batches = {
            table: {"inserts": shop.table_of(table, new), "deletes": shop.table_of(table, gone)}
            for table, (new, gone) in shop.BOTH.items()
        }

        def check(ws: Workspace) -> Any:
            return ws.check_all(batches)

    with holdfast.open(root, engine="inline") as ws:
        expected = check(ws).to_dict()
    before = _tree(root)
    access = os.access
    staged = []

    def read_only(path: Any, mode: int) -> bool:
        return access(path, mode) and not (mode & os.W_OK and Path(path).is_relative_to(root))

    real = leases.held

    def held(root: Path, folder: str, base: int) -> Any:
        staged.append(root / folder)
        return real(root, folder, base)

    monkeypatch.setattr(os, "access", read_only)
    monkeypatch.setattr(leases, "held", held)
    with holdfast.open(root, engine="inline") as ws:
        found = check(ws).to_dict()
    assert {**found, "elapsed_s": 0} == {**expected, "elapsed_s": 0}
    assert [folder.is_relative_to(temporary) for folder in staged] == [True]
    assert _tree(root) == before
    assert not list(temporary.iterdir())
