"""How the constraints of a cover are looked for: the accesses that are kept, and what they serve now.

Accesses are chosen once (`selection.py`) and kept while they serve the cover: a constraint that takes the
place of a broken one has its predicates, or stricter ones, so what served the one serves the other. What none
of them serves is scanned for, until that is too much; then they are chosen anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.kernels.vertices import Space
from holdfast.core.evidence.half_ranks import space_columns
from holdfast.core.evidence.kernels.predicate_evidence import evidence_counts
from holdfast.core.evidence.probe import NS_JOINED, NS_LISTED, Plan
from holdfast.core.evidence.probe_indexes import BLOCK_ROWS
from holdfast.core.evidence.probe_place import Access
from holdfast.core.rows.kernels.masks import mask_of, positions_of
from holdfast.core.rows.kernels.operators import EQ
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.row_sample import RowSample, sample_rows
from holdfast.core.words.column_sets import bits_of
from holdfast.core.words.predicate import PredicateSpace
from holdfast.denial.access.access import PairSample, Selection, Statistics, statistics
from holdfast.denial.constraints import KeptAccess
from holdfast.denial.dc_cover import both_ways, closures

U64 = NDArray[np.uint64]
Bool = NDArray[np.bool_]

# Nanoseconds of one core: to compare two folded rows; a row, to verify one constraint on its own.
SCANNED_NS = 5.0
NS_VERIFIED = 1_500.0
# Rows whose pairs tell how selective an index is.
STATISTICS_ROWS = 2_000
# Rows whose pairs tell how many evidences there will be; a multiple of four.
ESTIMATE_ROWS = 512


def statistics_of(relation: Relation, space: PredicateSpace) -> Statistics:
    """What the choice of indexes needs to know, from a sample of the rows. Cost: 50 ms or so."""
    sample = sample_rows(relation, STATISTICS_ROWS)
    masks, counts = sampled_evidence(relation, space, sample)[:2]
    distinct = [max(1, d) for d in relation.distinct()]
    return statistics(
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
    evidence = evidence_counts(codes, live, batch, columns.groups, columns.n_words, within=True)
    return evidence.masks, evidence.counts, sample.row_ids[evidence.witnesses]


def expected_evidences(relation: Relation, space: PredicateSpace) -> int:
    """How many evidences all pairs of rows will have, as far as a sample tells: it grows as it did there.

    From the pairs of a quarter of the sampled rows to those of all the number of evidences grows by a power
    of the number of rows; that power is taken to hold on. Cost: 10 ms or so.
    """
    if relation.n_rows <= ESTIMATE_ROWS:
        return relation.n_rows * max(0, relation.n_rows - 1)
    sample = sample_rows(relation, ESTIMATE_ROWS)
    quarter = RowSample(sample.codes[:, ::4], sample.row_ids[::4])
    few, many = (len(sampled_evidence(relation, space, s)[0]) for s in (quarter, sample))
    power = math.log(many / few, 4)
    return int(many * (relation.n_rows / ESTIMATE_ROWS) ** power)


def kept_accesses(selection: Selection) -> tuple[KeptAccess, ...]:
    """What is remembered of a choice: all but the scan, which serves what is left."""
    return tuple(
        KeptAccess(a.kind, a.source, a.predicates, a.orders) for a in selection.accesses if a.kind != "scan"
    )


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
        for turned in _directions(space, access):
            mask = mask_of(turned.predicates, n_words)
            serves = open_ & ((whole & mask) == mask).all(axis=1)
            if serves.any():
                open_ &= ~serves
                used.append(_probed(space, turned, names))
    scanned = wanted[open_]
    if len(scanned):
        bits = np.bitwise_or.reduce(both_ways(scanned, kernel))
        groups = sorted({space.group_of[p] for p in positions_of(bits)})
        used.append(Access("scan", (), groups=tuple(groups)))
    return Plan(space, wanted, tuple(used), scanned)


def _directions(space: PredicateSpace, access: KeptAccess) -> list[KeptAccess]:
    """An access, and its mirror image if that is another one."""
    source, predicates = (
        tuple(sorted(space.mirror[p] for p in numbers)) for numbers in (access.source, access.predicates)
    )
    if predicates == access.predicates and source == access.source:
        return [access]
    return [access, KeptAccess(access.kind, source, predicates, access.orders)]


def _probed(space: PredicateSpace, access: KeptAccess, names: Sequence[str]) -> Access:
    at = {name: i for i, name in enumerate(names)}
    source, key = list(access.source), None
    if access.kind == "order":
        # As the columns of its index stand.
        source.sort(key=lambda p: (at[space.predicates[p].right], p))
        old = tuple(at[space.predicates[p].right] for p in source)
        key = next(k for k in access.orders if k[:2] == old)
    others = [p for p in access.predicates if p not in access.source]
    # Equalities reject most.
    others.sort(key=lambda p: (space.op_of[p], p))
    first, then = (tuple((space.group_of[p], space.op_of[p]) for p in part) for part in (source, others))
    return Access(access.kind, first, then, key)  # type: ignore[arg-type]


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
        for turned in _directions(space, access):
            columns |= dict.fromkeys(at[space.predicates[p].right] for p in turned.source)
    return sorted(columns), sorted(orders)


# -- the whole table ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WholePlan:
    """How constraints are looked for among all pairs of rows."""

    joined: tuple[KeptAccess, ...]  # sets of equalities that the table is joined with itself on
    by_join: Bool  # which constraints these serve
    scanned: bool  # the others are scanned for; else each is verified on its own


def for_whole_table(space: PredicateSpace, dcs: U64, statistics: Statistics) -> WholePlan:
    """How to look for the constraints dcs uint64[k, n_words] among all pairs of rows.

    A table is joined with itself on sets of equalities: sorted once for each set, and the pairs found are
    compared. Sets of least cost for each constraint newly served are taken (greedy), among those of up to
    three equalities, and all equalities of a constraint. What is left, or would cost more so than on its
    own, is verified (`denial/violations.py`: n log n), or scanned for if there are few different rows.
    """
    n, sample = statistics.n_rows, statistics.pairs
    assert sample is not None
    equal = [p for p in range(space.n_predicates) if space.op_of[p] == EQ]
    member = bits_of(dcs, space.n_predicates)
    pairs = bits_of(sample.masks, space.n_predicates)
    total = max(1, int(sample.counts.sum()))
    wanted: set[tuple[int, ...]] = set()
    for row in np.unique(member[:, equal], axis=0):
        numbers = tuple(p for p, there in zip(equal, row.tolist(), strict=True) if there)
        wanted |= {part for size in (1, 2, 3) for part in combinations(numbers, size)}
        wanted |= {numbers} if numbers else set()
    sets = sorted(wanted)
    n_sampled = np.array([int(sample.counts[pairs[:, list(s)].all(axis=1)].sum()) for s in sets])
    n_pairs = np.maximum(n_sampled, 0.5) / total * n * n / 2
    blocked = 2 * n_pairs / max(1, n) >= BLOCK_ROWS
    cost = NS_JOINED * n + np.where(blocked, SCANNED_NS, NS_LISTED) * n_pairs
    serves = np.array([member[:, list(s)].all(axis=1) for s in sets]).reshape(len(sets), len(dcs))
    alone = NS_VERIFIED * n
    everything = SCANNED_NS / 2 * float(statistics.folded(_columns(space, member, statistics))) ** 2
    unserved = np.ones(len(dcs), dtype=np.bool_)
    chosen: list[KeptAccess] = []
    spent = 0.0
    while unserved.any() and len(sets):
        gains = serves @ unserved.astype(np.float32)
        per = np.where(gains > 0, cost / np.maximum(gains, 1), np.inf)
        best = int(per.argmin())
        if not per[best] < alone:
            break
        spent += float(cost[best])
        chosen.append(KeptAccess("equality", sets[best][:1], sets[best]))
        unserved &= ~serves[best]
    if spent + alone * int(unserved.sum()) > everything:
        return WholePlan((), np.zeros(len(dcs), dtype=np.bool_), scanned=True)
    scanning = SCANNED_NS / 2 * float(statistics.folded(_columns(space, member[unserved], statistics))) ** 2
    return WholePlan(tuple(chosen), ~unserved, scanned=scanning <= alone * int(unserved.sum()))


def _columns(space: PredicateSpace, member: Bool, statistics: Statistics) -> tuple[int, ...]:
    """The columns that some constraints are about."""
    at = {name: i for i, name in enumerate(statistics.names)}
    used = [space.predicates[p] for p in np.flatnonzero(member.any(axis=0)).tolist()]
    return tuple(sorted({at[name] for p in used for name in (p.left, p.right)}))
