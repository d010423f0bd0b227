"""Which columns vary, of tables that are more than a task should read: empty left-hand sides.

A column varies if two live rows have different values in it. A task looks at each segment and answers two
rows of each column at most; two of all that are answered differ if any do. Two jobs: these rows, and on which
columns they agree.

Values are compared by 128 bits, as `shuffled.py` has them. Two NULLs are two values where NULLs are distinct.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from holdfast.core.evidence.kernels import partitions
from holdfast.core.evidence.kernels.pairs import WITNESSES
from holdfast.core.evidence.shuffled import NULL_CHECK, agree_sets, identities_in, segment_of
from holdfast.core.evidence.validation import columns_of_any
from holdfast.core.rows.kernels.masks import n_words_for
from holdfast.core.rows.relation import Relation
from holdfast.core.rows.tasks import Payload
from holdfast.core.store.bundle import Bundle, pack, unpack

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


def refute_constants(relation: Relation, lhs: U64, rhs: U64, pivots: I64) -> tuple[U64, U64, I64, U64]:
    """(refuted, masks, witnesses, exhausted): as `validate_fds`, all left-hand sides are empty. Two jobs.

    Cost: of each segment its columns until a second value is found; the driver compares two values for each
    column and segment. There are two live rows at least.
    """
    n_columns = len(relation.schema)
    asked = columns_of_any(rhs, n_columns)
    payloads = [relation.payload(segment=segment, columns=asked) for segment in relation.live]
    # In tasks, however little work it is: the driver is not to fetch every segment.
    answers = relation.engine.run(two_values, payloads, where="spark", progress=relation.progress)
    pairs = np.unique(
        _differing(list(map(unpack, answers)), len(asked), relation.nulls == "distinct"), axis=0
    )
    masks = agree_sets(relation, pairs)
    witnesses: I64 = np.full((len(pairs), WITNESSES, 2), -1, dtype=np.int64)
    witnesses[:, 0] = pairs
    wide = np.zeros((len(masks), rhs.shape[1]), dtype=np.uint64)
    wide[:, : n_words_for(n_columns)] = masks
    pending = rhs.copy()
    partitions.strike(lhs, pending, wide)
    return rhs & ~pending, masks, witnesses, rhs[:0]


def _differing(answers: Sequence[Bundle], n_columns: int, nulls_distinct: bool) -> I64:
    """Pairs of row ids that differ on one of the columns each, for those that vary; and one of any two rows,
    which is enough against the empty key."""
    ids, keys, checks = (
        np.concatenate([answer.array(name).reshape(2, n_columns) for answer in answers])
        for name in ("row_id", "key", "check")
    )
    pairs = [np.concatenate([answer.array("first") for answer in answers])[:2]]
    for c in range(n_columns):
        there = ids[:, c] >= 0
        row_id, key, check = ids[there, c], keys[there, c], checks[there, c]
        differs = (key != key[0]) | (check != check[0])
        if nulls_distinct:
            differs |= (key == 0) & (check == NULL_CHECK)
        [others] = np.nonzero(differs[1:])
        if len(others):
            pairs.append(row_id[[0, 1 + others[0]]])
    return np.stack(pairs)


def two_values(payload: Payload) -> bytes:
    """The first live row of a segment, and of each column the first one that differs from it: their ids, -1
    for none, and values. `first`: the ids of the first two rows."""
    segment, nulls_distinct = segment_of(payload)
    first = np.flatnonzero(segment.live)[:2]
    columns = payload["columns"]
    rows = np.full((2, len(columns)), -1, dtype=np.int64)
    rows[0] = first[0]
    keys, checks = (np.zeros((2, len(columns)), np.uint64) for _ in range(2))
    for i, c in enumerate(columns):
        codes = segment.codes[c]
        if codes[first[0]] == 0 and nulls_distinct:
            rows[1, i] = first[1] if len(first) > 1 else -1
        else:
            every_code = np.arange(len(segment.dictionary(c)) + 1, dtype=np.int32)
            rows[1, i] = partitions.first_other(codes, segment.live, every_code, int(codes[first[0]]))
        there = rows[:, i] >= 0
        keys[there, i], checks[there, i] = identities_in(segment, c, codes[rows[there, i]])
    ids = np.where(rows >= 0, segment.row_ids(np.maximum(rows, 0).reshape(-1)).reshape(rows.shape), -1)
    return pack({"row_id": ids, "key": keys, "check": checks, "first": segment.row_ids(first)}, {})
