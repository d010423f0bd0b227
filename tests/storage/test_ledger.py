"""The ledger: versions without gaps, commits whole, writers in single file, damage named.

The tests with several writers run real processes: conflicts inside one process would also be
caught by the lock of a `Ledger`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import CommitFailedError

from holdfast.core.store import compaction, delta_log, ledger_files
from holdfast.core.store import ledger as module
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_files import LedgerFiles
from holdfast.core.store.ledger_rows import SHARED, ChangeRow, CommitRow, to_parquet
from holdfast.errors import ConflictError, DamagedFileError, WorkspaceError

KEY = {"kind": "ucc", "table": "orders", "columns": ["a", "b"]}
WITNESSES = [[{"row": 1, "values": {"a": "ü", "b": None}}, {"row": 7, "values": {"a": "ü", "b": None}}]]

# Appends until it is done or killed. Version v has v % 4 changes and two commit rows, and says so.
WRITER = """
import sys
from pathlib import Path
from holdfast.errors import ConflictError
from holdfast.core.store import compaction
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow

root, who, n_commits, every = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
compaction.COMPACT_EVERY = every
compaction.CHECKPOINT_EVERY = 5
print("ready", flush=True)
sys.stdin.readline()
ledger = Ledger.create(root)
done = conflicts = 0
while done < n_commits:
    base = ledger.version
    n = (base + 1) % 4
    changes = [ChangeRow(who, "ucc", "broke", {"kind": "ucc", "i": i}) for i in range(n)]
    detail = {"n_changes": n, "n_commits": 2}
    commit = CommitRow(who, "apply", {"x": "y" * 2000}, detail, f"{who}-{done}")
    try:
        ledger.append(base, [commit, CommitRow("", "apply", {"of": who}, detail)], changes)
        done += 1
    except ConflictError:
        conflicts += 1
print(conflicts, flush=True)
"""


Start = Callable[[Path, str, int, int], subprocess.Popen[str]]


@pytest.fixture
def start_writer() -> Iterator[Start]:
    """Starts writers (root, name, number of commits, compact every); none outlives the test."""
    started: list[subprocess.Popen[str]] = []

    def start(root: Path, who: str, n_commits: int, compact_every: int) -> subprocess.Popen[str]:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), who, str(n_commits), str(compact_every)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(writer)
        return writer

    yield start
    for writer in started:
        writer.kill()
        if writer.stdout is not None and not writer.stdout.closed:
            writer.communicate()


def release(writers: list[subprocess.Popen[str]]) -> None:
    """Let started writers go, all at once."""
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n", writer.communicate()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()


def assert_whole(ledger: Ledger) -> None:
    """Versions are 1, 2, 3 ... and each has all the commit rows and changes that it says it has."""
    commits = ledger.commits()
    n_versions = commits[-1].version if commits else 0
    n_commits = Counter(commit.version for commit in commits)
    n_changes = Counter(change.version for change in ledger.changes(until=n_versions))
    assert list(n_commits) == list(range(1, n_versions + 1))
    for commit in commits:
        version = commit.version
        assert commit.detail is not None
        assert n_changes[version] == commit.detail["n_changes"] == version % 4
        assert n_commits[version] == commit.detail.get("n_commits", 1)


def fill(ledger: Ledger, n_commits: int, table: str = "orders") -> None:
    for _ in range(n_commits):
        base = ledger.version
        n = (base + 1) % 4
        commit = CommitRow(table, "apply", {"segments": [base]}, {"n_changes": n}, f"batch-{base + 1}")
        ledger.append(base, [commit], [ChangeRow(table, "ucc", "appeared", {"i": i}) for i in range(n)])


def names_at(version: int) -> list[str]:
    """The tables that `fill_several` changes in a version, in order: one to three, then what they share."""
    return [f"t{(version + i) % 5}" for i in range(1 + version % 3)] + [SHARED]


def fill_several(ledger: Ledger, n_versions: int) -> None:
    for _ in range(n_versions):
        version = ledger.version + 1
        names = names_at(version)
        detail = {"n_changes": version % 4, "n_commits": len(names)}
        commits = [
            CommitRow(name, "apply", {"at": version, "of": name}, detail, f"batch-{version}")
            for name in names
        ]
        changes = [ChangeRow(names[i % 2], "ucc", "appeared", {"i": i}) for i in range(version % 4)]
        assert ledger.append(version - 1, commits, changes) == version


def data_files(root: Path) -> set[str]:
    return {p.name for p in (root / "ledger").glob("*.parquet")}


# -- what is written is read ------------------------------------------------------------------


def test_an_empty_ledger(tmp_path: Path) -> None:
    Ledger.create(tmp_path)
    ledger = Ledger.open(tmp_path)
    assert (ledger.version, ledger.heads(), ledger.commits(), ledger.changes()) == (0, {}, [], [])
    assert ledger.find_batch(["orders"], "x") == {"orders": None}
    with pytest.raises(WorkspaceError, match="has no version 1: it has none yet"):
        ledger.commit_row(1)


def test_round_trip(tmp_path: Path) -> None:
    writer = Ledger.create(tmp_path)
    reader = Ledger.open(tmp_path)
    at = datetime(2026, 2, 3, 4, 5, 6, 789012, tzinfo=UTC)
    state = {"segments": [{"name": "s/1", "rows": 10**12}], "text": 'quote " \\ \n ü 日本'}
    commit = CommitRow("orders", "track", state, {"elapsed_s": 0.25}, "batch-1", at=at)
    changes = [
        ChangeRow("orders", "ucc", "appeared", KEY),
        ChangeRow("orders", "ucc", "broke", {**KEY, "columns": []}, "two rows agree", WITNESSES),
    ]
    assert writer.append(0, [commit], changes) == 1
    expected = CommitRow("orders", "track", state, {"elapsed_s": 0.25}, "batch-1", 1, at, {"orders": 1})
    for ledger in (writer, reader, Ledger.open(tmp_path)):
        assert ledger.version == 1
        assert ledger.commit_row(1) == expected
        assert [(c.kind, c.change, c.dependency, c.reason, c.witnesses) for c in ledger.changes()] == [
            ("ucc", "appeared", KEY, None, None),
            ("ucc", "broke", {**KEY, "columns": []}, "two rows agree", WITNESSES),
        ]
        assert [(c.version, c.at) for c in ledger.changes()] == [(1, at)] * 2
        (slim,) = ledger.commits()
        assert (slim.version, slim.detail, slim.state, slim.heads) == (1, {"elapsed_s": 0.25}, None, None)


def test_what_callers_change_stays_theirs(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    state: dict[str, object] = {"segments": (1, 2)}
    ledger.append(0, [CommitRow("orders", "track", state)], [])
    state["segments"] = "changed"
    for _ in range(2):
        row = ledger.commit_row(1)
        assert row.state == {"segments": [1, 2]}
        row.state["segments"] = "changed"
        ledger.heads()["orders"] = 99
        assert ledger.heads() == {"orders": 1}


def test_heads_follow_each_table(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    for table, action in [("a", "track"), ("b", "track"), ("a", "apply"), ("a", "pin"), ("b", "drop")]:
        ledger.append(ledger.version, [CommitRow(table, action, {})], [])
    assert ledger.heads() == Ledger.open(tmp_path).heads() == {"a": 4}
    assert ledger.heads(3) == {"a": 3, "b": 2}
    assert ledger.heads(0) == {}
    assert [c.version for c in ledger.commits("a")] == [1, 3, 4]


def test_several_tables_in_one_version(tmp_path: Path) -> None:
    """All of it is there at once, for the writer, for a reader that was open and for one that opens."""
    writer, reader = Ledger.create(tmp_path), Ledger.open(tmp_path)
    at = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
    fill(writer, 1, "old")
    commits = [
        CommitRow("a", "track", {"s": 1}, {"n": 1}, "batch", at=at),
        CommitRow("b", "apply", {"s": 2}, None),
        CommitRow(SHARED, "apply", {"values": []}, {"n": 3}),
    ]
    changes = [ChangeRow(table, "ucc", "appeared", {"i": i}) for i, table in enumerate("abba")]
    assert writer.append(1, commits, changes) == 2
    heads = {"old": 1, "a": 2, "b": 2, SHARED: 2}
    expected = [
        CommitRow("a", "track", {"s": 1}, {"n": 1}, "batch", 2, at, heads),
        CommitRow("b", "apply", {"s": 2}, None, "batch", 2, at),
        CommitRow(SHARED, "apply", {"values": []}, {"n": 3}, "batch", 2, at),
    ]
    for ledger in (writer, reader, Ledger.open(tmp_path)):
        assert ledger.version == 2
        assert ledger.heads() == heads
        assert ledger.heads(1) == {"old": 1}
        assert [ledger.commit_row(2, row.table) for row in expected] == expected
        assert ledger.commit_row(2) == expected[0]
        assert list(ledger.states())[1:] == expected
        slim = [replace(row, state=None, heads=None) for row in expected]
        assert ledger.commits()[1:] == slim
        assert [ledger.commits(row.table) for row in slim] == [[row] for row in slim]
        known = {row.table: row for row in slim}
        assert ledger.find_batch([*known, "old"], "batch") == {**known, "old": None}
        assert [(c.table, c.dependency["i"]) for c in ledger.changes(since=1)] == list(
            zip("abba", range(4), strict=True)
        )
        assert [c.dependency["i"] for c in ledger.changes("b", since=1)] == [1, 2]
        assert ledger.changes(SHARED) == []
        assert ledger.verify() == 2
    assert len(data_files(tmp_path)) == 2
    assert (
        sorted(entry.name for entry in (tmp_path / "ledger/_delta_log").glob("*.json"))[-1]
        == f"{2:020d}.json"
    )


def test_rows_of_a_version_by_table(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    fill_several(ledger, 12)
    for reader in (ledger, Ledger.open(tmp_path)):
        for version in (12, *range(1, 13)):
            for name in names_at(version):
                row = reader.commit_row(version, name)
                assert (row.version, row.table, row.state) == (version, name, {"at": version, "of": name})
            assert reader.commit_row(version).table == names_at(version)[0]
        assert [c.table for c in reader.commits()] == [n for v in range(1, 13) for n in names_at(v)]
        for version in range(13):
            newest = {n: v for v in range(1, version + 1) for n in names_at(v)}
            assert reader.heads(version) == newest
        for version in (11, 12):
            with pytest.raises(
                DamagedFileError, match=f"has lost version {version} of the table 'x': no live"
            ):
                reader.commit_row(version, "x")
        with pytest.raises(WorkspaceError, match="has no version 13: it has 1 to 12"):
            reader.commit_row(13, "t1")


def test_a_drop_takes_out_its_own_table(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    ledger.append(0, [CommitRow(name, "track", {}) for name in ("a", "b", SHARED)], [])
    ledger.append(1, [CommitRow("a", "drop"), CommitRow(SHARED, "drop", {"left": ["b"]})], [])
    assert ledger.heads() == {"b": 1}
    ledger.append(2, [CommitRow(SHARED, "apply", {"left": []}), CommitRow("b", "drop")], [])
    for reader in (ledger, Ledger.open(tmp_path)):
        assert reader.heads() == {SHARED: 3}
        assert reader.heads(2) == {"b": 1}
        assert reader.heads(1) == {"a": 1, "b": 1, SHARED: 1}
        assert reader.commit_row(3, "b").state is None
        assert reader.commit_row(3, SHARED).state == {"left": []}
        reader.verify()


def test_the_newest_version_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of all its tables are kept, by whoever wrote or read one of them."""
    ledger = Ledger.create(tmp_path)
    fill_several(ledger, 5)
    reader = Ledger.open(tmp_path)
    assert reader.commit_row(5, "t1").state == {"at": 5, "of": "t1"}
    monkeypatch.setattr(pq, "ParquetFile", None)
    for warm in (ledger, reader):
        assert warm.heads()[SHARED] == 5
        for name in names_at(5):
            assert warm.commit_row(5, name).state == {"at": 5, "of": name}


def test_rows_that_cannot_be_one_version(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    a, b = CommitRow("a", "apply", {}, None, "x"), CommitRow("b", "apply", {}, None, "y")
    at = datetime(2026, 2, 3, tzinfo=UTC)
    for commits, wrong in [
        ([], r"each of another table; these are \[\]"),
        ([a, a], "each of another table"),
        ([a, b], "one batch id and one time"),
        ([replace(a, at=at), replace(b, batch_id="x", at=at.replace(day=4))], "one batch id and one time"),
    ]:
        with pytest.raises(ValueError, match=wrong):
            ledger.append(0, commits, [])
    assert ledger.version == 0
    assert data_files(tmp_path) == set()


def test_filters(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    for v in range(6):
        table = "ab"[v % 2]
        changes = [ChangeRow(table, kind, "appeared", {"v": v + 1}) for kind in ("ucc", "fd")]
        ledger.append(v, [CommitRow(table, "apply", batch_id=f"batch-{v // 2}")], changes)

    def versions(**filters: object) -> list[int]:
        return [c.version for c in ledger.changes(**filters)]  # type: ignore[arg-type]

    assert versions(kind="ucc") == [1, 2, 3, 4, 5, 6]
    assert versions(table="b") == [2, 2, 4, 4, 6, 6]
    assert versions(table="b", kind="fd", since=2) == [4, 6]
    assert versions(since=2, until=4, kind="ucc") == [3, 4]
    assert versions(since=6) == versions(until=0) == versions(table="c") == []
    assert versions(until=99, kind="ucc") == [1, 2, 3, 4, 5, 6]
    found = ledger.find_batch("bc", "batch-1")
    assert found["b"] is not None
    assert found["b"].version == 4
    assert found["c"] is None
    assert ledger.find_batch("b", "batch-9") == {"b": None}


def test_the_latest_commits_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as asked for, and no file is read beyond them."""
    ledger = Ledger.create(tmp_path)
    fill_several(ledger, 40)
    for table in ("t0", "t3", SHARED, "absent"):
        rows = [c for c in ledger.states() if c.table == table]
        for until, since, most in ((40, 0, 7), (33, 0, 7), (33, 29, 7), (40, 0, 99), (40, 40, 7), (5, 0, 1)):
            between = [c for c in rows if since < c.version <= until]
            assert ledger.latest(table, until, since, most) == between[-most:]
    fill(ledger, 3, "t1")
    files: list[str] = []
    opened = LedgerFiles.open_file

    def noted(self: LedgerFiles, path: str, length: int) -> Any:
        files.append(path)
        return opened(self, path, length)

    monkeypatch.setattr(LedgerFiles, "open_file", noted)
    assert [c.version for c in Ledger.open(tmp_path).latest("t1", 43, 0, 3)] == [41, 42, 43]
    assert len(set(files)) <= 3


def test_a_batch_of_two_tables_is_seen_by_both_or_by_neither(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a reader that looks while another process commits it."""
    ledger, other = Ledger.create(tmp_path), Ledger.open(tmp_path)
    ledger.append(0, [CommitRow(name, "track") for name in "ab"], [])
    files = ledger._files
    refresh = files.refresh

    def late(*, at_once: bool = True) -> Any:
        snapshot = refresh(at_once=at_once)
        if other.version == 1:
            other.append(1, [CommitRow(name, "apply", batch_id="x") for name in "ab"], [])
        return snapshot

    monkeypatch.setattr(files, "refresh", late)
    assert ledger.find_batch("ab", "x") == {"a": None, "b": None}
    assert {row.version for row in ledger.find_batch("ab", "x").values() if row} == {2}


def test_a_batch_id_belongs_to_one_life_of_a_table(tmp_path: Path) -> None:
    """Of ledgers that were written before as well: the commits that track and drop tell the lives apart."""
    ledger = Ledger.create(tmp_path)
    for v, (action, batch_id) in enumerate(
        [("track", None), ("apply", "x"), ("drop", None), ("track", None), ("apply", "y"), ("merge", None)]
    ):
        ledger.append(v, [CommitRow("a", action, batch_id=batch_id)], [])
    ledger.append(6, [CommitRow("b", "apply", batch_id="x")], [])
    for reader in (ledger, Ledger.open(tmp_path)):
        assert reader.find_batch("a", "x") == {"a": None}
        row = reader.find_batch("a", "y")["a"]
        assert row is not None
        assert row.version == 5


def test_json_must_be_json(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    with pytest.raises(ValueError, match="JSON compliant"):
        ledger.append(0, [CommitRow("t", "track", {"x": float("nan")})], [])
    with pytest.raises(TypeError, match="not JSON serializable"):
        ledger.append(0, [CommitRow("t", "track")], [ChangeRow("t", "ucc", "broke", KEY, None, [{1, 2}])])
    assert ledger.version == 0
    assert data_files(tmp_path) == set()


def test_any_delta_reader_reads_it(tmp_path: Path) -> None:
    fill(Ledger.create(tmp_path), 7)
    table = DeltaTable(str(tmp_path / "ledger"))
    query = 'SELECT version, count(*) - 1 AS n, min("at") AS first FROM t GROUP BY version ORDER BY version'
    block = QueryBuilder().register("t", table).execute(query).read_all()
    counted = zip(block.column("version").to_pylist(), block.column("n").to_pylist(), strict=True)
    assert [(int(str(v)), int(str(n))) for v, n in counted] == [(v, v % 4) for v in range(1, 8)]


def test_folder_names_of_every_kind(tmp_path: Path) -> None:
    for name in ["a b#c", "ü?x&y=1", "[a]*", "a:b", "s3:", "100%"]:
        fill(Ledger.create(tmp_path / name), 2)
        assert Ledger.open(tmp_path / name).commit_row(2).state == {"segments": [1]}
    names = set(os.listdir(tmp_path))
    for name in ["a%20b", "a\\b"]:
        with pytest.raises(WorkspaceError, match=r"which Delta Lake cannot address. Nothing was written"):
            Ledger.create(tmp_path / name)
    assert set(os.listdir(tmp_path)) == names


def test_reading_the_newest_state_opens_one_file(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    fill(ledger, 20)
    (newest,) = [f.path for f in ledger._files.snapshot.files if f.last == 20]
    for name in data_files(tmp_path) - {newest}:
        os.unlink(tmp_path / "ledger" / name)
    reader = Ledger.open(tmp_path)
    assert reader.version == 20
    assert reader.heads() == {"orders": 20}
    assert reader.commit_row(20).state == {"segments": [19]}
    with pytest.raises(
        DamagedFileError, match=r"'ledger/commit-00000019-\w+.parquet' .* is missing. Restore"
    ):
        reader.commit_row(19)


# -- conflicts --------------------------------------------------------------------------------


def test_a_stale_writer_gets_a_conflict(tmp_path: Path) -> None:
    first, second = Ledger.create(tmp_path), Ledger.open(tmp_path)
    fill(first, 12)
    base = second.version
    first.append(12, [CommitRow("orders", "apply")], [])
    kept = data_files(tmp_path)
    with pytest.raises(ConflictError) as caught:
        second.append(base, [CommitRow("items", "track")], [])
    assert str(caught.value) == (
        "another writer committed version 13 of the workspace while this batch was based on version 12. "
        "Nothing was applied. Run it again."
    )
    assert data_files(tmp_path) == kept
    assert second.append(second.version, [CommitRow("items", "track")], []) == 14


def test_the_conflict_is_decided_by_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival commits after the last look at the version: only the swap itself can notice."""
    ledger, rival = Ledger.create(tmp_path), Ledger.open(tmp_path)
    fill(ledger, 3)
    real = module.encode_commit

    def rival_first(commits: list[dict[str, object]], changes: list[ChangeRow]) -> object:
        monkeypatch.setattr(module, "encode_commit", real)
        rival.append(3, [CommitRow("rival", "track")], [])
        return real(commits, changes)

    monkeypatch.setattr(module, "encode_commit", rival_first)
    with pytest.raises(ConflictError, match=r"committed version 4 .* based on version 3"):
        ledger.append(3, [CommitRow("orders", "apply")], [])
    assert [c.table for c in Ledger.open(tmp_path).commits()] == ["orders"] * 3 + ["rival"]
    assert len(data_files(tmp_path)) == 4


@pytest.mark.parametrize("step", ["heads", "_expect", "refresh"])
def test_a_rival_between_any_two_steps_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Found by the test with four processes, once in seven runs: the version was checked, then a
    second look moved the snapshot on, and the swap was made from there: two commits of version 31."""
    for when in range(1, 6):
        root = tmp_path / f"{when}"
        ledger, rival = Ledger.create(root), Ledger.open(root)
        fill(ledger, 3)
        owner = ledger._files if step == "refresh" else ledger
        real = getattr(owner, step)
        calls = []

        def rival_before_the_call(
            *args: object,
            calls: list[int] = calls,
            rival: Ledger = rival,
            real: Callable[..., object] = real,
            when: int = when,
            **options: object,
        ) -> object:
            calls.append(1)
            if len(calls) == when:
                with contextlib.suppress(ConflictError):
                    rival.append(3, [CommitRow("rival", "apply", {}, {"n_changes": 0})], [])
            return real(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(owner, step, rival_before_the_call)
            try:
                version = ledger.append(3, [CommitRow("orders", "apply", {}, {"n_changes": 0})], [])
            except ConflictError:
                version = 0
        done = [(c.version, c.table) for c in Ledger.open(root).commits()[3:]]
        if version:  # the rival came too late, or never
            assert done == [(4, "orders")]
        else:
            assert done == [(4, "rival")]


def test_a_base_that_does_not_exist(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    with pytest.raises(
        WorkspaceError, match=r"based on version 2, .* ends at version 0. Nothing was applied"
    ):
        ledger.append(2, [CommitRow("orders", "apply")], [])


def test_an_error_after_the_commit_landed_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path)
    real = DeltaTable.create_write_transaction

    def commit_then_fail(self: DeltaTable, *args: object, **options: object) -> None:
        real(self, *args, **options)
        raise CommitFailedError("the network went away")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", commit_then_fail)
    fill(ledger, 3)
    assert_whole(Ledger.open(tmp_path))
    assert Ledger.open(tmp_path).version == 3


def test_an_error_before_the_commit_applies_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Panic(BaseException):
        """As pyo3 raises one when Rust panics."""

    def fail(self: DeltaTable, *args: object, **options: object) -> None:
        raise Panic("\x1b[31mNo space left on device\x1b[0m\n   0: <unknown>\n   1: <unknown>")

    ledger = Ledger.create(tmp_path)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", fail)
    with pytest.raises(WorkspaceError, match=r"version 1 .*: No space left on device. Nothing was applied"):
        fill(ledger, 1)
    monkeypatch.undo()
    fill(ledger, 1)
    assert Ledger.open(tmp_path).version == 1


def test_four_processes_append_ten_each(tmp_path: Path, start_writer: Start) -> None:
    """They also create the ledger at once, and compact at every fifth commit.

    A machine may let each of them finish before the next begins: so it is tried until they meet.
    """
    assert any(_four_processes_meet(tmp_path / str(i), start_writer) for i in range(10))


def _four_processes_meet(root: Path, start_writer: Start) -> bool:
    """Whether one came before another one's commit, and a reader saw some versions on the way."""
    root.mkdir()
    writers = [start_writer(root, f"w{i}", 10, 5) for i in range(4)]
    release(writers)
    # Meanwhile a reader never sees half a commit.
    reader = Ledger.create(root)
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add(reader.version)
        assert_whole(reader)
        time.sleep(0.01)
    answers = [writer.communicate(timeout=300) for writer in writers]
    assert [error for _, error in answers] == [""] * 4

    ledger = Ledger.open(root)
    assert ledger.version == 40
    assert_whole(ledger)
    applied = {(c.table, c.batch_id) for c in ledger.commits() if c.table != SHARED}
    assert applied == {(f"w{i}", f"w{i}-{k}") for i in range(4) for k in range(10)}
    newest = {f"w{i}": max(c.version for c in ledger.commits(f"w{i}")) for i in range(4)}
    assert ledger.heads() == {**newest, SHARED: 40}
    assert {c.batch_id for c in ledger.commits(SHARED)} == {batch for _, batch in applied}
    created = [p for p in (root / "ledger/_delta_log").glob("*.json") if '"metaData"' in p.read_text()]
    assert len(created) == 1, "two creators wrote the table's metadata"
    return len(seen) > 2 and sum(int(out) for out, _ in answers) > 0


def test_of_several_creators_one_creates(tmp_path: Path, start_writer: Start) -> None:
    writers = [start_writer(tmp_path / f"{i // 4}", "w", 0, 64) for i in range(8)]
    release(writers)
    assert [writer.communicate(timeout=300) for writer in writers] == [("0\n", "")] * 8
    for i in range(2):
        log = [p for p in os.listdir(tmp_path / f"{i}/ledger/_delta_log") if not p.startswith("_")]
        assert log == [f"{0:020d}.json"]


def test_killed_writers_leave_whole_commits(tmp_path: Path, start_writer: Start) -> None:
    """Twelve writers die at random moments, two at work at a time."""
    dice = random.Random(7)
    Ledger.create(tmp_path)
    writers = [start_writer(tmp_path, f"w{i}", 10**6, 6) for i in range(12)]
    versions = [0]
    for i in range(0, 12, 2):
        pair = writers[i : i + 2]
        release(pair)
        watcher, deadline = Ledger.open(tmp_path), time.monotonic() + 300
        while watcher.version < versions[-1] + 3 and time.monotonic() < deadline:
            time.sleep(0.001)
        for writer in pair:
            time.sleep(dice.uniform(0, 0.15))
            writer.kill()
        for writer in pair:
            _, error = writer.communicate(timeout=300)
            assert error == ""
        ledger = Ledger.open(tmp_path)
        assert_whole(ledger)
        assert ledger.version >= versions[-1]
        versions.append(ledger.version)
    assert versions[-1] >= 18
    ledger = Ledger.open(tmp_path)
    fill(ledger, 8)
    assert_whole(ledger)


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    failures: list[BaseException] = []

    def write() -> None:
        done = 0
        while done < 5:
            base = ledger.version
            changes = [ChangeRow("t", "ucc", "broke", {})] * ((base + 1) % 4)
            try:
                ledger.append(base, [CommitRow("t", "apply", {}, {"n_changes": (base + 1) % 4})], changes)
                done += 1
            except ConflictError:
                pass
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ledger.version == 15
    assert_whole(ledger)


# -- compaction -------------------------------------------------------------------------------


def test_compaction_keeps_every_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 8)
    monkeypatch.setattr("holdfast.core.store.ledger_rows.ROWS_PER_GROUP", 16)
    ledger = Ledger.create(tmp_path)
    old = Ledger.open(tmp_path)
    fill(ledger, 30)
    assert len(ledger._files.snapshot.files) <= 8
    for reader in (ledger, old, Ledger.open(tmp_path)):
        assert_whole(reader)
        assert [reader.commit_row(v).state for v in range(1, 31)] == [{"segments": [v]} for v in range(30)]
        assert [c.version for c in reader.changes(since=10, until=14)] == [11, 11, 11, 13, 14, 14]
    # Nothing is vacuumed: Delta's own time travel works too.
    assert len(data_files(tmp_path)) > 30
    assert DeltaTable(str(tmp_path / "ledger"), version=5).count() == 1 + 2 + 3 + 4 + 1 + 1 + 1 - 1


def test_compaction_keeps_every_row_of_several_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups end in the middle of a version."""
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 8)
    monkeypatch.setattr("holdfast.core.store.ledger_rows.ROWS_PER_GROUP", 7)
    ledger = Ledger.create(tmp_path)
    old = Ledger.open(tmp_path)
    fill_several(ledger, 30)
    assert len(ledger._files.snapshot.files) <= 8
    newest = {n: v for v in range(1, 31) for n in names_at(v)}
    everything = [(v, n) for v in range(1, 31) for n in names_at(v)]
    for reader in (ledger, old, Ledger.open(tmp_path)):
        assert_whole(reader)
        assert reader.verify() == len(ledger._files.snapshot.files)
        assert [(c.version, c.table) for c in reader.commits()] == everything
        assert [(c.version, c.table) for c in reader.states()] == everything
        for version, name in everything:
            assert reader.commit_row(version, name).state == {"at": version, "of": name}
        assert reader.heads() == newest
        assert [c.dependency["i"] for c in reader.changes(since=10, until=14)] == [0, 1, 2, 0, 0, 1]


def test_an_append_passes_a_foreign_compaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holdfast version is unchanged, so the failed swap is no conflict."""
    ledger = Ledger.create(tmp_path)
    fill(ledger, 6)
    real = module.encode_commit

    def compact_first(commits: list[dict[str, object]], changes: list[ChangeRow]) -> object:
        DeltaTable(str(tmp_path / "ledger")).optimize.compact()
        return real(commits, changes)

    monkeypatch.setattr(module, "encode_commit", compact_first)
    before = DeltaTable(str(tmp_path / "ledger")).version()
    fill(ledger, 1)
    assert DeltaTable(str(tmp_path / "ledger")).version() == before + 2
    assert ledger.version == 7
    assert_whole(Ledger.open(tmp_path))


def test_a_compaction_that_loses_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, rival = Ledger.create(tmp_path), Ledger.open(tmp_path)
    fill(ledger, 9)
    assert rival.version == 9
    real = compaction.compact

    def rival_first(files: LedgerFiles) -> None:
        monkeypatch.setattr(compaction, "COMPACT_EVERY", 64)
        rival.append(
            10, [CommitRow("rival", "apply", {}, {"n_changes": 3})], [ChangeRow("r", "ucc", "broke", {})] * 3
        )
        monkeypatch.setattr(compaction, "COMPACT_EVERY", 10)
        real(files)

    monkeypatch.setattr(compaction, "COMPACT_EVERY", 10)
    monkeypatch.setattr(compaction, "compact", rival_first)
    fill(ledger, 1)
    assert len(Ledger.open(tmp_path)._files.snapshot.files) == 11, "the compaction should have lost"
    monkeypatch.setattr(compaction, "compact", real)
    fill(ledger, 1)
    assert len(Ledger.open(tmp_path)._files.snapshot.files) == 1
    assert ledger.version == 12
    assert_whole(ledger)
    assert_whole(Ledger.open(tmp_path))


def test_of_two_compactions_one_lands(tmp_path: Path) -> None:
    """delta-rs's own `optimize.compact` lets both land, and every row is there twice."""
    fill(Ledger.create(tmp_path), 9)
    first, second = Ledger.open(tmp_path), Ledger.open(tmp_path)
    compaction.compact(first._files)
    kept = data_files(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second._files, "refresh", lambda: second._files.snapshot)  # it has not looked since
        compaction.compact(second._files)
    assert data_files(tmp_path) == kept
    for ledger in (first, second, Ledger.open(tmp_path)):
        assert_whole(ledger)
        assert len(ledger._files.snapshot.files) == 1


def test_a_file_without_a_table_is_read_once_for_all_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for the newest commits of each table in turn does not read all files for each of them."""
    ledger = Ledger.create(tmp_path)
    tables = [f"t{i}" for i in range(8)]
    for version, table in enumerate(tables):
        ledger.append(version, [CommitRow(table, "track", {"i": version}, {})], [])
    ledger = Ledger.open(tmp_path)
    reads: list[str] = []
    opened = ledger_files.pq.ParquetFile
    monkeypatch.setattr(
        ledger_files.pq, "ParquetFile", lambda file, **how: reads.append(file) or opened(file, **how)
    )
    for i, table in enumerate(tables):
        assert [row.state for row in ledger.latest(table, 8, 0, 99)] == [{"i": i}]
        assert ledger.latest(table, 8, i + 1, 99) == []
    assert len(reads) <= 8 + 2 * 8


def test_checkpoints_come_where_nothing_can_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small files with large ones between them stay, and an open need not read an ever longer log."""
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 3)
    monkeypatch.setattr(compaction, "CHECKPOINT_EVERY", 8)
    monkeypatch.setattr(compaction, "COMPACT_BELOW", 20_000)
    ledger = Ledger.create(tmp_path)
    for version in range(24):
        state = {"x": os.urandom(40_000).hex()} if version % 2 else {}
        ledger.append(version, [CommitRow("t", "apply", state, {"n_changes": 0})], [])
    assert len(Ledger.open(tmp_path)._files.snapshot.files) == 24
    assert len([*tmp_path.rglob("*.checkpoint.parquet")]) >= 2


def test_large_files_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 5)
    monkeypatch.setattr(compaction, "COMPACT_BELOW", 20_000)
    ledger = Ledger.create(tmp_path)
    for version in range(24):
        state = {"x": os.urandom(40_000).hex()} if version == 8 else {}
        changes = [ChangeRow("t", "ucc", "broke", {})] * ((version + 1) % 4)
        ledger.append(version, [CommitRow("t", "apply", state, {"n_changes": (version + 1) % 4})], changes)
    assert [f.path for f in ledger._files.snapshot.files if f.first == f.last == 9 and f.length > 20_000]
    assert len(ledger._files.snapshot.files) < 12
    spans = [(f.first, f.last) for f in ledger._files.snapshot.files]
    assert all(before[1] + 1 == after[0] for before, after in pairwise(spans))
    assert_whole(Ledger.open(tmp_path))


def test_failing_housekeeping_fails_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, *args: object, **options: object) -> None:
        raise RuntimeError("no room for a checkpoint")

    monkeypatch.setattr(compaction, "COMPACT_EVERY", 4)
    monkeypatch.setattr(compaction, "CHECKPOINT_EVERY", 2)
    monkeypatch.setattr(DeltaTable, "create_checkpoint", fail)
    ledger = Ledger.create(tmp_path)
    fill(ledger, 11)
    assert_whole(ledger)
    assert_whole(Ledger.open(tmp_path))


def test_files_without_statistics_are_read(tmp_path: Path) -> None:
    """Another tool's compaction may keep none."""
    fill(Ledger.create(tmp_path), 3)
    for entry in (tmp_path / "ledger/_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in entry.read_text().splitlines()]
        for action in lines:
            action.get("add", {}).pop("stats", None)
        entry.write_text("\n".join(json.dumps(action) for action in lines))
    ledger = Ledger.open(tmp_path)
    assert ledger.version == 3
    assert ledger.commit_row(2).state == {"segments": [1]}
    assert_whole(ledger)


# -- damage -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eleven commits, a checkpoint of Delta version 8."""
    root = tmp_path_factory.mktemp("intact")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "CHECKPOINT_EVERY", 8)
        fill(Ledger.create(root), 11)
    assert (root / f"ledger/_delta_log/{8:020d}.checkpoint.parquet").exists()
    return root


def entry_of(root: Path, delta_version: int) -> Path:
    return root / f"ledger/_delta_log/{delta_version:020d}.json"


def checkpoint_of(root: Path) -> Path:
    return root / f"ledger/_delta_log/{8:020d}.checkpoint.parquet"


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no ledger": (lambda r: shutil.rmtree(r / "ledger"), "has no ledger: ledger/_delta_log is missing"),
    "no log": (lambda r: shutil.rmtree(r / "ledger/_delta_log"), "has no ledger"),
    "cut entry": (lambda r: os.truncate(entry_of(r, 11), 40), f"{11:020d}.json' .* is damaged"),
    "other entry": (lambda r: entry_of(r, 10).write_bytes(b"\xff\0\xfe"), f"{10:020d}.json' .* is damaged"),
    "list entry": (lambda r: entry_of(r, 10).write_bytes(b"[]"), f"{10:020d}.json' .* no JSON object"),
    "lost entry": (lambda r: entry_of(r, 10).unlink(), f"{10:020d}.json' .* is missing"),
    "emptied entry": (lambda r: os.truncate(entry_of(r, 10), 0), "has lost version 10"),
    "cut checkpoint": (
        lambda r: os.truncate(checkpoint_of(r), 99),
        r"checkpoint.parquet' .* is damaged.*move it",
    ),
    "lost checkpoint": (lambda r: checkpoint_of(r).unlink(), r"checkpoint.parquet' .* is missing.*move it"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_log_is_named(intact: Path, tmp_path: Path, name: str) -> None:
    root = tmp_path / "ws"
    shutil.copytree(intact, root)
    damage, message = DAMAGE[name]
    damage(root)
    with pytest.raises(DamagedFileError, match=message) as caught:
        Ledger.open(root)
    text = str(caught.value)
    assert "unknown>" not in text, "a Rust stack trace"
    assert "Restore the workspace from a backup" in text or "open the workspace again" in text
    assert caught.value.__cause__ is None


def test_the_advice_for_a_damaged_checkpoint_works(intact: Path, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    shutil.copytree(intact, root)
    checkpoint_of(root).unlink()
    (root / "ledger/_delta_log/_last_checkpoint").unlink()
    assert_whole(Ledger.open(root))


def test_an_entry_that_a_power_cut_emptied_was_never_committed(intact: Path, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    shutil.copytree(intact, root)
    os.truncate(entry_of(root, 11), 0)
    shutil.rmtree(root / "ledger/_newest")  # a copy is made once the entry is on disk
    delta_log.keep_newest(root, 10)
    ledger = Ledger.open(root)
    assert ledger.version == 10
    fill(ledger, 2)
    assert_whole(Ledger.open(root))
    assert Ledger.open(root).version == 12


def test_a_log_that_breaks_while_open(intact: Path, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    shutil.copytree(intact, root)
    ledger = Ledger.open(root)
    entry_of(root, 12).write_bytes(b'{"add": {"pa')
    with pytest.raises(DamagedFileError, match=f"{12:020d}.json' .* is damaged"):
        _ = ledger.version
    entry_of(root, 12).unlink()
    fill(ledger, 1)
    assert_whole(ledger)
    shutil.rmtree(root)
    with pytest.raises(DamagedFileError, match="is gone: the folder 'ledger' is missing"):
        _ = ledger.version


def test_damaged_data_files_are_named(intact: Path, tmp_path: Path) -> None:
    root = tmp_path / "ws"
    shutil.copytree(intact, root)

    def path(version: int) -> Path:
        (found,) = (root / "ledger").glob(f"commit-{version:08d}-*.parquet")
        return found

    path(3).unlink()
    os.truncate(path(4), 50)
    content = bytearray(path(5).read_bytes())
    content[len(content) // 4] ^= 1  # one bit, in the data pages
    path(5).write_bytes(content)
    content = bytearray(path(6).read_bytes())
    content[-40:] = bytes(40)
    path(6).write_bytes(content)
    ledger = Ledger.open(root)
    for version, wrong in [
        (3, "is missing"),
        (4, "has 50 bytes; [0-9]+ were written"),
        (5, "has been altered"),
        (6, "has been altered"),
    ]:
        with pytest.raises(
            DamagedFileError, match=rf"'ledger/commit-0000000{version}-\w+.parquet' .* {wrong}"
        ):
            ledger.commit_row(version)
    with pytest.raises(DamagedFileError, match="is missing"):
        ledger.commits()
    assert ledger.commit_row(11).state == {"segments": [10]}
    assert ledger.commit_row(7).state == {"segments": [6]}


# Which rows a file keeps of four commit rows and a change.
KEPT = {
    "no first": [1, 2, 3, 4],
    "no shared": [0, 1, 2, 4],
    "no commit": [4],
    "one twice": [0, 1, 2, 2, 3, 4],
    "all twice": [0, 1, 2, 3, 4, 0, 1, 2, 3, 4],
}


@pytest.mark.parametrize("name", KEPT)
def test_rows_of_a_version_that_are_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The file itself is sound: a tool that merged it may have done that."""
    ledger = Ledger.create(tmp_path)
    fill_several(ledger, 4)
    real = module.encode_commit

    def damaged(commits: list[dict[str, object]], changes: list[ChangeRow]) -> object:
        block = pq.read_table(pa.BufferReader(real(commits, changes)))
        assert block.num_rows == 5
        return to_parquet(block.take(KEPT[name]))

    with monkeypatch.context() as patch:
        patch.setattr(module, "encode_commit", damaged)
        fill_several(ledger, 1)
    fill_several(ledger, 1)
    reader = Ledger.open(tmp_path)
    with pytest.raises(DamagedFileError, match=r"commit-00000005-\w+.parquet' .* lacks rows of version 5 or"):
        reader.verify()
    if name in ("no first", "no commit"):
        with pytest.raises(DamagedFileError, match="has lost version 5: no live file"):
            reader.heads(5)
        with pytest.raises(DamagedFileError, match="has lost version 5 of the table 't0': no live file"):
            reader.commit_row(5, "t0")
    if name in ("no shared", "no commit"):
        with pytest.raises(DamagedFileError, match="has lost version 5 of the state that its tables share"):
            reader.commit_row(5, SHARED)
    if name != "no shared":  # what only the heads tell is left to `verify`
        monkeypatch.setattr(compaction, "COMPACT_EVERY", 2)
        fill_several(ledger, 1)
        assert len(ledger._files.snapshot.files) == 7, "a compaction spread the damage"


def test_a_lost_ledger_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    for name in ("tables/orders", "values/run-00000000000a.arrow"):
        root = tmp_path / name.split("/")[0]
        (root / name).mkdir(parents=True)
        with pytest.raises(DamagedFileError, match="has tables but no ledger"):
            Ledger.create(root)
        assert not (root / "ledger").exists()


def test_a_ledger_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("in the way")
    with pytest.raises(WorkspaceError, match="cannot create the ledger"):
        Ledger.create(tmp_path)
    with pytest.raises(DamagedFileError, match="has no ledger"):
        Ledger.open(tmp_path)


# -- cost -------------------------------------------------------------------------------------


def test_no_heavy_imports(tmp_path: Path) -> None:
    """Neither importing nor using the ledger may load pandas (0.3 s), Spark or Numba."""
    code = (
        "import sys; from pathlib import Path; from holdfast.core.store.ledger import *\n"
        "ledger = Ledger.create(Path(sys.argv[1]))\n"
        "ledger.append(0, [CommitRow('t', 'track', {})], [ChangeRow('t', 'ucc', 'broke', {})])\n"
        "ledger = Ledger.open(Path(sys.argv[1]))\n"
        "ledger.commit_row(1), ledger.changes(), ledger.commits()\n"
        "print([name for name in ('pandas', 'pyspark', 'numba') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_many_commits_stay_cheap_to_open(tmp_path: Path) -> None:
    """Counted, not timed: how many files and log entries an open has to look at."""
    ledger = Ledger.create(tmp_path)
    for version in range(130):
        ledger.append(version, [CommitRow("orders", "apply", {"v": version})], [])
    assert len(ledger._files.snapshot.files) == 3  # 128 commits in one, and the last two
    log = tmp_path / "ledger/_delta_log"
    checkpoint = json.loads((log / "_last_checkpoint").read_text())["version"]
    assert ledger._files.snapshot.delta_version - checkpoint < compaction.CHECKPOINT_EVERY
    fresh = Ledger.open(tmp_path)
    assert fresh.commit_row(fresh.version).state == {"v": 129}
    assert fresh.commit_row(100).state == {"v": 99}


def test_in_a_forked_process_it_says_so(tmp_path: Path) -> None:
    """delta-rs has no threads there; without a word of ours that looks like damage."""
    ledger = Ledger.create(tmp_path)
    ledger.append(0, [CommitRow("a", "track")], [])
    read_end, write_end = os.pipe()
    child = os.fork()
    if not child:
        told = []
        for act in (lambda: ledger.version, lambda: Ledger.open(tmp_path), lambda: Ledger.create(tmp_path)):
            try:
                told.append(repr(act()))
            except BaseException as error:
                told.append(f"{type(error).__name__}: {error}")
        os.write(write_end, json.dumps(told).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        answers = json.loads(pipe.read())
    os.waitpid(child, 0)
    assert len(answers) == 3
    for answer in answers:
        assert answer.startswith("WorkspaceError: the workspace")
        assert f"it was forked from process {os.getpid()}" in answer
        assert "spawn" in answer
    assert ledger.version == 1


def test_writers_that_pass_each_other_never_put_the_newest_entry_back(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    folder = tmp_path / "ledger"
    for version in range(3):
        ledger.append(version, [CommitRow("a", "apply")], [])
    assert delta_log.newest_kept(tmp_path) == 3
    delta_log.keep_newest(tmp_path, 2)  # a writer that comes late
    assert delta_log.newest_kept(tmp_path) == 3
    (folder / "_newest" / f"{2:020d}.json.0123456789ab").write_text("half")  # one that was killed
    ledger.append(3, [CommitRow("a", "apply")], [])
    assert [p.name for p in (folder / "_newest").iterdir()] == [f"{4:020d}.json"]
