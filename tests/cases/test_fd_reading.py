"""Reading functional dependencies: explained, through their history, and with errors.

Covers and evidence are made by the oracle and put into the commits of a workspace that only keeps keys, so
nothing here depends on how they are found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.core.cover.history import Spell
from holdfast.core.engine.engine import Engine
from holdfast.core.rows.table_state import SegmentRef, TableState
from holdfast.core.rows.tables import Tables
from holdfast.core.rows.writer import Writer
from holdfast.core.store.bundle import write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.format import create_marker
from holdfast.core.store.ledger import Ledger
from holdfast.core.store.ledger_rows import ChangeRow, CommitRow
from holdfast.core.words.dependency import Fd, Ucc
from holdfast.core.words.notation import arrow_text, parse_fd
from holdfast.core.words.schema import Column, Schema, Type
from holdfast.errors import UnknownColumnError, UnknownTableError, UsageError
from holdfast.functional.fd_cover import keyed
from holdfast.functional.fd_explanation import FdExplanation
from holdfast.functional.fd_reading import FdReader
from holdfast.functional.key_reading import KeyReader
from holdfast.functional.refs import FdRef
from holdfast.workspace import Workspace
from reference import fds as oracle
from reference.fds import FD
from reference.keys import Combination, Row

FOLDER = "tables/t"


def masks_of(sets: Sequence[Iterable[int]], n_columns: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    n_words = max(1, -(-n_columns // 64))
    found = np.zeros((len(sets), n_words), dtype=np.uint64)
    for i, columns in enumerate(sets):
        for c in columns:
            found[i, c // 64] |= np.uint64(1 << (c % 64))
    return found


def saved(root: Path, what: str, stem: str, **arrays: Any) -> FileRef:
    return write_bundle(root, unique_name(FOLDER, stem, ".arrow"), arrays, {"holdfast": what})


def saved_cover(root: Path, cover: Iterable[FD], n_columns: int) -> FileRef:
    fds = sorted(cover, key=lambda fd: (fd[1], sorted(fd[0])))
    rhs = np.array([a for _, a in fds], dtype=np.int32)
    return saved(root, "fds", "cover", masks=masks_of([x for x, _ in fds], n_columns), rhs=rhs)


# -- a history of covers, without rows ------------------------------------------------------------


@dataclass(frozen=True)
class Past:
    """One commit to the table: what was done, and the cover after it."""

    action: str
    n_inserted: int
    n_deleted: int
    cover: frozenset[FD]
    elsewhere: int = 0  # versions of another table before it


def antichains(n_columns: int, pool: Sequence[int]) -> st.SearchStrategy[frozenset[FD]]:
    """Covers: of each right-hand side no left-hand side contains another."""
    fd = st.tuples(st.frozensets(st.sampled_from(pool), max_size=3), st.sampled_from(pool))

    def minimal(found: set[FD]) -> frozenset[FD]:
        real = {(x, a) for x, a in found if a not in x}
        return frozenset((x, a) for x, a in real if not any(y < x and a == b for y, b in real))

    return st.sets(fd, max_size=8).map(minimal)


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[Past]]:
    n_columns = draw(st.sampled_from([4, 70, 130]))
    pool = sorted({0, 1, n_columns // 2, n_columns - 1})
    covers = draw(st.lists(antichains(n_columns, pool), min_size=1, max_size=4))
    past = [Past("track", 9, 0, draw(st.sampled_from(covers)))]
    for _ in range(draw(st.integers(0, 8))):
        action = draw(st.sampled_from(["apply", "apply", "apply", "merge", "pin"]))
        # Only batches change a cover; what comes back later is another file.
        cover = draw(st.sampled_from([past[-1].cover, *covers])) if action == "apply" else past[-1].cover
        counts = (draw(st.integers(0, 5)), draw(st.integers(0, 5))) if action == "apply" else (0, 0)
        past.append(Past(action, *counts, cover, draw(st.integers(0, 1))))
    return n_columns, past


class Written:
    """A workspace whose only content is a history of covers."""

    def __init__(self, root: Path, n_columns: int, past: Sequence[Past], max_lhs: int = 0) -> None:
        self.root, self.n_columns, self.past = root, n_columns, past
        create_marker(root)
        self.ledger = Ledger.create(root)
        self.versions: list[int] = []
        before: FdRef | None = None
        for i, commit in enumerate(past):
            for _ in range(commit.elsewhere):
                other = self.state("other", None).to_dict()
                self.ledger.append(self.ledger.version, [CommitRow("other", "track", other)], [])
            if before is None or commit.cover != past[i - 1].cover:
                cover = saved_cover(root, commit.cover, n_columns)
                before = FdRef("witnessed", max_lhs, 0.0, cover, cover, None)
            detail = {"n_inserted": commit.n_inserted, "n_deleted": commit.n_deleted}
            row = CommitRow(
                "t",
                commit.action,
                self.state("t", before).to_dict(),
                detail if commit.action in ("track", "apply") else {"columns": []},
            )
            self.versions.append(self.ledger.append(self.ledger.version, [row], []))

    def state(self, table: str, fds: FdRef | None) -> TableState:
        none = FileRef("tables/t/segment-000000000000.arrow", 0, "0")
        return TableState(
            table=table,
            folder=FOLDER,
            schema=Schema(tuple(Column(f"c{c}", Type("int")) for c in range(self.n_columns))),
            kinds=("fd",),
            nulls="equal",
            row_key=(),
            options={},
            next_number=1,
            segments=(SegmentRef(0, 9, none, (1,) * self.n_columns),),
            kept={} if fds is None else {"fds": fds.to_dict()},
        )

    def reader(self) -> FdReader:
        tables = Tables(self.root, Ledger.open(self.root), Engine)
        return FdReader(tables, KeyReader(tables), lambda *_: (None, None))

    def held(self, i: int, fd: FD) -> bool:
        """Whether a dependency held after commit i, by definition."""
        return any(x <= fd[0] and a == fd[1] for x, a in self.past[i].cover)

    def fd_of(self, fd: Fd) -> FD:
        return frozenset(int(c[1:]) for c in fd.lhs), int(fd.rhs[1:])

    def spells(self, fd: FD) -> list[Spell]:
        found: list[Spell] = []
        for i, version in enumerate(self.versions):
            if self.held(i, fd) and (i == 0 or not self.held(i - 1, fd)):
                found.append(Spell(version, None))
            if not self.held(i, fd) and i and self.held(i - 1, fd):
                found[-1] = Spell(found[-1].first, version - 1)
        return found


@settings(max_examples=6)
@given(histories(), st.data())
def test_the_past_is_what_the_covers_say(drawn: tuple[int, list[Past]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        written = Written(Path(folder) / "w", *drawn)
        past, reader = written.past, written.reader()
        log = reader.log("t")
        assert reader.log() == log
        ever = {fd for commit in past for fd in commit.cover}
        assert {written.fd_of(h.fd) for h in log} == ever
        assert [h.fd for h in log] == sorted(
            (h.fd for h in log),
            key=lambda f: (len(f.lhs), *map(sorted, [written.fd_of(f)[0]]), int(f.rhs[1:])),
        )
        batches = [i for i, commit in enumerate(past) if commit.action in ("track", "apply")]
        for history in log:
            fd = written.fd_of(history.fd)
            spells = written.spells(fd)
            assert list(history.spells) == spells
            assert history.breaks == tuple(s.last + 1 for s in spells if s.last is not None)
            assert history.holds == written.held(-1, fd)
            assert history.minimal == (fd in past[-1].cover)
            assert history.n_versions == len(batches)
            assert history.n_held == sum(written.held(i, fd) for i in batches)
            outlived = [
                past[i] for i in range(1, len(past)) if written.held(i, fd) and written.held(i - 1, fd)
            ]
            assert history.n_inserted == sum(c.n_inserted for c in outlived)
            assert history.n_deleted == sum(c.n_deleted for c in outlived)
            assert history.n_current == held_before(written, len(past), fd)
            json.dumps(history.to_dict())

        asked = sorted(ever | {(x | {2}, a) for x, a in ever if a != 2}, key=str)
        masks = masks_of([x for x, _ in asked], written.n_columns)
        rhs = np.array([a for _, a in asked], dtype=np.int32)
        # In any order: what is kept of the past must not depend on what was asked before.
        for i in data.draw(st.permutations(range(len(past)))):
            found = reader.held_versions("t", keyed(masks, rhs), written.versions[i])
            assert found.dtype == np.int64
            assert found.tolist() == [held_before(written, i, fd) for fd in asked]


def held_before(written: Written, end: int, fd: FD) -> int:
    """Batches without a break up to commit `end - 1`, by definition."""
    count = 0
    for i in reversed(range(end)):
        if not written.held(i, fd):
            break
        count += written.past[i].action in ("track", "apply")
    return count


def test_the_past_is_read_on_not_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has seen the past, however long, reads only what was committed since."""
    monkeypatch.setattr("holdfast.core.cover.history.FEW_COMMITS", 2)
    first, second = frozenset({(frozenset({0}), 1)}), frozenset({(frozenset({0, 2}), 1)})
    past = [Past("track", 3, 0, first), *[Past("apply", 1, 0, first)] * 4]
    written = Written(tmp_path / "w", 3, past)
    reader = written.reader()
    masks, rhs = masks_of([{0}], 3), np.array([1])
    assert reader.held_versions("t", keyed(masks, rhs), 6).tolist() == [5]
    monkeypatch.setattr(Ledger, "states", lambda _: pytest.fail("the whole ledger is read again"))
    cover = saved_cover(written.root, second, 3)
    state = written.state("t", FdRef("witnessed", 0, 0.0, cover, cover, None)).to_dict()
    ledger = Ledger.open(written.root)
    ledger.append(5, [CommitRow("t", "apply", state, {"n_inserted": 1, "n_deleted": 0})], [])
    assert reader.held_versions("t", keyed(masks, rhs), 7).tolist() == [0]
    assert reader.held_versions("t", keyed(masks, rhs), 6).tolist() == [5]
    assert [h.spells for h in reader.log("t")] == [(Spell(1, 5),), (Spell(1, None),)]


def test_only_so_far_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.core.cover.history.MAX_RUNS", 2)
    covers = [frozenset({(frozenset({0}), 1), (frozenset({0}), c)}) for c in (2, 3, 2, 3)]
    written = Written(
        tmp_path / "w", 4, [Past("apply" if i else "track", 1, 0, c) for i, c in enumerate(covers)]
    )
    assert written.reader().held_versions("t", keyed(masks_of([{0}], 4), np.array([1])), 5).tolist() == [2]


def test_a_table_that_is_tracked_anew_has_a_new_past(tmp_path: Path) -> None:
    cover = frozenset({(frozenset({0}), 1)})
    none: frozenset[FD] = frozenset()
    past = [Past("track", 3, 0, cover), Past("apply", 1, 0, none), Past("track", 3, 0, cover)]
    written = Written(tmp_path / "w", 3, past)
    reader = written.reader()
    masks, rhs = masks_of([{0}], 3), np.array([1])
    assert [reader.held_versions("t", keyed(masks, rhs), v).tolist() for v in (4, 3, 2, 4, 1)] == [
        [1], [0], [1], [1], [0]
    ]  # fmt: skip
    assert [(h.spells, h.n_versions) for h in reader.log()] == [((Spell(3, None),), 1)]


# -- tables with rows -----------------------------------------------------------------------------


class Kept(Workspace):
    """A workspace whose commits carry the dependencies that the oracle finds in the rows."""

    rows: list[Row]
    evidence_kind: Any = "counted"
    bound = 0
    max_error = 0.0
    feeding = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(Writer(*args, **kwargs))
        current, append = self.writer.tables.current, self.writer.append

        def keys_only(table: str, at: int | None = None) -> tuple[int, TableState]:
            """A batch sees a table of keys only, so that nothing but the oracle maintains dependencies."""
            version, state = current(table, at)
            kept = {name: part for name, part in state.kept.items() if name != "fds"}
            return version, replace(state, kinds=("ucc",), kept=kept) if self.feeding else state

        def with_fds(base: int, commits: Sequence[CommitRow], changes: Sequence[ChangeRow] = ()) -> int:
            return append(base, *self.completed(commits, changes))

        self.writer.tables.current = keys_only  # type: ignore[method-assign]
        self.writer.append = with_fds  # type: ignore[method-assign]

    def completed(
        self, commits: Sequence[CommitRow], changes: Sequence[ChangeRow]
    ) -> tuple[list[CommitRow], list[ChangeRow]]:
        own, told = [], list(changes)
        for commit in commits:
            assert commit.state is not None
            state = TableState.from_dict(commit.state)
            after = self.found(state)
            before = getattr(self, "before", set())
            names = state.schema.names
            for event, fds in (("broke", before - after), ("appeared", after - before)):
                for x, a in sorted(fds, key=str):
                    fd = Fd("t", tuple(names[c] for c in sorted(x)), names[a])
                    told.append(ChangeRow("t", "fd", event, fd.to_dict(), "for a test", [[{"row": 1}]]))
            self.before = after
            fds = self.oracle_ref(state, after).to_dict()
            state = replace(state.keeping(fds=fds), kinds=("ucc", "fd"))
            own.append(replace(commit, state=state.to_dict()))
        return own, told

    def found(self, state: TableState) -> set[FD]:
        return oracle.minimal_fds(self.rows, len(state.schema), state.nulls, self.bound or None)

    def oracle_ref(self, state: TableState, cover: set[FD]) -> FdRef:
        n, bound = len(state.schema), self.bound or None
        counted = oracle.agree_counts(self.rows, state.nulls)
        counts = np.array(list(counted.values()), dtype=np.int64)
        masks = masks_of(list(counted), n)
        evidence = saved(self.root, "agreement", "evidence", masks=masks, counts=counts)
        approximate = None
        if self.max_error:
            found = oracle.approximate_fds(self.rows, n, state.nulls, self.max_error, bound)
            keys = oracle.approximate_keys(self.rows, n, state.nulls, self.max_error, bound)
            all_of = [*((x, -1, v) for x, v in keys.items()), *((x, a, v) for (x, a), v in found.items())]
            approximate = saved(
                self.root,
                "approximate",
                "cover",
                masks=masks_of([x for x, _, _ in all_of], n),
                rhs=np.array([a for _, a, _ in all_of], dtype=np.int32),
                violations=np.array([v for _, _, v in all_of], dtype=np.int64),
            )
        written = saved_cover(self.root, cover, n)
        return FdRef(self.evidence_kind, self.bound, self.max_error, written, evidence, approximate)

    def feed(self, rows: Sequence[Row], n_columns: int, **options: Any) -> None:
        """Make the table hold these rows, by a batch of the difference."""
        kept, gone = list(rows), []
        for row in getattr(self, "rows", []):
            if row in kept:
                kept.remove(row)
            else:
                gone.append(row)
        first = not hasattr(self, "rows")
        self.rows, self.feeding = list(rows), True
        if first:
            self.track("t", table_of(kept, n_columns), **options)
        else:
            parts = {"inserts": kept, "deletes": gone}
            self.apply("t", **{k: table_of(v, n_columns) for k, v in parts.items() if v})
        self.feeding = False


def table_of(rows: Sequence[Row], n_columns: int) -> pa.Table:
    return pa.table({f"c{c}": pa.array([row[c] for row in rows], pa.int64()) for c in range(n_columns)})


def names(columns: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"c{c}" for c in sorted(columns))


def all_fds(n_columns: int) -> Iterator[tuple[Combination, int]]:
    for size in range(n_columns + 1):
        for x in map(frozenset, combinations(range(n_columns), size)):
            for a in range(n_columns):
                yield x, a


ROW = st.tuples(*[st.sampled_from([0, 1, 2, None])] * 3)
TABLES = st.lists(st.lists(ROW, max_size=6), min_size=1, max_size=3)


@settings(max_examples=5)
@given(TABLES, st.sampled_from(["equal", "distinct"]), st.sampled_from([0, 1]), st.booleans())
@example([[(0, 0, 0), (0, 0, 1)], [(0, 0, 0)]], "equal", 0, True)
@example([[(None, 0, None), (None, 0, None)], [(0, 1, 2), (0, 2, 2)]], "distinct", 1, False)
def test_every_dependency_is_explained(
    tables: list[list[Row]], nulls: str, max_lhs: int, counted: bool
) -> None:
    with TemporaryDirectory() as folder, Kept(Path(folder) / "w", engine="inline") as ws:
        ws.bound, ws.evidence_kind = max_lhs, "counted" if counted else "witnessed"
        versions = []
        for i, rows in enumerate(tables):
            if i and sorted(rows, key=str) == sorted(ws.rows, key=str):
                continue
            ws.feed(rows, 3, nulls=nulls)
            versions.append((ws.version, list(rows)))
        rows = versions[-1][1]
        for x, a in all_fds(3):
            told = ws.fds.explain("t", [f"c{c}" for c in x], f"c{a}")
            assert (told.lhs, told.rhs, told.version) == (names(x), f"c{a}", ws.version)
            assert told.trivial == (a in x)
            assert told.holds == oracle.holds(rows, x, a, nulls)
            assert told.violations == oracle.violating_pairs(rows, x, a, nulls)
            assert told.error == pytest.approx(oracle.g1(rows, x, a, nulls))
            assert told.g3 == pytest.approx(oracle.g3(rows, x, a, nulls))
            assert told.error == ws.fds.error_of("t", told.lhs, told.rhs)
            cover = oracle.minimal_fds(rows, 3, nulls, max_lhs or None)
            assert {(f.lhs, f.rhs) for f in told.inside} == {
                (names(y), f"c{b}") for y, b in cover if y <= x and a == b and a not in x
            }
            assert told.violating_rows == sum(
                sum(g.values()) for g in oracle.groups(rows, x, a, nulls) if len(g) > 1
            )
            assert bool(told.groups) == (not told.holds)
            wide = 0 < max_lhs < len(x)
            if not wide:
                assert told.minimal == ((x, a) in cover)
                assert told.since == since(versions, x, a, nulls)
                assert (told.turned is None) == (told.since == versions[0][0])
            if told.minimal:
                assert (x, a) in oracle.minimal_fds(rows, 3, nulls)
            if told.key is not None:
                inside = [int(c[1:]) for c in told.key]
                assert set(told.key) <= set(told.lhs)
                assert all(oracle.holds(rows, inside, b, nulls) for b in range(3) if b not in inside)
            json.dumps(told.to_dict())
        for x in {x for x, _ in all_fds(3)}:
            agreeing = oracle.agreeing_pairs(rows, x, nulls)
            assert ws.fds.error_of("t", names(x)) == (agreeing / oracle.total_pairs(rows) if agreeing else 0)


def since(versions: Sequence[tuple[int, list[Row]]], x: Combination, a: int, nulls: str) -> int:
    """The first version of the current spell, by definition."""
    now = oracle.holds(versions[-1][1], x, a, nulls)
    found = versions[-1][0]
    for version, rows in reversed(versions):
        if oracle.holds(rows, x, a, nulls) != now:
            break
        found = version
    return found


@pytest.fixture
def towns(tmp_path: Path) -> Iterator[Kept]:
    """zip (c0), city (c1), street (c2): zip -> city breaks at version 2, and holds again at version 3."""
    with Kept(tmp_path / "w", engine="inline") as ws:
        good = [(1, 10, 5), (1, 10, 6), (2, 20, 5), (3, 20, 7)]
        ws.feed(good, 3)
        ws.feed([*good, (1, 11, 8), (1, 12, 9)], 3)
        yield ws


def test_a_broken_one(towns: Kept) -> None:
    told = towns.fds.explain("t", ["c0"], "c1")
    assert (told.holds, told.minimal, told.trivial) == (False, False, False)
    assert (told.since, told.turned and told.turned.version, told.key) == (2, 2, None)
    assert [(c.change, c.dependency["lhs"], c.witnesses) for c in told.turned_by] == [
        ("broke", ["c0"], [[{"row": 1}]])
    ]
    # Of the four rows of zip 1 two may stay; five of their six pairs contradict each other.
    assert (told.violations, told.error, told.rows_to_remove, told.g3) == (5, 5 / 15, 2, 2 / 6)
    assert told.violating_rows == 4
    [group] = told.groups
    assert (dict(group.lhs), group.n_rows, group.values[0]) == ({"c0": 1}, 4, (10, 2))
    assert all(row.values["c0"] == 1 for row in group.rows)


def test_one_that_holds_again(towns: Kept) -> None:
    towns.feed(towns.rows[:4], 3)
    told = towns.fds.explain("t", ["c0"], "c1")
    assert (told.holds, told.minimal) == (True, True)
    assert (told.since, told.violations, told.g3, told.groups) == (3, 0, 0.0, ())
    assert [c.change for c in told.turned_by] == ["appeared"]
    histories = {h.fd.name: h for h in towns.fds.log("t")}
    assert histories["c0 -> c1"].spells == (Spell(1, 1), Spell(3, None))
    assert histories["c0 -> c1"].breaks == (2,)


def test_a_wider_one_names_what_implies_it(towns: Kept) -> None:
    towns.feed(towns.rows[:4], 3)
    told = towns.fds.explain("t", ["c2", "c0"], "c1")
    assert (told.holds, told.minimal) == (True, False)
    assert [fd.name for fd in told.inside] == ["c0 -> c1"]
    assert told.key == ("c0", "c2")


def test_a_trivial_one(towns: Kept) -> None:
    told = towns.fds.explain("t", ["c0", "c1"], "c1")
    assert (told.trivial, told.holds, told.minimal, told.inside, told.key) == (True, True, False, (), None)
    assert (told.since, told.turned) == (1, None)


def test_beyond_the_bound(tmp_path: Path) -> None:
    """A cover says nothing of wider left-hand sides: the rows do, and the past stays unknown."""
    with Kept(tmp_path / "w", engine="inline") as ws:
        ws.bound = 1
        ws.feed([(1, 1, 1, 1), (1, 2, 2, 1), (2, 1, 3, 2), (2, 2, 4, 1)], 4)
        told = ws.fds.explain("t", ["c0", "c1"], "c3")
        assert (told.holds, told.minimal, told.since, told.turned) == (True, True, None, None)
        assert (told.inside, told.max_lhs, ws.fds.max_lhs("t")) == ((), 1, 1)
        assert ws.fds.explain("t", ["c0", "c2"], "c3").since == 1
        ws.feed([*ws.rows, (1, 1, 5, 2)], 4)
        told = ws.fds.explain("t", ["c0", "c1"], "c3")
        assert (told.holds, told.since, told.violations) == (False, None, 1)
        assert {h.max_lhs for h in ws.fds.log()} == {1}


def test_what_cannot_be_explained(towns: Kept) -> None:
    with pytest.raises(UnknownColumnError, match="Did you mean 'c1'"):
        towns.fds.explain("t", ["c0"], "c1x")
    with pytest.raises(UnknownTableError):
        towns.fds.explain("u", ["c0"], "c1")
    with pytest.raises(UnknownTableError):
        towns.fds.log("u")
    with holdfast.open(towns.root, engine="inline") as plain:
        plain.track("keys", table_of([(1, 2)], 2))
    for call in (lambda: towns.fds.rank("keys"), lambda: towns.fds.log("keys")):
        with pytest.raises(UsageError, match="'keys' are not tracked, only: ucc"):
            call()
    assert {h.fd.table for h in towns.fds.log()} == {"t"}
    assert not towns.dependencies(kind="fd", table="keys")


@pytest.mark.parametrize("evidence", ["counted", "witnessed"])
def test_as_it_is_maintained(tmp_path: Path, evidence: str) -> None:
    """The same on a workspace that finds its dependencies itself, after it was opened anew."""
    good = [(1, 10, 5), (1, 10, 6), (2, 20, 5), (3, 20, 7)]
    bad = table_of([(1, 11, 8), (1, 12, 9)], 3)
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        ws.track("t", table_of(good, 3), kinds=("ucc", "fd"), evidence=evidence)
        ws.apply("t", inserts=table_of([(4, 30, 9)], 3))
        change = ws.apply("t", inserts=bad, batch_id="bad")
        assert [(str(c.dependency), c.held) for c in change.broke] == [("t: c0 -> c1", 2)]
    with holdfast.open(tmp_path / "w", engine="inline") as ws:
        told = ws.fds.explain("t", ["c0"], "c1")
        assert (told.holds, told.since, told.violations, told.rows_to_remove) == (False, 3, 5, 2)
        assert told.turned is not None
        assert told.turned.batch_id == "bad"
        [broke] = told.turned_by
        [[one, other]] = broke.witnesses or []
        assert one["values"]["c0"] == other["values"]["c0"]
        assert one["values"]["c1"] != other["values"]["c1"]
        ws.apply("t", deletes=bad)
        assert ws.fds.explain("t", ["c0"], "c1").since == 4
        [history] = [h for h in ws.fds.log("t") if h.fd.name == "c0 -> c1"]
        assert history.spells == (Spell(1, 2), Spell(4, None))
        assert (history.n_versions, history.n_held, history.n_current) == (4, 3, 1)
        assert (history.n_inserted, history.n_deleted) == (1, 0)


# -- listing --------------------------------------------------------------------------------------


def listed(ws: Kept, **options: Any) -> list[tuple[str, float]]:
    found = ws.dependencies(kind="fd", **options)
    return [(d.name, d.error) for d in found if isinstance(d, Fd)]


def test_exact_ones_now_and_then(towns: Kept) -> None:
    """Short left-hand sides first, then in the order of the schema."""
    for version, rows in ((1, towns.rows[:4]), (2, towns.rows)):
        cover = oracle.minimal_fds(rows, 3, "equal")
        order = sorted(cover, key=lambda fd: (len(fd[0]), sorted(fd[0]), fd[1]))
        assert listed(towns, at=version) == [
            (f"{', '.join(names(x)) or '[]'} -> c{a}", 0.0) for x, a in order
        ]
    assert [d.kind for d in towns.dependencies()] == sorted(
        (d.kind for d in towns.dependencies()), reverse=True
    )


@settings(max_examples=8)
@given(
    st.lists(ROW, max_size=8),
    st.sampled_from(["equal", "distinct"]),
    st.sampled_from([0.05, 0.2, 1 / 3, 0.5, 1.0]),
    st.sampled_from([0, 1, 2]),
    st.booleans(),
)
def test_those_that_almost_hold(
    rows: list[Row], nulls: str, max_error: float, max_lhs: int, tracked: bool
) -> None:
    """Kept for the tracked error, worked out for another: both are what the oracle says."""
    with TemporaryDirectory() as folder, Kept(Path(folder) / "w", engine="inline") as ws:
        ws.bound, ws.max_error = max_lhs, max_error if tracked else 0.25
        ws.feed(rows, 3, nulls=nulls)
        total, bound = oracle.total_pairs(rows), max_lhs or None
        fds = oracle.approximate_fds(rows, 3, nulls, max_error, bound)
        found = ws.dependencies(kind="fd", max_error=max_error)
        assert [(d.lhs, d.rhs, d.error) for d in found if isinstance(d, Fd)] == [
            (names(x), f"c{a}", n / total if n else 0.0)
            for (x, a), n in sorted(fds.items(), key=lambda f: (len(f[0][0]), sorted(f[0][0]), f[0][1]))
        ]
        keys = oracle.approximate_keys(rows, 3, nulls, max_error, bound)
        uccs = ws.dependencies(kind="ucc", max_error=max_error)
        assert {(d.columns, d.error) for d in uccs if isinstance(d, Ucc)} == {
            (names(x), n / total if n else 0.0) for x, n in keys.items()
        }
        assert ws.dependencies(max_error=max_error) == [*uccs, *found]


def test_the_threshold_of_older_versions(tmp_path: Path) -> None:
    with Kept(tmp_path / "w", engine="inline") as ws:
        ws.max_error = 0.2
        ws.feed([(1, 1), (1, 1), (1, 2), (2, 2)], 2)
        before = listed(ws, max_error=0.2)
        ws.feed([(1, 1), (1, 1)], 2)
        assert listed(ws, max_error=0.2, at=1) == before
        assert listed(ws, max_error=0.2) == [("[] -> c0", 0.0), ("[] -> c1", 0.0)]
        with pytest.raises(UsageError, match=r"version 1 only those within an error of 0\.2 are kept"):
            listed(ws, max_error=0.3, at=1)
        assert listed(ws, max_error=0.3, at=2) == listed(ws, max_error=0.2)


def test_witnessed_evidence_knows_no_errors(tmp_path: Path) -> None:
    with Kept(tmp_path / "w", engine="inline") as ws:
        ws.evidence_kind = "witnessed"
        ws.feed([(1, 1), (1, 2)], 2)
        with pytest.raises(UsageError, match="--evidence counted"):
            ws.dependencies(kind="fd", max_error=0.1)
        assert ws.dependencies(max_error=0.1) == ws.dependencies()
        assert ws.dependencies(kind="ucc", max_error=0.1) == ws.dependencies(kind="ucc")


# -- notation -------------------------------------------------------------------------------------

COLUMNS = ["a", "b", "c", "a,b", "x -> y", '"', '5" pipe', "[]", " ", "-", "->"]


@pytest.mark.parametrize(
    ("text", "lhs", "rhs"),
    [
        ("a -> b", ("a",), "b"),
        ("  b,a->c ", ("a", "b"), "c"),
        ("a, a -> b", ("a",), "b"),
        ("-> c", (), "c"),
        ("[] -> c", (), "c"),
        (" [ ] -> c", None, None),
        ('"a,b" -> c', ("a,b",), "c"),
        ('"x -> y","a" -> "b"', ("a", "x -> y"), "b"),
        ('5" pipe -> """"', ('5" pipe',), '"'),
        ('"[]", " " -> "->"', ("[]", " "), "->"),
        ("- -> a", ("-",), "a"),
        ("a -> a", ("a",), "a"),
    ],
)
def test_a_dependency_in_words(text: str, lhs: tuple[str, ...] | None, rhs: str | None) -> None:
    if lhs is None:
        with pytest.raises(UnknownColumnError):
            parse_fd(text, COLUMNS)
    else:
        assert parse_fd(text, COLUMNS) == (lhs, rhs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no arrow"),
        ("a, b", "has no arrow"),
        ("a -> b -> c", "has 2 arrows.*double quotes"),
        ("a ->", "no column on its right side"),
        ("a -> []", "no column on its right side"),
        ("a -> b, c", "has 2 columns on its right side"),
        ("a,, b -> c", "a comma without a column"),
        (", a -> c", "a comma without a column"),
        ("a, -> c", "a comma without a column"),
        ("[], a -> c", "a comma without a column"),
        ('"a -> b', "a quote that is not closed"),
        ('"a"b -> c', "goes on behind a closed quote"),
    ],
)
def test_what_is_no_dependency(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_fd(text, COLUMNS)


def test_an_unknown_column_in_words() -> None:
    with pytest.raises(UnknownColumnError, match=r"'t' \(version 7\) has no column 'citty'.*mean 'city'"):
        parse_fd("zip -> citty", ["zip", "city"], table="t", version=7)


NAMES = st.text(st.sampled_from('ab ,->"[]\t\u00a0é'), min_size=1, max_size=6)


@given(st.lists(NAMES, min_size=1, max_size=5, unique=True), st.data())
def test_written_and_read(columns: list[str], data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(columns)))
    lhs = tuple(c for c in columns if c in chosen)
    rhs = data.draw(st.sampled_from(columns))
    assert parse_fd(arrow_text(lhs, rhs), columns) == (lhs, rhs)


def test_an_explanation_is_a_dependency_too(towns: Kept) -> None:
    told: FdExplanation = towns.fds.explain("t", ["c0"], "c1")
    assert (told.fd, told.fd.error) == (Fd("t", ("c0",), "c1"), told.error)
