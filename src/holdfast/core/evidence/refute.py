"""Validation: which candidates the rows refute, with evidence; keys, and functional dependencies.

One task per pivot column (the most selective column of a candidate) and part of its values; what no part
refutes holds. One job at most, whatever the number of candidates. `key_validation.py` and `fd_validation.py`
are what a task does with the segments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.core.evidence.agree_probe import all_pairs, evidence_in, united
from holdfast.core.evidence.fd_validation import NO_PIVOT, validate_fd_candidates
from holdfast.core.evidence.kernels.fd_partitions import unite
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.key_validation import Place, validate_candidates
from holdfast.core.rows.kernels.masks import contained_in_any, mask_of, n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import by_row_id, open_segment
from holdfast.core.rows.tasks import Payload, all_opened, parsed_schema, staged
from holdfast.core.store.bundle import pack
from holdfast.core.words.schema import Nulls

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

INLINE_VALIDATE = 4_000_000  # rows x pivots
# Rows of one validation task.
PART_ROWS = 1 << 21


@dataclass(frozen=True, slots=True)
class Refutation:
    """What a validation found: which candidates are not unique, and evidence against them."""

    refuted: Bool
    masks: U64
    witnesses: I64


@dataclass(frozen=True, slots=True)
class FdRefutation:
    """What a validation of FDs found: for each left-hand side the columns that it does not determine.

    refuted uint64[n, n_words]. For each refuted (lhs, A) some mask contains lhs and lacks A; witnesses
    are pairs of row ids with exactly that agree set.
    """

    refuted: U64
    masks: U64
    witnesses: I64


def validate(relation: Relation, candidates: U64) -> Refutation:
    """Which candidates are not unique on the live rows, with evidence against each.

    One task per pivot column (the most selective column of a candidate) and part of its
    values; a candidate is unique iff no part refutes it.
    """
    refuted = np.zeros(len(candidates), dtype=np.bool_)
    empty = ~candidates.any(axis=1)
    found = [_any_pair(relation)] if empty.any() and relation.n_rows > 1 else []
    refuted[empty] = relation.n_rows > 1
    rest = np.flatnonzero(~empty)
    if len(rest) and relation.n_rows > 1:
        ranking = relation.ranking()
        pivots = _pivots(candidates[rest], ranking)
        chosen = np.unique(pivots)
        if few_pairs(relation, len(chosen)):
            masks, witnesses = _all_pairs(relation)
            refuted[rest] = contained_in_any(candidates[rest], masks)
            return Refutation(refuted, *united(relation, [*found, (masks, witnesses)]))
        n_parts = -(-relation.n_rows // PART_ROWS)
        if relation.engine.choose(relation.n_rows * len(chosen), INLINE_VALIDATE) == "spark":
            n_parts = max(n_parts, -(-2 * relation.engine.cores // len(chosen)))
        staged = relation.stage("candidates", masks=candidates[rest], pivots=pivots)
        live = [s.to_dict() for s in relation.segments if s.n_live]
        payloads = [
            relation.payload(
                segments=live, candidates=staged, ranking=ranking, pivot=int(p), part=i, n_parts=n_parts
            )
            for p in chosen
            for i in range(n_parts)
        ]
        for result in relation.run(validate_part, payloads, relation.n_rows * len(chosen), INLINE_VALIDATE):
            refuted[rest[result.array("candidate")]] = True
            found.append(evidence_in(relation, result))
    return Refutation(refuted, *united(relation, found))


def validate_fds(relation: Relation, lhs: U64, rhs: U64) -> FdRefutation:
    """Which columns of rhs[i] lhs[i] does not determine on the live rows, with evidence against each.

    lhs, rhs uint64[n, n_words], rhs[i] disjoint from lhs[i]. One job, divided as in `validate`; the
    empty left-hand side is a task of its own. Masks are all different.
    """
    refuted = np.zeros_like(rhs)
    found: list[tuple[U64, I64]] = []
    asked = np.flatnonzero(rhs.any(axis=1))
    if len(asked) and relation.n_rows > 1:
        ranking = relation.ranking()
        pivots = _pivots(lhs[asked], ranking)
        chosen = np.unique(pivots)
        if few_pairs(relation, len(chosen)):
            masks, witnesses = _all_pairs(relation)
            for mask in masks:
                inside = ~(lhs[asked] & ~mask).any(axis=1)
                refuted[asked[inside]] |= rhs[asked[inside]] & ~mask
            return FdRefutation(refuted, *unite(masks, witnesses))
        work = relation.n_rows * len(chosen)
        n_parts = -(-relation.n_rows // PART_ROWS)
        if relation.engine.choose(work, INLINE_VALIDATE) == "spark":
            n_parts = max(n_parts, -(-2 * relation.engine.cores // len(chosen)))
        staged = relation.stage("candidates", lhs=lhs[asked], rhs=rhs[asked], pivots=pivots)
        live = [s.to_dict() for s in relation.segments if s.n_live]
        payloads = [
            relation.payload(
                segments=live, candidates=staged, ranking=ranking, pivot=int(p), part=i, n_parts=n
            )
            for p in chosen
            for n in [1 if p == NO_PIVOT else n_parts]
            for i in range(n)
        ]
        for result in relation.run(validate_fd_part, payloads, work, INLINE_VALIDATE):
            refuted[asked[result.array("candidate")]] |= result.array("refuted").reshape(-1, relation.n_words)
            found.append(evidence_in(relation, result))
    return FdRefutation(refuted, *unite(*united(relation, found)))


def few_pairs(relation: Relation, n_pivots: int) -> bool:
    """Whether comparing all rows with each other is less than to look at them pivot by pivot."""
    return relation.n_rows * (relation.n_rows - 1) // 2 <= n_pivots


def _all_pairs(relation: Relation) -> tuple[U64, I64]:
    """The evidence of all pairs of live rows; one task."""
    payload = relation.payload(segments=[s.to_dict() for s in relation.segments if s.n_live])
    work = float(relation.n_rows * relation.n_rows)
    [result] = relation.run(compare_rows, [payload], work, INLINE_VALIDATE)
    return evidence_in(relation, result)


def _any_pair(relation: Relation) -> tuple[U64, I64]:
    """The evidence of two live rows, whichever."""
    refs = [s for s in relation.segments if s.n_live]
    opened = [open_segment(relation.root, s, relation.schema) for s in refs]
    ids = np.concatenate([s.row_ids(np.flatnonzero(s.live)[:2]) for s in opened])[:2]
    rows = relation.fetch(ids)
    agreed = [c for c, column in enumerate(rows.columns) if _agree(*column, nulls=relation.nulls)]
    witnesses = np.full((1, WITNESSES, 2), -1, dtype=np.int64)
    witnesses[0, 0] = ids
    return mask_of(agreed, relation.n_words)[None, :], witnesses


def _pivots(masks: U64, ranking: Sequence[int]) -> I64:
    """The most selective column of each set, NO_PIVOT of the empty one: int64[n]."""
    pivots = np.full(len(masks), NO_PIVOT, dtype=np.int64)
    place = np.empty(len(ranking), dtype=np.int64)
    place[ranking] = np.arange(len(ranking))
    # Word by word, from the last column to the first, so that the most selective one is written last.
    row, word = np.nonzero(masks)
    octets = np.ascontiguousarray(masks[row, word], dtype="<u8").view(np.uint8).reshape(-1, 8)
    at, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    column = 64 * word[at] + bit
    order = np.argsort(-place[column], kind="stable")
    pivots[row[at][order]] = column[order]
    return pivots


def _agree(left: Any, right: Any, *, nulls: Nulls) -> bool:
    """Whether two Arrow scalars of one type are one value. Python's values may have lost something."""
    if not (left.is_valid and right.is_valid):
        return left.is_valid == right.is_valid and nulls == "equal"
    if pa.types.is_floating(left.type) and pc.is_nan(left).as_py():
        return bool(pc.is_nan(right).as_py())
    return bool(pc.equal(left, right).as_py())


# -- tasks -------------------------------------------------------------------------------------


def compare_rows(payload: Payload) -> bytes:
    """The evidence of all pairs of live rows of a table that has few."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    masks, witnesses = [], []
    for i, other in enumerate(segments):
        for segment in segments[: i + 1]:
            distinct = payload["nulls"] == "distinct"
            found, positions = all_pairs(segment, other, distinct, own=segment is other)
            masks.append(found)
            witnesses.append(by_row_id(positions, other, segment))
    return pack({"masks": np.concatenate(masks), "witnesses": np.concatenate(witnesses)}, {})


def validate_part(payload: Payload) -> bytes:
    """Candidates with one pivot column, refuted on the rows whose pivot value falls into one part."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    bundle = staged(payload, "candidates")
    candidates = bundle.array("masks").reshape(-1, n_words_for(len(schema)))
    mine = np.flatnonzero(bundle.array("pivots") == payload["pivot"])
    place = Place(payload["pivot"], payload["part"], payload["n_parts"])
    refuted, masks, witnesses = validate_candidates(
        segments, candidates[mine], place, payload["ranking"], payload["nulls"] == "distinct"
    )
    return pack({"candidate": mine[refuted], "masks": masks, "witnesses": witnesses}, {})


def validate_fd_part(payload: Payload) -> bytes:
    """Candidate FDs with one pivot column, refuted on the rows whose pivot value falls into one part."""
    schema = parsed_schema(payload["schema"])
    segments = all_opened(payload, schema)
    bundle = staged(payload, "candidates")
    n_words = n_words_for(len(schema))
    mine = np.flatnonzero(bundle.array("pivots") == payload["pivot"])
    lhs, rhs = (bundle.array(side).reshape(-1, n_words)[mine] for side in ("lhs", "rhs"))
    place = Place(payload["pivot"], payload["part"], payload["n_parts"])
    refuted, masks, witnesses = validate_fd_candidates(
        segments, lhs, rhs, place, payload["ranking"], payload["nulls"] == "distinct"
    )
    hit = refuted.any(axis=1)
    return pack({"candidate": mine[hit], "refuted": refuted[hit], "masks": masks, "witnesses": witnesses}, {})
