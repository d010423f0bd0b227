"""From pair counts to inclusion dependencies with names: what `show` lists. Needs no kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from holdfast.core.words.dependency import Ind, Side
from holdfast.inclusions.generator import GeneratorState
from holdfast.inclusions.pair_counts import PairCounts, pair_ids

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Names = Mapping[int, tuple[str, str]]


def list_inds(
    state: GeneratorState,
    pairs: PairCounts,
    *,
    max_error: float = 0.0,
    with_empty: bool = False,
    table: str | None = None,
) -> list[Ind]:
    """The unary inclusions whose error is at most `max_error`, sorted by their sides.

    Columns without values take part only if asked: then they are included in every other column. Pairs that
    share nothing have error 1. Cost: a pass over the pairs that share a value (all pairs for an
    error of 1).
    """
    distinct, rows = pairs.of_columns(state.next_id)
    left, right, values, carried = pairs.left, pairs.right, pairs.values, pairs.rows
    columns = np.flatnonzero(state.live())
    filled = columns[distinct[columns] > 0]
    if max_error >= 1:
        left, right = np.repeat(filled, len(filled)), np.tile(filled, len(filled))
        values, carried = pairs.at(pair_ids(left, right))
    other = left != right
    left, right, values, carried = left[other], right[other], values[other], carried[other]
    missing = distinct[left] - values
    within = missing / np.maximum(distinct[left], 1) <= max_error  # as the error is told, to the last bit
    left, right, missing = left[within], right[within], missing[within]
    lost_rows = rows[left] - carried[within]
    if with_empty:
        empty = columns[distinct[columns] == 0]
        more_left, more_right = np.repeat(empty, len(columns)), np.tile(columns, len(empty))
        other = more_left != more_right
        left = np.concatenate([left, more_left[other]])
        right = np.concatenate([right, more_right[other]])
        nothing = np.zeros(int(other.sum()), np.int64)
        missing, lost_rows = np.concatenate([missing, nothing]), np.concatenate([lost_rows, nothing])
    names, uncounted = state.names(), state.append_only()
    found = [
        _ind(names, uncounted, distinct, a, b, n, r)
        for a, b, n, r in zip(*(x.tolist() for x in (left, right, missing, lost_rows)), strict=True)
        if table is None or table in (names[a][0], names[b][0])
    ]
    return sorted(found)


def inds_of(state: GeneratorState, pairs: PairCounts, wanted: U64) -> list[Ind]:
    """Some pairs of columns as inclusions, each with what is missing. Cost: a pass over the pair counts."""
    distinct, rows = pairs.of_columns(state.next_id)
    shared, carried = pairs.at(wanted)
    left, right = (
        (wanted >> np.uint64(32)).astype(np.int64),
        (wanted & np.uint64(0xFFFFFFFF)).astype(np.int64),
    )
    names, uncounted = state.names(), state.append_only()
    columns = (left, right, distinct[left] - shared, rows[left] - carried)
    return [
        _ind(names, uncounted, distinct, a, b, n, r)
        for a, b, n, r in zip(*(x.tolist() for x in columns), strict=True)
    ]


def _ind(
    names: Names,
    uncounted: NDArray[np.bool_],
    distinct: I64,
    left: int,
    right: int,
    missing: int,
    lost_rows: int,
) -> Ind:
    (a_table, a), (b_table, b) = names[left], names[right]
    n_left, n_right = int(distinct[left]), int(distinct[right])
    return Ind(
        Side(a_table, (a,)),
        Side(b_table, (b,)),
        missing / n_left if n_left else 0.0,
        missing,
        None if uncounted[left] else lost_rows,
        n_left / n_right if n_right else 0.0,
    )
