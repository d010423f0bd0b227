"""Constraints that no index serves: all evidence that violates them is found, whichever rows are equal."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from holdfast.core.engine.engine import Engine
from holdfast.core.evidence import folded_scan, probe
from holdfast.core.evidence.probe_place import Access, Place
from holdfast.core.rows.kernels.masks import mask_of, n_words_for
from holdfast.core.words.predicate import Group, PredicateSpace
from pipeline.test_validation import live_rows, relation_of
from reference import predicate_evidence as reference
from reference.dcs import comparable

PAIRS = [("a", "a"), ("b", "b"), ("c", "c"), ("a", "b"), ("b", "a")]
SPACE = PredicateSpace(tuple(Group(left, right, ordered=left != "c") for left, right in PAIRS))
COLUMNS = [("abc".index(left), "abc".index(right)) for left, right in PAIRS]
ASKED = [
    (*columns, left != "c", at) for columns, (left, _), at in zip(COLUMNS, PAIRS, SPACE.first, strict=True)
]


@given(
    seed=st.integers(0, 2**32 - 1),
    folded_from=st.sampled_from([0, 6, 4096]),
    task_ns=st.sampled_from([1.0, 100.0, 1e9]),
    block=st.sampled_from([3, 1 << 21]),
    in_batch=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_violating_evidence(seed: int, folded_from: int, task_ns: float, block: int, in_batch: bool) -> None:
    """Of segments with equal rows, deleted ones among them, in parts; of all groups, and of some."""
    draw = np.random.default_rng(seed)
    n_rows = int(draw.integers(2, 24))
    columns = [draw.integers(0, n, n_rows).tolist() for n in draw.integers(1, 5, 3)]
    rows = pa.table({name: [v or None for v in column] for name, column in zip("abc", columns, strict=True)})
    groups = (
        {0, 1, 2, 3, 4} if draw.random() < 0.5 else set(draw.permutation(5)[: draw.integers(1, 5)].tolist())
    )
    groups |= {PAIRS.index(PAIRS[g][::-1]) for g in groups}
    predicates = [p for p, group in enumerate(SPACE.group_of) if group in groups]
    rules = [set(draw.choice(predicates, draw.integers(0, 3)).tolist()) for _ in range(2)]
    rules += [{SPACE.mirror[p] for p in rule} for rule in rules]
    n_words = n_words_for(SPACE.n_predicates)
    dcs = np.array([mask_of(rule, n_words) for rule in rules], dtype=np.uint64)
    with TemporaryDirectory(prefix="holdfast-scan-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(folded_scan, "FOLDED_FROM", folded_from)
        patch.setattr(probe, "TASK_NS", task_ns)
        patch.setattr(Place, "BLOCK", block)
        cut = int(draw.integers(0, n_rows))
        parts = [rows.slice(0, cut), rows.slice(cut)]
        relation = relation_of(Path(folder), parts, "equal", Engine(mode="inline"))
        ids = np.array(sorted(live_rows(relation)), dtype=np.int64)
        relation = relation.without_rows(ids[draw.random(n_rows) < 0.2])
        batch = relation.segments[-1:] if in_batch else relation.segments
        plan = probe.Plan(SPACE, dcs, (Access("scan", (), groups=tuple(sorted(groups))),), dcs)
        result = probe.probe(relation, plan, batch if in_batch else None)
        live = {i: tuple(map(comparable, row)) for i, row in live_rows(relation).items()}
        new = live_rows(replace(relation, segments=batch)).keys()
    of_pair = {
        (t, s): reference.evidence(live[t], live[s], ASKED) for t, s in permutations(live, 2) if {t, s} & new
    }
    violating = {mask for mask in of_pair.values() if any(all(mask >> p & 1 for p in rule) for rule in rules)}
    assert result.complete
    assert {sum(int(w) << 64 * i for i, w in enumerate(mask)) for mask in result.masks} == violating
    for mask, witnesses in zip(result.masks, result.witnesses.tolist(), strict=True):
        proofs = [(t, s) for t, s in witnesses if t >= 0]
        assert proofs
        assert {of_pair[pair] for pair in proofs} == {sum(int(w) << 64 * i for i, w in enumerate(mask))}
    event("all groups" if len(groups) == 5 else "some groups")
    event("equal rows" if len(set(live.values())) < len(live) else "all different")
