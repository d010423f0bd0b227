"""Denial constraints that are too many: what is known when the search meets its limits, and batches then."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast.core.cover.kernels import search as cover_search
from holdfast.core.cover.kernels.search import Watch
from holdfast.core.words.predicate import Dc
from holdfast.denial import budget as dc_budget
from holdfast.denial import dc_class
from holdfast.denial.access import plan as dc_plan
from holdfast.denial.access.plan import expected_evidences
from holdfast.denial.budget import Search, SearchStopped, searched
from holdfast.denial.constraints import DcLimits
from holdfast.denial.dc_cover import DcCover
from holdfast.errors import UsageError

EVIDENCE = ("counted", "witnessed")


@dataclass(frozen=True)
class _State:
    bound: int
    stopped: bool = False


def rows(seed: int, n: int = 24) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table({name: chance.integers(0, 6, n) for name in "abc"})


def dcs(ws: holdfast.Workspace, table: str = "t") -> set[str]:
    return {str(d) for d in ws.dependencies(kind="dc", table=table)}


def sizes(ws: holdfast.Workspace, table: str = "t") -> list[int]:
    return [len(d.predicates) for d in ws.dependencies(kind="dc", table=table) if isinstance(d, Dc)]


def opened(path: Path, source: pa.Table, **options: Any) -> holdfast.Workspace:
    ws = holdfast.open(path, engine="inline")
    ws.track("t", source, kinds=("dc",), **options)
    return ws


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_too_many_are_known_up_to_a_bound(tmp_path: Path, evidence: str) -> None:
    whole = opened(tmp_path / "whole", rows(1), evidence=evidence)
    by_size = np.bincount(sizes(whole))
    bound = next(k for k in range(len(by_size)) if by_size[: k + 1].sum() > 0)
    most = int(by_size[: bound + 1].sum())
    assert most < by_size.sum()
    bounded = opened(tmp_path / "bounded", rows(1), evidence=evidence, max_predicates=bound)
    ws = holdfast.open(tmp_path / "w", engine="inline")
    change = ws.track("t", rows(1), kinds=("dc",), evidence=evidence, max_dcs=most)
    assert dcs(ws) == dcs(bounded)
    [note] = change.notes
    assert f"known up to {bound} predicates" in note
    assert f"60 s or {most:,} constraints" in note
    assert change.tables[0].fields["max_predicates"] == bound
    ref = ws.dcs.ref("t")
    assert ref is not None
    assert (ref.max_predicates, ref.stopped) == (bound, True)


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_batches_go_on_under_the_bound(tmp_path: Path, evidence: str) -> None:
    """What the search had to leave out is left out from then on, and all the rest stays exact."""
    ws = opened(tmp_path / "w", rows(1), evidence=evidence, max_dcs=100)
    ref = ws.dcs.ref("t")
    assert ref is not None
    assert ref.stopped
    bound = ref.max_predicates
    parts = [rows(1).slice(12 * i, 12) for i in range(2)]
    for i, batch in enumerate([{"inserts": rows(2, 15)}, {"deletes": parts[0]}, {"deletes": parts[1]}]):
        change = ws.apply("t", **batch)
        ref = ws.dcs.ref("t")
        assert ref is not None
        if ref.max_predicates == bound:
            assert change.notes == ()
        else:
            assert ref.max_predicates < bound
            assert "are not kept any more" in change.notes[0]
        bound = ref.max_predicates
        now = pa.concat_tables([*(parts if i == 0 else parts[i:]), rows(2, 15)])
        again = opened(tmp_path / str(i), now, evidence=evidence, max_predicates=bound)
        assert dcs(ws) == dcs(again)


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_a_batch_lowers_the_bound(tmp_path: Path, evidence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that the search cannot follow is applied; constraints are known up to fewer predicates."""
    ws = opened(tmp_path / "w", rows(1), evidence=evidence)
    before = ws.dependencies(kind="dc", table="t")
    honest = Search.within

    def short(self: Search, search: Any) -> Any:
        found = honest(self, search)
        if self._seconds is not None and found.max_size not in (1, 2, 3):
            raise SearchStopped
        return found

    monkeypatch.setattr(Search, "within", short)
    change = ws.apply("t", inserts=rows(3, 5), deletes=rows(1).slice(0, 4))
    monkeypatch.undo()
    n_longer = sum(len(d.predicates) > 3 for d in before if isinstance(d, Dc))
    assert f"known up to 3 predicates ({n_longer:,} longer ones are not kept any more)" in change.notes[0]
    dropped = [c.dependency for c in change.changes if c.event == "dropped"]
    assert len(dropped) + change.tables[0].unlisted >= n_longer
    assert all(len(d.predicates) > 3 for d in dropped if isinstance(d, Dc))
    assert not [c for c in change.broke if isinstance(c.dependency, Dc) and len(c.dependency.predicates) > 3]
    now = pa.concat_tables([rows(1).slice(4), rows(3, 5)])
    again = opened(tmp_path / "again", now, evidence=evidence, max_predicates=3)
    assert dcs(ws) == dcs(again)
    assert holdfast.open(tmp_path / "w").dcs.ref("t").max_predicates == 3  # type: ignore[union-attr]


def test_time_is_a_limit(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    change = ws.track("t", rows(1), kinds=("dc",), dc_seconds=1e-9)
    assert change.tables[0].fields["max_predicates"] == 1
    assert "known up to 1 predicate:" in change.notes[0]
    assert "1e-09 s" in change.notes[0]
    one = opened(tmp_path / "one", rows(1), max_predicates=1, dc_seconds=1e-9)
    assert dcs(ws) == dcs(one)
    assert not one.dcs.ref("t").stopped  # type: ignore[union-attr]


def test_approximate_ones_are_bounded_too(tmp_path: Path) -> None:
    ws = opened(tmp_path / "w", rows(1), max_error=0.01, max_dcs=150)
    ref = ws.dcs.ref("t")
    assert ref is not None
    assert ref.stopped
    again = opened(tmp_path / "again", rows(1), max_error=0.01, max_predicates=ref.max_predicates)
    near = [{str(d) for d in w.dependencies(kind="dc", table="t", max_error=0.01)} for w in (ws, again)]
    assert near[0] == near[1]


def test_the_clock_runs_while_searching() -> None:
    """Half of the time is for constraints of any size; the rest goes to rising bounds."""
    bounds: list[tuple[int, bool]] = []

    def attempt(bound: int, search: Search) -> Any:
        bounds.append((bound, search._seconds is None))
        if bound in (0, 4):
            raise SearchStopped
        return _State(bound)

    assert searched(DcLimits(), 0, 9, None, attempt) == _State(3, stopped=True)
    assert bounds == [(0, False), (1, True), (2, False), (3, False), (4, False)]
    assert searched(DcLimits(), 3, 9, None, attempt) == _State(3)


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dc_budget, "PROGRESS_S", -1.0)
    told: list[tuple[int, int]] = []
    search = Search(60.0, 100, lambda done, total: told.append((done, total)))

    def work(watch: Watch) -> DcCover:
        watch(42)
        watch(202)
        raise AssertionError("the search goes on beyond its limit")

    with pytest.raises(SearchStopped):
        search.within(work)
    assert told == [(21, 0), (101, 0)]


def test_batches_where_evidences_are_very_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a bounded cover is searched for in parts, also after a batch."""
    monkeypatch.setattr(cover_search, "MANY_BOUNDED", 0)
    monkeypatch.setattr(cover_search, "FIRST_EVIDENCES", 4)
    ws = opened(tmp_path / "w", rows(1, 12), evidence="counted", max_predicates=3)
    ws.apply("t", inserts=rows(2, 5), deletes=rows(1, 12).slice(3, 4))
    monkeypatch.undo()
    after = pa.concat_tables([rows(1, 12).slice(0, 3), rows(1, 12).slice(7), rows(2, 5)])
    assert dcs(ws) == dcs(opened(tmp_path / "anew", after, evidence="counted", max_predicates=3)) != set()


@pytest.mark.parametrize(
    ("names", "values", "lowest", "highest"), [("ab", 6, 10, 500), ("abcdefgh", 1_000, 180_000, 400_000)]
)
def test_what_it_will_cost_is_told_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: str, values: int, lowest: int, highest: int
) -> None:
    """Rows of few values have few evidences, however many they are; of many values, each pair has its own."""
    monkeypatch.setattr(dc_plan, "ESTIMATE_ROWS", 64)
    estimates: list[int] = []
    monkeypatch.setattr(
        dc_class, "expected_evidences", lambda *of: estimates.append(expected_evidences(*of)) or estimates[-1]
    )
    stages: list[str] = []
    chance = np.random.default_rng(1)
    source = pa.table({name: chance.integers(0, values, 600) for name in names})
    ws = holdfast.open(tmp_path / "w", engine="inline", progress=lambda stage, *_: stages.append(stage))
    ws.track("t", source, kinds=("dc",), max_predicates=1)
    [estimate] = estimates
    assert lowest <= estimate <= highest
    told = next(s for s in stages if s.startswith("comparing"))
    assert told.startswith("comparing 179,700 pairs of rows by ")
    assert stages.index(told) < next(
        i for i, s in enumerate(stages) if s.startswith("finding denial constraints")
    )


@pytest.mark.parametrize(
    ("option", "words"),
    [({"dc_seconds": 0}, "dc_seconds is 0"), ({"max_dcs": 0}, "max_dcs is 0"), ({"dc_seconds": -1}, "-1")],
)
def test_limits_are_checked(tmp_path: Path, option: dict[str, Any], words: str) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    with pytest.raises(UsageError, match=words):
        ws.track("t", rows(1), kinds=("dc",), **option)
    with pytest.raises(UsageError, match="Add the kind dc"):
        ws.track("t", rows(1), kinds=("ucc",), within_columns=True)


def test_within_columns(tmp_path: Path) -> None:
    ws = opened(tmp_path / "w", rows(1), within_columns=True)
    assert all(
        p.left == p.right for d in ws.dependencies(kind="dc") if isinstance(d, Dc) for p in d.predicates
    )
    assert opened(tmp_path / "v", rows(1)).dcs.ref("t").space.n_comparisons > 18  # type: ignore[union-attr]
    ref = holdfast.open(tmp_path / "w").dcs.ref("t")
    assert ref is not None
    assert (ref.within_columns, ref.space.n_comparisons) == (True, 18)
    ws.apply("t", inserts=rows(2, 3))
    assert ws.dcs.ref("t").within_columns  # type: ignore[union-attr]
