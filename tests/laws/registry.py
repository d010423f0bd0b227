"""Every type of state, and how to grow and shrink it: what the laws are run over.

A new state type registers here, and `test_delta_law.py` holds it to its law. `small` rows are tuples;
a row's id is its place in the list of all rows ever, so a pair of ids names two rows for good.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from holdfast.core.cover.cover import Cover
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.dc_evidence import DcEvidence
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.witnessed import WitnessedEvidence
from holdfast.core.rows.kernels.masks import mask_of, maximal_masks, n_words_for, positions_of
from holdfast.denial.dc_cover import DcCover
from holdfast.denial.row_counts import RowCounts
from holdfast.functional.fd_cover import FdCover, Relevant
from holdfast.functional.fd_evidence import FdEvidence
from holdfast.inclusions.kernels import clusters as cluster_kernels
from holdfast.inclusions.kernels import sorted_runs as runs
from holdfast.inclusions.kernels.clusters import Clusters
from holdfast.inclusions.pair_counts import PairCounts
from holdfast.profile.column_counts import ColumnCounts
from holdfast.profile.tally import Tally
from laws import column_counts, predicate_states, row_counts
from reference import clusters as cluster_reference
from reference.inds import comparable
from reference.keys import Combination, Row, agree_set

Rows = Mapping[int, Row]  # row id -> row
Pairs = dict[Combination, list[tuple[int, int]]]


def pairs_of(rows: Rows, nulls: str, among: Callable[[int, int], bool] = lambda a, b: True) -> Pairs:
    """The agree sets of some pairs of rows, with the pairs."""
    found: Pairs = {}
    for a, b in combinations(sorted(rows), 2):
        if among(a, b):
            found.setdefault(agree_set(rows[a], rows[b], nulls), []).append((a, b))
    return found


def arrays_of(pairs: Pairs, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """(masks, witnesses) as the kernels give them; at most WITNESSES pairs per mask."""
    n_words = n_words_for(n_columns)
    masks = np.array([mask_of(s, n_words) for s in pairs], dtype=np.uint64).reshape(len(pairs), n_words)
    witnesses = np.full((len(pairs), WITNESSES, 2), -1, dtype=np.int64)
    for i, known in enumerate(pairs.values()):
        for j, pair in enumerate(known[:WITNESSES]):
            witnesses[i, j] = pair
    return masks, witnesses


def sets_of(masks: np.ndarray) -> set[Combination]:
    found = [frozenset(positions_of(m)) for m in masks]
    assert len(found) == len(set(found)), "masks are all different"
    return set(found)


@dataclass(frozen=True)
class StateType:
    """A type of state: how it is computed from rows, and repaired when rows come or go.

    `meaning` is what must be equal, however the state was reached.
    """

    kind: str  # linear, quadratic or derived
    type: type
    scratch: Callable[[Rows, int, str], Any]
    grown: Callable[[Any, Rows, Rows, int, str], Any]  # state, old rows, new rows
    shrunk: Callable[[Any, Rows, Rows, int, str], Any]  # state, rows left, rows gone
    meaning: Callable[[Any], Any]


def _evidence(rows: Rows, n_columns: int, nulls: str) -> WitnessedEvidence:
    empty = WitnessedEvidence.empty(n_words_for(n_columns), WITNESSES)
    return empty.merged(*arrays_of(pairs_of(rows, nulls), n_columns))


def _evidence_grown(
    state: WitnessedEvidence, old: Rows, new: Rows, n_columns: int, nulls: str
) -> WitnessedEvidence:
    """s(R + D) = s(R) + cross(R, D) + s(D)."""
    cross = pairs_of({**old, **new}, nulls, lambda a, b: (a in old) != (b in old))
    own = pairs_of(new, nulls)
    return state.merged(*arrays_of(cross, n_columns)).merged(*arrays_of(own, n_columns))


def _evidence_shrunk(
    state: WitnessedEvidence, left: Rows, gone: Rows, n_columns: int, nulls: str
) -> WitnessedEvidence:
    """Dead witnesses go; what has none left is looked up again, as `functional/keys.py` does."""
    after, _ = state.without_rows(np.array(sorted(gone), dtype=np.int64))
    known = sets_of(state.masks)
    again = {s: p for s, p in pairs_of(left, nulls).items() if s in known}
    return after.merged(*arrays_of(again, n_columns))


def _counted_change(state: CountedEvidence, pairs: Pairs, sign: int) -> CountedEvidence:
    """The same pairs again, each mask in two parts, so that it is given twice."""
    masks, _ = arrays_of(pairs, state.n_columns)
    n_pairs = np.array([len(p) for p in pairs.values()], dtype=np.int64)
    parts = np.concatenate([masks, masks]), sign * np.concatenate([n_pairs - 1, np.ones_like(n_pairs)])
    return state.changed(*parts)[0]


def _counted(rows: Rows, n_columns: int, nulls: str) -> CountedEvidence:
    return _counted_change(CountedEvidence.empty(n_columns), pairs_of(rows, nulls), 1)


def _counted_grown(
    state: CountedEvidence, old: Rows, new: Rows, n_columns: int, nulls: str
) -> CountedEvidence:
    """s(R + D) = s(R) + cross(R, D) + s(D)."""
    cross = pairs_of({**old, **new}, nulls, lambda a, b: (a in old) != (b in old))
    return _counted_change(_counted_change(state, cross, 1), pairs_of(new, nulls), 1)


def _counted_shrunk(
    state: CountedEvidence, left: Rows, gone: Rows, n_columns: int, nulls: str
) -> CountedEvidence:
    """s(R) = s(R + D) - cross(R, D) - s(D)."""
    cross = pairs_of({**left, **gone}, nulls, lambda a, b: (a in left) != (b in left))
    return _counted_change(_counted_change(state, cross, -1), pairs_of(gone, nulls), -1)


def _counted_meaning(state: CountedEvidence) -> dict[Combination, int]:
    sets = [frozenset(positions_of(m)) for m in state.masks]
    assert len(set(sets)) == len(sets), "masks are all different"
    return dict(zip(sets, state.counts.tolist(), strict=True))


def _cover(rows: Rows, n_columns: int, nulls: str) -> Cover:
    return Cover.of(arrays_of(pairs_of(rows, nulls), n_columns)[0], n_columns)


def _cover_grown(state: Cover, old: Rows, new: Rows, n_columns: int, nulls: str) -> Cover:
    everything = {**old, **new}
    added = pairs_of(everything, nulls, lambda a, b: not (a in old and b in old))
    return state.repaired(
        arrays_of(added, n_columns)[0], arrays_of(pairs_of(everything, nulls), n_columns)[0]
    )


def _cover_shrunk(state: Cover, left: Rows, gone: Rows, n_columns: int, nulls: str) -> Cover:
    rest = pairs_of(left, nulls)
    removed = {s: p for s, p in pairs_of({**left, **gone}, nulls).items() if s not in rest}
    return state.relaxed(arrays_of(removed, n_columns)[0], arrays_of(rest, n_columns)[0])


# -- functional dependencies -------------------------------------------------------------------------------


def _relevant(rows: Rows, n_columns: int, nulls: str) -> Relevant:
    return Relevant.of(arrays_of(pairs_of(rows, nulls), n_columns)[0], n_columns)


def _relevant_changed(state: Relevant, before: Rows, after: Rows, n_columns: int, nulls: str) -> Relevant:
    old, new = pairs_of(before, nulls), pairs_of(after, nulls)
    added = {s: p for s, p in new.items() if s not in old}
    gone = {s: p for s, p in old.items() if s not in new}
    masks = [arrays_of(pairs, n_columns)[0] for pairs in (added, gone, new)]
    return state.changed(*masks)


def _relevant_meaning(state: Relevant) -> dict[Combination, Combination]:
    sets = [[frozenset(positions_of(m)) for m in masks] for masks in (state.masks, state.columns)]
    return dict(zip(*sets, strict=True))


def _fd_cover(rows: Rows, n_columns: int, nulls: str) -> FdCover:
    return FdCover.of(_relevant(rows, n_columns, nulls))


def _fd_cover_changed(state: FdCover, before: Rows, after: Rows, n_columns: int, nulls: str) -> FdCover:
    relevant = [_relevant(rows, n_columns, nulls) for rows in (before, after)]
    return state.repaired(*relevant)


def _fd_evidence(rows: Rows, n_columns: int, nulls: str) -> FdEvidence:
    return FdEvidence.empty(n_columns, WITNESSES).merged(*arrays_of(pairs_of(rows, nulls), n_columns))


def _fd_evidence_grown(state: FdEvidence, old: Rows, new: Rows, n_columns: int, nulls: str) -> FdEvidence:
    """s(R + D) = s(R) + cross(R, D) + s(D)."""
    fresh = pairs_of({**old, **new}, nulls, lambda a, b: a not in old or b not in old)
    return state.merged(*arrays_of(fresh, n_columns))


def _fd_evidence_shrunk(state: FdEvidence, left: Rows, gone: Rows, n_columns: int, nulls: str) -> FdEvidence:
    """Dead witnesses go; what has none left is looked up again, as `functional/fd_witnessed.py` does."""
    after, _, _ = state.without_rows(np.array(sorted(gone), dtype=np.int64))
    known = sets_of(state.masks)
    again = {s: p for s, p in pairs_of(left, nulls).items() if s in known}
    return after.merged(*arrays_of(again, n_columns))


# -- inclusions: the generator, its clusters, its pair counts ----------------------------------------------


def frequencies_of(rows: Rows) -> dict[Hashable, Counter[int]]:
    """The generator by definition: value -> {column: frequency}. NULL is no value."""
    found: dict[Hashable, Counter[int]] = {}
    for row in rows.values():
        for column, cell in enumerate(row):
            if cell is not None:
                found.setdefault(comparable(cell), Counter())[column] += 1
    return found


def _entries_of(rows: Rows, sign: int) -> runs.Entries:
    """The cells of rows as entries, one by one."""
    cells = [(comparable(v), c) for row in rows.values() for c, v in enumerate(row) if v is not None]
    hashes = [hashlib.blake2b(repr(v).encode(), digest_size=12).digest() for v, _ in cells]
    return runs.Entries(
        np.array([int.from_bytes(h[:8]) for h in hashes], np.uint64),
        np.array([int.from_bytes(h[8:]) for h in hashes], np.uint32),
        np.array([c for _, c in cells], np.uint32),
        np.full(len(cells), sign, np.int64),
    )


def _generator(rows: Rows, n_columns: int, nulls: str) -> runs.Entries:
    return runs.consolidate(_entries_of(rows, 1))


def _generator_changed(state: runs.Entries, changed: Rows, sign: int) -> runs.Entries:
    return runs.merge([state, runs.consolidate(_entries_of(changed, sign))])


def _generator_meaning(state: runs.Entries) -> list[tuple[int, ...]]:
    return list(zip(*(a.tolist() for a in state.arrays()), strict=True))


def cluster_arrays(listed: list[cluster_reference.Cluster]) -> Clusters:
    return Clusters(
        np.cumsum([0, *(len(columns) for columns, _, _ in listed)]).astype(np.int64),
        np.array([c for columns, _, _ in listed for c in columns], np.uint32),
        np.array([size for _, size, _ in listed], np.int64),
        np.array([n for _, _, rows in listed for n in rows], np.int64),
    )


def _clusters(rows: Rows, n_columns: int, nulls: str) -> Clusters:
    return cluster_arrays(cluster_reference.clusters_of(list(frequencies_of(rows).values())))


def _cluster_change(old: Rows, changed: Rows, sign: int, n_columns: int) -> Clusters:
    """What rows that come or go do to the clusters: merge or extract of their values."""
    before, delta = frequencies_of(old), frequencies_of(changed)

    def flat(of: Mapping[Hashable, Counter[int]], times: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        lists = [sorted(of.get(v, Counter()).items()) for v in delta]
        return (
            np.cumsum([0, *map(len, lists)]).astype(np.int64),
            np.array([c for part in lists for c, _ in part], np.uint32),
            times * np.array([n for part in lists for _, n in part], np.int64),
        )

    nothing = np.zeros(n_columns + 1, np.int64), np.empty(0, np.uint32)
    appended = np.zeros(n_columns, np.bool_)
    found = cluster_kernels.absorb(*flat(delta, sign), *flat(before, 1), appended, *nothing)
    assert found.negative == -1
    return cluster_kernels.tally(found.events)


def _clusters_changed(state: Clusters, old: Rows, changed: Rows, sign: int, n_columns: int) -> Clusters:
    change = _cluster_change(old, changed, sign, n_columns)
    return cluster_kernels.tally(cluster_kernels.joined_clusters([state, change]))


def _clusters_meaning(state: Clusters) -> set[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    found = [
        (tuple(state.columns[a:b].tolist()), size, tuple(state.rows[a:b].tolist()))
        for (a, b), size in zip(pairwise(state.offsets.tolist()), state.sizes.tolist(), strict=True)
    ]
    assert len({columns for columns, _, _ in found}) == len(found), "clusters are all different"
    return set(found)


def _pair_counts(rows: Rows, n_columns: int, nulls: str) -> PairCounts:
    clusters = cluster_reference.clusters_of(list(frequencies_of(rows).values()))
    counted = cluster_reference.pair_counts(clusters)
    return PairCounts(
        np.array([(a << 32) | b for (a, b), _, _ in counted], np.uint64),
        np.array([values for _, values, _ in counted], np.int64),
        np.array([n for _, _, n in counted], np.int64),
    )


def _pair_counts_changed(
    state: PairCounts, old: Rows, changed: Rows, sign: int, n_columns: int
) -> PairCounts:
    change = _cluster_change(old, changed, sign, n_columns)
    return PairCounts.sum([state, PairCounts(*cluster_kernels.pair_counts(change))])


STATES = [
    StateType(
        "linear", RowCounts, row_counts.scratch, row_counts.grown, row_counts.shrunk, row_counts.meaning
    ),
    StateType(
        "linear",
        Tally,
        column_counts.tally,
        column_counts.tally_grown,
        column_counts.tally_shrunk,
        column_counts.tally_meaning,
    ),
    StateType(
        "linear",
        ColumnCounts,
        column_counts.column,
        column_counts.column_grown,
        column_counts.column_shrunk,
        column_counts.column_meaning,
    ),
    StateType(
        "quadratic",
        DcEvidence,
        predicate_states.evidence,
        predicate_states.evidence_grown,
        predicate_states.evidence_shrunk,
        predicate_states.meaning,
    ),
    StateType(
        "derived",
        DcCover,
        predicate_states.cover,
        lambda state, old, new, n, nulls: predicate_states.cover_changed(state, old, {**old, **new}, n),
        lambda state, left, gone, n, nulls: predicate_states.cover_changed(state, {**left, **gone}, left, n),
        predicate_states.meaning,
    ),
    StateType(
        "quadratic",
        WitnessedEvidence,
        _evidence,
        _evidence_grown,
        _evidence_shrunk,
        lambda state: sets_of(state.masks[maximal_masks(state.masks)]),
    ),
    StateType("quadratic", CountedEvidence, _counted, _counted_grown, _counted_shrunk, _counted_meaning),
    StateType(
        "quadratic",
        FdEvidence,
        _fd_evidence,
        _fd_evidence_grown,
        _fd_evidence_shrunk,
        lambda state: _relevant_meaning(state.relevant),
    ),
    StateType(
        "derived",
        Relevant,
        _relevant,
        lambda state, old, new, n, nulls: _relevant_changed(state, old, {**old, **new}, n, nulls),
        lambda state, left, gone, n, nulls: _relevant_changed(state, {**left, **gone}, left, n, nulls),
        _relevant_meaning,
    ),
    StateType(
        "derived",
        FdCover,
        _fd_cover,
        lambda state, old, new, n, nulls: _fd_cover_changed(state, old, {**old, **new}, n, nulls),
        lambda state, left, gone, n, nulls: _fd_cover_changed(state, {**left, **gone}, left, n, nulls),
        lambda state: [sets_of(cover.masks) for cover in state.covers],
    ),
    StateType("derived", Cover, _cover, _cover_grown, _cover_shrunk, lambda state: sets_of(state.masks)),
    StateType(
        "linear",
        runs.Entries,
        _generator,
        lambda state, old, new, n, nulls: _generator_changed(state, new, 1),
        lambda state, left, gone, n, nulls: _generator_changed(state, gone, -1),
        _generator_meaning,
    ),
    StateType(
        "linear",
        Clusters,
        _clusters,
        lambda state, old, new, n, nulls: _clusters_changed(state, old, new, 1, n),
        lambda state, left, gone, n, nulls: _clusters_changed(state, {**left, **gone}, gone, -1, n),
        _clusters_meaning,
    ),
    StateType(
        "linear",
        PairCounts,
        _pair_counts,
        lambda state, old, new, n, nulls: _pair_counts_changed(state, old, new, 1, n),
        lambda state, left, gone, n, nulls: _pair_counts_changed(state, {**left, **gone}, gone, -1, n),
        lambda state: list(zip(*(a.tolist() for a in state.to_arrays().values()), strict=True)),
    ),
]
