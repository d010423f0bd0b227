"""Witnessed evidence on disk: what was written whole, with the changes of steps, is what they made of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from holdfast.core.evidence import evidence_files
from holdfast.core.evidence.dc_evidence import DcEvidence
from holdfast.core.evidence.evidence_files import load_witnessed
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.store.bundle import write_bundle
from holdfast.core.store.files import FileRef
from holdfast.core.store.root import Root, root_of
from holdfast.core.words.predicate import Group, PredicateSpace
from holdfast.denial.dc_cover import DcCover
from holdfast.denial.dc_state import DcState, kernel_space, load_evidence, save
from holdfast.errors import DamagedFileError
from laws.registry import Pairs, arrays_of, sets_of
from laws.test_evidence import PAIRS, WIDTH

N_WORDS = n_words_for(WIDTH)
GONE = st.sets(st.integers(0, 12), max_size=5)
STEPS = st.lists(st.lists(PAIRS | GONE, max_size=3), max_size=4)
Told = dict[frozenset[int], list[list[int]]]


def told(evidence: DcEvidence) -> Told:
    columns = [next(iter(sets_of(mask[None, :]))) for mask in evidence.masks]
    sets_of(evidence.masks)  # all different
    return dict(zip(columns, evidence.witnesses.tolist(), strict=True))


def after(evidence: DcEvidence, change: Pairs | set[int]) -> DcEvidence:
    if isinstance(change, dict):
        return evidence.merged(*arrays_of(change, WIDTH))
    return evidence.without_rows(np.array(sorted(change), dtype=np.int64))[0]


def written(root: Root, evidence: DcEvidence, name: str) -> FileRef:
    """All of it, or what the last step has changed."""
    arrays = evidence.to_arrays()
    if evidence.changed is not None:
        masks, witnesses = evidence.delta()
        arrays = {"masks": masks, "witnesses": witnesses, "n": np.array([len(evidence)])}
    return write_bundle(root, name, arrays, {"holdfast": "comparisons"})


@given(PAIRS, STEPS)
def test_whole_and_changes(part: Pairs, steps: list[list[Pairs | set[int]]]) -> None:
    with TemporaryDirectory() as folder:
        root = root_of(folder)
        evidence = after(DcEvidence.empty(N_WORDS, WITNESSES), part)
        assert evidence.changed is None
        whole, deltas, expected = written(root, evidence, "whole"), [], [told(evidence)]
        for i, step in enumerate(steps):
            evidence = evidence.afresh()
            before = evidence
            for change in step:
                evidence = after(evidence, change)
            assert told(before) == expected[-1], "a step makes arrays of its own"
            changed, _ = evidence.delta()
            now, was = told(evidence), told(before)
            different = {mask for mask in now.keys() | was.keys() if now.get(mask) != was.get(mask)}
            assert different <= sets_of(changed)
            deltas.append(written(root, evidence, f"delta-{i}"))
            expected.append(now)
        for n in range(len(deltas) + 1):
            loaded = load_witnessed(root, "comparisons", whole, deltas[:n], N_WORDS, WITNESSES)
            assert told(loaded) == expected[n]


@given(
    PAIRS,
    STEPS,
    st.fixed_dictionaries(
        {
            "DELTAS_FROM": st.sampled_from([0, 3, 10**6]),
            "DELTA_SHARE": st.sampled_from([0.5, 1e9]),
            "DELTAS_SHARE": st.sampled_from([0.5, 1.0, 1e9]),
            "MAX_WITNESS_DELTAS": st.sampled_from([1, 2, 32]),
        }
    ),
)
def test_what_commits_name(
    part: Pairs, steps: list[list[Pairs | set[int]]], limits: dict[str, float]
) -> None:
    """Whether a step changes masks, witnesses alone or nothing, and whatever is written of it."""
    space = PredicateSpace(tuple(Group(f"c{i}", f"c{i}", ordered=True) for i in range(WIDTH // 6 + 1)))
    evidence = after(DcEvidence.empty(N_WORDS, WITNESSES), part)
    known = DcState(space, evidence, DcCover(evidence.masks[:0], kernel_space(space)))
    assert known.n_words == N_WORDS
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(evidence_files, name, value)
        root = root_of(folder)
        ref = save(root, "t", known, None, None)
        for step in steps:
            before, known = known, known.afresh()
            for change in step:
                assert isinstance(known.evidence, DcEvidence)
                known = replace(known, evidence=after(known.evidence, change))
            assert isinstance(known.evidence, DcEvidence)
            named, ref = ref, save(root, "t", known, before, ref)
            loaded = load_evidence(root, ref)
            assert isinstance(loaded, DcEvidence)
            assert told(loaded) == told(known.evidence)
            if not step:
                assert (ref.evidence, ref.deltas) == (named.evidence, named.deltas)
            if len(ref.deltas) > len(named.deltas):
                event("a change was written")
                before_it = sum(delta.length for delta in named.deltas)
                assert before_it <= limits["DELTAS_SHARE"] * ref.evidence.length


def test_a_change_that_does_not_go_with_the_whole(tmp_path: Path) -> None:
    root = root_of(str(tmp_path))
    evidence = after(DcEvidence.empty(N_WORDS, WITNESSES), {frozenset({0}): [(1, 2)]})
    whole = written(root, evidence, "whole")
    grown = after(evidence.afresh(), {frozenset({1}): [(1, 3)]})
    written(root, grown, "between")
    last = written(root, after(grown.afresh(), {frozenset({5}): [(2, 3)]}), "last")
    with pytest.raises(
        DamagedFileError, match="'last' of the workspace does not go with 'whole': 2 masks come"
    ):
        load_witnessed(root, "comparisons", whole, [last], N_WORDS, WITNESSES)
