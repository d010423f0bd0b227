"""Clusters, what a delta does to them, and pair counts equal the plain-Python reference."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.inclusions.kernels import clusters as kernel
from holdfast.inclusions.kernels.clusters import WITNESSES, Absorbed, Clusters
from reference import clusters as reference
from reference.clusters import Cluster, Frequencies, Pair

N_IDS = 6
WIDE = 2**32 - 1  # the largest column id


def clusters_of(listed: Sequence[Cluster]) -> Clusters:
    return Clusters(
        np.cumsum([0, *(len(columns) for columns, _, _ in listed)]).astype(np.int64),
        np.array([c for columns, _, _ in listed for c in columns], np.uint32),
        np.array([size for _, size, _ in listed], np.int64),
        np.array([n for _, _, rows in listed for n in rows], np.int64),
    )


def listed(clusters: Clusters) -> list[Cluster]:
    assert [a.dtype for a in clusters] == [np.int64, np.uint32, np.int64, np.int64]
    bounds = list(pairwise(clusters.offsets.tolist()))
    columns, rows = clusters.columns.tolist(), clusters.rows.tolist()
    assert len(columns) == len(rows) == clusters.offsets[-1]
    sizes = clusters.sizes.tolist()
    return [(tuple(columns[a:b]), n, tuple(rows[a:b])) for (a, b), n in zip(bounds, sizes, strict=True)]


@st.composite
def cluster_lists(draw: st.DrawFn, max_size: int = 14) -> list[Cluster]:
    ids = st.integers(0, N_IDS - 1) if draw(st.booleans()) else st.sampled_from([0, 2**16, WIDE])
    found = []
    for columns in draw(st.lists(st.frozensets(ids, max_size=4), max_size=max_size)):
        rows = draw(st.lists(st.integers(-3, 3), min_size=len(columns), max_size=len(columns)))
        found.append((tuple(sorted(columns)), draw(st.integers(-2, 2)), tuple(rows)))
    return found


@given(cluster_lists())
@example([])
@example([((), 1, ()), ((), -1, ())])
@example([((1, 2), 1, (1, 1)), ((1, 2), -1, (-1, -1))])
@example([((1, 2), 1, (1, 1)), ((1, 2), -1, (-1, 0))])  # no value is left, but rows are
@example([((1,), 1, (0,)), ((1, 2), 1, (0, 0)), ((1,), 1, (0,))])
def test_tally(clusters: list[Cluster]) -> None:
    found = listed(kernel.tally(clusters_of(clusters)))
    event("cancelled" if len(found) < len({c for c, _, _ in clusters if c}) else "all kept")
    assert found == reference.tallied(clusters)


def many_clusters(n: int) -> list[Cluster]:
    """`n` different sets of columns, twice, the second time in another order, some to cancel."""
    sets = [c for size in (3, 2, 1) for c in combinations(range(20), size)][:n]
    assert len(sets) == n
    once = [(c, 1, tuple(range(1, len(c) + 1))) for c in sets]
    again = [
        (c, -1 if i % 5 == 0 else 1, tuple(-r if i % 5 == 0 else r for r in rows))
        for i, (c, _, rows) in enumerate(once)
    ]
    return [*once, *reversed(again)]


def test_tally_of_more_clusters_than_its_table_starts_with() -> None:
    for n in (511, 512, 513, 1024, 1025, 1350):
        clusters = many_clusters(n)
        assert listed(kernel.tally(clusters_of(clusters))) == reference.tallied(clusters)


@given(cluster_lists(), st.frozensets(st.integers(0, N_IDS - 1)))
def test_without_columns(clusters: list[Cluster], gone: frozenset[int]) -> None:
    clusters = [c for c in clusters if not c[0] or c[0][-1] < N_IDS]
    mask = np.array([c in gone for c in range(N_IDS)])
    found = listed(kernel.without_columns(clusters_of(clusters), mask))
    assert found == reference.without(clusters, gone)


@given(st.lists(cluster_lists(max_size=5), max_size=4))
def test_joined_clusters(parts: list[list[Cluster]]) -> None:
    found = listed(kernel.joined_clusters([clusters_of(p) for p in parts]))
    assert found == [c for p in parts for c in p]


def pairs_listed(clusters: Sequence[Cluster]) -> list[tuple[Pair, int, int]]:
    pairs, values, rows = kernel.pair_counts(clusters_of(clusters))
    assert [a.dtype for a in (pairs, values, rows)] == [np.uint64, np.int64, np.int64]
    named = [(p >> 32, p & 0xFFFFFFFF) for p in pairs.tolist()]
    return list(zip(named, values.tolist(), rows.tolist(), strict=True))


@given(cluster_lists())
@example([])
@example([((1, 2), 1, (1, 1)), ((1, 2), -1, (-1, -1))])
@example([((0, 2**16, WIDE), 2, (3, 4, 5))])
def test_pair_counts(clusters: list[Cluster]) -> None:
    assert pairs_listed(clusters) == reference.pair_counts(clusters)


def test_pair_counts_of_more_pairs_than_its_table_starts_with() -> None:
    for n in (22, 23, 33, 70):  # 484, 529, 1089 and 4900 pairs
        wide: Cluster = (tuple(range(n)), 2, tuple(range(n)))
        narrow: list[Cluster] = [((i, n + 5), 1, (i, 1)) for i in range(0, n, 3)]
        clusters = [wide, *narrow, wide]
        assert pairs_listed(clusters) == reference.pair_counts(clusters)


# -- a delta -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A delta and what the runs say of its values, by value; `holding` holds in the latter."""

    delta: list[Frequencies]
    old: list[Frequencies]
    append_only: frozenset[int]
    holding: list[Pair]
    n_ids: int = N_IDS


def holding_in(values: Sequence[Frequencies], n_ids: int) -> list[Pair]:
    """All pairs (a, b) of which every value of a is one of b, those without values among them."""
    return [
        (a, b) for a in range(n_ids) for b in range(n_ids) if a != b and all(b in v for v in values if a in v)
    ]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    append_only = draw(
        st.sampled_from([frozenset(), frozenset({1}), frozenset({0, 2, 4}), frozenset(range(N_IDS))])
    )
    below_zero = draw(st.integers(0, 3)) == 3
    ids = st.integers(0, N_IDS - 1)
    delta, old = [], []
    for _ in range(draw(st.integers(0, 8))):
        before = {
            c: 1 if c in append_only else draw(st.integers(1, 3)) for c in sorted(draw(st.frozensets(ids)))
        }
        change = {}
        for c in sorted(draw(st.frozensets(ids, min_size=1))):
            least = 1 if c in append_only else -4 if below_zero else -before.get(c, 0)
            count = draw(st.integers(least, 3 if least < 1 else 1))
            if count:
                change[c] = count
        if change:
            old.append(before)
            delta.append(change)
    known = holding_in(old, N_IDS)
    holding = [p for p in known if draw(st.booleans())] if draw(st.booleans()) else known
    return Case(delta, old, append_only, holding)


def flat(values: Sequence[Frequencies]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(starts, columns, counts) of frequencies by value."""
    columns = [c for v in values for c in sorted(v)]
    counts = [v[c] for v in values for c in sorted(v)]
    starts = np.cumsum([0, *map(len, values)]).astype(np.int64)
    return starts, np.array(columns, np.uint32), np.array(counts, np.int64)


def marks(chosen: Collection[int], n: int) -> np.ndarray:
    return np.array([i in chosen for i in range(n)], np.bool_)


def absorbed(case: Case) -> Absorbed:
    offsets = np.searchsorted([a for a, _ in case.holding], np.arange(case.n_ids + 1)).astype(np.int64)
    rights = np.array([b for _, b in case.holding], np.uint32)
    return kernel.absorb(
        *flat(case.delta), *flat(case.old), marks(case.append_only, case.n_ids), offsets, rights
    )


def check_absorbed(case: Case) -> str:
    """Holds the kernel against the reference; how it ended."""
    found = absorbed(case)
    expected = reference.absorb(case.delta, case.old, case.append_only, case.holding)
    if expected.negative is not None:
        places = [(v, c) for v, change in enumerate(case.delta) for c in sorted(change)]
        assert places[found.negative] == expected.negative
        return "a count below zero"
    assert found.negative == -1
    assert listed(found.events) == expected.events
    assert found.fresh.tolist() == expected.fresh
    for h, pair in enumerate(case.holding):
        values = expected.broken[pair]
        assert found.broken[h] == len(values)
        shown = values[:WITNESSES]
        assert found.witnesses[h].tolist() == shown + [-1] * (WITNESSES - len(shown))
    return "broken" if found.broken.any() else "nothing broken"


@given(cases())
@example(Case([], [], frozenset(), []))
@example(Case([], [], frozenset(), [(0, 1)]))
@example(Case([{0: -1}], [{0: 1}], frozenset(), [(1, 0)]))  # the value goes altogether
@example(Case([{0: -1}], [{0: 1, 1: 1}], frozenset(), [(0, 1), (1, 0)]))
@example(Case([{0: -1}], [{}], frozenset(), []))  # it was never there
@example(Case([{0: 1}, {1: -2}], [{}, {1: 1}], frozenset(), []))
@example(Case([{0: 1, 1: 1}], [{0: 1}], frozenset({0, 1}), [(0, 1)]))
def test_absorb(case: Case) -> None:
    event(check_absorbed(case))


@given(cases())
def test_what_a_delta_changes_is_the_difference(case: Case) -> None:
    """Clusters and pair counts before, and the change, are those from scratch after."""
    expected = reference.absorb(case.delta, case.old, case.append_only, case.holding)
    if expected.negative is not None:
        return
    after = []
    for change, before in zip(case.delta, case.old, strict=True):
        now = {c: before.get(c, 0) + n for c, n in change.items() if c not in case.append_only}
        now |= {c: 1 for c in change if c in case.append_only}
        after.append({c: n for c, n in {**before, **now}.items() if n})
    old = clusters_of(reference.clusters_of(case.old, case.append_only))
    change = kernel.tally(absorbed(case).events)
    summed = kernel.tally(kernel.joined_clusters([old, change]))
    assert sorted(listed(summed)) == sorted(reference.clusters_of(after, case.append_only))


def test_absorb_a_large_delta() -> None:
    """Many values and columns: hundreds of inclusions, most of them broken often."""
    rng = np.random.default_rng(7)
    n_ids, n_values = 40, 1500
    append_only = frozenset(range(0, n_ids, 5))

    def some(at_most: int) -> list[int]:
        return sorted(set(rng.integers(0, n_ids, rng.integers(0, at_most)).tolist()))

    old = [{c: 1 if c in append_only else int(rng.integers(1, 4)) for c in some(9)} for _ in range(n_values)]
    # Each column of the lower half is included in one of the upper half.
    for v in old:
        v |= {c + 20: 1 for c in v if c < 20}
    delta = []
    for before in old:
        change = {c: 1 if c in append_only else int(rng.integers(1, 3)) for c in some(4)}
        change |= {c: -before[c] for c in before if c not in append_only and rng.random() < 0.2}
        delta.append(change or {1: 1})
    case = Case(delta, old, append_only, holding_in(old, n_ids), n_ids)
    assert len(case.holding) >= 20
    assert check_absorbed(case) == "broken"
