"""Signatures, their transpose, both proposers and the validator equal their plain-Python reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.lakes.kernels import signatures as kernel
from holdfast.lakes.kernels import value_sets
from holdfast.lakes.kernels.signatures import BLOCK, WORDS
from reference import signatures as reference
from reference.signatures import Value

Proposer = Callable[[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], int], tuple]
PROPOSERS: dict[str, tuple[Proposer, Callable]] = {
    "dep2refs": (kernel.dep2refs, reference.supersets),
    "ref2deps": (kernel.ref2deps, reference.subsets),
}
BOTH = pytest.mark.parametrize("strategy", list(PROPOSERS))

LAST = 2**64 - 1
HASHES = st.sampled_from([0, 1, 2**32, 2**63, LAST]) | st.integers(0, LAST)
# Few values, so that columns share them; some have the same h1, some the same h2.
VALUES = st.tuples(st.sampled_from([0, 1, 5, LAST]), st.sampled_from([0, 3, LAST])) | st.tuples(
    HASHES, HASHES
)
COLUMNS = st.lists(st.frozensets(VALUES, max_size=6), max_size=8)
SHAPES = st.tuples(st.sampled_from([1, 2, 5, 63, 64, 65, 130]), st.integers(1, 7), st.integers(1, 3))


def words(listed: Sequence[int]) -> NDArray[np.uint64]:
    return np.array(listed, dtype=np.uint64)


def flat(columns: Sequence[Collection[Value]]) -> tuple[NDArray, NDArray, NDArray]:
    """(offsets, values, checks) of these columns."""
    entries = [value for column in columns for value in sorted(column)]
    offsets = np.cumsum([0, *map(len, columns)]).astype(np.int64)
    return offsets, words([h1 for h1, _ in entries]), words([h2 for _, h2 in entries])


def signatures_of(bits: Sequence[int], n_bits: int) -> NDArray[np.uint64]:
    n_words = -(-n_bits // 64)
    return words([(b >> 64 * w) & LAST for b in bits for w in range(n_words)]).reshape(len(bits), n_words)


def numbers_of(signatures: NDArray[np.uint64]) -> list[int]:
    return [sum(word << 64 * w for w, word in enumerate(row)) for row in signatures.tolist()]


def allowed_of(columns: Collection[int], n_blocks: int) -> NDArray[np.uint64]:
    allowed = np.zeros(n_blocks * WORDS, dtype=np.uint64)
    for c in columns:
        allowed[c // 64] |= np.uint64(1 << c % 64)
    return allowed


def proposed(
    strategy: str,
    matrix: NDArray[np.uint64],
    asked: NDArray[np.uint64],
    allowed: NDArray[np.uint64],
    capacity: int,
) -> list[tuple[int, int]]:
    """All pairs, in as many calls as it takes; each call keeps to its contract."""
    found: list[tuple[int, int]] = []
    done = 0
    while done < len(asked):
        left, right, n_done = PROPOSERS[strategy][0](matrix, asked[done:], allowed, capacity)
        assert left.dtype == right.dtype == np.int32
        assert 1 <= n_done <= len(asked) - done
        assert len(left) == len(right)
        assert len(left) <= capacity or n_done == 1
        assert all(0 <= number < n_done for number in left.tolist())
        found += zip((left + done).tolist(), right.tolist(), strict=True)
        done += n_done
    return found


def check(
    strategy: str, columns: list[int], asked: list[int], n_bits: int, allowed: Collection[int], capacity: int
) -> list[tuple[int, int]]:
    matrix = kernel.transposed(signatures_of(columns, n_bits), n_bits)
    words_allowed = allowed_of(allowed, len(matrix))
    found = proposed(strategy, matrix, signatures_of(asked, n_bits), words_allowed, capacity)
    assert found == PROPOSERS[strategy][1](asked, columns, allowed)
    return found


# --- Signatures ------------------------------------------------------------------------------------------


@given(COLUMNS, SHAPES)
@example([], (64, 1, 1))
@example([frozenset()], (1, 1, 1))
@example([frozenset({(0, 0)}), frozenset({(LAST, LAST)})], (650, 6, 2))
def test_bloom(columns: list[frozenset[Value]], shape: tuple[int, int, int]) -> None:
    m, k, p = shape
    found = kernel.bloom(*flat(columns), m, k, p)
    assert found.dtype == np.uint64
    assert found.shape == (len(columns), -(-m * p // 64))
    assert numbers_of(found) == [reference.signature(c, m, k, p) for c in columns]


@given(st.sets(VALUES, max_size=12), st.sets(VALUES, max_size=12), SHAPES)
def test_a_subset_has_a_subset_of_the_bits(
    few: set[Value], more: set[Value], shape: tuple[int, int, int]
) -> None:
    """The law that makes signatures worth anything: no false negatives."""
    part, whole = numbers_of(kernel.bloom(*flat([few, few | more]), *shape))
    assert not part & ~whole


def test_bits_are_spread_evenly_and_passes_differ() -> None:
    """100,000 values into 100 bits: no bit far from its share, and each pass sees another hash."""
    rng = np.random.default_rng(4)
    h1, h2 = (rng.integers(0, LAST, 100_000, dtype=np.uint64) for _ in range(2))
    bits = kernel.bloom(np.arange(100_001), h1, h2, 50, 1, 2)
    rows = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :100]
    assert (rows.sum(axis=1) == 2).all()
    assert 1_700 < rows.sum(axis=0).min() <= rows.sum(axis=0).max() < 2_300
    assert (rows[:, :50].argmax(axis=1) == rows[:, 50:].argmax(axis=1)).mean() < 0.05


@given(st.integers(1, 200), st.integers(0, 140), st.integers(0, 2**32))
@example(64, 64, 0)
@example(65, 0, 0)
def test_transposed(n_bits: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits = [int.from_bytes(rng.bytes(25), "little") & ((1 << n_bits) - 1) for _ in range(n)]
    matrix = kernel.transposed(signatures_of(bits, n_bits), n_bits)
    assert matrix.dtype == np.uint64
    assert matrix.shape == (1 if n else 0, n_bits, WORDS)
    for block in matrix:
        rows = numbers_of(block)
        assert rows == [sum((b >> r & 1) << c for c, b in enumerate(bits)) for r in range(n_bits)]


@pytest.mark.parametrize("n", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 65])
def test_transposed_in_blocks(n: int) -> None:
    rng = np.random.default_rng(n)
    signatures = rng.integers(0, LAST, (n, 2), dtype=np.uint64)
    matrix = kernel.transposed(signatures, 70)
    assert matrix.shape == (-(-n // BLOCK), 70, WORDS)
    rows = np.unpackbits(matrix.view(np.uint8), axis=2, bitorder="little")
    there = np.swapaxes(rows, 1, 2).reshape(-1, 70)
    wanted = np.unpackbits(signatures.view(np.uint8), axis=1, bitorder="little")[:, :70]
    assert (there[:n] == wanted).all()
    assert not there[n:].any()


# --- Proposers -------------------------------------------------------------------------------------------

# Five columns of which is true what the paper says of those of its figure 4: c0 has the bits 0, 1 and 3, and
# is part of itself and of c3 alone; nothing but these two is part of c3.
FIGURE_4 = [0b001011, 0b110001, 0b000110, 0b011011, 0b101000]


@BOTH
def test_figure_4(strategy: str) -> None:
    asked = {"dep2refs": 0, "ref2deps": 3}[strategy]
    found = check(strategy, FIGURE_4, [FIGURE_4[asked]], 6, range(5), 100)
    assert "".join("1" if (0, c) in found else "0" for c in range(5)) == "10010"


@BOTH
@given(st.data())
def test_proposers(strategy: str, data: st.DataObject) -> None:
    n_bits = data.draw(st.sampled_from([1, 3, 12, 64, 65, 130]))
    # Sparse, dense and saturated ones: few bits set, few missing, all.
    some = st.sets(st.integers(0, n_bits - 1), max_size=5).map(lambda s: sum(1 << r for r in s))
    everything = (1 << n_bits) - 1
    bits = some | some.map(lambda b: everything ^ b) | st.integers(0, everything)
    columns = data.draw(st.lists(bits, max_size=80))
    asked = data.draw(st.lists(bits | st.sampled_from(columns) if columns else bits, max_size=12))
    allowed = data.draw(st.sets(st.integers(0, len(columns) - 1))) if columns else set()
    if data.draw(st.booleans()):
        allowed = set(range(len(columns)))
    capacity = data.draw(st.sampled_from([1, 2, 7, 64, 10_000]))
    found = check(strategy, columns, asked, n_bits, allowed, capacity)
    event("some" if found else "none")


@BOTH
@pytest.mark.parametrize("n", [1, 63, 64, 65, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 3])
@pytest.mark.parametrize("capacity", [1, 500, 1_000_000])
def test_blocks(strategy: str, n: int, capacity: int) -> None:
    """Few bits: each asked one has many answers, in all blocks. They come in order, whatever the room."""
    rng = np.random.default_rng(n)
    columns = (rng.integers(0, 256, n) | rng.integers(0, 256, n)).tolist()
    allowed = np.flatnonzero(rng.random(n) < 0.9).tolist()
    asked = [*columns[:10], *columns[-10:], 0, 255, *rng.integers(0, 256, 10).tolist()]
    check(strategy, columns, asked, 8, set(allowed), capacity)


@BOTH
def test_more_asked_than_a_chunk(strategy: str) -> None:
    rng = np.random.default_rng(5)
    n = 2 * kernel.CHUNK + 30
    columns = rng.integers(0, 2**12, 90).tolist()
    asked = rng.integers(0, 2**12, n).tolist()
    for capacity in (1, 700, 10**6):
        check(strategy, columns, asked, 12, range(90), capacity)


@BOTH
def test_room_that_is_nearly_used_up(strategy: str) -> None:
    """Chunks end early where the room ends: whatever it is, the pairs that are there are complete."""
    rng = np.random.default_rng(6)
    columns = rng.integers(0, 2**6, 200).tolist()
    asked = rng.integers(0, 2**6, 40).tolist()
    for capacity in range(1, 1500, 37):
        check(strategy, columns, asked, 6, range(200), capacity)


@BOTH
def test_saturated(strategy: str) -> None:
    """All bits set: everything is part of it, and it is part of its like alone."""
    full = (1 << 70) - 1
    columns = [full] * 100 + [0] * 100 + [1 << 69] * 100
    found = check(strategy, columns, [full, 0, 1 << 69], 70, range(300), 10_000)
    sizes = [sum(number == i for number, _ in found) for i in range(3)]
    assert sizes == {"dep2refs": [100, 300, 200], "ref2deps": [300, 100, 200]}[strategy]


@BOTH
def test_nothing_there_or_nothing_asked(strategy: str) -> None:
    assert check(strategy, [], [0, 5, 7], 3, set(), 10) == []
    assert check(strategy, [1, 2], [], 3, {0, 1}, 10) == []
    assert check(strategy, [1, 2], [1, 7], 3, set(), 10) == []


@BOTH
def test_bits_beyond_the_last_are_not_asked_for(strategy: str) -> None:
    """The last word of a signature has room for more bits than there are rows."""
    matrix = kernel.transposed(words([[1], [3]]), 2)
    found = proposed(strategy, matrix, words([[1 | 1 << 63]]), allowed_of([0, 1], 1), 10)
    assert found == {"dep2refs": [(0, 0), (0, 1)], "ref2deps": [(0, 0)]}[strategy]


# --- The validator ---------------------------------------------------------------------------------------


def check_valid(
    pairs: Sequence[tuple[int, int]], a: Sequence[Collection[Value]], b: Sequence[Collection[Value]]
) -> list[bool]:
    dep, ref = (np.array([pair[i] for pair in pairs], dtype=np.int32) for i in range(2))
    found = value_sets.validated(dep, ref, *flat(a), *flat(b))
    assert found.dtype == np.bool_
    assert found.tolist() == reference.valid(pairs, a, b)
    return found.tolist()


@given(COLUMNS, COLUMNS)
@example([frozenset()], [frozenset()])
@example([frozenset({(5, 0)})], [frozenset({(5, 3)}), frozenset({(5, 0), (5, 3)})])
def test_validated(a: list[frozenset[Value]], b: list[frozenset[Value]]) -> None:
    b = [*b, *(x | y for x, y in zip(a, b, strict=False))]
    found = check_valid([(i, j) for i in range(len(a)) for j in range(len(b))], a, b)
    event("some" if any(found) else "none")


@given(st.data(), st.sampled_from([1, 3, 4, 40, 300, 2000]))
def test_validated_in_long_sets(data: st.DataObject, n: int) -> None:
    """Sets that are read through and sets that are searched; ends and neighbours; runs of one h1."""
    width = data.draw(st.sampled_from([1, 4, 5000]))
    long = {(i // width * 3 + 1, i % width * 3 + 1) for i in range(n)}
    listed = sorted(long)
    there = st.sampled_from([listed[0], listed[-1], *listed])
    beside = st.tuples(there, st.integers(-1, 1), st.integers(-1, 1)).map(
        lambda t: (t[0][0] + t[1], t[0][1] + t[2])
    )
    parts = data.draw(
        st.lists(st.frozensets(there, max_size=12) | st.frozensets(beside, max_size=4), max_size=6)
    )
    parts = [*parts, long - {listed[n // 2]}, long, long | {(0, 0)}]
    check_valid([(i, 0) for i in range(len(parts))], parts, [long])
    check_valid([(0, i) for i in range(len(parts))], [long], parts)


def test_the_same_h1_is_not_the_same_value() -> None:
    """Hash collisions in h1 only: both ways of looking tell the values apart by h2."""
    for n in (1, 2, 10, 1000):
        same = [{(7, 2 * i) for i in range(n)}]
        singles = [{(7, i)} for i in range(-1, 2 * n + 1) if i >= 0]
        found = check_valid([(i, 0) for i in range(len(singles))], singles, same)
        assert sum(found) == n


# --- All together ----------------------------------------------------------------------------------------


@BOTH
@given(COLUMNS, SHAPES)
def test_proposed_and_validated_are_the_inclusions(
    strategy: str, columns: list[frozenset[Value]], shape: tuple[int, int, int]
) -> None:
    assume(columns)
    m, k, p = shape
    arrays = flat(columns)
    signatures = kernel.bloom(*arrays, m, k, p)
    matrix = kernel.transposed(signatures, m * p)
    pairs = proposed(strategy, matrix, signatures, allowed_of(range(len(columns)), 1), 100)
    if strategy == "ref2deps":
        pairs = [(dep, ref) for ref, dep in pairs]
    dep, ref = (np.array([pair[i] for pair in pairs], dtype=np.int32) for i in range(2))
    right = value_sets.validated(dep, ref, *arrays, *arrays)
    n = range(len(columns))
    kept = {pair for pair, holds in zip(pairs, right.tolist(), strict=True) if holds}
    assert kept == {(i, j) for i in n for j in n if columns[i] <= columns[j]}


def test_memory_maps_and_slices(tmp_path: Path) -> None:
    """Read-only files and strided views give the same, and compile nothing anew."""
    rng = np.random.default_rng(8)
    columns = [{(int(v), int(v)) for v in rng.integers(0, 40, 5)} for _ in range(100)]
    arrays = dict(zip(("offsets", "values", "checks"), flat(columns), strict=True))
    arrays["signatures"] = kernel.bloom(*arrays.values(), 50, 2, 2)
    arrays["matrix"] = kernel.transposed(arrays["signatures"], 100)
    arrays["allowed"] = allowed_of(range(100), 1)

    def run(name: Callable[[str], NDArray]) -> list[list]:
        sets = [name("offsets"), name("values"), name("checks")]
        dep, ref, _ = kernel.dep2refs(name("matrix"), name("signatures"), name("allowed"), 10_000)
        back = kernel.ref2deps(name("matrix"), name("signatures"), name("allowed"), 10_000)
        valid = value_sets.validated(dep, ref, *sets, *sets)
        bits = kernel.bloom(*sets, 50, 2, 2)
        turned = kernel.transposed(name("signatures"), 100)
        return [a.tolist() for a in (dep, ref, *back[:2], valid, bits, turned)]

    wanted = run(arrays.__getitem__)
    compiled = [kernel._propose, kernel._bloom, kernel._transposed, value_sets._validate]
    n_compiled = [len(f.signatures) for f in compiled]
    for name, array in arrays.items():
        np.save(tmp_path / name, array)
    assert run(lambda name: np.load(tmp_path / f"{name}.npy", mmap_mode="r")) == wanted
    assert run(lambda name: np.repeat(arrays[name], 2, axis=0)[::2]) == wanted
    assert [len(f.signatures) for f in compiled] == n_compiled
