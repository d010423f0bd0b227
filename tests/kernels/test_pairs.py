"""The evidence of pairs equals the plain-Python reference: masks, witnesses, and their order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.core.evidence.kernels import pairs
from holdfast.core.rows.kernels import encode, locating
from holdfast.core.rows.kernels.masks import positions_of
from reference import pairs as reference

WIDTHS = (1, 2, 5, 63, 64, 65, 130)
Evidence = reference.Evidence


def evidence_of(masks: np.ndarray, witnesses: np.ndarray) -> Evidence:
    """A kernel's evidence as the reference writes it; checks the shape on the way."""
    assert (masks.dtype, witnesses.dtype) == (np.uint64, np.int64)
    assert witnesses.shape == (len(masks), pairs.WITNESSES, 2)
    found: Evidence = {}
    for mask, witness in zip(masks, witnesses, strict=True):
        real = [(a, b) for a, b in witness.tolist() if a >= 0]
        assert witness.tolist() == [list(p) for p in real] + [[-1, -1]] * (pairs.WITNESSES - len(real))
        bits = sum(1 << c for c in positions_of(mask))
        assert bits not in found, "masks are all different"
        found[bits] = real
    return found


@st.composite
def code_matrices(draw: st.DrawFn, min_rows: int = 1, max_rows: int = 12) -> np.ndarray:
    """int32[n_columns, n_rows]: a few columns with any codes, the others copies or constants."""
    width = draw(st.sampled_from(WIDTHS))
    n_rows = draw(st.integers(min_rows, max_rows))
    column = st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)
    some = draw(st.lists(column, min_size=1, max_size=min(width, 5)))
    which = draw(st.lists(st.integers(0, len(some) - 1), min_size=width, max_size=width))
    return np.array([some[i] for i in which], dtype=np.int32).reshape(width, n_rows)


@given(code_matrices(min_rows=2), st.booleans(), st.data())
def test_pairs_evidence(codes: np.ndarray, nulls_distinct: bool, data: st.DataObject) -> None:
    n_rows = codes.shape[1]
    pair = st.tuples(st.integers(0, n_rows - 1), st.integers(0, n_rows - 1)).filter(lambda p: p[0] != p[1])
    drawn = np.array(data.draw(st.lists(pair, max_size=40)), dtype=np.int64).reshape(-1, 2)
    found = evidence_of(*pairs.pairs_evidence(codes, drawn[:, 0], drawn[:, 1], nulls_distinct))
    expected = reference.pairs_evidence(codes.tolist(), *drawn.T.tolist(), nulls_distinct, pairs.WITNESSES)
    assert list(found.items()) == list(expected.items())


@pytest.mark.parametrize("width", [12, 70])
def test_many_agree_sets(width: int) -> None:
    """More different masks than the table starts with."""
    rng = np.random.default_rng(width)
    codes = rng.integers(0, 2, (width, 400)).astype(np.int32)
    left, right = rng.integers(0, 400, (2, 3000))
    left, right = left[left != right], right[left != right]
    found = evidence_of(*pairs.pairs_evidence(codes, left, right, True))
    expected = reference.pairs_evidence(codes.tolist(), left.tolist(), right.tolist(), True, pairs.WITNESSES)
    assert found == expected
    assert len(found) > 500


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 50), st.integers(0, 9))
def test_sampled_pairs_share_a_value(column: list[int], n_pairs: int, seed: int) -> None:
    codes = np.array(column, dtype=np.int32)
    _, positions = encode.postings(codes, 5)
    left, right = pairs.sample_pairs(codes, positions, n_pairs, np.random.default_rng(seed))
    assert len(left) == len(right) <= n_pairs
    assert (codes[left] == codes[right]).all()
    assert (left < right).all()
    if len(column) - 1 <= n_pairs:
        # The sample is the whole: every row that has a successor with its value is in a pair.
        assert set(left.tolist()) == {i for i, v in enumerate(column) if v in column[i + 1 :]}


@dataclass(frozen=True)
class Lookup:
    """Old rows with an index on some columns, and a batch in their codes."""

    codes: np.ndarray  # int32[n_columns, n]
    live: np.ndarray
    translated: np.ndarray  # int32[n_columns, n_batch]
    indexed: list[int]
    probes: np.ndarray  # int32[n_probes, *], places in `indexed`
    own: bool

    @property
    def lists(self) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        """(starts, ends, positions) of the batch rows in each index."""
        starts, ends, positions = [], [], []
        for c in self.indexed:
            offsets, rows = encode.postings(self.codes[c], 9)
            code = np.maximum(self.translated[c], 0)
            starts.append(offsets[code])
            ends.append(offsets[code + 1])
            positions.append(rows)
        return np.array(starts), np.array(ends), positions

    @property
    def probe_columns(self) -> np.ndarray:
        return np.array([*self.indexed, -1], dtype=np.int32)[self.probes]


@st.composite
def lookups(draw: st.DrawFn) -> Lookup:
    codes = draw(code_matrices())
    width, n_rows = codes.shape
    own = draw(st.booleans())
    if own:
        translated = codes.copy()
        if draw(st.booleans()):
            translated[codes == 0] = -1  # NULLs are distinct
    else:
        columns = [draw(st.integers(0, n_rows - 1)) for _ in range(draw(st.integers(1, 5)))]
        translated = codes[:, columns].copy()
        for _ in range(draw(st.integers(0, 6))):  # values that differ, or that the old rows do not have
            at = draw(st.integers(0, width - 1)), draw(st.integers(0, len(columns) - 1))
            translated[at] = draw(st.integers(-1, 4))
    live = np.array(draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)))
    indexed = sorted(draw(st.sets(st.integers(0, width - 1), min_size=1, max_size=4)))
    sets = st.sets(st.integers(0, len(indexed) - 1), min_size=1)
    chosen = draw(st.lists(sets, min_size=1, max_size=4))
    probes = np.full((len(chosen), max(map(len, chosen))), -1, dtype=np.int32)
    for i, members in enumerate(chosen):
        probes[i, : len(members)] = sorted(members)
    return Lookup(codes, live, translated, indexed, probes, own)


@given(lookups())
def test_choose_lists(case: Lookup) -> None:
    starts, ends, _ = case.lists
    translated = case.translated[case.indexed]
    chosen = pairs.choose_lists(starts, ends, translated, case.probes)
    expected = reference.choose_lists(
        starts.tolist(), ends.tolist(), translated.tolist(), case.probes.tolist()
    )
    assert chosen.tolist() == expected
    walked = [
        sum(ends[i][b] - starts[i][b] for b, of_row in enumerate(expected) if i in of_row)
        for i in range(len(starts))
    ]
    assert pairs.count_entries(starts, ends, chosen).tolist() == walked


@given(lookups(), st.data())
def test_probe(case: Lookup, data: st.DataObject) -> None:
    starts, ends, positions = case.lists
    rhs = np.full((len(case.probes), 3), -1, dtype=np.int32)
    for i in range(len(rhs)):
        columns = data.draw(st.sets(st.integers(0, len(case.codes) - 1), max_size=3))
        rhs[i, : len(columns)] = sorted(columns)
    chosen = pairs.choose_lists(starts, ends, case.translated[case.indexed], case.probes)
    # Words of few bits: rows that differ have equal ones.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "WORD_BITS", data.draw(st.sampled_from([1, 2, 64])))
        patch.setattr(pairs, "WORD_COLUMNS", data.draw(st.sampled_from([1, 2, 16])))
        words = data.draw(
            st.sampled_from(
                [pairs.NO_WORDS, pairs.row_words(case.codes, case.translated, case.probe_columns)]
            )
        )
    found: Evidence = {}
    for i, column in enumerate(case.indexed):
        masks, witnesses = pairs.probe(
            case.codes,
            case.live,
            case.translated,
            positions[i],
            starts[i],
            ends[i],
            chosen,
            i,
            column,
            case.probe_columns,
            rhs,
            case.own,
            words,
        )
        here = evidence_of(masks, witnesses)
        expected = reference.probe(
            case.codes.tolist(),
            case.live.tolist(),
            case.translated.tolist(),
            (chosen == i).tolist(),
            column,
            case.probe_columns.tolist(),
            rhs.tolist(),
            case.own,
            pairs.WITNESSES,
        )
        assert list(here.items()) == list(expected.items())
        found |= here
    # Together the indexes find the agree sets of all pairs that agree on the columns of some probe.
    everything = set()
    for b in range(case.translated.shape[1]):
        for r in range(b if case.own else case.codes.shape[1]):
            agreed = case.codes[:, r] == case.translated[:, b]
            if case.live[r] and any(
                all(agreed[c] for c in p if c >= 0)
                and (right[0] < 0 or not all(agreed[c] for c in right if c >= 0))
                for p, right in zip(case.probe_columns, rhs, strict=True)
            ):
                everything.add(sum(1 << c for c in np.flatnonzero(agreed).tolist()))
    assert set(found) == everything


@given(lookups(), st.data())
def test_contradicted(case: Lookup, data: st.DataObject) -> None:
    starts, ends, positions = case.lists
    rhs = sorted(data.draw(st.sets(st.integers(0, len(case.codes) - 1))))
    for i, column in enumerate(case.indexed):
        found = pairs.contradicted(
            case.codes,
            case.live,
            case.translated,
            positions[i],
            starts[i],
            np.where(case.translated[column] < 0, starts[i], ends[i]).astype(np.int32),
            np.array(rhs, dtype=np.int32),
        )
        lists = [case.codes.tolist(), case.live.tolist(), case.translated.tolist()]
        assert found.tolist() == reference.contradicted(*lists, column, rhs)


@given(lookups(), st.sampled_from([0, 1, 3, 2**64 - 1]), st.data())
def test_locate(case: Lookup, hash_bits: int, data: st.DataObject) -> None:
    """All live rows equal to a query, also where hashes collide (all of them, with no bits kept)."""
    width = len(case.codes)
    columns = sorted(data.draw(st.sets(st.integers(0, width - 1), min_size=1)))
    locator = data.draw(st.lists(st.sampled_from(columns), min_size=1, unique=True))

    def hashes(codes: np.ndarray) -> np.ndarray:
        found = np.zeros(codes.shape[1], dtype=np.uint64)
        dictionary = np.arange(1, 10, dtype=np.uint64)
        for c in locator:
            encode.mix_column(found, dictionary, np.where(codes[c] < 0, 9, codes[c]).astype(np.int32))
        return found & np.uint64(hash_bits)

    own = hashes(case.codes)
    order = np.argsort(own, kind="stable").astype(np.int32)
    query, row = locating.locate(
        own[order],
        order,
        hashes(case.translated),
        case.codes,
        case.live,
        case.translated,
        np.array(columns, dtype=np.int32),
    )
    found = list(zip(query.tolist(), row.tolist(), strict=True))
    assert len(found) == len(set(found))
    expected = reference.locate(case.codes.tolist(), case.live.tolist(), case.translated.tolist(), columns)
    assert set(found) == expected


def test_locate_finds_more_rows_than_it_has_room_for() -> None:
    codes = np.ones((2, 300), dtype=np.int32)
    hashes, order = np.full(300, 7, np.uint64), np.arange(300, dtype=np.int32)
    columns = np.array([0, 1], dtype=np.int32)
    query, row = locating.locate(
        hashes, order, hashes[:1], codes, np.ones(300, np.bool_), codes[:, :1], columns
    )
    assert query.tolist() == [0] * 300
    assert row.tolist() == list(range(300))
