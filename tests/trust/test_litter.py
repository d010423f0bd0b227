"""Litter: what crashed, rejected and superseded batches leave goes; what anybody needs stays."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.core.rows import relation
from holdfast.core.store import compaction, leases, litter
from holdfast.core.store import ledger as ledger_module
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import SHARED, CommitRow
from holdfast.errors import ConflictError, DamagedFileError
from holdfast.inclusions import inds, values
from holdfast.workspace import Workspace
from trust import kit, shop, twins

DAY = 86_400.0


def make_old(root: Path, seconds: float = 2 * DAY) -> None:
    """All files look as if they were written some time ago."""
    then = time.time() - seconds
    for path in root.rglob("*"):
        os.utime(path, (then, then))


def litter_of(root: Path) -> list[Path]:
    """Files as a killed batch leaves them."""
    [folder] = (root / "tables").iterdir()
    shared = root / "values"
    shared.mkdir(exist_ok=True)
    made = [
        folder / "segment-00000000000a.arrow",
        folder / "index-00000000000b.arrow",
        folder / "deletes-00000000000c.roaring",
        folder / "cover-00000000000d.arrow",
        folder / "evidence-00000000000e.arrow",
        folder / "fds-00000000000f.arrow",
        folder / "agreement-000000000010.arrow",
        folder / "approximate-000000000011.arrow",
        shared / "run-00000000000a.arrow",
        shared / "clusters-00000000000b.arrow",
        shared / "cover-00000000000c.arrow",
        shared / "cover-00000000000d.json",
    ]
    for path in made:
        path.write_bytes(b"half of")
    staging = root / "staging" / "00000000000f" / "source-0"
    staging.mkdir(parents=True)
    (staging / "part.arrow").write_bytes(b"half of")
    made.append(staging / "part.arrow")
    (root / ".holdfast.json.abc").write_bytes(b"{")
    made.append(root / ".holdfast.json.abc")
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    kit.build(tmp_path / "w")
    return tmp_path / "w"


def test_a_killed_batch_goes_once_it_is_old(root: Path) -> None:
    before = kit.snapshot(root)
    live = kit.files_of(root)
    made = litter_of(root)
    with holdfast.open(root, engine="inline") as ws:
        assert ws.tidy() == 0
        assert all(path.exists() for path in made)
        make_old(root)
        # The commits are young: what they replaced may still be read. The litter was never named.
        assert ws.tidy() == len(made)
        assert kit.files_of(root) == live
        assert not list((root / "staging").glob("*/"))
        assert ws.tidy() == 0
    assert kit.snapshot(root) == before


def test_what_a_young_commit_replaced_stays(root: Path) -> None:
    """A reader that looked the state up a moment ago is still going to open its files."""
    with holdfast.open(root, engine="inline") as reader, holdfast.open(root, engine="inline") as ws:
        _, state = reader.writer.tables.current("people")
        rows = kit.rows_of(reader, "people")
        ws.merge("people")
        kit.apply(ws, kit.BATCH)
        make_old(root)
        ws.tidy(grace_s=3600)
        assert kit.rows_of_state(reader, state) == rows
        for ref in litter.named_files(state.to_dict()):
            assert (root / ref.name).exists()


def test_what_an_old_commit_replaced_goes(root: Path) -> None:
    with holdfast.open(root, engine="inline") as ws:
        _, state = ws.writer.tables.current("people")
        ws.merge("people")
        make_old(root)
        # As if two days had passed: the merge itself is old now.
        assert ws.tidy(grace_s=0) > 0
        replaced = {ref.name for s in state.segments for ref in litter.named_files(s.to_dict())}
        assert not replaced & kit.files_of(root)


@pytest.mark.parametrize(("age_s", "stays"), [(3 * DAY, False), (DAY / 2, True)])
def test_the_grace_counts_from_the_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_s: float, stays: bool
) -> None:
    """A state counts as long as it was the newest, not from when it was committed."""

    class Then(datetime):
        age_s = 9 * DAY

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) - timedelta(seconds=cls.age_s)

    root = tmp_path / "w"
    monkeypatch.setattr(ledger_module, "datetime", Then)
    kit.build(root)
    with holdfast.open(root, engine="inline") as ws:
        _, state = ws.writer.tables.current("people")
        Then.age_s = age_s
        ws.merge("people")
        make_old(root, 9 * DAY)
        ws.tidy()
        for segment in state.segments:
            assert (root / segment.file.name).exists() == stays


def test_only_files_of_ours_are_removed(root: Path) -> None:
    [folder] = (root / "tables").iterdir()
    foreign = [
        folder / "notes.txt",
        folder / "segment-1.arrow.bak",
        root / "tables" / "x.arrow",
        root / "my.csv",
    ]
    for path in foreign:
        path.write_text("mine")
    (folder / "deep").mkdir()
    (folder / "deep" / "segment-00000000000a.arrow").write_text("mine")
    make_old(root)
    with holdfast.open(root, engine="inline") as ws:
        ws.tidy(grace_s=0)
    assert all(path.exists() for path in foreign)
    assert (folder / "deep" / "segment-00000000000a.arrow").exists()


def test_a_dropped_table_with_functional_dependencies(tmp_path: Path) -> None:
    """Its covers stay, exact and approximate ones, for who looks back; its evidence goes."""
    root = tmp_path / "w"
    twins.build(root)

    def told(ws: Workspace) -> list[Any]:
        return [
            [f"{d} {d.error}" for d in ws.dependencies(table=table, at=version, max_error=error)]
            for version in range(2, twins.BUILT + 1)
            for table, error in (
                (twins.COUNTED, 0.0),
                (twins.COUNTED, twins.MAX_ERROR),
                (twins.WITNESSED, 0.0),
            )
        ]

    with holdfast.open(root, engine="inline") as ws:
        past = told(ws)
        for table in twins.TABLES:
            ws.drop(table)
        ws.tidy(grace_s=0)
        left = {Path(name).name.split("-")[0] for name in kit.files_of(root) if name.startswith("tables/")}
        assert left == {"cover", "fds", "approximate"}
        assert told(ws) == past
        assert ws.verify() > 0


def test_a_dropped_table(root: Path) -> None:
    with holdfast.open(root, engine="inline") as ws:
        past = {v: kit.keys_of(ws, "people", at=v) for v in range(1, ws.version + 1)}
        ws.drop("people")
        make_old(root)
        ws.tidy()
        assert any("segment" in name for name in kit.files_of(root)), "it was dropped only now"
        ws.tidy(grace_s=0)
        left = {Path(name).name.split("-")[0] for name in kit.files_of(root) if name.startswith("tables/")}
        assert left == {"cover"}
        assert {v: kit.keys_of(ws, "people", at=v) for v in past} == past
        # The name can be used again.
        ws.track("people", kit.table_of(kit.START))
        make_old(root)
        ws.tidy(grace_s=0)
        assert kit.keys_of(ws, "people") == kit.minimal_keys(kit.START)
        ws.verify()


def test_a_folder_that_is_empty_goes(tmp_path: Path) -> None:
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        folder = tmp_path / "w" / "tables" / "never-abcdef"
        folder.mkdir(parents=True)
        (folder / "segment-00000000000a.arrow").write_bytes(b"")
        assert ws.tidy() == 0
        make_old(tmp_path)
        assert ws.tidy() == 1
        make_old(tmp_path)
        ws.tidy()
        assert not folder.exists()


def test_nothing_goes_while_the_history_cannot_be_read(root: Path) -> None:
    litter_of(root)
    files = kit.files_of(root)
    make_old(root)
    with holdfast.open(root, engine="inline") as ws:
        os.truncate(sorted((root / "ledger").glob("*.parquet"))[0], 100)
        with pytest.raises(DamagedFileError, match="commit-00000001"):
            ws.tidy(grace_s=0)
    assert kit.files_of(root) == files


def test_staging_in_use_stays(root: Path) -> None:
    """Old as the folder is, something in it has been written just now."""
    made = litter_of(root)
    make_old(root)
    staged = next(path for path in made if path.name == "part.arrow")
    staged.write_bytes(b"still at it")
    with holdfast.open(root, engine="inline") as ws:
        ws.tidy()
    assert staged.exists()


def test_apply_tidies_once_an_hour(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counted(*args: Any, **kwargs: Any) -> int:
        calls.append(args)
        return 0

    monkeypatch.setattr(litter, "remove_litter", counted)
    stamp = root / "staging" / "tidied"
    with holdfast.open(root, engine="inline") as ws:
        stamp.unlink(missing_ok=True)
        kit.apply(ws, kit.BATCH)
        assert (stamp.exists(), calls) == (True, [])  # new: nothing to remove yet
        kit.apply(ws, kit.NEXT)
        assert not calls
        os.utime(stamp, (time.time() - 4000, time.time() - 4000))
        ws.check("people", inserts=kit.table_of([(50, "x", "y", 1, 1.0)]))
        assert not calls
        kit.apply(ws, ([(50, "x", "y", 1, 1.0)], []))
        kit.apply(ws, ([(51, "x", "y", 1, 1.0)], []))
        assert len(calls) == 1


def test_tidying_that_fails_does_not_fail_the_batch(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any, **__: Any) -> int:
        raise DamagedFileError("an old ledger file is gone")

    monkeypatch.setattr(litter, "remove_litter", failing)
    monkeypatch.setattr(litter, "due", lambda _: True)
    with holdfast.open(root, engine="inline") as ws:
        assert kit.apply(ws, kit.BATCH).version == 5


def test_files_that_tables_share(tmp_path: Path) -> None:
    """`values/` is tidied as the tables' folders are; each row of a version counts for its own table."""
    ledger = Ledger.create(tmp_path)

    def files(folder: str, i: int) -> set[str]:
        return {f"{folder}/{kind}-{i:012x}.arrow" for kind in ("run", "clusters", "cover")}

    def make(names: set[str]) -> set[str]:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"x")
        return names

    def commit(table: str, folder: str, i: int) -> CommitRow:
        return CommitRow(table, "apply", {"of": [{"name": name} for name in make(files(folder, i))]})

    def tidied(grace_s: float) -> set[str]:
        before = kit.files_of(tmp_path)
        assert litter.remove_litter(tmp_path, ledger, grace_s=grace_s) == len(before - kit.files_of(tmp_path))
        return before - kit.files_of(tmp_path)

    a, b = commit("a", "tables/a", 1), commit("b", "tables/b", 1)
    ledger.append(0, [a, b, commit(SHARED, "values", 1)], [])
    ledger.append(1, [commit("a", "tables/a", 2), commit(SHARED, "values", 2)], [])
    ledger.append(2, [CommitRow("b", "drop"), commit(SHARED, "values", 3)], [])
    unnamed = make(files("values", 9) | files("tables/a", 9))
    make(
        {
            "values/notes.txt",
            "values/run-1.arrow",
            "values/x/run-00000000000a.arrow",
            "run-00000000000a.arrow",
        }
    )
    assert tidied(DAY) == set()
    make_old(tmp_path)
    assert tidied(DAY) == unnamed
    replaced = files("tables/a", 1) | files("tables/b", 1) | files("values", 1) | files("values", 2)
    assert tidied(0) == {name for name in replaced if "/cover-" not in name}
    assert tidied(0) == set()


def test_shared_files_elsewhere_are_not_ours(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "w")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "run-00000000000a.arrow").write_bytes(b"x")
    (tmp_path / "w" / "values").symlink_to(tmp_path / "mine")
    make_old(tmp_path)
    assert litter.remove_litter(tmp_path / "w", ledger, grace_s=0) == 0


def test_what_tables_share_stays_for_who_has_just_looked(tmp_path: Path) -> None:
    """Runs and clusters that a young commit has replaced; once it is old, only what is needed is left."""
    root = tmp_path / "w"
    shop.build(root)
    with holdfast.open(root, engine="inline") as reader, holdfast.open(root, engine="inline") as ws:
        old = reader.inds.generator()
        assert old is not None
        ws.merge("orders")
        shop.apply(ws, shop.BOTH)
        make_old(root)
        ws.tidy(grace_s=3600)
        assert {ref.name for ref in litter.named_files(old.to_dict())} <= kit.files_of(root)
        ws.tidy(grace_s=0)
        left = {name for name in kit.files_of(root) if name.startswith(("tables/", "values/"))}
        assert left == kit.needed_files(ws)
        assert not {f.name for run in old.runs for f in run.files()} & left
    shop.check_rows(kit.snapshot(root), shop.after(shop.START, *shop.HISTORY, shop.BOTH))


def test_dropped_tables_that_referred_to_each_other(tmp_path: Path) -> None:
    root = tmp_path / "w"
    shop.build(root)
    with holdfast.open(root, engine="inline") as ws:
        past = {v: kit.inds_of(ws, at=v) for v in range(1, ws.version + 1)}
        for table in ("parts", "orders", "visits"):
            ws.drop(table)
            ws.tidy(grace_s=0)
            kit.snapshot(root)
        kinds = {Path(name).name.split("-")[0] for name in kit.files_of(root) if name.startswith("values/")}
        assert kinds <= {"cover", "clusters"}, "the runs are gone with the last table"
        assert kit.inds_of(ws) == []
        assert {v: kit.inds_of(ws, at=v) for v in past} == past
        # Their names can be used again, and the columns are new ones.
        shop.track(ws)
        ws.tidy(grace_s=0)
    shop.check_rows(kit.snapshot(root), {t: shop.START[t] for t in ("parts", "orders")})


def test_rejected_batches_leave_nothing_that_tidying_does_not_find(tmp_path: Path) -> None:
    """One of two tables lacks a row: neither is changed, and what was written for the other one goes."""
    root = tmp_path / "w"
    shop.build(root)
    before = kit.snapshot(root)
    with holdfast.open(root, engine="inline") as ws:
        batch: shop.Batch = {"parts": ([(7, 7, 7.0)], []), "orders": ([], [(-1, 0, 0, "no")])}
        with pytest.raises(holdfast.errors.AbsentRowError):
            shop.apply(ws, batch)
        assert kit.snapshot(root) == before
        ws.tidy(grace_s=0)
        left = {name for name in kit.files_of(root) if name.startswith(("tables/", "values/"))}
        assert left == kit.needed_files(ws)


class Life:
    """A random life of a workspace with three tables, and what each version must say for ever.

    Some tables have keys only, some refer to each other as well; those share the generator.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.root = root
        self.ws = holdfast.open(root, engine="inline")
        self.reader = holdfast.open(root, engine="inline")
        self.rows: dict[str, list[kit.Row]] = {}
        self.past: dict[int, tuple[dict[str, list[list[str]]], list[str]]] = {}
        self.next_id = 0

    def new_rows(self, n: int) -> list[kit.Row]:
        self.next_id += n
        pick = self.rng.choice
        return [
            (pick([i, i, i, 1]), pick("ABC"), pick(["Rome", "Oslo", None]), pick([1, 2, 3]), pick([0.5, 1.5]))
            for i in range(self.next_id - n, self.next_id)
        ]

    def step(self) -> None:
        table = self.rng.choice(["one", "two", "three"])
        if table not in self.rows:
            self.rows[table] = self.new_rows(self.rng.randrange(12))
            kinds = self.rng.choice([("ucc",), ("ucc", "ind"), ("ucc", "ind")])
            self.ws.track(table, kit.table_of(self.rows[table]), kinds=kinds)
            return
        action = self.rng.choice(["apply"] * 6 + ["merge", "merge", "pin", "drop", "reject"])
        rows = self.rows[table]
        if action == "merge":
            self.ws.merge(table)
        elif action == "pin":
            self.ws.pin(table, [self.rng.choice(kit.COLUMNS)])
        elif action == "drop":
            self.ws.drop(table)
            del self.rows[table]
        elif action == "reject":
            with pytest.raises(holdfast.errors.AbsentRowError):
                kit.apply(self.ws, (self.new_rows(3), [(-1, "no", "such", 0, 0.0)]), table)
        else:
            gone = self.rng.sample(rows, min(len(rows), self.rng.randrange(5)))
            batch = (self.new_rows(self.rng.randrange(1, 5)), gone)
            kit.apply(self.ws, batch, table)
            self.rows[table] = kit.after(rows, batch)

    def remember(self) -> None:
        if self.ws.version:
            keys = {t: kit.minimal_keys(rows) for t, rows in self.rows.items()}
            shared = self.ws.inds.generator() is not None
            self.past[self.ws.version] = keys, kit.expected_inds(self.ws, self.rows) if shared else []

    def check(self, ws: Workspace, *, whole: bool = False) -> None:
        """The newest state in full, and the dependencies of old versions: of all, or of one in seven."""
        assert ws.tables() == sorted(self.rows)
        for table, rows in self.rows.items():
            assert kit.rows_of(ws, table) == sorted(rows, key=repr)
            ws.keys.non_uniques(table)
            ws.explain(table, ["name"])
        kit.inclusions_of(ws, self.rows)
        for version, (tables, held) in self.past.items():
            if not whole and version % 7 != ws.version % 7:
                continue
            assert {t: kit.keys_of(ws, t, at=version) for t in ws.tables(at=version)} == tables
            assert sorted(kit.inds_of(ws, at=version)) == held
        ws.verify()


def _live_through(root: Path, seed: int, n_steps: int) -> None:
    life = Life(root, seed)
    for _ in range(n_steps):
        life.step()
        life.remember()
        life.ws.tidy(grace_s=0)
        life.check(life.reader)
    with holdfast.open(root, engine="inline", create=False) as fresh:
        life.check(fresh, whole=True)
        left = {name for name in kit.files_of(root) if name.startswith(("tables/", "values/"))}
        assert left == kit.needed_files(fresh)


def _merge_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation, "MERGE_FANOUT", 3)
    monkeypatch.setattr(values, "MERGE_FANOUT", 3)
    monkeypatch.setattr(inds, "MAX_SUMS", 2)


@pytest.mark.parametrize("seed", range(2))
def test_nothing_alive_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    _merge_often(monkeypatch)
    _live_through(tmp_path / "w", seed, 18)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 115))
def test_nothing_alive_is_removed_in_long_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    _merge_often(monkeypatch)
    monkeypatch.setattr(compaction, "COMPACT_EVERY", 7)
    monkeypatch.setattr(compaction, "CHECKPOINT_EVERY", 5)
    _live_through(tmp_path / "w", seed, 80)


def test_a_copy_of_the_workspace_is_as_good(root: Path, tmp_path: Path) -> None:
    """A restored backup has new modification times and an old history."""
    with holdfast.open(root, engine="inline") as ws:
        ws.merge("people")
    copy = tmp_path / "copy"
    shutil.copytree(root, copy, copy_function=shutil.copyfile)
    before = kit.snapshot(copy)
    with holdfast.open(copy, engine="inline") as ws:
        assert ws.tidy() == 0
        make_old(copy)
        ws.tidy(grace_s=0)
    assert kit.snapshot(copy) == before


# -- Jobs that are under way -------------------------------------------------------------------------------


def _shop(root: Path) -> None:
    shop.build(root)
    (root.parent / "lake").mkdir(exist_ok=True)
    for name, texts in (("a", "x y z u v w"), ("b", "x y z u v w t")):
        (root.parent / "lake" / f"{name}.csv").write_text("\n".join(["c", *texts.split()]) + "\n")


IN_FLIGHT: dict[str, tuple[Callable[[Path], None], Callable[[Workspace], Any]]] = {
    "track": (kit.build, lambda ws: ws.track("more", kit.table_of(kit.START))),
    "apply": (kit.build, lambda ws: kit.apply(ws, kit.BATCH)),
    "merge": (kit.build, lambda ws: ws.merge("people")),
    "pin": (kit.build, lambda ws: ws.pin_rule("not(t.id = s.id and t.name != s.name)")),
    "apply_all": (_shop, lambda ws: shop.apply(ws, shop.BOTH)),
    "drop": (_shop, lambda ws: ws.drop("parts")),
    "link": (_shop, lambda ws: ws.link(ws.root.parent / "lake")),
}


def _before_the_commit(monkeypatch: pytest.MonkeyPatch, act: Callable[[], Any]) -> list[Any]:
    """Let something happen just before the next commit; what it said."""
    said: list[Any] = []
    append = Ledger.append

    def interrupted(*args: Any, **kwargs: Any) -> int:
        monkeypatch.setattr(Ledger, "append", append)
        said.append(act())
        return append(*args, **kwargs)

    monkeypatch.setattr(Ledger, "append", interrupted)
    return said


@pytest.mark.parametrize("operation", list(IN_FLIGHT))
def test_a_clock_that_jumps_takes_nothing_from_a_batch_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """Its files look two days old to whoever tidies, and no commit names them yet."""
    root = tmp_path / "w"
    build, run = IN_FLIGHT[operation]
    build(root)
    leftovers = (
        [path for path in litter_of(root) if path.name.endswith((".arrow", ".roaring"))]
        if (build is kit.build)
        else []
    )
    make_old(root, 9 * DAY)
    with holdfast.open(root, engine="inline") as ws, holdfast.open(root, engine="inline") as other:

        def tidy() -> int:
            now = time.time
            with monkeypatch.context() as patch:
                patch.setattr(litter.time, "time", lambda: now() + 2 * DAY)
                return other.tidy()

        said = _before_the_commit(monkeypatch, tidy)
        run(ws)
        assert len(said) == 1
        # Litter from before the job began goes all the same.
        assert not [path for path in leftovers if path.exists()]
        assert ws.verify() > 0
        assert not leases.under_way(root)
    kit.snapshot(root)


def test_a_job_that_dies_while_it_makes_its_lease(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it leaves is no lease: else it would look like that of a job on another machine, for a week."""
    folder = root / "staging" / "0123456789ab"
    folder.mkdir(parents=True)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(leases.json, "dump", die)
        with pytest.raises(KeyboardInterrupt), leases.held(root, "staging/0123456789ab", 0):
            pass
    assert leases.under_way(root) == []
    with holdfast.open(root, engine="inline") as ws:
        ws.tidy(grace_s=0)
    assert not folder.exists()


def test_what_a_job_under_way_is_based_on_stays(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another writer replaces the segments that it reads, and a day passes: it is a conflict, not damage."""
    with holdfast.open(root, engine="inline") as ws, holdfast.open(root, engine="inline") as other:
        based_on = {ref.name for ref in litter.named_files(ws.writer.tables.state("people").to_dict())}

        def merge_and_tidy() -> None:
            now = time.time
            other.merge("people")
            with monkeypatch.context() as patch:
                patch.setattr(litter.time, "time", lambda: now() + 2 * DAY)
                other.tidy()
            assert based_on <= kit.files_of(root)

        _before_the_commit(monkeypatch, merge_and_tidy)
        with pytest.raises(ConflictError):
            kit.apply(ws, kit.BATCH)
        make_old(root)
        other.tidy(grace_s=0)
        assert not based_on <= kit.files_of(root)
        assert kit.apply(ws, kit.BATCH).version == 6


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_a_commit_names_no_file_that_is_not_there(
    root: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    before = kit.snapshot(root)
    files = kit.files_of(root)
    with holdfast.open(root, engine="inline") as ws:
        append = ws.writer.append

        def interrupted(*args: Any) -> int:
            [segment] = [n for n in kit.files_of(root) - files if "/segment-" in n and "staging" not in n]
            if damage == "gone":
                (root / segment).unlink()
            else:
                os.truncate(root / segment, 10)
            return append(*args)

        monkeypatch.setattr(ws.writer, "append", interrupted)
        with pytest.raises(DamagedFileError, match=r"segment-.* is gone or cut short\. Nothing was applied"):
            kit.apply(ws, kit.BATCH)
        monkeypatch.undo()
        assert kit.snapshot(root) == before
        assert kit.apply(ws, kit.BATCH).version == 5


def test_the_lease_of_a_killed_job_ends_with_it(root: Path) -> None:
    """Nobody holds its lock. One of another machine counts for a week, because its lock may not be seen."""
    made = litter_of(root)
    folder = root / "staging" / "00000000000f"
    make_old(root, 9 * DAY)
    (folder / "lease").write_text(json.dumps({"host": "another machine", "base": 0}))
    os.utime(folder / "lease", (time.time() - 5 * DAY, time.time() - 5 * DAY))
    with holdfast.open(root, engine="inline") as ws:
        assert [lease.base for lease in leases.under_way(root)] == [0]
        ws.tidy()
        assert (folder / "lease").exists()
        (folder / "lease").write_text(json.dumps({"host": socket.gethostname(), "base": 4}))
        assert leases.under_way(root) == []
        ws.tidy()
        assert folder.exists(), "something in it was written just now"
        make_old(root)
        ws.tidy()
    assert not [path for path in (*made, folder) if path.exists()]


def test_a_lease_lasts_as_long_as_its_job(root: Path) -> None:
    began = time.time()
    with holdfast.open(root, engine="inline") as ws, ws.writer.staging(3) as staging:
        [lease] = leases.under_way(root)
        assert (lease.folder, lease.base) == (staging, 3)
        assert began - 60 < lease.since < time.time() + 60  # clocks that stamp files have their own ticks
        make_old(root, 30 * DAY)
        ws.tidy(grace_s=0)
        assert (root / staging).is_dir()
    assert leases.under_way(root) == []
