"""Tallies and shapes: what is kept by batches is what is counted at once, and equals plain dictionaries."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.profile import tally
from holdfast.profile.tally import Tally
from holdfast.profile.text_shapes import expression, forms, shapes
from reference import profiles as plain

MOST = 5
VALUES = st.integers(-4, 12)
EDGE = 2


@pytest.fixture(autouse=True)
def small_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "EDGE", EDGE)


def counted(values: list[int], most: int = MOST) -> Tally:
    counts = Counter(values)
    return Tally.of(pa.array(list(counts), pa.int64()), np.array(list(counts.values()), np.int64), most)


def check(kept: Tally, values: list[int]) -> None:
    """A tally says what is so: all counts, or those of both ends."""
    counts = Counter(values)
    ordered = sorted(counts)
    assert kept.n_values == len(values)
    assert kept.complete == (len(counts) <= MOST)
    listed = kept.values.to_pylist()
    assert kept.counts.tolist() == [counts[v] for v in listed]
    if kept.n_low is None:
        assert listed == ordered
        assert kept.n_distinct == len(ordered)
        return
    low, high = listed[: kept.n_low], listed[kept.n_low :]
    assert low == ordered[: len(low)]
    assert high == ordered[-len(high) :]
    assert min(len(low), len(high)) > 0
    assert max(len(low), len(high)) <= 2 * EDGE
    assert MOST < kept.at_least <= len(ordered)


@given(st.data())
def test_batches(data: st.DataObject) -> None:
    """Inserts and deletes in any order; where it asks for it, the rest is counted again."""
    values: list[int] = data.draw(st.lists(VALUES, max_size=30))
    kept = counted(values)
    check(kept, values)
    for _ in range(data.draw(st.integers(1, 6))):
        new = data.draw(st.lists(VALUES, max_size=12))
        # Of columns that are cut tasks tell ends alone.
        most = MOST if kept.complete else 2 * EDGE
        kept = kept.plus(counted(new, most), MOST)
        values = [*values, *new]
        check(kept, values)
        at = data.draw(st.lists(st.integers(0, len(values) - 1), unique=True)) if values else []
        gone = [values[i] for i in at]
        values = [v for i, v in enumerate(values) if i not in set(at)]
        less = kept.minus(counted(gone, MOST if kept.complete else 2 * EDGE), MOST)
        kept = counted(values) if less is None else less
        check(kept, values)


@given(st.lists(st.lists(VALUES, max_size=20), min_size=1, max_size=4))
def test_parts(parts: list[list[int]]) -> None:
    together = counted([])
    for part in parts:
        together = together.plus(counted(part), MOST)
    check(together, [v for part in parts for v in part])


def test_what_was_never_counted() -> None:
    with pytest.raises(ValueError, match="-1 rows"):
        counted([1, 2]).minus(counted([3]), MOST)
    with pytest.raises(ValueError, match="-1 rows"):
        counted(list(range(9))).minus(counted([0, 0]), MOST)


def test_few_deletes_ask_for_nothing() -> None:
    """Of many values so many have to go until the rest may be few."""
    kept: Tally | None = counted(list(range(9)))
    for v in (3, 4, 5):
        assert kept is not None
        kept = kept.minus(counted([v]), MOST)
        assert kept is not None
    assert kept is not None
    assert kept.minus(counted([6]), MOST) is None
    assert kept.minus(counted([0, 1]), MOST) is None


TEXTS = st.text(st.sampled_from("AZaz09-. @é日\n"), max_size=8)


@given(st.lists(TEXTS))
def test_shapes(texts: list[str]) -> None:
    array = pa.array(texts, pa.large_string())
    assert shapes(array).to_pylist() == [plain.shape(t) for t in texts]
    assert forms(shapes(array)).to_pylist() == [plain.form(t) for t in texts]
    assert shapes(array.slice(1)).to_pylist() == [plain.shape(t) for t in texts[1:]]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"caf\xe9", "aaa\x00"),
        (b"\x80a", "\x00a"),
        (b"\xc3", "\x00"),
        ("é".encode(), "U"),
        (b"\xc0\x80", "\x00"),
    ],
)
def test_bytes_that_are_no_text(raw: bytes, expected: str) -> None:
    """They are NUL, whatever stands in front of them or behind."""
    array = pa.array([b"a", raw, b"", raw, b"b"], pa.large_binary())
    assert shapes(array).to_pylist() == ["a", expected, "", expected, "a"]


@given(st.lists(TEXTS, min_size=1), st.booleans())
def test_expressions(texts: list[str], exact: bool) -> None:
    """All texts match; with exact lengths no text of another form does."""
    some = [(plain.shape if exact else plain.form)(t) for t in texts]
    regex: Any = expression(dict.fromkeys(some), exact=exact)
    if any("\n" in t for t in texts):
        assert regex is None
        return
    assert all(re.fullmatch(regex, t) for t in texts)
    assert pa.compute.all(
        pa.compute.match_substring_regex(pa.array(texts, pa.large_string()), f"^(?:{regex})$")
    ).as_py()
    known = {plain.form(t) for t in texts}
    for other in ("a", "A-9", "é", "", "0"):
        assert bool(re.fullmatch(regex, other)) <= (plain.form(other) in known)
