"""Runs of (value, column, count) equal the plain-Python reference, in order and to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.inclusions.kernels import sorted_runs as runs
from holdfast.inclusions.kernels.sorted_runs import Entries
from reference import runs as reference
from reference.runs import Entry, Value

LAST_KEY, LAST_CHECK = 2**64 - 1, 2**32 - 1

# Few keys and fewer checks, so that values meet; the ends of both ranges are common.
KEYS = st.sampled_from([0, 1, 2, 2**32, 2**63 - 1, 2**63, LAST_KEY - 1, LAST_KEY]) | st.integers(0, LAST_KEY)
CHECKS = st.sampled_from([0, 1, LAST_CHECK])
COLUMNS = st.integers(0, 4) | st.sampled_from([2**16 - 1, 2**16, 2**32 - 1])
COUNTS = st.integers(-3, 3) | st.sampled_from([2**40, -(2**40)])
ENTRIES = st.lists(st.tuples(KEYS, CHECKS, COLUMNS, COUNTS), max_size=40)
RUNS = ENTRIES.map(reference.consolidated)


def entries_of(listed: Sequence[Entry]) -> Entries:
    columns = list(zip(*listed, strict=True)) or [(), (), (), ()]
    types = (np.uint64, np.uint32, np.uint32, np.int64)
    return Entries(*(np.array(c, dtype=t) for c, t in zip(columns, types, strict=True)))


def listed(entries: Entries) -> list[Entry]:
    assert [a.dtype for a in entries.arrays()] == [np.uint64, np.uint32, np.uint32, np.int64]
    return list(zip(*(a.tolist() for a in entries.arrays()), strict=True))


@given(ENTRIES)
@example([])
@example([(0, 0, 0, 1), (LAST_KEY, LAST_CHECK, 2**32 - 1, 1)])
@example([(5, 0, 0, 2), (5, 0, 0, -2)])  # nothing is left
@example([(5, 1, 0, 1), (5, 0, 1, 1), (5, 0, 0, 1), (5, 1, 0, 1)])  # checks before columns
def test_consolidate(entries: list[Entry]) -> None:
    given_arrays = entries_of(entries)
    found = listed(runs.consolidate(given_arrays))
    event("cancelled" if len(found) < len({e[:3] for e in entries}) else "all kept")
    assert found == reference.consolidated(entries)
    assert listed(given_arrays) == entries, "what it is given stays as it is"


def test_consolidate_many_entries_of_one_key() -> None:
    """A key with hundreds of columns and a few checks, in any order."""
    rng = np.random.default_rng(1)
    entries = [
        (9, int(check), int(column), int(count))
        for check, column, count in zip(
            rng.integers(0, 3, 2000), rng.integers(0, 300, 2000), rng.integers(-2, 3, 2000), strict=True
        )
    ]
    assert listed(runs.consolidate(entries_of(entries))) == reference.consolidated(entries)


@given(st.lists(RUNS, max_size=5))
@example([])
@example([[], []])
@example([[(0, 0, 0, 1)], [(0, 0, 0, -1)], [(0, 0, 0, 1)]])
@example([[(LAST_KEY, 0, 0, 1)], [(LAST_KEY, 0, 0, -1)]])
def test_merge(many: list[list[Entry]]) -> None:
    given_arrays = [entries_of(run) for run in many]
    assert listed(runs.merge(given_arrays)) == reference.merged(many)
    assert [listed(e) for e in given_arrays] == many


def test_merge_of_many_runs_of_all_sizes() -> None:
    rng = np.random.default_rng(2)
    many = []
    for size in (0, 1, 2000, 3, 3, 500, 40, 1):
        keys, columns = rng.integers(0, 400, size).tolist(), rng.integers(0, 3, size).tolist()
        counts = rng.choice([-1, 1], size).tolist()
        many.append(
            reference.consolidated([(k, 0, c, n) for k, c, n in zip(keys, columns, counts, strict=True)])
        )
    assert listed(runs.merge([entries_of(run) for run in many])) == reference.merged(many)


@given(st.lists(ENTRIES, max_size=4))
def test_joined(parts: list[list[Entry]]) -> None:
    assert listed(runs.joined([entries_of(p) for p in parts])) == [e for p in parts for e in p]


@given(RUNS)
@example([])
@example([(5, 0, 0, 1), (5, 1, 0, 1), (5, 1, 1, 1)])
def test_value_starts(run: list[Entry]) -> None:
    found = runs.value_starts(entries_of(run))
    assert found.dtype == np.int64
    assert found.tolist() == reference.value_starts(run)


# -- finding -----------------------------------------------------------------------------------------------


def check_found(run: Sequence[Entry], wanted: Sequence[Value], first: int = 0, bits: int = 0) -> int:
    """Looks all wanted values up; the number of reads."""
    entries = entries_of(run)
    starts, shift = runs.directory(entries.keys, first, bits)
    keys, checks = (np.array([w[i] for w in wanted], t) for i, t in enumerate((np.uint64, np.uint32)))
    at, ends, reads = runs.find(entries.keys, entries.checks, starts, first, shift, keys, checks)
    assert at.dtype == ends.dtype == np.int64
    assert list(zip(at.tolist(), ends.tolist(), strict=True)) == reference.places(run, wanted)
    return reads


@given(RUNS, st.lists(st.tuples(KEYS, CHECKS), max_size=12))
@example([], [(0, 0), (LAST_KEY, LAST_CHECK)])
@example([(0, 0, 0, 1), (LAST_KEY, LAST_CHECK, 0, 1)], [(0, 0), (LAST_KEY, LAST_CHECK)])
@example([(7, 1, c, 1) for c in range(30)], [(7, 0), (7, 1), (7, 2)])
@example([(7, c, 0, 1) for c in range(30)], [(7, 0), (7, 29), (7, 30), (7, 15)])
def test_find(run: list[Entry], others: list[Value]) -> None:
    """What is there and what is not; neighbours of what is there; in any order, some twice."""
    there = [entry[:2] for entry in run]
    beside = [(k, c + d) for k, c in there for d in (-1, 1) if 0 <= c + d <= LAST_CHECK]
    beside += [(k + d, c) for k, c in there for d in (-1, 1) if 0 <= k + d <= LAST_KEY]
    check_found(run, sorted([*there, *beside, *others]))
    check_found(run, [*others, *there])


DISTRIBUTIONS = {
    "evenly": lambda n, rng: rng.integers(0, LAST_KEY, n, dtype=np.uint64).tolist(),
    "all small": lambda n, rng: rng.integers(0, 3 * n, n).tolist(),
    "all large": lambda n, rng: [LAST_KEY - k for k in rng.integers(0, 3 * n, n).tolist()],
    "at both ends": lambda n, rng: [k if k % 2 else LAST_KEY - k for k in rng.integers(0, 3 * n, n).tolist()],
    "powers": lambda n, rng: [1 << k for k in rng.integers(0, 64, n).tolist()],
    "one key": lambda n, rng: [2**63] * n,
    "one far away": lambda n, rng: [*rng.integers(0, n, n - 1).tolist(), LAST_KEY],
}


@pytest.mark.parametrize("distribution", list(DISTRIBUTIONS))
@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 700])
def test_find_whatever_the_keys_are(distribution: str, n: int) -> None:
    """Directories of one bit up to six, with buckets that are empty and buckets that hold it all."""
    rng = np.random.default_rng(n)
    keys = DISTRIBUTIONS[distribution](n, rng)
    run = reference.consolidated([(k, i % 3, i % 2, 1) for i, k in enumerate(keys)])
    near = {k + d for k in keys[:40] for d in (-1, 0, 1)} | {0, 2**63, LAST_KEY}
    wanted = sorted((k, c) for k in near if 0 <= k <= LAST_KEY for c in (0, 1, 2, 3))
    check_found(run, wanted)


@pytest.mark.parametrize(("bits", "part"), [(1, 0), (1, 1), (3, 5), (6, 63), (10, 1023)])
def test_find_in_a_part(bits: int, part: int) -> None:
    """A part of a run has keys that share their leading bits; its directory divides by the next ones."""
    rng = np.random.default_rng(part)
    width = 64 - bits
    first, last = part << width, ((part + 1) << width) - 1
    keys = [
        first,
        last,
        *(first + (k >> bits) for k in rng.integers(0, LAST_KEY, 300, dtype=np.uint64).tolist()),
    ]
    run = reference.consolidated([(k, 0, 0, 1) for k in keys])
    wanted = sorted({(k, c) for k in [*keys[:50], first + 1, last - 1] for c in (0, 1)})
    check_found(run, wanted, first, bits)


def test_reads_do_not_grow_with_the_run() -> None:
    """The point of a directory: a value costs about as many reads in a run sixteen times as long."""
    rng = np.random.default_rng(3)
    per_value = []
    for n in (4_000, 64_000):
        keys = np.unique(rng.integers(0, LAST_KEY, n, dtype=np.uint64))
        nothing = np.zeros(len(keys), np.uint32)
        starts, shift = runs.directory(keys, 0, 0)
        at, ends, reads = runs.find(keys, nothing, starts, 0, shift, keys, nothing)
        assert at.tolist() == list(range(len(keys)))
        assert (ends == at + 1).all()
        per_value.append(reads / len(keys))
    assert max(per_value) < 8
    assert abs(per_value[0] - per_value[1]) < 1


@given(st.lists(KEYS, max_size=200), st.integers(0, 8), st.data())
def test_directory(keys: list[int], bits: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, (1 << bits) - 1))
    first = part << (64 - bits)
    keys = sorted(first + (k >> bits) for k in keys)
    starts, shift = runs.directory(np.array(keys, np.uint64), first, bits)
    assert starts.dtype == np.uint32
    n_buckets = len(starts) - 1
    assert n_buckets == 1 << (64 - bits - shift), "all of the part's range is divided"
    assert (starts[0], starts[-1]) == (0, len(keys))
    found = [keys[a:b] for a, b in pairwise(starts.tolist())]
    assert found == reference.buckets(keys, first, shift, n_buckets)
