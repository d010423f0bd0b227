"""How the constraints of a cover are looked for: the accesses that are kept, and what they serve now.

Accesses are chosen once (`dc_indexes.py`) and kept while they serve the cover: a constraint that takes the
place of a broken one has its predicates, or stricter ones, so what served the one serves the other. What none
of them serves is scanned for, until that is too much; then they are chosen anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.discovery import dc_indexes
from holdfast.discovery.dc_indexes import PairSample, Selection, Statistics
from holdfast.kernels.dc_hitting_sets import Space
from holdfast.kernels.masks import mask_of
from holdfast.kernels.predicate_evidence import evidence_counts
from holdfast.model.predicate import PredicateSpace
from holdfast.pipeline.dc_probe import Access, Plan
from holdfast.pipeline.predicate_rows import space_columns
from holdfast.pipeline.relation import Relation
from holdfast.pipeline.row_sample import RowSample, sample_rows
from holdfast.state.dc_cover import both_ways, closures
from holdfast.storage.constraints import KeptAccess

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]

# Rows whose pairs tell how selective an index is.
STATISTICS_ROWS = 2_000


def statistics_of(relation: Relation, space: PredicateSpace) -> Statistics:
    """What the choice of indexes needs to know, from a sample of the rows. Cost: 50 ms or so."""
    sample = sample_rows(relation, STATISTICS_ROWS)
    masks, counts = sampled_evidence(relation, space, sample)[:2]
    distinct = [max(1, d) for d in relation.distinct()]
    return dc_indexes.statistics(
        space, relation.schema.names, sample.codes, distinct, relation.n_rows, PairSample(masks, counts)
    )


def sampled_evidence(
    relation: Relation, space: PredicateSpace, sample: RowSample
) -> tuple[U64, NDArray[np.int64], NDArray[np.int64]]:
    """(masks, counts, a pair (t, s) of row ids of each): the evidence of all pairs of sampled rows."""
    columns = space_columns(space, relation.schema)
    codes = sample.codes
    batch = (2 * codes)[columns.groups.left][:, None, :]
    live = np.ones(codes.shape[1], dtype=np.bool_)
    found = evidence_counts(codes, live, batch, columns.groups, columns.n_words, own=True)
    return found.masks, found.counts, sample.row_ids[found.witnesses]


def kept(selection: Selection) -> tuple[KeptAccess, ...]:
    """What is remembered of a choice: all but the scan, which serves what is left."""
    return tuple(KeptAccess(a.kind, a.predicates, a.orders) for a in selection.accesses if a.kind != "scan")


def plan(
    space: PredicateSpace, kernel: Space, dcs: U64, accesses: Sequence[KeptAccess], names: Sequence[str]
) -> Plan:
    """Every constraint of dcs uint64[k, n_words] with an access, in both directions.

    Only accesses that serve some constraint are used.
    """
    wanted = both_ways(dcs, kernel)
    n_words = dcs.shape[1]
    whole = closures(wanted, kernel)
    open_ = np.ones(len(wanted), dtype=np.bool_)
    used: list[Access] = []
    for access in accesses:
        for numbers in _directions(space, access):
            mask = mask_of(numbers, n_words)
            serves = open_ & ((whole & mask) == mask).all(axis=1)
            if serves.any():
                open_ &= ~serves
                used.append(_asked(space, access, numbers, names))
    scanned = wanted[open_]
    if len(scanned):
        bits = np.bitwise_or.reduce(both_ways(scanned, kernel))
        members = np.flatnonzero(np.unpackbits(bits.view(np.uint8), bitorder="little"))
        groups = sorted({space.group_of[p] for p in members.tolist()})
        used.append(Access("scan", tuple(groups)))
    return Plan(space, wanted, tuple(used), scanned)


def _directions(space: PredicateSpace, access: KeptAccess) -> list[tuple[int, ...]]:
    """The predicates of an access, and their mirror images if these are others."""
    mirrored = tuple(sorted(space.mirror[p] for p in access.predicates))
    return [access.predicates] if mirrored == access.predicates else [access.predicates, mirrored]


def _asked(space: PredicateSpace, access: KeptAccess, numbers: Sequence[int], names: Sequence[str]) -> Access:
    at = {name: i for i, name in enumerate(names)}
    if access.kind == "order":
        # As the columns of its index stand.
        numbers = sorted(numbers, key=lambda p: (at[space.predicates[p].right], p))
        old = tuple(at[space.predicates[p].right] for p in numbers)
        key = next(k for k in access.orders if k[:2] == old)
    else:
        key = None
    groups = tuple(space.group_of[p] for p in numbers)
    return Access(access.kind, groups, tuple(space.op_of[p] for p in numbers), key)  # type: ignore[arg-type]


def indexes_of(
    space: PredicateSpace, accesses: Sequence[KeptAccess], names: Sequence[str]
) -> tuple[list[int], list[tuple[int, int, bool]]]:
    """(columns, orders) that the accesses look up."""
    at = {name: i for i, name in enumerate(names)}
    columns: dict[int, Any] = {}
    orders: dict[tuple[int, int, bool], Any] = {}
    for access in accesses:
        if access.kind == "order":
            orders |= dict.fromkeys(access.orders)
            continue
        for numbers in _directions(space, access):
            columns |= dict.fromkeys(at[space.predicates[p].right] for p in numbers)
    return sorted(columns), sorted(orders)
