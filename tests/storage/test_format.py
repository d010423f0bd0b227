"""The marker of a workspace: whole or absent, and honest about its format."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.store import format
from holdfast.core.store.format import FORMAT, MARKER, OLDEST, check_marker, create_marker, text_key
from holdfast.errors import DamagedFileError, StateFormatError, WorkspaceError

CREATOR = """
import sys
from pathlib import Path
from holdfast.core.store.format import create_marker
print("ready", flush=True)
sys.stdin.readline()
print(create_marker(Path(sys.argv[1])))
"""


def test_create_and_check(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "my.hold"
    assert create_marker(root) is True
    assert os.listdir(root) == [MARKER]
    marker = json.loads((root / MARKER).read_text())
    key = bytes.fromhex(marker.pop("key"))
    assert marker == {"format": FORMAT, "holdfast": "0.1.0"}
    assert check_marker(root) == FORMAT
    assert text_key(root) == struct.unpack("<2Q", key)


def test_every_workspace_has_a_key_of_its_own(tmp_path: Path) -> None:
    keys = set()
    for root in (tmp_path / "a", tmp_path / "b", tmp_path / "a"):  # removed, and made anew
        shutil.rmtree(root, ignore_errors=True)
        # In a process of its own: in this one all have the same, for the sake of other tests.
        made = subprocess.run(
            [sys.executable, "-c", CREATOR, str(root)],
            check=True,
            input="go\n",
            capture_output=True,
            text=True,
        )
        assert made.stdout == "ready\nTrue\n"
        keys.add(text_key(root))
    assert len(keys) == 3
    with pytest.raises(WorkspaceError, match="there is no workspace"):
        text_key(tmp_path / "c")


def test_creating_again_changes_nothing(tmp_path: Path) -> None:
    create_marker(tmp_path)
    before = (tmp_path / MARKER).read_bytes()
    (tmp_path / "ledger").mkdir()
    assert create_marker(tmp_path) is False
    assert (tmp_path / MARKER).read_bytes() == before


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").write_text("mine")
    with pytest.raises(WorkspaceError, match=r"not empty: it holds thesis.doc. Nothing was written"):
        create_marker(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.doc"]


def test_what_a_killed_creator_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f".{MARKER}.0123").write_text('{"for')
    with pytest.raises(WorkspaceError, match="is no holdfast workspace"):
        check_marker(tmp_path)
    assert create_marker(tmp_path) is True


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    path = tmp_path / "orders.csv"
    path.write_text("a,b")
    with pytest.raises(WorkspaceError, match="is a file; a workspace is a folder"):
        create_marker(path)
    with pytest.raises(WorkspaceError, match="is a file; a workspace is a folder"):
        check_marker(path)
    with pytest.raises(WorkspaceError, match="cannot create a workspace"):
        create_marker(path / "below")


def test_missing_folder_and_missing_marker(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"there is no workspace .* 'holdfast track'"):
        check_marker(tmp_path / "absent")
    with pytest.raises(WorkspaceError, match=r"it has no 'holdfast.json'. Check the path"):
        check_marker(tmp_path)


def test_a_newer_format(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(json.dumps({"format": FORMAT + 1, "holdfast": "9.0"}))
    message = f"the workspace has format {FORMAT + 1}; this holdfast reads {OLDEST} to {FORMAT}. "
    message += "Upgrade holdfast, or "
    message += "rebuild with 'holdfast track'."
    for act in (check_marker, create_marker):
        with pytest.raises(StateFormatError) as caught:
            act(tmp_path)
        assert str(caught.value) == message


def test_the_next_format_keeps_the_keys_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_marker(tmp_path)
    key = bytes.fromhex(json.loads((tmp_path / MARKER).read_text())["key"])
    monkeypatch.setattr(format, "FORMAT", FORMAT + 1)
    assert check_marker(tmp_path) == FORMAT
    assert text_key(tmp_path) == struct.unpack("<2Q", key)
    (tmp_path / MARKER).write_text(json.dumps({"format": FORMAT}))
    with pytest.raises(DamagedFileError):
        check_marker(tmp_path)


def test_an_older_format(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(json.dumps({"format": OLDEST - 1, "holdfast": "0.1.0"}))
    for act in (check_marker, create_marker):
        with pytest.raises(StateFormatError, match=f"of an older holdfast; this one reads {OLDEST}"):
            act(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"3",
        b'{"format": "1"}',
        b'{"format": 0}',
        b'{"format": true}',
        b'{"format": 6}',
        b'{"format": 6, "key": "00"}',
        b'{"format": 6, "key": 7}',
    ],
)
def test_a_damaged_marker(tmp_path: Path, content: bytes) -> None:
    (tmp_path / MARKER).write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"'holdfast.json' .* is damaged"):
        check_marker(tmp_path)
    with pytest.raises(DamagedFileError, match=r"'holdfast.json' .* is damaged"):
        create_marker(tmp_path)


def test_of_several_creators_one_creates(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CREATOR]
    crowd = [
        subprocess.Popen(
            [*command, str(tmp_path / f"ws-{i // 4}")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(8)
    ]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate(timeout=300) for process in crowd]
    assert [error for _, error in answers] == [""] * 8
    for k in range(2):
        assert sorted(out for out, _ in answers[4 * k : 4 * k + 4]) == ["False\n"] * 3 + ["True\n"]
        assert os.listdir(tmp_path / f"ws-{k}") == [MARKER]
