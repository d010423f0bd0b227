"""Tables with many columns and few rows: the same answers, at a cost that follows the columns."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from holdfast.core.engine.engine import Engine
from holdfast.core.evidence import refute
from holdfast.core.evidence.validation import NO_PIVOT
from holdfast.core.rows import codes
from holdfast.core.rows.kernels.masks import mask_of
from holdfast.core.rows.relation import Relation
from holdfast.core.words.column_sets import columns_of
from holdfast.core.words.dependency import Fd, Ucc

N_COLUMNS = 150
Row = tuple[Any, ...]


def rows_of(seed: int, n_rows: int) -> list[Row]:
    """Numbers and texts, with NULLs; some columns are keys."""
    chance = np.random.default_rng(seed)
    values: list[Any] = [0, 1, 2, 3, 4, None]
    rows = [[values[v] for v in chance.integers(0, 6, N_COLUMNS)] for _ in range(n_rows)]
    return [tuple(str(v) if c % 2 and v is not None else v for c, v in enumerate(row)) for row in rows]


def as_table(rows: list[Row]) -> pa.Table:
    types = [pa.string() if c % 2 else pa.int64() for c in range(N_COLUMNS)]
    columns = list(zip(*rows, strict=True)) or [()] * N_COLUMNS
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, names=[f"c{c}" for c in range(N_COLUMNS)])


def unique_columns(rows: list[Row], nulls: str) -> set[str]:
    found = set()
    for c in range(N_COLUMNS):
        values = [row[c] for row in rows if row[c] is not None or nulls == "equal"]
        if len(set(values)) == len(values):
            found.add(f"c{c}")
    return found


def determined(rows: list[Row]) -> set[tuple[str, str]]:
    """a -> b by definition, NULLs being equal; constants follow from nothing."""
    constant = [len({row[c] for row in rows}) == 1 for c in range(N_COLUMNS)]
    return {
        (f"c{a}", f"c{b}")
        for a in range(N_COLUMNS)
        for b in range(N_COLUMNS)
        if a != b and not constant[b] and len({(r[a], r[b]) for r in rows}) == len({r[a] for r in rows})
    }


@pytest.mark.parametrize("nulls", ["equal", "distinct"])
@pytest.mark.parametrize("colliding", [False, True])
def test_keys_of_one_column(
    tmp_path: Path, nulls: str, colliding: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if colliding:
        honest = codes.hash_texts
        monkeypatch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & 1)
    ws = holdfast.open(tmp_path / "w", engine="inline")
    rows = rows_of(1, 4)
    ws.track("t", as_table(rows), max_columns=1, nulls=nulls)
    history: list[tuple[list[Row], list[Row]]] = [
        (rows_of(2, 1), []),
        (rows_of(3, 2), rows[:1]),
        ([], rows[1:3]),
        (rows[:1], rows_of(2, 1)),
    ]
    for inserts, deletes in [([], []), *history]:
        if inserts or deletes:
            change = ws.apply("t", inserts=as_table(inserts), deletes=as_table(deletes))
            rows = [r for r in rows if r not in deletes] + inserts
            expected = unique_columns(rows, nulls)
            assert {c.dependency.columns[0] for c in change.appeared if isinstance(c.dependency, Ucc)} <= (
                expected
            )
        found = {d.columns for d in ws.dependencies(kind="ucc") if isinstance(d, Ucc)}
        assert found == {(name,) for name in unique_columns(rows, nulls)}


def test_dependencies_on_one_column(tmp_path: Path) -> None:
    ws = holdfast.open(tmp_path / "w", engine="inline")
    rows = rows_of(1, 4)
    ws.track("t", as_table(rows), kinds=("fd",), max_lhs=1, evidence="witnessed")
    for inserts, deletes in [([], []), (rows_of(2, 1), []), ([], rows[:2])]:
        if inserts or deletes:
            ws.apply("t", inserts=as_table(inserts), deletes=as_table(deletes))
            rows = [r for r in rows if r not in deletes] + inserts
        found = [d for d in ws.dependencies(kind="fd") if isinstance(d, Fd)]
        assert {(d.lhs[0], d.rhs) for d in found if d.lhs} == determined(rows)


def test_few_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task is not a column: each costs a look at all of them."""
    n_payloads = 0
    honest = Engine.run

    def counting(self: Engine, function: Any, payloads: list[dict[str, Any]], **how: Any) -> list[bytes]:
        nonlocal n_payloads
        n_payloads += len(payloads)
        return honest(self, function, payloads, **how)

    monkeypatch.setattr(Engine, "run", counting)
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("t", as_table(rows_of(1, 4)), max_columns=1)
    ws.apply("t", inserts=as_table(rows_of(2, 1)))
    ws.apply("t", deletes=as_table(rows_of(2, 1)))
    assert n_payloads < 20


def work_and_bytes(root: Path, n_columns: int) -> dict[str, tuple[int, int]]:
    """(calls of holdfast's functions, bytes on disk but for the inclusions) of tracking, and of a batch.

    Calls are counted, not timed: they are the same on any machine. Many columns are included in others by
    chance, and these are listed: so their files are as long as there are pairs.
    """

    def table(seed: int, n_rows: int) -> pa.Table:
        values = np.random.default_rng(seed).integers(0, 60, (n_columns, n_rows))
        columns = (pa.array(v.astype(str) if c % 2 else v) for c, v in enumerate(values))
        return pa.table({f"c{c}": column for c, column in enumerate(columns)})

    n_calls = 0

    def called(frame: FrameType, event: str, _: object) -> None:
        nonlocal n_calls
        n_calls += event == "call" and frame.f_globals.get("__name__", "").startswith("holdfast")

    ws = holdfast.open(root, engine="inline")
    first = table(1, 30)
    done: dict[str, tuple[int, int]] = {}
    for name, run in {
        "track": lambda: ws.track("t", first, kinds=("ucc", "ind", "profile"), max_columns=1),
        "apply": lambda: ws.apply("t", inserts=table(2, 3), deletes=first.slice(0, 2)),
    }.items():
        n_calls = 0
        before = sys.getprofile()
        sys.setprofile(called)
        try:
            run()
        finally:
            sys.setprofile(before)
        sizes = ws.sizes()
        done[name] = n_calls, sizes["total"] - sizes["values"]
    return done


def test_twice_the_columns_are_twice_the_work(tmp_path: Path) -> None:
    """Keys of one column, inclusions and profiles; no loop over pairs of columns."""
    work_and_bytes(tmp_path / "warm", 10)  # what is done once in a process
    narrow, wide = (work_and_bytes(tmp_path / str(n), n) for n in (300, 600))
    for name, (calls, n_bytes) in narrow.items():
        assert wide[name][0] < 2.3 * calls, name
        assert wide[name][1] < 2.3 * n_bytes, name


def test_all_pairs_or_pivot_by_pivot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to validate refute the same."""
    ws = holdfast.open(tmp_path / "w", engine="inline")
    ws.track("t", as_table(rows_of(1, 6)), max_columns=1)
    ws.apply("t", inserts=as_table(rows_of(2, 3)), deletes=as_table(rows_of(1, 6)[:2]))
    relation = ws.writer.tables.rows(ws.writer.tables.state("t"))
    relation = Relation(**{**relation.__dict__, "staging": "staging"})
    (tmp_path / "w" / "staging").mkdir(exist_ok=True)
    chance = np.random.default_rng(5)
    sets = [chance.choice(N_COLUMNS, n, replace=False).tolist() for n in chance.integers(1, 5, 80)]
    asked = np.stack([mask_of(columns, relation.n_words) for columns in sets])
    rhs = np.stack([mask_of(chance.choice(N_COLUMNS, 9).tolist(), relation.n_words) for _ in sets]) & ~asked
    results = []
    for few in (True, False):
        monkeypatch.setattr(refute, "few_pairs", lambda relation, n, few=few: few)
        results.append(
            (
                refute.validate(relation, asked).refuted.tolist(),
                refute.validate_fds(relation, asked, rhs).refuted.tolist(),
            )
        )
    assert results[0] == results[1]
    assert 0 < sum(results[0][0]) < len(sets)


def test_a_change_tells_few_columns(tmp_path: Path) -> None:
    """Of each broken key its own column and the first ones: rows are as long as the table is wide."""
    ws = holdfast.open(tmp_path / "w", engine="inline")
    rows = rows_of(1, 2)
    ws.track("t", as_table(rows), max_columns=1)
    change = ws.apply("t", inserts=as_table(rows[:1]))
    assert change.broke
    for broken in change.broke:
        [pair, *_] = broken.witnesses
        for row in pair:
            assert set(broken.dependency.columns) <= set(row.values)  # type: ignore[union-attr]
            assert len(row.values) <= 25


def test_columns_and_pivots_of_masks() -> None:
    chance = np.random.default_rng(0)
    sets = [sorted(chance.choice(150, n, replace=False).tolist()) for n in [0, 1, 1, 150, 0, 64, 3, 7, 0]]
    masks = np.stack([mask_of(columns, 3) for columns in sets])
    assert columns_of(masks) == [tuple(columns) for columns in sets]
    assert columns_of(masks[:0]) == []
    ranking = chance.permutation(150).tolist()
    expected = [min(columns, key=ranking.index) if columns else NO_PIVOT for columns in sets]
    assert refute.pivots_of(masks, ranking).tolist() == expected
