"""Values by a stranger who knows every hash and its seeds: no result may depend on what they make of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import holdfast
from crafted import colliding_pair, colliding_texts
from holdfast.core.rows import codes, relation
from holdfast.core.rows.kernels.encode import OTHER_SEED


def test_no_inclusion_between_texts_that_only_collide(tmp_path: Path) -> None:
    left, right = colliding_pair(0, OTHER_SEED)
    with holdfast.open(tmp_path / "ws", engine="inline") as ws:
        ws.track("a", pa.table({"x": [left]}), kinds=("ind",))
        ws.track("b", pa.table({"u": [right]}), kinds=("ind",))
        assert ws.dependencies(kind="ind") == []
        ws.apply("b", inserts=pa.table({"u": [left]}))
        [ind] = ws.dependencies(kind="ind")
        assert (ind.dependent.table, ind.referenced.table) == ("a", "b")
        assert ind.coverage == 0.5


def test_no_link_between_tables_that_share_nothing(tmp_path: Path) -> None:
    left, right = colliding_pair(0, 1)
    (tmp_path / "lake").mkdir()
    for name, text in (("a", left), ("b", right)):
        (tmp_path / "lake" / f"{name}.csv").write_text(f"{name}\n{text}\n")
    with holdfast.open(tmp_path / "ws", engine="inline") as ws:
        change = ws.link(tmp_path / "lake")
        assert change.n_inds == 0
        lake = ws.lake()
        assert lake is not None
        [value] = lake.search(left, "value").values
        assert [c.table for c in value.columns] == ["a.csv"]


def n_segments(ws: holdfast.Workspace, texts: list[str]) -> int:
    ws.track("t", pa.table({"x": texts[:1]}))
    for text in texts[1:]:
        ws.apply("t", inserts=pa.table({"x": [text]}))
    return len(ws.writer.tables.state("t").segments)


def test_segments_merge_whatever_the_texts_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relation, "MERGE_FANOUT", 3)
    n_batches = 10
    with holdfast.open(tmp_path / "plain", engine="inline") as ws:
        expected = n_segments(ws, [f"{i:064}" for i in range(n_batches)])
    with holdfast.open(tmp_path / "crafted", engine="inline") as ws:
        assert n_segments(ws, colliding_texts(n_batches)) == expected < n_batches // 2


def test_segments_that_collide_do_not_keep_others_from_merging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By chance two texts share a code: their segments stay apart, and only they."""
    monkeypatch.setattr(relation, "MERGE_FANOUT", 3)
    honest = codes.hash_texts
    monkeypatch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & ~_same(texts))
    with holdfast.open(tmp_path / "ws", engine="inline") as ws:
        texts = ["twin 0", "twin 1", *(f"text {i}" for i in range(10))]
        assert n_segments(ws, texts) <= 5
        assert [d.columns for d in ws.dependencies(table="t")] == [("x",)]
        assert ws.merge("t") is not None
        assert len(ws.writer.tables.state("t").segments) == 2


def _same(texts: pa.Array) -> object:
    """All bits where a text is one of the twins, whose hash is then 0."""
    twins = [text.startswith(b"twin") for text in texts.to_pylist()]
    return np.where(twins, np.uint64(2**64 - 1), np.uint64(0))
