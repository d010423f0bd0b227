"""Counted agree sets: rows that come or go, compared with all rows.

Law (property 1 of DynASt): the pairs of the next relation are those of the current one, plus inserted x
(remaining and inserted), minus deleted x (remaining and deleted). Each unordered pair is counted once.

A task compares rows of one segment with those of another, and returns each agree set once, with the number
of its pairs: what leaves a task is as large as the number of different agree sets. One job for all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.agree_counts import agree_counts
from holdfast.pipeline.relation import Relation
from holdfast.pipeline.tasks import opened, parsed_schema, staged
from holdfast.storage.bundle import pack
from holdfast.storage.segments import open_segment
from holdfast.storage.tables import SegmentRef

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Payload = dict[str, Any]

# Pairs x columns that are compared inline at most, and by one task: 0.02 to 0.2 ns each on one core. A task
# is large, since the more rows are compared at once, the more of them share their work.
INLINE_COMPARE = 6e10
TASK_COMPARE = 4e9
MAX_PARTS = 64


@dataclass(frozen=True, slots=True)
class Compared:
    """Agree sets of pairs: masks uint64[k, n_words], not all different; counts int64[k]; a pair of row ids
    of each, int64[k, 2]."""

    masks: U64
    counts: I64
    witnesses: I64


def compare_all(relation: Relation) -> Compared:
    """All pairs of live rows of a relation, whose segments have no deleted rows: it is new."""
    return compare_inserts(relation, relation.segments)


def compare_inserts(relation: Relation, added: Sequence[SegmentRef]) -> Compared:
    """The pairs that segments brought (`relation` has them): with all live rows, and with each other."""
    new = {s.number for s in added}
    old = [s for s in relation.segments if s.number not in new and s.n_live]
    work: list[tuple[Payload, int]] = []
    for i, part in enumerate(added):
        for segment in [*old, *added[:i]]:
            work.append(
                ({"segment": segment.to_dict(), "source": part.to_dict()}, part.n_rows * segment.n_live)
            )
        own = {"segment": part.to_dict(), "source": part.to_dict(), "own": True}
        work.append((own, part.n_rows * (part.n_rows - 1) // 2))
    return _compared(relation, work)


def compare_deletes(before: Relation, after: Relation, row_ids: I64) -> Compared:
    """The pairs that deleted rows took along: with the rows of `after`, and with each other."""
    gone = []
    for ref in before.segments:
        at = open_segment(before.root, ref, before.schema).positions(row_ids)
        at = np.sort(at[at >= 0])
        if len(at):
            gone.append((ref, after._stage("positions", positions=at.astype(np.int64)), len(at)))
    work: list[tuple[Payload, int]] = []
    for i, (ref, mine, n) in enumerate(gone):
        source = {"source": ref.to_dict(), "positions": mine}
        for segment in after.segments:
            if segment.n_live:
                work.append(({**source, "segment": segment.to_dict()}, n * segment.n_live))
        for other, among, m in gone[:i]:
            work.append(({**source, "segment": other.to_dict(), "among": among}, n * m))
        work.append(({**source, "segment": ref.to_dict(), "among": mine, "own": True}, n * (n - 1) // 2))
    return _compared(after, work)


def _compared(relation: Relation, work: Sequence[tuple[Payload, int]]) -> Compared:
    n_columns, n_words = len(relation.schema), relation.n_words
    payloads = []
    for fields, n_pairs in work:
        if n_pairs:
            n_parts = min(MAX_PARTS, 1 + int(n_pairs * n_columns / TASK_COMPARE))
            payloads += [relation._payload(**fields, part=i, n_parts=n_parts) for i in range(n_parts)]
    total = float(sum(n for _, n in work)) * n_columns
    results = relation._run(compare_part, payloads, total, INLINE_COMPARE)
    masks = [r.array("masks").reshape(-1, n_words) for r in results] or [np.empty((0, n_words), np.uint64)]
    counts = [r.array("counts") for r in results] or [np.empty(0, np.int64)]
    pairs = [r.array("witnesses").reshape(-1, 2) for r in results] or [np.empty((0, 2), np.int64)]
    return Compared(np.concatenate(masks), np.concatenate(counts), np.concatenate(pairs))


def compare_part(payload: Payload) -> bytes:
    """A part of the rows of one segment with the live (or the given) rows of another."""
    schema = parsed_schema(payload["schema"])
    segment, source = opened(payload, "segment", schema), opened(payload, "source", schema)
    own, part, n_parts = payload.get("own", False), payload["part"], payload["n_parts"]
    positions = _positions(payload, "positions", source.ref.n_rows)
    # Each row of a triangle has one pair more than the row before: parts of equal area.
    share = np.sqrt(np.array([part, part + 1]) / n_parts) if own else np.array([part, part + 1]) / n_parts
    first, last = (share * len(positions)).round().astype(np.int64).tolist()
    rows = segment.translated_rows(source, positions[first:last], payload["nulls"] == "distinct")
    codes, live = segment.codes, segment.live
    among = None
    if "among" in payload:
        among = _positions(payload, "among", segment.ref.n_rows)
        codes, live = codes[:, among], np.ones(len(among), dtype=np.bool_)
    masks, counts, pairs = agree_counts(codes, live, rows, own, first)
    right = pairs[:, 1] if among is None else among[pairs[:, 1]]
    ids = np.stack([source.row_ids(positions[first + pairs[:, 0]]), segment.row_ids(right)], axis=1)
    return pack({"masks": masks, "counts": counts, "witnesses": ids}, {})


def _positions(payload: Payload, name: str, n_rows: int) -> I64:
    if name not in payload:
        return np.arange(n_rows, dtype=np.int64)
    at: I64 = staged({**payload, "positions": payload[name]}, "positions").array("positions")
    return at
