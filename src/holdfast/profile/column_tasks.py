"""The jobs that count columns, and that find rows against a rule.

A task looks at some rows of one segment; what leaves it are counts, as large as what is kept of a column
whatever its rows are (`column_counts.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows import condition_tests
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.some_rows import PART_ROWS, Payload, SomeRows, chosen_rows, divided, live_rows
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.store.arrow_types import arrow_type
from holdfast.core.store.bundle import pack
from holdfast.core.words.schema import Type
from holdfast.profile import tally
from holdfast.profile.column_counts import (
    MOST,
    ColumnCounts,
    count_column,
    count_values,
    in_bundle,
    joined_counts,
)

I64 = NDArray[np.int64]
Counts = dict[int, ColumnCounts]  # by column

# What it takes on one core to count a value, in ns: codes take 2, texts that are all different 300.
NS_COUNT = 50
# Tasks of a job over all rows, for each share of it.
TASKS_OF_A_SHARE = 4


def count_all(relation: Relation, columns: Sequence[int]) -> Counts:
    """The counts of some columns of all live rows. One job; cost: a pass over these columns."""
    ns = float(NS_COUNT * relation.n_rows * len(columns))
    n_rows = max(PART_ROWS, relation.n_rows // (TASKS_OF_A_SHARE * relation.shares(ns)))
    bounds = {str(c): {"values": MOST["values"]} for c in columns}
    return _counted(relation, columns, bounds, divided(live_rows(relation.segments), n_rows))


def count_deleted(before: Relation, known: Counts, row_ids: I64) -> Counts:
    """The counts of rows that go. One job; cost: these rows."""
    return _counted(before, list(known), _bounds(known), divided(chosen_rows(before, row_ids)))


def count_added(after: Relation, known: Counts, added: Sequence[SegmentRef]) -> Counts:
    """The counts of rows that come. One job; cost: these rows."""
    return _counted(after, list(known), _bounds(known), divided(live_rows(added)))


def _bounds(known: Counts) -> dict[str, dict[str, int]]:
    """Of columns with more values than are counted only the ends are told, and of long texts none."""
    bounds = {}
    for c, counts in known.items():
        if counts.values is None:
            bounds[str(c)] = {"values": 0}
        elif not counts.values.complete:
            bounds[str(c)] = {"values": 2 * tally.EDGE}
    return bounds


def _counted(
    relation: Relation,
    columns: Sequence[int],
    bounds: Mapping[str, Mapping[str, int]],
    parts: Sequence[Payload],
) -> Counts:
    """The counts of some rows."""
    payloads = [relation.payload(**part, columns=list(columns), bounds=bounds) for part in parts]
    n_rows = sum(part["last"] - part["first"] for part in parts)
    results = relation.run(count_part, payloads, float(NS_COUNT * n_rows * len(columns)))
    if not results:
        return {c: nothing(relation.schema.types[c]) for c in columns}
    return {c: joined_counts([ColumnCounts.from_bundle(r, str(c)) for r in results]) for c in columns}


def nothing(type_: Type) -> ColumnCounts:
    """The counts of a column without rows."""
    return count_values(pa.array([], arrow_type(type_)), np.empty(0, np.int64), 0, 0, type_)


def count_part(payload: Payload) -> bytes:
    """The counts of some columns in some rows of a segment."""
    rows, bounds = SomeRows.of(payload), payload["bounds"]
    counts = {c: count_column(rows, c, bounds.get(str(c), {})) for c in payload["columns"]}
    return pack(in_bundle(counts), {})


def check_part(payload: Payload) -> bytes:
    """The rows of a part that violate each of some rules about one column."""
    return condition_tests.check_rows(payload, SomeRows.of(payload))


violations = partial(condition_tests.violations, task=check_part)
