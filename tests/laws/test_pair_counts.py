"""Pair counts: sums, drops and look-ups equal dictionaries; what holds is what the definition says."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.inclusions.pair_counts import PairCounts, by_left, pair_ids
from laws.registry import STATES, frequencies_of
from reference import inds as oracle
from strategies import Filled, filled

Counts = dict[tuple[int, int], tuple[int, int]]  # (a, b) -> values, rows

N_IDS = 7
IDS = st.integers(0, N_IDS - 1)
PAIRS = st.dictionaries(
    st.tuples(IDS, IDS),
    st.tuples(st.integers(-2, 3), st.integers(-2, 3)).filter(any),
    max_size=20,
)
LARGEST = 2**32 - 1


def counts_of(pairs: Counts) -> PairCounts:
    ordered = sorted(pairs)
    return PairCounts(
        np.array([(a << 32) | b for a, b in ordered], np.uint64),
        np.array([pairs[p][0] for p in ordered], np.int64),
        np.array([pairs[p][1] for p in ordered], np.int64),
    )


def dict_of(counts: PairCounts) -> Counts:
    assert [a.dtype for a in counts.to_arrays().values()] == [np.uint64, np.int64, np.int64]
    named = pairs_of(counts.pairs)
    assert named == sorted(set(named)), "sorted, each once"
    return dict(zip(named, zip(counts.values.tolist(), counts.rows.tolist(), strict=True), strict=True))


def pairs_of(ids: np.ndarray) -> list[tuple[int, int]]:
    return [(p >> 32, p & 0xFFFFFFFF) for p in ids.tolist()]


@given(st.lists(PAIRS, max_size=4))
@example([])
@example([{(0, 0): (1, 1)}, {(0, 0): (-1, -1)}])
@example([{(0, 0): (1, 1)}, {(0, 0): (-1, 0)}])  # no value is left, but a row is
@example([{(LARGEST, LARGEST): (1, 1)}, {(LARGEST, 0): (1, 1), (LARGEST, LARGEST): (1, 1)}])
def test_sum(parts: list[Counts]) -> None:
    values: Counter[tuple[int, int]] = Counter()
    rows: Counter[tuple[int, int]] = Counter()
    for part in parts:
        for pair, (v, r) in part.items():
            values[pair] += v
            rows[pair] += r
    expected = {p: (values[p], rows[p]) for p in values if values[p] or rows[p]}
    event("cancelled" if len(expected) < len(values) else "all kept")
    arrays = [counts_of(part) for part in parts]
    assert dict_of(PairCounts.sum(arrays)) == expected
    assert [dict_of(a) for a in arrays] == parts
    assert len(PairCounts.sum(arrays)) == len(expected)


@given(PAIRS)
def test_there_and_back_as_arrays(pairs: Counts) -> None:
    assert dict_of(PairCounts.from_arrays(counts_of(pairs).to_arrays())) == pairs
    assert dict_of(PairCounts.empty()) == {}


@given(PAIRS, st.frozensets(IDS))
def test_without_columns(pairs: Counts, gone: frozenset[int]) -> None:
    mask = np.array([c in gone for c in range(N_IDS)])
    expected = {(a, b): n for (a, b), n in pairs.items() if a not in gone and b not in gone}
    assert dict_of(counts_of(pairs).without_columns(mask)) == expected


@given(PAIRS, st.frozensets(IDS))
@example({}, frozenset({0, 6}))
@example({(0, 0): (1, 1), (6, 6): (1, 1)}, frozenset())
def test_of_left(pairs: Counts, wanted: frozenset[int]) -> None:
    found = counts_of(pairs).of_left(np.array(sorted(wanted), np.int64))
    assert dict_of(found) == {(a, b): n for (a, b), n in pairs.items() if a in wanted}


def test_of_left_at_the_ends_of_the_ids() -> None:
    pairs = dict.fromkeys(product((0, 1, LARGEST - 1, LARGEST), repeat=2), (1, 1))
    for left in (0, LARGEST - 1, LARGEST):
        found = counts_of(pairs).of_left(np.array([left], np.int64))
        assert dict_of(found) == {(a, b): n for (a, b), n in pairs.items() if a == left}


@given(PAIRS, st.lists(st.tuples(IDS, IDS), max_size=12))
@example({}, [(0, 0)])
@example({(6, 6): (1, 2)}, [(6, 6), (0, 0), (6, 6)])
def test_at(pairs: Counts, wanted: list[tuple[int, int]]) -> None:
    """In any order, some twice; what is not there shares nothing."""
    left, right = (np.array([p[i] for p in wanted], np.int64) for i in (0, 1))
    values, rows = counts_of(pairs).at(pair_ids(left, right))
    expected = [pairs.get(p, (0, 0)) for p in wanted]
    assert list(zip(values.tolist(), rows.tolist(), strict=True)) == expected


@given(st.frozensets(st.tuples(IDS, IDS)), st.integers(0, 2))
def test_by_left(pairs: frozenset[tuple[int, int]], more: int) -> None:
    """Ids that no pair has come out empty, those behind the last pair as well."""
    ordered = sorted(pairs)
    ids = pair_ids(*(np.array([p[i] for p in ordered], np.int64) for i in (0, 1)))
    assert pairs_of(ids) == ordered
    offsets, rights = by_left(ids, N_IDS + more)
    assert (offsets.dtype, rights.dtype, len(offsets)) == (np.int64, np.uint32, N_IDS + more + 1)
    for a in range(N_IDS + more):
        assert rights[offsets[a] : offsets[a + 1]].tolist() == [b for left, b in ordered if left == a]


# -- what they mean ----------------------------------------------------------------------------------------

[PAIR_COUNTS] = [s for s in STATES if s.type is PairCounts]


@given(filled(max_rows=10, types=("int", "small int", "float", "text", "decimal"), pool_size=2), IDS)
def test_what_holds_is_what_the_definition_says(case: Filled, more: int) -> None:
    """Lemma 4.2 and Definition of an IND, on real columns; ids without a column hold nothing."""
    n_columns = case.shape.n_columns
    counts = PAIR_COUNTS.scratch(dict(enumerate(case.rows)), n_columns, "equal")
    table = oracle.Table(tuple(case.shape.names), case.rows)
    expected = oracle.inclusions({"t": table})
    event(f"{min(len(expected), 3)} inclusions")
    number = {("t", name): i for i, name in enumerate(case.shape.names)}
    found = pairs_of(counts.holding(n_columns + more))
    assert found == sorted((number[a], number[b]) for a, b in expected)
    distinct, rows = counts.of_columns(n_columns + more)
    frequencies = [oracle.frequencies(table, name) for name in case.shape.names]
    assert distinct.tolist() == [len(f) for f in frequencies] + [0] * more
    assert rows.tolist() == [f.total() for f in frequencies] + [0] * more


@given(filled(max_rows=10, types=("int", "small int"), pool_size=3))
def test_what_is_missing_is_a_difference(case: Filled) -> None:
    """The error and the missing rows of every pair, held or not."""
    n_columns = case.shape.n_columns
    rows = dict(enumerate(case.rows))
    counts = PAIR_COUNTS.scratch(rows, n_columns, "equal")
    distinct, n_rows = counts.of_columns(n_columns)
    database = {"t": oracle.Table(tuple(case.shape.names), case.rows)}
    for a, b in product(range(n_columns), repeat=2):
        shared, carrying = counts.at(pair_ids(np.array([a]), np.array([b])))
        told = oracle.inclusion(database, ("t", case.shape.names[a]), ("t", case.shape.names[b]))
        assert distinct[a] - shared[0] == told.missing_values
        assert n_rows[a] - carrying[0] == told.missing_rows
    assert len(counts) <= sum(len(f) ** 2 for f in frequencies_of(rows).values())
