"""A workspace's files on an object store: published before they are named, copied once, never overwritten."""

from __future__ import annotations

import os
import shutil
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.core.store import files, objects
from holdfast.core.store.bucket import Bucket, bucket_of, forget, grant, reaches, use_options
from holdfast.core.store.delta_log import has_log
from holdfast.core.store.files import (
    FileRef,
    check_file,
    is_there,
    opened,
    read_file,
    verify_file,
    write_file,
)
from holdfast.core.store.node_cache import NodeCache, node_cache
from holdfast.core.store.objects import ObjectFile
from holdfast.errors import DamagedFileError, StoreError, UsageError, WorkspaceError
from trust.object_store import Faults, Store, options_for, through

pytestmark = pytest.mark.xdist_group("store")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def bucket(store: Store, cache: Path) -> Bucket:
    return Bucket(f"s3://box/{uuid.uuid4().hex}", store.options)


def another(bucket: Bucket, options: dict[str, str] | None = None) -> Bucket:
    """The same place, for a process that knows nothing yet."""
    return Bucket(bucket.url, bucket.options if options is None else options)


def copies(cache: Path) -> list[Path]:
    return [path for path in cache.glob("??/*") if path.is_file()]


def test_a_file_is_published_once_others_may_be_told_of_it(bucket: Bucket) -> None:
    ref = write_file(bucket, "tables/t/segment-0.arrow", [b"abc", b"def"])
    assert ref.length == 6
    assert read_file(bucket, ref) == b"abcdef"  # here it can be read at once
    assert bucket.entries("") == []
    with pytest.raises(DamagedFileError, match="is missing"):
        read_file(another(bucket), ref)
    bucket.publish(temporary=True)
    assert [entry.name for entry in bucket.entries("tables")] == [ref.name]
    assert read_file(another(bucket), ref) == read_file(bucket, ref) == b"abcdef"
    bucket.publish(temporary=True)  # nothing is left to do


def test_a_draft_that_is_gone(bucket: Bucket, cache: Path) -> None:
    write_file(bucket, "tables/t/a.arrow", [b"abc"])
    for draft in (cache / "under-way").iterdir():
        draft.unlink()
    with pytest.raises(WorkspaceError, match=r"the draft of the file 'tables/t/a.arrow' is gone"):
        bucket.publish(temporary=True)


def test_drafts_go_with_their_process(bucket: Bucket, cache: Path) -> None:
    write_file(bucket, "tables/t/a.arrow", [b"abc"])
    bucket._remove_drafts(os.getpid() + 1)
    assert len(list((cache / "under-way").iterdir())) == 1
    bucket._remove_drafts(os.getpid())
    assert list((cache / "under-way").iterdir()) == []


def test_a_draft_that_is_removed_is_not_published(bucket: Bucket, cache: Path) -> None:
    """Such as that of a commit that has lost a race."""
    write_file(bucket, "ledger/commit.parquet", [b"lost"])
    bucket.remove(["ledger/commit.parquet"])
    bucket.publish(temporary=True)
    assert bucket.entries("") == list((cache / "under-way").iterdir()) == []


def test_drafts_of_jobs_end_with_the_last_of_them(bucket: Bucket, cache: Path) -> None:
    """Those of the ledger are no job's: another thread may be about to commit them."""
    with bucket.job():
        write_file(bucket, "tables/t/a.arrow", [b"abc"])
        write_file(bucket, "ledger/commit.parquet", [b"abc"])
        with bucket.job():
            pass
        assert len(list((cache / "under-way").iterdir())) == 2
    bucket.publish(temporary=True)
    assert [entry.name for entry in bucket.entries("")] == ["ledger/commit.parquet"]


def test_files_are_never_overwritten(bucket: Bucket) -> None:
    write_file(bucket, "tables/t/a.arrow", [b"first"])
    bucket.publish(temporary=True)
    other = another(bucket)
    write_file(other, "tables/t/a.arrow", [b"second"])
    with pytest.raises(WorkspaceError, match="exists already"):
        other.publish(temporary=True)
    assert bucket.content("tables/t/a.arrow") == b"first"


def test_of_many_who_put_one_name_one_has_put_it(bucket: Bucket) -> None:
    """Commits rely on it: of the store that all tests run on, too."""
    writers = [another(bucket) for _ in range(16)]
    with ThreadPoolExecutor(len(writers)) as threads:
        for i in range(20):
            together = threading.Barrier(len(writers))

            def put(n: int, name: str = f"commit-{i}", together: threading.Barrier = together) -> bool:
                together.wait()
                return writers[n].put_new(name, str(n).encode())

            done = list(threads.map(put, range(len(writers))))
            assert done.count(True) == 1
            assert bucket.content(f"commit-{i}") == str(done.index(True)).encode()


def test_a_put_whose_answer_is_lost_finds_its_own_object(store: Store, bucket: Bucket) -> None:
    lost = iter([True])
    faults = Faults(lambda request: "lost" if request.method == "PUT" and next(lost, False) else None)
    with through(store, faults) as address:
        unlucky = another(bucket, options_for(address))
        ref = write_file(unlucky, "tables/t/a.arrow", [b"content"])
        unlucky.publish(temporary=True)
        assert faults.counted("PUT") == 2
    assert read_file(another(bucket), ref) == b"content"


def test_names_lead_nowhere_else(bucket: Bucket) -> None:
    for name in ("../x", "/x", "a/../../x", "", "a\0b"):
        with pytest.raises(DamagedFileError):
            write_file(bucket, name, [b""])
        with pytest.raises(DamagedFileError):
            check_file(bucket, FileRef(name, 0, ""), deep=True)


def test_an_object_is_fetched_once_for_all_processes(store: Store, bucket: Bucket, cache: Path) -> None:
    content = os.urandom(20_000_000)
    ref = write_file(bucket, "tables/t/large.arrow", [content])
    bucket.publish(temporary=True)
    [copy] = copies(cache)
    copy.unlink()
    faults = Faults()
    with through(store, faults) as address:
        paths: list[Path] = []
        readers = [another(bucket, options_for(address)) for _ in range(4)]
        threads = [threading.Thread(target=lambda r=r: paths.append(r.local(ref))) for r in readers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(paths)) == 1
        assert paths[0].read_bytes() == content
        assert faults.counted("GET") == 3  # its pieces, once


def test_what_arrives_is_what_was_written(bucket: Bucket) -> None:
    ref = write_file(bucket, "tables/t/a.arrow", [b"abc"])
    bucket.publish(temporary=True)
    fresh = another(bucket)
    with pytest.raises(DamagedFileError, match=r"altered: its checksum is \w{16}; 0{16} was written"):
        read_file(fresh, FileRef(ref.name, ref.length, "0" * 16))
    with pytest.raises(DamagedFileError, match="has 3 bytes; 4 were written"):
        read_file(fresh, FileRef(ref.name, 4, ref.checksum))
    with pytest.raises(DamagedFileError, match="is missing"):
        read_file(fresh, FileRef("tables/t/b.arrow", 3, ref.checksum))
    bucket.put(ref.name, b"abd")  # somebody alters it
    assert check_file(bucket, ref, deep=True).read_bytes() == b"abc"  # the copy is what was written
    with pytest.raises(DamagedFileError, match="has been altered"):
        verify_file(bucket, ref)
    assert is_there(bucket, ref)
    assert not is_there(another(bucket), FileRef("tables/t/b.arrow", 3, ""))


def test_copies_may_vanish_at_any_time(bucket: Bucket, cache: Path) -> None:
    ref = write_file(bucket, "tables/t/a.arrow", [b"abc"])
    bucket.publish(temporary=True)
    vanishing = iter([True, True])

    def read(path: Path) -> bytes:
        if next(vanishing, False):
            path.unlink()
        return path.read_bytes()

    assert opened(bucket, ref, read) == b"abc"
    [copy] = copies(cache)
    copy.write_bytes(b"cut")  # as long as it was: nobody but this user can have done that
    copy.write_bytes(b"ab")
    assert read_file(bucket, ref) == b"abc"


@pytest.mark.parametrize("fault", ["busy", "delay", "cut", "lost"])
def test_a_flaky_store_is_asked_again(store: Store, bucket: Bucket, fault: str) -> None:
    faults = Faults(lambda request: fault if request.number % 3 == 1 else None)
    with through(store, faults) as address:
        flaky = another(bucket, options_for(address))
        refs = [write_file(flaky, f"tables/t/{i}.arrow", [bytes([i]) * 300_000]) for i in range(8)]
        flaky.publish(temporary=True)
        reader = another(bucket, options_for(address))
        reader._cache = NodeCache(flaky.cache.folder / "another", 1 << 30)
        assert [read_file(reader, ref)[:1] for ref in refs] == [bytes([i]) for i in range(8)]


def test_a_put_may_take_as_long_as_its_bytes_do(
    store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a second is too long for a small object here, not for a large one, unless somebody says so."""
    monkeypatch.setattr(objects, "STALLED_S", 0.25)
    monkeypatch.setattr(objects, "SLOWEST", 1 << 20)
    large = bytes(objects.STEP_BYTES + 1)
    with through(store, Faults(lambda request: "delay" if request.method == "PUT" else None)) as address:
        slow = another(bucket, options_for(address))
        assert slow.put_new("large", large)
        assert not slow.put_new("large", large)
        with pytest.raises(StoreError, match="cannot write 'small'"):
            slow.put_new("small", b"")
        hurried = another(bucket, {**options_for(address), "timeout": "250ms"})
        with pytest.raises(StoreError, match="cannot write 'other'"):
            hurried.put_new("other", large)


def test_variables_of_the_environment_count_besides_options(
    store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in bucket.options.items():
        monkeypatch.setenv(name.upper(), value)
    for options in ({}, {"connect_timeout": "20s"}):
        Bucket(bucket.url, options).put("x", b"")
    monkeypatch.setenv("AWS_TIMEOUT", "10ms")
    with through(store, Faults(lambda request: "delay")) as address:
        with pytest.raises(StoreError, match="cannot write 'y'"):
            Bucket(bucket.url, {"aws_endpoint_url": address}).put_new("y", b"")
        assert Bucket(bucket.url, {"aws_endpoint_url": address, "timeout": "1m"}).put_new("z", b"")


def test_a_file_whose_answer_comes_too_late_is_put_again(store: Store, bucket: Bucket) -> None:
    late = iter([True])
    faults = Faults(lambda request: "delay" if request.method == "PUT" and next(late, False) else None)
    with through(store, faults) as address:
        hurried = another(bucket, {**options_for(address), "aws_timeout": "400ms"})
        ref = write_file(hurried, "tables/t/a.arrow", [b"content"])
        hurried.publish(temporary=True)
        assert faults.counted("PUT") == 2
    assert read_file(another(bucket), ref) == b"content"


def test_a_store_that_is_not_there(cache: Path) -> None:
    gone = Bucket("s3://box/ws", {**options_for("http://127.0.0.1:9"), "timeout": "1s"})
    with pytest.raises(StoreError, match=r"^cannot read 'x' in 's3://box/ws': .* Nothing was applied"):
        gone.content("x")


def test_unknown_options() -> None:
    with pytest.raises(StoreError, match="cannot open the store of 's3://box/ws'"):
        Bucket("s3://box/ws", {"aws_wrong": "x"})


AZURE = {"azure_storage_account_name": "x", "azure_storage_account_key": "eA=="}


@pytest.mark.parametrize("url", ["s3://box", "gs://box", "az://box"])
def test_options_of_another_cloud_are_for_stores_there(url: str) -> None:
    """A mapping may reach the workspace in one cloud, and sources in others."""
    Bucket(url, {"aws_region": "us-east-1", "google_skip_signature": "true", **AZURE})


def test_sources_use_the_options_that_were_given_last(store: Store) -> None:
    other = {**store.options, "aws_access_key_id": "another"}
    try:
        use_options(store.options)
        source, workspace = bucket_of("s3://box"), bucket_of("s3://box/ws")
        given = bucket_of("s3://third", store.options)
        use_options(dict(store.options))
        assert bucket_of("s3://box") is source
        use_options(other)
        assert bucket_of("s3://box").options == other
        assert (bucket_of("s3://box/ws"), bucket_of("s3://third")) == (workspace, given)
        assert bucket_of("s3://box/ws") is workspace
        assert bucket_of("s3://third") is given
    finally:
        forget()


def test_credentials_are_granted_as_a_set(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task with a key of its own gets no token of the driver's; regions and the like are no credentials."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_SERVER_SIDE_ENCRYPTION")
    for name in (*names, "AWS_REGION"):
        monkeypatch.setenv(name, f"the driver's {name}" if name != names[3] else "AES256")
    try:
        bucket_of(bucket.url, bucket.options)
        [reach] = reaches()
        assert reach.environment.keys() >= {*names, "AWS_REGION"}
        forget()
        for name in names:
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "its own")
        monkeypatch.setenv("AWS_REGION", "its own")
        grant([reach])
        assert [os.environ.get(name) for name in names] == ["its own", None, None, "AES256"]
        assert os.environ["AWS_REGION"] == "its own"
        forget()
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        grant([reach])
        assert [os.environ.get(name) for name in names[:3]] == [f"the driver's {name}" for name in names[:3]]
    finally:
        forget()
        for name in names:
            os.environ.pop(name, None)  # `grant` is meant to leave them


def test_a_cache_that_nobody_bounds_leaves_as_much_to_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a disk of 1,000 bytes, whatever part of that the copies take already."""
    folder = tmp_path / "cache"

    def usage(_: object) -> SimpleNamespace:
        taken = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return SimpleNamespace(free=1_000 - taken)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    for i in range(4):
        cache = NodeCache(folder, None)
        cache.fetched(f"key {i}", 100, lambda path: path.write_bytes(bytes(100)))
        assert cache.limit() == 500
    assert len(copies(folder)) == 4


def test_a_store_that_ignores_conditions_is_found_out(store: Store, bucket: Bucket) -> None:
    bucket.probe()
    bucket.probe()
    with through(store, Faults(lambda request: "blind")) as address:
        blind = Bucket(f"{bucket.url}-blind", options_for(address))
        with pytest.raises(WorkspaceError, match="ignores the condition of a put"):
            blind.probe()


def test_whether_there_is_a_log_is_one_page_of_its_listing(store: Store, bucket: Bucket) -> None:
    """A listing has pages of 1,000 names."""
    assert not has_log(bucket)
    names = [f"ledger/_delta_log/{i:020d}.json" for i in range(1_001)]
    bucket.side_by_side(lambda name: bucket.put(name, b""), names)
    with through(store, faults := Faults()) as address:
        assert has_log(another(bucket, options_for(address)))
        assert len(faults.seen) == 1
    bucket.remove(names)
    bucket.put("ledger/_delta_log/other", b"")
    assert not has_log(bucket)


def test_an_object_as_a_file(bucket: Bucket) -> None:
    content = bytes(range(256)) * 40
    bucket.put("x", content)
    file = ObjectFile(bucket, "x")
    assert file.read(10) == content[:10]
    assert file.seek(-5, os.SEEK_END) == len(content) - 5
    assert file.read(10) == content[-5:]
    assert file.read(10) == b""
    assert file.seek(3) == file.tell() == 3
    assert file.seek(4, os.SEEK_CUR) == 7
    assert file.read() == content[7:]
    with pytest.raises(FileNotFoundError):
        ObjectFile(bucket, "y")


def test_folders_are_removed_with_what_was_to_be_published_there(bucket: Bucket) -> None:
    write_file(bucket, "staging/a/x", [b"1"])
    bucket.publish(temporary=True)
    write_file(bucket, "staging/a/y", [b"2"])
    ref = write_file(bucket, "staging/b/z", [b"3"])
    bucket.remove_folder("staging/a")
    bucket.publish(temporary=True)
    assert [entry.name for entry in bucket.entries("staging")] == ["staging/b/z"]
    assert read_file(bucket, ref) == b"3"
    bucket.remove(["staging/b/z", "staging/b/gone"])
    assert bucket.entries("") == []


# --- the cache of a machine -------------------------------------------------------------------------------


def fill(cache: NodeCache, key: str, n: int) -> Path:
    return cache.fetched(key, n, lambda path: path.write_bytes(b"x" * n) and None)


def test_the_copies_used_longest_ago_go(tmp_path: Path) -> None:
    cache = NodeCache(tmp_path, 1_000)
    paths = [fill(cache, str(i), 100) for i in range(9)]
    for i, path in enumerate(paths):
        os.utime(path, (i, i))
    assert cache.look("0", 100) == paths[0]  # used just now
    fill(cache, "more", 150)
    left = [i for i in range(9) if paths[i].exists()]
    assert left == [0, 4, 5, 6, 7, 8]  # 850 bytes with the new one
    assert fill(cache, "too large for it", 5_000).exists()  # what is asked for is there all the same
    assert not any(path.exists() for path in paths)


def test_a_copy_that_is_cut_as_it_is_read_again_is_damage(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its length and its map."""
    monkeypatch.setattr(files, "_MMAP_FROM", 1)
    ref = write_file(bucket, "tables/t/a.arrow", [b"x" * 10_000])
    bucket.publish(temporary=False)
    local = Bucket.local

    def cut(self: Bucket, asked: FileRef) -> Path:
        path = local(self, asked)
        os.truncate(path, 5_000)
        return path

    assert check_file(bucket, ref, deep=True, fresh=True).stat().st_size == ref.length
    monkeypatch.setattr(Bucket, "local", cut)
    with pytest.raises(DamagedFileError, match=r"the copy of .*a\.arrow.* has been altered since it came"):
        check_file(bucket, ref, deep=True, fresh=True)
    monkeypatch.undo()
    assert check_file(bucket, ref, deep=True, fresh=True).stat().st_size == ref.length


def test_a_copy_of_another_length_is_none(tmp_path: Path) -> None:
    cache = NodeCache(tmp_path, 1_000)
    path = fill(cache, "a", 5)
    path.write_bytes(b"xx")
    assert cache.look("a", 5) is None
    assert fill(cache, "a", 5) == path


def test_a_fetch_that_fails_leaves_nothing(tmp_path: Path) -> None:
    cache = NodeCache(tmp_path, 1_000)

    def fail(path: Path) -> None:
        path.write_bytes(b"half")
        raise ConnectionError

    with pytest.raises(ConnectionError):
        cache.fetched("a", 9, fail)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"] == []


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "HOLDFAST_CACHE",
        "HOLDFAST_CACHE_BYTES",
        "SPARK_LOCAL_DIRS",
        "SPARK_EXECUTOR_DIRS",
        "LOCAL_DIRS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert node_cache().folder.parent == tmp_path / "xdg"
    (tmp_path / "spark").mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"/not/there,{tmp_path / 'spark'}")
    assert node_cache().folder.parent == tmp_path / "spark"
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "mine"))
    monkeypatch.setenv("HOLDFAST_CACHE_BYTES", "12345")
    chosen = node_cache()
    assert (chosen.folder, chosen.limit()) == (tmp_path / "mine", 12345)
    (tmp_path / "mine").chmod(0o777)
    with pytest.raises(WorkspaceError, match="which HOLDFAST_CACHE names, cannot be used: others can write"):
        node_cache()
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("HOLDFAST_CACHE_BYTES", "2 GB")
    with pytest.raises(UsageError, match="HOLDFAST_CACHE_BYTES is '2 GB'"):
        node_cache()
