"""Validation: which candidates the rows refute, with evidence; keys, and functional dependencies.

One task per pivot column (the most selective column of a candidate) and part of its values; what no part
refutes holds. One job at most, whatever the number of candidates. `validation.py` is what a task
does with the segments. A table that is more than every task should read is looked at by `shuffled.py`, and
for empty left-hand sides by `varying.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence import shuffled, varying
from holdfast.core.evidence.agree_probe import all_pairs
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.kernels.partitions import strike, unite
from holdfast.core.evidence.validation import NO_PIVOT, Place, validate_candidates
from holdfast.core.evidence.witnessed_masks import evidence_in
from holdfast.core.rows.kernels.masks import mask_of, minimal_masks, n_words_for, popcounts
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import by_row_id
from holdfast.core.rows.tasks import Payload, all_opened, parsed_schema, staged
from holdfast.core.store.bundle import pack

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Verdicts = TypeVar("Verdicts", Bool, U64)
# (refuted, masks, witnesses, exhausted) of some candidates, as in `Refutation`; masks and sets may repeat.
Evidence = tuple[U64, U64, I64, U64]
Look = Callable[[Relation, U64, U64, I64], Evidence]

# What it takes on one core to look at a row for the candidates of a pivot, in ns.
NS_VALIDATE = 100
# Rows of one validation task.
PART_ROWS = 1 << 21


@dataclass(frozen=True, slots=True)
class Refutation(Generic[Verdicts]):
    """What a validation found, with evidence: masks that are all different, and pairs of row ids that agree
    on exactly those columns.

    Of candidate keys refuted is bool[n]: some mask contains the key. Of dependencies it is
    uint64[n, n_words], the columns that each left-hand side does not determine: for each refuted (lhs, A)
    some mask contains lhs and lacks A.

    Of keys, `exhausted` are sets of columns that need no further look: the agree set of each pair of rows
    that agrees on one of them is part of some mask, so what contains one and is part of no mask is unique.
    """

    refuted: Verdicts
    masks: U64
    witnesses: I64
    exhausted: U64


def validate(relation: Relation, candidates: U64) -> Refutation[Bool]:
    """Which candidate keys are not unique on the live rows, with evidence against each.

    A key determines the row: the column behind the last one, on which no two rows agree.
    """
    n_columns = len(relation.schema)
    n_words = n_words_for(n_columns + 1)
    row = np.tile(mask_of([n_columns], n_words), (len(candidates), 1))
    wide = validate_fds(relation, _widened(candidates, n_words), row)
    exhausted = np.ascontiguousarray(wide.exhausted[:, : relation.n_words])
    return Refutation(popcounts(wide.refuted) > 0, wide.masks, wide.witnesses, exhausted)


def validate_fds(relation: Relation, lhs: U64, rhs: U64) -> Refutation[U64]:
    """Which columns of rhs[i] lhs[i] does not determine on the live rows, with evidence against each.

    lhs, rhs uint64[n, *], wide enough for the columns, rhs[i] disjoint from lhs[i]. One job, the empty
    left-hand side is a task of its own; or two for it and two for the others, where the table is large.
    """
    refuted = np.zeros_like(rhs)
    masks: list[U64] = [np.empty((0, relation.n_words), np.uint64)]
    witnesses: list[I64] = [np.empty((0, WITNESSES, 2), np.int64)]
    exhausted = [rhs[:0]]
    candidates = np.flatnonzero(rhs.any(axis=1))
    if len(candidates) and relation.n_rows > 1:
        pivots = pivots_of(lhs[candidates], relation.ranking())
        for look, some in _looks(relation, pivots):
            at = candidates[some]
            refuted[at], some_masks, some_witnesses, prefixes = look(relation, lhs[at], rhs[at], pivots[some])
            masks.append(some_masks)
            witnesses.append(some_witnesses)
            exhausted.append(prefixes)
    prefixes = np.concatenate(exhausted)
    evidence = unite(np.concatenate(masks), np.concatenate(witnesses))
    return Refutation(refuted, *evidence, prefixes[minimal_masks(prefixes)])


def _looks(relation: Relation, pivots: I64) -> list[tuple[Look, NDArray[np.bool_]]]:
    """How the rows are looked at, and for which candidates."""
    everything, n_pivots = np.ones(len(pivots), np.bool_), len(np.unique(pivots))
    if few_pairs(relation, n_pivots):
        return [(_by_pairs, everything)]
    if not shuffled.is_worth_it(relation, NS_VALIDATE * relation.n_rows * n_pivots):
        return [(_by_parts, everything)]
    # An empty left-hand side is refuted by two rows of each column: few have to meet.
    halves: list[tuple[Look, NDArray[np.bool_]]] = [
        (shuffled.validate_by_shuffle, pivots != NO_PIVOT),
        (varying.refute_constants, pivots == NO_PIVOT),
    ]
    return [(look, some) for look, some in halves if some.any()]


def _by_pairs(relation: Relation, lhs: U64, rhs: U64, pivots: I64) -> Evidence:
    masks, witnesses = _all_pairs(relation)
    pending = rhs.copy()
    strike(lhs, pending, _widened(masks, rhs.shape[1]))
    return rhs & ~pending, masks, witnesses, np.zeros_like(rhs[:1])


def _by_parts(relation: Relation, lhs: U64, rhs: U64, pivots: I64) -> Evidence:
    """By tasks that read all segments: one for each pivot and part of its values."""
    chosen, ranking = np.unique(pivots), relation.ranking()
    ns = NS_VALIDATE * relation.n_rows * len(chosen)
    n_parts = max(-(-relation.n_rows // PART_ROWS), -(-relation.shares(ns) // len(chosen)))
    staged = relation.stage("candidates", lhs=lhs, rhs=rhs, pivots=pivots)
    payloads = [
        relation.payload(
            segments=relation.live, candidates=staged, ranking=ranking, pivot=int(p), part=i, n_parts=n
        )
        for p in chosen
        for n in [1 if p == NO_PIVOT else n_parts]
        for i in range(n)
    ]
    results = relation.run(validate_part, payloads, ns)
    refuted, exhausted = np.zeros_like(rhs), np.zeros_like(rhs)
    n_exhausted = np.zeros(len(rhs), dtype=np.int64)
    for result in results:
        at = result.array("candidate")
        refuted[at] |= result.array("refuted").reshape(-1, rhs.shape[1])
        # Parts may fix other columns first. A pair that agrees on all that is fixed in some part agrees on
        # what each part has exhausted, so the union is exhausted in all of them.
        prefixes = result.array("prefixes").reshape(-1, rhs.shape[1])
        exhausted[at] |= prefixes
        n_exhausted[at] += prefixes.any(axis=1)
    masks, witnesses = evidence_in(results, relation.n_words, WITNESSES, 2)
    return refuted, masks, witnesses, exhausted[n_exhausted == n_parts]


def _widened(masks: U64, n_words: int) -> U64:
    """The masks with room for more columns."""
    wide = np.zeros((len(masks), n_words), dtype=np.uint64)
    wide[:, : masks.shape[1]] = masks
    return wide


def few_pairs(relation: Relation, n_pivots: int) -> bool:
    """Whether comparing all rows with each other is less than to look at them pivot by pivot."""
    return relation.n_rows * (relation.n_rows - 1) // 2 <= n_pivots


def _all_pairs(relation: Relation) -> tuple[U64, I64]:
    """The evidence of all pairs of live rows; one task."""
    payload = relation.payload(segments=relation.live)
    results = relation.run(compare_rows, [payload], NS_VALIDATE * relation.n_rows**2)
    return evidence_in(results, relation.n_words, WITNESSES, 2)


def pivots_of(masks: U64, ranking: Sequence[int]) -> I64:
    """The most selective column of each set, NO_PIVOT of the empty one: int64[n]."""
    pivots = np.full(len(masks), NO_PIVOT, dtype=np.int64)
    # Column by column, of the sets that are left: selective columns are the pivots of most. 1 ms for 37,045
    # sets of 40 columns.
    left = np.flatnonzero(masks.any(axis=1))
    for c in ranking:
        if not len(left):
            break
        has = masks[left, c >> 6] >> np.uint64(c & 63) & np.uint64(1) != 0
        pivots[left[has]] = c
        left = left[~has]
    return pivots


# -- tasks -------------------------------------------------------------------------------------


def compare_rows(payload: Payload) -> bytes:
    """The evidence of all pairs of live rows of a table that has few."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    masks, witnesses = [], []
    for i, other in enumerate(segments):
        for segment in segments[: i + 1]:
            distinct = payload["nulls"] == "distinct"
            agree_sets, positions = all_pairs(segment, other, distinct, within=segment is other)
            masks.append(agree_sets)
            witnesses.append(by_row_id(positions, other, segment))
    return pack({"masks": np.concatenate(masks), "witnesses": np.concatenate(witnesses)}, {})


def validate_part(payload: Payload) -> bytes:
    """Candidates with one pivot column, refuted on the rows whose pivot value falls into one part."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    bundle = staged(payload, "candidates")
    pivots = bundle.array("pivots")
    numbers = np.flatnonzero(pivots == payload["pivot"])
    lhs, rhs = (bundle.array(side).reshape(len(pivots), -1)[numbers] for side in ("lhs", "rhs"))
    place = Place(payload["pivot"], payload["part"], payload["n_parts"])
    refuted, masks, witnesses, prefixes = validate_candidates(
        segments, lhs, rhs, place, payload["ranking"], payload["nulls"] == "distinct"
    )
    said = (refuted | prefixes).any(axis=1)
    verdicts = {"candidate": numbers[said], "refuted": refuted[said], "prefixes": prefixes[said]}
    return pack({**verdicts, "masks": masks, "witnesses": witnesses}, {})
