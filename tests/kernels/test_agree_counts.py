"""The counted agree sets equal the plain-Python reference: masks, their order, counts; witnesses are real."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import agree_counts as kernel
from holdfast.core.evidence.kernels import compared_pairs, frequency_cube
from reference import agree_counts as reference

WIDTHS = (0, 1, 2, 5, 15, 16, 17, 33, 63, 64, 65, 130)


def check(
    codes: np.ndarray,
    live: np.ndarray,
    rows: np.ndarray,
    own: bool = False,
    first: int = 0,
    share: bool = True,
) -> int:
    """The result equals the reference's; returns how many agree sets there are."""
    masks, counts, witnesses = kernel.agree_counts(codes, live, rows, own, first, share=share)
    assert (masks.dtype, counts.dtype, witnesses.dtype) == (np.uint64, np.int64, np.int64)
    assert masks.shape == (len(counts), max(1, -(-len(codes) // 64)))
    assert witnesses.shape == (len(counts), 2)
    assert masks.tolist() == sorted(masks.tolist()), "ascending, the first word most significant"
    ints = [sum(word << 64 * w for w, word in enumerate(mask)) for mask in masks.tolist()]
    assert len(ints) == len(set(ints)), "masks are all different"
    code_lists, row_lists, live_list = codes.tolist(), rows.tolist(), live.tolist()
    expected = reference.agree_counts(code_lists, live_list, row_lists, rows.shape[1], own, first)
    assert dict(zip(ints, counts.tolist(), strict=True)) == expected
    for mask, (j, r) in zip(ints, witnesses.tolist(), strict=True):
        assert reference.paired(live_list, r, j, own, first)
        assert reference.agree_mask(code_lists, r, row_lists, j) == mask
    return len(ints)


@st.composite
def code_matrices(draw: st.DrawFn, low: int, width: int, max_rows: int = 12) -> np.ndarray:
    """int32[width, *]: a few columns with any codes from `low` on, the others copies of them."""
    n_rows = draw(st.integers(0, max_rows))
    column = st.lists(st.integers(low, 3) | st.just(70_000), min_size=n_rows, max_size=n_rows)
    some = draw(st.lists(column, min_size=1, max_size=5))
    which = draw(st.lists(st.integers(0, len(some) - 1), min_size=width, max_size=width))
    return np.array([some[i] for i in which], dtype=np.int32).reshape(width, n_rows)


def lives(draw: st.DrawFn, n_rows: int) -> np.ndarray:
    some = st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)
    return np.array(draw(st.just([True] * n_rows) | some), dtype=np.bool_)


@st.composite
def crosses(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, which are live, and a batch in their codes, -1 where nothing can be equal."""
    width = draw(st.sampled_from(WIDTHS))
    codes = draw(code_matrices(0, width))
    return codes, lives(draw, codes.shape[1]), draw(code_matrices(-1, width))


def settings(patch: pytest.MonkeyPatch, block_rows: int, rarity: int, cube: bool = False) -> None:
    """Small blocks; units or a cube always (rare: fewer than one row in `rarity`) or, if it is 0, never."""
    patch.setattr(frequency_cube, "CUBE_WORK", 0 if cube else 1 << 60)
    patch.setattr(compared_pairs, "block_rows", lambda _: block_rows)
    patch.setattr(kernel, "RARITY", rarity)
    patch.setattr(kernel, "UNITS_FROM", 0 if rarity else 1 << 30)
    patch.setattr(kernel, "MAX_TOUCHED", 0)
    patch.setattr(kernel, "MAX_UNITS", 0)


BLOCK_ROWS = st.sampled_from([1, 3, 64])
RARITIES = st.sampled_from([0, 1, 2, 3, 16])


@given(crosses(), st.booleans(), BLOCK_ROWS, RARITIES, st.booleans())
def test_batch_with_old_rows(
    cross: tuple[np.ndarray, np.ndarray, np.ndarray], share: bool, block_rows: int, rarity: int, cube: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        settings(patch, block_rows, rarity, cube)
        check(*cross, share=share)


@st.composite
def parts(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Rows, which are live, and consecutive ones as a batch, its NULLs agreeing with nothing or not."""
    codes = draw(code_matrices(0, draw(st.sampled_from(WIDTHS)), max_rows=20))
    n_rows = codes.shape[1]
    first = draw(st.integers(0, n_rows))
    rows = codes[:, first : draw(st.integers(first, n_rows))]
    return codes, lives(draw, n_rows), np.where(rows == 0, -1, rows) if draw(st.booleans()) else rows, first


@given(parts(), st.booleans(), BLOCK_ROWS, RARITIES, st.booleans())
def test_rows_among_themselves(
    part: tuple[np.ndarray, np.ndarray, np.ndarray, int],
    share: bool,
    block_rows: int,
    rarity: int,
    cube: bool,
) -> None:
    codes, live, rows, first = part
    with pytest.MonkeyPatch.context() as patch:
        settings(patch, block_rows, rarity, cube)
        check(codes, live, rows, own=True, first=first, share=share)


def skewed(width: int, n_rows: int, seed: int, sizes: tuple[int, ...] = (2, 3, 9, 40)) -> np.ndarray:
    """Columns of very different cardinality, small codes common and large ones rare."""
    rng = np.random.default_rng(seed)
    return np.array(
        [(rng.random(n_rows) ** 3 * sizes[c % len(sizes)]).astype(np.int32) for c in range(width)],
        dtype=np.int32,
    )


@pytest.mark.parametrize("width", [4, 15, 16, 17, 70, 222])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dead", [0.0, 0.3])
def test_many_agree_sets(width: int, own: bool, dead: float) -> None:
    """More rows than a block has, more masks than a table starts with."""
    n_rows = 200 if width < 100 else 90
    codes = skewed(width, n_rows, width)
    live = np.random.default_rng(1).random(n_rows) >= dead
    rows = codes if own else codes[:, 30:90]
    ways = [(0, False), (4, False), (4, True)] if width <= kernel.UNITS_COLUMNS else [(0, False)]
    for rarity, cube in ways:
        with pytest.MonkeyPatch.context() as patch:
            settings(patch, 32, rarity, cube)
            assert check(codes, live, rows, own=own) > 8


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("cube", [False, True])
def test_a_mask_that_only_units_have(own: bool, cube: bool) -> None:
    """Whoever agrees on the frequent values agrees on a rare one too: the units' mask is no pair's."""
    n = 64
    codes = np.array([np.arange(n) // 8, np.arange(n) // 8 % 2, np.arange(n) // 16], dtype=np.int32)
    live = np.ones(n, dtype=np.bool_)
    with pytest.MonkeyPatch.context() as patch:
        settings(patch, 64, 4, cube)
        assert check(codes, live, codes, own=own) == 4


def answers_of(patch: pytest.MonkeyPatch, name: str) -> list[object]:
    """What a function of the kernel's module answers from now on, call by call."""
    answers: list[object] = []
    function = getattr(kernel, name)
    patch.setattr(kernel, name, lambda *given: answers.append(function(*given)) or answers[-1])
    return answers


def test_units_when_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large batch is counted by units, whether rows are dead or not; with too many units it is not."""
    answers = answers_of(monkeypatch, "_counts_by_frequency")
    monkeypatch.setattr(frequency_cube, "MAX_CELLS", 0)
    codes, live = skewed(4, 200, 1), np.arange(200) % 7 > 0
    for own, alive in [(False, live), (False, live | True), (True, live | True)]:
        check(codes[:, ::2], alive[::2], codes[:, ::2], own=own)
        assert answers.pop() is not None
    check(codes, live | True, codes[:, 100:], own=True, first=100)
    assert len(answers) == 2
    assert all(answers)
    answers.clear()
    scattered = np.random.default_rng(1).integers(0, 10, (4, 100)).astype(np.int32)
    for rarity in (1, 50):  # every value is rare, lists are long; every row is its own unit
        monkeypatch.setattr(kernel, "RARITY", rarity)
        check(scattered, np.ones(100, dtype=np.bool_), scattered)
    assert answers == [None, None]


def test_a_cube_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are as many units as rows are counted by a cube, if there are far more of them than cells."""
    cubes, halves = answers_of(monkeypatch, "_counts_by_cube"), answers_of(monkeypatch, "_halved")
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(1, 4, 900), rng.integers(1, 5, 900), rng.permutation(900)])
    codes, live = codes.astype(np.int32), np.arange(900) % 7 > 0
    for alive in (live, live | True):
        check(codes, alive, codes[:, :200])
        assert len(cubes) == 1
        assert cubes.pop() is not None
    check(codes[:, :300], live[:300] | True, codes[:, :300], own=True)
    assert halves
    assert cubes
    cubes.clear()
    few = np.tile(np.arange(70, dtype=np.int32) % 20, (2, 1))
    check(few, live[:70] | True, few)  # fewer pairs than steps
    assert not cubes


def test_ranks_of_more_than_one_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than eight columns with frequent values the ranks take two words."""
    cubes = answers_of(monkeypatch, "_counts_by_cube")
    settings(monkeypatch, 64, 4, cube=True)
    codes = skewed(11, 150, 9, sizes=(2, 3))
    check(codes, np.ones(150, dtype=np.bool_), codes[:, :60])
    assert len(cubes) == 1


@pytest.mark.parametrize("width", [3, 70])
@pytest.mark.parametrize("own", [False, True])
def test_batches_beyond_the_narrow_codes(width: int, own: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch with more rows than there are narrow codes is counted in parts."""
    monkeypatch.setattr(compared_pairs, "MAX_BATCH", 7)
    monkeypatch.setattr(kernel, "UNITS_FROM", 1 << 30)
    codes = skewed(width, 40, 2)
    live = np.arange(40) % 5 > 0
    check(codes, live, codes[:, 10:], own=own, first=10)
    check(codes, live & False, codes, own=own)


def test_many_values() -> None:
    """The batch has more different values than 16 bits hold."""
    n = 140_000
    codes = np.array([np.arange(n), np.arange(n) % 2, np.arange(n) // 2], dtype=np.int32)
    live = np.zeros(n, dtype=np.bool_)
    live[[5, 139_998]] = True
    for share in (False, True):
        masks, counts, witnesses = kernel.agree_counts(codes, live, codes[:, ::-1], share=share)
        # Each batch row agrees with one of the two on being odd or even, and no two of these are neighbours.
        assert masks.tolist() == [[0b000], [0b010], [0b100], [0b111]]
        assert counts.tolist() == [n - 2, n - 2, 2, 2]
        assert witnesses[3].tolist() in ([n - 6, 5], [1, 139_998])


def test_parts_add_up() -> None:
    """The batch cut into parts gives the same as the whole."""
    codes = skewed(10, 150, 3)
    live = np.ones(150, dtype=np.bool_)
    whole = kernel.agree_counts(codes, live, codes, within=True)
    total: dict[tuple[int, ...], int] = {}
    for first in range(0, 150, 40):
        masks, counts, _ = kernel.agree_counts(
            codes, live, codes[:, first : first + 40], within=True, first=first
        )
        for mask, count in zip(masks.tolist(), counts.tolist(), strict=True):
            total[tuple(mask)] = total.get(tuple(mask), 0) + count
    assert total == {tuple(m): c for m, c in zip(whole[0].tolist(), whole[1].tolist(), strict=True)}
