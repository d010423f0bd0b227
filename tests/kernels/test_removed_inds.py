"""Inclusions counted by the filter that removes them: as many as by listing them all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.lakes.kernels import removed_inds
from reference import value_index as reference
from reference.value_index import Column, Value

VALUES = [(h1, h2) for h1 in (0, 5, 2**63, 2**64 - 1) for h2 in (0, 1, 2**64 - 1)]
SETS = st.frozensets(st.sampled_from(VALUES), max_size=len(VALUES))
TAUS = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0])
FILTERS = st.integers(0, 15)
# With flags that no column has at once: the order of filters decides.
FLAGS = st.integers(0, 7)
# (values, flags) of columns, deps as (values, flags, own number), live columns, values with bitmaps
Lake = tuple[list[tuple[Column, int]], list[tuple[list[Value], int, int]], set[int], set[Value]]


@st.composite
def lakes(draw: st.DrawFn) -> Lake:
    pool = draw(st.lists(SETS, min_size=1, max_size=6))
    kinds = draw(st.lists(st.tuples(st.sampled_from(pool), FLAGS), min_size=1, max_size=6))
    columns = [kinds[i] for i in draw(st.lists(st.integers(0, len(kinds) - 1), max_size=140))]
    every = set(range(len(columns)))
    deps = [(sorted(values), flags, c) for c, (values, flags) in enumerate(columns)][-30:]
    for values, flags in draw(st.lists(st.tuples(SETS | st.just(frozenset({(5, 2)})), FLAGS), max_size=4)):
        number = draw(st.integers(-1, len(columns) - 1))
        deps.append((draw(st.permutations(sorted(values))), flags, number))
    dead = draw(st.frozensets(st.integers(0, 139), max_size=20))
    mapped = draw(st.sampled_from([frozenset(), frozenset(VALUES)]) | SETS)
    return columns, draw(st.permutations(deps)), every - dead, set(mapped)


def counted(lake: Lake, tau: float, filters: int) -> list[int]:
    columns, deps, live, mapped = lake
    sets = [values for values, _ in columns]
    given = reference.question([values for values, *_ in deps], sets, mapped)
    words = np.array(reference.bits(live, len(columns)), np.uint64)
    maps = np.array(given.maps, np.uint64) if given.maps else np.zeros((0, len(words)), np.uint64)
    found = removed_inds.removed(
        np.array(given.offsets, np.int64),
        np.array(given.starts, np.int64),
        np.array(given.lengths, np.int32),
        np.array(given.slots, np.int32),
        np.array(given.postings, np.int32),
        maps,
        np.array([flags for _, flags, _ in deps], np.uint8),
        np.array([number for *_, number in deps], np.int64),
        np.array([flags for _, flags in columns], np.uint8),
        np.array([len(values) for values in sets], np.int32),
        words,
        tau,
        filters,
    )
    assert (found.dtype, found.shape) == (np.int64, (5,))
    return found.tolist()


def expected(lake: Lake, tau: float, filters: int) -> list[int]:
    columns, deps, live, _ = lake
    return reference.removed(
        [values for values, *_ in deps],
        [flags for _, flags, _ in deps],
        [number for *_, number in deps],
        [values for values, _ in columns],
        [flags for _, flags in columns],
        live,
        tau,
        filters,
    )


@given(lakes(), TAUS, FILTERS)
@example(([], [], set(), set()), 0.2, 15)
@example(([(frozenset(), 0)], [([], 0, 0)], {0}, set()), 0.2, 15)
@example(
    ([(frozenset({(0, 0)}), 7)] * 65, [([(0, 0)], 7, c) for c in range(65)], set(range(65)), {(0, 0)}),
    1.0,
    15,
)
def test_removed(lake: Lake, tau: float, filters: int) -> None:
    found = counted(lake, tau, filters)
    assert found == expected(lake, tau, filters)
    event(f"{'some' if sum(found) else 'none'}, {'mapped' if lake[3] else 'no map'}")


@pytest.mark.parametrize("n_values", [3, 62, 63, 64, 100])
@pytest.mark.parametrize("filters", [8, 12, 15])
def test_coverage_of_columns_with_many_values(n_values: int, filters: int) -> None:
    """Below and above the number of values up to which coverage is a bitmap."""
    few = [(v, 0) for v in range(n_values)]
    more = [(v, 0) for v in range(5 * n_values + 1)]
    columns = [
        (frozenset(few), 4),
        (frozenset(more[:-1]), 4),
        (frozenset(more), 4),
        (frozenset(more), 6),
    ] * 20
    deps = [(few, 4, 0), (few, 0, -1), (few, 2, 4), (more, 4, 2)]
    for mapped in ([], few, more):
        lake: Lake = (columns, deps, set(range(5, 80)), set(mapped))
        assert counted(lake, 0.2, filters) == expected(lake, 0.2, filters)


def test_more_columns_than_a_block() -> None:
    """Deps of frequent values, alone in a block, in all blocks, in none; equal ones next to each other."""
    rng = np.random.default_rng(2)
    n = 70_001
    member = rng.random((6, n)) < np.array([0.9, 0.5, 0.5, 0.1, 0.01, 0.0])[:, None]
    member[5, [3, n - 1]] = True
    flags = rng.choice(np.array([0, 1, 2, 4, 6], np.uint8), n)
    sizes = member.sum(axis=0).astype(np.int32) + rng.integers(0, 9, n).astype(np.int32)
    live = rng.random(n) < 0.95
    lengths = member.sum(axis=1).astype(np.int32)
    starts = np.cumsum(lengths) - lengths
    postings = np.concatenate([np.flatnonzero(row) for row in member]).astype(np.int32)
    words = [
        np.packbits(np.append(row, np.zeros(-n % 64, np.bool_)), bitorder="little") for row in (*member, live)
    ]
    *maps, live_words = (row.view(np.uint64) for row in words)
    deps = [[0], [0, 1], [0, 1, 2], [0, 1, 2], [3, 4], [1, 2, 3, 4], [5, 0], [5], [4, 5]] * 3
    dep_flags = np.array([2] * 9 + [4] * 9 + [1] * 9, np.uint8)
    ids = np.array([int(np.flatnonzero(member[dep].all(axis=0))[0]) if dep != [4, 5] else -1 for dep in deps])
    listed = [v for dep in deps for v in dep]
    offsets = np.cumsum([0, *map(len, deps)])

    def ask(slots: Any, filters: int) -> list[int]:
        return removed_inds.removed(
            offsets, starts[listed], lengths[listed], slots, postings, np.array(maps),
            dep_flags, ids, flags, sizes, live_words, 0.3, filters,
        ).tolist()  # fmt: skip

    for filters in (0, 3, 8, 12, 15):
        counts = [0] * 5
        for dep, dep_flag, own in zip(deps, dep_flags.tolist(), ids.tolist(), strict=True):
            holds = member[dep].all(axis=0) & live
            if own >= 0:
                holds[own] = False
            reasons = [
                ((flags | dep_flag) & 1) != 0,
                ((flags | dep_flag) & 2) != 0,
                (flags & 4) == 0,
                len(dep) < 0.3 * sizes,
            ]
            for i, reason in enumerate(reasons):
                if filters >> i & 1:
                    counts[i + 1] += int((holds & reason).sum())
                    holds &= ~reason
            counts[0] += int(holds.sum())
        slots = np.array(listed, np.int32)
        assert ask(slots, filters) == counts
        assert ask(np.full_like(slots, -1), filters) == counts
        assert ask(np.where(slots % 2 == 0, slots, -1), filters) == counts


def test_more_deps_than_are_remembered() -> None:
    """All sets of 15 frequent values, each twice, in any order: none is taken for another."""
    rng = np.random.default_rng(4)
    n = 300
    member = rng.random((15, n)) < 0.8
    lengths = member.sum(axis=1).astype(np.int32)
    starts = np.cumsum(lengths) - lengths
    postings = np.concatenate([np.flatnonzero(row) for row in member]).astype(np.int32)
    packed = np.packbits(np.pad(member, ((0, 0), (0, -n % 64))), axis=1, bitorder="little")
    flags = rng.choice(np.array([0, 4], np.uint8), n)
    sets = np.repeat(np.arange(1 << 15), 2)
    rng.shuffle(sets)
    chosen = (sets[:, None] >> np.arange(15)) & 1 == 1
    listed = np.nonzero(chosen)[1]
    found = removed_inds.removed(
        np.append(0, np.cumsum(chosen.sum(axis=1))),
        starts[listed],
        lengths[listed],
        listed.astype(np.int32),
        postings,
        packed.view(np.uint64),
        np.zeros(len(sets), np.uint8),
        np.full(len(sets), -1),
        flags,
        member.sum(axis=0).astype(np.int32),
        np.array(reference.bits(range(n), n), np.uint64),
        0.2,
        4,
    )
    # A column contains each set of the values that it has but the empty one.
    each = 2 * (2 ** member.sum(axis=0) - 1)
    assert found.tolist() == [int(each[flags == 4].sum()), 0, 0, int(each[flags == 0].sum()), 0]
