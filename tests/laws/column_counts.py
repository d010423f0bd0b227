"""Tallies and counts of columns as the registry of states wants them: of the first column, as texts.

So few values are counted one by one; `test_tally.py` has those of which only the ends are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.core.words.schema import Type
from holdfast.profile.column_counts import MOST, ColumnCounts, count_values
from holdfast.profile.tally import Tally
from reference.keys import canonical

Rows = Mapping[int, Sequence[Any]]


def texts(rows: Rows) -> Counter[str]:
    return Counter(str(canonical(row[0])) for row in rows.values() if row[0] is not None)


def counted(rows: Rows) -> tuple[pa.Array, np.ndarray]:
    counts = texts(rows)
    return pa.array(list(counts), pa.large_string()), np.array(list(counts.values()), np.int64)


def tally(rows: Rows, n_columns: int, nulls: str) -> Tally:
    return Tally.of(*counted(rows), MOST["values"])


def tally_grown(state: Tally, old: Rows, new: Rows, n_columns: int, nulls: str) -> Tally:
    return state.plus(tally(new, n_columns, nulls), MOST["values"])


def tally_shrunk(state: Tally, left: Rows, gone: Rows, n_columns: int, nulls: str) -> Tally | None:
    return state.minus(tally(gone, n_columns, nulls), MOST["values"])


def tally_meaning(state: Tally | None) -> dict[str, int] | None:
    return None if state is None else dict(zip(state.values.to_pylist(), state.counts.tolist(), strict=True))


def column(rows: Rows, n_columns: int, nulls: str) -> ColumnCounts:
    n_nulls = sum(row[0] is None for row in rows.values())
    return count_values(*counted(rows), len(rows), n_nulls, Type("text"))


def column_grown(state: ColumnCounts, old: Rows, new: Rows, n_columns: int, nulls: str) -> ColumnCounts:
    return state.plus(column(new, n_columns, nulls))


def column_shrunk(state: ColumnCounts, left: Rows, gone: Rows, n_columns: int, nulls: str) -> ColumnCounts:
    """Counted again where it says so, as `profile_class.py` does."""
    rest = state.minus(column(gone, n_columns, nulls))
    return column(left, n_columns, nulls) if rest is None else rest


def column_meaning(state: ColumnCounts) -> list[Any]:
    tallies = [tally_meaning(getattr(state, name)) for name in MOST]
    return [state.n_rows, state.n_nulls, state.total_length, *tallies]
