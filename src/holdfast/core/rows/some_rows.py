"""Some rows of a segment, as what a task looks at: its live ones, those that a batch added, or those that it
deleted. A task decodes the columns that it needs, and what leaves it is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.core.rows.codes import decode
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.segments import Segment
from holdfast.core.rows.table_state import SegmentRef
from holdfast.core.rows.tasks import opened, parsed_schema, staged
from holdfast.core.store.arrow_types import arrow_type

I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Payload = dict[str, Any]

# Rows of one task: enough to keep all cores busy on one segment.
PART_ROWS = 1 << 17


def live_rows(segments: Sequence[SegmentRef]) -> list[Payload]:
    """The live rows of segments as what tasks look at."""
    return [{"segment": s.to_dict(), "n_rows": s.n_live} for s in segments if s.n_live]


def chosen_rows(relation: Relation, row_ids: I64) -> list[Payload]:
    """Some rows by id, live or not."""
    parts = []
    for ref, at in relation.positioned(row_ids):
        positions = relation.stage("positions", positions=at)
        parts.append({"segment": ref.to_dict(), "positions": positions, "n_rows": len(at)})
    return parts


def divided(parts: Sequence[Payload], n_rows: int | None = None) -> list[Payload]:
    """In tasks: not too many rows of a segment at a time."""
    smaller, most = [], n_rows or PART_ROWS
    for part in parts:
        n_parts = -(-part["n_rows"] // most)
        bounds = [part["n_rows"] * i // n_parts for i in range(n_parts + 1)]
        smaller += [{**part, "first": bounds[i], "last": bounds[i + 1]} for i in range(n_parts)]
    return smaller


@dataclass(frozen=True, slots=True)
class SomeRows:
    """Some rows of a segment: a range of positions, or the positions themselves."""

    segment: Segment
    at: slice | I64

    @classmethod
    def of(cls, payload: Payload) -> Self:
        """Rows number `first` to `last` of those that a payload names, or of the live ones."""
        segment = opened(payload, "segment", parsed_schema(payload["schema"]))
        chosen = slice(payload["first"], payload["last"])
        if "positions" in payload:
            return cls(segment, staged(payload, "positions").array("positions")[chosen])
        if not segment.ref.n_deleted:
            return cls(segment, chosen)
        return cls(segment, np.flatnonzero(segment.live)[chosen])

    def codes(self, column: int) -> I32:
        codes: I32 = self.segment.codes[column][self.at]
        return codes

    def row_ids(self, which: I64) -> I64:
        positions = which + self.at.start if isinstance(self.at, slice) else self.at[which]
        return self.segment.row_ids(positions)

    def values(self, column: int, codes: I32 | None = None) -> pa.Array:
        """A column of the rows, or the values of some of the segment's codes."""
        segment, type_ = self.segment, self.segment.schema.types[column]
        chosen = self.codes(column) if codes is None else codes
        return decode(segment.dictionary(column), segment.texts(column), chosen, type_).cast(
            arrow_type(type_)
        )
