"""Which columns are indexed: every key is hit, the most frequent column comes first (SWAN alg. 3 and 4),
and no key is left with long lists only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.agree_probe import probes_for
from holdfast.core.rows.index_columns import (
    NEARLY_BEST,
    SHORT_LIST,
    additional_columns,
    choose_index_columns,
    covering_columns,
)
from holdfast.core.rows.kernels.masks import mask_of, n_words_for
from reference.keys import Combination

A, B, C, D = range(4)
PAPER = [frozenset({A, B}), frozenset({A, C}), frozenset({A, D}), frozenset({C, D})]


def masks(sets: list[Combination], width: int) -> np.ndarray:
    n_words = n_words_for(width)
    return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(len(sets), n_words)


@st.composite
def covers(draw: st.DrawFn) -> tuple[int, list[Combination], list[int]]:
    """(columns, keys, distinct values of each column)."""
    width = draw(st.sampled_from([1, 3, 6, 64, 70]))
    keys = draw(st.lists(st.frozensets(st.integers(0, width - 1), min_size=1, max_size=5), max_size=10))
    distinct = draw(st.lists(st.integers(1, 50), min_size=width, max_size=width))
    return width, keys, distinct


@given(covers())
def test_covering_columns(case: tuple[int, list[Combination], list[int]]) -> None:
    """Every key is hit; each step takes a most frequent column of what is left, ties the more selective."""
    width, keys, distinct = case
    chosen = covering_columns(masks(keys, width), distinct)
    assert len(set(chosen)) == len(chosen)
    left = list(keys)
    for column in chosen:
        frequency = [sum(c in key for key in left) for c in range(width)]
        assert frequency[column] == max(frequency) > 0
        rivals = [c for c in range(width) if frequency[c] == frequency[column]]
        assert distinct[column] == max(distinct[c] for c in rivals)
        left = [key for key in left if column not in key]
    assert not left


@given(covers(), st.integers(0, 12))
def test_the_quota_is_kept(case: tuple[int, list[Combination], list[int]], quota: int) -> None:
    """Algorithm 4 adds nothing beyond the quota."""
    width, keys, distinct = case
    family = masks(keys, width)
    needed = covering_columns(family, distinct)
    more = additional_columns(family, needed, distinct, 50, quota)
    assert len({*needed, *more}) <= max(len(needed), quota)


@given(covers(), st.none() | st.integers(0, 12), st.sampled_from([1, 50, 5000]))
def test_every_key_gets_a_short_list(
    case: tuple[int, list[Combination], list[int]], quota: int | None, n_rows: int
) -> None:
    """The third step: of each key an index whose lists are short, or nearly as short as can be."""
    width, keys, distinct = case
    family = masks(keys, width)
    chosen = choose_index_columns(family, distinct, n_rows, quota)
    assert chosen == sorted(set(chosen))
    assert set(covering_columns(family, distinct)) <= set(chosen)
    for key in keys:
        length = {c: n_rows / max(1, distinct[c]) for c in key}
        have = min(length[c] for c in key & set(chosen))
        assert have <= max(SHORT_LIST, NEARLY_BEST * min(length.values()))


@given(covers(), st.integers(0, 12))
def test_what_is_added_helps_an_index(case: tuple[int, list[Combination], list[int]], quota: int) -> None:
    """For some index columns no key is left that has that one alone."""
    width, keys, distinct = case
    family = masks(keys, width)
    cover = covering_columns(family, distinct)
    more = set(additional_columns(family, cover, distinct, 50, quota))
    if more:
        lonely = {c: [k for k in keys if k & set(cover) == {c} and len(k) > 1] for c in cover}
        helped = [c for c in cover if lonely[c] and all(k & more for k in lonely[c])]
        assert helped


@given(covers())
def test_probes_find_every_clash(case: tuple[int, list[Combination], list[int]]) -> None:
    """A pair that agrees on a key agrees on the columns of some probe, and no probe is empty."""
    width, keys, distinct = case
    family = masks(keys, width)
    indexed = choose_index_columns(family, distinct, 50)
    probes = [set(p.columns) for p in probes_for(family, indexed)]
    assert all(probes)
    assert all(any(p <= key for p in probes) for key in keys)
    assert all(p <= set(indexed) for p in probes)


def test_the_paper_section_3c() -> None:
    """{A, B}, {A, C}, {A, D}, {C, D} are covered by A and C, when C is no less selective than D."""
    assert covering_columns(masks(PAPER, 4), [9, 9, 9, 9]) == [A, C]


def test_the_paper_section_3d() -> None:
    """A third index should be D: it shrinks the lookups in C. B would save nothing while {A, D} needs A."""
    family = masks(PAPER, 4)
    assert additional_columns(family, [A, C], [9, 9, 9, 9], 10, quota=3) == [D]
    assert choose_index_columns(family, [9, 9, 9, 9], 10, quota=3) == [A, C, D]
    assert choose_index_columns(family, [9, 9, 9, 9], 10, quota=2) == [A, C]


@pytest.mark.parametrize(
    ("distinct", "expected"), [([2, 9, 9, 9], [A, B, C, D]), ([9, 9, 2, 9], [A, B, C, D])]
)
def test_all_four_when_the_quota_allows(distinct: list[int], expected: list[int]) -> None:
    assert choose_index_columns(masks(PAPER, 4), distinct, 10, quota=4) == expected
