"""Rows with <, =, > and NULL equal the plain-Python reference, numbers of different types among them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.rows.kernels.encode import float_codes, int_codes
from holdfast.denial.kernels import row_outcomes as kernel
from reference import row_outcomes as reference


class Numbers(NamedTuple):
    """A type of numbers: what its codes stand for, and the digits behind the point."""

    kind: kernel.Numbers
    scale: int

    def code(self, value: Any) -> int:
        if self.kind == "float":
            return int(float_codes(np.array([value]))[0])
        if self.kind == "unsigned":
            return int(value)
        return int(int_codes(np.array([int(value * 10**self.scale)]))[0])

    def words(self, codes: list[int], wide: bool) -> kernel.Words:
        array = np.array(codes, dtype=np.uint64)
        return kernel.wide_words(array, self.kind, self.scale) if wide else kernel.narrow_words(array)


FLOATS = [
    *(0.0, -0.0, 0.1, 0.5, -0.5, 1.0, 1.5, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 2.0**64, 2.0**65),
    *(
        -(2.0**64),
        5e-324,
        -5e-324,
        1e-18,
        5e-19,
        1e-19,
        1.5e-18,
        1e300,
        1e18,
        1e-300,
        2.2250738585072014e-308,
    ),
    *(math.inf, -math.inf, math.nan, float(2**64 - 2048), float(2**64 - 4096), 9007199254740993.0),
]
INTEGERS = [0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63 - 1024, 10**18, 3]
UNSIGNED = [0, 1, 2**53 + 1, 2**63, 2**63 + 1, 2**64 - 1, 2**64 - 2048, 3]


def _near(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[float]:
    """The float of a number, or one next to it."""
    steps = st.sampled_from([0.0, math.inf, -math.inf])
    return st.tuples(numbers, steps).map(lambda n: math.nextafter(float(n[0]), n[1]) if n[1] else float(n[0]))


def decimals(scale: int) -> st.SearchStrategy[Decimal]:
    largest = 10**18 - 1
    unscaled = st.sampled_from([0, 1, -1, 10**scale, largest, -largest]) | st.integers(-largest, largest)
    return unscaled.map(lambda n: Decimal(n).scaleb(-scale))


SIGNED_INTEGERS = st.sampled_from(INTEGERS) | st.integers(-(2**63), 2**63 - 1) | st.integers(-4, 4)
UNSIGNED_INTEGERS = st.sampled_from(UNSIGNED) | st.integers(0, 2**64 - 1) | st.integers(0, 4)
VALUES: dict[Numbers, st.SearchStrategy[Any]] = {
    Numbers("signed", 0): SIGNED_INTEGERS,
    Numbers("unsigned", 0): UNSIGNED_INTEGERS,
    Numbers("signed", 2): decimals(2) | st.integers(-4, 4).map(Decimal),
    Numbers("signed", 7): decimals(7) | st.integers(-4, 4).map(Decimal),
    Numbers("signed", 18): decimals(18),
    Numbers("float", 0): st.sampled_from(FLOATS)
    | st.floats()
    | _near(SIGNED_INTEGERS | UNSIGNED_INTEGERS)
    | _near(st.sampled_from([0, 2, 7, 18]).flatmap(decimals)),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[Numbers], list[list[Any]]]:
    """Types, and rows with few different values: ties are common, and so is NULL."""
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=2, max_size=4))
    pools = [draw(st.lists(VALUES[t], min_size=1, max_size=4)) for t in types]
    # Values of one column turn up in others, where their type has them.
    rows = draw(
        st.lists(st.tuples(*(st.none() | st.sampled_from(pool) for pool in pools)).map(list), max_size=12)
    )
    return types, rows


def compared(numbers: Numbers, values: list[Any], wide: bool) -> kernel.Compared:
    """A column as a segment has it: a dictionary in the order of the codes."""
    codes = [None if v is None else numbers.code(v) for v in values]
    dictionary = sorted({c for c in codes if c is not None})
    local = [0 if c is None else 1 + dictionary.index(c) for c in codes]
    return kernel.Compared(np.array(local, dtype=np.int32), numbers.words(dictionary, wide))


def check(types: list[Numbers], rows: list[list[Any]]) -> None:
    """All pairs at once, narrow where the types are equal and wide where they are not; and one by one."""
    sides: list[kernel.Compared] = []
    pairs, expected, ordered = [], [], []
    for a in range(len(types)):
        for b in range(len(types)):
            wide = types[a] != types[b]
            pairs.append((len(sides), len(sides) + 1))
            sides += [compared(types[c], [row[c] for row in rows], wide) for c in (a, b)]
            ordered.append((a + b) % 3 > 0)
            expected.append(reference.counts(rows, a, b, ordered[-1]))
            each = kernel.outcomes(sides[-2], sides[-1], ordered[-1])
            if not wide:
                equal = [i for i, r in enumerate(rows) if reference.outcome(r[a], r[b]) == reference.EQUAL]
                for limit in (len(rows), len(equal) // 2):
                    assert kernel.equal_rows(sides[-2], sides[-1], limit).tolist() == equal[:limit]
            assert each.tolist() == [reference.outcome(r[a], r[b], ordered[-1]) for r in rows]
    found = kernel.count_outcomes(sides, np.array(pairs, dtype=np.int64), np.array(ordered, dtype=np.bool_))
    assert found.dtype == np.int64
    assert found.tolist() == expected


@given(columns())
def test_counts(case: tuple[list[Numbers], list[list[Any]]]) -> None:
    check(*case)


@pytest.mark.parametrize("block", [1, 3])
def test_blocks(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(kernel, "_BLOCK", 0)
    monkeypatch.setattr(kernel, "_SMALLEST_BLOCK", block)
    types = [Numbers("signed", 0), Numbers("signed", 0), Numbers("float", 0)]
    rows: list[list[Any]] = [
        [1, 2, 1.0],
        [2, 2, 2.5],
        [None, 2, None],
        [3, None, 2.0],
        [3, 2, 3.5],
        [1, 1, 1.0],
    ]
    check(types, rows)


def test_no_rows_and_no_pairs() -> None:
    column = compared(Numbers("signed", 0), [1, None], wide=False)
    none = np.empty((0, 2), dtype=np.int64)
    assert kernel.count_outcomes([column], none, np.ones(0, dtype=np.bool_)).shape == (0, 4)
    assert kernel.count_outcomes([], none, np.ones(0, dtype=np.bool_)).shape == (0, 4)
    empty = compared(Numbers("signed", 0), [], wide=False)
    pair = np.array([[0, 0]])
    assert kernel.count_outcomes([empty], pair, np.ones(1, dtype=np.bool_)).tolist() == [[0, 0, 0, 0]]


def test_columns_without_a_value() -> None:
    nothing = compared(Numbers("signed", 0), [None, None], wide=False)
    pair = np.array([[0, 0]])
    assert kernel.count_outcomes([nothing], pair, np.ones(1, dtype=np.bool_)).tolist() == [[0, 0, 0, 2]]
    assert kernel.outcomes(nothing, nothing, True).tolist() == [reference.NULL] * 2


NUMBERS = st.sampled_from(list(VALUES)).flatmap(lambda t: st.tuples(st.just(t), VALUES[t]))


@given(NUMBERS, NUMBERS)
@example((Numbers("signed", 0), 2**53 + 1), (Numbers("float", 0), 2.0**53))
@example((Numbers("signed", 0), 2**63 - 1), (Numbers("float", 0), 2.0**63))
@example((Numbers("unsigned", 0), 2**64 - 1), (Numbers("float", 0), 2.0**64))
@example((Numbers("unsigned", 0), 2**64 - 1), (Numbers("float", 0), math.inf))
@example((Numbers("signed", 2), Decimal("0.10")), (Numbers("float", 0), 0.1))
@example((Numbers("signed", 2), Decimal("-0.10")), (Numbers("float", 0), -0.1))
@example((Numbers("signed", 2), Decimal("0.50")), (Numbers("float", 0), 0.5))
@example((Numbers("signed", 18), Decimal(1).scaleb(-18)), (Numbers("float", 0), 1e-18))
@example((Numbers("signed", 18), Decimal(0)), (Numbers("float", 0), -5e-324))
@example((Numbers("signed", 0), 0), (Numbers("float", 0), -0.0))
@example((Numbers("signed", 0), 2**63 - 1), (Numbers("float", 0), math.nan))
@example((Numbers("signed", 0), -1), (Numbers("unsigned", 0), 2**64 - 1))
@example((Numbers("signed", 18), Decimal(10**18 - 1).scaleb(-18)), (Numbers("signed", 0), 1))
def test_numbers_of_different_types(left: tuple[Numbers, Any], right: tuple[Numbers, Any]) -> None:
    """Exactly, by value: floats and integers beyond 2**53, decimals that no float is."""
    if left[0].kind == right[0].kind == "float":
        return  # compared by their codes
    check([left[0], right[0]], [[left[1], right[1]]])


@pytest.mark.parametrize("scale", [-1, 19])
def test_scales_that_do_not_fit(scale: int) -> None:
    with pytest.raises(ValueError, match="0 to 18 do"):
        kernel.wide_words(np.empty(0, np.uint64), "signed", scale)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=8))
def test_live_range(rows: list[tuple[int, bool]]) -> None:
    codes = np.array([c for c, _ in rows], dtype=np.int32)
    live = np.array([alive for _, alive in rows], dtype=np.bool_)
    seen = [c for c, alive in rows if alive and c]
    expected = (min(seen), max(seen)) if seen else (4, 0)
    assert kernel.live_range(codes, live, 3) == expected


def test_warm_up() -> None:
    kernel.warm_up()
