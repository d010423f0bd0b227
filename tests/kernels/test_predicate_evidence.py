"""Evidence over predicates equals the plain-Python reference: masks and counts; witnesses are real."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import compared_pairs
from holdfast.core.evidence.kernels import predicate_evidence as kernel
from holdfast.core.rows.kernels.encode import half_ranks
from reference import predicate_evidence as reference
from reference.agree_counts import paired

Rows = list[list[int | None]]


class Case(NamedTuple):
    """Rows as lists of values, and groups as the reference has them; with `own` the batch is part of old."""

    old: Rows
    live: list[bool]
    batch: Rows
    groups: list[reference.Group]
    n_columns: int
    own: bool = False
    first: int = 0

    @property
    def n_words(self) -> int:
        return 1 + max((first + 5 for *_, first in self.groups), default=0) // 64

    def pairs(self) -> list[tuple[int, int]]:
        return [
            (j, r)
            for j in range(len(self.batch))
            for r in range(len(self.old))
            if paired(self.live, r, j, self.own, self.first)
        ]


def encoded(rows: Rows, n_columns: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Dictionaries and local codes, as a segment has them."""
    dictionaries, codes = [], np.zeros((n_columns, len(rows)), dtype=np.int32)
    for c in range(n_columns):
        values = sorted({row[c] for row in rows if row[c] is not None})
        codes[c] = [0 if row[c] is None else 1 + values.index(row[c]) for row in rows]
        dictionaries.append(np.array(values, dtype=np.uint64))
    return dictionaries, codes


def arrays(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray, kernel.Groups]:
    """old, live, batch, groups as the kernels take them."""
    dictionaries, old = encoded(case.old, case.n_columns)
    batch_dictionaries, codes = encoded(case.batch, case.n_columns)
    batch = np.zeros((len(case.groups), 2, len(case.batch)), dtype=np.int32)
    for g, (left, right, *_) in enumerate(case.groups):
        for side, (mine, theirs) in enumerate([(left, right), (right, left)]):
            batch[g, side] = half_ranks(dictionaries[theirs], batch_dictionaries[mine])[codes[mine]]
    columns = np.array(case.groups, dtype=np.int32).reshape(len(case.groups), 4).T
    return old, np.array(case.live, dtype=np.bool_), batch, kernel.Groups(*columns)


def check_one(case: Case, found: kernel.Evidence, pairs: list[tuple[int, int]]) -> None:
    dtypes = [array.dtype for array in found]
    assert dtypes == [np.uint64, np.int64, np.int64, np.bool_]
    assert found.masks.shape == (len(found.counts), case.n_words)
    assert found.witnesses.shape == (len(found.counts), 2)
    assert found.batch_first.shape == found.counts.shape
    ints = [sum(word << 64 * w for w, word in enumerate(mask)) for mask in found.masks.tolist()]
    assert len(ints) == len(set(ints)), "masks are all different"
    expected = reference.evidence_counts(case.old, case.batch, case.groups, pairs)
    assert dict(zip(ints, found.counts.tolist(), strict=True)) == expected
    listed = set(pairs)
    for mask, (t, s), batch_first in zip(
        ints, found.witnesses.tolist(), found.batch_first.tolist(), strict=True
    ):
        assert ((t, s) if batch_first else (s, t)) in listed
        rows = (case.batch[t], case.old[s]) if batch_first else (case.old[t], case.batch[s])
        assert reference.evidence(*rows, case.groups) == mask


def check(case: Case) -> int:
    """All pairs, and the same pairs listed, equal the reference; returns how many masks there are."""
    old, live, batch, groups = arrays(case)
    pairs = case.pairs()
    found = kernel.evidence_counts(old, live, batch, groups, case.n_words, case.own, case.first)
    check_one(case, found, pairs)
    j, r = np.array(pairs, dtype=np.int64).reshape(len(pairs), 2).T
    listed = kernel.pairs_evidence_of(old, batch, groups, case.n_words, j, r)
    check_one(case, listed, pairs)
    assert listed.masks.tolist() == found.masks.tolist(), "equal families come in equal order"
    return len(found.counts)


def settings(patch: pytest.MonkeyPatch, **limits: int) -> None:
    """Small limits: `block` rows or pairs, and those of the module that are named."""
    block = limits.pop("block", 0)
    if block:
        patch.setattr(compared_pairs, "block_rows", lambda _: block)
        patch.setattr(compared_pairs, "BLOCK_PAIRS", block)
    for name, value in limits.items():
        patch.setattr(compared_pairs, name, value)


LIMITS = st.fixed_dictionaries(
    {
        "block": st.sampled_from([0, 1, 3, 64]),
        # No table of all keys; half ranks among the batch's values; parts of a batch.
        "DIRECT_BITS": st.sampled_from([0, 22]),
        "MAX_HALF_RANK": st.sampled_from([0, 5, 0x7FFF]),
        "MAX_BATCH": st.sampled_from([2, 1000]),
    }
)
# Values that fit no narrow code among few that often meet.
VALUES = st.none() | st.integers(0, 4) | st.just(1 << 63)


def numbered(pairs: list[tuple[int, int]], ordered: dict[tuple[int, int], bool]) -> list[reference.Group]:
    groups, first = [], 0
    for left, right in pairs:
        wide = ordered[min(left, right), max(left, right)]
        groups.append((left, right, wide, first))
        first += 6 if wide else 2
    return groups


@st.composite
def spaces(draw: st.DrawFn, n_columns: int, complete: bool = True) -> list[reference.Group]:
    """Groups of some columns, in any order, each with its mirrored one (or not, if that is not asked)."""
    column = st.integers(0, n_columns - 1)
    pairs = draw(st.lists(st.tuples(column, column), unique=True, max_size=6))
    if complete:
        pairs = draw(st.permutations(list(dict.fromkeys(pairs + [(b, a) for a, b in pairs]))))
    kinds = {(min(p), max(p)): draw(st.booleans()) for p in pairs}
    return numbered(pairs, kinds)


def tables(draw: st.DrawFn, n_columns: int, max_rows: int = 8) -> Rows:
    return draw(
        st.lists(st.lists(VALUES, min_size=n_columns, max_size=n_columns), min_size=0, max_size=max_rows)
    )


def lives(draw: st.DrawFn, n_rows: int) -> list[bool]:
    return draw(st.just([True] * n_rows) | st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))


@st.composite
def crosses(draw: st.DrawFn, complete: bool = True) -> Case:
    n_columns = draw(st.integers(1, 4))
    old = tables(draw, n_columns)
    batch = tables(draw, n_columns)
    return Case(old, lives(draw, len(old)), batch, draw(spaces(n_columns, complete)), n_columns)


@st.composite
def parts(draw: st.DrawFn) -> Case:
    """A batch that is consecutive rows of the table."""
    n_columns = draw(st.integers(1, 4))
    old = tables(draw, n_columns, 12)
    first = draw(st.integers(0, len(old)))
    batch = old[first : draw(st.integers(first, len(old)))]
    groups = draw(spaces(n_columns))
    return Case(old, lives(draw, len(old)), batch, groups, n_columns, True, first)


@given(crosses(), LIMITS)
def test_batch_with_old_rows(case: Case, limits: dict[str, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        settings(patch, **limits)
        check(case)


@given(parts(), LIMITS)
def test_rows_among_themselves(case: Case, limits: dict[str, int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        settings(patch, **limits)
        check(case)


@given(crosses(complete=False), LIMITS)
def test_groups_without_their_mirrored_ones(case: Case, limits: dict[str, int]) -> None:
    """The rule of a user may name t.A < s.B and nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        settings(patch, **limits)
        old, live, batch, groups = arrays(case)
        check_one(case, kernel.evidence_counts(old, live, batch, groups, case.n_words), case.pairs())
        j, r = np.array(case.pairs(), dtype=np.int64).reshape(-1, 2).T
        check_one(case, kernel.pairs_evidence_of(old, batch, groups, case.n_words, j, r), case.pairs())


@given(crosses(), st.data())
def test_listed_pairs(case: Case, data: st.DataObject) -> None:
    """Any list, with repetitions; dead rows are the caller's business."""
    places = [(j, r) for j in range(len(case.batch)) for r in range(len(case.old))]
    pairs = data.draw(st.lists(st.sampled_from(places), max_size=20)) if places else []
    old, _, batch, groups = arrays(case)
    j, r = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    check_one(case, kernel.pairs_evidence_of(old, batch, groups, case.n_words, j, r), pairs)


def skewed(n_columns: int, n_rows: int, seed: int) -> Rows:
    """Columns of very different cardinality, NULLs in every third."""
    rng = np.random.default_rng(seed)
    sizes = np.array([2, 3, 9, 40])[np.arange(n_columns) % 4]
    values = (rng.random((n_rows, n_columns)) ** 2 * sizes).astype(int)
    null = (rng.random(values.shape) < 0.1) & (np.arange(n_columns) % 3 == 0)
    return [
        [None if no else v for v, no in zip(*row, strict=True)]
        for row in zip(values.tolist(), null.tolist(), strict=True)
    ]


# Keys of 0 to 3 words, ends of pieces and words among them: (columns, every how many is unordered).
@pytest.mark.parametrize(
    ("width", "every"),
    [(0, 1), (1, 9), (8, 99), (9, 99), (11, 99), (15, 3), (32, 99), (33, 99), (70, 1), (75, 3)],
)
def test_widths(width: int, every: int) -> None:
    """More keys than a table starts with; blocks, prefixes and tables that grow."""
    n_rows, n_batch = (40, 20) if width > 15 else (90, 25)
    rows = skewed(width, n_rows + n_batch, width)
    old, batch = rows[n_batch:], rows[:n_batch]
    kinds = {(c, c): (c + 1) % every > 0 for c in range(width)}
    case = Case(old, [r % 7 > 0 for r in range(n_rows)], batch, numbered(list(kinds), kinds), width)
    with pytest.MonkeyPatch.context() as patch:
        settings(patch, block=32)
        assert check(case) > (1 if width < 2 else 20) - (width == 0)


def test_across_columns() -> None:
    """All pairs of five columns: 25 groups, 150 predicates."""
    rows = skewed(5, 60, 1)
    kinds = {(min(a, b), max(a, b)): True for a in range(5) for b in range(5)}
    groups = numbered([(a, b) for a in range(5) for b in range(5)], kinds)
    check(Case(rows[20:], [True] * 40, rows[:20], groups, 5))
    check(Case(rows[:30], [True] * 30, rows[10:30], groups, 5, True, 10))


def test_many_values() -> None:
    """More values than narrow codes: half ranks among those of the batch."""
    n = 40_000
    old = np.arange(1, n + 1, dtype=np.int32)[None]
    batch = np.array([[0, 1, 2, 39_999, 40_000, 80_001]], dtype=np.int32)
    zero = np.zeros(1, dtype=np.int32)
    groups = kernel.Groups(zero, zero, zero + 1, zero)
    found = kernel.evidence_counts(old, np.ones(n, dtype=np.bool_), np.stack([batch, batch], 1), groups, 1)
    less = sum(int((v < 2 * old).sum()) for v in batch[0, 1:].tolist())
    more = sum(int((v > 2 * old).sum()) for v in batch[0, 1:].tolist())
    expected = {0b001110: less + more, 0b110010: less + more, 0b101001: 4, 0b000010: 2 * n}
    assert dict(zip(found.masks[:, 0].tolist(), found.counts.tolist(), strict=True)) == expected


def test_no_rows() -> None:
    groups = numbered([(0, 0), (0, 1), (1, 0)], {(0, 0): True, (0, 1): False})
    rows: Rows = [[1, 2], [None, 1]]
    for old, live, batch in [([], [], rows), (rows, [True, True], []), (rows, [False, False], rows)]:
        assert check(Case(old, live, batch, groups, 2)) == 0


def test_nulls() -> None:
    """Two NULLs are equal, one satisfies != only; both directions are counted."""
    groups = [(0, 0, True, 0)]
    case = Case([[None], [7]], [True, True], [[None]], groups, 1)
    found = kernel.evidence_counts(*arrays(case), 1)
    assert dict(zip(found.masks[:, 0].tolist(), found.counts.tolist(), strict=True)) == {
        0b101001: 2,
        0b000010: 2,
    }


def test_the_symmetric_image() -> None:
    """Evidence of (s, t) is the symmetric image of that of (t, s), so a family is closed under it."""
    rows = skewed(4, 50, 3)
    kinds = {(a, b): a != 3 and b != 3 for a in range(4) for b in range(a, 4)}
    groups = numbered([(a, b) for a in range(4) for b in range(4)], kinds)
    found = kernel.evidence_counts(*arrays(Case(rows[10:], [True] * 40, rows[:10], groups, 4)), 2)
    at = {(left, right): first for left, right, _, first in groups}
    image: dict[int, int] = {}
    for left, right, ordered, first in groups:
        for i, mirrored in enumerate((0, 1, 4, 5, 2, 3) if ordered else (0, 1)):
            image[first + i] = at[right, left] + mirrored
    counts = dict(zip((a | b << 64 for a, b in found.masks.tolist()), found.counts.tolist(), strict=True))
    for mask, count in counts.items():
        assert counts[sum(1 << image[p] for p in range(128) if mask >> p & 1)] == count
