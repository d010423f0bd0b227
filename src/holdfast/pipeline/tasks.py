"""The task functions: what one Spark task (or the driver, inline) does with one payload.

A payload is a small JSON document that names files; data is read from storage by memory map, never
shipped. A result is a bundle: consolidated, as large as what was learnt, not as what was read.
`relation.py` makes the payloads and merges the results.

- `encode_part`: read some splits of a source, type them, write segments; sample evidence.
- `index_segment`: index further columns of a segment.
- `locate_rows`: find the rows that a batch deletes, in one segment.
- `probe_segment`: evidence of the pairs of a batch with one segment that break a key.
- `validate_part`: refute candidate keys on one part of one pivot column's values.
- `merge_run`: merge some segments into one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import encode, pairs, partitions
from holdfast.kernels.masks import contained_in_any, contains_any, maximal_masks, n_words_for
from holdfast.model.schema import Schema
from holdfast.pipeline.sources import ReadOptions, Split, read_split, read_split_guessed
from holdfast.storage.bundle import Bundle, open_bundle, pack
from holdfast.storage.codes import texts_differ
from holdfast.storage.files import FileRef
from holdfast.storage.segments import (
    CodeCollisionError,
    Segment,
    encode_rows,
    merge_segments,
    open_segment,
    write_index,
    write_segment,
)
from holdfast.storage.tables import SegmentRef

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Bool = NDArray[np.bool_]
Payload = dict[str, Any]

# Pairs compared per column for a segment's sampled evidence.
SAMPLE_PAIRS = 20_000
# Windows of neighbouring rows in each column's order that are climbed from.
N_WINDOWS = 64
WINDOW_ROWS = 512
# Rows whose codes are gathered at once for validation.
GATHER_ROWS = 1 << 17
# Refuted candidates that are climbed from at once.
CLIMB_BLOCK = 256


def opened(payload: Payload, what: str, schema: Schema) -> Segment:
    """The segment that a payload names."""
    return open_segment(Path(payload["root"]), SegmentRef.from_dict(payload[what]), schema)


def all_opened(payload: Payload, schema: Schema) -> list[Segment]:
    root = Path(payload["root"])
    return [open_segment(root, SegmentRef.from_dict(s), schema) for s in payload["segments"]]


def staged(payload: Payload, what: str) -> Bundle:
    """The masks that the driver staged for this job."""
    return open_bundle(Path(payload["root"]), FileRef.from_dict(payload[what]), what)


# -- encode ------------------------------------------------------------------------------------


def encode_part(payload: Payload) -> bytes:
    """Read splits one by one into segments; say which guessed types failed.

    When a guess fails anywhere the job is done again with better types, so nothing is written then.
    """
    options = ReadOptions.from_dict(payload["options"])
    schema = Schema.from_dict(payload["schema"])
    splits = [Split.from_dict(s) for s in payload["splits"]]
    failed: dict[str, list[str]] = {}
    tables = []
    for split in splits:
        if payload["guessed"]:
            table, verdicts = read_split_guessed(split, schema.names, schema.types, options, payload["table"])
            for name, survived in verdicts.items():
                known = failed.get(name)
                failed[name] = survived if known is None else [t for t in known if t in survived]
        else:
            table = read_split(
                split,
                schema.names,
                schema.types,
                options=options,
                textual=payload["textual"],
                table=payload["table"],
                version=payload["version"],
            )
        tables.append(table)
    if failed:
        return pack({}, {"failed": json.dumps(failed), "segments": "[]"})
    rows = pa.concat_tables(tables)
    del tables
    return write_rows(rows, schema, payload)


def write_rows(rows: pa.Table, schema: Schema, payload: Payload) -> bytes:
    """Encode typed rows as segments, with sampled evidence if the payload asks for it."""
    root = Path(payload["root"])
    refs, masks, witnesses = [], [], []
    if not len(rows):
        return pack({}, {"failed": "{}", "segments": "[]"})
    for i, columns in enumerate(encode_rows(rows, schema)):
        ref = write_segment(root, payload["folder"], payload["number"] + i, columns, payload["locator"])
        refs.append(ref.to_dict())
        if payload["sample"]:
            segment = open_segment(root, ref, schema)
            found = sample_evidence(segment, payload["nulls"] == "distinct", seed=payload["number"] + i)
            masks.append(found[0])
            witnesses.append(found[1])
    meta = {"failed": "{}", "segments": json.dumps(refs)}
    if not masks:
        return pack({}, meta)
    return pack({"masks": np.concatenate(masks), "witnesses": np.concatenate(witnesses)}, meta)


def sample_evidence(segment: Segment, nulls_distinct: bool, seed: int) -> tuple[U64, I64]:
    """Maximal agree sets of sampled rows, with witnesses by row id.

    Pairs that share a value of some column show what is common; climbs from windows of rows that
    share one reach what is large. Neither needs to be complete: validation finds the rest.
    """
    rng = np.random.default_rng(seed)
    left, right, windows = [], [], []
    for c in range(len(segment.schema)):
        offsets, positions = encode.postings(segment.codes[c], len(segment.dictionary(c)))
        a, b = pairs.sample_pairs(segment.codes[c], positions, SAMPLE_PAIRS, rng)
        left.append(a)
        right.append(b)
        # NULLs come first in the postings; where they are distinct they share nothing
        start = int(offsets[1]) if nulls_distinct else 0
        for low in rng.integers(start, max(start + 1, len(positions) - WINDOW_ROWS), N_WINDOWS):
            windows.append((c, positions[low : low + WINDOW_ROWS]))
    masks, witnesses = pairs.pairs_evidence(
        segment.codes, np.concatenate(left), np.concatenate(right), nulls_distinct
    )
    more_masks, more_witnesses = climb_windows(segment, windows, nulls_distinct)
    masks, witnesses = np.concatenate([masks, more_masks]), np.concatenate([witnesses, more_witnesses])
    top = maximal_masks(masks)
    return masks[top], by_row_id(witnesses[top], segment, segment)


def climb_windows(
    segment: Segment, windows: Sequence[tuple[int, I32]], nulls_distinct: bool
) -> tuple[U64, I64]:
    """An agree set for each window of rows in which some share a value of the window's column."""
    n_columns = len(segment.schema)
    nulls = np.zeros(n_columns, dtype=np.uint64)  # local codes are codes too, and 0 is NULL
    masks = np.zeros((len(windows), n_words_for(n_columns)), dtype=np.uint64)
    witnesses = np.full((len(windows), pairs.WITNESSES, 2), -1, dtype=np.int64)
    for i, (c, positions) in enumerate(windows):
        values = segment.codes[:, positions].astype(np.uint64)
        rows, offsets = partitions.cluster(values[c], nulls_distinct, 0)
        if not len(rows):
            continue
        masks[i, c >> 6] |= np.uint64(1) << np.uint64(c & 63)
        owner = np.full(len(offsets) - 1, i, dtype=np.int64)
        partitions.climb(values[:, rows], owner, offsets, nulls_distinct, nulls, masks, witnesses)
        local = witnesses[i]
        witnesses[i] = np.where(local >= 0, positions[rows[np.maximum(local, 0)]], -1)
    proven = witnesses[:, 0, 0] >= 0
    return masks[proven], witnesses[proven]


def by_row_id(witnesses: I64, left: Segment, right: Segment) -> I64:
    """Pairs of positions in two segments as pairs of row ids; -1 stays -1."""
    real = witnesses[:, :, 0] >= 0
    out = np.full_like(witnesses, -1)
    out[real, 0] = left.row_ids(witnesses[:, :, 0][real])
    out[real, 1] = right.row_ids(witnesses[:, :, 1][real])
    return out


# -- index, locate -----------------------------------------------------------------------------


def index_segment(payload: Payload) -> bytes:
    """Index columns of a segment; the result is its new reference."""
    schema = Schema.from_dict(payload["schema"])
    segment = opened(payload, "segment", schema)
    ref = write_index(segment.root, payload["folder"], segment, payload["columns"])
    return pack({}, {"segment": json.dumps(ref.to_dict())})


def locate_rows(payload: Payload) -> bytes:
    """(query, row id) of the live rows of a segment that equal a query row on some columns."""
    schema = Schema.from_dict(payload["schema"])
    segment, queries = opened(payload, "segment", schema), opened(payload, "queries", schema)
    columns = payload["columns"]
    translated = segment.translated(queries, columns, nulls_distinct=False)
    query, position = pairs.locate(
        segment.row_hashes,
        segment.row_order,
        queries.row_hashes,
        segment.codes,
        segment.live,
        translated[:, queries.row_order],
        np.array(columns, dtype=np.int32),
    )
    return pack(
        {"query": queries.row_order[query].astype(np.int64), "row_id": segment.row_ids(position)}, {}
    )


# -- probe -------------------------------------------------------------------------------------


def probe_segment(payload: Payload) -> bytes:
    """Evidence of pairs (batch row, row of this segment) that agree on a key (SWAN alg. 1-2).

    For each set of indexed columns of some key, the shortest posting list of each batch row is
    walked and the others are intersected by comparing codes. Agree sets that contain no key are
    dropped before they leave the task.
    """
    schema = Schema.from_dict(payload["schema"])
    segment, batch = opened(payload, "segment", schema), opened(payload, "batch", schema)
    keys = staged(payload, "keys").array("masks").reshape(-1, n_words_for(len(schema)))
    masks, witnesses = probe_pairs(
        segment, batch, payload["probes"], keys, payload["nulls"] == "distinct", own=payload["own"]
    )
    return pack({"masks": masks, "witnesses": witnesses}, {})


def probe_pairs(
    segment: Segment, batch: Segment, probes: Sequence[Sequence[int]], keys: U64, nulls_distinct: bool, *, own: bool
) -> tuple[U64, I64]:
    n_batch = batch.ref.n_rows
    indexed = sorted({c for p in probes for c in p})
    slot = {c: i for i, c in enumerate(indexed)}
    translated = segment.translated(batch, range(len(segment.schema)), nulls_distinct)
    starts = np.zeros((len(indexed), n_batch), dtype=np.int32)
    ends = np.zeros_like(starts)
    lists = []
    for i, c in enumerate(indexed):
        offsets, positions = segment.index(c)
        code = np.maximum(translated[c], 0)
        starts[i], ends[i] = offsets[code], offsets[code + 1]
        lists.append(positions)
    width = max(len(p) for p in probes)
    columns = np.full((len(probes), width), -1, dtype=np.int32)
    slots = np.full((len(probes), width), -1, dtype=np.int32)
    for i, probe in enumerate(probes):
        columns[i, : len(probe)] = probe
        slots[i, : len(probe)] = [slot[c] for c in probe]
    chosen, _ = pairs.choose_lists(starts, ends, translated[indexed], slots)
    found_masks, found_witnesses = [], []
    for i in range(len(indexed)):
        masks, witnesses = pairs.probe(
            segment.codes, segment.live, translated, lists[i], starts[i], ends[i], chosen, i, columns, own
        )
        breaking = contains_any(masks, keys)
        found_masks.append(masks[breaking])
        found_witnesses.append(by_row_id(witnesses[breaking], batch, segment))
    return np.concatenate(found_masks), np.concatenate(found_witnesses)


# -- validate ----------------------------------------------------------------------------------


def validate_part(payload: Payload) -> bytes:
    """Candidates with one pivot column, refuted on the rows whose pivot value falls into one part."""
    schema = Schema.from_dict(payload["schema"])
    segments = all_opened(payload, schema)
    bundle = staged(payload, "candidates")
    candidates = bundle.array("masks").reshape(-1, n_words_for(len(schema)))
    mine = np.flatnonzero(bundle.array("pivots") == payload["pivot"])
    distinct = payload["nulls"] == "distinct"
    sequences, order = trie(candidates[mine], payload["pivot"], payload["ranking"])
    place = payload["pivot"], payload["part"], payload["n_parts"]
    views = [{c: s.dictionary(c) for c in range(len(schema))} for s in segments]
    refuted, masks, witnesses = refute(segments, views, place, sequences, distinct)
    if not honest(segments, masks, witnesses):
        # A collision of hashes made two texts look equal: do it again on the texts themselves.
        for c, column in enumerate(schema.columns):
            if column.type.hashed:
                for view, identity in zip(views, text_identities(segments, c), strict=True):
                    view[c] = identity
        refuted, masks, witnesses = refute(segments, views, place, sequences, distinct)
    proven = np.flatnonzero(witnesses[:, 0, 0] >= 0)
    names = witnesses[proven]
    ids = np.full_like(names, -1)
    for i, segment in enumerate(segments):
        here = (names >= 0) & (names >> 32 == i)
        ids[here] = segment.row_ids(names[here] & 0xFFFFFFFF)
    return pack({"candidate": mine[order[refuted]], "masks": masks[proven], "witnesses": ids}, {})


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
    while any(len(d) and d[min(np.searchsorted(d, code), len(d) - 1)] == code for d in dictionaries):
        code -= np.uint64(1)
    return int(code)


def refute(
    segments: Sequence[Segment],
    views: Sequence[dict[int, U64]],
    place: tuple[int, int, int],
    sequences: I32,
    nulls_distinct: bool,
) -> tuple[Bool, U64, I64]:
    """(refuted, masks, witnesses) of the candidates; witnesses are `segment << 32 | position`.

    The pivot's clusters are refined by the first column of the sequences; the other columns are
    gathered only for the few rows that still have a partner then.
    """
    pivot, part, n_parts = place
    n_columns = len(segments[0].schema)
    # Exact identities are not sorted, but no code of theirs comes near the largest ones.
    nulls = np.array([null_code([s.dictionary(c) for s in segments]) for c in range(n_columns)], np.uint64)
    rows = Rows.of_part(segments, views, nulls, pivot, part, n_parts, nulls_distinct)
    refuted = np.zeros(len(sequences), dtype=np.bool_)
    masks = candidate_masks(sequences, pivot, n_words_for(n_columns))
    witnesses = np.full((len(sequences), pairs.WITNESSES, 2), -1, dtype=np.int64)
    clustered, offsets = partitions.cluster(rows.values([pivot])[0], nulls_distinct, int(nulls[pivot]))
    rows = rows.take(clustered)
    for first in np.unique(sequences[:, 0]):
        branch = np.flatnonzero(sequences[:, 0] == first)
        within, bounds = rows, offsets
        if first >= 0:
            column = rows.values([int(first)])[0]
            kept, bounds = partitions.refine(
                column, np.arange(len(column), dtype=np.int32), offsets, nulls_distinct, int(nulls[first])
            )
            within = rows.take(kept)
        walk(within, bounds, branch, sequences, nulls_distinct, refuted, masks, witnesses)
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

    @classmethod
    def of_part(
        cls,
        segments: Sequence[Segment],
        views: Sequence[dict[int, U64]],
        nulls: U64,
        pivot: int,
        part: int,
        n_parts: int,
        nulls_distinct: bool,
    ) -> Rows:
        """The live rows whose pivot value falls into the part."""
        found = [
            partitions.select(
                s.dictionary(pivot), s.codes[pivot], s.live, int(nulls[pivot]), part, n_parts, nulls_distinct
            )
            for s in segments
        ]
        owner = np.repeat(np.arange(len(segments), dtype=np.int64), [len(p) for p in found])
        return cls(segments, views, nulls, owner, np.concatenate(found))

    def take(self, at: I32 | slice) -> Rows:
        return Rows(self.segments, self.views, self.nulls, self.owner[at], self.position[at])

    def names(self) -> I64:
        """The rows as `segment << 32 | position`."""
        return self.owner << 32 | self.position

    def values(self, columns: Sequence[int] | range | NDArray[np.int32]) -> U64:
        """uint64[len(columns), n]: the codes of the rows."""
        out = np.empty((len(columns), len(self.owner)), dtype=np.uint64)
        for i, segment in enumerate(self.segments):
            at = np.flatnonzero(self.owner == i) if len(self.segments) > 1 else np.arange(len(self.owner))
            if not len(at):
                continue
            where = self.position[at]
            for j, c in enumerate(columns):
                partitions.gather(self.views[i][int(c)], segment.codes[c], where, at, int(self.nulls[c]), out[j])
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
    texts = [s.texts(column) for s in segments]
    numbered = pa.concat_arrays(texts).dictionary_encode().indices.to_numpy().astype(np.uint64)
    return np.split(numbered, np.cumsum([len(t) for t in texts])[:-1])


# -- merge -------------------------------------------------------------------------------------


def merge_run(payload: Payload) -> bytes:
    """Merge segments into one and index it; an empty result says that their codes collide."""
    schema = Schema.from_dict(payload["schema"])
    segments = all_opened(payload, schema)
    root = Path(payload["root"])
    try:
        ref = merge_segments(root, payload["folder"], payload["number"], segments, payload["locator"])
    except CodeCollisionError:
        return pack({}, {"segment": "null"})
    if payload["columns"] and ref.n_rows:
        ref = write_index(root, payload["folder"], open_segment(root, ref, schema), payload["columns"])
    return pack({}, {"segment": json.dumps(ref.to_dict())})
