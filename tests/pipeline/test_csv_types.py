"""The type rule for texts: a column is a number or a date only if every text survives the round trip."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.sources.type_rule import best_type, candidates, decode, encode, first_unfit, spelling_of
from holdfast.core.words.schema import Type


def column(*texts: str | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def guess(*texts: str | None) -> str:
    sample = column(*texts)
    return str(next(candidates(sample, spelling_of(sample))))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-2", "0", None], "int"),
        (["9223372036854775807", "-9223372036854775808"], "int"),
        (["9223372036854775808"], "text"),
        (["007", "7"], "text"),
        (["+7"], "text"),
        (["-0"], "text"),
        (["0x1F"], "text"),
        ([" 7"], "text"),
        (["1_000"], "text"),
        (["1,000"], "text"),
        (["17954.55", "33078.90", "-0.05", "0.00"], "decimal(18,2)"),
        (["1.0", "2.0"], "decimal(18,1)"),
        (["0.0000001", "0.1234567"], "decimal(18,7)"),
        (["1234567890123456.78"], "decimal(18,2)"),
        (["0.123456789012345678"], "decimal(18,18)"),
        (["-0.00", "1.00"], "text"),
        (["01.50"], "text"),
        ([".50"], "text"),
        (["5."], "text"),
        (["1.50", "1.5"], "text"),  # two texts of one number must not meet
        (["1.50", "2.75", "3"], "decimal(18,2)"),  # whole numbers without their zeros
        (["3", None, "1.50", "0"], "decimal(18,2)"),
        (["1.50", "2.00", "3"], "text"),
        (["1.50", "-0"], "text"),
        (["1.50", "2.755", "3"], "text"),
        (["1.50", "12345678901234567"], "text"),
        (["1.5", "2.25"], "float"),
        (["1.0", "2.25"], "float"),
        (["1", "2.25"], "float"),
        (["1", "1.0", "2.25"], "text"),
        (["-0", "0", "1.5"], "text"),
        (["-0.0", "0.0", "1.25"], "text"),
        (["1e-07", "2.5", "1e+16", "1.0"], "float"),
        (["1e-7", "2.5", "3"], "float"),
        (["1e-7", "1e-07", "3"], "text"),
        (["10000000000.0", "2.25"], "float"),
        (["10000000000", "2.25"], "float"),
        (["999999999999999", "1e+15", "2.25"], "float"),
        (["1e+10", "2.25", "3"], "text"),
        (["nan", "inf", "-inf", "1.25", "3.0"], "float"),
        (["NaN", "1.25"], "text"),
        (["2024-02-29", "0001-01-01", "9999-12-31"], "date"),
        (["2023-02-29"], "text"),
        (["2024-2-9"], "text"),
        (["0000-01-01"], "text"),
        (["29.02.2024"], "text"),
        (["2024-02-29 13:00:01", "1969-12-31 23:59:59"], "timestamp[us]"),
        (["2024-02-29T13:00:01"], "timestamp[us]"),
        (["2024-02-29T13:00:01.5", "2024-02-29T13:00:01.0"], "timestamp[us]"),
        (["2024-02-29 13:00:01.123456"], "timestamp[us]"),
        (["2024-02-29 13:00:01.123", "2024-02-29 13:00:01.12"], "text"),
        (["2024-02-29 13:00:01", "2024-02-29T13:00:01"], "text"),
        (["2024-02-29 13:00:01", "2024-02-29 13:00:01.5"], "text"),
        (["2024-02-29 13:00"], "text"),
        (["2024-02-29 24:00:00"], "text"),
        (["2024-02-29T13:00:01Z"], "timestamp[us,utc]"),
        (["2024-02-29 13:00:01.25Z", None], "timestamp[us,utc]"),
        (["2024-02-29T13:00:01Z", "2024-02-29T13:00:01"], "text"),
        (["2024-02-29T13:00:01+00:00"], "text"),
        (["2024-02-29 13:00:01.1234567"], "text"),
        (["2024-02-29", "2024-02-29 13:00:01"], "text"),
        (["true", "false"], "text"),
        (["a", "1"], "text"),
        (["", "1"], "text"),  # a quoted empty field is a text, not NULL
    ],
)
def test_first_type_that_all_texts_survive(texts: list[str | None], expected: str) -> None:
    assert guess(*texts) == expected


@given(
    st.one_of(
        st.lists(st.integers(-(2**63), 2**63 - 1).map(str), min_size=1),
        st.integers(1, 6).flatmap(
            lambda s: st.lists(
                st.integers(-(10**15), 10**15).map(lambda n: f"{Decimal(n).scaleb(-s):.{s}f}"), min_size=1
            )
        ),
        st.lists(
            st.integers(-(10**4), 10**4).map(lambda n: f"{Decimal(n) / 100:.2f}".removesuffix(".00")),
            min_size=1,
        ),
        st.lists(st.floats().map(repr), min_size=1),
        st.lists(st.floats().map(lambda f: pa.array([f]).cast(pa.string())[0].as_py()), min_size=1),
        st.lists(st.floats().map(lambda f: f"{f:.0f}" if f.is_integer() else repr(f)), min_size=1),
        st.lists(st.dates().map(str), min_size=1),
        st.lists(st.datetimes().map(lambda d: d.isoformat(timespec="microseconds")), min_size=1),
        st.lists(st.datetimes().map(lambda d: d.isoformat(" ", timespec="milliseconds")), min_size=1),
        st.lists(st.datetimes().map(lambda d: d.isoformat(timespec="milliseconds") + "Z"), min_size=1),
        st.lists(st.text(alphabet="0123456789.-+eE", min_size=1), min_size=1),
        st.lists(st.none() | st.text(), min_size=1),
    )
)
@example(["1e+16", "1.0"])
@example(["-0.0", "1.25"])
@example(["5e-324", "1.0"])
def test_decoding_to_text_gives_back_the_files_text(texts: list[str | None]) -> None:
    """The law: encode(decode(x)) == x, for every type that the rule lets through."""
    sample = column(*texts)
    spelling = spelling_of(sample)
    for t in candidates(sample, spelling):
        values = decode(sample, t, spelling or "point")
        assert values is not None
        if values.null_count < len(values):
            assert encode(values, t, spelling).to_pylist() == texts
            different = len({x for x in texts if x is not None})
            assert len(values.drop_null().unique()) == different


@given(st.lists(st.floats(allow_nan=False).filter(lambda f: math.copysign(1, f) > 0 or f != 0), min_size=1))
def test_floats_written_by_python_are_numbers(values: list[float]) -> None:
    sample = column(*map(repr, values))
    assert "float" in map(str, candidates(sample, None))
    assert decode(sample, Type("float"), "point").to_pylist() == values


@pytest.mark.parametrize(
    ("text", "declared", "value"),
    [
        ("3", "float", 3.0),
        ("3.50", "float", 3.5),
        ("1E3", "float", 1000.0),
        ("0.1", "float", 0.1),
        ("-0.0", "float", -0.0),
        ("0.10000000000000001", "float", 0.1),  # C's %.17g
        ("9007199254740993", "float", None),  # no float is that number
        ("0.1000000000000000055", "float", None),
        ("1e999", "float", None),
        ("007", "float", None),
        ("+3", "float", None),
        ("x", "float", None),
        ("3", "int", 3),
        ("3.0", "int", None),
        ("03", "int", None),
        ("18446744073709551615", "uint", 2**64 - 1),
        ("-1", "uint", None),
        ("3.50", "decimal(5,2)", Decimal("3.50")),
        ("3.5", "decimal(5,2)", Decimal("3.50")),
        ("3", "decimal(5,2)", Decimal("3.00")),
        ("3.5000", "decimal(5,2)", Decimal("3.50")),
        ("-0.0", "decimal(5,2)", Decimal("0.00")),
        ("3.505", "decimal(5,2)", None),
        ("03.5", "decimal(5,2)", None),
        ("3.", "decimal(5,2)", None),
        (".5", "decimal(2,2)", None),
        ("0.5", "decimal(2,2)", Decimal("0.50")),
        ("1", "decimal(2,2)", None),
        ("3.5", "decimal(5,0)", None),
        ("12345678901234567", "decimal(18,2)", None),
        ("1234.50", "decimal(5,2)", None),
        ("12345678901234567890", "decimal(20,0)", Decimal(12345678901234567890)),
        ("true", "bool", True),
        ("True", "bool", None),
        ("2024-02-29", "date", dt.date(2024, 2, 29)),
        ("12:30:00", "time", dt.time(12, 30)),
        ("12:30:00.25", "time[ms]", dt.time(12, 30, 0, 250_000)),
        ("12:30", "time", None),
        ("2024-02-29 12:30:00", "timestamp", dt.datetime(2024, 2, 29, 12, 30)),
        ("2024-02-29T12:30:00.5", "timestamp", dt.datetime(2024, 2, 29, 12, 30, 0, 500_000)),
        ("2024-02-29T12:30:00", "timestamp[s]", dt.datetime(2024, 2, 29, 12, 30)),
        ("2024-02-29T12:30:00.5", "timestamp[s]", None),
        ("2024-02-29T12:30:00.000", "timestamp[s]", dt.datetime(2024, 2, 29, 12, 30)),
        ("2024-02-29T12:30:00.500000", "timestamp[ms]", dt.datetime(2024, 2, 29, 12, 30, 0, 500_000)),
        ("2024-02-29T12:30:00.0005", "timestamp[ms]", None),
        ("2024-02-29 12:30", "timestamp", None),
        ("2024-02-29", "timestamp", None),
        ("2024-02-29T12:30:00Z", "timestamp", None),
        ("2024-02-29T12:30:00Z", "timestamp[us,utc]", dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)),
        ("2024-02-29T12:30:00", "timestamp[us,utc]", None),
        ("007", "text", "007"),
        ("é", "binary", "é".encode()),
    ],
)
def test_declared_types(text: str, declared: str, value: object) -> None:
    values = decode(column(text, None), Type.parse(declared))
    if value is None:
        assert values is None
    else:
        assert values is not None
        assert values.to_pylist() == [value, None]


@given(st.lists(st.sampled_from(["1", "2", "33", None]), max_size=30), st.integers(0, 30), st.integers(0, 3))
def test_first_unfit_is_the_first(texts: list[str | None], at: int, more: int) -> None:
    at = min(at, len(texts))
    sample = column(*texts[:at], "x", *texts[at:], *["y"] * more)
    assert first_unfit(sample, lambda part: decode(part, Type("int")) is not None) == at


def test_all_null_survives_everything() -> None:
    found = list(map(str, candidates(column(None, None), None)))
    assert found[0] == "int"
    assert found[-1] == "text"
    assert {"decimal(18,2)", "float", "date", "timestamp[us]"} <= set(found)


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ([], "text"),
        ([["text"]], "text"),
        ([["int", "float", "text"], ["float", "text"]], "float"),
        ([["decimal(18,2)", "text"], ["decimal(18,1)", "text"]], "text"),
    ],
)
def test_best_type(lists: list[list[str]], expected: str) -> None:
    assert best_type(lists) == expected
