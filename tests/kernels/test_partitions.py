"""Clusters, and the validation of candidate keys on them, equal the plain-Python reference."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import partitions
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows.kernels.masks import mask_of, n_words_for, positions_of
from reference import partitions as reference

NULL = 2**64 - 1


def clusters_of(rows: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    assert (rows.dtype, offsets.dtype) == (np.int32, np.int64)
    return [rows[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]


VALUES = st.lists(st.integers(0, 4) | st.sampled_from([NULL, 2**63]), max_size=40)


@given(VALUES, st.booleans())
def test_cluster(values: list[int], nulls_distinct: bool) -> None:
    found = partitions.cluster(np.array(values, dtype=np.uint64), nulls_distinct, NULL)
    assert clusters_of(*found) == reference.cluster(values, nulls_distinct, NULL)


def test_cluster_of_many_values() -> None:
    values = np.random.default_rng(3).integers(0, 3000, 9000).astype(np.uint64)
    found = partitions.cluster(values, False, NULL)
    assert clusters_of(*found) == reference.cluster(values.tolist(), False, NULL)


@dataclass(frozen=True)
class Candidates:
    """Codes of rows, and sets of columns to validate; all of them contain the pivot."""

    values: np.ndarray  # uint64[n_columns, n]
    nulls: list[int]  # the code of NULL in each column
    pivot: int
    sets: list[frozenset[int]]
    skipped: list[bool]  # refuted before
    nulls_distinct: bool

    @property
    def sequences(self) -> np.ndarray:
        """The other columns of each set, padded; equal prefixes are neighbours, since sets are sorted so."""
        others = [sorted(s - {self.pivot}) for s in self.sets]
        out = np.full((len(others), max(1, *map(len, others))), -1, dtype=np.int32)
        for i, columns in enumerate(others):
            out[i, : len(columns)] = columns
        return out


@st.composite
def candidates(draw: st.DrawFn, max_rows: int = 16) -> Candidates:
    width = draw(st.sampled_from([1, 2, 4, 6, 64, 65, 70, 130]))
    n_rows = draw(st.integers(0, max_rows) | st.integers(12, 40))
    nulls = [NULL - c for c in range(width)]
    column = st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)
    some = draw(st.lists(column, min_size=1, max_size=6))
    values = np.zeros((width, n_rows), dtype=np.uint64)
    for c in range(width):
        drawn = some[draw(st.integers(0, len(some) - 1))] if width < 10 else some[c * 7 % len(some)]
        values[c] = [nulls[c] if v == 3 else v for v in drawn]
    pivot = draw(st.integers(0, width - 1))
    sets = draw(st.sets(st.frozensets(st.integers(0, width - 1), max_size=4), min_size=1, max_size=12))
    ordered = sorted({s | {pivot} for s in sets}, key=lambda s: sorted(s - {pivot}))
    skipped = [draw(st.integers(0, 5)) == 0 for _ in ordered]
    return Candidates(values, nulls, pivot, ordered, skipped, draw(st.booleans()))


def check(case: Candidates, *, whole: bool) -> int:
    """Validate, then climb; how many were refuted. `whole`: nothing is cut off, so every cluster is found."""
    nulls = np.array(case.nulls, dtype=np.uint64)
    order, bounds = partitions.cluster(case.values[case.pivot], case.nulls_distinct, case.nulls[case.pivot])
    values = np.ascontiguousarray(case.values[:, order])
    n_columns, n_rows = values.shape
    # Only the columns that occur are handed over, in any order.
    needed = sorted(set(case.sequences[case.sequences >= 0].tolist()), reverse=True) or [0]
    slot = np.full(n_columns, -1, dtype=np.int32)
    slot[needed] = np.arange(len(needed))
    refuted = np.array(case.skipped)
    owner, offsets, leaves = partitions.validate(
        values[needed], slot, bounds, case.sequences, case.nulls_distinct, nulls, refuted
    )
    clusters = clusters_of(leaves, offsets)
    plain, everyone = values.tolist(), range(n_rows)
    runs = [x for x, _ in itertools.groupby(owner.tolist())]
    assert len(runs) == len(set(runs)), "each candidate is refuted once"
    for i, columns in enumerate(case.sets):
        mine = [rows for x, rows in zip(owner.tolist(), clusters, strict=True) if x == i]
        if case.skipped[i]:
            assert not mine, "a candidate that was refuted before is left alone"
            continue
        unique = reference.is_unique(plain, everyone, columns, case.nulls_distinct, case.nulls)
        assert refuted[i] == (not unique), (sorted(columns), "is unique" if unique else "is not unique")
        assert bool(mine) == (not unique)
        expected = [list(range(n_rows))]
        for c in sorted(columns):
            expected = reference.refine(expected, plain[c], case.nulls_distinct, case.nulls[c])
        if whole:
            assert sorted(mine) == sorted(expected)
        for rows in mine:
            assert len(rows) > 1
            assert any(set(rows) <= set(cluster) for cluster in expected)
        limit = max(partitions.LEAF_ROWS, len(mine[0])) if mine else 0
        assert sum(map(len, mine)) <= limit

    # Climb from the clusters, whose rows are laid one after the other.
    masks = np.array([mask_of(s, n_words_for(n_columns)) for s in case.sets], dtype=np.uint64)
    before = masks.copy()
    witnesses = np.full((len(case.sets), WITNESSES, 2), -1, dtype=np.int64)
    partitions.climb(
        np.ascontiguousarray(values[:, leaves]), owner, offsets, case.nulls_distinct, nulls, masks, witnesses
    )
    for i, columns in enumerate(case.sets):
        if i not in runs:
            assert masks[i].tolist() == before[i].tolist()
            assert (witnesses[i] == -1).all()
            continue
        pairs = [(a, b) for a, b in witnesses[i].tolist() if a >= 0]
        assert pairs
        assert len({frozenset(p) for p in pairs}) == len(pairs)
        for a, b in pairs:
            assert a != b
            agreed = reference.agree_set(plain, leaves[a], leaves[b], case.nulls_distinct, case.nulls)
            assert agreed >= columns
            assert agreed == frozenset(positions_of(masks[i])), "the mask is the agree set of each witness"
    return len(runs)


@given(candidates(), st.sampled_from([1, 2, 5, 1 << 14]), st.sampled_from([2, 3, 5, 1 << 11]))
def test_validate_refutes_what_is_not_unique(case: Candidates, chunk_rows: int, leaf_rows: int) -> None:
    """Exactly the candidates that are not unique are refuted, however the clusters are cut into chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "CHUNK_ROWS", chunk_rows)
        patch.setattr(partitions, "LEAF_ROWS", leaf_rows)
        n_refuted = check(case, whole=min(chunk_rows, leaf_rows) > 1000)
    event("some refuted, some not" if 0 < n_refuted < len(case.sets) else "all alike")


@pytest.mark.parametrize("nulls_distinct", [False, True])
@pytest.mark.parametrize("chunk_rows", [7, 1 << 14])
def test_validate_large_clusters(
    nulls_distinct: bool, chunk_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters of more than 12 rows are refined by hashing."""
    monkeypatch.setattr(partitions, "CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr(partitions, "LEAF_ROWS", 1 << 11)
    rng = np.random.default_rng(8)
    width, n_rows = 8, 90
    values = rng.integers(0, [[2], [3], [4], [5], [6], [9], [20], [40]], (width, n_rows)).astype(np.uint64)
    values[values == 1] = NULL
    picks = [rng.choice(width, size, replace=False).tolist() for size in range(8) for _ in range(12)]
    sets = sorted({frozenset({0, *p}) for p in picks}, key=lambda s: sorted(s - {0}))
    case = Candidates(values, [NULL] * width, 0, sets, [False] * len(sets), nulls_distinct)
    assert 0 < check(case, whole=chunk_rows > 1000) < len(sets)


@given(VALUES, st.booleans(), st.data())
def test_refine(values: list[int], nulls_distinct: bool, data: st.DataObject) -> None:
    """Clusters of any size, the sizes at which the kernel changes its method (2, 12) included."""
    coarse = data.draw(st.lists(st.integers(0, 2), min_size=len(values), max_size=len(values)))
    clusters = reference.cluster(coarse, False, NULL)
    rows = np.array([r for c in clusters for r in c], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, clusters)]).astype(np.int64)
    found = partitions.refine(np.array(values, dtype=np.uint64), rows, offsets, nulls_distinct, NULL)
    assert clusters_of(*found) == reference.refine(clusters, values, nulls_distinct, NULL)


CODED = st.lists(st.none() | st.integers(0, 6), max_size=30)


def dictionary_of(column: list[int | None]) -> tuple[np.ndarray, np.ndarray]:
    values = sorted({v for v in column if v is not None})
    codes = [0 if v is None else values.index(v) + 1 for v in column]
    return np.array(values, dtype=np.uint64), np.array(codes, dtype=np.int32)


@given(CODED, st.integers(1, 4), st.booleans(), st.data())
def test_select(column: list[int | None], n_parts: int, skip_null: bool, data: st.DataObject) -> None:
    live = data.draw(st.lists(st.booleans(), min_size=len(column), max_size=len(column)))
    dictionary, codes = dictionary_of(column)
    everything = []
    for part in range(n_parts):
        found = partitions.select(
            dictionary, codes, np.array(live, dtype=np.bool_), NULL, part, n_parts, skip_null
        ).tolist()
        assert found == reference.select(column, live, NULL, part, n_parts, skip_null)
        everything += found
    # Each live row is in exactly one part; without NULLs if they are to be skipped.
    wanted = [i for i, v in enumerate(column) if live[i] and not (skip_null and v is None)]
    assert sorted(everything) == wanted


@given(CODED, st.data())
def test_gather(column: list[int | None], data: st.DataObject) -> None:
    positions = data.draw(st.lists(st.integers(0, len(column) - 1))) if column else []
    at = data.draw(st.permutations(range(len(positions))))
    out = np.zeros(len(positions), dtype=np.uint64)
    partitions.gather(
        *dictionary_of(column), np.array(positions, np.int32), np.array(at, np.int64), NULL, out
    )
    assert out[np.array(at, dtype=np.int64)].tolist() == reference.gather(column, positions, NULL)
