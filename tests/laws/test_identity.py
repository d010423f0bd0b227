"""Identities of columns: equal iff the values are equal by definition, whatever the types and the tables."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.core.rows import codes
from holdfast.core.rows.kernels import encode
from holdfast.core.sources import type_rule as csv_texts
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.words.column_facts import domain
from holdfast.core.words.schema import Type
from holdfast.inclusions.identity import codes_of, identities
from reference.identity import DIGITS, KEY, Day, Point, Value, identity, same

EXACT = Context(prec=90)
UNITS = ["s", "ms", "us", "ns"]
INT, UINT, FLOAT, BOOL, DATE, TEXT, BINARY = map(
    Type, ("int", "uint", "float", "bool", "date", "text", "binary")
)


@st.composite
def decimal_types(draw: st.DrawFn) -> Type:
    precision = draw(st.sampled_from([1, 9, 15, 16, 18, 19, 38, 39, 76]) | st.integers(1, 76))
    return Type("decimal", precision, draw(st.integers(0, precision)))


NUMBERS = st.sampled_from([INT, UINT, FLOAT]) | decimal_types()
CLOCKS = st.sampled_from(
    [
        *(Type("time", unit=u) for u in UNITS),
        *(Type("timestamp", unit=u, utc=utc) for u in UNITS for utc in (False, True)),
    ]
)
TYPES = NUMBERS | CLOCKS | st.sampled_from([BOOL, DATE, TEXT, BINARY])

# What the values of all columns are near to. Integers and fractions that one type has and another has not.
EDGES = [
    *(Fraction(n) for n in (0, 1, 2, 7, 10, 100, 2**53, 2**53 + 1, 10**15, 10**18, 10**19, 10**22, 10**23)),
    *(Fraction(2) ** n + d for n in (31, 52, 62, 63, 64, 65, 100, 127, 200, 252) for d in (-1, 0, 1)),
    *(Fraction(0.1), Fraction(0.1 + 0.2), Fraction(1, 10), Fraction(3, 10), Fraction(1, 3), Fraction(5e-324)),
    *(Fraction(m, 10**s) for s in (1, 2, 9, 18, 19, 30, 38, 76) for m in (1, 5, 25, 10**15 - 1, 10**15 + 1)),
    *(Fraction(10**15) + Fraction(1, 2), Fraction(999999999999999, 10), Fraction(9999999999999999, 10)),
]
NEAR = st.one_of(
    st.sampled_from(EDGES),
    st.builds(Fraction, st.integers(-(10**6), 10**6), st.sampled_from([1, 10, 100, 10**6])),
    st.builds(Fraction, st.integers(-(10**17), 10**17), st.integers(0, 40).map(lambda s: 10**s)),
    st.integers(-(2**64), 2**64).map(Fraction),
    st.floats(allow_nan=False, allow_infinity=False).map(Fraction),
)
SIGNED = st.builds(lambda near, sign: near * sign, NEAR, st.sampled_from([1, 1, -1]))
ODD_FLOATS = [math.nan, math.inf, -math.inf, -0.0, 1.7976931348623157e308, 5e-324]
TEXTS = ["", "a", "A", "1", "1.0", "-0", "\x00", "é", "日本", "x" * 40]


def arrow_of(values: list[Any], type_: Type) -> pa.Array:
    """The column of some reference values."""
    if type_.family in ("time", "timestamp", "date"):
        counts = [v.number if isinstance(v, Day) else v.count for v in values]
        narrow = type_.family == "date" or (type_.family == "time" and type_.unit in ("s", "ms"))
        return pa.array(counts, pa.int32() if narrow else pa.int64()).cast(arrow_type(type_))
    return pa.array(values, arrow_type(type_))


def fitted(near: Fraction, type_: Type) -> Value | None:
    """The value of a type that is nearest to a number: rounded down, None if it is too large."""
    if type_.family == "float":
        try:
            return float(near)
        except OverflowError:
            return None
    low, high = {
        "int": (-(2**63), 2**63),
        "uint": (0, 2**64),
        "decimal": (1 - 10**type_.precision, 10**type_.precision),
    }[type_.family]
    n = math.floor(near * 10**type_.scale)
    if not low <= n < high:
        return None
    return Decimal(n).scaleb(-type_.scale, context=EXACT) if type_.family == "decimal" else n


def clock(n: int, type_: Type) -> Point:
    if type_.family == "time":
        return Point("time", n % (86400 * 10 ** DIGITS[type_.unit]), type_.unit)
    return Point("instant" if type_.utc else "timestamp", n, type_.unit)


COUNTS = st.one_of(
    st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]),
    st.builds(lambda n, z: n * 10**z, st.integers(-9, 9), st.sampled_from([0, 3, 6, 9, 12, 15, 18])),
    st.integers(-(2**63), 2**63 - 1),
)


def values_of(type_: Type) -> st.SearchStrategy[Value]:
    """Values of a type, near to those of the others."""
    if domain(type_, False) == "number":
        near = SIGNED.map(lambda n: fitted(n, type_)).filter(lambda v: v is not None)
        return near | st.sampled_from(ODD_FLOATS) if type_ == FLOAT else near
    if type_.family in ("time", "timestamp"):
        return COUNTS.map(lambda n: clock(n, type_))
    return {
        "bool": st.booleans(),
        "date": (st.sampled_from([0, 1, -(2**31), 2**31 - 1]) | st.integers(-(10**6), 10**6)).map(Day),
        "text": st.sampled_from(TEXTS) | st.text(max_size=40),
        "binary": st.sampled_from([t.encode() for t in TEXTS]) | st.binary(max_size=70),
    }[type_.family]


@st.composite
def columns(draw: st.DrawFn, types: st.SearchStrategy[Type] = TYPES) -> tuple[Type, list[Any]]:
    type_ = draw(types)
    return type_, draw(st.lists(values_of(type_), min_size=1, max_size=12))


def encoded(values: list[Any], type_: Type) -> codes.EncodedColumn:
    column, rejected = codes.encode_column(arrow_of(values, type_), type_, KEY)
    assert rejected is None
    return column


def identities_of(values: list[Any], type_: Type, as_text: bool = False) -> list[tuple[int, int]]:
    """The identities of the rows of a column."""
    column = encoded(values, type_)
    keys, checks = identities(column.dictionary, column.texts, type_, as_text, KEY)
    assert (keys.dtype, checks.dtype) == (np.uint64, np.uint32)
    at = column.codes - 1
    return list(zip(keys[at].tolist(), checks[at].tolist(), strict=True))


@given(columns())
@example((FLOAT, ODD_FLOATS))
@example((Type("decimal", 76, 0), [Decimal(10**76 - 1), Decimal(2**64), Decimal(2**63), Decimal(-(2**63))]))
@example((Type("decimal", 38, 38), [Decimal("1E-38"), Decimal("0E-38"), Decimal("-0.5")]))
@example((Type("timestamp", unit="s"), [Point("timestamp", n, "s") for n in (-(2**63), 2**63 - 1, 0)]))
@example((Type("timestamp", unit="ns"), [Point("timestamp", n, "ns") for n in (-(2**63), 2**63 - 1, 10**9)]))
def test_as_defined(column: tuple[Type, list[Any]]) -> None:
    type_, values = column
    assert identities_of(values, type_) == [identity(v) for v in values]


@st.composite
def comparable_columns(draw: st.DrawFn) -> list[tuple[Type, list[Any]]]:
    """Two columns of one domain, of nearly the same values."""
    first = draw(TYPES)
    if domain(first, False) == "number":
        second = draw(NUMBERS)
        near = draw(st.lists(SIGNED, min_size=1, max_size=6))
        pools = [[v for n in near if (v := fitted(n, t)) is not None] for t in (first, second)]
    elif first.family in ("time", "timestamp"):
        second = draw(CLOCKS.filter(lambda t: domain(t, False) == domain(first, False)))
        seconds = draw(st.lists(COUNTS, min_size=1, max_size=6))
        pools = []
        for t in (first, second):
            counts = [n * 10 ** DIGITS[t.unit] for n in seconds] + seconds
            pools.append([clock(n, t) for n in counts if -(2**63) <= n < 2**63])
    else:
        second = first
        pools = [draw(st.lists(values_of(first), min_size=1, max_size=6)) for _ in range(2)]
    return [
        (t, pool + draw(st.lists(values_of(t), min_size=1, max_size=3)))
        for t, pool in zip((first, second), pools, strict=True)
    ]


@given(comparable_columns())
@example(
    [(FLOAT, [0.1, 0.1 + 0.2, -0.0, math.nan]), (Type("decimal", 18, 17), [Decimal("0.1"), Decimal("0.3")])]
)
@example([(FLOAT, [2.0**63, 2.0**64, -(2.0**63), 1e22]), (UINT, [2**63, 0])])
@example(
    [(FLOAT, [1e22, 1e23]), (Type("decimal", 38, 2), [Decimal(10**22), Decimal(10**23), Decimal(int(1e23))])]
)
@example([(FLOAT, [1e15 + 0.5, 99999999999999.9]), (Type("decimal", 18, 1), [Decimal("99999999999999.9")])])
@example([(FLOAT, [1.5e-25]), (Type("decimal", 38, 30), [Decimal("1.5E-25")])])
def test_equal_iff_the_values_are(pair: list[tuple[Type, list[Any]]]) -> None:
    (left_type, left), (right_type, right) = pair
    mine, theirs = identities_of(left, left_type), identities_of(right, right_type)
    met = 0
    for a, x in zip(left, mine, strict=True):
        for b, y in zip(right, theirs, strict=True):
            assert (x == y) == same(a, b), (a, b)
            met += x == y
    event(f"some are equal: {met > 0}")


@given(columns(), columns())
def test_domains_never_meet(left: tuple[Type, list[Any]], right: tuple[Type, list[Any]]) -> None:
    if domain(left[0], False) != domain(right[0], False):
        assert not {*identities_of(left[1], left[0])} & {*identities_of(right[1], right[0])}


def test_one_in_every_domain() -> None:
    """The word 1, or the text of it, everywhere: eight domains, eight identities."""
    ones: list[tuple[Type, Any]] = [(INT, 1), (BOOL, True), (DATE, Day(1)), (TEXT, "1"), (BINARY, b"1")]
    ones += [
        (Type(f, unit="s", utc=utc), Point(d, 1, "s"))
        for f, d, utc in (
            ("time", "time", False),
            ("timestamp", "timestamp", False),
            ("timestamp", "instant", True),
        )
    ]
    assert len({domain(type_, False) for type_, _ in ones}) == 8
    assert len({identities_of([value], type_)[0] for type_, value in ones}) == 8


@given(columns())
def test_back_to_the_codes(column: tuple[Type, list[Any]]) -> None:
    type_, values = column
    dictionary, texts = (found := encoded(values, type_)).dictionary, found.texts
    back = codes_of(*identities(dictionary, texts, type_, False, KEY), type_, False)
    if back is None:
        assert type_.hashed
        assert type_.family == "decimal"
    else:
        assert back[1].all()
        assert np.array_equal(back[0], dictionary)


@given(columns(NUMBERS), NUMBERS.filter(lambda t: not t.hashed))
@example((FLOAT, [*ODD_FLOATS, 0.5, 0.1, 2.0**63, 2.0**64, 1e-30, 0.1 + 0.2]), Type("decimal", 18, 2))
@example((UINT, [2**63, 2**63 - 1, 2**64 - 1, 0, 2**53 + 1]), FLOAT)
@example((UINT, [2**63, 2**63 - 1]), INT)
@example((INT, [-1, 0, 1, 2**63 - 1]), UINT)
@example((INT, [9, 10, -9, -10, 0, 92, 93]), Type("decimal", 18, 18))
@example((Type("decimal", 76, 30), [Decimal("1.5E-25"), Decimal("1E-30"), Decimal(2**80)]), FLOAT)
@example((Type("decimal", 76, 0), [Decimal(2**80), Decimal(2**80 + 1), Decimal(10**70)]), FLOAT)
def test_lookups(column: tuple[Type, list[Any]], target: Type) -> None:
    """The code is that of the equal value of the other type, and not possible iff there is none."""
    type_, values = column
    at = [identities_of([v], type_)[0] for v in values]
    keys, checks = np.array([k for k, _ in at], np.uint64), np.array([c for _, c in at], np.uint32)
    answer = codes_of(keys, checks, target, False)
    assert answer is not None
    for value, code, possible in zip(values, *answer, strict=True):
        twin = twin_of(value, target)
        assert possible == (twin is not None and same(twin, value))
        if possible:
            mine = identities(np.array([code]), None, target, False, KEY)
            assert (mine[0][0], mine[1][0]) == identity(value)


def twin_of(value: Any, target: Type) -> Value | None:
    """The only value of a type that might equal a number; decimals up to the end of their codes."""
    if isinstance(value, float) and not math.isfinite(value):
        return value if target == FLOAT else None
    # A float with a fraction stands for the decimal that reads as it, so that is what to look at.
    short = isinstance(value, float) and not value.is_integer()
    exact = Fraction(repr(value)) if short else Fraction(value)
    if target.family != "decimal":
        return fitted(exact, target)
    n = math.floor(exact * 10**target.scale)
    return Decimal(n).scaleb(-target.scale, context=EXACT) if -(2**63) <= n < 2**63 else None


@given(columns(CLOCKS), CLOCKS)
def test_lookups_of_clocks(column: tuple[Type, list[Any]], target: Type) -> None:
    type_, values = column
    at = [identities_of([v], type_)[0] for v in values]
    keys, checks = np.array([k for k, _ in at], np.uint64), np.array([c for _, c in at], np.uint32)
    answer = codes_of(keys, checks, target, False)
    assert answer is not None
    for value, code, possible in zip(values, *answer, strict=True):
        count = value.seconds * 10 ** DIGITS[target.unit]
        fits = count.denominator == 1 and -(2**63) <= count < 2**63
        assert possible == (fits and domain(type_, False) == domain(target, False))
        assert not possible or encode.ints_of_codes(np.array([code]))[0] == count


@given(columns(), st.sampled_from([INT, UINT, FLOAT, BOOL, DATE, TEXT, BINARY, Type("decimal", 9, 2)]))
def test_lookups_elsewhere(column: tuple[Type, list[Any]], target: Type) -> None:
    """No value of another domain is possible."""
    type_, values = column
    if domain(type_, False) != domain(target, False):
        found = encoded(values, type_)
        answer = codes_of(*identities(found.dictionary, found.texts, type_, False, KEY), target, False)
        assert answer is not None
        assert not answer[1].any()


def test_colliding_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Different texts with one code, in different segments: their checks tell them apart."""
    honest = codes.hash_texts
    monkeypatch.setattr(codes, "hash_texts", lambda texts, key: honest(texts, key) & np.uint64(3))
    values = [f"text {i}" for i in range(200)]
    at = [identities_of([v], TEXT)[0] for v in values]
    assert len({key for key, _ in at}) == 4
    assert len(set(at)) == len(values)
    numbers = [identities_of([i], INT, as_text=True)[0] for i in range(200)]
    assert numbers == [identities_of([str(i)], TEXT)[0] for i in range(200)]
    assert len(set(numbers)) == len(numbers)


# As text


WRITTEN: list[tuple[Type, list[Any], list[str]]] = [
    (INT, [-12, 0, 2**63 - 1], ["-12", "0", "9223372036854775807"]),
    (UINT, [2**64 - 1, 7], ["18446744073709551615", "7"]),
    (Type("decimal", 12, 2), [Decimal("1.5"), Decimal("-0.05"), Decimal(0)], ["1.50", "-0.05", "0.00"]),
    (
        Type("decimal", 18, 18),
        [Decimal("1E-18"), Decimal("-0.5")],
        ["0." + "0" * 17 + "1", "-0.5" + "0" * 17],
    ),
    (Type("decimal", 18, 0), [Decimal(-7), Decimal(10**17)], ["-7", "1" + "0" * 17]),
    (Type("decimal", 38, 9), [Decimal("1E-9"), Decimal("-1.5")], ["0.000000001", "-1.500000000"]),
    (Type("decimal", 38, 9), [Decimal("-1E-9"), Decimal(0)], ["-0.000000001", "0.000000000"]),
    (Type("decimal", 76, 76), [Decimal("-1E-76")], ["-0." + "0" * 75 + "1"]),
    (Type("decimal", 76, 0), [Decimal(10**75)], ["1" + "0" * 75]),
    (
        FLOAT,
        [0.1, 2.0, -0.0, 1e15, 1e16, 1e22],
        ["0.1", "2.0", "0.0", "1000000000000000.0", "1e+16", "1e+22"],
    ),
    (FLOAT, [1e-4, 1e-5, 1.5e-7, 123456789012.5], ["0.0001", "1e-05", "1.5e-07", "123456789012.5"]),
    (FLOAT, [math.nan, math.inf, -math.inf, 5e-324], ["nan", "inf", "-inf", "5e-324"]),
    (BOOL, [True, False], ["true", "false"]),
    (DATE, [Day(0), Day(19782)], ["1970-01-01", "2024-02-29"]),
    (Type("time", unit="us"), [Point("time", 3_600_000_000, "us")], ["01:00:00"]),
    (
        Type("time", unit="ms"),
        [Point("time", 1500, "ms"), Point("time", 0, "ms")],
        ["00:00:01.500", "00:00:00"],
    ),
    (Type("timestamp", unit="s"), [Point("timestamp", -1, "s")], ["1969-12-31 23:59:59"]),
    (
        Type("timestamp", unit="ns", utc=True),
        [Point("instant", n, "ns") for n in (0, -1, 10**6, 10**3, 10**9)],
        [
            "1970-01-01 00:00:00Z",
            "1969-12-31 23:59:59.999999999Z",
            "1970-01-01 00:00:00.001Z",
            "1970-01-01 00:00:00.000001Z",
            "1970-01-01 00:00:01Z",
        ],
    ),
    (TEXT, ["", "é"], ["", "é"]),
    (BINARY, [b"", "é".encode()], ["", "é"]),
]


@pytest.mark.parametrize(("type_", "values", "expected"), WRITTEN, ids=lambda x: str(x)[:24])
def test_written(type_: Type, values: list[Any], expected: list[str]) -> None:
    assert domain(type_, True) == "text"
    assert identities_of(values, type_, as_text=True) == [identity(text) for text in expected]


@given(columns(st.just(FLOAT)))
def test_floats_are_written_as_python_does(column: tuple[Type, list[float]]) -> None:
    values = column[1]
    assert identities_of(values, FLOAT, as_text=True) == [identity(repr(v + 0.0)) for v in values]


@given(columns(decimal_types()))
def test_decimals_are_written_plainly(column: tuple[Type, list[Decimal]]) -> None:
    type_, values = column
    written = [format(abs(v) if v == 0 else v, f".{type_.scale}f") for v in values]
    assert identities_of(values, type_, as_text=True) == [identity(text) for text in written]


@given(columns(CLOCKS))
def test_clocks_are_written_alike(column: tuple[Type, list[Point]]) -> None:
    """One point in time has one text, whatever its unit; and different ones have different texts."""
    type_, values = column
    finer = Type(type_.family, unit="ns", utc=type_.utc)
    at = identities_of(values, type_, as_text=True)
    assert len(set(at)) == len({v.seconds for v in values})
    for value, found in zip(values, at, strict=True):
        n = int(value.seconds * 10**9)
        if -(2**63) <= n < 2**63:
            assert identities_of([Point(value.domain, n, "ns")], finer, as_text=True) == [found]


MOMENTS = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31))
CSV: dict[str, st.SearchStrategy[str]] = {
    "int": st.integers(-(2**63), 2**63 - 1).map(str),
    "decimal": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: f"{Decimal(n).scaleb(-3):.3f}"),
    "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "date": st.dates().map(str),
    "seconds": MOMENTS.map(lambda m: str(m.replace(microsecond=0))),
    "milliseconds": MOMENTS.map(lambda m: f"{m.replace(microsecond=0)}.{m.microsecond // 1000 or 1:03d}"),
    "microseconds": MOMENTS.map(lambda m: f"{m.replace(microsecond=0)}.{m.microsecond // 10 * 10 + 1:06d}"),
    "text": st.text(max_size=10),
}


@given(st.sampled_from(sorted(CSV)).flatmap(lambda name: st.lists(CSV[name], min_size=1, max_size=8)))
def test_typed_csv_columns_keep_their_texts(texts: list[str]) -> None:
    """A column of a CSV file in a plain spelling, as text, is what stands in the file, whatever its type."""
    column = pa.chunked_array([pa.array(texts, pa.large_string())])
    spelling = csv_texts.spelling_of(column)
    type_ = next(csv_texts.candidates(column, spelling))
    event(type_.family)
    if type_ == FLOAT and spelling == csv_texts.BARE:
        return  # the other way to spell floats
    values = codes.combined(csv_texts.decode(column, type_, spelling or csv_texts.POINT))
    found, _ = codes.encode_column(values, type_, KEY)
    keys, checks = identities(found.dictionary, found.texts, type_, True, KEY)
    at = found.codes - 1
    assert list(zip(keys[at].tolist(), checks[at].tolist(), strict=True)) == [identity(t) for t in texts]


def test_what_has_no_way_back() -> None:
    keys, checks = np.array([1], np.uint64), np.array([1], np.uint32)
    for type_ in (INT, FLOAT, BOOL, DATE, Type("decimal", 9, 2), Type("timestamp", unit="s")):
        assert codes_of(keys, checks, type_, True) is None
    assert codes_of(keys, checks, Type("decimal", 19, 2), False) is None
    for type_ in (TEXT, BINARY):  # their code is that of their text
        found = encoded(["a"] if type_ == TEXT else [b"a"], type_)
        answer = codes_of(*identities(found.dictionary, found.texts, type_, True, KEY), type_, True)
        assert answer is not None
        assert (answer[0].tolist(), answer[1].tolist()) == (found.dictionary.tolist(), [True])


@pytest.mark.parametrize("as_text", [False, True])
def test_slices_and_nothing(as_text: bool) -> None:
    values: dict[Type, list[Any]] = {
        TEXT: ["a", "bb", "", "ccc"],
        Type("decimal", 38, 9): [Decimal("1E-9"), Decimal(2**80), Decimal(7), Decimal("-1E-8")],
    }
    for type_, some in values.items():
        found = encoded(some, type_)
        keys, checks = identities(found.dictionary, found.texts, type_, as_text, KEY)
        part = identities(found.dictionary[1:3], found.texts.slice(1, 2), type_, as_text, KEY)
        assert (part[0].tolist(), part[1].tolist()) == (keys[1:3].tolist(), checks[1:3].tolist())
        for texts in (None, found.texts.slice(0, 0)):
            none = identities(found.dictionary[:0], texts, type_, as_text, KEY)
            assert (len(none[0]), len(none[1])) == (0, 0)


def test_no_room_for_such_a_scale() -> None:
    with pytest.raises(ValueError, match="more than 255 digits behind the point"):
        identities(np.array([1], np.uint64), None, Type("decimal", 5, 300), False, KEY)
