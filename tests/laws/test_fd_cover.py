"""The cover of functional dependencies: relevant agree sets and covers, repaired, equal those from scratch.

And from scratch they are the oracle's, who knows no agree sets. Only a few columns of wide tables vary.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from holdfast.core.cover import cover as cover_module
from holdfast.core.evidence.counted import CountedEvidence
from holdfast.core.evidence.kernels.fd_masks import breaks, maximal_for
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows.kernels.masks import full_mask, mask_of, n_words_for, positions_of
from holdfast.functional import fd_cover, fd_evidence
from holdfast.functional.fd_counted import tried_cover
from holdfast.functional.fd_cover import FdCover, Relevant, by_lhs, has_column, keyed
from holdfast.functional.fd_evidence import FdEvidence
from laws.registry import arrays_of, pairs_of, sets_of
from laws.test_cover import masks
from reference import fds as oracle
from reference.fds import FD
from reference.keys import Combination
from strategies import Filled, filled, shapes

SMALL = [0, 1, 2, 3, 4]
WIDE = [0, 1, 62, 63, 64, 69]
BOUNDS = st.sampled_from([0, 0, 1, 2, 3])
NULLS = st.sampled_from(["equal", "distinct"])
AgreeSets = set[Combination]


@st.composite
def agree_sets(draw: st.DrawFn) -> tuple[int, AgreeSets, AgreeSets]:
    """(columns, the agree sets before, those after). In wide tables all but a few columns agree always."""
    width = draw(st.sampled_from([5, 64, 70, 130]))
    free = [c for c in (SMALL if width == 5 else [*WIDE, width - 1]) if c < width]
    constant = frozenset(range(width)) - frozenset(free)
    one = st.frozensets(st.sampled_from(sorted(set(free)))).map(lambda s: s | constant)
    kept, gone, added = (draw(st.sets(one, max_size=8)) for _ in range(3))
    return width, kept | (gone - added), kept | added


def relevant_of(sets: AgreeSets, width: int) -> Relevant:
    return Relevant.of(masks(sets, width), width)


def columns_for(relevant: Relevant) -> dict[Combination, Combination]:
    """Which agree sets are relevant, each with the columns that it is maximal for."""
    assert relevant.masks.shape == relevant.columns.shape
    found = {
        frozenset(positions_of(m)): frozenset(positions_of(c))
        for m, c in zip(relevant.masks, relevant.columns, strict=True)
    }
    assert len(found) == len(relevant.masks)
    return found


def fds_of(cover: FdCover) -> set[FD]:
    found = [(frozenset(positions_of(m)), int(rhs)) for m, rhs in zip(cover.masks, cover.rhs, strict=True)]
    assert len(set(found)) == len(found) == len(cover)
    assert [rhs for _, rhs in found] == sorted(rhs for _, rhs in found)
    return set(found)


# -- which agree sets matter -------------------------------------------------------------------------------


@given(agree_sets())
@example((5, {frozenset(SMALL)}, set()))
@example((5, {frozenset()}, set()))
def test_relevant_agree_sets_are_maximal_for_a_column(case: tuple[int, AgreeSets, AgreeSets]) -> None:
    width, sets, _ = case
    expected = {
        s: frozenset(a for a in range(width) if a not in s and not any(s < t and a not in t for t in sets))
        for s in sets
    }
    ordered = sorted(sets, key=sorted)
    found = maximal_for(masks(ordered, width), full_mask(width))
    assert [frozenset(positions_of(m)) for m in found] == [expected[s] for s in ordered]
    assert columns_for(relevant_of(sets, width)) == {s: c for s, c in expected.items() if c}


@given(agree_sets())
@example((5, {frozenset({0, 1}), frozenset({0})}, {frozenset({0})}))
@example((5, {frozenset({0, 1}), frozenset({0, 2}), frozenset({0})}, {frozenset({0}), frozenset({0, 2})}))
def test_relevant_changed(case: tuple[int, AgreeSets, AgreeSets]) -> None:
    """Sets come and go at once: repaired, it is as from scratch."""
    width, before, after = case
    found = relevant_of(before, width).changed(
        masks(after - before, width), masks(before - after, width), masks(after, width)
    )
    assert columns_for(found) == columns_for(relevant_of(after, width))


@given(agree_sets())
def test_lacking(case: tuple[int, AgreeSets, AgreeSets]) -> None:
    """The maximal agree sets without a column, for each column."""
    width, sets, _ = case
    relevant = relevant_of(sets, width)
    before = relevant.masks.copy()
    for a in range(width):
        lacking = {s for s in sets if a not in s}
        top = {s for s in lacking if not any(s < t for t in lacking)}
        assert sets_of(relevant.lacking(a)) == {s | {a} for s in top}
    assert (relevant.masks == before).all(), "it is a value"


@given(agree_sets())
def test_relevant_arrays(case: tuple[int, AgreeSets, AgreeSets]) -> None:
    width, sets, _ = case
    relevant = relevant_of(sets, width)
    flat = {name: array.reshape(-1) for name, array in relevant.to_arrays().items()}
    assert columns_for(Relevant.from_arrays(flat, width)) == columns_for(relevant)


# -- the cover ---------------------------------------------------------------------------------------------


@given(filled(max_rows=9), NULLS, st.sampled_from([None, 1, 2]))
def test_the_cover_of_all_agree_sets_is_the_oracles(case: Filled, nulls: str, bound: int | None) -> None:
    n = case.shape.n_columns
    found, _ = arrays_of(pairs_of(dict(enumerate(case.rows)), nulls), n)
    cover = FdCover.of(Relevant.of(found, n), bound or 0)
    assert fds_of(cover) == oracle.minimal_fds(case.rows, n, nulls, bound)


@given(agree_sets(), BOUNDS, st.sampled_from([0, 2_000_000]), st.sampled_from([fd_cover.MOST_CHANGED, 1e9]))
@example((5, set(), {frozenset()}), 0, 0, 1e9)
@example((5, {frozenset()}, set()), 0, 0, 1e9)
@example((5, {frozenset({0, 1})}, {frozenset({0}), frozenset({0, 2})}), 0, 0, 1e9)
def test_repaired(case: tuple[int, AgreeSets, AgreeSets], bound: int, limit: int, most: float) -> None:
    """Evidence comes and goes at once: edges added, edges removed, enumeration; all are the same."""
    width, before, after = case
    old, new = relevant_of(before, width), relevant_of(after, width)
    cover = FdCover.of(old, bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cover_module, "REPAIR_LIMIT", limit)
        patch.setattr(fd_cover, "MOST_CHANGED", most)
        found = cover.repaired(old, new)
    expected = FdCover.of(new, bound)
    event(f"{len(expected.covers)} columns, {before == after}")
    assert fds_of(found) == fds_of(expected)
    assert found.max_lhs == bound
    assert cover.repaired(old, old) is cover
    if before == after:
        assert found is cover, "what does not change is not written again"


@given(agree_sets(), BOUNDS)
def test_one_by_one(case: tuple[int, AgreeSets, AgreeSets], bound: int) -> None:
    """A chain of small repairs ends where one large one does."""
    width, before, after = case
    sets, relevant = set(before), relevant_of(before, width)
    cover = FdCover.of(relevant, bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fd_cover, "MOST_CHANGED", 1e9)
        for one in sorted(before ^ after, key=sorted):
            sets ^= {one}
            added, gone = masks({one} & sets, width), masks({one} - sets, width)
            changed = relevant.changed(added, gone, masks(sets, width))
            cover, relevant = cover.repaired(relevant, changed), changed
    assert fds_of(cover) == fds_of(FdCover.of(relevant_of(after, width), bound))


@given(agree_sets(), BOUNDS)
def test_flat_arrays(case: tuple[int, AgreeSets, AgreeSets], bound: int) -> None:
    width, sets, _ = case
    cover = FdCover.of(relevant_of(sets, width), bound)
    arrays = cover.to_arrays()
    again = FdCover.of_flat(arrays["masks"], arrays["rhs"], width, bound)
    assert fds_of(again) == fds_of(cover)
    assert [sets_of(a.masks) for a in again.covers] == [sets_of(b.masks) for b in cover.covers]
    assert len({tuple(k) for k in cover.keyed.tolist()}) == len(cover)
    assert (keyed(cover.masks, cover.rhs) == cover.keyed).all()


@given(agree_sets())
def test_by_lhs(case: tuple[int, AgreeSets, AgreeSets]) -> None:
    width, sets, _ = case
    cover = FdCover.of(relevant_of(sets, width), 2)
    lhs, rhs, group = by_lhs(cover.masks, cover.rhs)
    assert len(sets_of(lhs)) == len(lhs)
    assert (lhs[group] == cover.masks).all()
    assert has_column(rhs[group], cover.rhs).all()
    assert not has_column(cover.masks, cover.rhs).any()
    found = {
        (frozenset(positions_of(left)), a)
        for left, right in zip(lhs, rhs, strict=True)
        for a in positions_of(right)
    }
    assert found == fds_of(cover)


@given(agree_sets(), st.data())
def test_breaks(case: tuple[int, AgreeSets, AgreeSets], data: st.DataObject) -> None:
    """An agree set breaks X -> A iff it contains X and lacks A."""
    width, sets, others = case
    columns = st.frozensets(st.sampled_from([0, 1, 2, width - 2, width - 1]), max_size=3)
    asked = [
        (data.draw(columns) if data.draw(st.booleans()) else s, data.draw(columns))
        for s in sorted(others, key=sorted)
    ]
    n_words = n_words_for(width)
    empty = np.empty((0, n_words), np.uint64)
    lhs = np.array([mask_of(left, n_words) for left, _ in asked], np.uint64) if asked else empty
    rhs = np.array([mask_of(right, n_words) for _, right in asked], np.uint64) if asked else empty
    ordered = sorted(sets, key=sorted)
    expected = [
        any(not oracle.satisfies(s, left, a) for left, right in asked for a in right) for s in ordered
    ]
    assert breaks(masks(ordered, width), lhs, rhs).tolist() == expected


# -- witnessed evidence ------------------------------------------------------------------------------------


SHAPES = shapes(types=("int", "text", "float"), pool_size=3)


@given(SHAPES, NULLS, st.sampled_from([0, 2, 4096]), st.data())
def test_evidence_of_parts(shape, nulls: str, reserve: int, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    """Merged part by part, the relevant agree sets are those of all pairs, however small the reserve."""
    rows = dict(enumerate(data.draw(shape.rows(max_size=9))))
    pairs = pairs_of(rows, nulls)
    order = data.draw(st.permutations(sorted(pairs, key=sorted)))
    cut = data.draw(st.integers(0, len(order)))
    evidence = FdEvidence.empty(shape.n_columns, WITNESSES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fd_evidence, "RESERVE", reserve)
        for part in (order[:cut], order[cut:]):
            evidence = evidence.merged(*arrays_of({s: pairs[s] for s in part}, shape.n_columns))
        assert len(evidence) <= len(evidence.relevant.masks) + reserve
    assert columns_for(evidence.relevant) == columns_for(
        Relevant.of(arrays_of(pairs, shape.n_columns)[0], shape.n_columns)
    )
    check_witnesses(evidence, rows, nulls)


def check_witnesses(evidence: FdEvidence, rows: dict[int, tuple], nulls: str) -> None:  # type: ignore[type-arg]
    """Every mask is proved by pairs of rows that are there, all different."""
    for mask, found in zip(evidence.masks, evidence.witnesses, strict=True):
        known = [tuple(pair) for pair in found.tolist() if pair[0] >= 0]
        assert known
        assert len(set(known)) == len(known)
        for a, b in known:
            assert oracle.agree_set(rows[a], rows[b], nulls) == frozenset(positions_of(mask))


@given(SHAPES, NULLS, st.data())
def test_evidence_without_rows(shape, nulls: str, data: st.DataObject) -> None:  # type: ignore[no-untyped-def]
    """What is left has living witnesses; orphans are the relevant sets that have none, with their columns."""
    rows = dict(enumerate(data.draw(shape.rows(max_size=9))))
    gone = data.draw(st.sets(st.sampled_from(sorted(rows)))) if rows else set()
    pairs = pairs_of(rows, nulls)
    evidence = FdEvidence.empty(shape.n_columns, WITNESSES).merged(*arrays_of(pairs, shape.n_columns))
    relevant = columns_for(evidence.relevant)
    after, orphans, columns = evidence.without_rows(np.array(sorted(gone), dtype=np.int64))
    check_witnesses(after, {i: row for i, row in rows.items() if i not in gone}, nulls)
    known = {s: p[:WITNESSES] for s, p in pairs.items()}
    dead = {s for s, p in known.items() if all(a in gone or b in gone for a, b in p)}
    assert sets_of(after.masks) == set(known) - dead
    found = {
        frozenset(positions_of(m)): frozenset(positions_of(c)) for m, c in zip(orphans, columns, strict=True)
    }
    assert found == {s: relevant[s] for s in dead if s in relevant}


@given(filled(max_rows=8), NULLS)
def test_evidence_arrays(case: Filled, nulls: str) -> None:
    n = case.shape.n_columns
    pairs = pairs_of(dict(enumerate(case.rows)), nulls)
    evidence = FdEvidence.empty(n, WITNESSES).merged(*arrays_of(pairs, n))
    flat = {name: array.reshape(-1) for name, array in evidence.to_arrays().items()}
    again = FdEvidence.from_arrays(flat, n, WITNESSES)
    assert (again.masks == evidence.masks).all()
    assert (again.witnesses == evidence.witnesses).all()
    assert again.n_columns == n


# -- the oracle itself -------------------------------------------------------------------------------------


@given(filled(max_rows=10, max_columns=4), NULLS)
def test_two_definitions_of_an_error(case: Filled, nulls: str) -> None:
    """Definition 6.1 counts pairs of rows, 6.2 agree sets; ours counts groups. All are the same."""
    n = case.shape.n_columns
    counted = oracle.agree_counts(case.rows, nulls)
    assert sum(counted.values()) == oracle.total_pairs(case.rows)
    exact = oracle.minimal_fds(case.rows, n, nulls)
    assert set(oracle.approximate_fds(case.rows, n, nulls, 0.0)) == exact
    for rhs in range(n):
        for lhs in ((), *((c,) for c in range(n) if c != rhs), tuple(c for c in range(n) if c != rhs)):
            violating = oracle.violating_pairs(case.rows, lhs, rhs, nulls)
            by_evidence = sum(k for s, k in counted.items() if not oracle.satisfies(s, lhs, rhs))
            together = oracle.agreeing_pairs(case.rows, {*lhs, rhs}, nulls)
            assert violating == by_evidence == oracle.agreeing_pairs(case.rows, lhs, nulls) - together
            assert oracle.holds(case.rows, lhs, rhs, nulls) == (violating == 0)
            removed = len(case.rows) - oracle.kept_rows(case.rows, lhs, rhs, nulls)
            assert (removed == 0) == (violating == 0)


@given(agree_sets(), st.sampled_from([1, 2]), st.booleans())
def test_trying_on_the_index_equals_hitting_sets(
    case: tuple[int, AgreeSets, AgreeSets], max_lhs: int, grows: bool
) -> None:
    """From scratch, and from the cover before agree sets were added."""
    width, before, after = case
    if grows:
        after = before | after
    known = FdCover.of(relevant_of(before, width), max_lhs) if grows else None
    counts = np.ones(len(after), dtype=np.int64)
    evidence, _, _ = CountedEvidence.empty(width).changed(masks(after, width), counts)
    tried = tried_cover(evidence, max_lhs, known)
    expected = FdCover.of(relevant_of(after, width), max_lhs)
    assert [sets_of(c.masks) for c in tried.covers] == [sets_of(c.masks) for c in expected.covers]
