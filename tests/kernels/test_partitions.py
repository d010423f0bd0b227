"""The validation of candidate keys and FDs on clusters of rows equals the plain-Python reference."""

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
from reference.encode import mix

Sets = list[tuple[frozenset[int], frozenset[int]]]


@dataclass(frozen=True)
class Candidates:
    """Values of rows, and FDs to validate; all left-hand sides contain the pivot, or there is none.

    The right-hand side `width` is the row: a key.
    """

    values: np.ndarray  # int32[n, n_columns], 0 is NULL
    pivot: int | None
    fds: Sets
    nulls_distinct: bool

    @property
    def width(self) -> int:
        return self.values.shape[1]

    @property
    def rows(self) -> list[list[int | None]]:
        return [[v or None for v in row] for row in self.values.tolist()]

    @property
    def sequences(self) -> np.ndarray:
        """The other columns of each left-hand side, padded; the FDs are sorted by them."""
        others = [sorted(x - {self.pivot}) for x, _ in self.fds]
        out = np.full((len(others), max(1, *map(len, others))), -1, dtype=np.int32)
        for i, columns in enumerate(others):
            out[i, : len(columns)] = columns
        return out

    def masks(self, sets: list[frozenset[int]]) -> np.ndarray:
        return np.array([mask_of(s, n_words_for(self.width + 1)) for s in sets], dtype=np.uint64)


def in_order(fds: Sets, pivot: int | None) -> Sets:
    return sorted(fds, key=lambda fd: sorted(fd[0] - {pivot}))


@st.composite
def candidates(draw: st.DrawFn) -> Candidates:
    width = draw(st.sampled_from([1, 2, 4, 6, 6, 6, 64, 65, 70, 130]))
    n_rows = draw(st.integers(0, 12) | st.integers(12, 40))
    column = st.lists(st.integers(0, draw(st.sampled_from([2, 3, 9]))), min_size=n_rows, max_size=n_rows)
    some = draw(st.lists(column, min_size=1, max_size=6))
    values = np.empty((n_rows, width), dtype=np.int32)
    for c in range(width):
        values[:, c] = some[draw(st.integers(0, len(some) - 1))] if width < 10 else some[c * 7 % len(some)]
    if width >= 10 and n_rows:  # few columns that matter, scattered
        for _ in range(draw(st.integers(0, 6))):
            values[draw(st.integers(0, n_rows - 1)), draw(st.integers(0, width - 1))] += 1
    pivot = draw(st.none() | st.integers(0, width - 1))
    columns = st.integers(0, width - 1)
    lhs = draw(st.sets(st.frozensets(columns, max_size=4), min_size=1, max_size=12))
    fds = []
    for x in {x | {pivot} for x in lhs} if pivot is not None else lhs:
        every = frozenset(range(width)) - x
        asked = every if draw(st.booleans()) else every & draw(st.frozensets(columns, max_size=5))
        row = draw(st.sampled_from(["no", "too", "only"]))
        fds.append((x, {"no": asked, "too": asked | {width}, "only": frozenset({width})}[row]))
    return Candidates(values, pivot, in_order(fds, pivot), draw(st.booleans()))


def check(case: Candidates) -> int:
    """Refute; how many FDs were."""
    values, distinct = case.values, case.nulls_distinct
    if case.pivot is None:
        order, offsets = np.arange(len(values)), np.array([0, len(values)])
    else:
        ids = values[:, case.pivot]
        chosen = np.flatnonzero(ids) if distinct else np.arange(len(ids))
        order, offsets = partitions.cluster(ids[chosen], int(ids.max(initial=0)) + 1)
        order = chosen[order]
    n_ids = values.max(axis=0, initial=0).astype(np.int64) + 1
    lhs = case.masks([x for x, _ in case.fds])
    rhs = case.masks([a for _, a in case.fds])
    pending = rhs.copy()
    if len(order) < 2:
        return 0
    masks, witnesses = partitions.refute(
        values, order.astype(np.int32), offsets, case.sequences, lhs, pending, n_ids, distinct
    )
    assert masks.shape[1:] == rhs.shape[1:]
    assert witnesses.shape[1:] == (WITNESSES, 2)
    rows = case.rows
    evidence = []
    for mask, pairs in zip(masks, witnesses.tolist(), strict=True):
        agreed = frozenset(positions_of(mask))
        real = [(a, b) for a, b in pairs if a >= 0]
        assert real
        assert len({frozenset(p) for p in real}) == len(real)
        for a, b in real:
            assert a != b
            assert reference.agree_set(rows[order[a]], rows[order[b]], distinct) == agreed
        evidence.append(agreed)
    n_refuted = 0
    for i, (x, asked) in enumerate(case.fds):
        refuted = frozenset(positions_of(rhs[i] & ~pending[i]))
        assert refuted == reference.violated(rows, x, asked, distinct)
        for a in refuted:
            assert any(x <= m and a not in m for m in evidence), "what is refuted has evidence"
        n_refuted += len(refuted)
    # Candidates that only others' evidence refutes are refuted by striking.
    again = rhs.copy()
    partitions.strike(lhs, again, masks)
    assert again.tolist() == pending.tolist()
    return n_refuted


@given(
    candidates(),
    st.sampled_from([1, 30, 1 << 18]),
    st.sampled_from([2, 3, 7, 1 << 9]),
    st.sampled_from([1, 3]),
    st.sampled_from([(0, 0, 1 << 22), (1, 0, 1 << 10), (0, 1, 1 << 22), (1 << 20, 0, 1 << 22)]),
)
def test_refute(
    case: Candidates, chunk_values: int, leaf_rows: int, n_climbs: int, by_pairs: tuple[int, int, int]
) -> None:
    """Exactly what is violated is refuted, however the clusters are cut; evidence is real.

    By clusters alone, by pairs where these are few, by pairs alone.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name, value in zip(("PAIRS_EACH", "PAIRS_A_ROW", "PAIR_BITS"), by_pairs, strict=True):
            patch.setattr(partitions, name, value)
        patch.setattr(partitions, "CHUNK_VALUES", chunk_values)
        patch.setattr(partitions, "LEAF_ROWS", leaf_rows)
        patch.setattr(partitions, "N_CLIMBS", n_climbs)
        patch.setattr(partitions, "MAX_MASKS", 1 if leaf_rows == 3 else 1 << 12)
        n_refuted = check(case)
    n_asked = sum(len(asked) for _, asked in case.fds)
    event("some refuted, some not" if 0 < n_refuted < n_asked else "all alike")


@given(candidates(), st.sampled_from([1, 2, 1 << 18]), st.sampled_from([0, 1, 4, 1 << 20]), st.integers(1, 4))
def test_reach(case: Candidates, chunk_values: int, pairs_each: int, n_calls: int) -> None:
    """Of keys: what all pairs that agree on a prefix agree on is part of evidence, over chunks and calls."""
    values, width, distinct = case.values, case.width, case.nulls_distinct
    pivot = case.pivot or 0
    ids = values[:, pivot]
    chosen = np.flatnonzero(ids) if distinct else np.arange(len(ids))
    order, offsets = partitions.cluster(ids[chosen], int(ids.max(initial=0)) + 1)
    order = chosen[order].astype(np.int32)
    keys = in_order([(x | {pivot}, frozenset({width})) for x, _ in case.fds], pivot)
    case = Candidates(values, pivot, keys, distinct)
    lhs, pending = case.masks([x for x, _ in keys]), case.masks([a for _, a in keys])
    n_ids = values.max(axis=0, initial=0).astype(np.int64) + 1
    reach = np.full(len(keys), partitions.NOT_SEEN, dtype=np.int64)
    evidence: list[frozenset[int]] = []
    bounds = np.linspace(0, len(offsets) - 1, n_calls + 1).astype(int)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PAIRS_EACH", pairs_each)
        patch.setattr(partitions, "PAIRS_A_ROW", 0)
        patch.setattr(partitions, "CHUNK_VALUES", chunk_values)
        patch.setattr(partitions, "KEY_CHUNKS", 1)
        for a, b in itertools.pairwise(bounds.tolist()):
            some = np.flatnonzero(pending.any(axis=1) | (reach >= 0))
            open_, reached = pending[some], reach[some]
            masks, _ = partitions.refute(
                values, order[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a], case.sequences[some],
                lhs[some], open_, n_ids, distinct, reached,
            )  # fmt: skip
            reach[:] = partitions.NOT_ALL
            pending[some], reach[some] = open_, reached
            evidence += [frozenset(positions_of(m)) for m in masks]
    rows = case.rows
    for (x, asked), sequence, n, left in zip(keys, case.sequences.tolist(), reach, pending, strict=True):
        assert bool(left.any()) != bool(reference.violated(rows, x, asked, distinct))
        if n >= 0:
            prefix = {pivot, *sequence[:n]}
            for one, other in itertools.combinations(rows, 2):
                agreed = reference.agree_set(one, other, distinct)
                assert not agreed >= prefix or any(agreed <= mask for mask in evidence)
    event("some refuted have a prefix" if (reach >= 0)[~pending.any(axis=1)].any() else "none has")


def test_what_evidence_refutes_before_its_turn_reaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the first cluster too many pairs are compared for none of the keys, of the second, in a chunk of its
    own, the only one; so the rows 2 and 3, which agree on the columns 0, 1 and 5, were never compared."""
    for name, value in {"PAIRS_EACH": 1, "PAIRS_A_ROW": 0, "CHUNK_VALUES": 24, "KEY_CHUNKS": 1}.items():
        monkeypatch.setattr(partitions, name, value)
    rows = [[1, 1, 1, 1, 1, 1], [1, 1, 2, 1, 1, 2], [1, 1, 3, 2, 2, 3], [1, 1, 4, 3, 3, 3]]
    values = np.array([*rows, [2, 1, 1, 1, 1, 1], [2, 2, 2, 2, 2, 2]], dtype=np.int32)
    # The second is refuted by the rows 0 and 1, which refute the third as well.
    keys = [(frozenset({0, 1, c}), frozenset({6})) for c in (2, 3, 4)]
    case = Candidates(values, 0, keys, nulls_distinct=False)
    pending, reach = case.masks([a for _, a in keys]), np.full(3, partitions.NOT_SEEN, dtype=np.int64)
    masks, _ = partitions.refute(
        values, np.arange(6, dtype=np.int32), np.array([0, 4, 6]), case.sequences,
        case.masks([x for x, _ in keys]), pending, values.max(axis=0) + np.int64(1), False, reach,
    )  # fmt: skip
    assert {frozenset(positions_of(mask)) for mask in masks} == {frozenset({0}), frozenset({0, 1, 3, 4})}
    assert pending.any(axis=1).tolist() == [True, False, False]
    assert reach.tolist() == [2, partitions.NOT_ALL, partitions.NOT_ALL]


@pytest.mark.parametrize("nulls_distinct", [False, True])
@pytest.mark.parametrize("chunk_values", [50, 1 << 18])
@pytest.mark.parametrize("offset", [0, 6000])
@pytest.mark.parametrize("pairs_each", [0, 1, 1 << 20])
def test_refute_on_large_clusters(
    nulls_distinct: bool, chunk_values: int, offset: int, pairs_each: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clusters of more than 12 rows are split by direct addressing, or by hashing where values are many.

    Or they are settled by their pairs of rows.
    """
    monkeypatch.setattr(partitions, "PAIRS_EACH", pairs_each)
    monkeypatch.setattr(partitions, "PAIRS_A_ROW", min(pairs_each, 1))
    monkeypatch.setattr(partitions, "CHUNK_VALUES", chunk_values)
    monkeypatch.setattr(partitions, "LEAF_ROWS", 16)
    rng = np.random.default_rng(8)
    values = rng.integers(0, [2, 3, 3, 4, 5, 9, 20, 40], (120, 8)).astype(np.int32)
    values[:, 7] = values[:, 5] * 7 % 5 + (values[:, 3] > 1)  # determined by 3 and 5
    values[values > 0] += offset
    lhs = {frozenset({0, *rng.choice(8, n, replace=False).tolist()}) for n in range(6) for _ in range(8)}
    lhs |= {frozenset({0, 3, 5}), frozenset({0, 3, 5, 6})}
    fds = in_order([(x, frozenset(range(9)) - x) for x in lhs], 0)
    case = Candidates(values, 0, fds, nulls_distinct)
    assert 0 < check(case) < sum(len(asked) for _, asked in fds)


@pytest.mark.parametrize("pairs_each", [0, 1 << 20])
@given(case=candidates())
def test_climbs_end_at_maximal_agree_sets(pairs_each: int, case: Candidates) -> None:
    """With one candidate and all rows looked at, climbs end at maximal sets without its column."""
    column = case.fds[0][0] and min(case.fds[0][0])
    width, rows = case.width, case.rows
    if len(rows) < 2 or width > 10 or len(rows) * width > 400:
        return
    lhs = case.masks([frozenset()])
    pending = case.masks([frozenset({column or 0})])
    n_ids = case.values.max(axis=0).astype(np.int64) + 1
    sequences = np.full((1, 1), -1, dtype=np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PAIRS_EACH", pairs_each)
        patch.setattr(partitions, "PAIRS_A_ROW", min(pairs_each, 1))
        masks, _ = partitions.refute(
            case.values, np.arange(len(rows), dtype=np.int32), np.array([0, len(rows)]), sequences, lhs,
            pending, n_ids, case.nulls_distinct,
        )  # fmt: skip
    top = reference.maximal_without(rows, column or 0, case.nulls_distinct)
    assert bool(top) == bool(len(masks))
    assert {frozenset(positions_of(m)) for m in masks} <= top


CODED = st.lists(st.integers(0, 5), max_size=30)


@given(CODED, st.none() | st.sets(st.integers(1, 29)), st.booleans())
def test_cluster(ids: list[int], cuts: set[int] | None, nulls_distinct: bool) -> None:
    ends = [0, *sorted(c for c in cuts or () if c < len(ids)), len(ids)]
    within = None if cuts is None else np.array(ends, dtype=np.int64)
    rows, offsets = partitions.cluster(np.array(ids, dtype=np.int32), 6, within, nulls_distinct)
    assert (rows.dtype, offsets.dtype) == (np.int32, np.int64)
    clusters = [rows[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]
    parts = [range(len(ids))] if cuts is None else [range(a, b) for a, b in itertools.pairwise(ends)]
    assert clusters == reference.cluster(ids, parts, nulls_distinct)


@given(CODED, st.permutations(range(1, 6)), st.integers(1, 4), st.booleans(), st.data())
def test_select_gather_first_other(
    codes: list[int], identities: list[int], n_parts: int, skip_null: bool, data: st.DataObject
) -> None:
    live = data.draw(st.lists(st.booleans(), min_size=len(codes), max_size=len(codes)))
    identity = [0, *identities]
    column = np.array(codes, dtype=np.int32), np.array(live, dtype=np.bool_), np.array(identity, np.int32)
    everything = []
    for part in range(n_parts):
        positions, ids = partitions.select(*column, part, n_parts, skip_null)
        assert ids.tolist() == [identity[codes[p]] for p in positions]
        assert n_parts == 1 or all(mix(i) % n_parts == part for i in ids.tolist())
        everything += positions.tolist()
    assert sorted(everything) == [
        i for i, c in enumerate(codes) if live[i] and not (skip_null and identity[c] == 0)
    ]
    at = np.array(data.draw(st.permutations(range(len(everything)))), dtype=np.int64)
    out = np.full((len(everything), 2), -1, dtype=np.int32)
    partitions.gather(column[0], column[2], np.array(everything, np.int32), at, 1, out)
    assert out[at, 1].tolist() == [identity[codes[p]] for p in everything]
    assert (out[:, 0] == -1).all()
    assert partitions.columns_of(out, at.astype(np.int32)).tolist() == out[at].T.tolist()
    others = [i for i, c in enumerate(codes) if live[i] and identity[c] != 2]
    assert partitions.first_other(*column, 2) == (others[0] if others else -1)


@given(candidates(), st.data())
def test_partnered(case: Candidates, data: st.DataObject) -> None:
    """A row without a partner on any of the columns is dropped, but for those of large clusters."""
    ids = np.array([data.draw(st.integers(0, 3)) for _ in case.values], dtype=np.int32)
    rows, offsets = partitions.cluster(ids, 4)
    columns = data.draw(st.lists(st.integers(0, case.width - 1), min_size=1, max_size=3, unique=True))
    kept, bounds = partitions.partnered(
        case.values, rows, offsets, np.array(columns, dtype=np.int32), case.nulls_distinct
    )
    clusters = [rows[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]
    found = [rows[kept[a:b]].tolist() for a, b in itertools.pairwise(bounds.tolist())]
    few = partitions.FEW_ROWS
    expected = [
        c if len(c) > few else reference.partnered(case.rows, c, columns, case.nulls_distinct)
        for c in clusters
    ]
    assert found == [c for c in expected if c]


PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(4, 6)), max_size=WITNESSES)


@given(st.lists(st.tuples(st.integers(0, 3), PAIRS, st.booleans()), max_size=12), st.sampled_from([1, 2]))
def test_unite(drawn: list[tuple[int, list[tuple[int, int]], bool]], n_words: int) -> None:
    masks = np.array([[m] + [0] * (n_words - 1) for m, _, _ in drawn], np.uint64).reshape(-1, n_words)
    pairs = [[(b, a) if turned else (a, b) for a, b in given] for _, given, turned in drawn]
    witnesses = np.full((len(drawn), WITNESSES, 2), -1, dtype=np.int64)
    for i, some in enumerate(pairs):
        for j, pair in enumerate(some):
            witnesses[i, j] = pair
    found, united = partitions.unite(masks, witnesses)
    told = {
        tuple(m): [tuple(p) for p in some if p[0] >= 0]
        for m, some in zip(found.tolist(), united.tolist(), strict=True)
    }
    assert len(told) == len(found)
    assert told == reference.unite(masks.tolist(), pairs, WITNESSES)
