"""Groups of rows, and how columns vary inside them, equal the plain-Python reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import group_counts as kernel
from holdfast.core.evidence.kernels.group_counts import Groups
from reference import groups as reference

# Numbers are dense in practice, but need not be: a large n_values makes a hash table of cells.
MANY = 1 << 30


@contextmanager
def places(per_row: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "PLACES_PER_ROW", per_row)
        yield


# Hash tables only, whatever fits, tables of all cells only.
PLACES = st.sampled_from([0, 1, 4, 1 << 20])
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(0, 3)] * width), max_size=24)
)


def plain(rows: list[tuple[int, ...]]) -> list[tuple[int | None, ...]]:
    return [tuple(v or None for v in row) for row in rows]


def split_all(rows: list[tuple[int, ...]], columns: list[int], nulls_distinct: bool) -> Groups:
    groups = kernel.everything(len(rows))
    for c in columns:
        numbers = np.array([row[c] for row in rows], dtype=np.int32)
        groups = kernel.split(groups, numbers, 3, nulls_distinct)
    return groups


@given(TABLES, st.booleans(), PLACES, st.data())
def test_split(rows: list[tuple[int, ...]], nulls_distinct: bool, per_row: int, data: st.DataObject) -> None:
    """In any order of the columns: the groups of all of them, numbered by their first rows."""
    width = len(rows[0]) if rows else 0
    columns = data.draw(st.permutations(range(width))) if width else []
    columns = columns[: data.draw(st.integers(0, width))]
    with places(per_row):
        found = split_all(rows, columns, nulls_distinct)
    nulls = "distinct" if nulls_distinct else "equal"
    expected = reference.stripped(plain(rows), columns, nulls)
    assert list(zip(found.rows.tolist(), found.group.tolist(), strict=True)) == expected
    assert found.n_groups == len({g for _, g in expected})
    sizes = Counter(g for _, g in expected)
    assert kernel.group_sizes(found).tolist() == [sizes[g] for g in range(found.n_groups)]


@given(TABLES, st.booleans(), PLACES, st.data())
def test_spread(rows: list[tuple[int, ...]], nulls_distinct: bool, per_row: int, data: st.DataObject) -> None:
    if not rows:
        return
    width = len(rows[0])
    lhs = data.draw(st.lists(st.integers(0, width - 1), unique=True))
    rhs = data.draw(st.integers(0, width - 1))
    n_values = data.draw(st.sampled_from([3, MANY]))
    numbers = np.array([row[rhs] for row in rows], dtype=np.int32)
    nulls = "distinct" if nulls_distinct else "equal"
    with places(per_row if n_values == 3 else min(per_row, 4)):
        groups = split_all(rows, lhs, nulls_distinct)
        found = kernel.spread(groups, numbers, n_values, nulls_distinct)
    expected = reference.measures(plain(rows), lhs, rhs, nulls)
    alone = len(rows) - len(groups.rows)
    assert alone + groups.n_groups == expected["n_groups"]
    assert found.violating_pairs == expected["violations"]
    assert alone + found.kept_rows == expected["kept_rows"]
    assert found.violating_rows == expected["violating_rows"]
    assert alone + found.dependence == pytest.approx(float(expected["dependence"]))
    if not expected["violations"]:
        assert alone + found.dependence == len(rows), "exactly, where the dependency holds"
    told = reference.violating_groups(plain(rows), lhs, rhs, nulls)
    sizes, first, varied = kernel.inspect(groups, numbers, nulls_distinct)
    assert sorted(first[varied].tolist()) == sorted(g[0] for *_, g in told)
    assert sizes[varied].sum() == sum(n_rows for _, n_rows, *_ in told)


def test_many_rows() -> None:
    """Larger than any first size of a hash table; dense and hashed cells agree."""
    rng = np.random.default_rng(4)
    n, sizes = 20_000, (7, 900, 15_000)
    columns = [rng.integers(0, k + 1, n).astype(np.int32) for k in sizes]
    for nulls_distinct in (False, True):
        told = []
        for per_row in (0, 4, 1 << 12):
            with places(per_row):
                groups = kernel.everything(n)
                for c in (1, 0):
                    groups = kernel.split(groups, columns[c], sizes[c], nulls_distinct)
                spread = kernel.spread(groups, columns[2], sizes[2], nulls_distinct)
                told.append((groups.rows.tolist(), groups.group.tolist(), spread._replace(dependence=0.0)))
                last = float(spread.dependence)
        assert told[0] == told[1] == told[2]
        rows = list(zip(*(c.tolist() for c in columns), strict=True))
        nulls = "distinct" if nulls_distinct else "equal"
        expected = reference.stripped(plain(rows), (0, 1), nulls)
        assert told[0][0] == [row for row, _ in expected]
        assert told[0][1] == [group for _, group in expected]
        by_group: dict[int, list[int | None]] = {}
        for row, group in expected:
            by_group.setdefault(group, []).append(rows[row][2] or None)
        counts = [reference.value_counts(values, nulls) for values in by_group.values()]
        assert told[0][2].kept_rows == sum(map(max, counts))
        assert told[0][2].violating_pairs == sum(sum(c) ** 2 - sum(k * k for k in c) for c in counts) // 2
        exact = sum(Fraction(sum(k * k for k in c), sum(c)) for c in counts)
        assert last == pytest.approx(float(exact))


@given(st.lists(st.integers(0, 5), max_size=30))
def test_count_numbers(numbers: list[int]) -> None:
    found = kernel.count_numbers(np.array(numbers, dtype=np.int32), 5)
    assert found.tolist() == [numbers.count(v) for v in range(6)]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.data())
def test_renumber(codes: list[int], data: st.DataObject) -> None:
    numbers = [0, *data.draw(st.permutations([5, 7, 9]))]
    positions = data.draw(st.lists(st.integers(0, len(codes) - 1)))
    out = np.empty(len(positions), dtype=np.int32)
    kernel.renumber(
        np.array(numbers, np.int32), np.array(codes, np.int32), np.array(positions, np.int32), out
    )
    assert out.tolist() == [numbers[codes[p]] for p in positions]
