"""The cover of denial constraints equals brute force, and its repairs equal a fresh search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from holdfast.core.cover.kernels import repair as repairs
from holdfast.core.cover.kernels import search as kernel
from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.rows.kernels.masks import (
    Masks,
    mask_of,
    maximal_masks,
    n_words_for,
    popcounts,
    positions_of,
)
from reference import dc_hitting_sets as reference

ORDERED = (0, 0, True)
UNORDERED = (1, 1, False)
ACROSS = [(2, 3, True), (3, 2, True)]
SPACES = [
    [ORDERED],
    [UNORDERED, (4, 4, False), (5, 5, False)],
    [ORDERED, UNORDERED],
    [ORDERED, (6, 6, True)],
    ACROSS,
    [UNORDERED, *ACROSS],
    [(2, 3, False), ORDERED, (3, 2, False), UNORDERED],
]
OUTCOMES = ["<", "=", ">", "null"]


def space_of(predicates: reference.Predicates, general: bool) -> Space:
    return Space(
        np.array([g for g, _ in predicates.predicates], dtype=np.int32),
        np.array([reference.OPERATORS.index(op) for _, op in predicates.predicates], dtype=np.int32),
        np.array(predicates.mirror, dtype=np.int32),
        general,
    )


def family_of(sets: list[reference.Dc], n_words: int) -> Masks:
    return np.array([mask_of(s, n_words) for s in sets], dtype=np.uint64).reshape(len(sets), n_words)


def tuples_of(family: Masks) -> list[tuple[int, ...]]:
    return sorted(positions_of(mask) for mask in family)


@dataclass(frozen=True)
class Case:
    """Outcomes per group, for old evidence and new."""

    groups: list[reference.Group]
    old: list[list[str]]
    new: list[list[str]]
    general: bool
    max_size: int

    @property
    def predicates(self) -> reference.Predicates:
        return predicates_of(tuple(self.groups))


@cache
def predicates_of(groups: tuple[reference.Group, ...]) -> reference.Predicates:
    return reference.Predicates(groups)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    groups = draw(st.sampled_from(SPACES))
    outcomes = st.lists(st.sampled_from(OUTCOMES), min_size=len(groups), max_size=len(groups))
    old = draw(st.lists(outcomes, max_size=12))
    new = draw(st.lists(outcomes, max_size=5))
    return Case(groups, old, new, draw(st.booleans()), draw(st.integers(-1, 4)))


@settings(deadline=None, max_examples=300)
@given(cases(), st.integers(0, 3))
@example(Case([ORDERED], [], [], True, 0), 0)
@example(Case([ORDERED], [["<"]], [], False, 1), 0)
@example(Case([ORDERED], [["="]], [], True, 1), 0)
@example(Case([ORDERED], [["null"]], [], True, 0), 1)
@example(Case([ORDERED, UNORDERED], [["<", "="], ["=", "<"]], [], False, 0), 1)
def test_search_equals_brute_force(case: Case, first: int) -> None:
    """Of all evidences at once, or of the first so many and those that join them."""
    predicates = case.predicates
    evidences = [predicates.evidence(outcomes) for outcomes in case.old]
    space = space_of(predicates, case.general)
    n_words = n_words_for(len(predicates.predicates))
    with pytest.MonkeyPatch.context() as patch:
        if first:
            patch.setattr(kernel, "MANY_EVIDENCES", 0)
            patch.setattr(kernel, "MANY_BOUNDED", 0)
            patch.setattr(kernel, "FIRST_EVIDENCES", first)
            patch.setattr(kernel, "MOST_JOINING", 0)
            patch.setattr(kernel, "SETS_CHUNK", 2)
        found = kernel.minimal_dcs(family_of(evidences, n_words), space, case.max_size)
    expected = reference.covers(predicates, evidences, case.general, case.max_size)
    event(f"{len(expected)} DCs")
    assert tuples_of(found) == expected
    assert found.tolist() == sorted(found.tolist(), key=lambda m: (sum(w.bit_count() for w in m), m))


@settings(deadline=None, max_examples=300)
@given(cases(), st.sampled_from([0, 1, 1 << 40]))
@example(Case([ORDERED], [], [["<"]], True, 0), 0)
@example(Case([ORDERED], [["<"]], [], True, 0), 0)
@example(Case([ORDERED, UNORDERED], [["<", "="]], [["=", "<"], ["null", "="]], True, 1), 0)
def test_repairs_equal_a_fresh_search(case: Case, limit: int) -> None:
    predicates = case.predicates
    space = space_of(predicates, case.general)
    n_words = n_words_for(len(predicates.predicates))
    old, new = (
        family_of([predicates.evidence(outcomes) for outcomes in part], n_words)
        for part in (case.old, case.new)
    )
    both = np.concatenate([old, new])
    before = kernel.minimal_dcs(old, space, case.max_size)
    after = kernel.minimal_dcs(both, space, case.max_size)
    event(f"{len(before) - len(after)} DCs fewer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(repairs, "BROKEN_SHARE", limit)
        patch.setattr(repairs, "THREAD_ROOTS", 1 + limit)
        patch.setattr(repairs, "THREAD_EDGES", 1 + limit)
        patch.setattr(repairs, "THREAD_SETS", 0)
        patch.setattr(repairs, "MAX_REMAINDERS", min(limit, 64))
        added = repairs.add_evidences(before, old, new, space, case.max_size)
        assert added.tolist() == after.tolist()
        maximal = old[maximal_masks(old)]  # Has the same cover.
        assert repairs.add_evidences(before, maximal, new, space, case.max_size).tolist() == after.tolist()
        removed = repairs.remove_evidences(after, old, new, space, case.max_size)
        assert removed.tolist() == before.tolist()


@settings(deadline=None, max_examples=300)
@given(cases(), st.data(), st.sampled_from([1, 2, 4]), st.booleans())
def test_a_part_of_the_evidence_is_enough_for_repairs(
    case: Case, data: st.DataObject, first: int, eager: bool
) -> None:
    """Under a bound: evidence comes and goes, several times, and cover and support are those of all of it."""
    predicates, bound = case.predicates, case.max_size or 3
    space = space_of(predicates, case.general)
    n_words = n_words_for(len(predicates.predicates))
    everything = list({predicates.evidence(outcomes): None for outcomes in (*case.old, *case.new)})
    present = set(range(len(case.old))) & set(range(len(everything)))

    def family(chosen: set[int]) -> Masks:
        return family_of([everything[i] for i in sorted(chosen)], n_words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "MANY_BOUNDED", 0)
        patch.setattr(kernel, "FIRST_EVIDENCES", first)
        patch.setattr(kernel, "MOST_JOINING", 0 if eager else 1 << 16)
        patch.setattr(kernel, "SETS_CHUNK", 1 if eager else 1 << 10)
        patch.setattr(repairs, "BROKEN_SHARE", 1)
        cover, support = kernel.supported_dcs(family(present), space, bound)
        for _ in range(3):
            if support is None:  # of no evidence, or of a bound of one predicate
                break
            after = data.draw(st.sets(st.integers(0, len(everything) - 1))) if everything else set()
            came, went = family(after - present), family(present - after)
            cover, support = repairs.repair_supported(cover, support, family(after), came, went, space, bound)
            present = after
            expected = reference.covers(predicates, [everything[i] for i in after], case.general, bound)
            assert tuples_of(cover) == expected
            assert {m.tobytes() for m in support} <= {m.tobytes() for m in family(after)}
            of_support = [frozenset(positions_of(m)) for m in support]
            assert reference.covers(predicates, of_support, case.general, bound) == expected


def table_evidence(
    seed: int, n_rows: int, groups: list[reference.Group]
) -> tuple[reference.Predicates, Masks]:
    """The evidence of one direction of all pairs of some random rows, many ties, some NULLs."""
    rng = np.random.default_rng(seed)
    n_columns = 1 + max(max(a, b) for a, b, _ in groups)
    values = rng.integers(-1, 5, size=(n_rows, n_columns))
    predicates = reference.Predicates(groups)

    def outcome(a: int, b: int) -> str:
        if a == b:
            return "="
        if -1 in (a, b):
            return "null"
        return "<" if a < b else ">"

    evidences = {
        predicates.evidence([outcome(t[a], s[b]) for a, b, _ in groups])
        for i, t in enumerate(values.tolist())
        for s in values.tolist()[:i]
    }
    ordered = sorted(evidences, key=sorted)
    return predicates, family_of(ordered, n_words_for(len(predicates.predicates)))


WIDE = [(c, c, c % 3 == 0) for c in range(24)] + [(0, 3, True), (3, 0, True)]
NARROW = [(c, c, c < 3) for c in range(6)] + [(0, 1, True), (1, 0, True)]


@pytest.mark.parametrize(
    ("groups", "n_rows", "general", "max_size"),
    [
        (groups, n_rows, general, max_size)
        for groups, n_rows in ((NARROW, 16), (WIDE, 6))
        for general in (True, False)
        for max_size in (0, 2, 3)
        if (groups, general, max_size) != (WIDE, False, 0)  # more sets than memory holds
    ],
)
def test_larger_spaces(
    groups: list[reference.Group],
    n_rows: int,
    general: bool,
    max_size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over 64 predicates, hundreds of DCs and more; laws instead of brute force."""
    predicates, evidences = table_evidence(7, n_rows, groups)
    space = space_of(predicates, general)
    cover = kernel.minimal_dcs(evidences, space, max_size)
    assert len(cover) > 10 or max_size > 0
    assert not any(predicates.trivial(frozenset(dc)) for dc in tuples_of(cover))
    images = family_of([predicates.mirrored(frozenset(positions_of(e))) for e in evidences], cover.shape[1])
    for direction in (evidences, images):
        for evidence in direction:
            assert ((cover & ~evidence) != 0).any(axis=1).all()
    if groups is NARROW:
        unbounded = kernel.minimal_dcs(evidences, space)
        bounded = unbounded[popcounts(unbounded) <= max_size] if max_size else unbounded
        assert cover.tolist() == bounded.tolist()

    few = len(evidences) - 3
    part = kernel.minimal_dcs(evidences[:few], space, max_size)
    monkeypatch.setattr(repairs, "BROKEN_SHARE", 1)
    added = repairs.add_evidences(part, evidences[:few], evidences[few:], space, max_size)
    assert added.tolist() == cover.tolist()
    back = repairs.remove_evidences(cover, evidences[:few], evidences[few:], space, max_size)
    assert back.tolist() == part.tolist()


def test_search_resumes_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps for one vertex and room for few sets at a time give the same cover."""
    predicates, evidences = table_evidence(3, 12, NARROW)
    space = space_of(predicates, True)
    expected = kernel.minimal_dcs(evidences, space).tolist()
    monkeypatch.setattr(kernel, "LOOKS_PER_CALL", 1)
    monkeypatch.setattr(kernel, "FIRST_CAPACITY", 1)
    assert kernel.minimal_dcs(evidences, space).tolist() == expected
    numbers: list[int] = []
    assert kernel.minimal_dcs(evidences, space, watch=numbers.append).tolist() == expected
    assert numbers == sorted(numbers)
    assert len(numbers) > 2

    def stop(n_found: int) -> None:
        if n_found:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        kernel.minimal_dcs(evidences, space, watch=stop)
    assert len(expected) > 10


def test_the_watch_is_asked_while_very_many_evidences_are_made_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    predicates, evidences = table_evidence(3, 12, NARROW)
    monkeypatch.setattr(kernel, "MANY_EVIDENCES", 0)
    monkeypatch.setattr(kernel, "EVIDENCES_CHUNK", len(evidences) // 3)
    monkeypatch.setattr(kernel, "searched", pytest.fail)
    calls = iter([None, None])

    def stop(n_found: int) -> None:
        if next(calls, TimeoutError):
            raise TimeoutError

    with pytest.raises(TimeoutError):
        kernel.minimal_dcs(evidences, space_of(predicates, True), watch=stop)


def test_general_dcs_lose_nothing() -> None:
    """Every set-minimal DC is a general one made stricter."""
    predicates, evidences = table_evidence(5, 14, [(0, 0, True), (1, 1, True), (2, 2, False)])
    general = kernel.minimal_dcs(evidences, space_of(predicates, True))
    sets = kernel.minimal_dcs(evidences, space_of(predicates, False))
    assert len(general) <= len(sets)

    def loose(dc: tuple[int, ...]) -> set[tuple[int, str]]:
        said = [predicates.predicates[i] for i in dc]
        return {(g, o) for g, op in said for o in looser_ops(predicates, g, op)}

    shown = [loose(dc) for dc in tuples_of(general)]
    shown += [loose(tuple(predicates.mirrored(frozenset(dc)))) for dc in tuples_of(general)]
    for dc in tuples_of(sets):
        assert any(parts <= loose(dc) for parts in shown)


def looser_ops(predicates: reference.Predicates, group: int, op: str) -> set[str]:
    return reference.LOOSER.get(op, {op}) if predicates.groups[group][2] else {op}
