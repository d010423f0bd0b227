"""A workspace on an object store is like one in a folder: by the same story, raced for, killed.

On S3, and on Azure where there is a server of that kind; some of it as Google's clients ask for it.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import uuid
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue
from typing import Any

import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import holdfast
from holdfast.core.store import bucket as buckets
from holdfast.core.store import compaction, litter
from holdfast.core.store.bucket import Bucket, bucket_of
from holdfast.core.store.node_cache import NodeCache
from holdfast.errors import AbsentRowError, DamagedFileError, HoldfastError, WorkspaceError
from trust import store_operations, story
from trust.object_store import Faults, Request, Store, served_azure, served_gcs, through, why_no_azure
from trust.store_operations import OPERATIONS, ROUNDS, facts, rows

pytestmark = pytest.mark.xdist_group("store")
TESTS = Path(__file__).resolve().parents[1]
WAIT_S = 900.0  # for a process that only takes so long where the machine has stopped


@pytest.fixture(scope="module", params=["s3", "azure"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store of each kind with a bucket `box`."""
    if request.param == "s3":
        yield request.getfixturevalue("store_of_s3")
        return
    if request.param == "azure" and (reason := why_no_azure()):
        pytest.skip(reason)
    with served_azure() if request.param == "azure" else served_gcs() as other:
        other.new_bucket("box")
        yield other


every_store = pytest.mark.parametrize("store", ["s3", "azure", "gcs"], indirect=True)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return story.write_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, sources: Path) -> list[Any]:
    """The story of a folder."""
    return story.tell(tmp_path_factory.mktemp("told") / "ws", sources, engine="inline")


@pytest.fixture
def url(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A place for a workspace, and an empty cache; what is known of stores is forgotten after."""
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "cache"))
    yield f"{store.scheme}://box/{uuid.uuid4().hex}"
    buckets.forget()


@every_store
def test_the_same_story(url: str, store: Store, sources: Path, told: list[Any]) -> None:
    story.upload(sources, Bucket(f"{url}/sources", store.options))
    facts = story.tell(f"{url}/ws", f"{url}/sources", engine="inline", storage_options=store.options)
    assert facts == told
    written = bucket_of(f"{url}/ws")
    staged = [entry.name for entry in written.entries("staging")]
    assert staged == ["staging/tidied"]
    assert not any(store.secret in written.content(entry.name) for entry in written.entries(""))


def test_the_same_story_on_spark(
    url: str, store: Store, sources: Path, told: list[Any], spark: SparkSession
) -> None:
    story.upload(sources, Bucket(f"{url}/sources", store.options))
    facts = story.tell(
        f"{url}/ws",
        f"{url}/sources",
        frame=spark.createDataFrame,
        engine="spark",
        spark=spark,
        storage_options=store.options,
    )
    assert facts == told
    assert [e.name for e in bucket_of(f"{url}/ws").entries("staging")] == ["staging/tidied"]


@pytest.mark.parametrize("every", [37, pytest.param(11, marks=pytest.mark.slow)])
def test_a_flaky_store_changes_nothing(
    url: str, store: Store, sources: Path, told: list[Any], every: int
) -> None:
    """Now and then a request is answered late, with a 503, with half of a body, or not at all."""
    kinds = ("busy", "cut", "lost", "delay")

    def choose(request: Request) -> str | None:
        return kinds[request.number // every % len(kinds)] if request.number % every == 3 else None

    story.upload(sources, Bucket(f"{url}/sources", store.options))
    with through(store, Faults(choose)) as address:
        how = {"engine": "inline", "storage_options": store.options_at(address)}
        assert story.tell(f"{url}/ws", f"{url}/sources", **how) == told


@every_store
@pytest.mark.parametrize("kind", ["busy", "cut", "lost"])
def test_a_removal_of_many_is_asked_for_again(url: str, store: Store, kind: str) -> None:
    """It is a POST on some stores, which clients ask once."""
    names = [f"some/{i}" for i in range(5)]
    with through(store, faults := Faults()) as address:
        bucket = Bucket(url, store.options_at(address))
        for name in (*names, "some/other"):
            bucket.put(name, b"x")
        before = len(faults.seen)
        faults.choose = lambda request: kind if request.number < before + 2 else None
        bucket.remove(names)
        assert [entry.name for entry in bucket.entries("some")] == ["some/other"]


def written(folder: Path, name: str) -> list[Path]:
    """The files of a source that has this name or pattern."""
    table = story.orders(90, 1)
    text = story.csv_text(table).encode()
    lines = "".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode()
    folder.mkdir()
    path = folder / name.replace("*", "1")
    match name.partition(".")[2]:
        case "csv.gz":
            path.write_bytes(gzip.compress(text))
        case "csv.zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("rows.csv", text)
        case "jsonl":
            path.write_bytes(lines)
        case "jsonl.gz":
            path.write_bytes(gzip.compress(lines))
        case "arrow" | "feather" as compressed:
            feather.write_feather(
                table, path, compression="lz4" if compressed == "feather" else "uncompressed"
            )
        case "parquet" if "*" in name:
            for i in range(3):
                pq.write_table(table.slice(30 * i, 30), folder / name.replace("*", str(i)))
            pq.write_table(table, folder / "other.parquet")  # the pattern does not mean it
        case "parquet":
            pq.write_table(table, path, row_group_size=40)
    return sorted(folder.iterdir())


SOURCES = ("rows.csv.gz", "rows.csv.zip", "rows.jsonl", "rows.jsonl.gz", "rows.arrow", "rows.feather")


@pytest.mark.parametrize("name", [*SOURCES, "rows.parquet", "rows-*.parquet"])
def test_a_source_on_a_store_is_read_as_one_in_a_folder(
    url: str, store: Store, tmp_path: Path, name: str
) -> None:
    for path in written(tmp_path / "files", name):
        Bucket(f"{url}/files", store.options).put(path.name, path.read_bytes())
    with holdfast.open(f"{url}/ws", engine="inline", storage_options=store.options) as ws:
        ws.track("there", f"{url}/files/{name}", row_key=("id",))
        ws.track("here", str(tmp_path / "files" / name))
        assert ws.schema("there").to_dict() == ws.schema("here").to_dict()
        there, here = (ws.violations(table, "id < 0").to_arrow() for table in ("there", "here"))
        assert there.num_rows == 90
        assert there.equals(here)
        ws.apply("there", deletes=f"{url}/files/{name}")
        assert ws.n_rows("there") == 0


@pytest.mark.parametrize("name", ["rows-*.parquet", "rows-*.arrow"])
def test_lengths_are_those_of_the_listing(url: str, store: Store, tmp_path: Path, name: str) -> None:
    """A task asks for the length of its file, which may have changed; nobody else does."""
    [path, *_] = written(tmp_path / "files", name.replace("-*", ""))
    for i in range(5):
        Bucket(f"{url}/files", store.options).put(name.replace("*", str(i)), path.read_bytes())
    buckets.forget()
    with through(store, faults := Faults()) as address:
        options = store.options_at(address)
        with holdfast.open(f"{url}/ws", engine="inline", storage_options=options) as ws:
            ws.track("t", f"{url}/files/{name}", kinds=("ucc",))
            assert ws.n_rows("t") == 450
    assert faults.counted("HEAD", "/files/rows-") == 5


def test_a_store_that_goes_away_is_one_clear_error(url: str, store: Store) -> None:
    broken = threading.Event()
    faults = Faults(lambda request: "busy" if broken.is_set() else None)
    with contextlib.ExitStack() as stack:
        options = store.options_at(stack.enter_context(through(store, faults)))
        ws = stack.enter_context(holdfast.open(url, engine="inline", storage_options=options))
        ws.track("t", rows(0, 10))
        broken.set()
        with pytest.raises(HoldfastError) as caught:
            ws.apply("t", inserts=rows(10, 5))
        assert "://box/" in str(caught.value)
        broken.clear()
        assert (ws.version, ws.n_rows("t")) == (1, 10)
        ws.apply("t", inserts=rows(10, 5))
        assert (ws.version, ws.n_rows("t"), ws.verify() > 0) == (2, 15, True)


def test_a_commit_asks_for_no_file_that_was_named_before(
    url: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no file has a copy: what was named before stays, and requests would grow with the table."""
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10), kinds=("ucc", "fd"))
        ws.apply("t", inserts=rows(10, 5))
        assert len(bucket_of(url).entries("tables")) > 5
    buckets.forget()
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "another"))
    with through(store, faults := Faults()) as address:
        with holdfast.open(url, engine="inline", storage_options=store.options_at(address)) as ws:
            ws.mute("t", [next(iter(ws.schema("t").names))])
        assert faults.counted("PUT") > 1
        assert not faults.counted("HEAD", "/tables/")


def test_what_a_refused_batch_has_written_is_never_sent(url: str, store: Store) -> None:
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10), kinds=("ucc", "fd"))
        ws.pin("t", [next(iter(ws.schema("t").names))])
        with pytest.raises(holdfast.GateError):
            ws.apply("t", inserts=rows(0, 5), fail_on="error")
        ws.apply("t", inserts=rows(10, 5))
        named = {ref.name for row in ws.ledger.states() for ref in litter.named_files(row.state)}
        assert {entry.name for entry in bucket_of(url).entries("tables")} == named
        assert not list((bucket_of(url).cache.folder / "under-way").iterdir())


def test_a_commit_names_no_object_that_is_not_there(
    url: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file that a task has put, on another machine, there is no copy here."""
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10))
        append = ws.writer.append

        def interrupted(*args: Any) -> int:
            bucket = bucket_of(url)
            before = {entry.name for entry in bucket.entries("tables")}
            bucket.publish(temporary=True)
            bucket.cache.folder.rename(tmp_path / "moved")
            NodeCache(bucket.cache.folder, None)
            after = {entry.name for entry in bucket.entries("tables")} - before
            bucket.remove([name for name in after if "/segment-" in name])
            return append(*args)

        monkeypatch.setattr(ws.writer, "append", interrupted)
        with pytest.raises(DamagedFileError, match=r"segment-.* is gone or cut short\. Nothing was applied"):
            ws.apply("t", inserts=rows(10, 5))
        monkeypatch.undo()
        assert ws.apply("t", inserts=rows(10, 5)).version == 2


@every_store
def test_a_store_that_ignores_conditions_is_refused(url: str, store: Store) -> None:
    ignored = pytest.raises(WorkspaceError, match="ignores the condition of a put")
    with through(store, Faults(lambda request: "blind")) as address, ignored:
        holdfast.open(url, engine="inline", storage_options=store.options_at(address))
    assert [entry.name for entry in Bucket(url, store.options).entries("")] == ["conditional-put"]


def test_a_workspace_that_comes_to_such_a_store_is_refused(url: str, store: Store) -> None:
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10))
    ignored = pytest.raises(WorkspaceError, match="ignores the condition of a put")
    with through(store, Faults(lambda request: "blind")) as address, ignored:
        holdfast.open(url, engine="inline", storage_options=store.options_at(address))


def test_a_place_with_other_things_in_it_is_refused(url: str, store: Store) -> None:
    Bucket(url, store.options).put("notes.txt", b"")
    with pytest.raises(WorkspaceError, match=r"is not empty: it holds notes.txt"):
        holdfast.open(url, engine="inline", storage_options=store.options)
    with pytest.raises(WorkspaceError, match="there is no workspace"):
        holdfast.open(f"{url}/x", create=False, storage_options=store.options)
    with pytest.raises(WorkspaceError, match="names a whole store"):
        holdfast.open(f"{store.scheme}://box/", storage_options=store.options)


def test_damage_is_found(url: str, store: Store) -> None:
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10))
        files = [e.name for e in bucket_of(url).entries("tables")]
        for name in files:
            content = bucket_of(url).content(name)
            bucket_of(url).put(name, content[:-1] + bytes([content[-1] ^ 1]))
            with pytest.raises(DamagedFileError, match="has been altered"):
                ws.verify()
            bucket_of(url).remove([name])
            with pytest.raises(DamagedFileError, match="is missing"):
                ws.verify()
            bucket_of(url).put(name, content)
        assert ws.verify() > len(files)


@every_store
def test_the_newest_entry_of_the_log_cannot_be_lost_unnoticed(url: str, store: Store) -> None:
    """Without it the log is the sound log of the version before; what is kept of it is the same."""

    def opened() -> holdfast.Workspace:
        buckets.forget()
        return holdfast.open(url, engine="inline", storage_options=store.options)

    with opened() as ws:
        ws.track("t", rows(0, 10))
        ws.apply("t", inserts=rows(10, 5))
        bucket = bucket_of(url)
        entries = sorted(e.name for e in bucket.entries("ledger/_delta_log") if e.name.endswith(".json"))
        newest = entries[-1]
        copy = newest.replace("_delta_log", "_newest")
        content = bucket.content(newest)
        assert bucket.content(copy) == content
        lost = pytest.raises(DamagedFileError, match=f"{newest}.* is missing, and with it the newest version")
        bucket.remove([newest])
        with lost:
            ws.verify()
    with lost:
        opened()
    bucket_of(url).copy(copy, newest)
    with opened() as ws:
        assert (ws.version, ws.n_rows("t")) == (2, 15)
        # Who was killed between an entry and its copy causes no alarm, and whoever comes next makes the copy.
        bucket_of(url).remove([copy])
        assert ws.verify()
    with opened() as ws:
        assert bucket_of(url).content(copy) == content
        # Copies that a newer one stands for are litter.
        assert len(bucket_of(url).entries("ledger/_newest")) > 1
        litter.remove_litter(ws.root, ws.ledger, grace_s=0)
        assert [e.name for e in bucket_of(url).entries("ledger/_newest")] == [copy]
        assert (ws.version, ws.verify() > 0) == (2, True)


def test_objects_are_verified_side_by_side(url: str, store: Store) -> None:
    """Nobody gets an answer before two have asked."""
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10), kinds=("ucc", "fd"))
        ws.apply("t", inserts=rows(10, 10))
        n_files = ws.verify()
    waiting: list[str] = []
    both, first = threading.Barrier(2), threading.BoundedSemaphore(2)

    def choose(request: Request) -> str | None:
        if request.method == "GET" and "/tables/" in request.path and first.acquire(blocking=False):
            waiting.append(request.path)
            both.wait(timeout=60)
        return None

    buckets.forget()
    with (
        through(store, Faults(choose)) as address,
        holdfast.open(url, engine="inline", storage_options=store.options_at(address)) as ws,
    ):
        assert ws.verify() == n_files
    assert not both.broken
    assert len(set(waiting)) == 2  # and not the same again, by a client that waits no longer


def test_a_copy_that_rots_is_not_merged(url: str, store: Store) -> None:
    """It was hashed when it came, and is read again before it becomes part of something new."""
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10), kinds=("ucc", "ind"))
        ws.apply("t", inserts=rows(10, 10))
        state = ws.writer.tables.state("t")
        generator = ws.inds.generator()
        assert generator is not None
        version = ws.version
        for ref in (state.segments[0].file, generator.runs[0].files()[0]):
            copy = bucket_of(url).local(ref)
            content = copy.read_bytes()
            copy.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
            with pytest.raises(DamagedFileError, match=r"the copy of .* has been altered"):
                ws.merge("t")
            copy.write_bytes(content)
        assert ws.version == version
        ws.merge("t")
        assert ws.n_rows("t") == 20


def test_an_audit_and_a_row_that_is_not_there_copy_nothing(
    url: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked of a table, what that does not take stays where it is."""
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10), kinds=("ucc", "fd", "ind"))
        ws.apply("t", inserts=rows(10, 10))
        state = ws.writer.tables.state("t")
        files = list(litter.named_files(state.to_dict()))
    buckets.forget()
    monkeypatch.setenv("HOLDFAST_CACHE", str(tmp_path / "empty"))
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        assert ws.verify() > len(files)
        assert not any(bucket_of(url).is_near(ref) for ref in files)
        with pytest.raises(AbsentRowError):
            ws.apply("t", deletes=rows(90, 1))
        indexes = [ref for ref in files if "/index-" in ref.name]
        assert indexes
        assert not any(bucket_of(url).is_near(ref) for ref in indexes)


@contextlib.contextmanager
def launched(
    operation: str, url: str, name: str, folder: Path, *, store: Store, address: str
) -> Iterator[subprocess.Popen[str]]:
    """A process that does an operation; its cache is in the folder, too. It does not outlive the test."""
    environment = {
        **os.environ,
        **store.environment_at(address),
        "HOLDFAST_CACHE": str(folder / f"cache-{operation}-{name}"),
        "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path]),
    }
    command = [sys.executable, store_operations.__file__, operation, url, name, str(folder)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake"


@pytest.fixture
def built(url: str, store: Store, lake: Path) -> str:
    """A workspace with two tables, one of which refers to the other, and a lake."""
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        store_operations.build(ws, lake)
    return url


def raced(names: Sequence[str], url: str, store: Store, folder: Path) -> None:
    """Processes that do what their names say, all at once."""
    with contextlib.ExitStack() as stack:
        started = [launched("race", url, n, folder, store=store, address=store.address) for n in names]
        for racer in [stack.enter_context(one) for one in started]:
            _, errors = racer.communicate(timeout=WAIT_S)
            assert racer.returncode == 0, errors


@every_store
def test_two_drivers_race_for_one_table(url: str, store: Store, lake: Path) -> None:
    with holdfast.open(url, engine="inline", storage_options=store.options) as ws:
        ws.track("t", rows(0, 10), kinds=("ucc", "fd"))
        raced(("one", "two"), url, store, lake)
        assert (ws.version, ws.n_rows("t")) == (1 + 2 * ROUNDS, 10 + 20 * ROUNDS)
        assert [str(d) for d in ws.dependencies("ucc")] == ["t[id]"]
        assert ws.verify() > 0


def test_drivers_race_by_all_that_they_do(built: str, store: Store, lake: Path) -> None:
    """By batches to one table and to two, by merging, by tables that come and go."""
    raced(("one", "merge", "drop", "all"), built, store, lake)
    with holdfast.open(built, engine="inline", storage_options=store.options) as ws:
        assert {table: ws.n_rows(table) for table in ws.tables()} == {
            "t": 10 + 20 * ROUNDS,
            "u": 5 + 10 * ROUNDS,
        }
        assert [str(d) for d in ws.dependencies("ucc")] == ["t[id]", "u[id]"]
        assert "u[id] in t[id]" in map(str, ws.dependencies("ind"))
        actions = Counter(entry.action for entry in ws.log())
        assert [entry.version for entry in ws.log()] == list(range(1, ws.version + 1))
        assert (actions["apply"], actions["drop"]) == (2 + 2 * ROUNDS, ROUNDS)
        assert ws.verify() > 0


@dataclass
class Killing:
    """A writer is killed at requests of an operation: all of it is there then, or nothing of it; and doing it
    again does what is left to do."""

    operation: str
    after: bool  # the store has seen the request
    url: str
    store: Store
    folder: Path
    states: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with self.opened() as ws:
            self.states["after"] = self.done(ws, "calm")
            self.states["before"] = self.undone(ws)
        assert self.states["before"] != self.states["after"]

    def opened(self) -> holdfast.Workspace:
        return holdfast.open(self.url, engine="inline", storage_options=self.store.options)

    def done(self, ws: holdfast.Workspace, name: str) -> dict[str, Any]:
        OPERATIONS[self.operation].act(ws, name, self.folder)
        return facts(ws)

    def undone(self, ws: holdfast.Workspace) -> dict[str, Any]:
        OPERATIONS[self.operation].undo(ws)
        return facts(ws)

    def at(self, due: Callable[[Request], bool], name: str) -> str | None:
        """The state that a writer left that died at a request; None if it lived."""
        writers: Queue[subprocess.Popen[str]] = Queue()

        def strike(request: Request) -> str | None:
            if not due(request):
                return None
            writer = writers.get()  # it may ask before this process knows it
            writer.send_signal(signal.SIGKILL)
            writer.wait()
            writers.put(writer)
            return "busy"  # the store is not asked

        faults = Faults(on_answer=strike) if self.after else Faults(choose=strike)
        with contextlib.ExitStack() as stack:
            address = stack.enter_context(through(self.store, faults))
            writing = launched(self.operation, self.url, name, self.folder, store=self.store, address=address)
            writer = stack.enter_context(writing)
            writers.put(writer)
            _, errors = writer.communicate(timeout=WAIT_S)
        killed = writer.returncode == -signal.SIGKILL
        assert killed or writer.returncode == 0, errors
        with self.opened() as ws:
            left = next((state for state, is_so in self.states.items() if is_so == facts(ws)), None)
            assert left is not None, f"something between before and after: {facts(ws)}"
            ws.verify()
            assert self.done(ws, name) == self.states["after"]
            assert self.undone(ws) == self.states["before"]
            ws.verify()
        return left if killed else None


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_a_put(built: str, store: Store, lake: Path, after: bool) -> None:
    """Of a table's file, and of the log entry: that one alone turns before into after."""
    killing, left = Killing("apply", after, built, store, lake), []
    for place in ("/tables/", "/_delta_log/"):

        def due(request: Request, place: str = place) -> bool:
            return request.method == "PUT" and place in request.path

        left.append(killing.at(due, place.strip("/")))
    assert left == ["before", "after" if after else "before"]
    with holdfast.open(built, engine="inline", storage_options=store.options) as ws:
        ws.tidy(grace_s=0)
        ws.verify()


@pytest.mark.slow
@pytest.mark.parametrize("store", ["s3"], indirect=True)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_killed_at_every_request(
    built: str,
    store: Store,
    lake: Path,
    operation: str,
    after: bool,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Of a batch; of what else there is at every eighth one, and behind those that follow them."""
    # This process keeps the ledger short: else opening it took more requests with every version, and the
    # next request of the operation would never come.
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 2)
    monkeypatch.setattr(compaction, "CHECKPOINT_EVERY", 1)
    killing, left = Killing(operation, after, built, store, lake), Counter[str]()
    for n in range(3 + after, 1000, 1 if operation == "apply" else 8):

        def due(request: Request, n: int = n) -> bool:
            return request.number == n

        state = killing.at(due, f"{n}-{after}")
        if state is None:
            break
        left[state] += 1
    assert n < 999
    assert left["before"]
    record_property("kills", left.total())
    with holdfast.open(built, engine="inline", storage_options=store.options) as ws:
        assert ws.tidy(grace_s=0) > 0 or operation in ("pin", "mute")  # what the dead have left
        ws.verify()
