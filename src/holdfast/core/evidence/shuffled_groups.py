"""Groups of rows by Spark's shuffle, for tables that are more than every task should read.

A task of `group_tasks.py` reads all segments for the rows of its part. Here each segment is read once: its
rows go, on the columns that are asked about, to the part that their value of the pivot falls into, and there
the same function answers. One job, as before. A question without a pivot has one group, and is not sent.

Bytes: 12 for each row and pivot, and 1 to 16 for each column that is asked about; 2 KB for each block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.core.engine.worker import Task, import_task, task_name
from holdfast.core.evidence.group_tasks import Rows
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
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.bundle import unpack

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]


def answer_by_shuffle(relation: Relation, task: Task, payloads: Sequence[Payload]) -> list[bytes]:
    """What a task says of parts of the rows; payloads have no segments, those of a pivot are neighbours."""
    chosen: list[dict[str, Any]] = []
    parts: list[Payload] = []
    for i, payload in enumerate(payloads):
        if payload["part"] == 0:
            pivot, n_parts = payload["pivot"], payload["n_parts"]
            columns = _columns_of(payload)
            chosen.append({"first": i, "pivot": pivot, "n_parts": n_parts, "columns": columns})
        parts.append({**payload, "task": task_name(task), "columns": chosen[-1]["columns"]})
    segments = [
        relation.payload(segment=segment, number=i, chosen=chosen) for i, segment in enumerate(relation.live)
    ]
    return relation.engine.exchange(send_groups, segments, answer_part, parts, relation.progress)


def _columns_of(payload: Payload) -> list[int]:
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
    rows, number = np.flatnonzero(segment.live), np.array([payload["number"]], np.int64)
    for asked in payload["chosen"]:
        codes = segment.codes[asked["pivot"]][rows]
        keys = identities_in(segment, asked["pivot"])[0][codes]
        if nulls_distinct:  # each is alone, wherever it is: one part need not take all of them
            keys = np.where(codes == 0, rows.astype(np.uint64), keys)
        for part, at in by_part(keys, asked["n_parts"]):
            yield (
                asked["first"] + part,
                packed_rows(
                    segment, rows[at], asked["columns"], number=number, position=rows[at].astype(np.int32)
                ),
            )


def answer_part(blocks: Blocks, payload: Payload) -> bytes:
    """What the task that the payload names says of the rows that have come."""
    answer: bytes = import_task(payload["task"])(payload, ReceivedPart(blocks, payload))
    return answer


class ReceivedPart:
    """Rows that have come from all segments, in the order in which they lie there."""

    def __init__(self, blocks: Iterator[bytes], payload: Payload) -> None:
        self.nulls_distinct = payload["nulls"] == "distinct"
        bundles = sorted(map(unpack, blocks), key=lambda bundle: int(bundle.array("number")[0]))
        counts = [len(bundle.array("row_id")) for bundle in bundles]
        self.n_rows = sum(counts)
        segments = [bundle.array("number") for bundle in bundles]
        positions = [bundle.array("position").astype(np.int64) for bundle in bundles]
        self._names = np.concatenate(
            [np.empty(0, np.int64), *((n << 32) + p for n, p in zip(segments, positions, strict=True))]
        )
        self._bundles = bundles
        self._row_ids = np.concatenate([np.empty(0, np.int64), *(b.array("row_id") for b in bundles)])
        self._at = {column: i for i, column in enumerate(payload["columns"])}
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
        return self._names[rows]

    def row_ids(self, rows: Rows) -> I64:
        return self._row_ids[rows]
