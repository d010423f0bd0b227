"""Probing a batch: the pairs of its rows with others that agree on a key, or that violate a dependency.

One task for each pair of a batch's segment and another; each looks the batch up in the indexes of the other.
One job, whatever the number of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels import pairs
from holdfast.core.evidence.kernels.fd_masks import breaks
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.witnessed_masks import evidence_in
from holdfast.core.rows.kernels.masks import (
    contained_in_any,
    contains_any,
    mask_of,
    minimal_masks,
    n_words_for,
    popcounts,
    positions_of,
)
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment, by_row_id
from holdfast.core.rows.table_state import SegmentRef, payloads_of
from holdfast.core.rows.tasks import Payload, opened, parsed_schema, staged
from holdfast.core.store.bundle import pack

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

# What it takes on one core to compare a pair of rows, in ns; pairs are estimated from posting lists.
NS_PAIR = 40
# A random access takes as long as making the words of so many rows.
ENTRIES_WORTH_WORDS = 4


def probe(
    relation: Relation,
    batch: Sequence[SegmentRef],
    keys: U64,
    index_columns: Sequence[int],
    rhs: U64 | None = None,
    non_uniques: U64 | None = None,
) -> tuple[U64, I64]:
    """Evidence of all pairs of a batch row with another row that agree on some key.

    `non_uniques` are agree sets, so they contain no key; neither does what is part of one.

    With `rhs` the keys are left-hand sides, and of the pairs that agree on one those count that differ
    on a column of its rhs. The segments of the batch are the newest of the relation; they are probed
    with themselves, too. Every key has an indexed column.
    """
    probes = probes_for(keys, index_columns, rhs)
    staged = relation.stage(
        "keys",
        masks=keys,
        rhs=rhs if rhs is not None else keys[:0],
        non_uniques=non_uniques if non_uniques is not None else keys[:0],
    )
    payloads, work = [], 0.0
    named = payloads_of([*relation.segments, *batch])
    new = {s.number for s in batch}
    for i, part in enumerate(batch):
        earlier = [s for s in relation.segments if s.number not in new] + list(batch[: i + 1])
        for segment in earlier:
            within = segment.number == part.number
            if not segment.n_live or (within and part.n_rows == 1):
                continue
            payloads.append(
                relation.payload(
                    segment=named[segment.number],
                    batch=named[part.number],
                    keys=staged,
                    probes=probes,
                    within=within,
                    settled=segment.number not in new,
                )
            )
            walked = [p.columns for p in probes if not p.determines]
            shortest = [min(segment.n_rows / max(1, segment.distinct[c]) for c in p) for p in walked]
            work += part.n_rows * (sum(shortest) + len(relation.schema))
    results = relation.run(probe_segment, payloads, NS_PAIR * work)
    return evidence_in(results, relation.n_words, WITNESSES, 2)


def probes_for(keys: U64, index_columns: Sequence[int], rhs: U64 | None = None) -> list[Probe]:
    """What to probe for: a pair that agrees on a key agrees on the columns of one of the probes.

    These are the minimal sets of indexed columns of the keys. Keys of one column that come with right-hand
    sides are probes of their own, since one old row of each value can answer them.
    """
    if rhs is None:
        return [Probe(list(columns), []) for columns in _indexed_parts(keys, index_columns)]
    single = popcounts(keys) == 1
    alone = [
        Probe(list(positions_of(key)), list(positions_of(right)), determines=True)
        for key, right in zip(keys[single], rhs[single], strict=True)
    ]
    wide_keys, wide_rhs = keys[~single], rhs[~single]
    probes = []
    for columns in _indexed_parts(wide_keys, index_columns):
        part = mask_of(columns, keys.shape[1])
        containing = ((wide_keys & part) == part).all(axis=1)
        probes.append(Probe(list(columns), list(positions_of(np.bitwise_or.reduce(wide_rhs[containing])))))
    return [*alone, *probes]


def _indexed_parts(keys: U64, index_columns: Sequence[int]) -> list[tuple[int, ...]]:
    """The minimal sets of indexed columns of the keys. Single columns are, and what contains one is not."""
    parts = keys & mask_of(index_columns, keys.shape[1])
    single = np.bitwise_or.reduce(parts[popcounts(parts) == 1], axis=0)
    wide = parts[~(parts & single).any(axis=1)]
    return [*((c,) for c in positions_of(single)), *(positions_of(m) for m in wide[minimal_masks(wide)])]


# -- tasks -------------------------------------------------------------------------------------


class Probe(NamedTuple):
    """What a pair must agree on to be of interest and, if there is any `rhs`, differ on some of.

    `determines`: it is a single column that determines the whole `rhs` among the old rows.
    """

    columns: list[int]
    rhs: list[int]
    determines: bool = False


def probe_segment(payload: Payload) -> bytes:
    """Evidence of pairs (batch row, row of this segment) that agree on a key (SWAN alg. 1-2).

    Or, given right-hand sides, that agree on a left-hand side and violate its dependency.

    For each set of indexed columns of some key, the shortest posting list of each batch row is
    walked and the others are intersected by comparing codes. Agree sets that contain no key are
    dropped before they leave the task.
    """
    schema = parsed_schema(payload["schema"])
    segment, batch = opened(payload, "segment", schema), opened(payload, "batch", schema)
    segment.expect(batch.ref.n_rows)
    bundle, n_words = staged(payload, "keys"), n_words_for(len(schema))
    keys, rhs, non_uniques = (
        bundle.array(name).reshape(-1, n_words) for name in ("masks", "rhs", "non_uniques")
    )
    probes = [Probe(*p) for p in payload["probes"]]
    nulls_distinct = payload["nulls"] == "distinct"
    masks, pairs = probe_pairs(
        segment, batch, probes, nulls_distinct, within=payload["within"], settled=payload["settled"]
    )
    # There are far fewer maximal non-uniques than keys, and most agree sets are part of one.
    breaking = breaks(masks, keys, rhs) if len(rhs) else ~contained_in_any(masks, non_uniques)
    if not len(rhs):
        breaking[breaking] = contains_any(masks[breaking], keys)
    witnesses = by_row_id(pairs[breaking], batch, segment)
    return pack({"masks": masks[breaking], "witnesses": witnesses}, {})


def probe_pairs(
    segment: Segment,
    batch: Segment,
    probes: Sequence[Probe],
    nulls_distinct: bool,
    *,
    within: bool,
    settled: bool,
) -> tuple[U64, I64]:
    """(masks, witnesses) of all pairs that one of the probes asks for; witnesses are positions.

    `within`: both are one segment, and each pair of its rows is seen once. `settled`: the rows of the
    segment are old ones, among which all dependencies hold.

    Where there are fewer pairs of rows than probes, as in wide tables, all of them are compared.
    """
    n_batch = batch.ref.n_rows
    if n_batch * segment.ref.n_rows <= len(probes):
        return all_pairs(segment, batch, nulls_distinct, within=within)
    indexed = sorted({c for p in probes for c in p.columns})
    slot = {c: i for i, c in enumerate(indexed)}
    translated = segment.translated(batch, range(len(segment.schema)), nulls_distinct)
    starts = np.zeros((len(indexed), n_batch), dtype=np.int32)
    ends = np.zeros_like(starts)
    lists = []
    for i, c in enumerate(indexed):
        starts[i], ends[i], positions = segment.postings(c, np.maximum(translated[c], 0))
        lists.append(positions)
    width = max(len(p.columns) for p in probes)
    columns = np.full((len(probes), width), -1, dtype=np.int32)
    slots = np.full((len(probes), width), -1, dtype=np.int32)
    rhs = np.full((len(probes), max(1, *(len(p.rhs) for p in probes))), -1, dtype=np.int32)
    distinct = segment.ref.distinct
    for i, probe in enumerate(probes):
        # The most selective column first: it rejects most of a list's entries.
        columns[i, : len(probe.columns)] = sorted(probe.columns, key=lambda c: -distinct[c])
        slots[i, : len(probe.columns)] = [slot[c] for c in probe.columns]
        rhs[i, : len(probe.rhs)] = probe.rhs
    chosen = pairs.choose_lists(starts, ends, translated[indexed], slots)
    for i, probe in enumerate(probes):
        if settled and probe.determines:
            at = slot[probe.columns[0]]
            rows = lists[at], starts[at], ends[at]
            rhs_columns = np.array(probe.rhs, dtype=np.int32)
            chosen[~pairs.contradicted(segment.codes, segment.live, translated, *rows, rhs_columns), i] = -1
    n_entries = pairs.count_entries(starts, ends, chosen)
    words = pairs.NO_WORDS
    if n_entries.sum() * ENTRIES_WORTH_WORDS > segment.ref.n_rows:
        words = pairs.row_words(segment.codes, translated, columns)
    evidence = [
        pairs.probe(
            segment.codes,
            segment.live,
            translated,
            lists[i],
            starts[i],
            ends[i],
            chosen,
            i,
            c,
            columns,
            rhs,
            within,
            words,
        )
        for i, c in enumerate(indexed)
        if n_entries[i]
    ]
    n_words = n_words_for(len(segment.schema))
    masks = np.concatenate([np.empty((0, n_words), np.uint64), *(m for m, _ in evidence)])
    witnesses = np.concatenate([np.empty((0, WITNESSES, 2), np.int64), *(w for _, w in evidence)])
    return masks, witnesses


def all_pairs(segment: Segment, other: Segment, nulls_distinct: bool, *, within: bool) -> tuple[U64, I64]:
    """(masks, witnesses) of the live rows of `other` with all of a segment's; witnesses are positions.

    `within`: it is the same segment, and each pair of its rows is seen once. Cost: columns x pairs of rows.
    """
    translated = segment.translated(other, range(len(segment.schema)), nulls_distinct)
    n_rows, n_other = segment.ref.n_rows, other.ref.n_rows
    nothing = np.full((1, 1), -1, dtype=np.int32)
    return pairs.probe(
        segment.codes,
        segment.live,
        translated,
        np.arange(n_rows, dtype=np.int32),
        np.zeros(n_other, dtype=np.int32),
        np.where(other.live, n_rows, 0).astype(np.int32),
        np.zeros((n_other, 1), dtype=np.int32),
        0,
        -1,
        nothing,
        nothing,
        within,
    )
