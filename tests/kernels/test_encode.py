"""Codes, dictionaries, posting lists and translations equal their plain-Python reference."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import xxhash
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.core.rows.kernels import encode as kernel
from reference import encode as reference

INTS = st.integers(-(2**63), 2**63 - 1)
WORDS = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1)
# Few different values, so that they repeat; None is NULL.
COLUMN = st.lists(st.none() | st.integers(0, 5) | WORDS, max_size=60)


def words(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def with_validity(column: list[int | None]) -> tuple[np.ndarray, np.ndarray | None]:
    """(values, valid) as the kernel takes them; what stands where a value is NULL must not matter."""
    values = words([12345 if v is None else v for v in column])
    return values, np.array([v is not None for v in column]) if None in column else None


@given(st.lists(INTS, max_size=20))
@example([-(2**63), -1, 0, 1, 2**63 - 1])
def test_int_codes(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    codes = kernel.int_codes(array)
    assert codes.tolist() == [reference.int_code(v) for v in values]
    assert kernel.ints_of_codes(codes).tolist() == values
    for (a, x), (b, y) in itertools.combinations(zip(values, codes.tolist(), strict=True), 2):
        assert (a < b) == (x < y)


@given(st.lists(st.floats(), max_size=20))
@example([-math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan])
def test_float_codes(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    codes = kernel.float_codes(array)
    assert codes.tolist() == [reference.float_code(v) for v in values]
    back = kernel.floats_of_codes(codes)
    assert np.array_equal(back, array, equal_nan=True)
    for (a, x), (b, y) in itertools.combinations(zip(values, codes.tolist(), strict=True), 2):
        if math.isnan(a) or math.isnan(b):
            assert (x == y) == (math.isnan(a) and math.isnan(b))
            assert x >= y or not math.isnan(a)  # NaN comes last
        else:
            assert ((a < b), (a == b)) == ((x < y), (x == y))


def test_every_nan_is_one() -> None:
    bits = words([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FFFFFFFFFFFFFFF])
    assert len(set(kernel.float_codes(bits.view(np.float64)).tolist())) == 1


@given(st.lists(st.binary(max_size=80), max_size=8))
@example([b""])
@example([bytes(range(n)) for n in (3, 4, 7, 8, 12, 31, 32, 33, 63, 64, 65, 200)])
def test_bytes_codes_are_xxhash64(texts: list[bytes]) -> None:
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int64)
    data = np.frombuffer(b"".join(texts), dtype=np.uint8)
    assert kernel.bytes_codes(offsets, data).tolist() == [xxhash.xxh64_intdigest(t) for t in texts]


def test_bytes_codes_of_a_slice() -> None:
    """Offsets need not start at 0: a slice of an Arrow array has the whole one's bytes."""
    data = np.frombuffer(b"skipped" + b"abc" + b"de", dtype=np.uint8)
    codes = kernel.bytes_codes(np.array([7, 10, 12], dtype=np.int64), data)
    assert codes.tolist() == [xxhash.xxh64_intdigest(b"abc"), xxhash.xxh64_intdigest(b"de")]


@given(COLUMN)
@example([])
@example([None, None])
def test_factorize(column: list[int | None]) -> None:
    values, valid = with_validity(column)
    dictionary, codes = kernel.factorize(values, valid)
    assert (dictionary.dtype, codes.dtype) == (np.uint64, np.int32)
    assert (dictionary.tolist(), codes.tolist()) == reference.factorize(column)


def test_factorize_grows() -> None:
    """More distinct values than the hash table starts with."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 5000, 20_000).astype(np.uint64) << np.uint64(40)
    dictionary, codes = kernel.factorize(values, None)
    assert dictionary.tolist() == sorted(set(values.tolist()))
    assert np.array_equal(dictionary[codes - 1], values)


@given(COLUMN)
def test_postings(column: list[int | None]) -> None:
    dictionary, codes = reference.factorize(column)
    offsets, positions = kernel.postings(np.array(codes, dtype=np.int32), len(dictionary))
    assert (offsets.dtype, positions.dtype) == (np.int32, np.int32)
    assert (offsets.tolist(), positions.tolist()) == reference.postings(codes, len(dictionary))


@given(st.sets(WORDS | st.integers(0, 40)), st.sets(WORDS | st.integers(0, 40)))
@example(set(range(0, 200, 3)), {0, 1, 198, 199})
@example(set(), {7})
@example({7}, set())
def test_translate(dictionary: set[int], wanted: set[int]) -> None:
    mine, theirs = sorted(dictionary), sorted(wanted)
    found = kernel.translate(words(mine), words(theirs))
    assert found.dtype == np.int32
    assert found.tolist() == reference.translate(mine, theirs)


SORTED = st.lists(st.integers(0, 12) | st.just((1 << 64) - 1), unique=True).map(sorted)


@given(SORTED, SORTED)
def test_half_ranks(dictionary: list[int], wanted: list[int]) -> None:
    found = kernel.half_ranks(words(dictionary), words(wanted))
    assert found.dtype == np.int32
    assert found.tolist() == reference.half_ranks(dictionary, wanted)
    for w, rank in zip(wanted, found.tolist()[1:], strict=True):
        for code, v in enumerate(dictionary, 1):
            assert ((rank < 2 * code), (rank == 2 * code)) == ((w < v), (w == v)), "ranks compare as values"


ROWS = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.lists(st.none() | WORDS, min_size=width, max_size=width), min_size=1, max_size=12
    )
)


def row_hashes(rows: list[list[int | None]]) -> list[int]:
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for column in zip(*rows, strict=True):
        kernel.mix_column(hashes, *kernel.factorize(*with_validity(list(column))))
    return hashes.tolist()


@given(ROWS, st.data())
def test_row_hashes_are_those_of_the_content(rows: list[list[int | None]], data: st.DataObject) -> None:
    """Equal rows get equal hashes whatever other rows, and so whatever dictionary, their segment has."""
    hashes = row_hashes(rows)
    assert hashes == [reference.row_hash(row) for row in rows]
    some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    assert row_hashes([rows[i] for i in some]) == [hashes[i] for i in some]


def test_mix_column_tells_columns_apart() -> None:
    assert len(set(row_hashes([[1, 2], [2, 1], [1, None], [None, 1], [None, None]]))) == 5


@pytest.mark.parametrize("writeable", [True, False])
def test_memory_maps_will_do(writeable: bool) -> None:
    """Read-only arrays, as memory maps are, and views that are not contiguous."""
    values = words([3, 0, 1, 0, 3, 0])[::2]
    values.flags.writeable = writeable
    dictionary, codes = kernel.factorize(values, None)
    assert (dictionary.tolist(), codes.tolist()) == ([1, 3], [2, 1, 2])
