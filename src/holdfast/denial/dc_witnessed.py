"""Denial constraints on witnessed evidence: cover, probe, validate (IncDC, sections 4 and 8; and deletes).

    propose a cover from the evidence -> look for pairs that violate it -> what is found is evidence

- `discover` starts the loop from a sample's evidence, and looks at the whole table.
- `insert` looks for pairs of the batch with all rows that violate the cover. Their evidence alone repairs
  it: a new constraint contains a broken one, so a pair that violates it has been found (Proposition 1).
- `delete` drops the witnesses of deleted rows. Evidence left without one is looked for: all evidence is
  known, so a constraint that only the lost evidence violates tells whether any pair of rows still has it.

No pass over all pairs of rows is ever made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.engine.job_progress import Progress
from holdfast.core.evidence.dc_evidence import DcEvidence
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.probe import Plan, ViolatingEvidence, evidence_of, probe
from holdfast.core.evidence.probe_place import Access
from holdfast.core.evidence.proofs import Proofs
from holdfast.core.rows.kernels.mask_lookup import indices_in
from holdfast.core.rows.kernels.masks import contains_any, mask_of, popcounts, without
from holdfast.core.rows.kernels.operators import EQ
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.row_sample import sample_rows
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import OrderKey, SegmentRef
from holdfast.core.store.root import Root
from holdfast.core.words.predicate import PredicateSpace
from holdfast.core.words.schema import Schema
from holdfast.denial.access.access import Statistics
from holdfast.denial.access.plan import (
    WholePlan,
    for_whole_table,
    indexes_of,
    kept_accesses,
    plan,
    sampled_evidence,
    statistics_of,
)
from holdfast.denial.access.selection import select
from holdfast.denial.budget import Search, searched
from holdfast.denial.constraints import KeptAccess, dcs_of
from holdfast.denial.dc_cover import DcCover, both_ways, closures, mirrored
from holdfast.denial.dc_state import DcOptions, DcState, kernel_space, n_words_of
from holdfast.denial.violations import verify
from holdfast.denial.written_rules import as_rule

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Rows whose pairs are the first evidence: 7e7 pairs, half a second.
SAMPLE_ROWS = 12_000
# Pairs that share a value, looked at for each column to begin with; pairs of an access in the first round.
SAMPLED_PAIRS = 50_000
ROUND_PAIRS = 200_000
LIMITED_ROUNDS = 1
# Up to so many rows everything is scanned for: faster than to choose accesses.
SCANNED_ROWS = 5_000
# Constraints that no kept access serves: if they grow by this factor, and this share of all, accesses are
# chosen anew.
UNSERVED_SHARE = 0.05
SCANNED_GROWTH = 1.5


def discover(
    relation: Relation,
    space: PredicateSpace,
    options: DcOptions,
    progress: Progress | None = None,
    *,
    chosen: bool,
) -> DcState:
    """The constraints of a relation from scratch, starting from a sample's evidence."""
    kernel = kernel_space(space)
    n_words = n_words_of(space)
    evidence = DcEvidence.empty(n_words, WITNESSES)
    if relation.n_rows > 1:
        masks, _, pairs = sampled_evidence(relation, space, sample_rows(relation, SAMPLE_ROWS))
        evidence = evidence.merged(masks, _padded(pairs))
        sharing = probe(relation, _equal_values(space, n_words), limit=SAMPLED_PAIRS, apart=True)
        evidence = evidence.merged(sharing.masks, sharing.witnesses)

    def attempt(bound: int, search: Search) -> DcState:
        cover = search.within(lambda watch: DcCover.of(evidence.masks, kernel, bound, watch))
        state = DcState(
            space,
            evidence,
            cover,
            operators=options.operators,
            chosen=chosen,
            within_columns=options.within_columns,
            limits=options.limits,
        )
        return settle(relation, state, cover.masks[:0], search)

    state = searched(options.limits, options.max_predicates, len(space.groups), progress, attempt)
    return with_accesses(relation, state)


def settle(relation: Relation, state: DcState, holding: U64, search: Search) -> DcState:
    """Look for violations of the constraints that are not known to be `holding`, until there are none.

    The first rounds look at so many pairs of each access; what they find refutes constraints for good. Of a
    constraint whose violating pairs were all looked at, those that take its place need no look any more:
    Proposition 1.
    """
    evidence, cover, rounds, limit = state.evidence, state.cover, 0, ROUND_PAIRS
    assert isinstance(evidence, DcEvidence)
    statistics: Statistics | None = None
    examined = holding  # all pairs that violate one of these are in the evidence
    while relation.n_rows > 1:
        fresh = cover.masks[_unexamined(cover, examined)]
        if not len(fresh):
            break
        statistics = statistics or statistics_of(relation, state.space)
        violating, done = _looked(relation, state, fresh, statistics, limit)
        rounds += 1
        examined = np.concatenate([examined, done])
        came = violating.masks[without(violating.masks, evidence.masks)]
        if len(came):
            evidence = evidence.merged(violating.masks, violating.witnesses)
            cover = _repaired(search, cover, evidence, came, came[:0])
        limit = 4 * limit if rounds < LIMITED_ROUNDS and limit and len(came) else 0
    return replace(state, evidence=evidence, cover=cover, rounds=rounds)


def _repaired(search: Search, cover: DcCover, evidence: DcEvidence, came: U64, went: U64) -> DcCover:
    return search.within(lambda watch: cover.repaired(evidence.masks, came, went, watch))


def _unexamined(cover: DcCover, examined: U64) -> Bool:
    """Which constraints of a cover have no one inside of which all violating pairs are known: bool[n]."""
    unexamined = without(cover.masks, examined)
    if len(examined) and unexamined.any():
        whole = closures(cover.masks[unexamined], cover.space)
        unexamined[unexamined] = ~contains_any(whole, both_ways(examined, cover.space))
    return unexamined


def insert(
    relation: Relation, state: DcState, batch: Sequence[SegmentRef], progress: Progress | None = None
) -> DcState:
    """The constraints after the batch's segments were added; `relation` has them already.

    All evidence is known of pairs that violate a constraint of the cover, so it is under a smaller bound.
    """
    before = state.evidence
    assert isinstance(before, DcEvidence)
    if not len(state.cover) or relation.n_rows < 2:
        return state  # nothing left to break
    violating = probe(relation, _plan(relation, state, state.cover.masks, state.accesses), batch)
    if not len(violating.masks):
        return state
    came = violating.masks[indices_in(violating.masks, before.masks) < 0]
    evidence = before.merged(violating.masks, violating.witnesses)
    changed = replace(state, evidence=evidence, came=Proofs(violating.masks, violating.witnesses[:, 0]))

    def attempt(bound: int, search: Search) -> DcState:
        cover = _repaired(search, state.cover.bounded(bound), evidence, came, came[:0])
        return replace(changed, cover=cover)

    return searched(state.limits, state.cover.max_size, len(state.space.groups), progress, attempt)


def delete(relation: Relation, state: DcState, row_ids: I64, progress: Progress | None = None) -> DcState:
    """The constraints after rows were deleted; `relation` is without them already.

    Cost: a lookup of each witness; and only if evidence lost its last one, a look at the whole table for
    one constraint of each, the cheapest.
    """

    def attempt(bound: int, search: Search) -> DcState:
        return _without_rows(relation, state.bounded(bound), row_ids, search)

    return searched(state.limits, state.cover.max_size, len(state.space.groups), progress, attempt)


def _without_rows(relation: Relation, state: DcState, row_ids: I64, search: Search) -> DcState:
    before = state.evidence
    assert isinstance(before, DcEvidence)
    evidence, orphans = before.without_rows(row_ids)
    if not len(orphans):
        return replace(state, evidence=evidence)
    relaxed = _repaired(search, state.cover, evidence, orphans.masks[:0], orphans.masks)
    if relaxed.masks is state.cover.masks:
        # All that the orphans forbid is forbidden by others (a NULL on one side).
        return replace(state, evidence=evidence, cover=relaxed)
    if _complete(relation, state):
        evidence, rounds = _with_survivors(relation, state, evidence, orphans, relaxed)
        gone = orphans.masks[indices_in(orphans.masks, evidence.masks) < 0]
        cover = _repaired(search, state.cover, evidence, gone[:0], gone)
        settled = replace(state, evidence=evidence, cover=cover, rounds=rounds)
    else:
        # What held holds still: only what is new to the cover needs a look.
        loose = replace(state, evidence=evidence, cover=relaxed)
        settled = settle(relation, loose, state.cover.masks, search)
        assert isinstance(settled.evidence, DcEvidence)
        gone = orphans.masks[indices_in(orphans.masks, settled.evidence.masks) < 0]
    at = np.flatnonzero(~without(orphans.masks, gone)) if len(gone) else np.empty(0, np.int64)
    went = Proofs(orphans.masks[at], orphans.witnesses[at, 0])
    if np.array_equal(settled.cover.masks, state.cover.masks):
        settled = replace(settled, cover=replace(settled.cover, masks=state.cover.masks))
    return replace(settled, went=went)


def _complete(relation: Relation, state: DcState) -> bool:
    """Whether the evidence is all that the table has.

    It is not if constraints are bounded, or if a NULL on one side hides evidence inside other evidence.
    """
    if state.cover.max_size:
        return False
    at = relation.schema.position
    ordered = {at(name) for g in state.space.groups if g.ordered for name in (g.left, g.right)}
    columns = tuple(sorted(c for c in ordered if c is not None))
    return not any(
        _has_nulls(relation.root, s, relation.schema, columns) for s in relation.segments if s.n_live
    )


@lru_cache(maxsize=1024)
def _has_nulls(root: Root, ref: SegmentRef, schema: Schema, columns: tuple[int, ...]) -> bool:
    if ref.nulls:
        return any(ref.nulls[c] for c in columns)
    codes = open_segment(root, ref, schema).codes  # of an older workspace
    return any(bool((codes[c] == 0).any()) for c in columns)


def _with_survivors(
    relation: Relation, state: DcState, evidence: DcEvidence, orphans: DcEvidence, relaxed: DcCover
) -> tuple[DcEvidence, int]:
    """(evidence with the orphans that some pair still has, jobs).

    Law: a pair that violates a constraint of the relaxed cover has evidence that is an orphan. So one such
    constraint inside each orphan tells whether it still is the evidence of a pair; and so does the constraint
    with all equalities of the orphan, which far fewer pairs satisfy.
    """
    if relation.n_rows < 2:
        return evidence, 0
    fresh = relaxed.masks[without(relaxed.masks, state.cover.masks)]
    both = both_ways(fresh, state.cover.space)
    both = both[np.argsort(popcounts(both), kind="stable")]
    equalities = mask_of([p for p, op in enumerate(state.space.op_of) if op == EQ], state.n_words)
    questions = np.empty_like(orphans.masks)
    for i, mask in enumerate(orphans.masks):
        inside = np.flatnonzero(((both & ~mask) == 0).all(axis=1))
        questions[i] = both[inside[0]] | (mask & equalities) if len(inside) else mask
    statistics = statistics_of(relation, state.space)
    waiting, rounds = np.ones(len(orphans), np.bool_), 0
    # Of a constraint of which only some violating pairs became known, each orphan is looked for by itself.
    for asked, limit in ((questions, ROUND_PAIRS), (questions, 0), (orphans.masks, 0)):
        waiting &= indices_in(orphans.masks, evidence.masks) < 0
        if not waiting.any():
            break
        dcs = _one_way(np.unique(asked[waiting], axis=0), state.cover.space)
        violating, done = _looked(relation, state, dcs, statistics, limit)
        rounds += 1
        evidence = evidence.merged(violating.masks, violating.witnesses)
        waiting &= without(asked, both_ways(done, state.cover.space))
    return evidence, rounds


def _one_way(masks: U64, space: Space) -> U64:
    """One constraint of each mirrored pair: whatever finds the pairs of one finds those of the other."""
    turned = mirrored(masks, space)
    number = indices_in(turned, masks)
    return masks[(number < 0) | (number >= np.arange(len(masks)))]


def _looked(
    relation: Relation, state: DcState, dcs: U64, statistics: Statistics, limit: int
) -> tuple[ViolatingEvidence, U64]:
    """(evidence, done): a look at the whole table for pairs that violate some constraints.

    `done` are those of which every violating pair was looked at, or that none violates. With a limit only a
    part is looked at, and constraints that are verified one by one wait.
    """
    how = WholePlan((), np.zeros(len(dcs), np.bool_), scanned=True)
    if relation.n_rows > SCANNED_ROWS:
        how = for_whole_table(state.space, dcs, statistics)
    together = np.ones(len(dcs), np.bool_) if how.scanned else how.by_join
    violating = probe(relation, _plan(relation, state, dcs[together], how.joined), limit=limit)
    done = dcs[together] if violating.complete else dcs[:0]
    if together.all() or limit:
        return violating, done
    single = dcs[~together]
    named = dcs_of("", state.space, single)
    counted = verify(relation, [as_rule(d.predicates, relation.schema) for d in named], any_pair=True)
    holds = np.array([not f.n_violations for f in counted])
    pairs = np.concatenate([f.pairs for f in counted])
    masks, witnesses = evidence_of(relation, state.space, pairs)
    masks = np.concatenate([violating.masks, masks])
    witnesses = np.concatenate([violating.witnesses, _padded(witnesses)])
    return ViolatingEvidence(masks, witnesses, False), np.concatenate([done, single[holds]])


def _plan(relation: Relation, state: DcState, dcs: U64, accesses: Sequence[KeptAccess]) -> Plan:
    return plan(state.space, state.cover.space, dcs, accesses, relation.schema.names)


def _equal_values(space: PredicateSpace, n_words: int) -> Plan:
    """Pairs that share a value of some column: rare evidence is among them."""
    within = [g for g, group in enumerate(space.groups) if group.left == group.right]
    anything = np.zeros((1, n_words), dtype=np.uint64)
    return Plan(space, anything, tuple(Access("equality", ((g, EQ),)) for g in within), anything[:0])


def _padded(pairs: I64) -> I64:
    witnesses = np.full((len(pairs), WITNESSES, 2), -1, dtype=np.int64)
    witnesses[:, 0] = pairs
    return witnesses


def with_accesses(relation: Relation, state: DcState) -> DcState:
    """With accesses for the batches to come: those that there are, unless the table or the cover has changed.

    Chosen anew when the table has doubled, or when far more constraints would be scanned for than at first.
    """
    if state.evidence_kind == "counted" or relation.n_rows <= SCANNED_ROWS or not len(state.cover):
        return state
    n_rows, n_scanned = state.chosen_for
    if n_rows:
        served = _plan(relation, state, state.cover.masks, state.accesses)
        bearable = SCANNED_GROWTH * n_scanned + UNSERVED_SHARE * len(served.dcs)
        if relation.n_rows <= 2 * n_rows and len(served.scanned) <= bearable:
            return state
    accesses = kept_accesses(select(state.cover.masks, state.space, statistics_of(relation, state.space)))
    scanned = _plan(relation, state, state.cover.masks, accesses).scanned
    return replace(state, accesses=accesses, chosen_for=(relation.n_rows, len(scanned)))


def wanted_indexes(relation: Relation, state: DcState) -> tuple[list[int], list[OrderKey]]:
    """(columns, orders) that the kept accesses look up."""
    return indexes_of(state.space, state.accesses, relation.schema.names)
