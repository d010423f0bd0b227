"""What a table lacks of some rows, and has in addition: the difference of two bags, bucket by bucket.

A bucket is a range of the hashes that find rows by content. Equal rows have one hash, so they meet in one
bucket, and each bucket is a difference of its own. A first job finds the pairs of equal rows, for each
segment of queries and each of the table: 16 bytes a pair, in a file, in the order of the hashes. A second
one takes from all of these files what is a bucket's, and lets each query take one row.

The law: nothing that grows with the table comes back to the driver, only the difference: eight bytes for
each row that goes or comes, as of any batch. A task of the second job holds some 100 bytes for each of
about BUCKET rows; more where more rows have one hash, as equal ones do. Cost: that of looking up all
queries, and a sort of each bucket; every bucket opens every file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.rows.matching import Matching
from holdfast.core.rows.relation import NS_LOCATE, Relation
from holdfast.core.rows.segments import Segment, open_segment
from holdfast.core.rows.table_state import SegmentRef, payloads_of
from holdfast.core.rows.tasks import Payload, located, parsed_schema
from holdfast.core.store.bundle import open_bundle, pack, write_bundle
from holdfast.core.store.files import FileRef, unique_name
from holdfast.core.store.root import root_of

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

# Rows of both sides that are compared at once.
BUCKET = 1 << 18
# What it takes on one core to compare one of them, in ns.
NS_COMPARE = 500


def difference(relation: Relation, queries: Sequence[SegmentRef]) -> tuple[I64, I64]:
    """(come, gone): the queries that no row is left for, and the ids of the rows that no query takes.

    By whole rows; equal queries take different rows. Queries are numbered through the query segments. Both
    ascend.
    """
    segments = [s for s in relation.segments if s.n_live]
    n_queries, n_rows = sum(q.n_rows for q in queries), sum(s.n_live for s in segments)
    n_buckets = -(-(n_queries + n_rows) // BUCKET)
    common = {
        "n_buckets": n_buckets,
        "staging": relation.staging,
        "columns": list(range(len(relation.schema))),
    }
    pairs = [(i, q, s) for i, q in enumerate(queries) for s in segments if q.n_rows]
    one, other = payloads_of(segments), payloads_of(queries)
    payloads = [
        relation.payload(segment=one[s.number], queries=other[q.number], **common) for _, q, s in pairs
    ]
    results = relation.run(locate_pairs, payloads, NS_LOCATE * sum(q.n_rows for _, q, _ in pairs))
    common |= {
        "queries": list(other.values()),
        "segments": relation.live,
        "pairs": [(i, json.loads(r.meta["file"])) for (i, _, _), r in zip(pairs, results, strict=True)],
    }
    payloads = [relation.payload(bucket=b, **common) for b in range(n_buckets)]
    results = relation.run(compare_bucket, payloads, NS_COMPARE * (n_queries + n_rows))
    come, gone = ([r.array(name) for r in results] for name in ("come", "gone"))
    return _joined(come), _joined(gone)


def locate_pairs(payload: Payload) -> bytes:
    """Write the pairs of equal rows of a segment and a segment of queries to a file, bucket after bucket."""
    hashes, repeated, arrays = located(payload)
    n = payload["n_buckets"]
    cuts = {"cuts": _cuts(hashes, n), "repeat_cuts": _cuts(repeated, n)}
    name = unique_name(payload["staging"], "pairs", ".arrow")
    ref = write_bundle(root_of(payload["root"]), name, arrays | cuts, {"holdfast": "pairs"})
    return pack({}, {"file": json.dumps(ref.to_dict())})


def compare_bucket(payload: Payload) -> bytes:
    """(come, gone) of a bucket, as `difference` has them, in no order."""
    root, schema = root_of(payload["root"]), parsed_schema(payload["schema"])
    bucket, n = payload["bucket"], payload["n_buckets"]

    def opened(which: str) -> list[Segment]:
        return [open_segment(root, SegmentRef.from_dict(s), schema) for s in payload[which]]

    queries = opened("queries")
    starts = np.cumsum([0, *(q.ref.n_rows for q in queries)])
    asked = _joined([start + _inside(q, bucket, n) for q, start in zip(queries, starts, strict=False)])
    ids = [s.row_ids(at[s.live[at]]) for s in opened("segments") if len(at := _inside(s, bucket, n))]
    leader = np.arange(len(asked))
    query, row_id = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for i, file in payload["pairs"]:
        bundle = open_bundle(root, FileRef.from_dict(file), "pairs", partly=True)
        start, end = bundle.array("cuts")[bucket : bucket + 2]
        bundle.expect(int(end - start), len(bundle.array("query")))
        query.append(np.searchsorted(asked, starts[i] + bundle.array("query")[start:end]))
        row_id.append(bundle.array("row_id")[start:end])
        start, end = bundle.array("repeat_cuts")[bucket : bucket + 2]
        repeat, first = (starts[i] + bundle.array(name)[start:end] for name in ("repeat", "leader"))
        leader[np.searchsorted(asked, repeat)] = np.searchsorted(asked, first)
    taken = Matching.of(np.concatenate(query), np.concatenate(row_id), leader).taken
    there = _joined(ids)
    return pack({"come": asked[taken < 0], "gone": there[~np.isin(there, taken)]}, {})


def _cuts(hashes: U64, n: int) -> I64:
    """Where the buckets begin in ascending hashes, and where the last one ends: int64[n + 1]."""
    bounds = np.array([(b << 64) // n for b in range(1, n)], dtype=np.uint64)
    return np.array([0, *np.searchsorted(hashes, bounds), len(hashes)], dtype=np.int64)


def _inside(segment: Segment, bucket: int, n: int) -> I64:
    """The positions of the rows of a segment that are of a bucket."""
    segment.expect(segment.ref.n_rows // n)
    start, end = _cuts(segment.row_hashes, n)[bucket : bucket + 2]
    return segment.row_order[start:end].astype(np.int64)


def _joined(parts: Sequence[I64]) -> I64:
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
