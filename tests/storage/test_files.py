"""Files of a workspace: written once, and never trusted unchecked."""

from __future__ import annotations

import io
import json
import os
import resource
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xxhash

from holdfast.core.store import files
from holdfast.core.store.bundle import write_bundle
from holdfast.core.store.files import (
    FileRef,
    check_file,
    new_file,
    read_file,
    stamp_files,
    unique_name,
    write_file,
)
from holdfast.errors import DamagedFileError, WorkspaceError
from holdfast.lakes.state import write_array

LARGE = bytes(range(256)) * 8192  # 2 MiB: hashed through a memory map


def tamper(path: Path, content: bytes) -> None:
    """Alter a file as a stray program would; the clock of a file ticks in steps of milliseconds."""
    before = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_write_and_read_back(tmp_path: Path) -> None:
    buffers = [b"one", memoryview(b"two"), pa.py_buffer(b"three"), bytearray(b"")]
    ref = write_file(tmp_path, "tables/orders/x.bin", buffers)
    assert ref == FileRef("tables/orders/x.bin", 11, xxhash.xxh3_64_hexdigest(b"onetwothree"))
    assert read_file(tmp_path, ref) == b"onetwothree"
    assert FileRef.from_dict(ref.to_dict()) == ref


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    ref = write_file(tmp_path, "empty", [])
    assert ref.length == 0
    assert check_file(tmp_path, ref, deep=True, fresh=True) == tmp_path / "empty"
    assert read_file(tmp_path, ref) == b""


def test_wide_buffers_are_counted_in_bytes(tmp_path: Path) -> None:
    wide = memoryview(bytes(80)).cast("q")
    assert write_file(tmp_path, "wide", [wide]).length == 80


def test_a_name_is_never_overwritten(tmp_path: Path) -> None:
    ref = write_file(tmp_path, "a", [b"first"])
    with pytest.raises(WorkspaceError, match=r"'a' exists already .* never overwritten"):
        write_file(tmp_path, "a", [b"second"])
    assert read_file(tmp_path, ref) == b"first"


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def buffers() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write_file(tmp_path, "t/a", buffers())
    assert not (tmp_path / "t/a").exists()


def test_a_workspace_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A task on a machine that does not see it must leave nothing on that machine's disk."""
    with pytest.raises(WorkspaceError, match=r"'.*ws' is not there on .*all executors reach"):
        write_file(tmp_path / "ws", "tables/t/a", [b"x"])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(WorkspaceError, match=r"'a' .* No space left on device. Nothing was applied"):
        write_file(tmp_path, "a", [b"x"])
    assert not (tmp_path / "a").exists()


def test_a_folder_in_the_way_is_reported(tmp_path: Path) -> None:
    (tmp_path / "tables").write_bytes(b"")
    with pytest.raises(WorkspaceError, match="cannot write the file 'tables/a'"):
        write_file(tmp_path, "tables/a", [b"x"])


def arrow_ipc(file: Any) -> None:
    table = pa.table({"a": range(100_000), "b": ["x"] * 100_000})
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=7_000)


def arrow_ipc_compressed(file: Any) -> None:
    table = pa.table({"a": range(100_000)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)


def parquet(file: Any) -> None:
    pq.write_table(pa.table({"a": range(100_000), "b": ["x"] * 100_000}), file, row_group_size=7_000)


def parquet_by_batches(file: Any) -> None:
    batch = pa.record_batch({"a": range(1_000)})
    with pq.ParquetWriter(file, batch.schema) as writer:
        for _ in range(3):
            writer.write_batch(batch)


def numpy_array(file: Any) -> None:
    np.save(file, np.arange(300_000))


def small_and_large(file: Any) -> None:
    for content in (b"", b"small", LARGE, LARGE[:1], memoryview(LARGE).cast("q")):
        assert file.write(content) == memoryview(content).nbytes


WRITERS = [arrow_ipc, arrow_ipc_compressed, parquet, parquet_by_batches, numpy_array, small_and_large]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda w: w.__name__)
@pytest.mark.parametrize("folder", ["t", "staging"])
def test_what_is_written_is_hashed_on_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, writer: Callable[[Any], None]
) -> None:
    """Whoever writes; and it is not read back for it."""
    with monkeypatch.context() as patch:
        patch.setattr(files, "_hash", None)
        with new_file(tmp_path, f"{folder}/a") as file:
            writer(file)
    content = (tmp_path / folder / "a").read_bytes()
    assert file.ref == FileRef(f"{folder}/a", len(content), xxhash.xxh3_64_hexdigest(content))
    assert file.closed
    plain = io.BytesIO()
    writer(plain)
    assert content == plain.getvalue()


def test_what_the_disk_makes_of_it_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is lost between the write and the sync, as on storage without one page cache."""
    sync = os.fsync

    def losing(descriptor: int) -> None:
        sync(descriptor)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.pwrite(descriptor, bytes(4096), 8192)

    monkeypatch.setattr(files.os, "fsync", losing)
    for ref in (
        write_file(tmp_path, "t/a", [LARGE]),
        write_bundle(tmp_path, "t/b", {"a": np.arange(9_000)}, {}),
        write_array(tmp_path, "t", "c", np.arange(9_000)),
    ):
        with pytest.raises(DamagedFileError, match="has been altered"):
            check_file(tmp_path, ref, deep=True, fresh=True)


@pytest.mark.parametrize("writer", WRITERS, ids=lambda w: w.__name__)
def test_another_writer_that_fails_leaves_nothing(tmp_path: Path, writer: Callable[[Any], None]) -> None:
    def write_half() -> None:
        with new_file(tmp_path, "t/a") as file:
            writer(file)
            raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        write_half()
    assert not list((tmp_path / "t").iterdir())


@pytest.mark.parametrize("writer", WRITERS, ids=lambda w: w.__name__)
def test_a_disk_that_fills_up_under_another_writer(tmp_path: Path, writer: Callable[[Any], None]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        with (
            pytest.raises(WorkspaceError, match=r"'t/a' .* File too large. Nothing was applied"),
            new_file(tmp_path, "t/a") as file,
        ):
            writer(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "t").iterdir())


@pytest.mark.parametrize("content", [b"small", LARGE])
def test_an_altered_byte_is_found_by_the_deep_check_only(tmp_path: Path, content: bytes) -> None:
    ref = write_file(tmp_path, "a", [content])
    tamper(tmp_path / "a", content[:-1] + b"?")
    check_file(tmp_path, ref, deep=False)
    with pytest.raises(DamagedFileError, match=r"'a' .* has been altered: .* Restore it from a backup"):
        check_file(tmp_path, ref, deep=True)
    with pytest.raises(DamagedFileError, match="has been altered"):
        read_file(tmp_path, ref)


@pytest.mark.parametrize("deep", [False, True])
def test_missing_and_cut_files(tmp_path: Path, deep: bool) -> None:
    ref = write_file(tmp_path, "t/a", [b"content"])
    (tmp_path / "t/a").write_bytes(b"cont")
    with pytest.raises(DamagedFileError, match=r"'t/a' .* has 4 bytes; 7 were written. Restore"):
        check_file(tmp_path, ref, deep=deep)
    (tmp_path / "t/a").unlink()
    with pytest.raises(DamagedFileError, match=r"'t/a' .* is missing. Restore"):
        check_file(tmp_path, ref, deep=deep)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    ref = FileRef("a", (tmp_path / "a").stat().st_size, "0" * 16)
    with pytest.raises(DamagedFileError, match="cannot read the file 'a'"):
        check_file(tmp_path, ref, deep=True)


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "", "t/../../a", "a\0b"])
def test_names_stay_inside_the_workspace(tmp_path: Path, name: str) -> None:
    with pytest.raises(DamagedFileError, match="is not a file name inside the workspace"):
        check_file(tmp_path, FileRef(name, 1, "0" * 16), deep=False)
    with pytest.raises(DamagedFileError, match="is not a file name inside the workspace"):
        write_file(tmp_path, name, [b"x"])


def test_a_file_is_hashed_once_per_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(LARGE)
    ref = FileRef("a", len(LARGE), xxhash.xxh3_64_hexdigest(LARGE))
    hashes = []
    real = files._hash
    monkeypatch.setattr(files, "_hash", lambda d, n: hashes.append(n) or real(d, n))
    for _ in range(3):
        check_file(tmp_path, ref, deep=True)
    assert len(hashes) == 1
    check_file(tmp_path, ref, deep=True, fresh=True)
    assert len(hashes) == 2
    tamper(tmp_path / "a", LARGE)  # the same content under a new time: it must be looked at again
    check_file(tmp_path, ref, deep=True)
    assert len(hashes) == 3


def test_what_was_hashed_is_compared_with_every_reference(tmp_path: Path) -> None:
    ref = write_file(tmp_path, "a", [b"content"])
    check_file(tmp_path, ref, deep=True)
    with pytest.raises(DamagedFileError, match="has been altered"):
        check_file(tmp_path, FileRef("a", 7, "0" * 16), deep=True)


def test_what_a_process_has_hashed_may_be_altered_since(tmp_path: Path) -> None:
    """By a program that puts the time of modification back."""
    ref = write_file(tmp_path, "a", [b"content"])
    check_file(tmp_path, ref, deep=True)
    status = (tmp_path / "a").stat()
    while (tmp_path / "a").stat().st_ctime_ns == status.st_ctime_ns:  # it ticks in steps of milliseconds
        (tmp_path / "a").write_bytes(b"CONTENT")
        os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(DamagedFileError, match="has been altered"):
        check_file(tmp_path, ref, deep=True)


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MAX_REMEMBERED", 2)
    monkeypatch.setattr(files, "_hashed", {})
    for name in "abcde":
        write_file(tmp_path, name, [b"x"])
        assert len(files._hashed) <= 2


def test_unique_names_differ() -> None:
    names = {unique_name("tables/orders", "segment", ".arrow") for _ in range(1000)}
    assert len(names) == 1000
    assert all(n.startswith("tables/orders/segment-") and n.endswith(".arrow") for n in names)


# -- Stamps ------------------------------------------------------------------------------------------------


def _hashes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the files that are hashed from now on, as by a process that has seen none."""
    hashes: list[int] = []
    real = files._hash
    monkeypatch.setattr(files, "_hashed", {})
    monkeypatch.setattr(files, "_hash", lambda d, n: hashes.append(n) or real(d, n))
    return hashes


def _rot(root: Path, name: str, content: bytes) -> None:
    """Alter a file as a rotting disk does: no time of it changes. So its stamp is made to fit."""
    (root / name).write_bytes(content)
    stamps = json.loads((root / files.STAMPS).read_text())
    status = (root / name).stat()
    stamps[name][1:3] = [status.st_mtime_ns, status.st_ctime_ns]
    (root / files.STAMPS).write_text(json.dumps(stamps))


def test_a_large_file_with_its_stamp_is_opened_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = (write_file(tmp_path, name, [c]) for name, c in (("large", LARGE), ("small", b"x")))
    stamp_files(tmp_path, [large, small])
    assert list(json.loads((tmp_path / files.STAMPS).read_text())) == ["large"]
    hashes = _hashes(monkeypatch)
    for ref in (large, small):
        check_file(tmp_path, ref, deep=True, by_stamp=True)
    assert hashes == [1]
    check_file(tmp_path, large, deep=True)  # what is read whole is hashed
    check_file(tmp_path, large, deep=True, fresh=True, by_stamp=True)
    assert hashes == [1, len(LARGE), len(LARGE)]


def test_whatever_a_program_does_to_a_file_takes_its_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if it puts the time of modification back."""
    ref = write_file(tmp_path, "a", [LARGE])
    stamp_files(tmp_path, [ref])
    status = (tmp_path / "a").stat()
    while (tmp_path / "a").stat().st_ctime_ns == status.st_ctime_ns:  # it ticks in steps of milliseconds
        (tmp_path / "a").write_bytes(LARGE[:-1] + b"?")
        os.utime(tmp_path / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    hashes = _hashes(monkeypatch)
    with pytest.raises(DamagedFileError, match="has been altered"):
        check_file(tmp_path, ref, deep=True, by_stamp=True)
    assert hashes == [len(LARGE)]


def test_a_copy_is_hashed_when_it_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, copy = tmp_path / "a", tmp_path / "b"
    source.mkdir()
    ref = write_file(source, "x", [LARGE])
    stamp_files(source, [ref])
    shutil.copytree(source, copy)
    hashes = _hashes(monkeypatch)
    check_file(copy, ref, deep=True, by_stamp=True)
    assert hashes == [len(LARGE)]
    stamp_files(copy, [ref])
    monkeypatch.setattr(files, "_hashed", {})
    check_file(copy, ref, deep=True, by_stamp=True)
    assert hashes == [len(LARGE)]


def test_only_what_is_known_gets_a_stamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = write_file(tmp_path, "a", [LARGE])
    monkeypatch.setattr(files, "_hashed", {})
    stamp_files(tmp_path, [ref])
    assert not (tmp_path / files.STAMPS).exists()
    stamp_files(tmp_path, [ref], {"a"})  # a commit has just named it
    assert (tmp_path / files.STAMPS).exists()
    stamp_files(
        tmp_path, [FileRef("a", len(LARGE) - 1, ref.checksum), FileRef("no", len(LARGE), "")], {"a", "no"}
    )
    assert list(json.loads((tmp_path / files.STAMPS).read_text())) == ["a"]


def test_rot_is_found_by_who_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ref = write_file(tmp_path, "a", [LARGE])
    stamp_files(tmp_path, [ref])
    _rot(tmp_path, "a", LARGE[:-1] + b"?")
    monkeypatch.setattr(files, "_hashed", {})
    check_file(tmp_path, ref, deep=True, by_stamp=True)
    for fresh in (False, True):
        with pytest.raises(DamagedFileError, match="has been altered"):
            check_file(tmp_path, ref, deep=True, fresh=fresh)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"a": 7}', b'{"a": [1, 2]}', b"\xff", b'{"a": [null, "", {}, 1]}']
)
def test_stamps_that_make_no_sense_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    ref = write_file(tmp_path, "a", [LARGE])
    (tmp_path / files.STAMPS).parent.mkdir()
    (tmp_path / files.STAMPS).write_bytes(content)
    hashes = _hashes(monkeypatch)
    check_file(tmp_path, ref, deep=True, by_stamp=True)
    assert hashes == [len(LARGE)]
    stamp_files(tmp_path, [ref])
    files.forget_stamps(tmp_path)
    assert list(json.loads((tmp_path / files.STAMPS).read_text())) == ["a"]
    (tmp_path / "a").unlink()
    files.forget_stamps(tmp_path)
    assert json.loads((tmp_path / files.STAMPS).read_text()) == {}
