"""Groups of rows that are sent (`sent_parts.py`): to the part that their value of the pivot falls into.

Bytes: 12 for each row and pivot, and 1 to 16 for each column that is asked about; 2 KB for each block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.group_tasks import Rows
from holdfast.core.evidence.sent_parts import Sending, in_order, number_of, row_ids_of
from holdfast.core.evidence.shuffled import (
    Blocks,
    Sent,
    by_part,
    identities_in,
    numbered,
    packed_rows,
    segment_of,
    unpacked_columns,
)
from holdfast.core.evidence.validation import NO_PIVOT
from holdfast.core.rows.tasks import Payload

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


def asked_of(payload: Payload) -> dict[str, Any] | None:
    """The pivot and the columns that a question is about; None without a pivot: all rows are one group."""
    if payload["pivot"] == NO_PIVOT:
        return None
    return {"pivot": payload["pivot"], "columns": columns_of(payload)}


def columns_of(payload: Payload) -> list[int]:
    """The columns that a question is about."""
    sequences = [payload.get("sequence", []), *payload.get("sequences", [])]
    rhs = payload.get("rhs", [])
    further = [*(rhs if isinstance(rhs, list) else [rhs]), payload.get("column", -1)]
    asked = {payload["pivot"], *(c for some in (*sequences, further) for c in some)}
    return sorted(c for c in asked if c >= 0)


# -- tasks -------------------------------------------------------------------------------------


def send_groups(payload: Payload) -> Sent:
    """The live rows of a segment, to the parts that their values of the pivots fall into."""
    segment, nulls_distinct = segment_of(payload)
    rows, number = np.flatnonzero(segment.live), number_of(payload)
    for asked in payload["chosen"]:
        codes = segment.codes[asked["pivot"]][rows]
        keys = identities_in(segment, asked["pivot"])[0][codes]
        if nulls_distinct:  # each is alone, wherever it is: one part need not take all of them
            keys = np.where(codes == 0, rows.astype(np.uint64), keys)
        for part, at in by_part(keys, asked["n_parts"]):
            position = rows[at].astype(np.int32)
            block = packed_rows(segment, rows[at], asked["columns"], number=number, position=position)
            yield asked["first"] + part, block


class ReceivedPart:
    """Rows that have come from all segments, in the order in which they lie there."""

    def __init__(self, blocks: Blocks, payload: Payload) -> None:
        self.nulls_distinct = payload["nulls"] == "distinct"
        bundles = in_order(blocks)
        counts = [len(bundle.array("row_id")) for bundle in bundles]
        self.n_rows = sum(counts)
        segments = [bundle.array("number") for bundle in bundles]
        positions = [bundle.array("position").astype(np.int64) for bundle in bundles]
        self._names = np.concatenate(
            [np.empty(0, np.int64), *((n << 32) + p for n, p in zip(segments, positions, strict=True))]
        )
        self._bundles = bundles
        self._row_ids = row_ids_of(bundles)
        self._at = {column: i for i, column in enumerate(columns_of(payload))}
        matrix, self._n_ids = numbered(bundles, len(self._at))
        self._values: dict[int, U64] = {}
        self._numbers = np.ascontiguousarray(matrix.T)

    def n_values(self, column: int) -> int:
        return int(self._n_ids[self._at[column]]) - 1

    def numbers(self, column: int) -> I32:
        numbers: I32 = self._numbers[self._at[column]]
        return numbers

    def values(self, column: int, rows: Rows) -> I64:
        """The values themselves, or half of a hash of them under the key of the workspace."""
        of_column = self._values.get(column)
        if of_column is None:
            columns = [list(unpacked_columns(b, len(self._at)))[self._at[column]] for b in self._bundles]
            of_column = np.concatenate([np.empty(0, np.uint64), *(keys[codes] for codes, keys, _ in columns)])
            self._values[column] = of_column
        return of_column[rows].view(np.int64)

    def names(self, rows: Rows) -> I64:
        names: I64 = self._names[rows]
        return names

    def row_ids(self, rows: Rows) -> I64:
        ids: I64 = self._row_ids[rows]
        return ids


SENDING = Sending(asked_of, send_groups, ReceivedPart)
