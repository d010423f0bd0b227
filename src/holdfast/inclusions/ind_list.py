"""From pair counts to inclusion dependencies with names: what `show` lists. Needs no kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from holdfast.core.cover.history import Against
from holdfast.core.words.dependency import Ind, Side
from holdfast.inclusions.composite_state import Composites
from holdfast.inclusions.generator import GeneratorState
from holdfast.inclusions.pair_counts import PairCounts, pair_ids
from holdfast.inclusions.several import node_of

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


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
    different = left != right
    left, right, values, carried = left[different], right[different], values[different], carried[different]
    missing = distinct[left] - values
    within = missing / np.maximum(distinct[left], 1) <= max_error  # as the error is told, to the last bit
    left, right, missing = left[within], right[within], missing[within]
    lost_rows = rows[left] - carried[within]
    if with_empty:
        empty = columns[distinct[columns] == 0]
        more_left, more_right = np.repeat(empty, len(columns)), np.tile(columns, len(empty))
        different = more_left != more_right
        left = np.concatenate([left, more_left[different]])
        right = np.concatenate([right, more_right[different]])
        nothing = np.zeros(int(different.sum()), np.int64)
        missing, lost_rows = np.concatenate([missing, nothing]), np.concatenate([lost_rows, nothing])
    return sorted(_named(state, distinct, left, right, missing, lost_rows, table))


def inds_of(state: GeneratorState, pairs: PairCounts, wanted: U64) -> list[Ind]:
    """Some pairs of columns as inclusions, each with what is missing. Cost: a pass over the pair counts."""
    distinct, rows = pairs.of_columns(state.next_id)
    some = PairCounts(wanted, *pairs.at(wanted))
    left, right = some.left, some.right
    return list(_named(state, distinct, left, right, distinct[left] - some.values, rows[left] - some.rows))


def pairs_of(state: GeneratorState, dependent: Side, referenced: Side) -> U64 | None:
    """The pairs of columns of two sides; None where not all of them took part."""
    ids: list[list[int]] = []
    for side in (dependent, referenced):
        table = state.table(side.table)
        if table is None or not set(side.columns) <= set(table.columns):
            return None
        ids.append([table.first + table.columns.index(column) for column in side.columns])
    return pair_ids(*(np.array(side) for side in ids))


def holds(
    state: GeneratorState, pairs: PairCounts, composites: Composites, dependent: Side, referenced: Side
) -> bool | None:
    """Whether an inclusion misses nothing, as far as counts and combinations tell."""
    wanted = pairs_of(state, dependent, referenced)
    if wanted is None:
        return None
    if any(ind.missing_values for ind in inds_of(state, pairs, wanted)):
        return False
    if len(dependent.columns) == 1:
        return True
    node = node_of(state, dependent, referenced)
    if node in composites.valid:
        return True
    return False if node in composites.refuted else None


def against(state: GeneratorState, pairs: PairCounts, sides: tuple[Side, Side]) -> Against | None:
    """(missing values, their share) of an inclusion of one column; None where that is not kept."""
    wanted = pairs_of(state, *sides)
    if wanted is None or len(wanted) > 1:
        return None
    [ind] = inds_of(state, pairs, wanted)
    return ind.missing_values, ind.error


def _named(
    state: GeneratorState,
    distinct: I64,
    left: I64,
    right: I64,
    missing: I64,
    lost_rows: I64,
    table: str | None = None,
) -> Iterator[Ind]:
    """Inclusions of columns, with their errors; those with a table on either side, if one is given."""
    names, uncounted = state.names(), state.append_only()
    for a, b, n, r in zip(*(x.tolist() for x in (left, right, missing, lost_rows)), strict=True):
        (a_table, a_column), (b_table, b_column) = names[a], names[b]
        if table not in (None, a_table, b_table):
            continue
        n_left, n_right = int(distinct[a]), int(distinct[b])
        yield Ind(
            Side(a_table, (a_column,)),
            Side(b_table, (b_column,)),
            n / n_left if n_left else 0.0,
            n,
            None if uncounted[a] else r,
            (n_left - n) / n_right if n_right else 0.0,
        )
