"""Evidence sampled from one segment: where discovery starts.

Neither part needs to be complete, only cheap: validation finds the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels import pairs, partitions
from holdfast.core.evidence.kernels.fd_masks import maximal_for
from holdfast.core.rows.encoding import Seen
from holdfast.core.rows.kernels import encode
from holdfast.core.rows.kernels.masks import (
    full_mask,
    mask_of,
    maximal_masks,
    n_words_for,
    popcounts,
    unique_masks,
)
from holdfast.core.rows.segments import ROW_BITS, Segment, by_row_id

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]

# Pairs compared per column, and for all columns together; and how many cells that may be.
SAMPLE_PAIRS = 20_000
MAX_PAIRS = 400_000
# For keys a twentieth of them, and a twelfth of the windows: what they miss a validation finds sooner, which
# compares all pairs that matter. Of 37,045 keys of 40 columns: 0.04 instead of 0.13 s, and no round more.
MAX_KEY_PAIRS = 20_000
MAX_CELLS = 400_000_000
# Of the pairs' agree sets so many are kept, the largest: among random pairs of a wide table nearly all
# differ, and the maximal ones of a million sets take minutes to find.
MAX_MASKS = 1 << 13
# Windows of neighbouring rows in each column's order that are climbed from; and the cells in all of them.
N_WINDOWS, N_KEY_WINDOWS = 24, 2
WINDOW_ROWS = 512
MAX_CLIMBED = 1 << 30


def look_for_keys(segment: Segment, payload: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """What a segment that is being encoded tells of the keys of its table; see `sampled`."""
    return _sample(segment, payload, per_column=False)


def look_for_fds(segment: Segment, payload: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """The same for functional dependencies, and keys."""
    return _sample(segment, payload, per_column=True)


def _sample(segment: Segment, payload: dict[str, Any], *, per_column: bool) -> dict[str, NDArray[Any]]:
    distinct, seed = payload["nulls"] == "distinct", segment.ref.number
    masks, witnesses = sample_evidence(segment, distinct, seed=seed, per_column=per_column)
    return {"masks": masks.ravel(), "witnesses": witnesses.ravel()}


def sampled(seen: Sequence[Seen], n_columns: int) -> tuple[U64, I64]:
    """(masks, witnesses) of what the looks of all segments saw, in the numbers that segments have now."""
    masks = [np.empty(0, np.uint64), *(some.arrays["masks"] for some in seen if "masks" in some.arrays)]
    witnesses = [np.empty(0, np.int64), *(_raised(some) for some in seen if "witnesses" in some.arrays)]
    shape = -1, pairs.WITNESSES, 2
    return np.concatenate(masks).reshape(-1, n_words_for(n_columns)), np.concatenate(witnesses).reshape(shape)


def _raised(some: Seen) -> I64:
    """The row ids of looks in the numbers that their segments have now; -1 names no row."""
    row_ids: I64 = some.arrays["witnesses"]
    return np.where(row_ids >= 0, row_ids + (some.raised << ROW_BITS), row_ids)


def sample_evidence(
    segment: Segment, nulls_distinct: bool, seed: int, *, per_column: bool = False
) -> tuple[U64, I64]:
    """Maximal agree sets of sampled rows, with witnesses by row id; `per_column`: maximal for some column.

    Pairs that share a value of some column show what is common; climbs from windows of rows that
    share one reach what is large.
    """
    rng = np.random.default_rng(seed)
    n_rows, n_columns = segment.ref.n_rows, len(segment.schema)
    most = min(MAX_PAIRS, MAX_CELLS // n_columns)
    if n_rows * (n_rows - 1) // 2 <= min(most, n_columns * SAMPLE_PAIRS):
        # No more pairs than would be sampled: all of them, and nothing is left to climb to.
        one, other = np.triu_indices(n_rows, 1)
        masks, witnesses = pairs.pairs_evidence(segment.codes, one, other, nulls_distinct)
        return _relevant(masks, by_row_id(witnesses, segment, segment), segment, per_column=per_column)
    most = most if per_column else min(most, MAX_KEY_PAIRS)
    left, right, windows = [], [], []
    n_windows = MAX_CLIMBED // (n_columns * n_columns * min(n_rows, WINDOW_ROWS))
    n_windows = min(n_windows, N_WINDOWS if per_column else N_KEY_WINDOWS)
    columns = np.arange(n_columns)
    if n_columns > most or not n_windows:
        # Too wide to begin at every column.
        n_begun = min(most, n_columns, MAX_CLIMBED // (n_columns * min(n_rows, WINDOW_ROWS)))
        columns = rng.choice(n_columns, max(1, n_begun), replace=False)
    n_pairs = min(SAMPLE_PAIRS, most // len(columns))
    for c in columns.tolist():
        offsets, positions = encode.postings(segment.codes[c], len(segment.dictionary(c)))
        a, b = pairs.sample_pairs(segment.codes[c], positions, n_pairs, rng)
        left.append(a)
        right.append(b)
        # NULLs come first in the postings; where they are distinct they share nothing
        start = int(offsets[1]) if nulls_distinct else 0
        starts = rng.integers(start, max(start + 1, len(positions) - WINDOW_ROWS), max(1, n_windows))
        windows += [(c, positions[low : low + WINDOW_ROWS]) for low in np.unique(starts)]
    masks, witnesses = pairs.pairs_evidence(
        segment.codes, np.concatenate(left), np.concatenate(right), nulls_distinct
    )
    largest = np.argsort(-popcounts(masks), kind="stable")[: MAX_MASKS * (4 if per_column else 1)]
    masks, witnesses = masks[largest], witnesses[largest]
    more_masks, more_witnesses = climb_windows(segment, windows, nulls_distinct)
    masks, witnesses = np.concatenate([masks, more_masks]), np.concatenate([witnesses, more_witnesses])
    return _relevant(masks, by_row_id(witnesses, segment, segment), segment, per_column=per_column)


def _relevant(masks: U64, witnesses: I64, segment: Segment, *, per_column: bool) -> tuple[U64, I64]:
    """The maximal agree sets; `per_column`: also those that are maximal for some column."""
    top = maximal_masks(masks)
    if per_column:
        first, _ = unique_masks(masks)
        relevant = maximal_for(masks[first], full_mask(len(segment.schema))).any(axis=1)
        top = np.union1d(top, first[relevant])  # a pair of equal rows is maximal, but for no column
    return masks[top], witnesses[top]


def climb_windows(
    segment: Segment, windows: Sequence[tuple[int, I32]], nulls_distinct: bool
) -> tuple[U64, I64]:
    """Agree sets of each window of rows in which some share a value of the window's column.

    A window's positions come in the order of that column's values.
    """
    n_columns = len(segment.schema)
    n_words = n_words_for(n_columns + 1)  # the row is the column behind the last
    n_ids = np.array([len(segment.dictionary(c)) + 1 for c in range(n_columns)], dtype=np.int64)
    no_more = np.full((1, 1), -1, dtype=np.int32)
    masks = [np.empty((0, n_words), dtype=np.uint64)]
    witnesses = [np.empty((0, pairs.WITNESSES, 2), dtype=np.int64)]
    for c, positions in windows:
        codes = segment.codes[:, positions]
        rows = np.arange(len(positions), dtype=np.int32)
        edges = np.flatnonzero(codes[c, 1:] != codes[c, :-1]) + 1
        if len(edges) == len(positions) - 1:
            continue  # no two share a value
        offsets = np.concatenate([[0], edges, [len(positions)]])
        lhs, row = mask_of([c], n_words)[None, :], mask_of([n_columns], n_words)[None, :]
        agreed, at = partitions.refute(codes.T, rows, offsets, no_more, lhs, row, n_ids, nulls_distinct)
        masks.append(agreed)
        witnesses.append(np.where(at >= 0, positions[np.maximum(at, 0)], -1))
    return np.concatenate(masks)[:, : n_words_for(n_columns)], np.concatenate(witnesses)
