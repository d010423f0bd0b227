"""The inverted index of columns: sorted, searched and mapped like the plain-Python reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.lakes.kernels import value_index
from reference import value_index as reference
from reference.value_index import Entry, Value

LAST = 2**64 - 1

# Few hashes, so that values meet, and differ in h2 only; the ends of the range are common.
HASHES = st.sampled_from([0, 1, 2, 2**32, 2**63 - 1, 2**63, LAST - 1, LAST]) | st.integers(0, LAST)
VALUES = st.tuples(HASHES, st.sampled_from([0, 1, LAST]))
COLUMNS = st.lists(st.frozensets(VALUES, max_size=6), max_size=12)


def hashes_of(values: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([v[0] for v in values], np.uint64), np.array([v[1] for v in values], np.uint64)


def index_of(entries: Sequence[Entry]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return *hashes_of(entries), np.array([e[2] for e in entries], np.int32)


def listed(arrays: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    return list(zip(*(a.tolist() for a in arrays), strict=True))


@given(COLUMNS, st.randoms(use_true_random=False))
@example([], None)
@example([frozenset({(5, 1)}), frozenset({(5, 0), (4, 2)}), frozenset({(5, 1), (5, 0)})], None)
def test_sort_entries(columns: list[reference.Column], random: object) -> None:
    """In any order of the input; None: column by column."""
    entries = [(*value, c) for c, column in enumerate(columns) for value in sorted(column)]
    if random is not None:
        random.shuffle(entries)  # type: ignore[attr-defined]
    arrays = index_of(entries)
    found = value_index.sort_entries(*arrays)
    assert [a.dtype for a in found] == [np.uint64, np.uint64, np.int32]
    assert listed(found) == reference.entries(columns)
    assert listed(arrays) == entries, "what it is given stays as it is"


@pytest.mark.parametrize("n_keys", [1, 2, 50, 1 << 40])
@pytest.mark.parametrize("shift", [0, 24])
def test_sort_many_entries(n_keys: int, shift: int) -> None:
    """Long postings side by side, keys that agree on their leading bits, and columns out of order."""
    rng = np.random.default_rng(n_keys % 97)
    n = 70_000
    keys = rng.integers(0, n_keys, n).astype(np.uint64) << np.uint64(shift)
    checks = rng.integers(0, 2, n).astype(np.uint64)
    columns = rng.permutation(n).astype(np.int32)
    order = np.lexsort((columns, checks, keys))
    for a, b in zip(value_index.sort_entries(keys, checks, columns), (keys, checks, columns), strict=True):
        np.testing.assert_array_equal(a, b[order])


@given(COLUMNS, st.lists(VALUES, max_size=20))
@example([], [(0, 0)])
@example([frozenset({(5, 1)})], [(5, 0), (5, 1), (5, 2), (4, 1), (6, 1)])
@example([frozenset({(LAST, LAST), (0, 0)})], [(LAST, LAST), (0, 0)])
def test_find(columns: list[reference.Column], strangers: list[Value]) -> None:
    entries = reference.entries(columns)
    places = reference.runs(entries)
    wanted = [*strangers, *places]
    keys, checks, _ = index_of(entries)
    starts, lengths = value_index.find(keys, checks, *hashes_of(wanted))
    assert (starts.dtype, lengths.dtype) == (np.int64, np.int32)
    for value, start, length in zip(wanted, starts.tolist(), lengths.tolist(), strict=True):
        if value in places:
            assert (start, length) == places[value]
        else:
            assert length == 0
    event(f"{sum(v not in places for v in wanted) > 0} absent")


def test_find_among_many() -> None:
    """Many buckets, long runs and short ones, and different values with one h1."""
    rng = np.random.default_rng(3)
    keys = np.sort(rng.choice(rng.integers(0, LAST, 3000, dtype=np.uint64), 40_000))
    keys[:9000] = keys[0]
    checks = rng.integers(0, 3, len(keys)).astype(np.uint64)
    order = np.lexsort((checks, keys))
    keys, checks = keys[order], checks[order]
    places = reference.runs([(k, c, 0) for k, c in zip(keys.tolist(), checks.tolist(), strict=True)])
    wanted = [*places, *((k, 9) for k, _ in places)]
    starts, lengths = value_index.find(keys, checks, *hashes_of(wanted))
    found = dict(zip(wanted, zip(starts.tolist(), lengths.tolist(), strict=True), strict=True))
    assert {v: place for v, place in found.items() if v in places} == places
    assert all(length == 0 for v, (_, length) in found.items() if v not in places)


@given(COLUMNS, st.integers(0, 6))
@example([frozenset({(5, 0), (5, 1)})] * 3, 3)
def test_long_runs_and_their_bitmaps(columns: list[reference.Column], min_length: int) -> None:
    entries = reference.entries(columns)
    keys, checks, postings = index_of(entries)
    starts, lengths = value_index.long_runs(keys, checks, min_length)
    long = {v: run for v, run in reference.runs(entries).items() if run[1] >= min_length}
    assert list(zip(starts.tolist(), lengths.tolist(), strict=True)) == list(long.values())
    maps = value_index.bitmaps(postings, starts, lengths, len(columns))
    assert maps.shape == (len(long), -(-len(columns) // 64))
    assert maps.tolist() == [
        reference.bits([c for c, has in enumerate(columns) if v in has], len(columns)) for v in long
    ]


@pytest.mark.parametrize("n_columns", [1, 63, 64, 65, 200])
def test_bitmap_of_all_columns(n_columns: int) -> None:
    postings = np.arange(n_columns, dtype=np.int32)
    maps = value_index.bitmaps(postings, np.array([0]), np.array([n_columns], np.int32), n_columns)
    assert maps.tolist() == [reference.bits(range(n_columns), n_columns)]


def test_memory_maps_need_no_other_compilation(tmp_path: Path) -> None:
    columns = [frozenset({(c % 3, 0), (9, c % 2)}) for c in range(9)]
    arrays = index_of(reference.entries(columns))
    opened = []
    for i, array in enumerate(arrays):
        np.save(tmp_path / f"{i}.npy", array)
        opened.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    for keys, checks, postings in (arrays, opened):
        assert listed(value_index.sort_entries(keys, checks, postings)) == listed(arrays)
        starts, _ = value_index.find(keys, checks, keys, checks)
        assert (keys[starts] == keys).all()
        value_index.bitmaps(postings, *value_index.long_runs(keys, checks, 2), 9)
    for kernel in (value_index._scatter, value_index._find, value_index._long_runs, value_index._bitmaps):
        assert len(kernel.signatures) == 1
