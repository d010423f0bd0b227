"""Columns that contain others, wholly or nearly, equal those found by sets, whatever values have bitmaps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.lakes.kernels import rarest_value
from reference import value_index as reference
from reference.value_index import Column, Value

# Values that agree on h1 and differ in h2 are neighbours in the index.
VALUES = [(h1, h2) for h1 in (0, 5, 2**63, 2**64 - 1) for h2 in (0, 1, 2**64 - 1)]
ABSENT = [(5, 2), (6, 0)]
SETS = st.frozensets(st.sampled_from(VALUES), max_size=len(VALUES))
Deps = list[list[Value]]


@st.composite
def lakes(draw: st.DrawFn) -> tuple[Deps, list[Column], set[int], set[Value]]:
    """(deps, columns, allowed, mapped): columns repeat, deps are columns or strangers, in any order."""
    pool = draw(st.lists(SETS, min_size=1, max_size=6))
    columns = [pool[i] for i in draw(st.lists(st.integers(0, len(pool) - 1), max_size=140))]
    own = st.sampled_from(pool) | SETS
    strangers = st.frozensets(st.sampled_from(VALUES + ABSENT), max_size=6)
    deps = [draw(st.permutations(sorted(dep))) for dep in draw(st.lists(own | strangers, max_size=5))]
    allowed = draw(st.none() | st.frozensets(st.integers(0, max(0, len(columns) - 1))))
    mapped = draw(st.sampled_from([frozenset(), frozenset(VALUES)]) | SETS)
    every = set(range(len(columns)))
    return deps, columns, every if allowed is None else every & allowed, set(mapped)


def asked(deps: Deps, columns: Sequence[Column], allowed: Collection[int], mapped: Collection[Value]) -> Any:
    """What the kernels take."""
    given = reference.question(deps, columns, mapped)
    words = np.array(reference.bits(allowed, len(columns)), np.uint64)
    return (
        np.array(given.offsets, np.int64),
        np.array(given.starts, np.int64),
        np.array(given.lengths, np.int32),
        np.array(given.slots, np.int32),
        np.array(given.postings, np.int32),
        np.array(given.maps, np.uint64).reshape(-1, len(words))
        if given.maps
        else np.zeros((0, len(words)), np.uint64),
        words,
    )


def from_dep(index: Any, first: int) -> Any:
    """The question about deps first, first + 1, ..."""
    offsets, starts, lengths, slots, *rest = index
    at = offsets[first]
    return (offsets[first:] - at, starts[at:], lengths[at:], slots[at:], *rest)


def in_portions(kernel: Any, index: Any, capacity: int, *more: Any) -> list[tuple[int, ...]]:
    """All that a kernel finds, call by call; `more` are arrays by dep."""
    n_deps = len(index[0]) - 1
    found: list[tuple[int, ...]] = []
    first = 0
    while True:
        *arrays, n_done = kernel(*from_dep(index, first), *(a[first:] for a in more), capacity)
        assert {a.dtype for a in arrays} == {np.dtype(np.int32)}
        assert n_done >= min(1, n_deps - first)
        assert len(arrays[0]) <= capacity or len(set(arrays[0].tolist())) == 1
        found += [(row[0] + first, *row[1:]) for row in zip(*(a.tolist() for a in arrays), strict=True)]
        first += n_done
        if first >= n_deps:
            return found


@given(lakes(), st.sampled_from([1, 2, 10, 10**6]))
@example(([], [], set(), set()), 1)
@example(([[]], [frozenset()], {0}, set()), 1)
@example(([[(0, 0)]], [], set(), set()), 5)
@example(([[(0, 0)]] * 3, [frozenset({(0, 0)})] * 65, set(range(65)), {(0, 0)}), 1)
@example(  # the rarest value has a bitmap, another has none
    (
        [[(5, 0), (0, 0)]],
        [frozenset({(0, 0), (5, 0)}), frozenset({(5, 0)}), *[frozenset({(0, 0)})] * 5],
        set(range(7)),
        {(5, 0)},
    ),
    9,
)
@example(([[(5, 2), (5, 1)]], [frozenset({(5, 1)})] * 3, {0, 1, 2}, {(5, 1)}), 1)
def test_containing(lake: tuple[Deps, list[Column], set[int], set[Value]], capacity: int) -> None:
    deps, columns, allowed, mapped = lake
    found = in_portions(rarest_value.containing, asked(*lake), capacity)
    assert found == reference.containing(deps, columns, allowed)
    event(f"{'some' if found else 'none'} found, {'mapped' if mapped else 'no map'}")


@given(lakes(), st.sampled_from([1, 2, 10, 10**6]), st.data())
@example(([], [], set(), set()), 1, None)
@example(([[(0, 0), (5, 0)]], [frozenset({(0, 0)})], {0}, set()), 1, None)
def test_nearly_containing(
    lake: tuple[Deps, list[Column], set[int], set[Value]], capacity: int, data: Any
) -> None:
    deps, columns, allowed, _ = lake
    missing = [1 if data is None else data.draw(st.integers(0, len(dep) + 1)) for dep in deps]
    index = asked(*lake)
    found = in_portions(rarest_value.nearly_containing, index, capacity, np.array(missing, np.int32))
    assert found == reference.nearly_containing(deps, columns, allowed, missing)
    exact = in_portions(rarest_value.nearly_containing, index, capacity, np.zeros(len(deps), np.int32))
    assert [row[:2] for row in exact] == reference.containing(deps, columns, allowed)


@pytest.fixture(scope="module")
def large() -> tuple[Any, list[tuple[int, int]], list[int], list[tuple[int, int, int]]]:
    """(question without bitmaps, those that contain, max_missing, those that nearly do).

    More columns than a block of bitmaps has; values of all columns, of one, and between; large columns.
    """
    rng = np.random.default_rng(1)
    n = 33_000
    sizes = rng.integers(1, 7, n)
    sizes[:30] = rng.integers(20, 120, 30)
    drawn = (3000 ** rng.random(sizes.sum())).astype(int)
    values = np.split(drawn, np.cumsum(sizes)[:-1])
    columns = [frozenset((int(v) * 2**50, 0) for v in column) for column in values]
    deps = [sorted(columns[c]) for c in (*range(12), *rng.integers(0, n, 8).tolist())]
    deps += [[(v * 2**50, 0) for v in vs] for vs in ([1], [1, 2], [1, 2, 3, 4], [2999, 1], [1, 77, 2, 500])]
    deps.append([(v * 2**50, 0) for v in range(1, 40)])
    missing = [len(dep) // 4 for dep in deps]
    every = range(n)
    found = reference.containing(deps, columns, every)
    nearly = reference.nearly_containing(deps, columns, every, missing)
    return asked(deps, columns, every, ()), found, missing, nearly


def with_bitmaps(index: Any, min_length: int) -> Any:
    offsets, starts, lengths, slots, postings, maps, allowed = index
    runs, first = np.unique(starts[lengths >= min_length], return_index=True)
    run_lengths = lengths[lengths >= min_length][first]
    maps = np.zeros((len(runs), len(allowed)), np.uint64)
    for row, (start, length) in enumerate(zip(runs, run_lengths, strict=True)):
        bits = np.zeros(64 * len(allowed), np.bool_)
        bits[postings[start : start + length]] = True
        maps[row] = np.packbits(bits, bitorder="little").view(np.uint64)
    slots = np.where(lengths >= min_length, np.searchsorted(runs, starts), -1).astype(np.int32)
    return offsets, starts, lengths, slots, postings, maps, allowed


@pytest.mark.parametrize(("min_length", "odd"), [(10**9, 1), (1000, 10**9), (1, 10**9), (1, 2), (1, 3)])
def test_large_lake(large: Any, min_length: int, odd: int) -> None:
    """Merged, galloped, tested by bits, intersected block by block: the same; each `odd`-th has no bitmap."""
    index, contain, missing, nearly = large
    index = with_bitmaps(index, min_length)
    index[3][::odd] = -1
    assert in_portions(rarest_value.containing, index, 10**7) == contain
    assert in_portions(rarest_value.containing, index, 9000) == contain
    found = in_portions(rarest_value.nearly_containing, index, 10**7, np.array(missing, np.int32))
    assert found == nearly


@given(lakes())
@example(([[]], [], set(), set()))
@example(([[(0, 0)], [(5, 0), (0, 0)]], [frozenset({(0, 0)})], {0}, set()))
def test_rarity(lake: tuple[Deps, list[Column], set[int], set[Value]]) -> None:
    deps, columns, *_ = lake
    offsets, _, lengths, *_ = asked(*lake)
    values = np.array([v[0] for dep in deps for v in dep], np.uint64)
    pivots, rarities = rarest_value.rarity(offsets, lengths, values, len(columns))
    assert (pivots.dtype, rarities.dtype) == (np.uint64, np.float32)
    expected = reference.rarity(deps, columns)
    assert pivots.tolist() == [pivot for pivot, _ in expected]
    assert rarities.tolist() == pytest.approx([mean for _, mean in expected], abs=1e-6)


def test_memory_maps_need_no_other_compilation(tmp_path: Path) -> None:
    columns = [frozenset({VALUES[c % 3], VALUES[4 + c % 2]}) for c in range(70)]
    index = asked([sorted(column) for column in columns], columns, range(70), VALUES[:2])
    opened = []
    for i, array in enumerate(index):
        np.save(tmp_path / f"{i}.npy", array)
        opened.append(np.load(tmp_path / f"{i}.npy", mmap_mode="r"))
    found = [in_portions(rarest_value.containing, given, 100) for given in (index, tuple(opened))]
    assert found[0] == found[1]
    assert len(rarest_value._containing.signatures) == 1


def test_capacity_is_kept_to_the_pair() -> None:
    """Five deps of three pairs each: two a call with room for 6, 7 or 8."""
    columns = [frozenset({VALUES[0]})] * 3
    index = asked([[VALUES[0]]] * 5, columns, range(3), VALUES)
    done = [rarest_value.containing(*index, capacity)[2] for capacity in (0, 1, 5, 6, 8, 9, 15, 99)]
    assert done == [1, 1, 1, 2, 2, 3, 5, 5]
    assert all(a <= b for a, b in pairwise(done))
