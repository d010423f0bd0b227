"""Identities of numbers equal their plain-Python reference bit for bit, and lead back to the codes."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.rows.kernels import encode
from holdfast.inclusions.kernels import value_identities as kernel
from reference import encode as encode_reference
from reference import identity as reference

WORDS = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
INTS = st.sampled_from([0, 1, -1, 10**18, 2**63 - 1, -(2**63)]) | st.integers(-(2**63), 2**63 - 1)
TAGS = [kernel.NUMBER, kernel.DATE, kernel.TIME, kernel.TIMESTAMP, kernel.INSTANT]
EDGES = [
    *(
        sign * x
        for x in (0.0, 5e-324, 2.2250738585072014e-308, 1e-77, 1e-76, 1e-23, 1e-22)
        for sign in (1, -1)
    ),
    *(0.1, 0.1 + 0.2, 1 / 3, 1.1, 2.5, 1e-8, 123456789012.345, 99999999999999.9, 100000000000000.5),
    *(1e15 + 0.5, 2.0**52 - 0.5, 2.0**53, 2.0**53 + 2, 1e22, 1e23, 1.7976931348623157e308),
    *(sign * 2.0**n for n in (62, 63, 64, 65, 254, 255, 256) for sign in (1, -1)),
    *(math.nextafter(2.0**n, to) for n in (63, 64) for to in (0, math.inf)),
    *(math.inf, -math.inf, math.nan),
]


@st.composite
def decimal_floats(draw: st.DrawFn) -> float:
    """Floats that are decimals of some 15 digits, or their neighbours."""
    m = draw(st.integers(-(10**17), 10**17) | st.integers(-999, 999))
    x = float(Fraction(m, 10 ** draw(st.integers(0, 80))))
    return draw(st.sampled_from([x, math.nextafter(x, 0), math.nextafter(x, math.inf)]))


FLOATS = st.sampled_from(EDGES) | st.floats() | st.floats(-1, 1) | st.floats(-1e15, 1e15) | decimal_floats()


def words(values: list[int]) -> np.ndarray:
    return np.array([v % 2**64 for v in values], dtype=np.uint64)


def pairs(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[int, int]]:
    keys, checks = found
    assert (keys.dtype, checks.dtype) == (np.uint64, np.uint32)
    return list(zip(keys.tolist(), checks.tolist(), strict=True))


def arrays(identities: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    keys, checks = zip(*identities, strict=True) if identities else ((), ())
    return np.array(keys, dtype=np.uint64), np.array(checks, dtype=np.uint32)


@given(st.lists(WORDS, max_size=20))
def test_mixing_is_a_bijection(values: list[int]) -> None:
    array = words(values)
    mixed = kernel.mixed(array)
    assert mixed.tolist() == [encode_reference.mix(v) for v in values]
    assert kernel.unmixed(mixed).tolist() == values
    assert kernel.mixed(kernel.unmixed(array)).tolist() == values


@pytest.mark.parametrize("step", [1, 100, 2**32, 10**15])
def test_keys_are_spread_evenly(step: int) -> None:
    """Numbers in arithmetic progression, as identifiers are: the same share of them in each part."""
    n, parts = 1 << 16, 256
    keys = kernel.mixed(np.arange(n, dtype=np.uint64) * np.uint64(step))
    counts = np.bincount(keys >> np.uint64(56), minlength=parts)
    assert abs(counts - n / parts).max() < 6 * math.sqrt(n / parts)


def test_checks_tell_kinds_apart() -> None:
    tags = [*TAGS, kernel.BIG, kernel.FLOAT, kernel.BOOL]
    assert len({tag >> 8 for tag in tags}) == len(tags)
    assert all(tag & kernel.SCALES == 0 and tag < 1 << 16 for tag in tags)
    hashed = {kernel.OVERSIZE, kernel.TEXT, kernel.BINARY}
    assert {tag & kernel.HASHED for tag in hashed} == hashed
    assert {tag & kernel.OTHER_HASH for tag in hashed} == {0}


@given(st.lists(st.binary(max_size=80), max_size=8), WORDS)
@example([bytes(range(n)) for n in (0, 3, 4, 7, 8, 12, 31, 32, 33, 63, 64, 65, 200)], encode.OTHER_SEED)
def test_bytes_codes_with_a_seed(texts: list[bytes], seed: int) -> None:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    expected = [xxhash.xxh64_intdigest(t, seed) for t in texts]
    assert encode.bytes_codes(offsets, data, seed).tolist() == expected


@st.composite
def with_zeros(draw: st.DrawFn) -> int:
    zeros = draw(st.integers(0, 18))
    largest = (2**63 - 1) // 10**zeros
    return draw(st.integers(-largest, largest)) * 10**zeros


@given(st.lists(INTS | with_zeros(), max_size=20), st.integers(0, 255), st.sampled_from(TAGS))
@example([2**63 - 1, -(2**63), -1, 0, 10**18, -(10**18), 9 * 10**18], 18, kernel.NUMBER)
@example([2**63 - 1, -(2**63), -1, 0, 10**9], 9, kernel.TIMESTAMP)
def test_scaled_identities(values: list[int], scale: int, tag: int) -> None:
    codes = encode.int_codes(np.array(values, dtype=np.int64))
    found = kernel.scaled_identities(codes, scale, tag)
    stripped = [reference.scaled(Fraction(v, 10**scale)) for v in values]
    assert pairs(found) == [(encode_reference.mix(m % 2**64), tag + s) for m, s in stripped]
    back, possible = kernel.scaled_codes(*found, scale, tag)
    assert possible.all()
    assert np.array_equal(back, codes)


@given(st.lists(st.tuples(INTS | with_zeros(), st.integers(0, 90)), max_size=20), st.integers(0, 90))
@example([(2**63 - 1, 0), (-(2**63), 0), (922, 0), (-922, 0), (0, 0), (0, 1), (10, 1)], 16)
@example([(9, 0), (10, 0), (-9, 0), (1, 18), (1, 19)], 18)
@example([(0, 0), (1, 0), (1, 1), (1, 2)], 19)
def test_scaled_codes(numbers: list[tuple[int, int]], scale: int) -> None:
    """Possible is exactly what an integer of 64 bits at this scale has as its identity."""
    given_ = arrays([(encode_reference.mix(m % 2**64), kernel.NUMBER + s) for m, s in numbers])
    codes, possible = kernel.scaled_codes(*given_, scale, kernel.NUMBER)
    for (m, s), code, can in zip(numbers, codes, possible, strict=True):
        at_scale = Fraction(m, 10**s) * 10**scale
        fits = at_scale.denominator == 1 and -(2**63) <= at_scale < 2**63
        assert can == (fits and reference.scaled(Fraction(m, 10**s)) == (m, s))
        if can:
            assert encode.ints_of_codes(np.array([code]))[0] == at_scale


def test_other_kinds_have_no_scaled_code() -> None:
    checks = np.array([*TAGS, kernel.BIG, kernel.FLOAT, kernel.BOOL, *(1 << 30, 2 << 30, 3 << 30)], np.uint32)
    keys = kernel.mixed(words([1] * len(checks)))
    for tag in TAGS:
        _, possible = kernel.scaled_codes(keys, checks, 9, tag)
        assert checks[possible].tolist() == [tag]


@given(st.lists(FLOATS, max_size=20))
@example(EDGES)
def test_float_identities(values: list[float]) -> None:
    codes = encode.float_codes(np.array(values, dtype=np.float64))
    found = kernel.float_identities(codes)
    assert pairs(found) == [reference.identity(v) for v in values]
    back, possible = kernel.codes_of_floats(*found)
    assert possible.all()
    assert np.array_equal(back, codes)


@given(st.integers(1, 10**15 - 1), st.integers(0, 76), st.sampled_from([1, -1]))
@example(10**15 - 1, 76, 1)
@example(5, 76, 1)
@example(10**14, 15, 1)
def test_fifteen_digits_survive(m: int, s: int, sign: int) -> None:
    """A decimal of at most 15 digits has the identity of the float that it reads as, so no two share one."""
    as_float = kernel.float_identities(encode.float_codes(np.array([float(Fraction(sign * m, 10**s))])))
    as_decimal = kernel.scaled_identities(encode.int_codes(np.array([sign * m])), s, kernel.NUMBER)
    assert pairs(as_float) == pairs(as_decimal)


def test_sweep_of_floats() -> None:
    """Decimals of 1 to 17 digits at all magnitudes, and the floats beside them: what chance seldom meets."""
    rng = np.random.default_rng(5)
    values = []
    for digits in (1, 2, 5, 14, 15, 16, 17):
        for exponent in range(-90, 30):
            x = float(Fraction(int(rng.integers(10 ** (digits - 1), 10**digits))) * Fraction(10) ** exponent)
            values += [x, -x, math.nextafter(x, 0), math.nextafter(x, math.inf)]
    values += [math.ldexp(f, e) for e in range(-260, 70) for f in (1.0, 1.0 - 2**-53, 1.0 + 2**-52)]
    codes = encode.float_codes(np.array(values))
    found = kernel.float_identities(codes)
    assert pairs(found) == [reference.identity(v) for v in values]
    back, possible = kernel.codes_of_floats(*found)
    assert possible.all()
    assert np.array_equal(back, codes)


CHECKS = st.sampled_from([kernel.BIG, kernel.FLOAT, kernel.BOOL, kernel.TIME]) | st.integers(
    kernel.NUMBER, kernel.NUMBER + 90
)


@given(st.lists(st.tuples(WORDS | INTS | FLOATS.map(reference.float_bits), CHECKS), max_size=20))
@example([(2**64 - 1, kernel.BIG), (2**63, kernel.BIG), (2**63, kernel.NUMBER), (2**53 + 1, kernel.NUMBER)])
@example([(reference.float_bits(x), kernel.FLOAT) for x in (0.0, -0.0, 0.1, 1e300, math.nan)])
@example([(0x7FF0000000000001, kernel.FLOAT), (0xFFF8000000000000, kernel.FLOAT)])
@example(
    [(0, kernel.NUMBER + 30), (1, kernel.NUMBER + 76), (1, kernel.NUMBER + 77), (10, kernel.NUMBER + 40)]
)
@example([(10**15, kernel.NUMBER + 1), (10**15 - 1, kernel.NUMBER + 1), (-1, kernel.NUMBER + 50)])
def test_codes_of_floats(given_: list[tuple[int, int]]) -> None:
    """Whatever the identity: a possible code has it, and what no float has is not possible."""
    identities = [(encode_reference.mix(word % 2**64), check) for word, check in given_]
    codes, possible = kernel.codes_of_floats(*arrays(identities))
    forward = pairs(kernel.float_identities(codes))
    for (word, check), wanted, found, can in zip(given_, identities, forward, possible, strict=True):
        assert not can or found == wanted
        if check == kernel.FLOAT:
            nearest = encode.floats_of_codes(encode.float_codes(words([word]).view(np.float64)))[0].item()
        elif check == kernel.BIG:
            nearest = float(word % 2**64)
        elif kernel.NUMBER <= check < kernel.BIG:
            signed = word % 2**64 - (2**64 if word % 2**64 >= 2**63 else 0)
            nearest = float(Fraction(signed, 10 ** (check - kernel.NUMBER)))
        else:
            nearest = math.nan
        assert can == (reference.identity(nearest) == wanted)


POWERS = [2**n + d for n in (53, 63, 64, 65, 127, 252) for d in (-1, 0, 1)]
WIDE = st.one_of(
    st.integers(-(10**76) + 1, 10**76 - 1),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.builds(lambda m, z: m * 10**z, st.integers(-(10**20), 10**20), st.integers(0, 56)),
    # Integers that are floats, and those beside them.
    st.builds(lambda f, e: f << e, st.integers(-(2**53), 2**53), st.integers(0, 199)),
    st.builds(lambda f, e: (f << e) + 1, st.integers(-(2**53), 2**53), st.integers(0, 199)),
    st.sampled_from([sign * p for p in POWERS for sign in (1, -1)]),
)


def limbs(values: list[int], width: int) -> np.ndarray:
    data = b"".join(v.to_bytes(8 * width, "little", signed=True) for v in values)
    return np.frombuffer(data, dtype=np.uint64).reshape(-1, width)


@given(st.lists(WIDE, max_size=12), st.integers(0, 76))
@example([10**76 - 1, -(10**76) + 1, 10**75, 0, 1, -1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64], 0)
@example([10**76 - 1, 10**75, 2**63 * 10, 2**64 * 10, -(2**63) * 10, (2**64 - 1) * 10, 10**20], 1)
@example([(2**64 + 4096) * 10**3, (2**200) * 10**3, 2**63 * 10**2, 0], 3)
@example([(2**53 - 1) << e for e in (12, 32, 43, 63, 64, 90, 127, 199)], 0)
def test_wide_identities(values: list[int], scale: int) -> None:
    exact = Context(prec=80)
    decimals = [Decimal(v).scaleb(-scale, context=exact) for v in values]
    expected = [reference.identity(d) for d in decimals]
    assert pairs(kernel.wide_identities(limbs(values, 4), scale, reference.KEY)) == expected
    narrow = [i for i, v in enumerate(values) if -(2**127) <= v < 2**127]
    found = kernel.wide_identities(limbs([values[i] for i in narrow], 2), scale, reference.KEY)
    assert pairs(found) == [expected[i] for i in narrow]


@pytest.mark.parametrize("writeable", [True, False])
def test_memory_maps_will_do(writeable: bool) -> None:
    codes = encode.int_codes(np.array([100, 7, -30], dtype=np.int64))[::2]
    codes.flags.writeable = writeable
    assert kernel.scaled_identities(codes, 2, kernel.NUMBER)[1].tolist() == [kernel.NUMBER, kernel.NUMBER + 1]
    assert kernel.unmixed(kernel.mixed(codes)).tolist() == codes.tolist()
