"""Which pairs of rows violate constraints: found by indexes, not by comparing all of them (IncDC, section 8).

An *access* serves some constraints: every pair that violates one of them is among those that it finds.

- *equality*: all equalities of a set hold. A batch walks posting lists; a whole table is joined with itself
  on a hash of the columns, at the cost of sorting it.
- *order*: two predicates, answered by an order index (algorithms 1 and 2).
- *column*: one predicate, answered by posting lists in the order of their values.
- *scan*: no index helps. Rows that are equal on all columns concerned are folded into one, the folded rows
  are compared, and only what violates a constraint there is unfolded.

What is found is compared in all groups, and evidence that violates some constraint leaves the task, once
each. One job, whatever the number of constraints.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.folded_scan import scan_folded
from holdfast.core.evidence.half_ranks import half_rank_rows, parsed_space, space_columns
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.kernels.predicate_evidence import ListedPairs
from holdfast.core.evidence.probe_indexes import (
    fetch_by_column,
    fetch_by_order,
    join_equalities,
    walk_equalities,
)
from holdfast.core.evidence.probe_place import Access, Place
from holdfast.core.evidence.witnessed import unite
from holdfast.core.evidence.witnessed_masks import evidence_in
from holdfast.core.rows.kernels.masks import n_words_for, unique_masks
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import open_segment
from holdfast.core.rows.table_state import SegmentRef, payloads_of
from holdfast.core.rows.tasks import Payload, opened, parsed_schema, staged
from holdfast.core.store.bundle import pack, unpack
from holdfast.core.store.root import root_of
from holdfast.core.words.predicate import PredicateSpace

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# Estimated nanoseconds of work of one task: a table of counts, and the half ranks of the rows, are made anew
# in each.
TASK_NS = 8e8
MAX_PARTS = 64
NS_LISTED = 40.0  # to compare a pair that an index found, in all groups
NS_FOLDED = 3.0  # to compare two folded rows
NS_JOINED = 300.0  # a row of a join: hashed, sorted, searched
# Rows that are folded into one, at a guess: only for the division of work.
FOLDING = 4.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How all pairs are found that violate some constraints, given in both directions."""

    space: PredicateSpace
    dcs: U64  # uint64[k, n_words]
    accesses: tuple[Access, ...]
    scanned: U64  # those of the constraints that no access but a scan serves


@dataclass(frozen=True, slots=True)
class ViolatingEvidence:
    """Evidence that violates a constraint, with pairs (t, s) of row ids that have it."""

    masks: U64  # uint64[k, n_words], all different
    witnesses: I64  # int64[k, WITNESSES, 2]
    complete: bool  # whether every violating pair was looked at


def probe(
    relation: Relation,
    plan: Plan,
    batch: Sequence[SegmentRef] | None = None,
    limit: int = 0,
    *,
    apart: bool = False,
) -> ViolatingEvidence:
    """The evidence of pairs of rows that violate one of the plan's constraints.

    With a batch, of its rows with all others; without, of all pairs of live rows, or (`apart`) of those of
    each segment alone. With a limit a task looks at so many pairs of an access at most, and `complete` tells
    whether that was all.
    """
    shared = {
        "space": json.dumps(plan.space.to_dict()),
        "dcs": relation.stage("constraints", masks=plan.dcs, scanned=plan.scanned),
        "limit": limit,
        "whole": batch is None,
    }
    payloads, work = [], 0.0
    named = payloads_of([*relation.segments, *(batch or ())])
    new = {s.number for s in batch or ()}
    old_segments = [s for s in relation.segments if s.number not in new and s.n_live]
    parts = [s for s in (relation.segments if batch is None else batch) if s.n_live]
    listed = [asdict(a) for a in plan.accesses if a.kind != "scan"]
    scans = [asdict(a) for a in plan.accesses if a.kind == "scan"]
    for i, part in enumerate(parts):
        for segment in [*(old_segments if batch is not None else ()), *parts[: i + 1]]:
            within = segment.number == part.number
            if apart and not within:
                continue
            sides = {"segment": named[segment.number], "source": named[part.number]}
            fields = {**shared, **sides, "within": within}
            if listed:
                rows = part.n_rows + (segment.n_rows if batch is None else 0)
                ns = rows * len(listed) * NS_JOINED
                work += ns
                # A table is joined on each set on its own; a batch walks lists for all of them at once.
                n_lots = 1 if batch is not None else min(len(listed), 1 + int(ns / TASK_NS))
                for lot in range(n_lots):
                    payloads.append(
                        relation.payload(**fields, accesses=listed[lot::n_lots], part=0, n_parts=1)
                    )
            for scan in scans:
                folding = 1.0 if len(scan["groups"]) == len(plan.space.groups) else FOLDING
                ns = part.n_rows * segment.n_rows * NS_FOLDED * (0.5 if within else 1.0) / folding
                n_parts = min(MAX_PARTS, 1 + int(ns / TASK_NS))
                work += ns
                scanned = {**fields, "accesses": [scan], "n_parts": n_parts}
                payloads += [relation.payload(**scanned, part=p) for p in range(n_parts)]
    results = relation.run(probe_pairs, payloads, work)
    masks, pairs = evidence_in(results, plan.dcs.shape[1], 2)
    first, group = unique_masks(masks)
    padded = np.full((len(masks), WITNESSES, 2), -1, dtype=np.int64)
    padded[:, 0] = pairs
    complete = all(r.meta["complete"] == "yes" for r in results)
    return ViolatingEvidence(masks[first], unite(padded, group, len(first)), complete)


def evidence_of(relation: Relation, space: PredicateSpace, pairs: I64) -> tuple[U64, I64]:
    """(masks, pairs): the evidence of a few pairs (t, s) of row ids, int64[p, 2], and of (s, t). By one task
    of Spark where their segments are far."""
    segments = relation.that_may_have(pairs.reshape(-1))
    payload = relation.payload(
        segments=[s.to_dict() for s in segments], space=json.dumps(space.to_dict()), pairs=pairs.tolist()
    )
    [result] = map(unpack, relation.look(compare_listed, [payload], segments))
    n_words = n_words_for(space.n_predicates)
    return result.array("masks").reshape(-1, n_words), result.array("witnesses").reshape(-1, 2)


def compare_listed(payload: Payload) -> bytes:
    """The evidence of listed pairs of rows, in both directions."""
    schema = parsed_schema(payload["schema"])
    columns = space_columns(parsed_space(payload["space"]), schema)
    pairs = np.array(payload["pairs"], dtype=np.int64).reshape(-1, 2)
    masks, witnesses = [np.empty((0, columns.n_words), np.uint64)], [np.empty((0, 2), np.int64)]
    root = root_of(payload["root"])
    opened_ = [open_segment(root, SegmentRef.from_dict(s), schema) for s in payload["segments"]]
    places = [(segment, segment.positions(pairs[:, 0])) for segment in opened_]
    for segment in opened_:
        positions = segment.positions(pairs[:, 1])
        for source, probes in places:
            at = np.flatnonzero((positions >= 0) & (probes >= 0))
            if not len(at):
                continue
            values = half_rank_rows(segment, source, probes[at], columns.pairs)[:, None, :]
            listed = ListedPairs(segment.codes, values, columns.groups, columns.n_words)
            for i in range(len(at)):  # one by one: which direction has which mask
                evidence = listed.evidence(np.array([i]), positions[at[i : i + 1]])
                masks.append(evidence.masks)
                t, s = pairs[at[i]].tolist()
                turned = evidence.batch_first.tolist()
                witnesses.append(np.array([(t, s) if first else (s, t) for first in turned]))
    return pack({"masks": np.concatenate(masks), "witnesses": np.concatenate(witnesses)}, {})


def probe_pairs(payload: Payload) -> bytes:
    """The violating evidence among the rows of one segment and those of another."""
    schema = parsed_schema(payload["schema"])
    columns = space_columns(parsed_space(payload["space"]), schema)
    constraints = staged({**payload, "constraints": payload["dcs"]}, "constraints")
    dcs, scanned = (constraints.array(name).reshape(-1, columns.n_words) for name in ("masks", "scanned"))
    place = Place(
        opened(payload, "segment", schema),
        opened(payload, "source", schema),
        payload["within"],
        columns,
        dcs,
        payload["limit"],
    )
    part = payload["part"], payload["n_parts"]
    for access in map(Access.from_dict, payload["accesses"]):
        if access.kind == "scan":
            scan_folded(place, access, scanned, part)
        elif access.kind == "order":
            fetch_by_order(place, access)
        elif access.kind == "column":
            fetch_by_column(place, access)
        elif payload["whole"]:
            join_equalities(place, access)
    walked = [Access.from_dict(a) for a in payload["accesses"] if a["kind"] == "equality"]
    if walked and not payload["whole"]:
        walk_equalities(place, walked)
    masks, witnesses = place.evidence()
    return pack({"masks": masks, "witnesses": witnesses}, {"complete": "yes" if place.complete else "no"})
