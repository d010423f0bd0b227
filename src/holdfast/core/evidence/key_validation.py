"""Validation of candidate keys on the rows of many segments: which are refuted, and by what evidence.

A task looks at one pivot column, which all its candidates contain, and at one part of the pivot's
values. Rows are clustered by the pivot, clusters refined column by column along the trie of
the candidates (`partitions.py`). Codes are gathered late: deeper columns only for rows that
still have a partner.

Exactness: equal codes of two segments can be a collision of hashes. Every witness is compared on
the texts; if one lies, the part is validated again on identities of the texts themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.evidence.kernels import pairs, partitions
from holdfast.core.rows.codes import texts_differ
from holdfast.core.rows.kernels.masks import contained_in_any, n_words_for
from holdfast.core.rows.segments import Segment

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]

# Rows whose codes are gathered at once.
GATHER_ROWS = 1 << 17
# Refuted candidates that are climbed from at once.
CLIMB_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Place:
    """Which rows a task looks at: those whose value of the pivot falls into one of several parts."""

    pivot: int
    part: int
    n_parts: int


def validate_candidates(
    segments: Sequence[Segment], candidates: U64, place: Place, ranking: Sequence[int], nulls_distinct: bool
) -> tuple[Bool, U64, I64]:
    """(refuted, masks, witnesses): which candidates two rows of this part agree on, and evidence.

    Every refuted candidate is contained in one of the masks; witnesses are pairs of row ids.
    """
    sequences, order = trie(candidates, place.pivot, ranking)
    columns = range(len(segments[0].schema))
    views = [{c: s.dictionary(c) for c in columns} for s in segments]
    found = refute(segments, views, place, sequences, nulls_distinct)
    if not honest(segments, found[1], found[2]):
        for c in columns:
            if segments[0].schema.types[c].hashed:
                for view, identity in zip(views, text_identities(segments, c), strict=True):
                    view[c] = identity
        found = refute(segments, views, place, sequences, nulls_distinct)
    in_order, masks, names = found
    refuted = np.empty_like(in_order)
    refuted[order] = in_order
    proven = names[:, 0, 0] >= 0
    names = names[proven]
    ids = np.full_like(names, -1)
    for i, segment in enumerate(segments):
        here = (names >= 0) & (names >> 32 == i)
        ids[here] = segment.row_ids(names[here] & 0xFFFFFFFF)
    return refuted, masks[proven], ids


def trie(candidates: U64, pivot: int, ranking: Sequence[int]) -> tuple[I32, I64]:
    """(sequences, order): each candidate's columns but the pivot, most selective first, sorted.

    sequences[i] belongs to candidates[order[i]].
    """
    bits = np.unpackbits(candidates.view(np.uint8), axis=1, bitorder="little").astype(np.bool_)
    others = [c for c in ranking if c != pivot]
    member = bits[:, others]
    sizes = member.sum(axis=1)
    sequences = np.full((len(candidates), max(1, int(sizes.max(initial=0)))), -1, dtype=np.int32)
    row, rank = np.nonzero(member)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sequences[row, np.arange(len(row)) - starts[row]] = rank
    order = np.lexsort(sequences.T[::-1])
    column = np.array([*others, -1], dtype=np.int32)  # the padding, -1, stays -1
    return column[sequences[order]], order


def null_code(dictionaries: Sequence[U64]) -> int:
    """A code that none of the dictionaries holds, to stand for NULL."""
    code = np.uint64(0xFFFFFFFFFFFFFFFF)
    while any(len(d) and d[min(int(np.searchsorted(d, code)), len(d) - 1)] == code for d in dictionaries):
        code -= np.uint64(1)
    return int(code)


def refute(
    segments: Sequence[Segment],
    views: Sequence[dict[int, U64]],
    place: Place,
    sequences: I32,
    nulls_distinct: bool,
) -> tuple[Bool, U64, I64]:
    """(refuted, masks, witnesses) of the candidates; witnesses are `segment << 32 | position`.

    The pivot's clusters are refined by the first column of the sequences; the other columns are
    gathered only for the few rows that still have a partner then.
    """
    pivot = place.pivot
    n_columns = len(segments[0].schema)
    # Exact identities are not sorted, but no code of theirs comes near the largest ones.
    nulls = np.array([null_code([s.dictionary(c) for s in segments]) for c in range(n_columns)], np.uint64)
    rows = Rows.of_part(segments, views, nulls, place, nulls_distinct)
    refuted = np.zeros(len(sequences), dtype=np.bool_)
    masks = candidate_masks(sequences, pivot, n_words_for(n_columns))
    witnesses = np.full((len(sequences), pairs.WITNESSES, 2), -1, dtype=np.int64)
    clustered, offsets = partitions.cluster(rows.values([pivot])[0], nulls_distinct, int(nulls[pivot]))
    for first in np.unique(sequences[:, 0]).tolist():
        branch = np.flatnonzero(sequences[:, 0] == first)
        kept, bounds = clustered, offsets
        if first >= 0:
            column = rows.values([first])[0]
            kept, bounds = partitions.refine(column, clustered, offsets, nulls_distinct, int(nulls[first]))
        walk(rows.take(kept), bounds, branch, sequences, nulls_distinct, refuted, masks, witnesses)
    return refuted, masks, witnesses


def walk(
    rows: Rows,
    offsets: I64,
    branch: I64,
    sequences: I32,
    nulls_distinct: bool,
    refuted: Bool,
    masks: U64,
    witnesses: I64,
) -> None:
    """Validate the candidates of one branch of the trie on clusters that agree on their first columns."""
    deeper = np.ascontiguousarray(sequences[branch, 1:])
    if not deeper.shape[1]:
        deeper = np.full((len(branch), 1), -1, dtype=np.int32)
    needed = np.unique(deeper[deeper >= 0])
    slot = np.full(len(rows.nulls), -1, dtype=np.int32)
    slot[needed] = np.arange(len(needed))
    done = np.zeros(len(branch), dtype=np.bool_)
    first = 0
    while first < len(offsets) - 1 and not done.all():
        # whole clusters, about GATHER_ROWS rows
        last = int(np.searchsorted(offsets, offsets[first] + GATHER_ROWS, side="right")) - 1
        last = max(last, first + 1)
        low, high = int(offsets[first]), int(offsets[last])
        here = rows.take(slice(low, high))
        values = here.values(needed) if len(needed) else np.empty((1, high - low), np.uint64)
        owner, bounds, leaves = partitions.validate(
            values, slot, offsets[first : last + 1] - low, deeper, nulls_distinct, rows.nulls, done
        )
        if len(owner):
            climb_in_blocks(here, owner, bounds, leaves, branch, nulls_distinct, masks, witnesses)
        first = last
    refuted[branch] = done


def climb_in_blocks(
    rows: Rows,
    owner: I64,
    bounds: I64,
    leaves: I32,
    branch: I64,
    nulls_distinct: bool,
    masks: U64,
    witnesses: I64,
) -> None:
    """Turn refuting clusters into evidence: agree sets that contain every refuted candidate.

    Candidates are many and maximal agree sets few, so a climb usually refutes hundreds of them:
    climb for some, strike out what their agree sets contain, go on with the rest. A candidate
    that is struck out has no evidence of its own (its witnesses stay -1).
    """
    columns = range(len(rows.nulls))
    open_ = np.random.default_rng(len(owner)).permutation(np.unique(owner))
    by_owner = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[by_owner], np.arange(len(branch) + 1))
    while len(open_):
        block, open_ = np.sort(open_[:CLIMB_BLOCK]), open_[CLIMB_BLOCK:]
        clusters = by_owner[spans(starts[block], starts[block + 1] - starts[block])]
        sizes = bounds[clusters + 1] - bounds[clusters]
        found = rows.take(leaves[spans(bounds[clusters], sizes)])
        mine = branch[block]
        partitions.climb(
            found.values(columns),
            branch[owner[clusters]],
            np.concatenate([[0], np.cumsum(sizes)]),
            nulls_distinct,
            rows.nulls,
            masks,
            witnesses,
        )
        local = witnesses[mine]
        witnesses[mine] = np.where(local >= 0, found.names()[np.maximum(local, 0)], -1)
        open_ = open_[~contained_in_any(masks[branch[open_]], masks[mine])]


def spans(starts: I64, sizes: I64) -> I64:
    """The numbers start..start + size of each span, one after the other.

    >>> spans(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    return np.repeat(starts - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)


def candidate_masks(sequences: I32, pivot: int, n_words: int) -> U64:
    """The candidates as masks: the pivot and the columns of each sequence."""
    masks = np.zeros((len(sequences), n_words), dtype=np.uint64)
    masks[:, pivot >> 6] |= np.uint64(1) << np.uint64(pivot & 63)
    for j in range(sequences.shape[1]):
        at = np.flatnonzero(sequences[:, j] >= 0)
        column = sequences[at, j].astype(np.uint64)
        masks[at, (column >> np.uint64(6)).astype(np.int64)] |= np.uint64(1) << (column & np.uint64(63))
    return masks


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of several segments, in any order; their codes are gathered when asked for."""

    segments: Sequence[Segment]
    views: Sequence[dict[int, U64]]  # per segment and column: what a local code stands for
    nulls: U64  # per column: the code that stands for NULL
    owner: I64
    position: I32
    in_order: bool = False  # segment after segment: codes are read as they lie

    @classmethod
    def of_part(
        cls,
        segments: Sequence[Segment],
        views: Sequence[dict[int, U64]],
        nulls: U64,
        place: Place,
        nulls_distinct: bool,
    ) -> Rows:
        """The live rows whose pivot value falls into the part."""
        pivot, null = place.pivot, int(nulls[place.pivot])
        found = [
            partitions.select(
                s.dictionary(pivot), s.codes[pivot], s.live, null, place.part, place.n_parts, nulls_distinct
            )
            for s in segments
        ]
        owner = np.repeat(np.arange(len(segments), dtype=np.int64), [len(p) for p in found])
        return cls(segments, views, nulls, owner, np.concatenate(found), in_order=True)

    def take(self, at: I32 | slice) -> Rows:
        return Rows(self.segments, self.views, self.nulls, self.owner[at], self.position[at])

    def names(self) -> I64:
        """The rows as `segment << 32 | position`."""
        return self.owner << 32 | self.position

    def values(self, columns: Sequence[int] | range | NDArray[np.int32]) -> U64:
        """uint64[len(columns), n]: the codes of the rows."""
        out = np.empty((len(columns), len(self.owner)), dtype=np.uint64)
        for i, segment in enumerate(self.segments):
            if self.in_order:
                at = np.arange(*np.searchsorted(self.owner, [i, i + 1]))
            else:
                at = np.flatnonzero(self.owner == i)
            if not len(at):
                continue
            where = self.position[at]
            for j, c in enumerate(columns):
                partitions.gather(
                    self.views[i][int(c)], segment.codes[c], where, at, int(self.nulls[c]), out[j]
                )
        return out


def honest(segments: Sequence[Segment], masks: U64, witnesses: I64) -> bool:
    """Whether all witnesses agree on the texts, too, of the hashed columns of their masks."""
    schema = segments[0].schema
    real = witnesses[:, :, 0] >= 0
    mask_of = np.repeat(np.arange(len(masks)), witnesses.shape[1]).reshape(real.shape)[real]
    left, right = witnesses[:, :, 0][real], witnesses[:, :, 1][real]
    across = (left >> 32) != (right >> 32)  # within a segment equal codes are equal texts
    if not across.any():
        return True
    mask_of, left, right = mask_of[across], left[across], right[across]
    for c, column in enumerate(schema.columns):
        if not column.type.hashed:
            continue
        agreed = (masks[mask_of, c >> 6] >> np.uint64(c & 63)) & np.uint64(1) == 1
        a, b = left[agreed], right[agreed]
        if len(a) and texts_differ(_texts_at(segments, c, a), _texts_at(segments, c, b)).any():
            return False
    return True


def _texts_at(segments: Sequence[Segment], column: int, rows: I64) -> pa.Array:
    """The texts of rows given as `segment << 32 | position`; NULL for NULL."""
    order, chunks = [], []
    for i, segment in enumerate(segments):
        at = np.flatnonzero((rows >> 32) == i)
        if len(at):
            codes = segment.codes[column][rows[at] & 0xFFFFFFFF]
            texts = segment.texts(column)
            assert texts is not None
            # NULLs as an empty text: a NULL and a text never share a code, so they are never compared
            picked = texts.take(pa.array(np.maximum(codes - 1, 0), mask=codes == 0)).fill_null(b"")
            chunks.append(picked)
            order.append(at)
    back = np.argsort(np.concatenate(order))
    return pa.concat_arrays(chunks).take(pa.array(back))


def text_identities(segments: Sequence[Segment], column: int) -> list[U64]:
    """For each segment's dictionary entry a number that equal texts share and no others do."""
    texts = [t for s in segments if (t := s.texts(column)) is not None]
    numbered = pa.concat_arrays(texts).dictionary_encode().indices.to_numpy().astype(np.uint64)
    return np.split(numbered, np.cumsum([len(t) for t in texts])[:-1])
